/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libnvtx3interop.so.1, simulated as with a profiler attached: ranges have depths. (Without one,
 * the real library answers -2 and does nothing.)
 */
#include "engine.h"

#include <stdatomic.h>

int nvtxRangePushA(const char *message);
int nvtxRangePop(void);
void nvtxMarkA(const char *message);
uint64_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(uint64_t id);

SIM_EXPORT int nvtxRangePushA(const char *message)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_push(message);
}

SIM_EXPORT int nvtxRangePop(void)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_pop();
}

SIM_EXPORT void nvtxMarkA(const char *message)
{
    (void)message;
    sim_enter(__func__);
}

SIM_EXPORT uint64_t nvtxRangeStartA(const char *message)
{
    static _Atomic uint64_t last;

    (void)message;
    return sim_enter(__func__) != 0 ? 0 : atomic_fetch_add(&last, 1) + 1;
}

SIM_EXPORT void nvtxRangeEnd(uint64_t id)
{
    (void)id;
    sim_enter(__func__);
}
