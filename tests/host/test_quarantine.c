/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Plugins that crashed or hung twice are not probed again. */
#include "cache.h"

#include <unistd.h>

/* ---- quarantine ----------------------------------------------------------------------------- */

Test(core_cache, a_plugin_that_crashed_twice_is_left_alone)
{
    struct ds_accel_options options = options_with_cache();
    struct ds_accel_candidate candidate;
    ds_accel_t *context;

    setup_faulty("probe_segv");
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,\"reason\":\"probe_segv\"");
    expect_report(DS_ACCEL_REPORT_QUARANTINE,
                  "\"quarantined\":false,\"until\":null,\"remaining_s\":0");
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* its verdict is still valid */
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "neighbour");
    candidate = test_candidate(context, "faulty");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_QUARANTINED);
    cr_expect_str_eq(candidate.reason, "quarantined");
    EXPECT_HAS(candidate.detail, "2 strikes, the last: probe_segv: SIGSEGV");
    EXPECT_HAS(candidate.detail, "skipped until 2");
    ds_accel_destroy(context);
    /* explain does not probe a quarantined plugin, neither in a report on all plugins nor on it
       alone. */
    expect_report(DS_ACCEL_REPORT_LIST, "\"state\":\"quarantined\",\"reason\":\"quarantined\"");
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"strikes\":2,");
    context = test_create_with(&options);
    ds_accel_free_text(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "faulty", 0));
    ds_accel_free_text(test_report(context, DS_ACCEL_REPORT_INFO, "faulty", 0));
    ds_accel_destroy(context);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"quarantined\":true,\"until\":\"20");
    /* Clearing the verdicts does not clear the strikes. */
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
}

/* Force the plugin twice: each time it is probed again and gets one more strike. */
static void crash_twice(void)
{
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
}

Test(core_cache, quarantine_ends_by_force_and_by_command)
{
    setup_faulty("probe_segv");
    crash_twice();
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* lifted, probed, crashed */
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_eq(clear_quarantine("neighbour"), DS_ACCEL_ERR_NOT_FOUND);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    cr_expect_eq(clear_quarantine("faulty"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
    cr_expect_eq(clear_quarantine("faulty"), DS_ACCEL_ERR_NOT_FOUND);
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* the plugin was probed again */
    cr_expect_eq(clear_quarantine(NULL), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
}

static void examine(void)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    char *text = NULL;

    cr_expect_eq(ds_accel_report(context, DS_ACCEL_REPORT_DOCTOR, NULL, 0, &text),
                 DS_ACCEL_ERR_STATE);
    EXPECT_HAS(text, "1 crash or hang is counted");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_cache, reports_one_after_the_other_are_one_strike)
{
    setup_faulty("sometimes");
    for (int i = 0; i < 3; i++) {
        expect_report(DS_ACCEL_REPORT_LIST, "\"state\":\"crashed\",\"reason\":\"probe_segv\"");
        expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"strikes\":1,");
        examine();
    }
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,\"reason\":\"probe_segv\"");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"state\":\"crashed\""); /* the crash verdict is stored */
    expect_chosen("neighbour");
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    /* a forced use probes the plugin again, unlike a report */
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
}

Test(core_cache, one_left_alone_shows_what_it_printed)
{
    struct ds_accel_options options = options_with_cache();

    setup_faulty("sometimes");
    crash_twice();
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"state\":\"quarantined\"");
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"output\":\"fixture: it will crash now");
}

Test(core_cache, quarantine_ends_with_another_file)
{
    setup_faulty("probe_segv");
    crash_twice();
    put("none", "faulty");
    expect_chosen("faulty");
}

Test(core_cache, a_good_answer_forgives)
{
    setup_faulty("sometimes");
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,");
    cr_assert_eq(unlink(test_path("crash")), 0);
    force("faulty", DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
    test_write("crash", "");
    expect_chosen("faulty"); /* the good verdict is valid for an hour */
}

Test(core_cache, one_crash_is_one_strike_beside_a_registered_backend)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context;

    setup_faulty("probe_segv");
    test_write("etc/ds-accel.json",
               "{\"probe\": {\"parallel\": 8}, \"detection_order\": [\"absent\", \"faulty\"]}");
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, no_device_entry), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,");
}
