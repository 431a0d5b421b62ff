/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated BRTX. The file name of the vendor's library is not known. */
#include "engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

SIM_EXPORT int brtxRangePushA(const char *message)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_push(message);
}

SIM_EXPORT int brtxRangePop(void)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_pop();
}
