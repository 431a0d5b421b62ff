/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Replays recorded allocations. The events of a trace become operations on numbered blocks, and
 * these run through the caching allocator itself, with one set of settings after another, over a
 * device that only counts.
 *
 * A trace begins in the middle of a process: blocks that it frees without having allocated them,
 * and blocks that are live at its end without an allocation in it, existed before the trace; they
 * are allocated first. An allocation whose failure was recorded is replayed too; if it succeeds
 * now, it is freed at once, because its lifetime is unknown. Unless the settings contain
 * capacity_bytes, the device has as much memory as it had at the first recorded failure; without a
 * failure its memory is unlimited.
 */
#include "memtools/memory_replay.h"
#include "base/json.h"
#include "base/text.h"
#include "memtools/memory_read.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/oom.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNLIMITED_BYTES (UINT64_C(1) << 52) /* the address space is many times larger */
#define TRY_LIMIT 64u

enum operation_kind {
    OPERATION_ALLOC,
    OPERATION_FREE,
    OPERATION_FAILED
};

struct operation {
    uint64_t size_bytes;
    uint32_t block;
    uint16_t stream;
    uint16_t kind;
};

struct operations {
    struct operation *items;
    size_t count;
    size_t capacity;
};

struct script {
    struct operations before; /* blocks that existed before the trace */
    struct operations during;
    uint32_t block_count;
    uint32_t stream_count;
    size_t event_count;
    size_t device;
    uint64_t capacity_bytes; /* memory of the simulated device */
    struct ds_accel__address_map live;
    struct ds_accel__address_map streams;
};

/* ---- settings ------------------------------------------------------------------------------- */

struct variant {
    char name[128];
    struct ds_accel__allocator_options options;
    uint64_t capacity_bytes;
};

enum setting_kind {
    SETTING_BYTES,
    SETTING_COUNT,
    SETTING_PART,
    SETTING_FLAG
};

#define OPTION(member) offsetof(struct ds_accel__allocator_options, member)
#define CAPACITY SIZE_MAX
#define MOST_BYTES ((double)UNLIMITED_BYTES)

static const struct setting {
    const char *key;
    const char *other_key; /* the key in torch's settings */
    enum setting_kind kind;
    size_t offset;
    double minimum;
    double maximum;
} settings[] = {
    {"growable_segments", "expandable_segments", SETTING_FLAG, OPTION(growable_segments), 0, 1},
    {"max_split_bytes", "max_split_size", SETTING_BYTES, OPTION(max_split_bytes), 0, MOST_BYTES},
    {"gc_threshold", "garbage_collection_threshold", SETTING_PART, OPTION(gc_threshold), 0, 1},
    {"limit_bytes", NULL, SETTING_BYTES, OPTION(limit_bytes), 0, MOST_BYTES},
    {"roundup_power2_divisions", NULL, SETTING_COUNT, OPTION(roundup_power2_divisions), 0, 64},
    {"small_limit_bytes", NULL, SETTING_BYTES, OPTION(small_limit_bytes), 512, MOST_BYTES},
    {"small_segment_bytes", NULL, SETTING_BYTES, OPTION(small_segment_bytes), 512, MOST_BYTES},
    {"medium_limit_bytes", NULL, SETTING_BYTES, OPTION(medium_limit_bytes), 0, MOST_BYTES},
    {"medium_segment_bytes", NULL, SETTING_BYTES, OPTION(medium_segment_bytes), 512, MOST_BYTES},
    {"large_step_bytes", NULL, SETTING_BYTES, OPTION(large_step_bytes), 512, MOST_BYTES},
    {"capacity_bytes", NULL, SETTING_BYTES, CAPACITY, 0, MOST_BYTES},
};

static const char *const alternatives[] = {
    "growable_segments=true",     "max_split_bytes=64M",      "gc_threshold=0.6",
    "roundup_power2_divisions=4", "medium_segment_bytes=64M", "small_segment_bytes=8M",
};

/* Set one setting. False if the allocator does not accept the value; then nothing is set. */
static bool set_value(struct variant *variant, const struct setting *setting, double value)
{
    char *options = (char *)&variant->options;
    size_t offset = setting->offset;
    bool is_possible = value >= setting->minimum && value <= setting->maximum;
    uint64_t whole = is_possible ? (uint64_t)value : 0;
    uint32_t count = (uint32_t)whole;
    bool flag = value != 0;

    if (!is_possible) {
        return false;
    }
    if (offset == CAPACITY) {
        variant->capacity_bytes = whole;
        return true;
    }
    switch (setting->kind) {
    case SETTING_BYTES:
        memcpy(options + offset, &whole, sizeof(whole));
        break;
    case SETTING_COUNT:
        memcpy(options + offset, &count, sizeof(count));
        break;
    case SETTING_PART:
        memcpy(options + offset, &value, sizeof(value));
        break;
    case SETTING_FLAG:
        memcpy(options + offset, &flag, sizeof(flag));
        break;
    }
    return true;
}

/* Parse a setting's value: "64M", "0.8", "true". */
static bool read_value(enum setting_kind kind, const char *text, double *value_out)
{
    static const char units[] = "KMGT";
    const char *unit;
    char *end;
    double value;

    if (kind == SETTING_FLAG) {
        *value_out = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        return *value_out != 0 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    }
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    value = strtod(text, &end);
    if (kind == SETTING_BYTES && *end != '\0') {
        unit = strchr(units, *end);
        for (const char *u = units; unit != NULL && u <= unit; u++) {
            value *= 1024;
        }
        end += unit != NULL;
    }
    *value_out = value;
    return *end == '\0' && errno == 0;
}

static int32_t apply_one(struct variant *variant, char *assignment)
{
    const char *keys[ARRAY_SIZE(settings)];
    char *value = strchr(assignment, '=');
    const char *nearest;
    double number;

    if (value == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "\"%s\" is not key=value", assignment);
    }
    *value++ = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        keys[i] = settings[i].key;
        if (strcmp(assignment, keys[i]) != 0) {
            continue;
        }
        if (!read_value(settings[i].kind, value, &number) ||
            !set_value(variant, &settings[i], number)) {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s cannot be \"%s\"", assignment, value);
        }
        return DS_ACCEL_OK;
    }
    nearest = ds_accel__nearest(assignment, keys, ARRAY_SIZE(keys));
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no setting \"%s\"%s%s%s", assignment,
                           nearest != NULL ? "; is \"" : "", nearest != NULL ? nearest : "",
                           nearest != NULL ? "\" meant?" : "");
}

/* Make a variant of the recorded settings, with those in text ("key=value,...") replaced. */
static int32_t make_variant(const struct variant *recorded, const char *text,
                            struct variant *variant)
{
    char assignment[128];
    const char *rest = text;
    const char *item;
    size_t length;
    int32_t status = DS_ACCEL_OK;

    *variant = *recorded;
    ds_accel__copy(variant->name, sizeof(variant->name), text);
    while (status >= 0 && (item = ds_accel__list_next(&rest, ',', &length)) != NULL) {
        snprintf(assignment, sizeof(assignment), "%.*s",
                 (int)(length < sizeof(assignment) ? length : sizeof(assignment) - 1), item);
        status = apply_one(variant, assignment);
    }
    return status;
}

/* Read the recorded settings; a setting whose recorded value is missing or invalid gets its
 * default. */
static void make_recorded(json_t *tree, uint64_t capacity_bytes, struct variant *variant)
{
    const json_t *given = json_object_get(tree, "allocator_settings");

    memset(variant, 0, sizeof(*variant));
    ds_accel__copy(variant->name, sizeof(variant->name), "as recorded");
    variant->capacity_bytes = capacity_bytes;
    ds_accel__allocator_defaults(&variant->options);
    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        json_t *value = json_object_get(given, settings[i].key);

        if (value == NULL && settings[i].other_key != NULL) {
            value = json_object_get(given, settings[i].other_key);
        }
        if (json_is_number(value)) {
            set_value(variant, &settings[i], json_number_value(value));
        } else if (json_is_boolean(value)) {
            set_value(variant, &settings[i], json_is_true(value));
        }
    }
    variant->options.mode = DS_ACCEL__ALLOCATOR_CACHING;
    variant->options.history_flags = 0;
}

/* ---- converting a trace to operations ------------------------------------------------------- */

static bool add_operation(struct operations *operations, enum operation_kind kind, uint32_t block,
                          uint64_t size, uint16_t stream)
{
    if (operations->count == operations->capacity) {
        size_t capacity = operations->capacity > 0 ? operations->capacity * 2 : 1024;
        struct operation *larger = realloc(operations->items, capacity * sizeof(*larger));

        if (larger == NULL) {
            return false;
        }
        operations->items = larger;
        operations->capacity = capacity;
    }
    assert(operations->count < operations->capacity);
    operations->items[operations->count++] = (struct operation){
        .size_bytes = size, .block = block, .stream = stream, .kind = (uint16_t)kind};
    return true;
}

/* Number the streams in order of appearance. If there are too many, all further streams share the
 * last number. */
static bool stream_of(struct script *script, const json_t *object, uint16_t *stream_out)
{
    json_int_t id = json_integer_value(json_object_get(object, "stream"));
    uint64_t key = (uint64_t)id * 2 + 1;
    uintptr_t number = ds_accel__address_find(&script->streams, key);

    if (number == 0) {
        script->stream_count += script->stream_count < UINT16_MAX;
        number = script->stream_count;
        if (!ds_accel__address_put(&script->streams, key, number)) {
            return false;
        }
    }
    assert(number > 0 && number <= script->stream_count);
    *stream_out = (uint16_t)(number - 1);
    return true;
}

static bool add_event(struct script *script, const json_t *event)
{
    const char *action = json_string_value(json_object_get(event, "action"));
    uint64_t key = ds_accel__json_size(event, "addr") + 1;
    uint64_t size = ds_accel__json_size(event, "size");
    uintptr_t number;
    uint16_t stream;

    if (size == 0 || !stream_of(script, event, &stream)) {
        return size == 0;
    }
    if (strcmp(action, "alloc") == 0) {
        number = ++script->block_count;
        return ds_accel__address_put(&script->live, key, number) &&
               add_operation(&script->during, OPERATION_ALLOC, (uint32_t)number - 1, size, stream);
    }
    if (strcmp(action, "oom") == 0) {
        return add_operation(&script->during, OPERATION_FAILED, 0, size, stream);
    }
    if (strcmp(action, "free_requested") != 0) {
        return true;
    }
    number = ds_accel__address_take(&script->live, key);
    if (number == 0) {
        number = ++script->block_count;
        if (!add_operation(&script->before, OPERATION_ALLOC, (uint32_t)number - 1, size, stream)) {
            return false;
        }
    }
    assert(number <= script->block_count);
    return add_operation(&script->during, OPERATION_FREE, (uint32_t)number - 1, size, stream);
}

/* Add a segment's blocks that existed before the trace began and were still live when it ended. */
static bool add_rest(struct script *script, const json_t *segment)
{
    const json_t *blocks = json_object_get(segment, "blocks");
    uint16_t stream;

    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        uint64_t size = ds_accel__json_size(block, "requested_size");

        size = size > 0 ? size : ds_accel__json_size(block, "size");
        if (ds_accel__piece_state(block) != DS_ACCEL__PIECE_ALLOCATED ||
            ds_accel__address_find(&script->live, ds_accel__json_size(block, "address") + 1) != 0) {
            continue;
        }
        if (!stream_of(script, segment, &stream) ||
            !add_operation(&script->before, OPERATION_ALLOC, script->block_count++, size, stream)) {
            return false;
        }
    }
    return true;
}

/* The device's capacity, computed as reserved memory plus free memory at the first recorded
 * failure; UNLIMITED_BYTES if no failure was recorded or the recorded sizes are impossible. */
static uint64_t find_capacity(const json_t *trace, uint64_t reserved_at_end)
{
    int64_t reserved = reserved_at_end <= UNLIMITED_BYTES ? (int64_t)reserved_at_end : -1;
    uint64_t device_free = 0;
    bool has_failed = false;
    bool overflow = false;

    for (size_t i = 0; i < json_array_size(trace); i++) {
        const json_t *event = json_array_get(trace, i);
        const char *action = json_string_value(json_object_get(event, "action"));
        uint64_t given = ds_accel__json_size(event, "size");
        int64_t size = given < UNLIMITED_BYTES ? (int64_t)given : (int64_t)UNLIMITED_BYTES;

        if (!has_failed && strcmp(action, "oom") == 0) {
            has_failed = true;
            device_free = ds_accel__json_size(event, "device_free");
        } else if (has_failed &&
                   (strcmp(action, "segment_alloc") == 0 || strcmp(action, "segment_map") == 0)) {
            overflow |= __builtin_sub_overflow(reserved, size, &reserved);
        } else if (has_failed &&
                   (strcmp(action, "segment_free") == 0 || strcmp(action, "segment_unmap") == 0)) {
            overflow |= __builtin_add_overflow(reserved, size, &reserved);
        }
    }
    if (!has_failed || overflow || reserved < 0 || reserved > (int64_t)UNLIMITED_BYTES ||
        device_free > UNLIMITED_BYTES - (uint64_t)reserved) {
        return UNLIMITED_BYTES;
    }
    return (uint64_t)reserved + device_free;
}

static int32_t read_script(json_t *tree, struct script *script)
{
    const json_t *traces = json_object_get(tree, "device_traces");
    const json_t *segments = json_object_get(tree, "segments");
    const json_t *trace = json_array_get(traces, 0);
    struct ds_accel__memory_sums sums = {0};
    bool done = true;

    for (size_t i = 1; i < json_array_size(traces); i++) {
        if (json_array_size(json_array_get(traces, i)) > json_array_size(trace)) {
            trace = json_array_get(traces, i);
            script->device = i;
        }
    }
    script->event_count = json_array_size(trace);
    if (script->event_count == 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the snapshot has no recorded events");
    }
    for (size_t i = 0; i < script->event_count && done; i++) {
        done = add_event(script, json_array_get(trace, i));
    }
    for (size_t i = 0; i < json_array_size(segments) && done; i++) {
        const json_t *segment = json_array_get(segments, i);

        if (ds_accel__json_size(segment, "device") == script->device) {
            ds_accel__memory_sum(segment, &sums);
            done = add_rest(script, segment);
        }
    }
    script->capacity_bytes = find_capacity(trace, sums.reserved_bytes);
    return done ? DS_ACCEL_OK : ds_accel__no_memory();
}

static void clear_script(struct script *script)
{
    free(script->before.items);
    free(script->during.items);
    ds_accel__address_clear(&script->live);
    ds_accel__address_clear(&script->streams);
}

/* ---- one run -------------------------------------------------------------------------------- */

struct result {
    uint64_t peak_allocated_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_segments;
    uint64_t retries;
    uint64_t device_calls; /* allocation calls to the device */
    uint64_t failures;
    uint64_t failed_bytes; /* size of the first failed allocation */
};

struct run {
    struct ds_accel__replay_device *device;
    struct ds_accel__allocator *allocator;
    struct ds_accel__arena **arenas; /* indexed by stream number */
    void **pointers;                 /* indexed by block number; NULL: not live */
    struct result *result;
};

static bool keep_stat(void *user_data, const char *key, int64_t value)
{
    struct result *result = user_data;
    uint64_t amount = value > 0 ? (uint64_t)value : 0;

    if (strcmp(key, "allocated_bytes.all.peak") == 0) {
        result->peak_allocated_bytes = amount;
    } else if (strcmp(key, "reserved_bytes.all.peak") == 0) {
        result->peak_reserved_bytes = amount;
    } else if (strcmp(key, "segment.all.peak") == 0) {
        result->peak_segments = amount;
    } else if (strcmp(key, "num_alloc_retries") == 0) {
        result->retries = amount;
    }
    return true;
}

/* Run one operation. An allocation that fails with ERR_NO_MEMORY is counted, and the run continues.
 * A free of a block whose allocation failed does nothing. */
static int32_t run_operation(struct run *run, const struct operation *operation)
{
    struct ds_accel__arena **arena = &run->arenas[operation->stream];
    void *pointer = NULL;
    int32_t status;

    if (*arena == NULL) {
        *arena = ds_accel__allocator_arena(
            run->allocator, ds_accel__replay_device_stream(run->device, operation->stream));
        if (*arena == NULL) {
            return ds_accel__no_memory();
        }
    }
    if (operation->kind == OPERATION_FREE) {
        pointer = run->pointers[operation->block];
        run->pointers[operation->block] = NULL;
        return pointer != NULL ? ds_accel__allocator_free(run->allocator, NULL, pointer)
                               : DS_ACCEL_OK;
    }
    status = ds_accel__allocator_alloc(*arena, operation->size_bytes, 1, &pointer);
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        run->result->failed_bytes = run->result->failures++ == 0 ? operation->size_bytes
                                                                 : run->result->failed_bytes;
        return DS_ACCEL_OK;
    }
    if (status >= 0 && operation->kind == OPERATION_FAILED) {
        return ds_accel__allocator_free(run->allocator, NULL, pointer);
    }
    if (status >= 0) {
        run->pointers[operation->block] = pointer;
    }
    return status;
}

static int32_t run_all(struct run *run, const struct operations *operations)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < operations->count && status >= 0; i++) {
        status = run_operation(run, &operations->items[i]);
    }
    return status;
}

/* Run the whole script. The caller has created run->device and allocated run->arenas and
 * run->pointers. */
static int32_t run_script(struct run *run, const struct script *script,
                          const struct variant *variant)
{
    int32_t status = ds_accel__allocator_create(&run->device->table,
                                                ds_accel__replay_device_handle(run->device),
                                                &variant->options, &run->allocator);

    if (status < 0) {
        return status;
    }
    status = run_all(run, &script->before);
    status = status < 0 ? status : run_all(run, &script->during);
    ds_accel__allocator_visit_stats(run->allocator, keep_stat, run->result);
    run->result->device_calls = run->device->alloc_count;
    ds_accel__allocator_destroy(run->allocator);
    return status;
}

static int32_t run_variant(const struct script *script, const struct variant *variant,
                           struct result *result)
{
    struct run run = {.result = result};
    int32_t status = ds_accel__replay_device_create(
        variant->capacity_bytes > 0 ? variant->capacity_bytes : UNLIMITED_BYTES, true, &run.device);

    memset(result, 0, sizeof(*result));
    if (status < 0) {
        return status;
    }
    run.arenas = calloc((size_t)script->stream_count + 1, sizeof(*run.arenas));
    run.pointers = calloc((size_t)script->block_count + 1, sizeof(*run.pointers));
    if (run.arenas == NULL || run.pointers == NULL) {
        status = ds_accel__no_memory();
    } else {
        status = run_script(&run, script, variant);
    }
    free(run.arenas);
    free(run.pointers);
    ds_accel__replay_device_destroy(run.device);
    return status;
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Is a better than b? Compares failures, then memory reserved from the driver, then driver
 * calls. */
static bool is_better(const struct result *a, const struct result *b)
{
    if (a->failures != b->failures) {
        return a->failures < b->failures;
    }
    if (a->peak_reserved_bytes != b->peak_reserved_bytes) {
        return a->peak_reserved_bytes < b->peak_reserved_bytes;
    }
    return a->device_calls < b->device_calls;
}

static unsigned fragmentation_of(const struct result *result)
{
    if (result->peak_reserved_bytes <= result->peak_allocated_bytes) {
        return 0;
    }
    return (unsigned)(100.0 * (double)(result->peak_reserved_bytes - result->peak_allocated_bytes) /
                          (double)result->peak_reserved_bytes +
                      0.5);
}

static json_t *result_tree(const struct variant *variant, const struct result *result, bool is_best,
                           bool *failed)
{
    json_t *tree = json_object();
    const struct {
        const char *key;
        uint64_t value;
    } figures[] = {
        {"peak_allocated_bytes", result->peak_allocated_bytes},
        {"peak_reserved_bytes", result->peak_reserved_bytes},
        {"fragmentation_percent", fragmentation_of(result)},
        {"peak_segments", result->peak_segments},
        {"device_calls", result->device_calls},
        {"retries", result->retries},
        {"failures", result->failures},
        {"failed_bytes", result->failed_bytes},
    };

    ds_accel__json_set(tree, "settings", ds_accel__json_text(variant->name), failed);
    ds_accel__json_set(tree, "best", json_boolean(is_best), failed);
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        ds_accel__json_set(tree, figures[i].key, json_integer((json_int_t)figures[i].value),
                           failed);
    }
    return tree;
}

static json_t *report_tree(const struct script *script, const struct variant *variants,
                           const struct result *results, size_t count)
{
    bool failed = false;
    bool is_limited = variants[0].capacity_bytes != UNLIMITED_BYTES;
    json_t *tree = json_object();
    json_t *array = json_array();
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        best = is_better(&results[i], &results[best]) ? i : best;
    }
    for (size_t i = 0; i < count; i++) {
        failed = json_array_append_new(
                     array, result_tree(&variants[i], &results[i], i == best, &failed)) != 0 ||
                 failed;
    }
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "device", json_integer((json_int_t)script->device), &failed);
    ds_accel__json_set(tree, "events", json_integer((json_int_t)script->event_count), &failed);
    ds_accel__json_set(tree, "blocks_before", json_integer((json_int_t)script->before.count),
                       &failed);
    ds_accel__json_set(
        tree, "capacity_bytes",
        is_limited ? json_integer((json_int_t)variants[0].capacity_bytes) : json_null(), &failed);
    ds_accel__json_set(tree, "results", array, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Run every variant and make the report. The caller allocated variants and results. */
static int32_t run_variants(json_t *tree, const char *const *texts, size_t count,
                            struct variant *variants, struct result *results, json_t **report_out)
{
    struct script script = {0};
    int32_t status = read_script(tree, &script);

    if (status >= 0) {
        make_recorded(tree, script.capacity_bytes, &variants[0]);
    }
    for (size_t i = 1; i < count && status >= 0; i++) {
        status = make_variant(&variants[0], texts[i - 1], &variants[i]);
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        status = run_variant(&script, &variants[i], &results[i]);
    }
    if (status >= 0) {
        *report_out = report_tree(&script, variants, results, count);
        status = *report_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    clear_script(&script);
    return status;
}

int32_t ds_accel__memory_replay(json_t *tree, const char *const *tries, uint32_t try_count,
                                json_t **report_out)
{
    const char *const *texts = try_count > 0 ? tries : alternatives;
    size_t count = 1 + (try_count > 0 ? try_count : ARRAY_SIZE(alternatives));
    struct variant *variants;
    struct result *results;
    int32_t status;

    if (try_count > TRY_LIMIT) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "more than %u sets of settings", TRY_LIMIT);
    }
    variants = calloc(count, sizeof(*variants));
    results = calloc(count, sizeof(*results));
    if (variants == NULL || results == NULL) {
        status = ds_accel__no_memory();
    } else {
        status = run_variants(tree, texts, count, variants, results, report_out);
    }
    free(variants);
    free(results);
    return status;
}

char *ds_accel__memory_replay_text(json_t *report)
{
    const json_t *results = json_object_get(report, "results");
    struct ds_accel__text out = {0};
    char sizes[3][32];
    int width = 8;

    ds_accel__size_text(ds_accel__json_size(report, "capacity_bytes"), sizes[0], sizeof(sizes[0]));
    ds_accel__text_add(&out, "device %llu, %llu events, %llu blocks from before, memory %s\n\n",
                       (unsigned long long)ds_accel__json_size(report, "device"),
                       (unsigned long long)ds_accel__json_size(report, "events"),
                       (unsigned long long)ds_accel__json_size(report, "blocks_before"),
                       json_is_null(json_object_get(report, "capacity_bytes")) ? "without end"
                                                                               : sizes[0]);
    for (size_t i = 0; i < json_array_size(results); i++) {
        int length =
            (int)json_string_length(json_object_get(json_array_get(results, i), "settings"));

        width = length > width ? length : width;
    }
    ds_accel__text_add(&out, "  %-*s %10s %10s %6s %8s %7s %7s  %s\n", width, "settings",
                       "allocated", "reserved", "frag.", "segments", "calls", "retries",
                       "out of memory");
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *result = json_array_get(results, i);
        uint64_t failures = ds_accel__json_size(result, "failures");
        char settings_text[512];

        ds_accel__copy(settings_text, sizeof(settings_text),
                       json_string_value(json_object_get(result, "settings")));
        ds_accel__sanitize(settings_text, sizeof(settings_text));
        ds_accel__size_text(ds_accel__json_size(result, "peak_allocated_bytes"), sizes[0],
                            sizeof(sizes[0]));
        ds_accel__size_text(ds_accel__json_size(result, "peak_reserved_bytes"), sizes[1],
                            sizeof(sizes[1]));
        ds_accel__size_text(ds_accel__json_size(result, "failed_bytes"), sizes[2],
                            sizeof(sizes[2]));
        ds_accel__text_add(&out, "%c %-*s %10s %10s %4llu %% %8llu %7llu %7llu  ",
                           json_is_true(json_object_get(result, "best")) ? '*' : ' ', width,
                           settings_text, sizes[0], sizes[1],
                           (unsigned long long)ds_accel__json_size(result, "fragmentation_percent"),
                           (unsigned long long)ds_accel__json_size(result, "peak_segments"),
                           (unsigned long long)ds_accel__json_size(result, "device_calls"),
                           (unsigned long long)ds_accel__json_size(result, "retries"));
        if (failures > 0) {
            ds_accel__text_add(&out, "%llu times, first %s\n", (unsigned long long)failures,
                               sizes[2]);
        } else {
            ds_accel__text_add(&out, "no\n");
        }
    }
    ds_accel__text_add(&out, "\n* is the best: fewest failures, then least reserved, then fewest "
                             "calls for memory\n");
    return ds_accel__text_take(&out);
}

int32_t ds_accel_memory_replay(const char *path, const char *const *tries, uint32_t try_count,
                               uint32_t format, char **text_out)
{
    json_t *tree;
    json_t *report = NULL;
    int32_t status;

    if (path == NULL || text_out == NULL || (tries == NULL && try_count > 0)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "path, tries or text_out is NULL");
    }
    status = ds_accel__memory_snapshot_read(path, &tree);
    if (status < 0) {
        return status;
    }
    status = ds_accel__memory_replay(tree, tries, try_count, &report);
    json_decref(tree);
    if (status < 0) {
        return status;
    }
    if ((format & DS_ACCEL_FORMAT_JSON) != 0) {
        void *data = NULL;
        size_t size_bytes;

        status =
            ds_accel__memory_snapshot_write(report, DS_ACCEL_SNAPSHOT_JSON, &data, &size_bytes);
        *text_out = status >= 0 ? data : *text_out;
    } else {
        char *text = ds_accel__memory_replay_text(report);

        status = text != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
        *text_out = text != NULL ? text : *text_out;
    }
    json_decref(report);
    return status;
}
