/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The host table (host.c) and probing (probe*.c). */
#ifndef DS_ACCEL_HOST_PROBE_H
#define DS_ACCEL_HOST_PROBE_H

#include "base/private.h"
#include "base/reason.h"
#include "host/registry.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

void ds_accel__host_fill(struct ds_accel__host *host, ds_accel_t *context,
                         struct ds_accel__candidate *candidate);

/*
 * load_here loads the plugin into this process and copies its table; probe_here also probes the
 * plugin (probe_here.c).
 */
int32_t ds_accel__load_here(struct ds_accel__candidate *candidate);
int32_t ds_accel__probe_here(struct ds_accel__candidate *candidate);

enum ds_accel__rule_result {
    DS_ACCEL__RULE_SKIPPED,
    DS_ACCEL__RULE_PASSED,
    DS_ACCEL__RULE_FAILED
};

typedef void (*ds_accel__rule_t)(void *user_data, uint32_t number, uint32_t result,
                                 const char *detail);

/* A receiver of what a helper reports about a plugin besides its verdict. */
struct ds_accel__lint_sink {
    ds_accel__rule_t judge;
    /*
     * Receives conduct, tolerated or not. is_started: it was found after the start of the plugin
     * was tried, not already after its probe.
     */
    void (*conduct)(void *user_data, bool is_started, enum ds_accel__reason_id reason,
                    const char *detail);
    void *user_data;
};

/* Check in this process the rules that need the plugin's code (probe_lint.c). ERR_NO_MEMORY. */
DS_ACCEL__PRIVATE int32_t ds_accel__probe_lint(struct ds_accel__candidate *candidate,
                                               ds_accel__rule_t judge_rule, void *user_data);

/*
 * Probes in a separate process, the default of the configuration: messages and functions of probe.c
 * and probe_serve.c.
 */

struct ds_accel__probe_setup {
    uint64_t token;
    int64_t asker; /* process that requests the probe */
    uint32_t ignores_env;
    uint32_t reserved;
};

struct ds_accel__probe_hello {
    uint32_t containment; /* enum ds_accel__containment */
    uint32_t has_user_namespace;
};

struct ds_accel__probe_ask {
    uint64_t token; /* token of the child's replies to this ASK */
    uint32_t number;
    uint32_t reserved;
    uint64_t note_features;
    uint32_t log_level;
    uint32_t is_lint;
    struct stat file;
};

struct ds_accel__probe_result {
    uint32_t state;
    uint32_t stage;
    uint32_t gates[DS_ACCEL__GATE_COUNT];
    uint64_t optional_features;
    struct ds_accel_verdict verdict;
    struct ds_accel__start start;
};

/*
 * Sent when the process that probed a plugin, and all processes that it left, have exited; when one
 * of them does not exit (is_stuck); or when no process could be forked (error).
 */
struct ds_accel__probe_ended {
    uint32_t number; /* number of the ASK */
    int32_t error;   /* errno if no process could be forked; 0 otherwise */
    int32_t code;    /* si_code of siginfo_t */
    int32_t status;
    uint32_t was_stopped; /* stopped because of a STOP */
    uint32_t has_left;    /* it had started processes that outlived it */
    uint32_t is_stuck;    /* a process does not exit, even by SIGKILL */
    uint32_t is_changed;  /* the supervisor's state changed; its next child would inherit that */
};

/* The main function of ds-accel-probe. conformance runs the checks of the conformance suite. */
int ds_accel__probe_main(int argc, char **argv, int (*conformance)(void));
/* Return the path of ds-accel-probe as a new string; NULL if memory is exhausted. */
DS_ACCEL__PRIVATE char *ds_accel__probe_program(void);

#define DS_ACCEL__PROBE_CHANNEL 3      /* the supervisor's descriptor for messages */
#define DS_ACCEL__PROBE_ANSWERS 4      /* the child's descriptor for messages */
#define DS_ACCEL__PROBE_PASSED 3       /* number of descriptors in ASK: stdout, stderr, answers */
#define DS_ACCEL__PROBE_EXIT_CLOSED 97 /* the child's exit code if its channel is closed */
#define DS_ACCEL__PROBE_EXIT_FAILED 98 /* its exit code for a failure not caused by the plugin */

/*
 * Probe candidates that passed the gates before load, at most probe.parallel at a time: check the
 * gates load, entry and probe, and, in a helper, start and conduct. Sets gates, verdict and state
 * of each, and reorders the array. Once a candidate is available, the candidates after it may be
 * left without a verdict, if each of those is only evaluated ahead of its turn.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__probe_all(ds_accel_t *context,
                                              struct ds_accel__candidate **candidates,
                                              size_t count);
DS_ACCEL__PRIVATE bool ds_accel__probe_is_isolated(const ds_accel_t *context);
/* Return the number of candidates that are probed at a time. */
size_t ds_accel__probe_width(const ds_accel_t *context);
/*
 * Start a helper early, in parallel with the reads before its first request. A failure is reported
 * by that request.
 */
void ds_accel__probe_begin(ds_accel_t *context);
/*
 * release begins to stop the helper processes; finish waits until they have exited, and reaps them.
 * The caller can do other work between the two calls.
 */
void ds_accel__probe_release(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__probe_finish(ds_accel_t *context);
/* True if the configuration tolerates this conduct of the candidate's plugin. */
DS_ACCEL__PRIVATE bool ds_accel__conduct_is_tolerated(const struct ds_accel__candidate *candidate,
                                                      enum ds_accel__reason_id reason);

#endif
