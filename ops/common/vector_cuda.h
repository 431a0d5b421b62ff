/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The functions of vector.h that a kernel of CUDA needs: one float per thread. Each operation is
 * rounded as on the CPU, and the compiler cannot fuse two of them. */
#ifndef OPS_VECTOR_CUDA_H
#define OPS_VECTOR_CUDA_H

#include "common/half.h"

#include <cuda_fp16.h>

typedef float vf;
typedef uint64_t vu;

OPS__INLINED vf vf_set(float number)
{
    return number;
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return __fmul_rn(a, b);
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return __fdiv_rn(a, b);
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return __fsqrt_rn(a);
}

OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    return __fmaf_rn(a, b, c);
}

OPS__INLINED vu vu_set(uint64_t number)
{
    return number;
}

/* The product of the lower halves. */
OPS__INLINED vu vu_product(vu a, vu b)
{
    return (uint64_t)(uint32_t)a * (uint32_t)b;
}

OPS__INLINED vu vu_upper(vu a)
{
    return a >> 32;
}

OPS__INLINED vu vu_xor(vu a, vu b)
{
    return a ^ b;
}

OPS__INLINED vf vf_max_zero(vf number)
{
    return number > 0 ? number : number != number ? number : 0;
}

#endif
