/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Stubs for slots without a callable function (stub.c), and handling of fork() (fork.c). */
#ifndef DS_ACCEL_BASE_FORK_H
#define DS_ACCEL_BASE_FORK_H

#include "base/private.h"
#include "ds_accel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum ds_accel__stub {
    DS_ACCEL__STUB_UNSUPPORTED, /* ERR_UNSUPPORTED: the plugin has no such function */
    DS_ACCEL__STUB_FORKED,      /* ERR_STATE: started before fork(), in another process */
    DS_ACCEL__STUB_DESTROYED    /* ERR_INVALID: the handle was destroyed */
};

/*
 * Fill every slot of the table with a stub. Kind UNSUPPORTED fills only the slots that are NULL.
 * The stub of a slot that returns void does nothing. Safe in a forked child.
 */
DS_ACCEL__PRIVATE void ds_accel__table_fill(struct ds_accel_plugin *table,
                                            enum ds_accel__stub kind);
/* Set the process ID that the error messages of FORKED stubs contain. */
void ds_accel__stub_set_parent(pid_t pid);
/* True if the table's slot at this offset contains the UNSUPPORTED stub. */
bool ds_accel__slot_is_absent(const struct ds_accel_plugin *table, size_t offset);
/* The table of destroyed handles, in static storage: every slot is a DESTROYED stub. */
const struct ds_accel_plugin *ds_accel__table_destroyed(void);

/*
 * The locks and the table that a forked child must reset, of one context or of one accelerator that
 * this process started.
 */
struct ds_accel__fork_watch {
    struct ds_accel__fork_watch *next;
    struct ds_accel_plugin *table; /* the child fills it with FORKED stubs; NULL for a context */
    pthread_mutex_t *locks[5];     /* locks that the child reinitializes; NULL: unused entry */
    pid_t pid;                     /* process that created the context or started the accelerator */
    bool is_forked;    /* this process is a forked child of pid; never set if table is NULL */
    uint32_t changing; /* number of changes in progress to the guarded data; atomic */
    bool is_torn;      /* a change was in progress at fork(): the guarded data is half written */
};

void ds_accel__fork_watch(struct ds_accel__fork_watch *watch);
void ds_accel__fork_unwatch(struct ds_accel__fork_watch *watch);
/* Have every forked child reinitialize a static lock. */
DS_ACCEL__PRIVATE void ds_accel__fork_renew(pthread_mutex_t *lock);
/* Have every forked child call a function before fork() returns in the child. */
typedef void (*ds_accel__fork_hook_t)(void);
void ds_accel__fork_hook(ds_accel__fork_hook_t hook);
/*
 * Return the ID of the process that started the accelerators which this process inherited; 0 if it
 * inherited none.
 */
pid_t ds_accel__fork_parent(void);
/*
 * Record, for the life of the process, that a plugin is about to be started whose runtime does not
 * survive a fork. Returns DS_ACCEL_OK or ERR_NO_MEMORY.
 */
int32_t ds_accel__fork_started(const char *name);
/*
 * Return the ID of the ancestor process that started this plugin; 0 if no ancestor started it, or
 * if its runtime survives a fork.
 */
pid_t ds_accel__fork_starter(const char *name);

#endif
