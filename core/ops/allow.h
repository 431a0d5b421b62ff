/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Whether the allow-list of the configuration has the file of an op: allow.c. */
#ifndef DS_ACCEL_OPS_ALLOW_H
#define DS_ACCEL_OPS_ALLOW_H

#include "ops/kernel.h"

#include <stdbool.h>

/* Whether trust.mode is not off. The caller does not hold context->config_lock. */
bool ds_accel__allow_is_on(ds_accel_t *context);
/*
 * Compare the SHA-256 of an op's file with the configuration's trust.sha256, unless trust.mode is
 * off. backend: whose memory the op works on; NULL: the host's. digest: the SHA-256, NULL: it is
 * computed from the file. kernel->finding is set if it is refused; with trust.mode "warn", a
 * warning is logged instead. Does nothing if kernel has no path or has a finding. ERR_NO_MEMORY.
 * The caller does not hold context->config_lock.
 */
int32_t ds_accel__allow_check(ds_accel_t *context, const char *backend, const char *op,
                              const char *digest, struct ds_accel__kernel *kernel);
/*
 * Whether some file of the op would pass ds_accel__allow_check(). *why_out is NULL if so, else the
 * reason as a new string. ERR_NO_MEMORY.
 */
int32_t ds_accel__allow_expect(ds_accel_t *context, const char *backend, const char *op,
                               char **why_out);

#endif
