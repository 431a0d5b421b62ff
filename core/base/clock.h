/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Clocks: clock.c. */
#ifndef DS_ACCEL_BASE_CLOCK_H
#define DS_ACCEL_BASE_CLOCK_H

#include <stdint.h>

/* For how long something took, and until when to wait. */
uint64_t ds_accel__now_ns(void);
/* Since the machine started, sleep included: the same in every process. */
uint64_t ds_accel__boot_ms(void);
/* For people, and beside other programs' times; since 1970. */
uint64_t ds_accel__wall_us(void);

#endif
