/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Devices: identity, facts, and the context of an open device.
 *
 * Each open device has its own context. One context for all devices of a platform would let them
 * share buffers, but the runtime would then choose a buffer's location, and "memory of device 1"
 * could not be guaranteed. The cost: copies between devices go through the host (task.c), and waits
 * for another device's event need a callback (stream.c).
 */
#include "opencl.h"

/* ---- device queries ------------------------------------------------------------------------- */

/* The next three functions return the value of a query, or 0 if the query fails. */
static uint64_t ask_u64(const struct opencl_runtime *runtime, cl_device device, uint32_t name)
{
    uint64_t value = 0;

    return runtime->cl.clGetDeviceInfo(device, name, sizeof(value), &value, NULL) == CL_SUCCESS
               ? value
               : 0;
}

static uint32_t ask_u32(const struct opencl_runtime *runtime, cl_device device, uint32_t name)
{
    uint32_t value = 0;

    return runtime->cl.clGetDeviceInfo(device, name, sizeof(value), &value, NULL) == CL_SUCCESS
               ? value
               : 0;
}

static uint64_t ask_size(const struct opencl_runtime *runtime, cl_device device, uint32_t name)
{
    size_t value = 0;

    return runtime->cl.clGetDeviceInfo(device, name, sizeof(value), &value, NULL) == CL_SUCCESS
               ? value
               : 0;
}

/* Returns true if the list contains the whole word. */
static uint32_t has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    const char *found = words;

    while ((found = strstr(found, word)) != NULL) {
        if ((found == words || found[-1] == ' ') && (found[length] == ' ' || found[length] == 0)) {
            return 1;
        }
        found += length;
    }
    return 0;
}

static uint32_t has_extension(const struct opencl_runtime *runtime, cl_device device,
                              const char *extension)
{
    char words[8192];

    opencl_device_text(runtime, device, CL_DEVICE_EXTENSIONS, words, sizeof(words));
    return has_word(words, extension);
}

/* Converts "OpenCL 1.2 Oclgrind" to 102; returns 0 for a text of any other form. */
static uint32_t version_of(const char *text)
{
    unsigned major = 0;
    unsigned minor = 0;

    return sscanf(text, "OpenCL %u.%u", &major, &minor) == 2 && minor < 100 && major < 1000
               ? major * 100 + minor
               : 0;
}

/* ---- identity ------------------------------------------------------------------------------- */

static void identify_bus(const struct opencl_runtime *runtime, cl_device device,
                         struct ds_accel_device_identity *identity)
{
    struct cl_pci_bus_info bus;

    if (has_extension(runtime, device, "cl_khr_pci_bus_info") &&
        runtime->cl.clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(bus), &bus, NULL) ==
            CL_SUCCESS) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%04x:%02x:%02x.%x",
                 bus.domain & 0xffffffu, bus.bus & 0xffu, bus.device & 0x1fu, bus.function & 7u);
    }
}

static void identify_uuid(const struct opencl_runtime *runtime, cl_device device,
                          struct ds_accel_device_identity *identity)
{
    uint8_t uuid[16];
    int length = 0;

    if (!has_extension(runtime, device, "cl_khr_device_uuid") ||
        runtime->cl.clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof(uuid), uuid, NULL) !=
            CL_SUCCESS) {
        return;
    }
    memcpy(identity->uuid, uuid, sizeof(uuid));
    identity->valid |= DS_ACCEL_IDENTITY_UUID;
    for (size_t i = 0; i < sizeof(uuid); i++) {
        length += snprintf(identity->uuid_text + length,
                           sizeof(identity->uuid_text) - (size_t)length, "%s%02x",
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    }
}

int32_t opencl_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                        struct ds_accel_error *error)
{
    const struct opencl_runtime *runtime = device->instance->runtime;
    const struct opencl_found *found;

    if (identity->device_index >= runtime->device_count) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "device %u: there are %u",
                           identity->device_index, runtime->device_count);
    }
    found = &runtime->devices[identity->device_index];
    device->native_device = (uint64_t)(uintptr_t)found->device;
    identity->vendor_index = found->vendor_index;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    identity->total_memory_bytes = ask_u64(runtime, found->device, CL_DEVICE_GLOBAL_MEM_SIZE);
    opencl_device_text(runtime, found->device, CL_DEVICE_NAME, identity->name,
                       sizeof(identity->name));
    identify_bus(runtime, found->device, identity);
    identify_uuid(runtime, found->device, identity);
    return DS_ACCEL_OK;
}

/* ---- the backend ---------------------------------------------------------------------------- */

/* Reads up to three numbers at the start of the text: "535.183.01", "3.1+debian". */
static void read_version(const char *text, uint32_t version[4])
{
    unsigned parts[3] = {0, 0, 0};
    int count = sscanf(text, "%9u.%9u.%9u", &parts[0], &parts[1], &parts[2]);

    for (int i = 0; i < count && i < 3; i++) {
        version[i] = parts[i];
    }
}

/* Writes the version of the first device's driver as its vendor does, up to the first blank. */
void opencl_evidence(void *opened, char *text, size_t text_size)
{
    const struct opencl_runtime *runtime = opened;
    const char *which = "driver";
    uint32_t version[4] = {0, 0, 0, 0};
    char driver[OPENCL_TEXT_SIZE];

    opencl_device_text(runtime, runtime->devices[0].device, CL_DRIVER_VERSION, driver,
                       sizeof(driver));
    read_version(driver, version);
    if (version[0] == 0 && version[1] == 0) {
        char platform[OPENCL_TEXT_SIZE];
        uint32_t number;

        opencl_platform_text(runtime, runtime->devices[0].platform, CL_PLATFORM_VERSION, platform,
                             sizeof(platform));
        number = version_of(platform);
        which = "runtime";
        driver[0] = '\0';
        if (number != 0) {
            snprintf(driver, sizeof(driver), "%u.%u", number / 100, number % 100);
        }
    }
    driver[strcspn(driver, " \t")] = '\0';
    vendor_write_evidence(text, text_size, runtime->lib.name, which, driver, runtime->device_count);
}

int32_t opencl_backend_info(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct opencl_runtime *runtime = instance->runtime;
    char text[OPENCL_TEXT_SIZE];
    uint32_t version;

    (void)error;
    if (runtime->device_count > 0) {
        opencl_device_text(runtime, runtime->devices[0].device, CL_DRIVER_VERSION, text,
                           sizeof(text));
        read_version(text, info->driver_version);
        opencl_platform_text(runtime, runtime->devices[0].platform, CL_PLATFORM_VERSION, text,
                             sizeof(text));
        version = version_of(text);
        info->runtime_version[0] = version / 100;
        info->runtime_version[1] = version % 100;
    }
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static uint32_t warp_size_of(const struct opencl_runtime *runtime, const struct opencl_found *found)
{
    if (has_extension(runtime, found->device, "cl_nv_device_attribute_query")) {
        return ask_u32(runtime, found->device, CL_DEVICE_WARP_SIZE_NV);
    }
    if (has_extension(runtime, found->device, "cl_amd_device_attribute_query")) {
        return ask_u32(runtime, found->device, CL_DEVICE_WAVEFRONT_WIDTH_AMD);
    }
    return found->type == CL_DEVICE_TYPE_CPU ? 1 : 0;
}

static void fill_info(ds_accel_plugin_device_t *device)
{
    const struct opencl_device *state = opencl_of(device);
    const struct opencl_runtime *runtime = state->runtime;
    cl_device id = state->found->device;

    opencl_device_text(runtime, id, CL_DEVICE_NAME, device->info.name, sizeof(device->info.name));
    device->info.total_memory_bytes = state->total_bytes;
    device->info.max_allocation_bytes = state->max_allocation_bytes;
    device->info.compute_unit_count = ask_u32(runtime, id, CL_DEVICE_MAX_COMPUTE_UNITS);
    device->info.max_threads_per_block =
        (uint32_t)ask_size(runtime, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    device->info.max_core_clock_khz = ask_u32(runtime, id, CL_DEVICE_MAX_CLOCK_FREQUENCY) *
                                      UINT32_C(1000);
    device->info.l2_cache_bytes = ask_u64(runtime, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    device->info.warp_size = warp_size_of(runtime, state->found);
}

static void read_facts(struct opencl_device *state)
{
    const struct opencl_runtime *runtime = state->runtime;
    cl_device id = state->found->device;
    char text[OPENCL_TEXT_SIZE];

    opencl_device_text(runtime, id, CL_DEVICE_VERSION, text, sizeof(text));
    state->version = version_of(text);
    state->total_bytes = ask_u64(runtime, id, CL_DEVICE_GLOBAL_MEM_SIZE);
    state->max_allocation_bytes = ask_u64(runtime, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    state->has_half = has_extension(runtime, id, "cl_khr_fp16");
    state->has_double = has_extension(runtime, id, "cl_khr_fp64") ||
                        ask_u64(runtime, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    state->has_amd_memory = has_extension(runtime, id, "cl_amd_device_attribute_query");
    state->has_priorities = state->version >= 200 &&
                            runtime->cl.clCreateCommandQueueWithProperties != NULL &&
                            has_extension(runtime, id, "cl_khr_priority_hints");
    state->has_svm =
        state->version >= 200 && runtime->cl.clSVMAlloc != NULL && runtime->cl.clSVMFree != NULL &&
        runtime->cl.clEnqueueSVMMemcpy != NULL && runtime->cl.clEnqueueSVMMemFill != NULL &&
        (ask_u64(runtime, id, CL_DEVICE_SVM_CAPABILITIES) & CL_SVM_FINE_GRAIN_BUFFER) != 0;
}

/* Uses and retains the program's own context, which must contain this device. */
static int32_t take_context(ds_accel_plugin_device_t *device, cl_context context,
                            struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    const struct cl_calls *cl = &state->runtime->cl;
    cl_device ids[64];
    size_t size = 0;
    int32_t code = cl->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(ids), ids, &size);
    int32_t status = vendor_check(device->instance, device, code, error,
                                  "clGetContextInfo(%p, CL_CONTEXT_DEVICES)",
                                  (const void *)context);

    for (size_t i = 0; status == DS_ACCEL_OK && i < size / sizeof(ids[0]); i++) {
        if (ids[i] == state->found->device) {
            status = vendor_check(device->instance, device, cl->clRetainContext(context), error,
                                  "clRetainContext(%p)", (const void *)context);
            state->context = status == DS_ACCEL_OK ? context : NULL;
            return status;
        }
    }
    return status < 0
               ? status
               : plugin_fail(error, DS_ACCEL_ERR_INVALID, "the context %p is not one of device %u",
                             (const void *)context, device->index);
}

static int32_t make_context(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)state->found->platform, 0};
    int32_t code = CL_SUCCESS;
    cl_context context =
        state->runtime->cl.clCreateContext(properties, 1, &state->found->device, NULL, NULL, &code);

    if (code == CL_SUCCESS && context != NULL) {
        state->context = context;
        return DS_ACCEL_OK;
    }
    /*
     * The device argument is NULL so that the device is not marked as lost, because an unavailable
     * device may become available later.
     */
    return vendor_check(device->instance, NULL, code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES,
                        error, "clCreateContext(device %u)", device->index);
}

static int32_t make_service(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    int32_t code = CL_SUCCESS;

    state->service =
        state->runtime->cl.clCreateCommandQueue(state->context, state->found->device, 0, &code);
    if (state->service == NULL && code == CL_SUCCESS) {
        code = CL_OUT_OF_RESOURCES;
    }
    return vendor_check(device->instance, device, code, error, "clCreateCommandQueue(device %u, 0)",
                        device->index);
}

int32_t opencl_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                           struct ds_accel_error *error)
{
    struct opencl_runtime *runtime = device->instance->runtime;
    struct opencl_device *state = calloc(1, sizeof(*state));
    int32_t status;

    if (state == NULL || pthread_mutex_init(&state->lock, NULL) != 0) {
        free(state);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device %u: no memory to open it",
                           device->index);
    }
    state->runtime = runtime;
    state->found = &runtime->devices[device->index];
    device->state = state;
    status = native_context != 0
                 ? take_context(device, (cl_context)(uintptr_t)native_context, error)
                 : make_context(device, error);
    if (status == DS_ACCEL_OK) {
        status = make_service(device, error);
    }
    if (status < 0) {
        opencl_device_close(device);
        return status;
    }
    read_facts(state);
    fill_info(device);
    device->native_context = (uint64_t)(uintptr_t)state->context;
    device->native_device = (uint64_t)(uintptr_t)state->found->device;
    return DS_ACCEL_OK;
}

void opencl_device_close(ds_accel_plugin_device_t *device)
{
    struct opencl_device *state = opencl_of(device);

    if (state == NULL) {
        return;
    }
    if (state->service != NULL) {
        state->runtime->cl.clFinish(state->service);
        state->runtime->cl.clReleaseCommandQueue(state->service);
    }
    if (state->context != NULL) {
        state->runtime->cl.clReleaseContext(state->context);
    }
    pthread_mutex_destroy(&state->lock);
    free(state);
    device->state = NULL;
    device->native_context = 0;
}

/* ---- waiting for the whole device ----------------------------------------------------------- */

/* A stream's state when a wait for the stream began. */
struct waited {
    cl_queue queue; /* retained, so that it is not freed during the wait */
    uint64_t place;
};

static int32_t list_queues(ds_accel_plugin_device_t *device, struct waited **waited_out,
                           size_t *count_out, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    int32_t code = CL_SUCCESS;
    struct waited *waited;
    size_t count = 0;

    pthread_mutex_lock(&state->lock);
    for (struct opencl_stream *stream = state->streams; stream != NULL; stream = stream->next) {
        count++;
    }
    waited = calloc(count + 1, sizeof(*waited));
    count = 0;
    for (struct opencl_stream *stream = state->streams;
         stream != NULL && waited != NULL && code == CL_SUCCESS; stream = stream->next) {
        code = state->runtime->cl.clRetainCommandQueue(stream->queue);
        if (code == CL_SUCCESS) {
            waited[count++] = (struct waited){stream->queue, atomic_load(&stream->place)};
        }
    }
    pthread_mutex_unlock(&state->lock);
    *waited_out = waited;
    *count_out = count;
    if (waited == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "device_synchronize: no memory to list the streams");
    }
    return vendor_check(device->instance, device, code, error, "clRetainCommandQueue(device %u)",
                        device->index);
}

/*
 * Records that all work of the stream up to the number waited->place is complete. Work that was
 * queued during the wait has larger numbers (see next_place in stream.c).
 */
static void note_finished(struct opencl_device *state, const struct waited *waited)
{
    pthread_mutex_lock(&state->lock);
    for (struct opencl_stream *stream = state->streams; stream != NULL; stream = stream->next) {
        if (stream->queue == waited->queue) {
            atomic_store(&stream->finished, waited->place);
        }
    }
    pthread_mutex_unlock(&state->lock);
}

int32_t opencl_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    struct waited *waited = NULL;
    size_t count = 0;
    int32_t status = list_queues(device, &waited, &count, error);

    for (size_t i = 0; i < count; i++) {
        if (status == DS_ACCEL_OK) {
            status = vendor_check(device->instance, device,
                                  state->runtime->cl.clFinish(waited[i].queue), error,
                                  "clFinish(device %u)", device->index);
            if (status == DS_ACCEL_OK) {
                note_finished(state, &waited[i]);
            }
        }
        state->runtime->cl.clReleaseCommandQueue(waited[i].queue);
    }
    free(waited);
    return status;
}

int32_t opencl_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    const struct opencl_device *state = opencl_of(device);
    uint32_t is_available = 0;
    int32_t code = state->runtime->cl.clGetDeviceInfo(state->found->device, CL_DEVICE_AVAILABLE,
                                                      sizeof(is_available), &is_available, NULL);

    if (code == CL_SUCCESS && !is_available) {
        code = CL_DEVICE_NOT_AVAILABLE;
    }
    return vendor_check(device->instance, device, code, error,
                        "clGetDeviceInfo(device %u, CL_DEVICE_AVAILABLE)", device->index);
}

/*
 * OpenCL C computes with integers and float on every device, and with half and double where the
 * device reports them. It has no types for bfloat16 and the 8-bit floats, which the device only
 * stores. Any other type is not supported.
 */
int32_t opencl_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error)
{
    const uint32_t both = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    const struct opencl_device *state = opencl_of(device);

    (void)error;
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_INT8:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_INT16:
    case DS_ACCEL_DTYPE_INT32:
    case DS_ACCEL_DTYPE_INT64:
    case DS_ACCEL_DTYPE_BOOL:
        *support_out = both;
        break;
    case DS_ACCEL_DTYPE_FLOAT16:
        *support_out = state->has_half ? both : DS_ACCEL_DTYPE_STORES;
        break;
    case DS_ACCEL_DTYPE_FLOAT64:
        *support_out = state->has_double ? both : DS_ACCEL_DTYPE_STORES;
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
        *support_out = DS_ACCEL_DTYPE_STORES;
        break;
    default:
        *support_out = 0;
    }
    return DS_ACCEL_OK;
}
