/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Fills with random numbers: memory of the host, and of a device that the host cannot access. */
#include "far.h"
#include "rng.h"

#include <math.h>
#include <pthread.h>

/* ---- which memory can be filled -------------------------------------------------------------- */

Test(core_rng, refuses_memory_streams_and_types_that_cannot_be_filled)
{
    ds_accel_device_t *device;
    ds_accel_device_t *second;
    ds_accel_t *context = test_start("mock", &device);
    float *memory = allocate(device, 4096);
    float *theirs;
    ds_accel_stream_t *stream;
    ds_accel_graph_t *graph;
    ds_accel_rng_t *rng;
    struct ds_accel_rng_position place = {.struct_size = sizeof(place)};

    MUST(ds_accel_device_open(context, 1, &second));
    theirs = allocate(second, 4096);
    MUST(ds_accel_rng_create(device, 1, 0, &rng));
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, NULL, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                   DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_REFUSED(
        ds_accel_rng_uniform(rng, NULL, (char *)memory + 1, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
        DS_ACCEL_ERR_INVALID, "aligned");
    EXPECT_REFUSED(
        ds_accel_rng_uniform(rng, NULL, memory, UINT64_MAX, DS_ACCEL_DTYPE_FLOAT64, 0, 1),
        DS_ACCEL_ERR_INVALID, "do not fit");
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, memory, 1 << 30, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                   DS_ACCEL_ERR_INVALID, "past the end");
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, theirs, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                   DS_ACCEL_ERR_INVALID, "device 1");
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, memory, 1, DS_ACCEL_DTYPE_INT32, 0, 1),
                   DS_ACCEL_ERR_INVALID, "dtype 8");
    EXPECT_REFUSED(ds_accel_rng_bits(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT32),
                   DS_ACCEL_ERR_INVALID, "integers");
    EXPECT_REFUSED(ds_accel_rng_normal(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT32, 0, -1),
                   DS_ACCEL_ERR_INVALID, "not negative");
    EXPECT_REFUSED(ds_accel_rng_normal(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT32, NAN, 1),
                   DS_ACCEL_ERR_INVALID, "finite");
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT32, 1, 1),
                   DS_ACCEL_ERR_INVALID, "range");
    MUST(ds_accel_stream_create(second, 0, 0, &stream));
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, stream, memory, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                   DS_ACCEL_ERR_INVALID, "device 1");
    ds_accel_stream_destroy(stream);
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, stream, memory, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                   DS_ACCEL_ERR_STATE, "captures");
    MUST(ds_accel_graph_capture_end(graph));
    EXPECT_STATUS(ds_accel_rng_uniform(rng, stream, memory, 0, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                  DS_ACCEL_OK);
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect_eq(place.block, 0, "nothing was filled, so nothing was used");
    cr_expect_eq(place.word, 0);
    EXPECT_REFUSED(ds_accel_rng_create(device, 1, DS_ACCEL_RNG_VENDOR, &rng),
                   DS_ACCEL_ERR_UNSUPPORTED, "no generator of its own");
    EXPECT_REFUSED(ds_accel_rng_create(device, 1, 8, &rng), DS_ACCEL_ERR_INVALID, "flags");
    MUST(ds_accel_mem_free(device, NULL, memory));
    MUST(ds_accel_mem_free(second, NULL, theirs));
    ds_accel_device_close(second);
    test_finish(context, device);
}

#define EACH 20000u

static void *fill_some(void *rng)
{
    static _Thread_local float numbers[EACH];

    for (int i = 0; i < 10; i++) {
        cr_assert_eq(
            ds_accel_rng_uniform(rng, NULL, numbers, EACH / 10, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
            DS_ACCEL_OK);
    }
    return NULL;
}

Test(core_rng, serves_several_threads_each_call_as_a_whole)
{
    struct ds_accel_rng_position place = {.struct_size = sizeof(place)};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("cpu", &device);
    pthread_t threads[4];
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 1, 0, &rng));
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, fill_some, rng), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect_eq(place.block, 4 * EACH / 4);
    test_finish(context, device);
}

/* ---- a device that the host cannot access ---------------------------------------------------- */

#define LARGE 1300000u /* float32 values: five pieces, sent through two staging blocks */

Test(core_rng, gets_numbers_to_memory_that_the_host_cannot_touch)
{
    static float near_numbers[LARGE];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_rng_t *rng;
    float *memory = allocate(device, sizeof(near_numbers));

    MUST(ds_accel_rng_create(device, 8, 0, &rng));
    MUST(ds_accel_rng_normal(rng, NULL, memory, LARGE, DS_ACCEL_DTYPE_FLOAT32, 1, 2));
    read_back(device, near_numbers, memory, sizeof(near_numbers));
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);

    context = far_start(&device);
    memory = allocate(device, sizeof(near_numbers));
    MUST(ds_accel_rng_create(device, 8, 0, &rng));
    MUST(ds_accel_rng_normal(rng, NULL, memory, 1000, DS_ACCEL_DTYPE_FLOAT32, 1, 2));
    MUST(ds_accel_rng_normal(rng, NULL, memory + 1000, LARGE - 1000, DS_ACCEL_DTYPE_FLOAT32, 1, 2));
    cr_expect_gt(far_queued_count, 0, "queued, and not waited for");
    MUST(ds_accel_device_synchronize(device));
    cr_expect_eq(far_copy_count, 6);
    cr_expect_eq(memcmp(memory, near_numbers, sizeof(near_numbers)), 0);
    ds_accel_rng_destroy(rng);
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);

    context = far_start_bare(&device);
    memory = allocate(device, sizeof(near_numbers));
    MUST(ds_accel_rng_create(device, 8, 0, &rng));
    MUST(ds_accel_rng_normal(rng, NULL, memory, LARGE, DS_ACCEL_DTYPE_FLOAT32, 1, 2));
    cr_expect_eq(far_queued_count, 0, "waited for");
    cr_expect_eq(memcmp(memory, near_numbers, sizeof(near_numbers)), 0);
    ds_accel_rng_destroy(rng);
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

Test(core_rng, says_that_a_copy_failed_and_repeats_the_fill)
{
    struct ds_accel_rng_position place = {.struct_size = sizeof(place)};
    static float again[LARGE];
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    float *memory = allocate(device, sizeof(again));
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 8, 0, &rng));
    MUST(ds_accel_rng_uniform(rng, NULL, memory, LARGE, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_device_synchronize(device));
    memcpy(again, memory, sizeof(again)); /* this device's memory is host memory */
    MUST(ds_accel_rng_manual_seed(rng, 8));
    for (size_t piece = 1; piece <= 5; piece++) {
        far_copy_count = 0;
        far_fail_copy_at = piece;
        EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, memory, LARGE, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                       DS_ACCEL_ERR_DRIVER, "the copy failed");
        MUST(ds_accel_rng_position(rng, &place));
        cr_expect_eq(place.block, 0);
    }
    far_fail_copy_at = 0;
    memset(memory, 0, sizeof(again));
    MUST(ds_accel_rng_uniform(rng, NULL, memory, LARGE, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_device_synchronize(device));
    cr_expect_eq(memcmp(memory, again, sizeof(again)), 0);
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

Test(core_rng, leaves_it_to_the_vendor_when_asked_to)
{
    unsigned char state[64];
    uint64_t size = 0;
    uint64_t seed = 0;
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    float *memory = allocate(device, 64);
    struct ds_accel_rng_position place = {.struct_size = sizeof(place)};
    ds_accel_rng_t *rng;
    ds_accel_rng_t *ours;

    MUST(ds_accel_rng_create(device, 42, DS_ACCEL_RNG_VENDOR, &rng));
    MUST(ds_accel_rng_uniform(rng, NULL, memory, 3, DS_ACCEL_DTYPE_FLOAT32, 0.5, 1));
    cr_expect_eq(memory[2], 42.5f);
    MUST(ds_accel_rng_get_state(rng, state, sizeof(state), &size));
    MUST(ds_accel_rng_manual_seed(rng, 43));
    MUST(ds_accel_rng_initial_seed(rng, &seed));
    cr_expect_eq(seed, 43);
    MUST(ds_accel_rng_set_state(rng, state, size));
    MUST(ds_accel_rng_initial_seed(rng, &seed));
    cr_expect_eq(seed, 42);
    EXPECT_STATUS(ds_accel_rng_set_state(rng, state, size - 1), DS_ACCEL_ERR_INVALID);
    EXPECT_REFUSED(ds_accel_rng_position(rng, &place), DS_ACCEL_ERR_UNSUPPORTED, "vendor");
    EXPECT_REFUSED(ds_accel_rng_bits(rng, NULL, memory, 1, DS_ACCEL_DTYPE_INT32),
                   DS_ACCEL_ERR_UNSUPPORTED, "raw bits");
    EXPECT_STATUS(ds_accel_rng_normal(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
                  DS_ACCEL_ERR_UNSUPPORTED);
    MUST(ds_accel_rng_create(device, 42, 0, &ours));
    EXPECT_REFUSED(ds_accel_rng_set_state(ours, state, size), DS_ACCEL_ERR_INVALID, "another kind");
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}
