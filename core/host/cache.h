/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is remembered, in files: cache.c, config_cache.c. */
#ifndef DS_ACCEL_CORE_CACHE_H
#define DS_ACCEL_CORE_CACHE_H

#include "host/registry.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    DS_ACCEL__RECORD_NAME,
    DS_ACCEL__RECORD_PATH,
    DS_ACCEL__RECORD_VENDOR,
    DS_ACCEL__RECORD_VERSION,
    DS_ACCEL__RECORD_ABI,
    DS_ACCEL__RECORD_HARDWARE, /* what its note says of it */
    DS_ACCEL__RECORD_REASON,
    DS_ACCEL__RECORD_DETAIL,
    DS_ACCEL__RECORD_OUTPUT,
    DS_ACCEL__RECORD_STRIKE, /* reason of the last one */
    DS_ACCEL__RECORD_STRIKE_DETAIL,
    DS_ACCEL__RECORD_COMMUNICATION, /* backend, of a rehearsal; as the next one */
    DS_ACCEL__RECORD_COMPILE,
    DS_ACCEL__RECORD_EVIDENCE, /* of each gate */
    DS_ACCEL__RECORD_TEXTS = DS_ACCEL__RECORD_EVIDENCE + DS_ACCEL__GATE_COUNT
};

struct ds_accel__record_data {
    uint64_t key[2];
    uint64_t verdict_ms; /* when it was made, by ds_accel__boot_ms(); 0: there is none */
    uint64_t strike_ms;
    int64_t wall_s; /* for people */
    int64_t strike_wall_s;
    uint64_t elapsed_us;
    uint64_t note_features;
    uint64_t note_optional;
    uint64_t table_optional;
    int64_t vendor_code;
    uint64_t load_ms; /* when the load began that a strike tells of; with strike_is_load */
    uint32_t state;
    uint32_t stage; /* a gate */
    uint32_t strikes;
    uint32_t strike_is_load; /* it ended its caller, not a helper */
    uint32_t device_count;
    uint32_t verdict_state;
    uint32_t verdict_reason;
    uint32_t has_conduct;
    uint32_t start_is_done;
    uint32_t start_device_count;
    uint32_t gates[DS_ACCEL__GATE_COUNT];
    char variant[32];
};

struct ds_accel__record {
    struct ds_accel__record_data data;
    const char *texts[DS_ACCEL__RECORD_TEXTS]; /* NULL is "" */
};

struct ds_accel__cache_table {
    struct ds_accel__record *records;
    size_t count;
    size_t capacity;
};

struct ds_accel__cache_file {
    struct ds_accel__cache_file *next;
    char *data;
};

struct ds_accel__cache {
    bool is_open; /* only while plugins are asked */
    bool is_writable;
    bool is_dirty;
    bool has_no_folder; /* nobody names one, or it does not exist yet */
    bool is_refused;    /* the folder is there, and not one to use */
    bool is_locked;     /* by us; not if another held the lock for too long */
    bool is_passed_by;  /* another holds it, and was not waited for: nothing is stored */
    bool has_warned;    /* of its file */
    bool is_looked_at;  /* and nothing is remembered: no folder is made */
    bool is_forgetting; /* what is stored next is no more than there was */
    int folder_fd;
    int lock_fd;     /* -1: nobody tried to lock */
    int stopped_pid; /* that holds the lock, and so was not waited for; 0: none */
    char *folder;
    char problem[512]; /* why there is none to use, or none to write to; "" if there is */
    uint64_t machine;
    uint64_t begin_ms; /* when it was opened */
    uint64_t base;     /* verdict.c's */
    struct ds_accel__cache_table table;
    size_t next; /* record to look at first: they are asked for in the order they were made */
    struct ds_accel__cache_file *files; /* whose texts are borrowed */
};

/*
 * Records out of a file's bytes, whose texts they borrow. NULL, or what is wrong: "" if it is only
 * of another machine, boot, user or version, ds_accel__cache_no_memory if that is it. Clear the
 * table.
 */
const char *ds_accel__cache_parse(const void *data, size_t size_bytes, uint64_t machine,
                                  struct ds_accel__cache_table *table);
extern const char ds_accel__cache_no_memory[];
#define DS_ACCEL__CACHE_FILE "verdicts"
int32_t ds_accel__cache_format(const struct ds_accel__cache_table *table, uint64_t machine,
                               struct ds_accel__text *text);
void ds_accel__cache_table_clear(struct ds_accel__cache_table *table);
/* Open the folder, not yet its file; is_open tells whether there is one to use. */
int32_t ds_accel__cache_open(const ds_accel_t *context, struct ds_accel__cache *cache);
int32_t ds_accel__cache_read(const ds_accel_t *context, struct ds_accel__cache *cache);
/*
 * Wait until nobody else asks plugins, limit_ms at most and for none that is stopped, and read
 * again what they found out. With 0, which is for what need not be remembered, nothing is stored
 * unless the lock is free.
 */
int32_t ds_accel__cache_lock(const ds_accel_t *context, struct ds_accel__cache *cache,
                             uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(const ds_accel_t *context, struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/* Take a block that records borrow texts from, until it is closed. */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/* The record of a key, borrowed until the next add, lock or close; NULL: none, or for add no
 * memory. */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache, const uint64_t *key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache, const uint64_t *key);

/*
 * A small file of the folder, outside of the asking; *data_out is NULL if there is none to believe.
 * And one written: beside itself, then renamed. It need not succeed.
 */
int32_t ds_accel__cache_read_file(const ds_accel_t *context, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out);
void ds_accel__cache_write_file(const ds_accel_t *context, struct ds_accel__cache *cache,
                                const char *name, const struct ds_accel__text *text);

/* The merged configuration of the files found, if it is remembered (config_cache.c). ERR_NO_MEMORY.
 */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
void ds_accel__snapshot_forget(const ds_accel_t *context);

#endif
