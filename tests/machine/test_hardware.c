/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gate hardware: a plugin whose note names hardware that the machine lacks is not loaded. The
 * note of hardware_absent (tests/fixtures/broken.c) names hardware that no machine has; its plugin
 * would report that it is available.
 */
#include "fixture.h"

#include <sys/stat.h>

#define NAME "hardware_absent"
#define NODE "/dev/ds-accel-none"
#define ABSENT "no PCI device fff0:12 or fff1 and no " NODE

static void prepare(void)
{
    test_copy(TEST_FIXTURES "/" NAME "/ds_accel_" NAME ".so", "plugins/ds_accel_" NAME ".so");
    unsetenv("DS_ACCELERATOR");
}

TestSuite(core_hardware, .init = prepare);

static ds_accel_t *detect_with(const struct ds_accel_options *options, const char *chosen)
{
    ds_accel_t *context = test_create_with(options);

    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(context), chosen);
    return context;
}

static void expect_chosen(const char *chosen)
{
    struct ds_accel_options options = test_options();

    ds_accel_destroy(detect_with(&options, chosen));
}

static void expect_gates(ds_accel_t *context, const char *evidence, const char *load)
{
    char *report =
        test_compact(test_report(context, DS_ACCEL_REPORT_EXPLAIN, NAME, DS_ACCEL_FORMAT_JSON));
    char wanted[256];

    snprintf(wanted, sizeof(wanted),
             "{\"gate\":\"hardware\",%s},{\"gate\":\"load\",\"result\":\"%s\"", evidence, load);
    EXPECT_HAS(report, wanted);
    ds_accel_free_text(report);
}

/* True if the plugin's file has been opened as a library in this process. */
static bool is_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;

    cr_assert_not_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        found = found || strstr(line, "ds_accel_" NAME) != NULL;
    }
    fclose(maps);
    return found;
}

Test(core_hardware, what_is_for_absent_hardware_is_not_loaded)
{
    struct ds_accel_options options = test_options();
    struct ds_accel_candidate candidate;
    ds_accel_t *context;

    test_write("etc/ds-accel.json", "{\"probe\": {\"mode\": \"in-process\"}}");
    context = detect_with(&options, "cpu");
    candidate = test_candidate(context, NAME);
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_UNAVAILABLE);
    cr_expect_str_eq(candidate.reason, "no_device");
    cr_expect_str_eq(candidate.stage, "hardware");
    cr_expect_str_eq(candidate.detail, ABSENT);
    cr_expect_str_eq(candidate.vendor, "ds-accel tests");
    expect_gates(context, "\"result\":\"failed\",\"evidence\":\"" ABSENT "\"", "skipped");
    cr_expect_not(is_mapped());
    ds_accel_destroy(context);
}

Test(core_hardware, forced_by_name_it_fails_with_the_reason)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = NAME;
    context = test_create_with(&options);
    EXPECT_REFUSED(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE, "no_device: " ABSENT);
    cr_expect_not(is_mapped());
    ds_accel_destroy(context);
}

Test(core_hardware, a_node_of_the_machine_has_it_asked)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    cr_assert_eq(mkdir(test_path("machine/dev/none5/x"), 0755), 0);
    options.machine_root = test_path("machine");
    ds_accel_destroy(detect_with(&options, "cpu")); /* a directory is not a node */
    test_write("machine/dev/none7", "");
    options.machine_root = test_path("machine");
    context = detect_with(&options, NAME);
    expect_gates(context, "\"result\":\"passed\",\"evidence\":\"/dev/none7\"", "passed");
    ds_accel_destroy(context);
}

Test(core_hardware, a_device_on_the_bus_has_it_asked)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    test_write("machine/sys/bus/pci/devices/0000:07:00.0/vendor", "0xfff0\n");
    test_write("machine/sys/bus/pci/devices/0000:07:00.0/class", "0x030000\n");
    options.machine_root = test_path("machine");
    ds_accel_destroy(detect_with(&options, "cpu")); /* the device has another PCI class */
    test_write("machine/sys/bus/pci/devices/0000:07:00.0/class", "0x120000\n");
    context = detect_with(&options, NAME);
    expect_gates(context, "\"result\":\"passed\",\"evidence\":\"PCI device 0000:07:00.0\"",
                 "passed");
    ds_accel_destroy(context);
}

Test(core_hardware, facts_of_the_operator_have_it_asked)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"" NAME "\": {\"device_nodes\": [\"/dev/null\"]}}}");
    context = detect_with(&options, NAME);
    expect_gates(context, "\"result\":\"skipped\",\"evidence\":\"\"", "passed");
    ds_accel_destroy(context);
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"" NAME "\": {\"other_device_nodes\": [\"/dev/null\"]}}}");
    expect_chosen(NAME);
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"" NAME "\": {\"device_nodes\": [\"/dev/nothing\"]}}}");
    expect_chosen("cpu");
}

/* A note line of a kind that this host does not recognize may describe present hardware, so the
   plugin is probed. */
Test(core_hardware, a_note_with_an_unknown_line_decides_nothing)
{
    static const char known[] = "node " NODE "\n";
    const char *plugin = test_path("plugins/ds_accel_" NAME ".so");
    FILE *file = fopen(plugin, "r+");
    static char bytes[1 << 20];
    size_t size;
    char *line;

    cr_assert_not_null(file);
    size = fread(bytes, 1, sizeof(bytes), file);
    line = memmem(bytes, size, known, strlen(known));
    cr_assert_not_null(line);
    cr_assert_eq(fseek(file, line - bytes, SEEK_SET), 0);
    cr_assert_eq(fputs("mode", file) < 0, 0);
    cr_assert_eq(fclose(file), 0);
    expect_chosen(NAME);
}

Test(core_hardware, the_option_presence_decides)
{
    static const struct {
        const char *option; /* JSON value of the option "presence" */
        const char *chosen;
    } cases[] = {
        {"null", "cpu"},     {"\"on\"", "cpu"}, {"\"off\"", NAME},
        {"\"maybe\"", NAME}, {"false", NAME}, /* malformed: the plugin reports it */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];

        snprintf(text, sizeof(text),
                 "{\"backends\": {\"" NAME "\": {\"options\": {\"presence\": %s}}}}",
                 cases[i].option);
        test_write("etc/ds-accel.json", text);
        expect_chosen(cases[i].chosen);
    }
    setenv("DS_ACCEL_HARDWARE_ABSENT_PRESENCE", "on", 1);
    expect_chosen("cpu");
    setenv("DS_ACCEL_HARDWARE_ABSENT_PRESENCE", "off", 1);
    expect_chosen(NAME);
}

static void expect_remembered(ds_accel_t *context)
{
    char *report =
        test_compact(test_report(context, DS_ACCEL_REPORT_CACHE, NULL, DS_ACCEL_FORMAT_JSON));

    EXPECT_HAS(report, "\"name\":\"" NAME "\"");
    EXPECT_HAS(report, "\"detail\":\"" ABSENT "\"");
    ds_accel_free_text(report);
}

Test(core_hardware, the_verdict_is_remembered_and_the_note_with_it)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.cache_dir = test_path("cache");
    options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    ds_accel_destroy(detect_with(&options, "cpu"));
    context = detect_with(&options, "cpu");
    expect_remembered(context);
    cr_expect_str_eq(test_candidate(context, NAME).stage, "hardware");
    expect_gates(context, "\"result\":\"failed\",\"evidence\":\"" ABSENT "\"", "skipped");
    ds_accel_destroy(context);
    /* For a plugin requested by name, a stored negative verdict is not reused, but the note still
       applies. */
    options.accelerator = NAME;
    context = test_create_with(&options);
    EXPECT_REFUSED(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE, "no_device: " ABSENT);
    cr_expect_not(is_mapped());
    ds_accel_destroy(context);
}
