/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/ccl_comm_results.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

const struct ds_accel_ccl_comm *ccl;

const uint32_t dtypes[DTYPES] = {DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_DTYPE_BFLOAT16,
                                 DS_ACCEL_DTYPE_FLOAT16, DS_ACCEL_DTYPE_INT32,
                                 DS_ACCEL_DTYPE_INT64};

#define GUARD 64 /* bytes around outputs */

uint64_t mix(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static uint64_t random_of(const struct test_case *test, uint32_t rank, size_t index)
{
    return mix(test->seed * 0x9e3779b97f4a7c15u + ((uint64_t)rank << 40) + index);
}

static size_t element_bytes(uint32_t dtype)
{
    if (dtype == DS_ACCEL_DTYPE_INT64)
        return 8;
    return dtype == DS_ACCEL_DTYPE_FLOAT32 || dtype == DS_ACCEL_DTYPE_INT32 ? 4 : 2;
}

static bool is_float(uint32_t dtype)
{
    return dtype != DS_ACCEL_DTYPE_INT32 && dtype != DS_ACCEL_DTYPE_INT64;
}

/* ---- elements -------------------------------------------------------------------------------- */

static double input_float(const struct test_case *test, uint32_t rank, size_t index)
{
    uint64_t random = random_of(test, rank, index);

    switch (test->dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
        return ((double)(random & 0xFFFFFF) - 0x800000) / 0x100000;
    case DS_ACCEL_DTYPE_FLOAT16:
        return ((double)(random & 0x7FF) - 1024) / 64;
    default:
        return ((double)(random & 0xFF) - 128) / 16;
    }
}

static void write_input(const struct test_case *test, uint32_t rank, size_t index, char *to)
{
    uint64_t random = random_of(test, rank, index);
    uint32_t bits;
    uint16_t half;
    float number;

    if (!is_float(test->dtype)) {
        memcpy(to, &random, element_bytes(test->dtype)); /* the lower part: little-endian */
        return;
    }
    number = (float)input_float(test, rank, index);
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT32) {
        memcpy(to, &number, sizeof(number));
        return;
    }
    memcpy(&bits, &number, sizeof(bits));
    half = (uint16_t)(bits >> 16);
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT16)
        half = number == 0 ? 0
                           : (uint16_t)((bits >> 16 & 0x8000) |
                                        (((bits >> 23 & 0xFF) - 112) << 10) | (bits >> 13 & 0x3FF));
    memcpy(to, &half, sizeof(half));
}

static double read_float(uint32_t dtype, const char *from)
{
    uint32_t bits;
    uint16_t half;
    float number;
    double magnitude;

    if (dtype == DS_ACCEL_DTYPE_FLOAT32) {
        memcpy(&number, from, sizeof(number));
        return (double)number;
    }
    memcpy(&half, from, sizeof(half));
    if (dtype == DS_ACCEL_DTYPE_BFLOAT16) {
        bits = (uint32_t)half << 16;
        memcpy(&number, &bits, sizeof(number));
        return (double)number;
    }
    if ((half & 0x7C00) == 0x7C00)
        return (double)NAN;
    magnitude = half & 0x7C00 ? ldexp((half & 0x3FF) + 1024, (half >> 10 & 0x1F) - 25)
                              : ldexp(half & 0x3FF, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static int64_t signed_of(uint32_t dtype, uint64_t bits)
{
    return dtype == DS_ACCEL_DTYPE_INT32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static bool integer_is_right(const struct test_case *test, uint32_t size, size_t index,
                             const char *result)
{
    uint64_t got = 0;
    int64_t wanted = signed_of(test->dtype, random_of(test, 0, index));

    memcpy(&got, result, element_bytes(test->dtype));
    for (uint32_t rank = 1; rank < size; rank++) {
        int64_t more = signed_of(test->dtype, random_of(test, rank, index));

        if (test->reduction == DS_ACCEL_COMM_SUM)
            wanted = signed_of(test->dtype, (uint64_t)wanted + (uint64_t)more);
        else if ((test->reduction == DS_ACCEL_COMM_MIN) == (more < wanted))
            wanted = more;
    }
    return signed_of(test->dtype, got) == wanted;
}

static bool float_is_right(const struct test_case *test, uint32_t size, size_t index,
                           const char *result)
{
    double got = read_float(test->dtype, result);
    double wanted = input_float(test, 0, index);
    double magnitudes = fabs(wanted);

    for (uint32_t rank = 1; rank < size; rank++) {
        double more = input_float(test, rank, index);

        magnitudes += fabs(more);
        if (test->reduction == DS_ACCEL_COMM_SUM)
            wanted += more;
        else
            wanted = test->reduction == DS_ACCEL_COMM_MIN ? fmin(wanted, more) : fmax(wanted, more);
    }
    if (test->reduction != DS_ACCEL_COMM_SUM)
        return got == wanted;
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT32)
        return fabs(got - wanted) <= (size - 1) * 0x1p-24 * magnitudes;
    return fabs(got - wanted) <=
           (test->dtype == DS_ACCEL_DTYPE_FLOAT16 ? 0x1p-11 : 0x1p-8) * fabs(wanted);
}

static bool element_is_right(const struct test_case *test,
                             const struct ds_accel_ccl_comm_info *info, size_t index,
                             const char *result)
{
    char copy[8];

    assert(test->count > 0);
    switch (test->kind) {
    case ALL_GATHER:
        write_input(test, (uint32_t)(index / test->count), index % test->count, copy);
        return memcmp(copy, result, element_bytes(test->dtype)) == 0;
    case BROADCAST:
        write_input(test, test->root, index, copy);
        return memcmp(copy, result, element_bytes(test->dtype)) == 0;
    default:
        if (test->kind == REDUCE_SCATTER)
            index += test->count * info->rank;
        return is_float(test->dtype) ? float_is_right(test, info->size, index, result)
                                     : integer_is_right(test, info->size, index, result);
    }
}

/* ---- a call ---------------------------------------------------------------------------------- */

static int32_t call_op(ds_accel_comm_t *comm, enum kind kind, const struct ds_accel_comm_call *call,
                       struct ds_accel_error *error)
{
    switch (kind) {
    case ALL_REDUCE:
        return ccl->all_reduce(comm, call, error);
    case REDUCE_SCATTER:
        return ccl->reduce_scatter(comm, call, error);
    case ALL_GATHER:
        return ccl->all_gather(comm, call, error);
    default:
        return ccl->broadcast(comm, call, error);
    }
}

/* A digest of results that all ranks share, compared with that of rank 0. */
static void compare_bits(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
                         const char *out, size_t bytes)
{
    int64_t own = 0;
    int64_t all[64] = {0};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_INT64,
        .in = &own,
        .out = all,
        .count = 1,
    };

    for (size_t i = 0; i < bytes; i++)
        own = (int64_t)mix((uint64_t)own + (unsigned char)out[i] + 1);
    CHECK(ccl->all_gather(comm, &call, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(own == all[0], "rank %u has other bits than rank 0", info->rank);
}

void run_case(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
              const struct test_case *test)
{
    size_t element = element_bytes(test->dtype);
    size_t in_count = test->count * (test->kind == REDUCE_SCATTER ? info->size : 1);
    size_t out_count = test->count * (test->kind == ALL_GATHER ? info->size : 1);
    size_t most = (in_count > out_count ? in_count : out_count) * element;
    bool sends = test->kind == BROADCAST && test->root == info->rank;
    bool in_place = (test->seed & 4) != 0;
    char *memory = (char *)malloc(most + 2 * GUARD);
    char *input = (char *)malloc(most + GUARD);
    char *out = memory + GUARD;
    char *in = input + test->seed % 3;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = test->dtype,
        .reduction = test->reduction,
        .root = test->root,
        .count = test->count,
    };
    size_t wrong = 0;

    memset(memory, 0x5A, most + 2 * GUARD);
    if (in_place && test->kind != REDUCE_SCATTER)
        in = test->kind == ALL_GATHER ? out + test->count * element * info->rank : out;
    if (in_place && test->kind == REDUCE_SCATTER) {
        in = out;
        out = in + test->count * element * info->rank;
    }
    for (size_t i = 0; i < in_count; i++)
        write_input(test, info->rank, i, in + i * element);
    call.in = in;
    call.out = out;
    CHECK(call_op(comm, test->kind, &call, &error) == DS_ACCEL_OK, "%s", error.message);
    for (size_t i = 0; i < out_count && !sends; i++)
        wrong += !element_is_right(test, info, i, out + i * element);
    CHECK(wrong == 0, "kind %d, dtype %u, reduction %u, count %zu: %zu elements are wrong",
          (int)test->kind, test->dtype, test->reduction, test->count, wrong);
    for (size_t i = 0; i < GUARD; i++)
        wrong += memory[i] != 0x5A || memory[most + GUARD + i] != 0x5A;
    CHECK(wrong == 0, "kind %d: bytes around out were written", (int)test->kind);
    if (test->kind == ALL_REDUCE)
        compare_bits(comm, info, out, out_count * element);
    free(memory);
    free(input);
}
