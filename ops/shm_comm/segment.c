/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The shared memory of shm_comm: its layout, reservation and mapping. */
#include "common/error.h"
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define USUAL_SLOT ((uint64_t)512 << 10)
#define LEAST_SLOT ((uint64_t)16 << 10) /* 64 bytes for each of the most ranks */
#define SLOT_UNIT ((uint64_t)4096)
#define CAPACITY ((uint64_t)1 << 50)
/* Memory is reserved in steps, and so much stays available. */
#define STEP ((uint64_t)64 << 20)
#define MARGIN ((uint64_t)64 << 20)

/* Ranks' words lie at different offsets within their pages, so that those of many ranks do not fall
 * into the same sets of the first cache. */
#define RANK_COLORS 8
#define RANK_BYTES 512
_Static_assert(sizeof(struct ops__shm_rank) <= RANK_BYTES, "the words of a rank");
_Static_assert(sizeof(struct ops__shm_line) == 64, "a cache line");

static uint64_t round_up(uint64_t number, uint64_t unit)
{
    return (number + unit - 1) / unit * unit;
}

size_t ops__shm_slot(uint64_t buffer_bytes)
{
    uint64_t slot = (buffer_bytes + OPS__SHM_SLOTS - 1) / OPS__SHM_SLOTS;

    if (buffer_bytes == 0)
        slot = USUAL_SLOT;
    return round_up(slot < LEAST_SLOT ? LEAST_SLOT : slot, SLOT_UNIT);
}

void ops__shm_layout(struct ds_accel_comm *comm)
{
    uint32_t least = comm->size; /* ranks of a group */
    uint64_t shares = 1;
    uint64_t area;

    comm->share_bytes = round_up((comm->slot_bytes + comm->size - 1) / comm->size, 64);
    comm->owned_shares = 1;
    for (uint32_t i = 0; i < comm->group_count; i++)
        if (comm->groups[i].size < least)
            least = comm->groups[i].size;
    if (comm->group_count > 1) {
        comm->share_bytes += 128; /* of 16-bit floats that were rounded up, in float32 */
        comm->owned_shares = (comm->size + least - 1) / least;
        shares = 2 * comm->owned_shares;
    }
    area = (uint64_t)RANK_COLORS * RANK_BYTES + 2 * OPS__SHM_SMALL +
           (comm->slot_bytes + comm->share_bytes * shares) * OPS__SHM_SLOTS;
    comm->area_bytes = round_up(area, OPS__SHM_PAGE);
    comm->memory_bytes = OPS__SHM_PAGE + comm->area_bytes * comm->size;
    comm->end = comm->memory_bytes;
}

char *ops__shm_small(const struct ds_accel_comm *comm, uint32_t rank)
{
    return (char *)comm->base + OPS__SHM_PAGE + comm->area_bytes * rank +
           (size_t)RANK_COLORS * RANK_BYTES;
}

static int32_t reserve_failed(const char *call, int cause, uint64_t bytes,
                              struct ds_accel_error *error)
{
    errno = cause; /* ops__shm_alloc() tells other ranks */
    return ops__error(error, cause == EFBIG ? DS_ACCEL_ERR_LIMIT : DS_ACCEL_ERR_NO_MEMORY, call,
                      "cannot reserve %" PRIu64 " bytes of shared memory: %s", bytes,
                      strerror(cause));
}

static int32_t no_room(const char *call, const struct ops__shm_room *room, uint64_t bytes,
                       struct ds_accel_error *error)
{
    errno = ENOMEM;
    return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                      "cannot reserve %" PRIu64 " bytes of shared memory: %s: %s leaves %" PRIu64,
                      bytes, strerror(ENOMEM), room->source, room->bytes);
}

/*
 * A memfd has no size limit, so the kernel does not return ENOSPC when memory runs out, but ends
 * processes: the room is compared in advance, and between steps, because all ranks reserve at the
 * same time, perhaps in one cgroup.
 */
int32_t ops__shm_reserve(const char *call, const struct ds_accel_comm *comm, uint64_t offset,
                         uint64_t bytes, struct ds_accel_error *error)
{
    uint64_t wanted = bytes; /* at once; afterwards, by steps */

    if (bytes > comm->capacity || offset > comm->capacity - bytes)
        return ops__error(error, DS_ACCEL_ERR_LIMIT, call,
                          "RLIMIT_FSIZE of rank 0 leaves %" PRIu64 " bytes; wanted %" PRIu64,
                          offset > comm->capacity ? 0 : comm->capacity - offset, bytes);
    for (uint64_t done = 0; done < bytes;) {
        uint64_t step = bytes - done < STEP ? bytes - done : STEP;
        uint64_t together = step * comm->size;
        struct ops__shm_room room = ops__shm_room();

        if (room.bytes < (wanted > together ? wanted : together) + MARGIN)
            return no_room(call, &room, bytes, error);
        while (fallocate(comm->file, 0, (off_t)(offset + done), (off_t)step) != 0)
            if (errno != EINTR)
                return reserve_failed(call, errno, bytes, error);
        wanted = 0;
        done += step;
    }
    return DS_ACCEL_OK;
}

/* RLIMIT_FSIZE is examined here, because the kernel would send SIGXFSZ. */
static uint64_t largest_file(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > CAPACITY)
        return CAPACITY;
    return limit.rlim_cur / OPS__SHM_PAGE * OPS__SHM_PAGE;
}

static int32_t file_failed(const char *call, const char *function, struct ds_accel_error *error)
{
    int cause = errno;
    int32_t status = cause == EMFILE || cause == ENFILE ? DS_ACCEL_ERR_LIMIT
                     : cause == ENOSYS                  ? DS_ACCEL_ERR_UNSUPPORTED
                                                        : DS_ACCEL_ERR_NO_MEMORY;

    return ops__error(error, status, call, "%s: %s", function, strerror(cause));
}

int32_t ops__shm_create_file(const char *call, struct ds_accel_comm *comm, uint64_t nonce,
                             struct ds_accel_error *error)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int32_t status;

    comm->file = memfd_create("ds-accel-shm-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (comm->file < 0)
        return file_failed(call, "memfd_create", error);
    comm->capacity = largest_file();
    if (comm->capacity < comm->memory_bytes)
        return ops__error(error, DS_ACCEL_ERR_LIMIT, call,
                          "RLIMIT_FSIZE allows %" PRIu64 " bytes; wanted %zu", comm->capacity,
                          comm->memory_bytes);
    if (ftruncate(comm->file, (off_t)comm->capacity) != 0)
        return file_failed(call, "ftruncate", error);
    if (fcntl(comm->file, F_ADD_SEALS, seals) != 0)
        return file_failed(call, "fcntl(F_ADD_SEALS)", error);
    status = ops__shm_reserve(call, comm, 0, OPS__SHM_PAGE, error);
    if (status == DS_ACCEL_OK && pwrite(comm->file, &nonce, sizeof(nonce), 0) != sizeof(nonce))
        return file_failed(call, "pwrite", error);
    return status;
}

/* A word that is 0 in children of fork(). */
static int32_t mark_parent(const char *call, struct ds_accel_comm *comm,
                           struct ds_accel_error *error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (word == MAP_FAILED)
        return file_failed(call, "mmap", error);
    *(uint32_t *)word = 1;
    comm->is_parent = (const uint32_t *)word;
    if (madvise(word, page, MADV_WIPEONFORK) != 0)
        return file_failed(call, "madvise(MADV_WIPEONFORK)", error);
    return DS_ACCEL_OK;
}

static void find_ranks(struct ds_accel_comm *comm)
{
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        unsigned char *area = comm->base + OPS__SHM_PAGE + comm->area_bytes * rank;
        size_t color = (size_t)(rank % RANK_COLORS) * RANK_BYTES;

        comm->ranks[rank] = (struct ops__shm_rank *)(void *)(area + color);
    }
}

int32_t ops__shm_map(const char *call, struct ds_accel_comm *comm, uint64_t nonce,
                     struct ds_accel_error *error)
{
    uint64_t own = OPS__SHM_PAGE + comm->area_bytes * comm->rank;
    int32_t status = mark_parent(call, comm, error);
    void *base;

    if (status == DS_ACCEL_OK)
        status = ops__shm_reserve(call, comm, own, comm->area_bytes, error);
    if (status != DS_ACCEL_OK)
        return status;
    base = mmap(NULL, comm->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, comm->file, 0);
    if (base == MAP_FAILED)
        return file_failed(call, "mmap", error);
    comm->base = (unsigned char *)base;
    find_ranks(comm);
    if (ops__shm_header(comm)->nonce != nonce)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                          "the memory that rank 0 shares is not the memory mapped here");
    comm->ranks[comm->rank]->process = getpid();
    return DS_ACCEL_OK;
}

void ops__shm_release(struct ds_accel_comm *comm)
{
    for (size_t i = 0; i < comm->buffer_count; i++)
        if (comm->buffers[i].base)
            munmap(comm->buffers[i].base, comm->buffers[i].stride * comm->size);
    free(comm->buffers);
    if (comm->base)
        munmap(comm->base, comm->memory_bytes);
    if (comm->is_parent)
        munmap((void *)(uintptr_t)comm->is_parent, (size_t)sysconf(_SC_PAGESIZE));
    for (uint32_t rank = 0; rank < comm->size; rank++)
        if (comm->processes[rank] >= 0)
            close(comm->processes[rank]);
    if (comm->file >= 0)
        close(comm->file);
    free(comm);
}
