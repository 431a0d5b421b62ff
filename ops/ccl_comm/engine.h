/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The functions of MPI that ccl_comm uses, the same for each engine. engine_calls.h is compiled
 * once per binary interface. Functions that return int return MPI's code, 0 for success.
 */
#ifndef OPS_CCL_COMM_ENGINE_H
#define OPS_CCL_COMM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPS__MPI_THREAD_MULTIPLE 3
#define OPS__MPI_ANY UINT32_MAX /* receive from any rank */
#define OPS__MPI_TEXT 8192      /* bytes that MPI may write of its version */

/* An MPI_Comm or MPI_Request. */
union ops__mpi_handle {
    void *pointer;
    int number;
};

struct ops__mpi_request {
    union ops__mpi_handle handle;
    bool active;
};

struct ops__engine {
    uint32_t number;      /* DS_ACCEL_CCL_COMM_* */
    const char *name;     /* "Open MPI" */
    const char *file;     /* the library's usual name */
    const char *variable; /* that its launcher sets */
    /* Look the functions up; return the name of a missing one, or NULL. */
    const char *(*bind)(void *library);
    int (*initialized)(int *flag_out);
    int (*finalized)(int *flag_out);
    int (*init)(void);
    int (*finalize)(void);
    int (*version)(char *text);
    int (*world)(int *rank_out, int *size_out);
    /* Begin to duplicate MPI_COMM_WORLD. */
    int (*duplicate)(union ops__mpi_handle *comm_out, struct ops__mpi_request *request);
    /* Let errors of a communicator be returned. */
    int (*return_errors)(union ops__mpi_handle comm);
    int (*send)(union ops__mpi_handle comm, const void *data, size_t bytes, uint32_t to, int tag,
                struct ops__mpi_request *request);
    int (*receive)(union ops__mpi_handle comm, void *data, size_t bytes, uint32_t from, int tag,
                   struct ops__mpi_request *request);
    /* Clear request->active when it is complete. */
    int (*test)(struct ops__mpi_request *request, uint32_t *source_out);
    int (*cancel)(struct ops__mpi_request *request);
    void (*describe)(int code, char *text, size_t bytes);
};

extern const struct ops__engine ops__engine_openmpi;
extern const struct ops__engine ops__engine_mpich;

#endif
