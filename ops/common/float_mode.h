/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The floating-point mode of a thread: the direction of rounding, and whether denormals are zeros.
 * Callers change it, for example by torch.set_flush_denormal() or -ffast-math, for their thread
 * only, and OpenMP's other threads keep the mode in which they were created. Ops compute in the
 * standard mode, so that results depend neither on the caller's mode nor on the number of threads:
 *
 *     OPS__STANDARD_FLOATS;
 *
 * among the declarations of a function sets the standard mode and restores the caller's when the
 * function returns. Exceptions do not trap, and the caller's exception flags stay as they were.
 */
#ifndef OPS_FLOAT_MODE_H
#define OPS_FLOAT_MODE_H

/* The compiler moves no access to memory, and so no arithmetic on what is loaded after it, across
 * the change of mode. */
#if defined(__x86_64__)

typedef unsigned ops__float_mode;

static inline ops__float_mode ops__float_mode_set_standard(void)
{
    const unsigned standard = 0x1F80; /* to nearest, denormals, all exceptions masked */
    unsigned before;

    __asm__ volatile("stmxcsr %0" : "=m"(before));
    __asm__ volatile("ldmxcsr %0" : : "m"(standard) : "memory");
    return before;
}

static inline void ops__float_mode_restore(const ops__float_mode *mode)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(*mode) : "memory");
}

#elif defined(__aarch64__)

typedef struct {
    unsigned long fpcr;
    unsigned long fpsr;
} ops__float_mode;

static inline ops__float_mode ops__float_mode_set_standard(void)
{
    ops__float_mode before;

    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(before.fpcr), "=r"(before.fpsr));
    __asm__ volatile("msr fpcr, %0" : : "r"(0UL) : "memory");
    return before;
}

static inline void ops__float_mode_restore(const ops__float_mode *mode)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
                     :
                     : "r"(mode->fpcr), "r"(mode->fpsr)
                     : "memory");
}

#else

#include <fenv.h>

typedef fenv_t ops__float_mode;

static inline ops__float_mode ops__float_mode_set_standard(void)
{
    ops__float_mode before;

    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void ops__float_mode_restore(const ops__float_mode *mode)
{
    fesetenv(mode);
}

#endif

#define OPS__STANDARD_FLOATS \
    __attribute__((cleanup(ops__float_mode_restore), unused)) \
    const ops__float_mode ops__caller_mode = ops__float_mode_set_standard()

#endif
