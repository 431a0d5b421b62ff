/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Reads the machine's description, SIM_MACHINE, once for the vendor of this copy of the engine. */
#include "inside.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock; /* guards reading the description */
    bool is_read;
    char vendor_name[16];
    json_t *file;
    json_t *vendor;
    struct sim_device devices[SIM_MAX_DEVICES];
    uint32_t count;
} machine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void copy_text(const json_t *object, const char *key, char *text, size_t text_size)
{
    const char *value = json_string_value(json_object_get(object, key));

    snprintf(text, text_size, "%s", value != NULL ? value : "");
}

static int64_t number_of(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_boolean(value)) {
        return json_is_true(value);
    }
    return json_is_number(value) ? (int64_t)json_number_value(value) : otherwise;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/*
 * Parses the 32 hexadecimal digits at the end of the text, without dashes; other texts are hashed.
 */
static void parse_uuid(const char *text, uint8_t uuid[16])
{
    size_t found = 0;

    memset(uuid, 0, 16);
    for (size_t at = strlen(text); at > 0 && found < 32; at--) {
        int digit = digit_of(text[at - 1]);

        if (digit < 0 && text[at - 1] != '-') {
            break;
        }
        if (digit >= 0) {
            uuid[15 - found / 2] |= (uint8_t)(found % 2 == 0 ? digit : digit << 4);
            found++;
        }
    }
    for (size_t at = 0; found < 32 && text[at] != '\0'; at++) {
        uuid[at % 16] = (uint8_t)(uuid[at % 16] * 31 + (unsigned char)text[at]);
    }
}

static void read_device(const json_t *object, const struct sim_device *parent)
{
    struct sim_device *device = &machine.devices[machine.count];
    const json_t *compute = json_object_get(object, "compute");

    if (machine.count == SIM_MAX_DEVICES) {
        sim_misuse("SIM_MACHINE: more than %u devices", SIM_MAX_DEVICES);
    }
    if (parent != NULL) {
        *device = *parent;
    }
    device->physical = machine.count++;
    device->parent = parent != NULL ? (int32_t)parent->physical : -1;
    device->is_partition = parent != NULL;
    device->is_partitioned = json_array_size(json_object_get(object, "parts")) > 0;
    device->facts = object;
    if (parent == NULL || json_object_get(object, "name") != NULL) {
        copy_text(object, "name", device->name, sizeof(device->name));
    }
    copy_text(object, "uuid", device->uuid_text, sizeof(device->uuid_text));
    parse_uuid(device->uuid_text, device->uuid);
    if (parent == NULL) {
        copy_text(object, "pci", device->pci_address, sizeof(device->pci_address));
        sscanf(device->pci_address, "%x:%x:%x.%x", &device->pci_domain, &device->pci_bus,
               &device->pci_slot, &device->pci_function);
        device->numa_node = (int32_t)number_of(object, "numa_node", -1);
        device->compute_major = (uint32_t)json_integer_value(json_array_get(compute, 0));
        device->compute_minor = (uint32_t)json_integer_value(json_array_get(compute, 1));
        device->speed = (uint32_t)number_of(object, "speed", 100);
        device->minor = (uint32_t)number_of(object, "minor", device->physical);
    }
    device->memory_bytes = (uint64_t)number_of(object, "memory_bytes", 1 << 30);
    device->partition_instance = (uint32_t)number_of(object, "instance", 0);
    device->partition_subinstance = (uint32_t)number_of(object, "subinstance", 0);
}

static void read_devices(const json_t *list)
{
    const json_t *object, *part;
    size_t i, j;

    json_array_foreach(list, i, object)
    {
        const struct sim_device *whole = &machine.devices[machine.count];

        read_device(object, NULL);
        json_array_foreach(json_object_get(object, "parts"), j, part)
        {
            read_device(part, whole);
        }
    }
}

static void read_machine(const char *vendor)
{
    const char *path = getenv("SIM_MACHINE");
    json_error_t error;

    snprintf(machine.vendor_name, sizeof(machine.vendor_name), "%s", vendor);
    machine.is_read = true;
    if (path == NULL || path[0] == '\0') {
        return;
    }
    machine.file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (machine.file == NULL) {
        sim_misuse("SIM_MACHINE=%s: line %d: %s", path, error.line, error.text);
    }
    machine.vendor = json_object_get(json_object_get(machine.file, "vendors"), vendor);
    /* Without its driver, the library is present but finds no device. */
    if (number_of(machine.vendor, "driver", 1) != 0) {
        read_devices(json_object_get(machine.vendor, "devices"));
    }
}

uint32_t sim_device_count(const char *vendor)
{
    pthread_mutex_lock(&machine.lock);
    if (!machine.is_read) {
        read_machine(vendor);
    }
    pthread_mutex_unlock(&machine.lock);
    if (strcmp(machine.vendor_name, vendor) != 0) {
        sim_misuse("the simulator of %s was asked for devices of %s", machine.vendor_name, vendor);
    }
    return machine.count;
}

struct sim_device *sim_device_at(uint32_t physical)
{
    if (physical >= machine.count) {
        sim_misuse("there is no device %u among %u", physical, machine.count);
    }
    return &machine.devices[physical];
}

int32_t sim_parent(uint32_t physical)
{
    return physical < machine.count ? machine.devices[physical].parent : -1;
}

int64_t sim_number(const struct sim_device *device, const char *key, int64_t otherwise)
{
    return number_of(device->facts, key, otherwise);
}

const char *sim_text(const struct sim_device *device, const char *key, const char *otherwise)
{
    const char *value = json_string_value(json_object_get(device->facts, key));

    return value != NULL ? value : otherwise;
}

const char *sim_item(const struct sim_device *device, const char *key, uint32_t at)
{
    const json_t *list = json_object_get(device->facts, key);

    if (at >= json_array_size(list)) {
        return NULL;
    }
    if (!json_is_string(json_array_get(list, at))) {
        sim_misuse("SIM_MACHINE: %s is not a list of texts", key);
    }
    return json_string_value(json_array_get(list, at));
}

int64_t sim_vendor_number(const char *key, int64_t otherwise)
{
    return number_of(machine.vendor, key, otherwise);
}

const char *sim_vendor_text(const char *key, const char *otherwise)
{
    const char *value = json_string_value(json_object_get(machine.vendor, key));

    return value != NULL ? value : otherwise;
}

/* ---- orders --------------------------------------------------------------------------------- */

static int compare_pci(const struct sim_device *a, const struct sim_device *b)
{
    uint64_t left = ((uint64_t)a->pci_domain << 32) | a->pci_bus << 16 | a->pci_slot << 8 |
                    a->pci_function;
    uint64_t right = ((uint64_t)b->pci_domain << 32) | b->pci_bus << 16 | b->pci_slot << 8 |
                     b->pci_function;

    return (left > right) - (left < right);
}

static bool comes_first(const char *how, uint32_t left, uint32_t right)
{
    const struct sim_device *a = sim_device_at(left);
    const struct sim_device *b = sim_device_at(right);
    int pci = compare_pci(a, b);

    if (strcmp(how, "fastest") == 0) {
        return a->speed != b->speed ? a->speed > b->speed : pci < 0;
    }
    if (strcmp(how, "pci") == 0) {
        return pci < 0;
    }
    if (strcmp(how, "shuffled") == 0) {
        return sim_number(a, "shuffle", left) < sim_number(b, "shuffle", right);
    }
    if (strcmp(how, "file") != 0) {
        sim_misuse("SIM_MACHINE: order \"%s\" is not fastest, pci, file or shuffled", how);
    }
    return left < right;
}

uint32_t sim_order(const char *how, const char *otherwise, uint32_t *order, uint32_t capacity)
{
    uint32_t count = 0;

    how = how != NULL ? how : sim_vendor_text("order", otherwise);
    for (uint32_t physical = 0; physical < machine.count; physical++) {
        uint32_t at = count;

        if (machine.devices[physical].is_partition || count == capacity) {
            continue;
        }
        for (; at > 0 && comes_first(how, physical, order[at - 1]); at--) {
            order[at] = order[at - 1];
        }
        order[at] = physical;
        count++;
    }
    return count;
}
