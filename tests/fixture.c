/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "fixture.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

char test_log[16384];

/*
 * Called by the leak checker; turns it off in Criterion's runner. The runner leaks a timeout (48
 * bytes) when a test ends while the runner walks its timeouts, which is likely on a busy machine.
 * The runner executes none of the project's code. Each test is a separate process, to which
 * Criterion passes BXFI_MAP, and is still checked.
 */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return getenv("BXFI_MAP") == NULL;
}

static char dir[64];
static pid_t dir_owner;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_dir(void)
{
    if (dir_owner == getpid()) {
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}

bool test_is_sampled(size_t index, size_t one_in)
{
    const char *full = getenv("FULL");
    const char *seed = getenv("SEED");
    size_t first = seed != NULL ? strtoull(seed, NULL, 10) % one_in : 0;

    return (full != NULL && full[0] != '\0') || index % one_in == first;
}

const char *test_dir(void)
{
    if (dir_owner != getpid()) {
        snprintf(dir, sizeof(dir), "/tmp/ds-accel-test-XXXXXX");
        cr_assert_not_null(mkdtemp(dir));
        dir_owner = getpid();
        atexit(remove_dir);
    }
    return dir;
}

const char *test_path(const char *path)
{
    static char paths[8][512];
    static unsigned next;
    char *full = paths[next++ % 8];

    snprintf(full, sizeof(paths[0]), "%s/%s", test_dir(), path);
    for (char *slash = full + strlen(test_dir()) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        cr_assert(mkdir(full, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    return full;
}

const char *test_write_bytes(const char *path, const void *data, size_t size)
{
    const char *full = test_path(path);
    FILE *file = fopen(full, "wb");

    cr_assert_not_null(file, "%s: %s", full, strerror(errno));
    cr_assert_eq(fwrite(data, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
    return full;
}

const char *test_write(const char *path, const char *text)
{
    return test_write_bytes(path, text, strlen(text));
}

const char *test_copy(const char *from, const char *path)
{
    FILE *file = fopen(from, "rb");
    struct stat info;
    const char *full;
    void *data;

    cr_assert_not_null(file, "%s: %s", from, strerror(errno));
    cr_assert_eq(fstat(fileno(file), &info), 0);
    data = malloc((size_t)info.st_size);
    cr_assert_not_null(data);
    cr_assert_eq(fread(data, 1, (size_t)info.st_size, file), (size_t)info.st_size);
    fclose(file);
    full = test_write_bytes(path, data, (size_t)info.st_size);
    free(data);
    return full;
}

void test_add_mock(const char *name)
{
    char from[512];
    char to[128];

    snprintf(from, sizeof(from), "%s/ds_accel_%s.so", TEST_MOCKS, name);
    snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", name);
    test_copy(from, to);
}

static void keep_log(void *user_data, uint32_t level, const char *topic, const char *message)
{
    size_t length = strlen(test_log);

    (void)user_data;
    snprintf(test_log + length, sizeof(test_log) - length, "%u %s: %s\n", level, topic, message);
}

struct ds_accel_options test_options(void)
{
    static char plugins[128];
    static char share[128];
    static char etc[128];
    static const char *dirs[] = {plugins};
    struct ds_accel_options options = {.struct_size = sizeof(options)};

    snprintf(plugins, sizeof(plugins), "%s/plugins", test_dir());
    snprintf(share, sizeof(share), "%s/share", test_dir());
    snprintf(etc, sizeof(etc), "%s/etc", test_dir());
    options.flags = DS_ACCEL_OPTION_NO_USER_CONFIG | DS_ACCEL_OPTION_NO_CACHE;
    options.plugin_dirs = dirs;
    options.plugin_dir_count = 1;
    options.package_config_dir = share;
    options.system_config_dir = etc;
    options.log_sink = keep_log;
    options.log_levels = "info";
    return options;
}

ds_accel_t *test_create_with(const struct ds_accel_options *options)
{
    ds_accel_t *context = NULL;
    int32_t status = ds_accel_create(options, &context);

    cr_assert_eq(status, DS_ACCEL_OK, "%s", ds_accel_last_error());
    return context;
}

ds_accel_t *test_create(void)
{
    struct ds_accel_options options = test_options();

    return test_create_with(&options);
}

char *test_compact(char *json)
{
    bool in_string = false;
    char *to = json;

    for (const char *from = json; *from != '\0'; from++) {
        if (in_string && *from == '\\') {
            *to++ = *from++;
        } else if (*from == '"') {
            in_string = !in_string;
        }
        if (in_string || strchr(" \n", *from) == NULL) {
            *to++ = *from;
        }
    }
    *to = '\0';
    return json;
}

ds_accel_t *test_start(const char *accelerator, ds_accel_device_t **device_out)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = accelerator;
    context = test_create_with(&options);
    MUST(ds_accel_detect(context));
    MUST(ds_accel_device_open(context, 0, device_out));
    return context;
}

void test_finish(ds_accel_t *context, ds_accel_device_t *device)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

struct ds_accel_candidate test_candidate(ds_accel_t *context, const char *name)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        cr_assert_eq(ds_accel_candidate_get(context, i, &candidate), DS_ACCEL_OK);
        if (strcmp(candidate.name, name) == 0) {
            return candidate;
        }
    }
    cr_assert(false, "no candidate %s", name);
    return candidate;
}

char *test_report(ds_accel_t *context, uint32_t report, const char *name, uint32_t format)
{
    char *text = NULL;
    int32_t status = ds_accel_report(context, report, name, format, &text);

    cr_assert_eq(status, DS_ACCEL_OK, "%s", ds_accel_last_error());
    return text;
}
