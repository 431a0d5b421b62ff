/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cache of verdicts, the quarantine: never a wrong answer, at most a slower one. Whether a
 * plugin was asked is what the fixture "counted" tells, which leaves a byte in a file each time.
 * What needs time to pass, another file system or a process that dies is in
 * tests/tools/test_cache.sh.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAULTS TEST_FIXTURES "/faults"
#define RACE_SECONDS 3

static char cache_dir[128];
static char file[160];
static char count_file[128];
static char tally_file[128];
static struct ds_accel_options base_options; /* children have the folder of who made it */

static void put(const char *fault, const char *name)
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

/* A new, empty cache, and the plugin that counts. */
static void setup(void)
{
    snprintf(cache_dir, sizeof(cache_dir), "%s", test_path("cache"));
    snprintf(file, sizeof(file), "%s/verdicts", cache_dir);
    snprintf(count_file, sizeof(count_file), "%s", test_path("count"));
    snprintf(tally_file, sizeof(tally_file), "%s", test_path("tally"));
    setenv("DS_TEST_COUNT_FILE", count_file, 1);
    test_write("share/ds-accel.json", "{}");
    put("count", "counted");
    base_options = test_options();
    base_options.log_levels = "warn";
}

TestSuite(core_cache, .init = setup);

static struct ds_accel_options options_with_cache(void)
{
    struct ds_accel_options options = base_options;

    options.flags &= ~DS_ACCEL_OPTION_NO_CACHE;
    options.cache_dir = cache_dir;
    return options;
}

/* How often the plugin was asked, in all. */
static int probes(void)
{
    struct stat info;

    return stat(count_file, &info) == 0 ? (int)info.st_size : 0;
}

static int32_t try_detect(const struct ds_accel_options *options, char *name, size_t size)
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

static void expect_chosen_with(const struct ds_accel_options *options, const char *wanted)
{
    char name[64] = "";

    cr_expect_eq(try_detect(options, name, sizeof(name)), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(name, wanted);
}

static void expect_chosen(const char *wanted)
{
    struct ds_accel_options options = options_with_cache();

    expect_chosen_with(&options, wanted);
}

/* The right answer, with so many probes; what is remembered of it then serves. */
static void expect_probes(int wanted, const char *what)
{
    int before = probes();

    expect_chosen("counted");
    cr_expect_eq(probes() - before, wanted, "%s: %d probes", what, probes() - before);
    before = probes();
    expect_chosen("counted");
    cr_expect_eq(probes(), before, "%s: the next one is no hit", what);
}

static char *report(uint32_t which)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    char *text = test_report(context, which, NULL, DS_ACCEL_FORMAT_JSON);

    ds_accel_destroy(context);
    return test_compact(text);
}

static void expect_report(uint32_t which, const char *part)
{
    char *text = report(which);

    EXPECT_HAS(text, part);
    ds_accel_free_text(text);
}

/* ---- hits ----------------------------------------------------------------------------------- */

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
    /* Its texts are its own, whatever has become of the file and of other contexts. */
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

/* ---- the key -------------------------------------------------------------------------------- */

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

/* What was written in place, and put back to its old time, shows by the change time alone. */
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

/* A node that the configuration names: it comes, is another, may be opened by others, goes. */
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

/* DS_* is ignored then, but for the linker's and vendors' variables nobody can be told that. */
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

/* ---- a file that is not to be believed ------------------------------------------------------ */

static size_t read_file(char *data, size_t size)
{
    FILE *from = fopen(file, "rb");

    cr_assert_not_null(from, "%s", strerror(errno));
    size = fread(data, 1, size, from);
    fclose(from);
    return size;
}

static void write_file(const void *data, size_t size)
{
    FILE *to = fopen(file, "wb");

    cr_assert_not_null(to, "%s", strerror(errno));
    cr_assert_eq(fwrite(data, 1, size, to), size);
    fclose(to);
}

/* Reading it finds nothing; now and then, whether the answer is right. */
static void expect_nothing(const char *what, size_t position)
{
    char *text = report(DS_ACCEL_REPORT_CACHE);

    cr_expect_not_null(strstr(text, "\"entries\":[]"), "%s, byte %zu:\n%s", what, position, text);
    ds_accel_free_text(text);
}

Test(core_cache, a_file_cut_off_anywhere_is_made_anew, .timeout = 120)
{
    static char data[65536];
    size_t size;

    expect_probes(1, "cold");
    size = read_file(data, sizeof(data));
    cr_assert_gt(size, 256);
    for (size_t length = 0; length < size; length++) {
        write_file(data, length);
        test_log[0] = '\0';
        expect_nothing("cut off", length);
        EXPECT_HAS(test_log, "2 cache: ");
        EXPECT_HAS(test_log, "is left out and made anew: ");
        if (length % 97 == 0) {
            expect_probes(1, "cut off");
        }
    }
    write_file(data, size);
    expect_probes(0, "whole again");
    data[size] = '\0';
    write_file(data, size + 1);
    expect_probes(1, "a byte too long");
}

Test(core_cache, one_wrong_bit_anywhere_is_noticed, .timeout = 120)
{
    static char data[65536];
    size_t size;

    expect_probes(1, "cold");
    size = read_file(data, sizeof(data));
    for (size_t i = 0; i < size; i++) {
        data[i] = (char)(data[i] ^ 1 << i % 8);
        write_file(data, size);
        test_log[0] = '\0';
        expect_nothing("a wrong bit", i);
        /* Of another format or machine, it is nobody's fault. */
        if ((i >= 8 && i < 12) || (i >= 16 && i < 24)) {
            cr_expect_str_eq(test_log, "");
        } else {
            EXPECT_HAS(test_log, "is left out and made anew: ");
        }
        if (i % 97 == 0) {
            expect_probes(1, "a wrong bit");
        }
        data[i] = (char)(data[i] ^ 1 << i % 8);
    }
}

/* What is put in the file's place by make(): warned of, the right answer, made anew. */
static void expect_replaced(const char *what, void (*make)(void))
{
    expect_chosen("counted");
    cr_assert(unlink(file) == 0);
    make();
    test_log[0] = '\0';
    expect_probes(1, what);
    EXPECT_HAS(test_log, "verdicts is left out and made anew: ");
}

static void make_fifo(void)
{
    cr_assert_eq(mkfifo(file, 0600), 0);
}

static void make_link(void)
{
    cr_assert_eq(symlink(test_write("elsewhere", "x"), file), 0);
}

static void make_dir(void)
{
    cr_assert_eq(mkdir(file, 0700), 0);
}

static void make_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    cr_assert_lt(strlen(file), sizeof(address.sun_path));
    memcpy(address.sun_path, file, strlen(file) + 1);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void make_writable(void)
{
    write_file("", 0);
    cr_assert_eq(chmod(file, 0666), 0);
}

static void make_text(void)
{
    static const char text[] = "{\"this is\": \"something else, and longer than a head would be\"}";

    write_file(text, sizeof(text));
}

static void make_huge(void)
{
    write_file("", 0);
    cr_assert_eq(truncate(file, (off_t)1 << 40), 0);
}

Test(core_cache, what_is_in_its_place_is_replaced)
{
    expect_replaced("a pipe", make_fifo);
    expect_replaced("a link", make_link);
    expect_replaced("a folder", make_dir);
    expect_replaced("a socket", make_socket);
    expect_replaced("writable for others", make_writable);
    expect_replaced("of another kind", make_text);
    expect_replaced("huge", make_huge);
}

static void make_foreign(void)
{
    write_file("", 0);
    cr_assert_eq(chown(file, 12345, 12345), 0);
}

Test(core_cache, another_users_file_is_replaced)
{
    if (geteuid() != 0) {
        cr_skip("only root can make one");
    }
    expect_replaced("another user's", make_foreign);
}

/* With the old verdicts in it, as good as they were but for the owner. */
Test(core_cache, another_users_verdicts_are_not_believed)
{
    if (geteuid() != 0) {
        cr_skip("only root can make them");
    }
    expect_probes(1, "cold");
    cr_assert_eq(chown(file, 12345, 12345), 0);
    expect_probes(1, "another user's");
}

/* Whoever may write to it may have said so. */
Test(core_cache, verdicts_that_others_may_write_to_are_not_believed)
{
    expect_probes(1, "cold");
    cr_assert_eq(chmod(file, 0620), 0);
    expect_probes(1, "its group's");
    cr_assert_eq(chmod(file, 0602), 0);
    expect_probes(1, "everybody's");
}

/* ---- a folder that is not to be used -------------------------------------------------------- */

/* The right answer each time, by asking. */
static void expect_no_cache(const char *what, const char *said)
{
    int before = probes();

    test_log[0] = '\0';
    expect_chosen("counted");
    EXPECT_HAS(test_log, said);
    expect_chosen("counted");
    cr_expect_eq(probes() - before, 2, "%s: %d probes", what, probes() - before);
}

Test(core_cache, a_folder_that_others_may_write_to_is_not_used)
{
    expect_probes(1, "cold");
    cr_assert_eq(chmod(cache_dir, 0777), 0);
    expect_no_cache("world-writable", "2 cache: ");
    EXPECT_HAS(test_log, "cache: it has owner ");
    cr_assert_eq(chmod(cache_dir, 0720), 0);
    expect_no_cache("group-writable", "cache: it has owner ");
    cr_assert_eq(chmod(cache_dir, 0700), 0);
    expect_probes(0, "its own again");
    if (geteuid() == 0) {
        cr_assert_eq(chown(cache_dir, 12345, 12345), 0);
        expect_no_cache("another user's", "cache: it has owner 12345");
    }
}

Test(core_cache, a_file_in_place_of_the_folder_is_not_used)
{
    test_write("cache", "");
    expect_no_cache("a file", "/cache: it is no folder");
}

Test(core_cache, a_link_in_place_of_the_folder_is_not_used)
{
    char elsewhere[128];

    snprintf(elsewhere, sizeof(elsewhere), "%s", test_path("elsewhere"));
    cr_assert_eq(mkdir(elsewhere, 0700), 0);
    cr_assert_eq(symlink(elsewhere, cache_dir), 0);
    expect_no_cache("a link", "/cache: it is a link");
}

Test(core_cache, a_relative_path_is_not_used)
{
    struct stat info;

    cr_assert_eq(chdir(test_dir()), 0);
    snprintf(cache_dir, sizeof(cache_dir), "relative");
    expect_no_cache("relative", "2 cache: not used: relative is no absolute path");
    expect_report(DS_ACCEL_REPORT_CACHE,
                  "\"directory\":null,\"file\":null,\"unused\":\"relative is no absolute path\"");
    cr_expect_neq(stat("relative", &info), 0, "nothing is made");
    cr_assert_eq(mkdir("relative", 0700), 0);
    expect_no_cache("one that is there", "2 cache: not used: relative is no absolute path");
}

Test(core_cache, a_folder_that_cannot_be_made_is_not_used)
{
    snprintf(cache_dir, sizeof(cache_dir), "%s/none/none", test_dir());
    base_options.log_levels = "info"; /* a small system may have no /var/cache */
    expect_no_cache("without a parent", "none: No such file or directory");
}

/* A write past the limit would end the program by SIGXFSZ. */
Test(core_cache, a_limit_of_file_sizes_ends_nobody)
{
    struct rlimit limit;

    unsetenv("DS_TEST_COUNT_FILE");
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_chosen("counted");
    EXPECT_HAS(test_log, "cannot write ");
    EXPECT_HAS(test_log, "verdicts: File too large");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* ---- forgetting ----------------------------------------------------------------------------- */

static int32_t clear_cache(const struct ds_accel_options *options)
{
    ds_accel_t *context = test_create_with(options);
    int32_t status = ds_accel_cache_clear(context);

    ds_accel_destroy(context);
    return status;
}

static int32_t clear_quarantine(const char *name)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    int32_t status = ds_accel_quarantine_clear(context, name);

    ds_accel_destroy(context);
    return status;
}

Test(core_cache, clear_forgets)
{
    struct ds_accel_options options = options_with_cache();
    struct stat info;

    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK, "there is nothing");
    expect_probes(1, "cold");
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    cr_expect_neq(stat(file, &info), 0, "with nothing to keep there is no file");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"entries\":[]");
    expect_probes(1, "cleared");
    make_text();
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK, "%s", ds_accel_last_error());
    test_log[0] = '\0';
    expect_probes(1, "cleared, whatever was there");
    cr_expect_str_eq(test_log, "");
}

Test(core_cache, to_look_makes_no_folder)
{
    struct ds_accel_options options = options_with_cache();
    char directory[160];
    struct stat info;

    snprintf(directory, sizeof(directory), "\"directory\":\"%s\"", cache_dir);
    expect_report(DS_ACCEL_REPORT_CACHE, directory);
    expect_report(DS_ACCEL_REPORT_CACHE, "\"unused\":\"\",\"mode\":\"rw\",\"entries\":[]");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    cr_expect_eq(clear_quarantine(NULL), DS_ACCEL_OK);
    cr_expect_neq(stat(cache_dir, &info), 0, "nothing is made");
    expect_probes(1, "which then makes it");
    snprintf(cache_dir, sizeof(cache_dir), "%s/none/none", test_dir());
    expect_report(DS_ACCEL_REPORT_CACHE, "\"directory\":null");
}

Test(core_cache, clear_says_why_it_cannot)
{
    struct ds_accel_options options = options_with_cache();

    cr_expect_eq(ds_accel_cache_clear(NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_quarantine_clear(NULL, NULL), DS_ACCEL_ERR_INVALID);
    setenv("DS_ACCEL_CACHE", "off", 1);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "nothing was forgotten: DS_ACCEL_CACHE is off");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK, "there is no folder");
    unsetenv("DS_ACCEL_CACHE");
    expect_probes(1, "cold");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "nothing was forgotten: DS_ACCEL_CACHE is ro");
    unsetenv("DS_ACCEL_CACHE");
    cr_assert_eq(chmod(cache_dir, 0777), 0);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_IO);
    EXPECT_HAS(ds_accel_last_error(), cache_dir);
    EXPECT_HAS(ds_accel_last_error(), "mode 0777");
    cr_assert_eq(chmod(cache_dir, 0700), 0);
    options.flags |= DS_ACCEL_OPTION_NO_CACHE;
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_STATE);
    cr_expect_eq(clear_quarantine("counted"), DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_HAS(ds_accel_last_error(), "no plugin of the name \"counted\" has crashed or hung");
    cr_expect_eq(clear_quarantine(NULL), DS_ACCEL_OK);
    expect_probes(0, "none of these forgot anything");
}

/* ---- quarantine ----------------------------------------------------------------------------- */

/* Forced, it is asked although its last verdict still holds. */
static void force(const char *name, int32_t wanted)
{
    struct ds_accel_options options = options_with_cache();
    char chosen[64];

    options.accelerator = name;
    cr_expect_eq(try_detect(&options, chosen, sizeof(chosen)), wanted, "%s", ds_accel_last_error());
}

static void setup_faulty(const char *fault)
{
    cr_assert_eq(unlink(test_path("plugins/ds_accel_counted.so")), 0);
    put(fault, "faulty");
    put("neighbour", "neighbour");
    setenv("DS_TEST_CRASH_FILE", test_write("crash", ""), 1);
}

Test(core_cache, a_plugin_that_crashed_twice_is_left_alone)
{
    struct ds_accel_options options = options_with_cache();
    struct ds_accel_candidate candidate;
    ds_accel_t *context;

    setup_faulty("probe_segv");
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,\"reason\":\"probe_segv\"");
    expect_report(DS_ACCEL_REPORT_QUARANTINE,
                  "\"quarantined\":false,\"until\":null,\"remaining_s\":0");
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* its verdict still holds */
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_str_eq(ds_accel_name(context), "neighbour");
    candidate = test_candidate(context, "faulty");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_QUARANTINED);
    cr_expect_str_eq(candidate.reason, "quarantined");
    EXPECT_HAS(candidate.detail, "2 strikes, the last: probe_segv: SIGSEGV");
    EXPECT_HAS(candidate.detail, "left alone until 2");
    cr_expect_lt(candidate.elapsed_us, 50000);
    ds_accel_destroy(context);
    /* To explain it is not to ask it, whether all are or it alone. */
    expect_report(DS_ACCEL_REPORT_LIST, "\"state\":\"quarantined\",\"reason\":\"quarantined\"");
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"strikes\":2,");
    context = test_create_with(&options);
    ds_accel_free_text(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "faulty", 0));
    ds_accel_free_text(test_report(context, DS_ACCEL_REPORT_INFO, "faulty", 0));
    ds_accel_destroy(context);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"quarantined\":true,\"until\":\"20");
    /* The verdicts may go, the strikes stay. */
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
}

/* Whichever of these: it is asked again, and has one strike more. */
static void crash_twice(void)
{
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
}

Test(core_cache, quarantine_ends_by_force_and_by_command)
{
    setup_faulty("probe_segv");
    crash_twice();
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* cleared, asked, crashed */
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_eq(clear_quarantine("neighbour"), DS_ACCEL_ERR_NOT_FOUND);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,");
    cr_expect_eq(clear_quarantine("faulty"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
    cr_expect_eq(clear_quarantine("faulty"), DS_ACCEL_ERR_NOT_FOUND);
    expect_chosen("neighbour");
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,"); /* it was asked */
    cr_expect_eq(clear_quarantine(NULL), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
}

static void examine(void)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context = test_create_with(&options);
    char *text = NULL;

    cr_expect_eq(ds_accel_report(context, DS_ACCEL_REPORT_DOCTOR, NULL, 0, &text),
                 DS_ACCEL_ERR_STATE);
    EXPECT_HAS(text, "1 crash or hang is remembered");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

Test(core_cache, reports_one_after_the_other_are_one_strike)
{
    setup_faulty("sometimes");
    for (int i = 0; i < 3; i++) {
        expect_report(DS_ACCEL_REPORT_LIST, "\"state\":\"crashed\",\"reason\":\"probe_segv\"");
        expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"strikes\":1,");
        examine();
    }
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,\"reason\":\"probe_segv\"");
    expect_report(DS_ACCEL_REPORT_CACHE, "\"state\":\"crashed\""); /* what they found is kept */
    expect_chosen("neighbour");
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":2,"); /* to use it is not to look */
}

Test(core_cache, one_left_alone_shows_what_it_printed)
{
    struct ds_accel_options options = options_with_cache();

    setup_faulty("sometimes");
    crash_twice();
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"state\":\"quarantined\"");
    expect_report(DS_ACCEL_REPORT_EXPLAIN, "\"output\":\"fixture: it will crash now");
}

Test(core_cache, quarantine_ends_with_another_file)
{
    setup_faulty("probe_segv");
    crash_twice();
    put("none", "faulty");
    expect_chosen("faulty");
}

Test(core_cache, a_good_answer_forgives)
{
    setup_faulty("sometimes");
    force("faulty", DS_ACCEL_ERR_NOT_USABLE);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,");
    cr_assert_eq(unlink(test_path("crash")), 0);
    force("faulty", DS_ACCEL_OK);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"entries\":[]");
    test_write("crash", "");
    expect_chosen("faulty"); /* what it said holds for an hour */
}

/* What stands in the file of the one record, but for its times and what they change. */
static size_t read_record(char *data, size_t size)
{
    enum {
        CHECKSUM = 24,
        VERDICT_MS = 56,
        TIMES = 64,
        TIMES_BYTES = 32
    }; /* as cache.c says */

    size = read_file(data, size);
    cr_assert_gt(size, TIMES + TIMES_BYTES);
    memset(data + CHECKSUM, 0, 8);
    memset(data + VERDICT_MS, 0, TIMES - VERDICT_MS);
    memset(data + TIMES, 0, TIMES_BYTES); /* strike_ms to elapsed_us */
    return size;
}

/* While a bad verdict holds, its record is what the next verdict on the plugin is made of. */
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

/* One that registers itself, and asking several at a time: each crash is one strike. */
static const struct ds_accel_plugin *no_device_entry(const struct ds_accel_host *host);

static int32_t no_device_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                               struct ds_accel_error *error)
{
    struct ds_accel_verdict answer = {.state = DS_ACCEL_PROBE_UNAVAILABLE,
                                      .reason = DS_ACCEL_REASON_NO_DEVICE};

    (void)host;
    (void)error;
    ds_accel_write(verdict, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

static int32_t never_init(const struct ds_accel_host *host,
                          ds_accel_plugin_instance_t **instance_out, struct ds_accel_error *error)
{
    (void)host;
    (void)instance_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static void never_shutdown(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static int32_t never_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                           struct ds_accel_error *error)
{
    (void)instance;
    (void)count_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static int32_t never_open(ds_accel_plugin_instance_t *instance, uint32_t index,
                          ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)instance;
    (void)index;
    (void)device_out;
    (void)error;
    return DS_ACCEL_ERR_NO_DEVICE;
}

static void never_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static const struct ds_accel_plugin *no_device_entry(const struct ds_accel_host *host)
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

Test(core_cache, one_crash_is_one_strike_beside_a_registered_backend)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context;

    setup_faulty("probe_segv");
    test_write("etc/ds-accel.json",
               "{\"probe\": {\"parallel\": 8}, \"detection_order\": [\"absent\", \"faulty\"]}");
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, no_device_entry), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    expect_report(DS_ACCEL_REPORT_QUARANTINE, "\"strikes\":1,");
}

static pid_t left_child;

static int32_t forking_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                             struct ds_accel_error *error)
{
    left_child = fork();
    if (left_child == 0) {
        for (;;) {
            pause();
        }
    }
    return no_device_probe(host, verdict, error);
}

static const struct ds_accel_plugin *forking_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin table;

    memcpy(&table, no_device_entry(host), sizeof(table));
    table.probe = forking_probe;
    return &table;
}

/* A child that the program forks meanwhile has the lock's descriptor too. */
Test(core_cache, the_lock_is_not_inherited)
{
    struct ds_accel_options options = options_with_cache();
    ds_accel_t *context;
    time_t begin = time(NULL);

    test_write("etc/ds-accel.json", "{\"detection_order\": [\"absent\", \"counted\"]}");
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, forking_entry), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    cr_assert_gt(left_child, 0);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK);
    cr_expect_lt(time(NULL) - begin, 10);
    kill(left_child, SIGKILL);
    waitpid(left_child, NULL, 0);
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

#define LONG_TIMEOUT "{\"probe\": {\"timeout_ms\": 3600000}, \"detection_order\": [\"faulty\"]}"

static pid_t left_asking;

static void end_asking(void)
{
    if (left_asking > 0) {
        kill(left_asking, SIGCONT);
        kill(left_asking, SIGKILL);
        waitpid(left_asking, NULL, 0);
        left_asking = 0;
    }
}

/* A process that asks a plugin which does not answer for an hour, and so holds the lock. */
static void start_asking(void)
{
    char path[160];
    struct stat info = {.st_size = 0};

    test_write("etc/ds-accel.json", LONG_TIMEOUT);
    put("probe_hang", "faulty");
    fflush(NULL);
    left_asking = fork();
    cr_assert_geq(left_asking, 0);
    if (left_asking == 0) {
        struct ds_accel_options options = options_with_cache();
        char name[64];

        setpgid(0, 0);
        try_detect(&options, name, sizeof(name));
        _exit(0);
    }
    atexit(end_asking);
    snprintf(path, sizeof(path), "%s/lock", cache_dir);
    while (info.st_size == 0) { /* signed */
        usleep(1000);
        if (stat(path, &info) != 0) {
            info.st_size = 0;
        }
    }
}

/* It finds nothing out, whatever time is left. Without the change this waits for an hour. */
Test(core_cache, a_stopped_process_is_not_waited_for, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    cr_assert_eq(kill(left_asking, SIGSTOP), 0);
    cr_assert_eq(waitpid(left_asking, NULL, WUNTRACED), left_asking);
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\"], \"detection_order\": [\"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 3600000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "counted");
    EXPECT_HAS(test_log, "is stopped while it asks plugins; not waiting for it");
    cr_expect_eq(probes(), 1);
    expect_chosen("counted");
    cr_expect_eq(probes(), 1, "what it found out is remembered");
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_BUSY);
    EXPECT_HAS(ds_accel_last_error(), "is stopped while it asks plugins, and holds ");
    end_asking();
}

/* One that runs may find out what others want to know: they wait for as long as a plugin may take,
 * and ask themselves then. */
Test(core_cache, a_running_process_is_waited_for, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\"], \"detection_order\": [\"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 2000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "counted");
    EXPECT_HAS(test_log, "not waiting for it any longer");
    end_asking();
}

/* cpu, and plugins whose hardware is not here, have no answer that another could find out first. */
Test(core_cache, nobody_waits_where_only_cpu_is_asked, .timeout = 60)
{
    struct ds_accel_options options;

    start_asking();
    test_write("etc/ds-accel.json", "{\"deny\": [\"faulty\", \"counted\"], "
                                    "\"probe\": {\"timeout_ms\": 3600000}}");
    options = options_with_cache();
    options.log_levels = "info";
    expect_chosen_with(&options, "cpu");
    EXPECT_HAS(test_log, "another process is still asking plugins; not waiting for it\n");
    cr_expect_neq(access(file, F_OK), 0, "what was found out beside the lock is not stored");
    end_asking();
    expect_chosen("cpu");
    cr_expect_eq(access(file, F_OK), 0, "with the lock it is");
}

/* ---- many at once --------------------------------------------------------------------------- */

/* Children that do something each, until a time; how many did it wrong. */
static int run_children(int count, bool (*act)(int child))
{
    pid_t children[64];
    int wrong = 0;

    for (int i = 0; i < count; i++) {
        children[i] = fork();
        cr_assert_geq(children[i], 0);
        if (children[i] == 0) {
            test_log[0] = '\0';
            _exit(act(i) ? 0 : 1);
        }
    }
    for (int i = 0; i < count; i++) {
        int status = 0;

        waitpid(children[i], &status, 0);
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return wrong;
}

static bool detect_right(void)
{
    struct ds_accel_options options = options_with_cache();
    char name[64];

    return try_detect(&options, name, sizeof(name)) >= 0 && strcmp(name, "counted") == 0;
}

static bool detect_once(int child)
{
    (void)child;
    return detect_right() && test_log[0] == '\0';
}

Test(core_cache, many_processes_ask_once, .timeout = 120)
{
    cr_expect_eq(run_children(64, detect_once), 0);
    cr_expect_leq(probes(), 3, "%d probes", probes());
    cr_expect_geq(probes(), 1);
    cr_expect_eq(run_children(64, detect_once), 0);
    cr_expect_leq(probes(), 3, "%d probes", probes());
}

static bool is_valid_report(char *text)
{
    bool valid = strstr(text, "\"unused\":\"\"") != NULL;

    ds_accel_free_text(text);
    return valid;
}

/* Two write, each in another way, two read, one asks; none of them may see anything wrong. */
static bool race(int child)
{
    struct ds_accel_options options = options_with_cache();
    FILE *tally = fopen(tally_file, "a");
    time_t end = time(NULL) + RACE_SECONDS;
    bool right = tally != NULL;
    long rounds = 0;

    while (right && time(NULL) < end) {
        if (child == 0) {
            right = clear_cache(&options) >= 0;
        } else if (child == 1) {
            setenv("DS_ACCEL_COUNTED_ROUND", rounds % 2 == 0 ? "1" : "2", 1);
            right = detect_right();
        } else {
            right = detect_right() && is_valid_report(report(DS_ACCEL_REPORT_CACHE));
        }
        right = right && strstr(test_log, "left out") == NULL && strstr(test_log, "cannot") == NULL;
        test_log[0] = '\0';
        rounds++;
    }
    fprintf(tally, "%ld\n", rounds);
    fclose(tally);
    return right;
}

Test(core_cache, writers_and_readers_agree, .timeout = 120)
{
    char shared[] = "/dev/shm/ds-accel-test-XXXXXX";
    long total = 0;
    long rounds;
    FILE *tally;

    /* fsync() takes its time on a disk. */
    if (mkdtemp(shared) != NULL) {
        snprintf(cache_dir, sizeof(cache_dir), "%s", shared);
        snprintf(file, sizeof(file), "%s/verdicts", cache_dir);
    }
    cr_expect_eq(run_children(5, race), 0);
    expect_chosen("counted");
    tally = fopen(tally_file, "r");
    while (tally != NULL && fscanf(tally, "%ld", &rounds) == 1) {
        total += rounds;
    }
    if (tally != NULL) {
        fclose(tally);
    }
    cr_log_info("%ld rounds", total);
    cr_expect_gt(total, 500, "%ld rounds", total);
    if (strncmp(cache_dir, "/dev/shm/", 9) == 0) {
        char path[160];

        unlink(file);
        snprintf(path, sizeof(path), "%s/lock", cache_dir);
        unlink(path);
        snprintf(path, sizeof(path), "%s/config", cache_dir);
        unlink(path);
        cr_expect_eq(rmdir(cache_dir), 0, "something is left in %s", cache_dir);
    }
}
