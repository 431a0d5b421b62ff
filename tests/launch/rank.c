/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One rank: its start, and the way of its output. The functions are internal, so this program is
 * linked with the core's own objects.
 */
#include "base/text.h"
#include "launch/spawn.h"
#include "launch/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned passed;
static unsigned failed;

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s\n", name);
    }
}

static void need(bool right, const char *what)
{
    if (!right) {
        printf("FAILED: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* ---- output --------------------------------------------------------------------------------- */

/* A pipe whose reading end is a stream to the sink; returns the writing end. */
static int open_stream(struct ds_accel__stream *stream, struct ds_accel__sink *sink)
{
    int ends[2];

    need(pipe2(ends, O_CLOEXEC) == 0, "pipe");
    need(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    *stream = (struct ds_accel__stream){.prefix = ""};
    need(ds_accel__stream_open(stream, ends[0], sink) == DS_ACCEL_OK, "stream");
    return ends[1];
}

static void pass_line(struct ds_accel__stream *stream, int fd, const char *line)
{
    need(write(fd, line, strlen(line)) == (ssize_t)strlen(line), "write");
    ds_accel__stream_read(stream, 1);
}

/* A limit on the size of files stands for a disk, which is full, and then has space again. */
static void set_disk(rlim_t size_bytes)
{
    struct rlimit limit = {size_bytes, RLIM_INFINITY};

    need(getrlimit(RLIMIT_FSIZE, &limit) == 0, "getrlimit");
    limit.rlim_cur = size_bytes < limit.rlim_max ? size_bytes : limit.rlim_max;
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
}

static void test_full_disk(void)
{
    char text[64];
    FILE *file = tmpfile();
    struct ds_accel__sink sink;
    struct ds_accel__stream stream;
    int fd;

    need(file != NULL, "tmpfile");
    ds_accel__sink_open(&sink, fileno(file));
    fd = open_stream(&stream, &sink);
    pass_line(&stream, fd, "first\n");
    check("nothing is lost at first", ds_accel__sink_take_error(&sink) == 0);
    set_disk(8);
    pass_line(&stream, fd, "cut\n");
    pass_line(&stream, fd, "lost\n");
    check("the rank's pipe stays open", stream.fd >= 0 && !sink.is_broken);
    check("what is lost is not kept", !ds_accel__sink_is_full(&sink));
    check("the error", ds_accel__sink_take_error(&sink) == EFBIG);
    set_disk(RLIM_INFINITY);
    pass_line(&stream, fd, "last\n");
    set_disk(8);
    pass_line(&stream, fd, "lost\n");
    set_disk(RLIM_INFINITY);
    check("it is reported once", ds_accel__sink_take_error(&sink) == 0);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    check("a later write succeeds", strcmp(text, "first\ncu\nlast\n") == 0);
    ds_accel__stream_close(&stream);
    ds_accel__sink_close(&sink);
    close(fd);
    fclose(file);
}

static void test_lost_reader(void)
{
    int ends[2];
    struct ds_accel__sink sink;
    struct ds_accel__stream stream;
    int fd;

    need(pipe2(ends, O_CLOEXEC) == 0, "pipe");
    ds_accel__sink_open(&sink, ends[1]);
    close(ends[0]);
    fd = open_stream(&stream, &sink);
    pass_line(&stream, fd, "line\n");
    check("the rank's pipe is closed", stream.fd < 0 && sink.is_broken);
    check("nothing is reported", ds_accel__sink_take_error(&sink) == 0);
    check("the rank's write fails", write(fd, "x", 1) < 0 && errno == EPIPE);
    ds_accel__stream_close(&stream);
    ds_accel__sink_close(&sink);
    close(ends[1]);
    close(fd);
}

/* ---- the start ------------------------------------------------------------------------------ */

static volatile int handled;

static void handle(int number)
{
    (void)number;
    handled++;
}

/* Start a shell that prints nothing, with these control groups, and wait for its end. */
static void run_shell(const char *script, const int cgroups[2], struct ds_accel__spawned *spawned,
                      siginfo_t *ended)
{
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    char *const environment[] = {NULL};
    sigset_t none;
    struct ds_accel__spawn spawn = {.path = "/bin/sh",
                                    .arguments = arguments,
                                    .environment = environment,
                                    .descriptors = {-1, -1, -1},
                                    .cgroups = {cgroups[0], cgroups[1]},
                                    .signals = &none};

    sigemptyset(&none);
    ds_accel__spawn(&spawn, spawned);
    need(spawned->pid > 0, "spawn");
    need(waitid(P_PID, (id_t)spawned->pid, ended, WEXITED) == 0, "waitid");
}

/* The groups fail apart: without the job's, the rank's own still proves why it was killed. */
static void test_groups(void)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct ds_accel__spawned spawned;
    siginfo_t ended;

    run_shell("exit 3", (const int[]){null, full}, &spawned, &ended);
    check("the job's group fails", ended.si_status == 3 && spawned.cgroup_errors[0] == 0 &&
                                       spawned.cgroup_errors[1] == ENOSPC);
    run_shell("exit 4", (const int[]){full, null}, &spawned, &ended);
    check("the rank's group fails", ended.si_status == 4 && spawned.cgroup_errors[1] == 0 &&
                                        spawned.cgroup_errors[0] == ENOSPC);
    close(null);
    close(full);
}

/* The child receives SIGPIPE before it executes the program, because a group is a pipe without a
 * reader. */
static void test_handlers(void)
{
    int ends[2];
    struct ds_accel__spawned spawned;
    siginfo_t ended;
    sigset_t before;
    sigset_t after;

    need(pipe2(ends, O_CLOEXEC) == 0, "pipe");
    close(ends[0]);
    memset(&before, 0, sizeof(before)); /* the kernel writes only a part of them */
    memset(&after, 0, sizeof(after));
    sigprocmask(SIG_SETMASK, NULL, &before);
    signal(SIGPIPE, handle);
    run_shell("exit 5", (const int[]){-1, ends[1]}, &spawned, &ended);
    check("the caller's handler does not run in the child", handled == 0);
    check("the child has the default action",
          ended.si_code == CLD_KILLED && ended.si_status == SIGPIPE);
    sigprocmask(SIG_SETMASK, NULL, &after);
    check("the caller's mask is the same", memcmp(&before, &after, sizeof(before)) == 0);
    raise(SIGPIPE);
    check("the caller keeps its handler", handled == 1);
    signal(SIGPIPE, SIG_IGN);
    run_shell("kill -PIPE $$; exit 6", (const int[]){-1, ends[1]}, &spawned, &ended);
    check("an ignored signal stays ignored", ended.si_code == CLD_EXITED && ended.si_status == 6);
    close(ends[1]);
}

int main(void)
{
    test_handlers();
    test_groups();
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    test_full_disk();
    test_lost_reader();
    printf("%u checks passed, %u failed\n", passed, failed);
    return failed > 0;
}
