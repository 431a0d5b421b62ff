/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * All calls that move data on device 0, with checks of the results.
 *
 * Each copy has its own offset, size and direction, streams wait for each other's events, and each
 * byte depends on its position, so that swapped arguments are detected. A step that fails ends the
 * scenario; the objects made so far are released.
 */
#include "drive.h"

#include <stdlib.h>
#include <string.h>

#define UP DS_ACCEL_COPY_HOST_TO_DEVICE
#define DOWN DS_ACCEL_COPY_DEVICE_TO_HOST
#define WITHIN DS_ACCEL_COPY_DEVICE_TO_DEVICE

/* Fills bytes with a pattern. The period is not a power of two, so that bytes at another offset
 * differ. */
void drive_pattern(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 251 + seed * 31);
    }
}

int drive_is_pattern(const unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (unsigned char)(i * 7 + i / 251 + seed * 31)) {
            return 0;
        }
    }
    return 1;
}

static int is_repeated(const unsigned char *bytes, size_t size, const unsigned char *pattern,
                       size_t width)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != pattern[i % width]) {
            return 0;
        }
    }
    return 1;
}

static unsigned char *make_bytes(size_t size, unsigned seed)
{
    unsigned char *bytes = malloc(size);

    if (bytes == NULL) {
        abort();
    }
    drive_pattern(bytes, size, seed);
    return bytes;
}

void drive_count(void *run_of, int32_t status)
{
    struct run *run = run_of;

    run->task_count += status == DS_ACCEL_OK;
}

int32_t drive_make(struct run *run)
{
    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->second) < 0 ||
        CALL(run, mem_alloc_pinned, run->device, BYTES, 0, 0, (void **)&run->pinned) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->two) < 0 ||
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_TIMING, &run->start) < 0 ||
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_TIMING, &run->end) < 0) {
        return -1;
    }
    return 0;
}

void drive_unmake(struct run *run)
{
    if (run->device == NULL) {
        return;
    }
    if (run->is_capturing) {
        ASK(run, graph_capture_end, run->one, &run->graph);
    }
    RELEASE(run, device_synchronize, run->device, UINT64_MAX); /* queued work uses the memory */
    DROP(run, graph_exec_destroy, run->exec);
    DROP(run, graph_destroy, run->graph);
    run->table->event_destroy(run->end);
    run->table->event_destroy(run->start);
    run->table->stream_destroy(run->two);
    run->table->stream_destroy(run->one);
    if (run->pinned != NULL) {
        RELEASE(run, mem_free_pinned, run->device, run->pinned);
    }
    if (run->second != NULL) {
        RELEASE(run, mem_free, run->device, run->second);
    }
    if (run->first != NULL) {
        RELEASE(run, mem_free, run->device, run->first);
    }
}

/* ---- sizes, widths and host memory ---------------------------------------------------------- */

/* Waits for the stream before memory is released, even if waiting fails once. */
static int32_t finish(struct run *run, ds_accel_plugin_stream_t *stream)
{
    if (CALL(run, stream_synchronize, stream, UINT64_MAX) >= 0) {
        return 0;
    }
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    return -1;
}

#define PART ((size_t)BYTES / 4)

/* Copies up, within and down, each with its own offset and size. */
static int32_t move(struct run *run, ds_accel_plugin_stream_t *stream, unsigned char *source,
                    unsigned char *got, unsigned seed)
{
    unsigned char *memory = run->first;
    int32_t status = -1;

    memset(got, 0, PART);
    if (CALL(run, mem_copy_async, stream, memory, source, PART, UP) >= 0 &&
        CALL(run, mem_copy_async, stream, memory + 2 * PART, memory, PART, WITHIN) >= 0 &&
        CALL(run, mem_copy_async, stream, got, memory + 2 * PART, PART - 3, DOWN) >= 0) {
        status = 0;
    }
    if (finish(run, stream) < 0 || status < 0) {
        return -1;
    }
    drive_want(run, drive_is_pattern(got, PART - 3, seed), "what came down is what went up");
    drive_want(run, got[PART - 1] == 0 && got[PART - 3] == 0, "no more than was asked for");
    return 0;
}

static int32_t fill(struct run *run, unsigned char *got)
{
    static const unsigned char pattern[4] = {0x12, 0x34, 0x56, 0x78};

    for (uint32_t width = 1; width <= 4; width *= 2) {
        if (CALL(run, mem_fill_async, run->one, run->first, pattern, width, 400) < 0 ||
            CALL(run, mem_copy_async, run->one, got, run->first, 400, DOWN) < 0 ||
            finish(run, run->one) < 0) {
            return -1;
        }
        drive_want(run, is_repeated(got, 400, pattern, width), "a fill's pattern");
    }
    return 0;
}

static int32_t use_host_memory(struct run *run, unsigned char *own, unsigned char *got)
{
    int32_t status;

    drive_pattern(own, PART, 5);
    if (HAS(run, mem_register)) {
        if (CALL(run, mem_register, run->device, own, PART, 0) < 0) {
            return -1;
        }
        status = move(run, run->one, own, got, 5);
        RELEASE(run, mem_unregister, run->device, own);
        if (status < 0) {
            return -1;
        }
    }
    drive_pattern(run->pinned, PART, 6);
    return move(run, run->two, run->pinned, got, 6);
}

/* ---- ordered work --------------------------------------------------------------------------- */

static const unsigned char tail[4] = {4, 3, 2, 1};

#define TAIL_BYTES 64u

/*
 * Copies pinned -> first on one stream; after its event, first -> second and a tail on the other.
 */
static int32_t queue_copies(struct run *run, double copy_ms)
{
    drive_pattern(run->pinned, BYTES, 1);
    if (CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, mem_copy_async, run->one, run->first, run->pinned, BYTES, UP) < 0 ||
        CALL(run, event_record, run->end, run->one) < 0) {
        return -1;
    }
    if (copy_ms > 0) {
        drive_want(run, ASK(run, event_query, run->end) == DS_ACCEL_NOT_READY,
                   "an event behind a slow copy is not ready");
        drive_want(run, ASK(run, stream_query, run->one) == DS_ACCEL_NOT_READY,
                   "a stream with a slow copy is not ready");
    }
    if (CALL(run, stream_wait_event, run->two, run->end) < 0 ||
        CALL(run, mem_copy_async, run->two, run->second, run->first, BYTES - TAIL_BYTES, WITHIN) <
            0 ||
        CALL(run, mem_fill_async, run->two, (char *)run->second + BYTES - TAIL_BYTES, tail, 4,
             TAIL_BYTES) < 0 ||
        (HAS(run, stream_host_task) &&
         CALL(run, stream_host_task, run->two, drive_count, run) < 0) ||
        CALL(run, event_record, run->end, run->two) < 0) {
        return -1;
    }
    return 0;
}

static int32_t wait_for_copies(struct run *run, double copy_ms)
{
    double elapsed = -1;
    double turned = 1;
    int32_t status;

    if (CALL(run, event_synchronize, run->end, UINT64_MAX) < 0 ||
        CALL(run, stream_synchronize, run->two, UINT64_MAX) < 0 ||
        CALL(run, event_elapsed_ms, run->start, run->end, &elapsed) < 0 ||
        CALL(run, event_elapsed_ms, run->end, run->start, &turned) < 0) {
        return -1;
    }
    status = CALL(run, event_query, run->end);
    if (status < 0) {
        return -1;
    }
    drive_want(run, status == DS_ACCEL_OK, "an event that was waited for is reached");
    status = CALL(run, stream_query, run->two);
    if (status < 0) {
        return -1;
    }
    drive_want(run, status == DS_ACCEL_OK, "a stream that was waited for is idle");
    drive_want(run, elapsed >= copy_ms && elapsed < 500 * (copy_ms + 1),
               "the time between two events");
    drive_want(run, turned <= 0 && turned + elapsed < 0.01 && turned + elapsed > -0.01,
               "the time between two events, the other way round");
    drive_want(run, !HAS(run, stream_host_task) || run->task_count == 1, "the host task runs once");
    return 0;
}

static int32_t check_copies(struct run *run, unsigned char *got)
{
    if (CALL(run, mem_copy, run->device, got, run->second, BYTES, DOWN) < 0) {
        return -1;
    }
    drive_want(run, drive_is_pattern(got, BYTES - TAIL_BYTES, 1), "what was copied");
    drive_want(run, is_repeated(got + BYTES - TAIL_BYTES, TAIL_BYTES, tail, 4), "what was filled");
    if (CALL(run, mem_copy, run->device, got, run->first, BYTES, DOWN) < 0) {
        return -1;
    }
    drive_want(run, drive_is_pattern(got, BYTES, 1), "what was copied first");
    return 0;
}

/* Captures a fill of the first memory, and launches the graph twice. */
static int32_t work_graph(struct run *run, unsigned char *got)
{
    const unsigned char byte = 0x5a;

    if (!HAS(run, graph_capture_begin)) {
        return 0;
    }
    if (CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_GLOBAL) < 0) {
        return -1;
    }
    run->is_capturing = 1;
    if (CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES) < 0) {
        return -1;
    }
    run->is_capturing = 0;
    if (CALL(run, graph_capture_end, run->one, &run->graph) < 0 ||
        CALL(run, graph_instantiate, run->graph, 0, &run->exec) < 0 ||
        CALL(run, graph_launch, run->exec, run->one) < 0 ||
        CALL(run, graph_launch, run->exec, run->one) < 0 ||
        CALL(run, stream_synchronize, run->one, UINT64_MAX) < 0 ||
        CALL(run, mem_copy, run->device, got, run->first, BYTES, DOWN) < 0) {
        return -1;
    }
    drive_want(run, is_repeated(got, BYTES, &byte, 1), "what was captured");
    return 0;
}

/* ---- the scenario --------------------------------------------------------------------------- */

/* Checks that allocated memory is not counted as free, and that the total does not change. */
static int32_t ask_memory(struct run *run)
{
    struct ds_accel_memory_info before = {.struct_size = sizeof(before)};
    struct ds_accel_memory_info after = {.struct_size = sizeof(after)};
    int32_t status;
    void *more = NULL;

    if (CALL(run, mem_info, run->device, &before) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &more) < 0) {
        return -1;
    }
    status = CALL(run, mem_info, run->device, &after);
    if (status >= 0) {
        drive_want(run, before.available_bytes <= before.total_bytes - 2 * (uint64_t)BYTES,
                   "what there is of memory");
        drive_want(run,
                   before.available_bytes > after.available_bytes &&
                       before.available_bytes - after.available_bytes >= BYTES,
                   "an allocation takes of what is available");
        drive_want(run, before.total_bytes == after.total_bytes, "the total stays as it is");
    }
    RELEASE(run, mem_free, run->device, more);
    return status;
}

/* Measures both directions between two reached marks. */
static int32_t time_marks(struct run *run, double *forth_out, double *back_out)
{
    if (CALL(run, event_synchronize, run->end, UINT64_MAX) < 0 ||
        CALL(run, event_synchronize, run->start, UINT64_MAX) < 0 ||
        CALL(run, event_elapsed_ms, run->start, run->end, forth_out) < 0 ||
        CALL(run, event_elapsed_ms, run->end, run->start, back_out) < 0) {
        return -1;
    }
    drive_want(run, *back_out + *forth_out < 0.01 && *back_out + *forth_out > -0.01,
               "the time between two marks, and the other way round");
    return 0;
}

/* Marks of two streams may be reached in any order; here the second mark comes first. */
static int32_t time_between_streams(struct run *run, double copy_ms)
{
    const double most = 500 * (copy_ms + 1);
    double forth = 0;
    double back = 0;

    if (CALL(run, mem_copy_async, run->one, run->first, run->pinned, BYTES, UP) < 0 ||
        CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, event_record, run->end, run->two) < 0 || time_marks(run, &forth, &back) < 0) {
        return -1;
    }
    drive_want(run, forth > -most && forth < most, "the time between marks of two streams");
    drive_want(run, copy_ms <= 0 || forth < 0, "the mark behind a slow copy is the later one");
    if (CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, mem_copy_async, run->one, run->first, run->pinned, BYTES, UP) < 0 ||
        CALL(run, event_record, run->end, run->one) < 0 || time_marks(run, &forth, &back) < 0) {
        return -1;
    }
    drive_want(run, forth >= copy_ms && forth < most, "the time between marks of one stream");
    return 0;
}

void drive_work(struct run *run)
{
    double copy_ms = run->arguments[0] != NULL ? atof(run->arguments[0]) : 0;
    unsigned char *source = make_bytes(PART, 1);
    unsigned char *got = make_bytes(BYTES, 0);

    (void)(drive_make(run) == 0 && move(run, run->one, source, got, 1) == 0 &&
           move(run, run->two, source, got, 1) == 0 && fill(run, got) == 0 &&
           queue_copies(run, copy_ms) == 0 && wait_for_copies(run, copy_ms) == 0 &&
           check_copies(run, got) == 0 && work_graph(run, got) == 0 &&
           use_host_memory(run, source, got) == 0 && ask_memory(run) == 0 &&
           time_between_streams(run, copy_ms) == 0);
    if (run->device != NULL) {
        CALL(run, device_health, run->device);
    }
    drive_unmake(run);
    free(source);
    free(got);
}

/* ---- pageable memory ------------------------------------------------------------------------ */

/* Copies ranges that touch, overlap and contain each other, on two streams, all in flight at
 * once. */
static void overlap(struct run *run, unsigned char *source, unsigned char *got)
{
    static const struct {
        size_t from;
        size_t size;
    } parts[] = {{0, PART / 2}, {PART / 2, PART / 2}, {PART / 4, PART / 2}, {PART / 3, PART / 9},
                 {0, PART},     {PART - 100, 100}};
    ds_accel_plugin_stream_t *streams[] = {run->one, run->two};
    unsigned char *places[] = {run->first, run->second};

    for (unsigned i = 0; i < 6; i++) {
        CALL(run, mem_copy_async, streams[i % 2], places[i % 2] + parts[i].from,
             source + parts[i].from, parts[i].size, UP);
    }
    if (CALL(run, device_synchronize, run->device, UINT64_MAX) >= 0 &&
        CALL(run, mem_copy, run->device, got, run->first, PART, DOWN) >= 0) {
        drive_want(run, drive_is_pattern(got, PART, 1), "overlapping copies");
    }
}

/*
 * Frees a buffer as soon as an event shows that its copy is done; another buffer may reuse its
 * address: its bytes must arrive, and no stale map may interfere.
 */
static void reuse(struct run *run, unsigned char *got)
{
    for (unsigned round = 0; round < 20; round++) {
        size_t size = PART - round * 512;
        unsigned char *bytes = make_bytes(PART, round);
        int is_done = CALL(run, mem_copy_async, run->one, run->first, bytes, size, UP) >= 0 &&
                      CALL(run, event_record, run->end, run->one) >= 0 &&
                      CALL(run, event_synchronize, run->end, UINT64_MAX) >= 0;

        free(bytes);
        if (!is_done || CALL(run, mem_copy, run->device, got, run->first, size, DOWN) < 0) {
            break;
        }
        drive_want(run, drive_is_pattern(got, size, round), "a buffer at a former one's address");
    }
}

void drive_pageable(struct run *run)
{
    unsigned char *source = make_bytes(PART, 1);
    unsigned char *got = make_bytes(PART, 0);

    if (drive_make(run) == 0) {
        overlap(run, source, got);
        reuse(run, got);
        overlap(run, source, got);
    }
    drive_unmake(run);
    free(source);
    free(got);
}
