/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: count, identity, capabilities, and the current device of a thread. */
#include "cpu.h"

static int32_t check_index(const ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           const char *call, struct ds_accel_error *error)
{
    if (device_index >= instance->machine.device_count) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: no device %u; there are %u", call,
                           device_index, instance->machine.device_count);
    }
    return DS_ACCEL_OK;
}

/* ---- count, open, close --------------------------------------------------------------------- */

static int32_t cpu_device_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                struct ds_accel_error *error)
{
    if (instance == NULL || count_out == NULL) {
        return cpu_null(error, "device_count: instance or count_out");
    }
    *count_out = instance->machine.device_count;
    return DS_ACCEL_OK;
}

/* instance->lock is held. */
static ds_accel_plugin_device_t *create_device(ds_accel_plugin_instance_t *instance,
                                               uint32_t device_index)
{
    ds_accel_plugin_device_t *device = calloc(1, sizeof(*device));

    if (device != NULL) {
        device->instance = instance;
        device->index = device_index;
        device->node = cpu_machine_node(&instance->machine, device_index);
        device->default_stream.device = device;
    }
    if (device != NULL && instance->is_async) {
        device->default_stream.queue = cpu_queue_create(device);
        if (device->default_stream.queue == NULL) {
            free(device);
            return NULL;
        }
        cpu_queue_enter(device->default_stream.queue);
    }
    return device;
}

/* A device is opened once and counted: equal handles are the same pointer. */
static int32_t cpu_device_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                               ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device;
    int32_t status;

    if (instance == NULL || device_out == NULL) {
        return cpu_null(error, "device_open: instance or device_out");
    }
    status = check_index(instance, device_index, "device_open", error);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&instance->lock);
    if (instance->devices[device_index] == NULL) {
        instance->devices[device_index] = create_device(instance, device_index);
    }
    device = instance->devices[device_index];
    if (device != NULL) {
        device->open_count++;
    }
    pthread_mutex_unlock(&instance->lock);
    if (device == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory for device %u",
                           device_index);
    }
    *device_out = device;
    return DS_ACCEL_OK;
}

void cpu_device_destroy(ds_accel_plugin_device_t *device)
{
    if (device->default_stream.queue != NULL) {
        cpu_queue_close(device->default_stream.queue);
    }
    cpu_queues_end(device);
    cpu_vmem_release(device);
    cpu_blocks_release(device);
    free(device);
}

static void cpu_device_close(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_instance_t *instance;
    int is_last;

    if (device == NULL) {
        return;
    }
    instance = device->instance;
    pthread_mutex_lock(&instance->lock);
    is_last = --device->open_count == 0;
    if (is_last) {
        instance->devices[device->index] = NULL;
    }
    pthread_mutex_unlock(&instance->lock);
    if (is_last) {
        cpu_device_destroy(device);
    }
}

/* ---- facts ---------------------------------------------------------------------------------- */

static int32_t cpu_device_identity(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                   struct ds_accel_device_identity *identity_out,
                                   struct ds_accel_error *error)
{
    struct ds_accel_device_identity identity;
    const struct cpu_node *node;
    int32_t status;

    if (instance == NULL || identity_out == NULL) {
        return cpu_null(error, "device_identity: instance or identity_out");
    }
    status = check_index(instance, device_index, "device_identity", error);
    if (status < 0) {
        return status;
    }
    node = cpu_machine_node(&instance->machine, device_index);
    memset(&identity, 0, sizeof(identity));
    identity.device_index = device_index;
    if (node != NULL) {
        identity.valid = DS_ACCEL_IDENTITY_NUMA_NODE;
        identity.numa_node = node->id;
    }
    /* LOCAL_SIZE can make more devices than nodes: then a device's index is not its node's
       number. */
    if (node != NULL && instance->machine.device_count <= instance->machine.node_count) {
        identity.valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
        identity.vendor_index = node->id;
    }
    identity.partition_kind = DS_ACCEL_PARTITION_NONE;
    identity.power_state = DS_ACCEL_POWER_ACTIVE;
    memcpy(identity.name, cpu_model_of(instance)->name, sizeof(identity.name));
    ds_accel_write(identity_out, &identity, sizeof(identity));
    return DS_ACCEL_OK;
}

static int32_t cpu_device_info(ds_accel_plugin_device_t *device,
                               struct ds_accel_device_info *info_out, struct ds_accel_error *error)
{
    const struct ds_accel_host *host;
    struct ds_accel_device_info info;
    struct ds_accel_memory_info memory;
    uint32_t first_cpu;
    int32_t status;

    if (device == NULL || info_out == NULL) {
        return cpu_null(error, "device_info: device or info_out");
    }
    status = cpu_memory_size(device, &memory, error);
    if (status < 0) {
        return status;
    }
    host = device->instance->host;
    first_cpu = device->node == NULL ? 0 : device->node->first_cpu;
    memset(&info, 0, sizeof(info));
    info.device_index = device->index;
    memcpy(info.name, cpu_model_of(device->instance)->name, sizeof(info.name));
    info.total_memory_bytes = memory.total_bytes;
    info.compute_unit_count = device->node == NULL ? cpu_online_count(host)
                                                   : device->node->cpu_count;
    info.warp_size = 1;
    info.max_core_clock_khz = cpu_clock_khz(host, first_cpu);
    info.l2_cache_bytes = cpu_l2_bytes(host, first_cpu);
    info.allocation_align_bytes = CPU_ALIGN_BYTES;
    info.flags = cpu_flags(device->instance);
    info.flags_known = DS_ACCEL_FLAGS_ALL;
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

/*
 * bfloat16 is always reported as computable, as in DeepSpeed: every CPU library widens it to
 * float32 if the CPU lacks it. No library does so for float16, which f16c only converts.
 */
static int32_t cpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                                 uint32_t *support_out, struct ds_accel_error *error)
{
    const uint32_t full = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    const struct cpu_model *model;

    if (device == NULL || support_out == NULL) {
        return cpu_null(error, "dtype_support: device or support_out");
    }
    model = cpu_model_of(device->instance);
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
    case DS_ACCEL_DTYPE_FLOAT64:
    case DS_ACCEL_DTYPE_INT8:
    case DS_ACCEL_DTYPE_UINT8:
    case DS_ACCEL_DTYPE_INT16:
    case DS_ACCEL_DTYPE_INT32:
    case DS_ACCEL_DTYPE_INT64:
    case DS_ACCEL_DTYPE_BOOL:
        *support_out = full;
        break;
    case DS_ACCEL_DTYPE_BFLOAT16:
        *support_out = model->has_bfloat16 ? full : full | DS_ACCEL_DTYPE_EMULATED;
        break;
    case DS_ACCEL_DTYPE_FLOAT16:
        *support_out = model->has_float16 ? full : DS_ACCEL_DTYPE_STORES;
        break;
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FN:
    case DS_ACCEL_DTYPE_FLOAT8_E4M3FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ:
    case DS_ACCEL_DTYPE_FLOAT8_E5M2:
#ifdef DS_ACCEL_DTYPE_COMPLEX32 /* a header of 1.1 */
    case DS_ACCEL_DTYPE_COMPLEX32:
    case DS_ACCEL_DTYPE_COMPLEX64:
    case DS_ACCEL_DTYPE_COMPLEX128:
#endif
        *support_out = DS_ACCEL_DTYPE_STORES;
        break;
    default:
        *support_out = 0;
        break;
    }
    return DS_ACCEL_OK;
}

/* ---- the current device --------------------------------------------------------------------- */

/*
 * The device of a thread that never chose one: the launcher's LOCAL_RANK decides. It is read when
 * needed, since a program may set it after the library was initialised.
 */
static uint32_t rank_device(ds_accel_plugin_instance_t *instance)
{
    const char *text = getenv("LOCAL_RANK");
    uint64_t rank;

    if (text == NULL) {
        return 0;
    }
    if (plugin_parse_u64(text, &rank) != 0) {
        if (atomic_exchange(&instance->rank_warned, 1) == 0) {
            cpu_log(instance->host, DS_ACCEL_LOG_WARN,
                    "LOCAL_RANK=\"%s\" is not a whole number; device 0 is the current one", text);
        }
        return 0;
    }
    return (uint32_t)(rank % instance->machine.device_count);
}

static int32_t cpu_device_get_current(ds_accel_plugin_instance_t *instance,
                                      uint32_t *device_index_out, struct ds_accel_error *error)
{
    uintptr_t chosen;

    if (instance == NULL || device_index_out == NULL) {
        return cpu_null(error, "device_get_current: instance or device_index_out");
    }
    chosen = (uintptr_t)pthread_getspecific(instance->current_key) & ~CPU_CURRENT_WORKER;
    *device_index_out = chosen != 0 ? (uint32_t)(chosen - 1) : rank_device(instance);
    return DS_ACCEL_OK;
}

static int32_t cpu_device_set_current(ds_accel_plugin_device_t *device,
                                      struct ds_accel_error *error)
{
    const void *chosen;

    if (device == NULL) {
        return cpu_null(error, "device_set_current: device");
    }
    chosen = (const void *)((uintptr_t)device->index + 1);
    if (pthread_setspecific(device->instance->current_key, chosen) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "device_set_current: no memory for the thread's device");
    }
    return DS_ACCEL_OK;
}

static int32_t cpu_device_synchronize(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    if (device == NULL) {
        return cpu_null(error, "device_synchronize: device");
    }
    return cpu_queues_wait(device->instance, device, timeout_ns, "device_synchronize", error);
}

static int32_t cpu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return device == NULL ? cpu_null(error, "device_health: device") : DS_ACCEL_OK;
}

/* ---- peers: one address space, so every device reaches the memory of every other ------------ */

static int32_t cpu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                   uint32_t *can_out, struct ds_accel_error *error)
{
    if (device == NULL || peer == NULL || can_out == NULL) {
        return cpu_null(error, "peer_can_access: device, peer or can_out");
    }
    *can_out = device->instance == peer->instance;
    return DS_ACCEL_OK;
}

static int32_t check_peers(const ds_accel_plugin_device_t *device,
                           const ds_accel_plugin_device_t *peer, const char *call,
                           struct ds_accel_error *error)
{
    if (device == NULL || peer == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: device or peer is NULL", call);
    }
    if (device->instance != peer->instance) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: device %u and peer %u belong to different instances", call,
                           device->index, peer->index);
    }
    return DS_ACCEL_OK;
}

static int32_t cpu_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                               struct ds_accel_error *error)
{
    return check_peers(device, peer, "peer_enable", error);
}

static int32_t cpu_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                struct ds_accel_error *error)
{
    return check_peers(device, peer, "peer_disable", error);
}

static int32_t cpu_links_get(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                             struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                             uint32_t *count_out, struct ds_accel_error *error)
{
    int32_t status;

    (void)links;
    (void)stride_bytes;
    (void)capacity;
    if (instance == NULL || count_out == NULL) {
        return cpu_null(error, "links_get: instance or count_out");
    }
    status = check_index(instance, device_index, "links_get", error);
    if (status == DS_ACCEL_OK) {
        *count_out = 0;
    }
    return status;
}

void cpu_device_fill(struct ds_accel_plugin *table)
{
    table->device_count = cpu_device_count;
    table->device_identity = cpu_device_identity;
    table->device_open = cpu_device_open;
    table->device_close = cpu_device_close;
    table->device_info = cpu_device_info;
    table->device_get_current = cpu_device_get_current;
    table->device_set_current = cpu_device_set_current;
    table->device_synchronize = cpu_device_synchronize;
    table->device_health = cpu_device_health;
    table->dtype_support = cpu_dtype_support;
    table->peer_can_access = cpu_peer_can_access;
    table->peer_enable = cpu_peer_enable;
    table->peer_disable = cpu_peer_disable;
    table->links_get = cpu_links_get;
}
