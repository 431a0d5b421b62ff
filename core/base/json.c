/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Functions that reports, recordings and snapshots share: members of JSON trees, sizes, XML. */
#include "base/json.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *ds_accel__json_text(const char *text)
{
    json_t *value;
    char *copy;
    uint32_t code;

    if (text == NULL) {
        text = "";
    }
    value = json_string(text);
    if (value != NULL) {
        return value;
    }
    copy = strdup(text);
    if (copy == NULL) {
        return NULL;
    }
    for (char *c = copy; *c != '\0';) {
        size_t length = ds_accel__character(c, &code);

        *c = code == DS_ACCEL__NO_CHARACTER ? '?' : *c;
        c += length;
    }
    value = json_string(copy);
    free(copy);
    return value;
}

/*
 * jansson's lexer does not check whether its own buffer could grow (2.14): if memory is exhausted,
 * it truncates a text or fails its own assertion. Allocate more than the lexer can need.
 */
bool ds_accel__json_has_headroom(size_t size_bytes)
{
    void *headroom = malloc(16 * size_bytes + 65536);

    free(headroom);
    return headroom != NULL;
}

void ds_accel__json_set(json_t *object, const char *key, json_t *value, bool *failed)
{
    /* json_object_set_new() releases value even when it fails, and rejects NULL. */
    if (json_object_set_new(object, key, value) != 0) {
        *failed = true;
    }
}

const char *ds_accel__json_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

uint64_t ds_accel__json_size(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? (uint64_t)value : 0;
}

void ds_accel__size_text(uint64_t bytes, char *text, size_t text_size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    uint64_t divisor = 1;

    while (bytes / divisor >= 1024) {
        divisor *= 1024;
        unit++;
    }
    assert(unit < ARRAY_SIZE(units));
    if (bytes % divisor == 0) {
        snprintf(text, text_size, "%llu %s", (unsigned long long)(bytes / divisor), units[unit]);
    } else {
        snprintf(text, text_size, "%.1f %s", (double)bytes / (double)divisor, units[unit]);
    }
}

void ds_accel__xml_add(struct ds_accel__text *out, const char *text)
{
    char character[8];
    uint32_t code;
    size_t length;

    for (const char *c = text; *c != '\0'; c += length) {
        length = ds_accel__character(c, &code);
        switch (*c) {
        case '&':
            ds_accel__text_add(out, "&amp;");
            break;
        case '<':
            ds_accel__text_add(out, "&lt;");
            break;
        case '>':
            ds_accel__text_add(out, "&gt;");
            break;
        case '"':
            ds_accel__text_add(out, "&quot;");
            break;
        case '\n':
        case '\t':
            ds_accel__text_add_bytes(out, c, 1);
            break;
        default:
            /*
             * XML does not allow control characters, and the source of an SVG picture is also shown
             * on terminals.
             */
            assert(length < sizeof(character));
            memcpy(character, c, length);
            character[length] = '\0';
            ds_accel__sanitize(character, sizeof(character));
            ds_accel__text_add(out, "%s", character);
        }
    }
}
