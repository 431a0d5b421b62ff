/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Total and used memory.
 *
 * On a CPU a program allocates most memory without this plugin. As in DeepSpeed, the allocated and
 * the reserved bytes are therefore both the size of the process's resident set. The kernel stores
 * the peak of that size since the process started. Resetting the kernel's peak
 * (/proc/self/clear_refs) would change a value that the program itself may read, so a reset only
 * stores the kernel's current peak:
 *
 *  - if the kernel's peak has grown since the reset, it is reported;
 *  - otherwise the peak since the reset is not known, and the largest resident set that a query has
 *    read since the reset is reported as an estimate.
 */
#include "cpu.h"

/* Return the smaller of two sizes, where 0 means unknown. */
static uint64_t smaller_known(uint64_t first, uint64_t second)
{
    if (first == 0 || second == 0) {
        return first == 0 ? second : first;
    }
    return first < second ? first : second;
}

/*
 * With several nodes, the total is the smaller of the node's and the machine's memory. With one
 * node, only the machine's memory is used, which includes the limits of a container.
 */
int32_t cpu_memory_size(const struct cpu_device *device, struct ds_accel_memory_info *info_out,
                        struct ds_accel_error *error)
{
    const struct cpu_machine *machine = &device->cpu->machine;
    struct ds_accel_host_memory memory;
    uint64_t node_total = 0;
    uint64_t node_available = 0;
    int32_t status;

    memset(&memory, 0, sizeof(memory));
    memory.struct_size = sizeof(memory);
    status = machine->topology->memory_get(machine->host, &memory);
    if (status < 0) {
        return plugin_fail(error, status, "the host can't tell the machine's memory (status %d)",
                           status);
    }
    memset(info_out, 0, sizeof(*info_out));
    info_out->valid = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE | DS_ACCEL_MEMORY_PROCESS;
    info_out->total_bytes = memory.total_bytes;
    info_out->available_bytes = memory.available_bytes;
    info_out->limit_bytes = memory.limit_bytes;
    memcpy(info_out->limit_source, memory.limit_source, sizeof(info_out->limit_source));
    if (machine->node_count > 1) {
        cpu_node_memory(machine, device->node, &node_total, &node_available);
    }
    /* If the node's total is known, 0 available bytes are a valid value. */
    if (node_total != 0) {
        info_out->total_bytes = smaller_known(node_total, memory.total_bytes);
        if (node_available < memory.available_bytes) {
            info_out->available_bytes = node_available;
        }
    }
    if (info_out->available_bytes > info_out->total_bytes) {
        info_out->available_bytes = info_out->total_bytes;
    }
    return DS_ACCEL_OK;
}

/* ---- the resident set and its peaks --------------------------------------------------------- */

static void note_sample(struct cpu_peak *peak, const struct cpu_resident *resident)
{
    if (peak->sampled_bytes < resident->now_bytes) {
        peak->sampled_bytes = resident->now_bytes;
    }
}

static void reset_peak(struct cpu_peak *peak, const struct cpu_resident *resident)
{
    peak->was_reset = 1;
    peak->process_peak_at_reset_bytes = resident->peak_bytes;
    peak->sampled_bytes = resident->now_bytes;
}

static uint64_t peak_bytes(const struct cpu_peak *peak, const struct cpu_resident *resident)
{
    if (peak->was_reset && resident->peak_bytes <= peak->process_peak_at_reset_bytes) {
        return peak->sampled_bytes;
    }
    return resident->peak_bytes;
}

/* Read the resident set for a query, and update the samples. On success the call returns with
   cpu->lock held, which the caller unlocks. */
static int32_t sample_and_lock(struct cpu_device *device, struct cpu_resident *resident_out,
                               struct ds_accel_error *error)
{
    int32_t status = cpu_resident_read(device->cpu->host, resident_out, error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->cpu->lock);
    note_sample(&device->allocated_peak, resident_out);
    note_sample(&device->reserved_peak, resident_out);
    return DS_ACCEL_OK;
}

int32_t cpu_usage_info(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info,
                       struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_resident resident;
    int32_t status = cpu_memory_size(state, info, error);

    if (status < 0) {
        return status;
    }
    if (sample_and_lock(state, &resident, error) == DS_ACCEL_OK) {
        pthread_mutex_unlock(&state->cpu->lock);
        info->process_bytes = resident.now_bytes;
    } else {
        /* A recorded machine has no files of this process; the machine's values are valid. */
        info->valid &= ~DS_ACCEL_MEMORY_PROCESS;
    }
    return DS_ACCEL_OK;
}

int32_t cpu_usage_stats(ds_accel_plugin_device_t *device, struct ds_accel_memory_stats *stats,
                        struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_resident resident;
    int32_t status = sample_and_lock(state, &resident, error);

    if (status < 0) {
        return status;
    }
    stats->valid = DS_ACCEL_STATS_ALLOCATED | DS_ACCEL_STATS_RESERVED | DS_ACCEL_STATS_COUNTS;
    stats->allocated_bytes = resident.now_bytes;
    stats->allocated_peak_bytes = peak_bytes(&state->allocated_peak, &resident);
    stats->reserved_bytes = resident.now_bytes;
    stats->reserved_peak_bytes = peak_bytes(&state->reserved_peak, &resident);
    pthread_mutex_unlock(&state->cpu->lock);
    return DS_ACCEL_OK;
}

int32_t cpu_usage_reset_peaks(ds_accel_plugin_device_t *device, uint32_t which,
                              struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_resident resident;
    int32_t status = sample_and_lock(state, &resident, error);

    if (status < 0) {
        return status;
    }
    if ((which & DS_ACCEL_PEAK_ALLOCATED) != 0) {
        reset_peak(&state->allocated_peak, &resident);
    }
    if ((which & DS_ACCEL_PEAK_RESERVED) != 0) {
        reset_peak(&state->reserved_peak, &resident);
    }
    pthread_mutex_unlock(&state->cpu->lock);
    return DS_ACCEL_OK;
}

/* There is no cache to trim: mem_free() returns memory to the C library or the kernel at once. */
int32_t cpu_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                 struct ds_accel_error *error)
{
    (void)device;
    (void)keep_bytes;
    (void)error;
    return DS_ACCEL_OK;
}
