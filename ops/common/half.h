/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conversions of single elements between float and the two 16-bit types. The vector code of every
 * instruction set computes the same bits. */
#ifndef OPS_HALF_H
#define OPS_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define OPS__INLINED static __device__ __forceinline__
#else
#define OPS__INLINED static inline __attribute__((always_inline))
#endif

OPS__INLINED uint32_t ops__bits(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

OPS__INLINED float ops__float(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

OPS__INLINED float ops__bfloat_to_float(uint16_t bits)
{
    return ops__float((uint32_t)bits << 16);
}

/* Add noise to the 16 bits that are dropped, and drop them: 0x7FFF plus the lowest bit that stays
 * rounds to nearest even, a random number of 16 bits stochastically. */
OPS__INLINED uint16_t ops__float_to_bfloat(float number, uint32_t noise)
{
    return number != number ? 0x7FC0 : (uint16_t)((ops__bits(number) + noise) >> 16);
}

OPS__INLINED uint32_t ops__nearest_even(float number)
{
    return 0x7FFFu + ((ops__bits(number) >> 16) & 1u);
}

OPS__INLINED float ops__half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = half & 0x7FFFu;

    if (rest >= 0x7C00u) /* infinite, or a NaN, which becomes quiet */
        return ops__float(sign | (rest << 13) | 0x7F800000u | (rest > 0x7C00u ? 0x400000u : 0));
    if (rest < 0x400u) { /* a multiple of 2^-24 */
        float magnitude = (float)rest * 0x1p-24f;

        return ops__float(ops__bits(magnitude) | sign);
    }
    return ops__float(sign | ((rest << 13) + (112u << 23)));
}

OPS__INLINED uint16_t ops__float_to_half(float number)
{
    uint32_t bits = ops__bits(number);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;

    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
    if (magnitude >= 0x477FF000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: rounded by the addition to a multiple of 2^-24 */
        float shifted = ops__float(magnitude) + 0.5f;

        return (uint16_t)(sign | (ops__bits(shifted) - 0x3F000000u));
    }
    magnitude += 0xFFFu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((magnitude - (112u << 23)) >> 13));
}

#endif
