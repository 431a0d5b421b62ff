/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The record of a plugin's results in the cache file, and its serialization: record.c. */
#ifndef DS_ACCEL_HOST_RECORD_H
#define DS_ACCEL_HOST_RECORD_H

#include "base/private.h"
#include "host/key.h"
#include "host/registry.h"

#include <stddef.h>
#include <stdint.h>

struct ds_accel__text;

enum {
    DS_ACCEL__RECORD_NAME,
    DS_ACCEL__RECORD_PATH,
    DS_ACCEL__RECORD_VENDOR,
    DS_ACCEL__RECORD_VERSION,
    DS_ACCEL__RECORD_ABI,
    DS_ACCEL__RECORD_HARDWARE, /* the hardware note */
    DS_ACCEL__RECORD_REASON,
    DS_ACCEL__RECORD_DETAIL,
    DS_ACCEL__RECORD_OUTPUT,
    DS_ACCEL__RECORD_STRIKE, /* reason of the last strike */
    DS_ACCEL__RECORD_STRIKE_DETAIL,
    DS_ACCEL__RECORD_COMMUNICATION, /* communication backend reported at the plugin's start */
    DS_ACCEL__RECORD_COMPILE,
    DS_ACCEL__RECORD_EVIDENCE, /* evidence of each gate */
    DS_ACCEL__RECORD_TEXTS = DS_ACCEL__RECORD_EVIDENCE + DS_ACCEL__GATE_COUNT
};

struct ds_accel__record_data {
    struct ds_accel__key key;
    uint64_t verdict_ms; /* time of the verdict by ds_accel__boot_ms(); 0: no verdict */
    uint64_t strike_ms;
    int64_t wall_s; /* wall-clock time in seconds, for display */
    int64_t strike_wall_s;
    uint64_t elapsed_us;
    uint64_t note_features;
    uint64_t note_optional;
    uint64_t table_optional;
    int64_t vendor_code;
    uint64_t load_ms; /* start of the load that caused the strike, if strike_is_load */
    uint32_t state;
    uint32_t stage; /* an enum ds_accel__gate */
    uint32_t strikes;
    uint32_t strike_is_load; /* last strike: a process that loaded the plugin died, not a helper */
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
    const char *texts[DS_ACCEL__RECORD_TEXTS]; /* NULL: treated as "" */
};

struct ds_accel__cache_table {
    struct ds_accel__record *records;
    size_t count;
    size_t capacity;
};

/*
 * Parse records from a file's bytes. The records borrow texts from these bytes. Returns NULL on
 * success, otherwise what is wrong: "" if the file belongs to another machine, boot, user or
 * version, ds_accel__cache_no_memory if memory is exhausted. The caller clears the table.
 */
const char *ds_accel__cache_parse(const void *data, size_t size_bytes, uint64_t machine,
                                  struct ds_accel__cache_table *table);
extern const char ds_accel__cache_no_memory[];
int32_t ds_accel__cache_format(const struct ds_accel__cache_table *table, uint64_t machine,
                               struct ds_accel__text *text);
void ds_accel__cache_table_clear(struct ds_accel__cache_table *table);
/* Append a zeroed record; NULL if memory is exhausted. */
struct ds_accel__record *ds_accel__cache_table_add(struct ds_accel__cache_table *table);
/* Return the size of a record in a file. */
size_t ds_accel__record_bytes(const struct ds_accel__record *record);
/* Borrow a text of a record; "" if the record has no such text. */
DS_ACCEL__PRIVATE const char *ds_accel__record_text(const struct ds_accel__record *record,
                                                    int text);
/* Return a number that identifies the library's version and the layout of records in the file. */
uint64_t ds_accel__record_layout(void);
#define DS_ACCEL__RECORD_FILE_HEAD_BYTES 32u

#endif
