/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Loading and starting a plugin in this process: activate.c. */
#ifndef DS_ACCEL_HOST_ACTIVATE_H
#define DS_ACCEL_HOST_ACTIVATE_H

#include "base/private.h"
#include "ds_accel.h"

#include <sys/types.h>

struct ds_accel__candidate;

/*
 * Load and start the candidate's plugin, and count its devices. On failure return an error; if the
 * plugin could not be loaded or started, the candidate's state and reason are set. ERR_STATE leaves
 * them unchanged: the runtime was inherited through fork(). Caller holds context->lock.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__candidate_activate(struct ds_accel__candidate *candidate,
                                                       ds_accel_plugin_instance_t **instance_out,
                                                       uint32_t *count_out);
/*
 * Return the ID of the process that started the plugin's runtime, if this process was forked from
 * it after that; 0 if no runtime was inherited, or if the runtime survives a fork.
 */
pid_t ds_accel__candidate_inherited_from(const struct ds_accel__candidate *candidate);
/*
 * Return ERR_STATE for an inherited runtime. The error text says what the program can do instead.
 */
int32_t ds_accel__candidate_fail_inherited(const struct ds_accel__candidate *candidate);
#define DS_ACCEL__FORKED_TEXT \
    "its runtime was started by process %ld before fork(), and does not survive that: start the " \
    "child by posix_spawn() or exec(), or fork before the accelerator is started"

#endif
