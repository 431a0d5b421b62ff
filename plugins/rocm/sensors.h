/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of librocm_smi64 (rocm_smi/rocm_smi.h, 5.2 to 6.x), libamd_smi (amd_smi/amdsmi.h, 6.1)
 * and roctx (roctracer and rocprofiler-sdk) that the plugin uses: only calls whose results are
 * plain numbers, because the structs of both libraries change between releases; of one struct, that
 * of amdsmi_get_gpu_activity(), it reads the first two members. For that reason the plugin reads
 * clocks from sysfs, not from rocm_smi.
 */
#ifndef DS_ACCEL_PLUGINS_ROCM_SENSORS_H
#define DS_ACCEL_PLUGINS_ROCM_SENSORS_H

#include "rocm.h"

enum {
    RSMI_SUCCESS = 0,
    RSMI_MEMORY_VRAM = 0,
    RSMI_TEMPERATURE_CURRENT = 0,
    RSMI_TEMPERATURE_EDGE = 0,
    RSMI_TEMPERATURE_JUNCTION = 1,
    RSMI_LINK_XGMI = 2 /* value of RSMI_IO_LINK_TYPE; 0 is undefined, 1 is PCI Express */
};

/*
 * rocm_smi's functions. Units: temperatures in thousandths of a degree, power in microwatts,
 * utilization in percent, memory in bytes.
 */
struct rsmi_api {
    int (*rsmi_init)(uint64_t flags);
    int (*rsmi_shut_down)(void);
    int (*rsmi_num_monitor_devices)(uint32_t *count);
    int (*rsmi_dev_pci_id_get)(uint32_t index, uint64_t *address);
    int (*rsmi_dev_memory_total_get)(uint32_t index, int type, uint64_t *total);
    int (*rsmi_dev_memory_usage_get)(uint32_t index, int type, uint64_t *used);
    int (*rsmi_dev_busy_percent_get)(uint32_t index, uint32_t *percent);
    int (*rsmi_dev_memory_busy_percent_get)(uint32_t index, uint32_t *percent);
    int (*rsmi_dev_temp_metric_get)(uint32_t index, uint32_t sensor, int metric,
                                    int64_t *temperature);
    int (*rsmi_dev_power_ave_get)(uint32_t index, uint32_t sensor, uint64_t *power);
    int (*rsmi_dev_current_socket_power_get)(uint32_t index, uint64_t *power); /* since 6.0 */
    int (*rsmi_dev_power_cap_get)(uint32_t index, uint32_t sensor, uint64_t *cap);
    int (*rsmi_dev_energy_count_get)(uint32_t index, uint64_t *count, float *resolution,
                                     uint64_t *timestamp);
    /*
     * Optional: the path between two devices. Bandwidths are in MB/s, in one direction: the first
     * value is that of one link, the second that of all links between the devices. Valid only for
     * XGMI without an intermediate device.
     */
    int (*rsmi_topo_get_link_type)(uint32_t from, uint32_t to, uint64_t *hops, int *type);
    int (*rsmi_topo_get_link_weight)(uint32_t from, uint32_t to, uint64_t *weight);
    int (*rsmi_minmax_bandwidth_get)(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most);
};

enum {
    AMDSMI_SUCCESS = 0,
    AMDSMI_INIT_GPUS = 2,
    AMDSMI_MEMORY_VRAM = 0,
    AMDSMI_TEMPERATURE_EDGE = 0,
    AMDSMI_TEMPERATURE_JUNCTION = 1,
    AMDSMI_TEMPERATURE_CURRENT = 0,
    /* The value is the same in amdsmi_io_link_type_t and, since ROCm 7, amdsmi_link_type_t. */
    AMDSMI_LINK_XGMI = 2
};

/* The first members of the struct that amdsmi_get_gpu_activity() fills; its full size varies. */
#define AMDSMI_STRUCT_BYTES 4096
struct amdsmi_activity {
    uint32_t compute_percent;
    uint32_t memory_percent;
    char others[AMDSMI_STRUCT_BYTES - 8];
};

struct amdsmi_api {
    int (*amdsmi_init)(uint64_t flags);
    int (*amdsmi_shut_down)(void);
    int (*amdsmi_get_socket_handles)(uint32_t *count, void **sockets);
    int (*amdsmi_get_processor_handles)(void *socket, uint32_t *count, void **processors);
    /*
     * Fields of the 64-bit address, from the lowest bit: function 3 bits, device 5, bus 8, domain
     * 48. The order is not verified on a device; if it is wrong, no device matches: telemetry comes
     * from sysfs alone, and amd_smi reports no links.
     */
    int (*amdsmi_get_gpu_device_bdf)(void *processor, uint64_t *address);
    int (*amdsmi_get_gpu_activity)(void *processor, struct amdsmi_activity *activity);
    int (*amdsmi_get_temp_metric)(void *processor, int sensor, int metric, int64_t *temperature);
    int (*amdsmi_get_gpu_memory_total)(void *processor, int type, uint64_t *total);
    int (*amdsmi_get_gpu_memory_usage)(void *processor, int type, uint64_t *used);
    int (*amdsmi_get_energy_count)(void *processor, uint64_t *count, float *resolution,
                                   uint64_t *timestamp);
    /* Optional, with the same meaning as in rocm_smi. */
    int (*amdsmi_topo_get_link_type)(void *from, void *to, uint64_t *hops, int *type);
    int (*amdsmi_topo_get_link_weight)(void *from, void *to, uint64_t *weight);
    int (*amdsmi_get_minmax_bandwidth_between_processors)(void *from, void *to, uint64_t *least,
                                                          uint64_t *most);
};

/* roctx push and pop return the depth, or a negative number. */
struct roctx_api {
    int (*roctxRangePushA)(const char *message);
    int (*roctxRangePop)(void);
};

enum rocm_source {
    SOURCE_UNTRIED,
    SOURCE_RSMI,
    SOURCE_AMDSMI,
    SOURCE_NONE
};

struct rocm_sensors {
    const struct ds_accel_host *host;
    pthread_mutex_t
        lock; /* guards the opening of the libraries and all calls of amd_smi and rocm_smi */
    enum rocm_source source;
    struct vendor_lib smi_lib;
    struct rsmi_api rsmi;
    struct amdsmi_api amdsmi;
    uint32_t is_roctx_tried;
    atomic_uint has_roctx;
    struct vendor_lib roctx_lib;
    struct roctx_api roctx;
};

/* -- sensors.c; the caller holds the lock of struct rocm_sensors -- */

/* Opens the libraries at the first call; returns the library that is used, or SOURCE_NONE. */
enum rocm_source rocm_sensors_source(struct rocm_sensors *sensors);
/*
 * Find the device at a PCI address. rocm_find_rsmi() writes rocm_smi's number of the device and
 * returns 0, or returns -1 if there is no such device; rocm_find_amdsmi() returns amd_smi's handle,
 * or NULL.
 */
int rocm_find_rsmi(const struct rsmi_api *rsmi, const char *pci_address, uint32_t *index_out);
void *rocm_find_amdsmi(const struct amdsmi_api *amdsmi, const char *pci_address);

#endif
