/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Writing JSON values as a Python pickle, for viewers that load pickles. A pickle is a program for
 * a small stack machine. The pickles written here only push values and collect them into lists and
 * dicts; they contain no opcode that imports or calls. Only opcodes of protocol 2 that torch's
 * viewer in the browser supports are used. The viewer passes the items of a batch as arguments of
 * one call, so batches must be short.
 *
 * Opcodes and their arguments: Python, Lib/pickletools.py.
 */
#include "base/text.h"
#include "runtime/snapshot/memory_snapshot.h"

#include <string.h>

#define DEPTH_LIMIT 64
#define BATCH_ITEMS 1000 /* the batch size of Python's own pickler */

static void put_byte(struct ds_accel__text *out, uint8_t byte)
{
    ds_accel__text_add_bytes(out, &byte, 1);
}

/* Write an opcode, followed by a number with the low byte first. */
static void put_little(struct ds_accel__text *out, uint8_t opcode, uint64_t value, size_t bytes)
{
    uint8_t data[9] = {opcode};

    for (size_t i = 0; i < bytes; i++) {
        data[1 + i] = (uint8_t)(value >> (8 * i));
    }
    ds_accel__text_add_bytes(out, data, 1 + bytes);
}

static void put_integer(struct ds_accel__text *out, int64_t value)
{
    if (value >= 0 && value <= UINT8_MAX) {
        put_little(out, 'K', (uint64_t)value, 1); /* BININT1 */
    } else if (value >= 0 && value <= UINT16_MAX) {
        put_little(out, 'M', (uint64_t)value, 2); /* BININT2 */
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_little(out, 'J', (uint64_t)value, 4); /* BININT */
    } else {
        put_byte(out, 0x8a); /* LONG1: the number of bytes, then two's complement */
        put_little(out, 8, (uint64_t)value, 8);
    }
}

static void put_real(struct ds_accel__text *out, double value)
{
    uint8_t data[9] = {'G'}; /* BINFLOAT: the high byte first */
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < 8; i++) {
        data[1 + i] = (uint8_t)(bits >> (8 * (7 - i)));
    }
    ds_accel__text_add_bytes(out, data, sizeof(data));
}

static void put_text(struct ds_accel__text *out, const char *text, size_t length)
{
    put_little(out, 'X', length, 4); /* BINUNICODE */
    ds_accel__text_add_bytes(out, text, length);
}

static int32_t put_value(struct ds_accel__text *out, json_t *value, int depth);

static int32_t put_array(struct ds_accel__text *out, json_t *array, int depth)
{
    size_t count = json_array_size(array);
    int32_t status = DS_ACCEL_OK;

    put_byte(out, ']'); /* EMPTY_LIST */
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (i % BATCH_ITEMS == 0) {
            put_byte(out, '('); /* MARK */
        }
        status = put_value(out, json_array_get(array, i), depth);
        if (i % BATCH_ITEMS == BATCH_ITEMS - 1 || i == count - 1) {
            put_byte(out, 'e'); /* APPENDS */
        }
    }
    return status;
}

static int32_t put_object(struct ds_accel__text *out, json_t *object, int depth)
{
    size_t count = json_object_size(object);
    int32_t status = DS_ACCEL_OK;
    size_t i = 0;
    const char *key;
    json_t *value;

    put_byte(out, '}'); /* EMPTY_DICT */
    json_object_foreach(object, key, value)
    {
        if (i % BATCH_ITEMS == 0) {
            put_byte(out, '(');
        }
        put_text(out, key, strlen(key));
        status = put_value(out, value, depth);
        if (status < 0) {
            return status;
        }
        if (i % BATCH_ITEMS == BATCH_ITEMS - 1 || i == count - 1) {
            put_byte(out, 'u'); /* SETITEMS */
        }
        i++;
    }
    return status;
}

static int32_t put_value(struct ds_accel__text *out, json_t *value, int depth)
{
    if (depth >= DEPTH_LIMIT) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "values are nested more than %d deep",
                               DEPTH_LIMIT);
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return put_object(out, value, depth + 1);
    case JSON_ARRAY:
        return put_array(out, value, depth + 1);
    case JSON_STRING:
        if (json_string_length(value) > UINT32_MAX) {
            return ds_accel__error(DS_ACCEL_ERR_LIMIT, "a text is longer than 4 GiB");
        }
        put_text(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        put_integer(out, json_integer_value(value));
        break;
    case JSON_REAL:
        put_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
        put_byte(out, 0x88); /* NEWTRUE */
        break;
    case JSON_FALSE:
        put_byte(out, 0x89); /* NEWFALSE */
        break;
    case JSON_NULL:
        put_byte(out, 'N'); /* NONE */
        break;
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__pickle_write(json_t *tree, struct ds_accel__text *out)
{
    int32_t status;

    put_little(out, 0x80, 2, 1); /* PROTO 2 */
    status = put_value(out, tree, 0);
    put_byte(out, '.'); /* STOP */
    if (status >= 0 && out->failed) {
        return ds_accel__no_memory();
    }
    return status;
}
