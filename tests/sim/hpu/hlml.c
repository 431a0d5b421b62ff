/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libhlml.so. It lists every card, acquired or not, in the order of PCI addresses, and
 * reports the memory that the simulated Synapse of the same process has allocated.
 *
 * Facts per device: "module_id", "minor", "utilization", "temperature", "power_mw",
 * "power_limit_mw", "energy_mj", "clock_mhz", "throttle" (1 power, 2 thermal), "used_bytes" (by
 * other processes).
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

/* ---- the needed part of the header ---------------------------------------------------------- */

typedef enum {
    HLML_SUCCESS = 0,
    HLML_ERROR_UNINITIALIZED = 1,
    HLML_ERROR_INVALID_ARGUMENT = 2,
    HLML_ERROR_ALREADY_INITIALIZED = 5,
    HLML_ERROR_INSUFFICIENT_SIZE = 7,
    HLML_ERROR_UNKNOWN = 49
} hlml_return_t;

typedef void *hlml_device_t;

typedef struct {
    unsigned long long free;
    unsigned long long total;
    unsigned long long used;
} hlml_memory_t;

typedef struct {
    unsigned int aip;
} hlml_utilization_t;

typedef struct {
    unsigned int bus;
    char bus_id[15];
    unsigned int device;
    unsigned int domain;
    unsigned int pci_device_id;
    struct {
        char link_speed[10];
        char link_width[10];
    } caps;
} hlml_pci_info_t;

SIM_ASSERT(sizeof(hlml_memory_t) == 24 && offsetof(hlml_memory_t, total) == 8, "free comes first");
SIM_ASSERT(sizeof(hlml_utilization_t) == 4, "hlml_utilization_t");
SIM_ASSERT(sizeof(hlml_pci_info_t) == 52, "hlml_pci_info_t");

typedef enum {
    HLML_TEMPERATURE_ON_AIP = 0,
    HLML_TEMPERATURE_ON_BOARD = 1
} hlml_sensor_t;
typedef enum {
    HLML_CLOCK_SOC = 0,
    HLML_CLOCK_IC = 1
} hlml_clock_type_t;

SIM_EXPORT hlml_return_t hlml_init(void);
SIM_EXPORT hlml_return_t hlml_shutdown(void);
SIM_EXPORT hlml_return_t hlml_device_get_count(unsigned int *device_count);
SIM_EXPORT hlml_return_t hlml_device_get_handle_by_index(unsigned int index, hlml_device_t *device);
SIM_EXPORT hlml_return_t hlml_device_get_module_id(hlml_device_t device, unsigned int *module_id);
SIM_EXPORT hlml_return_t hlml_device_get_name(hlml_device_t device, char *name,
                                              unsigned int length);
SIM_EXPORT hlml_return_t hlml_device_get_uuid(hlml_device_t device, char *uuid,
                                              unsigned int length);
SIM_EXPORT hlml_return_t hlml_device_get_pci_info(hlml_device_t device, hlml_pci_info_t *pci);
SIM_EXPORT hlml_return_t hlml_device_get_memory_info(hlml_device_t device, hlml_memory_t *memory);
SIM_EXPORT hlml_return_t hlml_device_get_utilization_rates(hlml_device_t device,
                                                           hlml_utilization_t *utilization);
SIM_EXPORT hlml_return_t hlml_device_get_temperature(hlml_device_t device, hlml_sensor_t sensor,
                                                     unsigned int *temp);
SIM_EXPORT hlml_return_t hlml_device_get_power_usage(hlml_device_t device, unsigned int *power);
SIM_EXPORT hlml_return_t
hlml_device_get_power_management_default_limit(hlml_device_t device, unsigned int *default_limit);
SIM_EXPORT hlml_return_t hlml_device_get_total_energy_consumption(hlml_device_t device,
                                                                  unsigned long long *energy);
SIM_EXPORT hlml_return_t hlml_device_get_clock_info(hlml_device_t device, hlml_clock_type_t type,
                                                    unsigned int *clock);
SIM_EXPORT hlml_return_t
hlml_device_get_current_clocks_throttle_reasons(hlml_device_t device, unsigned long long *reasons);

/* ---- state ---------------------------------------------------------------------------------- */

static bool is_initialized;

static int64_t begin(const char *call)
{
    int64_t scripted = sim_enter(call);

    return scripted != 0 ? scripted : is_initialized ? HLML_SUCCESS : HLML_ERROR_UNINITIALIZED;
}

#define ENTER() \
    do { \
        int64_t code_ = begin(__func__); \
        if (code_ != 0) { \
            return (hlml_return_t)code_; \
        } \
    } while (0)

/* A handle is the device's struct, and is registered when it is first returned. */
static const struct sim_device *device_of(hlml_device_t handle, const char *call)
{
    sim_handle_check(handle, "card", call);
    return handle;
}

#define DEVICE() device_of(device, __func__)

hlml_return_t hlml_init(void)
{
    int64_t scripted = sim_enter(__func__);

    if (scripted != 0) {
        return (hlml_return_t)scripted;
    }
    if (is_initialized) {
        return HLML_ERROR_ALREADY_INITIALIZED;
    }
    is_initialized = true;
    return HLML_SUCCESS;
}

hlml_return_t hlml_shutdown(void)
{
    ENTER();
    for (uint32_t i = 0; i < sim_device_count("hpu"); i++) {
        if (sim_handle_is(sim_device_at(i), "card")) {
            sim_handle_remove(sim_device_at(i), "card", __func__);
        }
    }
    is_initialized = false;
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_count(unsigned int *device_count)
{
    ENTER();
    *device_count = sim_device_count("hpu");
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_handle_by_index(unsigned int index, hlml_device_t *device)
{
    uint32_t order[64];
    struct sim_device *found;

    ENTER();
    sim_device_count("hpu");
    if (index >= sim_order("pci", "pci", order, 64)) {
        return HLML_ERROR_INVALID_ARGUMENT;
    }
    found = sim_device_at(order[index]);
    if (!sim_handle_is(found, "card")) {
        sim_handle_add(found, "card");
    }
    *device = found;
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_module_id(hlml_device_t device, unsigned int *module_id)
{
    ENTER();
    *module_id = (unsigned int)sim_number(DEVICE(), "module_id", DEVICE()->physical);
    return HLML_SUCCESS;
}

static hlml_return_t give_text(const char *text, char *out, unsigned int length)
{
    if (strlen(text) >= length) {
        return HLML_ERROR_INSUFFICIENT_SIZE;
    }
    strcpy(out, text);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_name(hlml_device_t device, char *name, unsigned int length)
{
    ENTER();
    return give_text(DEVICE()->name, name, length);
}

hlml_return_t hlml_device_get_uuid(hlml_device_t device, char *uuid, unsigned int length)
{
    ENTER();
    return give_text(DEVICE()->uuid_text, uuid, length);
}

hlml_return_t hlml_device_get_pci_info(hlml_device_t device, hlml_pci_info_t *pci)
{
    const struct sim_device *found;

    ENTER();
    found = DEVICE();
    pci->bus = found->pci_bus;
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%.14s", found->pci_address);
    pci->device = found->pci_slot;
    pci->domain = found->pci_domain;
    pci->pci_device_id = 0x10201da3;
    snprintf(pci->caps.link_speed, sizeof(pci->caps.link_speed), "16.0 GT/s");
    snprintf(pci->caps.link_width, sizeof(pci->caps.link_width), "x16");
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_memory_info(hlml_device_t device, hlml_memory_t *memory)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;

    ENTER();
    sim_memory_info(DEVICE()->physical, &free_bytes, &total_bytes);
    free_bytes -= (uint64_t)sim_number(DEVICE(), "used_bytes", 0);
    memory->free = free_bytes;
    memory->total = total_bytes;
    memory->used = total_bytes - free_bytes;
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_utilization_rates(hlml_device_t device,
                                                hlml_utilization_t *utilization)
{
    ENTER();
    utilization->aip = (unsigned int)sim_number(DEVICE(), "utilization", 0);
    return HLML_SUCCESS;
}

/* The board is cooler than the processor. */
hlml_return_t hlml_device_get_temperature(hlml_device_t device, hlml_sensor_t sensor,
                                          unsigned int *temp)
{
    ENTER();
    *temp = (unsigned int)sim_number(DEVICE(), "temperature", 40) -
            (sensor == HLML_TEMPERATURE_ON_BOARD ? 12 : 0);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_power_usage(hlml_device_t device, unsigned int *power)
{
    ENTER();
    *power = (unsigned int)sim_number(DEVICE(), "power_mw", 90000);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_power_management_default_limit(hlml_device_t device,
                                                             unsigned int *default_limit)
{
    ENTER();
    *default_limit = (unsigned int)sim_number(DEVICE(), "power_limit_mw", 600000);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_total_energy_consumption(hlml_device_t device,
                                                       unsigned long long *energy)
{
    ENTER();
    *energy = (unsigned long long)sim_number(DEVICE(), "energy_mj", 0);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_clock_info(hlml_device_t device, hlml_clock_type_t type,
                                         unsigned int *clock)
{
    ENTER();
    *clock = (unsigned int)sim_number(DEVICE(), "clock_mhz", 1650) - (type == HLML_CLOCK_IC);
    return HLML_SUCCESS;
}

hlml_return_t hlml_device_get_current_clocks_throttle_reasons(hlml_device_t device,
                                                              unsigned long long *reasons)
{
    ENTER();
    *reasons = (unsigned long long)sim_number(DEVICE(), "throttle", 0);
    return HLML_SUCCESS;
}
