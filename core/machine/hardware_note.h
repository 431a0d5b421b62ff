/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The hardware note of a plugin: hardware_note.c. */
#ifndef DS_ACCEL_MACHINE_HARDWARE_NOTE_H
#define DS_ACCEL_MACHINE_HARDWARE_NOTE_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

struct ds_accel__finding;

/* Check the note's lines. finding->reason is set if a line is invalid. */
int32_t ds_accel__hardware_check_note(const char *note, struct ds_accel__finding *finding);
/*
 * Convert the note to a new object with the keys of the configuration. NULL if the note is empty or
 * has a line that is invalid or of a kind that this host does not support. ERR_NO_MEMORY.
 */
int32_t ds_accel__hardware_read_note(const char *note, json_t **facts_out);
/*
 * True if the configuration's object of a backend contains every fact of the note. note NULL is an
 * empty note, and backend NULL an empty object.
 */
bool ds_accel__hardware_note_is_in(const char *note, json_t *backend);

#endif
