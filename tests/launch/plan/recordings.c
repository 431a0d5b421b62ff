/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A recording has the CPUs and NUMA nodes of the machine: ranks are placed on both alike. */
#include "launch.h"

#include <sys/stat.h>
#include <unistd.h>

/* Write a machine's files below a directory. */
static bool write_files(json_t *files, const char *root)
{
    const char *path;
    json_t *entry;
    bool is_written = true;

    json_object_foreach(files, path, entry)
    {
        char full[1024];
        FILE *file;

        snprintf(full, sizeof(full), "%s%s", root, path);
        for (char *at = strchr(full + strlen(root) + 1, '/'); at != NULL;
             at = strchr(at + 1, '/')) {
            *at = '\0';
            mkdir(full, 0755);
            *at = '/';
        }
        file = fopen(full, "w");
        is_written = is_written && file != NULL;
        if (file != NULL) {
            fputs(member(entry, "text"), file);
            fclose(file);
        }
    }
    return is_written;
}

/* Record the machine below a directory, without plugins. */
static json_t *record(const char *root)
{
    const char *plugins = root;
    struct ds_accel_options options = {
        .struct_size = sizeof(options),
        .flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_ENVIRONMENT |
                 DS_ACCEL_OPTION_NO_CACHE,
        .machine_root = root,
        .package_config_dir = root,
        .system_config_dir = root,
        .plugin_dirs = &plugins,
        .plugin_dir_count = 1,
    };
    ds_accel_t *context = NULL;
    char *text = NULL;
    json_t *recording = NULL;

    if (ds_accel_create(&options, &context) >= 0) {
        ds_accel_report(context, DS_ACCEL_REPORT_RECORDING, NULL, DS_ACCEL_FORMAT_JSON, &text);
        recording = text != NULL ? json_loads(text, 0, NULL) : NULL;
        ds_accel_free_text(text);
        ds_accel_destroy(context);
    }
    return recording;
}

static void check_recording(const char *name)
{
    json_t *files = find_machine(name);
    char root[] = "/tmp/ds-accel-launch-XXXXXX";
    char command[64];
    json_t *recording = NULL;
    char *machine = describe_machine(files);
    char *recorded;

    if (mkdtemp(root) != NULL && write_files(files, root)) {
        recording = record(root);
    }
    recorded = describe_machine(json_object_get(recording, "files"));
    check("a recording has the CPUs and nodes of the machine",
          recording != NULL && strcmp(machine, recorded) == 0, "%s:\n%s\nrecorded: %s\n%s", name,
          machine, recorded, ds_accel_last_error());
    free(machine);
    free(recorded);
    json_decref(recording);
    snprintf(command, sizeof(command), "rm -rf %s", root);
    check("the directory is removed", system(command) == 0, "%s", command);
}

void test_recordings(void)
{
    check_recording("two-sockets-smt");
    check_recording("flat-hbm");
    check_recording("limited-container");
    check_recording("offline-cpus");
}
