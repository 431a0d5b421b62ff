/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as a hostfile and as a file with variables for other hosts. */
#include "fuzz.h"

#include "base/text.h"
#include "launch/exports.h"
#include "launch/hosts.h"

#include <string.h>

/* Check that an error has lines of printable text. */
static void check_error(void)
{
    const char *message = ds_accel_last_error();
    char copy[4096];
    char *rest = copy;
    char *line;

    FUZZ_CHECK(message[0] != '\0');
    ds_accel__copy(copy, sizeof(copy), message);
    while ((line = strsep(&rest, "\n")) != NULL) {
        FUZZ_CHECK(ds_accel__is_printable(line));
    }
}

/* ---- the hostfile --------------------------------------------------------------------------- */

static void check_hosts(const struct ds_accel__hosts *hosts, struct ds_accel__text *text)
{
    uint64_t total = 0;

    FUZZ_CHECK(hosts->count > 0 && hosts->count <= DS_ACCEL__HOST_LIMIT);
    for (size_t i = 0; i < hosts->count; i++) {
        const struct ds_accel__job_host *host = &hosts->items[i];

        FUZZ_CHECK(host->name[0] != '\0' && host->name[0] != '#');
        FUZZ_CHECK(host->name[strcspn(host->name, " \t\v\f\r\n")] == '\0');
        for (uint32_t j = 0; j < host->slot_count; j++) {
            FUZZ_CHECK(host->slots[j].index == j && host->slots[j].token == NULL);
        }
        total += host->slot_count;
        ds_accel__text_add(text, "%s slots=%u\n", host->name, host->slot_count);
    }
    FUZZ_CHECK(total <= DS_ACCEL__RANK_LIMIT);
}

/* Check that the hosts, written and parsed again, are the same. */
static void check_hostfile(const char *data, size_t size)
{
    struct ds_accel__hosts hosts = {0};
    struct ds_accel__hosts again = {0};
    struct ds_accel__text text = {0};

    if (ds_accel__hostfile_parse("host\nfile", data, size, &hosts) < 0) {
        FUZZ_CHECK(hosts.items == NULL && hosts.count == 0);
        check_error();
        return;
    }
    check_hosts(&hosts, &text);
    FUZZ_CHECK(ds_accel__hostfile_parse("again", text.data, text.size_bytes, &again) >= 0);
    FUZZ_CHECK(again.count == hosts.count);
    for (size_t i = 0; i < hosts.count; i++) {
        FUZZ_CHECK(strcmp(hosts.items[i].name, again.items[i].name) == 0);
        FUZZ_CHECK(hosts.items[i].slot_count == again.items[i].slot_count);
    }
    ds_accel__text_clear(&text);
    ds_accel__hosts_clear(&hosts);
    ds_accel__hosts_clear(&again);
}

/* ---- the variables -------------------------------------------------------------------------- */

static void check_variables(const char *data, size_t size)
{
    static const char *const environment[] = {"PYTHONPATH=/lib", NULL};
    struct ds_accel__env_file file = {
        .path = (char *)"env\nfile", .text = (char *)data, .size_bytes = size};
    struct ds_accel__launch_facts facts = {
        .environment = environment, .directory = "/job", .env_files = &file, .env_file_count = 1};
    json_t *exports = json_object();
    const char *name;
    json_t *value;

    if (ds_accel__exports_make(&facts, exports) < 0) {
        check_error();
    }
    json_object_foreach(exports, name, value)
    {
        FUZZ_CHECK(name[0] != '\0' && name[strcspn(name, "= \t\r\n")] == '\0');
        FUZZ_CHECK(strlen(json_string_value(value)) == json_string_length(value));
        FUZZ_CHECK(strchr(json_string_value(value), '\n') == NULL);
    }
    json_decref(exports);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_hostfile((const char *)data, size);
    check_variables((const char *)data, size);
    return 0;
}
