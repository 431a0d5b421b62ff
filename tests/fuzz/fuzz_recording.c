/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Any text as a recorded machine: what the reader lets through, contexts and reports take as it is.
 */
#include "fuzz.h"

#include "recording.h"

#include <stdio.h>
#include <unistd.h>

/* Whatever the reports say, they end, and their JSON is JSON. */
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
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(reports); i++) {
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
