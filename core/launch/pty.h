/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A pseudo-terminal for rank 0: pty.c. */
#ifndef DS_ACCEL_LAUNCH_PTY_H
#define DS_ACCEL_LAUNCH_PTY_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

/* Between this process's stdin and a pseudo-terminal. */
struct ds_accel__pty {
    int master;            /* -1: none */
    int slave;             /* for the rank; -1: closed */
    bool is_terminal;      /* stdin is a terminal, which is set to raw mode */
    bool is_raw;           /* it is in raw mode now */
    bool is_input_over;    /* stdin has ended */
    bool is_background;    /* stdin belongs to another process group for now */
    char last;             /* byte that was written to the rank; initially a newline */
    struct termios before; /* the settings of stdin */
    char input[4096];      /* bytes for the rank */
    size_t input_start, input_size;
};

/* Open a pseudo-terminal with the size and settings of stdin, if that is a terminal. ERR_LIMIT. */
int32_t ds_accel__pty_open(struct ds_accel__pty *pty);
void ds_accel__pty_close(struct ds_accel__pty *pty);
/* Close the pseudo-terminal, but not the connection to the user's terminal, in a process that has
 * passed it on. */
void ds_accel__pty_pass_on(struct ds_accel__pty *pty);
/* Set the user's terminal to raw mode, so that every key reaches the rank; and back. */
void ds_accel__pty_enter_raw(struct ds_accel__pty *pty);
void ds_accel__pty_leave_raw(struct ds_accel__pty *pty);
/* Copy the size of the user's terminal. */
void ds_accel__pty_resize(const struct ds_accel__pty *pty);
/* Should stdin be read, and is there input to write? */
bool ds_accel__pty_needs_input(const struct ds_accel__pty *pty);
bool ds_accel__pty_has_input(const struct ds_accel__pty *pty);
/* Read stdin, which is readable; at its end, the rank's terminal ends, too. */
void ds_accel__pty_read(struct ds_accel__pty *pty);
/* Write input to the rank. */
void ds_accel__pty_write(struct ds_accel__pty *pty);

#endif
