/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of random numbers: memory of a device, and its contents. */
#ifndef DS_ACCEL_TESTS_RUNTIME_RNG_H
#define DS_ACCEL_TESTS_RUNTIME_RNG_H

#include "fixture.h"

static inline void *allocate(ds_accel_device_t *device, uint64_t size_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc(device, NULL, size_bytes, &pointer));
    return pointer;
}

/* Wait for all work of the device, then copy from it to the host. */
static inline void read_back(ds_accel_device_t *device, void *to, const void *from,
                             uint64_t size_bytes)
{
    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_mem_copy(device, to, from, size_bytes, DS_ACCEL_COPY_DEVICE_TO_HOST));
}

#endif
