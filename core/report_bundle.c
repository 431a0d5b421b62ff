/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The support bundle: every report in one tree, for who is to help from afar. What tells who and
 * where this is (names of host and user, the home folder, network addresses) is taken out of each
 * text, unless the one who sends it wants it in.
 */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* ---- what tells who and where --------------------------------------------------------------- */

#define WORD_LIMIT 6u

struct words {
    struct {
        char word[256];
        const char *in_place;
    } words[WORD_LIMIT];
    size_t count;
};

static void add_word(struct words *words, const char *word, const char *in_place)
{
    if (word != NULL && strlen(word) >= 3 && words->count < WORD_LIMIT) {
        ds_accel__copy(words->words[words->count].word, sizeof(words->words[0].word), word);
        words->words[words->count++].in_place = in_place;
    }
}

/* "/home/hermione/" is the same folder as without its last slash. */
static void add_home(struct words *words, const char *home)
{
    char folder[256];
    size_t length;

    ds_accel__copy(folder, sizeof(folder), home);
    for (length = strlen(folder); length > 1 && folder[length - 1] == '/'; length--) {
        folder[length - 1] = '\0';
    }
    if (folder[0] == '/' && strcmp(folder, "/root") != 0) {
        add_word(words, folder, "~");
    }
}

/* The longer ones first: a home folder has the user's name in it. */
static void find_words(struct words *words)
{
    static const char *const users[] = {"USER", "LOGNAME", "SUDO_USER"};
    struct utsname names;
    char host[256];

    memset(words, 0, sizeof(*words));
    add_home(words, ds_accel__env_job("HOME"));
    if (uname(&names) == 0 && strcmp(names.nodename, "localhost") != 0) {
        add_word(words, names.nodename, "HOST");
        ds_accel__copy(host, sizeof(host), names.nodename);
        host[strcspn(host, ".")] = '\0';
        add_word(words, host, "HOST");
    }
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(users); i++) {
        const char *user = ds_accel__env_job(users[i]);

        if (user != NULL && strcmp(user, "root") != 0) {
            add_word(words, user, "USER");
        }
    }
}

static bool is_word_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* The length of the word that stands at a place, not as a part of another; 0: none does. */
static size_t match_word(const struct words *words, const char *text, const char *at,
                         const char **in_place_out)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *word = words->words[i].word;
        size_t length = strlen(word);

        if (strncmp(at, word, length) == 0 && (at == text || !is_word_byte(at[-1])) &&
            !is_word_byte(at[length])) {
            *in_place_out = words->words[i].in_place;
            return length;
        }
    }
    return 0;
}

/* "/home/harry" of whomever: a plugin may lie in a folder of somebody else's. */
static size_t match_home(const char *at)
{
    size_t length = strncmp(at, "/home/", 6) == 0 ? strcspn(at + 6, "/ \t\n\"',:;") : 0;

    return length != 0 ? 6 + length : 0;
}

/* "192.0.2.1"; versions have fewer parts. */
static size_t match_ip4(const char *at)
{
    const char *end = at;

    for (unsigned part = 0; part < 4; part++) {
        unsigned value = 0;
        size_t digits = strspn(end, "0123456789");

        for (size_t i = 0; i < digits && digits <= 3; i++) {
            value = value * 10 + (unsigned)(end[i] - '0');
        }
        if (digits == 0 || digits > 3 || value > 255 || (part < 3 && end[digits] != '.')) {
            return 0;
        }
        end += digits + (part < 3);
    }
    /* A sentence may end with one. */
    return is_word_byte(end[0]) || (end[0] == '.' && is_word_byte(end[1])) ? 0 : (size_t)(end - at);
}

/* "52:54:00:12:34:56", "fe80::5054:ff:fe12:3456"; a PCI address has two colons and a dot. */
static size_t match_hardware(const char *at)
{
    size_t length = strspn(at, "0123456789abcdefABCDEF:");
    unsigned colons = 0;
    bool has_gap = false;

    for (size_t i = 0; i < length; i++) {
        colons += at[i] == ':';
        has_gap = has_gap || (at[i] == ':' && at[i + 1] == ':');
    }
    return (colons >= 4 || (has_gap && colons >= 2 && length > 4)) && !is_word_byte(at[length])
               ? length
               : 0;
}

/* "52-54-00-12-34-56"; a UUID has no six parts of two digits. */
static size_t match_dashed(const char *at)
{
    for (size_t i = 0; i < 17; i++) {
        if (i % 3 == 2 ? at[i] != '-' : !isxdigit((unsigned char)at[i])) {
            return 0;
        }
    }
    return is_word_byte(at[17]) || at[17] == '-' ? 0 : 17;
}

/* "enx525400123456": an interface that is named by its address. */
static size_t match_interface(const char *at)
{
    bool is_one = strncmp(at, "enx", 3) == 0 || strncmp(at, "wlx", 3) == 0 ||
                  strncmp(at, "wwx", 3) == 0;

    return is_one && strspn(at + 3, "0123456789abcdef") == 12 && !is_word_byte(at[15]) ? 15 : 0;
}

static size_t match_address(const char *text, const char *at, const char **in_place_out)
{
    size_t length = 0;

    if (at != text && (is_word_byte(at[-1]) || at[-1] == '.')) {
        return 0;
    }
    *in_place_out = "INTERFACE";
    length = match_interface(at);
    if (length == 0 && isxdigit((unsigned char)at[0])) {
        *in_place_out = "ADDRESS";
        length = match_ip4(at);
        length = length != 0 ? length : match_hardware(at);
        length = length != 0 ? length : match_dashed(at);
    }
    return length;
}

static size_t match(const struct words *words, const char *text, const char *at,
                    const char **in_place_out)
{
    size_t length = match_word(words, text, at, in_place_out);

    if (length == 0) {
        *in_place_out = "/home/USER";
        length = match_home(at);
    }
    return length != 0 ? length : match_address(text, at, in_place_out);
}

/* A text without it; NULL: no memory. */
static char *redact_text(const struct words *words, const char *text)
{
    struct ds_accel__text out = {0};
    const char *in_place = "";

    ds_accel__text_add(&out, "%s", "");
    for (const char *at = text; *at != '\0';) {
        size_t length = match(words, text, at, &in_place);

        if (length != 0) {
            ds_accel__text_add(&out, "%s", in_place);
            at += length;
        } else {
            ds_accel__text_add_bytes(&out, at, 1);
            at++;
        }
    }
    return ds_accel__text_take(&out);
}

/* A copy without it: parts of the tree may be the configuration's own. NULL: no memory. */
static json_t *redact(const struct words *words, json_t *value)
{
    json_t *copy = NULL;
    const char *key;
    json_t *member;
    size_t i;
    bool failed = false;

    if (json_is_string(value)) {
        char *text = redact_text(words, json_string_value(value));

        copy = text != NULL ? ds_accel__json_text(text) : NULL;
        free(text);
        return copy;
    }
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, member)
        {
            failed = json_array_append_new(copy, redact(words, member)) != 0 || failed;
        }
    } else if (json_is_object(value)) {
        copy = json_object();
        json_object_foreach(value, key, member)
        {
            ds_accel__json_set(copy, key, redact(words, member), &failed);
        }
    } else {
        return json_incref(value);
    }
    if (failed) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

int32_t ds_accel__redact(json_t **tree)
{
    struct words words;
    json_t *copy;

    find_words(&words);
    copy = redact(&words, *tree);
    json_decref(*tree);
    *tree = copy;
    return copy != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* ---- the bundle ----------------------------------------------------------------------------- */

json_t *ds_accel__machine_tree(const ds_accel_t *context)
{
    struct utsname names;
    bool is_known = context->recording == NULL && uname(&names) == 0;
    bool failed = false;
    json_t *tree = json_object();
    json_t *root = ds_accel__json_text(context->machine_root);

    ds_accel__json_set(tree, "system", ds_accel__json_text(is_known ? names.sysname : ""), &failed);
    ds_accel__json_set(tree, "release", ds_accel__json_text(is_known ? names.release : ""),
                       &failed);
    ds_accel__json_set(tree, "architecture", ds_accel__json_text(is_known ? names.machine : ""),
                       &failed);
    ds_accel__json_set(tree, "host", ds_accel__json_text(is_known ? names.nodename : ""), &failed);
    ds_accel__json_set(tree, "root", root, &failed);
    ds_accel__json_set(tree, "recorded", json_boolean(context->recording != NULL), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}
