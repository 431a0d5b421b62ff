/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libopencl_failing.so: a real OpenCL loader, one call of which fails.
 *
 * This is not a simulation: each function calls libOpenCL.so.1, which calls a real runtime. Calls
 * are counted. failing_opencl_fail(N, code) selects a call: call number N returns the code and is
 * not passed on. The library records every object that the caller must release. A test lets each N
 * fail in turn and then checks for remaining objects.
 *
 * The prototypes are those of the Khronos headers, written here a second time: the plugin's own are
 * not included, so that arguments swapped there are not swapped here as well. The plugin opens this
 * library by its option "library".
 *
 * A function that releases an object is called even when it "fails": the caller could not handle
 * that failure.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct platform *platform_t;
typedef struct device *device_t;
typedef struct context *context_t;
typedef struct queue *queue_t;
typedef struct memory *memory_t;
typedef struct event *event_t;
typedef void (*notify_t)(const char *, const void *, size_t, void *);
typedef void (*callback_t)(event_t, int32_t, void *);

static atomic_long calls;
static atomic_long failing;
static atomic_int has_failed;
static int32_t failure;
static const char *failed_name = "no call";
static atomic_long contexts, queues, memories, events, shared;

/* ---- functions for the test ----------------------------------------------------------------- */

EXPORT void failing_opencl_fail(long call, int32_t code);
EXPORT long failing_opencl_calls(void);
EXPORT int failing_opencl_has_failed(void);
EXPORT const char *failing_opencl_name(void);
EXPORT const char *failing_opencl_left(void);

/* Restarts the count from 1; call 0: no call fails. */
void failing_opencl_fail(long call, int32_t code)
{
    atomic_store(&calls, 0);
    atomic_store(&has_failed, 0);
    failure = code;
    atomic_store(&failing, call);
}

long failing_opencl_calls(void)
{
    return atomic_load(&calls);
}

int failing_opencl_has_failed(void)
{
    return atomic_load(&has_failed);
}

const char *failing_opencl_name(void)
{
    return failed_name;
}

/* Returns the kinds of objects that were not released; NULL: none. */
const char *failing_opencl_left(void)
{
    static char text[128];

    if (!atomic_load(&contexts) && !atomic_load(&queues) && !atomic_load(&memories) &&
        !atomic_load(&events) && !atomic_load(&shared)) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%ld contexts, %ld queues, %ld memories, %ld events, %ld shared",
             atomic_load(&contexts), atomic_load(&queues), atomic_load(&memories),
             atomic_load(&events), atomic_load(&shared));
    return text;
}

/* ---- calls of the real library -------------------------------------------------------------- */

static void *find(const char *name)
{
    static void *library;
    void *address;

    if (library == NULL) {
        library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    address = library != NULL ? dlsym(library, name) : NULL;
    if (address == NULL) {
        fprintf(stderr, "failing: no %s: %s\n", name, dlerror());
        abort();
    }
    return address;
}

static int fails(const char *name)
{
    long call = atomic_fetch_add(&calls, 1) + 1;

    if (call != atomic_load(&failing)) {
        return 0;
    }
    failed_name = name;
    atomic_store(&has_failed, 1);
    return 1;
}

/* Counts new objects if the call succeeded. */
static int32_t came(int32_t code, atomic_long *book, int count)
{
    atomic_fetch_add(book, code == 0 ? count : 0);
    return code;
}

static void *made(void *object, int32_t *code_out, atomic_long *book)
{
    atomic_fetch_add(book, object != NULL && (code_out == NULL || *code_out == 0));
    return object;
}

static void *refused(int32_t *code_out)
{
    if (code_out != NULL) {
        *code_out = failure;
    }
    return NULL;
}

#define REAL(name) ((__typeof__(&name))find(#name))
/* PLAIN defines a function that returns a code; QUEUES defines one that also returns an event. */
#define PLAIN(name, parameters, arguments) \
    EXPORT int32_t name parameters; \
    int32_t name parameters \
    { \
        return fails(__func__) ? failure : REAL(name) arguments; \
    }
#define QUEUES(name, parameters, arguments) \
    EXPORT int32_t name parameters; \
    int32_t name parameters \
    { \
        return fails(__func__) ? failure : came(REAL(name) arguments, &events, event != NULL); \
    }
#define RETAIN(name, type, book) \
    EXPORT int32_t name(type object); \
    int32_t name(type object) \
    { \
        return fails(__func__) ? failure : came(REAL(name)(object), &book, 1); \
    }
#define RELEASE(name, type, book) \
    EXPORT int32_t name(type object); \
    int32_t name(type object) \
    { \
        int failed = fails(__func__); \
        int32_t code = came(REAL(name)(object), &book, -1); \
        return failed ? failure : code; \
    }
#define EVENTS uint32_t wait_count, const event_t *waits, event_t *event
#define GIVEN wait_count, waits, event

/* ---- the functions -------------------------------------------------------------------------- */

/* Changes variables, as runtimes do when they are loaded: sets one, changes one, removes one. */
static void change_environment(void)
{
    setenv("FAILING_SETS", "a value", 1);
    if (getenv("FAILING_CHANGES") != NULL) {
        setenv("FAILING_CHANGES", "another value", 1);
    }
    unsetenv("FAILING_REMOVES");
}

EXPORT int32_t clGetPlatformIDs(uint32_t entries, platform_t *platforms, uint32_t *count);
int32_t clGetPlatformIDs(uint32_t entries, platform_t *platforms, uint32_t *count)
{
    change_environment();
    return fails(__func__) ? failure : REAL(clGetPlatformIDs)(entries, platforms, count);
}
PLAIN(clGetPlatformInfo,
      (platform_t platform, uint32_t name, size_t size, void *value, size_t *size_out),
      (platform, name, size, value, size_out))
PLAIN(clGetDeviceIDs,
      (platform_t platform, uint64_t type, uint32_t entries, device_t *devices, uint32_t *count),
      (platform, type, entries, devices, count))
PLAIN(clGetDeviceInfo, (device_t device, uint32_t name, size_t size, void *value, size_t *size_out),
      (device, name, size, value, size_out))
PLAIN(clGetContextInfo,
      (context_t context, uint32_t name, size_t size, void *value, size_t *size_out),
      (context, name, size, value, size_out))
PLAIN(clGetCommandQueueInfo,
      (queue_t queue, uint32_t name, size_t size, void *value, size_t *size_out),
      (queue, name, size, value, size_out))
PLAIN(clGetMemObjectInfo,
      (memory_t memory, uint32_t name, size_t size, void *value, size_t *size_out),
      (memory, name, size, value, size_out))
PLAIN(clGetEventInfo, (event_t event, uint32_t name, size_t size, void *value, size_t *size_out),
      (event, name, size, value, size_out))
PLAIN(clGetEventProfilingInfo,
      (event_t event, uint32_t name, size_t size, void *value, size_t *size_out),
      (event, name, size, value, size_out))
PLAIN(clFlush, (queue_t queue), (queue))
PLAIN(clFinish, (queue_t queue), (queue))
PLAIN(clWaitForEvents, (uint32_t count, const event_t *list), (count, list))
PLAIN(clSetEventCallback, (event_t event, int32_t type, callback_t callback, void *user_data),
      (event, type, callback, user_data))

RETAIN(clRetainContext, context_t, contexts)
RETAIN(clRetainCommandQueue, queue_t, queues)
RETAIN(clRetainMemObject, memory_t, memories)
RETAIN(clRetainEvent, event_t, events)
RELEASE(clReleaseContext, context_t, contexts)
RELEASE(clReleaseCommandQueue, queue_t, queues)
RELEASE(clReleaseMemObject, memory_t, memories)
RELEASE(clReleaseEvent, event_t, events)

QUEUES(clEnqueueReadBuffer,
       (queue_t queue, memory_t buffer, uint32_t blocking, size_t offset, size_t size,
        void *pointer, EVENTS),
       (queue, buffer, blocking, offset, size, pointer, GIVEN))
QUEUES(clEnqueueWriteBuffer,
       (queue_t queue, memory_t buffer, uint32_t blocking, size_t offset, size_t size,
        const void *pointer, EVENTS),
       (queue, buffer, blocking, offset, size, pointer, GIVEN))
QUEUES(clEnqueueCopyBuffer,
       (queue_t queue, memory_t source, memory_t destination, size_t source_offset,
        size_t destination_offset, size_t size, EVENTS),
       (queue, source, destination, source_offset, destination_offset, size, GIVEN))
QUEUES(clEnqueueFillBuffer,
       (queue_t queue, memory_t buffer, const void *pattern, size_t pattern_size, size_t offset,
        size_t size, EVENTS),
       (queue, buffer, pattern, pattern_size, offset, size, GIVEN))
QUEUES(clEnqueueUnmapMemObject, (queue_t queue, memory_t memory, void *pointer, EVENTS),
       (queue, memory, pointer, GIVEN))
QUEUES(clEnqueueMarkerWithWaitList, (queue_t queue, EVENTS), (queue, GIVEN))
QUEUES(clEnqueueBarrierWithWaitList, (queue_t queue, EVENTS), (queue, GIVEN))
QUEUES(clEnqueueSVMMemcpy,
       (queue_t queue, uint32_t blocking, void *destination, const void *source, size_t size,
        EVENTS),
       (queue, blocking, destination, source, size, GIVEN))
QUEUES(clEnqueueSVMMemFill,
       (queue_t queue, void *pointer, const void *pattern, size_t pattern_size, size_t size,
        EVENTS),
       (queue, pointer, pattern, pattern_size, size, GIVEN))

EXPORT int32_t clSetUserEventStatus(event_t event, int32_t status);
int32_t clSetUserEventStatus(event_t event, int32_t status)
{
    return fails(__func__) ? failure : REAL(clSetUserEventStatus)(event, status);
}

EXPORT void *clEnqueueMapBuffer(queue_t queue, memory_t buffer, uint32_t blocking, uint64_t flags,
                                size_t offset, size_t size, EVENTS, int32_t *code_out);
void *clEnqueueMapBuffer(queue_t queue, memory_t buffer, uint32_t blocking, uint64_t flags,
                         size_t offset, size_t size, EVENTS, int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : REAL(clEnqueueMapBuffer)(queue, buffer, blocking, flags, offset, size,
                                                      GIVEN, code_out);
}

EXPORT context_t clCreateContext(const intptr_t *properties, uint32_t count,
                                 const device_t *devices, notify_t notify, void *user_data,
                                 int32_t *code_out);
context_t clCreateContext(const intptr_t *properties, uint32_t count, const device_t *devices,
                          notify_t notify, void *user_data, int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : made(REAL(clCreateContext)(properties, count, devices, notify,
                                                        user_data, code_out),
                                  code_out, &contexts);
}

EXPORT queue_t clCreateCommandQueue(context_t context, device_t device, uint64_t properties,
                                    int32_t *code_out);
queue_t clCreateCommandQueue(context_t context, device_t device, uint64_t properties,
                             int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : made(REAL(clCreateCommandQueue)(context, device, properties, code_out),
                                  code_out, &queues);
}

EXPORT queue_t clCreateCommandQueueWithProperties(context_t context, device_t device,
                                                  const uint64_t *properties, int32_t *code_out);
queue_t clCreateCommandQueueWithProperties(context_t context, device_t device,
                                           const uint64_t *properties, int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : made(REAL(clCreateCommandQueueWithProperties)(context, device,
                                                                           properties, code_out),
                                  code_out, &queues);
}

EXPORT memory_t clCreateBuffer(context_t context, uint64_t flags, size_t size, void *pointer,
                               int32_t *code_out);
memory_t clCreateBuffer(context_t context, uint64_t flags, size_t size, void *pointer,
                        int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : made(REAL(clCreateBuffer)(context, flags, size, pointer, code_out),
                                  code_out, &memories);
}

EXPORT event_t clCreateUserEvent(context_t context, int32_t *code_out);
event_t clCreateUserEvent(context_t context, int32_t *code_out)
{
    return fails(__func__) ? refused(code_out)
                           : made(REAL(clCreateUserEvent)(context, code_out), code_out, &events);
}

EXPORT void *clSVMAlloc(context_t context, uint64_t flags, size_t size, uint32_t alignment);
void *clSVMAlloc(context_t context, uint64_t flags, size_t size, uint32_t alignment)
{
    return fails(__func__) ? NULL
                           : made(REAL(clSVMAlloc)(context, flags, size, alignment), NULL, &shared);
}

EXPORT void clSVMFree(context_t context, void *pointer);
void clSVMFree(context_t context, void *pointer)
{
    REAL(clSVMFree)(context, pointer);
    atomic_fetch_sub(&shared, 1);
}
