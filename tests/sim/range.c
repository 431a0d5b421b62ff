/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Profiler ranges: counted per thread, and written at once to the file SIM_RANGES. */
#include "inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Thread_local int depth;

static void write_line(const char *line, size_t length)
{
    const char *path = getenv("SIM_RANGES");
    int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        if (write(fd, line, length) != (ssize_t)length) {
            perror("sim: SIM_RANGES");
        }
        close(fd);
    }
}

int sim_range_push(const char *text)
{
    char line[512];
    int length = snprintf(line, sizeof(line), "push %s\n", text != NULL ? text : "");

    if (length >= (int)sizeof(line)) {
        length = (int)sizeof(line) - 1;
        line[length - 1] = '\n';
    }
    write_line(line, (size_t)length);
    return depth++;
}

int sim_range_pop(void)
{
    if (depth == 0) {
        return -1;
    }
    write_line("pop\n", 4);
    return --depth;
}
