/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The message for an out-of-memory error. The request can fail for one of three reasons: the device
 * has too little free memory; the allocator's limit is reached; or the free memory is in pieces
 * that are too small. Settings help only for the last two reasons:
 *
 *   pieces too small   growable segments combine pages, if the backend has virtual memory;
 *                      otherwise max_split_bytes keeps large blocks whole
 *   limit reached      a higher limit
 *
 * Some drivers limit the size of one allocation, regardless of free memory. No setting helps a
 * larger request: the program must allocate several smaller pieces.
 *
 * The advice prefers growable segments, because they need no additional memory. Segments that are
 * free as a whole have already been released. A garbage collection threshold only releases such
 * segments earlier, so it would not have helped. Free blocks of other pools do not help this
 * request.
 */
#include "runtime/oom.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

/* Return a - b, or 0 if b is larger. */
static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Return the free bytes in segments of all streams and pools. */
static uint64_t free_bytes(const struct ds_accel__oom_facts *facts)
{
    return less(facts->reserved_bytes, add(facts->allocated_bytes, facts->pending_bytes));
}

static uint64_t usable_bytes(const struct ds_accel__oom_facts *facts)
{
    return less(free_bytes(facts), facts->elsewhere_bytes);
}

/* Return the bytes that the driver could still allocate, regardless of the limit. */
static uint64_t device_room(const struct ds_accel__oom_facts *facts)
{
    return facts->device_total_bytes != 0 ? facts->device_free_bytes : 0;
}

static uint64_t room(const struct ds_accel__oom_facts *facts)
{
    uint64_t device = device_room(facts);
    uint64_t below = less(facts->limit_bytes, facts->reserved_bytes);

    return facts->limit_bytes != 0 && below < device ? below : device;
}

enum ds_accel__oom_advice ds_accel__oom_advise(const struct ds_accel__oom_facts *facts)
{
    uint64_t asked = facts->asked_bytes;
    uint64_t usable = usable_bytes(facts);
    bool is_in_pieces = usable > 0 && facts->largest_free_bytes < asked;

    if (facts->largest_bytes != 0 && asked > facts->largest_bytes &&
        (facts->device_total_bytes == 0 || asked <= facts->device_total_bytes)) {
        return DS_ACCEL__OOM_ADVICE_SMALLER;
    }
    if (!facts->is_growable && facts->can_grow && is_in_pieces &&
        add(usable, room(facts)) >= asked) {
        return DS_ACCEL__OOM_ADVICE_GROWABLE;
    }
    if (facts->limit_bytes != 0 && room(facts) < device_room(facts) &&
        add(device_room(facts), facts->is_growable ? usable : 0) >= asked) {
        return DS_ACCEL__OOM_ADVICE_LIMIT;
    }
    if (!facts->is_growable && !facts->can_grow && facts->max_split_bytes == 0 && is_in_pieces &&
        add(usable, room(facts)) >= asked) {
        return DS_ACCEL__OOM_ADVICE_SPLIT;
    }
    return DS_ACCEL__OOM_ADVICE_NONE;
}

/* ---- the text ------------------------------------------------------------------------------- */

struct line {
    char *text;
    size_t size;
    size_t length;
};

static void put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *line, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->length, line->size - line->length, format, arguments);
    va_end(arguments);
    if (length > 0) {
        line->length += (size_t)length;
        line->length = line->length < line->size ? line->length : line->size - 1;
    }
}

static void put_size(struct line *line, const char *before, uint64_t bytes, const char *behind)
{
    char size[32];

    ds_accel__size_text(bytes, size, sizeof(size));
    put(line, "%s%s%s", before, size, behind);
}

static void put_advice(struct line *line, const struct ds_accel__oom_facts *facts)
{
    uint64_t have = add(usable_bytes(facts), room(facts));
    uint64_t needed;

    switch (ds_accel__oom_advise(facts)) {
    case DS_ACCEL__OOM_ADVICE_GROWABLE:
        put(line, "; enough is free, but in pieces: growable_segments would have helped, and is "
                  "off");
        break;
    case DS_ACCEL__OOM_ADVICE_LIMIT:
        needed = less(facts->asked_bytes, facts->is_growable ? usable_bytes(facts) : 0);
        put_size(line, "; the device has room: limit_bytes of at least ",
                 add(facts->reserved_bytes, needed), " would have helped");
        break;
    case DS_ACCEL__OOM_ADVICE_SPLIT:
        put(line, "; enough is free, but in pieces: max_split_bytes would have kept large blocks "
                  "whole, and is off");
        break;
    case DS_ACCEL__OOM_ADVICE_SMALLER:
        put_size(line, "; the driver allocates at most ", facts->largest_bytes,
                 " in one allocation (max_allocation_bytes): make several smaller ones");
        break;
    case DS_ACCEL__OOM_ADVICE_NONE:
        if (have < facts->asked_bytes) {
            put_size(line, "; ", facts->asked_bytes - have, " more would be needed");
        } else {
            put(line, "; enough is free, but in pieces");
        }
        break;
    }
}

void ds_accel__oom_describe(const struct ds_accel__oom_facts *facts, char *text, size_t text_size)
{
    struct line line = {text, text_size, 0};
    struct ds_accel__memory_sums sums = {.free_bytes = free_bytes(facts),
                                         .largest_free_bytes = facts->largest_free_bytes};

    if (text_size == 0) {
        return;
    }
    text[0] = '\0';
    sums.largest_free_bytes = sums.largest_free_bytes < sums.free_bytes ? sums.largest_free_bytes
                                                                        : sums.free_bytes;
    put(&line, "%s: out of memory: ", facts->device != NULL ? facts->device : "the device");
    put_size(&line, "", facts->asked_bytes, " requested");
    put_size(&line, ", ", facts->allocated_bytes, " allocated");
    if (facts->pending_bytes > 0) {
        put_size(&line, ", ", facts->pending_bytes, " waiting for streams");
    }
    put_size(&line, ", ", facts->reserved_bytes, " reserved");
    put_size(&line, ", largest free block ", facts->largest_free_bytes, "");
    put(&line, ", fragmentation %u %%", ds_accel__fragmentation_percent(&sums));
    if (facts->elsewhere_bytes > 0) {
        put_size(&line, ", ", facts->elsewhere_bytes, " free in other streams or pools");
    }
    if (facts->limit_bytes > 0) {
        put_size(&line, ", limit ", facts->limit_bytes, "");
    }
    if (facts->device_total_bytes > 0) {
        put_size(&line, ", device ", facts->device_free_bytes, "");
        put_size(&line, " of ", facts->device_total_bytes, " free");
    }
    put_advice(&line, facts);
}

unsigned ds_accel__fragmentation_percent(const struct ds_accel__memory_sums *sums)
{
    if (sums->free_bytes == 0) {
        return 0;
    }
    return (unsigned)(100.0 * (double)(sums->free_bytes - sums->largest_free_bytes) /
                          (double)sums->free_bytes +
                      0.5);
}
