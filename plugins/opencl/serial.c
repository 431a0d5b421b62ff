/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Serializes the calls of a runtime.
 *
 * Since 1.1, OpenCL lets any thread make calls. oclgrind 21.10 does not support that: it crashes
 * when two threads each use a queue. For this platform, the functions in this file, which share a
 * lock, replace the runtime's functions. The lock is recursive, because such a runtime invokes
 * callbacks on the calling thread.
 *
 * clSetUserEventStatus() does not acquire the lock: a thread that holds the lock may wait in
 * clFlush() or clFinish() for that call. The thread of a stream's tasks calls only
 * clSetUserEventStatus() (task.c), except for copies between devices, and oclgrind has one device.
 * A task that waits for another thread's call waits forever; a runtime that executes a queue within
 * clFlush() has this problem in any case.
 */
#include "opencl.h"

static pthread_mutex_t lock; /* serializes the calls; initialized at first use */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static void *serialized; /* the library whose functions are in real */
static struct cl_calls real;

#define CODE(name, parameters, arguments) \
    static int32_t serial_##name parameters \
    { \
        int32_t code; \
\
        pthread_mutex_lock(&lock); \
        code = real.name arguments; \
        pthread_mutex_unlock(&lock); \
        return code; \
    }
#define MADE(type, name, parameters, arguments) \
    static type serial_##name parameters \
    { \
        type object; \
\
        pthread_mutex_lock(&lock); \
        object = real.name arguments; \
        pthread_mutex_unlock(&lock); \
        return object; \
    }

CODE(clGetPlatformIDs, (uint32_t room, cl_platform *platforms, uint32_t *count_out),
     (room, platforms, count_out))
CODE(clGetPlatformInfo,
     (cl_platform platform, uint32_t name, size_t size, void *value, size_t *size_out),
     (platform, name, size, value, size_out))
CODE(clGetDeviceIDs,
     (cl_platform platform, uint64_t type, uint32_t room, cl_device *devices, uint32_t *count_out),
     (platform, type, room, devices, count_out))
CODE(clGetDeviceInfo, (cl_device device, uint32_t name, size_t size, void *value, size_t *size_out),
     (device, name, size, value, size_out))
MADE(cl_context, clCreateContext,
     (const intptr_t *properties, uint32_t device_count, const cl_device *devices,
      void (*notify)(const char *text, const void *details, size_t size, void *user_data),
      void *user_data, int32_t *code_out),
     (properties, device_count, devices, notify, user_data, code_out))
CODE(clRetainContext, (cl_context context), (context))
CODE(clReleaseContext, (cl_context context), (context))
CODE(clGetContextInfo,
     (cl_context context, uint32_t name, size_t size, void *value, size_t *size_out),
     (context, name, size, value, size_out))
MADE(cl_queue, clCreateCommandQueue,
     (cl_context context, cl_device device, uint64_t properties, int32_t *code_out),
     (context, device, properties, code_out))
MADE(cl_queue, clCreateCommandQueueWithProperties,
     (cl_context context, cl_device device, const uint64_t *properties, int32_t *code_out),
     (context, device, properties, code_out))
CODE(clRetainCommandQueue, (cl_queue queue), (queue))
CODE(clReleaseCommandQueue, (cl_queue queue), (queue))
CODE(clGetCommandQueueInfo,
     (cl_queue queue, uint32_t name, size_t size, void *value, size_t *size_out),
     (queue, name, size, value, size_out))
MADE(cl_mem, clCreateBuffer,
     (cl_context context, uint64_t flags, size_t size, void *host_pointer, int32_t *code_out),
     (context, flags, size, host_pointer, code_out))
CODE(clRetainMemObject, (cl_mem memory), (memory))
CODE(clReleaseMemObject, (cl_mem memory), (memory))
CODE(clGetMemObjectInfo, (cl_mem memory, uint32_t name, size_t size, void *value, size_t *size_out),
     (memory, name, size, value, size_out))
CODE(clEnqueueReadBuffer,
     (cl_queue queue, cl_mem source, uint32_t is_blocking, size_t offset, size_t size,
      void *destination, uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, source, is_blocking, offset, size, destination, wait_count, waits, event_out))
CODE(clEnqueueWriteBuffer,
     (cl_queue queue, cl_mem destination, uint32_t is_blocking, size_t offset, size_t size,
      const void *source, uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, destination, is_blocking, offset, size, source, wait_count, waits, event_out))
CODE(clEnqueueCopyBuffer,
     (cl_queue queue, cl_mem source, cl_mem destination, size_t source_offset,
      size_t destination_offset, size_t size, uint32_t wait_count, const cl_event *waits,
      cl_event *event_out),
     (queue, source, destination, source_offset, destination_offset, size, wait_count, waits,
      event_out))
CODE(clEnqueueFillBuffer,
     (cl_queue queue, cl_mem destination, const void *pattern, size_t pattern_size, size_t offset,
      size_t size, uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, destination, pattern, pattern_size, offset, size, wait_count, waits, event_out))
MADE(void *, clEnqueueMapBuffer,
     (cl_queue queue, cl_mem memory, uint32_t is_blocking, uint64_t flags, size_t offset,
      size_t size, uint32_t wait_count, const cl_event *waits, cl_event *event_out,
      int32_t *code_out),
     (queue, memory, is_blocking, flags, offset, size, wait_count, waits, event_out, code_out))
CODE(clEnqueueUnmapMemObject,
     (cl_queue queue, cl_mem memory, void *mapped, uint32_t wait_count, const cl_event *waits,
      cl_event *event_out),
     (queue, memory, mapped, wait_count, waits, event_out))
CODE(clEnqueueMarkerWithWaitList,
     (cl_queue queue, uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, wait_count, waits, event_out))
CODE(clEnqueueBarrierWithWaitList,
     (cl_queue queue, uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, wait_count, waits, event_out))
CODE(clFlush, (cl_queue queue), (queue))
CODE(clFinish, (cl_queue queue), (queue))
CODE(clWaitForEvents, (uint32_t count, const cl_event *events), (count, events))
CODE(clGetEventInfo, (cl_event event, uint32_t name, size_t size, void *value, size_t *size_out),
     (event, name, size, value, size_out))
CODE(clGetEventProfilingInfo,
     (cl_event event, uint32_t name, size_t size, void *value, size_t *size_out),
     (event, name, size, value, size_out))
CODE(clRetainEvent, (cl_event event), (event))
CODE(clReleaseEvent, (cl_event event), (event))
MADE(cl_event, clCreateUserEvent, (cl_context context, int32_t *code_out), (context, code_out))
MADE(void *, clSVMAlloc, (cl_context context, uint64_t flags, size_t size, uint32_t align),
     (context, flags, size, align))
CODE(clEnqueueSVMMemcpy,
     (cl_queue queue, uint32_t is_blocking, void *destination, const void *source, size_t size,
      uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, is_blocking, destination, source, size, wait_count, waits, event_out))
CODE(clEnqueueSVMMemFill,
     (cl_queue queue, void *destination, const void *pattern, size_t pattern_size, size_t size,
      uint32_t wait_count, const cl_event *waits, cl_event *event_out),
     (queue, destination, pattern, pattern_size, size, wait_count, waits, event_out))
/*
 * oclgrind does not invoke the callback for an event that is already complete, so the function
 * invokes it.
 */
static int32_t serial_clSetEventCallback(cl_event event, int32_t state,
                                         void (*notify)(cl_event event, int32_t status,
                                                        void *user_data),
                                         void *user_data)
{
    int32_t status = CL_COMPLETE;
    int32_t code;

    pthread_mutex_lock(&lock);
    code = real.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                               NULL);
    if (code == CL_SUCCESS && status > CL_COMPLETE) {
        code = real.clSetEventCallback(event, state, notify, user_data);
    }
    pthread_mutex_unlock(&lock);
    if (code == CL_SUCCESS && status <= CL_COMPLETE) {
        notify(event, status, user_data);
    }
    return code;
}

static void serial_clSVMFree(cl_context context, void *pointer)
{
    pthread_mutex_lock(&lock);
    real.clSVMFree(context, pointer);
    pthread_mutex_unlock(&lock);
}

static const struct cl_calls serial = {
    .clGetPlatformIDs = serial_clGetPlatformIDs,
    .clGetPlatformInfo = serial_clGetPlatformInfo,
    .clGetDeviceIDs = serial_clGetDeviceIDs,
    .clGetDeviceInfo = serial_clGetDeviceInfo,
    .clCreateContext = serial_clCreateContext,
    .clRetainContext = serial_clRetainContext,
    .clReleaseContext = serial_clReleaseContext,
    .clGetContextInfo = serial_clGetContextInfo,
    .clCreateCommandQueue = serial_clCreateCommandQueue,
    .clCreateCommandQueueWithProperties = serial_clCreateCommandQueueWithProperties,
    .clRetainCommandQueue = serial_clRetainCommandQueue,
    .clReleaseCommandQueue = serial_clReleaseCommandQueue,
    .clGetCommandQueueInfo = serial_clGetCommandQueueInfo,
    .clCreateBuffer = serial_clCreateBuffer,
    .clRetainMemObject = serial_clRetainMemObject,
    .clReleaseMemObject = serial_clReleaseMemObject,
    .clGetMemObjectInfo = serial_clGetMemObjectInfo,
    .clEnqueueReadBuffer = serial_clEnqueueReadBuffer,
    .clEnqueueWriteBuffer = serial_clEnqueueWriteBuffer,
    .clEnqueueCopyBuffer = serial_clEnqueueCopyBuffer,
    .clEnqueueFillBuffer = serial_clEnqueueFillBuffer,
    .clEnqueueMapBuffer = serial_clEnqueueMapBuffer,
    .clEnqueueUnmapMemObject = serial_clEnqueueUnmapMemObject,
    .clEnqueueMarkerWithWaitList = serial_clEnqueueMarkerWithWaitList,
    .clEnqueueBarrierWithWaitList = serial_clEnqueueBarrierWithWaitList,
    .clFlush = serial_clFlush,
    .clFinish = serial_clFinish,
    .clWaitForEvents = serial_clWaitForEvents,
    .clGetEventInfo = serial_clGetEventInfo,
    .clGetEventProfilingInfo = serial_clGetEventProfilingInfo,
    .clRetainEvent = serial_clRetainEvent,
    .clReleaseEvent = serial_clReleaseEvent,
    .clCreateUserEvent = serial_clCreateUserEvent,
    .clSetEventCallback = serial_clSetEventCallback,
    .clSVMAlloc = serial_clSVMAlloc,
    .clSVMFree = serial_clSVMFree,
    .clEnqueueSVMMemcpy = serial_clEnqueueSVMMemcpy,
    .clEnqueueSVMMemFill = serial_clEnqueueSVMMemFill,
};

static int start(struct opencl_runtime *runtime)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    real = runtime->cl;
    serialized = runtime->lib.handle;
    return 0;
}

/*
 * Sets clCreateCommandQueueWithProperties to NULL if the library lacks it, and clSVMAlloc if the
 * library lacks any of the four functions for shared virtual memory: the plugin uses none of them
 * without clSVMAlloc.
 */
static void keep_absent(struct cl_calls *calls, const struct cl_calls *own)
{
    if (own->clCreateCommandQueueWithProperties == NULL) {
        calls->clCreateCommandQueueWithProperties = NULL;
    }
    if (own->clSVMAlloc == NULL || own->clSVMFree == NULL || own->clEnqueueSVMMemcpy == NULL ||
        own->clEnqueueSVMMemFill == NULL) {
        calls->clSVMAlloc = NULL;
    }
}

int opencl_serialize(struct opencl_runtime *runtime)
{
    const struct cl_calls own = runtime->cl;
    int result = 0;

    pthread_mutex_lock(&start_lock);
    if (serialized == NULL) {
        result = start(runtime);
    } else if (serialized != runtime->lib.handle) {
        result = -1;
    }
    if (result == 0) {
        runtime->cl = serial;
        runtime->cl.clSetUserEventStatus = own.clSetUserEventStatus;
        keep_absent(&runtime->cl, &own);
    }
    pthread_mutex_unlock(&start_lock);
    return result;
}
