/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Several threads use one device of the mock while other threads change it. */
#include "threads.h"

#include <sched.h>
#include <stdio.h>

static void *latest_block; /* pinned memory that some thread may have freed; atomic */

/* Threads of even index query memory that others free to the pool and release to the runtime. */
static bool ask_about_pinned(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < ROUNDS * 5 && right; round++) {
        uint32_t is_pinned = 2;
        void *block = NULL;

        if (thread % 2 == 0) {
            right = ds_accel_is_pinned(shared, __atomic_load_n(&latest_block, __ATOMIC_RELAXED),
                                       &is_pinned) >= 0 &&
                    is_pinned <= 1;
            continue;
        }
        right = ds_accel_mem_alloc_pinned(shared_device, 5000, 1, 0, &block) >= 0;
        __atomic_store_n(&latest_block, block, __ATOMIC_RELAXED);
        right = right && ds_accel_mem_free_pinned(shared_device, block) >= 0 &&
                (round % 4 != 0 || ds_accel_pinned_empty_cache(shared_device) >= 0);
    }
    return right;
}

static ds_accel_device_t *far_device;

/* The first allocation creates the device's allocator; other threads query the owner of a pointer
   at the same time. */
static bool first_on_far_device(unsigned thread)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    ds_accel_rng_t *rng = NULL;
    void *memory = NULL;
    bool right = true;

    switch (thread % 4) {
    case 0:
        right = ds_accel_mem_alloc(far_device, NULL, 100, &memory) >= 0 &&
                ds_accel_mem_free(far_device, NULL, memory) >= 0;
        break;
    case 1:
        right = ds_accel_mem_pointer_info(shared, latest_block, &info) >= 0;
        right = right && ds_accel_mem_free(shared_device, NULL, &right) == DS_ACCEL_ERR_INVALID;
        break;
    case 2:
        right = ds_accel_rng_create(far_device, thread, 0, &rng) >= 0;
        ds_accel_rng_destroy(rng);
        break;
    default:
        right = ds_accel_default_rng(far_device, &rng) >= 0;
        ds_accel_rng_destroy(rng); /* no effect: the device owns it */
        right = right && ds_accel_rng_manual_seed(rng, thread) >= 0;
    }
    return right;
}

/* Threads of even index query their current stream, which was destroyed. New streams of the other
 * threads reuse its handle. */
static bool current_streams(unsigned thread)
{
    ds_accel_stream_t *first = NULL;
    ds_accel_stream_t *stream = NULL;
    ds_accel_stream_t *now = NULL;
    bool right = ds_accel_default_stream(shared_device, &first) >= 0 &&
                 ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0 &&
                 ds_accel_set_current_stream(stream) >= 0 &&
                 ds_accel_current_stream(shared_device, &now) >= 0 && now == stream;

    ds_accel_stream_destroy(stream);
    for (unsigned round = 0; round < ROUNDS * 10 && right; round++) {
        if (thread % 2 == 0) {
            right = ds_accel_current_stream(shared_device, &now) >= 0 && now == first;
            continue;
        }
        right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;
        ds_accel_stream_destroy(stream);
    }
    return right;
}

static ds_accel_stream_t *ending_stream;
static ds_accel_graph_t *ending_graph;

/* Thread 0 destroys the capturing stream while thread 1 ends the capture or destroys the graph. */
static bool end_both(unsigned thread)
{
    bool right = true;

    for (unsigned round = 0; round < ROUNDS * 2; round++) {
        if (thread == 0) {
            right = right && ds_accel_stream_create(shared_device, 0, 0, &ending_stream) >= 0 &&
                    ds_accel_graph_create(shared_device, &ending_graph) >= 0 &&
                    ds_accel_graph_capture_begin(ending_graph, ending_stream, NULL,
                                                 DS_ACCEL_CAPTURE_RELAXED) >= 0;
        }
        pthread_barrier_wait(&barrier);
        if (thread == 0) {
            ds_accel_stream_destroy(ending_stream);
        } else {
            if (round % 2 == 0) {
                int32_t status = ds_accel_graph_capture_end(ending_graph);

                right = right && (status >= 0 || status == DS_ACCEL_ERR_STATE);
            }
            ds_accel_graph_destroy(ending_graph);
        }
        pthread_barrier_wait(&barrier);
    }
    return right;
}

/* ---- pools and captures --------------------------------------------------------------------- */

static ds_accel_pool_t *shared_pool;

/* Capture a graph with its own memory; during the capture, no memory is released to the driver. */
static bool capture_one(ds_accel_stream_t *stream, ds_accel_pool_t *pool, unsigned round)
{
    ds_accel_graph_t *graph = NULL;
    int64_t before = -1;
    int64_t after = -2;
    void *memory = NULL;
    void *again = NULL;
    bool right = ds_accel_graph_create(shared_device, &graph) >= 0 &&
                 ds_accel_graph_capture_begin(graph, stream, pool, DS_ACCEL_CAPTURE_GLOBAL) >= 0 &&
                 ds_accel_memory_stat(shared_device, "num_device_free", &before) >= 0 &&
                 ds_accel_mem_alloc(shared_device, stream, 3000 + 100 * round, &memory) >= 0 &&
                 ds_accel_mem_set_async(stream, memory, (uint8_t)round, 3000) >= 0;

    right = right && ds_accel_mem_free(shared_device, stream, memory) >= 0 &&
            ds_accel_mem_alloc(shared_device, stream, 600000, &again) >= 0 &&
            ds_accel_mem_free(shared_device, NULL, again) >= 0;
    for (unsigned wait = 0; wait < 20; wait++) {
        sched_yield(); /* lets other threads free their memory */
    }
    right = right && ds_accel_memory_stat(shared_device, "num_device_free", &after) >= 0 &&
            ds_accel_graph_capture_end(graph) >= 0 && before == after &&
            ds_accel_graph_replay(graph, stream) >= 0 && ds_accel_stream_synchronize(stream) >= 0;
    if (!right) {
        printf("a capture: freed %lld before, %lld after: %s\n", (long long)before,
               (long long)after, ds_accel_last_error());
    }
    ds_accel_graph_destroy(graph);
    return right;
}

/* Allocate from the shared pool, or from a pool that is destroyed while its memory is live. */
static bool allocate_from_pool(ds_accel_stream_t *stream, unsigned round)
{
    ds_accel_pool_t *own = NULL;
    ds_accel_pool_t *pool = shared_pool;
    void *memory[2] = {NULL};
    bool right = true;

    if (round % 2 == 0) {
        right = ds_accel_pool_create(shared_device, &own) >= 0;
        pool = own;
    }
    right = right && ds_accel_pool_begin(pool) >= 0 &&
            ds_accel_mem_alloc(shared_device, stream, 700, &memory[0]) >= 0 &&
            ds_accel_mem_alloc(shared_device, NULL, 800000, &memory[1]) >= 0 &&
            ds_accel_pool_end(pool) >= 0;
    ds_accel_pool_destroy(own);
    for (int i = 0; i < 2; i++) {
        right = ds_accel_mem_free(shared_device, i == 0 ? stream : NULL, memory[i]) >= 0 && right;
    }
    return right;
}

static bool pools_and_captures(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        void *memory = NULL;

        switch (thread % 4) {
        case 0:
            right = capture_one(stream, round % 2 == 0 ? shared_pool : NULL, round);
            break;
        case 1:
            right = allocate_from_pool(stream, round);
            break;
        default:
            right = ds_accel_mem_alloc(shared_device, stream, 5000 * (thread + round), &memory) >=
                        0 &&
                    ds_accel_mem_record_stream(shared_device, memory, NULL) >= 0 &&
                    ds_accel_mem_free(shared_device, round % 2 == 0 ? stream : NULL, memory) >= 0 &&
                    ds_accel_empty_cache(shared_device) >= 0;
        }
    }
    ds_accel_stream_destroy(stream);
    return right;
}

static bool run_pools_and_captures(void)
{
    bool right = ds_accel_pool_create(shared_device, &shared_pool) >= 0 &&
                 run(pools_and_captures, THREADS);

    ds_accel_pool_destroy(shared_pool);
    return right;
}

/* ---- memory that runs out ------------------------------------------------------------------- */

static _Thread_local void *stash[4]; /* blocks that this thread can free */
static int spill_data[2];

static int32_t spill(void *user_data, ds_accel_device_t *device, uint64_t size_bytes,
                     uint32_t attempt)
{
    (void)size_bytes;
    if (user_data != &spill_data[0] && user_data != &spill_data[1]) {
        abort();
    }
    for (int i = 0; i < 4; i++) {
        if (stash[i] != NULL) {
            void *memory = stash[i];

            stash[i] = NULL;
            return ds_accel_mem_free(device, NULL, memory) >= 0;
        }
    }
    sched_yield(); /* other threads may release memory */
    return attempt < 3;
}

static bool memory_runs_out(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        void **place = &stash[round % 4];
        int32_t status;

        right = ds_accel_mem_free(shared_device, stream, *place) >= 0;
        *place = NULL;
        status = ds_accel_mem_alloc(shared_device, stream, (1 + round % 3) << 20, place);
        right = right && (status >= 0 || status == DS_ACCEL_ERR_NO_MEMORY);
        if (thread == 0) {
            right = right && ds_accel_memory_set_failure_callback(shared_device, spill,
                                                                  &spill_data[round % 2]) >= 0;
        }
    }
    for (int i = 0; i < 4; i++) {
        right = ds_accel_mem_free(shared_device, stream, stash[i]) >= 0 && right;
    }
    ds_accel_stream_destroy(stream);
    return right;
}

/* ---- statistics and snapshots ---------------------------------------------------------------- */

static bool look_at_memory(unsigned thread, unsigned round)
{
    static const uint32_t formats[] = {DS_ACCEL_SNAPSHOT_JSON, DS_ACCEL_SNAPSHOT_SVG,
                                       DS_ACCEL_SNAPSHOT_PICKLE, DS_ACCEL_SNAPSHOT_TEXT};
    char *text = NULL;
    void *data = NULL;
    size_t size_bytes = 0;
    uint64_t current = 1;
    uint64_t peak = 0;
    double fragmentation = 0;
    bool right = ds_accel_memory_stats(shared_device, &text) >= 0 &&
                 ds_accel_memory_allocated(shared_device, &current) >= 0 &&
                 ds_accel_max_memory_reserved(shared_device, &peak) >= 0 && current <= peak &&
                 ds_accel_available_memory(shared_device, &peak) >= 0 &&
                 ds_accel_memory_fragmentation(shared_device, &fragmentation, &peak) >= 0 &&
                 ds_accel_memory_snapshot(shared, thread == 0 ? shared_device : NULL,
                                          formats[round % 4], &data, &size_bytes) >= 0 &&
                 size_bytes > 0 &&
                 (round % 5 != 0 || ds_accel_reset_max_memory_allocated(shared_device) >= 0);

    ds_accel_free_data(data);
    ds_accel_free_text(text);
    return right;
}

/* Every eighth thread reads statistics and snapshots of the memory while the others change it. */
static bool figures_while_allocating(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    void *kept[3] = {NULL};
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;

    for (unsigned round = 0; round < ROUNDS / 4 && right && thread % 8 == 0; round++) {
        right = look_at_memory(thread, round);
    }
    for (unsigned round = 0; round < ROUNDS * 3 && right && thread % 8 != 0; round++) {
        void **place = &kept[round % 3];

        right = ds_accel_mem_free(shared_device, thread % 2 == 0 ? stream : NULL, *place) >= 0;
        *place = NULL;
        right = right && ds_accel_mem_alloc(shared_device, stream,
                                            (thread * 997 * round) % 300000 + 1, place) >= 0;
    }
    for (int i = 0; i < 3; i++) {
        right = ds_accel_mem_free(shared_device, stream, kept[i]) >= 0 && right;
    }
    ds_accel_stream_destroy(stream);
    return right;
}

/* ---- timers and shared memory ---------------------------------------------------------------- */

static bool timers(unsigned thread)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_timer_t *timer = NULL;
    bool right = ds_accel_stream_create(shared_device, 0, 0, &stream) >= 0;

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        double elapsed_ms = -1;
        void *memory = NULL;

        right = ds_accel_timer_create(shared_device, &timer) >= 0 &&
                ds_accel_mem_alloc(shared_device, stream, 4096, &memory) >= 0 &&
                ds_accel_timer_start(timer, stream) >= 0 &&
                ds_accel_mem_set_async(stream, memory, (uint8_t)thread, 4096) >= 0 &&
                ds_accel_timer_stop(timer, stream) >= 0 &&
                ds_accel_timer_elapsed_ms(timer, &elapsed_ms) >= 0 && elapsed_ms >= 0;
        right = ds_accel_mem_free(shared_device, stream, memory) >= 0 && right;
        ds_accel_timer_destroy(timer);
    }
    ds_accel_stream_destroy(stream);
    return right;
}

#define HANDLE_LIMIT 256

/* Export memory and an event, open both from their handles, and close them. */
static bool exports(unsigned thread)
{
    struct ds_accel_backend_info backend = {.struct_size = sizeof(backend)};
    unsigned char handle[HANDLE_LIMIT];
    bool right = ds_accel_backend_info(shared, &backend) >= 0 &&
                 backend.memory_handle_bytes <= sizeof(handle) &&
                 backend.event_handle_bytes <= sizeof(handle);

    for (unsigned round = 0; round < ROUNDS && right; round++) {
        ds_accel_event_t *events[2] = {NULL};
        unsigned char *opened = NULL;
        void *memory = NULL;
        void *place = NULL;

        right = ds_accel_mem_alloc(shared_device, NULL, 700 + thread, &memory) >= 0 &&
                ds_accel_mem_set(shared_device, memory, (uint8_t)thread, 512) >= 0 &&
                ds_accel_ipc_memory_export(shared_device, memory, handle,
                                           backend.memory_handle_bytes) >= 0 &&
                ds_accel_ipc_memory_open(shared_device, handle, backend.memory_handle_bytes,
                                         &place) >= 0;
        opened = place;
        right =
            right && opened[511] == thread &&
            ds_accel_ipc_memory_close(shared_device, place) >= 0 &&
            ds_accel_ipc_memory_unexport(shared_device, handle, backend.memory_handle_bytes) >= 0 &&
            ds_accel_mem_free(shared_device, NULL, memory) >= 0 &&
            (round % 8 != 7 || ds_accel_empty_cache(shared_device) >= 0) &&
            ds_accel_event_create(shared_device, DS_ACCEL_EVENT_INTERPROCESS, &events[0]) >= 0 &&
            ds_accel_ipc_event_export(events[0], handle, backend.event_handle_bytes) >= 0 &&
            ds_accel_ipc_event_open(shared_device, handle, backend.event_handle_bytes,
                                    &events[1]) >= 0 &&
            ds_accel_event_query(events[1]) >= 0;
        ds_accel_event_destroy(events[0]);
        ds_accel_event_destroy(events[1]);
    }
    return right;
}

/* ---- all scenarios --------------------------------------------------------------------------- */

static bool on_mock(const char *settings)
{
    if (settings != NULL) {
        setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    }
    shared = create_with("mock", 0);
    return shared != NULL && ds_accel_detect(shared) >= 0 &&
           ds_accel_device_open(shared, 0, &shared_device) >= 0 &&
           ds_accel_device_open(shared, 1, &far_device) >= 0;
}

static void off_mock(void)
{
    ds_accel_device_close(far_device);
    ds_accel_device_close(shared_device);
    ds_accel_destroy(shared);
    unsetenv("DS_ACCEL_ALLOCATOR");
}

/* True if no layer reported a problem. */
static bool is_quiet(void)
{
    uint64_t races = 1;
    char *text = NULL;
    bool right = ds_accel_race_count(shared, &races) >= 0 && races == 0 &&
                 ds_accel_layer_report(shared, "leak", &text) >= 0 &&
                 strstr(text, " block") == NULL && strstr(text, " stream") == NULL &&
                 strstr(text, " graph") == NULL;

    if (!right) {
        printf("%llu races; live:\n%s", (unsigned long long)races, text != NULL ? text : "");
    }
    ds_accel_free_text(text);
    return right;
}

/* Run the scenarios with or without layers. */
static void with_settings(bool has_layers)
{
    static const char *const settings[] = {NULL, "growable_segments=true", "off", "debug"};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        bool right = on_mock(settings[i]);

        check("first on a device", right && run(first_on_far_device, THREADS));
        check("pools and captures", right && run_pools_and_captures());
        check("a capture's two ends", right && run(end_both, 2));
        check("figures while allocating", right && run(figures_while_allocating, THREADS));
        if (has_layers) {
            check("streams come and go below layers", run(streams_come_and_go, THREADS));
            check("pinned pool below layers", run(pinned_pool, THREADS));
            check("layers have nothing to say", is_quiet());
        }
        off_mock();
    }
}

static void with_little_memory(bool has_layers)
{
    bool right;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "67108864", 1);
    right = on_mock(NULL);
    unsetenv("DS_ACCEL_MOCK_MEMORY_BYTES");
    check("memory runs out", right && run(memory_runs_out, THREADS));
    if (has_layers) {
        check("layers have nothing to say of too little memory", right && is_quiet());
    } else {
        check("pinned memory that others free", right && run(ask_about_pinned, THREADS));
        check("current streams", right && run(current_streams, THREADS));
        check("timers", right && run(timers, THREADS));
        check("exports", right && run(exports, THREADS));
    }
    off_mock();
}

void with_changes(void)
{
    setenv("DS_ACCEL_MOCK_IPC", "true", 1);
    setenv("DS_ACCEL_LAYERS", "validate,leak", 1);
    with_settings(true);
    with_little_memory(true);
    unsetenv("DS_ACCEL_LAYERS");
    with_settings(false);
    with_little_memory(false);
    unsetenv("DS_ACCEL_MOCK_IPC");
}
