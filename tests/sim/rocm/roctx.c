/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated libroctx64.so.4, by the prototypes of roctx.h. */
#include "engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

SIM_EXPORT int roctxRangePushA(const char *message)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_push(message);
}

SIM_EXPORT int roctxRangePop(void)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_pop();
}
