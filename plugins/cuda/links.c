/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Links of a device, read through NVML: the PCI Express link, and each NVLink as a separate link.
 *
 * NVML reports the other end of an NVLink by PCI address: another visible device, a switch, or a
 * processor's bridge. In a virtual machine a switch may have no address; NVML then reports only
 * that there is a switch, and the plugin reports an address that no device has, all ones. Two
 * devices whose links end at that address count as sharing a switch, as in NVIDIA's own NCCL.
 *
 * NVML reports the state of a link in a field (since Hopper) and through a call (on older devices):
 * the link is up if either source reports it as up. NVML reports the speed in fields too, per link
 * or for all links. No source reports the number of lanes of an NVLink.
 */
#include "plugin.h"

/*
 * Returns the index of the instance's device with this PCI address, or -1. A part of a device has
 * its device's address but no NVLink, so parts are skipped.
 */
static int32_t find_peer(const ds_accel_plugin_instance_t *instance, const char *address)
{
    for (uint32_t i = 0; i < instance->device_count; i++) {
        const struct ds_accel_device_identity *identity = &instance->devices[i].identity;

        if (identity->partition_kind == DS_ACCEL_PARTITION_NONE &&
            strcmp(identity->pci_address, address) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

#define UNSEEN_SWITCH "ffffffff:ff:1f.7"

static void tell_peer(const ds_accel_plugin_instance_t *instance, nvml_device_t device,
                      unsigned int number, struct ds_accel_link *link)
{
    const struct nvml_api *nvml = &((const struct cuda_runtime *)instance->runtime)->nvml;
    char *address = link->peer_pci_address;
    nvml_pci_t pci = {.domain = 0};
    int kind = 0;

    if (nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2 == NULL ||
        nvml->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, number, &pci) != NVML_SUCCESS) {
        return;
    }
    pci.address[sizeof(pci.address) - 1] = '\0';
    if (pci.domain != UINT32_MAX &&
        cuda_pci_address(pci.address, address, sizeof(link->peer_pci_address))) {
        link->peer_index = find_peer(instance, address);
        if (link->peer_index >= 0) {
            address[0] = '\0'; /* peer_index identifies the other end */
        }
    } else if (nvml->nvmlDeviceGetNvLinkRemoteDeviceType != NULL &&
               nvml->nvmlDeviceGetNvLinkRemoteDeviceType(device, number, &kind) == NVML_SUCCESS &&
               kind == NVML_REMOTE_SWITCH) {
        snprintf(address, sizeof(link->peer_pci_address), UNSEEN_SWITCH);
    }
}

/* What NVML's fields report about a device's NVLinks; 0 in a member without such a field. */
struct nvlinks {
    nvml_device_t device;
    uint64_t count;
    uint64_t common_mbps;
    uint32_t has_versions; /* the meaning of NVML's version numbers is defined */
    nvml_field_t states[NVML_LINK_LIMIT];
    nvml_field_t speeds[NVML_LINK_LIMIT];
};

/*
 * Returns the generation of an NVLink; 0: not known. NVML's version numbers from 1 to 8 mean 1.0,
 * 2.0, 2.2, 3.0, 3.1, 4.0, 5.0 and 6.0, of which the whole part is the generation.
 */
static uint32_t generation_of(const struct nvml_api *nvml, const struct nvlinks *all,
                              unsigned int number)
{
    static const uint32_t generations[] = {0, 1, 2, 2, 3, 3, 4, 5, 6};
    unsigned int version = 0;

    if (!all->has_versions || nvml->nvmlDeviceGetNvLinkVersion == NULL ||
        nvml->nvmlDeviceGetNvLinkVersion(all->device, number, &version) != NVML_SUCCESS ||
        version >= sizeof(generations) / sizeof(generations[0])) {
        return 0;
    }
    return generations[version];
}

static int is_up(const struct nvml_api *nvml, const struct nvlinks *all, unsigned int number,
                 int *is_up_out)
{
    uint64_t state = 0;
    int is_active = 0;
    int is_known = nvml_field_number(&all->states[number], &state);

    *is_up_out = state == NVML_FEATURE_ENABLED;
    if (nvml->nvmlDeviceGetNvLinkState != NULL &&
        nvml->nvmlDeviceGetNvLinkState(all->device, number, &is_active) == NVML_SUCCESS) {
        is_known = 1;
        *is_up_out = *is_up_out || is_active == NVML_FEATURE_ENABLED;
    }
    return is_known;
}

/* NVML's headers define the version numbers since CUDA 12.8, which came with driver 570. */
static uint32_t has_versions(const struct cuda_runtime *runtime)
{
    uint32_t driver[4];
    char text[64];

    cuda_driver_version(runtime, text, sizeof(text), driver);
    return driver[0] >= 570;
}

/*
 * Reads the fields into *all. If no field reports the number of links, tries the numbers from 0 on
 * until NVML has no state for one.
 */
static void ask_links(const struct cuda_runtime *runtime, struct nvlinks *all)
{
    const struct nvml_api *nvml = &runtime->nvml;
    nvml_field_t fields[] = {{.field = NVML_FIELD_LINK_COUNT},
                             {.field = NVML_FIELD_LINK_SPEED_COMMON}};
    int is_active;

    for (unsigned int i = 0; i < NVML_LINK_LIMIT; i++) {
        all->states[i] = (nvml_field_t){.field = NVML_FIELD_LINK_STATE, .scope = i, .result = -1};
        all->speeds[i] = (nvml_field_t){.field = NVML_FIELD_LINK_SPEED, .scope = i, .result = -1};
    }
    if (nvml_ask_fields(nvml, all->device, fields, 2)) {
        nvml_field_number(&fields[1], &all->common_mbps);
    }
    if (nvml_field_number(&fields[0], &all->count)) {
        all->count = all->count < NVML_LINK_LIMIT ? all->count : NVML_LINK_LIMIT;
    } else {
        while (all->count < NVML_LINK_LIMIT &&
               is_up(nvml, all, (unsigned int)all->count, &is_active)) {
            all->count++;
        }
    }
    if (all->count > 0) {
        all->has_versions = has_versions(runtime);
        nvml_ask_fields(nvml, all->device, all->states, (unsigned int)all->count);
        nvml_ask_fields(nvml, all->device, all->speeds, (unsigned int)all->count);
    }
}

static void describe_nvlink(const ds_accel_plugin_instance_t *instance, const struct nvlinks *all,
                            unsigned int number, struct ds_accel_link *link)
{
    const struct nvml_api *nvml = &((const struct cuda_runtime *)instance->runtime)->nvml;
    uint64_t mbps = all->common_mbps;
    int is_active = 0;

    link->kind = DS_ACCEL_LINK_NVLINK;
    link->peer_index = -1;
    link->generation = generation_of(nvml, all, number);
    is_up(nvml, all, number, &is_active);
    if (!is_active) {
        return;
    }
    link->is_up = 1;
    nvml_field_number(&all->speeds[number], &mbps);
    link->bandwidth_bytes_per_s = mbps * 1000000;
    tell_peer(instance, all->device, number, link);
}

static uint32_t add_pcie(const struct nvml_api *nvml, nvml_device_t device,
                         struct ds_accel_link *links, uint32_t capacity)
{
    unsigned int generation = 0;
    unsigned int width = 0;

    if (nvml->nvmlDeviceGetCurrPcieLinkGeneration == NULL ||
        nvml->nvmlDeviceGetCurrPcieLinkWidth == NULL ||
        nvml->nvmlDeviceGetCurrPcieLinkGeneration(device, &generation) != NVML_SUCCESS ||
        nvml->nvmlDeviceGetCurrPcieLinkWidth(device, &width) != NVML_SUCCESS) {
        return 0;
    }
    if (capacity > 0) {
        links[0].kind = DS_ACCEL_LINK_PCI;
        links[0].peer_index = -1;
        links[0].width = width;
        links[0].generation = generation;
        links[0].is_up = 1;
        links[0].bandwidth_bytes_per_s = width * vendor_pci_lane_bytes_per_s(generation);
    }
    return 1;
}

int32_t nvml_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                   struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                   struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    struct nvlinks all = {.device = nvml_find(instance, device_index)};
    uint32_t count;

    (void)error;
    *count_out = 0;
    if (all.device == NULL) {
        return DS_ACCEL_OK;
    }
    count = add_pcie(&runtime->nvml, all.device, links, capacity);
    ask_links(runtime, &all);
    for (unsigned int i = 0; i < all.count; i++, count++) {
        if (count < capacity) {
            describe_nvlink(instance, &all, i, &links[count]);
        }
    }
    *count_out = count;
    return DS_ACCEL_OK;
}
