/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#ifndef TESTS_OPS_CCL_COMM_MEMORY_H
#define TESTS_OPS_CCL_COMM_MEMORY_H

#include "ds-accel/ops/ccl_comm.h"

/*
 * Let each allocation of the op fail, one after the other, in create() with these options, on one
 * rank: all ranks fail with its name, and nothing is left. Calls allocate nothing. All ranks of
 * comm call this, each on a node of its own: where one cannot create shared memory, the other ranks
 * of its node wait until the deadline. MPI's own allocations do not fail, since neither engine
 * survives that.
 */
void ccl_check_memory(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
                      const struct ds_accel_ccl_comm_options *options);

#endif
