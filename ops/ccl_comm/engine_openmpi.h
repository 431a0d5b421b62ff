/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The binary interface of Open MPI, as far as ccl_comm uses it. tests/ops/ccl_comm_abi.c compares
 * it with mpi.h. */
#ifndef OPS_CCL_COMM_ENGINE_OPENMPI_H
#define OPS_CCL_COMM_ENGINE_OPENMPI_H

#include <stddef.h>

#define OPS__OPENMPI_ANY_SOURCE (-1)
#define OPS__OPENMPI_MOST_ERROR_TEXT 256

struct ops__openmpi_status {
    int source;
    int tag;
    int error;
    int cancelled;
    size_t count;
};

/* Handles are addresses of these objects of the library. */
#define OPS__OPENMPI_WORLD "ompi_mpi_comm_world"
#define OPS__OPENMPI_BYTE "ompi_mpi_byte"
#define OPS__OPENMPI_ERRORS_RETURN "ompi_mpi_errors_return"

#endif
