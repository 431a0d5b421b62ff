/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "state.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define INTERLEAVE 3 /* MPOL_INTERLEAVE of linux/mempolicy.h */
#define POLICY_NODES 1024
#define RESTORER 0x04000000 /* SA_RESTORER, which glibc sets in every signal action */

static void add_file(FILE *out, const char *path, const char *line_start)
{
    FILE *file = fopen(path, "re");
    char line[4096];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, line_start, strlen(line_start)) == 0) {
            fputs(line, out);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void add_links(FILE *out, const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char link[64];
        char target[512];
        ssize_t length;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir)) {
            continue;
        }
        snprintf(link, sizeof(link), "%s/%.20s", path, entry->d_name);
        length = readlink(link, target, sizeof(target));
        fprintf(out, "descriptor %s %.*s flags %x %x\n", entry->d_name,
                length > 0 ? (int)length : 0, target, (unsigned)fcntl(atoi(entry->d_name), F_GETFL),
                (unsigned)fcntl(atoi(entry->d_name), F_GETFD));
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* Adds each mapped file that contains code once: plugins and the libraries that they load. */
static void add_libraries(FILE *out)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    char last[4096] = "";

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        const char *name = strrchr(line, '/');

        if (name != NULL && strstr(name, ".so") != NULL && strcmp(name, last) != 0) {
            fprintf(out, "mapped %s", name + 1);
            strcpy(last, name);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

static void add_signals(FILE *out)
{
    sigset_t mask;
    sigset_t pending;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    sigpending(&pending);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;

        if (sigaction(number, NULL, &action) == 0) {
            fprintf(out, "signal %d handler %p flags %x blocked %d pending %d\n", number,
                    (void *)(uintptr_t)action.sa_handler, action.sa_flags & ~RESTORER,
                    sigismember(&mask, number), sigismember(&pending, number));
        }
    }
}

static void add_limits(FILE *out)
{
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;

        getrlimit((__rlimit_resource_t)resource, &limit);
        fprintf(out, "limit %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
                (unsigned long long)limit.rlim_max);
    }
}

static void add_timers(FILE *out)
{
    static const int timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
        struct itimerval value;

        getitimer((__itimer_which_t)timers[i], &value);
        fprintf(out, "timer %d every %ld is set %d\n", timers[i], (long)value.it_interval.tv_sec,
                value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0);
    }
}

static void add_placement(FILE *out)
{
    unsigned long nodes[POLICY_NODES / (8 * sizeof(unsigned long))] = {0};
    cpu_set_t cpus;
    int mode = -1;

    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof(cpus), &cpus);
    fprintf(out, "cpus %d first %d\n", CPU_COUNT(&cpus), CPU_ISSET(0, &cpus));
    syscall(SYS_get_mempolicy, &mode, nodes, POLICY_NODES, NULL, 0);
    fprintf(out, "memory policy %d nodes %lx\n", mode, nodes[0]);
    fprintf(out, "nice %d scheduler %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
}

static void add_process(FILE *out)
{
    char directory[4096];
    int subreaper = -1;
    int death_signal = -1;
    char name[32] = "";

    fprintf(out, "directory %s\n", getcwd(directory, sizeof(directory)));
    fprintf(out, "locale %s\n", setlocale(LC_ALL, NULL));
    fprintf(out, "group %d session %d\n", (int)getpgrp(), (int)getsid(0));
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    prctl(PR_GET_PDEATHSIG, &death_signal);
    prctl(PR_GET_NAME, name);
    fprintf(out, "subreaper %d death signal %d dumpable %d name %s\n", subreaper, death_signal,
            prctl(PR_GET_DUMPABLE), name);
#if defined(__x86_64__)
    /* The control word without its exception flags. */
    fprintf(out, "floating point %x\n", __builtin_ia32_stmxcsr() & ~0x3fu);
#endif
    for (char **entry = environ; *entry != NULL; entry++) {
        fprintf(out, "environment %s\n", *entry);
    }
}

static void add_children(FILE *out)
{
    siginfo_t info = {0};
    int result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);

    fprintf(out, "children %s\n", result != 0 ? "none" : info.si_pid != 0 ? "ended" : "alive");
}

char *state_take(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        abort();
    }
    add_file(out, "/proc/self/status", "Threads:");
    add_file(out, "/proc/self/status", "Umask:");
    add_file(out, "/proc/self/status", "Seccomp");
    add_file(out, "/proc/self/status", "NoNewPrivs");
    add_file(out, "/proc/self/cgroup", "");
    add_file(out, "/proc/self/oom_score_adj", "");
    add_file(out, "/proc/self/personality", "");
    add_links(out, "/proc/self/fd");
    add_libraries(out);
    add_signals(out);
    add_limits(out);
    add_timers(out);
    add_placement(out);
    add_process(out);
    add_children(out);
    if (fclose(out) != 0) {
        abort();
    }
    return text;
}

static void on_signal(int number)
{
    (void)number;
}

void state_make_special(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_interval.tv_sec = 5000, .it_value.tv_sec = 5000};
    struct rlimit limit;
    unsigned long first_node[2] = {1, 0};
    sigset_t mask;

    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGQUIT, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigaddset(&mask, SIGRTMIN + 3);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_cur > 512 ? 512 : limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &limit);
    setlocale(LC_ALL, "C.UTF-8");
    umask(027);
    setenv("DS_TEST_CALLER", "before", 1);
    syscall(SYS_set_mempolicy, INTERLEAVE, first_node, 65);
}

/* Returns the next line of text, and advances *at. The line is empty at the end of the text. */
static const char *take_line(const char **at, size_t *length)
{
    const char *line = *at;

    *length = strcspn(line, "\n");
    *at = line + *length + (line[*length] == '\n');
    return line;
}

static bool has_line(const char *text, const char *line, size_t length)
{
    while (*text != '\0') {
        size_t own;
        const char *other = take_line(&text, &own);

        if (own == length && memcmp(other, line, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool print_missing(const char *sign, const char *from, const char *in, const char *allowed)
{
    bool none = true;

    while (*from != '\0') {
        size_t length;
        const char *line = take_line(&from, &length);

        if (!has_line(in, line, length) &&
            !(length == strlen(allowed) && memcmp(line, allowed, length) == 0)) {
            printf("    %s %.*s\n", sign, (int)length, line);
            none = false;
        }
    }
    return none;
}

static int count_threads(const char *text)
{
    int count = 0;

    return sscanf(text, "Threads: %d", &count) == 1 ? count : 0;
}

char *state_take_after(const char *before)
{
    char *now = state_take();

    /* A thread that was joined may still be executing its last instructions. */
    for (int i = 0; i < 50 && count_threads(now) != count_threads(before); i++) {
        free(now);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        now = state_take();
    }
    return now;
}

bool state_is_as_before(const char *before, const char *plugin)
{
    char *now = state_take_after(before);
    char allowed[128];
    bool same;

    snprintf(allowed, sizeof(allowed), "mapped ds_accel_%s.so", plugin);
    same = print_missing("-", before, now, "");
    same = print_missing("+", now, before, allowed) && same;
    if (!has_line(now, allowed, strlen(allowed)) && plugin[0] != '\0') {
        printf("    %s is not there\n", allowed);
        same = false;
    }
    if (!has_line(now, "children none", strlen("children none"))) {
        printf("    a child is left\n");
        same = false;
    }
    free(now);
    return same;
}
