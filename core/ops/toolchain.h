/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The compilers that a recipe needs: toolchain.c. */
#ifndef DS_ACCEL_OPS_TOOLCHAIN_H
#define DS_ACCEL_OPS_TOOLCHAIN_H

#include "ops/compiler.h"
#include "ops/linker.h"

#include <stdbool.h>

struct ds_accel__recipe;
struct ds_accel__stores;
struct ds_accel__text;

/* {0} is empty. */
struct ds_accel__toolchain {
    struct ds_accel__compiler compilers[DS_ACCEL__LANGUAGE_COUNT];
    bool is_used[DS_ACCEL__LANGUAGE_COUNT];
    struct ds_accel__op_linker linker; /* the one that options choose */
    struct ds_accel__cuda_archs archs; /* what nvcc generates code for, if it is used */
    bool is_specific;                  /* variables name the CPUs or devices to compile for */
    bool is_absent;                    /* missing: there is none here, and no variable names one */
    char missing[512];                 /* which compiler is missing and why; "": none */
    size_t known;                      /* what was remembered before, in all */
    char digest[65];                   /* over all of that; "" if a compiler is missing */
};

/*
 * Find the compilers for the sources of a recipe, and for the link. The digests of their programs
 * are remembered in stores->local until the machine boots. DS_ACCEL_OK, also if one is missing.
 * ERR_INVALID: TORCH_CUDA_ARCH_LIST; ERR_NO_MEMORY. For ds_accel__toolchain_clear(), also after an
 * error.
 */
int32_t ds_accel__toolchain_find(const struct ds_accel__recipe *recipe,
                                 const struct ds_accel__stores *stores,
                                 struct ds_accel__toolchain *toolchain);
/* Store what was learned about files since, for later processes of this host. */
void ds_accel__toolchain_keep(const struct ds_accel__toolchain *toolchain,
                              const struct ds_accel__stores *stores);
void ds_accel__toolchain_clear(struct ds_accel__toolchain *toolchain);
/* Add the variables that decide what ds_accel__toolchain_find() finds, with their values. */
void ds_accel__toolchain_add_variables(struct ds_accel__text *text);
/* The language whose compiler links the recipe's objects. */
enum ds_accel__language ds_accel__toolchain_linker(const struct ds_accel__recipe *recipe);

#endif
