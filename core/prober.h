/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Helpers as probe.c, probe_helper.c and probe_hear.c share them. */
#ifndef DS_ACCEL_CORE_PROBER_H
#define DS_ACCEL_CORE_PROBER_H

#include "internal.h"

#define DS_ACCEL__OUTPUT_KEPT_BYTES 2048u     /* of each stream, for explain */
#define DS_ACCEL__KILL_GRACE_NS 1000000000ull /* from SIGKILL to giving up on it */

struct ds_accel__capture {
    int fd;
    uint64_t total_bytes;
    size_t kept_bytes;
    char kept[DS_ACCEL__OUTPUT_KEPT_BYTES];
};

struct ds_accel__conduct {
    const char *code; /* NULL: none. The first that is not tolerated. */
    char detail[256];
    char tolerated[256]; /* codes, for the gate's evidence */
    bool has_more;       /* detail names further codes */
    bool is_tainted;     /* the helper's process is not as it was */
};

struct ds_accel__helper {
    pid_t pid; /* 0: none */
    int pidfd;
    int channel; /* -1: it has reached its end */
    struct ds_accel__capture output[2];
    struct ds_accel__frame_reader reader;
    uint64_t token;
    uint32_t sequence;
    bool has_said_hello;
    bool is_used;     /* it has answered for another candidate before */
    bool is_deaf;     /* it does not read what it is told */
    bool is_ending;   /* killed or dismissed, not yet reaped */
    uint64_t kill_ns; /* until then a dismissed one may end by itself */
    /* Of the candidate that is being asked. */
    struct ds_accel__candidate *candidate; /* NULL: idle */
    uint32_t stage;                        /* a gate */
    size_t logged_bytes;
    bool has_result;
    bool called_exit;
    int32_t signal; /* that it said would end it; 0: none */
    uint64_t address;
    struct ds_accel__conduct conduct;
    uint64_t start_ns;
    uint64_t deadline_ns;
};

struct ds_accel__prober {
    char *program;
    size_t width;
    struct ds_accel__helper helpers[]; /* width of them */
};

/* What came of a helper's channel. */
enum ds_accel__heard {
    DS_ACCEL__HEARD_SOMETHING,
    DS_ACCEL__HEARD_END,     /* the candidate is done */
    DS_ACCEL__HEARD_GARBAGE, /* not from our end */
    DS_ACCEL__HEARD_FORGERY
};

/* probe.c */

long long ds_accel__probe_setting(const ds_accel_t *context, const char *key, long long otherwise);
/* -1 from then on; nothing if it is that already. */
void ds_accel__probe_close(int *fd);

/* probe_helper.c: starting, ending and telling them. */

/*
 * Move a descriptor out of the way of those that the child gets; false with errno. The ends that
 * stay here as well: where the caller has closed stdout, what it prints all the same must not get
 * into our channel.
 */
bool ds_accel__helper_raise(int *fd);
/*
 * Start ds-accel-probe in a process group of its own, with an empty stdin, these descriptors (all
 * raised) for stdout, stderr and channel, and nothing else of this process's. An errno.
 */
int ds_accel__helper_spawn(pid_t *pid_out, const char *program, char *argument,
                           const int descriptors[3]);

int32_t ds_accel__prober_make(ds_accel_t *context);
/* Give a helper its next candidate; a helper is started if there is none in this place. */
int32_t ds_accel__helper_ask(ds_accel_t *context, struct ds_accel__helper *helper,
                             struct ds_accel__candidate *candidate);
/* Begin its end; it may take its time. */
void ds_accel__helper_dismiss(struct ds_accel__helper *helper);
/* Wait until it has ended, not reaping it; false if it did not in time. */
bool ds_accel__helper_wait(const struct ds_accel__helper *helper, uint64_t limit_ns);
/* End it, with all of its group, and reap it. is_hung: after SIGTERM and a moment. False: how it
 * ended is not known, as somebody else has reaped it, or even SIGKILL did not end it. */
bool ds_accel__helper_end(ds_accel_t *context, struct ds_accel__helper *helper, bool is_hung,
                          siginfo_t *info);
/* Those that were left behind, if they have ended since. */
void ds_accel__helpers_reap(void);

/* probe_hear.c: what they say and how they end, and what that means. */

/* What it has printed so far. */
void ds_accel__helper_take_output(struct ds_accel__capture *capture);
/* Read what there is, with at most that many reads. *status_out: ERR_NO_MEMORY. */
enum ds_accel__heard ds_accel__helper_hear(ds_accel_t *context, struct ds_accel__helper *helper,
                                           int reads, int32_t *status_out);
/* One frame, which may say anything. */
enum ds_accel__heard ds_accel__helper_take_frame(ds_accel_t *context,
                                                 struct ds_accel__helper *helper,
                                                 const struct ds_accel__frame *frame);
/* What it did to its process, into the candidate's gates. */
void ds_accel__helper_judge_conduct(struct ds_accel__helper *helper);
/* It said END: the answer stands. */
void ds_accel__helper_finish(ds_accel_t *context, struct ds_accel__helper *helper);
/* The candidate took its helper along, or is to be asked once more. */
int32_t ds_accel__helper_lose(ds_accel_t *context, struct ds_accel__helper *helper,
                              enum ds_accel__heard heard, bool is_hung);

#endif
