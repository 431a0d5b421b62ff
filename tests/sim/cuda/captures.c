/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Prints what the driver's functions do while a stream captures: captures LIBRARY. captures.txt is
 * the output on a GPU, with the driver's own library; test_cuda.sh checks that the simulated driver
 * prints the same.
 *
 * A line of the table has a call and twelve results:
 *
 *     CALL: GLOBAL THREAD_LOCAL RELAXED | ... | ... | ...
 *
 * Each group has a result for each mode of the capture. In the first group the thread that began
 * the capture makes the call, in the second group another thread does; in the third and fourth
 * group they do so with their own mode relaxed by cuThreadExchangeStreamCaptureMode(). A result is
 * the call's code, and what became of the capture: "+" it goes on, "!" it is broken, "." the stream
 * captures no more. Below the table are cases that need more than one call.
 */
#include "../../../plugins/cuda/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 16)
#define PAGE ((size_t)2 << 20)

static struct cuda_api api;
static int (*pointer_attribute)(void *data, int attribute, cu_pointer_t pointer);

/* What the calls use, made anew for each result. */
static struct {
    cu_context_t context;
    cu_stream_t captured;
    cu_stream_t other;    /* non-blocking */
    cu_stream_t blocking; /* waits for the legacy stream */
    cu_event_t event;     /* recorded on `other`, before the capture */
    cu_event_t timed[2];
    cu_event_t shared;   /* for other processes */
    cu_event_t inside;   /* recorded in the capture */
    cu_event_t unused;   /* never recorded */
    cu_event_t finished; /* recorded in a capture that has ended */
    cu_graph_t graph;
    cu_graph_t alike;
    cu_graph_exec_t exec;
    cu_pointer_t memory;
    cu_pointer_t pool_memory;
    cu_pointer_t range;
    cu_pointer_t mapped;
    cu_physical_t physical;
    cu_physical_t free_physical;
    void *pinned;
    char *pageable;
} it;

static cu_allocation_t how = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};

static void must(cu_result_t code, const char *what)
{
    if (code != CU_SUCCESS) {
        printf("captures: %s: %d\n", what, code);
        exit(1);
    }
}
#define MUST(call) must(api.call, #call)

static void nothing(void *argument)
{
    (void)argument;
}

/* ---- the calls ------------------------------------------------------------------------------ */

#define CALL(name, expression) \
    static int name(void) \
    { \
        return expression; \
    }

CALL(call_init, api.cuInit(0))
static int call_count(void)
{
    int count;

    return api.cuDeviceGetCount(&count);
}
static int call_attribute(void)
{
    int value;

    return api.cuDeviceGetAttribute(&value, CU_ATTRIBUTE_WARP_SIZE, 0);
}
static int call_total(void)
{
    size_t bytes;

    return api.cuDeviceTotalMem_v2(&bytes, 0);
}
static int call_retain(void)
{
    cu_context_t context;

    return api.cuDevicePrimaryCtxRetain(&context, 0);
}
static int call_release(void)
{
    MUST(cuDevicePrimaryCtxRetain(&it.context, 0));
    return api.cuDevicePrimaryCtxRelease_v2(0);
}
CALL(call_set_current, api.cuCtxSetCurrent(it.context))
CALL(call_push, api.cuCtxPushCurrent_v2(it.context))
static int call_pop(void)
{
    cu_context_t context;

    return api.cuCtxPopCurrent_v2(&context);
}
static int call_get_device(void)
{
    cu_device_t device;

    return api.cuCtxGetDevice(&device);
}
CALL(call_synchronize, api.cuCtxSynchronize())
static int call_priorities(void)
{
    int least;
    int greatest;

    return api.cuCtxGetStreamPriorityRange(&least, &greatest);
}
static int call_info(void)
{
    size_t free_bytes;
    size_t total;

    return api.cuMemGetInfo_v2(&free_bytes, &total);
}
static int call_alloc(void)
{
    cu_pointer_t pointer;

    return api.cuMemAlloc_v2(&pointer, BYTES);
}
CALL(call_free, api.cuMemFree_v2(it.memory))
static int call_host_alloc(void)
{
    void *pointer;

    return api.cuMemHostAlloc(&pointer, BYTES, 0);
}
CALL(call_host_free, api.cuMemFreeHost(it.pinned))
static int call_host_pointer(void)
{
    cu_pointer_t pointer;

    return api.cuMemHostGetDevicePointer_v2(&pointer, it.pinned, 0);
}
CALL(call_register, api.cuMemHostRegister_v2(it.pageable, 4096, 0))
CALL(call_unregister, api.cuMemHostUnregister(it.pageable + 8192))
static int call_managed(void)
{
    cu_pointer_t pointer;

    return api.cuMemAllocManaged(&pointer, BYTES, CU_ATTACH_GLOBAL);
}
static int call_pointer(void)
{
    int type = 0;

    return pointer_attribute(&type, 2, it.memory);
}
CALL(call_copy_other, api.cuMemcpyHtoDAsync_v2(it.memory, it.pinned, BYTES, it.other))
CALL(call_copy_pageable, api.cuMemcpyHtoDAsync_v2(it.memory, it.pageable + 16384, BYTES, it.other))
CALL(call_copy_blocking, api.cuMemcpyHtoDAsync_v2(it.memory, it.pinned, BYTES, it.blocking))
CALL(call_copy_legacy, api.cuMemcpyHtoDAsync_v2(it.memory, it.pinned, BYTES, NULL))
CALL(call_copy_captured, api.cuMemcpyHtoDAsync_v2(it.memory, it.pinned, BYTES, it.captured))
CALL(call_copy_captured_pageable,
     api.cuMemcpyHtoDAsync_v2(it.memory, it.pageable + 16384, BYTES, it.captured))
CALL(call_infer_captured, api.cuMemcpyAsync(it.memory, it.memory + BYTES / 2, 64, it.captured))
CALL(call_fill_other, api.cuMemsetD8Async(it.memory, 1, BYTES, it.other))
CALL(call_fill_legacy, api.cuMemsetD8Async(it.memory, 1, BYTES, NULL))
CALL(call_fill_captured, api.cuMemsetD8Async(it.memory, 1, BYTES, it.captured))
static int call_pool_alloc_other(void)
{
    cu_pointer_t pointer;

    return api.cuMemAllocAsync(&pointer, BYTES, it.other);
}
CALL(call_pool_free_other, api.cuMemFreeAsync(it.pool_memory, it.other))
CALL(call_pool_free_captured, api.cuMemFreeAsync(it.pool_memory, it.captured))
static int call_get_pool(void)
{
    cu_pool_t pool;

    return api.cuDeviceGetMemPool(&pool, 0);
}
static int call_trim(void)
{
    cu_pool_t pool;

    MUST(cuDeviceGetMemPool(&pool, 0));
    return api.cuMemPoolTrimTo(pool, 0);
}
static int call_stream_create(void)
{
    cu_stream_t stream;

    return api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
}
CALL(call_stream_destroy, api.cuStreamDestroy_v2(it.other))
CALL(call_wait_other, api.cuStreamSynchronize(it.other))
CALL(call_wait_captured, api.cuStreamSynchronize(it.captured))
CALL(call_wait_legacy, api.cuStreamSynchronize(NULL))
CALL(call_query_other, api.cuStreamQuery(it.other))
CALL(call_query_captured, api.cuStreamQuery(it.captured))
CALL(call_query_legacy, api.cuStreamQuery(NULL))
CALL(call_order_other, api.cuStreamWaitEvent(it.other, it.event, 0))
CALL(call_order_captured, api.cuStreamWaitEvent(it.captured, it.event, 0))
CALL(call_order_inside, api.cuStreamWaitEvent(it.captured, it.inside, 0))
CALL(call_order_unused, api.cuStreamWaitEvent(it.captured, it.unused, 0))
CALL(call_order_finished, api.cuStreamWaitEvent(it.captured, it.finished, 0))
CALL(call_order_finished_other, api.cuStreamWaitEvent(it.other, it.finished, 0))
CALL(call_order_legacy, api.cuStreamWaitEvent(NULL, it.event, 0))
CALL(call_task_other, api.cuLaunchHostFunc(it.other, nothing, NULL))
CALL(call_task_captured, api.cuLaunchHostFunc(it.captured, nothing, NULL))
static int call_event_create(void)
{
    cu_event_t event;

    return api.cuEventCreate(&event, 0);
}
CALL(call_event_destroy, api.cuEventDestroy_v2(it.event))
CALL(call_event_destroy_inside, api.cuEventDestroy_v2(it.inside))
CALL(call_record_other, api.cuEventRecord(it.event, it.other))
CALL(call_record_captured, api.cuEventRecord(it.event, it.captured))
CALL(call_record_shared, api.cuEventRecord(it.shared, it.captured))
CALL(call_record_legacy, api.cuEventRecord(it.event, NULL))
CALL(call_event_query, api.cuEventQuery(it.event))
CALL(call_event_query_inside, api.cuEventQuery(it.inside))
CALL(call_event_query_finished, api.cuEventQuery(it.finished))
CALL(call_event_wait, api.cuEventSynchronize(it.event))
CALL(call_event_wait_inside, api.cuEventSynchronize(it.inside))
CALL(call_event_wait_finished, api.cuEventSynchronize(it.finished))
static int call_elapsed(void)
{
    float milliseconds;

    return api.cuEventElapsedTime(&milliseconds, it.timed[0], it.timed[1]);
}
static int call_elapsed_inside(void)
{
    float milliseconds;

    return api.cuEventElapsedTime(&milliseconds, it.timed[0], it.inside);
}
static int begin_another(cu_stream_t stream, int mode)
{
    cu_graph_t graph = NULL;
    int code = api.cuStreamBeginCapture_v2(stream, mode);

    if (code == CU_SUCCESS) {
        api.cuStreamEndCapture(stream, &graph);
    }
    return code;
}
CALL(call_begin_other, begin_another(it.other, 0))
CALL(call_begin_captured, api.cuStreamBeginCapture_v2(it.captured, 0))
CALL(call_begin_legacy, api.cuStreamBeginCapture_v2(NULL, 0))
static int is_capturing(cu_stream_t stream)
{
    int status = 0;

    return api.cuStreamIsCapturing(stream, &status);
}
CALL(call_capturing_other, is_capturing(it.other))
CALL(call_capturing_captured, is_capturing(it.captured))
CALL(call_capturing_legacy, is_capturing(NULL))
static int call_end(void)
{
    cu_graph_t graph = NULL;

    return api.cuStreamEndCapture(it.captured, &graph);
}
static int call_instantiate(void)
{
    cu_graph_exec_t exec = NULL;

    return api.cuGraphInstantiateWithFlags(&exec, it.graph, 0);
}
CALL(call_launch_other, api.cuGraphLaunch(it.exec, it.other))
CALL(call_launch_captured, api.cuGraphLaunch(it.exec, it.captured))
static int call_update(void)
{
    cu_update_t result;

    memset(&result, 0, sizeof(result));
    return api.cuGraphExecUpdate_v2(it.exec, it.alike, &result);
}
CALL(call_exec_destroy, api.cuGraphExecDestroy(it.exec))
CALL(call_graph_destroy, api.cuGraphDestroy(it.graph))
static int call_nodes(void)
{
    size_t count = 0;

    return api.cuGraphGetNodes(it.graph, NULL, &count);
}
CALL(call_dot, api.cuGraphDebugDotPrint(it.graph, "/dev/null", 0))
static int call_reserve(void)
{
    cu_pointer_t address;

    return api.cuMemAddressReserve(&address, PAGE, 0, 0, 0);
}
CALL(call_unreserve, api.cuMemAddressFree(it.range, PAGE))
static int call_create(void)
{
    cu_physical_t memory;

    return api.cuMemCreate(&memory, PAGE, &how, 0);
}
CALL(call_physical_release, api.cuMemRelease(it.free_physical))
CALL(call_map, api.cuMemMap(it.range, PAGE, 0, it.free_physical, 0))
CALL(call_unmap, api.cuMemUnmap(it.mapped, PAGE))
static int call_access(void)
{
    static const cu_access_t access = {{CU_LOCATION_DEVICE, 0}, 3};

    return api.cuMemSetAccess(it.mapped, PAGE, &access, 1);
}
static int call_granularity(void)
{
    size_t bytes;

    return api.cuMemGetAllocationGranularity(&bytes, &how, CU_GRANULARITY_MINIMUM);
}
static int call_can_access(void)
{
    int can;

    return api.cuDeviceCanAccessPeer(&can, 0, 0);
}
static int call_memory_handle(void)
{
    cu_ipc_handle_t handle;

    return api.cuIpcGetMemHandle(&handle, it.memory);
}
static int call_event_handle(void)
{
    cu_ipc_handle_t handle;

    return api.cuIpcGetEventHandle(&handle, it.shared);
}
CALL(call_profiler_start, api.cuProfilerStart())
CALL(call_profiler_stop, api.cuProfilerStop())

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"cuInit", call_init},
    {"cuDeviceGetCount", call_count},
    {"cuDeviceGetAttribute", call_attribute},
    {"cuDeviceTotalMem", call_total},
    {"cuDevicePrimaryCtxRetain", call_retain},
    {"cuDevicePrimaryCtxRelease: not the last", call_release},
    {"cuCtxSetCurrent", call_set_current},
    {"cuCtxPushCurrent", call_push},
    {"cuCtxPopCurrent", call_pop},
    {"cuCtxGetDevice", call_get_device},
    {"cuCtxSynchronize", call_synchronize},
    {"cuCtxGetStreamPriorityRange", call_priorities},
    {"cuMemGetInfo", call_info},
    {"cuMemAlloc", call_alloc},
    {"cuMemFree", call_free},
    {"cuMemHostAlloc", call_host_alloc},
    {"cuMemFreeHost", call_host_free},
    {"cuMemHostGetDevicePointer", call_host_pointer},
    {"cuMemHostRegister", call_register},
    {"cuMemHostUnregister", call_unregister},
    {"cuMemAllocManaged", call_managed},
    {"cuPointerGetAttribute", call_pointer},
    {"cuMemcpyHtoDAsync: another stream", call_copy_other},
    {"cuMemcpyHtoDAsync: another stream, pageable", call_copy_pageable},
    {"cuMemcpyHtoDAsync: a blocking stream", call_copy_blocking},
    {"cuMemcpyHtoDAsync: the legacy stream", call_copy_legacy},
    {"cuMemcpyHtoDAsync: captured", call_copy_captured},
    {"cuMemcpyHtoDAsync: captured, pageable", call_copy_captured_pageable},
    {"cuMemcpyAsync: captured", call_infer_captured},
    {"cuMemsetD8Async: another stream", call_fill_other},
    {"cuMemsetD8Async: captured", call_fill_captured},
    {"cuMemAllocAsync: another stream", call_pool_alloc_other},
    {"cuMemFreeAsync: another stream", call_pool_free_other},
    {"cuMemFreeAsync: captured, memory of outside", call_pool_free_captured},
    {"cuDeviceGetMemPool", call_get_pool},
    {"cuMemPoolTrimTo", call_trim},
    {"cuStreamCreateWithPriority", call_stream_create},
    {"cuStreamDestroy: another stream", call_stream_destroy},
    {"cuStreamSynchronize: another stream", call_wait_other},
    {"cuStreamSynchronize: captured", call_wait_captured},
    {"cuStreamSynchronize: the legacy stream", call_wait_legacy},
    {"cuStreamQuery: another stream", call_query_other},
    {"cuStreamQuery: captured", call_query_captured},
    {"cuStreamQuery: the legacy stream", call_query_legacy},
    {"cuStreamWaitEvent: another stream", call_order_other},
    {"cuStreamWaitEvent: captured, event of outside", call_order_captured},
    {"cuStreamWaitEvent: captured, its own event", call_order_inside},
    {"cuStreamWaitEvent: captured, event never recorded", call_order_unused},
    {"cuStreamWaitEvent: captured, event of an ended capture", call_order_finished},
    {"cuStreamWaitEvent: another stream, the same", call_order_finished_other},
    {"cuStreamWaitEvent: the legacy stream", call_order_legacy},
    {"cuLaunchHostFunc: another stream", call_task_other},
    {"cuLaunchHostFunc: captured", call_task_captured},
    {"cuEventCreate", call_event_create},
    {"cuEventDestroy", call_event_destroy},
    {"cuEventDestroy: of the capture", call_event_destroy_inside},
    {"cuEventRecord: another stream", call_record_other},
    {"cuEventRecord: captured", call_record_captured},
    {"cuEventRecord: captured, for other processes", call_record_shared},
    {"cuEventRecord: the legacy stream", call_record_legacy},
    {"cuEventQuery", call_event_query},
    {"cuEventQuery: of the capture", call_event_query_inside},
    {"cuEventQuery: of an ended capture", call_event_query_finished},
    {"cuEventSynchronize", call_event_wait},
    {"cuEventSynchronize: of the capture", call_event_wait_inside},
    {"cuEventSynchronize: of an ended capture", call_event_wait_finished},
    {"cuEventElapsedTime", call_elapsed},
    {"cuEventElapsedTime: of the capture", call_elapsed_inside},
    {"cuStreamBeginCapture: another stream", call_begin_other},
    {"cuStreamBeginCapture: captured", call_begin_captured},
    {"cuStreamBeginCapture: the legacy stream", call_begin_legacy},
    {"cuStreamIsCapturing: another stream", call_capturing_other},
    {"cuStreamIsCapturing: captured", call_capturing_captured},
    {"cuStreamIsCapturing: the legacy stream", call_capturing_legacy},
    {"cuStreamEndCapture", call_end},
    {"cuGraphInstantiateWithFlags", call_instantiate},
    {"cuGraphLaunch: another stream", call_launch_other},
    {"cuGraphLaunch: captured", call_launch_captured},
    {"cuGraphExecUpdate", call_update},
    {"cuGraphExecDestroy", call_exec_destroy},
    {"cuGraphDestroy", call_graph_destroy},
    {"cuGraphGetNodes", call_nodes},
    {"cuGraphDebugDotPrint", call_dot},
    {"cuMemAddressReserve", call_reserve},
    {"cuMemAddressFree", call_unreserve},
    {"cuMemCreate", call_create},
    {"cuMemRelease", call_physical_release},
    {"cuMemMap", call_map},
    {"cuMemUnmap", call_unmap},
    {"cuMemSetAccess", call_access},
    {"cuMemGetAllocationGranularity", call_granularity},
    {"cuDeviceCanAccessPeer", call_can_access},
    {"cuIpcGetMemHandle", call_memory_handle},
    {"cuIpcGetEventHandle", call_event_handle},
    {"cuProfilerStart", call_profiler_start},
    {"cuProfilerStop", call_profiler_stop},
};

/* ---- the table ------------------------------------------------------------------------------ */

static cu_graph_t capture_fill(unsigned char value)
{
    cu_graph_t graph = NULL;

    MUST(cuStreamBeginCapture_v2(it.other, CU_CAPTURE_RELAXED));
    MUST(cuMemsetD8Async(it.memory, value, 64, it.other));
    MUST(cuEventRecord(it.finished, it.other));
    MUST(cuStreamEndCapture(it.other, &graph));
    return graph;
}

/* Leaks what the calls leave: the process ends with the table. */
static void prepare(void)
{
    static const cu_access_t access = {{CU_LOCATION_DEVICE, 0}, 3};

    MUST(cuStreamCreateWithPriority(&it.captured, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuStreamCreateWithPriority(&it.other, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuStreamCreateWithPriority(&it.blocking, 0, 0));
    MUST(cuEventCreate(&it.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&it.timed[0], 0));
    MUST(cuEventCreate(&it.timed[1], 0));
    MUST(cuEventCreate(&it.inside, 0));
    MUST(cuEventCreate(&it.unused, 0));
    MUST(cuEventCreate(&it.finished, 0));
    MUST(cuEventCreate(&it.shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    MUST(cuMemAlloc_v2(&it.memory, 2 * BYTES));
    MUST(cuMemAllocAsync(&it.pool_memory, BYTES, it.other));
    MUST(cuMemHostAlloc(&it.pinned, BYTES, 0));
    it.pageable = aligned_alloc(4096, 16384 + BYTES);
    MUST(cuMemHostRegister_v2(it.pageable + 8192, 4096, 0));
    it.graph = capture_fill(1);
    it.alike = capture_fill(2);
    MUST(cuGraphInstantiateWithFlags(&it.exec, it.graph, 0));
    MUST(cuMemAddressReserve(&it.range, PAGE, 0, 0, 0));
    MUST(cuMemAddressReserve(&it.mapped, PAGE, 0, 0, 0));
    MUST(cuMemCreate(&it.physical, PAGE, &how, 0));
    MUST(cuMemCreate(&it.free_physical, PAGE, &how, 0));
    MUST(cuMemMap(it.mapped, PAGE, 0, it.physical, 0));
    MUST(cuMemSetAccess(it.mapped, PAGE, &access, 1));
    MUST(cuEventRecord(it.event, it.other));
    MUST(cuEventRecord(it.timed[0], it.other));
    MUST(cuEventRecord(it.timed[1], it.other));
    MUST(cuCtxSynchronize());
}

struct caller {
    int (*call)(void);
    int relaxes;
    int code;
};

static void *make_call(void *argument)
{
    struct caller *caller = argument;
    int mode = CU_CAPTURE_RELAXED;

    if (caller->relaxes) {
        MUST(cuThreadExchangeStreamCaptureMode(&mode));
    }
    caller->code = caller->call();
    MUST(cuCtxSetCurrent(it.context)); /* the call may have popped it */
    if (caller->relaxes) {
        MUST(cuThreadExchangeStreamCaptureMode(&mode));
    }
    return NULL;
}

static void *call_beside(void *argument)
{
    MUST(cuCtxSetCurrent(it.context));
    return make_call(argument);
}

static char outcome(void)
{
    int status = 0;
    int code = api.cuStreamIsCapturing(it.captured, &status);

    return code != CU_SUCCESS ? '?' : status == 0 ? '.' : status == CU_CAPTURE_ACTIVE ? '+' : '!';
}

static void print_result(int (*call)(void), int is_beside, int relaxes, int mode)
{
    struct caller caller = {call, relaxes, 0};
    cu_graph_t graph = NULL;
    char after;

    prepare();
    MUST(cuStreamBeginCapture_v2(it.captured, mode));
    MUST(cuMemsetD8Async(it.memory, 1, 64, it.captured));
    MUST(cuEventRecord(it.inside, it.captured));
    if (is_beside) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, call_beside, &caller) != 0) {
            exit(1);
        }
        pthread_join(thread, NULL);
    } else {
        make_call(&caller);
    }
    after = outcome();
    if (after == '+' || after == '!') {
        api.cuStreamEndCapture(it.captured, &graph);
    }
    printf(" %d%c", caller.code, after);
}

static void print_line(size_t i)
{
    printf("%s:", calls[i].name);
    for (int column = 0; column < 4; column++) {
        printf("%s", column == 0 ? "" : " |");
        for (int mode = 0; mode <= CU_CAPTURE_RELAXED; mode++) {
            print_result(calls[i].call, column % 2, column / 2, mode);
        }
    }
    printf("\n");
}

/* ---- more than one call --------------------------------------------------------------------- */

static void begin(int mode)
{
    prepare();
    MUST(cuStreamBeginCapture_v2(it.captured, mode));
    MUST(cuMemsetD8Async(it.memory, 1, 64, it.captured));
    MUST(cuEventRecord(it.inside, it.captured));
}

static int on_a_thread(int (*call)(void))
{
    struct caller caller = {call, 0, 0};
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_beside, &caller) != 0) {
        exit(1);
    }
    pthread_join(thread, NULL);
    return caller.code;
}

/* Prints a call's code, and what became of the capture. */
static void print_step(const char *what, int code)
{
    printf(" %s %d%c", what, code, outcome());
}

static void print_code(const char *what, int code)
{
    printf(" %s %d", what, code);
}

static void print_ends(void)
{
    for (int mode = 0; mode <= CU_CAPTURE_RELAXED; mode++) {
        printf("ended by another thread, mode %d:", mode);
        begin(mode);
        print_step("end", on_a_thread(call_end));
        print_step("fill", call_fill_captured());
        print_step("end by its own", call_end());
        printf("\n");
    }
}

static void print_merge(void)
{
    cu_stream_t second = NULL;
    cu_graph_t graph = NULL;
    cu_event_t event = NULL;
    int status = 0;

    begin(CU_CAPTURE_RELAXED);
    MUST(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture_v2(second, CU_CAPTURE_RELAXED));
    MUST(cuMemsetD8Async(it.memory, 1, 64, second));
    MUST(cuEventRecord(event, second));
    printf("two captures:");
    print_step("a wait for the other's event", api.cuStreamWaitEvent(it.captured, event, 0));
    MUST(cuStreamIsCapturing(second, &status));
    print_code("status of the other", status);
    print_step("end", call_end());
    print_code("end of the other", api.cuStreamEndCapture(second, &graph));
    printf("\n");
}

static void print_forks(void)
{
    printf("a fork with work:");
    begin(CU_CAPTURE_RELAXED);
    MUST(cuStreamWaitEvent(it.other, it.inside, 0));
    MUST(cuMemsetD8Async(it.memory, 1, 64, it.other));
    print_step("end", call_end());
    printf("\na fork with work, destroyed:");
    begin(CU_CAPTURE_RELAXED);
    MUST(cuStreamWaitEvent(it.other, it.inside, 0));
    MUST(cuMemsetD8Async(it.memory, 1, 64, it.other));
    print_step("destroy", api.cuStreamDestroy_v2(it.other));
    print_step("end", call_end());
    printf("\na fork without work:");
    begin(CU_CAPTURE_RELAXED);
    MUST(cuStreamWaitEvent(it.other, it.inside, 0));
    print_step("begin on the fork", api.cuStreamBeginCapture_v2(it.other, 0));
    print_step("destroy", api.cuStreamDestroy_v2(it.other));
    print_step("end", call_end());
    printf("\nthe stream that captures:");
    begin(CU_CAPTURE_RELAXED);
    print_code("destroy", api.cuStreamDestroy_v2(it.captured));
    printf("\n");
}

/* A stream that the legacy stream waits for captures. */
static void print_implicit(void)
{
    int (*const uses[])(void) = {call_fill_legacy, call_capturing_legacy, call_query_legacy,
                                 call_wait_legacy, call_record_legacy,    call_order_legacy};
    const char *const names[] = {"fill",        "is it capturing", "query",
                                 "synchronize", "record",          "wait"};

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        printf("the legacy stream beside a blocking capture:");
        begin(CU_CAPTURE_RELAXED);
        MUST(cuStreamWaitEvent(it.blocking, it.inside, 0));
        print_step(names[i], uses[i]());
        print_step("end", call_end());
        printf("\n");
    }
}

static void print_events(void)
{
    float milliseconds;

    prepare();
    printf("an event of an ended capture:");
    print_code("wait", api.cuStreamWaitEvent(it.other, it.finished, 0));
    print_code("query", api.cuEventQuery(it.finished));
    print_code("synchronize", api.cuEventSynchronize(it.finished));
    print_code("elapsed", api.cuEventElapsedTime(&milliseconds, it.timed[0], it.finished));
    MUST(cuGraphLaunch(it.exec, it.other));
    MUST(cuStreamSynchronize(it.other));
    print_code("query after a launch", api.cuEventQuery(it.finished));
    print_code("record", api.cuEventRecord(it.finished, it.other));
    print_code("synchronize", api.cuEventSynchronize(it.finished));
    printf("\nan event never recorded:");
    print_code("query", api.cuEventQuery(it.unused));
    print_code("synchronize", api.cuEventSynchronize(it.unused));
    print_code("wait", api.cuStreamWaitEvent(it.other, it.unused, 0));
    print_code("elapsed", api.cuEventElapsedTime(&milliseconds, it.timed[0], it.unused));
    printf("\n");
}

static void print_handles(void)
{
    cu_ipc_handle_t handle;
    cu_event_t event = NULL;
    cu_pointer_t pointer = 0;

    prepare();
    printf("handles:");
    MUST(cuIpcGetEventHandle(&handle, it.shared));
    print_code("an event opened by its own process", api.cuIpcOpenEventHandle(&event, handle));
    MUST(cuIpcGetMemHandle(&handle, it.memory));
    print_code("memory opened by its own process",
               api.cuIpcOpenMemHandle_v2(&pointer, handle, CU_IPC_LAZY_PEER));
    print_code("export of pool memory", api.cuIpcGetMemHandle(&handle, it.pool_memory));
    print_code("of mapped memory", api.cuIpcGetMemHandle(&handle, it.mapped));
    print_code("of an event for one process", api.cuIpcGetEventHandle(&handle, it.event));
    printf("\n");
}

static void print_memory(void)
{
    cu_pointer_t pointer = 0;

    prepare();
    printf("freed:");
    print_code("memory", api.cuMemFree_v2(it.memory));
    print_code("again", api.cuMemFree_v2(it.memory));
    print_code("an address inside", api.cuMemFree_v2(it.pool_memory + 64));
    print_code("0", api.cuMemFree_v2(0));
    print_code("host memory", api.cuMemFree_v2((cu_pointer_t)(uintptr_t)it.pinned));
    printf("\nregistered:");
    print_code("again", api.cuMemHostRegister_v2(it.pageable + 8192, 4096, 0));
    print_code("a part", api.cuMemHostRegister_v2(it.pageable + 8192, 64, 0));
    print_code("unregistered, but not registered", api.cuMemHostUnregister(it.pageable));
    printf("\nsizes:");
    print_code("0 bytes of device memory", api.cuMemAlloc_v2(&pointer, 0));
    print_code("a fill of 0 elements", api.cuMemsetD8Async(it.range, 1, 0, it.other));
    print_code("at address 0", api.cuMemsetD8Async(0, 1, 0, it.other));
    print_code("a copy of 0 bytes", api.cuMemcpyHtoDAsync_v2(0, NULL, 0, it.other));
    print_code("a fill of unknown memory", api.cuMemsetD8Async(it.range, 1, 64, it.other));
    print_code("past the end", api.cuMemsetD8Async(it.pool_memory, 1, 1u << 30, it.other));
    printf("\naddresses:");
    print_code("part of a range freed", api.cuMemAddressFree(it.mapped, PAGE / 2));
    print_code("unmapped", api.cuMemUnmap(it.mapped, PAGE));
    print_code("mapped at an offset", api.cuMemMap(it.mapped, PAGE / 2, PAGE / 2, it.physical, 0));
    printf("\n");
}

/* Where the simulator is stricter than the driver, or lacks what the driver has: the test leaves
 * these lines out. */
static void print_more(void)
{
    cu_pointer_t pointer = 0;
    void *pinned = NULL;

    printf("not simulated:");
    begin(CU_CAPTURE_RELAXED);
    print_step("cuMemAllocAsync, captured", api.cuMemAllocAsync(&pointer, BYTES, it.captured));
    print_step("end", call_end());
    print_code("0 bytes of pinned memory", api.cuMemHostAlloc(&pinned, 0, 0));
    printf("%s", pinned == NULL ? " (NULL)" : "");
    MUST(cuMemUnmap(it.mapped, PAGE));
    print_code("unmapped again", api.cuMemUnmap(it.mapped, PAGE));
    printf("\n");
}

static void print_pointer(const char *name, cu_pointer_t pointer)
{
    unsigned int type = 0;
    int ordinal = -1;
    cu_pointer_t start = 0;
    size_t size = 0;
    int code = pointer_attribute(&type, 2, pointer);

    printf("%s: type %d %u", name, code, type);
    code = pointer_attribute(&ordinal, 9, pointer);
    printf(" ordinal %d %d", code, ordinal);
    code = pointer_attribute(&start, 11, pointer);
    printf(" offset %d %lld", code, code == 0 ? (long long)(pointer - start) : 0);
    code = pointer_attribute(&size, 12, pointer);
    printf(" size %d %zu\n", code, size);
}

static void print_pointers(void)
{
    prepare();
    print_pointer("device memory", it.memory);
    print_pointer("inside it", it.memory + 100);
    print_pointer("pool memory", it.pool_memory);
    print_pointer("pinned memory", (cu_pointer_t)(uintptr_t)it.pinned);
    print_pointer("inside pinned memory", (cu_pointer_t)(uintptr_t)it.pinned + 100);
    print_pointer("registered memory", (cu_pointer_t)(uintptr_t)(it.pageable + 8192));
    print_pointer("pageable memory", (cu_pointer_t)(uintptr_t)it.pageable);
    print_pointer("a reserved range", it.range);
    print_pointer("mapped memory", it.mapped);
    print_pointer("address 0", 0);
}

/* ---- main ----------------------------------------------------------------------------------- */

#define BIND(name) \
    { \
#name, (void (**)(void)) & api.name \
    }

static void start(const char *name)
{
    static const struct {
        const char *name;
        void (**place)(void);
    } symbols[] = {
        BIND(cuInit),
        BIND(cuDeviceGetCount),
        BIND(cuDeviceGetAttribute),
        BIND(cuDeviceTotalMem_v2),
        BIND(cuDevicePrimaryCtxRetain),
        BIND(cuDevicePrimaryCtxRelease_v2),
        BIND(cuCtxSetCurrent),
        BIND(cuCtxPushCurrent_v2),
        BIND(cuCtxPopCurrent_v2),
        BIND(cuCtxGetDevice),
        BIND(cuCtxSynchronize),
        BIND(cuCtxGetStreamPriorityRange),
        BIND(cuMemGetInfo_v2),
        BIND(cuMemAlloc_v2),
        BIND(cuMemFree_v2),
        BIND(cuMemHostAlloc),
        BIND(cuMemFreeHost),
        BIND(cuMemHostGetDevicePointer_v2),
        BIND(cuMemHostRegister_v2),
        BIND(cuMemHostUnregister),
        BIND(cuMemAllocManaged),
        BIND(cuMemcpyHtoDAsync_v2),
        BIND(cuMemcpyAsync),
        BIND(cuMemsetD8Async),
        BIND(cuMemAllocAsync),
        BIND(cuMemFreeAsync),
        BIND(cuDeviceGetMemPool),
        BIND(cuMemPoolTrimTo),
        BIND(cuStreamCreateWithPriority),
        BIND(cuStreamDestroy_v2),
        BIND(cuStreamSynchronize),
        BIND(cuStreamQuery),
        BIND(cuStreamWaitEvent),
        BIND(cuLaunchHostFunc),
        BIND(cuEventCreate),
        BIND(cuEventRecord),
        BIND(cuEventQuery),
        BIND(cuEventSynchronize),
        BIND(cuEventDestroy_v2),
        BIND(cuEventElapsedTime),
        BIND(cuThreadExchangeStreamCaptureMode),
        BIND(cuStreamBeginCapture_v2),
        BIND(cuStreamIsCapturing),
        BIND(cuStreamEndCapture),
        BIND(cuGraphInstantiateWithFlags),
        BIND(cuGraphLaunch),
        BIND(cuGraphExecUpdate_v2),
        BIND(cuGraphExecDestroy),
        BIND(cuGraphDestroy),
        BIND(cuGraphGetNodes),
        BIND(cuGraphDebugDotPrint),
        BIND(cuMemAddressReserve),
        BIND(cuMemAddressFree),
        BIND(cuMemCreate),
        BIND(cuMemRelease),
        BIND(cuMemMap),
        BIND(cuMemUnmap),
        BIND(cuMemSetAccess),
        BIND(cuMemGetAllocationGranularity),
        BIND(cuDeviceCanAccessPeer),
        BIND(cuIpcGetMemHandle),
        BIND(cuIpcOpenMemHandle_v2),
        BIND(cuIpcGetEventHandle),
        BIND(cuIpcOpenEventHandle),
        BIND(cuProfilerStart),
        BIND(cuProfilerStop),
    };
    int rdma = 0;
    void *library = dlopen(name, RTLD_NOW);

    if (library == NULL) {
        fprintf(stderr, "captures: %s\n", dlerror());
        exit(2);
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        if (address == NULL) {
            fprintf(stderr, "captures: no %s\n", symbols[i].name);
            exit(1);
        }
        memcpy(symbols[i].place, &address, sizeof(address));
    }
    *(void **)&pointer_attribute = dlsym(library, "cuPointerGetAttribute");
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&it.context, 0));
    MUST(cuCtxSetCurrent(it.context));
    MUST(cuDeviceGetAttribute(&rdma, CU_ATTRIBUTE_RDMA_WITH_VIRTUAL_MEMORY, 0));
    how.rdma_capable = (unsigned char)rdma;
}

/* Each line is printed by a process of its own, since a call may leave the driver in any state. */
int main(int argc, char **argv)
{
    static void (*const cases[])(void) = {print_ends,     print_merge,  print_forks,
                                          print_implicit, print_events, print_handles,
                                          print_memory,   print_more,   print_pointers};
    size_t lines = sizeof(calls) / sizeof(calls[0]);

    if (argc != 2) {
        fprintf(stderr, "usage: captures LIBRARY\n");
        return 2;
    }
    for (size_t i = 0; i < lines + sizeof(cases) / sizeof(cases[0]); i++) {
        pid_t child;
        int status = 0;

        fflush(stdout);
        child = fork();
        if (child == 0) {
            start(argv[1]);
            if (i < lines) {
                print_line(i);
            } else {
                cases[i - lines]();
            }
            fflush(stdout);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) {
            return 1;
        }
        if (status != 0) {
            printf(" ended with status 0x%x\n", (unsigned)status);
        }
    }
    return 0;
}
