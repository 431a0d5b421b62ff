/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Total and used memory.
 *
 * On a CPU a program allocates mostly without this plugin, so that allocated and reserved mean the
 * process's resident set here (DeepSpeed's rule). The kernel keeps its peak since the process
 * began. Resetting that peak (/proc/self/clear_refs) would change values that the program may read
 * itself, so a reset only stores the kernel's peak:
 *
 *  - if the kernel's peak has grown since the reset, it is the peak to report;
 *  - if not, the older peak hides the true one, and the largest resident set that any query has
 * seen since the reset is the best estimate.
 */
#include "cpu.h"

static uint64_t smaller_known(uint64_t first, uint64_t second)
{
    if (first == 0 || second == 0) {
        return first == 0 ? second : first;
    }
    return first < second ? first : second;
}

/*
 * A node's own memory is used only with several nodes: with one node the machine's memory is used,
 * to which the limits of a container apply.
 */
int32_t cpu_memory_size(const ds_accel_plugin_device_t *device,
                        struct ds_accel_memory_info *info_out, struct ds_accel_error *error)
{
    const struct cpu_machine *machine = &device->instance->machine;
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
    /* A node whose total is known may have no memory left. */
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

/* Read the resident set for a query; the device's lock is taken, and released by the caller. */
static int32_t sample_and_lock(ds_accel_plugin_device_t *device, struct cpu_resident *resident_out,
                               struct ds_accel_error *error)
{
    int32_t status = cpu_resident_read(device->instance->host, resident_out, error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    note_sample(&device->allocated_peak, resident_out);
    note_sample(&device->reserved_peak, resident_out);
    return DS_ACCEL_OK;
}

static int32_t cpu_mem_info(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info_out,
                            struct ds_accel_error *error)
{
    struct ds_accel_memory_info info = {0};
    struct cpu_resident resident;
    uint64_t own_limit;
    uint64_t own_left;
    int32_t status;

    if (device == NULL || info_out == NULL) {
        return cpu_null(error, "mem_info: device or info_out");
    }
    status = cpu_memory_size(device, &info, error);
    if (status < 0) {
        return status;
    }
    status = sample_and_lock(device, &resident, error);
    if (status < 0) {
        /* A recorded machine has no process of ours: the machine's figures are still valid. */
        memset(&resident, 0, sizeof(resident));
        info.valid &= ~DS_ACCEL_MEMORY_PROCESS;
        pthread_mutex_lock(&device->instance->lock);
    }
    own_limit = device->limit_bytes;
    own_left = own_limit > device->live_bytes ? own_limit - device->live_bytes : 0;
    pthread_mutex_unlock(&device->instance->lock);
    if (own_limit != 0 && own_left < info.available_bytes) {
        info.available_bytes = own_left;
    }
    info.process_bytes = resident.now_bytes;
    if (own_limit != 0 && (info.limit_bytes == 0 || own_limit < info.limit_bytes)) {
        info.limit_bytes = own_limit;
        snprintf(info.limit_source, sizeof(info.limit_source), "mem_set_limit()");
    }
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static int32_t cpu_mem_stats(ds_accel_plugin_device_t *device,
                             struct ds_accel_memory_stats *stats_out, struct ds_accel_error *error)
{
    struct ds_accel_memory_stats stats;
    struct cpu_resident resident;
    int32_t status;

    if (device == NULL || stats_out == NULL) {
        return cpu_null(error, "mem_stats: device or stats_out");
    }
    status = sample_and_lock(device, &resident, error);
    if (status < 0) {
        return status;
    }
    memset(&stats, 0, sizeof(stats));
    stats.valid = DS_ACCEL_STATS_ALLOCATED | DS_ACCEL_STATS_RESERVED | DS_ACCEL_STATS_COUNTS;
    stats.allocated_bytes = resident.now_bytes;
    stats.allocated_peak_bytes = peak_bytes(&device->allocated_peak, &resident);
    stats.reserved_bytes = resident.now_bytes;
    stats.reserved_peak_bytes = peak_bytes(&device->reserved_peak, &resident);
    stats.alloc_count = device->alloc_count;
    stats.free_count = device->free_count;
    stats.out_of_memory_count = device->out_of_memory_count;
    pthread_mutex_unlock(&device->instance->lock);
    ds_accel_write(stats_out, &stats, sizeof(stats));
    return DS_ACCEL_OK;
}

static int32_t cpu_mem_reset_peaks(ds_accel_plugin_device_t *device, uint32_t which,
                                   struct ds_accel_error *error)
{
    struct cpu_resident resident;
    int32_t status;

    if (device == NULL) {
        return cpu_null(error, "mem_reset_peaks: device");
    }
    if ((which & ~(DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_reset_peaks: no peak is named 0x%x",
                           which);
    }
    status = sample_and_lock(device, &resident, error);
    if (status < 0) {
        return status;
    }
    if ((which & DS_ACCEL_PEAK_ALLOCATED) != 0) {
        reset_peak(&device->allocated_peak, &resident);
    }
    if ((which & DS_ACCEL_PEAK_RESERVED) != 0) {
        reset_peak(&device->reserved_peak, &resident);
    }
    pthread_mutex_unlock(&device->instance->lock);
    return DS_ACCEL_OK;
}

/* ---- the limit and the cache ---------------------------------------------------------------- */

/* Of live mem_alloc() bytes; pinned memory has the kernel's limit instead (RLIMIT_MEMLOCK). */
static int32_t cpu_mem_set_limit(ds_accel_plugin_device_t *device, uint64_t limit_bytes,
                                 struct ds_accel_error *error)
{
    if (device == NULL) {
        return cpu_null(error, "mem_set_limit: device");
    }
    pthread_mutex_lock(&device->instance->lock);
    device->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&device->instance->lock);
    return DS_ACCEL_OK;
}

/* There is no cache: mem_free() releases at once. */
static int32_t cpu_mem_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                            struct ds_accel_error *error)
{
    (void)keep_bytes;
    return device == NULL ? cpu_null(error, "mem_trim: device") : DS_ACCEL_OK;
}

void cpu_usage_fill(struct ds_accel_plugin *table)
{
    table->mem_info = cpu_mem_info;
    table->mem_stats = cpu_mem_stats;
    table->mem_reset_peaks = cpu_mem_reset_peaks;
    table->mem_trim = cpu_mem_trim;
    table->mem_set_limit = cpu_mem_set_limit;
}
