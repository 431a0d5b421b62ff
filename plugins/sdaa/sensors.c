/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Telemetry through TCML, and ranges through TCPX. Neither library's file name is verified: the
 * plugin tries libtcml.so, and uses TCPX if the program has already loaded it or option
 * tcpx_library contains its path.
 *
 * It is not documented whether TCML's numbers and the nodes of /dev count devices or cards (a card
 * contains four devices). The plugin assumes that both count devices, unless a comparison of the
 * counts of the runtime, of TCML and of the nodes shows that they count cards. If TCML's count is
 * neither the number of devices nor the number of cards, TCML's numbers cannot be mapped to
 * devices, and the sensors are not used.
 */
#include "sdaa.h"

#include <dlfcn.h>

struct tcml_utilization {
    uint32_t compute, memory;
};
struct tcml_memory {
    uint64_t total, free, used;
};
/* The first 72 bytes of tcmlPciInfo_t: the address as text, as numbers, and again as text. */
#define TCML_PCI_BYTES 512
struct tcml_pci {
    char short_text[16]; /* "0000:3D:00.0" */
    uint32_t domain, bus, slot, function;
    uint32_t ids, subsystem;
    char text[32]; /* "00000000:3D:00.0" */
    char others[TCML_PCI_BYTES - 72];
};
_Static_assert(offsetof(struct tcml_pci, domain) == 16, "tcmlPciInfo_t.domain");
_Static_assert(offsetof(struct tcml_pci, text) == 40, "tcmlPciInfo_t.busId");
_Static_assert(sizeof(struct tcml_pci) == TCML_PCI_BYTES, "room to grow");
_Static_assert(sizeof(struct tcml_utilization) == 8, "tcmlUtilization_t");
_Static_assert(sizeof(struct tcml_memory) == 24, "tcmlMemory_t");
_Static_assert(offsetof(struct tcml_memory, used) == 16, "tcmlMemory_t.used is the last");

/*
 * Functions return tcmlReturn_t, where 0 is success. A device argument is a number and precedes the
 * result arguments.
 */
struct tcml_api {
    int (*tcmlInitWithFlags)(uint64_t flags);
    int (*tcmlShutdown)(void);
    int (*tcmlDeviceGetCount)(uint32_t *count);
    int (*tcmlDeviceGetUuid)(uint32_t index, char *uuid, uint32_t length);
    int (*tcmlDeviceGetPciInfo)(uint32_t index, struct tcml_pci *pci); /* optional */
    int (*tcmlDeviceGetUtilizationRates)(uint32_t index, struct tcml_utilization *utilization);
    int (*tcmlDeviceGetMemoryInfo)(uint32_t index, struct tcml_memory *memory);
    int (*tcmlDeviceGetTemperature)(uint32_t index, float *temperature); /* degrees C */
};

/*
 * tcpxRangePush is known from code that calls it; tcpxRangePop is the matching name, not verified.
 * The return values of both are not known and are ignored.
 */
struct tcpx_api {
    void (*tcpxRangePush)(const char *message);
    void (*tcpxRangePop)(void);
};

struct sdaa_sensors {
    const struct ds_accel_host *host;
    pthread_mutex_t lock; /* guards the opening of the libraries and all calls of TCML */
    uint32_t is_tcml_tried;
    uint32_t has_tcml;
    uint32_t tcml_count;
    struct vendor_lib tcml_lib;
    struct tcml_api tcml;
    uint32_t is_tcpx_tried;
    atomic_uint has_tcpx;
    struct tcpx_api tcpx;
};

#define TCML(name) VENDOR_REQUIRED(struct tcml_api, name)

static const struct vendor_symbol tcml_symbols[] = {
    TCML(tcmlInitWithFlags),
    TCML(tcmlShutdown),
    TCML(tcmlDeviceGetCount),
    TCML(tcmlDeviceGetUuid),
    VENDOR_OPTIONAL(struct tcml_api, tcmlDeviceGetPciInfo, NULL),
    TCML(tcmlDeviceGetUtilizationRates),
    TCML(tcmlDeviceGetMemoryInfo),
    TCML(tcmlDeviceGetTemperature),
};
static const char *const tcml_names[] = {"libtcml.so", "/opt/tecoai/lib64/libtcml.so", NULL};
static const struct vendor_symbol tcpx_symbols[] = {
    VENDOR_REQUIRED(struct tcpx_api, tcpxRangePush),
    VENDOR_REQUIRED(struct tcpx_api, tcpxRangePop),
};

struct sdaa_sensors *sdaa_sensors_create(const struct ds_accel_host *host)
{
    struct sdaa_sensors *sensors = calloc(1, sizeof(*sensors));

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

void sdaa_sensors_destroy(struct sdaa_sensors *sensors)
{
    if (sensors == NULL) {
        return;
    }
    if (sensors->has_tcml) {
        (void)sensors->tcml.tcmlShutdown();
    }
    pthread_mutex_destroy(&sensors->lock);
    free(sensors);
}

/* Caller holds sensors->lock. */
static void open_tcml(struct sdaa_sensors *sensors)
{
    struct vendor_problem problem = {0};

    sensors->is_tcml_tried = 1;
    if (vendor_lib_open(&sensors->tcml_lib, sensors->host, "tcml_library", tcml_names, &problem) !=
            0 ||
        vendor_lib_bind(&sensors->tcml_lib, tcml_symbols,
                        sizeof(tcml_symbols) / sizeof(tcml_symbols[0]), &sensors->tcml,
                        &problem) != 0) {
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no sensors: %s", problem.detail);
        return;
    }
    if (sensors->tcml.tcmlInitWithFlags(0) != 0) {
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no sensors: tcmlInitWithFlags(0) failed");
        return;
    }
    sensors->has_tcml = 1;
    if (sensors->tcml.tcmlDeviceGetCount(&sensors->tcml_count) != 0) {
        sensors->tcml_count = 0;
    }
}

/* Caller holds the lock of sdaa->sensors. */
static uint32_t devices_per_node(const struct sdaa *sdaa)
{
    struct sdaa_sensors *sensors = sdaa->sensors;
    const uint32_t if_cards = sdaa->node_count * SDAA_DEVICES_PER_CARD;

    if (sdaa->all_count != 0) {
        return sdaa->all_count == if_cards ? SDAA_DEVICES_PER_CARD : 1;
    }
    if (!sensors->is_tcml_tried) {
        open_tcml(sensors);
    }
    return sensors->has_tcml && sensors->tcml_count == if_cards ? SDAA_DEVICES_PER_CARD : 1;
}

uint32_t sdaa_devices_per_node(const struct sdaa *sdaa)
{
    uint32_t count;

    pthread_mutex_lock(&sdaa->sensors->lock);
    count = devices_per_node(sdaa);
    pthread_mutex_unlock(&sdaa->sensors->lock);
    return count;
}

/*
 * Finds TCML's number for a device, or for its card if *is_card_out is set; returns -1 if the
 * number cannot be determined. Caller holds the lock of the sensors.
 */
static int tcml_index(const struct sdaa *sdaa, uint32_t vendor_index, uint32_t *index_out,
                      int *is_card_out)
{
    struct sdaa_sensors *sensors = sdaa->sensors;
    const uint32_t device_count = sdaa->node_count * devices_per_node(sdaa);

    if (!sensors->is_tcml_tried) {
        open_tcml(sensors);
    }
    if (!sensors->has_tcml || sensors->tcml_count == 0) {
        return -1;
    }
    *is_card_out = sensors->tcml_count * SDAA_DEVICES_PER_CARD == device_count;
    if (!*is_card_out && sensors->tcml_count != device_count) {
        return -1;
    }
    *index_out = *is_card_out ? vendor_index / SDAA_DEVICES_PER_CARD : vendor_index;
    return *index_out < sensors->tcml_count ? 0 : -1;
}

int sdaa_sensors_uuid(const struct sdaa *sdaa, uint32_t vendor_index, char *text, size_t text_size,
                      int *is_card_out)
{
    struct sdaa_sensors *sensors = sdaa->sensors;
    uint32_t index;
    int result;

    pthread_mutex_lock(&sensors->lock);
    result = tcml_index(sdaa, vendor_index, &index, is_card_out);
    if (result == 0) {
        result = sensors->tcml.tcmlDeviceGetUuid(index, text, (uint32_t)text_size) == 0 &&
                         text[0] != '\0'
                     ? 0
                     : -1;
    }
    pthread_mutex_unlock(&sensors->lock);
    return result;
}

/*
 * Reads the PCI address. The layout comes from a header and is not verified: the address is used
 * only if its text and its numbers agree.
 */
static int read_pci(const struct tcml_api *tcml, uint32_t index, char *address, size_t address_size,
                    uint32_t *bus_out)
{
    struct tcml_pci pci;
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    unsigned int function = 0;

    memset(&pci, 0, sizeof(pci));
    if (tcml->tcmlDeviceGetPciInfo == NULL || tcml->tcmlDeviceGetPciInfo(index, &pci) != 0) {
        return -1;
    }
    pci.text[sizeof(pci.text) - 1] = '\0';
    if (sscanf(pci.text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 ||
        domain != pci.domain || bus != pci.bus || slot != pci.slot || function != pci.function ||
        bus > 255 || slot > 31 || function > 7) {
        return -1;
    }
    snprintf(address, address_size, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    *bus_out = bus;
    return 0;
}

int sdaa_sensors_pci(const struct sdaa *sdaa, uint32_t vendor_index, char *address,
                     size_t address_size, uint32_t *bus_out)
{
    struct sdaa_sensors *sensors = sdaa->sensors;
    uint32_t index;
    int is_card;
    int result;

    pthread_mutex_lock(&sensors->lock);
    result = tcml_index(sdaa, vendor_index, &index, &is_card);
    if (result == 0) {
        result = read_pci(&sensors->tcml, index, address, address_size, bus_out);
    }
    pthread_mutex_unlock(&sensors->lock);
    return result;
}

/*
 * Reads TCML's values. If TCML counts cards, the memory is not read, because it would be the sum of
 * the memory of four devices.
 */
static void ask_tcml(const struct tcml_api *tcml, uint32_t index, int is_card,
                     struct ds_accel_telemetry *telemetry)
{
    struct tcml_utilization utilization = {0, 0};
    struct tcml_memory memory = {0, 0, 0};
    float temperature = 0;

    if (tcml->tcmlDeviceGetUtilizationRates(index, &utilization) == 0 &&
        utilization.compute <= 100 && utilization.memory <= 100) {
        telemetry->utilization_percent = utilization.compute;
        telemetry->memory_utilization_percent = utilization.memory;
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION | DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION;
    }
    if (!is_card && tcml->tcmlDeviceGetMemoryInfo(index, &memory) == 0 &&
        memory.used <= memory.total) {
        telemetry->memory_total_bytes = memory.total;
        telemetry->memory_used_bytes = memory.used;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
    if (tcml->tcmlDeviceGetTemperature(index, &temperature) == 0 && temperature > -100 &&
        temperature < 300) {
        telemetry->temperature_millidegrees_c = (int32_t)(temperature * 1000);
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
}

int32_t sdaa_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    const struct sdaa *sdaa = instance->runtime;
    const struct ds_accel_device_identity *identity = &instance->devices[device_index].identity;
    uint32_t index;
    int is_card;

    (void)error;
    if ((identity->valid & DS_ACCEL_IDENTITY_VENDOR_INDEX) == 0) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&sdaa->sensors->lock);
    if (tcml_index(sdaa, identity->vendor_index, &index, &is_card) == 0) {
        ask_tcml(&sdaa->sensors->tcml, index, is_card, telemetry);
    }
    pthread_mutex_unlock(&sdaa->sensors->lock);
    return DS_ACCEL_OK;
}

/* -- ranges -- */

/* Returns 0 if TCPX can be called, else -1; ranges are then ignored. */
static int open_tcpx(struct sdaa_sensors *sensors)
{
    static const char *const none[] = {NULL};
    struct vendor_lib lib = {.handle = RTLD_DEFAULT};
    struct vendor_problem problem = {0};
    char path[256];

    if (atomic_load(&sensors->has_tcpx) != 0) {
        return 0;
    }
    pthread_mutex_lock(&sensors->lock);
    if (!sensors->is_tcpx_tried) {
        sensors->is_tcpx_tried = 1;
        if ((sensors->host->config_get(sensors->host, "tcpx_library", path, sizeof(path), NULL) !=
                 DS_ACCEL_OK ||
             vendor_lib_open(&lib, sensors->host, "tcpx_library", none, &problem) == 0) &&
            vendor_lib_bind(&lib, tcpx_symbols, 2, &sensors->tcpx, &problem) == 0) {
            atomic_store(&sensors->has_tcpx, 1);
        }
    }
    pthread_mutex_unlock(&sensors->lock);
    return atomic_load(&sensors->has_tcpx) != 0 ? 0 : -1;
}

int32_t sdaa_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error)
{
    struct sdaa_sensors *sensors = ((struct sdaa *)instance->runtime)->sensors;

    (void)domain;
    (void)category;
    (void)error;
    if (open_tcpx(sensors) != 0) {
        return DS_ACCEL_OK;
    }
    sensors->tcpx.tcpxRangePush(message);
    return DS_ACCEL_OK;
}

int32_t sdaa_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error)
{
    struct sdaa_sensors *sensors = ((struct sdaa *)instance->runtime)->sensors;

    (void)domain;
    (void)error;
    if (open_tcpx(sensors) != 0) {
        return DS_ACCEL_OK;
    }
    sensors->tcpx.tcpxRangePop();
    return DS_ACCEL_OK;
}
