/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A running job: its ranks' processes and what they write: start.c, supervise.c, result.c. */
#ifndef DS_ACCEL_LAUNCH_JOB_H
#define DS_ACCEL_LAUNCH_JOB_H

#include "launch/death.h"
#include "launch/fault.h"
#include "launch/groups.h"
#include "launch/launch.h"
#include "launch/port.h"
#include "launch/progress.h"
#include "launch/pty.h"
#include "launch/shared_memory.h"
#include "launch/spawn.h"
#include "launch/stall.h"
#include "launch/stream.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#define DS_ACCEL__NO_RANK UINT32_MAX

/* Standard output and standard error. */
enum {
    DS_ACCEL__OUT,
    DS_ACCEL__ERR,
    DS_ACCEL__STREAMS
};

enum ds_accel__rank_state {
    DS_ACCEL__RANK_WAITING, /* not started yet */
    DS_ACCEL__RANK_RUNNING,
    DS_ACCEL__RANK_ENDED,
    DS_ACCEL__RANK_NOT_STARTED /* the start failed */
};

/* The process of one rank of this machine. */
struct ds_accel__job_rank {
    const struct ds_accel__rank *rank;
    enum ds_accel__rank_state state;
    pid_t pid;                        /* 0: not started */
    struct ds_accel__spawned spawned; /* errors of the start */
    siginfo_t ended;                  /* how it ended, from waitid() */
    bool is_victim;                   /* it ended after the supervisor began to end the job, and
                                         was not exiting before */
    bool was_exiting;                 /* it was ending when the first failure was noticed */
    bool is_candidate;                /* nothing is known to have failed earlier */
    bool is_examined;                 /* its memory is not the cause after all */
    bool is_closing;                  /* it was closing its files then */
    uint32_t exit_order;              /* of the ends of pipes; 0: unknown */
    uint64_t start_ns, end_ns;        /* monotonic; end_ns 0: not ended */
    struct ds_accel__stream streams[DS_ACCEL__STREAMS];
    struct ds_accel__tail tail;
    char *prefix;                                 /* "host:rank: ", or "" */
    char *log_path;                               /* NULL: no log of its own */
    struct ds_accel__text real_cpus, real_policy; /* from the kernel; "": unknown */
};

/* How far the end of the job has come. */
enum ds_accel__job_phase {
    DS_ACCEL__JOB_RUNNING,
    DS_ACCEL__JOB_SIGNALED,  /* a signal was passed on to the ranks, which have time to end */
    DS_ACCEL__JOB_ENDING,    /* a rank has failed, and the others were terminated */
    DS_ACCEL__JOB_ENDED,     /* all ranks have ended by themselves; the other processes may, too */
    DS_ACCEL__JOB_LEFTOVERS, /* all ranks have ended, and the other processes were terminated */
    DS_ACCEL__JOB_KILLING    /* everything is killed */
};

struct ds_accel__job {
    struct ds_accel_launch *launch;
    const struct ds_accel__plan *plan;
    const struct ds_accel__log *log;
    char *path;                       /* the file that every rank executes */
    struct ds_accel__job_rank *ranks; /* [rank_count], this machine's */
    struct ds_accel__groups *groups;
    /* what ranks write; shared: the sink of each stream, one if both streams are one file */
    struct ds_accel__stream messages; /* what this process itself writes to stderr */
    struct ds_accel__sink sinks[DS_ACCEL__STREAMS];
    struct ds_accel__sink *shared[DS_ACCEL__STREAMS];
    struct ds_accel__pty pty; /* master -1: none */
    /* what ranks start with */
    sigset_t signals;    /* mask of blocked signals */
    struct rlimit files; /* RLIMIT_NOFILE */
    uint64_t core_limit; /* RLIMIT_CORE */
    /* room for all descriptors of one poll(), and the stream of each; NULL: not a stream's */
    struct pollfd *fds;
    struct ds_accel__stream **polled;
    /* stalls; NULL: they are not watched */
    struct ds_accel__stall *stall;
    struct ds_accel__stall_rank *stall_ranks; /* [rank_count] */
    struct ds_accel__fault *faults;           /* [rank_count] */
    json_t *stalls;                     /* array: the first and the last stalls found so far */
    uint64_t stall_count;               /* of all that were found */
    struct ds_accel__progress progress; /* of the devices */
    struct ds_accel__death death;       /* of the culprit */
    struct ds_accel__shared_memory shared_memory;
    /* times; monotonic, but for start_wall_us */
    uint64_t start_ns;
    uint64_t start_wall_us;
    uint64_t deadline_ns;      /* when the next phase begins; 0: never */
    uint64_t signal_ns;        /* when signal came */
    uint64_t direct_ns[_NSIG]; /* when each signal came to this process directly; 0: decided */
    uint32_t passed_on_before[_NSIG]; /* passed_on, when the last signal was decided */
    /* [_NSIG], shared memory: how often the guard passed on each signal; [0]: it is stopped */
    uint32_t *passed_on;
    uint64_t kill_ns;                  /* when the phase KILLING began; 0: it has not */
    uint64_t timer_ns;                 /* what the timer is set to; 0: nothing */
    struct ds_accel__port_lease lease; /* of the master's port, if the master is here */
    uint16_t port;                     /* the master's */
    uint32_t rank_count;
    uint32_t running_count;
    uint32_t exit_count;           /* of the ranks with an exit_order */
    uint32_t signal_running_count; /* when the signal came that ended the job */
    uint32_t culprit;              /* position of the rank that failed first; NO_RANK: none */
    enum ds_accel__job_phase phase;
    int path_error;      /* why path cannot be executed; 0: it can */
    int signal;          /* the first signal that the job was ended with; 0: none */
    int terminal_signal; /* a signal of the terminal that only concerns the single rank; 0: none */
    int signal_fd;       /* signals to this process */
    int timer_fd;
    int guard_fd;           /* pidfd of the guard */
    int error_fd;           /* the original stderr; -1: it was not replaced */
    int exits_fd;           /* epoll: the ends of the ranks' pipes; -1: none */
    int result_fd;          /* where the supervisor writes the result; -1: nowhere */
    bool is_init;           /* the guard is process 1 of a pid namespace */
    bool has_pipes;         /* ranks write to pipes: there are several, without logs */
    bool has_children;      /* this process has children, ranks or orphans */
    bool has_unkillable;    /* processes are left that SIGKILL did not end */
    bool may_send_again;    /* perhaps no rank has received the signal that ends the job */
    bool has_candidates;    /* the first failure was noticed */
    bool has_new_candidate; /* a rank was reaped that was exiting then */
    bool has_stopped_guard; /* it follows a rank that has stopped */
};

/* The most descriptors of one poll(): signals, timer, guard, exits, messages, pty, stdin, sinks,
 * pipes, faults. */
static inline size_t ds_accel__job_fd_limit(const struct ds_accel__job *job)
{
    return 7 + DS_ACCEL__STREAMS + (size_t)job->rank_count * (DS_ACCEL__STREAMS + 1);
}

/* start.c: prepare the job, and start its ranks. A rank that cannot be started is the culprit, and
 * no further rank is started. ERR_BUSY the master's port is taken; ERR_IO a log cannot be made;
 * ERR_LIMIT; ERR_NO_MEMORY. */
int32_t ds_accel__job_open(struct ds_accel_launch *launch, struct ds_accel__job *job);
void ds_accel__job_start(struct ds_accel__job *job);
void ds_accel__job_close(struct ds_accel__job *job);
/* say.c: from now on, what this process writes to stderr passes through the sink of stderr, which
 * does not block. ERR_LIMIT; ERR_NO_MEMORY. */
int32_t ds_accel__job_divert_stderr(struct ds_accel__job *job);
/* Log a message to the user, on a line of its own. */
void ds_accel__job_say(struct ds_accel__job *job, uint32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* watch.c: prepare the search for stalls, if it was requested. ERR_NO_MEMORY. */
int32_t ds_accel__job_watch_open(struct ds_accel__job *job);
void ds_accel__job_watch_close(struct ds_accel__job *job);
/* Check for a stall if it is time, and report one. True: the job must be ended for it, and the
 * culprit is set. */
bool ds_accel__job_watch(struct ds_accel__job *job, uint64_t now_ns);
/* placement.c: read where a bound rank runs, and warn if that differs from the plan. */
void ds_accel__job_check_placement(struct ds_accel__job *job, struct ds_accel__job_rank *rank);
/* supervise.c: run the started job to its end. */
void ds_accel__job_supervise(struct ds_accel__job *job);
/* Wait for the readers of what this process has written, unless a signal ends the wait. */
void ds_accel__job_drain(struct ds_accel__job *job);
/* Continue the guard, if it has stopped with a rank. */
void ds_accel__job_continue_guard(struct ds_accel__job *job);
/* culprit.c: watch the pipes of a rank that is about to start. */
void ds_accel__job_watch_exit(struct ds_accel__job *job, const struct ds_accel__job_rank *rank);
/* Note the order in which pipes of ranks ended since the last call. */
void ds_accel__job_note_exits(struct ds_accel__job *job);
/* Find the rank that has failed first, and why. False: none has failed. */
bool ds_accel__job_find_culprit(struct ds_accel__job *job);
/* After ranks were reaped that may have failed earlier than the culprit: correct it. */
void ds_accel__job_review_culprit(struct ds_accel__job *job);
/* cause.c: find out why the culprit has ended. */
void ds_accel__job_find_death(struct ds_accel__job *job);
/* The exit code of the job, or of a rank that has ended, as a shell shows it. */
int ds_accel__job_exit_code(const struct ds_accel__job *job);
int ds_accel__job_rank_code(const struct ds_accel__job_rank *rank);
/* Has a rank failed by itself, before the launcher began to end the job? */
bool ds_accel__job_has_failed(const struct ds_accel__job_rank *rank);
/* Visit the variables that may matter for a failure: those of the backend, and those that the
 * launcher sets. False: visit returned false, or memory is exhausted. */
bool ds_accel__job_visit_environment(const struct ds_accel__job *job,
                                     const struct ds_accel__rank *rank,
                                     ds_accel__variable_visit_t visit, void *user_data);
/* The last lines that a rank wrote, also to its log: at most 50, and less than
 * DS_ACCEL__TAIL_SIZE bytes. A new text; NULL: out of memory. */
char *ds_accel__job_last_lines(const struct ds_accel__job_rank *rank);
/* report.c: log why the job failed. */
void ds_accel__job_report(struct ds_accel__job *job);
/* Name the processes of the job that still run after its ranks have ended. */
void ds_accel__job_report_leftovers(struct ds_accel__job *job);
/* result.c: the result as JSON, a new text; NULL: out of memory. supervisor_signal: the signal that
 * killed the supervisor; 0: none. */
char *ds_accel__job_result(const struct ds_accel__job *job, int exit_code, int supervisor_signal);

#endif
