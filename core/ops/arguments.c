/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Lists of texts that end with NULL. */
#include "ops/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make room for one more text and the NULL behind it. */
static bool reserve(struct ds_accel__arguments *list)
{
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
    char **items;

    if (list->count + 1 < list->capacity) {
        return true;
    }
    items = realloc(list->items, capacity * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    list->items = items;
    list->capacity = capacity;
    return true;
}

/* Add a text and own it; NULL: it could not be allocated. */
static void add_owned(struct ds_accel__arguments *list, char *text)
{
    if (list->failed || text == NULL || !reserve(list)) {
        list->failed = true;
        free(text);
        return;
    }
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

void ds_accel__arguments_add(struct ds_accel__arguments *list, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    add_owned(list, text);
}

void ds_accel__arguments_add_all(struct ds_accel__arguments *list, char *const *texts)
{
    for (; texts != NULL && *texts != NULL; texts++) {
        add_owned(list, strdup(*texts));
    }
}

char **ds_accel__arguments_take(struct ds_accel__arguments *list)
{
    char **items = list->items;

    if (!list->failed && items == NULL) {
        items = calloc(1, sizeof(*items));
    } else if (list->failed) {
        ds_accel__arguments_free(items);
        items = NULL;
    }
    *list = (struct ds_accel__arguments){0};
    return items;
}

void ds_accel__arguments_free(char **arguments)
{
    for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++) {
        free(arguments[i]);
    }
    free(arguments);
}

size_t ds_accel__arguments_count(char *const *arguments)
{
    size_t count = 0;

    while (arguments != NULL && arguments[count] != NULL) {
        count++;
    }
    return count;
}
