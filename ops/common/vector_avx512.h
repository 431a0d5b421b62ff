/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* vector.h for x86-64 with AVX512F: sixteen floats. For tests on CPUs without these instructions,
 * OPS_VECTOR_EMULATED is the header that emulates them. */
#ifdef OPS_VECTOR_EMULATED
#include OPS_VECTOR_EMULATED
#else
#include <immintrin.h>
#ifdef __clang__
#define OPS_VECTOR_PUSHED
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC target("avx512f,prefer-vector-width=512")
#endif
#endif

typedef __m512 vf;

OPS__INLINED size_t vf_lanes(void)
{
    return 16;
}

OPS__INLINED vf vf_set(float number)
{
    return _mm512_set1_ps(number);
}

OPS__INLINED vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

OPS__INLINED vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}

OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

OPS__INLINED vf vf_max_zero(vf number)
{
    /* The second operand if one is NaN, or if both are zeros: the sum makes +0 of -0. */
    return _mm512_add_ps(_mm512_max_ps(_mm512_setzero_ps(), number), _mm512_setzero_ps());
}

OPS__INLINED vf vf_sign(vf number)
{
    __mmask16 zero_or_nan = _mm512_cmp_ps_mask(number, _mm512_setzero_ps(), _CMP_EQ_UQ);
    __m512i sign = _mm512_and_si512(_mm512_castps_si512(number), _mm512_set1_epi32(INT32_MIN));
    __m512i one = _mm512_castps_si512(_mm512_set1_ps(1));

    return _mm512_mask_mov_ps(_mm512_castsi512_ps(_mm512_or_si512(sign, one)), zero_or_nan, number);
}

OPS__INLINED vf vf_min(vf a, vf b)
{
    /* The second operand, a, if one is NaN or both are zeros. */
    return _mm512_mask_mov_ps(_mm512_min_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
}

OPS__INLINED vf vf_max(vf a, vf b)
{
    return _mm512_mask_mov_ps(_mm512_max_ps(b, a), _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
}

OPS__INLINED vf vf_load(const void *from)
{
    return _mm512_loadu_ps(from);
}

OPS__INLINED void vf_store(void *to, vf number)
{
    _mm512_storeu_ps(to, number);
}

OPS__INLINED vf vf_load_bfloat(const void *from)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

OPS__INLINED vf vf_load_half(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
}

/* Return the upper halves of the sums of numbers and noises. */
OPS__INLINED __m256i upper_halves(vf number, __m512i noise)
{
    __m512i bits = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(number), noise), 16);
    __mmask16 is_nan = _mm512_cmp_ps_mask(number, number, _CMP_UNORD_Q);
    __m512i result = _mm512_mask_mov_epi32(bits, is_nan, _mm512_set1_epi32(0x7FC0));

    return _mm512_cvtepi32_epi16(result);
}

OPS__INLINED __m256i nearest_even(vf number)
{
    __m512i bits = _mm512_castps_si512(number);
    __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));

    return upper_halves(number, _mm512_add_epi32(last, _mm512_set1_epi32(0x7FFF)));
}

OPS__INLINED void vf_store_bfloat(void *to, vf number)
{
    _mm256_storeu_si256((__m256i *)to, nearest_even(number));
}

OPS__INLINED void vf_store_bfloat_random(void *to, vf number, const uint16_t *random)
{
    __m512i noise = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)random));

    _mm256_storeu_si256((__m256i *)to, upper_halves(number, noise));
}

OPS__INLINED void vf_store_half(void *to, vf number)
{
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(number, _MM_FROUND_TO_NEAREST_INT));
}

#define OPS_VECTOR_STREAMS

OPS__INLINED void vf_stream_bfloat_pair(void *to, vf first, vf second)
{
    _mm256_stream_si256((__m256i *)to, nearest_even(first));
    _mm256_stream_si256((__m256i *)to + 1, nearest_even(second));
}

OPS__INLINED void vf_stream_half_pair(void *to, vf first, vf second)
{
    _mm256_stream_si256((__m256i *)to, _mm512_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT));
    _mm256_stream_si256((__m256i *)to + 1, _mm512_cvtps_ph(second, _MM_FROUND_TO_NEAREST_INT));
}

OPS__INLINED void vf_stream_end(void)
{
    _mm_sfence();
}

OPS__INLINED bool vf_is_finite(vf number)
{
    vf difference = _mm512_sub_ps(number, number);

    return _mm512_cmp_ps_mask(difference, difference, _CMP_UNORD_Q) == 0;
}

typedef __m512i vu;

OPS__INLINED size_t vu_lanes(void)
{
    return 8;
}

OPS__INLINED vu vu_set(uint64_t number)
{
    return _mm512_set1_epi64((int64_t)number);
}

OPS__INLINED vu vu_count(uint64_t first)
{
    /* vu_store_words() unpacks the elements with an even index before the others. */
    return _mm512_add_epi64(vu_set(first), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
}

OPS__INLINED vu vu_xor(vu a, vu b)
{
    return _mm512_xor_si512(a, b);
}

OPS__INLINED vu vu_upper(vu a)
{
    return _mm512_srli_epi64(a, 32);
}

OPS__INLINED vu vu_product(vu a, vu b)
{
    return _mm512_mul_epu32(a, b);
}

OPS__INLINED void vu_store_words(uint16_t *to, vu a, vu b, vu c, vu d)
{
    __m512i left = _mm512_mask_mov_epi32(a, 0xAAAA, _mm512_slli_epi64(b, 32));
    __m512i right = _mm512_mask_mov_epi32(c, 0xAAAA, _mm512_slli_epi64(d, 32));

    _mm512_storeu_si512(to, _mm512_unpacklo_epi64(left, right));
    _mm512_storeu_si512(to + 32, _mm512_unpackhi_epi64(left, right));
}
