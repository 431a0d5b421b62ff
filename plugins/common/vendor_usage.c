/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * This process's use of a device's memory: sizes, peaks, counts and a limit.
 *
 * Bytes are counted before the runtime allocates, and subtracted if it fails, so that two threads
 * cannot exceed the limit together. The frame has no cache above the runtime, so the reserved bytes
 * equal the allocated bytes.
 */
#include "vendor_frame.h"

#include <assert.h>

struct vendor_usage {
    pthread_mutex_t lock; /* guards all members below */
    uint64_t allocated_bytes;
    uint64_t allocated_peak_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t limit_bytes;
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t out_of_memory_count;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct vendor_usage *vendor_usage_create(void)
{
    struct vendor_usage *usage = calloc(1, sizeof(*usage));

    if (usage != NULL) {
        pthread_mutex_init(&usage->lock, NULL);
    }
    return usage;
}

void vendor_usage_destroy(struct vendor_usage *usage)
{
    if (usage != NULL) {
        pthread_mutex_destroy(&usage->lock);
        free(usage);
    }
}

void vendor_usage_reset(struct vendor_usage *usage)
{
    pthread_mutex_lock(&usage->lock);
    usage->allocated_bytes = 0;
    usage->allocated_peak_bytes = 0;
    usage->reserved_peak_bytes = 0;
    usage->limit_bytes = 0;
    usage->alloc_count = 0;
    usage->free_count = 0;
    usage->out_of_memory_count = 0;
    pthread_mutex_unlock(&usage->lock);
}

void vendor_usage_reopen(struct vendor_usage *usage)
{
    pthread_mutex_lock(&usage->lock);
    usage->allocated_peak_bytes = usage->allocated_bytes;
    usage->reserved_peak_bytes = usage->allocated_bytes;
    usage->limit_bytes = 0;
    usage->alloc_count = 0;
    usage->free_count = 0;
    usage->out_of_memory_count = 0;
    pthread_mutex_unlock(&usage->lock);
}

int vendor_usage_add(struct vendor_usage *usage, uint64_t size_bytes)
{
    int result = -1;

    pthread_mutex_lock(&usage->lock);
    if (usage->limit_bytes == 0 || (usage->allocated_bytes <= usage->limit_bytes &&
                                    size_bytes <= usage->limit_bytes - usage->allocated_bytes)) {
        usage->allocated_bytes += size_bytes;
        result = 0;
    }
    pthread_mutex_unlock(&usage->lock);
    return result;
}

void vendor_usage_succeed(struct vendor_usage *usage)
{
    pthread_mutex_lock(&usage->lock);
    usage->alloc_count++;
    usage->allocated_peak_bytes = max_u64(usage->allocated_peak_bytes, usage->allocated_bytes);
    usage->reserved_peak_bytes = max_u64(usage->reserved_peak_bytes, usage->allocated_bytes);
    pthread_mutex_unlock(&usage->lock);
}

void vendor_usage_fail(struct vendor_usage *usage, uint64_t size_bytes, int32_t status)
{
    pthread_mutex_lock(&usage->lock);
    assert(usage->allocated_bytes >= size_bytes);
    usage->allocated_bytes -= size_bytes;
    usage->out_of_memory_count += status == DS_ACCEL_ERR_NO_MEMORY;
    pthread_mutex_unlock(&usage->lock);
}

void vendor_usage_subtract(struct vendor_usage *usage, uint64_t size_bytes)
{
    pthread_mutex_lock(&usage->lock);
    usage->allocated_bytes -= size_bytes;
    usage->free_count++;
    pthread_mutex_unlock(&usage->lock);
}

int32_t vendor_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                            struct ds_accel_error *error)
{
    struct vendor_usage *usage = device->usage;
    unsigned long long allocated;
    unsigned long long limit;

    pthread_mutex_lock(&usage->lock);
    usage->out_of_memory_count++;
    allocated = usage->allocated_bytes;
    limit = usage->limit_bytes;
    pthread_mutex_unlock(&usage->lock);
    if (limit == 0) {
        return plugin_fail(
            error, DS_ACCEL_ERR_NO_MEMORY,
            "%s: device %u: requested %llu bytes, allocated %llu: no device has as much", slot,
            device->index, (unsigned long long)size_bytes, allocated);
    }
    return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                       "%s: device %u: requested %llu bytes, allocated %llu, the limit of "
                       "mem_set_limit() is %llu",
                       slot, device->index, (unsigned long long)size_bytes, allocated, limit);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* Read the memory sizes from the runtime. If the runtime cannot report them, only the total memory
   is filled, from the device's facts. */
static int32_t ask_memory(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info,
                          struct ds_accel_error *error)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.usage_info != NULL) {
        VENDOR_CALL(device, error, status, vendor_backend.usage_info(device, info, error));
        return status;
    }
    if (vendor_backend.memory_info != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.memory_info(device, &free_bytes, &total_bytes, error));
        if (status == DS_ACCEL_OK) {
            info->valid |= DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE;
            info->total_bytes = total_bytes;
            info->available_bytes = min_u64(free_bytes, total_bytes);
        }
        if (status != DS_ACCEL_ERR_UNSUPPORTED) {
            return status;
        }
    }
    if (device->info.total_memory_bytes > 0) {
        info->valid |= DS_ACCEL_MEMORY_TOTAL;
        info->total_bytes = device->info.total_memory_bytes;
    }
    return DS_ACCEL_OK;
}

/* Reduce the sizes to the limit of mem_set_limit(). A backend's usage_info() reports the total
   memory of the machine, which the limit does not change. */
static void apply_limit(struct ds_accel_memory_info *info, uint64_t allocated_bytes,
                        uint64_t limit_bytes)
{
    const uint64_t left = limit_bytes > allocated_bytes ? limit_bytes - allocated_bytes : 0;

    if (vendor_backend.usage_info == NULL) {
        if ((info->valid & DS_ACCEL_MEMORY_TOTAL) != 0 && limit_bytes >= info->total_bytes) {
            return;
        }
        info->total_bytes = min_u64(info->total_bytes, limit_bytes);
    }
    info->available_bytes = min_u64(info->available_bytes, left);
    if (info->limit_bytes == 0 || limit_bytes < info->limit_bytes) {
        info->limit_bytes = limit_bytes;
        snprintf(info->limit_source, sizeof(info->limit_source), "mem_set_limit()");
    }
}

static int32_t vendor_mem_info(ds_accel_plugin_device_t *device,
                               struct ds_accel_memory_info *info_out, struct ds_accel_error *error)
{
    struct ds_accel_memory_info info;
    uint64_t allocated_bytes;
    uint64_t limit_bytes;
    int32_t status = vendor_check_device(device, "mem_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return vendor_null(error, "mem_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    status = ask_memory(device, &info, error);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->usage->lock);
    limit_bytes = device->usage->limit_bytes;
    allocated_bytes = device->usage->allocated_bytes;
    pthread_mutex_unlock(&device->usage->lock);
    if (vendor_backend.usage_info == NULL) {
        info.valid |= DS_ACCEL_MEMORY_PROCESS;
        info.process_bytes = allocated_bytes;
    }
    if (limit_bytes > 0) {
        apply_limit(&info, allocated_bytes, limit_bytes);
    }
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static int32_t vendor_mem_stats(ds_accel_plugin_device_t *device,
                                struct ds_accel_memory_stats *stats_out,
                                struct ds_accel_error *error)
{
    struct ds_accel_memory_stats stats;
    struct vendor_usage *usage;
    int32_t status = DS_ACCEL_OK;

    if (device == NULL || stats_out == NULL) {
        return vendor_null(error, "mem_stats", "the device or stats_out");
    }
    usage = device->usage;
    memset(&stats, 0, sizeof(stats));
    stats.valid = DS_ACCEL_STATS_ALLOCATED | DS_ACCEL_STATS_RESERVED | DS_ACCEL_STATS_COUNTS |
                  DS_ACCEL_STATS_RETRIES;
    pthread_mutex_lock(&usage->lock);
    stats.allocated_bytes = usage->allocated_bytes;
    stats.allocated_peak_bytes = max_u64(usage->allocated_peak_bytes, usage->allocated_bytes);
    stats.reserved_bytes = usage->allocated_bytes;
    stats.reserved_peak_bytes = max_u64(usage->reserved_peak_bytes, usage->allocated_bytes);
    stats.alloc_count = usage->alloc_count;
    stats.free_count = usage->free_count;
    stats.out_of_memory_count = usage->out_of_memory_count;
    pthread_mutex_unlock(&usage->lock);
    if (vendor_backend.usage_stats != NULL) {
        VENDOR_CALL(device, error, status, vendor_backend.usage_stats(device, &stats, error));
    }
    if (status == DS_ACCEL_OK) {
        ds_accel_write(stats_out, &stats, sizeof(stats));
    }
    return status;
}

static int32_t vendor_mem_reset_peaks(ds_accel_plugin_device_t *device, uint32_t which,
                                      struct ds_accel_error *error)
{
    const uint32_t known = DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED;

    if (device == NULL) {
        return vendor_null(error, "mem_reset_peaks", "the device");
    }
    if ((which & ~known) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_reset_peaks: unknown bits 0x%x",
                           which & ~known);
    }
    if (vendor_backend.usage_reset_peaks != NULL) {
        int32_t status;

        VENDOR_CALL(device, error, status, vendor_backend.usage_reset_peaks(device, which, error));
        return status;
    }
    pthread_mutex_lock(&device->usage->lock);
    if ((which & DS_ACCEL_PEAK_ALLOCATED) != 0) {
        device->usage->allocated_peak_bytes = device->usage->allocated_bytes;
    }
    if ((which & DS_ACCEL_PEAK_RESERVED) != 0) {
        device->usage->reserved_peak_bytes = device->usage->allocated_bytes;
    }
    pthread_mutex_unlock(&device->usage->lock);
    return DS_ACCEL_OK;
}

static int32_t vendor_mem_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                               struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "mem_trim", error);

    if (status == DS_ACCEL_OK) {
        VENDOR_CALL(device, error, status, vendor_backend.trim(device, keep_bytes, error));
    }
    return status;
}

static int32_t vendor_mem_set_limit(ds_accel_plugin_device_t *device, uint64_t limit_bytes,
                                    struct ds_accel_error *error)
{
    if (device == NULL) {
        return vendor_null(error, "mem_set_limit", "the device");
    }
    pthread_mutex_lock(&device->usage->lock);
    device->usage->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&device->usage->lock);
    return DS_ACCEL_OK;
}

void vendor_usage_fill(struct ds_accel_plugin *table)
{
    table->mem_info = vendor_mem_info;
    table->mem_stats = vendor_mem_stats;
    table->mem_reset_peaks = vendor_mem_reset_peaks;
    table->mem_trim = vendor_backend.trim != NULL ? vendor_mem_trim : NULL;
    table->mem_set_limit = vendor_mem_set_limit;
}
