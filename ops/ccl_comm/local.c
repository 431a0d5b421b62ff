/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The ranks of a node, through the functions of shm_comm; and what all ranks say of their calls. */
#include "ccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORDS(type) (sizeof(type) / sizeof(int64_t))

static const char *kind_name(int64_t kind)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "barrier"};

    return kind >= 0 && (uint64_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

static const char *dtype_name(int64_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
        return "float32";
    case DS_ACCEL_DTYPE_FLOAT16:
        return "float16";
    case DS_ACCEL_DTYPE_BFLOAT16:
        return "bfloat16";
    case DS_ACCEL_DTYPE_INT32:
        return "int32";
    case DS_ACCEL_DTYPE_INT64:
        return "int64";
    default:
        return "?";
    }
}

struct text {
    char chars[96];
};

/* "all_reduce(float32, sum, count 100)" */
static struct text describe(const struct ops__ccl_hello *hello)
{
    static const char *const reductions[] = {"", ", sum", ", min", ", max"};
    const char *name = kind_name(hello->kind);
    struct text text;

    if (hello->kind == OPS__SHM_BARRIER)
        snprintf(text.chars, sizeof(text.chars), "barrier()");
    else if (hello->kind == OPS__SHM_BROADCAST)
        snprintf(text.chars, sizeof(text.chars),
                 "broadcast(%s, count %" PRId64 ", root %" PRId64 ")", dtype_name(hello->dtype),
                 hello->count, hello->root);
    else
        snprintf(text.chars, sizeof(text.chars), "%s(%s%s, count %" PRId64 ")", name,
                 dtype_name(hello->dtype), reductions[hello->reduction & 3], hello->count);
    return text;
}

int32_t ops__ccl_compare(struct ops__ccl *ccl, const uint32_t *ranks, uint32_t count)
{
    const struct ops__ccl_hello *first = &ccl->hellos[0];

    for (uint32_t i = 1; i < count; i++) {
        const struct ops__ccl_hello *other = &ccl->hellos[i];

        /* All members but the last one. */
        if (memcmp(first, other, offsetof(struct ops__ccl_hello, failed)) == 0)
            continue;
        return ops__ccl_fail(ccl, DS_ACCEL_ERR_INVALID,
                             "in call number %" PRIu64 ", rank %u called %s and rank %u %s",
                             ccl->calls, ranks[0], describe(first).chars, ranks[i],
                             describe(other).chars);
    }
    return 0;
}

/* ---- shm_comm -------------------------------------------------------------------------------- */

/* Return the text behind "shm_comm: all_reduce: ". */
static const char *without_call(const char *message)
{
    for (int i = 0; i < 2; i++) {
        const char *end = strstr(message, ": ");

        if (end)
            message = end + 2;
    }
    return message;
}

/* Record why shared memory has failed, with the ranks of all nodes. */
static int32_t fail_local(struct ops__ccl *ccl, int32_t status, const struct ds_accel_error *error)
{
    struct ops__shm_cause cause;
    uint32_t rank;

    if (!ops__shm_cause(ccl->local, &cause))
        return ops__ccl_fail(ccl, status, "node %u: %s", ccl->node, error->message);
    rank = ccl->order[ccl->first[ccl->node] + cause.rank];
    switch (cause.reason) {
    case OPS__SHM_ENDED:
        ccl->note.lost = 1;
        return ops__ccl_fail(ccl, DS_ACCEL_ERR_DEVICE_LOST,
                             "rank %u (process %" PRId64 ", node %u) has ended; its node waited "
                             "for it in %s number %" PRIu64,
                             rank, cause.process, ccl->node, ccl->name, ccl->calls);
    case OPS__SHM_LEFT:
        return ops__ccl_fail(ccl, DS_ACCEL_ERR_DEVICE_LOST,
                             "rank %u (process %" PRId64 ", node %u) has left the communicator; "
                             "its node waited for it in %s number %" PRIu64,
                             rank, cause.process, ccl->node, ccl->name, ccl->calls);
    case OPS__SHM_LATE:
        return ops__ccl_fail(ccl, DS_ACCEL_ERR_TIMEOUT,
                             "rank %u (process %" PRId64 ", node %u) has not arrived at %s number "
                             "%" PRIu64 ", or not finished it, within %.1f s",
                             rank, cause.process, ccl->node, ccl->name, ccl->calls,
                             (double)ccl->timeout_ns / 1e9);
    default: /* if there is one node, ranks and calls have the same numbers in shm_comm */
        return ops__ccl_fail(ccl, status, "%s", without_call(error->message));
    }
}

static int32_t call_shm(ds_accel_comm_t *local, enum ops__shm_kind kind,
                        const struct ds_accel_comm_call *call, struct ds_accel_error *error)
{
    switch (kind) {
    case OPS__SHM_ALL_REDUCE:
        return ops__shm_table.all_reduce(local, call, error);
    case OPS__SHM_REDUCE_SCATTER:
        return ops__shm_table.reduce_scatter(local, call, error);
    case OPS__SHM_ALL_GATHER:
        return ops__shm_table.all_gather(local, call, error);
    case OPS__SHM_BROADCAST:
        return ops__shm_table.broadcast(local, call, error);
    default:
        return ops__shm_table.barrier(local, call, error);
    }
}

int32_t ops__ccl_local(struct ops__ccl *ccl, const struct ops__shm_call *work, uint64_t slack_ns)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = work->dtype,
        .reduction = work->reduction,
        .root = work->root,
        .in = work->in,
        .out = work->out,
        .count = work->count,
        .timeout_ns = ops__ccl_left_ns(ccl, slack_ns),
    };
    int32_t status;

    if (!ccl->local) {
        if (work->kind != OPS__SHM_BROADCAST && work->kind != OPS__SHM_BARRIER)
            ops__shm_copy(work->out, work->in, work->count * work->element);
        return 0;
    }
    status = call_shm(ccl->local, work->kind, &call, &error);
    return status ? fail_local(ccl, status, &error) : 0;
}

int32_t ops__ccl_arrive(struct ops__ccl *ccl, const struct ops__ccl_hello *hello)
{
    struct ops__shm_call work = {
        .kind = OPS__SHM_ALL_GATHER,
        .dtype = DS_ACCEL_DTYPE_INT64,
        .element = sizeof(int64_t),
        .in = (const char *)hello,
        .out = (char *)ccl->hellos,
        .count = WORDS(struct ops__ccl_hello),
    };

    if (ops__ccl_local(ccl, &work, 0) ||
        ops__ccl_compare(ccl, ccl->order + ccl->first[ccl->node], ccl->local_size))
        return -1;
    return ccl->hellos[0].failed ? ops__ccl_deliver(ccl, 0) : 0;
}

/* Broadcast the leader's bytes, rounded up to words of which the buffers have enough. */
static int32_t broadcast(struct ops__ccl *ccl, char *data, size_t bytes)
{
    struct ops__shm_call work = {
        .kind = OPS__SHM_BROADCAST,
        .dtype = DS_ACCEL_DTYPE_INT64,
        .element = sizeof(int64_t),
        .in = data,
        .out = data,
        .count = (bytes + sizeof(int64_t) - 1) / sizeof(int64_t),
    };

    return ops__ccl_local(ccl, &work, OPS__CCL_LOCAL_SLACK);
}

int32_t ops__ccl_deliver(struct ops__ccl *ccl, size_t bytes)
{
    int64_t failed = ccl->failed;
    struct ops__ccl_note *note = (struct ops__ccl_note *)(void *)(ccl->block + OPS__CCL_HEAD);

    memcpy(ccl->block, &failed, sizeof(failed));
    if (broadcast(ccl, ccl->block, OPS__CCL_HEAD + bytes))
        return -1;
    memcpy(&failed, ccl->block, sizeof(failed));
    if (!failed)
        return 0;
    *note = ccl->note;
    if (broadcast(ccl, (char *)note, sizeof(*note)))
        return -1;
    return ops__ccl_take_note(ccl, note);
}
