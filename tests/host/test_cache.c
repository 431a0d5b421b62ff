/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cache of verdicts: a damaged file or an unusable directory makes detection slower, never
 * wrong. Tests that need time to pass, another file system or a process that dies are in
 * tests/tools/test_cache.sh.
 */
#include "cache.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

char cache_dir[128];
char file[160];
char count_file[128];
struct ds_accel_options base_options;

/* Start with an empty cache and the plugin that counts its probes. */
static void setup(void)
{
    snprintf(cache_dir, sizeof(cache_dir), "%s", test_path("cache"));
    snprintf(file, sizeof(file), "%s/verdicts", cache_dir);
    snprintf(count_file, sizeof(count_file), "%s", test_path("count"));
    setenv("DS_TEST_COUNT_FILE", count_file, 1);
    test_write("share/ds-accel.json", "{}");
    put("count", "counted");
    base_options = test_options();
    base_options.log_levels = "warn";
}

TestSuite(core_cache, .init = setup);

/* ---- files that must not be trusted ---------------------------------------------------------- */

static void write_file(const void *data, size_t size)
{
    FILE *to = fopen(file, "wb");

    cr_assert_not_null(to, "%s", strerror(errno));
    cr_assert_eq(fwrite(data, 1, size, to), size);
    fclose(to);
}

/* Expect that the report finds no entry in the file. */
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
        EXPECT_HAS(test_log, "is ignored and rebuilt: ");
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
        /* a cache of another format or machine is not an error */
        if ((i >= 8 && i < 12) || (i >= 16 && i < 24)) {
            cr_expect_str_eq(test_log, "");
        } else {
            EXPECT_HAS(test_log, "is ignored and rebuilt: ");
        }
        if (i % 97 == 0) {
            expect_probes(1, "a wrong bit");
        }
        data[i] = (char)(data[i] ^ 1 << i % 8);
    }
}

/* Replace the file by calling make(), and expect a logged warning, the right result and a new
   file. */
static void expect_replaced(const char *what, void (*make)(void))
{
    expect_chosen("counted");
    cr_assert(unlink(file) == 0);
    make();
    test_log[0] = '\0';
    expect_probes(1, what);
    EXPECT_HAS(test_log, "verdicts is ignored and rebuilt: ");
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
    expect_replaced("a directory", make_dir);
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

/* The file contains the old verdicts and is valid except for its owner. */
Test(core_cache, another_users_verdicts_are_not_believed)
{
    if (geteuid() != 0) {
        cr_skip("only root can make them");
    }
    expect_probes(1, "cold");
    cr_assert_eq(chown(file, 12345, 12345), 0);
    expect_probes(1, "another user's");
}

/* Any user who may write to the file could have forged its verdicts. */
Test(core_cache, verdicts_that_others_may_write_to_are_not_believed)
{
    expect_probes(1, "cold");
    cr_assert_eq(chmod(file, 0620), 0);
    expect_probes(1, "its group's");
    cr_assert_eq(chmod(file, 0602), 0);
    expect_probes(1, "everybody's");
}

/* ---- directories that must not be used ------------------------------------------------------- */

/* Expect the right result each time, from a new probe. */
static void expect_no_cache(const char *what, const char *said)
{
    int before = probes();

    test_log[0] = '\0';
    expect_chosen("counted");
    EXPECT_HAS(test_log, said);
    expect_chosen("counted");
    cr_expect_eq(probes() - before, 2, "%s: %d probes", what, probes() - before);
}

Test(core_cache, a_directory_that_others_may_write_to_is_not_used)
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

Test(core_cache, a_file_in_place_of_the_directory_is_not_used)
{
    test_write("cache", "");
    expect_no_cache("a file", "/cache: it is not a directory");
}

Test(core_cache, a_link_in_place_of_the_directory_is_not_used)
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
    expect_no_cache("relative", "2 cache: not used: relative is not an absolute path");
    expect_report(
        DS_ACCEL_REPORT_CACHE,
        "\"directory\":null,\"file\":null,\"unused\":\"relative is not an absolute path\"");
    cr_expect_neq(stat("relative", &info), 0, "nothing is made");
    cr_assert_eq(mkdir("relative", 0700), 0);
    expect_no_cache("one that is there", "2 cache: not used: relative is not an absolute path");
}

Test(core_cache, a_directory_that_cannot_be_made_is_not_used)
{
    snprintf(cache_dir, sizeof(cache_dir), "%s/none/none", test_dir());
    base_options.log_levels = "info"; /* a small system may have no /var/cache */
    expect_no_cache("without a parent", "none: No such file or directory");
}

/* A write past the limit would kill the program with SIGXFSZ. */
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

/* ---- clearing the cache ---------------------------------------------------------------------- */

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

Test(core_cache, to_look_makes_no_directory)
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
    EXPECT_HAS(ds_accel_last_error(), "nothing was cleared: DS_ACCEL_CACHE is off");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_OK, "there is no directory");
    unsetenv("DS_ACCEL_CACHE");
    expect_probes(1, "cold");
    setenv("DS_ACCEL_CACHE", "ro", 1);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "nothing was cleared: DS_ACCEL_CACHE is ro");
    unsetenv("DS_ACCEL_CACHE");
    cr_assert_eq(chmod(cache_dir, 0777), 0);
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_IO);
    EXPECT_HAS(ds_accel_last_error(), cache_dir);
    EXPECT_HAS(ds_accel_last_error(), "mode 0777");
    cr_assert_eq(chmod(cache_dir, 0700), 0);
    options.flags |= DS_ACCEL_OPTION_NO_CACHE;
    cr_expect_eq(clear_cache(&options), DS_ACCEL_ERR_STATE);
    cr_expect_eq(clear_quarantine("counted"), DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_HAS(ds_accel_last_error(), "no plugin named \"counted\" has crashed or hung");
    cr_expect_eq(clear_quarantine(NULL), DS_ACCEL_OK);
    expect_probes(0, "none of these forgot anything");
}
