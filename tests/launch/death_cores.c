/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Core dumps: a real one, and all patterns of names and handlers below a root with other contents
 * of /proc.
 */
#include "death.h"

#include "base/clock.h"
#include "base/text.h"
#include "launch/core_dump.h"
#include "machine/machine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID 4242

static char root[280];
static char directory[280];
static const struct ds_accel__machine machine = {.root = root};
static struct ds_accel__ended ended = {
    .pid = PID, .program = "/bin/sh", .directory = directory, .core_limit_bytes = RLIM_INFINITY};

static void find(const char *pattern, const char *uses_pid, bool dumped,
                 struct ds_accel__core_dump *core)
{
    put(root, "proc/sys/kernel/core_pattern", pattern);
    put(root, "proc/sys/kernel/core_uses_pid", uses_pid);
    ds_accel__core_dump_find(&machine, &ended, SIGSEGV, dumped, core);
}

static void check_core(const char *name, const struct ds_accel__core_dump *core,
                       enum ds_accel__core_kind kind, const char *text)
{
    check(core->kind == kind && strcmp(core->text, text) == 0,
          "%s: kind %d, \"%s\" instead of kind %d, \"%s\"", name, core->kind, core->text, kind,
          text);
}

/* ---- names of files ------------------------------------------------------------------------- */

/* {HOST}, {UID} and {GID} stand for those of this process. */
static const struct {
    const char *pattern, *uses_pid, *file;
} names[] = {
    {"core\n", "0\n", "core"},
    {"core\n", "1\n", "core.4242"},
    {"\n", "1\n", ".4242"},
    {"core.%p\n", "0\n", "core.4242"},
    {"core.%p\n", "1\n", "core.4242"},
    {"core.%e.%p.%s\n", "0\n", "core.sh.4242.11"},
    {"core-%u-%g-%h\n", "0\n", "core-{UID}-{GID}-{HOST}"},
    {"core-%u-%g-%h\n", "1\n", "core-{UID}-{GID}-{HOST}.4242"},
    {"c%c\n", "0\n", "c18446744073709551615"},
    {"100%%.%p\n", "0\n", "100%.4242"},
    {"a%zb%\n", "0\n", "ab"},
    {"core.%t\n", "0\n", "core.1790000000"},
    {"core.%P.%i.%I.%d\n", "0\n", "core.99.4243.100.1"},
    {"core.%P\n", "1\n", "core.99.4242"},
    {"core.%C.%F\n", "0\n", "core.3.7"},
    {"[x]*?\n", "0\n", "[x]*?"},
    {"core.%e\n", "0\n", "core.pt_main_thread"},              /* a renamed thread */
    {"core.%f.%E\n", "0\n", "core.python3.!usr!bin!python3"}, /* of a script's interpreter */
};

static void fill_in(const char *text, char *filled, size_t filled_size)
{
    char host[256] = "";
    size_t used = 0;

    gethostname(host, sizeof(host) - 1);
    filled[0] = '\0';
    while (*text != '\0' && used + 1 < filled_size) {
        if (strncmp(text, "{HOST}", 6) == 0) {
            used += (size_t)snprintf(filled + used, filled_size - used, "%s", host);
            text += 6;
        } else if (strncmp(text, "{UID}", 5) == 0 || strncmp(text, "{GID}", 5) == 0) {
            used += (size_t)snprintf(filled + used, filled_size - used, "%u",
                                     text[1] == 'U' ? getuid() : getgid());
            text += 5;
        } else {
            filled[used++] = *text++;
            filled[used] = '\0';
        }
    }
}

static void test_names(void)
{
    struct ds_accel__core_dump core;
    char file[1024];
    char path[1024];
    char pattern[1024];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        fill_in(names[i].file, file, sizeof(file));
        put(directory, "other", "");
        put(directory, file, "");
        fill(path, sizeof(path), "%s/%s", directory, file);
        find(names[i].pattern, names[i].uses_pid, true, &core);
        check_core(names[i].pattern, &core, DS_ACCEL__CORE_FILE, path);
        remove_all(directory);
        fill(pattern, sizeof(pattern), "%s/deeper/%s", directory, names[i].pattern);
        fill(path, sizeof(path), "deeper/%s", file);
        put(directory, path, "");
        fill(path, sizeof(path), "%s/deeper/%s", directory, file);
        find(pattern, names[i].uses_pid, true, &core);
        check_core(pattern, &core, DS_ACCEL__CORE_FILE, path);
        remove_all(directory);
    }
}

static void test_program_names(void)
{
    struct ds_accel__core_dump core;
    char expected[1024];
    char program[1024];

    put(directory, "sub/a-program-with-a-long-name", "");
    fill(program, sizeof(program), "%s/sub/../sub/a-program-with-a-long-name", directory);
    ended.program = program;
    find("x.%e.%f.%E\n", "0", true, &core);
    fill(expected, sizeof(expected),
         "%s/x.a-program-with-.a-program-with-a-long-name.%s/sub/a-program-with-a-long-name",
         directory, directory);
    for (char *at = expected + strlen(directory) + 1; *at != '\0'; at++) {
        *at = *at == '/' ? '!' : *at;
    }
    check_core("names of the program", &core, DS_ACCEL__CORE_LOST, expected);
    ended.program = NULL;
    find("x.%e.%t.%p\n", "0", true, &core);
    fill(expected, sizeof(expected), "%s/x.*.*.4242", directory);
    check_core("without a program", &core, DS_ACCEL__CORE_LOST, expected);
    find("y.%P\n", "1", true, &core);
    fill(expected, sizeof(expected), "%s/y.*.4242", directory);
    check_core("a global PID is not the PID", &core, DS_ACCEL__CORE_LOST, expected);
    ended.program = "/bin/sh";
    remove_all(directory);
}

static void set_time(const char *file, uint64_t time_us)
{
    char path[1024];
    struct timespec times[2];

    times[0] = (struct timespec){.tv_sec = (time_t)(time_us / 1000000u)};
    times[1] = times[0];
    fill(path, sizeof(path), "%s/%s", directory, file);
    check(utimensat(AT_FDCWD, path, times, 0) == 0, "%s: %s", path, strerror(errno));
}

/* The newest file is the dump; one that is older than the process is not. */
static void test_times(void)
{
    struct ds_accel__core_dump core;
    uint64_t now_us = ds_accel__wall_us();
    char expected[1024];

    put(directory, "core.1", "");
    put(directory, "core.2", "");
    put(directory, "core.3", "");
    put(directory, "core.4/is-a-directory", "");
    set_time("core.1", now_us + 10000000);
    set_time("core.2", now_us + 20000000);
    set_time("core.3", now_us + 5000000);
    ended.started_us = now_us;
    find("core.%t", "0", true, &core);
    fill(expected, sizeof(expected), "%s/core.2", directory);
    check_core("the newest file", &core, DS_ACCEL__CORE_FILE, expected);
    ended.started_us = now_us + 40000000;
    find("core.%t", "0", true, &core);
    fill(expected, sizeof(expected), "%s/core.*", directory);
    check_core("only older files", &core, DS_ACCEL__CORE_LOST, expected);
    ended.started_us = 0;
    remove_all(directory);
}

/* ---- handlers and reasons ------------------------------------------------------------------- */

static void test_handlers(void)
{
    static const struct {
        const char *pattern;
        enum ds_accel__core_kind kind;
        const char *text;
    } cases[] = {
        {"|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h\n", DS_ACCEL__CORE_COMMAND,
         "coredumpctl info 4242"},
        {"|/usr/share/apport/apport -p%p -s%s -c%c -d%d -P%P -u%u -g%g -- %E\n",
         DS_ACCEL__CORE_COMMAND, "apport-cli (its reports are in /var/crash)"},
        {"|/usr/libexec/abrt-hook-ccpp %s %c %p %u %g %t P %I %h\n", DS_ACCEL__CORE_COMMAND,
         "abrt-cli list"},
        {"| /opt/collect --pid %p\n", DS_ACCEL__CORE_HANDLER, "/opt/collect"},
        {"@/run/dumps.socket\n", DS_ACCEL__CORE_HANDLER, "/run/dumps.socket"},
        {"@@/run/dumps.socket\n", DS_ACCEL__CORE_HANDLER, "/run/dumps.socket"},
        {"|\n", DS_ACCEL__CORE_HANDLER, ""},
    };
    struct ds_accel__core_dump core;
    char link[1024];
    char expected[1024];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        find(cases[i].pattern, "1", true, &core);
        check_core(cases[i].pattern, &core, cases[i].kind, cases[i].text);
        find(cases[i].pattern, "1", false, &core);
        check(core.kind == DS_ACCEL__CORE_ABSENT && strstr(core.text, "could not pass it") != NULL,
              "%s: not dumped: %s", cases[i].pattern, core.text);
    }
    fill(link, sizeof(link), "var/crash/_usr_bin_x.%u.crash", getuid());
    put(root, link, "");
    find(cases[1].pattern, "0", true, &core);
    fill(expected, sizeof(expected), "apport-cli %s/%s", root, link);
    check_core("a report of apport", &core, DS_ACCEL__CORE_COMMAND, expected);
    put(root, "proc/self/ns/other", "");
    fill(link, sizeof(link), "%s/proc/self/ns/pid", root);
    check(symlink("pid:[4026532000]", link) == 0, "%s: %s", link, strerror(errno));
    find(cases[0].pattern, "0", true, &core);
    check_core("in a container", &core, DS_ACCEL__CORE_COMMAND,
               "coredumpctl list (on the host of this container)");
    unlink(link);
    check(symlink("pid:[4026531836]", link) == 0, "%s: %s", link, strerror(errno));
    find(cases[0].pattern, "0", true, &core);
    check_core("on a host", &core, DS_ACCEL__CORE_COMMAND, cases[0].text);
}

static void test_reasons(void)
{
    struct ds_accel__core_dump core;
    char expected[1024];

    ended.core_limit_bytes = 0;
    find("core\n", "0", false, &core);
    check_core("no limit", &core, DS_ACCEL__CORE_ABSENT,
               "RLIMIT_CORE is 0; ulimit -c unlimited enables dumps");
    ended.core_limit_bytes = 4095;
    find("core\n", "0", false, &core);
    check_core("a small limit", &core, DS_ACCEL__CORE_ABSENT,
               "RLIMIT_CORE is 4095; ulimit -c unlimited enables dumps");
    ended.core_limit_bytes = RLIM_INFINITY;
    find("\n", "0", false, &core);
    check_core("no pattern", &core, DS_ACCEL__CORE_ABSENT,
               "/proc/sys/kernel/core_pattern is empty");
    find("c[1].%p\n", "0", false, &core);
    fill(expected, sizeof(expected), "the kernel could not write %s/c[1].4242", directory);
    check_core("not writable", &core, DS_ACCEL__CORE_ABSENT, expected);
    ds_accel__core_dump_find(&machine, &ended, SIGTERM, false, &core);
    check_core("SIGTERM dumps no core", &core, DS_ACCEL__CORE_NONE, "");
    remove_all(root);
    ds_accel__core_dump_find(&machine, &ended, SIGABRT, true, &core);
    fill(expected, sizeof(expected), "%s/", directory);
    check_core("no /proc", &core, DS_ACCEL__CORE_LOST, expected);
}

static int32_t find_without_memory(void)
{
    struct ds_accel__core_dump core;

    ds_accel__core_dump_find(&machine, &ended, SIGABRT, true, &core);
    /* There is no status: without memory, the file is not found. */
    return core.kind == DS_ACCEL__CORE_FILE ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* ---- a real dump ---------------------------------------------------------------------------- */

static bool is_core(const char *path)
{
    Elf64_Ehdr header = {0};
    int fd = open(path, O_RDONLY);
    bool right = fd >= 0 && read(fd, &header, sizeof(header)) == sizeof(header) &&
                 memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_CORE;

    if (fd >= 0) {
        close(fd);
    }
    return right;
}

static pid_t crash(int signal, rlim_t limit_bytes, siginfo_t *info)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (chdir(directory) == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){limit_bytes, limit_bytes});
            sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
            raise(signal);
        }
        _exit(99);
    }
    check(waitid(P_PID, (id_t)pid, info, WEXITED) == 0, "waitid: %s", strerror(errno));
    return pid;
}

static void test_real(void)
{
    static const int signals[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                  SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
    struct ds_accel__ended real = {.directory = directory, .started_us = ds_accel__wall_us()};
    struct ds_accel__core_dump core;
    struct rlimit limit = {0};
    siginfo_t info = {0};

    put(directory, "other", "");
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        real.pid = crash(signals[i], 0, &info);
        real.core_limit_bytes = 0;
        ds_accel__core_dump_find(&ds_accel__machine_here, &real, info.si_status,
                                 info.si_code == CLD_DUMPED, &core);
        check(core.kind != DS_ACCEL__CORE_NONE && core.kind != DS_ACCEL__CORE_FILE,
              "signal %d without a limit: kind %d, %s", signals[i], core.kind, core.text);
    }
    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max < (64u << 20) && geteuid() != 0) {
        skipped("a real core dump", "the hard limit of RLIMIT_CORE is too low");
        return;
    }
    real.core_limit_bytes = 1u << 30;
    real.pid = crash(SIGABRT, 1u << 30, &info);
    ds_accel__core_dump_find(&ds_accel__machine_here, &real, info.si_status,
                             info.si_code == CLD_DUMPED, &core);
    if (core.kind == DS_ACCEL__CORE_COMMAND || core.kind == DS_ACCEL__CORE_HANDLER) {
        skipped("the file of a real core dump", core.text);
    } else if (info.si_code != CLD_DUMPED) {
        skipped("a real core dump", core.text);
    } else {
        check(core.kind == DS_ACCEL__CORE_FILE && is_core(core.text), "a real dump: kind %d, %s",
              core.kind, core.text);
    }
}

void test_cores(void)
{
    fill(root, sizeof(root), "%s/cores", work);
    fill(directory, sizeof(directory), "%s/dumps", work);
    test_names();
    test_program_names();
    test_times();
    put(root, "proc/sys/kernel/core_pattern", "core.%p.%t.%e\n");
    put(directory, "core.4242.1.sh", "");
    fail_allocations("core dump", find_without_memory);
    test_handlers();
    test_reasons();
    remove_all(directory);
    test_real();
}
