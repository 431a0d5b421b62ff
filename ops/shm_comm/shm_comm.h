/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op shm_comm: collective operations among the ranks of one node, through shared memory.
 *
 * Ranks are processes, or threads, of one user on one node. They meet at an abstract Unix socket,
 * so they are in one network namespace, and share memory that has no name: nothing is left in any
 * file system, whatever ends them, and the size of /dev/shm is no limit. All memory is reserved by
 * create() and alloc(); later calls allocate nothing. More than the system has available, or than
 * the process's memory cgroup or one of its parents leaves, is refused: ERR_NO_MEMORY. Swap that a
 * cgroup may use does not count.
 *
 * A rank that ends, leaves, makes another call than the others or does not come in time is an error
 * that names it. The first such error is that of the communicator: every rank's call then returns
 * it, also calls that begin later, and only free() and destroy() are of use. What out has after an
 * error is undefined. A rank that was late may still write to registered outputs of others when it
 * continues. These are the statuses:
 *
 *  - ERR_DEVICE_LOST: a rank has ended, or has left by destroy()
 *  - ERR_TIMEOUT: a rank has not come within timeout_ns. A rank that ended is found within 0.1 s
 *  - ERR_INVALID: two ranks made different calls
 *
 * Arguments that a rank can check alone are refused by ERR_INVALID or ERR_UNSUPPORTED before the
 * rank takes part; the communicator stays usable, and the other ranks wait for a valid call.
 *
 * All ranks receive the same bits, which depend neither on the sizes of messages and buffers nor on
 * whether buffers are registered; only the bits of a NaN may differ.
 *
 * A waiting rank spins for some microseconds and then sleeps. If there are more ranks than CPUs
 * that they may run on, it yields its CPU at once.
 *
 * Ranks form groups if each may run only on CPUs that share one cache of level 3, or else, only on
 * CPUs of one NUMA node; if the numbers of a group's ranks are successive; and if groups have two
 * ranks on average. all_reduce() and reduce_scatter() of large messages then move one partial
 * result and one result between groups, in place of those of each rank. The bits are the same as
 * without groups. Caches and nodes are read in /sys, below the directory DS_ACCEL_ROOT if that is
 * set.
 *
 * In a child of fork(), calls on the parent's communicators are refused: ERR_STATE. destroy()
 * releases the child's copy only.
 */
#ifndef DS_ACCEL_OPS_SHM_COMM_H
#define DS_ACCEL_OPS_SHM_COMM_H

#include "comm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_SHM_COMM_MAX_RANKS 248u

struct ds_accel_shm_comm_options {
    uint32_t struct_size;
    uint32_t flags; /**< 0 */
    uint32_t rank;  /**< 0 to size - 1, each once */
    uint32_t size;  /**< 1 to DS_ACCEL_SHM_COMM_MAX_RANKS, the same for all */
    /** What the ranks of a job have in common and no other job of the user has at the same
     * time: 1 to 64 bytes. */
    const char *name;
    /** Nanoseconds that create() waits for all ranks, and calls without a timeout_ns of their
     * own for a rank; 0: 300 s; UINT64_MAX: no limit. */
    uint64_t timeout_ns;
    /** Bytes of each rank's buffer, through which messages pass in pieces; rounded up. The same for
     * all; 0: a size that suits the caches. */
    uint64_t buffer_bytes;
};

struct ds_accel_shm_comm_info {
    uint32_t
        struct_size; /**< set by the caller, and left as it is; what is behind is not written */
    uint32_t rank;
    uint32_t size;
    uint32_t cpus;             /**< that the ranks together may run on */
    uint64_t buffer_bytes;     /**< as rounded */
    uint64_t memory_bytes;     /**< shared memory of all ranks, without registered buffers */
    uint64_t registered_bytes; /**< of this rank's registered buffers */
    uint64_t calls;            /**< collective calls that this rank has begun, alloc() included */
    uint32_t group;            /**< of this rank, from 0 */
    uint32_t group_count; /**< groups of ranks that share a cache or a NUMA node; 1: no groups */
};

struct ds_accel_shm_comm {
    struct ds_accel_op op;
    /**
     * Create a communicator. Returns when all ranks have come and their memory is reserved, or with
     * an error in all of them.
     *
     * @param[out] comm_out  the handle; destroy() releases it. Written only on DS_ACCEL_OK
     * @return DS_ACCEL_OK; ERR_INVALID an option is not valid, or differs from that of rank 0, or a
     *         rank was started twice; ERR_BUSY the name is in use, or there are two ranks 0;
     *         ERR_TIMEOUT the message names the ranks that did not arrive; ERR_DEVICE_LOST a rank
     *         ended meanwhile; ERR_NO_MEMORY; ERR_LIMIT RLIMIT_FSIZE or RLIMIT_NOFILE is too small;
     *         ERR_PERMISSION another user has the name; ERR_UNSUPPORTED the kernel lacks
     *         memfd_create() or pidfd_open() (Linux 5.3), or ranks are on different nodes;
     *         ERR_ABI ranks have different versions of the op. After an error nothing stays.
     */
    int32_t (*create)(const struct ds_accel_shm_comm_options *options, ds_accel_comm_t **comm_out,
                      struct ds_accel_error *error);
    /**
     * Leave the communicator and release it with all its registered buffers; does not wait. Calls
     * of other ranks that need this rank fail. NULL is ignored.
     */
    void (*destroy)(ds_accel_comm_t *comm);
    /** @return DS_ACCEL_OK; ERR_INVALID @p info_out or its struct_size is too small; ERR_STATE */
    int32_t (*info)(ds_accel_comm_t *comm, struct ds_accel_shm_comm_info *info_out,
                    struct ds_accel_error *error);
    /**
     * Allocate a registered buffer: memory of this rank that the others read and write in place, so
     * that calls copy less. Collective. Any part of it, at any offset, can be the in and out of
     * calls; of these two, each is faster if all ranks have it in registered buffers.
     *
     * @param[in]  bytes        > 0, the same for all ranks
     * @param[out] pointer_out  at a multiple of the page size, full of 0. Written only on
     *                          DS_ACCEL_OK
     * @return DS_ACCEL_OK; ERR_INVALID; ERR_NO_MEMORY or ERR_LIMIT: on a rank, which the message
     *         names; no rank has the buffer then, and the communicator stays usable; ERR_STATE; or
     *         an error of the communicator
     */
    int32_t (*alloc)(ds_accel_comm_t *comm, uint64_t bytes, void **pointer_out,
                     struct ds_accel_error *error);
    /**
     * Free a registered buffer. Collective: all ranks free the same one. NULL is ignored, without
     * waiting for others.
     *
     * @return DS_ACCEL_OK; ERR_INVALID @p pointer is not the beginning of a buffer of @p comm;
     *         ERR_STATE; or an error of the communicator: this rank's mapping is released all the
     *         same
     */
    int32_t (*free)(ds_accel_comm_t *comm, void *pointer, struct ds_accel_error *error);
    /** out[i] becomes the reduction of all ranks' in[i]: count elements each. out may be in. */
    int32_t (*all_reduce)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                          struct ds_accel_error *error);
    /** in has size * count elements. out[i], of count elements, becomes the reduction of all ranks'
     * in[rank * count + i]. out may be in + rank * count. */
    int32_t (*reduce_scatter)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                              struct ds_accel_error *error);
    /** out receives the in, of count elements, of rank 0, rank 1 and so on: size * count elements.
     * in may be out + rank * count. */
    int32_t (*all_gather)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                          struct ds_accel_error *error);
    /** The in of rank root is copied to the out of the others: count elements. The in of the others
     * and the out of root are not used. */
    int32_t (*broadcast)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                         struct ds_accel_error *error);
    /** Wait until all ranks have come here. Only timeout_ns is read; @p call may be NULL. */
    int32_t (*barrier)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                       struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
