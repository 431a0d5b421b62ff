/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helpers as probe.c, probe_helper.c and probe_hear.c share them. */
#ifndef DS_ACCEL_HOST_PROBER_H
#define DS_ACCEL_HOST_PROBER_H

#include "base/private.h"
#include "host/message.h"
#include "host/probe.h"

#include <signal.h>

#define DS_ACCEL__OUTPUT_KEPT_BYTES 2048u     /* of each stream, for explain */
#define DS_ACCEL__KILL_GRACE_NS 1000000000ull /* from SIGKILL to giving up on it */

/* What is printed: by the plugin's process, which has pipes of its own, and by the helper. */
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
    enum ds_accel__reason_id reason; /* NONE: none. The first that is not tolerated. */
    char detail[256];
    char tolerated[256]; /* codes, for the gate's evidence */
    bool has_more;       /* detail names further codes */
    bool has_process;    /* leaves_process is among them */
};

/* What came of a channel. */
enum ds_accel__heard {
    DS_ACCEL__HEARD_SOMETHING,
    DS_ACCEL__HEARD_GARBAGE, /* not from our end */
    DS_ACCEL__HEARD_FORGERY
};

struct ds_accel__helper {
    pid_t pid; /* 0: none */
    int pidfd;
    int channel; /* to the supervisor; -1: it has reached its end */
    struct ds_accel__captured output[DS_ACCEL__OUTPUT_COUNT];
    struct ds_accel__message_reader from_supervisor;
    struct ds_accel__message_reader from_child;
    uint64_t token;
    uint32_t sequence;
    uint32_t number; /* of the last ASK */
    bool has_said_hello;
    struct ds_accel__probe_hello hello;
    bool is_used;     /* it has asked another candidate before */
    bool is_deaf;     /* it does not read what it is told */
    bool is_ending;   /* killed or dismissed, not yet reaped */
    uint64_t kill_ns; /* until then a dismissed one may end by itself */
    /* Of the candidate that is being asked. */
    struct ds_accel__candidate *candidate; /* NULL: idle */
    int answers;                           /* from the process that asks it */
    uint32_t stage;                        /* a gate */
    size_t logged_bytes;
    bool has_result;
    bool has_end;    /* it said END */
    bool has_ended;  /* its process has: ended says how */
    bool is_stopped; /* a STOP was sent */
    bool is_hung;    /* at its deadline */
    bool called_exit;
    int32_t signal; /* that it said would end it; 0: none */
    uint64_t address;
    enum ds_accel__heard nonsense; /* what it said last that cannot be believed, or SOMETHING */
    struct ds_accel__probe_ended ended;
    struct ds_accel__conduct conduct;
    uint64_t start_ns;
    uint64_t deadline_ns;
};

struct ds_accel__prober {
    char *program;
    bool is_outside; /* no namespaces any more: one was in a plugin's way, or may have been */
    size_t width;
    struct ds_accel__helper helpers[]; /* width of them */
};

/* probe_settings.c */

#define DS_ACCEL__PROBE_WIDTH_LIMIT 64 /* helpers at a time */
long long ds_accel__probe_setting(const ds_accel_t *context, const char *key, long long otherwise);

/* probe_helper.c: starting, ending and telling them. */

/* -1 from then on; nothing if it is that already. */
void ds_accel__probe_close(int *fd);

/*
 * Move a descriptor out of the way of those that the child gets; false with errno. The ends that
 * stay here as well: where the caller has closed stdout, what it prints all the same must not get
 * into our channel.
 */
DS_ACCEL__PRIVATE bool ds_accel__helper_raise(int *fd);
#define DS_ACCEL__HELPER_DESCRIPTORS 3 /* stdout, stderr, channel */

/*
 * Start ds-accel-probe in a process group of its own, with an empty stdin, count descriptors (all
 * raised) for stdout and those behind it, and nothing else of this process's. argument: NULL, or
 * "--conformance". An errno.
 */
DS_ACCEL__PRIVATE int ds_accel__helper_spawn(pid_t *pid_out, const char *program,
                                             const char *containment, const char *argument,
                                             const int *descriptors, int count);
/* Why it could not be started, or a process not be forked; ERR_NO_MEMORY. */
int32_t ds_accel__helper_judge_start(const char *program, int error,
                                     struct ds_accel__finding *finding);
/* What the configuration says is to contain what plugins start. */
DS_ACCEL__PRIVATE const char *ds_accel__probe_containment(const ds_accel_t *context);

int32_t ds_accel__prober_make(ds_accel_t *context);
/* Start one that is not there yet and has nobody to ask; if that fails, it is still not there. */
void ds_accel__helper_begin(ds_accel_t *context, struct ds_accel__helper *helper);
/* Give a helper its next candidate; a helper is started if there is none in this place. */
int32_t ds_accel__helper_ask(ds_accel_t *context, struct ds_accel__helper *helper,
                             struct ds_accel__candidate *candidate);
/* Have the supervisor end the process that asks the candidate. */
void ds_accel__helper_stop(struct ds_accel__helper *helper, bool is_asked_first);
/* Begin its end; it may take its time. */
void ds_accel__helper_dismiss(struct ds_accel__helper *helper);
/* Wait until it has ended, not reaping it; false if it did not in time. */
bool ds_accel__helper_wait(const struct ds_accel__helper *helper, uint64_t limit_ns);
/* End it, with all of its group, and reap it. False: how it ended is not known, as somebody else
 * has reaped it, or even SIGKILL did not end it. */
bool ds_accel__helper_end(ds_accel_t *context, struct ds_accel__helper *helper, siginfo_t *info);
/* Those that were left behind, if they have ended since. */
void ds_accel__helpers_reap(void);

/* probe_hear.c: what they say and how they end, and what that means. */

/* What it has printed so far. */
void ds_accel__helper_take_output(struct ds_accel__captured *capture);
/* Read what there is of both, with at most that many reads of each. ERR_NO_MEMORY. */
int32_t ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper, int reads);
/* One message of the child's, which may say anything. */
enum ds_accel__heard ds_accel__helper_take_message(ds_accel_t *context,
                                                   struct ds_accel__helper *helper,
                                                   const struct ds_accel__message *message);
/* One of the supervisor's. False: it says what it should not. */
bool ds_accel__helper_take_supervisor_message(const ds_accel_t *context,
                                              struct ds_accel__helper *helper,
                                              const struct ds_accel__message *message);
/* What it did to its process, into the candidate's gates. */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper);
/* The process that asked the candidate has ended: judge what it said, or how it ended. */
int32_t ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper);
/* The helper itself is lost: the candidate has ended it, or is asked once more. */
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper);

#endif
