/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stores the merged configuration next to the cached verdicts: parsing and checking the files is
 * the largest part of a start, and the files rarely change. A snapshot is valid for exactly the
 * files from which it was made (path, device, inode, size, times), and only if no file had changed
 * in the last two seconds, so that a second change within one clock tick is not missed. Callers
 * that need the origin of a value read the files nevertheless (ds_accel__config_read()).
 *
 * Building a tree takes longer than reading its bytes, and detection needs a third of the tree. The
 * facts of a backend that detection does not read (late facts) are therefore stored after its other
 * facts (early facts), and are skipped until they are needed (ds_accel__config_get()). Then those
 * of the backend in question are parsed, and the whole only for a caller that walks all backends.
 *
 *     value   := 'n' | 't' | 'f' | 'i' int64 | 'r' double | 's' text | 'a' count value*
 *              | 'o' members | 'p' members size members      a backend; the size bytes contain the
 *                                                            late facts
 *     members := count (text value)*
 *     text    := length bytes NUL                             count, length, size: uint32_t
 */
#include "config/snapshot.h"
#include "base/text.h"
#include "config/config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define FORMAT 1u
#define DEPTH_LIMIT 16
#define SETTLED_S 2 /* a younger file may change again without a new time stamp */
static const char magic[8] = "DSCONFG";

struct head {
    char magic[8];
    uint64_t identity;
    uint64_t size_bytes; /* size of the data after this head */
    uint64_t checksum;   /* hash of the data after this head */
};

/*
 * The early facts: facts that detection reads, and facts without which later calls would use a
 * wrong default if memory for parsing the late facts is exhausted.
 */
static const char *const early_keys[] = {
    "pci",
    "device_nodes",
    "other_device_nodes",
    "visible_devices_envs",
    "export_envs",
    "env",
    "options",
    "defers_to",
    "demand_only",
    "tolerate",
    "indexed_device_names",
};

bool ds_accel__snapshot_is_early(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(early_keys); i++) {
        if (strcmp(early_keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_count(struct ds_accel__text *text, size_t count)
{
    uint32_t size = (uint32_t)count;

    assert(count <= UINT32_MAX);
    ds_accel__text_add_bytes(text, &size, sizeof(size));
}

static void put_text(struct ds_accel__text *text, const char *value, size_t length)
{
    assert(value[length] == '\0'); /* the NUL is written, too */
    put_count(text, length);
    ds_accel__text_add_bytes(text, value, length + 1);
}

static void put_head(struct ds_accel__text *text, char tag, size_t count)
{
    ds_accel__text_add_bytes(text, &tag, 1);
    put_count(text, count);
}

static void put_value(struct ds_accel__text *text, json_t *value)
{
    json_int_t integer = json_integer_value(value);
    double real = json_real_value(value);
    const char *key;
    json_t *member;

    switch (json_typeof(value)) {
    case JSON_NULL:
        ds_accel__text_add_bytes(text, "n", 1);
        break;
    case JSON_TRUE:
        ds_accel__text_add_bytes(text, "t", 1);
        break;
    case JSON_FALSE:
        ds_accel__text_add_bytes(text, "f", 1);
        break;
    case JSON_INTEGER:
        ds_accel__text_add_bytes(text, "i", 1);
        ds_accel__text_add_bytes(text, &integer, sizeof(integer));
        break;
    case JSON_REAL:
        ds_accel__text_add_bytes(text, "r", 1);
        ds_accel__text_add_bytes(text, &real, sizeof(real));
        break;
    case JSON_STRING:
        ds_accel__text_add_bytes(text, "s", 1);
        put_text(text, json_string_value(value), json_string_length(value));
        break;
    case JSON_ARRAY:
        put_head(text, 'a', json_array_size(value));
        for (size_t i = 0; i < json_array_size(value); i++) {
            put_value(text, json_array_get(value, i));
        }
        break;
    case JSON_OBJECT:
        put_head(text, 'o', json_object_size(value));
        json_object_foreach(value, key, member)
        {
            put_text(text, key, strlen(key));
            put_value(text, member);
        }
        break;
    }
}

/* Write the early members of a backend, or its other members. */
static void put_members(struct ds_accel__text *text, json_t *backend, bool is_early)
{
    const char *key;
    json_t *member;

    json_object_foreach(backend, key, member)
    {
        if (ds_accel__snapshot_is_early(key) == is_early) {
            put_text(text, key, strlen(key));
            put_value(text, member);
        }
    }
}

static void put_backend(struct ds_accel__text *text, json_t *backend)
{
    const char *key;
    json_t *ignored;
    size_t early = 0;
    size_t begin;
    uint32_t size;

    json_object_foreach(backend, key, ignored)
    {
        early += ds_accel__snapshot_is_early(key);
    }
    put_head(text, 'p', early);
    put_members(text, backend, true);
    put_count(text, 0); /* placeholder for the size */
    begin = text->size_bytes;
    put_count(text, json_object_size(backend) - early);
    put_members(text, backend, false);
    if (!text->failed) {
        assert(begin >= sizeof(size) && begin < text->size_bytes);
        size = (uint32_t)(text->size_bytes - begin);
        memcpy(text->data + begin - sizeof(size), &size, sizeof(size));
    }
}

static void put_backends(struct ds_accel__text *text, json_t *backends)
{
    const char *name;
    json_t *backend;

    put_head(text, 'o', json_object_size(backends));
    json_object_foreach(backends, name, backend)
    {
        put_text(text, name, strlen(name));
        if (json_is_object(backend)) {
            put_backend(text, backend);
        } else {
            put_value(text, backend);
        }
    }
}

static void put_tree(struct ds_accel__text *text, json_t *tree)
{
    const char *key;
    json_t *member;

    put_head(text, 'o', json_object_size(tree));
    json_object_foreach(tree, key, member)
    {
        put_text(text, key, strlen(key));
        if (strcmp(key, "backends") == 0 && json_is_object(member)) {
            put_backends(text, member);
        } else {
            put_value(text, member);
        }
    }
}

int32_t ds_accel__snapshot_format(json_t *tree, uint64_t identity, struct ds_accel__text *text)
{
    struct head head = {.identity = identity};

    assert(text->size_bytes == 0); /* the header is overwritten later, at offset 0 */
    assert(identity != 0 && json_is_object(tree));
    memcpy(head.magic, magic, sizeof(magic));
    ds_accel__text_add_bytes(text, &head, sizeof(head));
    put_tree(text, tree);
    if (text->failed) {
        return ds_accel__no_memory();
    }
    head.size_bytes = text->size_bytes - sizeof(head);
    head.checksum = ds_accel__hash(text->data + sizeof(head), head.size_bytes, FORMAT);
    memcpy(text->data, &head, sizeof(head));
    return DS_ACCEL_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct input {
    const char *at;
    size_t left;
    bool is_early; /* do not parse the late facts */
};

static const void *take(struct input *input, size_t size)
{
    const char *at = input->at;

    if (size > input->left) {
        return NULL;
    }
    input->at += size;
    input->left -= size;
    return at;
}

static bool take_count(struct input *input, uint32_t *count)
{
    const void *bytes = take(input, sizeof(*count));

    if (bytes != NULL) {
        memcpy(count, bytes, sizeof(*count));
    }
    return bytes != NULL;
}

/* Read a text that is terminated by NUL and contains no other NUL. */
static const char *take_text(struct input *input, size_t *length_out)
{
    uint32_t length;
    const char *text = take_count(input, &length) ? take(input, (size_t)length + 1) : NULL;

    if (text == NULL || memchr(text, '\0', (size_t)length + 1) != text + length) {
        return NULL;
    }
    *length_out = length;
    return text;
}

static json_t *take_value(struct input *input, int depth);

static json_t *take_array(struct input *input, int depth)
{
    json_t *array = json_array();
    uint32_t count;

    if (array == NULL || !take_count(input, &count)) {
        json_decref(array);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        json_t *value = take_value(input, depth + 1);

        if (value == NULL || json_array_append_new(array, value) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static bool take_members(struct input *input, json_t *object, int depth)
{
    uint32_t count;

    if (!take_count(input, &count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t length;
        const char *key = take_text(input, &length);
        json_t *value = key != NULL ? take_value(input, depth + 1) : NULL;

        /* Keys and texts were checked to be UTF-8 when the files were read. */
        if (value == NULL || json_object_set_new_nocheck(object, key, value) != 0) {
            return false;
        }
    }
    return true;
}

static bool take_later(struct input *input, json_t *object, int depth)
{
    uint32_t size;
    size_t left;

    if (!take_count(input, &size) || size > input->left) {
        return false;
    }
    left = input->left - size;
    return input->is_early ? take(input, size) != NULL
                           : take_members(input, object, depth) && input->left == left;
}

/* Read an object. The object of a backend (tag 'p') is followed by its late facts. */
static json_t *take_object(struct input *input, char tag, int depth)
{
    json_t *object = json_object();

    if (object == NULL || !take_members(input, object, depth) ||
        (tag == 'p' && !take_later(input, object, depth))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *take_scalar(struct input *input, char tag)
{
    json_int_t integer = 0;
    double real = 0;
    size_t length = 0;
    const void *bytes;

    switch (tag) {
    case 'n':
        return json_null();
    case 't':
        return json_true();
    case 'f':
        return json_false();
    case 'i':
        bytes = take(input, sizeof(integer));
        if (bytes != NULL) {
            memcpy(&integer, bytes, sizeof(integer));
        }
        return bytes != NULL ? json_integer(integer) : NULL;
    case 'r':
        bytes = take(input, sizeof(real));
        if (bytes != NULL) {
            memcpy(&real, bytes, sizeof(real));
        }
        return bytes != NULL ? json_real(real) : NULL;
    case 's':
        bytes = take_text(input, &length);
        return bytes != NULL ? json_stringn_nocheck(bytes, length) : NULL;
    default:
        return NULL;
    }
}

static json_t *take_value(struct input *input, int depth)
{
    const char *tag = take(input, 1);

    if (tag == NULL || depth > DEPTH_LIMIT) {
        return NULL;
    }
    if (*tag == 'a') {
        return take_array(input, depth);
    }
    return *tag == 'o' || *tag == 'p' ? take_object(input, *tag, depth) : take_scalar(input, *tag);
}

json_t *ds_accel__snapshot_parse(const void *data, size_t size_bytes, uint64_t identity,
                                 bool is_early)
{
    struct input input = {.at = data, .left = size_bytes, .is_early = is_early};
    struct head head;
    const void *bytes = take(&input, sizeof(head));
    json_t *tree;

    if (bytes == NULL) {
        return NULL;
    }
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.magic, magic, sizeof(magic)) != 0 || head.identity != identity ||
        head.size_bytes != input.left ||
        head.checksum != ds_accel__hash(input.at, input.left, FORMAT)) {
        return NULL;
    }
    tree = take_value(&input, 0);
    if (tree != NULL && (input.left != 0 || !json_is_object(tree))) {
        json_decref(tree);
        tree = NULL;
    }
    return tree;
}

/* ---- late facts of one backend -------------------------------------------------------------- */

static bool skip_value(struct input *input, int depth);

static bool skip_members(struct input *input, int depth)
{
    uint32_t count;
    size_t length;

    if (!take_count(input, &count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (take_text(input, &length) == NULL || !skip_value(input, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool skip_array(struct input *input, int depth)
{
    uint32_t count;

    if (!take_count(input, &count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!skip_value(input, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool skip_value(struct input *input, int depth)
{
    const char *tag = take(input, 1);
    uint32_t size;
    size_t length;

    if (tag == NULL || depth > DEPTH_LIMIT) {
        return false;
    }
    switch (*tag) {
    case 'n':
    case 't':
    case 'f':
        return true;
    case 'i':
        return take(input, sizeof(json_int_t)) != NULL;
    case 'r':
        return take(input, sizeof(double)) != NULL;
    case 's':
        return take_text(input, &length) != NULL;
    case 'a':
        return skip_array(input, depth);
    case 'o':
        return skip_members(input, depth);
    case 'p':
        return skip_members(input, depth) && take_count(input, &size) && take(input, size) != NULL;
    default:
        return false;
    }
}

static bool take_tag(struct input *input, char tag)
{
    const char *taken = take(input, 1);

    return taken != NULL && *taken == tag;
}

/* Skip the members of an object in front of the value of a key. False if there is no such key. */
static bool find_member(struct input *input, const char *key, int depth)
{
    uint32_t count;

    if (!take_tag(input, 'o') || !take_count(input, &count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t length;
        const char *name = take_text(input, &length);

        if (name == NULL || strcmp(name, key) == 0) {
            return name != NULL;
        }
        if (!skip_value(input, depth + 1)) {
            return false;
        }
    }
    return false;
}

/* Make an object whose only member is the value, which is consumed. NULL: memory is exhausted. */
static json_t *wrap(const char *key, json_t *value)
{
    json_t *object = json_object();

    if (json_object_set_new_nocheck(object, key, value) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *ds_accel__snapshot_late(const void *data, size_t size_bytes, const char *backend)
{
    struct input input = {.at = data, .left = size_bytes};
    json_t *facts = json_object();

    if (facts == NULL) {
        return NULL;
    }
    if (take(&input, sizeof(struct head)) != NULL && find_member(&input, "backends", 0) &&
        find_member(&input, backend, 1) && take_tag(&input, 'p') &&
        (!skip_members(&input, 2) || !take_later(&input, facts, 2))) {
        json_decref(facts);
        return NULL;
    }
    return wrap("backends", wrap(backend, facts));
}

/* ---- identity ------------------------------------------------------------------------------- */

uint64_t ds_accel__snapshot_identify(const struct ds_accel__config *config, bool *settled_out)
{
    uint64_t identity = ds_accel__hash_text(DS_ACCEL_VERSION, FORMAT);
    time_t now = time(NULL);

    /*
     * The list of early facts is part of the identity, because builds of the same version may
     * differ in it.
     */
    for (size_t i = 0; i < ARRAY_SIZE(early_keys); i++) {
        identity = ds_accel__hash_text(early_keys[i], identity);
    }
    *settled_out = true;
    for (size_t i = 0; i < config->file_count; i++) {
        const struct ds_accel__config_file *file = &config->files[i];
        struct stat info;
        struct {
            uint64_t layer, device, inode, size;
            struct timespec modified, changed;
        } parts;

        if (file->is_ops) {
            continue;
        }
        if (stat(file->path, &info) != 0) {
            return 0;
        }
        memset(&parts, 0, sizeof(parts));
        parts.layer = file->layer;
        parts.device = info.st_dev;
        parts.inode = info.st_ino;
        parts.size = (uint64_t)info.st_size;
        parts.modified = info.st_mtim;
        parts.changed = info.st_ctim;
        identity = ds_accel__hash_text(file->path, identity);
        identity = ds_accel__hash(&parts, sizeof(parts), identity);
        *settled_out = *settled_out && info.st_ctim.tv_sec < now - SETTLED_S &&
                       info.st_mtim.tv_sec < now - SETTLED_S;
    }
    return identity != 0 ? identity : 1;
}
