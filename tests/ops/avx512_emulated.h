/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The instructions of AVX-512 by SIMDe, so that this code path is checked on CPUs without them.
 * Four functions that the version of Debian 12 lacks, and the fused one, which it does not fuse,
 * are here.
 */
#ifndef TESTS_OPS_AVX512_EMULATED_H
#define TESTS_OPS_AVX512_EMULATED_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>

#include <math.h>
#include <string.h>

#define __mmask16 simde__mmask16

static inline __m512i emulated_cvtepu16_epi32(__m256i from)
{
    uint16_t narrow[16];
    uint32_t wide[16];
    __m512i to;

    memcpy(narrow, &from, sizeof(narrow));
    for (unsigned i = 0; i < 16; i++)
        wide[i] = narrow[i];
    memcpy(&to, wide, sizeof(to));
    return to;
}

static inline __m256i emulated_cvtepi32_epi16(__m512i from)
{
    uint32_t wide[16];
    uint16_t narrow[16];
    __m256i to;

    memcpy(wide, &from, sizeof(wide));
    for (unsigned i = 0; i < 16; i++)
        narrow[i] = (uint16_t)wide[i];
    memcpy(&to, narrow, sizeof(to));
    return to;
}

static inline __m512 emulated_cvtph_ps(__m256i from)
{
    simde__m128i halves[2];
    simde__m256 wide[2];
    __m512 to;

    memcpy(halves, &from, sizeof(halves));
    wide[0] = simde_mm256_cvtph_ps(halves[0]);
    wide[1] = simde_mm256_cvtph_ps(halves[1]);
    memcpy(&to, wide, sizeof(to));
    return to;
}

static inline __m256i emulated_cvtps_ph(__m512 from)
{
    simde__m256 wide[2];
    simde__m128i halves[2];
    __m256i to;

    memcpy(wide, &from, sizeof(wide));
    halves[0] = simde_mm256_cvtps_ph(wide[0], 0);
    halves[1] = simde_mm256_cvtps_ph(wide[1], 0);
    memcpy(&to, halves, sizeof(to));
    return to;
}

static inline __m512 emulated_fmadd_ps(__m512 a, __m512 b, __m512 c)
{
    float parts[3][16];
    __m512 to;

    memcpy(parts[0], &a, sizeof(a));
    memcpy(parts[1], &b, sizeof(b));
    memcpy(parts[2], &c, sizeof(c));
    for (unsigned i = 0; i < 16; i++)
        parts[0][i] = fmaf(parts[0][i], parts[1][i], parts[2][i]);
    memcpy(&to, parts[0], sizeof(to));
    return to;
}

#undef _mm512_fmadd_ps
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
#define _mm512_cvtph_ps emulated_cvtph_ps
#define _mm512_cvtps_ph(from, rounding) emulated_cvtps_ph(from)

#endif
