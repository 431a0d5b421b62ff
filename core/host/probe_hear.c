/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Evaluates the messages of helpers for probe.c. Messages fill in the candidate that is being
 * probed. The exit of a helper, a missed deadline or an invalid message becomes a reason with its
 * stage, because the messages report which stage the candidate's code had reached.
 */
#include "base/clock.h"
#include "base/text.h"
#include "base/trust.h"
#include "host/contain.h"
#include "host/context.h"
#include "host/message.h"
#include "host/probe.h"
#include "host/prober.h"
#include "host/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_FLOOD_BYTES 65536u /* more output than this is bad conduct */
#define LOG_LIMIT_BYTES 65536u    /* limit of one candidate's log lines */
#define READS_AT_END 4096         /* reads from an exited process: more than a socket can store */

/* ---- reading -------------------------------------------------------------------------------- */

void ds_accel__helper_take_output(struct ds_accel__captured *capture)
{
    char data[4096];
    ssize_t count = 0;

    /* Do not wait for the end of the file: a grandchild may hold the other end open forever. */
    while (capture->fd >= 0 &&
           ((count = read(capture->fd, data, sizeof(data))) > 0 || (count < 0 && errno == EINTR))) {
        size_t room = DS_ACCEL__OUTPUT_KEPT_BYTES - capture->kept_bytes;
        size_t kept = count > 0 && (size_t)count < room ? (size_t)count : room;

        if (count > 0) {
            memcpy(capture->kept + capture->kept_bytes, data, kept);
            capture->kept_bytes += kept;
            assert(capture->kept_bytes <= sizeof(capture->kept));
            capture->total_bytes += (uint64_t)count;
        }
        if (capture->total_bytes > 64 * OUTPUT_FLOOD_BYTES && count == (ssize_t)sizeof(data)) {
            return; /* output arrives as fast as this loop reads: deadlines come first */
        }
    }
    if (capture->fd >= 0 && count == 0) {
        ds_accel__probe_close(&capture->fd);
    }
}

static void note_conduct(struct ds_accel__helper *helper, enum ds_accel__reason_id reason,
                         const char *detail)
{
    struct ds_accel__conduct *conduct = &helper->conduct;
    size_t length = strlen(conduct->tolerated);

    if (reason == DS_ACCEL__REASON_NONE) {
        return;
    }
    assert(helper->candidate != NULL && length < sizeof(conduct->tolerated));
    helper->candidate->has_conduct = true;
    conduct->has_process = conduct->has_process || reason == DS_ACCEL__REASON_LEAVES_PROCESS;
    if (helper->candidate->lint != NULL) {
        helper->candidate->lint->conduct(helper->candidate->lint->user_data,
                                         helper->stage >= DS_ACCEL__GATE_START, reason, detail);
    }
    if (ds_accel__conduct_is_tolerated(helper->candidate, reason)) {
        snprintf(conduct->tolerated + length, sizeof(conduct->tolerated) - length, "%s%s",
                 length > 0 ? ", " : "", ds_accel__reason_code(reason));
    } else if (conduct->reason == DS_ACCEL__REASON_NONE) {
        conduct->reason = reason;
        snprintf(conduct->detail, sizeof(conduct->detail), "%s", detail);
        ds_accel__sanitize(conduct->detail, sizeof(conduct->detail));
    } else {
        /*
         * Append the codes of further kinds, so that an operator who wants to tolerate the conduct
         * sees all kinds at once.
         */
        length = strlen(conduct->detail);
        snprintf(conduct->detail + length, sizeof(conduct->detail) - length, "%s%s",
                 conduct->has_more ? ", " : "; also ", ds_accel__reason_code(reason));
        conduct->has_more = true;
    }
}

static void sanitize_info(struct ds_accel_backend_info *info)
{
    ds_accel__sanitize(info->communication_backend, sizeof(info->communication_backend));
    ds_accel__sanitize(info->compile_backend, sizeof(info->compile_backend));
}

/*
 * Accept only a result that a helper may report. False for any other result, which is a defect or a
 * forgery.
 */
static bool take_result(struct ds_accel__helper *helper, const struct ds_accel__message *message)
{
    static const enum ds_accel__gate gates[] = {DS_ACCEL__GATE_LOAD, DS_ACCEL__GATE_ENTRY,
                                                DS_ACCEL__GATE_PROBE, DS_ACCEL__GATE_START};
    struct ds_accel__candidate *candidate = helper->candidate;
    struct ds_accel__probe_result result;
    const char *code = ds_accel__message_text(message, sizeof(result), 0);
    const char *detail = ds_accel__message_text(message, sizeof(result), 1);
    enum ds_accel__reason_id reason = ds_accel__reason_find(code);

    if (!ds_accel__message_struct(message, &result, sizeof(result)) ||
        result.state < DS_ACCEL_STATE_AVAILABLE || result.state > DS_ACCEL_STATE_REJECTED ||
        !ds_accel__reason_is_code(code) || result.stage >= DS_ACCEL__GATE_COUNT ||
        (result.state == DS_ACCEL_STATE_AVAILABLE &&
         (result.verdict.device_count == 0 ||
          result.verdict.device_count > DS_ACCEL__DEVICE_LIMIT ||
          result.start.device_count > DS_ACCEL__DEVICE_LIMIT))) {
        return false;
    }
    candidate->verdict = result.verdict;
    ds_accel__sanitize(candidate->verdict.detail, sizeof(candidate->verdict.detail));
    ds_accel__sanitize(candidate->verdict.variant, sizeof(candidate->verdict.variant));
    candidate->start = result.start;
    sanitize_info(&candidate->start.info);
    candidate->optional_features = result.optional_features;
    for (size_t i = 0; i < ARRAY_SIZE(gates); i++) {
        const char *evidence = ds_accel__message_text(message, sizeof(result), (unsigned)i + 2);

        if (result.gates[gates[i]] == DS_ACCEL__GATE_PASSED) {
            ds_accel__candidate_pass(candidate, gates[i], "%s", evidence);
        } else if (result.gates[gates[i]] == DS_ACCEL__GATE_FAILED &&
                   reason != DS_ACCEL__REASON_NONE) {
            struct ds_accel__finding finding = {0};

            ds_accel__finding_set(&finding, reason, "%s", evidence);
            ds_accel__candidate_fail(candidate, gates[i], result.state, &finding);
        }
    }
    ds_accel__candidate_set(candidate, result.state, reason, "%s", detail);
    candidate->stage = ds_accel__gate_name((enum ds_accel__gate)result.stage);
    ds_accel__candidate_enter(candidate, result.start.is_inconclusive != 0
                                             ? DS_ACCEL__PHASE_TENTATIVE
                                             : DS_ACCEL__PHASE_JUDGED);
    helper->has_result = true;
    return true;
}

/*
 * Log a line of the plugin. The total size of a candidate's lines is limited, because the caller
 * prints and stores them.
 */
static void take_log(const ds_accel_t *context, struct ds_accel__helper *helper,
                     const struct ds_accel__message *message)
{
    uint32_t level;
    char topic[DS_ACCEL__NAME_SIZE];

    if (helper->logged_bytes > LOG_LIMIT_BYTES) {
        return;
    }
    helper->logged_bytes += message->payload_bytes;
    if (helper->logged_bytes > LOG_LIMIT_BYTES) {
        ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_WARN,
                      "%s: it logged more than %u bytes: the rest is dropped",
                      helper->candidate->name, LOG_LIMIT_BYTES);
    } else if (ds_accel__message_struct(message, &level, sizeof(level))) {
        snprintf(topic, sizeof(topic), "%s", ds_accel__message_text(message, sizeof(level), 0));
        ds_accel__sanitize(topic, sizeof(topic));
        ds_accel__log(&context->log, topic, level, "%s",
                      ds_accel__message_text(message, sizeof(level), 1));
    }
}

static void take_signal(struct ds_accel__helper *helper, const struct ds_accel__message *message)
{
    struct {
        int32_t signal;
        int32_t code;
        uint64_t address;
    } payload;

    if (ds_accel__message_struct(message, &payload, sizeof(payload))) {
        helper->signal = payload.signal;
        /*
         * si_code > 0: the kernel raised the signal at an address. A signal sent by a program has
         * none.
         */
        helper->address = payload.code > 0 ? payload.address : UINT64_MAX;
    }
}

static void take_rule(const struct ds_accel__helper *helper,
                      const struct ds_accel__message *message)
{
    const struct ds_accel__lint_sink *lint = helper->candidate->lint;
    uint32_t rule[2];

    if (lint != NULL && ds_accel__message_struct(message, rule, sizeof(rule))) {
        lint->judge(lint->user_data, rule[0], rule[1],
                    ds_accel__message_text(message, sizeof(rule), 0));
    }
}

enum ds_accel__heard ds_accel__helper_take_message(ds_accel_t *context,
                                                   struct ds_accel__helper *helper,
                                                   const struct ds_accel__message *message)
{
    uint32_t stage;

    if (helper->has_end) {
        return DS_ACCEL__HEARD_FORGERY;
    }
    switch (message->kind) {
    case DS_ACCEL__MESSAGE_STAGE:
        if (!ds_accel__message_struct(message, &stage, sizeof(stage)) ||
            stage < DS_ACCEL__GATE_LOAD || stage > DS_ACCEL__GATE_START) {
            return DS_ACCEL__HEARD_FORGERY;
        }
        helper->stage = stage;
        break;
    case DS_ACCEL__MESSAGE_LOG:
        take_log(context, helper, message);
        break;
    case DS_ACCEL__MESSAGE_RESULT:
        return take_result(helper, message) ? DS_ACCEL__HEARD_SOMETHING : DS_ACCEL__HEARD_FORGERY;
    case DS_ACCEL__MESSAGE_CONDUCT:
        note_conduct(helper, ds_accel__reason_find(ds_accel__message_text(message, 0, 0)),
                     ds_accel__message_text(message, 0, 1));
        break;
    case DS_ACCEL__MESSAGE_RULE:
        take_rule(helper, message);
        break;
    case DS_ACCEL__MESSAGE_EXIT:
        helper->called_exit = true;
        break;
    case DS_ACCEL__MESSAGE_SIGNAL:
        take_signal(helper, message);
        break;
    case DS_ACCEL__MESSAGE_END:
        if (!helper->has_result) {
            return DS_ACCEL__HEARD_FORGERY;
        }
        helper->has_end = true;
        break;
    default:
        return DS_ACCEL__HEARD_FORGERY;
    }
    return DS_ACCEL__HEARD_SOMETHING;
}

bool ds_accel__helper_take_supervisor_message(const ds_accel_t *context,
                                              struct ds_accel__helper *helper,
                                              const struct ds_accel__message *message)
{
    struct ds_accel__probe_ended ended;

    if (message->kind == DS_ACCEL__MESSAGE_HELLO && !helper->has_said_hello &&
        ds_accel__message_struct(message, &helper->hello, sizeof(helper->hello))) {
        helper->has_said_hello = true;
        helper->deadline_ns = ds_accel__now_ns() +
                              (uint64_t)ds_accel__probe_setting(context, "timeout_ms", 30000) *
                                  1000000u;
        return true;
    }
    if (message->kind != DS_ACCEL__MESSAGE_ENDED ||
        !ds_accel__message_struct(message, &ended, sizeof(ended)) ||
        ended.number != helper->number || helper->has_ended) {
        return false;
    }
    helper->ended = ended;
    helper->has_ended = true;
    return true;
}

/*
 * Evaluate the complete messages in the reader. False if a message is invalid, and so was not sent
 * by the code of ds-accel-probe.
 */
static bool take_messages(ds_accel_t *context, struct ds_accel__helper *helper,
                          struct ds_accel__message_reader *reader)
{
    struct ds_accel__message message;
    enum ds_accel__message_result result;

    while ((result = ds_accel__message_next(reader, &message)) == DS_ACCEL__MESSAGE_READY) {
        if (reader == &helper->from_supervisor) {
            if (!ds_accel__helper_take_supervisor_message(context, helper, &message)) {
                return false;
            }
            continue;
        }
        helper->nonsense = ds_accel__helper_take_message(context, helper, &message);
        if (helper->nonsense != DS_ACCEL__HEARD_SOMETHING) {
            return false;
        }
    }
    if (result != DS_ACCEL__MESSAGE_MORE && reader == &helper->from_child) {
        helper->nonsense = result == DS_ACCEL__MESSAGE_GARBLED ? DS_ACCEL__HEARD_GARBAGE
                                                               : DS_ACCEL__HEARD_FORGERY;
    }
    return result == DS_ACCEL__MESSAGE_MORE;
}

/*
 * Read and evaluate messages from one descriptor. The number of reads is limited, because a child
 * that logs as fast as this loop reads must not delay deadlines.
 */
static int32_t hear_one(ds_accel_t *context, struct ds_accel__helper *helper, int *fd,
                        struct ds_accel__message_reader *reader, int reads)
{
    while (*fd >= 0 && reads-- > 0) {
        size_t room;
        void *data = ds_accel__message_room(reader, &room);
        ssize_t count;

        if (data == NULL) {
            return ds_accel__no_memory();
        }
        count = recv(*fd, data, room, 0);
        if (count < 0 && errno == EAGAIN) {
            return DS_ACCEL_OK;
        }
        if (count > 0 && reader == &helper->from_child &&
            helper->nonsense != DS_ACCEL__HEARD_SOMETHING) {
            continue; /* discard what follows an invalid message */
        }
        if (count > 0) {
            reader->size_bytes += (size_t)count;
            assert(reader->size_bytes <= reader->capacity_bytes);
        }
        if (count == 0 || (count < 0 && errno != EINTR) ||
            (count > 0 && !take_messages(context, helper, reader) &&
             reader == &helper->from_supervisor)) {
            ds_accel__probe_close(fd);
        }
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper, int reads)
{
    bool had_ended = helper->has_ended;
    int32_t status = hear_one(context, helper, &helper->answers, &helper->from_child, reads);

    if (status >= 0) {
        status = hear_one(context, helper, &helper->channel, &helper->from_supervisor, reads);
    }
    /*
     * ENDED has just been read. The child's last messages may have arrived after the read of its
     * channel above, so read that channel again.
     */
    if (status >= 0 && helper->has_ended && !had_ended) {
        status = hear_one(context, helper, &helper->answers, &helper->from_child, READS_AT_END);
    }
    return status;
}

/* ---- verdicts ------------------------------------------------------------------------------- */

/* The ways in which a process can terminate while a plugin's code runs in it. */
enum end {
    END_SEGV,
    END_ILL,
    END_ABORT,
    END_SIGNAL,
    END_EXIT,
    END_ENDED,
    END_HUNG,
    END_EXCEPTION,
    END_COUNT
};

static enum ds_accel__reason_id stage_reason(uint32_t stage, enum end end)
{
    static const enum ds_accel__reason_id reasons[DS_ACCEL__GATE_COUNT][END_COUNT] = {
        [DS_ACCEL__GATE_LOAD] = {[END_SEGV] = DS_ACCEL__REASON_LOAD_SEGV,
                                 [END_ILL] = DS_ACCEL__REASON_LOAD_ILL,
                                 [END_ABORT] = DS_ACCEL__REASON_LOAD_ABORT,
                                 [END_SIGNAL] = DS_ACCEL__REASON_LOAD_SIGNAL,
                                 [END_EXIT] = DS_ACCEL__REASON_LOAD_EXIT,
                                 [END_ENDED] = DS_ACCEL__REASON_LOAD_ENDED,
                                 [END_HUNG] = DS_ACCEL__REASON_LOAD_HUNG,
                                 [END_EXCEPTION] = DS_ACCEL__REASON_LOAD_EXCEPTION},
        [DS_ACCEL__GATE_ENTRY] = {[END_SEGV] = DS_ACCEL__REASON_ENTRY_SEGV,
                                  [END_ILL] = DS_ACCEL__REASON_ENTRY_ILL,
                                  [END_ABORT] = DS_ACCEL__REASON_ENTRY_ABORT,
                                  [END_SIGNAL] = DS_ACCEL__REASON_ENTRY_SIGNAL,
                                  [END_EXIT] = DS_ACCEL__REASON_ENTRY_EXIT,
                                  [END_ENDED] = DS_ACCEL__REASON_ENTRY_ENDED,
                                  [END_HUNG] = DS_ACCEL__REASON_ENTRY_HUNG,
                                  [END_EXCEPTION] = DS_ACCEL__REASON_ENTRY_EXCEPTION},
        [DS_ACCEL__GATE_PROBE] = {[END_SEGV] = DS_ACCEL__REASON_PROBE_SEGV,
                                  [END_ILL] = DS_ACCEL__REASON_PROBE_ILL,
                                  [END_ABORT] = DS_ACCEL__REASON_PROBE_ABORT,
                                  [END_SIGNAL] = DS_ACCEL__REASON_PROBE_SIGNAL,
                                  [END_EXIT] = DS_ACCEL__REASON_PROBE_EXIT,
                                  [END_ENDED] = DS_ACCEL__REASON_PROBE_ENDED,
                                  [END_HUNG] = DS_ACCEL__REASON_PROBE_HUNG,
                                  [END_EXCEPTION] = DS_ACCEL__REASON_PROBE_EXCEPTION},
        [DS_ACCEL__GATE_START] = {[END_SEGV] = DS_ACCEL__REASON_START_SEGV,
                                  [END_ILL] = DS_ACCEL__REASON_START_ILL,
                                  [END_ABORT] = DS_ACCEL__REASON_START_ABORT,
                                  [END_SIGNAL] = DS_ACCEL__REASON_START_SIGNAL,
                                  [END_EXIT] = DS_ACCEL__REASON_START_EXIT,
                                  [END_ENDED] = DS_ACCEL__REASON_START_ENDED,
                                  [END_HUNG] = DS_ACCEL__REASON_START_HUNG,
                                  [END_EXCEPTION] = DS_ACCEL__REASON_START_EXCEPTION},
    };
    enum ds_accel__reason_id reason;

    assert(stage < DS_ACCEL__GATE_COUNT && end < END_COUNT);
    reason = reasons[stage][end];
    return reason != DS_ACCEL__REASON_NONE ? reason : DS_ACCEL__REASON_HELPER_FAILED;
}

static enum end end_of(int signal)
{
    return signal == SIGSEGV   ? END_SEGV
           : signal == SIGILL  ? END_ILL
           : signal == SIGABRT ? END_ABORT
                               : END_SIGNAL;
}

/* True if the output contains the text that C++ runtimes print for an uncaught exception. */
static bool has_thrown(const struct ds_accel__helper *helper)
{
    static const char *const words[] = {"terminate called after throwing",
                                        "terminating with uncaught exception",
                                        "terminating due to uncaught exception"};
    const struct ds_accel__captured *output = &helper->output[DS_ACCEL__OUTPUT_STDERR];

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (memmem(output->kept, output->kept_bytes, words[i], strlen(words[i])) != NULL) {
            return true;
        }
    }
    return false;
}

static void judge_signal(const struct ds_accel__helper *helper, int signal,
                         struct ds_accel__finding *finding)
{
    const char *name = sigabbrev_np(signal);
    enum end end = end_of(signal);

    if (signal == SIGABRT && has_thrown(helper)) {
        end = END_EXCEPTION;
    }
    if (helper->signal == signal && helper->address != UINT64_MAX && signal != SIGABRT) {
        ds_accel__finding_set(finding, stage_reason(helper->stage, end), "SIG%s at address 0x%llx",
                              name != NULL ? name : "?", (unsigned long long)helper->address);
    } else {
        ds_accel__finding_set(finding, stage_reason(helper->stage, end), "SIG%s",
                              name != NULL ? name : "?");
    }
}

/*
 * Describe how the supervisor itself terminated. Other code, such as a SIGCHLD handler of the
 * program, may have reaped it.
 */
static void find_lost(const struct ds_accel__helper *helper, bool was_reaped, const siginfo_t *info,
                      struct ds_accel__finding *finding)
{
    const struct ds_accel__captured *said = &helper->output[DS_ACCEL__OUTPUT_HELPER];

    if (was_reaped && info->si_code != CLD_EXITED) {
        const char *name = sigabbrev_np(info->si_status);

        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_FAILED, "SIG%s ended it",
                              name != NULL ? name : "?");
    } else if (was_reaped) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_FAILED, "exit code %d",
                              info->si_status);
    } else {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_FAILED,
                              "this program has reaped its exit code");
    }
    if (said->kept_bytes > 0) {
        size_t length = strlen(finding->detail);

        snprintf(finding->detail + length, sizeof(finding->detail) - length, ": %.*s",
                 (int)(said->kept_bytes < 300 ? said->kept_bytes : 300), said->kept);
    }
}

/*
 * Set finding to the way in which the process that probed terminated before it sent message END, or
 * to the error because of which no process was forked.
 */
static void judge_end(const struct ds_accel__helper *helper, struct ds_accel__finding *finding)
{
    const struct ds_accel__probe_ended *ended = &helper->ended;

    if (ended->error != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_REFUSED,
                              "no process can be forked: %s", strerror(ended->error));
    } else if (helper->signal != 0) {
        judge_signal(helper, helper->signal, finding);
    } else if (ended->code == CLD_KILLED || ended->code == CLD_DUMPED) {
        judge_signal(helper, ended->status, finding);
    } else if (helper->called_exit) {
        ds_accel__finding_set(finding, stage_reason(helper->stage, END_EXIT), "exit code %d",
                              ended->status);
    } else if (ended->status == DS_ACCEL__PROBE_EXIT_FAILED) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HELPER_FAILED, "it ran out of memory in %s",
                              ds_accel__gate_name(helper->stage));
    } else if (ended->status == DS_ACCEL__PROBE_EXIT_CLOSED) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_RESULT_CLOSED, "in or after %s",
                              ds_accel__gate_name(helper->stage));
    } else {
        ds_accel__finding_set(finding, stage_reason(helper->stage, END_ENDED), "exit code %d",
                              ended->status);
    }
}

static void keep_output(struct ds_accel__helper *helper)
{
    struct ds_accel__text text = {0};

    for (int i = 0; i < DS_ACCEL__OUTPUT_COUNT; i++) {
        struct ds_accel__captured *capture = &helper->output[i];

        ds_accel__helper_take_output(capture);
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

static void note_floods(struct ds_accel__helper *helper)
{
    static const enum ds_accel__reason_id reasons[] = {DS_ACCEL__REASON_PRINTS_STDOUT,
                                                       DS_ACCEL__REASON_PRINTS_STDERR};
    char detail[64];

    for (int i = 0; i < 2; i++) {
        ds_accel__helper_take_output(&helper->output[i]);
        if (helper->output[i].total_bytes > OUTPUT_FLOOD_BYTES) {
            snprintf(detail, sizeof(detail), "over %u bytes", OUTPUT_FLOOD_BYTES);
            note_conduct(helper, reasons[i], detail);
        }
    }
}

/*
 * Judge the plugin's conduct, but only if it is available, because only an available plugin would
 * run in the caller's process.
 */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    const struct ds_accel__conduct *conduct = &helper->conduct;
    struct ds_accel__finding finding = {0};

    if (candidate->state != DS_ACCEL_STATE_AVAILABLE) {
        return;
    }
    if (conduct->reason != DS_ACCEL__REASON_NONE) {
        ds_accel__finding_set(&finding, conduct->reason, "%s", conduct->detail);
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_CONDUCT, DS_ACCEL_STATE_REJECTED,
                                 &finding);
    } else {
        const char *stage = candidate->stage;

        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_CONDUCT, "%s%s",
                                 conduct->tolerated[0] != '\0' ? "tolerated: "
                                                               : "the process is as it was",
                                 conduct->tolerated);
        candidate->stage = stage; /* restore the stage of the plugin's own result */
    }
}

static void set_elapsed(struct ds_accel__helper *helper)
{
    helper->candidate->elapsed_us += (ds_accel__now_ns() - helper->start_ns) / 1000;
}

/* Mark the gates before stage as passed. stage is the one in which the process terminated. */
static void pass_before(struct ds_accel__candidate *candidate, uint32_t stage)
{
    if (stage > DS_ACCEL__GATE_LOAD) {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_LOAD, "opened by ds-accel-probe");
    }
    if (stage > DS_ACCEL__GATE_ENTRY) {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_ENTRY, DS_ACCEL_ENTRY_V1_SYMBOL);
    }
    if (stage > DS_ACCEL__GATE_PROBE) {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_PROBE, "available");
    }
}

/*
 * Set the state of a candidate that sent no valid result: timed out, crashed, or, if the helper is
 * the cause, error.
 */
static void fail_candidate(struct ds_accel__helper *helper, struct ds_accel__finding *finding)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    uint32_t state = helper->is_hung ? DS_ACCEL_STATE_TIMED_OUT : DS_ACCEL_STATE_CRASHED;
    bool is_result = ds_accel__reason_is_of_result(finding->reason);

    if (ds_accel__reason_is_of_helper(finding->reason)) {
        state = DS_ACCEL_STATE_ERROR;
    }
    ds_accel__sanitize(finding->detail, sizeof(finding->detail));
    pass_before(candidate, helper->stage);
    ds_accel__candidate_fail(candidate, is_result ? DS_ACCEL__GATE_CONDUCT : helper->stage, state,
                             finding);
}

static void find_hung(const ds_accel_t *context, const struct ds_accel__helper *helper,
                      struct ds_accel__finding *finding)
{
    ds_accel__finding_set(finding, stage_reason(helper->stage, END_HUNG),
                          "no result within %lld ms",
                          ds_accel__probe_setting(context, "timeout_ms", 30000));
}

/* Set finding to the reason why the process sent no valid result. False if its result is valid. */
static bool find_end(const ds_accel_t *context, const struct ds_accel__helper *helper,
                     struct ds_accel__finding *finding)
{
    if (helper->nonsense != DS_ACCEL__HEARD_SOMETHING) {
        ds_accel__finding_set(finding,
                              helper->nonsense == DS_ACCEL__HEARD_GARBAGE
                                  ? DS_ACCEL__REASON_RESULT_GARBLED
                                  : DS_ACCEL__REASON_RESULT_FORGED,
                              "in %s", ds_accel__gate_name(helper->stage));
    } else if (helper->is_hung && !helper->has_end) {
        find_hung(context, helper, finding);
    } else if (!helper->has_end) {
        judge_end(helper, finding);
    }
    return finding->reason != DS_ACCEL__REASON_NONE;
}

/*
 * True if the namespace may be the cause of a negative verdict although the plugin's hardware is
 * present: in a namespace a process ID differs from the process ID in /proc, and in a user
 * namespace set-user-ID programs, by which some drivers create their device nodes, do not work.
 */
static bool may_be_of_namespace(const ds_accel_t *context, const struct ds_accel__helper *helper)
{
    const struct ds_accel__candidate *candidate = helper->candidate;
    bool is_no = candidate->state == DS_ACCEL_STATE_UNAVAILABLE ||
                 candidate->state == DS_ACCEL_STATE_ERROR ||
                 candidate->state == DS_ACCEL_STATE_CRASHED;

    return is_no && helper->hello.containment == DS_ACCEL__CONTAIN_NAMESPACE &&
           candidate->lint == NULL && !ds_accel__reason_is_of_helper(candidate->reason) &&
           (candidate->has_hardware || candidate->hardware_count > 0 ||
            candidate->gates[DS_ACCEL__GATE_HARDWARE].result == DS_ACCEL__GATE_PASSED) &&
           strcmp(ds_accel__probe_containment(context), "auto") == 0;
}

/* Probe the candidate, and all later candidates, outside of a namespace. */
static int32_t ask_outside(ds_accel_t *context, struct ds_accel__helper *helper)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    siginfo_t info;

    ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_INFO,
                  "%s: %s in a namespace; probing again outside", candidate->name,
                  ds_accel__reason_code(candidate->reason));
    context->prober->is_outside = true;
    ds_accel__helper_end(context, helper, &info);
    ds_accel__candidate_unask(candidate);
    return ds_accel__helper_ask(context, helper, candidate);
}

int32_t ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper)
{
    struct ds_accel__finding finding = {0};
    siginfo_t info;

    assert(helper->candidate != NULL && helper->has_ended);
    set_elapsed(helper);
    if (find_end(context, helper, &finding)) {
        keep_output(helper);
        fail_candidate(helper, &finding);
    } else {
        note_floods(helper);
        if (helper->ended.has_left != 0 && !helper->conduct.has_process) {
            note_conduct(helper, DS_ACCEL__REASON_LEAVES_PROCESS,
                         "a process that it started outlived it");
        }
        keep_output(helper);
        ds_accel__helper_judge_conduct(helper);
    }
    context->containment = helper->hello.containment;
    if (may_be_of_namespace(context, helper)) {
        return ask_outside(context, helper);
    }
    helper->candidate = NULL;
    helper->is_used = true;
    if (helper->ended.is_stuck != 0 || helper->ended.is_changed != 0 || helper->is_deaf) {
        ds_accel__helper_end(context, helper, &info);
    }
    return DS_ACCEL_OK;
}

/*
 * Handle a supervisor that terminated or does not respond. The supervisor runs no plugin's code,
 * but a process that a plugin started may have killed or blocked it. If the supervisor has probed
 * other candidates before, one of them may be the cause: a new helper then probes this candidate
 * once more.
 */
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    struct ds_accel__helper before;
    struct ds_accel__finding finding = {0};
    bool was_reaped;
    siginfo_t info;

    assert(candidate != NULL && !helper->has_ended);
    keep_output(helper);
    set_elapsed(helper);
    before = *helper;
    was_reaped = ds_accel__helper_end(context, helper, &info);
    if (before.is_used) {
        ds_accel__log(&context->log, "probe", DS_ACCEL_LOG_INFO,
                      "%s: its helper, which had probed others, ended; probing again in a new one",
                      candidate->name);
        return ds_accel__helper_ask(context, helper, candidate);
    }
    if (!before.has_said_hello) {
        find_lost(&before, was_reaped, &info, &finding);
    } else if (before.is_hung) {
        find_hung(context, &before, &finding);
    } else {
        ds_accel__finding_set(&finding, stage_reason(before.stage, END_ENDED),
                              "it ended the process that watches it");
    }
    fail_candidate(&before, &finding);
    return DS_ACCEL_OK;
}
