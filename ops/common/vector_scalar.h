/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* vector.h without vector instructions: one float. */
typedef float vf;

OPS__INLINED size_t vf_lanes(void)
{
    return 1;
}

OPS__INLINED vf vf_set(float number)
{
    return number;
}

OPS__INLINED vf vf_add(vf a, vf b)
{
    return a + b;
}

OPS__INLINED vf vf_sub(vf a, vf b)
{
    return a - b;
}

OPS__INLINED vf vf_mul(vf a, vf b)
{
    return a * b;
}

OPS__INLINED vf vf_div(vf a, vf b)
{
    return a / b;
}

OPS__INLINED vf vf_sqrt(vf a)
{
    return sqrtf(a);
}

/*
 * libm's fmaf() is slow where the CPU has no such instruction. The product of two floats is exact
 * in double. If the sum is not, its last bit is set to 1 (Boldo, Melquiond: Emulation of FMA and
 * correctly rounded sums, 2008): then the second rounding, to float, gives what one would have.
 */
OPS__INLINED vf vf_fma(vf a, vf b, vf c)
{
    double product = (double)a * (double)b;
    double sum = product + (double)c;
    double part = sum - product;
    double error = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;

    memcpy(&bits, &sum, sizeof(bits));
    if ((error > 0 || error < 0) && (bits & 1u) == 0) {
        bits += (error > 0) == (sum > 0) ? 1u : (uint64_t)-1;
        memcpy(&sum, &bits, sizeof(sum));
    }
    return (float)sum;
}

OPS__INLINED vf vf_max_zero(vf number)
{
    return number > 0 ? number : number != number ? number : 0;
}

OPS__INLINED vf vf_sign(vf number)
{
    return number > 0 ? 1 : number < 0 ? -1 : number;
}

OPS__INLINED vf vf_min(vf a, vf b)
{
    return b < a || b != b ? b : a;
}

OPS__INLINED vf vf_max(vf a, vf b)
{
    return b > a || b != b ? b : a;
}

OPS__INLINED vf vf_load(const void *from)
{
    vf number;

    memcpy(&number, from, sizeof(number));
    return number;
}

OPS__INLINED void vf_store(void *to, vf number)
{
    memcpy(to, &number, sizeof(number));
}

OPS__INLINED vf vf_load_bfloat(const void *from)
{
    uint16_t bits;

    memcpy(&bits, from, sizeof(bits));
    return ops__bfloat_to_float(bits);
}

OPS__INLINED vf vf_load_half(const void *from)
{
    uint16_t bits;

    memcpy(&bits, from, sizeof(bits));
    return ops__half_to_float(bits);
}

OPS__INLINED void vf_store_bfloat(void *to, vf number)
{
    uint16_t bits = ops__float_to_bfloat(number, ops__nearest_even(number));

    memcpy(to, &bits, sizeof(bits));
}

OPS__INLINED void vf_store_bfloat_random(void *to, vf number, const uint16_t *random)
{
    uint16_t bits = ops__float_to_bfloat(number, random[0]);

    memcpy(to, &bits, sizeof(bits));
}

OPS__INLINED void vf_store_half(void *to, vf number)
{
    uint16_t bits = ops__float_to_half(number);

    memcpy(to, &bits, sizeof(bits));
}

OPS__INLINED bool vf_is_finite(vf number)
{
    return number - number == 0;
}

typedef uint64_t vu;

OPS__INLINED size_t vu_lanes(void)
{
    return 1;
}

OPS__INLINED vu vu_set(uint64_t number)
{
    return number;
}

OPS__INLINED vu vu_count(uint64_t first)
{
    return first;
}

OPS__INLINED vu vu_xor(vu a, vu b)
{
    return a ^ b;
}

OPS__INLINED vu vu_upper(vu a)
{
    return a >> 32;
}

OPS__INLINED vu vu_product(vu a, vu b)
{
    return (uint64_t)(uint32_t)a * (uint32_t)b;
}

OPS__INLINED void vu_store_words(uint16_t *to, vu a, vu b, vu c, vu d)
{
    vu words[] = {a, b, c, d};

    for (unsigned i = 0; i < 4; i++) {
        to[2 * i] = (uint16_t)words[i];
        to[2 * i + 1] = (uint16_t)(words[i] >> 16);
    }
}
