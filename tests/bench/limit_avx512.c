/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "limit.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC target("avx512f")
#endif

#define VECTOR 64
#define LIMIT_SET limit_avx512
#define LIMIT_NAME "avx512"
#define INLINED static inline __attribute__((always_inline))

#include "limit_vectors.h"

static const vw lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7};

INLINED vf root(vf number)
{
    return (vf)_mm512_sqrt_ps((__m512)number);
}

INLINED vf fused(vf a, vf b, vf c)
{
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

INLINED vf where_nan(vf number, vf yes, vf no)
{
    __mmask16 mask = _mm512_cmp_ps_mask((__m512)number, (__m512)number, _CMP_UNORD_Q);

    return (vf)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}

INLINED vf where_zero_or_nan(vf number, vf yes, vf no)
{
    __mmask16 mask = _mm512_cmp_ps_mask((__m512)number, _mm512_setzero_ps(), _CMP_EQ_UQ);

    return (vf)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}

INLINED vf load_bfloat(const char *from)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));

    return (vf)_mm512_slli_epi32(wide, 16);
}

INLINED vf load_half(const char *from)
{
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}

INLINED void store_half(char *to, vf number)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)number, _MM_FROUND_TO_NEAREST_INT));
}

INLINED void store_upper(char *to, vu a, vu b)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16((__m512i)(a >> 16)));
    _mm256_storeu_si256((__m256i *)to + 1, _mm512_cvtepi32_epi16((__m512i)(b >> 16)));
}

INLINED void stream(char *to, vb bytes)
{
    _mm512_stream_si512((__m512i *)to, (__m512i)bytes);
}

INLINED vw product(vw words, uint32_t factor)
{
    return (vw)_mm512_mul_epu32((__m512i)words, _mm512_set1_epi64(factor));
}

#include "limit_philox.h"

#include "limit_loops.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

#else
typedef int limit_no_avx512; /* ISO C wants a declaration in each file */
#endif
