/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What is read of incomplete and wrong files: of a machine (reading.json), and a hostfile. */
#include "launch.h"

#include <sys/stat.h>
#include <unistd.h>

static void check_machine(const json_t *row)
{
    json_t *texts = json_object_get(row, "files");
    json_t *files = json_object();
    const char *path;
    json_t *text;
    char *got;

    json_object_foreach(texts, path, text)
    {
        char full[256];

        snprintf(full, sizeof(full), "%s%s", path[0] == '/' ? "" : "/sys/devices/system/", path);
        json_object_set_new(files, full, json_pack("{s:O}", "text", text));
    }
    got = describe_machine(files);
    check(member(row, "name"), strcmp(got, member(row, "expected")) == 0, "got\n%s\nexpected\n%s",
          got, member(row, "expected"));
    free(got);
    json_decref(files);
}

static void check_hostfile(const char *name, const char *path, int32_t expected,
                           const char *message)
{
    struct ds_accel__hosts hosts = {0};
    int32_t status = ds_accel__hostfile_read(path, &hosts);

    check(name,
          status == expected && (status >= 0 || strstr(ds_accel_last_error(), message) != NULL) &&
              (status >= 0) == (hosts.count > 0),
          "status %d, %s", status, ds_accel_last_error());
    ds_accel__hosts_clear(&hosts);
}

static void test_hostfiles(void)
{
    char root[] = "/tmp/ds-accel-launch-XXXXXX";
    char path[64];
    FILE *file;

    if (mkdtemp(root) == NULL) {
        check("a directory is made", false, "%s", root);
        return;
    }
    snprintf(path, sizeof(path), "%s/hosts", root);
    check_hostfile("a hostfile that does not exist is reported as such", path,
                   DS_ACCEL_ERR_NOT_FOUND, "no such file");
    check_hostfile("a directory is no hostfile", root, DS_ACCEL_ERR_IO, "it is a directory");
    file = fopen(path, "w");
    if (file != NULL) {
        fputs("w0 slots=1\n", file);
        fclose(file);
    }
    check_hostfile("a hostfile is read", path, DS_ACCEL_OK, "");
    remove(path);
    remove(root);
}

void test_reading(void)
{
    json_t *table = read_data("reading.json");
    size_t i;
    json_t *row;

    json_array_foreach(table, i, row)
    {
        check_machine(row);
    }
    json_decref(table);
    test_hostfiles();
}
