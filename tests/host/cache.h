/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Shared by the tests of the verdict cache and of the quarantine. The fixture "counted" records
 * whether a plugin was probed: it appends a byte to a file at each probe.
 */
#ifndef DS_ACCEL_TESTS_HOST_CACHE_H
#define DS_ACCEL_TESTS_HOST_CACHE_H

#include "fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAULTS TEST_FIXTURES "/faults"

/* Paths of the cache and options of contexts, set by setup() of test_cache.c for each test. */
extern char cache_dir[128];
extern char file[160];
extern char count_file[128];
extern struct ds_accel_options base_options; /* children use the test process's directory */

static inline void put(const char *fault, const char *name)
{
    char from[512];
    char fresh[128];
    char to[128];

    snprintf(from, sizeof(from), FAULTS "/%s/ds_accel_%s.so", fault, name);
    snprintf(fresh, sizeof(fresh), "plugins/new.%s", name);
    snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", name);
    snprintf(fresh, sizeof(fresh), "%s", test_copy(from, fresh));
    cr_assert_eq(rename(fresh, test_path(to)), 0);
}

static inline struct ds_accel_options options_with_cache(void)
{
    struct ds_accel_options options = base_options;

    options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    options.cache_dir = cache_dir;
    return options;
}

/* Number of times the plugin was probed. */
static inline int probes(void)
{
    struct stat info;

    return stat(count_file, &info) == 0 ? (int)info.st_size : 0;
}

static inline int32_t try_detect(const struct ds_accel_options *options, char *name, size_t size)
{
    ds_accel_t *context;
    int32_t status = ds_accel_create(options, &context);

    if (status >= 0) {
        status = ds_accel_detect(context);
        snprintf(name, size, "%s", ds_accel_name(context) != NULL ? ds_accel_name(context) : "");
        ds_accel_destroy(context);
    }
    return status;
}

static inline void expect_chosen_with(const struct ds_accel_options *options, const char *wanted)
{
    char name[64] = "";

    cr_expect_eq(try_detect(options, name, sizeof(name)), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(name, wanted);
}

static inline void expect_chosen(const char *wanted)
{
    struct ds_accel_options options = options_with_cache();

    expect_chosen_with(&options, wanted);
}

/* Expect the right result after `wanted` probes, and a reuse of the stored verdict the next
   time. */
static inline void expect_probes(int wanted, const char *what)
{
    int before = probes();

    expect_chosen("counted");
    cr_expect_eq(probes() - before, wanted, "%s: %d probes", what, probes() - before);
    before = probes();
    expect_chosen("counted");
    cr_expect_eq(probes(), before, "%s: the next one is no hit", what);
}

static inline char *report(uint32_t which)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    char *text = test_report(context, which, NULL, DS_ACCEL_FORMAT_JSON);

    ds_accel_destroy(context);
    return test_compact(text);
}

static inline void expect_report(uint32_t which, const char *part)
{
    char *text = report(which);

    EXPECT_HAS(text, part);
    ds_accel_free_text(text);
}

static inline size_t read_file(char *data, size_t size)
{
    FILE *from = fopen(file, "rb");

    cr_assert_not_null(from, "%s", strerror(errno));
    size = fread(data, 1, size, from);
    fclose(from);
    return size;
}

static inline int32_t clear_cache(const struct ds_accel_options *options)
{
    ds_accel_t *context = test_create_with(options);
    int32_t status = ds_accel_cache_clear(context);

    ds_accel_destroy(context);
    return status;
}

static inline int32_t clear_quarantine(const char *name)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    int32_t status = ds_accel_quarantine_clear(context, name);

    ds_accel_destroy(context);
    return status;
}

/* Detect with a forced plugin, which is probed although its last verdict is still valid. */
static inline void force(const char *name, int32_t wanted)
{
    struct ds_accel_options options = options_with_cache();
    char chosen[64];

    options.accelerator = name;
    cr_expect_eq(try_detect(&options, chosen, sizeof(chosen)), wanted, "%s", ds_accel_last_error());
}

static inline void setup_faulty(const char *fault)
{
    cr_assert_eq(unlink(test_path("plugins/ds_accel_counted.so")), 0);
    put(fault, "faulty");
    put("neighbour", "neighbour");
    setenv("DS_TEST_CRASH_FILE", test_write("crash", ""), 1);
}

/* A plugin that registers itself and reports no device; it is probed beside other plugins, and each
   crash counts as one strike. */
static inline const struct ds_accel_plugin *no_device_entry(const struct ds_accel_host *host);

static inline int32_t no_device_probe(const struct ds_accel_host *host,
                                      struct ds_accel_verdict *verdict,
                                      struct ds_accel_error *error)
{
    struct ds_accel_verdict answer = {.state = DS_ACCEL_PROBE_UNAVAILABLE,
                                      .reason = DS_ACCEL_REASON_NO_DEVICE};

    (void)host;
    (void)error;
    ds_accel_write(verdict, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

static inline int32_t never_init(const struct ds_accel_host *host,
                                 ds_accel_plugin_instance_t **instance_out,
                                 struct ds_accel_error *error)
{
    (void)host;
    (void)instance_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static inline void never_shutdown(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static inline int32_t never_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                  struct ds_accel_error *error)
{
    (void)instance;
    (void)count_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static inline int32_t never_open(ds_accel_plugin_instance_t *instance, uint32_t index,
                                 ds_accel_plugin_device_t **device_out,
                                 struct ds_accel_error *error)
{
    (void)instance;
    (void)index;
    (void)device_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static inline void never_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static inline const struct ds_accel_plugin *no_device_entry(const struct ds_accel_host *host)
{
    static const struct ds_accel_plugin table = {.struct_size = sizeof(table),
                                                 .abi_major = DS_ACCEL_ABI_MAJOR,
                                                 .abi_minor = DS_ACCEL_ABI_MINOR,
                                                 .name = "absent",
                                                 .vendor = "ds-accel tests",
                                                 .version = "1",
                                                 .probe = no_device_probe,
                                                 .init = never_init,
                                                 .shutdown = never_shutdown,
                                                 .device_count = never_count,
                                                 .device_open = never_open,
                                                 .device_close = never_close};

    (void)host;
    return &table;
}

#endif
