/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Starts a rank. The child shares this process's memory until it executes the program (vfork()), so
 * that a start costs the same however large this process is, and so that the child can report a
 * failure by writing to memory. Between vfork() and execve() the child only makes system calls.
 *
 * CPUs and memory policy are set by the child, because they apply to the calling thread. If the
 * kernel forbids one of them, as in some containers, the rank runs without it, and the caller
 * reports that.
 *
 * A handler of the caller must not run in the child, where it would change the caller's memory. So
 * all signals are blocked from before vfork() until the child has no handler.
 */
#include "launch/spawn.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_LIMIT 4096u
/* Values of <linux/mempolicy.h>. */
#define POLICY_PREFERRED 1
#define POLICY_BIND 2

/* What the child uses, prepared by the parent. */
struct child {
    const struct ds_accel__spawn *spawn;
    struct ds_accel__spawned *spawned;
    unsigned long cpus[DS_ACCEL__LIST_LIMIT / (8 * sizeof(long))];
    size_t cpus_size; /* 0: not bound */
    unsigned long nodes[NODE_LIMIT / (8 * sizeof(long))];
    int policy; /* 0: not set */
    char *const *shell_arguments;
    pid_t parent;
};

static void set_bits(const struct ds_accel__set *set, unsigned long *bits, uint32_t limit)
{
    for (uint32_t i = 0; i < set->count && set->items[i] < limit; i++) {
        bits[set->items[i] / (8 * sizeof(long))] |= 1ul << set->items[i] % (8 * sizeof(long));
    }
}

static void prepare(struct child *child)
{
    const struct ds_accel__placement *placement = child->spawn->placement;

    if (placement == NULL || placement->cpus.count == 0) {
        return;
    }
    set_bits(&placement->cpus, child->cpus, DS_ACCEL__LIST_LIMIT);
    child->cpus_size = sizeof(child->cpus);
    if (placement->memory != DS_ACCEL__MEMORY_DEFAULT) {
        set_bits(&placement->nodes, child->nodes, NODE_LIMIT);
        child->policy = placement->memory == DS_ACCEL__MEMORY_BIND ? POLICY_BIND : POLICY_PREFERRED;
    }
}

/* ---- the child ------------------------------------------------------------------------------ */

/* Put the given descriptors in place of stdin, stdout and stderr. Those of the caller are at least
 * 3, so none is overwritten before its turn. */
static int replace_streams(const struct ds_accel__spawn *spawn)
{
    for (int i = 0; i < 3; i++) {
        if (spawn->descriptors[i] >= 0 && dup2(spawn->descriptors[i], i) < 0) {
            return -1;
        }
    }
    if (spawn->has_terminal) {
        setsid();
        return ioctl(STDIN_FILENO, TIOCSCTTY, 0);
    }
    return 0;
}

static void bind_child(struct child *child)
{
    struct ds_accel__spawned *spawned = child->spawned;

    for (size_t i = 0; i < DS_ACCEL__SPAWN_CGROUPS; i++) {
        int cgroup = child->spawn->cgroups[i];

        if (cgroup >= 0 && write(cgroup, "0", 1) != 1) {
            spawned->cgroup_errors[i] = errno;
        }
    }
    if (child->cpus_size > 0 &&
        syscall(SYS_sched_setaffinity, 0, child->cpus_size, child->cpus) != 0) {
        spawned->cpu_error = errno;
    }
    if (child->policy != 0 &&
        syscall(SYS_set_mempolicy, child->policy, child->nodes, (unsigned long)NODE_LIMIT) != 0) {
        spawned->memory_error = errno;
    }
}

/* Restore the default action of each signal that has a handler. A signal that is ignored stays so,
 * as in every new program. */
static void reset_handlers(void)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    struct sigaction before;

    for (int signal = 1; signal < NSIG; signal++) {
        if (sigaction(signal, NULL, &before) == 0 && before.sa_handler != SIG_DFL &&
            before.sa_handler != SIG_IGN) {
            sigaction(signal, &action, NULL);
        }
    }
}

static void fail(struct child *child, enum ds_accel__spawn_step step)
{
    child->spawned->step = step;
    child->spawned->error = errno;
    _exit(127);
}

static void run_child(struct child *child)
{
    const struct ds_accel__spawn *spawn = child->spawn;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent) {
        _exit(127); /* the parent died before the call above */
    }
    if (spawn->is_traceable) {
        prctl(PR_SET_PTRACER, child->parent); /* fails without Yama, where nothing is needed */
    }
    bind_child(child);
    if (replace_streams(spawn) < 0) {
        fail(child, DS_ACCEL__SPAWN_STREAMS);
    }
    if (spawn->files != NULL) {
        setrlimit(RLIMIT_NOFILE, spawn->files);
    }
    reset_handlers();
    sigprocmask(SIG_SETMASK, spawn->signals, NULL);
    execve(spawn->path, spawn->arguments, spawn->environment);
    if (errno == ENOEXEC) {
        execve("/bin/sh", child->shell_arguments, spawn->environment);
    }
    fail(child, DS_ACCEL__SPAWN_EXECUTE);
}

/* ---- the parent ----------------------------------------------------------------------------- */

/* A function of its own, so that the child overwrites no variable of the caller. */
static __attribute__((noinline)) pid_t fork_child(struct child *child)
{
    sigset_t all;
    sigset_t before;
    pid_t pid;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = vfork(); /* NOLINT: fork() would copy the page tables of this process */
    if (pid == 0) {
        run_child(child); /* NOLINT: it makes only system calls */
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

void ds_accel__spawn(const struct ds_accel__spawn *spawn, struct ds_accel__spawned *spawned)
{
    struct child *child = calloc(1, sizeof(*child));
    size_t count = 0;
    char **shell_arguments;

    *spawned = (struct ds_accel__spawned){.step = DS_ACCEL__SPAWN_FORK, .error = ENOMEM};
    while (spawn->arguments[count] != NULL) {
        count++;
    }
    shell_arguments = calloc(count + 3, sizeof(*shell_arguments));
    if (child != NULL && shell_arguments != NULL) {
        shell_arguments[0] = (char *)"/bin/sh";
        shell_arguments[1] = (char *)spawn->path;
        for (size_t i = 1; i < count; i++) {
            shell_arguments[i + 1] = spawn->arguments[i];
        }
        *child = (struct child){.spawn = spawn,
                                .spawned = spawned,
                                .shell_arguments = shell_arguments,
                                .parent = getpid()};
        prepare(child);
        spawned->step = DS_ACCEL__SPAWN_NONE;
        spawned->error = 0;
        spawned->pid = fork_child(child);
        if (spawned->pid < 0) {
            spawned->step = DS_ACCEL__SPAWN_FORK;
            spawned->error = errno;
            spawned->pid = 0;
        }
    }
    free(shell_arguments);
    free(child);
}

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

int32_t ds_accel__command_find(const char *name, const char *path, char **found_out)
{
    const char *directory = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin";

    if (strchr(name, '/') != NULL) {
        *found_out = strdup(name);
        return *found_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    for (;;) {
        size_t length = strcspn(directory, ":");
        char *candidate =
            ds_accel__format("%.*s%s%s", (int)length, directory, length > 0 ? "/" : "./", name);

        if (candidate == NULL) {
            return ds_accel__no_memory();
        }
        if (is_program(candidate)) {
            *found_out = candidate;
            return DS_ACCEL_OK;
        }
        free(candidate);
        if (directory[length] == '\0') {
            return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND, "%s: no such command in PATH", name);
        }
        directory += length + 1;
    }
}
