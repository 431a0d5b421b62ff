/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of detection: use of the shipped configuration. */
#ifndef DS_ACCEL_TESTS_HOST_DETECT_H
#define DS_ACCEL_TESTS_HOST_DETECT_H

#include "fixture.h"

static inline void use_shipped_defaults(void)
{
    test_copy(TEST_SOURCE "/conf/ds-accel.json", "share/ds-accel.json");
}

#endif
