/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Manifests: parsing what any process may have written, keys, and which entry matches. */
#include "opbuild.h"
#include "ops/manifest.h"

#include <unistd.h>

#define DIGITS "0123456789abcdef"
#define DIGEST_A DIGITS DIGITS DIGITS DIGITS
#define DIGEST_B "b" DIGITS DIGITS DIGITS "123456789abcdef"
#define DIGEST_C "c" DIGITS DIGITS DIGITS "123456789abcdef"
#define KEY_A DIGITS DIGITS

static char directory[300];
static struct ds_accel__recipe recipe = {.name = (char *)"tiny", .op = "tiny"};

static void begin(void)
{
    snprintf(directory, sizeof(directory), "%s", test_path("source"));
    recipe.source_dir = directory;
    test_write("source/a.h", "a");
    test_write("source/below/b.h", "b");
    test_write("other/c.h", "c");
}

TestSuite(opbuild_manifest, .init = begin);

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- parsing --------------------------------------------------------------------------------- */

static json_t *parse_for(const char *text, const char *digest)
{
    json_t *manifest = json_null();

    MUST(ds_accel__manifest_parse(text, strlen(text), digest, &manifest));
    return manifest;
}

#define ENTRY_WITH(key, toolchain, sha256, headers) \
    "{\"key\": \"" key "\", \"toolchain\": \"" toolchain "\", \"sha256\": \"" sha256 \
    "\", \"headers\": " headers "}"
#define ENTRY ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[\"a.h\", \"" DIGEST_C "\"]]")
#define MANIFEST_WITH(version, recipe, entries) \
    "{\"version\": " version ", \"kernel\": \"tiny\", \"recipe\": \"" recipe \
    "\", \"entries\": " entries "}"

Test(opbuild_manifest, a_manifest_belongs_to_a_recipe)
{
    static const char text[] = MANIFEST_WITH("1", DIGEST_A, "[" ENTRY "]");
    json_t *manifest = parse_for(text, DIGEST_A);

    cr_assert_not_null(manifest);
    cr_expect_eq(json_array_size(json_object_get(manifest, "entries")), 1);
    json_decref(manifest);
    manifest = parse_for(text, NULL);
    cr_expect_not_null(manifest);
    json_decref(manifest);
    cr_expect_null(parse_for(text, DIGEST_B));
}

Test(opbuild_manifest, what_is_no_manifest_is_none)
{
    static const char *const texts[] = {
        "",
        "no JSON",
        "[]",
        "null",
        "{}",
        "{\"version\": 1",
        MANIFEST_WITH("2", DIGEST_A, "[]"),
        MANIFEST_WITH("1.0", DIGEST_A, "[]"),
        MANIFEST_WITH("\"1\"", DIGEST_A, "[]"),
        MANIFEST_WITH("1", DIGEST_A, "{}"),
        MANIFEST_WITH("1", DIGEST_A, "null"),
        MANIFEST_WITH("1", "", "[]"),
        MANIFEST_WITH("1", KEY_A, "[]"),
        MANIFEST_WITH("1", DIGEST_A "0", "[]"),
        MANIFEST_WITH("1", "B" DIGITS DIGITS DIGITS "123456789abcdef", "[]"),
        "{\"version\": 1, \"version\": 1, \"recipe\": \"" DIGEST_A "\", \"entries\": []}",
        MANIFEST_WITH("1", DIGEST_A, "[]") " more",
        "{\"version\": 1, \"recipe\": [], \"entries\": []}",
    };
    char *nested = malloc(100001);

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        cr_expect_null(parse_for(texts[i], NULL), "%s", texts[i]);
    }
    cr_assert_not_null(nested);
    memset(nested, '[', 100000);
    nested[100000] = '\0';
    cr_expect_null(parse_for(nested, NULL));
    free(nested);
}

Test(opbuild_manifest, a_manifest_with_a_malformed_entry_is_none)
{
    static const char *const entries[] = {
        "1",
        "null",
        "{}",
        "[]",
        "{\"key\": \"" KEY_A "\", \"toolchain\": \"" DIGEST_A "\", \"headers\": []}",
        "{\"key\": \"" KEY_A "\", \"sha256\": \"" DIGEST_A "\", \"headers\": []}",
        ENTRY_WITH("../../../../../../etc/passwd.....", DIGEST_A, DIGEST_B, "[]"),
        ENTRY_WITH(DIGEST_A, DIGEST_A, DIGEST_B, "[]"),
        ENTRY_WITH(DIGITS "0123456789ABCDEF", DIGEST_A, DIGEST_B, "[]"),
        ENTRY_WITH(KEY_A, KEY_A, DIGEST_B, "[]"),
        ENTRY_WITH(KEY_A, DIGEST_A, "", "[]"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "{}"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[1]"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[\"a.h\"]]"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[\"a.h\", \"" KEY_A "\"]]"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[1, \"" DIGEST_A "\"]]"),
        ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[\"a.h\", \"" DIGEST_A "\", 1]]"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        char text[2000];

        snprintf(text, sizeof(text), MANIFEST_WITH("1", DIGEST_A, "[" ENTRY ", %s]"), entries[i]);
        cr_expect_null(parse_for(text, DIGEST_A), "%s", entries[i]);
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

static json_t *entry_of(const char *recipe_digest, const char *toolchain, char *const *headers)
{
    json_t *entry = NULL;

    MUST(ds_accel__manifest_entry(&recipe, recipe_digest, toolchain, headers, &entry));
    return entry;
}

static void key_of(char key_out[65], const char *recipe_digest, const char *toolchain,
                   char *const *headers)
{
    json_t *entry = entry_of(recipe_digest, toolchain, headers);

    snprintf(key_out, 65, "%s", text_of(entry, "key"));
    cr_expect_eq(strlen(key_out), DS_ACCEL__KEY_DIGITS);
    json_decref(entry);
}

Test(opbuild_manifest, headers_below_the_sources_are_relative)
{
    char b[320];
    const char *c = test_path("other/c.h");
    json_t *entry;
    json_t *headers;

    snprintf(b, sizeof(b), "%s/below/b.h", directory);
    entry = entry_of(DIGEST_A, DIGEST_B, ARGUMENTS("a.h", b, c, "below/../a.h"));
    headers = json_object_get(entry, "headers");
    cr_assert_eq(json_array_size(headers), 4);
    cr_expect_str_eq(json_string_value(json_array_get(json_array_get(headers, 0), 0)), "a.h");
    cr_expect_str_eq(json_string_value(json_array_get(json_array_get(headers, 1), 0)), "below/b.h");
    cr_expect_str_eq(json_string_value(json_array_get(json_array_get(headers, 2), 0)), c);
    cr_expect_str_eq(json_string_value(json_array_get(json_array_get(headers, 0), 1)),
                     "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
    cr_expect_str_eq(text_of(entry, "toolchain"), DIGEST_B);
    json_decref(entry);
}

/* A directory whose name begins like that of the sources is another one. */
Test(opbuild_manifest, a_directory_with_a_longer_name_is_another_one)
{
    const char *path = test_write("source-other/a.h", "a");
    json_t *entry = entry_of(DIGEST_A, DIGEST_B, ARGUMENTS(path));

    cr_expect_str_eq(
        json_string_value(json_array_get(json_array_get(json_object_get(entry, "headers"), 0), 0)),
        path);
    json_decref(entry);
}

Test(opbuild_manifest, the_key_follows_from_the_contents)
{
    char first[65];
    char other[65];

    key_of(first, DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "below/b.h"));
    key_of(other, DIGEST_B, DIGEST_B, ARGUMENTS("a.h", "below/b.h"));
    cr_expect_str_neq(other, first);
    key_of(other, DIGEST_A, DIGEST_C, ARGUMENTS("a.h", "below/b.h"));
    cr_expect_str_neq(other, first);
    key_of(other, DIGEST_A, DIGEST_B, ARGUMENTS("a.h"));
    cr_expect_str_neq(other, first);
    test_write("source/below/b.h", "B");
    key_of(other, DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "below/b.h"));
    cr_expect_str_neq(other, first);
    test_write("elsewhere/a.h", "a");
    test_write("elsewhere/below/b.h", "b");
    snprintf(directory, sizeof(directory), "%s", test_path("elsewhere"));
    key_of(other, DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "below/b.h"));
    cr_expect_str_eq(other, first);
}

Test(opbuild_manifest, a_header_that_cannot_be_read_is_an_error)
{
    json_t *entry = NULL;

    EXPECT_REFUSED(
        ds_accel__manifest_entry(&recipe, DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "none.h"), &entry),
        DS_ACCEL_ERR_NOT_FOUND, "none.h");
    cr_expect_null(entry);
    EXPECT_REFUSED(
        ds_accel__manifest_entry(&recipe, DIGEST_A, DIGEST_B, ARGUMENTS("below"), &entry),
        DS_ACCEL_ERR_IO, "below");
    cr_expect_null(entry);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static json_t *numbered(int number, const char *mark)
{
    char key[DS_ACCEL__KEY_DIGITS + 1];

    snprintf(key, sizeof(key), "%032x", (unsigned)number);
    return json_pack("{s:s, s:s, s:s, s:[], s:s}", "key", key, "toolchain", DIGEST_A, "sha256",
                     DIGEST_B, "headers", "mark", mark);
}

Test(opbuild_manifest, the_last_sixteen_entries_are_kept)
{
    json_t *manifest = ds_accel__manifest_create("cuda/tiny", DIGEST_A);
    json_t *entries = json_object_get(manifest, "entries");
    char *text;

    cr_expect_str_eq(text_of(manifest, "kernel"), "cuda/tiny");
    cr_expect_eq(json_array_size(entries), 0);
    for (int i = 0; i < 17; i++) {
        cr_assert(ds_accel__manifest_add(manifest, numbered(i, "first")));
    }
    cr_assert_eq(json_array_size(entries), 16);
    cr_expect_str_eq(text_of(json_array_get(entries, 0), "key"),
                     "00000000000000000000000000000010");
    cr_expect_str_eq(text_of(json_array_get(entries, 15), "key"),
                     "00000000000000000000000000000001");
    /* One that is built again is the first, and replaces the old one. */
    cr_assert(ds_accel__manifest_add(manifest, numbered(5, "second")));
    cr_assert_eq(json_array_size(entries), 16);
    cr_expect_str_eq(text_of(json_array_get(entries, 0), "mark"), "second");
    for (size_t i = 1; i < 16; i++) {
        cr_expect_str_eq(text_of(json_array_get(entries, i), "mark"), "first");
        cr_expect_str_neq(text_of(json_array_get(entries, i), "key"),
                          text_of(json_array_get(entries, 0), "key"));
    }
    /* It is what is read again. */
    text = json_dumps(manifest, 0);
    json_decref(manifest);
    manifest = parse_for(text, DIGEST_A);
    cr_expect_eq(json_array_size(json_object_get(manifest, "entries")), 16);
    json_decref(manifest);
    free(text);
}

/* ---- matching -------------------------------------------------------------------------------- */

/* A manifest with an entry for these headers as they are. */
static json_t *built_with(const char *toolchain, char *const *headers)
{
    json_t *manifest = ds_accel__manifest_create("tiny", DIGEST_A);

    cr_assert(ds_accel__manifest_add(manifest, entry_of(DIGEST_A, toolchain, headers)));
    return manifest;
}

/* The number of the entry that matches; -1: none. */
static int match(const json_t *manifest, const char *toolchain)
{
    const json_t *entry = NULL;
    const json_t *entries = json_object_get(manifest, "entries");

    MUST(ds_accel__manifest_match(manifest, &recipe, toolchain, &entry));
    for (size_t i = 0; i < json_array_size(entries); i++) {
        if (json_array_get(entries, i) == entry) {
            return (int)i;
        }
    }
    cr_expect_null(entry);
    return -1;
}

Test(opbuild_manifest, headers_are_compared)
{
    json_t *manifest = built_with(DIGEST_B, ARGUMENTS("a.h", test_path("other/c.h")));

    cr_expect_eq(match(manifest, DIGEST_B), 0);
    test_write("other/c.h", "C");
    cr_expect_eq(match(manifest, DIGEST_B), -1);
    cr_expect_eq(match(manifest, NULL), -1);
    test_write("other/c.h", "c");
    cr_expect_eq(match(manifest, DIGEST_B), 0);
    /* Without a compiler its headers are missing, too. */
    unlink(test_path("other/c.h"));
    cr_expect_eq(match(manifest, DIGEST_B), -1);
    cr_expect_eq(match(manifest, NULL), 0);
    test_write("source/a.h", "A");
    cr_expect_eq(match(manifest, NULL), -1);
    json_decref(manifest);
}

Test(opbuild_manifest, the_compilers_are_compared)
{
    json_t *manifest = built_with(DIGEST_B, ARGUMENTS("a.h"));

    cr_expect_eq(match(manifest, DIGEST_C), -1);
    cr_expect_eq(match(manifest, NULL), 0);
    json_decref(manifest);
}

Test(opbuild_manifest, the_first_entry_that_matches_is_taken)
{
    json_t *manifest = built_with(DIGEST_B, ARGUMENTS("a.h"));

    cr_assert(ds_accel__manifest_add(manifest,
                                     entry_of(DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "below/b.h"))));
    cr_expect_eq(match(manifest, DIGEST_B), 0);
    test_write("source/below/b.h", "B");
    cr_expect_eq(match(manifest, DIGEST_B), 1);
    json_decref(manifest);
    manifest = ds_accel__manifest_create("tiny", DIGEST_A);
    cr_expect_eq(match(manifest, NULL), -1);
    json_decref(manifest);
}

/* Each entry that matches is found, one behind the other. */
Test(opbuild_manifest, entries_that_match_follow_each_other)
{
    json_t *manifest = built_with(DIGEST_B, ARGUMENTS("a.h"));
    const json_t *entries = json_object_get(manifest, "entries");
    const json_t *entry = NULL;

    cr_assert(ds_accel__manifest_add(manifest, entry_of(DIGEST_A, DIGEST_C, ARGUMENTS("a.h"))));
    cr_assert(ds_accel__manifest_add(manifest,
                                     entry_of(DIGEST_A, DIGEST_B, ARGUMENTS("a.h", "below/b.h"))));
    for (size_t i = 0; i < 3; i++) {
        MUST(ds_accel__manifest_match(manifest, &recipe, NULL, &entry));
        cr_expect_eq(entry, json_array_get(entries, i));
    }
    MUST(ds_accel__manifest_match(manifest, &recipe, NULL, &entry));
    cr_expect_null(entry);
    entry = json_array_get(entries, 0);
    MUST(ds_accel__manifest_match(manifest, &recipe, DIGEST_B, &entry));
    cr_expect_eq(entry, json_array_get(entries, 2));
    json_decref(manifest);
}

/* What was built for CPUs that a variable names is for hosts with that variable. */
Test(opbuild_manifest, a_specific_entry_needs_its_compilers)
{
    json_t *manifest = built_with(DIGEST_B, ARGUMENTS("a.h"));

    cr_assert(
        ds_accel__manifest_mark_specific(json_array_get(json_object_get(manifest, "entries"), 0)));
    cr_expect_eq(match(manifest, DIGEST_B), 0);
    cr_expect_eq(match(manifest, NULL), -1);
    json_decref(manifest);
}

/* What cannot be read as a file is another header, and does not block. */
Test(opbuild_manifest, odd_headers_do_not_match)
{
    static const char *const names[] = {"", "below", "/", "a.h/x", "/proc/self/mem", "\\u0001"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char text[1024];
        json_t *manifest;

        snprintf(text, sizeof(text),
                 MANIFEST_WITH(
                     "1", DIGEST_A,
                     "[" ENTRY_WITH(KEY_A, DIGEST_A, DIGEST_B, "[[\"%s\", \"" DIGEST_C "\"]]") "]"),
                 names[i]);
        manifest = parse_for(text, DIGEST_A);
        cr_expect_eq(match(manifest, DIGEST_A), -1, "%s", names[i]);
        json_decref(manifest);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int32_t attempt(void)
{
    static const char text[] = MANIFEST_WITH("1", DIGEST_A, "[" ENTRY "]");
    json_t *manifest = NULL;
    json_t *own = ds_accel__manifest_create("tiny", DIGEST_A);
    json_t *entry = NULL;
    const json_t *found = NULL;
    int32_t status = ds_accel__manifest_parse(text, strlen(text), DIGEST_A, &manifest);

    if (status >= 0) {
        cr_expect_eq(json_array_size(json_object_get(manifest, "entries")), 1);
        status = ds_accel__manifest_entry(&recipe, DIGEST_A, DIGEST_B,
                                          ARGUMENTS("a.h", "below/b.h"), &entry);
    }
    cr_expect_eq(status >= 0, entry != NULL);
    if (own == NULL) {
        json_decref(entry);
        status = DS_ACCEL_ERR_NO_MEMORY;
    } else if (status >= 0) {
        status = ds_accel__manifest_add(own, entry) ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
    }
    if (status >= 0) {
        status = ds_accel__manifest_match(own, &recipe, DIGEST_B, &found);
        cr_expect_eq(status >= 0, found != NULL);
    }
    if (status >= 0) {
        found = NULL;
        status = ds_accel__manifest_match(manifest, &recipe, DIGEST_A, &found);
        cr_expect_null(found);
    }
    cr_expect(status == DS_ACCEL_OK || status == DS_ACCEL_ERR_NO_MEMORY, "%d", status);
    json_decref(own);
    json_decref(manifest);
    return status;
}

Test(opbuild_manifest, every_allocation_can_fail)
{
    attempt();
    fail_each(attempt);
}
