/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is remembered of a load, as text. */
#include "opbuild.h"
#include "ops/load_record.h"

#include <string.h>
#include <unistd.h>

TestSuite(opbuild_load_record);

#define IDENTITY "0123456789abcdef"

static const struct ds_accel__load_record tiny = {
    .op = "tiny",
    .path = "/c/ops/tiny.so",
    .path_identity = IDENTITY,
    .manifest = "/c/ops/tiny.json",
    .manifest_identity = IDENTITY,
    .files_identity = IDENTITY,
    .compilers = {{"cc", "/usr/bin/cc"}, {"c++", "/opt/a b/c++"}},
    .compiler_count = 2,
    .files = "/etc/passwd\n",
};

Test(opbuild_load_record, what_is_written_is_read)
{
    struct ds_accel__load_record record;
    char *text = ds_accel__load_record_format(&tiny, "a\nb");

    cr_assert_not_null(text);
    cr_assert(ds_accel__load_record_parse(text, "a\nb", &record));
    cr_expect_str_eq(record.op, tiny.op);
    cr_expect_str_eq(record.path, tiny.path);
    cr_expect_str_eq(record.path_identity, IDENTITY);
    cr_expect_str_eq(record.manifest, tiny.manifest);
    cr_expect_str_eq(record.manifest_identity, IDENTITY);
    cr_expect_str_eq(record.files_identity, IDENTITY);
    cr_assert_eq(record.compiler_count, 2);
    cr_expect_str_eq(record.compilers[0].name, "cc");
    cr_expect_str_eq(record.compilers[1].path, "/opt/a b/c++");
    cr_expect_str_eq(record.files, tiny.files);
    free(text);
}

/* A variable's value may look like the lines behind the question. */
Test(opbuild_load_record, only_the_same_question_is_answered)
{
    static const char longer[] = "a\nop evil\npath /evil";
    static const char *const others[] = {"",          "a", "b", "a\n", "a\nop evil\npath /evi",
                                         "b\nop evil"};
    struct ds_accel__load_record record;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char *text = ds_accel__load_record_format(&tiny, longer);

        cr_assert_not_null(text);
        cr_expect(!ds_accel__load_record_parse(text, others[i], &record), "%s", others[i]);
        free(text);
    }
}

Test(opbuild_load_record, texts_of_several_lines_are_not_written)
{
    struct ds_accel__load_record record = tiny;

    record.path = "/c/ops\nmanifest /x";
    cr_expect_null(ds_accel__load_record_format(&record, "a"));
    record = tiny;
    record.manifest = "/c\n";
    cr_expect_null(ds_accel__load_record_format(&record, "a"));
    record = tiny;
    record.compilers[1].path = "/usr/bin/c++\ncompiler nvcc /x";
    cr_expect_null(ds_accel__load_record_format(&record, "a"));
}

static void expect_lines(const char **paths, size_t count, const char *lines)
{
    char *text = ds_accel__load_record_files(paths, count);

    cr_assert_not_null(text);
    cr_expect_str_eq(text, lines);
    free(text);
}

Test(opbuild_load_record, paths_are_relative_to_a_directory_of_many)
{
    const char *few[] = {"/b/2", "/a/1", "/"};
    const char *many[] = {"/d/h", "/d/g", "/d/f", "/d/e/1", "/d/e", "/d/", "/d/c", "/d/b", "/d/a"};
    const char *bad[] = {"/a\nb", "relative", ""};

    expect_lines(few, 3, "/.\n/a/1\n/b/2\n");
    expect_lines(many, 9, "/d/\n.\na\nb\nc\ne\nf\ng\nh\n/d/e/1\n");
    for (size_t i = 0; i < 3; i++) {
        cr_expect_null(ds_accel__load_record_files(&bad[i], 1), "%s", bad[i]);
    }
}

/* Files have the same identity by any path. */
Test(opbuild_load_record, relative_names_are_looked_up_in_their_directory)
{
    static const char *const bad[] = {"one", "/nonexistent/\none\n", "/dev/null\n", "\n"};
    char directory[300];
    char text[1024];
    uint64_t absolute;
    uint64_t relative;

    test_write("one", "1");
    test_write("two", "2");
    snprintf(directory, sizeof(directory), "%s", test_dir());
    snprintf(text, sizeof(text), "%s/one\n%s/two\n/\n/etc/passwd", directory, directory);
    /* "/" at the end names a directory for what follows */
    cr_expect(ds_accel__load_record_identify(text, &absolute));
    snprintf(text, sizeof(text), "%s/\none\ntwo\n/etc/passwd\n", directory);
    cr_expect(ds_accel__load_record_identify(text, &relative));
    cr_expect_eq(absolute, relative);
    snprintf(text, sizeof(text), "%s/\none\none\n/etc/passwd\n", directory);
    cr_expect(ds_accel__load_record_identify(text, &relative));
    cr_expect_neq(absolute, relative);
    cr_assert_eq(chdir(directory), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect(!ds_accel__load_record_identify(bad[i], &relative), "%s", bad[i]);
    }
}
