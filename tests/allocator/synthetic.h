/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A backend without memory: memory has only addresses, streams are counters, events are values of
 * these counters. The backend checks and counts the allocator's calls.
 */
#ifndef DS_ACCEL_TESTS_ALLOCATOR_SYNTHETIC_H
#define DS_ACCEL_TESTS_ALLOCATOR_SYNTHETIC_H

#include "runtime/caching.h"

#define SYNTHETIC_STREAMS 8

struct ds_accel_plugin_stream {
    uint64_t wait_count; /* calls of stream_wait_event; atomic */
};

/* Return the complete table of a device with memory_bytes of memory. */
const struct ds_accel_plugin *synthetic_start(uint64_t memory_bytes);
ds_accel_plugin_device_t *synthetic_device(void);
ds_accel_plugin_stream_t *synthetic_stream(unsigned index);
/* Return the bytes that are allocated now, and their peak since the last reset. */
uint64_t synthetic_used(void);
uint64_t synthetic_peak(bool is_reset);

#endif
