/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Lists of arguments, and what compilers write with -MD. */
#include "base/text.h"
#include "opbuild.h"
#include "ops/arguments.h"
#include "ops/depend.h"
#include "ops/listed.h"

/* ---- lists ----------------------------------------------------------------------------------- */

Test(opbuild_arguments, lists_end_with_null)
{
    struct ds_accel__arguments list = {0};
    char **taken = ds_accel__arguments_take(&list);

    cr_assert_not_null(taken);
    cr_expect_null(taken[0]);
    cr_expect_eq(ds_accel__arguments_count(taken), 0);
    ds_accel__arguments_free(taken);
    for (int i = 0; i < 100; i++) {
        ds_accel__arguments_add(&list, "%d", i);
    }
    ds_accel__arguments_add_all(&list, NULL);
    ds_accel__arguments_add_all(&list, ARGUMENTS("a", ""));
    taken = ds_accel__arguments_take(&list);
    cr_assert_eq(ds_accel__arguments_count(taken), 102);
    cr_expect_str_eq(taken[99], "99");
    cr_expect_str_eq(taken[101], "");
    cr_expect_null(taken[102]);
    cr_expect_eq(list.count, 0);
    ds_accel__arguments_free(taken);
    ds_accel__arguments_free(NULL);
    cr_expect_eq(ds_accel__arguments_count(NULL), 0);
}

/* ---- dependencies ---------------------------------------------------------------------------- */

static char **read_bytes(const char *text, size_t size)
{
    struct ds_accel__arguments files = {0};

    MUST(ds_accel__depend_read(text, size, &files));
    return ds_accel__arguments_take(&files);
}

/* Expect these files, with '|' between them. */
static void expect(const char *text, const char *wanted)
{
    char **files = read_bytes(text, strlen(text));
    char joined[1024] = "";

    for (size_t i = 0; files[i] != NULL; i++) {
        size_t length = strlen(joined);

        snprintf(joined + length, sizeof(joined) - length, "%s%s", i > 0 ? "|" : "", files[i]);
    }
    cr_expect_str_eq(joined, wanted, "%s: %s", text, joined);
    ds_accel__arguments_free(files);
}

static void expect_refused(const char *text, size_t size, const char *words)
{
    struct ds_accel__arguments files = {0};

    EXPECT_REFUSED(ds_accel__depend_read(text, size, &files), DS_ACCEL_ERR_INVALID, words);
    ds_accel__arguments_free(ds_accel__arguments_take(&files));
}

Test(opbuild_depend, the_forms_of_compilers)
{
    /* GCC */
    expect("/b/0.o: cpu_adam/adam.c /usr/include/stdc-predef.h common/adam.h \\\n"
           " cpu_adam/../plugin-api.h\n",
           "cpu_adam/adam.c|/usr/include/stdc-predef.h|common/adam.h|cpu_adam/../plugin-api.h");
    /* Clang */
    expect("/b/0.o: adam.c \\\n  /usr/lib/llvm-14/lib/clang/14.0.6/include/omp.h \\\n  a.h\n",
           "adam.c|/usr/lib/llvm-14/lib/clang/14.0.6/include/omp.h|a.h");
    /* nvcc */
    expect("/b/0.o : cuda/adam.cu \\\n    /usr/include/stdc-predef.h \\\n    "
           "/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h\n",
           "cuda/adam.cu|/usr/include/stdc-predef.h|"
           "/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h");
}

Test(opbuild_depend, quoted_characters)
{
    expect("a.o: with\\ blank.h tab\\\tname.h c\\#.h d$$e.h $$\n",
           "with blank.h|tab\tname.h|c#.h|d$e.h|$");
    expect("a.o: back\\slash.h $x c$ #d \\x\n", "back\\slash.h|$x|c$|#d|\\x");
    expect("a\\ b.o: x.h\n", "x.h");
    expect("a.o: C:\\x.h y:z.h w:\n", "C:\\x.h|y:z.h|w:");
}

Test(opbuild_depend, continued_lines)
{
    expect("a.o: a.c\\\nb.h\\\n\\\n \\\nc.h", "a.c|b.h|c.h");
    expect("a.o: a.c \\\r\n  b.h\\\r\nc.h\r\nd.h:\r\n", "a.c|b.h|c.h");
    expect(" \\\n a.o \\\n : \\\n a.c", "a.c");
    expect("a.o: a.c \\", "a.c");
    expect("a.o: a.c\\", "a.c");
    expect("a.o: a.c\\\r", "a.c\\");
}

Test(opbuild_depend, only_the_first_rule_counts)
{
    expect("a.o: a.c b.h\n\nb.h:\n", "a.c|b.h");
    expect("a.o: a.c\nb.o: b.c\n", "a.c");
    expect("a.o a.d: a.c\n", "a.c");
    expect("a:b.o: a.c\n", "a.c");
    expect("a.o:\n b.c\n", "");
    expect("a.o:", "");
}

Test(opbuild_depend, what_is_no_rule_is_refused)
{
    static const char *const texts[] = {"",      "\n",         "a.o a.c\n", "\na.o: a.c\n",
                                        ":a.c",  "a.o\n: a.c", " \\\n \n",  "a.o :a.c\n",
                                        "a.o\\", "\\"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        expect_refused(texts[i], strlen(texts[i]), "no target");
    }
    expect_refused("a.o: a.c\0b.h\n", 14, "a NUL");
    expect_refused("a.o: a.c\0", 9, "a NUL");
}

/* Nothing behind the given size is read: the sanitizers check that. */
Test(opbuild_depend, the_text_needs_no_end)
{
    static const char text[] = "a.o: a.c$$\\\r\n b\\ .h";

    for (size_t size = 5; size < sizeof(text); size++) {
        char *copy = malloc(size);
        char **files;

        cr_assert_not_null(copy);
        memcpy(copy, text, size);
        files = read_bytes(copy, size);
        cr_expect(ds_accel__arguments_count(files) <= 2);
        ds_accel__arguments_free(files);
        free(copy);
    }
}

Test(opbuild_depend, files_are_added_to_a_list)
{
    static char text[200016] = "a.o: ";
    struct ds_accel__arguments list = {0};
    char **files;

    memset(text + 5, 'x', 200000);
    ds_accel__arguments_add(&list, "before.h");
    MUST(ds_accel__depend_read(text, strlen(text), &list));
    MUST(ds_accel__depend_read("b.o: b.c", 8, &list));
    files = ds_accel__arguments_take(&list);
    cr_assert_eq(ds_accel__arguments_count(files), 3);
    cr_expect_str_eq(files[0], "before.h");
    cr_expect_eq(strlen(files[1]), 200000);
    cr_expect_str_eq(files[2], "b.c");
    ds_accel__arguments_free(files);
}

static int32_t attempt_read(void)
{
    struct ds_accel__arguments list = {0};
    struct ds_accel__text text = {0};
    int32_t status;
    char **files;

    ds_accel__text_add(&text, "%s", "a.o: ");
    for (int i = 0; i < 40; i++) {
        ds_accel__text_add(&text, "/usr/include/a-header-%d.h \\\n", i);
    }
    status = text.failed ? DS_ACCEL_ERR_NO_MEMORY
                         : ds_accel__depend_read(text.data, text.size_bytes, &list);
    files = ds_accel__arguments_take(&list);
    if (status == DS_ACCEL_OK && files != NULL) {
        cr_expect_eq(ds_accel__arguments_count(files), 40);
    } else if (status == DS_ACCEL_OK) {
        status = DS_ACCEL_ERR_NO_MEMORY;
    }
    ds_accel__arguments_free(files);
    ds_accel__text_clear(&text);
    return status;
}

Test(opbuild_depend, every_allocation_can_fail)
{
    fail_each(attempt_read);
}

/* ---- what assemblers and linkers list -------------------------------------------------------- */

/* Expect these files of those in the directory of the test, with '|' between them. */
static void expect_listed(const char *text, bool is_link, const char *wanted)
{
    struct ds_accel__arguments list = {0};
    char joined[1024] = "";
    char **files;

    ds_accel__listed_add(text, test_dir(), is_link, &list);
    files = ds_accel__arguments_take(&list);
    cr_assert_not_null(files);
    for (size_t i = 0; files[i] != NULL; i++) {
        size_t length = strlen(joined);

        snprintf(joined + length, sizeof(joined) - length, "%s%s", i > 0 ? "|" : "", files[i]);
    }
    cr_expect_str_eq(joined, wanted, "%s: %s", text, joined);
    ds_accel__arguments_free(files);
}

Test(opbuild_listed, each_linker_lists_in_its_own_way)
{
    test_write("a b/libfoo.a", "!<arch>\n");
    test_write("libx.a", "!<arch>\n");
    test_write("0.o", "");
    test_write("odd(1)", "");
    expect_listed("op.so: \\\n  0.o \\\n  a b/libfoo.a \\\n  absent.a\n\n0.o:\n", true,
                  "0.o|a b/libfoo.a");
    expect_listed("op.so: \\\n a\\ b/libfoo.a \\\n 0.o\n", true, "a b/libfoo.a|0.o");
    expect_listed("op.so: 0.o libx.a a\\ b/libfoo.a\n", true, "0.o|libx.a|a b/libfoo.a");
    expect_listed("/usr/bin/ld: mode elf_x86_64\n0.o\n(a b/libfoo.a)foo.o\n-lx (libx.a)\n", true,
                  "0.o|a b/libfoo.a|libx.a");
    expect_listed("a b/libfoo.a(foo.o)\nodd(1)\n", true, "a b/libfoo.a|odd(1)");
    expect_listed("", true, "");
    expect_listed("()\n(\n)(\n\\\n", true, "");
    expect_listed("a b\n", true, "");
}

/* The members of a thin archive are where they were. */
Test(opbuild_listed, the_members_of_thin_archives_are_listed)
{
    static const char archive[] = "!<thin>\n"
                                  "/               0           0     0     0       4         `\n"
                                  "\0\0\0\0"
                                  "//                                              23        `\n"
                                  "../a rather long name/\n\0"
                                  "/0              0           0     0     644     1216      `\n"
                                  "short.o/        0           0     0     644     1216      `\n"
                                  "absent.o/       0           0     0     644     1216      `\n"
                                  "/99             0           0     0     644     1216      `\n";

    test_write("a rather long name", "");
    test_write("sub/short.o", "");
    test_write_bytes("sub/libthin.a", archive, sizeof(archive) - 1);
    expect_listed("sub/libthin.a", true, "sub/libthin.a|sub/../a rather long name|sub/short.o");
    expect_listed("sub/libthin.a", false, "sub/libthin.a");
    test_write_bytes("sub/libthin.a", archive, 100);
    expect_listed("sub/libthin.a", true, "sub/libthin.a");
}

/* They are inputs of an assembler, which can include any file. */
Test(opbuild_listed, shared_libraries_are_no_inputs_of_a_link)
{
    char library[] = "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0";

    test_write_bytes("libx.so", library, sizeof(library) - 1);
    test_write("libscript.so", "INPUT(-lx)\n");
    expect_listed("op.so: libx.so libscript.so\n", true, "libscript.so");
    expect_listed("op.so: libx.so libscript.so\n", false, "libx.so|libscript.so");
    library[16] = 1; /* ET_REL */
    test_write_bytes("libx.so", library, sizeof(library) - 1);
    expect_listed("op.so: libx.so\n", true, "libx.so");
    library[5] = 2; /* big endian */
    library[16] = 0;
    library[17] = 3;
    test_write_bytes("libx.so", library, sizeof(library) - 1);
    expect_listed("op.so: libx.so\n", true, "");
}

static int32_t attempt_list(void)
{
    struct ds_accel__arguments list = {0};
    char **files;

    ds_accel__listed_add("op.so: 0.o\n  sub/libthin.a\n", test_dir(), true, &list);
    files = ds_accel__arguments_take(&list);
    ds_accel__arguments_free(files);
    return files != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

Test(opbuild_listed, every_allocation_can_fail)
{
    test_write("0.o", "");
    test_write("sub/a", "");
    test_write("sub/libthin.a", "!<thin>\n"
                                "//                                              2         `\n"
                                "a\n"
                                "/0              0           0     0     644     1216      `\n");
    fail_each(attempt_list);
}
