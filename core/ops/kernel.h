/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The files of ops: kernel.c. */
#ifndef DS_ACCEL_OPS_KERNEL_H
#define DS_ACCEL_OPS_KERNEL_H

#include "base/private.h"
#include "base/trust.h"
#include "ds_accel.h"

#include <jansson.h>
#include <sys/stat.h>

/* The file of an op, for one backend. */
struct ds_accel__kernel {
    char *path;                       /* NULL: there is none */
    struct stat info;                 /* of the file that was checked */
    struct ds_accel__finding finding; /* why the file is rejected; reason NONE: it is not */
    bool is_for_backend;              /* it is for memory of the backend, not of the host */
};

/*
 * Find the file of an op and check it without running its code. The first file that exists is
 * taken; if it is rejected, no other one is searched. name is the op's; one that cannot be the name
 * of an op has no file. DS_ACCEL_OK, also if there is no file or it is rejected; ERR_LIMIT;
 * ERR_NO_MEMORY. The caller frees kernel->path.
 */
int32_t ds_accel__kernel_find(const char *backend, const char *name,
                              struct ds_accel__kernel *kernel);
/*
 * Check a file of an op as ds_accel__kernel_find() does; path is absolute. The finding is set if
 * the file is rejected or absent. ERR_LIMIT; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__kernel_check(const char *path, const char *name,
                                                 struct stat *info_out,
                                                 struct ds_accel__finding *finding);
/*
 * The op builders of a backend, NULL: of the chosen accelerator, as ds_accel__facts_builders()
 * makes them, and behind them those that only other backends have, with "is_foreign": true. "kind"
 * is that of the configuration's row, or "". "kernel" is the name of ds-accel's own op that does
 * the work of "op": that of the row, or "op" itself. name: only those with this name of a builder,
 * op or kernel; NULL: all. ERR_NOT_FOUND: the backend or the name is not known; ERR_CONFIG;
 * ERR_NO_MEMORY. The caller does not hold context->lock.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__kernel_builders(ds_accel_t *context, const char *backend,
                                                    const char *name, json_t **builders_out);
/*
 * The kernel of that name, or of the builder or op of that name, of any backend, as a new string;
 * NULL: there is none. ERR_CONFIG; ERR_NO_MEMORY. The caller does not hold context->lock.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__kernel_name(ds_accel_t *context, const char *name,
                                                char **kernel_out);
/*
 * The directories in which ops are searched, one per line, as a new string; NULL if memory is
 * exhausted.
 */
DS_ACCEL__PRIVATE char *ds_accel__kernel_directories(void);

#endif
