/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The configuration's settings of ops: settings.c. */
#ifndef DS_ACCEL_OPS_SETTINGS_H
#define DS_ACCEL_OPS_SETTINGS_H

#include "host/context.h"
#include "host/loader.h"

/*
 * Pass the settings that the configuration has for an op to the function that its module exports
 * for them. Settings that the op rejects, or that it has no function for, are logged as a warning.
 * DS_ACCEL_OK or ERR_NO_MEMORY. The caller holds neither context->lock nor context->config_lock.
 */
int32_t ds_accel__op_configure(ds_accel_t *context, ds_accel__module_t *module, const char *path,
                               const char *op);

#endif
