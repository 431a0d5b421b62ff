/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Marks symbols that libds_accel.so exports only for libds_accel_tools.so. core/ds_accel.map lists
 * them in a version node named after the release, so that the loader rejects libraries of two
 * different releases.
 */
#ifndef DS_ACCEL_BASE_PRIVATE_H
#define DS_ACCEL_BASE_PRIVATE_H

#define DS_ACCEL__PRIVATE __attribute__((visibility("default")))

#endif
