/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The all-reduce of shm_comm and ccl_comm, and the least that one can take:
 *
 *     comm_ours MODE OP RANKS FILE SCALE BYTES...
 *
 * MODE is private or registered, where OP is the file of shm_comm; or nodes, where it is that of
 * ccl_comm, mpirun has started RANKS processes, and each is a node of its own; or one of the limits
 * (comm_limit.h), limit-private or limit-registered, which are for 2 ranks and do not read OP.
 */
#include "comm_limit.h"
#include "comm_loop.h"

#include <ds-accel/ops/ccl_comm.h>
#include <ds-accel/ops/shm_comm.h>

#include <dlfcn.h>
#include <sys/wait.h>

struct ours {
    const struct ds_accel_shm_comm *op; /* NULL: all_reduce is that of ccl_comm */
    ds_accel_comm_t *comm;
    int32_t (*all_reduce)(ds_accel_comm_t *comm, const struct ds_accel_comm_call *call,
                          struct ds_accel_error *error);
};

static void check(int32_t status, const struct ds_accel_error *error)
{
    if (status != DS_ACCEL_OK) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
}

static float *allocate_registered(void *data, size_t bytes)
{
    const struct ours *ours = (const struct ours *)data;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *memory;

    check(ours->op->alloc(ours->comm, bytes, &memory, &error), &error);
    return (float *)memory;
}

static void reduce_ours(void *data, const float *in, float *out, size_t count)
{
    const struct ours *ours = (const struct ours *)data;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_comm_call call = {.struct_size = sizeof(call),
                                            .dtype = DS_ACCEL_DTYPE_FLOAT32,
                                            .reduction = DS_ACCEL_COMM_SUM,
                                            .in = in,
                                            .out = out,
                                            .count = count};

    check(ours->all_reduce(ours->comm, &call, &error), &error);
}

static const struct ds_accel_op *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    ds_accel_op_entry_v1_fn entry =
        library != NULL ? (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY) : NULL;

    if (entry == NULL) {
        fprintf(stderr, "%s: %s\n", path, dlerror());
        exit(1);
    }
    return entry();
}

static void run_ours(struct comm_loop *loop, const char *path, bool is_registered)
{
    const struct ds_accel_shm_comm *op = (const struct ds_accel_shm_comm *)load(path);
    struct ours ours = {.op = op, .all_reduce = op->all_reduce};
    struct comm_contender contender = {&ours, is_registered ? allocate_registered : comm_private,
                                       reduce_ours};
    char name[64];
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_shm_comm_options options = {
        .struct_size = sizeof(options), .rank = loop->rank, .size = loop->size, .name = name};

    snprintf(name, sizeof(name), "bench %ld", (long)getppid());
    comm_pin(loop); /* before the memory is touched */
    check(op->create(&options, &ours.comm, &error), &error);
    comm_loop(loop, &contender);
    op->destroy(ours.comm);
}

static void run_nodes(struct comm_loop *loop, const char *path)
{
    const struct ds_accel_ccl_comm *op = (const struct ds_accel_ccl_comm *)load(path);
    struct ours ours = {.all_reduce = op->all_reduce};
    struct comm_contender contender = {&ours, comm_private, reduce_ours};
    struct ds_accel_ccl_comm_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_ccl_comm_options options = {.struct_size = sizeof(options),
                                                      .ranks_per_node = 1};

    check(op->create(&options, &ours.comm, &error), &error);
    check(op->info(ours.comm, &info, &error), &error);
    if (info.size != loop->size) {
        fprintf(stderr, "mpirun has started %u ranks, wanted %u\n", info.size, loop->size);
        exit(1);
    }
    loop->rank = info.rank;
    comm_loop(loop, &contender);
    op->destroy(ours.comm);
}

static void run_rank(struct comm_loop *loop, const char *mode, const char *path)
{
    if (strcmp(mode, "private") == 0 || strcmp(mode, "registered") == 0) {
        run_ours(loop, path, mode[0] == 'r');
    } else if (strcmp(mode, "limit-private") == 0 || strcmp(mode, "limit-registered") == 0) {
        comm_limit_run(loop, mode[6] == 'r');
    } else {
        fprintf(stderr, "there is no mode %s\n", mode);
        exit(2);
    }
}

int main(int argument_count, char **arguments)
{
    struct comm_loop loop = {.is_pinned = true};
    int failed = 0;
    int state;

    if (argument_count < 6) {
        fprintf(stderr, "usage: comm_ours MODE OP RANKS FILE SCALE BYTES...\n");
        return 2;
    }
    loop.size = (unsigned)atoi(arguments[3]);
    comm_parse(&loop, arguments + 4);
    if (strcmp(arguments[1], "nodes") == 0) {
        run_nodes(&loop, arguments[2]);
        return 0;
    }
    comm_limit_prepare(&loop);
    for (loop.rank = 0; loop.rank < loop.size; loop.rank++) {
        pid_t pid = fork();

        if (pid < 0) {
            comm_fail("fork");
        }
        if (pid == 0) {
            run_rank(&loop, arguments[1], arguments[2]);
            exit(0);
        }
    }
    while (wait(&state) > 0) {
        failed += state != 0;
    }
    return failed > 0;
}
