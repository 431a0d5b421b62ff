/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The helper process, ds-accel-probe: loads and asks the plugins that the library names on a
 * socket, one after another, and says at each stage what it is about to run, so that the library
 * knows where a plugin was when this process ended, hung or went wrong. See probe.c for the other
 * end.
 *
 * A plugin may do anything here: close or write to the socket, install handlers, leave threads and
 * children. So every answer is sealed (frame.c), what a crash looks like is said by a handler of
 * our own on a stack of its own, and after a plugin that changed the process the library takes
 * another.
 */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_LIMIT_BYTES (2 * 1024 * 1024u) /* options of one backend */
#define GRACE_TRIES 40                         /* for threads and children that are just ending */
#define SIGNAL_STACK_BYTES 65536

static struct {
    ds_accel_t *context;
    struct ds_accel__frame_reader reader;
    uint64_t token;
    uint32_t sequence;
    pid_t pid;            /* a plugin may fork, and the child is not us */
    pthread_mutex_t lock; /* a plugin's threads log too */
    bool is_plugin_running;
    struct ds_accel__guard guard;
    size_t thread_count; /* of this process, before any plugin */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- saying --------------------------------------------------------------------------------- */

static void write_all(const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t count = send(DS_ACCEL__PROBE_CHANNEL, at, size, MSG_NOSIGNAL);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            /* A plugin closed it, or the library is gone: there is nobody to tell anything. */
            _exit(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        at += count;
        size -= (size_t)count;
    }
}

static void say_now(uint16_t kind, const void *payload, size_t payload_bytes)
{
    char frame[DS_ACCEL__FRAME_HEAD_BYTES + 4096];
    char head[DS_ACCEL__FRAME_HEAD_BYTES];

    if (payload_bytes <= sizeof(frame) - DS_ACCEL__FRAME_HEAD_BYTES) {
        ds_accel__frame_seal(frame, kind, server.sequence++, payload, (uint32_t)payload_bytes,
                             server.token);
        memcpy(frame + DS_ACCEL__FRAME_HEAD_BYTES, payload, payload_bytes);
        write_all(frame, DS_ACCEL__FRAME_HEAD_BYTES + payload_bytes);
        return;
    }
    ds_accel__frame_seal(head, kind, server.sequence++, payload, (uint32_t)payload_bytes,
                         server.token);
    write_all(head, sizeof(head));
    write_all(payload, payload_bytes);
}

static void say(uint16_t kind, const void *payload, size_t payload_bytes)
{
    if (getpid() == server.pid) {
        pthread_mutex_lock(&server.lock);
        say_now(kind, payload, payload_bytes);
        pthread_mutex_unlock(&server.lock);
    }
}

/* A struct, then texts, each with its NUL; what does not fit is left out. */
struct message {
    char data[16384];
    size_t size;
};

static void put_struct(struct message *message, const void *data, size_t size)
{
    memcpy(message->data + message->size, data, size);
    message->size += size;
}

static void put_text(struct message *message, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;
    size_t room = sizeof(message->data) - message->size;

    if (length >= room) {
        length = room > 0 ? room - 1 : 0;
    }
    if (room > 0) {
        memcpy(message->data + message->size, text != NULL ? text : "", length);
        message->data[message->size + length] = '\0';
        message->size += length + 1;
    }
}

static void on_log(void *user_data, uint32_t level, const char *topic, const char *line)
{
    struct message message = {.size = 0};

    (void)user_data;
    put_struct(&message, &level, sizeof(level));
    put_text(&message, topic);
    put_text(&message, line);
    say(DS_ACCEL__FRAME_LOG, message.data, message.size);
}

static void on_stage(ds_accel_t *context, enum ds_accel__gate gate)
{
    uint32_t stage = gate;

    (void)context;
    say(DS_ACCEL__FRAME_STAGE, &stage, sizeof(stage));
}

static void on_conduct(void *user_data, const char *reason, const char *detail)
{
    struct message message = {.size = 0};

    (void)user_data;
    put_text(&message, reason);
    put_text(&message, detail);
    say(DS_ACCEL__FRAME_CONDUCT, message.data, message.size);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void on_exit_called(void)
{
    if (server.is_plugin_running) {
        say(DS_ACCEL__FRAME_EXIT, "", 0);
    }
}

/* Only what is safe in a signal handler: seal and send. */
static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
    struct {
        int32_t signal;
        int32_t code;
        uint64_t address;
    } payload = {signal, info->si_code, (uint64_t)(uintptr_t)info->si_addr};

    (void)ucontext;
    /* Without the lock: this very thread may hold it. */
    if (server.is_plugin_running && getpid() == server.pid) {
        say_now(DS_ACCEL__FRAME_SIGNAL, &payload, sizeof(payload));
    }
    raise(signal); /* with its default action, as soon as this returns */
}

static void watch_signals(void)
{
    static const int signals[] = {SIGSEGV, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGTRAP, SIGSYS};
    static char stack_bytes[SIGNAL_STACK_BYTES];
    struct sigaction action = {.sa_sigaction = on_signal};
    stack_t stack = {.ss_sp = stack_bytes, .ss_size = sizeof(stack_bytes)};

    sigaltstack(&stack, NULL);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(signals); i++) {
        sigaction(signals[i], &action, NULL);
    }
}

/* ---- what a plugin leaves behind ------------------------------------------------------------ */

static size_t count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    size_t count = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

/* Reap what has ended. True if a child lives; as their reaper, grandchildren count as well. */
static bool has_children(void)
{
    pid_t pid;

    do {
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

static void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool remains(bool (*look)(void))
{
    for (int i = 0; i < GRACE_TRIES; i++) {
        if (!look()) {
            return false;
        }
        wait_a_moment();
    }
    return look();
}

static bool has_threads(void)
{
    return count_threads() > server.thread_count;
}

/* Those that left our process group too: the library ends only the group. */
static void end_children(void)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[64];
        char *stat = NULL;
        int pid = atoi(entry->d_name);
        int parent = 0;

        if (pid <= 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (ds_accel__file_read_machine("", path, &stat) >= 0 && stat != NULL) {
            const char *end = strrchr(stat, ')');

            if (end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 && parent == getpid()) {
                kill(pid, SIGKILL);
            }
        }
        free(stat);
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static void report_conduct(void)
{
    char detail[64];

    if (has_children() && remains(has_children)) {
        on_conduct(NULL, "leaves_process", "a child process is still there");
        end_children();
    }
    if (has_threads() && remains(has_threads)) {
        snprintf(detail, sizeof(detail), "%zu more than before",
                 count_threads() - server.thread_count);
        on_conduct(NULL, "leaves_thread", detail);
    }
    ds_accel__guard_compare(&server.guard, on_conduct, NULL);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void say_result(const struct ds_accel__candidate *candidate)
{
    struct message message = {.size = 0};
    struct ds_accel__probe_result result = {
        .state = candidate->state,
        .optional_features = candidate->optional_features,
        .verdict = candidate->verdict,
    };

    for (uint32_t gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        result.gates[gate] = candidate->gates[gate].result;
        if (strcmp(ds_accel__gate_name(gate), candidate->stage) == 0) {
            result.stage = gate;
        }
    }
    put_struct(&message, &result, sizeof(result));
    put_text(&message, candidate->reason);
    put_text(&message, candidate->detail);
    put_text(&message, candidate->gates[DS_ACCEL__GATE_LOAD].evidence);
    put_text(&message, candidate->gates[DS_ACCEL__GATE_ENTRY].evidence);
    put_text(&message, candidate->gates[DS_ACCEL__GATE_PROBE].evidence);
    say(DS_ACCEL__FRAME_RESULT, message.data, message.size);
}

/* The candidate stays until the process ends: its plugin may have kept the host's table. */
static void serve_ask(const struct ds_accel__frame *frame)
{
    struct ds_accel__probe_ask ask;
    struct ds_accel__candidate *candidate;
    const char *options = ds_accel__frame_text(frame, sizeof(ask), 2);

    if (!ds_accel__frame_struct(frame, &ask, sizeof(ask))) {
        _exit(1);
    }
    server.context->log.level = ask.log_level;
    json_decref(server.context->config.merged);
    server.context->config.merged = json_loads(options, 0, NULL);
    candidate = ds_accel__candidate_create(server.context,
                                           ds_accel__frame_text(frame, sizeof(ask), 0),
                                           ds_accel__frame_text(frame, sizeof(ask), 1));
    if (candidate == NULL) {
        _exit(1);
    }
    candidate->note_features = ask.note_features;
    candidate->file = ask.file;
    candidate->has_file = true;
    server.is_plugin_running = true;
    if (ds_accel__probe_here(candidate) < 0) {
        _exit(1); /* out of memory: the library says that the helper failed */
    }
    fflush(NULL);
    server.is_plugin_running = false;
    say_result(candidate);
    report_conduct();
    say(DS_ACCEL__FRAME_END, "", 0);
}

static void serve_setup(const struct ds_accel__frame *frame)
{
    struct ds_accel__probe_setup setup;

    if (!ds_accel__frame_struct(frame, &setup, sizeof(setup)) ||
        strcmp(ds_accel__frame_text(frame, sizeof(setup), 0), DS_ACCEL_VERSION) != 0) {
        fprintf(stderr, "this ds-accel-probe is of version %s, the library of another\n",
                DS_ACCEL_VERSION);
        _exit(1);
    }
    server.token = server.reader.token = setup.token;
    server.context = ds_accel__context_bare(ds_accel__frame_text(frame, sizeof(setup), 1),
                                            setup.ignores_env != 0);
    if (server.context == NULL) {
        fputs("host memory is exhausted\n", stderr);
        _exit(1);
    }
    server.context->log.sink = on_log;
    server.context->on_stage = on_stage;
    say(DS_ACCEL__FRAME_HELLO, DS_ACCEL_VERSION, sizeof(DS_ACCEL_VERSION));
}

/* One frame; false when the library has closed its end. */
static bool read_frame(struct ds_accel__frame *frame)
{
    for (;;) {
        enum ds_accel__frame_result result = ds_accel__frame_next(&server.reader, frame);
        size_t room;
        void *data;
        ssize_t count;

        if (result != DS_ACCEL__FRAME_MORE) {
            return result == DS_ACCEL__FRAME_READY;
        }
        data = ds_accel__frame_room(&server.reader, &room);
        do {
            count = data != NULL ? recv(DS_ACCEL__PROBE_CHANNEL, data, room, 0) : 0;
        } while (count < 0 && errno == EINTR);
        if (count < 0 && server.sequence > 0) {
            _exit(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        if (count <= 0) {
            return false;
        }
        server.reader.size_bytes += (size_t)count;
    }
}

static bool is_started_by_library(int argc, char **argv)
{
    return argc == 2 && getppid() == atoi(argv[1]) && fcntl(DS_ACCEL__PROBE_CHANNEL, F_GETFD) >= 0;
}

int ds_accel__probe_main(int argc, char **argv)
{
    struct ds_accel__frame frame;

    /* With the one who asks, and not with the thread's process group, ends this one too. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!is_started_by_library(argc, argv)) {
        fputs("ds-accel-probe is started by the ds-accel library, to ask plugins in a process of "
              "their own.\nTo see what it finds: ds-accel explain\n",
              stderr);
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    watch_signals();
    atexit(on_exit_called);
    server.pid = getpid();
    server.reader.limit_bytes = REQUEST_LIMIT_BYTES;
    server.thread_count = count_threads();
    ds_accel__guard_take_alone(&server.guard);
    while (read_frame(&frame)) {
        if (server.context == NULL && frame.kind == DS_ACCEL__FRAME_SETUP) {
            serve_setup(&frame);
        } else if (server.context != NULL && frame.kind == DS_ACCEL__FRAME_ASK) {
            serve_ask(&frame);
        } else {
            break;
        }
    }
    _exit(0); /* no destructor of a plugin's library runs: some hang */
}
