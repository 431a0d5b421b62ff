/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "engine_openmpi.h"

#include "ccl_comm.h"

#define ENGINE ops__engine_openmpi
#define ENGINE_NUMBER DS_ACCEL_CCL_COMM_OPENMPI
#define ENGINE_NAME "Open MPI"
#define ENGINE_FILE "libmpi.so.40"
#define ENGINE_VARIABLE "OMPI_COMM_WORLD_SIZE"
#define HANDLE void *
#define HANDLE_OF(handle) ((handle).pointer)
#define STATUS struct ops__openmpi_status
#define ANY_SOURCE OPS__OPENMPI_ANY_SOURCE
#define MOST_ERROR_TEXT OPS__OPENMPI_MOST_ERROR_TEXT

static void *world_object;
static void *byte_object;
static void *errors_return_object;

#define WORLD world_object
#define BYTE byte_object
#define ERRORS_RETURN errors_return_object
#define CONSTANTS \
    {OPS__OPENMPI_WORLD, &world_object}, {OPS__OPENMPI_BYTE, &byte_object}, \
    { \
        OPS__OPENMPI_ERRORS_RETURN, &errors_return_object \
    }

#include "engine_calls.h"
