/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Plugins that are broken, each in its own way: listed with its own reason, none disturbing the
 * others. tests/fixtures/broken.c is built once per defect.
 */
#include "fixture.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct expectation {
    const char *defect;
    uint32_t state;
    const char *reason;
    const char *stage;
    const char *detail; /* a part of it */
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
    {"probe_unterminated", DS_ACCEL_STATE_ERROR, "bad_verdict", "probe", "no end"},
    {"hardware_absent", DS_ACCEL_STATE_UNAVAILABLE, "no_device", "hardware",
     "no PCI device fff0:12 or fff1 and no /dev/ds-accel-none"},
    {"hardware_here", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"hardware_unknown_line", DS_ACCEL_STATE_AVAILABLE, "", "probe", ""},
    {"hardware_twice", DS_ACCEL_STATE_REJECTED, "duplicate_note", "note", "2 of its hardware"},
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

static void add_broken(const char *defect)
{
    char from[512];
    char to[128];

    snprintf(from, sizeof(from), "%s/%s/ds_accel_%s.so", TEST_FIXTURES, defect, defect);
    snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", defect);
    test_copy(from, to);
}

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

/* ---- files that are no plugins at all ------------------------------------------------------- */

/* reason: "" if it is well. */
static void expect_file(const char *name, const char *reason)
{
    ds_accel_t *context = test_create();
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, name), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, name);
    cr_expect_eq(candidate.state,
                 reason[0] != '\0' ? DS_ACCEL_STATE_REJECTED : DS_ACCEL_STATE_AVAILABLE, "%s: %s",
                 name, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason, "%s: %s: %s", name, candidate.reason,
                     candidate.detail);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

static void write_header(const char *path, void (*spoil)(Elf64_Ehdr *header))
{
    Elf64_Ehdr header;
    FILE *file = fopen(TEST_MOCKS "/ds_accel_alpha.so", "rb");

    cr_assert_not_null(file);
    cr_assert_eq(fread(&header, sizeof(header), 1, file), 1);
    fclose(file);
    test_copy(TEST_MOCKS "/ds_accel_alpha.so", path);
    spoil(&header);
    file = fopen(test_path(path), "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(&header, sizeof(header), 1, file), 1);
    fclose(file);
}

static void spoil_class(Elf64_Ehdr *header)
{
    header->e_ident[EI_CLASS] = ELFCLASS32;
}

static void spoil_order(Elf64_Ehdr *header)
{
    header->e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
}

static void spoil_machine(Elf64_Ehdr *header)
{
    header->e_machine = EM_SPARCV9;
}

static void spoil_type(Elf64_Ehdr *header)
{
    header->e_type = ET_REL;
}

static void spoil_offset(Elf64_Ehdr *header)
{
    header->e_phoff = UINT64_MAX - 8;
}

static void spoil_count(Elf64_Ehdr *header)
{
    header->e_phnum = 0;
}

Test(core_loader, files_of_other_kinds_and_machines_have_their_reasons)
{
    test_write("plugins/ds_accel_text.so", "this is not ELF\n");
    test_write("plugins/ds_accel_empty.so", "");
    test_write_bytes("plugins/ds_accel_magic.so", "\177ELF", 4);
    write_header("plugins/ds_accel_class.so", spoil_class);
    write_header("plugins/ds_accel_order.so", spoil_order);
    write_header("plugins/ds_accel_machine.so", spoil_machine);
    write_header("plugins/ds_accel_type.so", spoil_type);
    write_header("plugins/ds_accel_offset.so", spoil_offset);
    write_header("plugins/ds_accel_count.so", spoil_count);
    expect_file("text", "not_elf");
    expect_file("empty", "not_elf");
    expect_file("magic", "elf_truncated");
    expect_file("class", "elf_wrong_class");
    expect_file("order", "elf_wrong_class");
    expect_file("machine", "elf_wrong_machine");
    expect_file("type", "elf_not_shared_object");
    expect_file("offset", "elf_truncated");
    expect_file("count", "elf_truncated");
}

/* A program header that nobody misses is made one of thread-local storage. */
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

/* ---- what loading would do to the process --------------------------------------------------- */

/* A copy that is a new file: the one before may be mapped. */
static const char *copy_anew(const char *from, const char *path)
{
    remove(test_path(path));
    return test_copy(from, path);
}

/* Open test_dir()/path, a copy of a fixture, to change it. */
static FILE *open_copy(const char *from, const char *path)
{
    FILE *file = fopen(copy_anew(from, path), "r+b");

    cr_assert_not_null(file, "%s", from);
    return file;
}

static void read_at(FILE *file, uint64_t offset, void *data, size_t size)
{
    cr_assert_eq(fseek(file, (long)offset, SEEK_SET), 0);
    cr_assert_eq(fread(data, size, 1, file), 1);
}

static void write_at(FILE *file, uint64_t offset, const void *data, size_t size)
{
    cr_assert_eq(fseek(file, (long)offset, SEEK_SET), 0);
    cr_assert_eq(fwrite(data, size, 1, file), 1);
}

/* The program header of this type, which the file has; returns its offset. */
static uint64_t find_segment(FILE *file, uint32_t type, Elf64_Phdr *segment)
{
    Elf64_Ehdr header;

    read_at(file, 0, &header, sizeof(header));
    for (unsigned i = 0; i < header.e_phnum; i++) {
        uint64_t offset = header.e_phoff + i * sizeof(*segment);

        read_at(file, offset, segment, sizeof(*segment));
        if (segment->p_type == type) {
            return offset;
        }
    }
    cr_assert_fail("no segment of type %u", type);
    return 0;
}

#define NONE TEST_FIXTURES "/none/ds_accel_none.so"
#define NONE_PATH "plugins/ds_accel_none.so"

/* NONE with one program header changed. */
static void write_segment(uint32_t type, void (*spoil)(Elf64_Phdr *segment))
{
    FILE *file = open_copy(NONE, NONE_PATH);
    Elf64_Phdr segment;
    uint64_t offset = find_segment(file, type, &segment);

    spoil(&segment);
    write_at(file, offset, &segment, sizeof(segment));
    fclose(file);
}

static void remove_segment(Elf64_Phdr *segment)
{
    segment->p_type = PT_NULL;
}

static void make_executable(Elf64_Phdr *segment)
{
    segment->p_flags = PF_R | PF_X;
}

static void move_address(Elf64_Phdr *segment)
{
    segment->p_vaddr += UINT64_C(1) << 40;
}

/* Before the last entry, and behind those of the string table. */
static void end_early(Elf64_Phdr *segment)
{
    segment->p_filesz = 20 * sizeof(Elf64_Dyn);
}

/* NONE with a second header of the same dynamic section, in place of one that nobody misses. */
static void write_second_dynamic(void)
{
    FILE *file = open_copy(NONE, NONE_PATH);
    Elf64_Phdr segment;
    uint64_t offset = find_segment(file, PT_GNU_EH_FRAME, &segment);

    find_segment(file, PT_DYNAMIC, &segment);
    write_at(file, offset, &segment, sizeof(segment));
    fclose(file);
}

Test(core_loader, a_stack_that_would_become_executable_is_refused)
{
    write_segment(PT_GNU_STACK, make_executable);
    expect_file("none", "elf_executable_stack");
#if !defined(__aarch64__) && !defined(__powerpc64__)
    write_segment(PT_GNU_STACK, remove_segment);
    expect_file("none", "elf_executable_stack");
#endif
}

Test(core_loader, a_dynamic_section_that_cannot_be_read_is_refused)
{
    write_segment(PT_DYNAMIC, remove_segment);
    expect_file("none", "elf_bad_dynamic");
    write_segment(PT_DYNAMIC, move_address);
    expect_file("none", "elf_bad_dynamic");
    write_segment(PT_DYNAMIC, end_early);
    expect_file("none", "elf_bad_dynamic");
    write_second_dynamic();
    expect_file("none", "elf_bad_dynamic");
}

/* NONE with the entry of a tag made another. */
static void write_entry(uint64_t tag, uint64_t new_tag, uint64_t new_value)
{
    FILE *file = open_copy(NONE, NONE_PATH);
    Elf64_Phdr segment;
    Elf64_Dyn entry = {.d_tag = DT_NULL};
    uint64_t offset;

    find_segment(file, PT_DYNAMIC, &segment);
    for (offset = segment.p_offset; offset < segment.p_offset + segment.p_filesz;
         offset += sizeof(entry)) {
        read_at(file, offset, &entry, sizeof(entry));
        if ((uint64_t)entry.d_tag == tag) {
            break;
        }
    }
    cr_assert_eq(entry.d_tag, tag);
    entry = (Elf64_Dyn){.d_tag = (Elf64_Sxword)new_tag, .d_un.d_val = new_value};
    write_at(file, offset, &entry, sizeof(entry));
    fclose(file);
}

Test(core_loader, both_marks_of_text_relocations_are_seen)
{
    write_entry(DT_FLAGS_1, DT_TEXTREL, 0);
    expect_file("none", "elf_text_relocations");
    write_entry(DT_FLAGS, DT_FLAGS, DF_BIND_NOW | DF_TEXTREL);
    expect_file("none", "elf_text_relocations");
    write_entry(DT_FLAGS, DT_FLAGS, DF_BIND_NOW);
    expect_file("none", "");
}

Test(core_loader, a_name_without_an_end_is_refused)
{
    write_entry(DT_NEEDED, DT_NEEDED, UINT64_C(1) << 40);
    expect_file("none", "elf_bad_dynamic");
    write_entry(DT_NEEDED, DT_RUNPATH, UINT64_MAX);
    expect_file("none", "elf_bad_dynamic");
    write_entry(DT_STRTAB, DT_STRTAB, UINT64_MAX - 4);
    expect_file("none", "elf_bad_dynamic");
    write_entry(DT_STRSZ, DT_STRSZ, 1);
    expect_file("none", "elf_bad_dynamic");
}

/* Write a text over another one of a file; what is left of it becomes NUL. */
static void replace_text(const char *path, const char *text, const char *with)
{
    static char bytes[16 << 20];
    FILE *file = fopen(test_path(path), "r+b");
    size_t length = strlen(text);
    size_t size;
    unsigned found = 0;

    cr_assert_not_null(file);
    cr_assert_leq(strlen(with), length);
    size = fread(bytes, 1, sizeof(bytes), file);
    for (size_t at = 0; at + length < size; at++) {
        if (memcmp(bytes + at, text, length) == 0) {
            memset(bytes + at, 0, length);
            memcpy(bytes + at, with, strlen(with));
            found++;
        }
    }
    cr_assert_geq(found, 1);
    rewind(file);
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

Test(core_loader, a_run_path_that_depends_on_the_current_directory_is_refused)
{
    static const struct {
        const char *list;
        const char *reason;
    } rows[] = {
        {"lib", "elf_relative_path"},
        {".", "elf_relative_path"},
        {"..", "elf_relative_path"},
        {"", "elf_relative_path"},
        {":/opt/lib", "elf_relative_path"},
        {"/opt/lib:", "elf_relative_path"},
        {"/opt/lib::/usr/lib", "elf_relative_path"},
        {"/opt/lib:lib/x", "elf_relative_path"},
        {"$ORIGIN/lib:./x", "elf_relative_path"},
        {"$LIB/x", "elf_relative_path"},
        {"${PLATFORM}", "elf_relative_path"},
        {"x/$ORIGIN", "elf_relative_path"},
        {"$ORIGINAL/lib", "elf_relative_path"},
        {"${ORIGIN}x", "elf_relative_path"},
        {"$origin", "elf_relative_path"},
        {"/", ""},
        {"$ORIGIN", ""},
        {"${ORIGIN}", ""},
        {"$ORIGIN/../lib:${ORIGIN}/lib:/opt/lib", ""},
        {"/usr/$LIB:/opt/$PLATFORM", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        copy_anew(TEST_FIXTURES "/absolute_run_path/ds_accel_absolute_run_path.so",
                  "plugins/ds_accel_absolute_run_path.so");
        replace_text("plugins/ds_accel_absolute_run_path.so",
                     "/ds-accel/run/path/with/room/for/others", rows[i].list);
        expect_file("absolute_run_path", rows[i].reason);
    }
}

Test(core_loader, a_library_from_the_current_directory_is_refused)
{
    static const struct {
        const char *name;
        const char *reason;
    } rows[] = {
        {"lib/absent.so", "elf_relative_path"},     {"./absent.so", "elf_relative_path"},
        {"$LIB/absent.so", "elf_relative_path"},    {"absent.so", "dependency_missing"},
        {"/lib/absent.so.1", "dependency_missing"}, {"$ORIGIN/absent.so", "dependency_missing"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        copy_anew(TEST_FIXTURES "/missing_library/ds_accel_missing_library.so",
                  "plugins/ds_accel_missing_library.so");
        replace_text("plugins/ds_accel_missing_library.so", "libds_accel_absent.so.1",
                     rows[i].name);
        expect_file("missing_library", rows[i].reason);
    }
}

/* True if a mapping of this process with that name is executable. */
static bool is_executable(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;
    bool executable = false;

    cr_assert_not_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, name) != NULL) {
            found = true;
            executable = executable || strstr(line, "rwxp") != NULL;
        }
    }
    fclose(maps);
    cr_assert(found, "%s", name);
    return executable;
}

/* Chosen by force, in this process, with a constructor that would be run: it is not opened at all.
 */
Test(core_loader, no_plugin_makes_the_callers_stack_executable)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    setenv("DS_ACCEL_PROBE", "in-process", 1);
    add_broken("executable_stack");
    options.accelerator = "executable_stack";
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    EXPECT_HAS(ds_accel_last_error(), "elf_executable_stack");
    cr_expect_not(is_executable("[stack]"));
    ds_accel_destroy(context);
}

Test(core_loader, conformance_refuses_what_is_not_loaded)
{
    static const char *const defects[][2] = {
        {"executable_stack", "elf_executable_stack"},
        {"text_relocations", "elf_text_relocations"},
        {"relative_run_path", "elf_relative_path"},
    };

    for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
        char path[512];
        char *text = NULL;

        snprintf(path, sizeof(path), "%s/%s/ds_accel_%s.so", TEST_FIXTURES, defects[i][0],
                 defects[i][0]);
        cr_expect_eq(ds_accel_conformance(NULL, path, 0, NULL, 0, &text), DS_ACCEL_ERR_NOT_USABLE);
        EXPECT_HAS(ds_accel_last_error(), defects[i][1]);
        cr_expect_null(text);
    }
}

/* ---- what the loader does itself, whatever the plugin is linked with ------------------------ */

/* Bound at once: what a lazily bound plugin lacks is known before anything calls it. */
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
    expect_file("tls", "name_mismatch"); /* the next gate */
}

Test(core_loader, what_is_no_regular_file_is_never_waited_for)
{
    cr_assert_eq(mkdir(test_path("plugins/ds_accel_folder.so"), 0755), 0);
    cr_assert_eq(mkfifo(test_path("plugins/ds_accel_pipe.so"), 0644), 0);
    cr_assert_eq(symlink("nowhere", test_path("plugins/ds_accel_dangling.so")), 0);
    cr_assert_eq(symlink("ds_accel_loop.so", test_path("plugins/ds_accel_loop.so")), 0);
    expect_file("folder", "is_directory");
    expect_file("pipe", "is_fifo");
    expect_file("dangling", "dangling_link");
    expect_file("loop", "link_loop");
}

Test(core_loader, an_unreadable_file_says_so)
{
    /* Beside the unreadable one: the build folder may be closed to the other user. So may the
     * helper's. */
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

/* The rule that failed in a report; "" if none did, "?" if several did. */
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

/* The reason that lint has to name for a fault of faults.txt: also what it does to its process. */
static void expect_fault(const char *fault, const char *rule, const char *reason)
{
    struct ds_accel_options options = test_options();
    char path[512];
    char failed[16];
    char *text = NULL;
    int32_t status;

    snprintf(path, sizeof(path), "%s/faults/%s/ds_accel_faulty.so", TEST_FIXTURES, fault);
    /* A busy machine is no reason to say of others that they hang. */
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

/* Asked for by its user, a plugin runs in this process, and what it changes is put back. */
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
