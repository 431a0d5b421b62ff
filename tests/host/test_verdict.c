/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Stored verdicts of a plugin: when a verdict is reused, and what its key contains. */
#include "cache.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- reuse ----------------------------------------------------------------------------------- */

Test(core_cache, a_hit_asks_no_plugin)
{
    struct stat info;

    expect_probes(1, "cold");
    expect_chosen("counted");
    cr_expect_eq(probes(), 1);
    cr_assert_eq(stat(file, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);
    cr_assert_eq(stat(cache_dir, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0700);
    expect_report(DS_ACCEL_REPORT_CACHE, "\"name\":\"counted\"");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"state\":\"available\"");
    cr_expect_str_eq(test_log, "", "%s", test_log);
}

Test(core_cache, a_hit_says_the_same)
{
    struct ds_accel_options options = options_with_cache();
    struct ds_accel_candidate cold;
    struct ds_accel_candidate warm;
    ds_accel_t *first = test_create_with(&options);
    ds_accel_t *second = test_create_with(&options);

    cr_assert_eq(ds_accel_detect(first), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(second), DS_ACCEL_OK);
    cold = test_candidate(first, "counted");
    warm = test_candidate(second, "counted");
    cr_expect_eq(probes(), 1);
    cr_expect_eq(warm.state, cold.state);
    cr_expect_eq(warm.device_count, cold.device_count);
    cr_expect_str_eq(warm.vendor, cold.vendor);
    cr_expect_str_eq(warm.version, cold.version);
    cr_expect_str_eq(warm.abi, cold.abi);
    cr_expect_str_eq(warm.detail, cold.detail);
    cr_expect_str_eq(warm.stage, cold.stage);
    ds_accel_destroy(first);
    /* The context has its own copies of the texts, independent of the file and of other
       contexts. */
    cr_expect_str_eq(test_candidate(second, "counted").detail, "fixture counted");
    ds_accel_destroy(second);
}

Test(core_cache, list_and_explain_ask_anew_and_refresh)
{
    expect_probes(1, "cold");
    ds_accel_free_text(report(DS_ACCEL_REPORT_LIST));
    cr_expect_eq(probes(), 2);
    ds_accel_free_text(report(DS_ACCEL_REPORT_EXPLAIN));
    cr_expect_eq(probes(), 3);
    expect_probes(0, "after explain");
    cr_assert_eq(unlink(file), 0);
    ds_accel_free_text(report(DS_ACCEL_REPORT_EXPLAIN));
    cr_expect_eq(probes(), 4);
    expect_probes(0, "explain has written it");
}

Test(core_cache, modes)
{
    struct stat info;

    setenv("DS_ACCEL_CACHE", "off", 1);
    expect_chosen("counted");
    expect_chosen("counted");
    cr_expect_eq(probes(), 2);
    cr_expect_neq(stat(cache_dir, &info), 0, "off: nothing is made");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"directory\":null");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"unused\":\"DS_ACCEL_CACHE is off\",\"mode\":\"off\"");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    expect_chosen("counted");
    cr_expect_eq(probes(), 3);
    cr_expect_neq(stat(cache_dir, &info), 0, "ro: nothing is made");
    setenv("DS_ACCEL_CACHE", "rw", 1);
    expect_probes(1, "rw");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    expect_probes(0, "ro");
    test_write("etc/ds-accel.json", "{}");
    expect_chosen("counted");
    expect_chosen("counted");
    cr_expect_eq(probes(), 6, "ro: what is found out is not written");
}

Test(core_cache, a_context_can_do_without)
{
    struct ds_accel_options options = options_with_cache();
    struct stat info;

    options.flags |= DS_ACCEL_OPTION_NO_CACHE;
    expect_chosen_with(&options, "counted");
    expect_chosen_with(&options, "counted");
    cr_expect_eq(probes(), 2);
    cr_expect_neq(stat(cache_dir, &info), 0);
}

/* ---- the key of a verdict -------------------------------------------------------------------- */

Test(core_cache, another_file_is_asked)
{
    const char *plugin = test_path("plugins/ds_accel_counted.so");
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    struct stat info;

    expect_probes(1, "cold");
    cr_assert_eq(utimensat(AT_FDCWD, plugin, times, 0), 0);
    expect_probes(1, "touched");
    cr_assert_eq(chmod(plugin, 0700), 0);
    expect_probes(1, "chmod");
    cr_assert_eq(stat(plugin, &info), 0);
    put("count", "counted");
    cr_assert_eq(chmod(plugin, 0700), 0);
    cr_assert_eq(utimensat(AT_FDCWD, plugin, times, 0), 0);
    expect_probes(1, "replaced by one of the same size, mode and time");
}

/* A file written in place, with its old modification time restored, differs only in its change
   time. */
Test(core_cache, a_file_written_in_place_is_asked)
{
    const char *plugin = test_path("plugins/ds_accel_counted.so");
    struct stat before;
    struct stat after;
    int fd;

    expect_probes(1, "cold");
    cr_assert_eq(stat(plugin, &before), 0);
    fd = open(plugin, O_WRONLY | O_CLOEXEC);
    cr_assert_eq(pwrite(fd, "\177ELF", 4, 0), 4);
    cr_assert_eq(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    close(fd);
    cr_assert_eq(stat(plugin, &after), 0);
    cr_assert(after.st_ino == before.st_ino && after.st_size == before.st_size &&
              after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
              after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    expect_probes(1, "written in place");
}

/* The configuration lists a device node, which appears, is replaced, gets wider permissions, and
   disappears. */
Test(core_cache, other_hardware_asks)
{
    char node[64];
    char text[256];
    struct stat info;
    FILE *made;

    snprintf(node, sizeof(node), "/dev/shm/ds-accel-test.%d", (int)getpid());
    snprintf(text, sizeof(text), "{\"backends\": {\"counted\": {\"device_nodes\": [\"%s\"]}}}",
             node);
    test_write("etc/ds-accel.json", text);
    expect_probes(1, "cold");
    made = fopen(node, "w");
    if (made == NULL) {
        cr_skip("nothing can be made below /dev here");
    }
    fclose(made);
    expect_probes(1, "a node more");
    cr_assert_eq(stat(node, &info), 0);
    cr_assert_eq(utimensat(AT_FDCWD, node, (struct timespec[]){info.st_atim, info.st_mtim}, 0), 0);
    expect_probes(1, "the node is made anew, so far as can be seen");
    cr_assert_eq(unlink(node), 0);
    expect_probes(0, "the node is gone, as at first");
}

Test(core_cache, another_configuration_asks)
{
    expect_probes(1, "cold");
    test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 20000}}");
    expect_probes(1, "a file more");
    test_write("etc/ds-accel.json", "{\"probe\": {\"timeout_ms\": 21000}}");
    expect_probes(1, "a file changed, its size the same");
    test_write("etc/conf.d/10.json", "{}");
    expect_probes(1, "a fragment more");
}

static void expect_asked(const char *name, const char *value)
{
    setenv(name, value, 1);
    expect_probes(1, name);
    unsetenv(name);
    expect_probes(0, "as it was before");
}

Test(core_cache, what_a_plugin_may_read_of_the_environment_asks)
{
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"counted\": {\"visible_devices_envs\": [\"SHOW_DEVS\"], "
               "\"export_envs\": [\"TELL_\"], \"env\": [{\"name\": \"RULED\", \"value\": \"1\", "
               "\"rule\": \"if-unset\"}]}}}");
    expect_probes(1, "cold");
    expect_asked("DS_ACCEL_COUNTED_DEVICES", "2");
    expect_asked("DS_ACCEL_OTHER_OPTION", "2");
    expect_asked("CUDA_VISIBLE_DEVICES", "0");
    expect_asked("CUDA_VISIBLE_DEVICES", "");
    expect_asked("ANY_VISIBLE_THING", "0");
    expect_asked("LD_LIBRARY_PATH", "/nowhere");
    expect_asked("LOCAL_SIZE", "2");
    expect_asked("SHOW_DEVS", "1");
    expect_asked("TELL_ME", "1");
    expect_asked("RULED", "1");
    expect_asked("COUNTED_HOME", "/");
}

Test(core_cache, nothing_else_of_the_environment_does)
{
    static const char *const names[] = {"EDITOR",        "HOME",         "PATH",      "SHOWN_DEVS",
                                        "DS_TEST_OTHER", "DS_ACCEL_LOG", "LOCAL_SIZ", "VISIBL_DEVS",
                                        "RANK",          "LOCAL_RANK",   "COUNTED"};

    expect_probes(1, "cold");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv(names[i], "info", 1);
        expect_probes(0, names[i]);
    }
}

/* With NO_ENVIRONMENT, DS_* variables are ignored, but the linker and the vendors' runtimes still
   read their own variables. */
Test(core_cache, options_of_plugins_count_unless_they_are_ignored)
{
    struct ds_accel_options options = options_with_cache();

    options.flags |= DS_ACCEL_OPTION_NO_ENVIRONMENT;
    expect_chosen_with(&options, "counted");
    setenv("DS_ACCEL_COUNTED_DEVICES", "2", 1);
    expect_chosen_with(&options, "counted");
    cr_expect_eq(probes(), 1);
    setenv("LD_LIBRARY_PATH", "/nowhere", 1);
    expect_chosen_with(&options, "counted");
    cr_expect_eq(probes(), 2);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    expect_chosen_with(&options, "counted");
    cr_expect_eq(probes(), 3);
    expect_chosen("counted");
    cr_expect_eq(probes(), 4, "with the environment it is another question");
}

Test(core_cache, other_groups_ask)
{
    gid_t groups[] = {12345};

    expect_probes(1, "cold");
    if (setgroups(1, groups) != 0) {
        cr_skip("only root may change its groups");
    }
    expect_probes(1, "other groups");
}

/* ---- quarantine ----------------------------------------------------------------------------- */

/* Read the file's only record, without its times and the values that depend on times. */
static size_t read_record(char *data, size_t size)
{
    enum {
        CHECKSUM = 24,
        VERDICT_MS = 56,
        TIMES = 64,
        TIMES_BYTES = 32
    }; /* offsets as in cache.c */

    size = read_file(data, size);
    cr_assert_gt(size, TIMES + TIMES_BYTES);
    memset(data + CHECKSUM, 0, 8);
    memset(data + VERDICT_MS, 0, TIMES - VERDICT_MS);
    memset(data + TIMES, 0, TIMES_BYTES); /* the times strike_ms to elapsed_us */
    return size;
}

/* While a negative verdict is valid, a further verdict on the plugin is made from the stored
   record. */
Test(core_cache, what_is_recalled_and_kept_again_is_the_same)
{
    static char first[65536];
    static char second[65536];
    size_t size;

    cr_assert_eq(unlink(test_path("plugins/ds_accel_counted.so")), 0);
    test_copy(TEST_PLUGINS "/ds_accel_mock.so", "plugins/ds_accel_mock.so");
    setenv("DS_ACCEL_MOCK_AVAILABLE", "false", 1);
    force("mock", DS_ACCEL_ERR_NOT_USABLE);
    size = read_record(first, sizeof(first));
    force("mock", DS_ACCEL_ERR_NOT_USABLE);
    cr_assert_eq(read_record(second, sizeof(second)), size);
    for (size_t i = 0; i < size; i++) {
        cr_expect_eq(second[i], first[i], "byte %zu of %zu", i, size);
    }
}

Test(core_cache, asked_again_it_is_still_on_demand)
{
    setup_faulty("demand");
    expect_chosen("neighbour");
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    cr_assert_eq(unlink(test_path("crash")), 0);
    force("faulty", DS_ACCEL_OK);
    expect_chosen("neighbour");
    force("faulty", DS_ACCEL_OK);
    expect_chosen("neighbour");
}
