/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* SHA-256 hashes of plugins, which the configuration may require. */
#include "trust.h"

/* ---- SHA-256 -------------------------------------------------------------------------------- */

Test(core_trust, enforced_hashes_are_required)
{
    char right[65];

    test_add_mock("alpha");
    test_copy(TEST_PLUGINS "/ds_accel_cpu.so", "plugins/ds_accel_cpu.so");
    snprintf(right, sizeof(right), "%s", hash_of(test_path(FILE_PATH)));
    set_trust("enforce", "beta", right);
    expect_no_at("hash", "hash_unlisted", right, "SHA-256");
    set_trust("enforce", "alpha", right);
    expect_yes();
    set_trust("enforce", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_no_at("hash", "hash_mismatch", right, hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    set_trust("enforce", "alpha", right);
    expect_yes();
}

Test(core_trust, one_changed_byte_is_another_hash)
{
    FILE *file;

    test_add_mock("alpha");
    set_trust("enforce", "alpha", hash_of(test_path(FILE_PATH)));
    file = fopen(test_path(FILE_PATH), "ab");
    cr_assert_not_null(file);
    fputc(0, file);
    fclose(file);
    expect_no_at("hash", "hash_mismatch", hash_of(test_path(FILE_PATH)), "");
}

Test(core_trust, with_warn_a_wrong_hash_is_only_told)
{
    test_add_mock("alpha");
    set_trust("warn", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS(test_log, "hash_mismatch");
    test_log[0] = '\0';
    set_trust("warn", "beta", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS(test_log, "hash_unlisted");
    test_log[0] = '\0';
    set_trust("warn", "alpha", hash_of(test_path(FILE_PATH)));
    expect_yes();
    EXPECT_HAS_NOT(test_log, "hash_");
}

Test(core_trust, with_off_no_hash_is_looked_at)
{
    char *text;
    ds_accel_t *context;

    test_add_mock("alpha");
    set_trust("off", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS_NOT(test_log, "hash_");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK);
    text =
        test_compact(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "alpha", DS_ACCEL_FORMAT_JSON));
    EXPECT_HAS(text, "{\"gate\":\"hash\",\"result\":\"skipped\",\"evidence\":\"\"}");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

/* The owner is checked before the hash, so the order of the two reasons is visible. */
Test(core_trust, trust_is_judged_before_the_hash)
{
    test_add_mock("alpha");
    set_trust("enforce", "beta", hash_of(test_path(FILE_PATH)));
    change_mode(FILE_PATH, 0666);
    expect_no("file_writable", test_path(FILE_PATH), "mode 0666");
}
