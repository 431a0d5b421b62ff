/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The instruction sets for which kernels are compiled, and which of them this CPU runs. */
#ifndef OPS_ISA_H
#define OPS_ISA_H

#include <stdbool.h>

enum ops__isa {
    OPS__SCALAR,
    OPS__AVX2,   /* with FMA and F16C */
    OPS__AVX512, /* AVX512F */
    OPS__NEON,
    OPS__SVE,
    OPS__ISA_COUNT
};

/* Return the set that calls use: the best one, or what DS_ACCEL_OPS_ISA names if the CPU has it. */
enum ops__isa ops__isa(void);
const char *ops__isa_name(void);
/* Return the names of the sets that this CPU has, best first, ended by NULL. */
const char *const *ops__isa_names(void);
/* The same for ops without vector code. */
const char *ops__scalar_name(void);
const char *const *ops__scalar_names(void);

#endif
