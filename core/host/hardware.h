/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The gate hardware: hardware.c. */
#ifndef DS_ACCEL_HOST_HARDWARE_H
#define DS_ACCEL_HOST_HARDWARE_H

#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__candidate;

/*
 * The gate hardware, on a candidate that nobody has asked yet: it fails, as a verdict that there is
 * no device, if the machine shows nothing of what the note names. ERR_NO_MEMORY.
 */
int32_t ds_accel__hardware_check(struct ds_accel__candidate *candidate);
/* Does the configuration name all that its note does? The key of its record then tells changes. */
bool ds_accel__hardware_is_configured(const struct ds_accel__candidate *candidate);

#endif
