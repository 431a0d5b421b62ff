/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as a list of ranges, for --bind_core_list. */
#include "fuzz.h"

#include "base/text.h"
#include "launch/bind.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *list = strndup(size > 0 ? (const char *)data : "", size);
    struct ds_accel__set set = {0};
    struct ds_accel__set again = {0};
    struct ds_accel__set kernel = {0};
    struct ds_accel__text text = {0};

    if (list == NULL) {
        return 0;
    }
    if (ds_accel__ranges_parse(list, &set) < 0) {
        FUZZ_CHECK(set.count == 0 && set.items == NULL);
        FUZZ_CHECK(ds_accel__is_printable(ds_accel_last_error()));
        free(list);
        return 0;
    }
    FUZZ_CHECK(set.count > 0 && set.items[set.count - 1] < DS_ACCEL__LIST_LIMIT);
    for (uint32_t i = 1; i < set.count; i++) {
        FUZZ_CHECK(set.items[i - 1] < set.items[i]);
    }
    ds_accel__set_write(&set, &text);
    FUZZ_CHECK(ds_accel__ranges_parse(text.data, &again) >= 0);
    FUZZ_CHECK(ds_accel__set_is_equal(&set, &again));
    /* The kernel's format is the same, apart from blanks and signs. */
    FUZZ_CHECK(ds_accel__set_add_list(&kernel, text.data) >= 0);
    FUZZ_CHECK(ds_accel__set_is_equal(&set, &kernel));
    ds_accel__text_clear(&text);
    ds_accel__set_clear(&set);
    ds_accel__set_clear(&again);
    ds_accel__set_clear(&kernel);
    free(list);
    return 0;
}
