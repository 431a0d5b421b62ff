/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A device whose memory the host cannot reach: the mock of the name "alpha", without host access
 * and host tasks. Copies and fills are done as late as allowed, in stream order, when a caller
 * waits: a write to the source of a copy before that changes the copied data.
 */
#ifndef DS_ACCEL_TESTS_FAR_H
#define DS_ACCEL_TESTS_FAR_H

#include "fixture.h"

extern size_t far_queued_count; /* work that no caller has waited for */
extern size_t far_copy_count;   /* requested copies */
extern size_t far_fail_copy_at; /* the number of the copy, from 1, that fails; 0: none */

/* A context with this device and its index 0, both the caller's. */
ds_accel_t *far_start(ds_accel_device_t **device_out);

/* The same without events and pinned memory. */
ds_accel_t *far_start_bare(ds_accel_device_t **device_out);

/* The first under the name "opencl", where memory is an object: its handle is its start address
   with these bits flipped. */
#define FAR_OBJECT_BITS 0x5550u
extern size_t far_wrapped_count; /* objects that were wrapped and not freed */
ds_accel_t *far_start_opencl(ds_accel_device_t **device_out);

#endif
