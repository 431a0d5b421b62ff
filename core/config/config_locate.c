/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the position of a value in a file. jansson reads the values and finds every syntax error,
 * but stores no positions. So that a message about a well-formed but invalid value can contain its
 * line and column, this file parses the text again, only for such a message. The text is known to
 * be valid JSON no deeper than jansson's own limit, so the parser checks only for the end of the
 * text.
 */
#include "config/config.h"

#include <stdlib.h>

struct walk {
    const char *at;
    const char *end;
    const char *found_key;
    const char *found_value;
};

/* Skip white space. A NUL between values is skipped, too, as jansson does: strchr() finds it. */
static void skip_blanks(struct walk *walk)
{
    while (walk->at < walk->end && strchr(" \t\r\n", *walk->at) != NULL) {
        walk->at++;
    }
}

static void skip_string(struct walk *walk)
{
    for (walk->at++; walk->at < walk->end && *walk->at != '"'; walk->at++) {
        if (*walk->at == '\\' && walk->at + 1 < walk->end) {
            walk->at++;
        }
    }
    if (walk->at < walk->end) {
        walk->at++;
    }
}

/* True if the string token at [from, to) decodes to the pointer segment of the given length. */
static bool key_matches(const char *from, const char *to, const char *segment, size_t length)
{
    json_t *key = json_loadb(from, (size_t)(to - from), JSON_DECODE_ANY, NULL);
    const char *text = json_string_value(key);
    bool matches = false;

    if (text != NULL) {
        size_t i = 0;

        matches = true;
        for (; matches && i < length; text++) {
            char c = segment[i++];

            if (c == '~' && i < length) {
                c = segment[i++] == '1' ? '/' : '~';
            }
            matches = *text == c;
        }
        matches = matches && *text == '\0';
    }
    json_decref(key);
    return matches;
}

static void walk_value(struct walk *walk, const char *pointer);

/*
 * Walk the members of an object or the elements of an array, up to the character `close`. pointer
 * is NULL if the wanted value is not in this object or array.
 */
static void walk_members(struct walk *walk, const char *pointer, char close)
{
    const char *segment = pointer != NULL && *pointer == '/' ? pointer + 1 : NULL;
    size_t length = segment != NULL ? strcspn(segment, "/") : 0;
    size_t position = 0;

    walk->at++;
    for (skip_blanks(walk); walk->at < walk->end && *walk->at != close; skip_blanks(walk)) {
        const char *key = walk->at;
        bool below;

        if (close == '}') {
            skip_string(walk);
            below = segment != NULL && key_matches(key, walk->at, segment, length);
            skip_blanks(walk);
            walk->at += walk->at < walk->end; /* skip the colon */
            skip_blanks(walk);
        } else {
            char *end;

            below = segment != NULL && strtoul(segment, &end, 10) == position &&
                    end == segment + length;
            position++;
        }
        if (below && segment[length] == '\0') {
            walk->found_key = key;
        }
        walk_value(walk, below ? segment + length : NULL);
        skip_blanks(walk);
        if (walk->at < walk->end && *walk->at == ',') {
            walk->at++;
        }
        if (walk->found_value != NULL) {
            return;
        }
    }
    walk->at += walk->at < walk->end;
}

static void walk_value(struct walk *walk, const char *pointer)
{
    if (pointer != NULL && *pointer == '\0') {
        walk->found_value = walk->at;
        return;
    }
    if (walk->at >= walk->end) {
        return;
    }
    switch (*walk->at) {
    case '{':
        walk_members(walk, pointer, '}');
        break;
    case '[':
        walk_members(walk, pointer, ']');
        break;
    case '"':
        skip_string(walk);
        break;
    default:
        while (walk->at < walk->end && strchr(",]} \t\r\n", *walk->at) == NULL) {
            walk->at++;
        }
    }
}

bool ds_accel__pointer_append(char *pointer, size_t pointer_size, const char *key)
{
    size_t at = strlen(pointer);

    if (at + 2 * strlen(key) + 2 > pointer_size) {
        return false;
    }
    pointer[at++] = '/';
    for (; *key != '\0'; key++) {
        if (*key == '~' || *key == '/') {
            pointer[at++] = '~';
            pointer[at++] = *key == '~' ? '0' : '1';
        } else {
            pointer[at++] = *key;
        }
    }
    pointer[at] = '\0';
    return true;
}

bool ds_accel__config_locate(const char *text, size_t size_bytes, const char *pointer, bool is_key,
                             int *line_out, int *column_out)
{
    struct walk walk = {.at = text, .end = text + size_bytes};
    const char *found;

    skip_blanks(&walk);
    walk_value(&walk, pointer);
    found = is_key && walk.found_key != NULL ? walk.found_key : walk.found_value;
    *line_out = 1;
    *column_out = 1;
    if (found == NULL) {
        return false;
    }
    for (const char *c = text; c < found; c++) {
        if (*c == '\n') {
            (*line_out)++;
            *column_out = 1;
        } else if (((unsigned char)*c & 0xc0) != 0x80) {
            (*column_out)++; /* a column counts characters, not bytes */
        }
    }
    return true;
}

bool ds_accel__config_span(const char *text, size_t size_bytes, const char *pointer,
                           size_t *from_out, size_t *to_out)
{
    struct walk walk = {.at = text, .end = text + size_bytes};

    skip_blanks(&walk);
    walk_value(&walk, pointer);
    if (walk.found_value == NULL) {
        return false;
    }
    *from_out = (size_t)(walk.found_value - text);
    walk.at = walk.found_value;
    walk.found_value = NULL;
    walk_value(&walk, NULL);
    *to_out = (size_t)(walk.at - text);
    return true;
}
