/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Positions in messages about the configuration: line, column and key. */
#include "config.h"

/* ---- positions ------------------------------------------------------------------------------ */

Test(core_config, columns_count_characters_not_bytes)
{
    expect_refused("{\"allow\": [\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"], \"denny\": []}", "1:20",
                   "did you mean \"deny\"?");
}

Test(core_config, escaped_keys_are_found)
{
    expect_refused("{\"deny\": [],\n \"\\u0061llow\": 1}", "2:16", "\"allow\" is a whole number");
    expect_refused("{\"backends\": {\"x\": {\"op_builders\": {\n"
                   "\"a\\/b~0c\\\"\": {\"op\": 1}}}}}",
                   "2:21", "\"op\" is a whole number");
    expect_refused("{\"backends\": {\"x\": {\"op_builders\": {\n"
                   "\"a\": {\"b\": 1}, \"a/b\": 2}}}}",
                   "2:7", "unknown key \"b\"");
    expect_refused("{\"backends\": {\"x\": {\"op_builders\": {\n"
                   "\"a\": {\"op\": \"a\"}, \"a/op\": 2}}}}",
                   "2:27", "\"a/op\" is a whole number");
}

Test(core_config, brackets_inside_texts_do_not_confuse_positions)
{
    expect_refused("{\"allow\": [\"}\", \"]\\\"\", \"{\\\\\"],\n\"deny\": [\"[\", 1]}", "2:15",
                   "\"deny\" is a whole number");
}

Test(core_config, the_eleventh_element_is_not_the_first)
{
    expect_refused("{\"allow\": [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\",\n"
                   "\"6\", \"7\", \"8\", \"9\", 10]}",
                   "2:21", "\"allow\" is a whole number");
    expect_refused("{\"allow\": [0, \"1\", \"2\", \"3\", \"4\", \"5\",\n"
                   "\"6\", \"7\", \"8\", \"9\", \"10\"]}",
                   "1:12", "\"allow\" is a whole number");
}

Test(core_config, a_message_stays_one_line)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *text;

    test_write("etc/ds-accel.json", "{\"a\\nb\\u001b[31m\": 1}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    cr_expect_null(strpbrk(ds_accel_last_error(), "\n\033"), "%s", ds_accel_last_error());
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(text, "[31m");
    cr_expect_null(strstr(text, "\033"), "%s", text);
    cr_expect_null(strstr(text, "\nb"), "%s", text);
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(text, "[31m");
    cr_expect_null(strstr(text, "\\u001"), "%s", text);
    cr_expect_null(strcasestr(text, "\\nb"), "%s", text);
    ds_accel_free_text(text);
}
