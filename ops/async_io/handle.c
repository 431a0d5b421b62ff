/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Creating and destroying handles: options, the choice of the engine, threads, staging memory. */
#include "handle.h"

#include "common/error.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_PAGE ((uint64_t)2 << 20)

/* ---- staging memory -------------------------------------------------------------------------- */

/* Divide blocks among the threads. Those that get none do not take staged blocks of requests. */
static void divide_staging(struct ds_accel_async_io_handle *handle, char *memory, uint64_t bytes)
{
    uint64_t blocks = bytes / handle->staging_block;

    for (unsigned i = 0; i < handle->worker_count; i++) {
        uint64_t count = blocks / handle->worker_count + (i < blocks % handle->worker_count);

        if (count > ASYNC_IO_STAGING_MOST)
            count = ASYNC_IO_STAGING_MOST;
        handle->workers[i].staging = memory;
        handle->workers[i].staging_count = (unsigned)count;
        memory += count * handle->staging_block;
    }
}

/* Allocate staging memory if there is none. */
bool async_io__ensure_staging(struct ds_accel_async_io_handle *handle)
{
    uint64_t bytes = handle->staging_block * ASYNC_IO_STAGING * handle->options.parallelism;
    char *memory;

    if (handle->workers[0].staging)
        return true;
    memory = (char *)mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);
    if (memory == MAP_FAILED)
        return false;
    if (bytes >= LARGE_PAGE)
        madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    handle->staging = memory;
    handle->staging_bytes = bytes;
    pthread_mutex_lock(&handle->lock);
    divide_staging(handle, memory, bytes);
    pthread_mutex_unlock(&handle->lock);
    return true;
}

/* ---- options, engine and threads ------------------------------------------------------------- */

static int32_t refuse_number(struct ds_accel_error *error, const char *name, uint64_t number,
                             const char *wanted)
{
    return ops__error(error, DS_ACCEL_ERR_INVALID, "async_io: create",
                      "%s is %" PRIu64 "; wanted %s", name, number, wanted);
}

static int32_t check_switch(const char *name, uint32_t value, struct ds_accel_error *error)
{
    return value <= DS_ACCEL_ASYNC_IO_OFF
               ? DS_ACCEL_OK
               : refuse_number(error, name, value, "0 (unset), 1 (on) or 2 (off)");
}

/* Check the options and fill in the defaults. The switches become 0 or 1. */
static int32_t check_options(struct ds_accel_async_io_options *options,
                             struct ds_accel_error *error)
{
    int32_t status = check_switch("single_submit", options->single_submit, error);

    if (status == DS_ACCEL_OK)
        status = check_switch("overlap_events", options->overlap_events, error);
    if (status)
        return status;
    if (!(options->flags & DS_ACCEL_ASYNC_IO_NO_SETTINGS))
        async_io__settings_apply(options);
    options->single_submit = options->single_submit == DS_ACCEL_ASYNC_IO_ON;
    options->overlap_events = options->overlap_events == DS_ACCEL_ASYNC_IO_ON;
    if (options->block_bytes == 0)
        options->block_bytes = (uint64_t)1 << 20;
    if (options->queue_depth == 0)
        options->queue_depth = 128;
    if (options->parallelism == 0)
        options->parallelism = 1;
    if (options->flags & ~(DS_ACCEL_ASYNC_IO_PAGE_CACHE | DS_ACCEL_ASYNC_IO_FUSE_RING |
                           DS_ACCEL_ASYNC_IO_NO_SETTINGS))
        return refuse_number(error, "flags", options->flags, "at most 7");
    if (options->block_bytes % 512 != 0 || options->block_bytes > (uint64_t)1 << 30)
        return refuse_number(error, "block_bytes", options->block_bytes,
                             "a multiple of 512, at most 2^30");
    if (options->queue_depth > 4096)
        return refuse_number(error, "queue_depth", options->queue_depth, "at most 4096");
    if (options->parallelism > 64)
        return refuse_number(error, "parallelism", options->parallelism, "at most 64");
    if (options->engine > DS_ACCEL_ASYNC_IO_ENGINE_THREADS)
        return refuse_number(error, "engine", options->engine, "at most 2");
    if (options->reserved != 0)
        return refuse_number(error, "reserved", options->reserved, "0");
    if ((uintptr_t)options->staging % ASYNC_IO_PAGE != 0)
        return refuse_number(error, "staging", (uintptr_t)options->staging, "a multiple of 4096");
    return DS_ACCEL_OK;
}

/* Create a ring for each worker. Return false, without any, with the reason. */
static bool create_rings(struct ds_accel_async_io_handle *handle)
{
    const char *function = "";
    int failed = 0;

    for (unsigned i = 0; i < handle->options.parallelism && !failed; i++)
        failed = async_io__ring_create(&handle->workers[i], &function);
    if (!failed) {
        snprintf(handle->reason, sizeof(handle->reason), "io_uring: the kernel has it");
        return true;
    }
    for (unsigned i = 0; i < handle->options.parallelism; i++) {
        async_io__ring_destroy(handle->workers[i].ring);
        handle->workers[i].ring = NULL;
    }
    snprintf(handle->reason, sizeof(handle->reason), "io_uring cannot be used: %s: %s%s", function,
             strerror(failed),
             failed == EPERM ? " (forbidden by a seccomp filter or by kernel.io_uring_disabled)"
                             : "");
    return false;
}

static void plan_rings(struct ds_accel_async_io_handle *handle)
{
    handle->parts = handle->worker_count = handle->options.parallelism;
    handle->run = 1;
    handle->most_taken = UINT64_MAX;
    for (unsigned i = 0; i < handle->worker_count; i++)
        handle->workers[i].part = i;
}

static void plan_threads(struct ds_accel_async_io_handle *handle)
{
    const struct ds_accel_async_io_options *options = &handle->options;
    unsigned depth = options->queue_depth;

    handle->parts = 1;
    handle->run = depth / ASYNC_IO_RUN_PART;
    if (handle->run > ASYNC_IO_RUN_BYTES / options->block_bytes)
        handle->run = ASYNC_IO_RUN_BYTES / options->block_bytes;
    if (handle->run == 0)
        handle->run = 1;
    handle->most_taken = (uint64_t)depth * options->parallelism;
    handle->worker_count = (depth < ASYNC_IO_THREADS ? depth : ASYNC_IO_THREADS) *
                           options->parallelism;
}

static int32_t choose_engine(struct ds_accel_async_io_handle *handle, struct ds_accel_error *error)
{
    struct ds_accel_async_io_options *options = &handle->options;

    if (options->engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS) {
        snprintf(handle->reason, sizeof(handle->reason),
                 "threads: chosen by the options or the configuration");
    } else if (create_rings(handle)) {
        options->engine = DS_ACCEL_ASYNC_IO_ENGINE_IO_URING;
    } else if (options->engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING) {
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, "async_io: create", "%s",
                          handle->reason);
    } else {
        options->engine = DS_ACCEL_ASYNC_IO_ENGINE_THREADS;
    }
    if (options->engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS)
        plan_threads(handle);
    else
        plan_rings(handle);
    return DS_ACCEL_OK;
}

/* End and join the first threads. */
static void stop_threads(struct ds_accel_async_io_handle *handle, unsigned count)
{
    pthread_mutex_lock(&handle->lock);
    handle->stopping = true;
    pthread_cond_broadcast(&handle->work);
    pthread_mutex_unlock(&handle->lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(handle->workers[i].thread, NULL);
}

/* Start the threads, which no signal of the caller's interrupts, not even SIGXFSZ: writing beyond
 * RLIMIT_FSIZE is an error of the request. */
static int32_t start_threads(struct ds_accel_async_io_handle *handle, struct ds_accel_error *error)
{
    void *(*run_worker)(void *) = handle->options.engine == DS_ACCEL_ASYNC_IO_ENGINE_IO_URING
                                      ? async_io__ring_run
                                      : async_io__pool_run;
    unsigned started = 0;
    int failed = 0;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < handle->worker_count && !failed) {
        failed = pthread_create(&handle->workers[started].thread, NULL, run_worker,
                                &handle->workers[started]);
        started += !failed;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return DS_ACCEL_OK;
    stop_threads(handle, started);
    return ops__error(error, DS_ACCEL_ERR_LIMIT, "async_io: create",
                      "cannot start thread %u of %u: %s", started + 1, handle->worker_count,
                      strerror(failed));
}

static void free_handle(struct ds_accel_async_io_handle *handle)
{
    for (unsigned i = 0; i < handle->options.parallelism; i++)
        async_io__ring_destroy(handle->workers[i].ring);
    if (handle->staging)
        munmap(handle->staging, (size_t)handle->staging_bytes);
    pthread_cond_destroy(&handle->done);
    pthread_cond_destroy(&handle->work);
    pthread_mutex_destroy(&handle->lock);
    free(handle);
}

static int32_t use_staging(struct ds_accel_async_io_handle *handle, struct ds_accel_error *error)
{
    const struct ds_accel_async_io_options *options = &handle->options;

    handle->staging_block = (options->block_bytes + ASYNC_IO_PAGE - 1) / ASYNC_IO_PAGE *
                            ASYNC_IO_PAGE;
    if (!options->staging)
        return DS_ACCEL_OK;
    if (options->staging_bytes / options->parallelism < handle->staging_block)
        return ops__error(error, DS_ACCEL_ERR_INVALID, "async_io: create",
                          "staging_bytes is %" PRIu64 "; wanted %" PRIu64 " or more",
                          options->staging_bytes, handle->staging_block * options->parallelism);
    divide_staging(handle, (char *)options->staging, options->staging_bytes);
    return DS_ACCEL_OK;
}

int32_t async_io__create(const struct ds_accel_async_io_options *options,
                         struct ds_accel_async_io_handle **handle_out, struct ds_accel_error *error)
{
    static const char call[] = "async_io: create";
    struct ds_accel_async_io_options checked = {0};
    struct ds_accel_async_io_handle *handle;
    int32_t status;

    if (!handle_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "handle_out is NULL");
    if (options) {
        if (options->struct_size < sizeof(*options))
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "struct_size of options is %u; wanted %zu or more",
                              options->struct_size, sizeof(*options));
        checked = *options;
    }
    status = check_options(&checked, error);
    if (status)
        return status;
    handle = (struct ds_accel_async_io_handle *)calloc(
        1, sizeof(*handle) +
               (size_t)checked.parallelism * ASYNC_IO_THREADS * sizeof(handle->workers[0]));
    if (!handle)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "out of memory for a handle");
    handle->options = checked;
    handle->process = getpid();
    pthread_mutex_init(&handle->lock, NULL);
    pthread_cond_init(&handle->work, NULL);
    pthread_cond_init(&handle->done, NULL);
    for (unsigned i = 0; i < checked.parallelism * ASYNC_IO_THREADS; i++)
        handle->workers[i].handle = handle;
    status = choose_engine(handle, error);
    if (status == DS_ACCEL_OK)
        status = use_staging(handle, error);
    if (status == DS_ACCEL_OK)
        status = start_threads(handle, error);
    if (status) {
        free_handle(handle);
        return status;
    }
    *handle_out = handle;
    return DS_ACCEL_OK;
}

void async_io__destroy(struct ds_accel_async_io_handle *handle)
{
    stop_threads(handle, handle->worker_count);
    free_handle(handle);
}
