/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Add the squares of a chunk's gradients exactly, in one instruction set. The including file
 * defines OPS_VECTOR_<SET> and SET, the end of the function's name.
 *
 * The square of a float is exact in double. A level is a double so large that a number added to it
 * is rounded to a multiple of its unit. The difference of the sums before and after is what the
 * level took of the number, and the rest, which is exact too, goes to the next level (Demmel,
 * Nguyen: Parallel reproducible summation, 2015). The unit of the first level follows from the
 * largest gradient of a tile. If the rest behind the last level is not 0, the tile is added with
 * more levels: float gradients with all digits may be 2^-38 times the largest one with three
 * levels, and 2^-79 with five. Else it is added element by element.
 */
#include "common/gradient_sum.h"
#include "common/vector.h"

/* Gradients of a tile, which stays in the first cache. A multiple of the lanes of all sets. */
#define SUM_TILE 2048u
/* Bits by which the unit of each level is below that of the one before, and the first one's below
 * the largest square. 51 bits of a level count, and a lane adds up to 2^9 numbers of a tile. */
#define SUM_STEP 41
/* Levels to try first: two suffice for the fewer digits of 16-bit types. */
#define SUM_LEVELS 3u
#define SUM_LEVELS_NARROW 2u
#define SUM_MOST_LEVELS 5u

#if defined(OPS_VECTOR_AVX512)
#define SUM_BYTES 64
#elif defined(OPS_VECTOR_AVX2)
#define SUM_BYTES 32
#else
#define SUM_BYTES 16
#endif
#define SUM_LANES (SUM_BYTES / 8u)

/* GCC's and Clang's vectors: a sum without rounding does not depend on how they are compiled. */
typedef double sum_double __attribute__((vector_size(SUM_BYTES)));
typedef int64_t sum_word __attribute__((vector_size(SUM_BYTES)));
typedef float sum_float __attribute__((vector_size(SUM_BYTES / 2)));

/* Gradients are floats at any address. */
OPS__INLINED uint32_t magnitude_bits(const char *gradients, size_t index)
{
    uint32_t bits;

    memcpy(&bits, gradients + index * 4, sizeof(bits));
    return bits & 0x7FFFFFFFu;
}

OPS__INLINED void read_squares(const char *gradients, size_t index, sum_double *squares)
{
    const char *from = gradients + index * 4;
    /* GCC 12 converts each half by itself. */
#if defined(OPS_VECTOR_AVX512) && !defined(OPS_VECTOR_EMULATED)
    *squares = _mm512_cvtps_pd(_mm256_loadu_ps((const float *)(const void *)from));
#elif defined(OPS_VECTOR_AVX2)
    *squares = _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)from));
#else
    sum_float narrow;

    memcpy(&narrow, from, sizeof(narrow));
    *squares = __builtin_convertvector(narrow, sum_double);
#endif
    *squares *= *squares;
}

/* Store count gradients as floats, and 0 behind them up to end, a multiple of 64. */
static void widen(uint32_t dtype, const char *from, size_t count, size_t end, float *gradients)
{
    uint16_t narrow[SUM_TILE];

    if (dtype == DS_ACCEL_DTYPE_FLOAT32) {
        memcpy(gradients, from, count * 4);
        memset(gradients + count, 0, (end - count) * 4);
        return;
    }
    memcpy(narrow, from, count * 2);
    memset(narrow + count, 0, (end - count) * 2);
    if (dtype == DS_ACCEL_DTYPE_FLOAT16)
        for (size_t i = 0; i < end; i += vf_lanes())
            vf_store(gradients + i, vf_load_half(narrow + i));
    else
        for (size_t i = 0; i < end; i += vf_lanes())
            vf_store(gradients + i, vf_load_bfloat(narrow + i));
}

static uint32_t largest_magnitude(const char *gradients, size_t end)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < end; i++) {
        uint32_t bits = magnitude_bits(gradients, i);

        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Move the part of *rest that is a multiple of the level's unit to the level. */
OPS__INLINED void take(sum_double *level, sum_double *rest)
{
    sum_double sum = *level + *rest;

    *rest -= sum - *level;
    *level = sum;
}

/* Add squares of numbers below 2^exponent. Return false, having added nothing, if the levels do not
 * suffice. */
OPS__INLINED bool add_levels(struct ds_accel_gradient_sum *sum, const char *gradients, size_t end,
                             int exponent, const unsigned levels)
{
    const sum_double zero = {0};
    int unit = 2 * exponent - SUM_STEP; /* of the first level: the exponent of 2 */
    sum_double start[SUM_MOST_LEVELS];
    sum_double first[SUM_MOST_LEVELS];
    sum_double second[SUM_MOST_LEVELS];
    sum_word remains = {0};

    start[0] = zero + ldexp(1.5, 52 + unit);
    for (unsigned i = 1; i < levels; i++)
        start[i] = start[i - 1] * (1.0 / ((int64_t)1 << SUM_STEP));
    for (unsigned i = 0; i < levels; i++)
        first[i] = second[i] = start[i];
    for (size_t i = 0; i < end; i += 2 * SUM_LANES) {
        sum_double a;
        sum_double b;

        read_squares(gradients, i, &a);
        read_squares(gradients, i + SUM_LANES, &b);
#ifdef __clang__
#pragma unroll
#else
#pragma GCC unroll 5
#endif
        for (unsigned level = 0; level < levels; level++) {
            take(&first[level], &a);
            take(&second[level], &b);
        }
        remains |= (sum_word)a | (sum_word)b;
    }
    for (unsigned i = 0; i < SUM_LANES; i++)
        if (remains[i] != 0)
            return false;
    for (unsigned i = 0; i < levels; i++) {
        /* Numbers with one exponent differ by a multiple of its unit as their bits do. */
        const sum_word before = (sum_word)start[i];
        sum_word taken = ((sum_word)first[i] - before) + ((sum_word)second[i] - before);
        int64_t total = 0;

        for (unsigned lane = 0; lane < SUM_LANES; lane++)
            total += taken[lane];
        if (total != 0) /* the unit of an unused level can be too small */
            ops__sum_add(sum, total, unit - (int)i * SUM_STEP);
    }
    return true;
}

/* Add squares one by one. */
static void add_each(struct ds_accel_gradient_sum *sum, const char *gradients, size_t end)
{
    for (size_t i = 0; i < end; i++) {
        uint32_t bits = magnitude_bits(gradients, i);
        int exponent = (int)(bits >> 23);
        int64_t digits = bits & 0x7FFFFFu;

        if (exponent > 0)
            digits |= 0x800000;
        else
            exponent = 1;
        ops__sum_add(sum, digits * digits, 2 * (exponent - 150));
    }
}

static void add_tile(struct ds_accel_gradient_sum *sum, uint32_t dtype, const char *gradients,
                     size_t end)
{
    uint32_t largest = largest_magnitude(gradients, end);
    int exponent = (int)(largest >> 23) - 126;
    bool added;

    if (exponent < -125) /* of denormal numbers */
        exponent = -125;
    if (largest > 0x7F800000u)
        sum->nan_count = 1;
    else if (largest == 0x7F800000u)
        sum->infinite_count = 1;
    else if (largest > 0) {
        added = dtype == DS_ACCEL_DTYPE_FLOAT32
                    ? add_levels(sum, gradients, end, exponent, SUM_LEVELS)
                    : add_levels(sum, gradients, end, exponent, SUM_LEVELS_NARROW);
        if (!added && !add_levels(sum, gradients, end, exponent, SUM_MOST_LEVELS))
            add_each(sum, gradients, end);
    }
}

#define JOIN(first, second) first##second
#define NAME(first, second) JOIN(first, second)

void NAME(ops__gradient_sum_, SET)(const void *constants, const struct ops__chunk *chunk)
{
    struct ds_accel_gradient_sum *sum = *(struct ds_accel_gradient_sum *const *)constants;
    bool narrow = chunk->gradient_dtype != DS_ACCEL_DTYPE_FLOAT32;
    float wide[SUM_TILE] __attribute__((aligned(64)));

    for (size_t from = 0; from < chunk->count; from += SUM_TILE) {
        size_t count = chunk->count - from < SUM_TILE ? chunk->count - from : SUM_TILE;
        size_t end = (count + MAX_LANES - 1) / MAX_LANES * MAX_LANES;
        const char *gradients = chunk->gradient + from * (narrow ? 2 : 4);

        if (narrow || count < end) {
            widen(chunk->gradient_dtype, gradients, count, end, wide);
            gradients = (const char *)wide;
        }
        add_tile(sum, chunk->gradient_dtype, gradients, end);
    }
    ops__sum_carry(sum);
}

#include "common/vector_end.h"
