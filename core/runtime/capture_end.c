/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Ending a stream's capture: normally, with a resulting graph (graph.c), or without a graph because
 * the graph or the stream is being destroyed.
 */
#include "host/layers.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

bool ds_accel__capture_note_end(struct ds_accel__stream *stream, int32_t end_status)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    /* a broken capture gives no graph, and no query can break it again */
    bool continues =
        end_status < 0 &&
        stream->abi.table->graph_capture_status(stream->abi.handle, &capturing, &error) >= 0 &&
        capturing == DS_ACCEL_CAPTURING_YES;

    if (!continues) {
        ds_accel__captures_end(stream);
    }
    return continues;
}

bool ds_accel__capture_drop(struct ds_accel__stream *stream)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_graph_t *captured = NULL;
    int32_t status;

    ds_accel__layers_own_begin();
    status = stream->abi.table->graph_capture_end(stream->abi.handle, &captured, &error);
    ds_accel__layers_own_end();
    if (status >= 0) {
        stream->abi.table->graph_destroy(captured);
    }
    return ds_accel__capture_note_end(stream, status);
}

void ds_accel__capture_release_arena(struct ds_accel__stream *stream)
{
    if (stream->arena != NULL && stream->child.device->allocator != NULL) {
        ds_accel__allocator_capture_end(stream->arena);
    }
}

void ds_accel__capture_cancel(struct ds_accel__stream *stream)
{
    ds_accel__capture_drop(stream);
    ds_accel__capture_release_arena(stream);
}
