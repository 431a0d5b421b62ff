/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Slots without a function (stub.c), fork (fork.c). */
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

/* Put a stub into every slot; UNSUPPORTED: into those that are NULL. Safe in a forked child. */
DS_ACCEL__PRIVATE void ds_accel__table_fill(struct ds_accel_plugin *table,
                                            enum ds_accel__stub kind);
/* The process that FORKED stubs name. */
void ds_accel__stub_set_parent(pid_t pid);
/* True if the slot at this offset holds the UNSUPPORTED stub. */
bool ds_accel__slot_is_absent(const struct ds_accel_plugin *table, size_t offset);
/* A table for handles that were destroyed: static storage, every slot DESTROYED. */
const struct ds_accel_plugin *ds_accel__table_destroyed(void);

/* A context, or an accelerator that is started here: what fork() makes of it in a child. */
struct ds_accel__fork_watch {
    struct ds_accel__fork_watch *next;
    struct ds_accel_plugin *table; /* filled with FORKED; NULL: it is a context's */
    pthread_mutex_t *locks[5];     /* made anew; NULL: none */
    pid_t pid;                     /* who started it, or made it */
    bool is_forked;                /* this process is a child of that one, which has a table */
    uint32_t changing;             /* changes of what the locks guard that go on; atomic */
    bool is_torn;                  /* one went on then: what they guard is half written */
};

void ds_accel__fork_watch(struct ds_accel__fork_watch *watch);
void ds_accel__fork_unwatch(struct ds_accel__fork_watch *watch);
/* Make a static lock anew in every child. */
DS_ACCEL__PRIVATE void ds_accel__fork_renew(pthread_mutex_t *lock);
/* Call a function in every child, before fork() returns there. */
typedef void (*ds_accel__fork_hook_t)(void);
void ds_accel__fork_hook(ds_accel__fork_hook_t hook);
/* Who started what this process inherited; 0: it inherited nothing. */
pid_t ds_accel__fork_parent(void);
/* A plugin is about to be started whose runtime does not survive a fork: for good. ERR_NO_MEMORY */
int32_t ds_accel__fork_started(const char *name);
/* The process that did so, of which this one is a forked child; 0: none. */
pid_t ds_accel__fork_starter(const char *name);

#endif
