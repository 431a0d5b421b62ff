/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The descendants of a process: descendants.c. */
#ifndef DS_ACCEL_BASE_DESCENDANTS_H
#define DS_ACCEL_BASE_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Can descendants be found: is /proc mounted, and that of this process's pid namespace? */
bool ds_accel__descendants_are_visible(void);
/*
 * Send a signal to all descendants of a process, but not to the process itself. Returns the number
 * of processes that received it. If memory is exhausted, some descendants may be missed.
 */
size_t ds_accel__descendants_signal(pid_t root, int signal);
/*
 * Kill all descendants of a process. They are stopped first, because running processes can fork
 * faster than they are listed. A caller that must be sure calls again until no child is left.
 */
void ds_accel__descendants_kill(pid_t root);
/*
 * A descendant of a process. branch: the child of that process from which it descends, or which it
 * is. It may have ended since.
 */
typedef void (*ds_accel__descendant_visit_t)(void *user_data, pid_t pid, pid_t branch);
/*
 * Visit all descendants of a process in the order of their process IDs, after one pass over /proc.
 * False: some were missed, because memory is exhausted or there are too many processes.
 */
bool ds_accel__descendants_visit(pid_t root, ds_accel__descendant_visit_t visit, void *user_data);

#endif
