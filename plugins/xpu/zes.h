/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of Level Zero's Sysman and of ITT that the xpu plugin uses, declared by the plugin
 * itself. Source: zes_api.h of the Level Zero loader v1.32 and ittnotify.h of ittapi (2026-02).
 */
#ifndef DS_ACCEL_PLUGINS_XPU_ZES_H
#define DS_ACCEL_PLUGINS_XPU_ZES_H

#include "ze.h"

typedef struct zes_driver *zes_driver_t;
typedef struct zes_device *zes_device_t;
typedef struct zes_sensor *zes_sensor_t; /* a memory, engine, sensor, domain or port */

#define ZES_TAG_DEVICE_PROPERTIES 0x1u
#define ZES_TAG_PCI_PROPERTIES 0x2u
#define ZES_TAG_ENGINE_PROPERTIES 0x5u
#define ZES_TAG_PORT_PROPERTIES 0x6u
#define ZES_TAG_FREQ_PROPERTIES 0x9u
#define ZES_TAG_MEM_PROPERTIES 0xbu
#define ZES_TAG_POWER_PROPERTIES 0xdu
#define ZES_TAG_TEMP_PROPERTIES 0x14u
#define ZES_TAG_PROCESS_STATE 0x16u
#define ZES_TAG_PORT_STATE 0x19u
#define ZES_TAG_FREQ_STATE 0x1bu
#define ZES_TAG_MEM_STATE 0x1eu

#define ZES_ENGINES_ALL 0u
#define ZES_TEMP_GLOBAL 0u
#define ZES_TEMP_GPU 1u
#define ZES_MEMORY_ON_DEVICE 1u
#define ZES_FREQ_GPU 0u
#define ZES_FREQ_MEMORY 1u
#define ZES_PORT_HEALTHY 1u
#define ZES_PORT_DEGRADED 2u
/*
 * Bits of the throttle reasons: 0 average power, 1 burst power, 2 current, 9 power; 3 and 8
 * temperature; 4 power supply; 5 a range set by software; 6 a slower block; 7 voltage.
 */
#define ZES_THROTTLE_POWER 0x207u
#define ZES_THROTTLE_THERMAL 0x108u
#define ZES_THROTTLE_HARDWARE 0x0d0u
#define ZES_THROTTLE_SETTING 0x020u

struct zes_device_properties {
    uint32_t tag;
    void *next;
    struct ze_device_properties core;
    uint32_t subdevice_count;
    char serial[64], board[64], brand[64], model[64], vendor[64], driver_version[64];
};
struct zes_pci_properties {
    uint32_t tag;
    void *next;
    struct ze_pci_address address;
    struct {
        int32_t generation, width;
        int64_t bytes_per_s;
    } speed;
    ze_bool has_bandwidth, has_packets, has_replays;
};
struct zes_memory_properties {
    uint32_t tag;
    void *next;
    uint32_t type;
    ze_bool on_subdevice;
    uint32_t subdevice_id;
    uint32_t location;
    uint64_t physical_bytes;
    int32_t bus_bits, channels;
};
struct zes_memory_state {
    uint32_t tag;
    const void *next;
    uint32_t health;
    uint64_t free_bytes, size_bytes;
};
struct zes_engine_properties {
    uint32_t tag;
    void *next;
    uint32_t type;
    ze_bool on_subdevice;
    uint32_t subdevice_id;
};
struct zes_engine_stats { /* active and timestamp have the same unit */
    uint64_t active, timestamp;
};
struct zes_temperature_properties {
    uint32_t tag;
    void *next;
    uint32_t type;
    ze_bool on_subdevice;
    uint32_t subdevice_id;
    double max;
    ze_bool has_critical, has_threshold1, has_threshold2;
};
struct zes_power_properties {
    uint32_t tag;
    void *next;
    ze_bool on_subdevice;
    uint32_t subdevice_id;
    ze_bool can_control, has_threshold;
    int32_t default_limit, min_limit, max_limit;
};
struct zes_energy {
    uint64_t microjoules, microseconds;
};
struct zes_frequency_properties {
    uint32_t tag;
    void *next;
    uint32_t type;
    ze_bool on_subdevice;
    uint32_t subdevice_id;
    ze_bool can_control, has_throttle_events;
    double min, max;
};
struct zes_frequency_state { /* all frequencies are in MHz */
    uint32_t tag;
    const void *next;
    double voltage, request, tdp, efficient, actual;
    uint32_t throttle_reasons;
};
struct zes_process {
    uint32_t tag;
    const void *next;
    uint32_t pid;
    uint64_t memory_bytes, shared_bytes;
    uint32_t engines;
};
struct zes_port_id {
    uint32_t fabric, attach;
    uint8_t port;
};
struct zes_port_speed {
    int64_t bits_per_s;
    int32_t width;
};
struct zes_port_properties {
    uint32_t tag;
    void *next;
    char model[256];
    ze_bool on_subdevice;
    uint32_t subdevice_id;
    struct zes_port_id id;
    struct zes_port_speed max_rx, max_tx;
};
struct zes_port_state {
    uint32_t tag;
    const void *next;
    uint32_t status, quality_issues, failures;
    struct zes_port_id remote;
    struct zes_port_speed rx, tx;
};

_Static_assert(sizeof(struct zes_device_properties) == 776, "zes_device_properties_t");
_Static_assert(sizeof(struct zes_pci_properties) == 56, "zes_pci_properties_t");
_Static_assert(sizeof(struct zes_memory_properties) == 48, "zes_mem_properties_t");
_Static_assert(sizeof(struct zes_memory_state) == 40, "zes_mem_state_t");
_Static_assert(sizeof(struct zes_engine_properties) == 32, "zes_engine_properties_t");
_Static_assert(sizeof(struct zes_temperature_properties) == 48, "zes_temp_properties_t");
_Static_assert(sizeof(struct zes_power_properties) == 40, "zes_power_properties_t");
_Static_assert(sizeof(struct zes_frequency_properties) == 48, "zes_freq_properties_t");
_Static_assert(sizeof(struct zes_frequency_state) == 64, "zes_freq_state_t");
_Static_assert(sizeof(struct zes_process) == 48, "zes_process_state_t");
_Static_assert(sizeof(struct zes_port_properties) == 328 &&
                   offsetof(struct zes_port_properties, id) == 280 &&
                   offsetof(struct zes_port_properties, max_tx) == 312,
               "zes_fabric_port_properties_t");
_Static_assert(sizeof(struct zes_port_state) == 72 &&
                   offsetof(struct zes_port_state, remote) == 28 &&
                   offsetof(struct zes_port_state, rx) == 40,
               "zes_fabric_port_state_t");

/* Called once for the number and once for the array; all kinds of modules have this signature. */
typedef ze_result (*zes_enumerate)(zes_device_t device, uint32_t *count, zes_sensor_t *sensors);

struct zes_api {
    /*
     * These three functions are available since loader 1.12; older loaders accept a
     * ze_device_handle_t instead, if ZES_ENABLE_SYSMAN was 1 at zeInit().
     */
    ze_result (*zesInit)(uint32_t flags);
    ze_result (*zesDriverGet)(uint32_t *count, zes_driver_t *drivers);
    ze_result (*zesDeviceGet)(zes_driver_t driver, uint32_t *count, zes_device_t *devices);
    ze_result (*zesDeviceGetProperties)(zes_device_t device,
                                        struct zes_device_properties *properties);
    ze_result (*zesDevicePciGetProperties)(zes_device_t device,
                                           struct zes_pci_properties *properties);
    zes_enumerate zesDeviceEnumMemoryModules;
    ze_result (*zesMemoryGetProperties)(zes_sensor_t memory,
                                        struct zes_memory_properties *properties);
    ze_result (*zesMemoryGetState)(zes_sensor_t memory, struct zes_memory_state *state);
    zes_enumerate zesDeviceEnumEngineGroups;
    ze_result (*zesEngineGetProperties)(zes_sensor_t engine,
                                        struct zes_engine_properties *properties);
    ze_result (*zesEngineGetActivity)(zes_sensor_t engine, struct zes_engine_stats *stats);
    zes_enumerate zesDeviceEnumTemperatureSensors;
    ze_result (*zesTemperatureGetProperties)(zes_sensor_t sensor,
                                             struct zes_temperature_properties *properties);
    ze_result (*zesTemperatureGetState)(zes_sensor_t sensor, double *degrees);
    zes_enumerate zesDeviceEnumPowerDomains;
    ze_result (*zesPowerGetProperties)(zes_sensor_t domain,
                                       struct zes_power_properties *properties);
    ze_result (*zesPowerGetEnergyCounter)(zes_sensor_t domain, struct zes_energy *energy);
    zes_enumerate zesDeviceEnumFrequencyDomains;
    ze_result (*zesFrequencyGetProperties)(zes_sensor_t domain,
                                           struct zes_frequency_properties *properties);
    ze_result (*zesFrequencyGetState)(zes_sensor_t domain, struct zes_frequency_state *state);
    ze_result (*zesDeviceProcessesGetState)(zes_device_t device, uint32_t *count,
                                            struct zes_process *processes);
    zes_enumerate zesDeviceEnumFabricPorts;
    ze_result (*zesFabricPortGetProperties)(zes_sensor_t port,
                                            struct zes_port_properties *properties);
    ze_result (*zesFabricPortGetState)(zes_sensor_t port, struct zes_port_state *state);
};

/* ---- ITT: functions of the collector library in INTEL_LIBITTNOTIFY64 ------------------------ */

struct itt_domain;
struct itt_string;
struct itt_id { /* passed by value, twice in a call; all zero: no task */
    uint64_t words[3];
};
_Static_assert(sizeof(struct itt_id) == 24, "__itt_id");

struct itt_api {
    struct itt_domain *(*__itt_domain_create)(const char *name);
    struct itt_string *(*__itt_string_handle_create)(const char *name);
    void (*__itt_task_begin)(const struct itt_domain *domain, struct itt_id task,
                             struct itt_id parent, struct itt_string *name);
    void (*__itt_task_end)(const struct itt_domain *domain);
    void (*__itt_pause)(void);
    void (*__itt_resume)(void);
};

#endif
