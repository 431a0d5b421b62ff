/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Results of shm_comm against ones computed here: integers exactly, floats in double. A float sum
 * of n numbers, added one by one, differs by at most (n - 1) * 2^-24 times the sum of their
 * magnitudes. The 16-bit numbers below have so few digits that float adds them exactly, so a result
 * differs by at most half a unit of its last digit.
 */
#ifndef TESTS_OPS_SHM_COMM_RESULTS_H
#define TESTS_OPS_SHM_COMM_RESULTS_H

#include "ops/shm_comm_ranks.h"

#include <math.h>

enum kind {
    ALL_REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    KINDS
};

/* How arrays lie in memory. */
enum variant {
    PRIVATE,
    REGISTERED,
    IN_PLACE,
    REGISTERED_IN_PLACE,
    MISALIGNED,
    REGISTERED_IN,
    REGISTERED_OUT,
    SOME_REGISTERED, /* of ranks with odd numbers */
    VARIANTS
};

static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_DTYPE_BFLOAT16,
                                  DS_ACCEL_DTYPE_FLOAT16, DS_ACCEL_DTYPE_INT32,
                                  DS_ACCEL_DTYPE_INT64};

struct test_case {
    enum kind kind;
    uint32_t dtype;
    uint32_t reduction;
    uint32_t root;
    size_t count;
    uint64_t seed;
};

#define GUARD 64 /* bytes around outputs */

struct arrays {
    uint32_t rank;
    uint32_t size;
    ds_accel_comm_t *comm;
    size_t bytes; /* of each */
    char *private_in;
    char *private_out;
    char *registered_in;
    char *registered_out;
};

static size_t element_bytes(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_INT64                                      ? 8
           : dtype == DS_ACCEL_DTYPE_FLOAT32 || dtype == DS_ACCEL_DTYPE_INT32 ? 4
                                                                              : 2;
}

static bool is_float(uint32_t dtype)
{
    return dtype != DS_ACCEL_DTYPE_INT32 && dtype != DS_ACCEL_DTYPE_INT64;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

static uint64_t random_of(const struct test_case *test, uint32_t rank, size_t index)
{
    return mix(test->seed * 0x9e3779b97f4a7c15u + ((uint64_t)rank << 40) + index);
}

/* An input of a float type. Cases with odd seeds have some NaN. */
static double input_float(const struct test_case *test, uint32_t rank, size_t index)
{
    uint64_t random = random_of(test, rank, index);

    if ((test->seed & 1) != 0 && random >> 54 == 0)
        return (double)NAN;
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
    memcpy(&bits, &number, sizeof(bits));
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT32) {
        memcpy(to, &number, sizeof(number));
        return;
    }
    half = (uint16_t)(bits >> 16);
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT16)
        half = number != number ? 0x7E00
               : number == 0
                   ? 0
                   : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xFF) - 112) << 10) |
                                (bits >> 13 & 0x3FF));
    memcpy(to, &half, sizeof(half));
}

static double read_float(uint32_t dtype, const char *from)
{
    uint32_t bits = 0;
    uint16_t half;
    float number;

    if (dtype == DS_ACCEL_DTYPE_FLOAT32) {
        memcpy(&number, from, sizeof(number));
        return (double)number;
    }
    memcpy(&half, from, sizeof(half));
    if (dtype == DS_ACCEL_DTYPE_FLOAT16) {
        double magnitude = (half & 0x7C00) == 0x7C00 ? (half & 0x3FF ? (double)NAN : HUGE_VAL)
                           : half & 0x7C00 ? ldexp((half & 0x3FF) + 1024, (half >> 10 & 0x1F) - 25)
                                           : ldexp(half & 0x3FF, -24);

        return half & 0x8000 ? -magnitude : magnitude;
    }
    bits = (uint32_t)half << 16;
    memcpy(&number, &bits, sizeof(number));
    return (double)number;
}

static int64_t signed_of(uint32_t dtype, uint64_t bits)
{
    return dtype == DS_ACCEL_DTYPE_INT32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

/* ---- expected elements ----------------------------------------------------------------------- */

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
    bool is_nan = isnan(wanted);

    for (uint32_t rank = 1; rank < size; rank++) {
        double more = input_float(test, rank, index);

        is_nan = is_nan || isnan(more);
        magnitudes += fabs(more);
        if (test->reduction == DS_ACCEL_COMM_SUM)
            wanted += more;
        else
            wanted = test->reduction == DS_ACCEL_COMM_MIN ? fmin(wanted, more) : fmax(wanted, more);
    }
    if (is_nan)
        return isnan(got);
    if (test->reduction != DS_ACCEL_COMM_SUM)
        return got == wanted;
    if (test->dtype == DS_ACCEL_DTYPE_FLOAT32)
        return fabs(got - wanted) <= (size - 1) * 0x1p-24 * magnitudes;
    return fabs(got - wanted) <=
           (test->dtype == DS_ACCEL_DTYPE_FLOAT16 ? 0x1p-11 : 0x1p-8) * fabs(wanted);
}

static bool element_is_right(const struct test_case *test, const struct arrays *arrays,
                             size_t index, const char *result)
{
    char copy[8];

    switch (test->kind) {
    case ALL_GATHER:
        write_input(test, (uint32_t)(index / test->count), index % test->count, copy);
        return memcmp(copy, result, element_bytes(test->dtype)) == 0;
    case BROADCAST:
        write_input(test, test->root, index, copy);
        return memcmp(copy, result, element_bytes(test->dtype)) == 0;
    default:
        if (test->kind == REDUCE_SCATTER)
            index += test->count * arrays->rank;
        return is_float(test->dtype) ? float_is_right(test, arrays->size, index, result)
                                     : integer_is_right(test, arrays->size, index, result);
    }
}

/* ---- one call -------------------------------------------------------------------------------- */

static size_t in_count(const struct test_case *test, uint32_t size)
{
    return test->kind == REDUCE_SCATTER ? test->count * size : test->count;
}

static size_t out_count(const struct test_case *test, uint32_t size)
{
    return test->kind == ALL_GATHER ? test->count * size : test->count;
}

/* Choose the arrays of a variant. */
static void place(const struct test_case *test, const struct arrays *arrays, enum variant variant,
                  char **in, char **out)
{
    size_t part = test->count * element_bytes(test->dtype) * arrays->rank;
    bool odd = variant == SOME_REGISTERED && (arrays->rank & 1) != 0;
    bool in_registered = variant == REGISTERED || variant == REGISTERED_IN ||
                         variant == REGISTERED_IN_PLACE || odd;
    bool out_registered = variant == REGISTERED || variant == REGISTERED_OUT ||
                          variant == REGISTERED_IN_PLACE || odd;

    *in = (in_registered ? arrays->registered_in : arrays->private_in) + GUARD;
    *out = (out_registered ? arrays->registered_out : arrays->private_out) + GUARD;
    if (variant == MISALIGNED) {
        *in += 1 + arrays->rank % 7;
        *out += 3 + arrays->rank % 5;
    }
    if (variant != IN_PLACE && variant != REGISTERED_IN_PLACE)
        return;
    if (test->kind == ALL_GATHER)
        *in = *out + part;
    else if (test->kind == REDUCE_SCATTER)
        *out = *in + part;
    else
        *out = *in;
}

static uint64_t hash_of(const char *bytes, size_t count)
{
    uint64_t hash = 1469598103934665603u;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash;
}

static bool guards_are_whole(const char *out, size_t bytes)
{
    for (size_t i = 1; i <= GUARD / 2; i++)
        if (out[-(ptrdiff_t)i] != 0x5A || out[bytes + i - 1] != 0x5A)
            return false;
    return true;
}

static int32_t call_kind(const struct test_case *test, ds_accel_comm_t *comm, const void *in,
                         void *out, struct ds_accel_error *error)
{
    struct ds_accel_comm_call call = make_call(test->dtype, test->reduction, in, out, test->count);

    call.root = test->root;
    switch (test->kind) {
    case ALL_REDUCE:
        return shm->all_reduce(comm, &call, error);
    case REDUCE_SCATTER:
        return shm->reduce_scatter(comm, &call, error);
    case ALL_GATHER:
        return shm->all_gather(comm, &call, error);
    default:
        return shm->broadcast(comm, &call, error);
    }
}

static void fill_input(const struct test_case *test, const struct arrays *arrays, char *in)
{
    size_t count = in_count(test, arrays->size);
    size_t element = element_bytes(test->dtype);

    for (size_t i = 0; i < count; i++)
        write_input(test, arrays->rank, i, in + i * element);
}

/* Check the elements, all of a short array; return the hash of its bits. */
static uint64_t check_output(const struct test_case *test, const struct arrays *arrays,
                             enum variant variant, const char *out)
{
    size_t count = out_count(test, arrays->size);
    size_t element = element_bytes(test->dtype);
    size_t step = count > 4096 ? count / 1024 | 1 : 1;
    size_t wrong = 0;

    for (size_t i = 0; i < count; i += step)
        wrong += !element_is_right(test, arrays, i, out + i * element);
    wrong += !element_is_right(test, arrays, count - 1, out + (count - 1) * element);
    CHECK(wrong == 0, "rank %u of %u: kind %d, dtype %u, reduction %u, count %zu, variant %d",
          arrays->rank, arrays->size, (int)test->kind, test->dtype, test->reduction, test->count,
          (int)variant);
    return hash_of(out, count * element);
}

/* All ranks have the same bits, apart from reduce_scatter(). */
static void compare_ranks(const struct test_case *test, const struct arrays *arrays, uint64_t hash)
{
    uint64_t hashes[MOST_RANKS];
    struct ds_accel_comm_call call = make_call(DS_ACCEL_DTYPE_INT64, 0, &hash, hashes, 1);

    CHECK(shm->all_gather(arrays->comm, &call, NULL) == DS_ACCEL_OK, "all_gather");
    for (uint32_t rank = 0; rank < arrays->size; rank++)
        CHECK(hashes[rank] == hash || test->kind == REDUCE_SCATTER,
              "ranks %u and %u have different bits: kind %d, dtype %u, count %zu", rank,
              arrays->rank, (int)test->kind, test->dtype, test->count);
}

static uint64_t run_case(const struct test_case *test, const struct arrays *arrays,
                         enum variant variant)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    size_t in_bytes = in_count(test, arrays->size) * element_bytes(test->dtype);
    size_t out_bytes = out_count(test, arrays->size) * element_bytes(test->dtype);
    bool receives = test->kind != BROADCAST || test->root != arrays->rank;
    uint64_t before;
    uint64_t hash;
    int32_t status;
    char *in;
    char *out;

    place(test, arrays, variant, &in, &out);
    /* With registered outputs, a rank may be written to as soon as it takes part. */
    memset(out - GUARD / 2, 0x5A, out_bytes + GUARD);
    fill_input(test, arrays, in);
    before = hash_of(in, in_bytes);
    status = call_kind(test, arrays->comm, in, out, &error);
    CHECK(status == DS_ACCEL_OK, "rank %u: %s", arrays->rank, error.message);
    if (status != DS_ACCEL_OK || test->count == 0)
        return 0;
    hash = check_output(test, arrays, variant, receives ? out : in);
    if (variant != IN_PLACE && variant != REGISTERED_IN_PLACE) {
        CHECK(hash_of(in, in_bytes) == before, "the input was changed");
        CHECK(!receives || guards_are_whole(out, out_bytes), "bytes around the output changed");
    }
    compare_ranks(test, arrays, hash);
    return hash;
}

#endif
