/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The file that an op was loaded from is found again, unless anything has changed. */
#include "host/context.h"
#include "ops/load_cache.h"
#include "ops/store.h"
#include "ops/timed.h"
#include "tiny.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct ds_accel__resolve_options options;
static char found[512]; /* of find() */

/* The system's compiler, because nothing is remembered of one that was written just now. */
static void begin(void)
{
    tiny_begin();
    unsetenv("CC");
}

TestSuite(opbuild_load_cache, .init = begin, .fini = tiny_end);

/* The file in which something is remembered. */
static const char *remembered(void)
{
    static char name[300];
    const struct dirent *entry;
    DIR *dir = opendir(tiny_cache);

    cr_assert_not_null(dir);
    name[0] = '\0';
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "ops-load.", 9) == 0) {
            snprintf(name, sizeof(name), "cache/%.200s", entry->d_name);
        }
    }
    closedir(dir);
    cr_assert(name[0] != '\0');
    return name;
}

/* Build the op unless it is built, search it, and remember it as if that was ten seconds later. */
static void keep(void)
{
    struct ds_accel__resolved resolved;

    tiny_context->config.ops_read_s = time(NULL) + 10;
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
        if (i == 1) {
            cr_assert_eq(resolved.origin, DS_ACCEL__ORIGIN_CACHED, "%s", resolved.reason);
            ds_accel__load_cache_keep(tiny_context, TINY_BACKEND, "TinyBuilder", "tiny",
                                      time(NULL) + 10, &resolved);
        }
        ds_accel__resolved_clear(&resolved);
    }
}

static bool find_named(const char *backend, const char *name)
{
    struct ds_accel__kernel kernel;
    char op[DS_ACCEL__OP_NAME_SIZE] = "";
    bool has;

    MUST(ds_accel__load_cache_find(tiny_context, backend, name, op, &kernel));
    has = kernel.path != NULL;
    if (has) {
        cr_expect_str_eq(op, "tiny");
        snprintf(found, sizeof(found), "%s", kernel.path);
    }
    free(kernel.path);
    return has;
}

static bool find(void)
{
    return find_named(TINY_BACKEND, "TinyBuilder");
}

static void keep_and_find(void)
{
    if (!ds_accel__is_timed_path(test_dir())) {
        cr_skip("nothing is remembered of files in memory, where the tests have theirs");
    }
    keep();
    cr_assert(find());
}

/* Rewrite a file with equally many bytes, and set its time of modification back. */
static void change(const char *name, const char *text)
{
    struct stat info;
    struct timespec times[2];

    cr_assert_eq(stat(test_path(name), &info), 0);
    test_write(name, text);
    times[0] = info.st_atim;
    times[1] = info.st_mtim;
    cr_assert_eq(utimensat(AT_FDCWD, test_path(name), times, 0), 0);
}

Test(opbuild_load_cache, what_was_found_is_found_again)
{
    char path[512];

    cr_expect(!find());
    keep_and_find();
    snprintf(path, sizeof(path), "%s/ops/tiny.", tiny_cache);
    EXPECT_HAS(found, path);
    cr_expect(!find_named("cuda", "TinyBuilder"));
    cr_expect(!find_named(TINY_BACKEND, "tiny"));
    cr_expect(!find_named(TINY_BACKEND, "../TinyBuilder"));
    cr_expect(!find_named(TINY_BACKEND, ""));
}

/* Equal sizes and times of modification hide nothing. */
Test(opbuild_load_cache, a_change_of_any_input_is_seen)
{
    keep_and_find();
    change("source/tiny.h", "#define NAME \"tinY\"\n");
    cr_expect(!find());
    test_write("source/tiny.h", "#define NAME \"tiny\"\n");
    keep_and_find();
    test_write("source/tiny.c", TINY_SOURCE "\n");
    cr_expect(!find());
    keep_and_find();
    test_write("source/more.c", "int more;\n");
    cr_expect(!find());
    keep_and_find();
    cr_assert_eq(unlink(test_path("source/ops/op.h")), 0);
    cr_expect(!find());
}

/* Also of what only the linker or the assembler reads, and of what a variable names. */
Test(opbuild_load_cache, a_change_of_a_library_is_seen)
{
    char value[1024];

    test_write("source/blob", "1");
    test_write("source/tiny.c", TINY_SOURCE "int foo(void);\nint tiny_foo(void);\n"
                                            "int tiny_foo(void) { return foo(); }\n"
                                            "__asm__(\".section .rodata\\n.incbin "
                                            "\\\"blob\\\"\\n.previous\");\n");
    snprintf(value, sizeof(value),
             "cd '%s' && echo 'int foo(void) { return 1; }' >foo.c && gcc -fPIC -c foo.c && "
             "ar rc libfoo.a foo.o",
             test_dir());
    cr_assert_eq(system(value), 0, "%s", value);
    snprintf(value, sizeof(value), ", \"libs\": [\"foo\"], \"ldflags\": [\"-L%s\"]", test_dir());
    tiny_configure(value);
    keep_and_find();
    change("source/blob", "2");
    cr_expect(!find());
    keep_and_find();
    snprintf(value, sizeof(value), "cd '%s' && cp libfoo.a other.a && mv other.a libfoo.a",
             test_dir());
    cr_assert_eq(system(value), 0, "%s", value);
    cr_expect(!find());
    snprintf(value, sizeof(value), "cc @%s", test_write("flags", "-O1"));
    setenv("CC", value, 1);
    usleep(3100000); /* what was written just now is not remembered */
    keep_and_find();
    change("flags", "-O2");
    cr_expect(!find());
}

Test(opbuild_load_cache, a_change_of_the_linker_is_seen)
{
    static const char script[] = "#!/bin/sh\nexec ld \"$@\"\n";
    char value[1024];

    write_script("linkers/ld.gold", script);
    snprintf(value, sizeof(value), ", \"ldflags\": [\"-B%s\", \"-fuse-ld=gold\"]",
             test_path("linkers"));
    tiny_configure(value);
    usleep(3100000); /* what was written just now is not remembered */
    keep_and_find();
    write_script("linkers/ld.gold", script);
    cr_expect(!find());
}

Test(opbuild_load_cache, a_change_of_the_recipe_is_seen)
{
    keep_and_find();
    tiny_configure(", \"ldflags\": [\"-Wl,-O1\"]");
    cr_expect(!find());
    keep_and_find();
    tiny_configure(", \"ldflags\": [\"-Wl,-O1\"]"); /* the same contents, but who knows */
    cr_expect(!find());
    keep_and_find();
    test_write("share/more.ops.json", "{}");
    tiny_configure("");
    cr_expect(!find());
}

Test(opbuild_load_cache, other_compilers_and_variables_are_seen)
{
    char path[1024];

    keep_and_find();
    setenv("CC", tiny_compiler(": another"), 1);
    cr_expect(!find());
    keep(); /* it was written just now */
    cr_expect(!find());
    unsetenv("CC"); /* cc is searched in PATH */
    keep_and_find();
    setenv("TORCH_CUDA_ARCH_LIST", "9.0", 1);
    cr_expect(!find());
    unsetenv("TORCH_CUDA_ARCH_LIST");
    cr_expect(find());
    snprintf(path, sizeof(path), "%s:%s", test_path("later"), getenv("PATH"));
    setenv("PATH", path, 1);
    cr_expect(!find());
    keep_and_find();
    cr_assert_eq(mkdir(test_path("later"), 0755), 0);
    cr_expect(find());
    write_script("later/cc", "#!/bin/sh\nexec gcc \"$@\"\n");
    cr_expect(!find());
}

Test(opbuild_load_cache, another_file_is_not_taken_for_the_one)
{
    FILE *file;

    keep_and_find();
    file = fopen(found, "r+b");
    cr_assert_not_null(file);
    fseek(file, -1, SEEK_END);
    fputc('x', file);
    fclose(file);
    cr_expect(!find());
    keep_and_find();
    cr_assert_eq(chmod(found, 0666), 0);
    cr_expect(!find());
    keep_and_find();
    cr_assert_eq(unlink(found), 0);
    cr_expect(!find());
}

/* Names may be as long as those of xpu.external's builders, and longer. */
Test(opbuild_load_cache, long_names_are_remembered)
{
    static const char name[] = "StochasticTransformerBuilderOfAVendorWithALongName1234567890ABC";
    struct ds_accel__resolved resolved;

    keep_and_find();
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
    ds_accel__load_cache_keep(tiny_context, "xpu.external", name, "tiny", time(NULL) + 10,
                              &resolved);
    ds_accel__resolved_clear(&resolved);
    cr_expect(find_named("xpu.external", name));
    cr_expect(find());
}

/* What the process has read of the table of recipes is older than the table. */
Test(opbuild_load_cache, a_table_that_changed_since_it_was_read_is_not_remembered)
{
    struct ds_accel__resolved resolved;

    for (int i = 0; i < 2; i++) {
        MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
        ds_accel__load_cache_keep(tiny_context, TINY_BACKEND, "TinyBuilder", "tiny",
                                  time(NULL) + 10, &resolved);
        ds_accel__resolved_clear(&resolved);
    }
    cr_expect(!find());
    keep_and_find();
}

/* After ops build --force, another entry may be the first. */
Test(opbuild_load_cache, another_manifest_is_seen)
{
    struct ds_accel__resolved resolved;

    keep_and_find();
    options.is_forced = true;
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
    cr_expect_eq(resolved.origin, DS_ACCEL__ORIGIN_BUILT);
    ds_accel__resolved_clear(&resolved);
    cr_expect(!find());
}

/* A link that leads to the sources is switched to those of another release. */
Test(opbuild_load_cache, a_link_to_other_sources_is_seen)
{
    char text[1024];
    char place[300];

    snprintf(place, sizeof(place), "%s", test_path("source"));
    cr_assert_eq(symlink(place, test_path("current")), 0);
    snprintf(text, sizeof(text), "%s", test_path("current"));
    tiny_configure_at(text);
    keep_and_find();
    snprintf(place, sizeof(place), "%s", test_path("second"));
    test_copy(TEST_SOURCE "/ops/op.h", "second/ops/op.h");
    test_copy(TEST_SOURCE "/plugin-api.h", "second/plugin-api.h");
    test_write("second/tiny.h", "#define NAME \"tiny\"\n");
    test_write("second/tiny.c", TINY_SOURCE);
    cr_assert_eq(unlink(text), 0);
    cr_assert_eq(symlink(place, text), 0);
    cr_expect(!find());
}

/* They can change with the same times: a program that has mapped one writes. */
Test(opbuild_load_cache, sources_in_memory_are_not_remembered)
{
    char memory[] = "/dev/shm/ds-accel-test-XXXXXX";
    char command[1024];

    if (mkdtemp(memory) == NULL) {
        cr_skip("there is no /dev/shm");
    }
    keep_and_find();
    snprintf(command, sizeof(command), "cp -R '%s/.' '%s'", test_path("source"), memory);
    cr_assert_eq(system(command), 0);
    tiny_configure_at(memory);
    keep();
    cr_expect(!find());
    snprintf(command, sizeof(command), "rm -r '%s'", memory);
    cr_assert_eq(system(command), 0);
}

/* Of a directory with many inputs, too, which is opened once. */
Test(opbuild_load_cache, a_change_among_many_headers_is_seen)
{
    char text[4096] = TINY_SOURCE;
    char name[64];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "source/many/%d.h", i);
        test_write(name, "/* 1 */");
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "#include \"many/%d.h\"\n", i);
    }
    test_write("source/tiny.c", text);
    for (int i = 0; i < 20; i += 19) {
        keep_and_find();
        snprintf(name, sizeof(name), "source/many/%d.h", i);
        change(name, "/* 2 */");
        cr_expect(!find());
    }
    keep_and_find();
    snprintf(text, sizeof(text), "cd '%s/source' && mv many more && cp -a more many", test_dir());
    cr_assert_eq(system(text), 0);
    cr_expect(!find());
    keep_and_find();
    snprintf(text, sizeof(text), "cd '%s/source' && rm -r many && ln -s more many", test_dir());
    cr_assert_eq(system(text), 0);
    cr_expect(!find());
}

Test(opbuild_load_cache, what_changed_just_now_is_not_remembered)
{
    struct ds_accel__resolved resolved;

    for (int i = 0; i < 2; i++) {
        MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
        ds_accel__load_cache_keep(tiny_context, TINY_BACKEND, "TinyBuilder", "tiny", time(NULL),
                                  &resolved);
        ds_accel__resolved_clear(&resolved);
        cr_expect(!find());
    }
}

Test(opbuild_load_cache, without_a_cache_or_compiler_nothing_is_remembered)
{
    const char *path = getenv("PATH");

    keep_and_find();
    setenv("DS_ACCEL_CACHE", "off", 1);
    tiny_configure("");
    cr_expect(!find());
    setenv("DS_ACCEL_CACHE", "ro", 1);
    tiny_configure("");
    keep();
    cr_expect(!find());
    unsetenv("DS_ACCEL_CACHE");
    tiny_configure("");
    unsetenv("CC");
    setenv("PATH", "/nowhere", 1);
    keep();
    cr_expect(!find());
    setenv("PATH", path, 1);
}

/* Write what is remembered with another line in the place of one; NULL: without that one. */
static void replace_line(const char *text, size_t number, const char *line)
{
    FILE *file = fopen(test_path(remembered()), "w");

    cr_assert_not_null(file);
    for (size_t at = 0; *text != '\0'; at++) {
        int length = (int)strcspn(text, "\n");

        if (at != number) {
            fprintf(file, "%.*s\n", length, text);
        } else if (line != NULL) {
            fprintf(file, "%s\n", line);
        }
        text += length + (text[length] == '\n');
    }
    fclose(file);
}

/* The text is from a file of this user: it may be damaged, but not hostile. */
Test(opbuild_load_cache, a_damaged_file_is_ignored)
{
    static const char *const others[] = {NULL, "", "x", "/", "path ", "compiler cc"};
    static char whole[65536];
    size_t size;
    size_t lines = 0;
    FILE *file;

    keep_and_find();
    file = fopen(test_path(remembered()), "r");
    cr_assert_not_null(file);
    size = fread(whole, 1, sizeof(whole) - 1, file);
    fclose(file);
    for (size_t i = 0; i < size; i++) {
        lines += whole[i] == '\n';
    }
    cr_assert(lines > 20);
    for (size_t i = 0; i < lines; i++) {
        for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++) {
            replace_line(whole, i, others[j]);
            cr_expect(!find(), "line %zu: %s", i, others[j] != NULL ? others[j] : "none");
        }
    }
    replace_line(whole, lines, NULL);
    cr_expect(find());
    for (size_t i = size - 2; i < size; i -= 13) { /* until it is below 0 */
        cr_assert_eq(truncate(test_path(remembered()), (off_t)i), 0);
        cr_expect(!find(), "%zu bytes", i);
    }
}

static struct ds_accel__resolved kept;

static int32_t attempt(void)
{
    struct ds_accel__kernel kernel;
    char op[DS_ACCEL__OP_NAME_SIZE];
    int32_t status;

    ds_accel__load_cache_keep(tiny_context, TINY_BACKEND, "TinyBuilder", "tiny", time(NULL) + 10,
                              &kept);
    status = ds_accel__load_cache_find(tiny_context, TINY_BACKEND, "TinyBuilder", op, &kernel);
    free(kernel.path);
    return status;
}

Test(opbuild_load_cache, every_allocation_can_fail)
{
    keep_and_find();
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &kept));
    fail_each(attempt);
    cr_expect(find());
    ds_accel__resolved_clear(&kept);
}
