/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Probes plugins without running their code in this process. Helper processes (ds-accel-probe,
 * probe_serve.c) receive candidates one by one over a socket and reply with sealed messages; this
 * file watches the channel, output and exit of each helper with one poll(). Every outcome becomes a
 * verdict: a result, a crash with its stage, a missed deadline, an invalid result, or conduct that
 * would harm the process into which the plugin is loaded next.
 *
 *     detect.c -> probe_all(candidates) -> ASK: idle helper, else spawn   supervisor: HELLO ENDED
 *                        ^                      |                         child: STAGE* CONDUCT*
 *                        |                poll: both channels, stdout,           RESULT END
 *                        |                stderr, pidfd, deadline
 *                        +-- verdicts <-- finish | lose -> stop it, ASK again
 *
 * probe_helper.c starts and stops helpers, probe_hear.c converts their messages to verdicts.
 */
#include "host/probe.h"
#include "base/clock.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/prober.h"
#include "host/registry.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOSED_GRACE_NS 1000000000ull /* time for a helper to exit after its channel ends */
#define QUICK_NS 10000000ull          /* most plugins reply within this time */
#define STOP_LIMIT_NS 5000000000ull   /* time for the supervisor to stop a process after STOP */
#define READS_AT_ONCE 16  /* maximum reads of one channel before other channels and deadlines */
#define READS_AT_END 4096 /* reads from an exited process: more than a socket can store */

/* ---- event loop ----------------------------------------------------------------------------- */

#define POLLED (3 + DS_ACCEL__OUTPUT_COUNT) /* number of descriptors of one helper */

/*
 * True if the helper's child started so recently that poll() need not wait for its messages: most
 * children soon send their result and exit, which the supervisor reports on its own channel. Waking
 * up for every message about a stage costs more than most stages.
 */
static bool is_quick(const struct ds_accel__helper *helper, uint64_t now_ns)
{
    return now_ns < helper->start_ns + QUICK_NS;
}

static void fill_polled(const struct ds_accel__helper *helper, struct pollfd *polled)
{
    bool is_heard = !is_quick(helper, ds_accel__now_ns());

    polled[0] = (struct pollfd){.fd = helper->channel, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = helper->pidfd, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = is_heard ? helper->answers : -1, .events = POLLIN};
    for (int i = 0; i < DS_ACCEL__OUTPUT_COUNT; i++) {
        polled[3 + i] = (struct pollfd){.fd = helper->output[i].fd, .events = POLLIN};
    }
}

/*
 * Return how many milliseconds poll() may wait: until the first deadline of a helper, or until
 * is_quick() becomes false for one, but at most 1000; -1 if no candidate is being probed.
 */
static int time_left(const struct ds_accel__prober *prober)
{
    uint64_t now = ds_accel__now_ns();
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < prober->width; i++) {
        const struct ds_accel__helper *helper = &prober->helpers[i];
        uint64_t limit = is_quick(helper, now) && helper->start_ns + QUICK_NS < helper->deadline_ns
                             ? helper->start_ns + QUICK_NS
                             : helper->deadline_ns;

        if (helper->pid != 0 && helper->candidate != NULL && limit < next) {
            next = limit;
        }
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    next = next > now ? (next - now) / 1000000 + 1 : 0;
    return next > 1000 ? 1000 : (int)next;
}

/*
 * Request that the supervisor stop the process that probes: with SIGKILL, or if is_asked_first is
 * true, first with SIGTERM. The supervisor has STOP_LIMIT_NS for this.
 */
static void stop(struct ds_accel__helper *helper, bool is_asked_first)
{
    ds_accel__helper_stop(helper, is_asked_first);
    helper->is_stopped = true;
    helper->deadline_ns = ds_accel__now_ns() + STOP_LIMIT_NS;
}

/*
 * Handle one helper after poll(): read its messages and output, and check its exit and its
 * deadline.
 */
static int32_t attend(ds_accel_t *context, struct ds_accel__helper *helper,
                      const struct pollfd *polled)
{
    bool has_died = polled[1].revents != 0;
    int32_t status;

    assert(helper->pid > 0 && helper->candidate != NULL);
    for (int i = 0; i < DS_ACCEL__OUTPUT_COUNT; i++) {
        if (polled[3 + i].revents != 0) {
            ds_accel__helper_take_output(&helper->output[i]);
        }
    }
    /* Read more from a helper that exited: its last messages may follow many log lines. */
    status = ds_accel__helper_hear(context, helper, has_died ? READS_AT_END : READS_AT_ONCE);
    if (status < 0) {
        return status;
    }
    if (helper->has_ended) {
        return ds_accel__helper_finish(context, helper);
    }
    if (!has_died && helper->channel < 0) {
        ds_accel__helper_wait(helper, CLOSED_GRACE_NS);
    }
    if (has_died || helper->channel < 0) {
        return ds_accel__helper_lose(context, helper);
    }
    if (!helper->is_stopped && helper->nonsense != DS_ACCEL__HEARD_SOMETHING) {
        stop(helper, false);
    } else if (ds_accel__now_ns() >= helper->deadline_ns) {
        helper->is_hung = helper->is_hung || helper->nonsense == DS_ACCEL__HEARD_SOMETHING;
        if (helper->is_stopped || !helper->has_said_hello) {
            return ds_accel__helper_lose(context, helper);
        }
        stop(helper, true);
    }
    return DS_ACCEL_OK;
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

/*
 * True if the results of the remaining candidates are not needed: a candidate is available, all
 * candidates before it have a verdict, and those after it were evaluated only ahead of their turn.
 */
static bool is_decided(const struct ds_accel__prober *prober,
                       struct ds_accel__candidate *const *candidates, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        if (!ds_accel__candidate_has_verdict(candidates[i]) || is_asked(prober, candidates[i])) {
            return false;
        }
        if (candidates[i]->state == DS_ACCEL_STATE_AVAILABLE) {
            return candidates[i + 1]->is_ahead;
        }
    }
    return false;
}

/*
 * Stop probing the remaining candidates, which are not needed: a plugin that hangs must not delay
 * the choice.
 */
static void drop_asked(struct ds_accel__prober *prober)
{
    for (size_t i = 0; i < prober->width; i++) {
        struct ds_accel__helper *helper = &prober->helpers[i];

        if (helper->pid != 0 && helper->candidate != NULL) {
            ds_accel__candidate_unask(helper->candidate);
            ds_accel__helper_dismiss(helper);
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

static bool is_refused(const struct ds_accel__candidate *candidate)
{
    return ds_accel__candidate_has_verdict(candidate) &&
           candidate->reason == DS_ACCEL__REASON_HELPER_REFUSED;
}

/*
 * Probe the next candidates, one in each free helper. If no further helper can be started, the
 * running helpers probe the remaining candidates.
 */
static int32_t ask_next(ds_accel_t *context, struct ds_accel__candidate **candidates, size_t count,
                        size_t *next)
{
    struct ds_accel__prober *prober = context->prober;
    bool is_full = false;

    assert(prober != NULL && *next <= count);
    for (size_t i = 0; i < prober->width && *next < count; i++) {
        struct ds_accel__helper *helper = &prober->helpers[i];
        int32_t status;

        if (helper->candidate != NULL || (is_full && helper->pid == 0)) {
            continue;
        }
        status = ds_accel__helper_ask(context, helper, candidates[*next]);
        if (status < 0) {
            return status;
        }
        if (is_refused(candidates[*next]) && count_busy(prober) > 0) {
            ds_accel__candidate_unask(candidates[*next]);
            is_full = true;
        } else {
            (*next)++;
        }
    }
    return DS_ACCEL_OK;
}

/* Wait for an event of any helper, and handle all events. */
static int32_t wait_and_attend(ds_accel_t *context, int left_ms)
{
    struct ds_accel__prober *prober = context->prober;
    struct pollfd polled[DS_ACCEL__PROBE_WIDTH_LIMIT * POLLED];
    struct ds_accel__helper *busy[DS_ACCEL__PROBE_WIDTH_LIMIT];
    int32_t status = DS_ACCEL_OK;
    size_t count = 0;

    assert(prober->width <= ARRAY_SIZE(busy));
    /*
     * Pass only the entries of busy helpers: poll() rejects more entries than the process may have
     * descriptors.
     */
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
 * Probe each candidate in the first free helper, until all candidates have a verdict, or until one
 * is available that makes the candidates evaluated ahead of their turn unnecessary.
 */
static int32_t run(ds_accel_t *context, struct ds_accel__candidate **candidates, size_t count)
{
    struct ds_accel__prober *prober = context->prober;
    int32_t status = DS_ACCEL_OK;
    size_t next = 0;

    assert(count > 0);
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
            continue; /* no helper could be started for one candidate: try the next */
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

    /*
     * Plugins that the program registered are part of the program, so they are always probed in
     * this process; other plugins only if the configuration or environment says so.
     */
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (!isolated || candidates[i]->is_registered) {
            status = ds_accel__probe_here(candidates[i]);
        } else {
            struct ds_accel__candidate *candidate = candidates[i];

            candidates[i] = candidates[left]; /* swap, so that no candidate is lost */
            candidates[left++] = candidate;
        }
    }
    if (status >= 0 && left > 0) {
        ds_accel__helpers_reap();
        status = ds_accel__prober_make(context);
        status = status < 0 ? status : run(context, candidates, left);
    }
    return status;
}

void ds_accel__probe_begin(ds_accel_t *context)
{
    if (ds_accel__probe_is_isolated(context) && ds_accel__prober_make(context) >= 0) {
        ds_accel__helper_begin(context, &context->prober->helpers[0]);
    }
}

void ds_accel__probe_release(ds_accel_t *context)
{
    struct ds_accel__prober *prober = context->prober;

    for (size_t i = 0; prober != NULL && i < prober->width; i++) {
        if (prober->helpers[i].pid != 0) {
            ds_accel__helper_dismiss(&prober->helpers[i]);
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
            ds_accel__helper_end(context, &prober->helpers[i], &info);
        }
    }
    if (prober != NULL) {
        free(prober->program);
        free(prober);
        context->prober = NULL;
    }
}
