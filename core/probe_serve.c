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
 * another. One thread watches the library's process and channel: when either ends, so does all that
 * was started here, also what a parent-death signal would not reach.
 */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_LIMIT_BYTES (2 * 1024 * 1024u) /* options of one backend */
#define GRACE_TRIES 40                         /* for threads and children that are just ending */
#define SIGNAL_STACK_BYTES 65536
#define WATCH_STACK_BYTES 262144

static struct {
    ds_accel_t *context;
    struct ds_accel__frame_reader reader;
    uint64_t token;
    uint32_t sequence;
    pid_t pid;            /* a plugin may fork, and the child is not us */
    pthread_mutex_t lock; /* a plugin's threads log too */
    atomic_int speaker;   /* thread that holds it; 0: none */
    bool is_plugin_running;
    struct ds_accel__guard guard;
    size_t thread_count; /* of this process, before any plugin */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- children -------------------------------------------------------------------------------- */

static void wait_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The parent in the text of a /proc/PID/stat; 0 if there is none. */
static pid_t parent_of(const char *stat)
{
    const char *end = strrchr(stat, ')');
    pid_t parent = 0;

    /* ") S 123": the state is one letter. */
    if (end == NULL || strlen(end) < 5) {
        return 0;
    }
    for (end += 4; *end >= '0' && *end <= '9'; end++) {
        parent = parent * 10 + (*end - '0');
    }
    return parent;
}

static bool is_child(pid_t pid)
{
    char path[64] = "/proc/";
    char digits[16];
    char stat[512];
    size_t length = 6;
    size_t count = 0;
    ssize_t size;
    int fd;

    for (pid_t left = pid; left > 0; left /= 10) {
        digits[count++] = (char)('0' + left % 10);
    }
    while (count > 0) {
        path[length++] = digits[--count];
    }
    memcpy(path + length, "/stat", sizeof("/stat"));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    stat[size > 0 ? size : 0] = '\0';
    return parent_of(stat) == server.pid;
}

static size_t kill_listed(const char *entries, long size)
{
    size_t killed = 0;

    for (long at = 0; at < size;) {
        const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
        const char *digit = entry->d_name;
        pid_t pid = 0;

        for (; *digit >= '0' && *digit <= '9'; digit++) {
            pid = pid * 10 + (*digit - '0');
        }
        if (*digit == '\0' && pid > 0 && is_child(pid)) {
            killed += kill(pid, SIGKILL) == 0;
        }
        at += entry->d_reclen;
    }
    return killed;
}

/*
 * End our children, also those that left our process group: the library ends only the group. Calls
 * only what is safe in a signal handler, and beside a thread that hangs in malloc().
 */
static void end_children(void)
{
    int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char entries[4096];
    long size;

    while (dir >= 0 && (size = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0) {
        kill_listed(entries, size);
    }
    if (dir >= 0) {
        close(dir);
    }
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

/* All that was started here, generation after generation: orphans become our children. */
static void end_tree(void)
{
    for (int i = 0; i < GRACE_TRIES && has_children(); i++) {
        end_children();
        wait_a_moment();
    }
}

void ds_accel__probe_end_tree(void)
{
    server.pid = getpid();
    end_tree();
}

/* What a plugin started must not be there for longer than the process that would end it. */
static _Noreturn void leave(int code)
{
    end_tree();
    _exit(code);
}

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
            leave(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        at += count;
        size -= (size_t)count;
    }
}

/* What waits to be said together with what follows: each send wakes the library once. */
static struct {
    char data[32768];
    size_t size;
    bool is_open;
} gathered;

static bool gather(uint16_t kind, const void *payload, size_t payload_bytes)
{
    char *at = gathered.data + gathered.size;

    if (!gathered.is_open ||
        payload_bytes + DS_ACCEL__FRAME_HEAD_BYTES > sizeof(gathered.data) - gathered.size) {
        return false;
    }
    ds_accel__frame_seal(at, kind, server.sequence++, payload, (uint32_t)payload_bytes,
                         server.token);
    memcpy(at + DS_ACCEL__FRAME_HEAD_BYTES, payload, payload_bytes);
    gathered.size += DS_ACCEL__FRAME_HEAD_BYTES + payload_bytes;
    return true;
}

static void say_gathered(void)
{
    size_t size = gathered.size;

    gathered.is_open = false;
    gathered.size = 0;
    write_all(gathered.data, size);
}

static void say_now(uint16_t kind, const void *payload, size_t payload_bytes)
{
    char frame[DS_ACCEL__FRAME_HEAD_BYTES + 4096];
    char head[DS_ACCEL__FRAME_HEAD_BYTES];

    if (gather(kind, payload, payload_bytes)) {
        return;
    }
    say_gathered();
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
        server.speaker = gettid();
        say_now(kind, payload, payload_bytes);
        server.speaker = 0;
        pthread_mutex_unlock(&server.lock);
    }
}

/* From now on, until end_gathering(). A plugin that is tolerated may have threads that log. */
static void begin_gathering(void)
{
    pthread_mutex_lock(&server.lock);
    gathered.is_open = true;
    pthread_mutex_unlock(&server.lock);
}

static void end_gathering(void)
{
    pthread_mutex_lock(&server.lock);
    server.speaker = gettid();
    say_gathered();
    server.speaker = 0;
    pthread_mutex_unlock(&server.lock);
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
    if (gate == DS_ACCEL__GATE_LOAD) {
        return; /* where every asking begins */
    }
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

static void on_rule(void *user_data, uint32_t number, uint32_t result, const char *detail)
{
    struct message message = {.size = 0};
    uint32_t rule[2] = {number, result};

    (void)user_data;
    put_struct(&message, rule, sizeof(rule));
    put_text(&message, detail);
    say(DS_ACCEL__FRAME_RULE, message.data, message.size);
}

/* ---- ends ----------------------------------------------------------------------------------- */

static void on_exit_called(void)
{
    if (server.is_plugin_running && getpid() == server.pid) {
        say(DS_ACCEL__FRAME_EXIT, "", 0);
        end_tree();
    }
}

/* A frame of another thread is not to be torn; one that is torn already ends no death. */
static void wait_for_speaker(void)
{
    for (int i = 0; i < GRACE_TRIES && server.speaker != 0 && server.speaker != gettid(); i++) {
        wait_a_moment();
    }
}

/* Only what is safe in a signal handler: seal and send, end children. */
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
        wait_for_speaker();
        say_now(DS_ACCEL__FRAME_SIGNAL, &payload, sizeof(payload));
        end_tree();
    }
    raise(signal); /* with its default action, as soon as this returns */
}

static void watch_signals(void)
{
    static const int signals[] = {SIGSEGV, SIGILL,  SIGABRT, SIGBUS,
                                  SIGFPE,  SIGTRAP, SIGSYS,  SIGTERM};
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

/* The kernel counts them as links of the folder that has one for each: one call, not a listing. */
static size_t count_threads(void)
{
    struct stat info;

    return stat("/proc/self/task", &info) == 0 && info.st_nlink > 2 ? (size_t)info.st_nlink - 2 : 0;
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

static void report_conduct(void)
{
    char detail[64];

    if (has_children() && remains(has_children)) {
        on_conduct(NULL, "leaves_process", "a child process is still there");
        end_tree();
    }
    if (has_threads() && remains(has_threads)) {
        snprintf(detail, sizeof(detail), "%zu more than before",
                 count_threads() - server.thread_count);
        on_conduct(NULL, "leaves_thread", detail);
    }
    ds_accel__guard_compare(&server.guard, on_conduct, NULL);
}

/* ---- the library's end ---------------------------------------------------------------------- */

static struct {
    pid_t parent;
    struct pollfd ends[2]; /* its process, its end of the channel */
    bool has_thread;
    sem_t is_watching; /* the thread has started */
} watched;

static void *watch_library(void *nothing)
{
    (void)nothing;
    sem_post(&watched.is_watching);
    for (;;) {
        int count = poll(watched.ends, 2, -1);

        for (int i = 0; i < 2 && count > 0; i++) {
            if ((watched.ends[i].revents & POLLNVAL) != 0) {
                watched.ends[i].fd = -1; /* a plugin closed it */
                prctl(PR_SET_PDEATHSIG, SIGKILL);
            } else if (watched.ends[i].revents != 0) {
                end_tree();
                kill(-server.pid, SIGKILL); /* not 0: a plugin may have joined another group */
                kill(server.pid, SIGKILL);
            }
        }
    }
    return NULL;
}

/*
 * A parent-death signal ends this process alone, and what a plugin started lives on. So a thread
 * waits for the library's end, and the signal is for where there can be no such thread.
 */
static void start_watch(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    watched.ends[0].fd = (int)syscall(SYS_pidfd_open, watched.parent, 0);
    watched.ends[0].events = POLLIN;
    watched.ends[1].fd = fcntl(DS_ACCEL__PROBE_CHANNEL, F_DUPFD_CLOEXEC, 0);
    if (watched.ends[0].fd < 0 || watched.ends[1].fd < 0 || getppid() != watched.parent ||
        sem_init(&watched.is_watching, 0, 0) != 0 || pthread_attr_init(&attributes) != 0) {
        return;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setstacksize(&attributes, WATCH_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, watch_library, NULL) == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        watched.has_thread = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/*
 * A plugin may fork: a thread that is still starting then holds locks which the child waits for in
 * vain (an allocator's, where one of a sanitizer has no handlers for a fork). From here on the
 * thread is in poll() and holds none.
 */
static void await_watch(void)
{
    while (watched.has_thread && sem_wait(&watched.is_watching) != 0 && errno == EINTR) {
    }
    watched.has_thread = false;
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

static int32_t run_plugin(struct ds_accel__candidate *candidate, bool is_lint)
{
    int32_t status = is_lint ? ds_accel__probe_lint(candidate, on_rule, NULL)
                             : ds_accel__probe_here(candidate);

    if (status >= 0 && candidate->state == DS_ACCEL_STATE_NOT_PROBED) {
        /* A rule that it breaks kept it from being asked: the rules say which. */
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_REJECTED, "", "%s", "");
    }
    return status;
}

/* The candidate stays until the process ends: its plugin may have kept the host's table. */
static void serve_ask(const struct ds_accel__frame *frame)
{
    struct ds_accel__probe_ask ask;
    struct ds_accel__candidate *candidate;
    const char *options = ds_accel__frame_text(frame, sizeof(ask), 2);

    if (!ds_accel__frame_struct(frame, &ask, sizeof(ask))) {
        leave(DS_ACCEL__PROBE_EXIT_FAILED);
    }
    server.context->log.level = ask.log_level;
    json_decref(server.context->config.merged);
    server.context->config.merged = json_loads(options, 0, NULL);
    candidate = ds_accel__candidate_create(server.context,
                                           ds_accel__frame_text(frame, sizeof(ask), 0),
                                           ds_accel__frame_text(frame, sizeof(ask), 1));
    if (candidate == NULL) {
        leave(DS_ACCEL__PROBE_EXIT_FAILED);
    }
    candidate->note_features = ask.note_features;
    candidate->file = ask.file;
    candidate->has_file = true;
    await_watch();
    server.is_plugin_running = true;
    if (run_plugin(candidate, ask.is_lint != 0) < 0) {
        leave(DS_ACCEL__PROBE_EXIT_FAILED); /* out of memory, which says nothing of the plugin */
    }
    fflush(NULL);
    server.is_plugin_running = false;
    begin_gathering();
    say_result(candidate);
    report_conduct();
    say(DS_ACCEL__FRAME_END, "", 0);
    end_gathering();
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
    server.context->asker = watched.parent;
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
            leave(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        if (count <= 0) {
            return false;
        }
        server.reader.size_bytes += (size_t)count;
    }
}

/* ---- the process ----------------------------------------------------------------------------- */

static bool is_started_by_library(int argc, char **argv)
{
    return argc == 2 && getppid() == atoi(argv[1]) && fcntl(DS_ACCEL__PROBE_CHANNEL, F_GETFD) >= 0;
}

int ds_accel__probe_main(int argc, char **argv)
{
    struct ds_accel__frame frame;

    if (argc == 2 && strcmp(argv[1], "--conformance") == 0 &&
        fcntl(DS_ACCEL__PROBE_CHANNEL, F_GETFD) >= 0) {
        return ds_accel__conformance_main();
    }
    /* With the one who asks ends this one too: until there is a thread that sees to it. */
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
    watched.parent = atoi(argv[1]);
    start_watch();
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
    leave(0); /* no destructor of a plugin's library runs: some hang */
}
