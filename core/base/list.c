/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Lists in one line of text: the kernel's number lists, such as "0-3,8", and items between
 * separators.
 */
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool ds_accel__list_parse(const char *text, ds_accel__list_visit_t visit, void *user_data)
{
    while (*text != '\0' && *text != '\n') {
        char *end;
        unsigned long first;
        unsigned long last;

        if (!isdigit((unsigned char)*text)) {
            return false;
        }
        first = strtoul(text, &end, 10);
        last = first;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1])) {
                return false;
            }
            last = strtoul(end + 1, &end, 10);
        }
        if (last < first || last >= DS_ACCEL__LIST_LIMIT ||
            !visit(user_data, (uint32_t)first, (uint32_t)last)) {
            return false;
        }
        if (*end == ',') {
            end++;
        } else if (*end != '\0' && *end != '\n') {
            return false;
        }
        text = end;
    }
    return true;
}

static bool visit_count(void *user_data, uint32_t first, uint32_t last)
{
    uint32_t *count = user_data;

    assert(first <= last && last < DS_ACCEL__LIST_LIMIT);
    *count += last - first + 1;
    return true;
}

uint32_t ds_accel__list_count(const char *list)
{
    uint32_t count = 0;

    return ds_accel__list_parse(list, visit_count, &count) ? count : 0;
}

const char *ds_accel__list_next(const char **list, char separator, size_t *length_out)
{
    const char separators[] = {separator, '\0'};
    const char *item = *list + strspn(*list, separators);
    size_t length = strcspn(item, separators);

    assert(separator != '\0');
    *list = item + length;
    *length_out = length;
    return length > 0 ? item : NULL;
}
