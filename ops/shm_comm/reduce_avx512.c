/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#if defined(__x86_64__) || defined(OPS_VECTOR_EMULATED)
#define OPS_VECTOR_AVX512
#define SET avx512
#include "reduce_kernels.h"
#else
typedef int ops__no_avx512; /* ISO C wants a declaration in each file */
#endif
