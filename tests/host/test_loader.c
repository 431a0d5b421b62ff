/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Broken plugins: each is listed with its own reason, and none disturbs the others.
 * tests/fixtures/broken.c is built once per defect. The file also tests what the loader does for
 * every plugin.
 */
#include "loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

struct expectation {
    const char *defect;
    uint32_t state;
    const char *reason;
    const char *stage;
    const char *detail; /* part of the expected detail */
};

static const struct expectation expectations[] = {
    {"none", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"long_table", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"unknown_optional_bit", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"two_generations", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"extra_export", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"init_fails", DS_ACCEL_STATE_ERROR, "start_failed", "start", "FAKE_INIT_FAILED"},
    {"wrong_name", DS_ACCEL_STATE_REJECTED, "name_mismatch", "note", "\"other\""},
    {"table_name_differs", DS_ACCEL_STATE_REJECTED, "name_mismatch", "entry", "table"},
    {"size_zero", DS_ACCEL_STATE_REJECTED, "table_short", "entry", "0 bytes"},
    {"short_table", DS_ACCEL_STATE_REJECTED, "table_short", "entry", "bytes"},
    {"truncated_required", DS_ACCEL_STATE_REJECTED, "table_short", "entry", "bytes"},
    {"absurd_table", DS_ACCEL_STATE_REJECTED, "table_absurd", "entry", "2147483647"},
    {"unknown_required_bit", DS_ACCEL_STATE_REJECTED, "feature_unknown", "note", "bit 40"},
    {"null_name", DS_ACCEL_STATE_REJECTED, "table_no_name", "entry", "NULL"},
    {"no_entry", DS_ACCEL_STATE_REJECTED, "no_entry", "entry", "ds_accel_entry_v1"},
    {"entry_null", DS_ACCEL_STATE_REJECTED, "entry_refused", "entry", "NULL"},
    {"undefined_symbol", DS_ACCEL_STATE_REJECTED, "symbol_undefined", "load", "undefined symbol"},
    {"missing_library", DS_ACCEL_STATE_REJECTED, "dependency_missing", "load", "not installed"},
    {"no_note", DS_ACCEL_STATE_REJECTED, "no_note", "note", "no note"},
    {"two_notes", DS_ACCEL_STATE_REJECTED, "duplicate_note", "note", "2"},
    {"huge_note", DS_ACCEL_STATE_REJECTED, "note_too_large", "note", "bytes"},
    {"short_note", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "bytes"},
    {"note_name_empty", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "name"},
    {"note_name_unterminated", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "name"},
    {"abi_2", DS_ACCEL_STATE_REJECTED, "abi_unsupported", "note", "generation 2"},
    {"table_abi_2", DS_ACCEL_STATE_REJECTED, "table_abi", "entry", "generation 2"},
    {"missing_required_slot", DS_ACCEL_STATE_REJECTED, "slot_missing", "entry", "device_open"},
    {"probe_negative", DS_ACCEL_STATE_ERROR, "driver_failed", "probe", "FAKE_NO_DRIVER"},
    {"probe_no_state", DS_ACCEL_STATE_ERROR, "bad_verdict", "probe", "state 0"},
    {"probe_zero_devices", DS_ACCEL_STATE_ERROR, "bad_verdict", "probe", "0 devices"},
    {"probe_bad_reason", DS_ACCEL_STATE_UNAVAILABLE, "newer_reason", "probe", ""},
    {"probe_unterminated", DS_ACCEL_STATE_ERROR, "bad_verdict", "probe", "not NUL-terminated"},
    {"hardware_absent", DS_ACCEL_STATE_UNAVAILABLE, "no_device", "hardware",
     "no PCI device fff0:12 or fff1 and no /dev/ds-accel-none"},
    {"hardware_here", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"hardware_unknown_line", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"hardware_twice", DS_ACCEL_STATE_REJECTED, "duplicate_note", "note", "2 hardware notes"},
    {"hardware_unended", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "last line has no end"},
    {"hardware_bad_pci", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "\"pci FFF0\": expected"},
    {"hardware_bad_node", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "\"node /dev/*/x\""},
    {"hardware_bad_text", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "printable ASCII"},
    {"hardware_unterminated", DS_ACCEL_STATE_REJECTED, "bad_note", "note", "NUL-terminated"},
    {"hardware_long", DS_ACCEL_STATE_REJECTED, "note_too_large", "note", "8192 bytes"},
    {"executable_stack", DS_ACCEL_STATE_REJECTED, "elf_executable_stack", "elf", "flags 7"},
    {"text_relocations", DS_ACCEL_STATE_REJECTED, "elf_text_relocations", "elf", "TEXTREL"},
    {"relative_run_path", DS_ACCEL_STATE_REJECTED, "elf_relative_path", "elf", "run path \"lib\""},
    {"absolute_run_path", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"linked_lazily", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"undefined_lazily", DS_ACCEL_STATE_REJECTED, "symbol_undefined", "load", "undefined symbol"},
};
#define EXPECTATION_COUNT (sizeof(expectations) / sizeof(expectations[0]))

static void expect(ds_accel_t *context, const struct expectation *wanted)
{
    struct ds_accel_candidate candidate = test_candidate(context, wanted->defect);

    cr_expect_eq(candidate.state, wanted->state, "%s is %s (%s: %s)", wanted->defect,
                 candidate.state_name, candidate.reason, candidate.detail);
    cr_expect_str_eq(candidate.reason, wanted->reason, "%s: %s: %s", wanted->defect,
                     candidate.reason, candidate.detail);
    cr_expect_str_eq(candidate.stage, wanted->stage, "%s: stage %s", wanted->defect,
                     candidate.stage);
    cr_expect_not_null(strstr(candidate.detail, wanted->detail), "%s: %s", wanted->defect,
                       candidate.detail);
}

Test(core_loader, every_defect_has_its_reason_while_the_others_work)
{
    ds_accel_t *context;

    for (size_t i = 0; i < EXPECTATION_COUNT; i++) {
        add_broken(expectations[i].defect);
    }
    context = test_create();
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (size_t i = 0; i < EXPECTATION_COUNT; i++) {
        expect(context, &expectations[i]);
    }
    cr_expect_eq(test_candidate(context, "cpu").state, DS_ACCEL_STATE_AVAILABLE);
    ds_accel_destroy(context);
}

Test(core_loader, every_defect_in_the_list_is_expected_here)
{
    FILE *list = fopen(TEST_SOURCE "/tests/fixtures/defects.txt", "r");
    char defect[64];
    size_t count = 0;

    cr_assert_not_null(list);
    while (fscanf(list, "%63s", defect) == 1) {
        bool expected = false;

        for (size_t i = 0; i < EXPECTATION_COUNT; i++) {
            expected = expected || strcmp(expectations[i].defect, defect) == 0;
        }
        cr_expect(expected, "%s", defect);
        count++;
    }
    fclose(list);
    cr_expect_eq(count, EXPECTATION_COUNT);
}

Test(core_loader, a_broken_one_does_not_keep_a_good_one_from_being_chosen)
{
    for (size_t i = 0; i < EXPECTATION_COUNT; i++) {
        ds_accel_t *context;

        if (expectations[i].state == DS_ACCEL_STATE_AVAILABLE) {
            continue;
        }
        add_broken(expectations[i].defect);
        context = test_create();
        cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s: %s", expectations[i].defect,
                     ds_accel_last_error());
        cr_expect_neq(strcmp(ds_accel_name(context), expectations[i].defect), 0);
        ds_accel_destroy(context);
    }
}

Test(core_loader, the_vendors_code_and_text_survive)
{
    struct ds_accel_candidate candidate;
    ds_accel_t *context;

    add_broken("probe_negative");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "probe_negative"), DS_ACCEL_OK);
    candidate = test_candidate(context, "probe_negative");
    cr_expect_not_null(strstr(candidate.detail, "FAKE_NO_DRIVER"));
    cr_expect_not_null(strstr(candidate.detail, "(100)"));
    ds_accel_destroy(context);
}

/* ---- files that are not plugins -------------------------------------------------------------- */

/* Change an unneeded program header into one of thread-local storage of `size` bytes. */
static void write_tls(const char *path, uint64_t size)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    bool done = false;
    FILE *file;

    file = fopen(test_copy(TEST_MOCKS "/ds_accel_alpha.so", path), "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fread(&header, sizeof(header), 1, file), 1);
    for (unsigned i = 0; i < header.e_phnum && !done; i++) {
        long at = (long)(header.e_phoff + i * sizeof(segment));

        cr_assert_eq(fseek(file, at, SEEK_SET), 0);
        cr_assert_eq(fread(&segment, sizeof(segment), 1, file), 1);
        if (segment.p_type == PT_GNU_EH_FRAME) {
            segment.p_type = PT_TLS;
            segment.p_memsz = size;
            cr_assert_eq(fseek(file, at, SEEK_SET), 0);
            cr_assert_eq(fwrite(&segment, sizeof(segment), 1, file), 1);
            done = true;
        }
    }
    fclose(file);
    cr_assert(done);
}

/* ---- what the loader does for every plugin, however the plugin is linked --------------------- */

/* All symbols are bound when the plugin is loaded: a missing symbol is found before any call, even
   for a plugin linked for lazy binding. */
Test(core_loader, every_symbol_is_bound_before_a_plugin_is_called)
{
    add_broken("undefined_lazily");
    expect_file("undefined_lazily", "symbol_undefined");
    setenv("DS_ACCEL_PROBE", "in-process", 1);
    expect_file("undefined_lazily", "symbol_undefined");
}

Test(core_loader, what_a_plugin_exports_is_seen_by_nobody_else)
{
    ds_accel_t *context;

    setenv("DS_ACCEL_PROBE", "in-process", 1);
    add_broken("linked_lazily");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "linked_lazily"), DS_ACCEL_OK);
    cr_expect_eq(test_candidate(context, "linked_lazily").state, DS_ACCEL_STATE_AVAILABLE);
    cr_assert_not_null(
        dlopen(test_path("plugins/ds_accel_linked_lazily.so"), RTLD_NOLOAD | RTLD_LAZY));
    cr_expect_null(dlsym(RTLD_DEFAULT, "ds_accel_fixture_extra"), "its symbols are global");
    cr_expect_null(dlsym(RTLD_DEFAULT, "ds_accel_entry_v1"), "its symbols are global");
    ds_accel_destroy(context);
}

Test(core_loader, a_plugin_stays_mapped_when_it_is_closed)
{
    ds_accel_t *context;

    setenv("DS_ACCEL_PROBE", "in-process", 1);
    add_broken("linked_lazily");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "linked_lazily"), DS_ACCEL_OK);
    ds_accel_destroy(context);
    cr_expect_not_null(
        dlopen(test_path("plugins/ds_accel_linked_lazily.so"), RTLD_NOLOAD | RTLD_LAZY),
        "its code is gone, which a thread of a runtime may be in");
}

Test(core_loader, thread_local_storage_has_a_limit)
{
    write_tls("plugins/ds_accel_tls.so", (16 << 20) + 1);
    expect_file("tls", "elf_tls_large");
    write_tls("plugins/ds_accel_tls.so", 16 << 20);
    expect_file("tls", "name_mismatch"); /* rejected by the next gate instead */
}

Test(core_loader, what_is_no_regular_file_is_never_waited_for)
{
    cr_assert_eq(mkdir(test_path("plugins/ds_accel_directory.so"), 0755), 0);
    cr_assert_eq(mkfifo(test_path("plugins/ds_accel_pipe.so"), 0644), 0);
    cr_assert_eq(symlink("nowhere", test_path("plugins/ds_accel_dangling.so")), 0);
    cr_assert_eq(symlink("ds_accel_loop.so", test_path("plugins/ds_accel_loop.so")), 0);
    expect_file("directory", "is_directory");
    expect_file("pipe", "is_fifo");
    expect_file("dangling", "dangling_link");
    expect_file("loop", "link_loop");
}

Test(core_loader, an_unreadable_file_says_so)
{
    /* The build directory and the helper in it may be inaccessible to the other user, so probe in
       this process, with cpu beside the unreadable plugin. */
    setenv("DS_ACCEL_PROBE", "in-process", 1);
    test_copy(TEST_PLUGINS "/ds_accel_cpu.so", "plugins/ds_accel_cpu.so");
    if (geteuid() == 0) {
        cr_assert_eq(chmod(test_dir(), 0755), 0);
        test_add_mock("alpha");
        cr_assert_eq(chmod(test_path("plugins/ds_accel_alpha.so"), 0), 0);
        cr_assert_eq(seteuid(65534), 0);
        expect_file("alpha", "not_readable");
        cr_assert_eq(seteuid(0), 0);
    } else {
        test_add_mock("alpha");
        cr_assert_eq(chmod(test_path("plugins/ds_accel_alpha.so"), 0), 0);
        expect_file("alpha", "not_readable");
    }
}

Test(core_loader, names_that_are_no_backend_names_are_listed_as_such)
{
    static const char *const names[] = {"Upper", "1st", "with-dash",
                                        "a23456789012345678901234567890123"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "plugins/ds_accel_%s.so", names[i]);
        test_copy(TEST_MOCKS "/ds_accel_alpha.so", path);
    }
    {
        ds_accel_t *context = test_create();

        for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
            struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

            cr_assert_eq(ds_accel_candidate_get(context, i, &candidate), DS_ACCEL_OK);
            if (strstr(candidate.path, test_dir()) != NULL) {
                cr_expect_str_eq(candidate.reason, "bad_name", "%s", candidate.path);
                cr_expect_eq(candidate.state, DS_ACCEL_STATE_REJECTED);
            }
        }
        cr_expect_geq(ds_accel_candidate_count(context), 4);
        ds_accel_destroy(context);
    }
}

Test(core_loader, a_stray_la_file_is_not_followed)
{
    ds_accel_t *context;

    test_add_mock("alpha");
    test_write("plugins/ds_accel_alpha.la",
               "dlname='ds_accel_beta.so'\nlibrary_names='ds_accel_beta.so'\ninstalled=yes\n"
               "libdir='/nonexistent'\n");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK);
    cr_expect_eq(test_candidate(context, "alpha").state, DS_ACCEL_STATE_AVAILABLE);
    ds_accel_destroy(context);
}
