/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the scenarios: the open plugin, checked calls, and their results. */
#ifndef DS_ACCEL_TESTS_SIM_DRIVE_DRIVE_H
#define DS_ACCEL_TESTS_SIM_DRIVE_DRIVE_H

#include "plugin-api.h"

#include <stddef.h>
#include <stdio.h>

/* Severity of a result; the exit code is the highest severity of the run. */
enum {
    DRIVE_FINE = 0,
    DRIVE_FAILED = 1, /* a call failed, and reported it correctly */
    DRIVE_USAGE = 2,
    DRIVE_UNTOLD = 3, /* a failure was not reported correctly */
    DRIVE_WRONG = 4   /* the device did the wrong thing */
};

#define BYTES (1u << 20)

struct run {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *device;
    struct ds_accel_error error;
    char **arguments; /* arguments of the scenario, terminated by NULL */
    uint32_t device_count;
    int code;
    int is_tolerant;         /* a correctly reported failure is not a failure of the scenario */
    unsigned passed, failed; /* numbers of checked calls and results */
    unsigned refused;        /* number of calls that failed, whether tolerated or not */
    unsigned missing;        /* number of those that failed with DS_ACCEL_ERR_UNSUPPORTED */
    int64_t awaited_code;    /* a vendor code; 0: none */
    unsigned awaited;        /* number of calls that failed with awaited_code */
    /* The following objects are created by drive_make(). */
    void *first, *second;
    unsigned char *pinned;
    ds_accel_plugin_stream_t *one, *two;
    ds_accel_plugin_event_t *start, *end;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    int is_capturing;
    volatile int task_count;
};

/* ---- host.c --------------------------------------------------------------------------------- */

/* Returns the host for a plugin. Its options are the variables DS_ACCEL_<PLUGIN>_<KEY>, and its
 * machine_root is DS_ACCEL_ROOT. */
const struct ds_accel_host *drive_host(const char *plugin);

/* ---- call.c --------------------------------------------------------------------------------- */

const struct ds_accel_plugin *drive_load(const char *path);
void drive_clear(struct run *run);
int32_t drive_judge(struct run *run, const char *slot, int32_t status);
int32_t drive_absent(struct run *run, const char *slot);
void drive_wrong(struct run *run, const char *what);
void drive_untold(struct run *run, const char *slot, const char *what);
void drive_want(struct run *run, int is_so, const char *what);
/* Adds the counts and the severity of `other`, a copy of the run used by another thread or in the
 * same scenario. */
void drive_add(struct run *run, const struct run *other);
/* Prints "SCENARIO: N passed, N failed"; returns the exit code. */
int drive_report(struct run *run, const char *scenario);

#define HAS(run, slot) ((run)->table->slot != NULL)
#define CALL(run, slot, ...) \
    (HAS(run, slot) ? (drive_clear(run), \
                       drive_judge(run, #slot, (run)->table->slot(__VA_ARGS__, &(run)->error))) \
                    : drive_absent(run, #slot))
/* Calls a slot without counting the result, for calls that may fail. */
#define ASK(run, slot, ...) (drive_clear(run), (run)->table->slot(__VA_ARGS__, &(run)->error))
/* Calls a slot that releases something, and repeats the call after a failure, so that one injected
 * failure leaves nothing alive. */
#define RELEASE(run, slot, ...) \
    do { \
        if (CALL(run, slot, __VA_ARGS__) < 0) { \
            CALL(run, slot, __VA_ARGS__); \
        } \
    } while (0)
/* Calls a slot with an output, which a failed call must leave unchanged. */
#define MAKE(run, slot, out, ...) \
    do { \
        (out) = (void *)&(run)->error; \
        if (CALL(run, slot, __VA_ARGS__, &(out)) != DS_ACCEL_OK) { \
            if ((void *)(out) != (void *)&(run)->error) { \
                drive_untold(run, #slot, "failed and wrote its output"); \
            } \
            (out) = NULL; \
        } \
    } while (0)
#define DROP(run, slot, handle) \
    do { \
        if (HAS(run, slot)) { \
            (run)->table->slot(handle); \
        } \
    } while (0)

/* ---- work.c --------------------------------------------------------------------------------- */

void drive_pattern(unsigned char *bytes, size_t size, unsigned seed);
int drive_is_pattern(const unsigned char *bytes, size_t size, unsigned seed);
/* Opens device 0 and creates memory, streams and events; drive_unmake() releases all that exist. */
int32_t drive_make(struct run *run);
void drive_unmake(struct run *run);
/* A host task that increments the task_count of a struct run. */
void drive_count(void *run, int32_t status);

/* ---- scenarios; main.c describes them ------------------------------------------------------- */

void drive_facts(struct run *run);
void drive_polled(struct run *run);
void drive_ranges(struct run *run);
void drive_domains(struct run *run);
void drive_shown(struct run *run);

void drive_work(struct run *run);
void drive_pageable(struct run *run);

void drive_memory(struct run *run);
void drive_used(struct run *run);
void drive_copied(struct run *run);
void drive_share(struct run *run);
void drive_pages(struct run *run);
void drive_captured(struct run *run);
void drive_current(struct run *run);
void drive_opened(struct run *run);
void drive_capturing(struct run *run);
void drive_beside(struct run *run);
void drive_raced(struct run *run);
void drive_vmem(struct run *run);
void drive_aligned(struct run *run);
void drive_released(struct run *run);

void drive_waited(struct run *run);
void drive_gone(struct run *run);
void drive_unwrapped(struct run *run);
void drive_imports(struct run *run);
void drive_exchanged(struct run *run);
void drive_peer(struct run *run);
void drive_peered(struct run *run);
void drive_lost(struct run *run);
void drive_ended(struct run *run);
void drive_joined(struct run *run);
void drive_reopened(struct run *run);

void drive_frame(struct run *run);
void drive_order(struct run *run);

void drive_probe(struct run *run);
void drive_again(struct run *run);
void drive_busy(struct run *run);

void drive_walk(struct run *run);
/*
 * The part of the scenario "walk" that needs device 0 open: streams, graphs, another device and the
 * vendor's handles.
 */
void drive_walk_streams(struct run *run);
/*
 * Returns true if each accepted host task of the scenario "walk" has run once, and no other task
 * has run; resets the count of tasks.
 */
int drive_tasks_have_run(void);
void drive_rounds(struct run *run);
void drive_native(struct run *run);

#endif
