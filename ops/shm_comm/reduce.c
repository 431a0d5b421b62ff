/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "reduce.h"

#include "common/float_mode.h"
#include "common/isa.h"

/* Below this size, vectors gain nothing. */
#define SCALAR_BYTES 64

size_t ops__element_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_BFLOAT16:
        return 2;
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_INT32:
        return 4;
    case DS_ACCEL_DTYPE_INT64:
        return 8;
    default:
        return 0;
    }
}

void ops__reduce(const struct ops__reduction *reduction)
{
    static void (*const kernels[OPS__ISA_COUNT])(const struct ops__reduction *) = {
        [OPS__SCALAR] = ops__reduce_scalar,
#if defined(__x86_64__)
        [OPS__AVX2] = ops__reduce_avx2,
        [OPS__AVX512] = ops__reduce_avx512,
#elif defined(__aarch64__)
        [OPS__NEON] = ops__reduce_neon,
        [OPS__SVE] = ops__reduce_sve,
#endif
    };
    OPS__STANDARD_FLOATS;

    if (reduction->count * ops__element_bytes(reduction->dtype) < SCALAR_BYTES)
        ops__reduce_scalar(reduction);
    else
        kernels[ops__isa()](reduction);
}
