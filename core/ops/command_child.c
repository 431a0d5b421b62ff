/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Starts one command and waits for it, without the caller noticing a child:
 *
 *     thread of this process  --clone()-->  keeper  --clone()-->  command, leader of its group
 *
 * The keeper is a process that shares the memory of this one and does nothing but wait for the
 * command. Why it exists:
 *
 * - A program that ignores SIGCHLD never learns how its children ended, and a program whose handler
 *   waits for any child takes the exit status of the command. The keeper's handling of SIGCHLD is
 *   its own. The keeper itself sends no signal when it ends (clone() without one), and only a
 *   wait with __WALL or __WCLONE sees it. execve() would end both properties, so the command cannot
 *   do without a keeper.
 * - If this process is killed, the keeper kills the whole group of the command. The kernel's signal
 *   alone (PR_SET_PDEATHSIG) would reach the driver, but not the compiler that it has started.
 *
 * Neither step copies page tables, so a start costs the same however large this process is. While
 * the keeper lives, its thread is suspended (CLONE_VFORK), as in vfork(), because
 * the keeper uses the thread's variables, such as errno. Thread, keeper and command, until
 * it is executed, make only system calls. All signals are blocked in them, so that no handler of
 * the program runs there.
 */
#include "ops/command_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEPER_STACK_BYTES ((size_t)64 << 10)
#define COMMAND_STACK_BYTES ((size_t)32 << 10) /* of the command, until it is executed */
#define THREAD_STACK_BYTES ((size_t)256 << 10) /* with the thread's variables of all libraries */
#define WAKE 3                                 /* the keeper's descriptor of the eventfd */
#define ORDER_SIGNAL SIGUSR1                   /* to the keeper: order has changed */
#define DEATH_SIGNAL SIGUSR2                   /* to the keeper: this process has ended */

/* End a process that shares memory. _exit() has a part of sanitizers, which knows no such stack. */
static void leave(void)
{
    syscall(SYS_exit_group, 127);
}

static void wake(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

/* ---- the command, until it is executed ------------------------------------------------------- */

static void reset_signals(void)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int signal = 1; signal < NSIG; signal++) {
        sigaction(signal, &action, NULL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int run_command(void *argument)
{
    struct ds_accel__child *child = argument;
    struct rlimit core;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->keeper_self) {
        leave(); /* the keeper died before the call above */
    }
    setpgid(0, 0);
    if (child->directory != NULL && chdir(child->directory) != 0) {
        child->error = errno;
        child->is_directory = true;
        leave();
    }
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0; /* a compiler that crashes leaves no file */
        setrlimit(RLIMIT_CORE, &core);
    }
    close(WAKE);
    reset_signals();
    execve(child->arguments[0], child->arguments, child->environment);
    child->error = errno;
    leave();
    return 0;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static void close_from(unsigned first)
{
    struct rlimit limit;

    if (syscall(SYS_close_range, first, ~0u, 0) == 0 ||
        getrlimit(RLIMIT_NOFILE, &limit) != 0) { /* Linux 5.9 */
        return;
    }
    for (rlim_t fd = first; fd < limit.rlim_cur && fd < 1u << 20; fd++) {
        close((int)fd);
    }
}

/* Leave no descriptor of the program open, because another process may wait for its end. */
static bool set_descriptors(const struct ds_accel__child *child)
{
    int null = open("/dev/null", O_RDONLY);

    if (null < 0) {
        null = open("/", O_RDONLY | O_DIRECTORY); /* has no data to read either */
    }
    if (null < 0 || (null != STDIN_FILENO && dup2(null, STDIN_FILENO) < 0) ||
        dup2(child->output, STDOUT_FILENO) < 0 || dup2(child->output, STDERR_FILENO) < 0 ||
        dup2(child->wake, WAKE) < 0) {
        return false;
    }
    close_from(WAKE + 1);
    return true;
}

/* Hold no end of the command's pipe, so that the pipe ends with the command. */
static void close_output(void)
{
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
}

static bool has_ended(pid_t command)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)command, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

/* Wait for the command's end. Orders and this process's death go to its group. */
static void keep(struct ds_accel__child *child, pid_t command)
{
    sigset_t signals;
    int status;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, ORDER_SIGNAL);
    sigaddset(&signals, DEATH_SIGNAL);
    while (!has_ended(command)) {
        int order = atomic_exchange(&child->order, 0);

        if (order != 0) {
            kill(-command, order);
            kill(-command, SIGCONT); /* a stopped process ends by SIGKILL only */
        }
        if (sigwaitinfo(&signals, NULL) == DEATH_SIGNAL) {
            kill(-command, SIGKILL);
        }
    }
    /* The number of the group is not reused before its leader has been reaped. */
    kill(-command, SIGKILL);
    if (waitpid(command, &status, 0) == command) {
        child->wait_status = status;
        child->has_status = true;
    }
}

static int run_keeper(void *argument)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    struct ds_accel__child *child = argument;
    pid_t command;

    prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL);
    if (getppid() != child->caller) {
        leave(); /* the thread's process died before the call above */
    }
    setpgid(0, 0); /* a signal to the program's group does not end the keeper */
    sigaction(SIGCHLD, &action, NULL);
    if (!set_descriptors(child)) {
        child->error = errno;
        leave();
    }
    child->keeper_self = getpid();
    /*
     * Not fork(), which would copy page tables, and not vfork(), of which the address sanitizer
     * assumes that it is called on the stack of a thread.
     */
    command = clone(run_command, child->stack + COMMAND_STACK_BYTES,
                    CLONE_VM | CLONE_VFORK | SIGCHLD, child);
    if (command < 0) {
        child->error = errno;
    } else if (child->error != 0) {
        waitpid(command, NULL, 0);
    } else {
        atomic_store(&child->state, DS_ACCEL__CHILD_STARTED);
        wake(WAKE);
        close_output();
        keep(child, command);
    }
    leave();
    return 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run_thread(void *argument)
{
    struct ds_accel__child *child = argument;

    /* Returns when the keeper has ended; the kernel writes its number before it runs. */
    if (clone(run_keeper, child->stack + COMMAND_STACK_BYTES + KEEPER_STACK_BYTES,
              CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID, child, (pid_t *)&child->keeper) < 0) {
        child->error = errno;
    }
    atomic_store(&child->state, DS_ACCEL__CHILD_ENDED);
    wake(child->wake);
    return NULL;
}

int ds_accel__child_start(struct ds_accel__child *child)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int error;

    child->caller = getpid();
    /* The stack must be aligned as on a function's entry; calloc() aligns to 16 bytes. */
    child->stack = calloc(1, COMMAND_STACK_BYTES + KEEPER_STACK_BYTES);
    if (child->stack == NULL) {
        return ENOMEM;
    }
    error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&child->thread, &attributes, run_thread, child);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (error != 0) {
        free(child->stack);
        child->stack = NULL;
    }
    return error;
}

void ds_accel__child_signal(struct ds_accel__child *child, int signal)
{
    pid_t keeper;

    atomic_store(&child->order, signal);
    /*
     * The keeper remains a zombie at least until the child is reaped, so that its number is not
     * reused. If it does not run yet, it finds the order when it does.
     */
    keeper = atomic_load(&child->keeper);
    if (keeper > 0) {
        kill(keeper, ORDER_SIGNAL);
    }
}

void ds_accel__child_reap(struct ds_accel__child *child)
{
    int status = SIGKILL;

    pthread_join(child->thread, NULL);
    if (child->keeper > 0) {
        while (waitpid(child->keeper, &status, __WALL) < 0 && errno == EINTR) {
        }
    }
    if (child->error == 0 && !child->has_status) {
        child->wait_status = SIGKILL; /* as if the command had been killed: the keeper was */
    }
    free(child->stack);
    child->stack = NULL;
}
