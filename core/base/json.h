/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* JSON trees, readable sizes and escaping for XML: json.c. */
#ifndef DS_ACCEL_BASE_JSON_H
#define DS_ACCEL_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ds_accel__text;

/* A JSON string from text of any origin: NULL is ""; each byte that is not part of a valid UTF-8
 * character becomes '?'. Returns NULL if memory is exhausted. */
json_t *ds_accel__json_text(const char *text);
/* Whether there is memory to parse a text of this size: jansson's parser does not survive a failed
 * allocation, so this is asked first. */
bool ds_accel__json_has_headroom(size_t size_bytes);
/* Set a member of the object. Takes ownership of value; a NULL value sets *failed to true. */
void ds_accel__json_set(json_t *object, const char *key, json_t *value, bool *failed);
/* Write a size with its unit: "20 MiB", "1.5 GiB", "512 B". */
void ds_accel__size_text(uint64_t bytes, char *text, size_t text_size);
/* Add text with XML's special characters escaped, and unprintable characters except line ends and
 * tabs replaced. */
void ds_accel__xml_add(struct ds_accel__text *out, const char *text);
/* The text of a member, borrowed from the object; "" if it is missing or not a text. */
const char *ds_accel__json_string(const json_t *object, const char *key);
/* The value of a numeric member; 0 if it is missing, negative or not an integer. */
uint64_t ds_accel__json_size(const json_t *object, const char *key);

#endif
