/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator when the device is out of memory. */
#include "allocator.h"

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
    EXPECT_HAS(ds_accel_last_error(), "out of memory: 30 MiB requested");
    EXPECT_HAS(ds_accel_last_error(), " allocated");
    EXPECT_HAS(ds_accel_last_error(), "100 MiB reserved");
    EXPECT_HAS(ds_accel_last_error(), "largest free block 18 MiB");
    EXPECT_HAS(ds_accel_last_error(), "fragmentation ");
    EXPECT_STAT(device, "num_ooms", 1);
    EXPECT_STAT(device, "num_alloc_retries", 1);
    test_finish(context, device);
}

/* The memory of a capturing stream cannot be used by others. */
Test(core_allocator, says_what_is_free_where_the_request_cannot_use_it)
{
    struct scene scene = start("104857600", NULL); /* 100 MiB */
    ds_accel_graph_t *graph = NULL;
    void *pointer = NULL;

    give(scene.device, scene.a, take(scene.device, scene.a, 60 * MIB));
    MUST(ds_accel_graph_create(scene.device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, scene.a, NULL, DS_ACCEL_CAPTURE_RELAXED));
    EXPECT_REFUSED(ds_accel_mem_alloc(scene.device, scene.b, 80 * MIB, &pointer),
                   DS_ACCEL_ERR_NO_MEMORY, "60 MiB free in other streams or pools");
    EXPECT_HAS(ds_accel_last_error(), "largest free block 0 B");
    EXPECT_HAS(ds_accel_last_error(), "; 40 MiB more would be needed");
    MUST(ds_accel_graph_capture_end(graph));
    ds_accel_graph_destroy(graph);
    stop(&scene);
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
    /* Much memory is free, but in segments that are too small, because no segment may be larger. */
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, take(device, NULL, (11 + i) * MIB)),
                      DS_ACCEL_OK);
    }
    EXPECT_REFUSED(ds_accel_mem_alloc(device, NULL, 17 * MIB, &pointer), DS_ACCEL_ERR_NO_MEMORY,
                   "the driver allocates at most 16.0 MiB in one allocation");
    EXPECT_HAS(ds_accel_last_error(), "make several smaller ones");
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
    (void)take(device, NULL, 5 * MIB); /* normally cut from a segment of 20 MiB */
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
    /* 70 of 100 MiB are cached in two segments, which must be released for this request. */
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
    /* Stream b waits for f, but the position of a cannot be recorded: the block stays with a,
       ordered after f. */
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

/* Check that the statistics equal the memory in use, whichever driver call failed and for any
   reason. */
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
    /* releases blocks whose events could be recorded only now */
    EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
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
            for (int i = 0; i < 4; i++) {
                if (test_is_sampled(slot + (size_t)(n + i), 4)) {
                    fail_once(slots[slot], n, statuses[(i < 2 ? n : n / 2) % 2], settings[i]);
                }
            }
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

/* State of a callback that ends the capture for which memory was requested, and allocates on
   another stream. */
struct end {
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;
    void *first; /* memory that the callback frees */
    void *block; /* memory that the callback allocates on stream */
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
    /* The new stream gets the block only after the work of the stream on which it was allocated. */
    occupy(stream, pointer);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    cr_expect_eq(take(device, end.stream, 50 * MIB), pointer);
    expect_waits(end.stream, stream);
    test_finish(context, device);
}

/* A failure callback that itself allocates memory. */
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
