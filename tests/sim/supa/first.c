/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libsupa-runtime.so of SDK 1.x, according to the vendor's manual: functions su..., the
 * stream before the kind in the asynchronous copy, streams whose destruction waits for their work,
 * and one suFree() for device and pinned memory (suFreeHost() was added later, and is absent here).
 */
#include "common.h"

typedef int suError_t;
typedef int suMemcpyKind;
typedef int suStreamCaptureMode;
typedef int suStreamCaptureStatus;
typedef struct sim_stream *suStream_t;
typedef struct sim_event *suEvent_t;
typedef struct sim_graph *suTaskGraph_t;
typedef struct sim_graph *suTaskGraphExec_t;
typedef void (*suHostFn_t)(void *userData);

SIM_ASSERT(sizeof(suError_t) == 4 && sizeof(suMemcpyKind) == 4, "codes and kinds are ints");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

const struct rt_vendor rt_vendor = SUPA_VENDOR;

__attribute__((constructor)) static void load(void)
{
    sim_failure = OTHER;
}

/* ---- device --------------------------------------------------------------------------------- */

SIM_EXPORT suError_t suGetDeviceCount(int *count)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_count(count));
}

SIM_EXPORT suError_t suSetDevice(int device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_set_device(device));
}

SIM_EXPORT suError_t suGetDevice(int *device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_get_device(device));
}

SIM_EXPORT suError_t suDeviceSynchronize(void)
{
    RT_ENTER();
    return RT_RESULT(rt_device_synchronize());
}

SIM_EXPORT suError_t suDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    RT_ENTER_ANY();
    if (rt_device(device) == NULL || len < 13) {
        return RT_RESULT(INVALID_DEVICE);
    }
    snprintf(pciBusId, (size_t)len, "%s", rt_device(device)->pci_address);
    return 0;
}

SIM_EXPORT const char *suGetErrorName(suError_t error)
{
    static const char *const names[] = SUPA_NAMES("suError");

    SIM_ASSERT(sizeof(names) / sizeof(names[0]) == INSUFFICIENT_DRIVER - INVALID_VALUE + 1,
               "a name per code");
    if (error == 0) {
        return "suSuccess";
    }
    return error >= INVALID_VALUE && error <= INSUFFICIENT_DRIVER ? names[error - INVALID_VALUE]
                                                                  : "suErrorUnknown";
}

SIM_EXPORT suError_t suGetLastError(void)
{
    return rt_last_error(true);
}

SIM_EXPORT suError_t suDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_can_access_peer(canAccessPeer, device, peerDevice));
}

SIM_EXPORT suError_t suDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_enable_peer(peerDevice));
}

SIM_EXPORT suError_t suDeviceDisablePeerAccess(int peerDevice)
{
    RT_ENTER();
    return RT_RESULT(rt_disable_peer(peerDevice));
}

SIM_EXPORT suError_t suProfilerStart(void)
{
    RT_ENTER();
    return RT_RESULT(0);
}

SIM_EXPORT suError_t suProfilerStop(void)
{
    RT_ENTER();
    return RT_RESULT(0);
}

/* ---- memory --------------------------------------------------------------------------------- */

SIM_EXPORT suError_t suMemGetInfo(size_t *free, size_t *total)
{
    RT_ENTER();
    return RT_RESULT(rt_memory_info(free, total));
}

SIM_EXPORT suError_t suMallocDevice(void **devPtr, size_t size)
{
    RT_ENTER();
    return RT_RESULT(rt_malloc(devPtr, size));
}

/* Frees device and pinned memory. */
SIM_EXPORT suError_t suFree(void *ptr)
{
    struct sim_block block;

    RT_ENTER_ANY();
    return RT_RESULT(sim_find(ptr, &block) && block.kind == SIM_PINNED ? rt_host_free(ptr)
                                                                       : rt_free(ptr));
}

SIM_EXPORT suError_t suMallocHost(void **ptr, size_t size, unsigned flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 3 ? INVALID_VALUE : rt_host_alloc(ptr, size, flags));
}

SIM_EXPORT suError_t suRegisterHostMemory(void *ptr, size_t size, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 3 ? INVALID_VALUE : rt_host_register(ptr, size, flags));
}

SIM_EXPORT suError_t suUnregisterHostMemory(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_unregister(ptr));
}

SIM_EXPORT suError_t suHostGetDevicePointer(void **devPtr, void *hostPtr, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_host_device_pointer(devPtr, hostPtr));
}

SIM_EXPORT suError_t suMemcpyAsync(void *dst, const void *src, size_t size, suStream_t stream,
                                   suMemcpyKind kind)
{
    RT_ENTER();
    return RT_RESULT(rt_copy(dst, src, size, supa_kind(kind), stream));
}

SIM_EXPORT suError_t suMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                       size_t count, suStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy_peer(dst, dstDevice, src, srcDevice, count, stream));
}

SIM_EXPORT suError_t suMemsetAsync(void *ptr, int value, size_t count, suStream_t stream)
{
    unsigned char byte = (unsigned char)value;

    RT_ENTER();
    return RT_RESULT(rt_fill(ptr, &byte, 1, count, stream));
}

/* ---- streams, events, graphs ---------------------------------------------------------------- */

SIM_EXPORT suError_t suStreamCreateWithFlags(suStream_t *stream, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 1 ? INVALID_VALUE : rt_stream_create((void **)stream, flags == 1, 0));
}

SIM_EXPORT suError_t suStreamDestroy(suStream_t stream)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_stream_destroy(stream, true));
}

SIM_EXPORT suError_t suStreamSynchronize(suStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_synchronize(stream));
}

SIM_EXPORT suError_t suStreamQuery(suStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_query(stream));
}

SIM_EXPORT suError_t suStreamWaitEvent(suStream_t stream, suEvent_t event, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? INVALID_VALUE : rt_stream_wait_event(stream, event));
}

SIM_EXPORT suError_t suLaunchHostFunc(suStream_t stream, suHostFn_t fn, void *userData)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_task(stream, fn, userData));
}

SIM_EXPORT suError_t suEventCreateWithFlags(suEvent_t *event, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 7 ? INVALID_VALUE : rt_event_create((void **)event, flags));
}

SIM_EXPORT suError_t suEventRecord(suEvent_t event, suStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_event_record(event, stream));
}

SIM_EXPORT suError_t suEventQuery(suEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_query(event));
}

SIM_EXPORT suError_t suEventSynchronize(suEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_synchronize(event));
}

SIM_EXPORT suError_t suEventDestroy(suEvent_t event)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_event_destroy(event));
}

SIM_EXPORT suError_t suEventElapsedTime(float *ms, suEvent_t start, suEvent_t end)
{
    RT_ENTER();
    return RT_RESULT(rt_event_elapsed(ms, start, end));
}

SIM_EXPORT suError_t suStreamBeginCapture(suStream_t stream, suStreamCaptureMode mode)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_begin(stream, mode));
}

SIM_EXPORT suError_t suStreamIsCapturing(suStream_t stream, suStreamCaptureStatus *captureStatus)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_status(stream, captureStatus));
}

SIM_EXPORT suError_t suStreamEndCapture(suStream_t stream, suTaskGraph_t *graph)
{
    RT_ENTER();
    return RT_RESULT(rt_capture_end(stream, (void **)graph));
}

SIM_EXPORT suError_t suTaskGraphInstantiate(suTaskGraphExec_t *graphExec, suTaskGraph_t graph,
                                            void **errorNode, char *logBuffer, size_t bufferSize)
{
    RT_ENTER();
    return RT_RESULT(errorNode != NULL || logBuffer != NULL || bufferSize != 0
                         ? INVALID_VALUE
                         : rt_graph_instantiate((void **)graphExec, graph));
}

SIM_EXPORT suError_t suTaskGraphLaunch(suTaskGraphExec_t graphExec, suStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_graph_launch(graphExec, stream));
}

SIM_EXPORT suError_t suTaskGraphExecDestroy(suTaskGraphExec_t graphExec)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_exec_destroy(graphExec));
}

SIM_EXPORT suError_t suTaskGraphDestroy(suTaskGraph_t graph)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_graph_destroy(graph));
}
