/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#if defined(__x86_64__)
#define OPS_VECTOR_AVX2
#define SET avx2
#include "reduce_kernels.h"
#else
typedef int ops__no_avx2; /* ISO C wants a declaration in each file */
#endif
