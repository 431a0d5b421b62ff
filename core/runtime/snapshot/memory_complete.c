/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Completion of snapshots of the caching allocator. The input is copied into a tree that has every
 * key, in the schema's order, and whose sums are correct: the blocks of a segment fill it without a
 * gap, segments do not overlap, and total, allocated and active size of a segment are the sums of
 * its blocks. (Its requested size is copied as it is.) Users of such a tree need no further checks.
 *
 * Keys that torch's snapshots lack are filled in; unknown keys, which newer writers add, are left
 * out, except in stats and allocator_settings, which are copied whole. A known key must have a
 * valid value.
 */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <stdarg.h>
#include <stdio.h>

#define POINTER_SIZE 256
/* limit for any size, so that sums do not overflow */
#define SIZE_LIMIT INT64_C(0x4000000000000000)
#define REQUIRED INT64_MIN

struct reader {
    const struct ds_accel__snapshot_text *from; /* NULL: the tree was not read from a text */
    char pointer[POINTER_SIZE];                 /* JSON pointer to the current value */
    int32_t status;                             /* status of the first failure */
    bool failed;                                /* memory is exhausted */
};

/* ---- failures and steps --------------------------------------------------------------------- */

static bool locate(const struct ds_accel__snapshot_text *from, const char *pointer, int *line,
                   int *column)
{
    return from != NULL &&
           ds_accel__config_locate(from->text, from->size_bytes, pointer, false, line, column);
}

static void fail(struct reader *reader, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Report an error of the current value, or of its member key. Only the first failure is kept. */
static void fail(struct reader *reader, const char *key, const char *format, ...)
{
    char message[256];
    char pointer[POINTER_SIZE];
    va_list arguments;
    int line = 0;
    int column = 0;

    if (reader->status < 0) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    ds_accel__copy(pointer, sizeof(pointer), reader->pointer);
    if (key != NULL) {
        ds_accel__pointer_append(pointer, sizeof(pointer), key);
    }
    if (locate(reader->from, pointer, &line, &column) ||
        locate(reader->from, reader->pointer, &line, &column)) {
        reader->status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s:%d:%d: %s", reader->from->name,
                                         line, column, message);
    } else {
        reader->status = ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: at %s: %s",
                                         reader->from != NULL ? reader->from->name : "the snapshot",
                                         pointer, message);
    }
}

static size_t enter(struct reader *reader, const char *key)
{
    size_t length = strlen(reader->pointer);

    ds_accel__pointer_append(reader->pointer, sizeof(reader->pointer), key);
    return length;
}

static size_t enter_item(struct reader *reader, size_t position)
{
    char key[24];

    snprintf(key, sizeof(key), "%zu", position);
    return enter(reader, key);
}

static void leave(struct reader *reader, size_t length)
{
    reader->pointer[length] = '\0';
}

static bool is_bad(const struct reader *reader)
{
    return reader->status < 0 || reader->failed;
}

/* ---- members -------------------------------------------------------------------------------- */

static json_int_t get_number(struct reader *reader, json_t *object, const char *key,
                             json_int_t least, json_int_t fallback)
{
    json_t *value = json_object_get(object, key);

    if (value == NULL && fallback != REQUIRED) {
        return fallback;
    }
    if (value == NULL) {
        fail(reader, NULL, "\"%s\" is missing; expected a whole number", key);
        return 0;
    }
    if (!json_is_integer(value)) {
        fail(reader, key, "\"%s\" is not a whole number", key);
        return 0;
    }
    if (json_integer_value(value) < least) {
        fail(reader, key, "\"%s\" is %lld; expected at least %lld", key,
             (long long)json_integer_value(value), (long long)least);
        return 0;
    }
    return json_integer_value(value);
}

static json_int_t get_size(struct reader *reader, json_t *object, const char *key, json_int_t least,
                           json_int_t fallback)
{
    json_int_t value = get_number(reader, object, key, least, fallback);

    if (value >= SIZE_LIMIT) {
        fail(reader, key, "\"%s\" is larger than any device's memory", key);
        return 0;
    }
    return value;
}

static const char *get_text(struct reader *reader, json_t *object, const char *key,
                            const char *fallback)
{
    json_t *value = json_object_get(object, key);

    if (value == NULL && fallback != NULL) {
        return fallback;
    }
    if (value == NULL) {
        fail(reader, NULL, "\"%s\" is missing; expected a text", key);
        return "";
    }
    if (!json_is_string(value)) {
        fail(reader, key, "\"%s\" is not a text", key);
        return "";
    }
    return json_string_value(value);
}

/* Return a member that is an array. NULL: it is missing, which is a failure if is_required, or it
 * is no array, which is always a failure. */
static json_t *get_array(struct reader *reader, json_t *object, const char *key, bool is_required)
{
    json_t *value = json_object_get(object, key);

    if (value == NULL && is_required) {
        fail(reader, NULL, "\"%s\" is missing; expected a list", key);
    } else if (value != NULL && !json_is_array(value)) {
        fail(reader, key, "\"%s\" is not a list", key);
        return NULL;
    }
    return value;
}

static bool check_object(struct reader *reader, const json_t *value, const char *what)
{
    if (!json_is_object(value)) {
        fail(reader, NULL, "expected an object, %s", what);
        return false;
    }
    return true;
}

/* Return the index of the member's value in choices. An unknown value is a failure, with result
 * 0. */
static size_t get_choice(struct reader *reader, json_t *object, const char *key,
                         const char *const *choices, size_t count)
{
    const char *text = get_text(reader, object, key, NULL);
    const char *nearest;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            return i;
        }
    }
    nearest = ds_accel__nearest(text, choices, count);
    fail(reader, key, "\"%s\" is unknown%s%s%s", key, nearest != NULL ? "; is \"" : "",
         nearest != NULL ? nearest : "", nearest != NULL ? "\" meant?" : "");
    return 0;
}

static void set(struct reader *reader, json_t *object, const char *key, json_t *value)
{
    ds_accel__json_set(object, key, value, &reader->failed);
}

static void set_number(struct reader *reader, json_t *object, const char *key, json_int_t value)
{
    set(reader, object, key, json_integer(value));
}

static void append(struct reader *reader, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        reader->failed = true;
    }
}

/* ---- frames --------------------------------------------------------------------------------- */

static json_t *read_frames(struct reader *reader, json_t *object)
{
    json_t *frames = get_array(reader, object, "frames", false);
    json_t *copy = json_array();
    size_t outside = enter(reader, "frames");

    for (size_t i = 0; i < json_array_size(frames) && !is_bad(reader); i++) {
        json_t *frame = json_array_get(frames, i);
        json_t *item = json_object();
        size_t above = enter_item(reader, i);

        if (check_object(reader, frame, "a frame")) {
            set(reader, item, "filename", json_string(get_text(reader, frame, "filename", "")));
            set(reader, item, "name", json_string(get_text(reader, frame, "name", "")));
            set_number(reader, item, "line", get_number(reader, frame, "line", INT32_MIN, 0));
        }
        append(reader, copy, item);
        leave(reader, above);
    }
    leave(reader, outside);
    return copy;
}

/* ---- segments ------------------------------------------------------------------------------- */

static const char *const state_names[] = {"inactive", "active_pending_free", "active_allocated",
                                          "active_awaiting_free"};

/* Return the first entry of a block's member history, which torch's first snapshot format has.
 * NULL: there is none, or it is no object, which is a failure. */
static json_t *first_history(struct reader *reader, json_t *block)
{
    json_t *history = get_array(reader, block, "history", false);
    json_t *first = json_array_get(history, 0);

    if (first != NULL && !json_is_object(first)) {
        fail(reader, "history", "\"history\" is not a list of objects");
        return NULL;
    }
    return first;
}

static void set_history(struct reader *reader, json_t *block, json_int_t address,
                        json_int_t requested, bool is_active)
{
    json_t *history = json_array();
    json_t *entry;

    if (is_active) {
        entry = json_object();
        set_number(reader, entry, "addr", address);
        set(reader, entry, "frames", json_incref(json_object_get(block, "frames")));
        set_number(reader, entry, "real_size", requested);
        append(reader, history, entry);
    }
    set(reader, block, "history", history);
}

/* Sums over the blocks of a segment. */
struct sums {
    json_int_t total;
    json_int_t allocated;
    json_int_t active;
    json_int_t requested;
};

static void add_block(struct sums *sums, size_t state, json_int_t size, json_int_t requested)
{
    sums->total += size;
    if (state != DS_ACCEL__PIECE_FREE) {
        sums->active += size;
        sums->requested += requested;
    }
    if (state == DS_ACCEL__PIECE_ALLOCATED) {
        sums->allocated += size;
    }
}

static json_t *read_block(struct reader *reader, json_t *block, json_int_t address, json_int_t room,
                          struct sums *sums)
{
    json_t *copy = json_object();
    json_int_t size;
    json_int_t requested;
    json_t *history;
    size_t state;

    if (!check_object(reader, block, "a block")) {
        return copy;
    }
    size = get_size(reader, block, "size", 1, REQUIRED);
    if (size > room) {
        fail(reader, "size", "the block ends past the end of its segment");
    }
    if (get_size(reader, block, "address", 0, address) != address) {
        fail(reader, "address", "the block does not begin where the one before it ends");
    }
    state = get_choice(reader, block, "state", state_names, ARRAY_SIZE(state_names));
    state = state == 3 ? DS_ACCEL__PIECE_PENDING : state;
    history = first_history(reader, block);
    requested = get_size(reader, history, "real_size", 0, state == 0 ? 0 : size);
    requested = get_size(reader, block, "requested_size", 0, requested);
    if (requested > size) {
        fail(reader, "requested_size", "\"requested_size\" is more than the block's size");
    }
    if (is_bad(reader)) {
        return copy;
    }
    add_block(sums, state, size, requested);
    set_number(reader, copy, "address", address);
    set_number(reader, copy, "size", size);
    set_number(reader, copy, "requested_size", requested);
    set(reader, copy, "state", json_string(state_names[state]));
    set(reader, copy, "frames",
        read_frames(reader, json_object_get(block, "frames") == NULL ? history : block));
    set_history(reader, copy, address, requested, state != DS_ACCEL__PIECE_FREE);
    return copy;
}

static json_t *read_blocks(struct reader *reader, json_t *segment, json_int_t address,
                           json_int_t total, struct sums *sums)
{
    json_t *blocks = get_array(reader, segment, "blocks", true);
    json_t *copy = json_array();
    size_t outside = enter(reader, "blocks");

    for (size_t i = 0; i < json_array_size(blocks) && !is_bad(reader); i++) {
        size_t above = enter_item(reader, i);

        append(reader, copy,
               read_block(reader, json_array_get(blocks, i), address + sums->total,
                          total - sums->total, sums));
        leave(reader, above);
    }
    leave(reader, outside);
    if (!is_bad(reader) && sums->total != total) {
        fail(reader, "blocks", "the blocks add up to %lld bytes, and the segment has %lld",
             (long long)sums->total, (long long)total);
    }
    return copy;
}

/* Read a size, which must equal the sum over the blocks if it is present, and return the sum as a
 * JSON number. */
static json_t *read_sum(struct reader *reader, json_t *segment, const char *key, json_int_t sum)
{
    json_int_t given = get_size(reader, segment, key, 0, sum);

    if (given != sum) {
        fail(reader, key, "\"%s\" is %lld, and the blocks add up to %lld", key, (long long)given,
             (long long)sum);
    }
    return json_integer(sum);
}

static json_t *read_pool(struct reader *reader, json_t *segment)
{
    json_t *pool = get_array(reader, segment, "segment_pool_id", false);
    json_t *copy = json_array();

    if (pool != NULL && (json_array_size(pool) != 2 || !json_is_integer(json_array_get(pool, 0)) ||
                         !json_is_integer(json_array_get(pool, 1)))) {
        fail(reader, "segment_pool_id", "\"segment_pool_id\" is not a list of two whole numbers");
    }
    for (size_t i = 0; i < 2; i++) {
        append(reader, copy, json_integer(json_integer_value(json_array_get(pool, i))));
    }
    return copy;
}

static json_t *read_segment(struct reader *reader, json_t *segment)
{
    static const char *const types[] = {"small", "large"};
    json_t *copy = json_object();
    struct sums sums = {0};
    json_int_t address;
    json_int_t total;
    json_t *expandable;
    json_t *blocks;

    if (!check_object(reader, segment, "a segment")) {
        return copy;
    }
    address = get_size(reader, segment, "address", 0, REQUIRED);
    total = get_size(reader, segment, "total_size", 1, REQUIRED);
    expandable = json_object_get(segment, "is_expandable");
    if (expandable != NULL && !json_is_boolean(expandable)) {
        fail(reader, "is_expandable", "\"is_expandable\" is neither true nor false");
    }
    if (json_object_get(segment, "segment_type") != NULL) {
        get_choice(reader, segment, "segment_type", types, ARRAY_SIZE(types));
    }
    set_number(reader, copy, "device", get_number(reader, segment, "device", 0, 0));
    if (get_number(reader, segment, "device", 0, 0) >= DS_ACCEL__DEVICE_LIMIT) {
        fail(reader, "device", "no machine has so many devices");
    }
    blocks = read_blocks(reader, segment, address, total, &sums);
    set_number(reader, copy, "address", address);
    set_number(reader, copy, "total_size", total);
    set(reader, copy, "allocated_size",
        read_sum(reader, segment, "allocated_size", sums.allocated));
    set(reader, copy, "active_size", read_sum(reader, segment, "active_size", sums.active));
    set_number(reader, copy, "requested_size",
               get_size(reader, segment, "requested_size", 0, sums.requested));
    set_number(reader, copy, "stream", get_number(reader, segment, "stream", INT64_MIN, 0));
    set(reader, copy, "segment_type",
        json_string(get_text(reader, segment, "segment_type", types[1])));
    set(reader, copy, "segment_pool_id", read_pool(reader, segment));
    set(reader, copy, "is_expandable", json_boolean(json_is_true(expandable)));
    set(reader, copy, "frames", read_frames(reader, segment));
    set(reader, copy, "blocks", blocks);
    return copy;
}

struct range {
    json_int_t device;
    json_int_t address;
    json_int_t size;
    size_t position;
};

static int compare_ranges(const void *a, const void *b)
{
    const struct range *left = a;
    const struct range *right = b;

    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    return left->address < right->address ? -1 : left->address > right->address;
}

/* Check that segments do not overlap, and that the sum of their sizes does not overflow. */
static void check_ranges(struct reader *reader, json_t *segments)
{
    size_t count = json_array_size(segments);
    struct range *ranges = calloc(count + 1, sizeof(*ranges));
    uint64_t total = 0;

    if (ranges == NULL) {
        reader->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *segment = json_array_get(segments, i);

        ranges[i] = (struct range){json_integer_value(json_object_get(segment, "device")),
                                   json_integer_value(json_object_get(segment, "address")),
                                   json_integer_value(json_object_get(segment, "total_size")), i};
    }
    for (size_t i = 0; i < count && !is_bad(reader); i++) {
        total += (uint64_t)ranges[i].size;
        if (total >= (uint64_t)SIZE_LIMIT) {
            size_t outside = enter_item(reader, i);

            fail(reader, "total_size", "the segments add up to more than any machine's memory");
            leave(reader, outside);
        }
    }
    qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (size_t i = 1; i < count && !is_bad(reader); i++) {
        if (ranges[i].device == ranges[i - 1].device &&
            ranges[i].address - ranges[i - 1].address < ranges[i - 1].size) {
            size_t outside = enter_item(reader, ranges[i].position);

            fail(reader, "address", "the segment overlaps the one at position %zu",
                 ranges[i - 1].position);
            leave(reader, outside);
        }
    }
    free(ranges);
}

static json_t *read_segments(struct reader *reader, json_t *segments, bool is_member)
{
    json_t *copy = json_array();
    size_t outside = is_member ? enter(reader, "segments") : strlen(reader->pointer);

    for (size_t i = 0; i < json_array_size(segments) && !is_bad(reader); i++) {
        size_t above = enter_item(reader, i);

        append(reader, copy, read_segment(reader, json_array_get(segments, i)));
        leave(reader, above);
    }
    if (!is_bad(reader)) {
        check_ranges(reader, copy);
    }
    leave(reader, outside);
    return copy;
}

/* ---- traces --------------------------------------------------------------------------------- */

static const char *const action_names[] = {
    "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
    "segment_map", "segment_unmap",  "snapshot",       "oom",           "user_defined",
};
#define ACTION_SNAPSHOT 7u
#define ACTION_OOM 8u

static json_t *read_event(struct reader *reader, json_t *event)
{
    json_t *copy = json_object();
    json_int_t fallback;
    size_t action;

    if (!check_object(reader, event, "an event of a trace")) {
        return copy;
    }
    action = get_choice(reader, event, "action", action_names, ARRAY_SIZE(action_names));
    fallback = action >= ACTION_SNAPSHOT ? 0 : REQUIRED;
    set(reader, copy, "action", json_string(action_names[action]));
    set_number(reader, copy, "addr", get_size(reader, event, "addr", 0, fallback));
    set_number(reader, copy, "size", get_size(reader, event, "size", 0, fallback));
    set_number(reader, copy, "stream", get_number(reader, event, "stream", INT64_MIN, 0));
    set_number(reader, copy, "time_us", get_number(reader, event, "time_us", 0, 0));
    if (action == ACTION_OOM) {
        set_number(reader, copy, "device_free", get_size(reader, event, "device_free", 0, 0));
    }
    set(reader, copy, "frames", read_frames(reader, event));
    return copy;
}

static json_t *read_traces(struct reader *reader, json_t *tree)
{
    json_t *traces = get_array(reader, tree, "device_traces", false);
    json_t *copy = json_array();
    size_t outside = enter(reader, "device_traces");

    if (json_array_size(traces) > DS_ACCEL__DEVICE_LIMIT) {
        fail(reader, NULL, "no machine has so many devices");
    }
    for (size_t i = 0; i < json_array_size(traces) && !is_bad(reader); i++) {
        json_t *trace = json_array_get(traces, i);
        json_t *events = json_array();
        size_t above = enter_item(reader, i);

        if (!json_is_array(trace)) {
            fail(reader, NULL, "expected a list, the events of one device");
        }
        for (size_t j = 0; j < json_array_size(trace) && !is_bad(reader); j++) {
            size_t inner = enter_item(reader, j);

            append(reader, events, read_event(reader, json_array_get(trace, j)));
            leave(reader, inner);
        }
        append(reader, copy, events);
        leave(reader, above);
    }
    leave(reader, outside);
    return copy;
}

/* ---- the whole snapshot --------------------------------------------------------------------- */

static json_t *read_settings(struct reader *reader, json_t *tree)
{
    json_t *settings = json_object_get(tree, "allocator_settings");

    if (settings != NULL && !json_is_object(settings)) {
        fail(reader, "allocator_settings", "\"allocator_settings\" is not an object");
    }
    return settings != NULL ? json_incref(settings) : json_object();
}

static json_t *read_stats(struct reader *reader, json_t *tree)
{
    json_t *stats = get_array(reader, tree, "stats", false);
    json_t *copy = json_array();
    size_t outside = enter(reader, "stats");

    for (size_t i = 0; i < json_array_size(stats) && !is_bad(reader); i++) {
        json_t *item = json_array_get(stats, i);
        size_t above = enter_item(reader, i);
        const char *key;
        json_t *value;

        if (check_object(reader, item, "the statistics of one device")) {
            json_object_foreach(item, key, value)
            {
                if (!json_is_number(value)) {
                    fail(reader, key, "expected a number");
                    break;
                }
            }
        }
        append(reader, copy, json_incref(item));
        leave(reader, above);
    }
    leave(reader, outside);
    return copy;
}

static json_t *read_tree(struct reader *reader, json_t *tree)
{
    bool is_list = json_is_array(tree);
    json_t *copy = json_object();
    json_t *segments;

    if (!is_list && !json_is_object(tree)) {
        fail(reader, NULL, "expected an object with \"segments\"");
        return copy;
    }
    if (get_number(reader, tree, "schema_version", 1, 1) != 1) {
        fail(reader, "schema_version", "\"schema_version\" is not 1: a newer ds-accel wrote it");
    }
    segments = is_list ? tree : get_array(reader, tree, "segments", true);
    set_number(reader, copy, "schema_version", 1);
    set(reader, copy, "backend", json_string(get_text(reader, tree, "backend", "")));
    set_number(reader, copy, "pid", get_number(reader, tree, "pid", 0, 0));
    set_number(reader, copy, "time_us", get_number(reader, tree, "time_us", 0, 0));
    set(reader, copy, "segments", read_segments(reader, segments, !is_list));
    set(reader, copy, "device_traces", read_traces(reader, tree));
    set(reader, copy, "allocator_settings", read_settings(reader, tree));
    set(reader, copy, "stats", read_stats(reader, tree));
    return copy;
}

int32_t ds_accel__memory_snapshot_complete(json_t *tree, const struct ds_accel__snapshot_text *from,
                                           json_t **tree_out)
{
    struct reader reader = {.from = from};
    json_t *copy = read_tree(&reader, tree);

    if (reader.status >= 0 && (reader.failed || copy == NULL)) {
        reader.status = ds_accel__no_memory();
    }
    if (reader.status < 0) {
        json_decref(copy);
        return reader.status;
    }
    *tree_out = copy;
    return DS_ACCEL_OK;
}
