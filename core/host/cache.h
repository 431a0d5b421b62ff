/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The store of what is remembered: cache.c; config_cache.c keeps the configuration in it. */
#ifndef DS_ACCEL_HOST_CACHE_H
#define DS_ACCEL_HOST_CACHE_H

#include "base/private.h"
#include "host/key.h"
#include "host/record.h"
#include "host/registry.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__cache_file {
    struct ds_accel__cache_file *next;
    char *data;
};

/* Where the store is, and what it has to know of what it holds. Borrowed. */
struct ds_accel__cache_place {
    const struct ds_accel__log *log;
    const char *mode;      /* "off", "ro", "rw" or NULL, which is "rw" */
    const char *directory; /* NULL: by user and environment */
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms); /* to be kept */
    const char *spare; /* a file that is removed when there is no room for the records */
};

struct ds_accel__cache {
    bool is_open; /* only while plugins are asked */
    bool is_writable;
    bool is_dirty;
    bool has_no_directory; /* nobody names one, or it does not exist yet */
    bool is_refused;       /* the directory is there, and not one to use */
    bool is_locked;        /* by us; not if another held the lock for too long */
    bool is_passed_by;     /* another holds it, and was not waited for: nothing is stored */
    bool has_warned;       /* of its file */
    bool is_looked_at;     /* and nothing is remembered: no directory is made */
    bool is_forgetting;    /* what is stored next is no more than there was */
    const struct ds_accel__log *log;
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare;
    int directory_fd;
    int lock_fd;     /* -1: nobody tried to lock */
    int stopped_pid; /* that holds the lock, and so was not waited for; 0: none */
    char *directory;
    char problem[512]; /* why there is none to use, or none to write to; "" if there is */
    uint64_t machine;
    uint64_t begin_ms; /* when it was opened */
    struct ds_accel__cache_table table;
    size_t next; /* record to look at first: they are asked for in the order they were made */
    struct ds_accel__cache_file *files; /* whose texts are borrowed */
};

#define DS_ACCEL__CACHE_FILE "verdicts"
#define DS_ACCEL__CONFIG_CACHE_FILE "config"
/* Open the directory, not yet its file; is_open tells whether there is one to use. */
int32_t ds_accel__cache_open(struct ds_accel__cache *cache,
                             const struct ds_accel__cache_place *place);
int32_t ds_accel__cache_read(struct ds_accel__cache *cache);
/*
 * Wait until nobody else asks plugins, limit_ms at most and for none that is stopped, and read
 * again what they found out. With 0, which is for what need not be remembered, nothing is stored
 * unless the lock is free.
 */
int32_t ds_accel__cache_lock(struct ds_accel__cache *cache, uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/* Take a block that records borrow texts from, until it is closed. */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/* The record of a key, if there is one, borrowed until the next add, lock or close; NULL: none, or
 * for add no memory. */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache,
                                              struct ds_accel__key key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache,
                                             struct ds_accel__key key);

/*
 * A small file of the directory, outside of the asking; *data_out is NULL if there is none to
 * believe. And one written: beside itself, then renamed. It need not succeed.
 */
int32_t ds_accel__cache_read_file(const struct ds_accel__cache_place *place, const char *name,
                                  size_t limit_bytes, char **data_out, size_t *size_out);
void ds_accel__cache_write_file(struct ds_accel__cache *cache, const char *name,
                                const struct ds_accel__text *text);

/* The merged configuration of the files found, if it is remembered (config_cache.c). ERR_NO_MEMORY.
 */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__snapshot_forget(const ds_accel_t *context);

#endif
