/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libsdaart.so, by the prototypes of the current sdaa_runtime.h; first.c is a library
 * of the first generation, whose functions have the same names. A machine's devices are quarters of
 * cards: the devices of one card have the same "card" and "pci".
 */
#include "../runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    sdaaSuccess = 0,
    sdaaErrorInvalidValue = 1,
    sdaaErrorOutOfMemory = 2,
    sdaaErrorInvalidMemcpyDirection = 21,
    sdaaErrorNoDevice = 100,
    sdaaErrorInvalidDevice = 101,
    sdaaErrorInvalidHandle = 400,
    sdaaErrorNotReady = 600,
    sdaaErrorHostMemoryAlreadyRegistered = 712,
    sdaaErrorLaunchFailure = 719,
    sdaaErrorNotSupported = 801,
    sdaaErrorStreamCaptureUnsupported = 900,
    sdaaErrorUnknown = 999,
    sdaaErrorRuntimeOther = 1053
} sdaaError_t;
typedef int sdaaMemcpyKind;
typedef int sdaaDevice_t;
typedef struct sim_stream *sdaaStream_t;
typedef struct sim_event *sdaaEvent_t;
typedef void (*sdaaStreamCallback_t)(sdaaStream_t stream, sdaaError_t status, void *userData);
typedef struct {
    char reserved[64];
} sdaaIpcEventHandle_t;
typedef struct {
    char name[256];
    size_t totalGlobalMem;
    int chipsetID, pciDeviceID, pciVendor, pciBusID;
    int clockRate;
    char appended[1024]; /* members of newer runtimes */
} sdaaDeviceProp_t;

SIM_ASSERT(offsetof(sdaaDeviceProp_t, totalGlobalMem) == 256, "totalGlobalMem");
SIM_ASSERT(offsetof(sdaaDeviceProp_t, chipsetID) == 264, "chipsetID");
SIM_ASSERT(offsetof(sdaaDeviceProp_t, pciBusID) == 276, "pciBusID");
SIM_ASSERT(offsetof(sdaaDeviceProp_t, clockRate) == 280, "clockRate");
SIM_ASSERT(sizeof(sdaaIpcEventHandle_t) == 64, "sdaaIpcEventHandle_t");
SIM_ASSERT(RT_HOST_TO_HOST == 0 && RT_HOST_TO_DEVICE == 1 && RT_DEVICE_TO_HOST == 2 &&
               RT_DEVICE_TO_DEVICE == 3 && RT_DEFAULT == 4,
           "sdaaMemcpyKind");

static const char *const visible[] = {"SDAA_VISIBLE_DEVICES", NULL};

const struct rt_vendor rt_vendor = {
    .name = "sdaa",
    .order = "file",
    .visible = visible,
    .invalid_value = sdaaErrorInvalidValue,
    .out_of_memory = sdaaErrorOutOfMemory,
    .invalid_direction = sdaaErrorInvalidMemcpyDirection,
    .no_device = sdaaErrorNoDevice,
    .invalid_device = sdaaErrorInvalidDevice,
    .peer_unsupported = sdaaErrorNotSupported,
    .peer_enabled = sdaaErrorNotSupported,
    .peer_not_enabled = sdaaErrorNotSupported,
    .invalid_handle = sdaaErrorInvalidHandle,
    .illegal_state = sdaaErrorNotSupported,
    .not_ready = sdaaErrorNotReady,
    .lost = sdaaErrorLaunchFailure,
    .already_registered = sdaaErrorHostMemoryAlreadyRegistered,
    .not_registered = sdaaErrorInvalidValue,
    .not_supported = sdaaErrorNotSupported,
    .capture_unsupported = sdaaErrorStreamCaptureUnsupported,
    .capture_invalidated = sdaaErrorStreamCaptureUnsupported,
    .capture_implicit = sdaaErrorStreamCaptureUnsupported,
    .captured_event = sdaaErrorStreamCaptureUnsupported,
    .capture_wrong_thread = sdaaErrorStreamCaptureUnsupported,
    .update_failure = sdaaErrorNotSupported,
};

__attribute__((constructor)) static void load(void)
{
    sim_failure = sdaaErrorRuntimeOther;
}

#define SDAA(result) SIM_EXPORT result
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* ---- device --------------------------------------------------------------------------------- */

SDAA(sdaaError_t) sdaaGetDeviceCount(int *count)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_count(count));
}

SDAA(sdaaError_t) sdaaSetDevice(int device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_set_device(device));
}

SDAA(sdaaError_t) sdaaGetDevice(int *device)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_get_device(device));
}

SDAA(sdaaError_t) sdaaDeviceSynchronize(void)
{
    RT_ENTER();
    return RT_RESULT(rt_device_synchronize());
}

SDAA(sdaaError_t) sdaaGetDeviceProperties(sdaaDeviceProp_t *props, int device)
{
    const struct sim_device *it = rt_device(device);

    RT_ENTER_ANY();
    if (it == NULL) {
        return RT_RESULT(sdaaErrorInvalidDevice);
    }
    memset(props, 0x5a, sizeof(*props));
    memcpy(props->name, it->name, sizeof(it->name));
    props->totalGlobalMem = it->memory_bytes;
    props->chipsetID = 1;
    props->pciDeviceID = 0x071900a1;
    props->pciVendor = 0x0719;
    props->pciBusID = (int)it->pci_bus;
    props->clockRate = 2100000;
    return sdaaSuccess;
}

SDAA(const char *) sdaaGetErrorName(sdaaError_t error)
{
    switch (error) {
    case sdaaSuccess:
        return "sdaaSuccess";
    case sdaaErrorInvalidValue:
        return "sdaaErrorInvalidValue";
    case sdaaErrorOutOfMemory:
        return "sdaaErrorOutOfMemory";
    case sdaaErrorInvalidMemcpyDirection:
        return "sdaaErrorInvalidMemcpyDirection";
    case sdaaErrorNoDevice:
        return "sdaaErrorNoDevice";
    case sdaaErrorInvalidDevice:
        return "sdaaErrorInvalidDevice";
    case sdaaErrorInvalidHandle:
        return "sdaaErrorInvalidHandle";
    case sdaaErrorNotReady:
        return "sdaaErrorNotReady";
    case sdaaErrorLaunchFailure:
        return "sdaaErrorLaunchFailure";
    case sdaaErrorNotSupported:
        return "sdaaErrorNotSupported";
    case sdaaErrorRuntimeOther:
        return "sdaaErrorRuntimeOther";
    default:
        return "sdaaErrorUnknown";
    }
}

SDAA(sdaaError_t) sdaaGetLastError(void)
{
    return rt_last_error(true);
}

/* ---- memory --------------------------------------------------------------------------------- */

SDAA(sdaaError_t) sdaaMemGetInfo(size_t *free, size_t *total)
{
    RT_ENTER();
    return RT_RESULT(rt_memory_info(free, total));
}

SDAA(sdaaError_t) sdaaMalloc(void **ptr, size_t size)
{
    RT_ENTER();
    return RT_RESULT(rt_malloc(ptr, size));
}

SDAA(sdaaError_t) sdaaFree(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_free(ptr));
}

SDAA(sdaaError_t) sdaaMallocHost(void **ptr, size_t size)
{
    RT_ENTER();
    return RT_RESULT(rt_host_alloc(ptr, size, 0));
}

SDAA(sdaaError_t) sdaaFreeHost(void *ptr)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_host_free(ptr));
}

SDAA(sdaaError_t)
sdaaMemcpyAsync(void *dst, const void *src, size_t sizeBytes, sdaaMemcpyKind kind,
                sdaaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_copy(dst, src, sizeBytes, kind, stream));
}

SDAA(sdaaError_t) sdaaMemsetAsync(void *dst, int value, size_t sizeBytes, sdaaStream_t stream)
{
    unsigned char byte = (unsigned char)value;

    RT_ENTER();
    return RT_RESULT(rt_fill(dst, &byte, 1, sizeBytes, stream));
}

/* ---- streams and events --------------------------------------------------------------------- */

SDAA(sdaaError_t) sdaaStreamCreateWithFlags(sdaaStream_t *pStream, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 1 ? sdaaErrorInvalidValue
                               : rt_stream_create((void **)pStream, flags == 1, 0));
}

SDAA(sdaaError_t) sdaaStreamDestroy(sdaaStream_t stream)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_stream_destroy(stream, false));
}

SDAA(sdaaError_t) sdaaStreamSynchronize(sdaaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_synchronize(stream));
}

SDAA(sdaaError_t) sdaaStreamQuery(sdaaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_stream_query(stream));
}

SDAA(sdaaError_t) sdaaStreamWaitEvent(sdaaStream_t stream, sdaaEvent_t event, unsigned int flags)
{
    RT_ENTER();
    return RT_RESULT(flags != 0 ? sdaaErrorInvalidValue : rt_stream_wait_event(stream, event));
}

struct callback {
    sdaaStreamCallback_t call;
    sdaaStream_t stream;
    void *argument;
};

static void run_callback(void *argument)
{
    struct callback callback = *(struct callback *)argument;

    free(argument);
    callback.call(callback.stream, sdaaSuccess, callback.argument);
}

SDAA(sdaaError_t)
sdaaStreamAddCallback(sdaaStream_t stream, sdaaStreamCallback_t call, void *userData,
                      unsigned int flags)
{
    struct callback *callback;
    int code;

    RT_ENTER();
    if (flags != 0 || call == NULL) {
        return RT_RESULT(sdaaErrorInvalidValue);
    }
    callback = malloc(sizeof(*callback));
    if (callback == NULL) {
        return RT_RESULT(sdaaErrorOutOfMemory);
    }
    *callback = (struct callback){call, stream, userData};
    code = rt_stream_task(stream, run_callback, callback);
    if (code != 0) {
        free(callback);
    }
    return RT_RESULT(code);
}

SDAA(sdaaError_t) sdaaEventCreateWithFlags(sdaaEvent_t *event, unsigned flags)
{
    RT_ENTER();
    return RT_RESULT(flags > 7 ? sdaaErrorInvalidValue : rt_event_create((void **)event, flags));
}

SDAA(sdaaError_t) sdaaEventRecord(sdaaEvent_t event, sdaaStream_t stream)
{
    RT_ENTER();
    return RT_RESULT(rt_event_record(event, stream));
}

SDAA(sdaaError_t) sdaaEventQuery(sdaaEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_query(event));
}

SDAA(sdaaError_t) sdaaEventSynchronize(sdaaEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_event_synchronize(event));
}

SDAA(sdaaError_t) sdaaEventDestroy(sdaaEvent_t event)
{
    RT_ENTER_ANY();
    return RT_RESULT(rt_event_destroy(event));
}

SDAA(sdaaError_t) sdaaEventElapsedTime(float *ms, sdaaEvent_t start, sdaaEvent_t end)
{
    RT_ENTER();
    return RT_RESULT(rt_event_elapsed(ms, start, end));
}

SDAA(sdaaError_t) sdaaIpcGetEventHandle(sdaaIpcEventHandle_t *handle, sdaaEvent_t event)
{
    RT_ENTER();
    return RT_RESULT(rt_ipc_event_get(handle->reserved, event));
}

SDAA(sdaaError_t) sdaaIpcOpenEventHandle(sdaaEvent_t *event, sdaaIpcEventHandle_t handle)
{
    RT_ENTER();
    return RT_RESULT(rt_ipc_event_open((void **)event, handle.reserved));
}
