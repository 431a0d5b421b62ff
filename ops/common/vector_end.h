/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The end of the functions that vector.h begins to compile for an instruction set: included once,
 * behind the last of them. */
#ifdef OPS_VECTOR_PUSHED
#pragma clang attribute pop
#endif
