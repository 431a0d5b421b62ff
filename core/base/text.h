/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Errors (error.c), text strings (text.c), hashes (hash.c), lists (list.c) and the log (log.c). */
#ifndef DS_ACCEL_BASE_TEXT_H
#define DS_ACCEL_BASE_TEXT_H

#include "base/private.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define DS_ACCEL__NAME_SIZE 32 /* size of a backend's name, including NUL; see plugin-api.h */
#define DS_ACCEL__DEVICE_LIMIT 65536u /* assumed to be more than any machine has */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Store the message as this thread's last error, with unprintable characters replaced; return
 * status. errno stays as it is.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__error(int32_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Like ds_accel__error(), for several lines, which must already be printable. */
DS_ACCEL__PRIVATE int32_t ds_accel__error_lines(int32_t status, const char *lines);
/* Store an error for exhausted memory. Allocates nothing. */
DS_ACCEL__PRIVATE void ds_accel__error_memory(void);
/* Likewise, and return ERR_NO_MEMORY; inline, so that checkers know the status. */
static inline int32_t ds_accel__no_memory(void)
{
    ds_accel__error_memory();
    return DS_ACCEL_ERR_NO_MEMORY;
}

/*
 * A growing text. After a failed allocation, further additions have no effect, and
 * ds_accel__text_take() returns NULL.
 */
struct ds_accel__text {
    char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed;
};

/*
 * For assertions: true if NUL terminates the text within its capacity, or the text is empty and has
 * no storage.
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
 * Add a JSON value. An allocation failure marks the text as failed, whereas jansson's json_dumps()
 * would silently omit a member: docs/decisions/0004.
 */
void ds_accel__text_add_json(struct ds_accel__text *text, const json_t *value, size_t flags);
/* Write a JSON value to a new string; NULL if memory is exhausted. */
char *ds_accel__json_dump(const json_t *value, size_t flags);
char *ds_accel__text_take(struct ds_accel__text *text);
void ds_accel__text_clear(struct ds_accel__text *text);

/*
 * The name with the smallest edit distance from `name`, to find typing errors. The distance is at
 * most 1 for a `name` of up to 3 bytes, 2 for up to 11 bytes, else 3; NULL if no name is so near.
 */
const char *ds_accel__nearest(const char *name, const char *const *names, size_t count);
/* A new string of left, the character between, and right; NULL if memory is exhausted. */
char *ds_accel__join(const char *left, char between, const char *right);
/* Copy a text into an array, truncated to fit. A NULL text is copied as "". */
void ds_accel__copy(char *to, size_t to_size, const char *text);
/* Like snprintf(), but into a new string; NULL if memory is exhausted. */
char *ds_accel__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Truncate a text to less than text_size bytes, at a character boundary, and mark that with "...".
 * The text has size_bytes bytes, of which the first text_size - 1 are at text. text_size is 4 or
 * more.
 */
void ds_accel__truncate(char *text, size_t text_size, size_t size_bytes);
/*
 * Format a line for the user, with unprintable characters replaced. A line that fits is written to
 * buffer; a longer one is a new string, which the caller frees if it is not buffer. If memory is
 * exhausted, the line is truncated to fit, with a mark.
 */
char *ds_accel__format_line(char *buffer, size_t buffer_size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
/*
 * Describe a plugin's failure on one line: its message (or the status name), vendor text and vendor
 * code.
 */
DS_ACCEL__PRIVATE void ds_accel__describe(int32_t status, const struct ds_accel_error *error,
                                          char *text, size_t text_size);
#define DS_ACCEL__NO_CHARACTER UINT32_MAX
/*
 * The number of bytes of a text's first character, and its code point. If the text does not begin
 * with valid UTF-8, the number is 1 and the code point is DS_ACCEL__NO_CHARACTER.
 */
size_t ds_accel__character(const char *text, uint32_t *code_out);
/*
 * True if a terminal shows all of the text on one line: UTF-8 without control and format
 * characters.
 */
bool ds_accel__is_printable(const char *text);
/*
 * True if the text is NUL-terminated within text_size, valid UTF-8 and free of ASCII control
 * characters.
 */
bool ds_accel__is_clean_text(const char *text, size_t text_size);
/*
 * Terminate a text from outside the library and replace unprintable characters, without growing it.
 */
void ds_accel__sanitize(char *text, size_t text_size);
/* Add JSON text unchanged, except that every unprintable character is escaped. */
void ds_accel__text_add_printable_json(struct ds_accel__text *text, const char *json);
/* True if name is a valid backend name: [a-z][a-z0-9_.]{0,30}. */
bool ds_accel__is_backend_name(const char *name);

/* A fast hash for checksums and keys; it does not resist forgery (hash.c). */
uint64_t ds_accel__hash(const void *data, size_t size_bytes, uint64_t seed);
uint64_t ds_accel__hash_text(const char *text, uint64_t seed);

#define DS_ACCEL__LIST_LIMIT 65536u /* exclusive upper limit of CPU and node numbers */

typedef bool (*ds_accel__list_visit_t)(void *user_data, uint32_t first, uint32_t last);
/*
 * Call visit for each range of a list such as "0-3,8,10-11", which may be empty and ends at a NUL
 * or newline. False if visit returned false or a range is malformed, in descending order or not
 * below DS_ACCEL__LIST_LIMIT; ranges after it are not visited.
 */
bool ds_accel__list_parse(const char *text, ds_accel__list_visit_t visit, void *user_data);
/* True for a space, a tab and the ends of lines, in every locale. */
static inline bool ds_accel__is_blank(char character)
{
    return character == ' ' || (character >= '\t' && character <= '\r');
}

/* Take the blanks from both ends of a text. */
static inline void ds_accel__trim(const char **text, size_t *length)
{
    while (*length > 0 && ds_accel__is_blank(**text)) {
        ++*text;
        --*length;
    }
    while (*length > 0 && ds_accel__is_blank((*text)[*length - 1])) {
        --*length;
    }
}

/* The count of numbers in the list; 0 if the list is empty or malformed. */
uint32_t ds_accel__list_count(const char *list);
/*
 * Return a pointer to the next non-empty item of *list, and move *list past the item; NULL: no more
 * items.
 */
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

/* Parse log levels such as "warn,cuda=debug". Malformed items, and topics after the first
 * DS_ACCEL__LOG_TOPIC_MAX, are skipped; the first eight of them are logged as warnings. */
void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels);
bool ds_accel__log_enabled(const struct ds_accel__log *log, const char *topic, uint32_t level);
DS_ACCEL__PRIVATE void ds_accel__log(const struct ds_accel__log *log, const char *topic,
                                     uint32_t level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
