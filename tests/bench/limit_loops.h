/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The loops of limit.h in one instruction set. The including file defines
 *
 *     LANES, NOISES         floats of a vector; vectors that receive random numbers at a time
 *     vf, vu, vb            vectors of floats, of as many uint32_t; a vector that moves bytes
 *     LIMIT_SET, LIMIT_NAME   the struct limit_set to define, and the set's name
 *     set, set_bits         a vector of equal numbers
 *     from_bits, to_bits    the same bits as another type
 *     root, fused           square root; a * b + c, rounded once
 *     where_nan, where_zero_or_nan(number, yes, no)   select by a property of number
 *     load_bfloat, load_half, store_half
 *     store_upper(to, a, b)   store the upper halves of the words of two vectors
 *     stream(to, bytes)     a non-temporal store
 *     random_bits(block, noise)   make 16-bit random numbers for the elements of NOISES vectors, by
 *                           Philox4x32-10; their order does not matter to the time
 */
#include <stdlib.h>
#include <string.h>

INLINED size_t bytes_of(enum limit_dtype dtype)
{
    return dtype == LIMIT_NONE ? 0 : dtype == LIMIT_FLOAT ? 4 : 2;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Elements whose bytes are moved at a time: one cache line of 16-bit elements. */
#define MOVED 32u

INLINED void move_line(char *at, size_t bytes, vb zero)
{
    for (size_t i = 0; i < bytes; i += sizeof(vb)) {
        vb line;

        memcpy(&line, at + i, sizeof(line));
        line ^= zero;
        memcpy(at + i, &line, sizeof(line));
    }
}

INLINED void read_line(const char *at, size_t bytes, vb *seen)
{
    for (size_t i = 0; i < bytes; i += sizeof(vb)) {
        vb line;

        memcpy(&line, at + i, sizeof(line));
        *seen |= line;
    }
}

INLINED void write_line(char *at, size_t bytes, bool non_temporal, vb zero)
{
    for (size_t i = 0; i < bytes; i += sizeof(vb)) {
        if (non_temporal) {
            stream(at + i, zero);
        } else {
            memcpy(at + i, &zero, sizeof(zero));
        }
    }
}

INLINED uint64_t move_streams(const struct limit_streams *streams, size_t parameter,
                              size_t gradient, size_t state, unsigned states, size_t copy,
                              bool non_temporal, uint64_t zero)
{
    const struct limit_streams s = *streams;
    vb zeros = (vb){0} + zero;
    vb seen = zeros;
    uint64_t words[sizeof(vb) / 8];
    uint64_t combined = 0;

    for (size_t i = 0; i < s.count; i += MOVED) {
        read_line(s.gradient + i * gradient, MOVED * gradient, &seen);
        move_line(s.parameter + i * parameter, MOVED * parameter, zeros);
        move_line(s.state[0] + i * state, MOVED * state, zeros);
        if (states > 1) {
            move_line(s.state[1] + i * state, MOVED * state, zeros);
        }
        if (copy > 0) {
            write_line(s.copy + i * copy, MOVED * copy, non_temporal, zeros);
        }
    }
    memcpy(words, &seen, sizeof(words));
    for (size_t i = 0; i < sizeof(vb) / 8; i++) {
        combined |= words[i];
    }
    return combined;
}

/* The compiler makes a loop for each combination of sizes. */
static uint64_t move(const struct limit_streams *streams, bool non_temporal, uint64_t zero)
{
    unsigned states = streams->state[1] != NULL ? 2 : 1;

#define SIZES(parameter, gradient, state, states, copy) \
    ((parameter)*1000 + (gradient)*100 + (state)*10 + (copy) + (states)*10000)
#define CASE(parameter, gradient, state, copy) \
    case SIZES(parameter, gradient, state, 1, copy): \
        return move_streams(streams, parameter, gradient, state, 1, copy, non_temporal, zero); \
    case SIZES(parameter, gradient, state, 2, copy): \
        return move_streams(streams, parameter, gradient, state, 2, copy, non_temporal, zero)
    switch (SIZES(bytes_of(streams->parameter_dtype), bytes_of(streams->gradient_dtype),
                  bytes_of(streams->state_dtype), states, bytes_of(streams->copy_dtype))) {
        CASE(4, 4, 4, 0);
        CASE(4, 4, 4, 2);
        CASE(2, 2, 4, 0);
        CASE(2, 2, 2, 0);
    default:
        abort(); /* no combination of the benchmark */
    }
#undef CASE
#undef SIZES
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* The constants of formulas; their values do not matter to the time. */
struct limit_constants {
    float scale;
    float decay;
    float beta1;
    float rest1;
    float beta2;
    float rest2;
    float factor;
    float epsilon;
    float rate;
};

/* The compiler must not know the values. */
static volatile struct limit_constants constants_source = {1,      0.99999F, 0.9F,  0.1F,    0.999F,
                                                           0.001F, 1.5F,     1e-8F, -0.0001F};

INLINED vf load(enum limit_dtype dtype, const char *array, size_t index)
{
    vf number;

    if (dtype == LIMIT_BFLOAT) {
        return load_bfloat(array + index * 2);
    }
    if (dtype == LIMIT_HALF) {
        return load_half(array + index * 2);
    }
    memcpy(&number, array + index * 4, sizeof(number));
    return number;
}

/* Round to nearest even, or with random numbers; the result is in the upper halves. */
INLINED vu round_bfloat(vf number, const vu *noise)
{
    vu bits = to_bits(number);
    vu added = noise != NULL ? *noise : ((bits >> 16) & set_bits(1)) + set_bits(0x7FFF);

    return to_bits(where_nan(number, from_bits(set_bits(0x7FC00000)), from_bits(bits + added)));
}

INLINED void store_two(enum limit_dtype dtype, char *array, size_t index, const vf *numbers,
                       const vu *noise)
{
    if (dtype == LIMIT_BFLOAT) {
        store_upper(array + index * 2, round_bfloat(numbers[0], noise),
                    round_bfloat(numbers[1], noise != NULL ? noise + 1 : NULL));
    } else if (dtype == LIMIT_HALF) {
        store_half(array + index * 2, numbers[0]);
        store_half(array + (index + LANES) * 2, numbers[1]);
    } else {
        memcpy(array + index * 4, numbers, 2 * sizeof(vf));
    }
}

INLINED void formula_of(enum limit_formula formula, const struct limit_constants *k, vf gradient,
                        vf *parameter, vf *state0, vf *state1)
{
    vf g = gradient * set(k->scale);

    if (formula == LIMIT_ADAM) {
        *state0 = fused(set(k->beta1), *state0, set(k->rest1) * g);
        *state1 = fused(set(k->beta2), *state1, set(k->rest2) * g * g);
        *parameter *= set(k->decay);
        *parameter = fused(set(k->rate),
                           *state0 / fused(root(*state1), set(k->factor), set(k->epsilon)),
                           *parameter);
    } else if (formula == LIMIT_LION) {
        vf c = fused(set(k->beta1), *state0, set(k->rest1) * g);
        vu sign = (to_bits(c) & set_bits(0x80000000)) | set_bits(0x3F800000);

        *parameter *= set(k->decay);
        *parameter = fused(set(k->rate), where_zero_or_nan(c, c, from_bits(sign)), *parameter);
        *state0 = fused(set(k->beta2), *state0, set(k->rest2) * g);
    } else {
        *state0 = fused(g, g, *state0);
        *parameter = fused(set(k->rate), g / (root(*state0) + set(k->epsilon)), *parameter);
    }
}

INLINED void compute_streams(const struct limit_streams *streams, enum limit_formula formula,
                             bool stochastic, enum limit_dtype parameter_dtype,
                             enum limit_dtype gradient_dtype, enum limit_dtype state_dtype,
                             enum limit_dtype copy_dtype)
{
    const struct limit_streams s = *streams;
    const struct limit_constants k = {
        constants_source.scale,  constants_source.decay,   constants_source.beta1,
        constants_source.rest1,  constants_source.beta2,   constants_source.rest2,
        constants_source.factor, constants_source.epsilon, constants_source.rate};
    unsigned states = formula == LIMIT_ADAM ? 2 : 1;
    vu noise[NOISES];

    for (size_t i = 0; i < s.count; i += NOISES * LANES) {
        if (stochastic) {
            random_bits(i / 8, noise);
        }
        for (size_t j = 0; j < NOISES; j += 2) {
            size_t at = i + j * LANES;
            vf parameter[2];
            vf state[2][2];

            for (unsigned n = 0; n < 2; n++) {
                vf gradient = load(gradient_dtype, s.gradient, at + n * LANES);

                parameter[n] = load(parameter_dtype, s.parameter, at + n * LANES);
                state[0][n] = load(state_dtype, s.state[0], at + n * LANES);
                state[1][n] = states > 1 ? load(state_dtype, s.state[1], at + n * LANES)
                                         : state[0][n];
                formula_of(formula, &k, gradient, &parameter[n], &state[0][n], &state[1][n]);
            }
            store_two(state_dtype, s.state[0], at, state[0], NULL);
            if (states > 1) {
                store_two(state_dtype, s.state[1], at, state[1], NULL);
            }
            store_two(parameter_dtype, s.parameter, at, parameter, stochastic ? noise + j : NULL);
            if (copy_dtype != LIMIT_NONE) {
                store_two(copy_dtype, s.copy, at, parameter, NULL);
            }
        }
    }
}

INLINED void compute_dtypes(const struct limit_streams *streams, enum limit_formula formula,
                            bool stochastic)
{
#define DTYPES(parameter, gradient, state, copy) \
    ((parameter)*64u + (gradient)*16u + (state)*4u + (copy))
#define CASE(stochastic, parameter, gradient, state, copy) \
    case DTYPES(parameter, gradient, state, copy): \
        compute_streams(streams, formula, stochastic, parameter, gradient, state, copy); \
        break
    unsigned dtypes = DTYPES(streams->parameter_dtype, streams->gradient_dtype,
                             streams->state_dtype, streams->copy_dtype);

    if (stochastic) {
        switch (dtypes) {
            CASE(true, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_FLOAT, LIMIT_NONE);
            CASE(true, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_NONE);
        default:
            abort(); /* no combination of the benchmark */
        }
        return;
    }
    switch (dtypes) {
        CASE(false, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_NONE);
        CASE(false, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_BFLOAT);
        CASE(false, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_FLOAT, LIMIT_HALF);
        CASE(false, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_FLOAT, LIMIT_NONE);
        CASE(false, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_BFLOAT, LIMIT_NONE);
        CASE(false, LIMIT_HALF, LIMIT_HALF, LIMIT_FLOAT, LIMIT_NONE);
        CASE(false, LIMIT_HALF, LIMIT_HALF, LIMIT_HALF, LIMIT_NONE);
    default:
        abort(); /* no combination of the benchmark */
    }
#undef CASE
#undef DTYPES
}

static void compute(const struct limit_streams *streams, enum limit_formula formula,
                    bool stochastic)
{
    switch (formula) {
    case LIMIT_ADAM:
        compute_dtypes(streams, LIMIT_ADAM, stochastic);
        break;
    case LIMIT_LION:
        compute_dtypes(streams, LIMIT_LION, stochastic);
        break;
    case LIMIT_ADAGRAD:
        compute_dtypes(streams, LIMIT_ADAGRAD, stochastic);
        break;
    }
}

const struct limit_set LIMIT_SET = {LIMIT_NAME, move, compute};
