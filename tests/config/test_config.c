/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Configuration: layers, merging, and files that cannot be read. */
#include "config.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- layers --------------------------------------------------------------------------------- */

/* Files are ordered by name, byte by byte, except that the shipped file comes before other
   packages' files. */
Test(core_config, each_later_file_overrides_the_earlier_ones)
{
    static const char *const files[] = {
        "share/ds-accel.json", "share/Z.json",      "share/a.json",
        "share/b.json",        "etc/ds-accel.json", "etc/conf.d/10-z.json",
        "etc/conf.d/9-a.json", "etc/conf.d/A.json", "etc/conf.d/a.json",
    };
    char text[64];
    char value[16];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(text, sizeof(text), "{\"accelerator\": \"name%zu\"}", i);
        snprintf(value, sizeof(value), "\"name%zu\"", i);
        expect_merged("accelerator", value, test_write(files[i], text), 1);
    }
}

Test(core_config, the_explicit_file_overrides_the_system)
{
    const char *file = test_write("mine.json", "{\"accelerator\": \"mine\"}");

    test_write("etc/conf.d/z.json", "{\"accelerator\": \"system\"}");
    setenv("DS_ACCEL_CONFIG", file, 1);
    expect_merged("accelerator", "\"mine\"", file, 1);
}

Test(core_config, the_option_config_file_goes_before_the_variable)
{
    struct ds_accel_options options = test_options();
    char *report;

    setenv("DS_ACCEL_CONFIG", test_write("variable.json", "{\"accelerator\": \"variable\"}"), 1);
    options.config_file = test_write("option.json", "{\"accelerator\": \"option\"}");
    report = merged_with(&options);
    expect_value(report, "accelerator", "\"option\"", options.config_file, 1);
    EXPECT_HAS_NOT(report, "variable.json");
    ds_accel_free_text(report);
}

Test(core_config, the_user_layer_goes_between_system_and_explicit)
{
    struct ds_accel_options options = test_options();
    const char *user = test_write("xdg/ds-accel/b.json", "{\"accelerator\": \"user\"}");
    char *report;

    options.flags = 0;
    test_write("xdg/ds-accel/a.json", "{\"accelerator\": \"earlier\"}");
    test_write("etc/conf.d/z.json", "{\"accelerator\": \"system\"}");
    setenv("XDG_CONFIG_HOME", test_path("xdg"), 1);
    report = merged_with(&options);
    expect_value(report, "accelerator", "\"user\"", user, 1);
    EXPECT_HAS(report, "\"layer\":\"user\"");
    ds_accel_free_text(report);

    setenv("DS_ACCEL_CONFIG", test_write("mine.json", "{\"deny\": [\"x\"]}"), 1);
    report = merged_with(&options);
    EXPECT_HAS(report, "\"layer\":\"explicit\"");
    EXPECT_HAS_NOT(report, "\"layer\":\"user\"");
    EXPECT_HAS(report, "\"key\":\"accelerator\",\"value\":\"system\"");
    ds_accel_free_text(report);
}

Test(core_config, the_user_layer_can_be_left_out)
{
    char *report;

    test_write("xdg/ds-accel/a.json", "{\"accelerator\": \"user\"}");
    setenv("XDG_CONFIG_HOME", test_path("xdg"), 1);
    report = merged();
    EXPECT_HAS_NOT(report, "\"user\"");
    ds_accel_free_text(report);
}

Test(core_config, without_an_absolute_xdg_directory_the_home_directory_is_used)
{
    struct ds_accel_options options = test_options();
    const char *user = test_write("home/.config/ds-accel/a.json", "{\"accelerator\": \"home\"}");
    char *report;

    options.flags = 0;
    setenv("HOME", test_path("home"), 1);
    setenv("XDG_CONFIG_HOME", "relative", 1);
    report = merged_with(&options);
    expect_value(report, "accelerator", "\"home\"", user, 1);
    ds_accel_free_text(report);
    unsetenv("XDG_CONFIG_HOME");
    report = merged_with(&options);
    expect_value(report, "accelerator", "\"home\"", user, 1);
    ds_accel_free_text(report);
}

Test(core_config, only_files_named_json_are_read)
{
    char *report;

    test_write("etc/conf.d/a.json.rpmsave", "not JSON");
    test_write("etc/conf.d/README", "not JSON");
    test_write("etc/conf.d/.hidden.json", "not JSON");
    test_write("share/schema/config.json", "not JSON");
    report = merged();
    EXPECT_HAS(report, "\"files\":[],");
    ds_accel_free_text(report);
}

Test(core_config, an_empty_configuration_has_no_values)
{
    char *report;

    test_write("etc/ds-accel.json", "{}");
    report = merged();
    EXPECT_HAS(report, "\"values\":[]}");
    ds_accel_free_text(report);
}

Test(core_config, the_files_are_listed_lowest_first_with_their_layer)
{
    char wanted[2048];
    char *report;

    snprintf(wanted, sizeof(wanted),
             "\"files\":[{\"path\":\"%s\",\"layer\":\"package\"},"
             "{\"path\":\"%s\",\"layer\":\"system\"},{\"path\":\"%s\",\"layer\":\"system\"},"
             "{\"path\":\"%s\",\"layer\":\"explicit\"}]",
             test_write("share/a.json", "{}"), test_write("etc/ds-accel.json", "{}"),
             test_write("etc/conf.d/a.json", "{}"), test_write("mine.json", "{}"));
    setenv("DS_ACCEL_CONFIG", test_path("mine.json"), 1);
    report = merged();
    EXPECT_HAS(report, wanted);
    ds_accel_free_text(report);
}

Test(core_config, the_environment_overrides_configuration_and_an_option_both)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"accelerator\": \"cpu\"}");
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(context), "config");
    ds_accel_destroy(context);

    test_write("etc/ds-accel.json", "{\"accelerator\": \"no_such\"}");
    setenv("DS_ACCELERATOR", "cpu", 1);
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(context), "override");
    ds_accel_destroy(context);

    setenv("DS_ACCELERATOR", "no_such", 1);
    options.accelerator = "cpu";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(context), "override");
    ds_accel_destroy(context);
}

/* ---- merging -------------------------------------------------------------------------------- */

Test(core_config, objects_merge_arrays_and_scalars_replace)
{
    const char *low = test_write("share/a.json", "{\"allow\": [\"a\", \"b\"],\n"
                                                 " \"probe\": {\"mode\": \"in-process\",\n"
                                                 "             \"timeout_ms\": 1000},\n"
                                                 " \"backends\": {\"cuda\": {\n"
                                                 "   \"compile_backend\": \"low\",\n"
                                                 "   \"communication_backend\": \"low\"}}}");
    const char *high = test_write("etc/ds-accel.json", "{\"allow\": [\"c\"],\n"
                                                       " \"probe\": {\"timeout_ms\": 2000},\n"
                                                       " \"backends\": {\"cuda\": {\n"
                                                       "   \"compile_backend\": \"high\"}}}");
    char *report = merged();

    expect_value(report, "allow", "[\"c\"]", high, 1);
    expect_value(report, "probe.mode", "\"in-process\"", low, 2);
    expect_value(report, "probe.timeout_ms", "2000", high, 2);
    expect_value(report, "backends.cuda.communication_backend", "\"low\"", low, 6);
    expect_value(report, "backends.cuda.compile_backend", "\"high\"", high, 4);
    ds_accel_free_text(report);
}

Test(core_config, null_masks_what_lower_layers_set)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    const char *file;

    test_write("share/a.json", "{\"accelerator\": \"no_such\"}");
    file = test_write("etc/ds-accel.json", "{\n\"accelerator\": null}");
    expect_merged("accelerator", "null", file, 2);
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(context), "auto detect");
    ds_accel_destroy(context);
}

Test(core_config, a_masked_object_can_be_set_again_without_its_old_members)
{
    const char *again;
    char *report;

    test_write("share/a.json", "{\"backends\": {\"x\": {\"compile_backend\": \"old\"}}}");
    test_write("etc/ds-accel.json", "{\"backends\": {\"x\": null}}");
    expect_merged("backends.x", "null", test_path("etc/ds-accel.json"), 1);
    again = test_write("etc/conf.d/a.json",
                       "{\"backends\": {\n\"x\": {\n\"communication_backend\": \"new\"}}}");
    report = merged();
    expect_value(report, "backends.x.communication_backend", "\"new\"", again, 3);
    EXPECT_HAS_NOT(report, "\"old\"");
    ds_accel_free_text(report);
}

Test(core_config, keys_with_a_dot_are_quoted)
{
    const char *file = test_write(
        "etc/ds-accel.json", "{\"backends\": {\"xpu.external\": {\"compile_backend\": \"x\"}}}");
    ds_accel_t *context;
    char line[256];
    char *text;

    expect_merged("backends.\\\"xpu.external\\\".compile_backend", "\"x\"", file, 1);
    context = test_create();
    text = test_report(context, DS_ACCEL_REPORT_CONFIG, NULL, 0);
    snprintf(line, sizeof(line), "backends.\"xpu.external\".compile_backend = \"x\"  # %s:1\n",
             file);
    EXPECT_HAS(text, line);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_config, keys_with_slash_and_tilde_have_an_origin)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    char text[256];
    char value[80];

    snprintf(text, sizeof(text), "{\"trust\": {\"sha256\": {\n\n\"/usr/lib/x~1y.so\": \"%s\"}}}",
             zeros);
    snprintf(value, sizeof(value), "\"%s\"", zeros);
    expect_merged("trust.sha256.\\\"/usr/lib/x~1y.so\\\"", value,
                  test_write("etc/ds-accel.json", text), 3);
}

/* ---- files that cannot be read -------------------------------------------------------------- */

Test(core_config, refuses_what_is_not_json)
{
    static const struct bad rows[] = {
        {"", "1:1", "expected one JSON object"},
        {"\n\n  ", "3:2", "expected one JSON object"},
        {"hello", "1:5", "expected one JSON object"},
        {"{\"allow\": [\"a\",]}", "1:16", "expected one JSON object"},
        {"{\n  \"allow\" [\"a\"]\n}", "2:11", "':' expected"},
        {"{\"accelerator\": \"cpu\"} {}", "1:24", "end of file expected"},
        {"{\"accelerator\": \"cpu\", // no\n}", "1:24", "expected one JSON object"},
        {"[1]", "1:1", "the file\" is an array; expected an object"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, refuses_what_is_not_utf8)
{
    /* jansson reports the position of the last character that it accepted. */
    expect_refused("{\n \"accelerator\": \"c\xff\"}", "2:18", "unable to decode byte 0xff");
    expect_refused("{\"accelerator\": \"\xed\xa0\x80\"}", "1:17", "unable to decode");
}

Test(core_config, refuses_a_nul_character)
{
    static const char bytes[] = "{\"accelerator\": \"c\0pu\"}";
    struct ds_accel_options options = test_options();

    expect_refused("{\"accelerator\": \"c\\u0000pu\"}", "1:27", "\\u0000 is not allowed");
    expect_refused_with(&options, test_write_bytes("etc/ds-accel.json", bytes, sizeof(bytes) - 1),
                        "1:18", "control character 0x0");
}

Test(core_config, refuses_a_key_given_twice)
{
    expect_refused("{\n  \"deny\": [],\n  \"deny\": [\"x\"]\n}", "3:8",
                   "duplicate object key near '\"deny\"'; expected one JSON object whose keys are "
                   "all different");
    expect_refused("{\"probe\": {\"mode\": \"in-process\", \"m\\u006fde\": null}}", "1:44",
                   "duplicate object key");
}

Test(core_config, refuses_a_directory_named_like_a_file)
{
    struct ds_accel_options options = test_options();

    test_path("etc/conf.d/x.json/inside");
    expect_refused_with(&options, test_path("etc/conf.d/x.json"), "1:1",
                        "cannot read it: it is a directory; expected a readable file");
}

Test(core_config, refuses_a_file_in_place_of_the_directory)
{
    struct ds_accel_options options = test_options();

    expect_refused_with(&options, test_write("etc/conf.d", "{}"), "1:1",
                        "cannot read the directory: Not a directory");
}

Test(core_config, a_users_directory_that_cannot_be_read_is_left_out_with_a_warning)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.flags = 0;
    test_write("home/ds-accel", "a file in place of the directory");
    setenv("XDG_CONFIG_HOME", test_path("home"), 1);
    context = test_create_with(&options);
    EXPECT_HAS(test_log, "config: ignored ");
    ds_accel_destroy(context);
}

Test(core_config, a_bad_file_of_op_builders_is_told_once_each_time)
{
    ds_accel_t *context;
    char *text = NULL;
    const char *first;

    test_write("share/ops.json", "{\"backends\": {}, \"deny\": []}");
    context = test_create();
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(ds_accel_report(context, DS_ACCEL_REPORT_INFO, "cpu", 0, &text),
                     DS_ACCEL_ERR_CONFIG);
        first = strstr(ds_accel_last_error(), "ops.json:1:");
        cr_assert_not_null(first, "%s", ds_accel_last_error());
        cr_expect_null(strstr(first + 1, "ops.json:1:"), "%s", ds_accel_last_error());
    }
    test_write("share/ops.json", "{\"backends\": {}}");
    cr_expect_eq(ds_accel_report(context, DS_ACCEL_REPORT_INFO, "cpu", 0, &text), DS_ACCEL_OK);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_config, refuses_a_file_it_may_not_read)
{
    struct ds_accel_options options = test_options();
    const char *file = test_write("etc/ds-accel.json", "{}");
    const uid_t user = geteuid();

    cr_assert_eq(chmod(test_dir(), 0755), 0);
    cr_assert_eq(chmod(file, 0000), 0);
    /* root could read the file */
    cr_assert(user != 0 || seteuid(65534) == 0);
    expect_refused_with(&options, file, "1:1", "cannot read it: Permission denied");
    cr_assert_eq(seteuid(user), 0);
}

Test(core_config, refuses_an_explicit_file_that_is_not_there)
{
    struct ds_accel_options options = test_options();

    options.config_file = test_path("none.json");
    expect_refused_with(&options, options.config_file, "1:1",
                        "cannot read it: No such file or directory");
    options.config_file = NULL;
    setenv("DS_ACCEL_CONFIG", test_path("gone.json"), 1);
    expect_refused_with(&options, test_path("gone.json"), "1:1", "No such file or directory");
}

Test(core_config, refuses_a_link_to_nothing)
{
    struct ds_accel_options options = test_options();
    const char *link = test_path("etc/conf.d/x.json");

    cr_assert_eq(symlink("/nowhere/at-all", link), 0);
    expect_refused_with(&options, link, "1:1", "No such file or directory");
    cr_assert_eq(unlink(link), 0);
    link = test_path("etc/ds-accel.json");
    cr_assert_eq(symlink("/nowhere/at-all", link), 0);
    expect_refused_with(&options, link, "1:1", "No such file or directory");
}

Test(core_config, refuses_a_pipe_without_waiting, .timeout = 60)
{
    struct ds_accel_options options = test_options();
    const char *file = test_path("etc/ds-accel.json");

    cr_assert_eq(mkfifo(file, 0644), 0);
    expect_refused_with(&options, file, "1:1", "it is not a regular file");
}

static const char *write_sized(size_t size_bytes)
{
    char *text = malloc(size_bytes);
    const char *file;

    cr_assert_not_null(text);
    memset(text, ' ', size_bytes);
    memcpy(text, "{}", 2);
    file = test_write_bytes("etc/ds-accel.json", text, size_bytes);
    free(text);
    return file;
}

Test(core_config, reads_one_mebibyte_and_not_a_byte_more)
{
    struct ds_accel_options options = test_options();
    const char *file;

    write_sized(1024 * 1024);
    ds_accel_destroy(test_create_with(&options));
    file = write_sized(1024 * 1024 + 1);
    expect_refused_with(&options, file, "1:1", "at most 1 MiB");
    cr_assert_eq(truncate(file, 100 * 1000 * 1000), 0);
    expect_refused_with(&options, file, "1:1", "at most 1 MiB");
}

Test(core_config, refuses_ten_thousand_levels)
{
    char text[20100] = "{\"allow\": ";
    size_t head = strlen(text);

    memset(text + head, '[', 10000);
    memset(text + head + 10000, ']', 10000);
    strcat(text, "}");
    /* jansson's own limit is 2048 levels; the outer object is the first level. */
    expect_refused(text, "1:2058", "maximum parsing depth reached");
}

/* ---- op builders' files --------------------------------------------------------------------- */

static void expect_report_refused(ds_accel_t *context, uint32_t report, const char *where)
{
    char *text = NULL;

    cr_expect_eq(ds_accel_report(context, report, "mine", DS_ACCEL_FORMAT_JSON, &text),
                 DS_ACCEL_ERR_CONFIG);
    cr_expect_null(text);
    EXPECT_HAS(ds_accel_last_error(), where);
}

Test(core_config, op_builder_files_are_read_when_somebody_asks)
{
    const char *file = test_write("share/vendor.ops.json",
                                  "{\"backends\": {\"mine\": {\n  \"compile_backend\": \"x\"}}}");
    struct ds_accel_options options = test_options();
    ds_accel_t *context = test_create();
    char where[300];
    char *text = NULL;

    snprintf(where, sizeof(where),
             "%s:2:3: unknown key \"compile_backend\"; expected one of "
             "op_builders",
             file);
    test_write("share/a.json", "{\"backends\": {\"mine\": {}}}");
    ds_accel_destroy(context);
    context = test_create();
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    expect_report_refused(context, DS_ACCEL_REPORT_CONFIG, where);
    expect_report_refused(context, DS_ACCEL_REPORT_INFO, where);
    ds_accel_destroy(context);
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(text, where);
    ds_accel_free_text(text);
}

Test(core_config, op_builders_merge_like_everything_else)
{
    char *report;

    test_write("share/ops.json", "{\"backends\": {\"mine\": {\"op_builders\": {\n"
                                 "\"ABuilder\": {\"op\": \"a\", \"cflags\": [\"-O1\"]},\n"
                                 "\"BBuilder\": {\"op\": \"b\"}}}}}");
    test_write("etc/ds-accel.json", "{\"backends\": {\"mine\": {\"op_builders\": {\n"
                                    "\"ABuilder\": {\"cflags\": [\"-O3\"]},\n"
                                    "\"BBuilder\": null}}}}");
    report = merged();
    expect_value(report, "backends.mine.op_builders.ABuilder.op", "\"a\"",
                 test_path("share/ops.json"), 2);
    expect_value(report, "backends.mine.op_builders.ABuilder.cflags", "[\"-O3\"]",
                 test_path("etc/ds-accel.json"), 2);
    expect_value(report, "backends.mine.op_builders.BBuilder", "null",
                 test_path("etc/ds-accel.json"), 3);
    ds_accel_free_text(report);
}
