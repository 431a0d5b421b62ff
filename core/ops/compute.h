/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The compute capability of a backend's devices: compute.c. */
#ifndef DS_ACCEL_OPS_COMPUTE_H
#define DS_ACCEL_OPS_COMPUTE_H

#include "ds_accel.h"

/*
 * Write the lowest major number of the compute capabilities of the backend's devices; 0: there are
 * none here, or they have no such number. The caller does not hold context->lock. ERR_NO_MEMORY.
 */
int32_t ds_accel__compute_major(ds_accel_t *context, const char *backend, uint32_t *major_out);

#endif
