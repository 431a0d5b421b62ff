/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Recipes: which row, which sources, what cannot be followed, and the digest. */
#include "config/config.h"
#include "config/prefix.h"
#include "opbuild.h"
#include "ops/arguments.h"
#include "ops/recipe.h"

#include <sys/stat.h>
#include <unistd.h>

static struct ds_accel__config config;
static struct ds_accel__recipe recipe;

/* Read the rows of "kernels"; %s among them is the test's directory. */
static void configure(const char *rows)
{
    char text[4096] = "{\"kernels\": {";
    size_t length = strlen(text);

    for (; *rows != '\0'; rows++) {
        if (strncmp(rows, "%s", 2) == 0) {
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s", test_dir());
            rows++;
        } else {
            text[length++] = *rows;
        }
    }
    snprintf(text + length, sizeof(text) - length, "}}");
    ds_accel__config_clear(&config);
    config = (struct ds_accel__config){.files = NULL};
    MUST(
        ds_accel__config_add_file(&config, "/test/ops.json", DS_ACCEL__CONFIG_LAYER_PACKAGE, text));
    cr_assert_eq(ds_accel__config_read(&config, true), DS_ACCEL_OK, "%s: %s", text,
                 config.problem_count > 0 ? config.problems[0].message : ds_accel_last_error());
}

static void read_as(const char *backend, const char *op)
{
    ds_accel__recipe_clear(&recipe);
    MUST(ds_accel__recipe_read(&config, backend, op, &recipe));
}

static void read_rows(const char *rows)
{
    configure(rows);
    read_as("cpu", "tiny");
}

/* Expect that a row cannot be followed. */
static void expect_refused(const char *row, const char *words)
{
    char rows[1024];
    struct ds_accel__recipe refused;

    snprintf(rows, sizeof(rows), "\"tiny\": %s", row);
    configure(rows);
    EXPECT_REFUSED(ds_accel__recipe_read(&config, "cpu", "tiny", &refused), DS_ACCEL_ERR_CONFIG,
                   words);
    EXPECT_HAS(ds_accel_last_error(), "tiny");
    cr_expect_null(refused.name);
    cr_expect_null(refused.sources);
    cr_expect_eq(refused.image_count, 0);
}

static void begin(void)
{
    test_write("source/a.c", "int a;\n");
    test_write("source/b.c", "int b;\n");
}

static void end(void)
{
    ds_accel__recipe_clear(&recipe);
    ds_accel__config_clear(&config);
}

TestSuite(opbuild_recipe, .init = begin, .fini = end);

/* ---- languages ------------------------------------------------------------------------------- */

Test(opbuild_recipe, a_source_has_a_language)
{
    static const struct {
        const char *source;
        enum ds_accel__language language;
    } cases[] = {
        {"a.c", DS_ACCEL__LANGUAGE_C},       {"a/b.cpp", DS_ACCEL__LANGUAGE_CXX},
        {"a.cc", DS_ACCEL__LANGUAGE_CXX},    {"a.cxx", DS_ACCEL__LANGUAGE_CXX},
        {"a.cu", DS_ACCEL__LANGUAGE_CUDA},   {"a.hip", DS_ACCEL__LANGUAGE_HIP},
        {"a.sycl", DS_ACCEL__LANGUAGE_SYCL}, {"a.dp.cpp", DS_ACCEL__LANGUAGE_SYCL},
        {"a.c.cpp", DS_ACCEL__LANGUAGE_CXX}, {"a.h", DS_ACCEL__LANGUAGE_COUNT},
        {".c", DS_ACCEL__LANGUAGE_COUNT},    {"", DS_ACCEL__LANGUAGE_COUNT},
        {"a.C", DS_ACCEL__LANGUAGE_COUNT},   {"c", DS_ACCEL__LANGUAGE_COUNT},
        {"a.c/b", DS_ACCEL__LANGUAGE_COUNT}, {"a.c ", DS_ACCEL__LANGUAGE_COUNT},
        {".dp.cpp", DS_ACCEL__LANGUAGE_CXX},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cr_expect_eq(ds_accel__recipe_language(cases[i].source), cases[i].language, "%s",
                     cases[i].source);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define ROW "{\"source_dir\": \"%s/source\", \"sources\": [\"a.c\"]}"
#define CUDA_ROW "{\"source_dir\": \"%s/source\", \"sources\": [\"b.c\"]}"

Test(opbuild_recipe, the_row_of_a_backend_wins)
{
    struct ds_accel__recipe none;

    configure("\"tiny\": " ROW ", \"cuda/tiny\": " CUDA_ROW);
    read_as("cuda", "tiny");
    cr_expect_str_eq(recipe.name, "cuda/tiny");
    cr_expect_str_eq(recipe.op, "tiny");
    cr_expect_str_eq(recipe.sources[0], "b.c");
    read_as("cpu", "tiny");
    cr_expect_str_eq(recipe.name, "tiny");
    cr_expect_str_eq(recipe.op, "tiny");
    cr_expect_str_eq(recipe.sources[0], "a.c");
    EXPECT_REFUSED(ds_accel__recipe_read(&config, "cpu", "other", &none), DS_ACCEL_ERR_NOT_FOUND,
                   "no recipe of other for cpu");
    cr_expect_null(none.name);
    configure("\"cuda/tiny\": " ROW);
    EXPECT_STATUS(ds_accel__recipe_read(&config, "cpu", "tiny", &none), DS_ACCEL_ERR_NOT_FOUND);
    /* A row that is masked is none. */
    configure("\"tiny\": " ROW ", \"cuda/tiny\": null");
    read_as("cuda", "tiny");
    cr_expect_str_eq(recipe.name, "tiny");
}

Test(opbuild_recipe, all_lists_end_with_null)
{
    read_rows("\"tiny\": " ROW);
    cr_expect_eq(ds_accel__arguments_count(recipe.sources), 1);
    cr_assert(recipe.include_dirs != NULL && recipe.cflags != NULL &&
              recipe.device_cflags != NULL && recipe.ldflags != NULL && recipe.libs != NULL);
    cr_expect_null(recipe.include_dirs[0]);
    cr_expect_null(recipe.cflags[0]);
    cr_expect_null(recipe.device_cflags[0]);
    cr_expect_null(recipe.ldflags[0]);
    cr_expect_null(recipe.libs[0]);
    cr_expect_eq(recipe.image_count, 0);
    cr_expect_null(recipe.requires);
}

Test(opbuild_recipe, all_members_are_read)
{
    read_rows("\"tiny\": {\"source_dir\": \"%s/source/.\", \"sources\": [\"a.c\"],"
              "\"include_dirs\": [\".\", \"/usr/include\"], \"cflags\": [\"-O3\", \"-O3\"],"
              "\"device_cflags\": [\"-G\"], \"ldflags\": [\"-s\"], \"libs\": [\"m\", \"dl\"],"
              "\"images\": {\"IMAGE\": \"x.cu\", \"MASKED\": null},"
              "\"requires\": {\"env\": [\"HOME\"]}}");
    ds_accel__config_clear(&config); /* the recipe borrows nothing */
    config = (struct ds_accel__config){.files = NULL};
    cr_expect_str_eq(recipe.source_dir, test_path("source"));
    cr_expect_str_eq(recipe.include_dirs[1], "/usr/include");
    cr_expect_eq(ds_accel__arguments_count(recipe.cflags), 2);
    cr_expect_str_eq(recipe.device_cflags[0], "-G");
    cr_expect_str_eq(recipe.ldflags[0], "-s");
    cr_expect_str_eq(recipe.libs[1], "dl");
    cr_assert_eq(recipe.image_count, 1);
    cr_expect_str_eq(recipe.images[0].macro, "IMAGE");
    cr_expect_str_eq(recipe.images[0].source, "x.cu");
    cr_expect_not_null(json_object_get(recipe.requires, "env"));
}

static void expect_sources(const char *sources, const char *wanted)
{
    char rows[512];
    char joined[512] = "";

    snprintf(rows, sizeof(rows), "\"tiny\": {\"source_dir\": \"%%s/source\", \"sources\": %s}",
             sources);
    read_rows(rows);
    for (size_t i = 0; recipe.sources[i] != NULL; i++) {
        size_t length = strlen(joined);

        snprintf(joined + length, sizeof(joined) - length, "%s%s", i > 0 ? " " : "",
                 recipe.sources[i]);
    }
    cr_expect_str_eq(joined, wanted, "%s: %s", sources, joined);
}

Test(opbuild_recipe, patterns_are_replaced_by_what_matches)
{
    test_write("source/.hidden.c", "");
    test_write("source/a.h", "");
    test_write("source/below/z.cpp", "");
    test_write("source/below/y.cpp", "");
    test_write("source/below/deeper/x.cpp", "");
    test_write("source/[x].c", "");
    expect_sources("[\"b.c\", \"*.c\", \"b.c\"]", "[x].c a.c b.c");
    expect_sources("[\"below/*.cpp\", \"?.c\"]", "a.c b.c below/y.cpp below/z.cpp");
    expect_sources("[\"[b-z].c\"]", "b.c");
    /* A name without a pattern is looked for only when its contents are read. */
    expect_sources("[\"none.c\", \"a.c\"]", "a.c none.c");
}

Test(opbuild_recipe, what_cannot_be_followed_says_why)
{
#define BEGIN "{\"source_dir\": \"%s/source\", \"sources\": "
    test_write("source/a.h", "");
    expect_refused("{\"sources\": [\"a.c\"]}", "no source_dir");
    expect_refused("{\"source_dir\": \"\", \"sources\": [\"a.c\"]}", "no source_dir");
    expect_refused("{\"source_dir\": \"%s/none\", \"sources\": [\"a.c\"]}",
                   "/none: No such file or directory");
    expect_refused("{\"source_dir\": \"%s/source\"}", "no sources");
    expect_refused(BEGIN "[]}", "no sources");
    expect_refused(BEGIN "[\"*.cu\"]}", "there is no source");
    expect_refused(BEGIN "[\"none/*.c\"]}", "there is no source");
    expect_refused(BEGIN "[\"a.c/*.c\"]}", "a.c: ");
    expect_refused(BEGIN "[\"a.h\"]}", "a.h: its suffix is that of no language");
    expect_refused(BEGIN "[\"a.*\"]}", "a.h: its suffix is that of no language");
    expect_refused(BEGIN "[\"a.c\"], \"cflags\": [\"-O3\", \"-march=native\"]}",
                   "-march=native is the CPU that compiles");
    expect_refused(BEGIN "[\"a.c\"], \"cflags\": [\"-mcpu=native\"]}", "-mcpu=native");
    expect_refused(BEGIN "[\"a.c\"], \"device_cflags\": [\"-arch\", \"native\"]}",
                   "native is the CPU that compiles");
    expect_refused(BEGIN "[\"a.c\"], \"device_cflags\": [\"-xHost\"]}", "-xHost");
    test_write("source/flags", "-O2 '-march=native'");
    expect_refused(BEGIN "[\"a.c\"], \"cflags\": [\"@flags\"]}", "-march=native is the CPU");
    expect_refused(BEGIN "[\"a.c\"], \"ldflags\": [\"-march=native\"]}",
                   "-march=native is the CPU");
    expect_refused(BEGIN "[\"a.c\"], \"cflags\": [\"-g\", \"-gsplit-dwarf\"]}",
                   "-gsplit-dwarf puts the debug information into files");
    expect_refused(BEGIN "[\"a.c\"], \"device_cflags\": [\"-Xcompiler=-g,-gsplit-dwarf\"]}",
                   "-gsplit-dwarf puts the debug information into files");
    expect_refused(BEGIN "[\"a.c\"], \"images\": {\"A\": \"a.cu\", \"B\": \"a.c\"}}",
                   "only nvcc makes images");
}

static void expect_flag(const char *key, const char *flags, const char *requires, const char *words)
{
    char row[600];

    snprintf(row, sizeof(row),
             "{\"source_dir\": \"%%s/source\", \"sources\": [\"a.c\"], \"%s\": [%s], "
             "\"requires\": {\"cpu\": [%s]}}",
             key, flags, requires);
    if (words != NULL) {
        expect_refused(row, words);
    } else {
        char rows[700];

        snprintf(rows, sizeof(rows), "\"tiny\": %s", row);
        read_rows(rows);
    }
}

/* With these, equal keys would have different files. */
Test(opbuild_recipe, flags_that_are_not_reproducible_are_refused)
{
    static const struct {
        const char *key;
        const char *flags;
        const char *words; /* NULL: it is not refused */
    } cases[] = {
        {"cflags", "\"--coverage\"", "--coverage lets the op count into files"},
        {"ldflags", "\"--coverage\"", "--coverage lets the op count into files"},
        {"cflags", "\"-fprofile-generate=/x\"", "count into files"},
        {"cflags", "\"-fprofile-arcs\"", "count into files"},
        {"cflags", "\"-ftest-coverage\"", "count into files"},
        {"cflags", "\"-fprofile-use=x.gcda\"", "reads profiles"},
        {"cflags", "\"-fauto-profile\"", "reads profiles"},
        {"cflags", "\"-save-temps=obj\"", "writes files beside the objects"},
        {"cflags", "\"-fstack-usage\"", "writes files beside the objects"},
        {"cflags", "\"-fcallgraph-info=su\"", "writes files beside the objects"},
        {"cflags", "\"-fdump-tree-all\"", "writes files beside the objects"},
        {"cflags", "\"-aux-info\", \"x\"", "writes files beside the objects"},
        {"device_cflags", "\"--keep\"", "writes files beside the objects"},
        {"device_cflags", "\"--keep-device-functions\"", NULL},
        {"cflags", "\"-frecord-gcc-switches\"", "puts the command into the op"},
        {"cflags", "\"-MF\", \"x\"", "-MF changes the output"},
        {"cflags", "\"-Wp,-MD,x\"", "-Wp,-MD,x changes the output"},
        {"cflags", "\"-ox.o\"", "changes the output"},
        {"device_cflags", "\"-optf\", \"x\"", NULL},
        {"cflags", "\"-E\"", "changes the output"},
        {"ldflags", "\"-Wl,-E,-S,-Map=x\"", NULL}, /* other letters for the linker */
        {"ldflags", "\"-Xlinker\", \"-E\"", NULL},
        {"ldflags", "\"-Xlinker\", \"--build-id=uuid\"", "makes another file each time"},
        {"cflags", "\"-DX=-c\", \"-DY=,-c\"", NULL},
        {"cflags", "\"-specs=nosys.specs\"", "names a file that the compiler searches"},
        {"cflags", "\"-specs=./x.specs\"", NULL},
        {"cflags", "\"-fplugin=x\"", "names a file that the compiler searches"},
        {"cflags", "\"-fplugin=/x.so\"", NULL},
        {"cflags", "\"-Btools\"", "chooses programs"},
        {"ldflags", "\"-Btools\"", NULL},
        {"device_cflags", "\"-ccbin\", \"g++\"", "chooses programs"},
        {"device_cflags", "\"-Xcompiler=-O2,--coverage\"", "count into files"},
        {"device_cflags", "\"-Xcompiler\", \"-O2,-save-temps\"", "writes files beside"},
        {"ldflags", "\"-Wl,-z,now,--build-id=uuid\"", "makes another file each time"},
        {"ldflags", "\"-Wl,--build-id=sha1\"", NULL},
        {"cflags", "\"-frandom-seed=x\", \"-isystem\", \"x\", \"-include\", \"x.h\"", NULL},
        {"cflags", "\"-O3\", \"-fopenmp\", \"-fPIC\", \"-std=c++17\", \"-Wall\", \"-g\"", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect_flag(cases[i].key, cases[i].flags, "", cases[i].words);
    }
}

/* Or the op would end in SIGILL on another CPU. */
Test(opbuild_recipe, instruction_sets_must_be_required)
{
    static const struct {
        const char *flags;
        const char *requires;
        const char *words; /* NULL: it is not refused */
    } cases[] = {
        {"\"-mavx512f\"", "",
         "-mavx512f uses instructions that not every CPU has: add \"avx512f\" to \"cpu\" of "
         "\"requires\""},
        {"\"-mavx512f\"", "\"avx2\"", "add \"avx512f\""},
        {"\"-mavx512f\"", "\"avx512f\"", NULL},
        {"\"-mavx512f\"", "\"avx512bw\"", NULL},
        {"\"-mavx512bw\"", "\"avx512f\"", "add \"avx512bw\""},
        {"\"-mavx2\", \"-mfma\"", "\"avx512f\"", NULL},
        {"\"-mavx2\", \"-mfma\"", "\"avx2\"", "-mfma uses"},
        {"\"-mavx2\"", "\"avx\"", "add \"avx2\""},
        {"\"-mavx\"", "\"fma\"", NULL},
        {"\"-msse4.1\"", "\"avx\"", NULL},
        {"\"-march=x86-64-v4\"", "\"avx512f\", \"avx512vl\"",
         "add \"avx512bw\", \"avx512cd\", \"avx512dq\" to"},
        {"\"-march=x86-64-v3\"", "\"avx2\", \"fma\", \"bmi2\"", NULL},
        {"\"-march=x86-64-v3\"", "\"avx2\"", "add \"fma\", \"bmi2\" to"},
        {"\"-mcpu=neoverse-v1\"", "", "add what it uses"},
        {"\"-mcpu=neoverse-v1\"", "\"sve\"", NULL},
        {"\"-march=armv8.2-a+sve\"", "\"neon\"", "add \"sve\""},
        {"\"-march=znver4\"", "", "add what it uses"},
        {"\"-xCORE-AVX512\"", "", "add what it uses"},
        {"\"-mgfni\"", "", "add what it uses"},
        {"\"-Xcompiler=-O2,-mavx2\"", "", "add \"avx2\""},
        {"\"-Xcompiler\", \"-mno-avx,-mavx2\"", "", "add \"avx2\""},
        {"\"-mtune=native2\", \"-m64\", \"-mno-avx\", \"-mcmodel=large\", \"-msse2\"", "", NULL},
        {"\"-march=x86-64\", \"-march=rv64gc\", \"-mfpmath=sse\", \"-mprefer-vector-width=256\"",
         "", NULL},
        {"\"-xc\", \"-D__AVX512__\", \"-mcpu=gfx90a\", \"-fopenmp\"", "", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        expect_flag("cflags", cases[i].flags, cases[i].requires, cases[i].words);
    }
    test_write("source/flags", "-O2 -mavx2");
    expect_flag("device_cflags", "\"@flags\"", "", "add \"avx2\"");
    expect_flag("ldflags", "\"@flags\"", "\"avx2\"", NULL);
    expect_refused(BEGIN "[\"a.c\"], \"cflags\": [\"-mavx2\"]}", "add \"avx2\"");
}

/* Lists of headers cannot have their names. */
Test(opbuild_recipe, include_directories_with_strange_names_are_refused)
{
    expect_refused(BEGIN "[\"a.c\"], \"include_dirs\": [\"/x\\ny\"]}",
                   "include_dirs: /x?y: compilers cannot list headers");
    expect_refused(BEGIN "[\"a.c\"], \"include_dirs\": [\".\", \"/x\\\\ y\"]}",
                   "include_dirs: /x\\ y: compilers cannot list headers");
    expect_flag("cflags", "\"-I/x\\ty\"", "", "cflags: /x?y: compilers cannot list");
    expect_flag("cflags", "\"-isystem\", \"x\\\\y\"", "", "cflags: x\\y: compilers cannot list");
    expect_flag("cflags", "\"-I/x y's $c#d:e\", \"-DX=\\\"\\\\n\\\"\"", "", NULL);
}

Test(opbuild_recipe, a_relative_directory_is_below_the_package)
{
    char *data = ds_accel__data_dir();
    char words[1024];

    cr_assert_not_null(data);
    snprintf(words, sizeof(words), "source_dir: %s/no-such-directory: ", data);
    expect_refused("{\"source_dir\": \"no-such-directory\", \"sources\": [\"a.c\"]}", words);
    free(data);
}

/* ---- the digest ------------------------------------------------------------------------------ */

static void digest_as(const char *backend, const char *rows, char digest_out[65])
{
    configure(rows);
    read_as(backend, "tiny");
    MUST(ds_accel__recipe_digest(&recipe, digest_out));
    cr_expect_eq(strlen(digest_out), 64);
}

#define FULL(name, directory, members) \
    "\"" name "\": {\"source_dir\": \"%s/" directory "\", \"sources\": [\"*.c\"]" members "}"
#define MEMBERS \
    ", \"include_dirs\": [\"i\"], \"cflags\": [\"c\"], \"device_cflags\": [\"d\"]," \
    "\"ldflags\": [\"l\"], \"libs\": [\"b\"], \"images\": {\"M\": \"x.cu\"}," \
    "\"requires\": {\"env\": [\"E\"], \"headers\": [\"h\"]}"

static void expect_other(const char *backend, const char *rows, const char *first)
{
    char digest[65];

    digest_as(backend, rows, digest);
    cr_expect_str_neq(digest, first, "%s", rows);
}

Test(opbuild_recipe, the_digest_does_not_depend_on_the_directory)
{
    char first[65];
    char second[65];

    test_write("source/x.cu", "x");
    test_write("copy/a.c", "int a;\n");
    test_write("copy/b.c", "int b;\n");
    test_write("copy/x.cu", "x");
    digest_as("cpu", FULL("tiny", "source", MEMBERS), first);
    digest_as("cpu", FULL("tiny", "copy", MEMBERS), second);
    cr_expect_str_eq(second, first);
    /* Nor on the backend that asks, nor on the order of keys. */
    digest_as("cuda",
              FULL("tiny", "copy",
                   ", \"requires\": {\"headers\": [\"h\"], \"env\": [\"E\"]},"
                   "\"images\": {\"M\": \"x.cu\"}, \"libs\": [\"b\"], \"ldflags\": [\"l\"],"
                   "\"device_cflags\": [\"d\"], \"cflags\": [\"c\"], \"include_dirs\": [\"i\"]"),
              second);
    cr_expect_str_eq(second, first);
}

Test(opbuild_recipe, the_digest_covers_every_member)
{
    char first[65];

    test_write("source/x.cu", "x");
    digest_as("cpu", FULL("tiny", "source", ""), first);
    expect_other("cpu", FULL("cpu/tiny", "source", ""), first);
    expect_other("cpu", FULL("tiny", "source", ", \"include_dirs\": [\"x\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"cflags\": [\"x\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"device_cflags\": [\"x\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"ldflags\": [\"x\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"libs\": [\"x\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"images\": {\"M\": \"x.cu\"}"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"requires\": {\"env\": [\"E\"]}"), first);
    digest_as("cpu", FULL("tiny", "source", ", \"images\": {\"M\": \"x.cu\"}"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"images\": {\"N\": \"x.cu\"}"), first);
    test_write("source/x.cu", "y");
    expect_other("cpu", FULL("tiny", "source", ", \"images\": {\"M\": \"x.cu\"}"), first);
}

/* Texts do not run into each other, nor one list into the next. */
Test(opbuild_recipe, the_digest_separates_texts)
{
    char first[65];

    digest_as("cpu", FULL("tiny", "source", ", \"cflags\": [\"a\", \"b\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"cflags\": [\"ab\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"cflags\": [\"b\", \"a\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"cflags\": [\"a cflag 1:b\"]"), first);
    expect_other("cpu", FULL("tiny", "source", ", \"cflags\": [\"a\"], \"ldflags\": [\"b\"]"),
                 first);
}

Test(opbuild_recipe, the_digest_covers_the_sources)
{
    static const char rows[] = FULL("tiny", "source", "");
    char first[65];
    char again[65];

    digest_as("cpu", rows, first);
    test_write("source/b.c", "int B;\n");
    expect_other("cpu", rows, first);
    test_write("source/b.c", "int b;\n");
    digest_as("cpu", rows, again);
    cr_expect_str_eq(again, first);
    test_write("source/c.c", "");
    expect_other("cpu", rows, first);
    unlink(test_path("source/c.c"));
    cr_assert_eq(rename(test_path("source/b.c"), test_path("source/d.c")), 0);
    expect_other("cpu", rows, first);
    /* A header is in the manifest instead. */
    cr_assert_eq(rename(test_path("source/d.c"), test_path("source/b.c")), 0);
    test_write("source/a.h", "");
    digest_as("cpu", rows, again);
    cr_expect_str_eq(again, first);
}

/* Flags name files in many forms, absolute or relative to the sources. */
Test(opbuild_recipe, the_digest_covers_files_that_flags_name)
{
    static const char *const rows[] = {
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,--version-script=x.map\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,--version-script,%s/source/x.map,-z,now\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-T\", \"x.map\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-Tx.map\"]"),
        FULL("tiny", "source", ", \"cflags\": [\"@%s/source/x.map\"]"),
        FULL("tiny", "source", ", \"device_cflags\": [\"-specs=../source/x.map\"]"),
    };
    static const char *const outputs[] = {
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,-Map=x.map,--version-script=v.map\"]"),
        FULL("tiny", "source",
             ", \"ldflags\": [\"-Xlinker\", \"-Map\", \"-Xlinker\", \"x.map\", \"v.map\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,-Map\", \"-Wl,x.map\", \"-Tv.map\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,--dependency-file=x.map,-Tv.map\"]"),
    };
    char first[65];
    char again[65];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        unlink(test_path("source/x.map"));
        digest_as("cpu", rows[i], first);
        test_write("source/x.map", "1");
        expect_other("cpu", rows[i], first);
        digest_as("cpu", rows[i], first);
        digest_as("cpu", rows[i], again);
        cr_expect_str_eq(again, first);
        test_write("source/x.map", "2");
        expect_other("cpu", rows[i], first);
    }
    /* What the linker writes is no input. */
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        test_write("source/x.map", "3");
        digest_as("cpu", outputs[i], first);
        test_write("source/x.map", "4");
        digest_as("cpu", outputs[i], again);
        cr_expect_str_eq(again, first, "%s", outputs[i]);
        test_write("source/v.map", "5");
        expect_other("cpu", outputs[i], first);
        unlink(test_path("source/v.map"));
    }
}

Test(opbuild_recipe, the_digest_covers_what_response_files_name)
{
    static const char *const rows[] = {
        FULL("tiny", "source", ", \"cflags\": [\"@outer\"]"),
        FULL("tiny", "source", ", \"ldflags\": [\"-Wl,-z,now,@outer\"]"),
        FULL("tiny", "source", ", \"device_cflags\": [\"-optf\", \"outer\"]"),
        FULL("tiny", "source", ", \"cflags\": [\"--config=%s/source/outer\"]"),
    };
    static const char *const outers[] = {"-O1 @in\\ ner\n", "\"@in ner\"", "-Wl,@'in ner' -O1"};
    char first[65];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(outers); j++) {
            test_write("source/outer", outers[j]);
            test_write("source/in ner", "1");
            digest_as("cpu", rows[i], first);
            test_write("source/in ner", "2");
            expect_other("cpu", rows[i], first);
        }
    }
}

/* A host may have other files than the one that built, as with headers. */
Test(opbuild_recipe, the_digest_does_not_cover_files_elsewhere)
{
    static const char rows[] = FULL("tiny", "source", ", \"ldflags\": [\"%s/elsewhere/x.so\"]");
    char first[65];
    char again[65];
    char **files;

    digest_as("cpu", rows, first);
    test_write("elsewhere/x.so", "1");
    digest_as("cpu", rows, again);
    cr_expect_str_eq(again, first);
    files = ds_accel__recipe_flag_files(&recipe, false);
    cr_assert_not_null(files);
    cr_expect_str_eq(files[0], test_path("elsewhere/x.so"));
    cr_expect_null(files[1]);
    ds_accel__arguments_free(files);
}

Test(opbuild_recipe, sources_that_others_could_change_are_refused)
{
    char digest[65];

    read_rows(FULL("tiny", "source", ""));
    cr_assert_eq(chmod(test_path("source/b.c"), 0666), 0);
    EXPECT_REFUSED(ds_accel__recipe_digest(&recipe, digest), DS_ACCEL_ERR_PERMISSION,
                   "source/b.c: ");
    cr_assert_eq(chmod(test_path("source/b.c"), 0644), 0);
    MUST(ds_accel__recipe_digest(&recipe, digest));
    cr_assert_eq(chmod(test_path("source"), 0777), 0);
    EXPECT_REFUSED(ds_accel__recipe_digest(&recipe, digest), DS_ACCEL_ERR_PERMISSION,
                   "source/a.c: ");
    cr_assert_eq(chmod(test_path("source"), 0755), 0);
    if (getuid() == 0) {
        cr_assert_eq(chown(test_path("source/b.c"), 65534, 65534), 0);
        EXPECT_STATUS(ds_accel__recipe_digest(&recipe, digest), DS_ACCEL_ERR_PERMISSION);
    }
}

Test(opbuild_recipe, sources_that_cannot_be_read_are_named)
{
    char digest[65];

    read_rows("\"tiny\": " ROW);
    unlink(test_path("source/a.c"));
    EXPECT_REFUSED(ds_accel__recipe_digest(&recipe, digest), DS_ACCEL_ERR_NOT_FOUND,
                   "kernels: tiny: the source ");
    EXPECT_HAS(ds_accel_last_error(), "source/a.c does not exist");
    read_rows("\"tiny\": " ROW);
    EXPECT_REFUSED(ds_accel__recipe_digest(&recipe, digest), DS_ACCEL_ERR_NOT_FOUND,
                   "kernels: tiny (/test/ops.json:1): the source ");
    cr_assert_eq(mkdir(test_path("source/a.c"), 0755), 0);
    cr_expect(ds_accel__recipe_digest(&recipe, digest) < 0);
    EXPECT_HAS(ds_accel_last_error(), "source/a.c: ");
    cr_assert_eq(rmdir(test_path("source/a.c")), 0);
    /* Nobody writes into the pipe, so its end must not be waited for. */
    cr_assert_eq(mkfifo(test_path("source/a.c"), 0644), 0);
    cr_expect(ds_accel__recipe_digest(&recipe, digest) < 0);
    EXPECT_HAS(ds_accel_last_error(), "source/a.c: ");
}

Test(opbuild_recipe, the_digest_of_a_file)
{
    char digest[65];

    MUST(ds_accel__source_digest(test_write("abc", "abc"), digest));
    cr_expect_str_eq(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    test_write("abc", "");
    MUST(ds_accel__source_digest(test_path("abc"), digest));
    cr_expect_str_eq(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_REFUSED(ds_accel__source_digest("/nowhere/x", digest), DS_ACCEL_ERR_NOT_FOUND,
                   "/nowhere/x: No such file");
    EXPECT_STATUS(ds_accel__source_digest(test_path("abc/x"), digest), DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_REFUSED(ds_accel__source_digest(test_dir(), digest), DS_ACCEL_ERR_IO, test_dir());
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int32_t attempt(void)
{
    struct ds_accel__recipe own;
    char digest[65];
    int32_t status = ds_accel__recipe_read(&config, "cpu", "tiny", &own);

    if (status >= 0) {
        cr_expect_eq(ds_accel__arguments_count(own.sources), 2);
        cr_expect_eq(ds_accel__arguments_count(own.libs), 1);
        status = ds_accel__recipe_digest(&own, digest);
        ds_accel__recipe_clear(&own);
    }
    cr_expect(status == DS_ACCEL_OK || status == DS_ACCEL_ERR_NO_MEMORY, "%d: %s", status,
              ds_accel_last_error());
    return status;
}

Test(opbuild_recipe, every_allocation_can_fail)
{
    test_write("source/x.cu", "x");
    configure(FULL("tiny", "source", MEMBERS));
    attempt();
    fail_each(attempt);
}
