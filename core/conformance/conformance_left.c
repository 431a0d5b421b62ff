/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: resources left in the process after instances were shut down, and by all
 * other checks. */
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/guard.h"
#include "host/probe.h"

#include <malloc.h>
#include <stdio.h>
#include <time.h>

#define GROUP "left"
#define ROUNDS 8
/* A check runs WINDOWS windows of ROUNDS rounds each. Memory that grows in every window but the
 * first is a leak. While it has grown in all of these windows, up to MOST_WINDOWS windows run,
 * because growth may also come from the C library: on a busy machine, threads of earlier rounds
 * exit late, and it maps a limited number of further heaps and stacks for the next rounds. */
#define WINDOWS 4
#define MOST_WINDOWS 12
/* Growth of the heap per round that counts as a leak of the plugin: about the size of a handle
 * or queue. Vendors' runtimes leak smaller amounts with each context that they create, and only
 * LeakSanitizer can tell such a leak from a leak of the plugin. */
#define LEAK_BYTES 512u
#define SETTLE_TRIES 200 /* milliseconds; the kernel lists a joined thread for a moment */

/* ---- counters ------------------------------------------------------------------------------- */

struct counts {
    size_t threads, descriptors, heap_bytes, mapped_pages;
};

static size_t heap_bytes(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 heap = mallinfo2();

    return heap.uordblks + heap.hblkhd;
#else
    return 0;
#endif
}

/* The number of mapped pages of the process. 0 if unknown, or if the size of the heap is unknown:
 * the heap may be a sanitizer's, which does not return freed memory. */
static size_t mapped_pages(void)
{
    FILE *file = heap_bytes() > 0 ? fopen("/proc/self/statm", "re") : NULL;
    size_t pages = 0;

    if (file != NULL) {
        if (fscanf(file, "%zu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages;
}

/* Count the process's resources, after waiting for a limited time until at most thread_limit
 * threads remain. */
static struct counts count(size_t thread_limit)
{
    for (int i = 0; i < SETTLE_TRIES && ds_accel__count_threads() > thread_limit; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return (struct counts){ds_accel__count_threads(), ds_accel__count_descriptors(), heap_bytes(),
                           mapped_pages()};
}

/* True if less than one object per round was added, or if the configuration tolerates the
 * growth. */
static bool has_no_growth(const struct ds_accel__run *run, enum ds_accel__reason_id reason,
                          size_t rounds, size_t before, size_t after)
{
    return after < before + rounds || ds_accel__conduct_is_tolerated(run->candidate, reason);
}

/* Call round() repeatedly. Fail if the process's threads or descriptors grow by at least one per
 * round, or if in every window the heap grows by LEAK_BYTES per round or the mapped memory by one
 * page per round. The first window is not counted, because objects that are created only once
 * appear in it. */
static void want_no_growth(struct ds_accel__run *run, const char *what,
                           void (*round)(struct ds_accel__run *run))
{
    struct counts first = {0};
    struct counts last = {0};
    size_t rounds = 0; /* number of rounds after the first window */
    bool has_leak = true;
    bool maps_more = true;

    for (int i = 0; i < WINDOWS || (i < MOST_WINDOWS && (has_leak || maps_more)); i++) {
        struct counts before = last;

        for (int k = 0; k < ROUNDS; k++) {
            round(run);
        }
        last = count(i > 0 ? first.threads : SIZE_MAX);
        if (i == 0) {
            first = last;
            continue;
        }
        rounds += ROUNDS;
        has_leak = has_leak && last.heap_bytes >= before.heap_bytes + (size_t)ROUNDS * LEAK_BYTES;
        maps_more = maps_more && last.mapped_pages >= before.mapped_pages + ROUNDS;
    }
    EXPECT(run,
           has_no_growth(run, DS_ACCEL__REASON_LEAVES_THREAD, rounds, first.threads, last.threads),
           "%s %zu times: %zu threads before, %zu after", what, rounds, first.threads,
           last.threads);
    EXPECT(run,
           has_no_growth(run, DS_ACCEL__REASON_LEAVES_DESCRIPTOR, rounds, first.descriptors,
                         last.descriptors),
           "%s %zu times: %zu descriptors before, %zu after", what, rounds, first.descriptors,
           last.descriptors);
    EXPECT(run, !has_leak, "%s %zu times: %zu bytes of the heap before, %zu after", what, rounds,
           first.heap_bytes, last.heap_bytes);
    EXPECT(run, !maps_more, "%s %zu times: %zu pages mapped before, %zu after", what, rounds,
           first.mapped_pages, last.mapped_pages);
}

/* ---- complete lives of an instance ---------------------------------------------------------- */

/* Use a stream, an event and memory. */
static void work(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    void *memory = NULL;

    if (run->table.mem_alloc != NULL && run->table.mem_free != NULL) {
        memory = ds_accel__take(run, 4096);
    }
    if (run->table.event_create != NULL && ds_accel__has_slot(run, SLOT(event_destroy))) {
        event = ds_accel__event(run, 0);
    }
    if (run->table.stream_create != NULL && ds_accel__has_slot(run, SLOT(stream_destroy))) {
        stream = ds_accel__stream(run);
        if (memory != NULL && run->table.mem_fill_async != NULL) {
            WANT(run, DS_ACCEL_OK, mem_fill_async, stream, memory, "\0", 1, (uint64_t)4096);
        }
        if (event != NULL && run->table.event_record != NULL) {
            WANT(run, DS_ACCEL_OK, event_record, event, stream);
        }
        if (run->table.stream_synchronize != NULL) {
            ds_accel__wait(run, stream);
        }
        run->table.stream_destroy(stream);
    }
    if (event != NULL) {
        run->table.event_destroy(event);
    }
    if (memory != NULL) {
        ds_accel__give(run, memory);
    }
}

static void live(struct ds_accel__run *run)
{
    ds_accel_plugin_instance_t *instance = ds_accel__run_init(run, run->host);
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    if (run->device_index < count) {
        run->device = ds_accel__run_open(run, instance, run->device_index);
        work(run);
        run->table.device_close(run->device);
        run->device = NULL;
    }
    run->table.shutdown(instance);
}

static void check_lives(struct ds_accel__run *run)
{
    want_no_growth(run, "started, used and shut down", live);
}

static void open_and_close(struct ds_accel__run *run)
{
    ds_accel_plugin_device_t *device = run->device;

    run->device = ds_accel__run_open(run, run->instance, run->device_index);
    work(run);
    run->table.device_close(run->device);
    run->device = device;
}

static void check_openings(struct ds_accel__run *run)
{
    want_no_growth(run, "a device opened, used and closed", open_and_close);
}

/* Make calls that programs repeat, such as a monitor that reads sensors. */
static void ask_all(struct ds_accel__run *run)
{
    ds_accel__tour(run, NULL, NULL);
}

static void check_asked(struct ds_accel__run *run)
{
    want_no_growth(run, "each slot called", ask_all);
}

/* ---- the process ---------------------------------------------------------------------------- */

static void report_change(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    ds_accel__check_fail(user_data, "%s: %s", ds_accel__reason_code(reason), detail);
}

/* Check that the life of an instance, from init to shutdown, does not change the process's
 * state. */
static void check_life(struct ds_accel__run *run)
{
    live(run);
    ds_accel__guard_compare(run->guard, report_change, run);
}

/* Check the process's state and output after the calls of all earlier checks in this process. */
static void check_all(struct ds_accel__run *run)
{
    ds_accel__guard_compare(run->guard, report_change, run);
    ds_accel__want_silence(run);
}

#define STARTS SLOT(init), SLOT(shutdown), SLOT(device_count), SLOT(device_open), SLOT(device_close)

static const struct ds_accel__check checks[] = {
    {28,
     GROUP,
     "the process is as it was after all other checks",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_all,
     {0}},
    {30, GROUP, "each function is called many times", DS_ACCEL__STAGE_DEVICE, 0, check_asked, {0}},
    {30, GROUP, "a device is opened many times", DS_ACCEL__STAGE_DEVICE, 0, check_openings, {0}},
    {28,
     GROUP,
     "the process is as it was after a life",
     DS_ACCEL__STAGE_TABLE,
     DS_ACCEL__CHECK_ALONE,
     check_life,
     {STARTS}},
    {30,
     GROUP,
     "many lives, one after another",
     DS_ACCEL__STAGE_TABLE,
     DS_ACCEL__CHECK_ALONE,
     check_lives,
     {STARTS}},
};

const struct ds_accel__check_list ds_accel__checks_left = {checks, ARRAY_SIZE(checks)};
