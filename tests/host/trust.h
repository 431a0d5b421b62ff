/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of trust: plugins of several owners and modes, and their verdicts. */
#ifndef DS_ACCEL_TESTS_HOST_TRUST_H
#define DS_ACCEL_TESTS_HOST_TRUST_H

#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STRANGER 12345u
#define FILE_PATH "plugins/ds_accel_alpha.so"
#define ALPHA TEST_MOCKS "/ds_accel_alpha.so"

static inline bool is_root(void)
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

static inline void change_mode(const char *path, mode_t mode)
{
    cr_assert_eq(chmod(test_path(path), mode), 0, "%s: %s", path, strerror(errno));
}

static inline void make_link(const char *target, const char *path)
{
    const char *full = test_path(path);

    unlink(full);
    cr_assert_eq(symlink(target, full), 0, "%s: %s", full, strerror(errno));
}

/* Raise the effective capabilities to the permitted ones. */
static inline void raise_capabilities(void)
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
 * Run the rest of the test as another user, and let that user read the test's directory. All user
 * ids change, because the library does not trust an effective user whose ids differ. The build
 * directory and the helper in it may be inaccessible to that user, so probes run in this process.
 */
static inline void become(uid_t user, gid_t group)
{
    setenv("DS_ACCEL_PROBE", "in-process", 1);
    cr_assert_eq(chmod(test_dir(), 0755), 0);
    cr_assert_eq(setegid(group), 0);
    cr_assert_eq(prctl(PR_SET_KEEPCAPS, 1), 0);
    /* The raw system call changes only the test's thread: Criterion's thread has no capabilities
       with which to change back. */
    cr_assert_eq(syscall(SYS_setresuid, user, user, user), 0);
}

static inline void become_root(void)
{
    raise_capabilities();
    cr_assert_eq(syscall(SYS_setresuid, 0, 0, 0), 0);
    cr_assert_eq(setegid(0), 0);
}

/* Expect that plugin alpha is rejected at a gate with this reason, and that its evidence has both
   parts. */
static inline void expect_no_at(const char *stage, const char *reason, const char *part,
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

static inline void expect_no(const char *reason, const char *part, const char *other_part)
{
    expect_no_at("trust", reason, part, other_part);
}

static inline void expect_yes(void)
{
    ds_accel_t *context = test_create();
    struct ds_accel_candidate candidate;

    cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    candidate = test_candidate(context, "alpha");
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_AVAILABLE, "%s: %s: %s", candidate.state_name,
                 candidate.reason, candidate.detail);
    ds_accel_destroy(context);
}

/* Watch opens of the file by any process, except opens with O_PATH. */
static inline int watch_opens(const char *path)
{
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    cr_assert_geq(watch, 0, "%s", strerror(errno));
    cr_assert_geq(inotify_add_watch(watch, path, IN_OPEN), 0, "%s: %s", path, strerror(errno));
    return watch;
}

/* Expect no open so far, then open the file once to check that opens are counted. */
static inline void expect_unopened(int watch, const char *path)
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

/* SHA-256 of the file as sha256sum computes it. */
static inline const char *hash_of(const char *path)
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

static inline void set_trust(const char *mode, const char *name, const char *hex)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"trust\": {\"mode\": \"%s\", \"sha256\": {\"%s\": \"%s\"}}}",
             mode, name, hex);
    test_write("etc/ds-accel.json", text);
}

#endif
