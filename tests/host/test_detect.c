/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Detection: order, override, deference, allow and deny lists, fallback. */
#include "detect.h"

#include <ctype.h>

#define OPTION(name, key, value) setenv("DS_ACCEL_" name "_" key, value, 1)

static ds_accel_t *detect(int32_t wanted)
{
    ds_accel_t *context = test_create();
    int32_t status = ds_accel_detect(context);

    cr_assert_eq(status, wanted, "status %d: %s", status, ds_accel_last_error());
    return context;
}

static void expect_choice(const char *name, const char *method)
{
    ds_accel_t *context = detect(DS_ACCEL_OK);

    cr_expect_str_eq(ds_accel_name(context), name);
    cr_expect_str_eq(ds_accel_set_method(context), method);
    cr_expect_eq(test_candidate(context, name).state, DS_ACCEL_STATE_SELECTED);
    ds_accel_destroy(context);
}

static void expect_reason(ds_accel_t *context, const char *name, uint32_t state, const char *reason)
{
    struct ds_accel_candidate candidate = test_candidate(context, name);

    cr_expect_eq(candidate.state, state, "%s is %s", name, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason, "%s: %s", name, candidate.reason);
    if (reason[0] != '\0') {
        cr_expect_neq(candidate.remedy[0], '\0');
    }
}

/* ---- order ---------------------------------------------------------------------------------- */

Test(core_detect, takes_the_first_available_in_the_shipped_order)
{
    static const char *const order[] = {"xpu.external", "xpu", "npu",  "sdaa", "mps",
                                        "hpu",          "mlu", "supa", "cuda", "rocm"};

    use_shipped_defaults();
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        test_add_mock(order[i]);
    }
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        char path[128];

        expect_choice(order[i], "auto detect");
        snprintf(path, sizeof(path), "plugins/ds_accel_%s.so", order[i]);
        cr_assert_eq(remove(test_path(path)), 0);
    }
    expect_choice("cpu", "auto detect");
}

Test(core_detect, a_configured_order_wins_and_what_it_does_not_list_comes_before_cpu_by_name)
{
    use_shipped_defaults();
    test_add_mock("cuda");
    test_add_mock("rocm");
    test_add_mock("beta");
    test_add_mock("alpha");
    test_write("etc/ds-accel.json", "{\"detection_order\": [\"rocm\", \"cpu\"]}");
    expect_choice("rocm", "auto detect");
    OPTION("ROCM", "AVAILABLE", "false");
    expect_choice("alpha", "auto detect");
    OPTION("ALPHA", "AVAILABLE", "false");
    expect_choice("beta", "auto detect");
    OPTION("BETA", "AVAILABLE", "false");
    expect_choice("cuda", "auto detect");
    OPTION("CUDA", "AVAILABLE", "false");
    expect_choice("cpu", "auto detect");
}

Test(core_detect, cpu_listed_first_is_taken_first)
{
    use_shipped_defaults();
    test_add_mock("cuda");
    test_write("etc/ds-accel.json", "{\"detection_order\": [\"cpu\", \"cuda\"]}");
    expect_choice("cpu", "auto detect");
}

Test(core_detect, later_candidates_are_not_probed)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("npu");
    test_add_mock("cuda");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "npu");
    expect_reason(context, "cuda", DS_ACCEL_STATE_NOT_PROBED, "not_needed");
    expect_reason(context, "cpu", DS_ACCEL_STATE_NOT_PROBED, "not_needed");
    cr_expect_str_eq(test_candidate(context, "cuda").stage, "name");
    ds_accel_destroy(context);
}

/* ---- override and configuration -------------------------------------------------------------- */

Test(core_detect, option_beats_environment_beats_configuration_beats_detection)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    test_add_mock("rocm");
    test_add_mock("hpu");
    expect_choice("hpu", "auto detect");
    test_write("etc/ds-accel.json", "{\"accelerator\": \"rocm\"}");
    expect_choice("rocm", "config");
    setenv("DS_ACCELERATOR", "cuda", 1);
    expect_choice("cuda", "override");
    options.accelerator = "cpu";
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cpu");
    cr_expect_str_eq(ds_accel_set_method(context), "override");
    ds_accel_destroy(context);
}

Test(core_detect, a_forced_choice_that_cannot_be_used_fails_with_reason_and_remedy)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    OPTION("CUDA", "AVAILABLE", "false");
    OPTION("CUDA", "REASON", "no_permission");
    OPTION("CUDA", "DETAIL", "/dev/nvidia0 is not readable");
    setenv("DS_ACCELERATOR", "cuda", 1);
    context = detect(DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_not_null(strstr(ds_accel_last_error(), "no_permission"));
    cr_expect_not_null(strstr(ds_accel_last_error(), "/dev/nvidia0 is not readable"));
    cr_expect_not_null(
        strstr(ds_accel_last_error(), "Remedy: give the user read and write permission"));
    cr_expect_null(ds_accel_name(context));
    expect_reason(context, "cuda", DS_ACCEL_STATE_UNAVAILABLE, "no_permission");
    expect_reason(context, "cpu", DS_ACCEL_STATE_NOT_PROBED, "not_chosen");
    ds_accel_destroy(context);
}

Test(core_detect, an_unknown_name_lists_what_exists)
{
    static const char *const names[] = {"cudas", "CUDA", "cuda "};

    use_shipped_defaults();
    test_add_mock("cuda");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv("DS_ACCELERATOR", names[i], 1);
        ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
        cr_expect_not_null(strstr(ds_accel_last_error(), "plugins found: cuda, mock, cpu"), "%s",
                           ds_accel_last_error());
    }
    setenv("DS_ACCELERATOR", "cudas", 1);
    ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "did you mean \"cuda\"?"));
    setenv("DS_ACCELERATOR", "", 1);
    ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "set but empty"));
}

Test(core_detect, a_known_backend_without_a_plugin_says_so)
{
    use_shipped_defaults();
    setenv("DS_ACCELERATOR", "hpu", 1);
    ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "no_plugin"));
    cr_expect_not_null(strstr(ds_accel_last_error(), "ds_accel_hpu.so"));
}

/* ---- demand-only backends and deference ------------------------------------------------------ */

Test(core_detect, demand_only_plugins_are_chosen_only_by_name)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_copy(TEST_PLUGINS "/ds_accel_mock.so", "plugins/ds_accel_mock.so");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cpu");
    expect_reason(context, "mock", DS_ACCEL_STATE_NOT_PROBED, "demand_only");
    ds_accel_destroy(context);
    setenv("DS_ACCELERATOR", "mock", 1);
    expect_choice("mock", "override");
    unsetenv("DS_ACCELERATOR");
    test_write("etc/ds-accel.json", "{\"accelerator\": \"mock\"}");
    expect_choice("mock", "config");
}

Test(core_detect, a_plugin_can_ask_to_be_demand_only_and_the_configuration_can_say_otherwise)
{
    test_add_mock("alpha");
    test_copy(TEST_PLUGINS "/ds_accel_mock.so", "plugins/ds_accel_mock.so");
    test_write("etc/ds-accel.json", "{\"backends\": {\"alpha\": {\"demand_only\": true}}}");
    expect_choice("cpu", "auto detect");
    test_write("etc/ds-accel.json", "{\"backends\": {\"alpha\": {\"demand_only\": true},"
                                    " \"mock\": {\"demand_only\": false}}}");
    expect_choice("mock", "auto detect");
}

Test(core_detect, xpu_through_the_plain_driver_defers_to_a_present_cuda)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("xpu");
    test_add_mock("cuda");
    OPTION("XPU", "VARIANT", "driver");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cuda");
    expect_reason(context, "xpu", DS_ACCEL_STATE_AVAILABLE, "deferred");
    ds_accel_destroy(context);

    OPTION("CUDA", "AVAILABLE", "false");
    expect_choice("xpu", "auto detect");
    unsetenv("DS_ACCEL_CUDA_AVAILABLE");

    OPTION("XPU", "VARIANT", "extension");
    expect_choice("xpu", "auto detect");
    OPTION("XPU", "VARIANT", "driver");

    setenv("DS_ACCELERATOR", "xpu", 1);
    expect_choice("xpu", "override");
    unsetenv("DS_ACCELERATOR");

    test_add_mock("xpu.external");
    expect_choice("xpu.external", "auto detect");
}

Test(core_detect, who_stepped_back_for_one_that_cannot_start_is_asked_again)
{
    use_shipped_defaults();
    test_add_mock("xpu");
    test_add_mock("cuda");
    OPTION("XPU", "VARIANT", "driver");
    OPTION("CUDA", "FAIL", "init=driver");
    expect_choice("xpu", "auto detect");
}

Test(core_detect, one_can_step_back_for_cpu_too)
{
    use_shipped_defaults();
    test_add_mock("npu");
    OPTION("NPU", "VARIANT", "slow");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"npu\": {\"defers_to\": {\"slow\": [\"cpu\"]}}}}");
    expect_choice("cpu", "auto detect");
    setenv("DS_ACCELERATOR", "npu", 1);
    expect_choice("npu", "override");
}

Test(core_detect, nobody_steps_back_for_one_that_is_chosen_only_by_name)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("xpu");
    test_add_mock("cuda");
    OPTION("XPU", "VARIANT", "driver");
    test_write("etc/ds-accel.json", "{\"backends\": {\"cuda\": {\"demand_only\": true}}}");
    expect_choice("xpu", "auto detect");

    /* With a third backend, the deferring backend is not probed again before the third backend's
       turn. */
    test_add_mock("rocm");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "xpu");
    expect_reason(context, "rocm", DS_ACCEL_STATE_NOT_PROBED, "not_needed");
    expect_reason(context, "cuda", DS_ACCEL_STATE_NOT_PROBED, "demand_only");
    ds_accel_destroy(context);
}

Test(core_detect, nor_for_one_that_was_asked_by_name_before)
{
    ds_accel_t *context = NULL;
    struct ds_accel_options options = test_options();

    use_shipped_defaults();
    test_add_mock("xpu");
    test_add_mock("cuda");
    test_add_mock("rocm");
    OPTION("XPU", "VARIANT", "driver");
    test_write("etc/ds-accel.json", "{\"backends\": {\"cuda\": {\"demand_only\": true}}}");
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_check(context, "cuda"), DS_ACCEL_OK);
    cr_assert_eq(test_candidate(context, "cuda").state, DS_ACCEL_STATE_AVAILABLE);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "xpu");
    ds_accel_destroy(context);
}

Test(core_detect, what_the_operator_denied_is_no_reason_to_warn)
{
    use_shipped_defaults();
    test_add_mock("cuda");
    test_write("etc/ds-accel.json", "{\"deny\": [\"cuda\"]}");
    expect_choice("cpu", "auto detect");
    cr_expect_null(strstr(test_log, "falling back"), "%s", test_log);
}

Test(core_detect, texts_of_a_candidate_outlive_the_verdict)
{
    struct ds_accel_candidate before;
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    OPTION("CUDA", "AVAILABLE", "false");
    OPTION("CUDA", "DETAIL", "as it was");
    setenv("DS_ACCELERATOR", "cuda", 1);
    context = detect(DS_ACCEL_ERR_NOT_USABLE);
    before = test_candidate(context, "cuda");
    OPTION("CUDA", "AVAILABLE", "true");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_str_eq(before.detail, "as it was");
    ds_accel_destroy(context);
}

Test(core_detect, deference_is_data)
{
    use_shipped_defaults();
    test_add_mock("npu");
    test_add_mock("rocm");
    OPTION("NPU", "VARIANT", "old");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"npu\": {\"defers_to\": {\"old\": [\"cuda\", \"rocm\"]}}}}");
    expect_choice("rocm", "auto detect");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"npu\": {\"defers_to\": {\"old\": [\"npu\", \"cuda\"]}}}}");
    expect_choice("npu", "auto detect");
}

Test(core_detect, two_that_defer_to_each_other_come_before_cpu_all_the_same)
{
    use_shipped_defaults();
    test_add_mock("npu");
    test_add_mock("rocm");
    OPTION("NPU", "VARIANT", "x");
    OPTION("ROCM", "VARIANT", "x");
    test_write("etc/ds-accel.json", "{\"backends\": {\"npu\": {\"defers_to\": {\"x\": [\"rocm\"]}},"
                                    " \"rocm\": {\"defers_to\": {\"x\": [\"npu\"]}}}}");
    expect_choice("npu", "auto detect");
}

/* ---- allow and deny lists -------------------------------------------------------------------- */

Test(core_detect, deny_and_allow_disable_by_pattern_before_any_code_runs)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    test_add_mock("rocm");
    test_write("etc/ds-accel.json", "{\"deny\": [\"cu*\"]}");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "rocm");
    expect_reason(context, "cuda", DS_ACCEL_STATE_DISABLED, "denied");
    cr_expect_str_eq(test_candidate(context, "cuda").stage, "allow");
    ds_accel_destroy(context);

    test_write("etc/ds-accel.json", "{\"allow\": [\"cpu\"]}");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cpu");
    expect_reason(context, "rocm", DS_ACCEL_STATE_DISABLED, "not_allowed");
    ds_accel_destroy(context);

    test_write("etc/conf.d/10.json", "{\"allow\": []}");
    context = detect(DS_ACCEL_ERR_NO_DEVICE);
    expect_reason(context, "cpu", DS_ACCEL_STATE_DISABLED, "not_allowed");
    ds_accel_destroy(context);

    test_write("etc/conf.d/10.json", "{\"allow\": null}");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cuda");
    ds_accel_destroy(context);
    test_write("etc/conf.d/10.json", "{}");

    setenv("DS_ACCELERATOR", "rocm", 1);
    ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "not_allowed"));
}

Test(core_detect, reports_say_how_the_choice_came_about_and_of_whom_was_asked)
{
    ds_accel_t *context;
    char *text;

    use_shipped_defaults();
    test_add_mock("cuda");
    setenv("DS_ACCELERATOR", "cuda", 1);
    context = detect(DS_ACCEL_OK);
    text = test_compact(test_report(context, DS_ACCEL_REPORT_DETECT, NULL, DS_ACCEL_FORMAT_JSON));
    EXPECT_HAS(text, "\"accelerator\":\"cuda\"");
    EXPECT_HAS(text, "\"set_method\":\"override\"");
    EXPECT_HAS(text, "\"device_count\":2");
    ds_accel_free_text(text);
    text =
        test_compact(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "cuda", DS_ACCEL_FORMAT_JSON));
    EXPECT_HAS(text, "\"name\":\"cuda\"");
    EXPECT_HAS_NOT(text, "\"name\":\"cpu\"");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

/* ---- failure and fallback -------------------------------------------------------------------- */

Test(core_detect, falling_back_to_cpu_warns_once_with_the_first_reason)
{
    ds_accel_t *context;
    const char *warning;

    use_shipped_defaults();
    test_add_mock("npu");
    test_add_mock("cuda");
    OPTION("NPU", "AVAILABLE", "false");
    OPTION("NPU", "REASON", "library_missing");
    OPTION("NPU", "DETAIL", "libascendcl.so");
    OPTION("CUDA", "AVAILABLE", "false");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cpu");
    warning = strstr(test_log, "falling back to cpu: npu is unavailable: library_missing: "
                               "libascendcl.so");
    cr_assert_not_null(warning, "%s", test_log);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_null(strstr(warning + 1, "falling back"));
    ds_accel_destroy(context);
}

/* Expect that only cpu is usable, and that detection logs a fallback with this warning. */
static void expect_fall_back(const char *warning)
{
    ds_accel_t *context;
    const char *given;

    test_log[0] = '\0';
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cpu");
    given = strstr(test_log, "falling back to cpu: ");
    cr_assert_not_null(given, "%s", test_log);
    given += strlen("falling back to cpu: ");
    cr_expect(strncmp(given, warning, strlen(warning)) == 0, "wanted \"%s\", given \"%s\"", warning,
              given);
    ds_accel_destroy(context);
}

static void refuse(const char *name, const char *reason)
{
    char variable[64];

    test_add_mock(name);
    snprintf(variable, sizeof(variable), "DS_ACCEL_%s_AVAILABLE", name);
    for (char *at = variable; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    setenv(variable, strcmp(reason, "driver_failed") == 0 ? "error" : "false", 1);
    memcpy(strstr(variable, "_AVAILABLE"), "_REASON", sizeof("_REASON"));
    setenv(variable, reason, 1);
    memcpy(strstr(variable, "_REASON"), "_DETAIL", sizeof("_DETAIL"));
    setenv(variable, name, 1);
}

Test(core_detect, the_fall_back_names_the_first_that_something_can_be_done_for)
{
    use_shipped_defaults();
    refuse("xpu", "no_device");
    refuse("npu", "no_device");
    expect_fall_back("no_device: this machine has no device of xpu or npu (");
    refuse("rocm", "library_missing");
    expect_fall_back("rocm is unavailable: library_missing: rocm (see ds-accel explain rocm)");
    refuse("cuda", "driver_failed"); /* cuda comes before rocm in the order */
    expect_fall_back("cuda is error: driver_failed: cuda (see ds-accel explain cuda)");
    refuse("mlu", "no_permission"); /* mlu comes before cuda and rocm in the order */
    expect_fall_back("mlu is unavailable: no_permission: mlu (see ds-accel explain mlu)");
    refuse("hpu", "no_device");
    expect_fall_back("mlu is unavailable: no_permission: mlu (see ds-accel explain mlu)");
    test_write("etc/ds-accel.json", "{\"deny\": [\"mlu\"]}");
    expect_fall_back("cuda is error: driver_failed: cuda (see ds-accel explain cuda)");
    test_write("etc/ds-accel.json", "{\"deny\": [\"mlu\", \"cuda\", \"rocm\", \"npu\"]}");
    expect_fall_back("no_device: this machine has no device of xpu or hpu (");
    test_write("etc/ds-accel.json", "{\"deny\": [\"mlu\", \"cuda\", \"rocm\", \"npu\", \"xpu\"]}");
    expect_fall_back("hpu is unavailable: no_device: hpu (see ds-accel explain hpu)");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"xpu\": {\"demand_only\": true}}, \"detection_order\": "
               "[\"rocm\", \"hpu\", \"mlu\", \"xpu\", \"npu\"]}");
    expect_fall_back("rocm is unavailable: library_missing: rocm (see ds-accel explain rocm)");
}

Test(core_detect, the_fall_back_names_one_that_did_not_start_before_what_has_no_device)
{
    use_shipped_defaults();
    refuse("xpu", "no_device");
    test_add_mock("cuda");
    OPTION("CUDA", "FAIL", "init=driver");
    expect_fall_back("cuda is error: start_failed: ");
}

Test(core_detect,
     nothing_available_names_what_can_be_mended_then_what_is_absent_then_what_is_denied)
{
    use_shipped_defaults();
    refuse("xpu", "no_device");
    refuse("npu", "no_device");
    refuse("cuda", "hidden");
    test_write("etc/ds-accel.json", "{\"deny\": [\"cpu\", \"xpu\"]}");
    ds_accel_destroy(detect(DS_ACCEL_ERR_NO_DEVICE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "cuda, is unavailable: hidden: cuda"), "%s",
                       ds_accel_last_error());
    test_write("etc/ds-accel.json", "{\"deny\": [\"cpu\", \"cuda\"]}");
    ds_accel_destroy(detect(DS_ACCEL_ERR_NO_DEVICE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "xpu, is unavailable: no_device: xpu"), "%s",
                       ds_accel_last_error());
    test_write("etc/ds-accel.json", "{\"deny\": [\"cpu\", \"xpu\", \"cuda\"]}");
    ds_accel_destroy(detect(DS_ACCEL_ERR_NO_DEVICE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "npu, is unavailable: no_device: npu"), "%s",
                       ds_accel_last_error());
    test_write("etc/ds-accel.json", "{\"deny\": [\"*\"]}");
    ds_accel_destroy(detect(DS_ACCEL_ERR_NO_DEVICE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "xpu, is disabled: denied"), "%s",
                       ds_accel_last_error());
}

Test(core_detect, cpu_alone_is_no_fall_back)
{
    use_shipped_defaults();
    ds_accel_destroy(detect(DS_ACCEL_OK));
    cr_expect_null(strstr(test_log, "falling back"), "%s", test_log);
}

Test(core_detect, a_winner_that_fails_to_start_makes_way_and_is_told)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("npu");
    test_add_mock("cuda");
    OPTION("NPU", "FAIL", "init=driver");
    context = detect(DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "cuda");
    expect_reason(context, "npu", DS_ACCEL_STATE_ERROR, "start_failed");
    cr_expect_str_eq(test_candidate(context, "npu").stage, "start");
    cr_expect_not_null(strstr(test_log, "npu passed its probe but failed to start"), "%s",
                       test_log);
    ds_accel_destroy(context);
    setenv("DS_ACCELERATOR", "npu", 1);
    ds_accel_destroy(detect(DS_ACCEL_ERR_NOT_USABLE));
    cr_expect_not_null(strstr(ds_accel_last_error(), "start_failed"));
}

Test(core_detect, nothing_available_names_the_first_reason)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    OPTION("CUDA", "AVAILABLE", "false");
    OPTION("CUDA", "DETAIL", "no card");
    test_write("etc/ds-accel.json", "{\"deny\": [\"cpu\"]}");
    context = detect(DS_ACCEL_ERR_NO_DEVICE);
    cr_expect_not_null(strstr(ds_accel_last_error(), "cuda, is unavailable: no_device: no card"),
                       "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

Test(core_detect, a_failed_detection_is_tried_again)
{
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("cuda");
    OPTION("CUDA", "AVAILABLE", "false");
    setenv("DS_ACCELERATOR", "cuda", 1);
    context = detect(DS_ACCEL_ERR_NOT_USABLE);
    OPTION("CUDA", "AVAILABLE", "true");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "cuda");
    ds_accel_destroy(context);
}
