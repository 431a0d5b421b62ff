/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The inside of a handle. The caller's thread opens files, plans requests (request.c) and waits.
 * Workers take blocks, transfer them (ring.c, pool.c) and finish them; the worker that finishes a
 * request's last block does what the whole request needs, such as fsync().
 */
#ifndef OPS_ASYNC_IO_HANDLE_H
#define OPS_ASYNC_IO_HANDLE_H

#include "async_io.h"

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define ASYNC_IO_PAGE 4096u
/* Blocks of staging memory for each worker. */
#define ASYNC_IO_STAGING 4u
#define ASYNC_IO_STAGING_MOST 32u
/* Threads of the engine that has no rings, for each worker. */
#define ASYNC_IO_THREADS 8u
/* What a thread transfers by one call: a part of the blocks in flight, and bytes unless a block is
 * larger. */
#define ASYNC_IO_RUN_PART 4u
#define ASYNC_IO_RUN_BYTES ((uint64_t)2 << 20)

/* An open file. */
struct async_io__file {
    int plain;  /* through the page cache; -1: none */
    int direct; /* with O_DIRECT; -1: none */
    bool close_plain;
    bool close_direct;
    bool created;
    bool by_call; /* transfer by pread() and pwrite() only */
    uint64_t
        offset_align; /* of O_DIRECT: a page or more, so that no page is transferred both ways */
    uint64_t memory_align;
};

/* The blocks of a request that a worker has not taken yet. */
struct async_io__part {
    uint64_t next;
    uint64_t end;
};

/* Why a request failed. */
struct async_io__failure {
    int32_t status;       /* DS_ACCEL_OK: it did not */
    int system_error;     /* 0 and status ERR_IO: the end of the file, or nothing was written */
    uint64_t position;    /* of the first byte that was not transferred, in the request */
    const char *function; /* what failed after the transfer, as "fsync"; else NULL */
};

struct async_io__request {
    struct async_io__request *next;
    uint64_t number;
    bool write;
    bool staged; /* blocks go through staging memory */
    uint32_t flags;
    char *name; /* of the file, for messages */
    struct async_io__file file;
    char *buffer;
    uint64_t offset;
    uint64_t bytes;
    int fixed_buffer; /* its index in the rings; -1: not registered */
    int fixed_file;   /* its place in the rings; -1: not registered */
    /* The plan. Blocks of block_bytes cover [body, body_end); the edges are before and behind. */
    bool direct;
    uint64_t body;
    uint64_t body_end;
    uint64_t block_bytes;
    atomic_bool direct_refused; /* the file system refused O_DIRECT for a block */
    uint64_t checksum;
    /* Guarded by the handle's lock. */
    bool head_left; /* not taken yet */
    bool tail_left;
    unsigned edges_unfinished;
    uint64_t untaken;    /* blocks, edges included */
    uint64_t unfinished; /* the same, not finished */
    uint64_t direct_bytes;
    struct async_io__failure failure;
    bool done;
    struct async_io__part parts[]; /* of each worker */
};

/* A block in flight, or adjacent blocks that a thread transfers by one call. */
struct async_io__block {
    struct async_io__request *request;
    uint64_t position; /* of its first byte in the request */
    uint64_t count;    /* blocks */
    uint64_t bytes;
    uint64_t done;
    uint64_t direct_done; /* of these, with O_DIRECT */
    char *memory;
    int staging; /* index of the worker's staging block; -1: none */
    bool edge;
    bool direct;
    unsigned attempts; /* since the last byte */
    int32_t status;    /* of a failure; DS_ACCEL_OK: none */
    int system_error;
};

struct async_io__worker {
    struct ds_accel_async_io_handle *handle;
    unsigned part; /* of each request, that this worker transfers */
    pthread_t thread;
    /* Guarded by the handle's lock. */
    char *staging;
    unsigned staging_count;
    uint32_t staging_used; /* a bit for each */
    struct async_io__ring *ring;
};

struct async_io__buffer {
    char *pointer;
    uint64_t bytes;
};

#define ASYNC_IO_BUFFERS 64 /* that can be registered */
/* Requests whose file is registered at a time, and the fewest blocks for which that is worth two
 * system calls. */
#define ASYNC_IO_FILES 32
#define ASYNC_IO_FILE_BLOCKS 32u

struct ds_accel_async_io_handle {
    struct ds_accel_async_io_options options; /* without zeros */
    pid_t process;
    char reason[160];
    uint64_t staging_block; /* bytes */
    unsigned parts;         /* of a request: one for each ring; threads share one */
    uint64_t run;           /* most adjacent blocks that a thread transfers by one call */
    uint64_t most_taken;    /* most blocks of all threads; each ring has a limit of its own */
    char *staging;          /* mapped by the op; NULL: none */
    uint64_t staging_bytes;
    struct async_io__buffer buffers[ASYNC_IO_BUFFERS]; /* pointer NULL: free */
    uint32_t files_used;                               /* a bit for each place in the rings */
    bool files_refused;                                /* by the kernel */
    uint64_t last_number;
    uint32_t pending;
    pthread_mutex_t lock; /* guards requests and what follows */
    pthread_cond_t work;  /* for workers: there may be a block to take */
    pthread_cond_t done;  /* for the caller: a request is done */
    bool stopping;
    struct async_io__request *first; /* in the order of submission */
    struct async_io__request *last;
    struct async_io__request *untaken; /* the first that may have blocks to take */
    struct async_io__request *awaited; /* by the caller; NULL: none */
    uint64_t blocks_left;              /* of all requests, not taken yet */
    uint64_t staged_left;              /* of these, of staged requests */
    uint64_t blocks_taken;             /* not finished yet */
    unsigned sleeping;                 /* threads that wait for a block */
    unsigned worker_count;             /* threads */
    struct async_io__worker workers[];
};

/* ---- handle.c ---- */

int32_t async_io__create(const struct ds_accel_async_io_options *options,
                         struct ds_accel_async_io_handle **handle_out,
                         struct ds_accel_error *error);
/* Destroy a handle without requests. */
void async_io__destroy(struct ds_accel_async_io_handle *handle);
/* Allocate staging memory if there is none. */
bool async_io__ensure_staging(struct ds_accel_async_io_handle *handle);

/* ---- settings.c ---- */

/* Set the options that are 0 to the configuration's settings, where it has them. */
void async_io__settings_apply(struct ds_accel_async_io_options *options);

/* ---- file.c ---- */

/* Return the status for an error number. */
int32_t async_io__status(int system_error);
/* Open the file of a transfer. */
int32_t async_io__file_open(struct async_io__file *file, const char *call,
                            const struct ds_accel_async_io_transfer *transfer, bool write,
                            const struct ds_accel_async_io_options *options,
                            struct ds_accel_error *error);
void async_io__file_close(const struct async_io__file *file);
/* Truncate and sync a file whose blocks were all transferred. Return 0, or an error number and the
 * function that failed. */
int async_io__file_conclude(const struct async_io__request *request, const char **function_out);

/* ---- request.c ---- */

/* Return whether a request's blocks need staging memory, or are faster with it. */
bool async_io__wants_staging(const struct async_io__request *request);
/* Plan the blocks of a request. */
void async_io__plan(const struct ds_accel_async_io_handle *handle,
                    struct async_io__request *request);
/* Give a planned request to the workers. */
void async_io__start(struct ds_accel_async_io_handle *handle, struct async_io__request *request);
/* Take a block, or wait for one. Return false if there is none, after waiting only at the end. */
bool async_io__take(struct async_io__worker *worker, bool wait, struct async_io__block *block);
/* Copy what a block writes to its staging memory. Return false if that failed. */
bool async_io__fill(struct async_io__worker *worker, struct async_io__block *block);
/* Consider the result of a block's transfer, bytes or a negative error number. Return true if the
 * block is to be transferred further. */
bool async_io__advance(struct async_io__block *block, int64_t result);
void async_io__finish(struct async_io__worker *worker, struct async_io__block *block);
/* Transfer a whole block by pread() or pwrite(). */
void async_io__transfer(struct async_io__block *block);

static inline int async_io__block_fd(const struct async_io__block *block)
{
    return block->direct ? block->request->file.direct : block->request->file.plain;
}

/* ---- ring.c, pool.c: the threads of the two engines ---- */

/* Create a worker's ring. Return 0 or an error number, with what failed. */
int async_io__ring_create(struct async_io__worker *worker, const char **function_out);
void async_io__ring_destroy(struct async_io__ring *ring);
/* Put memory in a place of a ring's table of buffers; NULL: clear the place. Return an error number
 * or 0. */
int async_io__ring_buffer(struct async_io__ring *ring, unsigned index, char *pointer,
                          uint64_t bytes);
/* Put a file in a place of a ring's table of files; NULL: clear the place. Return an error number
 * or 0. */
int async_io__ring_file(struct async_io__ring *ring, unsigned place,
                        const struct async_io__file *file);
void *async_io__ring_run(void *worker);
void *async_io__pool_run(void *worker);

#endif
