/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op ccl_comm: its table, and the checks of arguments. */
#include "ccl_comm.h"

#include "ccl.h"
#include "common/error.h"
#include "common/isa.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_TIMEOUT_NS (300 * OPS__SECOND_NS)
#define MOST_BUFFER ((uint64_t)1 << 30)

/* The handle is that of another structure than shm_comm's. */
static struct ops__ccl *ccl_of(ds_accel_comm_t *comm)
{
    return (struct ops__ccl *)(void *)comm;
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static int32_t check_options(const char *call, const struct ds_accel_ccl_comm_options *options,
                             struct ds_accel_error *error)
{
    if (!options)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "options is NULL");
    if (!DS_ACCEL_HAS(options, struct ds_accel_ccl_comm_options, buffer_bytes))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_ccl_comm_options, buffer_bytes));
    if (options->flags != 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "flags has unknown bits: 0x%x",
                          options->flags);
    if (options->engine > DS_ACCEL_CCL_COMM_MPICH)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "engine is %u; wanted DS_ACCEL_CCL_COMM_AUTO, OPENMPI or MPICH",
                          options->engine);
    if (options->library && options->engine == DS_ACCEL_CCL_COMM_AUTO)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "library needs engine, which is 0");
    if (options->buffer_bytes > MOST_BUFFER)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "buffer_bytes is %" PRIu64 "; wanted at most 2^30",
                          options->buffer_bytes);
    return DS_ACCEL_OK;
}

/* Release all; MPI does not use the memory any more. */
static void release(struct ops__ccl *ccl)
{
    ops__ccl_free_meeting(ccl);
    free(ccl->order);
    free(ccl->first);
    free(ccl->leaders);
    free(ccl->node_of);
    free(ccl->processes);
    free(ccl->left_ns);
    free(ccl->requests);
    free(ccl->tell_requests);
    free(ccl->sends);
    free(ccl->receives);
    free((void *)ccl->arrays);
    free(ccl->hellos);
    free(ccl->input);
    free(ccl);
}

/* Leave the node, and MPI. */
static void leave(struct ops__ccl *ccl)
{
    if (ccl->local)
        ops__shm_table.destroy(ccl->local);
    ccl->local = NULL;
    if (!ops__ccl_is_open(ccl) || ops__ccl_quiet(ccl))
        release(ccl);
}

/* Return a communicator of the opened engine, or NULL. */
static struct ops__ccl *make(const struct ops__ccl *opened)
{
    struct ops__ccl *ccl = (struct ops__ccl *)malloc(sizeof(*ccl));

    if (!ccl)
        return NULL;
    *ccl = *opened;
    if (ops__ccl_make_lists(ccl))
        return ccl;
    release(ccl);
    return NULL;
}

static int32_t ccl_create(const struct ds_accel_ccl_comm_options *options,
                          ds_accel_comm_t **comm_out, struct ds_accel_error *error)
{
    static const char call[] = "ccl_comm: create";
    struct ops__ccl opened = {.owner = getpid(), .name = "create"};
    struct ops__ccl *ccl;
    int32_t status = check_options(call, options, error);

    if (status)
        return status;
    if (!comm_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "comm_out is NULL");
    opened.usual_timeout_ns = options->timeout_ns ? options->timeout_ns : USUAL_TIMEOUT_NS;
    opened.timeout_ns = opened.usual_timeout_ns;
    status = ops__ccl_open(call, options, &opened, error);
    if (status)
        return status;
    ops__ccl_start(&opened);
    if (opened.size > DS_ACCEL_CCL_COMM_MAX_RANKS)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                          "the job has %u ranks; wanted at most %u", opened.size,
                          DS_ACCEL_CCL_COMM_MAX_RANKS);
    ccl = make(&opened);
    if (!ccl)
        return ops__ccl_decline(call, options, &opened, error);
    status = ops__ccl_meet(call, options, ccl, error);
    if (status) {
        leave(ccl);
        return status;
    }
    *comm_out = (ds_accel_comm_t *)(void *)ccl;
    return DS_ACCEL_OK;
}

static void ccl_destroy(ds_accel_comm_t *comm)
{
    struct ops__ccl *ccl = ccl_of(comm);

    if (!ccl || ccl->owner != getpid())
        return;
    if (ops__ccl_is_open(ccl))
        ops__ccl_part_from_others(ccl);
    leave(ccl);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int32_t check_comm(const char *call, const struct ops__ccl *ccl,
                          struct ds_accel_error *error)
{
    if (!ccl)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "comm is NULL");
    if (ccl->owner != getpid())
        return ops__error(error, DS_ACCEL_ERR_STATE, call,
                          "this process was forked after the communicator was created");
    return DS_ACCEL_OK;
}

/* Return the error of the communicator. */
static int32_t failure(const char *call, struct ops__ccl *ccl, struct ds_accel_error *error)
{
    if (!ccl->closed)
        ops__ccl_tell(ccl, &ccl->note);
    ccl->closed = true;
    return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
}

static int32_t carry_out(const char *call, struct ops__ccl *ccl, const struct ops__shm_call *work,
                         uint64_t timeout_ns, struct ds_accel_error *error)
{
    int32_t failed;

    if (ccl->closed)
        return failure(call, ccl, error);
    if (!ops__ccl_is_open(ccl))
        return ops__error(error, DS_ACCEL_ERR_STATE, call, "MPI is finalized");
    ccl->calls++;
    ccl->name = call + strlen("ccl_comm: ");
    ccl->timeout_ns = timeout_ns ? timeout_ns : ccl->usual_timeout_ns;
    ops__ccl_start(ccl);
    failed = ccl->nodes == 1 ? ops__ccl_local(ccl, work, 0) : ops__ccl_run(ccl, work);
    return failed ? failure(call, ccl, error) : DS_ACCEL_OK;
}

static int32_t run(const char *call, ds_accel_comm_t *comm, enum ops__shm_kind kind,
                   const struct ds_accel_comm_call *options, struct ds_accel_error *error)
{
    struct ops__ccl *ccl = ccl_of(comm);
    struct ops__shm_call work = {.kind = kind};
    int32_t status = check_comm(call, ccl, error);

    if (status)
        return status;
    status = ops__shm_check(call, ccl->rank, ccl->size, options, &work, error);
    return status ? status : carry_out(call, ccl, &work, options->timeout_ns, error);
}

static int32_t ccl_all_reduce(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                              struct ds_accel_error *error)
{
    return run("ccl_comm: all_reduce", comm, OPS__SHM_ALL_REDUCE, call, error);
}

static int32_t ccl_reduce_scatter(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                                  struct ds_accel_error *error)
{
    return run("ccl_comm: reduce_scatter", comm, OPS__SHM_REDUCE_SCATTER, call, error);
}

static int32_t ccl_all_gather(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                              struct ds_accel_error *error)
{
    return run("ccl_comm: all_gather", comm, OPS__SHM_ALL_GATHER, call, error);
}

static int32_t ccl_broadcast(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                             struct ds_accel_error *error)
{
    return run("ccl_comm: broadcast", comm, OPS__SHM_BROADCAST, call, error);
}

static int32_t ccl_barrier(ds_accel_comm_t *comm, const struct ds_accel_comm_call *options,
                           struct ds_accel_error *error)
{
    static const char call[] = "ccl_comm: barrier";
    struct ops__ccl *ccl = ccl_of(comm);
    struct ops__shm_call work = {.kind = OPS__SHM_BARRIER};
    int32_t status = check_comm(call, ccl, error);

    if (status)
        return status;
    if (options && !DS_ACCEL_HAS(options, struct ds_accel_comm_call, timeout_ns))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_comm_call, timeout_ns));
    return carry_out(call, ccl, &work, options ? options->timeout_ns : 0, error);
}

static int32_t ccl_info(ds_accel_comm_t *comm, struct ds_accel_ccl_comm_info *info_out,
                        struct ds_accel_error *error)
{
    static const char call[] = "ccl_comm: info";
    const struct ops__ccl *ccl = ccl_of(comm);
    struct ds_accel_ccl_comm_info info;
    int32_t status = check_comm(call, ccl, error);

    if (status)
        return status;
    if (!info_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "info_out is NULL");
    if (!DS_ACCEL_HAS(info_out, struct ds_accel_ccl_comm_info, version))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", info_out->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_ccl_comm_info, version));
    info = (struct ds_accel_ccl_comm_info){
        .rank = ccl->rank,
        .size = ccl->size,
        .node = ccl->node,
        .nodes = ccl->nodes,
        .local_rank = ccl->local_rank,
        .local_size = ccl->local_size,
        .engine = ccl->engine->number,
        .buffer_bytes = ccl->buffer_bytes,
        .memory_bytes = ccl->memory_bytes,
        .calls = ccl->calls,
    };
    memcpy(info.version, ops__ccl_version(), sizeof(info.version));
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static const struct ds_accel_ccl_comm table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_ccl_comm),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "ccl_comm",
            .paths = ops__isa_names,
            .path = ops__isa_name,
        },
    .create = ccl_create,
    .destroy = ccl_destroy,
    .info = ccl_info,
    .all_reduce = ccl_all_reduce,
    .reduce_scatter = ccl_reduce_scatter,
    .all_gather = ccl_all_gather,
    .broadcast = ccl_broadcast,
    .barrier = ccl_barrier,
};

DS_ACCEL_OP("ccl_comm", &table.op);
