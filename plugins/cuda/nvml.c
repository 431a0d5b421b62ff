/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * NVML reports facts about a device without a context. The plugin finds a device by its UUID, which
 * is the same in CUDA and in NVML regardless of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, or else
 * by its PCI address. For a part of a device (MIG), NVML expects the UUID with the prefix MIG-,
 * while CUDA may report it with GPU-.
 */
#include "plugin.h"

#include <limits.h>

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
    OPTIONAL(nvmlDeviceGetCurrentClocksEventReasons),
    OPTIONAL(nvmlDeviceGetCurrentClocksThrottleReasons),
    OPTIONAL(nvmlDeviceGetTotalEccErrors),
    OPTIONAL(nvmlDeviceGetFieldValues),
    OPTIONAL(nvmlDeviceGetNvLinkState),
    OPTIONAL(nvmlDeviceGetNvLinkVersion),
    OPTIONAL(nvmlDeviceGetNvLinkRemotePciInfo_v2),
    OPTIONAL(nvmlDeviceGetNvLinkRemoteDeviceType),
    OPTIONAL(nvmlDeviceGetCurrPcieLinkGeneration),
    OPTIONAL(nvmlDeviceGetCurrPcieLinkWidth),
    OPTIONAL(nvmlDeviceGetComputeRunningProcesses_v3),
    OPTIONAL(nvmlDeviceGetConfComputeMemSizeInfo),
    OPTIONAL(nvmlDeviceGetRunningProcessDetailList),
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

/*
 * Returns NULL if NVML does not find the device. Writes to uuid_text the UUID under which NVML
 * finds the device or part, otherwise the identity's UUID.
 */
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
        *device = whole; /* the caller reads index and node, which only a whole device has */
    }
}

nvml_device_t nvml_find(const ds_accel_plugin_instance_t *instance, uint32_t device_index)
{
    const struct ds_accel_device_identity *identity = &instance->devices[device_index].identity;
    char uuid_text[sizeof(identity->uuid_text)];

    if (vendor_pci_power_state(instance->host, identity->pci_address) == DS_ACCEL_POWER_SUSPENDED) {
        return NULL;
    }
    return find(instance->runtime, identity, uuid_text, sizeof(uuid_text));
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

/* ---- fields --------------------------------------------------------------------------------- */

int nvml_ask_fields(const struct nvml_api *nvml, nvml_device_t device, nvml_field_t *fields,
                    unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        fields[i].result = -1; /* stays if NVML does not write the field, which then has no value */
    }
    return nvml->nvmlDeviceGetFieldValues != NULL &&
           nvml->nvmlDeviceGetFieldValues(device, (int)count, fields) == NVML_SUCCESS;
}

/* NVML reports "not available" as minus one in any type, possibly with success. */
static int read_value(const nvml_field_t *field, uint64_t *number_out)
{
    switch (field->type) {
    case NVML_TYPE_UNSIGNED_INT:
        *number_out = field->value.unsigned_int;
        return field->value.unsigned_int != UINT_MAX;
    case NVML_TYPE_UNSIGNED_LONG:
        *number_out = field->value.unsigned_long;
        return field->value.unsigned_long != ULONG_MAX;
    case NVML_TYPE_UNSIGNED_LONG_LONG:
        *number_out = field->value.unsigned_long_long;
        return field->value.unsigned_long_long != ULLONG_MAX;
    case NVML_TYPE_SIGNED_INT:
        *number_out = (uint64_t)field->value.signed_int;
        return field->value.signed_int >= 0;
    case NVML_TYPE_SIGNED_LONG_LONG:
        *number_out = (uint64_t)field->value.signed_long_long;
        return field->value.signed_long_long >= 0;
    default:
        return 0;
    }
}

int nvml_field_number(const nvml_field_t *field, uint64_t *number_out)
{
    uint64_t number = 0;

    if (field->result != NVML_SUCCESS || !read_value(field, &number)) {
        return 0;
    }
    *number_out = number;
    return 1;
}
