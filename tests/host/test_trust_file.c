/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Trust: objects that are not regular files, files that the user cannot access, and files that
   change during the check. */
#include "trust.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Called with the file's name before the library opens a file for reading. NULL: not called. */
static void (*on_open)(const char *name);

/* Overrides openat() in the library too: the program's definition comes first. */
__attribute__((visibility("default"))) int openat(int directory, const char *name, int flags, ...)
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
    return (int)syscall(SYS_openat, directory, name, flags, mode);
}

/* ---- objects that are not regular files ------------------------------------------------------ */

Test(core_trust, a_directory_in_its_place_says_so)
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

Test(core_trust, a_pipe_is_never_opened, .timeout = 60)
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

/* The device is a terminal of this process, because another program may open other devices. */
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

/* ---- files that the user cannot access ------------------------------------------------------- */

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

Test(core_trust, a_directory_closed_to_the_user_is_named)
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

/* ---- files that change during the check ------------------------------------------------------ */

/* Replace the file when the gate hash logs its warning, which is between the check and the load. */
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

/* Change the file's last byte but not its size; with keeps_mtime, restore its modification time
   too. */
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
    /* the kernel's file clock is coarse, and the copy must have an earlier time */
    usleep(30 * 1000);
    set_trust("warn", "beta", hash_of(ALPHA));
    options.log_sink = overwrite_on_warning;
    expect_changed(&options, "written to");
}

Test(core_trust, a_file_overwritten_in_place_is_not_loaded)
{
    overwrite_same_size();
}

/* A file's owner can set its modification time, but not the inode's change time. */
Test(core_trust, a_file_overwritten_with_its_time_put_back_is_not_loaded)
{
    keeps_mtime = true;
    overwrite_same_size();
}

/* Replace the file after its name was checked and before it is opened: the checked file and the
   opened file would differ. */
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
    expect_no("file_changed", test_path(FILE_PATH), "was replaced meanwhile");
    cr_expect_null(on_open, "it was never opened");
    expect_yes();
}

/* The plugin's constructor replaces the plugin's own file. */
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
