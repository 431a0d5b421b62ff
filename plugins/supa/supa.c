/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The supa plugin: Biren's GPUs through the SUPA runtime. No machine with one, and no header, was
 * at hand: supa.h says what is known from where, and what an operator has to vouch for.
 *
 *   supa.h     functions and numbers
 *   memory.c   memory, copies, fills
 *   stream.c   streams, events, graphs
 *   sensors.c  BRML and BRTX
 *
 * The two generations have names in common that mean other functions: suDeviceGetAttribute is the
 * runtime's in 1.x and the driver's in 2.x. So the generation is told by one symbol of each
 * (supaGetDeviceCount, else suMallocDevice) before any other is looked up, and only names of the
 * runtime's own prefix are.
 */
#include "supa.h"

struct generation_api {
    void *second, *first;
};

static const struct vendor_symbol generation_symbols[] = {
    {"supaGetDeviceCount", offsetof(struct generation_api, second), 0, NULL},
    {"suMallocDevice", offsetof(struct generation_api, first), 0, NULL},
};

#define REQUIRED(symbol, member) \
    { \
        symbol, offsetof(struct supa_api, member), 1, NULL \
    }
#define OPTIONAL(symbol, member) \
    { \
        symbol, offsetof(struct supa_api, member), 0, NULL \
    }

/* By the vendor's manual. */
static const struct vendor_symbol first_symbols[] = {
    REQUIRED("suGetDeviceCount", get_device_count),
    REQUIRED("suSetDevice", set_device),
    REQUIRED("suGetDevice", get_device),
    REQUIRED("suDeviceSynchronize", device_synchronize),
    REQUIRED("suDeviceGetPCIBusId", get_pci_address),
    REQUIRED("suGetErrorName", error_name),
    REQUIRED("suGetLastError", last_error),
    REQUIRED("suMemGetInfo", memory_info),
    REQUIRED("suMallocDevice", alloc),
    REQUIRED("suFree", free),
    REQUIRED("suMallocHost", host_alloc),
    OPTIONAL("suFreeHost", host_free),
    REQUIRED("suRegisterHostMemory", host_register),
    REQUIRED("suUnregisterHostMemory", host_unregister),
    REQUIRED("suHostGetDevicePointer", host_device_pointer),
    REQUIRED("suMemcpyAsync", copy_stream_kind),
    REQUIRED("suMemcpyPeerAsync", copy_peer),
    REQUIRED("suMemsetAsync", fill),
    REQUIRED("suStreamCreateWithFlags", stream_create),
    REQUIRED("suStreamDestroy", stream_destroy),
    REQUIRED("suStreamSynchronize", stream_synchronize),
    REQUIRED("suStreamQuery", stream_query),
    REQUIRED("suStreamWaitEvent", stream_wait_event),
    REQUIRED("suLaunchHostFunc", stream_task),
    REQUIRED("suEventCreateWithFlags", event_create),
    REQUIRED("suEventRecord", event_record),
    REQUIRED("suEventQuery", event_query),
    REQUIRED("suEventSynchronize", event_synchronize),
    REQUIRED("suEventDestroy", event_destroy),
    REQUIRED("suEventElapsedTime", event_elapsed),
    REQUIRED("suStreamBeginCapture", capture_begin),
    REQUIRED("suStreamEndCapture", capture_end),
    REQUIRED("suStreamIsCapturing", capture_status),
    REQUIRED("suTaskGraphInstantiate", graph_instantiate_log),
    REQUIRED("suTaskGraphLaunch", graph_launch),
    REQUIRED("suTaskGraphExecDestroy", graph_exec_destroy),
    REQUIRED("suTaskGraphDestroy", graph_destroy),
    REQUIRED("suDeviceCanAccessPeer", can_access_peer),
    REQUIRED("suDeviceEnablePeerAccess", enable_peer),
    REQUIRED("suDeviceDisablePeerAccess", disable_peer),
    REQUIRED("suProfilerStart", profiler_start),
    REQUIRED("suProfilerStop", profiler_stop),
};

/* By callers, and by analogy with CUDA's runtime where "analogy" says so. */
static const struct vendor_symbol second_symbols[] = {
    REQUIRED("supaGetDeviceCount", get_device_count),
    REQUIRED("supaSetDevice", set_device),
    REQUIRED("supaGetDevice", get_device),
    REQUIRED("supaDeviceSynchronize", device_synchronize),
    REQUIRED("supaDeviceGetPCIBusId", get_pci_address), /* analogy */
    OPTIONAL("supaGetErrorName", error_name),           /* analogy; public nowhere */
    REQUIRED("supaGetErrorString", error_text),
    REQUIRED("supaGetLastError", last_error),
    REQUIRED("supaMemGetInfo", memory_info),
    REQUIRED("supaMalloc", alloc),
    REQUIRED("supaFree", free),
    REQUIRED("supaHostAlloc", host_alloc),
    REQUIRED("supaFreeHost", host_free), /* analogy */
    REQUIRED("supaHostRegister", host_register),
    REQUIRED("supaHostUnregister", host_unregister),
    REQUIRED("supaHostGetDevicePointer", host_device_pointer), /* analogy */
    REQUIRED("supaMemcpyAsync", copy_kind_stream),
    REQUIRED("supaMemcpyPeerAsync", copy_peer),
    REQUIRED("supaMemsetAsync", fill),                    /* analogy */
    REQUIRED("supaStreamCreateWithFlags", stream_create), /* analogy */
    REQUIRED("supaStreamDestroy", stream_destroy),
    REQUIRED("supaStreamSynchronize", stream_synchronize),
    REQUIRED("supaStreamQuery", stream_query),          /* analogy */
    REQUIRED("supaStreamWaitEvent", stream_wait_event), /* analogy */
    REQUIRED("supaLaunchHostFunc", stream_task),        /* analogy */
    REQUIRED("supaEventCreateWithFlags", event_create),
    REQUIRED("supaEventRecord", event_record),           /* analogy */
    REQUIRED("supaEventQuery", event_query),             /* analogy */
    REQUIRED("supaEventSynchronize", event_synchronize), /* analogy */
    REQUIRED("supaEventDestroy", event_destroy),         /* analogy */
    REQUIRED("supaEventElapsedTime", event_elapsed),     /* analogy */
    REQUIRED("supaStreamBeginCapture", capture_begin),
    REQUIRED("supaStreamEndCapture", capture_end),
    REQUIRED("supaStreamIsCapturing", capture_status), /* analogy */
    REQUIRED("supaGraphInstantiateWithFlags", graph_instantiate_flags),
    REQUIRED("supaGraphLaunch", graph_launch),
    REQUIRED("supaGraphExecDestroy", graph_exec_destroy),
    REQUIRED("supaGraphDestroy", graph_destroy),
    REQUIRED("supaDeviceCanAccessPeer", can_access_peer),
    REQUIRED("supaDeviceEnablePeerAccess", enable_peer),   /* analogy */
    REQUIRED("supaDeviceDisablePeerAccess", disable_peer), /* analogy */
    REQUIRED("supaProfilerStart", profiler_start),
    REQUIRED("supaProfilerStop", profiler_stop),
};

/* The vendor's PCI id, 0x1ee0, is not verified: the nodes alone are the trace. */
#define HARDWARE "node /dev/biren/card_[0-9]*\n"

static const struct vendor_trace trace = {.hardware = HARDWARE, .driver = "biren"};
static const struct vendor_visible visible[] = {{"SUPA_VISIBLE_DEVICES", ",", 1, 0, 0, 0}};

/* -- codes: by name, because their numbers are not verified -- */

supa_error_t supa_code(const struct supa *supa, supa_error_t code)
{
    if (code != 0) {
        (void)supa->api.last_error();
    }
    return code;
}

/* "NotReady" of "suErrorNotReady" and "supaErrorNotReady"; "" for what is no such name. */
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

/* CUDA's numbers of its runtime's errors, for a library without names: "numbering = cuda" vouches
   for them, and they are looked at where it does. */
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

/* The runtime's name; without one CUDA's, if its numbers are vouched for, or the runtime's text. */
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

int supa_is(const struct supa *supa, supa_error_t code, const char *name)
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

/* -- life -- */

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
    return supa->generation == 2
               ? vendor_lib_bind(&supa->lib, second_symbols,
                                 sizeof(second_symbols) / sizeof(second_symbols[0]), &supa->api,
                                 problem)
               : vendor_lib_bind(&supa->lib, first_symbols,
                                 sizeof(first_symbols) / sizeof(first_symbols[0]), &supa->api,
                                 problem);
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

/* Without its folder. */
static const char *library_name(const struct supa *supa)
{
    const char *slash = strrchr(supa->lib.path, '/');

    return slash != NULL ? slash + 1 : supa->lib.path;
}

/* Has somebody vouched for what is not verified? */
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
            library_name(supa), supa->generation, count, count == 1 ? "" : "s");
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
                              library_name(supa), cause);
}

static int supa_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    const struct supa *supa = runtime;
    const char *call = supa->generation == 1 ? "suGetDeviceCount" : "supaGetDeviceCount";
    char cause[128];
    int count = 0;
    supa_error_t code = supa_code(supa, supa->api.get_device_count(&count));

    if (code != 0 && (supa_is(supa, code, "NoDevice") || supa_is(supa, code, "InvalidDevice"))) {
        snprintf(cause, sizeof(cause), "%s: %.60s (%d)", call, supa_error_name(supa, code), code);
        no_device(supa, cause, problem);
        problem->vendor_code = code;
        return -1;
    }
    if (code != 0) {
        int is_old = supa_is(supa, code, "InsufficientDriver");

        return vendor_problem_code(
            problem, is_old ? DS_ACCEL_REASON_DRIVER_MISMATCH : DS_ACCEL_REASON_DRIVER_FAILED,
            runtime, code, !is_old, "%s: %s", library_name(supa), call);
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
    int found = vendor_visible_name(device, visible[which].variable, token, token_size);

    if (found == -1) {
        snprintf(token, token_size, "%u", device->index);
        return 0;
    }
    return found == 0 ? 0 : -1;
}

static int32_t supa_identify(ds_accel_plugin_device_t *device,
                             struct ds_accel_device_identity *identity,
                             struct ds_accel_error *error)
{
    char token[64];
    uint64_t number;
    char *at;
    int32_t status = SUPA_CHECK(device,
                                API_OF(device)->get_pci_address(identity->pci_address,
                                                                (int)sizeof(identity->pci_address),
                                                                (int)device->index),
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

static int32_t supa_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                          struct ds_accel_error *error)
{
    int current = 0;
    int32_t status = SUPA_CHECK(device, API_OF(device)->get_device(&current), error, "GetDevice");

    if (status == DS_ACCEL_OK && current != (int)device->index) {
        status = SUPA_CHECK(device, API_OF(device)->set_device((int)device->index), error,
                            "SetDevice(%u)", device->index);
    }
    if (status == DS_ACCEL_OK) {
        *saved_out = (uint64_t)current;
    }
    return status;
}

static void supa_leave(ds_accel_plugin_device_t *device, uint64_t saved)
{
    if (saved != device->index) {
        (void)supa_code(SUPA_OF(device), API_OF(device)->set_device((int)saved));
    }
}

static int32_t supa_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                                struct ds_accel_error *error)
{
    struct ds_accel_device_info *info = &device->info;
    uint64_t free_bytes = 0;
    uint64_t saved = 0;
    int32_t status = supa_enter(device, &saved, error);

    (void)native_context;
    if (status < 0) {
        return status;
    }
    snprintf(info->name, sizeof(info->name), "%s", device->identity.name);
    status = supa_memory_info(device, &free_bytes, &info->total_memory_bytes, error);
    if (status == DS_ACCEL_OK) {
        status = supa_check_copies(device, error);
    }
    supa_leave(device, saved);
    return status;
}

static void supa_device_close(ds_accel_plugin_device_t *device)
{
    (void)device; /* a reset would take the work of others in this process */
}

static int32_t supa_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                                struct ds_accel_error *error)
{
    const struct supa *supa = instance->runtime;
    int current = 0;
    int32_t status = vendor_check(instance, NULL, supa_code(supa, supa->api.get_device(&current)),
                                  error, "GetDevice");

    if (status == DS_ACCEL_OK) {
        *index_out = (uint32_t)current;
    }
    return status;
}

static int32_t supa_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->set_device((int)device->index), error,
                      "SetDevice(%u)", device->index);
}

static int32_t supa_device_synchronize(ds_accel_plugin_device_t *device,
                                       struct ds_accel_error *error)
{
    return SUPA_CHECK(device, API_OF(device)->device_synchronize(), error,
                      "DeviceSynchronize(device %u)", device->index);
}

static int32_t supa_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    uint64_t free_bytes;
    uint64_t total_bytes;

    return supa_memory_info(device, &free_bytes, &total_bytes, error);
}

/* What DeepSpeed's accelerator says of it; of the others it is known that they can be held. */
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

/* -- peers -- */

static int32_t supa_peer_can_access(ds_accel_plugin_device_t *device,
                                    ds_accel_plugin_device_t *peer, uint32_t *can_out,
                                    struct ds_accel_error *error)
{
    int can = 0;
    int32_t status = SUPA_CHECK(
        device, API_OF(device)->can_access_peer(&can, (int)device->index, (int)peer->index), error,
        "DeviceCanAccessPeer(device %u, device %u)", device->index, peer->index);

    if (status == DS_ACCEL_OK) {
        *can_out = can != 0;
    }
    return status;
}

static int32_t supa_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                struct ds_accel_error *error)
{
    supa_error_t code =
        supa_code(SUPA_OF(device), API_OF(device)->enable_peer((int)peer->index, 0));

    if (code != 0 && supa_is(SUPA_OF(device), code, "PeerAccessAlreadyEnabled")) {
        return DS_ACCEL_OK;
    }
    return vendor_check(device->instance, device, code, error,
                        "DeviceEnablePeerAccess(device %u, from device %u)", peer->index,
                        device->index);
}

static int32_t supa_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                 struct ds_accel_error *error)
{
    supa_error_t code = supa_code(SUPA_OF(device), API_OF(device)->disable_peer((int)peer->index));

    if (code != 0 && supa_is(SUPA_OF(device), code, "PeerAccessNotEnabled")) {
        return DS_ACCEL_OK;
    }
    return vendor_check(device->instance, device, code, error,
                        "DeviceDisablePeerAccess(device %u, from device %u)", peer->index,
                        device->index);
}

static int32_t supa_profiler_start(ds_accel_plugin_instance_t *instance,
                                   struct ds_accel_error *error)
{
    const struct supa *supa = instance->runtime;

    return vendor_check(instance, NULL, supa_code(supa, supa->api.profiler_start()), error,
                        "ProfilerStart");
}

static int32_t supa_profiler_stop(ds_accel_plugin_instance_t *instance,
                                  struct ds_accel_error *error)
{
    const struct supa *supa = instance->runtime;

    return vendor_check(instance, NULL, supa_code(supa, supa->api.profiler_stop()), error,
                        "ProfilerStop");
}

static const char *const export_prefixes[] = {"BCCL", "BIREN", "SUPA", "LD_LIBRARY", "PATH", NULL};

const struct vendor_backend vendor_backend = {
    .name = "supa",
    .flags = DS_ACCEL_FLAG_TRITON | DS_ACCEL_FLAG_GRAPHS,
    .trace = &trace,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = export_prefixes,
    .allocation_align_bytes = 1, /* none is promised */
    .probes_in_child = 1,
    .open = supa_open,
    .close = supa_close,
    .count = supa_count,
    .describe = supa_describe,
    .backend_info = supa_backend_info,
    .identify = supa_identify,
    .device_open = supa_device_open,
    .device_close = supa_device_close,
    .enter = supa_enter,
    .leave = supa_leave,
    .enters_for_streams = 1,
    .get_current = supa_get_current,
    .set_current = supa_set_current,
    .device_synchronize = supa_device_synchronize,
    .device_health = supa_device_health,
    .stream_create = supa_stream_create,
    .stream_destroy = supa_stream_destroy,
    .stream_synchronize = supa_stream_synchronize,
    .stream_query = supa_stream_query,
    .stream_wait_event = supa_stream_wait_event,
    .stream_host_task = supa_stream_host_task,
    .event_create = supa_event_create,
    .event_destroy = supa_event_destroy,
    .event_record = supa_event_record,
    .event_query = supa_event_query,
    .event_synchronize = supa_event_synchronize,
    .event_elapsed_ms = supa_event_elapsed_ms,
    .alloc = supa_alloc,
    .free = supa_free,
    .alloc_pinned = supa_alloc_pinned,
    .free_pinned = supa_free_pinned,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED,
    .host_register = supa_host_register,
    .host_unregister = supa_host_unregister,
    .host_device_pointer = supa_host_device_pointer,
    .copy_async = supa_copy_async,
    .copy_peer_async = supa_copy_peer_async,
    .fill_async = supa_fill_async,
    .fill_widths = 1,
    .memory_info = supa_memory_info,
    .capture_begin = supa_capture_begin,
    .capture_end = supa_capture_end,
    .capture_status = supa_capture_status,
    .graph_destroy = supa_graph_destroy,
    .graph_instantiate = supa_graph_instantiate,
    .graph_exec_destroy = supa_graph_exec_destroy,
    .graph_launch = supa_graph_launch,
    .dtype_support = supa_dtype_support,
    .telemetry = supa_telemetry,
    .range_push = supa_range_push,
    .range_pop = supa_range_pop,
    .profiler_start = supa_profiler_start,
    .profiler_stop = supa_profiler_stop,
    .visible_token = supa_visible_token,
    .peer_can_access = supa_peer_can_access,
    .peer_enable = supa_peer_enable,
    .peer_disable = supa_peer_disable,
};

DS_ACCEL_PLUGIN("supa", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
