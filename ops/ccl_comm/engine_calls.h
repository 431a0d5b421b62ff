/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The functions of one engine: compiled with the types and constants of its binary interface, which
 * the including file defines. No include guard. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
    int (*initialized)(int *);
    int (*finalized)(int *);
    int (*init_thread)(int *, char ***, int, int *);
    int (*finalize)(void);
    int (*get_library_version)(char *, int *);
    int (*comm_rank)(HANDLE, int *);
    int (*comm_size)(HANDLE, int *);
    int (*comm_idup)(HANDLE, HANDLE *, HANDLE *);
    int (*comm_set_errhandler)(HANDLE, HANDLE);
    int (*isend)(const void *, int, HANDLE, int, int, HANDLE, HANDLE *);
    int (*irecv)(void *, int, HANDLE, int, int, HANDLE, HANDLE *);
    int (*test)(HANDLE *, int *, STATUS *);
    int (*cancel)(HANDLE *);
    int (*error_string)(int, char *, int *);
} mpi;

static const char *engine_bind(void *library)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"MPI_Initialized", &mpi.initialized},
        {"MPI_Finalized", &mpi.finalized},
        {"MPI_Init_thread", &mpi.init_thread},
        {"MPI_Finalize", &mpi.finalize},
        {"MPI_Get_library_version", &mpi.get_library_version},
        {"MPI_Comm_rank", &mpi.comm_rank},
        {"MPI_Comm_size", &mpi.comm_size},
        {"MPI_Comm_idup", &mpi.comm_idup},
        {"MPI_Comm_set_errhandler", &mpi.comm_set_errhandler},
        {"MPI_Isend", &mpi.isend},
        {"MPI_Irecv", &mpi.irecv},
        {"MPI_Test", &mpi.test},
        {"MPI_Cancel", &mpi.cancel},
        {"MPI_Error_string", &mpi.error_string},
#ifdef CONSTANTS
        CONSTANTS,
#endif
    };

    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        if (!address)
            return symbols[i].name;
        memcpy(symbols[i].place, &address, sizeof(address));
    }
    return NULL;
}

static int engine_initialized(int *flag_out)
{
    return mpi.initialized(flag_out);
}

static int engine_finalized(int *flag_out)
{
    return mpi.finalized(flag_out);
}

static int engine_init(void)
{
    int provided;

    return mpi.init_thread(NULL, NULL, OPS__MPI_THREAD_MULTIPLE, &provided);
}

static int engine_finalize(void)
{
    return mpi.finalize();
}

static int engine_version(char *text)
{
    int length = 0;

    return mpi.get_library_version(text, &length);
}

static int engine_world(int *rank_out, int *size_out)
{
    int code = mpi.comm_rank(WORLD, rank_out);

    return code ? code : mpi.comm_size(WORLD, size_out);
}

static int engine_duplicate(union ops__mpi_handle *comm_out, struct ops__mpi_request *request)
{
    int code = mpi.comm_idup(WORLD, &HANDLE_OF(*comm_out), &HANDLE_OF(request->handle));

    request->active = code == 0;
    return code;
}

static int engine_return_errors(union ops__mpi_handle comm)
{
    return mpi.comm_set_errhandler(HANDLE_OF(comm), ERRORS_RETURN);
}

static int engine_send(union ops__mpi_handle comm, const void *data, size_t bytes, uint32_t to,
                       int tag, struct ops__mpi_request *request)
{
    int code = mpi.isend(data, (int)bytes, BYTE, (int)to, tag, HANDLE_OF(comm),
                         &HANDLE_OF(request->handle));

    request->active = code == 0;
    return code;
}

static int engine_receive(union ops__mpi_handle comm, void *data, size_t bytes, uint32_t from,
                          int tag, struct ops__mpi_request *request)
{
    int source = from == OPS__MPI_ANY ? ANY_SOURCE : (int)from;
    int code = mpi.irecv(data, (int)bytes, BYTE, source, tag, HANDLE_OF(comm),
                         &HANDLE_OF(request->handle));

    request->active = code == 0;
    return code;
}

static int engine_test(struct ops__mpi_request *request, uint32_t *source_out)
{
    int done = 0;
    STATUS status = {0};
    int code = mpi.test(&HANDLE_OF(request->handle), &done, &status);

    if (code || done)
        request->active = false;
    *source_out = (uint32_t)status.source;
    return code;
}

static int engine_cancel(struct ops__mpi_request *request)
{
    return mpi.cancel(&HANDLE_OF(request->handle));
}

static void engine_describe(int code, char *text, size_t bytes)
{
    char whole[MOST_ERROR_TEXT] = "";
    int length = 0;

    if (mpi.error_string(code, whole, &length))
        snprintf(whole, sizeof(whole), "error %d", code);
    whole[strcspn(whole, "\n")] = '\0';
    snprintf(text, bytes, "%.*s", (int)bytes - 1, whole);
}

const struct ops__engine ENGINE = {
    .number = ENGINE_NUMBER,
    .name = ENGINE_NAME,
    .file = ENGINE_FILE,
    .variable = ENGINE_VARIABLE,
    .bind = engine_bind,
    .initialized = engine_initialized,
    .finalized = engine_finalized,
    .init = engine_init,
    .finalize = engine_finalize,
    .version = engine_version,
    .world = engine_world,
    .duplicate = engine_duplicate,
    .return_errors = engine_return_errors,
    .send = engine_send,
    .receive = engine_receive,
    .test = engine_test,
    .cancel = engine_cancel,
    .describe = engine_describe,
};
