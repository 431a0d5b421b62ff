/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The loop of an optimizer's kernel, for all data types. The including file defines
 *
 *     KERNEL             name of the function to make, an ops__kernel_fn
 *     KERNEL_CONSTANTS   type of the constants
 *     KERNEL_STATES      1 or 2
 *     KERNEL_UPDATE      OPS__INLINED void (const KERNEL_CONSTANTS *, vf gradient, vf *parameter,
 *                        vf *state0, vf *state1)
 *
 * and may include this header again with other definitions.
 */
#include "common/optimizer.h"
#include "common/philox.h"
#include "common/vector.h"

#ifndef OPS_OPTIMIZER_KERNEL_H
#define OPS_OPTIMIZER_KERNEL_H

#define TILE 1024u /* elements whose random numbers are made at a time */

OPS__INLINED size_t dtype_bytes(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;
}

OPS__INLINED vf load(uint32_t dtype, const char *array, size_t index)
{
    const char *from = array + index * dtype_bytes(dtype);

    if (dtype == DS_ACCEL_DTYPE_FLOAT32)
        return vf_load(from);
    return dtype == DS_ACCEL_DTYPE_BFLOAT16 ? vf_load_bfloat(from) : vf_load_half(from);
}

OPS__INLINED void store(uint32_t dtype, char *array, size_t index, vf number)
{
    char *to = array + index * dtype_bytes(dtype);

    if (dtype == DS_ACCEL_DTYPE_FLOAT32)
        vf_store(to, number);
    else if (dtype == DS_ACCEL_DTYPE_BFLOAT16)
        vf_store_bfloat(to, number);
    else
        vf_store_half(to, number);
}

/* Fill a buffer of one vector with count elements of an array. The rest repeats the last of them,
 * so that it cannot raise a floating-point exception that the elements do not raise. */
static inline void fill_vector(char *buffer, const char *array, uint32_t dtype, size_t count)
{
    size_t bytes = dtype_bytes(dtype);

    for (size_t i = 0; i < vf_lanes(); i++)
        memcpy(buffer + i * bytes, array + (i < count ? i : count - 1) * bytes, bytes);
}

#define JOIN(first, second) first##second
#define NAME(first, second) JOIN(first, second)

/* One number for each combination of data types. */
#define COMBINATION(parameter, gradient, state) ((parameter)*16 + (gradient)*4 + (state))
#define F32 DS_ACCEL_DTYPE_FLOAT32
#define F16 DS_ACCEL_DTYPE_FLOAT16
#define B16 DS_ACCEL_DTYPE_BFLOAT16

#endif

/* Update c.count elements, a multiple of the vector's length. random: a number for each, or NULL.
 * The compiler makes a loop for each combination of data types. */
OPS__INLINED void NAME(KERNEL, _loop)(const KERNEL_CONSTANTS *given, const struct ops__chunk *chunk,
                                      const uint16_t *random, uint32_t parameter_dtype,
                                      uint32_t gradient_dtype, uint32_t state_dtype)
{
    /* No store can change these copies, so the compiler keeps them in registers. */
    const KERNEL_CONSTANTS constants = *given;
    const struct ops__chunk c = *chunk;
    vf unusable = vf_set(0); /* NaN where a gradient was infinite or NaN */

    for (size_t i = 0; i < c.count; i += vf_lanes()) {
        vf gradient = load(gradient_dtype, c.gradient, i);
        vf parameter = load(parameter_dtype, c.parameter, i);
        vf state0 = load(state_dtype, c.state[0], i);
        vf state1 = KERNEL_STATES > 1 ? load(state_dtype, c.state[1], i) : state0;

        if (c.found_infinite)
            unusable = vf_fma(gradient, vf_set(0), unusable);
        KERNEL_UPDATE(&constants, gradient, &parameter, &state0, &state1);
        store(state_dtype, c.state[0], i, state0);
        if (KERNEL_STATES > 1)
            store(state_dtype, c.state[1], i, state1);
        if (parameter_dtype == B16 && random)
            vf_store_bfloat_random(c.parameter + i * 2, parameter, random + i);
        else
            store(parameter_dtype, c.parameter, i, parameter);
        /* The copy is of the parameter as it was rounded. */
        if (c.copy)
            store(c.copy_dtype, c.copy, i, load(parameter_dtype, c.parameter, i));
    }
    if (c.found_infinite && !vf_is_finite(unusable))
        __atomic_store_n(c.found_infinite, 1, __ATOMIC_RELAXED);
}

static void NAME(KERNEL, _vectors)(const KERNEL_CONSTANTS *constants,
                                   const struct ops__chunk *chunk, const uint16_t *random)
{
#define CASE(parameter, gradient, state) \
    case COMBINATION(parameter, gradient, state): \
        NAME(KERNEL, _loop)(constants, chunk, random, parameter, gradient, state); \
        break
    switch (COMBINATION(chunk->parameter_dtype, chunk->gradient_dtype, chunk->state_dtype)) {
        CASE(F32, F32, F32);
        CASE(F32, F16, F32);
        CASE(F32, B16, F32);
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
#undef CASE
}

/* Update part of a chunk: count elements from one on. random: their numbers, with room for a whole
 * vector behind the last, or NULL. */
static void NAME(KERNEL, _part)(const KERNEL_CONSTANTS *constants, const struct ops__chunk *chunk,
                                size_t from, size_t count, const uint16_t *random)
{
    size_t lanes = vf_lanes();
    size_t rest = count % lanes;
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
        char parameter[MAX_LANES * 4];
        char gradient[MAX_LANES * 4];
        char states[KERNEL_STATES][MAX_LANES * 4];
        char copy[MAX_LANES * 4];
        struct ops__chunk last = part;

        from = part.count;
        last.parameter = parameter;
        fill_vector(parameter, part.parameter + from * dtype_bytes(part.parameter_dtype),
                    part.parameter_dtype, rest);
        last.gradient = gradient;
        fill_vector(gradient, part.gradient + from * dtype_bytes(part.gradient_dtype),
                    part.gradient_dtype, rest);
        for (unsigned i = 0; i < KERNEL_STATES; i++) {
            last.state[i] = states[i];
            fill_vector(states[i], part.state[i] + from * dtype_bytes(part.state_dtype),
                        part.state_dtype, rest);
        }
        if (part.copy)
            last.copy = copy;
        last.count = lanes;
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
    uint16_t random[TILE + 2 * OPS__PHILOX_TILE] __attribute__((aligned(64)));

    if (!chunk->stochastic) {
        NAME(KERNEL, _part)(constants, chunk, 0, chunk->count, NULL);
        return;
    }
    for (size_t from = 0; from < chunk->count; from += TILE) {
        size_t count = chunk->count - from < TILE ? chunk->count - from : TILE;

        ops__philox(chunk->seed, chunk->step, chunk->first_element + from - skipped,
                    count + skipped, random);
        NAME(KERNEL, _part)(constants, chunk, from, count, random + skipped);
    }
}

#undef KERNEL
#undef KERNEL_CONSTANTS
#undef KERNEL_STATES
#undef KERNEL_UPDATE
