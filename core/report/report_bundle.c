/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The support bundle: the reports about backends, machine and configuration in one tree, for remote
 * support. Text that identifies the user or the machine (names of host and user, home directories,
 * network addresses) is replaced in each report, unless the user asks for the unredacted bundle.
 */
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "report/report.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* ---- texts that identify a user or machine -------------------------------------------------- */

struct word {
    char word[256];
    char in_place[256];
};

struct words {
    struct word *words;
    size_t count;
    bool failed; /* out of memory: a word is missing */
};

static bool has_word(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->words[i].word, word) == 0) {
            return true;
        }
    }
    return false;
}

static void add_word(struct words *words, const char *text, const char *in_place)
{
    struct word word;
    struct word *larger;

    if (text == NULL || strlen(text) < 3) {
        return;
    }
    ds_accel__copy(word.word, sizeof(word.word), text);
    ds_accel__copy(word.in_place, sizeof(word.in_place), in_place);
    if (has_word(words, word.word)) {
        return;
    }
    larger = realloc(words->words, (words->count + 1) * sizeof(*larger));
    if (larger == NULL) {
        words->failed = true;
        return;
    }
    words->words = larger;
    larger[words->count++] = word;
}

/* Add a home directory, without a trailing slash. /root and relative paths are left out. */
static void add_home(struct words *words, const char *home)
{
    char directory[256];
    size_t length;

    ds_accel__copy(directory, sizeof(directory), home);
    for (length = strlen(directory); length > 1 && directory[length - 1] == '/'; length--) {
        directory[length - 1] = '\0';
    }
    if (directory[0] == '/' && strcmp(directory, "/root") != 0) {
        add_word(words, directory, "~");
    }
}

static void add_host(struct words *words, const char *name)
{
    char host[256];

    if (name != NULL && strcmp(name, "localhost") != 0) {
        add_word(words, name, "HOST");
        ds_accel__copy(host, sizeof(host), name);
        host[strcspn(host, ".")] = '\0';
        add_word(words, host, "HOST");
    }
}

/* Add a user name. "root" and "user" are left out, because they identify nobody. */
static void add_user(struct words *words, const char *user)
{
    if (user != NULL && strcmp(user, "root") != 0 && strcmp(user, "user") != 0) {
        add_word(words, user, "USER");
    }
}

/* Add the names in a tree of ds_accel__who_tree(). The home directory is added before the users,
 * because it contains a user's name. */
static void add_who(struct words *words, const json_t *who)
{
    const json_t *users = json_object_get(who, "users");

    add_home(words, json_string_value(json_object_get(who, "home")));
    add_host(words, json_string_value(json_object_get(who, "host")));
    for (size_t i = 0; i < json_array_size(users); i++) {
        add_user(words, json_string_value(json_array_get(users, i)));
    }
}

json_t *ds_accel__who_tree(void)
{
    static const char *const users[] = {"USER", "LOGNAME", "SUDO_USER"};
    const char *home = ds_accel__env_job("HOME");
    json_t *array = json_array();
    json_t *tree = json_object();
    struct utsname names;
    bool failed = false;

    ds_accel__json_set(tree, "host", ds_accel__json_text(uname(&names) == 0 ? names.nodename : ""),
                       &failed);
    ds_accel__json_set(tree, "home", ds_accel__json_text(home != NULL ? home : ""), &failed);
    for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
        const char *user = ds_accel__env_job(users[i]);

        failed = (user != NULL && json_array_append_new(array, ds_accel__json_text(user)) != 0) ||
                 failed;
    }
    ds_accel__json_set(tree, "users", array, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

static bool is_word_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* If a listed word begins at this position and is not part of a longer word, return its length and
 * set *in_place_out to its replacement; else return 0. */
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

/* The length of a home directory such as "/home/harry" at this position; 0 if there is none.
 * Matches the directories of all users, because a plugin may be installed in another user's
 * directory. */
static size_t match_home(const char *at)
{
    size_t length = strncmp(at, "/home/", 6) == 0 ? strcspn(at + 6, "/ \t\n\"',:;") : 0;

    return length != 0 ? 6 + length : 0;
}

/* Add the user name of each home directory in a text to words, so that the name is replaced
 * everywhere in the bundle, not only in paths. */
static void add_homes_of_text(struct words *words, const char *text)
{
    for (const char *at = strstr(text, "/home/"); at != NULL; at = strstr(at + 6, "/home/")) {
        char name[256];
        size_t length = match_home(at);

        if (length != 0 && length - 6 < sizeof(name)) {
            memcpy(name, at + 6, length - 6);
            name[length - 6] = '\0';
            add_user(words, name);
        }
    }
}

static void add_homes(struct words *words, json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(value)) {
        add_homes_of_text(words, json_string_value(value));
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            add_homes(words, member);
        }
    } else {
        json_object_foreach(value, key, member)
        {
            add_homes(words, member);
        }
    }
}

/* The length of an IPv4 address such as "192.0.2.1"; 0: none. Version numbers have fewer parts. */
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
    /* A dot after the address may be the end of a sentence. */
    return is_word_byte(end[0]) || (end[0] == '.' && is_word_byte(end[1])) ? 0 : (size_t)(end - at);
}

/* The length of a MAC or IPv6 address ("52:54:00:12:34:56", "fe80::5054:ff:fe12:3456"); 0: none. A
 * PCI address does not match, because it has only two colons, which are not adjacent. */
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

/* The length of a MAC address with dashes ("52-54-00-12-34-56"); 0: none. A UUID does not match,
 * because its parts are longer. */
static size_t match_dashed(const char *at)
{
    for (size_t i = 0; i < 17; i++) {
        if (i % 3 == 2 ? at[i] != '-' : !isxdigit((unsigned char)at[i])) {
            return 0;
        }
    }
    return is_word_byte(at[17]) || at[17] == '-' ? 0 : 17;
}

/* The length of a network interface name that contains its MAC address ("enx525400123456"); 0:
 * none. */
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

/* Return a copy of a text in which listed words, home directories and addresses are replaced; NULL:
 * out of memory. */
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

/* A redacted copy of a tree. The tree itself is not changed, because parts of it may belong to the
 * configuration. NULL: out of memory. */
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

/* Add the paths of this run's explicit configuration files below the home directory, which need not
 * be below /home. */
static void add_named_files(struct words *words, const struct ds_accel__config *config,
                            const char *home)
{
    size_t length = strlen(home);

    while (length > 1 && home[length - 1] == '/') {
        length--;
    }
    for (size_t i = 0; i < config->file_count && length > 1; i++) {
        const char *path = config->files[i].path;
        char in_place[256];

        if (config->files[i].layer == DS_ACCEL__CONFIG_LAYER_EXPLICIT &&
            strncmp(path, home, length) == 0 && path[length] == '/') {
            snprintf(in_place, sizeof(in_place), "~%.250s", path + length);
            add_word(words, path, in_place);
        }
    }
}

/* Redact the member key of a tree; key NULL: redact the whole tree, and set *tree to NULL if out of
 * memory. */
static int32_t redact_tree(const struct words *words, const char *key, json_t **tree)
{
    json_t *value = key != NULL ? json_object_get(*tree, key) : *tree;
    json_t *copy = words->failed ? NULL : redact(words, value);

    if (key != NULL) {
        return copy != NULL && json_object_set_new(*tree, key, copy) == 0 ? DS_ACCEL_OK
                                                                          : ds_accel__no_memory();
    }
    json_decref(*tree);
    *tree = copy;
    return copy != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/*
 * Redact a bundle about a recorded machine: the names of the recorded host and user, and in its
 * report config_env, which lists the environment of this process, also the names in now. If the
 * version that made the recording stored no names of host and user, the only names that are
 * redacted are user names found in paths below /home.
 */
static int32_t redact_recorded(const ds_accel_t *context, const json_t *now, json_t **tree)
{
    const char *home = json_string_value(json_object_get(now, "home"));
    struct words words = {.count = 0};
    int32_t status;

    add_named_files(&words, &context->config, home != NULL ? home : "");
    add_who(&words, json_object_get(context->recording, "who"));
    add_homes(&words, context->recording);
    status = redact_tree(&words, NULL, tree);
    if (status >= 0) {
        add_who(&words, now);
        status = redact_tree(&words, "config_env", tree);
    }
    free(words.words);
    return status;
}

static int32_t redact_report(const ds_accel_t *context, json_t **tree)
{
    struct words words = {.count = 0};
    json_t *now = ds_accel__who_tree();
    int32_t status = now != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    if (status >= 0 && context->recording != NULL) {
        status = redact_recorded(context, now, tree);
    } else if (status >= 0) {
        add_who(&words, now);
        status = redact_tree(&words, NULL, tree);
    }
    free(words.words);
    json_decref(now);
    return status;
}

/* ---- the machine ---------------------------------------------------------------------------- */

static json_t *machine_tree(const ds_accel_t *context)
{
    const json_t *who = json_object_get(context->recording, "who");
    const char *host = json_string_value(json_object_get(who, "host"));
    struct utsname names;
    bool is_known = context->recording == NULL && uname(&names) == 0;
    bool failed = false;
    json_t *tree = json_object();
    json_t *root = ds_accel__json_text(context->machine_root);

    host = host != NULL ? host : "";
    ds_accel__json_set(tree, "system", ds_accel__json_text(is_known ? names.sysname : ""), &failed);
    ds_accel__json_set(tree, "release", ds_accel__json_text(is_known ? names.release : ""),
                       &failed);
    ds_accel__json_set(tree, "architecture", ds_accel__json_text(is_known ? names.machine : ""),
                       &failed);
    ds_accel__json_set(tree, "host", ds_accel__json_text(is_known ? names.nodename : host),
                       &failed);
    ds_accel__json_set(tree, "root", root, &failed);
    ds_accel__json_set(tree, "recorded", json_boolean(context->recording != NULL), &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* ---- the bundle ----------------------------------------------------------------------------- */

/* Add a report to the bundle as the member key. */
static int32_t add_report(ds_accel_t *context, json_t *bundle, const char *key, uint32_t report)
{
    bool failed = false;
    json_t *tree;
    int32_t status = ds_accel__report_tree(context, report, NULL, DS_ACCEL_FORMAT_JSON, &tree);

    if (status >= 0) {
        ds_accel__json_set(bundle, key, tree, &failed);
    }
    return failed ? ds_accel__no_memory() : status;
}

/* Add a report that covers a single backend: the member key is an array with one report for each
 * usable backend. */
static int32_t add_reports(ds_accel_t *context, json_t *bundle, const char *key, uint32_t report)
{
    bool failed = false;
    json_t *array = json_array();
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < context->registry.count && status >= 0; i++) {
        const struct ds_accel__candidate *candidate = context->registry.candidates[i];
        json_t *tree;

        if (candidate->state == DS_ACCEL_STATE_AVAILABLE ||
            candidate->state == DS_ACCEL_STATE_SELECTED) {
            status = ds_accel__report_tree(context, report, candidate->name, DS_ACCEL_FORMAT_JSON,
                                           &tree);
            if (status >= 0) {
                failed = json_array_append_new(array, tree) != 0 || failed;
            }
        }
    }
    ds_accel__json_set(bundle, key, array, &failed);
    return failed ? ds_accel__no_memory() : status;
}

int32_t ds_accel__report_bundle(ds_accel_t *context, uint32_t format, json_t **tree_out)
{
    static const struct {
        const char *key;
        uint32_t report;
        bool is_of_each; /* one report per usable backend */
    } parts[] = {
        {"detect", DS_ACCEL_REPORT_DETECT, false},
        {"list", DS_ACCEL_REPORT_LIST, false},
        {"explain", DS_ACCEL_REPORT_EXPLAIN, false},
        {"info", DS_ACCEL_REPORT_INFO, true},
        {"env", DS_ACCEL_REPORT_ENV, true},
        {"doctor", DS_ACCEL_REPORT_DOCTOR, false},
        {"topo", DS_ACCEL_REPORT_TOPO, false},
        {"config", DS_ACCEL_REPORT_CONFIG, false},
        {"config_env", DS_ACCEL_REPORT_CONFIG_ENV, false},
    };
    bool failed = false;
    json_t *tree = json_object();
    int32_t status;

    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "version", ds_accel__json_text(DS_ACCEL_VERSION), &failed);
    ds_accel__json_set(tree, "redacted", json_boolean((format & DS_ACCEL_FORMAT_UNREDACTED) == 0),
                       &failed);
    ds_accel__json_set(tree, "machine", machine_tree(context), &failed);
    status = failed ? ds_accel__no_memory() : DS_ACCEL_OK;
    for (size_t i = 0; i < ARRAY_SIZE(parts) && status >= 0; i++) {
        status = parts[i].is_of_each ? add_reports(context, tree, parts[i].key, parts[i].report)
                                     : add_report(context, tree, parts[i].key, parts[i].report);
    }
    if (status >= 0 && (format & DS_ACCEL_FORMAT_UNREDACTED) == 0) {
        const char *host =
            json_string_value(json_object_get(json_object_get(tree, "machine"), "host"));
        bool has_host = host != NULL && host[0] != '\0';

        status = redact_report(context, &tree);
        /* Replace even a host name that is too short for the word list. */
        if (status >= 0 && has_host) {
            ds_accel__json_set(json_object_get(tree, "machine"), "host",
                               ds_accel__json_text("HOST"), &failed);
            status = failed ? ds_accel__no_memory() : DS_ACCEL_OK;
        }
    }
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    *tree_out = tree;
    return DS_ACCEL_OK;
}
