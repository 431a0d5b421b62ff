/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Log levels by topic. Three lines are at hand: LOCAL_SIZE makes the topic "cpu" warn, an unknown
 * variable the topic "env", and choosing cpu with nothing else there informs under "detect".
 */
#include "fixture.h"

#define CPU_LINE "2 cpu: LOCAL_SIZE=\"many\" is not"
#define ENV_LINE "2 env: unknown variable DS_ACCEL_TYPO"
#define DETECT_LINE "3 detect: cpu is used"
#define COMPLAINT "2 log: log level \""

#define EXPECT_LOGGED(part) \
    cr_expect_not_null(strstr(test_log, part), "no %s in:\n%s", part, test_log)
#define EXPECT_SILENT(part) cr_expect_null(strstr(test_log, part), "%s in:\n%s", part, test_log)

/* Log what there is to log with DS_ACCEL_LOG=levels; NULL: unset. */
static void log_with(const char *levels)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    setenv("LOCAL_SIZE", "many", 1);
    setenv("DS_ACCEL_TYPO", "1", 1);
    unsetenv("DS_ACCEL_LOG");
    if (levels != NULL) {
        setenv("DS_ACCEL_LOG", levels, 1);
    }
    options.log_levels = NULL;
    test_log[0] = '\0';
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

Test(core_log, warnings_and_errors_are_shown_by_default)
{
    log_with(NULL);
    EXPECT_LOGGED(CPU_LINE);
    EXPECT_LOGGED(ENV_LINE);
    EXPECT_SILENT(DETECT_LINE);
    EXPECT_SILENT(COMPLAINT);
}

Test(core_log, one_level_holds_for_all_topics)
{
    log_with("info");
    EXPECT_LOGGED(CPU_LINE);
    EXPECT_LOGGED(ENV_LINE);
    EXPECT_LOGGED(DETECT_LINE);
    log_with("error");
    cr_expect_str_empty(test_log, "%s", test_log);
    log_with("off");
    cr_expect_str_empty(test_log, "%s", test_log);
}

Test(core_log, a_topic_can_have_a_level_of_its_own)
{
    log_with("error,cpu=warn");
    EXPECT_LOGGED(CPU_LINE);
    EXPECT_SILENT(ENV_LINE);
    log_with("detect=debug,env=off");
    EXPECT_LOGGED(CPU_LINE);
    EXPECT_LOGGED(DETECT_LINE);
    EXPECT_SILENT(ENV_LINE);
    log_with("cpu=error,info");
    EXPECT_SILENT(CPU_LINE);
    EXPECT_LOGGED(ENV_LINE);
    EXPECT_LOGGED(DETECT_LINE);
}

Test(core_log, the_later_of_two_items_counts)
{
    log_with("error,warn,cpu=warn,cpu=off");
    EXPECT_LOGGED(ENV_LINE);
    EXPECT_SILENT(CPU_LINE);
}

Test(core_log, empty_items_are_nothing)
{
    log_with(",,info,");
    EXPECT_LOGGED(DETECT_LINE);
    EXPECT_SILENT(COMPLAINT);
    log_with("");
    EXPECT_LOGGED(ENV_LINE);
    EXPECT_SILENT(COMPLAINT);
}

Test(core_log, an_item_that_is_not_understood_warns_and_the_others_count)
{
    static const char *const items[] = {"loud",  "WARN", "3",      "cpu=loud",
                                        "=warn", "cpu=", "cpu:off"};
    char levels[64];
    char wanted[64];

    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        snprintf(levels, sizeof(levels), "%s,env=off,detect=info", items[i]);
        snprintf(wanted, sizeof(wanted), COMPLAINT "%s\" is not understood", items[i]);
        log_with(levels);
        EXPECT_LOGGED(wanted);
        EXPECT_SILENT(ENV_LINE);
        EXPECT_LOGGED(DETECT_LINE);
    }
}

Test(core_log, every_item_that_is_not_understood_is_named)
{
    log_with("loud,cpu=louder");
    EXPECT_LOGGED("\"loud\"");
    EXPECT_LOGGED("\"cpu=louder\"");
}

Test(core_log, a_very_long_item_is_harmless)
{
    char levels[8192];

    memset(levels, 'x', sizeof(levels) - 1);
    levels[sizeof(levels) - 1] = '\0';
    memcpy(levels + 4000, "=debug,", 7);
    memcpy(levels + sizeof(levels) - 6, ",info", 5);
    log_with(levels);
    EXPECT_LOGGED(COMPLAINT "xxx");
    EXPECT_LOGGED(DETECT_LINE);
}

Test(core_log, many_topics_are_harmless)
{
    char levels[2048] = "info";

    for (int i = 0; i < 100; i++) {
        snprintf(levels + strlen(levels), sizeof(levels) - strlen(levels), ",t%d=debug", i);
    }
    log_with(levels);
    EXPECT_LOGGED(DETECT_LINE);
}

Test(core_log, the_option_goes_before_the_variable)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    setenv("DS_ACCEL_LOG", "off", 1);
    setenv("DS_ACCEL_TYPO", "1", 1);
    options.log_levels = "warn";
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    EXPECT_LOGGED(ENV_LINE);
    ds_accel_destroy(context);
}

Test(core_log, without_a_sink_lines_are_dropped)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    setenv("DS_ACCEL_TYPO", "1", 1);
    options.log_sink = NULL;
    options.log_levels = "trace";
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    cr_expect_str_empty(test_log);
}
