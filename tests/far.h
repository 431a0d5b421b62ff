/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A device whose memory the host cannot access: the mock under the name "alpha", without host
 * access and host tasks. Copies and fills are executed as late as allowed: in stream order, when a
 * caller waits. A write to the source of a copy before that time changes the copied data.
 */
#ifndef DS_ACCEL_TESTS_FAR_H
#define DS_ACCEL_TESTS_FAR_H

#include "fixture.h"

extern size_t far_queued_count; /* operations that no caller has waited for */
extern size_t far_copy_count;   /* number of requested copies */
extern size_t far_fail_copy_at; /* number of the copy that fails, counted from 1; 0: none */

/* Create a context and open device 0 of this plugin; the caller frees both. */
ds_accel_t *far_start(ds_accel_device_t **device_out);

/* Same as far_start(), but the plugin lacks events and pinned memory. */
ds_accel_t *far_start_bare(ds_accel_device_t **device_out);

/* Same as far_start(), but under the name "opencl", where memory is an object: its handle is its
   start address with the bits FAR_OBJECT_BITS flipped. */
#define FAR_OBJECT_BITS 0x5550u
extern size_t far_wrapped_count; /* objects that were wrapped and not yet freed */
ds_accel_t *far_start_opencl(ds_accel_device_t **device_out);

#endif
