/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the files of the launcher's test program: launch.c. */
#ifndef DS_ACCEL_TESTS_LAUNCH_LAUNCH_H
#define DS_ACCEL_TESTS_LAUNCH_LAUNCH_H

#include "base/text.h"
#include "launch/plan.h"
#include "launch/plan_json.h"
#include "machine/cpus.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Count a test as passed or failed; print the name and the text of a failed one. */
__attribute__((format(printf, 3, 4))) void check(const char *name, bool is_right,
                                                 const char *format, ...);
/* Read a JSON file of this directory; a failure ends the program. */
json_t *read_data(const char *file);
/* Borrow a member that is a text; NULL: there is none. */
const char *member(const json_t *object, const char *key);

/* machines.c: the files of a machine that a table describes, for struct ds_accel__machine. */
json_t *make_machine(const json_t *description);
/* The same, by its name in machines.json. Borrowed. */
json_t *find_machine(const char *name);
/* Describe all that a plan reads of a machine's files. */
char *describe_machine(json_t *files);

/* A job that a table describes, and all that a plan of it needs. */
struct job {
    struct ds_accel__launch_options options;
    struct ds_accel__launch_facts facts;
    struct ds_accel__cpus cpus;
    struct ds_accel__topology topology;
    struct ds_accel__device_fact devices[64];
    const char *arguments[64];
    char *environment[64];
    const json_t *local_names;
    const json_t *executables;
    const char *hostfile; /* text; NULL: there is none */
};

/* jobs.c. make_job() returns a status, as the parser of the options does. */
int32_t make_job(const json_t *description, struct job *job);
void clear_job(struct job *job);
int32_t plan_job(struct job *job, struct ds_accel__text *notes, struct ds_accel__plan *plan);
/* Describe a plan in short texts, so that tables can show it. */
json_t *describe_plan(const struct ds_accel__plan *plan);
/* Plan the job that a table describes, and describe the plan, or its error. */
json_t *answer_job(const json_t *description);
/* Compare an answer with all that a table expects. */
void check_answer(const char *name, const json_t *answer, const json_t *expected);

void test_vectors(void);    /* vectors.c */
void test_machines(void);   /* bindings.c */
void test_options(void);    /* arguments.c */
void test_exports(void);    /* exports.c */
void test_texts(void);      /* texts.c */
void test_large(void);      /* large.c */
void test_recordings(void); /* recordings.c */
void test_sets(void);       /* sets.c */
void test_reading(void);    /* reading.c */
void test_failing(void);    /* failing.c */

#endif
