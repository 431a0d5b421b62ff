/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Messages of a running job to its user. */
#include "base/text.h"
#include "launch/job.h"

#include <stdarg.h>
#include <stdio.h>

void ds_accel__job_say(struct ds_accel__job *job, uint32_t level, const char *format, ...)
{
    char message[2048];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(message, sizeof(message));
    if (job->has_pipes) {
        ds_accel__sink_end_line(job->shared[DS_ACCEL__ERR]);
    }
    ds_accel__log(job->log, "run", level, "%s", message);
}
