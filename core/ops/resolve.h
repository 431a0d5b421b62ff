/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Where the kernel of an op comes from: resolve.c. */
#ifndef DS_ACCEL_OPS_RESOLVE_H
#define DS_ACCEL_OPS_RESOLVE_H

#include "base/private.h"
#include "ops/compile.h"
#include "ops/kernel.h"

enum ds_accel__origin {
    DS_ACCEL__ORIGIN_NONE,      /* there is no file, and none can be built here */
    DS_ACCEL__ORIGIN_BUILDABLE, /* there is no file; one can be built */
    DS_ACCEL__ORIGIN_INSTALLED,
    DS_ACCEL__ORIGIN_CACHED, /* built before */
    DS_ACCEL__ORIGIN_BUILT,  /* built by this call */
    DS_ACCEL__ORIGIN_FAILED  /* the build failed */
};

struct ds_accel__resolve_options {
    bool is_forced;       /* build it also if there is a file */
    bool only_finds;      /* do not build */
    bool builds_unlisted; /* build it also if the allow-list refuses every file of the op */
    const char *rejected; /* SHA-256 of a cached file that cannot be loaded; NULL: none */
    uint32_t jobs;        /* compilers that run at once; 0: by CPUs and memory */
    ds_accel__compile_progress_t on_progress; /* NULL: not called */
    void *user_data;
};

struct ds_accel__resolved {
    enum ds_accel__origin origin;
    struct ds_accel__kernel kernel; /* path NULL: there is none; a finding: it is rejected */
    char key[65];                   /* of a file that was built; "" */
    char sha256[65];                /* of its contents */
    bool is_for_backend;            /* it is for memory of the backend, not of the host */
    char *reason; /* NONE, FAILED: why, in one line; NULL: there is no recipe either */
    /* FAILED, if a command failed: what to run again, and its whole output; else NULL */
    char *command;
    char *output;
    json_t *inputs;       /* CACHED: as of ds_accel__inputs_list(); may be NULL */
    json_t *requirements; /* as of ds_accel__requires_check(); NULL: not checked */
};

/*
 * Find the kernel of an op: installed, in the system's cache, in the user's, else build it from its
 * recipe. DS_ACCEL_OK, also if there is none or the build failed; ERR_NO_MEMORY; ERR_LIMIT. The
 * caller does not hold context->lock. resolved is for ds_accel__resolved_clear() after any status.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__resolve(ds_accel_t *context, const char *backend,
                                            const char *op,
                                            const struct ds_accel__resolve_options *options,
                                            struct ds_accel__resolved *resolved);
DS_ACCEL__PRIVATE void ds_accel__resolved_clear(struct ds_accel__resolved *resolved);

#endif
