/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Random numbers of 16 bits for stochastic rounding, by Philox4x32-10 (Salmon, Moraes, Dror, Shaw,
 * SC 2011). The key is the seed; the upper half of the counter is the step, the lower half
 * element / 8. The block's four words are the numbers of eight elements: word 0 has those of
 * elements 0 (low half) and 1 (high half), and so on.
 */
#ifndef OPS_PHILOX_H
#define OPS_PHILOX_H

#include "common/half.h"

#include <stddef.h>

#define OPS__PHILOX_LANES 16u /* blocks side by side, for vector instructions */
#define OPS__PHILOX_ELEMENTS 8u
#define OPS__PHILOX_TILE (OPS__PHILOX_LANES * OPS__PHILOX_ELEMENTS)

/* Write the numbers of count elements from element on, which is a multiple of 8. out has room for
 * count rounded up to a multiple of OPS__PHILOX_TILE. */
OPS__INLINED void ops__philox(uint64_t seed, uint64_t step, uint64_t element, size_t count,
                              uint16_t *restrict out)
{
    for (size_t done = 0; done < count; done += OPS__PHILOX_TILE) {
        uint64_t block = (element + done) / OPS__PHILOX_ELEMENTS;

        for (unsigned lane = 0; lane < OPS__PHILOX_LANES; lane++) {
            uint32_t a = (uint32_t)(block + lane);
            uint32_t b = (uint32_t)((block + lane) >> 32);
            uint32_t c = (uint32_t)step;
            uint32_t d = (uint32_t)(step >> 32);
            uint32_t low = (uint32_t)seed;
            uint32_t high = (uint32_t)(seed >> 32);
            uint16_t *to = out + done + (size_t)lane * OPS__PHILOX_ELEMENTS;

#ifdef __clang__
#pragma unroll
#else
#pragma GCC unroll 10
#endif
            for (unsigned round = 0; round < 10; round++) {
                uint64_t left = (uint64_t)0xD2511F53u * a;
                uint64_t right = (uint64_t)0xCD9E8D57u * c;

                a = (uint32_t)(right >> 32) ^ b ^ low;
                b = (uint32_t)right;
                c = (uint32_t)(left >> 32) ^ d ^ high;
                d = (uint32_t)left;
                low += 0x9E3779B9u;
                high += 0xBB67AE85u;
            }
            to[0] = (uint16_t)a;
            to[1] = (uint16_t)(a >> 16);
            to[2] = (uint16_t)b;
            to[3] = (uint16_t)(b >> 16);
            to[4] = (uint16_t)c;
            to[5] = (uint16_t)(c >> 16);
            to[6] = (uint16_t)d;
            to[7] = (uint16_t)(d >> 16);
        }
    }
}

#endif
