/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The rocm plugin: AMD's GPUs through HIP, libamdhip64.
 *
 *   hip.h       HIP's functions, numbers and layouts that the plugin uses
 *   device.c    error codes, identity, properties, data types
 *   stream.c    streams' priorities and host tasks, updates of graphs
 *   memory.c    managed and pooled memory, fills, sharing
 *   vmem.c      reserve, create, map
 *   links.c     XGMI between devices, PCI Express
 *   topology.c  the kernel driver's list of GPUs
 *   sensors.c   rocm_smi, amd_smi and sysfs; roctx
 *
 * plugins/common/cuda_shaped.c contains everything that HIP does in the same way as CUDA's runtime.
 * The default stream is HIP's NULL stream. Each device has its own, and NULL means the stream of
 * the thread's current device: the plugin enters the device before calls on streams.
 *
 * Three variables select devices. The layer below HIP reads ROCR_VISIBLE_DEVICES first and
 * renumbers the remaining devices from 0; HIP_VISIBLE_DEVICES contains these new numbers; HIP uses
 * CUDA_VISIBLE_DEVICES if HIP_VISIBLE_DEVICES is not set. The sensor libraries ignore all three
 * variables: they identify a device by its PCI address.
 *
 * Some releases of the runtime narrow the calling thread's CPU mask while they enumerate devices:
 * the plugin restores the mask (DSA-P28).
 */
#include "rocm.h"

#include <sched.h>

#define SHARED(symbol, call) CUDA_SHAPED_REQUIRED(symbol, call)
#define SHARED_OPTIONAL(symbol, call, since) CUDA_SHAPED_OPTIONAL(symbol, call, since)
#define OWN(symbol) \
    { \
#symbol, offsetof(struct rocm, hip.symbol), 1, NULL \
    }
#define OWN_OPTIONAL(symbol, since) \
    { \
#symbol, offsetof(struct rocm, hip.symbol), 0, since \
    }

static const struct vendor_symbol symbols[] = {
    OWN(hipInit),
    OWN(hipDriverGetVersion),
    OWN(hipRuntimeGetVersion),
    OWN(hipGetDeviceCount),
    SHARED("hipSetDevice", set_device),
    SHARED("hipGetDevice", get_device),
    OWN(hipDeviceGet),
    OWN(hipDeviceGetName),
    OWN_OPTIONAL(hipDeviceGetUuid, "ROCm 5.1"),
    OWN(hipDeviceTotalMem),
    OWN(hipDeviceGetAttribute),
    OWN_OPTIONAL(hipGetDevicePropertiesR0600, "ROCm 6.0"),
    OWN_OPTIONAL(hipGetDeviceProperties, NULL),
    OWN(hipDeviceGetPCIBusId),
    SHARED("hipDeviceSynchronize", device_synchronize),
    OWN(hipDeviceGetStreamPriorityRange),
    SHARED("hipGetLastError", last_error),
    OWN(hipGetErrorName),
    SHARED("hipMemGetInfo", memory_info),
    SHARED("hipMalloc", alloc),
    SHARED("hipFree", free),
    SHARED("hipHostMalloc", host_alloc),
    SHARED("hipHostFree", host_free),
    SHARED("hipHostRegister", host_register),
    SHARED("hipHostUnregister", host_unregister),
    SHARED("hipHostGetDevicePointer", host_device_pointer),
    OWN(hipMallocManaged),
    SHARED("hipMemcpyAsync", copy),
    SHARED("hipMemcpyPeerAsync", copy_peer),
    OWN(hipMemsetD8Async),
    OWN(hipMemsetD16Async),
    OWN(hipMemsetD32Async),
    OWN(hipMallocAsync),
    OWN(hipFreeAsync),
    OWN_OPTIONAL(hipDeviceGetDefaultMemPool, "ROCm 5.1"),
    OWN_OPTIONAL(hipMemPoolTrimTo, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemGetAllocationGranularity, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemAddressReserve, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemAddressFree, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemCreate, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemRelease, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemMap, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemUnmap, "ROCm 5.2"),
    OWN_OPTIONAL(hipMemSetAccess, "ROCm 5.2"),
    OWN(hipStreamCreateWithPriority),
    SHARED("hipStreamDestroy", stream_destroy),
    SHARED("hipStreamQuery", stream_query),
    SHARED("hipStreamSynchronize", stream_synchronize),
    SHARED("hipStreamWaitEvent", stream_wait_event),
    SHARED_OPTIONAL("hipLaunchHostFunc", launch_host_func, "ROCm 5.3"),
    SHARED_OPTIONAL("hipStreamAddCallback", add_callback, NULL),
    SHARED("hipEventCreateWithFlags", event_create),
    SHARED("hipEventRecord", event_record),
    SHARED("hipEventDestroy", event_destroy),
    SHARED("hipEventSynchronize", event_synchronize),
    SHARED("hipEventElapsedTime", event_elapsed),
    SHARED("hipEventQuery", event_query),
    SHARED_OPTIONAL("hipThreadExchangeStreamCaptureMode", exchange_capture_mode, "ROCm 5.0"),
    SHARED("hipStreamBeginCapture", capture_begin),
    SHARED("hipStreamEndCapture", capture_end),
    SHARED("hipStreamIsCapturing", capture_status),
    SHARED("hipGraphInstantiate", graph_instantiate),
    SHARED("hipGraphLaunch", graph_launch),
    OWN_OPTIONAL(hipGraphExecUpdate, "ROCm 4.5"),
    SHARED("hipGraphExecDestroy", graph_exec_destroy),
    SHARED("hipGraphDestroy", graph_destroy),
    OWN(hipGraphGetNodes),
    SHARED("hipDeviceCanAccessPeer", peer_can_access),
    SHARED("hipDeviceEnablePeerAccess", peer_enable),
    SHARED("hipDeviceDisablePeerAccess", peer_disable),
    OWN(hipIpcGetMemHandle),
    OWN(hipIpcOpenMemHandle),
    OWN(hipIpcCloseMemHandle),
    SHARED("hipIpcGetEventHandle", ipc_event_export),
    SHARED("hipIpcOpenEventHandle", ipc_event_open),
};

static enum cuda_shaped_meaning rocm_meaning(void *runtime, int code)
{
    (void)runtime;
    switch (code) {
    case HIP_NOT_READY:
        return CUDA_SHAPED_NOT_READY;
    case HIP_PEER_ACCESS_ALREADY_ENABLED:
        return CUDA_SHAPED_PEER_ENABLED;
    case HIP_PEER_ACCESS_NOT_ENABLED:
        return CUDA_SHAPED_PEER_NOT_ENABLED;
    default:
        return CUDA_SHAPED_FAILURE;
    }
}

static const struct cuda_shaped_vendor shaped = {
    .symbols = symbols,
    .symbol_count = sizeof(symbols) / sizeof(symbols[0]),
    .meaning = rocm_meaning,
};

#define HARDWARE \
    "pci 1002:03\n" \
    "pci 1002:12\n" \
    "node /dev/kfd\n" \
    "node /dev/dri/renderD[0-9]*\n"

static const char *const needed_nodes[] = {"/dev/kfd", NULL};
static const struct vendor_pattern pattern = {HARDWARE, needed_nodes, NULL, "amdgpu"};

/* -- names of the library -- */

#define SONAME_COUNT 4
#define PLACE_COUNT 4

static const char *const sonames[SONAME_COUNT] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                                  "libamdhip64.so.5", "libamdhip64.so"};

struct names {
    char text[SONAME_COUNT * PLACE_COUNT][256];
    const char *list[SONAME_COUNT * PLACE_COUNT + 1];
};

/*
 * Lists the linker's default locations first, followed by ROCM_PATH, HIP_PATH and the vendor's
 * directory.
 */
static void make_names(struct names *names)
{
    const char *const places[PLACE_COUNT] = {"", secure_getenv("ROCM_PATH"),
                                             secure_getenv("HIP_PATH"), "/opt/rocm"};
    size_t count = 0;
    size_t place;
    size_t i;

    for (place = 0; place < PLACE_COUNT; place++) {
        if (places[place] == NULL || (place > 0 && places[place][0] != '/')) {
            continue;
        }
        for (i = 0; i < SONAME_COUNT; i++) {
            int length = snprintf(names->text[count], sizeof(names->text[count]), "%s%s%s",
                                  places[place], place > 0 ? "/lib/" : "", sonames[i]);
            if (length > 0 && (size_t)length < sizeof(names->text[count])) {
                names->list[count] = names->text[count];
                count++;
            }
        }
    }
    names->list[count] = NULL;
}

/* -- opening and closing -- */

/*
 * The calling thread's CPU mask; a kernel that supports more CPUs than CPUS_MAX does not return it.
 */
#define CPUS_MAX 8192

struct affinity {
    unsigned long bits[CPUS_MAX / (8 * sizeof(unsigned long))];
    size_t size_bytes; /* 0: the mask could not be read */
};

static void save_affinity(struct affinity *affinity)
{
    memset(affinity, 0, sizeof(*affinity));
    if (sched_getaffinity(0, sizeof(affinity->bits), (cpu_set_t *)(void *)affinity->bits) == 0) {
        affinity->size_bytes = sizeof(affinity->bits);
    }
}

static void restore_affinity(const struct ds_accel_host *host, const struct affinity *before)
{
    struct affinity now;

    save_affinity(&now);
    if (before->size_bytes == 0 || memcmp(now.bits, before->bits, sizeof(now.bits)) == 0) {
        return;
    }
    (void)sched_setaffinity(0, before->size_bytes, (const cpu_set_t *)(const void *)before->bits);
    vendor_log(host, DS_ACCEL_LOG_DEBUG,
               "the runtime changed the thread's CPU affinity: it was put back");
}

static int is_presence_off(const struct ds_accel_host *host)
{
    char text[16] = "";

    return host->config_get(host, "presence", text, sizeof(text), NULL) == DS_ACCEL_OK &&
           strcmp(text, "off") == 0;
}

/*
 * Visibility variables as HIP reads them: CUDA_VISIBLE_DEVICES applies only if HIP_VISIBLE_DEVICES
 * is not set; an empty HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES counts as not set; an empty
 * ROCR_VISIBLE_DEVICES hides all devices. The backend's table lists the two variables that HIP
 * itself documents for AMD.
 */
static const struct vendor_visible visible[] = {
    {"HIP_VISIBLE_DEVICES", ",", 1, 1, 1, 0},
    {"ROCR_VISIBLE_DEVICES", ",", 1, 0, 0, 0},
};
static const struct vendor_visible visible_by_cuda[] = {
    {"CUDA_VISIBLE_DEVICES", ",", 1, 1, 1, 0},
    {"ROCR_VISIBLE_DEVICES", ",", 1, 0, 0, 0},
};

static int is_listed(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0';
}

static const struct vendor_visible *visible_now(void)
{
    return !is_listed("HIP_VISIBLE_DEVICES") && is_listed("CUDA_VISIBLE_DEVICES") ? visible_by_cuda
                                                                                  : visible;
}

static const char *find_hiding(char *text, size_t text_size)
{
    return vendor_visible_is_hiding(visible_now(), 2, text, text_size);
}

static int no_device(const struct rocm *rocm, const char *call, hip_error_t code,
                     struct vendor_problem *problem)
{
    char text[192];
    const char *hiding = find_hiding(text, sizeof(text));

    if (hiding != NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_HIDDEN, "%s", hiding);
    }
    vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE, "%s finds no device: %s: %s (%d)",
                       vendor_lib_name(&rocm->lib), call, rocm->hip.hipGetErrorName(code), code);
    problem->vendor_code = code;
    return -1;
}

/*
 * Initializes HIP and counts the devices. If there is no device, hipInit() fails in some releases
 * and hipGetDeviceCount() in others, so the code of the call that failed is checked.
 */
static int start(struct rocm *rocm, struct vendor_problem *problem)
{
    struct affinity affinity;
    hip_error_t init_code;
    hip_error_t code;
    int count = 0;

    save_affinity(&affinity);
    init_code = rocm->hip.hipInit(0);
    code = init_code == HIP_SUCCESS ? rocm->hip.hipGetDeviceCount(&count) : init_code;
    restore_affinity(rocm->host, &affinity);
    (void)cuda_shaped_code(&rocm->shaped, code);
    if (code == HIP_NO_DEVICE || code == HIP_INVALID_DEVICE) {
        return no_device(rocm, init_code != HIP_SUCCESS ? "hipInit(0)" : "hipGetDeviceCount", code,
                         problem);
    }
    if (code == HIP_INSUFFICIENT_DRIVER) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_MISMATCH, rocm, code, 0,
                                   "%s: hipInit(0)", vendor_lib_name(&rocm->lib));
    }
    if (code != HIP_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, rocm, code, 1, "%s",
                                   init_code != HIP_SUCCESS ? "hipInit(0)" : "hipGetDeviceCount");
    }
    rocm->device_count = count > 0 ? (uint32_t)count : 0;
    return count > 0 ? 0 : no_device(rocm, "hipGetDeviceCount", HIP_NO_DEVICE, problem);
}

static int rocm_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    (void)problem;
    *count_out = ((const struct rocm *)runtime)->device_count;
    return 0;
}

static void rocm_close(void *runtime)
{
    struct rocm *rocm = runtime;

    if (rocm != NULL) {
        rocm_sensors_destroy(rocm->sensors);
        rocm_vmem_close(rocm);
        pthread_mutex_destroy(&rocm->lock);
        free(rocm);
    }
}

static int rocm_open(const struct ds_accel_host *host, void **runtime_out,
                     struct vendor_problem *problem)
{
    struct names *names;
    struct rocm *rocm;
    int failure;

    if (!is_presence_off(host) && rocm_topology_check(host, problem) != 0) {
        return -1;
    }
    rocm = calloc(1, sizeof(*rocm));
    names = calloc(1, sizeof(*names));
    if (rocm == NULL || names == NULL || (rocm->sensors = rocm_sensors_create(host)) == NULL) {
        free(names);
        free(rocm);
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory to start");
    }
    rocm->host = host;
    pthread_mutex_init(&rocm->lock, NULL);
    make_names(names);
    failure = vendor_lib_open(&rocm->lib, host, "library", names->list, problem) != 0 ||
              cuda_shaped_bind(rocm, &shaped, &rocm->lib, problem) != 0 ||
              start(rocm, problem) != 0;
    free(names);
    if (failure) {
        rocm_close(rocm);
        return -1;
    }
    *runtime_out = rocm;
    return 0;
}

/* -- facts -- */

/* Splits HIP's version number: 50221153 means 5.2.21153. */
static void write_version(int version, uint32_t *out)
{
    out[0] = (uint32_t)version / 10000000;
    out[1] = (uint32_t)version / 100000 % 100;
    out[2] = (uint32_t)version % 100000;
}

/* Reads the kernel driver's version, such as "6.8.5". */
static void read_driver_version(const struct ds_accel_host *host, uint32_t *out)
{
    char line[64];

    if (vendor_read_line(host, "/sys/module/amdgpu/version", line, sizeof(line)) == 0) {
        (void)sscanf(line, "%u.%u.%u", &out[0], &out[1], &out[2]);
    }
}

static int32_t rocm_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct rocm *rocm = instance->runtime;
    int version = 0;
    int32_t status = vendor_check(
        instance, NULL, cuda_shaped_code(&rocm->shaped, rocm->hip.hipRuntimeGetVersion(&version)),
        error, "hipRuntimeGetVersion");

    if (status < 0) {
        return status;
    }
    write_version(version, info->runtime_version);
    if (version < HIP_VMEM_SINCE || !rocm_has_vmem(&rocm->hip)) {
        info->flags &= ~DS_ACCEL_FLAG_VIRTUAL_MEMORY;
    }
    read_driver_version(instance->host, info->driver_version);
    snprintf(info->communication_backend, sizeof(info->communication_backend), "nccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    return DS_ACCEL_OK;
}

/* -- visible devices -- */

static int is_uuid(void *user_data, const char *token)
{
    uint32_t *position = user_data;

    if (strncmp(token, "GPU-", 4) == 0) {
        return 1;
    }
    (*position)++;
    return 0;
}

/*
 * length of "GPU-" and 16 digits; other forms of write_uuid() and an absent UUID have other lengths
 */
#define UUID_LENGTH 20

/*
 * Returns true if the device has a UUID of UUID_LENGTH characters, and the list contains a UUID at
 * or before the device's position. HIP skips a device that the list contains twice, even if once as
 * a number and once as a UUID, so positions after a UUID are not reliable. The caller then writes
 * the device's UUID instead: a runtime that accepted one UUID in this list also accepts this
 * device's UUID.
 */
static int is_behind_uuid(const ds_accel_plugin_device_t *device, const char *list)
{
    uint32_t position = 0;

    return vendor_visible_each(list, is_uuid, &position) == 1 && device->index >= position &&
           strlen(device->identity.uuid_text) == UUID_LENGTH;
}

/*
 * Writes the device's entry in the variable that selects devices, or the device's index if no such
 * variable is set. Argument which: 0 for the list of HIP, 1 for ROCR_VISIBLE_DEVICES. Returns 0, or
 * -1 if the variable cannot select the device. ROCR_VISIBLE_DEVICES can select the device only if
 * no HIP list is set, because a HIP list uses the numbers that result from ROCR_VISIBLE_DEVICES.
 */
int rocm_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                       size_t token_size)
{
    const char *hip_list = is_listed("HIP_VISIBLE_DEVICES")    ? "HIP_VISIBLE_DEVICES"
                           : is_listed("CUDA_VISIBLE_DEVICES") ? "CUDA_VISIBLE_DEVICES"
                                                               : NULL;
    const char *list = which == 0 ? hip_list : "ROCR_VISIBLE_DEVICES";

    if (which > 0 && hip_list != NULL) {
        return -1;
    }
    if (which == 0 && list != NULL && is_behind_uuid(device, list)) {
        snprintf(token, token_size, "%s", device->identity.uuid_text);
        return 0;
    }
    return vendor_visible_token(device, list, token, token_size);
}

static const char *const export_prefixes[] = {"NCCL", "RCCL", "HIP_", "HSA_", NULL};

const struct vendor_backend vendor_backend = {
    .name = "rocm",
    .flags = DS_ACCEL_FLAG_TRITON | DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS |
             DS_ACCEL_FLAG_UNIFIED_ADDRESSES | DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY |
             DS_ACCEL_FLAG_VIRTUAL_MEMORY | DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = sizeof(visible) / sizeof(visible[0]),
    .visible_now = visible_now,
    .export_prefixes = export_prefixes,
    .memory_handle_bytes = sizeof(struct hip_ipc_memory),
    .event_handle_bytes = sizeof(struct cuda_shaped_ipc),
    .allocation_align_bytes = 256,
    /* The runtime rejects none of these three: a launch runs at once, a wait for an event from
     * outside takes place at once, and an interprocess event is neither recorded nor waited for
     * when the graph runs. */
    .captures_no_launches = 1,
    .captures_no_outer_waits = 1,
    .captures_no_ipc_events = 1,
    .device_wait_breaks_captures = 1,
    .frees_wait = 1,
    .probes_in_child = 1,
    .open = rocm_open,
    .close = rocm_close,
    .count = rocm_count,
    .describe = rocm_describe,
    .backend_info = rocm_backend_info,
    .identify = rocm_identify,
    .device_open = rocm_device_open,
    CUDA_SHAPED_VERBS,
    CUDA_SHAPED_HOST_VERBS,
    CUDA_SHAPED_ACCESS_VERBS,
    .copy_peer_async = rocm_copy_peer_async,
    CUDA_SHAPED_GRAPH_VERBS,
    .capture_end = rocm_capture_end,
    .stream_create = rocm_stream_create,
    .stream_default = rocm_stream_default,
    .stream_priority_range = rocm_stream_priority_range,
    .stream_host_task = rocm_stream_host_task,
    .event_create = cuda_shaped_event_create,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED |
                    DS_ACCEL_PINNED_WRITE_COMBINED,
    .alloc_managed = rocm_alloc_managed,
    .copy_async = cuda_shaped_copy_async,
    .fill_async = rocm_fill_async,
    .fill_widths = 1 | 2 | 4,
    .trim = rocm_trim,
    .alloc_async = rocm_alloc_async,
    .free_async = rocm_free_async,
    .vmem_granularity = rocm_vmem_granularity,
    .vmem_reserve = rocm_vmem_reserve,
    .vmem_release = rocm_vmem_release,
    .vmem_create = rocm_vmem_create,
    .vmem_destroy = rocm_vmem_destroy,
    .vmem_map = rocm_vmem_map,
    .vmem_unmap = rocm_vmem_unmap,
    .vmem_set_access = rocm_vmem_set_access,
    .capture_begin = cuda_shaped_capture_begin,
    .capture_status = cuda_shaped_capture_status,
    .graph_exec_update = rocm_graph_exec_update,
    .graph_node_count = rocm_graph_node_count,
    .dtype_support = rocm_dtype_support,
    .telemetry = rocm_telemetry,
    .links = rocm_links,
    .range_push = rocm_range_push,
    .range_pop = rocm_range_pop,
    .visible_token = rocm_visible_token,
    .ipc_memory_export = rocm_ipc_memory_export,
    .ipc_memory_open = rocm_ipc_memory_open,
    .ipc_memory_close = rocm_ipc_memory_close,
    .ipc_event_export = cuda_shaped_ipc_event_export,
    .ipc_event_open = cuda_shaped_ipc_event_open,
};

DS_ACCEL_PLUGIN("rocm", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
