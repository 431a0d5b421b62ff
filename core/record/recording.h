/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Recorded machines: recorder.c writes and recording.c reads them. A recording is one JSON file
 * with four parts: the machine's files that the library reads, the configuration, the environment,
 * and for each plugin found the findings of its probe and the results of its calls. A context over
 * a recording works like one over a machine (configuration, order, override, lists), except that
 * the recorded findings of a plugin are used, and the plugin is neither read, probed nor started.
 */
#ifndef DS_ACCEL_RECORD_RECORDING_H
#define DS_ACCEL_RECORD_RECORDING_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__candidate;
struct ds_accel__finding;

#define DS_ACCEL__RECORDING_KIND "ds-accel recording"
#define DS_ACCEL__RECORDING_FORMAT 1

/* Read and validate a recording. Fails with ERR_INVALID, whose message has the file and the error,
 * ERR_IO or ERR_NO_MEMORY. */
int32_t ds_accel__recording_read(const char *path, json_t **root_out);
int32_t ds_accel__recording_parse(const char *path, const char *text, size_t size_bytes,
                                  json_t **root_out);
/* recording_answers.c: make the calls that reports make, and return their results as a tree; NULL:
 * out of memory. */
json_t *ds_accel__answers_take(const struct ds_accel_plugin *table,
                               ds_accel_plugin_instance_t *instance, uint32_t device_count);
/* Fill a plugin's table whose functions return recorded results. The tree of
 * ds_accel__answers_take() is the instance handle to pass to them. */
void ds_accel__answers_table(struct ds_accel_plugin *table);

#endif
