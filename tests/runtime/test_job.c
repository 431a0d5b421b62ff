/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The environment of a job: visible devices, and variables that a backend needs. */
#include "facts.h"

/* ---- environment ---------------------------------------------------------------------------- */

Test(core_facts, write_visible_devices_by_the_plugin)
{
    static const uint32_t both[] = {1, 0};
    static const uint32_t twice[] = {1, 1};
    static const uint32_t outside[] = {2};
    ds_accel_t *context = start("mock");
    uint32_t needed = 0;
    char value[16] = "kept";

    EXPECT_STATUS(ds_accel_visible_devices_envs(context, 0, value, sizeof(value)),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, NULL, 0, &needed),
                  DS_ACCEL_ERR_LIMIT);
    cr_expect_eq(needed, 4);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 3, &needed),
                  DS_ACCEL_ERR_LIMIT);
    cr_expect_eq(needed, 4);
    cr_expect_str_eq(value, "kept");
    EXPECT_STATUS(ds_accel_visible_devices_value(context, "MOCK_VISIBLE_DEVICES", both, 2, value,
                                                 needed, NULL),
                  DS_ACCEL_OK);
    cr_expect_str_eq(value, "1,0");
    EXPECT_STATUS(
        ds_accel_visible_devices_value(context, NULL, NULL, 0, value, sizeof(value), &needed),
        DS_ACCEL_OK);
    cr_expect_str_eq(value, "");
    EXPECT_STATUS(ds_accel_visible_devices_value(context, "PATH", both, 2, value, 16, NULL),
                  DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, twice, 2, value, 16, NULL),
                   DS_ACCEL_ERR_INVALID, "twice");
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, outside, 1, value, 16, NULL),
                   DS_ACCEL_ERR_INVALID, "mock has 2");
    cr_expect_null(getenv("MOCK_VISIBLE_DEVICES"));
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 1), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("MOCK_VISIBLE_DEVICES"), "1");
    ds_accel_destroy(context);
}

/* The first variable is for DeepSpeed's launcher: the vendor's runtime reads only the second. */
Test(core_facts, write_the_visible_devices_that_have_an_effect)
{
    const uint32_t both[] = {1, 0};
    char value[32] = "";
    ds_accel_t *context;

    test_write("share/ds-accel.json",
               "{\"backends\": {\"mock\": {\"visible_devices_envs\": [\"OTHER_DEVICES\", "
               "\"MOCK_VISIBLE_DEVICES\"]}}}");
    context = start("mock");
    EXPECT_STATUS(ds_accel_visible_devices_envs(context, 0, value, sizeof(value)), DS_ACCEL_OK);
    cr_expect_str_eq(value, "OTHER_DEVICES");
    setenv("OTHER_DEVICES", "", 1); /* the runtime does not read this variable */
    EXPECT_STATUS(
        ds_accel_visible_devices_value(context, "OTHER_DEVICES", both, 2, value, 32, NULL),
        DS_ACCEL_OK);
    cr_expect_str_eq(value, "1,0");
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 2), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("MOCK_VISIBLE_DEVICES"), "1,0");
    cr_expect_str_eq(getenv("OTHER_DEVICES"), "");
    ds_accel_destroy(context);
}

Test(core_facts, write_visible_devices_without_the_plugin)
{
    static const uint32_t both[] = {2, 0};
    ds_accel_t *context;
    char value[32] = "";

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"tiny\": {\"visible_devices_envs\": [\"TINY_DEVICES\"]}}}");
    context = start_tiny();
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 32, NULL),
                  DS_ACCEL_OK);
    cr_expect_str_eq(value, "2,0");
    /* The variable restricts this process already: its children's list is an excerpt of the current
       value. */
    setenv("TINY_DEVICES", "GPU-a, GPU-b,5", 1);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 32, NULL),
                  DS_ACCEL_OK);
    cr_expect(strcmp(value, "5,GPU-a") == 0, "%s", value);
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 2), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("TINY_DEVICES"), "5,GPU-a");
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, both, 1, value, 32, NULL),
                   DS_ACCEL_ERR_STATE, "device index 2:");
    ds_accel_destroy(context);
}

Test(core_facts, apply_work_arounds_when_asked)
{
    ds_accel_t *context;
    uint32_t applied = 9;

    test_write("share/ds-accel.json",
               "{\"backends\": {\"hpu\": {\"env\": ["
               "{\"name\": \"TEST_IF_UNSET\", \"value\": \"new\", \"rule\": \"if-unset\"},"
               "{\"name\": \"TEST_KEPT\", \"value\": \"new\", \"rule\": \"if-unset\"},"
               "{\"name\": \"TEST_ALWAYS\", \"value\": \"new\", \"rule\": \"always\"},"
               "{\"name\": \"TEST_UNSET\", \"rule\": \"unset\"}]}}}");
    setenv("TEST_KEPT", "old", 1);
    setenv("TEST_ALWAYS", "old", 1);
    setenv("TEST_UNSET", "old", 1);
    context = test_create();
    cr_expect_null(getenv("TEST_IF_UNSET"));
    EXPECT_STATUS(ds_accel_apply_env(context, "hpu", &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 3);
    cr_expect_str_eq(getenv("TEST_IF_UNSET"), "new");
    cr_expect_str_eq(getenv("TEST_KEPT"), "old");
    cr_expect_str_eq(getenv("TEST_ALWAYS"), "new");
    cr_expect_null(getenv("TEST_UNSET"));
    EXPECT_STATUS(ds_accel_apply_env(context, "hpu", &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 1, "what is set or gone is not set or removed again");
    EXPECT_STATUS(ds_accel_apply_env(context, "nobody", &applied), DS_ACCEL_ERR_NOT_FOUND);
    ds_accel_destroy(context);
    context = start("mock");
    EXPECT_STATUS(ds_accel_apply_env(context, NULL, &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 1);
    cr_expect_str_eq(getenv("MOCK_RUNTIME"), "1");
    ds_accel_destroy(context);
}
