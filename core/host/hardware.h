/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The gate hardware: hardware.c. */
#ifndef DS_ACCEL_HOST_HARDWARE_H
#define DS_ACCEL_HOST_HARDWARE_H

#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

/*
 * Check the gate hardware for a candidate that was not probed yet. The gate fails, with the verdict
 * that there is no device, if the machine has none of the hardware that the note or the
 * configuration lists, and this process may search for it. The gate is skipped without a note that
 * this host can read, or if the backend's option "presence" is set and not "on". ERR_NO_MEMORY.
 */
int32_t ds_accel__hardware_check(struct ds_accel__candidate *candidate);
/*
 * True if the configuration lists all hardware that the note lists. The key of the candidate's
 * record then changes with the hardware.
 */
bool ds_accel__hardware_is_configured(const struct ds_accel__candidate *candidate);

#endif
