/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Why a rank ended: real processes, signals, core dumps and out-of-memory kills where the machine
 * permits them, and trees of files for what this machine does not have. The tested functions are
 * internal, so this program is linked with the core's own objects.
 *
 *     death
 *     death --cost RANKS
 */
#include "death.h"

#include "base/clock.h"
#include "base/text.h"
#include "launch/death.h"
#include "machine/machine.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned passed;
static unsigned failed;
char work[256];

void check(bool right, const char *format, ...)
{
    va_list arguments;

    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: ");
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    }
}

void fill(char *text, size_t text_size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, text_size, format, arguments);
    va_end(arguments);
}

void skipped(const char *what, const char *why)
{
    printf("skipped: %s: %s\n", what, why);
}

/* ---- files ---------------------------------------------------------------------------------- */

void put(const char *directory, const char *path, const char *text)
{
    char full[4096];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", directory, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char *root = kernel_root;

        *slash = '\0';
        kernel_root = NULL; /* an ordinary directory */
        mkdir(full, 0755);
        kernel_root = root;
        *slash = '/';
    }
    file = fopen(full, "w");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
    check(file != NULL, "%s: %s", full, strerror(errno));
}

const char *get(const char *directory, const char *path)
{
    static char text[4096];
    char full[4096];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", directory, path);
    file = fopen(full, "r");
    text[0] = '\0';
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

bool exists(const char *directory, const char *path)
{
    char full[4096];

    snprintf(full, sizeof(full), "%s/%s", directory, path);
    return access(full, F_OK) == 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void remove_all(const char *directory)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- deaths --------------------------------------------------------------------------------- */

static const struct ds_accel__oom no_oom;

static void check_text(const struct ds_accel__death *death, const char *expected, int exit_code)
{
    struct ds_accel__text text = {0};
    char *sentence;

    ds_accel__death_text(death, &text);
    sentence = ds_accel__text_take(&text);
    check(sentence != NULL && strcmp(sentence, expected) == 0, "\"%s\" instead of \"%s\"", sentence,
          expected);
    check(ds_accel__death_exit_code(death) == exit_code, "%s: exit code %d instead of %d", expected,
          ds_accel__death_exit_code(death), exit_code);
    free(sentence);
}

/* The death of a real process: it exits with the code, or by the signal if that is not 0. */
static void die(int code, int signal, const struct ds_accel__oom *oom,
                struct ds_accel__death *death)
{
    struct ds_accel__ended ended = {.program = "/bin/true", .directory = work};
    siginfo_t info = {0};

    ended.pid = fork();
    if (ended.pid == 0) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        if (signal != 0) {
            sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
            kill(getpid(), signal);
            pause();
        }
        _exit(code);
    }
    check(waitid(P_PID, (id_t)ended.pid, &info, WEXITED) == 0, "waitid: %s", strerror(errno));
    ds_accel__death_ended(&ds_accel__machine_here, &info, &ended, oom, death);
}

static void test_exits(void)
{
    static const int codes[] = {0, 1, 3, 127, 255};
    struct ds_accel__death death;
    char expected[64];

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        die(codes[i], 0, &no_oom, &death);
        snprintf(expected, sizeof(expected), "exited with code %d", codes[i]);
        check_text(&death, expected, codes[i]);
        check(ds_accel__death_is_failure(&death) == (codes[i] != 0), "failure: %s", expected);
        check(death.kind == DS_ACCEL__DEATH_EXITED && death.core.kind == DS_ACCEL__CORE_NONE,
              "kind: %s", expected);
    }
}

static void test_signals(void)
{
    static const struct {
        int signal;
        const char *text;
    } cases[] = {
        {SIGHUP, "was killed by SIGHUP (signal 1)"},
        {SIGINT, "was killed by SIGINT (signal 2)"},
        {SIGKILL, "was killed by SIGKILL (signal 9)"},
        {SIGUSR1, "was killed by SIGUSR1 (signal 10)"},
        {SIGPIPE, "was killed by SIGPIPE (signal 13)"},
        {SIGALRM, "was killed by SIGALRM (signal 14)"},
        {SIGTERM, "was killed by SIGTERM (signal 15)"},
        {34, "was killed by SIGRTMIN+0 (signal 34)"},
        {64, "was killed by SIGRTMIN+30 (signal 64)"},
    };
    struct ds_accel__death death;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        die(0, cases[i].signal, &no_oom, &death);
        check_text(&death, cases[i].text, 128 + cases[i].signal);
        check(ds_accel__death_is_failure(&death) && !death.dumped_core &&
                  death.kind == DS_ACCEL__DEATH_SIGNALED,
              "kind: %s", cases[i].text);
    }
}

static void test_oom_texts(void)
{
    struct ds_accel__oom oom = {.verdict = DS_ACCEL__OOM_LIKELY,
                                .kills = 2,
                                .counter_file = "/g/memory.oom_control",
                                .limit_bytes = 1073741824,
                                .limit_was_reached = true,
                                .limit_file = "/g/memory.limit_in_bytes"};
    struct ds_accel__death death;

    die(0, SIGKILL, &oom, &death);
    check_text(&death,
               "was killed by SIGKILL (signal 9); likely out of memory: the memory limit of "
               "1073741824 bytes (/g/memory.limit_in_bytes) was reached and the kernel killed 2 "
               "processes of the launcher's control group since the start (/g/memory.oom_control)",
               137);
    check(death.kind == DS_ACCEL__DEATH_SIGNALED, "a likely cause is not proved");
    die(1, 0, &oom, &death);
    check(death.kind == DS_ACCEL__DEATH_EXITED, "a rank that exits was not killed");
    oom = (struct ds_accel__oom){.verdict = DS_ACCEL__OOM_LIKELY,
                                 .kills = 1,
                                 .is_machine_wide = true,
                                 .counter_file = "/proc/vmstat"};
    die(7, 0, &oom, &death);
    check_text(&death,
               "exited with code 7; memory was exhausted: the kernel killed 1 process of this "
               "machine since the start (/proc/vmstat)",
               7);
    die(0, 0, &oom, &death);
    check_text(&death, "exited with code 0", 0);
    oom.verdict = DS_ACCEL__OOM_PROVED;
    oom.is_machine_wide = false;
    die(0, SIGKILL, &oom, &death);
    check_text(&death,
               "was killed by the kernel out of memory (SIGKILL): the kernel killed 1 process of "
               "the rank's control group since the start (/proc/vmstat)",
               137);
    check(death.kind == DS_ACCEL__DEATH_OOM_KILLED, "a proved cause");
    die(0, SIGTERM, &oom, &death);
    check(death.kind == DS_ACCEL__DEATH_SIGNALED, "the kernel kills with SIGKILL only");
    check_text(&death,
               "was killed by SIGTERM (signal 15); memory was exhausted: the kernel killed 1 "
               "process of the rank's control group since the start (/proc/vmstat)",
               143);
}

static void test_not_started(void)
{
    char *const arguments[] = {(char *)"x", NULL};
    sigset_t none;
    struct ds_accel__spawn spawn = {.path = "/nonexistent/x",
                                    .arguments = arguments,
                                    .environment = arguments + 1,
                                    .descriptors = {-1, -1, -1},
                                    .cgroups = {-1, -1},
                                    .signals = &none};
    struct ds_accel__spawned spawned;
    struct ds_accel__death death;

    sigemptyset(&none);
    ds_accel__spawn(&spawn, &spawned);
    waitpid(spawned.pid, NULL, 0);
    ds_accel__death_not_started(&spawned, spawn.path, spawn.path, &death);
    check_text(&death, "could not be started: /nonexistent/x: No such file or directory", 127);
    spawn.path = "/etc";
    ds_accel__spawn(&spawn, &spawned);
    waitpid(spawned.pid, NULL, 0);
    ds_accel__death_not_started(&spawned, spawn.path, spawn.path, &death);
    check_text(&death, "could not be started: /etc: Permission denied", 126);
    spawned = (struct ds_accel__spawned){.step = DS_ACCEL__SPAWN_FORK, .error = EAGAIN};
    ds_accel__death_not_started(&spawned, "a\nb", "a\nb", &death);
    check_text(&death,
               "could not be started: a b: no new process: Resource temporarily unavailable", 126);
    ds_accel__death_stalled(90500000000, &death);
    check_text(&death, "made no progress for 90.5 s and was ended", 124);
    check(ds_accel__death_is_failure(&death), "a stall is a failure");
}

int main(int argc, char **argv)
{
    const char *temporary = getenv("TMPDIR");

    if (argc == 2 && strcmp(argv[1], "eat") == 0) {
        return eat_memory();
    }
    if (argc == 3 && strcmp(argv[1], "--cost") == 0) {
        print_cost((uint32_t)atoi(argv[2]));
        return 0;
    }
    snprintf(work, sizeof(work), "%s/ds-accel-death-XXXXXX",
             temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(work) == NULL) {
        perror(work);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_exits();
    test_signals();
    test_oom_texts();
    test_not_started();
    test_cores();
    test_groups();
    test_shared_memory();
    remove_all(work);
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
