/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The sdaa plugin: Tecorigin's cards through SDAARuntime, libsdaart. The plugin was never run on a
 * card. sdaa.h lists the functions that the plugin uses, and the functions that it does not use
 * because their behaviour is not fully verified.
 *
 *   sdaa.h     functions, numbers, layouts
 *   sensors.c  TCML and TCPX
 *
 * plugins/common/cuda_shaped.c implements memory, streams and events. The frame creates the default
 * stream, because the meaning of the NULL handle is not documented (sdaaStreamPerThread is 2, so
 * not every handle is an address).
 *
 * A card contains four devices; sensors.c determines whether a node belongs to a card or to a
 * device. A device is reported as a partition; a UUID that TCML reports for the card becomes its
 * parent UUID. The runtime reports the bus of a card, but neither domain nor slot; TCML reports all
 * of them. Without TCML, the plugin assumes the address 0000:BUS:00.0 if sysfs has a device of the
 * vendor there.
 *
 * Two generations of the runtime export the same names. In the first generation, streams and events
 * are ints and errors have other numbers; the plugin rejects that generation, which it recognizes
 * by the missing sdaaGetErrorName.
 */
#include "sdaa.h"

#include <dirent.h>

#define SHARED(symbol, call) CUDA_SHAPED_REQUIRED(symbol, call)
#define OWN(symbol) \
    { \
#symbol, offsetof(struct sdaa, api.symbol), 1, NULL \
    }

static const struct vendor_symbol symbols[] = {
    OWN(sdaaGetDeviceCount),
    SHARED("sdaaSetDevice", set_device),
    SHARED("sdaaGetDevice", get_device),
    SHARED("sdaaDeviceSynchronize", device_synchronize),
    OWN(sdaaGetDeviceProperties),
    OWN(sdaaGetErrorName),
    SHARED("sdaaGetLastError", last_error),
    SHARED("sdaaMemGetInfo", memory_info),
    SHARED("sdaaMalloc", alloc),
    SHARED("sdaaFree", free),
    OWN(sdaaMallocHost),
    SHARED("sdaaFreeHost", host_free),
    SHARED("sdaaMemcpyAsync", copy),
    SHARED("sdaaMemsetAsync", fill),
    SHARED("sdaaStreamCreateWithFlags", stream_create),
    SHARED("sdaaStreamDestroy", stream_destroy),
    SHARED("sdaaStreamSynchronize", stream_synchronize),
    SHARED("sdaaStreamQuery", stream_query),
    SHARED("sdaaStreamWaitEvent", stream_wait_event),
    SHARED("sdaaStreamAddCallback", add_callback),
    SHARED("sdaaEventCreateWithFlags", event_create),
    SHARED("sdaaEventRecord", event_record),
    SHARED("sdaaEventQuery", event_query),
    SHARED("sdaaEventSynchronize", event_synchronize),
    SHARED("sdaaEventDestroy", event_destroy),
    SHARED("sdaaEventElapsedTime", event_elapsed),
    SHARED("sdaaIpcGetEventHandle", ipc_event_export),
    SHARED("sdaaIpcOpenEventHandle", ipc_event_open),
};

static enum cuda_shaped_meaning sdaa_meaning(void *runtime, int code)
{
    (void)runtime;
    return code == SDAA_NOT_READY ? CUDA_SHAPED_NOT_READY : CUDA_SHAPED_FAILURE;
}

static const struct cuda_shaped_vendor shaped = {
    .symbols = symbols,
    .symbol_count = sizeof(symbols) / sizeof(symbols[0]),
    .meaning = sdaa_meaning,
};

/*
 * The vendor's PCI id is 0x0719 or 0x00a1, which is not verified, so the plugin looks only for the
 * node.
 */
#define HARDWARE "node /dev/tcaicard[0-9]*\n"

static const struct vendor_pattern pattern = {.hardware = HARDWARE, .driver = "teco"};
static const struct vendor_visible visible[] = {{"SDAA_VISIBLE_DEVICES", ",", 1, 0, 0, 0}};

/* -- codes -- */

static void sdaa_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    const struct sdaa *sdaa = runtime;

    *name_out = sdaa->api.sdaaGetErrorName((sdaa_error_t)code);
    switch (code) {
    case SDAA_INVALID_VALUE:
    case SDAA_INVALID_DEVICE_POINTER:
    case SDAA_INVALID_MEMCPY_DIRECTION:
    case SDAA_INVALID_HANDLE:
    case SDAA_HOST_MEMORY_ALREADY_REGISTERED:
        *status_out = DS_ACCEL_ERR_INVALID;
        break;
    case SDAA_OUT_OF_MEMORY:
    case SDAA_RUNTIME_MEMORY:
        *status_out = DS_ACCEL_ERR_NO_MEMORY;
        break;
    case SDAA_NO_DEVICE:
    case SDAA_INVALID_DEVICE:
        *status_out = DS_ACCEL_ERR_NO_DEVICE;
        break;
    case SDAA_ECC_NOT_CORRECTABLE:
    case SDAA_LAUNCH_FAILURE:
        *status_out = DS_ACCEL_ERR_DEVICE_LOST;
        break;
    case SDAA_PEER_ACCESS_UNSUPPORTED:
    case SDAA_NOT_SUPPORTED:
        *status_out = DS_ACCEL_ERR_UNSUPPORTED;
        break;
    case SDAA_NOT_FOUND:
        *status_out = DS_ACCEL_ERR_NOT_FOUND;
        break;
    case SDAA_CONTEXT_IS_DESTROYED:
        *status_out = DS_ACCEL_ERR_STATE;
        break;
    default:
        *status_out = DS_ACCEL_ERR_DRIVER;
    }
}

/* -- opening and closing -- */

static void sdaa_close(void *runtime)
{
    struct sdaa *sdaa = runtime;

    if (sdaa != NULL) {
        sdaa_sensors_destroy(sdaa->sensors);
        free(sdaa);
    }
}

static int open_library(struct sdaa *sdaa, struct vendor_problem *problem)
{
    static const struct vendor_symbol generation[] = {
        VENDOR_OPTIONAL(struct sdaa_api, sdaaGetErrorName, NULL),
        VENDOR_OPTIONAL(struct sdaa_api, sdaaGetDeviceCount, NULL),
    };
    const char *root = secure_getenv("SDAA_ROOT");
    char path[256] = "";
    const char *names[] = {"libsdaart.so", "/opt/tecoai/lib64/libsdaart.so", NULL, NULL};

    if (root != NULL && root[0] == '/' && strlen(root) + 24 < sizeof(path)) {
        snprintf(path, sizeof(path), "%.200s/lib64/libsdaart.so", root);
        names[2] = path;
    }
    if (vendor_lib_open(&sdaa->lib, sdaa->host, "library", names, problem) != 0 ||
        vendor_lib_bind(&sdaa->lib, generation, 2, &sdaa->api, problem) != 0) {
        return -1;
    }
    if (sdaa->api.sdaaGetErrorName == NULL && sdaa->api.sdaaGetDeviceCount != NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING,
                                  "%s has no sdaaGetErrorName: it is of the first generation, "
                                  "which is not supported",
                                  sdaa->lib.path);
    }
    return cuda_shaped_bind(sdaa, &shaped, &sdaa->lib, problem);
}

static int sdaa_open(const struct ds_accel_host *host, void **runtime_out,
                     struct vendor_problem *problem)
{
    struct vendor_hardware hardware;
    struct sdaa *sdaa;

    memset(&hardware, 0, sizeof(hardware));
    /*
     * Called only for the number of nodes: the frame has already checked the presence and reported
     * problems.
     */
    if (vendor_presence_check(host, &pattern, &hardware, problem) != 0) {
        return -1;
    }
    sdaa = calloc(1, sizeof(*sdaa));
    if (sdaa == NULL || (sdaa->sensors = sdaa_sensors_create(host)) == NULL) {
        free(sdaa);
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory to start");
    }
    sdaa->host = host;
    sdaa->node_count = hardware.node_count;
    if (open_library(sdaa, problem) != 0) {
        sdaa_close(sdaa);
        return -1;
    }
    *runtime_out = sdaa;
    return 0;
}

static int no_device(const struct sdaa *sdaa, sdaa_error_t code, struct vendor_problem *problem)
{
    char text[192];
    const char *hiding = vendor_visible_is_hiding(visible, 1, text, sizeof(text));

    if (hiding != NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_HIDDEN, "%s", hiding);
    }
    vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                       "%s finds no device: sdaaGetDeviceCount: %s (%d)",
                       vendor_lib_name(&sdaa->lib), sdaa->api.sdaaGetErrorName(code), code);
    problem->vendor_code = code;
    return -1;
}

static int sdaa_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    struct sdaa *sdaa = runtime;
    int count = 0;
    sdaa_error_t code = cuda_shaped_code(&sdaa->shaped, sdaa->api.sdaaGetDeviceCount(&count));

    if (code == SDAA_NO_DEVICE || code == SDAA_INVALID_DEVICE) {
        return no_device(sdaa, code, problem);
    }
    if (code == SDAA_INSUFFICIENT_DRIVER) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_MISMATCH, runtime, code, 0,
                                   "%s: sdaaGetDeviceCount", vendor_lib_name(&sdaa->lib));
    }
    if (code != SDAA_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "sdaaGetDeviceCount");
    }
    if (count <= 0) {
        return no_device(sdaa, SDAA_NO_DEVICE, problem);
    }
    sdaa->all_count = secure_getenv(visible[0].variable) == NULL ? (uint32_t)count : 0;
    *count_out = (uint32_t)count;
    return 0;
}

static int32_t sdaa_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    snprintf(info->communication_backend, sizeof(info->communication_backend), "tccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    return DS_ACCEL_OK;
}

/* -- identity and visibility -- */

/*
 * Writes the device's entry in the list of SDAA_VISIBLE_DEVICES, or the device's index if the
 * variable is not set. Returns -1 if the list has no entry for the device.
 */
static int sdaa_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                              size_t token_size)
{
    return vendor_visible_token(device, visible[which].variable, token, token_size);
}

/*
 * Returns the number in a node's name; place is the node's position among the nodes of /dev, sorted
 * by number. -1: none.
 */
static int node_number(const struct ds_accel_host *host, uint32_t place)
{
    unsigned char seen[256] = {0};
    const struct dirent *entry;
    char path[512];
    DIR *directory;
    uint64_t number;
    int i;

    snprintf(path, sizeof(path), "%s/dev", host->machine_root);
    directory = opendir(path);
    if (directory == NULL) {
        return -1;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, "tcaicard", 8) == 0 &&
            plugin_parse_u64(entry->d_name + 8, &number) == 0 && number < sizeof(seen)) {
            seen[number] = 1;
        }
    }
    closedir(directory);
    for (i = 0; i < (int)sizeof(seen); i++) {
        if (seen[i] && place-- == 0) {
            return i;
        }
    }
    return -1;
}

static void place_on_card(ds_accel_plugin_device_t *device,
                          struct ds_accel_device_identity *identity)
{
    const struct sdaa *sdaa = SDAA_OF(device);
    const uint32_t per_node = sdaa_devices_per_node(sdaa);
    char token[32];
    char uuid[64] = "";
    uint64_t number;
    int is_card = 0;
    int node;

    if (sdaa_visible_token(device, 0, token, sizeof(token)) != 0 ||
        plugin_parse_u64(token, &number) != 0 || number >= (uint64_t)sdaa->node_count * per_node) {
        return;
    }
    identity->vendor_index = (uint32_t)number;
    identity->partition_kind = DS_ACCEL_PARTITION_OTHER;
    identity->partition_instance = (uint32_t)number % SDAA_DEVICES_PER_CARD;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX | DS_ACCEL_IDENTITY_PARTITION;
    node = node_number(sdaa->host, (uint32_t)number / per_node);
    if (node >= 0) {
        snprintf(identity->node_path, sizeof(identity->node_path), "/dev/tcaicard%d", node);
    }
    if (sdaa_sensors_uuid(sdaa, identity->vendor_index, uuid, sizeof(uuid), &is_card) == 0) {
        snprintf(is_card ? identity->parent_uuid_text : identity->uuid_text,
                 sizeof(identity->uuid_text), "%s", uuid);
    }
}

/*
 * Guesses the PCI address if TCML reports none: the runtime reports only the bus, and the plugin
 * assumes domain, slot and function 0. The guess is used only if a device of the vendor is at that
 * address.
 */
static void guess_address(const struct ds_accel_host *host, int bus,
                          struct ds_accel_device_identity *identity)
{
    char path[96];
    char line[16];
    char address[32];

    if (bus <= 0 || bus > 255) {
        return;
    }
    snprintf(address, sizeof(address), "0000:%02x:00.0", (unsigned int)bus);
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", address);
    if (vendor_read_line(host, path, line, sizeof(line)) == 0 &&
        (strcmp(line, "0x0719") == 0 || strcmp(line, "0x00a1") == 0)) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%s", address);
        vendor_log(host, DS_ACCEL_LOG_DEBUG, "device %u: %s is a guess, made of bus %d",
                   identity->device_index, address, bus);
    }
}

/*
 * Uses TCML's address if it has the bus that the runtime reports, so that both describe the same
 * card; otherwise guesses the address.
 */
static void find_address(ds_accel_plugin_device_t *device, int bus,
                         struct ds_accel_device_identity *identity)
{
    char address[32] = "";
    uint32_t tcml_bus = 0;

    if ((identity->valid & DS_ACCEL_IDENTITY_VENDOR_INDEX) != 0 &&
        sdaa_sensors_pci(SDAA_OF(device), identity->vendor_index, address, sizeof(address),
                         &tcml_bus) == 0 &&
        (int64_t)tcml_bus == bus) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%s", address);
        return;
    }
    guess_address(device->instance->host, bus, identity);
}

static int32_t sdaa_identify(ds_accel_plugin_device_t *device,
                             struct ds_accel_device_identity *identity,
                             struct ds_accel_error *error)
{
    struct sdaa_properties *properties = calloc(1, sizeof(*properties));
    int32_t status;

    if (properties == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_identity: no memory for it");
    }
    status = SDAA_CHECK(
        device, SDAA_OF(device)->api.sdaaGetDeviceProperties(properties, (int)device->index), error,
        "sdaaGetDeviceProperties(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        device->native_device = device->index;
        identity->total_memory_bytes = properties->memory_bytes;
        snprintf(identity->name, sizeof(identity->name), "%.127s", properties->name);
        place_on_card(device, identity);
        find_address(device, properties->pci_bus, identity);
    }
    free(properties);
    return status;
}

static int32_t sdaa_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                                struct ds_accel_error *error)
{
    (void)native_context;
    (void)error;
    snprintf(device->info.name, sizeof(device->info.name), "%s", device->identity.name);
    device->info.total_memory_bytes = device->identity.total_memory_bytes;
    return DS_ACCEL_OK;
}

static int32_t sdaa_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint32_t flags, void **pointer_out, struct ds_accel_error *error)
{
    (void)flags; /* sdaaMallocHost() has no flags */
    return SDAA_CHECK(device, SDAA_OF(device)->api.sdaaMallocHost(pointer_out, size_bytes), error,
                      "sdaaMallocHost(%llu bytes)", (unsigned long long)size_bytes);
}

/*
 * The hardware computes in float32 and float16; bfloat16 is converted to float16, which limits its
 * range (according to the vendor's manuals, not verified on hardware). The other types can be
 * stored; nothing else is known about them.
 */
static int32_t sdaa_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                                  uint32_t *support_out, struct ds_accel_error *error)
{
    uint32_t support = DS_ACCEL_DTYPE_STORES;

    (void)device;
    (void)error;
    if (dtype == DS_ACCEL_DTYPE_FLOAT32 || dtype == DS_ACCEL_DTYPE_FLOAT16) {
        support |= DS_ACCEL_DTYPE_COMPUTES;
    } else if (dtype == DS_ACCEL_DTYPE_BFLOAT16) {
        support |= DS_ACCEL_DTYPE_EMULATED;
    } else if (dtype < DS_ACCEL_DTYPE_FLOAT32 || dtype > DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ) {
        support = 0;
    }
    *support_out = support;
    return DS_ACCEL_OK;
}

static const char *const export_prefixes[] = {"TCCL", "SDAA", "LD_LIBRARY", "PATH", NULL};

const struct vendor_backend vendor_backend = {
    .name = "sdaa",
    .flags = DS_ACCEL_FLAG_EVENT_IPC,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = export_prefixes,
    .event_handle_bytes = sizeof(struct cuda_shaped_ipc),
    .allocation_align_bytes = 1, /* the vendor promises no alignment */
    .probes_in_child = 1,
    .open = sdaa_open,
    .close = sdaa_close,
    .count = sdaa_count,
    .describe = sdaa_describe,
    .backend_info = sdaa_backend_info,
    .identify = sdaa_identify,
    .device_open = sdaa_device_open,
    CUDA_SHAPED_VERBS,
    .stream_create = cuda_shaped_stream_create,
    .stream_host_task = cuda_shaped_stream_host_task,
    .event_create = cuda_shaped_event_create,
    .alloc_pinned = sdaa_alloc_pinned,
    /*
     * Every device can copy from the memory. It is not verified that the memory is pinned for
     * devices other than the one that allocated it.
     */
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE,
    .copy_async = cuda_shaped_copy_async,
    .fill_async = cuda_shaped_fill_async,
    .fill_widths = 1,
    .dtype_support = sdaa_dtype_support,
    .telemetry = sdaa_telemetry,
    .range_push = sdaa_range_push,
    .range_pop = sdaa_range_pop,
    .visible_token = sdaa_visible_token,
    .ipc_event_export = cuda_shaped_ipc_event_export,
    .ipc_event_open = cuda_shaped_ipc_event_open,
};

DS_ACCEL_PLUGIN("sdaa", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
