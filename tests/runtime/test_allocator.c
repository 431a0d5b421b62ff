/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator of the public API, on the mock, whose latencies are scripted, and on cpu.
 */
#include "fixture.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

static ds_accel_stream_t *make_stream(ds_accel_device_t *device)
{
    ds_accel_stream_t *stream = NULL;

    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
    return stream;
}

static void *take(ds_accel_device_t *device, ds_accel_stream_t *stream, uint64_t size_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc(device, stream, size_bytes, &pointer));
    return pointer;
}

static int64_t stat_of(ds_accel_device_t *device, const char *key)
{
    int64_t value = -1;

    MUST(ds_accel_memory_stat(device, key, &value));
    return value;
}

#define EXPECT_STAT(device, key, wanted) \
    do { \
        int64_t value_ = stat_of(device, key); \
        cr_expect_eq(value_, (int64_t)(wanted), "%s is %lld, not %lld", key, (long long)value_, \
                     (long long)(wanted)); \
    } while (0)

/* ---- caching -------------------------------------------------------------------------------- */

Test(core_allocator, gives_out_again_what_was_freed_without_asking_the_driver)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *first = take(device, NULL, 1000);
    void *second;

    cr_expect_eq((uintptr_t)first % 512, 0);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, first), DS_ACCEL_OK);
    second = take(device, NULL, 900);
    cr_expect_eq(first, second);
    EXPECT_STAT(device, "num_device_alloc", 1);
    EXPECT_STAT(device, "allocation.all.current", 1);
    EXPECT_STAT(device, "allocation.small_pool.allocated", 2);
    EXPECT_STAT(device, "allocated_bytes.all.current", 1024);
    EXPECT_STAT(device, "requested_bytes.all.current", 900);
    EXPECT_STAT(device, "reserved_bytes.all.current", 2 * MIB);
    EXPECT_STAT(device, "inactive_split.all.current", 1);
    EXPECT_STAT(device, "inactive_split_bytes.all.current", 2 * MIB - 1024);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, second), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, takes_segments_by_the_size_of_the_request)
{
    static const struct {
        uint64_t request;
        uint64_t segment;
    } cases[] = {{1, 2 * MIB},        {MIB, 2 * MIB},       {MIB + 1, 20 * MIB},
                 {9 * MIB, 20 * MIB}, {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB},
                 {33 * MIB, 34 * MIB}};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *pointer = take(device, NULL, cases[i].request);

        EXPECT_STAT(device, "reserved_bytes.all.current", cases[i].segment);
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    }
    test_finish(context, device);
}

Test(core_allocator, takes_segments_that_hold_the_request_whatever_the_settings)
{
    static const char *const settings[] = {"medium_segment_bytes=1MiB",
                                           "medium_segment_bytes=1000,small_segment_bytes=700",
                                           "small_limit_bytes=64MiB,small_segment_bytes=512",
                                           "large_step_bytes=1000,medium_limit_bytes=0"};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        char *pointers[3];

        setenv("DS_ACCEL_ALLOCATOR", settings[i], 1);
        context = test_start("mock", &device);
        for (int k = 0; k < 3; k++) {
            pointers[k] = take(device, NULL, 5 * MIB - 100);
            cr_expect_geq(stat_of(device, "reserved_bytes.all.current"), (k + 1) * 5 * MIB - 300,
                          "%s", settings[i]);
        }
        for (int k = 0; k < 3; k++) {
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[k]), DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
        EXPECT_STAT(device, "inactive_split.all.current", 0);
        test_finish(context, device);
    }
}

Test(core_allocator, puts_pieces_together_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *pieces[8];

    for (int i = 0; i < 8; i++) {
        pieces[i] = take(device, NULL, 2 * MIB + 512 * KIB);
    }
    EXPECT_STAT(device, "segment.large_pool.current", 1);
    for (int i = 0; i < 8; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[(i * 3) % 8]), DS_ACCEL_OK);
    }
    pieces[0] = take(device, NULL, 20 * MIB);
    EXPECT_STAT(device, "segment.large_pool.current", 1);
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[0]), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, aligns_as_it_is_told)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *pointers[12];

    for (unsigned i = 0; i < 12; i++) {
        MUST(ds_accel_mem_alloc_aligned(device, NULL, 1000, UINT64_C(1) << (9 + i), &pointers[i]));
        cr_expect_eq((uintptr_t)pointers[i] & ((UINT64_C(1) << (9 + i)) - 1), 0);
    }
    for (unsigned i = 0; i < 12; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[i]), DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_mem_alloc_aligned(device, NULL, 1000, 1000, &pointers[0]),
                   DS_ACCEL_ERR_INVALID, "power of two");
    EXPECT_REFUSED(ds_accel_mem_alloc_aligned(device, NULL, 1000, UINT64_C(1) << 31, &pointers[0]),
                   DS_ACCEL_ERR_INVALID, "up to 1 GiB");
    test_finish(context, device);
}

Test(core_allocator, says_how_fragmented_it_is)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    double fragmentation = -1;
    uint64_t largest = 1;
    char *pieces[4];

    EXPECT_STATUS(ds_accel_memory_fragmentation(device, &fragmentation, &largest), DS_ACCEL_OK);
    cr_expect_eq(fragmentation, 0);
    cr_expect_eq(largest, 0);
    for (int i = 0; i < 4; i++) {
        pieces[i] = take(device, NULL, 5 * MIB - 100);
    }
    EXPECT_STATUS(ds_accel_mem_pointer_info(context, pieces[1] + 77, &info), DS_ACCEL_OK);
    cr_expect_eq(info.base_address, (uintptr_t)pieces[1]);
    cr_expect_eq(info.size_bytes, 5 * MIB - 100);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[0]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[2]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_memory_fragmentation(device, &fragmentation, &largest), DS_ACCEL_OK);
    cr_expect_eq(fragmentation, 0.5);
    cr_expect_eq(largest, 5 * MIB);
    test_finish(context, device);
}

/* ---- misuse --------------------------------------------------------------------------------- */

Test(core_allocator, refuses_what_is_not_a_live_block)
{
    ds_accel_device_t *device;
    ds_accel_device_t *other;
    ds_accel_t *context = test_start("mock", &device);
    char *pointer = take(device, NULL, 4096);
    void *again = NULL;
    int local = 0;

    MUST(ds_accel_device_open(context, 1, &other));
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer + 512), DS_ACCEL_ERR_INVALID,
                   "512 bytes inside an allocation of 4096");
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer + 3), DS_ACCEL_ERR_INVALID, "inside");
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, &local), DS_ACCEL_ERR_INVALID, "not allocated");
    EXPECT_REFUSED(ds_accel_mem_free(other, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "memory of device 0, not 1");
    EXPECT_REFUSED(ds_accel_mem_record_stream(other, pointer, NULL), DS_ACCEL_ERR_INVALID,
                   "memory of device 0, not 1");
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID, "freed before");
    EXPECT_REFUSED(ds_accel_mem_record_stream(device, pointer, NULL), DS_ACCEL_ERR_INVALID,
                   "freed before");
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, NULL), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 0, &again), DS_ACCEL_ERR_INVALID, "size is 0");
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, UINT64_MAX, &again), DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, UINT64_MAX - 510, &again),
                  DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 512, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_alloc(NULL, NULL, 512, &again), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free(NULL, NULL, pointer), DS_ACCEL_ERR_INVALID);
    cr_expect_null(again);
    ds_accel_device_close(other);
    test_finish(context, device);
}

Test(core_allocator, refuses_streams_that_are_not_the_devices)
{
    ds_accel_device_t *device;
    ds_accel_device_t *other;
    ds_accel_t *context = test_start("mock", &device);
    void *pointer = take(device, NULL, 4096);
    void *more = NULL;
    ds_accel_stream_t *foreign;
    ds_accel_stream_t *gone = make_stream(device);

    MUST(ds_accel_device_open(context, 1, &other));
    foreign = make_stream(other);
    EXPECT_STATUS(ds_accel_mem_alloc(device, foreign, 512, &more), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free(device, foreign, pointer), DS_ACCEL_ERR_INVALID);
    ds_accel_mem_free(device, NULL, take(device, gone, 4096));
    ds_accel_stream_destroy(gone);
    EXPECT_REFUSED(ds_accel_mem_alloc(device, gone, 512, &more), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_mem_free(device, gone, pointer), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    ds_accel_device_close(other);
    test_finish(context, device);
}

Test(core_allocator, answers_at_once_in_a_forked_child)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    void *pointer = take(device, stream, 4096);
    uint64_t bytes;
    void *data;
    size_t size;
    pid_t child = fork();
    int result = -1;

    cr_assert_geq(child, 0);
    if (child == 0) {
        alarm(10);
        _exit(ds_accel_mem_alloc(device, stream, 4096, &data) == DS_ACCEL_ERR_STATE &&
                      ds_accel_mem_free(device, stream, pointer) == DS_ACCEL_ERR_STATE &&
                      ds_accel_mem_free(device, NULL, pointer) == DS_ACCEL_ERR_STATE &&
                      ds_accel_mem_record_stream(device, pointer, stream) == DS_ACCEL_ERR_STATE &&
                      ds_accel_memory_allocated(device, &bytes) == DS_ACCEL_ERR_STATE &&
                      ds_accel_empty_cache(device) == DS_ACCEL_ERR_STATE &&
                      ds_accel_memory_snapshot(NULL, device, 1, &data, &size) == DS_ACCEL_ERR_STATE
                  ? 0
                  : 1);
    }
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect_eq(result, 0);
    EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

/* ---- the order of streams ------------------------------------------------------------------- */

#define SLOW "400000000" /* a copy takes so many nanoseconds: longer than any call here */

/* Keep a stream busy for that long. */
static void occupy(ds_accel_stream_t *stream, void *pointer)
{
    MUST(ds_accel_mem_set_async(stream, pointer, 1, 512));
    cr_assert_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The stream, that had nothing to do, is behind the one that was busy. */
static void expect_waits(ds_accel_stream_t *stream, ds_accel_stream_t *busy)
{
    cr_expect_eq(ds_accel_stream_query(stream), DS_ACCEL_NOT_READY, "it does not wait");
    MUST(ds_accel_stream_synchronize(stream));
    cr_expect_eq(ds_accel_stream_query(busy), DS_ACCEL_OK, "it was done before the other");
}

Test(core_allocator, leaves_memory_to_its_stream_while_the_driver_has_some)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *a = make_stream(device);
    ds_accel_stream_t *b = make_stream(device);
    void *on_a = take(device, a, 30 * MIB);
    void *on_b;

    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    on_b = take(device, b, 30 * MIB);
    cr_expect_neq(on_b, on_a);
    EXPECT_STAT(device, "num_device_alloc", 2);
    cr_expect_eq(take(device, a, 30 * MIB), on_a);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    ds_accel_stream_destroy(b);
    cr_expect_eq(take(device, a, 30 * MIB), on_b, "its stream is gone");
    EXPECT_STAT(device, "num_device_alloc", 2);
    test_finish(context, device);
}

Test(core_allocator, does_not_wait_within_one_stream)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    void *pointer;
    double before;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    /* No event is made, or it would fail: nothing is recorded, waited for or synchronized. */
    setenv("DS_ACCEL_MOCK_FAIL",
           "event_create:1+=driver,stream_synchronize:1+=driver,device_synchronize:1+=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    before = now_s();
    occupy(a, pointer);
    for (int i = 0; i < 100; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, i % 2 == 0 ? a : NULL, pointer), DS_ACCEL_OK);
        cr_expect_eq(take(device, a, 30 * MIB), pointer);
    }
    cr_expect(now_s() - before > 0.35 || ds_accel_stream_query(a) == DS_ACCEL_NOT_READY);
    test_finish(context, device);
}

Test(core_allocator, waits_for_every_stream_that_was_recorded)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    occupy(b, pointer);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_OK);
    EXPECT_STAT(device, "allocation.all.current", 0);
    EXPECT_STAT(device, "active.all.current", 1);
    cr_expect_eq(ds_accel_stream_query(a), DS_ACCEL_OK);
    /* Its own stream may have it only behind b. */
    cr_expect_eq(take(device, a, 30 * MIB), pointer);
    expect_waits(a, b);
    EXPECT_STAT(device, "active.all.current", 1);
    EXPECT_STAT(device, "num_device_alloc", 1);
    test_finish(context, device);
}

Test(core_allocator, waits_for_the_stream_that_freed)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    occupy(b, pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_OK);
    cr_expect_eq(take(device, a, 30 * MIB), pointer);
    expect_waits(a, b);
    test_finish(context, device);
}

Test(core_allocator, knows_when_recorded_streams_are_done)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *b = make_stream(device);
    void *pointer = take(device, NULL, 30 * MIB);

    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "active.all.current", 0);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, keeps_the_order_of_streams_that_were_destroyed)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    ds_accel_event_t *end;
    void *freed_before;
    void *freed_after;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    freed_before = take(device, a, 30 * MIB);
    freed_after = take(device, a, 40 * MIB);
    occupy(a, freed_before);
    MUST(ds_accel_event_create(device, 0, &end));
    MUST(ds_accel_event_record(end, a));
    EXPECT_STATUS(ds_accel_mem_free(device, a, freed_before), DS_ACCEL_OK);
    ds_accel_stream_destroy(a);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, freed_after), DS_ACCEL_OK);
    cr_expect_eq(take(device, b, 30 * MIB), freed_before);
    cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_NOT_READY);
    MUST(ds_accel_stream_synchronize(b));
    cr_expect_eq(ds_accel_event_query(end), DS_ACCEL_OK);
    cr_expect_eq(take(device, b, 40 * MIB), freed_after);
    test_finish(context, device);
}

Test(core_allocator, is_not_confused_by_streams_that_come_and_go)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *keeper = make_stream(device);

    /* The vendor gives the same handles out again and again; each stream uses the last one's. */
    for (int i = 0; i < 300; i++) {
        ds_accel_stream_t *stream = make_stream(device);
        void *pointer = take(device, stream, 30 * MIB);
        void *recorded = take(device, keeper, 40 * MIB);

        EXPECT_STATUS(ds_accel_mem_record_stream(device, recorded, stream), DS_ACCEL_OK);
        if (i % 2 == 0) {
            EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
            ds_accel_stream_destroy(stream);
        } else {
            ds_accel_stream_destroy(stream);
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_mem_free(device, keeper, recorded), DS_ACCEL_OK);
    }
    EXPECT_STAT(device, "allocation.all.current", 0);
    EXPECT_STAT(device, "num_device_alloc", 2);
    test_finish(context, device);
}

Test(core_allocator, waits_itself_where_events_fail)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "50000000", 1);
    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1=no_memory,event_record:1=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    for (int i = 0; i < 3; i++) {
        pointer = take(device, a, 30 * MIB);
        MUST(ds_accel_mem_set_async(b, pointer, 1, 512));
        EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_OK);
        if (i < 2) { /* without an event the free itself waited */
            cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_OK, "round %d", i);
        } else {
            cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_NOT_READY);
        }
    }
    test_finish(context, device);
}

Test(core_allocator, keeps_memory_out_of_use_if_no_order_can_be_had)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1+=no_memory,stream_synchronize:1+=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_ERR_DRIVER);
    cr_expect_neq(take(device, a, 30 * MIB), pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_allocator, uses_memory_again_once_an_order_can_be_had)
{
    static const char *const modes[] = {"caching", "off"};

    for (int i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_stream_t *a;
        ds_accel_stream_t *b;
        void *pointer;

        setenv("DS_ACCEL_ALLOCATOR", modes[i], 1);
        setenv("DS_ACCEL_MOCK_FAIL", "event_create:1=no_memory,stream_synchronize:1=driver", 1);
        context = test_start("mock", &device);
        a = make_stream(device);
        b = make_stream(device);
        pointer = take(device, a, 30 * MIB);
        EXPECT_STATUS(ds_accel_mem_free(device, b, pointer), DS_ACCEL_ERR_DRIVER);
        EXPECT_STAT(device, "allocation.all.current", 0);
        EXPECT_STAT(device, "allocated_bytes.all.current", 0);
        EXPECT_STAT(device, "active_bytes.all.current", 30 * MIB);
        EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "active_bytes.all.current", 0);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
        test_finish(context, device);
    }
}

/* ---- out of memory -------------------------------------------------------------------------- */

Test(core_allocator, says_where_the_memory_is_when_there_is_none)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointers[5];
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1); /* 100 MiB */
    context = test_start("mock", &device);
    for (int i = 0; i < 5; i++) {
        pointers[i] = take(device, NULL, 20 * MIB);
    }
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[1]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[3]), DS_ACCEL_OK);
    pointers[1] = take(device, NULL, 2 * MIB);
    pointers[3] = take(device, NULL, 19 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 30 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    cr_expect_null(pointer);
    EXPECT_HAS(ds_accel_last_error(), "out of memory: 30 MiB asked");
    EXPECT_HAS(ds_accel_last_error(), " allocated");
    EXPECT_HAS(ds_accel_last_error(), "100 MiB reserved");
    EXPECT_HAS(ds_accel_last_error(), "largest free block 18 MiB");
    EXPECT_HAS(ds_accel_last_error(), "fragmentation ");
    EXPECT_STAT(device, "num_ooms", 1);
    EXPECT_STAT(device, "num_alloc_retries", 1);
    test_finish(context, device);
}

Test(core_allocator, names_the_setting_that_would_have_helped)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointers[4];
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "83886080", 1); /* 80 MiB: four segments */
    context = test_start("mock", &device);
    for (int i = 0; i < 4; i++) {
        pointers[i] = take(device, NULL, 9 * MIB);
        (void)take(device, NULL, 9 * MIB);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[i]), DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 30 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "growable_segments would have helped, and is off");
    EXPECT_HAS(ds_accel_last_error(), "fragmentation 80 %");
    test_finish(context, device);
}

Test(core_allocator, names_the_largest_allocation_of_the_driver)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MAX_ALLOCATION_BYTES", "16777728", 1); /* 16 MiB and 512 bytes */
    context = test_start("mock", &device);
    /* Much is free, in segments that are too small, since none may be larger. */
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, (11 + i) * MIB)),
                      DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 17 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "the driver gives at most 16.0 MiB in one allocation");
    EXPECT_HAS(ds_accel_last_error(), "ask for several smaller ones");
    EXPECT_HAS_NOT(ds_accel_last_error(), "in pieces");
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 2 * GIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "more would be needed");
    test_finish(context, device);
}

Test(core_allocator, rounds_no_segment_above_what_the_driver_gives)
{
    ds_accel_device_t *device;
    ds_accel_t *context;

    setenv("DS_ACCEL_MOCK_MAX_ALLOCATION_BYTES", "16777728", 1);
    context = test_start("mock", &device);
    (void)take(device, NULL, 16 * MIB + 300);
    (void)take(device, NULL, 5 * MIB); /* of a segment of 20 MiB, elsewhere */
    EXPECT_STAT(device, "reserved_bytes.all.current", 2 * (16 * MIB + 512));
    test_finish(context, device);
}

Test(core_allocator, gives_cached_memory_back_before_it_fails)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    void *pointer;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    pointer = take(device, a, 30 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_OK);
    pointer = take(device, a, 40 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, pointer), DS_ACCEL_OK);
    /* 70 of 100 MiB are cached, in two pieces. */
    pointer = take(device, NULL, 90 * MIB);
    EXPECT_STAT(device, "reserved_bytes.all.current", 90 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, takes_parts_of_other_streams_memory_before_it_fails)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    void *kept;
    void *free_part;
    void *stolen;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "41943040", 1); /* 40 MiB */
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    kept = take(device, a, 5 * MIB);
    free_part = take(device, a, 5 * MIB);
    (void)take(device, a, 20 * MIB);
    occupy(a, free_part);
    EXPECT_STATUS(ds_accel_mem_free(device, a, free_part), DS_ACCEL_OK);
    stolen = take(device, b, 6 * MIB);
    expect_waits(b, a);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, stolen), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, a, kept), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, keeps_pending_memory_pending_if_another_stream_cannot_have_it)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *a;
    ds_accel_stream_t *b;
    ds_accel_stream_t *f;
    void *part;
    void *stolen = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "41943040", 1); /* 40 MiB */
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    setenv("DS_ACCEL_MOCK_FAIL", "event_record:2=driver,stream_synchronize:1=driver", 1);
    context = test_start("mock", &device);
    a = make_stream(device);
    b = make_stream(device);
    f = make_stream(device);
    (void)take(device, a, 5 * MIB);
    part = take(device, a, 5 * MIB);
    (void)take(device, a, 10 * MIB);
    (void)take(device, a, 20 * MIB);
    occupy(f, part);
    EXPECT_STATUS(ds_accel_mem_free(device, f, part), DS_ACCEL_OK);
    /* b waits for f, but where a is cannot be marked: the block stays a's, and behind f. */
    EXPECT_STATUS(ds_accel_mem_alloc(device, b, 5 * MIB, &stolen), DS_ACCEL_ERR_NO_MEMORY);
    cr_expect_eq(take(device, a, 5 * MIB), part);
    expect_waits(a, f);
    test_finish(context, device);
}

Test(core_allocator, fails_or_not_with_each_call_of_the_driver)
{
    static const char *const slots[] = {"mem_alloc", "event_create", "event_record",
                                        "stream_wait_event", "mem_free"};

    for (size_t slot = 0; slot < sizeof(slots) / sizeof(slots[0]); slot++) {
        for (int n = 1; n < 6; n++) {
            ds_accel_device_t *device;
            ds_accel_t *context;
            ds_accel_stream_t *streams[2];
            char fail[64];

            snprintf(fail, sizeof(fail), "%s:%d=no_memory", slots[slot], n);
            setenv("DS_ACCEL_MOCK_FAIL", fail, 1);
            context = test_start("mock", &device);
            streams[0] = make_stream(device);
            streams[1] = make_stream(device);
            for (int i = 0; i < 12; i++) {
                void *pointer = NULL;

                if (ds_accel_mem_alloc(device, streams[i % 2], (uint64_t)(i % 3 + 1) * 12 * MIB,
                                       &pointer) == DS_ACCEL_OK) {
                    ds_accel_mem_record_stream(device, pointer, streams[(i + 1) % 2]);
                    EXPECT_STATUS(ds_accel_mem_free(device, streams[i / 2 % 2], pointer),
                                  DS_ACCEL_OK);
                }
                EXPECT_STAT(device, "allocation.all.current", 0);
            }
            EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
            test_finish(context, device);
        }
    }
}

/* What is counted is what is there, whichever call failed, and for whatever reason. */
static void fail_once(const char *slot, int n, const char *status, const char *settings)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *streams[2];
    void *kept[12] = {NULL};
    char fail[64];

    snprintf(fail, sizeof(fail), "%s:%d=%s", slot, n, status);
    setenv("DS_ACCEL_MOCK_FAIL", fail, 1);
    setenv("DS_ACCEL_ALLOCATOR", settings, 1);
    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "209715200", 1); /* 200 MiB */
    context = test_start("mock", &device);
    streams[0] = make_stream(device);
    streams[1] = make_stream(device);
    for (int i = 0; i < 12; i++) {
        int32_t code = ds_accel_mem_alloc(device, streams[i % 2],
                                          (uint64_t)(i % 4 + 1) * 7 * MIB - 100, &kept[i]);

        cr_expect_eq(code < 0, kept[i] == NULL, "%s", fail);
        if (i >= 4) {
            ds_accel_mem_free(device, streams[i / 2 % 2], kept[i - 4]);
        }
        if (i == 7) {
            ds_accel_empty_cache(device);
        }
    }
    for (int i = 8; i < 12; i++) {
        ds_accel_mem_free(device, NULL, kept[i]);
    }
    cr_expect_eq(stat_of(device, "allocation.all.current"), 0, "%s with %s", fail, settings);
    cr_expect_eq(stat_of(device, "requested_bytes.all.current"), 0, "%s with %s", fail, settings);
    MUST(ds_accel_device_synchronize(device));
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK); /* what could be marked only now */
    cr_expect_eq(stat_of(device, "active_bytes.all.current"), 0, "%s with %s", fail, settings);
    cr_expect_eq(stat_of(device, "reserved_bytes.all.current"), 0, "%s with %s", fail, settings);
    cr_expect_eq(stat_of(device, "inactive_split.all.current"), 0, "%s with %s", fail, settings);
    cr_expect_eq(stat_of(device, "segment.all.current"), 0, "%s with %s", fail, settings);
    test_finish(context, device);
}

Test(core_allocator, counts_right_whatever_fails_once)
{
    static const char *const slots[] = {
        "mem_alloc",    "mem_free",   "event_create",    "event_record",     "stream_wait_event",
        "event_query",  "mem_info",   "vmem_reserve",    "vmem_create",      "vmem_map",
        "vmem_release", "vmem_unmap", "vmem_set_access", "event_synchronize"};
    static const char *const statuses[] = {"no_memory", "driver"};
    static const char *const settings[] = {"caching", "off", "growable_segments=true", "debug"};

    for (size_t slot = 0; slot < sizeof(slots) / sizeof(slots[0]); slot++) {
        for (int n = 1; n < 5; n++) {
            fail_once(slots[slot], n, statuses[n % 2], settings[0]);
            fail_once(slots[slot], n, statuses[n % 2], settings[1]);
            fail_once(slots[slot], n, statuses[n / 2 % 2], settings[2]);
            fail_once(slots[slot], n, statuses[n / 2 % 2], settings[3]);
        }
    }
}

Test(core_allocator, survives_a_device_that_is_lost)
{
    static const char *const slots[] = {"mem_alloc",    "mem_free",    "event_record",
                                        "event_create", "event_query", "stream_wait_event"};
    static const char *const settings[] = {"caching", "off", "debug"};

    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]) * 3; i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_stream_t *streams[2];
        void *pointers[6] = {NULL};
        char fail[64];

        snprintf(fail, sizeof(fail), "%s:2=device_lost", slots[i / 3]);
        setenv("DS_ACCEL_MOCK_FAIL", fail, 1);
        setenv("DS_ACCEL_ALLOCATOR", settings[i % 3], 1);
        context = test_start("mock", &device);
        streams[0] = make_stream(device);
        streams[1] = make_stream(device);
        for (int k = 0; k < 6; k++) {
            ds_accel_mem_alloc(device, streams[k % 2], 30 * MIB, &pointers[k]);
            if (k % 2 == 1) {
                ds_accel_mem_free(device, streams[0], pointers[k]);
                ds_accel_empty_cache(device);
            }
        }
        for (int k = 0; k < 6; k += 2) {
            ds_accel_mem_free(device, streams[1], pointers[k]);
        }
        EXPECT_STAT(device, "allocation.all.current", 0);
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, device), DS_ACCEL_ERR_INVALID);
        test_finish(context, device);
    }
}

Test(core_allocator, holds_no_more_than_its_limit)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *pointer = NULL;
    uint64_t total = 0;
    uint64_t available = 0;

    EXPECT_STATUS(ds_accel_total_memory(device, &total), DS_ACCEL_OK);
    cr_expect_eq(total, GIB);
    EXPECT_STATUS(ds_accel_memory_set_fraction(device, 0.25), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 256 * MIB);
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 300 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "limit 256 MiB");
    EXPECT_HAS(ds_accel_last_error(), "limit_bytes of at least 300 MiB would have helped");
    pointer = take(device, NULL, 200 * MIB);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 56 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_available_memory(device, &available), DS_ACCEL_OK);
    cr_expect_eq(available, 256 * MIB);
    EXPECT_STATUS(ds_accel_memory_set_limit(device, 0), DS_ACCEL_OK);
    pointer = take(device, NULL, 300 * MIB);
    EXPECT_STATUS(ds_accel_memory_set_fraction(device, 1e-12), DS_ACCEL_OK); /* of a byte */
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    pointer = NULL;
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 512, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_REFUSED(ds_accel_memory_set_fraction(device, 0), DS_ACCEL_ERR_INVALID, "fraction");
    EXPECT_REFUSED(ds_accel_memory_set_fraction(device, 1.5), DS_ACCEL_ERR_INVALID, "fraction");
    test_finish(context, device);
}

struct spill {
    ds_accel_device_t *device;
    void *pointers[4];
    uint32_t calls;
    uint64_t size_bytes;
};

static int32_t spill_one(void *user_data, ds_accel_device_t *device, uint64_t size_bytes,
                         uint32_t attempt)
{
    struct spill *spill = user_data;

    spill->calls++;
    spill->size_bytes = size_bytes;
    cr_expect_eq(attempt, spill->calls);
    cr_expect_eq(device, spill->device);
    if (attempt > 4) {
        return 0;
    }
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, spill->pointers[attempt - 1]), DS_ACCEL_OK);
    return 1;
}

static int32_t promise(void *user_data, ds_accel_device_t *device, uint64_t size_bytes,
                       uint32_t attempt)
{
    (void)device;
    (void)size_bytes;
    *(uint32_t *)user_data = attempt;
    return 1;
}

Test(core_allocator, lets_the_program_free_something_and_tries_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    struct spill spill = {0};
    uint32_t attempts = 0;
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1);
    context = test_start("mock", &device);
    spill.device = device;
    for (int i = 0; i < 4; i++) {
        spill.pointers[i] = take(device, NULL, 24 * MIB);
    }
    EXPECT_STATUS(ds_accel_memory_set_failure_callback(device, spill_one, &spill), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 50 * MIB, &pointer), DS_ACCEL_OK);
    cr_expect_eq(spill.calls, 2);
    cr_expect_eq(spill.size_bytes, 50 * MIB);
    EXPECT_STATUS(ds_accel_memory_set_failure_callback(device, promise, &attempts), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 200 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    cr_expect_eq(attempts, 16);
    test_finish(context, device);
}

/* A callback that ends the capture which the memory was for, and has a stream that needs some. */
struct end {
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;
    void *first; /* memory, to be freed */
    void *block; /* memory of the stream's */
};

static int32_t end_capture(void *user_data, ds_accel_device_t *device, uint64_t size_bytes,
                           uint32_t attempt)
{
    struct end *end = user_data;

    (void)size_bytes;
    EXPECT_STATUS(ds_accel_graph_capture_end(end->graph), DS_ACCEL_OK);
    ds_accel_graph_destroy(end->graph);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, end->first), DS_ACCEL_OK);
    end->stream = make_stream(device);
    end->block = take(device, end->stream, MIB);
    return attempt == 1;
}

Test(core_allocator, gives_nobody_elses_memory_to_a_capture_that_ends_meanwhile)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    struct end end = {0};
    ds_accel_t *context;
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1);
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", SLOW, 1);
    context = test_start("mock", &device);
    stream = make_stream(device);
    end.first = take(device, NULL, 90 * MIB);
    MUST(ds_accel_memory_set_failure_callback(device, end_capture, &end));
    MUST(ds_accel_graph_create(device, &end.graph));
    MUST(ds_accel_graph_capture_begin(end.graph, stream, NULL, 0));
    MUST(ds_accel_mem_alloc(device, stream, 50 * MIB, &pointer));
    /* The new stream gets it only behind the work of the one that it was allocated on. */
    occupy(stream, pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_eq(take(device, end.stream, 50 * MIB), pointer);
    expect_waits(end.stream, stream);
    test_finish(context, device);
}

/* A callback that needs memory itself. */
static int32_t ask_again(void *user_data, ds_accel_device_t *device, uint64_t size_bytes,
                         uint32_t attempt)
{
    struct spill *spill = user_data;
    void *pointer = NULL;

    (void)attempt;
    spill->calls++;
    if (spill->calls > 100) {
        return 0;
    }
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, size_bytes, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, spill->pointers[0]), DS_ACCEL_OK);
    spill->pointers[0] = NULL;
    return 1;
}

Test(core_allocator, does_not_ask_a_callback_for_what_the_callback_itself_asks)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    struct spill spill = {0};
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1);
    context = test_start("mock", &device);
    spill.pointers[0] = take(device, NULL, 90 * MIB);
    EXPECT_STATUS(ds_accel_memory_set_failure_callback(device, ask_again, &spill), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 50 * MIB, &pointer), DS_ACCEL_OK);
    cr_expect_eq(spill.calls, 1);
    EXPECT_STAT(device, "num_ooms", 1);
    test_finish(context, device);
}

/* ---- figures -------------------------------------------------------------------------------- */

Test(core_allocator, knows_the_names_that_consumers_read)
{
    static const char *const stats[] = {
        "allocation",      "segment",        "active",       "inactive_split",
        "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
        "requested_bytes"};
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    static const char *const values[] = {"current", "peak", "allocated", "freed"};
    static const char *const others[] = {"num_alloc_retries",
                                         "num_ooms",
                                         "max_split_size",
                                         "num_sync_all_streams",
                                         "num_device_alloc",
                                         "num_device_free",
                                         "oversize_allocations.current",
                                         "oversize_allocations.peak",
                                         "oversize_segments.allocated",
                                         "oversize_segments.freed"};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *text = NULL;
    int64_t value = 0;

    for (size_t i = 0; i < 9; i++) {
        for (size_t k = 0; k < 3; k++) {
            for (size_t n = 0; n < 4; n++) {
                char key[96];

                snprintf(key, sizeof(key), "%s.%s.%s", stats[i], pools[k], values[n]);
                EXPECT_STAT(device, key, 0);
            }
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        EXPECT_STATUS(ds_accel_memory_stat(device, others[i], &value), DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_memory_stat(device, "allocated_byte.all.current", &value),
                   DS_ACCEL_ERR_NOT_FOUND, "did you mean \"allocated_bytes.all.current\"");
    EXPECT_STATUS(ds_accel_memory_stats(device, &text), DS_ACCEL_OK);
    EXPECT_HAS(text, "\"reserved_bytes.large_pool.peak\": 0");
    ds_accel_free_text(text);
    test_finish(context, device);
}

/* As torch: each time that the cache is given back to ask the driver once more. */
Test(core_allocator, counts_every_time_that_it_empties_the_cache_to_try_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context;

    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "104857600", 1); /* 100 MiB */
    context = test_start("mock", &device);
    for (int i = 0; i < 10; i++) {
        /* More than what is cached, and with it more than there is. */
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, (52 + 2 * i) * MIB)),
                      DS_ACCEL_OK);
        EXPECT_STAT(device, "num_alloc_retries", i);
    }
    EXPECT_STAT(device, "num_sync_all_streams", 9);
    EXPECT_STAT(device, "num_device_alloc", 10);
    EXPECT_STAT(device, "num_device_free", 9);
    EXPECT_STAT(device, "num_ooms", 0);
    test_finish(context, device);
}

/* Freed in any order, what can be merged is counted as merged, at every moment. */
Test(core_allocator, counts_free_parts_as_if_all_were_merged)
{
    static const int steps[] = {1, 39, 7}; /* in the order of allocation, backwards, across */
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    double fragmentation = -1;
    uint64_t largest = 0;

    for (size_t k = 0; k < 3; k++) {
        void *pieces[40];

        for (int i = 0; i < 40; i++) {
            pieces[i] = take(device, NULL, 512 * KIB);
        }
        EXPECT_STAT(device, "inactive_split.all.current", 0);
        for (int i = 0; i < 40; i += 2) {
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
            EXPECT_STAT(device, "inactive_split.all.current", i / 2 + 1);
            EXPECT_STAT(device, "inactive_split_bytes.all.current", (i / 2 + 1) * 512 * KIB);
            pieces[i] = NULL;
        }
        for (int i = 0; i < 40; i++) {
            int place = i * steps[k] % 40;

            if (pieces[place] != NULL) {
                EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[place]), DS_ACCEL_OK);
            }
        }
        EXPECT_STAT(device, "inactive_split.all.current", 0);
        EXPECT_STAT(device, "inactive_split_bytes.small_pool.current", 0);
        EXPECT_STAT(device, "inactive_split.all.peak", 20);
    }
    MUST(ds_accel_memory_fragmentation(device, &fragmentation, &largest));
    cr_expect_eq(largest, 2 * MIB, "four of them are one again: %llu", (unsigned long long)largest);
    cr_expect_eq(fragmentation, 0.9);
    EXPECT_STAT(device, "reserved_bytes.all.peak", 20 * MIB);
    test_finish(context, device);
}

/* What was allocated last and freed first is set aside unmerged: nobody may see that. */
Test(core_allocator, shows_nothing_of_what_it_merges_late)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    double fragmentation = -1;
    uint64_t largest = 0;
    void *pieces[4];
    void *half;

    for (int i = 0; i < 4; i++) {
        pieces[i] = take(device, NULL, 5 * MIB);
    }
    for (int i = 3; i >= 1; i--) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
        EXPECT_STAT(device, "inactive_split.all.current", 1);
        EXPECT_STAT(device, "inactive_split_bytes.all.current", (4 - i) * 5 * MIB);
    }
    for (int i = 1; i < 4; i++) {
        cr_expect_eq(take(device, NULL, 5 * MIB), pieces[i]);
        EXPECT_STAT(device, "inactive_split_bytes.all.current", (3 - i) * 5 * MIB);
    }
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    for (int i = 3; i >= 0; i--) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, pieces[i]), DS_ACCEL_OK);
    }
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    MUST(ds_accel_memory_fragmentation(device, &fragmentation, &largest));
    cr_expect_eq(largest, 20 * MIB);
    cr_expect_eq(fragmentation, 0);
    half = take(device, NULL, 10 * MIB - 512);
    cr_expect_eq(half, pieces[0]);
    EXPECT_STAT(device, "reserved_bytes.all.current", 20 * MIB);
    EXPECT_STAT(device, "inactive_split_bytes.all.current", 10 * MIB + 512);
    test_finish(context, device);
}

Test(core_allocator, takes_the_smallest_that_fits_and_of_those_the_lowest)
{
    /* Free parts of these sizes, each between two blocks that stay; then requests. */
    static const uint64_t sizes[] = {5 * MIB, 3 * MIB, 4 * MIB, 3 * MIB};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *parts[4];

    (void)take(device, NULL, 100 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 22 * MIB)), DS_ACCEL_OK);
    for (int i = 0; i < 4; i++) {
        parts[i] = take(device, NULL, sizes[i]);
        (void)take(device, NULL, MIB + 512);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, parts[i]), DS_ACCEL_OK);
    }
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[1]);
    cr_expect_eq(take(device, NULL, 3 * MIB - 512), parts[3]);
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[2], "larger by 1 MiB, which is not cut off");
    cr_expect_eq(take(device, NULL, 3 * MIB), parts[0]);
    EXPECT_STAT(device, "segment.all.current", 2);
    test_finish(context, device);
}

/* The free memory is not what it was before, although all that came after was freed in order. */
Test(core_allocator, prefers_a_segment_that_came_meanwhile_where_it_fits_better)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *first;
    void *meanwhile;

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 100 * MIB)), DS_ACCEL_OK);
    first = take(device, NULL, 30 * MIB);
    meanwhile = take(device, NULL, 80 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, meanwhile), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, first), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), meanwhile);
    test_finish(context, device);
}

Test(core_allocator, keeps_exact_peaks_over_all_streams)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *a = make_stream(device);
    ds_accel_stream_t *b = make_stream(device);
    void *on_a = take(device, a, 3 * MIB);
    void *on_b = take(device, b, 5 * MIB);
    uint64_t bytes = 0;

    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    /* Each stream's own peak grows, the sum's does not. */
    on_a = take(device, a, 7 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    on_b = take(device, b, 8 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, b, on_b), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 8 * MIB);
    on_a = take(device, a, 7 * MIB);
    on_b = take(device, b, 5 * MIB);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 12 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, a, on_a), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_reset_max_memory_allocated(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 5 * MIB);
    EXPECT_STATUS(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 5 * MIB);
    EXPECT_STATUS(ds_accel_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 40 * MIB);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 40 * MIB);
    EXPECT_STATUS(ds_accel_reset_max_memory_reserved(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_max_memory_reserved(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 20 * MIB);
    EXPECT_STATUS(ds_accel_reset_peak_memory_stats(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, trims_what_was_unused_the_longest)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *old = take(device, NULL, 30 * MIB);
    void *recent = take(device, NULL, 40 * MIB);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, old), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_memory_trim(device, 80 * MIB), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, recent), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 70 * MIB);
    EXPECT_STATUS(ds_accel_memory_trim(device, 50 * MIB), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 40 * MIB);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

/* ---- settings ------------------------------------------------------------------------------- */

Test(core_allocator, grows_segments_where_memory_is_virtual)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    char *first;
    char *second;

    setenv("DS_ACCEL_ALLOCATOR", "growable_segments=true", 1);
    context = test_start("mock", &device);
    first = take(device, NULL, 30 * MIB);
    second = take(device, NULL, 30 * MIB);
    cr_expect_eq(second, first + 30 * MIB, "one segment");
    EXPECT_STAT(device, "segment.all.current", 1);
    EXPECT_STAT(device, "reserved_bytes.all.current", 60 * MIB);
    EXPECT_STATUS(ds_accel_mem_set(device, second, 7, 30 * MIB), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, second), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 40 * MIB); /* pages of 20 */
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, first), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 100 * MIB), first, "in the same place, longer");
    test_finish(context, device);
}

Test(core_allocator, puts_memory_where_it_was_taken_away_within_a_segment)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    char *pointers[3];
    char *text = NULL;
    size_t size = 0;

    setenv("DS_ACCEL_ALLOCATOR", "growable_segments=true", 1);
    setenv("DS_ACCEL_MOCK_MEMORY_BYTES", "146800640", 1); /* 140 MiB */
    context = test_start("mock", &device);
    for (int i = 0; i < 3; i++) {
        pointers[i] = take(device, NULL, 40 * MIB);
    }
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointers[1]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 80 * MIB);
    EXPECT_STAT(device, "segment.all.current", 1);
    EXPECT_STAT(device, "inactive_split.all.current", 0);
    MUST(ds_accel_memory_snapshot(context, device, DS_ACCEL_SNAPSHOT_JSON, (void **)&text, &size));
    EXPECT_HAS(strstr(text, "\"total_size\""), "\"total_size\"");
    ds_accel_free_text(text);
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointers[1]), DS_ACCEL_ERR_INVALID,
                   "has gone back to the driver since");
    /* There are 60 MiB more: three pages, of which two close the gap and one is behind the end. */
    cr_expect_eq(take(device, NULL, 25 * MIB), pointers[1]);
    EXPECT_STAT(device, "reserved_bytes.all.current", 120 * MIB);
    cr_expect_eq(take(device, NULL, 10 * MIB), pointers[1] + 25 * MIB);
    cr_expect_eq(take(device, NULL, 20 * MIB), pointers[2] + 40 * MIB);
    EXPECT_STAT(device, "reserved_bytes.all.current", 140 * MIB);
    test_finish(context, device);
}

Test(core_allocator, does_not_split_large_blocks_if_told_so)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_ALLOCATOR", "max_split_bytes=32MiB", 1);
    context = test_start("mock", &device);
    pointer = take(device, NULL, 64 * MIB);
    EXPECT_STAT(device, "oversize_allocations.current", 1);
    EXPECT_STAT(device, "oversize_segments.current", 1);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_neq(take(device, NULL, 12 * MIB), pointer);
    cr_expect_eq(take(device, NULL, 60 * MIB), pointer);
    EXPECT_STAT(device, "max_split_size", 32 * MIB);
    test_finish(context, device);
}

Test(core_allocator, rounds_sizes_up_if_told_so)
{
    ds_accel_device_t *device;
    ds_accel_t *context;

    setenv("DS_ACCEL_ALLOCATOR", "roundup_power2_divisions=4", 1);
    context = test_start("mock", &device);
    (void)take(device, NULL, 1200 * KIB);
    EXPECT_STAT(device, "allocated_bytes.all.current", 1280 * KIB);
    test_finish(context, device);
}

Test(core_allocator, refuses_settings_that_are_none)
{
    static const struct {
        const char *value;
        const char *words;
    } cases[] = {{"fast", "mode can't be \"fast\""},
                 {"growable_segment=true", "did you mean \"growable_segments\""},
                 {"limit_bytes=many", "limit_bytes can't be"},
                 {"gc_threshold=2", "gc_threshold can't be"},
                 {"growable_segments=yes", "can't be \"yes\""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        void *pointer;

        setenv("DS_ACCEL_ALLOCATOR", cases[i].value, 1);
        context = test_start("mock", &device);
        EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 512, &pointer), DS_ACCEL_ERR_CONFIG,
                       cases[i].words);
        EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_ALLOCATOR: ");
        test_finish(context, device);
    }
}

Test(core_allocator, reads_its_settings_from_the_configuration)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer = NULL;

    test_write("etc/ds-accel.json",
               "{\"allocator\": {\"limit_bytes\": 33554432, \"small_segment_bytes\": 4194304}}");
    context = test_start("mock", &device);
    (void)take(device, NULL, 512);
    EXPECT_STAT(device, "reserved_bytes.all.current", 4 * MIB);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 40 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY);
    test_finish(context, device);
    setenv("DS_ACCEL_ALLOCATOR", "limit_bytes=64MiB", 1);
    context = test_start("mock", &device);
    EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 40 * MIB, &pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, asks_the_driver_every_time_when_it_is_off)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *b;
    void *pointer;

    setenv("DS_ACCEL_ALLOCATOR", "off", 1);
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "50000000", 1);
    context = test_start("mock", &device);
    b = make_stream(device);
    pointer = take(device, NULL, 1000);
    EXPECT_STAT(device, "reserved_bytes.all.current", 1024);
    EXPECT_STATUS(ds_accel_mem_record_stream(device, pointer, b), DS_ACCEL_OK);
    MUST(ds_accel_mem_set_async(b, pointer, 1, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_stream_query(b), DS_ACCEL_OK, "the driver got it while it was used");
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    EXPECT_STAT(device, "num_device_free", 1);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

/* ---- debug ---------------------------------------------------------------------------------- */

static ds_accel_t *start_debug(const char *more, ds_accel_device_t **device_out)
{
    char value[64];

    snprintf(value, sizeof(value), "debug%s", more);
    setenv("DS_ACCEL_ALLOCATOR", value, 1);
    return test_start("mock", device_out);
}

Test(core_allocator, debug_fills_memory_and_keeps_it_from_being_used_again)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    unsigned char bytes[100] = {0};
    void *pointer = take(device, NULL, sizeof(bytes));

    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_mem_copy(device, bytes, pointer, sizeof(bytes), DS_ACCEL_COPY_DEVICE_TO_HOST));
    cr_expect_eq(bytes[0], 0xCB);
    cr_expect_eq(bytes[99], 0xCB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_mem_copy(device, bytes, pointer, sizeof(bytes), DS_ACCEL_COPY_DEVICE_TO_HOST));
    cr_expect_eq(bytes[50], 0xDD);
    cr_expect_neq(take(device, NULL, sizeof(bytes)), pointer);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, debug_finds_writes_past_the_end)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    char *pointer = take(device, NULL, 1000);

    MUST(ds_accel_mem_set(device, pointer + 1000, 1, 4));
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "1 bytes behind it");
    EXPECT_HAS(ds_accel_last_error(), "allocated in ");
    EXPECT_STAT(device, "allocation.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, debug_finds_use_after_free)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug(",quarantine_bytes=4KiB", &device);
    char *pointer = take(device, NULL, 1000);
    char *other = take(device, NULL, 4000);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_mem_set(device, pointer + 17, 1, 1));
    /* Which comes to light when it leaves the quarantine. */
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, other), DS_ACCEL_ERR_INVALID,
                   "use after free: byte 17 of the 1000 bytes");
    EXPECT_HAS(ds_accel_last_error(), "freed in ");
    pointer = take(device, NULL, 1000);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    MUST(ds_accel_mem_set(device, pointer, 1, 1));
    EXPECT_REFUSED(ds_accel_empty_cache(device), DS_ACCEL_ERR_INVALID, "use after free: byte 0");
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, debug_says_where_a_block_was_freed_before)
{
    ds_accel_device_t *device;
    ds_accel_t *context = start_debug("", &device);
    char *pointer = take(device, NULL, 1000);

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_ERR_INVALID,
                   "was freed before; allocated in ");
    EXPECT_HAS(ds_accel_last_error(), "; freed in ");
    test_finish(context, device);
}

/* ---- private pools and captures ------------------------------------------------------------- */

Test(core_allocator, keeps_private_pools_apart)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_pool_t *pool = NULL;
    void *common = take(device, NULL, 30 * MIB);
    void *apart;

    EXPECT_STATUS(ds_accel_mem_free(device, NULL, common), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_pool_create(device, &pool), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_pool_end(pool), DS_ACCEL_ERR_STATE, "does not use");
    EXPECT_STATUS(ds_accel_pool_begin(pool), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_pool_begin(pool), DS_ACCEL_ERR_STATE, "already");
    apart = take(device, NULL, 30 * MIB);
    cr_expect_neq(apart, common);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, apart), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), apart);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, apart), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_pool_end(pool), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 30 * MIB), common);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, common), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    ds_accel_pool_destroy(pool);
    EXPECT_STATUS(ds_accel_pool_begin(pool), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, gives_a_capture_memory_that_its_graph_keeps)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *before = take(device, stream, 30 * MIB);
    void *captured;

    EXPECT_STATUS(ds_accel_mem_free(device, stream, before), DS_ACCEL_OK);
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    captured = take(device, stream, 30 * MIB);
    cr_expect_neq(captured, before);
    MUST(ds_accel_mem_set_async(stream, captured, 5, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, stream, captured), DS_ACCEL_OK);
    cr_expect_eq(take(device, stream, 30 * MIB), captured, "within the capture it serves again");
    EXPECT_STATUS(ds_accel_mem_free(device, stream, captured), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK); /* does not break it */
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    cr_expect_neq(take(device, other, 30 * MIB), captured);
    cr_expect_neq(take(device, stream, 30 * MIB), captured);
    MUST(ds_accel_graph_replay(graph, stream));
    MUST(ds_accel_stream_synchronize(stream));
    ds_accel_graph_destroy(graph);
    cr_expect_eq(take(device, stream, 30 * MIB), captured, "nobody needs it now");
    test_finish(context, device);
}

Test(core_allocator, puts_nothing_of_its_own_into_a_capture)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *theirs = take(device, other, 30 * MIB);
    uint64_t nodes = 0;

    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_THREAD_LOCAL));
    MUST(ds_accel_mem_set_async(stream, theirs, 5, 512));
    /* A capturing stream uses it: its mark has to wait for the end. */
    EXPECT_STATUS(ds_accel_mem_free(device, stream, theirs), DS_ACCEL_OK);
    cr_expect_neq(take(device, other, 30 * MIB), theirs);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_node_count(graph, &nodes), DS_ACCEL_OK);
    cr_expect_eq(nodes, 1);
    cr_expect_eq(take(device, other, 30 * MIB), theirs);
    test_finish(context, device);
}

Test(core_allocator, survives_that_a_stream_is_destroyed_while_it_captures)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_stream_t *other = make_stream(device);
    ds_accel_graph_t *graph = NULL;
    void *theirs = take(device, other, 30 * MIB);
    void *captured;

    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, 0));
    captured = take(device, stream, 40 * MIB);
    MUST(ds_accel_mem_set_async(stream, captured, 5, 512));
    EXPECT_STATUS(ds_accel_mem_free(device, stream, theirs), DS_ACCEL_OK);
    ds_accel_stream_destroy(stream);
    EXPECT_REFUSED(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE, "destroyed");
    EXPECT_STATUS(ds_accel_graph_replay(graph, other), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, captured), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_begin(graph, other, NULL, 0)); /* it can be used again */
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "active_bytes.all.current", 0);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    test_finish(context, device);
}

Test(core_allocator, keeps_a_graphs_memory_until_its_replay_elsewhere_is_done)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *captured;
    ds_accel_stream_t *elsewhere;
    ds_accel_graph_t *graph;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", "50000000", 1);
    context = test_start("mock", &device);
    captured = make_stream(device);
    elsewhere = make_stream(device);
    for (int again = 0; again < 2; again++) { /* destroyed, and captured again */
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
        pointer = take(device, captured, MIB);
        MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
        MUST(ds_accel_mem_free(device, captured, pointer));
        MUST(ds_accel_graph_capture_end(graph));
        MUST(ds_accel_graph_replay(graph, captured));
        MUST(ds_accel_stream_synchronize(captured));
        MUST(ds_accel_graph_replay(graph, elsewhere));
        EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_NOT_READY);
        if (again) {
            MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
            EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
            MUST(ds_accel_graph_capture_end(graph));
        }
        ds_accel_graph_destroy(graph);
        EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
    }
    test_finish(context, device);
}

/* A wait of the library's own is no call that a capture on another stream forbids. */
Test(core_allocator, waits_for_a_replay_also_beside_a_global_capture)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *captured;
    ds_accel_stream_t *elsewhere;
    ds_accel_graph_t *graphs[2];
    ds_accel_t *context;
    uint64_t races = 9;
    void *pointer;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", "50000000", 1);
    setenv("DS_ACCEL_LAYERS", "race,validate", 1);
    context = test_start("mock", &device);
    captured = make_stream(device);
    elsewhere = make_stream(device);
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_graph_create(device, &graphs[i]));
    }
    MUST(ds_accel_graph_capture_begin(graphs[0], captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
    pointer = take(device, captured, MIB);
    MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
    MUST(ds_accel_mem_free(device, captured, pointer));
    MUST(ds_accel_graph_capture_end(graphs[0]));
    MUST(ds_accel_graph_replay(graphs[0], elsewhere));
    EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_NOT_READY);
    MUST(ds_accel_graph_capture_begin(graphs[1], captured, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    ds_accel_graph_destroy(graphs[0]);
    EXPECT_STATUS(ds_accel_stream_query(elsewhere), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_end(graphs[1]));
    pointer = take(device, captured, MIB);
    MUST(ds_accel_mem_set_async(captured, pointer, 1, MIB));
    MUST(ds_accel_race_count(context, &races));
    cr_expect_eq(races, 0, "the wait has ordered the replay");
    EXPECT_HAS_NOT(test_log, "validate");
    test_finish(context, device);
}

Test(core_allocator, keeps_a_graphs_memory_whose_replay_cannot_be_waited_for)
{
    for (int again = 0; again < 2; again++) { /* destroyed, and captured again */
        ds_accel_device_t *device;
        ds_accel_stream_t *captured;
        ds_accel_stream_t *elsewhere;
        ds_accel_graph_t *graph = NULL;
        ds_accel_t *context;
        void *pointer;

        setenv("DS_ACCEL_MOCK_FAIL", "event_synchronize:1=driver", 1);
        context = test_start("mock", &device);
        captured = make_stream(device);
        elsewhere = make_stream(device);
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
        pointer = take(device, captured, MIB);
        MUST(ds_accel_mem_free(device, captured, pointer));
        MUST(ds_accel_graph_capture_end(graph));
        MUST(ds_accel_graph_replay(graph, elsewhere));
        test_log[0] = '\0';
        if (again) {
            MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
            MUST(ds_accel_graph_capture_end(graph));
        } else {
            ds_accel_graph_destroy(graph);
        }
        EXPECT_HAS(test_log, "2 graph: device 0 keeps a graph's memory until it is closed");
        cr_expect_neq(take(device, captured, MIB), pointer);
        ds_accel_empty_cache(device);
        cr_expect_neq(take(device, elsewhere, MIB), pointer);
        test_finish(context, device);
    }
}

Test(core_allocator, shares_a_pool_between_captures)
{
    ds_accel_device_t *device;
    ds_accel_device_t *far;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream = make_stream(device);
    ds_accel_graph_t *graphs[2];
    ds_accel_pool_t *pool = NULL;
    ds_accel_pool_t *foreign = NULL;
    void *pointers[2];

    MUST(ds_accel_device_open(context, 1, &far));
    MUST(ds_accel_pool_create(far, &foreign));
    MUST(ds_accel_pool_create(device, &pool));
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_graph_create(device, &graphs[i]));
        EXPECT_REFUSED(ds_accel_graph_capture_begin(graphs[i], stream, foreign, 0),
                       DS_ACCEL_ERR_INVALID, "the pool is of device 1");
        MUST(ds_accel_graph_capture_begin(graphs[i], stream, pool, 0));
        pointers[i] = take(device, stream, 30 * MIB);
        MUST(ds_accel_mem_free(device, stream, pointers[i]));
        MUST(ds_accel_graph_capture_end(graphs[i]));
    }
    cr_expect_eq(pointers[0], pointers[1]);
    ds_accel_pool_destroy(pool);
    ds_accel_graph_destroy(graphs[0]);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 30 * MIB);
    ds_accel_graph_destroy(graphs[1]);
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
    EXPECT_STAT(device, "reserved_bytes.all.current", 0);
    ds_accel_device_close(far);
    test_finish(context, device);
}

Test(core_allocator, other_modes_leave_alone_what_a_graph_replays_with)
{
    static const char *const modes[] = {"off", "debug"};

    for (int i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_stream_t *stream;
        ds_accel_graph_t *graph = NULL;
        uint64_t nodes = 0;
        void *pointer;
        void *common;

        setenv("DS_ACCEL_ALLOCATOR", modes[i], 1);
        context = test_start("mock", &device);
        stream = make_stream(device);
        common = take(device, stream, 3000);
        MUST(ds_accel_stream_synchronize(stream));
        MUST(ds_accel_graph_create(device, &graph));
        MUST(ds_accel_graph_capture_begin(graph, stream, NULL, 0));
        pointer = take(device, stream, 5000);
        MUST(ds_accel_mem_set_async(stream, pointer, 5, 512));
        EXPECT_STATUS(ds_accel_mem_free(device, stream, common), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_node_count(graph, &nodes), DS_ACCEL_OK);
        cr_expect_eq(nodes, 1);
        EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, stream), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_OK);
        ds_accel_graph_destroy(graph);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        EXPECT_STAT(device, "reserved_bytes.all.current", 0);
        test_finish(context, device);
    }
}

/* ---- history and snapshots ------------------------------------------------------------------ */

static char *snapshot(ds_accel_t *context, ds_accel_device_t *device)
{
    void *data = NULL;
    size_t size = 0;

    MUST(ds_accel_memory_snapshot(context, device, DS_ACCEL_SNAPSHOT_JSON, &data, &size));
    cr_assert_eq(strlen(data), size);
    return test_compact(data);
}

Test(core_allocator, draws_a_snapshot_of_its_segments)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *text = snapshot(context, NULL);
    void *pointer;

    EXPECT_HAS(text, "\"segments\":[]");
    ds_accel_free_text(text);
    pointer = take(device, NULL, 1000);
    text = snapshot(NULL, device);
    EXPECT_HAS(text, "\"schema_version\":1");
    EXPECT_HAS(text, "\"backend\":\"mock\"");
    EXPECT_HAS(text, "\"total_size\":2097152");
    EXPECT_HAS(text, "\"allocated_size\":1024");
    EXPECT_HAS(text, "\"requested_size\":1000");
    EXPECT_HAS(text, "\"segment_type\":\"small\"");
    EXPECT_HAS(text, "\"segment_pool_id\":[0,0]");
    EXPECT_HAS(text, "\"state\":\"active_allocated\"");
    EXPECT_HAS(text, "\"state\":\"inactive\"");
    EXPECT_HAS(text, "\"device_traces\":[[]]");
    EXPECT_HAS(text, "\"mode\":\"caching\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_allocator, writes_snapshots_in_every_format)
{
    static const struct {
        uint32_t format;
        const char *begins;
    } cases[] = {{DS_ACCEL_SNAPSHOT_JSON, "{"},
                 {DS_ACCEL_SNAPSHOT_SVG, "<"},
                 {DS_ACCEL_SNAPSHOT_PICKLE, "\x80"},
                 {DS_ACCEL_SNAPSHOT_TEXT, ""},
                 {DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS, "\x80"}};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);

    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_STACKS, 100),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    (void)take(device, NULL, 30 * MIB);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *data = NULL;
        size_t size = 0;

        EXPECT_STATUS(ds_accel_memory_snapshot(NULL, device, cases[i].format, &data, &size),
                      DS_ACCEL_OK);
        cr_assert_gt(size, 10);
        cr_expect_eq(memcmp(data, cases[i].begins, strlen(cases[i].begins)), 0);
        ds_accel_free_data(data);
    }
    test_finish(context, device);
}

Test(core_allocator, remembers_the_latest_calls)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *data;
    size_t size;
    char *text;
    int allocs = 0;

    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_ON, 1000), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    text = snapshot(NULL, device);
    EXPECT_HAS(text, "\"action\":\"segment_alloc\"");
    EXPECT_HAS(text, "\"action\":\"alloc\"");
    EXPECT_HAS(text, "\"action\":\"free_requested\"");
    EXPECT_HAS(text, "\"action\":\"free_completed\"");
    EXPECT_HAS(text, "\"action\":\"snapshot\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(
        ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_ON | DS_ACCEL_HISTORY_STACKS, 9),
        DS_ACCEL_OK);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, 1000)), DS_ACCEL_OK);
    }
    text = snapshot(NULL, device);
    for (const char *at = text; (at = strstr(at, "\"action\":\"alloc\"")) != NULL; at++) {
        allocs++;
    }
    cr_expect_leq(allocs, 3);
    cr_expect_geq(allocs, 2);
    EXPECT_HAS(text, "\"filename\":\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_memory_record_history(device, DS_ACCEL_HISTORY_OFF, 0), DS_ACCEL_OK);
    text = snapshot(NULL, device);
    EXPECT_HAS_NOT(text, "\"action\"");
    ds_accel_free_text(text);
    EXPECT_STATUS(ds_accel_memory_record_history(device, 77, 5), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_memory_snapshot(NULL, device, 99, &data, &size), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_memory_snapshot(NULL, NULL, 1, &data, &size), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

/* ---- life ----------------------------------------------------------------------------------- */

Test(core_allocator, works_on_cpu)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("cpu", &device);
    uint64_t bytes = 1;
    char *pointer;

    EXPECT_STATUS(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 0, "what was allocated here, not what the process holds");
    pointer = take(device, NULL, 3 * MIB);
    pointer[3 * MIB - 1] = 1;
    EXPECT_STATUS(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_OK);
    cr_expect_eq(bytes, 3 * MIB);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_eq(take(device, NULL, 3 * MIB), pointer);
    test_finish(context, device);
}

Test(core_allocator, has_no_more_available_than_there_is)
{
    char root[PATH_MAX];
    ds_accel_device_t *device;
    ds_accel_t *context;
    uint64_t total = 0;
    uint64_t available = 0;

    /* A container of 8 GiB, of which 7.8 are left. What is allocated takes none before its use. */
    cr_assert_not_null(realpath("tests/machines/container-v2", root));
    setenv("DS_ACCEL_ROOT", root, 1);
    context = test_start("cpu", &device);
    MUST(ds_accel_total_memory(device, &total));
    cr_assert_eq(total, 8 * GIB, "%llu", (unsigned long long)total);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, GIB)), DS_ACCEL_OK);
    MUST(ds_accel_available_memory(device, &available));
    cr_expect_eq(available, total, "%llu", (unsigned long long)available);
    test_finish(context, device);
}

Test(core_allocator, gives_everything_back_when_the_device_is_closed)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *a = make_stream(device);
    ds_accel_pool_t *pool = NULL;
    ds_accel_graph_t *graph = NULL;
    ds_accel_device_t *again;
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    MUST(ds_accel_device_get(context, 1, &again)); /* the accelerator stays started */
    MUST(ds_accel_pool_create(device, &pool));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, a, pool, 0));
    (void)take(device, a, 30 * MIB);
    (void)take(device, NULL, 512);
    ds_accel_device_close(device);
    MUST(ds_accel_device_open(context, 0, &device));
    MUST(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.available_bytes, info.total_bytes);
    EXPECT_STAT(device, "allocation.all.allocated", 0);
    test_finish(context, device);
}

Test(core_allocator, tells_layers_of_every_block)
{
    static const char *const modes[] = {"caching", "debug"};

    for (int i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_stream_t *stream;
        ds_accel_t *context;
        void *pointer;

        setenv("DS_ACCEL_LAYERS", "validate", 1);
        setenv("DS_ACCEL_ALLOCATOR", modes[i], 1);
        context = test_start("mock", &device);
        stream = make_stream(device);
        pointer = take(device, stream, 1024);
        EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 1, 1024), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 1, 8192), DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 1, 1024), DS_ACCEL_ERR_INVALID);
        pointer = take(device, stream, 1024);
        EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 1, 1024), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        test_finish(context, device);
    }
}
