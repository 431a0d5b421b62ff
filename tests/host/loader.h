/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of plugin files: fixtures with a defect, and the expected reason for a
   file. */
#ifndef DS_ACCEL_TESTS_HOST_LOADER_H
#define DS_ACCEL_TESTS_HOST_LOADER_H

#include "fixture.h"

static inline void add_broken(const char *defect)
{
    char from[512];
    char to[128];

    snprintf(from, sizeof(from), "%s/%s/ds_accel_%s.so", TEST_FIXTURES, defect, defect);
    snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", defect);
    test_copy(from, to);
}

/* Expect this reason for the plugin's file; "" for a valid file. */
static inline void expect_file(const char *name, const char *reason)
{
    ds_accel_t *context = test_create();
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, name), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, name);
    cr_expect_eq(candidate.state,
                 reason[0] != '\0' ? DS_ACCEL_STATE_REJECTED : DS_ACCEL_STATE_AVAILABLE, "%s: %s",
                 name, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason, "%s: %s: %s", name, candidate.reason,
                     candidate.detail);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

#endif
