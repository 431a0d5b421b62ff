/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The part of HLML that the plugin uses (hlml.h in gohlml e31eedd, 2025-07). HLML reads all cards
 * of the machine, acquires none of them, and ignores all variables: the plugin matches cards by
 * module id. The members of HLML's memory struct are in the order free, total, used, unlike NVML's
 * (total, free, used).
 */
#ifndef DS_ACCEL_PLUGINS_HPU_HLML_H
#define DS_ACCEL_PLUGINS_HPU_HLML_H

#include <stddef.h>

typedef void *hlml_card;

#define HLML_OK 0
#define HLML_ALREADY_INITIALIZED 5

#define HLML_SENSOR_ON_AIP 0 /* sensor on the processor, not on the board */
#define HLML_CLOCK_OF_SOC 0

#define HLML_THROTTLE_POWER 1u
#define HLML_THROTTLE_THERMAL 2u

struct hlml_memory {
    unsigned long long free;
    unsigned long long total;
    unsigned long long used;
};
_Static_assert(sizeof(struct hlml_memory) == 24, "hlml_memory_t");

struct hlml_utilization {
    unsigned int percent;
};
_Static_assert(sizeof(struct hlml_utilization) == 4, "hlml_utilization_t");

struct hlml_pci {
    unsigned int bus;
    char bus_id[15]; /* "0000:65:00.0" */
    unsigned int device;
    unsigned int domain;
    unsigned int pci_device_id;
    char link_speed[10];
    char link_width[10];
};
_Static_assert(sizeof(struct hlml_pci) == 52 && offsetof(struct hlml_pci, bus_id) == 4,
               "hlml_pci_info_t");

struct hlml {
    int (*hlml_init)(void);
    int (*hlml_shutdown)(void);
    int (*hlml_device_get_count)(unsigned int *count);
    int (*hlml_device_get_handle_by_index)(unsigned int index, hlml_card *card);
    int (*hlml_device_get_module_id)(hlml_card card, unsigned int *module_id);
    int (*hlml_device_get_name)(hlml_card card, char *name, unsigned int length);
    int (*hlml_device_get_uuid)(hlml_card card, char *uuid, unsigned int length);
    int (*hlml_device_get_pci_info)(hlml_card card, struct hlml_pci *pci);
    int (*hlml_device_get_memory_info)(hlml_card card, struct hlml_memory *memory);
    int (*hlml_device_get_utilization_rates)(hlml_card card, struct hlml_utilization *rates);
    int (*hlml_device_get_temperature)(hlml_card card, int sensor, unsigned int *degrees);
    int (*hlml_device_get_power_usage)(hlml_card card, unsigned int *milliwatts);
    int (*hlml_device_get_power_management_default_limit)(hlml_card card, unsigned int *milliwatts);
    int (*hlml_device_get_total_energy_consumption)(hlml_card card,
                                                    unsigned long long *millijoules);
    int (*hlml_device_get_clock_info)(hlml_card card, int clock, unsigned int *megahertz);
    int (*hlml_device_get_current_clocks_throttle_reasons)(hlml_card card,
                                                           unsigned long long *reasons);
};

#endif
