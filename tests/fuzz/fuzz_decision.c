/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary text as the value of DS_ACCEL_DECISION, unchanged and with a valid checksum, so that
 * the fields are parsed. A decision that is accepted, written and read again is the same.
 */
#include "fuzz.h"

#include "host/decision.h"

#include <string.h>

static void check_texts(const struct ds_accel__decision *decision)
{
    FUZZ_CHECK(ds_accel__is_backend_name(decision->accelerator));
    FUZZ_CHECK(memchr(decision->version, '\0', sizeof(decision->version)) != NULL);
    FUZZ_CHECK(memchr(decision->set_method, '\0', sizeof(decision->set_method)) != NULL);
    FUZZ_CHECK(memchr(decision->variant, '\0', sizeof(decision->variant)) != NULL);
    FUZZ_CHECK(memchr(decision->detail, '\0', sizeof(decision->detail)) != NULL);
    FUZZ_CHECK(memchr(decision->path, '\0', sizeof(decision->path)) != NULL);
    FUZZ_CHECK(ds_accel__is_printable(decision->variant));
    FUZZ_CHECK(ds_accel__is_printable(decision->detail));
    FUZZ_CHECK(decision->path[0] == '/');
    FUZZ_CHECK(decision->device_count > 0 && decision->device_count <= DS_ACCEL__DEVICE_LIMIT);
}

static void check_value(const char *value)
{
    static struct ds_accel__decision decision;
    static struct ds_accel__decision again;
    struct ds_accel__text text = {0};
    const char *problem = ds_accel__decision_parse(value, &decision);

    if (problem != NULL) {
        FUZZ_CHECK(problem[0] != '\0');
        return;
    }
    check_texts(&decision);
    ds_accel__decision_format(&decision, &text);
    FUZZ_CHECK(!text.failed);
    FUZZ_CHECK(ds_accel__decision_parse(text.data, &again) == NULL);
    FUZZ_CHECK(memcmp(&decision, &again, sizeof(decision)) == 0);
    text.data[text.size_bytes / 2] ^= 1; /* any change is detected */
    FUZZ_CHECK(ds_accel__decision_parse(text.data, &again) != NULL);
    ds_accel__text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *value = strndup(size > 0 ? (const char *)data : "", size);
    struct ds_accel__text text = {0};

    if (value == NULL) {
        return 0;
    }
    check_value(value);
    ds_accel__text_add(&text, "%s;check=%llx", value,
                       (unsigned long long)ds_accel__hash(value, strlen(value), 1));
    FUZZ_CHECK(!text.failed);
    check_value(text.data);
    ds_accel__text_clear(&text);
    free(value);
    return 0;
}
