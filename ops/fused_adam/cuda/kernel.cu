/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of fused_adam for CUDA. With three blocks at once on a multiprocessor, each thread has
 * enough registers, and enough accesses of memory are in flight. */
#include "fused_adam/cuda/kernel.h"

extern "C" __global__ void __launch_bounds__(OPS__FUSED_THREADS, 3)
    ds_accel_fused_adam(const __grid_constant__ struct ops__fused_launch launch)
{
    ops__fused_adam_thread(&launch, blockIdx.x, threadIdx.x);
}

extern "C" __global__ void __launch_bounds__(OPS__FUSED_THREADS, OPS__FUSED_SUM_BLOCKS)
    ds_accel_fused_adam_sum(const __grid_constant__ struct ops__fused_launch launch)
{
    ops__fused_sum_thread(&launch, blockIdx.x, threadIdx.x);
}

extern "C" __global__ void
    ds_accel_fused_adam_finish(const __grid_constant__ struct ops__fused_finish finish)
{
    ops__fused_finish_thread(&finish);
}
