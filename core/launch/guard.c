/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A job runs in three generations of processes:
 *
 *      guard          this process: what the user started, and what receives signals
 *       \- supervisor    starts the ranks, passes on output and signals, ends the job
 *           \- ranks        are killed by the kernel when the supervisor dies
 *
 * Guard and supervisor watch each other: if one is killed, even by SIGKILL, the other kills all
 * processes of the job. Both are subreapers, so that they also find processes that were started by
 * a double fork. All processes are in the process group that the user's shell made, so that job
 * control and the terminal work as for any program.
 *
 * The guard also works as process 1 of a container: it reaps what it inherits, and passes on
 * signals, which process 1 would otherwise ignore.
 */
#include "launch/guard.h"
#include "base/clock.h"
#include "base/descendants.h"
#include "launch/job.h"
#include "launch/pid_file.h"
#include "launch/title.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_LIMIT_NS UINT64_C(10000000000)
#define SECOND_SIGNAL_NS UINT64_C(500000000) /* signals in less time are one signal */
#define LAST_GRACE_NS UINT64_C(20000000000)  /* for the supervisor after a second signal */
#define GROUP_DELAY_NS 5000000l              /* until a signal to a group has reached all */
#define EXIT_INTERNAL 7

/* Signals that are passed on. SIGCHLD is received, too. */
static const int forwarded[] = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT};

/* All signals that guard and supervisor receive through descriptors. */
static void fill_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
        sigaddset(set, forwarded[i]);
    }
}

/* ---- the caller's process ------------------------------------------------------------------- */

/* What a job changes in its caller's process. */
struct caller {
    sigset_t mask;                      /* of blocked signals */
    sigset_t pending;                   /* signals that were pending already */
    struct sigaction child_action;      /* of SIGCHLD */
    struct rlimit files;                /* RLIMIT_NOFILE */
    int is_subreaper;                   /* PR_SET_CHILD_SUBREAPER */
    bool has_files;                     /* files is known */
    bool was_closed[STDERR_FILENO + 1]; /* descriptors 0 to 2 */
};

/* Did the caller make this process ignore a signal, as nohup does? */
static bool is_ignored(int signal)
{
    struct sigaction action;

    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void on_child(int signal)
{
    (void)signal;
}

/* Does the kernel reap the children of this process, without keeping their exit codes? */
static bool is_reaping(const struct sigaction *action)
{
    return action->sa_handler == SIG_IGN || (action->sa_flags & SA_NOCLDWAIT) != 0;
}

/*
 * Block the signals that guard and supervisor receive through descriptors. SIGTTOU and SIGTTIN are
 * blocked so that the terminal does not stop them in the background, and SIGPIPE and SIGXFSZ so
 * that a closed output, or a file that has reached its limit, is an error of write(). An ignored
 * signal is not blocked, because the kernel would deliver it then.
 */
static void block_signals(struct caller *caller)
{
    const struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigaddset(&set, SIGTTOU);
    sigaddset(&set, SIGTTIN);
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
        if (!is_ignored(forwarded[i])) {
            sigaddset(&set, forwarded[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &set, &caller->mask);
    sigpending(&caller->pending);
    /* Any other action stays: setting the default one drops a signal that is pending. */
    sigaction(SIGCHLD, NULL, &caller->child_action);
    if (is_reaping(&caller->child_action)) {
        sigaction(SIGCHLD, &action, NULL);
    }
}

/* Descriptors 0 to 2 must exist, because pipes of ranks would get these numbers otherwise. */
static void open_standard(struct caller *caller)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
        if (fd >= 0 && fd <= STDERR_FILENO) {
            caller->was_closed[fd] = true;
        }
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static void close_standard(const struct caller *caller)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (caller->was_closed[fd]) {
            close(fd);
        }
    }
}

/* Note what the job changes in this process, and change what guard and supervisor share. The
 * signals are first, so that none leaves half of the preparation behind. */
static void enter(struct caller *caller)
{
    *caller = (struct caller){0};
    block_signals(caller);
    open_standard(caller);
    caller->has_files = getrlimit(RLIMIT_NOFILE, &caller->files) == 0;
    prctl(PR_GET_CHILD_SUBREAPER, &caller->is_subreaper);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Discard a pending signal that the job has caused. When a rank uses the terminal in the
 * background, the kernel sends SIGTTIN or SIGTTOU to this process, too. */
static void discard(const struct caller *caller, int signal)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    while (sigismember(&caller->pending, signal) == 0 &&
           sigtimedwait(&set, NULL, &(struct timespec){0}) == signal) {
    }
}

/* ---- the supervisor ------------------------------------------------------------------------- */

static bool open_descriptors(struct ds_accel__job *job, int guard_fd)
{
    sigset_t set;

    fill_signals(&set);
    job->guard_fd = guard_fd;
    job->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    job->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return job->signal_fd >= 0 && job->timer_fd >= 0 && job->guard_fd >= 0;
}

/* Write the result for the guard. */
static void write_result(const struct ds_accel__job *job)
{
    char *text = NULL;
    size_t written = 0;

    if (job->result_fd >= 0) {
        text = ds_accel__job_result(job, ds_accel__job_exit_code(job), 0);
    }
    while (text != NULL && text[written] != '\0') {
        ssize_t size = write(job->result_fd, text + written, strlen(text + written));

        if (size <= 0) {
            break;
        }
        written += (size_t)size;
    }
    free(text);
}

/* Remove what the guard, which was killed, would have removed. */
static void clean_up(struct ds_accel__job *job, pid_t guard)
{
    ds_accel__groups_close(job->groups);
    job->groups = NULL;
    if (job->launch->options.save_pid) {
        ds_accel__pid_file_remove(guard);
    }
}

/* Run the job in this process, and return its exit code. */
static int supervise(struct ds_accel__job *job, int guard_fd, pid_t guard)
{
    const struct ds_accel__plan *plan = job->plan;
    uint32_t count = job->launch->options.program_count;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* if this process is stopped when the guard is killed */
    /* the program without an interpreter, as in the command line of the guard */
    ds_accel__title_set("dsa-supervisor", "supervisor", count,
                        (const char *const *)plan->arguments + (plan->argument_count - count));
    if (!open_descriptors(job, guard_fd) || ds_accel__job_divert_stderr(job) < 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "no descriptors are left: %s", strerror(errno));
        return EXIT_INTERNAL;
    }
    if (getppid() != guard) {
        return EXIT_INTERNAL; /* the guard has died already */
    }
    ds_accel__job_start(job);
    ds_accel__job_supervise(job);
    ds_accel__pty_leave_raw(&job->pty); /* also if the guard, which restores it, has died */
    ds_accel__job_report(job);
    ds_accel__job_drain(job);
    write_result(job);
    ds_accel__job_continue_guard(job);
    if (getppid() != guard) {
        clean_up(job, guard);
    }
    return ds_accel__job_exit_code(job);
}

/* ---- the guard ------------------------------------------------------------------------------ */

/* Wait for a signal, or until a time. Returns false if the time was reached. */
static bool await_signal(const sigset_t *set, uint64_t until_ns, siginfo_t *info)
{
    for (;;) {
        uint64_t now_ns = ds_accel__now_ns();
        uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};
        int result = until_ns == 0 ? sigwaitinfo(set, info) : sigtimedwait(set, info, &left);

        if (result >= 0 || errno == EAGAIN) {
            return result >= 0;
        }
    }
}

/* Has the kernel sent a signal to the process group, and not to this process alone? When a terminal
 * hangs up, only the leader of its session receives SIGHUP. */
static bool is_from_terminal(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && (info->si_signo != SIGHUP || getsid(0) != getpid());
}

/*
 * Stop, so that the shell takes the terminal back. The kernel ignores SIGTSTP where no shell could
 * continue this process, as in an orphaned process group; SIGSTOP would stop it forever.
 */
static void stop(struct ds_accel__job *job)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    struct sigaction before;
    bool was_raw = ds_accel__pty_leave_raw(&job->pty);
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigaction(SIGTSTP, &action, &before);
    __atomic_store_n(&job->passed_on[0], 1, __ATOMIC_RELEASE);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGTSTP, &before, NULL);
    __atomic_store_n(&job->passed_on[0], 0, __ATOMIC_RELEASE);
    if (was_raw) { /* also if the kernel has ignored the signal, after which no SIGCONT comes */
        ds_accel__pty_enter_raw(&job->pty);
    }
}

/* What the guard remembers of signals that end the job. */
struct ending {
    uint64_t first_ns; /* when the first one came; 0: none */
    uint64_t last_ns;  /* when the supervisor is killed; 0: never */
};

/* A supervisor that does not react to a second signal, for example because it is stopped, is killed
 * later, and so is the job. */
static void note_end(struct ending *ending, int signal)
{
    uint64_t now_ns = ds_accel__now_ns();

    if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGQUIT) {
        return;
    }
    if (ending->first_ns == 0) {
        ending->first_ns = now_ns;
    } else if (ending->last_ns == 0 && now_ns - ending->first_ns >= SECOND_SIGNAL_NS) {
        ending->last_ns = now_ns + LAST_GRACE_NS;
    }
}

/*
 * Pass on a signal. The terminal's signals have reached the supervisor already. A signal that was
 * sent to the process group must reach the supervisor directly before it comes from here, so that
 * the ranks do not receive it twice.
 */
static void forward(struct ds_accel__job *job, pid_t supervisor, const siginfo_t *info)
{
    bool is_supervisors = info->si_code == SI_USER && info->si_pid == supervisor;

    if (!is_from_terminal(info) && !is_supervisors) {
        __atomic_add_fetch(&job->passed_on[info->si_signo], 1, __ATOMIC_RELEASE);
        nanosleep(&(struct timespec){.tv_nsec = GROUP_DELAY_NS}, NULL);
        kill(supervisor, info->si_signo);
    }
    if (info->si_signo == SIGTSTP) {
        stop(job);
    }
}

/* Reap children that have ended. Returns true if the supervisor is among them. */
static bool reap(pid_t supervisor, siginfo_t *ended, bool *has_children)
{
    bool found = false;

    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
            if (errno == EINTR) {
                continue;
            }
            *has_children = false;
            return found;
        }
        if (info.si_pid == 0) {
            *has_children = true;
            return found;
        }
        if (info.si_pid == supervisor) {
            *ended = info;
            found = true;
        }
    }
}

/*
 * Kill everything that the supervisor left when it was killed. A supervisor that exits leaves
 * nothing of the job: the children that this process has then are those it had before, for example
 * from a shell that executed it.
 */
static void kill_rest(const sigset_t *set)
{
    uint64_t end_ns = ds_accel__now_ns() + KILL_LIMIT_NS;
    bool has_children = true;
    siginfo_t info;

    reap(0, &info, &has_children);
    while (has_children && ds_accel__now_ns() < end_ns) {
        if (getpid() == 1 && !ds_accel__descendants_are_visible()) {
            kill(-1, SIGKILL); /* all other processes of the pid namespace */
        } else {
            ds_accel__descendants_kill(getpid());
        }
        await_signal(set, ds_accel__now_ns() + 20000000, &info);
        reap(0, &info, &has_children);
    }
}

/* Wait for the end of the supervisor, and of everything that it left. */
static void watch(struct ds_accel__job *job, pid_t supervisor, siginfo_t *ended)
{
    struct ending ending = {0};
    bool has_children = true;
    sigset_t set;
    siginfo_t info;

    fill_signals(&set);
    while (!reap(supervisor, ended, &has_children)) {
        if (!await_signal(&set, ending.last_ns, &info)) {
            kill(supervisor, SIGKILL);
            ending.last_ns += LAST_GRACE_NS;
        } else if (info.si_signo != SIGCHLD) {
            note_end(&ending, info.si_signo);
            forward(job, supervisor, &info);
        }
    }
    if (has_children && ended->si_code != CLD_EXITED) {
        kill_rest(&set);
    }
}

/* Read the result that the supervisor wrote; without one, make it. NULL: out of memory. */
static char *read_result(const struct ds_accel__job *job, int exit_code, int supervisor_signal)
{
    off_t size = lseek(job->result_fd, 0, SEEK_END);
    char *text = size > 0 ? malloc((size_t)size + 1) : NULL;

    if (size <= 0) {
        return ds_accel__job_result(job, exit_code, supervisor_signal);
    }
    if (text != NULL && pread(job->result_fd, text, (size_t)size, 0) == size) {
        text[size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* The exit code of the job, from the end of the supervisor, and its result. */
static int32_t conclude(struct ds_accel__job *job, const siginfo_t *ended, int32_t *code_out,
                        char **result_out)
{
    int signal = ended->si_code == CLD_EXITED ? 0 : ended->si_status;

    *code_out = signal == 0 ? ended->si_status : 128 + signal;
    if (signal != 0) {
        ds_accel__log(job->log, "run", DS_ACCEL_LOG_ERROR,
                      "the supervisor of the job was killed by signal %d; its ranks were killed",
                      signal);
    }
    if (result_out != NULL) {
        *result_out = read_result(job, *code_out, signal);
        return *result_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    return DS_ACCEL_OK;
}

/*
 * Restore what enter() and the job have changed, except descriptors 0 to 2, which messages may
 * still need. If the supervisor ran, SIGCHLD of its end is discarded. Children that have ended are
 * then reaped, so that none is left without a signal; one that ends later sends SIGCHLD again. They
 * are also reaped if the kernel would have done it.
 */
static void leave(struct caller *caller, bool has_run)
{
    bool has_children;
    siginfo_t ended;

    if (caller->has_files) {
        setrlimit(RLIMIT_NOFILE, &caller->files);
    }
    prctl(PR_SET_CHILD_SUBREAPER, caller->is_subreaper);
    discard(caller, SIGPIPE);
    discard(caller, SIGXFSZ);
    discard(caller, SIGTTIN);
    discard(caller, SIGTTOU);
    if (has_run) {
        sigdelset(&caller->pending, SIGCHLD);
        discard(caller, SIGCHLD);
    }
    if (is_reaping(&caller->child_action)) {
        sigaction(SIGCHLD, &caller->child_action, NULL);
    }
    if (has_run || is_reaping(&caller->child_action)) {
        reap(0, &ended, &has_children);
    }
    sigprocmask(SIG_SETMASK, &caller->mask, NULL);
}

/* ---- both ----------------------------------------------------------------------------------- */

static int32_t run(struct ds_accel__job *job, siginfo_t *ended)
{
    pid_t guard = getpid();
    int guard_fd = (int)syscall(SYS_pidfd_open, guard, 0);
    pid_t supervisor;

    if (guard_fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "pidfd_open: %s", strerror(errno));
    }
    fflush(NULL);
    supervisor = fork();
    if (supervisor == 0) {
        int code = supervise(job, guard_fd, guard);

        fflush(NULL);
        _exit(code);
    }
    close(guard_fd);
    if (supervisor < 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "fork: %s", strerror(errno));
    }
    job->launch->has_run = true;
    /* Freed while the ranks start, not at the end, when the user waits. */
    ds_accel_destroy(job->launch->known.context);
    job->launch->known.context = NULL;
    ds_accel__pty_pass_on(&job->pty);
    watch(job, supervisor, ended);
    return DS_ACCEL_OK;
}

/* What the guard makes before it starts the supervisor. */
static int32_t prepare(struct ds_accel__job *job, bool needs_result)
{
    void *shared = mmap(NULL, _NSIG * sizeof(*job->passed_on), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED) {
        return ds_accel__no_memory();
    }
    job->passed_on = shared;
    if (needs_result) {
        job->result_fd = memfd_create("result", MFD_CLOEXEC);
        if (job->result_fd < 0) {
            return ds_accel__error(DS_ACCEL_ERR_LIMIT, "memfd_create: %s", strerror(errno));
        }
    }
    return job->launch->options.save_pid ? ds_accel__pid_file_make() : DS_ACCEL_OK;
}

int32_t ds_accel__guard_run(struct ds_accel_launch *launch, int32_t *exit_code_out,
                            char **result_out)
{
    struct ds_accel__job job;
    struct caller caller;
    siginfo_t ended = {0};
    int32_t status;

    enter(&caller);
    status = ds_accel__job_open(launch, &job);
    job.signals = caller.mask;
    job.is_init = getpid() == 1;
    if (status >= 0) {
        status = prepare(&job, result_out != NULL);
    }
    if (status >= 0) {
        ds_accel__pty_enter_raw(&job.pty);
        status = run(&job, &ended);
        ds_accel__pty_leave_raw(&job.pty);
        if (launch->options.save_pid) {
            ds_accel__pid_file_remove((int32_t)getpid());
        }
    }
    ds_accel__groups_close(job.groups);
    job.groups = NULL;
    leave(&caller, launch->has_run); /* a message below may wait for a reader */
    if (status >= 0) {
        status = conclude(&job, &ended, exit_code_out, result_out);
    }
    ds_accel__job_close(&job);
    close_standard(&caller);
    return status;
}
