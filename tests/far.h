/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A device whose memory the host cannot reach: the mock of the name "alpha", without host access
 * and host tasks. Copies and fills are done as late as they may be, in their order, when somebody
 * waits: whoever writes to the source of a copy too early changes what arrives.
 */
#ifndef DS_ACCEL_TEST_FAR_H
#define DS_ACCEL_TEST_FAR_H

#include "fixture.h"

extern size_t far_queued_count; /* what nobody has waited for */
extern size_t far_copy_count;   /* copies asked for */
extern size_t far_fail_copy_at; /* this one of them, from 1, fails; 0: none does */

/* A context with this device and its index 0, both the caller's. */
ds_accel_t *far_start(ds_accel_device_t **device_out);

/* The same without events and pinned memory. */
ds_accel_t *far_start_bare(ds_accel_device_t **device_out);

/* The first under the name "opencl", where memory is an object: its number is the address of its
 * beginning with these bits turned. */
#define FAR_OBJECT_BITS 0x5550u
extern size_t far_wrapped_count; /* objects that were wrapped and not freed */
ds_accel_t *far_start_opencl(ds_accel_device_t **device_out);

#endif
