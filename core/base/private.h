/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What libds_accel.so exports for libds_accel_tools.so alone. core/ds_accel.map lists it below a
 * version that names the release, so that libraries of two releases do not load together.
 */
#ifndef DS_ACCEL_BASE_PRIVATE_H
#define DS_ACCEL_BASE_PRIVATE_H

#define DS_ACCEL__PRIVATE __attribute__((visibility("default")))

#endif
