/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Copies of tensors: among shapes, strides and devices. */
#include "far.h"
#include "tensor.h"

/* ---- copies --------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

/* Create a tensor of this shape in larger memory, with a random offset, dimension order, direction
   and gaps. */
static ds_accel_tensor_t *scatter(ds_accel_device_t *device, uint32_t place, uint32_t dtype,
                                  uint32_t ndim, const int64_t *shape)
{
    uint32_t order[4];
    int64_t strides[4];
    int64_t stride = 1 + random_below(2);
    int64_t offset = 0;
    ds_accel_tensor_t *memory;
    ds_accel_tensor_t *view;

    for (uint32_t i = 0; i < ndim; i++) {
        uint32_t other = random_below(i + 1);

        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < ndim; i++) {
        int64_t size = shape[order[i]];

        strides[order[i]] = stride;
        if (random_below(4) == 0 && size > 0) {
            strides[order[i]] = -stride;
            offset += stride * (size - 1);
        }
        stride = stride * (size > 0 ? size : 1) + random_below(3);
    }
    if (place == DS_ACCEL_PLACE_DEVICE) {
        MUST(ds_accel_tensor_create(device, dtype, 1, &stride, &memory));
    } else if (place == DS_ACCEL_PLACE_PINNED) {
        MUST(ds_accel_tensor_create_pinned(device, dtype, 1, &stride, 1, &memory));
    } else {
        MUST(ds_accel_tensor_create_host(dtype, 1, &stride, &memory));
    }
    MUST(ds_accel_tensor_zero(memory, NULL));
    MUST(ds_accel_tensor_view(memory, offset, ndim, shape, strides, &view));
    ds_accel_tensor_put(memory);
    return view;
}

/* Copy between two random tensors. The mock's device memory is host memory, so plain loops can
   write and read it. */
static void copy_at_random(ds_accel_device_t *device)
{
    static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_INT8, DS_ACCEL_DTYPE_FLOAT16,
                                      DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_DTYPE_INT64};
    int64_t shape[4];
    uint32_t ndim = random_below(5);
    uint32_t dtype = dtypes[random_below(4)];
    ds_accel_tensor_t *from;
    ds_accel_tensor_t *to;
    struct ds_accel_tensor_info source;
    struct ds_accel_tensor_info target;

    for (uint32_t i = 0; i < ndim; i++) {
        shape[i] = random_below(12) == 0 ? 0 : 1 + random_below(5);
    }
    from = scatter(device, 1 + random_below(3), dtype, ndim, shape);
    to = scatter(device, 1 + random_below(3), dtype, ndim, shape);
    MUST(ds_accel_device_synchronize(device));
    source = info_of(from);
    target = info_of(to);
    for (uint64_t i = 0; i < source.element_count; i++) {
        for (uint64_t byte = 0; byte < source.element_bytes; byte++) {
            element(&source, i)[byte] = (char)random_below(256);
        }
    }
    MUST(ds_accel_tensor_copy(to, from, NULL));
    MUST(ds_accel_device_synchronize(device));
    for (uint64_t i = 0; i < source.element_count; i++) {
        cr_assert_eq(memcmp(element(&target, i), element(&source, i), source.element_bytes), 0,
                     "element %d of %d", (int)i, (int)source.element_count);
    }
    /* No other bytes are written: every other byte of the memory is still 0. */
    for (uint64_t i = 0; i < source.element_count; i++) {
        memset(element(&target, i), 0, target.element_bytes);
    }
    for (uint64_t i = 0; i < target.storage_bytes; i++) {
        cr_assert_eq(((char *)target.storage)[i], 0);
    }
    ds_accel_tensor_put(to);
    ds_accel_tensor_put(from);
}

Test(core_tensor, copies_whatever_lies_however_anywhere)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);

    for (int i = 0; i < 2000; i++) {
        copy_at_random(device);
    }
    test_finish(context, device);
    context = test_start("cpu", &device);
    for (int i = 0; i < 500; i++) {
        copy_at_random(device);
    }
    test_finish(context, device);
}

Test(core_tensor, copies_where_the_host_cannot_reach)
{
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);

    for (int i = 0; i < 1000; i++) {
        copy_at_random(device);
    }
    test_finish(context, device);
}

Test(core_tensor, keeps_memory_of_a_copy_that_failed_half_way)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    ds_accel_tensor_t *pinned;
    ds_accel_tensor_t *gaps;
    ds_accel_tensor_t *there;

    MUST(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(8), 1, &pinned));
    MUST(ds_accel_tensor_zero(pinned, NULL));
    MUST(ds_accel_tensor_slice(pinned, 0, 0, 8, 2, &gaps));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(4), &there));
    far_copy_count = 0;
    far_fail_copy_at = 3;
    EXPECT_STATUS(ds_accel_tensor_copy(there, gaps, NULL), DS_ACCEL_ERR_DRIVER);
    far_fail_copy_at = 0;
    cr_expect_eq(far_queued_count, 2, "copies that are under way");
    ds_accel_tensor_put(gaps);
    ds_accel_tensor_put(pinned);
    MUST(ds_accel_pinned_stats(device, &stats));
    cr_expect_gt(stats.waiting_bytes, 0, "a stream reads it still");
    ds_accel_tensor_put(there);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

Test(core_tensor, goes_to_devices_and_back)
{
    ds_accel_device_t *device;
    ds_accel_device_t *second;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *whole = count_up(2, SHAPE(50, 60));
    ds_accel_tensor_t *turned;
    ds_accel_tensor_t *there;
    ds_accel_tensor_t *beyond;
    ds_accel_tensor_t *back;
    ds_accel_tensor_t *same;
    ds_accel_stream_t *stream;

    MUST(ds_accel_device_open(context, 1, &second));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_tensor_transpose(whole, 0, 1, &turned));
    MUST(ds_accel_tensor_to(turned, device, stream, &there));
    MUST(ds_accel_tensor_to(there, device, stream, &same));
    cr_expect_eq(same, there);
    ds_accel_tensor_put(same);
    MUST(ds_accel_tensor_to(there, second, stream, &beyond));
    cr_expect_eq(info_of(beyond).device, second);
    MUST(ds_accel_stream_synchronize(stream));
    MUST(ds_accel_tensor_to(beyond, NULL, NULL, &back));
    for (uint64_t i = 0; i < 3000; i++) {
        cr_assert_eq(number(back, i), number(turned, i));
    }
    MUST(ds_accel_tensor_contiguous(turned, NULL, &same));
    cr_expect_eq(info_of(same).flags, DS_ACCEL_TENSOR_CONTIGUOUS);
    cr_expect_eq(number(same, 2999), number(turned, 2999));
    ds_accel_tensor_put(same);
    MUST(ds_accel_tensor_contiguous(back, NULL, &same));
    cr_expect_eq(same, back);
    ds_accel_tensor_put(same);
    EXPECT_REFUSED(ds_accel_tensor_to(beyond, NULL, stream, &same), DS_ACCEL_ERR_INVALID,
                   "device 0");
    ds_accel_tensor_put(back);
    ds_accel_tensor_put(beyond);
    ds_accel_tensor_put(there);
    ds_accel_tensor_put(turned);
    ds_accel_tensor_put(whole);
    ds_accel_device_close(second);
    test_finish(context, device);
}

Test(core_tensor, pins_memory_with_the_alignment_asked_for)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *plain = count_up(1, SHAPE(1000));
    ds_accel_tensor_t *pinned;
    ds_accel_tensor_t *again;
    ds_accel_tensor_t *part;
    ds_accel_tensor_t *there;
    uint32_t answer = 9;

    MUST(ds_accel_tensor_is_pinned(plain, &answer));
    cr_expect_eq(answer, 0);
    MUST(ds_accel_pin_memory(plain, device, 8192, &pinned));
    cr_expect_eq((uintptr_t)ds_accel_tensor_data(pinned) % 8192, 0);
    cr_expect_eq(number(pinned, 999), 999);
    MUST(ds_accel_pin_memory(pinned, device, 1, &again));
    cr_expect_eq(again, pinned);
    ds_accel_tensor_put(again);
    MUST(ds_accel_tensor_slice(pinned, 0, 1, 3, 1, &part));
    MUST(ds_accel_pin_memory(part, device, 64, &again));
    cr_expect_neq(again, part, "not aligned so");
    cr_expect_eq(number(again, 1), 2);
    MUST(ds_accel_tensor_to(plain, device, NULL, &there));
    EXPECT_REFUSED(ds_accel_pin_memory(there, device, 1, &again), DS_ACCEL_ERR_INVALID,
                   "on a device");
    EXPECT_STATUS(ds_accel_pin_memory(plain, NULL, 1, &again), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_pin_memory(plain, device, 3, &part), DS_ACCEL_ERR_INVALID);
    ds_accel_tensor_put(again);
    ds_accel_tensor_put(part);
    ds_accel_tensor_put(there);
    ds_accel_tensor_put(pinned);
    ds_accel_tensor_put(plain);
    test_finish(context, device);
}

static void check_fill(ds_accel_device_t *device, uint32_t dtype, const void *value)
{
    int64_t shape[] = {70, 1, 9};
    ds_accel_tensor_t *tensor = scatter(device, DS_ACCEL_PLACE_DEVICE, dtype, 3, shape);
    ds_accel_tensor_t *dense;
    struct ds_accel_tensor_info info = info_of(tensor);

    MUST(ds_accel_tensor_create(device, dtype, 2, SHAPE(300, 1000), &dense));
    MUST(ds_accel_tensor_fill(tensor, value, NULL));
    MUST(ds_accel_tensor_fill(dense, value, NULL));
    MUST(ds_accel_device_synchronize(device));
    for (uint64_t i = 0; i < info.element_count; i++) {
        cr_assert_eq(memcmp(element(&info, i), value, info.element_bytes), 0);
        memset(element(&info, i), 0, info.element_bytes);
    }
    for (uint64_t i = 0; i < info.storage_bytes; i++) {
        cr_assert_eq(((char *)info.storage)[i], 0);
    }
    info = info_of(dense);
    for (uint64_t i = 0; i < info.element_count; i++) {
        cr_assert_eq(memcmp(element(&info, i), value, info.element_bytes), 0);
    }
    ds_accel_tensor_put(dense);
    ds_accel_tensor_put(tensor);
}

Test(core_tensor, pins_to_a_page_once)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *pinned[4];
    ds_accel_tensor_t *again = NULL;

    for (size_t i = 0; i < 4; i++) { /* adjacent, so not all are aligned to a larger page */
        ds_accel_tensor_t *plain = count_up(1, SHAPE(10));

        MUST(ds_accel_pin_memory(plain, device, 0, &pinned[i]));
        ds_accel_tensor_put(plain);
    }
    for (size_t i = 0; i < 4; i++) {
        MUST(ds_accel_pin_memory(pinned[i], device, 0, &again));
        cr_expect_eq(again, pinned[i], "it is aligned to a page already");
        ds_accel_tensor_put(again);
        /* An invalid alignment is rejected, even if the address is a multiple of it. */
        EXPECT_REFUSED(ds_accel_pin_memory(pinned[i], device,
                                           (uintptr_t)ds_accel_tensor_data(pinned[i]), &again),
                       DS_ACCEL_ERR_INVALID, "power of two");
        ds_accel_tensor_put(pinned[i]);
    }
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

Test(core_tensor, fills_with_elements_of_every_size)
{
    static const unsigned char value[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const unsigned char halves[] = {9, 8, 9, 8, 9, 8, 9, 8};
    static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_UINT8, DS_ACCEL_DTYPE_BFLOAT16,
                                      DS_ACCEL_DTYPE_INT32, DS_ACCEL_DTYPE_FLOAT64};
    ds_accel_device_t *device;
    ds_accel_t *context;

    for (int is_far = 0; is_far < 2; is_far++) {
        context = is_far ? far_start(&device) : test_start("mock", &device);
        for (size_t i = 0; i < 4; i++) {
            check_fill(device, dtypes[i], value);
            check_fill(device, dtypes[i], halves);
        }
        test_finish(context, device);
    }
}

Test(core_tensor, refuses_copies_that_cannot_be)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    int32_t number_memory[4] = {1, 2, 3, 4};
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .dtype = DS_ACCEL_DTYPE_INT32,
                                            .ndim = 1,
                                            .flags = DS_ACCEL_TENSOR_READ_ONLY,
                                            .data = number_memory,
                                            .shape = SHAPE(4)};
    ds_accel_tensor_t *constant;
    ds_accel_tensor_t *four = count_up(1, SHAPE(4));
    ds_accel_tensor_t *five = count_up(1, SHAPE(5));
    ds_accel_tensor_t *there;
    ds_accel_tensor_t *repeated;
    ds_accel_tensor_t *left;
    ds_accel_tensor_t *right;
    ds_accel_tensor_t *floats;
    ds_accel_stream_t *stream;
    int32_t value = 6;

    MUST(ds_accel_tensor_from_memory(NULL, &memory, &constant));
    MUST(ds_accel_tensor_to(four, device, NULL, &there));
    MUST(ds_accel_tensor_view(five, 0, 1, SHAPE(4), SHAPE(0), &repeated));
    MUST(ds_accel_tensor_slice(five, 0, 0, 4, 1, &left));
    MUST(ds_accel_tensor_slice(five, 0, 1, 5, 1, &right));
    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_FLOAT32, 1, SHAPE(4), &floats));
    EXPECT_REFUSED(ds_accel_tensor_copy(constant, four, NULL), DS_ACCEL_ERR_INVALID, "read-only");
    EXPECT_REFUSED(ds_accel_tensor_fill(constant, &value, NULL), DS_ACCEL_ERR_INVALID, "read-only");
    EXPECT_REFUSED(ds_accel_tensor_copy(four, five, NULL), DS_ACCEL_ERR_INVALID, "shapes");
    EXPECT_REFUSED(ds_accel_tensor_copy(four, floats, NULL), DS_ACCEL_ERR_INVALID, "dtype");
    EXPECT_REFUSED(ds_accel_tensor_copy(repeated, four, NULL), DS_ACCEL_ERR_INVALID, "several");
    EXPECT_REFUSED(ds_accel_tensor_fill(repeated, &value, NULL), DS_ACCEL_ERR_INVALID, "several");
    EXPECT_REFUSED(ds_accel_tensor_copy(left, right, NULL), DS_ACCEL_ERR_INVALID, "overlap");
    EXPECT_STATUS(ds_accel_tensor_copy(left, left, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_tensor_copy(there, repeated, NULL), DS_ACCEL_OK);
    cr_expect_eq(number(there, 3), 0, "one element in four places");
    EXPECT_STATUS(ds_accel_tensor_copy(there, constant, NULL), DS_ACCEL_OK);
    cr_expect_eq(number(there, 3), 4);
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    ds_accel_stream_destroy(stream);
    EXPECT_REFUSED(ds_accel_tensor_copy(there, four, stream), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_tensor_copy(left, four, stream), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_STATUS(ds_accel_tensor_copy(NULL, four, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_fill(four, NULL, NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_tensor_put(floats);
    ds_accel_tensor_put(right);
    ds_accel_tensor_put(left);
    ds_accel_tensor_put(repeated);
    ds_accel_tensor_put(there);
    ds_accel_tensor_put(five);
    ds_accel_tensor_put(four);
    ds_accel_tensor_put(constant);
    test_finish(context, device);
}

Test(core_tensor, is_captured_with_its_gaps_and_replayed)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *plain = count_up(2, SHAPE(4, 6));
    ds_accel_tensor_t *pinned;
    ds_accel_tensor_t *turned;
    ds_accel_tensor_t *there;
    ds_accel_stream_t *stream;
    ds_accel_graph_t *graph;
    double wide = 1.1;
    ds_accel_tensor_t *doubles;

    MUST(ds_accel_pin_memory(plain, device, 1, &pinned));
    MUST(ds_accel_tensor_transpose(pinned, 0, 1, &turned));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 2, SHAPE(6, 4), &there));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT64, 0, NULL, &doubles));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    MUST(ds_accel_tensor_copy(there, turned, stream));
    MUST(ds_accel_graph_capture_end(graph));
    for (int round = 0; round < 3; round++) {
        *(int32_t *)ds_accel_tensor_data(pinned) = 100 + round;
        MUST(ds_accel_graph_replay(graph, stream));
        MUST(ds_accel_stream_synchronize(stream));
        cr_expect_eq(number(there, 0), 100 + round);
        for (uint64_t i = 0; i < 24; i++) {
            cr_expect_eq(number(there, i), number(turned, i));
        }
    }
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    EXPECT_REFUSED(ds_accel_tensor_fill(doubles, &wide, stream), DS_ACCEL_ERR_STATE, "captures");
    ds_accel_tensor_put(turned);
    MUST(ds_accel_tensor_transpose(plain, 0, 1, &turned));
    EXPECT_REFUSED(ds_accel_tensor_copy(there, turned, stream), DS_ACCEL_ERR_STATE, "pin it");
    MUST(ds_accel_graph_capture_end(graph));
    ds_accel_graph_destroy(graph);
    ds_accel_tensor_put(doubles);
    ds_accel_tensor_put(turned);
    ds_accel_tensor_put(there);
    ds_accel_tensor_put(pinned);
    ds_accel_tensor_put(plain);
    test_finish(context, device);
}
