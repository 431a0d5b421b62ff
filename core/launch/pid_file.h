/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The file of --save_pid: pid_file.c. */
#ifndef DS_ACCEL_LAUNCH_PID_FILE_H
#define DS_ACCEL_LAUNCH_PID_FILE_H

#include "ds_accel.h"

/* Write this process's ID to /tmp/ID.deepspeed. ERR_IO. */
int32_t ds_accel__pid_file_make(void);
/* Remove the file that the process wrote. */
void ds_accel__pid_file_remove(int32_t pid);

#endif
