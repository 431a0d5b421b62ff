/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op async_io: reading and writing parts of files, asynchronously and with many blocks in
 * flight.
 *
 * A handle has settings, threads and queues, as DeepSpeed's aio_handle. A request transfers a
 * range of a file to or from memory. It is split in blocks of block_bytes; each of the handle's
 * `parallelism` workers has at most queue_depth blocks in flight. With io_uring each transfers a
 * contiguous part of a request. Blocks of several requests are in flight at once, and requests
 * finish in any order.
 *
 * A request succeeded if every byte was transferred. Short transfers are continued. Otherwise the
 * result has the system's error number, the offset in the file of the first byte that was not
 * transferred, and the number of bytes before it, all of which were. A read that meets the end of
 * the file fails: DS_ACCEL_ERR_IO with system_error 0. Bytes behind the failure may have been
 * transferred too, in a read also over the buffer's former contents.
 *
 * Files are read and written with O_DIRECT where the file system allows it: the whole pages of a
 * request, while the bytes before the first and behind the last whole page go through the page
 * cache. Neither offsets, sizes nor addresses need an alignment; a buffer at a multiple of 512
 * bytes saves a copy. A file never becomes longer than a request's last byte. Requests that are in
 * flight at the same time must not write to the same page of a file, nor read a page that another
 * of them writes.
 *
 * A handle is used by one thread at a time, which need not be the same; different handles are
 * independent. It belongs to the process that created it: in a child of fork() every call but
 * destroy() fails with DS_ACCEL_ERR_STATE, and destroy() does nothing.
 */
#ifndef DS_ACCEL_OPS_ASYNC_IO_H
#define DS_ACCEL_OPS_ASYNC_IO_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** io_uring, or threads if the kernel or a seccomp filter forbids it, as containers do. */
#define DS_ACCEL_ASYNC_IO_ENGINE_AUTO 0u
/** io_uring: each worker is a thread with a ring. It registers the files of large requests. */
#define DS_ACCEL_ASYNC_IO_ENGINE_IO_URING 1u
/**
 * Threads that call pread() and pwrite(): up to eight for each worker. A call transfers several
 * adjacent blocks, up to a quarter of queue_depth and 8 MiB.
 */
#define DS_ACCEL_ASYNC_IO_ENGINE_THREADS 2u

/** Option: transfer everything through the page cache, never with O_DIRECT. */
#define DS_ACCEL_ASYNC_IO_PAGE_CACHE 1u
/**
 * Option: io_uring also for files of FUSE, which its workers otherwise transfer with pread() and
 * pwrite(), one block at a time: with a server that does not set FUSE_ASYNC_DIO, Linux puts the
 * rest of a short transfer in the wrong place and reports success. With a server that sets it, a
 * short write fails with EIO.
 */
#define DS_ACCEL_ASYNC_IO_FUSE_RING 2u
/** Option: ignore "op_settings" of the configuration: what is 0 has the default given here. */
#define DS_ACCEL_ASYNC_IO_NO_SETTINGS 4u

/** single_submit, overlap_events: as the configuration has it, else off. */
#define DS_ACCEL_ASYNC_IO_UNSET 0u
#define DS_ACCEL_ASYNC_IO_ON 1u
/** Off, also if the configuration has it on. */
#define DS_ACCEL_ASYNC_IO_OFF 2u

/** Transfer: the data is on the disk, as after fsync(), when the request has succeeded. */
#define DS_ACCEL_ASYNC_IO_SYNC 1u
/** Transfer, write: when all bytes were written, cut off what the file has behind them. */
#define DS_ACCEL_ASYNC_IO_TRUNCATE 2u
/** Transfer: buffer is an address for the options' copy functions, as in a device's memory. */
#define DS_ACCEL_ASYNC_IO_DEVICE 4u
/**
 * Transfer: compute the checksum of the bytes in memory after the transfer. With DEVICE they are
 * copied to the host once more, by to_host, also after a read: the checksum then covers the copies.
 */
#define DS_ACCEL_ASYNC_IO_CHECKSUM 8u

typedef struct ds_accel_async_io_handle ds_accel_async_io_handle_t;

/**
 * Copy between host memory and the memory of a transfer with DS_ACCEL_ASYNC_IO_DEVICE. Called by
 * the handle's threads, several at once, and must have copied all bytes when it returns.
 *
 * @return DS_ACCEL_OK, or a negative status, which becomes the request's
 */
typedef int32_t (*ds_accel_async_io_copy_fn)(void *user_data, void *destination, const void *source,
                                             uint64_t bytes);

/**
 * Options of a handle. What is 0 of block_bytes to engine, or all of them without options, is set
 * by "op_settings" of the configuration, which has the same names, if ds_accel_op_load() loaded the
 * op; else it has the default given here. The configuration's engine "io_uring" is that of AUTO.
 */
struct ds_accel_async_io_options {
    uint32_t struct_size;
    uint32_t flags; /**< DS_ACCEL_ASYNC_IO_PAGE_CACHE, FUSE_RING, NO_SETTINGS */
    /** A multiple of 512 up to 1 GiB; 0: 1 MiB. O_DIRECT rounds it up to whole pages. */
    uint64_t block_bytes;
    uint32_t queue_depth;    /**< most blocks in flight for each worker, up to 4096; 0: 128 */
    uint32_t parallelism;    /**< workers, up to 64; 0: 1 */
    uint32_t single_submit;  /**< io_uring: ON: a system call for each block; OFF: for a batch */
    uint32_t overlap_events; /**< io_uring: ON: refill the queue after each completion; OFF: when
                                  all blocks of the queue were completed */
    uint32_t engine;         /**< DS_ACCEL_ASYNC_IO_ENGINE_* */
    uint32_t reserved;       /**< 0 */
    /** Copy from the device's memory to the host's, and back. NULL: no device transfers. */
    ds_accel_async_io_copy_fn to_host;
    ds_accel_async_io_copy_fn from_host;
    void *user_data; /**< of these */
    /**
     * Host memory for the copies, as pinned memory of the device, at a multiple of 4096 bytes. It
     * stays the caller's and must live as long as the handle. At least one block, rounded up to
     * 4096 bytes, for each worker; two or more let copies and I/O overlap. NULL: the op allocates
     * four blocks for each worker when needed.
     */
    void *staging;
    uint64_t staging_bytes; /**< of staging */
};

struct ds_accel_async_io_info {
    uint32_t struct_size; /**< set by the caller, and left as it is */
    uint32_t engine;      /**< ENGINE_IO_URING or ENGINE_THREADS: the one in use */
    uint64_t block_bytes;
    uint32_t queue_depth;
    uint32_t parallelism;
    uint32_t single_submit;  /**< 1: on; 0: off */
    uint32_t overlap_events; /**< 1: on; 0: off */
    uint32_t threads;        /**< that the handle has */
    uint32_t pending;        /**< requests that were submitted and not waited for */
    char reason[160];        /**< one line: why this engine */
};

/** What to transfer. The structure itself is not used after the call. */
struct ds_accel_async_io_transfer {
    uint32_t struct_size;
    uint32_t flags; /**< DS_ACCEL_ASYNC_IO_SYNC, TRUNCATE, DEVICE, CHECKSUM */
    /** The file. Writing creates it if there is none; what it has elsewhere stays. NULL: fd. */
    const char *path;
    int32_t fd;    /**< an open file without O_APPEND, not closed by the op; not read with a path */
    uint32_t mode; /**< permissions of a file that is created; 0: 0600 */
    uint64_t offset;
    void *buffer;   /**< used until the request was waited for; a write does not change it */
    uint64_t bytes; /**< 0 is valid */
};

/** How a request ended. */
struct ds_accel_async_io_result {
    uint32_t struct_size; /**< set by the caller, and left as it is */
    /**
     * DS_ACCEL_OK: all bytes were transferred. ERR_LIMIT: ENOSPC, EDQUOT, EFBIG or another limit;
     * ERR_PERMISSION; ERR_NO_MEMORY; ERR_IO: any other error, or the file ended; or what a copy
     * function returned.
     */
    int32_t status;
    int32_t system_error; /**< errno of the failure; 0: there was none, or the file ended */
    uint32_t reserved;    /**< 0 */
    uint64_t request;     /**< its number */
    uint64_t bytes;       /**< that were wanted */
    /** From the beginning, without a gap, that were transferred; 0 if only fsync() failed. */
    uint64_t bytes_done;
    uint64_t failed_offset; /**< in the file, of the first byte that was not; UINT64_MAX: none */
    uint64_t direct_bytes;  /**< transferred with O_DIRECT */
    uint64_t checksum;      /**< XXH3, 64 bits, seed 0; 0 unless it was wanted and status is OK */
    char message[256];      /**< "" or the failure, in one line */
};

struct ds_accel_async_io {
    struct ds_accel_op op;
    /**
     * Create a handle and start its threads.
     *
     * @param[in]  options     NULL: all defaults
     * @param[out] handle_out  written only on DS_ACCEL_OK
     * @return DS_ACCEL_OK; ERR_INVALID an option; ERR_UNSUPPORTED the engine is io_uring and cannot
     *         be used, with the reason; ERR_NO_MEMORY; ERR_LIMIT a thread cannot be started
     * @owner  caller; release with destroy()
     */
    int32_t (*create)(const struct ds_accel_async_io_options *options,
                      ds_accel_async_io_handle_t **handle_out, struct ds_accel_error *error);
    /** Wait for all requests, whose results are lost, and release the handle. NULL is valid. */
    void (*destroy)(ds_accel_async_io_handle_t *handle);
    /** Write the settings and the engine. @return DS_ACCEL_OK; ERR_INVALID; ERR_STATE */
    int32_t (*info)(ds_accel_async_io_handle_t *handle, struct ds_accel_async_io_info *info_out,
                    struct ds_accel_error *error);
    /**
     * Read bytes of a file and wait for them.
     *
     * @param[out] result_out  NULL: not wanted; also written if the transfer failed, but not if the
     *                         file cannot be opened or an argument is not valid
     * @return DS_ACCEL_OK; the result's status; ERR_INVALID an argument, or no file that can be
     *         read at an offset; ERR_NOT_FOUND; ERR_PERMISSION; ERR_NO_MEMORY; ERR_LIMIT; ERR_STATE
     */
    int32_t (*read)(ds_accel_async_io_handle_t *handle,
                    const struct ds_accel_async_io_transfer *transfer,
                    struct ds_accel_async_io_result *result_out, struct ds_accel_error *error);
    /** The same for writing. */
    int32_t (*write)(ds_accel_async_io_handle_t *handle,
                     const struct ds_accel_async_io_transfer *transfer,
                     struct ds_accel_async_io_result *result_out, struct ds_accel_error *error);
    /**
     * Open a file and begin to read it.
     *
     * @param[out] request_out  the request's number, from 1, for wait_one(); NULL: not wanted
     * @return as read(), but a failed transfer is reported by wait() or wait_one()
     */
    int32_t (*submit_read)(ds_accel_async_io_handle_t *handle,
                           const struct ds_accel_async_io_transfer *transfer, uint64_t *request_out,
                           struct ds_accel_error *error);
    /** The same for writing. */
    int32_t (*submit_write)(ds_accel_async_io_handle_t *handle,
                            const struct ds_accel_async_io_transfer *transfer,
                            uint64_t *request_out, struct ds_accel_error *error);
    /**
     * Wait for requests, the oldest first, and forget them.
     *
     * @param[out] results        result_count results, result_bytes from one to the next, in the
     *                            order of submission; struct_size becomes result_bytes; also
     *                            written after a failure. NULL: wait for all requests
     * @param[in]  result_count   most requests to wait for; not read if results is NULL
     * @param[in]  result_bytes   size of a result: this version's or larger, a multiple of 8
     * @param[out] completed_out  number of requests waited for, failed ones included, also written
     *                            after a failure; NULL: not wanted
     * @return DS_ACCEL_OK; the status of the first of them that failed; ERR_INVALID; ERR_STATE
     */
    int32_t (*wait)(ds_accel_async_io_handle_t *handle, struct ds_accel_async_io_result *results,
                    uint32_t result_count, uint32_t result_bytes, uint64_t *completed_out,
                    struct ds_accel_error *error);
    /**
     * Wait for one request and forget it.
     *
     * @param[out] result_out  NULL: not wanted; also written after a failure
     * @return DS_ACCEL_OK; the result's status; ERR_NOT_FOUND no such request, or it was waited for
     */
    int32_t (*wait_one)(ds_accel_async_io_handle_t *handle, uint64_t request,
                        struct ds_accel_async_io_result *result_out, struct ds_accel_error *error);
    /**
     * Register memory that many requests use: io_uring pins its pages once and not for each block.
     * It helps requests whose buffer lies in it. With threads, the call only remembers it.
     *
     * @param[in] bytes  1 to 2^30; pages count against RLIMIT_MEMLOCK, once for each worker
     * @return DS_ACCEL_OK; ERR_INVALID, also if it overlaps registered memory; ERR_LIMIT 64 buffers
     *         are registered, or RLIMIT_MEMLOCK; ERR_UNSUPPORTED or another status if the kernel
     *         refuses: requests work without
     */
    int32_t (*register_buffer)(ds_accel_async_io_handle_t *handle, void *pointer, uint64_t bytes,
                               struct ds_accel_error *error);
    /**
     * Undo register_buffer(), before the memory is freed.
     *
     * @return DS_ACCEL_OK; ERR_INVALID it was not registered; ERR_BUSY requests are pending
     */
    int32_t (*unregister_buffer)(ds_accel_async_io_handle_t *handle, void *pointer,
                                 struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
