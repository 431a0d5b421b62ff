/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The caching allocator on the mock, whose latencies the tests set, and on cpu. */
#include "allocator.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

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
        alarm(60);
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

/* ---- closing the device ---------------------------------------------------------------------- */

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

    /* A container limited to 8 GiB, with 7.8 GiB available. Allocated memory counts only once it is
       used. */
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

    MUST(ds_accel_device_get(context, 1, &again)); /* keeps the accelerator started */
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
