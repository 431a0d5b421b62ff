/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* vector.h for AArch64, whose base instruction set has NEON: four floats. */
#include <arm_neon.h>

typedef float32x4_t vf;

OPS__INLINED size_t vf_lanes(void)
{
    return 4;
}

OPS__INLINED vf vf_set(float number)
{
    return vdupq_n_f32(number);
}

OPS__INLINED vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

OPS__INLINED vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return vsqrtq_f32(a);
}

OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

OPS__INLINED vf vf_max_zero(vf number)
{
    return vmaxq_f32(number, vdupq_n_f32(0));
}

OPS__INLINED vf vf_sign(vf number)
{
    uint32x4_t not_zero =
        vorrq_u32(vcgtq_f32(number, vdupq_n_f32(0)), vcltq_f32(number, vdupq_n_f32(0)));
    vf one = vbslq_f32(vdupq_n_u32(0x80000000u), number, vdupq_n_f32(1));

    return vbslq_f32(not_zero, one, number);
}

OPS__INLINED vf vf_min(vf a, vf b)
{
    return vbslq_f32(vorrq_u32(vcltq_f32(b, a), vmvnq_u32(vceqq_f32(b, b))), b, a);
}

OPS__INLINED vf vf_max(vf a, vf b)
{
    return vbslq_f32(vorrq_u32(vcgtq_f32(b, a), vmvnq_u32(vceqq_f32(b, b))), b, a);
}

OPS__INLINED vf vf_load(const void *from)
{
    return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)from));
}

OPS__INLINED void vf_store(void *to, vf number)
{
    vst1q_u8((uint8_t *)to, vreinterpretq_u8_f32(number));
}

OPS__INLINED vf vf_load_bfloat(const void *from)
{
    uint16x4_t bits = vreinterpret_u16_u8(vld1_u8((const uint8_t *)from));

    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
}

OPS__INLINED vf vf_load_half(const void *from)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)from)));
}

OPS__INLINED void store_upper_halves(void *to, vf number, uint32x4_t noise)
{
    uint32x4_t bits = vshrq_n_u32(vaddq_u32(vreinterpretq_u32_f32(number), noise), 16);
    uint32x4_t result = vbslq_u32(vceqq_f32(number, number), bits, vdupq_n_u32(0x7FC0));

    vst1_u8((uint8_t *)to, vreinterpret_u8_u16(vmovn_u32(result)));
}

OPS__INLINED void vf_store_bfloat(void *to, vf number)
{
    uint32x4_t bits = vreinterpretq_u32_f32(number);
    uint32x4_t last = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));

    store_upper_halves(to, number, vaddq_u32(last, vdupq_n_u32(0x7FFF)));
}

OPS__INLINED void vf_store_bfloat_random(void *to, vf number, const uint16_t *random)
{
    store_upper_halves(to, number, vmovl_u16(vld1_u16(random)));
}

OPS__INLINED void vf_store_half(void *to, vf number)
{
    vst1_u8((uint8_t *)to, vreinterpret_u8_f16(vcvt_f16_f32(number)));
}

OPS__INLINED bool vf_is_finite(vf number)
{
    vf difference = vsubq_f32(number, number);

    return vminvq_u32(vceqq_f32(difference, difference)) != 0;
}

typedef uint64x2_t vu;

OPS__INLINED size_t vu_lanes(void)
{
    return 2;
}

OPS__INLINED vu vu_set(uint64_t number)
{
    return vdupq_n_u64(number);
}

OPS__INLINED vu vu_count(uint64_t first)
{
    return vcombine_u64(vcreate_u64(first), vcreate_u64(first + 1));
}

OPS__INLINED vu vu_xor(vu a, vu b)
{
    return veorq_u64(a, b);
}

OPS__INLINED vu vu_upper(vu a)
{
    return vshrq_n_u64(a, 32);
}

OPS__INLINED vu vu_product(vu a, vu b)
{
    return vmull_u32(vmovn_u64(a), vmovn_u64(b));
}

OPS__INLINED void vu_store_words(uint16_t *to, vu a, vu b, vu c, vu d)
{
    uint64x2_t left = vsliq_n_u64(a, b, 32);
    uint64x2_t right = vsliq_n_u64(c, d, 32);

    vst1q_u16(to, vreinterpretq_u16_u64(vzip1q_u64(left, right)));
    vst1q_u16(to + 8, vreinterpretq_u16_u64(vzip2q_u64(left, right)));
}
