/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* From a recipe to a file: toolchains, builds, caches, and what fails. Compilers are counted. */
#include "host/context.h"
#include "ops/answers.h"
#include "ops/digest.h"
#include "ops/manifest.h"
#include "ops/resolve.h"
#include "tiny.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "0123456789abcdef0123456789abcdef"

static struct ds_accel__resolve_options options;
static struct ds_accel__resolved resolved;

static void end(void)
{
    ds_accel__resolved_clear(&resolved);
    tiny_end();
}

TestSuite(opbuild_resolve, .init = tiny_begin, .fini = end);

static enum ds_accel__origin resolve(void)
{
    ds_accel__resolved_clear(&resolved);
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &resolved));
    return resolved.origin;
}

/* Expect an origin and the number of compilations and links since the test began. */
static void expect(enum ds_accel__origin origin, int count)
{
    enum ds_accel__origin got;

    /* The kernel's clock for files moves in steps of up to 10 ms. A source that was written in the
     * step in which a build begins is compiled twice. */
    usleep(20000);
    got = resolve();

    cr_assert_eq(got, origin, "%d: %s: %s", (int)got, resolved.reason, resolved.output);
    cr_expect_eq(tiny_compilations(), count, "%d", tiny_compilations());
}

static void expect_failure(const char *words)
{
    enum ds_accel__origin got = resolve();

    cr_assert_eq(got, DS_ACCEL__ORIGIN_FAILED, "%d: %s", (int)got, resolved.reason);
    EXPECT_HAS(resolved.reason, words);
    cr_expect_null(resolved.kernel.path);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- builds and caches ----------------------------------------------------------------------- */

Test(opbuild_resolve, what_was_built_is_cached)
{
    char key[65];
    char path[512];
    struct stat info;

    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    snprintf(key, sizeof(key), "%s", resolved.key);
    cr_expect_eq(strlen(key), DS_ACCEL__KEY_DIGITS);
    snprintf(path, sizeof(path), "%s/ops/tiny.%s.so", tiny_cache, key);
    cr_expect_str_eq(resolved.kernel.path, path);
    cr_expect_eq(resolved.kernel.finding.reason, DS_ACCEL__REASON_NONE);
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 07777, 0644);
    expect(DS_ACCEL__ORIGIN_CACHED, 2);
    cr_expect_str_eq(resolved.key, key);
    cr_expect_str_eq(resolved.kernel.path, path);
    options.only_finds = true;
    expect(DS_ACCEL__ORIGIN_CACHED, 2);
    options.only_finds = false;
    options.is_forced = true;
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
    cr_expect_str_eq(resolved.key, key);
}

Test(opbuild_resolve, finding_builds_nothing)
{
    options.only_finds = true;
    expect(DS_ACCEL__ORIGIN_BUILDABLE, 0);
    cr_expect_null(resolved.kernel.path);
    cr_expect(!exists(test_path("cache/ops")));
}

Test(opbuild_resolve, what_has_no_recipe_has_no_reason)
{
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "none", &options, &resolved));
    cr_expect_eq(resolved.origin, DS_ACCEL__ORIGIN_NONE);
    cr_expect_null(resolved.reason);
}

Test(opbuild_resolve, another_header_is_another_file)
{
    char first[65];

    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    snprintf(first, sizeof(first), "%s", resolved.key);
    test_write("source/tiny.h", "#define NAME \"tiny\" \n");
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
    cr_expect_str_neq(resolved.key, first);
    test_write("source/tiny.h", "#define NAME \"tiny\"\n");
    expect(DS_ACCEL__ORIGIN_CACHED, 4);
    cr_expect_str_eq(resolved.key, first);
}

Test(opbuild_resolve, another_source_is_another_file)
{
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    test_write("source/tiny.c", TINY_SOURCE "\n");
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
    test_write("source/tiny.c", TINY_SOURCE);
    expect(DS_ACCEL__ORIGIN_CACHED, 4);
    tiny_configure(", \"ldflags\": [\"-Wl,-O1\"]");
    expect(DS_ACCEL__ORIGIN_BUILT, 6);
}

Test(opbuild_resolve, other_compilers_are_another_file)
{
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    setenv("CC", tiny_compiler(": another"), 1);
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
    setenv("CC", tiny_compiler(":"), 1);
    expect(DS_ACCEL__ORIGIN_CACHED, 4);
}

/* ---- what else compilers read ---------------------------------------------------------------- */

/* Run a command of the shell in the directory of the test. */
static void run(const char *command)
{
    char text[1024];

    snprintf(text, sizeof(text), "cd '%s' && %s", test_dir(), command);
    cr_assert_eq(system(text), 0, "%s", text);
}

/* Make a static library at two places, whose foo() returns this value. */
static void make_library(int value, const char *ar)
{
    char text[512];

    snprintf(text, sizeof(text),
             "mkdir -p 'an other' source/sub && echo 'int foo(void); int foo(void) "
             "{ return %d; }' >foo.c && gcc -fPIC -c foo.c && for d in 'an other' source/sub; do "
             "rm -f \"$d\"/libfoo.a && ar %s \"$d\"/libfoo.a foo.o; done",
             value, ar);
    run(text);
}

#define USES_FOO "int foo(void);\nint tiny_foo(void);\nint tiny_foo(void) { return foo(); }\n"

Test(opbuild_resolve, another_static_library_is_another_file)
{
    static const char *const members[] = {
        ", \"libs\": [\"foo\"], \"ldflags\": [\"-L%s/an other\"]",
        ", \"libs\": [\"foo\"], \"ldflags\": [\"-Lsub\"]",
        ", \"ldflags\": [\"-L\", \"sub\", \"-l:libfoo.a\"]",
        ", \"libs\": [\":libfoo.a\"], \"ldflags\": [\"-L%s/an other\", \"-Wl,-O1\"]",
    };
    char text[512];
    char first[65];

    test_write("source/tiny.c", TINY_SOURCE USES_FOO);
    for (size_t i = 0, count = 0; i < ARRAY_SIZE(members); i++) {
        make_library(1, "rc");
        snprintf(text, sizeof(text), members[i], test_dir());
        tiny_configure(text);
        expect(DS_ACCEL__ORIGIN_BUILT, (int)(count += 2));
        snprintf(first, sizeof(first), "%s", resolved.key);
        expect(DS_ACCEL__ORIGIN_CACHED, (int)count);
        make_library(5, "rc");
        expect(DS_ACCEL__ORIGIN_BUILT, (int)(count += 2));
        cr_expect_str_neq(resolved.key, first);
        make_library(1, "rc");
        expect(DS_ACCEL__ORIGIN_CACHED, (int)count);
        cr_expect_str_eq(resolved.key, first);
    }
    /* Thin archives have only the names of their members. */
    make_library(1, "rcT");
    expect(DS_ACCEL__ORIGIN_BUILT, 18);
    make_library(5, "rcT");
    expect(DS_ACCEL__ORIGIN_BUILT, 20);
}

/* GNU ld before 2.35 does not know --dependency-file, but prints what it reads. */
Test(opbuild_resolve, a_linker_that_writes_no_list_prints_it)
{
    static const char *const linkers[] = {
        "case $* in *--dependency-file*) echo \"ld: unrecognized option '--dependency-file'\"; "
        "exit "
        "1;; esac",
        "case $* in *--dependency-file*) exit 0;; esac",
    };

    test_write("source/tiny.c", TINY_SOURCE USES_FOO);
    tiny_configure(", \"libs\": [\"foo\"], \"ldflags\": [\"-Lsub\"]");
    for (size_t i = 0; i < ARRAY_SIZE(linkers); i++) {
        setenv("CC", tiny_compiler(linkers[i]), 1);
        make_library(1, "rc");
        expect(DS_ACCEL__ORIGIN_BUILT, (int)(6 * i) + 3);
        cr_expect_null(resolved.output);
        make_library(5, "rc");
        expect(DS_ACCEL__ORIGIN_BUILT, (int)(6 * i) + 6);
        make_library(1, "rc");
        expect(DS_ACCEL__ORIGIN_CACHED, (int)(6 * i) + 6);
    }
}

/* The linker that a recipe or a variable chooses is upgraded, and goes back to what it was. */
Test(opbuild_resolve, another_linker_is_another_file)
{
    char value[1024];
    int count = 0;

    for (int i = 0; i < 2; i++) {
        write_script("linkers/ld.gold", "#!/bin/sh\nexec ld \"$@\"\n");
        if (i == 0) {
            snprintf(value, sizeof(value), ", \"ldflags\": [\"-B%s\", \"-fuse-ld=gold\"]",
                     test_path("linkers"));
            tiny_configure(value);
        } else {
            tiny_configure("");
            snprintf(value, sizeof(value), "%s -B%s -fuse-ld=gold", tiny_compiler(":"),
                     test_path("linkers"));
            setenv("CC", value, 1);
        }
        expect(DS_ACCEL__ORIGIN_BUILT, count += 2);
        expect(DS_ACCEL__ORIGIN_CACHED, count);
        write_script("linkers/ld.gold", "#!/bin/sh\n# upgraded\nexec ld \"$@\"\n");
        expect(DS_ACCEL__ORIGIN_BUILT, count += 2);
        write_script("linkers/ld.gold", "#!/bin/sh\nexec ld \"$@\"\n");
        expect(DS_ACCEL__ORIGIN_CACHED, count);
    }
}

/* The dynamic loader checks a shared library at each load. */
Test(opbuild_resolve, another_shared_library_is_the_same_file)
{
    test_write("source/tiny.c", TINY_SOURCE USES_FOO);
    tiny_configure(", \"libs\": [\"foo\"], \"ldflags\": [\"-Lsub\"]");
    run("mkdir source/sub && echo 'int foo(void) { return 1; }' >foo.c && "
        "gcc -shared -fPIC -o source/sub/libfoo.so foo.c");
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    run("echo 'int foo(void) { return 5; }' >foo.c && "
        "gcc -shared -fPIC -o source/sub/libfoo.so foo.c");
    expect(DS_ACCEL__ORIGIN_CACHED, 2);
}

Test(opbuild_resolve, files_that_the_assembler_includes_are_inputs)
{
    char text[1024];
    char key[2][65];

    snprintf(text, sizeof(text),
             TINY_SOURCE "__asm__(\".section .rodata\\n.incbin \\\"blob\\\"\\n"
                         ".include \\\"%s\\\"\\n.previous\");\n",
             test_path("more.s"));
    test_write("source/tiny.c", text);
    for (int i = 0; i < 2; i++) {
        test_write("source/blob", "one");
        test_write("more.s", ".byte 1\n");
        expect(i == 0 ? DS_ACCEL__ORIGIN_BUILT : DS_ACCEL__ORIGIN_CACHED, i == 0 ? 2 : 6);
        snprintf(key[i], sizeof(key[i]), "%s", resolved.sha256);
        test_write("source/blob", "two");
        expect(i == 0 ? DS_ACCEL__ORIGIN_BUILT : DS_ACCEL__ORIGIN_CACHED, i == 0 ? 4 : 6);
        test_write("more.s", ".byte 2\n");
        expect(i == 0 ? DS_ACCEL__ORIGIN_BUILT : DS_ACCEL__ORIGIN_CACHED, 6);
    }
    cr_expect_str_eq(key[0], key[1]);
    test_write("source/blob", "one");
    test_write("more.s", ".byte 1\n");
    options.is_forced = true;
    expect(DS_ACCEL__ORIGIN_BUILT, 8);
    cr_expect_str_eq(resolved.sha256, key[0]);
}

Test(opbuild_resolve, a_damaged_file_is_built_again)
{
    FILE *file;

    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    file = fopen(resolved.kernel.path, "ab");
    cr_assert_not_null(file);
    fputc('x', file);
    fclose(file);
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
    EXPECT_HAS(test_log, "is not used: its contents are not those that were built");
    expect(DS_ACCEL__ORIGIN_CACHED, 4);
    cr_assert_eq(unlink(resolved.kernel.path), 0);
    expect(DS_ACCEL__ORIGIN_BUILT, 6);
    cr_assert_eq(chmod(resolved.kernel.path, 0666), 0);
    expect(DS_ACCEL__ORIGIN_BUILT, 8);
}

Test(opbuild_resolve, without_a_compiler_the_cache_is_used)
{
    const char *path = getenv("PATH");

    unsetenv("CC");
    setenv("PATH", "/nowhere", 1);
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "no compiler for C");
    setenv("PATH", path, 1);
    setenv("CC", tiny_compiler(":"), 1);
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    unsetenv("CC");
    setenv("PATH", "/nowhere", 1);
    expect(DS_ACCEL__ORIGIN_CACHED, 2);
}

/* The variable says which compiler the file must be from. */
Test(opbuild_resolve, with_a_wrong_compiler_the_cache_is_not_used)
{
    char value[400];

    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    setenv("CC", "no-such-compiler", 1);
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "no-such-compiler is no program");
    setenv("CC", "false", 1);
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "exited with status 1");
    snprintf(value, sizeof(value), "%s -march=native", test_path("bin/cc"));
    setenv("CC", value, 1);
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "-march=native, which is the CPU that compiles");
    snprintf(value, sizeof(value), "%s @%s", test_path("bin/cc"),
             test_write("flags", "-g -gsplit-dwarf"));
    setenv("CC", value, 1);
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "-gsplit-dwarf, which puts the debug information");
}

Test(opbuild_resolve, a_cache_that_is_only_read_gets_nothing)
{
    setenv("DS_ACCEL_CACHE", "ro", 1);
    tiny_configure("");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "DS_ACCEL_CACHE");
    setenv("DS_ACCEL_CACHE", "off", 1);
    tiny_configure("");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
}

Test(opbuild_resolve, processes_build_once)
{
    pid_t children[3];
    int status;

    for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            enum ds_accel__origin origin = resolve();

            _exit(origin == DS_ACCEL__ORIGIN_BUILT    ? 10
                  : origin == DS_ACCEL__ORIGIN_CACHED ? 1
                                                      : 99);
        }
    }
    for (size_t i = 0, sum = 0; i < ARRAY_SIZE(children); i++) {
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_assert(WIFEXITED(status));
        sum += (size_t)WEXITSTATUS(status);
        cr_expect(i < 2 || sum == 12, "%zu", sum);
    }
    cr_expect_eq(tiny_compilations(), 2);
}

static void note_progress(void *user_data, uint32_t done, uint32_t total, const char *what)
{
    char *text = user_data;

    snprintf(text + strlen(text), 100, "%u/%u %s;", done, total, what);
}

Test(opbuild_resolve, progress_is_reported)
{
    char text[400] = "";

    options.on_progress = note_progress;
    options.user_data = text;
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    cr_expect_str_eq(text, "1/2 tiny.c;2/2 tiny;");
}

/* ---- what fails ------------------------------------------------------------------------------ */

Test(opbuild_resolve, a_source_that_does_not_compile_is_kept)
{
    char kept[300];

    snprintf(kept, sizeof(kept), "%s", test_path("cache/ops/tiny.failed"));
    test_write("source/tiny.c", "#error it does not\n");
    expect_failure("a command of the build exited with status 1");
    EXPECT_HAS(resolved.output, "it does not");
    EXPECT_HAS(resolved.command, kept);
    EXPECT_HAS(resolved.command, "tiny.c");
    cr_expect(exists(kept));
    test_write("source/tiny.c", TINY_SOURCE);
    expect(DS_ACCEL__ORIGIN_BUILT, 3);
    cr_expect(!exists(kept));
}

/* The message of the process that held the lock, here with a time after the begin of the wait. */
Test(opbuild_resolve, the_failure_that_was_waited_for_is_that_of_all)
{
    static const char message[] = "{\"reason\": \"it\\u001b[31m failed\", \"command\": \"cc x.c\", "
                                  "\"output\": \"x.c:1:\\terror\\u001b\\n\"}";
    const struct ds_accel__stores stores = {.local = tiny_cache};
    struct ds_accel__toolchain toolchain;
    struct ds_accel__recipe recipe;
    char digest[65];
    char data[512];
    ssize_t size;
    ssize_t at;
    int lock;

    MUST(ds_accel__recipe_read(&tiny_context->config, TINY_BACKEND, "tiny", &recipe));
    MUST(ds_accel__recipe_digest(&recipe, digest));
    MUST(ds_accel__toolchain_find(&recipe, &stores, &toolchain));
    lock = ds_accel__store_lock(&stores, digest, &tiny_context->log);
    cr_assert(lock >= 0);
    ds_accel__store_lock_fail(lock, toolchain.digest, message);
    size = pread(lock, data, sizeof(data), 64);
    at = size - (ssize_t)strlen(message) - 20;
    cr_assert(at > 0);
    cr_assert_eq(pwrite(lock, "09999999999999999999", 20, 64 + at), 20);
    close(lock);
    expect_failure("it [31m failed");
    cr_expect_str_eq(resolved.command, "cc x.c");
    cr_expect_str_eq(resolved.output, "x.c:1:\terror \n");
    cr_expect_eq(tiny_compilations(), 0);
    options.is_forced = true;
    expect_failure("it [31m failed");
    /* Other compilers may succeed. */
    setenv("CC", tiny_compiler(": another"), 1);
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    ds_accel__toolchain_clear(&toolchain);
    ds_accel__recipe_clear(&recipe);
}

/* Let the message that this process left pass for one that is left while it waits. */
static void date_message_later(void)
{
    const struct ds_accel__stores stores = {.local = tiny_cache};
    struct ds_accel__recipe recipe;
    char digest[65];
    char data[512];
    const char *begin;
    int lock;

    MUST(ds_accel__recipe_read(&tiny_context->config, TINY_BACKEND, "tiny", &recipe));
    MUST(ds_accel__recipe_digest(&recipe, digest));
    lock = ds_accel__store_lock(&stores, digest, &tiny_context->log);
    cr_assert(lock >= 0);
    cr_assert_eq(pread(lock, data, sizeof(data), 64), (ssize_t)sizeof(data));
    begin = memchr(data, '{', sizeof(data));
    cr_assert(begin != NULL && begin - data > 20);
    cr_assert_eq(pwrite(lock, "09999999999999999999", 20, 64 + (begin - data) - 20), 20);
    close(lock);
    ds_accel__recipe_clear(&recipe);
}

Test(opbuild_resolve, a_failure_of_a_long_command_is_that_of_all)
{
    static char text[100000];
    char *command;
    char *compiler;

    memset(text, 'x', sizeof(text) - 1);
    test_write("source/tiny.c", TINY_SOURCE "#error \"broken on purpose\"\n");
    compiler = ds_accel__format("%s -DLONG=%s", tiny_compiler(":"), text);
    setenv("CC", compiler, 1);
    expect_failure("a command of the build exited with status 1");
    cr_expect_eq(tiny_compilations(), 1);
    cr_assert(strlen(resolved.command) > sizeof(text));
    command = strdup(resolved.command);

    date_message_later();
    expect_failure("a command of the build exited with status 1");
    cr_expect_eq(tiny_compilations(), 1);
    cr_expect(resolved.command != NULL && strcmp(resolved.command, command) == 0);
    EXPECT_HAS(resolved.output, "error: #error \"broken on purpose\"");
    free(command);
    free(compiler);
}

Test(opbuild_resolve, much_output_of_a_failure_is_shortened_in_its_middle)
{
    setenv("CC", tiny_compiler("echo first words; seq 100000; echo last words; exit 1"), 1);
    expect_failure("a command of the build exited with status 1");
    cr_expect(strlen(resolved.output) > 500000);

    date_message_later();
    expect_failure("a command of the build exited with status 1");
    cr_expect_eq(tiny_compilations(), 1);
    cr_assert_not_null(resolved.output);
    cr_expect_eq(strncmp(resolved.output, "first words\n1\n2\n", 16), 0);
    EXPECT_HAS(resolved.output, " bytes are left out]\n");
    EXPECT_HAS(resolved.output, "\n100000\nlast words\n");
    cr_expect(strlen(resolved.output) < 300000);
}

Test(opbuild_resolve, a_file_of_another_op_is_refused)
{
    test_write("source/tiny.h", "#define NAME \"other\"\n");
    expect_failure("other");
    test_write("source/tiny.h", "#define NAME \"tiny\"\n");
    test_write("source/tiny.c", "int x;\n");
    expect_failure("op.so: ");
}

Test(opbuild_resolve, a_header_that_others_could_change_is_refused)
{
    cr_assert_eq(chmod(test_path("source/tiny.h"), 0666), 0);
    expect_failure("source/tiny.h: ");
    cr_assert_eq(chmod(test_path("source/tiny.h"), 0644), 0);
    expect(DS_ACCEL__ORIGIN_BUILT, 4);
}

Test(opbuild_resolve, a_source_that_others_could_change_is_refused)
{
    cr_assert_eq(chmod(test_path("source/tiny.c"), 0666), 0);
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "source/tiny.c: ");
}

Test(opbuild_resolve, a_source_that_changes_meanwhile_is_noticed)
{
    char before[400];

    snprintf(before, sizeof(before), "echo >>%s", test_path("source/tiny.c"));
    setenv("CC", tiny_compiler(before), 1);
    expect_failure("was changed while it was compiled");
    cr_expect_eq(tiny_compilations(), 6);
    /* Once is enough for a second build. */
    snprintf(before, sizeof(before), "[ -e %s ] || echo >>%s; echo >%s", test_path("once"),
             test_path("source/tiny.c"), test_path("once"));
    setenv("CC", tiny_compiler(before), 1);
    expect(DS_ACCEL__ORIGIN_BUILT, 10);
    expect(DS_ACCEL__ORIGIN_CACHED, 10);
    cr_assert_eq(unlink(test_path("source/tiny.c")), 0);
    test_write("source/tiny.c", TINY_SOURCE);
    setenv("CC", tiny_compiler(":"), 1);
    options.only_finds = true;
    cr_expect_eq(resolve(), DS_ACCEL__ORIGIN_BUILDABLE);
}

/* The compiler exits with 0 and has written nothing, or no list of headers. */
Test(opbuild_resolve, a_compiler_that_writes_nothing_is_noticed)
{
    setenv("CC", tiny_compiler("case \" $* \" in *' -shared '*) exit 0;; esac"), 1);
    expect_failure("op.so: the compiler has not written it");
    setenv("CC", tiny_compiler("case \" $* \" in *' -MD '*) exit 0;; esac"), 1);
    expect_failure("a command of the build exited with status 1");
    setenv("CC",
           tiny_compiler("for a; do shift; case $a in -MD|-MF|-X*|--MD|--dep*|*.d) ;; *) "
                         "set -- \"$@\" \"$a\";; esac; done"),
           1);
    expect_failure("the list of headers that -MD writes, is missing");
}

Test(opbuild_resolve, requirements_are_the_reason)
{
    tiny_configure(
        ", \"requires\": {\"env\": [\"NO_SUCH_VARIABLE\"], \"commands\": [\"no-such\"]}");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "NO_SUCH_VARIABLE");
    EXPECT_HAS(resolved.reason, "there is no command no-such in PATH; ");
    cr_expect_eq(json_array_size(resolved.requirements), 2);
    setenv("NO_SUCH_VARIABLE", "1", 1);
    tiny_configure(", \"requires\": {\"env\": [\"NO_SUCH_VARIABLE\"]}");
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    /* What is cached has what it requires, except of the CPU. */
    unsetenv("NO_SUCH_VARIABLE");
    expect(DS_ACCEL__ORIGIN_CACHED, 2);
    tiny_configure(", \"requires\": {\"cpu\": [\"warp9\"]}");
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "warp9");
    tiny_configure(", \"requires\": {\"ops\": [\"no_such_op\"]}");
    expect(DS_ACCEL__ORIGIN_NONE, 2);
    EXPECT_HAS(resolved.reason, "the op no_such_op cannot be loaded: it is not installed and has "
                                "no recipe");
}

/* Ops that require each other, as further rows of the table. */
static void configure_two(const char *of_tiny, const char *of_other)
{
    char text[700];

    snprintf(text, sizeof(text),
             "%s}, \"other\": {\"source_dir\": \"%s\", \"sources\": [\"other.c\"], "
             "\"include_dirs\": [\".\"]%s",
             of_tiny, test_path("other"), of_other);
    tiny_configure(text);
}

Test(opbuild_resolve, an_op_may_require_one_that_is_built_or_can_be)
{
    struct ds_accel__resolved other;

    test_copy(TEST_SOURCE "/ops/op.h", "other/ops/op.h");
    test_copy(TEST_SOURCE "/plugin-api.h", "other/plugin-api.h");
    run("chmod 644 other/ops/op.h other/plugin-api.h");
    test_write("other/tiny.h", "#define NAME \"other\"\n");
    test_write("other/other.c", TINY_SOURCE);
    configure_two(", \"requires\": {\"ops\": [\"other\"]}",
                  ", \"requires\": {\"env\": [\"NO_SUCH_VARIABLE\"]}");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "the op other cannot be loaded: ");
    EXPECT_HAS(resolved.reason, "NO_SUCH_VARIABLE is not set");
    configure_two(", \"requires\": {\"ops\": [\"other\"]}", "");
    expect(DS_ACCEL__ORIGIN_BUILT, 2); /* it could be built */
    MUST(ds_accel__resolve(tiny_context, TINY_BACKEND, "other", &options, &other));
    cr_expect_eq(other.origin, DS_ACCEL__ORIGIN_BUILT, "%s", other.reason);
    ds_accel__resolved_clear(&other);
    options.is_forced = true;
    expect(DS_ACCEL__ORIGIN_BUILT, 6); /* it was built */
}

Test(opbuild_resolve, an_op_cannot_require_itself)
{
    test_write("other/other.c", TINY_SOURCE);
    configure_two(", \"requires\": {\"ops\": [\"other\"]}",
                  ", \"requires\": {\"ops\": [\"tiny\"]}");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "the op tiny requires itself");
    configure_two(", \"requires\": {\"ops\": [\"tiny\"]}", "");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "the op tiny requires itself");
}

/* Also of a file that was built before: it may be from a machine with other devices. */
Test(opbuild_resolve, the_compute_capability_is_checked_for_each_use)
{
    static const char *const limits[] = {"1", "99"};
    char text[100];

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        snprintf(text, sizeof(text), ", \"requires\": {\"compute_major_min\": %s}", limits[i]);
        tiny_configure(text);
        for (int j = 0; j < 2; j++) { /* the backend cpu has no such number */
            const char *backend = j == 0 ? "mock" : "cpu";

            ds_accel__resolved_clear(&resolved);
            MUST(ds_accel__resolve(tiny_context, backend, "tiny", &options, &resolved));
            if (i == 1 && j == 0) {
                cr_expect_eq(resolved.origin, DS_ACCEL__ORIGIN_NONE);
                EXPECT_HAS(resolved.reason,
                           "the device has compute capability 1; needed is 99 or later");
            } else {
                cr_expect_eq(resolved.origin,
                             j == 0 || i == 1 ? DS_ACCEL__ORIGIN_BUILT : DS_ACCEL__ORIGIN_CACHED,
                             "%zu %s: %d: %s", i, backend, (int)resolved.origin, resolved.reason);
            }
            cr_expect_null(resolved.inputs); /* nothing is remembered of it */
        }
    }
    /* The file for 99 was built for cpu. */
    ds_accel__resolved_clear(&resolved);
    MUST(ds_accel__resolve(tiny_context, "mock", "tiny", &options, &resolved));
    cr_expect_eq(resolved.origin, DS_ACCEL__ORIGIN_NONE);
}

Test(opbuild_resolve, a_recipe_that_cannot_be_followed_is_the_reason)
{
    tiny_configure(", \"device_cflags\": [\"-march=native\"]");
    expect(DS_ACCEL__ORIGIN_NONE, 0);
    EXPECT_HAS(resolved.reason, "-march=native");
}

Test(opbuild_resolve, a_cache_that_cannot_be_written_is_the_reason)
{
    mkdir(test_path("cache/ops"), 0755);
    cr_assert_eq(chmod(test_path("cache/ops"), 0777), 0);
    expect_failure("cache/ops");
    cr_expect_eq(tiny_compilations(), 0);
}

/* ---- toolchains ------------------------------------------------------------------------------ */

static struct ds_accel__recipe with_sources(char **sources)
{
    static char *none[] = {NULL};

    return (struct ds_accel__recipe){
        .name = (char *)"tiny", .op = "tiny", .sources = sources, .ldflags = none};
}

Test(opbuild_resolve, the_linker_is_that_of_the_highest_language)
{
    static const struct {
        const char *sources[3];
        enum ds_accel__language linker;
    } cases[] = {
        {{"a.c"}, DS_ACCEL__LANGUAGE_C},
        {{"a.c", "b.cpp"}, DS_ACCEL__LANGUAGE_CXX},
        {{"a.c", "b.cu"}, DS_ACCEL__LANGUAGE_CXX},
        {{"a.cpp", "b.hip"}, DS_ACCEL__LANGUAGE_HIP},
        {{"a.sycl", "b.c"}, DS_ACCEL__LANGUAGE_SYCL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ds_accel__recipe recipe = with_sources((char **)(uintptr_t)cases[i].sources);

        cr_expect_eq(ds_accel__toolchain_linker(&recipe), cases[i].linker, "%s",
                     cases[i].sources[0]);
    }
}

static struct ds_accel__toolchain find(char **sources)
{
    const struct ds_accel__stores stores = {.local = tiny_cache};
    const struct ds_accel__recipe recipe = with_sources(sources);
    struct ds_accel__toolchain toolchain;

    ds_accel__digests_forget();
    ds_accel__answers_forget();
    MUST(ds_accel__toolchain_find(&recipe, &stores, &toolchain));
    return toolchain;
}

Test(opbuild_resolve, a_toolchain_has_what_the_sources_need)
{
    struct ds_accel__toolchain toolchain = find(ARGUMENTS("a.c"));
    char digest[65];

    cr_expect(toolchain.is_used[DS_ACCEL__LANGUAGE_C]);
    cr_expect(!toolchain.is_used[DS_ACCEL__LANGUAGE_CXX]);
    cr_expect_str_eq(toolchain.missing, "");
    cr_expect_eq(strlen(toolchain.digest), 64);
    snprintf(digest, sizeof(digest), "%s", toolchain.digest);
    ds_accel__toolchain_clear(&toolchain);
    toolchain = find(ARGUMENTS("a.c", "b.cpp"));
    cr_expect(toolchain.is_used[DS_ACCEL__LANGUAGE_CXX]);
    cr_expect_str_neq(toolchain.digest, digest);
    ds_accel__toolchain_clear(&toolchain);
    setenv("CUDA_HOME", "/nowhere", 1);
    setenv("PATH", "/nowhere", 1);
    toolchain = find(ARGUMENTS("a.cu"));
    cr_expect(toolchain.missing[0] != '\0');
    cr_expect_str_eq(toolchain.digest, "");
    ds_accel__toolchain_clear(&toolchain);
    cr_expect_str_eq(toolchain.missing, "");
}

static void write_digests(const char *boot, const char *key, const char *digest)
{
    char text[1024];

    snprintf(text, sizeof(text), "{\"boot\": \"%s\", \"digests\": {\"%s\": \"%s\"}}", boot, key,
             digest);
    test_write("cache/ops-digests.json", text);
    cr_assert_eq(chmod(test_path("cache/ops-digests.json"), 0600), 0);
}

/* Find the toolchain of a C source anew, with what the file has. */
static void digest_with_file(char digest_out[65])
{
    struct ds_accel__toolchain toolchain = find(ARGUMENTS("a.c"));

    snprintf(digest_out, 65, "%s", toolchain.digest);
    ds_accel__toolchain_clear(&toolchain);
}

/* The digests of programs are those of this boot only. */
Test(opbuild_resolve, digests_are_remembered_until_the_next_boot)
{
    const struct ds_accel__stores stores = {.local = tiny_cache, .writable = tiny_cache};
    struct ds_accel__toolchain toolchain = find(ARGUMENTS("a.c"));
    char first[65];
    char digest[65];
    const char *boot;
    const char *key;
    json_t *file;

    snprintf(first, sizeof(first), "%s", toolchain.digest);
    ds_accel__toolchain_keep(&toolchain, &stores);
    ds_accel__toolchain_clear(&toolchain);
    file = json_load_file(test_path("cache/ops-digests.json"), 0, NULL);
    boot = json_string_value(json_object_get(file, "boot"));
    key = json_object_iter_key(json_object_iter(json_object_get(file, "digests")));
    cr_assert(boot != NULL && key != NULL);
    digest_with_file(digest);
    cr_expect_str_eq(digest, first);
    /* A digest that no program has, to see whether it is used. */
    write_digests(boot, key, KEY KEY);
    digest_with_file(digest);
    cr_expect_str_neq(digest, first);
    write_digests("another", key, KEY KEY);
    digest_with_file(digest);
    cr_expect_str_eq(digest, first);
    write_digests(boot, key, KEY);
    digest_with_file(digest);
    cr_expect_str_eq(digest, first);
    test_write("cache/ops-digests.json", "{\"boot\": ");
    digest_with_file(digest);
    cr_expect_str_eq(digest, first);
    json_decref(file);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * A compiler that starts no other program: its parts are small files, and it copies what the real
 * one has written. Each attempt runs it several times.
 */
static void use_copying_compiler(void)
{
    static const char *const programs[] = {"cc1", "cc1plus", "as", "ld", "collect2", "lto1"};
    char text[2048];
    char name[64];

    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    test_copy(resolved.kernel.path, "made/op.so");
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        snprintf(name, sizeof(name), "fake/%s", programs[i]);
        write_script(name, programs[i]);
    }
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "for last; do :; done\n"
             "case $last in\n"
             "--version) echo 'gcc (Fake) 99.1.0'; echo 'Copyright Free Software Foundation';;\n"
             "-print-prog-name=*) echo \"%s/fake/${last#*=}\";;\n"
             "esac\n"
             "out=\n"
             "for a; do\n"
             "case $a in\n"
             "*.d) echo 'x.o: tiny.c tiny.h ops/op.h' >\"$a\";;\n"
             "*/op.so) exec cp %s \"$a\";;\n"
             "esac\n"
             "done\n",
             test_dir(), test_path("made/op.so"));
    setenv("CC", write_script("fake/gcc", text), 1);
    usleep(3100000); /* what was written just now is not remembered */
}

static int32_t attempt_build(void)
{
    struct ds_accel__resolved own;
    int32_t status = ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &own);

    if (status >= 0) {
        cr_expect_eq(own.origin, DS_ACCEL__ORIGIN_BUILT, "%d: %s", (int)own.origin, own.reason);
    }
    cr_expect(status >= 0 || status == DS_ACCEL_ERR_NO_MEMORY, "%d: %s", status,
              ds_accel_last_error());
    ds_accel__resolved_clear(&own);
    return status;
}

Test(opbuild_resolve, every_allocation_of_a_build_can_fail)
{
    use_copying_compiler();
    options.is_forced = true;
    cr_assert_eq(attempt_build(), DS_ACCEL_OK); /* what is remembered now is no leak */
    fail_each(attempt_build);
}

/* A compiler that fails, and what is kept of that. */
static int32_t attempt_failure(void)
{
    struct ds_accel__resolved own;
    int32_t status = ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &own);

    if (status >= 0) {
        cr_expect_eq(own.origin, DS_ACCEL__ORIGIN_FAILED);
        cr_assert(own.reason != NULL && own.command != NULL && own.output != NULL, "%s",
                  own.reason);
        cr_expect_not_null(strstr(own.command, "/tiny.failed/"),
                           "it can be repeated only in the directory that is kept: %s",
                           own.command);
    }
    ds_accel__resolved_clear(&own);
    return status;
}

Test(opbuild_resolve, every_allocation_of_a_failure_can_fail)
{
    use_copying_compiler();
    cr_assert_eq(unlink(test_path("made/op.so")), 0); /* what the compiler copies */
    options.is_forced = true;
    cr_assert_eq(attempt_failure(), DS_ACCEL_OK);
    fail_each(attempt_failure);
}

static int32_t attempt_cached(void)
{
    struct ds_accel__resolved own;
    int32_t status = ds_accel__resolve(tiny_context, TINY_BACKEND, "tiny", &options, &own);

    if (status >= 0) {
        cr_expect_eq(own.origin, DS_ACCEL__ORIGIN_CACHED, "%d: %s", (int)own.origin, own.reason);
    }
    ds_accel__resolved_clear(&own);
    return status;
}

Test(opbuild_resolve, every_allocation_of_a_search_can_fail)
{
    use_copying_compiler();
    expect(DS_ACCEL__ORIGIN_BUILT, 2);
    options.only_finds = true;
    fail_each(attempt_cached);
}
