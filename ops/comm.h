/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the ops for communication, shm_comm and ccl_comm, have in common: a communicator and
 * the arguments of its calls.
 *
 * A communicator is a handle of one rank among `size` ranks, numbered from 0. The calls of its
 * table are collective: each rank makes the same calls in the same order, with the same dtype,
 * reduction, count and root. A call returns when its result is complete and no other rank reads
 * this rank's input any more. A communicator is used by one thread at a time; several
 * communicators, also of one process, are independent.
 */
#ifndef DS_ACCEL_OPS_COMM_H
#define DS_ACCEL_OPS_COMM_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A rank's handle of its group of ranks. */
typedef struct ds_accel_comm ds_accel_comm_t;

/*
 * Reductions. They take the elements in the order of the ranks, 0 first; ccl_comm takes first those
 * of each node, then the nodes. FLOAT16 and BFLOAT16 are added in float32 and rounded once at the
 * end, to nearest even. Sums of integers wrap. The least and the greatest of numbers with a NaN
 * among them is NaN; of -0 and 0, that of the lower rank is taken.
 */
#define DS_ACCEL_COMM_SUM 1u
#define DS_ACCEL_COMM_MIN 2u
#define DS_ACCEL_COMM_MAX 3u

/** The arguments of a collective call. */
struct ds_accel_comm_call {
    uint32_t struct_size;
    uint32_t dtype; /**< DS_ACCEL_DTYPE_FLOAT32, FLOAT16, BFLOAT16, INT32 or INT64; of barrier():
                             not read */
    uint32_t reduction; /**< DS_ACCEL_COMM_* of all_reduce() and reduce_scatter(), else not read */
    uint32_t root;      /**< the rank that broadcast() sends from, else not read */
    /**
     * Arrays in host memory at any address, whose number of elements the call says; they may be
     * NULL if count is 0. `in` is not written unless it is `out`. Where a call does not allow
     * overlap, it is refused.
     */
    const void *in;
    void *out;
    uint64_t count; /**< elements, below 2^40; 0 has no data, but waits for all ranks */
    /** Nanoseconds until a rank that does not take part is an error; 0: as the communicator was
     * created; UINT64_MAX: no limit. */
    uint64_t timeout_ns;
};

#ifdef __cplusplus
}
#endif

#endif
