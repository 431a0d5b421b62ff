/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated librocm_smi64.so.7, by the prototypes of rocm_smi.h. It counts devices by PCI address
 * and ignores all variables. Facts: "utilization_percent", "memory_utilization_percent",
 * "edge_millidegrees" (-1: no such sensor), "junction_millidegrees", "power_microwatts",
 * "power_cap_microwatts", "energy_count" (of 15.3 microjoules each), and the facts of links.h.
 */
#include "links.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum {
    RSMI_STATUS_SUCCESS = 0,
    RSMI_STATUS_INVALID_ARGS = 1,
    RSMI_STATUS_NOT_SUPPORTED = 2,
    RSMI_STATUS_INIT_ERROR = 8,
    RSMI_STATUS_UNKNOWN_ERROR = 0x7fffffff
} rsmi_status_t;
typedef enum {
    RSMI_MEM_TYPE_VRAM = 0,
    RSMI_MEM_TYPE_VIS_VRAM,
    RSMI_MEM_TYPE_GTT
} rsmi_memory_type_t;
typedef enum {
    RSMI_TEMP_CURRENT = 0
} rsmi_temperature_metric_t;
#define RSMI_TEMP_TYPE_EDGE 0u
#define RSMI_TEMP_TYPE_JUNCTION 1u

SIM_ASSERT(sizeof(rsmi_status_t) == 4, "rsmi_status_t is an int");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static uint32_t order[64];
static uint32_t count;
static int users;

/* Begins a call. Returns the device, or NULL after a failure, with its code in *code. */
static const struct sim_device *enter(const char *call, uint32_t dv_ind, rsmi_status_t *code)
{
    *code = (rsmi_status_t)sim_enter(call);
    if (*code != RSMI_STATUS_SUCCESS) {
        return NULL;
    }
    if (users == 0) {
        sim_misuse("%s: before rsmi_init()", call);
    }
    *code = dv_ind < count ? RSMI_STATUS_SUCCESS : RSMI_STATUS_INVALID_ARGS;
    return dv_ind < count ? sim_device_at(order[dv_ind]) : NULL;
}

#define ENTER(index) \
    rsmi_status_t code_; \
    const struct sim_device *device = enter(__func__, index, &code_); \
    if (device == NULL) { \
        return code_; \
    }

/* The real library prints two lines if the directory of graphics cards does not exist. */
SIM_EXPORT rsmi_status_t rsmi_init(uint64_t init_flags)
{
    const char *root = getenv("DS_ACCEL_ROOT");
    char path[512];
    int64_t code = sim_enter(__func__);

    (void)init_flags;
    if (code != 0) {
        return (rsmi_status_t)code;
    }
    snprintf(path, sizeof(path), "%s/sys/class/drm", root != NULL ? root : "");
    if (access(path, F_OK) != 0) {
        fputs("Failed to open drm root directory /sys/class/drm.\nException caught: rsmi_init.\n",
              stderr);
        return RSMI_STATUS_INIT_ERROR;
    }
    (void)sim_device_count("rocm");
    count = sim_order("pci", "pci", order, 64);
    users++;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_shut_down(void)
{
    int64_t code = sim_enter(__func__);

    if (users == 0) {
        sim_misuse("rsmi_shut_down: more often than rsmi_init()");
    }
    users--;
    return (rsmi_status_t)code;
}

SIM_EXPORT rsmi_status_t rsmi_num_monitor_devices(uint32_t *num_devices)
{
    int64_t code = sim_enter(__func__);

    if (code == 0) {
        *num_devices = count;
    }
    return (rsmi_status_t)code;
}

SIM_EXPORT rsmi_status_t rsmi_dev_pci_id_get(uint32_t dv_ind, uint64_t *bdfid)
{
    ENTER(dv_ind)
    *bdfid = (uint64_t)device->pci_domain << 32 | device->pci_bus << 8 | device->pci_slot << 3 |
             device->pci_function;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_total_get(uint32_t dv_ind, rsmi_memory_type_t mem_type,
                                                   uint64_t *total)
{
    ENTER(dv_ind)
    if (mem_type != RSMI_MEM_TYPE_VRAM) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    *total = device->memory_bytes;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_usage_get(uint32_t dv_ind, rsmi_memory_type_t mem_type,
                                                   uint64_t *used)
{
    uint64_t free_bytes, total_bytes;
    ENTER(dv_ind)

    if (mem_type != RSMI_MEM_TYPE_VRAM) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    sim_memory_info(device->physical, &free_bytes, &total_bytes);
    *used = total_bytes - free_bytes;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_busy_percent_get(uint32_t dv_ind, uint32_t *busy_percent)
{
    ENTER(dv_ind)
    *busy_percent = (uint32_t)sim_number(device, "utilization_percent", 0);
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_busy_percent_get(uint32_t dv_ind, uint32_t *busy_percent)
{
    ENTER(dv_ind)
    *busy_percent = (uint32_t)sim_number(device, "memory_utilization_percent", 0);
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_temp_metric_get(uint32_t dv_ind, uint32_t sensor_type,
                                                  rsmi_temperature_metric_t metric,
                                                  int64_t *temperature)
{
    int64_t value;
    ENTER(dv_ind)

    if (metric != RSMI_TEMP_CURRENT || sensor_type > RSMI_TEMP_TYPE_JUNCTION) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    value = sensor_type == RSMI_TEMP_TYPE_EDGE ? sim_number(device, "edge_millidegrees", 41000)
                                               : sim_number(device, "junction_millidegrees", 47000);
    if (value < 0) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    *temperature = value;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_power_ave_get(uint32_t dv_ind, uint32_t sensor_ind,
                                                uint64_t *power)
{
    ENTER(dv_ind)
    if (sensor_ind != 0 || sim_number(device, "has_average_power", 1) == 0) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    *power = (uint64_t)sim_number(device, "power_microwatts", 90000000);
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_current_socket_power_get(uint32_t dv_ind, uint64_t *socket_power)
{
    ENTER(dv_ind)
    *socket_power = (uint64_t)sim_number(device, "power_microwatts", 90000000);
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_power_cap_get(uint32_t dv_ind, uint32_t sensor_ind, uint64_t *cap)
{
    ENTER(dv_ind)
    if (sensor_ind != 0) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    *cap = (uint64_t)sim_number(device, "power_cap_microwatts", 560000000);
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_energy_count_get(uint32_t dv_ind, uint64_t *power,
                                                   float *counter_resolution, uint64_t *timestamp)
{
    ENTER(dv_ind)
    *power = (uint64_t)sim_number(device, "energy_count", 1000000);
    *counter_resolution = 15.3f;
    *timestamp = 1;
    return RSMI_STATUS_SUCCESS;
}

/* ---- links: CPU_NODE_INDEX is not supported -------------------------------------------------- */

typedef enum {
    RSMI_IOLINK_TYPE_UNDEFINED = 0,
    RSMI_IOLINK_TYPE_PCIEXPRESS = 1,
    RSMI_IOLINK_TYPE_XGMI = 2
} RSMI_IO_LINK_TYPE;
SIM_ASSERT(sizeof(RSMI_IO_LINK_TYPE) == 4, "RSMI_IO_LINK_TYPE is an int");

/* The library itself reports 1 hop for every XGMI path. */
SIM_EXPORT rsmi_status_t rsmi_topo_get_link_type(uint32_t dv_ind_src, uint32_t dv_ind_dst,
                                                 uint64_t *hops, RSMI_IO_LINK_TYPE *type)
{
    bool is_xgmi;
    ENTER(dv_ind_src)

    if (dv_ind_dst >= count || dv_ind_dst == dv_ind_src || hops == NULL || type == NULL) {
        return RSMI_STATUS_INVALID_ARGS;
    }
    is_xgmi = sim_xgmi_distance(device, sim_device_at(order[dv_ind_dst])) > 0;
    *hops = is_xgmi ? 1 : 2;
    *type = is_xgmi ? RSMI_IOLINK_TYPE_XGMI : RSMI_IOLINK_TYPE_PCIEXPRESS;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_topo_get_link_weight(uint32_t dv_ind_src, uint32_t dv_ind_dst,
                                                   uint64_t *weight)
{
    ENTER(dv_ind_src)
    if (dv_ind_dst >= count || dv_ind_dst == dv_ind_src || weight == NULL) {
        return RSMI_STATUS_INVALID_ARGS;
    }
    *weight = sim_link_weight(device, sim_device_at(order[dv_ind_dst]));
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_minmax_bandwidth_get(uint32_t dv_ind_src, uint32_t dv_ind_dst,
                                                   uint64_t *min_bandwidth, uint64_t *max_bandwidth)
{
    ENTER(dv_ind_src)
    if (dv_ind_dst >= count || dv_ind_dst == dv_ind_src) {
        return RSMI_STATUS_INVALID_ARGS;
    }
    if (sim_xgmi_distance(device, sim_device_at(order[dv_ind_dst])) != 1) {
        return RSMI_STATUS_NOT_SUPPORTED;
    }
    *min_bandwidth = sim_xgmi_mb_per_s();
    *max_bandwidth = sim_xgmi_mb_per_s() * (uint64_t)sim_number(device, "xgmi_links", 1);
    return RSMI_STATUS_SUCCESS;
}
