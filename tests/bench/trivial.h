/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#ifndef DS_ACCEL_TESTS_BENCH_TRIVIAL_H
#define DS_ACCEL_TESTS_BENCH_TRIVIAL_H

#include "plugin-api.h"

/* A function in a shared library of its own, so that a call of it goes through the PLT. */
DS_ACCEL_EXPORT int32_t bench_trivial(const void *handle, struct ds_accel_error *error);

#endif
