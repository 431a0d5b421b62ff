/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A breadcrumb is a file that identifies the plugin being loaded and started. If this process dies
 * meanwhile, later processes find the file (crumb.c).
 */
#ifndef DS_ACCEL_HOST_CRUMB_H
#define DS_ACCEL_HOST_CRUMB_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__cache;
struct ds_accel__candidate;

struct ds_accel__crumb {
    int fd; /* -1: none */
    char name[64];
};

/*
 * drop creates the breadcrumb before the plugin is loaded in the caller's process; without a
 * writable store, or if the file cannot be written, there is no breadcrumb. pick removes it after
 * the plugin has started or failed.
 */
void ds_accel__crumb_drop(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);
void ds_accel__crumb_pick(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);
/*
 * Count strikes for the breadcrumbs of dead processes, one strike for each plugin, before the table
 * of records is read. Waits at most limit_ms for the lock; without the lock, the breadcrumbs stay
 * for a later evaluation. *is_read_out is set to true if the table was read here, so that the
 * caller need not read it. ERR_NO_MEMORY.
 */
int32_t ds_accel__crumbs_collect(struct ds_accel__cache *cache, uint64_t limit_ms,
                                 bool *is_read_out);

#endif
