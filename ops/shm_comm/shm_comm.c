/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op shm_comm: its table, and the checks of arguments. */
#include "shm_comm.h"

#include "common/error.h"
#include "common/isa.h"
#include "reduce.h"
#include "shm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_TIMEOUT_NS ((uint64_t)300 * 1000000000)
#define MOST_NAME 64
#define MOST_BUFFER ((uint64_t)1 << 40)
#define MOST_COUNT ((uint64_t)1 << 40)
#define SPINS 4000

/* ---- create and destroy ---------------------------------------------------------------------- */

static int32_t check_options(const char *call, const struct ds_accel_shm_comm_options *options,
                             struct ds_accel_error *error)
{
    size_t length;

    if (!options)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "options is NULL");
    if (!DS_ACCEL_HAS(options, struct ds_accel_shm_comm_options, buffer_bytes))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_shm_comm_options, buffer_bytes));
    if (options->flags != 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "flags has unknown bits: 0x%x",
                          options->flags);
    if (options->size == 0 || options->size > DS_ACCEL_SHM_COMM_MAX_RANKS)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "size is %u; wanted 1 to %u",
                          options->size, DS_ACCEL_SHM_COMM_MAX_RANKS);
    if (options->rank >= options->size)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "rank is %u; wanted 0 to %u",
                          options->rank, options->size - 1);
    length = options->name ? strnlen(options->name, MOST_NAME + 1) : 0;
    if (length == 0 || length > MOST_NAME)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "name is %s; wanted 1 to %d bytes",
                          length ? "too long" : "empty", MOST_NAME);
    if (options->buffer_bytes > MOST_BUFFER)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "buffer_bytes is %" PRIu64 "; wanted at most 2^40",
                          options->buffer_bytes);
    return DS_ACCEL_OK;
}

static int32_t shm_create(const struct ds_accel_shm_comm_options *options,
                          ds_accel_comm_t **comm_out, struct ds_accel_error *error)
{
    static const char call[] = "shm_comm: create";
    struct ds_accel_comm *comm;
    int32_t status = check_options(call, options, error);

    if (status)
        return status;
    if (!comm_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "comm_out is NULL");
    comm = (struct ds_accel_comm *)calloc(1, sizeof(*comm));
    if (!comm)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "out of memory for the communicator");
    comm->rank = options->rank;
    comm->size = options->size;
    comm->usual_timeout_ns = options->timeout_ns ? options->timeout_ns : USUAL_TIMEOUT_NS;
    comm->file = -1;
    memset(comm->processes, 0xFF, sizeof(comm->processes));
    comm->slot_bytes = ops__shm_slot(options->buffer_bytes);
    status = ops__shm_meet(call, comm, options, error);
    if (status) {
        ops__shm_release(comm);
        return status;
    }
    comm->spins = comm->cpus && comm->size > comm->cpus ? 0 : SPINS;
    *comm_out = comm;
    return DS_ACCEL_OK;
}

static void shm_destroy(ds_accel_comm_t *comm)
{
    if (!comm)
        return;
    if (*comm->is_parent)
        ops__shm_leave(comm);
    ops__shm_release(comm);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int32_t check_comm(const char *call, const ds_accel_comm_t *comm,
                          struct ds_accel_error *error)
{
    if (!comm)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "comm is NULL");
    if (!*comm->is_parent)
        return ops__error(
            error, DS_ACCEL_ERR_STATE, call,
            "this process was forked after the communicator was created; create a new "
            "one");
    return DS_ACCEL_OK;
}

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    uintptr_t first = (uintptr_t)a;
    uintptr_t second = (uintptr_t)b;

    return first < second + b_bytes && second < first + a_bytes;
}

static int32_t check_arrays(const char *call, uint32_t own, const struct ops__shm_call *work,
                            struct ds_accel_error *error)
{
    const char *allowed = work->kind == OPS__SHM_REDUCE_SCATTER ? work->in + work->out_bytes * own
                                                                : work->in;
    const char *out = work->kind == OPS__SHM_ALL_GATHER ? work->out + work->in_bytes * own
                                                        : work->out;

    if (work->in_bytes && !work->in)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "in is NULL");
    if (work->out_bytes && !work->out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "out is NULL");
    if (work->in_bytes && work->out_bytes && allowed != out &&
        overlap(work->in, work->in_bytes, work->out, work->out_bytes))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "in and out overlap; wanted the same array, or separate ones");
    return DS_ACCEL_OK;
}

static int32_t check_call(const char *call, uint32_t size, const struct ds_accel_comm_call *options,
                          const struct ops__shm_call *work, struct ds_accel_error *error)
{
    if (work->element == 0)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                          "dtype is %u; wanted DS_ACCEL_DTYPE_FLOAT32, FLOAT16, BFLOAT16, INT32 or "
                          "INT64",
                          options->dtype);
    if (work->count >= MOST_COUNT)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "count is %" PRIu64 "; wanted less than 2^40", options->count);
    if ((work->kind == OPS__SHM_ALL_REDUCE || work->kind == OPS__SHM_REDUCE_SCATTER) &&
        (work->reduction < DS_ACCEL_COMM_SUM || work->reduction > DS_ACCEL_COMM_MAX))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "reduction is %u; wanted DS_ACCEL_COMM_SUM, MIN or MAX",
                          options->reduction);
    if (work->kind == OPS__SHM_BROADCAST && work->root >= size)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "root is %u; wanted 0 to %u",
                          work->root, size - 1);
    return DS_ACCEL_OK;
}

/* Set the sizes of in and out. */
static void measure(uint32_t rank, uint32_t size, struct ops__shm_call *work)
{
    size_t bytes = work->count * work->element;

    work->in_bytes = work->kind == OPS__SHM_REDUCE_SCATTER ? bytes * size : bytes;
    work->out_bytes = work->kind == OPS__SHM_ALL_GATHER ? bytes * size : bytes;
    if (work->kind == OPS__SHM_BROADCAST && work->root == rank)
        work->out_bytes = 0;
    else if (work->kind == OPS__SHM_BROADCAST)
        work->in_bytes = 0;
}

int32_t ops__shm_check(const char *call, uint32_t rank, uint32_t size,
                       const struct ds_accel_comm_call *options, struct ops__shm_call *work,
                       struct ds_accel_error *error)
{
    int32_t status;

    if (!options)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "call is NULL");
    if (!DS_ACCEL_HAS(options, struct ds_accel_comm_call, timeout_ns))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_comm_call, timeout_ns));
    work->dtype = options->dtype;
    if (work->kind == OPS__SHM_ALL_REDUCE || work->kind == OPS__SHM_REDUCE_SCATTER)
        work->reduction = options->reduction;
    if (work->kind == OPS__SHM_BROADCAST)
        work->root = options->root;
    work->element = ops__element_bytes(options->dtype);
    work->in = (const char *)options->in;
    work->out = (char *)options->out;
    work->count = options->count;
    status = check_call(call, size, options, work, error);
    if (status)
        return status;
    measure(rank, size, work);
    return check_arrays(call, rank, work, error);
}

static int32_t run(const char *call, ds_accel_comm_t *comm, enum ops__shm_kind kind,
                   const struct ds_accel_comm_call *options, struct ds_accel_error *error)
{
    struct ops__shm_call work = {.kind = kind};
    int32_t status = check_comm(call, comm, error);

    if (status)
        return status;
    status = ops__shm_check(call, comm->rank, comm->size, options, &work, error);
    if (status)
        return status;
    if (ops__shm_begin(comm, ops__shm_sign(kind, work.dtype, work.reduction, work.root, work.count),
                       options->timeout_ns) ||
        ops__shm_run(comm, &work))
        return ops__shm_failure(comm, call, error);
    return DS_ACCEL_OK;
}

static int32_t shm_all_reduce(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                              struct ds_accel_error *error)
{
    return run("shm_comm: all_reduce", comm, OPS__SHM_ALL_REDUCE, call, error);
}

static int32_t shm_reduce_scatter(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                                  struct ds_accel_error *error)
{
    return run("shm_comm: reduce_scatter", comm, OPS__SHM_REDUCE_SCATTER, call, error);
}

static int32_t shm_all_gather(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                              struct ds_accel_error *error)
{
    return run("shm_comm: all_gather", comm, OPS__SHM_ALL_GATHER, call, error);
}

static int32_t shm_broadcast(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                             struct ds_accel_error *error)
{
    return run("shm_comm: broadcast", comm, OPS__SHM_BROADCAST, call, error);
}

static int32_t shm_barrier(ds_accel_comm_t *comm, const struct ds_accel_comm_call *options,
                           struct ds_accel_error *error)
{
    static const char call[] = "shm_comm: barrier";
    int32_t status = check_comm(call, comm, error);

    if (status)
        return status;
    if (options && !DS_ACCEL_HAS(options, struct ds_accel_comm_call, timeout_ns))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_comm_call, timeout_ns));
    if (ops__shm_begin(comm, ops__shm_sign(OPS__SHM_BARRIER, 0, 0, 0, 0),
                       options ? options->timeout_ns : 0))
        return ops__shm_failure(comm, call, error);
    ops__shm_announce(comm);
    return ops__shm_await_all(comm) ? ops__shm_failure(comm, call, error) : DS_ACCEL_OK;
}

static int32_t shm_info(ds_accel_comm_t *comm, struct ds_accel_shm_comm_info *info_out,
                        struct ds_accel_error *error)
{
    static const char call[] = "shm_comm: info";
    struct ds_accel_shm_comm_info info;
    int32_t status = check_comm(call, comm, error);

    if (status)
        return status;
    if (!info_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "info_out is NULL");
    if (!DS_ACCEL_HAS(info_out, struct ds_accel_shm_comm_info, calls))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", info_out->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_shm_comm_info, calls));
    info = (struct ds_accel_shm_comm_info){
        .rank = comm->rank,
        .size = comm->size,
        .cpus = comm->cpus,
        .buffer_bytes = comm->slot_bytes * OPS__SHM_SLOTS,
        .memory_bytes = comm->memory_bytes,
        .registered_bytes = comm->registered_bytes,
        .calls = comm->call,
        .group = comm->group,
        .group_count = comm->group_count,
    };
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static int32_t shm_alloc(ds_accel_comm_t *comm, uint64_t bytes, void **pointer_out,
                         struct ds_accel_error *error)
{
    static const char call[] = "shm_comm: alloc";
    int32_t status = check_comm(call, comm, error);

    if (status)
        return status;
    if (!pointer_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "pointer_out is NULL");
    return ops__shm_alloc(call, comm, bytes, pointer_out, error);
}

static int32_t shm_free(ds_accel_comm_t *comm, void *pointer, struct ds_accel_error *error)
{
    static const char call[] = "shm_comm: free";
    int32_t status = check_comm(call, comm, error);

    if (status || !pointer)
        return status;
    return ops__shm_free(call, comm, pointer, error);
}

const struct ds_accel_shm_comm ops__shm_table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_shm_comm),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "shm_comm",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .create = shm_create,
    .destroy = shm_destroy,
    .info = shm_info,
    .alloc = shm_alloc,
    .free = shm_free,
    .all_reduce = shm_all_reduce,
    .reduce_scatter = shm_reduce_scatter,
    .all_gather = shm_all_gather,
    .broadcast = shm_broadcast,
    .barrier = shm_barrier,
};
