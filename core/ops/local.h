/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is remembered about ops on this host until it boots: local.c. */
#ifndef DS_ACCEL_OPS_LOCAL_H
#define DS_ACCEL_OPS_LOCAL_H

#include "ops/store.h"

#include <jansson.h>

/*
 * Read an object that ds_accel__local_write() wrote since this host booted; NULL if there is none.
 * What it contains is from this user, or from root, but not checked further.
 */
json_t *ds_accel__local_read(const struct ds_accel__stores *stores, const char *name);
/*
 * Write an object into the directory of this host, with the boot's ID as "boot". It is not written
 * if there is no such directory, on a full disk or without memory.
 */
void ds_accel__local_write(const struct ds_accel__stores *stores, const char *name, json_t *object);
/* The same for a text without NUL, read as a new string: without the time of parsing JSON. */
char *ds_accel__local_read_text(const struct ds_accel__stores *stores, const char *name);
void ds_accel__local_write_text(const struct ds_accel__stores *stores, const char *name,
                                const char *content);

#endif
