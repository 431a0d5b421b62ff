/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Plugins probed in parallel: choice and reports are the same as with one probe at a time,
 * whichever probe finishes first. The plugins are tests/fixtures/fault.c under several names.
 */
#include "clock.h"
#include "fixture.h"

#include <sys/stat.h>
#include <unistd.h>

static void add_crowd(const char *name)
{
    char from[512];
    char to[128];

    snprintf(from, sizeof(from), TEST_FIXTURES "/crowd/ds_accel_%s.so", name);
    snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", name);
    test_copy(from, to);
}

static void add_neighbour(void)
{
    test_copy(TEST_FIXTURES "/faults/neighbour/ds_accel_neighbour.so",
              "plugins/ds_accel_neighbour.so");
}

static ds_accel_t *create(int parallel, int timeout_ms, const char *order)
{
    char config[1024];

    snprintf(config, sizeof(config),
             "{\"detection_order\": [%s], \"deny\": [\"mock\"], "
             "\"probe\": {\"parallel\": %d, \"timeout_ms\": %d}}",
             order, parallel, timeout_ms);
    test_write("etc/ds-accel.json", config);
    setenv("DS_ACCEL_CACHE", "off", 1);
    return test_create();
}

/* Remove the elapsed times, the only part of the report that may differ. */
static void leave_out_times(char *json)
{
    static const char key[] = "\"elapsed_us\":";
    char *at = json;

    while ((at = strstr(at, key)) != NULL) {
        char *digits = at + sizeof(key) - 1;

        memmove(digits, digits + strspn(digits, " 0123456789"),
                strlen(digits + strspn(digits, " 0123456789")) + 1);
        at = digits;
    }
}

static char *report(int parallel, uint32_t kind, const char *order)
{
    ds_accel_t *context = create(parallel, 20000, order);
    char *text;

    if (kind == DS_ACCEL_REPORT_DETECT) {
        cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    }
    text = test_report(context, kind, NULL, DS_ACCEL_FORMAT_JSON);
    leave_out_times(text);
    ds_accel_destroy(context);
    return text;
}

static void expect_same(uint32_t kind, const char *order, const char *part)
{
    static const int widths[] = {2, 4, 64};
    char *one = report(1, kind, order);

    EXPECT_HAS(one, part);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        char *several = report(widths[i], kind, order);

        cr_expect_str_eq(several, one, "parallel %d:\n%s\nand one by one:\n%s", widths[i], several,
                         one);
        ds_accel_free_text(several);
    }
    ds_accel_free_text(one);
}

/* The probes of the later plugins finish at once, the probe of the first plugin after a delay. */
Test(core_probe, the_first_in_order_is_chosen_and_not_the_first_to_answer, .timeout = 120)
{
    add_crowd("slow1");
    add_crowd("slow2");
    add_crowd("slow3");
    add_neighbour();
    expect_same(DS_ACCEL_REPORT_DETECT, "\"slow2\", \"neighbour\", \"slow1\", \"slow3\"",
                "\"accelerator\": \"slow2\"");
}

Test(core_probe, those_behind_the_chosen_one_are_not_needed_however_many_were_asked)
{
    ds_accel_t *context;

    add_crowd("slow1");
    add_crowd("probe_segv");
    add_neighbour();
    context = create(4, 20000, "\"slow1\", \"neighbour\", \"probe_segv\"");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "slow1");
    cr_expect_eq(test_candidate(context, "neighbour").state, DS_ACCEL_STATE_NOT_PROBED);
    cr_expect_str_eq(test_candidate(context, "neighbour").reason, "not_needed");
    cr_expect_eq(test_candidate(context, "probe_segv").state, DS_ACCEL_STATE_NOT_PROBED);
    cr_expect_str_eq(test_candidate(context, "probe_segv").reason, "not_needed");
    ds_accel_destroy(context);
}

Test(core_probe, explain_says_the_same_of_several_asked_at_a_time, .timeout = 120)
{
    add_crowd("slow1");
    add_crowd("slow2");
    add_crowd("slow4");
    add_crowd("entry_abort");
    add_crowd("leave_thread");
    add_neighbour();
    expect_same(DS_ACCEL_REPORT_EXPLAIN, "\"slow4\", \"entry_abort\", \"slow1\", \"leave_thread\"",
                "\"leaves_thread\"");
}

Test(core_probe, a_crash_among_several_disturbs_no_other, .timeout = 120)
{
    static const char *const good[] = {"slow1", "slow2", "slow3", "slow4", "neighbour"};
    static const char *const bad[][2] = {{"probe_segv", "probe_segv"},
                                         {"load_ill", "load_ill"},
                                         {"forge", "result_forged"},
                                         {"probe_exit", "probe_exit"}};
    ds_accel_t *context;

    for (size_t i = 0; i < 4; i++) {
        add_crowd(good[i]);
        add_crowd(bad[i][0]);
    }
    add_neighbour();
    context = create(8, 20000, "\"slow1\", \"probe_segv\"");
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(test_candidate(context, good[i]).state, DS_ACCEL_STATE_AVAILABLE, "%s",
                     good[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(test_candidate(context, bad[i][0]).state, DS_ACCEL_STATE_CRASHED);
        cr_expect_str_eq(test_candidate(context, bad[i][0]).reason, bad[i][1]);
    }
    ds_accel_destroy(context);
}

/* The probe of a plugin after the selected one hangs, and its verdict is not needed: detection does
   not wait for its deadline. */
Test(core_probe, one_that_hangs_behind_the_chosen_one_is_not_waited_for, .timeout = 120)
{
    uint64_t start_ns;
    ds_accel_t *context;

    add_crowd("probe_segv");
    add_crowd("probe_hang");
    add_neighbour();
    context = create(4, 60000, "\"probe_segv\", \"neighbour\", \"probe_hang\"");
    start_ns = now_ns();
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "neighbour");
    cr_expect_str_eq(test_candidate(context, "probe_segv").reason, "probe_segv");
    cr_expect_str_eq(test_candidate(context, "probe_hang").reason, "not_needed");
    cr_expect_lt(elapsed_ns(start_ns), 30e9);
    ds_accel_destroy(context);
}

/* slow1 is probed after all when its turn comes: init_fails, before it, passed its probe but did
   not start. */
Test(core_probe, one_that_was_not_waited_for_is_asked_when_its_turn_comes, .timeout = 120)
{
    ds_accel_t *context;

    test_copy(TEST_FIXTURES "/init_fails/ds_accel_init_fails.so", "plugins/ds_accel_init_fails.so");
    add_crowd("slow1");
    context = create(4, 20000, "\"init_fails\", \"slow1\"");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "slow1");
    cr_expect_str_eq(test_candidate(context, "init_fails").reason, "start_failed");
    ds_accel_destroy(context);
}

/* A vendor's runtime gets time to clean up, because SIGTERM precedes SIGKILL. */
Test(core_probe, one_that_hangs_is_asked_to_end_before_it_is_killed, .timeout = 120)
{
    const char *count = test_path("count");
    ds_accel_t *context;
    struct stat info;

    test_copy(TEST_FIXTURES "/faults/notes_term/ds_accel_faulty.so", "plugins/ds_accel_faulty.so");
    add_neighbour();
    setenv("DS_TEST_COUNT_FILE", count, 1);
    context = create(1, 1000, "\"faulty\", \"neighbour\"");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "neighbour");
    cr_expect_str_eq(test_candidate(context, "faulty").reason, "probe_hung");
    cr_expect_eq(stat(count, &info), 0, "SIGTERM never came");
    cr_expect_gt(info.st_size, 0);
    ds_accel_destroy(context);
}

static void expect_asker(const char *mode, bool is_other)
{
    struct ds_accel_candidate candidate;
    ds_accel_t *context;
    long asker = 0;
    long process = 0;

    setenv("DS_ACCEL_PROBE", mode, 1);
    context = create(1, 20000, "\"faulty\"");
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, "faulty");
    cr_expect_eq(sscanf(candidate.detail, "%ld asks in %ld", &asker, &process), 2, "%s",
                 candidate.detail);
    cr_expect_eq(asker, getpid());
    cr_expect_eq(process != getpid(), is_other);
    ds_accel_destroy(context);
}

Test(core_probe, a_plugin_learns_who_asks)
{
    test_copy(TEST_FIXTURES "/faults/asker/ds_accel_faulty.so", "plugins/ds_accel_faulty.so");
    expect_asker("isolated", true);
    expect_asker("in-process", false);
}
