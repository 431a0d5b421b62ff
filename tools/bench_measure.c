/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Measures one row. A sample is the duration of N consecutive operations. N is large enough that
 * reading the clock costs little; for queued operations it is at most MAX_QUEUED. Calibration finds
 * N by trials, which also warm up caches and the device. Samples are taken until the row's time is
 * spent, at least three and at most BENCH_MAX_SAMPLES.
 *
 * Queued operations are timed on the device, between two events of one stream, if the backend
 * supports that and the device's clock advances. Otherwise they are timed on the host, including
 * the wait for their completion, like operations that return when they are complete.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1e9
#define SLICE_NS UINT64_C(200000000) /* longest delay before Ctrl-C is noticed */
#define MIN_SAMPLES 3u
#define SAMPLES_WANTED 20.0
#define MIN_SAMPLE_NS 20e3
#define MAX_SAMPLE_NS 50e6
#define MAX_QUEUED 1000u /* with more, some runtimes block because their queue is full */
#define MAX_REPETITIONS UINT64_C(1000000000)

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * NS_PER_S + (double)now.tv_nsec;
}

int32_t bench_wait(struct bench *bench)
{
    int32_t status;

    do {
        if (bench_signal() != 0) {
            return DS_ACCEL_ERR_TIMEOUT;
        }
        status = ds_accel_stream_synchronize_for(bench->stream, SLICE_NS);
    } while (status == DS_ACCEL_ERR_TIMEOUT);
    return status;
}

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

static int32_t repeat(struct bench *bench, uint64_t repetitions)
{
    int32_t (*once)(struct bench *) = bench->test->once;
    int32_t status = DS_ACCEL_OK;

    if (once == NULL) {
        return bench->test->many(bench, repetitions);
    }
    for (uint64_t i = 0; i < repetitions && status >= 0; i++) {
        status = once(bench);
    }
    return status;
}

static int32_t time_on_host(struct bench *bench, uint64_t repetitions, double *ns_out)
{
    double start = now_ns();
    int32_t status = repeat(bench, repetitions);

    if (status >= 0 && bench->test->queued) {
        status = bench_wait(bench);
    }
    *ns_out = now_ns() - start;
    if (status >= 0 && !bench->test->queued) {
        /* Pending work must not count towards the next sample. */
        status = bench_wait(bench);
    }
    return status;
}

static int32_t time_on_device(struct bench *bench, uint64_t repetitions, double *ns_out)
{
    double elapsed_ms = 0;
    int32_t status = ds_accel_event_record(bench->start, bench->stream);

    status = status < 0 ? status : repeat(bench, repetitions);
    status = status < 0 ? status : ds_accel_event_record(bench->end, bench->stream);
    status = status < 0 ? status : bench_wait(bench);
    status = status < 0 ? status : ds_accel_event_elapsed_ms(bench->start, bench->end, &elapsed_ms);
    *ns_out = elapsed_ms * 1e6;
    return status;
}

static int32_t time_sample(struct bench *bench, bool on_device, uint64_t repetitions,
                           double *ns_out)
{
    if (bench_signal() != 0) {
        return DS_ACCEL_ERR_TIMEOUT;
    }
    return on_device ? time_on_device(bench, repetitions, ns_out)
                     : time_on_host(bench, repetitions, ns_out);
}

/*
 * Determine the number of operations in a sample. If the device's clock does not advance even
 * during the largest number of operations, the host's clock is used instead.
 */
static int32_t calibrate(struct bench *bench, struct bench_row *row)
{
    double wanted = bench->time_s * NS_PER_S / SAMPLES_WANTED;
    uint64_t most = bench->test->queued ? MAX_QUEUED : MAX_REPETITIONS;
    uint64_t repetitions = 1;

    wanted = clamp(wanted, MIN_SAMPLE_NS, MAX_SAMPLE_NS);
    for (;;) {
        double ns = 0;
        double factor;
        int32_t status = time_sample(bench, row->device_clock, repetitions, &ns);

        if (status < 0) {
            return status;
        }
        if (ns >= wanted || repetitions == most) {
            if (ns <= 0 && row->device_clock) {
                row->device_clock = false;
                repetitions = 1;
                continue;
            }
            row->repetitions = repetitions;
            return DS_ACCEL_OK;
        }
        factor = ns > 0 ? clamp(wanted / ns * 1.2, 2, 10) : 10;
        repetitions = (uint64_t)((double)repetitions * factor);
        repetitions = repetitions > most ? most : repetitions;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median; sorts the values. */
static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void summarise(struct bench_row *row, double *values)
{
    row->median = median(values, row->samples);
    row->least = values[0];
    row->greatest = values[row->samples - 1];
    for (uint32_t i = 0; i < row->samples; i++) {
        double distance = values[i] - row->median;

        values[i] = distance < 0 ? -distance : distance;
    }
    row->deviation = median(values, row->samples);
}

static int32_t take_samples(struct bench *bench, struct bench_row *row)
{
    double *values = malloc(BENCH_MAX_SAMPLES * sizeof(*values));
    double end = now_ns() + bench->time_s * NS_PER_S;
    int32_t status = DS_ACCEL_OK;

    if (values == NULL) {
        return bench_fail(bench, DS_ACCEL_ERR_NO_MEMORY, "no memory");
    }
    while (status >= 0 && row->samples < BENCH_MAX_SAMPLES &&
           (row->samples < MIN_SAMPLES || now_ns() < end)) {
        double ns = 0;

        status = time_sample(bench, row->device_clock, row->repetitions, &ns);
        ns /= (double)row->repetitions;
        if (status >= 0 && ns <= 0) {
            status = bench_fail(bench, DS_ACCEL_ERR_DRIVER, "the device's clock did not advance");
        } else if (status >= 0) {
            values[row->samples++] =
                row->test->unit == BENCH_NS ? ns : (double)row->size_bytes * NS_PER_S / ns;
        }
    }
    if (status >= 0) {
        summarise(row, values);
    }
    free(values);
    return status;
}

/* The state of a row. Errors that mean that a feature, memory, another resource or a permission is
 * missing skip the row; other errors are failures. */
static enum bench_state state_of(int32_t status)
{
    switch (status) {
    case DS_ACCEL_ERR_UNSUPPORTED:
    case DS_ACCEL_ERR_NO_MEMORY:
    case DS_ACCEL_ERR_LIMIT:
    case DS_ACCEL_ERR_PERMISSION:
        return BENCH_SKIPPED;
    default:
        return status < 0 ? BENCH_FAILED : BENCH_MEASURED;
    }
}

int32_t bench_measure(struct bench *bench, struct bench_row *row)
{
    const struct bench_case *test = row->test;
    int32_t status = DS_ACCEL_OK;

    bench->test = test;
    bench->reason[0] = '\0';
    row->device_clock = test->queued && bench->start != NULL;
    if (test->prepare != NULL) {
        status = test->prepare(bench);
    }
    status = status < 0 ? status : calibrate(bench, row);
    status = status < 0 ? status : take_samples(bench, row);
    row->state = state_of(status);
    if (status < 0) {
        snprintf(row->reason, sizeof(row->reason), "%s",
                 bench->reason[0] != '\0' ? bench->reason : ds_accel_last_error());
        row->samples = 0;
        row->repetitions = 0;
    }
    if (test->finish != NULL) {
        test->finish(bench);
    }
    return bench_signal() != 0 ? BENCH_INTERRUPTED : DS_ACCEL_OK;
}
