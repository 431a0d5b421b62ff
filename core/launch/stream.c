/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Passes on what several ranks write, so that lines of different ranks do not mix:
 *
 *      rank's pipe -> buffer -> complete lines -> sink: stdout or stderr
 *                        \-> after 100 ms an incomplete line, too
 *
 * A reader of the sink that is slow must not stop the supervisor. The sink is therefore opened anew
 * as /proc/self/fd/N, which gives this process a description of its own that does not block; a file
 * does not block anyway. A terminal that belongs to another user, as after su, cannot be opened by
 * its name; if it is this process's controlling terminal, it can be as /dev/tty. What does not fit
 * stays pending, and the streams of a full sink are not read, so that the ranks wait, and memory
 * stays constant.
 *
 * If the reader of the sink has ended, the ranks' pipes are closed, so that a rank that writes ends
 * as if it wrote to the sink itself. Another error, such as a full disk, may pass: what cannot be
 * written is dropped, the ranks go on, and each later write tries again.
 */
#include "launch/stream.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE 65536u
#define LINE_LIMIT (1u << 20) /* a longer line is written in parts */

/* ---- sinks ---------------------------------------------------------------------------------- */

/* Is the descriptor the controlling terminal, and not the master of a pseudo-terminal? */
static bool is_controlling_terminal(int fd)
{
    unsigned number;

    return tcgetpgrp(fd) >= 0 && ioctl(fd, TIOCGPTN, &number) != 0;
}

void ds_accel__sink_open(struct ds_accel__sink *sink, int fd)
{
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    char path[32];
    struct stat info;
    int own;

    *sink = (struct ds_accel__sink){.fd = fd};
    sink->is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (sink->is_file) {
        return;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own = open(path, flags);
    if (own < 0 && is_controlling_terminal(fd)) {
        own = open("/dev/tty", flags);
    }
    if (own >= 0) {
        sink->fd = own;
        sink->is_own = true;
    }
}

void ds_accel__sink_close(struct ds_accel__sink *sink)
{
    if (sink->is_own) {
        close(sink->fd);
    }
    free(sink->pending);
    ds_accel__text_clear(&sink->lines);
    *sink = (struct ds_accel__sink){.fd = -1};
}

bool ds_accel__sink_is_full(const struct ds_accel__sink *sink)
{
    return sink->pending_size > 0;
}

int ds_accel__sink_take_error(struct ds_accel__sink *sink)
{
    if (sink->error_is_reported || sink->error == 0) {
        return 0;
    }
    sink->error_is_reported = true;
    return sink->error;
}

/* Note why a write failed. */
static void note_error(struct ds_accel__sink *sink, int error)
{
    if (error == EPIPE) {
        sink->is_broken = true;
    } else if (sink->error == 0) {
        sink->error = error;
    }
    sink->is_cut = sink->is_inside;
}

/* Write as much as fits; returns the number of bytes written or dropped. A descriptor that could
 * not be opened anew may block, so only what a pipe surely takes is written to it. */
static size_t write_some(struct ds_accel__sink *sink, const char *data, size_t size_bytes)
{
    size_t written = 0;

    if (sink->is_cut && write(sink->fd, "\n", 1) == 1) {
        sink->is_cut = sink->is_inside = false;
    }
    while (written < size_bytes && !sink->is_broken) {
        size_t size = size_bytes - written;
        ssize_t result;

        if (!sink->is_own && !sink->is_file) {
            struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};

            if (poll(&ready, 1, 0) != 1) {
                break;
            }
            size = size < PIPE_BUF ? size : PIPE_BUF;
        }
        result = write(sink->fd, data + written, size);
        if (result > 0) {
            written += (size_t)result;
            sink->is_inside = data[written - 1] != '\n';
        } else if (result == 0 || errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            note_error(sink, errno);
            return size_bytes;
        }
    }
    return sink->is_broken ? size_bytes : written;
}

/* Keep bytes that did not fit. If memory is exhausted, they are lost. */
static void keep(struct ds_accel__sink *sink, const char *data, size_t size_bytes)
{
    if (sink->pending_start > 0) {
        memmove(sink->pending, sink->pending + sink->pending_start, sink->pending_size);
        sink->pending_start = 0;
    }
    if (sink->pending_size + size_bytes > sink->pending_capacity) {
        size_t capacity = sink->pending_size + size_bytes + BUFFER_SIZE;
        char *pending = realloc(sink->pending, capacity);

        if (pending == NULL) {
            return;
        }
        sink->pending = pending;
        sink->pending_capacity = capacity;
    }
    memcpy(sink->pending + sink->pending_size, data, size_bytes);
    sink->pending_size += size_bytes;
}

static void sink_write(struct ds_accel__sink *sink, const char *data, size_t size_bytes)
{
    size_t written = sink->pending_size == 0 ? write_some(sink, data, size_bytes) : 0;

    if (written < size_bytes) {
        keep(sink, data + written, size_bytes - written);
    }
}

void ds_accel__sink_flush(struct ds_accel__sink *sink)
{
    size_t written;

    if (sink->pending_size == 0) {
        return;
    }
    written = write_some(sink, sink->pending + sink->pending_start, sink->pending_size);
    sink->pending_start += written;
    sink->pending_size -= written;
    if (sink->pending_size == 0) {
        sink->pending_start = 0;
    }
}

/* ---- the last lines ------------------------------------------------------------------------- */

void ds_accel__tail_add(struct ds_accel__tail *tail, const char *data, size_t size_bytes)
{
    if (tail->bytes == NULL) {
        tail->bytes = malloc(DS_ACCEL__TAIL_SIZE);
    }
    if (tail->bytes == NULL) {
        return;
    }
    if (size_bytes > DS_ACCEL__TAIL_SIZE) {
        tail->total += size_bytes - DS_ACCEL__TAIL_SIZE;
        data += size_bytes - DS_ACCEL__TAIL_SIZE;
        size_bytes = DS_ACCEL__TAIL_SIZE;
    }
    while (size_bytes > 0) {
        size_t at = tail->total % DS_ACCEL__TAIL_SIZE;
        size_t size = DS_ACCEL__TAIL_SIZE - at < size_bytes ? DS_ACCEL__TAIL_SIZE - at : size_bytes;

        memcpy(tail->bytes + at, data, size);
        tail->total += size;
        data += size;
        size_bytes -= size;
    }
}

char *ds_accel__tail_lines(const struct ds_accel__tail *tail, unsigned line_count)
{
    size_t size = tail->total < DS_ACCEL__TAIL_SIZE ? tail->total : DS_ACCEL__TAIL_SIZE;
    size_t start = tail->total - size;
    char *text = malloc(size + 1);
    size_t first = 0;

    if (text == NULL || tail->bytes == NULL) {
        free(text);
        return strdup("");
    }
    for (size_t i = 0; i < size; i++) {
        char byte = tail->bytes[(start + i) % DS_ACCEL__TAIL_SIZE];

        text[i] = byte != '\0' ? byte : ' ';
    }
    for (size_t i = size; i-- > 0;) {
        if (text[i] == '\n' && i + 1 < size && line_count-- == 1) {
            first = i + 1;
            break;
        }
    }
    if (first == 0 && start > 0) { /* the ring begins inside a line */
        const char *end = memchr(text, '\n', size);

        first = end != NULL && end + 1 < text + size ? (size_t)(end + 1 - text) : 0;
    }
    memmove(text, text + first, size - first);
    text[size - first] = '\0';
    return text;
}

/* ---- streams -------------------------------------------------------------------------------- */

int32_t ds_accel__stream_open(struct ds_accel__stream *stream, int fd, struct ds_accel__sink *sink)
{
    stream->buffer = malloc(BUFFER_SIZE);
    if (stream->buffer == NULL) {
        return ds_accel__no_memory();
    }
    stream->capacity = BUFFER_SIZE;
    stream->fd = fd;
    stream->sink = sink;
    return DS_ACCEL_OK;
}

void ds_accel__stream_close(struct ds_accel__stream *stream)
{
    if (stream->fd >= 0) {
        close(stream->fd);
    }
    free(stream->buffer);
    stream->buffer = NULL;
    stream->fd = -1;
    stream->used = 0;
    stream->since_ns = 0;
}

void ds_accel__sink_end_line(struct ds_accel__sink *sink)
{
    if (sink->partial != NULL) {
        sink_write(sink, "\n", 1);
        sink->partial->is_inside = false; /* the rest of the line gets a prefix again */
        sink->partial = NULL;
    }
}

/* Put the prefix in front of each line. False: memory is exhausted. */
static bool add_prefixes(struct ds_accel__stream *stream, const char *data, size_t size_bytes)
{
    struct ds_accel__text *lines = &stream->sink->lines;
    const char *end = data + size_bytes;
    bool is_inside = stream->is_inside;

    if (lines->data != NULL) { /* keep the memory */
        lines->size_bytes = 0;
        lines->data[0] = '\0';
    }
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *stop = newline != NULL ? newline + 1 : end;

        if (!is_inside) {
            ds_accel__text_add_bytes(lines, stream->prefix, strlen(stream->prefix));
        }
        ds_accel__text_add_bytes(lines, data, (size_t)(stop - data));
        is_inside = newline == NULL;
        data = stop;
    }
    if (lines->failed) {
        ds_accel__text_clear(lines);
        return false;
    }
    return true;
}

/* Write bytes of whole lines, or the beginning of a line, with one call. If memory is exhausted,
 * prefixes are left out. */
static void write_lines(struct ds_accel__stream *stream, const char *data, size_t size_bytes)
{
    struct ds_accel__sink *sink = stream->sink;

    if (sink->partial != stream) {
        ds_accel__sink_end_line(sink);
    }
    if (stream->prefix[0] != '\0' && add_prefixes(stream, data, size_bytes)) {
        sink_write(sink, sink->lines.data, sink->lines.size_bytes);
    } else {
        sink_write(sink, data, size_bytes);
    }
    stream->is_inside = data[size_bytes - 1] != '\n';
    sink->partial = stream->is_inside ? stream : NULL;
}

/* Write the first bytes of the buffer. */
static void write_first(struct ds_accel__stream *stream, size_t size_bytes)
{
    write_lines(stream, stream->buffer, size_bytes);
    memmove(stream->buffer, stream->buffer + size_bytes, stream->used - size_bytes);
    stream->used -= size_bytes;
}

void ds_accel__stream_flush(struct ds_accel__stream *stream)
{
    if (stream->used > 0) {
        write_first(stream, stream->used);
    }
    stream->since_ns = 0;
}

/* Make room for the rest of a long line. False: the line is too long, or memory is exhausted. */
static bool grow(struct ds_accel__stream *stream)
{
    size_t capacity = 2 * stream->capacity;
    char *buffer = capacity <= LINE_LIMIT ? realloc(stream->buffer, capacity) : NULL;

    if (buffer == NULL) {
        return false;
    }
    stream->buffer = buffer;
    stream->capacity = capacity;
    return true;
}

void ds_accel__stream_read(struct ds_accel__stream *stream, uint64_t now_ns)
{
    ssize_t result =
        read(stream->fd, stream->buffer + stream->used, stream->capacity - stream->used);
    const char *newline;

    assert(stream->used < stream->capacity);
    if (result < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (result <= 0) {
        ds_accel__stream_flush(stream);
        ds_accel__stream_close(stream);
        return;
    }
    if (stream->tail != NULL) {
        ds_accel__tail_add(stream->tail, stream->buffer + stream->used, (size_t)result);
    }
    stream->total_bytes += (uint64_t)result;
    newline = memrchr(stream->buffer + stream->used, '\n', (size_t)result);
    stream->used += (size_t)result;
    if (stream->is_raw || (newline == NULL && stream->used == stream->capacity && !grow(stream))) {
        ds_accel__stream_flush(stream);
    } else if (newline != NULL) {
        write_first(stream, (size_t)(newline + 1 - stream->buffer));
        stream->since_ns = 0;
    }
    if (stream->used > 0 && stream->since_ns == 0) {
        stream->since_ns = now_ns;
    }
    if (stream->sink->is_broken) {
        ds_accel__stream_close(stream);
    }
}
