/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary bytes as the stored configuration: unchanged, and with a valid head in front.
 */
#include "fuzz.h"

#include "base/text.h"
#include "config/snapshot.h"

#define IDENTITY UINT64_C(0x1d)

/* The layout that snapshot.c writes. */
struct head {
    char magic[8];
    uint64_t identity;
    uint64_t size_bytes;
    uint64_t checksum;
};

/* Check that the early part has what detection needs of a backend, and all other keys unchanged. */
static void check_early(const json_t *early, const json_t *tree)
{
    const json_t *backends = json_object_get(tree, "backends");
    const json_t *facts;
    const json_t *member;
    const char *name;
    const char *key;

    FUZZ_CHECK(json_object_size(early) == json_object_size(tree));
    json_object_foreach((json_t *)(uintptr_t)backends, name, facts)
    {
        const json_t *part = json_object_get(json_object_get(early, "backends"), name);

        FUZZ_CHECK(part != NULL);
        json_object_foreach((json_t *)(uintptr_t)facts, key, member)
        {
            FUZZ_CHECK((json_object_get(part, key) != NULL) == ds_accel__snapshot_is_early(key));
        }
    }
}

/* Check that the late part of each backend has all that the early part lacks, unchanged. */
static void check_late(const struct ds_accel__text *text, const json_t *tree)
{
    const json_t *backends = json_object_get(tree, "backends");
    const json_t *facts;
    const json_t *member;
    const char *name;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)backends, name, facts)
    {
        json_t *late = ds_accel__snapshot_late(text->data, text->size_bytes, name);
        const json_t *part = json_object_get(json_object_get(late, "backends"), name);
        size_t count = 0;

        FUZZ_CHECK(json_is_object(part));
        json_object_foreach((json_t *)(uintptr_t)facts, key, member)
        {
            const json_t *value = json_object_get(part, key);

            FUZZ_CHECK((value == NULL) == ds_accel__snapshot_is_early(key));
            FUZZ_CHECK(value == NULL || json_equal(value, member) == json_equal(member, member));
            count += value != NULL;
        }
        FUZZ_CHECK(json_object_size(part) == count);
        json_decref(late);
    }
}

/* Read late facts from a snapshot that may be damaged in them. */
static void read_late(const void *data, size_t size)
{
    json_t *early = ds_accel__snapshot_parse(data, size, IDENTITY, true);
    json_t *backends = json_object_get(early, "backends");
    const char *name;
    json_t *ignored;

    json_object_foreach(backends, name, ignored)
    {
        json_decref(ds_accel__snapshot_late(data, size, name));
    }
    if (early != NULL) {
        json_t *none = ds_accel__snapshot_late(data, size, "");

        FUZZ_CHECK(none == NULL || json_object_size(none) == 1);
        json_decref(none);
    }
    json_decref(early);
}

#define DEPTH_LIMIT 16

/* Check that the stored value is a configuration: of bounded depth, and without NUL in texts. */
static void check_tree(json_t *value, int depth)
{
    const char *key;
    json_t *member;

    FUZZ_CHECK(depth <= DEPTH_LIMIT);
    FUZZ_CHECK(!json_is_string(value) ||
               strlen(json_string_value(value)) == json_string_length(value));
    json_object_foreach(value, key, member)
    {
        check_tree(member, depth + 1);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        check_tree(json_array_get(value, i), depth + 1);
    }
}

static void parse(const void *data, size_t size)
{
    json_t *tree = ds_accel__snapshot_parse(data, size, IDENTITY, false);
    struct ds_accel__text text = {0};

    read_late(data, size);
    if (tree == NULL) {
        return;
    }
    FUZZ_CHECK(json_is_object(tree));
    check_tree(tree, 0);
    if (ds_accel__snapshot_format(tree, IDENTITY, &text) >= 0) {
        json_t *again = ds_accel__snapshot_parse(text.data, text.size_bytes, IDENTITY, false);
        json_t *early = ds_accel__snapshot_parse(text.data, text.size_bytes, IDENTITY, true);

        FUZZ_CHECK(again != NULL);
        check_early(early, tree);
        check_late(&text, tree);
        json_decref(early);
        /* NaN is not equal to itself, and is not JSON. */
        FUZZ_CHECK(json_equal(tree, again) == json_equal(tree, tree));
        json_decref(again);
    }
    ds_accel__text_clear(&text);
    json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head head = {.magic = "DSCONFG", .identity = IDENTITY, .size_bytes = size};
    uint8_t *sealed = malloc(sizeof(head) + size);

    parse(data, size);
    if (sealed != NULL) {
        memcpy(sealed + sizeof(head), data, size);
        head.checksum = ds_accel__hash(sealed + sizeof(head), size, 1);
        memcpy(sealed, &head, sizeof(head));
        parse(sealed, sizeof(head) + size);
        /* Flip one bit that the checksum covers: the file is then invalid. */
        if (size > 0) {
            json_t *tree;

            sealed[sizeof(head) + size / 2] ^= 1;
            tree = ds_accel__snapshot_parse(sealed, sizeof(head) + size, IDENTITY, false);
            FUZZ_CHECK(tree == NULL);
        }
    }
    free(sealed);
    return 0;
}
