/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A job on several hosts inherits only a part of the environment of the launcher: PYTHONPATH with
 * the working directory in front, the variables whose names begin with one of DeepSpeed's or of the
 * accelerator's prefixes, and the lines NAME=VALUE of the environment files, of which the later
 * wins. DeepSpeed refuses empty lines and comments in these files, accepts any name, and strips the
 * values of all variables; here only the values of files are stripped.
 */
#include "launch/exports.h"
#include "base/file.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_BYTES (16u << 20)
#define PROBLEM_LIMIT 8u

static const char *variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

/* ---- environment files ---------------------------------------------------------------------- */

static int32_t read_file(const char *directory, const char *name, struct ds_accel__env_file *files,
                         uint32_t *count)
{
    struct ds_accel__env_file *file = &files[*count];
    const char *cause = NULL;
    int32_t status;

    *file = (struct ds_accel__env_file){0};
    if (strcmp(name, "/dev/null") == 0) {
        return DS_ACCEL_OK;
    }
    file->path = name[0] == '/' ? strdup(name) : ds_accel__join(directory, '/', name);
    if (file->path == NULL) {
        return ds_accel__no_memory();
    }
    status =
        ds_accel__file_read(file->path, FILE_LIMIT_BYTES, &file->text, &file->size_bytes, &cause);
    if (status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_NOT_FOUND) {
        ds_accel__env_files_clear(file, 1);
        return status == DS_ACCEL_ERR_NO_MEMORY ? status : DS_ACCEL_OK;
    }
    file->cause = status < 0 ? cause : NULL;
    *count += 1;
    return DS_ACCEL_OK;
}

int32_t ds_accel__env_files_read(const char *const *environment, const char *directory,
                                 struct ds_accel__env_file files[static DS_ACCEL__ENV_FILE_LIMIT],
                                 uint32_t *count_out)
{
    const char *name = variable(environment, "DS_ENV_FILE");
    const char *home = variable(environment, "HOME");
    uint32_t count = 0;
    int32_t status = DS_ACCEL_OK;

    name = name != NULL ? name : ".deepspeed_env";
    if (name[0] != '\0' && name[0] != '/' && home != NULL && home[0] != '\0') {
        status = read_file(home, name, files, &count);
    }
    if (status >= 0 && name[0] != '\0') {
        status = read_file(directory, name, files, &count);
    }
    if (status < 0) {
        ds_accel__env_files_clear(files, count);
    } else {
        *count_out = count;
    }
    return status;
}

void ds_accel__env_files_clear(struct ds_accel__env_file *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(files[i].path);
        free(files[i].text);
        files[i] = (struct ds_accel__env_file){0};
    }
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');

        if (!is_letter && text[i] != '_' && (i == 0 || text[i] < '0' || text[i] > '9')) {
            return false;
        }
    }
    return length > 0;
}

static int32_t set(json_t *exports, const char *name, size_t name_length, const char *value,
                   size_t value_length)
{
    char *key = strndup(name, name_length);
    bool is_set = key != NULL && json_object_set_new_nocheck(
                                     exports, key, json_stringn_nocheck(value, value_length)) == 0;

    free(key);
    return is_set ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Add the variable of a line; empty lines and comments add nothing. *is_wrong_out: the line is
 * another one. */
static int32_t add_line(json_t *exports, const char *line, size_t length, bool *is_wrong_out)
{
    const char *equals;
    const char *value;
    size_t name_length;
    size_t value_length;

    ds_accel__trim(&line, &length);
    *is_wrong_out = false;
    if (length == 0 || line[0] == '#') {
        return DS_ACCEL_OK;
    }
    equals = memchr(line, '=', length);
    name_length = equals != NULL ? (size_t)(equals - line) : 0;
    value = equals != NULL ? equals + 1 : line;
    value_length = equals != NULL ? length - name_length - 1 : 0;
    ds_accel__trim(&line, &name_length);
    ds_accel__trim(&value, &value_length);
    *is_wrong_out = !is_name(line, name_length) || memchr(value, '\0', value_length) != NULL;
    return *is_wrong_out ? DS_ACCEL_OK : set(exports, line, name_length, value, value_length);
}

/* Add "path:line: problem" to the problems of a file. */
static void add_problem(struct ds_accel__text *problems, const char *path, unsigned number,
                        const char *line, size_t length)
{
    char text[512];

    snprintf(text, sizeof(text), "%.300s:%u: \"%.*s\": expected NAME=VALUE", path, number,
             (int)(length < 80 ? length : 80), line);
    ds_accel__sanitize(text, sizeof(text));
    ds_accel__text_add(problems, "%s%s", problems->size_bytes > 0 ? "\n" : "", text);
}

static int32_t add_lines(json_t *exports, const struct ds_accel__env_file *file)
{
    const char *end = file->text + file->size_bytes;
    struct ds_accel__text problems = {0};
    unsigned number = 0;
    unsigned wrong = 0;
    int32_t status = DS_ACCEL_OK;

    for (const char *line = file->text; line < end && status >= 0;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop != NULL ? stop : end) - line);
        bool is_wrong;

        number++;
        status = add_line(exports, line, length, &is_wrong);
        if (is_wrong && wrong++ < PROBLEM_LIMIT) {
            add_problem(&problems, file->path, number, line, length);
        }
        line += length + 1;
    }
    if (status >= 0 && wrong > 0) {
        status = problems.failed ? ds_accel__no_memory()
                                 : ds_accel__error_lines(DS_ACCEL_ERR_CONFIG, problems.data);
    }
    ds_accel__text_clear(&problems);
    return status;
}

/* ---- the environment ------------------------------------------------------------------------ */

static bool starts_with_one(const char *entry, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* True if other hosts get the variable of an entry "NAME=VALUE". */
static bool is_exported(const struct ds_accel__launch_facts *facts, const char *entry)
{
    static const char *const prefixes[] = {
        "MLFLOW", "PYTHON", "MV2", "UCX",
        /* those of Nebula */
        "DLTS_JOB_ID", "DLTS_NUM_WORKER", "NEBULA_PERSISTENT_STORAGE_PATH",
        "NEBULA_PERSISTENT_TIME_INTERVAL", "AML_RUN_ID", "AZUREML_RUN_TOKEN",
        "AZUREML_WORKSPACE_SCOPE", "AZUREML_EXPERIMENT_SCOPE",
        "AZUREML_RUN_HISTORY_SERVICE_ENDPOINT", "AZUREML_RUN_ID", "NEBULA_MEMORY_BUFFER_SIZE",
        "AZUREML_PARAMETER_ITPJOB_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX", "MASTER_HOST",
        "LOCAL_HOST", "AZUREML_BLOB_ACCOUNT_NAME", "AZUREML_BLOB_ACCOUNT_KEY"};
    /* A job of AISC has other network cards on each host. */
    static const char *const of_host[] = {"NCCL_IB_HCA=", "UCX_NET_DEVICES="};

    if (variable(facts->environment, "AISC_JOB_NAME") != NULL &&
        starts_with_one(entry, of_host, ARRAY_SIZE(of_host))) {
        return false;
    }
    return starts_with_one(entry, prefixes, ARRAY_SIZE(prefixes)) ||
           starts_with_one(entry, facts->export_prefixes, facts->export_count);
}

static int32_t add_path(const struct ds_accel__launch_facts *facts, json_t *exports)
{
    static const char name[] = "PYTHONPATH";
    const char *old = variable(facts->environment, name);
    char *path = old != NULL ? ds_accel__join(facts->directory, ':', old)
                             : strdup(facts->directory);
    int32_t status = path != NULL ? set(exports, name, strlen(name), path, strlen(path))
                                  : ds_accel__no_memory();

    free(path);
    return status;
}

int32_t ds_accel__exports_make(const struct ds_accel__launch_facts *facts, json_t *exports)
{
    int32_t status = DS_ACCEL_OK;

    for (const char *const *entry = facts->environment; *entry != NULL && status >= 0; entry++) {
        size_t length = strcspn(*entry, "=");

        if ((*entry)[length] == '=' && is_exported(facts, *entry)) {
            const char *value = *entry + length + 1;

            status = set(exports, *entry, length, value, strlen(value));
        }
    }
    if (status >= 0) {
        status = add_path(facts, exports);
    }
    for (uint32_t i = 0; i < facts->env_file_count && status >= 0; i++) {
        const struct ds_accel__env_file *file = &facts->env_files[i];

        status = file->cause != NULL
                     ? ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", file->path, file->cause)
                     : add_lines(exports, file);
    }
    return status;
}
