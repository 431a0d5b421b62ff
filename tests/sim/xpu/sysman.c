/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sysman: cards in the file's order, regardless of ZE_AFFINITY_MASK. A card has each sensor once,
 * or once for each of its tiles. Before zesInit, a device of the core API is accepted if
 * ZES_ENABLE_SYSMAN was 1.
 *
 * Facts of a device: "utilization_percent", "temperature", "power_milliwatts", "core_clock_mhz",
 * "memory_clock_mhz", "throttle" (flags), "process_pid", "process_bytes", "port_peer" (position of
 * the card at the other end), "sysman" (0: zesInit fails).
 */
#include "clock.h"
#include "shim.h"

#include <pthread.h>
#include <stdio.h>

#define CARD_MAGIC 0x7a636172u
#define SENSOR_MAGIC 0x7a73656eu
#define CARDS 16u
#define TILES 8u

enum kind {
    MEMORY,
    ENGINE,
    TEMPERATURE,
    POWER,
    FREQUENCY,
    PORT,
    KINDS
};

struct sensor {
    uint32_t magic;
    enum kind kind;
    struct card *card;
    uint32_t number; /* a tile, or a card's first or second sensor */
};

struct card {
    uint32_t magic;
    struct device *device;
    uint32_t tile_count;
    const struct sim_device *tiles[TILES];
    struct sensor sensors[KINDS][TILES];
};

static struct card cards[CARDS];
static uint32_t card_count;
static bool is_started;

static void find_cards(void)
{
    uint32_t order[CARDS];
    struct device **known;
    uint32_t known_count;

    sim_device_count("xpu");
    card_count = sim_order("file", "file", order, CARDS);
    known_count = all_cards(&known);
    for (uint32_t i = 0; i < card_count; i++) {
        struct card *card = &cards[i];

        card->magic = CARD_MAGIC;
        card->tile_count = 0;
        for (uint32_t k = 0; k < known_count; k++) {
            if (known[k]->card->physical == order[i]) {
                card->device = known[k];
            }
        }
        for (uint32_t k = 0; k < sim_device_count("xpu") && card->tile_count < TILES; k++) {
            if (sim_device_at(k)->parent == (int32_t)order[i]) {
                card->tiles[card->tile_count++] = sim_device_at(k);
            }
        }
    }
    is_started = true;
}

static struct card *card_of(void *handle, const char *call)
{
    for (uint32_t i = 0; i < card_count; i++) {
        if (handle == &cards[i]) {
            return &cards[i];
        }
    }
    if (!has_legacy_sysman()) {
        sim_misuse("%s: %p is no device of Sysman, and ZES_ENABLE_SYSMAN was not 1", call, handle);
    }
    if (!is_started) {
        find_cards();
    }
    for (uint32_t i = 0; i < card_count; i++) {
        if (check_device(handle, call)->card == cards[i].device->card) {
            return &cards[i];
        }
    }
    return NULL;
}

static const struct sim_device *facts_of(const struct card *card)
{
    return card->device->card;
}

SIM_EXPORT ze_result_t zesInit(uint32_t flags);
SIM_EXPORT ze_result_t zesInit(uint32_t flags)
{
    ENTER();
    if (flags != 0) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    if (!is_initialized() || sim_vendor_number("sysman", 1) == 0) {
        return ZE_RESULT_ERROR_UNINITIALIZED;
    }
    find_cards();
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDriverGet(uint32_t *count, void **drivers);
SIM_EXPORT ze_result_t zesDriverGet(uint32_t *count, void **drivers)
{
    ENTER();
    NEED_POINTER(count);
    if (!is_started) {
        return ZE_RESULT_ERROR_UNINITIALIZED;
    }
    if (*count > 0 && drivers != NULL) {
        drivers[0] = cards;
    }
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceGet(void *driver, uint32_t *count, void **devices);
SIM_EXPORT ze_result_t zesDeviceGet(void *driver, uint32_t *count, void **devices)
{
    ENTER();
    NEED_POINTER(count);
    if (driver != cards) {
        sim_misuse("%s: %p is no driver of Sysman", __func__, driver);
    }
    for (uint32_t i = 0; devices != NULL && i < *count && i < card_count; i++) {
        devices[i] = &cards[i];
    }
    *count = *count == 0 || *count > card_count ? card_count : *count;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    ze_device_properties_t core;
    uint32_t numSubdevices;
    char serialNumber[64], boardNumber[64], brandName[64], modelName[64], vendorName[64],
        driverVersion[64];
} zes_device_properties_t;
SIM_ASSERT(sizeof(zes_device_properties_t) == 776, "by zes_api.h");
SIM_ASSERT(offsetof(zes_device_properties_t, numSubdevices) == 384, "by zes_api.h");

SIM_EXPORT ze_result_t zesDeviceGetProperties(void *device, zes_device_properties_t *properties);
SIM_EXPORT ze_result_t zesDeviceGetProperties(void *device, zes_device_properties_t *properties)
{
    const struct card *card;

    ENTER();
    card = card_of(device, __func__);
    check_base(properties, 0x1, __func__);
    fill_properties(card->device, &properties->core);
    properties->numSubdevices = card->tile_count;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    ze_pci_address_t address;
    struct {
        int32_t gen, width;
        int64_t maxBandwidth;
    } maxSpeed;
    ze_bool_t haveBandwidthCounters, havePacketCounters, haveReplayCounters;
} zes_pci_properties_t;
SIM_ASSERT(sizeof(zes_pci_properties_t) == 56, "by zes_api.h");

SIM_EXPORT ze_result_t zesDevicePciGetProperties(void *device, zes_pci_properties_t *properties);
SIM_EXPORT ze_result_t zesDevicePciGetProperties(void *device, zes_pci_properties_t *properties)
{
    ENTER();
    check_base(properties, 0x2, __func__);
    fill_address(card_of(device, __func__)->device, &properties->address);
    return ZE_RESULT_SUCCESS;
}

/* ---- sensors -------------------------------------------------------------------------------- */

/* Guards the creation of sensors: a caller that has a sensor may read it. */
static pthread_mutex_t sensors_lock = PTHREAD_MUTEX_INITIALIZER;

static ze_result_t enumerate(void *device, enum kind kind, uint32_t *count, struct sensor **list,
                             const char *call)
{
    struct card *card = card_of(device, call);
    uint32_t there = card->tile_count > 0 ? card->tile_count : 1;

    if (kind == POWER && card->tile_count == 0) {
        there = 1;
    } else if (kind == POWER) {
        there = card->tile_count + 1; /* the last one is the card's own */
    } else if ((kind == TEMPERATURE || kind == FREQUENCY) && card->tile_count == 0) {
        there = 2;
    } else if (kind == PORT) {
        there = sim_number(facts_of(card), "port_peer", -1) >= 0 ? 1 : 0;
    }
    NEED_POINTER(count);
    pthread_mutex_lock(&sensors_lock);
    for (uint32_t i = 0; list != NULL && i < *count && i < there; i++) {
        if (card->sensors[kind][i].magic != SENSOR_MAGIC) {
            card->sensors[kind][i] =
                (struct sensor){.magic = SENSOR_MAGIC, .kind = kind, .card = card, .number = i};
        }
        list[i] = &card->sensors[kind][i];
    }
    pthread_mutex_unlock(&sensors_lock);
    *count = *count == 0 || *count > there ? there : *count;
    return ZE_RESULT_SUCCESS;
}

static struct card *sensor_card(const struct sensor *sensor, enum kind kind, const char *call)
{
    if (sensor == NULL || sensor->magic != SENSOR_MAGIC || sensor->kind != kind) {
        sim_misuse("%s: %p is no sensor of that kind", call, (const void *)sensor);
    }
    return sensor->card;
}

/* Returns whether the sensor belongs to a tile, and stores the tile. */
static ze_bool_t on_tile(const struct sensor *sensor, uint32_t *tile_out)
{
    *tile_out = sensor->number < sensor->card->tile_count ? sensor->number : 0;
    return sensor->number < sensor->card->tile_count;
}

#define ENUMERATE(name, kind) \
    SIM_EXPORT ze_result_t name(void *device, uint32_t *count, struct sensor **list); \
    SIM_EXPORT ze_result_t name(void *device, uint32_t *count, struct sensor **list) \
    { \
        ENTER(); \
        return enumerate(device, kind, count, list, __func__); \
    }

ENUMERATE(zesDeviceEnumMemoryModules, MEMORY)
ENUMERATE(zesDeviceEnumEngineGroups, ENGINE)
ENUMERATE(zesDeviceEnumTemperatureSensors, TEMPERATURE)
ENUMERATE(zesDeviceEnumPowerDomains, POWER)
ENUMERATE(zesDeviceEnumFrequencyDomains, FREQUENCY)
ENUMERATE(zesDeviceEnumFabricPorts, PORT)

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t type;
    ze_bool_t onSubdevice;
    uint32_t subdeviceId, location;
    uint64_t physicalSize;
    int32_t busWidth, numChannels;
} zes_mem_properties_t;
SIM_ASSERT(sizeof(zes_mem_properties_t) == 48, "by zes_api.h");

SIM_EXPORT ze_result_t zesMemoryGetProperties(struct sensor *memory,
                                              zes_mem_properties_t *properties);
SIM_EXPORT ze_result_t zesMemoryGetProperties(struct sensor *memory,
                                              zes_mem_properties_t *properties)
{
    ENTER();
    sensor_card(memory, MEMORY, __func__);
    check_base(properties, 0xb, __func__);
    properties->onSubdevice = on_tile(memory, &properties->subdeviceId);
    properties->location = 1;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t health;
    uint64_t free, size;
} zes_mem_state_t;
SIM_ASSERT(sizeof(zes_mem_state_t) == 40, "by zes_api.h");

SIM_EXPORT ze_result_t zesMemoryGetState(struct sensor *memory, zes_mem_state_t *state);
SIM_EXPORT ze_result_t zesMemoryGetState(struct sensor *memory, zes_mem_state_t *state)
{
    const struct card *card;
    const struct sim_device *whose;

    ENTER();
    card = sensor_card(memory, MEMORY, __func__);
    check_base(state, 0x1e, __func__);
    whose = card->tile_count > 0 ? card->tiles[memory->number] : facts_of(card);
    state->health = 1;
    sim_memory_info(whose->physical, &state->free, &state->size);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t type;
    ze_bool_t onSubdevice;
    uint32_t subdeviceId;
} zes_engine_properties_t;
SIM_ASSERT(sizeof(zes_engine_properties_t) == 32, "by zes_api.h");

SIM_EXPORT ze_result_t zesEngineGetProperties(struct sensor *engine,
                                              zes_engine_properties_t *properties);
SIM_EXPORT ze_result_t zesEngineGetProperties(struct sensor *engine,
                                              zes_engine_properties_t *properties)
{
    ENTER();
    sensor_card(engine, ENGINE, __func__);
    check_base(properties, 0x5, __func__);
    properties->type = 0;
    properties->onSubdevice = on_tile(engine, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint64_t activeTime, timestamp;
} zes_engine_stats_t;
SIM_ASSERT(sizeof(zes_engine_stats_t) == 16, "by zes_api.h");

SIM_EXPORT ze_result_t zesEngineGetActivity(struct sensor *engine, zes_engine_stats_t *stats);
SIM_EXPORT ze_result_t zesEngineGetActivity(struct sensor *engine, zes_engine_stats_t *stats)
{
    uint64_t busy;

    ENTER();
    busy = (uint64_t)sim_number(facts_of(sensor_card(engine, ENGINE, __func__)),
                                "utilization_percent", 37);
    stats->timestamp = now_ns() / 100000 * 100; /* a multiple of 100, for a whole quotient */
    stats->activeTime = stats->timestamp / 100 * busy;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t type;
    ze_bool_t onSubdevice;
    uint32_t subdeviceId;
    double maxTemperature;
    ze_bool_t isCriticalTempSupported, isThreshold1Supported, isThreshold2Supported;
} zes_temp_properties_t;
SIM_ASSERT(sizeof(zes_temp_properties_t) == 48, "by zes_api.h");

/* A card without tiles has two sensors: first the memory's, then the processor's. */
SIM_EXPORT ze_result_t zesTemperatureGetProperties(struct sensor *sensor,
                                                   zes_temp_properties_t *properties);
SIM_EXPORT ze_result_t zesTemperatureGetProperties(struct sensor *sensor,
                                                   zes_temp_properties_t *properties)
{
    const struct card *card;

    ENTER();
    card = sensor_card(sensor, TEMPERATURE, __func__);
    check_base(properties, 0x14, __func__);
    properties->type = card->tile_count == 0 && sensor->number == 0 ? 2 : 1;
    properties->onSubdevice = on_tile(sensor, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesTemperatureGetState(struct sensor *sensor, double *degrees);
SIM_EXPORT ze_result_t zesTemperatureGetState(struct sensor *sensor, double *degrees)
{
    const struct card *card;

    ENTER();
    card = sensor_card(sensor, TEMPERATURE, __func__);
    *degrees = (double)sim_number(facts_of(card), "temperature", 45) +
               (card->tile_count == 0 && sensor->number == 0 ? 30 : sensor->number) + 0.5;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    ze_bool_t onSubdevice;
    uint32_t subdeviceId;
    ze_bool_t canControl, isEnergyThresholdSupported;
    int32_t defaultLimit, minLimit, maxLimit;
} zes_power_properties_t;
SIM_ASSERT(sizeof(zes_power_properties_t) == 40, "by zes_api.h");

SIM_EXPORT ze_result_t zesPowerGetProperties(struct sensor *domain,
                                             zes_power_properties_t *properties);
SIM_EXPORT ze_result_t zesPowerGetProperties(struct sensor *domain,
                                             zes_power_properties_t *properties)
{
    ENTER();
    sensor_card(domain, POWER, __func__);
    check_base(properties, 0xd, __func__);
    properties->onSubdevice = on_tile(domain, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint64_t energy, timestamp;
} zes_power_energy_counter_t;
SIM_ASSERT(sizeof(zes_power_energy_counter_t) == 16, "by zes_api.h");

/* Returns microjoules and microseconds: a tile has its share of the card's energy. */
SIM_EXPORT ze_result_t zesPowerGetEnergyCounter(struct sensor *domain,
                                                zes_power_energy_counter_t *energy);
SIM_EXPORT ze_result_t zesPowerGetEnergyCounter(struct sensor *domain,
                                                zes_power_energy_counter_t *energy)
{
    const struct card *card;
    uint64_t milliwatts;
    uint32_t tile;

    ENTER();
    card = sensor_card(domain, POWER, __func__);
    milliwatts = (uint64_t)sim_number(facts_of(card), "power_milliwatts", 250000);
    if (on_tile(domain, &tile)) {
        milliwatts /= card->tile_count;
    }
    energy->timestamp = now_ns() / 1000000 * 1000;
    energy->energy = energy->timestamp / 1000 * milliwatts +
                     (uint64_t)sim_number(facts_of(card), "energy_microjoules", 0);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    void *pNext;
    uint32_t type;
    ze_bool_t onSubdevice;
    uint32_t subdeviceId;
    ze_bool_t canControl, isThrottleEventSupported;
    double min, max;
} zes_freq_properties_t;
SIM_ASSERT(sizeof(zes_freq_properties_t) == 48, "by zes_api.h");

SIM_EXPORT ze_result_t zesFrequencyGetProperties(struct sensor *domain,
                                                 zes_freq_properties_t *properties);
SIM_EXPORT ze_result_t zesFrequencyGetProperties(struct sensor *domain,
                                                 zes_freq_properties_t *properties)
{
    const struct card *card;

    ENTER();
    card = sensor_card(domain, FREQUENCY, __func__);
    check_base(properties, 0x9, __func__);
    properties->type = card->tile_count == 0 && domain->number == 1 ? 1 : 0;
    properties->onSubdevice = on_tile(domain, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    double currentVoltage, request, tdp, efficient, actual;
    uint32_t throttleReasons;
} zes_freq_state_t;
SIM_ASSERT(sizeof(zes_freq_state_t) == 64, "by zes_api.h");

SIM_EXPORT ze_result_t zesFrequencyGetState(struct sensor *domain, zes_freq_state_t *state);
SIM_EXPORT ze_result_t zesFrequencyGetState(struct sensor *domain, zes_freq_state_t *state)
{
    const struct card *card;
    bool is_memory;

    ENTER();
    card = sensor_card(domain, FREQUENCY, __func__);
    check_base(state, 0x1b, __func__);
    is_memory = card->tile_count == 0 && domain->number == 1;
    state->actual = (double)(is_memory ? sim_number(facts_of(card), "memory_clock_mhz", 3200)
                                       : sim_number(facts_of(card), "core_clock_mhz", 1550));
    state->request = state->actual + 50;
    state->throttleReasons = (uint32_t)sim_number(facts_of(card), "throttle", 0);
    return ZE_RESULT_SUCCESS;
}

/* ---- processes and ports -------------------------------------------------------------------- */

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t processId;
    uint64_t memSize, sharedSize;
    uint32_t engines;
} zes_process_state_t;
SIM_ASSERT(sizeof(zes_process_state_t) == 48, "by zes_api.h");

SIM_EXPORT ze_result_t zesDeviceProcessesGetState(void *device, uint32_t *count,
                                                  zes_process_state_t *processes);
SIM_EXPORT ze_result_t zesDeviceProcessesGetState(void *device, uint32_t *count,
                                                  zes_process_state_t *processes)
{
    const struct sim_device *facts;
    uint32_t there;

    ENTER();
    NEED_POINTER(count);
    facts = facts_of(card_of(device, __func__));
    there = sim_number(facts, "process_pid", 0) > 0 ? 1 : 0;
    if (processes != NULL && *count > 0 && there > 0) {
        check_base(&processes[0], 0x16, __func__);
        processes[0].processId = (uint32_t)sim_number(facts, "process_pid", 0);
        processes[0].memSize = (uint64_t)sim_number(facts, "process_bytes", 1 << 20);
    }
    *count = there;
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t fabricId, attachId;
    uint8_t portNumber;
} zes_fabric_port_id_t;
typedef struct {
    int64_t bitRate;
    int32_t width;
} zes_fabric_port_speed_t;
typedef struct {
    uint32_t stype;
    void *pNext;
    char model[256];
    ze_bool_t onSubdevice;
    uint32_t subdeviceId;
    zes_fabric_port_id_t portId;
    zes_fabric_port_speed_t maxRxSpeed, maxTxSpeed;
} zes_fabric_port_properties_t;
SIM_ASSERT(sizeof(zes_fabric_port_properties_t) == 328, "by zes_api.h");
SIM_ASSERT(offsetof(zes_fabric_port_properties_t, portId) == 280, "by zes_api.h");

static zes_fabric_port_id_t port_id(int64_t physical)
{
    return (zes_fabric_port_id_t){
        .fabricId = 100 + (uint32_t)physical, .attachId = 0, .portNumber = 3};
}

SIM_EXPORT ze_result_t zesFabricPortGetProperties(struct sensor *port,
                                                  zes_fabric_port_properties_t *properties);
SIM_EXPORT ze_result_t zesFabricPortGetProperties(struct sensor *port,
                                                  zes_fabric_port_properties_t *properties)
{
    const struct card *card;

    ENTER();
    card = sensor_card(port, PORT, __func__);
    check_base(properties, 0x6, __func__);
    snprintf(properties->model, sizeof(properties->model), "XeLink");
    properties->portId = port_id(facts_of(card)->physical);
    properties->maxRxSpeed = (zes_fabric_port_speed_t){53000000000, 4};
    properties->maxTxSpeed = (zes_fabric_port_speed_t){212000000000, 8};
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t status, qualityIssues, failureReasons;
    zes_fabric_port_id_t remotePortId;
    zes_fabric_port_speed_t rxSpeed, txSpeed;
} zes_fabric_port_state_t;
SIM_ASSERT(sizeof(zes_fabric_port_state_t) == 72, "by zes_api.h");
SIM_ASSERT(offsetof(zes_fabric_port_state_t, remotePortId) == 28, "by zes_api.h");

SIM_EXPORT ze_result_t zesFabricPortGetState(struct sensor *port, zes_fabric_port_state_t *state);
SIM_EXPORT ze_result_t zesFabricPortGetState(struct sensor *port, zes_fabric_port_state_t *state)
{
    const struct card *card;

    ENTER();
    card = sensor_card(port, PORT, __func__);
    check_base(state, 0x19, __func__);
    state->status = 1;
    state->remotePortId = port_id(sim_number(facts_of(card), "port_peer", -1));
    return ZE_RESULT_SUCCESS;
}
