/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The rules of the CUDA driver that its simulator enforces: `cuda CASE`, run by test_engine.sh. */
#include "../cuda/cuda_abi.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536u

static void check(long given, long wanted, const char *text, int line)
{
    if (given != wanted) {
        fprintf(stderr, "cuda.c:%d: %s is %ld, not %ld\n", line, text, given, wanted);
        exit(1);
    }
}
#define IS(wanted, expression) check((long)(expression), (long)(wanted), #expression, __LINE__)

int nvmlInit_v2(void);
int nvmlShutdown(void);

static CUcontext contexts[2];
static unsigned char host[2][SIZE];

static void begin(void)
{
    IS(OK, cuInit(0));
    IS(OK, cuDevicePrimaryCtxRetain(&contexts[0], 0));
    IS(OK, cuDevicePrimaryCtxRetain(&contexts[1], 1));
    IS(OK, cuCtxSetCurrent(contexts[0]));
    for (size_t i = 0; i < SIZE; i++) {
        host[0][i] = (unsigned char)(i * 5 + 3);
    }
}

static void end(void)
{
    IS(OK, cuDevicePrimaryCtxRelease_v2(0));
    IS(OK, cuDevicePrimaryCtxRelease_v2(1));
}

static CUdeviceptr allocate(size_t size)
{
    CUdeviceptr pointer = 0;

    IS(OK, cuMemAlloc_v2(&pointer, size));
    IS(0, pointer % 256);
    return pointer;
}

static CUstream make_stream(unsigned flags)
{
    CUstream stream;

    IS(OK, cuStreamCreate(&stream, flags));
    return stream;
}

static CUevent make_event(unsigned flags)
{
    CUevent event;

    IS(OK, cuEventCreate(&event, flags));
    return event;
}

/* ---- start and contexts --------------------------------------------------------------------- */

static void calls_need_a_start_and_a_context(void)
{
    int count = 77, version = 0;
    CUdeviceptr pointer;
    CUcontext context, popped;
    unsigned flags;
    int active;

    IS(OK, cuDriverGetVersion(&version));
    IS(13000, version);
    IS(NOT_INITIALIZED, cuDeviceGetCount(&count));
    IS(77, count);
    IS(INVALID_VALUE, cuInit(1));
    IS(OK, cuInit(0));
    IS(OK, cuDeviceGetCount(&count));
    IS(2, count);
    IS(INVALID_DEVICE, cuDeviceGet(&active, 2));
    IS(INVALID_CONTEXT, cuMemAlloc_v2(&pointer, 16));
    IS(INVALID_CONTEXT, cuCtxPopCurrent_v2(NULL));
    IS(OK, cuDevicePrimaryCtxRetain(&context, 1));
    IS(INVALID_CONTEXT, cuCtxSynchronize());
    IS(OK, cuCtxPushCurrent_v2(context));
    IS(OK, cuCtxGetDevice(&count));
    IS(1, count);
    IS(OK, cuMemAlloc_v2(&pointer, 16));
    IS(OK, cuMemFree_v2(pointer));
    IS(OK, cuDevicePrimaryCtxGetState(1, &flags, &active));
    IS(1, active);
    IS(OK, cuDevicePrimaryCtxRelease_v2(1));
    IS(CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    IS(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(1));
    IS(OK, cuCtxPopCurrent_v2(&popped));
    IS(1, popped == context);
    IS(INVALID_CONTEXT, cuMemAlloc_v2(&pointer, 16));
}

static void *other_thread(void *unused)
{
    CUcontext context = contexts[1];
    CUdeviceptr pointer;

    IS(OK, cuCtxGetCurrent(&context));
    IS(1, context == NULL);
    IS(INVALID_CONTEXT, cuMemAlloc_v2(&pointer, 16));
    return unused;
}

static void a_context_is_a_threads(void)
{
    pthread_t thread;

    begin();
    IS(0, pthread_create(&thread, NULL, other_thread, NULL));
    IS(0, pthread_join(thread, NULL));
    end();
}

/* Forks, and returns the child's exit status: the code of cuInit in the child. */
static int start_in_child(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(cuInit(0));
    }
    IS(child, waitpid(child, &status, 0));
    IS(1, WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_child_cannot_use_what_its_parent_started(void)
{
    int version;

    IS(OK, cuDriverGetVersion(&version));
    IS(OK, nvmlInit_v2());
    IS(OK, nvmlShutdown());
    IS(OK, start_in_child());
    IS(OK, cuInit(0));
    IS(NOT_INITIALIZED, start_in_child());
    begin();
    end();
}

static void errors_have_names(void)
{
    const char *name = "untouched";

    IS(OK, cuGetErrorName(2, &name));
    IS(0, strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY"));
    IS(OK, cuGetErrorName(0, &name));
    IS(0, strcmp(name, "CUDA_SUCCESS"));
    IS(INVALID_VALUE, cuGetErrorName(12345, &name));
    IS(1, name == NULL);
}

/* ---- memory and copies ---------------------------------------------------------------------- */

static void a_swapped_copy_is_refused(void)
{
    CUdeviceptr on_host = (CUdeviceptr)(uintptr_t)host[0];
    CUdeviceptr pointer;

    begin();
    pointer = allocate(SIZE);
    IS(OK, cuMemcpyHtoD_v2(pointer, host[0], SIZE));
    IS(OK, cuMemcpyDtoH_v2(host[1], pointer, SIZE));
    IS(0, memcmp(host[0], host[1], SIZE));
    IS(INVALID_VALUE, cuMemcpyHtoD_v2(on_host, (void *)(uintptr_t)pointer, SIZE));
    IS(INVALID_VALUE, cuMemcpyDtoH_v2((void *)(uintptr_t)pointer, on_host, SIZE));
    IS(INVALID_VALUE, cuMemcpyDtoD_v2(pointer, on_host, SIZE));
    IS(INVALID_VALUE, cuMemcpyHtoD_v2(pointer + 1, host[0], SIZE));
    IS(OK, cuMemcpy(pointer, on_host, SIZE));
    IS(INVALID_VALUE, cuMemsetD32Async(pointer + 2, 1, 1, NULL));
    IS(INVALID_VALUE, cuMemsetD32Async(pointer, 1, SIZE / 4 + 1, NULL));
    IS(OK, cuMemsetD32Async(pointer, 0x01020304, SIZE / 4, NULL));
    IS(OK, cuMemcpyDtoH_v2(host[1], pointer, SIZE));
    IS(4, host[1][SIZE - 4]);
    IS(INVALID_VALUE, cuMemFree_v2(pointer + 512));
    IS(OK, cuMemFree_v2(pointer));
    IS(INVALID_VALUE, cuMemFree_v2(pointer));
    IS(OK, cuMemFree_v2(0));
    end();
}

static void memory_runs_out(void)
{
    size_t free_bytes, total;
    CUdeviceptr pointer, other;

    begin();
    IS(OK, cuMemGetInfo_v2(&free_bytes, &total));
    IS(total, free_bytes);
    IS(INVALID_VALUE, cuMemAlloc_v2(&pointer, 0));
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&pointer, total + 1));
    pointer = allocate(total);
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&other, 1));
    IS(OUT_OF_MEMORY, cuMemAllocAsync(&other, 1, NULL));
    IS(OK, cuMemFree_v2(pointer));
    end();
}

static void host_memory_is_pinned_once(void)
{
    CUdeviceptr device;
    void *pinned;
    int ordinal;
    unsigned type;

    begin();
    IS(OK, cuMemHostRegister_v2(host[0], SIZE, 0));
    IS(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(host[0] + 8, 8, 0));
    IS(OK, cuMemHostGetDevicePointer_v2(&device, host[0] + 4, 0));
    IS(1, device == (CUdeviceptr)(uintptr_t)(host[0] + 4));
    IS(OK, cuMemHostUnregister(host[0]));
    IS(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host[0]));
    IS(OK, cuMemHostAlloc(&pinned, 100, 3));
    IS(OK, cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)pinned));
    IS(1, type);
    IS(OK, cuPointerGetAttribute(&ordinal, 9, (CUdeviceptr)(uintptr_t)pinned));
    IS(0, ordinal);
    IS(INVALID_VALUE, cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)host[1]));
    IS(OK, cuMemFreeHost(pinned));
    IS(INVALID_VALUE, cuMemFreeHost(pinned));
    end();
}

static void pools_free_in_the_streams_order(void)
{
    CUstream stream;
    CUdeviceptr pointer;
    CUmemoryPool pool;
    uint64_t used = 0;

    begin();
    stream = make_stream(1);
    IS(OK, cuDeviceGetDefaultMemPool(&pool, 0));
    IS(OK, cuMemAllocAsync(&pointer, SIZE, stream));
    IS(OK, cuMemPoolGetAttribute(pool, 7, &used));
    IS(SIZE, used);
    IS(OK, cuMemcpyHtoDAsync_v2(pointer, host[0], SIZE, stream));
    IS(OK, cuMemcpyDtoHAsync_v2(host[1], pointer, SIZE, stream));
    IS(OK, cuMemFreeAsync(pointer, stream));
    IS(INVALID_VALUE, cuMemFreeAsync(pointer, stream));
    IS(OK, cuStreamSynchronize(stream));
    IS(0, memcmp(host[0], host[1], SIZE));
    IS(OK, cuMemPoolGetAttribute(pool, 7, &used));
    IS(0, used);
    IS(OK, cuStreamDestroy_v2(stream));
    end();
}

/* ---- streams, events, captures -------------------------------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int refused;

static void wait_at_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void call_the_driver(void *unused)
{
    (void)unused;
    atomic_store(&refused, cuCtxSynchronize());
}

static void streams_and_events_have_their_rules(void)
{
    CUstream stream, other;
    CUevent start, finish, untimed;
    float milliseconds = -1;

    begin();
    stream = make_stream(1);
    start = make_event(0);
    finish = make_event(0);
    untimed = make_event(EVENT_DISABLE_TIMING);
    IS(OK, cuEventQuery(start));
    IS(INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, finish));
    pthread_mutex_lock(&gate);
    IS(OK, cuEventRecord(start, stream));
    IS(OK, cuLaunchHostFunc(stream, wait_at_gate, NULL));
    IS(OK, cuEventRecord(finish, stream));
    IS(OK, cuEventRecord(untimed, stream));
    IS(NOT_READY, cuStreamQuery(stream));
    IS(NOT_READY, cuEventQuery(finish));
    IS(NOT_READY, cuEventElapsedTime(&milliseconds, start, finish));
    IS(OK, cuEventSynchronize(start));
    usleep(2000); /* all of this time is between the two events */
    pthread_mutex_unlock(&gate);
    IS(OK, cuEventSynchronize(untimed));
    IS(INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, untimed));
    IS(OK, cuEventElapsedTime(&milliseconds, start, finish));
    IS(1, milliseconds >= 1.9f);
    IS(OK, cuEventElapsedTime(&milliseconds, finish, start));
    IS(1, milliseconds <= -1.9f);
    IS(OK, cuLaunchHostFunc(stream, call_the_driver, NULL));
    IS(OK, cuStreamSynchronize(stream));
    IS(NOT_PERMITTED, atomic_load(&refused));
    IS(OK, cuCtxSetCurrent(contexts[1]));
    other = make_stream(0);
    IS(INVALID_HANDLE, cuEventRecord(start, other)); /* another context's stream */
    IS(OK, cuStreamWaitEvent(other, finish, 0));
    IS(OK, cuStreamDestroy_v2(other));
    IS(OK, cuCtxSetCurrent(contexts[0]));
    IS(INVALID_HANDLE, cuStreamDestroy_v2(NULL));
    IS(OK, cuEventDestroy_v2(start));
    IS(OK, cuEventDestroy_v2(finish));
    IS(OK, cuEventDestroy_v2(untimed));
    IS(OK, cuStreamDestroy_v2(stream));
    end();
}

static void captures_forbid_what_they_cannot_hold(void)
{
    CUstream stream, blocking;
    CUdeviceptr pointer, other;
    CUgraph graph = NULL;
    CUevent event, apart;
    int mode = CAPTURE_RELAXED, status;

    begin();
    stream = make_stream(1);
    blocking = make_stream(0);
    event = make_event(EVENT_DISABLE_TIMING);
    apart = make_event(EVENT_DISABLE_TIMING);
    pointer = allocate(SIZE);
    IS(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, 0));
    IS(ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
    IS(OK, cuStreamBeginCapture_v2(stream, 0));
    IS(ILLEGAL_STATE, cuStreamBeginCapture_v2(stream, 0));
    IS(STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&other, 16));
    IS(OK, cuStreamIsCapturing(stream, &status));
    IS(2, status);
    IS(STREAM_CAPTURE_INVALIDATED, cuMemcpyHtoDAsync_v2(pointer, host[0], SIZE, stream));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    IS(1, graph == NULL);

    /* The thread that relaxes itself may still allocate. */
    IS(OK, cuStreamBeginCapture_v2(stream, 0));
    IS(OK, cuThreadExchangeStreamCaptureMode(&mode));
    IS(0, mode);
    IS(OK, cuMemAlloc_v2(&other, 16));
    IS(OK, cuThreadExchangeStreamCaptureMode(&mode));
    IS(CAPTURE_RELAXED, mode);
    IS(OK, cuEventRecord(event, stream));
    IS(CAPTURED_EVENT, cuEventQuery(event));
    IS(STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(apart));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));

    /* It may also query, or wait for, an event outside the capture. */
    mode = CAPTURE_RELAXED;
    IS(OK, cuStreamBeginCapture_v2(blocking, 0));
    IS(OK, cuThreadExchangeStreamCaptureMode(&mode));
    IS(OK, cuEventQuery(apart));
    IS(OK, cuEventSynchronize(apart));
    IS(OK, cuThreadExchangeStreamCaptureMode(&mode));
    IS(STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    IS(OK, cuStreamEndCapture(blocking, &graph));
    IS(OK, cuGraphDestroy(graph));

    IS(OK, cuStreamBeginCapture_v2(stream, 0));
    IS(OK, cuEventRecord(event, stream));
    IS(OK, cuStreamEndCapture(stream, &graph));
    IS(OK, cuGraphDestroy(graph));
    IS(INVALID_VALUE, cuStreamWaitEvent(stream, event, 0));

    IS(OK, cuStreamBeginCapture_v2(blocking, CAPTURE_RELAXED));
    IS(OK, cuMemFree_v2(other));
    IS(STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(blocking));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamSynchronize(blocking));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));

    IS(OK, cuStreamBeginCapture_v2(blocking, 1));
    IS(STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(pointer, 0, 1, NULL));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));

    /* One stream joins the capture but is not joined back. */
    IS(OK, cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    IS(OK, cuEventRecord(event, stream));
    IS(OK, cuStreamWaitEvent(blocking, event, 0));
    IS(OK, cuMemsetD8Async(pointer, 1, 1, blocking));
    IS(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));

    IS(OK, cuEventRecord(event, blocking));
    IS(OK, cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    IS(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, event, 0));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    IS(OK, cuMemFree_v2(pointer));
    IS(OK, cuEventDestroy_v2(event));
    IS(OK, cuEventDestroy_v2(apart));
    IS(OK, cuStreamDestroy_v2(stream));
    IS(OK, cuStreamDestroy_v2(blocking));
    end();
}

static void graphs_are_launched_and_updated(void)
{
    CUgraphExecUpdateResultInfo result;
    CUgraph graph, other;
    CUgraphExec instance;
    CUgraphNode nodes[4];
    CUdeviceptr pointer;
    CUstream stream;
    size_t count = 4;
    int type;

    begin();
    stream = make_stream(1);
    pointer = allocate(SIZE);
    IS(OK, cuStreamBeginCapture_v2(stream, 1));
    IS(OK, cuMemsetD8Async(pointer, 7, SIZE, stream));
    IS(OK, cuMemcpyDtoHAsync_v2(host[1], pointer, SIZE, stream));
    IS(OK, cuStreamEndCapture(stream, &graph));
    IS(OK, cuGraphGetNodes(graph, nodes, &count));
    IS(2, count);
    IS(OK, cuGraphNodeGetType(nodes[1], &type));
    IS(1, type);
    IS(OK, cuGraphInstantiateWithFlags(&instance, graph, 0));
    IS(OK, cuGraphUpload(instance, stream));
    IS(OK, cuGraphLaunch(instance, stream));
    IS(OK, cuStreamSynchronize(stream));
    IS(7, host[1][SIZE - 1]);
    IS(OK, cuStreamBeginCapture_v2(stream, 1));
    IS(OK, cuMemsetD8Async(pointer, 8, SIZE, stream));
    IS(OK, cuStreamEndCapture(stream, &other));
    IS(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(instance, other, &result));
    IS(2, result.result);
    IS(OK, cuGraphExecUpdate_v2(instance, graph, &result));
    IS(OK, cuGraphDestroy(other));
    IS(OK, cuGraphDestroy(graph));
    IS(OK, cuGraphExecDestroy(instance));
    IS(OK, cuMemFree_v2(pointer));
    IS(OK, cuStreamDestroy_v2(stream));
    end();
}

/* ---- peers, processes, virtual memory ------------------------------------------------------- */

static void peers_are_enabled_once(void)
{
    int can = -1;

    begin();
    IS(OK, cuDeviceCanAccessPeer(&can, 0, 1));
    IS(1, can);
    IS(OK, cuDeviceCanAccessPeer(&can, 0, 0));
    IS(0, can);
    IS(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    IS(OK, cuCtxEnablePeerAccess(contexts[1], 0));
    IS(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    IS(OK, cuCtxDisablePeerAccess(contexts[1]));
    end();
}

static int importer(int in)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;

    IS(sizeof(handle), read(in, &handle, sizeof(handle)));
    begin();
    IS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&pointer, handle, 0));
    IS(OK, cuIpcOpenMemHandle_v2(&pointer, handle, 1));
    IS(OK, cuMemcpyDtoH_v2(host[1], pointer, SIZE));
    IS(0, memcmp(host[0], host[1], SIZE));
    IS(INVALID_VALUE, cuMemFree_v2(pointer));
    IS(OK, cuIpcCloseMemHandle(pointer));
    end();
    return 0;
}

static void memory_is_shared_with_others(void)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer, own;
    int ends[2], status = -1;
    pid_t child;

    IS(0, pipe(ends));
    child = fork();
    if (child == 0) {
        exit(importer(ends[0]));
    }
    begin();
    pointer = allocate(SIZE);
    IS(OK, cuMemcpyHtoD_v2(pointer, host[0], SIZE));
    IS(OK, cuIpcGetMemHandle(&handle, pointer));
    IS(INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&own, handle, 1));
    IS(sizeof(handle), write(ends[1], &handle, sizeof(handle)));
    IS(child, waitpid(child, &status, 0));
    IS(0, status);
    IS(OK, cuMemFree_v2(pointer));
    end();
}

static void virtual_memory_is_mapped(void)
{
    CUmemAllocationProp prop = {
        .type = 1, .location = {1, 0}, .allocFlags = {.gpuDirectRDMACapable = 1}};
    CUmemAccessDesc access = {.location = {1, 0}, .flags = 3};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    size_t granularity;

    begin();
    IS(OK, cuMemGetAllocationGranularity(&granularity, &prop, 0));
    IS(INVALID_VALUE, cuMemCreate(&handle, granularity + 1, &prop, 0));
    IS(OK, cuMemAddressReserve(&address, 2 * granularity, 0, 0, 0));
    IS(OK, cuMemCreate(&handle, granularity, &prop, 0));
    IS(OK, cuMemMap(address + granularity, granularity, 0, handle, 0));
    IS(INVALID_VALUE, cuMemcpyHtoD_v2(address + granularity, host[0], SIZE));
    IS(OK, cuMemSetAccess(address + granularity, granularity, &access, 1));
    IS(OK, cuMemRelease(handle));
    IS(OK, cuMemcpyHtoD_v2(address + granularity, host[0], SIZE));
    IS(OK, cuMemcpyDtoH_v2(host[1], address + granularity, SIZE));
    IS(0, memcmp(host[0], host[1], SIZE));
    IS(INVALID_VALUE, cuMemAddressFree(address, 2 * granularity));
    IS(OK, cuMemUnmap(address + granularity, granularity));
    IS(OK, cuMemAddressFree(address, 2 * granularity));
    end();
}

/* run with SIM_LOSE=0@copy:2 */
static void a_lost_device_stays_lost(void)
{
    CUstream stream;
    CUdeviceptr pointer;
    int version;

    begin();
    stream = make_stream(1);
    pointer = allocate(SIZE);
    IS(OK, cuMemcpyHtoD_v2(pointer, host[0], SIZE));
    IS(OK, cuMemcpyHtoDAsync_v2(pointer, host[0], SIZE, stream));
    IS(LAUNCH_FAILED, cuStreamSynchronize(stream));
    IS(LAUNCH_FAILED, cuMemcpyDtoH_v2(host[1], pointer, SIZE));
    IS(OK, cuDriverGetVersion(&version));
    IS(LAUNCH_FAILED, cuMemFree_v2(pointer)); /* the memory is freed anyway */
    IS(LAUNCH_FAILED, cuStreamDestroy_v2(stream));
    end();
}

/* ---- visible devices ------------------------------------------------------------------------ */

/* Prints the UUID of each visible device, or the code of cuInit. */
static void list(void)
{
    int code = cuInit(0);
    int count = 0;

    if (code != OK) {
        printf("%d\n", code);
        return;
    }
    IS(OK, cuDeviceGetCount(&count));
    for (int i = 0; i < count; i++) {
        char address[16];
        CUuuid uuid;

        IS(OK, cuDeviceGetUuid_v2(&uuid, i));
        IS(OK, cuDeviceGetPCIBusId(address, sizeof(address), i));
        printf("%s/%02x%02x ", address, (unsigned char)uuid.bytes[0], (unsigned char)uuid.bytes[1]);
    }
    puts("");
}

static void a_call_with_a_destroyed_stream(void)
{
    CUstream stream;

    begin();
    stream = make_stream(0);
    IS(OK, cuStreamDestroy_v2(stream));
    cuStreamQuery(stream);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) \
    { \
#name, name \
    }
    CASE(calls_need_a_start_and_a_context),
    CASE(a_context_is_a_threads),
    CASE(a_child_cannot_use_what_its_parent_started),
    CASE(errors_have_names),
    CASE(a_swapped_copy_is_refused),
    CASE(memory_runs_out),
    CASE(host_memory_is_pinned_once),
    CASE(pools_free_in_the_streams_order),
    CASE(streams_and_events_have_their_rules),
    CASE(captures_forbid_what_they_cannot_hold),
    CASE(graphs_are_launched_and_updated),
    CASE(peers_are_enabled_once),
    CASE(memory_is_shared_with_others),
    CASE(virtual_memory_is_mapped),
    CASE(a_lost_device_stays_lost),
#undef CASE
    {"list", list},
    {"dies:a_call_with_a_destroyed_stream", a_call_with_a_destroyed_stream},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc == 1) {
            puts(cases[i].name);
        } else if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return argc == 1 ? 0 : 2;
}
