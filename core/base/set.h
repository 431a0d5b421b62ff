/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sorted sets of CPU, core and node numbers: set.c. */
#ifndef DS_ACCEL_BASE_SET_H
#define DS_ACCEL_BASE_SET_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__text;

/* {0} is the empty set. Release it with ds_accel__set_clear(). */
struct ds_accel__set {
    uint32_t *items; /* ascending, without repetition */
    uint32_t count;
    uint32_t capacity;
};

/* Add a number; nothing changes if the set contains it. ERR_NO_MEMORY. */
int32_t ds_accel__set_add(struct ds_accel__set *set, uint32_t number);
/* Add the numbers of a list in the kernel's format, such as "0-3,8". A malformed list adds nothing.
 * ERR_NO_MEMORY. */
int32_t ds_accel__set_add_list(struct ds_accel__set *set, const char *list);
/* Add all numbers of another set. ERR_NO_MEMORY. */
int32_t ds_accel__set_add_all(struct ds_accel__set *set, const struct ds_accel__set *other);
/* Remove the numbers that the other set lacks. */
void ds_accel__set_keep(struct ds_accel__set *set, const struct ds_accel__set *other);
bool ds_accel__set_has(const struct ds_accel__set *set, uint32_t number);
bool ds_accel__set_has_all(const struct ds_accel__set *set, const struct ds_accel__set *other);
bool ds_accel__set_is_equal(const struct ds_accel__set *set, const struct ds_accel__set *other);
/* Add the set to a text in the kernel's format: "0-3,8"; "" if the set is empty. */
void ds_accel__set_write(const struct ds_accel__set *set, struct ds_accel__text *text);
void ds_accel__set_clear(struct ds_accel__set *set);

#endif
