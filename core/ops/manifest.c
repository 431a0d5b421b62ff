/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Manifests, as in ccache: which headers a compiler reads is known only after it ran, so a file is
 * found in two steps. What assembler and linker read (listed.c) is kept as headers are.
 *
 *     recipe, contents of the sources        -> name of the manifest
 *     entries of the manifest, the last one built first:
 *         the same compilers, and each header has the same contents here
 *                                            -> key, the name of the file
 *
 * Headers below the directory of the sources are relative to it, so that hosts agree that have it
 * elsewhere. A new header that now precedes one of the same name is not noticed.
 */
#include "ops/manifest.h"
#include "base/json.h"
#include "base/text.h"
#include "ops/digest.h"

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define ENTRY_LIMIT 16u
#define HEADER_LIMIT 65536u

/* ---- checking what was read ------------------------------------------------------------------ */

static bool is_digest(const json_t *value, size_t digits)
{
    const char *text = json_string_value(value);

    return text != NULL && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static bool is_header(const json_t *header)
{
    return json_is_array(header) && json_array_size(header) == 2 &&
           json_is_string(json_array_get(header, 0)) && is_digest(json_array_get(header, 1), 64);
}

static bool is_entry(const json_t *entry)
{
    const json_t *headers = json_object_get(entry, "headers");

    if (!json_is_object(entry) || !json_is_array(headers) ||
        json_array_size(headers) > HEADER_LIMIT ||
        !is_digest(json_object_get(entry, "key"), DS_ACCEL__KEY_DIGITS) ||
        !is_digest(json_object_get(entry, "toolchain"), 64) ||
        !is_digest(json_object_get(entry, "sha256"), 64)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(headers); i++) {
        if (!is_header(json_array_get(headers, i))) {
            return false;
        }
    }
    return true;
}

static bool is_entry_list(const json_t *entries)
{
    if (!json_is_array(entries)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(entries); i++) {
        if (!is_entry(json_array_get(entries, i))) {
            return false;
        }
    }
    return true;
}

int32_t ds_accel__manifest_parse(const char *text, size_t size_bytes, const char *recipe_digest,
                                 json_t **manifest_out)
{
    json_t *manifest;
    json_t *entries;
    json_error_t error;

    *manifest_out = NULL;
    if (!ds_accel__json_has_headroom(size_bytes)) {
        return ds_accel__no_memory();
    }
    manifest = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (manifest == NULL && json_error_code(&error) == json_error_out_of_memory) {
        return ds_accel__no_memory();
    }
    entries = json_object_get(manifest, "entries");
    if (json_integer_value(json_object_get(manifest, "version")) != VERSION ||
        !is_digest(json_object_get(manifest, "recipe"), 64) ||
        (recipe_digest != NULL &&
         strcmp(ds_accel__json_string(manifest, "recipe"), recipe_digest) != 0) ||
        !is_entry_list(entries)) {
        json_decref(manifest);
        return DS_ACCEL_OK;
    }
    *manifest_out = manifest;
    return DS_ACCEL_OK;
}

json_t *ds_accel__manifest_create(const char *kernel, const char *recipe_digest)
{
    json_t *manifest = json_object();
    bool failed = false;

    ds_accel__json_set(manifest, "version", json_integer(VERSION), &failed);
    ds_accel__json_set(manifest, "kernel", ds_accel__json_text(kernel), &failed);
    ds_accel__json_set(manifest, "recipe", ds_accel__json_text(recipe_digest), &failed);
    ds_accel__json_set(manifest, "entries", json_array(), &failed);
    if (failed) {
        json_decref(manifest);
        return NULL;
    }
    return manifest;
}

/* ---- headers --------------------------------------------------------------------------------- */

/*
 * Digest of a header. Those beside the sources are read each time, as sources are; the others are
 * installed, and their digests are remembered.
 */
static int32_t header_digest(const struct ds_accel__recipe *recipe, const char *name,
                             char digest_out[65])
{
    char *path;
    int32_t status;

    if (name[0] == '/') {
        return ds_accel__digest_file(name, digest_out);
    }
    path = ds_accel__join(recipe->source_dir, '/', name);
    status = path != NULL ? ds_accel__source_digest(path, digest_out) : ds_accel__no_memory();
    free(path);
    return status;
}

/* Compare a header. *result_out: 1 the same, 0 another one, -1 it is not here. */
static int32_t compare_header(const struct ds_accel__recipe *recipe, const json_t *header,
                              int *result_out)
{
    char digest[65];
    int32_t status = header_digest(recipe, json_string_value(json_array_get(header, 0)), digest);

    *result_out = status == DS_ACCEL_ERR_NOT_FOUND ? -1
                  : status < 0                     ? 0
                               : strcmp(digest, json_string_value(json_array_get(header, 1))) == 0;
    return status == DS_ACCEL_ERR_NO_MEMORY ? status : DS_ACCEL_OK;
}

static int32_t match_headers(const struct ds_accel__recipe *recipe, const json_t *entry,
                             bool must_exist, bool *match_out)
{
    const json_t *headers = json_object_get(entry, "headers");
    int32_t status = DS_ACCEL_OK;

    *match_out = true;
    for (size_t i = 0; i < json_array_size(headers) && *match_out && status >= 0; i++) {
        int result;

        status = compare_header(recipe, json_array_get(headers, i), &result);
        *match_out = result > 0 || (result < 0 && !must_exist);
    }
    return status;
}

/* Without compilers, it is not known what variables would name here. */
static bool has_toolchain(const json_t *entry, const char *toolchain_digest)
{
    return toolchain_digest != NULL
               ? strcmp(ds_accel__json_string(entry, "toolchain"), toolchain_digest) == 0
               : !json_is_true(json_object_get(entry, "specific"));
}

int32_t ds_accel__manifest_match(const json_t *manifest, const struct ds_accel__recipe *recipe,
                                 const char *toolchain_digest, const json_t **entry)
{
    const json_t *entries = json_object_get(manifest, "entries");
    const json_t *before = *entry;
    int32_t status = DS_ACCEL_OK;
    bool is_behind = before == NULL;
    bool matches = false;

    *entry = NULL;
    for (size_t i = 0; i < json_array_size(entries) && !matches && status >= 0; i++) {
        const json_t *candidate = json_array_get(entries, i);

        if (is_behind && has_toolchain(candidate, toolchain_digest)) {
            status = match_headers(recipe, candidate, toolchain_digest != NULL, &matches);
            if (status >= 0 && matches) {
                *entry = candidate;
            }
        }
        is_behind = is_behind || candidate == before;
    }
    return status;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The header's name in the manifest, borrowed from path. */
static const char *header_name(const struct ds_accel__recipe *recipe, const char *path)
{
    size_t length = strlen(recipe->source_dir);

    return strncmp(path, recipe->source_dir, length) == 0 && path[length] == '/' ? path + length + 1
                                                                                 : path;
}

static int32_t add_header(const struct ds_accel__recipe *recipe, const char *path, json_t *headers,
                          SHA2_CTX *hash)
{
    const char *name = header_name(recipe, path);
    json_t *header = json_array();
    char digest[65];
    int32_t status = header_digest(recipe, name, digest);

    if (status < 0) {
        json_decref(header);
        return status;
    }
    SHA256Update(hash, (const uint8_t *)digest, 64);
    if (json_array_append_new(header, ds_accel__json_text(name)) != 0 ||
        json_array_append_new(header, json_string(digest)) != 0) {
        json_decref(header);
        return ds_accel__no_memory();
    }
    return json_array_append_new(headers, header) == 0 ? DS_ACCEL_OK : ds_accel__no_memory();
}

int32_t ds_accel__manifest_entry(const struct ds_accel__recipe *recipe, const char *recipe_digest,
                                 const char *toolchain_digest, char *const *headers,
                                 json_t **entry_out)
{
    json_t *array = json_array();
    json_t *entry;
    char digest[65];
    SHA2_CTX hash;
    int32_t status = array != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    bool failed = false;

    *entry_out = NULL;
    SHA256Init(&hash);
    SHA256Update(&hash, (const uint8_t *)recipe_digest, 64);
    SHA256Update(&hash, (const uint8_t *)toolchain_digest, 64);
    for (size_t i = 0; headers[i] != NULL && status >= 0; i++) {
        status = add_header(recipe, headers[i], array, &hash);
    }
    SHA256End(&hash, digest);
    if (status < 0) {
        json_decref(array);
        return status;
    }
    entry = json_object();
    ds_accel__json_set(entry, "key", json_stringn(digest, DS_ACCEL__KEY_DIGITS), &failed);
    ds_accel__json_set(entry, "toolchain", json_string(toolchain_digest), &failed);
    ds_accel__json_set(entry, "headers", array, &failed);
    if (failed) {
        json_decref(entry);
        return ds_accel__no_memory();
    }
    *entry_out = entry;
    return DS_ACCEL_OK;
}

bool ds_accel__manifest_mark_specific(json_t *entry)
{
    return json_object_set_new(entry, "specific", json_true()) == 0;
}

bool ds_accel__manifest_add(json_t *manifest, json_t *entry)
{
    json_t *entries = json_object_get(manifest, "entries");
    const char *key = ds_accel__json_string(entry, "key");

    for (size_t i = json_array_size(entries); i-- > 0;) {
        if (strcmp(ds_accel__json_string(json_array_get(entries, i), "key"), key) == 0) {
            json_array_remove(entries, i);
        }
    }
    if (json_array_insert_new(entries, 0, entry) != 0) {
        return false;
    }
    while (json_array_size(entries) > ENTRY_LIMIT) {
        json_array_remove(entries, json_array_size(entries) - 1);
    }
    return true;
}
