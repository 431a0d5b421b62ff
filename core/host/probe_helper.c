/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Helper processes for probe.c: this file starts them with a socket and a pipe, sends them
 * candidates, and stops them. The calling program may have its own threads, children and SIGCHLD
 * handler. This file therefore waits for and signals only processes that it started: by pidfd if
 * the kernel has pidfds, since a process ID may be reused as soon as other code has reaped the
 * process. A helper that does not exit after SIGKILL (a driver's call never returns), or that a
 * tracer has not reaped, is abandoned. If there is space, its pidfd is recorded, so that a later
 * call can reap it.
 */
#include "base/clock.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/prefix.h"
#include "host/contain.h"
#include "host/context.h"
#include "host/message.h"
#include "host/probe.h"
#include "host/prober.h"
#include "host/registry.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAFE_DESCRIPTOR 10            /* above a helper's descriptors and above stdin to stderr */
#define START_LIMIT_NS 30000000000ull /* time until a helper sends HELLO */
#define TREE_GRACE_NS \
    3000000000ull /* time for a helper to kill its processes after its channel is closed */
#define ABANDONED_LIMIT 16
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1u << 2)
#endif

void ds_accel__probe_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Guards abandoned[]: helpers that could not be reaped, and are reaped by a later call. */
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;
static int abandoned[ABANDONED_LIMIT]; /* pidfds; 0: unused entry */

/* ---- starting a helper ---------------------------------------------------------------------- */

/*
 * Return the path of libexec/ds-accel/ds-accel-probe below the prefix of the library. If that path
 * is not executable, but the path set at build time is, return the latter. NULL: out of memory.
 */
char *ds_accel__probe_program(void)
{
    char *library = ds_accel__library_dir();
    char *path =
        library != NULL ? ds_accel__format("%s/../libexec/ds-accel/ds-accel-probe", library) : NULL;

    free(library);
    if (path != NULL && access(path, X_OK) != 0 && access(ds_accel__built_for.helper, X_OK) == 0) {
        free(path);
        path = strdup(ds_accel__built_for.helper);
    }
    return path;
}

int32_t ds_accel__prober_make(ds_accel_t *context)
{
    size_t width = ds_accel__probe_width(context);
    struct ds_accel__prober *prober;

    if (context->prober != NULL) {
        return DS_ACCEL_OK;
    }
    assert(width >= 1 && width <= DS_ACCEL__PROBE_WIDTH_LIMIT);
    ds_accel__fork_renew(&abandoned_lock);
    prober = calloc(1, sizeof(*prober) + width * sizeof(prober->helpers[0]));
    if (prober == NULL) {
        return ds_accel__no_memory();
    }
    prober->program = ds_accel__probe_program();
    if (prober->program == NULL) {
        free(prober);
        return ds_accel__no_memory();
    }
    prober->width = width;
    context->prober = prober;
    return DS_ACCEL_OK;
}

/*
 * Close both ends of a pipe or socket pair: ends[0] is this process's nonblocking end, ends[1] the
 * other process's end.
 */
static void close_ends(int *ends)
{
    ds_accel__probe_close(&ends[0]);
    ds_accel__probe_close(&ends[1]);
}

bool ds_accel__helper_raise(int *fd)
{
    int raised = *fd < SAFE_DESCRIPTOR ? fcntl(*fd, F_DUPFD_CLOEXEC, SAFE_DESCRIPTOR) : *fd;

    if (raised < 0) {
        if (errno == EINVAL) {
            errno = EMFILE; /* the descriptor limit is too low */
        }
        return false;
    }
    if (raised != *fd) {
        close(*fd);
        *fd = raised;
    }
    assert(*fd >= SAFE_DESCRIPTOR);
    return true;
}

/*
 * Occupy the numbers of stdin, stdout and stderr, if they are free, while descriptors are opened:
 * text that other threads of the program print must not get into the channels. Such text is lost,
 * because the occupying descriptors cannot be written to.
 */
static void hold_standard(int *held)
{
    for (int i = 0; i <= STDERR_FILENO; i++) {
        held[i] = i > 0 && held[i - 1] < 0 ? -1 : open("/", O_PATH | O_CLOEXEC);
        if (held[i] > STDERR_FILENO) {
            ds_accel__probe_close(&held[i]);
        }
    }
}

static void release_standard(int *held)
{
    for (int i = 0; i <= STDERR_FILENO; i++) {
        ds_accel__probe_close(&held[i]);
    }
}

static bool prepare_ends(int *ends)
{
    return ds_accel__helper_raise(&ends[0]) && ds_accel__helper_raise(&ends[1]) &&
           fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_socket(int *ends)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 && prepare_ends(ends);
}

static bool open_pipe(int *ends)
{
    return pipe2(ends, O_CLOEXEC) == 0 && prepare_ends(ends);
}

/* Add /dev/null as stdin. If it is not readable, use a directory, which has no data to read. */
static int add_stdin(posix_spawn_file_actions_t *actions)
{
    return access("/dev/null", R_OK) == 0
               ? posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0)
               : posix_spawn_file_actions_addopen(actions, 0, "/", O_RDONLY | O_DIRECTORY, 0);
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const int *descriptors, int count)
{
    int error = add_stdin(actions);

    for (int i = 0; i < count && error == 0; i++) {
        assert(descriptors[i] > count); /* otherwise a dup2() would overwrite it */
        error = posix_spawn_file_actions_adddup2(actions, descriptors[i], i + 1);
    }
    return error != 0 ? error : posix_spawn_file_actions_addclosefrom_np(actions, count + 1);
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t signals;

    sigemptyset(&signals);
    posix_spawnattr_setsigmask(attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(attributes, &signals);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
}

int ds_accel__helper_spawn(pid_t *pid_out, const char *program, const char *containment,
                           const char *argument, const int *descriptors, int count)
{
    char name[] = "ds-accel-probe";
    char caller[24];
    char contain[16];
    char last[32];
    char *argv[] = {name, caller, contain, argument != NULL ? last : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0) {
        return error;
    }
    snprintf(caller, sizeof(caller), "%d", (int)getpid());
    snprintf(contain, sizeof(contain), "%s", containment);
    snprintf(last, sizeof(last), "%s", argument != NULL ? argument : "");
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = set_attributes(&attributes);
        error = error != 0 ? error : add_descriptors(&actions, descriptors, count);
        error = error != 0 ? error
                           : posix_spawn(pid_out, program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Append bytes to a payload or message. For a text, size_bytes includes its NUL. */
static void put(struct ds_accel__text *text, const void *data, size_t size_bytes)
{
    ds_accel__text_add_bytes(text, data, size_bytes);
}

/* send() that also passes the descriptors of an ASK. */
static ssize_t send_passing(int channel, const void *data, size_t size_bytes, const int *passed)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(DS_ACCEL__PROBE_PASSED * sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(DS_ACCEL__PROBE_PASSED * sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size_bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    memcpy(CMSG_DATA(&control.head), passed, DS_ACCEL__PROBE_PASSED * sizeof(int));
    return sendmsg(channel, &message, MSG_NOSIGNAL);
}

/*
 * Send a message. passed: descriptors to pass with the message, or NULL. Fails only with
 * ERR_NO_MEMORY. If the helper does not read the message in time, set is_deaf; if the helper has
 * exited, return OK, because its exit is detected elsewhere.
 */
static int32_t send_message(struct ds_accel__helper *helper, uint16_t kind,
                            const struct ds_accel__text *text, const int *passed)
{
    char head[DS_ACCEL__MESSAGE_HEAD_BYTES];
    struct ds_accel__text message = {0};
    size_t sent = 0;

    assert(text->size_bytes <= UINT32_MAX);
    ds_accel__message_seal(head, kind, helper->sequence++, text->data, (uint32_t)text->size_bytes,
                           kind == DS_ACCEL__MESSAGE_SETUP ? 0 : helper->token);
    put(&message, head, sizeof(head));
    put(&message, text->data, text->size_bytes);
    if (text->failed || message.failed) {
        ds_accel__text_clear(&message);
        return ds_accel__no_memory();
    }
    while (sent < message.size_bytes) {
        const char *at = message.data + sent;
        size_t left = message.size_bytes - sent;
        ssize_t count = passed != NULL ? send_passing(helper->channel, at, left, passed)
                                       : send(helper->channel, at, left, MSG_NOSIGNAL);

        if (count >= 0) {
            sent += (size_t)count;
            passed = NULL; /* already passed, with the first bytes */
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = helper->channel, .events = POLLOUT};

            /* The supervisor itself runs no plugin's code, so one second is ample. */
            if (poll(&wait, 1, 1000) == 0) {
                helper->is_deaf = true;
                break;
            }
        } else if (errno != EINTR) {
            break; /* the helper exited, which poll() reports */
        }
    }
    ds_accel__text_clear(&message);
    return DS_ACCEL_OK;
}

static int32_t send_setup(const ds_accel_t *context, struct ds_accel__helper *helper)
{
    struct ds_accel__probe_setup setup = {
        .token = helper->token,
        .asker = getpid(),
        .ignores_env = context->env.ignored,
    };
    struct ds_accel__text text = {0};
    int32_t status;

    put(&text, &setup, sizeof(setup));
    put(&text, DS_ACCEL_VERSION, sizeof(DS_ACCEL_VERSION));
    put(&text, context->machine_root, strlen(context->machine_root) + 1);
    status = send_message(helper, DS_ACCEL__MESSAGE_SETUP, &text, NULL);
    ds_accel__text_clear(&text);
    return status;
}

/*
 * Set finding to the reason of error, the errno of a failed start. ENOMEM is no verdict on a
 * plugin: ERR_NO_MEMORY is returned, and finding is not set.
 */
int32_t ds_accel__helper_judge_start(const char *program, int error,
                                     struct ds_accel__finding *finding)
{
    if (error == ENOMEM) {
        return ds_accel__no_memory();
    }
    if (access(program, X_OK) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_MISSING, "%s: %s", program,
                              strerror(errno));
    } else {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_REFUSED, "%s cannot be started: %s",
                              program, strerror(error));
    }
    return DS_ACCEL_OK;
}

/*
 * Check the program that probes plugins: if this process has raised privileges, only root may own
 * the program or write to it.
 */
static int32_t check_program(const char *program, struct ds_accel__finding *finding)
{
    struct ds_accel__finding why = {0};
    char *real = realpath(program, NULL);
    int32_t status;

    if (real == NULL) { /* the start reports the error */
        return errno == ENOMEM ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    status = ds_accel__trust_if_raised(real, &why);
    free(real);
    if (status >= 0 && why.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_FAILED, "%s: %s",
                              ds_accel__reason_code(why.reason), why.detail);
    }
    return status;
}

/* Start a helper. finding contains the reason of a failure that has no negative status. */
static int32_t start_helper(ds_accel_t *context, struct ds_accel__helper *helper,
                            struct ds_accel__finding *finding)
{
    const char *program = context->prober->program;
    int channel[2] = {-1, -1};
    int output[2] = {-1, -1};
    int held[STDERR_FILENO + 1];
    int error = 0;
    int32_t status = check_program(program, finding);

    if (status < 0 || finding->reason != DS_ACCEL__REASON_NONE) {
        return status;
    }
    memset(helper, 0, sizeof(*helper));
    helper->pidfd = helper->channel = helper->answers = -1;
    for (int i = 0; i < DS_ACCEL__OUTPUT_COUNT; i++) {
        helper->output[i].fd = -1;
    }
    hold_standard(held);
    if (!open_socket(channel) || !open_pipe(output)) {
        error = errno;
    } else if (getrandom(&helper->token, sizeof(helper->token), 0) !=
               (ssize_t)sizeof(helper->token)) {
        error = EAGAIN;
    } else {
        error = ds_accel__helper_spawn(
            &helper->pid, program,
            context->prober->is_outside ? "outside" : ds_accel__probe_containment(context), NULL,
            (int[]){output[1], output[1], channel[1]}, DS_ACCEL__HELPER_DESCRIPTORS);
    }
    release_standard(held);
    ds_accel__probe_close(&channel[1]);
    ds_accel__probe_close(&output[1]);
    if (error != 0) {
        helper->pid = 0;
        ds_accel__probe_close(&channel[0]);
        ds_accel__probe_close(&output[0]);
        return ds_accel__helper_judge_start(program, error, finding);
    }
    /* Pidfds are always close-on-exec. */
    helper->pidfd = (int)syscall(SYS_pidfd_open, helper->pid, 0);
    if (helper->pidfd >= 0) {
        ds_accel__helper_raise(&helper->pidfd); /* on failure the pidfd keeps its number */
    }
    helper->channel = channel[0];
    helper->output[DS_ACCEL__OUTPUT_HELPER].fd = output[0];
    helper->from_supervisor.token = helper->token;
    helper->from_supervisor.limit_bytes = DS_ACCEL__MESSAGE_LIMIT_BYTES;
    helper->from_child.limit_bytes = DS_ACCEL__MESSAGE_LIMIT_BYTES;
    return send_setup(context, helper);
}

/* ---- stopping a helper ---------------------------------------------------------------------- */

static bool is_ours(const struct ds_accel__helper *helper)
{
    siginfo_t info = {0};

    assert(helper->pid > 0);
    return waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static long send_signal(const struct ds_accel__helper *helper, int signal, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, helper->pidfd, signal, NULL, flags);
}

static void signal_group(const struct ds_accel__helper *helper, int signal)
{
    bool by_number = helper->pidfd < 0;

    /*
     * A pidfd signals a process group since Linux 6.9. On an older kernel, signal by group ID,
     * which is not reused until the helper, the leader of the group, is reaped.
     */
    if (!by_number && send_signal(helper, signal, PIDFD_SIGNAL_PROCESS_GROUP) != 0) {
        by_number = errno == EINVAL;
        send_signal(helper, signal, 0); /* the helper may have left its group */
    }
    if (by_number && is_ours(helper) && kill(-helper->pid, signal) != 0) {
        kill(helper->pid, signal);
    }
}

bool ds_accel__helper_wait(const struct ds_accel__helper *helper, uint64_t limit_ns)
{
    uint64_t deadline = ds_accel__now_ns() + limit_ns;

    for (;;) {
        uint64_t now = ds_accel__now_ns();
        struct pollfd wait = {.fd = helper->pidfd, .events = POLLIN};
        siginfo_t info = {0};

        if (helper->pidfd < 0) { /* the kernel has no pidfds: poll repeatedly */
            if (waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
                info.si_pid != 0) {
                return true;
            }
            poll(NULL, 0, 1);
        } else if (poll(&wait, 1, now < deadline ? (int)((deadline - now) / 1000000) + 1 : 0) > 0) {
            return true;
        }
        if (now >= deadline) {
            return false;
        }
    }
}

enum reaped {
    REAPED,
    REAPED_BY_OTHERS,
    NOT_REAPED /* it has not exited, or its tracer, which must wait for it first, has not waited */
};

/* Reap a helper that has exited. info receives its exit status if it is known. */
static enum reaped reap(const struct ds_accel__helper *helper, siginfo_t *info)
{
    idtype_t type = helper->pidfd >= 0 ? (idtype_t)P_PIDFD : P_PID;
    id_t id = (id_t)(helper->pidfd >= 0 ? helper->pidfd : helper->pid);
    int result;

    memset(info, 0, sizeof(*info));
    do {
        result = waitid(type, id, info, WEXITED | WNOHANG);
    } while (result != 0 && errno == EINTR);
    if (result == 0 && info->si_pid == 0) {
        return NOT_REAPED;
    }
    return result == 0 && info->si_pid == helper->pid ? REAPED : REAPED_BY_OTHERS;
}

static void abandon(ds_accel_t *context, struct ds_accel__helper *helper)
{
    ds_accel__log(
        &context->log, "probe", DS_ACCEL_LOG_WARN,
        "process %d does not end after SIGKILL, or a debugger holds it: not waiting for it",
        (int)helper->pid);
    pthread_mutex_lock(&abandoned_lock);
    for (size_t i = 0; i < ABANDONED_LIMIT && helper->pidfd >= 0; i++) {
        if (abandoned[i] == 0) {
            abandoned[i] = helper->pidfd;
            helper->pidfd = -1;
        }
    }
    pthread_mutex_unlock(&abandoned_lock);
}

void ds_accel__helpers_reap(void)
{
    pthread_mutex_lock(&abandoned_lock);
    for (size_t i = 0; i < ABANDONED_LIMIT; i++) {
        siginfo_t info = {0};

        if (abandoned[i] != 0 &&
            (waitid(P_PIDFD, (id_t)abandoned[i], &info, WEXITED | WNOHANG) != 0 ||
             info.si_pid != 0)) {
            close(abandoned[i]);
            abandoned[i] = 0;
        }
    }
    pthread_mutex_unlock(&abandoned_lock);
}

static void close_answers(struct ds_accel__helper *helper)
{
    ds_accel__probe_close(&helper->answers);
    ds_accel__probe_close(&helper->output[DS_ACCEL__OUTPUT_STDOUT].fd);
    ds_accel__probe_close(&helper->output[DS_ACCEL__OUTPUT_STDERR].fd);
}

static void clear_helper(struct ds_accel__helper *helper)
{
    ds_accel__probe_close(&helper->channel);
    close_answers(helper);
    ds_accel__probe_close(&helper->output[DS_ACCEL__OUTPUT_HELPER].fd);
    ds_accel__probe_close(&helper->pidfd);
    ds_accel__message_reader_clear(&helper->from_supervisor);
    ds_accel__message_reader_clear(&helper->from_child);
    helper->pid = 0;
    helper->candidate = NULL;
}

/*
 * True if the helper can be killed at once, because it has nothing to clean up. It must have
 * reported its containment, must have no candidate, and thus no children, and must have reported no
 * process that does not exit. A helper with a cgroup must remove the cgroup. A helper with a
 * namespace consists of a process outside and a child inside, which the former must reap: if the
 * process outside were killed, process 1 would inherit the child, and in a container the caller may
 * be process 1. A caller that is a subreaper would inherit everything that the helper leaves.
 */
static bool has_nothing_to_end(const struct ds_accel__helper *helper)
{
    int is_subreaper = 1;

    return helper->candidate == NULL && helper->has_said_hello && !helper->is_deaf &&
           helper->hello.containment != DS_ACCEL__CONTAIN_CGROUP &&
           helper->hello.containment != DS_ACCEL__CONTAIN_NAMESPACE &&
           helper->ended.is_stuck == 0 &&
           prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper == 0;
}

/*
 * Begin to stop a helper. When its channel ends, the helper kills the processes that it started,
 * and exits. SIGKILL would prevent that, and the next subreaper, which may be the caller, would
 * inherit the helper's children: only a helper that has nothing to clean up is killed at once.
 * shutdown() is needed because a forked child of the caller may have the channel open, too, so that
 * close() would not end it.
 */
void ds_accel__helper_dismiss(struct ds_accel__helper *helper)
{
    assert(helper->pid > 0);
    if (helper->is_ending) {
        return;
    }
    helper->is_ending = true;
    if (has_nothing_to_end(helper)) {
        signal_group(helper, SIGKILL);
        return;
    }
    helper->kill_ns = ds_accel__now_ns() + TREE_GRACE_NS;
    if (helper->channel >= 0) {
        shutdown(helper->channel, SHUT_RDWR);
    }
    ds_accel__probe_close(&helper->channel);
}

bool ds_accel__helper_end(ds_accel_t *context, struct ds_accel__helper *helper, siginfo_t *info)
{
    enum reaped reaped = NOT_REAPED;
    uint64_t now;

    memset(info, 0, sizeof(*info));
    ds_accel__helper_dismiss(helper);
    now = ds_accel__now_ns();
    if (helper->kill_ns > now) {
        ds_accel__helper_wait(helper, helper->kill_ns - now);
    }
    signal_group(helper, SIGKILL); /* also kills the rest of its group after the leader's exit */
    if (ds_accel__helper_wait(helper, DS_ACCEL__KILL_GRACE_NS)) {
        reaped = reap(helper, info);
    }
    if (reaped == NOT_REAPED) {
        abandon(context, helper);
    }
    clear_helper(helper);
    assert(helper->pid == 0 && helper->channel < 0 && helper->pidfd < 0);
    return reaped == REAPED;
}

/* ---- requests ------------------------------------------------------------------------------- */

/*
 * Return the options that a plugin can read through its host as JSON text: a configuration that has
 * only the "options" of the plugin's backend. "": there are no options. NULL: out of memory.
 */
static char *dump_options(const struct ds_accel__candidate *candidate)
{
    json_t *options =
        ds_accel__config_backend(&candidate->host.context->config, candidate->name, "options");
    json_t *tree;
    char *dump;

    if (json_object_size(options) == 0) {
        return strdup("");
    }
    tree = json_pack("{s:{s:{s:O}}}", "backends", candidate->name, "options", options);
    dump = tree != NULL ? ds_accel__json_dump(tree, JSON_COMPACT) : NULL;
    json_decref(tree);
    return dump;
}

static uint32_t log_level(const struct ds_accel__candidate *candidate)
{
    const struct ds_accel__log *log = &candidate->host.context->log;
    uint32_t level = DS_ACCEL_LOG_TRACE;

    while (level > 0 && !ds_accel__log_enabled(log, candidate->name, level)) {
        level--;
    }
    return level;
}

/*
 * Open a separate channel and separate pipes for each process that probes, so that what one process
 * does to them (shut down, make nonblocking, leave data) does not affect the next process. passed
 * receives the ends of that process. Returns 0 or an errno.
 */
static int open_answers(struct ds_accel__helper *helper, int *passed)
{
    int ends[DS_ACCEL__PROBE_PASSED][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int held[STDERR_FILENO + 1];
    int error = 0;

    close_answers(helper);
    hold_standard(held);
    if (!open_pipe(ends[0]) || !open_pipe(ends[1]) || !open_socket(ends[2])) {
        error = errno;
    }
    release_standard(held);
    for (int i = 0; i < DS_ACCEL__PROBE_PASSED; i++) {
        passed[i] = ends[i][1];
        if (error != 0) {
            close_ends(ends[i]);
        }
    }
    if (error == 0) {
        helper->output[DS_ACCEL__OUTPUT_STDOUT].fd = ends[0][0];
        helper->output[DS_ACCEL__OUTPUT_STDERR].fd = ends[1][0];
        helper->answers = ends[2][0];
    }
    return error;
}

static int32_t send_ask(struct ds_accel__helper *helper,
                        const struct ds_accel__candidate *candidate, const int *passed)
{
    struct ds_accel__probe_ask ask = {
        .token = helper->from_child.token,
        .number = helper->number,
        .note_features = candidate->note_features,
        .log_level = log_level(candidate),
        .is_lint = candidate->lint != NULL,
        .file = candidate->file,
    };
    char *options = dump_options(candidate);
    struct ds_accel__text text = {0};
    int32_t status;

    if (options == NULL) {
        return ds_accel__no_memory();
    }
    put(&text, &ask, sizeof(ask));
    put(&text, candidate->name, strlen(candidate->name) + 1);
    put(&text, candidate->path, strlen(candidate->path) + 1);
    put(&text, options, strlen(options) + 1);
    status = send_message(helper, DS_ACCEL__MESSAGE_ASK, &text, passed);
    ds_accel__text_clear(&text);
    free(options);
    return status;
}

/*
 * True if the helper has exited; always false if the kernel has no pidfds. Called between two
 * candidates, because a process that the previous candidate left may have killed the helper.
 */
static bool is_dead(const struct ds_accel__helper *helper)
{
    struct pollfd wait = {.fd = helper->pidfd, .events = POLLIN};

    return helper->pidfd >= 0 && poll(&wait, 1, 0) > 0;
}

void ds_accel__helper_stop(struct ds_accel__helper *helper, bool is_asked_first)
{
    uint32_t stop[2] = {helper->number, is_asked_first};
    struct ds_accel__text text = {0};

    put(&text, stop, sizeof(stop));
    if (send_message(helper, DS_ACCEL__MESSAGE_STOP, &text, NULL) < 0) {
        helper->is_deaf = true;
    }
    ds_accel__text_clear(&text);
}

static uint64_t timeout_ns(const ds_accel_t *context)
{
    return (uint64_t)ds_accel__probe_setting(context, "timeout_ms", 30000) * 1000000u;
}

/*
 * Set the helper's state for a new candidate: reset the results of the previous candidate, set the
 * deadline, and create the token of the candidate's messages. False with errno: the token could not
 * be created.
 */
static bool begin(ds_accel_t *context, struct ds_accel__helper *helper,
                  struct ds_accel__candidate *candidate)
{
    helper->candidate = candidate;
    helper->number++;
    helper->stage = DS_ACCEL__GATE_LOAD;
    helper->logged_bytes = 0;
    helper->has_result = helper->has_end = helper->has_ended = helper->is_hung = false;
    helper->is_stopped = false;
    helper->called_exit = false;
    helper->signal = 0;
    helper->nonsense = DS_ACCEL__HEARD_SOMETHING;
    memset(&helper->conduct, 0, sizeof(helper->conduct));
    for (int i = 0; i < DS_ACCEL__OUTPUT_COUNT; i++) {
        helper->output[i].total_bytes = helper->output[i].kept_bytes = 0;
    }
    helper->from_child.size_bytes = helper->from_child.at = 0;
    helper->from_child.sequence = 0;
    assert(helper->pid > 0);
    helper->start_ns = ds_accel__now_ns();
    helper->deadline_ns = helper->start_ns +
                          (helper->has_said_hello ? timeout_ns(context) : START_LIMIT_NS);
    return getrandom(&helper->from_child.token, sizeof(helper->from_child.token), 0) ==
           (ssize_t)sizeof(helper->from_child.token);
}

/*
 * Estimate whether this process can open count more descriptors. A new descriptor has the lowest
 * free number, so at most the numbers from there to the limit are left.
 */
static bool has_descriptors(unsigned count)
{
    struct rlimit limit;
    int fd = open("/", O_PATH | O_CLOEXEC);
    bool has = fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
               limit.rlim_cur > (rlim_t)fd + count;

    ds_accel__probe_close(&fd);
    return has;
}

void ds_accel__helper_begin(ds_accel_t *context, struct ds_accel__helper *helper)
{
    struct ds_accel__finding ignored = {0};
    siginfo_t info;

    /*
     * Start no helper if few descriptors are left, because files must be read before the first
     * request.
     */
    if (helper->pid == 0 && has_descriptors(2 * SAFE_DESCRIPTOR) &&
        start_helper(context, helper, &ignored) < 0 && helper->pid != 0) {
        ds_accel__helper_end(context, helper, &info); /* its setup is incomplete */
    }
}

int32_t ds_accel__helper_ask(ds_accel_t *context, struct ds_accel__helper *helper,
                             struct ds_accel__candidate *candidate)
{
    struct ds_accel__finding finding = {0};
    int passed[DS_ACCEL__PROBE_PASSED];
    int32_t status = DS_ACCEL_OK;
    siginfo_t info;

    assert(helper->candidate == NULL); /* one candidate at a time */
    if (helper->pid != 0 && (helper->is_ending || is_dead(helper))) {
        ds_accel__helper_end(context, helper, &info);
    }
    if (helper->pid == 0) {
        status = start_helper(context, helper, &finding);
    }
    if (status >= 0 && finding.reason == DS_ACCEL__REASON_NONE &&
        !begin(context, helper, candidate)) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_HELPER_REFUSED, "no random numbers: %s",
                              strerror(errno));
    }
    if (status >= 0 && finding.reason == DS_ACCEL__REASON_NONE) {
        int error = open_answers(helper, passed);

        if (error != 0) {
            ds_accel__helper_end(context, helper, &info); /* frees descriptors for other uses */
        }
        status = error == 0
                     ? DS_ACCEL_OK
                     : ds_accel__helper_judge_start(context->prober->program, error, &finding);
    }
    if (status >= 0 && finding.reason == DS_ACCEL__REASON_NONE) {
        status = send_ask(helper, candidate, passed);
        for (int i = 0; i < DS_ACCEL__PROBE_PASSED; i++) {
            assert(passed[i] >= 0);
            close(passed[i]);
        }
        if (status >= 0 && helper->is_deaf) {
            ds_accel__finding_set(&finding, DS_ACCEL__REASON_HELPER_FAILED,
                                  "it does not read its requests");
            ds_accel__helper_end(context, helper, &info);
        }
    }
    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        helper->candidate = NULL; /* the candidate was not sent */
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_ERROR, &finding);
    }
    return status;
}
