/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "limit.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define VECTOR 16
#define LIMIT_SET limit_neon
#define LIMIT_NAME "neon"
#define INLINED static inline __attribute__((always_inline))

#include "limit_vectors.h"

static const vw lane_numbers = {0, 1};

INLINED vf root(vf number)
{
    return (vf)vsqrtq_f32((float32x4_t)number);
}

INLINED vf fused(vf a, vf b, vf c)
{
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

INLINED vf where_nan(vf number, vf yes, vf no)
{
    uint32x4_t is_number = vceqq_f32((float32x4_t)number, (float32x4_t)number);

    return (vf)vbslq_f32(is_number, (float32x4_t)no, (float32x4_t)yes);
}

INLINED vf where_zero_or_nan(vf number, vf yes, vf no)
{
    float32x4_t zero = vdupq_n_f32(0);
    uint32x4_t has_sign =
        vorrq_u32(vcgtq_f32((float32x4_t)number, zero), vcltq_f32((float32x4_t)number, zero));

    return (vf)vbslq_f32(has_sign, (float32x4_t)no, (float32x4_t)yes);
}

INLINED vf load_bfloat(const char *from)
{
    return (vf)vshll_n_u16(vld1_u16((const uint16_t *)from), 16);
}

INLINED vf load_half(const char *from)
{
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)from)));
}

INLINED void store_half(char *to, vf number)
{
    vst1_u16((uint16_t *)to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)number)));
}

INLINED void store_upper(char *to, vu a, vu b)
{
    uint16x4_t low = vshrn_n_u32((uint32x4_t)a, 16);

    vst1q_u16((uint16_t *)to, vshrn_high_n_u32(low, (uint32x4_t)b, 16));
}

/* There is no intrinsic for a non-temporal store. */
INLINED void stream(char *to, vb bytes)
{
    *(vb *)to = bytes;
}

INLINED vw product(vw words, uint32_t factor)
{
    return (vw)vmull_u32(vmovn_u64((uint64x2_t)words), vdup_n_u32(factor));
}

#include "limit_philox.h"

#include "limit_loops.h"

#else
typedef int limit_no_neon; /* ISO C wants a declaration in each file */
#endif
