/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Runs a job to its end, in one loop around poll():
 *
 *      signalfd   SIGCHLD: a rank, or an orphan that a rank left, has ended or stopped
 *                 SIGINT, SIGTERM, ...: passed on to the ranks
 *      pidfd      the guard has died: everything is killed
 *      pipes      what ranks write
 *      timerfd    incomplete lines, the end of a grace period, a terminal in the background
 *
 * Phases:
 *
 *      RUNNING -> SIGNALED    a signal was passed on; the ranks have time to save their state, also
 *                             if some have ended; a second signal kills at once
 *      RUNNING -> ENDING      a rank has failed: SIGTERM to all processes of the job
 *      RUNNING -> ENDED       the ranks have ended by themselves, but other processes are left:
 *                             they have a moment, because helpers of a rank often end after it
 *      SIGNALED, ENDING, ENDED -> LEFTOVERS     SIGTERM to the other processes that are left
 *      SIGNALED, ENDING, LEFTOVERS -> KILLING   the grace period is over
 *
 * This process is a subreaper, so that processes whose parent has ended become its children, also
 * after a double fork or setsid(): none escapes, and all are reaped.
 */
#include "base/clock.h"
#include "base/descendants.h"
#include "base/text.h"
#include "launch/job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define GRACE_NS (30 * SECOND_NS)         /* from SIGTERM to SIGKILL */
#define LEFTOVER_WAIT_NS (SECOND_NS / 5)  /* for processes that end soon after all ranks */
#define LEFTOVER_GRACE_NS (5 * SECOND_NS) /* from SIGTERM to SIGKILL for those that do not */
#define KILL_LIMIT_NS (10 * SECOND_NS)    /* then a process that SIGKILL did not end is left */
#define KILL_AGAIN_NS (SECOND_NS / 10)    /* between attempts to kill */
#define FLUSH_NS (SECOND_NS / 10)         /* until an incomplete line is written */
#define SECOND_SIGNAL_NS (SECOND_NS / 2)  /* signals in less time are one signal */
#define SAME_SIGNAL_NS (SECOND_NS / 4)    /* a signal to the group comes twice in this time */
#define DRAIN_MS 5000                     /* for a slow reader after a signal */
#define DRAIN_BYTES (4u << 20)            /* more than a pipe or a terminal holds */
#define PTY_BYTES (1u << 17)              /* more than a pseudo-terminal holds */

/* ---- signals to ranks ----------------------------------------------------------------------- */

static void signal_rank(const struct ds_accel__job_rank *rank, int signal)
{
    if (rank->state == DS_ACCEL__RANK_RUNNING) {
        kill(rank->pid, signal); /* not reaped yet, so the pid is still its own */
    }
}

static void signal_ranks(const struct ds_accel__job *job, int signal)
{
    for (uint32_t i = 0; i < job->rank_count; i++) {
        signal_rank(&job->ranks[i], signal);
    }
}

/* Send a signal to the guard, and to no process that has its ID after its death. */
static bool signal_guard(const struct ds_accel__job *job, int signal)
{
    return syscall(SYS_pidfd_send_signal, job->guard_fd, signal, NULL, 0) == 0;
}

/* Send a signal to the ranks of this process group, or to those that have left it, for example into
 * a session of their own. */
static void signal_ranks_of_group(const struct ds_accel__job *job, bool is_ours, int signal)
{
    pid_t group = getpgrp();

    for (uint32_t i = 0; i < job->rank_count; i++) {
        if (job->ranks[i].state == DS_ACCEL__RANK_RUNNING &&
            (getpgid(job->ranks[i].pid) == group) == is_ours) {
            signal_rank(&job->ranks[i], signal);
        }
    }
}

/*
 * May this process signal all processes of its pid namespace? If the guard is process 1, they are
 * the job's, except what was started from outside, or before the guard; that is left alone where
 * /proc shows the processes of the job.
 */
static bool needs_namespace(const struct ds_accel__job *job)
{
    return job->is_init && !ds_accel__descendants_are_visible();
}

/* Signal all processes of the job; returns their number, or that of the ranks. */
static size_t signal_all(const struct ds_accel__job *job, int signal)
{
    if (needs_namespace(job)) {
        return kill(-1, signal) == 0 ? job->running_count : 0; /* not to this process, nor to 1 */
    }
    return ds_accel__descendants_signal(getpid(), signal);
}

/*
 * Terminate all processes of the job. A stopped process must continue to receive the signal.
 * Without /proc only the ranks themselves are found, unless the pid namespace is the job's.
 */
static void terminate_all(struct ds_accel__job *job, enum ds_accel__job_phase phase,
                          uint64_t grace_ns)
{
    job->phase = phase;
    job->deadline_ns = ds_accel__now_ns() + grace_ns;
    if (signal_all(job, SIGTERM) < job->running_count) {
        signal_ranks(job, SIGTERM);
    }
    signal_all(job, SIGCONT);
    signal_ranks(job, SIGCONT);
}

static void kill_all(struct ds_accel__job *job)
{
    if (job->phase != DS_ACCEL__JOB_KILLING) {
        job->phase = DS_ACCEL__JOB_KILLING;
        job->kill_ns = ds_accel__now_ns();
    }
    job->deadline_ns = ds_accel__now_ns() + KILL_AGAIN_NS;
    ds_accel__groups_kill(job->groups);
    if (needs_namespace(job)) {
        kill(-1, SIGKILL);
    } else {
        ds_accel__descendants_kill(getpid());
    }
    signal_ranks(job, SIGKILL);
}

/* ---- ranks that end ------------------------------------------------------------------------- */

static struct ds_accel__job_rank *find_rank(const struct ds_accel__job *job, pid_t pid)
{
    for (uint32_t i = 0; i < job->rank_count; i++) {
        if (job->ranks[i].pid == pid && job->ranks[i].state == DS_ACCEL__RANK_RUNNING) {
            return &job->ranks[i];
        }
    }
    return NULL;
}

/* Does this process have a controlling terminal? Its stdin and stdout may be files all the same. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    close(fd);
    return true;
}

/* Does the rank have the terminal of --pty? */
static bool is_on_pty(const struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    return job->pty.master >= 0 && rank->rank->local_rank == 0;
}

/*
 * A rank that the terminal stops, for example because it reads in the background, is a job that the
 * shell must see stop: the guard, which the shell waits for, stops as well. So does a single rank
 * that stops itself. When the rank goes on, the guard does, too.
 */
static void follow_stop(struct ds_accel__job *job, const struct ds_accel__job_rank *rank,
                        const siginfo_t *info)
{
    bool is_terminals = info->si_status == SIGTTIN || info->si_status == SIGTTOU ||
                        info->si_status == SIGTSTP;

    if (info->si_code == CLD_CONTINUED) {
        ds_accel__job_continue_guard(job);
    } else if ((is_terminals || job->rank_count == 1) && !job->has_stopped_guard &&
               job->phase == DS_ACCEL__JOB_RUNNING && !is_on_pty(job, rank) && has_terminal()) {
        job->has_stopped_guard = signal_guard(job, SIGTSTP);
    }
}

/* Write what the rank has left in its pseudo-terminal, while the user's terminal is raw, and then
 * restore that. A full sink, or another process that goes on to write, does not delay the end. */
static void release_pty(struct ds_accel__job *job, struct ds_accel__job_rank *rank)
{
    struct ds_accel__stream *stream = &rank->streams[DS_ACCEL__OUT];
    uint64_t end = stream->total_bytes + PTY_BYTES;
    uint64_t before = UINT64_MAX;

    while (stream->fd >= 0 && !ds_accel__sink_is_full(stream->sink) &&
           stream->total_bytes != before && stream->total_bytes < end) {
        before = stream->total_bytes;
        ds_accel__stream_read(stream, ds_accel__now_ns());
    }
    ds_accel__pty_release(&job->pty);
}

static void end_rank(struct ds_accel__job *job, struct ds_accel__job_rank *rank,
                     const siginfo_t *info)
{
    rank->ended = *info;
    rank->end_ns = ds_accel__now_ns();
    rank->state = DS_ACCEL__RANK_ENDED;
    rank->is_victim = job->phase != DS_ACCEL__JOB_RUNNING && !rank->was_exiting;
    job->has_new_candidate |= rank->was_exiting;
    job->running_count--;
    if (is_on_pty(job, rank)) {
        release_pty(job, rank);
    }
}

/* Reap one process that has ended, or notice that it has stopped. False: there is none.
 * has_children_out: there are others. */
static bool reap_one(struct ds_accel__job *job, bool *has_children_out)
{
    siginfo_t info = {0};
    struct ds_accel__job_rank *rank;

    *has_children_out = true;
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0) {
        *has_children_out = errno != ECHILD;
        return errno == EINTR;
    }
    if (info.si_pid == 0) {
        return false;
    }
    rank = find_rank(job, info.si_pid);
    if (rank != NULL && (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED)) {
        follow_stop(job, rank, &info);
    } else if (rank != NULL) {
        end_rank(job, rank, &info);
    }
    return true;
}

/* End the processes that are left when all ranks have ended. */
static void end_leftovers(struct ds_accel__job *job)
{
    if (job->phase == DS_ACCEL__JOB_RUNNING) {
        job->phase = DS_ACCEL__JOB_ENDED;
        job->deadline_ns = ds_accel__now_ns() + LEFTOVER_WAIT_NS;
    } else if (job->phase == DS_ACCEL__JOB_SIGNALED || job->phase == DS_ACCEL__JOB_ENDING) {
        terminate_all(job, DS_ACCEL__JOB_LEFTOVERS, LEFTOVER_GRACE_NS);
    }
}

/* Reap all processes that have ended, and begin the end of the job if a rank has failed. */
static void reap(struct ds_accel__job *job)
{
    bool has_children = true;

    while (reap_one(job, &has_children)) {
    }
    job->has_children = has_children;
    if (job->phase == DS_ACCEL__JOB_RUNNING && job->culprit == DS_ACCEL__NO_RANK) {
        if (ds_accel__job_find_culprit(job)) {
            terminate_all(job, DS_ACCEL__JOB_ENDING, GRACE_NS);
        }
    } else if (job->phase == DS_ACCEL__JOB_ENDING ||
               (job->phase == DS_ACCEL__JOB_KILLING && job->culprit != DS_ACCEL__NO_RANK)) {
        ds_accel__job_review_culprit(job);
    }
    if (job->running_count == 0 && job->has_children) {
        end_leftovers(job);
    }
}

/* ---- signals to this process ---------------------------------------------------------------- */

/* Is this a signal that ends a program unless it handles it? */
static bool ends(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/*
 * Whether the ranks have a signal already that came to this process:
 *
 *      from the kernel          the terminal sent it to the process group: they have it
 *      from the guard           only the guard received it: it is passed on
 *      directly, and the guard  it was sent to the process group: they have it
 *        received it as well
 *      directly, not the guard  only this process received it: it is passed on, a little later
 *
 * A signal to guard and supervisor, but not to their group, looks like one to the group. Users send
 * such a signal by a name (pkill, killall), so the supervisor has another name than the guard, and
 * its command line has only the program of the ranks: a pattern that matches both matches the ranks
 * as well. What still selects both, such as the file that they execute, is the reason for
 * send_again().
 *
 * The guard counts what it passes on, because its copy is lost if this process has not taken the
 * other one yet.
 */

/* Was the signal passed on by the guard? */
static bool is_guards(const struct signalfd_siginfo *info)
{
    return info->ssi_code != SI_KERNEL && (pid_t)info->ssi_pid == getppid();
}

static uint32_t count_passed_on(const struct ds_accel__job *job, int signal)
{
    return __atomic_load_n(&job->passed_on[signal], __ATOMIC_ACQUIRE);
}

/* Decide about signals that came directly. With a signal to the group, the guard has passed it on
 * by now. */
static void decide_signals(struct ds_accel__job *job, uint64_t now_ns)
{
    for (int signal = 1; signal < _NSIG; signal++) {
        uint32_t passed_on;

        if (job->direct_ns[signal] == 0 || now_ns < job->direct_ns[signal] + SAME_SIGNAL_NS) {
            continue;
        }
        if (count_passed_on(job, 0) != 0) { /* a stopped guard passes it on when it continues */
            job->direct_ns[signal] = now_ns;
            continue;
        }
        passed_on = count_passed_on(job, signal);
        job->direct_ns[signal] = 0;
        if (passed_on == job->passed_on_before[signal]) {
            signal_ranks_of_group(job, true, signal);
        } else if (signal == job->signal && job->phase == DS_ACCEL__JOB_SIGNALED) {
            job->may_send_again = true;
        }
        job->passed_on_before[signal] = passed_on;
    }
}

/*
 * The time after a signal to the group is over, and no rank has ended: perhaps none has received
 * it. A rank that has may receive it again then, which is better than SIGKILL for those that have
 * not. The time begins anew. False: there is nothing to send again.
 */
static bool send_again(struct ds_accel__job *job, uint64_t now_ns)
{
    bool is_useful = job->may_send_again && job->phase == DS_ACCEL__JOB_SIGNALED &&
                     job->running_count == job->signal_running_count;

    job->may_send_again = false;
    if (is_useful) {
        signal_ranks_of_group(job, true, job->signal);
        job->deadline_ns = now_ns + GRACE_NS;
    }
    return is_useful;
}

/* End the job by a signal: the ranks have time, unless it is the second one. */
static void end_by_signal(struct ds_accel__job *job, int signal, uint64_t now_ns)
{
    if (job->signal != 0 && now_ns - job->signal_ns >= SECOND_SIGNAL_NS) {
        kill_all(job);
    } else if (job->signal == 0) {
        job->signal = signal;
        job->signal_ns = now_ns;
        job->signal_running_count = job->running_count;
        if (job->phase == DS_ACCEL__JOB_RUNNING) {
            job->phase = DS_ACCEL__JOB_SIGNALED;
            job->deadline_ns = now_ns + GRACE_NS;
            signal_ranks(job, SIGCONT);
        }
    }
}

/* Pass on a signal. With a single rank, the terminal's SIGINT is that rank's matter: an interpreter
 * or a debugger goes on. */
static void take_signal(struct ds_accel__job *job, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;
    bool is_terminals = info->ssi_code == SI_KERNEL;
    uint32_t passed_on = count_passed_on(job, signal);
    uint64_t now_ns = ds_accel__now_ns();

    if (!is_guards(info)) {
        signal_ranks_of_group(job, false, signal);
        if (!is_terminals && job->direct_ns[signal] == 0) {
            job->direct_ns[signal] = now_ns;
        }
    } else if (job->direct_ns[signal] != 0 || passed_on == job->passed_on_before[signal]) {
        return; /* the same signal, through the guard */
    } else {
        job->passed_on_before[signal] = passed_on;
        signal_ranks(job, signal);
    }
    if (job->pty.master >= 0 && signal == SIGWINCH) {
        ds_accel__pty_resize(&job->pty);
    }
    if (job->pty.master >= 0 && signal == SIGCONT) {
        ds_accel__pty_enter_raw(&job->pty);
    }
    if (signal == SIGCONT) {
        job->has_stopped_guard = false;
    }
    if (ends(signal) && is_terminals && job->rank_count == 1 && job->pty.master < 0) {
        job->terminal_signal = signal;
    } else if (ends(signal)) {
        end_by_signal(job, signal, now_ns);
    }
}

static void take_signals(struct ds_accel__job *job)
{
    struct signalfd_siginfo info;

    while (read(job->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGPIPE) {
            take_signal(job, &info);
        }
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

static void earlier(uint64_t *next_ns, uint64_t ns)
{
    if (ns != 0 && (*next_ns == 0 || ns < *next_ns)) {
        *next_ns = ns;
    }
}

/* Set the timer to the next moment at which something must be done. An incomplete line waits for a
 * full sink without a time. */
static void set_timer(struct ds_accel__job *job)
{
    uint64_t next_ns = 0;
    struct itimerspec spec = {0};

    earlier(&next_ns, job->deadline_ns);
    earlier(&next_ns, job->pty.check_ns);
    for (int signal = 1; signal < _NSIG; signal++) {
        if (job->direct_ns[signal] != 0) {
            earlier(&next_ns, job->direct_ns[signal] + SAME_SIGNAL_NS);
        }
    }
    if (job->stall != NULL && job->phase == DS_ACCEL__JOB_RUNNING) {
        earlier(&next_ns, ds_accel__stall_next_ns(job->stall));
    }
    for (uint32_t i = 0; job->has_pipes && i < job->rank_count; i++) {
        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            const struct ds_accel__stream *stream = &job->ranks[i].streams[j];

            if (stream->fd >= 0 && stream->since_ns != 0 && !ds_accel__sink_is_full(stream->sink)) {
                earlier(&next_ns, stream->since_ns + FLUSH_NS);
            }
        }
    }
    if (next_ns == job->timer_ns) {
        return;
    }
    job->timer_ns = next_ns;
    spec.it_value.tv_sec = (time_t)(next_ns / SECOND_NS);
    spec.it_value.tv_nsec = (long)(next_ns % SECOND_NS);
    timerfd_settime(job->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void flush_lines(struct ds_accel__job *job, uint64_t now_ns)
{
    for (uint32_t i = 0; job->has_pipes && i < job->rank_count; i++) {
        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            struct ds_accel__stream *stream = &job->ranks[i].streams[j];

            if (stream->fd >= 0 && stream->since_ns != 0 && now_ns >= stream->since_ns + FLUSH_NS &&
                !ds_accel__sink_is_full(stream->sink)) {
                ds_accel__stream_flush(stream);
            }
        }
    }
}

/* Begin the next phase when the time of the current one is over. */
static void take_time(struct ds_accel__job *job)
{
    uint64_t now_ns = ds_accel__now_ns();
    uint64_t expirations;

    if (read(job->timer_fd, &expirations, sizeof(expirations)) > 0) {
        job->timer_ns = 0;
    }
    flush_lines(job, now_ns);
    ds_accel__pty_check(&job->pty, now_ns);
    decide_signals(job, now_ns);
    if (ds_accel__job_watch(job, now_ns)) {
        terminate_all(job, DS_ACCEL__JOB_ENDING, GRACE_NS);
    }
    if (job->deadline_ns == 0 || now_ns < job->deadline_ns) {
        return;
    }
    if (job->phase == DS_ACCEL__JOB_KILLING && now_ns - job->kill_ns > KILL_LIMIT_NS) {
        job->has_unkillable = true;
    } else if (job->phase == DS_ACCEL__JOB_ENDED) {
        ds_accel__job_report_leftovers(job);
        terminate_all(job, DS_ACCEL__JOB_LEFTOVERS, LEFTOVER_GRACE_NS);
    } else if (!send_again(job, now_ns)) {
        kill_all(job);
    }
}

/* ---- streams -------------------------------------------------------------------------------- */

/* The first descriptors of every poll(). */
enum {
    FD_SIGNALS,
    FD_TIMER,
    FD_GUARD,
    FD_EXITS,
    FD_COUNT
};

static void add_fd(struct ds_accel__job *job, nfds_t *count, int fd, short events,
                   struct ds_accel__stream *stream)
{
    job->polled[*count] = stream;
    job->fds[(*count)++] = (struct pollfd){.fd = fd, .events = events};
}

/* Collect the descriptors to wait for; returns their number. */
static nfds_t collect(struct ds_accel__job *job)
{
    nfds_t count = 0;

    add_fd(job, &count, job->signal_fd, POLLIN, NULL);
    add_fd(job, &count, job->timer_fd, POLLIN, NULL);
    /* once the guard has died, its descriptor is always ready */
    add_fd(job, &count, job->phase == DS_ACCEL__JOB_KILLING ? -1 : job->guard_fd, POLLIN, NULL);
    add_fd(job, &count, job->exits_fd, POLLIN, NULL);
    if (ds_accel__pty_needs_input(&job->pty)) {
        add_fd(job, &count, STDIN_FILENO, POLLIN, NULL);
    } else if (ds_accel__pty_has_input(&job->pty)) {
        add_fd(job, &count, job->pty.master, POLLOUT, NULL);
    }
    if (job->messages.fd >= 0 && !ds_accel__sink_is_full(job->messages.sink)) {
        add_fd(job, &count, job->messages.fd, POLLIN, &job->messages);
    }
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        if (ds_accel__sink_is_full(&job->sinks[i])) {
            add_fd(job, &count, job->sinks[i].fd, POLLOUT, NULL);
        }
    }
    for (uint32_t i = 0; job->has_pipes && i < job->rank_count; i++) {
        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            struct ds_accel__stream *stream = &job->ranks[i].streams[j];

            if (stream->fd >= 0 && !ds_accel__sink_is_full(stream->sink)) {
                add_fd(job, &count, stream->fd, POLLIN, stream);
            }
        }
    }
    for (uint32_t i = 0; job->faults != NULL && i < job->rank_count; i++) {
        if (job->faults[i].fd >= 0) {
            add_fd(job, &count, job->faults[i].fd, POLLIN, NULL);
        }
    }
    assert(count <= ds_accel__job_fd_limit(job));
    return count;
}

/* Write what is pending. A line whose rest waited in a pipe while its sink was full is not
 * incomplete: its time begins anew. */
static void flush_sinks(struct ds_accel__job *job)
{
    uint64_t now_ns = ds_accel__now_ns();

    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        struct ds_accel__sink *sink = &job->sinks[i];

        if (!ds_accel__sink_is_full(sink)) {
            continue;
        }
        ds_accel__sink_flush(sink);
        for (uint32_t j = 0; !ds_accel__sink_is_full(sink) && j < job->rank_count; j++) {
            for (int k = 0; k < DS_ACCEL__STREAMS; k++) {
                struct ds_accel__stream *stream = &job->ranks[j].streams[k];

                stream->since_ns = stream->sink == sink && stream->since_ns != 0 ? now_ns
                                                                                 : stream->since_ns;
            }
        }
    }
}

static void read_streams(struct ds_accel__job *job, nfds_t count)
{
    uint64_t now_ns = ds_accel__now_ns();

    for (nfds_t i = FD_COUNT; i < count; i++) {
        struct ds_accel__stream *stream = job->polled[i];

        if (stream != NULL && job->fds[i].revents != 0 && !ds_accel__sink_is_full(stream->sink)) {
            ds_accel__stream_read(stream, now_ns);
        }
    }
}

/*
 * Wait until a reader has taken what is pending, however slow it is, unless a signal has ended the
 * job. False: the rest is dropped.
 */
static bool await_reader(struct ds_accel__job *job, struct ds_accel__sink *sink)
{
    while (ds_accel__sink_is_full(sink)) {
        struct pollfd fds[] = {{.fd = sink->fd, .events = POLLOUT},
                               {.fd = job->signal_fd, .events = POLLIN},
                               {.fd = job->guard_fd, .events = POLLIN}};
        int timeout_ms = job->signal == 0 ? -1 : DRAIN_MS;
        int ready = poll(fds, ARRAY_SIZE(fds), timeout_ms);

        if (ready == 0 || (ready < 0 && errno != EINTR) || fds[2].revents != 0) {
            return false;
        }
        take_signals(job);
        if (job->signal != 0 && job->phase == DS_ACCEL__JOB_KILLING) {
            return false; /* a second signal */
        }
        ds_accel__sink_flush(sink);
    }
    return true;
}

/* Report, once for each sink, that output is lost. */
static void report_sinks(struct ds_accel__job *job)
{
    static const char *const names[] = {
        [DS_ACCEL__OUT] = "stdout",
        [DS_ACCEL__ERR] = "stderr",
    };

    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        int error = ds_accel__sink_take_error(&job->sinks[i]);

        if (error != 0) {
            ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "%s: %s; output is dropped", names[i],
                              strerror(error));
        }
    }
}

/*
 * Read what is left in a pipe, and write it. A process that SIGKILL does not end, or that is not of
 * the job, may write for ever, so the amount is limited.
 */
static bool drain_stream(struct ds_accel__job *job, struct ds_accel__stream *stream)
{
    uint64_t end = stream->total_bytes + DRAIN_BYTES;
    uint64_t before = UINT64_MAX;

    while (stream->fd >= 0 && stream->total_bytes != before && stream->total_bytes < end) {
        if (!await_reader(job, stream->sink)) {
            return false;
        }
        before = stream->total_bytes;
        ds_accel__stream_read(stream, ds_accel__now_ns());
    }
    ds_accel__stream_flush(stream);
    return true;
}

/* Write what is left. */
static void drain(struct ds_accel__job *job)
{
    bool is_read = true;

    for (uint32_t i = 0; job->has_pipes && i < job->rank_count; i++) {
        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            is_read = is_read && drain_stream(job, &job->ranks[i].streams[j]);
        }
    }
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        is_read = is_read && await_reader(job, &job->sinks[i]);
    }
    report_sinks(job);
}

/* Read what programs wrote to the descriptors of faults, which are the last ones of poll(). */
static void read_faults(struct ds_accel__job *job, nfds_t count)
{
    for (uint32_t i = job->faults != NULL ? job->rank_count : 0; i-- > 0;) {
        if (job->faults[i].fd >= 0 && job->fds[--count].revents != 0) {
            ds_accel__fault_read(&job->faults[i]);
        }
    }
}

/* Pass on input to the pseudo-terminal, whose descriptor follows the first ones of poll(). */
static void pass_input(struct ds_accel__job *job, nfds_t count)
{
    if (count <= FD_COUNT || job->fds[FD_COUNT].revents == 0) {
        return;
    }
    if (ds_accel__pty_needs_input(&job->pty)) {
        ds_accel__pty_read(&job->pty);
    } else if (ds_accel__pty_has_input(&job->pty)) {
        ds_accel__pty_write(&job->pty);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void step(struct ds_accel__job *job)
{
    nfds_t count;

    set_timer(job);
    count = collect(job);
    if (poll(job->fds, count, -1) < 0) {
        memset(job->fds, 0, count * sizeof(*job->fds));
        if (errno != EINTR) { /* out of memory in the kernel: the job cannot be supervised */
            kill_all(job);
            nanosleep(&(struct timespec){.tv_nsec = (long)KILL_AGAIN_NS}, NULL);
        }
    }
    if (job->fds[FD_GUARD].revents != 0) {
        kill_all(job);
    }
    if (job->fds[FD_EXITS].revents != 0) {
        ds_accel__job_note_exits(job); /* before their pipes are closed here */
    }
    flush_sinks(job);
    pass_input(job, count);
    read_streams(job, count);
    report_sinks(job);
    read_faults(job, count);
    take_signals(job);
    reap(job);
    take_time(job);
}

void ds_accel__job_continue_guard(struct ds_accel__job *job)
{
    if (job->has_stopped_guard) {
        signal_guard(job, SIGCONT);
        job->has_stopped_guard = false;
    }
}

void ds_accel__job_supervise(struct ds_accel__job *job)
{
    assert(job->signal_fd >= 0 && job->timer_fd >= 0 && job->guard_fd >= 0);
    if (job->culprit != DS_ACCEL__NO_RANK) { /* it could not be started */
        ds_accel__job_find_death(job);
        terminate_all(job, DS_ACCEL__JOB_ENDING, GRACE_NS);
    }
    reap(job);
    while (job->has_children && !job->has_unkillable) {
        step(job);
    }
    ds_accel__pty_leave_raw(&job->pty); /* so that Control-C ends the wait for a slow reader */
    drain(job);
    if (!job->has_unkillable && ds_accel__job_exit_code(job) != 0) {
        ds_accel__shared_memory_find(&job->shared_memory);
    }
}

void ds_accel__job_drain(struct ds_accel__job *job)
{
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        if (!await_reader(job, &job->sinks[i])) {
            return;
        }
    }
}
