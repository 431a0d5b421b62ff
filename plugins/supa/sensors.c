/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Telemetry through BRML, according to brml.h; ranges through BRTX, according to code that calls
 * it. The file name of BRTX's library is not known: the plugin uses BRTX if the program has already
 * loaded it, or option brtx_library contains its path. BRML ignores the variable that hides
 * devices, so the plugin finds a device by its PCI address.
 */
#include "supa.h"

#include <dlfcn.h>
#include <strings.h>

typedef void *brml_device_t;

struct brml_pci {
    uint32_t domain, bus, device, function, device_id, subsystem_id;
    char address[32];
};
struct brml_memory {
    uint64_t total, free, used;
};
struct brml_utilization {
    uint32_t compute, memory;
};
_Static_assert(sizeof(struct brml_pci) == 56, "brmlPciInfo_t");
_Static_assert(sizeof(struct brml_memory) == 24, "brmlMemory_t");
_Static_assert(offsetof(struct brml_memory, used) == 16, "brmlMemory_t.used is the last");
_Static_assert(sizeof(struct brml_utilization) == 8, "brmlUtilization_t");
enum {
    BRML_SENSOR_GPU = 0
};

/* Functions return brmlReturn_t, where 0 is success. Power is in milliwatts. */
struct brml_api {
    int (*brmlInit_v2)(void);
    int (*brmlInit)(void);
    int (*brmlShutdown)(void);
    int (*brmlDeviceGetCount)(unsigned int *count);
    int (*brmlDeviceGetHandleByIndex)(unsigned int index, brml_device_t *device);
    int (*brmlDeviceGetUUID)(brml_device_t device, char *uuid, unsigned int length);
    int (*brmlDeviceGetMinorNumber)(brml_device_t device, unsigned int *minor);
    int (*brmlDeviceGetPciInfo)(brml_device_t device, struct brml_pci *pci);
    int (*brmlDeviceGetMemoryInfo)(brml_device_t device, struct brml_memory *memory);
    int (*brmlDeviceGetUtilizationRates)(brml_device_t device,
                                         struct brml_utilization *utilization);
    int (*brmlDeviceGetTemperature)(brml_device_t device, int sensor, unsigned int *temperature);
    int (*brmlDeviceGetPowerUsage)(brml_device_t device, unsigned int *power);
};

/* The return values of these functions are not verified and are ignored. */
struct brtx_api {
    void (*brtxRangePushA)(const char *message);
    void (*brtxRangePop)(void);
};

struct supa_sensors {
    const struct ds_accel_host *host;
    pthread_mutex_t lock; /* guards the opening of the libraries and all calls of BRML */
    uint32_t is_brml_tried, has_brml;
    struct vendor_lib brml_lib;
    struct brml_api brml;
    uint32_t is_brtx_tried;
    atomic_uint has_brtx;
    struct brtx_api brtx;
};

#define BRML(name) VENDOR_REQUIRED(struct brml_api, name)

static const struct vendor_symbol brml_symbols[] = {
    VENDOR_OPTIONAL(struct brml_api, brmlInit_v2, NULL),
    VENDOR_OPTIONAL(struct brml_api, brmlInit, NULL),
    BRML(brmlShutdown),
    BRML(brmlDeviceGetCount),
    BRML(brmlDeviceGetHandleByIndex),
    BRML(brmlDeviceGetUUID),
    BRML(brmlDeviceGetMinorNumber),
    BRML(brmlDeviceGetPciInfo),
    BRML(brmlDeviceGetMemoryInfo),
    BRML(brmlDeviceGetUtilizationRates),
    BRML(brmlDeviceGetTemperature),
    BRML(brmlDeviceGetPowerUsage),
};
static const char *const brml_names[] = {"libbiren-ml.so.1", "libbiren-ml.so",
                                         "/usr/lib/libbiren-ml.so.1", NULL};
static const struct vendor_symbol brtx_symbols[] = {
    VENDOR_REQUIRED(struct brtx_api, brtxRangePushA),
    VENDOR_REQUIRED(struct brtx_api, brtxRangePop),
};

struct supa_sensors *supa_sensors_create(const struct ds_accel_host *host)
{
    struct supa_sensors *sensors = calloc(1, sizeof(*sensors));

    if (sensors == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&sensors->lock, NULL) != 0) {
        free(sensors);
        return NULL;
    }
    sensors->host = host;
    return sensors;
}

void supa_sensors_destroy(struct supa_sensors *sensors)
{
    if (sensors == NULL) {
        return;
    }
    if (sensors->has_brml) {
        (void)sensors->brml.brmlShutdown();
    }
    pthread_mutex_destroy(&sensors->lock);
    free(sensors);
}

/* Caller holds sensors->lock. */
static void open_brml(struct supa_sensors *sensors)
{
    struct vendor_problem problem = {0};
    int code = -1;

    sensors->is_brml_tried = 1;
    if (vendor_lib_open(&sensors->brml_lib, sensors->host, "brml_library", brml_names, &problem) !=
            0 ||
        vendor_lib_bind(&sensors->brml_lib, brml_symbols,
                        sizeof(brml_symbols) / sizeof(brml_symbols[0]), &sensors->brml,
                        &problem) != 0) {
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no sensors: %s", problem.detail);
        return;
    }
    if (sensors->brml.brmlInit_v2 != NULL) {
        code = sensors->brml.brmlInit_v2();
    } else if (sensors->brml.brmlInit != NULL) {
        code = sensors->brml.brmlInit();
    }
    sensors->has_brml = code == 0;
    if (code != 0) {
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no sensors: brmlInit: %d", code);
    }
}

/* Finds BRML's device at the PCI address; -1: none. Caller holds sensors->lock. */
static int find_device(struct supa_sensors *sensors, const char *pci_address,
                       brml_device_t *device_out)
{
    struct brml_pci pci;
    char address[32];
    unsigned int count = 0;
    unsigned int i;

    if (!sensors->is_brml_tried) {
        open_brml(sensors);
    }
    if (!sensors->has_brml || sensors->brml.brmlDeviceGetCount(&count) != 0) {
        return -1;
    }
    for (i = 0; i < count; i++) {
        memset(&pci, 0, sizeof(pci));
        if (sensors->brml.brmlDeviceGetHandleByIndex(i, device_out) != 0 ||
            sensors->brml.brmlDeviceGetPciInfo(*device_out, &pci) != 0) {
            continue;
        }
        snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device,
                 pci.function);
        if (strcasecmp(address, pci_address) == 0) {
            return 0;
        }
    }
    return -1;
}

void supa_sensors_identify(struct supa_sensors *sensors, struct ds_accel_device_identity *identity)
{
    struct brml_memory memory = {0, 0, 0};
    brml_device_t device = NULL;
    unsigned int minor = 0;

    pthread_mutex_lock(&sensors->lock);
    if (find_device(sensors, identity->pci_address, &device) == 0) {
        if (sensors->brml.brmlDeviceGetUUID(device, identity->uuid_text,
                                            sizeof(identity->uuid_text)) != 0) {
            identity->uuid_text[0] = '\0';
        }
        if (sensors->brml.brmlDeviceGetMinorNumber(device, &minor) == 0) {
            snprintf(identity->node_path, sizeof(identity->node_path), "/dev/biren/card_%u", minor);
        }
        if (sensors->brml.brmlDeviceGetMemoryInfo(device, &memory) == 0) {
            identity->total_memory_bytes = memory.total;
        }
    }
    pthread_mutex_unlock(&sensors->lock);
}

static void ask_brml(const struct brml_api *brml, brml_device_t device,
                     struct ds_accel_telemetry *telemetry)
{
    struct brml_utilization utilization = {0, 0};
    struct brml_memory memory = {0, 0, 0};
    unsigned int value = 0;

    if (brml->brmlDeviceGetUtilizationRates(device, &utilization) == 0 &&
        utilization.compute <= 100 && utilization.memory <= 100) {
        telemetry->utilization_percent = utilization.compute;
        telemetry->memory_utilization_percent = utilization.memory;
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION | DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION;
    }
    if (brml->brmlDeviceGetMemoryInfo(device, &memory) == 0 && memory.used <= memory.total) {
        telemetry->memory_total_bytes = memory.total;
        telemetry->memory_used_bytes = memory.used;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
    if (brml->brmlDeviceGetTemperature(device, BRML_SENSOR_GPU, &value) == 0 && value < 300) {
        telemetry->temperature_millidegrees_c = (int32_t)value * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
    if (brml->brmlDeviceGetPowerUsage(device, &value) == 0) {
        telemetry->power_milliwatts = value;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
    }
}

int32_t supa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct supa_sensors *sensors = ((struct supa *)instance->runtime)->sensors;
    const char *pci_address = instance->devices[device_index].identity.pci_address;
    uint32_t power = vendor_pci_power_state(instance->host, pci_address);
    brml_device_t device = NULL;

    (void)error;
    if (power == DS_ACCEL_POWER_SUSPENDED || power == DS_ACCEL_POWER_OFF) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&sensors->lock);
    if (find_device(sensors, pci_address, &device) == 0) {
        ask_brml(&sensors->brml, device, telemetry);
    }
    pthread_mutex_unlock(&sensors->lock);
    return DS_ACCEL_OK;
}

/* -- ranges -- */

/* Returns 0 if BRTX can be called, else -1: no profiler records ranges then. */
static int open_brtx(struct supa_sensors *sensors)
{
    static const char *const none[] = {NULL};
    struct vendor_lib lib = {.handle = RTLD_DEFAULT};
    struct vendor_problem problem = {0};
    char path[256];

    if (atomic_load(&sensors->has_brtx) != 0) {
        return 0;
    }
    pthread_mutex_lock(&sensors->lock);
    if (!sensors->is_brtx_tried) {
        sensors->is_brtx_tried = 1;
        if ((sensors->host->config_get(sensors->host, "brtx_library", path, sizeof(path), NULL) !=
                 DS_ACCEL_OK ||
             vendor_lib_open(&lib, sensors->host, "brtx_library", none, &problem) == 0) &&
            vendor_lib_bind(&lib, brtx_symbols, 2, &sensors->brtx, &problem) == 0) {
            atomic_store(&sensors->has_brtx, 1);
        }
    }
    pthread_mutex_unlock(&sensors->lock);
    return atomic_load(&sensors->has_brtx) != 0 ? 0 : -1;
}

int32_t supa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error)
{
    struct supa_sensors *sensors = ((struct supa *)instance->runtime)->sensors;

    (void)domain;
    (void)category;
    (void)error;
    if (open_brtx(sensors) == 0) {
        sensors->brtx.brtxRangePushA(message);
    }
    return DS_ACCEL_OK;
}

int32_t supa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error)
{
    struct supa_sensors *sensors = ((struct supa *)instance->runtime)->sensors;

    (void)domain;
    (void)error;
    if (open_brtx(sensors) == 0) {
        sensors->brtx.brtxRangePop();
    }
    return DS_ACCEL_OK;
}
