/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The failure of a build, as processes that waited for it report it. */
#include "opbuild.h"
#include "ops/resolution.h"

static bool is_misreported;

static int32_t take_failure(void)
{
    struct ds_accel__resolved resolved = {.origin = DS_ACCEL__ORIGIN_NONE};
    int32_t status = ds_accel__failure_take(
        &resolved, "{\"reason\": \"a command\", \"command\": \"cc\", \"output\": \"text\"}");

    is_misreported = is_misreported || (status < 0 ? status != DS_ACCEL_ERR_NO_MEMORY
                                                   : strcmp(resolved.reason, "a command") != 0 ||
                                                         strcmp(resolved.command, "cc") != 0 ||
                                                         strcmp(resolved.output, "text") != 0);
    ds_accel__resolved_clear(&resolved);
    return status;
}

Test(opbuild_failure, without_memory_is_no_other_failure)
{
    fail_each(take_failure);
    cr_assert(!is_misreported);
}

Test(opbuild_failure, a_message_that_was_cut_off_is_a_failure)
{
    struct ds_accel__resolved resolved = {.origin = DS_ACCEL__ORIGIN_NONE};

    MUST(ds_accel__failure_take(&resolved, "{\"reason\": \"a com"));
    cr_assert_eq(resolved.origin, DS_ACCEL__ORIGIN_FAILED);
    cr_assert_str_eq(resolved.reason, "another process could not build it");
    ds_accel__resolved_clear(&resolved);
}
