/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#if defined(__aarch64__)
#define OPS_VECTOR_NEON
#define SET neon
#include "reduce_kernels.h"
#else
typedef int ops__no_neon; /* ISO C wants a declaration in each file */
#endif
