/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The reductions in one instruction set. The including file defines OPS_VECTOR_<SET> and SET, the
 * end of the function's name. */
#include "common/vector.h"
#include "reduce.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

OPS__INLINED vf combine(vf a, vf b, uint32_t op)
{
    return op == DS_ACCEL_COMM_SUM   ? vf_add(a, b)
           : op == DS_ACCEL_COMM_MIN ? vf_min(a, b)
                                     : vf_max(a, b);
}

OPS__INLINED vf load(const void *from, uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT32   ? vf_load(from)
           : dtype == DS_ACCEL_DTYPE_FLOAT16 ? vf_load_half(from)
                                             : vf_load_bfloat(from);
}

OPS__INLINED void store_pair(char *to, vf first, vf second, uint32_t dtype)
{
    if (dtype == DS_ACCEL_DTYPE_BFLOAT16) {
        vf_store_bfloat_pair(to, first, second);
    } else if (dtype == DS_ACCEL_DTYPE_FLOAT16) {
        vf_store_half(to, first);
        vf_store_half(to + vf_lanes() * 2, second);
    } else {
        vf_store(to, first);
        vf_store(to + vf_lanes() * 4, second);
    }
}

/* Reduce two vectors in a row, at an offset in bytes. */
OPS__INLINED void reduce_pair(const struct ops__reduction *work, size_t in_count, size_t at,
                              size_t bytes, uint32_t dtype, uint32_t op)
{
    vf first = load(work->in[0] + at, dtype);
    vf second = load(work->in[0] + at + vf_lanes() * bytes, dtype);

    for (size_t i = 1; i < in_count; i++) {
        first = combine(first, load(work->in[i] + at, dtype), op);
        second = combine(second, load(work->in[i] + at + vf_lanes() * bytes, dtype), op);
    }
    for (size_t i = 0; i < work->out_count; i++)
        store_pair(work->out[i] + at, first, second, dtype);
}

/* Reduce the last elements, fewer than two vectors, by way of padded copies. */
OPS__INLINED void reduce_rest(const struct ops__reduction *work, size_t at, size_t rest,
                              size_t bytes, uint32_t dtype, uint32_t op)
{
    char padded[2 * MAX_LANES * 4] = {0};
    vf first;
    vf second;

    memcpy(padded, work->in[0] + at, rest);
    first = load(padded, dtype);
    second = load(padded + vf_lanes() * bytes, dtype);
    for (size_t i = 1; i < work->in_count; i++) {
        memcpy(padded, work->in[i] + at, rest);
        first = combine(first, load(padded, dtype), op);
        second = combine(second, load(padded + vf_lanes() * bytes, dtype), op);
    }
    store_pair(padded, first, second, dtype);
    for (size_t i = 0; i < work->out_count; i++)
        memcpy(work->out[i] + at, padded, rest);
}

OPS__INLINED void reduce_floats(const struct ops__reduction *work, uint32_t dtype, uint32_t op)
{
    const size_t bytes = dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;
    const size_t step = 2 * vf_lanes() * bytes;
    const size_t end = work->count * bytes;
    size_t at = 0;

    if (work->in_count == 2)
        for (; at + step <= end; at += step)
            reduce_pair(work, 2, at, bytes, dtype, op);
    else
        for (; at + step <= end; at += step)
            reduce_pair(work, work->in_count, at, bytes, dtype, op);
    if (at < end)
        reduce_rest(work, at, end - at, bytes, dtype, op);
}

/*
 * Integers have no vector functions: compilers make vectors of the loops over a tile. Sums are of
 * unsigned numbers, which wrap.
 */
#define TILE 64
#define INTEGERS(bits) \
    OPS__INLINED void add_tile_##bits(uint##bits##_t *sum, const uint##bits##_t *more, \
                                      uint32_t op) \
    { \
        for (size_t i = 0; i < TILE; i++) { \
            int##bits##_t a = (int##bits##_t)sum[i]; \
            int##bits##_t b = (int##bits##_t)more[i]; \
            sum[i] = op == DS_ACCEL_COMM_SUM   ? sum[i] + more[i] \
                     : op == DS_ACCEL_COMM_MIN ? (uint##bits##_t)(b < a ? b : a) \
                                               : (uint##bits##_t)(b > a ? b : a); \
        } \
    } \
    OPS__INLINED void reduce_tile_##bits(const struct ops__reduction *work, size_t at, \
                                         size_t bytes, uint32_t op) \
    { \
        uint##bits##_t sum[TILE]; \
        uint##bits##_t more[TILE] = {0}; \
        memset(sum, 0, sizeof(sum)); \
        memcpy(sum, work->in[0] + at, bytes); \
        for (size_t i = 1; i < work->in_count; i++) { \
            memcpy(more, work->in[i] + at, bytes); \
            add_tile_##bits(sum, more, op); \
        } \
        for (size_t i = 0; i < work->out_count; i++) \
            memcpy(work->out[i] + at, sum, bytes); \
    } \
    OPS__INLINED void reduce_int##bits(const struct ops__reduction *work, uint32_t op) \
    { \
        const size_t step = TILE * (bits / 8); \
        const size_t end = work->count * (bits / 8); \
        size_t at = 0; \
        for (; at + step <= end; at += step) \
            reduce_tile_##bits(work, at, step, op); \
        if (at < end) \
            reduce_tile_##bits(work, at, end - at, op); \
    }
INTEGERS(32)
INTEGERS(64)

/* One copy of the loops for each operation. */
#define FOR_EACH_OP(reduce, ...) \
    do { \
        if (work->op == DS_ACCEL_COMM_SUM) \
            reduce(__VA_ARGS__ DS_ACCEL_COMM_SUM); \
        else if (work->op == DS_ACCEL_COMM_MIN) \
            reduce(__VA_ARGS__ DS_ACCEL_COMM_MIN); \
        else \
            reduce(__VA_ARGS__ DS_ACCEL_COMM_MAX); \
    } while (0)

void JOIN(ops__reduce_, SET)(const struct ops__reduction *work)
{
    switch (work->dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
        FOR_EACH_OP(reduce_floats, work, DS_ACCEL_DTYPE_FLOAT32, );
        break;
    case DS_ACCEL_DTYPE_FLOAT16:
        FOR_EACH_OP(reduce_floats, work, DS_ACCEL_DTYPE_FLOAT16, );
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
        FOR_EACH_OP(reduce_floats, work, DS_ACCEL_DTYPE_BFLOAT16, );
        break;
    case DS_ACCEL_DTYPE_INT32:
        FOR_EACH_OP(reduce_int32, work, );
        break;
    default:
        FOR_EACH_OP(reduce_int64, work, );
        break;
    }
}

#include "common/vector_end.h"
