/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Copies and fills. The plugin determines from each address whether it is in a buffer, and rejects
 * a copy whose requested kind does not agree with the addresses, because a runtime would treat a
 * pointer into a buffer as host memory and crash. Source and destination determine the call:
 *
 *      from \ to      buffer                  host               shared virtual memory
 *      buffer         clEnqueueCopyBuffer     clEnqueueRead      clEnqueueRead
 *      host           clEnqueueWrite          a host task        clEnqueueSVMMemcpy
 *      shared         clEnqueueWrite          clEnqueueSVMMemcpy clEnqueueSVMMemcpy
 *
 * Shared memory is fine-grained here, so it is accepted where a copy kind requires host memory.
 */
#include "opencl.h"

/* The source or destination of a copy. */
struct end {
    cl_mem memory; /* NULL: host memory, or shared memory */
    size_t offset;
    uint32_t is_shared;
};

/* The memory that the requested kind requires for source or destination. */
#define SIDE_ANY 0u
#define SIDE_HOST 1u
#define SIDE_DEVICE 2u

static int32_t find_end(struct opencl_stream *stream, const char *name, const void *address,
                        uint64_t size_bytes, uint32_t side, struct end *end,
                        struct ds_accel_error *error)
{
    struct opencl_range range = {.base = 0};

    memset(end, 0, sizeof(*end));
    if (opencl_map_find(&opencl_of(stream->device)->runtime->memory, address, &range) != 0) {
        return side != SIDE_DEVICE ? DS_ACCEL_OK
                                   : plugin_fail(error, DS_ACCEL_ERR_INVALID,
                                                 "the %s %p is not device memory", name, address);
    }
    if (range.kind == OPENCL_BUFFER && side == SIDE_HOST) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "the %s %p is device memory", name,
                           address);
    }
    if (range.device != stream->device && side != SIDE_HOST) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "the %s %p is memory of device %u, the stream is one of device %u", name,
                           address, range.device->index, stream->device->index);
    }
    end->offset = (uintptr_t)address - range.base;
    if (size_bytes > range.size_bytes - end->offset) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "the %s %p: %llu bytes reach past the end of the allocation, %llu from "
                           "there",
                           name, address, (unsigned long long)size_bytes,
                           (unsigned long long)(range.size_bytes - end->offset));
    }
    end->memory = range.memory;
    end->is_shared = range.kind == OPENCL_MANAGED && range.device == stream->device;
    return DS_ACCEL_OK;
}

static uint32_t source_side(uint32_t kind)
{
    return kind == DS_ACCEL_COPY_INFER ? SIDE_ANY
           : kind == DS_ACCEL_COPY_DEVICE_TO_HOST || kind == DS_ACCEL_COPY_DEVICE_TO_DEVICE
               ? SIDE_DEVICE
               : SIDE_HOST;
}

static uint32_t destination_side(uint32_t kind)
{
    return kind == DS_ACCEL_COPY_INFER ? SIDE_ANY
           : kind == DS_ACCEL_COPY_HOST_TO_DEVICE || kind == DS_ACCEL_COPY_DEVICE_TO_DEVICE
               ? SIDE_DEVICE
               : SIDE_HOST;
}

static int32_t queue_copy(struct opencl_stream *stream, const struct opencl_node *node,
                          const struct end *destination, const struct end *source,
                          struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(stream->device)->runtime->cl;
    size_t size = (size_t)node->size_bytes;
    int32_t code;

    if (source->memory != NULL && destination->memory != NULL) {
        code = cl->clEnqueueCopyBuffer(stream->queue, source->memory, destination->memory,
                                       source->offset, destination->offset, size, CL_NO_EVENTS);
        return opencl_queued(stream, code, "clEnqueueCopyBuffer", error);
    }
    if (source->memory != NULL) {
        code = cl->clEnqueueReadBuffer(stream->queue, source->memory, CL_FALSE, source->offset,
                                       size, node->destination, CL_NO_EVENTS);
        return opencl_queued(stream, code, "clEnqueueReadBuffer", error);
    }
    if (destination->memory != NULL) {
        code = cl->clEnqueueWriteBuffer(stream->queue, destination->memory, CL_FALSE,
                                        destination->offset, size, node->source, CL_NO_EVENTS);
        return opencl_queued(stream, code, "clEnqueueWriteBuffer", error);
    }
    if (source->is_shared || destination->is_shared) {
        code = cl->clEnqueueSVMMemcpy(stream->queue, CL_FALSE, node->destination, node->source,
                                      size, CL_NO_EVENTS);
        return opencl_queued(stream, code, "clEnqueueSVMMemcpy", error);
    }
    return opencl_memmove_queue(stream, node->destination, node->source, node->size_bytes, error);
}

/*
 * clEnqueueFillBuffer() requires that offset and size are multiples of the pattern's size. The
 * address and the size are, and so is the offset, because a buffer's addresses begin at a page.
 */
static int32_t queue_fill(struct opencl_stream *stream, const struct opencl_node *node,
                          const struct end *end, struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(stream->device)->runtime->cl;
    int32_t code;

    if (end->memory != NULL) {
        code = cl->clEnqueueFillBuffer(stream->queue, end->memory, &node->pattern,
                                       node->pattern_bytes, end->offset, (size_t)node->size_bytes,
                                       CL_NO_EVENTS);
        return opencl_queued(stream, code, "clEnqueueFillBuffer", error);
    }
    code = cl->clEnqueueSVMMemFill(stream->queue, node->destination, &node->pattern,
                                   node->pattern_bytes, (size_t)node->size_bytes, CL_NO_EVENTS);
    return opencl_queued(stream, code, "clEnqueueSVMMemFill", error);
}

/* ---- copies and fills as nodes -------------------------------------------------------------- */

int32_t opencl_copy_queue(struct opencl_stream *stream, const struct opencl_node *node,
                          struct ds_accel_error *error)
{
    uint32_t side = node->kind == OPENCL_NODE_FILL ? SIDE_DEVICE
                                                   : destination_side(node->copy_kind);
    struct end destination = {.offset = 0};
    struct end source = {.offset = 0};
    int32_t status;

    if (node->kind == OPENCL_NODE_PEER) {
        return opencl_peer_queue(stream, node->destination, node->source, node->size_bytes, error);
    }
    status = find_end(stream, "destination", node->destination, node->size_bytes, side,
                      &destination, error);
    if (status == DS_ACCEL_OK && node->kind == OPENCL_NODE_FILL) {
        return queue_fill(stream, node, &destination, error);
    }
    if (status == DS_ACCEL_OK) {
        status = find_end(stream, "source", node->source, node->size_bytes,
                          source_side(node->copy_kind), &source, error);
    }
    return status < 0 ? status : queue_copy(stream, node, &destination, &source, error);
}

int32_t opencl_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          const void *source, uint64_t size_bytes, uint32_t kind,
                          struct ds_accel_error *error)
{
    const struct opencl_node node = {.kind = OPENCL_NODE_COPY,
                                     .copy_kind = kind,
                                     .destination = destination,
                                     .source = source,
                                     .size_bytes = size_bytes};

    (void)device;
    return opencl_submit(native_stream, &node, error);
}

int32_t opencl_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                               ds_accel_plugin_device_t *destination_device, void *destination,
                               ds_accel_plugin_device_t *source_device, const void *source,
                               uint64_t size_bytes, struct ds_accel_error *error)
{
    const struct opencl_node node = {.kind = OPENCL_NODE_PEER,
                                     .destination = destination,
                                     .source = source,
                                     .size_bytes = size_bytes};

    if (destination_device == device && source_device == device) {
        return opencl_copy_async(device, native_stream, destination, source, size_bytes,
                                 DS_ACCEL_COPY_DEVICE_TO_DEVICE, error);
    }
    return opencl_submit(native_stream, &node, error);
}

int32_t opencl_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                          struct ds_accel_error *error)
{
    const struct opencl_node node = {.kind = OPENCL_NODE_FILL,
                                     .destination = destination,
                                     .size_bytes = count * pattern_bytes,
                                     .pattern = pattern,
                                     .pattern_bytes = pattern_bytes};

    (void)device;
    return opencl_submit(native_stream, &node, error);
}
