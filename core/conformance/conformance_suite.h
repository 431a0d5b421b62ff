/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The suite as its caller has it: conformance.c runs it, conformance_report.c shows it. */
#ifndef DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H
#define DS_ACCEL_CONFORMANCE_CONFORMANCE_SUITE_H

#include "conformance/conformance.h"

#include <sys/types.h>

struct ds_accel__outcome {
    const char *result; /* NULL: not made */
    uint32_t rule;      /* that it passed or broke */
    uint64_t elapsed_us;
    size_t slot;  /* that was being called when its process ended; 0: none */
    char *output; /* what was printed during it; NULL: nothing */
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
    char variable[128]; /* that chooses the devices of a pass that is_shown; "": none does */
    char value[1024];
    char unusable[512]; /* why the plugin cannot be checked; "" if it can */
    int late_count;     /* processes without an end */

    /* Of the pass that runs now. */
    struct ds_accel__pass *pass;
    int broken_stage; /* the plugin ends whoever brings it up that far; -1: none */
    struct {
        const char *why; /* it is not called any more; NULL: it is */
        uint8_t has_returned;
        uint8_t deaths; /* processes that ended in it */
        uint8_t lates;
    } slots[DS_ACCEL__WITNESS_SLOTS];
    bool steps[DS_ACCEL__WITNESS_STEPS]; /* that ended a process, and are left out */

    /* Of the process that runs now. */
    struct ds_accel__page *page;
    int page_fd;
    pid_t pid;
    int channel;
    int output;    /* what the plugin prints */
    off_t printed; /* what of it was given to a check */
    size_t next;
    bool is_inside; /* of the check next, which has begun */
    int starting;   /* stage to which the plugin is being brought up for it; -1: none */
    uint64_t begin_ns;
    bool has_answered;     /* the survey or trial that it was started for */
    uint32_t device_count; /* by the survey */
    bool has_trial;        /* the tour has a call of the slot that was tried */
};

/* conformance_output.c: what was printed up to there, for an outcome, which a report of a sanitizer
 * makes fail. */
void ds_accel__suite_take_output(struct ds_accel__suite *suite, struct ds_accel__outcome *outcome,
                                 off_t end);
/* The last line that was printed since then, as "; printed: ..."; "" if none was. */
void ds_accel__suite_last_line(const struct ds_accel__suite *suite, char *text, size_t text_size);
/* A file without a name that is full after a while; -1 with errno. */
int ds_accel__suite_open_output(void);
/* conformance_report.c. suite NULL: only what there is to check. NULL: no memory. */
json_t *ds_accel__suite_tree(const char *only, const struct ds_accel__suite *suite,
                             size_t *failed_count_out);

#endif
