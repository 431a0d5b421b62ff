/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Tests of the launcher's plan: options, hostfiles, filters, core binding and environment. Most of
 * them are tables in JSON files of this directory: original.json has inputs with the results of
 * DeepSpeed's launcher and, where ours differ, ours and the reason; machines.json has machines and
 * the placement of ranks on them. The tested functions are internal, so this program is linked with
 * the core's own objects.
 *
 *     launch DIRECTORY
 */
#include "launch.h"

#include <stdarg.h>

static unsigned passed;
static unsigned failed;
static const char *directory;

void check(const char *name, bool is_right, const char *format, ...)
{
    va_list arguments;

    passed += is_right;
    failed += !is_right;
    if (!is_right) {
        printf("FAILED: %s: ", name);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    }
}

json_t *read_data(const char *file)
{
    json_error_t error;
    char path[4096];
    json_t *data;

    snprintf(path, sizeof(path), "%s/%s", directory, file);
    data = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (data == NULL) {
        printf("FAILED: %s:%d: %s\n", path, error.line, error.text);
        exit(1);
    }
    return data;
}

const char *member(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: launch DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    test_sets();
    test_reading();
    test_vectors();
    test_machines();
    test_options();
    test_exports();
    test_texts();
    test_large();
    test_recordings();
    test_failing();
    json_decref(find_machine(NULL));
    printf("launch: %u passed, %u failed\n", passed, failed);
    return failed != 0;
}
