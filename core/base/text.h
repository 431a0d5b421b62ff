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

#define DS_ACCEL__NAME_SIZE 32        /* of a backend's name, with NUL; see plugin-api.h */
#define DS_ACCEL__DEVICE_LIMIT 65536u /* no machine has more */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Store the message as this thread's last error, printable and on one line, and return status. */
DS_ACCEL__PRIVATE int32_t ds_accel__error(int32_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for several lines, which are printable already. */
int32_t ds_accel__error_lines(int32_t status, const char *lines);
/* The same for exhausted memory; allocates nothing. */
DS_ACCEL__PRIVATE int32_t ds_accel__no_memory(void);

/* A growing text. After a failed allocation it stays failed, and take() returns NULL. */
struct ds_accel__text {
    char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed;
};

/*
 * For assertions: the text is terminated by NUL within its capacity, or it is empty without
 * storage.
 */
static inline bool ds_accel__text_is_sound(const struct ds_accel__text *text)
{
    return text->data == NULL
               ? text->size_bytes == 0 && text->capacity_bytes == 0
               : text->size_bytes < text->capacity_bytes && text->data[text->size_bytes] == '\0';
}

void ds_accel__text_add(struct ds_accel__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ds_accel__text_add_bytes(struct ds_accel__text *text, const void *data, size_t size_bytes);
/*
 * Add a JSON value; an allocation failure marks the text as failed. jansson's json_dumps() would
 * leave a member out instead: docs/decisions/0004.
 */
void ds_accel__text_add_json(struct ds_accel__text *text, const json_t *value, size_t flags);
/* A JSON value as a new string; NULL when memory is exhausted. */
char *ds_accel__json_dump(const json_t *value, size_t flags);
char *ds_accel__text_take(struct ds_accel__text *text);
void ds_accel__text_clear(struct ds_accel__text *text);

/* The closest of count names within two typing errors; NULL if none is close. */
const char *ds_accel__nearest(const char *name, const char *const *names, size_t count);
/* left, the character between, and right in a new string; NULL when memory is exhausted. */
char *ds_accel__join(const char *left, char between, const char *right);
/* Copy a text into an array, truncated to fit; NULL is "". */
void ds_accel__copy(char *to, size_t to_size, const char *text);
/* snprintf into a new string; NULL when memory is exhausted. */
char *ds_accel__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * A plugin's description of a failure, on one line: message, vendor's text and code, or the status.
 */
DS_ACCEL__PRIVATE void ds_accel__describe(int32_t status, const struct ds_accel_error *error,
                                          char *text, size_t text_size);
#define DS_ACCEL__NO_CHARACTER UINT32_MAX
/*
 * The number of bytes of a text's first character, and its code point; 1 and DS_ACCEL__NO_CHARACTER
 * for a byte that is not UTF-8.
 */
size_t ds_accel__character(const char *text, uint32_t *code_out);
/*
 * True if a terminal shows all of the text on one line: UTF-8 without control and format
 * characters.
 */
bool ds_accel__is_printable(const char *text);
/* True if a text is terminated within text_size, has one line and is UTF-8. */
bool ds_accel__is_clean_text(const char *text, size_t text_size);
/* Terminate a text from outside the library and make it clean in that sense; it never grows. */
void ds_accel__sanitize(char *text, size_t text_size);
/* Add JSON text unchanged except that every unprintable character is escaped. */
void ds_accel__text_add_printable_json(struct ds_accel__text *text, const char *json);
/* True if name is a valid backend name: [a-z][a-z0-9_.]{0,30}. */
bool ds_accel__is_backend_name(const char *name);

/* A fast hash for checksums and keys; it does not resist forgery (hash.c). */
uint64_t ds_accel__hash(const void *data, size_t size_bytes, uint64_t seed);
uint64_t ds_accel__hash_text(const char *text, uint64_t seed);

#define DS_ACCEL__LIST_LIMIT 65536u /* CPU and node numbers are below it */

typedef bool (*ds_accel__list_visit_t)(void *user_data, uint32_t first, uint32_t last);
/* Visit the ranges of "0-3,8,10-11"; false if the text is no such list, or visit returned false. */
bool ds_accel__list_parse(const char *text, ds_accel__list_visit_t visit, void *user_data);
/* The count of numbers in the list; 0: it is empty or malformed. */
uint32_t ds_accel__list_count(const char *list);
/* The next non-empty item; moves *list past it; NULL if there is none. Borrowed. */
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

/* Parse "warn,cuda=debug". Malformed items are skipped with a warning. */
void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels);
bool ds_accel__log_enabled(const struct ds_accel__log *log, const char *topic, uint32_t level);
void ds_accel__log(const struct ds_accel__log *log, const char *topic, uint32_t level,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
