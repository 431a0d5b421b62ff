/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What helpers say to probe.c, and what becomes of it: frames fill in the candidate that is being
 * asked; the end of a helper, a deadline or nonsense becomes a reason with the stage it happened
 * in, since the frames tell how far the candidate's code had come.
 */
#include "prober.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_FLOOD_BYTES 65536u /* more than this is conduct */
#define LOG_LIMIT_BYTES 65536u    /* of one candidate */

/* ---- hearing -------------------------------------------------------------------------------- */

void ds_accel__helper_take_output(struct ds_accel__capture *capture)
{
    char data[16384];
    ssize_t count = 0;

    /* Never to the end of the file: a grandchild may hold the other end for ever. */
    while (capture->fd >= 0 &&
           ((count = read(capture->fd, data, sizeof(data))) > 0 || (count < 0 && errno == EINTR))) {
        size_t room = DS_ACCEL__OUTPUT_KEPT_BYTES - capture->kept_bytes;
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
        ds_accel__probe_close(&capture->fd);
    }
}

static void note_conduct(struct ds_accel__helper *helper, const char *code, const char *detail)
{
    const struct ds_accel__reason *reason = ds_accel__reason(code);
    struct ds_accel__conduct *conduct = &helper->conduct;
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
static bool take_result(struct ds_accel__helper *helper, const struct ds_accel__frame *frame)
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
static void take_log(const ds_accel_t *context, struct ds_accel__helper *helper,
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

static void take_signal(struct ds_accel__helper *helper, const struct ds_accel__frame *frame)
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

static void take_rule(const struct ds_accel__helper *helper, const struct ds_accel__frame *frame)
{
    const struct ds_accel__lint_sink *lint = helper->candidate->lint;
    uint32_t rule[2];

    if (lint != NULL && ds_accel__frame_struct(frame, rule, sizeof(rule))) {
        lint->judge(lint->user_data, rule[0], rule[1],
                    ds_accel__frame_text(frame, sizeof(rule), 0));
    }
}

enum ds_accel__heard ds_accel__helper_take_frame(ds_accel_t *context,
                                                 struct ds_accel__helper *helper,
                                                 const struct ds_accel__frame *frame)
{
    uint32_t stage;

    switch (frame->kind) {
    case DS_ACCEL__FRAME_HELLO:
        if (helper->has_said_hello) {
            return DS_ACCEL__HEARD_FORGERY; /* it would put the deadline off */
        }
        helper->has_said_hello = true;
        helper->deadline_ns = ds_accel__now_ns() +
                              (uint64_t)ds_accel__probe_setting(context, "timeout_ms", 30000) *
                                  1000000u;
        break;
    case DS_ACCEL__FRAME_STAGE:
        if (!ds_accel__frame_struct(frame, &stage, sizeof(stage)) || stage < DS_ACCEL__GATE_LOAD ||
            stage > DS_ACCEL__GATE_PROBE) {
            return DS_ACCEL__HEARD_FORGERY;
        }
        helper->stage = stage;
        break;
    case DS_ACCEL__FRAME_LOG:
        take_log(context, helper, frame);
        break;
    case DS_ACCEL__FRAME_RESULT:
        return take_result(helper, frame) ? DS_ACCEL__HEARD_SOMETHING : DS_ACCEL__HEARD_FORGERY;
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
        return helper->has_result ? DS_ACCEL__HEARD_END : DS_ACCEL__HEARD_FORGERY;
    default:
        return DS_ACCEL__HEARD_FORGERY;
    }
    return DS_ACCEL__HEARD_SOMETHING;
}

enum ds_accel__heard ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper,
                                           int reads, int32_t *status_out)
{
    while (helper->channel >= 0) {
        struct ds_accel__frame frame;
        enum ds_accel__frame_result result = ds_accel__frame_next(&helper->reader, &frame);
        enum ds_accel__heard heard = DS_ACCEL__HEARD_SOMETHING;
        size_t room;
        void *data;
        ssize_t count;

        if (result == DS_ACCEL__FRAME_GARBLED || result == DS_ACCEL__FRAME_FORGED) {
            return result == DS_ACCEL__FRAME_GARBLED ? DS_ACCEL__HEARD_GARBAGE
                                                     : DS_ACCEL__HEARD_FORGERY;
        }
        if (result == DS_ACCEL__FRAME_READY) {
            heard = ds_accel__helper_take_frame(context, helper, &frame);
            if (heard != DS_ACCEL__HEARD_SOMETHING) {
                return heard;
            }
            continue;
        }
        if (reads-- == 0) {
            return DS_ACCEL__HEARD_SOMETHING; /* it logs as fast as this reads: deadlines come first
                                               */
        }
        data = ds_accel__frame_room(&helper->reader, &room);
        if (data == NULL) {
            *status_out = ds_accel__no_memory();
            return DS_ACCEL__HEARD_SOMETHING;
        }
        count = recv(helper->channel, data, room, 0);
        if (count > 0) {
            helper->reader.size_bytes += (size_t)count;
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            ds_accel__probe_close(&helper->channel);
        } else if (errno == EAGAIN) {
            return DS_ACCEL__HEARD_SOMETHING;
        }
    }
    return DS_ACCEL__HEARD_SOMETHING;
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
static bool has_thrown(const struct ds_accel__helper *helper)
{
    static const char *const words[] = {"terminate called after throwing",
                                        "terminating with uncaught exception",
                                        "terminating due to uncaught exception"};
    const struct ds_accel__capture *output = &helper->output[1];

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(words); i++) {
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
static void judge_end(const struct ds_accel__helper *helper, bool was_reaped, const siginfo_t *info,
                      struct ds_accel__finding *finding)
{
    bool was_killed = was_reaped && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED);

    if (!helper->has_said_hello) {
        const struct ds_accel__capture *said = &helper->output[1];

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

static void keep_output(struct ds_accel__helper *helper)
{
    struct ds_accel__text text = {0};

    for (int i = 0; i < 2; i++) {
        const struct ds_accel__capture *capture = &helper->output[i];

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
    static const char *const codes[] = {"prints_stdout", "prints_stderr"};
    char detail[64];

    for (int i = 0; i < 2; i++) {
        ds_accel__helper_take_output(&helper->output[i]);
        if (helper->output[i].total_bytes > OUTPUT_FLOOD_BYTES) {
            snprintf(detail, sizeof(detail), "over %u bytes", OUTPUT_FLOOD_BYTES);
            helper->conduct.is_tainted = true; /* there may be more in the pipe */
            note_conduct(helper, codes[i], detail);
        }
    }
}

/* Conduct matters where the plugin would be used: in the caller's process. */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    const struct ds_accel__conduct *conduct = &helper->conduct;
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

static void set_elapsed(struct ds_accel__helper *helper)
{
    helper->candidate->elapsed_us += (ds_accel__now_ns() - helper->start_ns) / 1000;
}

/* It said END: the answer stands. The helper goes on, unless its process is not as it was. */
void ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper)
{
    siginfo_t info;

    note_floods(helper);
    keep_output(helper);
    ds_accel__helper_judge_conduct(helper);
    set_elapsed(helper);
    helper->candidate = NULL;
    helper->is_used = true;
    if (helper->conduct.is_tainted) {
        ds_accel__helper_end(context, helper, false, &info);
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
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper,
                              enum ds_accel__heard heard, bool is_hung)
{
    struct ds_accel__candidate *candidate = helper->candidate;
    struct ds_accel__helper before;
    struct ds_accel__finding finding = {0};
    bool was_reaped;
    siginfo_t info;
    uint32_t state = DS_ACCEL_STATE_CRASHED;

    ds_accel__helper_take_output(&helper->output[0]);
    ds_accel__helper_take_output(&helper->output[1]);
    keep_output(helper);
    set_elapsed(helper);
    before = *helper;
    was_reaped = ds_accel__helper_end(context, helper, is_hung, &info);
    if (is_hung && before.has_said_hello) {
        state = DS_ACCEL_STATE_TIMED_OUT;
        ds_accel__find(&finding, stage_reason(before.stage, "hung"), "no answer within %lld ms",
                       ds_accel__probe_setting(context, "timeout_ms", 30000));
    } else if (heard == DS_ACCEL__HEARD_GARBAGE) {
        ds_accel__find(&finding, "result_garbled", "in %s", ds_accel__gate_name(before.stage));
    } else if (heard == DS_ACCEL__HEARD_FORGERY) {
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
        return ds_accel__helper_ask(context, helper, candidate);
    }
    pass_before(candidate, before.stage);
    ds_accel__candidate_fail(candidate,
                             strncmp(finding.reason, "result_", 7) == 0 ? DS_ACCEL__GATE_CONDUCT
                                                                        : before.stage,
                             state, &finding);
    return DS_ACCEL_OK;
}
