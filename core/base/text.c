/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Growing texts, and checks of names and characters. */
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct ds_accel__text *text, size_t more)
{
    size_t needed = text->size_bytes + more + 1;
    size_t capacity = text->capacity_bytes != 0 ? text->capacity_bytes : 256;
    char *data;

    if (needed <= text->capacity_bytes) {
        return true;
    }
    while (capacity < needed) {
        capacity *= 2;
    }
    data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity_bytes = capacity;
    return true;
}

void ds_accel__text_add(struct ds_accel__text *text, const char *format, ...)
{
    va_list arguments;
    size_t room;
    int length;

    assert(ds_accel__text_is_sound(text));
    /* Most pieces fit into the space that is already allocated. */
    if (text->failed || !reserve(text, 0)) {
        return;
    }
    room = text->capacity_bytes - text->size_bytes;
    va_start(arguments, format);
    length = vsnprintf(text->data + text->size_bytes, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length >= room && reserve(text, (size_t)length)) {
        va_start(arguments, format);
        length = vsnprintf(text->data + text->size_bytes, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    if (length < 0 || text->failed) {
        text->data[text->size_bytes] = '\0';
        text->failed = true;
        return;
    }
    text->size_bytes += (size_t)length;
    assert(ds_accel__text_is_sound(text));
}

void ds_accel__text_add_bytes(struct ds_accel__text *text, const void *data, size_t size_bytes)
{
    assert(ds_accel__text_is_sound(text));
    if (!text->failed && reserve(text, size_bytes)) {
        memcpy(text->data + text->size_bytes, data, size_bytes);
        text->size_bytes += size_bytes;
        text->data[text->size_bytes] = '\0';
    }
}

static int add_piece(const char *piece, size_t size_bytes, void *text)
{
    ds_accel__text_add_bytes(text, piece, size_bytes);
    return ((const struct ds_accel__text *)text)->failed ? -1 : 0;
}

void ds_accel__text_add_json(struct ds_accel__text *text, const json_t *value, size_t flags)
{
    /* jansson ignores some failures of add_piece(), but the text records them. */
    if (json_dump_callback(value, add_piece, text, flags) != 0) {
        text->failed = true;
    }
}

char *ds_accel__json_dump(const json_t *value, size_t flags)
{
    struct ds_accel__text text = {0};

    ds_accel__text_add_json(&text, value, flags);
    return ds_accel__text_take(&text);
}

char *ds_accel__text_take(struct ds_accel__text *text)
{
    char *data;

    ds_accel__text_add(text, "%s", "");
    if (text->failed) {
        ds_accel__text_clear(text);
        return NULL;
    }
    data = text->data;
    memset(text, 0, sizeof(*text));
    return data;
}

void ds_accel__text_clear(struct ds_accel__text *text)
{
    free(text->data);
    memset(text, 0, sizeof(*text));
}

char *ds_accel__format(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        text = malloc((size_t)length + 1);
    }
    if (text != NULL) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

char *ds_accel__join(const char *left, char between, const char *right)
{
    size_t left_length = strlen(left);
    size_t right_length = strlen(right);
    char *text = malloc(left_length + right_length + 2);

    if (text != NULL) {
        memcpy(text, left, left_length);
        text[left_length] = between;
        memcpy(text + left_length + 1, right, right_length);
        text[left_length + 1 + right_length] = '\0';
    }
    return text;
}

void ds_accel__copy(char *to, size_t to_size, const char *text)
{
    size_t length = text != NULL ? strnlen(text, to_size - 1) : 0;

    assert(to_size > 0);
    memcpy(to, text != NULL ? text : "", length);
    to[length] = '\0';
}

/*
 * Levenshtein distance of two names; SIZE_MAX if a name has more than 47 bytes, the limit of row[].
 */
static size_t distance(const char *a, const char *b)
{
    size_t row[48];
    size_t b_length = strlen(b);

    if (strlen(a) >= ARRAY_SIZE(row) || b_length >= ARRAY_SIZE(row)) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[b_length];
}

const char *ds_accel__nearest(const char *name, const char *const *names, size_t count)
{
    size_t best = strlen(name) < 4 ? 1 : 2;
    const char *nearest = NULL;

    best += strlen(name) >= 12;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(name, names[i]);

        if (d < best || (d == best && nearest == NULL)) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

/* The number of bytes of the UTF-8 character at c; 0 if the bytes are not valid UTF-8. */
static size_t character_bytes(const unsigned char *c)
{
    size_t length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Reject overlong forms, surrogates, and values past the last code point. */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] >= 0xa0) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] >= 0x90) || c[0] > 0xf4) {
        return 0;
    }
    return length;
}

static uint32_t decode(const unsigned char *c, size_t length)
{
    uint32_t code = length == 1 ? c[0] : c[0] & (0xffu >> (length + 1));

    assert(length >= 1 && length <= 4);
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | (c[i] & 0x3f);
    }
    return code;
}

/*
 * Code points that a terminal interprets or hides instead of showing: Unicode's categories Cc, Cf,
 * Zl and Zp, the property Default_Ignorable_Code_Point, and noncharacters. In ascending order.
 */
static const struct {
    uint32_t first;
    uint32_t last;
} unprintable[] = {
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},
    {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1345f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

static bool is_printable(uint32_t code)
{
    if ((code >= 0x20 && code < 0x7f) || (code & 0xfffe) == 0xfffe) {
        return code < 0x7f;
    }
    for (size_t i = 0; i < ARRAY_SIZE(unprintable); i++) {
        assert(unprintable[i].first <= unprintable[i].last);
        assert(i == 0 || unprintable[i - 1].last < unprintable[i].first);
        if (code <= unprintable[i].last) {
            return code < unprintable[i].first;
        }
    }
    return true;
}

size_t ds_accel__character(const char *text, uint32_t *code_out)
{
    size_t length = character_bytes((const unsigned char *)text);

    if (length == 0) {
        *code_out = DS_ACCEL__NO_CHARACTER;
        return 1;
    }
    *code_out = decode((const unsigned char *)text, length);
    return length;
}

bool ds_accel__is_printable(const char *text)
{
    uint32_t code;

    while (*text != '\0') {
        text += ds_accel__character(text, &code);
        if (!is_printable(code)) {
            return false;
        }
    }
    return true;
}

void ds_accel__sanitize(char *text, size_t text_size)
{
    char *to = text;
    uint32_t code;
    size_t length;

    assert(text_size > 0);
    text[text_size - 1] = '\0';
    for (const char *from = text; *from != '\0'; from += length) {
        length = ds_accel__character(from, &code);
        if (is_printable(code)) {
            memmove(to, from, length);
            to += length;
        } else {
            /*
             * A control character or line end becomes a space; an invisible character, and a byte
             * that is not UTF-8, becomes '?'.
             */
            *to++ = code < 0xa0 || code == 0x2028 || code == 0x2029 ? ' ' : '?';
        }
        assert(to <= from + length); /* the text never grows */
    }
    *to = '\0';
}

void ds_accel__truncate(char *text, size_t text_size, size_t size_bytes)
{
    size_t end = text_size - sizeof("...");

    assert(text_size >= sizeof("..."));
    if (size_bytes < text_size) {
        return;
    }
    for (unsigned i = 0; i < 3 && end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80; i++) {
        end--;
    }
    memcpy(text + end, "...", sizeof("..."));
}

char *ds_accel__format_line(char *buffer, size_t buffer_size, const char *format, va_list arguments)
{
    char *line = buffer;
    va_list again;
    int length;

    va_copy(again, arguments);
    length = vsnprintf(buffer, buffer_size, format, arguments);
    if (length < 0) {
        buffer[0] = '\0';
    } else if ((size_t)length >= buffer_size) {
        line = malloc((size_t)length + 1);
        if (line == NULL) {
            line = buffer;
            ds_accel__truncate(line, buffer_size, (size_t)length);
        } else {
            vsnprintf(line, (size_t)length + 1, format, again);
        }
    }
    va_end(again);
    ds_accel__sanitize(line, strlen(line) + 1);
    return line;
}

void ds_accel_sanitize_text(char *text, size_t text_size)
{
    if (text != NULL && text_size > 0) {
        ds_accel__sanitize(text, text_size);
    }
}

/* Add a character of a JSON string as \uXXXX, or as a surrogate pair. */
static void add_escaped(struct ds_accel__text *text, uint32_t code)
{
    assert(code <= 0x10ffff && (code & 0xfffff800) != 0xd800); /* not a surrogate */
    if (code >= 0x10000) {
        ds_accel__text_add(text, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                           0xdc00 + ((code - 0x10000) & 0x3ff));
    } else {
        ds_accel__text_add(text, "\\u%04x", code);
    }
}

void ds_accel__text_add_printable_json(struct ds_accel__text *text, const char *json)
{
    const char *begin = json; /* start of the bytes that are not yet added */
    uint32_t code;
    size_t length;

    for (; *json != '\0'; json += length) {
        length = 1;
        /*
         * A byte below 0x20 can only be layout of the JSON text: inside strings, JSON writers
         * escape such bytes.
         */
        if ((unsigned char)*json < 0x7f) {
            continue;
        }
        length = ds_accel__character(json, &code);
        if (!is_printable(code)) {
            ds_accel__text_add_bytes(text, begin, (size_t)(json - begin));
            add_escaped(text, code == DS_ACCEL__NO_CHARACTER ? 0xfffd : code);
            begin = json + length;
        }
    }
    ds_accel__text_add_bytes(text, begin, (size_t)(json - begin));
}

bool ds_accel__is_backend_name(const char *name)
{
    size_t length = 0;

    if (name[0] < 'a' || name[0] > 'z') {
        return false;
    }
    /* Avoid strspn(), which builds a table of the letters for every name. */
    while ((name[length] >= 'a' && name[length] <= 'z') ||
           (name[length] >= '0' && name[length] <= '9') || name[length] == '_' ||
           name[length] == '.') {
        length++;
    }
    return name[length] == '\0' && length < DS_ACCEL__NAME_SIZE;
}

bool ds_accel__is_clean_text(const char *text, size_t text_size)
{
    size_t length = strnlen(text, text_size);
    json_t *value;

    if (length == text_size) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    value = json_stringn(text, length); /* fails if text is not UTF-8 */
    json_decref(value);
    return value != NULL;
}
