/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by tests of the runtime: sizes, and a stream. */
#ifndef DS_ACCEL_TESTS_RUNTIME_RUNTIME_H
#define DS_ACCEL_TESTS_RUNTIME_RUNTIME_H

#include "fixture.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

static inline ds_accel_stream_t *make_stream(ds_accel_device_t *device)
{
    ds_accel_stream_t *stream = NULL;

    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
    return stream;
}

#endif
