/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The search path: which files are found, in which order, and which files shadow others. */
#include "detect.h"

/* ---- the search path ------------------------------------------------------------------------ */

Test(core_scan, the_first_plugin_of_a_name_shadows_later_ones)
{
    struct ds_accel_options options = test_options();
    struct ds_accel_candidate first = {.struct_size = sizeof(first)};
    struct ds_accel_candidate second = {.struct_size = sizeof(second)};
    const char *dirs[2];
    ds_accel_t *context;

    use_shipped_defaults();
    test_add_mock("alpha");
    test_copy(TEST_MOCKS "/ds_accel_alpha.so", "more/ds_accel_alpha.so");
    dirs[0] = test_path("more");
    dirs[1] = test_path("plugins");
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 2;
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_candidate_get(context, 0, &first), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_candidate_get(context, 1, &second), DS_ACCEL_OK);
    cr_expect_eq(first.state, DS_ACCEL_STATE_SELECTED);
    cr_expect_not_null(strstr(first.path, "/more/"));
    cr_expect_eq(second.state, DS_ACCEL_STATE_SHADOWED);
    cr_expect_str_eq(second.reason, "shadowed");
    cr_expect_not_null(strstr(second.detail, "/more/"));
    ds_accel_destroy(context);
}

Test(core_scan, a_directory_given_twice_under_two_names_is_scanned_once)
{
    struct ds_accel_options options = test_options();
    char with_dot[256];
    const char *dirs[3];
    ds_accel_t *context;
    unsigned found = 0;

    test_add_mock("alpha");
    snprintf(with_dot, sizeof(with_dot), "%s/./plugins/.", test_dir());
    dirs[0] = test_path("plugins");
    dirs[1] = with_dot;
    dirs[2] = test_path("does/not/exist");
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 3;
    setenv("DS_ACCEL_PLUGIN_PATH", dirs[0], 1);
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

        cr_assert_eq(ds_accel_candidate_get(context, i, &candidate), DS_ACCEL_OK);
        found += strcmp(candidate.name, "alpha") == 0;
    }
    cr_expect_eq(found, 1);
    EXPECT_HAS(test_log, "2 scan: ");
    EXPECT_HAS(test_log, "does/not/exist is not a directory");
    ds_accel_destroy(context);
}

/* A name of 31 bytes is valid; a name of 32 bytes or with another character is not. */
Test(core_scan, a_file_whose_name_no_backend_has_is_rejected)
{
    static const struct {
        const char *file;
        const char *reason;
    } rows[] = {
        {"plugins/ds_accel_a123456789012345678901234567890.so", "name_mismatch"},
        {"plugins/ds_accel_a1234567890123456789012345678901.so", "bad_name"},
        {"plugins/ds_accel_Alpha.so", "bad_name"},
        {"plugins/ds_accel_1alpha.so", "bad_name"},
        {"plugins/ds_accel_al-pha.so", "bad_name"},
    };
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    unsigned found = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        test_copy(TEST_MOCKS "/ds_accel_alpha.so", rows[i].file);
    }
    context = test_create_with(&options);
    ds_accel_free_text(test_report(context, DS_ACCEL_REPORT_LIST, NULL, DS_ACCEL_FORMAT_JSON));
    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

        cr_assert_eq(ds_accel_candidate_get(context, i, &candidate), DS_ACCEL_OK);
        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
            if (strstr(candidate.path, rows[row].file) != NULL) {
                cr_expect_str_eq(candidate.reason, rows[row].reason, "%s: %s", candidate.path,
                                 candidate.reason);
                found++;
            }
        }
    }
    cr_expect_eq(found, sizeof(rows) / sizeof(rows[0]));
    ds_accel_destroy(context);
}

/* The order does not depend on the file system. */
Test(core_scan, the_files_of_a_directory_come_in_byte_wise_order)
{
    static const char *const names[] = {"zeta", "beta", "x9", "alpha", "x10", "gamma", "Upper"};
    struct ds_accel_options options = test_options();
    char before[512] = "";
    ds_accel_t *context;
    char *report;
    unsigned found = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];

        snprintf(path, sizeof(path), "share/%s.json", names[i]);
        test_write(path, "{}");
    }
    context = test_create_with(&options);
    report = test_report(context, DS_ACCEL_REPORT_CONFIG, NULL, DS_ACCEL_FORMAT_JSON);
    for (const char *at = report; (at = strstr(at, "/share/")) != NULL; at++) {
        char name[512];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "\""), at);
        cr_expect_lt(strcmp(before, name), 0, "%s stands before %s", before, name);
        memcpy(before, name, sizeof(before));
        found++;
    }
    cr_expect_eq(found, sizeof(names) / sizeof(names[0]));
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

Test(core_scan, searches_options_then_environment_then_configuration_then_beside_the_library)
{
    struct ds_accel_options options = test_options();
    char config[512];
    const char *from[] = {"a", "b", "c"};
    const char *dirs[1];
    ds_accel_t *context;

    for (size_t i = 0; i < 3; i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/ds_accel_mock.so", from[i]);
        test_copy(TEST_PLUGINS "/ds_accel_mock.so", path);
    }
    dirs[0] = test_path("a");
    options.plugin_dirs = dirs;
    setenv("DS_ACCEL_PLUGIN_PATH", test_path("b"), 1);
    snprintf(config, sizeof(config), "{\"plugin_dirs\": [\"%s\"]}", test_path("c"));
    test_write("etc/ds-accel.json", config);
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    for (uint32_t i = 0, position = 0; i < ds_accel_candidate_count(context); i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
        static const char *const wanted[] = {"/a/", "/b/", "/c/", "/lib/ds-accel/"};

        cr_assert_eq(ds_accel_candidate_get(context, i, &candidate), DS_ACCEL_OK);
        if (strcmp(candidate.name, "mock") == 0 && position < 4) {
            cr_expect_not_null(strstr(candidate.path, wanted[position]), "%u: %s", position,
                               candidate.path);
            position++;
        }
        if (i + 1 == ds_accel_candidate_count(context)) {
            cr_expect_eq(position, 4);
        }
    }
    ds_accel_destroy(context);
}
