/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Commands that have to start a plugin do their work in a child: a plugin that crashes, exits or
 * traps costs the answer, but not the message and the exit code. The child reports its exit code
 * before its exit handlers run, which are the plugin's too, and is not waited for much longer.
 */
#include "tool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_GRACE_MS 10000 /* for what a plugin does when its process ends */

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

/* What is sent to this process is meant for the one that works; it may have files to remove. */
static volatile sig_atomic_t worker;

static void forward(int signal)
{
    if (worker > 0) {
        kill((pid_t)worker, signal);
    }
}

static void forward_signals(pid_t child)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = forward, .sa_flags = (int)SA_RESTART};

    worker = (sig_atomic_t)child;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction before;

        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
}

/* How it ended, reaped; false: it had to be killed. */
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

/* What ended the child from outside ends this process as well, without a word. */
static bool is_from_outside(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE ||
           signal == SIGQUIT;
}

static int explain_end(const struct tool *tool, int status)
{
    if (WIFSIGNALED(status) && is_from_outside(WTERMSIG(status))) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        fprintf(stderr, "ds-accel: %s: SIG%s ended the process while it used a plugin",
                tool->command->name, name != NULL ? name : "?");
    } else {
        fprintf(stderr,
                "ds-accel: %s: a plugin ended the process (exit code %d) before the answer was "
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
    ssize_t count;
    pid_t parent = getpid();
    pid_t child;

    fflush(NULL);
    if (pipe(report) != 0 || (child = fork()) < 0) {
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
    do {
        count = read(report[0], &code, 1);
    } while (count < 0 && errno == EINTR);
    close(report[0]);
    if (count == 1) {
        if (!await_end(child, &status)) {
            fprintf(stderr,
                    "ds-accel: %s: the plugin held its process up at its end; it was killed\n",
                    tool->command->name);
        }
        return code;
    }
    await_end(child, &status);
    return explain_end(tool, status);
}
