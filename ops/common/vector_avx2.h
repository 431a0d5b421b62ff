/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* vector.h for x86-64 with AVX2, FMA and F16C: eight floats. */
#include <immintrin.h>

#ifdef __clang__
#define OPS_VECTOR_PUSHED
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

typedef __m256 vf;

OPS__INLINED size_t vf_lanes(void)
{
    return 8;
}

OPS__INLINED vf vf_set(float number)
{
    return _mm256_set1_ps(number);
}

OPS__INLINED vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

OPS__INLINED vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}

OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

OPS__INLINED vf vf_max_zero(vf number)
{
    /* The second operand if one is NaN, or if both are zeros: the sum makes +0 of -0. */
    return _mm256_add_ps(_mm256_max_ps(_mm256_setzero_ps(), number), _mm256_setzero_ps());
}

OPS__INLINED vf vf_sign(vf number)
{
    vf zero_or_nan = _mm256_cmp_ps(number, _mm256_setzero_ps(), _CMP_EQ_UQ);
    vf sign = _mm256_and_ps(number, _mm256_set1_ps(-0.0f));

    return _mm256_blendv_ps(_mm256_or_ps(sign, _mm256_set1_ps(1)), number, zero_or_nan);
}

OPS__INLINED vf vf_load(const void *from)
{
    return _mm256_loadu_ps((const float *)from);
}

OPS__INLINED void vf_store(void *to, vf number)
{
    _mm256_storeu_ps((float *)to, number);
}

OPS__INLINED vf vf_load_bfloat(const void *from)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));

    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

OPS__INLINED vf vf_load_half(const void *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

OPS__INLINED void store_upper_halves(void *to, vf number, __m256i noise)
{
    __m256i bits = _mm256_srli_epi32(_mm256_add_epi32(_mm256_castps_si256(number), noise), 16);
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(number, number, _CMP_UNORD_Q));
    __m256i result = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7FC0), is_nan);
    __m256i packed = _mm256_packus_epi32(result, result);

    _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

OPS__INLINED void vf_store_bfloat(void *to, vf number)
{
    __m256i bits = _mm256_castps_si256(number);
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));

    store_upper_halves(to, number, _mm256_add_epi32(last, _mm256_set1_epi32(0x7FFF)));
}

OPS__INLINED void vf_store_bfloat_random(void *to, vf number, const uint16_t *random)
{
    store_upper_halves(to, number, _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)random)));
}

OPS__INLINED void vf_store_half(void *to, vf number)
{
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(number, _MM_FROUND_TO_NEAREST_INT));
}

OPS__INLINED bool vf_is_finite(vf number)
{
    vf difference = _mm256_sub_ps(number, number);

    return _mm256_movemask_ps(_mm256_cmp_ps(difference, difference, _CMP_UNORD_Q)) == 0;
}
