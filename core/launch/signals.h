/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Names of signals: signals.c. */
#ifndef DS_ACCEL_LAUNCH_SIGNALS_H
#define DS_ACCEL_LAUNCH_SIGNALS_H

#define DS_ACCEL__SIGNAL_NAME_SIZE 32

/* Write a signal's name, such as "SIGTERM" or "SIGRTMIN+2", and return it. A number without a name
 * of its own becomes "SIG32". */
const char *ds_accel__signal_name(int signal, char name[static DS_ACCEL__SIGNAL_NAME_SIZE]);

#endif
