/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#if defined(__aarch64__)
#define OPS_VECTOR_SVE
#define SET sve
#include "reduce_kernels.h"
#else
typedef int ops__no_sve; /* ISO C wants a declaration in each file */
#endif
