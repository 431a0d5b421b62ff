/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ccl_comm's declarations of MPI against mpi.h: compiled as C by mpicc of each engine. */
#ifndef TESTS_OPS_CCL_COMM_ABI_H
#define TESTS_OPS_CCL_COMM_ABI_H

#include "ccl_comm/engine.h"
#include "ccl_comm/engine_mpich.h"
#include "ccl_comm/engine_openmpi.h"

#include <assert.h>
#include <mpi.h>

#define SAME_PLACE(type, own, theirs) \
    static_assert(offsetof(struct type, own) == offsetof(MPI_Status, theirs), #own); \
    static_assert(sizeof(((struct type *)0)->own) == sizeof(((MPI_Status *)0)->theirs), #own)

static_assert(MPI_SUCCESS == 0, "success");
static_assert(MPI_THREAD_MULTIPLE == OPS__MPI_THREAD_MULTIPLE, "thread level");
static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= OPS__MPI_TEXT, "version");

#ifdef OPEN_MPI

static_assert(sizeof(MPI_Comm) == sizeof(void *) && sizeof(MPI_Request) == sizeof(void *) &&
                  sizeof(MPI_Datatype) == sizeof(void *) &&
                  sizeof(MPI_Errhandler) == sizeof(void *),
              "handles");
static_assert(MPI_ANY_SOURCE == OPS__OPENMPI_ANY_SOURCE, "any source");
static_assert(MPI_MAX_ERROR_STRING <= OPS__OPENMPI_MOST_ERROR_TEXT, "error text");
static_assert(sizeof(MPI_Status) == sizeof(struct ops__openmpi_status), "status");
SAME_PLACE(ops__openmpi_status, source, MPI_SOURCE);
SAME_PLACE(ops__openmpi_status, tag, MPI_TAG);
SAME_PLACE(ops__openmpi_status, error, MPI_ERROR);
/* The objects exist, and their names are those of the library's symbols. */
static inline void ops__objects_exist(void)
{
    const void *objects[] = {&ompi_mpi_comm_world, &ompi_mpi_byte, &ompi_mpi_errors_return};

    (void)objects;
}

#else

static_assert(sizeof(MPI_Comm) == sizeof(int) && sizeof(MPI_Request) == sizeof(int) &&
                  sizeof(MPI_Datatype) == sizeof(int) && sizeof(MPI_Errhandler) == sizeof(int),
              "handles");
static_assert(MPI_COMM_WORLD == OPS__MPICH_WORLD && MPI_BYTE == OPS__MPICH_BYTE &&
                  MPI_ERRORS_RETURN == OPS__MPICH_ERRORS_RETURN,
              "constants");
static_assert(MPI_ANY_SOURCE == OPS__MPICH_ANY_SOURCE, "any source");
static_assert(MPI_MAX_ERROR_STRING <= OPS__MPICH_MOST_ERROR_TEXT, "error text");
static_assert(sizeof(MPI_Status) == sizeof(struct ops__mpich_status), "status");
SAME_PLACE(ops__mpich_status, source, MPI_SOURCE);
SAME_PLACE(ops__mpich_status, tag, MPI_TAG);
SAME_PLACE(ops__mpich_status, error, MPI_ERROR);

#endif

#endif
