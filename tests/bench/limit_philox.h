/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Philox4x32-10 for the vectors of limit_loops.h. The including file defines vw, a vector of
 * uint64_t with half as many lanes as vf, and vw product(vw, uint32_t): the products of the lower
 * halves with a constant.
 */

/* Combine words, which are in the lower halves of a and b, to noise for two vectors. */
INLINED void spread(vw a, vw b, vu noise[2])
{
    vu words = (vu)((a & 0xFFFFFFFFu) | (b << 32));

    noise[0] = words & 0xFFFFu;
    noise[1] = words >> 16;
}

INLINED void random_bits(uint64_t block, vu noise[4])
{
    vw a = lane_numbers + block;
    vw b = (vw){0};
    vw c = (vw){0} + 1;
    vw d = (vw){0};
    uint32_t low = 1;
    uint32_t high = 2;

    for (unsigned round = 0; round < 10; round++) {
        vw left = product(a, 0xD2511F53u);
        vw right = product(c, 0xCD9E8D57u);

        a = (right >> 32) ^ b ^ low;
        b = right;
        c = (left >> 32) ^ d ^ high;
        d = left;
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    spread(a, b, noise);
    spread(c, d, noise + 2);
}
