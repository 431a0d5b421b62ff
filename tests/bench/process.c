/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "bench.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void bench_die(const char *format, ...)
{
    va_list arguments;

    fputs("bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static pid_t start(const char *const *argv, const char *const *env,
                   const posix_spawn_file_actions_t *actions)
{
    pid_t pid;
    /* POSIX declares char *const * for historical reasons; posix_spawn() changes none of the
     * strings. */
    int error = posix_spawn(&pid, argv[0], actions, NULL, (char *const *)argv, (char *const *)env);

    if (error != 0) {
        bench_die("%s: %s", argv[0], strerror(error));
    }
    return pid;
}

static void wait_for(pid_t pid, const char *const *argv, struct rusage *usage)
{
    int state;

    while (wait4(pid, &state, 0, usage) < 0) {
        if (errno != EINTR) {
            bench_die("wait4: %s", strerror(errno));
        }
    }
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        bench_die("%s %s: ended with %s %d", argv[0], argv[1] != NULL ? argv[1] : "",
                  WIFEXITED(state) ? "exit code" : "signal",
                  WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state));
    }
}

struct bench_cost bench_run(const char *const *argv, const char *const *env)
{
    posix_spawn_file_actions_t actions;
    struct bench_cost cost;
    struct rusage usage;
    uint64_t start_ns;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO) != 0) {
        bench_die("posix_spawn_file_actions: %s", strerror(ENOMEM));
    }
    start_ns = now_ns();
    wait_for(start(argv, env, &actions), argv, &usage);
    cost.ms = elapsed_ns(start_ns) / 1e6;
    cost.rss_kib = usage.ru_maxrss;
    posix_spawn_file_actions_destroy(&actions);
    return cost;
}

static size_t read_all(int fd, char *text, size_t text_size)
{
    size_t length = 0;

    for (;;) {
        ssize_t count = read(fd, text + length, text_size - length);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            bench_die("read: %s", strerror(errno));
        }
        if (count == 0) {
            return length;
        }
        length += (size_t)count;
        if (length == text_size) {
            bench_die("a program printed more than %zu bytes", text_size);
        }
    }
}

void bench_capture(const char *const *argv, const char *const *env, char *text, size_t text_size)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) != 0) {
        bench_die("pipe: %s", strerror(errno));
    }
    pid = start(argv, env, &actions);
    close(ends[1]);
    text[read_all(ends[0], text, text_size)] = '\0';
    close(ends[0]);
    wait_for(pid, argv, &usage);
    posix_spawn_file_actions_destroy(&actions);
}
