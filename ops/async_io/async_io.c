/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op async_io: its table, requests from submission to result, and registered buffers. */
#include "async_io.h"

#include "common/error.h"
#include "common/isa.h"
#include "handle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRANSFER_FLAGS \
    (DS_ACCEL_ASYNC_IO_SYNC | DS_ACCEL_ASYNC_IO_TRUNCATE | DS_ACCEL_ASYNC_IO_DEVICE | \
     DS_ACCEL_ASYNC_IO_CHECKSUM)
#define BUFFER_MOST ((uint64_t)1 << 30)

static int32_t check_handle(const struct ds_accel_async_io_handle *handle, const char *call,
                            struct ds_accel_error *error)
{
    if (!handle)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "handle is NULL");
    if (handle->process != getpid())
        return ops__error(error, DS_ACCEL_ERR_STATE, call,
                          "the handle belongs to process %d; create one in this process",
                          (int)handle->process);
    return DS_ACCEL_OK;
}

static int32_t check_size(const char *call, const char *name, uint32_t size, size_t wanted,
                          struct ds_accel_error *error)
{
    if (size < wanted)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size of %s is %u; wanted %zu or more", name, size, wanted);
    return DS_ACCEL_OK;
}

static int32_t check_result(const char *call, const struct ds_accel_async_io_result *result,
                            struct ds_accel_error *error)
{
    return result ? check_size(call, "result_out", result->struct_size, sizeof(*result), error)
                  : DS_ACCEL_OK;
}

/* ---- submission ------------------------------------------------------------------------------ */

static int32_t check_transfer(const struct ds_accel_async_io_handle *handle, const char *call,
                              const struct ds_accel_async_io_transfer *transfer, bool write,
                              struct ds_accel_error *error)
{
    const struct ds_accel_async_io_options *options = &handle->options;
    bool device;
    int32_t status;

    if (!transfer)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "transfer is NULL");
    status = check_size(call, "transfer", transfer->struct_size, sizeof(*transfer), error);
    if (status)
        return status;
    device = transfer->flags & DS_ACCEL_ASYNC_IO_DEVICE;
    if (transfer->flags & ~TRANSFER_FLAGS)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "flags is 0x%x; wanted 0x%x or less",
                          transfer->flags, TRANSFER_FLAGS);
    if (!write && (transfer->flags & (DS_ACCEL_ASYNC_IO_TRUNCATE | DS_ACCEL_ASYNC_IO_SYNC)))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "flags is 0x%x; SYNC and TRUNCATE are for writing", transfer->flags);
    if (device && !(write ? options->to_host : options->from_host))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "the handle has no function %s for DEVICE memory",
                          write ? "to_host" : "from_host");
    if (device && (transfer->flags & DS_ACCEL_ASYNC_IO_CHECKSUM) && !options->to_host)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "the handle has no function to_host for the CHECKSUM of DEVICE memory");
    if (transfer->bytes > 0 && !transfer->buffer)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "buffer is NULL, bytes is %" PRIu64,
                          transfer->bytes);
    if (transfer->bytes > SIZE_MAX / 2 || transfer->offset > (uint64_t)INT64_MAX ||
        transfer->bytes > (uint64_t)INT64_MAX - transfer->offset)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "offset %" PRIu64 " and bytes %" PRIu64 " are beyond the largest file",
                          transfer->offset, transfer->bytes);
    return DS_ACCEL_OK;
}

/* Register the file of a request of many blocks in the rings, if they have a place for it. */
static void register_file(struct ds_accel_async_io_handle *handle,
                          struct async_io__request *request)
{
    unsigned place = 0;
    int failed = 0;
    unsigned i;

    if (handle->options.engine != DS_ACCEL_ASYNC_IO_ENGINE_IO_URING || handle->files_refused ||
        request->file.by_call || request->untaken / handle->parts < ASYNC_IO_FILE_BLOCKS)
        return;
    while (place < ASYNC_IO_FILES && (handle->files_used & (UINT32_C(1) << place)))
        place++;
    if (place == ASYNC_IO_FILES)
        return;
    for (i = 0; i < handle->worker_count && !failed; i++)
        failed = async_io__ring_file(handle->workers[i].ring, place, &request->file);
    if (failed) {
        handle->files_refused = true;
        while (--i > 0)
            async_io__ring_file(handle->workers[i - 1].ring, place, NULL);
    } else {
        handle->files_used |= UINT32_C(1) << place;
        request->fixed_file = (int)place;
    }
}

/* A file that the kernel keeps stays open, in a place that is not used again. */
static void unregister_file(struct ds_accel_async_io_handle *handle,
                            const struct async_io__request *request)
{
    int failed = 0;

    if (request->fixed_file < 0)
        return;
    for (unsigned i = 0; i < handle->worker_count; i++)
        failed |= async_io__ring_file(handle->workers[i].ring, (unsigned)request->fixed_file, NULL);
    if (!failed)
        handle->files_used &= ~(UINT32_C(1) << request->fixed_file);
}

static void release(struct async_io__request *request)
{
    async_io__file_close(&request->file);
    free(request->name);
    free(request);
}

/* Return the place of the registered buffer that memory lies in, or -1. */
static int find_buffer(const struct ds_accel_async_io_handle *handle, const char *pointer,
                       uint64_t bytes)
{
    uintptr_t begin = (uintptr_t)pointer;

    for (int i = 0; i < ASYNC_IO_BUFFERS; i++) {
        uintptr_t first = (uintptr_t)handle->buffers[i].pointer;
        uint64_t size = handle->buffers[i].bytes;

        if (first != 0 && begin >= first && begin - first <= size &&
            bytes <= size - (begin - first))
            return i;
    }
    return -1;
}

/* Make a request of a transfer, without a file. */
static struct async_io__request *make_request(const struct ds_accel_async_io_handle *handle,
                                              const struct ds_accel_async_io_transfer *transfer,
                                              bool write)
{
    size_t parts = handle->parts;
    struct async_io__request *request =
        (struct async_io__request *)calloc(1, sizeof(*request) + parts * sizeof(request->parts[0]));
    char text[32];

    if (!request)
        return NULL;
    snprintf(text, sizeof(text), "file descriptor %d", transfer->fd);
    request->name = strdup(transfer->path ? transfer->path : text);
    if (!request->name) {
        free(request);
        return NULL;
    }
    request->write = write;
    request->flags = transfer->flags;
    request->buffer = (char *)transfer->buffer;
    request->offset = transfer->offset;
    request->bytes = transfer->bytes;
    request->file = (struct async_io__file){.plain = -1, .direct = -1};
    request->fixed_file = -1;
    request->fixed_buffer = handle->options.engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING
                                ? find_buffer(handle, request->buffer, request->bytes)
                                : -1;
    return request;
}

static int32_t submit(struct ds_accel_async_io_handle *handle, const char *call,
                      const struct ds_accel_async_io_transfer *transfer, bool write,
                      uint64_t *request_out, struct ds_accel_error *error)
{
    struct async_io__request *request;
    int32_t status = check_transfer(handle, call, transfer, write, error);

    if (status)
        return status;
    request = make_request(handle, transfer, write);
    if (!request)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "out of memory for a request");
    status = async_io__file_open(&request->file, call, transfer, write, &handle->options, error);
    if (status) {
        request->file = (struct async_io__file){.plain = -1, .direct = -1};
        release(request);
        return status;
    }
    if (async_io__wants_staging(request) && !async_io__ensure_staging(handle) &&
        (request->flags & DS_ACCEL_ASYNC_IO_DEVICE)) {
        release(request);
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "cannot map %u blocks of %" PRIu64 " bytes to copy device memory",
                          ASYNC_IO_STAGING * handle->options.parallelism, handle->staging_block);
    }
    request->number = ++handle->last_number;
    handle->pending++;
    if (request_out)
        *request_out = request->number;
    async_io__plan(handle, request);
    register_file(handle, request);
    async_io__start(handle, request);
    return DS_ACCEL_OK;
}

static int32_t io_submit_read(ds_accel_async_io_handle_t *handle,
                              const struct ds_accel_async_io_transfer *transfer,
                              uint64_t *request_out, struct ds_accel_error *error)
{
    int32_t status = check_handle(handle, "async_io: submit_read", error);

    return status ? status
                  : submit(handle, "async_io: submit_read", transfer, false, request_out, error);
}

static int32_t io_submit_write(ds_accel_async_io_handle_t *handle,
                               const struct ds_accel_async_io_transfer *transfer,
                               uint64_t *request_out, struct ds_accel_error *error)
{
    int32_t status = check_handle(handle, "async_io: submit_write", error);

    return status ? status
                  : submit(handle, "async_io: submit_write", transfer, true, request_out, error);
}

/* ---- results --------------------------------------------------------------------------------- */

/* The file's name comes last, because a long one is cut off. */
static void describe(const struct async_io__request *request, uint64_t done, char *text,
                     size_t size)
{
    const struct async_io__failure *failure = &request->failure;
    const char *verb = request->write ? "write" : "read";
    uint64_t at = request->offset + failure->position;
    char cause[96];

    if (failure->function && failure->system_error == 0)
        snprintf(cause, sizeof(cause), "%s: the copy function returned %d", failure->function,
                 failure->status);
    else if (failure->function)
        snprintf(cause, sizeof(cause), "%s: %s", failure->function,
                 strerror(failure->system_error));
    else if (failure->system_error)
        snprintf(cause, sizeof(cause), "%s at offset %" PRIu64, strerror(failure->system_error),
                 at);
    else if (failure->status != DS_ACCEL_ERR_IO)
        snprintf(cause, sizeof(cause), "the copy function returned %d at offset %" PRIu64,
                 failure->status, at);
    else if (request->write)
        snprintf(cause, sizeof(cause), "the system wrote nothing at offset %" PRIu64, at);
    else
        snprintf(cause, sizeof(cause), "the file ends at offset %" PRIu64, at);
    snprintf(text, size, "async_io: %s: %s; %" PRIu64 " of %" PRIu64 " bytes transferred: %s", verb,
             cause, done, request->bytes, request->name);
}

static void make_result(const struct async_io__request *request,
                        struct ds_accel_async_io_result *result)
{
    const struct async_io__failure *failure = &request->failure;
    bool failed = failure->status != DS_ACCEL_OK;

    *result = (struct ds_accel_async_io_result){
        .struct_size = sizeof(*result),
        .status = failure->status,
        .system_error = failure->system_error,
        .request = request->number,
        .bytes = request->bytes,
        .bytes_done = failed ? failure->position : request->bytes,
        .failed_offset = failed && !failure->function ? request->offset + failure->position
                                                      : UINT64_MAX,
        .direct_bytes = request->direct_bytes,
        .checksum = failed ? 0 : request->checksum,
    };
    if (failed)
        describe(request, result->bytes_done, result->message, sizeof(result->message));
}

/* Wait for a request, remove it from the list and release it. */
static void collect(struct ds_accel_async_io_handle *handle, struct async_io__request *request,
                    struct ds_accel_async_io_result *result)
{
    struct async_io__request *before = NULL;

    pthread_mutex_lock(&handle->lock);
    handle->awaited = request;
    while (!request->done)
        pthread_cond_wait(&handle->done, &handle->lock);
    handle->awaited = NULL;
    if (handle->first != request)
        for (before = handle->first; before->next != request; before = before->next)
            ;
    if (before)
        before->next = request->next;
    else
        handle->first = request->next;
    if (handle->last == request)
        handle->last = before;
    if (handle->untaken == request)
        handle->untaken = request->next;
    pthread_mutex_unlock(&handle->lock);
    handle->pending--;
    make_result(request, result);
    unregister_file(handle, request);
    release(request);
}

/* Set the error of a failed request. */
static int32_t report(const struct ds_accel_async_io_result *result, struct ds_accel_error *error)
{
    static const char head[] = "async_io: ";

    return result->status == DS_ACCEL_OK ? DS_ACCEL_OK
                                         : ops__error(error, result->status, "async_io", "%s",
                                                      result->message + sizeof(head) - 1);
}

/* Transfer, and wait for this request only. */
static int32_t run(struct ds_accel_async_io_handle *handle, const char *call,
                   const struct ds_accel_async_io_transfer *transfer, bool write,
                   struct ds_accel_async_io_result *result_out, struct ds_accel_error *error)
{
    struct ds_accel_async_io_result result;
    int32_t status = check_handle(handle, call, error);

    if (status == DS_ACCEL_OK)
        status = check_result(call, result_out, error);
    if (status == DS_ACCEL_OK)
        status = submit(handle, call, transfer, write, NULL, error);
    if (status)
        return status;
    collect(handle, handle->last, &result);
    if (result_out)
        ds_accel_write(result_out, &result, sizeof(result));
    return report(&result, error);
}

static int32_t io_read(ds_accel_async_io_handle_t *handle,
                       const struct ds_accel_async_io_transfer *transfer,
                       struct ds_accel_async_io_result *result_out, struct ds_accel_error *error)
{
    return run(handle, "async_io: read", transfer, false, result_out, error);
}

static int32_t io_write(ds_accel_async_io_handle_t *handle,
                        const struct ds_accel_async_io_transfer *transfer,
                        struct ds_accel_async_io_result *result_out, struct ds_accel_error *error)
{
    return run(handle, "async_io: write", transfer, true, result_out, error);
}

static int32_t io_wait(ds_accel_async_io_handle_t *handle, struct ds_accel_async_io_result *results,
                       uint32_t result_count, uint32_t result_bytes, uint64_t *completed_out,
                       struct ds_accel_error *error)
{
    static const char call[] = "async_io: wait";
    int32_t status = check_handle(handle, call, error);
    uint64_t completed = 0;

    if (status)
        return status;
    if (results && (result_bytes < sizeof(*results) || result_bytes % sizeof(uint64_t) != 0))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "result_bytes is %u; wanted %zu or more, a multiple of 8", result_bytes,
                          sizeof(*results));
    while (handle->first && (!results || completed < result_count)) {
        struct ds_accel_async_io_result result;

        collect(handle, handle->first, &result);
        if (results)
            ds_accel_write_element(results, result_bytes, (uint32_t)completed, &result,
                                   sizeof(result));
        if (status == DS_ACCEL_OK)
            status = report(&result, error);
        completed++;
    }
    if (completed_out)
        *completed_out = completed;
    return status;
}

static int32_t io_wait_one(ds_accel_async_io_handle_t *handle, uint64_t number,
                           struct ds_accel_async_io_result *result_out,
                           struct ds_accel_error *error)
{
    static const char call[] = "async_io: wait_one";
    struct ds_accel_async_io_result result;
    struct async_io__request *request;
    int32_t status = check_handle(handle, call, error);

    if (status == DS_ACCEL_OK)
        status = check_result(call, result_out, error);
    if (status)
        return status;
    request = handle->first;
    while (request && request->number != number)
        request = request->next;
    if (!request)
        return ops__error(error, DS_ACCEL_ERR_NOT_FOUND, call,
                          "no request %" PRIu64 " is pending; the last one was %" PRIu64, number,
                          handle->last_number);
    collect(handle, request, &result);
    if (result_out)
        ds_accel_write(result_out, &result, sizeof(result));
    return report(&result, error);
}

/* ---- registered buffers ---------------------------------------------------------------------- */

/* Put memory in a place of all rings; NULL clears it. Return 0 or an error number. */
static int put_buffer(struct ds_accel_async_io_handle *handle, unsigned place, char *pointer,
                      uint64_t bytes)
{
    int failed = 0;
    unsigned i;

    if (handle->options.engine != DS_ACCEL_ASYNC_IO_ENGINE_IO_URING)
        return 0;
    for (i = 0; i < handle->worker_count && !failed; i++)
        failed = async_io__ring_buffer(handle->workers[i].ring, place, pointer, bytes);
    while (failed && pointer && --i > 0)
        async_io__ring_buffer(handle->workers[i - 1].ring, place, NULL, 0);
    return failed;
}

static int32_t refuse_buffer(int failed, const char *call, uint64_t bytes,
                             struct ds_accel_error *error)
{
    int32_t status = failed == ENOMEM   ? DS_ACCEL_ERR_LIMIT
                     : failed == EFAULT ? DS_ACCEL_ERR_INVALID
                                        : DS_ACCEL_ERR_UNSUPPORTED;

    return ops__error(error, status, call, "io_uring cannot register %" PRIu64 " bytes: %s%s",
                      bytes, strerror(failed), failed == ENOMEM ? " (RLIMIT_MEMLOCK?)" : "");
}

static int32_t io_register_buffer(ds_accel_async_io_handle_t *handle, void *pointer, uint64_t bytes,
                                  struct ds_accel_error *error)
{
    static const char call[] = "async_io: register_buffer";
    int32_t status = check_handle(handle, call, error);
    unsigned place = ASYNC_IO_BUFFERS;
    int failed;

    if (status)
        return status;
    if (!pointer || bytes == 0 || bytes > BUFFER_MOST)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "pointer is %p, bytes is %" PRIu64 "; wanted memory of 1 to 2^30 bytes",
                          pointer, bytes);
    for (unsigned i = ASYNC_IO_BUFFERS; i-- > 0;) {
        const struct async_io__buffer *buffer = &handle->buffers[i];

        if (!buffer->pointer)
            place = i;
        else if ((uintptr_t)pointer < (uintptr_t)buffer->pointer + buffer->bytes &&
                 (uintptr_t)buffer->pointer < (uintptr_t)pointer + bytes)
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "the memory at %p overlaps registered memory at %p", pointer,
                              (void *)buffer->pointer);
    }
    if (place == ASYNC_IO_BUFFERS)
        return ops__error(error, DS_ACCEL_ERR_LIMIT, call, "%d buffers are registered",
                          ASYNC_IO_BUFFERS);
    failed = put_buffer(handle, place, (char *)pointer, bytes);
    if (failed)
        return refuse_buffer(failed, call, bytes, error);
    handle->buffers[place] = (struct async_io__buffer){(char *)pointer, bytes};
    return DS_ACCEL_OK;
}

static int32_t io_unregister_buffer(ds_accel_async_io_handle_t *handle, void *pointer,
                                    struct ds_accel_error *error)
{
    static const char call[] = "async_io: unregister_buffer";
    int32_t status = check_handle(handle, call, error);
    unsigned place = 0;

    if (status)
        return status;
    while (place < ASYNC_IO_BUFFERS &&
           (!pointer || handle->buffers[place].pointer != (char *)pointer))
        place++;
    if (place == ASYNC_IO_BUFFERS)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "%p is not the beginning of registered memory", pointer);
    if (handle->pending > 0)
        return ops__error(error, DS_ACCEL_ERR_BUSY, call, "%u requests are pending; wait for them",
                          handle->pending);
    put_buffer(handle, place, NULL, 0);
    handle->buffers[place] = (struct async_io__buffer){0};
    return DS_ACCEL_OK;
}

/* ---- the handle ------------------------------------------------------------------------------ */

static void io_destroy(ds_accel_async_io_handle_t *handle)
{
    /* A child has no threads to join, and its copy of the lock may be held. */
    if (!handle || handle->process != getpid())
        return;
    io_wait(handle, NULL, 0, 0, NULL, NULL);
    async_io__destroy(handle);
}

static int32_t io_info(ds_accel_async_io_handle_t *handle, struct ds_accel_async_io_info *info_out,
                       struct ds_accel_error *error)
{
    static const char call[] = "async_io: info";
    struct ds_accel_async_io_info info = {0};
    int32_t status = check_handle(handle, call, error);

    if (status)
        return status;
    if (!info_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "info_out is NULL");
    status = check_size(call, "info_out", info_out->struct_size, sizeof(info), error);
    if (status)
        return status;
    info.engine = handle->options.engine;
    info.block_bytes = handle->options.block_bytes;
    info.queue_depth = handle->options.queue_depth;
    info.parallelism = handle->options.parallelism;
    info.single_submit = handle->options.single_submit;
    info.overlap_events = handle->options.overlap_events;
    info.threads = handle->worker_count;
    info.pending = handle->pending;
    snprintf(info.reason, sizeof(info.reason), "%s", handle->reason);
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static const struct ds_accel_async_io table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_async_io),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "async_io",
            .paths = ops__scalar_names,
            .path = ops__scalar_name,
        },
    .create = async_io__create,
    .destroy = io_destroy,
    .info = io_info,
    .read = io_read,
    .write = io_write,
    .submit_read = io_submit_read,
    .submit_write = io_submit_write,
    .wait = io_wait,
    .wait_one = io_wait_one,
    .register_buffer = io_register_buffer,
    .unregister_buffer = io_unregister_buffer,
};

DS_ACCEL_OP("async_io", &table.op);
