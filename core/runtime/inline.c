/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The inline functions of plugin-api.h, exported under their names for languages without inline
 * functions. Those of ds_accel.h are `extern inline` in the files of their subject.
 */
#define DS_ACCEL_INLINE __attribute__((visibility("default")))
#include "plugin-api.h"
