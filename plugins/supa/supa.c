/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The supa plugin: Biren's GPUs through the SUPA runtime. The plugin was written without the
 * hardware and without a header: supa.h lists the source of each fact, and the facts that an
 * operator must confirm.
 *
 *   supa.h     functions and numbers
 *   verbs.c    copies, and other calls that differ from plugins/common/cuda_shaped.c
 *   sensors.c  BRML and BRTX
 *
 * The frame creates the default stream, because the meaning of the NULL handle is not documented.
 *
 * The two generations of the runtime use some names for different functions: suDeviceGetAttribute
 * belongs to the runtime in 1.x and to the driver in 2.x. The plugin therefore determines the
 * generation by one symbol (supaGetDeviceCount, else suMallocDevice) before it looks up any other
 * symbol, and looks up only names with the runtime's own prefix.
 */
#include "supa.h"

struct generation_api {
    void *second, *first;
};

static const struct vendor_symbol generation_symbols[] = {
    {"supaGetDeviceCount", offsetof(struct generation_api, second), 0, NULL},
    {"suMallocDevice", offsetof(struct generation_api, first), 0, NULL},
};

#define SHARED(symbol, call) CUDA_SHAPED_REQUIRED(symbol, call)
#define SHARED_OPTIONAL(symbol, call) CUDA_SHAPED_OPTIONAL(symbol, call, NULL)
#define OWN(symbol, member) \
    { \
        symbol, offsetof(struct supa, api.member), 1, NULL \
    }
#define OWN_OPTIONAL(symbol, member) \
    { \
        symbol, offsetof(struct supa, api.member), 0, NULL \
    }

/* Functions of 1.x, according to the vendor's manual. */
static const struct vendor_symbol first_symbols[] = {
    OWN("suGetDeviceCount", get_device_count),
    SHARED("suSetDevice", set_device),
    SHARED("suGetDevice", get_device),
    SHARED("suDeviceSynchronize", device_synchronize),
    OWN("suDeviceGetPCIBusId", get_pci_address),
    OWN("suGetErrorName", error_name),
    SHARED("suGetLastError", last_error),
    SHARED("suMemGetInfo", memory_info),
    SHARED("suMallocDevice", alloc),
    SHARED("suFree", free),
    SHARED("suMallocHost", host_alloc),
    SHARED_OPTIONAL("suFreeHost", host_free),
    SHARED("suRegisterHostMemory", host_register),
    SHARED("suUnregisterHostMemory", host_unregister),
    SHARED("suHostGetDevicePointer", host_device_pointer),
    OWN("suMemcpyAsync", copy_stream_kind),
    SHARED("suMemcpyPeerAsync", copy_peer),
    SHARED("suMemsetAsync", fill),
    SHARED("suStreamCreateWithFlags", stream_create),
    SHARED("suStreamDestroy", stream_destroy),
    SHARED("suStreamSynchronize", stream_synchronize),
    SHARED("suStreamQuery", stream_query),
    SHARED("suStreamWaitEvent", stream_wait_event),
    SHARED("suLaunchHostFunc", launch_host_func),
    SHARED("suEventCreateWithFlags", event_create),
    SHARED("suEventRecord", event_record),
    SHARED("suEventQuery", event_query),
    SHARED("suEventSynchronize", event_synchronize),
    SHARED("suEventDestroy", event_destroy),
    SHARED("suEventElapsedTime", event_elapsed),
    SHARED("suStreamBeginCapture", capture_begin),
    SHARED("suStreamEndCapture", capture_end),
    SHARED("suStreamIsCapturing", capture_status),
    SHARED("suTaskGraphInstantiate", graph_instantiate),
    SHARED("suTaskGraphLaunch", graph_launch),
    SHARED("suTaskGraphExecDestroy", graph_exec_destroy),
    SHARED("suTaskGraphDestroy", graph_destroy),
    SHARED("suDeviceCanAccessPeer", peer_can_access),
    SHARED("suDeviceEnablePeerAccess", peer_enable),
    SHARED("suDeviceDisablePeerAccess", peer_disable),
    OWN("suProfilerStart", profiler_start),
    OWN("suProfilerStop", profiler_stop),
};

/*
 * Functions of 2.x, according to code that calls them; those marked "analogy" are assumed by
 * analogy with CUDA's runtime.
 */
static const struct vendor_symbol second_symbols[] = {
    OWN("supaGetDeviceCount", get_device_count),
    SHARED("supaSetDevice", set_device),
    SHARED("supaGetDevice", get_device),
    SHARED("supaDeviceSynchronize", device_synchronize),
    OWN("supaDeviceGetPCIBusId", get_pci_address), /* analogy */
    OWN_OPTIONAL("supaGetErrorName", error_name),  /* analogy; not public */
    OWN("supaGetErrorString", error_text),
    SHARED("supaGetLastError", last_error),
    SHARED("supaMemGetInfo", memory_info),
    SHARED("supaMalloc", alloc),
    SHARED("supaFree", free),
    SHARED("supaHostAlloc", host_alloc),
    SHARED("supaFreeHost", host_free), /* analogy */
    SHARED("supaHostRegister", host_register),
    SHARED("supaHostUnregister", host_unregister),
    SHARED("supaHostGetDevicePointer", host_device_pointer), /* analogy */
    SHARED("supaMemcpyAsync", copy),
    SHARED("supaMemcpyPeerAsync", copy_peer),
    SHARED("supaMemsetAsync", fill),                    /* analogy */
    SHARED("supaStreamCreateWithFlags", stream_create), /* analogy */
    SHARED("supaStreamDestroy", stream_destroy),
    SHARED("supaStreamSynchronize", stream_synchronize),
    SHARED("supaStreamQuery", stream_query),          /* analogy */
    SHARED("supaStreamWaitEvent", stream_wait_event), /* analogy */
    SHARED("supaLaunchHostFunc", launch_host_func),   /* analogy */
    SHARED("supaEventCreateWithFlags", event_create),
    SHARED("supaEventRecord", event_record),           /* analogy */
    SHARED("supaEventQuery", event_query),             /* analogy */
    SHARED("supaEventSynchronize", event_synchronize), /* analogy */
    SHARED("supaEventDestroy", event_destroy),         /* analogy */
    SHARED("supaEventElapsedTime", event_elapsed),     /* analogy */
    SHARED("supaStreamBeginCapture", capture_begin),
    SHARED("supaStreamEndCapture", capture_end),
    SHARED("supaStreamIsCapturing", capture_status), /* analogy */
    SHARED("supaGraphInstantiateWithFlags", graph_instantiate_flags),
    SHARED("supaGraphLaunch", graph_launch),
    SHARED("supaGraphExecDestroy", graph_exec_destroy),
    SHARED("supaGraphDestroy", graph_destroy),
    SHARED("supaDeviceCanAccessPeer", peer_can_access),
    SHARED("supaDeviceEnablePeerAccess", peer_enable),   /* analogy */
    SHARED("supaDeviceDisablePeerAccess", peer_disable), /* analogy */
    OWN("supaProfilerStart", profiler_start),
    OWN("supaProfilerStop", profiler_stop),
};

/*
 * How error messages name the calls: with the same texts for both generations, except for
 * allocations and copies.
 */
static const struct cuda_shaped_text texts[] = {
    CUDA_SHAPED_TEXT(get_device, "GetDevice"),
    CUDA_SHAPED_TEXT(set_device, "SetDevice"),
    CUDA_SHAPED_TEXT(device_synchronize, "DeviceSynchronize"),
    CUDA_SHAPED_TEXT(memory_info, "MemGetInfo"),
    CUDA_SHAPED_TEXT(free, "free"),
    CUDA_SHAPED_TEXT(host_free, "free of host memory"),
    CUDA_SHAPED_TEXT(host_register, "register host memory"),
    CUDA_SHAPED_TEXT(host_unregister, "unregister host memory"),
    CUDA_SHAPED_TEXT(host_device_pointer, "HostGetDevicePointer"),
    CUDA_SHAPED_TEXT(copy_peer, "MemcpyPeerAsync"),
    CUDA_SHAPED_TEXT(fill, "MemsetAsync"),
    CUDA_SHAPED_TEXT(stream_create, "StreamCreateWithFlags"),
    CUDA_SHAPED_TEXT(stream_synchronize, "StreamSynchronize"),
    CUDA_SHAPED_TEXT(stream_query, "StreamQuery"),
    CUDA_SHAPED_TEXT(stream_wait_event, "StreamWaitEvent"),
    CUDA_SHAPED_TEXT(launch_host_func, "LaunchHostFunc"),
    CUDA_SHAPED_TEXT(event_create, "EventCreateWithFlags"),
    CUDA_SHAPED_TEXT(event_record, "EventRecord"),
    CUDA_SHAPED_TEXT(event_query, "EventQuery"),
    CUDA_SHAPED_TEXT(event_synchronize, "EventSynchronize"),
    CUDA_SHAPED_TEXT(event_elapsed, "EventElapsedTime"),
    CUDA_SHAPED_TEXT(capture_begin, "StreamBeginCapture"),
    CUDA_SHAPED_TEXT(capture_end, "StreamEndCapture"),
    CUDA_SHAPED_TEXT(capture_status, "StreamIsCapturing"),
    CUDA_SHAPED_TEXT(graph_instantiate, "GraphInstantiate"),
    CUDA_SHAPED_TEXT(graph_launch, "GraphLaunch"),
    CUDA_SHAPED_TEXT(peer_can_access, "DeviceCanAccessPeer"),
    CUDA_SHAPED_TEXT(peer_enable, "DeviceEnablePeerAccess"),
    CUDA_SHAPED_TEXT(peer_disable, "DeviceDisablePeerAccess"),
};

/* The vendor's PCI id, 0x1ee0, is not verified: the plugin looks only for the nodes. */
#define HARDWARE "node /dev/biren/card_[0-9]*\n"

static const struct vendor_pattern pattern = {.hardware = HARDWARE, .driver = "biren"};
static const struct vendor_visible visible[] = {{"SUPA_VISIBLE_DEVICES", ",", 1, 0, 0, 0}};

/* -- error codes, recognized by name because their numbers are not verified -- */

/*
 * Returns "NotReady" for "suErrorNotReady" and "supaErrorNotReady"; returns "" for any other name.
 */
static const char *bare_name(const char *name)
{
    if (name == NULL) {
        return "";
    }
    if (strncmp(name, "suError", 7) == 0) {
        return name + 7;
    }
    return strncmp(name, "supaError", 9) == 0 ? name + 9 : "";
}

/*
 * The numbers of CUDA's runtime errors, for a library without error names. Used only if the option
 * "numbering = cuda" confirms them.
 */
static const struct {
    supa_error_t code;
    const char *name;
} cuda_errors[] = {
    {1, "supaErrorInvalidValue"},
    {2, "supaErrorMemoryAllocation"},
    {17, "supaErrorInvalidDevicePointer"},
    {21, "supaErrorInvalidMemcpyDirection"},
    {35, "supaErrorInsufficientDriver"},
    {100, "supaErrorNoDevice"},
    {101, "supaErrorInvalidDevice"},
    {214, "supaErrorECCUncorrectable"},
    {217, "supaErrorPeerAccessUnsupported"},
    {220, "supaErrorNvlinkUncorrectable"},
    {226, "supaErrorContained"},
    {400, "supaErrorInvalidResourceHandle"},
    {401, "supaErrorIllegalState"},
    {600, "supaErrorNotReady"},
    {700, "supaErrorIllegalAddress"},
    {702, "supaErrorLaunchTimeout"},
    {704, "supaErrorPeerAccessAlreadyEnabled"},
    {705, "supaErrorPeerAccessNotEnabled"},
    {710, "supaErrorAssert"},
    {712, "supaErrorHostMemoryAlreadyRegistered"},
    {713, "supaErrorHostMemoryNotRegistered"},
    {714, "supaErrorHardwareStackError"},
    {715, "supaErrorIllegalInstruction"},
    {716, "supaErrorMisalignedAddress"},
    {717, "supaErrorInvalidAddressSpace"},
    {718, "supaErrorInvalidPc"},
    {719, "supaErrorLaunchFailure"},
    {801, "supaErrorNotSupported"},
    {900, "supaErrorStreamCaptureUnsupported"},
    {901, "supaErrorStreamCaptureInvalidated"},
    {902, "supaErrorStreamCaptureMerge"},
    {903, "supaErrorStreamCaptureUnmatched"},
    {904, "supaErrorStreamCaptureUnjoined"},
    {905, "supaErrorStreamCaptureIsolation"},
    {906, "supaErrorStreamCaptureImplicit"},
    {907, "supaErrorCapturedEvent"},
    {908, "supaErrorStreamCaptureWrongThread"},
    {910, "supaErrorGraphExecUpdateFailure"},
};

/*
 * Returns the runtime's name of the code. If the runtime has no names: CUDA's name if the numbers
 * are confirmed and the table has the code, else the runtime's text, else "error".
 */
static const char *supa_error_name(const struct supa *supa, supa_error_t code)
{
    const char *text;

    if (supa->api.error_name != NULL) {
        return supa->api.error_name(code);
    }
    for (size_t i = 0; supa->is_vouched && i < sizeof(cuda_errors) / sizeof(cuda_errors[0]); i++) {
        if (cuda_errors[i].code == code) {
            return cuda_errors[i].name;
        }
    }
    text = supa->api.error_text(code);
    return text != NULL ? text : "error";
}

/* Returns true if the error has that name after the prefix "suError" or "supaError". */
static int is_named(const struct supa *supa, supa_error_t code, const char *name)
{
    return strcmp(bare_name(supa_error_name(supa, code)), name) == 0;
}

static const struct {
    const char *name;
    int32_t status;
} statuses[] = {
    {"InvalidValue", DS_ACCEL_ERR_INVALID},
    {"InvalidMemcpyDirection", DS_ACCEL_ERR_INVALID},
    {"InvalidDevicePointer", DS_ACCEL_ERR_INVALID},
    {"InvalidResourceHandle", DS_ACCEL_ERR_INVALID},
    {"HostMemoryAlreadyRegistered", DS_ACCEL_ERR_INVALID},
    {"HostMemoryNotRegistered", DS_ACCEL_ERR_INVALID},
    {"MemoryAllocation", DS_ACCEL_ERR_NO_MEMORY},
    {"NoDevice", DS_ACCEL_ERR_NO_DEVICE},
    {"InvalidDevice", DS_ACCEL_ERR_NO_DEVICE},
    {"NotSupported", DS_ACCEL_ERR_UNSUPPORTED},
    {"PeerAccessUnsupported", DS_ACCEL_ERR_UNSUPPORTED},
    {"LaunchFailure", DS_ACCEL_ERR_DEVICE_LOST},
    {"ECCUncorrectable", DS_ACCEL_ERR_DEVICE_LOST},
    {"NvlinkUncorrectable", DS_ACCEL_ERR_DEVICE_LOST},
    {"Contained", DS_ACCEL_ERR_DEVICE_LOST},
    {"IllegalAddress", DS_ACCEL_ERR_DEVICE_LOST},
    {"LaunchTimeout", DS_ACCEL_ERR_DEVICE_LOST},
    {"Assert", DS_ACCEL_ERR_DEVICE_LOST},
    {"HardwareStackError", DS_ACCEL_ERR_DEVICE_LOST},
    {"IllegalInstruction", DS_ACCEL_ERR_DEVICE_LOST},
    {"MisalignedAddress", DS_ACCEL_ERR_DEVICE_LOST},
    {"InvalidAddressSpace", DS_ACCEL_ERR_DEVICE_LOST},
    {"InvalidPc", DS_ACCEL_ERR_DEVICE_LOST},
    {"IllegalState", DS_ACCEL_ERR_STATE},
    {"CapturedEvent", DS_ACCEL_ERR_STATE},
};

static void supa_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    const struct supa *supa = runtime;
    const char *name = bare_name(supa_error_name(supa, (supa_error_t)code));
    size_t i;

    *name_out = supa_error_name(supa, (supa_error_t)code);
    *status_out = strncmp(name, "StreamCapture", 13) == 0 ? DS_ACCEL_ERR_STATE
                                                          : DS_ACCEL_ERR_DRIVER;
    for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (strcmp(name, statuses[i].name) == 0) {
            *status_out = statuses[i].status;
        }
    }
}

/*
 * Returns true if the code is the error "not ready". The number of this error is not known, but its
 * name is: the first failure with that name determines the number for later comparisons.
 */
static int is_not_ready(struct supa *supa, supa_error_t code)
{
    int known = atomic_load_explicit(&supa->not_ready, memory_order_relaxed);

    if (known != 0) {
        return code == known;
    }
    if (!is_named(supa, code, "NotReady")) {
        return 0;
    }
    atomic_store_explicit(&supa->not_ready, code, memory_order_relaxed);
    return 1;
}

static enum cuda_shaped_meaning supa_meaning(void *runtime, int code)
{
    struct supa *supa = runtime;

    if (is_not_ready(supa, code)) {
        return CUDA_SHAPED_NOT_READY;
    }
    if (is_named(supa, code, "PeerAccessAlreadyEnabled")) {
        return CUDA_SHAPED_PEER_ENABLED;
    }
    return is_named(supa, code, "PeerAccessNotEnabled") ? CUDA_SHAPED_PEER_NOT_ENABLED
                                                        : CUDA_SHAPED_FAILURE;
}

static const struct cuda_shaped_vendor generations[] = {
    {
        .symbols = first_symbols,
        .symbol_count = sizeof(first_symbols) / sizeof(first_symbols[0]),
        .texts = texts,
        .text_count = sizeof(texts) / sizeof(texts[0]),
        .meaning = supa_meaning,
    },
    {
        .symbols = second_symbols,
        .symbol_count = sizeof(second_symbols) / sizeof(second_symbols[0]),
        .texts = texts,
        .text_count = sizeof(texts) / sizeof(texts[0]),
        .meaning = supa_meaning,
    },
};

/* -- opening and closing -- */

static void supa_close(void *runtime)
{
    struct supa *supa = runtime;

    if (supa != NULL) {
        supa_sensors_destroy(supa->sensors);
        free(supa);
    }
}

static int bind_generation(struct supa *supa, struct vendor_problem *problem)
{
    struct generation_api found = {NULL, NULL};

    (void)vendor_lib_bind(&supa->lib, generation_symbols, 2, &found, problem);
    if (found.second == NULL && found.first == NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING,
                                  "%.80s has neither supaGetDeviceCount (SDK 2.x) nor "
                                  "suMallocDevice (SDK 1.x)",
                                  supa->lib.path);
    }
    supa->generation = found.second != NULL ? 2 : 1;
    if (cuda_shaped_bind(supa, &generations[supa->generation - 1], &supa->lib, problem) != 0) {
        return -1;
    }
    /* Early 1.x has one function that frees device memory and host memory. */
    if (supa->shaped.api.host_free == NULL) {
        supa->shaped.api.host_free = supa->shaped.api.free;
    }
    return 0;
}

static int open_library(struct supa *supa, struct vendor_problem *problem)
{
    static const char *const sonames[] = {"libsupa-runtime.so", "libsupart.so"};
    const char *home = secure_getenv("BIREN_HOME");
    char paths[2][256];
    const char *names[5] = {sonames[0], sonames[1], paths[0], paths[1], NULL};
    size_t i;

    if (home == NULL || home[0] != '/' || strlen(home) > 200) {
        home = "/usr/local/birensupa/sdk/latest";
    }
    for (i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%.200s/supa/lib/%s", home, sonames[i]);
    }
    return vendor_lib_open(&supa->lib, supa->host, "library", names, problem) != 0 ||
                   bind_generation(supa, problem) != 0
               ? -1
               : 0;
}

static int supa_open(const struct ds_accel_host *host, void **runtime_out,
                     struct vendor_problem *problem)
{
    struct supa *supa = calloc(1, sizeof(*supa));
    char numbering[32] = "";

    if (supa == NULL || (supa->sensors = supa_sensors_create(host)) == NULL) {
        free(supa);
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory to start");
    }
    supa->host = host;
    supa->is_vouched = host->config_get(host, "numbering", numbering, sizeof(numbering), NULL) ==
                           DS_ACCEL_OK &&
                       strcmp(numbering, "cuda") == 0;
    if (open_library(supa, problem) != 0) {
        supa_close(supa);
        return -1;
    }
    *runtime_out = supa;
    return 0;
}

/*
 * Checks that the option "numbering = cuda" is set, with which an operator confirms the facts that
 * are not verified (see supa.h).
 */
static int check_numbering(const struct supa *supa, int count, struct vendor_problem *problem)
{
    char text[32] = "";
    int32_t status = supa->host->config_get(supa->host, "numbering", text, sizeof(text), NULL);

    if (status == DS_ACCEL_OK && strcmp(text, "cuda") == 0) {
        return 0;
    }
    if (status == DS_ACCEL_ERR_NOT_FOUND || (status == DS_ACCEL_OK && text[0] == '\0')) {
        return vendor_problem_set(
            problem, DS_ACCEL_REASON_BAD_OPTION,
            "%.40s (SDK %d.x, %d device%s): its numbers of copy kinds and flags are not verified; "
            "if the SDK's headers have CUDA's, set option numbering to cuda",
            vendor_lib_name(&supa->lib), supa->generation, count, count == 1 ? "" : "s");
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                              "option numbering: \"%.32s\" is not cuda",
                              status == DS_ACCEL_OK ? text : "(too long)");
}

static int no_device(const struct supa *supa, const char *cause, struct vendor_problem *problem)
{
    char text[192];
    const char *hiding = vendor_visible_is_hiding(visible, 1, text, sizeof(text));

    if (hiding != NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_HIDDEN, "%s", hiding);
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE, "%s finds no device: %s",
                              vendor_lib_name(&supa->lib), cause);
}

static int supa_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    const struct supa *supa = runtime;
    const char *call = supa->generation == 1 ? "suGetDeviceCount" : "supaGetDeviceCount";
    char cause[128];
    int count = 0;
    supa_error_t code = cuda_shaped_code(&supa->shaped, supa->api.get_device_count(&count));

    if (code != 0 && (is_named(supa, code, "NoDevice") || is_named(supa, code, "InvalidDevice"))) {
        snprintf(cause, sizeof(cause), "%s: %.60s (%d)", call, supa_error_name(supa, code), code);
        no_device(supa, cause, problem);
        problem->vendor_code = code;
        return -1;
    }
    if (code != 0) {
        int is_old = is_named(supa, code, "InsufficientDriver");

        return vendor_problem_code(
            problem, is_old ? DS_ACCEL_REASON_DRIVER_MISMATCH : DS_ACCEL_REASON_DRIVER_FAILED,
            runtime, code, !is_old, "%s: %s", vendor_lib_name(&supa->lib), call);
    }
    if (count <= 0) {
        snprintf(cause, sizeof(cause), "%s counts 0", call);
        return no_device(supa, cause, problem);
    }
    *count_out = (uint32_t)count;
    return check_numbering(supa, count, problem);
}

static int32_t supa_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    snprintf(info->communication_backend, sizeof(info->communication_backend), "bccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    return DS_ACCEL_OK;
}

/* -- devices -- */

static int supa_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                              size_t token_size)
{
    return vendor_visible_token(device, visible[which].variable, token, token_size);
}

static int32_t supa_identify(ds_accel_plugin_device_t *device,
                             struct ds_accel_device_identity *identity,
                             struct ds_accel_error *error)
{
    char token[64];
    uint64_t number;
    char *at;
    int32_t status = SUPA_CHECK(
        device,
        SUPA_OF(device)->api.get_pci_address(
            identity->pci_address, (int)sizeof(identity->pci_address), (int)device->index),
        error, "DeviceGetPCIBusId(device %u)", device->index);

    if (status < 0) {
        return status;
    }
    for (at = identity->pci_address; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    if (supa_visible_token(device, 0, token, sizeof(token)) == 0 &&
        plugin_parse_u64(token, &number) == 0 && number <= UINT32_MAX) {
        identity->vendor_index = (uint32_t)number;
        identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    }
    device->native_device = device->index;
    snprintf(identity->name, sizeof(identity->name), "Biren GPU");
    supa_sensors_identify(SUPA_OF(device)->sensors, identity);
    return DS_ACCEL_OK;
}

static int32_t supa_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                                struct ds_accel_error *error)
{
    struct ds_accel_device_info *info = &device->info;
    uint64_t free_bytes = 0;
    uint64_t saved = 0;
    int32_t status = cuda_shaped_enter(device, &saved, error);

    (void)native_context;
    if (status < 0) {
        return status;
    }
    snprintf(info->name, sizeof(info->name), "%s", device->identity.name);
    status = cuda_shaped_memory_info(device, &free_bytes, &info->total_memory_bytes, error);
    if (status == DS_ACCEL_OK) {
        status = supa_check_copies(device, error);
    }
    cuda_shaped_leave(device, saved);
    return status;
}

/*
 * The device computes with the types that DeepSpeed's accelerator lists (float32, float16,
 * bfloat16); the other types can be stored, and nothing else is known about them.
 */
static int32_t supa_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                                  uint32_t *support_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    if (dtype < DS_ACCEL_DTYPE_FLOAT32 || dtype > DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ) {
        *support_out = 0;
    } else if (dtype <= DS_ACCEL_DTYPE_BFLOAT16) {
        *support_out = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    } else {
        *support_out = DS_ACCEL_DTYPE_STORES;
    }
    return DS_ACCEL_OK;
}

static int32_t supa_profiler_start(ds_accel_plugin_instance_t *instance,
                                   struct ds_accel_error *error)
{
    const struct supa *supa = instance->runtime;

    return vendor_check(instance, NULL, cuda_shaped_code(&supa->shaped, supa->api.profiler_start()),
                        error, "ProfilerStart");
}

static int32_t supa_profiler_stop(ds_accel_plugin_instance_t *instance,
                                  struct ds_accel_error *error)
{
    const struct supa *supa = instance->runtime;

    return vendor_check(instance, NULL, cuda_shaped_code(&supa->shaped, supa->api.profiler_stop()),
                        error, "ProfilerStop");
}

static const char *const export_prefixes[] = {"BCCL", "BIREN", "SUPA", "LD_LIBRARY", "PATH", NULL};

const struct vendor_backend vendor_backend = {
    .name = "supa",
    .flags = DS_ACCEL_FLAG_TRITON | DS_ACCEL_FLAG_GRAPHS,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = export_prefixes,
    .allocation_align_bytes = 1, /* the vendor promises no alignment */
    .probes_in_child = 1,
    .open = supa_open,
    .close = supa_close,
    .count = supa_count,
    .describe = supa_describe,
    .backend_info = supa_backend_info,
    .identify = supa_identify,
    .device_open = supa_device_open,
    CUDA_SHAPED_VERBS,
    CUDA_SHAPED_HOST_VERBS,
    CUDA_SHAPED_PEER_VERBS,
    CUDA_SHAPED_GRAPH_VERBS,
    .stream_create = cuda_shaped_stream_create,
    .stream_host_task = cuda_shaped_stream_host_task,
    .event_create = supa_event_create,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED,
    .copy_async = supa_copy_async,
    .fill_async = cuda_shaped_fill_async,
    .fill_widths = 1,
    .capture_begin = supa_capture_begin,
    .capture_end = cuda_shaped_capture_end,
    .capture_status = supa_capture_status,
    .dtype_support = supa_dtype_support,
    .telemetry = supa_telemetry,
    .range_push = supa_range_push,
    .range_pop = supa_range_pop,
    .profiler_start = supa_profiler_start,
    .profiler_stop = supa_profiler_stop,
    .visible_token = supa_visible_token,
};

DS_ACCEL_PLUGIN("supa", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
