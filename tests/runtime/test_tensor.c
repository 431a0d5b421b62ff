/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tensors: shapes, views and lifetimes. */
#include "tensor.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

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
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer kills the process instead */
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
    /* indices 1 and 3 of whole's last dimension */
    MUST(ds_accel_tensor_slice(turned, 0, 1, 4, 2, &part));
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
    /* A view that runs backwards, takes every second element, and starts inside the memory. */
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

/* A reshape keeps the order of the elements, or fails. */
Test(core_tensor, reshapes_whatever_strides_allow)
{
    static const struct {
        int64_t from[4];
        int64_t to[4];
        uint32_t from_ndim;
        uint32_t to_ndim;
        uint32_t swapped[2]; /* dimensions of the 4 x 6 x 5 tensor to swap; equal: none */
        bool is_possible;
    } cases[] = {
        {{4, 6, 5}, {120}, 3, 1, {0, 0}, true},
        {{4, 6, 5}, {2, 2, 3, 10}, 3, 4, {0, 0}, true},
        {{6, 4, 5}, {2, 3, 4, 5}, 3, 4, {0, 1}, true},
        {{6, 4, 5}, {6, 20}, 3, 2, {0, 1}, false},
        {{6, 4, 5}, {24, 5}, 3, 2, {0, 1}, false},
        {{6, 4, 5}, {6, 1, 2, 10}, 3, 4, {0, 1}, false},
        {{6, 4, 5}, {6, 1, 2, 2}, 3, 4, {0, 1}, false}, /* 24 elements: wrong number */
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
