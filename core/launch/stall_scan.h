/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* All processes of a job at one time: stall_scan.c. */
#ifndef DS_ACCEL_LAUNCH_STALL_SCAN_H
#define DS_ACCEL_LAUNCH_STALL_SCAN_H

#include "launch/stall.h"

#include <stddef.h>

struct ds_accel__scanned {
    pid_t pid;
    pid_t branch;         /* the child of this process from which it descends, or which it is */
    uint32_t rank;        /* position of the rank whose process branch is; NO_RANK: none */
    uint64_t start_ticks; /* with the pid, it denotes one process */
    uint64_t cpu_ms;
    uint64_t children_ms; /* of children that have ended and were reaped */
    char state;
};
#define DS_ACCEL__SCANNED_NO_RANK UINT32_MAX

struct ds_accel__scan {
    struct ds_accel__scanned *items; /* by pid */
    size_t count, capacity;
    uint64_t time_ms;
    bool failed; /* memory was exhausted */
};

/* Read the descendants of this process; {0} at first, or an earlier scan. ERR_NO_MEMORY; ERR_LIMIT
 * there are too many processes. */
int32_t ds_accel__scan_read(struct ds_accel__scan *scan, const struct ds_accel__stall_rank *ranks,
                            uint32_t rank_count);
void ds_accel__scan_clear(struct ds_accel__scan *scan);
/* The same process in an earlier scan; NULL: it was not there. */
const struct ds_accel__scanned *ds_accel__scan_find(const struct ds_accel__scan *scan,
                                                    const struct ds_accel__scanned *process);
/* The position of the first rank whose own process is stopped, by a signal or by a debugger;
 * NO_RANK: there is none. */
uint32_t ds_accel__scan_stopped_rank(const struct ds_accel__scan *scan);

#endif
