/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Commands that start a plugin run in a child process: if the plugin crashes or exits, the result
 * is lost, but this process still prints a message and returns an exit code. The child reports its
 * exit code before its exit handlers run, because some of them belong to the plugin; the parent
 * then waits for a limited time until the child exits.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_GRACE_MS 10000  /* time for the plugin's exit handlers */
#define SIGNAL_GRACE_MS 5000 /* time from a forwarded signal to SIGKILL */
#define LEFTOVERS_GRACE_MS 1000
#define LOOK_MS 100

static _Noreturn void work(int report_fd, pid_t parent, struct tool *tool, int argument_count,
                           char **arguments)
{
    unsigned char code;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_INTERNAL);
    }
    code = (unsigned char)tool->command->run(tool, argument_count, arguments);
    fflush(NULL);
    while (write(report_fd, &code, 1) < 0 && errno == EINTR) {
    }
    close(report_fd);
    exit(code);
}

/* Pid of the child. SIGINT, SIGTERM, SIGHUP and SIGQUIT to this process are forwarded to the child,
 * so that it can remove its temporary files before it exits. */
static volatile sig_atomic_t worker;
static volatile sig_atomic_t forwarded; /* the last forwarded signal; 0: none */

static void forward(int signal)
{
    forwarded = signal;
    if (worker > 0) {
        kill((pid_t)worker, signal);
    }
}

static void forward_signals(pid_t child)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = forward};

    worker = (sig_atomic_t)child;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction before;

        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
}

/* Wait for the child to exit, for a limited time, and return its wait status in *status_out. False
 * if the child had to be killed. */
static bool await_end(pid_t child, int *status_out)
{
    for (int waited_ms = 0; waited_ms < EXIT_GRACE_MS; waited_ms++) {
        pid_t ended = waitpid(child, status_out, WNOHANG);

        if (ended == child || (ended < 0 && errno != EINTR)) {
            return true;
        }
        poll(NULL, 0, 1);
    }
    kill(child, SIGKILL);
    while (waitpid(child, status_out, 0) < 0 && errno == EINTR) {
    }
    return false;
}

static bool has_ended(pid_t child)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

static bool read_code(int report_fd, unsigned char *code)
{
    ssize_t count;

    do {
        count = read(report_fd, code, 1);
    } while (count < 0 && errno == EINTR);
    return count == 1;
}

/*
 * Wait until the child reports its exit code or terminates. End of file on the pipe is not
 * sufficient, because a process that the plugin started may keep the pipe open. A child that does
 * not terminate after a forwarded signal is killed. Returns true, with *code set, if the child
 * reported its exit code.
 */
static bool await_report(pid_t child, int report_fd, unsigned char *code)
{
    struct pollfd ends[2] = {{.fd = report_fd, .events = POLLIN},
                             {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN}};
    int left_ms = SIGNAL_GRACE_MS;
    bool is_over = false;

    while (!is_over) {
        bool is_timed = forwarded != 0 || ends[1].fd < 0;
        int count = poll(ends, 2, is_timed ? LOOK_MS : -1);

        left_ms -= forwarded != 0 && count == 0 ? LOOK_MS : 0;
        if (left_ms <= 0) {
            kill(child, SIGKILL);
        }
        is_over = count > 0 || has_ended(child);
    }
    if (ends[1].fd >= 0) {
        close(ends[1].fd);
    }
    return poll(ends, 1, 0) > 0 && read_code(report_fd, code);
}

/* Kill the orphaned processes that this process adopted as subreaper. */
static void kill_children(void)
{
    FILE *file = fopen("/proc/thread-self/children", "re");
    long pid;

    while (file != NULL && fscanf(file, "%ld", &pid) == 1) {
        kill((pid_t)pid, SIGKILL);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Kill the processes that a plugin left running. They may keep this process's stdout open, and a
 * reader of stdout would wait for them. */
static void end_leftovers(void)
{
    for (int left_ms = LEFTOVERS_GRACE_MS; left_ms > 0; left_ms--) {
        pid_t ended = waitpid(-1, NULL, WNOHANG | __WALL);

        if (ended < 0 && errno == ECHILD) {
            break;
        }
        if (ended == 0) {
            kill_children();
            poll(NULL, 0, 1);
        }
    }
}

/* True for signals that users or other programs send. If such a signal terminated the child, this
 * process terminates by the same signal, without a message. */
static bool is_from_outside(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE ||
           signal == SIGQUIT;
}

static int explain_end(const struct tool *tool, int status)
{
    int ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (ended_by == SIGKILL && forwarded != 0) {
        ended_by = forwarded;
    }
    if (is_from_outside(ended_by)) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        fprintf(stderr, "ds-accel: %s: SIG%s ended the process while it used a plugin",
                tool->command->name, name != NULL ? name : "?");
    } else {
        fprintf(stderr,
                "ds-accel: %s: a plugin ended the process (exit code %d) before the output was "
                "complete",
                tool->command->name, WEXITSTATUS(status));
    }
    fputs("; see ds-accel explain, or choose another accelerator\n", stderr);
    return EXIT_PROBLEMS;
}

int tool_run_apart(struct tool *tool, int argument_count, char **arguments)
{
    unsigned char code;
    int report[2];
    int status = 0;
    bool has_reported;
    bool has_ended_itself;
    pid_t parent = getpid();
    pid_t child;

    fflush(NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(report, O_CLOEXEC) != 0 || (child = fork()) < 0) {
        fprintf(stderr, "ds-accel: no process can be started for the plugin: %s\n",
                strerror(errno));
        return EXIT_PROBLEMS;
    }
    if (child == 0) {
        close(report[0]);
        work(report[1], parent, tool, argument_count, arguments);
    }
    close(report[1]);
    forward_signals(child);
    has_reported = await_report(child, report[0], &code);
    close(report[0]);
    has_ended_itself = await_end(child, &status);
    end_leftovers();
    if (has_reported) {
        if (!has_ended_itself) {
            fprintf(
                stderr,
                "ds-accel: %s: the plugin kept its process from ending; the process was killed\n",
                tool->command->name);
        }
        return code;
    }
    return explain_end(tool, status);
}
