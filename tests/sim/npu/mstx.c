/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated mstx. mstx lets a range begin on one thread and end on another, identified by its
 * number; this simulator accepts ranges only in order on one thread.
 */
#include "engine.h"

#include <stdatomic.h>
#include <string.h>

/* No header declares these exports: programs that open the library declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef uint64_t mstxRangeId;

#define MAX_DEPTH 1024

static atomic_ullong last;
static _Thread_local mstxRangeId open_ranges[MAX_DEPTH];
static _Thread_local uint32_t depth;

SIM_EXPORT mstxRangeId mstxRangeStartA(const char *message, void *stream)
{
    mstxRangeId range = ++last;

    sim_enter("mstxRangeStartA");
    if (stream != NULL) {
        sim_misuse("mstxRangeStartA: \"%s\" is marked in a stream", message);
    }
    if (depth == MAX_DEPTH) {
        return 0;
    }
    open_ranges[depth++] = range;
    sim_range_push(message);
    return range;
}

SIM_EXPORT void mstxRangeEnd(mstxRangeId id)
{
    sim_enter("mstxRangeEnd");
    if (depth == 0 || open_ranges[depth - 1] != id) {
        sim_misuse("mstxRangeEnd(%llu): not this thread's innermost range", (unsigned long long)id);
    }
    depth--;
    sim_range_pop();
}
