/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams, graphs, generators and pinned memory at their edges, which the tests of each do not
 * reach: failures half way, the second of two, what is left behind (tests/mutations).
 */
#include "fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

static ds_accel_stream_t *make_stream(ds_accel_device_t *device)
{
    ds_accel_stream_t *stream = NULL;

    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
    return stream;
}

/* ---- graphs --------------------------------------------------------------------------------- */

Test(core_graph, begins_a_capture_again_after_the_plugin_refused_one)
{
    ds_accel_device_t *device;
    ds_accel_graph_t *graph = NULL;
    ds_accel_pool_t *pool = NULL;
    ds_accel_stream_t *stream;
    ds_accel_t *context;
    void *pointer = NULL;
    int64_t reserved = -1;

    setenv("DS_ACCEL_MOCK_FAIL", "graph_capture_begin:1=driver", 1);
    context = test_start("mock", &device);
    stream = make_stream(device);
    MUST(ds_accel_pool_create(device, &pool));
    MUST(ds_accel_pool_begin(pool));
    MUST(ds_accel_mem_alloc(device, stream, 30 * MIB, &pointer));
    MUST(ds_accel_mem_free(device, stream, pointer));
    MUST(ds_accel_pool_end(pool));
    MUST(ds_accel_graph_create(device, &graph));
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, pool, DS_ACCEL_CAPTURE_RELAXED),
                  DS_ACCEL_ERR_DRIVER);
    /* What was refused holds no pool. */
    ds_accel_pool_destroy(pool);
    MUST(ds_accel_empty_cache(device));
    MUST(ds_accel_memory_stat(device, "reserved_bytes.all.current", &reserved));
    cr_expect_eq(reserved, 0);
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_graph, leaves_no_graph_of_a_capture_that_is_cancelled)
{
    ds_accel_device_t *device;
    ds_accel_graph_t *graph = NULL;
    ds_accel_t *context;

    setenv("DS_ACCEL_LAYERS", "leak", 1);
    context = test_start("mock", &device);
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, make_stream(device), NULL, DS_ACCEL_CAPTURE_RELAXED));
    ds_accel_graph_destroy(graph);
    test_finish(context, device);
    EXPECT_HAS_NOT(test_log, "x graph");
}

/* ---- streams -------------------------------------------------------------------------------- */

Test(core_stream, current_one_is_the_devices_own)
{
    ds_accel_stream_t *current = NULL;
    ds_accel_device_t *device;
    ds_accel_device_t *far;
    ds_accel_t *context = test_start("mock", &device);

    MUST(ds_accel_set_current_stream(make_stream(device)));
    MUST(ds_accel_device_open(context, 1, &far));
    MUST(ds_accel_current_stream(far, &current));
    cr_expect_eq(ds_accel_stream_device(current), far);
    ds_accel_device_close(far);
    test_finish(context, device);
}

/* ---- forked children ------------------------------------------------------------------------ */

Test(core_fork, every_accelerator_of_the_parent_is_out_of_use_in_the_child)
{
    ds_accel_device_t *devices[2];
    ds_accel_t *contexts[2] = {test_start("mock", &devices[0]), test_start("cpu", &devices[1])};
    int result = -1;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        alarm(10);
        _exit(ds_accel_device_synchronize(devices[0]) == DS_ACCEL_ERR_STATE &&
                      ds_accel_device_synchronize(devices[1]) == DS_ACCEL_ERR_STATE
                  ? 0
                  : 1);
    }
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect_eq(result, 0);
    test_finish(contexts[1], devices[1]);
    test_finish(contexts[0], devices[0]);
}

/* ---- pinned memory -------------------------------------------------------------------------- */

static void *pin(ds_accel_device_t *device, uint64_t size_bytes, uint64_t align_bytes)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc_pinned(device, size_bytes, align_bytes, 0, &pointer));
    return pointer;
}

static struct ds_accel_pinned_stats pinned_stats(ds_accel_device_t *device)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};

    MUST(ds_accel_pinned_stats(device, &stats));
    return stats;
}

Test(core_pinned, empties_itself_when_the_host_is_out_of_memory)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    void *pointer;

    setenv("DS_ACCEL_MOCK_FAIL", "mem_alloc_pinned:2=no_memory", 1);
    context = test_start("mock", &device);
    MUST(ds_accel_mem_free_pinned(device, pin(device, 100000, 1)));
    pointer = pin(device, 300000, 1);
    cr_expect_eq(pinned_stats(device).alloc_retry_count, 1);
    cr_expect_eq(pinned_stats(device).cached_bytes, 0);
    MUST(ds_accel_mem_free_pinned(device, pointer));
    test_finish(context, device);
}

Test(core_pinned, gives_a_page_where_one_is_asked_for)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *blocks[16];
    unsigned unaligned = 0;

    for (int i = 0; i < 16; i++) {
        blocks[i] = pin(device, 5000, 1);
        unaligned += (uintptr_t)blocks[i] % page != 0;
    }
    cr_assert_gt(unaligned, 0, "the test needs some that lie on no page");
    for (int i = 0; i < 16; i++) {
        MUST(ds_accel_mem_free_pinned(device, blocks[i]));
    }
    for (int i = 0; i < 16; i++) {
        cr_expect_eq((uintptr_t)pin(device, 5000, 0) % page, 0);
    }
    test_finish(context, device);
}

Test(core_pinned, keeps_as_much_as_a_new_limit_allows)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *blocks[4];

    for (int i = 0; i < 4; i++) {
        blocks[i] = pin(device, MIB, 1);
    }
    for (int i = 0; i < 4; i++) {
        MUST(ds_accel_mem_free_pinned(device, blocks[i]));
    }
    cr_expect_eq(pinned_stats(device).cached_bytes, 4 * MIB);
    MUST(ds_accel_pinned_set_limit(device, 2 * MIB));
    cr_expect_eq(pinned_stats(device).cached_bytes, 2 * MIB);
    test_finish(context, device);
}

/* ---- generators ----------------------------------------------------------------------------- */

Test(core_rng, begins_at_the_first_word_when_it_is_seeded)
{
    struct ds_accel_rng_position place = {.struct_size = sizeof(place), .subsequence = 5};
    unsigned char state[128];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_rng_t *rng = NULL;
    ds_accel_rng_t *other = NULL;
    uint64_t needed = 0;

    place.word = 3;
    place.block = 7;
    MUST(ds_accel_rng_create(device, 11, 0, &rng));
    MUST(ds_accel_rng_create(device, 12, 0, &other));
    MUST(ds_accel_rng_set_position(rng, &place));
    MUST(ds_accel_rng_get_state(rng, state, sizeof(state), &needed));
    MUST(ds_accel_rng_manual_seed(rng, 11));
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect(place.word == 0 && place.block == 0 && place.subsequence == 0);
    MUST(ds_accel_rng_set_state(other, state, needed)); /* all of the place is in the state */
    MUST(ds_accel_rng_position(other, &place));
    cr_expect(place.word == 3 && place.block == 7 && place.subsequence == 5);
    ds_accel_rng_destroy(other);
    ds_accel_rng_destroy(rng);
    test_finish(context, device);
}

/* ---- tensors -------------------------------------------------------------------------------- */

Test(core_tensor, views_end_with_the_memory_and_stay_read_only)
{
    static uint8_t bytes[10];
    const int64_t ten = 10;
    const int64_t eleven = 11;
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .data = bytes,
                                            .dtype = DS_ACCEL_DTYPE_UINT8,
                                            .ndim = 1,
                                            .shape = &ten,
                                            .flags = DS_ACCEL_TENSOR_READ_ONLY};
    struct ds_accel_tensor_info info = {.struct_size = sizeof(info)};
    ds_accel_tensor_t *tensor = NULL;
    ds_accel_tensor_t *view = NULL;

    MUST(ds_accel_tensor_from_memory(NULL, &memory, &tensor));
    EXPECT_STATUS(ds_accel_tensor_view(tensor, 0, 1, &eleven, NULL, &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_view(tensor, 1, 1, &ten, NULL, &view), DS_ACCEL_ERR_INVALID);
    MUST(ds_accel_tensor_slice(tensor, 0, 4, 10, 1, &view));
    MUST(ds_accel_tensor_info(view, &info));
    cr_expect_neq(info.flags & DS_ACCEL_TENSOR_READ_ONLY, 0);
    cr_expect_eq(info.data, bytes + 4);
    ds_accel_tensor_put(view);
    ds_accel_tensor_put(tensor);
}
