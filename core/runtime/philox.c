/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Random numbers as a function of their position, so that they can be computed without state, in
 * any order, and with the same bits on every machine.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011)
 * turns a 128-bit counter and a 64-bit key into four 32-bit words. The key is the seed; the upper
 * half of the counter is the subsequence, the lower half the block. Word number w of a subsequence
 * is word w mod 4 of block w / 4. An element depends only on its own words:
 *
 *     bits, 1 to 4 bytes     the low bits of word w; bool: the highest bit of word w
 *     bits, 8 bytes          words w (low) and w + 1 (high), w even
 *     uniform                u = (word >> 8) * 2^-24; float64: 53 bits of two words
 *     normal                 Box-Muller of words w and w + 1, w even: r * cos(a) is the number at
 *                            w, r * sin(a) the number at w + 1, with r = sqrt(-2 ln u), a = 2 pi v,
 *                            u = (first + 1) * 2^-32 and v = second * 2^-32; float64: the same
 *                            of the two 53-bit numbers of a block
 *
 * All other steps are arithmetic in double that IEEE 754 defines to the last bit: sums, products,
 * quotients and square roots, without fused operations. ln, sin and cos are computed by polynomials
 * in this file, because the functions of libm differ between versions and machines. The last step
 * rounds once, to nearest even, to the requested type.
 *
 * Loops without branches process one buffer of words at a time, so that the compiler can use vector
 * instructions. On x86-64 a second copy of the loops uses AVX2 if the machine has it. Both copies
 * compute the same bits.
 */
#include "base/text.h"
#include "runtime/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>
/* Use the C library's stored result of CPUID if the library has it, because the instruction is slow
 * in virtual machines. */
#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#include <sys/platform/x86.h>
#define HAS_AVX2() CPU_FEATURE_ACTIVE(AVX2)
#elif defined(__x86_64__)
#define HAS_AVX2() __builtin_cpu_supports("avx2")
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* gcc -std=c11 does not fuse operations */
#endif

#define LANES 16u /* blocks computed side by side */
#define BUFFER_BLOCKS (LANES * 4u)
#define BUFFER_WORDS (BUFFER_BLOCKS * 4u)
#define ROUNDS 10

#define INLINED static inline __attribute__((always_inline))

/* ---- Philox --------------------------------------------------------------------------------- */

#define ROUND(key_low, key_high) \
    do { \
        uint64_t left = (uint64_t)0xD2511F53u * a; \
        uint64_t right = (uint64_t)0xCD9E8D57u * c; \
        a = (uint32_t)(right >> 32) ^ b ^ (key_low); \
        b = (uint32_t)right; \
        c = (uint32_t)(left >> 32) ^ d ^ (key_high); \
        d = (uint32_t)left; \
    } while (0)

/* Compute LANES blocks, beginning with block number first; each has four words. */
INLINED void make_blocks(const uint32_t keys[ROUNDS][2], uint64_t subsequence, uint64_t first,
                         uint32_t *restrict words)
{
    uint32_t lows[LANES];
    uint32_t highs[LANES];

    for (unsigned lane = 0; lane < LANES; lane++) {
        lows[lane] = (uint32_t)(first + lane);
        highs[lane] = (uint32_t)((first + lane) >> 32);
    }
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint32_t a = lows[lane];
        uint32_t b = highs[lane];
        uint32_t c = (uint32_t)subsequence;
        uint32_t d = (uint32_t)(subsequence >> 32);

        /* Unrolled by hand: the compiler does not vectorize a nested loop here. */
        ROUND(keys[0][0], keys[0][1]);
        ROUND(keys[1][0], keys[1][1]);
        ROUND(keys[2][0], keys[2][1]);
        ROUND(keys[3][0], keys[3][1]);
        ROUND(keys[4][0], keys[4][1]);
        ROUND(keys[5][0], keys[5][1]);
        ROUND(keys[6][0], keys[6][1]);
        ROUND(keys[7][0], keys[7][1]);
        ROUND(keys[8][0], keys[8][1]);
        ROUND(keys[9][0], keys[9][1]);
        words[lane * 4] = a;
        words[lane * 4 + 1] = b;
        words[lane * 4 + 2] = c;
        words[lane * 4 + 3] = d;
    }
}

INLINED void make_keys(uint64_t seed, uint32_t keys[ROUNDS][2])
{
    keys[0][0] = (uint32_t)seed;
    keys[0][1] = (uint32_t)(seed >> 32);
    for (unsigned i = 1; i < ROUNDS; i++) {
        keys[i][0] = keys[i - 1][0] + 0x9E3779B9u;
        keys[i][1] = keys[i - 1][1] + 0xBB67AE85u;
    }
}

/* ---- elementary functions, with the same bits on every machine ------------------------------ */

/* Return ln of a number in [2^-53, 1], with ln(2^e m) = e ln 2 + 2 artanh((m - 1) / (m + 1)). */
INLINED double natural_log(double number)
{
    uint64_t bits;
    int32_t exponent;
    double mantissa;
    double s;
    double square;
    double sum;

    memcpy(&bits, &number, sizeof(bits));
    exponent = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&mantissa, &bits, sizeof(mantissa));
    exponent += mantissa > 1.41421356237309504880;
    mantissa = mantissa > 1.41421356237309504880 ? mantissa * 0.5 : mantissa;
    s = (mantissa - 1.0) / (mantissa + 1.0);
    square = s * s; /* at most 0.0295 */
    sum = 1.0 / 23;
    sum = sum * square + 1.0 / 21;
    sum = sum * square + 1.0 / 19;
    sum = sum * square + 1.0 / 17;
    sum = sum * square + 1.0 / 15;
    sum = sum * square + 1.0 / 13;
    sum = sum * square + 1.0 / 11;
    sum = sum * square + 1.0 / 9;
    sum = sum * square + 1.0 / 7;
    sum = sum * square + 1.0 / 5;
    sum = sum * square + 1.0 / 3;
    return exponent * 0.693147180559945309417 + (2.0 * s + 2.0 * s * square * sum);
}

/* Compute sin and cos of 2 pi turn, for turn in [0, 1), by Taylor series around the nearest quarter
 * turn. */
INLINED void sin_cos(double turn, double *sin_out, double *cos_out)
{
    int32_t quarter = (int32_t)(turn * 4.0 + 0.5);
    double angle = (turn * 4.0 - quarter) * 1.57079632679489661923; /* in [-pi/4, pi/4] */
    double square = angle * angle;
    double s = 1.0 / 355687428096000.0;   /* 17! */
    double c = -1.0 / 6402373705728000.0; /* 18! */
    double swap_sin;
    double swap_cos;

    s = s * square - 1.0 / 1307674368000.0;
    s = s * square + 1.0 / 6227020800.0;
    s = s * square - 1.0 / 39916800.0;
    s = s * square + 1.0 / 362880.0;
    s = s * square - 1.0 / 5040.0;
    s = s * square + 1.0 / 120.0;
    s = s * square - 1.0 / 6.0;
    s = angle + angle * square * s;
    c = c * square + 1.0 / 20922789888000.0;
    c = c * square - 1.0 / 87178291200.0;
    c = c * square + 1.0 / 479001600.0;
    c = c * square - 1.0 / 3628800.0;
    c = c * square + 1.0 / 40320.0;
    c = c * square - 1.0 / 720.0;
    c = c * square + 1.0 / 24.0;
    c = 1.0 - 0.5 * square + square * square * c;
    /* Each quarter turn replaces (s, c) by (c, -s). */
    swap_sin = (quarter & 1) != 0 ? c : s;
    swap_cos = (quarter & 1) != 0 ? -s : c;
    *sin_out = (quarter & 2) != 0 ? -swap_sin : swap_sin;
    *cos_out = (quarter & 2) != 0 ? -swap_cos : swap_cos;
}

INLINED void box_muller(double u, double v, double *pair)
{
    double radius = sqrt(-2.0 * natural_log(u));
    double s;
    double c;

    sin_cos(v, &s, &c);
    pair[0] = radius * c;
    pair[1] = radius * s;
}

/* ---- rounding ------------------------------------------------------------------------------- */

/*
 * Round to float32, "to odd": if the number is not exact in float32, the last bit of the result is
 * 1. Rounding the result to fewer bits then has the same result as rounding the number itself.
 */
INLINED uint32_t round_to_odd(double number)
{
    float near = (float)number;
    uint32_t bits;

    memcpy(&bits, &near, sizeof(bits));
    /* if the conversion rounded away from zero, step back to the next smaller magnitude (from
     * infinity to the largest finite number) */
    bits -= fabs((double)near) > fabs(number);
    return bits | ((double)near != number);
}

INLINED uint16_t to_bfloat16(double number)
{
    uint32_t bits = round_to_odd(number);

    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

INLINED uint16_t to_float16(double number)
{
    uint32_t bits = round_to_odd(number);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t size = bits & 0x7fffffffu;
    uint32_t normal;
    uint32_t subnormal;
    float small;

    /* Magnitudes from 65520 on become infinity: the addition carries into the exponent. */
    size = size > 0x47800000u ? 0x47800000u : size;
    normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    /* Below 2^-14 a number of float16 is a multiple of 2^-24. Adding 0.5 in float32 rounds to that
     * multiple. */
    memcpy(&small, &size, sizeof(small));
    small += 0.5f;
    memcpy(&subnormal, &small, sizeof(subnormal));
    subnormal -= 0x3f000000u;
    return (uint16_t)(sign | (size < 0x38800000u ? subnormal : normal));
}

static double from_float16(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    double mantissa = bits & 0x3ff;
    double size = exponent == 31  ? INFINITY
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(mantissa + 1024, exponent - 25);

    return (bits & 0x8000u) != 0 ? -size : size;
}

static double from_bfloat16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float number;

    memcpy(&number, &wide, sizeof(number));
    return number;
}

/* ---- one buffer of numbers ------------------------------------------------------------------ */

static size_t element_words(uint32_t dtype)
{
    return dtype == DS_ACCEL_DTYPE_FLOAT64 || dtype == DS_ACCEL_DTYPE_INT64 ? 2 : 1;
}

/* Convert 53 bits of two words to a number in [0, 1). */
INLINED double wide_fraction(uint32_t low, uint32_t high)
{
    return (double)high * 0x1p-32 + (double)(low >> 11) * 0x1p-53;
}

/* Compute numbers of the standard distribution, one for each element of the buffer. */
INLINED void make_standard(const struct ds_accel__numbers *numbers, const uint32_t *restrict words,
                           size_t word_count, double *restrict values)
{
    bool is_wide = numbers->dtype == DS_ACCEL_DTYPE_FLOAT64;

    if (numbers->kind == DS_ACCEL__NUMBERS_UNIFORM && !is_wide) {
        for (size_t i = 0; i < word_count; i++) {
            values[i] = (double)(int32_t)(words[i] >> 8) * 0x1p-24;
        }
    } else if (numbers->kind == DS_ACCEL__NUMBERS_UNIFORM) {
        for (size_t i = 0; i < word_count / 2; i++) {
            values[i] = wide_fraction(words[2 * i], words[2 * i + 1]);
        }
    } else if (!is_wide) {
        for (size_t i = 0; i < word_count / 2; i++) {
            box_muller(((double)words[2 * i] + 1.0) * 0x1p-32, (double)words[2 * i + 1] * 0x1p-32,
                       values + 2 * i);
        }
    } else {
        for (size_t i = 0; i < word_count / 4; i++) {
            box_muller(wide_fraction(words[4 * i], words[4 * i + 1]) + 0x1p-53,
                       wide_fraction(words[4 * i + 2], words[4 * i + 3]), values + 2 * i);
        }
    }
}

/* Scale the numbers, limit them to the bounds, round them to the type, and store them. */
INLINED void store_values(const struct ds_accel__numbers *numbers, double *restrict values,
                          size_t count, void *restrict out)
{
    const double base = numbers->base;
    const double scale = numbers->scale;
    const double least = numbers->least;
    const double most = numbers->most;

    for (size_t i = 0; i < count; i++) {
        double value = base + scale * values[i];

        value = value < least ? least : value;
        values[i] = value > most ? most : value;
    }
    switch (numbers->dtype) {
    case DS_ACCEL_DTYPE_FLOAT64:
        memcpy(out, values, count * sizeof(*values));
        break;
    case DS_ACCEL_DTYPE_FLOAT32:
        for (size_t i = 0; i < count; i++) {
            ((float *)out)[i] = (float)values[i];
        }
        break;
    case DS_ACCEL_DTYPE_FLOAT16:
        for (size_t i = 0; i < count; i++) {
            ((uint16_t *)out)[i] = to_float16(values[i]);
        }
        break;
    default:
        for (size_t i = 0; i < count; i++) {
            ((uint16_t *)out)[i] = to_bfloat16(values[i]);
        }
    }
}

INLINED void store_bits(uint32_t dtype, const uint32_t *restrict words, size_t count,
                        void *restrict out)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_INT64:
        for (size_t i = 0; i < count; i++) {
            ((uint64_t *)out)[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        }
        break;
    case DS_ACCEL_DTYPE_INT32:
        memcpy(out, words, count * sizeof(*words));
        break;
    case DS_ACCEL_DTYPE_INT16:
        for (size_t i = 0; i < count; i++) {
            ((uint16_t *)out)[i] = (uint16_t)words[i];
        }
        break;
    case DS_ACCEL_DTYPE_BOOL:
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)out)[i] = (uint8_t)(words[i] >> 31);
        }
        break;
    default:
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)out)[i] = (uint8_t)words[i];
        }
    }
}

/* Make as many elements as fit into one buffer, and return their number. word: first word of the
 * first element, counted from the start of numbers->block. */
INLINED size_t make_some(const struct ds_accel__numbers *numbers, uint64_t word, uint64_t count,
                         void *restrict out)
{
    uint32_t keys[ROUNDS][2];
    uint32_t words[BUFFER_WORDS];
    double values[BUFFER_WORDS];
    size_t per_element = element_words(numbers->dtype);
    size_t skipped = word % 4;
    size_t most = (BUFFER_WORDS - skipped) / per_element;
    size_t now = count < most ? (size_t)count : most;
    size_t block_count = (skipped + now * per_element + 3) / 4;

    make_keys(numbers->seed, keys);
    for (size_t block = 0; block < block_count; block += LANES) {
        make_blocks(keys, numbers->subsequence, numbers->block + word / 4 + block,
                    words + block * 4);
    }
    if (numbers->kind == DS_ACCEL__NUMBERS_BITS) {
        store_bits(numbers->dtype, words + skipped, now, out);
    } else {
        make_standard(numbers, words, block_count * 4, values);
        store_values(numbers, values + skipped / per_element, now, out);
    }
    return now;
}

INLINED void make(const struct ds_accel__numbers *numbers, uint64_t first, uint64_t count,
                  void *out)
{
    size_t per_element = element_words(numbers->dtype);
    char *position = out;

    while (count > 0) {
        size_t done = make_some(numbers, numbers->word + first * per_element, count, position);

        first += done;
        count -= done;
        position += done * numbers->element_bytes;
    }
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) void make_avx2(const struct ds_accel__numbers *numbers,
                                                      uint64_t first, uint64_t count, void *out)
{
    make(numbers, first, count, out);
}
#endif

static void make_anywhere(const struct ds_accel__numbers *numbers, uint64_t first, uint64_t count,
                          void *out)
{
    make(numbers, first, count, out);
}

void ds_accel__numbers_make(const struct ds_accel__numbers *numbers, uint64_t first, uint64_t count,
                            void *out)
{
#if defined(__x86_64__)
    if (HAS_AVX2()) {
        make_avx2(numbers, first, count, out);
        return;
    }
#endif
    make_anywhere(numbers, first, count, out);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Return the next larger (step 1) or smaller (step -1) number of a floating-point type, as bits.
 * sign: the type's sign bit. An infinity must not be stepped away from zero, because no number
 * follows it. */
static uint64_t step_bits(uint64_t bits, uint64_t sign, int step)
{
    int64_t order = (bits & sign) != 0 ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;

    order += step;
    return order < 0 ? sign | (uint64_t)-order : (uint64_t)order;
}

static double step_double(double number, int step)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    bits = step_bits(bits, UINT64_C(1) << 63, step);
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static double step_float(float number, int step)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    bits = (uint32_t)step_bits(bits, UINT64_C(1) << 31, step);
    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* Find the least number of the type that is >= low, and the largest number that is < high. */
static void find_bounds(struct ds_accel__numbers *numbers, double low, double high)
{
    bool is_half = numbers->dtype == DS_ACCEL_DTYPE_FLOAT16;
    double (*decode)(uint16_t bits) = is_half ? from_float16 : from_bfloat16;
    uint16_t least = is_half ? to_float16(low) : to_bfloat16(low);
    uint16_t most = is_half ? to_float16(high) : to_bfloat16(high);
    float number;

    switch (numbers->dtype) {
    case DS_ACCEL_DTYPE_FLOAT64:
        numbers->least = low;
        numbers->most = step_double(high, -1);
        break;
    case DS_ACCEL_DTYPE_FLOAT32:
        number = (float)low;
        numbers->least = (double)number < low ? step_float(number, 1) : number;
        number = (float)high;
        numbers->most = (double)number >= high ? step_float(number, -1) : number;
        break;
    default:
        assert(numbers->dtype == DS_ACCEL_DTYPE_FLOAT16 ||
               numbers->dtype == DS_ACCEL_DTYPE_BFLOAT16);
        numbers->least =
            decode(decode(least) < low ? (uint16_t)step_bits(least, 0x8000, 1) : least);
        numbers->most = decode(decode(most) >= high ? (uint16_t)step_bits(most, 0x8000, -1) : most);
    }
}

static int32_t prepare_bits(struct ds_accel__numbers *numbers, const char *call)
{
    switch (numbers->dtype) {
    case DS_ACCEL_DTYPE_INT8:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_BOOL:
        numbers->element_bytes = 1;
        break;
    case DS_ACCEL_DTYPE_INT16:
        numbers->element_bytes = 2;
        break;
    case DS_ACCEL_DTYPE_INT32:
        numbers->element_bytes = 4;
        break;
    case DS_ACCEL_DTYPE_INT64:
        numbers->element_bytes = 8;
        break;
    default:
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: dtype %u: bits fill only integers and bool", call,
                               numbers->dtype);
    }
    return DS_ACCEL_OK;
}

static int32_t prepare_uniform(struct ds_accel__numbers *numbers, double low, double high,
                               const char *call)
{
    if (!isfinite(low) || !isfinite(high) || !(low < high) || !isfinite(high - low)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: [%g, %g) is not a finite range", call,
                               low, high);
    }
    numbers->base = low;
    numbers->scale = high - low;
    find_bounds(numbers, low, high);
    if (!isfinite(numbers->least) || !(numbers->least <= numbers->most)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: dtype %u has no number in [%g, %g)", call,
                               numbers->dtype, low, high);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__numbers_prepare(struct ds_accel__numbers *numbers, double first, double second,
                                  const char *call)
{
    if (numbers->kind == DS_ACCEL__NUMBERS_BITS) {
        return prepare_bits(numbers, call);
    }
    switch (numbers->dtype) {
    case DS_ACCEL_DTYPE_FLOAT64:
        numbers->element_bytes = 8;
        break;
    case DS_ACCEL_DTYPE_FLOAT32:
        numbers->element_bytes = 4;
        break;
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_BFLOAT16:
        numbers->element_bytes = 2;
        break;
    default:
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: dtype %u: expected float64, float32, float16 or bfloat16", call,
                               numbers->dtype);
    }
    if (numbers->kind == DS_ACCEL__NUMBERS_UNIFORM) {
        return prepare_uniform(numbers, first, second, call);
    }
    if (!isfinite(first) || !isfinite(second) || second < 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: mean %g and standard deviation %g: expected finite numbers, "
                               "the second not negative",
                               call, first, second);
    }
    numbers->base = first;
    numbers->scale = second;
    numbers->least = -INFINITY;
    numbers->most = INFINITY;
    return DS_ACCEL_OK;
}

int32_t ds_accel__numbers_place(struct ds_accel__numbers *numbers, uint64_t count,
                                struct ds_accel__numbers *end_out)
{
    const uint64_t per_element = element_words(numbers->dtype);
    struct ds_accel__numbers start = *numbers;
    uint64_t end; /* counted in words from the start of block start.block */

    start.word += start.word % (uint32_t)per_element;
    if (start.word == 4 && start.block < UINT64_MAX) {
        start.word = 0;
        start.block++;
    }
    end = start.word + count * per_element;
    if (count > UINT64_MAX / 4 / per_element || start.word == 4 ||
        (end + 3) / 4 - 1 > UINT64_MAX - start.block) {
        return ds_accel__error(
            DS_ACCEL_ERR_LIMIT,
            "the subsequence ends at block %llu: from block %llu it has fewer than %llu elements",
            (unsigned long long)UINT64_MAX, (unsigned long long)numbers->block,
            (unsigned long long)count);
    }
    *numbers = start;
    *end_out = start;
    end_out->word = end % 4;
    end_out->block = start.block + end / 4;
    if (end_out->block < start.block) { /* the subsequence is used up: there is no further block */
        end_out->block = UINT64_MAX;
        end_out->word = 4;
    }
    return DS_ACCEL_OK;
}
