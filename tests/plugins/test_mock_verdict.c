/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: the verdict selected by its options. */
#include "mock.h"

/* ---- availability --------------------------------------------------------------------------- */

/* A reason, and part of the error that init() then returns. */
static const struct {
    const char *name;
    const char *init_text;
} reasons[] = {
    {"no_device", "MOCK_ERROR_NO_DEVICE (106)"},
    {"no_driver", "MOCK_ERROR_NO_DEVICE (106)"},
    {"no_permission", "MOCK_ERROR_PERMISSION (107)"},
    {"library_missing", "MOCK_ERROR_NOT_FOUND (105)"},
    {"symbol_missing", "MOCK_ERROR_NOT_FOUND (105)"},
    {"driver_mismatch", "MOCK_ERROR_DRIVER (104)"},
    {"device_busy", "MOCK_ERROR_BUSY (108)"},
    {"hidden", "MOCK_ERROR_NO_DEVICE (106)"},
    {"device_too_old", "MOCK_ERROR_NO_DEVICE (106)"},
    {"device_asleep", "MOCK_ERROR_NO_DEVICE (106)"},
    {"driver_failed", "MOCK_ERROR_DRIVER (104)"},
    {"bad_option", "MOCK_ERROR_INVALID (101)"},
};

static void expect_verdict(uint32_t state, const char *reason, const char *detail)
{
    struct ds_accel_candidate candidate = check_mock();

    cr_expect_eq(candidate.state, state, "%s is %s", reason, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason);
    cr_expect_str_eq(candidate.detail, detail);
    cr_expect_str_eq(candidate.stage, "probe");
    cr_expect_eq(candidate.device_count, state == DS_ACCEL_STATE_AVAILABLE ? 2 : 0);
    ds_accel_destroy(context);
}

Test(plugin_mock, every_reason_reaches_the_candidate)
{
    option("detail", "/dev/mock0");
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        option("reason", reasons[i].name);
        option("available", "false");
        expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, reasons[i].name, "/dev/mock0");
        option("available", "error");
        expect_verdict(DS_ACCEL_STATE_ERROR, reasons[i].name, "/dev/mock0");
        option("available", "true");
        expect_verdict(DS_ACCEL_STATE_AVAILABLE, "demand_only", "/dev/mock0");
    }
}

Test(plugin_mock, a_state_without_a_reason_has_the_usual_one)
{
    const char *detail = "options available, reason or device_count say so";

    option("available", "false");
    expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, "no_device", detail);
    option("available", "error");
    expect_verdict(DS_ACCEL_STATE_ERROR, "driver_failed", detail);
    option("available", NULL);
    option("device_count", "0");
    expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, "no_device", detail);
}

Test(plugin_mock, no_device_cannot_be_available)
{
    option("device_count", "0");
    option("available", "true");
    expect_bad_option("available", "true", "needs a device_count above 0");
}

Test(plugin_mock, init_fails_as_a_runtime_would_in_that_situation)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        option("available", "true");
        option("reason", reasons[i].name);
        check_mock();
        option("available", "false");
        cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
        cr_expect_str_eq(test_candidate(context, "mock").reason, "start_failed");
        EXPECT_HAS(test_candidate(context, "mock").detail, reasons[i].init_text);
        ds_accel_destroy(context);
    }
}

/* Options of the test's own host, with which tests read the parts of the verdict that no candidate
   shows. */
static const char *const *own_options; /* key, value, ..., NULL */

static int32_t own_config_get(const struct ds_accel_host *host, const char *key, char *value,
                              uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)needed_out;
    for (size_t i = 0; own_options[i] != NULL; i += 2) {
        if (strcmp(own_options[i], key) == 0) {
            snprintf(value, value_size, "%s", own_options[i + 1]);
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_ERR_NOT_FOUND;
}

static struct ds_accel_verdict own_verdict(const char *const *options)
{
    const struct ds_accel_host host = {.struct_size = sizeof(host),
                                       .abi_major = DS_ACCEL_ABI_MAJOR,
                                       .features = DS_ACCEL_FEATURE_CONFIG,
                                       .config_get = own_config_get};
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    own_options = options;
    EXPECT_OK(table->probe(&host, &verdict, &error));
    return verdict;
}

Test(plugin_mock, the_verdict_has_variant_and_vendor_code)
{
    static const char *const failed[] = {"available", "error", "variant", "way in", NULL};
    static const char *const missing[] = {"available", "false", NULL};
    struct ds_accel_verdict verdict;

    open_mock();
    verdict = own_verdict(failed);
    cr_expect_eq(verdict.state, DS_ACCEL_PROBE_ERROR);
    cr_expect_eq(verdict.reason, DS_ACCEL_REASON_DRIVER_FAILED);
    cr_expect_eq(verdict.vendor_code, 999);
    cr_expect_str_eq(verdict.variant, "way in");
    verdict = own_verdict(missing);
    cr_expect_eq(verdict.state, DS_ACCEL_PROBE_UNAVAILABLE);
    cr_expect_eq(verdict.vendor_code, 0);
    cr_expect_str_eq(verdict.variant, "");
    close_mock();
}
