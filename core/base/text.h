/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Errors, texts and lists, log: error.c, text.c, list.c, log.c. */
#ifndef DS_ACCEL_BASE_TEXT_H
#define DS_ACCEL_BASE_TEXT_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DS_ACCEL__NAME_SIZE 32        /* of a backend's name, NUL included: plugin-api.h's note */
#define DS_ACCEL__DEVICE_LIMIT 65536u /* no machine has more */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Keep the message as this thread's last error, printable and on one line, and return status. */
DS_ACCEL__PRIVATE int32_t ds_accel__error(int32_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for several lines, each of them printable already. */
int32_t ds_accel__error_lines(int32_t status, const char *lines);
/* The same for exhausted memory; allocates nothing. */
DS_ACCEL__PRIVATE int32_t ds_accel__no_memory(void);

/* A text that grows. After an allocation failed it stays failed, and take() gives NULL. */
struct ds_accel__text {
    char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed;
};

/* Ended by NUL, with room for it; an empty one has no storage yet. For assertions. */
static inline bool ds_accel__text_is_sound(const struct ds_accel__text *text)
{
    return text->data == NULL
               ? text->size_bytes == 0 && text->capacity_bytes == 0
               : text->size_bytes < text->capacity_bytes && text->data[text->size_bytes] == '\0';
}

void ds_accel__text_add(struct ds_accel__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ds_accel__text_add_bytes(struct ds_accel__text *text, const void *data, size_t size_bytes);
/* Add a JSON value; fails like the others. jansson's own json_dumps() does not:
 * docs/decisions/0004. */
void ds_accel__text_add_json(struct ds_accel__text *text, const json_t *value, size_t flags);
/* The same as a new string; NULL when memory is exhausted. */
char *ds_accel__json_dump(const json_t *value, size_t flags);
char *ds_accel__text_take(struct ds_accel__text *text);
void ds_accel__text_clear(struct ds_accel__text *text);

/* The nearest of count names within a typing error or two; NULL if none is near. */
const char *ds_accel__nearest(const char *name, const char *const *names, size_t count);
/* Two texts and what is between them, in a new string; NULL when memory is exhausted. */
char *ds_accel__join(const char *left, char between, const char *right);
/* Copy a text into an array, cut to what fits; NULL is "". */
void ds_accel__copy(char *to, size_t to_size, const char *text);
/* snprintf into a new string; NULL when memory is exhausted. */
char *ds_accel__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What a plugin said of a failure, on one line: message, vendor's text and code, or the status. */
DS_ACCEL__PRIVATE void ds_accel__describe(int32_t status, const struct ds_accel_error *error,
                                          char *text, size_t text_size);
#define DS_ACCEL__NO_CHARACTER UINT32_MAX
/* The bytes of the character that a text begins with, and its number; 1 and DS_ACCEL__NO_CHARACTER
 * for a byte that is not UTF-8. */
size_t ds_accel__character(const char *text, uint32_t *code_out);
/* True if a terminal shows all of it on one line: UTF-8 without control and format characters. */
bool ds_accel__is_printable(const char *text);
/* True if a text ends within text_size, is one line and UTF-8. */
bool ds_accel__is_clean_text(const char *text, size_t text_size);
/* End a text that came from outside, and make it so: it never gets longer. */
void ds_accel__sanitize(char *text, size_t text_size);
/* Add JSON as a writer wrote it, but with every character of it printable, or escaped. */
void ds_accel__text_add_printable_json(struct ds_accel__text *text, const char *json);
/* True if name is a backend's: [a-z][a-z0-9_.]{0,30}. */
bool ds_accel__is_backend_name(const char *name);

/* A quick hash, for checksums and keys that nobody has a reason to forge (hash.c). */
uint64_t ds_accel__hash(const void *data, size_t size_bytes, uint64_t seed);
uint64_t ds_accel__hash_text(const char *text, uint64_t seed);

#define DS_ACCEL__LIST_LIMIT 65536u /* no machine numbers its CPUs or nodes higher */

typedef bool (*ds_accel__list_visit_t)(void *user_data, uint32_t first, uint32_t last);
/* Visit the ranges of "0-3,8,10-11"; false if the text is no such list, or visit said no. */
bool ds_accel__list_parse(const char *text, ds_accel__list_visit_t visit, void *user_data);
/* How many numbers the list has; 0: it is empty or cannot be read. */
uint32_t ds_accel__list_count(const char *list);
/* The next item that is not empty, and *list behind it; NULL if there is none. Borrowed. */
const char *ds_accel__list_next(const char **list, char separator, size_t *length_out);

#define DS_ACCEL__LOG_TOPIC_MAX 16

struct ds_accel__log {
    ds_accel_log_sink_t sink;
    void *user_data;
    uint32_t level;
    uint32_t topic_count;
    struct {
        char name[DS_ACCEL__NAME_SIZE];
        uint32_t level;
    } topics[DS_ACCEL__LOG_TOPIC_MAX];
};

/* Read "warn,cuda=debug". Items that cannot be read are left out, and warned of. */
void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels);
bool ds_accel__log_enabled(const struct ds_accel__log *log, const char *topic, uint32_t level);
void ds_accel__log(const struct ds_accel__log *log, const char *topic, uint32_t level,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
