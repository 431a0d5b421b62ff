/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The text of a launcher's decision:
 *
 *     1;version=0.1.0;host=8f...;...;path=/usr/lib/ds-accel/ds_accel_cuda.so;check=5c...
 *
 * The number is that of the format. The fields follow in the order of the table below, each of them
 * exactly once. Numbers are hexadecimal; in texts, bytes other than letters, digits and some
 * punctuation are written as %XX, so that the value survives shells and files of variables. The
 * last field is a hash of all bytes before it, which detects a value that was truncated or edited.
 */
#include "base/text.h"
#include "host/decision.h"

#include <stdio.h>
#include <string.h>

#define FORMAT 1u
#define HEAD "1"
#define CHECK ";check="

#define NUMBER(name, member) \
    { \
        name, offsetof(struct ds_accel__decision, member), 0 \
    }
#define TEXT(name, member) \
    { \
        name, offsetof(struct ds_accel__decision, member), \
            sizeof(((struct ds_accel__decision *)0)->member) \
    }

static const struct field {
    const char *name;
    size_t offset;
    size_t text_size; /* size of a text, including NUL; 0: a number */
} fields[] = {
    TEXT("version", version),
    NUMBER("host", host),
    NUMBER("user", user),
    NUMBER("configuration", configuration),
    TEXT("accelerator", accelerator),
    TEXT("method", set_method),
    NUMBER("devices", device_count),
    TEXT("variant", variant),
    TEXT("detail", detail),
    NUMBER("device", file.device),
    NUMBER("inode", file.inode),
    NUMBER("size", file.size_bytes),
    NUMBER("modified", file.modified_s),
    NUMBER("modified_ns", file.modified_ns),
    NUMBER("changed", file.changed_s),
    NUMBER("changed_ns", file.changed_ns),
    TEXT("path", path),
};

/* ---- writing -------------------------------------------------------------------------------- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._/:+-,", c) != NULL);
}

static void add_encoded(struct ds_accel__text *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (is_plain(*value)) {
            ds_accel__text_add_bytes(text, value, 1);
        } else {
            ds_accel__text_add(text, "%%%02x", (unsigned)(unsigned char)*value);
        }
    }
}

void ds_accel__decision_format(const struct ds_accel__decision *decision,
                               struct ds_accel__text *text)
{
    size_t begin = text->size_bytes;

    ds_accel__text_add(text, "%s", HEAD);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *member = (const char *)decision + fields[i].offset;

        ds_accel__text_add(text, ";%s=", fields[i].name);
        if (fields[i].text_size > 0) {
            add_encoded(text, member);
        } else {
            uint64_t number;

            memcpy(&number, member, sizeof(number));
            ds_accel__text_add(text, "%llx", (unsigned long long)number);
        }
    }
    if (!text->failed) {
        uint64_t hash = ds_accel__hash(text->data + begin, text->size_bytes - begin, FORMAT);

        ds_accel__text_add(text, "%s%llx", CHECK, (unsigned long long)hash);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Return the value of a hexadecimal digit; -1: it is none. */
static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_number(const char *at, size_t length, char *member)
{
    uint64_t number = 0;

    if (length == 0 || length > 16) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        int digit = digit_of(at[i]);

        if (digit < 0) {
            return false;
        }
        number = number << 4 | (uint64_t)digit;
    }
    memcpy(member, &number, sizeof(number));
    return true;
}

static bool take_text(const char *at, size_t length, char *member, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        int byte = (unsigned char)at[i];

        if (at[i] == '%') {
            int high = length - i > 2 ? digit_of(at[i + 1]) : -1;
            int low = length - i > 2 ? digit_of(at[i + 2]) : -1;

            byte = high >= 0 && low >= 0 ? high << 4 | low : 0;
            i += 2;
        } else if (!is_plain(at[i])) {
            return false;
        }
        if (byte == 0 || used + 1 >= size) {
            return false;
        }
        member[used++] = (char)byte;
    }
    member[used] = '\0';
    return true;
}

/* Take one field, ";NAME=VALUE", and move *at past it. */
static bool take_field(const char **at, const char *end, const struct field *field,
                       struct ds_accel__decision *decision)
{
    char *member = (char *)decision + field->offset;
    size_t name_length = strlen(field->name);
    const char *value = *at + 1 + name_length + 1;
    const char *next;

    if ((size_t)(end - *at) < name_length + 2 || **at != ';' ||
        memcmp(*at + 1, field->name, name_length) != 0 || value[-1] != '=') {
        return false;
    }
    next = memchr(value, ';', (size_t)(end - value));
    *at = next != NULL ? next : end;
    return field->text_size > 0 ? take_text(value, (size_t)(*at - value), member, field->text_size)
                                : take_number(value, (size_t)(*at - value), member);
}

static bool is_method(const char *text)
{
    return strcmp(text, "override") == 0 || strcmp(text, "config") == 0 ||
           strcmp(text, "auto detect") == 0;
}

static bool is_sound(const struct ds_accel__decision *decision)
{
    return ds_accel__is_backend_name(decision->accelerator) && is_method(decision->set_method) &&
           decision->device_count > 0 && decision->device_count <= DS_ACCEL__DEVICE_LIMIT &&
           ds_accel__is_printable(decision->variant) && ds_accel__is_printable(decision->detail) &&
           decision->path[0] == '/';
}

const char *ds_accel__decision_parse(const char *text, struct ds_accel__decision *decision_out)
{
    const char *end = strrchr(text, ';');
    const char *at = text + strlen(HEAD);
    uint64_t hash;

    memset(decision_out, 0, sizeof(*decision_out));
    if (strncmp(text, HEAD ";", strlen(HEAD ";")) != 0) {
        return "it is not in the format of this version";
    }
    if (strncmp(end, CHECK, strlen(CHECK)) != 0 ||
        !take_number(end + strlen(CHECK), strlen(end + strlen(CHECK)), (char *)&hash) ||
        hash != ds_accel__hash(text, (size_t)(end - text), FORMAT)) {
        return "its checksum is wrong";
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (!take_field(&at, end, &fields[i], decision_out)) {
            return "it is malformed";
        }
    }
    return at == end && is_sound(decision_out) ? NULL : "it has invalid values";
}
