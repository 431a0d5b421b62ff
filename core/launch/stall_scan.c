/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the CPU time of all processes of a job. A rank is often more than one process:
 *
 *      sh -> python3 train.py          a script with a pipeline: the shell only waits
 *         -> tee log
 *      python3 -> python3 worker       a program that polls the process that computes
 *      python3 -> (ended processes)    one that starts many short ones
 *
 * A process whose parent has ended is a child of this process, which is a subreaper, and belongs to
 * no rank that is known. One pass over /proc is enough for all ranks.
 */
#include "launch/stall_scan.h"
#include "base/clock.h"
#include "base/descendants.h"
#include "base/text.h"
#include "launch/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

static int compare_pids(const void *left, const void *right)
{
    pid_t a = ((const struct ds_accel__scanned *)left)->pid;
    pid_t b = ((const struct ds_accel__scanned *)right)->pid;

    return (a > b) - (a < b);
}

static void add_process(void *user_data, pid_t pid, pid_t branch)
{
    struct ds_accel__scan *scan = user_data;
    struct ds_accel__stat stat;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (!ds_accel__stat_read(path, &stat)) {
        return; /* it has ended */
    }
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity > 0 ? 2 * scan->capacity : 64;
        struct ds_accel__scanned *items = realloc(scan->items, capacity * sizeof(*items));

        if (items == NULL) {
            scan->failed = true;
            return;
        }
        scan->items = items;
        scan->capacity = capacity;
    }
    scan->items[scan->count++] = (struct ds_accel__scanned){.pid = pid,
                                                            .branch = branch,
                                                            .rank = DS_ACCEL__SCANNED_NO_RANK,
                                                            .start_ticks = stat.start_ticks,
                                                            .cpu_ms = stat.cpu_ms,
                                                            .children_ms = stat.children_ms,
                                                            .state = stat.state};
}

/* Each rank's position to its own process, then to the processes that descend from it. */
static void assign_ranks(struct ds_accel__scan *scan, const struct ds_accel__stall_rank *ranks,
                         uint32_t rank_count)
{
    struct ds_accel__scanned key, *found;

    for (uint32_t i = 0; i < rank_count && scan->count > 0; i++) {
        key.pid = ranks[i].pid;
        found = ranks[i].is_running
                    ? bsearch(&key, scan->items, scan->count, sizeof(key), compare_pids)
                    : NULL;
        if (found != NULL && found->branch == found->pid) {
            found->rank = i;
        }
    }
    for (size_t i = 0; i < scan->count; i++) {
        key.pid = scan->items[i].branch;
        found = bsearch(&key, scan->items, scan->count, sizeof(key), compare_pids);
        if (found != NULL) {
            scan->items[i].rank = found->rank;
        }
    }
}

int32_t ds_accel__scan_read(struct ds_accel__scan *scan, const struct ds_accel__stall_rank *ranks,
                            uint32_t rank_count)
{
    bool is_complete;

    scan->count = 0;
    scan->failed = false;
    scan->time_ms = ds_accel__now_ns() / NS_PER_MS;
    is_complete = ds_accel__descendants_visit(getpid(), add_process, scan);
    if (scan->failed) {
        return ds_accel__no_memory();
    }
    if (!is_complete) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "the processes in /proc cannot be listed");
    }
    assign_ranks(scan, ranks, rank_count);
    return DS_ACCEL_OK;
}

void ds_accel__scan_clear(struct ds_accel__scan *scan)
{
    free(scan->items);
    *scan = (struct ds_accel__scan){0};
}

const struct ds_accel__scanned *ds_accel__scan_find(const struct ds_accel__scan *scan,
                                                    const struct ds_accel__scanned *process)
{
    const struct ds_accel__scanned *found = NULL;

    if (scan->count > 0) {
        found = bsearch(process, scan->items, scan->count, sizeof(*found), compare_pids);
    }
    return found != NULL && found->start_ticks == process->start_ticks ? found : NULL;
}

uint32_t ds_accel__scan_stopped_rank(const struct ds_accel__scan *scan)
{
    uint32_t first = DS_ACCEL__SCANNED_NO_RANK;

    for (size_t i = 0; i < scan->count; i++) {
        const struct ds_accel__scanned *process = &scan->items[i];

        if (process->pid == process->branch && process->rank < first &&
            (process->state == 'T' || process->state == 't')) {
            first = process->rank;
        }
    }
    return first;
}
