/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Names of signals. */
#include "launch/signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const char *ds_accel__signal_name(int signal, char name[static DS_ACCEL__SIGNAL_NAME_SIZE])
{
    const char *known = sigabbrev_np(signal);

    if (known != NULL) {
        snprintf(name, DS_ACCEL__SIGNAL_NAME_SIZE, "SIG%s", known);
    } else if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
        snprintf(name, DS_ACCEL__SIGNAL_NAME_SIZE, "SIGRTMIN+%d", signal - SIGRTMIN);
    } else {
        snprintf(name, DS_ACCEL__SIGNAL_NAME_SIZE, "SIG%d", signal);
    }
    return name;
}
