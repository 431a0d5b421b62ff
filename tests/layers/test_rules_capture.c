/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer validate while streams capture: calls that break a capture, and memory that a graph
   uses. */
#include "rules.h"

#include <pthread.h>

/* ---- waits within the library ---------------------------------------------------------------- */

/* The program may not make these calls while a stream captures, but the library may: the memory for
   which it waits would otherwise never be released. */
Test(core_rules, waits_of_the_librarys_own_are_not_refused_beside_a_capture)
{
    ds_accel_stream_t *ours = NULL;
    ds_accel_rng_t *rng = NULL;
    void *numbers = NULL;

    start_far();
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &ours));
    ASSERT_OK(ds_accel_mem_alloc(device, ours, 4096, &numbers));
    ASSERT_OK(ds_accel_rng_create(device, 7, 0, &rng));
    ASSERT_OK(ds_accel_rng_uniform(rng, ours, numbers, 1024, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    cr_expect_gt(pinned(), 0, "the generator's staging");
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    test_log[0] = '\0';
    ds_accel_rng_destroy(rng);
    cr_expect_eq(pinned(), 0);
    EXPECT_HAS_NOT(test_log, "validate");
    ds_accel_stream_destroy(ours);
    stop();
    EXPECT_HAS_NOT(test_log, "it would break the capture");
}

/* ---- memory that a graph uses ---------------------------------------------------------------- */

static ds_accel_plugin_graph_exec_t *capture_fill(void *memory, uint64_t size_bytes)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;

    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    ASSERT_OK(table->mem_fill_async(stream, memory, "x", 1, size_bytes, &error));
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    return exec;
}

Test(core_rules, a_graph_is_not_replayed_over_memory_that_was_freed)
{
    ds_accel_plugin_graph_exec_t *exec;
    void *memory;
    void *again;

    start();
    memory = allocate(4096);
    exec = capture_fill(memory, 4096);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->mem_free(handle, memory, &error));
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID,
                "with 4096 bytes, captured at ");
    EXPECT_HAS(error.message, "which was freed at ");
    again = allocate(4096);
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID, "which was freed");
    EXPECT_OK(table->mem_free(handle, again, &error));
    table->graph_exec_destroy(exec);
    stop();
}

Test(core_rules, a_graph_is_not_replayed_over_a_block_that_its_allocator_took_back)
{
    ds_accel_plugin_graph_exec_t *exec;
    void *blocks[2] = {NULL, NULL};
    void *pinned = NULL;

    start();
    ASSERT_OK(ds_accel_mem_alloc(device, NULL, 4096, &blocks[0]));
    ASSERT_OK(ds_accel_mem_alloc(device, NULL, 4096, &blocks[1]));
    exec = capture_fill(blocks[0], 4096);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(ds_accel_mem_free(device, NULL, blocks[0]));
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID,
                "which was freed at ");
    table->graph_exec_destroy(exec);
    EXPECT_OK(ds_accel_mem_free(device, NULL, blocks[1]));

    ASSERT_OK(ds_accel_mem_alloc_pinned(device, 4096, 0, DS_ACCEL_PINNED_MAPPED, &pinned));
    exec = capture_fill(pinned, 4096);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(ds_accel_mem_free_pinned(device, pinned));
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID,
                "which was freed at ");
    table->graph_exec_destroy(exec);
    stop();
}

/* Memory of a destroyed pool remains for graphs that were captured with the pool, not for other
 * graphs. */
Test(core_rules, memory_that_a_capture_gets_may_be_freed_and_is_there_for_its_graph)
{
    ds_accel_stream_t *ours = NULL;
    ds_accel_graph_t *graph = NULL;
    ds_accel_graph_t *other = NULL;
    ds_accel_pool_t *pool = NULL;
    void *memory = NULL;

    start();
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &ours), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_pool_create(device, &pool), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &other), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_capture_begin(graph, ours, pool, DS_ACCEL_CAPTURE_GLOBAL),
                 DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, ours, 4096, &memory), DS_ACCEL_OK);
    EXPECT_OK(ds_accel_mem_set_async(ours, memory, 1, 4096));
    EXPECT_OK(ds_accel_mem_free(device, ours, memory));
    cr_assert_eq(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_graph_replay(graph, ours), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_pool_destroy(pool);
    cr_expect_eq(ds_accel_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_graph_replay(graph, ours), DS_ACCEL_OK, "%s", ds_accel_last_error());

    cr_assert_eq(ds_accel_pool_create(device, &pool), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_pool_begin(pool), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, ours, 4096, &memory), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_pool_end(pool), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_capture_begin(other, ours, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                 DS_ACCEL_OK);
    EXPECT_OK(ds_accel_mem_set_async(ours, memory, 1, 4096));
    cr_assert_eq(ds_accel_graph_capture_end(other), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_graph_replay(other, ours), DS_ACCEL_OK);
    EXPECT_OK(ds_accel_stream_synchronize(ours));
    EXPECT_OK(ds_accel_mem_free(device, ours, memory));
    ds_accel_pool_destroy(pool);
    cr_expect_eq(ds_accel_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_graph_replay(other, ours), DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "which was freed");
    ds_accel_graph_destroy(graph);
    ds_accel_graph_destroy(other);
    ds_accel_stream_destroy(ours);
    stop();
}

/* ---- calls during another stream's capture --------------------------------------------------- */

static ds_accel_plugin_event_t *apart;
static void *apart_memory;
static ds_accel_plugin_stream_t *apart_stream;
static char apart_host[16];

/* Make the calls that CUDA calls unsafe during a capture; counts the rejected ones in *argument. */
static void *call_beside(void *argument)
{
    static struct ds_accel_error here = {.struct_size = sizeof(here)};
    const int32_t statuses[] = {
        table->device_synchronize(handle, UINT64_MAX, &here),
        table->mem_copy(handle, apart_memory, apart_host, 16, DS_ACCEL_COPY_HOST_TO_DEVICE, &here),
    };
    int *refused = argument;
    void *pointer = NULL;

    *refused = 0;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        *refused += statuses[i] == DS_ACCEL_ERR_STATE;
    }
    /* The following calls break no capture. */
    cr_expect_eq(table->event_query(apart, &here), DS_ACCEL_OK, "%s", here.message);
    cr_expect_eq(table->event_synchronize(apart, UINT64_MAX, &here), DS_ACCEL_OK, "%s",
                 here.message);
    cr_expect_eq(table->stream_synchronize(apart_stream, UINT64_MAX, &here), DS_ACCEL_OK, "%s",
                 here.message);
    cr_expect_eq(table->mem_alloc(handle, 16, 0, 0, &pointer, &here), DS_ACCEL_OK);
    cr_expect_eq(table->mem_free(handle, pointer, &here), DS_ACCEL_OK);
    cr_expect_eq(table->mem_alloc_pinned(handle, 16, 0, 0, &pointer, &here), DS_ACCEL_OK);
    cr_expect_eq(table->mem_free_pinned(handle, pointer, &here), DS_ACCEL_OK);
    return NULL;
}

Test(core_rules, calls_that_break_a_capture_are_refused_to_whom_its_mode_says)
{
    static const int refused_to[][2] = {
        [DS_ACCEL_CAPTURE_GLOBAL] = {2, 2},
        [DS_ACCEL_CAPTURE_THREAD_LOCAL] = {2, 0},
        [DS_ACCEL_CAPTURE_RELAXED] = {0, 0},
    };
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t state = 0;
    pthread_t thread;
    int here = 0;
    int there = 0;

    start();
    ASSERT_OK(table->event_create(handle, 0, &apart, &error));
    ASSERT_OK(table->stream_create(handle, 0, 0, &apart_stream, &error));
    apart_memory = allocate(16);
    for (uint32_t mode = DS_ACCEL_CAPTURE_GLOBAL; mode <= DS_ACCEL_CAPTURE_RELAXED; mode++) {
        ASSERT_OK(table->graph_capture_begin(stream, mode, &error));
        cr_assert_eq(pthread_create(&thread, NULL, call_beside, &there), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        if (mode != DS_ACCEL_CAPTURE_RELAXED) { /* in mode relaxed, the backend decides */
            call_beside(&here);
            cr_expect_eq(here, refused_to[mode][0], "mode %u: %d here", mode, here);
        }
        cr_expect_eq(there, refused_to[mode][1], "mode %u: %d there", mode, there);
        EXPECT_OK(table->graph_capture_status(stream, &state, &error));
        cr_expect_eq(state, mode == DS_ACCEL_CAPTURE_RELAXED ? state : DS_ACCEL_CAPTURING_YES);
        EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
        table->graph_destroy(graph);
    }
    call_beside(&here);
    cr_expect_eq(here, 0, "no stream captures any more");
    EXPECT_OK(table->mem_free(handle, apart_memory, &error));
    table->event_destroy(apart);
    table->stream_destroy(apart_stream);
    stop();
}

Test(core_rules, a_capture_is_not_asked_for_by_its_streams_or_events)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_event_t *event = NULL;
    uint32_t state = 0;

    start();
    ASSERT_OK(table->event_create(handle, 0, &event, &error));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    ASSERT_OK(table->event_record(event, stream, &error));
    EXPECT_FAIL(table->stream_synchronize(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "the stream captures, and a query would break the capture");
    EXPECT_FAIL(table->stream_query(stream, &error), DS_ACCEL_ERR_STATE, "the stream captures");
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE,
                "it cannot be queried before a launch");
    EXPECT_FAIL(table->event_synchronize(event, 0, &error), DS_ACCEL_ERR_STATE,
                "it cannot be queried before a launch");
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_YES, "nothing of that reached the plugin");
    EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->stream_query(stream, &error));
    table->graph_destroy(graph);
    table->event_destroy(event);
    stop();
}

/* The vendor's runtime does not distinguish contexts: calls of another context break the capture
   too. */
Test(core_rules, a_capture_is_broken_by_another_contexts_calls_too)
{
    ds_accel_device_t *other = NULL;
    ds_accel_t *apart_context;
    ds_accel_plugin_graph_t *graph = NULL;
    struct ds_accel_options options = test_options();
    void *theirs = NULL;
    char host[16];

    start();
    options.accelerator = "mock";
    apart_context = test_create_with(&options);
    ASSERT_OK(ds_accel_detect(apart_context));
    ASSERT_OK(ds_accel_device_open(apart_context, 0, &other));
    ASSERT_OK(ds_accel_mem_alloc(other, NULL, 16, &theirs));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_STATUS(ds_accel_device_synchronize(other), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "it would break the capture, in mode global");
    EXPECT_STATUS(ds_accel_mem_copy(other, host, theirs, 16, DS_ACCEL_COPY_DEVICE_TO_HOST),
                  DS_ACCEL_ERR_STATE);
    EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_STATUS(ds_accel_device_synchronize(other), DS_ACCEL_OK);
    table->graph_destroy(graph);
    EXPECT_OK(ds_accel_mem_free(other, NULL, theirs));
    ds_accel_device_close(other);
    ds_accel_destroy(apart_context);
    stop();
}

Test(core_rules, a_capture_does_not_wait_for_what_was_recorded_outside_of_it)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_event_t *events[3] = {NULL, NULL, NULL};
    ds_accel_plugin_stream_t *beside = NULL;
    uint32_t state = 0;

    start();
    ASSERT_OK(table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, 0, &beside, &error));
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(table->event_create(handle, 0, &events[i], &error));
    }
    ASSERT_OK(table->event_record(events[0], beside, &error));
    ASSERT_OK(table->graph_capture_begin(beside, DS_ACCEL_CAPTURE_RELAXED, &error));
    ASSERT_OK(table->event_record(events[1], beside, &error));
    ASSERT_OK(table->graph_capture_end(beside, &graph, &error));
    table->graph_destroy(graph);
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    for (int i = 0; i < 2; i++) {
        EXPECT_FAIL(table->stream_wait_event(stream, events[i], &error), DS_ACCEL_ERR_STATE,
                    "waiting for it would break the capture");
    }
    EXPECT_OK(table->event_record(events[2], stream, &error));
    EXPECT_OK(table->stream_wait_event(beside, events[2], &error));
    EXPECT_OK(table->event_record(events[0], beside, &error));
    EXPECT_OK(table->stream_wait_event(stream, events[0], &error));
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_YES);
    EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
    table->graph_destroy(graph);
    for (int i = 0; i < 3; i++) {
        table->event_destroy(events[i]);
    }
    table->stream_destroy(beside);
    stop();
}

static ds_accel_graph_t *captured_here;

static void *end_there(void *status_out)
{
    *(int32_t *)status_out = ds_accel_graph_capture_end(captured_here);
    return NULL;
}

/* On some backends no other thread can end the capture: it continues, and the thread that began it
   can still end it. */
Test(core_rules, a_capture_is_ended_by_the_thread_that_began_it)
{
    ds_accel_stream_t *ours = NULL;
    uint32_t state = 0;
    int32_t status = DS_ACCEL_OK;
    pthread_t thread;

    start();
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &ours));
    ASSERT_OK(ds_accel_graph_create(device, &captured_here));
    for (uint32_t mode = DS_ACCEL_CAPTURE_GLOBAL; mode <= DS_ACCEL_CAPTURE_RELAXED; mode++) {
        bool is_relaxed = mode == DS_ACCEL_CAPTURE_RELAXED;

        ASSERT_OK(ds_accel_graph_capture_begin(captured_here, ours, NULL, mode));
        cr_assert_eq(pthread_create(&thread, NULL, end_there, &status), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_expect_eq(status, is_relaxed ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE, "mode %u: %d", mode,
                     status);
        EXPECT_OK(ds_accel_stream_is_capturing(ours, &state));
        cr_expect_eq(state, is_relaxed ? DS_ACCEL_CAPTURING_NO : DS_ACCEL_CAPTURING_YES);
        EXPECT_STATUS(ds_accel_graph_capture_end(captured_here),
                      is_relaxed ? DS_ACCEL_ERR_STATE : DS_ACCEL_OK);
        EXPECT_OK(ds_accel_graph_replay(captured_here, ours));
        EXPECT_OK(ds_accel_stream_synchronize(ours));
    }
    ds_accel_graph_destroy(captured_here);
    ds_accel_stream_destroy(ours);
    stop();
}
