/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The inline functions of plugin-api.h, exported under their names for languages without inline
 * functions. The inline functions of ds_accel.h are exported by `extern inline` declarations in
 * device.c, stream.c and other files.
 */
#define DS_ACCEL_INLINE __attribute__((visibility("default")))
#include "plugin-api.h"
