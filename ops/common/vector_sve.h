/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* vector.h for AArch64 with SVE: as many floats as the registers of this CPU hold, 4 to 64. */
#ifdef __clang__
#define OPS_VECTOR_PUSHED
#pragma clang attribute push(__attribute__((target("sve"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+sve")
#endif
#include <arm_sve.h>

typedef svfloat32_t vf;

#define ALL svptrue_b32()

OPS__INLINED size_t vf_lanes(void)
{
    return svcntw();
}

OPS__INLINED vf vf_set(float number)
{
    return svdup_f32(number);
}

OPS__INLINED vf vf_add(vf a, vf b)
{
    return svadd_f32_x(ALL, a, b);
}

OPS__INLINED vf vf_sub(vf a, vf b)
{
    return svsub_f32_x(ALL, a, b);
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return svmul_f32_x(ALL, a, b);
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return svdiv_f32_x(ALL, a, b);
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return svsqrt_f32_x(ALL, a);
}

OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    return svmla_f32_x(ALL, c, a, b);
}

OPS__INLINED vf vf_max_zero(vf number)
{
    return svmax_n_f32_x(ALL, number, 0);
}

OPS__INLINED vf vf_sign(vf number)
{
    svbool_t not_zero =
        svorr_b_z(ALL, svcmpgt_n_f32(ALL, number, 0), svcmplt_n_f32(ALL, number, 0));
    svuint32_t sign = svand_n_u32_x(ALL, svreinterpret_u32_f32(number), 0x80000000u);
    svuint32_t one = svorr_n_u32_x(ALL, sign, 0x3F800000u);

    return svsel_f32(not_zero, svreinterpret_f32_u32(one), number);
}

OPS__INLINED vf vf_min(vf a, vf b)
{
    return svsel_f32(svorr_b_z(ALL, svcmplt_f32(ALL, b, a), svcmpuo_f32(ALL, b, b)), b, a);
}

OPS__INLINED vf vf_max(vf a, vf b)
{
    return svsel_f32(svorr_b_z(ALL, svcmpgt_f32(ALL, b, a), svcmpuo_f32(ALL, b, b)), b, a);
}

OPS__INLINED vf vf_load(const void *from)
{
    return svld1_f32(ALL, (const float *)from);
}

OPS__INLINED void vf_store(void *to, vf number)
{
    svst1_f32(ALL, (float *)to, number);
}

OPS__INLINED vf vf_load_bfloat(const void *from)
{
    svuint32_t wide = svld1uh_u32(ALL, (const uint16_t *)from);

    return svreinterpret_f32_u32(svlsl_n_u32_x(ALL, wide, 16));
}

OPS__INLINED vf vf_load_half(const void *from)
{
    svuint32_t wide = svld1uh_u32(ALL, (const uint16_t *)from);

    return svcvt_f32_f16_x(ALL, svreinterpret_f16_u32(wide));
}

OPS__INLINED void store_upper_halves(void *to, vf number, svuint32_t noise)
{
    svuint32_t sum = svadd_u32_x(ALL, svreinterpret_u32_f32(number), noise);
    svuint32_t bits = svlsr_n_u32_x(ALL, sum, 16);

    svst1h_u32(ALL, (uint16_t *)to,
               svsel_u32(svcmpuo_f32(ALL, number, number), svdup_u32(0x7FC0), bits));
}

OPS__INLINED void vf_store_bfloat(void *to, vf number)
{
    svuint32_t bits = svreinterpret_u32_f32(number);
    svuint32_t last = svand_n_u32_x(ALL, svlsr_n_u32_x(ALL, bits, 16), 1);

    store_upper_halves(to, number, svadd_n_u32_x(ALL, last, 0x7FFF));
}

OPS__INLINED void vf_store_bfloat_random(void *to, vf number, const uint16_t *random)
{
    store_upper_halves(to, number, svld1uh_u32(ALL, random));
}

OPS__INLINED void vf_store_half(void *to, vf number)
{
    svst1h_u32(ALL, (uint16_t *)to, svreinterpret_u32_f16(svcvt_f16_f32_x(ALL, number)));
}

OPS__INLINED bool vf_is_finite(vf number)
{
    vf difference = svsub_f32_x(ALL, number, number);

    return !svptest_any(ALL, svcmpuo_f32(ALL, difference, difference));
}

typedef svuint64_t vu;

OPS__INLINED size_t vu_lanes(void)
{
    return svcntd();
}

OPS__INLINED vu vu_set(uint64_t number)
{
    return svdup_u64(number);
}

OPS__INLINED vu vu_count(uint64_t first)
{
    return svindex_u64(first, 1);
}

OPS__INLINED vu vu_xor(vu a, vu b)
{
    return sveor_u64_x(ALL, a, b);
}

OPS__INLINED vu vu_upper(vu a)
{
    return svlsr_n_u64_x(ALL, a, 32);
}

OPS__INLINED vu vu_product(vu a, vu b)
{
    return svmul_u64_x(ALL, svextw_u64_x(ALL, a), svextw_u64_x(ALL, b));
}

OPS__INLINED void vu_store_words(uint16_t *to, vu a, vu b, vu c, vu d)
{
    /* The even words, each followed by that of the other vector. */
    svuint32_t left = svtrn1_u32(svreinterpret_u32_u64(a), svreinterpret_u32_u64(b));
    svuint32_t right = svtrn1_u32(svreinterpret_u32_u64(c), svreinterpret_u32_u64(d));
    vu first = svreinterpret_u64_u32(left);
    vu second = svreinterpret_u64_u32(right);

    svst1_u16(svptrue_b16(), to, svreinterpret_u16_u64(svzip1_u64(first, second)));
    svst1_u16(svptrue_b16(), to + svcnth(), svreinterpret_u16_u64(svzip2_u64(first, second)));
}
