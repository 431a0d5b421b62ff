/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds jobs that stopped making progress, from outside, without a change of the program.
 *
 *      watching: no output of any rank for the timeout?
 *         |                output, a rank ended, or a rank is stopped -> watching
 *      sampling: six samples of each rank's processes, and readings of the devices
 *         |                a thread works -> watching, for another timeout
 *      judging: no device works, and no rank works?
 *         |                otherwise -> watching, for another timeout
 *      reporting: the frames of all threads -> report, once
 *
 * The watch must not change a job that works. To read a thread's frames is to stop the thread, and
 * some system calls fail with EINTR after that (system_call.c). Samples therefore stop only active
 * threads (stall_rank.c), blocked threads are stopped only for a report, and threads in such a
 * system call not at all, unless the report ends the job (--stall-kill).
 *
 * What a rank does follows from stall_rank.c: it is idle, or it spins in a wait, or it works. A
 * rank is its process with all descendants (stall_scan.c). One rank that works, or a process that a
 * rank has left behind, is enough for no stall: the others rightly wait for it. Consequences:
 *
 * - A rank that computes silently, even for hours and in one function, is never reported, nor are
 *   the ranks that wait for it, because a program that loops forever cannot be distinguished from
 *   one that computes for long.
 * - Ranks that spin in a function whose name and library are unknown are not reported.
 * - Without libdw, or without the permission for ptrace(), a spinning rank is not reported, while
 *   one that uses no CPU time still is.
 * - A silent job on CPUs that spends nearly all its time in one collective operation, called from
 *   one place, may be in it in all five samples, and is then reported though it makes progress. A
 *   longer timeout does not prevent this; any output does.
 * - A helper of a rank that uses more than 1 percent of a CPU, such as a monitor, hides a stall.
 * - So does a thread that polls with epoll_wait() and uses as much.
 * - A helper process that is stopped is idle. While a rank's own process is stopped, the search
 *   pauses, because a user or a debugger has stopped the job.
 *
 * After a report the watch goes on. A job that is still stalled is not reported again; a job that
 * wrote something, lost a rank or worked is.
 */
#include "launch/stall.h"
#include "base/clock.h"
#include "base/text.h"
#include "launch/stall_rank.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_NS 200000000ull  /* after this time, a check reads no further rank */
#define LAST_NS 10000000000ull /* the same for the frames of a job that is to be ended */
#define PYTHON_NS 2000000000ull
#define NS_PER_MS 1000000ull
#define SPACING_MIN_NS 250000000ull
#define SPACING_MAX_NS 10000000000ull

struct ds_accel__stall {
    uint64_t timeout_ns;
    uint32_t first_rank; /* the number of the first rank */
    uint32_t rank_count;
    ds_accel__device_progress_t device_progress;
    void *device_data;
    struct ds_accel__fault *faults;
    bool is_last; /* the job is ended after a report */

    uint64_t next_ns;
    uint64_t silent_since_ns; /* the last output */
    uint64_t quiet_since_ns;  /* the last output or other sign of progress */
    uint64_t output_bytes;    /* of all ranks */
    uint32_t running_count;
    bool is_reported;

    uint32_t stopped_rank; /* the first one, or DS_ACCEL__SCANNED_NO_RANK */
    uint64_t stopped_since_ns;
    bool is_stop_noticed, is_failure_noticed;
    char notice[256]; /* "": none */
    bool has_notice;  /* it was not taken yet */

    struct ds_accel__scan first, last; /* at the first sample, and at the last one so far */
    bool is_sampling;
    bool is_reporting; /* a stall was found, and its frames are read */
    unsigned round;    /* complete samples */
    size_t cursor;     /* the next process of the current sample, or of the report */
    uint64_t round_ns;
    json_t *devices;
    bool has_device_progress;
    struct ds_accel__watched *processes; /* [process_count], by rank; NULL: no samples */
    size_t process_count;
    struct ds_accel__watched_rank *watched; /* [rank_count] */
};

int32_t ds_accel__stall_create(uint64_t timeout_ns, uint32_t rank_count, uint64_t now_ns,
                               struct ds_accel__stall **stall_out)
{
    struct ds_accel__stall *stall = calloc(1, sizeof(*stall));
    struct ds_accel__watched_rank *watched = calloc(rank_count, sizeof(*watched));

    assert(timeout_ns > 0 && rank_count > 0);
    if (stall == NULL || watched == NULL) {
        free(stall);
        free(watched);
        return ds_accel__no_memory();
    }
    *stall = (struct ds_accel__stall){.timeout_ns = timeout_ns,
                                      .rank_count = rank_count,
                                      .next_ns = now_ns,
                                      .silent_since_ns = now_ns,
                                      .quiet_since_ns = now_ns,
                                      .stopped_rank = DS_ACCEL__SCANNED_NO_RANK,
                                      .watched = watched};
    *stall_out = stall;
    return DS_ACCEL_OK;
}

/* Forget the samples. */
static void stop_sampling(struct ds_accel__stall *stall)
{
    ds_accel__watched_free(stall->processes, stall->process_count);
    stall->processes = NULL;
    stall->process_count = 0;
    json_decref(stall->devices);
    stall->devices = NULL;
    stall->cursor = 0;
    stall->is_sampling = false;
    stall->is_reporting = false;
}

void ds_accel__stall_destroy(struct ds_accel__stall *stall)
{
    if (stall != NULL) {
        stop_sampling(stall);
        ds_accel__scan_clear(&stall->first);
        ds_accel__scan_clear(&stall->last);
        free(stall->watched);
        free(stall);
    }
}

void ds_accel__stall_set_first_rank(struct ds_accel__stall *stall, uint32_t first_rank)
{
    stall->first_rank = first_rank;
}

void ds_accel__stall_set_devices(struct ds_accel__stall *stall,
                                 ds_accel__device_progress_t device_progress, void *user_data)
{
    stall->device_progress = device_progress;
    stall->device_data = user_data;
}

void ds_accel__stall_set_faults(struct ds_accel__stall *stall, struct ds_accel__fault *faults)
{
    stall->faults = faults;
}

void ds_accel__stall_set_last(struct ds_accel__stall *stall)
{
    stall->is_last = true;
}

uint64_t ds_accel__stall_next_ns(const struct ds_accel__stall *stall)
{
    return stall->next_ns;
}

/* ---- watching ------------------------------------------------------------------------------- */

/* Start a new wait for the timeout. */
static void watch_again(struct ds_accel__stall *stall, uint64_t now_ns)
{
    stop_sampling(stall);
    stall->quiet_since_ns = now_ns;
    stall->next_ns = now_ns + stall->timeout_ns / 8;
}

void ds_accel__stall_postpone(struct ds_accel__stall *stall, uint64_t now_ns)
{
    stall->silent_since_ns = now_ns;
    watch_again(stall, now_ns);
}

/* True if there was output, or a rank ended, since the last check. */
static bool is_progress(struct ds_accel__stall *stall, const struct ds_accel__stall_rank *ranks)
{
    uint64_t output_bytes = 0;
    uint32_t running_count = 0;
    bool is_changed;

    for (uint32_t i = 0; i < stall->rank_count; i++) {
        output_bytes += ranks[i].output_bytes;
        running_count += ranks[i].is_running;
    }
    is_changed = output_bytes != stall->output_bytes || running_count != stall->running_count;
    stall->output_bytes = output_bytes;
    stall->running_count = running_count;
    return is_changed;
}

/* ---- notices -------------------------------------------------------------------------------- */

const char *ds_accel__stall_take_notice(struct ds_accel__stall *stall)
{
    bool has_notice = stall->has_notice;

    stall->has_notice = false;
    return has_notice ? stall->notice : NULL;
}

static void add_notice(struct ds_accel__stall *stall, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(stall->notice, sizeof(stall->notice), format, arguments);
    va_end(arguments);
    stall->has_notice = true;
}

/* The processes of the job cannot be read. */
static void notice_failure(struct ds_accel__stall *stall)
{
    if (!stall->is_failure_noticed) {
        stall->is_failure_noticed = true;
        add_notice(stall, "the search for stalls failed: %s", ds_accel_last_error());
    }
}

/* True if a rank is stopped. The notice explains why there is no report; it comes when the rank was
 * stopped, and the job silent, for the timeout, so that short stops cause none. */
static bool is_stopped(struct ds_accel__stall *stall, uint64_t now_ns)
{
    uint32_t rank = ds_accel__scan_stopped_rank(&stall->last);

    if (rank != stall->stopped_rank) {
        stall->stopped_rank = rank;
        stall->stopped_since_ns = now_ns;
        stall->is_stop_noticed = false;
    }
    if (rank == DS_ACCEL__SCANNED_NO_RANK) {
        return false;
    }
    if (!stall->is_stop_noticed && now_ns - stall->stopped_since_ns >= stall->timeout_ns) {
        stall->is_stop_noticed = true;
        add_notice(
            stall,
            "rank %u is stopped, by a signal such as SIGSTOP or by a debugger; the search for "
            "stalls pauses until it continues",
            stall->first_rank + rank);
    }
    return true;
}

/* ---- sampling ------------------------------------------------------------------------------- */

static uint64_t spacing_ns(const struct ds_accel__stall *stall)
{
    uint64_t spacing = stall->timeout_ns / 20;

    return spacing < SPACING_MIN_NS   ? SPACING_MIN_NS
           : spacing > SPACING_MAX_NS ? SPACING_MAX_NS
                                      : spacing;
}

static void read_devices(struct ds_accel__stall *stall, bool is_first)
{
    if (stall->device_progress != NULL) {
        json_decref(stall->devices);
        stall->devices = NULL;
        stall->has_device_progress =
            stall->device_progress(stall->device_data, is_first, &stall->devices);
    }
}

/* False: memory is exhausted. */
static bool start_sampling(struct ds_accel__stall *stall)
{
    struct ds_accel__scan scan = stall->first;

    if (ds_accel__watched_choose(&stall->last, stall->rank_count, stall->watched, &stall->processes,
                                 &stall->process_count) < 0) {
        return false;
    }
    stall->first = stall->last;
    stall->last = scan;
    stall->is_sampling = true;
    stall->round = 0;
    read_devices(stall, true);
    return true;
}

/*
 * Before each sample: look at all processes, and begin to sample if it is time. False: there is
 * nothing to sample now. What cannot be read is no stall.
 */
static bool begin_sample(struct ds_accel__stall *stall, uint64_t now_ns,
                         const struct ds_accel__stall_rank *ranks)
{
    bool is_read = ds_accel__scan_read(&stall->last, ranks, stall->rank_count) >= 0;

    if (!is_read) {
        notice_failure(stall);
    }
    if (!is_read || is_stopped(stall, now_ns)) {
        ds_accel__stall_postpone(stall, now_ns);
        return false;
    }
    if (!stall->is_sampling && now_ns - stall->quiet_since_ns < stall->timeout_ns) {
        stall->next_ns = now_ns + stall->timeout_ns / 8;
        return false;
    }
    if (!stall->is_sampling && !start_sampling(stall)) {
        watch_again(stall, now_ns);
        return false;
    }
    stall->round_ns = now_ns;
    return true;
}

/* Read the next processes of this sample, at least one of them. */
static void sample_processes(struct ds_accel__stall *stall)
{
    uint64_t start_ns = ds_accel__now_ns();

    while (stall->cursor < stall->process_count) {
        struct ds_accel__watched *watched = &stall->processes[stall->cursor++];
        json_t *stack = NULL;

        if (ds_accel__stack_sample(watched->process.pid, DS_ACCEL__STACK_ACTIVE, watched->stack,
                                   &stack) >= 0 &&
            stack != NULL) {
            ds_accel__watched_add(watched, stack);
        }
        if (ds_accel__now_ns() - start_ns >= CHECK_NS) {
            break;
        }
    }
}

/* True if further samples are useless, because a thread works. */
static bool is_at_work(const struct ds_accel__stall *stall)
{
    uint64_t samples_ms = spacing_ns(stall) * (DS_ACCEL__STALL_SAMPLES - 1) / NS_PER_MS;

    for (size_t i = 0; i < stall->process_count; i++) {
        if (ds_accel__watched_is_at_work(&stall->processes[i], samples_ms)) {
            return true;
        }
    }
    return false;
}

/* ---- judging -------------------------------------------------------------------------------- */

/* The time from the first scan to the last. */
static uint64_t during_ms(const struct ds_accel__stall *stall)
{
    return stall->last.time_ms - stall->first.time_ms;
}

static bool is_stalled(struct ds_accel__stall *stall, const struct ds_accel__stall_rank *ranks)
{
    uint64_t others_ms = ds_accel__watched_ranks_rest(
        stall->watched, stall->rank_count, &stall->first, &stall->last, DS_ACCEL__STALL_SAMPLES);
    bool is_any = false;

    if (others_ms > ds_accel__watched_limit_ms(during_ms(stall))) {
        return false;
    }
    for (uint32_t i = 0; i < stall->rank_count; i++) {
        if (ranks[i].is_running) {
            is_any = true;
            if (ds_accel__watched_rank_condition(&stall->watched[i], during_ms(stall),
                                                 DS_ACCEL__STALL_SAMPLES) ==
                DS_ACCEL__CONDITION_WORKING) {
                return false;
            }
        }
    }
    return is_any && !stall->has_device_progress;
}

/* After the last sample. True: a stall is to be reported. */
static bool judge(struct ds_accel__stall *stall, const struct ds_accel__stall_rank *ranks)
{
    bool is_found;

    stall->has_device_progress = false;
    read_devices(stall, false);
    is_found = is_stalled(stall, ranks);
    stall->is_reported = stall->is_reported && is_found;
    return is_found && !stall->is_reported;
}

/* Take one sample, or a part of it, and judge after the last one. */
static void sample(struct ds_accel__stall *stall, uint64_t now_ns,
                   const struct ds_accel__stall_rank *ranks)
{
    if (stall->cursor == 0 && !begin_sample(stall, now_ns, ranks)) {
        return;
    }
    sample_processes(stall);
    if (stall->cursor < stall->process_count) {
        stall->next_ns = now_ns; /* at once, after other events */
        return;
    }
    stall->cursor = 0;
    stall->round++;
    stall->next_ns = stall->round_ns + spacing_ns(stall);
    if (is_at_work(stall)) {
        stall->is_reported = false;
        watch_again(stall, now_ns);
    } else if (stall->round == DS_ACCEL__STALL_SAMPLES) {
        stall->is_reporting = judge(stall, ranks);
        if (!stall->is_reporting) {
            watch_again(stall, now_ns);
        }
    }
}

/* ---- reporting ------------------------------------------------------------------------------ */

/*
 * Read the frames of the next processes, at least one of them. If the job is to be ended, a rank
 * whose system call fails for a stop may end at once; so all are read before the caller can see
 * that. True: all were read.
 */
static bool read_frames(struct ds_accel__stall *stall)
{
    enum ds_accel__stack_scope scope = stall->is_last ? DS_ACCEL__STACK_ALL
                                                      : DS_ACCEL__STACK_UNAFFECTED;
    uint64_t start_ns = ds_accel__now_ns();

    while (stall->cursor < stall->process_count) {
        struct ds_accel__watched *watched = &stall->processes[stall->cursor++];
        json_t *stack = NULL;

        if (ds_accel__stack_sample(watched->process.pid, scope, NULL, &stack) >= 0 &&
            stack != NULL) {
            ds_accel__watched_set_frames(watched, stack);
        }
        if (ds_accel__now_ns() - start_ns >= (stall->is_last ? LAST_NS : CHECK_NS)) {
            break;
        }
    }
    return stall->is_last || stall->cursor == stall->process_count;
}

static void collect_tracebacks(struct ds_accel__stall *stall,
                               const struct ds_accel__stall_rank *ranks)
{
    pid_t *pids;

    assert(stall->rank_count > 0);
    pids = calloc(stall->rank_count, sizeof(*pids));
    for (uint32_t i = 0; pids != NULL && i < stall->rank_count; i++) {
        pids[i] = ranks[i].is_running ? ranks[i].pid : 0;
    }
    if (pids != NULL) {
        ds_accel__fault_collect(stall->faults, pids, stall->rank_count, PYTHON_NS);
    }
    free(pids);
}

static json_t *make_report(struct ds_accel__stall *stall, uint64_t now_ns,
                           const struct ds_accel__stall_rank *ranks)
{
    struct ds_accel__stall_facts facts = {.silent_ns = now_ns - stall->silent_since_ns,
                                          .watched = stall->watched,
                                          .during_ms = during_ms(stall),
                                          .ranks = ranks,
                                          .faults = stall->faults,
                                          .rank_count = stall->rank_count,
                                          .first_rank = stall->first_rank,
                                          .devices = stall->devices};

    for (uint32_t i = 0; i < stall->rank_count; i++) {
        ds_accel__watched_rank_choose(&stall->watched[i], DS_ACCEL__STALL_SAMPLES);
    }
    if (stall->faults != NULL) {
        collect_tracebacks(stall, ranks);
    }
    return ds_accel__stall_report(&facts);
}

/* If memory is exhausted, the stall is reported after the next samples. */
static bool report(struct ds_accel__stall *stall, uint64_t now_ns,
                   const struct ds_accel__stall_rank *ranks, json_t **report_out)
{
    json_t *tree;

    if (!read_frames(stall)) {
        stall->next_ns = now_ns; /* at once, after other events */
        return false;
    }
    tree = make_report(stall, now_ns, ranks);
    stall->is_reported = tree != NULL;
    watch_again(stall, now_ns);
    if (tree != NULL) {
        *report_out = tree;
    }
    return tree != NULL;
}

bool ds_accel__stall_check(struct ds_accel__stall *stall, uint64_t now_ns,
                           const struct ds_accel__stall_rank *ranks, json_t **report_out)
{
    if (is_progress(stall, ranks)) {
        stall->silent_since_ns = now_ns;
        stall->stopped_since_ns = now_ns;
        stall->is_reported = false;
        watch_again(stall, now_ns);
        return false;
    }
    if (now_ns < stall->next_ns) {
        return false;
    }
    if (!stall->is_reporting) {
        sample(stall, now_ns, ranks);
    }
    return stall->is_reporting && report(stall, now_ns, ranks, report_out);
}
