/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Where the kernel put a core dump. /proc/sys/kernel/core_pattern is the name of a file, a command
 * after "|" that reads the dump from a pipe, or a socket after "@". The kernel replaces the
 * specifiers in a file's name, and interprets a relative name in the working directory of the
 * process.
 *
 * Some specifiers stand for values that only the kernel knew, such as the time of the dump. They
 * become wildcards, and the newest file that matches is the dump, unless it is older than the
 * process. A process can also rename its threads, and an interpreter is another program than the
 * executed script; so if nothing matches, the names become wildcards, too.
 */
#include "launch/core_dump.h"
#include "base/text.h"
#include "machine/machine.h"

#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The smallest limit with which the kernel writes a dump, of <linux/binfmts.h> for ELF. */
#define SMALLEST_DUMP_BYTES 4096u
/* TASK_COMM_LEN of the kernel, without NUL. */
#define COMM_LENGTH 15
/* A file's time is that of the last timer tick, and another machine may have written it. */
#define CLOCK_ERROR_US 2000000u
/* The link /proc/self/ns/pid of processes outside containers, PROC_PID_INIT_INO of the kernel. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

struct find {
    const struct ds_accel__machine *machine;
    const struct ds_accel__ended *ended;
    int signal;
    char pattern[256];
    bool uses_pid;
};

static bool dumps_core(int signal)
{
    static const int signals[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                  SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};

    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        if (signals[i] == signal) {
            return true;
        }
    }
    return false;
}

/* True if the kernel passes dumps to a command or a socket. */
static bool has_handler(const struct find *find)
{
    return find->pattern[0] == '|' || find->pattern[0] == '@';
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Add text for glob(), in which nothing is special. */
static void add_literal(struct ds_accel__text *name, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr("*?[\\", text[i]) != NULL) {
            ds_accel__text_add_bytes(name, "\\", 1);
        }
        ds_accel__text_add_bytes(name, &text[i], 1);
    }
}

/* Add a value, in which the kernel replaces slashes. */
static void add_value(struct ds_accel__text *name, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        add_literal(name, text[i] == '/' ? "!" : &text[i], 1);
    }
}

/* The executed file for %e, its first characters; for %f, its name; for %E, its path. */
static void add_program(struct ds_accel__text *name, const char *program, char specifier)
{
    const char *slash = strrchr(program, '/');
    const char *base = slash != NULL ? slash + 1 : program;
    char full[PATH_MAX];

    if (specifier == 'e') {
        add_value(name, base, strnlen(base, COMM_LENGTH));
    } else if (realpath(program, full) != NULL) {
        slash = strrchr(full, '/');
        base = specifier == 'E' ? full : slash + 1;
        add_value(name, base, strlen(base));
    } else {
        ds_accel__text_add_bytes(name, "*", 1);
    }
}

static void add_specifier(const struct find *find, char specifier, bool is_wide,
                          struct ds_accel__text *name)
{
    char host[HOST_NAME_MAX + 1] = "";

    switch (specifier) {
    case '%':
        ds_accel__text_add_bytes(name, "%", 1);
        break;
    case 'p':
        ds_accel__text_add(name, "%d", (int)find->ended->pid);
        break;
    case 's':
        ds_accel__text_add(name, "%d", find->signal);
        break;
    case 'u':
    case 'g':
        ds_accel__text_add(name, "%u", specifier == 'u' ? getuid() : getgid());
        break;
    case 'c':
        ds_accel__text_add(name, "%llu", (unsigned long long)find->ended->core_limit_bytes);
        break;
    case 'h':
        gethostname(host, sizeof(host) - 1);
        add_value(name, host, strlen(host));
        break;
    case 'e':
    case 'f':
    case 'E':
        if (!is_wide && find->ended->program != NULL) {
            add_program(name, find->ended->program, specifier);
            break;
        }
        /* fall through */
    case 'P': /* of the first PID namespace */
    case 'i': /* of the thread */
    case 'I':
    case 't': /* time */
    case 'd': /* dumpable */
    case 'C': /* CPU */
    case 'F': /* pidfd */
        ds_accel__text_add_bytes(name, "*", 1);
        break;
    default: /* the kernel drops other specifiers */
        break;
    }
}

/* The path of the dump for glob(). If is_wide is true, names of programs are wildcards. */
static char *expand(const struct find *find, bool is_wide)
{
    struct ds_accel__text name = {0};
    const char *directory = find->ended->directory;
    bool has_pid = false;

    if (find->pattern[0] != '/' && directory != NULL) {
        add_literal(&name, directory, strlen(directory));
        ds_accel__text_add_bytes(&name, "/", 1);
    }
    for (const char *at = find->pattern; *at != '\0'; at++) {
        if (*at != '%') {
            add_literal(&name, at, 1);
        } else if (at[1] != '\0') {
            at++;
            has_pid = has_pid || *at == 'p';
            add_specifier(find, *at, is_wide, &name);
        }
    }
    if (!has_pid && find->uses_pid) {
        ds_accel__text_add(&name, ".%d", (int)find->ended->pid);
    }
    return ds_accel__text_take(&name);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Find the newest file that matches and is not older than the process. */
static bool find_newest(const char *pattern, uint64_t started_us, char *path, size_t path_size)
{
    uint64_t newest_us = started_us > CLOCK_ERROR_US ? started_us - CLOCK_ERROR_US : 0;
    bool found = false;
    glob_t matches;

    if (glob(pattern, GLOB_NOSORT, NULL, &matches) != 0) {
        return false;
    }
    for (size_t i = 0; i < matches.gl_pathc; i++) {
        struct stat info;
        uint64_t changed_us;

        if (stat(matches.gl_pathv[i], &info) != 0 || !S_ISREG(info.st_mode)) {
            continue;
        }
        changed_us = (uint64_t)info.st_mtim.tv_sec * 1000000u +
                     (uint64_t)info.st_mtim.tv_nsec / 1000u;
        if (changed_us >= newest_us) {
            newest_us = changed_us;
            found = true;
            ds_accel__copy(path, path_size, matches.gl_pathv[i]);
        }
    }
    globfree(&matches);
    return found;
}

/* Remove the backslashes that glob() needs. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        from += *from == '\\' && from[1] != '\0';
        *to++ = *from;
    }
    *to = '\0';
}

static void find_file(const struct find *find, struct ds_accel__core_dump *core)
{
    char *name = expand(find, false);
    char *wide = expand(find, true);

    core->kind = DS_ACCEL__CORE_FILE;
    if (name == NULL || wide == NULL) {
        core->kind = DS_ACCEL__CORE_LOST;
        ds_accel__copy(core->text, sizeof(core->text), find->pattern);
    } else if (!find_newest(name, find->ended->started_us, core->text, sizeof(core->text)) &&
               !find_newest(wide, find->ended->started_us, core->text, sizeof(core->text))) {
        core->kind = DS_ACCEL__CORE_LOST;
        unescape(name);
        ds_accel__copy(core->text, sizeof(core->text), name);
    }
    free(name);
    free(wide);
}

/* ---- handlers ------------------------------------------------------------------------------- */

static void name_coredumpctl(const struct find *find, struct ds_accel__core_dump *core)
{
    char link[64];

    /* In a container, the PID on the host is not known. */
    if (ds_accel__machine_link(find->machine, "/proc/self/ns/pid", link, sizeof(link)) &&
        strcmp(link, FIRST_PID_NAMESPACE) != 0) {
        snprintf(core->text, sizeof(core->text),
                 "coredumpctl list (on the host of this container)");
    } else {
        snprintf(core->text, sizeof(core->text), "coredumpctl info %d", (int)find->ended->pid);
    }
}

/* Apport names its files after the program's path, which is a script's for a known interpreter. */
static void name_apport(const struct find *find, struct ds_accel__core_dump *core)
{
    char pattern[PATH_MAX];
    char path[512];

    snprintf(pattern, sizeof(pattern), "%s/var/crash/*.%u.crash", find->machine->root, getuid());
    if (find_newest(pattern, find->ended->started_us, path, sizeof(path))) {
        snprintf(core->text, sizeof(core->text), "apport-cli %s", path);
    } else {
        snprintf(core->text, sizeof(core->text), "apport-cli (its reports are in /var/crash)");
    }
}

static void find_handler(const struct find *find, struct ds_accel__core_dump *core)
{
    const char *handler = find->pattern + 1;
    size_t length;

    handler += strspn(handler, find->pattern[0] == '@' ? "@" : " ");
    length = strcspn(handler, " ");
    core->kind = DS_ACCEL__CORE_COMMAND;
    snprintf(core->text, sizeof(core->text), "%.*s", (int)length, handler);
    if (strstr(core->text, "/systemd-coredump") != NULL) {
        name_coredumpctl(find, core);
    } else if (strstr(core->text, "/apport") != NULL) {
        name_apport(find, core);
    } else if (strstr(core->text, "/abrt") != NULL) {
        snprintf(core->text, sizeof(core->text), "abrt-cli list");
    } else {
        core->kind = DS_ACCEL__CORE_HANDLER;
    }
}

/* ---- reasons -------------------------------------------------------------------------------- */

/* Why the kernel wrote no dump, although the signal dumps core. */
static void find_reason(const struct find *find, struct ds_accel__core_dump *core)
{
    uint64_t limit_bytes = find->ended->core_limit_bytes;
    char *name;

    core->kind = DS_ACCEL__CORE_ABSENT;
    if (find->pattern[0] == '\0' && !find->uses_pid) {
        snprintf(core->text, sizeof(core->text), "/proc/sys/kernel/core_pattern is empty");
    } else if (has_handler(find)) {
        snprintf(core->text, sizeof(core->text), "the kernel could not pass it to \"%s\"",
                 find->pattern);
    } else if (limit_bytes < SMALLEST_DUMP_BYTES) {
        snprintf(core->text, sizeof(core->text),
                 "RLIMIT_CORE is %llu; ulimit -c unlimited enables dumps",
                 (unsigned long long)limit_bytes);
    } else {
        name = expand(find, false);
        unescape(name != NULL ? name : (char[]){""});
        snprintf(core->text, sizeof(core->text), "the kernel could not write %s",
                 name != NULL ? name : find->pattern);
        free(name);
    }
}

void ds_accel__core_dump_find(const struct ds_accel__machine *machine,
                              const struct ds_accel__ended *ended, int signal, bool dumped,
                              struct ds_accel__core_dump *core)
{
    struct find find = {.machine = machine, .ended = ended, .signal = signal};
    char uses_pid[16] = "";

    *core = (struct ds_accel__core_dump){.kind = DS_ACCEL__CORE_NONE};
    if (!dumped && !dumps_core(signal)) {
        return;
    }
    if (ds_accel__machine_line(machine, "/proc/sys/kernel/core_pattern", find.pattern,
                               sizeof(find.pattern)) < 0 ||
        ds_accel__machine_line(machine, "/proc/sys/kernel/core_uses_pid", uses_pid,
                               sizeof(uses_pid)) < 0) {
        core->kind = dumped ? DS_ACCEL__CORE_LOST : DS_ACCEL__CORE_ABSENT;
        snprintf(core->text, sizeof(core->text), "out of memory while looking for it");
        return;
    }
    find.uses_pid = uses_pid[0] != '\0' && strcmp(uses_pid, "0") != 0;
    if (!dumped) {
        find_reason(&find, core);
    } else if (has_handler(&find)) {
        find_handler(&find, core);
    } else {
        find_file(&find, core);
    }
    ds_accel__sanitize(core->text, sizeof(core->text));
}
