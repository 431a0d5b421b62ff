/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The supervisor in ds-accel-probe: it receives requests from the library, and loads and probes
 * each plugin in a separate child (probe_child.c), forked from this process, which has never run
 * any plugin's code. Each plugin therefore starts in the same fresh process, independent of earlier
 * plugins. probe.c is the library's side; contain.c kills the processes that plugins start.
 *
 *     library               supervisor                       child
 *     SETUP, ASK  -------->  fork  ------------------------>  load, entry, probe, start
 *                            poll: child, library, caller     STAGE, LOG, RESULT, CONDUCT, END  -->
 *     STOP        -------->  TERM, KILL                       _exit
 *                 <--------  ENDED: exit status; all processes have exited
 *
 * The child has no access to the supervisor's channel, and replies on a separate channel, with a
 * token that the library creates for each plugin. Data in one plugin's process is of no use during
 * a later plugin's probe.
 */
#include "base/clock.h"
#include "host/contain.h"
#include "host/context.h"
#include "host/message.h"
#include "host/probe.h"
#include "host/probe_child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_LIMIT_BYTES (2 * 1024 * 1024u) /* limit of a request, including its options */
#define TERM_GRACE_NS 200000000ull             /* time from SIGTERM to SIGKILL */
#define KILL_GRACE_NS 1000000000ull /* time from SIGKILL until the process is reported as stuck */

/*
 * The attributes of this process that other processes of the same user can change and that forked
 * children inherit. If a plugin's process changes them, the library starts a new helper for the
 * next plugin.
 */
struct traits {
    int priority;
    int scheduler;
    long io_priority;
    cpu_set_t cpus;
    struct rlimit limits[RLIM_NLIMITS];
};

static struct {
    ds_accel_t *context;
    struct ds_accel__contained contained;
    struct ds_accel__message_reader reader;
    uint64_t token;
    uint32_t sequence;
    struct ds_accel__message next; /* valid if has_next: a message read while a child was running */
    int passed[DS_ACCEL__PROBE_PASSED]; /* descriptors received with the last ASK */
    bool has_passed;
    struct traits traits; /* attributes at the start of this process */
    bool has_next;
    bool is_library_gone;
} server;

static _Noreturn void leave(int code)
{
    ds_accel__contain_leave(&server.contained);
    _exit(code);
}

/* ---- messages to the library ---------------------------------------------------------------- */

static void say(uint16_t kind, const void *payload, size_t payload_bytes)
{
    char message[DS_ACCEL__MESSAGE_HEAD_BYTES + 256];
    size_t sent = 0;

    assert(payload_bytes <= sizeof(message) - DS_ACCEL__MESSAGE_HEAD_BYTES);
    ds_accel__message_seal(message, kind, server.sequence++, payload, (uint32_t)payload_bytes,
                           server.token);
    memcpy(message + DS_ACCEL__MESSAGE_HEAD_BYTES, payload, payload_bytes);
    payload_bytes += DS_ACCEL__MESSAGE_HEAD_BYTES;
    while (sent < payload_bytes) {
        ssize_t count =
            send(DS_ACCEL__PROBE_CHANNEL, message + sent, payload_bytes - sent, MSG_NOSIGNAL);

        if (count < 0 && errno != EINTR) {
            leave(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        sent += count > 0 ? (size_t)count : 0;
    }
}

/* ---- messages from the library -------------------------------------------------------------- */

static void close_passed(void)
{
    for (int i = 0; i < DS_ACCEL__PROBE_PASSED && server.has_passed; i++) {
        close(server.passed[i]);
    }
    server.has_passed = false;
}

static void take_passed(struct msghdr *message)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);

    if (head != NULL && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(server.passed))) {
        close_passed();
        memcpy(server.passed, CMSG_DATA(head), sizeof(server.passed));
        server.has_passed = true;
    }
}

/* Read the available bytes. False if the library has closed its end or memory is exhausted. */
static bool read_some(void)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(server.passed))];
    } control;
    struct iovec part;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t count;

    part.iov_base = ds_accel__message_room(&server.reader, &part.iov_len);
    do {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        count = part.iov_base != NULL ? recvmsg(DS_ACCEL__PROBE_CHANNEL, &message, MSG_CMSG_CLOEXEC)
                                      : 0;
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        return false;
    }
    take_passed(&message);
    server.reader.size_bytes += (size_t)count;
    return true;
}

static enum ds_accel__message_result next_message(struct ds_accel__message *message)
{
    if (server.has_next) {
        server.has_next = false;
        *message = server.next;
        return DS_ACCEL__MESSAGE_READY;
    }
    return ds_accel__message_next(&server.reader, message);
}

/* Wait for a message. False if no further message can arrive, or a message is invalid. */
static bool read_message(struct ds_accel__message *message)
{
    for (;;) {
        enum ds_accel__message_result result = next_message(message);
        struct pollfd ends[2] = {{.fd = DS_ACCEL__PROBE_CHANNEL, .events = POLLIN},
                                 {.fd = server.contained.caller_fd, .events = POLLIN}};

        if (result != DS_ACCEL__MESSAGE_MORE) {
            return result == DS_ACCEL__MESSAGE_READY;
        }
        if (poll(ends, 2, -1) < 0 && errno != EINTR) {
            return false;
        }
        if (ends[1].revents != 0 || (ends[0].revents != 0 && !read_some())) {
            return false;
        }
    }
}

/* ---- child ---------------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int pidfd; /* -1: the kernel has no pidfds */
    uint32_t number;
    bool was_stopped;
};

static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

static void wait_until_ended(const struct child *child, uint64_t limit_ns)
{
    uint64_t end_ns = ds_accel__now_ns() + limit_ns;

    while (!has_ended(child) && ds_accel__now_ns() < end_ns) {
        struct pollfd end = {.fd = child->pidfd, .events = POLLIN};

        poll(&end, 1, child->pidfd >= 0 ? (int)(limit_ns / 1000000u) : 1);
    }
}

static void stop(struct child *child, bool is_asked_first)
{
    assert(child->pid > 0); /* kill() treats 0 and -1 as groups of processes */
    child->was_stopped = true;
    if (is_asked_first) {
        kill(child->pid, SIGTERM);
        kill(-child->pid, SIGTERM);
        wait_until_ended(child, TERM_GRACE_NS);
    }
    kill(child->pid, SIGKILL);
    kill(-child->pid, SIGKILL);
    wait_until_ended(child, KILL_GRACE_NS);
}

/*
 * Handle STOP while a child runs. Any other request is stored for later, and no further request is
 * read until the child has exited.
 */
static void hear(struct child *child)
{
    if (!read_some()) {
        server.is_library_gone = true;
        return;
    }
    while (!server.has_next &&
           ds_accel__message_next(&server.reader, &server.next) == DS_ACCEL__MESSAGE_READY) {
        uint32_t stop_of[2]; /* number of the ASK, and whether to send SIGTERM first */

        if (server.next.kind != DS_ACCEL__MESSAGE_STOP) {
            server.has_next = true;
        } else if (ds_accel__message_struct(&server.next, stop_of, sizeof(stop_of)) &&
                   stop_of[0] == child->number) {
            stop(child, stop_of[1] != 0);
        }
    }
}

static void watch(struct child *child)
{
    while (!has_ended(child) && !child->was_stopped && !server.is_library_gone) {
        struct pollfd ends[3] = {
            {.fd = child->pidfd, .events = POLLIN},
            {.fd = server.has_next ? -1 : DS_ACCEL__PROBE_CHANNEL, .events = POLLIN},
            {.fd = server.contained.caller_fd, .events = POLLIN}};

        if (poll(ends, 3, child->pidfd >= 0 ? -1 : 1) <= 0) {
            continue;
        }
        server.is_library_gone = ends[2].revents != 0;
        if (ends[1].revents != 0) {
            hear(child);
        }
    }
    if (server.is_library_gone && !child->was_stopped) {
        stop(child, false);
    }
}

static void take_traits(struct traits *traits)
{
    memset(traits, 0, sizeof(*traits)); /* the struct is compared as a whole */
    traits->priority = getpriority(PRIO_PROCESS, 0);
    traits->scheduler = sched_getscheduler(0);
    traits->io_priority = syscall(SYS_ioprio_get, 1 /* IOPRIO_WHO_PROCESS */, 0);
    sched_getaffinity(0, sizeof(traits->cpus), &traits->cpus);
    for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
        getrlimit((__rlimit_resource_t)i, &traits->limits[i]);
    }
}

static bool is_changed(void)
{
    struct traits traits;

    take_traits(&traits);
    return memcmp(&traits, &server.traits, sizeof(traits)) != 0;
}

static void report_end(const struct child *child, int error)
{
    struct ds_accel__probe_ended ended = {
        .number = child->number, .was_stopped = child->was_stopped, .error = error};
    siginfo_t info = {0};
    bool is_gone = true;

    if (child->pid > 0) {
        waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG);
        ended.code = info.si_pid != 0 ? info.si_code : 0;
        ended.status = info.si_status;
        ended.has_left = ds_accel__contain_clear(&server.contained, child->pid, &is_gone);
        ended.is_stuck = !is_gone;
        ended.is_changed = is_changed();
        if (info.si_pid == 0) { /* the child did not exit; has_left is about it */
            ended.has_left = 0;
        }
    }
    say(DS_ACCEL__MESSAGE_ENDED, &ended, sizeof(ended));
}

/*
 * Install stdout, stderr and the channel for messages. Called in the child. The received
 * descriptors have numbers above 3, the supervisor's channel, so dup2() overwrites none of them;
 * dup3() may overwrite one that is already installed.
 */
static void take_descriptors(void)
{
    assert(server.has_passed);
    dup2(server.passed[0], STDOUT_FILENO);
    dup2(server.passed[1], STDERR_FILENO);
    if (server.passed[2] != DS_ACCEL__PROBE_ANSWERS) {
        dup3(server.passed[2], DS_ACCEL__PROBE_ANSWERS, O_CLOEXEC);
    }
    for (int i = 0; i < DS_ACCEL__PROBE_PASSED; i++) {
        if (server.passed[i] != DS_ACCEL__PROBE_ANSWERS) {
            close(server.passed[i]);
        }
    }
}

static void serve_ask(const struct ds_accel__message *message)
{
    struct ds_accel__probe_ask ask;
    struct child child = {.pidfd = -1};
    pid_t supervisor = getpid();
    int error;

    if (!ds_accel__message_struct(message, &ask, sizeof(ask))) {
        leave(DS_ACCEL__PROBE_EXIT_FAILED);
    }
    child.number = ask.number;
    child.pid = server.has_passed ? fork() : -1;
    error = child.pid > 0 ? 0 : server.has_passed ? errno : EMFILE; /* descriptors not received */
    if (child.pid == 0) {
        ds_accel__contain_join(&server.contained, supervisor);
        close(DS_ACCEL__PROBE_CHANNEL);
        take_descriptors();
        ds_accel__child_run(message, server.contained.has_user_namespace);
    }
    close_passed();
    if (child.pid > 0) {
        child.pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
        watch(&child);
    }
    if (child.pidfd >= 0) {
        close(child.pidfd);
    }
    report_end(&child, error);
}

static void serve_setup(const struct ds_accel__message *message)
{
    struct ds_accel__probe_setup setup;
    struct {
        struct ds_accel__probe_hello hello;
        char version[sizeof(DS_ACCEL_VERSION)];
    } answer = {.hello = {.containment = server.contained.by,
                          .has_user_namespace = server.contained.has_user_namespace},
                .version = DS_ACCEL_VERSION};

    if (!ds_accel__message_struct(message, &setup, sizeof(setup)) ||
        strcmp(ds_accel__message_text(message, sizeof(setup), 0), DS_ACCEL_VERSION) != 0) {
        fprintf(stderr, "this ds-accel-probe is of version %s, the library of another\n",
                DS_ACCEL_VERSION);
        leave(1);
    }
    server.token = server.reader.token = setup.token;
    server.context = ds_accel__context_bare(ds_accel__message_text(message, sizeof(setup), 1),
                                            setup.ignores_env != 0);
    if (server.context == NULL) {
        fputs("host memory is exhausted\n", stderr);
        leave(1);
    }
    server.context->asker = (pid_t)setup.asker;
    ds_accel__child_prepare(server.context);
    say(DS_ACCEL__MESSAGE_HELLO, &answer, sizeof(answer));
}

/* ---- main function -------------------------------------------------------------------------- */

/*
 * True if the library started this process. Arguments: the library's process ID, and the
 * containment of the processes that plugins start.
 */
static bool is_started_by_library(int argc, char **argv)
{
    return argc == 3 && getppid() == atoi(argv[1]) && fcntl(DS_ACCEL__PROBE_CHANNEL, F_GETFD) >= 0;
}

static int refuse(void)
{
    fputs("ds-accel-probe is started by the ds-accel library, to probe plugins in a process of "
          "their own.\nTo see what it finds: ds-accel explain\n",
          stderr);
    return 2;
}

int ds_accel__probe_main(int argc, char **argv, int (*conformance)(void))
{
    struct ds_accel__message message;
    enum ds_accel__containment wanted;
    bool is_conformance = argc == 4 && strcmp(argv[3], "--conformance") == 0;

    /* Run as a peer that the conformance suite started inside its own containment. */
    if (argc == 2 && strcmp(argv[1], "--peer") == 0 &&
        fcntl(DS_ACCEL__PROBE_CHANNEL, F_GETFD) >= 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return conformance();
    }
    if (!is_started_by_library(is_conformance ? 3 : argc, argv)) {
        return refuse();
    }
    wanted = ds_accel__containment_of(argv[2]);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (is_conformance) {
        return ds_accel__contain_run(wanted, atoi(argv[1]), conformance);
    }
    if (!ds_accel__contain(&server.contained, wanted, atoi(argv[1]))) {
        fprintf(stderr, "containment of the plugins' processes by \"%s\" failed: %s\n",
                ds_accel__containment_name(wanted), strerror(errno));
        return 1;
    }
    server.reader.limit_bytes = REQUEST_LIMIT_BYTES;
    take_traits(&server.traits);
    while (!server.is_library_gone && read_message(&message)) {
        if (server.context == NULL && message.kind == DS_ACCEL__MESSAGE_SETUP) {
            serve_setup(&message);
        } else if (server.context != NULL && message.kind == DS_ACCEL__MESSAGE_ASK) {
            serve_ask(&message);
        } else if (message.kind != DS_ACCEL__MESSAGE_STOP) { /* ignore a late STOP */
            break;
        }
    }
    leave(0);
}
