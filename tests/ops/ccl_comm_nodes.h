/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#ifndef TESTS_OPS_CCL_COMM_NODES_H
#define TESTS_OPS_CCL_COMM_NODES_H

#include "ds-accel/ops/ccl_comm.h"

/*
 * Let each system call fail by which three ranks find that they share a node, in create() with
 * these options. If something is short, all ranks fail with the rank's name; if memory may not be
 * shared, the ranks are on more nodes.
 */
void ccl_check_nodes(const struct ds_accel_ccl_comm_info *info,
                     const struct ds_accel_ccl_comm_options *options);

#endif
