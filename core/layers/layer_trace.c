/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The trace. It has one span per call, the plugin's own spans (DS_ACCEL_EXT_TRACE) and, instead of
 * the calls that push and pop them, the profiler ranges of the program, in the Trace Event format,
 * which browsers' viewers open.
 *
 * The file uses the array form of the format, whose closing bracket may be missing. Each line is a
 * complete event, and lines are never split between writes, so that viewers can also open the file
 * of a process that a signal killed. A normal exit closes the array, so that the file is valid
 * JSON. At most BUFFER_BYTES are buffered, and none for longer than FLUSH_NS if calls continue.
 * Accelerators configured with the same file share it.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/text.h"
#include "config/env.h"
#include "host/context.h"
#include "layers/layer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES 65536u
#define LINE_BYTES 1024u
#define FLUSH_NS UINT64_C(200000000)

struct ds_accel__trace_file {
    struct ds_accel__trace_file *next;
    char *path;
    uint32_t users;
    pid_t pid;
    int fd; /* -1: no more events are written: writing failed, or the process is exiting */
    uint64_t written_ns;
    size_t size_bytes; /* size of the file */
    size_t buffered;
    char buffer[BUFFER_BYTES];
};

/* Guards the files and their contents. */
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ds_accel__trace_file *files;

/* Number of spans that this thread began and has not ended; an end without a beginning is not
 * written. */
static _Thread_local uint32_t depth;

/* ---- the file: the caller holds trace_lock -------------------------------------------------- */

static void flush(struct ds_accel__trace_file *file)
{
    size_t done = 0;

    if (file->fd >= 0 && !ds_accel__file_may_have(file->size_bytes + file->buffered)) {
        close(file->fd);
        file->fd = -1;
    }
    file->size_bytes += file->buffered;
    while (file->fd >= 0 && done < file->buffered) {
        ssize_t written = write(file->fd, file->buffer + done, file->buffered - done);

        if (written > 0) {
            done += (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            close(file->fd);
            file->fd = -1;
        }
    }
    file->buffered = 0;
    file->written_ns = ds_accel__now_ns();
}

static void append(struct ds_accel__trace_file *file, const char *line, size_t length)
{
    if (file->buffered + length > BUFFER_BYTES) {
        flush(file);
    }
    assert(file->buffered + length <= BUFFER_BYTES);
    memcpy(file->buffer + file->buffered, line, length);
    file->buffered += length;
    if (ds_accel__now_ns() - file->written_ns > FLUSH_NS) {
        flush(file);
    }
}

/* Open a trace file; takes ownership of path on success. */
static int32_t open_file(char *path, struct ds_accel__trace_file **file_out)
{
    static const char head[] = "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,\"tid\":0,"
                               "\"args\":{\"name\":\"ds-accel\"}}";
    struct ds_accel__trace_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        return ds_accel__no_memory();
    }
    file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file->fd < 0) {
        free(file);
        return ds_accel__error(DS_ACCEL_ERR_IO, "trace file %s: %s", path, strerror(errno));
    }
    file->path = path;
    file->users = 1;
    file->pid = getpid();
    file->buffered = (size_t)snprintf(file->buffer, BUFFER_BYTES, head, (long)file->pid);
    flush(file);
    file->next = files;
    files = file;
    *file_out = file;
    return DS_ACCEL_OK;
}

/* Return the file with this path: the file that this process already has open, else a newly opened
 * file. Takes ownership of path. */
static int32_t take_file(char *path, struct ds_accel__trace_file **file_out)
{
    struct ds_accel__trace_file *file = files;
    int32_t status;

    while (file != NULL && (strcmp(file->path, path) != 0 || file->pid != getpid())) {
        file = file->next;
    }
    if (file != NULL) {
        free(path);
        file->users++;
        *file_out = file;
        return DS_ACCEL_OK;
    }
    status = open_file(path, file_out);
    if (status < 0) {
        free(path);
    }
    return status;
}

static void put_file(struct ds_accel__trace_file *file)
{
    struct ds_accel__trace_file **place = &files;

    assert(file->users > 0);
    if (--file->users > 0) {
        return;
    }
    while (*place != file) {
        place = &(*place)->next;
    }
    *place = file->next;
    append(file, "\n]\n", 3);
    flush(file);
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->path);
    free(file);
}

/*
 * At a normal exit, write the buffered events of accelerators that were not destroyed, such as that
 * of ds_accel_get(), and close the array. If a thread that is still within a call holds the lock,
 * the file is left without its last events and the closing bracket.
 */
static __attribute__((destructor)) void finish_files(void)
{
    if (pthread_mutex_trylock(&trace_lock) != 0) {
        return;
    }
    for (struct ds_accel__trace_file *file = files; file != NULL; file = file->next) {
        if (file->pid == getpid() && file->fd >= 0) {
            append(file, "\n]\n", 3);
            flush(file);
        }
        if (file->fd >= 0) {
            close(file->fd);
            file->fd = -1; /* later calls are not traced */
        }
    }
    pthread_mutex_unlock(&trace_lock);
}

/* ---- events --------------------------------------------------------------------------------- */

/* The text of one event; members that do not fit are left out. */
struct line {
    char text[LINE_BYTES];
    size_t length;
};

static void line_add(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line_add(struct line *line, const char *format, ...)
{
    size_t room = LINE_BYTES - 8 - line->length; /* 8 bytes are kept for the closing brackets */
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < room) {
        line->length += (size_t)length;
    } else {
        line->text[line->length] = '\0';
    }
}

/* Add the first 200 bytes of a text from any source as a JSON string. */
static void line_add_text(struct line *line, const char *text)
{
    char clean[201];
    char escaped[3 * sizeof(clean)];
    size_t length = 0;

    snprintf(clean, sizeof(clean), "%s", text);
    ds_accel__sanitize(clean, sizeof(clean)); /* UTF-8 without control characters */
    for (const char *c = clean; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            escaped[length++] = '\\';
        }
        escaped[length++] = *c;
    }
    assert(length < sizeof(escaped));
    escaped[length] = '\0';
    line_add(line, "\"%s\"", escaped);
}

/* Add a time as microseconds with three decimals, independent of the program's locale. */
static void line_add_time(struct line *line, const char *key, uint64_t ns)
{
    line_add(line, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000),
             (unsigned)(ns % 1000));
}

static void line_begin(struct line *line, char phase, const char *category, const char *name)
{
    line->length = 0;
    line_add(line, ",\n{\"ph\":\"%c\",\"pid\":%ld,\"tid\":%ld", phase, (long)getpid(),
             (long)gettid());
    if (name != NULL) {
        line_add(line, ",\"name\":");
        line_add_text(line, name);
        line_add(line, ",\"cat\":");
        line_add_text(line, category != NULL && category[0] != '\0' ? category : "plugin");
    }
}

static void line_end(struct ds_accel__trace_file *file, struct line *line)
{
    line->text[line->length++] = '}';
    pthread_mutex_lock(&trace_lock);
    append(file, line->text, line->length);
    pthread_mutex_unlock(&trace_lock);
}

static const char *category_of(const struct ds_accel__slot_info *slot)
{
    static const char *const groups[] = {"device", "stream", "event", "mem",       "vmem", "graph",
                                         "rng",    "peer",   "ipc",   "telemetry", "range"};

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        size_t length = strlen(groups[i]);

        if (strncmp(slot->name, groups[i], length) == 0 && slot->name[length] == '_') {
            return groups[i];
        }
    }
    return "plugin";
}

static uint64_t number_of(uint32_t kind, const void *handle)
{
    const struct ds_accel__object *object;
    uint64_t number;

    ds_accel__layer_lock();
    object = ds_accel__object_find(kind, handle);
    number = object == NULL                     ? 0
             : object->kind == DS_ACCEL__DEVICE ? object->device_index
                                                : object->number;
    ds_accel__layer_unlock();
    return number;
}

/* Add an argument if it is useful to readers: handles, numbers such as sizes and kinds, and
 * addresses of memory. */
static void add_argument(struct line *line, const struct ds_accel__call *call, uint32_t position)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    const char *name = slot->names[position];
    const union ds_accel__argument *argument = &call->arguments[position];

    switch (slot->meanings[position]) {
    case DS_ACCEL__DEVICE:
    case DS_ACCEL__STREAM:
    case DS_ACCEL__EVENT:
    case DS_ACCEL__GRAPH:
    case DS_ACCEL__EXEC:
        line_add(line, ",\"%s\":%llu", name,
                 (unsigned long long)number_of(slot->meanings[position],
                                               DS_ACCEL__POINTER(call, position)));
        break;
    case DS_ACCEL__INDEX:
    case DS_ACCEL__SIZE:
    case DS_ACCEL__ALIGN:
    case DS_ACCEL__FLAGS:
    case DS_ACCEL__NUMBER:
        if (strcmp(name, "timeout_ns") != 0 || argument->number != UINT64_MAX) {
            line_add(line, ",\"%s\":%llu", name, (unsigned long long)argument->number);
        }
        break;
    case DS_ACCEL__ANY:
        if (strcmp(name, "destination") == 0 || strcmp(name, "source") == 0 ||
            strcmp(name, "pointer") == 0) {
            line_add(line, ",\"%s\":\"0x%llx\"", name, (unsigned long long)argument->pointer);
        }
        break;
    case DS_ACCEL__POINTER_OUT:
        if (call->status == DS_ACCEL_OK && argument->pointer != 0) {
            line_add(line, ",\"%s\":\"%p\"", name, ds_accel__layer_output(call, position));
        }
        break;
    default:
        break;
    }
}

static bool is_range(uint32_t slot)
{
    return slot == DS_ACCEL__SLOT_range_push || slot == DS_ACCEL__SLOT_range_pop;
}

/* Store the start time, and the number of a handle that the call destroys, because the number is
 * not known after the call. */
static void trace_before(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];

    call->trace.begin_ns = ds_accel__now_ns();
    if (slot->is_void) {
        call->trace.number = number_of(slot->meanings[0], DS_ACCEL__POINTER(call, 0));
    }
}

static void trace_after(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint64_t end_ns = ds_accel__now_ns();
    struct line line;

    if (is_range(call->slot) && call->status == DS_ACCEL_OK) {
        if (call->slot == DS_ACCEL__SLOT_range_push) {
            const char *category = DS_ACCEL__POINTER(call, 3);

            ds_accel__trace_begin(call->stack, category != NULL ? category : "range",
                                  DS_ACCEL__POINTER(call, 1));
        } else {
            ds_accel__trace_end(call->stack);
        }
        return;
    }
    line_begin(&line, 'X', category_of(slot), slot->name);
    line_add_time(&line, "ts", call->trace.begin_ns);
    line_add_time(&line, "dur", end_ns - call->trace.begin_ns);
    line_add(&line, ",\"args\":{\"status\":%d", call->status);
    if (slot->is_void) {
        line_add(&line, ",\"%s\":%llu", slot->names[0], (unsigned long long)call->trace.number);
    }
    for (uint32_t i = 0; i < slot->count && !slot->is_void; i++) {
        add_argument(&line, call, i);
    }
    line.text[line.length++] = '}';
    line_end(call->stack->trace, &line);
}

void ds_accel__trace_begin(struct ds_accel__stack *stack, const char *category, const char *name)
{
    struct line line;

    if (stack->trace == NULL || name == NULL) {
        return;
    }
    depth++;
    line_begin(&line, 'B', category, name);
    line_add_time(&line, "ts", ds_accel__now_ns());
    line_end(stack->trace, &line);
}

void ds_accel__trace_end(struct ds_accel__stack *stack)
{
    struct line line;

    if (stack->trace == NULL || depth == 0) {
        return;
    }
    depth--;
    line_begin(&line, 'E', NULL, NULL);
    line_add_time(&line, "ts", ds_accel__now_ns());
    line_end(stack->trace, &line);
}

/* ---- the layer ------------------------------------------------------------------------------ */

static int32_t trace_start(struct ds_accel__stack *stack)
{
    char *path = NULL;
    int32_t status = ds_accel__layer_path(stack->context, DS_ACCEL__VARIABLE_TRACE_FILE, "trace",
                                          "ds-accel-trace.%p.json", &path);

    if (status < 0) {
        return status;
    }
    if (path == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_CONFIG, "the configuration's trace.file is empty");
    }
    ds_accel__fork_renew(&trace_lock);
    pthread_mutex_lock(&trace_lock);
    status = take_file(path, &stack->trace);
    pthread_mutex_unlock(&trace_lock);
    return status;
}

static void trace_stop(struct ds_accel__stack *stack)
{
    bool has_failed;

    pthread_mutex_lock(&trace_lock);
    flush(stack->trace);
    has_failed = stack->trace->fd < 0;
    if (has_failed) {
        ds_accel__log(&stack->context->log, "trace", DS_ACCEL_LOG_WARN,
                      "%s could not be written to its end", stack->trace->path);
    }
    put_file(stack->trace);
    pthread_mutex_unlock(&trace_lock);
    stack->trace = NULL;
}

const struct ds_accel__layer_ops ds_accel__layer_trace = {
    .name = "trace",
    .start = trace_start,
    .stop = trace_stop,
    .before = trace_before,
    .after = trace_after,
};
