/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/isa.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_SVE
#define HWCAP_SVE (1 << 22)
#endif
#endif

static const char *const set_names[OPS__ISA_COUNT] = {"scalar", "avx2", "avx512", "neon", "sve"};
static const enum ops__isa best_first[] = {OPS__AVX512, OPS__AVX2, OPS__SVE, OPS__NEON,
                                           OPS__SCALAR};
#define SET_COUNT (sizeof(best_first) / sizeof(best_first[0]))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *usable_names[OPS__ISA_COUNT + 1];
static enum ops__isa chosen;

#if defined(__x86_64__)
/* clang 14 does not know this name in __builtin_cpu_supports(). */
static bool has_f16c(void)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static bool has(enum ops__isa set)
{
    switch (set) {
    case OPS__SCALAR:
        return true;
#if defined(__x86_64__)
    case OPS__AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case OPS__AVX512:
#ifdef OPS_VECTOR_EMULATED /* emulated, for tests */
        return true;
#else
        return __builtin_cpu_supports("avx512f");
#endif
#elif defined(__aarch64__)
    case OPS__NEON:
        return true;
    case OPS__SVE:
        return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
#endif
    default:
        return false;
    }
}

static void choose(void)
{
    const char *wanted = secure_getenv("DS_ACCEL_OPS_ISA"); /* NULL under AT_SECURE */
    size_t count = 0;

    for (size_t i = 0; i < SET_COUNT; i++) {
        if (!has(best_first[i]))
            continue;
        if (count == 0 || (wanted && strcmp(wanted, set_names[best_first[i]]) == 0))
            chosen = best_first[i];
        usable_names[count++] = set_names[best_first[i]];
    }
}

enum ops__isa ops__isa(void)
{
    pthread_once(&once, choose);
    return chosen;
}

const char *ops__isa_name(void)
{
    return set_names[ops__isa()];
}

const char *const *ops__isa_names(void)
{
    pthread_once(&once, choose);
    return usable_names;
}

const char *ops__scalar_name(void)
{
    return set_names[OPS__SCALAR];
}

const char *const *ops__scalar_names(void)
{
    static const char *const names[] = {"scalar", NULL};

    return names;
}
