/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gate trust: owners, modes and links. Each rejection has its reason, evidence and remedy;
 * applying the remedy must make the plugin acceptable. Tests that need a second owner run only as
 * root.
 */
#include "trust.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void change_owner(const char *path, uid_t user, gid_t group)
{
    cr_assert_eq(lchown(test_path(path), user, group), 0, "%s: %s", path, strerror(errno));
}

/* Move the searched directory from test_dir()/plugins to test_dir()/above/plugins. */
static void move_below(void)
{
    test_path("above/x");
    cr_assert_eq(rename(test_path("plugins"), test_path("above/plugins")), 0);
    make_link("above/plugins", "plugins");
}

/* ---- owners --------------------------------------------------------------------------------- */

Test(core_trust, a_strangers_file_is_refused)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_owner(FILE_PATH, STRANGER, 0);
    expect_no("file_owner", test_path(FILE_PATH), "owner 12345");
    change_owner(FILE_PATH, 0, 0);
    expect_yes();
}

Test(core_trust, a_strangers_directory_is_refused_wherever_it_is)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_owner("plugins", STRANGER, 0);
    expect_no("dir_owner", test_path("plugins"), "owner 12345");
    change_owner("plugins", 0, 0);
    expect_yes();
    move_below();
    change_owner("above", STRANGER, 0);
    expect_no("dir_owner", test_path("above"), "owner 12345");
    change_owner("above", 0, 0);
    expect_yes();
}

Test(core_trust, a_strangers_link_is_refused_though_its_target_is_not)
{
    NEED_ROOT();
    test_copy(ALPHA, "real/ds_accel_alpha.so");
    make_link("../real/ds_accel_alpha.so", FILE_PATH);
    change_owner(FILE_PATH, STRANGER, 0);
    expect_no("link_owner", test_path(FILE_PATH), "owner 12345");
    make_link("../real/ds_accel_alpha.so", FILE_PATH);
    expect_yes();
    make_link("real", "way");
    make_link("../way/ds_accel_alpha.so", FILE_PATH);
    expect_yes();
    change_owner("way", STRANGER, 0);
    expect_no("link_owner", test_path("way"), "owner 12345");
}

Test(core_trust, the_user_may_own_it_and_other_users_may_not)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_owner(FILE_PATH, STRANGER, STRANGER);
    change_owner("plugins", STRANGER, STRANGER);
    cr_assert_eq(chown(test_dir(), STRANGER, STRANGER), 0);
    become(STRANGER, STRANGER);
    expect_yes();
    become_root();
    change_owner(FILE_PATH, STRANGER + 1, 0);
    become(STRANGER, STRANGER);
    expect_no("file_owner", "owner 12346", "expected owner 0 or 12345");
    become_root();
    change_owner(FILE_PATH, 0, 0);
    become(STRANGER, STRANGER);
    expect_yes();
    become_root();
}

/* A root process that drops its rights temporarily can regain them, and so can a plugin in the
   process. */
Test(core_trust, a_lowered_user_is_not_trusted)
{
    NEED_ROOT();
    setenv("DS_ACCEL_PROBE", "in-process", 1);
    test_add_mock("alpha");
    cr_assert_eq(chmod(test_dir(), 0755), 0);
    change_owner(FILE_PATH, STRANGER, STRANGER);
    cr_assert_eq(seteuid(STRANGER), 0);
    expect_no("file_owner", "owner 12345", "expected owner 0: the program has raised rights");
    cr_assert_eq(seteuid(0), 0);
    /* only the saved user id differs */
    cr_assert_eq(setresuid(STRANGER, STRANGER, 0), 0);
    expect_no("file_owner", "owner 12345", "expected owner 0: the program has raised rights");
    cr_assert_eq(setresuid(0, 0, 0), 0);
    /* only the real user id differs */
    cr_assert_eq(setresuid(0, STRANGER, STRANGER), 0);
    expect_no("file_owner", "owner 12345", "expected owner 0: the program has raised rights");
    cr_assert_eq(setresuid(0, 0, 0), 0);
    change_owner(FILE_PATH, 0, 0);
    cr_assert_eq(seteuid(STRANGER), 0);
    expect_yes();
    cr_assert_eq(seteuid(0), 0);
}

/* ---- modes ---------------------------------------------------------------------------------- */

Test(core_trust, a_file_that_others_may_write_to_is_refused)
{
    test_add_mock("alpha");
    change_mode(FILE_PATH, 0666);
    expect_no("file_writable", test_path(FILE_PATH), "mode 0666");
    change_mode(FILE_PATH, 0644);
    expect_yes();
}

Test(core_trust, a_directory_that_others_may_write_to_is_refused)
{
    test_add_mock("alpha");
    change_mode("plugins", 0777);
    expect_no("dir_writable", test_path("plugins"), "mode 0777");
    change_mode("plugins", 0755);
    expect_yes();
}

Test(core_trust, a_directory_above_that_others_may_write_to_is_refused)
{
    test_add_mock("alpha");
    move_below();
    change_mode("above", 0777);
    expect_no("parent_writable", test_path("above"), "mode 0777");
    change_mode("above", 0755);
    expect_yes();
}

Test(core_trust, the_sticky_bit_protects_what_root_and_the_user_own)
{
    test_add_mock("alpha");
    change_mode("plugins", 01777);
    expect_yes();
    move_below();
    change_mode("above", 01777);
    expect_yes();
    if (geteuid() == 0) {
        change_owner("above/plugins/ds_accel_alpha.so", STRANGER, 0);
        expect_no("file_owner", test_path("above/plugins/ds_accel_alpha.so"), "owner 12345");
        change_owner("above/plugins/ds_accel_alpha.so", 0, 0);
        change_owner("above/plugins", STRANGER, 0);
        expect_no("dir_owner", test_path("above/plugins"), "owner 12345");
    }
}

Test(core_trust, roots_own_group_may_write_and_others_may_not)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_mode("plugins", 0775);
    change_mode(FILE_PATH, 0664);
    expect_yes();
    change_owner(FILE_PATH, 0, STRANGER);
    expect_no("file_writable", "group 12345", "mode 0664");
    change_mode(FILE_PATH, 0644);
    expect_yes();
    change_owner("plugins", 0, STRANGER);
    expect_no("dir_writable", "group 12345", "mode 0775");
    change_mode("plugins", 0755);
    expect_yes();
}

Test(core_trust, the_users_private_group_may_write_and_a_shared_one_may_not)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_owner(FILE_PATH, STRANGER, STRANGER);
    change_mode(FILE_PATH, 0664);
    become(STRANGER, STRANGER);
    expect_yes();
    /* The library does not treat this group as private: the process's own group is another. */
    become_root();
    become(STRANGER, 100);
    expect_no("file_writable", "group 12345", "mode 0664");
    become_root();
    change_owner(FILE_PATH, STRANGER, 100);
    become(STRANGER, STRANGER);
    expect_no("file_writable", "group 100", "mode 0664");
    become_root();
    /* root owns the file and the user's group may write to it: its other members are unknown. */
    change_owner(FILE_PATH, 0, STRANGER);
    become(STRANGER, STRANGER);
    expect_no("file_writable", "owner 0, group 12345", "mode 0664");
    become_root();
}

/* A file that any user may have written is not even opened, so nothing parses it. */
Test(core_trust, a_refused_file_is_never_opened)
{
    int watch;

    test_add_mock("alpha");
    change_mode(FILE_PATH, 0666);
    watch = watch_opens(test_path(FILE_PATH));
    expect_no("file_writable", test_path(FILE_PATH), "mode 0666");
    expect_unopened(watch, test_path(FILE_PATH));
    change_mode(FILE_PATH, 0644);
    change_mode("plugins", 0777);
    watch = watch_opens(test_path(FILE_PATH));
    expect_no("dir_writable", test_path("plugins"), "mode 0777");
    expect_unopened(watch, test_path(FILE_PATH));
}

/* ---- links ---------------------------------------------------------------------------------- */

Test(core_trust, a_link_is_as_good_as_where_it_leads)
{
    test_copy(ALPHA, "real/deep/ds_accel_alpha.so");
    make_link("../real/./deep/../deep//ds_accel_alpha.so", FILE_PATH);
    expect_yes();
    make_link(test_path("real/deep/ds_accel_alpha.so"), FILE_PATH);
    expect_yes();
    change_mode("real/deep", 0777);
    expect_no("dir_writable", test_path("real/deep"), "mode 0777");
    change_mode("real/deep", 0755);
    change_mode("real", 0777);
    expect_no("parent_writable", test_path("real"), "mode 0777");
    change_mode("real", 0755);
    change_mode("real/deep/ds_accel_alpha.so", 0646);
    expect_no("file_writable", test_path("real/deep/ds_accel_alpha.so"), "mode 0646");
    change_mode("real/deep/ds_accel_alpha.so", 0644);
    expect_yes();
}

/* A path through a directory that others may write to is rejected, even if a later ".." leaves that
   directory. */
Test(core_trust, no_way_leads_through_a_directory_of_others)
{
    test_copy(ALPHA, "real/ds_accel_alpha.so");
    test_path("open/x");
    change_mode("open", 0777);
    make_link("../open/../real/ds_accel_alpha.so", FILE_PATH);
    expect_no("parent_writable", test_path("open"), "mode 0777");
    make_link("../real/ds_accel_alpha.so", FILE_PATH);
    expect_yes();
}

Test(core_trust, a_link_to_nothing_says_so)
{
    make_link("../real/ds_accel_alpha.so", FILE_PATH);
    expect_no("dangling_link", test_path(FILE_PATH), "real");
    test_write("real", "a file where the link has a directory");
    expect_no("dangling_link", test_path(FILE_PATH), "real");
    cr_assert_eq(unlink(test_path("real")), 0);
    test_copy(ALPHA, "real/ds_accel_alpha.so");
    expect_yes();
}

Test(core_trust, a_link_to_itself_says_so)
{
    make_link("ds_accel_beta.so", FILE_PATH);
    make_link("ds_accel_alpha.so", "plugins/ds_accel_beta.so");
    expect_no("link_loop", test_path(FILE_PATH), "40");
    cr_assert_eq(unlink(test_path("plugins/ds_accel_beta.so")), 0);
    test_copy(ALPHA, "real.so");
    make_link("../real.so", FILE_PATH);
    expect_yes();
}

Test(core_trust, as_many_links_are_followed_as_the_kernel_follows)
{
    char target[32];
    char path[32];

    test_copy(ALPHA, "chain/0");
    for (int i = 1; i < 40; i++) {
        snprintf(target, sizeof(target), "%d", i - 1);
        snprintf(path, sizeof(path), "chain/%d", i);
        make_link(target, path);
    }
    make_link("../chain/39", FILE_PATH);
    expect_yes();
    make_link("39", "chain/40");
    make_link("../chain/40", FILE_PATH);
    expect_no("link_loop", test_path(FILE_PATH), "40");
}

/* ---- many plugins, one walk of their paths --------------------------------------------------- */

Test(core_trust, each_of_many_plugins_is_judged_by_itself)
{
    ds_accel_t *context;
    char name[32];
    char path[64];

    test_copy(ALPHA, "real/ds_accel_alpha.so");
    test_copy(ALPHA, "open/ds_accel_alpha.so");
    change_mode("open", 0777);
    for (int i = 0; i < 200; i++) {
        snprintf(path, sizeof(path), "plugins/ds_accel_p%d.so", i);
        if (i % 4 == 0) {
            make_link("../open/ds_accel_alpha.so", path);
        } else if (i % 4 == 1) {
            make_link("../real/ds_accel_alpha.so", path);
        } else {
            test_copy(TEST_SOURCE "/LICENSE", path);
            change_mode(path, i % 4 == 2 ? 0644 : 0666);
        }
    }
    context = test_create();
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (int i = 0; i < 200; i++) {
        static const char *const reasons[] = {"dir_writable", "name_mismatch", "not_elf",
                                              "file_writable"};

        snprintf(name, sizeof(name), "p%d", i);
        cr_expect_str_eq(test_candidate(context, name).reason, reasons[i % 4], "%s: %s", name,
                         test_candidate(context, name).detail);
    }
    ds_accel_destroy(context);
}

/* There are more directories than the library keeps open at once, all with the same name; none may
   be confused with another. */
Test(core_trust, directories_of_one_name_are_told_apart)
{
    ds_accel_t *context;
    char target[80];
    char path[64];
    char name[32];

    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "d%d/lib/real.so", i);
        test_copy(TEST_SOURCE "/LICENSE", path);
        snprintf(target, sizeof(target), "../%s", path);
        snprintf(path, sizeof(path), "plugins/ds_accel_p%d.so", i);
        make_link(target, path);
        snprintf(path, sizeof(path), "d%d/lib", i);
        change_mode(path, i % 3 == 0 ? 0777 : 0755);
    }
    context = test_create();
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        cr_expect_str_eq(test_candidate(context, name).reason,
                         i % 3 == 0 ? "dir_writable" : "not_elf", "%s", name);
    }
    ds_accel_destroy(context);
}

Test(core_trust, a_directory_is_looked_at_anew_by_the_next_call)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    test_add_mock("alpha");
    change_mode("plugins", 0777);
    options.accelerator = "alpha";
    context = test_create_with(&options);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    EXPECT_HAS(ds_accel_last_error(), "dir_writable");
    change_mode("plugins", 0755);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

Test(core_trust, no_directory_stays_open)
{
    int before = count_descriptors();
    ds_accel_t *context;
    char *text;

    test_add_mock("alpha");
    make_link("nowhere", "plugins/ds_accel_beta.so");
    context = test_create();
    cr_expect_eq(ds_accel_check(context, NULL), DS_ACCEL_OK);
    cr_expect_eq(count_descriptors(), before);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_eq(count_descriptors(), before);
    ds_accel_destroy(context);
    context = test_create();
    text = test_report(context, DS_ACCEL_REPORT_INFO, "alpha", DS_ACCEL_FORMAT_JSON);
    ds_accel_free_text(text);
    cr_expect_eq(count_descriptors(), before);
    ds_accel_destroy(context);
}

Test(core_trust, without_descriptors_left_nothing_is_judged)
{
    struct rlimit limit;
    struct rlimit low;
    ds_accel_t *context;
    int free_fd;

    test_add_mock("alpha");
    context = test_create();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    free_fd = dup(0);
    close(free_fd);
    low = limit;
    low.rlim_cur = (rlim_t)free_fd + 2;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    cr_expect_eq(ds_accel_check(context, "alpha"), DS_ACCEL_ERR_LIMIT, "%s", ds_accel_last_error());
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(test_candidate(context, "alpha").state, DS_ACCEL_STATE_NOT_PROBED);
    cr_expect_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_eq(test_candidate(context, "alpha").state, DS_ACCEL_STATE_AVAILABLE);
    ds_accel_destroy(context);
}
