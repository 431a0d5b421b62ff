/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A breadcrumb is a file that identifies the plugin being loaded. If this process dies during the
 * load, later processes find the file (crumb.c).
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
 * drop creates the breadcrumb before the plugin is loaded in the caller's process; pick removes it
 * after the plugin has started or failed.
 */
void ds_accel__crumb_drop(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);
void ds_accel__crumb_pick(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);
/*
 * Count a strike for each breadcrumb of a dead process, before the table of records is read. Waits
 * at most limit_ms for the lock. *is_read_out is set to true if the table was read under the lock.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__crumbs_collect(struct ds_accel__cache *cache, uint64_t limit_ms,
                                 bool *is_read_out);

#endif
