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

/* probe_here.c: in this process. Load the module and take its table; then ask. */
int32_t ds_accel__load_here(struct ds_accel__candidate *candidate);
int32_t ds_accel__probe_here(struct ds_accel__candidate *candidate);

enum ds_accel__rule_result {
    DS_ACCEL__RULE_SKIPPED,
    DS_ACCEL__RULE_PASSED,
    DS_ACCEL__RULE_FAILED
};

typedef void (*ds_accel__rule_t)(void *user_data, uint32_t number, uint32_t result,
                                 const char *detail);

/* Who wants to know what a helper finds out about a plugin, besides its verdict. */
struct ds_accel__lint_sink {
    ds_accel__rule_t judge;
    /* tolerated or not; is_started: seen once it had been started, not by its probe alone */
    void (*conduct)(void *user_data, bool is_started, enum ds_accel__reason_id reason,
                    const char *detail);
    void *user_data;
};

/* probe_lint.c: in this process. The rules that need the plugin's code; ERR_NO_MEMORY. */
DS_ACCEL__PRIVATE int32_t ds_accel__probe_lint(struct ds_accel__candidate *candidate,
                                               ds_accel__rule_t judge_rule, void *user_data);

/* probe.c: where the configuration says, by default in a process of its own (probe_serve.c). */

struct ds_accel__probe_setup {
    uint64_t token;
    int64_t asker; /* the process that wants to know */
    uint32_t ignores_env;
    uint32_t reserved;
};

struct ds_accel__probe_hello {
    uint32_t containment; /* enum ds_accel__containment */
    uint32_t has_user_namespace;
};

struct ds_accel__probe_ask {
    uint64_t token; /* of the answers to this one */
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

/* The process that asked a plugin has ended, and so has everything that it left. */
struct ds_accel__probe_ended {
    uint32_t number; /* of the ASK */
    int32_t error;   /* errno: there was no process, since none could be forked */
    int32_t code;    /* as of siginfo_t */
    int32_t status;
    uint32_t was_stopped; /* as a STOP said */
    uint32_t has_left;    /* it had started what did not end with it */
    uint32_t is_stuck;    /* something does not end, even by SIGKILL */
    uint32_t is_changed;  /* the supervisor is not as it was, and so would its next child be */
};

/* All of the program ds-accel-probe; conformance: its part that runs the checks of the suite. */
int ds_accel__probe_main(int argc, char **argv, int (*conformance)(void));
/* Where that program is; new string, NULL: no memory. */
DS_ACCEL__PRIVATE char *ds_accel__probe_program(void);

#define DS_ACCEL__PROBE_CHANNEL 3      /* the supervisor's descriptor for messages */
#define DS_ACCEL__PROBE_ANSWERS 4      /* that of its child */
#define DS_ACCEL__PROBE_PASSED 3       /* descriptors that ASK brings: stdout, stderr, answers */
#define DS_ACCEL__PROBE_EXIT_CLOSED 97 /* its exit code when that one is gone */
#define DS_ACCEL__PROBE_EXIT_FAILED 98 /* and when it cannot go on, through no plugin's fault */

/*
 * Take candidates that passed the gates before load through load, entry and probe, as many at a
 * time as probe.parallel says: fills gates, verdict and state of each, and reorders the array.
 * Those behind one that is available may be left without a verdict if all of them are asked ahead.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__probe_all(ds_accel_t *context,
                                              struct ds_accel__candidate **candidates,
                                              size_t count);
DS_ACCEL__PRIVATE bool ds_accel__probe_is_isolated(const ds_accel_t *context);
/* How many are asked at a time. */
size_t ds_accel__probe_width(const ds_accel_t *context);
/* Start a helper while there is still much to read before it is asked. A failure is that one's. */
void ds_accel__probe_begin(ds_accel_t *context);
/* End the helper processes; reap them. Split, so that there is time to do something useful. */
void ds_accel__probe_release(ds_accel_t *context);
DS_ACCEL__PRIVATE void ds_accel__probe_finish(ds_accel_t *context);
/* Record in a candidate what it did to its process. True: it is tolerated. */
DS_ACCEL__PRIVATE bool ds_accel__conduct_is_tolerated(const struct ds_accel__candidate *candidate,
                                                      enum ds_accel__reason_id reason);

#endif
