/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Links of a device, by NVML: the PCI Express one. */
#include "plugin.h"

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
    nvml_device_t device = nvml_find(instance, device_index);
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
