/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Links of a device: its PCI Express link, read from sysfs, and its XGMI links to other visible
 * devices, read from rocm_smi or amd_smi. The link type that these libraries report is the type of
 * the path between two devices: PCI Express means a path over bridges and perhaps processors, not a
 * direct link. The plugin does not report such a path; the ds-accel library determines its length
 * from sysfs.
 *
 * An XGMI path may lead over a third device as well. The number of hops does not show this (it is 1
 * for every XGMI path), but the weight does: the kernel driver reports a weight of 15 for each
 * link, and 13 for a link within a package. AMD's own RCCL also treats a weight of 41 as one link.
 */
#include "sensors.h"

#define LINKS_MAX 16 /* maximum number of links between two devices; a larger number is invalid */
#define MB_PER_S_MAX UINT64_C(1000000000)

static int is_one_link(uint64_t weight)
{
    return weight <= 15 || weight == 41;
}

/* A connection between two devices; each of its links is reported separately. */
struct way {
    uint32_t link_count;
    uint64_t bytes_per_s; /* bandwidth of each link; 0: not known */
};

/*
 * Returns most / least links of the bandwidth least each, if that is a whole number up to
 * LINKS_MAX; otherwise one link of the bandwidth most. If most is 0 or above MB_PER_S_MAX, the
 * bandwidth is not known.
 */
static struct way make_way(uint64_t least_mb_per_s, uint64_t most_mb_per_s)
{
    struct way way = {1, 0};

    if (most_mb_per_s == 0 || most_mb_per_s > MB_PER_S_MAX) {
        return way;
    }
    way.bytes_per_s = most_mb_per_s * 1000000;
    if (least_mb_per_s > 0 && most_mb_per_s / least_mb_per_s <= LINKS_MAX &&
        most_mb_per_s >= least_mb_per_s && most_mb_per_s % least_mb_per_s == 0) {
        way.link_count = (uint32_t)(most_mb_per_s / least_mb_per_s);
        way.bytes_per_s = least_mb_per_s * 1000000;
    }
    return way;
}

static struct way ask_rsmi(const struct rsmi_api *rsmi, const char *from, const char *to)
{
    const struct way none = {0, 0};
    uint64_t hops = 0;
    uint64_t weight = 0;
    uint64_t least = 0;
    uint64_t most = 0;
    uint32_t here;
    uint32_t there;
    int type = 0;

    if (rsmi->rsmi_topo_get_link_type == NULL || rsmi->rsmi_topo_get_link_weight == NULL ||
        rocm_find_rsmi(rsmi, from, &here) != 0 || rocm_find_rsmi(rsmi, to, &there) != 0 ||
        rsmi->rsmi_topo_get_link_type(here, there, &hops, &type) != RSMI_SUCCESS ||
        type != RSMI_LINK_XGMI ||
        rsmi->rsmi_topo_get_link_weight(here, there, &weight) != RSMI_SUCCESS ||
        !is_one_link(weight)) {
        return none;
    }
    if (rsmi->rsmi_minmax_bandwidth_get == NULL ||
        rsmi->rsmi_minmax_bandwidth_get(here, there, &least, &most) != RSMI_SUCCESS) {
        least = most = 0;
    }
    return make_way(least, most);
}

static struct way ask_amdsmi(const struct amdsmi_api *amdsmi, const char *from, const char *to)
{
    const struct way none = {0, 0};
    void *here = rocm_find_amdsmi(amdsmi, from);
    void *there = rocm_find_amdsmi(amdsmi, to);
    uint64_t hops = 0;
    uint64_t weight = 0;
    uint64_t least = 0;
    uint64_t most = 0;
    int type = 0;

    if (amdsmi->amdsmi_topo_get_link_type == NULL || amdsmi->amdsmi_topo_get_link_weight == NULL ||
        here == NULL || there == NULL ||
        amdsmi->amdsmi_topo_get_link_type(here, there, &hops, &type) != AMDSMI_SUCCESS ||
        type != AMDSMI_LINK_XGMI ||
        amdsmi->amdsmi_topo_get_link_weight(here, there, &weight) != AMDSMI_SUCCESS ||
        !is_one_link(weight)) {
        return none;
    }
    if (amdsmi->amdsmi_get_minmax_bandwidth_between_processors == NULL ||
        amdsmi->amdsmi_get_minmax_bandwidth_between_processors(here, there, &least, &most) !=
            AMDSMI_SUCCESS) {
        least = most = 0;
    }
    return make_way(least, most);
}

/* -- PCI Express -- */

/*
 * A card has its own bridges (with AMD's graphics vendor id, 0x1002) between the slot and the GPU.
 * The links inside the card always have the maximum speed, so the function reports the link of the
 * outermost bridge.
 */
#define BRIDGES_MAX 4

static void find_outermost(const struct ds_accel_host *host, const char *pci_address,
                           char *directory, size_t directory_size)
{
    char path[128];
    char line[16];

    snprintf(directory, directory_size, "/sys/bus/pci/devices/%s", pci_address);
    for (int i = 0; i < BRIDGES_MAX; i++) {
        snprintf(path, sizeof(path), "%s/../vendor", directory);
        if (vendor_read_line(host, path, line, sizeof(line)) != 0 || strcmp(line, "0x1002") != 0) {
            return;
        }
        snprintf(directory + strlen(directory), directory_size - strlen(directory), "/..");
    }
}

/*
 * Returns the PCI Express generation of the link, 1 to 6; 0: not known. Parses "16.0 GT/s PCIe", or
 * "16 GT/s" of kernels before 5.7.
 */
static uint32_t read_generation(const struct ds_accel_host *host, const char *directory)
{
    static const char *const rates[] = {"2.5", "5", "8", "16", "32", "64"};
    char path[128];
    char line[64];

    snprintf(path, sizeof(path), "%s/current_link_speed", directory);
    if (vendor_read_line(host, path, line, sizeof(line)) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        size_t length = strlen(rates[i]);

        if (strncmp(line, rates[i], length) == 0) {
            length += strncmp(line + length, ".0", 2) == 0 ? 2 : 0;
            if (strncmp(line + length, " GT/s", 5) == 0) {
                return i + 1;
            }
        }
    }
    return 0;
}

/*
 * Describes the device's PCI Express link in *link and returns 1; returns 0 if the link's width or
 * rate is not known.
 */
static int read_pci_link(const struct ds_accel_host *host, const char *pci_address,
                         struct ds_accel_link *link)
{
    char directory[96];
    char path[128];
    char line[32];
    uint64_t width = 0;

    find_outermost(host, pci_address, directory, sizeof(directory));
    snprintf(path, sizeof(path), "%s/current_link_width", directory);
    link->generation = read_generation(host, directory);
    if (link->generation == 0 || vendor_read_line(host, path, line, sizeof(line)) != 0 ||
        plugin_parse_u64(line, &width) != 0 || width == 0 || width > 32) {
        return 0;
    }
    link->kind = DS_ACCEL_LINK_PCI;
    link->peer_index = -1;
    link->width = (uint32_t)width;
    link->is_up = 1;
    link->bandwidth_bytes_per_s = width * vendor_pci_lane_bytes_per_s(link->generation);
    return 1;
}

/* -- all links of a device -- */

static void take_link(struct ds_accel_link *links, uint32_t capacity, uint32_t *count,
                      const struct ds_accel_link *link)
{
    if (*count < capacity) {
        links[*count] = *link;
    }
    (*count)++;
}

static struct way find_way(struct rocm_sensors *sensors, const char *from, const char *to)
{
    struct way way = {0, 0};

    pthread_mutex_lock(&sensors->lock);
    if (rocm_sensors_source(sensors) == SOURCE_RSMI) {
        way = ask_rsmi(&sensors->rsmi, from, to);
    } else if (sensors->source == SOURCE_AMDSMI) {
        way = ask_amdsmi(&sensors->amdsmi, from, to);
    }
    pthread_mutex_unlock(&sensors->lock);
    return way;
}

/*
 * Returns true if the device is suspended or powered off. The link of such a device is not read,
 * because that may wake the device.
 */
static int is_asleep(const struct ds_accel_host *host, const char *pci_address)
{
    uint32_t power = vendor_pci_power_state(host, pci_address);

    return power == DS_ACCEL_POWER_SUSPENDED || power == DS_ACCEL_POWER_OFF;
}

/* Appends the XGMI links to one other device; none if both are parts of one GPU, which have the
 * same PCI address, or if the other device is suspended or off. */
static void take_links_to(ds_accel_plugin_instance_t *instance, const char *own, uint32_t other,
                          struct ds_accel_link *links, uint32_t capacity, uint32_t *count)
{
    const char *address = instance->devices[other].identity.pci_address;
    struct way way;

    if (strcmp(own, address) == 0 || is_asleep(instance->host, address)) {
        return;
    }
    way = find_way(((struct rocm *)instance->runtime)->sensors, own, address);
    for (uint32_t i = 0; i < way.link_count; i++) {
        const struct ds_accel_link link = {.kind = DS_ACCEL_LINK_XGMI,
                                           .peer_index = (int32_t)other,
                                           .is_up = 1,
                                           .bandwidth_bytes_per_s = way.bytes_per_s};
        take_link(links, capacity, count, &link);
    }
}

int32_t rocm_links(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                   struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                   struct ds_accel_error *error)
{
    const char *own = instance->devices[device_index].identity.pci_address;
    struct ds_accel_link link = {0};

    (void)error;
    *count_out = 0;
    if (is_asleep(instance->host, own)) {
        return DS_ACCEL_OK;
    }
    if (read_pci_link(instance->host, own, &link)) {
        take_link(links, capacity, count_out, &link);
    }
    for (uint32_t i = 0; i < instance->device_count; i++) {
        take_links_to(instance, own, i, links, capacity, count_out);
    }
    return DS_ACCEL_OK;
}
