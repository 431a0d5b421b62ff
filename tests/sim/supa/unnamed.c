/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* SDK 2.x without supaGetErrorName(), which is not public. Errors have texts and CUDA's numbers. */
#define SUPA_UNNAMED 1
#include "second.c" /* NOLINT(bugprone-suspicious-include): the same library, built differently */
