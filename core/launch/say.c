/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Messages of a running job to its user. The log's sink belongs to the caller, and writes to
 * stderr. A reader of stderr that is slow must not stop the supervisor, so its stderr is a pipe to
 * itself:
 *
 *      message -> log -> stderr, a pipe -> stream -> sink of the original stderr
 */
#include "base/clock.h"
#include "base/text.h"
#include "launch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDED_LIMIT 1024 /* bytes that a sink of the log may add to a message */

int32_t ds_accel__job_divert_stderr(struct ds_accel__job *job)
{
    int ends[2];
    int32_t status;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "pipe: %s", strerror(errno));
    }
    status = ds_accel__stream_open(&job->messages, ends[0], job->shared[DS_ACCEL__ERR]);
    if (status >= 0 && dup2(ends[1], STDERR_FILENO) < 0) {
        status = ds_accel__error(DS_ACCEL_ERR_LIMIT, "dup2: %s", strerror(errno));
        ds_accel__stream_close(&job->messages);
    } else if (status < 0) {
        close(ends[0]);
    }
    close(ends[1]);
    return status;
}

/* Make the pipe large enough for a message, and for what the log's sink adds to it. If the kernel
 * does not permit that, truncate the message. */
static void make_room(const struct ds_accel__job *job, char *message)
{
    size_t length = strlen(message);
    int size = job->messages.fd >= 0 ? fcntl(job->messages.fd, F_GETPIPE_SZ) : -1;

    if (size < 0 || length < (size_t)size - ADDED_LIMIT) {
        return;
    }
    if (length < INT_MAX - ADDED_LIMIT &&
        fcntl(job->messages.fd, F_SETPIPE_SZ, (int)(length + ADDED_LIMIT)) >= 0) {
        return;
    }
    ds_accel__truncate(message, (size_t)size - ADDED_LIMIT, length);
}

static bool is_readable(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    return poll(&ready, 1, 0) == 1;
}

void ds_accel__job_say(struct ds_accel__job *job, uint32_t level, const char *format, ...)
{
    char buffer[1024]; /* a longer message is allocated */
    char *message;
    va_list arguments;

    va_start(arguments, format);
    message = ds_accel__format_line(buffer, sizeof(buffer), format, arguments);
    va_end(arguments);
    make_room(job, message);
    if (job->shared[DS_ACCEL__ERR] != NULL) { /* NULL while the job is prepared */
        ds_accel__sink_end_line(job->shared[DS_ACCEL__ERR]);
    }
    ds_accel__log(job->log, "run", level, "%s", message);
    while (job->messages.fd >= 0 && is_readable(job->messages.fd)) { /* so that the pipe is empty */
        ds_accel__stream_read(&job->messages, ds_accel__now_ns());
    }
    if (message != buffer) {
        free(message);
    }
}
