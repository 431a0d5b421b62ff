/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as what a host remembers of the file from which an op was loaded. */
#include "fuzz.h"

#include "base/json.h"
#include "ops/load_cache.h"

#include <string.h>

#define QUESTION "a"

/* What accepted objects have, whatever else is in them. */
static void check(const json_t *object)
{
    const json_t *files = json_object_get(object, "files");
    const char *op = ds_accel__json_string(object, "op");
    uint64_t identity;

    FUZZ_CHECK(op[0] != '\0' && strlen(op) < DS_ACCEL__OP_NAME_SIZE);
    FUZZ_CHECK(ds_accel__json_string(object, "path")[0] == '/');
    FUZZ_CHECK(json_array_size(files) > 0);
    for (size_t i = 0; i < json_array_size(files); i++) {
        FUZZ_CHECK(json_string_value(json_array_get(files, i)) != NULL);
    }
    ds_accel__load_cache_identify(files, &identity);
    FUZZ_CHECK(!ds_accel__load_cache_answers(object, QUESTION "another"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = json_loadb((const char *)data, size, 0, NULL);

    if (object != NULL && ds_accel__load_cache_answers(object, QUESTION)) {
        check(object);
    }
    json_decref(object);
    return 0;
}
