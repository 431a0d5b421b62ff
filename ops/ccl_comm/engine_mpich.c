/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "engine_mpich.h"

#include "ccl_comm.h"

#define ENGINE ops__engine_mpich
#define ENGINE_NUMBER DS_ACCEL_CCL_COMM_MPICH
#define ENGINE_NAME "MPICH"
#define ENGINE_FILE "libmpich.so.12"
#define ENGINE_VARIABLE "PMI_SIZE"
#define HANDLE int
#define HANDLE_OF(handle) ((handle).number)
#define STATUS struct ops__mpich_status
#define ANY_SOURCE OPS__MPICH_ANY_SOURCE
#define MOST_ERROR_TEXT OPS__MPICH_MOST_ERROR_TEXT
#define WORLD OPS__MPICH_WORLD
#define BYTE OPS__MPICH_BYTE
#define ERRORS_RETURN OPS__MPICH_ERRORS_RETURN

#include "engine_calls.h"
