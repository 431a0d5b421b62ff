/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The store of records: cache.c. config_cache.c stores the merged configuration in the same
 * directory.
 */
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

/* The location of the store, and its rules for records. The members are borrowed. */
struct ds_accel__cache_place {
    const struct ds_accel__log *log;
    const char *mode;      /* "off", "ro", "rw" or NULL, which is "rw" */
    const char *directory; /* NULL: chosen by user and environment */
    /* True if a record is to be kept. */
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare; /* a file to remove when the disk is too full for the records */
};

struct ds_accel__cache {
    bool is_open; /* true only while plugins are evaluated */
    bool is_writable;
    bool is_dirty;
    bool has_no_directory; /* no directory is configured, or the directory does not exist yet */
    bool is_refused;       /* the directory exists but must not be used */
    bool is_locked;    /* locked by this process; false if another process held the lock too long */
    bool is_passed_by; /* another process holds the lock, no wait: nothing is stored */
    bool has_warned;   /* a warning about the file was logged */
    bool is_looked_at; /* opened to be read only: no directory is created */
    bool is_forgetting; /* the next write only removes records */
    const struct ds_accel__log *log;
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare;
    int directory_fd;
    int lock_fd;     /* -1: no attempt to lock yet */
    int stopped_pid; /* stopped process that holds the lock and is not waited for; 0: none */
    char *directory;
    char problem[512]; /* why the store cannot be used or written; "" if it can be */
    uint64_t machine;
    uint64_t begin_ms; /* time at which the store was opened */
    struct ds_accel__cache_table table;
    size_t next; /* record to compare first: lookups follow the order of creation */
    struct ds_accel__cache_file *files; /* files whose texts the records borrow */
};

#define DS_ACCEL__CACHE_FILE "verdicts"
#define DS_ACCEL__CONFIG_CACHE_FILE "config"
/* Open the directory, but not yet its file. is_open is set if the directory can be used. */
int32_t ds_accel__cache_open(struct ds_accel__cache *cache,
                             const struct ds_accel__cache_place *place);
int32_t ds_accel__cache_read(struct ds_accel__cache *cache);
/*
 * Wait at most limit_ms until no other process probes plugins (a stopped process is not waited
 * for), then read the records again, because other processes may have changed them. limit_ms 0 is
 * for results that need not be stored: they are stored only if the lock is free.
 */
int32_t ds_accel__cache_lock(struct ds_accel__cache *cache, uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/*
 * Take ownership of a block from which records borrow texts. It is freed when the store is closed.
 */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/*
 * Find, or find or add, the record of a key. Borrowed until the next add, lock or close. NULL: no
 * such record (find), or memory is exhausted (add).
 */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache,
                                              struct ds_accel__key key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache,
                                             struct ds_accel__key key);

/*
 * Read a small file of the store's directory outside of an evaluation; *data_out is NULL if there
 * is no valid file. Write such a file under another name and rename it; if that fails, nothing more
 * is written to the store.
 */
int32_t ds_accel__cache_read_file(const struct ds_accel__cache_place *place, const char *name,
                                  size_t limit_bytes, char **data_out, size_t *size_out);
void ds_accel__cache_write_file(struct ds_accel__cache *cache, const char *name,
                                const struct ds_accel__text *text);

/*
 * Use the stored merged configuration if it is valid for the files that were found
 * (config_cache.c). ERR_NO_MEMORY.
 */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__snapshot_forget(const ds_accel_t *context);

#endif
