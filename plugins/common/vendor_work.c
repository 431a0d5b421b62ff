/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Copies and fills.
 *
 * If the backend has no function for mem_copy(), the frame queues the copy on a stream of its own
 * (on the default stream if the backend cannot create streams) and waits for it. A stream of the
 * program could have other work, or be capturing. The frame reuses these streams; their number is
 * the largest number of threads that copied at the same time.
 *
 * Runtimes differ in the pattern widths that they can fill with. A pattern of equal halves is
 * reduced to a shorter pattern; a short pattern is widened if size and address allow it. Otherwise
 * the fill is made of copies: the first piece is copied from the host, and then the filled part is
 * copied repeatedly, which doubles it each time.
 */
#include "vendor_frame.h"

struct vendor_copier {
    struct vendor_copier *next;
    void *native;
};

static int32_t check_range(const void *destination, const void *source, uint64_t size_bytes,
                           const char *slot, struct ds_accel_error *error)
{
    if (size_bytes > 0 && (destination == NULL || source == NULL)) {
        return vendor_null(error, slot, destination == NULL ? "the destination" : "the source");
    }
    return DS_ACCEL_OK;
}

static int32_t check_copy(const void *destination, const void *source, uint64_t size_bytes,
                          uint32_t kind, const char *slot, struct ds_accel_error *error)
{
    if (kind < DS_ACCEL_COPY_HOST_TO_HOST || kind > DS_ACCEL_COPY_INFER) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown kind %u", slot, kind);
    }
    if (kind == DS_ACCEL_COPY_INFER &&
        (vendor_backend.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: DS_ACCEL_COPY_INFER needs unified addresses", slot);
    }
    return check_range(destination, source, size_bytes, slot, error);
}

/* ---- copies that complete on return --------------------------------------------------------- */

/* Take an idle stream, or create one. The caller has entered the device. */
static int32_t take_copier(ds_accel_plugin_device_t *device, struct vendor_copier **copier_out,
                           struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    struct vendor_copier *copier;
    int32_t status;

    pthread_mutex_lock(&frame->lock);
    copier = frame->copiers;
    if (copier != NULL) {
        frame->copiers = copier->next;
    }
    pthread_mutex_unlock(&frame->lock);
    if (copier == NULL) {
        copier = calloc(1, sizeof(*copier));
        if (copier == NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_copy: no memory");
        }
        status = vendor_backend.stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0,
                                              &copier->native, error);
        if (status < 0) {
            free(copier);
            return status;
        }
    }
    *copier_out = copier;
    return DS_ACCEL_OK;
}

static void give_copier(ds_accel_plugin_device_t *device, struct vendor_copier *copier)
{
    struct vendor_device *frame = device->frame;

    pthread_mutex_lock(&frame->lock);
    copier->next = frame->copiers;
    frame->copiers = copier;
    pthread_mutex_unlock(&frame->lock);
}

static void destroy_copier(ds_accel_plugin_device_t *device, struct vendor_copier *copier)
{
    VENDOR_DESTROY(device, vendor_backend.stream_destroy(device, copier->native));
    free(copier);
}

void vendor_copiers_destroy(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;

    while (frame->copiers != NULL) {
        struct vendor_copier *copier = frame->copiers;

        frame->copiers = copier->next;
        destroy_copier(device, copier);
    }
}

/* A stream whose copy failed is destroyed, because it may still have work, and may be unusable. */
static int32_t copy_and_wait(ds_accel_plugin_device_t *device, void *destination,
                             const void *source, uint64_t size_bytes, uint32_t kind,
                             struct ds_accel_error *error)
{
    struct vendor_copier *copier = NULL;
    void *native = device->default_stream != NULL ? device->default_stream->native : NULL;
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.stream_create != NULL) {
        status = take_copier(device, &copier, error);
        if (copier == NULL) {
            return status;
        }
        native = copier->native;
    }
    status =
        vendor_backend.copy_async(device, native, destination, source, size_bytes, kind, error);
    if (status == DS_ACCEL_OK) {
        status = vendor_backend.stream_synchronize(device, native, error);
    }
    if (copier != NULL && status == DS_ACCEL_OK) {
        give_copier(device, copier);
    } else if (copier != NULL) {
        destroy_copier(device, copier);
    }
    return status;
}

static int32_t vendor_mem_copy(ds_accel_plugin_device_t *device, void *destination,
                               const void *source, uint64_t size_bytes, uint32_t kind,
                               struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "mem_copy", error);

    if (status == DS_ACCEL_OK) {
        status = check_copy(destination, source, size_bytes, kind, "mem_copy", error);
    }
    if (status < 0 || size_bytes == 0) {
        return status;
    }
    if (kind == DS_ACCEL_COPY_HOST_TO_HOST && !vendor_backend.reads_host_memory) {
        memcpy(destination, source, (size_t)size_bytes);
        return DS_ACCEL_OK;
    }
    if (vendor_backend.copy != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.copy(device, destination, source, size_bytes, kind, error));
    } else {
        VENDOR_CALL(device, error, status,
                    copy_and_wait(device, destination, source, size_bytes, kind, error));
    }
    return status;
}

/* ---- queued copies -------------------------------------------------------------------------- */

/* Is there nothing to copy? A backend that tracks captures may record an empty copy, so that it
   receives empty copies, too. */
static int is_nothing(uint64_t size_bytes)
{
    return size_bytes == 0 && !vendor_backend.tracks_captures;
}

static int32_t vendor_mem_copy_async(ds_accel_plugin_stream_t *stream, void *destination,
                                     const void *source, uint64_t size_bytes, uint32_t kind,
                                     struct ds_accel_error *error)
{
    int32_t status = vendor_check_stream(stream, "mem_copy_async", error);

    if (status == DS_ACCEL_OK) {
        status = check_copy(destination, source, size_bytes, kind, "mem_copy_async", error);
    }
    if (status < 0 || is_nothing(size_bytes)) {
        return status;
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.copy_async(stream->device, stream->native, destination, source,
                                          size_bytes, kind, error));
    return status;
}

/* Check that the stream can copy memory of the device. */
static int32_t check_owner(const ds_accel_plugin_stream_t *stream,
                           const ds_accel_plugin_device_t *device, const char *slot,
                           struct ds_accel_error *error)
{
    return device != NULL && vendor_backend.mixes_instances
               ? DS_ACCEL_OK
               : vendor_check_peer(stream->device, device, slot, error);
}

static int32_t vendor_mem_copy_peer_async(ds_accel_plugin_stream_t *stream,
                                          ds_accel_plugin_device_t *destination_device,
                                          void *destination,
                                          ds_accel_plugin_device_t *source_device,
                                          const void *source, uint64_t size_bytes,
                                          struct ds_accel_error *error)
{
    const char *slot = "mem_copy_peer_async";
    int32_t status = vendor_check_stream(stream, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_owner(stream, destination_device, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = check_owner(stream, source_device, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = check_range(destination, source, size_bytes, slot, error);
    }
    if (status < 0 || is_nothing(size_bytes)) {
        return status;
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.copy_peer_async(stream->device, stream->native, destination_device,
                                               destination, source_device, source, size_bytes,
                                               error));
    return status;
}

/* ---- fills ---------------------------------------------------------------------------------- */

#define FIRST_PIECE_BYTES UINT64_C(4096)

/* One element of the pattern, with its bytes in memory order. */
struct element {
    unsigned char bytes[4];
    uint32_t size_bytes;
};

static uint32_t value_of(const struct element *element)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;

    switch (element->size_bytes) {
    case 1:
        memcpy(&one, element->bytes, sizeof(one));
        return one;
    case 2:
        memcpy(&two, element->bytes, sizeof(two));
        return two;
    default:
        memcpy(&four, element->bytes, sizeof(four));
        return four;
    }
}

/* Reduce the element to the shortest element that repeats to the same bytes. */
static void shorten(struct element *element)
{
    while (element->size_bytes > 1 &&
           memcmp(element->bytes, element->bytes + element->size_bytes / 2,
                  element->size_bytes / 2) == 0) {
        element->size_bytes /= 2;
    }
}

/* Shorten the element as far as possible, then widen it to a width that the runtime supports and
   that fits the size and the address. Returns 0, or -1 if there is no such width. */
static int choose(struct element *element, const void *destination, uint64_t size_bytes)
{
    shorten(element);
    for (uint32_t width = element->size_bytes; width <= 4; width *= 2) {
        if ((vendor_backend.fill_widths & width) != 0 && size_bytes % width == 0 &&
            ((uintptr_t)destination % width == 0 ||
             (vendor_backend.fill_widths & VENDOR_FILLS_ANYWHERE) != 0)) {
            for (uint32_t i = element->size_bytes; i < width; i++) {
                element->bytes[i] = element->bytes[i - element->size_bytes];
            }
            element->size_bytes = width;
            return 0;
        }
    }
    return -1;
}

static int32_t queue_copy(ds_accel_plugin_stream_t *stream, void *destination, const void *source,
                          uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    int32_t status;

    VENDOR_WORK(stream->device, error, status,
                vendor_backend.copy_async(stream->device, stream->native, destination, source,
                                          size_bytes, kind, error));
    return status;
}

/* Allocate the first piece, and a task that owns it. Returns NULL if the host is out of memory. */
static struct vendor_task *make_piece(ds_accel_plugin_device_t *device,
                                      const struct element *element, uint64_t size_bytes,
                                      char **piece_out)
{
    char *piece = malloc((size_t)size_bytes);
    struct vendor_task *task = piece != NULL ? vendor_task_holding(device, piece) : NULL;

    if (task == NULL) {
        free(piece);
        return NULL;
    }
    for (uint64_t i = 0; i < size_bytes; i++) {
        piece[i] = (char)element->bytes[i % element->size_bytes];
    }
    *piece_out = piece;
    return task;
}

/* Queue the copy of the first piece. The piece is kept until the stream has copied it, or as long
   as the graph that captures the copy. Takes ownership of the task. */
static int32_t queue_piece(ds_accel_plugin_stream_t *stream, void *destination, const void *piece,
                           uint64_t size_bytes, struct vendor_task *task,
                           struct ds_accel_error *error)
{
    uint32_t is_capturing = 0;
    int32_t status = vendor_stream_is_capturing(stream, &is_capturing, error);

    if (status == DS_ACCEL_OK && is_capturing) {
        status = vendor_task_keep(stream, task, error);
        return status < 0 ? status
                          : queue_copy(stream, destination, piece, size_bytes,
                                       DS_ACCEL_COPY_HOST_TO_DEVICE, error);
    }
    if (status == DS_ACCEL_OK) {
        status =
            queue_copy(stream, destination, piece, size_bytes, DS_ACCEL_COPY_HOST_TO_DEVICE, error);
    }
    if (status < 0) {
        vendor_task_destroy(task);
        return status;
    }
    return vendor_task_hold(stream, task, error);
}

static int32_t fill_with_copies(ds_accel_plugin_stream_t *stream, char *destination,
                                const struct element *element, uint64_t size_bytes,
                                struct ds_accel_error *error)
{
    uint64_t done = size_bytes < FIRST_PIECE_BYTES ? size_bytes : FIRST_PIECE_BYTES;
    char *piece = NULL;
    struct vendor_task *task = make_piece(stream->device, element, done, &piece);
    int32_t status;

    if (task == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_fill_async: no host memory");
    }
    status = queue_piece(stream, destination, piece, done, task, error);
    while (status == DS_ACCEL_OK && done < size_bytes) {
        uint64_t next = done < size_bytes - done ? done : size_bytes - done;

        status = queue_copy(stream, destination + done, destination, next,
                            DS_ACCEL_COPY_DEVICE_TO_DEVICE, error);
        done += next;
    }
    return status;
}

static int32_t check_fill(const void *destination, const void *pattern, uint32_t pattern_bytes,
                          uint64_t size_bytes, struct ds_accel_error *error)
{
    if (pattern == NULL) {
        return vendor_null(error, "mem_fill_async", "the pattern");
    }
    if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) ||
        size_bytes % pattern_bytes != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_fill_async: a pattern of %u bytes for %llu: expected 1, 2 or 4, "
                           "and a multiple of it",
                           pattern_bytes, (unsigned long long)size_bytes);
    }
    return check_range(destination, pattern, size_bytes, "mem_fill_async", error);
}

static int32_t vendor_mem_fill_async(ds_accel_plugin_stream_t *stream, void *destination,
                                     const void *pattern, uint32_t pattern_bytes,
                                     uint64_t size_bytes, struct ds_accel_error *error)
{
    struct element element = {.size_bytes = pattern_bytes};
    int32_t status = vendor_check_stream(stream, "mem_fill_async", error);

    if (status == DS_ACCEL_OK) {
        status = check_fill(destination, pattern, pattern_bytes, size_bytes, error);
    }
    if (status < 0 || is_nothing(size_bytes)) {
        return status;
    }
    memcpy(element.bytes, pattern, pattern_bytes);
    if (choose(&element, destination, size_bytes) != 0) {
        return fill_with_copies(stream, destination, &element, size_bytes, error);
    }
    VENDOR_WORK(stream->device, error, status,
                vendor_backend.fill_async(stream->device, stream->native, destination,
                                          value_of(&element), element.size_bytes,
                                          size_bytes / element.size_bytes, error));
    return status;
}

void vendor_work_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    table->mem_copy = backend->copy != NULL ||
                              (backend->copy_async != NULL && backend->stream_synchronize != NULL)
                          ? vendor_mem_copy
                          : NULL;
    table->mem_copy_async = backend->copy_async != NULL ? vendor_mem_copy_async : NULL;
    table->mem_copy_peer_async = backend->copy_peer_async != NULL ? vendor_mem_copy_peer_async
                                                                  : NULL;
    table->mem_fill_async =
        backend->fill_async != NULL || backend->copy_async != NULL ? vendor_mem_fill_async : NULL;
}
