/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ds_accel_conformance() as a program calls it; tests/tools/test_conformance.sh tests its
   checks. */
#include "fixture.h"

#define MOCK TEST_BUILD "/lib/ds-accel/ds_accel_mock.so"
#define MUTANT TEST_BUILD "/tests/fixtures/mutants/ds_accel_mock.so"

static char *text;

static int32_t check(const char *name_or_path, const char *only)
{
    text = NULL;
    return ds_accel_conformance(NULL, name_or_path, 0, only, DS_ACCEL_FORMAT_JSON, &text);
}

Test(core_conformance, what_is_asked_for_wrongly_is_refused)
{
    cr_expect_eq(ds_accel_conformance(NULL, MOCK, 0, NULL, 0, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(check(MOCK, "DSA-P1"), DS_ACCEL_ERR_INVALID);
    cr_expect_null(text);
    cr_expect(strstr(ds_accel_last_error(), "DSA-P1") != NULL);
    cr_expect_eq(check(NULL, ""), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(check("/nonexistent/ds_accel_x.so", NULL), DS_ACCEL_ERR_IO);
    cr_expect_eq(check("/nonexistent/x.so", NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(check("nosuch", NULL), DS_ACCEL_ERR_NOT_FOUND);
    cr_expect_null(text);
}

Test(core_conformance, without_a_plugin_the_checks_are_listed)
{
    cr_assert_eq(check(NULL, "stream"), DS_ACCEL_OK);
    cr_expect(strstr(text, "\"result\": \"listed\"") != NULL);
    cr_expect_null(strstr(text, "\"group\": \"graph\""));
    ds_accel_free_text(text);
}

Test(core_conformance, a_plugin_passes_or_breaks_a_rule)
{
    cr_expect_eq(check(MOCK, "stream"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_free_text(text);
    setenv("MUTANT", "any_priority", 1);
    cr_expect_eq(check(MUTANT, "stream"), DS_ACCEL_ERR_ABI);
    cr_assert_not_null(text);
    cr_expect(strstr(text, "\"failed\": 1,") != NULL);
    ds_accel_free_text(text);
}
