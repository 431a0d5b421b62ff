/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libamd_smi.so.26, by the prototypes of amdsmi.h 6.1. Each device has a socket, whose
 * handle is also the handle of its processor. Facts as in smi.c; temperatures in whole degrees, as
 * in some releases.
 */
#include "links.h"

#include <string.h>

typedef enum {
    AMDSMI_STATUS_SUCCESS = 0,
    AMDSMI_STATUS_INVAL = 1,
    AMDSMI_STATUS_NOT_SUPPORTED = 2
} amdsmi_status_t;
typedef void *amdsmi_socket_handle;
typedef void *amdsmi_processor_handle;
typedef union {
    struct {
        uint64_t function_number : 3;
        uint64_t device_number : 5;
        uint64_t bus_number : 8;
        uint64_t domain_number : 48;
    } parts;
    uint64_t as_uint;
} amdsmi_bdf_t;
typedef struct {
    uint32_t gfx_activity, umc_activity, mm_activity, reserved[13];
} amdsmi_engine_usage_t;
#define AMDSMI_INIT_AMD_GPUS 2u

SIM_ASSERT(sizeof(amdsmi_engine_usage_t) == 64, "amdsmi_engine_usage_t");
SIM_ASSERT(sizeof(amdsmi_bdf_t) == 8, "amdsmi_bdf_t");
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static uint32_t order[64];
static uint32_t count;
static int users;

static amdsmi_status_t enter(const char *call, const void *handle)
{
    amdsmi_status_t code = (amdsmi_status_t)sim_enter(call);

    if (code != AMDSMI_STATUS_SUCCESS) {
        return code;
    }
    if (users == 0) {
        sim_misuse("%s: before amdsmi_init()", call);
    }
    for (uint32_t i = 0; i < count && handle != NULL; i++) {
        if (handle == sim_device_at(order[i])) {
            return AMDSMI_STATUS_SUCCESS;
        }
    }
    if (handle != NULL) {
        sim_misuse("%s: %p is no handle", call, handle);
    }
    return AMDSMI_STATUS_SUCCESS;
}

#define ENTER(handle) \
    do { \
        amdsmi_status_t code_ = enter(__func__, handle); \
        if (code_ != AMDSMI_STATUS_SUCCESS) { \
            return code_; \
        } \
    } while (0)

SIM_EXPORT amdsmi_status_t amdsmi_init(uint64_t init_flags)
{
    amdsmi_status_t code = (amdsmi_status_t)sim_enter(__func__);

    if (code != AMDSMI_STATUS_SUCCESS) {
        return code;
    }
    if (init_flags != AMDSMI_INIT_AMD_GPUS) {
        return AMDSMI_STATUS_INVAL;
    }
    (void)sim_device_count("rocm");
    count = sim_order("pci", "pci", order, 64);
    users++;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_shut_down(void)
{
    amdsmi_status_t code = (amdsmi_status_t)sim_enter(__func__);

    users--;
    return code;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_socket_handles(uint32_t *socket_count,
                                                     amdsmi_socket_handle *socket_handles)
{
    ENTER(NULL);
    for (uint32_t i = 0; i < count && i < *socket_count && socket_handles != NULL; i++) {
        socket_handles[i] = sim_device_at(order[i]);
    }
    *socket_count = count;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket_handle,
                                                        uint32_t *processor_count,
                                                        amdsmi_processor_handle *processor_handles)
{
    ENTER(socket_handle);
    if (processor_handles != NULL && *processor_count > 0) {
        processor_handles[0] = socket_handle;
    }
    *processor_count = 1;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_device_bdf(amdsmi_processor_handle processor_handle,
                                                     amdsmi_bdf_t *bdf)
{
    const struct sim_device *device = processor_handle;

    ENTER(processor_handle);
    bdf->parts.function_number = device->pci_function & 7;
    bdf->parts.device_number = device->pci_slot & 31;
    bdf->parts.bus_number = device->pci_bus & 255;
    bdf->parts.domain_number = device->pci_domain;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_activity(amdsmi_processor_handle processor_handle,
                                                   amdsmi_engine_usage_t *info)
{
    ENTER(processor_handle);
    memset(info, 0, sizeof(*info));
    info->gfx_activity = (uint32_t)sim_number(processor_handle, "utilization_percent", 0);
    info->umc_activity = (uint32_t)sim_number(processor_handle, "memory_utilization_percent", 0);
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_temp_metric(amdsmi_processor_handle processor_handle,
                                                  int sensor_type, int metric, int64_t *temperature)
{
    ENTER(processor_handle);
    /* Sensor 0 is the edge, 1 the junction; edge_millidegrees -1: the device has no edge sensor. */
    if (sensor_type > 1 || metric != 0 ||
        (sensor_type == 0 && sim_number(processor_handle, "edge_millidegrees", 41000) < 0)) {
        return AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *temperature = (sensor_type == 0
                        ? sim_number(processor_handle, "edge_millidegrees", 41000)
                        : sim_number(processor_handle, "junction_millidegrees", 47000)) /
                   1000;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_memory_total(amdsmi_processor_handle processor_handle,
                                                       int mem_type, uint64_t *total)
{
    const struct sim_device *device = processor_handle;

    ENTER(processor_handle);
    if (mem_type != 0) {
        return AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *total = device->memory_bytes;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle processor_handle,
                                                       int mem_type, uint64_t *used)
{
    const struct sim_device *device = processor_handle;
    uint64_t free_bytes, total_bytes;

    ENTER(processor_handle);
    if (mem_type != 0) {
        return AMDSMI_STATUS_NOT_SUPPORTED;
    }
    sim_memory_info(device->physical, &free_bytes, &total_bytes);
    *used = total_bytes - free_bytes;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_energy_count(amdsmi_processor_handle processor_handle,
                                                   uint64_t *power, float *counter_resolution,
                                                   uint64_t *timestamp)
{
    ENTER(processor_handle);
    *power = (uint64_t)sim_number(processor_handle, "energy_count", 1000000);
    *counter_resolution = 15.3f;
    *timestamp = 1;
    return AMDSMI_STATUS_SUCCESS;
}

/* ---- links ---------------------------------------------------------------------------------- */

typedef enum {
    AMDSMI_LINK_TYPE_INTERNAL = 0,
    AMDSMI_LINK_TYPE_PCIE = 1,
    AMDSMI_LINK_TYPE_XGMI = 2
} amdsmi_link_type_t;
SIM_ASSERT(sizeof(amdsmi_link_type_t) == 4, "amdsmi_link_type_t is an int");

SIM_EXPORT amdsmi_status_t amdsmi_topo_get_link_type(amdsmi_processor_handle processor_handle_src,
                                                     amdsmi_processor_handle processor_handle_dst,
                                                     uint64_t *hops, amdsmi_link_type_t *type)
{
    bool is_xgmi = sim_xgmi_distance(processor_handle_src, processor_handle_dst) > 0;

    ENTER(processor_handle_src);
    ENTER(processor_handle_dst);
    *hops = is_xgmi ? 1 : 2;
    *type = is_xgmi ? AMDSMI_LINK_TYPE_XGMI : AMDSMI_LINK_TYPE_PCIE;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_topo_get_link_weight(amdsmi_processor_handle processor_handle_src,
                                                       amdsmi_processor_handle processor_handle_dst,
                                                       uint64_t *weight)
{
    ENTER(processor_handle_src);
    ENTER(processor_handle_dst);
    *weight = sim_link_weight(processor_handle_src, processor_handle_dst);
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_minmax_bandwidth_between_processors(
    amdsmi_processor_handle processor_handle_src, amdsmi_processor_handle processor_handle_dst,
    uint64_t *min_bandwidth, uint64_t *max_bandwidth)
{
    ENTER(processor_handle_src);
    ENTER(processor_handle_dst);
    if (sim_xgmi_distance(processor_handle_src, processor_handle_dst) != 1) {
        return AMDSMI_STATUS_NOT_SUPPORTED;
    }
    *min_bandwidth = sim_xgmi_mb_per_s();
    *max_bandwidth = sim_xgmi_mb_per_s() *
                     (uint64_t)sim_number(processor_handle_src, "xgmi_links", 1);
    return AMDSMI_STATUS_SUCCESS;
}
