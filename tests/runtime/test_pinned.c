/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The pool of pinned memory, through the public API, on mock and cpu. */
#include "fixture.h"

#include <semaphore.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers have their own malloc(), which ends the program, and an mlock() that does nothing; gcc
 * and clang say differently that one is there. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

#define KIB(count) (UINT64_C(1024) * (count))
#define MIB(count) (KIB(1024) * (count))

static ds_accel_t *context;
static ds_accel_device_t *device;

static void start(const char *accelerator)
{
    struct ds_accel_options options = test_options();

    options.accelerator = accelerator;
    options.log_levels = "info,pinned=debug";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
}

static void finish(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static void *take(uint64_t size_bytes, uint64_t align_bytes, uint32_t flags)
{
    void *pointer = NULL;

    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, size_bytes, align_bytes, flags, &pointer),
                  DS_ACCEL_OK);
    return pointer;
}

static void give(void *pointer)
{
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_OK);
}

static struct ds_accel_pinned_stats stats_now(void)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_STATUS(ds_accel_pinned_stats(device, &stats), DS_ACCEL_OK);
    return stats;
}

static bool is_pinned(const void *pointer)
{
    uint32_t answer = 9;

    EXPECT_STATUS(ds_accel_is_pinned(context, pointer, &answer), DS_ACCEL_OK);
    cr_expect_leq(answer, 1);
    return answer == 1;
}

static void expect_reuse(void)
{
    struct ds_accel_pinned_stats stats;
    char *first = take(100000, 1, 0);
    char *other = take(100000, 1, 0);

    cr_expect_neq(first, other);
    memset(first, 1, 100000);
    cr_expect(is_pinned(first));
    cr_expect(is_pinned(first + 99999));
    stats = stats_now();
    cr_expect_eq(stats.allocated_bytes, 200000);
    cr_expect_geq(stats.reserved_bytes, 200000);
    cr_expect_eq(stats.cached_bytes, 0);
    give(first);
    cr_expect_not(is_pinned(first));
    cr_expect_not(is_pinned(first + 99999));
    cr_expect(is_pinned(other));
    stats = stats_now();
    cr_expect_eq(stats.allocated_bytes, 100000);
    cr_expect_eq(stats.cached_bytes, stats.reserved_bytes / 2);
    cr_expect_eq(take(99000, 1, 0), first, "a size of the same class is met by the pool");
    cr_expect(is_pinned(first));
    cr_expect_neq(take(500000, 1, 0), first);
    stats = stats_now();
    cr_expect_eq(stats.alloc_count, 4);
    cr_expect_eq(stats.free_count, 1);
    cr_expect_eq(stats.hit_count, 1);
    cr_expect_eq(stats.requested_bytes, 799000);
    cr_expect_eq(stats.block_count, 3);
    cr_expect_eq(stats.allocated_peak_bytes, 699000);
    cr_expect_eq(stats.reserved_peak_bytes, stats.reserved_bytes);
    give(other);
    EXPECT_STATUS(ds_accel_pinned_reset_peaks(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().allocated_peak_bytes, 599000);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    stats = stats_now();
    cr_expect_eq(stats.cached_bytes, 0);
    cr_expect_eq(stats.block_count, 2);
    cr_expect_not(is_pinned(&stats));
}

Test(core_pinned, gives_a_freed_block_out_again_on_the_mock)
{
    start("mock");
    expect_reuse();
    finish(); /* with two blocks in use: they go with the device */
}

Test(core_pinned, gives_a_freed_block_out_again_on_the_cpu)
{
    start("cpu");
    expect_reuse();
    finish();
}

Test(core_pinned, aligns_as_asked)
{
    static const char *const accelerators[] = {"mock", "cpu"};

    for (size_t which = 0; which < 2; which++) {
        uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        char *small;

        start(accelerators[which]);
        cr_expect_eq((uintptr_t)take(5000, 0, 0) % page_bytes, 0);
        for (uint64_t align = 2; align <= MIB(4); align *= 2) {
            for (int round = 0; round < 2; round++) {
                char *pointer = take(5000, align, 0);

                cr_expect_eq((uintptr_t)pointer % align, 0, "%p for %llu", (void *)pointer,
                             (unsigned long long)align);
                pointer[4999] = 'x';
                give(pointer);
            }
        }
        small = take(5000, 1, 0);
        EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 5000, 3, 0, (void **)&small),
                       DS_ACCEL_ERR_INVALID, "alignment 3");
        EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 5000, UINT64_MAX, 0, (void **)&small),
                       DS_ACCEL_ERR_INVALID, "power of two");
        cr_expect_lt(ds_accel_mem_alloc_pinned(device, 5000, UINT64_C(1) << 63, 0, (void **)&small),
                     0);
        finish();
    }
}

Test(core_pinned, keeps_flags_apart)
{
    void *plain;
    void *huge;

    start("cpu");
    plain = take(MIB(2), 1, 0);
    huge = take(MIB(2), 1, DS_ACCEL_PINNED_HUGE_PAGES);
    cr_expect_eq((uintptr_t)huge % MIB(2), 0);
    give(plain);
    give(huge);
    cr_expect_eq(take(MIB(2), 1, DS_ACCEL_PINNED_HUGE_PAGES), huge);
    cr_expect_eq(take(MIB(2), 1, 0), plain);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 64, 1, 0x80, &plain), DS_ACCEL_ERR_INVALID,
                   "0x80");
    finish();
}

Test(core_pinned, refuses_what_is_not_its_own)
{
    ds_accel_device_t *other;
    char *pointer;
    char *kept = (char *)&other;

    start("mock");
    cr_assert_eq(ds_accel_device_open(context, 1, &other), DS_ACCEL_OK);
    pointer = take(4096, 1, 0);
    EXPECT_REFUSED(ds_accel_mem_free_pinned(other, pointer), DS_ACCEL_ERR_INVALID, "of device 1");
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer + 1), DS_ACCEL_ERR_INVALID,
                   "not the start");
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, &other), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, NULL), DS_ACCEL_OK);
    give(pointer);
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_ERR_INVALID,
                   "freed already");
    EXPECT_REFUSED(ds_accel_mem_record_stream(device, pointer, NULL), DS_ACCEL_ERR_INVALID,
                   "freed already");
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 0, 1, 0, (void **)&kept), DS_ACCEL_ERR_INVALID,
                   "0 bytes");
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, 64, 1, 0, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(NULL, 64, 1, 0, (void **)&kept), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, UINT64_MAX, 1, 0, (void **)&kept),
                  DS_ACCEL_ERR_NO_MEMORY);
    if (!HAS_SANITIZER) {
        EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, INT64_MAX, 1, 0, (void **)&kept),
                      DS_ACCEL_ERR_NO_MEMORY);
    }
    EXPECT_STATUS(ds_accel_pinned_stats(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_pinned_set_limit(NULL, 0), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(kept, (char *)&other, "written on failure");
    ds_accel_device_close(other);
    finish();
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_ERR_INVALID, "destroyed");
}

/* ---- streams -------------------------------------------------------------------------------- */

/* A stream with a copy of 200 ms from the block, which is told of it. */
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

static void *start_slow(void)
{
    void *memory = NULL;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "200000000", 1);
    start("mock");
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, 4096, &memory), DS_ACCEL_OK);
    return memory;
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
    EXPECT_STATUS(ds_accel_stream_query(second), DS_ACCEL_NOT_READY); /* nobody waited for it */
    cr_expect_neq(other, block);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().block_count, 2, "a block in use was given back to the runtime");
    EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
    cr_expect_eq(take(4096, 1, 0), block);
    cr_expect_eq(stats_now().waiting_bytes, 0);
    cr_expect_eq(stats_now().cached_bytes, 0);
    /* What streams used before the block was freed does not concern its next owner. */
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

/* ---- streams that nobody told of ------------------------------------------------------------ */

/* A gate: the stream's work behind it waits until the test opens it. */
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

/* Also one that the stream writes, and with a stream that is gone meanwhile. */
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

/* What is queued behind the freeing is another block's. */
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
            ds_accel_device_close(second); /* waits for it */
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

/* Freed while another stream captures: the capture goes on, and holds nothing of the pool's. */
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

/* The detector sees neither a race in reuse, nor a wait in freeing. */
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

/* ---- limits --------------------------------------------------------------------------------- */

Test(core_pinned, empties_itself_at_the_kernels_limit)
{
    struct ds_accel_pinned_stats stats;
    void *first;
    void *second;
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_PINNED_LIMIT_BYTES", "1000000", 1);
    start("mock");
    first = take(400000, 1, 0);
    second = take(500000, 1, 0);
    give(first);
    /* 100 kB are free and 400 kB are kept: those are given back first. */
    cr_expect_not_null(take(450000, 1, 0));
    stats = stats_now();
    cr_expect_eq(stats.alloc_retry_count, 1);
    cr_expect_eq(stats.cached_bytes, 0);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 450001, 1, 0, &pointer), DS_ACCEL_ERR_LIMIT,
                   "450001 bytes would exceed option pinned_limit_bytes, 1000000");
    cr_expect_null(pointer);
    /* The last try was for the exact size: a smaller rest is found, too. */
    cr_expect_not_null(take(25000, 1, 0));
    give(second);
    finish();
}

Test(core_pinned, names_the_limit_of_the_cpu)
{
    struct rlimit limit;
    bool is_root = geteuid() == 0;
    void *pointer = NULL;

    if (HAS_SANITIZER) {
        cr_skip_test("mlock() does nothing here");
    }
    start("cpu");
    cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = KIB(64);
    /* Root may lock without limit; what follows is done as somebody else. */
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (is_root && seteuid(65534) != 0)) {
        cr_skip_test("the limit can't be set here");
    }
    give(take(KIB(40), 1, 0));
    cr_expect_not_null(take(KIB(60), 1, 0));
    cr_expect_eq(stats_now().alloc_retry_count, 1);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, KIB(60), 1, 0, &pointer), DS_ACCEL_ERR_LIMIT,
                   "RLIMIT_MEMLOCK is 65536");
    finish();
    cr_assert(!is_root || seteuid(0) == 0);
}

Test(core_pinned, keeps_no_more_than_its_limit)
{
    void *blocks[4];

    start("mock");
    for (size_t i = 0; i < 4; i++) {
        blocks[i] = take(MIB(1), 1, 0);
    }
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, MIB(2)), DS_ACCEL_OK);
    for (size_t i = 0; i < 4; i++) {
        give(blocks[i]);
    }
    cr_expect_eq(stats_now().cached_bytes, MIB(2));
    cr_expect_eq(stats_now().limit_bytes, MIB(2));
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, 0), DS_ACCEL_OK);
    cr_expect_eq(stats_now().reserved_bytes, 0);
    give(take(MIB(1), 1, 0));
    cr_expect_eq(stats_now().block_count, 0);
    finish();
}

Test(core_pinned, finds_thousands_of_blocks)
{
    enum {
        COUNT = 3000
    };
    static void *blocks[COUNT];
    uint64_t asked = 0;

    start("mock");
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t size_bytes = 1 + (uint64_t)i * 37 % 70000;

        blocks[i] = take(size_bytes, 1, 0);
        asked += size_bytes;
    }
    cr_expect_eq(stats_now().allocated_bytes, asked);
    cr_expect_leq(stats_now().reserved_bytes, asked + asked / 8 + (uint64_t)COUNT * 4096);
    for (unsigned i = 0; i < COUNT; i++) {
        give(blocks[i]);
    }
    cr_expect_eq(stats_now().allocated_bytes, 0);
    cr_expect_eq(stats_now().cached_bytes, stats_now().reserved_bytes);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().block_count, 0);
    cr_expect_eq(stats_now().reserved_bytes, 0);
    finish();
}

/* ---- accounting ----------------------------------------------------------------------------- */

Test(core_pinned, logs_what_was_asked_for)
{
    start("mock");
    give(take(KIB(3), 1, 0));
    EXPECT_HAS(test_log, "4 pinned: device 0: 3.0 KB pinned; 3.0 KB in all, in 1 calls");
    for (int i = 0; i < 31; i++) {
        give(take(MIB(1024), 1, 0));
    }
    EXPECT_HAS_NOT(test_log, "3 pinned:");
    give(take(MIB(1024), 1, 0));
    EXPECT_HAS(test_log, "3 pinned: device 0: 1.000 GB pinned; 32.000 GB in all, in 33 calls");
    test_log[0] = '\0';
    for (int i = 0; i < 31; i++) {
        give(take(MIB(1024), 1, 0));
    }
    EXPECT_HAS_NOT(test_log, "3 pinned:");
    give(take(MIB(1024), 1, 0));
    EXPECT_HAS(test_log, "3 pinned: device 0: 1.000 GB pinned; 64.000 GB in all");
    finish();
}

Test(core_pinned, is_left_alone_in_a_forked_child)
{
    void *block;
    int result = -1;
    pid_t child;

    start("mock");
    block = take(4096, 1, 0);
    child = fork();
    if (child == 0) {
        void *pointer = NULL;

        _exit(ds_accel_mem_free_pinned(device, block) != DS_ACCEL_ERR_STATE ||
              ds_accel_mem_alloc_pinned(device, 64, 1, 0, &pointer) != DS_ACCEL_ERR_STATE ||
              ds_accel_pinned_empty_cache(device) != DS_ACCEL_ERR_STATE);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    give(block);
    finish();
}

/* Memory that a stream of before used, which is gone: it comes back when the device is idle, as far
 * as that may be asked. */
static int reuse_in_child(void)
{
    ds_accel_stream_t *stream = NULL;
    void *memory = NULL;
    void *block = NULL;
    void *next = NULL;

    start("mock");
    if (ds_accel_mem_alloc(device, NULL, 4096, &memory) != DS_ACCEL_OK ||
        ds_accel_mem_alloc_pinned(device, 4096, 1, 0, &block) != DS_ACCEL_OK ||
        ds_accel_stream_create(device, 0, 0, &stream) != DS_ACCEL_OK ||
        ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE) !=
            DS_ACCEL_OK) {
        return 2;
    }
    ds_accel_stream_destroy(stream);
    if (ds_accel_mem_free_pinned(device, block) != DS_ACCEL_OK ||
        ds_accel_device_synchronize(device) != DS_ACCEL_OK ||
        ds_accel_mem_alloc_pinned(device, 4096, 1, 0, &next) != DS_ACCEL_OK) {
        return 3;
    }
    return next == block ? 0 : 4;
}

/* In a child that still has the parent's context, and in one that ended all of it: what the parent
 * captures or shares is nothing there, and its context's address may be another's. */
static void expect_reuse_after_fork(ds_accel_stream_t *stream, ds_accel_graph_t *graph, bool ends)
{
    int result = -1;
    pid_t child = fork();

    if (child == 0) {
        ds_accel_graph_capture_end(graph); /* refused */
        if (ends) {
            ds_accel_stream_destroy(stream);
            ds_accel_device_close(device);
            ds_accel_destroy(context);
        }
        _exit(reuse_in_child());
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0,
              "the child, which %s, ended with status %#x",
              ends ? "ends its context" : "keeps its context", (unsigned)result);
}

Test(core_pinned, comes_back_in_a_child_of_a_process_that_captures)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_graph_t *graph = NULL;

    start_slow();
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    expect_reuse_after_fork(stream, graph, false);
    expect_reuse_after_fork(stream, graph, true);
    MUST(ds_accel_graph_capture_end(graph));
    finish();
}

Test(core_pinned, comes_back_in_a_child_of_a_process_that_shares_a_stream)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_stream_t *wrapped = NULL;
    uint64_t native = 0;

    start_slow();
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_stream_native(stream, &native));
    MUST(ds_accel_stream_wrap(device, native, &wrapped));
    expect_reuse_after_fork(wrapped, NULL, false);
    expect_reuse_after_fork(wrapped, NULL, true);
    finish();
}

/* ---- under torch's names -------------------------------------------------------------------- */

static int64_t stat_of(const char *key)
{
    int64_t value = -1;

    EXPECT_STATUS(ds_accel_host_memory_stat(device, key, &value), DS_ACCEL_OK);
    return value;
}

Test(core_pinned, figures_have_torchs_names)
{
    char *first;
    char *second;
    char *text = NULL;
    int64_t value = 7;

    start("mock");
    cr_expect_eq(stat_of("num_host_alloc"), 0);
    cr_expect_eq(stat_of("host_alloc_time.count"), 0);
    first = take(KIB(3), 0, 0);
    second = take(KIB(4), 0, 0);
    cr_expect_eq(stat_of("active_requests.current"), 2);
    cr_expect_eq(stat_of("active_bytes.current"), KIB(8), "as large as they were rounded to");
    cr_expect_eq(stat_of("allocations.current"), 2);
    cr_expect_eq(stat_of("allocated_bytes.current"), KIB(8));
    cr_expect_eq(stat_of("num_host_alloc"), 2);
    cr_expect_eq(stat_of("host_alloc_time.count"), 2);
    cr_expect_leq(stat_of("host_alloc_time.min"), stat_of("host_alloc_time.avg"));
    cr_expect_leq(stat_of("host_alloc_time.avg"), stat_of("host_alloc_time.max"));
    cr_expect_leq(stat_of("host_alloc_time.max"), stat_of("host_alloc_time.total"));
    give(first);
    cr_expect_eq(stat_of("active_requests.current"), 1);
    cr_expect_eq(stat_of("active_requests.peak"), 2);
    cr_expect_eq(stat_of("active_requests.allocated"), 2);
    cr_expect_eq(stat_of("active_requests.freed"), 1);
    cr_expect_eq(stat_of("active_bytes.freed"), KIB(4));
    cr_expect_eq(stat_of("allocations.current"), 2, "it is kept");
    cr_expect_eq(stat_of("num_host_free"), 0);
    first = take(KIB(4), 0, 0);
    cr_expect_eq(stat_of("active_requests.allocated"), 3);
    cr_expect_eq(stat_of("num_host_alloc"), 2, "the pool had it");
    give(first);
    give(second);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stat_of("allocations.current"), 0);
    cr_expect_eq(stat_of("allocated_bytes.freed"), KIB(8));
    cr_expect_eq(stat_of("num_host_free"), 2);
    cr_expect_eq(stat_of("host_free_time.count"), 2);
    cr_expect_eq(stat_of("segment.peak"), 2);
    cr_expect_eq(stat_of("reserved_bytes.peak"), KIB(8));
    EXPECT_STATUS(ds_accel_pinned_reset_peaks(device), DS_ACCEL_OK);
    cr_expect_eq(stat_of("allocations.peak"), 0);
    cr_expect_eq(stat_of("active_bytes.peak"), 0);
    EXPECT_STATUS(ds_accel_host_memory_stats(device, &text), DS_ACCEL_OK);
    EXPECT_HAS(text, "\"active_bytes.allocated\": 12288");
    EXPECT_HAS(text, "\"num_host_free\": 2");
    ds_accel_free_text(text);
    EXPECT_REFUSED(ds_accel_host_memory_stat(device, "active_byte.current", &value),
                   DS_ACCEL_ERR_NOT_FOUND, "did you mean \"active_bytes.current\"");
    EXPECT_STATUS(ds_accel_host_memory_stat(device, NULL, &value), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stat(device, "num_host_alloc", NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stats(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_host_memory_stats(NULL, &text), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(value, 7);
    finish();
}

static void do_nothing(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

/* What a stream still uses is active, though it was freed. */
Test(core_pinned, freed_memory_is_active_until_streams_are_done)
{
    ds_accel_stream_t *stream = NULL;
    char *memory;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", "3000000000000", 1);
    start("mock");
    EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    memory = take(KIB(4), 0, 0);
    EXPECT_STATUS(ds_accel_stream_host_task(stream, do_nothing, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, memory, stream), DS_ACCEL_OK);
    give(memory);
    cr_expect_eq(stat_of("active_requests.current"), 1);
    cr_expect_eq(stat_of("active_bytes.freed"), 0);
}
