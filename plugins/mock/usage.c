/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A device's total and used memory.
 *
 * Device memory is only counted: a device with 80 GiB uses no host memory until a program
 * allocates, and then only the allocated size. There is neither a cache below mem_alloc nor
 * fragmentation, so reserved memory equals allocated memory, and the largest free block equals the
 * free memory.
 */
#include "mock.h"

/* The most memory that this process could allocate. */
static uint64_t usable_bytes(const ds_accel_plugin_device_t *device)
{
    uint64_t total = device->instance->options.memory_bytes;

    return device->limit_bytes > 0 && device->limit_bytes < total ? device->limit_bytes : total;
}

static uint64_t free_bytes(const ds_accel_plugin_device_t *device)
{
    uint64_t usable = usable_bytes(device);

    return usable > device->allocated_bytes ? usable - device->allocated_bytes : 0;
}

int mock_usage_fits(const ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    return size_bytes <= free_bytes(device);
}

void mock_usage_take(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    device->allocated_bytes += size_bytes;
    device->allocated_peak_bytes =
        mock_max_u64(device->allocated_peak_bytes, device->allocated_bytes);
    device->reserved_peak_bytes =
        mock_max_u64(device->reserved_peak_bytes, device->allocated_bytes);
    device->alloc_count++;
}

void mock_usage_give(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    device->allocated_bytes -= size_bytes;
    device->free_count++;
}

int32_t mock_usage_refuse(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                          struct ds_accel_error *error)
{
    char cause[192];
    unsigned long long allocated;
    unsigned long long available;

    pthread_mutex_lock(&device->instance->lock);
    device->out_of_memory_count++;
    allocated = device->allocated_bytes;
    available = free_bytes(device);
    pthread_mutex_unlock(&device->instance->lock);
    snprintf(
        cause, sizeof(cause),
        "device %u: requested %llu bytes, allocated %llu, reserved %llu, largest free block %llu",
        device->index, (unsigned long long)size_bytes, allocated, allocated, available);
    return mock_vendor_fail(error, DS_ACCEL_ERR_NO_MEMORY, slot, cause);
}

static int32_t mock_mem_info(ds_accel_plugin_device_t *device,
                             struct ds_accel_memory_info *info_out, struct ds_accel_error *error)
{
    struct ds_accel_memory_info info;
    int32_t status = mock_enter_device(device, "mem_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return mock_null(error, "mem_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    pthread_mutex_lock(&device->instance->lock);
    info.valid = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE | DS_ACCEL_MEMORY_PROCESS;
    info.total_bytes = usable_bytes(device);
    info.available_bytes = free_bytes(device);
    info.process_bytes = device->allocated_bytes;
    if (info.total_bytes < device->instance->options.memory_bytes) {
        info.limit_bytes = info.total_bytes;
        snprintf(info.limit_source, sizeof(info.limit_source), "mem_set_limit()");
    }
    pthread_mutex_unlock(&device->instance->lock);
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static int32_t mock_mem_stats(ds_accel_plugin_device_t *device,
                              struct ds_accel_memory_stats *stats_out, struct ds_accel_error *error)
{
    struct ds_accel_memory_stats stats;
    int32_t status = mock_enter_device(device, "mem_stats", error);

    if (status < 0) {
        return status;
    }
    if (stats_out == NULL) {
        return mock_null(error, "mem_stats", "stats_out");
    }
    memset(&stats, 0, sizeof(stats));
    pthread_mutex_lock(&device->instance->lock);
    stats.valid = DS_ACCEL_STATS_ALLOCATED | DS_ACCEL_STATS_RESERVED | DS_ACCEL_STATS_COUNTS |
                  DS_ACCEL_STATS_RETRIES;
    stats.allocated_bytes = device->allocated_bytes;
    stats.allocated_peak_bytes = device->allocated_peak_bytes;
    stats.reserved_bytes = device->allocated_bytes;
    stats.reserved_peak_bytes = device->reserved_peak_bytes;
    stats.alloc_count = device->alloc_count;
    stats.free_count = device->free_count;
    stats.out_of_memory_count = device->out_of_memory_count;
    pthread_mutex_unlock(&device->instance->lock);
    ds_accel_write(stats_out, &stats, sizeof(stats));
    return DS_ACCEL_OK;
}

static int32_t mock_mem_reset_peaks(ds_accel_plugin_device_t *device, uint32_t which,
                                    struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "mem_reset_peaks", error);

    if (status < 0) {
        return status;
    }
    if ((which & ~(DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_reset_peaks: unknown bits in %#x",
                           which);
    }
    pthread_mutex_lock(&device->instance->lock);
    if ((which & DS_ACCEL_PEAK_ALLOCATED) != 0) {
        device->allocated_peak_bytes = device->allocated_bytes;
    }
    if ((which & DS_ACCEL_PEAK_RESERVED) != 0) {
        device->reserved_peak_bytes = device->allocated_bytes;
    }
    pthread_mutex_unlock(&device->instance->lock);
    return DS_ACCEL_OK;
}

/* Does nothing, because freed memory is never cached. */
static int32_t mock_mem_trim(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                             struct ds_accel_error *error)
{
    (void)keep_bytes;
    return mock_enter_device(device, "mem_trim", error);
}

static int32_t mock_mem_set_limit(ds_accel_plugin_device_t *device, uint64_t limit_bytes,
                                  struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "mem_set_limit", error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    device->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&device->instance->lock);
    return DS_ACCEL_OK;
}

void mock_usage_fill(struct ds_accel_plugin *table)
{
    table->mem_info = mock_mem_info;
    table->mem_stats = mock_mem_stats;
    table->mem_reset_peaks = mock_mem_reset_peaks;
    table->mem_trim = mock_mem_trim;
    table->mem_set_limit = mock_mem_set_limit;
}
