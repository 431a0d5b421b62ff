/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as what a compiler writes with -MD. */
#include "fuzz.h"

#include "base/text.h"
#include "ops/depend.h"

#include <string.h>

/* Write the files as a rule. A file may end in a backslash, which a carriage return does not
 * continue. */
static void write_rule(char *const *files, struct ds_accel__text *text)
{
    ds_accel__text_add(text, "target:");
    for (; *files != NULL; files++) {
        ds_accel__text_add(text, " ");
        for (const char *c = *files; *c != '\0'; c++) {
            ds_accel__text_add(text, "%s%c",
                               strchr(" \t#", *c) != NULL ? "\\"
                               : *c == '$'                ? "$"
                                                          : "",
                               *c);
        }
        ds_accel__text_add(text, "\r");
    }
    ds_accel__text_add(text, " ");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ds_accel__arguments list = {0};
    struct ds_accel__arguments list_again = {0};
    struct ds_accel__text text = {0};
    int32_t status = ds_accel__depend_read((const char *)data, size, &list);
    char **files = ds_accel__arguments_take(&list);
    char **again;

    FUZZ_CHECK(files != NULL);
    if (status < 0) {
        FUZZ_CHECK(status == DS_ACCEL_ERR_INVALID && files[0] == NULL);
        ds_accel__arguments_free(files);
        return 0;
    }
    FUZZ_CHECK(2 * ds_accel__arguments_count(files) < size);
    for (size_t i = 0; files[i] != NULL; i++) {
        FUZZ_CHECK(files[i][0] != '\0' && files[i][strcspn(files[i], "\r\n")] == '\0');
    }
    write_rule(files, &text);
    FUZZ_CHECK(ds_accel__depend_read(text.data, text.size_bytes, &list_again) >= 0);
    again = ds_accel__arguments_take(&list_again);
    FUZZ_CHECK(ds_accel__arguments_count(again) == ds_accel__arguments_count(files));
    for (size_t i = 0; files[i] != NULL; i++) {
        FUZZ_CHECK(strcmp(files[i], again[i]) == 0);
    }
    ds_accel__arguments_free(files);
    ds_accel__arguments_free(again);
    ds_accel__text_clear(&text);
    return 0;
}
