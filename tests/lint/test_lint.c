/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ds_accel_lint() reports the rule that each defect breaks. */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- defects and the rules that they break --------------------------------------------------- */

Test(core_lint, tells_the_rule_that_each_defect_breaks)
{
    static const struct {
        const char *defect;
        const char *broken; /* the only failed rule; NULL: none */
    } rows[] = {
        {"none", NULL},
        {"long_table", NULL},
        {"two_generations", NULL},
        {"wrong_name", "DSA-P4"},
        {"no_note", "DSA-P3"},
        {"two_notes", "DSA-P3"},
        {"unknown_required_bit", "DSA-P12"},
        {"undefined_symbol", "DSA-P6"},
        {"extra_export", "DSA-P5"},
        {"entry_null", "DSA-P9"},
        {"short_table", "DSA-P10"},
        {"missing_required_slot", "DSA-P11"},
        {"probe_zero_devices", "DSA-P13"},
        {"executable_stack", "DSA-P107"},
        {"text_relocations", "DSA-P8"},
        {"relative_run_path", "DSA-P108"},
        {"absolute_run_path", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[512];
        char line[64];
        char *text = NULL;
        int32_t status;
        const char *failed;

        snprintf(path, sizeof(path), "%s/%s/ds_accel_%s.so", TEST_FIXTURES, rows[i].defect,
                 rows[i].defect);
        status = ds_accel_lint(NULL, path, 0, &text);
        cr_assert_not_null(text, "%s: %s", rows[i].defect, ds_accel_last_error());
        cr_expect_eq(status, rows[i].broken != NULL ? DS_ACCEL_ERR_ABI : DS_ACCEL_OK, "%s:\n%s",
                     rows[i].defect, text);
        failed = strstr(text, "failed");
        if (rows[i].broken != NULL && failed != NULL) {
            snprintf(line, sizeof(line), "%-8s failed", rows[i].broken);
            cr_expect_not_null(strstr(text, line), "%s:\n%s", rows[i].defect, text);
            cr_expect_null(strstr(failed + 1, " failed"), "%s:\n%s", rows[i].defect, text);
        }
        ds_accel_free_text(text);
    }
}

/* Store the rule that failed in a report: "" if none failed, "?" if several failed. */
static void only_failed(const char *text, char *rule, size_t size)
{
    const char *failed = strstr(text, " failed ");
    const char *line = failed;

    rule[0] = '\0';
    if (failed == NULL) {
        return;
    }
    while (line > text && line[-1] != '\n') {
        line--;
    }
    snprintf(rule, size, "%.*s", (int)strcspn(line, " "), line);
    if (strstr(failed + 1, "  failed ") != NULL) {
        snprintf(rule, size, "?");
    }
}

/* Expect the reason for a fault of faults.txt, which may be an effect on the plugin's process. */
static void expect_fault(const char *fault, const char *rule, const char *reason)
{
    struct ds_accel_options options = test_options();
    char path[512];
    char failed[16];
    char *text = NULL;
    int32_t status;

    snprintf(path, sizeof(path), "%s/faults/%s/ds_accel_faulty.so", TEST_FIXTURES, fault);
    /* Plugins that do not hang get a long limit, because a busy machine may slow them down. */
    options.config_file = test_write("lint.json", strstr(fault, "hang") != NULL
                                                      ? "{\"probe\": {\"timeout_ms\": 700}}"
                                                      : "{\"probe\": {\"timeout_ms\": 60000}}");
    status = ds_accel_lint(&options, path, 0, &text);
    cr_assert_not_null(text, "%s: %s", fault, ds_accel_last_error());
    cr_expect_eq(status, rule[0] != '\0' ? DS_ACCEL_ERR_ABI : DS_ACCEL_OK, "%s:\n%s", fault, text);
    only_failed(text, failed, sizeof(failed));
    cr_expect_str_eq(failed, rule, "%s:\n%s", fault, text);
    cr_expect_not_null(strstr(text, reason), "%s: no %s:\n%s", fault, reason, text);
    ds_accel_free_text(text);
}

Test(core_lint, survives_what_a_plugin_does_to_its_process_and_names_it, .timeout = 120)
{
    static const char *const stages[] = {"load", "entry", "probe"};
    static const char *const ends[][2] = {
        {"segv", "segv"},     {"ill", "ill"},   {"abort", "abort"}, {"exit", "exit"},
        {"signal", "signal"}, {"end", "ended"}, {"hang", "hung"}};
    static const char *const rows[][3] = {
        {"print_stdout", "DSA-P28", "prints_stdout"},
        {"print_stderr", "DSA-P28", "prints_stderr"},
        {"change_signal_mask", "DSA-P28", "changes_signal_mask"},
        {"change_signal_handler", "DSA-P28", "changes_signal_handler"},
        {"change_directory", "DSA-P28", "changes_directory"},
        {"change_locale", "DSA-P28", "changes_locale"},
        {"change_umask", "DSA-P28", "changes_umask"},
        {"change_limit", "DSA-P28", "changes_limit"},
        {"change_environment", "DSA-P28", "changes_environment"},
        {"close_descriptor", "DSA-P28", "result_closed"},
        {"write_descriptor", "DSA-P28", "result_garbled"},
        {"forge", "DSA-P28", "result_forged"},
        {"leave_process", "DSA-P32", "leaves_process"},
        {"leave_daemon", "DSA-P32", "leaves_process"},
        {"leave_thread", "DSA-P32", "leaves_thread"},
        {"tls", "DSA-P2", "bytes for each thread"},
        {"table_features", "DSA-P10", "differ in features"},
        {"missing_library", "DSA-P6", "not installed"},
        {"none", "", "keeps every rule"},
        {"init_busy", "", "keeps every rule"}, /* a second attempt to start it may succeed */
    };

    for (size_t stage = 0; stage < sizeof(stages) / sizeof(stages[0]); stage++) {
        for (size_t end = 0; end < sizeof(ends) / sizeof(ends[0]); end++) {
            char fault[32];
            char reason[32];

            snprintf(fault, sizeof(fault), "%s_%s", stages[stage], ends[end][0]);
            snprintf(reason, sizeof(reason), "process: %s_%s", stages[stage], ends[end][1]);
            expect_fault(fault, "DSA-P26", reason);
        }
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_fault(rows[i][0], rows[i][1], rows[i][2]);
    }
}

Test(core_lint, tells_how_a_plugin_is_linked)
{
    static const char *const rows[][3] = {
        {"linked_lazily", "DSA-P8   failed", "not linked with -z now"},
        {"linked_without_nodelete", "DSA-P8   failed", "not linked with -z nodelete"},
        {"linked_with_a_vendor", "DSA-P7   failed", "linked: libcuda.so.1"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[512];
        char *text = NULL;

        snprintf(path, sizeof(path), "%s/faults/%s/ds_accel_faulty.so", TEST_FIXTURES, rows[i][0]);
        EXPECT_STATUS(ds_accel_lint(NULL, path, 0, &text), DS_ACCEL_ERR_ABI);
        cr_assert_not_null(text, "%s: %s", rows[i][0], ds_accel_last_error());
        EXPECT_HAS(text, rows[i][1]);
        EXPECT_HAS(text, rows[i][2]);
        ds_accel_free_text(text);
    }
}

/* In probe mode in-process, a plugin runs in this process, and lint undoes the plugin's changes. */
Test(core_lint, in_this_process_names_what_was_changed)
{
    struct ds_accel_options options = test_options();
    sigset_t before;
    sigset_t after;
    char *text = NULL;

    options.config_file = test_write("lint.json", "{\"probe\": {\"mode\": \"in-process\"}}");
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    cr_expect_eq(ds_accel_lint(&options,
                               TEST_FIXTURES "/faults/change_signal_mask/ds_accel_faulty.so", 0,
                               &text),
                 DS_ACCEL_ERR_ABI);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    EXPECT_HAS(text, "DSA-P28  failed");
    EXPECT_HAS(text, "changes_signal_mask: SIGUSR1 is blocked now");
    cr_expect_eq(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
    ds_accel_free_text(text);
}

Test(core_lint, an_absent_file_is_an_error)
{
    char *text = NULL;

    cr_expect_eq(ds_accel_lint(NULL, "/nonexistent/ds_accel_x.so", 0, &text), DS_ACCEL_ERR_IO);
    cr_expect_null(text);
}

Test(core_lint, without_descriptors_for_a_helper_no_rule_is_judged)
{
    struct rlimit limit;
    struct rlimit low;
    char *text = NULL;
    int free_fd = dup(0);

    close(free_fd);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)free_fd + 3;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    cr_expect_eq(ds_accel_lint(NULL, TEST_FIXTURES "/none/ds_accel_none.so", 0, &text),
                 DS_ACCEL_ERR_IO);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_null(text);
    cr_expect_not_null(strstr(ds_accel_last_error(), "helper_refused"), "%s",
                       ds_accel_last_error());
}
