/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stalls of jobs, found from outside. The ranks are processes of this program that wait, spin or
 * compute; the clock of the watch is a number, so that no test waits for a timeout. The tested
 * functions are internal, so this program is linked with the core's own objects.
 *
 *     stall PLUGINS PYTHON
 *     stall program NAME
 *     stall sample PID
 *     stall measure
 */
#include "launch/stall.h"
#include "base/clock.h"
#include "base/descendants.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/fault.h"
#include "launch/job.h"
#include "launch/progress.h"
#include "launch/stack.h"
#include "launch/worker.h"
#include "stall_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4u
#define PATIENCE_MS 60000
#define TIMEOUT_NS 60000000000ull

static unsigned passed;
static unsigned failed;
static char self[4096];
static const char *plugins, *python;

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: %s\n", name, ds_accel_last_error());
    }
}

/* ---- processes ------------------------------------------------------------------------------ */

struct process {
    pid_t pid;
    int output;
};

/* Wait for a byte that the process writes. */
static bool hear(const struct process *process)
{
    struct pollfd ready = {.fd = process->output, .events = POLLIN};
    char byte;

    return poll(&ready, 1, PATIENCE_MS) == 1 && read(process->output, &byte, 1) == 1;
}

static bool start_command(const char *const *arguments, struct process *process)
{
    pid_t parent = getpid();
    int fds[2];

    process->pid = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    process->pid = fork();
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(fds[1], STDOUT_FILENO) >= 0) {
            execv(arguments[0], (char *const *)(uintptr_t)arguments);
        }
        _exit(127);
    }
    close(fds[1]);
    process->output = fds[0];
    return hear(process);
}

static bool start(const char *name, struct process *process)
{
    const char *arguments[] = {self, "program", name, NULL};

    return start_command(arguments, process);
}

/* Signal one process; a number that denotes several, as after a failure, does nothing. */
static bool signal_process(pid_t pid, int number)
{
    return pid > 1 && kill(pid, number) == 0;
}

/* Kill and reap the process; returns its status. */
static int finish(struct process *process)
{
    int status = -1;

    signal_process(process->pid, SIGKILL);
    if (process->pid > 0) {
        waitpid(process->pid, &status, 0);
        close(process->output);
    }
    return status;
}

/* A number of /proc/PID/stat, counted from the state, which is 0. */
static unsigned long long stat_field(pid_t pid, unsigned field, char *state_out)
{
    char path[64], *text, *at;
    const char *cause;
    size_t size;
    unsigned long long value = 0;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    *state_out = '?';
    if (ds_accel__file_read(path, 65536, &text, &size, &cause) < 0) {
        return 0;
    }
    at = strrchr(text, ')') + 2;
    *state_out = *at;
    for (unsigned i = 0; i < field; i++) {
        at = strchr(at, ' ') + 1;
    }
    value = strtoull(at, NULL, 10);
    free(text);
    return value;
}

static bool has_state(pid_t pid, char wanted)
{
    struct timespec pause = {.tv_nsec = 1000000};
    char state = '?';

    for (int i = 0; i < PATIENCE_MS && state != wanted; i++) {
        stat_field(pid, 0, &state);
        nanosleep(&pause, NULL);
    }
    return state == wanted;
}

/*
 * Wait until the process sleeps, and has left its processor: only then does the kernel say where it
 * waits, and this only to root for certain.
 */
static bool is_asleep(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 1000000};
    char path[64], place[64] = "0";
    bool is_known = geteuid() != 0;

    snprintf(path, sizeof(path), "/proc/%ld/wchan", (long)pid);
    if (!has_state(pid, 'S')) {
        return false;
    }
    for (int i = 0; i < PATIENCE_MS && !is_known; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = fd >= 0 ? read(fd, place, sizeof(place)) : -1;

        close(fd);
        is_known = size > 0 && place[0] != '0';
        nanosleep(&pause, NULL);
    }
    return is_known;
}

/* Wait until the process used 50 ms of CPU time more. */
static bool has_run(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 1000000};
    char state;
    unsigned long long first = stat_field(pid, 11, &state) + stat_field(pid, 12, &state);
    unsigned long long now = first;

    for (int i = 0; i < PATIENCE_MS && now < first + 5; i++) {
        nanosleep(&pause, NULL);
        now = stat_field(pid, 11, &state) + stat_field(pid, 12, &state);
    }
    return now >= first + 5;
}

/* ---- stacks --------------------------------------------------------------------------------- */

int32_t __real_ds_accel__worker_run(ds_accel__worker_work_t work, void *user_data,
                                    uint64_t timeout_ns, json_t **results_out, bool *is_late_out);
int32_t __wrap_ds_accel__worker_run(ds_accel__worker_work_t work, void *user_data,
                                    uint64_t timeout_ns, json_t **results_out, bool *is_late_out);

/* On a busy machine, and with sanitizers, a stack may take longer than a user should wait. */
int32_t __wrap_ds_accel__worker_run(ds_accel__worker_work_t work, void *user_data,
                                    uint64_t timeout_ns, json_t **results_out, bool *is_late_out)
{
    if (timeout_ns == DS_ACCEL__STACK_TIMEOUT_NS) {
        timeout_ns = PATIENCE_MS * 1000000ull;
    }
    return __real_ds_accel__worker_run(work, user_data, timeout_ns, results_out, is_late_out);
}

static json_t *sample(pid_t pid)
{
    json_t *stack = NULL;

    return ds_accel__stack_sample(pid, DS_ACCEL__STACK_UNAFFECTED, NULL, &stack) >= 0 ? stack
                                                                                      : NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static const json_t *find_thread(const json_t *stack, const char *name)
{
    const json_t *thread;
    size_t i;

    json_array_foreach(json_object_get(stack, "threads"), i, thread)
    {
        if (strcmp(text_of(thread, "name"), name) == 0) {
            return thread;
        }
    }
    return NULL;
}

static bool has_function(const json_t *thread, const char *function)
{
    const json_t *frame;
    size_t i;

    json_array_foreach(json_object_get(thread, "frames"), i, frame)
    {
        if (strcmp(text_of(frame, "function"), function) == 0) {
            return true;
        }
    }
    return false;
}

static const json_t *first_thread(const json_t *stack)
{
    return json_array_get(json_object_get(stack, "threads"), 0);
}

/* The module of the first frame in a function; "" if there is none. A sanitizer's frames are
 * between those of the program and of the C library. */
static const char *module_of(const json_t *thread, const char *function)
{
    const json_t *frame;
    size_t i;

    json_array_foreach(json_object_get(thread, "frames"), i, frame)
    {
        if (strcmp(text_of(frame, "function"), function) == 0) {
            return text_of(frame, "module");
        }
    }
    return "";
}

static void test_sleep_stack(void)
{
    struct process process;
    bool is_started = start("pipe", &process) && is_asleep(process.pid);
    json_t *stack = sample(process.pid);
    const json_t *thread = first_thread(stack);

    check("sleep: started", is_started);
    check("sleep: process", ds_accel__json_size(stack, "pid") == (uint64_t)process.pid);
    check("sleep: thread", ds_accel__json_size(thread, "tid") == (uint64_t)process.pid);
    check("sleep: state", strcmp(text_of(thread, "state"), "S") == 0);
    check("sleep: frames", has_function(thread, "read_message") && has_function(thread, "main"));
    check("sleep: module", strcmp(module_of(thread, "read_message"), "stall") == 0);
    check("sleep: no cause",
          json_object_get(stack, "why") == NULL && json_object_get(thread, "why") == NULL);
    check("sleep: wchan", strstr(text_of(thread, "wchan"), "pipe") != NULL || geteuid() != 0);
    check("sleep: waits no more", json_object_get(thread, "wait") == NULL);
    json_decref(stack);
    check("sleep: alive", WTERMSIG(finish(&process)) == SIGKILL);
}

static void test_spin_stack(void)
{
    struct process process;
    bool is_started = start("spin", &process) && has_run(process.pid);
    json_t *one = sample(process.pid), *two = sample(process.pid);
    const json_t *wait = json_object_get(first_thread(one), "wait");
    const json_t *again = json_object_get(first_thread(two), "wait");

    check("spin: started", is_started);
    check("spin: function", strcmp(text_of(wait, "function"), "all_reduce") == 0);
    check("spin: place", ds_accel__json_size(wait, "place") != 0 && json_equal(wait, again));
    check("spin: resumed", has_run(process.pid));
    json_decref(one);
    json_decref(two);
    finish(&process);
}

static void test_threads_stack(void)
{
    struct process process;
    bool is_started = start("threads", &process) && has_run(process.pid);
    json_t *stack = sample(process.pid);
    const json_t *spinner = find_thread(stack, "spinner");

    check("threads: started", is_started);
    check("threads: all", json_array_size(json_object_get(stack, "threads")) == 5);
    check("threads: spinner", has_function(spinner, "all_reduce"));
    check("threads: spinner's start", has_function(spinner, "spin_thread"));
    check("threads: main", !has_function(first_thread(stack), "all_reduce") &&
                               has_function(first_thread(stack), "run_threads"));
    json_decref(stack);
    finish(&process);
}

static void test_crowd(void)
{
    struct process process;
    bool is_started = start("crowd", &process) && has_state(process.pid, 'S');
    json_t *stack;
    struct ds_accel__text text = {0};
    char state;

    while (stat_field(process.pid, 17, &state) < 101) {
        usleep(1000);
    }
    stack = sample(process.pid);
    ds_accel__stack_write(stack, &text);
    check("crowd: started", is_started);
    check("crowd: limit",
          json_array_size(json_object_get(stack, "threads")) == DS_ACCEL__STACK_THREADS);
    check("crowd: count", ds_accel__json_size(stack, "thread_count") == 101);
    check("crowd: text", text.data != NULL && strstr(text.data, "(37 more threads)") != NULL);
    ds_accel__text_clear(&text);
    json_decref(stack);
    finish(&process);
}

static void test_stopped(void)
{
    struct process process;
    bool is_started = start("spin", &process) && has_run(process.pid);
    siginfo_t info = {0};
    json_t *stack;
    int pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);

    signal_process(process.pid, SIGSTOP);
    check("stopped: started", is_started && has_state(process.pid, 'T'));
    stack = sample(process.pid);
    check("stopped: state", strcmp(text_of(first_thread(stack), "state"), "T") == 0);
    check("stopped: frames", has_function(first_thread(stack), "all_reduce"));
    check("stopped: remains", has_state(process.pid, 'T'));
    check("stopped: no exit",
          waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
    signal_process(process.pid, SIGCONT);
    check("stopped: continues", has_run(process.pid));
    json_decref(stack);
    close(pidfd);
    check("stopped: status", WTERMSIG(finish(&process)) == SIGKILL);
}

/* Processes that are killed at some time while they are sampled. */
static void test_dying(void)
{
    bool is_right = true;
    json_t *stack;

    for (unsigned i = 0; i < 20; i++) {
        struct process process;
        bool is_started = start("threads", &process);
        pid_t killer = fork();
        int status;

        if (killer == 0) {
            usleep(i * 1500);
            signal_process(process.pid, SIGKILL);
            _exit(0);
        }
        json_decref(sample(process.pid));
        waitpid(killer, NULL, 0);
        is_right = is_right && is_started && waitpid(process.pid, &status, 0) == process.pid &&
                   WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        close(process.output);
        stack = sample(process.pid);
        is_right = is_right && stack == NULL;
        json_decref(stack);
    }
    check("dying: status", is_right);
}

/* Print why a process has no frames. */
static int print_cause(const char *pid)
{
    json_t *stack = sample((pid_t)strtol(pid, NULL, 10));
    const json_t *thread = first_thread(stack);

    printf("%s: %s%s\n", text_of(thread, "state"), text_of(stack, "why"), text_of(thread, "why"));
    json_decref(stack);
    return 0;
}

/* What print_cause() prints in a process of its own. */
static bool has_cause(pid_t pid, const char *library_path, const char *wanted)
{
    char number[16], text[512] = "";
    int fds[2], used = 0;
    pid_t child;

    snprintf(number, sizeof(number), "%ld", (long)pid);
    if (pipe(fds) != 0) {
        return false;
    }
    fflush(stdout); /* the child would print it, too */
    child = fork();
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        if (library_path != NULL) {
            setenv("LD_LIBRARY_PATH", library_path, 1);
            execl(self, self, "sample", number, (char *)NULL);
        } else if (geteuid() != 0 || setuid(65534) == 0) { /* the kernel permits root everything */
            print_cause(number);
            fflush(stdout);
        }
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t size; (size = read(fds[0], text + used, sizeof(text) - 1 - (size_t)used)) > 0;) {
        used += (int)size;
    }
    close(fds[0]);
    waitpid(child, NULL, 0);
    if (strncmp(text, "S: ", 3) != 0 || strstr(text, wanted) == NULL) {
        printf("%s\n", text);
        return false;
    }
    return true;
}

/* The threads are there without frames, and the result has the reason. */
static void test_causes(void)
{
    char directory[] = "/tmp/ds-accel-stall-XXXXXX", path[64];
    struct process process;
    int fd;

    check("causes: started", start("secret", &process) && has_state(process.pid, 'S'));
    check("causes: directory", mkdtemp(directory) != NULL);
    snprintf(path, sizeof(path), "%s/libdw.so.1", directory);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    check("causes: no libdw", has_cause(process.pid, directory, "libdw (elfutils)"));
    close(fd);
    unlink(path);
    rmdir(directory);
    check("causes: not permitted", has_cause(process.pid, NULL, "ermi"));
    finish(&process);
}

/* ---- workers -------------------------------------------------------------------------------- */

/* Enough for a child to write its result; two of three children do not end before. */
#define WORKER_LIMIT_NS 3000000000ull

/* Writes one result, the process ID of its child or 0, and then fails as user_data says. */
static void fail_work(struct ds_accel__worker *worker, void *user_data)
{
    pid_t child = strcmp(user_data, "child") == 0 ? fork() : -1;

    if (child != 0) {
        json_t *result = json_pack("{s:i}", "child", child > 0 ? (int)child : 0);

        ds_accel__worker_result(worker, result);
        json_decref(result);
    }
    if (strcmp(user_data, "crash") == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        abort();
    } else if (child <= 0) { /* the child keeps the pipe open */
        alarm(PATIENCE_MS / 1000);
        pause();
    }
}

/* True if the process has ended, also if nobody has reaped it. */
static bool has_ended(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 1000000};
    char state = 'S';

    for (int i = 0; i < PATIENCE_MS / 2 && state != '?' && state != 'Z'; i++) {
        nanosleep(&pause, NULL);
        stat_field(pid, 0, &state);
    }
    return state == '?' || state == 'Z';
}

static void test_workers(void)
{
    static const char *const names[] = {"crash", "hang", "child"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        json_t *results = NULL;
        bool is_late = false;
        pid_t child;

        check(names[i], ds_accel__worker_run(fail_work, (void *)(uintptr_t)names[i],
                                             WORKER_LIMIT_NS, &results, &is_late) == DS_ACCEL_OK &&
                            is_late == (i > 0) && json_array_size(results) == 1);
        child = (pid_t)ds_accel__json_size(json_array_get(results, 0), "child");
        check("worker: child", (child > 0) == (i == 2) && (child == 0 || has_ended(child)));
        json_decref(results);
    }
    check("worker: reaped", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* ---- the watch ------------------------------------------------------------------------------ */

/* A job and its watch. */
struct job {
    struct process processes[RANKS];
    struct ds_accel__stall_rank ranks[RANKS];
    bool is_busy[RANKS]; /* it uses CPU time all the time */
    unsigned count;
    struct ds_accel__stall *stall;
    uint64_t now_ns;
    json_t *report;
    unsigned notices;
    char notice[256];                 /* the last one */
    bool (*between)(struct job *job); /* called before each check */
};

static void begin(struct job *job, const char *const *names, unsigned count)
{
    *job = (struct job){.count = count, .now_ns = 1000};
    for (unsigned i = 0; i < count; i++) {
        check("job: started", start(names[i], &job->processes[i]));
        job->ranks[i] = (struct ds_accel__stall_rank){
            .pid = job->processes[i].pid, .is_running = true, .output_bytes = 1};
    }
    check("job: watch",
          ds_accel__stall_create(TIMEOUT_NS, count, job->now_ns, &job->stall) == DS_ACCEL_OK);
}

static void end(struct job *job)
{
    json_decref(job->report);
    ds_accel__stall_destroy(job->stall);
    for (unsigned i = 0; i < job->count; i++) {
        finish(&job->processes[i]);
    }
}

/* Check once at the next time. Busy processes run before it, so that they have left the handler of
 * a signal that was sent in between. */
static bool check_once(struct job *job)
{
    json_t *report = NULL;
    const char *notice;
    bool is_found;

    if (job->between != NULL && !job->between(job)) {
        check("job: between", false);
    }
    for (unsigned i = 0; i < job->count; i++) {
        if (job->is_busy[i] && !has_run(job->ranks[i].pid)) {
            check("job: runs", false);
        }
    }
    if (ds_accel__stall_next_ns(job->stall) > job->now_ns) {
        job->now_ns = ds_accel__stall_next_ns(job->stall);
    }
    is_found = ds_accel__stall_check(job->stall, job->now_ns, job->ranks, &report);
    notice = ds_accel__stall_take_notice(job->stall);
    if (notice != NULL) {
        job->notices++;
        snprintf(job->notice, sizeof(job->notice), "%s", notice);
    }
    if (!is_found) {
        return false;
    }
    json_decref(job->report);
    job->report = report;
    return true;
}

/* Check until the clock has gone on by so many timeouts; the number of reports. */
static unsigned watch(struct job *job, unsigned timeouts)
{
    uint64_t end_ns = job->now_ns + timeouts * TIMEOUT_NS;
    unsigned count = 0;

    while (job->now_ns < end_ns) {
        count += check_once(job);
    }
    return count;
}

static const json_t *rank_of(const struct job *job, unsigned rank)
{
    return json_array_get(json_object_get(job->report, "ranks"), rank);
}

static bool has_text(const struct job *job, const char *wanted)
{
    struct ds_accel__text text = {0};
    bool is_found;

    ds_accel__stall_write(job->report, &text);
    is_found = !text.failed && text.data != NULL && strstr(text.data, wanted) != NULL;
    if (!is_found) {
        printf("%s\n", text.data != NULL ? text.data : "");
    }
    ds_accel__text_clear(&text);
    return is_found;
}

static void test_idle_job(void)
{
    static const char *const names[] = {"sleep", "pipe"};
    struct job job;

    begin(&job, names, 2);
    while (job.now_ns < TIMEOUT_NS && !check_once(&job)) {
    }
    check("idle: not before the timeout", job.report == NULL);
    check("idle: once", watch(&job, 6) == 1);
    check("idle: condition", strcmp(text_of(rank_of(&job, 0), "condition"), "idle") == 0);
    check("idle: no common operation", json_is_null(json_object_get(job.report, "common")));
    check("idle: text", has_text(&job, "uses no CPU time"));
    check("idle: function", has_text(&job, "load_data+0x") && has_text(&job, "read_message+0x"));
    check("idle: not again", watch(&job, 4) == 0);
    job.ranks[1].output_bytes++;
    check("idle: again after output", watch(&job, 4) == 1);
    end(&job);
}

static void test_spinning_job(void)
{
    static const char *const names[] = {"spin", "threads", "wrapped"};
    struct job job;

    begin(&job, names, 3);
    check("spinning: once", watch(&job, 4) == 1);
    check("spinning: condition",
          strcmp(text_of(rank_of(&job, 0), "condition"), "spinning") == 0 &&
              strcmp(text_of(rank_of(&job, 1), "condition"), "spinning") == 0);
    check("spinning: common", has_text(&job, "ranks 0-2 are in all_reduce (stall)"));
    signal_process((pid_t)ds_accel__json_size(json_object_get(rank_of(&job, 2), "stack"), "pid"),
                   SIGKILL);
    end(&job);
}

static void test_missing_rank(void)
{
    static const char *const names[] = {"spin", "spin", "spin", "sleep"};
    struct job job;

    begin(&job, names, 4);
    check("missing: found", watch(&job, 2) == 1);
    check("missing: inside", has_text(&job, "ranks 0-2 are in all_reduce"));
    check("missing: outside", has_text(&job, "rank 3 is not in all_reduce"));
    check("missing: where",
          has_function(first_thread(json_object_get(rank_of(&job, 3), "stack")), "load_data"));
    end(&job);
}

static void test_ended_rank(void)
{
    static const char *const names[] = {"spin", "sleep"};
    struct job job;

    begin(&job, names, 2);
    job.ranks[1].is_running = false;
    check("ended: found", watch(&job, 2) == 1);
    check("ended: text", has_text(&job, "rank 1 has ended") && has_text(&job, "rank 0 is in all_"));
    job.ranks[0].is_running = false;
    check("ended: none is left", watch(&job, 4) == 0);
    end(&job);
}

static void test_computing_job(void)
{
    static const char *const names[] = {"compute", "compute"}, *const mixed[] = {"spin", "compute"};
    struct job job;

    begin(&job, names, 2);
    check("computing: no report", watch(&job, 4) == 0);
    end(&job);
    begin(&job, mixed, 2);
    check("computing: others wait", watch(&job, 4) == 0);
    end(&job);
}

static bool change_phase(struct job *job)
{
    return signal_process(job->ranks[0].pid, SIGUSR2) && hear(&job->processes[0]);
}

static void test_progressing_job(void)
{
    static const char *const names[] = {"train"};
    struct job job;

    begin(&job, names, 1);
    job.is_busy[0] = true;
    job.between = change_phase;
    check("progressing: no report", watch(&job, 4) == 0);
    job.between = NULL;
    job.is_busy[0] = false;
    change_phase(&job); /* one of the two functions, forever */
    has_run(job.ranks[0].pid);
    json_decref(job.report);
    job.report = sample(job.ranks[0].pid);
    if (!has_function(first_thread(job.report), "all_reduce")) {
        change_phase(&job);
    }
    check("progressing: then a stall", watch(&job, 4) == 1);
    job.is_busy[0] = true;
    job.between = change_phase;
    check("progressing: again no report", watch(&job, 4) == 0);
    job.between = NULL;
    if (!has_function(first_thread(json_object_get(rank_of(&job, 0), "stack")), "all_reduce")) {
        check("progressing: function", false);
    }
    end(&job);
}

static double silence(const struct job *job)
{
    return json_real_value(json_object_get(job->report, "silent_s"));
}

/* The silence begins when the job continues. */
static void test_stopped_job(void)
{
    static const char *const names[] = {"sleep", "compute"};
    struct job job;

    begin(&job, names, 1);
    signal_process(job.ranks[0].pid, SIGSTOP);
    check("stopped job: state", has_state(job.ranks[0].pid, 'T'));
    check("stopped job: no report", watch(&job, 4) == 0);
    check("stopped job: one notice",
          job.notices == 1 && strncmp(job.notice, "rank 0 is stopped", 17) == 0);
    signal_process(job.ranks[0].pid, SIGCONT);
    check("stopped job: state after", has_state(job.ranks[0].pid, 'S'));
    check("stopped job: then a report", watch(&job, 2) == 1);
    check("stopped job: silence", silence(&job) >= 60 && silence(&job) < 90);
    signal_process(job.ranks[0].pid, SIGSTOP);
    check("stopped again: state", has_state(job.ranks[0].pid, 'T'));
    check("stopped again: another notice", watch(&job, 2) == 0 && job.notices == 2);
    end(&job);
    begin(&job, names, 2); /* one of two; the other would work */
    ds_accel__stall_set_first_rank(job.stall, 8);
    signal_process(job.ranks[1].pid, SIGSTOP);
    check("one stopped: state", has_state(job.ranks[1].pid, 'T'));
    check("one stopped: no report", watch(&job, 4) == 0);
    check("one stopped: notice",
          job.notices == 1 && strncmp(job.notice, "rank 9 is stopped", 17) == 0);
    end(&job);
}

/* The rank continues before the timeout is over, and is stopped again. */
static bool stop_and_continue(struct job *job)
{
    pid_t pid = job->ranks[0].pid;
    char state;

    stat_field(pid, 0, &state);
    signal_process(pid, state == 'T' ? SIGCONT : SIGSTOP);
    return has_state(pid, state == 'T' ? 'S' : 'T');
}

static void test_short_stops(void)
{
    static const char *const names[] = {"sleep"};
    struct job job;

    begin(&job, names, 1);
    job.between = stop_and_continue;
    check("short stops: no report", watch(&job, 4) == 0);
    check("short stops: no notice", job.notices == 0);
    end(&job);
}

/* ---- effects on the job ---------------------------------------------------------------------- */

/* True if the process wrote nothing more, and waits. */
static bool is_undisturbed(const struct process *process)
{
    struct pollfd output = {.fd = process->output, .events = POLLIN};

    return has_state(process->pid, 'S') && poll(&output, 1, 0) == 0;
}

/* epoll_wait() fails in a thread that is stopped. */
static void test_events(void)
{
    static const char *const names[] = {"events", "compute"};
    const json_t *thread;
    struct job job;

    begin(&job, names, 2);
    check("events: others work", watch(&job, 4) == 0);
    check("events: undisturbed", is_undisturbed(&job.processes[0]));
    end(&job);
    begin(&job, names, 1);
    check("events: a stall", has_state(job.ranks[0].pid, 'S') && watch(&job, 4) == 1);
    check("events: the report leaves it undisturbed", is_undisturbed(&job.processes[0]));
    thread = first_thread(json_object_get(rank_of(&job, 0), "stack"));
    check("events: no frames", json_object_get(thread, "frames") == NULL &&
                                   strstr(text_of(thread, "why"), "was not stopped") != NULL);
    check("events: system call", strncmp(text_of(thread, "system_call"), "epoll_", 6) == 0 &&
                                     has_text(&job, ", system call epoll_"));
    ds_accel__stall_set_last(job.stall);
    job.ranks[0].output_bytes++;
    check("last report: a stall", watch(&job, 4) == 1);
    check("last report: frames", has_text(&job, "serve_events+0x"));
    end(&job);
}

/* The process works before each check, and is in epoll_wait() at the check. */
static bool serve(struct job *job)
{
    struct process *process = &job->processes[0];

    return has_state(process->pid, 'S') && signal_process(process->pid, SIGUSR2) && hear(process) &&
           hear(process) && has_state(process->pid, 'S');
}

static void test_working_events(void)
{
    static const char *const names[] = {"events"};
    struct job job;

    begin(&job, names, 1);
    job.between = serve;
    check("working events: no report", watch(&job, 4) == 0);
    check("working events: undisturbed", is_undisturbed(&job.processes[0]));
    end(&job);
}

/* Samples stop a thread that was active and sleeps, because its sleep goes on. */
static void test_naps(void)
{
    static const char *const names[] = {"naps"};
    struct job job;

    begin(&job, names, 1);
    job.is_busy[0] = true;
    check("naps: a stall", watch(&job, 2) == 1);
    check("naps: spins in a wait",
          strcmp(text_of(rank_of(&job, 0), "condition"), "spinning") == 0 &&
              has_text(&job, "rank 0 is in nap_and_wait"));
    end(&job);
}

/* A thread that was stopped waits elsewhere in the kernel, so it is read before. */
static void test_kernel_place(void)
{
    static const char *const names[] = {"nap"};
    const json_t *thread;
    struct job job;

    begin(&job, names, 1);
    check("kernel's place: asleep", is_asleep(job.ranks[0].pid));
    check("kernel's place: a stall", watch(&job, 4) == 1);
    thread = first_thread(json_object_get(rank_of(&job, 0), "stack"));
    check("kernel's place: wchan",
          strstr(text_of(thread, "wchan"), "nanosleep") != NULL || geteuid() != 0);
    check("kernel's place: system call", strstr(text_of(thread, "system_call"), "nanosleep"));
    check("kernel's place: frames", has_function(thread, "take_nap"));
    end(&job);
}

static bool is_between_samples(const struct job *job)
{
    uint64_t wait_ns = ds_accel__stall_next_ns(job->stall) - job->now_ns;

    return wait_ns > 0 && wait_ns < TIMEOUT_NS / 8;
}

/* A stop between samples makes them void. */
static bool stop_while_sampled(struct job *job)
{
    if (is_between_samples(job)) {
        return signal_process(job->ranks[0].pid, SIGSTOP) && has_state(job->ranks[0].pid, 'T');
    }
    return true;
}

static void test_stopped_samples(void)
{
    static const char *const names[] = {"sleep"};
    struct job job;

    begin(&job, names, 1);
    job.between = stop_while_sampled;
    check("stopped samples: no report", watch(&job, 2) == 0);
    end(&job);
}

/* A child of a rank that is stopped is idle, and does not end the watch of the job. */
static void test_stopped_child(void)
{
    static const char *const names[] = {"wrapped"};
    struct job job;
    pid_t child;

    begin(&job, names, 1);
    check("stopped child: found", watch(&job, 2) == 1);
    child = (pid_t)ds_accel__json_size(json_object_get(rank_of(&job, 0), "stack"), "pid");
    check("stopped child: reported", child > 1 && child != job.ranks[0].pid);
    signal_process(child, SIGSTOP);
    check("stopped child: state", has_state(child, 'T'));
    job.ranks[0].output_bytes++;
    check("stopped child: a report", watch(&job, 4) == 1);
    check("stopped child: no notice", job.notices == 0);
    signal_process(child, SIGKILL);
    end(&job);
}

static bool postpone(struct job *job)
{
    ds_accel__stall_postpone(job->stall, job->now_ns);
    return true;
}

static void test_postponed_job(void)
{
    static const char *const names[] = {"sleep"};
    struct job job;

    begin(&job, names, 1);
    job.between = postpone;
    check("postponed: no report", watch(&job, 4) == 0);
    job.between = NULL;
    check("postponed: then a report", watch(&job, 2) == 1);
    check("postponed: silence", silence(&job) >= 60 && silence(&job) < 90);
    end(&job);
}

/* ---- ranks of several processes -------------------------------------------------------------- */

static void test_working_families(void)
{
    static const char *const names[] = {"pipeline", "polling"};
    struct job job;

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        begin(&job, &names[i], 1);
        check(names[i], watch(&job, 4) == 0);
        end(&job);
    }
}

/* The child that spins or does something is reported, and not its parent. */
static void test_waiting_families(void)
{
    static const struct {
        const char *name, *condition, *text;
    } cases[] = {{"idle pipeline", "idle", "+0x"},
                 {"polling a spin", "spinning", "rank 0 is in all_reduce"},
                 {"polling a wait", "spinning", "rank 0 is in busy_wait"}};
    struct job job;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        begin(&job, &cases[i].name, 1);
        check(cases[i].name, watch(&job, 4) == 1);
        check("family: a child is reported",
              ds_accel__json_size(json_object_get(rank_of(&job, 0), "stack"), "pid") !=
                  (uint64_t)job.ranks[0].pid);
        check("family: condition",
              strcmp(text_of(rank_of(&job, 0), "condition"), cases[i].condition) == 0);
        check("family: function", has_text(&job, cases[i].text));
        end(&job);
    }
}

/* Wait until children that have ended used 50 ms more. */
static bool has_spawned(struct job *job)
{
    struct timespec pause = {.tv_nsec = 1000000};
    pid_t pid = job->ranks[0].pid;
    char state;
    unsigned long long first = stat_field(pid, 13, &state) + stat_field(pid, 14, &state);
    unsigned long long now = first;

    for (int i = 0; i < PATIENCE_MS && now < first + 5; i++) {
        nanosleep(&pause, NULL);
        now = stat_field(pid, 13, &state) + stat_field(pid, 14, &state);
    }
    return now >= first + 5;
}

static void test_spawner(void)
{
    static const char *const names[] = {"spawner"};
    struct job job;

    begin(&job, names, 1);
    job.between = has_spawned;
    check("spawner: no report", watch(&job, 4) == 0);
    end(&job);
}

/* The child that was started last. */
static pid_t last_child(pid_t pid)
{
    char path[64], *text, *at;
    const char *cause;
    size_t size;
    pid_t child = 0;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    if (ds_accel__file_read(path, 65536, &text, &size, &cause) < 0) {
        return 0;
    }
    for (at = text; *at != '\0' && *at != '\n';) {
        child = (pid_t)strtol(at, &at, 10);
        at += strspn(at, " ");
    }
    free(text);
    return child;
}

/* Between samples the last child of the first rank begins to work, and works. */
static bool herd_runs(struct job *job)
{
    pid_t child = last_child(job->ranks[0].pid);
    char state;

    if (!is_between_samples(job)) {
        return true;
    }
    if (stat_field(child, 11, &state) == 0) {
        change_phase(job);
    }
    return has_run(child);
}

/* Work of a process that was not sampled, because it had used less CPU time than many others. */
static void test_herd(void)
{
    static const char *const names[] = {"herd"};
    struct job job;
    bool is_ready = true;

    begin(&job, names, 1);
    for (unsigned i = 1; i < STALL_HERD; i++) {
        is_ready = is_ready && hear(&job.processes[0]);
    }
    job.between = herd_runs;
    check("herd: no report", is_ready && watch(&job, 2) == 0);
    end(&job);
}

static pid_t orphan;

static void find_orphan(void *user_data, pid_t pid, pid_t branch)
{
    const struct job *job = user_data;

    if (pid == branch && pid != job->ranks[0].pid) {
        orphan = pid;
    }
}

static bool orphan_runs(struct job *job)
{
    (void)job;
    return has_run(orphan);
}

static void test_orphan(void)
{
    static const char *const names[] = {"orphan"};
    struct job job;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    begin(&job, names, 1);
    for (int i = 0; i < PATIENCE_MS && orphan == 0; i++) {
        ds_accel__descendants_visit(getpid(), find_orphan, &job);
        usleep(1000);
    }
    job.between = orphan_runs;
    check("orphan: no report", orphan > 0 && watch(&job, 4) == 0);
    job.between = NULL;
    signal_process(orphan, SIGKILL);
    check("orphan: reaped", orphan > 0 && waitpid(orphan, NULL, 0) == orphan);
    check("orphan: then a report", watch(&job, 4) == 1);
    end(&job);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* ---- progress between samples ---------------------------------------------------------------- */

/* The same operation, called from two places, is not one long wait. */
static void test_places(void)
{
    static const char *const names[] = {"places"};
    struct job job;

    begin(&job, names, 1);
    job.is_busy[0] = true;
    job.between = change_phase;
    check("places: no report", watch(&job, 4) == 0);
    job.between = NULL;
    check("places: then a stall", watch(&job, 4) == 1 && has_text(&job, "in all_reduce"));
    end(&job);
}

static bool kill_while_sampled(struct job *job)
{
    if (is_between_samples(job)) {
        return signal_process(job->ranks[1].pid, SIGKILL) && has_state(job->ranks[1].pid, 'Z');
    }
    return true;
}

/* A rank that dies between samples is not idle. */
static void test_dying_rank(void)
{
    static const char *const names[] = {"sleep", "sleep"};
    struct job job;

    begin(&job, names, 2);
    job.between = kill_while_sampled;
    check("dying rank: no report", watch(&job, 2) == 0);
    end(&job);
}

/* Work without output ends a stall, so that the next one is reported again. */
static void test_work_between(void)
{
    static const char *const names[] = {"rest"};
    struct job job;

    begin(&job, names, 1);
    check("work between: a stall", watch(&job, 4) == 1);
    change_phase(&job);
    job.is_busy[0] = true;
    check("work between: works", watch(&job, 4) == 0);
    job.is_busy[0] = false;
    change_phase(&job);
    check("work between: another stall", watch(&job, 4) == 1);
    end(&job);
}

/* A rank that died and is not yet known to have ended. */
static void test_dead_rank(void)
{
    static const char *const names[] = {"sleep", "sleep"};
    struct job job;

    begin(&job, names, 2);
    signal_process(job.ranks[1].pid, SIGKILL);
    has_state(job.ranks[1].pid, 'Z');
    check("dead: no report", watch(&job, 4) == 0);
    job.ranks[1].is_running = false;
    check("dead: then a report", watch(&job, 4) == 1);
    end(&job);
}

/* ---- the watch of a job ---------------------------------------------------------------------- */

/* A job of one rank, which reports to nobody. */
struct watched_job {
    struct ds_accel_launch launch;
    struct ds_accel__job_rank rank;
    struct ds_accel__job job;
    struct process process;
    uint64_t now_ns;
};

static void begin_job(struct watched_job *watched, const char *name)
{
    static char cpu[] = "cpu";
    struct ds_accel__job *job = &watched->job;

    *watched = (struct watched_job){.now_ns = ds_accel__now_ns()};
    check("job watch: started", start(name, &watched->process));
    watched->launch.options.stall_timeout_ns = TIMEOUT_NS;
    watched->launch.plan.accelerator = cpu;
    watched->rank.pid = watched->process.pid;
    watched->rank.state = DS_ACCEL__RANK_RUNNING;
    *job = (struct ds_accel__job){.launch = &watched->launch,
                                  .plan = &watched->launch.plan,
                                  .log = &watched->launch.log,
                                  .ranks = &watched->rank,
                                  .rank_count = 1,
                                  .has_pipes = true};
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        job->shared[i] = &job->sinks[i];
    }
    job->messages.fd = -1; /* messages go to the log's sink */
    check("job watch: opened", ds_accel__job_watch_open(job) == DS_ACCEL_OK);
}

static void end_job(struct watched_job *watched)
{
    ds_accel__job_watch_close(&watched->job);
    finish(&watched->process);
}

/* Watch until the clock has gone on by so many timeouts; the number of reports. */
static uint64_t watch_job(struct watched_job *watched, unsigned timeouts)
{
    uint64_t end_ns = watched->now_ns + timeouts * TIMEOUT_NS, before = watched->job.stall_count;

    while (watched->now_ns < end_ns) {
        uint64_t next_ns = ds_accel__stall_next_ns(watched->job.stall);

        watched->now_ns = next_ns > watched->now_ns ? next_ns : watched->now_ns + 1;
        ds_accel__job_watch(&watched->job, watched->now_ns);
    }
    return watched->job.stall_count - before;
}

/* The first and the last reports are kept. */
static void test_many_stalls(void)
{
    struct watched_job watched;
    bool is_right = true, is_kept = true;

    begin_job(&watched, "sleep");
    for (unsigned i = 0; i < 20; i++) {
        watched.rank.streams[DS_ACCEL__OUT].total_bytes++;
        ds_accel__stall_set_first_rank(watched.job.stall, i); /* the report's mark */
        is_right = is_right && watch_job(&watched, 2) == 1;
    }
    check("many stalls: each", is_right);
    check("many stalls: count", watched.job.stall_count == 20);
    check("many stalls: kept", json_array_size(watched.job.stalls) == 16);
    for (unsigned i = 0; i < 16; i++) {
        const json_t *report = json_array_get(watched.job.stalls, i);
        const json_t *rank = json_array_get(json_object_get(report, "ranks"), 0);

        is_kept = is_kept && ds_accel__json_size(rank, "rank") == (i < 8 ? i : i + 4);
    }
    check("many stalls: which", is_kept);
    end_job(&watched);
}

static void test_slow_reader(void)
{
    struct watched_job watched;

    begin_job(&watched, "sleep");
    watched.job.sinks[DS_ACCEL__ERR].pending_size = 1;
    check("slow reader: no report", watch_job(&watched, 4) == 0);
    watched.job.sinks[DS_ACCEL__ERR].pending_size = 0;
    check("slow reader: then a report", watch_job(&watched, 4) == 1);
    end_job(&watched);
}

/* ---- devices -------------------------------------------------------------------------------- */

static bool read_fake(void *user_data, bool is_first, json_t **devices_out)
{
    *devices_out = json_pack("{s:s, s:[{s:s}]}", "accelerator", "fake", "devices", "progress",
                             *(bool *)user_data ? "yes" : "no");
    return !is_first && *(bool *)user_data;
}

static void test_device_job(void)
{
    static const char *const names[] = {"sleep"};
    bool is_working = true;
    struct job job;

    begin(&job, names, 1);
    ds_accel__stall_set_devices(job.stall, read_fake, &is_working);
    check("devices: work", watch(&job, 4) == 0);
    is_working = false;
    check("devices: do not work", watch(&job, 4) == 1);
    check("devices: text", has_text(&job, "fake device 0: progress: no"));
    end(&job);
}

static void test_compare(void)
{
    static const struct {
        const char *before, *after, *answer;
    } cases[] = {
        {"{}", "{}", "unknown"},
        {"{'utilization_percent':0}", "{'utilization_percent':0}", "no"},
        {"{'utilization_percent':0}", "{'utilization_percent':2}", "unknown"},
        {"{'utilization_percent':10}", "{'utilization_percent':50}", "yes"},
        {"{'utilization_percent':100}", "{'utilization_percent':100}", "unknown"},
        {"{'utilization_percent':100,'memory_utilization_percent':0}",
         "{'utilization_percent':100,'memory_utilization_percent':0}", "no"},
        {"{'utilization_percent':100,'memory_utilization_percent':40}",
         "{'utilization_percent':100,'memory_utilization_percent':40}", "yes"},
        {"{'utilization_percent':0,'memory_used_bytes':1}",
         "{'utilization_percent':0,'memory_used_bytes':2}", "yes"},
        {"{'processes':[{'pid':1,'utilization_percent':1}]}",
         "{'processes':[{'pid':1,'utilization_percent':9}]}", "yes"},
        {"{'processes':[]}", "{'processes':[{'pid':1}]}", "yes"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        json_t *trees[2];

        for (unsigned j = 0; j < 2; j++) {
            snprintf(text, sizeof(text), "%s", j == 0 ? cases[i].before : cases[i].after);
            for (char *c = text; *c != '\0'; c++) {
                *c = *c == '\'' ? '"' : *c;
            }
            trees[j] = json_loads(text, 0, NULL);
        }
        check(cases[i].after,
              trees[0] != NULL && trees[1] != NULL &&
                  strcmp(ds_accel__progress_compare(trees[0], trees[1]), cases[i].answer) == 0);
        json_decref(trees[0]);
        json_decref(trees[1]);
    }
}

/* Two readings of an accelerator; the progress of its first device. */
static void test_progress_of(const char *name, const char *answer)
{
    struct ds_accel_options options = {.struct_size = sizeof(options),
                                       .flags = DS_ACCEL_OPTION_NO_USER_CONFIG |
                                                DS_ACCEL_OPTION_NO_CACHE,
                                       .accelerator = name,
                                       .plugin_dirs = &plugins,
                                       .plugin_dir_count = 1};
    struct ds_accel__progress progress = {.options = &options,
                                          .timeout_ns = PATIENCE_MS * 1000000ull};
    json_t *first = NULL, *second = NULL;
    bool is_any = ds_accel__progress_read(&progress, true, &first);
    const json_t *device;

    is_any = ds_accel__progress_read(&progress, false, &second) || is_any;
    device = json_array_get(json_object_get(second, "devices"), 0);
    check(name, !is_any && strcmp(text_of(second, "accelerator"), name) == 0 &&
                    strcmp(text_of(device, "progress"), answer) == 0);
    json_decref(first);
    json_decref(second);
    ds_accel__progress_clear(&progress);
}

static void test_no_accelerator(void)
{
    struct ds_accel_options options = {.struct_size = sizeof(options),
                                       .flags = DS_ACCEL_OPTION_NO_USER_CONFIG |
                                                DS_ACCEL_OPTION_NO_CACHE,
                                       .accelerator = "absent"};
    struct ds_accel__progress progress = {.options = &options,
                                          .timeout_ns = PATIENCE_MS * 1000000ull};
    json_t *reading = NULL;

    check("no accelerator: none", !ds_accel__progress_read(&progress, true, &reading));
    check("no accelerator: error", strstr(text_of(reading, "error"), "absent") != NULL);
    json_decref(reading);
    progress.timeout_ns = 1;
    check("no accelerator: late", !ds_accel__progress_read(&progress, false, &reading));
    check("no accelerator: late error", strstr(text_of(reading, "error"), "in time") != NULL);
    json_decref(reading);
    ds_accel__progress_clear(&progress);
}

/* ---- tracebacks ----------------------------------------------------------------------------- */

static const char armed_program[] =
    "import faulthandler, os, signal, threading\n"
    "fd = int(os.environ['DS_ACCEL_FAULTHANDLER_FD'])\n"
    "faulthandler.register(signal.SIGUSR1, file=fd, all_threads=True)\n"
    "os.write(fd, b'armed %d %d\\n' % (signal.SIGUSR1, os.getpid()))\n"
    "def wait_for_peer():\n"
    "    os.write(1, b'.')\n"
    "    threading.Event().wait()\n"
    "wait_for_peer()\n";

/* Start a process with a descriptor for tracebacks. */
static bool start_with_fault(const char *const *arguments, struct ds_accel__fault *fault,
                             struct process *process)
{
    char number[16];
    bool is_started;

    if (ds_accel__fault_open(fault) < 0) {
        return false;
    }
    snprintf(number, sizeof(number), "%d", fault->child_fd);
    setenv(DS_ACCEL__FAULT_VARIABLE, number, 1);
    is_started = start_command(arguments, process);
    unsetenv(DS_ACCEL__FAULT_VARIABLE);
    ds_accel__fault_started(fault);
    return is_started;
}

static void test_python(void)
{
    const char *arguments[] = {python, "-c", armed_program, NULL};
    struct ds_accel__fault fault;
    struct job job = {.count = 1, .now_ns = 1000};

    check("python: started", start_with_fault(arguments, &fault, &job.processes[0]));
    job.ranks[0] = (struct ds_accel__stall_rank){.pid = job.processes[0].pid, .is_running = true};
    check("python: watch", ds_accel__stall_create(TIMEOUT_NS, 1, job.now_ns, &job.stall) == 0);
    ds_accel__stall_set_faults(job.stall, &fault);
    check("python: found", watch(&job, 2) == 1);
    check("python: traceback", has_text(&job, "in wait_for_peer"));
    check("python: only the traceback",
          strstr(text_of(rank_of(&job, 0), "python"), "armed") == NULL);
    job.ranks[0].output_bytes++;
    check("python: again", watch(&job, 4) == 1 && has_text(&job, "in wait_for_peer"));
    end(&job);
    ds_accel__fault_close(&fault);
}

/* Nothing is sent to programs that have not armed a handler. */
static void test_unarmed(void)
{
    const char *unarmed[] = {self, "program", "unarmed", NULL};
    const char *handler[] = {self, "program", "handler", NULL};
    struct ds_accel__fault faults[2];
    struct process processes[2];
    pid_t pids[2];
    struct pollfd output;

    check("unarmed: started", start_with_fault(unarmed, &faults[0], &processes[0]));
    check("handler: started", start_with_fault(handler, &faults[1], &processes[1]));
    pids[0] = processes[0].pid;
    pids[1] = processes[1].pid;
    ds_accel__fault_collect(faults, pids, 2, 100000000);
    check("unarmed: the line was read", faults[0].pid == pids[0] && faults[0].signal == SIGUSR1);
    check("unarmed: no text", faults[0].text == NULL && faults[1].text == NULL);
    faults[1].pid = getpid(); /* as if it had named a process that is not the rank's */
    faults[1].signal = SIGUSR1;
    ds_accel__fault_collect(faults, pids, 2, 100000000);
    output = (struct pollfd){.fd = processes[1].output, .events = POLLIN};
    check("handler: no signal", poll(&output, 1, 0) == 0);
    check("unarmed: alive", WTERMSIG(finish(&processes[0])) == SIGKILL);
    check("handler: alive", WTERMSIG(finish(&processes[1])) == SIGKILL);
    ds_accel__fault_close(&faults[0]);
    ds_accel__fault_close(&faults[1]);
}

/* ---- names of waits ------------------------------------------------------------------------- */

static void test_names(void)
{
    static const struct {
        const char *function, *module;
        bool is_waiting;
    } cases[] = {{"MPI_Recv", "libmpi.so.40", true},
                 {"solve", "a.out", false},
                 {"", "libnccl.so.2", true},
                 {"", "libtorch_cpu.so", false},
                 {"gloo::allreduce(gloo::AllreduceOptions&)", "libtorch_cpu.so", true},
                 {"c10d::Work::wait(std::chrono::milliseconds)", "libtorch_cpu.so", true},
                 {"cudaStreamSynchronize", "libtorch_cuda.so", true},
                 {"waiter::compute(int)", "a.out", false},
                 {"(anonymous namespace)::broadcast(int)", "a.out", true},
                 {"ring_reduce_scatter", "a.out", true},
                 {"at::native::sum(at::Tensor, allreduce)", "libtorch_cpu.so", false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct ds_accel__frame frame = {.function = (char *)cases[i].function,
                                        .module = cases[i].module};

        check(cases[i].function, (ds_accel__waiting_frame(&frame, 1) == 0) == cases[i].is_waiting);
    }
}

/* ---- cost ----------------------------------------------------------------------------------- */

static long resident_kib(int who)
{
    struct rusage usage;

    getrusage(who, &usage);
    return usage.ru_maxrss;
}

/* Print the cost of samples of a process with 50 threads. */
static int measure(void)
{
    struct process process;
    bool is_started = start("many", &process);
    char state;

    while (is_started && stat_field(process.pid, 17, &state) < 50) {
        usleep(1000);
    }
    for (unsigned i = 0; i < 6; i++) {
        uint64_t start_ns = ds_accel__now_ns();
        json_t *stack = sample(process.pid);

        printf("%zu threads: %.2f ms\n", json_array_size(json_object_get(stack, "threads")),
               (double)(ds_accel__now_ns() - start_ns) / 1e6);
        json_decref(stack);
    }
    finish(&process);
    printf("largest resident set: this process %ld KiB, a sampling child %ld KiB\n",
           resident_kib(RUSAGE_SELF), resident_kib(RUSAGE_CHILDREN));
    return is_started ? 0 : 1;
}

static void test_watch(void)
{
    test_idle_job();
    test_spinning_job();
    test_missing_rank();
    test_ended_rank();
    test_computing_job();
    test_progressing_job();
    test_stopped_job();
    test_short_stops();
    test_events();
    test_working_events();
    test_naps();
    test_kernel_place();
    test_stopped_samples();
    test_stopped_child();
    test_postponed_job();
    test_working_families();
    test_waiting_families();
    test_spawner();
    test_herd();
    test_orphan();
    test_places();
    test_dying_rank();
    test_work_between();
    test_dead_rank();
    test_many_stalls();
    test_slow_reader();
}

int main(int argument_count, char **arguments)
{
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (argument_count == 3 && strcmp(arguments[1], "program") == 0) {
        stall_program_run(arguments[2]);
    }
    if (size > 0 && argument_count == 2 && strcmp(arguments[1], "measure") == 0) {
        return measure();
    }
    if (size > 0 && argument_count == 3 && strcmp(arguments[1], "sample") == 0) {
        return print_cause(arguments[2]);
    }
    if (size < 0 || argument_count != 3) {
        fprintf(stderr, "usage: stall PLUGINS PYTHON\n");
        return 2;
    }
    plugins = arguments[1];
    python = arguments[2];
    test_names();
    test_sleep_stack();
    test_spin_stack();
    test_threads_stack();
    test_crowd();
    test_stopped();
    test_dying();
    test_causes();
    test_workers();
    test_watch();
    test_device_job();
    test_compare();
    test_progress_of("mock", "no");
    test_progress_of("cpu", "unknown");
    test_no_accelerator();
    test_python();
    test_unarmed();
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 ? 1 : 0;
}
