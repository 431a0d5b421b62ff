/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ds_accel_op_settings_edit(): the file that gets the settings of an op, and its new text. */
#include "fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#define SETTINGS "{\"block_bytes\": 4096, \"single_submit\": true}"
#define BOTH "\"block_bytes\": 4096, \"single_submit\": true"

/* Edit the file of a context; expect this path and this text. */
static void expect_edit(const struct ds_accel_options *options, const char *settings,
                        const char *wanted_path, const char *wanted)
{
    ds_accel_t *context = test_create_with(options);
    char *path = NULL;
    char *text = NULL;

    MUST(ds_accel_op_settings_edit(context, "async_io", settings, &path, &text));
    cr_expect_str_eq(path, wanted_path, "%s, wanted %s", path, wanted_path);
    cr_expect_str_eq(text, wanted, "%s\nwanted:\n%s", text, wanted);
    ds_accel_free_text(path);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

static void expect_text(const char *old, const char *settings, const char *wanted)
{
    struct ds_accel_options options = test_options();

    options.config_file = test_write("mine.json", old);
    expect_edit(&options, settings, options.config_file, wanted);
}

Test(core_op_settings, new_settings_are_added_to_an_empty_file)
{
    expect_text("{}\n", SETTINGS, "{\n  \"op_settings\": {\"async_io\": {" BOTH "}}\n}\n");
    expect_text(" { } ", SETTINGS, " {\n  \"op_settings\": {\"async_io\": {" BOTH "}}\n} ");
}

Test(core_op_settings, everything_else_keeps_its_form)
{
    expect_text("{\"accelerator\":\"cpu\"}", SETTINGS,
                "{\"accelerator\":\"cpu\", \"op_settings\": {\"async_io\": {" BOTH "}}}");
    expect_text("{\n\t\"op_settings\" : {\n\t\t\"x\": {\"a\": 1.50, \"b\": \"\\u0041}\"}\n\t}\n}",
                SETTINGS,
                "{\n\t\"op_settings\" : {\n\t\t\"x\": {\"a\": 1.50, \"b\": \"\\u0041}\"},\n\t\t"
                "\"async_io\": {" BOTH "}\n\t}\n}");
}

Test(core_op_settings, a_setting_that_exists_is_replaced)
{
    expect_text(
        "{\"op_settings\": {\"async_io\": {\n \"queue_depth\":  3 ,\n \"block_bytes\" : 512,\n"
        " \"engine\": \"threads\"\n}}}\n",
        SETTINGS,
        "{\"op_settings\": {\"async_io\": {\n \"queue_depth\":  3 ,\n \"block_bytes\" : 4096,\n"
        " \"engine\": \"threads\",\n \"single_submit\": true\n}}}\n");
    expect_text(
        "{\"op_settings\": {\"async_io\": {\"block_bytes\": null}}, \"accelerator\": \"cpu\"}",
        "{\"block_bytes\": 4096}",
        "{\"op_settings\": {\"async_io\": {\"block_bytes\": 4096}}, \"accelerator\": \"cpu\"}");
}

Test(core_op_settings, null_is_replaced_by_an_object)
{
    expect_text("{\"op_settings\": {\"async_io\": null}}", SETTINGS,
                "{\"op_settings\": {\"async_io\": {" BOTH "}}}");
    expect_text("{\"op_settings\": {\"async_io\": {}, \"x\": {}}}", SETTINGS,
                "{\"op_settings\": {\"async_io\": {" BOTH "}, \"x\": {}}}");
}

Test(core_op_settings, the_explicit_file_goes_before_the_users)
{
    struct ds_accel_options options = test_options();

    options.flags = 0;
    setenv("XDG_CONFIG_HOME", test_path("xdg"), 1);
    test_write("xdg/ds-accel/a.json", "{\"op_settings\": {\"async_io\": {\"queue_depth\": 3}}}");
    options.config_file = test_write("mine.json", "{}");
    expect_edit(&options, SETTINGS, options.config_file,
                "{\n  \"op_settings\": {\"async_io\": {" BOTH "}}\n}");
}

Test(core_op_settings, the_last_file_of_the_user_with_settings_of_the_op_gets_them)
{
    struct ds_accel_options options = test_options();
    char wanted[256];

    options.flags = 0;
    setenv("XDG_CONFIG_HOME", test_path("xdg"), 1);
    snprintf(wanted, sizeof(wanted), "%s", test_path("xdg/ds-accel/op_settings.json"));
    expect_edit(&options, SETTINGS, wanted,
                "{\n  \"op_settings\": {\"async_io\": {" BOTH "}}\n}\n");
    test_write("xdg/ds-accel/z.json", "{\"op_settings\": {\"cpu_adam\": {}}}");
    test_write("xdg/ds-accel/op_settings.json", "{\"accelerator\": \"cpu\"}");
    expect_edit(&options, SETTINGS, wanted,
                "{\"accelerator\": \"cpu\", \"op_settings\": {\"async_io\": {" BOTH "}}}");
    test_write("xdg/ds-accel/a.json", "{\"op_settings\": {\"async_io\": {}}}");
    snprintf(wanted, sizeof(wanted), "%s",
             test_write("xdg/ds-accel/b.json", "{\"op_settings\": {\"async_io\": {}}}"));
    expect_edit(&options, SETTINGS, wanted, "{\"op_settings\": {\"async_io\": {" BOTH "}}}");
}

Test(core_op_settings, what_cannot_be_edited_is_refused)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *path = NULL;
    char *text = NULL;

    options.config_file = test_write("mine.json", "{}");
    context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_op_settings_edit(NULL, "async_io", SETTINGS, &path, &text),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_REFUSED(ds_accel_op_settings_edit(context, "A", SETTINGS, &path, &text),
                   DS_ACCEL_ERR_INVALID, "no name of an op");
    EXPECT_STATUS(ds_accel_op_settings_edit(context, "async_io", "{}", &path, &text),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_op_settings_edit(context, "async_io", "[1]", &path, &text),
                  DS_ACCEL_ERR_INVALID);
    test_write("mine.json", "{\n  1}");
    EXPECT_REFUSED(ds_accel_op_settings_edit(context, "async_io", SETTINGS, &path, &text),
                   DS_ACCEL_ERR_CONFIG, "mine.json:2:");
    unlink(options.config_file);
    cr_assert_eq(mkfifo(options.config_file, 0600), 0);
    EXPECT_REFUSED(ds_accel_op_settings_edit(context, "async_io", SETTINGS, &path, &text),
                   DS_ACCEL_ERR_IO, "not a regular file");
    cr_expect(path == NULL && text == NULL);
    ds_accel_destroy(context);
}

Test(core_op_settings, a_user_without_a_directory_has_no_file)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    char *path = NULL;
    char *text = NULL;

    options.flags = 0;
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    context = test_create_with(&options);
    EXPECT_REFUSED(ds_accel_op_settings_edit(context, "async_io", SETTINGS, &path, &text),
                   DS_ACCEL_ERR_NOT_FOUND, "neither XDG_CONFIG_HOME nor HOME");
    ds_accel_destroy(context);
}
