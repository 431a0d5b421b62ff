/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Ensures that no process that a plugin starts outlives the plugin's probe. A supervisor, which
 * never runs a plugin's code, has one child for each plugin (probe_serve.c). After a child has
 * exited, the supervisor kills all processes that the child left, even those that left their group
 * or session, that were started with CLONE_PARENT, or that fork faster than they can be listed.
 * There are three kinds of containment, each weaker than the previous one:
 *
 *   namespace  The supervisor is process 1 of a pid namespace. One kill(-1) reaches all of its
 *              processes, no process escapes, none can signal the supervisor, and the kernel kills
 *              all of them when the supervisor exits. Needs CAP_SYS_ADMIN, or a user namespace, in
 *              which a user maps to itself alone. Linux refuses a user namespace in a chroot and
 *              where it was disabled.
 *   cgroup     The child is in a cgroup (version 2) below the supervisor's, and cgroup.kill kills
 *              all processes in it. Needs write access to the supervisor's cgroup.
 *   tree       The supervisor is a subreaper, so every orphan becomes its child. It stops all
 *              descendants that /proc lists until it finds no new one, then kills them. Without
 *              /proc it reaches only the child's process group.
 */
#include "host/contain.h"
#include "base/clock.h"
#include "base/descendants.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLEAR_LIMIT_NS 1000000000ull /* time until a process that does not exit is abandoned */
#define CGROUP_ROOT "/sys/fs/cgroup"

static const char *const names[DS_ACCEL__CONTAIN_COUNT] = {"auto", "namespace", "cgroup", "tree",
                                                           "outside"};

const char *ds_accel__containment_name(uint32_t containment)
{
    return containment < DS_ACCEL__CONTAIN_COUNT ? names[containment] : "?";
}

enum ds_accel__containment ds_accel__containment_of(const char *name)
{
    for (int i = 0; name != NULL && i < DS_ACCEL__CONTAIN_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum ds_accel__containment)i;
        }
    }
    return DS_ACCEL__CONTAIN_AUTO;
}

static void wait_a_moment(void)
{
    poll(NULL, 0, 1);
}

/* ---- namespace ------------------------------------------------------------------------------ */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t size = (ssize_t)strlen(text);
    bool done = fd >= 0 && write(fd, text, (size_t)size) == size;

    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/*
 * Map only this user and group, to themselves, so that no process in the namespace can change its
 * IDs.
 */
static bool map_user(uid_t user, gid_t group)
{
    char map[64];

    if (!write_file("/proc/self/setgroups", "deny")) {
        return false;
    }
    snprintf(map, sizeof(map), "%u %u 1", user, user);
    if (!write_file("/proc/self/uid_map", map)) {
        return false;
    }
    snprintf(map, sizeof(map), "%u %u 1", group, group);
    return write_file("/proc/self/gid_map", map);
}

/*
 * Drop the capabilities that a user namespace adds: with them a driver would see a process with
 * more rights than the user has.
 */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];

    memset(none, 0, sizeof(none));
    syscall(SYS_capset, &header, none);
}

/*
 * The signal that killed the working process, in shared memory: process 1 of a namespace cannot
 * raise this signal on itself, so it passes the signal to the process outside of the namespace.
 */
static int *shared_signal;

/*
 * Block SIGTERM and return a descriptor that becomes readable when SIGTERM arrives, so that this
 * process can kill the processes that it supervises before it exits. -1 on failure.
 */
static int open_term(void)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    return signalfd(-1, &term, SFD_CLOEXEC);
}

/*
 * Wait until the child exits, and reap it. Kill the child if the caller exits or SIGTERM arrives.
 */
static void wait_for(pid_t child, int caller_fd, siginfo_t *info)
{
    struct pollfd ends[3] = {{.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN},
                             {.fd = caller_fd, .events = POLLIN},
                             {.fd = open_term(), .events = POLLIN}};
    int result;

    while (ends[0].fd >= 0) {
        int count = poll(ends, 3, -1);

        if (count > 0 && ends[0].revents == 0) {
            kill(child, SIGKILL);
            break;
        }
        if (count > 0 || (count < 0 && errno != EINTR)) {
            break;
        }
    }
    do {
        result = waitid(P_PID, (id_t)child, info, WEXITED);
    } while (result != 0 && errno == EINTR);
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (ends[i].fd >= 0 && i != 1) {
            close(ends[i].fd);
        }
    }
}

/* Terminate this process as the child terminated: with its exit status or by its signal. */
static _Noreturn void end_like(const siginfo_t *info)
{
    int signal = info->si_code == CLD_EXITED ? *shared_signal : info->si_status;
    sigset_t one;

    if (signal != 0 && getpid() == 1) {
        *shared_signal = signal; /* process 1 of a namespace cannot raise a signal */
    } else if (signal != 0) {
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* a core dump of this process would be useless */
        sigemptyset(&one);
        sigaddset(&one, signal);
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        raise(signal);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    _exit(info->si_code == CLD_EXITED ? info->si_status : 1);
}

/*
 * Close the inherited copies of stdin, stdout, stderr and the channels: their readers see the end
 * of file only when every process has closed them.
 */
static void close_standard(void)
{
    syscall(SYS_close_range, 0u, (unsigned)DS_ACCEL__CONTAIN_DESCRIPTORS - 1, 0u);
}

/*
 * Run the process outside of the namespace: it waits until the supervisor exits, and exits in the
 * same way. It kills the supervisor if the caller exits or SIGTERM arrives.
 */
static _Noreturn void keep_watch(pid_t supervisor, int caller_fd)
{
    siginfo_t info = {0};

    close_standard();
    wait_for(supervisor, caller_fd, &info);
    end_like(&info);
}

static bool has_ended(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return pidfd >= 0 && poll(&end, 1, 0) > 0;
}

/*
 * fork() a child that is killed when its parent exits. This works even in a new pid namespace,
 * where the child cannot see the parent's process ID.
 */
static pid_t fork_bound(void)
{
    int self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (has_ended(self_fd)) {
            _exit(1);
        }
    }
    if (self_fd >= 0) {
        close(self_fd);
    }
    return child;
}

/*
 * Fork the supervisor into the pid namespace that this process created for its children. Returns
 * only in the supervisor, or false if fork() failed.
 */
static bool fork_supervisor(struct ds_accel__contained *contained)
{
    pid_t supervisor = fork_bound();

    if (supervisor > 0) {
        keep_watch(supervisor, contained->caller_fd);
    }
    contained->by = DS_ACCEL__CONTAIN_NAMESPACE;
    return supervisor == 0;
}

/*
 * Enter a user namespace and a pid namespace, write a byte to ready_fd, and fork the supervisor, in
 * which the function returns true. On failure, exit. Called in a child process, because a failure
 * between the steps leaves a process that can only exit: the IDs are mapped in a second step.
 */
static bool enter_user_namespace(struct ds_accel__contained *contained, int ready_fd)
{
    uid_t user = geteuid();
    gid_t group = getegid();

    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0 || !map_user(user, group) ||
        write(ready_fd, "y", 1) != 1) {
        _exit(1);
    }
    close(ready_fd);
    contained->has_user_namespace = true;
    if (!fork_supervisor(contained)) {
        _exit(1);
    }
    return true;
}

/*
 * Contain by a user namespace. Not for root: a user namespace would remove rights that device nodes
 * may require. Not for a process with two different user or group IDs, because only one of them can
 * be mapped. Returns true only in the supervisor; false, with errno set, if it was not possible.
 */
static bool contain_by_user_namespace(struct ds_accel__contained *contained)
{
    int ready[2];
    char yes = 'n';
    pid_t child;

    if (geteuid() == 0 || geteuid() != getuid() || getegid() != getgid()) {
        errno = EPERM;
        return false;
    }
    if (pipe2(ready, O_CLOEXEC) != 0) {
        return false;
    }
    child = fork_bound();
    if (child == 0) {
        close(ready[0]);
        return enter_user_namespace(contained, ready[1]);
    }
    close(ready[1]);
    if (child > 0 && read(ready[0], &yes, 1) == 1) {
        keep_watch(child, contained->caller_fd);
    }
    close(ready[0]);
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    errno = EPERM;
    return false;
}

static bool contain_by_namespace(struct ds_accel__contained *contained)
{
    if (unshare(CLONE_NEWPID) == 0) {
        return fork_supervisor(contained);
    }
    return contain_by_user_namespace(contained);
}

/* ---- cgroup --------------------------------------------------------------------------------- */

/*
 * Find the directory of this process's cgroup (version 2) in the file system. False if there is
 * none.
 */
static bool find_cgroup(char *path, size_t size)
{
    char line[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(path, size, CGROUP_ROOT "%s%s",
                     access(CGROUP_ROOT "/cgroup.procs", F_OK) == 0 ? "" : "/unified", line + 3);
            found = true;
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/*
 * Create a cgroup for the plugin's processes. An empty cgroup of the same name was left by an
 * earlier process with the same process ID that was killed, and is removed.
 */
static bool make_cgroup(struct ds_accel__contained *contained)
{
    int error = EEXIST;

    for (int i = 0; i < 8 && error == EEXIST; i++) {
        snprintf(contained->cgroup, sizeof(contained->cgroup), "ds-accel-probe.%d.%d",
                 (int)getpid(), i);
        unlinkat(contained->cgroup_parent_fd, contained->cgroup, AT_REMOVEDIR);
        error = mkdirat(contained->cgroup_parent_fd, contained->cgroup, 0755) == 0 ? 0 : errno;
    }
    errno = error;
    return error == 0;
}

static bool contain_by_cgroup(struct ds_accel__contained *contained)
{
    char path[1200];

    if (!find_cgroup(path, sizeof(path))) {
        errno = ENOENT;
        return false;
    }
    contained->cgroup_parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (contained->cgroup_parent_fd < 0) {
        return false;
    }
    if (!make_cgroup(contained)) {
        return false;
    }
    contained->cgroup_fd =
        openat(contained->cgroup_parent_fd, contained->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (contained->cgroup_fd < 0 || faccessat(contained->cgroup_fd, "cgroup.kill", W_OK, 0) != 0 ||
        faccessat(contained->cgroup_fd, "cgroup.procs", W_OK, 0) != 0) {
        int error = errno;

        ds_accel__contain_leave(contained);
        errno = error;
        return false;
    }
    contained->by = DS_ACCEL__CONTAIN_CGROUP;
    return true;
}

static bool write_cgroup(const struct ds_accel__contained *contained, const char *name,
                         const char *text)
{
    int fd = openat(contained->cgroup_fd, name, O_WRONLY | O_CLOEXEC);
    ssize_t size = (ssize_t)strlen(text);
    bool done = fd >= 0 && write(fd, text, (size_t)size) == size;

    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/* ---- all kinds of containment --------------------------------------------------------------- */

/* Open a pidfd above the descriptors that close_standard() closes. */
static int open_pidfd(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int raised = fd >= 0 && fd < DS_ACCEL__CONTAIN_DESCRIPTORS
                     ? fcntl(fd, F_DUPFD_CLOEXEC, DS_ACCEL__CONTAIN_DESCRIPTORS)
                     : fd;

    if (raised != fd) {
        close(fd);
    }
    return raised;
}

bool ds_accel__contain(struct ds_accel__contained *contained, enum ds_accel__containment wanted,
                       pid_t caller)
{
    bool is_auto = wanted == DS_ACCEL__CONTAIN_AUTO;

    memset(contained, 0, sizeof(*contained));
    contained->cgroup_fd = contained->cgroup_parent_fd = -1;
    /*
     * PR_SET_PDEATHSIG sends no signal if the parent exited before this call, so check the parent,
     * too.
     */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    contained->caller_fd = open_pidfd(caller);
    if (getppid() != caller) {
        _exit(1);
    }
    shared_signal = mmap(NULL, sizeof(*shared_signal), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_signal == MAP_FAILED) {
        return false;
    }
    if ((is_auto || wanted == DS_ACCEL__CONTAIN_NAMESPACE) && contain_by_namespace(contained)) {
        return true;
    }
    if (wanted == DS_ACCEL__CONTAIN_NAMESPACE) {
        return false;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (wanted != DS_ACCEL__CONTAIN_TREE && contain_by_cgroup(contained)) {
        return true;
    }
    if (wanted == DS_ACCEL__CONTAIN_CGROUP) {
        return false;
    }
    contained->by = DS_ACCEL__CONTAIN_TREE;
    return true;
}

void ds_accel__contain_join(const struct ds_accel__contained *contained, pid_t supervisor)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) {
        _exit(1);
    }
    setpgid(0, 0);
    munmap(shared_signal, sizeof(*shared_signal));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (contained->by == DS_ACCEL__CONTAIN_CGROUP) {
        write_cgroup(contained, "cgroup.procs", "0");
    }
    if (contained->has_user_namespace) {
        drop_capabilities();
    }
    if (contained->caller_fd >= 0) {
        close(contained->caller_fd);
    }
    if (contained->cgroup_fd >= 0) {
        close(contained->cgroup_fd);
        close(contained->cgroup_parent_fd);
    }
}

/* Reap children that have exited. True if a child is left that has not exited. */
static bool has_children(void)
{
    pid_t pid;

    do {
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

static void kill_all(const struct ds_accel__contained *contained, pid_t child)
{
    switch (contained->by) {
    case DS_ACCEL__CONTAIN_NAMESPACE:
        kill(-1, SIGKILL);
        break;
    case DS_ACCEL__CONTAIN_CGROUP:
        if (write_cgroup(contained, "cgroup.kill", "1")) {
            break;
        }
        /* fall through */
    default:
        kill(-child, SIGKILL);
        ds_accel__descendants_kill(getpid());
    }
}

bool ds_accel__contain_clear(const struct ds_accel__contained *contained, pid_t child,
                             bool *gone_out)
{
    uint64_t limit_ns = ds_accel__now_ns() + CLEAR_LIMIT_NS;
    bool has_left = has_children();
    bool is_there = has_left;

    while (is_there && ds_accel__now_ns() < limit_ns) {
        kill_all(contained, child);
        wait_a_moment();
        is_there = has_children();
    }
    *gone_out = !is_there;
    return has_left;
}

void ds_accel__contain_leave(const struct ds_accel__contained *contained)
{
    if (contained->cgroup_parent_fd >= 0) {
        unlinkat(contained->cgroup_parent_fd, contained->cgroup, AT_REMOVEDIR);
    }
}

/* ---- program with one child ----------------------------------------------------------------- */

int ds_accel__contain_run(enum ds_accel__containment wanted, pid_t caller, int (*work)(void))
{
    struct ds_accel__contained contained;
    siginfo_t info = {0};
    pid_t supervisor;
    pid_t child;
    bool is_gone;

    if (!ds_accel__contain(&contained, wanted, caller)) {
        fprintf(stderr, "containment of the plugins' processes by \"%s\" failed: %s\n",
                ds_accel__containment_name(wanted), strerror(errno));
        return 1;
    }
    supervisor = getpid();
    child = fork();
    if (child == 0) {
        ds_accel__contain_join(&contained, supervisor);
        return work();
    }
    close_standard();
    if (child > 0) {
        wait_for(child, contained.caller_fd, &info);
        ds_accel__contain_clear(&contained, child, &is_gone);
    }
    ds_accel__contain_leave(&contained);
    end_like(&info);
}
