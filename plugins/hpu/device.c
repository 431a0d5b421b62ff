/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Identity, facts and state of a card. Only device_open acquires the card. */
#include "hpu.h"

/* Reads an attribute of a module without acquiring the module; -1: not known. */
static int get_attribute(struct hpu_runtime *runtime, uint32_t module, int32_t attribute,
                         uint64_t *value_out)
{
    uint64_t value = 0;

    if (runtime->syn.synDeviceGetAttributeByModuleId == NULL ||
        runtime->syn.synDeviceGetAttributeByModuleId(&value, &attribute, 1, module) !=
            SYN_SUCCESS) {
        return -1;
    }
    *value_out = value;
    return 0;
}

/*
 * Returns the Gaudi generation (1, 2 or 3) for the PCI ID of a device; 0: not known. Used if
 * Synapse cannot report a module's attributes, or reports an unknown device type.
 */
static uint32_t generation_by_pci(struct hpu_runtime *runtime, const char *pci_address)
{
    char path[128];
    char line[32];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.31s/device", pci_address);
    if (pci_address[0] == '\0' || vendor_read_line(runtime->host, path, line, sizeof(line)) != 0) {
        return 0;
    }
    switch (strtoul(line, NULL, 16)) {
    case 0x1000:
    case 0x1001:
    case 0x1010:
    case 0x1011:
        return 1;
    case 0x1020:
    case 0x1021:
        return 2;
    case 0x1060:
    case 0x1061:
    case 0x1062:
    case 0x1063:
        return 3;
    default:
        return 0;
    }
}

/*
 * Returns 1, 2 or 3 for Gaudi, Gaudi 2 or Gaudi 3; 0: another generation, or not known. Releases
 * of Synapse number the device types differently: SynapseAI_Core has 0 for Gaudi and 1 for Gaudi 2.
 * The plugin does not use these numbers. SYN_GAUDI, SYN_GAUDI2 and SYN_GAUDI3 differ from them, so
 * it falls back to the PCI device id instead of mistaking the type.
 */
static uint32_t find_generation(struct hpu_runtime *runtime, const struct hpu_module *module)
{
    uint64_t type = 0;

    if (get_attribute(runtime, module->id, SYN_ATTRIBUTE_DEVICE_TYPE, &type) == 0) {
        switch (type) {
        case SYN_GAUDI:
            return 1;
        case SYN_GAUDI2:
            return 2;
        case SYN_GAUDI3:
            return 3;
        default:
            break;
        }
    }
    return generation_by_pci(runtime, module->pci_address);
}

static void name_generation(uint32_t generation, char *name, size_t name_size)
{
    static const char *const names[] = {"", "gaudi", "gaudi2", "gaudi3"};

    snprintf(name, name_size, "%s", names[generation]);
}

int32_t hpu_identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                     struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    const struct hpu_module *module = &runtime->modules[device->index];
    const struct hlml *hlml = &runtime->hlml;

    (void)error;
    identity->vendor_index = module->id;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    snprintf(identity->pci_address, sizeof(identity->pci_address), "%s", module->pci_address);
    snprintf(identity->node_path, sizeof(identity->node_path), "%s", module->node);
    name_generation(find_generation(runtime, module), identity->architecture,
                    sizeof(identity->architecture));
    get_attribute(runtime, module->id, SYN_ATTRIBUTE_DRAM_SIZE, &identity->total_memory_bytes);
    if (module->hlml == NULL) {
        return DS_ACCEL_OK;
    }
    /* The vendor's text, such as "01P0-HL2080A0-15-TNBS61-14-04-07", is not a UUID of 16 bytes. */
    if (hlml->hlml_device_get_uuid == NULL ||
        hlml->hlml_device_get_uuid(module->hlml, identity->uuid_text,
                                   sizeof(identity->uuid_text)) != HLML_OK) {
        identity->uuid_text[0] = '\0';
    }
    if (hlml->hlml_device_get_name == NULL ||
        hlml->hlml_device_get_name(module->hlml, identity->name, sizeof(identity->name)) !=
            HLML_OK) {
        identity->name[0] = '\0';
    }
    identity->uuid_text[sizeof(identity->uuid_text) - 1] = '\0';
    identity->name[sizeof(identity->name) - 1] = '\0';
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Fails with ERR_BUSY; the error message says how to find the process that uses the module. */
static int32_t refuse_busy(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    const struct hpu_module *module = &hpu_runtime(device)->modules[device->index];
    size_t length = strnlen(error->message, sizeof(error->message));

    if (length < sizeof(error->message)) {
        snprintf(
            error->message + length, sizeof(error->message) - length,
            "; a module serves one process: hl-smi or \"fuser -v %s\" shows which process has it",
            module->node[0] != '\0' ? module->node : "/dev/accel/accel*");
    }
    return DS_ACCEL_ERR_BUSY;
}

static void fill_info(ds_accel_plugin_device_t *device, const struct hpu_module *module,
                      uint64_t total_bytes)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    struct ds_accel_device_info *info = &device->info;
    uint64_t mask = 0;

    info->total_memory_bytes = total_bytes;
    info->max_allocation_bytes = total_bytes;
    info->compute_major = find_generation(runtime, module);
    if (get_attribute(runtime, module->id, SYN_ATTRIBUTE_TPC_ENABLED_MASK, &mask) == 0) {
        info->compute_unit_count = (uint32_t)__builtin_popcountll(mask);
    }
    if (runtime->syn.synDeviceGetName == NULL ||
        runtime->syn.synDeviceGetName(info->name, (int)sizeof(info->name), hpu_card(device)->id) !=
            SYN_SUCCESS ||
        info->name[0] == '\0') {
        snprintf(info->name, sizeof(info->name), "%s",
                 device->identity.name[0] != '\0' ? device->identity.name : "Gaudi");
    }
    info->name[sizeof(info->name) - 1] = '\0';
}

int32_t hpu_device_open(ds_accel_plugin_device_t *device, uint64_t native_context,
                        struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    const struct hpu_module *module = &runtime->modules[device->index];
    struct hpu_card *card = NULL;
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    syn_status code = hpu_card_get(runtime, module->id, &card);
    int32_t status =
        HPU_CHECK(device, code, error, "synDeviceAcquireByModuleId(module %u)", module->id);

    (void)native_context;
    if (status != DS_ACCEL_OK) {
        return status == DS_ACCEL_ERR_BUSY ? refuse_busy(device, error) : status;
    }
    code = runtime->syn.synDeviceGetMemoryInfo(card->id, &free_bytes, &total_bytes);
    status = HPU_CHECK(device, code, error, "synDeviceGetMemoryInfo(module %u)", module->id);
    if (status != DS_ACCEL_OK) {
        hpu_card_put(runtime, card);
        return status;
    }
    device->state = card;
    device->native_device = card->id;
    fill_info(device, module, total_bytes);
    return DS_ACCEL_OK;
}

void hpu_device_close(ds_accel_plugin_device_t *device)
{
    hpu_card_put(hpu_runtime(device), hpu_card(device));
    device->state = NULL;
}

int32_t hpu_device_synchronize(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct hpu_card *card = hpu_card(device);
    syn_status code = hpu_runtime(device)->syn.synDeviceSynchronize(card->id);

    hpu_maps_reap(device);
    return HPU_CHECK(device, code, error, "synDeviceSynchronize(module %u)", card->module);
}

/*
 * Queries the free memory only to learn the call's status: after the card was reset, every call
 * returns synDeviceReset.
 */
int32_t hpu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;

    return hpu_memory_info(device, &free_bytes, &total_bytes, error);
}

/* ---- facts ---------------------------------------------------------------------------------- */

/*
 * Gaudi computes in float32 and bfloat16, and from the second generation on in float16. The rule
 * for float16 comes from the vendor's documents; no call confirms it. The device only stores the
 * other types.
 */
int32_t hpu_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype, uint32_t *support_out,
                          struct ds_accel_error *error)
{
    uint32_t support = DS_ACCEL_DTYPE_STORES;

    (void)error;
    if (dtype == DS_ACCEL_DTYPE_FLOAT32 || dtype == DS_ACCEL_DTYPE_BFLOAT16 ||
        (dtype == DS_ACCEL_DTYPE_FLOAT16 && device->info.compute_major >= 2)) {
        support |= DS_ACCEL_DTYPE_COMPUTES;
    }
    *support_out = support;
    return DS_ACCEL_OK;
}

/* ---- telemetry ------------------------------------------------------------------------------ */

static void read_use(const struct hlml *hlml, hlml_card card, struct ds_accel_telemetry *telemetry)
{
    struct hlml_utilization use = {0};
    struct hlml_memory memory = {0, 0, 0};

    if (hlml->hlml_device_get_utilization_rates != NULL &&
        hlml->hlml_device_get_utilization_rates(card, &use) == HLML_OK) {
        telemetry->utilization_percent = use.percent > 100 ? 100 : use.percent;
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION;
    }
    if (hlml->hlml_device_get_memory_info != NULL &&
        hlml->hlml_device_get_memory_info(card, &memory) == HLML_OK) {
        telemetry->memory_total_bytes = memory.total;
        telemetry->memory_used_bytes = memory.used;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
}

/*
 * Reads power in milliwatts and energy in millijoules. The header has no units; the vendor's Python
 * module documents the unit of energy, and for power the unit of NVML is assumed, because HLML
 * copies NVML's interface.
 */
static void read_power(const struct hlml *hlml, hlml_card card,
                       struct ds_accel_telemetry *telemetry)
{
    unsigned int milliwatts = 0;
    unsigned long long millijoules = 0;

    if (hlml->hlml_device_get_power_usage != NULL &&
        hlml->hlml_device_get_power_usage(card, &milliwatts) == HLML_OK) {
        telemetry->power_milliwatts = milliwatts;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
    }
    if (hlml->hlml_device_get_power_management_default_limit != NULL &&
        hlml->hlml_device_get_power_management_default_limit(card, &milliwatts) == HLML_OK) {
        telemetry->power_limit_milliwatts = milliwatts;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER_LIMIT;
    }
    if (hlml->hlml_device_get_total_energy_consumption != NULL &&
        hlml->hlml_device_get_total_energy_consumption(card, &millijoules) == HLML_OK) {
        telemetry->energy_millijoules = millijoules;
        telemetry->valid |= DS_ACCEL_TELEMETRY_ENERGY;
    }
}

/*
 * Reads temperatures in degrees Celsius and clocks in megahertz; the units come from the same
 * sources as in read_power().
 */
static void read_state(const struct hlml *hlml, hlml_card card,
                       struct ds_accel_telemetry *telemetry)
{
    unsigned int value = 0;
    unsigned long long reasons = 0;

    if (hlml->hlml_device_get_temperature != NULL &&
        hlml->hlml_device_get_temperature(card, HLML_SENSOR_ON_AIP, &value) == HLML_OK) {
        telemetry->temperature_millidegrees_c = (int32_t)value * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
    if (hlml->hlml_device_get_clock_info != NULL &&
        hlml->hlml_device_get_clock_info(card, HLML_CLOCK_OF_SOC, &value) == HLML_OK) {
        telemetry->core_clock_khz = value * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
    }
    if (hlml->hlml_device_get_current_clocks_throttle_reasons != NULL &&
        hlml->hlml_device_get_current_clocks_throttle_reasons(card, &reasons) == HLML_OK) {
        telemetry->throttle_reasons =
            ((reasons & HLML_THROTTLE_POWER) != 0 ? DS_ACCEL_THROTTLE_POWER : 0) |
            ((reasons & HLML_THROTTLE_THERMAL) != 0 ? DS_ACCEL_THROTTLE_THERMAL : 0);
        telemetry->valid |= DS_ACCEL_TELEMETRY_THROTTLE;
    }
}

int32_t hpu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = instance->runtime;
    const struct hpu_module *module = &runtime->modules[device_index];

    (void)error;
    if (module->hlml == NULL) {
        return DS_ACCEL_OK; /* no member is valid: HLML is absent, or does not list the card */
    }
    read_use(&runtime->hlml, module->hlml, telemetry);
    read_power(&runtime->hlml, module->hlml, telemetry);
    read_state(&runtime->hlml, module->hlml, telemetry);
    return DS_ACCEL_OK;
}

/*
 * Lists the processes that have the device node open, at most 64, from /proc: HLML does not list
 * them, and no source reports the memory that each process uses.
 */
int32_t hpu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = instance->runtime;
    int32_t pids[64];
    uint32_t count;

    (void)error;
    count =
        hpu_module_holders(instance->host, &runtime->modules[device_index], 0, pids, 64, NULL, 0);
    for (uint32_t i = 0; i < count && i < capacity && i < 64; i++) {
        processes[i].pid = pids[i];
    }
    *count_out = count < 64 ? count : 64;
    return DS_ACCEL_OK;
}
