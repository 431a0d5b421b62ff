/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Files that a failed job leaves in shared memory: real files in a directory of this program's own
 * below /dev/shm, so that they are on tmpfs and no other file there is touched.
 */
#include "death.h"

#include "base/text.h"
#include "launch/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((off_t)1 << 20)

static char shared[256]; /* the directory */
static struct ds_accel__shared_memory memory;

static const char *path_of(const char *name)
{
    static char path[4096];

    fill(path, sizeof(path), "%s/%s", shared, name);
    return path;
}

/* Make a file whose blocks are allocated, and leave it open. */
static int make_open(const char *name, off_t size, mode_t mode)
{
    int fd = open(path_of(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : size > 0 ? posix_fallocate(fd, 0, size) : 0;

    check(fd >= 0 && error == 0 && fchmod(fd, mode) == 0, "%s: %s", path_of(name), strerror(error));
    return fd;
}

static void make(const char *name, off_t size, mode_t mode)
{
    close(make_open(name, size, mode));
}

/* An empty directory, which is listed after what `before` makes in it. */
static void begin(void (*before)(void))
{
    ds_accel__shared_memory_clear(&memory);
    remove_all(shared);
    check(mkdir(shared, 0700) == 0, "%s: %s", shared, strerror(errno));
    if (before != NULL) {
        before();
    }
    ds_accel__shared_memory_list(&memory, shared);
}

/* The names that are found, each with a blank behind it. */
static const char *found(void)
{
    static char names[4096];
    struct ds_accel__shared_memory listed = memory;

    ds_accel__shared_memory_find(&memory);
    names[0] = '\0';
    for (uint32_t i = 0; i < memory.file_count; i++) {
        size_t length = strlen(names);

        fill(names + length, sizeof(names) - length, "%s ", memory.files[i].name);
    }
    check(memory.is_examined == memory.is_listed, "%s is examined", shared);
    memory.is_examined = listed.is_examined; /* so that it can be examined again */
    memory.found_count = memory.file_count = 0;
    memory.found_bytes = 0;
    return names;
}

static void check_found(const char *what, const char *expected)
{
    const char *names = found();

    check(strcmp(names, expected) == 0, "%s: \"%s\" instead of \"%s\"", what, names, expected);
}

/* ---- which files ---------------------------------------------------------------------------- */

/* Wait until the clock that the kernel stamps files with has passed the times of a file. */
static void await_clock(const char *name)
{
    struct stat info;
    struct timespec now;

    check(stat(path_of(name), &info) == 0, "%s: %s", path_of(name), strerror(errno));
    do {
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec < info.st_mtim.tv_sec ||
             (now.tv_sec == info.st_mtim.tv_sec && now.tv_nsec <= info.st_mtim.tv_nsec));
}

static void make_old(void)
{
    make("old", 2 * MIB, 0600);
    make("replaced", 2 * MIB, 0600);
    mkdir(path_of("directory"), 0700);
    make("directory/file", 2 * MIB, 0600);
    await_clock("directory/file");
}

static bool has_birth_time(const char *name)
{
    struct statx info;

    return statx(AT_FDCWD, path_of(name), 0, STATX_BTIME, &info) == 0 &&
           (info.stx_mask & STATX_BTIME) != 0;
}

static void test_which_files(void)
{
    static const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    char from[4096];
    int fd;

    begin(NULL);
    check_found("an empty directory", "");
    make("exact", MIB, 0600);
    ds_accel__shared_memory_find(&memory);
    check(memory.is_examined && memory.found_count == 1 && memory.found_bytes == (uint64_t)MIB &&
              memory.files[0].size_bytes == (uint64_t)MIB,
          "the size of a file: %llu", (unsigned long long)memory.found_bytes);

    begin(make_old);
    check_found("files that existed", "");
    make("small", MIB - 4096, 0600);
    make("group", 2 * MIB, 0640);
    make("others", 2 * MIB, 0604);
    make("group_writes", 2 * MIB, 0620);
    check(mkfifo(path_of("fifo"), 0600) == 0 && symlink("old", path_of("link")) == 0, "%s",
          strerror(errno));
    fd = make_open("sparse", 0, 0600);
    check(ftruncate(fd, 8 * MIB) == 0, "%s", strerror(errno));
    close(fd);
    fd = make_open("old", 3 * MIB, 0600); /* writes to the file that existed */
    close(fd);
    fill(from, sizeof(from), "%s/directory/file", shared);
    check(rename(from, path_of("moved")) == 0, "%s", strerror(errno));
    check_found("other files", "");
    make("new", 2 * MIB, 0600);
    check_found("a new file", "new ");
    unlink(path_of("replaced"));
    make("replaced", 4 * MIB, 0600);
    check_found("a new file with an old name", "replaced new ");
    make("copy\n\xff", 3 * MIB, 0400);
    check(utimensat(AT_FDCWD, path_of("copy\n\xff"), long_ago, 0) == 0, "%s", strerror(errno));
    if (has_birth_time("copy\n\xff")) {
        check_found("a new file with an old time", "replaced copy\n\xff new ");
    } else {
        skipped("a new file with an old time", "the kernel records no time of birth");
    }
    if (geteuid() != 0) {
        skipped("another user's file", "this is not root");
        return;
    }
    check(chown(path_of("replaced"), 12345, (gid_t)-1) == 0, "%s", strerror(errno));
    check(unlink(path_of("copy\n\xff")) == 0, "%s", strerror(errno));
    check_found("another user's file", "new ");
}

/* ---- files in use --------------------------------------------------------------------------- */

/* A mapping of a file whose descriptor is closed. */
static void *map(const char *name, int protection, int flags)
{
    int fd = open(path_of(name), (protection & PROT_WRITE) != 0 ? O_RDWR : O_RDONLY);
    void *address = mmap(NULL, (size_t)MIB, protection, flags, fd, 0);

    check(address != MAP_FAILED, "%s: %s", path_of(name), strerror(errno));
    close(fd);
    return address;
}

static void test_files_in_use(void)
{
    void *address;
    int fd;

    begin(NULL);
    fd = make_open("file", 2 * MIB, 0600);
    check_found("open for writing", "");
    close(fd);
    check_found("closed", "file ");
    fd = open(path_of("file"), O_RDONLY | O_CLOEXEC);
    check_found("open for reading", "");
    close(fd);
    address = map("file", PROT_READ | PROT_WRITE, MAP_SHARED);
    check_found("mapped and written", "");
    munmap(address, (size_t)MIB);
    address = map("file", PROT_READ, MAP_SHARED);
    check_found("mapped and read", "");
    munmap(address, (size_t)MIB);
    address = map("file", PROT_READ, MAP_PRIVATE);
    check_found("mapped privately", "");
    munmap(address, (size_t)MIB);
    check_found("no longer mapped", "file ");
}

/* In another pid namespace: hold a mapping until the pipe is closed. Returns an errno. */
static int hold_elsewhere(int ready, int end)
{
    char byte = 0;
    pid_t child;
    int status;

    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
        return errno;
    }
    child = fork();
    if (child == 0) {
        map("file", PROT_READ, MAP_SHARED);
        _exit(write(ready, "r", 1) != 1 || read(end, &byte, 1) != 0);
    }
    close(ready);
    return child < 0 ? errno : waitpid(child, &status, 0) == child && status == 0 ? 0 : ECHILD;
}

static void test_another_pid_namespace(void)
{
    int ready[2];
    int end[2];
    int status = 0;
    char byte = 0;
    pid_t child;

    begin(NULL);
    make("file", 2 * MIB, 0600);
    if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(end, O_CLOEXEC) != 0) {
        check(false, "pipe: %s", strerror(errno));
        return;
    }
    child = fork();
    if (child == 0) {
        close(end[1]);
        _exit(hold_elsewhere(ready[1], end[0]));
    }
    close(ready[1]);
    close(end[0]);
    if (read(ready[0], &byte, 1) == 1) {
        check_found("mapped in another pid namespace", "");
    }
    close(end[1]);
    close(ready[0]);
    waitpid(child, &status, 0);
    if (byte != 0) {
        check(status == 0, "the process in another pid namespace: status %d", status);
        check_found("no longer mapped there", "file ");
    } else {
        skipped("a file in use in another pid namespace", strerror(WEXITSTATUS(status)));
    }
}

/*
 * Another program opens the file while the lease is held: the signal that announces it does not end
 * this process, whose disposition is as before. In a child, which that signal may end.
 */
static void test_lease_broken(void)
{
    struct sigaction action;
    int status = 0;
    pid_t child;

    begin(NULL);
    make("file", 2 * MIB, 0600);
    child = fork();
    if (child == 0) {
        kernel_breaks_leases = true;
        ds_accel__shared_memory_find(&memory);
        _exit(memory.found_count != 1 || kernel_broken != 1 ||
              sigaction(SIGIO, NULL, &action) != 0 || action.sa_handler != SIG_DFL);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "an open() during the lease: %s %d",
          WIFSIGNALED(status) ? "signal" : "exit code",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    kernel_refuses_leases = EINVAL;
    check_found("without leases", "");
    kernel_refuses_leases = 0;
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void test_largest(void)
{
    static const int order[] = {5, 12, 1, 9, 3, 11, 2, 8, 10, 4, 7, 6};
    char name[16];

    begin(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        fill(name, sizeof(name), "%d", order[i]);
        make(name, order[i] * MIB, 0600);
    }
    check_found("the ten largest", "12 11 10 9 8 7 6 5 4 3 ");
    ds_accel__shared_memory_find(&memory);
    check(memory.found_count == 12 && memory.found_bytes == 78 * (uint64_t)MIB &&
              !memory.is_partial,
          "%u files of %llu bytes", memory.found_count, (unsigned long long)memory.found_bytes);
}

static unsigned many;

static void make_many(void)
{
    char name[16];

    for (unsigned i = 0; i < many; i++) {
        fill(name, sizeof(name), "many%u", i);
        make(name, 0, 0600);
    }
}

static void test_many(void)
{
    many = DS_ACCEL__SHARED_ENTRIES - 2; /* besides "." and ".." */
    begin(make_many);
    check(memory.is_listed && memory.inode_count == many, "%u files are listed", many);
    unlink(path_of("many0"));
    make("new", MIB, 0600);
    check_found("a new file among many", "new ");
    check(!memory.is_partial, "all entries are examined");
    make("newer", 0, 0600);
    ds_accel__shared_memory_find(&memory);
    check(memory.is_examined && memory.is_partial, "not all entries are examined");

    many++;
    begin(make_many);
    check(!memory.is_listed && memory.inodes == NULL && memory.inode_count == 0,
          "%u files are not listed", many);
    make("new", MIB, 0600);
    check_found("too many files", "");
}

static void test_other_directories(void)
{
    struct statfs system;
    struct stat here;
    struct stat there;

    ds_accel__shared_memory_clear(&memory);
    ds_accel__shared_memory_list(&memory, "/nonexistent");
    check(!memory.is_listed, "no directory is listed");
    ds_accel__shared_memory_find(&memory);
    check(!memory.is_examined, "no directory is examined");
    begin(NULL);
    make("file", MIB, 0600);
    remove_all(shared);
    ds_accel__shared_memory_find(&memory);
    check(!memory.is_examined, "a directory that was removed is examined");
    if (stat("/dev/shm", &here) != 0 || stat(work, &there) != 0 || here.st_dev == there.st_dev) {
        skipped("another mount", "all is on one file system");
        return;
    }
    begin(NULL);
    memory.directory = work;
    ds_accel__shared_memory_find(&memory);
    check(!memory.is_examined, "another file system is examined");
    if (statfs(work, &system) != 0 || (uint64_t)system.f_type == TMPFS_MAGIC) {
        skipped("a directory that is not on tmpfs", work);
        return;
    }
    ds_accel__shared_memory_clear(&memory);
    ds_accel__shared_memory_list(&memory, work);
    ds_accel__shared_memory_find(&memory);
    check(!memory.is_listed && !memory.is_examined,
          "a directory that is not on tmpfs is listed or examined");
}

static int32_t list_and_find(void)
{
    struct ds_accel__shared_memory mine = {0};
    bool is_listed;

    ds_accel__shared_memory_list(&mine, shared);
    is_listed = mine.is_listed;
    ds_accel__shared_memory_find(&mine);
    ds_accel__shared_memory_clear(&mine);
    return is_listed ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

void test_shared_memory(void)
{
    struct statfs system;

    fill(shared, sizeof(shared), "/dev/shm/ds-accel-death-XXXXXX");
    if (statfs("/dev/shm", &system) != 0 || (uint64_t)system.f_type != TMPFS_MAGIC ||
        mkdtemp(shared) == NULL) {
        skipped("files in shared memory", "/dev/shm is no tmpfs that can be written");
        return;
    }
    test_which_files();
    test_files_in_use();
    test_another_pid_namespace();
    test_lease_broken();
    test_largest();
    test_many();
    test_other_directories();
    many = 300;
    begin(make_many);
    fail_allocations("the list of shared memory", list_and_find);
    ds_accel__shared_memory_clear(&memory);
    remove_all(shared);
}
