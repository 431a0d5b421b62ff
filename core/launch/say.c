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
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void ds_accel__job_say(struct ds_accel__job *job, uint32_t level, const char *format, ...)
{
    char message[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(message, sizeof(message));
    if (job->shared[DS_ACCEL__ERR] != NULL) { /* NULL while the job is prepared */
        ds_accel__sink_end_line(job->shared[DS_ACCEL__ERR]);
    }
    ds_accel__log(job->log, "run", level, "%s", message);
    if (job->messages.fd >= 0) { /* so that the pipe is never full */
        ds_accel__stream_read(&job->messages, ds_accel__now_ns());
    }
}
