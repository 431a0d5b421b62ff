/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The process that probes one plugin, a child of the supervisor (probe_serve.c): load, entry and
 * probe, and, if the plugin is available, a rehearsal of its start: init, the number of its
 * devices, shutdown, with no device opened. Each stage after load, the first, is reported before it
 * begins, so that the library knows the stage in which this process exited, hung or failed.
 *
 * A plugin may do anything here: close or write to the descriptors, install handlers, leave threads
 * and children. Every message is therefore sealed (message.c), and a signal handler on its own
 * stack reports a crash.
 */
#include "host/probe_child.h"
#include "base/text.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/loader.h"
#include "host/message.h"
#include "host/probe.h"
#include "host/registry.h"
#include "host/start.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRACE_TRIES 40 /* milliseconds to wait for another thread's message */
#define SIGNAL_STACK_BYTES 65536

static struct {
    ds_accel_t *context;
    uint64_t token;
    uint32_t sequence;
    pid_t pid;            /* a plugin may fork: its child must not send */
    pthread_mutex_t lock; /* a plugin's threads also log */
    atomic_int speaker;   /* thread that holds the lock; 0: none */
    bool is_plugin_running;
    bool is_over; /* END has been sent */
    struct ds_accel__guard guard;
    struct ds_accel__left left;
} child = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- sending -------------------------------------------------------------------------------- */

static void write_all(const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t count = send(DS_ACCEL__PROBE_ANSWERS, at, size, MSG_NOSIGNAL);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            /*
             * A plugin closed the channel, or the library's process exited: no message can be sent.
             */
            _exit(DS_ACCEL__PROBE_EXIT_CLOSED);
        }
        at += count;
        size -= (size_t)count;
    }
}

/*
 * Messages that wait to be sent together with later ones, because each send wakes the library once.
 */
static struct {
    char data[32768];
    size_t size;
    bool is_open;
} gathered;

static bool gather(uint16_t kind, const void *payload, size_t payload_bytes)
{
    char *at = gathered.data + gathered.size;

    if (!gathered.is_open ||
        payload_bytes + DS_ACCEL__MESSAGE_HEAD_BYTES > sizeof(gathered.data) - gathered.size) {
        return false;
    }
    ds_accel__message_seal(at, kind, child.sequence++, payload, (uint32_t)payload_bytes,
                           child.token);
    memcpy(at + DS_ACCEL__MESSAGE_HEAD_BYTES, payload, payload_bytes);
    gathered.size += DS_ACCEL__MESSAGE_HEAD_BYTES + payload_bytes;
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
    char message[DS_ACCEL__MESSAGE_HEAD_BYTES + 4096];
    char head[DS_ACCEL__MESSAGE_HEAD_BYTES];

    if (gather(kind, payload, payload_bytes)) {
        return;
    }
    say_gathered();
    if (payload_bytes <= sizeof(message) - DS_ACCEL__MESSAGE_HEAD_BYTES) {
        ds_accel__message_seal(message, kind, child.sequence++, payload, (uint32_t)payload_bytes,
                               child.token);
        memcpy(message + DS_ACCEL__MESSAGE_HEAD_BYTES, payload, payload_bytes);
        write_all(message, DS_ACCEL__MESSAGE_HEAD_BYTES + payload_bytes);
        return;
    }
    ds_accel__message_seal(head, kind, child.sequence++, payload, (uint32_t)payload_bytes,
                           child.token);
    write_all(head, sizeof(head));
    write_all(payload, payload_bytes);
}

static void say(uint16_t kind, const void *payload, size_t payload_bytes)
{
    if (getpid() == child.pid) {
        pthread_mutex_lock(&child.lock);
        child.speaker = gettid();
        if (!child.is_over) {
            say_now(kind, payload, payload_bytes);
        }
        child.speaker = 0;
        pthread_mutex_unlock(&child.lock);
    }
}

/*
 * Gather messages until end_gathering(). The lock is needed because a tolerated plugin may have
 * threads that log.
 */
static void begin_gathering(void)
{
    pthread_mutex_lock(&child.lock);
    gathered.is_open = true;
    pthread_mutex_unlock(&child.lock);
}

static void end_gathering(void)
{
    pthread_mutex_lock(&child.lock);
    child.speaker = gettid();
    say_gathered();
    child.is_over = true; /* no further messages, even from threads that log */
    child.speaker = 0;
    pthread_mutex_unlock(&child.lock);
}

/*
 * The payload of a message: a struct, then texts, each with its NUL. Texts that do not fit are
 * truncated or omitted.
 */
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
    say(DS_ACCEL__MESSAGE_LOG, message.data, message.size);
}

static void on_stage(ds_accel_t *context, enum ds_accel__gate gate)
{
    uint32_t stage = gate;

    (void)context;
    if (gate == DS_ACCEL__GATE_LOAD) {
        return; /* the library assumes this stage at first */
    }
    say(DS_ACCEL__MESSAGE_STAGE, &stage, sizeof(stage));
}

static void on_conduct(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    struct message message = {.size = 0};

    (void)user_data;
    put_text(&message, ds_accel__reason_code(reason));
    put_text(&message, detail);
    say(DS_ACCEL__MESSAGE_CONDUCT, message.data, message.size);
}

static void on_rule(void *user_data, uint32_t number, uint32_t result, const char *detail)
{
    struct message message = {.size = 0};
    uint32_t rule[2] = {number, result};

    (void)user_data;
    put_struct(&message, rule, sizeof(rule));
    put_text(&message, detail);
    say(DS_ACCEL__MESSAGE_RULE, message.data, message.size);
}

/* ---- exits and crashes ---------------------------------------------------------------------- */

static void on_exit_called(void)
{
    if (child.is_plugin_running && getpid() == child.pid) {
        say(DS_ACCEL__MESSAGE_EXIT, "", 0);
    }
}

/*
 * Wait until another thread has completed its message, but only a limited time: a message that
 * never completes must not prevent the process from exiting.
 */
static void wait_for_speaker(void)
{
    for (int i = 0; i < GRACE_TRIES && child.speaker != 0 && child.speaker != gettid(); i++) {
        poll(NULL, 0, 1);
    }
}

/* Report a crash. Uses only calls that are safe in a signal handler: seal and send. */
static void on_signal(int signal, siginfo_t *info, void *ucontext)
{
    struct {
        int32_t signal;
        int32_t code;
        uint64_t address;
    } payload = {signal, info->si_code, (uint64_t)(uintptr_t)info->si_addr};

    (void)ucontext;
    /* Send without the lock: this thread may hold it already. */
    if (child.is_plugin_running && getpid() == child.pid) {
        wait_for_speaker();
        say_now(DS_ACCEL__MESSAGE_SIGNAL, &payload, sizeof(payload));
    }
    raise(signal); /* the default action follows when this handler returns */
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
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        sigaction(signals[i], &action, NULL);
    }
}

/* ---- rehearsal of the start ----------------------------------------------------------------- */

/*
 * Report the plugin's conduct. is_started: the plugin is between init and shutdown, where a runtime
 * may have threads and descriptors, so leftovers and the state that requires is_alone are not
 * checked yet.
 */
static void report_conduct(bool is_started)
{
    if (!is_started) {
        ds_accel__left_compare(&child.left, on_conduct, NULL);
    }
    child.guard.is_alone = !is_started;
    ds_accel__guard_compare(&child.guard, on_conduct, NULL);
    child.guard.is_alone = true;
}

/*
 * Call init, device_count, backend_info and shutdown, as the process that uses the plugin will.
 * Between init and shutdown a runtime may have its own threads and descriptors.
 */
static void rehearse(struct ds_accel__candidate *candidate)
{
    struct ds_accel__start *start = &candidate->start;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_instance_t *instance;
    char text[512];

    on_stage(child.context, DS_ACCEL__GATE_START);
    ds_accel__plugin_lock();
    ds_accel__start_instance(candidate, &instance, text, sizeof(text));
    start->info.struct_size = sizeof(start->info);
    if (start->status == DS_ACCEL_OK &&
        candidate->table.backend_info(instance, &start->info, &error) < 0) {
        memset(&start->info, 0, sizeof(start->info));
    }
    report_conduct(true);
    if (instance != NULL) {
        candidate->table.shutdown(instance);
    }
    ds_accel__plugin_unlock();
    ds_accel__start_judge(candidate, text);
}

/* ---- probing -------------------------------------------------------------------------------- */

static void say_result(const struct ds_accel__candidate *candidate)
{
    struct message message = {.size = 0};
    struct ds_accel__probe_result result = {
        .state = candidate->state,
        .optional_features = candidate->optional_features,
        .verdict = candidate->verdict,
        .start = candidate->start,
    };

    for (uint32_t gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        result.gates[gate] = candidate->gates[gate].result;
        if (strcmp(ds_accel__gate_name(gate), candidate->stage) == 0) {
            result.stage = gate;
        }
    }
    put_struct(&message, &result, sizeof(result));
    put_text(&message, ds_accel__reason_code(candidate->reason));
    put_text(&message, candidate->detail);
    for (int gate = DS_ACCEL__GATE_LOAD; gate <= DS_ACCEL__GATE_START; gate++) {
        put_text(&message, candidate->gates[gate].evidence);
    }
    say(DS_ACCEL__MESSAGE_RESULT, message.data, message.size);
}

static void judge_log(void)
{
    char text[200];
    bool is_broken = ds_accel__log_offence(text, sizeof(text));

    on_rule(NULL, 25, is_broken ? DS_ACCEL__RULE_FAILED : DS_ACCEL__RULE_PASSED,
            is_broken ? text : "");
}

static int32_t run_plugin(struct ds_accel__candidate *candidate, bool is_lint)
{
    int32_t status;

    if (is_lint) {
        ds_accel__log_watch(&candidate->host.abi);
    }
    status = is_lint ? ds_accel__probe_lint(candidate, on_rule, NULL)
                     : ds_accel__probe_here(candidate);

    if (status >= 0 && candidate->state == DS_ACCEL_STATE_NOT_PROBED) {
        /*
         * A broken rule prevented the probe. The results of the rules, which were already sent,
         * contain the reason.
         */
        ds_accel__candidate_set(candidate, DS_ACCEL_STATE_REJECTED, DS_ACCEL__REASON_NONE, "%s",
                                "");
    }
    if (status >= 0 && candidate->state == DS_ACCEL_STATE_AVAILABLE) {
        if (is_lint) {
            report_conduct(false);
        }
        rehearse(candidate); /* also reports what the probe changed */
        report_conduct(false);
    } else if (status >= 0 && is_lint) {
        report_conduct(false);
    }
    if (status >= 0 && is_lint) {
        judge_log();
    }
    return status;
}

static struct ds_accel__candidate *take_ask(const struct ds_accel__message *message,
                                            struct ds_accel__probe_ask *ask)
{
    struct ds_accel__candidate *candidate;
    const char *options = ds_accel__message_text(message, sizeof(*ask), 2);

    if (!ds_accel__message_struct(message, ask, sizeof(*ask))) {
        return NULL;
    }
    child.token = ask->token;
    child.context->log.level = ask->log_level;
    child.context->config.merged = json_loads(options, 0, NULL);
    candidate = ds_accel__candidate_create(child.context,
                                           ds_accel__message_text(message, sizeof(*ask), 0),
                                           ds_accel__message_text(message, sizeof(*ask), 1));
    if (candidate != NULL) {
        candidate->note_features = ask->note_features;
        candidate->file = ask->file;
    }
    return candidate;
}

void ds_accel__child_prepare(ds_accel_t *context)
{
    context->log.sink = on_log;
    context->on_stage = on_stage;
    child.context = context;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    watch_signals();
    atexit(on_exit_called);
    ds_accel__guard_take_alone(&child.guard);
}

_Noreturn void ds_accel__child_run(const struct ds_accel__message *message, bool has_user_namespace)
{
    struct ds_accel__probe_ask ask = {0};
    struct ds_accel__candidate *candidate;

    child.pid = getpid();
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of the plugin become children of this process */
    candidate = take_ask(message, &ask);
    if (candidate == NULL) {
        _exit(DS_ACCEL__PROBE_EXIT_FAILED);
    }
    ds_accel__guard_follow(&child.guard, has_user_namespace);
    ds_accel__left_take(&child.left);
    child.is_plugin_running = true;
    if (run_plugin(candidate, ask.is_lint != 0) < 0) {
        _exit(DS_ACCEL__PROBE_EXIT_FAILED); /* memory is exhausted: no verdict on the plugin */
    }
    fflush(NULL);
    child.is_plugin_running = false;
    begin_gathering();
    say_result(candidate);
    say(DS_ACCEL__MESSAGE_END, "", 0);
    end_gathering();
    _exit(0); /* run no destructors of the plugin's libraries: some hang */
}
