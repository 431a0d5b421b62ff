/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gates trust and hash: each reason, its evidence, and its remedy, which is applied and must
 * turn the "no" into a "yes". What needs a second owner is done by root only.
 */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define STRANGER 12345u
#define FILE_PATH "plugins/ds_accel_alpha.so"
#define ALPHA TEST_MOCKS "/ds_accel_alpha.so"

/* Called before the library opens a file to read it, with its name. NULL: nothing is. */
static void (*on_open)(const char *name);

/* The library's openat() too: the program's own comes first. */
__attribute__((visibility("default"))) int openat(int folder, const char *name, int flags, ...)
{
    mode_t mode = 0;
    va_list arguments;

    va_start(arguments, flags);
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        mode = va_arg(arguments, mode_t);
    }
    va_end(arguments);
    if (on_open != NULL && (flags & O_PATH) == 0) {
        on_open(name);
    }
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

static bool is_root(void)
{
    if (geteuid() != 0) {
        cr_log_warn("not run: it needs root, who alone can give files away");
        return false;
    }
    return true;
}

#define NEED_ROOT() \
    do { \
        if (!is_root()) { \
            cr_skip_test("needs root"); \
        } \
    } while (0)

static void change_mode(const char *path, mode_t mode)
{
    cr_assert_eq(chmod(test_path(path), mode), 0, "%s: %s", path, strerror(errno));
}

static void change_owner(const char *path, uid_t user, gid_t group)
{
    cr_assert_eq(lchown(test_path(path), user, group), 0, "%s: %s", path, strerror(errno));
}

static void make_link(const char *target, const char *path)
{
    const char *full = test_path(path);

    unlink(full);
    cr_assert_eq(symlink(target, full), 0, "%s: %s", full, strerror(errno));
}

/* Make the capabilities that the process may have effective. */
static void raise_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    cr_assert_eq(syscall(SYS_capget, &header, data), 0);
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        data[i].effective = data[i].permitted;
    }
    cr_assert_eq(syscall(SYS_capset, &header, data), 0);
}

/*
 * The rest of the test runs as another user, whom the test's directory is opened for: all user ids
 * change, as the library trusts no effective user whose ids differ. The build directory may be
 * closed to that user, and with it the helper.
 */
static void become(uid_t user, gid_t group)
{
    setenv("DS_ACCEL_PROBE", "in-process", 1);
    cr_assert_eq(chmod(test_dir(), 0755), 0);
    cr_assert_eq(setegid(group), 0);
    cr_assert_eq(prctl(PR_SET_KEEPCAPS, 1), 0);
    /* The test's thread alone: Criterion's has no capabilities to come back with. */
    cr_assert_eq(syscall(SYS_setresuid, user, user, user), 0);
}

static void become_root(void)
{
    raise_capabilities();
    cr_assert_eq(syscall(SYS_setresuid, 0, 0, 0), 0);
    cr_assert_eq(setegid(0), 0);
}

/* The plugin alpha is refused at a gate for a reason, with both parts in the evidence. */
static void expect_no_at(const char *stage, const char *reason, const char *part,
                         const char *other_part)
{
    ds_accel_t *context = test_create();
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, "alpha");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_REJECTED, "%s: %s", reason, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason, "%s, not %s: %s", candidate.reason, reason,
                     candidate.detail);
    cr_expect_str_eq(candidate.stage, stage, "%s: stage %s", reason, candidate.stage);
    cr_expect_str_neq(candidate.remedy, "", "%s", reason);
    EXPECT_HAS(candidate.detail, part);
    EXPECT_HAS(candidate.detail, other_part);
    ds_accel_destroy(context);
}

static void expect_no(const char *reason, const char *part, const char *other_part)
{
    expect_no_at("trust", reason, part, other_part);
}

static void expect_yes(void)
{
    ds_accel_t *context = test_create();
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, "alpha");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_AVAILABLE, "%s: %s: %s", candidate.state_name,
                 candidate.reason, candidate.detail);
    ds_accel_destroy(context);
}

/* The kernel's word of each time that any process opens the file, but for O_PATH. */
static int watch_opens(const char *path)
{
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    cr_assert_geq(watch, 0, "%s", strerror(errno));
    cr_assert_geq(inotify_add_watch(watch, path, IN_OPEN), 0, "%s: %s", path, strerror(errno));
    return watch;
}

/* How often it was opened so far; then once by us, so that it is known to be counted. */
static void expect_unopened(int watch, const char *path)
{
    struct inotify_event event;
    int fd;

    cr_expect_lt(read(watch, &event, sizeof(event)), 0, "%s was opened", path);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
    close(fd);
    cr_assert_eq(read(watch, &event, sizeof(event)), (ssize_t)sizeof(event), "nothing is counted");
    close(watch);
}

/* test_dir()/above/plugins instead of test_dir()/plugins is the folder searched. */
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

Test(core_trust, a_strangers_folder_is_refused_wherever_it_is)
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

/* Root that lowers its rights for a while can raise them again, and so can a plugin in it. */
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
    /* Only the saved id differs. */
    cr_assert_eq(setresuid(STRANGER, STRANGER, 0), 0);
    expect_no("file_owner", "owner 12345", "expected owner 0: the program has raised rights");
    cr_assert_eq(setresuid(0, 0, 0), 0);
    /* Only the real one does. */
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

Test(core_trust, a_folder_that_others_may_write_to_is_refused)
{
    test_add_mock("alpha");
    change_mode("plugins", 0777);
    expect_no("dir_writable", test_path("plugins"), "mode 0777");
    change_mode("plugins", 0755);
    expect_yes();
}

Test(core_trust, a_folder_above_that_others_may_write_to_is_refused)
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
    /* The user's groups say that this one is not private: it is not the one files are made with. */
    become_root();
    become(STRANGER, 100);
    expect_no("file_writable", "group 12345", "mode 0664");
    become_root();
    change_owner(FILE_PATH, STRANGER, 100);
    become(STRANGER, STRANGER);
    expect_no("file_writable", "group 100", "mode 0664");
    become_root();
    /* Root's file of the user's group: who else is in it, nobody can tell. */
    change_owner(FILE_PATH, 0, STRANGER);
    become(STRANGER, STRANGER);
    expect_no("file_writable", "owner 0, group 12345", "mode 0664");
    become_root();
}

/* What anybody may have written is not read either: nothing parses it. */
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

/* A folder that others may write to is no way to go, though ".." leads out of it again. */
Test(core_trust, no_way_leads_through_a_folder_of_others)
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
    test_write("real", "a file where the link has a folder");
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

/* ---- what is no file ------------------------------------------------------------------------ */

Test(core_trust, a_folder_in_its_place_says_so)
{
    cr_assert_eq(mkdir(test_path(FILE_PATH), 0755), 0);
    expect_no("is_directory", test_path(FILE_PATH), "");
    cr_assert_eq(rmdir(test_path(FILE_PATH)), 0);
    make_link("..", FILE_PATH);
    expect_no("is_directory", test_dir(), "");
    make_link("/", FILE_PATH);
    expect_no("is_directory", "/", "");
    make_link("../plugins/", FILE_PATH);
    expect_no("is_directory", test_path("plugins"), "");
    cr_assert_eq(unlink(test_path(FILE_PATH)), 0);
    test_add_mock("alpha");
    expect_yes();
}

Test(core_trust, a_pipe_is_never_opened, .timeout = 10)
{
    int watch;

    cr_assert_eq(mkfifo(test_path(FILE_PATH), 0644), 0);
    watch = watch_opens(test_path(FILE_PATH));
    expect_no("is_fifo", test_path(FILE_PATH), "");
    expect_unopened(watch, test_path(FILE_PATH));
    cr_assert_eq(rename(test_path(FILE_PATH), test_path("pipe")), 0);
    make_link("../pipe", FILE_PATH);
    watch = watch_opens(test_path("pipe"));
    expect_no("is_fifo", test_path("pipe"), "");
    expect_unopened(watch, test_path("pipe"));
    cr_assert_eq(unlink(test_path(FILE_PATH)), 0);
    test_add_mock("alpha");
    expect_yes();
}

Test(core_trust, a_socket_says_so)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    cr_assert_geq(fd, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_path(FILE_PATH));
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    expect_no("is_socket", test_path(FILE_PATH), "");
    close(fd);
    cr_assert_eq(unlink(test_path(FILE_PATH)), 0);
    test_add_mock("alpha");
    expect_yes();
}

/* A terminal that nobody else has: of other devices one cannot tell who opens them. */
Test(core_trust, a_device_is_never_opened)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char path[64];
    int watch;

    cr_assert_geq(terminal, 0);
    cr_assert_eq(grantpt(terminal), 0);
    cr_assert_eq(unlockpt(terminal), 0);
    cr_assert_eq(ptsname_r(terminal, path, sizeof(path)), 0);
    make_link(path, FILE_PATH);
    watch = watch_opens(path);
    expect_no("not_regular_file", path, "");
    expect_unopened(watch, path);
    close(terminal);
    make_link("/dev/null", FILE_PATH);
    expect_no("not_regular_file", "/dev/null", "");
    cr_assert_eq(unlink(test_path(FILE_PATH)), 0);
    test_add_mock("alpha");
    expect_yes();
}

/* ---- what is closed to the user ------------------------------------------------------------- */

Test(core_trust, a_file_closed_to_the_user_says_so)
{
    NEED_ROOT();
    test_add_mock("alpha");
    change_mode(FILE_PATH, 0640);
    become(STRANGER, STRANGER);
    expect_no("not_readable", test_path(FILE_PATH), "mode 0640");
    become_root();
    change_mode(FILE_PATH, 0644);
    become(STRANGER, STRANGER);
    expect_yes();
    become_root();
}

Test(core_trust, a_folder_closed_to_the_user_is_named)
{
    NEED_ROOT();
    test_copy(ALPHA, "closed/deep/ds_accel_alpha.so");
    make_link("../closed/deep/ds_accel_alpha.so", FILE_PATH);
    change_mode("closed", 0700);
    become(STRANGER, STRANGER);
    expect_no("not_readable", test_path("closed"), "mode 0700");
    become_root();
    change_mode("closed", 0711);
    change_mode("closed/deep", 0744);
    become(STRANGER, STRANGER);
    expect_no("not_readable", test_path("closed/deep"), "mode 0744");
    become_root();
    change_mode("closed/deep", 0711);
    become(STRANGER, STRANGER);
    expect_yes();
    become_root();
}

/* ---- many plugins, one walk ----------------------------------------------------------------- */

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

/* More folders than are kept open at once, each of one name: none is taken for another. */
Test(core_trust, folders_of_one_name_are_told_apart)
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

Test(core_trust, a_folder_is_looked_at_anew_by_the_next_call)
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

Test(core_trust, no_folder_stays_open)
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

/* ---- SHA-256 -------------------------------------------------------------------------------- */

/* As another program computes it. */
static const char *hash_of(const char *path)
{
    static char hex[65];
    char command[600];
    FILE *pipe;

    snprintf(command, sizeof(command), "sha256sum %s", path);
    pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    cr_assert_eq(fscanf(pipe, "%64s", hex), 1);
    pclose(pipe);
    return hex;
}

static void set_trust(const char *mode, const char *name, const char *hex)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"trust\": {\"mode\": \"%s\", \"sha256\": {\"%s\": \"%s\"}}}",
             mode, name, hex);
    test_write("etc/ds-accel.json", text);
}

Test(core_trust, enforced_hashes_are_required)
{
    char right[65];

    test_add_mock("alpha");
    test_copy(TEST_PLUGINS "/ds_accel_cpu.so", "plugins/ds_accel_cpu.so");
    snprintf(right, sizeof(right), "%s", hash_of(test_path(FILE_PATH)));
    set_trust("enforce", "beta", right);
    expect_no_at("hash", "hash_unlisted", right, "SHA-256");
    set_trust("enforce", "alpha", right);
    expect_yes();
    set_trust("enforce", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_no_at("hash", "hash_mismatch", right, hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    set_trust("enforce", "alpha", right);
    expect_yes();
}

Test(core_trust, one_changed_byte_is_another_hash)
{
    FILE *file;

    test_add_mock("alpha");
    set_trust("enforce", "alpha", hash_of(test_path(FILE_PATH)));
    file = fopen(test_path(FILE_PATH), "ab");
    cr_assert_not_null(file);
    fputc(0, file);
    fclose(file);
    expect_no_at("hash", "hash_mismatch", hash_of(test_path(FILE_PATH)), "");
}

Test(core_trust, with_warn_a_wrong_hash_is_only_told)
{
    test_add_mock("alpha");
    set_trust("warn", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS(test_log, "hash_mismatch");
    test_log[0] = '\0';
    set_trust("warn", "beta", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS(test_log, "hash_unlisted");
    test_log[0] = '\0';
    set_trust("warn", "alpha", hash_of(test_path(FILE_PATH)));
    expect_yes();
    EXPECT_HAS_NOT(test_log, "hash_");
}

Test(core_trust, with_off_no_hash_is_looked_at)
{
    char *text;
    ds_accel_t *context;

    test_add_mock("alpha");
    set_trust("off", "alpha", hash_of(TEST_MOCKS "/ds_accel_beta.so"));
    expect_yes();
    EXPECT_HAS_NOT(test_log, "hash_");
    context = test_create();
    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK);
    text =
        test_compact(test_report(context, DS_ACCEL_REPORT_EXPLAIN, "alpha", DS_ACCEL_FORMAT_JSON));
    EXPECT_HAS(text, "{\"gate\":\"hash\",\"result\":\"skipped\",\"evidence\":\"\"}");
    ds_accel_free_text(text);
    ds_accel_destroy(context);
}

/* Who may not change the file is asked before what is in it: another order of two reasons. */
Test(core_trust, trust_is_judged_before_the_hash)
{
    test_add_mock("alpha");
    set_trust("enforce", "beta", hash_of(test_path(FILE_PATH)));
    change_mode(FILE_PATH, 0666);
    expect_no("file_writable", test_path(FILE_PATH), "mode 0666");
}

/* ---- files that change meanwhile ------------------------------------------------------------ */

/* The warning of the gate hash comes between check and load: replace the file then. */
static void replace_on_warning(void *user_data, uint32_t level, const char *topic,
                               const char *message)
{
    (void)user_data;
    (void)level;
    (void)message;
    if (strcmp(topic, "trust") == 0) {
        cr_assert_eq(rename(test_path("other.so"), test_path(FILE_PATH)), 0);
    }
}

static void expect_changed(const struct ds_accel_options *options, const char *part)
{
    ds_accel_t *context = test_create_with(options);
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, "alpha");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_REJECTED, "%s", candidate.state_name);
    cr_expect_str_eq(candidate.reason, "file_changed", "%s: %s", candidate.reason,
                     candidate.detail);
    cr_expect_str_eq(candidate.stage, "load", "%s", candidate.stage);
    EXPECT_HAS(candidate.detail, part);
    ds_accel_destroy(context);
}

Test(core_trust, a_file_replaced_after_its_check_is_not_loaded)
{
    struct ds_accel_options options = test_options();

    test_add_mock("alpha");
    test_copy(ALPHA, "other.so");
    set_trust("warn", "beta", hash_of(ALPHA));
    options.log_sink = replace_on_warning;
    expect_changed(&options, "another file");
    expect_yes();
}

static void append_on_warning(void *user_data, uint32_t level, const char *topic,
                              const char *message)
{
    (void)user_data;
    (void)level;
    (void)message;
    if (strcmp(topic, "trust") == 0) {
        FILE *file = fopen(test_path(FILE_PATH), "ab");

        cr_assert_not_null(file);
        fputc(0, file);
        fclose(file);
    }
}

Test(core_trust, a_file_written_to_after_its_check_is_not_loaded)
{
    struct ds_accel_options options = test_options();

    test_add_mock("alpha");
    set_trust("warn", "beta", hash_of(ALPHA));
    options.log_sink = append_on_warning;
    expect_changed(&options, "written to");
    expect_yes();
}

/* The file's last byte is another, its size the same; its time of change too, if that is wanted. */
static bool keeps_mtime;

static void overwrite_on_warning(void *user_data, uint32_t level, const char *topic,
                                 const char *message)
{
    struct timespec times[2];
    struct stat info;
    FILE *file;
    int last;

    (void)user_data;
    (void)level;
    (void)message;
    if (strcmp(topic, "trust") != 0) {
        return;
    }
    file = fopen(test_path(FILE_PATH), "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fstat(fileno(file), &info), 0);
    cr_assert_eq(fseek(file, -1, SEEK_END), 0);
    last = fgetc(file);
    cr_assert_eq(fseek(file, -1, SEEK_END), 0);
    fputc(last ^ 1, file);
    cr_assert_eq(fflush(file), 0);
    times[0] = info.st_atim;
    times[1] = info.st_mtim;
    cr_assert(!keeps_mtime || futimens(fileno(file), times) == 0);
    fclose(file);
}

static void overwrite_same_size(void)
{
    struct ds_accel_options options = test_options();

    test_add_mock("alpha");
    usleep(30 * 1000); /* the kernel's clock of files has steps: the copy is of an earlier one */
    set_trust("warn", "beta", hash_of(ALPHA));
    options.log_sink = overwrite_on_warning;
    expect_changed(&options, "written to");
}

Test(core_trust, a_file_overwritten_in_place_is_not_loaded)
{
    overwrite_same_size();
}

/* Its time of change can be set by whoever owns it; that of its inode cannot. */
Test(core_trust, a_file_overwritten_with_its_time_put_back_is_not_loaded)
{
    keeps_mtime = true;
    overwrite_same_size();
}

/* Between the check of the name and its use: the walk judged one file, and would open another. */
static void replace_on_open(const char *name)
{
    if (strcmp(name, "ds_accel_alpha.so") == 0) {
        on_open = NULL;
        cr_assert_eq(rename(test_path("other.so"), test_path(FILE_PATH)), 0);
    }
}

Test(core_trust, a_file_replaced_between_check_and_open_is_not_read)
{
    test_add_mock("alpha");
    test_copy(ALPHA, "other.so");
    on_open = replace_on_open;
    expect_no("file_changed", test_path(FILE_PATH), "another file now");
    cr_expect_null(on_open, "it was never opened");
    expect_yes();
}

/* A plugin whose constructor puts another file in its place. */
Test(core_trust, a_file_replaced_while_it_is_loaded_is_not_used)
{
    struct ds_accel_options options = test_options();
    char command[2048];
    char source[512];

    snprintf(source, sizeof(source), "%s",
             test_write("swap.c",
                        "#include <stdio.h>\n#include <stdlib.h>\n"
                        "__attribute__((constructor)) static void swap(void)\n"
                        "{ if (getenv(\"TEST_SWAP_FROM\") != NULL)\n"
                        "  rename(getenv(\"TEST_SWAP_FROM\"), getenv(\"TEST_SWAP_TO\")); }\n"));
    snprintf(command, sizeof(command),
             TEST_CC " -w -shared -fPIC -fvisibility=hidden -I" TEST_BUILD "/stage/plugin "
                     "-DDEFECT=DEFECT_none -DFIXTURE_NAME='\"alpha\"' %s " TEST_SOURCE
                     "/tests/fixtures/broken.c -o %s",
             source, test_path(FILE_PATH));
    cr_assert_eq(system(command), 0, "%s", command);
    test_copy(ALPHA, "other.so");
    setenv("TEST_SWAP_FROM", test_path("other.so"), 1);
    setenv("TEST_SWAP_TO", test_path(FILE_PATH), 1);
    expect_changed(&options, "another file");
}
