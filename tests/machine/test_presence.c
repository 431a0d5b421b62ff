/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gate power: whether a probe of a plugin would wake suspended devices.
 * tests/machines/suspended-gpu is a complete recorded machine; the tests write the other machines
 * to test_dir()/machine.
 */
#include "fixture.h"

#define SUSPENDED TEST_SOURCE "/tests/machines/suspended-gpu"

static void add_pci(const char *address, const char *vendor, const char *class, const char *status)
{
    static const char *const files[] = {"vendor", "class", "power/runtime_status"};
    const char *const values[] = {vendor, class, status};

    for (size_t i = 0; i < 3 && values[i] != NULL; i++) {
        char path[128];
        char text[64];

        snprintf(path, sizeof(path), "machine/sys/bus/pci/devices/%s/%s", address, files[i]);
        snprintf(text, sizeof(text), "%s\n", values[i]);
        test_write(path, text);
    }
}

static ds_accel_t *create_on(const char *machine)
{
    struct ds_accel_options options = test_options();

    options.machine_root = machine;
    return test_create_with(&options);
}

static ds_accel_t *detect_on(const char *machine, const char *chosen)
{
    ds_accel_t *context = create_on(machine);

    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), chosen);
    return context;
}

/* Expect a gate of one candidate, with this result and evidence, in the report explain. */
static void expect_gate(ds_accel_t *context, const char *gate, const char *result,
                        const char *evidence)
{
    char *report =
        test_compact(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "cuda", DS_ACCEL_FORMAT_JSON));
    char wanted[256];

    snprintf(wanted, sizeof(wanted), "{\"gate\":\"%s\",\"result\":\"%s\",\"evidence\":\"%s\"}",
             gate, result, evidence);
    EXPECT_HAS(report, wanted);
    ds_accel_free_text(report);
}

/* True if a file of this name has been opened as a library in this process. */
static bool is_mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;

    cr_assert_not_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        found = found || strstr(line, name) != NULL;
    }
    fclose(maps);
    return found;
}

static void expect_asleep(ds_accel_t *context, const char *detail)
{
    struct ds_accel_candidate candidate = test_candidate(context, "cuda");

    cr_expect_eq(candidate.state, DS_ACCEL_STATE_UNAVAILABLE, "%s", candidate.state_name);
    cr_expect_str_eq(candidate.reason, "asleep");
    cr_expect_str_eq(candidate.stage, "power");
    cr_expect_str_eq(candidate.detail, detail);
    cr_expect_neq(candidate.remedy[0], '\0');
    cr_expect_not(is_mapped("ds_accel_cuda.so"));
}

static void prepare(void)
{
    test_copy(TEST_SOURCE "/conf/ds-accel.json", "share/ds-accel.json");
    test_add_mock("cuda");
    unsetenv("DS_ACCELERATOR");
}

TestSuite(core_presence, .init = prepare);

Test(core_presence, a_plugin_whose_devices_all_sleep_is_not_loaded)
{
    ds_accel_t *context = detect_on(SUSPENDED, "cpu");

    expect_asleep(context, "0000:01:00.0 suspended");
    expect_gate(context, "power", "failed", "0000:01:00.0 suspended");
    expect_gate(context, "load", "skipped", "");
    EXPECT_HAS(test_log, "falling back to cpu: cuda is unavailable: asleep: 0000:01:00.0");
    ds_accel_destroy(context);
}

Test(core_presence, listing_and_explaining_wake_nothing)
{
    ds_accel_t *context = create_on(SUSPENDED);
    char *report;

    cr_expect_eq(ds_accel_check(context, NULL), DS_ACCEL_OK);
    expect_asleep(context, "0000:01:00.0 suspended");
    ds_accel_destroy(context);
    setenv("DS_ACCELERATOR", "cpu", 1);
    context = create_on(SUSPENDED);
    report = test_report(context, DS_ACCEL_REPORT_EXPLAIN, "cuda", 0);
    EXPECT_HAS(report, "asleep");
    EXPECT_HAS(report, "remedy force it by name");
    expect_asleep(context, "0000:01:00.0 suspended");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

Test(core_presence, one_awake_device_of_two_is_enough)
{
    ds_accel_t *context;

    add_pci("0000:41:00.0", "0x10de", "0x030200", "suspended");
    add_pci("0000:81:00.0", "0x10de", "0x030000", "active");
    context = detect_on(test_path("machine"), "cuda");
    expect_gate(context, "power", "passed", "0000:81:00.0 active");
    ds_accel_destroy(context);
}

Test(core_presence, all_of_two_sleep)
{
    ds_accel_t *context;

    add_pci("0000:81:00.0", "0x10de", "0x030000", "suspended");
    add_pci("0000:41:00.0", "0x10de", "0x030200", "suspended");
    context = detect_on(test_path("machine"), "cpu");
    expect_asleep(context, "0000:41:00.0 suspended, 0000:81:00.0 suspended");
    ds_accel_destroy(context);
}

Test(core_presence, of_many_that_sleep_the_first_are_named)
{
    ds_accel_t *context;

    for (int i = 1; i <= 8; i++) {
        char address[16];

        snprintf(address, sizeof(address), "0000:0%d:00.0", i);
        add_pci(address, "0x10de", "0x030200", "suspended");
    }
    context = detect_on(test_path("machine"), "cpu");
    expect_asleep(context, "0000:01:00.0 suspended, 0000:02:00.0 suspended, 0000:03:00.0 "
                           "suspended, 0000:04:00.0 suspended and 4 more");
    ds_accel_destroy(context);
}

/* /proc/bus/pci/devices lists no PCI domain; a machine may have the same slot in another domain. */
Test(core_presence, the_kernels_list_of_devices_narrows_the_search)
{
    ds_accel_t *context;

    test_write("machine/proc/bus/pci/devices", "0010\t80869a60\t10\t0\n00a3\t80867af0\t0\n"
                                               "c108\t10de2330\t1f\t0\n");
    add_pci("0000:c1:01.0", "0x10de", "0x030200", "suspended");
    add_pci("0001:c1:01.0", "0x10de", "0x030200", "suspended");
    add_pci("0002:c1:01.0", "0x8086", "0x030200", "active");
    add_pci("0000:c1:01.1", "0x10de", "0x030200", "active");
    context = detect_on(test_path("machine"), "cpu");
    expect_asleep(context, "0000:c1:01.0 suspended, 0001:c1:01.0 suspended");
    ds_accel_destroy(context);
    test_write("machine/proc/bus/pci/devices", "");
    context = detect_on(test_path("machine"), "cuda");
    expect_gate(context, "power", "passed", "0000:c1:01.1 active");
    ds_accel_destroy(context);
}

Test(core_presence, a_list_without_the_vendor_ends_the_search)
{
    ds_accel_t *context;

    test_write("machine/proc/bus/pci/devices", "\n\tgarbage\n00\n0010\t80869a60\t10\t0\n");
    add_pci("0000:01:00.0", "0x10de", "0x030200", "suspended");
    context = detect_on(test_path("machine"), "cuda");
    expect_gate(context, "power", "skipped", "");
    ds_accel_destroy(context);
}

Test(core_presence, a_kernel_that_tells_no_status_lets_pass)
{
    ds_accel_t *context;

    add_pci("0000:01:00.0", "0x10de", "0x030200", NULL);
    context = detect_on(test_path("machine"), "cuda");
    expect_gate(context, "power", "passed", "0000:01:00.0 unknown");
    ds_accel_destroy(context);
}

Test(core_presence, without_a_device_of_its_kind_the_gate_is_skipped)
{
    ds_accel_t *context;

    add_pci("0000:00:02.0", "0x8086", "0x030000", "suspended");
    add_pci("0000:01:00.1", "0x10de", "0x040300", "suspended");
    test_write("machine/sys/bus/pci/devices/0000:09:00.0/vendor", "");
    test_write("machine/sys/bus/pci/devices/0000:0a:00.0/vendor", "10de\n");
    test_write("machine/sys/bus/pci/devices/file", "0x10de\n");
    context = detect_on(test_path("machine"), "cuda");
    expect_gate(context, "power", "skipped", "");
    ds_accel_destroy(context);
}

Test(core_presence, without_facts_the_gate_is_skipped)
{
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"backends\": {\"cuda\": {\"pci\": null}}}");
    context = detect_on(SUSPENDED, "cuda");
    expect_gate(context, "power", "skipped", "");
    ds_accel_destroy(context);
}

Test(core_presence, facts_of_the_operator_count)
{
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"backends\": {\"cuda\": {\"pci\": [\"abcd\", \"10de\"]}}}");
    context = detect_on(SUSPENDED, "cuda");
    expect_gate(context, "power", "passed", "0000:01:00.1 active");
    ds_accel_destroy(context);
}

Test(core_presence, named_by_option_environment_or_configuration_it_is_woken)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    setenv("DS_ACCELERATOR", "cuda", 1);
    context = detect_on(SUSPENDED, "cuda");
    expect_gate(context, "power", "passed", "requested by name");
    ds_accel_destroy(context);
    unsetenv("DS_ACCELERATOR");
    test_write("etc/ds-accel.json", "{\"accelerator\": \"cuda\"}");
    context = detect_on(SUSPENDED, "cuda");
    ds_accel_destroy(context);
    cr_assert_eq(remove(test_path("etc/ds-accel.json")), 0);
    options.machine_root = SUSPENDED;
    options.accelerator = "cuda";
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

Test(core_presence, named_in_a_check_it_is_woken_also_after_detection_found_it_asleep)
{
    ds_accel_t *context = detect_on(SUSPENDED, "cpu");

    expect_asleep(context, "0000:01:00.0 suspended");
    cr_expect_eq(ds_accel_check(context, "cuda"), DS_ACCEL_OK);
    cr_expect_eq(test_candidate(context, "cuda").state, DS_ACCEL_STATE_AVAILABLE);
    cr_expect_str_eq(test_candidate(context, "cuda").reason, "");
    expect_gate(context, "power", "passed", "requested by name");
    ds_accel_destroy(context);
}

Test(core_presence, named_in_info_it_is_woken)
{
    ds_accel_t *context = create_on(SUSPENDED);
    char *report = test_report(context, DS_ACCEL_REPORT_INFO, "cuda", 0);

    EXPECT_HAS(report, "cuda: available");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
    context = detect_on(SUSPENDED, "cpu");
    report = test_report(context, DS_ACCEL_REPORT_INFO, "cuda", 0);
    EXPECT_HAS(report, "cuda: available");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

Test(core_presence, what_wakes_by_itself_is_found_by_the_next_detection)
{
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"deny\": [\"cpu\"]}");
    add_pci("0000:01:00.0", "0x10de", "0x030200", "suspended");
    context = create_on(test_path("machine"));
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NO_DEVICE);
    expect_asleep(context, "0000:01:00.0 suspended");
    add_pci("0000:01:00.0", "0x10de", "0x030200", "active");
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), "cuda");
    ds_accel_destroy(context);
}
