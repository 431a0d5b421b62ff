/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One rank: its start, and the way of its output. The functions are internal, so this program is
 * linked with the core's own objects.
 */
#include "base/text.h"
#include "launch/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
    set_disk(6);
    pass_line(&stream, fd, "lost\n");
    pass_line(&stream, fd, "lost, too\n");
    check("the rank's pipe stays open", stream.fd >= 0 && !sink.is_broken);
    check("what is lost is not kept", !ds_accel__sink_is_full(&sink));
    check("the error", ds_accel__sink_take_error(&sink) == EFBIG);
    set_disk(RLIM_INFINITY);
    pass_line(&stream, fd, "last\n");
    set_disk(6);
    pass_line(&stream, fd, "lost\n");
    set_disk(RLIM_INFINITY);
    check("it is reported once", ds_accel__sink_take_error(&sink) == 0);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    check("a later write succeeds", strcmp(text, "first\nlast\n") == 0);
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

int main(void)
{
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    test_full_disk();
    test_lost_reader();
    printf("%u checks passed, %u failed\n", passed, failed);
    return failed > 0;
}
