/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helper processes: declarations that probe.c, probe_helper.c and probe_hear.c share. */
#ifndef DS_ACCEL_HOST_PROBER_H
#define DS_ACCEL_HOST_PROBER_H

#include "base/private.h"
#include "host/message.h"
#include "host/probe.h"

#include <signal.h>

#define DS_ACCEL__OUTPUT_KEPT_BYTES 2048u     /* of each stream, for explain */
#define DS_ACCEL__KILL_GRACE_NS 1000000000ull /* from SIGKILL until the wait ends */

/* Sources of output: the plugin's process, which has pipes of its own, and the helper. */
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
    enum ds_accel__reason_id reason; /* the first that is not tolerated; NONE: none */
    char detail[256];
    char tolerated[256]; /* codes, for the gate's evidence */
    bool has_more;       /* detail names further codes */
    bool has_process;    /* leaves_process is among them */
};

/* The result of reading a channel. */
enum ds_accel__heard {
    DS_ACCEL__HEARD_SOMETHING,
    DS_ACCEL__HEARD_GARBAGE, /* not a message */
    DS_ACCEL__HEARD_FORGERY
};

struct ds_accel__helper {
    pid_t pid; /* 0: none */
    int pidfd;
    int channel; /* to the supervisor; -1: closed */
    struct ds_accel__captured output[DS_ACCEL__OUTPUT_COUNT];
    struct ds_accel__message_reader from_supervisor;
    struct ds_accel__message_reader from_child;
    uint64_t token;
    uint32_t sequence;
    uint32_t number; /* of the last ASK */
    bool has_said_hello;
    struct ds_accel__probe_hello hello;
    bool is_used;     /* it has probed another candidate before */
    bool is_deaf;     /* it does not read its requests */
    bool is_ending;   /* killed or dismissed, not yet reaped */
    uint64_t kill_ns; /* until then a dismissed helper may end by itself */
    /* About the candidate that is being probed. */
    struct ds_accel__candidate *candidate; /* NULL: idle */
    int answers;                           /* from the process that probes it */
    uint32_t stage;                        /* a gate */
    size_t logged_bytes;
    bool has_result;
    bool has_end;    /* END was received */
    bool has_ended;  /* its process has ended: see ended */
    bool is_stopped; /* a STOP was sent */
    bool is_hung;    /* it reached its deadline */
    bool called_exit;
    int32_t signal; /* that would end the child, by its own message; 0: none */
    uint64_t address;
    enum ds_accel__heard nonsense; /* an invalid message, or SOMETHING */
    struct ds_accel__probe_ended ended;
    struct ds_accel__conduct conduct;
    uint64_t start_ns;
    uint64_t deadline_ns;
};

struct ds_accel__prober {
    char *program;
    /* Start helpers without a pid namespace: a plugin failed in one, perhaps because of it. */
    bool is_outside;
    size_t width;
    struct ds_accel__helper helpers[]; /* width elements */
};

/* probe_settings.c */

#define DS_ACCEL__PROBE_WIDTH_LIMIT 64 /* helpers at a time */
long long ds_accel__probe_setting(const ds_accel_t *context, const char *key, long long otherwise);

/* probe_helper.c: starting helpers, ending them and sending requests. */

/* Close *fd and set it to -1; do nothing if it is -1 already. */
void ds_accel__probe_close(int *fd);

/*
 * Move a descriptor above the numbers that the child uses; false with errno. This includes the ends
 * that stay in this process: if the caller has closed stdout, text that it prints nevertheless must
 * not get into the library's channel.
 */
DS_ACCEL__PRIVATE bool ds_accel__helper_raise(int *fd);
#define DS_ACCEL__HELPER_DESCRIPTORS 3 /* stdout, stderr, channel */

/*
 * Start ds-accel-probe in a process group of its own, with an empty stdin and count descriptors
 * (all raised) as stdout and the following numbers; it inherits no other descriptor. argument:
 * NULL, or "--conformance". Returns an errno.
 */
DS_ACCEL__PRIVATE int ds_accel__helper_spawn(pid_t *pid_out, const char *program,
                                             const char *containment, const char *argument,
                                             const int *descriptors, int count);
/*
 * Set finding to the reason why a helper could not be started or a process not be forked;
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__helper_judge_start(const char *program, int error,
                                     struct ds_accel__finding *finding);
/* The configured containment of the processes that plugins start. */
DS_ACCEL__PRIVATE const char *ds_accel__probe_containment(const ds_accel_t *context);

int32_t ds_accel__prober_make(ds_accel_t *context);
/*
 * Start a helper that does not run yet, without a candidate; if that fails, it still does not run.
 */
void ds_accel__helper_begin(ds_accel_t *context, struct ds_accel__helper *helper);
/* Send a helper its next candidate; the helper is started first if it does not run. */
int32_t ds_accel__helper_ask(ds_accel_t *context, struct ds_accel__helper *helper,
                             struct ds_accel__candidate *candidate);
/* Have the supervisor end the process that probes the candidate. */
void ds_accel__helper_stop(struct ds_accel__helper *helper, bool is_asked_first);
/* Begin to end a helper without waiting. */
void ds_accel__helper_dismiss(struct ds_accel__helper *helper);
/* Wait until it has ended, without reaping it; false if it did not end within the limit. */
bool ds_accel__helper_wait(const struct ds_accel__helper *helper, uint64_t limit_ns);
/*
 * End a helper with all of its process group, and reap it. False: its exit status is unknown,
 * because other code of the program reaped it or because SIGKILL did not end it.
 */
bool ds_accel__helper_end(ds_accel_t *context, struct ds_accel__helper *helper, siginfo_t *info);
/* Reap abandoned helpers that have ended since. */
void ds_accel__helpers_reap(void);

/* probe_hear.c: evaluating messages and ends of helpers. */

/* Read the output that was printed so far. */
void ds_accel__helper_take_output(struct ds_accel__captured *capture);
/* Read both channels, with at most reads read calls for each. ERR_NO_MEMORY. */
int32_t ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper, int reads);
/* Evaluate a message of the child, whose contents are not trusted. */
enum ds_accel__heard ds_accel__helper_take_message(ds_accel_t *context,
                                                   struct ds_accel__helper *helper,
                                                   const struct ds_accel__message *message);
/* Evaluate a message of the supervisor. False: the message is invalid. */
bool ds_accel__helper_take_supervisor_message(const ds_accel_t *context,
                                              struct ds_accel__helper *helper,
                                              const struct ds_accel__message *message);
/* Enter the plugin's conduct into the candidate's gates. */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper);
/* The process that probed the candidate has ended: judge its result, or how it ended. */
int32_t ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper);
/* The helper itself ended: the candidate is judged for that, or is probed once more. */
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper);

#endif
