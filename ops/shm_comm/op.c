/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The entry of shm_comm, apart from its code, of which ccl_comm has a copy. */
#include "shm.h"

DS_ACCEL_OP("shm_comm", &ops__shm_table.op);
