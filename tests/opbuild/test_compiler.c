/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finding compilers, their digests, and nvcc's architectures. */
#include "opbuild.h"
#include "ops/answers.h"
#include "ops/compiler.h"
#include "ops/digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char why[1024];

static void find(enum ds_accel__language language, struct ds_accel__compiler *compiler)
{
    int32_t status = ds_accel__compiler_find(language, compiler, why, sizeof(why));

    cr_assert_eq(status, DS_ACCEL_OK, "%d: %s", status, why);
}

static void expect_refused(enum ds_accel__language language, int32_t status, const char *words)
{
    struct ds_accel__compiler compiler;

    EXPECT_STATUS(ds_accel__compiler_find(language, &compiler, why, sizeof(why)), status);
    EXPECT_HAS(why, words);
    cr_expect_null(compiler.arguments);
    cr_expect_null(compiler.path);
}

/* ---- fake compilers -------------------------------------------------------------------------- */

/* Write a GCC of scripts below a directory; its cc1 has the given contents. Returns gcc's path. */
static const char *write_gcc(const char *directory, const char *cc1)
{
    static const char *const programs[] = {"cc1", "cc1plus", "as", "ld", "collect2", "lto1"};
    char path[256];

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, programs[i]);
        write_script(path, i < 2 ? cc1 : programs[i]);
    }
    snprintf(path, sizeof(path), "%s/gcc", directory);
    return write_script(path, "#!/bin/sh\n"
                              "for last; do :; done\n"
                              "case $last in\n"
                              "--version) echo 'gcc (Fake) 99.1.0'; echo 'Copyright Free Software "
                              "Foundation';;\n"
                              "-print-prog-name=*) echo \"$(dirname \"$0\")/${last#*=}\";;\n"
                              "esac\n");
}

static void digest_of(const char *cc, char digest[65])
{
    struct ds_accel__compiler compiler;

    setenv("CC", cc, 1);
    find(DS_ACCEL__LANGUAGE_C, &compiler);
    strcpy(digest, compiler.digest);
    ds_accel__compiler_clear(&compiler);
}

/* ---- finding --------------------------------------------------------------------------------- */

TestSuite(opbuild_compiler, .init = clear_variables);

Test(opbuild_compiler, the_compilers_of_c_and_cxx_are_found)
{
    struct ds_accel__compiler c;
    struct ds_accel__compiler cxx;

    find(DS_ACCEL__LANGUAGE_C, &c);
    find(DS_ACCEL__LANGUAGE_CXX, &cxx);
    cr_expect_eq(c.arguments[0][0], '/');
    cr_expect_null(c.arguments[1]);
    cr_expect_eq(c.path[0], '/');
    EXPECT_HAS(c.version, ".");
    cr_expect_eq(strlen(c.digest), 64);
    cr_expect_str_neq(c.digest, cxx.digest);
    ds_accel__compiler_clear(&c);
    ds_accel__compiler_clear(&cxx);
}

Test(opbuild_compiler, a_variable_has_arguments)
{
    struct ds_accel__compiler compiler;
    char value[256];
    const char *gcc = write_gcc("gcc", "1");

    snprintf(value, sizeof(value), "  %s -m64\t-pipe ", gcc);
    setenv("CC", value, 1);
    find(DS_ACCEL__LANGUAGE_C, &compiler);
    cr_expect_str_eq(compiler.arguments[0], gcc);
    cr_expect_str_eq(compiler.arguments[1], "-m64");
    cr_expect_str_eq(compiler.arguments[2], "-pipe");
    cr_expect_null(compiler.arguments[3]);
    cr_expect_str_eq(compiler.version, "gcc (Fake) 99.1.0");
    ds_accel__compiler_clear(&compiler);
}

Test(opbuild_compiler, a_variable_that_cannot_be_run_is_an_error)
{
    setenv("CC", "no-such-compiler -O2", 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_NOT_FOUND,
                   "the variable CC is \"no-such-compiler -O2\", but no-such-compiler is no "
                   "program in PATH");
    setenv("CC", "/bin/false", 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_IO,
                   "/bin/false --version exited with status 1");
    setenv("CC", "$(echo gcc)", 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_NOT_FOUND, "$(echo is no program");
}

/* The reason is behind the value, and programs show 512 bytes. */
Test(opbuild_compiler, a_long_variable_leaves_room_for_the_reason)
{
    char value[2000];

    snprintf(value, sizeof(value), "no-such-compiler -DX=%01900d", 0);
    setenv("CC", value, 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_NOT_FOUND,
                   "...\", but no-such-compiler is no program in PATH: correct or unset it");
    snprintf(value, sizeof(value), "/bin/false -DX=%01900d", 0);
    setenv("CC", value, 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_IO, "... exited with status 1: no output");
}

Test(opbuild_compiler, what_is_missing_says_where_it_was_looked_for)
{
    setenv("PATH", test_dir(), 1);
    setenv("CUDA_HOME", "/nowhere", 1);
    expect_refused(DS_ACCEL__LANGUAGE_CXX, DS_ACCEL_ERR_NOT_FOUND,
                   "no compiler for C++: CXX is not set, and there is no c++, g++ or clang++ in "
                   "PATH; install the package g++");
    expect_refused(DS_ACCEL__LANGUAGE_HIP, DS_ACCEL_ERR_NOT_FOUND,
                   "there is no hipcc in PATH, $ROCM_PATH/bin, $ROCM_HOME/bin or /opt/rocm/bin");
    expect_refused(DS_ACCEL__LANGUAGE_SYCL, DS_ACCEL_ERR_NOT_FOUND, "oneAPI");
}

/* Fakes stand in for compilers that this machine does not have. */
Test(opbuild_compiler, standard_places_are_searched_after_path)
{
    struct ds_accel__compiler compiler;
    const char *hipcc = write_script("rocm/bin/hipcc", "#!/bin/sh\necho HIP version: 9.8.7\n");

    setenv("ROCM_PATH", "/nowhere", 1);
    setenv("ROCM_HOME", test_path("rocm"), 1);
    find(DS_ACCEL__LANGUAGE_HIP, &compiler);
    cr_expect_str_eq(compiler.arguments[0], hipcc);
    cr_expect_str_eq(compiler.version, "HIP version: 9.8.7");
    ds_accel__compiler_clear(&compiler);
}

Test(opbuild_compiler, a_compiler_that_dies_is_an_error)
{
    setenv("CC", write_script("dies", "#!/bin/sh\necho oops >&2\nkill -ABRT $$\n"), 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_IO, "was ended by signal 6 (SIGABRT): oops");
    setenv("CC", write_script("text", "no program\n"), 1);
    expect_refused(DS_ACCEL__LANGUAGE_C, DS_ACCEL_ERR_IO, "cannot be started: Exec format error");
}

/* ---- digests --------------------------------------------------------------------------------- */

Test(opbuild_compiler, a_digest_follows_from_contents_and_not_from_places)
{
    char first[65];
    char second[65];
    char other[65];
    char value[256];

    digest_of(write_gcc("a", "#!/bin/sh\n: 1"), first);
    digest_of(write_gcc("b/c", "#!/bin/sh\n: 1"), second);
    cr_expect_str_eq(first, second);
    digest_of(write_gcc("d", "#!/bin/sh\n: 2"), other);
    cr_expect_str_neq(first, other);
    snprintf(value, sizeof(value), "%s -m32", test_path("a/gcc"));
    digest_of(value, other);
    cr_expect_str_neq(first, other);
}

Test(opbuild_compiler, files_that_a_variable_names_are_a_part_of_it)
{
    char value[600];
    char first[65];
    char second[65];

    test_write("specs", "1");
    snprintf(value, sizeof(value), "%s -specs=%s", write_gcc("a", "#!/bin/sh\n: 1"),
             test_path("specs"));
    digest_of(value, first);
    test_write("specs", "2");
    digest_of(value, second);
    cr_expect_str_neq(first, second);
    test_write("specs", "1");
    digest_of(value, second);
    cr_expect_str_eq(first, second);
}

/* Also words without '-', and files that a response file names. */
Test(opbuild_compiler, all_words_of_a_variable_are_a_part_of_it)
{
    char gcc[300];
    char value[900];
    char first[65];
    char second[65];

    snprintf(gcc, sizeof(gcc), "%s", write_gcc("a", "#!/bin/sh\n: 1"));
    digest_of(gcc, first);
    snprintf(value, sizeof(value), "%s @%s", gcc, test_write("outer", "-O1 '-specs=/no such'"));
    digest_of(value, second);
    cr_expect_str_neq(first, second);
    test_write("outer", "-O2");
    digest_of(value, first);
    cr_expect_str_neq(first, second);
    /* A response file in a response file. */
    snprintf(value, sizeof(value), "'@%s'", test_path("inner file"));
    test_write("outer", value);
    test_write("inner file", "1");
    snprintf(value, sizeof(value), "%s -Wl,@%s", gcc, test_path("outer"));
    digest_of(value, first);
    test_write("inner file", "2");
    digest_of(value, second);
    cr_expect_str_neq(first, second);
    /* One that names itself ends. */
    snprintf(value, sizeof(value), "@%s", test_path("outer"));
    test_write("outer", value);
    snprintf(value, sizeof(value), "%s @%s", gcc, test_path("outer"));
    digest_of(value, second);
    cr_expect_str_neq(first, second);

    snprintf(value, sizeof(value), "env CPATH=/include1 %s", gcc);
    digest_of(value, first);
    snprintf(value, sizeof(value), "env CPATH=/include2 %s", gcc);
    digest_of(value, second);
    cr_expect_str_neq(first, second);
    write_gcc("a", "#!/bin/sh\n: 2");
    digest_of(value, first);
    cr_expect_str_neq(first, second);
}

/* The same driver compiles C and C++ with other programs. */
Test(opbuild_compiler, what_is_remembered_is_for_one_language)
{
    struct ds_accel__compiler c;
    struct ds_accel__compiler cxx;
    char first[65];

    setenv("CC", "gcc", 1);
    setenv("CXX", "gcc", 1);
    ds_accel__answers_forget();
    find(DS_ACCEL__LANGUAGE_C, &c);
    snprintf(first, sizeof(first), "%s", c.digest);
    ds_accel__compiler_clear(&c);
    ds_accel__answers_forget();
    find(DS_ACCEL__LANGUAGE_CXX, &cxx);
    find(DS_ACCEL__LANGUAGE_C, &c);
    cr_expect_str_eq(c.digest, first);
    cr_expect_str_neq(cxx.digest, first);
    cr_expect(c.is_gcc);
    ds_accel__compiler_clear(&cxx);
    ds_accel__compiler_clear(&c);
    find(DS_ACCEL__LANGUAGE_C, &c); /* remembered */
    cr_expect(c.is_gcc);
    ds_accel__compiler_clear(&c);
}

/* Debian's clang is a small program, and the compiler is in libraries that it loads. */
Test(opbuild_compiler, the_libraries_of_clang_are_a_part_of_it)
{
    const char *clang = write_script("clang/bin/clang",
                                     "#!/bin/sh\ncase $1 in\n--version) echo clang version 99.1;;\n"
                                     "-print-resource-dir) echo $(dirname $0)/../lib/clang/99.1;;\n"
                                     "-print-prog-name=ld) echo /bin/true;;\nesac\n");
    char first[65];
    char second[65];

    test_write("clang/lib/clang/99.1/x", "");
    test_write("clang/lib/libLLVM-99.so.1", "1");
    digest_of(clang, first);
    test_write("clang/lib/libLLVM-99.so.1", "2");
    digest_of(clang, second);
    cr_expect_str_neq(first, second);
}

/* The same size and time of modification: the contents have changed all the same. */
Test(opbuild_compiler, a_compiler_that_is_changed_in_place_has_another_digest)
{
    const char *gcc = write_gcc("a", "#!/bin/sh\n: 1");
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char first[65];
    char second[65];

    utimensat(AT_FDCWD, test_path("a/cc1"), times, 0);
    digest_of(gcc, first);
    write_gcc("a", "#!/bin/sh\n: 2");
    utimensat(AT_FDCWD, test_path("a/cc1"), times, 0);
    digest_of(gcc, second);
    cr_expect_str_neq(first, second);
}

Test(opbuild_compiler, a_wrapper_is_not_the_compiler)
{
    struct ds_accel__compiler compiler;
    char value[600];
    char path[600];
    char ccache[256];
    char gcc[256];

    snprintf(gcc, sizeof(gcc), "%s", write_gcc("real", "#!/bin/sh\n: 1"));
    snprintf(ccache, sizeof(ccache), "%s",
             write_script("bin/ccache", "#!/bin/sh\n"
                                        "case ${0##*/} in ccache) ;; *) set -- \"$REAL\" \"$@\";; "
                                        "esac\nexec \"$@\"\n"));
    setenv("REAL", gcc, 1);
    snprintf(value, sizeof(value), "%s %s -m64", ccache, gcc);
    setenv("CC", value, 1);
    find(DS_ACCEL__LANGUAGE_C, &compiler);
    cr_expect_str_eq(compiler.path, gcc);
    cr_expect_str_eq(compiler.arguments[1], gcc);
    cr_expect(compiler.is_wrapped);
    cr_expect_eq(compiler.options_at, 2);
    ds_accel__compiler_clear(&compiler);

    /* A link of the compiler's name to ccache, as in /usr/lib/ccache. */
    cr_assert_eq(symlink(ccache, test_path("links/gcc")), 0);
    snprintf(path, sizeof(path), "%s/links:%s/real:/usr/bin:/bin", test_dir(), test_dir());
    setenv("PATH", path, 1);
    setenv("CC", "gcc", 1);
    find(DS_ACCEL__LANGUAGE_C, &compiler);
    cr_expect_str_eq(compiler.path, gcc);
    EXPECT_HAS(compiler.arguments[0], "/links/gcc");
    cr_expect(compiler.is_wrapped);
    cr_expect_eq(compiler.options_at, 1);
    ds_accel__compiler_clear(&compiler);
}

Test(opbuild_compiler, a_driver_without_its_compiler_names_the_package)
{
    const char *gcc = write_gcc("a", "1");

    unlink(test_path("a/cc1plus"));
    setenv("CXX", gcc, 1);
    expect_refused(DS_ACCEL__LANGUAGE_CXX, DS_ACCEL_ERR_NOT_FOUND,
                   "has no cc1plus; install the package g++");
}

Test(opbuild_compiler, digests_are_remembered_and_can_be_stored)
{
    struct timespec times[2] = {{0}};
    char first[65];
    char second[65];
    json_t *saved;

    /* A file that was changed just now is not remembered: it may change again within one tick. */
    MUST(ds_accel__digest_file(test_write("new", "a"), first));
    cr_expect_eq(ds_accel__digests_forget(), 0);
    cr_expect_str_eq(first, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
    clock_gettime(CLOCK_REALTIME, &times[0]);

    MUST(ds_accel__digest_file("/bin/true", first));
    saved = ds_accel__digests_save();
    cr_expect_eq(json_object_size(saved), 1);
    cr_expect_eq(ds_accel__digests_forget(), 1);
    ds_accel__digests_restore(saved);
    ds_accel__digests_restore(saved);
    cr_expect_eq(ds_accel__digests_forget(), 1);

    /* What was restored is used, and only for the file that it belongs to. */
    json_object_set_new(saved, json_object_iter_key(json_object_iter(saved)),
                        json_string("0123456789abcdef0123456789abcdef"
                                    "0123456789abcdef0123456789abcdef"));
    json_object_set_new(saved, "x", json_integer(1));
    json_object_set_new(saved, "1:2", json_string("0123"));
    ds_accel__digests_restore(saved);
    MUST(ds_accel__digest_file("/bin/true", second));
    cr_expect_str_eq(second, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    MUST(ds_accel__digest_file("/bin/false", second));
    cr_expect_str_neq(second, first);
    cr_expect_eq(ds_accel__digests_forget(), 2);
    json_decref(saved);
    EXPECT_STATUS(ds_accel__digest_file("/nowhere", first), DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_STATUS(ds_accel__digest_file("/", first), DS_ACCEL_ERR_IO);
}

static int32_t attempt_find(void)
{
    struct ds_accel__compiler compiler;
    int32_t status = ds_accel__compiler_find(DS_ACCEL__LANGUAGE_CXX, &compiler, why, sizeof(why));

    if (status == DS_ACCEL_OK) {
        cr_expect_eq(strlen(compiler.digest), 64);
        ds_accel__compiler_clear(&compiler);
    } else {
        cr_expect(why[0] != '\0');
    }
    /* Both are remembered once the compiler, which the test has just written, is old enough. */
    ds_accel__digests_forget();
    ds_accel__answers_forget();
    return status;
}

Test(opbuild_compiler, every_allocation_can_fail)
{
    setenv("CXX", write_gcc("a", "#!/bin/sh\n: 1"), 1);
    attempt_find();
    fail_each(attempt_find);
}

/* ---- nvcc ------------------------------------------------------------------------------------ */

/* Write an nvcc with its programs; host is what it expects behind -ccbin. */
static const char *write_nvcc(const char *help)
{
    static const char *const programs[] = {"ptxas", "cudafe++", "fatbinary", "nvlink", "cicc"};
    char path[256];
    char text[2048];

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        snprintf(path, sizeof(path), "cuda/bin/%s", programs[i]);
        write_script(path, programs[i]);
    }
    snprintf(text, sizeof(text),
             "#!/bin/sh\nhere=$(dirname \"$0\")\nfor last; do :; done\ncase $last in\n"
             "--version) echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Cuda compilation "
             "tools, release 99.1, V99.1.2';;\n"
             "none.cu) echo \"#\\$ _HERE_=$here\"; echo \"#\\$ CICC_PATH=$here\";;\n"
             "--help) printf '%%s\\n' '%s';;\n"
             "--list-gpu-code) printf 'sm_80\\nsm_75\\n';;\nesac\n",
             help);
    return write_script("cuda/bin/nvcc", text);
}

Test(opbuild_compiler, nvcc_has_an_explicit_host_compiler)
{
    struct ds_accel__compiler nvcc;
    char first[65];
    char path[256];

    snprintf(path, sizeof(path), "%s", write_gcc("host", "#!/bin/sh\n: 1"));
    write_nvcc("");
    setenv("CUDA_HOME", "/nowhere", 1);
    setenv("CUDA_PATH", test_path("cuda"), 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("NVCC_CCBIN", path, 1);
    find(DS_ACCEL__LANGUAGE_CUDA, &nvcc);
    cr_expect_str_eq(nvcc.arguments[0], test_path("cuda/bin/nvcc"));
    cr_expect_str_eq(nvcc.arguments[1], "-ccbin");
    cr_expect_str_eq(nvcc.arguments[2], path);
    cr_expect_null(nvcc.arguments[3]);
    cr_expect_str_eq(nvcc.version, "Cuda compilation tools, release 99.1, V99.1.2");
    strcpy(first, nvcc.digest);
    ds_accel__compiler_clear(&nvcc);

    write_gcc("host", "#!/bin/sh\n: 2");
    find(DS_ACCEL__LANGUAGE_CUDA, &nvcc);
    cr_expect_str_neq(nvcc.digest, first);
    strcpy(first, nvcc.digest);
    ds_accel__compiler_clear(&nvcc);

    write_script("cuda/bin/cicc", "another");
    find(DS_ACCEL__LANGUAGE_CUDA, &nvcc);
    cr_expect_str_neq(nvcc.digest, first);
    ds_accel__compiler_clear(&nvcc);
    unlink(test_path("cuda/bin/ptxas"));
    expect_refused(DS_ACCEL__LANGUAGE_CUDA, DS_ACCEL_ERR_NOT_FOUND, "ptxas");
    setenv("NVCC_CCBIN", "no-such-gcc", 1);
    expect_refused(DS_ACCEL__LANGUAGE_CUDA, DS_ACCEL_ERR_NOT_FOUND, "host compiler no-such-gcc");
}

/* The host compiler's contents count, not how and where it is named. */
Test(opbuild_compiler, the_digest_does_not_have_the_path_of_the_host_compiler)
{
    static const char *const formats[] = {"%s -ccbin %s", "%s -ccbin=%s", "%s --compiler-bindir %s",
                                          "%s --compiler-bindir=%s"};
    char first[65] = "";
    char nvcc_path[256];
    char hosts[2][256];
    char command[600];

    snprintf(hosts[0], sizeof(hosts[0]), "%s", write_gcc("host", "#!/bin/sh\n: 1"));
    snprintf(hosts[1], sizeof(hosts[1]), "%s", write_gcc("elsewhere", "#!/bin/sh\n: 1"));
    snprintf(nvcc_path, sizeof(nvcc_path), "%s", write_nvcc(""));
    setenv("PATH", "/usr/bin:/bin", 1);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(formats); i++) {
        struct ds_accel__compiler nvcc;

        snprintf(command, sizeof(command), formats[i / 2], nvcc_path, hosts[i % 2]);
        setenv("NVCC", command, 1);
        find(DS_ACCEL__LANGUAGE_CUDA, &nvcc);
        cr_expect(first[0] == '\0' || strcmp(nvcc.digest, first) == 0, "%s", command);
        strcpy(first, nvcc.digest);
        ds_accel__compiler_clear(&nvcc);
    }
}

#define HELP \
    "--gpu-architecture <arch>\n Allowed values: \"sm_10\".\n\n--gpu-code <code>,...\n" \
    " such as sm_11 Allowed values for this option: \"compute_90a\",\"lto_90\",\"sm_120\"," \
    "\"sm_120a\",\n\"sm_120f\",\"sm_52\",\"sm_75\",\"sm_80\",\"sm_89\",\"sm_90\",\"sm_90a\".\n\n" \
    "--other\n sm_13\n"

static void get_archs(struct ds_accel__cuda_archs *archs, const char *help)
{
    struct ds_accel__compiler nvcc = {.arguments = ARGUMENTS(write_nvcc(help))};

    MUST(ds_accel__nvcc_archs(&nvcc, archs));
}

static void expect_choice(const struct ds_accel__cuda_archs *accepted, const char *list,
                          const char *wanted)
{
    struct ds_accel__cuda_archs chosen;
    char **arguments;
    char text[1024] = "";

    MUST(ds_accel__nvcc_choose(accepted, list, &chosen));
    arguments = ds_accel__nvcc_arguments(&chosen);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        cr_expect_eq(strncmp(arguments[i], "-gencode=arch=compute_", 22), 0);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "",
                 arguments[i] + 22);
    }
    cr_expect_str_eq(text, wanted, "%s", text);
    ds_accel__arguments_free(arguments);
    free(chosen.items);
}

Test(opbuild_compiler, architectures_are_asked_from_nvcc)
{
    struct ds_accel__cuda_archs archs;

    get_archs(&archs, HELP);
    cr_assert_eq(archs.count, 9);
    cr_expect_eq(archs.items[0].number, 52);
    cr_expect_eq(archs.items[8].number, 120);
    cr_expect_eq(archs.items[8].suffix, 'f');
    free(archs.items);
    get_archs(&archs, "no list");
    cr_assert_eq(archs.count, 2);
    cr_expect_eq(archs.items[0].number, 75);
    free(archs.items);
}

Test(opbuild_compiler, architectures_are_chosen_by_a_list)
{
    struct ds_accel__cuda_archs archs;

    get_archs(&archs, HELP);
    expect_choice(&archs, "9.0a;8.0 12.0f+PTX,8.0+PTX",
                  "80,code=sm_80 80,code=compute_80 90a,code=sm_90a 120f,code=sm_120f "
                  "120f,code=compute_120f");
    expect_choice(&archs, "5.2", "52,code=sm_52");
    /* By default the lowest of each major number from 7 on, and PTX of the highest. */
    expect_choice(&archs, NULL,
                  "75,code=sm_75 80,code=sm_80 90,code=sm_90 120,code=sm_120 120,code=compute_120");
    expect_choice(&archs, " ; ",
                  "75,code=sm_75 80,code=sm_80 90,code=sm_90 120,code=sm_120 120,code=compute_120");
    free(archs.items);
}

Test(opbuild_compiler, unknown_architectures_are_refused_with_the_accepted_ones)
{
    static const char *const malformed[] = {"90",       "9",     "9.0b",  "9.0a+ptx",     "09.0",
                                            "9.0+PTXx", "sm_90", ".0",    "9.",           "9.00",
                                            "Ampere",   "-9.0",  "9.0af", "99999999999.0"};
    struct ds_accel__cuda_archs archs;
    struct ds_accel__cuda_archs chosen;

    get_archs(&archs, HELP);
    EXPECT_REFUSED(ds_accel__nvcc_choose(&archs, "8.0;6.1", &chosen), DS_ACCEL_ERR_INVALID,
                   "\"6.1\" is no architecture of this nvcc; this nvcc accepts 5.2, 7.5, 8.0, 8.9, "
                   "9.0, 9.0a, 12.0, 12.0a, 12.0f");
    EXPECT_REFUSED(ds_accel__nvcc_choose(&archs, "9.0f", &chosen), DS_ACCEL_ERR_INVALID,
                   "\"9.0f\"");
    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
        EXPECT_REFUSED(ds_accel__nvcc_choose(&archs, malformed[i], &chosen), DS_ACCEL_ERR_INVALID,
                       malformed[i]);
        cr_expect_null(chosen.items);
    }
    free(archs.items);
}
