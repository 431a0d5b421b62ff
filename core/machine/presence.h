/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Traces of hardware on the machine: presence.c. */
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

/* The traces of a backend's hardware, read without waking it (presence.c). */
#define DS_ACCEL__PCI_ADDRESS_SIZE 32

struct ds_accel__pci_device {
    char address[DS_ACCEL__PCI_ADDRESS_SIZE]; /* "0000:01:00.0" */
    char runtime_status[16];                  /* "active", "suspended" ...; "unknown" */
};

struct ds_accel__device_node {
    char path[128]; /* on the machine, without the root */
    bool is_other;  /* of other_device_nodes: in place of absent device_nodes */
    struct ds_accel__machine_node info;
};

struct ds_accel__presence {
    bool has_pci_facts; /* the configuration names PCI devices */
    bool has_node_facts;
    struct ds_accel__pci_device *devices; /* that match, by address */
    uint32_t device_count;
    struct ds_accel__device_node *nodes; /* by path */
    uint32_t node_count;
};

/*
 * What was read from a machine for one backend is reused for the others: the bus and each directory
 * of nodes are listed once. Zero the survey and set machine; clear it when the machine may have
 * changed.
 */
struct ds_accel__survey {
    const struct ds_accel__machine *machine; /* borrowed; survives clear() */
    bool has_slots;
    bool is_listed; /* the kernel provides a list of the bus; else slots is empty */
    struct ds_accel__survey_slot *slots;
    size_t slot_count;
    bool has_bus;
    struct ds_accel__survey_device *bus; /* by address */
    size_t bus_count;
    struct ds_accel__survey_directory *directories;
    size_t directory_count;
};

#define DS_ACCEL__PCI_BUS "/sys/bus/pci/devices"

/*
 * "drm" for a node in /dev/dri, or "accel"; NULL: the node is in no directory that vendors share.
 */
const char *ds_accel__node_class(const char *path);
void ds_accel__survey_clear(struct ds_accel__survey *survey);
/*
 * Search for the "pci", "device_nodes" and "other_device_nodes" that backend (its object of the
 * configuration, or NULL) names. Without these facts no system call is made. Clear the presence
 * after success.
 */
int32_t ds_accel__presence_read(struct ds_accel__survey *survey, json_t *backend,
                                struct ds_accel__presence *presence);
void ds_accel__presence_clear(struct ds_accel__presence *presence);
/* True if there are devices and all are suspended. */
bool ds_accel__presence_is_asleep(const struct ds_accel__presence *presence);
/*
 * A number that changes with every node, its owner, mode and usability, and with every device and
 * its power state.
 */
uint64_t ds_accel__presence_fingerprint(const struct ds_accel__presence *presence);
/*
 * The gate power: the reason "asleep" with the sleeping devices, or no reason and the devices that
 * are awake.
 */
void ds_accel__presence_check_power(const struct ds_accel__presence *presence,
                                    struct ds_accel__finding *finding);

#endif
