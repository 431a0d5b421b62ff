/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as what a host remembers of the file from which an op was loaded. */
#include "fuzz.h"

#include "ops/load_record.h"

#include <stdlib.h>
#include <string.h>

#define QUESTION "a"

/* A record that was parsed is written such that the same is parsed again. */
static void check_again(const struct ds_accel__load_record *record)
{
    char *text = ds_accel__load_record_format(record, QUESTION);
    struct ds_accel__load_record again;

    FUZZ_CHECK(text != NULL);
    FUZZ_CHECK(ds_accel__load_record_parse(text, QUESTION, &again));
    FUZZ_CHECK(strcmp(again.op, record->op) == 0 && strcmp(again.path, record->path) == 0);
    FUZZ_CHECK(strcmp(again.manifest, record->manifest) == 0);
    FUZZ_CHECK(strcmp(again.files_identity, record->files_identity) == 0);
    FUZZ_CHECK(again.compiler_count == record->compiler_count);
    for (size_t i = 0; i < again.compiler_count; i++) {
        FUZZ_CHECK(strcmp(again.compilers[i].name, record->compilers[i].name) == 0);
        FUZZ_CHECK(strcmp(again.compilers[i].path, record->compilers[i].path) == 0);
    }
    FUZZ_CHECK(strcmp(again.files, record->files) == 0);
    free(text);
}

/* What accepted texts have, whatever else is in them. */
static void check(const struct ds_accel__load_record *record)
{
    uint64_t identity;
    uint64_t again;

    FUZZ_CHECK(record->op[0] != '\0' && strlen(record->op) < DS_ACCEL__OP_NAME_SIZE);
    FUZZ_CHECK(record->path[0] == '/' && record->manifest[0] == '/' && record->files[0] == '/');
    FUZZ_CHECK(record->compiler_count > 0);
    if (ds_accel__load_record_identify(record->files, &identity)) {
        FUZZ_CHECK(ds_accel__load_record_identify(record->files, &again) && again == identity);
    }
    check_again(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ds_accel__load_record record;
    char *text = malloc(size + 1);
    char *copy;

    FUZZ_CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    copy = strdup(text);
    FUZZ_CHECK(copy != NULL);
    if (ds_accel__load_record_parse(text, QUESTION, &record)) {
        check(&record);
        FUZZ_CHECK(!ds_accel__load_record_parse(copy, QUESTION "another", &record));
    }
    free(copy);
    free(text);
    return 0;
}
