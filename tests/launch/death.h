/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files of the program `death`: death.c. */
#ifndef DS_ACCEL_TESTS_LAUNCH_DEATH_H
#define DS_ACCEL_TESTS_LAUNCH_DEATH_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ds_accel__machine;

/* death.c */
extern char work[]; /* an empty directory, removed at the end */
void check(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* snprintf(), for paths that are known to fit. */
void fill(char *text, size_t text_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void skipped(const char *what, const char *why);
/* Write a file below a directory, and make its parents. */
void put(const char *directory, const char *path, const char *text);
/* Read a file's beginning; "" if it cannot be read. Static storage. */
const char *get(const char *directory, const char *path);
bool exists(const char *directory, const char *path);
void remove_all(const char *directory);

/* death_kernel.c: a tree of files in which directories behave as control groups. */
extern const char *kernel_root;   /* below which mkdir() also makes the files of a group */
extern bool kernel_passes_memory; /* new groups have the files of the memory controller */
extern bool kernel_has_kill;      /* new groups have the file cgroup.kill */
extern unsigned kernel_refuses;   /* number of the mkdir() that fails; 0: none */
extern unsigned kernel_made;      /* calls of mkdir() below the root */
extern bool kernel_breaks_leases; /* each file is opened while a lease of it is held */
extern unsigned kernel_broken;    /* leases for which this was announced */
extern int kernel_refuses_leases; /* errno of each lease; 0: it may be granted */
/*
 * Fail each allocation of a function in turn, until it completes without a failure. The function
 * returns a status, and releases everything.
 */
void fail_allocations(const char *name, int32_t (*function)(void));

/* death_groups.c, death_cores.c, death_shared.c */
void test_groups(void);
void test_cores(void);
void test_shared_memory(void);
/* For the program's own processes: use memory until killed. */
int eat_memory(void);
/* Print the time that groups of this many ranks cost. */
void print_cost(uint32_t rank_count);

#endif
