/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The kernel driver's list of compute devices, /sys/class/kfd/kfd/topology/nodes, has one directory
 * for each CPU and GPU. In each, gpu_id is 0 for a CPU, and the file "properties" has one line per
 * fact. ROCR_VISIBLE_DEVICES numbers the GPUs in the order of these directories, including hidden
 * GPUs.
 */
#include "rocm.h"

#include <dirent.h>
#include <unistd.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define NODES_MAX 512

/* Returns the value of the line "NAME VALUE"; 0 if there is no such line. */
static uint64_t read_property(FILE *file, const char *name)
{
    char line[128];
    size_t length = strlen(name);

    rewind(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            return strtoull(line + length + 1, NULL, 10);
        }
    }
    return 0;
}

static int read_address(const struct ds_accel_host *host, uint32_t node, char *address,
                        size_t address_size)
{
    char path[512];
    uint64_t location;
    uint64_t domain;
    FILE *file;

    snprintf(path, sizeof(path), "%s" NODES "/%u/properties", host->machine_root, node);
    file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    location = read_property(file, "location_id");
    domain = read_property(file, "domain");
    fclose(file);
    snprintf(address, address_size, "%04x:%02x:%02x.%x", (unsigned int)domain,
             (unsigned int)(location >> 8 & 0xff), (unsigned int)(location >> 3 & 0x1f),
             (unsigned int)(location & 7));
    return 0;
}

/*
 * Returns 1 for a GPU, 0 for a CPU, -1 if there is no such node, -2 if permission is denied, as for
 * devices that are not passed to a container.
 */
static int read_kind(const struct ds_accel_host *host, uint32_t node)
{
    char path[512];
    char line[32] = "";
    FILE *file;
    int failure;

    snprintf(path, sizeof(path), "%s" NODES "/%u/gpu_id", host->machine_root, node);
    file = fopen(path, "re");
    if (file == NULL) {
        return errno == EACCES || errno == EPERM ? -2 : -1;
    }
    errno = 0;
    failure = fgets(line, sizeof(line), file) == NULL && (errno == EPERM || errno == EACCES);
    fclose(file);
    return failure ? -2 : strtoull(line, NULL, 10) != 0;
}

int rocm_topology_check(const struct ds_accel_host *host, struct vendor_problem *problem)
{
    uint32_t refused = 0;
    uint32_t node;
    int kind;

    for (node = 0; node < NODES_MAX && (kind = read_kind(host, node)) != -1; node++) {
        if (kind == 1) {
            return 0;
        }
        refused += kind == -2;
    }
    if (node == 0) {
        /*
         * The directory does not exist, as with an older kernel or in some containers: continue,
         * because the runtime itself reports missing devices.
         */
        return 0;
    }
    if (refused > 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_PERMISSION,
                                  NODES "/*/gpu_id: %u of %u nodes may not be read", refused, node);
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                              NODES ": none of %u nodes is a GPU (gpu_id 0)", node);
}

int rocm_topology_index(const struct ds_accel_host *host, const char *pci_address)
{
    char address[32];
    uint32_t node;
    int index = 0;
    int kind;

    for (node = 0; node < NODES_MAX && (kind = read_kind(host, node)) != -1; node++) {
        if (kind != 1) {
            continue;
        }
        if (read_address(host, node, address, sizeof(address)) == 0 &&
            strcmp(address, pci_address) == 0) {
            return index;
        }
        index++;
    }
    return -1;
}

/* -- device nodes -- */

/* Returns true if the link "device" in /sys/class/drm/NAME leads to the PCI address. */
static int is_node_of(const struct ds_accel_host *host, const char *name, const char *pci_address)
{
    char path[512];
    char target[256];
    const char *slash;
    ssize_t length;

    snprintf(path, sizeof(path), "%s/sys/class/drm/%.32s/device", host->machine_root, name);
    length = readlink(path, target, sizeof(target) - 1);
    if (length < 0) {
        return 0;
    }
    target[length] = '\0';
    slash = strrchr(target, '/');
    return strcmp(slash != NULL ? slash + 1 : target, pci_address) == 0;
}

void rocm_topology_node(const struct ds_accel_host *host, const char *pci_address, char *node,
                        size_t node_size)
{
    const struct dirent *entry;
    char path[512];
    DIR *directory;

    snprintf(path, sizeof(path), "%s/sys/class/drm", host->machine_root);
    directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, "renderD", 7) == 0 &&
            is_node_of(host, entry->d_name, pci_address)) {
            snprintf(node, node_size, "/dev/dri/%.32s", entry->d_name);
            break;
        }
    }
    closedir(directory);
}
