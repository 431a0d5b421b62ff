/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated TCPX. The names of its file and of tcpxRangePop are not verified. */
#include "engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

SIM_EXPORT int tcpxRangePush(const char *message)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_push(message);
}

SIM_EXPORT int tcpxRangePop(void)
{
    return sim_enter(__func__) != 0 ? -1 : sim_range_pop();
}
