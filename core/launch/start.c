/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Prepares a job and starts its ranks:
 *
 *      plan's variables + environment -> environment of a rank
 *      plan's arguments               -> arguments of a rank, with --local_rank=N
 *      stdin                          -> rank 0; the others read nothing
 *      stdout, stderr                 -> inherited by a single rank; pipes to the supervisor for
 *                                        several ranks; or a log for each rank
 *
 * Arguments and environment are passed on as bytes: nothing is quoted, split or converted.
 */
#include "base/clock.h"
#include "base/text.h"
#include "config/env.h"
#include "host/context.h"
#include "launch/job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIPE_SIZE (1 << 18) /* for the output of few ranks; the system may allow less */
#define FEW_RANKS 4u
#define LOG_MODE 0644
#define OWN_FILES 32 /* descriptors of a job without those of its ranks */

extern char **environ;

/* ---- environment and arguments -------------------------------------------------------------- */

/* A rank's environment under construction. */
struct environment {
    char **entries; /* the first owned_count are owned, the others borrowed */
    size_t owned_count, count, capacity;
    const char **removed; /* names that the rank does not inherit */
    size_t removed_count;
    bool failed;
};

static void add_entry(struct environment *environment, char *entry)
{
    if (environment->count == environment->capacity) {
        size_t capacity = 2 * environment->capacity + 64;
        char **entries = realloc(environment->entries, capacity * sizeof(*entries));

        if (entries == NULL) {
            environment->failed = true;
            return;
        }
        environment->entries = entries;
        environment->capacity = capacity;
    }
    environment->entries[environment->count++] = entry;
}

/* Do not inherit a variable. The name is borrowed. */
static void remove_variable(struct environment *environment, const char *name)
{
    const char **removed =
        realloc(environment->removed, (environment->removed_count + 1) * sizeof(*removed));

    if (removed == NULL) {
        environment->failed = true;
        return;
    }
    environment->removed = removed;
    environment->removed[environment->removed_count++] = name;
}

/* Set a variable, which replaces that of the job's environment, or of an earlier call. The name is
 * borrowed. */
static bool set_variable(void *user_data, const char *name, const char *value)
{
    struct environment *environment = user_data;
    size_t length = strlen(name);

    remove_variable(environment, name);
    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->entries[i], name, length) == 0 &&
            environment->entries[i][length] == '=') {
            free(environment->entries[i]);
            environment->entries[i] = environment->entries[--environment->count];
            break;
        }
    }
    environment->owned_count = environment->count;
    if (value != NULL) {
        char *entry = ds_accel__format("%s=%s", name, value);

        if (entry == NULL) {
            environment->failed = true;
            return false;
        }
        add_entry(environment, entry);
        if (environment->failed) {
            free(entry);
        }
        environment->owned_count = environment->count;
    }
    return !environment->failed;
}

static bool is_removed(const struct environment *environment, const char *entry)
{
    for (size_t i = 0; i < environment->removed_count; i++) {
        size_t length = strlen(environment->removed[i]);

        if (strncmp(entry, environment->removed[i], length) == 0 && entry[length] == '=') {
            return true;
        }
    }
    return false;
}

static void environment_clear(struct environment *environment)
{
    for (size_t i = 0; i < environment->owned_count; i++) {
        free(environment->entries[i]);
    }
    free(environment->entries);
    free(environment->removed);
}

static int32_t environment_make(const struct ds_accel__job *job,
                                const struct ds_accel__job_rank *rank,
                                struct environment *environment)
{
    const struct ds_accel__text *decision = &job->launch->known.decision;
    const struct ds_accel__fault *fault = job->faults != NULL ? &job->faults[rank - job->ranks]
                                                              : NULL;
    char number[16];
    int32_t status =
        ds_accel__plan_variables(job->plan, rank->rank, job->port, set_variable, environment);

    if (status >= 0 && fault != NULL && fault->child_fd >= 0) {
        snprintf(number, sizeof(number), "%d", fault->child_fd);
        set_variable(environment, DS_ACCEL__FAULT_VARIABLE, number);
    }
    if (status >= 0 && decision->size_bytes > 0) {
        set_variable(environment, "DS_ACCEL_DECISION", decision->data);
    }

    for (char **entry = environ; status >= 0 && *entry != NULL; entry++) {
        if (!is_removed(environment, *entry)) {
            add_entry(environment, *entry);
        }
    }
    add_entry(environment, NULL);
    return status < 0 || environment->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

/* The arguments of a rank; only the one at plan->local_rank_at is owned. NULL: out of memory. */
static char **arguments_make(const struct ds_accel__plan *plan, const struct ds_accel__rank *rank)
{
    char **arguments = calloc(plan->argument_count + 2, sizeof(*arguments));
    uint32_t count = 0;

    for (uint32_t i = 0; arguments != NULL && i <= plan->argument_count; i++) {
        if (i == plan->local_rank_at) {
            arguments[count] = ds_accel__format("--local_rank=%u", rank->local_rank);
            if (arguments[count++] == NULL) {
                free(arguments);
                return NULL;
            }
        }
        if (i < plan->argument_count) {
            arguments[count++] = plan->arguments[i];
        }
    }
    return arguments;
}

static void arguments_free(const struct ds_accel__plan *plan, char **arguments)
{
    if (arguments != NULL && plan->local_rank_at != UINT32_MAX) {
        free(arguments[plan->local_rank_at]);
    }
    free(arguments);
}

/* ---- streams and logs ----------------------------------------------------------------------- */

/* Make a pipe for a rank's stream; the rank's end is returned in *theirs_out. */
static int32_t open_pipe(struct ds_accel__job *job, struct ds_accel__job_rank *rank, int which,
                         int *theirs_out)
{
    struct ds_accel__stream *stream = &rank->streams[which];
    int ends[2];
    int32_t status;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "pipe: %s", strerror(errno));
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    /* Few large pipes save system calls. The memory of pipes of a user is limited, usually to
     * 64 MiB, and is shared with the pipes of the ranks themselves. */
    if (which == DS_ACCEL__OUT && job->rank_count <= FEW_RANKS) {
        fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    }
    status = ds_accel__stream_open(stream, ends[0], job->shared[which]);
    if (status < 0) {
        close(ends[0]);
        close(ends[1]);
        return status;
    }
    stream->prefix = rank->prefix;
    stream->tail = &rank->tail;
    *theirs_out = ends[1];
    return DS_ACCEL_OK;
}

/* Give rank 0 the pseudo-terminal; the supervisor's end is a stream. */
static int32_t open_terminal(struct ds_accel__job *job, struct ds_accel__job_rank *rank,
                             int descriptors[3])
{
    struct ds_accel__stream *stream = &rank->streams[DS_ACCEL__OUT];
    int master = fcntl(job->pty.master, F_DUPFD_CLOEXEC, 3);
    int32_t status;

    if (master < 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "--pty: %s", strerror(errno));
    }
    status = ds_accel__stream_open(stream, master, job->shared[DS_ACCEL__OUT]);
    if (status < 0) {
        close(master);
        return status;
    }
    stream->prefix = "";
    stream->tail = &rank->tail;
    stream->is_raw = true;
    descriptors[0] = descriptors[1] = descriptors[2] = job->pty.slave;
    job->pty.slave = -1; /* close_streams() closes it */
    return DS_ACCEL_OK;
}

static int32_t open_log(const struct ds_accel__job_rank *rank, int *fd_out)
{
    *fd_out = open(rank->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, LOG_MODE);
    return *fd_out >= 0
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_IO, "log %s: %s", rank->log_path, strerror(errno));
}

/* Open what becomes a rank's stdin, stdout and stderr. -1: inherited. */
static int32_t open_streams(struct ds_accel__job *job, struct ds_accel__job_rank *rank,
                            int descriptors[3])
{
    int32_t status = DS_ACCEL_OK;

    descriptors[0] = descriptors[1] = descriptors[2] = -1;
    if (rank->rank->local_rank > 0) {
        descriptors[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (descriptors[0] < 0) {
            return ds_accel__error(DS_ACCEL_ERR_IO, "/dev/null: %s", strerror(errno));
        }
    }
    if (rank->rank->local_rank == 0 && job->pty.master >= 0) {
        return open_terminal(job, rank, descriptors);
    }
    if (rank->log_path != NULL) {
        status = open_log(rank, &descriptors[1]);
        descriptors[2] = descriptors[1];
    } else if (job->has_pipes) {
        status = open_pipe(job, rank, DS_ACCEL__OUT, &descriptors[1]);
        if (status >= 0) {
            status = open_pipe(job, rank, DS_ACCEL__ERR, &descriptors[2]);
        }
    } else if (job->messages.fd >= 0) { /* stderr of this process is diverted */
        descriptors[2] = fcntl(job->error_fd, F_DUPFD_CLOEXEC, 3);
        if (descriptors[2] < 0) {
            return ds_accel__error(DS_ACCEL_ERR_LIMIT, "stderr: %s", strerror(errno));
        }
    }
    return status;
}

static void close_streams(const int descriptors[3])
{
    for (int i = 0; i < 3; i++) {
        if (descriptors[i] >= 0 && (i == 0 || descriptors[i] != descriptors[i - 1])) {
            close(descriptors[i]);
        }
    }
}

static int32_t make_directory(const char *path)
{
    struct stat info;

    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "--enable_each_rank_log %s: %s", path,
                               strerror(errno));
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "--enable_each_rank_log %s: it is a file, and must be a directory",
                               path);
    }
    return DS_ACCEL_OK;
}

/* Make the directory of logs, with its parents. */
static int32_t make_directories(const char *path)
{
    char *copy = strdup(path);
    int32_t status = copy != NULL ? DS_ACCEL_OK : ds_accel__no_memory();

    for (char *slash = copy != NULL ? strchr(copy + 1, '/') : NULL; slash != NULL && status >= 0;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_directory(copy);
        *slash = '/';
    }
    free(copy);
    return status < 0 ? status : make_directory(path);
}

/* ---- preparing ------------------------------------------------------------------------------ */

static bool is_log_wanted(const struct ds_accel__launch_options *options)
{
    return options->log_directory != NULL;
}

static int32_t prepare_rank(const struct ds_accel__job *job, struct ds_accel__job_rank *rank,
                            const char *log_time)
{
    const struct ds_accel__launch_options *options = &job->launch->options;
    const char *host = job->plan->hosts.items[rank->rank->host].name;

    rank->prefix = options->show_ranks ? ds_accel__format("%s:%u: ", host, rank->rank->rank)
                                       : strdup("");
    if (is_log_wanted(options)) {
        rank->log_path = ds_accel__format("%s/%s_rank%u.log", options->log_directory, log_time,
                                          rank->rank->rank);
    }
    return rank->prefix == NULL || (is_log_wanted(options) && rank->log_path == NULL)
               ? ds_accel__no_memory()
               : DS_ACCEL_OK;
}

/* Write the local time for the names of logs. It reads the time zone. */
static void write_log_time(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm parts;

    if (localtime_r(&now, &parts) == NULL || strftime(text, size, "%Y%m%d%H%M%S", &parts) == 0) {
        ds_accel__copy(text, size, "0");
    }
}

static int32_t prepare_ranks(struct ds_accel__job *job)
{
    char log_time[32] = "";
    int32_t status = DS_ACCEL_OK;

    job->rank_count = job->plan->local_count;
    job->ranks = calloc(job->rank_count, sizeof(*job->ranks));
    for (uint32_t i = 0; job->ranks != NULL && i < job->rank_count; i++) {
        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            job->ranks[i].streams[j].fd = -1; /* first: 0 would be closed after an error */
        }
    }
    job->fds = calloc(ds_accel__job_fd_limit(job), sizeof(*job->fds));
    job->polled = calloc(ds_accel__job_fd_limit(job), sizeof(*job->polled));
    if (job->ranks == NULL || job->fds == NULL || job->polled == NULL) {
        return ds_accel__no_memory();
    }
    if (is_log_wanted(&job->launch->options)) {
        status = make_directories(job->launch->options.log_directory);
        write_log_time(log_time, sizeof(log_time));
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        job->ranks[i].rank = &job->plan->ranks[job->plan->local_first + i];
        if (status >= 0) {
            status = prepare_rank(job, &job->ranks[i], log_time);
        }
    }
    return status;
}

/* Find the file that the ranks execute: in PATH, and then in the working directory. */
static int32_t find_program(struct ds_accel__job *job)
{
    const char *name = job->plan->arguments[0];
    int32_t status = ds_accel__command_find(name, ds_accel__env_job("PATH"), &job->path);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        job->path = ds_accel__format("./%s", name);
        if (job->path == NULL) {
            return ds_accel__no_memory();
        }
        job->path_error = access(job->path, F_OK) == 0 ? 0 : ENOENT;
        return DS_ACCEL_OK;
    }
    return status;
}

/* Allow this process as many descriptors as its ranks need. */
static void raise_file_limit(struct ds_accel__job *job)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &job->files) != 0) {
        job->files = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
        return;
    }
    limit = job->files;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool needs_pipes(const struct ds_accel__job *job)
{
    return job->launch->options.pty ||
           (job->rank_count > 1 && !is_log_wanted(&job->launch->options));
}

/* Fail before a rank starts, if this process may not have a descriptor for each pipe. */
static int32_t check_file_limit(const struct ds_accel__job *job)
{
    unsigned pipes = (needs_pipes(job) ? DS_ACCEL__STREAMS : 0u) +
                     (job->launch->options.stall_timeout_ns != 0);
    unsigned long long needed = (unsigned long long)job->rank_count * pipes + OWN_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) {
        return DS_ACCEL_OK;
    }
    return ds_accel__error(DS_ACCEL_ERR_LIMIT,
                           "%u %s %llu open files, and the hard limit is %llu: it can be "
                           "raised by ulimit -n %llu",
                           job->rank_count, job->rank_count == 1 ? "rank needs" : "ranks need",
                           needed, (unsigned long long)limit.rlim_cur, needed);
}

static void open_sinks(struct ds_accel__job *job)
{
    struct stat out;
    struct stat err;

    job->has_pipes = needs_pipes(job);
    job->shared[DS_ACCEL__OUT] = &job->sinks[DS_ACCEL__OUT];
    job->shared[DS_ACCEL__ERR] = &job->sinks[DS_ACCEL__ERR];
    ds_accel__sink_open(&job->sinks[DS_ACCEL__OUT], STDOUT_FILENO);
    job->error_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ds_accel__sink_open(&job->sinks[DS_ACCEL__ERR],
                        job->error_fd >= 0 ? job->error_fd : STDERR_FILENO);
    if (fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
        out.st_dev == err.st_dev && out.st_ino == err.st_ino) {
        job->shared[DS_ACCEL__ERR] = &job->sinks[DS_ACCEL__OUT];
    }
}

/* Lease the master's port, if the master is this machine. Without an option, another port serves as
 * well, unless other machines expect the default one. */
static int32_t take_port(struct ds_accel__job *job)
{
    const struct ds_accel__plan *plan = job->plan;
    struct ds_accel__text notes = {0};
    int32_t status;

    job->port = plan->port_low;
    if (plan->local_host != 0) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__port_take(plan->port_low, plan->port_high,
                                 job->launch->options.master_port == NULL && plan->hosts.count == 1,
                                 &job->lease, &notes);
    if (status >= 0) {
        job->port = job->lease.port;
    }
    if (status >= 0 && notes.size_bytes > 0) {
        notes.data[strcspn(notes.data, "\n")] = '\0';
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "%s", notes.data);
    }
    ds_accel__text_clear(&notes);
    return status;
}

/* Groups cost some milliseconds. They are made where memory has a limit: there a rank is probably
 * killed for its own memory, which only its own group proves. */
static int32_t open_groups(struct ds_accel__job *job)
{
    int32_t status =
        ds_accel__groups_open(&job->launch->known.context->machine, job->rank_count, &job->groups);

    if (status >= 0 && ds_accel__groups_limit_bytes(job->groups) > 0) {
        status = ds_accel__groups_make(job->groups);
    }
    return status;
}

int32_t ds_accel__job_open(struct ds_accel_launch *launch, struct ds_accel__job *job)
{
    struct rlimit core;
    int32_t status;

    *job = (struct ds_accel__job){.launch = launch,
                                  .plan = &launch->plan,
                                  .log = &launch->log,
                                  .signal_fd = -1,
                                  .timer_fd = -1,
                                  .guard_fd = -1,
                                  .exits_fd = -1,
                                  .result_fd = -1,
                                  .error_fd = -1,
                                  .lease.fd = -1,
                                  .messages.fd = -1,
                                  .messages.prefix = "",
                                  .pty.master = -1,
                                  .pty.slave = -1,
                                  .culprit = DS_ACCEL__NO_RANK,
                                  .start_ns = ds_accel__now_ns(),
                                  .start_wall_us = ds_accel__wall_us()};
    raise_file_limit(job);
    job->core_limit = getrlimit(RLIMIT_CORE, &core) == 0 ? core.rlim_cur : RLIM_INFINITY;
    status = prepare_ranks(job);
    if (status >= 0) {
        status = check_file_limit(job);
    }
    if (status >= 0) {
        status = find_program(job);
    }
    if (status >= 0 && launch->options.pty) {
        status = ds_accel__pty_open(&job->pty);
    }
    if (status >= 0) {
        status = take_port(job);
    }
    if (status >= 0) {
        status = open_groups(job);
    }
    if (status >= 0) {
        status = ds_accel__job_watch_open(job);
    }
    open_sinks(job);
    return status;
}

void ds_accel__job_close(struct ds_accel__job *job)
{
    for (uint32_t i = 0; job->ranks != NULL && i < job->rank_count; i++) {
        struct ds_accel__job_rank *rank = &job->ranks[i];

        for (int j = 0; j < DS_ACCEL__STREAMS; j++) {
            ds_accel__stream_close(&rank->streams[j]);
        }
        free(rank->tail.bytes);
        free(rank->prefix);
        free(rank->log_path);
        ds_accel__text_clear(&rank->real_cpus);
        ds_accel__text_clear(&rank->real_policy);
    }
    ds_accel__pty_close(&job->pty);
    ds_accel__groups_close(job->groups);
    ds_accel__job_watch_close(job);
    ds_accel__port_release(&job->lease);
    ds_accel__shared_memory_clear(&job->shared_memory);
    free(job->ranks);
    free(job->fds);
    free(job->polled);
    free(job->path);
    if (job->passed_on != NULL) {
        munmap(job->passed_on, _NSIG * sizeof(*job->passed_on));
    }
    ds_accel__stream_close(&job->messages);
    for (int i = 0; i < DS_ACCEL__STREAMS; i++) {
        ds_accel__sink_close(&job->sinks[i]);
    }
    if (job->error_fd >= 0) {
        close(job->error_fd);
    }
    if (job->signal_fd >= 0) {
        close(job->signal_fd);
    }
    if (job->timer_fd >= 0) {
        close(job->timer_fd);
    }
    if (job->guard_fd >= 0) {
        close(job->guard_fd);
    }
    if (job->exits_fd >= 0) {
        close(job->exits_fd);
    }
    if (job->result_fd >= 0) {
        close(job->result_fd);
    }
    memset(job, 0, sizeof(*job));
}

/* ---- starting ------------------------------------------------------------------------------- */

/* Report the parts of a placement that the kernel refused. */
static void report_placement(struct ds_accel__job *job, const struct ds_accel__job_rank *rank)
{
    const struct ds_accel__spawned *spawned = &rank->spawned;

    if (spawned->cpu_error != 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN, "rank %u is not bound to its CPUs: %s",
                          rank->rank->rank, strerror(spawned->cpu_error));
    }
    if (spawned->memory_error != 0) {
        ds_accel__job_say(job, DS_ACCEL_LOG_WARN,
                          "the memory of rank %u is not bound to its nodes: %s%s", rank->rank->rank,
                          strerror(spawned->memory_error),
                          spawned->memory_error == EPERM
                              ? " (containers often forbid it; docker: --cap-add SYS_NICE)"
                              : "");
    }
}

static void spawn_rank(struct ds_accel__job *job, struct ds_accel__job_rank *rank,
                       const int descriptors[3])
{
    struct environment environment = {0};
    char **arguments = arguments_make(job->plan, rank->rank);
    struct ds_accel__spawn spawn = {
        .path = job->path,
        .arguments = arguments,
        .placement = rank->rank->placement,
        .descriptors = {descriptors[0], descriptors[1], descriptors[2]},
        .is_traceable = job->stall != NULL,
        .has_terminal = rank->rank->local_rank == 0 && job->pty.master >= 0,
        .cgroups = {[DS_ACCEL__RANK_CGROUP] =
                        ds_accel__groups_descriptor(job->groups, (uint32_t)(rank - job->ranks)),
                    [DS_ACCEL__JOB_CGROUP] = ds_accel__groups_job_descriptor(job->groups)},
        .signals = &job->signals,
        .files = &job->files,
    };

    if (arguments == NULL || environment_make(job, rank, &environment) < 0) {
        rank->spawned = (struct ds_accel__spawned){.step = DS_ACCEL__SPAWN_FORK, .error = ENOMEM};
    } else if (job->path_error != 0) {
        rank->spawned =
            (struct ds_accel__spawned){.step = DS_ACCEL__SPAWN_EXECUTE, .error = job->path_error};
    } else {
        spawn.environment = environment.entries;
        rank->start_ns = ds_accel__now_ns();
        ds_accel__spawn(&spawn, &rank->spawned);
    }
    environment_clear(&environment);
    arguments_free(job->plan, arguments);
}

/* Start one rank. False: it could not be started. */
static bool start_rank(struct ds_accel__job *job, struct ds_accel__job_rank *rank)
{
    struct ds_accel__fault *fault = job->faults != NULL ? &job->faults[rank - job->ranks] : NULL;
    int descriptors[3];
    int32_t status = open_streams(job, rank, descriptors);

    if (status >= 0 && fault != NULL) {
        status = ds_accel__fault_open(fault);
    }
    if (status >= 0) {
        ds_accel__job_watch_exit(job, rank);
        spawn_rank(job, rank, descriptors);
    } else {
        rank->spawned = (struct ds_accel__spawned){.step = DS_ACCEL__SPAWN_STREAMS, .error = errno};
        ds_accel__job_say(job, DS_ACCEL_LOG_ERROR, "%s", ds_accel_last_error());
    }
    close_streams(descriptors);
    if (fault != NULL) {
        ds_accel__fault_started(fault);
    }
    if (rank->spawned.step != DS_ACCEL__SPAWN_NONE) {
        rank->state = DS_ACCEL__RANK_NOT_STARTED;
        rank->end_ns = ds_accel__now_ns();
        return false;
    }
    rank->pid = rank->spawned.pid;
    if (rank->spawned.cgroup_errors[DS_ACCEL__RANK_CGROUP] != 0) {
        ds_accel__groups_forget(job->groups, (uint32_t)(rank - job->ranks));
    }
    rank->state = DS_ACCEL__RANK_RUNNING;
    job->running_count++;
    report_placement(job, rank);
    return true;
}

void ds_accel__job_start(struct ds_accel__job *job)
{
    ds_accel__shared_memory_list(&job->shared_memory, DS_ACCEL__SHARED_DIRECTORY);
    for (uint32_t i = 0; i < job->rank_count; i++) {
        if (!start_rank(job, &job->ranks[i])) {
            job->culprit = i;
            return;
        }
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        ds_accel__job_check_placement(job, &job->ranks[i]);
    }
}
