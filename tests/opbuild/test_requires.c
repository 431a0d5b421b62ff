/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What an op needs: each kind with its reason and remedy, probes, and Python. */
#include "opbuild.h"
#include "ops/compiler.h"
#include "ops/requires.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Passed on to ds_accel__requires_check(). */
static struct ds_accel__compiler compiler;
static struct ds_accel__compiler found; /* what compiler is a copy of; tests change that one */
static struct ds_accel__requires_options options;
static char **flags;

static void find(enum ds_accel__language language)
{
    char why[512];

    ds_accel__compiler_clear(&found);
    cr_assert_eq(ds_accel__compiler_find(language, &found, why, sizeof(why)), DS_ACCEL_OK, "%s",
                 why);
    compiler = found;
}

static void begin(void)
{
    static char temporary[256];

    clear_variables();
    snprintf(temporary, sizeof(temporary), "%s", test_path("temporary"));
    options.temporary = temporary;
    test_write("temporary/x", "");
    find(DS_ACCEL__LANGUAGE_C);
}

TestSuite(opbuild_requires, .init = begin);

static json_t *check(const char *text)
{
    json_t *requires = json_loads(text, 0, NULL);
    json_t *result;

    cr_assert_not_null(requires, "%s", text);
    MUST(ds_accel__requires_check(requires, &compiler, flags, &options, &result));
    json_decref(requires);
    return result;
}

/* Expect one entry; reason and remedy are parts of the texts, NULL: null. */
static void expect(const char *text, const char *kind, const char *what, const char *reason,
                   const char *remedy)
{
    json_t *result = check(text);
    json_t *entry = json_array_get(result, json_array_size(result) - 1);
    const char *has_reason = json_string_value(json_object_get(entry, "reason"));
    const char *has_remedy = json_string_value(json_object_get(entry, "remedy"));

    cr_assert_not_null(entry, "%s", text);
    cr_expect_str_eq(json_string_value(json_object_get(entry, "kind")), kind);
    cr_expect_str_eq(json_string_value(json_object_get(entry, "what")), what);
    cr_expect_eq(json_is_true(json_object_get(entry, "ok")), reason == NULL, "%s: %s", text,
                 has_reason);
    cr_expect_eq(has_reason == NULL, reason == NULL, "%s: %s", text, has_reason);
    if (has_reason != NULL && reason != NULL) {
        EXPECT_HAS(has_reason, reason);
    }
    cr_expect_eq(has_remedy == NULL, remedy == NULL, "%s: %s", text, has_remedy);
    if (has_remedy != NULL && remedy != NULL) {
        EXPECT_HAS(has_remedy, remedy);
    }
    cr_expect_eq(ds_accel__requires_are_met(result), reason == NULL);
    json_decref(result);
}

/* ---- libraries, headers, functions ----------------------------------------------------------- */

Test(opbuild_requires, libraries_are_linked)
{
    expect("{\"libraries\": [\"m\"]}", "library", "m", NULL, NULL);
    expect("{\"libraries\": [\"m\", \"no-such\"]}", "library", "no-such",
           "a program with the library no-such does not link: cannot find -lno-such", NULL);
    expect("{\"libraries\": [\"-Wl,x\"]}", "library", "-Wl,x", "no name", NULL);
    expect("{\"libraries\": [\"a b\"]}", "library", "a b", "no name", NULL);
}

/* A library that this machine cannot have: the package is named. */
Test(opbuild_requires, the_package_of_a_missing_library_is_named)
{
    compiler.arguments = ARGUMENTS(
        write_script("cc", "#!/bin/sh\necho ld: cannot find -lcufile: No such file >&2\nexit 1\n"));
    expect("{\"libraries\": [\"cufile\"]}", "library", "cufile", "cannot find -lcufile",
           "libcufile-dev");
}

Test(opbuild_requires, headers_are_compiled_with_the_flags_of_the_build)
{
    char include[300];

    test_write("include/mine.h", "#ifndef GIVEN\n#error not given\n#endif\n");
    snprintf(include, sizeof(include), "-I%s", test_path("include"));
    expect("{\"headers\": [\"stdio.h\"]}", "header", "stdio.h", NULL, NULL);
    expect("{\"headers\": [\"mine.h\"]}", "header", "mine.h",
           "does not compile: mine.h: No such file or directory", NULL);
    flags = ARGUMENTS(include);
    expect("{\"headers\": [\"mine.h\"]}", "header", "mine.h", "#error not given", NULL);
    flags = ARGUMENTS(include, "-DGIVEN", "-Werror", "-c", "-shared");
    expect("{\"headers\": [\"mine.h\"]}", "header", "mine.h", NULL, NULL);
}

Test(opbuild_requires, functions_are_linked_with_the_libraries)
{
    expect("{\"functions\": [\"getpid\"]}", "function", "getpid", NULL, NULL);
    expect("{\"functions\": [\"sqrt\"], \"libraries\": [\"m\"]}", "function", "sqrt", NULL, NULL);
    expect("{\"functions\": [\"io_pgetevents\"]}", "function", "io_pgetevents",
           "undefined reference to `io_pgetevents'", "libaio");
    /* Flags for a shared object would link without the function. */
    flags = ARGUMENTS("-fPIC", "-shared");
    expect("{\"functions\": [\"no_such_function\"]}", "function", "no_such_function",
           "undefined reference", NULL);
    expect("{\"functions\": [\"f(); } int x(void) {\"]}", "function", "f(); } int x(void) {",
           "no name", NULL);
}

Test(opbuild_requires, a_compiler_of_cxx_links_functions_of_c)
{
    find(DS_ACCEL__LANGUAGE_CXX);
    expect("{\"functions\": [\"getpid\"]}", "function", "getpid", NULL, NULL);
}

Test(opbuild_requires, without_a_compiler_the_reason_is_that)
{
    json_t *requires = json_loads("{\"libraries\": [\"m\"], \"env\": [\"HOME\"]}", 0, NULL);
    json_t *result;

    MUST(ds_accel__requires_check(requires, NULL, NULL, &options, &result));
    cr_assert_eq(json_array_size(result), 2);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(result, 0), "reason")),
                     "it cannot be checked, because there is no compiler");
    json_decref(result);
    json_decref(requires);
}

static int count_files(const char *path)
{
    DIR *directory = opendir(path);
    int count = -2; /* "." and ".." */

    cr_assert_not_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* The compiler counts how often it runs. */
Test(opbuild_requires, probes_are_remembered_and_leave_nothing)
{
    char text[400];
    char *counting[2] = {NULL, NULL};

    test_path("runs/log");
    snprintf(text, sizeof(text), "#!/bin/sh\n: >%s/$$\nexec gcc \"$@\"\n", test_path("runs"));
    counting[0] = (char *)(uintptr_t)write_script("cc", text);
    compiler.arguments = counting;
    for (int i = 0; i < 3; i++) {
        expect("{\"libraries\": [\"no-such\"]}", "library", "no-such", "cannot find", NULL);
        expect("{\"functions\": [\"getpid\"]}", "function", "getpid", NULL, NULL);
    }
    cr_expect_eq(count_files(test_path("runs")), 2);
    ds_accel__requires_forget();
    expect("{\"functions\": [\"getpid\"]}", "function", "getpid", NULL, NULL);
    cr_expect_eq(count_files(test_path("runs")), 3);
    cr_expect_eq(count_files(options.temporary), 1, "%d", count_files(options.temporary));
}

/* Expect that a probe runs the compiler, or not, since the number of runs was taken. */
static void expect_runs(const char *text, int runs, const char *why)
{
    int before = count_files(test_path("runs"));

    json_decref(check(text));
    cr_expect_eq(count_files(test_path("runs")) - before, runs, "%s: %d", why,
                 count_files(test_path("runs")) - before);
}

Test(opbuild_requires, another_probe_is_another_question)
{
    static const char library[] = "{\"libraries\": [\"m\"]}";
    char text[400];
    char *counting[2] = {NULL, NULL};

    test_write("runs/log", "");
    snprintf(text, sizeof(text), "#!/bin/sh\n: >%s/$$\nexec gcc \"$@\"\n", test_path("runs"));
    counting[0] = strdup(write_script("cc", text));
    compiler.arguments = counting;
    expect_runs(library, 1, "the first");
    expect_runs(library, 0, "the same");
    flags = ARGUMENTS("-DX");
    expect_runs(library, 1, "other flags");
    options.link_flags = ARGUMENTS("-L/nowhere");
    expect_runs(library, 1, "other flags of the link");
    expect_runs("{\"libraries\": [\"pthread\"]}", 1, "another library");
    expect_runs("{\"headers\": [\"stdio.h\"]}", 1, "a header");
    compiler.digest[0] = compiler.digest[0] == '0' ? '1' : '0';
    expect_runs(library, 1, "a compiler that was upgraded");
    compiler.arguments = ARGUMENTS(counting[0], "-O1");
    expect_runs(library, 1, "other arguments of the variable");
    expect_runs(library, 0, "the same again");
    free(counting[0]);
}

/* A failure of the machine is none of the library: the next probe may succeed. */
Test(opbuild_requires, failures_of_the_machine_are_not_remembered)
{
    static const char *const failures[] = {
        "kill -KILL $$",
        "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
        "echo 'probe.c: No space left on device' >&2; exit 1",
    };
    char text[1000];

    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        snprintf(text, sizeof(text),
                 "#!/bin/sh\nmkdir %s/failed%zu 2>/dev/null && { %s; }\n"
                 "exec gcc \"$@\"\n",
                 test_dir(), i, failures[i]);
        compiler.arguments = ARGUMENTS(write_script("cc", text));
        compiler.digest[0] = (char)('a' + i);
        expect("{\"libraries\": [\"m\"]}", "library", "m", "", NULL);
        expect("{\"libraries\": [\"m\"]}", "library", "m", NULL, NULL);
    }
    /* But what the compiler says about the input is. */
    snprintf(text, sizeof(text),
             "#!/bin/sh\nmkdir %s/failed 2>/dev/null && { echo 'cannot find -lm' "
             ">&2; exit 1; }\nexec gcc \"$@\"\n",
             test_dir());
    compiler.arguments = ARGUMENTS(write_script("cc", text));
    compiler.digest[0] = 'd';
    for (int i = 0; i < 2; i++) {
        expect("{\"libraries\": [\"m\"]}", "library", "m", "cannot find -lm", NULL);
    }
}

Test(opbuild_requires, a_compiler_that_dies_is_the_reason)
{
    compiler.arguments = ARGUMENTS(write_script("cc", "#!/bin/sh\nkill -KILL $$\n"));
    expect("{\"libraries\": [\"m\"]}", "library", "m", "the compiler was ended by signal 9", NULL);
}

Test(opbuild_requires, a_directory_that_cannot_be_written_is_an_error)
{
    json_t *requires = json_loads("{\"libraries\": [\"m\"]}", 0, NULL);
    json_t *result;

    options.temporary = "/nowhere";
    EXPECT_REFUSED(ds_accel__requires_check(requires, &compiler, NULL, &options, &result),
                   DS_ACCEL_ERR_IO, "no directory can be made in /nowhere");
    cr_expect_null(result);
    json_decref(requires);
}

/* ---- commands, variables, ops, devices ------------------------------------------------------- */

Test(opbuild_requires, commands_are_in_path_or_compilers)
{
    expect("{\"commands\": [\"sh\"]}", "command", "sh", NULL, NULL);
    expect("{\"commands\": [\"no-such|sh\"]}", "command", "no-such|sh", NULL, NULL);
    expect("{\"commands\": [\"no-such\"]}", "command", "no-such",
           "there is no command no-such in PATH", NULL);
    expect("{\"commands\": [\"hipcc\"]}", "command", "hipcc", "no command hipcc", "ROCm");
    write_script("rocm/bin/hipcc", "#!/bin/sh\n");
    setenv("ROCM_PATH", test_path("rocm"), 1);
    expect("{\"commands\": [\"hipcc\"]}", "command", "hipcc", NULL, NULL);
}

Test(opbuild_requires, variables_have_a_value)
{
    unsetenv("CUTLASS_PATH");
    expect("{\"env\": [\"CUTLASS_PATH\"]}", "env", "CUTLASS_PATH",
           "the variable CUTLASS_PATH is not set", "CUTLASS's sources");
    setenv("CUTLASS_PATH", "", 1);
    expect("{\"env\": [\"CUTLASS_PATH\"]}", "env", "CUTLASS_PATH", "is empty", "sources");
    setenv("CUTLASS_PATH", "/x", 1);
    expect("{\"env\": [\"CUTLASS_PATH\"]}", "env", "CUTLASS_PATH", NULL, NULL);
}

static int32_t has_op(void *user_data, const char *op, char *why, size_t why_size)
{
    if (strcmp(op, "error") == 0) {
        return DS_ACCEL_ERR_BUSY;
    }
    snprintf(why, why_size, "%s", (const char *)user_data);
    return strcmp(op, "pin_memory") == 0;
}

Test(opbuild_requires, ops_are_asked_from_the_caller)
{
    json_t *requires = json_loads("{\"ops\": [\"error\"]}", 0, NULL);
    json_t *result = check("{\"ops\": [\"x\"]}");

    cr_expect_eq(json_array_size(result), 0);
    json_decref(result);
    options.has_op = has_op;
    options.user_data = (void *)(uintptr_t) "it is broken";
    expect("{\"ops\": [\"pin_memory\"]}", "op", "pin_memory", NULL, NULL);
    expect("{\"ops\": [\"x\"]}", "op", "x", "it is broken", NULL);
    EXPECT_STATUS(ds_accel__requires_check(requires, &compiler, NULL, &options, &result),
                  DS_ACCEL_ERR_BUSY);
    json_decref(requires);
}

Test(opbuild_requires, devices_have_a_compute_capability)
{
    json_t *result = check("{\"compute_major_min\": 8}");

    cr_expect_eq(json_array_size(result), 0);
    json_decref(result);
    options.compute_major = 7;
    expect("{\"compute_major_min\": 7}", "compute_major_min", "7", NULL, NULL);
    expect("{\"compute_major_min\": 8}", "compute_major_min", "8",
           "the device has compute capability 7; needed is 8 or later", NULL);
}

Test(opbuild_requires, features_of_the_cpu_are_known_by_name)
{
    expect("{\"cpu\": [\"warp9\"]}", "cpu", "warp9", "no feature of CPUs", NULL);
#ifdef __x86_64__
    FILE *file = popen("grep -qw avx2 /proc/cpuinfo && echo 1", "r");
    bool has = fgetc(file) == '1';

    pclose(file);
    expect("{\"cpu\": [\"avx2\"]}", "cpu", "avx2", has ? NULL : "this CPU has no avx2", NULL);
#endif
}

Test(opbuild_requires, nothing_is_needed_and_null_is_nothing)
{
    json_t *result = check("{\"libraries\": null, \"env\": [], \"compute_major_min\": null}");

    cr_expect_eq(json_array_size(result), 0);
    cr_expect(ds_accel__requires_are_met(result));
    json_decref(result);
    MUST(ds_accel__requires_check(NULL, &compiler, NULL, &options, &result));
    cr_expect_eq(json_array_size(result), 0);
    json_decref(result);
    expect("{\"moon_phase\": [\"full\"]}", "moon_phase", "", "does not know", NULL);
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* Write a module that must not be imported, and its version. */
static void write_module(const char *name, const char *distribution, const char *version)
{
    char path[200];
    char text[200];

    snprintf(path, sizeof(path), "python/%s/__init__.py", name);
    test_write(path, "raise SystemExit('imported')\n");
    snprintf(path, sizeof(path), "python/%s/inner/part.py", name);
    test_write(path, "raise SystemExit('imported')\n");
    snprintf(path, sizeof(path), "python/%s/inner/__init__.py", name);
    test_write(path, "raise SystemExit('imported')\n");
    snprintf(path, sizeof(path), "python/%s-%s.dist-info/METADATA", distribution, version);
    snprintf(text, sizeof(text), "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", distribution,
             version);
    test_write(path, text);
    snprintf(path, sizeof(path), "python/%s-%s.dist-info/top_level.txt", distribution, version);
    test_write(path, name);
    setenv("PYTHONPATH", test_path("python"), 1);
}

static void expect_python(const char *what, const char *reason)
{
    char text[200];

    snprintf(text, sizeof(text), "{\"python\": [\"%s\"]}", what);
    expect(text, "python", what, reason, reason != NULL ? "install" : NULL);
}

Test(opbuild_requires, python_modules_are_found_without_an_import)
{
    write_module("fakemod", "fakemod", "2.3.1");
    expect_python("fakemod", NULL);
    expect_python("fakemod.inner.part", NULL);
    expect_python("fakemod.inner.other", "finds no module fakemod.inner.other");
    expect_python("nosuchmod", "finds no module nosuchmod");
    expect_python("nosuchmod.part", "finds no module nosuchmod.part");
    expect_python("sys", NULL);
    /* Not what happens to be in the working directory. */
    test_write("here/localmod.py", "");
    cr_assert_eq(chdir(test_path("here")), 0);
    expect_python("localmod", "finds no module localmod");
}

Test(opbuild_requires, python_modules_are_remembered_by_their_path)
{
    test_write("python/x", "");
    setenv("PYTHONPATH", test_path("python"), 1);
    expect_python("latemod", "finds no module latemod");
    write_module("latemod", "latemod", "1.0");
    expect_python("latemod", "finds no module latemod"); /* until the process ends */
    setenv("PYTHONPATH", "/nowhere", 1);
    expect_python("latemod", "finds no module latemod");
    write_module("latemod2", "latemod2", "1.0");
    expect_python("latemod2", NULL);
    ds_accel__requires_forget();
    expect_python("latemod", NULL);
}

Test(opbuild_requires, python_modules_have_versions)
{
    write_module("fakemod", "fakemod", "2.3.1+cu121");
    write_module("othermod", "other_name", "1.0rc1");
    expect_python("fakemod>=2.3,<3.3", NULL);
    expect_python("fakemod==2.3.1", NULL);
    expect_python("fakemod==2.3.1.0", NULL);
    expect_python("fakemod!=2.3.1", "has version 2.3.1+cu121; needed is !=2.3.1");
    expect_python("fakemod>=2.10", "needed is >=2.10");
    expect_python("fakemod>=1.5,<2", "needed is >=1.5,<2");
    expect_python("fakemod>2.3.1", "needed is >2.3.1");
    expect_python("fakemod<=2.3.1", NULL);
    expect_python("fakemod~=2.3", "no condition");
    expect_python("fakemod==2.*", "no condition");
    /* The distribution has another name than its module. */
    expect_python("othermod<1.0", NULL);
    expect_python("othermod>=1.0", "has version 1.0rc1");
    expect_python("sys>=1", "is unknown");
}

Test(opbuild_requires, without_python_the_reason_is_that)
{
    setenv("PATH", "/nowhere", 1);
    expect_python("torch", "there is no python3 in PATH");
}

/* ---- rights and memory ----------------------------------------------------------------------- */

Test(opbuild_requires, a_program_with_raised_rights_checks_nothing)
{
    json_t *requires = json_object();
    json_t *result = NULL;
    int32_t status;

    if (getuid() != 0) {
        cr_skip_test("needs root");
    }
    cr_assert_eq(setresuid(0, 65534, 0), 0);
    status = ds_accel__requires_check(requires, &compiler, NULL, &options, &result);
    cr_assert_eq(setresuid(0, 0, 0), 0);
    cr_expect_eq(status, DS_ACCEL_ERR_PERMISSION);
    json_decref(requires);
}

static json_t *all;

static int32_t attempt_check(void)
{
    json_t *result = NULL;
    int32_t status = ds_accel__requires_check(all, &compiler, flags, &options, &result);

    if (status == DS_ACCEL_OK) {
        cr_expect_eq(json_array_size(result), 5);
    }
    json_decref(result);
    ds_accel__requires_forget();
    return status;
}

Test(opbuild_requires, every_allocation_can_fail)
{
    flags = ARGUMENTS("-O1");
    compiler.arguments = ARGUMENTS(write_script("cc", "#!/bin/sh\necho error: no\nexit 1\n"));
    unsetenv("NONE");
    setenv("PATH", test_path("bin"), 1);
    write_script("bin/python3", "#!/bin/sh\necho =1.5\n");
    all = json_loads("{\"libraries\": [\"m\"], \"commands\": [\"none\"], \"env\": [\"NONE\"],"
                     "\"python\": [\"a>=2\"], \"cpu\": [\"none\"]}",
                     0, NULL);
    attempt_check();
    fail_each(attempt_check);
    cr_expect_eq(count_files(options.temporary), 1);
}
