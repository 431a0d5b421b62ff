/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: identity, facts, the current device of a thread, peers. */
#include "cpu.h"

/* ---- open, close ---------------------------------------------------------------------------- */

int32_t cpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    struct cpu_device *state = calloc(1, sizeof(*state));

    (void)native_context;
    if (state != NULL) {
        state->cpu = cpu;
        state->index = device->index;
        state->node = cpu_machine_node(&cpu->machine, device->index);
    }
    if (state == NULL || cpu_stream_init(&state->default_stream, state) != 0) {
        free(state);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory for device %u",
                           device->index);
    }
    device->state = state;
    pthread_mutex_lock(&cpu->lock);
    cpu->devices[device->index] = state;
    pthread_mutex_unlock(&cpu->lock);
    return DS_ACCEL_OK;
}

void cpu_device_stop(ds_accel_plugin_device_t *device)
{
    struct cpu_device *state = cpu_device(device);

    if (state->default_stream.queue != NULL) {
        cpu_queue_close(state->default_stream.queue);
        state->default_stream.queue = NULL;
    }
    cpu_queues_end(state);
    state->is_stopped = 1;
}

void cpu_device_close(ds_accel_plugin_device_t *device)
{
    struct cpu_device *state = cpu_device(device);

    if (!state->is_stopped) { /* opening failed after device_open() */
        cpu_device_stop(device);
    }
    cpu_vmem_release(device);
    pthread_mutex_lock(&state->cpu->lock);
    state->cpu->devices[device->index] = NULL;
    pthread_mutex_unlock(&state->cpu->lock);
    free(state);
}

/* ---- facts ---------------------------------------------------------------------------------- */

int32_t cpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    const struct cpu_node *node = cpu_machine_node(&cpu->machine, device->index);

    (void)error;
    if (node != NULL) {
        identity->valid = DS_ACCEL_IDENTITY_NUMA_NODE;
        identity->numa_node = node->id;
    }
    /* With more devices than nodes, which LOCAL_SIZE can cause, several devices share a node, and
       the node's number does not identify the device. */
    if (node != NULL && cpu->machine.device_count <= cpu->machine.node_count) {
        identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
        identity->vendor_index = node->id;
    }
    identity->partition_kind = DS_ACCEL_PARTITION_NONE;
    identity->power_state = DS_ACCEL_POWER_ACTIVE;
    memcpy(identity->name, cpu_model_of(cpu)->name, sizeof(identity->name));
    return DS_ACCEL_OK;
}

int32_t cpu_device_info(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info,
                        struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    const struct cpu_node *node = cpu_device(device)->node;
    const uint32_t first_cpu = node == NULL ? 0 : node->first_cpu;
    struct ds_accel_memory_info memory;
    int32_t status = cpu_memory_size(cpu_device(device), &memory, error);

    if (status < 0) {
        return status;
    }
    memcpy(info->name, cpu_model_of(cpu)->name, sizeof(info->name));
    info->total_memory_bytes = memory.total_bytes;
    info->compute_unit_count = node == NULL ? cpu_online_count(cpu->host) : node->cpu_count;
    info->warp_size = 1;
    info->max_core_clock_khz = cpu_clock_khz(cpu->host, first_cpu);
    info->l2_cache_bytes = cpu_l2_bytes(cpu->host, first_cpu);
    return DS_ACCEL_OK;
}

/*
 * As in DeepSpeed, computing with bfloat16 is always supported: every CPU library converts it to
 * float32 if the CPU has no bfloat16 instructions. No library does this for float16, and the f16c
 * instructions only convert float16.
 */
int32_t cpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    const uint32_t full = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    const struct cpu_model *model = cpu_model_of(cpu_runtime(device->instance));

    (void)error;
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
 * Return the current device of a thread that never set one: the launcher's LOCAL_RANK modulo the
 * device count, or 0. LOCAL_RANK is read at each call, since a program may set it after the library
 * was initialised.
 */
static uint32_t rank_device(struct cpu_runtime *cpu)
{
    const char *text = getenv("LOCAL_RANK");
    uint64_t rank;

    if (text == NULL) {
        return 0;
    }
    if (plugin_parse_u64(text, &rank) != 0) {
        if (atomic_exchange(&cpu->rank_warned, 1) == 0) {
            vendor_log(cpu->host, DS_ACCEL_LOG_WARN,
                       "LOCAL_RANK=\"%s\" is not a whole number; device 0 is the current one",
                       text);
        }
        return 0;
    }
    return (uint32_t)(rank % cpu->machine.device_count);
}

int32_t cpu_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                        struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(instance);
    const uintptr_t chosen = (uintptr_t)pthread_getspecific(cpu->current_key) & ~CPU_CURRENT_WORKER;

    (void)error;
    *index_out = chosen != 0 ? (uint32_t)(chosen - 1) : rank_device(cpu);
    return DS_ACCEL_OK;
}

int32_t cpu_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    const uintptr_t worker = (uintptr_t)pthread_getspecific(cpu->current_key) & CPU_CURRENT_WORKER;
    const uintptr_t chosen = worker | (device->index + 1);

    if (pthread_setspecific(cpu->current_key, (const void *)chosen) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "device_set_current: no memory for the thread's device");
    }
    return DS_ACCEL_OK;
}

int32_t cpu_device_wait(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                        struct ds_accel_error *error)
{
    const struct cpu_device *state = cpu_device(device);

    return state->cpu->is_async
               ? cpu_queues_wait(state->cpu, state, timeout_ns, "device_synchronize", error)
               : DS_ACCEL_OK;
}

/* ---- peers: one address space, so every device reaches the memory of every other ------------ */

int32_t cpu_peer_can_access(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            uint32_t *can_out, struct ds_accel_error *error)
{
    (void)device;
    (void)peer;
    (void)error;
    *can_out = 1;
    return DS_ACCEL_OK;
}

int32_t cpu_peer_change(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                        struct ds_accel_error *error)
{
    (void)device;
    (void)peer;
    (void)error;
    return DS_ACCEL_OK;
}

int32_t cpu_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                  struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                  struct ds_accel_error *error)
{
    (void)instance;
    (void)device_index;
    (void)links;
    (void)capacity;
    (void)error;
    *count_out = 0;
    return DS_ACCEL_OK;
}
