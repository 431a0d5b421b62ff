/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op ccl_comm: collective operations among all ranks of an MPI job, across nodes.
 *
 * The ranks of a node work together through shared memory, as those of shm_comm do. The lowest rank
 * of each node, its leader, exchanges with the other leaders by MPI. Nodes are numbered by their
 * leaders. Ranks are on the same node if boot id and user are the same, one can reach the other
 * through an abstract Unix socket (so the network namespace is the same), and it can map memory of
 * the other. Where processes may not share memory, each rank is a node.
 *
 * The op is not linked with MPI. It loads Open MPI (libmpi.so.40) or MPICH (libmpich.so.12): the
 * one that is in the process already, else the one whose launcher started the process, unless
 * options.engine chooses. Other MPIs have other binary interfaces: ERR_UNSUPPORTED. oneCCL is not
 * supported: its C interface is new, and no distribution that the op is tested on has a package.
 *
 * If MPI is not initialized, create() calls MPI_Init_thread() with MPI_THREAD_MULTIPLE, and exit()
 * calls MPI_Finalize() unless a communicator has failed because a rank was late or has ended: then
 * MPI_Finalize() would wait for that rank. Otherwise, the caller finalizes MPI after the last
 * destroy(). The op calls MPI on the thread that calls the op; if MPI provides less than
 * MPI_THREAD_MULTIPLE, the caller keeps the rules of the provided level.
 *
 * The result of a reduction is that of the ranks of each node in their order, and of the nodes in
 * their order: (r0 + r1) + (r2 + r3) for two nodes of two ranks each. Sums of FLOAT16 and BFLOAT16
 * are computed, and travel, in float32 and are rounded once at the end. All ranks receive the same
 * bits, which depend on the division into nodes but not on the sizes of messages and buffers; only
 * the bits of a NaN may differ.
 *
 * A rank that does not come in time, leaves or makes another call than the others is an error that
 * names it, of all ranks. The first error is that of the communicator: later calls return it, too,
 * and only destroy() is of use. What out has after an error is undefined. These are the statuses:
 *
 *  - ERR_TIMEOUT: a rank has not come within timeout_ns. Its node finds that at the deadline,
 *    other nodes up to 3 s later, and a rank whose leader does not come up to 6 s later. Of a node
 *    without another rank that could report, the leader is named
 *  - ERR_DEVICE_LOST: a rank has left by destroy(), or has ended
 *  - ERR_INVALID: two ranks made different calls
 *  - ERR_DRIVER: MPI returned an error
 *
 * Limits of the engines: mpirun ends the whole job when a process dies, unless it was started with
 * "--enable-recovery" (Open MPI) or "-disable-auto-cleanup" (MPICH). MPICH's kills the other ranks
 * of that node even then, and sends SIGUSR1 to those of other nodes, which have to ignore it. If a
 * node is lost together with the launcher's daemon, both end the job. So after these losses, no
 * rank is left to report the error, or only those of other nodes. A node that the network cuts off,
 * or that stops, is reported by all. A call inside MPI that blocks cannot be interrupted:
 * MPI_Init_thread() has no deadline, and a lost connection may block until the engine's own limit.
 * Arguments that a rank can check alone are refused before it takes part, as in shm_comm.
 *
 * Calls allocate nothing themselves; MPI may. In a child of fork(), calls on the parent's
 * communicators are refused: ERR_STATE, and destroy() does nothing.
 */
#ifndef DS_ACCEL_OPS_CCL_COMM_H
#define DS_ACCEL_OPS_CCL_COMM_H

#include "comm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_CCL_COMM_MAX_RANKS 1024u

/** Engines. */
#define DS_ACCEL_CCL_COMM_AUTO 0u
#define DS_ACCEL_CCL_COMM_OPENMPI 1u
#define DS_ACCEL_CCL_COMM_MPICH 2u

/** The same for all ranks, except for library. */
struct ds_accel_ccl_comm_options {
    uint32_t struct_size;
    uint32_t flags;          /**< 0 */
    uint32_t engine;         /**< DS_ACCEL_CCL_COMM_* */
    uint32_t ranks_per_node; /**< 0: all that share a node; else treat each run of so many of
                                  its ranks as a node of its own; 1: no shared memory */
    const char *library;     /**< file of the engine's shared library; NULL: the usual name. Not
                                  used if the engine is loaded already; needs engine */
    uint64_t timeout_ns;     /**< nanoseconds that create() waits for all ranks, and calls without
                                  a timeout_ns of their own; 0: 300 s; UINT64_MAX: no limit */
    uint64_t buffer_bytes;   /**< bytes of a piece of a message, at most 2^30; rounded up. Each rank
                                  has about four times as much memory. 0: 4 MiB */
};

struct ds_accel_ccl_comm_info {
    uint32_t struct_size; /**< set by the caller, and left as it is */
    uint32_t rank;        /**< of MPI_COMM_WORLD */
    uint32_t size;
    uint32_t node;         /**< number of this rank's node */
    uint32_t nodes;        /**< number of nodes */
    uint32_t local_rank;   /**< within the node */
    uint32_t local_size;   /**< ranks of this node */
    uint32_t engine;       /**< DS_ACCEL_CCL_COMM_OPENMPI or MPICH */
    uint64_t buffer_bytes; /**< as rounded */
    uint64_t memory_bytes; /**< of this rank's buffers, without shared memory */
    uint64_t calls;        /**< collective calls that this rank has begun */
    char version[128];     /**< first line of MPI_Get_library_version() */
};

struct ds_accel_ccl_comm {
    struct ds_accel_op op;
    /**
     * Create a communicator of all ranks of MPI_COMM_WORLD. Collective, also as to the order of
     * several create(). Without a launcher, and with engine set, it has one rank. If a rank runs
     * out of memory, or fails otherwise, all fail with its name: at once, or, if it cannot create
     * its node's shared memory, when timeout_ns is over.
     *
     * @param[out] comm_out  the handle; destroy() releases it. Written only on DS_ACCEL_OK
     * @return DS_ACCEL_OK; ERR_INVALID an option is not valid or differs from that of rank 0;
     *         ERR_UNSUPPORTED no supported MPI is loaded or named, or the ranks are too many;
     *         ERR_NOT_FOUND the engine's library cannot be loaded or lacks a function; ERR_STATE
     *         MPI is finalized, or an earlier create() timed out; ERR_TIMEOUT the message names a
     *         rank that did not arrive; ERR_NO_MEMORY; ERR_ABI ranks have different versions of
     *         the op; ERR_DRIVER; or an error of shm_comm's create()
     */
    int32_t (*create)(const struct ds_accel_ccl_comm_options *options, ds_accel_comm_t **comm_out,
                      struct ds_accel_error *error);
    /**
     * Leave the communicator and release it. Calls of other ranks that need this rank fail. NULL is
     * ignored. Waits for the others at most about 2 s. Memory that MPI still uses after a failure
     * is not released.
     */
    void (*destroy)(ds_accel_comm_t *comm);
    /** @return DS_ACCEL_OK; ERR_INVALID @p info_out or its struct_size is too small; ERR_STATE */
    int32_t (*info)(ds_accel_comm_t *comm, struct ds_accel_ccl_comm_info *info_out,
                    struct ds_accel_error *error);
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
