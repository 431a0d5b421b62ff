/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: opening and closing, facts, the current device, health, peers and data types. */
#include "mock.h"

#define PCI_DEVICE_COUNT 16u
#define COMPUTE_UNIT_COUNT 16u

static int32_t mock_device_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                 struct ds_accel_error *error)
{
    int32_t status = mock_enter(instance, "device_count", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL) {
        return mock_null(error, "device_count", "count_out");
    }
    *count_out = (uint32_t)instance->options.device_count;
    return DS_ACCEL_OK;
}

/* Makes a UUID: "MOCK", zeros, and the index in the last four bytes. */
static void make_uuid(uint32_t device_index, struct ds_accel_device_identity *identity)
{
    memcpy(identity->uuid, "MOCK", 4);
    for (size_t i = 0; i < 4; i++) {
        identity->uuid[15 - i] = (uint8_t)(device_index >> (8 * i));
    }
    identity->valid |= DS_ACCEL_IDENTITY_UUID;
    snprintf(identity->uuid_text, sizeof(identity->uuid_text), "MOCK-00000000-0000-0000-0000-%012x",
             device_index);
}

static int32_t mock_device_identity(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                    struct ds_accel_device_identity *identity_out,
                                    struct ds_accel_error *error)
{
    struct ds_accel_device_identity identity;
    uint32_t number;
    int32_t status = mock_enter_index(instance, device_index, "device_identity", error);

    if (status < 0) {
        return status;
    }
    if (identity_out == NULL) {
        return mock_null(error, "device_identity", "identity_out");
    }
    number = instance->options.visible[device_index];
    memset(&identity, 0, sizeof(identity));
    identity.device_index = device_index;
    identity.valid = DS_ACCEL_IDENTITY_VENDOR_INDEX;
    identity.vendor_index = number;
    identity.total_memory_bytes = instance->options.memory_bytes;
    identity.partition_kind = DS_ACCEL_PARTITION_NONE;
    identity.power_state = DS_ACCEL_POWER_ACTIVE;
    make_uuid(number, &identity);
    if (number < PCI_DEVICE_COUNT) {
        snprintf(identity.pci_address, sizeof(identity.pci_address), "0000:e%x:00.0", number);
    }
    snprintf(identity.name, sizeof(identity.name), "%s", instance->options.device_name);
    ds_accel_write(identity_out, &identity, sizeof(identity));
    return DS_ACCEL_OK;
}

/*
 * Resets the device's state, when a device without openings is opened. Caller holds instance->lock.
 */
static int start_device(ds_accel_plugin_device_t *device)
{
    size_t guarded = offsetof(struct ds_accel_plugin_device, open_count);

    /* Zero the members from open_count on; the others never change, and are read unlocked. */
    memset((char *)device + guarded, 0, sizeof(*device) - guarded);
    device->default_stream = mock_stream_make(device, NULL);
    if (device->default_stream == NULL) {
        return -1;
    }
    device->default_stream->own.is_default = 1;
    return 0;
}

static int32_t mock_device_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device;
    int result = 0;
    int32_t status = mock_enter_index(instance, device_index, "device_open", error);

    if (status < 0) {
        return status;
    }
    if (device_out == NULL) {
        return mock_null(error, "device_open", "device_out");
    }
    device = &instance->devices[device_index];
    pthread_mutex_lock(&instance->lock);
    if (device->open_count == 0) {
        result = start_device(device);
    }
    if (result == 0) {
        device->open_count++;
    }
    pthread_mutex_unlock(&instance->lock);
    if (result != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory");
    }
    *device_out = device;
    return DS_ACCEL_OK;
}

static void mock_device_close(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_stream_t *default_stream = NULL;
    uint64_t left_bytes = 0;
    size_t left_count = 0;
    uint32_t was_lost = 0;

    if (device == NULL) {
        return;
    }
    pthread_mutex_lock(&device->instance->lock);
    if (device->open_count > 0) {
        device->open_count--;
        if (device->open_count == 0) {
            default_stream = device->default_stream;
            device->default_stream = NULL;
            left_bytes = device->allocated_bytes;
            mock_vmem_release(device);
            left_count = mock_memory_release(device);
            was_lost = device->lost;
            device->lost = 0;
        }
    }
    pthread_mutex_unlock(&device->instance->lock);
    mock_stream_destroy(default_stream);
    /* On a lost device mem_free fails, so memory that is left is not the program's defect. */
    if (left_count > 0 && !was_lost) {
        mock_log(device->instance->host, DS_ACCEL_LOG_WARN,
                 "device %u closed with %zu allocations left, %llu bytes of the device",
                 device->index, left_count, (unsigned long long)left_bytes);
    }
}

static int32_t mock_device_info(ds_accel_plugin_device_t *device,
                                struct ds_accel_device_info *info_out, struct ds_accel_error *error)
{
    struct ds_accel_device_info info;
    int32_t status = mock_enter_device(device, "device_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return mock_null(error, "device_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    info.device_index = device->index;
    snprintf(info.name, sizeof(info.name), "%s", device->instance->options.device_name);
    info.total_memory_bytes = device->instance->options.memory_bytes;
    info.max_allocation_bytes = device->instance->options.max_allocation_bytes;
    info.compute_major = 1;
    info.compute_minor = 0;
    info.compute_unit_count = COMPUTE_UNIT_COUNT;
    info.warp_size = 32;
    info.max_threads_per_block = 1024;
    info.max_core_clock_khz = 1500000;
    info.memory_bus_bits = 256;
    info.l2_cache_bytes = UINT64_C(4) << 20;
    info.allocation_align_bytes = MOCK_ALIGN_BYTES;
    info.flags = MOCK_FLAGS | (device->instance->options.ipc ? MOCK_FLAGS_IPC : 0);
    info.flags_known = DS_ACCEL_FLAGS_ALL;
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

/* A thread that never chose a device has device 0, as with most vendors. */
static int32_t mock_device_get_current(ds_accel_plugin_instance_t *instance,
                                       uint32_t *device_index_out, struct ds_accel_error *error)
{
    uintptr_t current;
    int32_t status = mock_enter(instance, "device_get_current", error);

    if (status < 0) {
        return status;
    }
    if (device_index_out == NULL) {
        return mock_null(error, "device_get_current", "device_index_out");
    }
    current = (uintptr_t)pthread_getspecific(instance->current_key);
    *device_index_out = current > 0 ? (uint32_t)(current - 1) : 0;
    return DS_ACCEL_OK;
}

static int32_t mock_device_set_current(ds_accel_plugin_device_t *device,
                                       struct ds_accel_error *error)
{
    const void *value;
    int32_t status = mock_enter_device(device, "device_set_current", error);

    if (status < 0) {
        return status;
    }
    value = (const void *)((uintptr_t)device->index + 1);
    if (pthread_setspecific(device->instance->current_key, value) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_set_current: no memory");
    }
    return DS_ACCEL_OK;
}

static int32_t mock_device_synchronize(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                       struct ds_accel_error *error)
{
    uint64_t done_ns;
    int32_t status = mock_enter_device(device, "device_synchronize", error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    done_ns = device->done_ns;
    pthread_mutex_unlock(&device->instance->lock);
    return mock_wait_for(device->instance, "device_synchronize", done_ns, timeout_ns, error);
}

static int32_t mock_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return mock_enter_device(device, "device_health", error);
}

/* ---- peers, which share one address space and are always enabled ---------------------------- */

static int32_t mock_peer_can_access(ds_accel_plugin_device_t *device,
                                    ds_accel_plugin_device_t *peer, uint32_t *can_out,
                                    struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "peer_can_access", error);

    if (status < 0) {
        return status;
    }
    if (peer == NULL || can_out == NULL) {
        return mock_null(error, "peer_can_access", "peer or can_out");
    }
    *can_out = peer->instance == device->instance;
    return DS_ACCEL_OK;
}

static int32_t mock_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "peer_enable", error);

    return status < 0 ? status : mock_check_peer(device, peer, "peer_enable", error);
}

static int32_t mock_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                 struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "peer_disable", error);

    return status < 0 ? status : mock_check_peer(device, peer, "peer_disable", error);
}

/* ---- data types ----------------------------------------------------------------------------- */

static uint32_t support_of(const struct mock_options *options, uint32_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT16:
        return DS_ACCEL_DTYPE_STORES | (options->fp16 ? DS_ACCEL_DTYPE_COMPUTES : 0);
    case DS_ACCEL_DTYPE_BFLOAT16:
        return DS_ACCEL_DTYPE_STORES | (options->bf16 ? DS_ACCEL_DTYPE_COMPUTES : 0);
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
        return DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_EMULATED;
#ifdef DS_ACCEL_DTYPE_COMPLEX32 /* since version 1.1 of the header */
    case DS_ACCEL_DTYPE_COMPLEX32:
    case DS_ACCEL_DTYPE_COMPLEX64:
    case DS_ACCEL_DTYPE_COMPLEX128:
        return DS_ACCEL_DTYPE_STORES;
#endif
    default:
        return dtype >= DS_ACCEL_DTYPE_FLOAT32 && dtype <= DS_ACCEL_DTYPE_BOOL
                   ? DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES
                   : 0;
    }
}

static int32_t mock_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                                  uint32_t *support_out, struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "dtype_support", error);

    if (status < 0) {
        return status;
    }
    if (support_out == NULL) {
        return mock_null(error, "dtype_support", "support_out");
    }
    *support_out = support_of(&device->instance->options, dtype);
    return DS_ACCEL_OK;
}

void mock_device_fill(struct ds_accel_plugin *table)
{
    table->device_count = mock_device_count;
    table->device_identity = mock_device_identity;
    table->device_open = mock_device_open;
    table->device_close = mock_device_close;
    table->device_info = mock_device_info;
    table->device_get_current = mock_device_get_current;
    table->device_set_current = mock_device_set_current;
    table->device_synchronize = mock_device_synchronize;
    table->device_health = mock_device_health;
    table->peer_can_access = mock_peer_can_access;
    table->peer_enable = mock_peer_enable;
    table->peer_disable = mock_peer_disable;
    table->dtype_support = mock_dtype_support;
}
