/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The variables for other hosts: tests with the table exports.json, and of reading the files. */
#include "launch.h"

#include "launch/exports.h"

#include <sys/stat.h>
#include <unistd.h>

/* Make the exports of a row: env, prefixes, and the texts of environment files. */
static json_t *answer_exports(const json_t *row)
{
    json_t *env = json_object_get(row, "env");
    json_t *texts = json_object_get(row, "files");
    struct ds_accel__env_file files[4] = {{0}};
    const char *prefixes[8];
    char *environment[32] = {NULL};
    struct ds_accel__launch_facts facts = {
        .environment = (const char *const *)environment,
        .directory = "/job",
        .export_prefixes = prefixes,
        .export_count = (uint32_t)json_array_size(json_object_get(row, "prefixes")),
        .env_files = files,
        .env_file_count = (uint32_t)json_array_size(texts),
    };
    json_t *exports = json_object();
    const char *name;
    json_t *value;
    size_t count = 0;

    json_object_foreach(env, name, value)
    {
        environment[count++] = ds_accel__join(name, '=', json_string_value(value));
    }
    for (uint32_t i = 0; i < facts.export_count; i++) {
        prefixes[i] = json_string_value(json_array_get(json_object_get(row, "prefixes"), i));
    }
    for (uint32_t i = 0; i < facts.env_file_count; i++) {
        files[i].path = (char *)(i == 0 ? "/home/me/.deepspeed_env" : "/job/.deepspeed_env");
        files[i].text = (char *)json_string_value(json_array_get(texts, i));
        files[i].size_bytes = json_string_length(json_array_get(texts, i));
        files[i].cause = files[i].text == NULL ? "permission denied" : NULL;
    }
    if (ds_accel__exports_make(&facts, exports) < 0) {
        json_decref(exports);
        exports = json_pack("{s:s}", "error", ds_accel_last_error());
    }
    for (size_t i = 0; i < count; i++) {
        free(environment[i]);
    }
    return exports;
}

static void check_exports(const json_t *row)
{
    json_t *answer = answer_exports(row);
    json_t *expected = json_object_get(row, "expected");

    if (json_object_get(expected, "error") != NULL) {
        check_answer(member(row, "name"), answer, expected);
    } else {
        char *got = json_dumps(answer, JSON_SORT_KEYS);

        check(member(row, "name"), json_equal(answer, expected), "%s", got);
        free(got);
    }
    json_decref(answer);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

/* The texts of the files that are read with an environment, separated by "|". */
static const char *read_texts(const char *const *environment, const char *directory)
{
    static char texts[1024];
    struct ds_accel__env_file files[DS_ACCEL__ENV_FILE_LIMIT];
    uint32_t count = 0;

    texts[0] = '\0';
    if (ds_accel__env_files_read(environment, directory, files, &count) < 0) {
        return ds_accel_last_error();
    }
    for (uint32_t i = 0; i < count; i++) {
        snprintf(texts + strlen(texts), sizeof(texts) - strlen(texts), "%s%s", i > 0 ? "|" : "",
                 files[i].cause != NULL ? files[i].cause : files[i].text);
    }
    ds_accel__env_files_clear(files, count);
    return texts;
}

static void check_texts(const char *name, const char *home, const char *file, const char *directory,
                        const char *expected)
{
    char variables[2][600];
    const char *environment[3] = {NULL};
    size_t count = 0;
    const char *texts;

    if (home != NULL) {
        snprintf(variables[count], sizeof(variables[0]), "HOME=%s", home);
        environment[count] = variables[count];
        count++;
    }
    if (file != NULL) {
        snprintf(variables[count], sizeof(variables[0]), "DS_ENV_FILE=%s", file);
        environment[count] = variables[count];
    }
    texts = read_texts(environment, directory);
    check(name, strcmp(texts, expected) == 0, "got \"%s\", expected \"%s\"", texts, expected);
}

static void test_files(void)
{
    char root[] = "/tmp/ds-accel-launch-XXXXXX";
    char home[64];
    char job[64];
    char path[128];

    if (mkdtemp(root) == NULL) {
        check("a directory is made", false, "%s", root);
        return;
    }
    snprintf(home, sizeof(home), "%s/home", root);
    snprintf(job, sizeof(job), "%s/job", root);
    mkdir(home, 0700);
    mkdir(job, 0700);
    check_texts("no file is needed", home, NULL, job, "");
    write_file(home, ".deepspeed_env", "A=home");
    write_file(job, ".deepspeed_env", "A=job");
    write_file(job, "other", "A=other");
    check_texts("the home directory is first", home, NULL, job, "A=home|A=job");
    check_texts("without a home directory the other file is read", NULL, NULL, job, "A=job");
    check_texts("DS_ENV_FILE is another name", home, "other", job, "A=other");
    snprintf(path, sizeof(path), "%s/other", job);
    check_texts("an absolute DS_ENV_FILE is read once", home, path, "/", "A=other");
    check_texts("an empty DS_ENV_FILE is no file", home, "", job, "");
    snprintf(path, sizeof(path), "%s/directory", job);
    mkdir(path, 0700);
    check_texts("a directory has a cause", home, "directory", job, "it is a directory");
    snprintf(path, sizeof(path), "rm -r %s", root);
    check("the directory is removed", system(path) == 0, "%s", path);
}

void test_exports(void)
{
    json_t *table = read_data("exports.json");
    size_t i;
    json_t *row;

    json_array_foreach(table, i, row)
    {
        check_exports(row);
    }
    json_decref(table);
    test_files();
}
