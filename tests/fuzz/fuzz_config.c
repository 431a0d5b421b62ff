/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary bytes as configuration: up to four files, each a layer above the one before it,
 * separated by NUL bytes, which JSON cannot contain. They are read once as main configuration and
 * once as files of op builders.
 */
#include "fuzz.h"

#include "base/text.h"
#include "config/config.h"

#define FILE_COUNT 4

/* ---- positions in the text ------------------------------------------------------------------ */

/* Return the byte at a line and column, counted from 1; NULL if the text has no such place. */
static const char *find_place(const char *text, size_t size_bytes, int line, int column)
{
    const char *end = text + size_bytes;
    const char *at = text;

    for (; line > 1; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at == NULL) {
            return NULL;
        }
        at++;
    }
    for (; column > 1 && at < end && *at != '\n'; column--) {
        do {
            at++;
        } while (at < end && ((unsigned char)*at & 0xc0) == 0x80);
    }
    return column == 1 && line == 1 ? at : NULL;
}

/* Copy one segment of a JSON pointer to key, unescaped; return the rest of the pointer. */
static const char *next_key(const char *pointer, char *key)
{
    FUZZ_CHECK(*pointer == '/');
    for (pointer++; *pointer != '\0' && *pointer != '/'; pointer++) {
        if (*pointer == '~') {
            FUZZ_CHECK(pointer[1] == '0' || pointer[1] == '1');
            *key++ = *++pointer == '0' ? '~' : '/';
        } else {
            *key++ = *pointer;
        }
    }
    *key = '\0';
    return pointer;
}

/* Find the value at a pointer, and its key; NULL if there is none. */
static json_t *find_value(json_t *value, const char *pointer, char *key)
{
    *key = '\0';
    while (value != NULL && *pointer != '\0') {
        pointer = next_key(pointer, key);
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10))
                                     : json_object_get(value, key);
    }
    return value;
}

/* ---- one file ------------------------------------------------------------------------------- */

struct recheck {
    const struct ds_accel__config_file *file;
    size_t count;
};

/* Check that the value or key at each problem's position is the one that its pointer refers to. */
static int32_t check_problem(void *user_data, const char *pointer, bool is_key, const char *message)
{
    struct recheck *recheck = user_data;
    const struct ds_accel__config_file *file = recheck->file;
    char *key = malloc(strlen(pointer) + 1);
    json_t *value;
    json_t *there;
    const char *place;
    int line;
    int column;

    FUZZ_CHECK(key != NULL && message[0] != '\0');
    FUZZ_CHECK(
        ds_accel__config_locate(file->text, file->size_bytes, pointer, is_key, &line, &column));
    place = find_place(file->text, file->size_bytes, line, column);
    FUZZ_CHECK(place != NULL);
    value = find_value(file->root, pointer, key);
    FUZZ_CHECK(value != NULL);
    there = json_loadb(place, (size_t)(file->text + file->size_bytes - place),
                       JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    if (is_key) {
        FUZZ_CHECK(json_is_string(there) && strcmp(json_string_value(there), key) == 0);
    } else {
        FUZZ_CHECK(json_equal(there, value));
    }
    json_decref(there);
    free(key);
    recheck->count++;
    return DS_ACCEL_OK;
}

/* Use jansson's definition of UTF-8, since jansson must accept the text in a report. */
static bool is_utf8(const char *text)
{
    json_t *value = json_string(text);
    bool is = value != NULL;

    json_decref(value);
    return is;
}

/* Check that every problem has a position in the file, and a message of one line of valid UTF-8. */
static void check_messages(const struct ds_accel__config *config, size_t from,
                           const struct ds_accel__config_file *file)
{
    for (size_t i = from; i < config->problem_count; i++) {
        const struct ds_accel__config_problem *problem = &config->problems[i];

        FUZZ_CHECK(strcmp(problem->file, file->path) == 0);
        FUZZ_CHECK(find_place(file->text, file->size_bytes, problem->line, problem->column) !=
                   NULL);
        FUZZ_CHECK(problem->message[0] != '\0');
        FUZZ_CHECK(is_utf8(problem->message));
        for (const char *c = problem->message; *c != '\0'; c++) {
            FUZZ_CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
        }
    }
}

static void parse(struct ds_accel__config *config, struct ds_accel__config_file *file)
{
    size_t from = config->problem_count;
    struct recheck recheck = {.file = file};

    FUZZ_CHECK(ds_accel__config_parse(config, file) == DS_ACCEL_OK);
    if (file->root == NULL) {
        FUZZ_CHECK(config->problem_count == from + 1);
    } else {
        FUZZ_CHECK(ds_accel__config_check_tree(file->root, file->is_ops, check_problem, &recheck) ==
                   DS_ACCEL_OK);
        FUZZ_CHECK(config->problem_count == from + recheck.count);
    }
    check_messages(config, from, file);
}

/* ---- all files ------------------------------------------------------------------------------ */

static struct ds_accel__config make_config(const char *const *texts, const size_t *sizes,
                                           size_t count, bool is_ops)
{
    struct ds_accel__config config = {0};

    config.files = calloc(count, sizeof(*config.files));
    FUZZ_CHECK(config.files != NULL);
    for (size_t i = 0; i < count; i++) {
        struct ds_accel__config_file *file = &config.files[config.file_count++];

        file->path = ds_accel__format("%zu.json", i);
        file->layer = i > 0 ? DS_ACCEL__CONFIG_LAYER_SYSTEM : DS_ACCEL__CONFIG_LAYER_PACKAGE;
        file->is_ops = is_ops;
        file->size_bytes = sizes[i];
        file->text = malloc(sizes[i] + 1);
        FUZZ_CHECK(file->path != NULL && file->text != NULL);
        memcpy(file->text, texts[i], sizes[i]);
        file->text[sizes[i]] = '\0';
        parse(&config, file);
    }
    return config;
}

/* Check that every value of the merged tree comes from a position in one of the files. */
static void check_origins(const struct ds_accel__config *config, json_t *value, const char *pointer)
{
    char *origin = *pointer != '\0' ? ds_accel__config_origin(config, pointer) : NULL;
    const char *key;
    json_t *member;

    FUZZ_CHECK(origin != NULL || *pointer == '\0');
    free(origin);
    json_object_foreach(value, key, member)
    {
        size_t size = strlen(pointer) + 2 * strlen(key) + 2;
        char *below = malloc(size);

        FUZZ_CHECK(below != NULL);
        memcpy(below, pointer, strlen(pointer) + 1);
        FUZZ_CHECK(ds_accel__pointer_append(below, size, key));
        check_origins(config, member, below);
        free(below);
    }
}

/* Check that merging changed no file's own tree, and that the result is a configuration with the
 * same meaning. */
static void check_merged(const struct ds_accel__config *config, bool is_ops)
{
    char *text = json_dumps(config->merged, JSON_COMPACT);
    size_t size = text != NULL ? strlen(text) : 0;
    const char *dumped = text;
    struct ds_accel__config again;

    FUZZ_CHECK(text != NULL);
    for (size_t i = 0; i < config->file_count; i++) {
        const struct ds_accel__config_file *file = &config->files[i];
        json_t *root = json_loadb(file->text, file->size_bytes, 0, NULL);

        FUZZ_CHECK(json_equal(root, file->root));
        json_decref(root);
    }
    check_origins(config, config->merged, "");
    again = make_config(&dumped, &size, 1, is_ops);
    FUZZ_CHECK(ds_accel__config_merge(&again) == DS_ACCEL_OK);
    FUZZ_CHECK(json_equal(again.merged, config->merged));
    ds_accel__config_clear(&again);
    free(text);
}

static void run(const char *const *texts, const size_t *sizes, size_t count, bool is_ops)
{
    struct ds_accel__config config = make_config(texts, sizes, count, is_ops);
    int32_t status = ds_accel__config_merge(&config);

    FUZZ_CHECK(status == (config.problem_count > 0 ? DS_ACCEL_ERR_CONFIG : DS_ACCEL_OK));
    FUZZ_CHECK((config.merged != NULL) == (status == DS_ACCEL_OK));
    if (status == DS_ACCEL_OK) {
        check_merged(&config, is_ops);
    }
    ds_accel__config_clear(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *texts[FILE_COUNT];
    size_t sizes[FILE_COUNT];
    size_t count = 0;

    for (const char *at = size > 0 ? (const char *)data : ""; count < FILE_COUNT; count++) {
        const char *nul = memchr(at, '\0', size);

        texts[count] = at;
        sizes[count] = nul != NULL && count + 1 < FILE_COUNT ? (size_t)(nul - at) : size;
        if (sizes[count] == size) {
            count++;
            break;
        }
        at += sizes[count] + 1;
        size -= sizes[count] + 1;
    }
    run(texts, sizes, count, false);
    run(texts, sizes, count, true);
    return 0;
}
