/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Programs that wait, spin or compute: stall_programs.c. */
#ifndef DS_ACCEL_TESTS_STALL_PROGRAMS_H
#define DS_ACCEL_TESTS_STALL_PROGRAMS_H

/* The children of the program "herd" that say that they are ready. */
#define STALL_HERD 16u

/* Run a program by its name; it does not return. It writes a byte to stdout when it is ready, and
 * whenever a signal has taken effect. */
void stall_program_run(const char *name);

#endif
