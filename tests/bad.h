/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A plugin that breaks rules: "bad", whose entry is ds_accel_entry_v1() of the test program. */
#ifndef DS_ACCEL_TEST_BAD_H
#define DS_ACCEL_TEST_BAD_H

#include "fixture.h"

extern const char *bad_fault;                /* what it does wrong; NULL: nothing */
extern const struct ds_accel_host *bad_host; /* what its init() was given */

/* That is what it does wrong. */
bool bad_commits(const char *name);

const struct ds_accel_plugin *ds_accel_entry_v1(const struct ds_accel_host *host);

#endif
