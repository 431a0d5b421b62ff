/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The suite in the caller's process: conformance.c runs it, conformance_report.c reports it. */
#ifndef DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H
#define DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H

#include "conformance/conformance.h"

#include <sys/types.h>

struct ds_accel__outcome {
    const char *result; /* NULL: not run */
    uint32_t rule;      /* the rule that it passed or broke */
    uint64_t elapsed_us;
    size_t slot;  /* in flight when its process ended; 0: none */
    char *output; /* the output during it; NULL: none */
    char detail[512];
};

/* The checks on one device. */
struct ds_accel__pass {
    uint32_t device_index;
    bool is_shown;                      /* with the visible devices of the suite */
    struct ds_accel__outcome *outcomes; /* of every check, by position */
};

#define DS_ACCEL__PASS_LIMIT 65u

struct ds_accel__suite {
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
    const char *only;  /* borrowed; NULL: all */
    uint64_t limit_ns; /* of a check */
    char *program;
    size_t check_count;
    struct ds_accel__pass passes[DS_ACCEL__PASS_LIMIT];
    size_t pass_count;
    char variable[128]; /* chooses the devices of a pass with is_shown; "": none does */
    char value[1024];
    char unusable[512]; /* why the plugin cannot be checked; "" if it can */
    int late_count;     /* processes that did not end in time */

    /* Of the running pass. */
    struct ds_accel__pass *pass;
    int broken_stage; /* bringing the plugin up to it ends the process; -1: none */
    struct {
        const char *why; /* why it is no longer called; NULL: it is called */
        uint8_t has_returned;
        uint8_t deaths; /* processes that ended in it */
        uint8_t lates;
    } slots[DS_ACCEL__WITNESS_SLOTS];
    bool steps[DS_ACCEL__WITNESS_STEPS]; /* steps that ended a process, and are left out */

    /* Of the running process. */
    struct ds_accel__page *page;
    int page_fd;
    pid_t pid;
    int channel;
    int output;    /* the plugin's output */
    off_t printed; /* its length up to the last check */
    size_t next;
    bool is_inside; /* the check at next has begun */
    int starting;   /* the stage that the plugin is being brought up to; -1: none */
    uint64_t begin_ns;
    bool has_answered;     /* the survey or trial that the process was started for */
    uint32_t device_count; /* from the survey */
    bool has_trial;        /* the tour has a call of the tried slot */
};

/* conformance_output.c: add the output up to there to an outcome; a sanitizer's report makes the
 * outcome fail. */
void ds_accel__suite_take_output(struct ds_accel__suite *suite, struct ds_accel__outcome *outcome,
                                 off_t end);
/* The last line printed since then, as "; printed: ..."; "" if there is none. */
void ds_accel__suite_last_line(const struct ds_accel__suite *suite, char *text, size_t text_size);
/* A file without a name and with a size limit; -1 with errno. */
int ds_accel__suite_open_output(void);
/* conformance_report.c. suite NULL: only the list of checks. NULL: out of memory. */
json_t *ds_accel__suite_tree(const char *only, const struct ds_accel__suite *suite,
                             size_t *failed_count_out);

#endif
