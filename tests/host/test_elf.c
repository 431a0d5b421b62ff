/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Files that are not plugins, and the effects that loading a file has on the process. */
#include "loader.h"

#include <elf.h>

/* ---- files that are not plugins -------------------------------------------------------------- */

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

/* ---- effects of loading on the process ------------------------------------------------------- */

/* Copy to a new file, because the previous file may be mapped. */
static const char *copy_anew(const char *from, const char *path)
{
    remove(test_path(path));
    return test_copy(from, path);
}

/* Open test_dir()/path, a new copy of a fixture, for changes. */
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

/* Find the program header of this type, which must exist; returns its offset. */
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

/* Write a copy of NONE with one program header changed by spoil(). */
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

/* Cut the dynamic section before its last entry, but after the entries of the string table. */
static void end_early(Elf64_Phdr *segment)
{
    segment->p_filesz = 20 * sizeof(Elf64_Dyn);
}

/* Write a copy of NONE with a second header for its dynamic section, in place of an unneeded
   header. */
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

/* Write a copy of NONE in which the dynamic entry of one tag has another tag and value. */
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

/* Overwrite a text in a file with a shorter one; the rest of the old text becomes NUL. */
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

/* The plugin is forced, probed in this process, and has a constructor that loading would run: its
   file must not be opened at all. */
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
