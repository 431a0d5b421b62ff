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
 *     vf_load, vf_store                    floats at any address
 *     vf_load_bfloat, vf_load_half         16-bit elements at any address
 *     vf_store_bfloat, vf_store_half       rounded to nearest even
 *     vf_store_bfloat_random               rounded with a random number of 16 bits per element
 *     vf_is_finite                         false if an element is infinite or NaN
 *
 * vector_end.h follows the last function. All sets give the same bits. The compiler must not fuse
 * operations by itself: -ffp-contract=off.
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

#endif
