/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Running commands: their output, their end, what they inherit, and a caller that has children. */
#include "machine/machine.h"
#include "opbuild.h"
#include "ops/command.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int32_t run_with(struct ds_accel__command *commands, size_t count, uint32_t jobs,
                        uint32_t timeout_ms)
{
    const struct ds_accel__command_options options = {
        .jobs = jobs, .timeout_ms = timeout_ms, .temporary = "/tmp"};

    return ds_accel__commands_run(commands, count, &options);
}

/* A command that runs a text in a shell. */
#define SHELL(text) \
    { \
        .arguments = ARGUMENTS("/bin/sh", "-c", (text)) \
    }

static void clear(struct ds_accel__command *commands, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ds_accel__text_clear(&commands[i].output);
    }
}

/* Run one text in a shell, and expect its output and exit status. */
static void expect(const char *text, const char *output, int exit_status)
{
    struct ds_accel__command command = SHELL(text);

    MUST(run_with(&command, 1, 1, 0));
    cr_expect(WIFEXITED(command.wait_status), "%s: %#x", text, command.wait_status);
    cr_expect_eq(WEXITSTATUS(command.wait_status), exit_status, "%s", text);
    cr_expect_str_eq(command.output.data != NULL ? command.output.data : "", output, "%s: %s", text,
                     command.output.data);
    clear(&command, 1);
}

/* ---- output ---------------------------------------------------------------------------------- */

Test(opbuild_command, stdout_and_stderr_are_interleaved_as_written)
{
    expect("echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd\n", 0);
    expect("exit 7", "", 7);
}

Test(opbuild_command, ten_megabytes_of_output_keep_the_first_one)
{
    struct ds_accel__command command =
        SHELL("echo begin; head -c 10485760 /dev/zero | tr '\\0' x; exit 3");
    const char *mark = "\n[9437190 more bytes were dropped]\n";

    MUST(run_with(&command, 1, 1, 0));
    cr_expect_eq(WEXITSTATUS(command.wait_status), 3);
    cr_assert_eq(command.output.size_bytes, DS_ACCEL__COMMAND_OUTPUT_LIMIT + strlen(mark));
    cr_expect_eq(strncmp(command.output.data, "begin\nxxx", 9), 0);
    cr_expect_str_eq(command.output.data + DS_ACCEL__COMMAND_OUTPUT_LIMIT, mark);
    clear(&command, 1);
}

Test(opbuild_command, a_command_that_closes_its_output_is_waited_for)
{
    expect("echo a; exec >&- 2>&-; sleep 0.2; exit 5", "a\n", 5);
}

/* The sleeper holds the pipe for as long as it lives. It leaves the group, so that it survives. */
Test(opbuild_command, a_grandchild_that_keeps_the_pipe_open_is_not_waited_for)
{
    char path[256];
    char text[512];
    FILE *file;
    int pid = 0;

    snprintf(path, sizeof(path), "%s", test_path("sleeper"));
    snprintf(text, sizeof(text),
             "setsid sh -c 'echo $$ >%s; exec sleep 1000' & while [ ! -s %s ]; do sleep 0.01; "
             "done; echo a",
             path, path);
    expect(text, "a\n", 0);
    cr_expect(!process_is_gone(path));
    file = fopen(path, "r");
    cr_assert_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    kill(pid, SIGKILL);
}

Test(opbuild_command, what_a_command_leaves_in_its_group_is_killed)
{
    char path[256];
    char text[512];

    snprintf(path, sizeof(path), "%s", test_path("left"));
    snprintf(text, sizeof(text), "sleep 1000 & echo $! >%s; echo a", path);
    expect(text, "a\n", 0);
    cr_expect(wait_until(process_is_gone, path));
}

/* ---- ends ------------------------------------------------------------------------------------ */

Test(opbuild_command, a_command_that_kills_itself_is_reported)
{
    struct ds_accel__command command = SHELL("kill -SEGV $$");
    char text[128];

    MUST(run_with(&command, 1, 1, 0));
    cr_assert(WIFSIGNALED(command.wait_status));
    cr_expect_eq(WTERMSIG(command.wait_status), SIGSEGV);
    cr_expect(!ds_accel__command_succeeded(&command));
    ds_accel__command_describe(&command, text, sizeof(text));
    cr_expect_str_eq(text, "was ended by signal 11 (SIGSEGV)");
    clear(&command, 1);
}

Test(opbuild_command, a_command_that_ignores_sigterm_is_killed_after_its_time)
{
    struct ds_accel__command command = SHELL("trap '' TERM; echo a; while :; do sleep 1; done");
    char text[128];

    MUST(run_with(&command, 1, 1, 300));
    cr_expect(command.is_timed_out);
    cr_assert(WIFSIGNALED(command.wait_status));
    cr_expect_eq(WTERMSIG(command.wait_status), SIGKILL);
    cr_expect_str_eq(command.output.data, "a\n");
    ds_accel__command_describe(&command, text, sizeof(text));
    EXPECT_HAS(text, "too long");
    clear(&command, 1);
}

Test(opbuild_command, a_stopped_command_ends_after_its_time)
{
    struct ds_accel__command command = SHELL("kill -STOP $$");

    MUST(run_with(&command, 1, 1, 300));
    cr_expect(command.is_timed_out);
    cr_expect(WIFSIGNALED(command.wait_status) && WTERMSIG(command.wait_status) == SIGTERM);
}

/* The failing one fails only when the other runs, which is asked to end and does it its own way. */
Test(opbuild_command, a_failure_ends_the_others_and_starts_no_more)
{
    char slow[512];
    char failing[256];
    char path[256];
    struct ds_accel__command commands[3] = {SHELL(slow), SHELL(failing), SHELL("echo never")};

    snprintf(path, sizeof(path), "%s", test_path("runs"));
    snprintf(slow, sizeof(slow),
             "trap 'echo asked; exit 9' TERM; echo 1 >%s; while :; do sleep 0.05; done", path);
    snprintf(failing, sizeof(failing), "while [ ! -s %s ]; do sleep 0.01; done; exit 4", path);
    MUST(run_with(commands, 3, 2, 0));
    cr_expect(WIFEXITED(commands[0].wait_status) && WEXITSTATUS(commands[0].wait_status) == 9);
    cr_expect(commands[0].is_cancelled);
    EXPECT_HAS(commands[0].output.data, "asked\n"); /* and "Terminated", of the sleeper */
    cr_expect_eq(WEXITSTATUS(commands[1].wait_status), 4);
    cr_expect(!commands[1].is_cancelled);
    cr_expect_eq(commands[2].wait_status, -1);
    cr_expect(!ds_accel__command_succeeded(&commands[2]));
    clear(commands, 3);
}

Test(opbuild_command, a_program_that_cannot_be_started_is_named_with_the_cause)
{
    struct ds_accel__command absent = {.arguments = ARGUMENTS("/nowhere/cc")};
    struct ds_accel__command directory = SHELL("echo a");
    struct ds_accel__command relative = {.arguments = ARGUMENTS("cc")};
    struct ds_accel__command text = {
        .arguments = ARGUMENTS(write_script("text", "not a program\n"))};

    directory.directory = "/nowhere/at/all";
    EXPECT_REFUSED(run_with(&absent, 1, 1, 0), DS_ACCEL_ERR_IO,
                   "/nowhere/cc cannot be started: No such file or directory");
    EXPECT_REFUSED(run_with(&directory, 1, 1, 0), DS_ACCEL_ERR_IO,
                   "/bin/sh cannot be started in /nowhere/at/all: No such file or directory");
    EXPECT_REFUSED(run_with(&text, 1, 1, 0), DS_ACCEL_ERR_IO, "Exec format error");
    EXPECT_REFUSED(run_with(&relative, 1, 1, 0), DS_ACCEL_ERR_INVALID, "absolute path");
    cr_expect_eq(absent.wait_status, -1);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

struct progress {
    int running;
    int most;
    int started;
    int ended;
};

static void count_progress(void *user_data, const struct ds_accel__command *command, bool has_ended)
{
    struct progress *progress = user_data;

    if (has_ended) {
        cr_expect(ds_accel__command_succeeded(command));
        cr_expect_str_eq(command->output.data, "a\n");
        progress->ended++;
        progress->running--;
    } else {
        cr_expect_eq(command->wait_status, -1);
        progress->started++;
        progress->running++;
    }
    progress->most = progress->running > progress->most ? progress->running : progress->most;
}

Test(opbuild_command, no_more_run_at_once_than_asked_for)
{
    char **arguments = ARGUMENTS("/bin/sh", "-c", "sleep 0.1; echo a");
    struct ds_accel__command commands[9];
    struct progress progress = {0};
    const struct ds_accel__command_options options = {
        .jobs = 3, .temporary = "/tmp", .on_progress = count_progress, .user_data = &progress};

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        commands[i] = (struct ds_accel__command){.arguments = arguments};
    }
    MUST(ds_accel__commands_run(commands, ARRAY_SIZE(commands), &options));
    cr_expect_eq(progress.started, 9);
    cr_expect_eq(progress.ended, 9);
    cr_expect_eq(progress.running, 0);
    cr_expect_eq(progress.most, 3, "%d", progress.most);
    clear(commands, ARRAY_SIZE(commands));
}

static void *run_many(void *failed)
{
    for (int i = 0; i < 40; i++) {
        struct ds_accel__command commands[2] = {SHELL("echo a"), SHELL("exit 6")};

        if (run_with(commands, 2, 1, 0) != DS_ACCEL_OK || commands[0].wait_status != 0 ||
            commands[0].output.data == NULL || strcmp(commands[0].output.data, "a\n") != 0 ||
            WEXITSTATUS(commands[1].wait_status) != 6) {
            *(bool *)failed = true;
        }
        clear(commands, 2);
    }
    return NULL;
}

Test(opbuild_command, several_threads_run_commands)
{
    pthread_t threads[4];
    bool failed[4] = {false};

    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &failed[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_expect(!failed[i]);
    }
}

static void put_machine(const char *cpus, const char *memory)
{
    char text[256];

    snprintf(text, sizeof(text), "Cpus_allowed_list:\t%s\nMems_allowed_list:\t0\n", cpus);
    test_write("machine/proc/self/status", text);
    test_write("machine/sys/devices/system/cpu/online", "0-15\n");
    snprintf(text, sizeof(text), "MemTotal: 99999999 kB\nMemAvailable: %s kB\n", memory);
    test_write("machine/proc/meminfo", text);
}

Test(opbuild_command, jobs_follow_from_cpus_and_memory)
{
    char root[256];
    struct ds_accel__machine machine = {.root = root};
    const uint64_t gib = UINT64_C(1) << 30;

    snprintf(root, sizeof(root), "%s", test_path("machine"));
    put_machine("0-7", "10485760");
    cr_expect_eq(ds_accel__command_jobs(&machine, 2 * gib), 5);
    cr_expect_eq(ds_accel__command_jobs(&machine, 8 * gib), 1);
    cr_expect_eq(ds_accel__command_jobs(&machine, 100 * gib), 1);
    cr_expect_eq(ds_accel__command_jobs(&machine, 1), 8);
    cr_expect_eq(ds_accel__command_jobs(&machine, 0), 8);
    test_write("machine/proc/self/cgroup", "0::/job\n");
    test_write("machine/proc/self/mountinfo",
               "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    test_write("machine/sys/fs/cgroup/job/memory.max", "5368709120\n");
    test_write("machine/sys/fs/cgroup/job/memory.current", "1073741824\n");
    cr_expect_eq(ds_accel__command_jobs(&machine, 2 * gib), 2);
    snprintf(root, sizeof(root), "/nowhere");
    cr_expect_eq(ds_accel__command_jobs(&machine, gib), 1);
}

/* ---- what a command inherits ----------------------------------------------------------------- */

/* ls itself opens the directory, with the lowest free number. */
Test(opbuild_command, a_command_inherits_no_descriptor)
{
    struct ds_accel__command command = {.arguments = ARGUMENTS("/bin/ls", "/proc/self/fd")};

    cr_assert_geq(dup2(1, 77), 0);
    cr_assert_geq(dup2(1, 4), 0);
    MUST(run_with(&command, 1, 1, 0));
    cr_expect_str_eq(command.output.data, "0\n1\n2\n3\n");
    clear(&command, 1);
    expect("readlink /proc/$$/fd/0", "/dev/null\n", 0);
}

Test(opbuild_command, closed_standard_streams_do_not_matter)
{
    struct ds_accel__command command = SHELL("echo a; echo b >&2");
    int kept = dup(2);

    close(0);
    close(1);
    close(2);
    run_with(&command, 1, 1, 0);
    dup2(kept, 2);
    dup2(kept, 1);
    cr_expect_str_eq(command.output.data, "a\nb\n");
    clear(&command, 1);
}

Test(opbuild_command, signals_have_their_defaults)
{
    sigset_t all;

    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    /* Signals 32 and 33 are the C library's, and what starts the tests may ignore them. */
    expect("while read -r name set; do case $name in SigBlk:|SigIgn:) "
           "echo $name $((0x$set & ~0x180000000)) ;; esac; done </proc/self/status",
           "SigBlk: 0\nSigIgn: 0\n", 0);
    cr_expect_eq(signal(SIGTERM, SIG_DFL), SIG_IGN);
}

Test(opbuild_command, each_command_is_a_group_of_its_own)
{
    char text[128];

    snprintf(text, sizeof(text), "[ $(ps -o pgid= -p $$) = $$ ] && [ $(ps -o pgid= -p $$) != %d ]",
             (int)getpgrp());
    expect(text, "", 0);
}

Test(opbuild_command, the_environment_is_cleaned)
{
    setenv("CPATH", "/x", 1);
    setenv("CCC_OVERRIDE_OPTIONS", "#", 1);
    setenv("CLANG_CONFIG_FILE", "x", 1);
    setenv("NVCC_APPEND_FLAGS", "-G", 1);
    setenv("LD_RUN_PATH", "/x", 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    setenv("SOURCE_DATE_EPOCH", "1000", 1);
    setenv("TMPDIR", "/x", 1);
    setenv("CCACHE_DIR", "kept", 1);
    setenv("CPATHS", "kept", 1);
    expect("echo ${CPATH-no} ${CCC_OVERRIDE_OPTIONS-no} ${CLANG_CONFIG_FILE-no} "
           "${NVCC_APPEND_FLAGS-no} ${LD_RUN_PATH-no} $LC_ALL $SOURCE_DATE_EPOCH $TMPDIR "
           "$CCACHE_DIR $CPATHS",
           "no no no no no C 0 /tmp kept kept\n", 0);
}

Test(opbuild_command, a_command_runs_in_its_directory)
{
    struct ds_accel__command command = SHELL("pwd");

    command.directory = "/usr/bin";
    MUST(run_with(&command, 1, 1, 0));
    EXPECT_HAS(command.output.data, "/bin\n");
    clear(&command, 1);
}

/* ---- the caller ------------------------------------------------------------------------------ */

Test(opbuild_command, a_caller_that_ignores_sigchld_learns_the_status)
{
    signal(SIGCHLD, SIG_IGN);
    expect("echo a; exit 5", "a\n", 5);
    cr_expect_eq(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static volatile sig_atomic_t sigchld_count;

static void reap_any(int signal)
{
    (void)signal;
    sigchld_count++;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

static void *reap_always(void *stop)
{
    while (!*(volatile bool *)stop) {
        cr_expect_lt(waitpid(-1, NULL, 0), 0);
        usleep(1000);
    }
    return NULL;
}

Test(opbuild_command, a_caller_that_waits_for_any_child_sees_none)
{
    const struct sigaction action = {.sa_handler = reap_any};
    pthread_t thread;
    bool stop = false;

    sigaction(SIGCHLD, &action, NULL);
    cr_assert_eq(pthread_create(&thread, NULL, reap_always, &stop), 0);
    for (int i = 0; i < 50; i++) {
        expect("exit 5", "", 5);
    }
    *(volatile bool *)&stop = true;
    pthread_join(thread, NULL);
    cr_expect_eq(sigchld_count, 0);
}

Test(opbuild_command, no_process_and_no_descriptor_is_left)
{
    int before = dup(0);
    int after;

    close(before);
    for (int i = 0; i < 5; i++) {
        expect("exit 5", "", 5);
    }
    after = dup(0);
    close(after);
    cr_expect_eq(before, after);
    cr_expect(waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD);
}

/* Run a command in a forked process of its own group, kill that process, and expect that the
 * command and its child are killed. */
static void expect_killed(bool with_group)
{
    char leader[256];
    char child[256];
    char text[600];
    pid_t caller;

    snprintf(leader, sizeof(leader), "%s", test_path("leader"));
    snprintf(child, sizeof(child), "%s", test_path("child"));
    snprintf(text, sizeof(text),
             "trap '' TERM INT HUP; echo $$ >%s; sh -c 'echo $$ >%s; sleep 1000'", leader, child);
    caller = fork();
    if (caller == 0) {
        struct ds_accel__command command = SHELL(text);

        setpgid(0, 0);
        run_with(&command, 1, 1, 0);
        _exit(0);
    }
    cr_assert(wait_until(file_is_written, leader));
    cr_assert(wait_until(file_is_written, child));
    kill(with_group ? -caller : caller, SIGKILL);
    cr_assert_eq(waitpid(caller, NULL, 0), caller);
    cr_expect(wait_until(process_is_gone, leader));
    cr_expect(wait_until(process_is_gone, child));
}

Test(opbuild_command, commands_end_with_the_caller)
{
    expect_killed(false);
}

Test(opbuild_command, commands_end_with_the_group_of_the_caller)
{
    expect_killed(true);
}

Test(opbuild_command, a_program_with_raised_rights_runs_nothing)
{
    struct ds_accel__command command = SHELL("echo a");
    int32_t status;

    if (getuid() != 0) {
        cr_skip_test("needs root");
    }
    cr_assert_eq(setresuid(0, 65534, 0), 0);
    status = run_with(&command, 1, 1, 0);
    cr_assert_eq(setresuid(0, 0, 0), 0);
    cr_expect_eq(status, DS_ACCEL_ERR_PERMISSION);
    cr_expect_eq(command.wait_status, -1);
}

static int32_t attempt_commands(void)
{
    struct ds_accel__command commands[2] = {SHELL("echo a"), SHELL("echo b")};
    int32_t status = run_with(commands, 2, 2, 0);

    if (status == DS_ACCEL_OK) {
        cr_expect(commands[0].output.data != NULL && commands[1].output.data != NULL);
    }
    clear(commands, 2);
    return status;
}

Test(opbuild_command, every_allocation_can_fail)
{
    attempt_commands(); /* what threads allocate once */
    fail_each(attempt_commands);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void expect_line(char *const *arguments, const char *directory, const char *wanted)
{
    char *line = ds_accel__command_line(arguments, directory);

    cr_expect_str_eq(line, wanted, "%s", line);
    free(line);
}

Test(opbuild_command, a_line_is_quoted_for_a_shell)
{
    clearenv();
    expect_line(ARGUMENTS("/usr/bin/gcc", "-DA=\"b c\"", "-I/x y", "it's", "", "$HOME", "~"),
                "/a b",
                "cd '/a b' && /usr/bin/gcc '-DA=\"b c\"' '-I/x y' 'it'\\''s' '' '$HOME' '~'");
    expect_line(ARGUMENTS("/cc", "-std=c11", "=x", "a\nb'\\\x1b", "\xc3\xbc"), "-d",
                "cd -- -d && /cc -std=c11 '=x' $'a\\012b\\'\\\\\\033' '\xc3\xbc'");
    /* The command did not have these variables. */
    setenv("LIBRARY_PATH", "/lib", 1);
    setenv("MAKEFLAGS", "-j", 1);
    setenv("PATH", "/bin", 1);
    setenv("CCC_X", "1", 1);
    expect_line(ARGUMENTS("/cc", "x.c"), "/d", "cd /d && env -u LIBRARY_PATH -u CCC_X /cc x.c");
    expect_line(ARGUMENTS("/cc", "x.c"), NULL, "/cc x.c");
}

Test(opbuild_command, a_failure_of_the_machine_is_none_of_the_input)
{
    static const char *const of_machine[] = {
        "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n",
        "clang: error: unable to execute command: Killed\n",
        "cc1: out of memory allocating 65536 bytes after a total of 1 bytes\n",
        "/tmp/x.s: Assembler messages:\nx.s: Fatal error: can't close 0.o: No space left on "
        "device\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(of_machine); i++) {
        cr_expect(ds_accel__command_blames_machine(of_machine[i]), "%s", of_machine[i]);
    }
    cr_expect(!ds_accel__command_blames_machine(""));
    /* Compilers repeat the source, each in its way. */
    cr_expect(!ds_accel__command_blames_machine("x.c:1:2: error: #error out of memory\n"));
    cr_expect(!ds_accel__command_blames_machine(
        "x.c:1:22: error: expected ';'\n    1 | puts(\"out of memory\") return 0;\n"));
    cr_expect(!ds_accel__command_blames_machine(
        "x.c:1:22: error: expected ';'\nputs(\"out of memory\") return 0;\n     ^\n"));
    cr_expect(!ds_accel__command_blames_machine(
        "x.c:1:1: error: static assertion failed: \"No space left on device\"\n"));
}

/* What bash makes of the line is what was given. */
Test(opbuild_command, a_shell_reads_the_arguments_back)
{
    struct ds_accel__command command = {0};
    char *line = ds_accel__command_line(ARGUMENTS("/usr/bin/printf", "<%s>", "a b", "'\"\\",
                                                  "$(x)`y`", "\t\x01", "", "*", "!", "&;|", "#"),
                                        NULL);

    command.arguments = ARGUMENTS("/bin/bash", "-c", line);
    MUST(run_with(&command, 1, 1, 0));
    cr_expect_str_eq(command.output.data, "<a b><'\"\\><$(x)`y`><\t\x01><><*><!><&;|><#>");
    clear(&command, 1);
    free(line);
}

Test(opbuild_command, programs_are_found_in_path)
{
    char path[600];
    char *found;

    write_script("bin/tool", "#!/bin/sh\n");
    test_write("bin/data", "x");
    test_path("bin/directory/x");
    snprintf(path, sizeof(path), ":.:relative:/nowhere:%s/bin", test_dir());
    setenv("PATH", path, 1);
    MUST(ds_accel__program_find("tool", &found));
    cr_expect_str_eq(found, test_path("bin/tool"));
    free(found);
    MUST(ds_accel__program_find("data", &found));
    cr_expect_null(found);
    MUST(ds_accel__program_find("directory", &found));
    cr_expect_null(found);
    MUST(ds_accel__program_find("", &found));
    cr_expect_null(found);
    cr_assert_eq(chdir(test_dir()), 0);
    MUST(ds_accel__program_find("bin/tool", &found));
    cr_assert_not_null(found);
    cr_expect_eq(found[0], '/');
    free(found);
}
