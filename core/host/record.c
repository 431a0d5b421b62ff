/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Serialization of records. A file is a header and, for each record, its size, its members in their
 * in-memory format, its texts, each terminated by NUL, and padding to a multiple of 8 bytes. A file
 * is accepted only if it is complete (checksum) and from this boot, machine, user and version, and
 * if its records contain only gate results, states, reasons, names and device counts that are
 * valid.
 */
#include "host/record.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1u
static const char magic[8] = "DSACCEL";

struct file_head {
    char magic[8];
    uint32_t format;
    uint32_t record_count;
    uint64_t machine;  /* hash of boot, machine, user and version */
    uint64_t checksum; /* hash of the data after the header */
};

static_assert(sizeof(struct file_head) == DS_ACCEL__RECORD_FILE_HEAD_BYTES, "its size is known");

struct record_head {
    uint32_t size_bytes; /* size of the record, including texts and padding */
    uint32_t text_bytes;
    struct ds_accel__record_data data;
};

const char ds_accel__cache_no_memory[] = "host memory is exhausted";

/* ---- table of records ----------------------------------------------------------------------- */

static bool reserve(struct ds_accel__cache_table *table, size_t capacity)
{
    struct ds_accel__record *larger = realloc(table->records, capacity * sizeof(*table->records));

    assert(capacity > 0 && capacity >= table->count);
    if (larger == NULL) {
        return false;
    }
    table->records = larger;
    table->capacity = capacity;
    return true;
}

struct ds_accel__record *ds_accel__cache_table_add(struct ds_accel__cache_table *table)
{
    assert(table->count <= table->capacity);
    if (table->count == table->capacity &&
        !reserve(table, table->capacity != 0 ? 2 * table->capacity : 32)) {
        return NULL;
    }
    memset(&table->records[table->count], 0, sizeof(table->records[0]));
    return &table->records[table->count++];
}

void ds_accel__cache_table_clear(struct ds_accel__cache_table *table)
{
    free(table->records);
    memset(table, 0, sizeof(*table));
}

/* ---- reading -------------------------------------------------------------------------------- */

/*
 * Read the texts of a record: exactly DS_ACCEL__RECORD_TEXTS texts, each terminated within the
 * record.
 */
static bool take_texts(struct ds_accel__record *record, const char *at, size_t left)
{
    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        const char *end = left > 0 ? memchr(at, '\0', left) : NULL;

        if (end == NULL) {
            return false;
        }
        record->texts[i] = at;
        left -= (size_t)(end - at) + 1;
        at = end + 1;
    }
    return left == 0;
}

static bool is_sound(const struct ds_accel__record *record)
{
    const char *reason = record->texts[DS_ACCEL__RECORD_REASON];
    const char *strike = record->texts[DS_ACCEL__RECORD_STRIKE];

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        if (record->data.gates[gate] > DS_ACCEL__GATE_FAILED) {
            return false;
        }
    }
    /*
     * NOT_PROBED means that the record contains only strikes. Otherwise accept only the states that
     * an evaluation can store.
     */
    return (record->data.state == DS_ACCEL_STATE_NOT_PROBED ||
            (record->data.state >= DS_ACCEL_STATE_AVAILABLE &&
             record->data.state <= DS_ACCEL_STATE_TIMED_OUT)) &&
           record->data.stage < DS_ACCEL__GATE_COUNT &&
           record->data.device_count <= DS_ACCEL__DEVICE_LIMIT &&
           ds_accel__is_backend_name(record->texts[DS_ACCEL__RECORD_NAME]) &&
           ds_accel__reason_is_code(reason) && ds_accel__reason_is_code(strike) &&
           memchr(record->data.variant, '\0', sizeof(record->data.variant)) != NULL;
}

const char *ds_accel__cache_parse(const void *data, size_t size_bytes, uint64_t machine,
                                  struct ds_accel__cache_table *table)
{
    const char *at = data;
    struct file_head head;

    assert(table->count == 0);
    if (size_bytes < sizeof(head)) {
        return "it is truncated";
    }
    memcpy(&head, at, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) != 0) {
        return "it is not a verdict cache";
    }
    if (head.format != FORMAT || head.machine != machine) {
        return ""; /* the file is from another version, boot or machine: not logged */
    }
    at += sizeof(head);
    size_bytes -= sizeof(head);
    if (ds_accel__hash(at, size_bytes, FORMAT) != head.checksum) {
        return "its checksum is wrong";
    }
    if (head.record_count > 0 && head.record_count <= size_bytes / sizeof(struct record_head) &&
        !reserve(table, head.record_count)) {
        return ds_accel__cache_no_memory;
    }
    for (uint32_t i = 0; i < head.record_count; i++) {
        struct record_head record_head;
        struct ds_accel__record *record;

        if (size_bytes < sizeof(record_head)) {
            return "it ends in the middle of a record";
        }
        memcpy(&record_head, at, sizeof(record_head));
        if (record_head.size_bytes > size_bytes || record_head.size_bytes % 8 != 0 ||
            record_head.size_bytes < sizeof(record_head) ||
            record_head.text_bytes > record_head.size_bytes - sizeof(record_head)) {
            return "a record has an invalid size";
        }
        record = ds_accel__cache_table_add(table);
        if (record == NULL) {
            return ds_accel__cache_no_memory;
        }
        record->data = record_head.data;
        if (!take_texts(record, at + sizeof(record_head), record_head.text_bytes) ||
            !is_sound(record)) {
            return "a record has invalid values";
        }
        at += record_head.size_bytes;
        size_bytes -= record_head.size_bytes;
    }
    return size_bytes == 0 ? NULL : "it has bytes after its last record";
}

/* ---- writing -------------------------------------------------------------------------------- */

const char *ds_accel__record_text(const struct ds_accel__record *record, int text)
{
    assert(text >= 0 && text < DS_ACCEL__RECORD_TEXTS);
    return record->texts[text] != NULL ? record->texts[text] : "";
}

size_t ds_accel__record_bytes(const struct ds_accel__record *record)
{
    size_t bytes = sizeof(struct record_head);

    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        bytes += record->texts[i] != NULL ? strlen(record->texts[i]) + 1 : 1;
    }
    return (bytes + 7) / 8 * 8;
}

int32_t ds_accel__cache_format(const struct ds_accel__cache_table *table, uint64_t machine,
                               struct ds_accel__text *text)
{
    struct file_head head = {.format = FORMAT, .machine = machine};

    assert(text->size_bytes == 0); /* the header is at offset 0, and is overwritten there later */
    memcpy(head.magic, magic, sizeof(magic));
    ds_accel__text_add_bytes(text, &head, sizeof(head));
    for (size_t i = 0; i < table->count; i++) {
        const struct ds_accel__record *record = &table->records[i];
        struct record_head record_head = {.data = record->data};

        for (size_t t = 0; t < DS_ACCEL__RECORD_TEXTS; t++) {
            record_head.text_bytes +=
                record->texts[t] != NULL ? (uint32_t)strlen(record->texts[t]) + 1 : 1;
        }
        record_head.size_bytes = (uint32_t)ds_accel__record_bytes(record);
        ds_accel__text_add_bytes(text, &record_head, sizeof(record_head));
        for (size_t t = 0; t < DS_ACCEL__RECORD_TEXTS; t++) {
            const char *value = record->texts[t] != NULL ? record->texts[t] : "";

            ds_accel__text_add_bytes(text, value, strlen(value) + 1);
        }
        /*
         * ds_accel__record_bytes() returns the size of the head and the texts, plus padding of less
         * than a word.
         */
        assert(record_head.size_bytes >= sizeof(record_head) + record_head.text_bytes);
        assert(record_head.size_bytes - sizeof(record_head) - record_head.text_bytes < 8);
        ds_accel__text_add_bytes(text, "\0\0\0\0\0\0\0",
                                 record_head.size_bytes - sizeof(record_head) -
                                     record_head.text_bytes);
        head.record_count++;
    }
    if (text->failed) {
        return ds_accel__no_memory();
    }
    head.checksum =
        ds_accel__hash(text->data + sizeof(head), text->size_bytes - sizeof(head), FORMAT);
    memcpy(text->data, &head, sizeof(head));
    return DS_ACCEL_OK;
}

uint64_t ds_accel__record_layout(void)
{
    /* Include the sizes, because builds of the same version may store different members. */
    const size_t sizes[] = {sizeof(struct record_head), DS_ACCEL__RECORD_TEXTS};

    return ds_accel__hash(sizes, sizeof(sizes), ds_accel__hash_text(DS_ACCEL_VERSION, FORMAT));
}
