/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helper processes: declarations that the files probe*.c share; conformance.c uses some of them. */
#ifndef DS_ACCEL_HOST_PROBER_H
#define DS_ACCEL_HOST_PROBER_H

#include "base/private.h"
#include "host/message.h"
#include "host/probe.h"

#include <signal.h>

#define DS_ACCEL__OUTPUT_KEPT_BYTES 2048u     /* bytes stored of each stream, for explain */
#define DS_ACCEL__KILL_GRACE_NS 1000000000ull /* maximum wait for an exit after SIGKILL */

/*
 * Sources of output: stdout and stderr of the plugin's process, each with its own pipe, and the
 * helper.
 */
enum ds_accel__output {
    DS_ACCEL__OUTPUT_STDOUT,
    DS_ACCEL__OUTPUT_STDERR,
    DS_ACCEL__OUTPUT_HELPER,
    DS_ACCEL__OUTPUT_COUNT
};

struct ds_accel__captured {
    int fd;
    uint64_t total_bytes;
    size_t kept_bytes;
    char kept[DS_ACCEL__OUTPUT_KEPT_BYTES];
};

struct ds_accel__conduct {
    enum ds_accel__reason_id reason; /* first kind that is not tolerated; NONE: no such kind */
    char detail[256];
    char tolerated[256]; /* codes of tolerated kinds, for the evidence */
    bool has_more;       /* detail contains further codes */
    bool has_process;    /* leaves_process was reported */
};

/* The result of reading a channel. */
enum ds_accel__heard {
    DS_ACCEL__HEARD_SOMETHING,
    DS_ACCEL__HEARD_GARBAGE, /* received bytes that are no message */
    DS_ACCEL__HEARD_FORGERY
};

struct ds_accel__helper {
    pid_t pid; /* 0: no process */
    int pidfd;
    int channel; /* socket to the supervisor; -1: closed */
    struct ds_accel__captured output[DS_ACCEL__OUTPUT_COUNT];
    struct ds_accel__message_reader from_supervisor;
    struct ds_accel__message_reader from_child;
    uint64_t token;
    uint32_t sequence;
    uint32_t number; /* number of the last ASK */
    bool has_said_hello;
    struct ds_accel__probe_hello hello;
    bool is_used;     /* has probed another candidate before */
    bool is_deaf;     /* does not read its requests */
    bool is_ending;   /* killed or dismissed, not yet reaped */
    uint64_t kill_ns; /* time until which a dismissed helper may exit by itself */
    /* State of the candidate that is being probed. */
    struct ds_accel__candidate *candidate; /* NULL: idle */
    int answers;                           /* channel from the process that probes the candidate */
    uint32_t stage;                        /* an enum ds_accel__gate */
    size_t logged_bytes;
    bool has_result;
    bool has_end;    /* END was received */
    bool has_ended;  /* ENDED was received: the process that probes has exited; see ended */
    bool is_stopped; /* a STOP was sent */
    bool is_hung;    /* the deadline has passed */
    bool called_exit;
    int32_t signal; /* signal that the child reported before it was killed; 0: none */
    uint64_t address;
    enum ds_accel__heard nonsense; /* HEARD_SOMETHING, or the kind of an invalid message */
    struct ds_accel__probe_ended ended;
    struct ds_accel__conduct conduct;
    uint64_t start_ns;
    uint64_t deadline_ns;
};

struct ds_accel__prober {
    char *program;
    /*
     * True after a plugin failed in a pid namespace, which may be the cause: helpers are then
     * started without one.
     */
    bool is_outside;
    size_t width;
    struct ds_accel__helper helpers[]; /* width elements */
};

/* Functions of probe_settings.c. */

#define DS_ACCEL__PROBE_WIDTH_LIMIT 64 /* maximum number of helpers at a time */
long long ds_accel__probe_setting(const ds_accel_t *context, const char *key, long long otherwise);

/* Functions of probe_helper.c: start helpers, stop them, and send requests. */

/* Close *fd and set it to -1. Do nothing if it is already -1. */
void ds_accel__probe_close(int *fd);

/*
 * Move a descriptor above the numbers that the child uses; false with errno. Also called for the
 * ends that stay in this process: if the caller has closed stdout, text that it prints nevertheless
 * must not get into the library's channel.
 */
DS_ACCEL__PRIVATE bool ds_accel__helper_raise(int *fd);
#define DS_ACCEL__HELPER_DESCRIPTORS 3 /* stdout, stderr, channel */

/*
 * Start ds-accel-probe in its own process group, with an empty stdin, and with count descriptors
 * (all moved by ds_accel__helper_raise()) as stdout and the following numbers. It inherits no other
 * descriptor. containment: name of the containment. argument: NULL, or "--conformance". Returns 0
 * or an errno.
 */
DS_ACCEL__PRIVATE int ds_accel__helper_spawn(pid_t *pid_out, const char *program,
                                             const char *containment, const char *argument,
                                             const int *descriptors, int count);
/*
 * Set finding to the reason why a helper could not be started, why its channels could not be
 * opened, or why it could not fork. error is the errno. ENOMEM: fail with ERR_NO_MEMORY, without a
 * finding.
 */
int32_t ds_accel__helper_judge_start(const char *program, int error,
                                     struct ds_accel__finding *finding);
/* Return the configured containment of the processes that plugins start. */
DS_ACCEL__PRIVATE const char *ds_accel__probe_containment(const ds_accel_t *context);

int32_t ds_accel__prober_make(ds_accel_t *context);
/*
 * Start a helper that is not running, without a candidate, unless few descriptors are left. A
 * failure is ignored: the helper is then still not running.
 */
void ds_accel__helper_begin(ds_accel_t *context, struct ds_accel__helper *helper);
/*
 * Send a helper its next candidate. Start the helper first if it is not running. If the helper
 * cannot be started or does not read the request, the candidate fails at gate load. ERR_NO_MEMORY.
 */
int32_t ds_accel__helper_ask(ds_accel_t *context, struct ds_accel__helper *helper,
                             struct ds_accel__candidate *candidate);
/*
 * Request that the supervisor stop the process that probes the candidate: with SIGKILL, or if
 * is_asked_first is true, first with SIGTERM.
 */
void ds_accel__helper_stop(struct ds_accel__helper *helper, bool is_asked_first);
/* Begin to stop a helper, without waiting. */
void ds_accel__helper_dismiss(struct ds_accel__helper *helper);
/* Wait until a helper has exited, without reaping it. False if it did not exit within the limit. */
bool ds_accel__helper_wait(const struct ds_accel__helper *helper, uint64_t limit_ns);
/*
 * Stop a helper with its whole process group, and reap it. False if its exit status is unknown,
 * because other code of the program reaped it, because SIGKILL did not terminate it, or because a
 * debugger has not reaped it.
 */
bool ds_accel__helper_end(ds_accel_t *context, struct ds_accel__helper *helper, siginfo_t *info);
/* Reap abandoned helpers that have exited. */
void ds_accel__helpers_reap(void);

/* Functions of probe_hear.c: evaluate the messages and exits of helpers. */

/* Read the output that was printed so far, without waiting for more. */
void ds_accel__helper_take_output(struct ds_accel__captured *capture);
/* Read both channels, with at most reads calls of recv() for each. ERR_NO_MEMORY. */
int32_t ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper, int reads);
/* Evaluate a message of the child, whose contents are not trusted. */
enum ds_accel__heard ds_accel__helper_take_message(ds_accel_t *context,
                                                   struct ds_accel__helper *helper,
                                                   const struct ds_accel__message *message);
/* Evaluate a message of the supervisor. False if the message is invalid. */
bool ds_accel__helper_take_supervisor_message(const ds_accel_t *context,
                                              struct ds_accel__helper *helper,
                                              const struct ds_accel__message *message);
/* If the candidate is AVAILABLE, record the plugin's conduct in the candidate's gate conduct. */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper);
/*
 * Judge the result of the process that probed the candidate, or, without a result, how the process
 * terminated. Called after the process has exited. If a pid namespace may be the cause of a
 * negative result, send the candidate to a new helper without a namespace instead.
 */
int32_t ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper);
/*
 * Called after the helper itself has terminated, without a result. Rejects the candidate, or sends
 * it to a new helper if an earlier candidate may be the cause.
 */
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper);

#endif
