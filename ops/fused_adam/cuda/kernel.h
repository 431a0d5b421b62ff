/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The kernels of fused_adam for CUDA: what one thread does. They are compiled by nvcc, and as C by
 * the tests, which run them on the CPU.
 *
 * A launch has the metadata of up to OPS__FUSED_TENSORS tensors as its only parameter, by value: no
 * memory of the device is needed for it, and a graph that captures the launch keeps it. Each block
 * of threads updates one range of one tensor.
 *
 * A step that asks for the norm, clipping or skipping has two launches more, and a structure in the
 * device's memory that begins as zeros:
 *
 *     ds_accel_fused_adam_sum      each thread adds its squares, exactly, to one of several sums
 *     ds_accel_fused_adam_finish   one thread adds up the sums: norm, coefficient, skip or not
 *     ds_accel_fused_adam          the update, with what the thread before has found
 */
#ifndef OPS_FUSED_ADAM_KERNEL_H
#define OPS_FUSED_ADAM_KERNEL_H

#include "common/adam.h"
#include "common/gradient_norm.h"

/* Loops over the elements that a thread has at once are unrolled for the device: then their arrays
 * are registers. */
#ifdef __CUDACC__
#include "common/vector_cuda.h"
#define OPS__UNROLLED _Pragma("unroll")
#else
#include "common/vector.h"
#define OPS__UNROLLED
#endif

#include "common/adam_formula.h"
#include "common/philox_round.h"

#define OPS__FUSED_TENSORS 500u /* a kernel's parameters have at most 32764 bytes */
#define OPS__FUSED_THREADS 256u /* of a block */
#define OPS__FUSED_AT_ONCE 4u   /* elements that a thread updates at a time */
#define OPS__FUSED_ELEMENTS (OPS__FUSED_THREADS * OPS__FUSED_AT_ONCE * 4u) /* of a block */
/* Elements of a block that adds up are a multiple of OPS__FUSED_SUM_STEP. Fewer than the least add
 * to the sums too often, and more than 256 per thread do not fit its window. */
#define OPS__FUSED_SUM_STEP (OPS__FUSED_THREADS * OPS__FUSED_AT_ONCE)
#define OPS__FUSED_SUM_LEAST OPS__FUSED_ELEMENTS
#define OPS__FUSED_SUM_MOST (OPS__FUSED_THREADS * 256u)
/* Blocks that add up at once on a multiprocessor: enough accesses of memory are in flight, and all
 * architectures have registers for so many. */
#define OPS__FUSED_SUM_BLOCKS 4u
#define OPS__FUSED_SUMS 32u /* so many that threads rarely wait for each other */

struct ops__fused_tensor {
    char *parameter;
    const char *gradient;
    char *state[2];
    char *copy; /* NULL: no copy */
    uint64_t count;
    uint64_t first_element;
    uint32_t first_block; /* number of the first block of threads that updates this tensor */
    uint8_t parameter_dtype;
    uint8_t gradient_dtype;
    uint8_t state_dtype;
    uint8_t copy_dtype;
};

/* What the launches of one step tell each other. */
struct ops__fused_examined {
    struct ds_accel_gradient_sum sums[OPS__FUSED_SUMS];
    float gradient_scale; /* with the coefficient of clipping */
    uint32_t skip;        /* 1: no update */
};

struct ops__fused_launch {
    struct ops__adam adam;
    uint32_t stochastic;
    uint32_t tensor_count;
    uint32_t sum_elements; /* of a block that adds up */
    uint32_t reserved;
    uint64_t seed;
    uint64_t step;
    uint32_t *found_infinite;             /* NULL: do not look */
    struct ops__fused_examined *examined; /* NULL: the step is taken as it is given */
    struct ops__fused_tensor tensors[OPS__FUSED_TENSORS];
};

/* The parameter of ds_accel_fused_adam_finish. */
struct ops__fused_finish {
    struct ops__fused_examined *examined;
    double gradient_scale;
    double max_norm;          /* 0: no clipping */
    double *gradient_norm;    /* NULL: not wanted */
    uint32_t *found_infinite; /* NULL: not wanted */
    uint32_t skips_infinite;
    uint32_t has_sum; /* sum is the caller's; examined->sums are not used */
    struct ds_accel_gradient_sum sum;
};

/* The elements that a thread updates at a time, in storage, as one access of memory. */
struct ops__fused_four {
    uint32_t word[4]; /* two of them for 16-bit types */
};

#ifdef __CUDACC__

OPS__INLINED void add_to_word(int64_t *word, uint64_t number)
{
    atomicAdd((unsigned long long *)word, (unsigned long long)number);
}

OPS__INLINED void read_four(uint32_t bytes, const char *from, struct ops__fused_four *four)
{
    if (bytes == 4) {
        uint4 words = *(const uint4 *)from;

        four->word[0] = words.x;
        four->word[1] = words.y;
        four->word[2] = words.z;
        four->word[3] = words.w;
    } else {
        uint2 words = *(const uint2 *)from;

        four->word[0] = words.x;
        four->word[1] = words.y;
    }
}

OPS__INLINED void write_four(uint32_t bytes, char *to, const struct ops__fused_four *four)
{
    if (bytes == 4)
        *(uint4 *)to = make_uint4(four->word[0], four->word[1], four->word[2], four->word[3]);
    else
        *(uint2 *)to = make_uint2(four->word[0], four->word[1]);
}

OPS__INLINED float from_half(uint16_t bits)
{
    return __half2float(__ushort_as_half(bits));
}

OPS__INLINED uint16_t to_half(float number)
{
    return __half_as_ushort(__float2half_rn(number));
}

#else

/* The tests run one thread at a time. */
OPS__INLINED void add_to_word(int64_t *word, uint64_t number)
{
    *word += (int64_t)number;
}

OPS__INLINED void read_four(uint32_t bytes, const char *from, struct ops__fused_four *four)
{
    memcpy(four, from, bytes * (size_t)OPS__FUSED_AT_ONCE);
}

OPS__INLINED void write_four(uint32_t bytes, char *to, const struct ops__fused_four *four)
{
    memcpy(to, four, bytes * (size_t)OPS__FUSED_AT_ONCE);
}

OPS__INLINED float from_half(uint16_t bits)
{
    return ops__half_to_float(bits);
}

OPS__INLINED uint16_t to_half(float number)
{
    return ops__float_to_half(number);
}

#endif

OPS__INLINED uint32_t stored_bytes(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT32 ? 4 : 2;
}

OPS__INLINED float widened(uint32_t dtype, uint32_t bits)
{
    if (dtype == DS_ACCEL_DTYPE_FLOAT32)
        return ops__float(bits);
    return dtype == DS_ACCEL_DTYPE_BFLOAT16 ? ops__bfloat_to_float((uint16_t)bits)
                                            : from_half((uint16_t)bits);
}

/* noise: what is added to the bits that bfloat16 drops. */
OPS__INLINED uint32_t narrowed(uint32_t dtype, float number, uint32_t noise)
{
    if (dtype == DS_ACCEL_DTYPE_FLOAT32)
        return ops__bits(number);
    return dtype == DS_ACCEL_DTYPE_BFLOAT16 ? ops__float_to_bfloat(number, noise) : to_half(number);
}

/* Read elements index to index + count - 1, count at most 4, as floats; the others are 0. */
OPS__INLINED void read_floats(uint32_t dtype, const char *array, uint64_t index, unsigned count,
                              bool whole, float *out)
{
    uint32_t bytes = stored_bytes(dtype);
    const char *from = array + index * bytes;
    struct ops__fused_four four;

    if (whole) {
        read_four(bytes, from, &four);
        OPS__UNROLLED
        for (unsigned i = 0; i < OPS__FUSED_AT_ONCE; i++)
            out[i] = widened(dtype, bytes == 4 ? four.word[i] : four.word[i / 2] >> i % 2 * 16);
        return;
    }
    OPS__UNROLLED
    for (unsigned i = 0; i < OPS__FUSED_AT_ONCE; i++) {
        out[i] = 0;
        if (i < count && bytes == 4)
            out[i] = ((const float *)(const void *)from)[i];
        else if (i < count)
            out[i] = widened(dtype, ((const uint16_t *)(const void *)from)[i]);
    }
}

/* Write floats; NULL noise: rounded to nearest even. *numbers become what was stored. */
OPS__INLINED void write_floats(uint32_t dtype, char *array, uint64_t index, unsigned count,
                               bool whole, float *numbers, const uint32_t *noise)
{
    uint32_t bytes = stored_bytes(dtype);
    char *to = array + index * bytes;
    struct ops__fused_four four = {{0, 0, 0, 0}};

    OPS__UNROLLED
    for (unsigned i = 0; i < OPS__FUSED_AT_ONCE; i++) {
        uint32_t bits =
            narrowed(dtype, numbers[i], noise ? noise[i] : ops__nearest_even(numbers[i]));

        numbers[i] = widened(dtype, bits);
        if (bytes == 4)
            four.word[i] = bits;
        else
            four.word[i / 2] |= bits << i % 2 * 16;
        if (!whole && i < count && bytes == 4)
            ((uint32_t *)(void *)to)[i] = bits;
        else if (!whole && i < count)
            ((uint16_t *)(void *)to)[i] = (uint16_t)bits;
    }
    if (whole)
        write_four(bytes, to, &four);
}

/* Write the four words of a block of random numbers. */
OPS__INLINED void random_block(const struct ops__fused_launch *launch, uint64_t block,
                               uint32_t *words)
{
    vu a = (uint32_t)block;
    vu b = block >> 32;
    vu c = (uint32_t)launch->step;
    vu d = launch->step >> 32;
    uint32_t low = (uint32_t)launch->seed;
    uint32_t high = (uint32_t)(launch->seed >> 32);

    OPS__UNROLLED
    for (unsigned round = 0; round < 10; round++) {
        ops__philox_round(&a, &b, &c, &d, low, high);
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    words[0] = (uint32_t)a;
    words[1] = (uint32_t)b;
    words[2] = (uint32_t)c;
    words[3] = (uint32_t)d;
}

/* Write the random numbers of four elements. */
OPS__INLINED void random_four(const struct ops__fused_launch *launch, uint64_t element,
                              uint32_t *noise)
{
    uint32_t words[2][4] = {{0}};
    unsigned skipped = (unsigned)(element % OPS__PHILOX_ELEMENTS);

    random_block(launch, element / OPS__PHILOX_ELEMENTS, words[0]);
    if (skipped > OPS__FUSED_AT_ONCE)
        random_block(launch, element / OPS__PHILOX_ELEMENTS + 1, words[1]);
    OPS__UNROLLED
    for (unsigned i = 0; i < OPS__FUSED_AT_ONCE; i++) {
        uint32_t bits = 0;

        /* A variable index would move the words from registers to memory. */
        OPS__UNROLLED
        for (unsigned half = 0; half < 2 * OPS__PHILOX_ELEMENTS; half++)
            if (half == skipped + i)
                bits = words[half / 8][half % 8 / 2] >> half % 2 * 16;
        noise[i] = bits & 0xFFFFu;
    }
}

/* Update elements [from, end) of a tensor; this thread has four of each 1024. The compiler makes a
 * loop for each combination of the parameters' and states' types. More loops would only take longer
 * to compile: all threads of a block read the same type of gradient. */
OPS__INLINED void update_range(const struct ops__fused_launch *launch,
                               const struct ops__fused_tensor *tensor, uint64_t from, uint64_t end,
                               uint32_t thread, uint32_t parameter_dtype, uint32_t state_dtype)
{
    struct ops__adam adam = launch->adam;
    uint32_t gradient_dtype = tensor->gradient_dtype;
    uintptr_t wide = (uintptr_t)tensor->parameter % (4 * stored_bytes(parameter_dtype)) |
                     (uintptr_t)tensor->gradient % (4 * stored_bytes(gradient_dtype)) |
                     ((uintptr_t)tensor->state[0] | (uintptr_t)tensor->state[1]) %
                         (4 * stored_bytes(state_dtype));
    bool stochastic = parameter_dtype == DS_ACCEL_DTYPE_BFLOAT16 && launch->stochastic;
    bool unusable = false;

    if (launch->examined)
        adam.gradient_scale = launch->examined->gradient_scale;
    for (uint64_t i = from + (uint64_t)thread * OPS__FUSED_AT_ONCE; i < end;
         i += OPS__FUSED_THREADS * OPS__FUSED_AT_ONCE) {
        unsigned count = end - i < OPS__FUSED_AT_ONCE ? (unsigned)(end - i) : OPS__FUSED_AT_ONCE;
        bool whole = count == OPS__FUSED_AT_ONCE && wide == 0;
        float gradient[OPS__FUSED_AT_ONCE];
        float parameter[OPS__FUSED_AT_ONCE];
        float m[OPS__FUSED_AT_ONCE];
        float v[OPS__FUSED_AT_ONCE];
        uint32_t noise[OPS__FUSED_AT_ONCE];

        read_floats(gradient_dtype, tensor->gradient, i, count, whole, gradient);
        read_floats(parameter_dtype, tensor->parameter, i, count, whole, parameter);
        read_floats(state_dtype, tensor->state[0], i, count, whole, m);
        read_floats(state_dtype, tensor->state[1], i, count, whole, v);
        OPS__UNROLLED
        for (unsigned k = 0; k < OPS__FUSED_AT_ONCE; k++) {
            vf numerator;
            vf root;

            unusable |= !(gradient[k] - gradient[k] == 0);
            adam_step(&adam, gradient[k], &parameter[k], &m[k], &v[k], &numerator, &root);
            adam_finish_step(&adam, numerator, root, &parameter[k]);
        }
        write_floats(state_dtype, tensor->state[0], i, count, whole, m, NULL);
        write_floats(state_dtype, tensor->state[1], i, count, whole, v, NULL);
        if (stochastic)
            random_four(launch, tensor->first_element + i, noise);
        write_floats(parameter_dtype, tensor->parameter, i, count, whole, parameter,
                     stochastic ? noise : NULL);
        /* The copy is of the parameter as it was rounded. */
        if (tensor->copy)
            write_floats(tensor->copy_dtype, tensor->copy, i, count, false, parameter, NULL);
    }
    if (unusable && launch->found_infinite)
        *(volatile uint32_t *)launch->found_infinite = 1;
}

/* Return the tensor that a block of threads belongs to; each block has so many elements of it, the
 * first of which is *from, and *end is behind the last. */
OPS__INLINED const struct ops__fused_tensor *range_of(const struct ops__fused_launch *launch,
                                                      uint32_t block, uint32_t elements,
                                                      uint64_t *from, uint64_t *end)
{
    const struct ops__fused_tensor *tensor;
    uint32_t low = 0; /* the last tensor whose first block is not behind this one */
    uint32_t high = launch->tensor_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (launch->tensors[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    tensor = &launch->tensors[low];
    *from = (uint64_t)(block - tensor->first_block) * elements;
    *end = tensor->count - *from < elements ? tensor->count : *from + elements;
    return tensor;
}

/* ds_accel_fused_adam: what thread number thread of block number block does. */
OPS__INLINED void ops__fused_adam_thread(const struct ops__fused_launch *launch, uint32_t block,
                                         uint32_t thread)
{
    const struct ops__fused_tensor *tensor;
    uint64_t from;
    uint64_t end;

    if (launch->examined && launch->examined->skip)
        return;
    tensor = range_of(launch, block, OPS__FUSED_ELEMENTS, &from, &end);
#define OPS__FUSED_TYPES(parameter, state) ((parameter)*4 + (state))
#define OPS__FUSED_CASE(parameter, state) \
    case OPS__FUSED_TYPES(DS_ACCEL_DTYPE_##parameter, DS_ACCEL_DTYPE_##state): \
        update_range(launch, tensor, from, end, thread, DS_ACCEL_DTYPE_##parameter, \
                     DS_ACCEL_DTYPE_##state); \
        break
    switch (OPS__FUSED_TYPES(tensor->parameter_dtype, tensor->state_dtype)) {
        OPS__FUSED_CASE(FLOAT32, FLOAT32);
        OPS__FUSED_CASE(FLOAT16, FLOAT32);
        OPS__FUSED_CASE(FLOAT16, FLOAT16);
        OPS__FUSED_CASE(BFLOAT16, FLOAT32);
        OPS__FUSED_CASE(BFLOAT16, BFLOAT16);
    default:
        break; /* ops__optimizer_check() allows no other */
    }
#undef OPS__FUSED_CASE
#undef OPS__FUSED_TYPES
}

/* ---- the norm -------------------------------------------------------------------------------- */

/* Squares that a thread has added up: an integer of 128 bits in units of the sum's word. Squares of
 * 48 bits that begin up to WINDOW_SHIFT bits above the unit fit 256 times. */
struct ops__fused_window {
    uint64_t low;
    uint64_t high;
    uint32_t word;
};

#define OPS__WINDOW_SHIFT 72u /* at most; below the number of bits that a square can be above */
#define OPS__WINDOW_BELOW 40u /* bits that the window has below the square it begins with */

OPS__INLINED void put_window(const struct ops__fused_window *window,
                             struct ds_accel_gradient_sum *sum)
{
    uint64_t digits[4] = {window->low & OPS__SUM_MASK, window->low >> OPS__SUM_DIGIT,
                          window->high & OPS__SUM_MASK, window->high >> OPS__SUM_DIGIT};

    OPS__UNROLLED
    for (unsigned i = 0; i < 4; i++)
        if (digits[i] != 0)
            add_to_word(&sum->words[window->word + i], digits[i]);
}

/* Add number * 2^shift, which must fit. */
OPS__INLINED void add_to_window(struct ops__fused_window *window, uint64_t number, uint32_t shift)
{
    uint64_t low = shift < 64 ? number << shift : 0;
    uint64_t high = shift < 64 ? number >> 1 >> (63 - shift) : number << (shift - 64);

    window->low += low;
    window->high += high + (window->low < low);
}

/* Add the square of a finite number, which is given by its bits without the sign. */
OPS__INLINED void add_square(uint32_t magnitude, struct ops__fused_window *window,
                             struct ds_accel_gradient_sum *sum)
{
    uint32_t exponent = magnitude >> 23;
    uint64_t digits = exponent ? (magnitude & 0x7FFFFFu) | 0x800000u : magnitude;
    /* The number is digits * 2^(exponent - 150), and denormal ones have the exponent of 1. */
    uint32_t position = 2 * ((exponent ? exponent : 1) - 150) - (uint32_t)OPS__SUM_LEAST;
    uint32_t begin = window->word * OPS__SUM_DIGIT;

    digits *= digits;
    if (position >= begin && position - begin < OPS__WINDOW_SHIFT) {
        add_to_window(window, digits, position - begin);
    } else if (position < begin) {
        struct ops__fused_window small = {0, 0, position / OPS__SUM_DIGIT};

        add_to_window(&small, digits, position % OPS__SUM_DIGIT);
        put_window(&small, sum);
    } else if (digits != 0) {
        put_window(window, sum);
        window->word = (position - OPS__WINDOW_BELOW) / OPS__SUM_DIGIT;
        window->low = window->high = 0;
        add_to_window(window, digits, position - window->word * OPS__SUM_DIGIT);
    }
}

/* ds_accel_fused_adam_sum: what a thread does. */
OPS__INLINED void ops__fused_sum_thread(const struct ops__fused_launch *launch, uint32_t block,
                                        uint32_t thread)
{
    struct ds_accel_gradient_sum *sum = &launch->examined->sums[thread % OPS__FUSED_SUMS];
    struct ops__fused_window window = {0, 0, 0};
    bool has_infinite = false;
    bool has_nan = false;
    uint64_t from;
    uint64_t end;
    const struct ops__fused_tensor *tensor =
        range_of(launch, block, launch->sum_elements, &from, &end);
    uint32_t dtype = tensor->gradient_dtype;
    bool wide = (uintptr_t)tensor->gradient % (4 * stored_bytes(dtype)) == 0;

    for (uint64_t i = from + (uint64_t)thread * OPS__FUSED_AT_ONCE; i < end;
         i += OPS__FUSED_THREADS * OPS__FUSED_AT_ONCE) {
        unsigned count = end - i < OPS__FUSED_AT_ONCE ? (unsigned)(end - i) : OPS__FUSED_AT_ONCE;
        float gradient[OPS__FUSED_AT_ONCE];

        read_floats(dtype, tensor->gradient, i, count, wide && count == OPS__FUSED_AT_ONCE,
                    gradient);
        OPS__UNROLLED
        for (unsigned k = 0; k < OPS__FUSED_AT_ONCE; k++) {
            uint32_t magnitude = ops__bits(gradient[k]) & 0x7FFFFFFFu;

            has_infinite |= magnitude == 0x7F800000u;
            has_nan |= magnitude > 0x7F800000u;
            if (magnitude < 0x7F800000u)
                add_square(magnitude, &window, sum);
        }
    }
    put_window(&window, sum);
    if (has_infinite)
        *(volatile int64_t *)&sum->infinite_count = 1;
    if (has_nan)
        *(volatile int64_t *)&sum->nan_count = 1;
}

/* Add up what the threads have found, in *sum. */
OPS__INLINED void ops__fused_total(const struct ops__fused_examined *examined,
                                   struct ds_accel_gradient_sum *sum)
{
    *sum = examined->sums[0];
    for (unsigned i = 1; i < OPS__FUSED_SUMS; i++)
        ops__sum_more(sum, &examined->sums[i]);
    ops__sum_settle(sum);
}

/* ds_accel_fused_adam_finish, by one thread. */
OPS__INLINED void ops__fused_finish_thread(const struct ops__fused_finish *finish)
{
    struct ds_accel_gradient_sum sum = finish->sum;
    bool is_infinite;
    double norm;

    if (!finish->has_sum)
        ops__fused_total(finish->examined, &sum);
    is_infinite = sum.infinite_count != 0 || sum.nan_count != 0;
    norm = ops__norm(&sum, finish->gradient_scale);
    if (finish->gradient_norm)
        *finish->gradient_norm = norm;
    if (finish->found_infinite && is_infinite)
        *finish->found_infinite = 1;
    finish->examined->gradient_scale =
        (float)ops__clipped_scale(finish->gradient_scale, finish->max_norm, norm);
    finish->examined->skip = finish->skips_infinite && is_infinite;
}

#endif
