/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The state of a process as seen from outside the library, as lines of text that can be compared.
 */
#ifndef DS_ACCEL_TESTS_CALLER_STATE_H
#define DS_ACCEL_TESTS_CALLER_STATE_H

#include <stdbool.h>

/*
 * Returns the state as a new string: threads, descriptors, mapped plugins, signals, affinity,
 * memory policy and more.
 */
char *state_take(void);
/*
 * As state_take(), but first waits until as many threads run as in before, because a joined thread
 * exits with a delay.
 */
char *state_take_after(const char *before);
/*
 * Changes each part of the state to a value that a new process does not have, so that a reset is
 * detected.
 */
void state_make_special(void);
/*
 * Compares before with the current state and prints the lines that differ. Only plugin may have
 * been mapped since before.
 */
bool state_is_as_before(const char *before, const char *plugin);

#endif
