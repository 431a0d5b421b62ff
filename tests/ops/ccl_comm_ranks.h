/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The ranks of tests of ccl_comm, and the jobs that they make. A test program starts itself with
 * mpirun, as PROGRAM FILE.so SCENARIO ENGINE PLACES DIRECTORY. In the directory, ranks leave files:
 * marks, and how many of their checks have passed.
 */
#ifndef TESTS_OPS_CCL_COMM_RANKS_H
#define TESTS_OPS_CCL_COMM_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#define CCL_PATIENCE_NS ((uint64_t)240 * 1000000000) /* of what succeeds */
#define CCL_RANK_ARGUMENTS 6

bool ccl_is_full(void);
/* Run a rank with the arguments behind FILE.so; return its exit status. */
int ccl_run_rank(char **argv);

/* ---- ccl_comm_jobs.c: in the parent ---------------------------------------------------------- */

/* Wait until so many of the ranks have a mark; false: they do not come. In ranks, too. */
bool ccl_await_marks(const char *directory, const char *what, unsigned ranks, unsigned wanted);
/* Write the mark of a rank, which appears with its text. In ranks, too. */
void ccl_write_mark(const char *directory, const char *what, unsigned rank, const char *text);
/* Add the checks of the ranks to those of this process; return how many have ended. */
unsigned ccl_read_results(const char *directory, unsigned ranks);
/* Remove the files of a job. */
void ccl_clear(const char *directory);
/* Return whether a program is in PATH. */
bool ccl_has_program(const char *name);
/* MPI has leaks: let a sanitizer of the ranks ignore them. */
void ccl_ignore_leaks(void);

#endif
