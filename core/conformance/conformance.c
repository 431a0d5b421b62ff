/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The conformance suite in the caller's process: it starts the processes in which the checks run,
 * and makes the report.
 *
 *     ds_accel_conformance() -> spawn ds-accel-probe --conformance     {"begin": 7}
 *              ^                   | request: one line of JSON   -->   {"check": 7, "result": ...}
 *              |                   | results: a line each        <--   ... end of file
 *              +-- next process, from the check after the last one, until all have run
 *
 * A process exits after the first check that fails, and before and after a check that must run
 * alone; the plugin may also terminate it at any time, and this file determines what that means for
 * the check. The process is spawned from a program instead of being forked, because vendors'
 * runtimes do not survive a fork.
 */
#include "conformance/conformance.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "conformance/conformance_suite.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "host/evaluate.h"
#include "host/probe.h"
#include "host/prober.h"
#include "host/registry.h"
#include "machine/elf_file.h"
#include "runtime/report.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_LIMIT_BYTES 65536u
#define CHECK_LIMIT_NS 30000000000ull /* time limit of a check, unless the configuration sets one */
#define FRUITLESS_LIMIT 3 /* consecutive processes that began no check; then the suite fails */
#define TERM_GRACE_MS 200 /* time from SIGTERM to SIGKILL */
#define LATE_LIMIT 5      /* timeouts after which no more checks run */
/* timeouts in a slot that has returned before, after which the slot is no longer called */
#define SLOT_LATE_LIMIT 2
#define SLOT_DEATH_LIMIT 8 /* terminated processes after which the slot is no longer called */

/* ---- a process ------------------------------------------------------------------------------ */

/* Spawn the helper process, with stdout and stderr redirected to an anonymous file. */
static int spawn_helper(struct ds_accel__suite *suite, int channel)
{
    const int descriptors[] = {suite->output, suite->output, channel, suite->page_fd};
    const char *containment = ds_accel__probe_containment(suite->context);

    /* Replace "auto" by the containment "outside", which uses no pid namespace: processes that
     * share device memory find each other by pid in /proc. */
    if (strcmp(containment, "auto") == 0) {
        containment = "outside";
    }
    return ds_accel__helper_spawn(&suite->pid, suite->program, containment, "--conformance",
                                  descriptors, (int)ARRAY_SIZE(descriptors));
}

static int32_t start(struct ds_accel__suite *suite)
{
    int ends[2] = {-1, -1};
    int error = 0;

    memset(suite->page, 0, sizeof(*suite->page));
    suite->printed = 0;
    suite->has_answered = false;
    suite->output = ds_accel__suite_open_output();
    if (suite->output < 0 || !ds_accel__helper_raise(&suite->output) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
        !ds_accel__helper_raise(&ends[0]) || !ds_accel__helper_raise(&ends[1])) {
        error = errno;
    } else {
        error = spawn_helper(suite, ends[1]);
    }
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    suite->channel = ends[0];
    if (error != 0) {
        return ds_accel__error(error == ENOMEM   ? DS_ACCEL_ERR_NO_MEMORY
                               : error == ENOENT ? DS_ACCEL_ERR_IO
                                                 : DS_ACCEL_ERR_LIMIT,
                               "%s cannot be started: %s", suite->program, strerror(error));
    }
    return DS_ACCEL_OK;
}

/* Return the slots that are no longer called, as a JSON array of [slot, reason]. */
static json_t *refused_slots(const struct ds_accel__suite *suite, bool *failed)
{
    json_t *slots = json_array();

    for (size_t i = 0; i < DS_ACCEL__WITNESS_SLOTS; i++) {
        if (suite->slots[i].why != NULL &&
            json_array_append_new(slots,
                                  json_pack("[I, s]", (json_int_t)i * (json_int_t)sizeof(void *),
                                            suite->slots[i].why)) != 0) {
            *failed = true;
        }
    }
    return slots;
}

static json_t *refused_steps(const struct ds_accel__suite *suite, bool *failed)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < DS_ACCEL__WITNESS_STEPS; i++) {
        if (suite->steps[i] && json_array_append_new(steps, json_integer((json_int_t)i)) != 0) {
            *failed = true;
        }
    }
    return steps;
}

/* Make the request to the process, as one line of JSON. */
static char *request(const struct ds_accel__suite *suite, const char *task, size_t slot)
{
    const ds_accel_t *context = suite->context;
    const char *name = suite->candidate->name;
    json_t *options = ds_accel__config_backend(&context->config, name, "options");
    json_t *tolerate = ds_accel__config_backend(&context->config, name, "tolerate");
    bool failed = false;
    json_t *tree = json_object();
    char *line;

    ds_accel__json_set(tree, "version", json_string(DS_ACCEL_VERSION), &failed);
    ds_accel__json_set(tree, "name", json_string(suite->candidate->name), &failed);
    /* The plugin's path is sent on a line of its own, because it need not be UTF-8. */
    ds_accel__json_set(tree, "device", json_integer(suite->pass->device_index), &failed);
    ds_accel__json_set(tree, "first", json_integer((json_int_t)suite->next), &failed);
    ds_accel__json_set(tree, "root", ds_accel__json_text(context->machine_root), &failed);
    ds_accel__json_set(tree, "only", ds_accel__json_text(suite->only), &failed);
    ds_accel__json_set(tree, "ignores_env", json_boolean(context->env.ignored), &failed);
    ds_accel__json_set(tree, "task", json_string(task), &failed);
    ds_accel__json_set(tree, "slot", json_integer((json_int_t)slot), &failed);
    ds_accel__json_set(tree, "refused", refused_slots(suite, &failed), &failed);
    ds_accel__json_set(tree, "steps", refused_steps(suite, &failed), &failed);
    ds_accel__json_set(tree, "tolerate", tolerate != NULL ? json_deep_copy(tolerate) : json_array(),
                       &failed);
    ds_accel__json_set(tree, "is_first", json_boolean(suite->pass == &suite->passes[0]), &failed);
    if (suite->pass->is_shown) {
        ds_accel__json_set(tree, "variable", ds_accel__json_text(suite->variable), &failed);
        ds_accel__json_set(tree, "value", ds_accel__json_text(suite->value), &failed);
    }
    ds_accel__json_set(tree, "options", options != NULL ? json_deep_copy(options) : json_object(),
                       &failed);
    line = failed ? NULL : ds_accel__json_dump(tree, JSON_COMPACT);
    json_decref(tree);
    return line;
}

static int32_t send_request(struct ds_accel__suite *suite, const char *task, size_t slot)
{
    char *line = request(suite, task, slot);
    char *message = line != NULL ? ds_accel__format("%s\n%s\n", suite->candidate->path, line)
                                 : NULL;
    size_t size = message != NULL ? strlen(message) : 0;
    size_t sent = 0;

    free(line);
    if (message == NULL) {
        return ds_accel__no_memory();
    }
    while (sent < size) {
        ssize_t count = send(suite->channel, message + sent, size - sent, MSG_NOSIGNAL);

        if (count < 0 && errno != EINTR) {
            break; /* the process has exited: listen_to() detects that */
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    free(message);
    return DS_ACCEL_OK;
}

/* Set the outcome of the check at suite->next. printed is the length of the process's output at the
 * end of the check; -1: not reported. */
__attribute__((format(printf, 5, 6))) static void set_outcome(struct ds_accel__suite *suite,
                                                              const char *result, uint32_t rule,
                                                              off_t printed, const char *format,
                                                              ...)
{
    struct ds_accel__outcome *outcome = &suite->pass->outcomes[suite->next];
    va_list arguments;

    assert(suite->next < suite->check_count);
    outcome->result = result;
    outcome->rule = rule;
    outcome->elapsed_us = (ds_accel__now_ns() - suite->begin_ns) / 1000;
    va_start(arguments, format);
    vsnprintf(outcome->detail, sizeof(outcome->detail), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(outcome->detail, sizeof(outcome->detail));
    if (printed >= 0) {
        ds_accel__suite_take_output(suite, outcome, printed);
    }
    suite->is_inside = false;
    suite->next++;
}

/*
 * Handle the message that the check at a position begins: {"begin": 7}. With "starts", as in
 * {"begin": 7, "starts": 2}, the plugin is still being brought up to that enum ds_accel__stage.
 * False if the message is invalid.
 */
static bool take_begin(struct ds_accel__suite *suite, json_t *tree)
{
    json_t *begin = json_object_get(tree, "begin");
    json_t *stage = json_object_get(tree, "starts");

    if ((size_t)json_integer_value(begin) >= suite->check_count) {
        return false;
    }
    suite->next = (size_t)json_integer_value(begin);
    suite->is_inside = true;
    suite->starting = json_is_integer(stage) ? (int)json_integer_value(stage) : -1;
    suite->begin_ns = ds_accel__now_ns();
    return true;
}

/* Handle the result of a check: {"check": 7, "result": "failed", "rule": 0, "printed": 120,
 * "detail": "..."}. Rule 0 means the check's own rule. False if the message is invalid. */
static bool take_result(struct ds_accel__suite *suite, json_t *tree)
{
    static const char *const results[] = {"passed", "failed", "skipped"};
    const char *result = json_string_value(json_object_get(tree, "result"));
    const char *detail = json_string_value(json_object_get(tree, "detail"));
    uint32_t rule = (uint32_t)json_integer_value(json_object_get(tree, "rule"));

    if (!suite->is_inside || result == NULL ||
        (size_t)json_integer_value(json_object_get(tree, "check")) != suite->next) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        if (strcmp(results[i], result) == 0) {
            set_outcome(suite, results[i], rule != 0 ? rule : ds_accel__check_at(suite->next)->rule,
                        (off_t)json_integer_value(json_object_get(tree, "printed")), "%s",
                        detail != NULL ? detail : "");
            return true;
        }
    }
    return false;
}

/* Handle the result of a survey, which looks for further devices, {"devices": 2, "variable":
 * "X_VISIBLE", "value": "1,0"}, or of a trial call of one slot, {"has_trial": true}. False if the
 * message is invalid. */
static bool take_answer(struct ds_accel__suite *suite, json_t *tree)
{
    json_t *devices = json_object_get(tree, "devices");
    const char *variable = json_string_value(json_object_get(tree, "variable"));
    const char *value = json_string_value(json_object_get(tree, "value"));

    suite->has_answered = true;
    suite->has_trial = json_is_true(json_object_get(tree, "has_trial"));
    if (json_is_integer(devices) && variable != NULL && value != NULL) {
        suite->device_count = (uint32_t)json_integer_value(devices);
        ds_accel__copy(suite->variable, sizeof(suite->variable), variable);
        ds_accel__copy(suite->value, sizeof(suite->value), value);
    }
    return devices != NULL || json_object_get(tree, "has_trial") != NULL;
}

static bool take_line(struct ds_accel__suite *suite, const char *line)
{
    json_t *tree = json_loads(line, 0, NULL);
    const char *unusable = json_string_value(json_object_get(tree, "unusable"));
    bool is_valid = true;

    if (unusable != NULL) {
        ds_accel__copy(suite->unusable, sizeof(suite->unusable), unusable);
        ds_accel__sanitize(suite->unusable, sizeof(suite->unusable));
    } else if (json_is_integer(json_object_get(tree, "begin"))) {
        is_valid = take_begin(suite, tree);
    } else if (json_is_integer(json_object_get(tree, "check"))) {
        is_valid = take_result(suite, tree);
    } else {
        is_valid = take_answer(suite, tree);
    }
    json_decref(tree);
    return is_valid;
}

enum ended {
    ENDED_ITSELF,
    ENDED_LATE,
    ENDED_GARBLED
};

/* Handle the messages of the process until it closes the channel (ENDED_ITSELF), a check exceeds
 * its time limit (ENDED_LATE) or a message is invalid, incomplete or too long (ENDED_GARBLED). */
static enum ended listen_to(struct ds_accel__suite *suite)
{
    char buffer[LINE_LIMIT_BYTES];
    size_t size = 0;

    suite->begin_ns = ds_accel__now_ns();
    for (;;) {
        struct pollfd wait = {.fd = suite->channel, .events = POLLIN};
        uint64_t now = ds_accel__now_ns();
        uint64_t end = suite->begin_ns + suite->limit_ns;
        int ready = poll(&wait, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0);
        ssize_t count;
        char *newline;

        if (ready == 0) {
            return ENDED_LATE;
        }
        assert(size < sizeof(buffer) - 1); /* recv() with a size of 0 would look like end of file */
        count = recv(suite->channel, buffer + size, sizeof(buffer) - 1 - size, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (count <= 0) {
            return size > 0 ? ENDED_GARBLED : ENDED_ITSELF;
        }
        size += (size_t)count;
        buffer[size] = '\0';
        while ((newline = memchr(buffer, '\n', size)) != NULL) {
            size_t length = (size_t)(newline - buffer) + 1;

            *newline = '\0';
            if (!take_line(suite, buffer)) {
                return ENDED_GARBLED;
            }
            size -= length;
            memmove(buffer, buffer + length, size);
        }
        if (size == sizeof(buffer) - 1) {
            return ENDED_GARBLED;
        }
    }
}

/* Wait for the process and kill its process group; with is_killed, kill the process first. text
 * describes how the process terminated. True if it exited with code 0, or if waitpid() failed and
 * the code is unknown. */
static bool reap(struct ds_accel__suite *suite, bool is_killed, char *text, size_t text_size)
{
    int status = 0;
    pid_t pid;

    /*
     * kill() would interpret 0 and -1 as a process group and as all processes, not as one process.
     */
    assert(suite->pid > 1);
    if (is_killed) { /* SIGTERM lets the process kill its own children */
        struct pollfd end = {.fd = suite->channel, .events = 0};

        kill(suite->pid, SIGTERM);
        poll(&end, 1, TERM_GRACE_MS);
        kill(suite->pid, SIGKILL);
    }
    do {
        pid = waitpid(suite->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    kill(-suite->pid, SIGKILL);
    close(suite->channel);
    if (pid != suite->pid) {
        snprintf(text, text_size, "its process ended");
    } else if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        snprintf(text, text_size, "SIG%s ended the process", name != NULL ? name : "?");
    } else {
        snprintf(text, text_size, "exit code %d ended the process", WEXITSTATUS(status));
    }
    return pid != suite->pid || status == 0;
}

/* Run a process with a task until it exits. If it did not exit as expected, text describes how it
 * terminated; otherwise text is "". On DS_ACCEL_OK the caller closes suite->output. */
static int32_t run_helper(struct ds_accel__suite *suite, const char *task, size_t slot,
                          enum ended *ended_out, char *text, size_t text_size)
{
    int32_t status = start(suite);

    if (status < 0) {
        if (suite->channel >= 0) {
            close(suite->channel);
        }
        if (suite->output >= 0) {
            close(suite->output);
        }
        return status;
    }
    status = send_request(suite, task, slot);
    *ended_out = status >= 0 ? listen_to(suite) : ENDED_LATE;
    if (reap(suite, *ended_out != ENDED_ITSELF, text, text_size) && !suite->is_inside) {
        text[0] = '\0';
    }
    if (status < 0) {
        close(suite->output);
    }
    return status;
}

/* ---- slots that terminate the process ------------------------------------------------------- */

static const char *reason_of(enum ended ended)
{
    return ended == ENDED_LATE ? "did not come back in an earlier check"
                               : "ended the process of an earlier check";
}

/* Call the slot in a new process with valid arguments. *is_deadly_out: the call terminated that
 * process, too, or hung. If the suite has no valid call of the slot: the slot has terminated more
 * than one process. */
static int32_t try_slot(struct ds_accel__suite *suite, size_t slot, bool *is_deadly_out)
{
    char text[128];
    char where[256];
    enum ended ended;
    int32_t status = run_helper(suite, "trial", slot, &ended, text, sizeof(text));

    assert(slot / sizeof(void *) < DS_ACCEL__WITNESS_SLOTS);
    if (status < 0) {
        return status;
    }
    suite->late_count += ended == ENDED_LATE;
    *is_deadly_out = !suite->has_answered &&
                     ds_accel__witness_read(suite->page, 0, where, sizeof(where)) == slot;
    if (suite->has_answered && !suite->has_trial) {
        *is_deadly_out = suite->slots[slot / sizeof(void *)].deaths > 1;
    }
    close(suite->output);
    return DS_ACCEL_OK;
}

/*
 * The first stage to which a plugin cannot be brought up without calling this slot; -1: no stage
 * needs the slot.
 */
static int stage_of(size_t slot)
{
    return slot == SLOT(device_open) ? DS_ACCEL__STAGE_DEVICE
           : slot == SLOT(probe) || slot == SLOT(init) || slot == SLOT(device_count)
               ? DS_ACCEL__STAGE_INSTANCE
               : -1;
}

/*
 * Handle a process that terminated or hung in a slot. The slot is no longer called, so that not
 * every check that calls it fails, in three cases: it failed to return too often; it has never
 * returned, and the plugin was being started; it has never returned, and a trial call (try_slot())
 * does not return either. If a stage needs the slot (stage_of()), checks of that stage and of later
 * stages are skipped, too.
 */
static int32_t judge_slot(struct ds_accel__suite *suite, size_t slot, enum ended ended,
                          bool was_starting)
{
    size_t at = slot / sizeof(void *);
    bool is_deadly;
    int32_t status = DS_ACCEL_OK;

    assert(at < DS_ACCEL__WITNESS_SLOTS && slot % sizeof(void *) == 0);
    suite->slots[at].deaths++;
    suite->slots[at].lates += ended == ENDED_LATE;
    is_deadly = suite->slots[at].lates >= SLOT_LATE_LIMIT ||
                suite->slots[at].deaths >= SLOT_DEATH_LIMIT ||
                (was_starting && suite->slots[at].has_returned == 0);
    if (!is_deadly && suite->slots[at].has_returned == 0) {
        status = try_slot(suite, slot, &is_deadly);
    }
    if (is_deadly) {
        suite->slots[at].why = reason_of(ended);
        if (stage_of(slot) >= 0 &&
            (suite->broken_stage < 0 || stage_of(slot) < suite->broken_stage)) {
            suite->broken_stage = stage_of(slot);
        }
    }
    return status;
}

static void note_returns(struct ds_accel__suite *suite)
{
    for (size_t i = 0; i < DS_ACCEL__WITNESS_SLOTS; i++) {
        suite->slots[i].has_returned |=
            ds_accel__witness_has_returned(suite->page, i * sizeof(void *));
    }
}

/*
 * Fail the check during which the process terminated, hung or sent an invalid message. The failure
 * is of the check's rule if it hung, of DSA-P28 if a message is invalid, else of DSA-P26; a check
 * with DS_ACCEL__CHECK_TRAP that had begun uses its own rule for a crash too. Then determine which
 * slot, step or stage later processes avoid.
 */
static int32_t judge_end(struct ds_accel__suite *suite, enum ended ended, const char *how)
{
    const struct ds_accel__check *check = ds_accel__check_at(suite->next);
    bool was_starting = suite->starting >= 0;
    bool is_own = (check->flags & DS_ACCEL__CHECK_TRAP) != 0 && !was_starting;
    uint32_t rule = is_own ? check->rule : 26;
    off_t end = lseek(suite->output, 0, SEEK_CUR);
    char printed[256];
    char where[256];
    size_t slot = ds_accel__witness_read(suite->page, 0, where, sizeof(where));
    unsigned step = atomic_load(&suite->page->step);
    int32_t status = DS_ACCEL_OK;

    assert(suite->is_inside && suite->output >= 0);
    suite->late_count += ended == ENDED_LATE;
    suite->pass->outcomes[suite->next].slot = slot;
    ds_accel__suite_last_line(suite, printed, sizeof(printed));
    if (ended == ENDED_LATE) {
        set_outcome(suite, "failed", check->rule, end, "no result within %llu ms%s%s",
                    (unsigned long long)(suite->limit_ns / 1000000), where, printed);
    } else if (ended == ENDED_GARBLED) {
        set_outcome(suite, "failed", 28, end, "unexpected data on the suite's channel%s%s", where,
                    printed);
    } else {
        set_outcome(suite, "failed", rule, end, "%s%s%s", how, where, printed);
    }
    close(suite->output);
    if (step > 0 && step < DS_ACCEL__WITNESS_STEPS) {
        suite->steps[step] = true;
    } else if (slot != 0) {
        status = judge_slot(suite, slot, ended, was_starting);
    } else if (was_starting) {
        suite->broken_stage = suite->starting;
    }
    return status;
}

/*
 * Add the output that the process printed after its last check to that check's outcome. how: how
 * the process terminated abnormally, which fails the check; "": it exited normally, or the suite
 * killed it.
 */
static void judge_late_end(struct ds_accel__suite *suite, const char *how)
{
    struct ds_accel__outcome *last = suite->next > 0 ? &suite->pass->outcomes[suite->next - 1]
                                                     : NULL;

    if (last != NULL && last->result != NULL) {
        ds_accel__suite_take_output(suite, last, lseek(suite->output, 0, SEEK_CUR));
        if (how[0] != '\0' && strcmp(last->result, "failed") != 0) {
            last->result = "failed";
            last->rule = 26;
            snprintf(last->detail, sizeof(last->detail), "%s after the check", how);
        }
    }
    close(suite->output);
}

/* ---- the checks of a device ----------------------------------------------------------------- */

/* True if the check must be skipped; then why contains the reason. */
static bool cannot_begin(const struct ds_accel__suite *suite, const struct ds_accel__check *check,
                         char *why, size_t why_size)
{
    if (suite->late_count >= LATE_LIMIT) {
        snprintf(why, why_size, "too many checks did not end");
        return true;
    }
    for (size_t i = 0; i < DS_ACCEL__CHECK_SLOTS && check->slots[i] != 0; i++) {
        assert(check->slots[i] / sizeof(void *) < DS_ACCEL__WITNESS_SLOTS);
        const char *reason = suite->slots[check->slots[i] / sizeof(void *)].why;

        if (reason != NULL) {
            snprintf(why, why_size, "%s %s", ds_accel__slot_name(check->slots[i]), reason);
            return true;
        }
    }
    snprintf(why, why_size, "the plugin ends or blocks the process that starts it");
    return suite->broken_stage >= 0 && (int)check->stage >= suite->broken_stage;
}

/* Advance suite->next to the next check that must run, or past the last check. */
static void find_next(struct ds_accel__suite *suite)
{
    bool is_first = suite->pass == &suite->passes[0];
    char why[128];

    while (suite->next < suite->check_count) {
        const struct ds_accel__check *check = ds_accel__check_at(suite->next);

        if (!ds_accel__check_is_chosen(check, suite->only) ||
            !(is_first || ds_accel__check_is_each(check))) {
            suite->next++;
        } else if (cannot_begin(suite, check, why, sizeof(why))) {
            suite->begin_ns = ds_accel__now_ns();
            set_outcome(suite, "skipped", check->rule, -1, "%s", why);
        } else {
            return;
        }
    }
}

static int32_t run_process(struct ds_accel__suite *suite)
{
    char how[128];
    enum ended ended;
    int32_t status = run_helper(suite, "checks", 0, &ended, how, sizeof(how));

    if (status < 0) {
        return status;
    }
    note_returns(suite);
    if (suite->is_inside) {
        return judge_end(suite, ended, how);
    }
    judge_late_end(suite, ended == ENDED_ITSELF ? how : "");
    return DS_ACCEL_OK;
}

/* Fail the next check of a pass whose device cannot be used although the survey found it, and
 * end the pass. Passes of other devices are not affected. */
static void lose_device(struct ds_accel__suite *suite)
{
    const struct ds_accel__check *check = ds_accel__check_at(suite->next);

    suite->begin_ns = ds_accel__now_ns();
    set_outcome(suite, "failed", suite->pass->is_shown ? 103 : 39, -1, "%s: %s", check->name,
                suite->unusable);
    suite->unusable[0] = '\0';
    suite->next = suite->check_count;
}

static int32_t run_pass(struct ds_accel__suite *suite)
{
    int fruitless = 0;

    suite->next = 0;
    suite->broken_stage = -1;
    for (size_t i = 0; i < DS_ACCEL__WITNESS_SLOTS; i++) {
        /*
         * Slots that were no longer called on the previous device are called again on this device,
         * except slots that never returned or that hung.
         */
        if (suite->slots[i].why == NULL ||
            (suite->slots[i].has_returned != 0 && suite->slots[i].lates == 0)) {
            memset(&suite->slots[i], 0, sizeof(suite->slots[i]));
        } else if (stage_of(i * sizeof(void *)) >= 0) {
            suite->broken_stage = stage_of(i * sizeof(void *));
        }
    }
    find_next(suite);
    while (suite->next < suite->check_count && suite->unusable[0] == '\0') {
        size_t before = suite->next;
        int32_t status = run_process(suite);

        if (status < 0) {
            return status;
        }
        if (suite->unusable[0] != '\0' && suite->pass != &suite->passes[0]) {
            if (suite->next < suite->check_count) {
                lose_device(suite);
            }
            suite->unusable[0] = '\0'; /* only this pass ends, not the suite */
        }
        find_next(suite);
        fruitless = suite->next == before ? fruitless + 1 : 0;
        if (fruitless == FRUITLESS_LIMIT) {
            return ds_accel__error(DS_ACCEL_ERR_IO, "%s begins no check: is it of this library?",
                                   suite->program);
        }
    }
    if (suite->unusable[0] != '\0') {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s", suite->unusable);
    }
    return DS_ACCEL_OK;
}

static int32_t add_pass(struct ds_accel__suite *suite, uint32_t device_index, bool is_shown)
{
    struct ds_accel__pass *pass = &suite->passes[suite->pass_count];

    assert(suite->pass_count < DS_ACCEL__PASS_LIMIT);
    pass->device_index = device_index;
    pass->is_shown = is_shown;
    pass->outcomes = calloc(suite->check_count, sizeof(*pass->outcomes));
    suite->pass_count += pass->outcomes != NULL;
    return pass->outcomes != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* True if any chosen check runs on each device, not only on the first. */
static bool has_each(const struct ds_accel__suite *suite)
{
    for (size_t i = 0; i < suite->check_count; i++) {
        const struct ds_accel__check *check = ds_accel__check_at(i);

        if (ds_accel__check_is_chosen(check, suite->only) && ds_accel__check_is_each(check)) {
            return true;
        }
    }
    return false;
}

/* Count the devices in a new process (the survey), and add a pass for each device after the first.
 * Add another pass with the environment variable that selects devices set to a value that reverses
 * their order or shows only the last device, if the plugin has such a variable. If the plugin
 * terminates the survey's process, no pass is added: a check of the first pass has failed for that
 * reason. */
static int32_t find_devices(struct ds_accel__suite *suite)
{
    char text[128];
    enum ended ended;
    int32_t status;

    if (!has_each(suite) || suite->broken_stage >= 0 || suite->late_count >= LATE_LIMIT) {
        return DS_ACCEL_OK;
    }
    status = run_helper(suite, "survey", 0, &ended, text, sizeof(text));
    if (status < 0) {
        return status;
    }
    close(suite->output);
    suite->late_count += ended == ENDED_LATE;
    suite->unusable[0] = '\0';
    for (uint32_t i = 1;
         i < suite->device_count && suite->pass_count < DS_ACCEL__PASS_LIMIT - 1 && status >= 0;
         i++) {
        status = add_pass(suite, i, false);
    }
    return status >= 0 && suite->variable[0] != '\0' ? add_pass(suite, 0, true) : status;
}

static int32_t run_all(struct ds_accel__suite *suite, bool is_all)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < suite->pass_count && status >= 0; i++) {
        suite->pass = &suite->passes[i];
        status = run_pass(suite);
        if (i == 0 && is_all && status >= 0) {
            status = find_devices(suite);
        }
    }
    return status;
}

/* ---- the plugin ----------------------------------------------------------------------------- */

static bool is_file(const char *name_or_path)
{
    size_t length = strlen(name_or_path);

    return strchr(name_or_path, '/') != NULL ||
           (length > 3 && strcmp(name_or_path + length - 3, ".so") == 0);
}

/*
 * Reject a file that this host would not load, or that lacks the ELF note with which a plugin
 * describes itself.
 */
static int32_t check_content(const char *path, const char *name)
{
    struct ds_accel__elf elf = {0};
    struct ds_accel__finding finding = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int32_t status;

    if (fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, strerror(errno));
    }
    status = ds_accel__elf_open(fd, &elf, &finding);
    close(fd);
    if (status >= 0 && finding.reason == DS_ACCEL__REASON_NONE) {
        ds_accel__elf_check_harm(&elf, &finding);
        if (finding.reason == DS_ACCEL__REASON_NONE) {
            ds_accel__elf_check_note(&elf, name, &finding);
        }
        status = elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    ds_accel__elf_close(&elf);
    if (status >= 0 && finding.reason != DS_ACCEL__REASON_NONE) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s: %s: %s", path,
                               ds_accel__reason_code(finding.reason), finding.detail);
    }
    return status;
}

/* Use the plugin file that the user specified. Unless the process has raised rights, the file need
 * not be in a trusted directory, so that files in a vendor's build tree can be checked. */
static int32_t take_file(struct ds_accel__suite *suite, const char *path)
{
    const char *base = strrchr(path, '/');
    char name[DS_ACCEL__NAME_SIZE] = "";
    char *real;
    size_t length;
    int32_t status;

    base = base != NULL ? base + 1 : path;
    length = strlen(base);
    if (length > 12 && length - 12 < sizeof(name) && strncmp(base, "ds_accel_", 9) == 0) {
        snprintf(name, sizeof(name), "%.*s", (int)length - 12, base + 9);
    }
    if (!ds_accel__is_backend_name(name)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: expected ds_accel_<name>.so", path);
    }
    status = check_content(path, name);
    if (status < 0) {
        return status;
    }
    real = realpath(path, NULL);
    path = real != NULL ? real : path;
    status = ds_accel__trust_named_file(path);
    if (status >= 0) {
        suite->candidate = ds_accel__candidate_create(suite->context, name, path);
        status = suite->candidate != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    free(real);
    return status;
}

static int32_t take_name(struct ds_accel__suite *suite, const char *name)
{
    struct ds_accel__candidate *found = ds_accel__registry_find(&suite->context->registry, name);
    bool passed;
    int32_t status;

    if (found == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "there is no plugin named \"%s\"; see ds-accel list", name);
    }
    if (found->is_registered) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                               "\"%s\" is part of the program and has no file to check", name);
    }
    ds_accel__evaluation_begin(suite->context);
    status = ds_accel__candidate_check_file(found, &passed);
    ds_accel__evaluation_end(suite->context);
    if (status >= 0 && !passed) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE, "%s is not used: %s: %s", name,
                               ds_accel__reason_code(found->reason),
                               found->detail != NULL ? found->detail : "");
    }
    if (status >= 0) {
        suite->candidate = ds_accel__candidate_create(suite->context, name, found->path);
        status = suite->candidate != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    return status;
}

/* Open the page in which the suite's processes record their calls. */
static int32_t open_page(struct ds_accel__suite *suite)
{
    void *memory = MAP_FAILED;

    suite->page_fd = memfd_create("ds_accel_calls", MFD_CLOEXEC);
    if (suite->page_fd >= 0 && ds_accel__helper_raise(&suite->page_fd) &&
        ftruncate(suite->page_fd, sizeof(*suite->page)) == 0) {
        memory =
            mmap(NULL, sizeof(*suite->page), PROT_READ | PROT_WRITE, MAP_SHARED, suite->page_fd, 0);
    }
    if (memory == MAP_FAILED) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "cannot get memory to share with %s: %s",
                               suite->program, strerror(errno));
    }
    suite->page = memory;
    return DS_ACCEL_OK;
}

static void clear_suite(struct ds_accel__suite *suite)
{
    for (size_t i = 0; i < suite->pass_count; i++) {
        for (size_t k = 0; k < suite->check_count; k++) {
            free(suite->passes[i].outcomes[k].output);
        }
        free(suite->passes[i].outcomes);
    }
    if (suite->page != NULL) {
        munmap(suite->page, sizeof(*suite->page));
    }
    if (suite->page_fd >= 0) {
        close(suite->page_fd);
    }
    free(suite->program);
    ds_accel__candidate_destroy(suite->candidate);
    ds_accel_destroy(suite->context);
}

static int32_t prepare(struct ds_accel__suite *suite, const struct ds_accel_options *options,
                       const char *name_or_path)
{
    json_t *limit;
    int32_t status = ds_accel_create(options, &suite->context);

    if (status < 0) {
        return status;
    }
    if (suite->context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: no plugin is run on it");
    }
    status = is_file(name_or_path) ? take_file(suite, name_or_path)
                                   : take_name(suite, name_or_path);
    if (status < 0) {
        return status;
    }
    if (strchr(suite->candidate->path, '\n') != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the path of the plugin has a line end");
    }
    limit = ds_accel__config_get(&suite->context->config, "probe", "timeout_ms", NULL);
    suite->limit_ns = json_is_integer(limit) && json_integer_value(limit) > 0
                          ? (uint64_t)json_integer_value(limit) * 1000000u
                          : CHECK_LIMIT_NS;
    suite->program = ds_accel__probe_program();
    return suite->program != NULL ? open_page(suite) : ds_accel__no_memory();
}

static int32_t check_only(const char *only)
{
    const struct ds_accel__check *check;

    for (size_t i = 0; (check = ds_accel__check_at(i)) != NULL; i++) {
        if (ds_accel__check_is_chosen(check, only)) {
            return DS_ACCEL_OK;
        }
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "no check is of the rule or group \"%s\"", only);
}

int32_t ds_accel_conformance(const struct ds_accel_options *options, const char *name_or_path,
                             uint32_t device_index, const char *only, uint32_t format,
                             char **text_out)
{
    bool is_all = device_index == DS_ACCEL_CONFORMANCE_ALL_DEVICES;
    struct ds_accel__suite *suite;
    size_t failed_count = 0;
    int32_t status;

    if (text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "text_out is NULL");
    }
    status = check_only(only);
    if (status >= 0 && name_or_path == NULL) {
        return ds_accel__report_write(DS_ACCEL__REPORT_CONFORMANCE,
                                      ds_accel__suite_tree(only, NULL, &failed_count), format,
                                      text_out);
    }
    suite = status >= 0 ? calloc(1, sizeof(*suite)) : NULL;
    if (suite == NULL) {
        return status >= 0 ? ds_accel__no_memory() : status;
    }
    suite->only = only;
    suite->channel = suite->output = suite->page_fd = -1;
    while (ds_accel__check_at(suite->check_count) != NULL) {
        suite->check_count++;
    }
    status = prepare(suite, options, name_or_path);
    if (status >= 0) {
        status = add_pass(suite, is_all ? 0 : device_index, false);
    }
    if (status >= 0) {
        status = run_all(suite, is_all);
    }
    if (status >= 0) {
        status = ds_accel__report_write(DS_ACCEL__REPORT_CONFORMANCE,
                                        ds_accel__suite_tree(only, suite, &failed_count), format,
                                        text_out);
    }
    if (status >= 0 && failed_count > 0) {
        status = ds_accel__error(DS_ACCEL_ERR_ABI, "%s breaks rules of the plugin ABI",
                                 suite->candidate->path);
    }
    clear_suite(suite);
    free(suite);
    return status;
}
