/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What a process is like from outside the library, as lines of text that can be compared. */
#ifndef DS_ACCEL_TESTS_CALLER_STATE_H
#define DS_ACCEL_TESTS_CALLER_STATE_H

#include <stdbool.h>

/* Threads, descriptors, plugins mapped, signals, affinity, memory policy, ... New string. */
char *state_take(void);
/* The same, once as many threads run as before: a joined one needs a moment to be gone. */
char *state_take_after(const char *before);
/* Make each of these differ from what a new process has, so that a reset is seen. */
void state_make_special(void);
/* Compare with what is now; prints the lines that differ. Only plugin may be mapped since. */
bool state_is_as_before(const char *before, const char *plugin);

#endif
