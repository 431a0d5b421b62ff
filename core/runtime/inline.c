/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The functions that plugin-api.h has inline, exported under their names for languages without
 * inline functions. Those of ds_accel.h are beside what they belong to: `extern inline`.
 */
#define DS_ACCEL_INLINE __attribute__((visibility("default")))
#include "plugin-api.h"
