/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Flags with which a build would not be reproducible: refused_flags.c. */
#ifndef DS_ACCEL_OPS_REFUSED_FLAGS_H
#define DS_ACCEL_OPS_REFUSED_FLAGS_H

/* Where a flag is. */
enum ds_accel__flag_place {
    DS_ACCEL__FLAG_OF_COMPILER = 1, /* of a recipe, for compilers */
    DS_ACCEL__FLAG_OF_LINK = 2,     /* of a recipe, for the link */
    DS_ACCEL__FLAG_OF_VARIABLE = 4  /* of a variable such as CC, which compiles and links */
};

/*
 * Why a flag cannot be used, as a sentence whose subject is the flag; NULL: it can. before: the
 * flag before it, which may pass it on to the linker; NULL: none. Also examines what nvcc and GCC
 * pass on: -Xcompiler=FLAG,FLAG and -Wp,FLAG.
 */
const char *ds_accel__flag_refuse(const char *flag, const char *before,
                                  enum ds_accel__flag_place place);

#endif
