/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Whether the accelerator's devices work: progress.c. */
#ifndef DS_ACCEL_LAUNCH_PROGRESS_H
#define DS_ACCEL_LAUNCH_PROGRESS_H

#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>

/* Readings of the devices, compared with the first; {0} before the first. */
struct ds_accel__progress {
    const struct ds_accel_options *options; /* borrowed; NULL: the defaults */
    uint64_t timeout_ns;                    /* for one reading; 0: 5 seconds */
    json_t *first;                          /* the first reading; NULL: it failed */
};

/*
 * Take a reading; is_first: later ones are compared with it. A ds_accel__device_progress_t;
 * user_data is a struct ds_accel__progress. Returns true if a device surely worked in between.
 *
 * devices_out  caller; an object:
 *
 *      {"accelerator": "cuda", "error": "...", "devices": [{"index": 0, "progress": "no",
 *        "utilization_percent": 100, "memory_utilization_percent": 0, "memory_used_bytes": 1024,
 *        "processes": [{"pid": 12, "utilization_percent": 99, "memory_bytes": 1024}]}]}
 *
 *              progress is yes, no or unknown; error is present if there are no devices. NULL if
 *              memory is exhausted.
 */
bool ds_accel__progress_read(void *user_data, bool is_first, json_t **devices_out);
void ds_accel__progress_clear(struct ds_accel__progress *progress);
/* "yes", "no" or "unknown" for one device of two readings. */
const char *ds_accel__progress_compare(const json_t *before, const json_t *after);

#endif
