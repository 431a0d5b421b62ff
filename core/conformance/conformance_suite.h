/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* State of the suite in the caller's process: conformance.c runs the suite, conformance_report.c
 * makes the report. */
#ifndef DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H
#define DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H

#include "conformance/conformance.h"

#include <sys/types.h>

struct ds_accel__outcome {
    const char *result; /* NULL: not run */
    /* number of the DSA-P rule that the check tests, or that the plugin broke */
    uint32_t rule;
    uint64_t elapsed_us;
    size_t slot;  /* slot that was being called when the process terminated; 0: none */
    char *output; /* output during the check; NULL: none */
    char detail[512];
};

/* The checks on one device. */
struct ds_accel__pass {
    uint32_t device_index;
    /* the process runs with `variable` set to `value`, which selects and orders its devices */
    bool is_shown;
    struct ds_accel__outcome *outcomes; /* outcomes of all checks, by position */
};

#define DS_ACCEL__PASS_LIMIT 65u

struct ds_accel__suite {
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
    const char *only;  /* borrowed; NULL: all */
    uint64_t limit_ns; /* time limit of a check */
    char *program;
    size_t check_count;
    struct ds_accel__pass passes[DS_ACCEL__PASS_LIMIT];
    size_t pass_count;
    /* environment variable that selects the devices, and its value, for passes with is_shown;
     * "": none */
    char variable[128];
    char value[1024];
    char unusable[512]; /* why the plugin cannot be checked; "" if it can */
    int late_count;     /* processes that exceeded the time limit */

    /* State of the running pass. */
    struct ds_accel__pass *pass;
    /* stage that the plugin cannot be brought up to without terminating the process; -1: none */
    int broken_stage;
    struct {
        const char *why; /* why the slot is no longer called; NULL: it is called */
        uint8_t has_returned;
        uint8_t deaths; /* processes that terminated or hung in the slot */
        uint8_t lates;
    } slots[DS_ACCEL__WITNESS_SLOTS];
    bool steps[DS_ACCEL__WITNESS_STEPS]; /* steps that terminated a process and are left out */

    /* State of the running process. */
    struct ds_accel__page *page;
    int page_fd;
    pid_t pid;
    int channel;
    int output;    /* descriptor of the file with the plugin's output */
    off_t printed; /* length of the output at the end of the last check */
    size_t next;
    bool is_inside; /* the check at next has begun */
    int starting;   /* the stage that the plugin is being brought up to; -1: none */
    uint64_t begin_ns;
    bool has_answered;     /* the process has reported the result of its survey or trial */
    uint32_t device_count; /* number of devices, from the survey */
    bool has_trial;        /* from a trial: the tour has a call of the slot */
};

/* conformance_output.c: move the output up to the offset end to an outcome. If that output contains
 * a sanitizer's report, the outcome is set to failed. */
void ds_accel__suite_take_output(struct ds_accel__suite *suite, struct ds_accel__outcome *outcome,
                                 off_t end);
/* Write the last line printed after the last check, as "; printed: ..."; "" if there is none. */
void ds_accel__suite_last_line(const struct ds_accel__suite *suite, char *text, size_t text_size);
/* Create an anonymous file with a size limit; -1 with errno on failure. */
int ds_accel__suite_open_output(void);
/* conformance_report.c: make the report's tree; NULL if out of memory. If suite is NULL, the tree
 * only lists the checks. */
json_t *ds_accel__suite_tree(const char *only, const struct ds_accel__suite *suite,
                             size_t *failed_count_out);

#endif
