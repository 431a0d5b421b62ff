/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Cambricon MLU through CNRT, with CNDev for sensors and CNPX for profiler ranges.
 *
 * CNRT has no functions that initialize or finalize it. A thread's device is 0 until the thread
 * sets another device, and setting a device creates its context, which the process keeps. The
 * plugin initializes CNDev once in a process and does not finalize it: CNDev's manual does not say
 * that initializations are counted, and another part of the program may use CNDev.
 */
#include "mlu.h"

#define SYMBOL(name) VENDOR_REQUIRED(struct cnrt_api, name)
#define NEWER(name) VENDOR_OPTIONAL(struct cnrt_api, name, NULL)

static const struct vendor_symbol cnrt_symbols[] = {
    SYMBOL(cnrtGetDeviceCount),
    SYMBOL(cnrtSetDevice),
    SYMBOL(cnrtGetDevice),
    SYMBOL(cnrtDeviceGetAttribute),
    SYMBOL(cnrtSyncDevice),
    SYMBOL(cnrtGetErrorStr),
    SYMBOL(cnrtMemGetInfo),
    SYMBOL(cnrtMalloc),
    SYMBOL(cnrtFree),
    SYMBOL(cnrtHostMalloc),
    SYMBOL(cnrtFreeHost),
    SYMBOL(cnrtMemcpy),
    SYMBOL(cnrtMemsetAsync),
    SYMBOL(cnrtQueueCreate),
    SYMBOL(cnrtQueueDestroy),
    SYMBOL(cnrtQueueSync),
    SYMBOL(cnrtQueueQuery),
    SYMBOL(cnrtQueueWaitNotifier),
    SYMBOL(cnrtNotifierCreateWithFlags),
    SYMBOL(cnrtNotifierDestroy),
    SYMBOL(cnrtPlaceNotifier),
    SYMBOL(cnrtQueryNotifier),
    SYMBOL(cnrtWaitNotifier),
    SYMBOL(cnrtNotifierElapsedTime),
    NEWER(cnrtGetDeviceProperties_V3),
    NEWER(cnrtDeviceGetQueuePriorityRange),
    NEWER(cnrtMemcpyAsync_V3),
    NEWER(cnrtMemcpyAsync_V2),
    NEWER(cnrtMemcpyAsync),
    NEWER(cnrtMemcpyPeerAsync),
    NEWER(cnrtQueueCreateWithPriority),
    NEWER(cnrtInvokeHostFunc),
    NEWER(cnrtQueueBeginCapture),
    NEWER(cnrtQueueEndCapture),
    NEWER(cnrtQueueIsCapturing),
    NEWER(cnrtTaskTopoGetNodes),
    NEWER(cnrtTaskTopoInstantiate),
    NEWER(cnrtTaskTopoEntityInvoke),
    NEWER(cnrtTaskTopoEntityDestroy),
    NEWER(cnrtTaskTopoDestroy),
    NEWER(cnrtGetPeerAccessibility),
    NEWER(cnrtAcquireMemHandle),
    NEWER(cnrtMapMemHandle),
    NEWER(cnrtUnMapMemHandle),
    NEWER(cnrtIpcGetNotifierHandle),
    NEWER(cnrtIpcOpenNotifierHandle),
};

/* ---- opening and closing -------------------------------------------------------------------- */

/*
 * Chooses the newest asynchronous copy function that the library has; the older functions are
 * deprecated.
 */
static int choose_copy(struct mlu_runtime *runtime)
{
    const struct cnrt_api *cnrt = &runtime->cnrt;

    runtime->copy_async = cnrt->cnrtMemcpyAsync_V3;
    runtime->copy_async_name = "cnrtMemcpyAsync_V3";
    if (runtime->copy_async == NULL) {
        runtime->copy_async = cnrt->cnrtMemcpyAsync_V2;
        runtime->copy_async_name = "cnrtMemcpyAsync_V2";
    }
    if (runtime->copy_async == NULL) {
        runtime->copy_async = cnrt->cnrtMemcpyAsync;
        runtime->copy_async_name = "cnrtMemcpyAsync";
    }
    return runtime->copy_async != NULL ? 0 : -1;
}

static int mlu_open(const struct ds_accel_host *host, void **runtime_out,
                    struct vendor_problem *problem)
{
    struct mlu_runtime *runtime = calloc(1, sizeof(*runtime));
    const char *home = secure_getenv("NEUWARE_HOME");
    char place[256] = "";
    const char *names[] = {"libcnrt.so", "/usr/local/neuware/lib64/libcnrt.so", NULL, NULL};

    if (runtime == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory");
    }
    if (home != NULL && home[0] == '/' &&
        snprintf(place, sizeof(place), "%s/lib64/libcnrt.so", home) < (int)sizeof(place)) {
        names[2] = names[1];
        names[1] = place;
    }
    runtime->host = host;
    if (vendor_lib_open(&runtime->cnrt_lib, host, "library", names, problem) != 0 ||
        vendor_lib_bind(&runtime->cnrt_lib, cnrt_symbols,
                        sizeof(cnrt_symbols) / sizeof(cnrt_symbols[0]), &runtime->cnrt,
                        problem) != 0) {
        free(runtime);
        return -1;
    }
    if (choose_copy(runtime) != 0) {
        vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING,
                           "%s has no cnrtMemcpyAsync, _V2 or _V3", runtime->cnrt_lib.path);
        free(runtime);
        return -1;
    }
    mlu_cndev_open(runtime);
    mlu_ranges_open(runtime);
    *runtime_out = runtime;
    return 0;
}

static void mlu_close(void *runtime)
{
    free(runtime);
}

static int mlu_count(void *opaque, uint32_t *count_out, struct vendor_problem *problem)
{
    struct mlu_runtime *runtime = opaque;
    unsigned int count = 0;
    cnrt_code code = runtime->cnrt.cnrtGetDeviceCount(&count);

    if (code == CNRT_NO_DEVICE) {
        count = 0;
    } else if (code != CNRT_OK) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "cnrtGetDeviceCount()");
    }
    *count_out = count;
    return 0;
}

/* ---- errors --------------------------------------------------------------------------------- */

struct cnrt_error {
    int64_t code;
    int32_t status;
    const char *name;
};

static const struct cnrt_error cnrt_errors[] = {
    {1, DS_ACCEL_ERR_STATE, "cnrtErrorNotReady"},
    {100002, DS_ACCEL_ERR_DRIVER, "cnrtErrorInit"},
    {100004, DS_ACCEL_ERR_NO_DEVICE, "cnrtErrorNoDevice"},
    {100005, DS_ACCEL_ERR_NO_DEVICE, "cnrtErrorDeviceInvalid"},
    {100006, DS_ACCEL_ERR_INVALID, "cnrtErrorArgsInvalid"},
    {100007, DS_ACCEL_ERR_DRIVER, "cnrtErrorSys"},
    {100010, DS_ACCEL_ERR_NO_MEMORY, "cnrtErrorSysNoMem"},
    {100014, DS_ACCEL_ERR_INVALID, "cnrtErrorInvalidResourceHandle"},
    {100015, DS_ACCEL_ERR_STATE, "cnrtErrorIllegalState"},
    {100050, DS_ACCEL_ERR_UNSUPPORTED, "cnrtErrorNotSupport"},
    {100051, DS_ACCEL_ERR_PERMISSION, "cnrtErrorOpsNotPermitted"},
    {100060, DS_ACCEL_ERR_DRIVER, "cnrtErrorQueue"},
    {100100, DS_ACCEL_ERR_NO_MEMORY, "cnrtErrorNoMem"},
    {100128, DS_ACCEL_ERR_DRIVER, "cnrtErrorAssert"},
    {100132, DS_ACCEL_ERR_DRIVER, "cnrtErrorKernelTrap"},
    {100133, DS_ACCEL_ERR_DRIVER, "cnrtErrorKernelUserTrap"},
    {100301, DS_ACCEL_ERR_NOT_FOUND, "cnrtErrorNotFound"},
    {100302, DS_ACCEL_ERR_INVALID, "cnrtErrorInvalidKernel"},
    {100303, DS_ACCEL_ERR_UNSUPPORTED, "cnrtErrorUnsupportedKernelVersion"},
    {100360, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureUnsupported"},
    {100361, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureInvalidated"},
    {100362, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureWrongThread"},
    {100363, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureMerged"},
    {100364, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureUnjoined"},
    {100365, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureIsolation"},
    {100366, DS_ACCEL_ERR_STATE, "cnrtErrorQueueCaptureUnmatched"},
    {100400, DS_ACCEL_ERR_STATE, "cnrtErrorTaskTopoEntityUpdateFailure"},
    {101312, DS_ACCEL_ERR_NOT_FOUND, "cnrtErrorNoKernel"},
    {101315, DS_ACCEL_ERR_NOT_FOUND, "cnrtErrorNoModule"},
    {632002, DS_ACCEL_ERR_STATE, "cnrtErrorSetOnActiveProcess"},
    /* The call used an object of another device */
    {632006, DS_ACCEL_ERR_INVALID, "cnrtErrorDevice"},
    {632009, DS_ACCEL_ERR_NOT_FOUND, "cnrtErrorNoAttribute"},
    {632013, DS_ACCEL_ERR_INVALID, "cnrtErrorMemcpyDirectionInvalid"},
    {632014, DS_ACCEL_ERR_BUSY, "cnrtErrorBusy"},
    {632015, DS_ACCEL_ERR_DRIVER, "cnrtErrorCndrvFuncCall"},
    {632017, DS_ACCEL_ERR_DRIVER, "cnrtErrorCndevFuncCall"},
    {632019, DS_ACCEL_ERR_STATE, "cnrtErrorNoCnrtContext"},
    {632020, DS_ACCEL_ERR_UNSUPPORTED, "cnrtErrorCndrvFuncNotFound"},
    {632100, DS_ACCEL_ERR_INVALID, "cnrtErrorInvalidSymbol"},
    {999991, DS_ACCEL_ERR_DRIVER, "cnrtErrorUnknown"},
};

/*
 * For a code that is not in the table, the name is CNRT's text for the code.
 */
static void mlu_describe(void *opaque, int64_t code, int32_t *status_out, const char **name_out)
{
    const struct mlu_runtime *runtime = opaque;

    for (size_t i = 0; i < sizeof(cnrt_errors) / sizeof(cnrt_errors[0]); i++) {
        if (cnrt_errors[i].code == code) {
            *status_out = cnrt_errors[i].status;
            *name_out = cnrt_errors[i].name;
            return;
        }
    }
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = runtime != NULL ? runtime->cnrt.cnrtGetErrorStr((cnrt_code)code) : NULL;
}

/* ---- the backend ---------------------------------------------------------------------------- */

static int32_t mlu_backend_info(ds_accel_plugin_instance_t *instance,
                                struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = &MLU(instance)->cnrt;

    (void)error;
    snprintf(info->communication_backend, sizeof(info->communication_backend), "cncl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    mlu_driver_version(MLU(instance), info->driver_version);
    if (cnrt->cnrtQueueBeginCapture == NULL || cnrt->cnrtQueueEndCapture == NULL ||
        cnrt->cnrtTaskTopoInstantiate == NULL || cnrt->cnrtTaskTopoEntityInvoke == NULL ||
        cnrt->cnrtTaskTopoEntityDestroy == NULL || cnrt->cnrtTaskTopoDestroy == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_GRAPHS;
    }
    if (cnrt->cnrtAcquireMemHandle == NULL || cnrt->cnrtMapMemHandle == NULL ||
        cnrt->cnrtUnMapMemHandle == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_MEMORY_IPC;
        info->memory_handle_bytes = 0;
    }
    if (cnrt->cnrtIpcGetNotifierHandle == NULL || cnrt->cnrtIpcOpenNotifierHandle == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_EVENT_IPC;
        info->event_handle_bytes = 0;
    }
    return DS_ACCEL_OK;
}

#define HARDWARE \
    "node /dev/cambricon_ctl\n" \
    "node /dev/cambricon_dev[0-9]*\n"

static const struct vendor_pattern pattern = {
    .hardware = HARDWARE,
    .needed_nodes = (const char *const[]){"/dev/cambricon_ctl", NULL},
    .driver = "cambricon-drv",
};

static const struct vendor_visible visible[] = {
    {.variable = "MLU_VISIBLE_DEVICES",
     .separator = ",",
     .is_renumbered = 1,
     .is_empty_if_repeated = 1},
};

const struct vendor_backend vendor_backend = {
    .name = "mlu",
    .flags = DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC |
             DS_ACCEL_FLAG_UNIFIED_ADDRESSES | DS_ACCEL_FLAG_TRITON,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = (const char *const[]){"NEUWARE_HOME", "CNCL", "LD_LIBRARY", "PATH", NULL},
    .memory_handle_bytes = sizeof(void *),
    .event_handle_bytes = sizeof(struct cnrt_ipc_notifier),
    .allocation_align_bytes = 64,
    /* the plugin does not undo cndevInit(), and the effect of a fork is not documented */
    .probes_in_child = 1,

    .open = mlu_open,
    .close = mlu_close,
    .count = mlu_count,
    .describe = mlu_describe,
    .backend_info = mlu_backend_info,

    .identify = mlu_identify,
    .device_open = mlu_device_open,
    .device_close = mlu_device_close,
    .enter = mlu_enter,
    .leave = mlu_leave,
    .enters_for_streams = 1,
    .get_current = mlu_get_current,
    .set_current = mlu_set_current,
    .device_synchronize = mlu_device_synchronize,
    .device_health = mlu_device_health,

    .stream_create = mlu_stream_create,
    .stream_destroy = mlu_stream_destroy,
    .stream_priority_range = mlu_stream_priority_range,
    .stream_synchronize = mlu_stream_synchronize,
    .stream_query = mlu_stream_query,
    .stream_wait_event = mlu_stream_wait_event,
    .stream_host_task = mlu_stream_host_task,

    .event_create = mlu_event_create,
    .event_destroy = mlu_event_destroy,
    .event_record = mlu_event_record,
    .event_query = mlu_event_query,
    .event_synchronize = mlu_event_synchronize,
    .event_elapsed_ms = mlu_event_elapsed_ms,

    .alloc = mlu_alloc,
    .free = mlu_free,
    .alloc_pinned = mlu_alloc_pinned,
    .free_pinned = mlu_free_pinned,
    .copy = mlu_copy,
    .copy_async = mlu_copy_async,
    .copy_peer_async = mlu_copy_peer_async,
    .fill_async = mlu_fill_async,
    /*
     * PORTABLE is supported, because CNRT pins memory for the process, not for one device. The
     * vendor does not document whether copies by other devices are as fast.
     */
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE,
    .fill_widths = 1,
    .memory_info = mlu_memory_info,

    .capture_begin = mlu_capture_begin,
    .capture_end = mlu_capture_end,
    .capture_status = mlu_capture_status,
    .graph_destroy = mlu_graph_destroy,
    .graph_instantiate = mlu_graph_instantiate,
    .graph_exec_destroy = mlu_graph_exec_destroy,
    .graph_launch = mlu_graph_launch,
    .graph_node_count = mlu_graph_node_count,

    .dtype_support = mlu_dtype_support,
    .telemetry = mlu_telemetry,
    .processes = mlu_processes,
    .range_push = mlu_range_push,
    .range_pop = mlu_range_pop,
    .visible_token = mlu_visible_token,

    .peer_can_access = mlu_peer_can_access,
    .peer_enable = mlu_peer_enable,
    .peer_disable = mlu_peer_disable,
    .ipc_memory_export = mlu_ipc_export,
    .ipc_memory_open = mlu_ipc_open,
    .ipc_memory_close = mlu_ipc_close,
    .ipc_event_export = mlu_ipc_event_export,
    .ipc_event_open = mlu_ipc_event_open,
    .wraps_events = 1,
};

DS_ACCEL_PLUGIN("mlu", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
