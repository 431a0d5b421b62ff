/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Replaces the command line of a process. The kernel shows the memory in which it put the arguments
 * at the start; its addresses are fields 48 and 49 of /proc/self/stat. prctl(PR_SET_MM_MAP) could
 * show other memory, but needs CONFIG_CHECKPOINT_RESTORE.
 */
#include "launch/title.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARGUMENTS_FIELD 48 /* of /proc/PID/stat; the first one after the name is 3 */

/* Find the memory of the command line. NULL: unknown. */
static char *find_line(size_t *size_out)
{
    unsigned long begin = 0;
    unsigned long end = 0;
    char stat[2048];
    const char *field;
    ssize_t size;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

    size = fd >= 0 ? read(fd, stat, sizeof(stat) - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    stat[size > 0 ? size : 0] = '\0';
    field = strrchr(stat, ')');
    for (int i = 2; field != NULL && i < ARGUMENTS_FIELD; i++) {
        field = strchr(field + 1, ' ');
    }
    if (field == NULL || sscanf(field, "%lu %lu", &begin, &end) != 2 || begin == 0 ||
        end <= begin) {
        return NULL;
    }
    *size_out = end - begin;
    return (char *)begin; /* NOLINT(performance-no-int-to-ptr): the kernel gives a number */
}

/* Add a string with its NUL to the text, or the part for which there is room. */
static void add(char *text, size_t size, size_t *length, const char *string)
{
    size_t left = size - *length;
    size_t count = strlen(string) + 1;

    count = count < left ? count : left;
    memcpy(text + *length, string, count);
    *length += count;
}

void ds_accel__title_set(const char *name, const char *title, uint32_t argument_count,
                         const char *const *arguments)
{
    size_t size = 0;
    size_t length = 0;
    char *line = find_line(&size);
    char *text = line != NULL ? calloc(1, size) : NULL;

    prctl(PR_SET_NAME, name);
    if (text == NULL) {
        return;
    }
    add(text, size, &length, title);
    for (uint32_t i = 0; i < argument_count; i++) {
        add(text, size, &length, arguments[i]);
    }
    text[size - 1] = '\0'; /* without it, the kernel would show the environment, too */
    memcpy(line, text, size);
    free(text);
}
