/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: identity, the primary context, the current context, data types, visible devices. */
#include "plugin.h"

int cuda_attribute(const struct cuda_api *api, cu_device_t device, int attribute, int otherwise)
{
    int value = otherwise;

    return api->cuDeviceGetAttribute(&value, attribute, device) == CU_SUCCESS ? value : otherwise;
}

/* ---- identity: read from the driver without a context --------------------------------------- */

static void write_uuid(const cu_uuid_t *uuid, struct ds_accel_device_identity *identity)
{
    const unsigned char *b = uuid->bytes;

    memcpy(identity->uuid, b, sizeof(identity->uuid));
    identity->valid |= DS_ACCEL_IDENTITY_UUID;
    snprintf(identity->uuid_text, sizeof(identity->uuid_text),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

int cuda_pci_address(const char *text, char *address, size_t address_size)
{
    unsigned domain;
    unsigned bus;
    unsigned slot;
    unsigned function;

    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
        return 0;
    }
    snprintf(address, address_size, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    return 1;
}

/* Reads the line "Device Minor: 	 0" of the kernel driver's /proc file about the device. */
static void find_node(const struct ds_accel_host *host, struct ds_accel_device_identity *identity)
{
    char path[512];
    char line[256];
    FILE *file;
    unsigned minor;

    if (identity->pci_address[0] == '\0' || identity->node_path[0] != '\0') {
        return;
    }
    snprintf(path, sizeof(path), "%.400s/proc/driver/nvidia/gpus/%.31s/information",
             DS_ACCEL_HAS(host, struct ds_accel_host, machine_root) ? host->machine_root : "",
             identity->pci_address);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Device Minor: %u", &minor) == 1) {
            snprintf(identity->node_path, sizeof(identity->node_path), "/dev/nvidia%u", minor);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

int32_t cuda_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                      struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = cuda_runtime_of(device);
    const struct cuda_api *api = &runtime->api;
    cu_device_t native = 0;
    cu_uuid_t uuid;
    char pci[32] = "";
    size_t total = 0;

    CUDA_TRY(device, api->cuDeviceGet(&native, (int)device->index), error, "cuDeviceGet(%u)",
             device->index);
    device->native_device = (uint64_t)native;
    CUDA_TRY(device, api->cuDeviceGetName(identity->name, (int)sizeof(identity->name), native),
             error, "cuDeviceGetName(device %u)", device->index);
    CUDA_TRY(device, api->cuDeviceTotalMem_v2(&total, native), error, "cuDeviceTotalMem(device %u)",
             device->index);
    identity->total_memory_bytes = total;
    if (api->cuDeviceGetUuid_v2 != NULL && api->cuDeviceGetUuid_v2(&uuid, native) == CU_SUCCESS) {
        write_uuid(&uuid, identity);
    }
    if (api->cuDeviceGetPCIBusId(pci, (int)sizeof(pci), native) == CU_SUCCESS) {
        cuda_pci_address(pci, identity->pci_address, sizeof(identity->pci_address));
    }
    snprintf(identity->architecture, sizeof(identity->architecture), "sm_%d%d",
             cuda_attribute(api, native, CU_ATTRIBUTE_COMPUTE_MAJOR, 0),
             cuda_attribute(api, native, CU_ATTRIBUTE_COMPUTE_MINOR, 0));
    nvml_identify(runtime, identity);
    find_node(runtime->host, identity);
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static uint32_t positive(int value)
{
    return value > 0 ? (uint32_t)value : 0;
}

static void fill_info(const struct cuda_api *api, const struct cuda_device *state,
                      struct ds_accel_device_info *info)
{
    cu_device_t native = state->device;

    info->compute_major = positive(state->major);
    info->compute_minor = positive(cuda_attribute(api, native, CU_ATTRIBUTE_COMPUTE_MINOR, 0));
    info->compute_unit_count =
        positive(cuda_attribute(api, native, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    info->warp_size = positive(cuda_attribute(api, native, CU_ATTRIBUTE_WARP_SIZE, 0));
    info->max_threads_per_block =
        positive(cuda_attribute(api, native, CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    info->max_core_clock_khz = positive(cuda_attribute(api, native, CU_ATTRIBUTE_CLOCK_RATE, 0));
    info->memory_bus_bits = positive(cuda_attribute(api, native, CU_ATTRIBUTE_MEMORY_BUS_WIDTH, 0));
    info->l2_cache_bytes = positive(cuda_attribute(api, native, CU_ATTRIBUTE_L2_CACHE_SIZE, 0));
    if (!state->has_pools) {
        info->flags &= ~DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY;
    }
    if (!state->has_dmabuf) {
        info->flags &= ~DS_ACCEL_FLAG_DMABUF;
    }
    if (cuda_attribute(api, native, CU_ATTRIBUTE_VIRTUAL_MEMORY, 0) != 1) {
        info->flags &= ~DS_ACCEL_FLAG_VIRTUAL_MEMORY;
    }
    if (state->major < 8) {
        info->flags &= ~DS_ACCEL_FLAG_TRITON;
    }
    if (state->major < 7 || state->major > 8) {
        info->flags &= ~DS_ACCEL_FLAG_TRITON_GROUPED_MM;
    }
}

/* The context that the program passes must belong to this device. */
static int32_t borrow_context(ds_accel_plugin_device_t *device, struct cuda_device *state,
                              uint64_t native_context, struct ds_accel_error *error)
{
    const struct cuda_api *api = state->api;
    cu_context_t context = (cu_context_t)(uintptr_t)native_context;
    cu_context_t popped;
    cu_device_t of = -1;
    cu_result_t code;

    CUDA_TRY(device, api->cuCtxPushCurrent_v2(context), error, "cuCtxPushCurrent(%p)",
             (void *)context);
    code = api->cuCtxGetDevice(&of);
    api->cuCtxPopCurrent_v2(&popped);
    CUDA_TRY(device, code, error, "cuCtxGetDevice()");
    if (of != state->device) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "device_open_native: context %p is of CUDA device %d, not of %d",
                           (void *)context, of, state->device);
    }
    state->context = context;
    state->is_borrowed = 1;
    return DS_ACCEL_OK;
}

static int32_t get_context(ds_accel_plugin_device_t *device, struct cuda_device *state,
                           uint64_t native_context, struct ds_accel_error *error)
{
    if (native_context != 0) {
        return borrow_context(device, state, native_context, error);
    }
    CUDA_TRY(device, state->api->cuDevicePrimaryCtxRetain(&state->context, state->device), error,
             "cuDevicePrimaryCtxRetain(device %u)", device->index);
    return DS_ACCEL_OK;
}

int32_t cuda_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                         struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    struct cuda_device *state = calloc(1, sizeof(*state));
    int32_t status;

    if (state == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory");
    }
    state->api = api;
    state->device = (cu_device_t)device->native_device;
    status = get_context(device, state, native_context, error);
    if (status < 0) {
        free(state);
        return status;
    }
    state->major = cuda_attribute(api, state->device, CU_ATTRIBUTE_COMPUTE_MAJOR, 0);
    state->has_pools = api->cuMemAllocAsync != NULL && api->cuMemFreeAsync != NULL &&
                       cuda_attribute(api, state->device, CU_ATTRIBUTE_MEMORY_POOLS, 0) == 1;
    state->has_vmem_rdma =
        cuda_attribute(api, state->device, CU_ATTRIBUTE_RDMA_WITH_VIRTUAL_MEMORY, 0) == 1;
    state->has_dmabuf = api->cuMemGetHandleForAddressRange != NULL &&
                        cuda_attribute(api, state->device, CU_ATTRIBUTE_DMA_BUF, 0) == 1;
    fill_info(api, state, &device->info);
    device->state = state;
    device->native_context = (uintptr_t)state->context;
    return DS_ACCEL_OK;
}

void cuda_device_close(ds_accel_plugin_device_t *device)
{
    struct cuda_device *state = device->state;
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    uint64_t saved = 0;

    if (state != NULL && state->mark != NULL) {
        int32_t status = cuda_enter(device, &saved, &ignored);

        CUDA_END(device, state->api->cuEventDestroy_v2(state->mark), "cuEventDestroy(%p)",
                 (void *)state->mark);
        if (status == DS_ACCEL_OK) {
            cuda_leave(device, saved);
        }
    }
    if (state != NULL && !state->is_borrowed) {
        CUDA_END(device, state->api->cuDevicePrimaryCtxRelease_v2(state->device),
                 "cuDevicePrimaryCtxRelease(device %u)", device->index);
    }
    free(state);
}

/* ---- the current context -------------------------------------------------------------------- */

/* Checks first whether the device's context is current, as it is in most programs' calls. */
int32_t cuda_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                   struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;
    cu_context_t current = NULL;

    if (state->api->cuCtxGetCurrent(&current) == CU_SUCCESS && current == state->context) {
        *saved_out = 0;
        return DS_ACCEL_OK;
    }
    CUDA_TRY(device, state->api->cuCtxPushCurrent_v2(state->context), error,
             "cuCtxPushCurrent(device %u)", device->index);
    *saved_out = 1;
    return DS_ACCEL_OK;
}

void cuda_leave(ds_accel_plugin_device_t *device, uint64_t saved)
{
    const struct cuda_device *state = device->state;
    cu_context_t popped;

    if (saved != 0) {
        state->api->cuCtxPopCurrent_v2(&popped);
    }
}

int32_t cuda_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                         struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    cu_context_t current = NULL;
    cu_device_t native = -1;
    cu_result_t code = runtime->api.cuCtxGetCurrent(&current);

    if (code == CU_SUCCESS && current != NULL) {
        code = runtime->api.cuCtxGetDevice(&native);
    }
    if (code != CU_SUCCESS) {
        return vendor_check(instance, NULL, code, error, "cuCtxGetCurrent()");
    }
    *index_out = UINT32_MAX;
    for (uint32_t i = 0; native >= 0 && i < instance->device_count; i++) {
        if (instance->devices[i].native_device == (uint64_t)native) {
            *index_out = i;
        }
    }
    return DS_ACCEL_OK;
}

int32_t cuda_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;

    CUDA_TRY(device, state->api->cuCtxSetCurrent(state->context), error,
             "cuCtxSetCurrent(device %u)", device->index);
    return DS_ACCEL_OK;
}

int32_t cuda_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    CUDA_TRY(device, cuda_api_of(device)->cuCtxSynchronize(), error, "cuCtxSynchronize(device %u)",
             device->index);
    return DS_ACCEL_OK;
}

/*
 * Waits for the event sleep if waits for the context do. The event is made when it is first needed;
 * the frame's lock keeps other threads out.
 */
static cu_result_t make_mark(struct cuda_device *state)
{
    const struct cuda_api *api = state->api;
    unsigned int flags = 0;

    if (api->cuCtxGetFlags == NULL || api->cuCtxGetFlags(&flags) != CU_SUCCESS) {
        flags = 0;
    }
    return api->cuEventCreate(
        &state->mark, CU_EVENT_DISABLE_TIMING |
                          ((flags & CU_CONTEXT_BLOCKING_SYNC) != 0 ? CU_EVENT_BLOCKING_SYNC : 0));
}

int32_t cuda_device_mark(ds_accel_plugin_device_t *device, void **event_out,
                         struct ds_accel_error *error)
{
    struct cuda_device *state = device->state;
    const struct cuda_api *api = cuda_api_of(device);

    if (api->cuCtxRecordEvent == NULL) {
        return vendor_unsupported(error, "device_synchronize",
                                  "libcuda.so.1 has no cuCtxRecordEvent (CUDA 12.5)");
    }
    if (state->mark == NULL) {
        CUDA_TRY(device, make_mark(state), error, "cuEventCreate(device %u)", device->index);
    }
    CUDA_TRY(device, api->cuCtxRecordEvent(state->context, state->mark), error,
             "cuCtxRecordEvent(device %u)", device->index);
    *event_out = state->mark;
    return DS_ACCEL_OK;
}

/*
 * Queries the free memory only to learn the call's code: after an error that makes the context
 * unusable, every call in the context returns that error.
 */
int32_t cuda_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    CUDA_TRY(device, cuda_api_of(device)->cuMemGetInfo_v2(&free_bytes, &total_bytes), error,
             "cuMemGetInfo(device %u)", device->index);
    return DS_ACCEL_OK;
}

/* ---- data types ----------------------------------------------------------------------------- */

/*
 * Pascal computes fp16 at a fraction of its fp32 speed: on Pascal, report fp16 only to programs
 * that request it with DS_ALLOW_DEPRECATED_FP16=1.
 */
static int computes_fp16(int major)
{
    const char *allowed = getenv("DS_ALLOW_DEPRECATED_FP16");

    return major >= 7 || (major == 6 && allowed != NULL && strcmp(allowed, "1") == 0);
}

int32_t cuda_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                           struct ds_accel_error *error)
{
    const struct cuda_device *state = device->state;
    uint32_t computes = DS_ACCEL_DTYPE_COMPUTES;

    (void)error;
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT16:
        computes = computes_fp16(state->major) ? DS_ACCEL_DTYPE_COMPUTES : DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
        computes = state->major >= 8 && cuda_runtime_of(device)->version >= 11000
                       ? DS_ACCEL_DTYPE_COMPUTES
                       : DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
        computes = device->info.compute_major > 8 ||
                           (device->info.compute_major == 8 && device->info.compute_minor >= 9)
                       ? DS_ACCEL_DTYPE_COMPUTES
                       : DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
        computes = DS_ACCEL_DTYPE_EMULATED;
        break;
    default:
        break;
    }
    *support_out = DS_ACCEL_DTYPE_STORES | computes;
    return DS_ACCEL_OK;
}

/* ---- CUDA_VISIBLE_DEVICES ------------------------------------------------------------------- */

/*
 * A search for the device at position wanted of CUDA_VISIBLE_DEVICES in this process, whose value
 * may list devices by number or by name.
 */
struct visible_list {
    uint32_t wanted;
    uint32_t position;
    long number; /* number of the device at the wanted position; -1: none */
    int has_names;
};

static int look_at_token(void *user_data, const char *token)
{
    struct visible_list *list = user_data;
    char *end;
    long number = strtol(token, &end, 10);

    if (end == token || *end != '\0') {
        list->has_names = 1;
        return 1;
    }
    if (number < 0) {
        return 1; /* the driver ignores the rest of the list */
    }
    if (list->position++ == list->wanted) {
        list->number = number;
    }
    return 0;
}

/*
 * Writes the text that selects the device in a child's CUDA_VISIBLE_DEVICES. If the variable is set
 * in this process and contains only numbers, the text is the device's number in it: the child has
 * the same CUDA_DEVICE_ORDER, so the number means the same device. If the variable is unset, the
 * text is the device's index, but, if the device has a UUID, only if the driver has the same number
 * for the device: the driver also counts devices that are divided or unusable, which the plugin
 * does not list. Otherwise, and for a part of a device, which has no number, the text is the UUID.
 * Returns 0, or -1 if neither a number nor a UUID selects the device.
 */
int cuda_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                       size_t token_size)
{
    struct visible_list list = {.wanted = device->index, .number = -1};
    int has_uuid = (device->identity.valid & DS_ACCEL_IDENTITY_UUID) != 0;

    (void)which;
    if (vendor_visible_each("CUDA_VISIBLE_DEVICES", look_at_token, &list) == -1 &&
        (!has_uuid || nvml_has_only(cuda_runtime_of(device), device->instance->device_count))) {
        list.number = device->index;
    }
    if (device->identity.partition_kind == DS_ACCEL_PARTITION_NONE && !list.has_names &&
        list.number >= 0) {
        snprintf(token, token_size, "%ld", list.number);
        return 0;
    }
    if (!has_uuid) {
        return -1;
    }
    snprintf(token, token_size, "%s", device->identity.uuid_text);
    return 0;
}
