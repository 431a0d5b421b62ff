/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Compares the cost of a call through ds-accel with the cost of the driver's own function, on the
 * same device, stream and memory, in turn in one run: prints "NAME OURS DRIVER UNIT" lines. This
 * program opens the driver itself by its soname, as any CUDA program would.
 *
 * Host calls are timed by the host's clock, transfers from their submission to the end of the
 * stream. A result is the median of many blocks, ours and the driver's in turn, so that a change of
 * clock speed affects both.
 */
#include "clock.h"
#include "ds_accel.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 41u
#define TRANSFER_BYTES (UINT64_C(64) << 20)
#define FILL_BYTES 4096u

/* prototypes of cuda.h 13.0 */
typedef int (*wait_call)(void *);
typedef int (*record_call)(void *event, void *stream);
typedef int (*copy_to_device_call)(unsigned long long, const void *, size_t, void *);
typedef int (*copy_to_host_call)(void *, unsigned long long, size_t, void *);
typedef int (*copy_within_call)(unsigned long long, unsigned long long, size_t, void *);
typedef int (*fill_call)(unsigned long long, unsigned char, size_t, void *);
typedef int (*set_current_call)(void *context);
typedef int (*retain_call)(void **context, int device);

static struct {
    wait_call synchronize;
    wait_call query;
    record_call record;
    copy_to_device_call copy_to_device;
    copy_to_host_call copy_to_host;
    copy_within_call copy_within;
    fill_call fill;
} driver;

static struct {
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    ds_accel_event_t *event;
    void *memory;
    void *other;
    void *pinned;
    void *native_stream;
    void *native_event; /* event created by the driver */
} bench;

static void die(const char *what)
{
    fprintf(stderr, "beside_cuda: %s: %s\n", what, ds_accel_last_error());
    exit(1);
}

static void must(int failed, const char *what)
{
    if (failed) {
        die(what);
    }
}

/* ---- pairs: the same operation by ds-accel and by the driver -------------------------------- */

static int our_query(void)
{
    return ds_accel_stream_query(bench.stream) < 0;
}

static int its_query(void)
{
    return driver.query(bench.native_stream) != 0;
}

static int our_record(void)
{
    return ds_accel_event_record(bench.event, bench.stream) < 0;
}

static int its_record(void)
{
    return driver.record(bench.native_event, bench.native_stream) != 0;
}

/* Queue the shortest work of every device: its time is the host's cost of a launch and of waiting
 * for its end. */
static int our_fill(void)
{
    return ds_accel_mem_set_async(bench.stream, bench.memory, 7, FILL_BYTES) < 0;
}

static int its_fill(void)
{
    return driver.fill((uintptr_t)bench.memory, 7, FILL_BYTES, bench.native_stream) != 0;
}

static int our_launch_and_wait(void)
{
    return our_fill() || ds_accel_stream_synchronize(bench.stream) < 0;
}

static int its_launch_and_wait(void)
{
    return its_fill() || driver.synchronize(bench.native_stream) != 0;
}

static int our_to_device(void)
{
    return ds_accel_mem_copy_async(bench.stream, bench.memory, bench.pinned, TRANSFER_BYTES,
                                   DS_ACCEL_COPY_HOST_TO_DEVICE) < 0 ||
           ds_accel_stream_synchronize(bench.stream) < 0;
}

static int its_to_device(void)
{
    return driver.copy_to_device((uintptr_t)bench.memory, bench.pinned, TRANSFER_BYTES,
                                 bench.native_stream) != 0 ||
           driver.synchronize(bench.native_stream) != 0;
}

static int our_to_host(void)
{
    return ds_accel_mem_copy_async(bench.stream, bench.pinned, bench.memory, TRANSFER_BYTES,
                                   DS_ACCEL_COPY_DEVICE_TO_HOST) < 0 ||
           ds_accel_stream_synchronize(bench.stream) < 0;
}

static int its_to_host(void)
{
    return driver.copy_to_host(bench.pinned, (uintptr_t)bench.memory, TRANSFER_BYTES,
                               bench.native_stream) != 0 ||
           driver.synchronize(bench.native_stream) != 0;
}

static int our_within(void)
{
    return ds_accel_mem_copy_async(bench.stream, bench.other, bench.memory, TRANSFER_BYTES,
                                   DS_ACCEL_COPY_DEVICE_TO_DEVICE) < 0 ||
           ds_accel_stream_synchronize(bench.stream) < 0;
}

static int its_within(void)
{
    return driver.copy_within((uintptr_t)bench.other, (uintptr_t)bench.memory, TRANSFER_BYTES,
                              bench.native_stream) != 0 ||
           driver.synchronize(bench.native_stream) != 0;
}

static const struct {
    const char *name;
    int (*ours)(void);
    int (*its)(void);
    unsigned calls;      /* calls per block */
    uint64_t size_bytes; /* 0: the result is ns per call, else GB/s */
} pairs[] = {
    {"stream_query", our_query, its_query, 20000, 0},
    {"event_record", our_record, its_record, 2000, 0},
    {"fill_submit", our_fill, its_fill, 500, 0},
    {"fill_and_wait", our_launch_and_wait, its_launch_and_wait, 200, 0},
    {"host_to_device", our_to_device, its_to_device, 4, TRANSFER_BYTES},
    {"device_to_host", our_to_host, its_to_host, 4, TRANSFER_BYTES},
    {"within_device", our_within, its_within, 16, TRANSFER_BYTES},
};

/* ---- measuring ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Return the ns of one call; the stream is empty before and after. */
static double time_block(int (*call)(void), unsigned calls)
{
    uint64_t start_ns;
    double ns;

    must(ds_accel_stream_synchronize(bench.stream) < 0, "synchronize");
    start_ns = now_ns();
    for (unsigned i = 0; i < calls; i++) {
        must(call(), "call");
    }
    ns = elapsed_ns(start_ns);
    must(ds_accel_stream_synchronize(bench.stream) < 0, "synchronize");
    return ns / calls;
}

static void measure(size_t pair)
{
    double ours[BLOCKS];
    double its[BLOCKS];

    time_block(pairs[pair].ours, pairs[pair].calls);
    time_block(pairs[pair].its, pairs[pair].calls);
    for (unsigned i = 0; i < BLOCKS; i++) {
        ours[i] = time_block(pairs[pair].ours, pairs[pair].calls);
        its[i] = time_block(pairs[pair].its, pairs[pair].calls);
    }
    qsort(ours, BLOCKS, sizeof(double), compare);
    qsort(its, BLOCKS, sizeof(double), compare);
    if (pairs[pair].size_bytes == 0) {
        printf("%-15s %10.1f %10.1f ns\n", pairs[pair].name, ours[BLOCKS / 2], its[BLOCKS / 2]);
    } else {
        printf("%-15s %10.2f %10.2f GB/s\n", pairs[pair].name,
               (double)pairs[pair].size_bytes / ours[BLOCKS / 2],
               (double)pairs[pair].size_bytes / its[BLOCKS / 2]);
    }
}

static void *symbol(void *library, const char *name)
{
    void *address = dlsym(library, name);

    if (address == NULL) {
        fprintf(stderr, "beside_cuda: %s\n", dlerror());
        exit(1);
    }
    return address;
}

/* Open the driver. Its event is created in the primary context, which the plugin uses, too. */
static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*create_event)(void **, unsigned);
    void *context;

    if (library == NULL) {
        fprintf(stderr, "beside_cuda: %s\n", dlerror());
        exit(1);
    }
    driver.synchronize = (wait_call)symbol(library, "cuStreamSynchronize");
    driver.query = (wait_call)symbol(library, "cuStreamQuery");
    driver.record = (record_call)symbol(library, "cuEventRecord");
    driver.copy_to_device = (copy_to_device_call)symbol(library, "cuMemcpyHtoDAsync_v2");
    driver.copy_to_host = (copy_to_host_call)symbol(library, "cuMemcpyDtoHAsync_v2");
    driver.copy_within = (copy_within_call)symbol(library, "cuMemcpyDtoDAsync_v2");
    driver.fill = (fill_call)symbol(library, "cuMemsetD8Async");
    create_event = (int (*)(void **, unsigned))symbol(library, "cuEventCreate");
    must(((retain_call)symbol(library, "cuDevicePrimaryCtxRetain"))(&context, 0) != 0, "context");
    must(((set_current_call)symbol(library, "cuCtxSetCurrent"))(context) != 0, "context");
    must(create_event(&bench.native_event, 2 /* CU_EVENT_DISABLE_TIMING */) != 0, "event");
}

int main(void)
{
    ds_accel_t *context = ds_accel_get();
    uint64_t native;

    must(context == NULL, "no accelerator");
    if (strcmp(ds_accel_name(context), "cuda") != 0) {
        fprintf(stderr, "beside_cuda: the accelerator is %s, not cuda\n", ds_accel_name(context));
        return 1;
    }
    must(ds_accel_device_open(context, 0, &bench.device) < 0, "device");
    must(ds_accel_stream_create(bench.device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &bench.stream) < 0,
         "stream");
    must(ds_accel_event_create(bench.device, 0, &bench.event) < 0, "event");
    must(ds_accel_mem_alloc(bench.device, bench.stream, TRANSFER_BYTES, &bench.memory) < 0,
         "memory");
    must(ds_accel_mem_alloc(bench.device, bench.stream, TRANSFER_BYTES, &bench.other) < 0,
         "memory");
    must(ds_accel_mem_alloc_pinned(bench.device, TRANSFER_BYTES, 0, 0, &bench.pinned) < 0,
         "pinned memory");
    must(ds_accel_stream_native(bench.stream, &native) < 0, "native stream");
    bench.native_stream = (void *)(uintptr_t)native;
    open_driver();
    printf("%-15s %10s %10s\n", "", "ours", "driver");
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        measure(i);
    }
    ds_accel_device_close(bench.device);
    return 0;
}
