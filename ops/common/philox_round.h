/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A round of Philox4x32-10 (philox.h). The including file has the vectors of 64-bit numbers: vu and
 * the functions of vector.h. Included once. */
#define OPS__PHILOX_ELEMENTS 8u /* of a block */

/* One round of the blocks (a, b, c, d): only the lower half of each element counts. */
OPS__INLINED void ops__philox_round(vu *a, vu *b, vu *c, vu *d, vu low, vu high)
{
    vu left = vu_product(*a, vu_set(0xD2511F53u));
    vu right = vu_product(*c, vu_set(0xCD9E8D57u));

    *a = vu_xor(vu_upper(right), vu_xor(*b, low));
    *b = right;
    *c = vu_xor(vu_upper(left), vu_xor(*d, high));
    *d = left;
}
