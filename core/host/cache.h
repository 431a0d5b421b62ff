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
    const char *directory; /* NULL: depends on the user ID and the environment */
    /*
     * Return true if the record must stay in the store; other records are removed by the next
     * write.
     */
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare; /* a file to remove when the disk is too full for the records */
};

struct ds_accel__cache {
    bool is_open; /* the directory is open; only during an evaluation or a report */
    bool is_writable;
    bool is_dirty;
    bool has_no_directory; /* no directory may be used, or the directory does not exist yet */
    bool is_refused;       /* the directory must not be used, or cannot be opened or created */
    bool is_locked;    /* locked by this process; false if another process held the lock too long */
    bool is_passed_by; /* the lock was not free, and was not waited for: nothing is stored */
    bool has_warned;   /* a warning about the file was logged */
    bool is_looked_at; /* opened only for reading: a missing directory is not created */
    bool is_forgetting; /* the next write only removes records */
    const struct ds_accel__log *log;
    bool (*is_useful)(const struct ds_accel__record *record, uint64_t now_ms);
    const char *spare;
    int directory_fd;
    int lock_fd;     /* -1: the lock file is not open */
    int stopped_pid; /* stopped process that holds the lock and is not waited for; 0: none */
    char *directory;
    char problem[512]; /* why the store cannot be used or written; "": it can, or mode is "ro" */
    uint64_t machine;
    uint64_t begin_ms; /* time at which the store was opened */
    struct ds_accel__cache_table table;
    size_t next; /* index at which a lookup begins: most lookups are in order of creation */
    struct ds_accel__cache_file *files; /* files whose texts the records borrow */
};

#define DS_ACCEL__CACHE_FILE "verdicts"
#define DS_ACCEL__CONFIG_CACHE_FILE "config"
/* Open the directory, but not yet its file. is_open is set if the directory can be used. */
int32_t ds_accel__cache_open(struct ds_accel__cache *cache,
                             const struct ds_accel__cache_place *place);
int32_t ds_accel__cache_read(struct ds_accel__cache *cache);
/*
 * Lock the store, which a process does while it probes plugins. Wait at most limit_ms, and not for
 * a stopped process; then continue without the lock. With or without the lock, read the records
 * again, because other processes may have changed them. With limit_ms 0, results are stored only if
 * the lock is free. Does nothing if the store is not open, not writable, or was locked already. If
 * the lock file cannot be opened, the store becomes read-only and nothing is read. ERR_NO_MEMORY.
 */
int32_t ds_accel__cache_lock(struct ds_accel__cache *cache, uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/*
 * Take ownership of a block from which records borrow texts. The block is freed when the store is
 * closed, or at once if memory is exhausted (ERR_NO_MEMORY).
 */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/*
 * Return the record of a key. If there is none, find returns NULL, and add creates a record (NULL:
 * memory is exhausted). The record is borrowed until the next add, lock or close.
 */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache,
                                              struct ds_accel__key key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache,
                                             struct ds_accel__key key);

/*
 * read_file reads a small file of the store's directory without opening the store; *data_out is
 * NULL if there is no valid file. write_file writes such a file under another name and renames it;
 * if that fails, nothing more is written to the store.
 */
int32_t ds_accel__cache_read_file(const struct ds_accel__cache_place *place, const char *name,
                                  size_t limit_bytes, char **data_out, size_t *size_out);
void ds_accel__cache_write_file(struct ds_accel__cache *cache, const char *name,
                                const struct ds_accel__text *text);

/*
 * Functions of config_cache.c. take uses the stored merged configuration if it is valid for the
 * configuration files that were found. keep stores the merged configuration if the store can be
 * written, no problem was found, the files of op builders are not merged, and no file has changed
 * since take or in the two seconds before it; it does nothing if the configuration is stored
 * already. forget removes the stored one. take and keep return ERR_NO_MEMORY.
 */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__snapshot_forget(const ds_accel_t *context);

#endif
