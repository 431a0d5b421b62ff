/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Clocks: clock.c. */
#ifndef DS_ACCEL_BASE_CLOCK_H
#define DS_ACCEL_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic time in nanoseconds, for durations and deadlines. */
uint64_t ds_accel__now_ns(void);
/* Milliseconds since boot, including suspended time. All processes read the same clock. */
uint64_t ds_accel__boot_ms(void);
/* Microseconds since 1970, for displayed times and for comparison with other programs' times. */
uint64_t ds_accel__wall_us(void);

#endif
