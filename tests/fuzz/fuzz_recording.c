/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary text as a recorded machine: a recording that the reader accepts works in contexts and
 * in reports.
 */
#include "fuzz.h"

#include "base/text.h"
#include "host/registry.h"
#include "record/recording.h"

#include <stdio.h>
#include <unistd.h>

/* Check that a report finishes and is valid JSON. */
static void check_report(ds_accel_t *context, uint32_t report, const char *name)
{
    char *text = NULL;
    int32_t status = ds_accel_report(context, report, name, DS_ACCEL_FORMAT_JSON, &text);

    FUZZ_CHECK(status < 0 || text != NULL);
    if (text != NULL) {
        json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        FUZZ_CHECK(json_is_object(tree));
        json_decref(tree);
    }
    ds_accel_free_text(text);
}

static void check_context(const char *path)
{
    static const uint32_t reports[] = {DS_ACCEL_REPORT_DETECT, DS_ACCEL_REPORT_LIST,
                                       DS_ACCEL_REPORT_EXPLAIN, DS_ACCEL_REPORT_TOPO};
    const struct ds_accel_options options = {
        .struct_size = sizeof(options),
        .flags = DS_ACCEL_OPTION_NO_ENVIRONMENT | DS_ACCEL_OPTION_NO_USER_CONFIG,
        .machine_file = path,
    };
    ds_accel_t *context;

    if (ds_accel_create(&options, &context) < 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
        check_report(context, reports[i], NULL);
    }
    for (uint32_t i = 0; i < ds_accel_candidate_count(context) && i < 4; i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

        if (ds_accel_candidate_get(context, i, &candidate) >= 0) {
            check_report(context, DS_ACCEL_REPORT_INFO, candidate.name);
            check_report(context, DS_ACCEL_REPORT_ENV, candidate.name);
        }
    }
    ds_accel_destroy(context);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    FUZZ_CHECK(text != NULL);
    return text;
}

static bool is_state(const char *name)
{
    for (uint32_t state = 0; state <= DS_ACCEL_STATE_QUARANTINED; state++) {
        if (strcmp(ds_accel__state_name(state), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Check that the gates are those of this version, in order; the gate hardware may be absent. */
static void check_gates(const json_t *gates)
{
    size_t position = 0;

    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        const json_t *item = json_array_get(gates, position);

        if (item != NULL && strcmp(text_of(item, "gate"), ds_accel__gate_name(gate)) == 0) {
            position++;
        } else {
            FUZZ_CHECK(gate == DS_ACCEL__GATE_HARDWARE || gate == DS_ACCEL__GATE_START);
        }
    }
    FUZZ_CHECK(position == json_array_size(gates));
}

/* Check properties of an accepted recording that the rest of the library relies on. */
static void check_plugin(const json_t *plugin)
{
    const json_t *answers = json_object_get(plugin, "answers");
    json_int_t count = json_integer_value(json_object_get(answers, "device_count"));

    FUZZ_CHECK(strlen(text_of(plugin, "name")) < DS_ACCEL__NAME_SIZE);
    FUZZ_CHECK(strlen(text_of(plugin, "version")) < 32);
    FUZZ_CHECK(strlen(text_of(plugin, "vendor")) < 64);
    FUZZ_CHECK(is_state(text_of(plugin, "state")));
    FUZZ_CHECK(json_is_integer(json_object_get(plugin, "strikes")));
    FUZZ_CHECK(!json_is_object(answers) || (count > 0 && count <= DS_ACCEL__DEVICE_LIMIT));
    check_gates(json_object_get(plugin, "gates"));
}

static void check_accepted(const json_t *root, const uint8_t *data, size_t size)
{
    const json_t *plugins = json_object_get(root, "plugins");
    json_t *again = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);

    FUZZ_CHECK(again != NULL);
    json_decref(again);
    FUZZ_CHECK(json_integer_value(json_object_get(root, "format")) == DS_ACCEL__RECORDING_FORMAT);
    FUZZ_CHECK(json_is_string(json_object_get(root, "searched")));
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        check_plugin(json_array_get(plugins, i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[] = "/tmp/ds-accel-fuzz-XXXXXX";
    json_t *root = NULL;
    int32_t status = ds_accel__recording_parse("input", (const char *)data, size, &root);
    int fd;

    if (status < 0) {
        FUZZ_CHECK(root == NULL);
        FUZZ_CHECK(strncmp(ds_accel_last_error(), "input:", 6) == 0);
        return 0;
    }
    check_accepted(root, data, size);
    json_decref(root);
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size) {
        check_context(path);
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return 0;
}
