/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The steps of resolve.c in files of their own: search.c, build.c, failure.c. */
#ifndef DS_ACCEL_OPS_RESOLUTION_H
#define DS_ACCEL_OPS_RESOLUTION_H

#include "ops/manifest.h"
#include "ops/resolve.h"
#include "ops/store.h"
#include "ops/toolchain.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__resolution {
    const struct ds_accel__resolution *parent; /* that of an op that requires this one; or NULL */
    ds_accel_t *context;
    const char *backend;
    const struct ds_accel__resolve_options *options;
    struct ds_accel__resolved *resolved;
    struct ds_accel__recipe recipe;
    char recipe_digest[65];
    struct ds_accel__stores stores;
    struct ds_accel__toolchain toolchain;
    uint32_t compute_major; /* of the devices, if the recipe requires one; 0: not known */
    bool is_sources_fault;  /* a compiler refused the sources */
    /* Of a build during which a header may have changed. */
    char doubtful_key[DS_ACCEL__KEY_DIGITS + 1];
};

/*
 * All functions return DS_ACCEL_OK unless their comment says otherwise; ERR_NO_MEMORY; ERR_LIMIT.
 *
 * Set the reason why there is no kernel to the error message.
 */
int32_t ds_accel__resolution_fail(struct ds_accel__resolution *resolution,
                                  enum ds_accel__origin origin);
/* Whether a status is about the machine and not about this op. */
bool ds_accel__resolution_is_fatal(int32_t status);
/* Search the caches. *found_out: resolved has the file. Its finding is set if there are only files
 * that the allow-list refuses. */
int32_t ds_accel__resolution_search(struct ds_accel__resolution *resolution, bool *found_out);
/* Check the file of an entry. *found_out: it can be used, and resolved has it. If the allow-list
 * refuses it, resolved has it with the finding. */
int32_t ds_accel__resolution_try(struct ds_accel__resolution *resolution, const char *store,
                                 const json_t *entry, bool *found_out);
/* Build what the search did not find, or wait for a process that does. */
int32_t ds_accel__resolution_build(struct ds_accel__resolution *resolution);

/* Keep a failed command, and the directory in which it can be repeated. */
int32_t ds_accel__failure_keep(struct ds_accel__resolution *resolution,
                               struct ds_accel__build_dir *dir,
                               const struct ds_accel__compile_failure *failure);
/* Leave the failure for those who wait: reason, command and output. Without memory they build
 * themselves. */
void ds_accel__failure_leave(const struct ds_accel__resolution *resolution, int lock);
/* Fail as the process did that left this message. Nobody else can have written it, but it may have
 * been cut off. */
int32_t ds_accel__failure_take(struct ds_accel__resolved *resolved, const char *message);
void ds_accel__failure_clear(struct ds_accel__resolved *resolved);

#endif
