/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Log levels by topic. Three log lines are used: LOCAL_SIZE logs a warning under topic "cpu", an
 * unknown variable logs a warning under "env", and a fallback to cpu logs at level info under
 * "detect".
 */
#include "fixture.h"

#define CPU_LINE "2 cpu: LOCAL_SIZE=\"many\" is not"
#define ENV_LINE "2 env: unknown variable DS_ACCEL_TYPO"
#define DETECT_LINE "3 detect: cpu is used"
#define COMPLAINT "2 log: log level \""

#define EXPECT_LOGGED(part) \
    cr_expect_not_null(strstr(test_log, part), "no %s in:\n%s", part, test_log)
#define EXPECT_SILENT(part) cr_expect_null(strstr(test_log, part), "%s in:\n%s", part, test_log)

/* Produce the three log lines with DS_ACCEL_LOG=levels; NULL leaves it unset. */
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

/* The first and last character of each range of control and invisible characters, and their
   neighbours. */
Test(core_log, texts_are_made_fit_for_a_terminal)
{
    static const struct {
        uint32_t first, last;
        char becomes; /* replacement character; 0: the range is left unchanged */
    } ranges[] = {
        {0x01, 0x1f, ' '},       {0x20, 0x7e, 0},           {0x7f, 0x9f, ' '},
        {0xa0, 0xac, 0},         {0xad, 0xad, '?'},         {0xae, 0x34e, 0},
        {0x34f, 0x34f, '?'},     {0x350, 0x5ff, 0},         {0x600, 0x605, '?'},
        {0x606, 0x61b, 0},       {0x61c, 0x61c, '?'},       {0x61d, 0x6dc, 0},
        {0x180b, 0x180f, '?'},   {0x1810, 0x200a, 0},       {0x200b, 0x200f, '?'},
        {0x2010, 0x2027, 0},     {0x2028, 0x2029, ' '},     {0x202a, 0x202e, '?'},
        {0x202f, 0x205f, 0},     {0x2060, 0x206f, '?'},     {0x2070, 0x3163, 0},
        {0xe000, 0xfdcf, 0},     {0xfe00, 0xfe0f, '?'},     {0xfe10, 0xfefe, 0},
        {0xfeff, 0xfeff, '?'},   {0xff00, 0xff9f, 0},       {0xfff0, 0xfffb, '?'},
        {0xfffc, 0xfffd, 0},     {0xfffe, 0xffff, '?'},     {0x10000, 0x110bc, 0},
        {0x1d173, 0x1d17a, '?'}, {0x1f600, 0x1fffd, 0},     {0x1fffe, 0x1ffff, '?'},
        {0xe0000, 0xe0fff, '?'}, {0x10fffe, 0x10ffff, '?'},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        for (uint32_t code = ranges[i].first; code <= ranges[i].last; code++) {
            char text[16] = "a";
            char wanted[16];
            char *at = text + 1;

            if (code < 0x80) {
                *at++ = (char)code;
            } else {
                int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

                *at++ = (char)((0xf0 << (3 - more)) | (int)(code >> (6 * more)));
                while (more-- > 0) {
                    *at++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
                }
            }
            *at = 'z';
            memcpy(wanted, text, sizeof(wanted));
            if (ranges[i].becomes != 0) {
                snprintf(wanted, sizeof(wanted), "a%cz", ranges[i].becomes);
            }
            ds_accel_sanitize_text(text, sizeof(text));
            cr_expect_str_eq(text, wanted, "U+%04X", (unsigned)code);
        }
    }
}

Test(core_log, texts_that_are_not_utf_8_are_marked)
{
    static const char *const texts[][2] = {
        {"\xed\xa0\x80z", "???z"},
        {"\xed\xbf\xbfz", "???z"},
        {"\xc0\x9bz", "??z"},
        {"\xe0\x80\x9bz", "???z"},
        {"\xf0\x80\x80\x9bz", "????z"},
        {"\xf4\x90\x80\x80z", "????z"},
        {"\xf8\x88\x80\x80\x80z", "?????z"},
        {"\xffz", "?z"},
        {"\xc3", "?"},
        {"a\xe2\x82", "a??"},
        {"\xe2\x28\xa1", "?(?"},
        {"", ""},
        {"\n\r", "  "},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[16];

        snprintf(text, sizeof(text), "%s", texts[i][0]);
        ds_accel_sanitize_text(text, sizeof(text));
        cr_expect_str_eq(text, texts[i][1], "%zu: \"%s\"", i, text);
    }
    ds_accel_sanitize_text(NULL, 1);
}

/* A program's array may lack a terminating NUL. */
Test(core_log, a_text_without_an_end_is_ended)
{
    char text[4] = {'a', '\n', 'c', 'd'};
    char one[1] = {'x'};

    ds_accel_sanitize_text(text, sizeof(text));
    cr_expect_str_eq(text, "a c");
    ds_accel_sanitize_text(one, sizeof(one));
    cr_expect_str_eq(one, "");
    one[0] = 'x';
    ds_accel_sanitize_text(one, 0);
    cr_expect_eq(one[0], 'x');
}

Test(core_log, a_long_line_is_logged_whole)
{
    static char path[4001];
    const char *directories[] = {path};
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;
    char line[4100];

    for (size_t i = 0; i + 1 < sizeof(path); i += 2) {
        memcpy(path + i, "/x", 2);
    }
    snprintf(line, sizeof(line), "2 scan: %s is not a directory\n", path);
    options.plugin_dirs = directories;
    options.plugin_dir_count = 1;
    test_log[0] = '\0';
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
    EXPECT_LOGGED(line);
}

/* The last error has a limit; a truncated one says so, and ends with a whole character. */
Test(core_log, a_long_error_is_whole_or_marked)
{
    static char path[40001];
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;
    const char *error = ds_accel_last_error();
    size_t length;

    for (size_t i = 0; i + 1 < sizeof(path); i += 2) {
        memcpy(path + i, "\u00e9", 2);
    }
    path[4094] = '\0';
    options.config_file = path;
    cr_expect_lt(ds_accel_create(&options, &context), 0);
    cr_expect_not_null(strstr(error, path), "%s", error);
    path[4094] = '\xc3';
    cr_expect_lt(ds_accel_create(&options, &context), 0);
    length = strlen(error);
    cr_assert_geq(length, 8192u);
    cr_expect_str_eq(error + length - 5, "\u00e9...");
}
