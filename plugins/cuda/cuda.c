/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cuda plugin: NVIDIA's driver API, NVML for facts that need no context, and NVTX for ranges.
 * The toolkit (libcudart) is not needed: libcuda.so.1 comes with the kernel driver.
 *
 *   cuda.c    the libraries, the verdict, the backend's table
 *   device.c  identity, the primary context, the current context, data types, visible devices
 *   stream.c  streams and events          memory.c  allocations, copies, fills
 *   graph.c   captures                    vmem.c    reserve, create, map
 *   share.c   peers, IPC, dma-bufs        ranges.c  NVTX, the profiler
 *   nvml.c    NVML, and its devices       sensors.c telemetry     links.c   PCI Express, NVLink
 *
 * The plugin uses each device's primary context, which libcudart and therefore every framework uses
 * too, or the context that the program passes to device_open_native(). It makes the context current
 * only for the length of a call, except in device_set_current().
 */
#include "plugin.h"

#include <limits.h>
#include <unistd.h>

#define SYMBOLS(table) (sizeof(table) / sizeof((table)[0]))

static const char *const library_names[] = {
    "libcuda.so.1", "libcuda.so",
    "/usr/lib/wsl/lib/libcuda.so.1", /* the Windows driver's, mounted by WSL; not tested */
    NULL};

#define NEEDED(symbol) VENDOR_REQUIRED(struct cuda_api, symbol)
#define SINCE(symbol, since) VENDOR_OPTIONAL(struct cuda_api, symbol, since)

static const struct vendor_symbol symbols[] = {
    NEEDED(cuInit),
    NEEDED(cuDriverGetVersion),
    NEEDED(cuGetErrorName),
    NEEDED(cuDeviceGetCount),
    NEEDED(cuDeviceGet),
    NEEDED(cuDeviceGetName),
    SINCE(cuDeviceGetUuid_v2, "CUDA 11.4"),
    NEEDED(cuDeviceTotalMem_v2),
    NEEDED(cuDeviceGetAttribute),
    NEEDED(cuDeviceGetPCIBusId),
    NEEDED(cuDevicePrimaryCtxRetain),
    NEEDED(cuDevicePrimaryCtxRelease_v2),
    NEEDED(cuCtxSetCurrent),
    NEEDED(cuCtxGetCurrent),
    NEEDED(cuCtxPushCurrent_v2),
    NEEDED(cuCtxPopCurrent_v2),
    NEEDED(cuCtxGetDevice),
    SINCE(cuCtxGetFlags, "CUDA 7.0"),
    NEEDED(cuCtxSynchronize),
    SINCE(cuCtxRecordEvent, "CUDA 12.5"),
    NEEDED(cuCtxGetStreamPriorityRange),
    NEEDED(cuMemGetInfo_v2),
    NEEDED(cuMemAlloc_v2),
    NEEDED(cuMemFree_v2),
    NEEDED(cuMemHostAlloc),
    NEEDED(cuMemFreeHost),
    NEEDED(cuMemHostGetDevicePointer_v2),
    NEEDED(cuMemHostRegister_v2),
    NEEDED(cuMemHostUnregister),
    SINCE(cuPointerGetAttribute, "CUDA 4.0"),
    SINCE(cuMemAllocManaged, "CUDA 6.0"),
    NEEDED(cuMemcpyHtoDAsync_v2),
    NEEDED(cuMemcpyDtoHAsync_v2),
    NEEDED(cuMemcpyDtoDAsync_v2),
    NEEDED(cuMemcpyAsync),
    NEEDED(cuMemcpyPeerAsync),
    NEEDED(cuMemsetD8Async),
    NEEDED(cuMemsetD16Async),
    NEEDED(cuMemsetD32Async),
    SINCE(cuMemAllocAsync, "CUDA 11.2"),
    SINCE(cuMemFreeAsync, "CUDA 11.2"),
    SINCE(cuDeviceGetMemPool, "CUDA 11.2"),
    SINCE(cuMemPoolTrimTo, "CUDA 11.2"),
    NEEDED(cuStreamCreateWithPriority),
    NEEDED(cuStreamDestroy_v2),
    NEEDED(cuStreamSynchronize),
    NEEDED(cuStreamQuery),
    NEEDED(cuStreamWaitEvent),
    SINCE(cuLaunchHostFunc, "CUDA 10.0"),
    NEEDED(cuEventCreate),
    NEEDED(cuEventRecord),
    NEEDED(cuEventQuery),
    NEEDED(cuEventSynchronize),
    NEEDED(cuEventDestroy_v2),
    NEEDED(cuEventElapsedTime),
    SINCE(cuThreadExchangeStreamCaptureMode, "CUDA 10.1"),
    SINCE(cuStreamBeginCapture_v2, "CUDA 10.1"),
    SINCE(cuStreamIsCapturing, "CUDA 10.0"),
    SINCE(cuStreamEndCapture, "CUDA 10.0"),
    SINCE(cuGraphInstantiateWithFlags, "CUDA 11.4"),
    SINCE(cuGraphLaunch, "CUDA 10.0"),
    SINCE(cuGraphExecUpdate_v2, "CUDA 12.0"),
    SINCE(cuGraphExecDestroy, "CUDA 10.0"),
    SINCE(cuGraphDestroy, "CUDA 10.0"),
    SINCE(cuGraphGetNodes, "CUDA 10.0"),
    SINCE(cuGraphDebugDotPrint, "CUDA 11.3"),
    SINCE(cuMemAddressReserve, "CUDA 10.2"),
    SINCE(cuMemAddressFree, "CUDA 10.2"),
    SINCE(cuMemCreate, "CUDA 10.2"),
    SINCE(cuMemRelease, "CUDA 10.2"),
    SINCE(cuMemMap, "CUDA 10.2"),
    SINCE(cuMemUnmap, "CUDA 10.2"),
    SINCE(cuMemSetAccess, "CUDA 10.2"),
    SINCE(cuMemGetAllocationGranularity, "CUDA 10.2"),
    SINCE(cuDeviceCanAccessPeer, "CUDA 4.0"),
    SINCE(cuCtxEnablePeerAccess, "CUDA 4.0"),
    SINCE(cuCtxDisablePeerAccess, "CUDA 4.0"),
    SINCE(cuIpcGetMemHandle, "CUDA 4.1"),
    SINCE(cuIpcOpenMemHandle_v2, "CUDA 11.0"),
    SINCE(cuIpcCloseMemHandle, "CUDA 4.1"),
    SINCE(cuIpcGetEventHandle, "CUDA 4.1"),
    SINCE(cuIpcOpenEventHandle, "CUDA 4.1"),
    SINCE(cuMemGetHandleForAddressRange, "CUDA 11.7"),
    SINCE(cuProfilerStart, "CUDA 4.0"),
    SINCE(cuProfilerStop, "CUDA 4.0"),
};

_Static_assert(SYMBOLS(symbols) * sizeof(void (*)(void)) == sizeof(struct cuda_api),
               "each pointer of struct cuda_api is bound");

/* ---- versions ------------------------------------------------------------------------------- */

/* Writes the first word that is a number with a point, such as 535.161.08. */
static void find_version(const char *line, char *text, size_t text_size)
{
    text[0] = '\0';
    for (const char *word = line; *word != '\0' && text[0] == '\0';) {
        size_t length = strcspn(word, " \t");

        if (length > 2 && length < text_size && isdigit((unsigned char)word[0]) &&
            strspn(word, "0123456789.") == length && memchr(word, '.', length) != NULL) {
            memcpy(text, word, length);
            text[length] = '\0';
        }
        word += length;
        word += strspn(word, " \t");
    }
}

static void kernel_version(const struct ds_accel_host *host, char *text, size_t text_size)
{
    char line[256];

    text[0] = '\0';
    if (vendor_read_line(host, "/proc/driver/nvidia/version", line, sizeof(line)) == 0) {
        find_version(line, text, text_size);
    }
}

void cuda_driver_version(const struct cuda_runtime *runtime, char *text, size_t text_size,
                         uint32_t version[4])
{
    kernel_version(runtime->host, text, text_size);
    if (text[0] == '\0' && runtime->has_nvml &&
        runtime->nvml.nvmlSystemGetDriverVersion(text, (unsigned int)text_size) != NVML_SUCCESS) {
        text[0] = '\0';
    }
    memset(version, 0, 4 * sizeof(version[0]));
    if (sscanf(text, "%u.%u.%u", &version[0], &version[1], &version[2]) < 2) {
        memset(version, 0, 4 * sizeof(version[0]));
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static int tell_stub(const struct cuda_runtime *runtime, struct vendor_problem *problem)
{
    vendor_problem_set(problem, DS_ACCEL_REASON_LIBRARY_MISSING,
                       "%.100s is the CUDA toolkit's stub; the driver's own comes with libcuda1 "
                       "(Debian) or libnvidia-compute (Ubuntu)",
                       runtime->lib.path);
    problem->vendor_code = CU_STUB_LIBRARY;
    return -1;
}

/* Reports both versions: the library's is in the name of its file, libcuda.so.535.161.08. */
static int tell_mismatch(struct cuda_runtime *runtime, cu_result_t code,
                         struct vendor_problem *problem)
{
    char *real = realpath(runtime->lib.path, NULL);
    const char *found = real != NULL ? strstr(real, "libcuda.so.") : NULL;
    char kernel[32];

    kernel_version(runtime->host, kernel, sizeof(kernel));
    vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_MISMATCH, runtime, code, 0,
                        "the kernel driver is %s, the library %.40s: cuInit(0)",
                        kernel[0] != '\0' ? kernel : "of an unknown version",
                        found != NULL ? found : runtime->lib.path);
    free(real);
    return -1;
}

/*
 * Returns true if the node of nvidia_uvm, the driver's kernel module for memory, exists. Without
 * it cuInit() fails, with different codes.
 */
static int has_memory_node(const struct ds_accel_host *host)
{
    char path[512];

    snprintf(path, sizeof(path), "%.400s/dev/nvidia-uvm",
             host->machine_root != NULL ? host->machine_root : "");
    return access(path, F_OK) == 0;
}

static int tell_init(struct cuda_runtime *runtime, cu_result_t code, struct vendor_problem *problem)
{
    const char *path = runtime->lib.path;

    switch (code) {
    case CU_STUB_LIBRARY:
        return tell_stub(runtime, problem);
    case CU_NO_DEVICE:
    case CU_INVALID_DEVICE: /* CUDA_VISIBLE_DEVICES lists an invalid device */
        return vendor_problem_code(problem, DS_ACCEL_REASON_NO_DEVICE, runtime, code, 0,
                                   "%.100s is present, no device: cuInit(0)", path);
    case CU_DEVICE_UNAVAILABLE:
        return vendor_problem_code(problem, DS_ACCEL_REASON_DEVICE_BUSY, runtime, code, 0,
                                   "every device is in use, or its compute mode forbids it: "
                                   "cuInit(0)");
    case CU_MPS_SERVER_NOT_READY:
    case CU_MPS_MAX_CLIENTS_REACHED:
    case CU_MPS_MAX_CONNECTIONS_REACHED:
        return vendor_problem_code(problem, DS_ACCEL_REASON_DEVICE_BUSY, runtime, code, 0,
                                   "the MPS service accepts no more clients now: cuInit(0)");
    case CU_SYSTEM_DRIVER_MISMATCH:
    case CU_COMPAT_NOT_SUPPORTED:
        return tell_mismatch(runtime, code, problem);
    case CU_SYSTEM_NOT_READY:
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "is the service nvidia-fabricmanager running? cuInit(0)");
    default:
        return vendor_problem_code(
            problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1, "%.100s: %scuInit(0)", path,
            has_memory_node(runtime->host) ? ""
                                           : "without /dev/nvidia-uvm (modprobe nvidia_uvm): ");
    }
}

static int start_driver(struct cuda_runtime *runtime, struct vendor_problem *problem)
{
    cu_result_t code = runtime->api.cuInit(0);

    if (code != CU_SUCCESS) {
        return tell_init(runtime, code, problem);
    }
    code = runtime->api.cuDriverGetVersion(&runtime->version);
    if (code != CU_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "cuDriverGetVersion()");
    }
    return 0;
}

static int cuda_open(const struct ds_accel_host *host, void **runtime_out,
                     struct vendor_problem *problem)
{
    struct cuda_runtime *runtime = calloc(1, sizeof(*runtime));

    if (runtime == NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no host memory");
    }
    runtime->host = host;
    if (vendor_lib_open(&runtime->lib, host, "library", library_names, problem) != 0 ||
        vendor_lib_bind(&runtime->lib, symbols, SYMBOLS(symbols), &runtime->api, problem) != 0 ||
        start_driver(runtime, problem) != 0) {
        free(runtime);
        return -1;
    }
    pthread_mutex_init(&runtime->lock, NULL);
    nvml_open(runtime);
    cuda_ranges_open(runtime);
    *runtime_out = runtime;
    return 0;
}

static void cuda_close(void *opened)
{
    struct cuda_runtime *runtime = opened;

    nvml_close(runtime);
    cuda_ranges_close(runtime);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
}

static int cuda_count(void *opened, uint32_t *count_out, struct vendor_problem *problem)
{
    struct cuda_runtime *runtime = opened;
    int count = 0;
    cu_result_t code = runtime->api.cuDeviceGetCount(&count);

    if (code == CU_NO_DEVICE) {
        count = 0;
    } else if (code != CU_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "cuDeviceGetCount()");
    }
    *count_out = count > 0 ? (uint32_t)count : 0;
    return 0;
}

/* Counts as usable the devices whose compute mode allows contexts: any mode but PROHIBITED. Reports
   DEVICE_BUSY if no device is usable. */
static int cuda_judge(void *opened, uint32_t count, uint32_t *usable_out, char *variant,
                      struct vendor_problem *problem)
{
    struct cuda_runtime *runtime = opened;
    uint32_t usable = 0;

    (void)variant;
    for (uint32_t i = 0; i < count; i++) {
        cu_device_t device;
        cu_result_t code = runtime->api.cuDeviceGet(&device, (int)i);

        if (code != CU_SUCCESS) {
            return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                       "cuDeviceGet(%u)", i);
        }
        usable += cuda_attribute(&runtime->api, device, CU_ATTRIBUTE_COMPUTE_MODE, 0) !=
                  CU_COMPUTE_MODE_PROHIBITED;
    }
    *usable_out = usable;
    if (usable == 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_DEVICE_BUSY,
                                  "the compute mode of every device is PROHIBITED: nvidia-smi -c 0 "
                                  "allows it");
    }
    return 0;
}

/* ---- codes ---------------------------------------------------------------------------------- */

/*
 * After one of these errors a context is unusable, so the device counts as lost: every later call
 * in the context returns the same code, and only a new process can create a new context.
 */
static int is_sticky(int64_t code)
{
    return code == CU_ECC_UNCORRECTABLE || code == CU_NVLINK_UNCORRECTABLE ||
           code == CU_CONTAINED || code == CU_ILLEGAL_ADDRESS || code == CU_LAUNCH_TIMEOUT ||
           code == CU_ASSERT || (code >= CU_HARDWARE_STACK_ERROR && code <= CU_LAUNCH_FAILED) ||
           code == CU_TENSOR_MEMORY_LEAK || code == CU_MPS_CLIENT_TERMINATED ||
           code == CU_EXTERNAL_DEVICE;
}

static int32_t status_of(int64_t code)
{
    if (is_sticky(code)) {
        return DS_ACCEL_ERR_DEVICE_LOST;
    }
    if (code >= CU_CAPTURE_UNSUPPORTED && code <= CU_CAPTURE_WRONG_THREAD) {
        return DS_ACCEL_ERR_STATE;
    }
    switch (code) {
    case CU_INVALID_VALUE:
    case CU_INVALID_DEVICE:
    case CU_INVALID_HANDLE:
    case CU_HOST_MEMORY_ALREADY_REGISTERED:
    case CU_HOST_MEMORY_NOT_REGISTERED:
    case CU_ALREADY_MAPPED:
        return DS_ACCEL_ERR_INVALID;
    case CU_OUT_OF_MEMORY:
        return DS_ACCEL_ERR_NO_MEMORY;
    case CU_NO_DEVICE:
        return DS_ACCEL_ERR_NO_DEVICE;
    case CU_DEVICE_UNAVAILABLE:
    case CU_MPS_SERVER_NOT_READY:
    case CU_MPS_MAX_CLIENTS_REACHED:
    case CU_MPS_MAX_CONNECTIONS_REACHED:
        return DS_ACCEL_ERR_BUSY;
    case CU_TOO_MANY_PEERS:
        return DS_ACCEL_ERR_LIMIT;
    case CU_CALL_REQUIRES_NEWER_DRIVER:
    case CU_PEER_ACCESS_UNSUPPORTED:
    case CU_NOT_SUPPORTED:
        return DS_ACCEL_ERR_UNSUPPORTED;
    case CU_ILLEGAL_STATE:
        return DS_ACCEL_ERR_STATE;
    case CU_NOT_FOUND:
        return DS_ACCEL_ERR_NOT_FOUND;
    case CU_NOT_PERMITTED:
        return DS_ACCEL_ERR_PERMISSION;
    case CU_TIMEOUT:
        return DS_ACCEL_ERR_TIMEOUT;
    default:
        return DS_ACCEL_ERR_DRIVER;
    }
}

/*
 * Writes *name_out only if the library has a name for the code: the toolkit's stub, and a library
 * whose cuInit() failed, have none.
 */
static void cuda_describe(void *opened, int64_t code, int32_t *status_out, const char **name_out)
{
    const struct cuda_runtime *runtime = opened;
    const char *name = NULL;

    *status_out = status_of(code);
    if (runtime->api.cuGetErrorName((cu_result_t)code, &name) == CU_SUCCESS) {
        *name_out = name;
    }
}

/* ---- facts ---------------------------------------------------------------------------------- */

/*
 * Returns the major compute capability of the thread's current device, or of the first device if
 * the thread has no current device, as DeepSpeed's accelerator interface requires; 0 if the driver
 * does not report it. The function does not use the instance's devices: a probe has no instance.
 */
static int current_major(const struct cuda_api *api)
{
    cu_context_t context = NULL;
    cu_device_t device;
    cu_result_t code = api->cuCtxGetCurrent(&context);

    code = code == CU_SUCCESS && context != NULL ? api->cuCtxGetDevice(&device)
                                                 : api->cuDeviceGet(&device, 0);
    return code == CU_SUCCESS ? cuda_attribute(api, device, CU_ATTRIBUTE_COMPUTE_MAJOR, 0) : 0;
}

static uint64_t missing_flags(const struct cuda_api *api)
{
    uint64_t flags = 0;

    if (api->cuStreamBeginCapture_v2 == NULL || api->cuGraphInstantiateWithFlags == NULL) {
        flags |= DS_ACCEL_FLAG_GRAPHS;
    }
    if (api->cuMemAllocAsync == NULL || api->cuMemFreeAsync == NULL) {
        flags |= DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY;
    }
    if (api->cuMemCreate == NULL || api->cuMemSetAccess == NULL) {
        flags |= DS_ACCEL_FLAG_VIRTUAL_MEMORY;
    }
    if (api->cuIpcOpenMemHandle_v2 == NULL) {
        flags |= DS_ACCEL_FLAG_MEMORY_IPC;
    }
    if (api->cuIpcOpenEventHandle == NULL) {
        flags |= DS_ACCEL_FLAG_EVENT_IPC;
    }
    if (api->cuMemGetHandleForAddressRange == NULL) {
        flags |= DS_ACCEL_FLAG_DMABUF;
    }
    return flags;
}

static int32_t cuda_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    char text[80];
    int major;

    (void)error;
    info->flags &= ~missing_flags(&runtime->api);
    if (!runtime->has_domains) {
        info->flags &= ~DS_ACCEL_FLAG_RANGE_DOMAINS;
    }
    major = current_major(&runtime->api);
    if (major < 8) {
        info->flags &= ~DS_ACCEL_FLAG_TRITON;
    }
    if (major < 7 || major > 8) {
        info->flags &= ~DS_ACCEL_FLAG_TRITON_GROUPED_MM;
    }
    snprintf(info->communication_backend, sizeof(info->communication_backend), "nccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    cuda_driver_version(runtime, text, sizeof(text), info->driver_version);
    info->runtime_version[0] = (uint32_t)runtime->version / 1000;
    info->runtime_version[1] = (uint32_t)runtime->version % 1000 / 10;
    return DS_ACCEL_OK;
}

/* Writes the driver's version as NVIDIA does: 580.65.06, not 580.65.6. */
static void cuda_evidence(void *opened, char *text, size_t text_size)
{
    const struct cuda_runtime *runtime = opened;
    struct vendor_problem ignored;
    uint32_t version[4];
    uint32_t count = 0;
    const char *which = "driver";
    char driver[80];

    cuda_driver_version(runtime, driver, sizeof(driver), version);
    if (version[0] == 0 && version[1] == 0) {
        which = "runtime";
        snprintf(driver, sizeof(driver), "%d.%d", runtime->version / 1000,
                 runtime->version % 1000 / 10);
    }
    cuda_count(opened, &count, &ignored);
    vendor_write_evidence(text, text_size, runtime->lib.name, which, driver, count);
}

/* ---- the backend ---------------------------------------------------------------------------- */

/*
 * Without the other nodes, /dev/dxg is enough (the GPUs of Windows under WSL 2), and so is
 * /dev/nvmap (the GPU of a Tegra, which is not on a PCI bus).
 */
#define HARDWARE \
    "pci 10de:03\n" \
    "node /dev/nvidiactl\n" \
    "node /dev/nvidia-uvm\n" \
    "node /dev/nvidia[0-9]*\n" \
    "node /dev/dxg\n" \
    "node /dev/nvmap\n"

static const char *const needed_nodes[] = {"/dev/nvidiactl", NULL};
static const char *const other_ways[] = {"/dev/dxg", "/dev/nvmap", NULL};
static const struct vendor_pattern pattern = {HARDWARE, needed_nodes, other_ways, "nvidia"};
static const struct vendor_visible visible[] = {{.variable = "CUDA_VISIBLE_DEVICES",
                                                 .separator = ",",
                                                 .is_renumbered = 1,
                                                 .is_empty_if_repeated = 1}};
static const char *const export_prefixes[] = {"NCCL", NULL};

const struct vendor_backend vendor_backend = {
    .name = "cuda",
    .flags = DS_ACCEL_FLAG_TRITON | DS_ACCEL_FLAG_TRITON_GROUPED_MM | DS_ACCEL_FLAG_GRAPHS |
             DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES |
             DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY |
             DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC | DS_ACCEL_FLAG_DMABUF |
             DS_ACCEL_FLAG_RANGE_DOMAINS,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = export_prefixes,
    .memory_handle_bytes = sizeof(cu_ipc_handle_t),
    .event_handle_bytes = sizeof(cu_ipc_handle_t),
    .allocation_align_bytes = 256,
    .captures_no_ipc_events = 1,
    .captures_no_launches = 1,
    .captures_end_by_thread = 1,
    .device_wait_breaks_captures = 1,
    .frees_wait = 1,
    .probes_in_child = 1, /* cuInit() cannot be undone, nor repeated in a forked child */
    .open = cuda_open,
    .close = cuda_close,
    .count = cuda_count,
    .judge = cuda_judge,
    .evidence = cuda_evidence,
    .describe = cuda_describe,
    .backend_info = cuda_backend_info,
    .identify = cuda_identify,
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .takes_native_context = 1,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .enters_for_streams = 1, /* the NULL stream belongs to the current context */
    .get_current = cuda_get_current,
    .set_current = cuda_set_current,
    .device_synchronize = cuda_device_synchronize,
    .device_mark = cuda_device_mark,
    .device_health = cuda_device_health,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_default = cuda_stream_default,
    .stream_priority_range = cuda_stream_priority_range,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_query = cuda_stream_query,
    .stream_wait_event = cuda_stream_wait_event,
    .stream_host_task = cuda_stream_host_task,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed_ms = cuda_event_elapsed_ms,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_pinned = cuda_alloc_pinned,
    .free_pinned = cuda_free_pinned,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED |
                    DS_ACCEL_PINNED_WRITE_COMBINED,
    .host_register = cuda_host_register,
    .host_unregister = cuda_host_unregister,
    .alloc_managed = cuda_alloc_managed,
    .host_device_pointer = cuda_host_device_pointer,
    .pointer_info = cuda_pointer_info,
    .copy_async = cuda_copy_async,
    .copy_peer_async = cuda_copy_peer_async,
    .fill_async = cuda_fill_async,
    .fill_widths = 1 | 2 | 4,
    .memory_info = cuda_memory_info,
    .trim = cuda_trim,
    .alloc_async = cuda_alloc_async,
    .free_async = cuda_free_async,
    .vmem_granularity = cuda_vmem_granularity,
    .vmem_reserve = cuda_vmem_reserve,
    .vmem_release = cuda_vmem_release,
    .vmem_create = cuda_vmem_create,
    .vmem_destroy = cuda_vmem_destroy,
    .vmem_map = cuda_vmem_map,
    .vmem_unmap = cuda_vmem_unmap,
    .vmem_set_access = cuda_vmem_set_access,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_status = cuda_capture_status,
    .graph_destroy = cuda_graph_destroy,
    .graph_instantiate = cuda_graph_instantiate,
    .graph_exec_destroy = cuda_graph_exec_destroy,
    .graph_launch = cuda_graph_launch,
    .graph_exec_update = cuda_graph_exec_update,
    .graph_node_count = cuda_graph_node_count,
    .graph_dump = cuda_graph_dump,
    .dtype_support = cuda_dtype_support,
    .telemetry = nvml_telemetry,
    .processes = nvml_processes,
    .links = nvml_links,
    .range_push = cuda_range_push,
    .range_pop = cuda_range_pop,
    .profiler_start = cuda_profiler_start,
    .profiler_stop = cuda_profiler_stop,
    .visible_token = cuda_visible_token,
    .peer_can_access = cuda_peer_can_access,
    .peer_enable = cuda_peer_enable,
    .peer_disable = cuda_peer_disable,
    .ipc_memory_export = cuda_ipc_memory_export,
    .ipc_memory_open = cuda_ipc_memory_open,
    .ipc_memory_close = cuda_ipc_memory_close,
    .ipc_event_export = cuda_ipc_event_export,
    .ipc_event_open = cuda_ipc_event_open,
    .dmabuf_export = cuda_dmabuf_export,
    .wraps_events = 1,
};

DS_ACCEL_PLUGIN("cuda", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG, DS_ACCEL_FEATURE_MACHINE,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
