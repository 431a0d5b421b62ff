/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#define SET scalar
#include "reduce_kernels.h"
