/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The files that decide which file of a cache is an op's: inputs.c. */
#ifndef DS_ACCEL_OPS_INPUTS_H
#define DS_ACCEL_OPS_INPUTS_H

#include "ops/resolution.h"

/*
 * List the paths of sources, headers, programs of compilers and manifests that led to the entry of
 * a store, as a new object {"files": [PATH], "manifest": PATH, "compilers": {"cc": PATH}}; manifest
 * is that of the entry. NULL if there was no compiler, so that any one's file was good enough, if
 * its programs are not remembered, or if memory is exhausted.
 */
json_t *ds_accel__inputs_list(const struct ds_accel__resolution *resolution, const char *store,
                              const json_t *entry);

#endif
