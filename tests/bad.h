/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A plugin "bad" that breaks rules; its entry point is ds_accel_entry_v1() of the test program. */
#ifndef DS_ACCEL_TESTS_BAD_H
#define DS_ACCEL_TESTS_BAD_H

#include "fixture.h"

extern const char *bad_fault;                /* the rule that the plugin breaks; NULL: none */
extern const struct ds_accel_host *bad_host; /* the argument of the plugin's init() */

/* True if the plugin breaks the rule of this name. */
bool bad_commits(const char *name);

const struct ds_accel_plugin *ds_accel_entry_v1(const struct ds_accel_host *host);

#endif
