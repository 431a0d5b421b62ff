/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The store of records: cache.c; config_cache.c stores the configuration next to them. */
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

/* The location of the store, and what it has to know about its records. Borrowed. */
struct ds_accel__cache_place {
    const struct ds_accel__log *log;
    const char *mode;      /* "off", "ro", "rw" or NULL, which is "rw" */
    const char *directory; /* NULL: chosen by user and environment */
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms); /* keep it? */
    const char *spare; /* a file that is removed when the disk is too full for the records */
};

struct ds_accel__cache {
    bool is_open; /* only while plugins are evaluated */
    bool is_writable;
    bool is_dirty;
    bool has_no_directory; /* none is configured, or it does not exist yet */
    bool is_refused;       /* the directory exists but must not be used */
    bool is_locked;        /* by this process; false if another process held the lock too long */
    bool is_passed_by;     /* locked by another process, no wait: nothing is stored */
    bool has_warned;       /* about its file */
    bool is_looked_at;     /* read only: no directory is created */
    bool is_forgetting;    /* the next write only removes records */
    const struct ds_accel__log *log;
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare;
    int directory_fd;
    int lock_fd;     /* -1: no attempt to lock yet */
    int stopped_pid; /* stopped process that holds the lock; not waited for; 0: none */
    char *directory;
    char problem[512]; /* why the store cannot be used or written; "" if it can */
    uint64_t machine;
    uint64_t begin_ms; /* when it was opened */
    struct ds_accel__cache_table table;
    size_t next; /* record to compare first: lookups follow the order of creation */
    struct ds_accel__cache_file *files; /* their texts are borrowed */
};

#define DS_ACCEL__CACHE_FILE "verdicts"
#define DS_ACCEL__CONFIG_CACHE_FILE "config"
/* Open the directory, not yet its file; is_open: the directory can be used. */
int32_t ds_accel__cache_open(struct ds_accel__cache *cache,
                             const struct ds_accel__cache_place *place);
int32_t ds_accel__cache_read(struct ds_accel__cache *cache);
/*
 * Wait at most limit_ms until no other process probes plugins, but not for a stopped process; then
 * read the records again, which the others may have changed. limit_ms 0, for results that need not
 * be stored: unless the lock is free, nothing is stored.
 */
int32_t ds_accel__cache_lock(struct ds_accel__cache *cache, uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/* Take ownership of a block from which records borrow texts, until the store is closed. */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/*
 * The record of a key, borrowed until the next add, lock or close; NULL: no record, or for add out
 * of memory.
 */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache,
                                              struct ds_accel__key key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache,
                                             struct ds_accel__key key);

/*
 * Read a small file of the directory outside of an evaluation; *data_out is NULL if there is no
 * valid file. Write such a file under another name and rename it; a failure is ignored.
 */
int32_t ds_accel__cache_read_file(const struct ds_accel__cache_place *place, const char *name,
                                  size_t limit_bytes, char **data_out, size_t *size_out);
void ds_accel__cache_write_file(struct ds_accel__cache *cache, const char *name,
                                const struct ds_accel__text *text);

/*
 * Use the stored merged configuration if it is valid for the files found (config_cache.c).
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__snapshot_forget(const ds_accel_t *context);

#endif
