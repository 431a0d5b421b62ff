/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tensors: shapes and views, copies against a plain loop, lifetimes, and DLPack's structures. */
#include "far.h"

#include <dlpack/dlpack.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static struct ds_accel_tensor_info info_of(const ds_accel_tensor_t *tensor)
{
    struct ds_accel_tensor_info info = {.struct_size = sizeof(info)};

    MUST(ds_accel_tensor_info(tensor, &info));
    return info;
}

/* A contiguous tensor of int32 on the host: 0, 1, 2 ... */
static ds_accel_tensor_t *count_up(uint32_t ndim, const int64_t *shape)
{
    ds_accel_tensor_t *tensor = NULL;
    int32_t *data;

    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT32, ndim, shape, &tensor));
    data = ds_accel_tensor_data(tensor);
    for (uint64_t i = 0; i < info_of(tensor).element_count; i++) {
        data[i] = (int32_t)i;
    }
    return tensor;
}

/* Element number n, in the order of the shape; memory that the host reaches. */
static char *element(const struct ds_accel_tensor_info *info, uint64_t n)
{
    int64_t offset = 0;

    for (uint32_t i = info->ndim; i-- > 0;) {
        offset += (int64_t)(n % (uint64_t)info->shape[i]) * info->strides[i];
        n /= (uint64_t)info->shape[i];
    }
    return (char *)info->data + offset * (int64_t)info->element_bytes;
}

static int32_t number(const ds_accel_tensor_t *tensor, uint64_t n)
{
    struct ds_accel_tensor_info info = info_of(tensor);
    int32_t value;

    memcpy(&value, element(&info, n), sizeof(value));
    return value;
}

/* ---- shapes --------------------------------------------------------------------------------- */

Test(core_tensor, knows_its_shape_place_and_size)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    struct ds_accel_tensor_info info;
    ds_accel_tensor_t *tensor;
    uint32_t answer = 7;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT64, 3, SHAPE(2, 3, 4), &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_DEVICE);
    cr_expect_eq(info.flags, DS_ACCEL_TENSOR_CONTIGUOUS);
    cr_expect_eq(info.device, device);
    cr_expect_eq(info.device_index, 0);
    cr_expect_eq(info.element_count, 24);
    cr_expect_eq(info.element_bytes, 8);
    cr_expect_eq(info.storage_bytes, 192);
    cr_expect_eq(info.data, info.storage);
    cr_expect_eq((uintptr_t)info.data % 512, 0);
    cr_expect_arr_eq(info.strides, SHAPE(12, 4, 1), 24);
    MUST(ds_accel_on_accelerator(tensor, &answer));
    cr_expect_eq(answer, 1);
    ds_accel_tensor_put(tensor);
    EXPECT_REFUSED(ds_accel_tensor_info(tensor, &info), DS_ACCEL_ERR_INVALID, "destroyed");
    cr_expect_null(ds_accel_tensor_data(tensor));
    cr_expect_null(ds_accel_tensor_get(tensor));
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(NULL);

    MUST(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_BOOL, 0, NULL, 0, &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_PINNED);
    cr_expect_eq(info.element_count, 1, "no dimensions are one element");
    cr_expect_eq((uintptr_t)info.data % 4096, 0);
    MUST(ds_accel_tensor_is_pinned(tensor, &answer));
    cr_expect_eq(answer, 1);
    MUST(ds_accel_is_pinned(context, info.data, &answer));
    cr_expect_eq(answer, 1);
    ds_accel_tensor_put(tensor);

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 2, SHAPE(5, 0), &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.element_count, 0);
    cr_expect_null(info.data);
    ds_accel_tensor_put(tensor);

    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ, 1, SHAPE(3), &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.device_index, -1);
    cr_expect_null(info.device);
    MUST(ds_accel_on_accelerator(tensor, &answer));
    cr_expect_eq(answer, 0);
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

Test(core_tensor, refuses_shapes_that_cannot_be)
{
    static int64_t many[33];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *tensor = NULL;

    for (size_t i = 0; i < 33; i++) {
        many[i] = 1;
    }
    EXPECT_REFUSED(ds_accel_tensor_create(device, 0, 1, many, &tensor), DS_ACCEL_ERR_INVALID,
                   "dtype 0");
    EXPECT_REFUSED(ds_accel_tensor_create(device, 18, 1, many, &tensor), DS_ACCEL_ERR_INVALID,
                   "dtype 18");
    EXPECT_REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 33, many, &tensor),
                   DS_ACCEL_ERR_INVALID, "32 dimensions");
    EXPECT_REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, NULL, &tensor),
                   DS_ACCEL_ERR_INVALID, "shape NULL");
    EXPECT_REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(-1), &tensor),
                   DS_ACCEL_ERR_INVALID, "size -1");
    EXPECT_REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 2,
                                          SHAPE(1LL << 32, 1LL << 31), &tensor),
                   DS_ACCEL_ERR_INVALID, "too many");
    EXPECT_REFUSED(
        ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT64, 1, SHAPE(1LL << 61), &tensor),
        DS_ACCEL_ERR_INVALID, "too many");
    EXPECT_REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 3,
                                          SHAPE(0, 1LL << 62, 1LL << 62), &tensor),
                   DS_ACCEL_ERR_INVALID, "too many");
    EXPECT_STATUS(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(1LL << 60), &tensor),
                  DS_ACCEL_ERR_NO_MEMORY);
#ifndef __SANITIZE_ADDRESS__ /* which ends the process instead */
    EXPECT_STATUS(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT8, 1, SHAPE(INT64_MAX), &tensor),
                  DS_ACCEL_ERR_NO_MEMORY);
#endif
    EXPECT_STATUS(ds_accel_tensor_create(NULL, DS_ACCEL_DTYPE_INT8, 0, NULL, &tensor),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 0, NULL, NULL),
                  DS_ACCEL_ERR_INVALID);
    cr_expect_null(tensor);
    test_finish(context, device);
}

/* ---- views ---------------------------------------------------------------------------------- */

Test(core_tensor, views_share_memory_and_outlive_it)
{
    ds_accel_tensor_t *whole = count_up(3, SHAPE(2, 3, 4));
    ds_accel_tensor_t *turned;
    ds_accel_tensor_t *part;
    ds_accel_tensor_t *flat;
    ds_accel_tensor_t *odd;
    struct ds_accel_tensor_info info;

    MUST(ds_accel_tensor_transpose(whole, 0, 2, &turned));
    info = info_of(turned);
    cr_expect_arr_eq(info.shape, SHAPE(4, 3, 2), 24);
    cr_expect_eq(info.flags, 0);
    cr_expect_eq(number(turned, 1), 12);
    MUST(ds_accel_tensor_slice(turned, 0, 1, 4, 2, &part)); /* 1 and 3 of the last dimension */
    ds_accel_tensor_put(turned);
    cr_expect_arr_eq(info_of(part).shape, SHAPE(2, 3, 2), 24);
    cr_expect_eq(number(part, 0), 1);
    cr_expect_eq(number(part, 11), 23);
    EXPECT_REFUSED(ds_accel_tensor_reshape(part, 1, SHAPE(12), &flat), DS_ACCEL_ERR_INVALID,
                   "contiguous");
    MUST(ds_accel_tensor_reshape(whole, 2, SHAPE(-1, 12), &flat));
    ds_accel_tensor_put(whole);
    cr_expect_arr_eq(info_of(flat).shape, SHAPE(2, 12), 16);
    cr_expect_eq(number(flat, 23), 23);
    /* Backwards, every second, and from inside. */
    MUST(ds_accel_tensor_view(flat, 23, 2, SHAPE(2, 6), SHAPE(-1, -2), &odd));
    cr_expect_eq(number(odd, 0), 23);
    cr_expect_eq(number(odd, 1), 21);
    cr_expect_eq(number(odd, 6), 22);
    cr_expect_eq(number(odd, 11), 12);
    ds_accel_tensor_put(flat);
    ds_accel_tensor_put(part);
    cr_expect_eq(number(odd, 11), 12, "the memory is still there");
    ds_accel_tensor_put(odd);
}

/* Reshaping agrees with reading the elements in their order, or says that it can't. */
Test(core_tensor, reshapes_whatever_strides_allow)
{
    static const struct {
        int64_t from[4];
        int64_t to[4];
        uint32_t from_ndim;
        uint32_t to_ndim;
        uint32_t swapped[2]; /* of the 4 x 6 x 5 that is there; equal: none */
        bool is_possible;
    } cases[] = {
        {{4, 6, 5}, {120}, 3, 1, {0, 0}, true},
        {{4, 6, 5}, {2, 2, 3, 10}, 3, 4, {0, 0}, true},
        {{6, 4, 5}, {2, 3, 4, 5}, 3, 4, {0, 1}, true},
        {{6, 4, 5}, {6, 20}, 3, 2, {0, 1}, false},
        {{6, 4, 5}, {24, 5}, 3, 2, {0, 1}, false},
        {{6, 4, 5}, {6, 1, 2, 10}, 3, 4, {0, 1}, false},
        {{6, 4, 5}, {6, 1, 2, 2}, 3, 4, {0, 1}, false}, /* 24 elements: wrong in number */
        {{4, 5, 6}, {2, 2, 5, 6}, 3, 4, {1, 2}, true},
        {{4, 5, 6}, {4, 30}, 3, 2, {1, 2}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ds_accel_tensor_t *whole = count_up(3, SHAPE(4, 6, 5));
        ds_accel_tensor_t *turned;
        ds_accel_tensor_t *other = NULL;
        int32_t status;

        MUST(ds_accel_tensor_transpose(whole, cases[i].swapped[0], cases[i].swapped[1], &turned));
        cr_assert_arr_eq(info_of(turned).shape, cases[i].from, 24);
        status = ds_accel_tensor_reshape(turned, cases[i].to_ndim, cases[i].to, &other);
        cr_expect_eq(status, cases[i].is_possible ? DS_ACCEL_OK : DS_ACCEL_ERR_INVALID, "%zu", i);
        for (uint64_t n = 0; n < 120 && other != NULL; n++) {
            cr_assert_eq(number(turned, n), number(other, n), "case %zu, element %d", i, (int)n);
        }
        ds_accel_tensor_put(other);
        ds_accel_tensor_put(turned);
        ds_accel_tensor_put(whole);
    }
}

Test(core_tensor, reshapes_nothing_to_no_shape_that_is_too_large)
{
    ds_accel_tensor_t *none;
    ds_accel_tensor_t *tensor = NULL;

    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT8, 1, SHAPE(0), &none));
    EXPECT_REFUSED(ds_accel_tensor_reshape(none, 3, SHAPE(0, 1LL << 40, 1LL << 40), &tensor),
                   DS_ACCEL_ERR_INVALID, "too many elements");
    MUST(ds_accel_tensor_reshape(none, 3, SHAPE(0, 1LL << 20, 1LL << 40), &tensor));
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(none);
}

Test(core_tensor, refuses_views_outside_of_the_memory)
{
    ds_accel_tensor_t *tensor = count_up(2, SHAPE(3, 4));
    ds_accel_tensor_t *empty;
    ds_accel_tensor_t *scalar;
    ds_accel_tensor_t *view = NULL;

    EXPECT_REFUSED(ds_accel_tensor_view(tensor, 1, 1, SHAPE(12), NULL, &view), DS_ACCEL_ERR_INVALID,
                   "outside");
    EXPECT_REFUSED(ds_accel_tensor_view(tensor, -1, 0, NULL, NULL, &view), DS_ACCEL_ERR_INVALID,
                   "outside");
    EXPECT_REFUSED(ds_accel_tensor_view(tensor, 0, 1, SHAPE(2), SHAPE(-1), &view),
                   DS_ACCEL_ERR_INVALID, "outside");
    EXPECT_STATUS(
        ds_accel_tensor_view(tensor, 0, 2, SHAPE(2, 2), SHAPE(INT64_MAX, INT64_MIN), &view),
        DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_view(tensor, INT64_MAX, 0, NULL, NULL, &view),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_view(tensor, INT64_MIN, 0, NULL, NULL, &view),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_REFUSED(ds_accel_tensor_slice(tensor, 2, 0, 0, 1, &view), DS_ACCEL_ERR_INVALID,
                   "2 dimensions");
    EXPECT_REFUSED(ds_accel_tensor_slice(tensor, 1, 0, 5, 1, &view), DS_ACCEL_ERR_INVALID,
                   "size 4");
    EXPECT_STATUS(ds_accel_tensor_slice(tensor, 1, -1, 2, 1, &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_slice(tensor, 1, 3, 2, 1, &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_slice(tensor, 1, 0, 2, 0, &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_transpose(tensor, 0, 2, &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 2, SHAPE(-1, -1), &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 2, SHAPE(-1, 5), &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 2, SHAPE(-1, 0), &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 1, SHAPE(-12), &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 2, SHAPE(1LL << 62, 1LL << 62), &view),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 33, SHAPE(12), &view), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(tensor, 1, SHAPE(12), NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_reshape(NULL, 1, SHAPE(12), &view), DS_ACCEL_ERR_INVALID);
    cr_expect_null(view);
    MUST(ds_accel_tensor_slice(tensor, 1, 4, 4, INT64_MAX, &empty));
    cr_expect_eq(info_of(empty).element_count, 0);
    MUST(ds_accel_tensor_reshape(empty, 3, SHAPE(7, 0, 9), &view));
    ds_accel_tensor_put(view);
    ds_accel_tensor_put(empty);
    MUST(ds_accel_tensor_view(tensor, 11, 0, NULL, NULL, &scalar));
    MUST(ds_accel_tensor_reshape(scalar, 2, SHAPE(1, 1), &view));
    cr_expect_eq(number(view, 0), 11);
    ds_accel_tensor_put(view);
    ds_accel_tensor_put(scalar);
    ds_accel_tensor_put(tensor);
}

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

/* ---- copies --------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

/* A tensor of this shape that lies somewhere, in some order, with gaps, in larger memory. */
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

/* The mock's device memory is the host's, so that plain loops can write and read it. */
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
    /* And nothing beside them: every other byte of the memory is 0 still. */
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

    for (size_t i = 0; i < 4; i++) { /* side by side: not all at multiples of a larger page */
        ds_accel_tensor_t *plain = count_up(1, SHAPE(10));

        MUST(ds_accel_pin_memory(plain, device, 0, &pinned[i]));
        ds_accel_tensor_put(plain);
    }
    for (size_t i = 0; i < 4; i++) {
        MUST(ds_accel_pin_memory(pinned[i], device, 0, &again));
        cr_expect_eq(again, pinned[i], "it is aligned to a page already");
        ds_accel_tensor_put(again);
        /* An alignment that cannot be is refused, also where the address is a multiple of it. */
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

/* ---- lifetimes ------------------------------------------------------------------------------ */

static int deleted;

static void count_deletion(void *user_data)
{
    __atomic_add_fetch((int *)user_data, 1, __ATOMIC_RELAXED);
}

Test(core_tensor, calls_a_deleter_once_and_only_for_what_it_took)
{
    static int64_t memory_numbers[6];
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .dtype = DS_ACCEL_DTYPE_INT64,
                                            .ndim = 1,
                                            .data = memory_numbers + 5,
                                            .shape = SHAPE(3),
                                            .strides = SHAPE(-2),
                                            .deleter = count_deletion,
                                            .user_data = &deleted};
    ds_accel_device_t *device;
    ds_accel_device_t *second;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *tensor = NULL;
    ds_accel_tensor_t *view;
    void *theirs;

    MUST(ds_accel_tensor_from_memory(NULL, &memory, &tensor));
    cr_expect_eq(info_of(tensor).storage, memory_numbers + 1);
    cr_expect_eq(info_of(tensor).storage_bytes, 40);
    cr_expect_eq(info_of(tensor).data, memory_numbers + 5);
    MUST(ds_accel_tensor_slice(tensor, 0, 1, 3, 1, &view));
    cr_expect_eq(ds_accel_tensor_get(tensor), tensor);
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(tensor);
    cr_expect_eq(deleted, 0);
    ds_accel_tensor_put(view);
    cr_expect_eq(deleted, 1);

    MUST(ds_accel_device_open(context, 1, &second));
    MUST(ds_accel_mem_alloc(second, NULL, 64, &theirs));
    memory.strides = NULL;
    memory.data = theirs;
    EXPECT_REFUSED(ds_accel_tensor_from_memory(device, &memory, &tensor), DS_ACCEL_ERR_INVALID,
                   "memory of device 1");
    MUST(ds_accel_tensor_from_memory(second, &memory, &tensor));
    cr_expect_eq(info_of(tensor).place, DS_ACCEL_PLACE_DEVICE);
    ds_accel_tensor_put(tensor);
    cr_expect_eq(deleted, 2);
    MUST(ds_accel_mem_free(second, NULL, theirs));
    MUST(ds_accel_mem_alloc_pinned(device, 64, 1, 0, &theirs));
    memory.data = theirs;
    MUST(ds_accel_tensor_from_memory(device, &memory, &tensor));
    cr_expect_eq(info_of(tensor).place, DS_ACCEL_PLACE_PINNED);
    ds_accel_tensor_put(tensor);
    cr_expect_eq(deleted, 3);
    MUST(ds_accel_mem_free_pinned(device, theirs));

    tensor = NULL;
    memory.data = NULL;
    EXPECT_REFUSED(ds_accel_tensor_from_memory(NULL, &memory, &tensor), DS_ACCEL_ERR_INVALID,
                   "NULL");
    memory.data = memory_numbers;
    memory.strides = SHAPE(INT64_MAX / 8);
    EXPECT_REFUSED(ds_accel_tensor_from_memory(NULL, &memory, &tensor), DS_ACCEL_ERR_INVALID,
                   "address space");
    memory.strides = SHAPE(INT64_MIN);
    EXPECT_STATUS(ds_accel_tensor_from_memory(NULL, &memory, &tensor), DS_ACCEL_ERR_INVALID);
    memory.strides = NULL;
    memory.flags = 8;
    EXPECT_REFUSED(ds_accel_tensor_from_memory(NULL, &memory, &tensor), DS_ACCEL_ERR_INVALID,
                   "flag");
    memory.flags = 0;
    memory.struct_size = 8;
    EXPECT_STATUS(ds_accel_tensor_from_memory(NULL, &memory, &tensor), DS_ACCEL_ERR_INVALID);
    cr_expect_null(tensor);
    cr_expect_eq(deleted, 3);
    ds_accel_device_close(second);
    test_finish(context, device);
}

Test(core_tensor, keeps_its_device_open_and_its_context_alive)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_device_t *again;
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *host;
    ds_accel_tensor_t *back;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(10), &tensor));
    ds_accel_device_close(device);
    ds_accel_device_close(device);
    ds_accel_device_close(device);
    MUST(ds_accel_tensor_zero(tensor, NULL));
    MUST(ds_accel_device_open(context, 0, &again));
    cr_expect_eq(again, device);
    ds_accel_device_close(again);
    ds_accel_destroy(context);
    MUST(ds_accel_tensor_to(tensor, NULL, NULL, &back));
    cr_expect_eq(number(back, 9), 0);
    host = count_up(1, SHAPE(10));
    MUST(ds_accel_tensor_copy(tensor, host, NULL));
    cr_expect_eq(number(tensor, 9), 9);
    ds_accel_tensor_put(tensor);
    EXPECT_REFUSED(ds_accel_device_synchronize(device), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_tensor_put(host);
    cr_expect_eq(number(back, 9), 0, "ordinary memory needs nobody");
    ds_accel_tensor_put(back);
}

static void *share_and_put(void *given)
{
    for (int i = 0; i < 2000; i++) {
        ds_accel_tensor_t *view = NULL;

        cr_assert_eq(ds_accel_tensor_get(given), (ds_accel_tensor_t *)given);
        cr_assert_eq(ds_accel_tensor_slice(given, 0, 1, 2, 1, &view), DS_ACCEL_OK);
        ds_accel_tensor_put(given);
        ds_accel_tensor_put(view);
    }
    ds_accel_tensor_put(given);
    return NULL;
}

Test(core_tensor, is_counted_right_by_many_threads)
{
    static char bytes[4];
    int deletions = 0;
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .dtype = DS_ACCEL_DTYPE_INT8,
                                            .ndim = 1,
                                            .data = bytes,
                                            .shape = SHAPE(4),
                                            .deleter = count_deletion,
                                            .user_data = &deletions};
    pthread_t threads[4];
    ds_accel_tensor_t *tensor;

    MUST(ds_accel_tensor_from_memory(NULL, &memory, &tensor));
    for (int i = 0; i < 4; i++) {
        ds_accel_tensor_get(tensor);
        cr_assert_eq(pthread_create(&threads[i], NULL, share_and_put, tensor), 0);
    }
    ds_accel_tensor_put(tensor);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    cr_expect_eq(deletions, 1);
}

Test(core_tensor, is_left_alone_in_a_forked_child)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *other = NULL;
    int status = 0;
    pid_t child;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(10), &tensor));
    child = fork();
    if (child == 0) {
        int code = ds_accel_tensor_zero(tensor, NULL) == DS_ACCEL_ERR_STATE ? 0 : 1;

        code |= ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 0, NULL, &other) ==
                        DS_ACCEL_ERR_STATE
                    ? 0
                    : 2;
        code |= ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT8, 0, NULL, &other) == DS_ACCEL_OK
                    ? 0
                    : 4;
        ds_accel_tensor_put(other);
        ds_accel_tensor_put(tensor);
        _exit(code);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    MUST(ds_accel_tensor_zero(tensor, NULL));
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

/* ---- DLPack --------------------------------------------------------------------------------- */

/* As the specification has it; Debian's header is older. */
struct versioned {
    uint32_t major;
    uint32_t minor;
    void *manager_ctx;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
};

Test(core_tensor, exports_and_imports_both_structures_of_dlpack)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    struct ds_accel_tensor_info info;
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *turned;
    ds_accel_tensor_t *back;
    struct versioned *versioned;
    DLManagedTensor *plain;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_BFLOAT16, 2, SHAPE(3, 5), &tensor));
    MUST(ds_accel_tensor_transpose(tensor, 0, 1, &turned));
    MUST(ds_accel_tensor_to_dlpack(turned, 0, 0, &managed));
    plain = managed;
    cr_expect_eq(plain->dl_tensor.data, info_of(tensor).data);
    cr_expect_eq(plain->dl_tensor.device.device_type, kDLCPU, "the host reaches a mock's memory");
    cr_expect_eq(plain->dl_tensor.dtype.code, kDLBfloat);
    cr_expect_eq(plain->dl_tensor.dtype.bits, 16);
    cr_expect_eq(plain->dl_tensor.dtype.lanes, 1);
    cr_expect_eq(plain->dl_tensor.ndim, 2);
    cr_expect_arr_eq(plain->dl_tensor.shape, SHAPE(5, 3), 16);
    cr_expect_arr_eq(plain->dl_tensor.strides, SHAPE(1, 5), 16);
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    info = info_of(back);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_DEVICE, "found to be the device's own");
    cr_expect_eq(info.device, device);
    cr_expect_eq(info.data, info_of(tensor).data);
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(turned);
    MUST(ds_accel_tensor_zero(back, NULL));

    MUST(ds_accel_tensor_to_dlpack(back, DS_ACCEL_DLPACK_VERSIONED, -1, &managed));
    versioned = managed;
    cr_expect_eq(versioned->major, 1);
    cr_expect_eq(versioned->flags, 0);
    versioned->flags = 1; /* read-only */
    ds_accel_tensor_put(back);
    MUST(ds_accel_tensor_from_dlpack(NULL, managed, 1, &tensor));
    info = info_of(tensor);
    cr_expect_eq(info.place, DS_ACCEL_PLACE_HOST, "without a context");
    cr_expect_eq(info.flags, DS_ACCEL_TENSOR_READ_ONLY);
    EXPECT_REFUSED(ds_accel_tensor_zero(tensor, NULL), DS_ACCEL_ERR_INVALID, "read-only");
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed), DS_ACCEL_ERR_UNSUPPORTED,
                   "read-only");
    MUST(ds_accel_tensor_to_dlpack(tensor, DS_ACCEL_DLPACK_VERSIONED, 0, &managed));
    versioned = managed;
    cr_expect_eq(versioned->flags, 1);
    versioned->deleter(versioned);
    MUST(ds_accel_tensor_to_dlpack(tensor, DS_ACCEL_DLPACK_COPY | DS_ACCEL_DLPACK_VERSIONED, 0,
                                   &managed));
    versioned = managed;
    cr_expect_eq(versioned->flags, 2);
    cr_expect_neq(versioned->dl_tensor.data, info.data);
    MUST(ds_accel_tensor_from_dlpack(NULL, managed, 1, &back));
    cr_expect_eq(info_of(back).flags, DS_ACCEL_TENSOR_COPIED | DS_ACCEL_TENSOR_CONTIGUOUS);
    ds_accel_tensor_put(back);
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
    EXPECT_REFUSED(ds_accel_device_synchronize(device), DS_ACCEL_ERR_INVALID, "destroyed");
}

/* An element of 16 bytes in each way that elements are moved, and both parts of a value. */
Test(core_tensor, holds_complex_numbers)
{
    static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_COMPLEX32, DS_ACCEL_DTYPE_COMPLEX64,
                                      DS_ACCEL_DTYPE_COMPLEX128};
    static const char *const accelerators[] = {"mock", "cpu"};
    unsigned char value[16];
    unsigned char wanted[6 * 16];
    unsigned char zero[6 * 16] = {0};

    for (size_t i = 0; i < sizeof(value); i++) {
        value[i] = (unsigned char)(i + 1);
    }
    for (size_t run = 0; run < 6; run++) {
        ds_accel_device_t *device;
        ds_accel_t *context = test_start(accelerators[run % 2], &device);
        uint32_t dtype = dtypes[run / 2];
        const size_t bytes = 4u << (run / 2);
        ds_accel_rng_t *rng = NULL;
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *turned;
        ds_accel_tensor_t *whole;
        ds_accel_tensor_t *host;

        for (size_t i = 0; i < 6; i++) {
            memcpy(wanted + i * bytes, value, bytes);
        }
        MUST(ds_accel_tensor_create(device, dtype, 2, SHAPE(2, 3), &tensor));
        cr_expect_eq(info_of(tensor).element_bytes, bytes);
        MUST(ds_accel_tensor_fill(tensor, value, NULL));
        MUST(ds_accel_tensor_transpose(tensor, 0, 1, &turned));
        MUST(ds_accel_tensor_contiguous(turned, NULL, &whole));
        cr_expect_neq(info_of(whole).data, info_of(tensor).data);
        MUST(ds_accel_tensor_create_host(dtype, 2, SHAPE(3, 2), &host));
        MUST(ds_accel_tensor_copy(host, whole, NULL));
        MUST(ds_accel_device_synchronize(device));
        cr_expect_arr_eq(info_of(host).data, wanted, 6 * bytes);
        MUST(ds_accel_tensor_zero(turned, NULL));
        MUST(ds_accel_tensor_copy(host, turned, NULL));
        MUST(ds_accel_device_synchronize(device));
        cr_expect_arr_eq(info_of(host).data, zero, 6 * bytes);
        MUST(ds_accel_rng_create(device, 0, 0, &rng));
        EXPECT_STATUS(ds_accel_rng_uniform(rng, NULL, info_of(tensor).data, 6, dtype, 0, 1),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_rng_normal(rng, NULL, info_of(tensor).data, 6, dtype, 0, 1),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, info_of(tensor).data, 6, dtype),
                      DS_ACCEL_ERR_INVALID);
        ds_accel_rng_destroy(rng);
        ds_accel_tensor_put(host);
        ds_accel_tensor_put(whole);
        ds_accel_tensor_put(turned);
        ds_accel_tensor_put(tensor);
        test_finish(context, device);
    }
}

Test(core_tensor, maps_every_dtype_to_dlpack_and_back)
{
    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT32; dtype <= DS_ACCEL_DTYPE_COMPLEX128; dtype++) {
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *back;
        void *managed = NULL;
        bool is_new = dtype >= DS_ACCEL_DTYPE_FLOAT8_E4M3FN &&
                      dtype <= DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ;

        MUST(ds_accel_tensor_create_host(dtype, 1, SHAPE(2), &tensor));
        if (is_new) {
            EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed),
                           DS_ACCEL_ERR_UNSUPPORTED, "dtype");
        }
        MUST(
            ds_accel_tensor_to_dlpack(tensor, is_new ? DS_ACCEL_DLPACK_VERSIONED : 0, 0, &managed));
        MUST(ds_accel_tensor_from_dlpack(NULL, managed, is_new, &back));
        cr_expect_eq(info_of(back).dtype, dtype);
        cr_expect_eq(info_of(back).data, info_of(tensor).data);
        ds_accel_tensor_put(back);
        ds_accel_tensor_put(tensor);
    }
}

static int plain_deletions;

static void delete_plain(DLManagedTensor *self)
{
    (void)self;
    plain_deletions++;
}

Test(core_tensor, refuses_what_it_cannot_take_and_leaves_it_alone)
{
    static float memory[6];
    int64_t shape[] = {2, 3};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    DLManagedTensor plain = {.dl_tensor = {.data = memory,
                                           .device = {kDLCPU, 0},
                                           .ndim = 2,
                                           .dtype = {kDLFloat, 32, 1},
                                           .shape = shape,
                                           .byte_offset = 4},
                             .deleter = delete_plain};
    DLManagedTensor bad = plain;
    struct versioned future = {.major = 2};
    ds_accel_tensor_t *tensor = NULL;

    bad.dl_tensor.dtype.lanes = 4;
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_UNSUPPORTED,
                   "4 lanes");
    bad = plain;
    bad.dl_tensor.dtype = (DLDataType){kDLUInt, 32, 1};
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_UNSUPPORTED);
    bad = plain;
    bad.dl_tensor.device.device_type = kDLCUDA;
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID,
                   "accelerator in use");
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(NULL, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID,
                   "without a context");
    bad = plain;
    bad.dl_tensor.ndim = -1;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad.dl_tensor.ndim = 40;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad = plain;
    bad.dl_tensor.shape = NULL;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    bad = plain;
    bad.dl_tensor.data = NULL;
    bad.dl_tensor.byte_offset = 0;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &bad, 0, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_REFUSED(ds_accel_tensor_from_dlpack(context, &future, 1, &tensor), DS_ACCEL_ERR_ABI,
                   "2.0");
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, NULL, 0, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &plain, 2, &tensor), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, &plain, 0, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_null(tensor);
    cr_expect_eq(plain_deletions, 0);
    MUST(ds_accel_tensor_from_dlpack(context, &plain, 0, &tensor));
    cr_expect_eq(info_of(tensor).data, memory + 1);
    cr_expect_arr_eq(info_of(tensor).strides, SHAPE(3, 1), 16);
    cr_expect_eq(info_of(tensor).place, DS_ACCEL_PLACE_HOST);
    ds_accel_tensor_put(tensor);
    cr_expect_eq(plain_deletions, 1);
    plain.deleter = NULL;
    MUST(ds_accel_tensor_from_dlpack(context, &plain, 0, &tensor));
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

static DLDevice exported_as(ds_accel_tensor_t *tensor)
{
    void *managed = NULL;
    DLManagedTensor *plain;
    DLDevice device;

    MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
    plain = managed;
    device = plain->dl_tensor.device;
    plain->deleter(plain);
    return device;
}

/* The mock under the names of others. */
Test(core_tensor, tells_dlpack_which_device_it_is)
{
    static const struct {
        const char *name;
        int device_type;
        int pinned_type;
    } backends[] = {{"cuda", 2, 3}, {"rocm", 10, 11}, {"xpu", 14, 1}, {"xpu.external", 14, 1},
                    {"mps", 8, 1},  {"npu", 1, 1},    {"mock", 1, 1}};

    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        ds_accel_device_t *first;
        ds_accel_device_t *device;
        ds_accel_t *context;
        ds_accel_tensor_t *tensor;
        ds_accel_tensor_t *back;
        DLDevice theirs;
        void *managed = NULL;

        if (strcmp(backends[i].name, "mock") != 0) {
            test_add_mock(backends[i].name);
        }
        context = test_start(backends[i].name, &first);
        MUST(ds_accel_device_open(context, 1, &device));
        MUST(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_INT8, 0, NULL, 1, &tensor));
        theirs = exported_as(tensor);
        cr_expect_eq((int)theirs.device_type, backends[i].pinned_type, "%s", backends[i].name);
        ds_accel_tensor_put(tensor);
        MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 0, NULL, &tensor));
        theirs = exported_as(tensor);
        cr_expect_eq((int)theirs.device_type, backends[i].device_type, "%s", backends[i].name);
        cr_expect_eq(theirs.device_id, backends[i].device_type == kDLCPU ? 0 : 1);
        MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
        MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
        cr_expect_eq(info_of(back).device, device, "%s", backends[i].name);
        ds_accel_tensor_put(back);
        ds_accel_tensor_put(tensor);
        ds_accel_device_close(device);
        test_finish(context, first);
    }
}

Test(core_tensor, orders_a_consumers_stream_behind_ours)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *ours;
    ds_accel_stream_t *theirs;
    ds_accel_stream_t *standard;
    ds_accel_tensor_t *tensor;
    DLManagedTensor *plain;
    void *managed = NULL;
    uint64_t native = 0;

    /* A fill takes half a second there, by its clock. */
    setenv("DS_ACCEL_CUDA_COPY_LATENCY_NS", "500000000", 1);
    test_add_mock("cuda");
    context = test_start("cuda", &device);
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &ours));
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &theirs));
    MUST(ds_accel_stream_native(theirs, &native));
    MUST(ds_accel_default_stream(device, &standard));
    MUST(ds_accel_set_current_stream(ours));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(64), &tensor));
    MUST(ds_accel_tensor_zero(tensor, NULL));
    EXPECT_STATUS(ds_accel_stream_query(ours), DS_ACCEL_NOT_READY);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_NO_STREAM, &managed));
    EXPECT_STATUS(ds_accel_stream_query(theirs), DS_ACCEL_OK);
    plain = managed;
    plain->deleter(plain);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, (int64_t)native, &managed));
    EXPECT_STATUS(ds_accel_stream_query(theirs), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_stream_query(standard), DS_ACCEL_OK);
    plain = managed;
    plain->deleter(plain);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_DEFAULT_STREAM, &managed));
    EXPECT_STATUS(ds_accel_stream_query(standard), DS_ACCEL_NOT_READY);
    plain = managed;
    plain->deleter(plain);
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, -2, &managed), DS_ACCEL_ERR_INVALID,
                   "stream -2");
    EXPECT_REFUSED(ds_accel_tensor_to_dlpack(tensor, 4, 0, &managed), DS_ACCEL_ERR_INVALID,
                   "flags");
    ds_accel_tensor_put(tensor);
    test_finish(context, device);
}

Test(core_tensor, is_an_extension_device_where_the_host_cannot_reach)
{
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *back;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(3), &tensor));
    cr_expect_eq(exported_as(tensor).device_type, kDLExtDev);
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, 0, &managed));
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(NULL, managed, 0, &back), DS_ACCEL_ERR_INVALID);
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    cr_expect_eq(info_of(back).device, device);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    ds_accel_tensor_put(tensor);
    MUST(ds_accel_tensor_zero(back, NULL));
    ds_accel_tensor_put(back);
}

Test(core_tensor, is_an_object_and_an_offset_for_opencl)
{
    ds_accel_device_t *device;
    ds_accel_t *context = far_start_opencl(&device);
    struct ds_accel_tensor_info info;
    ds_accel_tensor_t *whole;
    ds_accel_tensor_t *part;
    ds_accel_tensor_t *back;
    DLManagedTensor *plain;
    void *managed = NULL;

    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT32, 1, SHAPE(10), &whole));
    MUST(ds_accel_tensor_slice(whole, 0, 3, 8, 1, &part));
    info = info_of(part);
    MUST(ds_accel_tensor_to_dlpack(part, 0, 0, &managed));
    plain = managed;
    cr_expect_eq(plain->dl_tensor.device.device_type, kDLOpenCL);
    cr_expect_eq((uintptr_t)plain->dl_tensor.data, (uintptr_t)info.storage ^ FAR_OBJECT_BITS);
    cr_expect_eq(plain->dl_tensor.byte_offset, 12);
    plain->dl_tensor.dtype.lanes = 2;
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, managed, 0, &back),
                  DS_ACCEL_ERR_UNSUPPORTED);
    plain->dl_tensor.dtype.lanes = 1;
    plain->dl_tensor.ndim = 33; /* found to be wrong after the object was wrapped */
    EXPECT_STATUS(ds_accel_tensor_from_dlpack(context, managed, 0, &back), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(far_wrapped_count, 0);
    plain->dl_tensor.ndim = 1;
    MUST(ds_accel_tensor_from_dlpack(context, managed, 0, &back));
    cr_expect_eq(far_wrapped_count, 1);
    cr_expect_eq(info_of(back).data, info.data);
    ds_accel_tensor_put(part);
    ds_accel_tensor_put(whole);
    ds_accel_tensor_put(back);
    cr_expect_eq(far_wrapped_count, 0);
    test_finish(context, device);
}

/* Nobody had asked for the default stream before. */
Test(core_tensor, is_exported_to_a_default_stream_that_was_never_used)
{
    const int64_t shape = 16;
    ds_accel_device_t *device;
    ds_accel_t *context = far_start(&device);
    ds_accel_stream_t *stream = NULL;
    ds_accel_tensor_t *tensor = NULL;
    void *managed = NULL;

    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_set_current_stream(stream));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &tensor));
    MUST(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_DEFAULT_STREAM, &managed));
    ((DLManagedTensor *)managed)->deleter(managed);
    ds_accel_tensor_put(tensor);
    ds_accel_stream_destroy(stream);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}
