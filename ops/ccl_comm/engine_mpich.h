/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The binary interface of MPICH, as far as ccl_comm uses it. tests/ops/ccl_comm_abi.c compares it
 * with mpi.h. */
#ifndef OPS_CCL_COMM_ENGINE_MPICH_H
#define OPS_CCL_COMM_ENGINE_MPICH_H

#define OPS__MPICH_ANY_SOURCE (-2)
#define OPS__MPICH_MOST_ERROR_TEXT 512
#define OPS__MPICH_WORLD 0x44000000
#define OPS__MPICH_BYTE 0x4c00010d
#define OPS__MPICH_ERRORS_RETURN 0x54000001

struct ops__mpich_status {
    int count_low;
    int count_high_and_cancelled;
    int source;
    int tag;
    int error;
};

#endif
