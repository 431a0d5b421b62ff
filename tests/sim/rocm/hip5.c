/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* libamdhip64.so.5 of ROCm 5.2 */
#define HIP_MAJOR 5
#include "hip.c"
