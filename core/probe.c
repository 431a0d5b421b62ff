/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Asking plugins without letting their code into this process. Helpers (ds-accel-probe,
 * probe_serve.c) are told candidates one by one over a socket and answer with sealed frames; this
 * file starts them, watches channel, output and death of each with one poll(), and turns whatever
 * happens into a verdict: an answer, a crash with the stage it happened in, a deadline, an answer
 * that cannot be believed, or conduct that would harm the process the plugin is loaded into next.
 *
 *     detect.c -> probe_all(candidates) -> ask: idle helper, else spawn      HELLO STAGE* RESULT
 *                        ^                      |                            CONDUCT* END
 *                        |                poll: channel, stdout, stderr, pidfd, deadline
 *                        +-- verdicts <-- finish | casualty -> TERM, KILL of the group, reap
 *
 * The program around us may have threads, children and a SIGCHLD handler of its own: only what was
 * started here is waited for and signalled, by pidfd, since its number may be another process's as
 * soon as somebody else has reaped it; the frames still tell what happened. A helper that even
 * SIGKILL does not end (a driver's call that never returns) is left and remembered, and reaped by a
 * later call.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef DS_ACCEL_LIBEXECDIR
#define DS_ACCEL_LIBEXECDIR "/usr/libexec"
#endif

#define WIDTH_LIMIT 64
#define SAFE_DESCRIPTOR 10            /* above those that a helper is given, and stdin to stderr */
#define START_LIMIT_NS 30000000000ull /* until a helper says hello */
#define TERM_GRACE_NS 200000000ull    /* from SIGTERM to the end of the channel */
#define TREE_GRACE_NS 100000000ull    /* from that, which ends all it started, to SIGKILL */
#define KILL_GRACE_NS 1000000000ull   /* from SIGKILL to giving up on it */
#define CLOSED_GRACE_NS 1000000000ull /* from the channel's end to the process's */
#define OUTPUT_KEPT_BYTES 2048u       /* of each stream, for explain */
#define OUTPUT_FLOOD_BYTES 65536u     /* more than this is conduct */
#define LOG_LIMIT_BYTES 65536u        /* of one candidate */
#define ABANDONED_LIMIT 16
#define READS_AT_ONCE 16  /* of one channel, before others and deadlines are looked at */
#define READS_AT_END 4096 /* of one whose process has ended: more than a socket holds */
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1u << 2)
#endif

struct capture {
    int fd;
    uint64_t total_bytes;
    size_t kept_bytes;
    char kept[OUTPUT_KEPT_BYTES];
};

struct conduct {
    const char *code; /* NULL: none. The first that is not tolerated. */
    char detail[256];
    char tolerated[256]; /* codes, for the gate's evidence */
    bool has_more;       /* detail names further codes */
    bool is_tainted;     /* the helper's process is not as it was */
};

struct helper {
    pid_t pid; /* 0: none */
    int pidfd;
    int channel; /* -1: it has reached its end */
    struct capture output[2];
    struct ds_accel__frame_reader reader;
    uint64_t token;
    uint32_t sequence;
    bool has_said_hello;
    bool is_used;     /* it has answered for another candidate before */
    bool is_deaf;     /* it does not read what it is told */
    bool is_ending;   /* killed or dismissed, not yet reaped */
    uint64_t kill_ns; /* until then a dismissed one may end by itself */
    /* Of the candidate that is being asked. */
    struct ds_accel__candidate *candidate; /* NULL: idle */
    uint32_t stage;                        /* a gate */
    size_t logged_bytes;
    bool has_result;
    bool called_exit;
    int32_t signal; /* that it said would end it; 0: none */
    uint64_t address;
    struct conduct conduct;
    uint64_t start_ns;
    uint64_t deadline_ns;
};

struct ds_accel__prober {
    char *program;
    size_t width;
    struct helper helpers[]; /* width of them */
};

/* Guards what is below: helpers that did not die, to be reaped when they do. */
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;
static int abandoned[ABANDONED_LIMIT]; /* pidfds, 0: none */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* ---- settings ------------------------------------------------------------------------------- */

bool ds_accel__probe_is_isolated(const ds_accel_t *context)
{
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_PROBE];

    if (mode == NULL) {
        mode = json_string_value(ds_accel__config_get(&context->config, "probe", "mode", NULL));
    }
    return mode == NULL || strcmp(mode, "isolated") == 0;
}

static long long setting(const ds_accel_t *context, const char *key, long long otherwise)
{
    json_t *value = ds_accel__config_get(&context->config, "probe", key, NULL);

    return json_is_integer(value) ? (long long)json_integer_value(value) : otherwise;
}

size_t ds_accel__probe_width(const ds_accel_t *context)
{
    long long width = ds_accel__probe_is_isolated(context) ? setting(context, "parallel", 1) : 1;

    return width < 1 ? 1 : width > WIDTH_LIMIT ? WIDTH_LIMIT : (size_t)width;
}

bool ds_accel__conduct_is_tolerated(const struct ds_accel__candidate *candidate, const char *code)
{
    json_t *codes =
        ds_accel__config_backend(&candidate->host.context->config, candidate->name, "tolerate");

    for (size_t i = 0; i < json_array_size(codes); i++) {
        if (strcmp(json_string_value(json_array_get(codes, i)), code) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- starting a helper ---------------------------------------------------------------------- */

/* libexec/ds-accel/ds-accel-probe of the prefix that the library is in, or was built for. */
char *ds_accel__probe_program(void)
{
    char *library = ds_accel__library_dir();
    char *path =
        library != NULL ? ds_accel__format("%s/../libexec/ds-accel/ds-accel-probe", library) : NULL;

    free(library);
    if (path != NULL && access(path, X_OK) != 0 &&
        access(DS_ACCEL_LIBEXECDIR "/ds-accel/ds-accel-probe", X_OK) == 0) {
        free(path);
        path = strdup(DS_ACCEL_LIBEXECDIR "/ds-accel/ds-accel-probe");
    }
    return path;
}

static int32_t make_prober(ds_accel_t *context)
{
    size_t width = ds_accel__probe_width(context);
    struct ds_accel__prober *prober;

    if (context->prober != NULL) {
        return DS_ACCEL_OK;
    }
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

struct plumbing {
    int channel[2];
    int output[2][2]; /* stdout, stderr: read end, write end */
};

static void close_plumbing(struct plumbing *plumbing)
{
    for (int end = 0; end < 2; end++) {
        close_fd(&plumbing->channel[end]);
        close_fd(&plumbing->output[0][end]);
        close_fd(&plumbing->output[1][end]);
    }
}

/*
 * Move a descriptor out of the way of those that the child gets. The ends that stay here as well:
 * where the caller has closed stdout, what it prints all the same must not get into our channel.
 */
static bool raise_fd(int *fd)
{
    int raised = *fd < SAFE_DESCRIPTOR ? fcntl(*fd, F_DUPFD_CLOEXEC, SAFE_DESCRIPTOR) : *fd;

    if (raised < 0) {
        if (errno == EINVAL) {
            errno = EMFILE; /* the limit is below that */
        }
        return false;
    }
    if (raised != *fd) {
        close(*fd);
        *fd = raised;
    }
    return true;
}

static bool raise_pair(int *pair)
{
    return raise_fd(&pair[0]) && raise_fd(&pair[1]);
}

static bool open_plumbing(struct plumbing *plumbing)
{
    memset(plumbing, -1, sizeof(*plumbing));
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, plumbing->channel) == 0 &&
           raise_pair(plumbing->channel) && pipe2(plumbing->output[0], O_CLOEXEC) == 0 &&
           raise_pair(plumbing->output[0]) && pipe2(plumbing->output[1], O_CLOEXEC) == 0 &&
           raise_pair(plumbing->output[1]) &&
           fcntl(plumbing->output[0][0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(plumbing->output[1][0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(plumbing->channel[0], F_SETFL, O_NONBLOCK) == 0;
}

/* stdin empty, the pipes, the channel, and nothing else of this process's descriptors. */
static int spawn_with(pid_t *pid_out, const char *program, const struct plumbing *plumbing)
{
    char parent[24];
    char *argv[] = {(char[]){"ds-accel-probe"}, parent, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    error = error != 0 ? error
                       : posix_spawn_file_actions_adddup2(&actions, plumbing->output[0][1], 1);
    error = error != 0 ? error
                       : posix_spawn_file_actions_adddup2(&actions, plumbing->output[1][1], 2);
    error = error != 0 ? error
                       : posix_spawn_file_actions_adddup2(&actions, plumbing->channel[1],
                                                          DS_ACCEL__PROBE_CHANNEL);
    error = error != 0
                ? error
                : posix_spawn_file_actions_addclosefrom_np(&actions, DS_ACCEL__PROBE_CHANNEL + 1);
    error = error != 0 ? error
                       : posix_spawn(pid_out, program, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Texts, each with its NUL, behind a struct. */
static void put(struct ds_accel__text *text, const void *data, size_t size_bytes)
{
    ds_accel__text_add_bytes(text, data, size_bytes);
}

static int32_t send_frame(struct helper *helper, uint16_t kind, const struct ds_accel__text *text)
{
    char head[DS_ACCEL__FRAME_HEAD_BYTES];
    struct ds_accel__text frame = {0};
    size_t sent = 0;

    ds_accel__frame_seal(head, kind, helper->sequence++, text->data, (uint32_t)text->size_bytes,
                         kind == DS_ACCEL__FRAME_SETUP ? 0 : helper->token);
    put(&frame, head, sizeof(head));
    put(&frame, text->data, text->size_bytes);
    if (text->failed || frame.failed) {
        ds_accel__text_clear(&frame);
        return ds_accel__no_memory();
    }
    while (sent < frame.size_bytes) {
        ssize_t count =
            send(helper->channel, frame.data + sent, frame.size_bytes - sent, MSG_NOSIGNAL);

        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = helper->channel, .events = POLLOUT};

            /* It reads requests while no plugin runs: a second is for ever. */
            if (poll(&wait, 1, 1000) == 0) {
                helper->is_deaf = true;
                break;
            }
        } else if (errno != EINTR) {
            break; /* it has died: its end is seen by poll() */
        }
    }
    ds_accel__text_clear(&frame);
    return DS_ACCEL_OK;
}

static int32_t send_setup(const ds_accel_t *context, struct helper *helper)
{
    struct ds_accel__probe_setup setup = {
        .token = helper->token,
        .ignores_env = context->env.ignored,
    };
    struct ds_accel__text text = {0};
    int32_t status;

    put(&text, &setup, sizeof(setup));
    put(&text, DS_ACCEL_VERSION, sizeof(DS_ACCEL_VERSION));
    put(&text, context->machine_root, strlen(context->machine_root) + 1);
    status = send_frame(helper, DS_ACCEL__FRAME_SETUP, &text);
    ds_accel__text_clear(&text);
    return status;
}

/* That no process could be made says nothing of any plugin: then nobody is judged. */
static int32_t judge_start(const char *program, int error, struct ds_accel__finding *finding)
{
    switch (error) {
    case ENOMEM:
        return ds_accel__no_memory();
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "%s cannot be started: %s", program,
                               strerror(error));
    default:
        ds_accel__find(finding, "helper_missing", "%s: %s", program, strerror(error));
        return DS_ACCEL_OK;
    }
}

/* Start a helper. On a failure that is not a status, finding says what is missing. */
static int32_t start_helper(ds_accel_t *context, struct helper *helper,
                            struct ds_accel__finding *finding)
{
    struct plumbing plumbing;
    int error = 0;

    memset(helper, 0, sizeof(*helper));
    helper->pidfd = helper->channel = -1;
    helper->output[0].fd = helper->output[1].fd = -1;
    if (!open_plumbing(&plumbing)) {
        error = errno;
    } else if (getrandom(&helper->token, sizeof(helper->token), 0) !=
               (ssize_t)sizeof(helper->token)) {
        error = EAGAIN;
    } else {
        error = spawn_with(&helper->pid, context->prober->program, &plumbing);
    }
    if (error != 0) {
        helper->pid = 0;
        close_plumbing(&plumbing);
        return judge_start(context->prober->program, error, finding);
    }
    helper->pidfd = (int)syscall(SYS_pidfd_open, helper->pid, 0); /* closed on exec, always */
    if (helper->pidfd >= 0) {
        raise_fd(&helper->pidfd); /* if it cannot, it stays as it is */
    }
    helper->channel = plumbing.channel[0];
    helper->output[0].fd = plumbing.output[0][0];
    helper->output[1].fd = plumbing.output[1][0];
    plumbing.channel[0] = plumbing.output[0][0] = plumbing.output[1][0] = -1;
    close_plumbing(&plumbing);
    helper->reader.token = helper->token;
    helper->reader.limit_bytes = DS_ACCEL__FRAME_LIMIT_BYTES;
    return send_setup(context, helper);
}

/* ---- ending a helper ------------------------------------------------------------------------ */

static bool is_ours(const struct helper *helper)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)helper->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static long send_signal(const struct helper *helper, int signal, unsigned flags)
{
    return syscall(SYS_pidfd_send_signal, helper->pidfd, signal, NULL, flags);
}

static void signal_group(const struct helper *helper, int signal)
{
    bool by_number = helper->pidfd < 0;

    /* Before Linux 6.9: by the group's number, which is its own while its leader is not reaped. */
    if (!by_number && send_signal(helper, signal, PIDFD_SIGNAL_PROCESS_GROUP) != 0) {
        by_number = errno == EINVAL;
        send_signal(helper, signal, 0); /* it may have left its group */
    }
    if (by_number && is_ours(helper) && kill(-helper->pid, signal) != 0) {
        kill(helper->pid, signal);
    }
}

/* Wait until it has ended, not reaping it; false if it did not in time. */
static bool wait_end(const struct helper *helper, uint64_t limit_ns)
{
    uint64_t deadline = now_ns() + limit_ns;

    for (;;) {
        uint64_t now = now_ns();
        struct pollfd wait = {.fd = helper->pidfd, .events = POLLIN};
        siginfo_t info = {0};

        if (helper->pidfd < 0) { /* a kernel without pidfds: look, then look again */
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
    NOT_REAPED /* its tracer has not looked at it yet: waiting could last for ever */
};

/* Reap one that has ended; what is known of its end goes to info. */
static enum reaped reap(const struct helper *helper, siginfo_t *info)
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

static void abandon(ds_accel_t *context, struct helper *helper)
{
    ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_WARN,
                  "process %d does not end, even by SIGKILL, or is held by a debugger: it is left "
                  "alone",
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

static void reap_abandoned(void)
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

static void clear_helper(struct helper *helper)
{
    close_fd(&helper->channel);
    close_fd(&helper->output[0].fd);
    close_fd(&helper->output[1].fd);
    close_fd(&helper->pidfd);
    ds_accel__frame_reader_clear(&helper->reader);
    helper->pid = 0;
    helper->candidate = NULL;
}

/*
 * Begin its end. One that may have started processes is told by the end of its channel to end them
 * and itself (probe_serve.c): SIGKILL would keep it from that, and reach only its group. A fork of
 * the caller may have the channel, too, so closing it would not be enough.
 */
static void dismiss(struct helper *helper)
{
    if (helper->is_ending) {
        return;
    }
    helper->is_ending = true;
    if (helper->candidate == NULL && !helper->conduct.is_tainted) {
        signal_group(helper, SIGKILL);
        return;
    }
    helper->kill_ns = now_ns() + TREE_GRACE_NS;
    if (helper->channel >= 0) {
        shutdown(helper->channel, SHUT_RDWR);
    }
    close_fd(&helper->channel);
}

/*
 * End it, with all of its group, and reap it. is_hung: it gets SIGTERM and a moment first. What its
 * end looked like is in info if it ended by itself.
 */
static bool end_helper(ds_accel_t *context, struct helper *helper, bool is_hung, siginfo_t *info)
{
    enum reaped reaped = NOT_REAPED;
    uint64_t now;

    memset(info, 0, sizeof(*info));
    if (is_hung) {
        signal_group(helper, SIGTERM);
        wait_end(helper, TERM_GRACE_NS);
    }
    dismiss(helper);
    now = now_ns();
    if (helper->kill_ns > now) {
        wait_end(helper, helper->kill_ns - now);
    }
    signal_group(helper, SIGKILL); /* also grandchildren, when the leader has ended */
    if (wait_end(helper, KILL_GRACE_NS)) {
        reaped = reap(helper, info);
    }
    if (reaped == NOT_REAPED) {
        abandon(context, helper);
    }
    clear_helper(helper);
    return reaped == REAPED;
}

/* ---- asking --------------------------------------------------------------------------------- */

/* What a plugin may ask its host for: its own part of the configuration. */
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
    dump = tree != NULL ? json_dumps(tree, JSON_COMPACT) : NULL;
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

static int32_t send_ask(struct helper *helper)
{
    const struct ds_accel__candidate *candidate = helper->candidate;
    struct ds_accel__probe_ask ask = {
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
    status = send_frame(helper, DS_ACCEL__FRAME_ASK, &text);
    ds_accel__text_clear(&text);
    free(options);
    return status;
}

/* Between two candidates: something the last one left behind may have ended it. */
static bool is_dead(const struct helper *helper)
{
    struct pollfd wait = {.fd = helper->pidfd, .events = POLLIN};

    return helper->pidfd >= 0 && poll(&wait, 1, 0) > 0;
}

/* Give a helper its next candidate; a helper is started if there is none in this place. */
static int32_t ask(ds_accel_t *context, struct helper *helper,
                   struct ds_accel__candidate *candidate)
{
    struct ds_accel__finding finding = {0};
    int32_t status = DS_ACCEL_OK;
    siginfo_t info;

    if (helper->pid != 0 && (helper->is_ending || is_dead(helper))) {
        end_helper(context, helper, false, &info);
    }
    if (helper->pid == 0) {
        status = start_helper(context, helper, &finding);
    }
    if (status < 0 || finding.reason != NULL) {
        if (status >= 0) {
            ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_ERROR,
                                     &finding);
        }
        return status;
    }
    helper->candidate = candidate;
    helper->stage = DS_ACCEL__GATE_LOAD;
    helper->logged_bytes = 0;
    helper->has_result = false;
    helper->called_exit = false;
    helper->signal = 0;
    memset(&helper->conduct, 0, sizeof(helper->conduct));
    for (int i = 0; i < 2; i++) {
        helper->output[i].total_bytes = helper->output[i].kept_bytes = 0;
    }
    helper->start_ns = now_ns();
    helper->deadline_ns = helper->start_ns +
                          (helper->has_said_hello
                               ? (uint64_t)setting(context, "timeout_ms", 30000) * 1000000u
                               : START_LIMIT_NS);
    status = send_ask(helper);
    if (status >= 0 && helper->is_deaf) {
        ds_accel__find(&finding, "helper_failed", "it does not read what it is asked");
        end_helper(context, helper, false, &info);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_LOAD, DS_ACCEL_STATE_ERROR, &finding);
    }
    return status;
}

/* ---- hearing -------------------------------------------------------------------------------- */

static void take_output(struct capture *capture)
{
    char data[16384];
    ssize_t count = 0;

    /* Never to the end of the file: a grandchild may hold the other end for ever. */
    while (capture->fd >= 0 &&
           ((count = read(capture->fd, data, sizeof(data))) > 0 || (count < 0 && errno == EINTR))) {
        size_t room = OUTPUT_KEPT_BYTES - capture->kept_bytes;
        size_t kept = count > 0 && (size_t)count < room ? (size_t)count : room;

        if (count > 0) {
            memcpy(capture->kept + capture->kept_bytes, data, kept);
            capture->kept_bytes += kept;
            capture->total_bytes += (uint64_t)count;
        }
        if (capture->total_bytes > 64 * OUTPUT_FLOOD_BYTES && count == (ssize_t)sizeof(data)) {
            return; /* it writes as fast as this reads: deadlines come first */
        }
    }
    if (capture->fd >= 0 && count == 0) {
        close_fd(&capture->fd);
    }
}

static void note_conduct(struct helper *helper, const char *code, const char *detail)
{
    const struct ds_accel__reason *reason = ds_accel__reason(code);
    struct conduct *conduct = &helper->conduct;
    size_t length = strlen(conduct->tolerated);

    if (reason == NULL) {
        return;
    }
    helper->candidate->has_conduct = true;
    if (helper->candidate->lint != NULL) {
        helper->candidate->lint->conduct(helper->candidate->lint->user_data, reason->code, detail);
    }
    if (ds_accel__conduct_is_tolerated(helper->candidate, code)) {
        snprintf(conduct->tolerated + length, sizeof(conduct->tolerated) - length, "%s%s",
                 length > 0 ? ", " : "", code);
    } else if (conduct->code == NULL) {
        conduct->code = reason->code;
        snprintf(conduct->detail, sizeof(conduct->detail), "%s", detail);
        ds_accel__sanitize(conduct->detail, sizeof(conduct->detail));
    } else {
        /* All at once: who accepts the first would only meet the next. */
        length = strlen(conduct->detail);
        snprintf(conduct->detail + length, sizeof(conduct->detail) - length, "%s%s",
                 conduct->has_more ? ", " : "; also ", code);
        conduct->has_more = true;
    }
}

/* The state a helper may report; any other would be a defect or a forgery. */
static bool take_result(struct helper *helper, const struct ds_accel__frame *frame)
{
    static const enum ds_accel__gate gates[] = {DS_ACCEL__GATE_LOAD, DS_ACCEL__GATE_ENTRY,
                                                DS_ACCEL__GATE_PROBE};
    struct ds_accel__candidate *candidate = helper->candidate;
    struct ds_accel__probe_result result;
    const struct ds_accel__reason *reason;
    const char *code = ds_accel__frame_text(frame, sizeof(result), 0);
    const char *detail = ds_accel__frame_text(frame, sizeof(result), 1);

    reason = ds_accel__reason(code);
    if (!ds_accel__frame_struct(frame, &result, sizeof(result)) ||
        result.state < DS_ACCEL_STATE_AVAILABLE || result.state > DS_ACCEL_STATE_REJECTED ||
        (reason == NULL && code[0] != '\0') || result.stage >= DS_ACCEL__GATE_COUNT ||
        (result.state == DS_ACCEL_STATE_AVAILABLE &&
         (result.verdict.device_count == 0 ||
          result.verdict.device_count > DS_ACCEL__DEVICE_LIMIT))) {
        return false;
    }
    candidate->verdict = result.verdict;
    ds_accel__sanitize(candidate->verdict.detail, sizeof(candidate->verdict.detail));
    ds_accel__sanitize(candidate->verdict.variant, sizeof(candidate->verdict.variant));
    candidate->optional_features = result.optional_features;
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(gates); i++) {
        const char *evidence = ds_accel__frame_text(frame, sizeof(result), (unsigned)i + 2);

        if (result.gates[gates[i]] == DS_ACCEL__GATE_PASSED) {
            ds_accel__candidate_pass(candidate, gates[i], "%s", evidence);
        } else if (result.gates[gates[i]] == DS_ACCEL__GATE_FAILED && reason != NULL) {
            struct ds_accel__finding finding = {0};

            ds_accel__find(&finding, reason->code, "%s", evidence);
            ds_accel__candidate_fail(candidate, gates[i], result.state, &finding);
        }
    }
    ds_accel__candidate_set(candidate, result.state, reason != NULL ? reason->code : "", "%s",
                            detail);
    candidate->has_verdict = true;
    helper->has_result = true;
    return true;
}

/* What it logs is the caller's to print and keep: that is not without an end either. */
static void take_log(const ds_accel_t *context, struct helper *helper,
                     const struct ds_accel__frame *frame)
{
    uint32_t level;
    char line[1024];
    char topic[DS_ACCEL__NAME_SIZE];

    if (helper->logged_bytes > LOG_LIMIT_BYTES) {
        return;
    }
    helper->logged_bytes += frame->payload_bytes;
    if (helper->logged_bytes > LOG_LIMIT_BYTES) {
        ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_WARN,
                      "%s: it logs more than %u bytes: the rest is left out",
                      helper->candidate->name, LOG_LIMIT_BYTES);
    } else if (ds_accel__frame_struct(frame, &level, sizeof(level))) {
        snprintf(topic, sizeof(topic), "%s", ds_accel__frame_text(frame, sizeof(level), 0));
        snprintf(line, sizeof(line), "%s", ds_accel__frame_text(frame, sizeof(level), 1));
        ds_accel__sanitize(topic, sizeof(topic));
        ds_accel__sanitize(line, sizeof(line));
        ds_accel__log(&context->log, topic, level, "%s", line);
    }
}

static void take_signal(struct helper *helper, const struct ds_accel__frame *frame)
{
    struct {
        int32_t signal;
        int32_t code;
        uint64_t address;
    } payload;

    if (ds_accel__frame_struct(frame, &payload, sizeof(payload))) {
        helper->signal = payload.signal;
        /* Sent by a program, a signal has no address. */
        helper->address = payload.code > 0 ? payload.address : UINT64_MAX;
    }
}

static void take_rule(const struct helper *helper, const struct ds_accel__frame *frame)
{
    const struct ds_accel__lint_sink *lint = helper->candidate->lint;
    uint32_t rule[2];

    if (lint != NULL && ds_accel__frame_struct(frame, rule, sizeof(rule))) {
        lint->judge(lint->user_data, rule[0], rule[1],
                    ds_accel__frame_text(frame, sizeof(rule), 0));
    }
}

/* What came of a helper's channel. */
enum heard {
    HEARD_SOMETHING,
    HEARD_END,     /* the candidate is done */
    HEARD_GARBAGE, /* not from our end */
    HEARD_FORGERY
};

static enum heard take_frame(ds_accel_t *context, struct helper *helper,
                             const struct ds_accel__frame *frame)
{
    uint32_t stage;

    switch (frame->kind) {
    case DS_ACCEL__FRAME_HELLO:
        if (helper->has_said_hello) {
            return HEARD_FORGERY; /* it would put the deadline off */
        }
        helper->has_said_hello = true;
        helper->deadline_ns = now_ns() + (uint64_t)setting(context, "timeout_ms", 30000) * 1000000u;
        break;
    case DS_ACCEL__FRAME_STAGE:
        if (!ds_accel__frame_struct(frame, &stage, sizeof(stage)) || stage < DS_ACCEL__GATE_LOAD ||
            stage > DS_ACCEL__GATE_PROBE) {
            return HEARD_FORGERY;
        }
        helper->stage = stage;
        break;
    case DS_ACCEL__FRAME_LOG:
        take_log(context, helper, frame);
        break;
    case DS_ACCEL__FRAME_RESULT:
        return take_result(helper, frame) ? HEARD_SOMETHING : HEARD_FORGERY;
    case DS_ACCEL__FRAME_CONDUCT:
        helper->conduct.is_tainted = true;
        note_conduct(helper, ds_accel__frame_text(frame, 0, 0), ds_accel__frame_text(frame, 0, 1));
        break;
    case DS_ACCEL__FRAME_RULE:
        take_rule(helper, frame);
        break;
    case DS_ACCEL__FRAME_EXIT:
        helper->called_exit = true;
        break;
    case DS_ACCEL__FRAME_SIGNAL:
        take_signal(helper, frame);
        break;
    case DS_ACCEL__FRAME_END:
        return helper->has_result ? HEARD_END : HEARD_FORGERY;
    default:
        return HEARD_FORGERY;
    }
    return HEARD_SOMETHING;
}

/* Read what there is, with at most that many reads. *status_out: ERR_NO_MEMORY. */
static enum heard hear(ds_accel_t *context, struct helper *helper, int reads, int32_t *status_out)
{
    while (helper->channel >= 0) {
        struct ds_accel__frame frame;
        enum ds_accel__frame_result result = ds_accel__frame_next(&helper->reader, &frame);
        enum heard heard = HEARD_SOMETHING;
        size_t room;
        void *data;
        ssize_t count;

        if (result == DS_ACCEL__FRAME_GARBLED || result == DS_ACCEL__FRAME_FORGED) {
            return result == DS_ACCEL__FRAME_GARBLED ? HEARD_GARBAGE : HEARD_FORGERY;
        }
        if (result == DS_ACCEL__FRAME_READY) {
            heard = take_frame(context, helper, &frame);
            if (heard != HEARD_SOMETHING) {
                return heard;
            }
            continue;
        }
        if (reads-- == 0) {
            return HEARD_SOMETHING; /* it logs as fast as this reads: deadlines come first */
        }
        data = ds_accel__frame_room(&helper->reader, &room);
        if (data == NULL) {
            *status_out = ds_accel__no_memory();
            return HEARD_SOMETHING;
        }
        count = recv(helper->channel, data, room, 0);
        if (count > 0) {
            helper->reader.size_bytes += (size_t)count;
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            close_fd(&helper->channel);
        } else if (errno == EAGAIN) {
            return HEARD_SOMETHING;
        }
    }
    return HEARD_SOMETHING;
}

/* ---- verdicts ------------------------------------------------------------------------------- */

static const char *stage_reason(uint32_t stage, const char *what)
{
    char code[64];
    const struct ds_accel__reason *reason;

    snprintf(code, sizeof(code), "%s_%s",
             stage == DS_ACCEL__GATE_LOAD    ? "load"
             : stage == DS_ACCEL__GATE_ENTRY ? "entry"
                                             : "probe",
             what);
    reason = ds_accel__reason(code);
    return reason != NULL ? reason->code : "helper_failed";
}

static const char *signal_code(int signal)
{
    return signal == SIGSEGV   ? "segv"
           : signal == SIGILL  ? "ill"
           : signal == SIGABRT ? "abort"
                               : "signal";
}

/* What C++ runtimes print before they give up on an exception. */
static bool has_thrown(const struct helper *helper)
{
    static const char *const words[] = {"terminate called after throwing",
                                        "terminating with uncaught exception",
                                        "terminating due to uncaught exception"};
    const struct capture *output = &helper->output[1];

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(words); i++) {
        if (memmem(output->kept, output->kept_bytes, words[i], strlen(words[i])) != NULL) {
            return true;
        }
    }
    return false;
}

static void judge_signal(const struct helper *helper, int signal, struct ds_accel__finding *finding)
{
    const char *name = sigabbrev_np(signal);
    const char *what = signal_code(signal);

    if (signal == SIGABRT && has_thrown(helper)) {
        what = "exception";
    }
    if (helper->signal == signal && helper->address != UINT64_MAX && signal != SIGABRT) {
        ds_accel__find(finding, stage_reason(helper->stage, what), "SIG%s at address 0x%llx",
                       name != NULL ? name : "?", (unsigned long long)helper->address);
    } else {
        ds_accel__find(finding, stage_reason(helper->stage, what), "SIG%s",
                       name != NULL ? name : "?");
    }
}

/* Somebody else may have reaped it: a SIGCHLD handler of the program's. */
static void find_exit(struct ds_accel__finding *finding, const char *reason, bool was_reaped,
                      const siginfo_t *info)
{
    if (was_reaped) {
        ds_accel__find(finding, reason, "exit code %d", info->si_status);
    } else {
        ds_accel__find(finding, reason, "its exit code was taken by this program");
    }
}

/* A helper ended before it said END. was_reaped: info tells how. */
static void judge_end(const struct helper *helper, bool was_reaped, const siginfo_t *info,
                      struct ds_accel__finding *finding)
{
    bool was_killed = was_reaped && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED);

    if (!helper->has_said_hello) {
        const struct capture *said = &helper->output[1];

        find_exit(finding, "helper_failed", was_reaped, info);
        if (said->kept_bytes > 0) {
            size_t length = strlen(finding->detail);

            snprintf(finding->detail + length, sizeof(finding->detail) - length, ": %.*s",
                     (int)(said->kept_bytes < 300 ? said->kept_bytes : 300), said->kept);
        }
    } else if (helper->signal != 0) {
        judge_signal(helper, helper->signal, finding);
    } else if (was_killed) {
        judge_signal(helper, info->si_status, finding);
    } else if (helper->called_exit) {
        find_exit(finding, stage_reason(helper->stage, "exit"), was_reaped, info);
    } else if (was_reaped && info->si_status == DS_ACCEL__PROBE_EXIT_FAILED) {
        ds_accel__find(finding, "helper_failed", "it ran out of memory in %s",
                       ds_accel__gate_name(helper->stage));
    } else if (was_reaped && info->si_status == DS_ACCEL__PROBE_EXIT_CLOSED) {
        ds_accel__find(finding, "result_closed", "in or after %s",
                       ds_accel__gate_name(helper->stage));
    } else {
        find_exit(finding, stage_reason(helper->stage, "ended"), was_reaped, info);
    }
}

static void keep_output(struct helper *helper)
{
    struct ds_accel__text text = {0};

    for (int i = 0; i < 2; i++) {
        const struct capture *capture = &helper->output[i];

        if (capture->kept_bytes > 0) {
            ds_accel__text_add(&text, "%s%.*s", text.size_bytes > 0 ? "\n" : "",
                               (int)capture->kept_bytes, capture->kept);
            if (capture->total_bytes > capture->kept_bytes) {
                ds_accel__text_add(
                    &text, "... (%llu bytes more)",
                    (unsigned long long)(capture->total_bytes - capture->kept_bytes));
            }
        }
    }
    if (text.size_bytes > 0 && !text.failed) {
        ds_accel__candidate_keep_output(helper->candidate, text.data);
    }
    ds_accel__text_clear(&text);
}

static void note_floods(struct helper *helper)
{
    static const char *const codes[] = {"prints_stdout", "prints_stderr"};
    char detail[64];

    for (int i = 0; i < 2; i++) {
        take_output(&helper->output[i]);
        if (helper->output[i].total_bytes > OUTPUT_FLOOD_BYTES) {
            snprintf(detail, sizeof(detail), "over %u bytes", OUTPUT_FLOOD_BYTES);
            helper->conduct.is_tainted = true; /* there may be more in the pipe */
            note_conduct(helper, codes[i], detail);
        }
    }
}

/* Conduct matters where the plugin would be used: in the caller's process. */
static void judge_conduct(struct helper *helper)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    const struct conduct *conduct = &helper->conduct;
    struct ds_accel__finding finding = {0};

    if (candidate->state != DS_ACCEL_STATE_AVAILABLE) {
        return;
    }
    if (conduct->code != NULL) {
        ds_accel__find(&finding, conduct->code, "%s", conduct->detail);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_CONDUCT, DS_ACCEL_STATE_REJECTED,
                                 &finding);
    } else {
        const char *stage = candidate->stage;

        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_CONDUCT, "%s%s",
                                 conduct->tolerated[0] != '\0' ? "tolerated: "
                                                               : "the process is as it was",
                                 conduct->tolerated);
        candidate->stage = stage; /* where its own answer came from */
    }
}

static void set_elapsed(struct helper *helper)
{
    helper->candidate->elapsed_us += (now_ns() - helper->start_ns) / 1000;
}

/* It said END: the answer stands. The helper goes on, unless its process is not as it was. */
static void finish_candidate(ds_accel_t *context, struct helper *helper)
{
    siginfo_t info;

    note_floods(helper);
    keep_output(helper);
    judge_conduct(helper);
    set_elapsed(helper);
    helper->candidate = NULL;
    helper->is_used = true;
    if (helper->conduct.is_tainted) {
        end_helper(context, helper, false, &info);
    }
}

/* What it had behind it when it was lost. */
static void pass_before(struct ds_accel__candidate *candidate, uint32_t stage)
{
    if (stage > DS_ACCEL__GATE_LOAD) {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_LOAD, "opened by ds-accel-probe");
    }
    if (stage > DS_ACCEL__GATE_ENTRY) {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_ENTRY, DS_ACCEL_ENTRY_V1_SYMBOL);
    }
}

/*
 * The candidate took its helper along: into its end, past its deadline, or into saying nonsense. If
 * others were asked in that process before, one of them may be to blame: then it is asked once more
 * in a new one.
 */
static int32_t lose_candidate(ds_accel_t *context, struct helper *helper, enum heard heard,
                              bool is_hung)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    struct helper before;
    struct ds_accel__finding finding = {0};
    bool was_reaped;
    siginfo_t info;
    uint32_t state = DS_ACCEL_STATE_CRASHED;

    take_output(&helper->output[0]);
    take_output(&helper->output[1]);
    keep_output(helper);
    set_elapsed(helper);
    before = *helper;
    was_reaped = end_helper(context, helper, is_hung, &info);
    if (is_hung && before.has_said_hello) {
        state = DS_ACCEL_STATE_TIMED_OUT;
        ds_accel__find(&finding, stage_reason(before.stage, "hung"), "no answer within %lld ms",
                       setting(context, "timeout_ms", 30000));
    } else if (heard == HEARD_GARBAGE) {
        ds_accel__find(&finding, "result_garbled", "in %s", ds_accel__gate_name(before.stage));
    } else if (heard == HEARD_FORGERY) {
        ds_accel__find(&finding, "result_forged", "in %s", ds_accel__gate_name(before.stage));
    } else {
        judge_end(&before, was_reaped, &info, &finding);
    }
    if (strcmp(finding.reason, "helper_failed") == 0) {
        state = DS_ACCEL_STATE_ERROR;
    }
    ds_accel__sanitize(finding.detail, sizeof(finding.detail));
    if (before.is_used && !is_hung) {
        ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_INFO,
                      "%s: %s in a process that others were asked in; asking again in a new one",
                      candidate->name, finding.reason);
        return ask(context, helper, candidate);
    }
    pass_before(candidate, before.stage);
    ds_accel__candidate_fail(candidate,
                             strncmp(finding.reason, "result_", 7) == 0 ? DS_ACCEL__GATE_CONDUCT
                                                                        : before.stage,
                             state, &finding);
    return DS_ACCEL_OK;
}

/* ---- the loop ------------------------------------------------------------------------------- */

#define POLLED 4 /* descriptors of one helper */

static void fill_polled(const struct helper *helper, struct pollfd *polled)
{
    polled[0] = (struct pollfd){.fd = helper->channel, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = helper->output[0].fd, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = helper->output[1].fd, .events = POLLIN};
    polled[3] = (struct pollfd){.fd = helper->pidfd, .events = POLLIN};
}

/* Milliseconds to the next deadline, rounded up; -1 if nobody is being asked. */
static int time_left(const struct ds_accel__prober *prober)
{
    uint64_t now = now_ns();
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < prober->width; i++) {
        if (prober->helpers[i].pid != 0 && prober->helpers[i].candidate != NULL &&
            prober->helpers[i].deadline_ns < next) {
            next = prober->helpers[i].deadline_ns;
        }
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    next = next > now ? (next - now) / 1000000 + 1 : 0;
    return next > 1000 ? 1000 : (int)next;
}

/* After poll(): hear one helper, and judge. */
static int32_t attend(ds_accel_t *context, struct helper *helper, const struct pollfd *polled)
{
    bool has_ended = polled[3].revents != 0;
    int32_t status = DS_ACCEL_OK;
    enum heard heard;

    for (int i = 0; i < 2; i++) {
        if (polled[1 + i].revents != 0) {
            take_output(&helper->output[i]);
        }
    }
    /* What it said last, of how it ended, may stand behind much that it logged. */
    heard = hear(context, helper, has_ended ? READS_AT_END : READS_AT_ONCE, &status);
    if (status < 0) {
        return status;
    }
    if (heard == HEARD_END) {
        finish_candidate(context, helper);
    } else if (heard != HEARD_SOMETHING || has_ended) {
        status = lose_candidate(context, helper, heard, false);
    } else if (helper->channel < 0 && helper->pidfd < 0) {
        wait_end(helper, CLOSED_GRACE_NS);
        status = lose_candidate(context, helper, heard, false);
    } else if (now_ns() >= helper->deadline_ns) {
        status = lose_candidate(context, helper, heard, true);
    }
    return status;
}

static bool is_asked(const struct ds_accel__prober *prober,
                     const struct ds_accel__candidate *candidate)
{
    for (size_t i = 0; i < prober->width; i++) {
        if (prober->helpers[i].pid != 0 && prober->helpers[i].candidate == candidate) {
            return true;
        }
    }
    return false;
}

/* True if one is available, all before it have a verdict, and all behind it were asked ahead. */
static bool is_decided(const struct ds_accel__prober *prober,
                       struct ds_accel__candidate *const *candidates, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        if (!candidates[i]->has_verdict || is_asked(prober, candidates[i])) {
            return false;
        }
        if (candidates[i]->state == DS_ACCEL_STATE_AVAILABLE) {
            return candidates[i + 1]->is_ahead;
        }
    }
    return false;
}

/* Those that are still asked were asked for nothing: one that hangs must not delay the choice. */
static void drop_asked(struct ds_accel__prober *prober)
{
    for (size_t i = 0; i < prober->width; i++) {
        struct helper *helper = &prober->helpers[i];

        if (helper->pid != 0 && helper->candidate != NULL) {
            helper->candidate->has_verdict = false;
            for (int gate = DS_ACCEL__GATE_LOAD; gate < DS_ACCEL__GATE_COUNT; gate++) {
                helper->candidate->gates[gate].result = DS_ACCEL__GATE_SKIPPED;
            }
            ds_accel__candidate_set(helper->candidate, DS_ACCEL_STATE_NOT_PROBED, "", "%s", "");
            dismiss(helper);
            helper->candidate = NULL;
        }
    }
}

static size_t count_busy(const struct ds_accel__prober *prober)
{
    size_t count = 0;

    for (size_t i = 0; i < prober->width; i++) {
        count += prober->helpers[i].pid != 0 && prober->helpers[i].candidate != NULL;
    }
    return count;
}

/*
 * Ask the next ones, as many as helpers are free. Where no further helper can be started, those
 * that are there do the work.
 */
static int32_t ask_next(ds_accel_t *context, struct ds_accel__candidate **candidates, size_t count,
                        size_t *next)
{
    struct ds_accel__prober *prober = context->prober;
    bool is_full = false;

    for (size_t i = 0; i < prober->width && *next < count; i++) {
        struct helper *helper = &prober->helpers[i];
        int32_t status;

        if (helper->candidate != NULL || (is_full && helper->pid == 0)) {
            continue;
        }
        status = ask(context, helper, candidates[*next]);
        if (status == DS_ACCEL_ERR_LIMIT && count_busy(prober) > 0) {
            is_full = true;
        } else if (status < 0) {
            return status;
        } else {
            (*next)++;
        }
    }
    return DS_ACCEL_OK;
}

/* Wait until one of those that are asked says or does something, and hear them. */
static int32_t wait_and_attend(ds_accel_t *context, int left_ms)
{
    struct ds_accel__prober *prober = context->prober;
    struct pollfd polled[WIDTH_LIMIT * POLLED];
    struct helper *busy[WIDTH_LIMIT];
    int32_t status = DS_ACCEL_OK;
    size_t count = 0;

    /* No more than there are: the limit of descriptors is one of entries as well. */
    for (size_t i = 0; i < prober->width; i++) {
        if (prober->helpers[i].pid != 0 && prober->helpers[i].candidate != NULL) {
            fill_polled(&prober->helpers[i], &polled[count * POLLED]);
            busy[count++] = &prober->helpers[i];
        }
    }
    if (poll(polled, count * POLLED, left_ms) < 0 && errno != EINTR) {
        return ds_accel__error(DS_ACCEL_ERR_INTERNAL, "poll: %s", strerror(errno));
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        status = attend(context, busy[i], &polled[i * POLLED]);
    }
    return status;
}

/*
 * Ask the candidates, each in the first helper that is free, until all have a verdict, or those
 * that were asked ahead of their turn are not needed.
 */
static int32_t run(ds_accel_t *context, struct ds_accel__candidate **candidates, size_t count)
{
    struct ds_accel__prober *prober = context->prober;
    int32_t status = DS_ACCEL_OK;
    size_t next = 0;

    for (;;) {
        int left;

        if (status >= 0) {
            status = ask_next(context, candidates, count, &next);
        }
        if (status >= 0 && context->meanwhile != NULL) {
            context->meanwhile(context);
            context->meanwhile = NULL;
        }
        if (status >= 0 && is_decided(prober, candidates, count)) {
            drop_asked(prober);
            return status;
        }
        left = time_left(prober);
        if (status < 0 || (left < 0 && next >= count)) {
            return status;
        }
        if (left < 0) {
            continue; /* no helper could be started for the last one */
        }
        status = wait_and_attend(context, left);
    }
}

int32_t ds_accel__probe_all(ds_accel_t *context, struct ds_accel__candidate **candidates,
                            size_t count)
{
    bool isolated = ds_accel__probe_is_isolated(context);
    int32_t status = DS_ACCEL_OK;
    size_t left = 0;

    /* What the program registered is its own code already. */
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (!isolated || candidates[i]->is_registered) {
            status = ds_accel__probe_here(candidates[i]);
        } else {
            struct ds_accel__candidate *candidate = candidates[i];

            candidates[i] = candidates[left]; /* each stays in the array once */
            candidates[left++] = candidate;
        }
    }
    if (status >= 0 && left > 0) {
        reap_abandoned();
        status = make_prober(context);
        status = status < 0 ? status : run(context, candidates, left);
    }
    return status;
}

void ds_accel__probe_release(ds_accel_t *context)
{
    struct ds_accel__prober *prober = context->prober;

    for (size_t i = 0; prober != NULL && i < prober->width; i++) {
        if (prober->helpers[i].pid != 0) {
            dismiss(&prober->helpers[i]);
        }
    }
}

void ds_accel__probe_finish(ds_accel_t *context)
{
    struct ds_accel__prober *prober = context->prober;
    siginfo_t info;

    ds_accel__probe_release(context);
    for (size_t i = 0; prober != NULL && i < prober->width; i++) {
        if (prober->helpers[i].pid != 0) {
            end_helper(context, &prober->helpers[i], false, &info);
        }
    }
    if (prober != NULL) {
        free(prober->program);
        free(prober);
        context->prober = NULL;
    }
}
