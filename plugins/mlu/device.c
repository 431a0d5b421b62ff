/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices, and the current device, which every thread has; it is 0 until the thread sets it. */
#include "mlu.h"

int32_t mlu_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                  struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    int current = -1;
    int32_t status = MLU_CHECK(device, cnrt->cnrtGetDevice(&current), error, "cnrtGetDevice()");

    if (status != DS_ACCEL_OK) {
        return status;
    }
    *saved_out = (uint64_t)(uint32_t)current;
    if ((uint32_t)current == device->index) {
        return DS_ACCEL_OK;
    }
    return MLU_CHECK(device, cnrt->cnrtSetDevice((int)device->index), error, "cnrtSetDevice(%u)",
                     device->index);
}

void mlu_leave(ds_accel_plugin_device_t *device, uint64_t saved)
{
    if (saved != device->index) {
        MLU_CNRT(device)->cnrtSetDevice((int)saved);
    }
}

int32_t mlu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error)
{
    int current = -1;
    int32_t status = vendor_check(instance, NULL, MLU(instance)->cnrt.cnrtGetDevice(&current),
                                  error, "cnrtGetDevice()");

    if (status == DS_ACCEL_OK) {
        *index_out = (uint32_t)current;
    }
    return status;
}

int32_t mlu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtSetDevice((int)device->index), error,
                     "cnrtSetDevice(%u)", device->index);
}

/* Returns 0 if the attribute is not known. */
static uint32_t attribute_of(const struct cnrt_api *cnrt, uint32_t index, int attribute)
{
    int value = 0;

    return cnrt->cnrtDeviceGetAttribute(&value, attribute, (int)index) == CNRT_OK && value > 0
               ? (uint32_t)value
               : 0;
}

/* ---- identity ------------------------------------------------------------------------------- */

/* Returns the device's number in MLU_VISIBLE_DEVICES; if the variable is not set or has no number
   for the device, the device's index. */
static uint32_t number_of(const ds_accel_plugin_device_t *device)
{
    char name[64];
    uint64_t number = 0;

    return vendor_visible_name(device, "MLU_VISIBLE_DEVICES", name, sizeof(name)) == 0 &&
                   plugin_parse_u64(name, &number) == 0 && number < UINT32_MAX
               ? (uint32_t)number
               : device->index;
}

static void identify_pci(const struct cnrt_api *cnrt, uint32_t index,
                         struct ds_accel_device_identity *identity)
{
    int domain = 0;
    int bus = 0;
    int slot = 0;

    if (cnrt->cnrtDeviceGetAttribute(&domain, CNRT_ATTR_PCI_DOMAIN, (int)index) == CNRT_OK &&
        cnrt->cnrtDeviceGetAttribute(&bus, CNRT_ATTR_PCI_BUS, (int)index) == CNRT_OK &&
        cnrt->cnrtDeviceGetAttribute(&slot, CNRT_ATTR_PCI_DEVICE, (int)index) == CNRT_OK) {
        snprintf(identity->pci_address, sizeof(identity->pci_address), "%04x:%02x:%02x.0",
                 (unsigned)domain & 0xffffu, (unsigned)bus & 0xffu, (unsigned)slot & 0x1fu);
    }
}

/* Reads name, UUID and memory size from the third version of the properties: older versions lack
 * UUID and size. */
static void identify_properties(const struct cnrt_api *cnrt, uint32_t index,
                                struct ds_accel_device_identity *identity)
{
    struct cnrt_properties *properties = calloc(1, sizeof(*properties));
    uint32_t is_set = 0;

    if (properties != NULL && cnrt->cnrtGetDeviceProperties_V3 != NULL &&
        cnrt->cnrtGetDeviceProperties_V3(properties, (int)index) == CNRT_OK) {
        snprintf(identity->name, sizeof(identity->name), "%.127s", properties->name);
        identity->total_memory_bytes = properties->memory_bytes;
        for (size_t i = 0; i < sizeof(properties->uuid); i++) {
            is_set |= properties->uuid[i];
        }
        if (is_set != 0) {
            memcpy(identity->uuid, properties->uuid, sizeof(identity->uuid));
            identity->valid |= DS_ACCEL_IDENTITY_UUID;
        }
    }
    free(properties);
}

static void write_uuid(struct ds_accel_device_identity *identity)
{
    const uint8_t *bytes = identity->uuid;

    snprintf(identity->uuid_text, sizeof(identity->uuid_text),
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", bytes[0],
             bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8],
             bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]);
}

int32_t mlu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error)
{
    const struct mlu_runtime *runtime = MLU(device->instance);
    uint32_t major = attribute_of(&runtime->cnrt, device->index, CNRT_ATTR_COMPUTE_MAJOR);
    uint32_t megabytes = attribute_of(&runtime->cnrt, device->index, CNRT_ATTR_MEMORY_MB);
    int32_t card;

    (void)error;
    device->native_device = device->index;
    identify_properties(&runtime->cnrt, device->index, identity);
    identify_pci(&runtime->cnrt, device->index, identity);
    if (identity->total_memory_bytes == 0) {
        identity->total_memory_bytes = (uint64_t)megabytes << 20;
    }
    /*
     * vendor_index is the card's number in the machine. CNDev lists all cards, also hidden ones;
     * without CNDev, the number is the one in MLU_VISIBLE_DEVICES.
     */
    card = mlu_card_at(runtime, identity->pci_address);
    if (card < 0) {
        card = (int32_t)number_of(device);
    } else {
        snprintf(identity->uuid_text, sizeof(identity->uuid_text), "%s",
                 runtime->cards[card].uuid_text);
    }
    identity->vendor_index = (uint32_t)card;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    if (identity->uuid_text[0] == '\0' && (identity->valid & DS_ACCEL_IDENTITY_UUID) != 0) {
        write_uuid(identity);
    }
    if (major != 0) {
        snprintf(identity->architecture, sizeof(identity->architecture), "mtp_%u%u", major,
                 attribute_of(&runtime->cnrt, device->index, CNRT_ATTR_COMPUTE_MINOR));
    }
    snprintf(identity->node_path, sizeof(identity->node_path), "/dev/cambricon_dev%d", card);
    return DS_ACCEL_OK;
}

int mlu_visible_token(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                      size_t token_size)
{
    (void)which;
    return snprintf(token, token_size, "%u", device->identity.vendor_index) < (int)token_size ? 0
                                                                                              : -1;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void fill_info(ds_accel_plugin_device_t *device)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    struct ds_accel_device_info *info = &device->info;
    uint32_t index = device->index;

    snprintf(info->name, sizeof(info->name), "%s",
             device->identity.name[0] != '\0' ? device->identity.name : "MLU");
    info->compute_major = attribute_of(cnrt, index, CNRT_ATTR_COMPUTE_MAJOR);
    info->compute_minor = attribute_of(cnrt, index, CNRT_ATTR_COMPUTE_MINOR);
    info->compute_unit_count = attribute_of(cnrt, index, CNRT_ATTR_CLUSTERS) *
                               attribute_of(cnrt, index, CNRT_ATTR_CORES_PER_CLUSTER);
    info->max_core_clock_khz = attribute_of(cnrt, index, CNRT_ATTR_CLOCK_KHZ);
    info->memory_bus_bits = attribute_of(cnrt, index, CNRT_ATTR_BUS_BITS);
    info->l2_cache_bytes = attribute_of(cnrt, index, CNRT_ATTR_L2_BYTES);
}

int32_t mlu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    uint64_t saved = 0;
    size_t free_bytes = 0;
    size_t total = 0;
    int32_t status;

    (void)native_context; /* takes_native_context is 0, so there is none */
    status = mlu_enter(device, &saved, error);
    if (status != DS_ACCEL_OK) {
        return status;
    }
    status = MLU_CHECK(device, cnrt->cnrtMemGetInfo(&free_bytes, &total), error,
                       "cnrtMemGetInfo(device %u)", device->index);
    if (status == DS_ACCEL_OK) {
        device->info.total_memory_bytes = total;
        fill_info(device);
    }
    mlu_leave(device, saved);
    return status;
}

/*
 * Does not close the device's context: other code of the process uses the same context, and
 * cnrtDeviceReset() would destroy the objects of that code.
 */
void mlu_device_close(ds_accel_plugin_device_t *device)
{
    device->state = NULL;
}

int32_t mlu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return MLU_CHECK(device, MLU_CNRT(device)->cnrtSyncDevice(), error, "cnrtSyncDevice(device %u)",
                     device->index);
}

/* Writes the support of a data type that the device's attribute in CNRT reports. */
static int32_t asked(ds_accel_plugin_device_t *device, int attribute, uint32_t *support_out,
                     struct ds_accel_error *error)
{
    int value = 0;
    int32_t status = MLU_CHECK(
        device, MLU_CNRT(device)->cnrtDeviceGetAttribute(&value, attribute, (int)device->index),
        error, "cnrtDeviceGetAttribute(0x%x, device %u)", (unsigned)attribute, device->index);

    if (status == DS_ACCEL_OK) {
        *support_out = DS_ACCEL_DTYPE_STORES | (value > 0 ? DS_ACCEL_DTYPE_COMPUTES : 0);
    }
    return status;
}

int32_t mlu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT16:
        return asked(device, CNRT_ATTR_FP16, support_out, error);
    case DS_ACCEL_DTYPE_BFLOAT16:
        return asked(device, CNRT_ATTR_BF16, support_out, error);
    case DS_ACCEL_DTYPE_INT8:
        return asked(device, CNRT_ATTR_INT8, support_out, error);
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_INT16:
    case DS_ACCEL_DTYPE_INT32:
    case DS_ACCEL_DTYPE_INT64:
    case DS_ACCEL_DTYPE_BOOL:
        *support_out = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
        break;
    case DS_ACCEL_DTYPE_FLOAT64:
        *support_out = DS_ACCEL_DTYPE_STORES;
        break;
    default:
        *support_out = 0;
        break;
    }
    return DS_ACCEL_OK;
}

/* ---- peers: access is always enabled where it is possible ----------------------------------- */

int32_t mlu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error)
{
    const struct cnrt_api *cnrt = MLU_CNRT(device);
    unsigned int can = 0;
    int32_t status = DS_ACCEL_OK;

    if (cnrt->cnrtGetPeerAccessibility != NULL && cnrt->cnrtMemcpyPeerAsync != NULL) {
        status = MLU_CHECK(
            device, cnrt->cnrtGetPeerAccessibility(&can, (int)device->index, (int)peer->index),
            error, "cnrtGetPeerAccessibility(%u, %u)", device->index, peer->index);
    }
    if (status == DS_ACCEL_OK) {
        *can_out = can != 0;
    }
    return status;
}

int32_t mlu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error)
{
    uint32_t can = 0;
    int32_t status = mlu_peer_can_access(device, peer, &can, error);

    if (status == DS_ACCEL_OK && !can) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "peer_enable: device %u cannot address the memory of device %u",
                           device->index, peer->index);
    }
    return status;
}

int32_t mlu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                         struct ds_accel_error *error)
{
    (void)device;
    (void)peer;
    (void)error;
    return DS_ACCEL_OK;
}
