/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Symbols that libds_accel.so exports for libds_accel_tools.so only. core/ds_accel.map lists them
 * below a version that names the release, so that libraries of two releases do not load together.
 */
#ifndef DS_ACCEL_BASE_PRIVATE_H
#define DS_ACCEL_BASE_PRIVATE_H

#define DS_ACCEL__PRIVATE __attribute__((visibility("default")))

#endif
