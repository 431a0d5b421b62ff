/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What of a process its plugins have to leave alone (DSA-P28): taken before a plugin's code runs,
 * compared after it, and put back where the plugin runs in the caller's own process.
 *
 * The environment has no lock: it is looked at only in the helper process, where nobody else
 * changes it. The umask is read from /proc, since umask() changes it for a moment.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static uint64_t hash_environment(void)
{
    uint64_t sum = 0;

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        sum += ds_accel__hash_text(*entry, 1);
    }
    return sum;
}

/* False where /proc does not say. */
static bool read_umask(mode_t *mask_out)
{
    char *status = NULL;
    const char *line;
    unsigned mask;
    bool found;

    if (ds_accel__machine_read(&ds_accel__machine_here, "/proc/thread-self/status", &status) < 0 ||
        status == NULL) {
        return false;
    }
    line = strstr(status, "\nUmask:");
    found = line != NULL && sscanf(line, "\nUmask: %o", &mask) == 1;
    if (found) {
        *mask_out = (mode_t)mask;
    }
    free(status);
    return found;
}

static void read_limits(struct rlimit *limits)
{
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        getrlimit((__rlimit_resource_t)resource, &limits[resource]);
    }
}

static void take(struct ds_accel__guard *guard, bool is_whole)
{
    guard->is_whole = is_whole;
    guard->has_umask = false;
    guard->directory_fd = -1;
    pthread_sigmask(SIG_SETMASK, NULL, &guard->mask);
    guard->has_affinity = sched_getaffinity(0, sizeof(guard->affinity), guard->affinity) == 0;
    if (!is_whole) {
        return;
    }
    for (int signal = 1; signal < NSIG; signal++) {
        sigaction(signal, NULL, &guard->actions[signal]);
    }
    if (getcwd(guard->directory, sizeof(guard->directory)) == NULL) {
        guard->directory[0] = '\0';
    }
    snprintf(guard->locale, sizeof(guard->locale), "%s", setlocale(LC_ALL, NULL));
    read_limits(guard->limits);
    if (!guard->is_alone) { /* what is not put back need not be held, and see compare_umask() */
        guard->directory_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        guard->has_umask = read_umask(&guard->umask);
    }
}

void ds_accel__guard_take(struct ds_accel__guard *guard, bool is_whole)
{
    guard->is_alone = false;
    take(guard, is_whole);
}

void ds_accel__guard_take_alone(struct ds_accel__guard *guard)
{
    guard->is_alone = true;
    take(guard, true);
    guard->umask = umask(0);
    umask(guard->umask);
    guard->environment = hash_environment();
}

/* What glibc adds to whatever it sets (SA_RESTORER of the kernel's asm/signal.h). */
#define RESTORER_FLAG 0x04000000

static bool has_handler(const struct sigaction *action, const struct sigaction *before)
{
    return action->sa_handler != before->sa_handler || action->sa_flags != before->sa_flags;
}

static void describe_mask(const sigset_t *before, const sigset_t *now, char *text, size_t size)
{
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigismember(before, signal) != sigismember(now, signal)) {
            const char *name = sigabbrev_np(signal);

            snprintf(text, size, "SIG%s is %s", name != NULL ? name : "?",
                     sigismember(now, signal) == 1 ? "blocked now" : "no longer blocked");
            return;
        }
    }
}

static bool compare_mask(const struct ds_accel__guard *guard, char *text, size_t size)
{
    sigset_t now;

    text[0] = '\0';
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    describe_mask(&guard->mask, &now, text, size);
    return text[0] != '\0';
}

static bool compare_handlers(const struct ds_accel__guard *guard, char *text, size_t size)
{
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction now;

        if (sigaction(signal, NULL, &now) == 0 && has_handler(&now, &guard->actions[signal])) {
            const char *name = sigabbrev_np(signal);

            snprintf(text, size, "SIG%s has %s", name != NULL ? name : "?",
                     now.sa_handler == SIG_DFL                             ? "its default action"
                     : now.sa_handler == SIG_IGN                           ? "no effect"
                     : now.sa_handler == guard->actions[signal].sa_handler ? "other flags"
                                                                           : "another handler");
            return true;
        }
    }
    return false;
}

static bool compare_affinity(const struct ds_accel__guard *guard, char *text, size_t size)
{
    cpu_set_t now[DS_ACCEL__ARRAY_SIZE(guard->affinity)];

    if (!guard->has_affinity || sched_getaffinity(0, sizeof(now), now) != 0 ||
        CPU_EQUAL_S(sizeof(now), now, guard->affinity)) {
        return false;
    }
    snprintf(text, size, "%d CPUs before, %d after", CPU_COUNT_S(sizeof(now), guard->affinity),
             CPU_COUNT_S(sizeof(now), now));
    return true;
}

static bool compare_directory(const struct ds_accel__guard *guard, char *text, size_t size)
{
    char now[sizeof(guard->directory)];

    if (getcwd(now, sizeof(now)) == NULL) {
        now[0] = '\0';
    }
    if (strcmp(now, guard->directory) == 0) {
        return false;
    }
    snprintf(text, size, "%.100s before, %.100s after", guard->directory, now);
    return true;
}

static bool compare_locale(const struct ds_accel__guard *guard, char *text, size_t size)
{
    const char *now = setlocale(LC_ALL, NULL);

    if (strncmp(now, guard->locale, sizeof(guard->locale) - 1) == 0) {
        return false;
    }
    snprintf(text, size, "%.100s before, %.100s after", guard->locale, now);
    return true;
}

static bool compare_umask(const struct ds_accel__guard *guard, char *text, size_t size)
{
    mode_t now;

    if (guard->is_alone) { /* nobody sees it changed for a moment, and /proc takes ten times as long
                            */
        now = umask(guard->umask);
        umask(now);
    } else if (!guard->has_umask || !read_umask(&now)) {
        return false;
    }
    if (now == guard->umask) {
        return false;
    }
    snprintf(text, size, "%03o before, %03o after", guard->umask, now);
    return true;
}

static const char *limit_name(int resource)
{
    static const char *const names[] = {
        [RLIMIT_CPU] = "CPU",           [RLIMIT_FSIZE] = "FSIZE",
        [RLIMIT_DATA] = "DATA",         [RLIMIT_STACK] = "STACK",
        [RLIMIT_CORE] = "CORE",         [RLIMIT_RSS] = "RSS",
        [RLIMIT_NPROC] = "NPROC",       [RLIMIT_NOFILE] = "NOFILE",
        [RLIMIT_MEMLOCK] = "MEMLOCK",   [RLIMIT_AS] = "AS",
        [RLIMIT_LOCKS] = "LOCKS",       [RLIMIT_SIGPENDING] = "SIGPENDING",
        [RLIMIT_MSGQUEUE] = "MSGQUEUE", [RLIMIT_NICE] = "NICE",
        [RLIMIT_RTPRIO] = "RTPRIO",     [RLIMIT_RTTIME] = "RTTIME",
    };

    return (size_t)resource < DS_ACCEL__ARRAY_SIZE(names) ? names[resource] : "?";
}

static bool compare_limits(const struct ds_accel__guard *guard, char *text, size_t size)
{
    struct rlimit now[RLIM_NLIMITS];

    read_limits(now);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        if (now[i].rlim_cur != guard->limits[i].rlim_cur ||
            now[i].rlim_max != guard->limits[i].rlim_max) {
            snprintf(text, size, "RLIMIT_%s: %lld before, %lld after", limit_name(i),
                     (long long)guard->limits[i].rlim_cur, (long long)now[i].rlim_cur);
            return true;
        }
    }
    return false;
}

static bool compare_environment(const struct ds_accel__guard *guard, char *text, size_t size)
{
    if (!guard->is_alone || hash_environment() == guard->environment) {
        return false;
    }
    snprintf(text, size, "variables were set, changed or removed");
    return true;
}

static const struct {
    const char *code;
    bool (*compare)(const struct ds_accel__guard *guard, char *text, size_t size);
} checks[] = {
    {"changes_signal_mask", compare_mask},  {"changes_signal_handler", compare_handlers},
    {"changes_affinity", compare_affinity}, {"changes_directory", compare_directory},
    {"changes_locale", compare_locale},     {"changes_umask", compare_umask},
    {"changes_limit", compare_limits},      {"changes_environment", compare_environment},
};

void ds_accel__guard_compare(const struct ds_accel__guard *guard, ds_accel__conduct_t report,
                             void *user_data)
{
    char text[256];

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(checks); i++) {
        if (checks[i].compare(guard, text, sizeof(text))) {
            report(user_data, checks[i].code, text);
        }
    }
}

static void restore_whole(const struct ds_accel__guard *guard)
{
    char text[256];

    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction now;

        if (sigaction(signal, NULL, &now) == 0 && has_handler(&now, &guard->actions[signal])) {
            sigaction(signal, &guard->actions[signal], NULL);
        }
    }
    if (compare_directory(guard, text, sizeof(text)) && fchdir(guard->directory_fd) != 0 &&
        chdir(guard->directory) != 0) {
        errno = 0; /* it is gone or closed: nothing better can be done */
    }
    if (guard->has_umask && compare_umask(guard, text, sizeof(text))) {
        umask(guard->umask);
    }
    if (compare_locale(guard, text, sizeof(text))) {
        setlocale(LC_ALL, guard->locale);
    }
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t)resource, &now) == 0 &&
            (now.rlim_cur != guard->limits[resource].rlim_cur ||
             now.rlim_max != guard->limits[resource].rlim_max)) {
            setrlimit((__rlimit_resource_t)resource, &guard->limits[resource]);
        }
    }
}

void ds_accel__guard_restore(struct ds_accel__guard *guard)
{
    int error = errno;
    char text[256];

    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    if (compare_affinity(guard, text, sizeof(text))) {
        sched_setaffinity(0, sizeof(guard->affinity), guard->affinity);
    }
    if (guard->is_whole) {
        restore_whole(guard);
    }
    if (guard->directory_fd >= 0) {
        close(guard->directory_fd);
        guard->directory_fd = -1;
    }
    errno = error;
}
