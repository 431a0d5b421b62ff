/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One rank: its start, and the way of its output and of messages. The functions are internal, so
 * this program is linked with the core's own objects.
 */
#include "base/text.h"
#include "launch/job.h"
#include "launch/spawn.h"
#include "launch/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

/* ---- messages ------------------------------------------------------------------------------- */

/* A sink of the log, which writes a message to stderr by one call. */
static void write_message(void *user_data, uint32_t level, const char *topic, const char *message)
{
    (void)user_data;
    (void)level;
    (void)topic;
    need(write(STDERR_FILENO, message, strlen(message)) == (ssize_t)strlen(message), "message");
    need(write(STDERR_FILENO, "\n", 1) == 1, "newline");
}

/* Logs a message of a supervisor whose stderr is the file. */
static void say(int file, const char *message)
{
    const struct ds_accel__log log = {.sink = write_message, .level = DS_ACCEL_LOG_WARN};
    struct ds_accel__job job = {
        .log = &log, .error_fd = file, .messages = {.fd = -1, .prefix = ""}};

    job.shared[DS_ACCEL__ERR] = &job.sinks[DS_ACCEL__ERR];
    ds_accel__sink_open(&job.sinks[DS_ACCEL__ERR], file);
    need(ds_accel__job_divert_stderr(&job) == DS_ACCEL_OK, "divert");
    ds_accel__job_say(&job, DS_ACCEL_LOG_WARN, "%s", message);
    ds_accel__sink_flush(&job.sinks[DS_ACCEL__ERR]);
    ds_accel__stream_close(&job.messages);
    ds_accel__sink_close(&job.sinks[DS_ACCEL__ERR]);
}

/* A message of any length arrives whole, also one that the supervisor's pipe to itself cannot hold
 * at first. */
static void test_messages(void)
{
    static const size_t sizes[] = {1, 1023, 1024, 2047, 2048, 4096, 65535, 65536, 300000};
    static char message[300002];
    static char given[300002];

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        int file = memfd_create("stderr", MFD_CLOEXEC);
        int status = -1;
        pid_t pid;

        need(file >= 0, "memfd_create");
        memset(message, 'x', sizes[i]);
        message[sizes[i]] = '\0';
        pid = fork();
        if (pid == 0) {
            say(file, message);
            _exit(0);
        }
        check("the message is logged", waitpid(pid, &status, 0) == pid && status == 0);
        message[sizes[i]] = '\n';
        check("the message is whole",
              pread(file, given, sizeof(given), 0) == (ssize_t)(sizes[i] + 1) &&
                  memcmp(given, message, sizes[i] + 1) == 0);
        close(file);
    }
}

/* A text is truncated between characters of one to four bytes, and never grows. */
static void test_truncation(void)
{
    static const char whole[] = "a\u00e9\u4e2d\U0001f600a\u00e9\u4e2d\U0001f600";

    for (size_t size = 4; size <= sizeof(whole); size++) {
        char text[sizeof(whole)];
        size_t length;

        snprintf(text, size, "%s", whole);
        ds_accel__truncate(text, size, sizeof(whole) - 1);
        length = strlen(text);
        if (size == sizeof(whole)) {
            check("a text that fits is whole", strcmp(text, whole) == 0);
            continue;
        }
        check("a truncated text fits", length < size && length + 4 >= size - 3);
        check("a truncated text has a mark", length >= 3 && strcmp(text + length - 3, "...") == 0);
        check("a truncated text is UTF-8", ds_accel__is_clean_text(text, sizeof(text)));
    }
}

int main(void)
{
    test_messages();
    test_truncation();
    test_handlers();
    test_groups();
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    test_full_disk();
    test_lost_reader();
    printf("%u checks passed, %u failed\n", passed, failed);
    return failed > 0;
}
