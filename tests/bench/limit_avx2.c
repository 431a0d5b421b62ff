/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "limit.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#define VECTOR 32
#define LIMIT_SET limit_avx2
#define LIMIT_NAME "avx2"
#define INLINED static inline __attribute__((always_inline))

#include "limit_vectors.h"

static const vw lane_numbers = {0, 1, 2, 3};

INLINED vf root(vf number)
{
    return (vf)_mm256_sqrt_ps((__m256)number);
}

INLINED vf fused(vf a, vf b, vf c)
{
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINED vf where_nan(vf number, vf yes, vf no)
{
    __m256 mask = _mm256_cmp_ps((__m256)number, (__m256)number, _CMP_UNORD_Q);

    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, mask);
}

INLINED vf where_zero_or_nan(vf number, vf yes, vf no)
{
    __m256 mask = _mm256_cmp_ps((__m256)number, _mm256_setzero_ps(), _CMP_EQ_UQ);

    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, mask);
}

INLINED vf load_bfloat(const char *from)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));

    return (vf)_mm256_slli_epi32(wide, 16);
}

INLINED vf load_half(const char *from)
{
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

INLINED void store_half(char *to, vf number)
{
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)number, _MM_FROUND_TO_NEAREST_INT));
}

INLINED void store_upper(char *to, vu a, vu b)
{
    __m256i packed = _mm256_packus_epi32((__m256i)(a >> 16), (__m256i)(b >> 16));

    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(packed, 0xD8));
}

INLINED void stream(char *to, vb bytes)
{
    _mm256_stream_si256((__m256i *)to, (__m256i)bytes);
}

INLINED vw product(vw words, uint32_t factor)
{
    return (vw)_mm256_mul_epu32((__m256i)words, _mm256_set1_epi64x(factor));
}

#include "limit_philox.h"

#include "limit_loops.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

#else
typedef int limit_no_avx2; /* ISO C wants a declaration in each file */
#endif
