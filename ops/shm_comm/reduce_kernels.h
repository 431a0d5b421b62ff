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

OPS__INLINED size_t width(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;
}

/* The types of a reduction: of the first input, of the others, and of the outputs. */
struct types {
    uint32_t first;
    uint32_t other;
    uint32_t out;
};

/* Reduce two vectors in a row, from an element on. */
OPS__INLINED void reduce_pair(const struct ops__reduction *work, size_t in_count, size_t at,
                              struct types types, uint32_t op)
{
    const size_t lanes = vf_lanes();
    vf first = load(work->in[0] + at * width(types.first), types.first);
    vf second = load(work->in[0] + (at + lanes) * width(types.first), types.first);

    for (size_t i = 1; i < in_count; i++) {
        const char *in = work->in[i] + at * width(types.other);

        first = combine(first, load(in, types.other), op);
        second = combine(second, load(in + lanes * width(types.other), types.other), op);
    }
    for (size_t i = 0; i < work->out_count; i++)
        store_pair(work->out[i] + at * width(types.out), first, second, types.out);
}

/* Reduce the last elements, fewer than two vectors, by way of padded copies. */
OPS__INLINED void reduce_rest(const struct ops__reduction *work, size_t at, size_t rest,
                              struct types types, uint32_t op)
{
    const size_t lanes = vf_lanes();
    char padded[2 * MAX_LANES * 4] = {0};
    vf first;
    vf second;

    memcpy(padded, work->in[0] + at * width(types.first), rest * width(types.first));
    first = load(padded, types.first);
    second = load(padded + lanes * width(types.first), types.first);
    for (size_t i = 1; i < work->in_count; i++) {
        memcpy(padded, work->in[i] + at * width(types.other), rest * width(types.other));
        first = combine(first, load(padded, types.other), op);
        second = combine(second, load(padded + lanes * width(types.other), types.other), op);
    }
    store_pair(padded, first, second, types.out);
    for (size_t i = 0; i < work->out_count; i++)
        memcpy(work->out[i] + at * width(types.out), padded, rest * width(types.out));
}

OPS__INLINED void reduce_typed(const struct ops__reduction *work, struct types types, uint32_t op)
{
    const size_t step = 2 * vf_lanes();
    size_t at = 0;

    if (work->in_count == 2)
        for (; at + step <= work->count; at += step)
            reduce_pair(work, 2, at, types, op);
    else
        for (; at + step <= work->count; at += step)
            reduce_pair(work, work->in_count, at, types, op);
    if (at < work->count)
        reduce_rest(work, at, work->count - at, types, op);
}

OPS__INLINED void reduce_floats(const struct ops__reduction *work, uint32_t dtype, uint32_t op)
{
    const struct types same = {dtype, dtype, dtype};

    if (dtype != DS_ACCEL_DTYPE_FLOAT32 && (work->in_is_wide || work->out_is_wide))
        reduce_typed(work,
                     (struct types){work->in_is_wide ? DS_ACCEL_DTYPE_FLOAT32 : dtype, dtype,
                                    work->out_is_wide ? DS_ACCEL_DTYPE_FLOAT32 : dtype},
                     op);
    else
        reduce_typed(work, same, op);
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
