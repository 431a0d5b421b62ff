/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The kernels of Adam in one instruction set. The including file defines OPS_VECTOR_<SET> and
 * SET, the end of the functions' names. */
#include "common/adam.h"
#include "common/vector.h"

#include "common/adam_formula.h"

#define KERNEL NAME(ops__adam_step_, SET)
#define KERNEL_CONSTANTS struct ops__adam
#define KERNEL_STATES 2
#define KERNEL_COPIES 1
#define KERNEL_UPDATE adam_step
#define KERNEL_FINISH adam_finish_step
#include "common/optimizer_kernel.h"

#define KERNEL NAME(ops__adam_undo_, SET)
#define KERNEL_CONSTANTS struct ops__adam
#define KERNEL_STATES 2
#define KERNEL_COPIES 0
#define KERNEL_UPDATE adam_undo
#define KERNEL_FINISH adam_finish_undo
#include "common/optimizer_kernel.h"

#include "common/vector_end.h"
