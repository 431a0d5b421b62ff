/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The candidates of a context: registry.c, scan.c. */
#ifndef DS_ACCEL_HOST_REGISTRY_H
#define DS_ACCEL_HOST_REGISTRY_H

#include "base/fork.h"
#include "base/private.h"
#include "base/text.h"
#include "host/candidate.h"
#include "host/loader.h"

#include <stddef.h>

struct ds_accel__registry {
    struct ds_accel__candidate **candidates; /* sorted in detection order */
    size_t count;
};

DS_ACCEL__PRIVATE struct ds_accel__candidate *
ds_accel__registry_find(const struct ds_accel__registry *registry, const char *name);
/*
 * Add a candidate, and take ownership of it. On failure the candidate is destroyed. candidate may
 * be NULL after a failed allocation: the function then fails with ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__registry_add(struct ds_accel__registry *registry,
                                                 struct ds_accel__candidate *candidate);
void ds_accel__registry_clear(struct ds_accel__registry *registry);
/*
 * Fill the registry from the search path. Candidates that the program registered are already in it.
 */
int32_t ds_accel__scan(ds_accel_t *context);
/* Sort the candidates in detection order, and determine which are probed only on demand. */
int32_t ds_accel__registry_sort(ds_accel_t *context);

#endif
