/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The end of a job: its exit code, and why it failed. */
#include "base/clock.h"
#include "base/text.h"
#include "launch/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_LINES 50u

/* The exit code of one rank, as a shell shows it. */
static int exit_code_of(const struct ds_accel__job_rank *rank)
{
    if (rank->state == DS_ACCEL__RANK_NOT_STARTED) {
        return rank->spawned.error == ENOENT ? 127 : 126;
    }
    return rank->ended.si_code == CLD_EXITED ? rank->ended.si_status : 128 + rank->ended.si_status;
}

int ds_accel__job_exit_code(const struct ds_accel__job *job)
{
    const struct ds_accel__job_rank *first = NULL;

    if (job->culprit != DS_ACCEL__NO_RANK) {
        return exit_code_of(&job->ranks[job->culprit]);
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct ds_accel__job_rank *rank = &job->ranks[i];

        if (rank->state == DS_ACCEL__RANK_ENDED && exit_code_of(rank) != 0 &&
            (first == NULL || rank->end_ns < first->end_ns)) {
            first = rank;
        }
    }
    return first != NULL ? exit_code_of(first) : 0;
}

void ds_accel__job_report(struct ds_accel__job *job)
{
    if (job->culprit != DS_ACCEL__NO_RANK) {
        const struct ds_accel__job_rank *rank = &job->ranks[job->culprit];

        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "rank %u: exit code %d", rank->rank->rank,
                          exit_code_of(rank));
    }
}
