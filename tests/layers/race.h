/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of races among calls of the table: two streams, two events, memory. */
#ifndef DS_ACCEL_TESTS_LAYERS_RACE_H
#define DS_ACCEL_TESTS_LAYERS_RACE_H

#include "layer.h"

/* A temporary public handle of a plugin stream, with the members that inline calls read. */
#define ON(stream) (&(struct ds_accel_stream){device->table, stream})

static ds_accel_plugin_stream_t *first;
static ds_accel_plugin_stream_t *second;
static ds_accel_plugin_event_t *event_a;
static ds_accel_plugin_event_t *event_b;
static char *memory_a;

/* A call from a function of known address, so that its call site, an offset in this program as
   addr2line accepts it, can be checked. */
static __attribute__((noinline, unused)) int32_t write_from_here(ds_accel_plugin_stream_t *stream)
{
    int32_t status = table->mem_fill_async(stream, memory_a, "x", 1, 16, &error);

    /* prevents a tail call, which would leave no frame of this function */
    __asm__ volatile("" ::: "memory");
    return status;
}

#endif
