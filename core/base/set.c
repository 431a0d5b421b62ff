/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "base/set.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The position of the first item that is not below number. */
static uint32_t find(const struct ds_accel__set *set, uint32_t number)
{
    uint32_t low = 0;
    uint32_t high = set->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (set->items[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int32_t ds_accel__set_add(struct ds_accel__set *set, uint32_t number)
{
    uint32_t at = find(set, number);

    if (at < set->count && set->items[at] == number) {
        return DS_ACCEL_OK;
    }
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity > 0 ? 2 * set->capacity : 16;
        uint32_t *items = realloc(set->items, capacity * sizeof(*items));

        if (items == NULL) {
            return ds_accel__no_memory();
        }
        set->items = items;
        set->capacity = capacity;
    }
    memmove(set->items + at + 1, set->items + at, (set->count - at) * sizeof(*set->items));
    set->items[at] = number;
    set->count++;
    assert(at == 0 || set->items[at - 1] < number);
    return DS_ACCEL_OK;
}

struct adding {
    struct ds_accel__set *set;
    int32_t status;
};

static bool check(void *user_data, uint32_t first, uint32_t last)
{
    (void)user_data;
    return first <= last;
}

static bool add_range(void *user_data, uint32_t first, uint32_t last)
{
    struct adding *adding = user_data;

    for (uint32_t number = first; number <= last && adding->status >= 0; number++) {
        adding->status = ds_accel__set_add(adding->set, number);
    }
    return adding->status >= 0;
}

int32_t ds_accel__set_add_list(struct ds_accel__set *set, const char *list)
{
    struct adding adding = {.set = set, .status = DS_ACCEL_OK};

    if (ds_accel__list_parse(list, check, NULL)) {
        ds_accel__list_parse(list, add_range, &adding);
    }
    return adding.status;
}

int32_t ds_accel__set_add_all(struct ds_accel__set *set, const struct ds_accel__set *other)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; i < other->count && status >= 0; i++) {
        status = ds_accel__set_add(set, other->items[i]);
    }
    return status;
}

void ds_accel__set_keep(struct ds_accel__set *set, const struct ds_accel__set *other)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < set->count; i++) {
        if (ds_accel__set_has(other, set->items[i])) {
            set->items[count++] = set->items[i];
        }
    }
    set->count = count;
}

bool ds_accel__set_has(const struct ds_accel__set *set, uint32_t number)
{
    uint32_t at = find(set, number);

    return at < set->count && set->items[at] == number;
}

bool ds_accel__set_has_all(const struct ds_accel__set *set, const struct ds_accel__set *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        if (!ds_accel__set_has(set, other->items[i])) {
            return false;
        }
    }
    return true;
}

bool ds_accel__set_is_equal(const struct ds_accel__set *set, const struct ds_accel__set *other)
{
    return set->count == other->count &&
           (set->count == 0 ||
            memcmp(set->items, other->items, set->count * sizeof(*set->items)) == 0);
}

void ds_accel__set_write(const struct ds_accel__set *set, struct ds_accel__text *text)
{
    for (uint32_t i = 0; i < set->count;) {
        uint32_t last = i;

        while (last + 1 < set->count && set->items[last + 1] == set->items[last] + 1) {
            last++;
        }
        ds_accel__text_add(text, "%s%u", i > 0 ? "," : "", set->items[i]);
        if (last > i) {
            ds_accel__text_add(text, "-%u", set->items[last]);
        }
        i = last + 1;
    }
}

void ds_accel__set_clear(struct ds_accel__set *set)
{
    free(set->items);
    memset(set, 0, sizeof(*set));
}
