/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libsupa-runtime.so of SDK 2.x, according to code that calls it: CUDA's runtime with
 * the prefix supa, the kind before the stream. It also exports functions su... of the driver, which
 * have the same names as functions of the 1.x runtime: the plugin must never call them.
 */
#include "common.h"

typedef int supaError_t;
typedef int supaMemcpyKind;
typedef int supaStreamCaptureMode;
typedef int supaStreamCaptureStatus;
typedef struct sim_stream *supaStream_t;
typedef struct sim_event *supaEvent_t;
typedef struct sim_graph *supaGraph_t;
typedef struct sim_graph *supaGraphExec_t;
typedef void (*supaHostFn_t)(void *userData);

SIM_ASSERT(sizeof(supaError_t) == 4 && sizeof(supaMemcpyKind) == 4, "codes and kinds are ints");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

const struct rt_vendor rt_vendor = SUPA_VENDOR;

__attribute__((constructor)) static void load(void)
{
    sim_failure = OTHER;
}

/* ---- device --------------------------------------------------------------------------------- */

SIM_EXPORT supaError_t supaGetDeviceCount(int *count)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_count(count));
}

SIM_EXPORT supaError_t supaSetDevice(int device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_set_device(device));
}

SIM_EXPORT supaError_t supaGetDevice(int *device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_get_device(device));
}

SIM_EXPORT supaError_t supaDeviceSynchronize(void)
{
    RT_ENTER();
    return RT_RESULT(rt_device_synchronize());
}

SIM_EXPORT supaError_t supaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL || len < 13) {
        return RT_RESULT(INVALID_DEVICE);
    }
    snprintf(pciBusId, (size_t)len, "%s", rt_device(device)->pci_address);
    return 0;
}

SIM_EXPORT const char *supaGetErrorString(supaError_t error)
{
    return error == 0 ? "no error" : "something went wrong";
}

#ifndef SUPA_UNNAMED
SIM_EXPORT const char *supaGetErrorName(supaError_t error)
{
    static const char *const names[] = SUPA_NAMES("supaError");

    SIM_ASSERT(sizeof(names) / sizeof(names[0]) == INSUFFICIENT_DRIVER - INVALID_VALUE + 1,
               "a name per code");
    if (error == 0) {
        return "supaSuccess";
    }
    return error >= INVALID_VALUE && error <= INSUFFICIENT_DRIVER ? names[error - INVALID_VALUE]
                                                                  : "supaErrorUnknown";
}
#endif

SIM_EXPORT supaError_t supaGetLastError(void)
{
    return rt_last_error(true);
}

SIM_EXPORT supaError_t supaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_can_access_peer(canAccessPeer, device, peerDevice));
}

SIM_EXPORT supaError_t supaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_enable_peer(peerDevice));
}

SIM_EXPORT supaError_t supaDeviceDisablePeerAccess(int peerDevice)
{
    RT_ENTER();
    return RT_RESULT(rt_disable_peer(peerDevice));
}

SIM_EXPORT supaError_t supaProfilerStart(void)
{
    RT_ENTER();
    return RT_RESULT(0);
}

SIM_EXPORT supaError_t supaProfilerStop(void)
{
    RT_ENTER();
    return RT_RESULT(0);
}

/* ---- memory --------------------------------------------------------------------------------- */

SIM_EXPORT supaError_t supaMemGetInfo(size_t *free, size_t *total)
{
    RT_ENTER();
    return RT_RESULT(rt_memory_info(free, total));
}

SIM_EXPORT supaError_t supaMalloc(void **devPtr, size_t size)
{
    RT_ENTER();
    return RT_RESULT(rt_malloc(devPtr, size));
}

SIM_EXPORT supaError_t supaFree(void *devPtr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_free(devPtr));
}

SIM_EXPORT supaError_t supaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 3 ? INVALID_VALUE : rt_host_alloc(ptr, size, flags));
}

SIM_EXPORT supaError_t supaFreeHost(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_free(ptr));
}

SIM_EXPORT supaError_t supaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 3 ? INVALID_VALUE : rt_host_register(ptr, size, flags));
}

SIM_EXPORT supaError_t supaHostUnregister(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_unregister(ptr));
}

SIM_EXPORT supaError_t supaHostGetDevicePointer(void **devPtr, void *hostPtr, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_host_device_pointer(devPtr, hostPtr));
}

SIM_EXPORT supaError_t supaMemcpyAsync(void *dst, const void *src, size_t count,
                                       supaMemcpyKind kind, supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy(dst, src, count, supa_kind(kind), stream));
}

SIM_EXPORT supaError_t supaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                           size_t count, supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy_peer(dst, dstDevice, src, srcDevice, count, stream));
}

SIM_EXPORT supaError_t supaMemsetAsync(void *ptr, int value, size_t count, supaStream_t stream)
{
    unsigned char byte = (unsigned char)value;

    RT_ENTER();
    return RT_RESULT(rt_fill(ptr, &byte, 1, count, stream));
}

/* ---- streams, events, graphs ---------------------------------------------------------------- */

SIM_EXPORT supaError_t supaStreamCreateWithFlags(supaStream_t *stream, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 1 ? INVALID_VALUE : rt_stream_create((void **)stream, flags == 1, 0));
}

SIM_EXPORT supaError_t supaStreamDestroy(supaStream_t stream)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_stream_destroy(stream, false));
}

SIM_EXPORT supaError_t supaStreamSynchronize(supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_synchronize(stream));
}

SIM_EXPORT supaError_t supaStreamQuery(supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_query(stream));
}

SIM_EXPORT supaError_t supaStreamWaitEvent(supaStream_t stream, supaEvent_t event,
                                           unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_stream_wait_event(stream, event));
}

SIM_EXPORT supaError_t supaLaunchHostFunc(supaStream_t stream, supaHostFn_t fn, void *userData)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_task(stream, fn, userData));
}

SIM_EXPORT supaError_t supaEventCreateWithFlags(supaEvent_t *event, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 7 ? INVALID_VALUE : rt_event_create((void **)event, flags));
}

SIM_EXPORT supaError_t supaEventRecord(supaEvent_t event, supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_event_record(event, stream));
}

SIM_EXPORT supaError_t supaEventQuery(supaEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_query(event));
}

SIM_EXPORT supaError_t supaEventSynchronize(supaEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_synchronize(event));
}

SIM_EXPORT supaError_t supaEventDestroy(supaEvent_t event)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_event_destroy(event));
}

SIM_EXPORT supaError_t supaEventElapsedTime(float *ms, supaEvent_t start, supaEvent_t end)
{
    RT_ENTER();
    return RT_RESULT(rt_event_elapsed(ms, start, end));
}

SIM_EXPORT supaError_t supaStreamBeginCapture(supaStream_t stream, supaStreamCaptureMode mode)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_begin(stream, mode));
}

SIM_EXPORT supaError_t supaStreamIsCapturing(supaStream_t stream,
                                             supaStreamCaptureStatus *captureStatus)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_status(stream, captureStatus));
}

SIM_EXPORT supaError_t supaStreamEndCapture(supaStream_t stream, supaGraph_t *graph)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_end(stream, (void **)graph));
}

SIM_EXPORT supaError_t supaGraphInstantiateWithFlags(supaGraphExec_t *graphExec, supaGraph_t graph,
                                                     unsigned long long flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_graph_instantiate((void **)graphExec, graph));
}

SIM_EXPORT supaError_t supaGraphLaunch(supaGraphExec_t graphExec, supaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_graph_launch(graphExec, stream));
}

SIM_EXPORT supaError_t supaGraphExecDestroy(supaGraphExec_t graphExec)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_exec_destroy(graphExec));
}

SIM_EXPORT supaError_t supaGraphDestroy(supaGraph_t graph)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_destroy(graph));
}

/* ---- the driver's functions with names of 1.x ------------------------------------------------ */

SIM_EXPORT int suDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)value;
    sim_misuse("suDeviceGetAttribute(%d, %d): the driver's, called as if it were the runtime's",
               attribute, device);
}

SIM_EXPORT int suGetErrorName(int error, const char **name)
{
    (void)name;
    sim_misuse("suGetErrorName(%d): the driver's, called as if it were the runtime's", error);
}
