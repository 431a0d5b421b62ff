/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The context: context.c. */
#ifndef DS_ACCEL_HOST_CONTEXT_H
#define DS_ACCEL_HOST_CONTEXT_H

#include "base/fork.h"
#include "base/private.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/cache.h"
#include "host/registry.h"
#include "machine/machine.h"
#include "machine/presence.h"
#include "machine/topology.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ds_accel__device;
struct ds_accel__known;
struct ds_accel__lazy;
struct ds_accel__prober;
struct ds_accel__trust;

/* An op that was loaded; it is never unloaded. */
struct ds_accel__loaded {
    struct ds_accel__loaded *next;
    const struct ds_accel_op *op;
    char name[];
};

struct ds_accel {
    /*
     * Guards all members below unless a comment specifies another lock. log and env never change.
     */
    pthread_mutex_t lock;
    /*
     * Guard config and topology, which plugins read from any thread, also in calls made while the
     * lock above is held. config changes only while both lock and config_lock are held, topology
     * while topology_lock is held.
     */
    pthread_mutex_t config_lock;
    pthread_mutex_t topology_lock;
    struct ds_accel__log log;
    struct ds_accel__env env;
    char *forced;       /* value of options.accelerator */
    char *machine_root; /* never NULL */
    char *cache_dir;    /* directory from the options; NULL: chosen by environment and user */
    pid_t asker;        /* in a helper: process ID of the program that it serves; 0: no helper */
    /* ignore the verdicts that earlier processes stored; set by the reports explain, list, doctor
     * and bundle, and by the recording of a machine, and never reset */
    bool asks_anew;
    bool has_no_cache;    /* DS_ACCEL_OPTION_NO_CACHE is set */
    bool has_tried_store; /* tried to open the store during this evaluation */
    bool wants_helper;    /* start a helper early if nothing is stored */
    struct ds_accel__cache cache;
    uint64_t key_base;  /* base of the records' keys, during an evaluation */
    char **plugin_dirs; /* directories from the options */
    size_t plugin_dir_count;
    struct ds_accel__config config;
    struct ds_accel__registry registry;
    struct ds_accel__text searched; /* directories scanned, one per line */
    json_t *recording; /* tree of a recorded machine; NULL: the machine below the root */
    struct ds_accel__machine machine; /* the machine below machine_root */
    struct ds_accel__survey survey;   /* survey of machine; empty between calls */
    struct ds_accel__trust *trust;    /* empty between calls: no directory stays open */
    bool has_topology;
    struct ds_accel__topology topology;
    /* The accelerator that was started. Written once, with release order; read without a lock. */
    struct ds_accel__candidate *selected;
    const char *set_method;
    /* The candidate that was chosen, even if it was not started here (the command detect). */
    struct ds_accel__candidate *chosen;
    bool only_chooses;    /* detection starts no plugin whose start a helper has rehearsed */
    uint32_t containment; /* kind used by the last helper; 0: no helper was needed */
    size_t turn;          /* position of the candidate being evaluated */
    void (*meanwhile)(ds_accel_t *context); /* called while a helper works; NULL: nothing */
    struct ds_accel__prober *prober;        /* helper processes during an evaluation; probe.c */
    void (*on_stage)(ds_accel_t *context,
                     enum ds_accel__gate gate); /* in a helper, before the plugin's code runs */
    uint32_t device_count;                      /* number of devices of chosen */
    uint64_t id;                                /* unique in the process */
    /*
     * Guards the opening and closing of devices, and devices: an array of device_count elements,
     * NULL for a closed device. The array itself is NULL before the first opening.
     */
    pthread_mutex_t device_lock;
    struct ds_accel__device **devices;
    uint32_t open_device_count;      /* changed under open_lock of pinned_uses.c; atomic */
    char failure[1024];              /* why the last detection failed, or "" */
    bool has_failed;                 /* the last detection failed */
    struct ds_accel__loaded *loaded; /* ops that were loaded, by the names that were asked for */
    struct ds_accel__known *known;   /* facts; written once, read without the lock */
    /* Calls that are queued until the accelerator has started; guarded by lazy.lock. */
    struct {
        pthread_mutex_t lock;
        struct ds_accel__lazy *first;
        struct ds_accel__lazy **last; /* NULL: the list is empty */
        bool is_running;              /* a thread is making the queued calls */
        bool is_over;                 /* no more calls are added */
        bool is_changing; /* a child forked while it is set cannot use the list; atomic */
    } lazy;
    char settings[2][32]; /* by enum ds_accel__setting, set by the program; "": facts apply */
    /* Tensor storages that keep the context alive; atomic. ds_accel_destroy() subtracts 1, and the
     * context is freed when the count drops to -1. */
    int64_t storage_count;
    /*
     * True if default generators created later use default_seed. Guarded by device_lock, as
     * default_seed.
     */
    bool has_default_seed;
    uint64_t default_seed;
    struct ds_accel__fork_watch watch; /* watch of the locks; not used in a helper's context */
};

/* Return the location of the store of records. */
static inline struct ds_accel__cache_place ds_accel__cache_place(const ds_accel_t *context)
{
    return (struct ds_accel__cache_place){
        .log = &context->log,
        .mode = context->env.values[DS_ACCEL__VARIABLE_CACHE],
        .directory = context->cache_dir != NULL ? context->cache_dir
                                                : context->env.values[DS_ACCEL__VARIABLE_CACHE_DIR],
        .spare = DS_ACCEL__CONFIG_CACHE_FILE,
    };
}

/*
 * Create a context without configuration and plugins, for a helper process. ignores_env: ignore
 * ds-accel's own environment variables. NULL if memory is exhausted.
 */
DS_ACCEL__PRIVATE ds_accel_t *ds_accel__context_bare(const char *machine_root, bool ignores_env);
/*
 * Free a context to which no handle and no tensor refers. A context whose change was interrupted by
 * fork() is not freed in the child.
 */
void ds_accel__context_end(ds_accel_t *context);
/*
 * Check that a call may use the context. ERR_INVALID for NULL; ERR_STATE in a forked child, if a
 * thread of the parent was changing the context during fork().
 */
DS_ACCEL__PRIVATE int32_t ds_accel__context_check(const ds_accel_t *context);
/*
 * Mark the begin and end of a change of the context in several steps: a child forked in between
 * must not use the context. The caller holds the lock of the changed data. Calls nest.
 */
DS_ACCEL__PRIVATE void ds_accel__context_change_begin(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__context_change_end(ds_accel_t *context);
/* Read options of any version of the struct. ERR_INVALID. */
DS_ACCEL__PRIVATE int32_t ds_accel__options_read(const struct ds_accel_options *given,
                                                 struct ds_accel_options *options);
/*
 * Return a copy of the context's machine for callers without context->lock. The copy excludes the
 * recorder, which is set and removed under that lock.
 */
struct ds_accel__machine ds_accel__context_machine(const ds_accel_t *context);
/* Borrow the NUMA nodes of the context's machine, which are read once. */
DS_ACCEL__PRIVATE int32_t
ds_accel__context_topology(ds_accel_t *context, const struct ds_accel__topology **topology_out);
/*
 * Read the configuration's files if only their stored values were used, so that the origins of
 * values can be reported. Caller holds context->lock.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__context_load_origins(ds_accel_t *context);
/* Log a warning for each unknown DS_ACCEL_* variable. */
DS_ACCEL__PRIVATE int32_t ds_accel__context_check_variables(const ds_accel_t *context,
                                                            const struct ds_accel__log *log);
/* Read the files of op builders. Caller holds context->lock. */
DS_ACCEL__PRIVATE int32_t ds_accel__context_load_ops(ds_accel_t *context);
/* Return a variable of the job's environment, or of the recording's; NULL if unset. */
DS_ACCEL__PRIVATE const char *ds_accel__context_variable(const ds_accel_t *context,
                                                         const char *name);
/*
 * Return a backend's fact if a layer of the configuration above the package layer contains it, that
 * is, if the operator set it; else NULL. Caller holds context->lock.
 */
json_t *ds_accel__operator_fact(ds_accel_t *context, const char *backend, const char *key);

enum ds_accel__setting {
    DS_ACCEL__SETTING_COMMUNICATION,
    DS_ACCEL__SETTING_COMPILE,
    DS_ACCEL__SETTING_COUNT
};

/*
 * Return the value that the program set instead of a fact of the started backend; NULL if it set
 * none, or for any other backend. Caller holds context->lock.
 */
const char *ds_accel__setting(const ds_accel_t *context, const char *backend, const char *key);

#endif
