/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Vectors of VECTOR bytes for limit_loops.h, as far as they are alike in all instruction sets that
 * have any. */
#define LANES (VECTOR / 4)
#define NOISES 4

typedef float vf __attribute__((vector_size(VECTOR)));
typedef uint32_t vu __attribute__((vector_size(VECTOR)));
typedef uint64_t vw __attribute__((vector_size(VECTOR)));
typedef vw vb;

INLINED vf set(float number)
{
    return number - (vf){0};
}

INLINED vu set_bits(uint32_t bits)
{
    return bits - (vu){0};
}

INLINED vf from_bits(vu bits)
{
    return (vf)bits;
}

INLINED vu to_bits(vf number)
{
    return (vu)number;
}
