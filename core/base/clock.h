/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Clocks: clock.c. */
#ifndef DS_ACCEL_BASE_CLOCK_H
#define DS_ACCEL_BASE_CLOCK_H

#include <stdint.h>

/* For durations and deadlines. */
uint64_t ds_accel__now_ns(void);
/* Milliseconds since boot, including suspended time: the same in every process. */
uint64_t ds_accel__boot_ms(void);
/* For displayed times and comparison with other programs' times: microseconds since 1970. */
uint64_t ds_accel__wall_us(void);

#endif
