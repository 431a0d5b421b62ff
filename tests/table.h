/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks for calls of a plugin table; each call gets &error, a struct ds_accel_error of the
   test. */
#ifndef DS_ACCEL_TESTS_TABLE_H
#define DS_ACCEL_TESTS_TABLE_H

#include "fixture.h"

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)

/* Expect that the call fails with this status and an error text that contains part. */
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        cr_expect_eq(error.code, status); \
        EXPECT_HAS(error.message, part); \
    } while (0)

#endif
