/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The recipe of a small op, a cache for it, and a compiler that is counted. */
#ifndef DS_ACCEL_TESTS_OPBUILD_TINY_H
#define DS_ACCEL_TESTS_OPBUILD_TINY_H

#include "opbuild.h"

#define TINY_BACKEND "cpu"

#define TINY_SOURCE \
    "#include \"ops/op.h\"\n#include \"tiny.h\"\n" \
    "static const char *const names[] = {\"scalar\", 0};\n" \
    "static const char *const *paths(void) { return names; }\n" \
    "static const char *path(void) { return names[0]; }\n" \
    "static const struct ds_accel_op table = {sizeof(table), DS_ACCEL_OP_ABI_MAJOR,\n" \
    "    DS_ACCEL_OP_ABI_MINOR, NAME, paths, path};\n" \
    "DS_ACCEL_OP(NAME, &table);\n"

extern char tiny_cache[300];
extern ds_accel_t *tiny_context;

/* Write a compiler that counts its compilations and links; before: what it does before those. */
const char *tiny_compiler(const char *before);
int tiny_compilations(void);
/* Make the context anew, with further members of the recipe. */
void tiny_configure(const char *members);
/* The same, without further members, and with the sources at this path. */
void tiny_configure_at(const char *source_dir);
/* Write sources and compiler, and make the context. */
void tiny_begin(void);
void tiny_end(void);

#endif
