/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The linker that options choose: linker.c. */
#ifndef DS_ACCEL_OPS_LINKER_H
#define DS_ACCEL_OPS_LINKER_H

#include "ds_accel.h"

#include <stdbool.h>

struct ds_accel__compiler;
struct ds_accel__recipe;

struct ds_accel__op_linker {
    char *path; /* NULL: the compiler's own (identity.c), or there is none of this name */
    /* SHA-256 of its contents; "absent": there is none; "": options choose none. */
    char digest[65];
    char *question; /* what answers.c remembers it by; NULL: options choose none */
};

/*
 * Find the linker that -fuse-ld=, --ld-path= or -B choose, among the arguments of the compiler that
 * links or the recipe's ldflags. ERR_IO with the cause; ERR_NO_MEMORY. For
 * ds_accel__op_linker_clear(), also after an error.
 */
int32_t ds_accel__op_linker_find(const struct ds_accel__compiler *compiler,
                                 const struct ds_accel__recipe *recipe,
                                 struct ds_accel__op_linker *linker);
void ds_accel__op_linker_clear(struct ds_accel__op_linker *linker);

#endif
