/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Finds the PCI devices and device nodes of a backend, by the facts of the configuration, before
 * any of them is opened. It reads only /proc/bus/pci/devices and files of sysfs whose contents the
 * kernel has in memory (vendor, class, power/runtime_status): reading a device's config space or
 * opening its node would wake the device.
 */
#include "machine/presence.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "machine/machine.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_LIMIT 65536u /* maximum number of directory entries examined */
#define MATCH_LIMIT 1024u  /* maximum number of devices, and of nodes, stored for a backend */
#define BUS DS_ACCEL__PCI_BUS

/* A PCI function in the kernel's list /proc/bus/pci/devices, which omits the domain. */
struct ds_accel__survey_slot {
    char vendor[8]; /* "0x10de" */
    uint8_t bus;
    uint8_t function; /* device and function number */
};

struct ds_accel__survey_device {
    char address[DS_ACCEL__PCI_ADDRESS_SIZE];
    bool has_vendor; /* vendor was read */
    bool has_class;
    char vendor[16]; /* "" if it cannot be read */
    char class[16];
};

struct ds_accel__survey_directory {
    char *path;
    char **names;
    size_t count;
};

void ds_accel__survey_clear(struct ds_accel__survey *survey)
{
    const struct ds_accel__machine *machine = survey->machine;

    for (size_t i = 0; i < survey->directory_count; i++) {
        ds_accel__names_free(survey->directories[i].names, survey->directories[i].count);
        free(survey->directories[i].path);
    }
    free(survey->directories);
    free(survey->bus);
    free(survey->slots);
    *survey = (struct ds_accel__survey){.machine = machine};
}

/* ---- PCI devices ---------------------------------------------------------------------------- */

/*
 * A fact "10de:03" means vendor 0x10de and the classes 0x03xxxx. The kernel writes both in lower
 * case.
 */
static bool is_vendor(const char *fact, const char *vendor)
{
    return strncmp(vendor, "0x", 2) == 0 && strncmp(fact, vendor + 2, 4) == 0;
}

static bool is_class(const char *fact, const char *class)
{
    const char *wanted = fact[4] == ':' ? fact + 5 : "";

    if (strncmp(class, "0x", 2) != 0) {
        return wanted[0] == '\0';
    }
    for (class += 2; *wanted != '\0' && *wanted == *class; wanted++) {
        class ++;
    }
    return *wanted == '\0';
}

static int32_t read_attribute(const struct ds_accel__survey *survey, const char *address,
                              const char *name, char *line, size_t line_size)
{
    char path[sizeof(BUS) + DS_ACCEL__PCI_ADDRESS_SIZE + 32];

    snprintf(path, sizeof(path), BUS "/%s/%s", address, name);
    return ds_accel__machine_line(survey->machine, path, line, line_size);
}

/*
 * Whether a device matches one of the facts. The class is read only if the vendor matches, because
 * most devices of a machine have another vendor.
 */
static int32_t matches_pci(const struct ds_accel__survey *survey, json_t *facts,
                           struct ds_accel__survey_device *device, bool *matches_out)
{
    int32_t status = DS_ACCEL_OK;

    *matches_out = false;
    if (!device->has_vendor) {
        status = read_attribute(survey, device->address, "vendor", device->vendor,
                                sizeof(device->vendor));
        device->has_vendor = status >= 0;
    }
    for (size_t i = 0; i < json_array_size(facts) && status >= 0 && !*matches_out; i++) {
        const char *fact = json_string_value(json_array_get(facts, i));

        if (!is_vendor(fact, device->vendor)) {
            continue;
        }
        if (!device->has_class) {
            status = read_attribute(survey, device->address, "class", device->class,
                                    sizeof(device->class));
            device->has_class = status >= 0;
        }
        *matches_out = status >= 0 && device->class[0] != '\0' && is_class(fact, device->class);
    }
    return status;
}

static int32_t add_device(const struct ds_accel__survey *survey,
                          struct ds_accel__presence *presence, const char *address)
{
    struct ds_accel__pci_device device = {.address = ""};
    struct ds_accel__pci_device *devices;
    int32_t status;

    devices = realloc(presence->devices, (presence->device_count + 1) * sizeof(*devices));
    if (devices == NULL) {
        return ds_accel__no_memory();
    }
    presence->devices = devices;
    snprintf(device.address, sizeof(device.address), "%s", address);
    status = read_attribute(survey, address, "power/runtime_status", device.runtime_status,
                            sizeof(device.runtime_status));
    if (device.runtime_status[0] == '\0') {
        snprintf(device.runtime_status, sizeof(device.runtime_status), "unknown");
    }
    devices[presence->device_count++] = device;
    return status;
}

static size_t count_lines(const char *text)
{
    size_t count = 1;

    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

/*
 * Read the kernel's list of all PCI functions, with lines "BBDD<tab>VVVVDDDD...": bus and function,
 * vendor and device. It saves reading sysfs files of each of the hundreds of devices of a large
 * machine.
 */
static int32_t read_slots(struct ds_accel__survey *survey)
{
    char *text;
    size_t limit;
    int32_t status = ds_accel__machine_read(survey->machine, "/proc/bus/pci/devices", &text);

    assert(!survey->has_slots && survey->slots == NULL);
    survey->is_listed = text != NULL && text[0] != '\0';
    if (status < 0 || text == NULL) {
        survey->has_slots = status >= 0;
        return status;
    }
    limit = count_lines(text);
    survey->slots = calloc(limit, sizeof(*survey->slots));
    if (survey->slots == NULL) {
        free(text);
        return ds_accel__no_memory();
    }
    for (const char *line = text; *line != '\0'; line += *line == '\n') {
        struct ds_accel__survey_slot slot = {.vendor = "0x"};
        size_t length = strcspn(line, "\n");
        char start[16]; /* a copy: sscanf() reads its whole input up to the NUL */
        unsigned bus;
        unsigned function;

        snprintf(start, sizeof(start), "%.*s", (int)(length < 15 ? length : 15), line);
        if (sscanf(start, "%2x%2x %4[0-9a-f]", &bus, &function, slot.vendor + 2) == 3 &&
            bus <= UINT8_MAX && function <= UINT8_MAX) { /* sscanf() accepts a sign */
            assert(survey->slot_count < limit);
            slot.bus = (uint8_t)bus;
            slot.function = (uint8_t)function;
            survey->slots[survey->slot_count++] = slot;
        }
        line += length;
    }
    free(text);
    survey->has_slots = true;
    return DS_ACCEL_OK;
}

static int32_t read_bus(struct ds_accel__survey *survey)
{
    char **names;
    size_t count;
    int32_t status = ds_accel__machine_list(survey->machine, BUS, &names, &count);

    assert(!survey->has_bus && survey->bus_count == 0);
    if (status < 0) {
        return status;
    }
    survey->bus = calloc(count + 1, sizeof(*survey->bus));
    for (size_t i = 0; i < count && i < ENTRY_LIMIT && survey->bus != NULL; i++) {
        assert(survey->bus_count <= i);
        if (strlen(names[i]) < DS_ACCEL__PCI_ADDRESS_SIZE) {
            snprintf(survey->bus[survey->bus_count].address, DS_ACCEL__PCI_ADDRESS_SIZE, "%s",
                     names[i]);
            survey->bus_count++;
        }
    }
    ds_accel__names_free(names, count);
    if (survey->bus == NULL) {
        return ds_accel__no_memory();
    }
    survey->has_bus = true;
    return DS_ACCEL_OK;
}

static bool is_one_of(json_t *facts, const char *vendor)
{
    for (size_t i = 0; i < json_array_size(facts); i++) {
        if (is_vendor(json_string_value(json_array_get(facts, i)), vendor)) {
            return true;
        }
    }
    return false;
}

/*
 * True if the kernel's list contains a device of these vendors, or if there is no list. Unless
 * address is NULL, the device must have its bus and function, in any domain.
 */
static bool has_slot(const struct ds_accel__survey *survey, json_t *facts, const char *address)
{
    unsigned bus = 0;
    unsigned device = 0;
    unsigned function = 0;

    if (!survey->is_listed) {
        return true;
    }
    if (address != NULL && sscanf(address, "%*x:%2x:%2x.%1x", &bus, &device, &function) != 3) {
        return false;
    }
    for (size_t i = 0; i < survey->slot_count; i++) {
        const struct ds_accel__survey_slot *slot = &survey->slots[i];

        if ((address == NULL || (slot->bus == bus && slot->function == (device << 3 | function))) &&
            is_one_of(facts, slot->vendor)) {
            return true;
        }
    }
    return false;
}

/*
 * Find the devices that match the facts. The kernel's list only narrows the search; sysfs decides
 * whether a device matches.
 */
static int32_t find_devices(struct ds_accel__survey *survey, json_t *facts,
                            struct ds_accel__presence *presence)
{
    int32_t status = survey->has_slots ? DS_ACCEL_OK : read_slots(survey);

    if (status < 0 || !has_slot(survey, facts, NULL)) {
        return status;
    }
    status = survey->has_bus ? DS_ACCEL_OK : read_bus(survey);
    for (size_t i = 0; i < survey->bus_count && status >= 0 && presence->device_count < MATCH_LIMIT;
         i++) {
        struct ds_accel__survey_device *device = &survey->bus[i];
        bool matches = false;

        if (has_slot(survey, facts, device->address)) {
            status = matches_pci(survey, facts, device, &matches);
        }
        if (status >= 0 && matches) {
            status = add_device(survey, presence, device->address);
        }
    }
    return status;
}

/* ---- device nodes --------------------------------------------------------------------------- */

const char *ds_accel__node_class(const char *path)
{
    return strncmp(path, "/dev/dri/", 9) == 0      ? "drm"
           : strncmp(path, "/dev/accel/", 11) == 0 ? "accel"
                                                   : NULL;
}

/*
 * Check the vendor of a node of /dev/dri or /dev/accel, whose numbers several vendors share, by the
 * node's class in sysfs. A node that is not in sysfs matches.
 */
static int32_t check_vendor(const struct ds_accel__survey *survey, const char *path, json_t *pci,
                            bool *is_other_out)
{
    const char *class = ds_accel__node_class(path);
    char file[256];
    char vendor[16];
    int32_t status;

    *is_other_out = false;
    if (class == NULL || json_array_size(pci) == 0 ||
        (size_t)snprintf(file, sizeof(file), "/sys/class/%s%s/device/vendor", class,
                         strrchr(path, '/')) >= sizeof(file)) {
        return DS_ACCEL_OK;
    }
    status = ds_accel__machine_line(survey->machine, file, vendor, sizeof(vendor));
    *is_other_out = vendor[0] != '\0' && !is_one_of(pci, vendor);
    return status;
}

static bool has_node(const struct ds_accel__presence *presence, const char *path)
{
    for (uint32_t i = 0; i < presence->node_count; i++) {
        if (strcmp(presence->nodes[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Add the node at a path to the presence. Skip an absent path, a directory, a node of another
 * vendor, and a node that has been added already. */
static int32_t check_node(const struct ds_accel__survey *survey, const char *path, json_t *pci,
                          struct ds_accel__presence *presence)
{
    struct ds_accel__device_node node = {.path = ""};
    struct ds_accel__device_node *nodes;
    bool is_other;
    int32_t status = check_vendor(survey, path, pci, &is_other);

    if (status < 0 || is_other || strlen(path) >= sizeof(node.path) || has_node(presence, path) ||
        !ds_accel__machine_node(survey->machine, path, &node.info)) {
        return status;
    }
    nodes = realloc(presence->nodes, (presence->node_count + 1) * sizeof(*nodes));
    if (nodes == NULL) {
        return ds_accel__no_memory();
    }
    presence->nodes = nodes;
    snprintf(node.path, sizeof(node.path), "%s", path);
    nodes[presence->node_count++] = node;
    return DS_ACCEL_OK;
}

/* Find or read the listing of a pattern's directory, which is read once. */
static int32_t find_directory(struct ds_accel__survey *survey, const char *pattern, size_t length,
                              const struct ds_accel__survey_directory **directory_out)
{
    struct ds_accel__survey_directory *directories;
    struct ds_accel__survey_directory *directory;
    int32_t status;

    for (size_t i = 0; i < survey->directory_count; i++) {
        const char *path = survey->directories[i].path;

        if (strncmp(path, pattern, length) == 0 && path[length] == '\0') {
            *directory_out = &survey->directories[i];
            return DS_ACCEL_OK;
        }
    }
    directories =
        realloc(survey->directories, (survey->directory_count + 1) * sizeof(*directories));
    if (directories == NULL) {
        return ds_accel__no_memory();
    }
    survey->directories = directories;
    directory = &directories[survey->directory_count];
    directory->path = strndup(pattern, length);
    if (directory->path == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__machine_list(survey->machine, directory->path, &directory->names,
                                    &directory->count);
    if (status < 0) {
        free(directory->path);
        return status;
    }
    survey->directory_count++;
    *directory_out = directory;
    return DS_ACCEL_OK;
}

/*
 * Add the nodes that match a pattern. Only the last component of a pattern has wildcards, so one
 * directory is read for each pattern.
 */
static int32_t find_nodes(struct ds_accel__survey *survey, const char *pattern, json_t *pci,
                          struct ds_accel__presence *presence)
{
    size_t length = (size_t)(strrchr(pattern, '/') - pattern);
    const char *wanted = pattern + length + 1;
    size_t plain = strcspn(wanted, "*?[\\"); /* length before the first wildcard; compared first */
    const struct ds_accel__survey_directory *directory = NULL;
    int32_t status = find_directory(survey, pattern, length, &directory);

    for (size_t i = 0; status >= 0 && directory != NULL && i < directory->count &&
                       i < ENTRY_LIMIT && presence->node_count < MATCH_LIMIT;
         i++) {
        char path[sizeof(presence->nodes->path)];

        if (strncmp(directory->names[i], wanted, plain) == 0 &&
            fnmatch(wanted, directory->names[i], FNM_PERIOD) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)length, pattern,
                             directory->names[i]) < sizeof(path)) {
            status = check_node(survey, path, pci, presence);
        }
    }
    return status;
}

static int32_t find_all_nodes(struct ds_accel__survey *survey, json_t *patterns, json_t *pci,
                              struct ds_accel__presence *presence)
{
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < json_array_size(patterns) && status >= 0; i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));

        status = strpbrk(pattern, "*?[\\") != NULL ? find_nodes(survey, pattern, pci, presence)
                                                   : check_node(survey, pattern, pci, presence);
    }
    return status;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct ds_accel__device_node *left = a;
    const struct ds_accel__device_node *right = b;

    return strcmp(left->path, right->path);
}

/* ---- presence ------------------------------------------------------------------------------- */

int32_t ds_accel__presence_read(struct ds_accel__survey *survey, json_t *backend,
                                struct ds_accel__presence *presence)
{
    json_t *pci = json_object_get(backend, "pci");
    json_t *patterns = json_object_get(backend, "device_nodes");
    json_t *others = json_object_get(backend, "other_device_nodes");
    uint32_t own_count;
    int32_t status = DS_ACCEL_OK;

    assert(survey->machine != NULL);
    memset(presence, 0, sizeof(*presence));
    presence->has_pci_facts = json_array_size(pci) > 0;
    presence->has_node_facts = json_array_size(patterns) > 0 || json_array_size(others) > 0;
    if (presence->has_pci_facts) {
        status = find_devices(survey, pci, presence);
    }
    status = status < 0 ? status : find_all_nodes(survey, patterns, pci, presence);
    own_count = presence->node_count;
    status = status < 0 ? status : find_all_nodes(survey, others, pci, presence);
    for (uint32_t i = own_count; i < presence->node_count; i++) {
        presence->nodes[i].is_other = true;
    }
    if (status < 0) {
        ds_accel__presence_clear(presence);
        return status;
    }
    if (presence->node_count > 1) {
        qsort(presence->nodes, presence->node_count, sizeof(*presence->nodes), compare_nodes);
    }
    return DS_ACCEL_OK;
}

void ds_accel__presence_clear(struct ds_accel__presence *presence)
{
    free(presence->devices);
    free(presence->nodes);
    memset(presence, 0, sizeof(*presence));
}

bool ds_accel__presence_is_asleep(const struct ds_accel__presence *presence)
{
    for (uint32_t i = 0; i < presence->device_count; i++) {
        if (strcmp(presence->devices[i].runtime_status, "suspended") != 0) {
            return false;
        }
    }
    return presence->device_count > 0;
}

/*
 * Hash one byte (FNV-1a). Fields are hashed one by one because the padding of a struct is
 * undefined.
 */
static uint64_t hash_byte(uint64_t value, unsigned char byte)
{
    return (value ^ byte) * UINT64_C(1099511628211);
}

static uint64_t hash_text(uint64_t value, const char *text)
{
    for (; *text != '\0'; text++) {
        value = hash_byte(value, (unsigned char)*text);
    }
    return hash_byte(value, 0);
}

static uint64_t hash_number(uint64_t value, uint64_t number)
{
    for (int shift = 0; shift < 64; shift += 8) {
        value = hash_byte(value, (unsigned char)(number >> shift));
    }
    return value;
}

uint64_t ds_accel__presence_fingerprint(const struct ds_accel__presence *presence)
{
    uint64_t value = UINT64_C(14695981039346656037);

    value = hash_byte(value, ds_accel__presence_is_asleep(presence));
    for (uint32_t i = 0; i < presence->device_count; i++) {
        value = hash_text(value, presence->devices[i].address);
    }
    for (uint32_t i = 0; i < presence->node_count; i++) {
        const struct ds_accel__device_node *node = &presence->nodes[i];

        value = hash_text(value, node->path);
        value = hash_number(value, node->info.mode);
        value = hash_number(value, node->info.uid);
        value = hash_number(value, node->info.gid);
        value = hash_number(value, node->info.rdev);
        value = hash_number(value, node->info.changed_ns);
        value = hash_byte(value, node->info.is_usable);
    }
    return value;
}

#define NAMED_DEVICES 4u /* the evidence lists only the first of many devices */

void ds_accel__presence_check_power(const struct ds_accel__presence *presence,
                                    struct ds_accel__finding *finding)
{
    bool is_asleep = ds_accel__presence_is_asleep(presence);
    uint32_t named = 0;
    size_t at = 0;

    memset(finding, 0, sizeof(*finding));
    for (uint32_t i = 0; i < presence->device_count && named < NAMED_DEVICES; i++) {
        const struct ds_accel__pci_device *device = &presence->devices[i];

        /* Awake devices are listed as evidence that not all of the backend's devices are asleep. */
        if (is_asleep || strcmp(device->runtime_status, "suspended") != 0) {
            at += (size_t)snprintf(finding->detail + at, sizeof(finding->detail) - at, "%s%s %s",
                                   named > 0 ? ", " : "", device->address, device->runtime_status);
            assert(at < sizeof(finding->detail)); /* NAMED_DEVICES entries fit */
            named++;
        }
    }
    if (is_asleep && presence->device_count > named) {
        snprintf(finding->detail + at, sizeof(finding->detail) - at, " and %u more",
                 presence->device_count - named);
    }
    finding->reason = is_asleep ? DS_ACCEL__REASON_ASLEEP : DS_ACCEL__REASON_NONE;
}
