/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: meaning of error codes, identity, capabilities. */
#include "rocm.h"

/* -- codes -- */

static int32_t status_of(int64_t code)
{
    switch (code) {
    case HIP_INVALID_VALUE:
    case HIP_INVALID_DEVICE_POINTER:
    case HIP_INVALID_MEMCPY_DIRECTION:
    case HIP_INVALID_HANDLE:
    case HIP_HOST_MEMORY_ALREADY_REGISTERED:
    case HIP_HOST_MEMORY_NOT_REGISTERED:
        return DS_ACCEL_ERR_INVALID;
    case HIP_OUT_OF_MEMORY:
    case HIP_RUNTIME_MEMORY:
        return DS_ACCEL_ERR_NO_MEMORY;
    case HIP_NO_DEVICE:
    case HIP_INVALID_DEVICE:
        return DS_ACCEL_ERR_NO_DEVICE;
    case HIP_ECC_NOT_CORRECTABLE:
    case HIP_ILLEGAL_ADDRESS:
    case HIP_LAUNCH_FAILURE:
        /* No call on the device succeeds until the device is reset. */
        return DS_ACCEL_ERR_DEVICE_LOST;
    case HIP_PEER_ACCESS_UNSUPPORTED:
    case HIP_NOT_SUPPORTED:
        return DS_ACCEL_ERR_UNSUPPORTED;
    case HIP_NOT_FOUND:
        return DS_ACCEL_ERR_NOT_FOUND;
    case HIP_ILLEGAL_STATE:
        return DS_ACCEL_ERR_STATE;
    default:
        return code >= HIP_CAPTURE_FIRST && code <= HIP_CAPTURE_LAST ? DS_ACCEL_ERR_STATE
                                                                     : DS_ACCEL_ERR_DRIVER;
    }
}

/*
 * After a device error, newer HIP releases return the error's code from every call; some of these
 * codes also have other causes. A call that does no work distinguishes a device error from these
 * causes: it fails with the same code only after a device error.
 */
static int is_stuck(const struct rocm *rocm, int64_t code)
{
    int current = 0;

    return (code == HIP_UNKNOWN || code == HIP_ASSERT || code == HIP_LAUNCH_TIMEOUT) &&
           cuda_shaped_code(&rocm->shaped, rocm->shaped.api.get_device(&current)) ==
               (hip_error_t)code;
}

void rocm_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    const struct rocm *rocm = runtime;

    *status_out = is_stuck(rocm, code) ? DS_ACCEL_ERR_DEVICE_LOST : status_of(code);
    *name_out = rocm->hip.hipGetErrorName((hip_error_t)code);
}

/* -- identity -- */

int rocm_architecture(const struct rocm *rocm, uint32_t index, char *text, size_t text_size)
{
    union {
        char bytes[HIP_PROPERTIES_BYTES];
        uint64_t align;
    } properties;
    size_t offset = HIP_PROPERTIES_ARCH_R0600;
    hip_error_t code;

    memset(&properties, 0, sizeof(properties));
    if (rocm->hip.hipGetDevicePropertiesR0600 != NULL) {
        code = rocm->hip.hipGetDevicePropertiesR0600(properties.bytes, (int)index);
    } else if (rocm->hip.hipGetDeviceProperties != NULL) {
        offset = HIP_PROPERTIES_ARCH;
        code = rocm->hip.hipGetDeviceProperties(properties.bytes, (int)index);
    } else {
        code = HIP_NOT_SUPPORTED;
    }
    if (cuda_shaped_code(&rocm->shaped, code) != HIP_SUCCESS) {
        return -1;
    }
    snprintf(text, text_size, "%.*s", HIP_PROPERTIES_ARCH_BYTES - 1, properties.bytes + offset);
    return strncmp(text, "gfx", 3) == 0 ? 0 : -1;
}

/*
 * The runtime returns the UUID as text: 16 bytes with the 16 hexadecimal digits that the driver
 * prints after "GPU-". For a runtime that returns plain bytes, the function writes them in
 * hexadecimal.
 */
static void write_uuid(struct ds_accel_device_identity *identity, const struct hip_uuid *uuid)
{
    size_t at = 0;
    size_t i;

    memcpy(identity->uuid, uuid->bytes, sizeof(identity->uuid));
    identity->valid |= DS_ACCEL_IDENTITY_UUID;
    while (at < sizeof(uuid->bytes) && isxdigit((unsigned char)uuid->bytes[at])) {
        at++;
    }
    if (at == sizeof(uuid->bytes)) {
        snprintf(identity->uuid_text, sizeof(identity->uuid_text), "GPU-%.16s", uuid->bytes);
        return;
    }
    at = (size_t)snprintf(identity->uuid_text, sizeof(identity->uuid_text), "GPU-");
    for (i = 0; i < sizeof(uuid->bytes); i++) {
        at += (size_t)snprintf(identity->uuid_text + at, sizeof(identity->uuid_text) - at, "%02x",
                               (unsigned char)uuid->bytes[i]);
    }
}

static void lower(char *text)
{
    for (; *text != '\0'; text++) {
        *text = (char)tolower((unsigned char)*text);
    }
}

static int32_t read_address(ds_accel_plugin_device_t *device,
                            struct ds_accel_device_identity *identity, struct ds_accel_error *error)
{
    int32_t status = ROCM_CHECK(
        device,
        HIP_OF(device)->hipDeviceGetPCIBusId(
            identity->pci_address, (int)sizeof(identity->pci_address), (int)device->index),
        error, "hipDeviceGetPCIBusId(device %u)", device->index);
    int position;

    if (status < 0) {
        return status;
    }
    lower(identity->pci_address);
    rocm_topology_node(device->instance->host, identity->pci_address, identity->node_path,
                       sizeof(identity->node_path));
    position = rocm_topology_index(device->instance->host, identity->pci_address);
    if (position >= 0) {
        identity->vendor_index = (uint32_t)position;
        identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    }
    return DS_ACCEL_OK;
}

int32_t rocm_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                      struct ds_accel_error *error)
{
    const struct rocm *rocm = ROCM_OF(device);
    struct hip_uuid uuid;
    size_t bytes = 0;
    int handle = (int)device->index;
    int32_t status = ROCM_CHECK(device, rocm->hip.hipDeviceGet(&handle, (int)device->index), error,
                                "hipDeviceGet(device %u)", device->index);

    if (status < 0) {
        return status;
    }
    device->native_device = (uint64_t)handle;
    status = read_address(device, identity, error);
    if (status < 0) {
        return status;
    }
    if (rocm->hip.hipDeviceGetUuid != NULL &&
        cuda_shaped_code(&rocm->shaped, rocm->hip.hipDeviceGetUuid(&uuid, handle)) == HIP_SUCCESS) {
        write_uuid(identity, &uuid);
    }
    status = ROCM_CHECK(device, rocm->hip.hipDeviceTotalMem(&bytes, handle), error,
                        "hipDeviceTotalMem(device %u)", device->index);
    if (status < 0) {
        return status;
    }
    identity->total_memory_bytes = bytes;
    if (rocm_architecture(rocm, device->index, identity->architecture,
                          sizeof(identity->architecture)) != 0) {
        identity->architecture[0] = '\0';
    }
    return ROCM_CHECK(
        device, rocm->hip.hipDeviceGetName(identity->name, (int)sizeof(identity->name), handle),
        error, "hipDeviceGetName(device %u)", device->index);
}

/* -- capabilities -- */

static uint32_t attribute(const struct rocm *rocm, uint32_t index, int which)
{
    int value = 0;

    if (cuda_shaped_code(&rocm->shaped, rocm->hip.hipDeviceGetAttribute(
                                            &value, which, (int)index)) != HIP_SUCCESS ||
        value < 0) {
        return 0;
    }
    return (uint32_t)value;
}

/*
 * Returns true if the runtime reports that the device has no virtual memory, or does not support
 * the attribute. If the query itself fails, the function returns false, and later calls report the
 * error.
 */
static int lacks_virtual_memory(const struct rocm *rocm, uint32_t index)
{
    int value = 0;
    hip_error_t code = cuda_shaped_code(
        &rocm->shaped,
        rocm->hip.hipDeviceGetAttribute(&value, HIP_ATTRIBUTE_VIRTUAL_MEMORY, (int)index));

    return code == HIP_INVALID_VALUE || (code == HIP_SUCCESS && value == 0);
}

int32_t rocm_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                         struct ds_accel_error *error)
{
    const struct rocm *rocm = ROCM_OF(device);
    struct ds_accel_device_info *info = &device->info;
    uint32_t index = device->index;

    (void)native_context;
    (void)error;
    snprintf(info->name, sizeof(info->name), "%s",
             device->identity.name[0] != '\0' ? device->identity.name
                                              : device->identity.architecture);
    info->total_memory_bytes = device->identity.total_memory_bytes;
    info->compute_major = attribute(rocm, index, HIP_ATTRIBUTE_COMPUTE_MAJOR);
    info->compute_minor = attribute(rocm, index, HIP_ATTRIBUTE_COMPUTE_MINOR);
    info->compute_unit_count = attribute(rocm, index, HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info->warp_size = attribute(rocm, index, HIP_ATTRIBUTE_WARP_SIZE);
    info->max_threads_per_block = attribute(rocm, index, HIP_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    info->max_core_clock_khz = attribute(rocm, index, HIP_ATTRIBUTE_CLOCK_RATE);
    info->memory_bus_bits = attribute(rocm, index, HIP_ATTRIBUTE_MEMORY_BUS_WIDTH);
    info->l2_cache_bytes = attribute(rocm, index, HIP_ATTRIBUTE_L2_CACHE_SIZE);
    if (attribute(rocm, index, HIP_ATTRIBUTE_MEMORY_POOLS) == 0) {
        info->flags &= ~DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY;
    }
    if (lacks_virtual_memory(rocm, index)) {
        info->flags &= ~DS_ACCEL_FLAG_VIRTUAL_MEMORY;
    }
    return DS_ACCEL_OK;
}

/*
 * Returns true if the architecture, such as "gfx90a:sramecc+:xnack-", matches one of the patterns,
 * such as "908 90a 94? 95? 11?? 12??", where ? is any character. "gfx" and the features, from the
 * first colon, are not compared.
 */
static int is_architecture(const char *architecture, const char *patterns)
{
    size_t length = strcspn(architecture, ":");
    size_t i;

    while (*patterns != '\0') {
        size_t width = strcspn(patterns, " ");
        for (i = 0; i < width && i + 3 < length; i++) {
            if (patterns[i] != '?' && patterns[i] != architecture[i + 3]) {
                break;
            }
        }
        if (i == width && length == width + 3) {
            return 1;
        }
        patterns += width + (patterns[width] == ' ');
    }
    return 0;
}

/*
 * The architecture's name decides: matrix units support bfloat16 on gfx908, gfx90a, gfx94x, gfx95x,
 * gfx11 and gfx12; other devices convert bfloat16 to float. gfx940 to gfx942 compute with AMD's own
 * 8-bit floats, gfx950 and gfx12 with the OCP formats.
 */
int32_t rocm_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                           struct ds_accel_error *error)
{
    const char *architecture = device->identity.architecture;
    uint32_t support = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;

    (void)error;
    switch (dtype) {
    case DS_ACCEL_DTYPE_BFLOAT16:
        if (!is_architecture(architecture, "908 90a 94? 95? 11?? 12??")) {
            support = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_EMULATED;
        }
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
        if (!is_architecture(architecture, "94?")) {
            support = DS_ACCEL_DTYPE_STORES;
        }
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
        if (!is_architecture(architecture, "95? 12??")) {
            support = DS_ACCEL_DTYPE_STORES;
        }
        break;
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_FLOAT64:
    case DS_ACCEL_DTYPE_INT8:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_INT16:
    case DS_ACCEL_DTYPE_INT32:
    case DS_ACCEL_DTYPE_INT64:
    case DS_ACCEL_DTYPE_BOOL:
        break;
    default:
        support = 0;
    }
    *support_out = support;
    return DS_ACCEL_OK;
}
