/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The engine io_uring. Each worker has a ring and keeps up to queue_depth blocks in it. If the
 * kernel refuses io_uring_enter() for good, as after a seccomp filter was added, the worker waits
 * for the blocks that the kernel has, and transfers all others as a thread does.
 */
#include "handle.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A file's descriptors in a ring's table: without O_DIRECT, and with it. */
#define FDS_OF_FILE 2
/* If more entries than UNMERGED are submitted at once, the kernel merges adjacent blocks. Of large
 * ones, that makes fewer requests to the device, which then has less to do at a time. */
#define UNMERGED 2
#define LARGE_BLOCK ((uint64_t)128 << 10)

struct slot {
    struct async_io__block block;
    uint64_t prepared; /* number of the queue entry, counted from 1; 0: the slot is free */
};

struct async_io__ring {
    struct io_uring queue;
    uint64_t prepared; /* queue entries so far */
    unsigned depth;
    unsigned active; /* slots in use */
    bool broken;
    unsigned *free; /* indices of the free slots: free_count of them */
    unsigned free_count;
    struct slot *slots;
};

static bool has_operations(struct io_uring *queue)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(queue);
    bool has = probe && io_uring_opcode_supported(probe, IORING_OP_READ) &&
               io_uring_opcode_supported(probe, IORING_OP_WRITE);

    io_uring_free_probe(probe);
    return has;
}

int async_io__ring_create(struct async_io__worker *worker, const char **function_out)
{
    unsigned depth = worker->handle->options.queue_depth;
    struct async_io__ring *ring = (struct async_io__ring *)calloc(1, sizeof(*ring));
    int failed = ENOMEM;

    *function_out = "malloc";
    if (!ring)
        return failed;
    ring->slots = (struct slot *)calloc(depth, sizeof(*ring->slots));
    ring->free = (unsigned *)calloc(depth, sizeof(*ring->free));
    if (!ring->slots || !ring->free)
        goto out_free;
    *function_out = "io_uring_setup";
    failed = -io_uring_queue_init(depth, &ring->queue, 0);
    if (failed)
        goto out_free;
    *function_out = "the operations READ and WRITE";
    failed = ENOSYS;
    if (!has_operations(&ring->queue))
        goto out_exit;
    /* A child of fork() has no use for the queue. */
    io_uring_ring_dontfork(&ring->queue);
    ring->depth = ring->free_count = depth;
    for (unsigned i = 0; i < depth; i++)
        ring->free[i] = depth - 1 - i;
    worker->ring = ring;
    return 0;
out_exit:
    io_uring_queue_exit(&ring->queue);
out_free:
    free(ring->free);
    free(ring->slots);
    free(ring);
    return failed;
}

void async_io__ring_destroy(struct async_io__ring *ring)
{
    if (!ring)
        return;
    io_uring_queue_exit(&ring->queue);
    free(ring->free);
    free(ring->slots);
    free(ring);
}

int async_io__ring_buffer(struct async_io__ring *ring, unsigned index, char *pointer,
                          uint64_t bytes)
{
    const struct iovec memory = {.iov_base = pointer, .iov_len = (size_t)bytes};
    __u64 tag = 0;
    int updated = io_uring_register_buffers_update_tag(&ring->queue, index, &memory, &tag, 1);

    if (updated == -ENXIO && pointer) {
        updated = io_uring_register_buffers_sparse(&ring->queue, ASYNC_IO_BUFFERS);
        if (updated == 0)
            updated = io_uring_register_buffers_update_tag(&ring->queue, index, &memory, &tag, 1);
    }
    return updated < 0 ? -updated : 0;
}

int async_io__ring_file(struct async_io__ring *ring, unsigned place,
                        const struct async_io__file *file)
{
    const int fds[FDS_OF_FILE] = {file ? file->plain : -1, file ? file->direct : -1};
    unsigned first = place * FDS_OF_FILE;
    int updated = io_uring_register_files_update(&ring->queue, first, fds, FDS_OF_FILE);
    if (updated == -ENXIO && file) {
        updated = io_uring_register_files_sparse(&ring->queue, ASYNC_IO_FILES * FDS_OF_FILE);
        if (updated == 0)
            updated = io_uring_register_files_update(&ring->queue, first, fds, FDS_OF_FILE);
    }
    return updated < 0 ? -updated : 0;
}

/* Put a slot's block, or the rest of it, into the queue. There is a free entry for each slot. */
static void prepare(struct async_io__ring *ring, struct slot *slot)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->queue);
    const struct async_io__block *block = &slot->block;
    const struct async_io__request *request = block->request;
    uint64_t offset = request->offset + block->position + block->done;
    char *memory = block->memory + block->done;
    unsigned bytes = (unsigned)(block->bytes - block->done);
    bool fixed_file = request->fixed_file >= 0;
    int fd = fixed_file ? request->fixed_file * FDS_OF_FILE + block->direct
                        : async_io__block_fd(block);

    if (block->staging < 0 && request->fixed_buffer >= 0) {
        if (request->write)
            io_uring_prep_write_fixed(entry, fd, memory, bytes, offset, request->fixed_buffer);
        else
            io_uring_prep_read_fixed(entry, fd, memory, bytes, offset, request->fixed_buffer);
    } else if (request->write) {
        io_uring_prep_write(entry, fd, memory, bytes, offset);
    } else {
        io_uring_prep_read(entry, fd, memory, bytes, offset);
    }
    if (fixed_file)
        entry->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data(entry, slot);
    slot->prepared = ++ring->prepared;
}

static void finish(struct async_io__worker *worker, struct slot *slot)
{
    struct async_io__ring *ring = worker->ring;

    async_io__finish(worker, &slot->block);
    slot->prepared = 0;
    ring->free[ring->free_count++] = (unsigned)(slot - ring->slots);
    ring->active--;
}

/* Handle the completions that there are. Return their number. */
static unsigned reap(struct async_io__worker *worker)
{
    struct async_io__ring *ring = worker->ring;
    struct io_uring_cqe *completion;
    unsigned count = 0;

    while (io_uring_peek_cqe(&ring->queue, &completion) == 0) {
        struct slot *slot = (struct slot *)io_uring_cqe_get_data(completion);
        int result = completion->res;

        io_uring_cqe_seen(&ring->queue, completion);
        count++;
        if (!async_io__advance(&slot->block, result)) {
            finish(worker, slot);
        } else if (ring->broken) {
            async_io__transfer(&slot->block);
            finish(worker, slot);
        } else {
            prepare(ring, slot);
        }
    }
    return count;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    nanosleep(&pause, NULL);
}

/* Give up the queue. What the kernel has not read of it stays unread. */
static void abandon(struct async_io__worker *worker)
{
    struct async_io__ring *ring = worker->ring;
    uint64_t submitted = ring->prepared - io_uring_sq_ready(&ring->queue);
    unsigned in_kernel = 0;

    ring->broken = true;
    for (unsigned i = 0; i < ring->depth; i++)
        in_kernel += ring->slots[i].prepared > 0 && ring->slots[i].prepared <= submitted;
    while (in_kernel > 0) {
        unsigned reaped = reap(worker);

        in_kernel -= reaped;
        if (reaped == 0)
            pause_shortly();
    }
    for (unsigned i = 0; i < ring->depth; i++) {
        if (ring->slots[i].prepared == 0)
            continue;
        async_io__transfer(&ring->slots[i].block);
        finish(worker, &ring->slots[i]);
    }
}

/* Submit what was prepared, and wait for completions. */
static void enter(struct async_io__worker *worker, unsigned wait)
{
    struct async_io__ring *ring = worker->ring;
    int submitted = wait > 0 ? io_uring_submit_and_wait(&ring->queue, wait)
                             : io_uring_submit(&ring->queue);

    if (submitted >= 0 || submitted == -EINTR)
        return;
    if (submitted == -EAGAIN || submitted == -EBUSY || submitted == -ENOMEM) {
        if (reap(worker) == 0)
            pause_shortly();
    } else {
        abandon(worker);
    }
}

/* Put the block of a free slot into the queue; return false if there is none to take. */
static bool add(struct async_io__worker *worker)
{
    struct async_io__ring *ring = worker->ring;
    struct slot *slot = &ring->slots[ring->free[ring->free_count - 1]];

    if (!async_io__take(worker, ring->active == 0, &slot->block))
        return false;
    ring->free_count--;
    ring->active++;
    if (!async_io__fill(worker, &slot->block)) {
        finish(worker, slot);
    } else if (ring->broken || slot->block.request->file.by_call) {
        async_io__transfer(&slot->block);
        finish(worker, slot);
    } else {
        prepare(ring, slot);
        if (worker->handle->options.single_submit ||
            (worker->handle->options.block_bytes >= LARGE_BLOCK &&
             io_uring_sq_ready(&ring->queue) == UNMERGED))
            enter(worker, 0);
    }
    return true;
}

void *async_io__ring_run(void *worker)
{
    struct async_io__worker *self = (struct async_io__worker *)worker;
    struct async_io__ring *ring = self->ring;
    bool overlap = self->handle->options.overlap_events;

    for (;;) {
        while (ring->free_count > 0 && add(self))
            ;
        if (ring->active == 0)
            return NULL;
        do {
            enter(self, overlap ? 1 : ring->active);
            reap(self);
        } while (!overlap && ring->active > 0);
    }
}
