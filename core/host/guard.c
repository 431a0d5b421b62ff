/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The state of a process that plugins must not change (DSA-P28). It is read before a plugin's code
 * runs and compared afterwards, and restored if the plugin runs in the caller's own process.
 *
 * kinds[] has one row for each kind of change: its reason, the function that detects it, and the
 * function that restores the state. No lock protects the environment and the umask from the
 * caller's other threads. If there are any, the umask is read from /proc, since umask() changes it
 * for a moment; the environment is read without protection. probe_conduct.c handles the threads,
 * processes and descriptors that a plugin leaves.
 */
#include "host/guard.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/machine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define ENVIRONMENT_LIMIT 65536u /* maximum number of variables copied */

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t hash_environment(void)
{
    uint64_t sum = 0;

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        sum += ds_accel__hash_text(*entry, 1);
    }
    return sum;
}

/* Read the umask in a process with other threads. False if /proc does not report it. */
static bool read_umask_of_many(mode_t *mask_out)
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

static bool read_umask(mode_t *mask_out)
{
    if (!__libc_single_threaded) {
        return read_umask_of_many(mask_out);
    }
    *mask_out = umask(077);
    umask(*mask_out);
    return true;
}

static void read_limits(struct rlimit *limits)
{
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        getrlimit((__rlimit_resource_t)resource, &limits[resource]);
    }
}

static uint64_t read_mask(const sigset_t *set)
{
    uint64_t mask;

    memcpy(&mask, set, sizeof(mask));
    return mask;
}

static uint64_t read_signal_mask(void)
{
    sigset_t set;

    pthread_sigmask(SIG_SETMASK, NULL, &set);
    return read_mask(&set);
}

static bool read_action(int signal, struct ds_accel__guard_action *action)
{
    struct sigaction now;

    if (sigaction(signal, NULL, &now) != 0) {
        return false;
    }
    action->handler = (uintptr_t)now.sa_handler;
    action->flags = now.sa_flags;
    action->mask = read_mask(&now.sa_mask);
    return true;
}

static void read_place(const char *path, uint64_t *place)
{
    struct stat info;

    place[0] = place[1] = 0;
    if (stat(path, &info) == 0) {
        place[0] = info.st_dev;
        place[1] = info.st_ino;
    }
}

/*
 * Read the control bits: rounding, masked exceptions and the treatment of denormal numbers.
 * Excludes the flags that results of operations set.
 */
static uint64_t read_floating_point(void)
{
#if defined(__x86_64__)
    uint32_t vector;
    uint16_t x87;

    __asm__ volatile("stmxcsr %0" : "=m"(vector));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)(vector & ~0x3fu) << 16 | x87;
#elif defined(__aarch64__)
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static void write_floating_point(uint64_t control)
{
#if defined(__x86_64__)
    uint32_t vector = (uint32_t)(control >> 16);
    uint16_t x87 = (uint16_t)control;

    __asm__ volatile("ldmxcsr %0" : : "m"(vector));
    __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)control;
#endif
}

static void read_scheduling(int *policy, int *priority)
{
    struct sched_param param = {0};

    *policy = sched_getscheduler(0);
    *priority = sched_getparam(0, &param) == 0 ? param.sched_priority : 0;
}

/* ---- taking the state ----------------------------------------------------------------------- */

static char **copy_environment(void)
{
    size_t count = 0;
    char **copy;

    while (environ != NULL && count < ENVIRONMENT_LIMIT && environ[count] != NULL) {
        count++;
    }
    copy = calloc(count + 1, sizeof(char *));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(environ[i]);
        if (copy[i] == NULL) {
            for (size_t j = 0; j < i; j++) {
                free(copy[j]);
            }
            free(copy);
            return NULL;
        }
    }
    return copy;
}

static void take(struct ds_accel__guard *guard)
{
    memset(guard, 0, sizeof(*guard));
    guard->taken_ns = ds_accel__now_ns();
    guard->directory_fd = -1;
    guard->signal_mask = read_signal_mask();
    sigaltstack(NULL, &guard->signal_stack);
    guard->has_affinity = sched_getaffinity(0, sizeof(guard->affinity), guard->affinity) == 0;
    for (int signal = 1; signal < NSIG; signal++) {
        read_action(signal, &guard->actions[signal]);
    }
    read_place(".", guard->directory);
    read_place("/", guard->root);
    snprintf(guard->locale, sizeof(guard->locale), "%s", setlocale(LC_ALL, NULL));
    guard->thread_locale = uselocale((locale_t)0);
    read_limits(guard->limits);
    for (int i = 0; i < DS_ACCEL__GUARD_TIMERS; i++) {
        getitimer((__itimer_which_t)i, &guard->timers[i]);
    }
    guard->priority = getpriority(PRIO_PROCESS, 0);
    read_scheduling(&guard->policy, &guard->policy_priority);
    guard->process_group = getpgrp();
    guard->session = getsid(0);
    guard->floating_point = read_floating_point();
    guard->has_umask = read_umask(&guard->umask);
    guard->environment = hash_environment();
}

void ds_accel__guard_take(struct ds_accel__guard *guard)
{
    take(guard);
    guard->directory_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    guard->variables = copy_environment();
    ds_accel__guard_rights_take(&guard->rights, false);
}

void ds_accel__guard_take_alone(struct ds_accel__guard *guard)
{
    take(guard);
    guard->is_alone = true;
    ds_accel__guard_rights_take(&guard->rights, true);
}

void ds_accel__guard_follow(struct ds_accel__guard *guard, bool has_new_capabilities)
{
    guard->process_group = getpgrp();
    guard->session = getsid(0);
    ds_accel__guard_rights_follow(&guard->rights, has_new_capabilities);
}

/* ---- comparing ------------------------------------------------------------------------------ */

/*
 * A flag that glibc adds to every action (SA_RESTORER of the kernel's asm/signal.h), and that
 * comparisons ignore.
 */
#define RESTORER_FLAG 0x04000000

static bool is_same_action(const struct ds_accel__guard_action *now,
                           const struct ds_accel__guard_action *before)
{
    return now->handler == before->handler && now->mask == before->mask &&
           ((now->flags ^ before->flags) & ~RESTORER_FLAG) == 0;
}

static const char *signal_name(int signal)
{
    const char *name = sigabbrev_np(signal);

    return name != NULL ? name : "?";
}

static bool compare_mask(const struct ds_accel__guard *guard, char *text, size_t size)
{
    uint64_t changed = read_signal_mask() ^ guard->signal_mask;
    int signal = changed != 0 ? __builtin_ctzll(changed) + 1 : 0;

    if (changed == 0) {
        return false;
    }
    snprintf(text, size, "SIG%s is %s", signal_name(signal),
             (guard->signal_mask >> (signal - 1) & 1) == 0 ? "blocked now" : "no longer blocked");
    return true;
}

static const char *describe_action(const struct ds_accel__guard_action *now,
                                   const struct ds_accel__guard_action *before)
{
    return now->handler == (uintptr_t)SIG_DFL   ? "its default action"
           : now->handler == (uintptr_t)SIG_IGN ? "no effect"
           : now->handler == before->handler    ? "other flags"
                                                : "another handler";
}

static bool compare_handlers(const struct ds_accel__guard *guard, char *text, size_t size)
{
    struct ds_accel__guard_action now;

    for (int signal = 1; signal < NSIG; signal++) {
        if (read_action(signal, &now) && !is_same_action(&now, &guard->actions[signal])) {
            snprintf(text, size, "SIG%s has %s", signal_name(signal),
                     describe_action(&now, &guard->actions[signal]));
            return true;
        }
    }
    return false;
}

static bool compare_affinity(const struct ds_accel__guard *guard, char *text, size_t size)
{
    cpu_set_t now[ARRAY_SIZE(guard->affinity)];

    if (!guard->has_affinity || sched_getaffinity(0, sizeof(now), now) != 0 ||
        CPU_EQUAL_S(sizeof(now), now, guard->affinity)) {
        return false;
    }
    snprintf(text, size, "%d CPUs before, %d after", CPU_COUNT_S(sizeof(now), guard->affinity),
             CPU_COUNT_S(sizeof(now), now));
    return true;
}

static bool is_elsewhere(const char *path, const uint64_t *before)
{
    uint64_t now[2];

    read_place(path, now);
    return now[0] != before[0] || now[1] != before[1];
}

static bool compare_directory(const struct ds_accel__guard *guard, char *text, size_t size)
{
    char now[128];

    if (!is_elsewhere(".", guard->directory)) {
        return false;
    }
    snprintf(text, size, "%s after", getcwd(now, sizeof(now)) != NULL ? now : "elsewhere");
    return true;
}

static bool compare_root(const struct ds_accel__guard *guard, char *text, size_t size)
{
    if (!is_elsewhere("/", guard->root)) {
        return false;
    }
    snprintf(text, size, "/ is another directory");
    return true;
}

static bool compare_locale(const struct ds_accel__guard *guard, char *text, size_t size)
{
    const char *now = setlocale(LC_ALL, NULL);

    if (uselocale((locale_t)0) != guard->thread_locale) {
        snprintf(text, size, "the thread has another locale of its own");
        return true;
    }
    if (strncmp(now, guard->locale, sizeof(guard->locale) - 1) == 0) {
        return false;
    }
    snprintf(text, size, "%.100s before, %.100s after", guard->locale, now);
    return true;
}

static bool compare_umask(const struct ds_accel__guard *guard, char *text, size_t size)
{
    mode_t now;

    if (!guard->has_umask || !read_umask(&now) || now == guard->umask) {
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

    return (size_t)resource < ARRAY_SIZE(names) ? names[resource] : "?";
}

static bool is_same_limit(const struct rlimit *now, const struct rlimit *before)
{
    return now->rlim_cur == before->rlim_cur && now->rlim_max == before->rlim_max;
}

static bool compare_limits(const struct ds_accel__guard *guard, char *text, size_t size)
{
    struct rlimit now[RLIM_NLIMITS];

    read_limits(now);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        if (!is_same_limit(&now[i], &guard->limits[i])) {
            snprintf(text, size, "RLIMIT_%s: %lld before, %lld after", limit_name(i),
                     (long long)guard->limits[i].rlim_cur, (long long)now[i].rlim_cur);
            return true;
        }
    }
    return false;
}

static bool compare_environment(const struct ds_accel__guard *guard, char *text, size_t size)
{
    if (hash_environment() == guard->environment) {
        return false;
    }
    snprintf(text, size, "variables were set, changed or removed");
    return true;
}

static bool is_armed(const struct itimerval *timer)
{
    return timer->it_value.tv_sec != 0 || timer->it_value.tv_usec != 0;
}

/*
 * Compare only whether a timer is armed, and its interval: the remaining time of a running timer
 * differs at each reading.
 */
static bool is_same_timer(const struct itimerval *now, const struct itimerval *before)
{
    return is_armed(now) == is_armed(before) &&
           now->it_interval.tv_sec == before->it_interval.tv_sec &&
           now->it_interval.tv_usec == before->it_interval.tv_usec;
}

static bool compare_timers(const struct ds_accel__guard *guard, char *text, size_t size)
{
    static const char *const names[] = {"ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"};
    struct itimerval now;

    for (int i = 0; i < DS_ACCEL__GUARD_TIMERS; i++) {
        if (getitimer((__itimer_which_t)i, &now) == 0 && !is_same_timer(&now, &guard->timers[i])) {
            snprintf(text, size, "%s is %s", names[i], is_armed(&now) ? "set" : "stopped");
            return true;
        }
    }
    return false;
}

static bool compare_priority(const struct ds_accel__guard *guard, char *text, size_t size)
{
    int now = getpriority(PRIO_PROCESS, 0);

    if (now == guard->priority) {
        return false;
    }
    snprintf(text, size, "nice value %d before, %d after", guard->priority, now);
    return true;
}

static bool compare_scheduling(const struct ds_accel__guard *guard, char *text, size_t size)
{
    int policy;
    int priority;

    read_scheduling(&policy, &priority);
    if (policy == guard->policy && priority == guard->policy_priority) {
        return false;
    }
    snprintf(text, size, "policy %d, priority %d before; %d, %d after", guard->policy,
             guard->policy_priority, policy, priority);
    return true;
}

static bool compare_process_group(const struct ds_accel__guard *guard, char *text, size_t size)
{
    if (getsid(0) != guard->session) {
        snprintf(text, size, "it has a session of its own");
        return true;
    }
    if (getpgrp() != guard->process_group) {
        snprintf(text, size, "process group %d before, %d after", (int)guard->process_group,
                 (int)getpgrp());
        return true;
    }
    return false;
}

static bool compare_floating_point(const struct ds_accel__guard *guard, char *text, size_t size)
{
    uint64_t now = read_floating_point();

    if (now == guard->floating_point) {
        return false;
    }
    snprintf(text, size, "control 0x%llx before, 0x%llx after",
             (unsigned long long)guard->floating_point, (unsigned long long)now);
    return true;
}

/* ---- restoring ------------------------------------------------------------------------------ */

static bool restore_mask(const struct ds_accel__guard *guard)
{
    sigset_t set;

    sigemptyset(&set);
    memcpy(&set, &guard->signal_mask, sizeof(guard->signal_mask));
    return pthread_sigmask(SIG_SETMASK, &set, NULL) == 0;
}

static bool restore_handlers(const struct ds_accel__guard *guard)
{
    bool done = true;

    for (int signal = 1; signal < NSIG; signal++) {
        const struct ds_accel__guard_action *before = &guard->actions[signal];
        struct ds_accel__guard_action now;
        struct sigaction action = {.sa_flags = before->flags & ~RESTORER_FLAG};

        if (!read_action(signal, &now) || is_same_action(&now, before)) {
            continue;
        }
        action.sa_handler = (__sighandler_t)before->handler;
        sigemptyset(&action.sa_mask);
        memcpy(&action.sa_mask, &before->mask, sizeof(before->mask));
        done = sigaction(signal, &action, NULL) == 0 && done;
    }
    return done;
}

/*
 * Restore the thread's stack for signal handlers. Runtimes set a stack for their handlers and do
 * not remove it; no plugin is rejected for that.
 */
static void restore_signal_stack(const struct ds_accel__guard *guard)
{
    stack_t now;

    if (sigaltstack(NULL, &now) == 0 && now.ss_sp != guard->signal_stack.ss_sp) {
        sigaltstack(&guard->signal_stack, NULL);
    }
}

static bool restore_affinity(const struct ds_accel__guard *guard)
{
    return sched_setaffinity(0, sizeof(guard->affinity), guard->affinity) == 0;
}

static bool restore_directory(const struct ds_accel__guard *guard)
{
    return guard->directory_fd >= 0 && fchdir(guard->directory_fd) == 0;
}

static bool restore_locale(const struct ds_accel__guard *guard)
{
    uselocale(guard->thread_locale);
    return setlocale(LC_ALL, guard->locale) != NULL;
}

static bool restore_umask(const struct ds_accel__guard *guard)
{
    umask(guard->umask);
    return true;
}

static bool restore_limits(const struct ds_accel__guard *guard)
{
    bool done = true;

    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t)i, &now) == 0 &&
            !is_same_limit(&now, &guard->limits[i])) {
            done = setrlimit((__rlimit_resource_t)i, &guard->limits[i]) == 0 && done;
        }
    }
    return done;
}

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static bool has_name(char **entries, const char *entry)
{
    size_t length = name_length(entry);

    for (char **other = entries; other != NULL && *other != NULL; other++) {
        if (strncmp(*other, entry, length) == 0 && (*other)[length] == '=') {
            return true;
        }
    }
    return false;
}

/*
 * Return a copy of the name of the first variable that is not in before; NULL if there is none, or
 * if memory is exhausted.
 */
static char *find_new_variable(char **before)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (!has_name(before, *entry)) {
            return strndup(*entry, name_length(*entry));
        }
    }
    return NULL;
}

static bool has_entry(const char *entry)
{
    for (char **other = environ; other != NULL && *other != NULL; other++) {
        if (strcmp(*other, entry) == 0) {
            return true;
        }
    }
    return false;
}

static bool restore_environment(const struct ds_accel__guard *guard)
{
    char *name;

    if (guard->variables == NULL) {
        return false;
    }
    while ((name = find_new_variable(guard->variables)) != NULL) {
        int result = unsetenv(name);

        free(name);
        if (result != 0) {
            return false;
        }
    }
    for (char **entry = guard->variables; *entry != NULL; entry++) {
        char *equals = strchr(*entry, '=');

        if (equals != NULL && !has_entry(*entry)) {
            *equals = '\0';
            setenv(*entry, equals + 1, 1);
            *equals = '=';
        }
    }
    return hash_environment() == guard->environment;
}

/*
 * Reduce the remaining time of a running timer by the time that has passed. At least 1 us remains,
 * since 0 would mean "stopped".
 */
static struct itimerval timer_left(const struct itimerval *before, uint64_t passed_ns)
{
    struct itimerval timer = *before;
    uint64_t left_us = (uint64_t)timer.it_value.tv_sec * 1000000u +
                       (uint64_t)timer.it_value.tv_usec;
    uint64_t passed_us = passed_ns / 1000u;

    if (is_armed(before)) {
        left_us = left_us > passed_us ? left_us - passed_us : 1;
        timer.it_value.tv_sec = (time_t)(left_us / 1000000u);
        timer.it_value.tv_usec = (suseconds_t)(left_us % 1000000u);
    }
    return timer;
}

static bool restore_timers(const struct ds_accel__guard *guard)
{
    bool done = true;

    for (int i = 0; i < DS_ACCEL__GUARD_TIMERS; i++) {
        struct itimerval now;

        if (getitimer((__itimer_which_t)i, &now) == 0 && !is_same_timer(&now, &guard->timers[i])) {
            struct itimerval timer =
                timer_left(&guard->timers[i], ds_accel__now_ns() - guard->taken_ns);

            done = setitimer((__itimer_which_t)i, &timer, NULL) == 0 && done;
        }
    }
    return done;
}

static bool restore_priority(const struct ds_accel__guard *guard)
{
    return setpriority(PRIO_PROCESS, 0, guard->priority) == 0;
}

static bool restore_scheduling(const struct ds_accel__guard *guard)
{
    return sched_setscheduler(0, guard->policy,
                              &(struct sched_param){.sched_priority = guard->policy_priority}) == 0;
}

static bool restore_process_group(const struct ds_accel__guard *guard)
{
    return getsid(0) == guard->session && setpgid(0, guard->process_group) == 0;
}

static bool restore_floating_point(const struct ds_accel__guard *guard)
{
    write_floating_point(guard->floating_point);
    return true;
}

/* ---- kinds of change ------------------------------------------------------------------------ */

static const struct {
    enum ds_accel__reason_id reason;
    bool (*compare)(const struct ds_accel__guard *guard, char *text, size_t size);
    bool (*restore)(const struct ds_accel__guard *guard); /* NULL: it cannot be restored */
} kinds[] = {
    {DS_ACCEL__REASON_CHANGES_SIGNAL_MASK, compare_mask, restore_mask},
    {DS_ACCEL__REASON_CHANGES_SIGNAL_HANDLER, compare_handlers, restore_handlers},
    {DS_ACCEL__REASON_CHANGES_AFFINITY, compare_affinity, restore_affinity},
    {DS_ACCEL__REASON_CHANGES_ROOT, compare_root, NULL},
    {DS_ACCEL__REASON_CHANGES_DIRECTORY, compare_directory, restore_directory},
    {DS_ACCEL__REASON_CHANGES_LOCALE, compare_locale, restore_locale},
    {DS_ACCEL__REASON_CHANGES_UMASK, compare_umask, restore_umask},
    {DS_ACCEL__REASON_CHANGES_LIMIT, compare_limits, restore_limits},
    {DS_ACCEL__REASON_CHANGES_ENVIRONMENT, compare_environment, restore_environment},
    {DS_ACCEL__REASON_CHANGES_TIMER, compare_timers, restore_timers},
    {DS_ACCEL__REASON_CHANGES_PRIORITY, compare_priority, restore_priority},
    {DS_ACCEL__REASON_CHANGES_SCHEDULING, compare_scheduling, restore_scheduling},
    {DS_ACCEL__REASON_CHANGES_PROCESS_GROUP, compare_process_group, restore_process_group},
    {DS_ACCEL__REASON_CHANGES_FLOATING_POINT, compare_floating_point, restore_floating_point},
    {DS_ACCEL__REASON_CHANGES_IDS, ds_accel__guard_compare_ids, NULL},
    {DS_ACCEL__REASON_CHANGES_SECCOMP, ds_accel__guard_compare_seccomp, NULL},
    {DS_ACCEL__REASON_CHANGES_NAMESPACE, ds_accel__guard_compare_namespaces, NULL},
    {DS_ACCEL__REASON_CHANGES_DUMPABLE, ds_accel__guard_compare_dumpable,
     ds_accel__guard_restore_dumpable},
    {DS_ACCEL__REASON_CHANGES_DEATH_SIGNAL, ds_accel__guard_compare_death_signal,
     ds_accel__guard_restore_death_signal},
    {DS_ACCEL__REASON_CHANGES_ATTRIBUTE, ds_accel__guard_compare_attributes, NULL},
};
DS_ACCEL_STATIC_ASSERT(ARRAY_SIZE(kinds) <= 32, "a bit of reported for each");

void ds_accel__guard_compare(struct ds_accel__guard *guard, ds_accel__conduct_t report,
                             void *user_data)
{
    char text[256];

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        uint32_t bit = UINT32_C(1) << i;

        if ((guard->reported & bit) == 0 && kinds[i].compare(guard, text, sizeof(text))) {
            guard->reported |= bit;
            report(user_data, kinds[i].reason, text);
        }
    }
}

void ds_accel__guard_restore(struct ds_accel__guard *guard, ds_accel__conduct_t report,
                             void *user_data)
{
    int error = errno;
    char text[256];

    assert(guard->taken_ns != 0 && guard->taken_ns <= ds_accel__now_ns());
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (kinds[i].compare(guard, text, sizeof(text)) &&
            (kinds[i].restore == NULL || !kinds[i].restore(guard)) && report != NULL) {
            report(user_data, kinds[i].reason, text);
        }
    }
    restore_signal_stack(guard);
    if (guard->directory_fd >= 0) {
        close(guard->directory_fd);
        guard->directory_fd = -1;
    }
    for (char **entry = guard->variables; entry != NULL && *entry != NULL; entry++) {
        free(*entry);
    }
    free(guard->variables);
    guard->variables = NULL;
    errno = error;
}
