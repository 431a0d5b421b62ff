/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The caching allocator against a model of it, over a backend without memory: millions of random
 * calls. After each call no two live blocks overlap and every block is aligned; at intervals every
 * statistic, every peak and a snapshot are compared with the model's. Then many threads call the
 * allocator; some destroy and replace their streams, and other threads read statistics. Prints the
 * number of calls; if anything differs, prints where and exits with 1. The seed is fixed, so that a
 * run can be repeated.
 *
 *     model [operations] [seed]
 */
#include "synthetic.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE_LIMIT 2000u
#define CHECK_EVERY 20000u
#define STREAMS 3u
#define THREADS 4u

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__); \
            fprintf(stderr, " (%s)\n", ds_accel_last_error()); \
            exit(1); \
        } \
    } while (0)

/* xorshift64*: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* ---- the model: live blocks, and a sorted list of them -------------------------------------- */

struct live {
    uint64_t address;
    uint64_t size_bytes; /* requested size */
    unsigned stream;
};

struct figure {
    int64_t current;
    int64_t peak;
    int64_t total;
};

struct model {
    struct ds_accel__allocator *allocator;
    struct ds_accel__arena *arenas[STREAMS];
    struct live live[LIVE_LIMIT];
    uint64_t sorted[LIVE_LIMIT]; /* indices into live, sorted by address to find neighbours */
    size_t count;
    struct figure count_figure;
    struct figure requested;
    struct figure failures;
    uint64_t random;
};

static void figure_add(struct figure *figure, int64_t amount)
{
    figure->current += amount;
    figure->total += amount > 0 ? amount : 0;
    figure->peak = figure->current > figure->peak ? figure->current : figure->peak;
}

/* Return the first index in sorted whose block begins at or after address. */
static size_t lower_bound(const struct model *model, uint64_t address)
{
    size_t first = 0;
    size_t last = model->count;

    while (first < last) {
        size_t middle = (first + last) / 2;

        if (model->live[model->sorted[middle]].address < address) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

static void model_add(struct model *model, uint64_t address, uint64_t size_bytes, unsigned stream)
{
    size_t place = lower_bound(model, address);
    const struct live *before = place > 0 ? &model->live[model->sorted[place - 1]] : NULL;
    const struct live *after = place < model->count ? &model->live[model->sorted[place]] : NULL;

    CHECK(before == NULL || before->address + before->size_bytes <= address, "overlap below");
    CHECK(after == NULL || address + size_bytes <= after->address, "overlap above");
    memmove(&model->sorted[place + 1], &model->sorted[place],
            (model->count - place) * sizeof(model->sorted[0]));
    model->sorted[place] = model->count;
    model->live[model->count++] = (struct live){address, size_bytes, stream};
    figure_add(&model->count_figure, 1);
    figure_add(&model->requested, (int64_t)size_bytes);
}

static void model_remove(struct model *model, size_t index)
{
    size_t place = lower_bound(model, model->live[index].address);
    size_t last = model->count - 1;

    figure_add(&model->count_figure, -1);
    figure_add(&model->requested, -(int64_t)model->live[index].size_bytes);
    memmove(&model->sorted[place], &model->sorted[place + 1],
            (model->count - place - 1) * sizeof(model->sorted[0]));
    model->count--;
    if (index != last) {
        place = lower_bound(model, model->live[last].address);
        model->sorted[place] = index;
        model->live[index] = model->live[last];
    }
}

/* ---- comparison with the model -------------------------------------------------------------- */

struct sought {
    const char *key;
    int64_t value;
    bool is_found;
};

static bool look(void *user_data, const char *key, int64_t value)
{
    struct sought *sought = user_data;

    if (strcmp(key, sought->key) == 0) {
        sought->value = value;
        sought->is_found = true;
    }
    return !sought->is_found;
}

static int64_t stat_of(struct ds_accel__allocator *allocator, const char *key)
{
    struct sought sought = {.key = key};

    ds_accel__allocator_visit_stats(allocator, look, &sought);
    CHECK(sought.is_found, "no statistic %s", key);
    return sought.value;
}

static void expect(struct ds_accel__allocator *allocator, const char *name, const char *value,
                   int64_t wanted)
{
    char key[96];
    int64_t got;

    snprintf(key, sizeof(key), "%s.all.%s", name, value);
    got = stat_of(allocator, key);
    CHECK(got == wanted, "%s is %lld, not %lld", key, (long long)got, (long long)wanted);
}

static void expect_figure(struct ds_accel__allocator *allocator, const char *name,
                          const struct figure *figure)
{
    expect(allocator, name, "current", figure->current);
    expect(allocator, name, "peak", figure->peak);
    expect(allocator, name, "allocated", figure->total);
    expect(allocator, name, "freed", figure->total - figure->current);
}

static void compare(struct model *model)
{
    struct ds_accel__allocator *allocator = model->allocator;
    char problem[200];

    ds_accel__allocator_verify(allocator, problem, sizeof(problem));
    CHECK(problem[0] == '\0', "%s", problem);
    expect_figure(allocator, "allocation", &model->count_figure);
    expect_figure(allocator, "requested_bytes", &model->requested);
    expect(allocator, "reserved_bytes", "current", (int64_t)synthetic_used());
    expect(allocator, "reserved_bytes", "peak", (int64_t)synthetic_peak(false));
    CHECK(stat_of(allocator, "num_ooms") == model->failures.total, "num_ooms");
}

/* Check that a snapshot has exactly the live blocks, with their requested sizes. */
static void compare_snapshot(const struct model *model)
{
    json_t *segments = json_array();
    json_t *traces = json_array();
    json_t *stats = json_array();
    json_t *segment;
    json_t *block;
    size_t i;
    size_t k;
    size_t live_count = 0;
    json_int_t total = 0;

    CHECK(ds_accel__allocator_snapshot(model->allocator, segments, traces, stats) == DS_ACCEL_OK,
          "snapshot");
    json_array_foreach(segments, i, segment)
    {
        json_int_t end = json_integer_value(json_object_get(segment, "address"));

        total += json_integer_value(json_object_get(segment, "total_size"));
        json_array_foreach(json_object_get(segment, "blocks"), k, block)
        {
            json_int_t address = json_integer_value(json_object_get(block, "address"));
            const char *state = json_string_value(json_object_get(block, "state"));
            size_t place = lower_bound(model, (uint64_t)address);

            CHECK(address == end, "a gap in a segment");
            end += json_integer_value(json_object_get(block, "size"));
            if (strcmp(state, "active_allocated") != 0) {
                continue;
            }
            live_count++;
            CHECK(place < model->count, "a block too many");
            CHECK(model->live[model->sorted[place]].address == (uint64_t)address &&
                      (json_int_t)model->live[model->sorted[place]].size_bytes ==
                          json_integer_value(json_object_get(block, "requested_size")),
                  "a block that is not the model's");
        }
        CHECK(end == json_integer_value(json_object_get(segment, "address")) +
                         json_integer_value(json_object_get(segment, "total_size")),
              "a segment's end");
    }
    CHECK(live_count == model->count, "%zu live blocks, not %zu", live_count, model->count);
    CHECK((uint64_t)total == synthetic_used(), "the segments are not what is held");
    json_decref(segments);
    json_decref(traces);
    json_decref(stats);
}

/* ---- one thread ----------------------------------------------------------------------------- */

/* Return a size like those of real programs: many small ones of few kinds, some large, some odd. */
static uint64_t random_size(uint64_t *random)
{
    uint64_t kind = next_random(random) % 100;

    if (kind < 60) {
        return (next_random(random) % 16 + 1) * 1024;
    }
    if (kind < 85) {
        return next_random(random) % (UINT64_C(1) << 20) + 1;
    }
    if (kind < 98) {
        return next_random(random) % (UINT64_C(12) << 20) + 1;
    }
    return next_random(random) % (UINT64_C(96) << 20) + 1;
}

static void allocate(struct model *model)
{
    unsigned stream = (unsigned)(next_random(&model->random) % STREAMS);
    uint64_t size_bytes = random_size(&model->random);
    uint64_t align_bytes = 512;
    void *pointer = NULL;
    int32_t status;

    if (next_random(&model->random) % 64 == 0) {
        align_bytes = UINT64_C(512) << (next_random(&model->random) % 13);
    }
    status = ds_accel__allocator_alloc(model->arenas[stream], size_bytes, align_bytes, &pointer);
    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        model->failures.total++;
        return;
    }
    CHECK(status == DS_ACCEL_OK, "alloc: %d", status);
    CHECK(((uintptr_t)pointer & (align_bytes - 1)) == 0, "%p is not aligned to %llu", pointer,
          (unsigned long long)align_bytes);
    model_add(model, (uint64_t)(uintptr_t)pointer, size_bytes, stream);
}

static void release(struct model *model)
{
    size_t index = (size_t)(next_random(&model->random) % model->count);
    void *pointer = (void *)(uintptr_t)model->live[index].address;
    uint64_t how = next_random(&model->random) % 32;
    struct ds_accel__arena *freeing = NULL;
    int32_t status;

    if (how == 0) {
        freeing = model->arenas[next_random(&model->random) % STREAMS];
    } else if (how == 1) {
        status = ds_accel__allocator_record(model->allocator, pointer,
                                            model->arenas[next_random(&model->random) % STREAMS]);
        CHECK(status == DS_ACCEL_OK, "record: %d", status);
    }
    status = ds_accel__allocator_free(model->allocator, freeing, pointer);
    CHECK(status == DS_ACCEL_OK, "free: %d", status);
    if (how == 2) {
        CHECK(ds_accel__allocator_free(model->allocator, freeing, pointer) < 0, "a double free");
    }
    model_remove(model, index);
}

static void run_model(const char *name, const struct ds_accel__allocator_options *options,
                      uint64_t memory_bytes, uint64_t operations, uint64_t seed)
{
    static struct model model;

    memset(&model, 0, sizeof(model));
    model.random = seed;
    CHECK(ds_accel__allocator_create(synthetic_start(memory_bytes), synthetic_device(), options,
                                     &model.allocator) == DS_ACCEL_OK,
          "create");
    for (unsigned i = 0; i < STREAMS; i++) {
        model.arenas[i] = ds_accel__allocator_arena(model.allocator, synthetic_stream(i));
        CHECK(model.arenas[i] != NULL, "arena");
    }
    for (uint64_t i = 0; i < operations; i++) {
        /* Alternate between phases, so that memory fills and empties. */
        uint64_t wish = i / 5000 % 2 == 0 ? 60 : 40;

        if (model.count == 0 ||
            (model.count < LIVE_LIMIT && next_random(&model.random) % 100 < wish)) {
            allocate(&model);
        } else {
            release(&model);
        }
        if (next_random(&model.random) % 200000 == 0) {
            ds_accel__allocator_trim(model.allocator, next_random(&model.random) % memory_bytes);
        }
        if (i % CHECK_EVERY == CHECK_EVERY - 1) {
            compare(&model);
        }
        if (i % (10 * CHECK_EVERY) == 10 * CHECK_EVERY - 1) {
            compare_snapshot(&model);
        }
    }
    while (model.count > 0) {
        release(&model);
    }
    compare(&model);
    ds_accel__allocator_trim(model.allocator, 0);
    compare(&model);
    CHECK(synthetic_used() == 0, "%llu bytes are still held", (unsigned long long)synthetic_used());
    printf("model %-10s %llu operations, %lld allocations, %lld out of memory, peak %lld MiB "
           "reserved\n",
           name, (unsigned long long)operations, (long long)model.count_figure.total,
           (long long)model.failures.total, (long long)(synthetic_peak(false) >> 20));
    CHECK(ds_accel__allocator_destroy(model.allocator) == 0, "live blocks at the end");
}

/* ---- many threads --------------------------------------------------------------------------- */

/* Blocks that one thread allocates and another thread frees. */
struct exchange {
    struct ds_accel__allocator *allocator;
    struct ds_accel__arena *arenas[THREADS];
    void *slots[64];
    uint64_t operations;
};

struct worker {
    struct exchange *exchange;
    unsigned index;
    uint64_t random;
};

/* Other operations of a thread: replace its stream, empty the cache, read statistics. */
static void do_other(struct worker *worker, uint64_t turn)
{
    struct exchange *exchange = worker->exchange;
    struct ds_accel__arena **arena = &exchange->arenas[worker->index];

    if (worker->index == 2 && turn % 500 == 499) {
        ds_accel__allocator_stream_gone(*arena);
        *arena = ds_accel__allocator_arena(exchange->allocator, synthetic_stream(2));
        CHECK(*arena != NULL, "arena");
    }
    if (turn % 10000 == 9999) {
        ds_accel__allocator_trim(exchange->allocator, 0);
    }
    if (worker->index == 1 && turn % 3000 == 2999) {
        CHECK(stat_of(exchange->allocator, "allocation.all.current") >= 0, "figures");
        ds_accel__allocator_record_history(exchange->allocator, turn / 3000 % 2 == 0 ? 3 : 0, 1000);
    }
}

static void *work(void *given)
{
    struct worker *worker = given;
    struct exchange *exchange = worker->exchange;

    for (uint64_t i = 0; i < exchange->operations; i++) {
        struct ds_accel__arena *arena = exchange->arenas[worker->index];
        void **slot = &exchange->slots[next_random(&worker->random) % 64];
        void *mine = NULL;
        void *other;

        if (next_random(&worker->random) % 2 == 0 &&
            ds_accel__allocator_alloc(arena, random_size(&worker->random) % (UINT64_C(4) << 20) + 1,
                                      512, &mine) < 0) {
            mine = NULL;
        }
        other = __atomic_exchange_n(slot, mine, __ATOMIC_ACQ_REL);
        if (other != NULL) {
            uint64_t how = next_random(&worker->random) % 8;
            int32_t status = DS_ACCEL_OK;

            if (how == 0) {
                status = ds_accel__allocator_record(exchange->allocator, other, arena);
            }
            CHECK(status == DS_ACCEL_OK, "record: %d", status);
            status = ds_accel__allocator_free(exchange->allocator, how < 2 ? arena : NULL, other);
            CHECK(status == DS_ACCEL_OK, "free: %d", status);
        }
        do_other(worker, i);
    }
    return NULL;
}

/* Check the peak. Each thread may have allocated a segment that the allocator has not yet counted,
 * so that the two peaks may differ by one segment per thread. */
static void expect_peak(struct ds_accel__allocator *allocator)
{
    int64_t doubt = THREADS * (INT64_C(20) << 20);
    int64_t ours = stat_of(allocator, "reserved_bytes.all.peak");
    int64_t driver = (int64_t)synthetic_peak(false);

    CHECK(ours >= stat_of(allocator, "allocated_bytes.all.peak") && ours >= driver - doubt &&
              ours <= driver + doubt,
          "reserved_bytes.all.peak is %lld, the driver's %lld", (long long)ours, (long long)driver);
}

static void run_threads(uint64_t operations)
{
    static struct exchange exchange;
    struct ds_accel__allocator_options options;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    char problem[200];

    ds_accel__allocator_defaults(&options);
    exchange.operations = operations;
    CHECK(ds_accel__allocator_create(synthetic_start(UINT64_C(256) << 20), synthetic_device(),
                                     &options, &exchange.allocator) == DS_ACCEL_OK,
          "create");
    for (unsigned i = 0; i < THREADS; i++) {
        /* Two threads share a stream. */
        exchange.arenas[i] =
            i == 3 ? exchange.arenas[0]
                   : ds_accel__allocator_arena(exchange.allocator, synthetic_stream(i));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&exchange, i, i + 1};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "pthread_create");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < 64; i++) {
        if (exchange.slots[i] != NULL) {
            CHECK(ds_accel__allocator_free(exchange.allocator, NULL, exchange.slots[i]) == 0,
                  "free");
        }
    }
    ds_accel__allocator_verify(exchange.allocator, problem, sizeof(problem));
    CHECK(problem[0] == '\0', "%s", problem);
    expect(exchange.allocator, "allocation", "current", 0);
    expect(exchange.allocator, "allocated_bytes", "current", 0);
    expect_peak(exchange.allocator);
    ds_accel__allocator_trim(exchange.allocator, 0);
    CHECK(synthetic_used() == 0, "%llu bytes are still held", (unsigned long long)synthetic_used());
    CHECK(ds_accel__allocator_destroy(exchange.allocator) == 0, "live blocks at the end");
    printf("threads: %u, %llu operations each\n", THREADS, (unsigned long long)operations);
}

int main(int argc, char **argv)
{
    uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 4;
    struct ds_accel__allocator_options options;

    ds_accel__allocator_defaults(&options);
    run_model("default", &options, UINT64_C(24) << 30, operations * 6 / 10, seed);
    run_model("full", &options, UINT64_C(1) << 30, operations / 10, seed + 1);
    options.growable_segments = true;
    run_model("growable", &options, UINT64_C(24) << 30, operations / 10, seed + 2);
    ds_accel__allocator_defaults(&options);
    options.max_split_bytes = UINT64_C(32) << 20;
    options.roundup_power2_divisions = 8;
    options.limit_bytes = UINT64_C(4) << 30;
    options.gc_threshold = 0.8;
    run_model("settings", &options, UINT64_C(24) << 30, operations / 10, seed + 3);
    ds_accel__allocator_defaults(&options);
    options.mode = DS_ACCEL__ALLOCATOR_OFF;
    run_model("off", &options, UINT64_C(24) << 30, operations / 10, seed + 4);
    options.mode = DS_ACCEL__ALLOCATOR_DEBUG;
    run_model("debug", &options, UINT64_C(24) << 30, operations / 50, seed + 5);
    run_threads(operations / 50);
    return 0;
}
