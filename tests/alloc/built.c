/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "built.h"

#include "alloc/allocations.h"
#include "ops/op.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file is believed to be unchanged only if it is older than two seconds. */
#define SETTLED_SECONDS 4
#define MOST_LOADS 20u

static char top[] = "/tmp/ds-accel-alloc-ops-XXXXXX";
static char etc[64];
static char cache[64];
static struct ds_accel_options built_options;
static char load_file[128]; /* what is remembered of the load of tiny */

/*
 * The compiler compiles once, and from then on copies what it made: a scenario runs it thousands of
 * times. It fails for the op broken.
 */
static const char compiler[] = "#!/bin/sh\n"
                               "kept=${0%/*}/kept\n"
                               "case \" $* \" in\n"
                               "*\" -DBROKEN \"*) echo broken on purpose >&2; exit 1 ;;\n"
                               "*\" -c \"*) kept=$kept.o ;;\n"
                               "*\" -shared \"*) kept=$kept.so ;;\n"
                               "*) exec gcc \"$@\" ;;\n"
                               "esac\n"
                               "output= depends=/dev/null before=\n"
                               "for argument; do\n"
                               "    case $before in\n"
                               "    -o) output=$argument ;;\n"
                               "    -MF) depends=$argument ;;\n"
                               "    esac\n"
                               "    before=$argument\n"
                               "done\n"
                               "if [ ! -e \"$kept\" ]; then\n"
                               "    gcc \"$@\" >\"$kept.text\" || exit\n"
                               "    cp \"$depends\" \"$kept.d\"\n"
                               "    cp \"$output\" \"$kept\"\n"
                               "fi\n"
                               "cat \"$kept.text\"\n"
                               "cat \"$kept.d\" >\"$depends\"\n"
                               "cp \"$kept\" \"$output\"\n";

static const char source[] =
    "#include <ds-accel/ops/op.h>\n"
    "static const char *const names[] = {\"scalar\", 0};\n"
    "static const char *const *paths(void) { return names; }\n"
    "static const char *path(void) { return names[0]; }\n"
    "static const struct ds_accel_op table = {sizeof(table), DS_ACCEL_OP_ABI_MAJOR, 7, \"tiny\",\n"
    "    paths, path};\n"
    "DS_ACCEL_OP(\"tiny\", &table);\n";

static bool write_file(const char *name, const char *text, mode_t mode)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", top, name);
    file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        return false;
    }
    return chmod(path, mode) == 0;
}

/* Write the recipes of three ops with the same source: tiny, one that is never built, and one that
 * cannot be. */
static bool write_recipes(const char *build)
{
    static const char *const ops[] = {"tiny", "small", "broken"};
    static char text[8192];
    size_t at = (size_t)snprintf(text, sizeof(text), "{\"kernels\": {");

    for (size_t i = 0; i < 3; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "%s\"%s\": {\"source_dir\": \"%s/src\", \"sources\": [\"tiny.c\"], "
                               "\"include_dirs\": [\"%s/include\"], \"cflags\": [\"-std=c11\"%s], "
                               "\"requires\": {\"commands\": [\"sh\"], \"cpu\": []}}",
                               i > 0 ? ", " : "", ops[i], top, build,
                               i == 2 ? ", \"-DBROKEN\"" : "");
    }
    at += (size_t)snprintf(text + at, sizeof(text) - at,
                           "}, \"backends\": {\"cpu\": {\"op_builders\": {");
    for (size_t i = 0; i < 3; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "%s\"%c%sBuilder\": {\"op\": \"%s\", \"kind\": \"compiled\"}",
                               i > 0 ? ", " : "", ops[i][0] - 'a' + 'A', ops[i] + 1, ops[i]);
    }
    snprintf(text + at, sizeof(text) - at, "}}}}\n");
    return write_file("etc/ds-accel.json", text, 0644);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

int32_t report_ops(const struct ds_accel_options *options, const char *name, uint32_t format)
{
    ds_accel_t *context;
    char *text = NULL;
    int32_t status = ds_accel_create(options, &context);

    if (status < 0) {
        return status;
    }
    status = ds_accel_ops_report(context, "cpu", name, format, &text);
    answer(text);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return status;
}

int32_t list_built_ops(void)
{
    return report_ops(&built_options, NULL, 0);
}

int32_t show_built_op(void)
{
    return report_ops(&built_options, "TinyBuilder", DS_ACCEL_FORMAT_JSON);
}

int32_t show_op_to_build(void)
{
    return report_ops(&built_options, "SmallBuilder", DS_ACCEL_FORMAT_JSON);
}

/* Load an op. *wanted: the status that is OK. */
static int32_t load(const char *name, int32_t wanted)
{
    const struct ds_accel_op *op = NULL;
    ds_accel_t *context;
    int32_t status = ds_accel_create(&built_options, &context);

    if (status < 0) {
        return status;
    }
    status = ds_accel_op_load(context, name, &op);
    answer(op != NULL ? op->name : ds_accel_last_error());
    ds_accel_destroy(context);
    return status == wanted ? DS_ACCEL_OK : status;
}

int32_t load_remembered_op(void)
{
    return load("TinyBuilder", DS_ACCEL_OK);
}

int32_t load_cached_op(void)
{
    unlink(load_file);
    return load("TinyBuilder", DS_ACCEL_OK);
}

int32_t load_broken_op(void)
{
    return load("BrokenBuilder", DS_ACCEL_ERR_NOT_USABLE);
}

static int32_t build(const char *name, uint32_t flags)
{
    const struct ds_accel_ops_build_options options = {
        .struct_size = sizeof(options), .flags = flags, .jobs = 1};
    ds_accel_t *context;
    char *text = NULL;
    uint32_t failures = 0;
    int32_t status = ds_accel_create(&built_options, &context);

    if (status < 0) {
        return status;
    }
    status =
        ds_accel_ops_build(context, "cpu", name, &options, DS_ACCEL_FORMAT_JSON, &failures, &text);
    answer(text);
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return status;
}

int32_t build_broken_op(void)
{
    return build("BrokenBuilder", 0);
}

int32_t build_op(void)
{
    return build("TinyBuilder", DS_ACCEL_OPS_BUILD_FORCE);
}

/* ---- preparation ---------------------------------------------------------------------------- */

static bool make_directories(void)
{
    static const char *const names[] = {"etc", "src", "cache"};
    char path[128];

    if (mkdtemp(top) == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", top, names[i]);
        if (mkdir(path, 0755) != 0) {
            return false;
        }
    }
    return true;
}

/* Find the file in which the load of tiny is remembered. */
static bool find_load_file(void)
{
    char pattern[128];
    glob_t found = {.gl_pathc = 0};
    bool is_found;

    snprintf(pattern, sizeof(pattern), "%s/ops-load.*", cache);
    is_found = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1;
    if (is_found) {
        snprintf(load_file, sizeof(load_file), "%s", found.gl_pathv[0]);
    }
    globfree(&found);
    return is_found;
}

/* Load tiny until the load is remembered: other programs may change a directory that counts, such
 * as one of PATH. */
static bool load_until_remembered(void)
{
    for (unsigned i = 0; i < MOST_LOADS; i++) {
        sleep(SETTLED_SECONDS);
        if (load_remembered_op() < 0) {
            printf("FAILED: ops: %s\n", ds_accel_last_error());
            return false;
        }
        if (find_load_file()) {
            return true;
        }
    }
    printf("FAILED: ops: no load is remembered\n");
    return false;
}

bool built_has(int32_t (*run)(void))
{
    int32_t (*const scenarios[])(void) = {list_built_ops,     show_built_op,  show_op_to_build,
                                          load_remembered_op, load_cached_op, load_broken_op,
                                          build_broken_op,    build_op};

    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if (scenarios[i] == run) {
            return true;
        }
    }
    return false;
}

bool built_prepare(const char *directory, const struct ds_accel_options *options)
{
    char path[128];

    if (load_file[0] != '\0') {
        return true;
    }
    if (!make_directories() || !write_file("src/tiny.c", source, 0644) ||
        !write_file("cc", compiler, 0755) || !write_recipes(directory)) {
        perror("FAILED: ops");
        return false;
    }
    snprintf(path, sizeof(path), "%s/cc", top);
    setenv("CC", path, 1);
    snprintf(etc, sizeof(etc), "%s/etc", top);
    snprintf(cache, sizeof(cache), "%s/cache", top);
    built_options = *options;
    built_options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    built_options.system_config_dir = etc;
    built_options.cache_dir = cache;
    return load_until_remembered();
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void built_remove(void)
{
    nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
