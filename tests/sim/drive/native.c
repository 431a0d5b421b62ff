/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A program that uses OpenCL directly and together with the plugin.
 *
 * The program opens the device with its own context, and wraps its own queue and its own buffer; a
 * kernel that it compiles works on memory of mem_alloc(), between copies of the plugin in the same
 * queue. Then the program measures and prints both methods to copy, side by side; no measured time
 * is a failure. The program aborts at an unexpected result.
 *
 * The declarations are the part of the OpenCL 1.2 specification that is used here.
 */
#include "drive.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096u
#define SIZE (COUNT * sizeof(uint32_t))
#define BIG_BYTES (UINT64_C(64) << 20)
#define ROUNDS 2000

typedef void *handle_t;

static int32_t code;

static int32_t (*clGetPlatformIDs)(uint32_t, handle_t *, uint32_t *);
static int32_t (*clGetDeviceIDs)(handle_t, uint64_t, uint32_t, handle_t *, uint32_t *);
static handle_t (*clCreateContext)(const intptr_t *, uint32_t, const handle_t *, void *, void *,
                                   int32_t *);
static handle_t (*clCreateCommandQueue)(handle_t, handle_t, uint64_t, int32_t *);
static handle_t (*clCreateBuffer)(handle_t, uint64_t, size_t, void *, int32_t *);
static handle_t (*clCreateProgramWithSource)(handle_t, uint32_t, const char **, const size_t *,
                                             int32_t *);
static int32_t (*clBuildProgram)(handle_t, uint32_t, const handle_t *, const char *, void *,
                                 void *);
static handle_t (*clCreateKernel)(handle_t, const char *, int32_t *);
static int32_t (*clSetKernelArg)(handle_t, uint32_t, size_t, const void *);
static int32_t (*clEnqueueNDRangeKernel)(handle_t, handle_t, uint32_t, const size_t *,
                                         const size_t *, const size_t *, uint32_t, const handle_t *,
                                         handle_t *);
static int32_t (*clEnqueueWriteBuffer)(handle_t, handle_t, uint32_t, size_t, size_t, const void *,
                                       uint32_t, const handle_t *, handle_t *);
static int32_t (*clFlush)(handle_t);
static int32_t (*clFinish)(handle_t);

static const struct {
    const char *name;
    void *place;
} symbols[] = {
    {"clGetPlatformIDs", &clGetPlatformIDs},
    {"clGetDeviceIDs", &clGetDeviceIDs},
    {"clCreateContext", &clCreateContext},
    {"clCreateCommandQueue", &clCreateCommandQueue},
    {"clCreateBuffer", &clCreateBuffer},
    {"clCreateProgramWithSource", &clCreateProgramWithSource},
    {"clBuildProgram", &clBuildProgram},
    {"clCreateKernel", &clCreateKernel},
    {"clSetKernelArg", &clSetKernelArg},
    {"clEnqueueNDRangeKernel", &clEnqueueNDRangeKernel},
    {"clEnqueueWriteBuffer", &clEnqueueWriteBuffer},
    {"clFlush", &clFlush},
    {"clFinish", &clFinish},
};

static void must(struct run *run, int is_so, const char *what)
{
    drive_want(run, is_so, what);
    if (!is_so) {
        printf("OpenCL says %d, the plugin \"%s\"\n", code, run->error.message);
        exit(drive_report(run, "native"));
    }
}

#define CL(call) must(run, (code = (call)) == 0, #call)
#define MADE(call) must(run, (call) != NULL && code == 0, #call)
#define DO(slot, ...) must(run, CALL(run, slot, __VA_ARGS__) == DS_ACCEL_OK, #slot)

/* ---- OpenCL as the program uses it ---------------------------------------------------------- */

static handle_t device_id, context, queue, kernel;

static void start_opencl(struct run *run)
{
    const char *source = "__kernel void add(__global uint *x, uint offset, uint y)"
                         "{ x[get_global_id(0) + offset] += y; }";
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    handle_t platform = NULL;
    handle_t program = NULL;

    must(run, library != NULL, "dlopen");
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        must(run, address != NULL, symbols[i].name);
        memcpy(symbols[i].place, &address, sizeof(address));
    }
    CL(clGetPlatformIDs(1, &platform, NULL));
    CL(clGetDeviceIDs(platform, UINT64_C(0xffffffff), 1, &device_id, NULL));
    MADE(context = clCreateContext(NULL, 1, &device_id, NULL, NULL, &code));
    MADE(queue = clCreateCommandQueue(context, device_id, 2 /* profiling */, &code));
    MADE(program = clCreateProgramWithSource(context, 1, &source, NULL, &code));
    CL(clBuildProgram(program, 1, &device_id, NULL, NULL, NULL));
    MADE(kernel = clCreateKernel(program, "add", &code));
}

/* Queues a kernel that adds value to every element of memory from offset_bytes on. */
static void add(struct run *run, uint64_t memory, uint64_t offset_bytes, uint32_t value)
{
    handle_t object = (handle_t)(uintptr_t)memory;
    uint32_t offset = (uint32_t)(offset_bytes / sizeof(uint32_t));
    size_t count = COUNT;

    CL(clSetKernelArg(kernel, 0, sizeof(object), &object));
    CL(clSetKernelArg(kernel, 1, sizeof(offset), &offset));
    CL(clSetKernelArg(kernel, 2, sizeof(value), &value));
    CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL));
}

/* ---- OpenCL and the plugin together --------------------------------------------------------- */

static ds_accel_plugin_stream_t *stream;

static void start_plugin(struct run *run)
{
    void *wrapped = NULL;

    DO(init, drive_host(run->table->name), &run->instance);
    DO(device_open_native, run->instance, 0, (uint64_t)(uintptr_t)context, &run->device);
    DO(native_wrap, run->device, DS_ACCEL_NATIVE_STREAM, (uint64_t)(uintptr_t)queue, &wrapped);
    stream = wrapped;
}

/* Queues copies of the plugin around kernels of the program, all in the program's queue. */
static void mix(struct run *run)
{
    static uint32_t numbers[COUNT];
    static uint32_t results[COUNT];
    handle_t own = NULL;
    void *memory = NULL;
    void *wrapped = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = i;
    }
    DO(mem_alloc, run->device, 2 * SIZE, 0, 0, &memory);
    DO(native_get, run->device, DS_ACCEL_NATIVE_MEMORY, (char *)memory + SIZE, &native, &offset);
    must(run, offset == SIZE, "the offset of an inner address");
    MADE(own = clCreateBuffer(context, 1 /* CL_MEM_READ_WRITE */, SIZE, NULL, &code));
    DO(native_wrap, run->device, DS_ACCEL_NATIVE_MEMORY, (uint64_t)(uintptr_t)own, &wrapped);
    DO(mem_copy_async, stream, (char *)memory + SIZE, numbers, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    add(run, native, offset, 5);
    DO(mem_copy_async, stream, wrapped, (char *)memory + SIZE, SIZE, DS_ACCEL_COPY_INFER);
    add(run, (uint64_t)(uintptr_t)own, 0, 7);
    DO(mem_copy_async, stream, results, wrapped, SIZE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    DO(stream_synchronize, stream, UINT64_MAX);
    for (uint32_t i = 0; i < COUNT; i++) {
        must(run, results[i] == i + 12, "what two kernels added");
    }
    DO(mem_free, run->device, wrapped);
    DO(mem_free, run->device, memory);
}

/* ---- times side by side --------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return *left < *right ? -1 : *left > *right;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 2];
}

/* The two methods alternate, so that both run under the same load. */
static void time_copies(struct run *run, uint64_t size_bytes, int rounds)
{
    const struct ds_accel_host *host = drive_host(run->table->name);
    static double ours[ROUNDS];
    static double raw[ROUNDS];
    unsigned char *source = calloc(1, size_bytes);
    uint64_t native = 0;
    uint64_t offset = 0;
    void *memory = NULL;

    must(run, source != NULL, "calloc");
    DO(mem_alloc, run->device, size_bytes, 0, 0, &memory);
    DO(native_get, run->device, DS_ACCEL_NATIVE_MEMORY, memory, &native, &offset);
    for (int i = 0; i < rounds; i++) {
        uint64_t start = host->clock_ns(host);
        uint64_t middle;

        CL(clEnqueueWriteBuffer(queue, (handle_t)(uintptr_t)native, 0, offset, size_bytes, source,
                                0, NULL, NULL));
        CL(clFlush(queue));
        CL(clFinish(queue));
        middle = host->clock_ns(host);
        DO(mem_copy_async, stream, memory, source, size_bytes, DS_ACCEL_COPY_HOST_TO_DEVICE);
        DO(stream_synchronize, stream, UINT64_MAX);
        ours[i] = (double)(host->clock_ns(host) - middle);
        raw[i] = (double)(middle - start);
    }
    printf("copy of %llu bytes and wait: raw %.0f ns, through the plugin %.0f ns\n",
           (unsigned long long)size_bytes, median(raw, rounds), median(ours, rounds));
    DO(mem_free, run->device, memory);
    free(source);
}

void drive_native(struct run *run)
{
    start_opencl(run);
    start_plugin(run);
    mix(run);
    time_copies(run, 64, ROUNDS);
    time_copies(run, BIG_BYTES, 10);
    run->table->stream_destroy(stream);
    run->table->device_close(run->device);
    run->table->shutdown(run->instance);
    CL(clFinish(queue)); /* still owned by the program */
    printf("mixed\n");
}
