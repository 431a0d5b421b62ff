/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which MPI ccl_comm uses. A process has one, and one duplicate of MPI_COMM_WORLD that all of its
 * communicators share: each has its own tags. So destroy() needs no collective MPI_Comm_free().
 */
#include "ccl.h"
#include "common/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAGS 16000 /* MPI promises 32767 */

static const struct ops__engine *const engines[] = {&ops__engine_openmpi, &ops__engine_mpich};

#define ENGINE_COUNT (sizeof(engines) / sizeof(engines[0]))

/* Guarded by lock, except lost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const struct ops__engine *engine;
    union ops__mpi_handle world;
    bool ready;
    bool broken; /* the duplicate was not made in time */
    bool ours;   /* the op initialized MPI */
    pid_t process;
    unsigned created;
    int rank;
    int size;
    char version[128];
} process;
static _Atomic bool lost;

const char *ops__ccl_version(void)
{
    return process.version;
}

void ops__ccl_lost(void)
{
    atomic_store(&lost, true);
}

bool ops__ccl_is_open(const struct ops__ccl *ccl)
{
    int finalized = 1;

    return ccl->engine->finalized(&finalized) == 0 && !finalized;
}

static void finalize_at_exit(void)
{
    int finalized = 1;

    if (process.process != getpid() || atomic_load(&lost) || process.broken)
        return;
    if (process.engine->finalized(&finalized) == 0 && !finalized)
        process.engine->finalize();
}

static int32_t driver_error(const char *call, const char *function, int code,
                            struct ds_accel_error *error)
{
    char text[256];

    process.engine->describe(code, text, sizeof(text));
    ops__error(error, DS_ACCEL_ERR_DRIVER, call, "%s: %s: %s", process.engine->name, function,
               text);
    ops__error_vendor(error, code, text);
    return DS_ACCEL_ERR_DRIVER;
}

static bool is_loaded(const struct ops__engine *engine)
{
    void *library = dlopen(engine->file, RTLD_NOW | RTLD_NOLOAD);

    if (library)
        dlclose(library);
    return library != NULL;
}

/* Choose the engine; NULL: none. */
static const struct ops__engine *choose(const struct ds_accel_ccl_comm_options *options)
{
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        if (options->engine == engines[i]->number)
            return engines[i];
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        if (is_loaded(engines[i]))
            return engines[i];
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        if (getenv(engines[i]->variable))
            return engines[i];
    return NULL;
}

static int32_t load(const char *call, const struct ds_accel_ccl_comm_options *options,
                    const struct ops__engine *engine, struct ds_accel_error *error)
{
    const char *file = options->library && !is_loaded(engine) ? options->library : engine->file;
    const char *missing;
    void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);

    if (!library)
        return ops__error(error, DS_ACCEL_ERR_NOT_FOUND, call, "%s cannot be loaded: %s",
                          engine->name, dlerror());
    missing = engine->bind(library);
    if (missing)
        return ops__error(error, DS_ACCEL_ERR_NOT_FOUND, call, "%s lacks %s; wanted %s", file,
                          missing, engine->name);
    process.engine = engine;
    return DS_ACCEL_OK;
}

static int32_t initialize(const char *call, struct ds_accel_error *error)
{
    const struct ops__engine *engine = process.engine;
    int flag = 0;
    int code = engine->finalized(&flag);

    if (code == 0 && flag)
        return ops__error(error, DS_ACCEL_ERR_STATE, call, "MPI is finalized");
    if (code == 0)
        code = engine->initialized(&flag);
    if (code == 0 && !flag) {
        code = engine->init();
        if (code)
            return driver_error(call, "MPI_Init_thread", code, error);
        process.ours = true;
        process.process = getpid();
        atexit(finalize_at_exit);
    }
    if (code == 0)
        code = engine->world(&process.rank, &process.size);
    return code ? driver_error(call, "MPI_Comm_size", code, error) : DS_ACCEL_OK;
}

static int32_t duplicate(const char *call, uint64_t timeout_ns, struct ds_accel_error *error)
{
    struct ops__mpi_request request = {.active = false};
    uint64_t begin = ops__ccl_now();
    uint32_t source;
    int code = process.engine->duplicate(&process.world, &request);

    for (unsigned i = 0; code == 0 && request.active; i++) {
        code = process.engine->test(&request, &source);
        if (code == 0 && request.active && ops__ccl_now() - begin >= timeout_ns) {
            process.broken = true;
            return ops__error(error, DS_ACCEL_ERR_TIMEOUT, call,
                              "not all of the %d ranks have called create within %.1f s",
                              process.size, (double)timeout_ns / 1e9);
        }
        ops__ccl_pause(i);
    }
    if (code == 0)
        code = process.engine->return_errors(process.world);
    return code ? driver_error(call, "MPI_Comm_idup", code, error) : DS_ACCEL_OK;
}

static void read_version(void)
{
    char text[OPS__MPI_TEXT] = "";
    size_t length;

    if (process.engine->version(text))
        return;
    length = strcspn(text, "\n");
    if (length >= sizeof(process.version))
        length = sizeof(process.version) - 1;
    memcpy(process.version, text, length);
    process.version[length] = '\0';
    for (char *c = process.version; *c; c++)
        if (*c == '\t')
            *c = ' ';
}

static int32_t make_ready(const char *call, const struct ds_accel_ccl_comm_options *options,
                          uint64_t timeout_ns, struct ds_accel_error *error)
{
    const struct ops__engine *engine = process.engine ? process.engine : choose(options);
    int32_t status = DS_ACCEL_OK;

    if (!engine)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, call,
                          "neither Open MPI nor MPICH is loaded, and neither's mpirun has started "
                          "this process; other MPIs and oneCCL are not supported");
    if (options->engine && options->engine != engine->number)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "this process uses %s already",
                          engine->name);
    if (!process.engine)
        status = load(call, options, engine, error);
    if (status == 0)
        status = initialize(call, error);
    if (status == 0)
        status = duplicate(call, timeout_ns, error);
    if (status)
        return status;
    read_version();
    process.ready = true;
    return DS_ACCEL_OK;
}

int32_t ops__ccl_open(const char *call, const struct ds_accel_ccl_comm_options *options,
                      struct ops__ccl *ccl, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&lock);
    if (process.broken)
        status = ops__error(error, DS_ACCEL_ERR_STATE, call, "an earlier create has timed out");
    else if (!process.ready)
        status = make_ready(call, options, ccl->usual_timeout_ns, error);
    else if (options->engine && options->engine != process.engine->number)
        status = ops__error(error, DS_ACCEL_ERR_INVALID, call, "this process uses %s already",
                            process.engine->name);
    if (status == 0) {
        ccl->engine = process.engine;
        ccl->world = process.world;
        ccl->rank = (uint32_t)process.rank;
        ccl->size = (uint32_t)process.size;
        ccl->tag = (int)(2 * (process.created++ % TAGS));
    }
    pthread_mutex_unlock(&lock);
    if (status == 0 && !ops__ccl_is_open(ccl))
        status = ops__error(error, DS_ACCEL_ERR_STATE, call, "MPI is finalized");
    return status;
}
