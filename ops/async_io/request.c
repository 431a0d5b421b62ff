/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The life of a request: its plan, the blocks that workers take of it, and its end.
 *
 * O_DIRECT transfers the whole pages of a request, [body, body_end). The edges before and behind
 * go through the page cache. A write's edges are written first: written at the same time, the
 * kernel could find their dirty pages in a large folio that also covers pages of the body, and
 * report that it failed to invalidate them. Other requests are not held up.
 *
 * When a block fails, blocks behind it are not taken any more, and those before it are: they decide
 * how many bytes were transferred without a gap.
 */
#include "handle.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A transfer that the kernel puts off is repeated so often, at most each millisecond. */
#define ATTEMPTS 10000u
#define ATTEMPTS_AT_ONCE 10u

/* ---- the plan -------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t number, uint64_t align)
{
    return (number + align - 1) / align * align;
}

/* Return whether a request has whole pages that can go by O_DIRECT. */
static bool has_pages(const struct async_io__request *request)
{
    uint64_t align = request->file.offset_align;

    return request->file.direct >= 0 &&
           round_up(request->offset, align) < (request->offset + request->bytes) / align * align;
}

bool async_io__wants_staging(const struct async_io__request *request)
{
    uint64_t first = round_up(request->offset, request->file.offset_align) - request->offset;

    if (request->flags & DS_ACCEL_ASYNC_IO_DEVICE)
        return true;
    return has_pages(request) && request->file.plain >= 0 &&
           ((uintptr_t)request->buffer + first) % request->file.memory_align != 0;
}

/* Plan the whole pages of a request for O_DIRECT, if that is possible. */
static bool plan_direct(const struct ds_accel_async_io_handle *handle,
                        struct async_io__request *request)
{
    uint64_t align = request->file.offset_align;
    uint64_t block_bytes = round_up(handle->options.block_bytes, align);
    bool staged = async_io__wants_staging(request);

    if (!has_pages(request))
        return false;
    if (staged && (!handle->workers[0].staging || block_bytes > handle->staging_block))
        return false;
    request->staged = staged;
    request->block_bytes = block_bytes;
    request->body = round_up(request->offset, align) - request->offset;
    request->body_end = (request->offset + request->bytes) / align * align - request->offset;
    return true;
}

void async_io__plan(const struct ds_accel_async_io_handle *handle,
                    struct async_io__request *request)
{
    uint64_t blocks;
    unsigned parts = handle->parts;

    request->staged = (request->flags & DS_ACCEL_ASYNC_IO_DEVICE) != 0;
    request->block_bytes = handle->options.block_bytes;
    request->body_end = request->bytes;
    /* Of a file that is open with O_DIRECT only, the kernel accepts what it can. */
    request->direct = request->file.plain < 0 || plan_direct(handle, request);
    request->head_left = request->body > 0;
    request->tail_left = request->body_end < request->bytes;
    request->edges_unfinished = (unsigned)request->head_left + (unsigned)request->tail_left;
    blocks = (request->body_end - request->body) / request->block_bytes +
             ((request->body_end - request->body) % request->block_bytes != 0);
    request->unfinished = request->untaken = blocks + request->edges_unfinished;
    for (unsigned i = 0; i < parts; i++) {
        request->parts[i].next = blocks / parts * i + (i < blocks % parts ? i : blocks % parts);
        request->parts[i].end = request->parts[i].next + blocks / parts + (i < blocks % parts);
    }
}

/* ---- the end of a request -------------------------------------------------------------------- */

static void fail(struct async_io__request *request, const struct async_io__failure *failure)
{
    if (request->failure.status == DS_ACCEL_OK || failure->position < request->failure.position)
        request->failure = *failure;
}

static int32_t call_copy(const struct ds_accel_async_io_options *options, bool to_host,
                         void *destination, const void *source, uint64_t bytes)
{
    ds_accel_async_io_copy_fn function = to_host ? options->to_host : options->from_host;
    int32_t status = function(options->user_data, destination, source, bytes);

    return status > 0 ? DS_ACCEL_ERR_INTERNAL : status;
}

/* Compute the checksum of a request's memory. A device's memory is copied to a staging block, so
 * that its checksum also covers the copies of a read. */
static int32_t compute_checksum(const struct ds_accel_async_io_handle *handle,
                                struct async_io__request *request, char *staging)
{
    XXH3_state_t state;

    if (!(request->flags & DS_ACCEL_ASYNC_IO_DEVICE)) {
        request->checksum = XXH3_64bits(request->buffer, (size_t)request->bytes);
        return DS_ACCEL_OK;
    }
    XXH3_64bits_reset(&state);
    for (uint64_t at = 0; at < request->bytes; at += handle->staging_block) {
        uint64_t left = request->bytes - at;
        uint64_t bytes = left < handle->staging_block ? left : handle->staging_block;
        int32_t status = call_copy(&handle->options, true, staging, request->buffer + at, bytes);

        if (status)
            return status;
        XXH3_64bits_update(&state, staging, (size_t)bytes);
    }
    request->checksum = XXH3_64bits_digest(&state);
    return DS_ACCEL_OK;
}

/* Do what a request needs after all of its blocks were transferred, without the lock. staging is
 * the last block's. */
static void conclude(const struct ds_accel_async_io_handle *handle,
                     struct async_io__request *request, char *staging)
{
    struct async_io__failure failure = {0};

    failure.system_error = async_io__file_conclude(request, &failure.function);
    if (failure.system_error) {
        failure.status = async_io__status(failure.system_error);
        /* After a failed fsync() nobody knows what is on the disk. */
        failure.position = strcmp(failure.function, "ftruncate") == 0 ? request->bytes : 0;
    } else if (request->flags & DS_ACCEL_ASYNC_IO_CHECKSUM) {
        failure.status = compute_checksum(handle, request, staging);
        failure.function = "checksum";
        failure.position = request->bytes;
    }
    if (failure.status)
        fail(request, &failure);
}

/* With the lock held. */
static void set_done(struct ds_accel_async_io_handle *handle, struct async_io__request *request)
{
    request->done = true;
    if (handle->awaited == request)
        pthread_cond_signal(&handle->done);
}

/* Return how many signals a request needs if any thread can take its blocks; UINT64_MAX: all
 * threads must wake. A thread that has just gone to sleep may receive the signal that was meant for
 * another one, so counting suffices only where every thread can do the same. Called with the lock
 * held. */
static uint64_t count_signals(const struct ds_accel_async_io_handle *handle,
                              const struct async_io__request *request)
{
    bool all = handle->parts > 1 || request->staged || request->untaken > handle->sleeping;

    return all ? UINT64_MAX : request->untaken;
}

void async_io__start(struct ds_accel_async_io_handle *handle, struct async_io__request *request)
{
    bool empty = request->unfinished == 0;
    uint64_t signals;

    if (empty)
        conclude(handle, request, NULL);
    pthread_mutex_lock(&handle->lock);
    request->done = empty;
    if (handle->last)
        handle->last->next = request;
    else
        handle->first = request;
    handle->last = request;
    if (!handle->untaken)
        handle->untaken = request;
    handle->blocks_left += request->untaken;
    if (request->staged)
        handle->staged_left += request->untaken;
    signals = count_signals(handle, request);
    pthread_mutex_unlock(&handle->lock);
    if (signals == UINT64_MAX)
        pthread_cond_broadcast(&handle->work);
    else
        while (signals-- > 0)
            pthread_cond_signal(&handle->work);
}

/* ---- taking blocks, with the lock held ------------------------------------------------------- */

static uint64_t smaller(uint64_t first, uint64_t second)
{
    return first < second ? first : second;
}

/* Return how many adjacent blocks a thread takes at once, of those that are left of a part: its
 * share of all that is left. Busy threads have theirs, so it is divided among the sleeping ones. */
static uint64_t run_length(const struct ds_accel_async_io_handle *handle,
                           const struct async_io__request *request, uint64_t left)
{
    uint64_t share = handle->blocks_left / (handle->sleeping + 1);
    uint64_t most = smaller(handle->run, handle->most_taken - handle->blocks_taken);

    return request->staged || share == 0 ? 1 : smaller(smaller(share, most), left);
}

/* Find the next block that a worker may take of a request. */
static bool next_block(struct async_io__worker *worker, struct async_io__request *request,
                       struct async_io__block *block)
{
    struct async_io__part *part = &request->parts[worker->part];
    uint64_t count = 1;
    uint64_t end = request->body_end;

    *block = (struct async_io__block){.request = request, .staging = -1};
    if (request->head_left) {
        request->head_left = false;
        block->edge = true;
        end = request->body;
    } else if (request->tail_left) {
        request->tail_left = false;
        block->edge = true;
        block->position = request->body_end;
        end = request->bytes;
    } else if (part->next < part->end && !(request->write && request->edges_unfinished > 0)) {
        block->direct = request->direct &&
                        !atomic_load_explicit(&request->direct_refused, memory_order_relaxed);
        block->position = request->body + part->next * request->block_bytes;
        count = run_length(worker->handle, request, part->end - part->next);
        if (end - block->position > count * request->block_bytes)
            end = block->position + count * request->block_bytes;
        part->next += count;
    } else {
        return false;
    }
    block->bytes = end - block->position;
    block->memory = request->buffer + block->position;
    block->count = count;
    request->untaken -= count;
    worker->handle->blocks_left -= count;
    if (request->staged)
        worker->handle->staged_left -= count;
    worker->handle->blocks_taken += count;
    return true;
}

static void count_finished(struct ds_accel_async_io_handle *handle,
                           const struct async_io__block *block)
{
    bool was_full = handle->blocks_taken >= handle->most_taken;

    handle->blocks_taken -= block->count;
    block->request->unfinished -= block->count;
    /* This thread may have no staging memory for the blocks that now have room. */
    if ((block->edge && --block->request->edges_unfinished == 0) ||
        (was_full && handle->staged_left > 0))
        pthread_cond_broadcast(&handle->work);
}

static bool take_staging(struct async_io__worker *worker, struct async_io__block *block)
{
    for (unsigned i = 0; i < worker->staging_count; i++) {
        if (worker->staging_used & (UINT32_C(1) << i))
            continue;
        worker->staging_used |= UINT32_C(1) << i;
        block->staging = (int)i;
        block->memory = worker->staging + i * worker->handle->staging_block;
        return true;
    }
    return false;
}

static bool has_staging(const struct async_io__worker *worker)
{
    return worker->staging_used != (uint32_t)((UINT64_C(1) << worker->staging_count) - 1);
}

/* Take a block of a request. Blocks behind a failure are passed over. */
static bool take_of(struct async_io__worker *worker, struct async_io__request *request,
                    struct async_io__block *block)
{
    if (request->staged && !has_staging(worker))
        return false;
    while (next_block(worker, request, block)) {
        if (request->failure.status == DS_ACCEL_OK || block->position < request->failure.position)
            return !request->staged || take_staging(worker, block);
        count_finished(worker->handle, block);
        if (request->unfinished == 0)
            set_done(worker->handle, request);
    }
    return false;
}

static bool take_any(struct async_io__worker *worker, struct async_io__block *block)
{
    struct ds_accel_async_io_handle *handle = worker->handle;

    if (handle->blocks_taken >= handle->most_taken)
        return false;
    while (handle->untaken && handle->untaken->untaken == 0)
        handle->untaken = handle->untaken->next;
    for (struct async_io__request *request = handle->untaken; request; request = request->next)
        if (request->untaken > 0 && take_of(worker, request, block))
            return true;
    return false;
}

bool async_io__take(struct async_io__worker *worker, bool wait, struct async_io__block *block)
{
    struct ds_accel_async_io_handle *handle = worker->handle;
    bool taken;
    bool more;

    pthread_mutex_lock(&handle->lock);
    while (!(taken = take_any(worker, block)) && wait && !handle->stopping) {
        handle->sleeping++;
        pthread_cond_wait(&handle->work, &handle->lock);
        handle->sleeping--;
    }
    /* Finished blocks make room for other ones, of which this thread has left some. */
    more = taken && handle->blocks_left > 0 && handle->sleeping > 0 &&
           handle->blocks_taken < handle->most_taken;
    pthread_mutex_unlock(&handle->lock);
    if (more)
        pthread_cond_signal(&handle->work);
    return taken;
}

/* ---- transferring a block, without the lock -------------------------------------------------- */

/* Copy between a block's staging memory and the request's buffer. */
static void copy(struct async_io__block *block, const struct ds_accel_async_io_options *options)
{
    const struct async_io__request *request = block->request;
    char *buffer = request->buffer + block->position;
    uint64_t bytes = request->write ? block->bytes : block->done;
    char *destination = request->write ? block->memory : buffer;
    const char *source = request->write ? buffer : block->memory;

    if (bytes == 0)
        return;
    if (request->flags & DS_ACCEL_ASYNC_IO_DEVICE)
        block->status = call_copy(options, request->write, destination, source, bytes);
    else
        memcpy(destination, source, (size_t)bytes);
}

bool async_io__fill(struct async_io__worker *worker, struct async_io__block *block)
{
    if (block->staging >= 0 && block->request->write)
        copy(block, &worker->handle->options);
    return block->status == DS_ACCEL_OK;
}

static void set_failed(struct async_io__block *block, int system_error)
{
    block->system_error = system_error;
    block->status = system_error ? async_io__status(system_error) : DS_ACCEL_ERR_IO;
}

/* Decide about a transfer that the kernel put off. */
static bool repeat(struct async_io__block *block, int system_error)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    if (++block->attempts == ATTEMPTS) {
        set_failed(block, system_error);
        return false;
    }
    if (block->attempts > ATTEMPTS_AT_ONCE)
        nanosleep(&pause, NULL);
    return true;
}

bool async_io__advance(struct async_io__block *block, int64_t result)
{
    struct async_io__request *request = block->request;

    if (result == -EINTR || result == -EAGAIN)
        return repeat(block, (int)-result);
    if ((result == -EINVAL || result == -EOPNOTSUPP) && block->direct && request->file.plain >= 0) {
        atomic_store_explicit(&request->direct_refused, true, memory_order_relaxed);
        block->direct = false;
        return true;
    }
    if (result <= 0) {
        set_failed(block, (int)-result);
        return false;
    }
    block->attempts = 0;
    block->done += (uint64_t)result;
    if (block->direct)
        block->direct_done += (uint64_t)result;
    /* O_DIRECT cannot continue in the middle of a sector, as at the end of a file. */
    if (block->done % request->file.offset_align != 0 && request->file.plain >= 0)
        block->direct = false;
    return block->done < block->bytes;
}

void async_io__transfer(struct async_io__block *block)
{
    const struct async_io__request *request = block->request;
    ssize_t moved;

    do {
        uint64_t position = block->position + block->done;
        off_t offset = (off_t)(request->offset + position);
        char *memory = block->memory + block->done;
        size_t bytes = (size_t)(block->bytes - block->done);

        moved = request->write ? pwrite(async_io__block_fd(block), memory, bytes, offset)
                               : pread(async_io__block_fd(block), memory, bytes, offset);
    } while (async_io__advance(block, moved < 0 ? -errno : moved));
}

static void report_failure(const struct async_io__block *block)
{
    const struct async_io__failure failure = {.status = block->status,
                                              .system_error = block->system_error,
                                              .position = block->position + block->done};

    fail(block->request, &failure);
}

void async_io__finish(struct async_io__worker *worker, struct async_io__block *block)
{
    struct ds_accel_async_io_handle *handle = worker->handle;
    struct async_io__request *request = block->request;
    int32_t status = block->status;
    bool last;

    if (block->staging >= 0 && !request->write) {
        block->status = DS_ACCEL_OK;
        copy(block, &handle->options);
        if (block->status == DS_ACCEL_OK) {
            block->status = status;
        } else {
            block->done = 0;
            block->system_error = 0;
        }
    }
    pthread_mutex_lock(&handle->lock);
    request->direct_bytes += block->direct_done;
    if (block->status != DS_ACCEL_OK)
        report_failure(block);
    count_finished(handle, block);
    last = request->unfinished == 0;
    if (last && request->failure.status == DS_ACCEL_OK) {
        pthread_mutex_unlock(&handle->lock);
        conclude(handle, request, block->memory);
        pthread_mutex_lock(&handle->lock);
    }
    if (last)
        set_done(handle, request);
    if (block->staging >= 0)
        worker->staging_used &= ~(UINT32_C(1) << block->staging);
    pthread_mutex_unlock(&handle->lock);
}
