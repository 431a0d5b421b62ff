/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A backend that only pretends: addresses without memory, streams that are counters, events that
 * are values of them. It checks what the allocator asks of it and counts it.
 */
#ifndef DS_ACCEL_TESTS_ALLOCATOR_SYNTHETIC_H
#define DS_ACCEL_TESTS_ALLOCATOR_SYNTHETIC_H

#include "runtime/caching.h"

#define SYNTHETIC_STREAMS 8

struct ds_accel_plugin_stream {
    uint64_t wait_count; /* of stream_wait_event; atomic */
};

/* The table, complete; its device has so much memory. */
const struct ds_accel_plugin *synthetic_start(uint64_t memory_bytes);
ds_accel_plugin_device_t *synthetic_device(void);
ds_accel_plugin_stream_t *synthetic_stream(unsigned index);
/* What is allocated now, and at most was since the last call of this. */
uint64_t synthetic_used(void);
uint64_t synthetic_peak(bool is_reset);

#endif
