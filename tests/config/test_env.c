/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The environment: our own variables, and the variables that a backend needs in a job. */
#include "fixture.h"

/* A report of a new context; JSON is compacted. */
static char *report_with(const struct ds_accel_options *options, uint32_t report, const char *name,
                         uint32_t format)
{
    ds_accel_t *context = test_create_with(options);
    char *text = test_report(context, report, name, format);

    ds_accel_destroy(context);
    return (format & DS_ACCEL_FORMAT_JSON) != 0 ? test_compact(text) : text;
}

static char *variables(uint32_t flags)
{
    struct ds_accel_options options = test_options();

    options.flags |= flags;
    return report_with(&options, DS_ACCEL_REPORT_CONFIG_ENV, NULL, DS_ACCEL_FORMAT_JSON);
}

static char *env_report(const char *backend, uint32_t format)
{
    struct ds_accel_options options = test_options();

    return report_with(&options, DS_ACCEL_REPORT_ENV, backend, format);
}

/* ---- our own variables ---------------------------------------------------------------------- */

Test(core_env, every_variable_is_listed_with_value_and_origin)
{
    char *report;

    setenv("DS_ACCELERATOR", "cpu", 1);
    setenv("DS_ACCEL_LOG", "cpu=debug", 1);
    unsetenv("DS_ACCEL_PLUGIN_PATH");
    report = variables(0);
    EXPECT_HAS(report, "{\"name\":\"DS_ACCELERATOR\",\"value\":\"cpu\",\"origin\":\"environment\","
                       "\"default\":null,\"help\":\"force this");
    EXPECT_HAS(report, "{\"name\":\"DS_ACCEL_LOG\",\"value\":\"cpu=debug\","
                       "\"origin\":\"environment\",\"default\":\"warn\",");
    EXPECT_HAS(report, "{\"name\":\"DS_ACCEL_PLUGIN_PATH\",\"value\":null,\"origin\":\"default\",");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_CONFIG\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_PROBE\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_CACHE\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_CACHE_DIR\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_ALLOCATOR\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_DECISION\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_RESERVED_CPUS\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_LAYERS\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_TRACE_FILE\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_RACE_FILE\"");
    EXPECT_HAS(report, "\"name\":\"DS_ACCEL_ROOT\"");
    ds_accel_free_text(report);
}

Test(core_env, the_list_has_a_form_for_people)
{
    struct ds_accel_options options = test_options();
    char *report;

    setenv("DS_ACCELERATOR", "cpu", 1);
    report = report_with(&options, DS_ACCEL_REPORT_CONFIG_ENV, NULL, 0);
    EXPECT_HAS(report, "NAME ");
    EXPECT_HAS(report, "environment ");
    EXPECT_HAS(report, "DS_ACCEL_CONFIG ");
    EXPECT_HAS(report, "(unset)");
    ds_accel_free_text(report);
}

Test(core_env, a_value_that_is_not_utf8_is_still_listed)
{
    char *report;

    setenv("DS_ACCEL_DECISION",
           "a\xff"
           "b",
           1);
    report = variables(0);
    EXPECT_HAS(report, "{\"name\":\"DS_ACCEL_DECISION\",\"value\":\"a?b\"");
    ds_accel_free_text(report);
}

Test(core_env, only_the_bytes_that_are_not_utf8_are_replaced)
{
    char *report;

    setenv("DS_ACCEL_DECISION", "\xc3\xa4\xff\xe2\x82\xf0\x9f\x98\x80\xc3", 1);
    report = variables(0);
    EXPECT_HAS(report,
               "{\"name\":\"DS_ACCEL_DECISION\",\"value\":\"\xc3\xa4???\xf0\x9f\x98\x80?\"");
    ds_accel_free_text(report);
}

Test(core_env, without_environment_every_variable_is_ignored)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *report;

    setenv("DS_ACCELERATOR", "no_such", 1);
    setenv("DS_ACCEL_CONFIG", "/no/such.json", 1);
    setenv("DS_ACCEL_PROBE", "nonsense", 1);
    setenv("DS_ACCEL_LOG", "nonsense", 1);
    setenv("DS_ACCEL_NONSENSE", "1", 1);
    options.flags |= DS_ACCEL_OPTION_NO_ENVIRONMENT;
    options.log_levels = NULL;
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(context), "auto detect");
    ds_accel_destroy(context);
    EXPECT_HAS_NOT(test_log, "onsense");
    EXPECT_HAS_NOT(test_log, "NONSENSE");

    report = variables(DS_ACCEL_OPTION_NO_ENVIRONMENT);
    EXPECT_HAS(report, "\"DS_ACCELERATOR\",\"value\":null,\"origin\":\"ignored\"");
    EXPECT_HAS(report, "\"DS_ACCEL_LOG\",\"value\":\"warn\",\"origin\":\"ignored\"");
    EXPECT_HAS_NOT(report, "\"environment\"");
    ds_accel_free_text(report);
}

Test(core_env, config_check_without_environment_ignores_it_too)
{
    struct ds_accel_options options = test_options();
    char *text = NULL;

    setenv("DS_ACCEL_CONFIG", "/no/such.json", 1);
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    ds_accel_free_text(text);
    options.flags |= DS_ACCEL_OPTION_NO_ENVIRONMENT;
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_OK, "%s", text);
    ds_accel_free_text(text);
}

Test(core_env, an_empty_variable_is_as_if_unset_but_for_the_override)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    setenv("DS_ACCEL_CONFIG", "", 1);
    setenv("DS_ACCEL_PROBE", "", 1);
    setenv("DS_ACCEL_PLUGIN_PATH", "", 1);
    setenv("DS_ACCEL_CACHE", "", 1);
    setenv("DS_ACCEL_LOG", "", 1);
    options.log_levels = NULL;
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
    EXPECT_HAS_NOT(test_log, "DS_ACCEL_");

    setenv("DS_ACCELERATOR", "", 1);
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    EXPECT_HAS(ds_accel_last_error(), "DS_ACCELERATOR is set but empty");
    ds_accel_destroy(context);
}

Test(core_env, an_unknown_variable_warns_with_a_suggestion)
{
    setenv("DS_ACCEL_LGO", "debug", 1);
    setenv("DS_ACCEL_PLUGIN_PAHT", "/x", 1);
    setenv("DS_ACCEL_SOMETHING_ELSE", "1", 1);
    setenv("DS_ACCELERATED", "1", 1);
    ds_accel_destroy(test_create());
    EXPECT_HAS(test_log, "2 env: unknown variable DS_ACCEL_LGO; did you mean DS_ACCEL_LOG?\n");
    EXPECT_HAS(test_log, "unknown variable DS_ACCEL_PLUGIN_PAHT; did you mean "
                         "DS_ACCEL_PLUGIN_PATH?\n");
    EXPECT_HAS(test_log, "unknown variable DS_ACCEL_SOMETHING_ELSE (ds-accel config show --env");
    EXPECT_HAS_NOT(test_log, "DS_ACCELERATED");
}

Test(core_env, options_of_known_backends_do_not_warn)
{
    test_write("etc/ds-accel.json", "{\"backends\": {\"xpu.external\": {}}}");
    setenv("DS_ACCEL_CPU_ANYTHING", "1", 1);
    setenv("DS_ACCEL_XPU_EXTERNAL_ANYTHING", "1", 1);
    setenv("DS_ACCEL_CUDA_ANYTHING", "1", 1);
    ds_accel_destroy(test_create());
    EXPECT_HAS_NOT(test_log, "DS_ACCEL_CPU_ANYTHING");
    EXPECT_HAS_NOT(test_log, "DS_ACCEL_XPU_EXTERNAL_ANYTHING");
    EXPECT_HAS(test_log, "unknown variable DS_ACCEL_CUDA_ANYTHING");
}

Test(core_env, a_place_to_probe_that_there_is_not_is_refused)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;
    char *text = NULL;

    setenv("DS_ACCEL_PROBE", "elsewhere", 1);
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_PROBE:1:1: ");
    EXPECT_HAS(ds_accel_last_error(), "\"elsewhere\"");
    EXPECT_HAS(ds_accel_last_error(), "\"isolated\"");
    EXPECT_HAS(ds_accel_last_error(), "\"in-process\"");
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(text, "DS_ACCEL_PROBE:1:1: ");
    ds_accel_free_text(text);
}

static void expect_probed(const char *mode, const char *evidence)
{
    ds_accel_t *context;
    char *text;

    setenv("DS_ACCEL_PROBE", mode, 1);
    context = test_create();
    text = test_report(context, DS_ACCEL_REPORT_EXPLAIN, "mock", 0);
    EXPECT_HAS(text, evidence);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_env, the_place_to_probe_is_taken)
{
    expect_probed("isolated", "opened by ds-accel-probe");
    expect_probed("in-process", "opened in this process");
}

Test(core_env, a_misspelt_option_of_a_backend_is_told)
{
    test_write("share/ds-accel.json", "{\"backends\": {\"mine\": {\"options\": {\"speed\": 1}}}}");
    setenv("DS_ACCEL_MINE_SPEDE", "2", 1);
    setenv("DS_ACCEL_MINE_SPEED", "2", 1);
    ds_accel_destroy(test_create());
    EXPECT_HAS(test_log, "unknown variable DS_ACCEL_MINE_SPEDE; did you mean DS_ACCEL_MINE_SPEED?");
    EXPECT_HAS_NOT(test_log, "unknown variable DS_ACCEL_MINE_SPEED");
}

Test(core_env, a_way_of_caching_that_there_is_not_is_refused)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    setenv("DS_ACCEL_CACHE", "yes", 1);
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_CACHE:1:1: it is \"yes\"; expected \"off\"");
}

/* ---- variables that a backend needs in a job ------------------------------------------------- */

static const char rules[] =
    "{\"backends\": {\"far\": {\"env\": [\n"
    "{\"name\": \"TEST_IF\", \"value\": \"1\"},\n"
    "{\"name\": \"TEST_IF_TOO\", \"value\": \"2\", \"rule\": \"if-unset\"},\n"
    "{\"name\": \"TEST_ALWAYS\", \"value\": \"3\", \"rule\": \"always\"},\n"
    "{\"name\": \"TEST_UNSET\", \"rule\": \"unset\"}]}}}";

static void expect_rule(const char *report, const char *name, const char *rule, bool applied,
                        int line)
{
    char wanted[512];

    snprintf(wanted, sizeof(wanted), "\"rule\":\"%s\",\"applied\":%s,\"origin\":\"%s:%d\"}", rule,
             applied ? "true" : "false", test_path("etc/ds-accel.json"), line);
    EXPECT_HAS(report, name);
    if (strstr(report, name) != NULL) {
        EXPECT_HAS(strstr(report, name), wanted);
    }
}

Test(core_env, rules_apply_by_what_is_set)
{
    char *report;

    test_write("etc/ds-accel.json", rules);
    report = env_report("far", DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report, "{\"schema_version\":1,\"accelerator\":\"far\",\"variables\":[{\"name\":"
                       "\"TEST_IF\",\"value\":\"1\",\"rule\":\"if-unset\",\"applied\":true,");
    expect_rule(report, "\"TEST_IF_TOO\"", "if-unset", true, 3);
    expect_rule(report, "\"TEST_ALWAYS\"", "always", true, 4);
    expect_rule(report, "\"TEST_UNSET\"", "unset", false, 5);
    ds_accel_free_text(report);

    setenv("TEST_IF", "", 1);
    setenv("TEST_ALWAYS", "0", 1);
    setenv("TEST_UNSET", "0", 1);
    report = env_report("far", DS_ACCEL_FORMAT_JSON);
    expect_rule(report, "\"TEST_IF\"", "if-unset", false, 2);
    expect_rule(report, "\"TEST_IF_TOO\"", "if-unset", true, 3);
    expect_rule(report, "\"TEST_ALWAYS\"", "always", true, 4);
    expect_rule(report, "\"TEST_UNSET\"", "unset", true, 5);
    ds_accel_free_text(report);
}

Test(core_env, shell_lines_hold_only_what_applies)
{
    char *report;

    test_write("etc/ds-accel.json", rules);
    setenv("TEST_IF", "", 1);
    setenv("TEST_UNSET", "0", 1);
    report = env_report("far", 0);
    cr_expect_str_eq(report, "export TEST_IF_TOO='2'\nexport TEST_ALWAYS='3'\nunset TEST_UNSET\n");
    ds_accel_free_text(report);
}

/* Store the value of TEST_VALUE after /bin/sh evaluated the lines as the manual describes. */
static void run_shell(const char *lines, char *value, size_t value_size)
{
    FILE *shell;
    size_t length;

    setenv("TEST_LINES", lines, 1);
    shell = popen("eval \"$TEST_LINES\"; printf %s \"$TEST_VALUE\"", "r");
    cr_assert_not_null(shell);
    length = fread(value, 1, value_size - 1, shell);
    value[length] = '\0';
    cr_expect_eq(pclose(shell), 0);
}

Test(core_env, shell_lines_keep_every_character)
{
    static const char *const values[][2] = {
        {"it's", "it's"},
        {"''", "''"},
        {"a b  c", "a b  c"},
        {"$HOME `id` $(id) \\\\ \\\" * ? ; & | # ~ !", "$HOME `id` $(id) \\ \" * ? ; & | # ~ !"},
        {" leading -n", " leading -n"},
        {"\\u00e4\\u20ac", "\xc3\xa4\xe2\x82\xac"},
        {"tab\\there", "tab\there"},
        {"", ""},
    };
    char json[256];
    char value[256];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char *report;

        snprintf(json, sizeof(json),
                 "{\"backends\": {\"far\": {\"env\": [{\"name\": \"TEST_VALUE\", \"value\": "
                 "\"%s\", \"rule\": \"always\"}]}}}",
                 values[i][0]);
        test_write("etc/ds-accel.json", json);
        report = env_report("far", 0);
        setenv("TEST_VALUE", "untouched", 1);
        run_shell(report, value, sizeof(value));
        cr_expect_str_eq(value, values[i][1], "%s became %s", values[i][1], value);
        ds_accel_free_text(report);
    }
}

Test(core_env, reports_on_a_backend_that_has_no_plugin)
{
    struct ds_accel_options options = test_options();
    char *report;

    options.package_config_dir = TEST_SOURCE "/conf";
    report = report_with(&options, DS_ACCEL_REPORT_ENV, "hpu", DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report, "\"accelerator\":\"hpu\"");
    EXPECT_HAS(report, "{\"name\":\"PT_HPU_LAZY_ACC_PAR_MODE\",\"value\":\"0\","
                       "\"rule\":\"if-unset\",\"applied\":true,\"origin\":");
    ds_accel_free_text(report);
}

Test(core_env, without_a_name_the_chosen_one_is_reported)
{
    char *report;

    test_write("etc/ds-accel.json", "{\"backends\": {\"cpu\": {\"env\": [{\"name\": \"TEST_CPU\", "
                                    "\"value\": \"yes\", \"rule\": \"always\"}]}}}");
    report = env_report(NULL, 0);
    cr_expect_str_eq(report, "export TEST_CPU='yes'\n");
    ds_accel_free_text(report);
}

Test(core_env, nobody_knows_this_backend)
{
    ds_accel_t *context;
    char *text = NULL;

    test_write("etc/ds-accel.json", "{\"backends\": {\"far\": {}}}");
    context = test_create();
    cr_expect_eq(ds_accel_report(context, DS_ACCEL_REPORT_ENV, "faar", 0, &text),
                 DS_ACCEL_ERR_NOT_FOUND);
    cr_expect_null(text);
    EXPECT_HAS(ds_accel_last_error(), "\"faar\"; did you mean \"far\"?; known: far");
    ds_accel_destroy(context);
}

Test(core_env, reporting_leaves_the_environment_alone)
{
    test_write("etc/ds-accel.json", rules);
    setenv("TEST_UNSET", "0", 1);
    ds_accel_free_text(env_report("far", 0));
    cr_expect_null(getenv("TEST_ALWAYS"));
    cr_expect_not_null(getenv("TEST_UNSET"));
}
