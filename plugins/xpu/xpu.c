/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * xpu: Intel GPUs through Level Zero's loader. This file has libraries, symbols, errors, and the
 * backend's table.
 *
 * Whether a function exists depends on the age of the loader and of the driver: an absent symbol
 * and ZE_RESULT_ERROR_UNSUPPORTED_FEATURE mean the same. The plugin requires only functions that
 * the loader 1.8 of Debian 12 has.
 */
#include "xpu.h"

#define CORE(symbol) VENDOR_REQUIRED(struct ze_api, symbol)
#define LATER(symbol, since) VENDOR_OPTIONAL(struct ze_api, symbol, since)

static const struct vendor_symbol SYMBOLS[] = {
    CORE(zeInit),
    LATER(zeInitDrivers, "Level Zero 1.10"),
    CORE(zeDriverGet),
    CORE(zeDriverGetApiVersion),
    CORE(zeDriverGetProperties),
    CORE(zeDriverGetExtensionProperties),
    LATER(zeDriverGetExtensionFunctionAddress, "Level Zero 1.1"),
    CORE(zeDeviceGet),
    LATER(zeDeviceGetRootDevice, "Level Zero 1.7"),
    CORE(zeDeviceGetProperties),
    CORE(zeDeviceGetComputeProperties),
    CORE(zeDeviceGetModuleProperties),
    CORE(zeDeviceGetCommandQueueGroupProperties),
    CORE(zeDeviceGetMemoryProperties),
    CORE(zeDeviceGetCacheProperties),
    LATER(zeDevicePciGetPropertiesExt, "Level Zero 1.1"),
    CORE(zeDeviceCanAccessPeer),
    CORE(zeDeviceGetStatus),
    CORE(zeContextCreate),
    CORE(zeContextDestroy),
    CORE(zeCommandListCreateImmediate),
    CORE(zeCommandListDestroy),
    LATER(zeCommandListHostSynchronize, "Level Zero 1.6"),
    CORE(zeCommandListAppendMemoryCopy),
    CORE(zeCommandListAppendMemoryFill),
    CORE(zeCommandListAppendBarrier),
    CORE(zeCommandListAppendWaitOnEvents),
    CORE(zeCommandListAppendEventReset),
    LATER(zeCommandListAppendHostFunction, "Level Zero 1.17"),
    CORE(zeEventPoolCreate),
    CORE(zeEventPoolDestroy),
    CORE(zeEventCreate),
    CORE(zeEventDestroy),
    CORE(zeEventHostSignal),
    CORE(zeEventHostSynchronize),
    CORE(zeEventQueryStatus),
    CORE(zeEventHostReset),
    CORE(zeEventQueryKernelTimestamp),
    CORE(zeMemAllocDevice),
    CORE(zeMemAllocHost),
    CORE(zeMemAllocShared),
    CORE(zeMemFree),
    CORE(zeMemGetIpcHandle),
    LATER(zeMemPutIpcHandle, "Level Zero 1.6"),
    CORE(zeMemOpenIpcHandle),
    CORE(zeMemCloseIpcHandle),
    LATER(zeMemGetFileDescriptorFromIpcHandleExp, "Level Zero 1.6"),
    CORE(zeVirtualMemQueryPageSize),
    CORE(zeVirtualMemReserve),
    CORE(zeVirtualMemFree),
    CORE(zeVirtualMemMap),
    CORE(zeVirtualMemUnmap),
    CORE(zeVirtualMemSetAccessAttribute),
    CORE(zePhysicalMemCreate),
    CORE(zePhysicalMemDestroy),
};

/* ---- errors --------------------------------------------------------------------------------- */

#define RESULT(code, name, status) \
    { \
        "ZE_RESULT_" name, code, DS_ACCEL_##status \
    }

static const struct {
    const char *name;
    uint32_t code;
    int32_t status;
} RESULTS[] = {
    RESULT(0x1, "NOT_READY", ERR_TIMEOUT),
    RESULT(0x70000001, "ERROR_DEVICE_LOST", ERR_DEVICE_LOST),
    RESULT(0x70000002, "ERROR_OUT_OF_HOST_MEMORY", ERR_NO_MEMORY),
    RESULT(0x70000003, "ERROR_OUT_OF_DEVICE_MEMORY", ERR_NO_MEMORY),
    RESULT(0x70000004, "ERROR_MODULE_BUILD_FAILURE", ERR_DRIVER),
    RESULT(0x70000005, "ERROR_MODULE_LINK_FAILURE", ERR_DRIVER),
    RESULT(0x70000006, "ERROR_DEVICE_REQUIRES_RESET", ERR_DEVICE_LOST),
    RESULT(0x70000007, "ERROR_DEVICE_IN_LOW_POWER_STATE", ERR_BUSY),
    RESULT(0x70010000, "ERROR_INSUFFICIENT_PERMISSIONS", ERR_PERMISSION),
    RESULT(0x70010001, "ERROR_NOT_AVAILABLE", ERR_BUSY),
    RESULT(0x70020000, "ERROR_DEPENDENCY_UNAVAILABLE", ERR_DRIVER),
    RESULT(0x70020001, "WARNING_DROPPED_DATA", ERR_DRIVER),
    RESULT(0x78000001, "ERROR_UNINITIALIZED", ERR_NO_DEVICE),
    RESULT(0x78000002, "ERROR_UNSUPPORTED_VERSION", ERR_DRIVER),
    RESULT(0x78000003, "ERROR_UNSUPPORTED_FEATURE", ERR_UNSUPPORTED),
    RESULT(0x78000004, "ERROR_INVALID_ARGUMENT", ERR_INVALID),
    RESULT(0x78000005, "ERROR_INVALID_NULL_HANDLE", ERR_INVALID),
    RESULT(0x78000006, "ERROR_HANDLE_OBJECT_IN_USE", ERR_BUSY),
    RESULT(0x78000007, "ERROR_INVALID_NULL_POINTER", ERR_INVALID),
    RESULT(0x78000008, "ERROR_INVALID_SIZE", ERR_INVALID),
    RESULT(0x78000009, "ERROR_UNSUPPORTED_SIZE", ERR_NO_MEMORY),
    RESULT(0x7800000a, "ERROR_UNSUPPORTED_ALIGNMENT", ERR_INVALID),
    RESULT(0x7800000b, "ERROR_INVALID_SYNCHRONIZATION_OBJECT", ERR_STATE),
    RESULT(0x7800000c, "ERROR_INVALID_ENUMERATION", ERR_INVALID),
    RESULT(0x7800000d, "ERROR_UNSUPPORTED_ENUMERATION", ERR_UNSUPPORTED),
    RESULT(0x78000019, "ERROR_INVALID_COMMAND_LIST_TYPE", ERR_INVALID),
    RESULT(0x7800001a, "ERROR_OVERLAPPING_REGIONS", ERR_INVALID),
    RESULT(0x7800001b, "WARNING_ACTION_REQUIRED", ERR_DRIVER),
    RESULT(0x78000020, "ERROR_SURVIVABILITY_MODE_DETECTED", ERR_DRIVER),
    RESULT(0x78000021, "ERROR_ADDRESS_NOT_FOUND", ERR_INVALID),
    RESULT(0x78000024, "ERROR_INVALID_GRAPH", ERR_STATE),
    RESULT(0x78000025, "ERROR_GRAPH_CAPTURE_UNSUPPORTED", ERR_STATE),
    RESULT(0x78000026, "ERROR_GRAPH_CAPTURE_INVALIDATED", ERR_STATE),
    RESULT(0x78000027, "ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT", ERR_STATE),
    RESULT(0x78000028, "ERROR_COMMAND_LIST_NOT_CAPTURING", ERR_STATE),
    RESULT(0x78000029, "ERROR_GRAPH_UNJOINED_FORKS", ERR_STATE),
    RESULT(0x7800002a, "ERROR_GRAPH_INTERNAL_EVENT", ERR_STATE),
    RESULT(0x7ffffffe, "ERROR_UNKNOWN", ERR_DRIVER),
};

static void describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    (void)runtime;
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = NULL;
    for (size_t i = 0; i < sizeof(RESULTS) / sizeof(RESULTS[0]); i++) {
        if (RESULTS[i].code == code) {
            *status_out = RESULTS[i].status;
            *name_out = RESULTS[i].name;
        }
    }
}

int32_t xpu_no_host_memory(struct ds_accel_error *error, const char *call)
{
    return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: the host's memory is exhausted", call);
}

/* ---- life ----------------------------------------------------------------------------------- */

static const struct vendor_visible VISIBLE[] = {
    {"ZE_AFFINITY_MASK", ",", VENDOR_KEEPS_ORDER, 0, 1, 0}};

/*
 * Reports why Level Zero found no driver. The loader returns UNINITIALIZED if no driver finds a
 * device, which includes the case that ZE_AFFINITY_MASK hides all devices.
 */
static int no_driver(struct xpu_runtime *runtime, ze_result result, const char *call,
                     struct vendor_problem *problem)
{
    char text[160];

    switch (result) {
    case ZE_ERROR_UNINITIALIZED:
        if (vendor_visible_is_hiding(VISIBLE, 1, text, sizeof(text)) != NULL) {
            return vendor_problem_code(problem, DS_ACCEL_REASON_HIDDEN, runtime, result, 0,
                                       "%s; %s", text, call);
        }
        return vendor_problem_code(
            problem, DS_ACCEL_REASON_NO_DEVICE, runtime, result, 0,
            "no driver that Level Zero loads (libze_intel_gpu.so.1) has a GPU; %s", call);
    case 0x70010000:
        return vendor_problem_code(problem, DS_ACCEL_REASON_NO_PERMISSION, runtime, result, 0, "%s",
                                   call);
    case 0x78000002:
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_MISMATCH, runtime, result, 0,
                                   "%s", call);
    default:
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, result, 1, "%s",
                                   call);
    }
}

/* Uses zeInitDrivers() (specification 1.10), which receives the type of device in a struct. */
static ze_result init_by_type(const struct xpu_runtime *runtime, ze_driver_t *drivers,
                              uint32_t *count)
{
    struct ze_init_desc desc = {.tag = ZE_TAG_INIT_DRIVER_TYPE, .types = ZE_INIT_TYPE_GPU};
    ze_result result = ZE_ERROR_UNSUPPORTED_FEATURE;

    if (runtime->ze.zeInitDrivers != NULL) {
        result = runtime->ze.zeInitDrivers(count, NULL, &desc);
    }
    if (result == ZE_SUCCESS) {
        *count = *count < XPU_DRIVERS ? *count : XPU_DRIVERS;
        result = runtime->ze.zeInitDrivers(count, drivers, &desc);
    }
    return result;
}

static ze_result init_by_flag(const struct xpu_runtime *runtime, ze_driver_t *drivers,
                              uint32_t *count, const char **call)
{
    ze_result result = runtime->ze.zeInit(ZE_INIT_GPU_ONLY);

    *call = "zeInit(ZE_INIT_FLAG_GPU_ONLY)";
    if (result == ZE_SUCCESS) {
        *call = "zeDriverGet";
        *count = 0;
        result = runtime->ze.zeDriverGet(count, NULL);
        *count = *count < XPU_DRIVERS ? *count : XPU_DRIVERS;
    }
    return result == ZE_SUCCESS ? runtime->ze.zeDriverGet(count, drivers) : result;
}

/*
 * Calls zeInitDrivers(), which loaders have since 1.18, and zeInit() if the loader lacks it.
 * UNINITIALIZED from zeInitDrivers() means that the driver lacks the function or that there is no
 * device; zeInit() is called then, too, because it succeeds in the first case.
 */
static int find_drivers(struct xpu_runtime *runtime, struct vendor_problem *problem)
{
    ze_driver_t drivers[XPU_DRIVERS];
    uint32_t count = 0;
    const char *call = "zeInitDrivers";
    const ze_result first = init_by_type(runtime, drivers, &count);
    ze_result result = first;

    if (first == ZE_ERROR_UNSUPPORTED_FEATURE || first == ZE_ERROR_UNINITIALIZED) {
        result = init_by_flag(runtime, drivers, &count, &call);
    }
    if (result != ZE_SUCCESS) {
        return no_driver(runtime, result, result == first ? "zeInitDrivers" : call, problem);
    }
    runtime->driver_count = count < XPU_DRIVERS ? count : XPU_DRIVERS;
    for (uint32_t i = 0; i < runtime->driver_count; i++) {
        runtime->drivers[i].handle = drivers[i];
    }
    return 0;
}

static void close_runtime(void *runtime)
{
    struct xpu_runtime *it = runtime;

    if (it == NULL) {
        return;
    }
    pthread_mutex_destroy(&it->lock);
    free(it->units);
    free(it);
}

static int open_runtime(const struct ds_accel_host *host, void **runtime_out,
                        struct vendor_problem *problem)
{
    static const char *const names[] = {"libze_loader.so.1", "libze_loader.so", NULL};
    struct xpu_runtime *runtime = calloc(1, sizeof(*runtime));
    struct vendor_lib lib;

    if (runtime == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                                  "the host's memory is exhausted");
    }
    runtime->host = host;
    pthread_mutex_init(&runtime->lock, NULL);
    if (vendor_lib_open(&lib, host, "library", names, problem) != 0 ||
        vendor_lib_bind(&lib, SYMBOLS, sizeof(SYMBOLS) / sizeof(SYMBOLS[0]), &runtime->ze,
                        problem) != 0 ||
        find_drivers(runtime, problem) != 0 || xpu_units_find(runtime, problem) != 0) {
        close_runtime(runtime);
        return -1;
    }
    xpu_sysman_bind(runtime, &lib);
    xpu_itt_find(runtime);
    xpu_way_find(host, &runtime->way);
    *runtime_out = runtime;
    return 0;
}

static int judge(void *runtime, uint32_t count, uint32_t *usable_out, char *variant,
                 struct vendor_problem *problem)
{
    const struct xpu_runtime *it = runtime;

    (void)problem;
    memcpy(variant, it->way.variant, sizeof(it->way.variant));
    *usable_out = count;
    return 0;
}

static uint32_t has_graphs(const struct xpu_runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->driver_count; i++) {
        if (runtime->drivers[i].has_graphs) {
            return 1;
        }
    }
    return 0;
}

static int32_t backend_info(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct xpu_runtime *runtime = instance->runtime;

    (void)error;
    if (!runtime->way.uses_host_timers) {
        info->flags &= ~DS_ACCEL_FLAG_HOST_TIMERS;
    }
    if (!has_graphs(runtime)) {
        info->flags &= ~DS_ACCEL_FLAG_GRAPHS;
    }
    snprintf(info->communication_backend, sizeof(info->communication_backend), "%s",
             runtime->way.has_oneccl ? "ccl" : "xccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    if (runtime->driver_count > 0) {
        /*
         * Assumes 8, 8 and 16 bits; Intel does not document how the driver encodes its three
         * version numbers.
         */
        const uint32_t version = runtime->drivers[0].version;

        info->runtime_version[0] = version >> 24;
        info->runtime_version[1] = version >> 16 & 0xff;
        info->runtime_version[2] = version & 0xffff;
    }
    return DS_ACCEL_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define HARDWARE \
    "pci 8086:03\n" \
    "node /dev/dri/renderD[0-9]*\n"

static const struct vendor_pattern PATTERN = {.hardware = HARDWARE, .driver = "i915 or xe"};
static const char *const EXPORTS[] = {"ZE_", "SYCL_", "CCL_", NULL};

/* Loaders before 1.12 support Sysman only if this variable is set before they start. */
static const struct ds_accel_env_rule RULES[] = {
    {sizeof(struct ds_accel_env_rule), DS_ACCEL_ENV_IF_UNSET, "ZES_ENABLE_SYSMAN", "1",
     "sensors and free memory with a Level Zero loader before 1.12"},
};

const struct vendor_backend vendor_backend = {
    .name = "xpu",
    .flags = DS_ACCEL_FLAG_HOST_TIMERS | DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES |
             DS_ACCEL_FLAG_VIRTUAL_MEMORY | DS_ACCEL_FLAG_MEMORY_IPC,
    .pattern = &PATTERN,
    .visible = VISIBLE,
    .visible_count = 1,
    .export_prefixes = EXPORTS,
    .env_rules = RULES,
    .env_rule_count = 1,
    .memory_handle_bytes = XPU_HANDLE_BYTES,
    .allocation_align_bytes = 64,
    .device_wait_breaks_captures = 1, /* of a stream that begins to capture during the wait */
    .probes_in_child = 1,             /* drivers keep their device nodes open and run threads */
    .open = open_runtime,
    .close = close_runtime,
    .count = xpu_count,
    .judge = judge,
    .describe = describe,
    .backend_info = backend_info,
    .identify = xpu_identify,
    .device_open = xpu_device_open,
    .device_close = xpu_device_close,
    .takes_native_context = 1,
    .device_synchronize = xpu_device_synchronize,
    .device_health = xpu_device_health,
    .stream_create = xpu_stream_create,
    .stream_destroy = xpu_stream_destroy,
    .stream_priority_range = xpu_stream_priority_range,
    .stream_synchronize = xpu_stream_synchronize,
    .stream_synchronize_for = xpu_stream_synchronize_for,
    .stream_query = xpu_stream_query,
    .stream_wait_event = xpu_stream_wait_event,
    .stream_host_task = xpu_stream_host_task,
    .event_create = xpu_event_create,
    .event_destroy = xpu_event_destroy,
    .event_record = xpu_event_record,
    .event_query = xpu_event_query,
    .event_synchronize = xpu_event_synchronize,
    .event_elapsed_ms = xpu_event_elapsed_ms,
    .times_are_unsigned = 1,
    .alloc = xpu_alloc,
    .free_sized = xpu_free,
    .alloc_pinned = xpu_alloc_pinned,
    .free_pinned = xpu_free_pinned,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED |
                    DS_ACCEL_PINNED_WRITE_COMBINED,
    .alloc_managed = xpu_alloc_managed,
    .host_device_pointer = xpu_host_device_pointer,
    .copy_async = xpu_copy_async,
    .copy_peer_async = xpu_copy_peer_async,
    .fill_async = xpu_fill_async,
    .fill_widths = 1 | 2 | 4,
    .memory_info = xpu_memory_info,
    .vmem_granularity = xpu_vmem_granularity,
    .vmem_reserve = xpu_vmem_reserve,
    .vmem_release = xpu_vmem_release,
    .vmem_create = xpu_vmem_create,
    .vmem_destroy = xpu_vmem_destroy,
    .vmem_map = xpu_vmem_map,
    .vmem_unmap = xpu_vmem_unmap,
    .vmem_set_access = xpu_vmem_set_access,
    .capture_begin = xpu_capture_begin,
    .capture_end = xpu_capture_end,
    .capture_status = xpu_capture_status,
    .graph_destroy = xpu_graph_destroy,
    .graph_instantiate = xpu_graph_instantiate,
    .graph_exec_destroy = xpu_graph_exec_destroy,
    .graph_launch = xpu_graph_launch,
    .graph_dump = xpu_graph_dump,
    .dtype_support = xpu_dtype_support,
    .telemetry = xpu_telemetry,
    .processes = xpu_processes,
    .links = xpu_links,
    .range_push = xpu_range_push,
    .range_pop = xpu_range_pop,
    .profiler_start = xpu_profiler_start,
    .profiler_stop = xpu_profiler_stop,
    .visible_token = xpu_visible_token,
    .peer_can_access = xpu_peer_can_access,
    .peer_enable = xpu_peer_enable,
    .peer_disable = xpu_peer_disable,
    .ipc_memory_export = xpu_ipc_memory_export,
    .ipc_memory_unexport = xpu_ipc_memory_unexport,
    .ipc_memory_open = xpu_ipc_memory_open,
    .ipc_memory_close = xpu_ipc_memory_close,
    .native_handle = xpu_native_handle,
    .native_wrap = xpu_native_wrap,
    .native_unwrap = xpu_native_unwrap,
};

DS_ACCEL_PLUGIN("xpu", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
