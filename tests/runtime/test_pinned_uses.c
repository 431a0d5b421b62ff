/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Pinned memory and streams: a block is not reused while a stream uses it. */
#include "pinned.h"

#include <semaphore.h>

/* ---- streams -------------------------------------------------------------------------------- */

/* A stream with a copy of 200 ms from the block, and the use of the block recorded for that
   stream. */
static ds_accel_stream_t *busy_stream(void *block, void *memory)
{
    ds_accel_stream_t *stream;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    EXPECT_STATUS(
        ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, block, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, block, stream), DS_ACCEL_OK);
    return stream;
}

Test(core_pinned, is_not_reused_while_a_stream_copies_from_it)
{
    void *memory = start_slow();
    void *block = take(4096, 1, 0);
    ds_accel_stream_t *first = busy_stream(block, memory);
    ds_accel_stream_t *second = busy_stream(block, memory);
    void *other;

    give(block);
    cr_expect_eq(stats_now().waiting_bytes, 4096);
    cr_expect_not(is_pinned(block));
    EXPECT_STATUS(ds_accel_stream_query(first), DS_ACCEL_NOT_READY);
    other = take(4096, 1, 0);
    /* no call has waited for the stream */
    EXPECT_STATUS(ds_accel_stream_query(second), DS_ACCEL_NOT_READY);
    cr_expect_neq(other, block);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().block_count, 2, "a block in use was given back to the runtime");
    EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
    cr_expect_eq(take(4096, 1, 0), block);
    cr_expect_eq(stats_now().waiting_bytes, 0);
    cr_expect_eq(stats_now().cached_bytes, 0);
    /* Uses recorded before the block was freed do not affect its next owner. */
    give(block);
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

Test(core_pinned, waits_for_streams_that_are_gone)
{
    void *memory = start_slow();
    void *block = take(4096, 1, 0);

    ds_accel_stream_destroy(busy_stream(block, memory));
    give(block);
    cr_expect_neq(take(4096, 1, 0), block);
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

Test(core_pinned, does_not_get_into_a_capture)
{
    void *memory = start_slow();
    void *block = take(4096, 1, 0);
    ds_accel_stream_t *stream;
    ds_accel_graph_t *graph;
    uint64_t count = 9;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL),
                  DS_ACCEL_OK);
    EXPECT_STATUS(
        ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, block, stream), DS_ACCEL_OK);
    give(block);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_node_count(graph, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 1, "the pool's event is in the graph");
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

Test(core_pinned, closes_with_blocks_that_wait)
{
    void *memory = start_slow();
    void *block = take(4096, 1, 0);

    busy_stream(block, memory);
    give(block);
    cr_expect_eq(stats_now().waiting_bytes, 4096);
    finish();
}

Test(core_pinned, survives_events_that_fail)
{
    static const char *const scripts[] = {"event_create:1=driver", "event_record:1=driver",
                                          "event_query:1=driver"};

    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        void *memory;
        void *block;

        setenv("DS_ACCEL_MOCK_FAIL", scripts[i], 1);
        memory = start_slow();
        block = take(4096, 1, 0);
        busy_stream(block, memory);
        give(block);
        cr_expect_neq(take(4096, 1, 0), block, "%s", scripts[i]);
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        cr_expect_eq(take(4096, 1, 0), block, "%s", scripts[i]);
        finish();
    }
}

/* ---- streams whose use was not recorded ------------------------------------------------------ */

/* A host task that blocks the later work of its stream until the test opens the gate. */
static void wait_at_gate(void *user_data, int32_t status)
{
    (void)status;
    while (sem_wait(user_data) != 0) {
    }
}

static ds_accel_stream_t *gated_stream(sem_t *gate)
{
    ds_accel_stream_t *stream = NULL;

    sem_init(gate, 0, 0);
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_stream_host_task(stream, wait_at_gate, gate));
    return stream;
}

static void start_async_cpu(void)
{
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    start("cpu");
}

Test(core_pinned, stays_as_it_is_for_a_copy_that_nobody_told_of)
{
    ds_accel_stream_t *stream;
    void *memory = NULL;
    char back[64];
    char *block;
    char *other;
    sem_t gate;

    start_async_cpu();
    MUST(ds_accel_mem_alloc(device, NULL, 4096, &memory));
    block = take(4096, 1, 0);
    memset(block, 'a', 4096);
    stream = gated_stream(&gate);
    MUST(ds_accel_mem_copy_async(stream, memory, block, 64, DS_ACCEL_COPY_HOST_TO_DEVICE));
    give(block);
    cr_expect_eq(stats_now().waiting_bytes, 4096);
    other = take(4096, 1, 0);
    cr_expect_neq(other, block);
    memset(other, 'b', 4096);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, 0), DS_ACCEL_OK);
    cr_expect_eq(stats_now().block_count, 2, "a block in use was given back to the runtime");
    sem_post(&gate);
    MUST(ds_accel_stream_synchronize(stream));
    MUST(ds_accel_mem_copy(device, back, memory, 64, DS_ACCEL_COPY_DEVICE_TO_HOST));
    cr_expect_eq(back[0], 'a');
    cr_expect_eq(back[63], 'a');
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, UINT64_MAX), DS_ACCEL_OK);
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

/* The destroyed stream still writes to the freed block. */
Test(core_pinned, waits_for_the_copies_of_streams_that_are_gone)
{
    ds_accel_stream_t *gone;
    ds_accel_stream_t *busy;
    void *memory = NULL;
    char *block;
    sem_t gates[2];

    start_async_cpu();
    MUST(ds_accel_mem_alloc(device, NULL, 4096, &memory));
    block = take(4096, 1, 0);
    gone = gated_stream(&gates[0]);
    MUST(ds_accel_mem_copy_async(gone, block, memory, 4096, DS_ACCEL_COPY_DEVICE_TO_HOST));
    ds_accel_stream_destroy(gone);
    give(block);
    cr_expect_neq(take(4096, 1, 0), block);
    busy = gated_stream(&gates[1]);
    sem_post(&gates[1]);
    MUST(ds_accel_stream_synchronize(busy));
    cr_expect_neq(take(4096, 1, 0), block, "another stream's end says nothing");
    sem_post(&gates[0]);
    MUST(ds_accel_device_synchronize(device));
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

/* Work queued after the free must not delay the reuse of the block. */
Test(core_pinned, does_not_wait_for_what_is_queued_later)
{
    ds_accel_stream_t *stream;
    ds_accel_event_t *event = NULL;
    char *block;
    sem_t gates[2];

    start_async_cpu();
    block = take(4096, 1, 0);
    stream = gated_stream(&gates[0]);
    give(block);
    MUST(ds_accel_event_create(device, 0, &event));
    MUST(ds_accel_event_record(event, stream));
    sem_init(&gates[1], 0, 0);
    MUST(ds_accel_stream_host_task(stream, wait_at_gate, &gates[1]));
    cr_expect_neq(take(4096, 1, 0), block);
    sem_post(&gates[0]);
    MUST(ds_accel_event_synchronize(event));
    EXPECT_STATUS(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
    cr_expect_eq(take(4096, 1, 0), block);
    sem_post(&gates[1]);
    finish();
}

Test(core_pinned, waits_for_streams_of_other_devices)
{
    ds_accel_device_t *second = NULL;
    ds_accel_stream_t *stream = NULL;
    void *block;

    for (int is_closed = 0; is_closed < 2; is_closed++) {
        void *memory = NULL;

        start_slow();
        MUST(ds_accel_device_open(context, 1, &second));
        MUST(ds_accel_mem_alloc(second, NULL, 4096, &memory));
        MUST(ds_accel_stream_create(second, 0, 0, &stream));
        block = take(4096, 1, 0);
        MUST(ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE));
        give(block);
        EXPECT_STATUS(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
        cr_expect_eq(stats_now().waiting_bytes, 4096);
        cr_expect_neq(take(4096, 1, 0), block);
        if (is_closed) {
            ds_accel_device_close(second); /* waits for the copy */
        } else {
            MUST(ds_accel_stream_synchronize(stream));
        }
        cr_expect_eq(take(4096, 1, 0), block);
        finish();
    }
}

Test(core_pinned, copies_on_the_mock_are_waited_for)
{
    ds_accel_stream_t *stream = NULL;
    void *memory = start_slow();
    void *block = take(4096, 1, 0);

    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE));
    give(block);
    EXPECT_STATUS(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
    cr_expect_neq(take(4096, 1, 0), block);
    MUST(ds_accel_stream_synchronize(stream));
    cr_expect_eq(take(4096, 1, 0), block);
    finish();
}

/* The block is freed while another stream captures: the capture continues and records nothing of
   the pool. */
Test(core_pinned, leaves_captures_alone)
{
    static const char *const accelerators[] = {"mock", "cpu"};

    for (size_t i = 0; i < 2; i++) {
        ds_accel_stream_t *streams[2] = {NULL};
        ds_accel_graph_t *graph = NULL;
        void *memory = NULL;
        uint64_t count = 9;
        char *block;

        setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
        start(accelerators[i]);
        MUST(ds_accel_mem_alloc(device, NULL, 4096, &memory));
        block = take(4096, 1, 0);
        MUST(ds_accel_stream_create(device, 0, 0, &streams[0]));
        MUST(ds_accel_stream_create(device, 0, 0, &streams[1]));
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, streams[0], NULL, DS_ACCEL_CAPTURE_GLOBAL));
        MUST(ds_accel_mem_set_async(streams[0], memory, 1, 64));
        give(block);
        give(take(4096, 1, 0));
        MUST(ds_accel_graph_capture_end(graph));
        MUST(ds_accel_graph_node_count(graph, &count));
        cr_expect_eq(count, 1);
        MUST(ds_accel_device_synchronize(device));
        block = take(4096, 1, 0);
        give(block);
        cr_expect_eq(take(4096, 1, 0), block, "nothing captures any more");
        finish();
    }
}

/* Layer race reports no race when the block is reused, and freeing makes no wait. */
Test(core_pinned, is_given_out_again_without_a_race)
{
    ds_accel_stream_t *stream = NULL;
    uint64_t count = 9;
    void *memory = NULL;
    char *block;
    char *kept;

    setenv("DS_ACCEL_LAYERS", "validate", 1);
    start("mock");
    MUST(ds_accel_mem_alloc(device, NULL, 4096, &memory));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    block = take(4096, 1, 0);
    kept = take(4096, 1, 0);
    MUST(ds_accel_mem_copy_async(stream, memory, kept, 64, DS_ACCEL_COPY_HOST_TO_DEVICE));
    MUST(ds_accel_mem_copy_async(stream, memory, block, 64, DS_ACCEL_COPY_HOST_TO_DEVICE));
    give(block);
    cr_expect_eq(take(4096, 1, 0), block);
    MUST(ds_accel_note_access(device, NULL, block, 64, DS_ACCEL_ACCESS_WRITE));
    MUST(ds_accel_race_count(context, &count));
    cr_expect_eq(count, 0, "its next owner writes it");
    give(block);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    MUST(ds_accel_race_count(context, &count));
    cr_expect_eq(count, 0, "it goes back to the runtime");
    MUST(ds_accel_note_access(device, NULL, kept, 64, DS_ACCEL_ACCESS_WRITE));
    MUST(ds_accel_race_count(context, &count));
    cr_expect_eq(count, 1, "the other one was not waited for");
    MUST(ds_accel_device_synchronize(device));
    finish();
}
