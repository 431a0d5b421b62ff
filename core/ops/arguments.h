/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Lists of arguments and of other texts, which end with NULL: arguments.c. */
#ifndef DS_ACCEL_OPS_ARGUMENTS_H
#define DS_ACCEL_OPS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* A list that grows. After a failed allocation, additions have no effect. {0} is empty. */
struct ds_accel__arguments {
    char **items;
    size_t count;
    size_t capacity;
    bool failed;
};

void ds_accel__arguments_add(struct ds_accel__arguments *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Add copies of all texts of a list; NULL: none. */
void ds_accel__arguments_add_all(struct ds_accel__arguments *list, char *const *texts);
/*
 * The list as an array that ends with NULL, for ds_accel__arguments_free(); the list is empty then.
 * NULL if an allocation failed.
 */
char **ds_accel__arguments_take(struct ds_accel__arguments *list);
void ds_accel__arguments_free(char **arguments);
size_t ds_accel__arguments_count(char *const *arguments); /* 0 for NULL */

#endif
