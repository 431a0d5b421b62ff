/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The hpu plugin: Intel Gaudi (Habana) through SynapseAI's libSynapse.so, with HLML for the cards'
 * sensors. The plugin was never run on real hardware: prototypes and numbers come from the vendor's
 * headers (synapse.h, hlml.h), and behaviour is that of the simulator in tests/sim/hpu. Comments in
 * the code mark what the headers leave open.
 *
 * How Gaudi differs from the ABI's model:
 *
 *  - A module (identified by its number in the box) is acquired as a whole by one process.
 *    Counting, identity and telemetry therefore use attributes by module id, HLML and sysfs; only
 *    device_open acquires the module. If other processes have acquired all modules, probe reports
 *    DEVICE_BUSY and the process that, according to /proc, has the node of a module open.
 *  - There is no current device: device_get_current and device_set_current stay empty, and the host
 *    keeps the current device.
 *  - The card reads and writes only host memory that is mapped for the card (maps.c).
 *  - Synapse has no call that runs a host function in a stream, and none that lets the host block a
 *    stream. A thread of the plugin could run the function, but could not hold back later work,
 *    which a host task guarantees (DSA-P48): the plugin has no stream_host_task.
 *  - Work is recorded by compiling tensors to a recipe, not by watching a stream. A graph of
 *    PyTorch on hpu is such a recipe; copies and fills cannot be captured, and the graph slots stay
 *    empty. `graph_supported` in the configuration is true for hpu because it describes the
 *    framework.
 *  - There is a profiler (synProfilerStart), but it has no ranges.
 *  - The constructor of DeepSpeed's accelerator class for hpu enables deterministic algorithms.
 *    This is a switch of PyTorch for its own kernels, without a variable or a call of Synapse: a
 *    program in C has nothing to set, and copies and fills are always deterministic.
 *  - The runtime itself orders dependent work and limits the work in flight: DeepSpeed's
 *    resolves_data_dependency and handles_memory_backpressure, both true.
 */
#include "hpu.h"

#define HARDWARE \
    "pci 1da3\n" \
    "node /dev/accel/accel[0-9]*\n" \
    "node /dev/accel/accel_controlD[0-9]*\n" \
    "node /dev/hl[0-9]*\n" \
    "node /dev/hl_controlD[0-9]*\n"

static const struct vendor_pattern pattern = {.hardware = HARDWARE, .driver = "habanalabs"};
static const struct vendor_visible visible[] = {{HPU_VISIBLE, ",", 0, 0, 0, 0}};
static const char *const prefixes[] = {"PT_HPU_", "HABANA_", "HCCL", NULL};

static const char *const synapse_names[] = {"libSynapse.so", "/usr/lib/habanalabs/libSynapse.so",
                                            NULL};
static const char *const hlml_names[] = {"libhlml.so", "/usr/lib/habanalabs/libhlml.so", NULL};

#define NEEDS(symbol) VENDOR_REQUIRED(struct synapse, symbol)
#define MAY(symbol) VENDOR_OPTIONAL(struct synapse, symbol, NULL)
static const struct vendor_symbol synapse_symbols[] = {
    NEEDS(synInitialize),
    NEEDS(synDestroy),
    NEEDS(synDeviceGetCount),
    MAY(synDeviceGetModuleIDs),
    NEEDS(synDeviceAcquireByModuleId),
    NEEDS(synDeviceRelease),
    MAY(synDeviceGetAttributeByModuleId),
    MAY(synDeviceGetAttribute),
    MAY(synDeviceGetName),
    NEEDS(synDeviceGetMemoryInfo),
    NEEDS(synDeviceSynchronize),
    NEEDS(synDeviceMalloc),
    NEEDS(synDeviceFree),
    NEEDS(synHostMalloc),
    NEEDS(synHostFree),
    NEEDS(synHostMap),
    NEEDS(synHostUnmap),
    NEEDS(synMemCopyAsync),
    NEEDS(synMemsetD8Async),
    NEEDS(synMemsetD16Async),
    NEEDS(synMemsetD32Async),
    MAY(synStreamCreateGeneric),
    MAY(synStreamCreate),
    NEEDS(synStreamDestroy),
    NEEDS(synStreamSynchronize),
    NEEDS(synStreamQuery),
    NEEDS(synStreamWaitEvent),
    NEEDS(synEventCreate),
    NEEDS(synEventDestroy),
    NEEDS(synEventRecord),
    NEEDS(synEventSynchronize),
    NEEDS(synEventQuery),
    NEEDS(synEventElapsedTime),
    MAY(synDriverGetVersion),
};

#define HLML_NEEDS(symbol) VENDOR_REQUIRED(struct hlml, symbol)
#define HLML_MAY(symbol) VENDOR_OPTIONAL(struct hlml, symbol, NULL)
static const struct vendor_symbol hlml_symbols[] = {
    HLML_NEEDS(hlml_init),
    HLML_NEEDS(hlml_shutdown),
    HLML_NEEDS(hlml_device_get_count),
    HLML_NEEDS(hlml_device_get_handle_by_index),
    HLML_NEEDS(hlml_device_get_module_id),
    HLML_MAY(hlml_device_get_name),
    HLML_MAY(hlml_device_get_uuid),
    HLML_MAY(hlml_device_get_pci_info),
    HLML_MAY(hlml_device_get_memory_info),
    HLML_MAY(hlml_device_get_utilization_rates),
    HLML_MAY(hlml_device_get_temperature),
    HLML_MAY(hlml_device_get_power_usage),
    HLML_MAY(hlml_device_get_power_management_default_limit),
    HLML_MAY(hlml_device_get_total_energy_consumption),
    HLML_MAY(hlml_device_get_clock_info),
    HLML_MAY(hlml_device_get_current_clocks_throttle_reasons),
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* ---- errors --------------------------------------------------------------------------------- */

/* The codes of synStatus, with their names and the statuses of the ABI. */
static const struct {
    const char *name;
    int32_t status;
} statuses[] = {
    [1] = {"synInvalidArgument", DS_ACCEL_ERR_INVALID},
    [2] = {"synCbFull", DS_ACCEL_ERR_DRIVER},
    [3] = {"synOutOfHostMemory", DS_ACCEL_ERR_NO_MEMORY},
    [4] = {"synOutOfDeviceMemory", DS_ACCEL_ERR_NO_MEMORY},
    [5] = {"synObjectAlreadyInitialized", DS_ACCEL_ERR_STATE},
    [6] = {"synObjectNotInitialized", DS_ACCEL_ERR_STATE},
    [7] = {"synCommandSubmissionFailure", DS_ACCEL_ERR_DRIVER},
    [8] = {"synNoDeviceFound", DS_ACCEL_ERR_NO_DEVICE},
    [9] = {"synDeviceTypeMismatch", DS_ACCEL_ERR_INVALID},
    [10] = {"synFailedToInitializeCb", DS_ACCEL_ERR_DRIVER},
    [11] = {"synFailedToFreeCb", DS_ACCEL_ERR_DRIVER},
    [12] = {"synFailedToMapCb", DS_ACCEL_ERR_DRIVER},
    [13] = {"synFailedToUnmapCb", DS_ACCEL_ERR_DRIVER},
    [14] = {"synFailedToAllocateDeviceMemory", DS_ACCEL_ERR_NO_MEMORY},
    [15] = {"synFailedToFreeDeviceMemory", DS_ACCEL_ERR_DRIVER},
    [16] = {"synFailedNotEnoughDevicesFound", DS_ACCEL_ERR_NO_DEVICE},
    [17] = {"synDeviceReset", DS_ACCEL_ERR_DEVICE_LOST},
    [18] = {"synUnsupported", DS_ACCEL_ERR_UNSUPPORTED},
    [19] = {"synWrongParamsFile", DS_ACCEL_ERR_DRIVER},
    [20] = {"synDeviceAlreadyAcquired", DS_ACCEL_ERR_BUSY},
    [21] = {"synNameIsAlreadyUsed", DS_ACCEL_ERR_DRIVER},
    [22] = {"synBusy", DS_ACCEL_ERR_BUSY},
    [23] = {"synAllResourcesTaken", DS_ACCEL_ERR_BUSY},
    [24] = {"synUnavailable", DS_ACCEL_ERR_DRIVER},
    [25] = {"synInvalidTensorDimensions", DS_ACCEL_ERR_INVALID},
    [26] = {"synFail", DS_ACCEL_ERR_DRIVER},
    [27] = {"synOutOfResources", DS_ACCEL_ERR_NO_MEMORY},
    [28] = {"synUninitialized", DS_ACCEL_ERR_STATE},
    [29] = {"synAlreadyInitialized", DS_ACCEL_ERR_STATE},
    [30] = {"synFailedSectionValidation", DS_ACCEL_ERR_DRIVER},
    [31] = {"synSynapseTerminated", DS_ACCEL_ERR_DRIVER},
    [32] = {"synAssertAsync", DS_ACCEL_ERR_DRIVER},
    [33] = {"synInvalidEventHandle", DS_ACCEL_ERR_INVALID},
    [34] = {"synMappingNotFound", DS_ACCEL_ERR_INVALID},
    [35] = {"synFailedDynamicPatching", DS_ACCEL_ERR_DRIVER},
    [36] = {"synFailedStaticPatching", DS_ACCEL_ERR_DRIVER},
    [37] = {"synFailedToSubmitWorkload", DS_ACCEL_ERR_DRIVER},
    [38] = {"synInvalidSectionsDefinition", DS_ACCEL_ERR_DRIVER},
    [39] = {"synInvalidTensorProperties", DS_ACCEL_ERR_DRIVER},
    [40] = {"synFailHccl", DS_ACCEL_ERR_DRIVER},
    [41] = {"synFailedToCollectTime", DS_ACCEL_ERR_STATE},
    [42] = {"synTimeout", DS_ACCEL_ERR_TIMEOUT},
    [43] = {"synResourceBadUsage", DS_ACCEL_ERR_DRIVER},
};

static void describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    (void)runtime;
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = NULL;
    if (code > 0 && code < (int64_t)ARRAY_SIZE(statuses) && statuses[code].name != NULL) {
        *status_out = statuses[code].status;
        *name_out = statuses[code].name;
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static void open_hlml(struct hpu_runtime *runtime, const struct ds_accel_host *host)
{
    struct vendor_lib library;
    struct vendor_problem problem;
    int code;

    memset(&problem, 0, sizeof(problem));
    if (vendor_lib_open(&library, host, "telemetry_library", hlml_names, &problem) != 0 ||
        vendor_lib_bind(&library, hlml_symbols, ARRAY_SIZE(hlml_symbols), &runtime->hlml,
                        &problem) != 0) {
        vendor_log(host, DS_ACCEL_LOG_INFO, "no telemetry: %s", problem.detail);
        return;
    }
    code = runtime->hlml.hlml_init();
    if (code != HLML_OK && code != HLML_ALREADY_INITIALIZED) {
        vendor_log(host, DS_ACCEL_LOG_INFO, "no telemetry: hlml_init(): %d", code);
        return;
    }
    /* 1: HLML was initialized by other code of the process, which must also shut it down. */
    runtime->has_hlml = code == HLML_OK ? 2 : 1;
}

static void close_runtime(void *state)
{
    struct hpu_runtime *runtime = state;

    if (runtime->has_hlml == 2) {
        runtime->hlml.hlml_shutdown();
    }
    hpu_process_end(runtime);
    free(runtime);
}

static int open_synapse(struct hpu_runtime *runtime, struct vendor_problem *problem)
{
    if (vendor_lib_open(&runtime->library, runtime->host, "library", synapse_names, problem) != 0 ||
        vendor_lib_bind(&runtime->library, synapse_symbols, ARRAY_SIZE(synapse_symbols),
                        &runtime->syn, problem) != 0) {
        return -1;
    }
    /*
     * Newer releases create streams with synStreamCreateGeneric(), older releases with
     * synStreamCreate(): both symbols are optional, but one of them must exist.
     */
    if (runtime->syn.synStreamCreateGeneric == NULL && runtime->syn.synStreamCreate == NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING,
                                  "%s has neither synStreamCreateGeneric nor synStreamCreate",
                                  runtime->library.path);
    }
    return hpu_process_begin(runtime, problem);
}

static int open_runtime(const struct ds_accel_host *host, void **runtime_out,
                        struct vendor_problem *problem)
{
    struct hpu_runtime *runtime = calloc(1, sizeof(*runtime));

    if (runtime == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory for %zu bytes",
                                  sizeof(*runtime));
    }
    runtime->host = host;
    if (open_synapse(runtime, problem) != 0) {
        free(runtime);
        return -1;
    }
    open_hlml(runtime, host);
    *runtime_out = runtime;
    return 0;
}

static int count_devices(void *state, uint32_t *count_out, struct vendor_problem *problem)
{
    struct hpu_runtime *runtime = state;
    uint32_t count = 0;
    syn_status code;

    runtime->module_count = 0;
    if (!runtime->has_no_device) {
        code = runtime->syn.synDeviceGetCount(&count);
        if (code != SYN_SUCCESS && code != SYN_NO_DEVICE_FOUND) {
            return hpu_problem(runtime, code, "synDeviceGetCount()", problem);
        }
        count = code == SYN_SUCCESS ? count : 0;
    }
    if (count > 0 && hpu_modules_list(runtime, count, problem) != 0) {
        return -1;
    }
    *count_out = runtime->module_count;
    return 0;
}

/*
 * Reports DEVICE_BUSY if every module is acquired by another process. A probe that tried to acquire
 * the modules would block other processes, so the plugin searches /proc for processes that have a
 * module's node open; the calling program does not count. An unprivileged user does not see other
 * users' open files: then the module counts as usable, and device_open fails with ERR_BUSY.
 */
static int judge(void *state, uint32_t count, uint32_t *usable_out, char *variant,
                 struct vendor_problem *problem)
{
    struct hpu_runtime *runtime = state;
    const struct hpu_module *first = NULL;
    char first_name[32] = "";
    int32_t first_pid = 0;
    uint32_t usable = 0;

    (void)variant;
    for (uint32_t i = 0; i < count && i < runtime->module_count; i++) {
        char name[32] = "";
        int32_t pid = 0;

        if (hpu_module_holders(runtime->host, &runtime->modules[i], 1, &pid, 1, name,
                               sizeof(name)) == 0) {
            usable++;
        } else if (first == NULL) {
            first = &runtime->modules[i];
            first_pid = pid;
            snprintf(first_name, sizeof(first_name), "%s", name);
        }
    }
    *usable_out = usable;
    if (usable == 0 && first != NULL) {
        return vendor_problem_set(
            problem, DS_ACCEL_REASON_DEVICE_BUSY,
            "module %u is held by process %d (%s), and a module serves one process; "
            "hl-smi or \"fuser -v %s\" shows which process has it",
            first->id, (int)first_pid, first_name, first->node);
    }
    return 0;
}

/* Parses "1.19.0-561" and similar texts: at most three numbers, up to the first part that is not a
   number. */
static void parse_version(const char *text, uint32_t version[4])
{
    for (int i = 0; i < 3; i++) {
        char *end;
        unsigned long part = strtoul(text, &end, 10);

        if (end == text) {
            return;
        }
        version[i] = (uint32_t)part;
        if (*end != '.') {
            return;
        }
        text = end + 1;
    }
}

static int32_t backend_info(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = instance->runtime;
    char version[256] = "";

    (void)error;
    snprintf(info->communication_backend, sizeof(info->communication_backend), "hccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "hpu_backend");
    if (vendor_read_line(instance->host, "/sys/module/habanalabs/version", version,
                         sizeof(version)) == 0) {
        parse_version(version, info->driver_version);
    }
    version[0] = '\0';
    /* If sysfs did not have the kernel driver's version, ask Synapse for it. */
    if (info->driver_version[0] == 0 && runtime->syn.synDriverGetVersion != NULL &&
        runtime->syn.synDriverGetVersion(version, (int)sizeof(version)) == SYN_SUCCESS) {
        version[sizeof(version) - 1] = '\0';
        parse_version(version, info->driver_version);
    }
    return DS_ACCEL_OK;
}

static int visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                         size_t token_size)
{
    struct hpu_runtime *runtime = hpu_runtime(device);

    (void)which;
    snprintf(token, token_size, "%u", runtime->modules[device->index].id);
    return 0;
}

const struct vendor_backend vendor_backend = {
    .name = "hpu",
    .flags = DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = ARRAY_SIZE(visible),
    .export_prefixes = prefixes,
    .allocation_align_bytes = HPU_ALIGN_BYTES,
    .probes_in_child = 1, /* the effects of synDestroy() and of forks are not documented */
    .open = open_runtime,
    .close = close_runtime,
    .count = count_devices,
    .judge = judge,
    .describe = describe,
    .backend_info = backend_info,
    .identify = hpu_identify,
    .device_open = hpu_device_open,
    .device_close = hpu_device_close,
    .device_synchronize = hpu_device_synchronize,
    .device_health = hpu_device_health,
    .stream_create = hpu_stream_create,
    .stream_destroy = hpu_stream_destroy,
    .stream_synchronize = hpu_stream_synchronize,
    .stream_query = hpu_stream_query,
    .stream_wait_event = hpu_stream_wait_event,
    .event_create = hpu_event_create,
    .event_destroy = hpu_event_destroy,
    .event_record = hpu_event_record,
    .event_query = hpu_event_query,
    .event_synchronize = hpu_event_synchronize,
    .event_elapsed_ms = hpu_event_elapsed_ms,
    .times_are_unsigned = 1,
    .alloc = hpu_alloc,
    .free = hpu_free,
    .alloc_pinned = hpu_alloc_pinned,
    .free_pinned = hpu_free_pinned,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE, /* another card maps the memory for its own copies */
    .host_register = hpu_host_register,
    .host_unregister = hpu_host_unregister,
    .copy_async = hpu_copy_async,
    .fill_async = hpu_fill_async,
    .fill_widths = 1 | 2 | 4,
    .memory_info = hpu_memory_info,
    .dtype_support = hpu_dtype_support,
    .telemetry = hpu_telemetry,
    .processes = hpu_processes,
    .visible_token = visible_token,
    .native_handle = hpu_native_handle,
    .native_wrap = hpu_native_wrap,
    .native_unwrap = hpu_native_unwrap,
    .wraps_events = 1,
};

DS_ACCEL_PLUGIN("hpu", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
