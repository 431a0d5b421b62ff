/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Serialization of the merged configuration: snapshot.c. */
#ifndef DS_ACCEL_CONFIG_SNAPSHOT_H
#define DS_ACCEL_CONFIG_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds_accel__config;
struct ds_accel__text;

/*
 * Parse a snapshot of this identity into a new tree. is_early: skip the facts of a backend that
 * detection does not read. NULL if the data is invalid or memory is exhausted.
 */
json_t *ds_accel__snapshot_parse(const void *data, size_t size_bytes, uint64_t identity,
                                 bool is_early);
/*
 * Parse the late facts of one backend, from a snapshot that ds_accel__snapshot_parse() has
 * accepted, into a new tree {"backends": {backend: facts}}; without facts if the snapshot has none
 * of it. NULL if the data is invalid or memory is exhausted. Several threads may call it at once.
 */
json_t *ds_accel__snapshot_late(const void *data, size_t size_bytes, const char *backend);
bool ds_accel__snapshot_is_early(const char *key);
int32_t ds_accel__snapshot_format(json_t *tree, uint64_t identity, struct ds_accel__text *text);
/*
 * A hash of the paths, layers, devices, inodes, sizes and times of the configuration's files,
 * except files of op builders; 0 if a file cannot be accessed. *settled_out is set to true if no
 * file changed in the last two seconds.
 */
uint64_t ds_accel__snapshot_identify(const struct ds_accel__config *config, bool *settled_out);

#endif
