/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as the manifest of a cache of ops. */
#include "fuzz.h"

#include "base/json.h"
#include "base/text.h"
#include "ops/manifest.h"

#include <string.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A directory that does not exist: no header is here. */
static const struct ds_accel__recipe recipe = {
    .name = (char *)"tiny", .op = "tiny", .source_dir = (char *)"/nonexistent/fuzz"};

static bool is_digest(const char *text, size_t digits)
{
    return strlen(text) == digits && text[strspn(text, "0123456789abcdef")] == '\0';
}

/* Check an entry; returns whether no header of it can be here: a path that is too long is no path
 * of a missing file. */
static bool check_entry(const json_t *entry)
{
    const json_t *headers = json_object_get(entry, "headers");
    bool is_below = true;

    FUZZ_CHECK(is_digest(ds_accel__json_string(entry, "key"), DS_ACCEL__KEY_DIGITS));
    FUZZ_CHECK(is_digest(ds_accel__json_string(entry, "toolchain"), 64));
    FUZZ_CHECK(is_digest(ds_accel__json_string(entry, "sha256"), 64));
    FUZZ_CHECK(json_is_array(headers));
    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t *header = json_array_get(headers, i);
        const char *name = json_string_value(json_array_get(header, 0));

        FUZZ_CHECK(name != NULL && is_digest(json_string_value(json_array_get(header, 1)), 64));
        is_below = is_below && name[0] != '/' && strlen(name) < 1024;
    }
    return is_below;
}

/* Without a compiler, the headers that are missing here do not count: the entries
 * match one by one. */
static void check_match(const json_t *manifest)
{
    const json_t *entries = json_object_get(manifest, "entries");
    const json_t *first = json_array_get(entries, 0);
    const json_t *found = NULL;

    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);

        if (!json_is_true(json_object_get(entry, "specific"))) {
            FUZZ_CHECK(ds_accel__manifest_match(manifest, &recipe, NULL, &found) >= 0);
            FUZZ_CHECK(found == entry);
        }
    }
    FUZZ_CHECK(ds_accel__manifest_match(manifest, &recipe, NULL, &found) >= 0);
    FUZZ_CHECK(found == NULL);
    if (first == NULL) {
        return;
    }
    FUZZ_CHECK(ds_accel__manifest_match(manifest, &recipe,
                                        ds_accel__json_string(first, "toolchain"), &found) >= 0);
    FUZZ_CHECK(found == NULL || json_array_size(json_object_get(found, "headers")) == 0);
    FUZZ_CHECK(found == NULL || strcmp(ds_accel__json_string(found, "toolchain"),
                                       ds_accel__json_string(first, "toolchain")) == 0);
}

/* Add an entry, and read what is written then. */
static void check_add(json_t *manifest)
{
    static char *const no_headers[] = {NULL};
    const json_t *entries = json_object_get(manifest, "entries");
    struct ds_accel__text text = {0};
    json_t *entry = NULL;
    json_t *again = NULL;
    bool failed = false;

    FUZZ_CHECK(ds_accel__manifest_entry(&recipe, ds_accel__json_string(manifest, "recipe"), DIGEST,
                                        no_headers, &entry) >= 0);
    ds_accel__json_set(entry, "sha256", json_string(DIGEST), &failed);
    FUZZ_CHECK(!failed && ds_accel__manifest_add(manifest, entry));
    FUZZ_CHECK(json_array_get(entries, 0) == entry && json_array_size(entries) <= 16);
    for (size_t i = 1; i < json_array_size(entries); i++) {
        FUZZ_CHECK(strcmp(ds_accel__json_string(json_array_get(entries, i), "key"),
                          ds_accel__json_string(entry, "key")) != 0);
    }
    ds_accel__text_add_json(&text, manifest, JSON_INDENT(1));
    FUZZ_CHECK(ds_accel__manifest_parse(text.data, text.size_bytes,
                                        ds_accel__json_string(manifest, "recipe"), &again) >= 0);
    FUZZ_CHECK(again != NULL && json_equal(again, manifest));
    json_decref(again);
    ds_accel__text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *manifest = NULL;
    json_t *other = NULL;
    const json_t *entries;
    bool is_below = true;

    FUZZ_CHECK(ds_accel__manifest_parse((const char *)data, size, NULL, &manifest) >= 0);
    if (manifest == NULL) {
        return 0;
    }
    FUZZ_CHECK(is_digest(ds_accel__json_string(manifest, "recipe"), 64));
    FUZZ_CHECK(ds_accel__manifest_parse((const char *)data, size, "none", &other) >= 0);
    FUZZ_CHECK(other == NULL);
    entries = json_object_get(manifest, "entries");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        is_below = check_entry(json_array_get(entries, i)) && is_below;
    }
    if (is_below) {
        check_match(manifest);
    }
    check_add(manifest);
    json_decref(manifest);
    return 0;
}
