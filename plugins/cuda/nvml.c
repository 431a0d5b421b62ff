/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * NVML: what is known of a device without a context. A device is found by its UUID, which is the
 * same in both libraries whatever CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER say; a part of one
 * (MIG) has the prefix MIG-, by which NVML tells the two apart.
 */
#include "plugin.h"

#include <unistd.h>

#define NEEDED(symbol) VENDOR_REQUIRED(struct nvml_api, symbol)
#define OPTIONAL(symbol) VENDOR_OPTIONAL(struct nvml_api, symbol, NULL)

static const struct vendor_symbol symbols[] = {
    NEEDED(nvmlInit_v2),
    NEEDED(nvmlShutdown),
    NEEDED(nvmlErrorString),
    NEEDED(nvmlSystemGetDriverVersion),
    NEEDED(nvmlDeviceGetCount_v2),
    NEEDED(nvmlDeviceGetHandleByIndex_v2),
    NEEDED(nvmlDeviceGetHandleByUUID),
    NEEDED(nvmlDeviceGetHandleByPciBusId_v2),
    NEEDED(nvmlDeviceGetIndex),
    OPTIONAL(nvmlDeviceGetMinorNumber),
    OPTIONAL(nvmlDeviceGetUUID),
    OPTIONAL(nvmlDeviceGetMemoryInfo),
    OPTIONAL(nvmlDeviceGetUtilizationRates),
    OPTIONAL(nvmlDeviceGetTemperature),
    OPTIONAL(nvmlDeviceGetPowerUsage),
    OPTIONAL(nvmlDeviceGetEnforcedPowerLimit),
    OPTIONAL(nvmlDeviceGetTotalEnergyConsumption),
    OPTIONAL(nvmlDeviceGetClockInfo),
    OPTIONAL(nvmlDeviceGetFanSpeed),
    OPTIONAL(nvmlDeviceGetPcieThroughput),
    OPTIONAL(nvmlDeviceGetCurrPcieLinkGeneration),
    OPTIONAL(nvmlDeviceGetCurrPcieLinkWidth),
    OPTIONAL(nvmlDeviceGetComputeRunningProcesses_v3),
    OPTIONAL(nvmlDeviceGetMigMode),
    OPTIONAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle),
    OPTIONAL(nvmlDeviceGetGpuInstanceId),
    OPTIONAL(nvmlDeviceGetComputeInstanceId),
};

_Static_assert(sizeof(symbols) / sizeof(symbols[0]) * sizeof(void (*)(void)) ==
                   sizeof(struct nvml_api),
               "each pointer of struct nvml_api is bound");

void nvml_open(struct cuda_runtime *runtime)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    struct vendor_problem problem;
    struct vendor_lib lib;

    if (vendor_lib_open(&lib, runtime->host, NULL, names, &problem) == 0 &&
        vendor_lib_bind(&lib, symbols, sizeof(symbols) / sizeof(symbols[0]), &runtime->nvml,
                        &problem) == 0) {
        nvml_result_t code = runtime->nvml.nvmlInit_v2();

        runtime->has_nvml = code == NVML_SUCCESS;
        if (code != NVML_SUCCESS) {
            vendor_log(runtime->host, DS_ACCEL_LOG_INFO, "no telemetry: nvmlInit_v2(): %s (%d)",
                       runtime->nvml.nvmlErrorString(code), code);
        }
    } else {
        vendor_log(runtime->host, DS_ACCEL_LOG_INFO, "no telemetry: %s", problem.detail);
    }
}

void nvml_close(struct cuda_runtime *runtime)
{
    if (runtime->has_nvml) {
        runtime->nvml.nvmlShutdown();
    }
}

/* ---- finding a device ----------------------------------------------------------------------- */

/* uuid_text becomes that of a part if NVML knows it by that name only. NULL: not found. */
static nvml_device_t find(const struct cuda_runtime *runtime,
                          const struct ds_accel_device_identity *identity, char *uuid_text,
                          size_t uuid_size)
{
    const struct nvml_api *nvml = &runtime->nvml;
    nvml_device_t device = NULL;

    snprintf(uuid_text, uuid_size, "%s", identity->uuid_text);
    if (!runtime->has_nvml) {
        return NULL;
    }
    if (uuid_text[0] != '\0') {
        const char *bare = strchr(identity->uuid_text, '-');

        if (nvml->nvmlDeviceGetHandleByUUID(uuid_text, &device) == NVML_SUCCESS) {
            return device;
        }
        snprintf(uuid_text, uuid_size, "MIG%s", bare != NULL ? bare : "");
        if (nvml->nvmlDeviceGetHandleByUUID(uuid_text, &device) == NVML_SUCCESS) {
            return device;
        }
        snprintf(uuid_text, uuid_size, "%s", identity->uuid_text);
    }
    if (identity->pci_address[0] != '\0' &&
        nvml->nvmlDeviceGetHandleByPciBusId_v2(identity->pci_address, &device) == NVML_SUCCESS) {
        return device;
    }
    return NULL;
}

static void add_part(const struct nvml_api *nvml, nvml_device_t *device,
                     struct ds_accel_device_identity *identity)
{
    nvml_device_t whole = NULL;
    unsigned int instance = 0;
    unsigned int subinstance = 0;

    identity->partition_kind = DS_ACCEL_PARTITION_MIG;
    if (nvml->nvmlDeviceGetGpuInstanceId != NULL && nvml->nvmlDeviceGetComputeInstanceId != NULL &&
        nvml->nvmlDeviceGetGpuInstanceId(*device, &instance) == NVML_SUCCESS &&
        nvml->nvmlDeviceGetComputeInstanceId(*device, &subinstance) == NVML_SUCCESS) {
        identity->valid |= DS_ACCEL_IDENTITY_PARTITION;
        identity->partition_instance = instance;
        identity->partition_subinstance = subinstance;
    }
    if ((nvml->nvmlDeviceGetDeviceHandleFromMigDeviceHandle != NULL &&
         nvml->nvmlDeviceGetDeviceHandleFromMigDeviceHandle(*device, &whole) == NVML_SUCCESS) ||
        nvml->nvmlDeviceGetHandleByPciBusId_v2(identity->pci_address, &whole) == NVML_SUCCESS) {
        if (nvml->nvmlDeviceGetUUID != NULL) {
            nvml->nvmlDeviceGetUUID(whole, identity->parent_uuid_text,
                                    sizeof(identity->parent_uuid_text));
        }
        *device = whole; /* index and node are the whole one's */
    }
}

void nvml_identify(const struct cuda_runtime *runtime, struct ds_accel_device_identity *identity)
{
    const struct nvml_api *nvml = &runtime->nvml;
    char uuid_text[sizeof(identity->uuid_text)];
    nvml_device_t device = find(runtime, identity, uuid_text, sizeof(uuid_text));
    unsigned int number = 0;

    if (device == NULL) {
        return;
    }
    memcpy(identity->uuid_text, uuid_text, sizeof(uuid_text));
    if (strncmp(uuid_text, "MIG-", 4) == 0) {
        add_part(nvml, &device, identity);
    }
    if (nvml->nvmlDeviceGetIndex(device, &number) == NVML_SUCCESS) {
        identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
        identity->vendor_index = number;
    }
    if (nvml->nvmlDeviceGetMinorNumber != NULL &&
        nvml->nvmlDeviceGetMinorNumber(device, &number) == NVML_SUCCESS) {
        snprintf(identity->node_path, sizeof(identity->node_path), "/dev/nvidia%u", number);
    }
}

int nvml_has_only(const struct cuda_runtime *runtime, uint32_t count)
{
    const struct nvml_api *nvml = &runtime->nvml;
    unsigned int known = 0;

    if (!runtime->has_nvml || nvml->nvmlDeviceGetCount_v2(&known) != NVML_SUCCESS ||
        known != count) {
        return 0;
    }
    for (unsigned int i = 0; i < known; i++) {
        nvml_device_t device = NULL;
        unsigned int current = 0;
        unsigned int pending = 0;

        if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
            (nvml->nvmlDeviceGetMigMode != NULL &&
             nvml->nvmlDeviceGetMigMode(device, &current, &pending) == NVML_SUCCESS &&
             current != 0)) {
            return 0;
        }
    }
    return 1;
}

/* ---- telemetry ------------------------------------------------------------------------------ */

static void read_use(const struct nvml_api *nvml, nvml_device_t device,
                     struct ds_accel_telemetry *telemetry)
{
    nvml_utilization_t use = {0, 0};
    nvml_memory_t memory = {0, 0, 0};

    if (nvml->nvmlDeviceGetUtilizationRates != NULL &&
        nvml->nvmlDeviceGetUtilizationRates(device, &use) == NVML_SUCCESS && use.gpu <= 100 &&
        use.memory <= 100) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION | DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION;
        telemetry->utilization_percent = use.gpu;
        telemetry->memory_utilization_percent = use.memory;
    }
    if (nvml->nvmlDeviceGetMemoryInfo != NULL &&
        nvml->nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS &&
        memory.used <= memory.total) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
        telemetry->memory_total_bytes = memory.total;
        telemetry->memory_used_bytes = memory.used;
    }
}

static void read_power(const struct nvml_api *nvml, nvml_device_t device,
                       struct ds_accel_telemetry *telemetry)
{
    unsigned int value = 0;
    unsigned long long energy = 0;

    if (nvml->nvmlDeviceGetTemperature != NULL &&
        nvml->nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS &&
        value < 200) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
        telemetry->temperature_millidegrees_c = (int32_t)value * 1000;
    }
    if (nvml->nvmlDeviceGetPowerUsage != NULL &&
        nvml->nvmlDeviceGetPowerUsage(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
        telemetry->power_milliwatts = value;
    }
    if (nvml->nvmlDeviceGetEnforcedPowerLimit != NULL &&
        nvml->nvmlDeviceGetEnforcedPowerLimit(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER_LIMIT;
        telemetry->power_limit_milliwatts = value;
    }
    if (nvml->nvmlDeviceGetTotalEnergyConsumption != NULL &&
        nvml->nvmlDeviceGetTotalEnergyConsumption(device, &energy) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_ENERGY;
        telemetry->energy_millijoules = energy;
    }
    if (nvml->nvmlDeviceGetFanSpeed != NULL &&
        nvml->nvmlDeviceGetFanSpeed(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_FAN;
        telemetry->fan_percent = value;
    }
}

static void read_clocks(const struct nvml_api *nvml, nvml_device_t device,
                        struct ds_accel_telemetry *telemetry)
{
    unsigned int value = 0;

    if (nvml->nvmlDeviceGetClockInfo == NULL) {
        return;
    }
    if (nvml->nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
        telemetry->core_clock_khz = value * 1000;
    }
    if (nvml->nvmlDeviceGetClockInfo(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY_CLOCK;
        telemetry->memory_clock_khz = value * 1000;
    }
}

/* Counted by the library over 20 ms each. */
static void read_pcie(const struct nvml_api *nvml, nvml_device_t device,
                      struct ds_accel_telemetry *telemetry)
{
    unsigned int sent = 0;
    unsigned int received = 0;

    if (nvml->nvmlDeviceGetPcieThroughput != NULL &&
        nvml->nvmlDeviceGetPcieThroughput(device, NVML_PCIE_TX, &sent) == NVML_SUCCESS &&
        nvml->nvmlDeviceGetPcieThroughput(device, NVML_PCIE_RX, &received) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_PCIE;
        telemetry->pcie_tx_bytes_per_s = (uint64_t)sent * 1000;
        telemetry->pcie_rx_bytes_per_s = (uint64_t)received * 1000;
    }
}

int32_t nvml_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    const struct nvml_api *nvml = &runtime->nvml;
    char uuid_text[64];
    nvml_device_t device =
        find(runtime, &instance->devices[device_index].identity, uuid_text, sizeof(uuid_text));

    (void)error;
    if (device == NULL) {
        return DS_ACCEL_OK; /* nothing is known */
    }
    read_use(nvml, device, telemetry);
    read_power(nvml, device, telemetry);
    read_clocks(nvml, device, telemetry);
    read_pcie(nvml, device, telemetry);
    return DS_ACCEL_OK;
}

/* ---- processes ------------------------------------------------------------------------------ */

/* The driver counts in the machine's own namespace; a process of another one has no number here. */
static int32_t visible_pid(unsigned int pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%u", pid);
    return pid <= INT32_MAX && access(path, F_OK) == 0 ? (int32_t)pid : 0;
}

static void fill_process(const nvml_process_t *from, struct ds_accel_process *process)
{
    process->pid = visible_pid(from->pid);
    if (from->used_bytes != UINT64_MAX) {
        process->valid = DS_ACCEL_TELEMETRY_MEMORY;
        process->memory_bytes = from->used_bytes;
    }
}

#define FIRST_ROOM 64u
#define PROCESS_LIMIT 65536u
#define ROOM_TRIES 4 /* more may come while there is made room for those that were counted */

static int32_t fail_nvml(const struct nvml_api *nvml, nvml_result_t code, uint32_t device_index,
                         struct ds_accel_error *error)
{
    struct ds_accel_error details;

    memset(&details, 0, sizeof(details));
    details.code = DS_ACCEL_ERR_DRIVER;
    details.vendor_code = code;
    snprintf(details.vendor_text, sizeof(details.vendor_text), "%.63s",
             nvml->nvmlErrorString(code));
    snprintf(details.message, sizeof(details.message),
             "nvmlDeviceGetComputeRunningProcesses_v3(device %u): %.63s (%d)", device_index,
             details.vendor_text, code);
    ds_accel_write(error, &details, sizeof(details));
    return DS_ACCEL_ERR_DRIVER;
}

/* All of the device's; of malloc(). NULL with *code_out: NVML's, or success for no memory. */
static nvml_process_t *list_processes(const struct nvml_api *nvml, nvml_device_t device,
                                      unsigned int *count_out, nvml_result_t *code_out)
{
    unsigned int room = FIRST_ROOM;

    *code_out = NVML_INSUFFICIENT_SIZE;
    for (int i = 0; i < ROOM_TRIES && *code_out == NVML_INSUFFICIENT_SIZE; i++) {
        nvml_process_t *found = calloc(room, sizeof(*found));
        unsigned int count = room;

        if (found == NULL) {
            *code_out = NVML_SUCCESS;
            return NULL;
        }
        *code_out = nvml->nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found);
        if (*code_out == NVML_SUCCESS) {
            *count_out = count < room ? count : room;
            return found;
        }
        free(found);
        room = count < PROCESS_LIMIT ? count + FIRST_ROOM : PROCESS_LIMIT;
    }
    return NULL;
}

int32_t nvml_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                       struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    const struct nvml_api *nvml = &runtime->nvml;
    char uuid_text[64];
    nvml_device_t device =
        find(runtime, &instance->devices[device_index].identity, uuid_text, sizeof(uuid_text));
    nvml_process_t *found;
    unsigned int count = 0;
    nvml_result_t code = NVML_SUCCESS;

    if (device == NULL || nvml->nvmlDeviceGetComputeRunningProcesses_v3 == NULL) {
        return vendor_unsupported(error, "telemetry_processes",
                                  "libnvidia-ml.so.1 is absent, too old or has no such device");
    }
    found = list_processes(nvml, device, &count, &code);
    if (code != NVML_SUCCESS) {
        return fail_nvml(nvml, code, device_index, error);
    }
    if (found == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "telemetry_processes: no memory");
    }
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        fill_process(&found[i], &processes[i]);
    }
    free(found);
    *count_out = count;
    return DS_ACCEL_OK;
}

/* ---- links: the PCI Express one; of NVLink no header at hand declares the functions -----------
 */

/* Of one lane, one direction, with the encoding taken off. */
static uint64_t lane_bytes_per_s(unsigned int generation)
{
    static const uint64_t rates[] = {0,
                                     UINT64_C(250000000),
                                     UINT64_C(500000000),
                                     UINT64_C(984615384),
                                     UINT64_C(1969230769),
                                     UINT64_C(3938461538),
                                     UINT64_C(7563000000)};

    return generation < sizeof(rates) / sizeof(rates[0]) ? rates[generation] : 0;
}

int32_t nvml_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                   struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                   struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    const struct nvml_api *nvml = &runtime->nvml;
    char uuid_text[64];
    nvml_device_t device =
        find(runtime, &instance->devices[device_index].identity, uuid_text, sizeof(uuid_text));
    unsigned int generation = 0;
    unsigned int width = 0;

    (void)error;
    *count_out = 0;
    if (device == NULL || nvml->nvmlDeviceGetCurrPcieLinkGeneration == NULL ||
        nvml->nvmlDeviceGetCurrPcieLinkWidth == NULL ||
        nvml->nvmlDeviceGetCurrPcieLinkGeneration(device, &generation) != NVML_SUCCESS ||
        nvml->nvmlDeviceGetCurrPcieLinkWidth(device, &width) != NVML_SUCCESS) {
        return DS_ACCEL_OK;
    }
    if (capacity > 0) {
        links[0].kind = DS_ACCEL_LINK_PCI;
        links[0].peer_index = -1;
        links[0].width = width;
        links[0].generation = generation;
        links[0].is_up = 1;
        links[0].bandwidth_bytes_per_s = width * lane_bytes_per_s(generation);
    }
    *count_out = 1;
    return DS_ACCEL_OK;
}
