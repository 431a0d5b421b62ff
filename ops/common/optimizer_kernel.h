/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The loop of an optimizer's kernel, for all data types. The including file defines
 *
 *     KERNEL             name of the function to make, an ops__kernel_fn
 *     KERNEL_CONSTANTS   type of the constants
 *     KERNEL_STATES      1 or 2
 *     KERNEL_COPIES      1: chunks may have copies; 0: none has
 *     KERNEL_UPDATE      OPS__INLINED void (const KERNEL_CONSTANTS *, vf gradient, vf *parameter,
 *                        vf *state0, vf *state1, vf *numerator, vf *root)
 *     KERNEL_FINISH      OPS__INLINED void (const KERNEL_CONSTANTS *, vf numerator, vf root,
 *                        vf *parameter)
 *
 * The second completes the parameter with what the first left in numerator and root. Between them
 * the loop stores other vectors, because a CPU takes long for a root and a quotient.
 *
 * and may include this header again with other definitions.
 */
#include "common/optimizer.h"
#include "common/philox.h"
#include "common/vector.h"

#ifndef OPS_OPTIMIZER_KERNEL_H
#define OPS_OPTIMIZER_KERNEL_H

/* Elements of a tile, which stays in the first cache while each part of the work is done for it. A
 * multiple of two vectors and of OPS__PHILOX_ELEMENTS. */
#define TILE 1024u

/* Elements that the loop reads ahead. */
#define AHEAD 512u

#define F32 DS_ACCEL_DTYPE_FLOAT32
#define F16 DS_ACCEL_DTYPE_FLOAT16
#define B16 DS_ACCEL_DTYPE_BFLOAT16

/* One number for each combination of data types. */
#define COMBINATION(parameter, gradient, state) ((parameter)*16 + (gradient)*4 + (state))

OPS__INLINED size_t dtype_bytes(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;
}

/* Ask for what the loop reads later than the two vectors at the index. For 16-bit parameters with
 * float32 states it pays: 3 to 9 % with AVX2 (Zen 3). */
OPS__INLINED void prefetch(const char *array, size_t index, uint32_t dtype)
{
    uintptr_t address = (uintptr_t)array + (index + AHEAD) * dtype_bytes(dtype);

    for (size_t at = 0; at < 2 * vf_lanes() * dtype_bytes(dtype); at += 64)
        __builtin_prefetch((const void *)(address + at));
}

/* Load two vectors in a row. */
OPS__INLINED void load(uint32_t dtype, const char *array, size_t index, vf *first, vf *second)
{
    const char *from = array + index * dtype_bytes(dtype);
    const char *next = from + vf_lanes() * dtype_bytes(dtype);

    if (dtype == DS_ACCEL_DTYPE_FLOAT32) {
        *first = vf_load(from);
        *second = vf_load(next);
    } else if (dtype == DS_ACCEL_DTYPE_BFLOAT16) {
        *first = vf_load_bfloat(from);
        *second = vf_load_bfloat(next);
    } else {
        *first = vf_load_half(from);
        *second = vf_load_half(next);
    }
}

OPS__INLINED void store(uint32_t dtype, char *array, size_t index, vf first, vf second)
{
    char *to = array + index * dtype_bytes(dtype);
    char *next = to + vf_lanes() * dtype_bytes(dtype);

    if (dtype == DS_ACCEL_DTYPE_FLOAT32) {
        vf_store(to, first);
        vf_store(next, second);
    } else if (dtype == DS_ACCEL_DTYPE_BFLOAT16) {
        vf_store_bfloat_pair(to, first, second);
    } else {
        vf_store_half(to, first);
        vf_store_half(next, second);
    }
}

/* Where and how the main loop stores a copy of the parameters. */
enum copying {
    COPIES_NONE,
    STREAMS_HALF,
    STREAMS_BFLOAT
};

OPS__INLINED void stream(enum copying copying, char *array, size_t index, vf first, vf second)
{
    if (copying == STREAMS_HALF)
        vf_stream_half_pair(array + index * 2, first, second);
    else if (copying == STREAMS_BFLOAT)
        vf_stream_bfloat_pair(array + index * 2, first, second);
}

/* random: a number of 16 bits for each element of the array; NULL: to nearest even. */
OPS__INLINED void store_parameter(uint32_t dtype, char *array, size_t index, vf first, vf second,
                                  const uint16_t *random)
{
    if (random)
        vf_store_bfloat_pair_random(array + index * 2, first, second, random + index);
    else
        store(dtype, array, index, first, second);
}

/* Fill a buffer of two vectors with count elements of an array. The rest repeats the last of them,
 * so that it cannot raise a floating-point exception that the elements do not raise. */
static inline void fill_vectors(char *buffer, const char *array, uint32_t dtype, size_t count)
{
    size_t bytes = dtype_bytes(dtype);
    uint16_t last[2];

    memcpy(last, array + (count - 1) * bytes, bytes);
    if (bytes == 2)
        last[1] = last[0];
    for (size_t i = 0; i < 2 * vf_lanes() * bytes; i += 4)
        memcpy(buffer + i, last, 4);
    memcpy(buffer, array, count * bytes);
}

OPS__INLINED void convert_loop(uint32_t to_dtype, char *to, uint32_t from_dtype, const char *from,
                               size_t count)
{
    for (size_t i = 0; i < count; i += 2 * vf_lanes()) {
        vf first;
        vf second;

        load(from_dtype, from, i, &first, &second);
        store(to_dtype, to, i, first, second);
    }
}

/* Copy count elements, a multiple of two vectors. This and the next function are loops of their
 * own, so that the main loop has fewer cases and does not load what it has just stored. */
static void convert(uint32_t to_dtype, char *to, uint32_t from_dtype, const char *from,
                    size_t count)
{
#define CASE(wanted_to, wanted_from) \
    case COMBINATION(0, wanted_to, wanted_from): \
        convert_loop(wanted_to, to, wanted_from, from, count); \
        break
    switch (COMBINATION(0, to_dtype, from_dtype)) {
        CASE(F32, F16);
        CASE(F32, B16);
        CASE(F16, F32);
        CASE(F16, B16);
        CASE(B16, F32);
        CASE(B16, F16);
    default:
        memcpy(to, from, count * dtype_bytes(to_dtype));
        break;
    }
#undef CASE
}

OPS__INLINED bool is_finite_loop(uint32_t dtype, const char *array, size_t count)
{
    vf first_sum = vf_set(0); /* NaN where an element was infinite or NaN */
    vf second_sum = first_sum;

    for (size_t i = 0; i < count; i += 2 * vf_lanes()) {
        vf first;
        vf second;

        load(dtype, array, i, &first, &second);
        first_sum = vf_fma(first, vf_set(0), first_sum);
        second_sum = vf_fma(second, vf_set(0), second_sum);
    }
    return vf_is_finite(vf_add(first_sum, second_sum));
}

/* Return false if one of count elements, a multiple of two vectors, is infinite or NaN. */
static bool is_finite(uint32_t dtype, const char *array, size_t count)
{
    if (dtype == F32)
        return is_finite_loop(F32, array, count);
    return dtype == F16 ? is_finite_loop(F16, array, count) : is_finite_loop(B16, array, count);
}

static enum copying choose_copying(const struct ops__chunk *chunk)
{
    if (!chunk->copy || !chunk->streams_copy || chunk->parameter_dtype != F32 ||
        chunk->copy_dtype == F32 || (uintptr_t)chunk->copy % (4 * vf_lanes()) != 0)
        return COPIES_NONE;
    return chunk->copy_dtype == F16 ? STREAMS_HALF : STREAMS_BFLOAT;
}

#define JOIN(first, second) first##second
#define NAME(first, second) JOIN(first, second)

#endif

/* Update c.count elements, a multiple of two vectors and not 0. random: a number for each, or NULL.
 * The compiler makes a loop for each combination of data types. */
OPS__INLINED void NAME(KERNEL, _loop)(const KERNEL_CONSTANTS *given, const struct ops__chunk *chunk,
                                      const uint16_t *random, uint32_t parameter_dtype,
                                      uint32_t gradient_dtype, uint32_t state_dtype,
                                      enum copying copying)
{
    /* No store can change these copies, so the compiler keeps them in registers. */
    const KERNEL_CONSTANTS constants = *given;
    const struct ops__chunk c = *chunk;
    const size_t both = 2 * vf_lanes();
    vf done0 = vf_set(0); /* the parameters before those at i */
    vf done1 = done0;

    for (size_t i = 0; i < c.count; i += both) {
        vf gradient0;
        vf gradient1;
        vf parameter0;
        vf parameter1;
        vf first0;
        vf first1;
        vf second0 = vf_set(0);
        vf second1 = second0;
        vf numerator0 = second0;
        vf numerator1 = second0;
        vf root0 = second0;
        vf root1 = second0;

        if (parameter_dtype != F32 && state_dtype == F32) {
            prefetch(c.gradient, i, gradient_dtype);
            prefetch(c.parameter, i, parameter_dtype);
            prefetch(c.state[0], i, state_dtype);
            if (KERNEL_STATES > 1)
                prefetch(c.state[1], i, state_dtype);
        }
        load(gradient_dtype, c.gradient, i, &gradient0, &gradient1);
        load(parameter_dtype, c.parameter, i, &parameter0, &parameter1);
        load(state_dtype, c.state[0], i, &first0, &first1);
        if (KERNEL_STATES > 1)
            load(state_dtype, c.state[1], i, &second0, &second1);
        KERNEL_UPDATE(&constants, gradient0, &parameter0, &first0, &second0, &numerator0, &root0);
        KERNEL_UPDATE(&constants, gradient1, &parameter1, &first1, &second1, &numerator1, &root1);
        /* What is stored here waits for none of the roots and quotients that are being computed, so
         * that the CPU need not hold more instructions than it can to find some to execute. */
        if (i > 0) {
            store_parameter(parameter_dtype, c.parameter, i - both, done0, done1, random);
            stream(copying, c.copy, i - both, done0, done1);
        }
        if (KERNEL_STATES > 1)
            store(state_dtype, c.state[1], i, second0, second1);
        KERNEL_FINISH(&constants, numerator0, root0, &parameter0);
        KERNEL_FINISH(&constants, numerator1, root1, &parameter1);
        store(state_dtype, c.state[0], i, first0, first1);
        done0 = parameter0;
        done1 = parameter1;
    }
    store_parameter(parameter_dtype, c.parameter, c.count - both, done0, done1, random);
    stream(copying, c.copy, c.count - both, done0, done1);
}

static void NAME(KERNEL, _vectors)(const KERNEL_CONSTANTS *constants,
                                   const struct ops__chunk *chunk, const uint16_t *random)
{
    enum copying copying = KERNEL_COPIES ? choose_copying(chunk) : COPIES_NONE;

#define LOOP(parameter, gradient, state, random, copying) \
    NAME(KERNEL, _loop)(constants, chunk, random, parameter, gradient, state, copying)
#define CASE(parameter, gradient, state) \
    case COMBINATION(parameter, gradient, state): \
        if ((parameter) == B16 && random) \
            LOOP(parameter, gradient, state, random, COPIES_NONE); \
        else \
            LOOP(parameter, gradient, state, NULL, COPIES_NONE); \
        break
#define CASE_FLOAT(gradient) \
    case COMBINATION(F32, gradient, F32): \
        if (copying == STREAMS_HALF) \
            LOOP(F32, gradient, F32, NULL, STREAMS_HALF); \
        else if (copying == STREAMS_BFLOAT) \
            LOOP(F32, gradient, F32, NULL, STREAMS_BFLOAT); \
        else \
            LOOP(F32, gradient, F32, NULL, COPIES_NONE); \
        break
    switch (COMBINATION(chunk->parameter_dtype, chunk->gradient_dtype, chunk->state_dtype)) {
        CASE_FLOAT(F32);
        CASE_FLOAT(F16);
        CASE_FLOAT(B16);
        CASE(F16, F32, F32);
        CASE(F16, F16, F32);
        CASE(F16, B16, F32);
        CASE(F16, F32, F16);
        CASE(F16, F16, F16);
        CASE(F16, B16, F16);
        CASE(B16, F32, F32);
        CASE(B16, F16, F32);
        CASE(B16, B16, F32);
        CASE(B16, F32, B16);
        CASE(B16, F16, B16);
        CASE(B16, B16, B16);
    default:
        break; /* ops__optimizer_check() allows no other */
    }
#undef CASE_FLOAT
#undef CASE
#undef LOOP
    if (chunk->found_infinite && !is_finite(chunk->gradient_dtype, chunk->gradient, chunk->count))
        __atomic_store_n(chunk->found_infinite, 1, __ATOMIC_RELAXED);
    /* The copy is of the parameters as they were rounded. */
    if (chunk->copy && copying == COPIES_NONE)
        convert(chunk->copy_dtype, chunk->copy, chunk->parameter_dtype, chunk->parameter,
                chunk->count);
}

/* Update part of a chunk: count elements from one on. random: their numbers, with room for two
 * whole vectors behind the last, or NULL. */
static void NAME(KERNEL, _part)(const KERNEL_CONSTANTS *constants, const struct ops__chunk *chunk,
                                size_t from, size_t count, const uint16_t *random)
{
    size_t rest = count % (2 * vf_lanes());
    struct ops__chunk part = *chunk;

    part.parameter += from * dtype_bytes(chunk->parameter_dtype);
    part.gradient += from * dtype_bytes(chunk->gradient_dtype);
    for (unsigned i = 0; i < KERNEL_STATES; i++)
        part.state[i] += from * dtype_bytes(chunk->state_dtype);
    if (chunk->copy)
        part.copy += from * dtype_bytes(chunk->copy_dtype);
    part.count = count - rest;
    if (part.count > 0)
        NAME(KERNEL, _vectors)(constants, &part, random);
    if (rest > 0) {
        char parameter[2 * MAX_LANES * 4];
        char gradient[2 * MAX_LANES * 4];
        char states[KERNEL_STATES][2 * MAX_LANES * 4];
        char copy[2 * MAX_LANES * 4];
        struct ops__chunk last = part;

        from = part.count;
        last.parameter = parameter;
        fill_vectors(parameter, part.parameter + from * dtype_bytes(part.parameter_dtype),
                     part.parameter_dtype, rest);
        last.gradient = gradient;
        fill_vectors(gradient, part.gradient + from * dtype_bytes(part.gradient_dtype),
                     part.gradient_dtype, rest);
        for (unsigned i = 0; i < KERNEL_STATES; i++) {
            last.state[i] = states[i];
            fill_vectors(states[i], part.state[i] + from * dtype_bytes(part.state_dtype),
                         part.state_dtype, rest);
        }
        if (part.copy)
            last.copy = copy;
        last.streams_copy = false;
        last.count = 2 * vf_lanes();
        NAME(KERNEL, _vectors)(constants, &last, random ? random + from : NULL);
        memcpy(part.parameter + from * dtype_bytes(part.parameter_dtype), parameter,
               rest * dtype_bytes(part.parameter_dtype));
        for (unsigned i = 0; i < KERNEL_STATES; i++)
            memcpy(part.state[i] + from * dtype_bytes(part.state_dtype), states[i],
                   rest * dtype_bytes(part.state_dtype));
        if (part.copy)
            memcpy(part.copy + from * dtype_bytes(part.copy_dtype), copy,
                   rest * dtype_bytes(part.copy_dtype));
    }
}

void KERNEL(const void *given, const struct ops__chunk *chunk)
{
    const KERNEL_CONSTANTS *constants = (const KERNEL_CONSTANTS *)given;
    /* Elements of the first block of random numbers that lie before the chunk. */
    size_t skipped = chunk->first_element % OPS__PHILOX_ELEMENTS;
    bool streams = KERNEL_COPIES && choose_copying(chunk) != COPIES_NONE;
    bool is_tiled = chunk->stochastic || chunk->found_infinite || (chunk->copy && !streams);
    size_t tile = is_tiled ? TILE : chunk->count;
    uint16_t random[TILE + 2 * OPS__PHILOX_MOST] __attribute__((aligned(64)));

    for (size_t from = 0; from < chunk->count; from += tile) {
        size_t count = chunk->count - from < tile ? chunk->count - from : tile;

        if (chunk->stochastic)
            ops__philox(chunk->seed, chunk->step, chunk->first_element + from - skipped,
                        count + skipped, random);
        NAME(KERNEL, _part)
        (constants, chunk, from, count, chunk->stochastic ? random + skipped : NULL);
    }
    if (streams)
        vf_stream_end();
}

#undef KERNEL
#undef KERNEL_CONSTANTS
#undef KERNEL_STATES
#undef KERNEL_COPIES
#undef KERNEL_UPDATE
#undef KERNEL_FINISH
