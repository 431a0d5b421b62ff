/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Configuration: which files are read, how they merge, and how precisely a bad one is refused. */
#include "fixture.h"

#include <sys/stat.h>
#include <unistd.h>

/* The merged configuration that a context with these options has, as compact JSON. */
static char *merged_with(const struct ds_accel_options *options)
{
    ds_accel_t *context = test_create_with(options);
    char *text = test_report(context, DS_ACCEL_REPORT_CONFIG, NULL, DS_ACCEL_FORMAT_JSON);

    ds_accel_destroy(context);
    return test_compact(text);
}

static char *merged(void)
{
    struct ds_accel_options options = test_options();

    return merged_with(&options);
}

/* "key":...,"value":...,"origin":"FILE:LINE" in the merged configuration. */
static void expect_value(const char *report, const char *key, const char *value, const char *file,
                         int line)
{
    char wanted[1024];

    snprintf(wanted, sizeof(wanted), "{\"key\":\"%s\",\"value\":%s,\"origin\":\"%s:%d\"}", key,
             value, file, line);
    EXPECT_HAS(report, wanted);
}

static void expect_merged(const char *key, const char *value, const char *file, int line)
{
    char *report = merged();

    expect_value(report, key, value, file, line);
    ds_accel_free_text(report);
}

/* Creating fails, makes no context, and says FILE:WHERE: ...SAYS... */
static void expect_refused_with(const struct ds_accel_options *options, const char *file,
                                const char *where, const char *says)
{
    ds_accel_t *const untouched = (ds_accel_t *)(uintptr_t)&says;
    ds_accel_t *context = untouched;
    const char *line = NULL;
    char prefix[600];

    cr_expect_eq(ds_accel_create(options, &context), DS_ACCEL_ERR_CONFIG, "%s: %s", file, says);
    cr_expect_eq(context, untouched, "%s: a context in spite of %s", file, says);
    snprintf(prefix, sizeof(prefix), "%s:%s: ", file, where);
    line = strstr(ds_accel_last_error(), prefix);
    cr_expect_not_null(line, "no %s in:\n%s", prefix, ds_accel_last_error());
    cr_expect(line != NULL && strstr(line, says) != NULL, "no %s in:\n%s", says,
              ds_accel_last_error());
}

static void expect_refused(const char *text, const char *where, const char *says)
{
    struct ds_accel_options options = test_options();

    expect_refused_with(&options, test_write("etc/ds-accel.json", text), where, says);
}

struct bad {
    const char *text;
    const char *where;
    const char *says;
};

#define EXPECT_ALL_REFUSED(rows) \
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) { \
        expect_refused(rows[row].text, rows[row].where, rows[row].says); \
    }

/* ---- layers --------------------------------------------------------------------------------- */

/* Byte by byte, but for the file that is shipped, which lies below other packages'. */
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

Test(core_config, without_an_absolute_xdg_folder_the_home_folder_is_used)
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
    /* jansson names the last character that it understood. */
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

Test(core_config, refuses_a_folder_named_like_a_file)
{
    struct ds_accel_options options = test_options();

    test_path("etc/conf.d/x.json/inside");
    expect_refused_with(&options, test_path("etc/conf.d/x.json"), "1:1",
                        "cannot read it: it is a directory; expected a readable file");
}

Test(core_config, refuses_a_file_in_place_of_the_folder)
{
    struct ds_accel_options options = test_options();

    expect_refused_with(&options, test_write("etc/conf.d", "{}"), "1:1",
                        "cannot read the folder: Not a directory");
}

Test(core_config, a_users_folder_that_cannot_be_read_is_left_out_with_a_warning)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.flags = 0;
    test_write("home/ds-accel", "a file in place of the folder");
    setenv("XDG_CONFIG_HOME", test_path("home"), 1);
    context = test_create_with(&options);
    EXPECT_HAS(test_log, "config: left out ");
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
    /* root may read everything */
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
    /* jansson's own limit is 2048 levels; the object is the first. */
    expect_refused(text, "1:2058", "maximum parsing depth reached");
}

/* ---- well-formed but wrong ------------------------------------------------------------------ */

Test(core_config, rejects_unknown_key_with_suggestion)
{
    static const struct bad rows[] = {
        {"{\"acelerator\": \"cpu\"}", "1:2",
         "unknown key \"acelerator\"; did you mean \"accelerator\"?"},
        {"{\"probe\":\n  {\"mode\": \"in-process\", \"timout_ms\": 5}}", "2:26",
         "unknown key \"timout_ms\"; did you mean \"timeout_ms\"?"},
        {"{\"trust\": {\"sha265\": {}}}", "1:12", "did you mean \"sha256\"?"},
        {"{\"backends\": {\"cuda\": {\n    \"communication_backnd\": \"nccl\"}}}", "2:5",
         "did you mean \"communication_backend\"?"},
        {"{\"backends\": {\"cuda\": {\"env\": [{\"name\": \"A\", \"rule\": \"unset\"},\n"
         "{\"name\": \"B\", \"valeu\": \"1\"}]}}}",
         "2:15", "did you mean \"value\"?"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"XBuilder\": {\"op\": \"x\",\n"
         " \"source\": []}}}}}",
         "2:2", "did you mean \"sources\"?"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"XBuilder\": {\"op\": \"x\",\n"
         " \"requires\": {\"librarys\": []}}}}}}",
         "2:15", "did you mean \"libraries\"?"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_unknown_key_with_all_that_are_known)
{
    expect_refused("{\"colour\": \"blue\"}", "1:2",
                   "unknown key \"colour\"; expected one of accelerator, detection_order, "
                   "plugin_dirs, allow, deny, probe, trust, layers, validate, trace, "
                   "communication_backends, compile_backends, allocator, backends");
    expect_refused("{\"probe\": {\"colour\": 1}}", "1:12",
                   "expected one of mode, containment, timeout_ms");
}

Test(core_config, rejects_a_value_of_another_type)
{
    static const struct bad rows[] = {
        {"{\"accelerator\": 1}", "1:17",
         "\"accelerator\" is a whole number; expected a text or null"},
        {"{\"allow\": \"*\"}", "1:11", "\"allow\" is a text; expected an array or null"},
        {"{\"allow\":\n[\"a\",\n  7]}", "3:3", "\"allow\" is a whole number; expected a text"},
        {"{\"probe\": []}", "1:11", "\"probe\" is an array; expected an object or null"},
        {"{\"probe\": {\"timeout_ms\": 1.5}}", "1:26",
         "\"timeout_ms\" is a number; expected a whole number or null"},
        {"{\"probe\": {\"timeout_ms\": \"5\"}}", "1:26", "\"timeout_ms\" is a text"},
        {"{\"backends\": {\"cuda\": true}}", "1:23",
         "\"cuda\" is true or false; expected an object or null"},
        {"{\"backends\": {\"cuda\": {\"graph_supported\": \"yes\"}}}", "1:43",
         "\"graph_supported\" is a text; expected true or false or null"},
        {"{\"backends\": {\"cuda\": {\"options\": {\"a\": [1]}}}}", "1:41", "\"a\" is an array"},
        {"{\"backends\": {\"cuda\": {\"env\": [{\"name\": null}]}}}", "1:41",
         "\"name\" is null; expected a text"},
        {"{\"backends\": {\"cuda\": {\"op_builders\": {\"X\": {\"cflags\": [\"-O2\", {}]}}}}}",
         "1:64", "\"cflags\" is an object; expected a text"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, rejects_a_number_out_of_its_range)
{
    static const struct bad rows[] = {
        {"{\"probe\": {\"timeout_ms\": 0}}", "1:26",
         "\"timeout_ms\" is 0; expected a whole number from 1 to 3600000"},
        {"{\"probe\": {\"timeout_ms\": 3600001}}", "1:26", "is 3600001; expected a whole number"},
        {"{\"probe\": {\"timeout_ms\": -1}}", "1:26", "is -1; expected a whole number"},
        {"{\"probe\": {\"timeout_ms\": 99999999999999999999}}", "1:45", "too big integer"},
    };

    EXPECT_ALL_REFUSED(rows);
    expect_merged("probe.timeout_ms", "1",
                  test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 1}}"), 1);
    expect_merged("probe.timeout_ms", "3600000",
                  test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 3600000}}"), 1);
}

Test(core_config, rejects_a_fraction_out_of_its_range)
{
    static const struct bad rows[] = {
        {"{\"allocator\": {\"fraction\": 1.01}}", "1:28", "is 1.01; expected a number from 0 to 1"},
        {"{\"allocator\": {\"fraction\": -0.01}}", "1:28", "is -0.01; expected a number"},
        {"{\"allocator\": {\"fraction\": 2}}", "1:28", "is 2; expected a whole number"},
    };

    EXPECT_ALL_REFUSED(rows);
    expect_merged("allocator.fraction", "1.0",
                  test_write("etc/ds-accel.json", "{\"allocator\": {\"fraction\": 1.0}}"), 1);
}

/* Of any bytes, so that a pointer through it can be written down. */
Test(core_config, a_key_has_at_most_255_bytes)
{
    struct ds_accel_options options = test_options();
    char text[512];
    char key[257];

    memset(key, 'k', sizeof(key));
    snprintf(text, sizeof(text), "{\"backends\": {\"x\": {\"options\": {\"%.255s\": 1}}}}", key);
    test_write("etc/ds-accel.json", text);
    ds_accel_destroy(test_create_with(&options));
    snprintf(text, sizeof(text), "{\"backends\": {\"x\": {\"options\": {\"%.256s\": 1}}}}", key);
    expect_refused(text, "1:32", "a key has 256 bytes");
}

Test(core_config, rejects_a_word_that_is_not_among_the_known)
{
    static const struct bad rows[] = {
        {"{\"probe\": {\"mode\": \"outside\"}}", "1:20",
         "\"mode\" is \"outside\"; expected one of \"isolated\", \"in-process\""},
        {"{\"probe\": {\"mode\": \"in-proces\"}}", "1:20", "did you mean \"in-process\"?"},
        {"{\"trust\": {\"mode\": \"enforced\"}}", "1:20",
         "expected one of \"off\", \"warn\", \"enforce\"; did you mean \"enforce\"?"},
        {"{\"backends\": {\"x\": {\"env\": [{\"name\": \"A\", \"rule\": \"alway\"}]}}}", "1:51",
         "expected one of \"if-unset\", \"always\", \"unset\"; did you mean \"always\"?"},
        {"{\"backends\": {\"x\": {\"supported_dtypes\": [\"float32\", \"half\"]}}}", "1:53",
         "expected one of \"float32\", \"float16\", \"bfloat16\""},
    };

    EXPECT_ALL_REFUSED(rows);
}

#define FACT(key, value) "{\"backends\": {\"x\": {\"" key "\": [" value "]}}}"

Test(core_config, rejects_facts_of_hardware_that_cannot_be_looked_for)
{
    static const char node[] = "expected a pattern below /dev with wildcards in its last part only";
    static const char pci[] = "expected a PCI vendor and, if need be, a class, in lower-case "
                              "hexadecimal: \"10de\", \"10de:03\" or \"10de:0302\"";
    static const char library[] =
        "expected a library's soname, as in libcuda.so.1, or its absolute path";
    static const struct bad rows[] = {
        {FACT("device_nodes", "\"nvidia0\""), "1:38", node},
        {FACT("device_nodes", "\"/sys/x\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/*/card0\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/../etc/passwd\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/..\""), "1:38", node},
        {FACT("device_nodes", "\"/dev//x\""), "1:38", node},
        {FACT("device_nodes", "\"/dev/nvidia[0-9\""), "1:38", "a [ is not closed"},
        {FACT("device_nodes", "\"/dev/a\", 7"), "1:48", "a whole number; expected a text"},
        {FACT("pci", "\"10DE\""), "1:29", pci},
        {FACT("pci", "\"0x10de\""), "1:29", pci},
        {FACT("pci", "\"10d\""), "1:29", pci},
        {FACT("pci", "\"10de:\""), "1:29", pci},
        {FACT("pci", "\"10de:030\""), "1:29", pci},
        {FACT("pci", "\"10de:030200\""), "1:29", pci},
        {FACT("pci", "\"10de 03\""), "1:29", pci},
        {FACT("libraries", "\"lib/libcuda.so\""), "1:35", library},
        {FACT("libraries", "\"cuda\""), "1:35", library},
        {FACT("libraries", "\"/usr/lib/libcuda.so/\""), "1:35", library},
        {FACT("tolerate", "\"nothing\""), "1:34",
         "\"tolerate\" is \"nothing\"; expected one of \"prints_stdout\", "},
        {FACT("tolerate", "\"leaves_threads\""), "1:34", "did you mean \"leaves_thread\"?"},
        {FACT("tolerate", "\"result_forged\""), "1:34", "\"changes_environment\""},
        {FACT("tolerate", "\"probe_segv\""), "1:34", "expected one of"},
        {"{\"probe\": {\"parallel\": 0}}", "1:24", "expected a whole number from 1 to 64"},
        {"{\"probe\": {\"parallel\": 65}}", "1:24", "is 65; expected a whole number"},
    };

    EXPECT_ALL_REFUSED(rows);
}

Test(core_config, takes_facts_of_hardware)
{
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"x\": {\n\"device_nodes\": [\"/dev/a/b[0-9]*\", \"/dev/c.d\"],\n"
               "\"pci\": [\"10de\", \"10de:03\", \"10de:0302\"],\n"
               "\"libraries\": [\"liba.so.1\", \"/opt/b/liba.so\"], \"tolerate\": null}},\n"
               "\"probe\": {\"parallel\": 64}}");
    expect_merged("backends.x.device_nodes", "[\"/dev/a/b[0-9]*\",\"/dev/c.d\"]",
                  test_path("etc/ds-accel.json"), 2);
    expect_merged("backends.x.pci", "[\"10de\",\"10de:03\",\"10de:0302\"]",
                  test_path("etc/ds-accel.json"), 3);
    expect_merged("backends.x.libraries", "[\"liba.so.1\",\"/opt/b/liba.so\"]",
                  test_path("etc/ds-accel.json"), 4);
    expect_merged("probe.parallel", "64", test_path("etc/ds-accel.json"), 5);
}

Test(core_config, takes_remedies_for_reasons_that_there_are)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context = NULL;

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"buy one\", "
               "\"hidden\": null}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_devices\": \"buy one\"}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    cr_expect_not_null(strstr(ds_accel_last_error(), "1:38: \"no_devices\": expected the code"),
                       "%s", ds_accel_last_error());
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"\"}}}}");
    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_CONFIG);
    cr_expect_not_null(strstr(ds_accel_last_error(), "one line of 1 to 400 bytes"), "%s",
                       ds_accel_last_error());
    expect_refused("{\"backends\": {\"alpha\": {\"remedies\": {\"no_device\": \"buy\\none\"}}}}",
                   "1:51", "one line of 1 to 400 bytes");
}

/* What may be tolerated is conduct, but not what spoils the answer: reasons.def knows the codes. */
Test(core_config, tolerates_every_code_of_conduct_and_no_other)
{
    static const struct {
        const char *gate; /* begins one, or NULL */
        const char *code;
    } reasons[] = {
#define GATE(name, what) {name, NULL},
#define REASON(code, meaning, remedy) {NULL, code},
#include "../../core/reasons.def"
#undef REASON
#undef GATE
    };
    const char *gate = "";
    unsigned accepted = 0;

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        struct ds_accel_options options = test_options();
        ds_accel_t *context = NULL;
        char text[160];
        bool may = strcmp(gate, "conduct") == 0 && reasons[i].code != NULL &&
                   strncmp(reasons[i].code, "result_", 7) != 0;

        if (reasons[i].gate != NULL) {
            gate = reasons[i].gate;
            continue;
        }
        snprintf(text, sizeof(text), FACT("tolerate", "\"%s\""), reasons[i].code);
        test_write("etc/ds-accel.json", text);
        cr_expect_eq(ds_accel_create(&options, &context), may ? DS_ACCEL_OK : DS_ACCEL_ERR_CONFIG,
                     "%s: %s", reasons[i].code, ds_accel_last_error());
        accepted += context != NULL;
        ds_accel_destroy(context);
    }
    cr_expect_eq(accepted, 26);
}

#define ENV_NAMED(name) \
    "{\"backends\": {\"x\": {\"env\": [{\"name\": \"" name "\", \"rule\": \"unset\"}]}}}"

Test(core_config, rejects_variables_that_must_not_be_set)
{
    static const struct bad rows[] = {
        {ENV_NAMED("path"), "1:38", "expected a variable's name, [A-Z_][A-Z0-9_]*"},
        {ENV_NAMED("1A"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A-B"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A=B"), "1:38", "expected a variable's name"},
        {ENV_NAMED("A;B"), "1:38", "expected a variable's name"},
        {ENV_NAMED(""), "1:38", "expected a variable's name"},
        {ENV_NAMED("LD_PRELOAD"), "1:38", "LD_* and DS_ACCEL* cannot be set from configuration"},
        {ENV_NAMED("LD_LIBRARY_PATH"), "1:38", "cannot be set from configuration"},
        {ENV_NAMED("DS_ACCEL_X"), "1:38", "cannot be set from configuration"},
        {ENV_NAMED("DS_ACCELERATOR"), "1:38", "cannot be set from configuration"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", ENV_NAMED("_LD_PRELOAD9"));
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_an_env_rule_that_lacks_name_or_value)
{
    static const struct bad rows[] = {
        {"{\"backends\": {\"x\": {\"env\": [\n{\"rule\": \"unset\"}]}}}", "2:1",
         "expected a \"name\" in each element"},
        {"{\"backends\": {\"x\": {\"env\": [\n {\"name\": \"A\", \"rule\": \"always\"}]}}}", "2:2",
         "expected a \"value\""},
        {"{\"backends\": {\"x\": {\"env\": [\n {\"name\": \"A\"}]}}}", "2:2",
         "expected a \"value\""},
    };

    EXPECT_ALL_REFUSED(rows);
}

/* What ds_accel_communication_backend() and its like would cut short, or call nothing. */
Test(core_config, rejects_names_that_do_not_fit_the_interface)
{
    static const struct bad rows[] = {
        {"{\"backends\": {\"x\": {\"communication_backend\": "
         "\"n2345678901234567890123456789012\"}}}",
         "1:46", "expected a name of 1 to 31 bytes"},
        {"{\"backends\": {\"x\": {\"compile_backend\": \"\"}}}", "1:40",
         "expected a name of 1 to 31 bytes"},
        {"{\"compile_backends\": [\"inductor\", \"n2345678901234567890123456789012\"]}", "1:35",
         "expected a name of 1 to 31 bytes"},
        {"{\"backends\": {\"x\": {\"op_builder_dir\": "
         "\"op_builder.n2345678901234567890123456789012345678901234567890123\"}}}",
         "1:39", "expected a name of 1 to 63 bytes"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"backends\": {\"x\": {\"compile_backend\": "
                                    "\"n234567890123456789012345678901\"}}}");
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_names_that_no_backend_can_have)
{
    static const struct bad rows[] = {
        {"{\"accelerator\": \"CUDA\"}", "1:17",
         "\"accelerator\" is \"CUDA\": expected a backend's name, [a-z][a-z0-9_.]{0,30}"},
        {"{\"backends\": {\"x\": {}, \"../x\": {}}}", "1:24",
         "\"../x\": expected a backend's name"},
        {"{\"detection_order\": [\"cpu\", \"\"]}", "1:29", "expected a backend's name"},
        {"{\"accelerator\": \"a2345678901234567890123456789012\"}", "1:17",
         "expected a backend's name"},
        {"{\"backends\": {\"xpu\": {\"defers_to\": {\"driver\": [\"CUDA\"]}}}}", "1:48",
         "expected a backend's name"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"accelerator\": \"a234567890123456789012345678901\"}");
    ds_accel_destroy(test_create());
}

Test(core_config, rejects_relative_plugin_folders)
{
    expect_refused("{\"plugin_dirs\": [\"/abs\", \"rel/dir\"]}", "1:26",
                   "\"plugin_dirs\" is \"rel/dir\": expected an absolute path");
}

#define HEX31 "0123456789abcdef0123456789abcde"

Test(core_config, rejects_a_sha256_that_is_none)
{
    static const struct bad rows[] = {
        {"{\"trust\": {\"sha256\": {\"a/~b\": \"" HEX31 HEX31 "fg\"}}}", "1:31",
         "expected 64 lower-case hexadecimal digits"},
        {"{\"trust\": {\"sha256\": {\"x\": \"" HEX31 HEX31 "F0\"}}}", "1:28",
         "expected 64 lower-case"},
        {"{\"trust\": {\"sha256\": {\"x\": \"" HEX31 "\"}}}", "1:28", "expected 64 lower-case"},
    };

    EXPECT_ALL_REFUSED(rows);
    test_write("etc/ds-accel.json", "{\"trust\": {\"sha256\": {\"x\": \"" HEX31 HEX31 "ff\"}}}");
    ds_accel_destroy(test_create());
}

/* ---- options of backends -------------------------------------------------------------------- */

Test(core_config, rejects_an_option_that_the_package_does_not_declare)
{
    test_write("share/a.json", "{\"backends\": {\"mine\": {\"options\": {\"device_count\": 1}}}}");
    expect_refused("{\"backends\": {\"mine\": {\"options\": {\n  \"device_cuont\": 2}}}}", "2:3",
                   "unknown option \"device_cuont\" of mine; did you mean \"device_count\"?");
    expect_refused("{\"backends\": {\"mine\": {\"options\": {\n\n \"a/b\": 2}}}}", "3:2",
                   "unknown option \"a/b\" of mine");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"mine\": {\"options\": {\"device_count\": 2}},\n"
               " \"other\": {\"options\": {\"anything\": \"goes\"}}}}");
    ds_accel_destroy(test_create());
}

Test(core_config, options_may_be_declared_by_several_packages)
{
    test_write("share/a.json", "{\"backends\": {\"mine\": {\"options\": {\"first\": 1}}}}");
    test_write("share/b.json", "{\"backends\": {\"mine\": {\"options\": {\"second\": 1}}}}");
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"mine\": {\"options\": {\"first\": 2, \"second\": 2}}}}");
    ds_accel_destroy(test_create());
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

/* ---- several problems, and nothing half-applied --------------------------------------------- */

Test(core_config, all_problems_of_all_files_are_listed_at_once)
{
    const char *first = test_write("share/a.json", "{\"allow\": 1,\n\"deny\": 2}");
    const char *second = test_write("etc/ds-accel.json", "{");
    const char *third = test_write("etc/conf.d/a.json", "{\"probe\": {\"timeout_ms\": 0}}");
    struct ds_accel_options options = test_options();

    test_write("etc/conf.d/b.json", "{\"accelerator\": \"cpu\"}");
    expect_refused_with(&options, first, "1:11", "\"allow\" is a whole number");
    expect_refused_with(&options, first, "2:9", "\"deny\" is a whole number");
    expect_refused_with(&options, second, "1:1", "expected one JSON object");
    expect_refused_with(&options, third, "1:26", "\"timeout_ms\" is 0");
}

Test(core_config, a_failed_default_context_reads_the_configuration_again)
{
    test_write("mine.json", "{\"accelerator\": 1}");
    setenv("DS_ACCEL_CONFIG", test_path("mine.json"), 1);
    cr_expect_null(ds_accel_get());
    EXPECT_HAS(ds_accel_last_error(), "mine.json:1:17: ");
    test_write("mine.json", "{\"accelerator\": \"cpu\"}");
    cr_assert_not_null(ds_accel_get(), "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_set_method(ds_accel_get()), "config");
}

/* ---- config check --------------------------------------------------------------------------- */

Test(core_config, check_lists_problems_in_both_formats)
{
    const char *file =
        test_write("etc/ds-accel.json", "{\"allow\": 1,\n\"probe\": {\"mode\": \"x\"}}");
    struct ds_accel_options options = test_options();
    char wanted[512];
    char *text = NULL;

    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_ERR_CONFIG);
    snprintf(wanted, sizeof(wanted),
             "%s:1:11: \"allow\" is a whole number; expected an array or null\n"
             "%s:2:19: \"mode\" is \"x\"; expected one of \"isolated\", \"in-process\"\n",
             file, file);
    cr_expect_str_eq(text, wanted);
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(test_compact(text), "\"schema_version\":1,\"valid\":false,");
    snprintf(wanted, sizeof(wanted), "\"problems\":[{\"file\":\"%s\",\"line\":1,\"column\":11,",
             file);
    EXPECT_HAS(text, wanted);
    EXPECT_HAS(text, "\"line\":2,\"column\":19,\"message\":\"\\\"mode\\\" is \\\"x\\\"; expected");
    ds_accel_free_text(text);
}

Test(core_config, check_of_good_files_says_so)
{
    struct ds_accel_options options = test_options();
    char *text = NULL;

    test_write("share/a.json", "{}");
    test_write("etc/ds-accel.json", "{}");
    cr_expect_eq(ds_accel_config_check(&options, 0, &text), DS_ACCEL_OK);
    cr_expect_str_eq(text, "2 configuration files, no problem\n");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_OK);
    EXPECT_HAS(test_compact(text), "\"valid\":true");
    EXPECT_HAS(text, "\"problems\":[]}");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_config_check(&options, 0, NULL), DS_ACCEL_ERR_INVALID);
}

Test(core_config, the_shipped_files_pass)
{
    struct ds_accel_options options = test_options();
    char *report;
    char *text = NULL;

    options.package_config_dir = TEST_SOURCE "/conf";
    cr_expect_eq(ds_accel_config_check(&options, DS_ACCEL_FORMAT_JSON, &text), DS_ACCEL_OK, "%s",
                 text);
    EXPECT_HAS(test_compact(text), "/conf/ds-accel.json\"");
    EXPECT_HAS(text, "/conf/ops.json\"");
    EXPECT_HAS_NOT(text, "/conf/schema");
    ds_accel_free_text(text);
    report = merged_with(&options);
    EXPECT_HAS(report, "\"key\":\"backends.hpu.communication_backend\",\"value\":\"hccl\"");
    EXPECT_HAS(report, "\"key\":\"backends.cpu.op_builders.CPUAdamBuilder.op\"");
    ds_accel_free_text(report);
}

Test(core_config, without_any_file_a_warning_says_so)
{
    ds_accel_destroy(test_create());
    EXPECT_HAS(test_log, "2 config: no configuration file was found");
}
