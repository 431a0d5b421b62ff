/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Replay of a recorded history of allocations with other settings: memory_replay.c and
 * replay_device.c. */
#ifndef DS_ACCEL_MEMTOOLS_MEMORY_REPLAY_H
#define DS_ACCEL_MEMTOOLS_MEMORY_REPLAY_H

#include "ds_accel_tools.h"

#include <jansson.h>
#include <stdbool.h>

/* A hash map from addresses to values, with open addressing. A zeroed struct is an empty map.
 * Neither an address nor a value may be 0. */
struct ds_accel__address_map {
    struct ds_accel__address_entry {
        uint64_t address;
        uintptr_t value;
    } * entries;
    size_t capacity; /* a power of two */
    size_t count;
};

/* Set the value of an address, replacing an existing value. False: out of memory. */
bool ds_accel__address_put(struct ds_accel__address_map *map, uint64_t address, uintptr_t value);
/* Remove the value of an address and return it; 0 if the address has no value. */
uintptr_t ds_accel__address_take(struct ds_accel__address_map *map, uint64_t address);
uintptr_t ds_accel__address_find(const struct ds_accel__address_map *map, uint64_t address);
void ds_accel__address_clear(struct ds_accel__address_map *map);

/*
 * A simulated device that only counts memory (replay_device.c): its addresses have no memory, and
 * work on its streams and events is always complete. An allocation fails if it exceeds the free
 * memory. One thread.
 */
struct ds_accel__replay_device {
    struct ds_accel_plugin table; /* the plugin table, with all required slots */
    uint64_t capacity_bytes;
    uint64_t used_bytes;
    uint64_t peak_bytes;
    uint64_t next_address;
    uint64_t alloc_count; /* successful allocation calls */
    uint64_t failure_count;
    bool has_vmem;
    struct ds_accel__address_map pieces; /* live memory, by address: allocations and mappings */
};

#define DS_ACCEL__REPLAY_GRANULE_BYTES (UINT64_C(2) << 20) /* granularity of virtual memory */

int32_t ds_accel__replay_device_create(uint64_t capacity_bytes, bool has_vmem,
                                       struct ds_accel__replay_device **device_out);
void ds_accel__replay_device_destroy(struct ds_accel__replay_device *device);
/* The device handle to pass to the table's functions. */
ds_accel_plugin_device_t *ds_accel__replay_device_handle(struct ds_accel__replay_device *device);
/* The handle of a stream by its number, modulo 65536. */
ds_accel_plugin_stream_t *ds_accel__replay_device_stream(struct ds_accel__replay_device *device,
                                                         uint32_t number);

/*
 * memory_replay.c: replay a snapshot's longest trace with the recorded settings, and then with each
 * text of settings in tries ("key=value,..."); try_count 0: with built-in alternatives. Returns the
 * tree of the report. Fails with ERR_INVALID if the longest trace is empty, a text of tries is
 * invalid or try_count is above 64, or with ERR_NO_MEMORY.
 */
int32_t ds_accel__memory_replay(json_t *tree, const char *const *tries, uint32_t try_count,
                                json_t **report_out);
char *ds_accel__memory_replay_text(json_t *report); /* NULL: out of memory */

#endif
