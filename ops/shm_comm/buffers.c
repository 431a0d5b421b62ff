/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Registered buffers of shm_comm. */
#include "common/error.h"
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLACE_BITS 48 /* of the offset in a buffer; above, its number + 1 */
#define MOST_BYTES ((uint64_t)1 << 40)

/* What a rank tells the others about its part of a new buffer. */
struct outcome {
    int32_t status;
    int32_t cause; /* errno, or 0 */
};

uint64_t ops__shm_place(const struct ds_accel_comm *comm, const void *array, size_t bytes)
{
    for (size_t i = 0; i < comm->buffer_count; i++) {
        const struct ops__shm_buffer *buffer = &comm->buffers[i];
        uintptr_t base = (uintptr_t)buffer->base + buffer->stride * comm->rank;
        uintptr_t offset = (uintptr_t)array - base;

        if (buffer->base && offset < buffer->bytes && bytes <= buffer->bytes - offset)
            return (uint64_t)(i + 1) << PLACE_BITS | offset;
    }
    return 0;
}

char *ops__shm_there(const struct ds_accel_comm *comm, uint32_t rank, uint64_t place)
{
    const struct ops__shm_buffer *buffer = &comm->buffers[(place >> PLACE_BITS) - 1];

    return (char *)buffer->base + buffer->stride * rank +
           (place & (((uint64_t)1 << PLACE_BITS) - 1));
}

/* Return the first free place, the same for all ranks; NULL: no memory. */
static struct ops__shm_buffer *find_place(struct ds_accel_comm *comm)
{
    for (size_t i = 0; i < comm->buffer_count; i++)
        if (!comm->buffers[i].base)
            return &comm->buffers[i];
    if (comm->buffer_count == comm->buffer_capacity) {
        size_t larger = comm->buffer_capacity ? comm->buffer_capacity * 2 : 8;
        struct ops__shm_buffer *grown =
            (struct ops__shm_buffer *)realloc(comm->buffers, larger * sizeof(*grown));

        if (!grown)
            return NULL;
        comm->buffers = grown;
        comm->buffer_capacity = larger;
    }
    comm->buffers[comm->buffer_count] = (struct ops__shm_buffer){0};
    return &comm->buffers[comm->buffer_count];
}

static void release(struct ds_accel_comm *comm, struct ops__shm_buffer *buffer)
{
    if (buffer->base)
        munmap(buffer->base, buffer->stride * comm->size);
    fallocate(comm->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)(buffer->offset + buffer->stride * comm->rank), (off_t)buffer->stride);
    buffer->base = NULL;
}

/* Reserve this rank's part and map all parts. */
static int32_t make(const char *call, struct ds_accel_comm *comm, struct ops__shm_buffer *buffer,
                    struct ds_accel_error *error)
{
    size_t all = buffer->stride * comm->size;
    int32_t status = ops__shm_reserve(call, comm, buffer->offset + buffer->stride * comm->rank,
                                      buffer->stride, error);
    void *base;

    if (status)
        return status;
    base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, comm->file, (off_t)buffer->offset);
    if (base == MAP_FAILED)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "cannot map %zu bytes: %s", all,
                          strerror(errno));
    buffer->base = (unsigned char *)base;
    return DS_ACCEL_OK;
}

/* Arrive with the outcome of this rank; return whether all have their part. */
static int32_t agree(const char *call, struct ds_accel_comm *comm, int32_t status, int cause,
                     struct ds_accel_error *error)
{
    struct outcome *own = (struct outcome *)ops__shm_own_message(comm);

    *own = (struct outcome){.status = status, .cause = cause};
    ops__shm_announce(comm);
    if (ops__shm_await_all(comm))
        return ops__shm_failure(comm, call, error);
    if (status)
        return status;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        const struct outcome *other = (const struct outcome *)ops__shm_message(comm, rank);

        if (other->status)
            return ops__error(error, other->status, call, "rank %u (process %lld) failed: %s", rank,
                              (long long)comm->ranks[rank]->process, strerror(other->cause));
    }
    return DS_ACCEL_OK;
}

int32_t ops__shm_alloc(const char *call, struct ds_accel_comm *comm, uint64_t bytes,
                       void **pointer_out, struct ds_accel_error *error)
{
    uint64_t signature = ops__shm_sign(OPS__SHM_ALLOC, 0, 0, 0, bytes);
    struct ops__shm_buffer *buffer;
    int32_t status = DS_ACCEL_OK;
    int cause;

    if (bytes == 0 || bytes >= MOST_BYTES)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "bytes is %" PRIu64 "; wanted 1 to 2^40 - 1", bytes);
    if (ops__shm_begin(comm, signature, 0))
        return ops__shm_failure(comm, call, error);
    errno = ENOMEM;
    buffer = find_place(comm);
    if (!buffer)
        status = ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                            "out of memory for the list of buffers");
    if (buffer) {
        *buffer = (struct ops__shm_buffer){
            .stride = (bytes + OPS__SHM_PAGE - 1) / OPS__SHM_PAGE * OPS__SHM_PAGE,
            .bytes = bytes,
            .offset = comm->end,
        };
        status = make(call, comm, buffer, error);
    }
    cause = errno;
    status = agree(call, comm, status, cause, error);
    if (status && buffer)
        release(comm, buffer);
    if (status || !buffer)
        return status;
    if ((size_t)(buffer - comm->buffers) == comm->buffer_count)
        comm->buffer_count++;
    comm->end += buffer->stride * comm->size;
    comm->registered_bytes += bytes;
    *pointer_out = buffer->base + buffer->stride * comm->rank;
    return DS_ACCEL_OK;
}

int32_t ops__shm_free(const char *call, struct ds_accel_comm *comm, void *pointer,
                      struct ds_accel_error *error)
{
    for (size_t i = 0; i < comm->buffer_count; i++) {
        struct ops__shm_buffer *buffer = &comm->buffers[i];
        uint64_t signature = ops__shm_sign(OPS__SHM_FREE, 0, 0, 0, i + 1);
        int32_t failed;

        if (!buffer->base || pointer != buffer->base + buffer->stride * comm->rank)
            continue;
        failed = ops__shm_begin(comm, signature, 0);
        if (!failed) {
            ops__shm_announce(comm);
            failed = ops__shm_await_all(comm);
        }
        release(comm, buffer);
        comm->registered_bytes -= buffer->bytes;
        if (comm->end == buffer->offset + buffer->stride * comm->size)
            comm->end = buffer->offset;
        return failed ? ops__shm_failure(comm, call, error) : DS_ACCEL_OK;
    }
    return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                      "%p is not the beginning of a registered buffer; was it freed before?",
                      pointer);
}
