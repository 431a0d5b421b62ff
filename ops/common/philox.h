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

#include "common/vector.h"

#include "common/philox_round.h"

/* Elements whose numbers are made at once, at most. */
#define OPS__PHILOX_MOST (2 * (MAX_LANES / 2) * OPS__PHILOX_ELEMENTS)

/* Write the numbers of count elements from element on, which is a multiple of 8, and of at most
 * OPS__PHILOX_MOST - 1 behind them. */
OPS__INLINED void ops__philox(uint64_t seed, uint64_t step, uint64_t element, size_t count,
                              uint16_t *out)
{
    size_t elements = vu_lanes() * OPS__PHILOX_ELEMENTS;

    for (size_t done = 0; done < count; done += 2 * elements) {
        /* Two vectors, because a round waits for the product of the one before. */
        uint64_t block = (element + done) / OPS__PHILOX_ELEMENTS;
        vu a0 = vu_count(block);
        vu a1 = vu_count(block + vu_lanes());
        vu b0 = vu_upper(a0);
        vu b1 = vu_upper(a1);
        vu c0 = vu_set((uint32_t)step);
        vu c1 = c0;
        vu d0 = vu_set(step >> 32);
        vu d1 = d0;
        uint32_t low = (uint32_t)seed;
        uint32_t high = (uint32_t)(seed >> 32);

#ifdef __clang__
#pragma unroll
#else
#pragma GCC unroll 10
#endif
        for (unsigned round = 0; round < 10; round++) {
            ops__philox_round(&a0, &b0, &c0, &d0, vu_set(low), vu_set(high));
            ops__philox_round(&a1, &b1, &c1, &d1, vu_set(low), vu_set(high));
            low += 0x9E3779B9u;
            high += 0xBB67AE85u;
        }
        vu_store_words(out + done, a0, b0, c0, d0);
        vu_store_words(out + done + elements, a1, b1, c1, d1);
    }
}

#endif
