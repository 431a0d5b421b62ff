/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sensors, free memory, processes and links, through Sysman.
 *
 * Sysman counts cards in its own order and ignores ZE_AFFINITY_MASK. The plugin finds a device by
 * its PCI address or its UUID; for a tile, it reads only the card's modules that belong to that
 * tile. Loaders before 1.12 accept a Level Zero device instead, if ZES_ENABLE_SYSMAN was set to 1
 * before they started; the plugin sets no variable of the program.
 *
 * Sysman is started at first use. Utilization and power are computed from two readings of a
 * counter: the previous and the current reading, or two readings with a short pause.
 */
#include "xpu.h"

#include <time.h>

#define PAUSE_NS 20000000L
#define ZES(symbol) VENDOR_OPTIONAL(struct zes_api, symbol, NULL)

static const struct vendor_symbol SYMBOLS[] = {
    ZES(zesInit),
    ZES(zesDriverGet),
    ZES(zesDeviceGet),
    ZES(zesDeviceGetProperties),
    ZES(zesDevicePciGetProperties),
    ZES(zesDeviceEnumMemoryModules),
    ZES(zesMemoryGetProperties),
    ZES(zesMemoryGetState),
    ZES(zesDeviceEnumEngineGroups),
    ZES(zesEngineGetProperties),
    ZES(zesEngineGetActivity),
    ZES(zesDeviceEnumTemperatureSensors),
    ZES(zesTemperatureGetProperties),
    ZES(zesTemperatureGetState),
    ZES(zesDeviceEnumPowerDomains),
    ZES(zesPowerGetProperties),
    ZES(zesPowerGetEnergyCounter),
    ZES(zesDeviceEnumFrequencyDomains),
    ZES(zesFrequencyGetProperties),
    ZES(zesFrequencyGetState),
    ZES(zesDeviceProcessesGetState),
    ZES(zesDeviceEnumFabricPorts),
    ZES(zesFabricPortGetProperties),
    ZES(zesFabricPortGetState),
};

/*
 * Returns true if all functions that need a device are present; without them, the plugin does not
 * look up devices.
 */
static int has_symbols(const struct zes_api *zes)
{
    for (size_t i = 3; i < sizeof(SYMBOLS) / sizeof(SYMBOLS[0]); i++) {
        void *function;

        memcpy(&function, (const char *)zes + SYMBOLS[i].offset, sizeof(function));
        if (function == NULL) {
            return 0;
        }
    }
    return 1;
}

void xpu_sysman_bind(struct xpu_runtime *runtime, const struct vendor_lib *lib)
{
    struct vendor_problem problem = {0};

    vendor_lib_bind(lib, SYMBOLS, sizeof(SYMBOLS) / sizeof(SYMBOLS[0]), &runtime->zes, &problem);
}

/* ---- devices -------------------------------------------------------------------------------- */

static int is_unit(const struct xpu_unit *unit, const struct zes_device_properties *device,
                   const struct zes_pci_properties *pci)
{
    if (unit->has_address) {
        return memcmp(&unit->address, &pci->address, sizeof(unit->address)) == 0;
    }
    return memcmp(unit->properties.uuid, device->core.uuid, sizeof(device->core.uuid)) == 0;
}

static void match_device(struct xpu_runtime *runtime, zes_device_t device)
{
    struct zes_device_properties properties = {.tag = ZES_TAG_DEVICE_PROPERTIES};
    struct zes_pci_properties pci = {.tag = ZES_TAG_PCI_PROPERTIES};

    if (runtime->zes.zesDeviceGetProperties(device, &properties) != ZE_SUCCESS ||
        runtime->zes.zesDevicePciGetProperties(device, &pci) != ZE_SUCCESS) {
        return;
    }
    for (uint32_t i = 0; i < runtime->unit_count; i++) {
        if (is_unit(&runtime->units[i], &properties, &pci)) {
            runtime->units[i].sysman = device;
        }
    }
}

static void match_driver(struct xpu_runtime *runtime, zes_driver_t driver)
{
    zes_device_t *devices;
    uint32_t count = 0;

    if (runtime->zes.zesDeviceGet(driver, &count, NULL) != ZE_SUCCESS || count == 0) {
        return;
    }
    devices = calloc(count, sizeof(zes_device_t));
    if (devices != NULL && runtime->zes.zesDeviceGet(driver, &count, devices) == ZE_SUCCESS) {
        for (uint32_t i = 0; i < count; i++) {
            match_device(runtime, devices[i]);
        }
    }
    free(devices);
}

/*
 * Starts Sysman with zesInit(), and stores its device in each matching unit. Returns 0, or -1 if
 * the loader lacks the functions or a call fails.
 */
static int start_sysman(struct xpu_runtime *runtime)
{
    const struct zes_api *zes = &runtime->zes;
    zes_driver_t drivers[XPU_DRIVERS];
    uint32_t count = 0;

    if (zes->zesInit == NULL || zes->zesDriverGet == NULL || zes->zesDeviceGet == NULL ||
        zes->zesInit(0) != ZE_SUCCESS || zes->zesDriverGet(&count, NULL) != ZE_SUCCESS) {
        return -1;
    }
    count = count < XPU_DRIVERS ? count : XPU_DRIVERS;
    if (zes->zesDriverGet(&count, drivers) != ZE_SUCCESS) {
        return -1;
    }
    for (uint32_t i = 0; i < count && i < XPU_DRIVERS; i++) {
        match_driver(runtime, drivers[i]);
    }
    return 0;
}

/* Called once. Caller holds the runtime's lock. */
static void find_devices(struct xpu_runtime *runtime)
{
    const char *variable = getenv("ZES_ENABLE_SYSMAN");

    if (!has_symbols(&runtime->zes) || start_sysman(runtime) == 0) {
        return;
    }
    for (uint32_t i = 0; variable != NULL && strcmp(variable, "1") == 0 && i < runtime->unit_count;
         i++) {
        struct xpu_unit *unit = &runtime->units[i];

        unit->sysman = (zes_device_t)(unit->root != NULL ? unit->root : unit->handle);
    }
}

static zes_device_t sysman_of(struct xpu_runtime *runtime, const struct xpu_unit *unit)
{
    zes_device_t device;

    pthread_mutex_lock(&runtime->lock);
    if (!runtime->has_sysman) {
        find_devices(runtime);
        runtime->has_sysman = 1;
    }
    device = unit->sysman;
    pthread_mutex_unlock(&runtime->lock);
    return device;
}

/* ---- modules -------------------------------------------------------------------------------- */

/* Lists at most XPU_MODULES modules of one kind, and returns their number; 0 after a failure. */
static uint32_t list_modules(zes_enumerate enumerate, zes_device_t device, zes_sensor_t *modules)
{
    uint32_t count = 0;

    if (enumerate(device, &count, NULL) != ZE_SUCCESS) {
        return 0;
    }
    count = count < XPU_MODULES ? count : XPU_MODULES;
    return count > 0 && enumerate(device, &count, modules) == ZE_SUCCESS ? count : 0;
}

/*
 * Returns true if the module belongs to the unit. For a tile: the tile's own modules; for a card:
 * all modules.
 */
static int is_of(const struct xpu_unit *unit, ze_bool on_subdevice, uint32_t subdevice_id)
{
    return !unit->is_tile || (on_subdevice && subdevice_id == unit->tile);
}

int xpu_sysman_memory(struct xpu_runtime *runtime, const struct xpu_unit *unit, uint64_t *free_out,
                      uint64_t *total_out)
{
    const struct zes_api *zes = &runtime->zes;
    zes_device_t device = sysman_of(runtime, unit);
    zes_sensor_t modules[XPU_MODULES];
    uint64_t free_bytes = 0;
    uint64_t total = 0;
    uint32_t count;

    if (device == NULL) {
        return -1;
    }
    count = list_modules(zes->zesDeviceEnumMemoryModules, device, modules);
    for (uint32_t i = 0; i < count; i++) {
        struct zes_memory_properties properties = {.tag = ZES_TAG_MEM_PROPERTIES};
        struct zes_memory_state state = {.tag = ZES_TAG_MEM_STATE};

        if (zes->zesMemoryGetProperties(modules[i], &properties) != ZE_SUCCESS ||
            properties.location != ZES_MEMORY_ON_DEVICE ||
            !is_of(unit, properties.on_subdevice, properties.subdevice_id)) {
            continue;
        }
        if (zes->zesMemoryGetState(modules[i], &state) != ZE_SUCCESS) {
            return -1;
        }
        free_bytes += state.free_bytes;
        total += state.size_bytes;
    }
    if (total == 0 || free_bytes > total) {
        return -1;
    }
    *free_out = free_bytes;
    *total_out = total;
    return 0;
}

/*
 * Adds up the counters of the matching engines: active divided by timestamp is then the mean
 * utilization of the tiles.
 */
static void read_engines(const struct zes_api *zes, const struct xpu_unit *unit,
                         zes_device_t device, struct zes_engine_stats *sum)
{
    zes_sensor_t modules[XPU_MODULES];
    uint32_t count = list_modules(zes->zesDeviceEnumEngineGroups, device, modules);

    for (uint32_t i = 0; i < count; i++) {
        struct zes_engine_properties properties = {.tag = ZES_TAG_ENGINE_PROPERTIES};
        struct zes_engine_stats stats = {0, 0};

        if (zes->zesEngineGetProperties(modules[i], &properties) == ZE_SUCCESS &&
            properties.type == ZES_ENGINES_ALL &&
            is_of(unit, properties.on_subdevice, properties.subdevice_id) &&
            zes->zesEngineGetActivity(modules[i], &stats) == ZE_SUCCESS) {
            sum->active += stats.active;
            sum->timestamp += stats.timestamp;
        }
    }
}

/*
 * Reads one energy counter: that of the tile, or that of the card, which includes the energy of its
 * tiles.
 */
static void read_energy(const struct zes_api *zes, const struct xpu_unit *unit, zes_device_t device,
                        struct zes_energy *energy_out)
{
    zes_sensor_t modules[XPU_MODULES];
    uint32_t count = list_modules(zes->zesDeviceEnumPowerDomains, device, modules);

    for (uint32_t i = 0; i < count; i++) {
        struct zes_power_properties properties = {.tag = ZES_TAG_POWER_PROPERTIES};
        struct zes_energy energy = {0, 0};

        if (zes->zesPowerGetProperties(modules[i], &properties) == ZE_SUCCESS &&
            is_of(unit, properties.on_subdevice, properties.subdevice_id) &&
            (unit->is_tile || !properties.on_subdevice) &&
            zes->zesPowerGetEnergyCounter(modules[i], &energy) == ZE_SUCCESS) {
            *energy_out = energy;
            return;
        }
    }
}

static void read_temperature(const struct zes_api *zes, const struct xpu_unit *unit,
                             zes_device_t device, struct ds_accel_telemetry *telemetry)
{
    zes_sensor_t modules[XPU_MODULES];
    uint32_t count = list_modules(zes->zesDeviceEnumTemperatureSensors, device, modules);
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        struct zes_temperature_properties properties = {.tag = ZES_TAG_TEMP_PROPERTIES};
        double degrees = 0;

        /*
         * A sensor of the GPU is preferred to a global sensor, which covers all parts of the
         * device; of several sensors of the preferred type, the hottest counts.
         */
        if (zes->zesTemperatureGetProperties(modules[i], &properties) == ZE_SUCCESS &&
            (properties.type == ZES_TEMP_GPU ||
             (properties.type == ZES_TEMP_GLOBAL && best != ZES_TEMP_GPU)) &&
            is_of(unit, properties.on_subdevice, properties.subdevice_id) &&
            zes->zesTemperatureGetState(modules[i], &degrees) == ZE_SUCCESS &&
            (best != properties.type ||
             degrees * 1000 > (double)telemetry->temperature_millidegrees_c)) {
            best = properties.type;
            telemetry->temperature_millidegrees_c = (int32_t)(degrees * 1000);
            telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
        }
    }
}

static uint64_t throttle_reasons(uint32_t reasons)
{
    return ((reasons & ZES_THROTTLE_POWER) != 0 ? DS_ACCEL_THROTTLE_POWER : 0) |
           ((reasons & ZES_THROTTLE_THERMAL) != 0 ? DS_ACCEL_THROTTLE_THERMAL : 0) |
           ((reasons & ZES_THROTTLE_HARDWARE) != 0 ? DS_ACCEL_THROTTLE_HARDWARE : 0) |
           ((reasons & ZES_THROTTLE_SETTING) != 0 ? DS_ACCEL_THROTTLE_SETTING : 0);
}

/* Any negative frequency, such as -1, means "not known". */
static void read_clocks(const struct zes_api *zes, const struct xpu_unit *unit, zes_device_t device,
                        struct ds_accel_telemetry *telemetry)
{
    zes_sensor_t modules[XPU_MODULES];
    uint32_t count = list_modules(zes->zesDeviceEnumFrequencyDomains, device, modules);

    for (uint32_t i = 0; i < count; i++) {
        struct zes_frequency_properties properties = {.tag = ZES_TAG_FREQ_PROPERTIES};
        struct zes_frequency_state state = {.tag = ZES_TAG_FREQ_STATE};

        if (zes->zesFrequencyGetProperties(modules[i], &properties) != ZE_SUCCESS ||
            !is_of(unit, properties.on_subdevice, properties.subdevice_id) ||
            zes->zesFrequencyGetState(modules[i], &state) != ZE_SUCCESS || state.actual < 0) {
            continue;
        }
        if (properties.type == ZES_FREQ_GPU) {
            telemetry->core_clock_khz = (uint32_t)(state.actual * 1000);
            telemetry->throttle_reasons |= throttle_reasons(state.throttle_reasons);
            telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK | DS_ACCEL_TELEMETRY_THROTTLE;
        } else if (properties.type == ZES_FREQ_MEMORY) {
            telemetry->memory_clock_khz = (uint32_t)(state.actual * 1000);
            telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY_CLOCK;
        }
    }
}

/* ---- telemetry ------------------------------------------------------------------------------ */

static struct xpu_sample take_sample(const struct xpu_runtime *runtime, const struct xpu_unit *unit,
                                     zes_device_t device)
{
    struct xpu_sample sample = {.taken_ns = runtime->host->clock_ns(runtime->host)};

    read_engines(&runtime->zes, unit, device, &sample.engine);
    read_energy(&runtime->zes, unit, device, &sample.energy);
    return sample;
}

static void compare_samples(const struct xpu_sample *before, const struct xpu_sample *now,
                            struct ds_accel_telemetry *telemetry)
{
    const uint64_t ticks = now->engine.timestamp - before->engine.timestamp;
    const uint64_t active = now->engine.active - before->engine.active;
    const uint64_t us = now->energy.microseconds - before->energy.microseconds;
    const uint64_t uj = now->energy.microjoules - before->energy.microjoules;

    telemetry->sampled_over_ns = now->taken_ns - before->taken_ns;
    if (now->engine.timestamp > before->engine.timestamp) {
        telemetry->utilization_percent = (uint32_t)(active < ticks ? active * 100 / ticks : 100);
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION;
    }
    if (now->energy.microseconds > 0) {
        telemetry->energy_millijoules = now->energy.microjoules / 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_ENERGY;
    }
    if (now->energy.microseconds > before->energy.microseconds) {
        telemetry->power_milliwatts = uj * 1000 / us;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
    }
}

static void read_counters(struct xpu_runtime *runtime, struct xpu_unit *unit, zes_device_t device,
                          struct ds_accel_telemetry *telemetry)
{
    struct xpu_sample before;
    struct xpu_sample now = take_sample(runtime, unit, device);

    pthread_mutex_lock(&runtime->lock);
    before = unit->sample;
    pthread_mutex_unlock(&runtime->lock);
    if (before.taken_ns == 0 || now.taken_ns - before.taken_ns < (uint64_t)PAUSE_NS) {
        struct timespec pause = {0, PAUSE_NS};

        before = now;
        nanosleep(&pause, NULL);
        now = take_sample(runtime, unit, device);
    }
    pthread_mutex_lock(&runtime->lock);
    unit->sample = now;
    pthread_mutex_unlock(&runtime->lock);
    compare_samples(&before, &now, telemetry);
}

int32_t xpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct xpu_runtime *runtime = instance->runtime;
    struct xpu_unit *unit = &runtime->units[device_index];
    zes_device_t device = sysman_of(runtime, unit);
    uint64_t free_bytes = 0;
    uint64_t total = 0;

    (void)error;
    if (device == NULL) {
        return DS_ACCEL_OK; /* no member is valid: Sysman is absent, or this user may not use it */
    }
    if (xpu_sysman_memory(runtime, unit, &free_bytes, &total) == 0) {
        telemetry->memory_total_bytes = total;
        telemetry->memory_used_bytes = total - free_bytes;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
    read_temperature(&runtime->zes, unit, device, telemetry);
    read_clocks(&runtime->zes, unit, device, telemetry);
    read_counters(runtime, unit, device, telemetry);
    return DS_ACCEL_OK;
}

#define ROOM_TRIES 4 /* processes may start between counting and listing */

/*
 * Lists all processes of the device. The caller frees *found_out, also after a failure; it is NULL
 * if there are none.
 */
static ze_result list_processes(const struct zes_api *zes, zes_device_t device,
                                struct zes_process **found_out, uint32_t *count_out)
{
    ze_result result = ZE_ERROR_INVALID_SIZE;

    *found_out = NULL;
    for (int i = 0; i < ROOM_TRIES && result == ZE_ERROR_INVALID_SIZE; i++) {
        uint32_t count = 0;

        free(*found_out);
        *found_out = NULL;
        result = zes->zesDeviceProcessesGetState(device, &count, NULL);
        if (result != ZE_SUCCESS || count == 0) {
            *count_out = 0;
            return result;
        }
        *found_out = calloc(count, sizeof(**found_out));
        if (*found_out == NULL) {
            return ZE_ERROR_OUT_OF_HOST_MEMORY;
        }
        for (uint32_t k = 0; k < count; k++) {
            (*found_out)[k].tag = ZES_TAG_PROCESS_STATE;
        }
        *count_out = count;
        result = zes->zesDeviceProcessesGetState(device, count_out, *found_out);
        *count_out = *count_out < count ? *count_out : count;
    }
    return result;
}

int32_t xpu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error)
{
    struct xpu_runtime *runtime = instance->runtime;
    zes_device_t device = sysman_of(runtime, &runtime->units[device_index]);
    struct zes_process *found = NULL;
    uint32_t count = 0;
    ze_result result;

    if (device == NULL) {
        return vendor_unsupported(error, "telemetry_processes",
                                  "libze_loader.so.1: Sysman is not there (zesInit, or "
                                  "ZES_ENABLE_SYSMAN=1 with a loader before 1.12)");
    }
    result = list_processes(&runtime->zes, device, &found, &count);
    for (uint32_t i = 0; result == ZE_SUCCESS && i < count && i < capacity; i++) {
        processes[i].pid = (int32_t)found[i].pid;
        processes[i].memory_bytes = found[i].memory_bytes;
        processes[i].valid = DS_ACCEL_TELEMETRY_MEMORY;
    }
    free(found);
    *count_out = count;
    return vendor_check(instance, NULL, result, error, "zesDeviceProcessesGetState(device %u)",
                        device_index);
}

/* ---- links ---------------------------------------------------------------------------------- */

static int has_port(struct xpu_runtime *runtime, const struct xpu_unit *unit,
                    const struct zes_port_id *wanted)
{
    zes_device_t device = sysman_of(runtime, unit);
    zes_sensor_t ports[XPU_MODULES];
    uint32_t count =
        device != NULL ? list_modules(runtime->zes.zesDeviceEnumFabricPorts, device, ports) : 0;

    for (uint32_t i = 0; i < count; i++) {
        struct zes_port_properties properties = {.tag = ZES_TAG_PORT_PROPERTIES};

        if (runtime->zes.zesFabricPortGetProperties(ports[i], &properties) == ZE_SUCCESS &&
            is_of(unit, properties.on_subdevice, properties.subdevice_id) &&
            properties.id.fabric == wanted->fabric && properties.id.attach == wanted->attach &&
            properties.id.port == wanted->port) {
            return 1;
        }
    }
    return 0;
}

static int32_t find_peer(struct xpu_runtime *runtime, const struct zes_port_id *remote)
{
    for (uint32_t i = 0; i < runtime->unit_count; i++) {
        if (has_port(runtime, &runtime->units[i], remote)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void describe_link(struct xpu_runtime *runtime, zes_sensor_t port,
                          const struct zes_port_properties *properties, struct ds_accel_link *link)
{
    struct zes_port_state state = {.tag = ZES_TAG_PORT_STATE};

    link->kind = DS_ACCEL_LINK_XE;
    link->peer_index = -1;
    link->width = properties->max_tx.width > 0 ? (uint32_t)properties->max_tx.width : 0;
    link->bandwidth_bytes_per_s =
        properties->max_tx.bits_per_s > 0 ? (uint64_t)properties->max_tx.bits_per_s / 8 : 0;
    if (runtime->zes.zesFabricPortGetState(port, &state) == ZE_SUCCESS) {
        link->is_up = state.status == ZES_PORT_HEALTHY || state.status == ZES_PORT_DEGRADED;
        link->peer_index = link->is_up ? find_peer(runtime, &state.remote) : -1;
    }
}

int32_t xpu_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                  struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                  struct ds_accel_error *error)
{
    struct xpu_runtime *runtime = instance->runtime;
    const struct xpu_unit *unit = &runtime->units[device_index];
    zes_device_t device = sysman_of(runtime, unit);
    zes_sensor_t ports[XPU_MODULES];
    uint32_t count =
        device != NULL ? list_modules(runtime->zes.zesDeviceEnumFabricPorts, device, ports) : 0;

    (void)error;
    *count_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct zes_port_properties properties = {.tag = ZES_TAG_PORT_PROPERTIES};

        if (runtime->zes.zesFabricPortGetProperties(ports[i], &properties) != ZE_SUCCESS ||
            !is_of(unit, properties.on_subdevice, properties.subdevice_id)) {
            continue;
        }
        if (*count_out < capacity) {
            describe_link(runtime, ports[i], &properties, &links[*count_out]);
        }
        (*count_out)++;
    }
    return DS_ACCEL_OK;
}
