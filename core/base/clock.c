/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "base/clock.h"

#include <assert.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock, uint64_t units_per_second)
{
    struct timespec now;

    assert(units_per_second > 0 && UINT64_C(1000000000) % units_per_second == 0);
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * units_per_second +
           (uint64_t)now.tv_nsec / (UINT64_C(1000000000) / units_per_second);
}

uint64_t ds_accel__now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC, UINT64_C(1000000000));
}

uint64_t ds_accel__boot_ms(void)
{
    return read_clock(CLOCK_BOOTTIME, 1000);
}

uint64_t ds_accel__wall_us(void)
{
    return read_clock(CLOCK_REALTIME, 1000000);
}
