/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A pseudo-terminal for rank 0: pty.c. */
#ifndef DS_ACCEL_LAUNCH_PTY_H
#define DS_ACCEL_LAUNCH_PTY_H

#include "ds_accel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

/* The user's terminal, in memory that guard and supervisor share: each of them restores what the
 * other one has set. */
struct ds_accel__pty_terminal {
    atomic_bool is_raw;      /* one of them has set raw mode */
    atomic_bool is_released; /* the rank has ended: raw mode is not set again */
    atomic_bool has_before;  /* before is known */
    struct termios before;   /* the settings that are restored */
};

/* Between this process's stdin and a pseudo-terminal. */
struct ds_accel__pty {
    int master;         /* -1: none */
    int slave;          /* for the rank; -1: closed */
    bool is_input_over; /* stdin has ended, or the rank has */
    char last;          /* byte that was written to the rank; initially a newline */
    /* stdin, if it is a terminal; otherwise NULL */
    struct ds_accel__pty_terminal *terminal;
    /* when to test whether the terminal still belongs to another process group; 0: it does not */
    uint64_t check_ns;
    char input[4096]; /* bytes for the rank */
    size_t input_start, input_size;
};

/* Open a pseudo-terminal with the size and settings of stdin, if that is a terminal. ERR_LIMIT. */
int32_t ds_accel__pty_open(struct ds_accel__pty *pty);
void ds_accel__pty_close(struct ds_accel__pty *pty);
/* Close the pseudo-terminal, but not the connection to the user's terminal, in a process that has
 * passed it on. */
void ds_accel__pty_pass_on(struct ds_accel__pty *pty);
/* Set the user's terminal to raw mode, so that every key reaches the rank. In the background,
 * ds_accel__pty_check() does it later. */
void ds_accel__pty_enter_raw(struct ds_accel__pty *pty);
/* Restore the user's terminal. True: it was in raw mode. */
bool ds_accel__pty_leave_raw(struct ds_accel__pty *pty);
/* Call this when check_ns has come: a shell sends no signal when it moves a running job to the
 * foreground. */
void ds_accel__pty_check(struct ds_accel__pty *pty, uint64_t now_ns);
/* The rank has ended: restore the user's terminal, whose keys then act on the job. */
void ds_accel__pty_release(struct ds_accel__pty *pty);
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
