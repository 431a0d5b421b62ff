/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Lists of arguments, and what compilers write with -MD. */
#include "base/text.h"
#include "opbuild.h"
#include "ops/arguments.h"
#include "ops/depend.h"

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
