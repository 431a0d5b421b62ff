/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What ranks write: lines from pipes to this process's stdout or stderr: stream.c. */
#ifndef DS_ACCEL_LAUNCH_STREAM_H
#define DS_ACCEL_LAUNCH_STREAM_H

#include "base/text.h"
#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__stream;

/* A destination of several streams. */
struct ds_accel__sink {
    int fd;         /* does not block, unless it is a file */
    bool is_own;    /* fd was opened by ds_accel__sink_open() */
    bool is_file;   /* a regular file */
    bool is_broken; /* the reader has ended */
    int error;      /* errno of the first write that failed otherwise; 0: none */
    bool error_is_reported;
    bool is_inside; /* the last byte that was written does not end a line */
    bool is_cut;    /* the rest of that line was dropped, so that a newline must follow */
    char *pending;  /* bytes that did not fit; while there are any, streams are not read */
    size_t pending_start, pending_size, pending_capacity;
    /* the stream whose last line has no end yet; NULL: the line has ended */
    struct ds_accel__stream *partial;
    struct ds_accel__text lines; /* lines with their prefixes, before they are written */
};

/* Use a descriptor, which stays blocking for other processes. */
void ds_accel__sink_open(struct ds_accel__sink *sink, int fd);
void ds_accel__sink_close(struct ds_accel__sink *sink);
/* End the incomplete line that a stream has written, so that a message begins on its own line. */
void ds_accel__sink_end_line(struct ds_accel__sink *sink);
/* Write pending bytes. */
void ds_accel__sink_flush(struct ds_accel__sink *sink);
bool ds_accel__sink_is_full(const struct ds_accel__sink *sink);
/* Return the errno of the first write that failed, such as ENOSPC, once for each sink; otherwise 0.
 * What such a write had is dropped, and later output is written if that is possible again. */
int ds_accel__sink_take_error(struct ds_accel__sink *sink);

/* The last bytes that a rank wrote. */
struct ds_accel__tail {
    char *bytes; /* a ring of DS_ACCEL__TAIL_SIZE */
    uint64_t total;
};
#define DS_ACCEL__TAIL_SIZE 16384u

void ds_accel__tail_add(struct ds_accel__tail *tail, const char *data, size_t size_bytes);
/* The last lines, at most line_count, in which a space replaces each NUL byte. A new text; NULL:
 * out of memory. */
char *ds_accel__tail_lines(const struct ds_accel__tail *tail, unsigned line_count);

/* One pipe of a rank. */
struct ds_accel__stream {
    int fd; /* -1: at its end */
    struct ds_accel__sink *sink;
    struct ds_accel__tail *tail; /* NULL: nothing is kept */
    const char *prefix;          /* in front of each line; "": nothing */
    char *buffer;                /* bytes of a line that has no end yet */
    size_t used, capacity;
    bool is_raw;       /* everything is written at once, as from a terminal */
    bool is_inside;    /* the beginning of the current line was written */
    uint64_t since_ns; /* when the first byte in buffer came; 0: buffer is empty */
    uint64_t total_bytes;
};

/* Take the reading end of a pipe. ERR_NO_MEMORY. */
int32_t ds_accel__stream_open(struct ds_accel__stream *stream, int fd, struct ds_accel__sink *sink);
void ds_accel__stream_close(struct ds_accel__stream *stream);
/* Read once, and write all complete lines. Closes the stream at its end, with the rest of the last
 * line, and if the sink's reader has ended: the rank's writes then fail, as if it wrote to it. */
void ds_accel__stream_read(struct ds_accel__stream *stream, uint64_t now_ns);
/* Write an incomplete line. */
void ds_accel__stream_flush(struct ds_accel__stream *stream);

#endif
