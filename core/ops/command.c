/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Runs commands, several at once: their output, their time, and the end of all after a failure. */
#include "ops/command.h"
#include "base/clock.h"
#include "base/trust.h"
#include "config/env.h"
#include "machine/cpus.h"
#include "machine/topology.h"
#include "ops/command_child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_NS 2000000000ull /* between SIGTERM and SIGKILL */
#define READ_STEP_BYTES 16384u
#define PIPE_LIMIT_BYTES \
    ((size_t)1 << 20) /* what a pipe holds at most, for a user without rights */

/* A command that runs. */
struct slot {
    struct ds_accel__command *command; /* NULL: the slot is free */
    struct ds_accel__child child;
    int output; /* this process's end of the pipe; -1: closed */
    size_t dropped_bytes;
    uint64_t signal_ns; /* time of the next signal; 0: none */
    int next_signal;
    bool is_announced;
};

struct run {
    const struct ds_accel__command_options *options;
    char **environment;
    int wake;
    struct slot *slots;
    struct pollfd *polls; /* of the eventfd, then one of each slot */
    size_t slot_count;
    size_t running;
    bool is_stopping;
    int32_t status;
    /* of a failed start */
    const struct ds_accel__command *failed;
    int error;
    bool is_directory;
};

/* ---- descriptors ----------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Give a descriptor a number that no standard stream of a child has. Returns 0 or an errno. */
static int raise_fd(int *fd)
{
    if (*fd < DS_ACCEL__CHILD_LOWEST) {
        int raised = fcntl(*fd, F_DUPFD_CLOEXEC, DS_ACCEL__CHILD_LOWEST);

        if (raised < 0) {
            return errno == EINVAL ? EMFILE : errno;
        }
        close(*fd);
        *fd = raised;
    }
    return 0;
}

/* ---- one command ----------------------------------------------------------------------------- */

static void order(struct slot *slot, int signal)
{
    ds_accel__child_signal(&slot->child, signal);
    slot->next_signal = SIGKILL;
    slot->signal_ns = signal == SIGTERM ? ds_accel__now_ns() + GRACE_NS : 0;
}

/* Terminate all that run, and start no further command. */
static void stop_all(struct run *run)
{
    if (run->is_stopping) {
        return;
    }
    run->is_stopping = true;
    for (size_t i = 0; i < run->slot_count; i++) {
        struct slot *slot = &run->slots[i];

        if (slot->command != NULL && !slot->command->is_timed_out) {
            slot->command->is_cancelled = true;
            order(slot, SIGTERM);
        }
    }
}

static void fail(struct run *run, int32_t status, const struct slot *slot, int error)
{
    if (run->status >= 0) {
        run->status = error == ENOMEM ? DS_ACCEL_ERR_NO_MEMORY : status;
        run->failed = slot->command;
        run->error = error;
        run->is_directory = slot->child.is_directory;
    }
    stop_all(run);
}

/* Start a command in a free slot. */
static void start(struct run *run, struct slot *slot, struct ds_accel__command *command)
{
    int ends[2] = {-1, -1};
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;

    *slot = (struct slot){.command = command, .output = -1};
    if (error == 0) {
        error = raise_fd(&ends[1]);
    }
    if (error == 0) {
        error = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
    }
    if (error == 0) {
        slot->child = (struct ds_accel__child){.arguments = command->arguments,
                                               .environment = run->environment,
                                               .directory = command->directory,
                                               .output = ends[1],
                                               .wake = run->wake};
        error = ds_accel__child_start(&slot->child);
    }
    if (error != 0) {
        close_fd(&ends[0]);
        close_fd(&ends[1]);
        fail(run, DS_ACCEL_ERR_IO, slot, error);
        slot->command = NULL;
        return;
    }
    slot->output = ends[0];
    if (run->options->timeout_ms != 0) {
        slot->signal_ns = ds_accel__now_ns() + (uint64_t)run->options->timeout_ms * 1000000u;
        slot->next_signal = SIGTERM;
    }
    run->running++;
}

/*
 * Read what the pipe has, at most limit_bytes. The command may close its output long before it
 * ends, and processes that it has left may keep the pipe open long after.
 */
static void read_output(struct run *run, struct slot *slot, size_t limit_bytes)
{
    struct ds_accel__text *output = &slot->command->output;
    char step[READ_STEP_BYTES];

    for (size_t total = 0; slot->output >= 0 && total < limit_bytes;) {
        ssize_t count = read(slot->output, step, sizeof(step));
        size_t left = DS_ACCEL__COMMAND_OUTPUT_LIMIT - output->size_bytes;
        size_t kept;

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        if (count <= 0) {
            close_fd(&slot->output);
            return;
        }
        total += (size_t)count;
        kept = (size_t)count < left ? (size_t)count : left;
        if (kept > 0) {
            ds_accel__text_add_bytes(output, step, kept);
        }
        slot->dropped_bytes += (size_t)count - kept;
        if (output->failed) {
            fail(run, DS_ACCEL_ERR_NO_MEMORY, slot, ENOMEM);
            close_fd(&slot->output);
        }
    }
}

static void announce(const struct run *run, const struct slot *slot, bool has_ended)
{
    if (run->options->on_progress != NULL) {
        run->options->on_progress(run->options->user_data, slot->command, has_ended);
    }
}

static void announce_start(const struct run *run, struct slot *slot)
{
    if (!slot->is_announced) {
        slot->is_announced = true;
        announce(run, slot, false);
    }
}

static void end(struct run *run, struct slot *slot)
{
    struct ds_accel__command *command = slot->command;

    ds_accel__child_reap(&slot->child);
    close_fd(&slot->child.output);
    read_output(run, slot, PIPE_LIMIT_BYTES);
    close_fd(&slot->output);
    if (slot->dropped_bytes > 0) {
        ds_accel__text_add(&command->output, "\n[%zu more bytes were dropped]\n",
                           slot->dropped_bytes);
    }
    if (slot->child.error != 0) {
        command->is_cancelled = command->is_timed_out = false;
        fail(run, DS_ACCEL_ERR_IO, slot, slot->child.error);
    } else if (command->output.failed) {
        fail(run, DS_ACCEL_ERR_NO_MEMORY, slot, ENOMEM);
    } else {
        command->wait_status = slot->child.wait_status;
        announce_start(run, slot);
        announce(run, slot, true);
    }
    slot->command = NULL;
    assert(run->running > 0);
    run->running--;
    if (!ds_accel__command_succeeded(command)) {
        stop_all(run);
    }
}

/* ---- all commands ---------------------------------------------------------------------------- */

static void send_due(struct slot *slot, uint64_t now)
{
    if (slot->command != NULL && slot->signal_ns != 0 && now >= slot->signal_ns) {
        if (slot->next_signal == SIGTERM) {
            slot->command->is_timed_out = true;
        }
        order(slot, slot->next_signal);
    }
}

/* The time until the next signal is due, for poll(). */
static int time_left(const struct run *run)
{
    uint64_t now = ds_accel__now_ns();
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < run->slot_count; i++) {
        const struct slot *slot = &run->slots[i];

        if (slot->command != NULL && slot->signal_ns != 0 && slot->signal_ns < next) {
            next = slot->signal_ns;
        }
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    next = next > now ? (next - now) / 1000000u + 1 : 0;
    return next < 1000000u ? (int)next : 1000000;
}

/* Wait until something happens, and handle it. */
static void step(struct run *run)
{
    uint64_t ignored;

    run->polls[0] = (struct pollfd){.fd = run->wake, .events = POLLIN};
    for (size_t i = 0; i < run->slot_count; i++) {
        const struct slot *slot = &run->slots[i];

        run->polls[i + 1] =
            (struct pollfd){.fd = slot->command != NULL ? slot->output : -1, .events = POLLIN};
    }
    if (poll(run->polls, run->slot_count + 1, time_left(run)) > 0 &&
        (run->polls[0].revents & POLLIN) != 0 && read(run->wake, &ignored, sizeof(ignored)) < 0) {
        assert(errno == EAGAIN || errno == EINTR);
    }
    for (size_t i = 0; i < run->slot_count; i++) {
        struct slot *slot = &run->slots[i];
        enum ds_accel__child_state state;

        if (slot->command == NULL) {
            continue;
        }
        state = atomic_load(&slot->child.state);
        if (state == DS_ACCEL__CHILD_ENDED) {
            end(run, slot);
            continue;
        }
        if (state == DS_ACCEL__CHILD_STARTED) {
            /* Now only the command holds this end. */
            close_fd(&slot->child.output);
            announce_start(run, slot);
        }
        read_output(run, slot, PIPE_LIMIT_BYTES); /* at most, so that no command keeps all others */
        send_due(slot, ds_accel__now_ns());
    }
}

static void run_all(struct run *run, struct ds_accel__command *commands, size_t count)
{
    size_t next = 0;

    for (;;) {
        for (size_t i = 0; i < run->slot_count && next < count && !run->is_stopping; i++) {
            if (run->slots[i].command == NULL) {
                start(run, &run->slots[i], &commands[next++]);
            }
        }
        if (run->running == 0) {
            assert(run->is_stopping || next == count);
            return;
        }
        step(run);
    }
}

static int32_t report_failure(const struct run *run)
{
    const char *cause = strerror(run->error);

    if (run->status == DS_ACCEL_ERR_NO_MEMORY) {
        return ds_accel__no_memory();
    }
    if (run->failed == NULL) {
        return ds_accel__error(run->status, "no command can be started: %s", cause);
    }
    if (run->is_directory) {
        return ds_accel__error(run->status, "%s cannot be started in %s: %s",
                               run->failed->arguments[0], run->failed->directory, cause);
    }
    return ds_accel__error(run->status, "%s cannot be started: %s", run->failed->arguments[0],
                           cause);
}

static int32_t check(struct ds_accel__command *commands, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = commands[i].arguments[0];

        commands[i].wait_status = -1;
        commands[i].is_timed_out = commands[i].is_cancelled = false;
        if (name == NULL || name[0] != '/') {
            return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: a command needs an absolute path",
                                   name != NULL ? name : "(none)");
        }
    }
    if (ds_accel__has_raised_rights()) {
        return ds_accel__error(DS_ACCEL_ERR_PERMISSION,
                               "a program with raised rights runs no compilers: build ops "
                               "beforehand, as the user");
    }
    return DS_ACCEL_OK;
}

static char **make_environment(const char *temporary)
{
    char *own = temporary == NULL ? ds_accel__env_temporary_dir() : NULL;
    char **environment = NULL;

    if (temporary != NULL || own != NULL) {
        environment = ds_accel__command_environment(temporary != NULL ? temporary : own);
    }
    free(own);
    return environment;
}

int32_t ds_accel__commands_run(struct ds_accel__command *commands, size_t count,
                               const struct ds_accel__command_options *options)
{
    struct run run = {.options = options, .wake = -1};
    int32_t status = check(commands, count);

    if (status < 0 || count == 0) {
        return status;
    }
    run.slot_count = options->jobs > 0 ? options->jobs : 1;
    run.slot_count = run.slot_count < count ? run.slot_count : count;
    run.slots = calloc(run.slot_count, sizeof(*run.slots));
    run.polls = calloc(run.slot_count + 1, sizeof(*run.polls));
    run.environment = make_environment(options->temporary);
    if (run.slots == NULL || run.polls == NULL || run.environment == NULL) {
        run.status = DS_ACCEL_ERR_NO_MEMORY;
    } else {
        run.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        run.error = run.wake < 0 ? errno : raise_fd(&run.wake);
        run.status = run.error == 0        ? DS_ACCEL_OK
                     : run.error == ENOMEM ? DS_ACCEL_ERR_NO_MEMORY
                                           : DS_ACCEL_ERR_IO;
    }
    if (run.status >= 0) {
        run_all(&run, commands, count);
    }
    close_fd(&run.wake);
    ds_accel__command_environment_free(run.environment);
    free(run.polls);
    free(run.slots);
    return run.status < 0 ? report_failure(&run) : DS_ACCEL_OK;
}

bool ds_accel__command_succeeded(const struct ds_accel__command *command)
{
    return !command->is_timed_out && !command->is_cancelled && command->wait_status >= 0 &&
           WIFEXITED(command->wait_status) && WEXITSTATUS(command->wait_status) == 0;
}

uint32_t ds_accel__command_jobs(const struct ds_accel__machine *machine, uint64_t bytes_each)
{
    struct ds_accel_host_memory memory = {.struct_size = sizeof(memory)};
    struct ds_accel__cpus cpus;
    uint64_t jobs = 1;

    if (ds_accel__cpus_read(machine, &cpus) >= 0) {
        jobs = cpus.allowed.count;
        ds_accel__cpus_clear(&cpus);
    }
    if (bytes_each > 0) {
        uint64_t fit =
            ds_accel__host_memory(machine, &memory) >= 0 ? memory.available_bytes / bytes_each : 1;

        jobs = fit < jobs ? fit : jobs;
    }
    return jobs > 0 ? (uint32_t)jobs : 1;
}
