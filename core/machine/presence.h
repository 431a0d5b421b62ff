/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Evidence of hardware on the machine: presence.c. */
#ifndef DS_ACCEL_MACHINE_PRESENCE_H
#define DS_ACCEL_MACHINE_PRESENCE_H

#include "machine/machine.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct ds_accel__finding;
struct ds_accel__survey_device;
struct ds_accel__survey_directory;
struct ds_accel__survey_slot;

/* Size of a PCI address such as "0000:01:00.0". The structs below contain only data that presence.c
 * reads without waking the hardware. */
#define DS_ACCEL__PCI_ADDRESS_SIZE 32

struct ds_accel__pci_device {
    char address[DS_ACCEL__PCI_ADDRESS_SIZE]; /* "0000:01:00.0" */
    char runtime_status[16];                  /* "active", "suspended" ... or "unknown" */
};

struct ds_accel__device_node {
    char path[128]; /* path on the machine, without the root */
    bool is_other;  /* matches other_device_nodes, used if device_nodes are absent */
    struct ds_accel__machine_node info;
};

struct ds_accel__presence {
    bool has_pci_facts; /* the configuration lists PCI IDs */
    bool has_node_facts;
    struct ds_accel__pci_device *devices; /* matching devices, sorted by address */
    uint32_t device_count;
    struct ds_accel__device_node *nodes; /* matching nodes, sorted by path */
    uint32_t node_count;
};

/*
 * Data read from a machine for one backend and reused for the others: the bus and each directory of
 * nodes are listed once. Zero the survey and set machine before its first use; clear the survey
 * when the machine may have changed.
 */
struct ds_accel__survey {
    const struct ds_accel__machine *machine; /* borrowed; unchanged by ds_accel__survey_clear() */
    bool has_slots;
    bool is_listed; /* /proc/bus/pci/devices was read; if false, slots is empty */
    struct ds_accel__survey_slot *slots;
    size_t slot_count;
    bool has_bus;
    struct ds_accel__survey_device *bus; /* sorted by address */
    size_t bus_count;
    struct ds_accel__survey_directory *directories;
    size_t directory_count;
};

#define DS_ACCEL__PCI_BUS "/sys/bus/pci/devices"

/*
 * Return "drm" for a node in /dev/dri, "accel" for a node in /dev/accel, NULL for any other node:
 * vendors share only these two directories.
 */
const char *ds_accel__node_class(const char *path);
void ds_accel__survey_clear(struct ds_accel__survey *survey);
/*
 * Search for the devices and nodes that match the facts "pci", "device_nodes" and
 * "other_device_nodes" of backend (its object of the configuration, or NULL). Without these facts
 * no system call is made. After success the caller clears the presence.
 */
int32_t ds_accel__presence_read(struct ds_accel__survey *survey, json_t *backend,
                                struct ds_accel__presence *presence);
void ds_accel__presence_clear(struct ds_accel__presence *presence);
/* True if at least one device was found and all devices are suspended. */
bool ds_accel__presence_is_asleep(const struct ds_accel__presence *presence);
/*
 * Return a hash that changes with the set of nodes, with a node's owner, mode, device number,
 * change time and usability, with the set of devices, and when the last awake device falls asleep
 * or the first device wakes up.
 */
uint64_t ds_accel__presence_fingerprint(const struct ds_accel__presence *presence);
/*
 * Check the gate power: set the reason "asleep", with the sleeping devices as detail, or no reason,
 * with the devices that are awake. The detail lists only the first devices.
 */
void ds_accel__presence_check_power(const struct ds_accel__presence *presence,
                                    struct ds_accel__finding *finding);

#endif
