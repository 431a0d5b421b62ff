/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Vectors of floats in one instruction set. A kernel is written once against these functions and
 * compiled by one file per set, which defines OPS_VECTOR_<SET> before it includes this header:
 *
 *     vf, vf_lanes()                       a vector; how many floats it has, at most MAX_LANES
 *     vf_set, _add, _sub, _mul, _div, _sqrt, _fma   rounded as IEEE 754 says;
 *                                          fma(a, b, c) = a * b + c, rounded once
 *     vf_max_zero                          0 for negative numbers and -0; NaN stays NaN
 *     vf_sign                              1 or -1; zeros and NaN stay
 *     vf_min, vf_max (a, b)                b if it is less, or greater, or NaN; else a
 *     vf_load, vf_store                    floats at any address
 *     vf_load_bfloat, vf_load_half         16-bit elements at any address
 *     vf_store_half                        rounded to nearest even
 *     vf_store_bfloat_pair                 two vectors in a row, rounded to nearest even
 *     vf_store_bfloat_pair_random          rounded with a random number of 16 bits per element
 *     vf_stream_half_pair, _bfloat_pair    two vectors in a row past the caches, if the set can, to
 *                                          an address that is a multiple of the bytes stored
 *     vf_stream_end                        no later store is visible before what was streamed
 *     vf_is_finite                         false if an element is infinite or NaN
 *
 *     vu, vu_lanes()                       a vector of 64-bit numbers
 *     vu_set, vu_xor
 *     vu_upper                             the upper halves
 *     vu_product                           of the lower halves
 *     vu_count(first)                      first, first + 1, ..., in an order of the set's choice
 *     vu_store_words(to, a, b, c, d)       in the order of vu_count(): the lower half of an element
 *                                          of a, of b, of c, of d, each in two parts, lower first
 *
 * vector_end.h follows the last function. All sets give the same bits, except for those of a NaN.
 * The compiler must not fuse operations by itself: -ffp-contract=off.
 */
#ifndef OPS_VECTOR_H
#define OPS_VECTOR_H

#include "common/half.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#if defined(OPS_VECTOR_AVX2)
#include "common/vector_avx2.h"
#elif defined(OPS_VECTOR_AVX512)
#include "common/vector_avx512.h"
#elif defined(OPS_VECTOR_NEON)
#include "common/vector_neon.h"
#elif defined(OPS_VECTOR_SVE)
#include "common/vector_sve.h"
#else
#include "common/vector_scalar.h"
#endif

#define MAX_LANES 64u /* SVE: 2048 bits */

#ifndef OPS_VECTOR_PAIRS /* the set gains nothing from two vectors at once */
OPS__INLINED void vf_store_bfloat_pair(void *to, vf first, vf second)
{
    vf_store_bfloat(to, first);
    vf_store_bfloat((char *)to + vf_lanes() * 2, second);
}

OPS__INLINED void vf_store_bfloat_pair_random(void *to, vf first, vf second, const uint16_t *random)
{
    vf_store_bfloat_random(to, first, random);
    vf_store_bfloat_random((char *)to + vf_lanes() * 2, second, random + vf_lanes());
}
#endif

#ifndef OPS_VECTOR_STREAMS
OPS__INLINED void vf_stream_bfloat_pair(void *to, vf first, vf second)
{
    vf_store_bfloat_pair(to, first, second);
}

OPS__INLINED void vf_stream_half_pair(void *to, vf first, vf second)
{
    vf_store_half(to, first);
    vf_store_half((char *)to + vf_lanes() * 2, second);
}

OPS__INLINED void vf_stream_end(void)
{
}
#endif

#endif
