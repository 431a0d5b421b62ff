/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "limit.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define LANES 1u
#define NOISES 8u
#define LIMIT_SET limit_scalar
#define LIMIT_NAME "scalar"
#define INLINED static inline __attribute__((always_inline))

typedef float vf;
typedef uint32_t vu;
typedef uint64_t vb;

INLINED vf set(float number)
{
    return number;
}

INLINED vu set_bits(uint32_t bits)
{
    return bits;
}

INLINED vf from_bits(vu bits)
{
    vf number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

INLINED vu to_bits(vf number)
{
    vu bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

INLINED vf root(vf number)
{
    return sqrtf(number);
}

/* The sum in double is rounded to odd, so that the second rounding, to float, is right. */
INLINED vf fused(vf a, vf b, vf c)
{
    double product = (double)a * (double)b;
    double sum = product + (double)c;
    double part = sum - product;
    double error = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;

    memcpy(&bits, &sum, sizeof(bits));
    if ((error < 0 || error > 0) && bits % 2 == 0) {
        bits += (error > 0) == (sum > 0) ? 1u : (uint64_t)-1;
        memcpy(&sum, &bits, sizeof(sum));
    }
    return (vf)sum;
}

INLINED vf where_nan(vf number, vf yes, vf no)
{
    return number != number ? yes : no;
}

INLINED vf where_zero_or_nan(vf number, vf yes, vf no)
{
    return number > 0 || number < 0 ? no : yes;
}

INLINED vf load_bfloat(const char *from)
{
    uint16_t bits;

    memcpy(&bits, from, sizeof(bits));
    return from_bits((vu)bits << 16);
}

/* A product moves the exponent and normalizes. */
INLINED vf load_half(const char *from)
{
    uint16_t bits;
    vu magnitude;

    memcpy(&bits, from, sizeof(bits));
    magnitude = to_bits(from_bits((bits & 0x7FFFu) << 13) * 0x1p112F);
    if ((bits & 0x7C00u) == 0x7C00u) {
        magnitude |= 0x7F800000u;
    }
    return from_bits(magnitude | (bits & 0x8000u) << 16);
}

INLINED void store_half(char *to, vf number)
{
    vu bits = to_bits(number);
    vu magnitude = bits & 0x7FFFFFFFu;
    uint16_t half;

    if (magnitude >= 0x47800000u) { /* too large, infinite or NaN */
        half = magnitude > 0x7F800000u ? 0x7E00 : 0x7C00;
    } else if (magnitude < 0x38800000u) { /* subnormal: the sum rounds */
        half = (uint16_t)(to_bits(from_bits(magnitude) + 0.5F) - 0x3F000000u);
    } else {
        half = (uint16_t)((magnitude + 0xC8000FFFu + ((magnitude >> 13) & 1)) >> 13);
    }
    half |= (uint16_t)(bits >> 16 & 0x8000u);
    memcpy(to, &half, sizeof(half));
}

INLINED void store_upper(char *to, vu a, vu b)
{
    uint16_t halves[2] = {(uint16_t)(a >> 16), (uint16_t)(b >> 16)};

    memcpy(to, halves, sizeof(halves));
}

INLINED void stream(char *to, vb bytes)
{
#if defined(__x86_64__)
    _mm_stream_si64((long long *)to, (long long)bytes);
#else
    memcpy(to, &bytes, sizeof(bytes));
#endif
}

INLINED void random_bits(uint64_t block, vu noise[8])
{
    uint32_t word[4] = {(uint32_t)block, (uint32_t)(block >> 32), 1, 0};
    uint32_t low = 1;
    uint32_t high = 2;

    for (unsigned round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)0xD2511F53u * word[0];
        uint64_t right = (uint64_t)0xCD9E8D57u * word[2];

        word[0] = (uint32_t)(right >> 32) ^ word[1] ^ low;
        word[1] = (uint32_t)right;
        word[2] = (uint32_t)(left >> 32) ^ word[3] ^ high;
        word[3] = (uint32_t)left;
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    for (unsigned i = 0; i < 8; i++) {
        noise[i] = i % 2 == 0 ? word[i / 2] & 0xFFFFu : word[i / 2] >> 16;
    }
}

#include "limit_loops.h"
