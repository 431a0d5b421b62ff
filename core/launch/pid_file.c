/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The file that --save_pid writes, by which scripts find the launcher: /tmp/PID.deepspeed, as in
 * DeepSpeed. A file of that name is a leftover of an earlier process with this ID, since this
 * process is alive; it is replaced if it belongs to this user. Everyone may write to /tmp, so the
 * file is only ever created, and no link is followed.
 */
#include "launch/pid_file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 64

static void make_path(int32_t pid, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "/tmp/%d.deepspeed", (int)pid);
}

int32_t ds_accel__pid_file_make(void)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int32_t pid = (int32_t)getpid();
    char path[PATH_SIZE];
    char text[16];
    int length = snprintf(text, sizeof(text), "%d", (int)pid);
    bool is_written;
    int fd;

    make_path(pid, path);
    fd = open(path, flags, 0644);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0) {
        fd = open(path, flags, 0644);
    }
    if (fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "--save_pid: %s: %s", path, strerror(errno));
    }
    is_written = write(fd, text, (size_t)length) == length;
    if (close(fd) != 0 || !is_written) {
        unlink(path);
        return ds_accel__error(DS_ACCEL_ERR_IO, "--save_pid: %s cannot be written", path);
    }
    return DS_ACCEL_OK;
}

void ds_accel__pid_file_remove(int32_t pid)
{
    char path[PATH_SIZE];

    make_path(pid, path);
    unlink(path);
}
