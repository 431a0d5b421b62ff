/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What a machine shows of a backend's hardware before anything is opened: the PCI devices and the
 * device nodes that the configuration's facts name. Only those files of sysfs are read that the
 * kernel answers from memory (vendor, class, power/runtime_status): reading a device's config
 * space, or opening its node, would wake it.
 */
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY_LIMIT 65536u /* of a folder, looked at */
#define MATCH_LIMIT 1024u  /* devices and nodes of one backend, kept */

/* ---- PCI devices ---------------------------------------------------------------------------- */

/* A small file's first line; false if there is none. */
static bool read_line(int dir, const char *name, char *line, size_t line_size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t count;

    if (fd < 0) {
        return false;
    }
    do {
        count = read(fd, line, line_size - 1);
    } while (count < 0 && errno == EINTR);
    close(fd);
    if (count <= 0) {
        return false;
    }
    line[count] = '\0';
    line[strcspn(line, "\n")] = '\0';
    ds_accel__sanitize(line, line_size);
    return true;
}

/* "10de:03" names the vendor 0x10de and the classes 0x03xxxx; the kernel writes both in lower case.
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

/* The class is read of devices of a vendor that counts only: most of a machine's do not. */
static bool matches_pci(json_t *facts, int bus, const char *address)
{
    char path[DS_ACCEL__PCI_ADDRESS_SIZE + 32];
    char vendor[16];
    char class[16] = "";

    snprintf(path, sizeof(path), "%s/vendor", address);
    if (!read_line(bus, path, vendor, sizeof(vendor))) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(facts); i++) {
        const char *fact = json_string_value(json_array_get(facts, i));

        if (!is_vendor(fact, vendor)) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/class", address);
        if (class[0] == '\0' && !read_line(bus, path, class, sizeof(class))) {
            return false;
        }
        if (is_class(fact, class)) {
            return true;
        }
    }
    return false;
}

static int32_t add_device(struct ds_accel__presence *presence, int bus, const char *address)
{
    struct ds_accel__pci_device device = {.address = ""};
    struct ds_accel__pci_device *devices;
    char path[DS_ACCEL__PCI_ADDRESS_SIZE + 32];

    devices = realloc(presence->devices, (presence->device_count + 1) * sizeof(*devices));
    if (devices == NULL) {
        return ds_accel__no_memory();
    }
    presence->devices = devices;
    snprintf(device.address, sizeof(device.address), "%s", address);
    snprintf(path, sizeof(path), "%s/power/runtime_status", address);
    if (!read_line(bus, path, device.runtime_status, sizeof(device.runtime_status))) {
        snprintf(device.runtime_status, sizeof(device.runtime_status), "unknown");
    }
    devices[presence->device_count++] = device;
    return DS_ACCEL_OK;
}

static int compare_devices(const void *a, const void *b)
{
    const struct ds_accel__pci_device *left = a;
    const struct ds_accel__pci_device *right = b;

    return strcmp(left->address, right->address);
}

/*
 * One file of /proc has all devices, "BBDD<tab>VVVVDDDD...": bus and function, vendor and device.
 * It saves a look at each of a large machine's hundreds. *slots: "\n01:00.0\n...", those of the
 * vendors that count, without the domain, which the file does not have; is_listed_out false: no
 * such file.
 */
static int32_t read_slots(const char *root, json_t *facts, struct ds_accel__text *slots,
                          bool *is_listed_out)
{
    char *text;
    int32_t status = ds_accel__file_read_machine(root, "/proc/bus/pci/devices", &text);

    *is_listed_out = text != NULL && text[0] != '\0';
    if (status < 0 || text == NULL) {
        return status;
    }
    for (const char *line = text; *line != '\0'; line += *line == '\n') {
        unsigned bus;
        unsigned function;
        char vendor[7] = "0x";

        if (sscanf(line, "%2x%2x %4[0-9a-f]", &bus, &function, vendor + 2) == 3) {
            for (size_t i = 0; i < json_array_size(facts); i++) {
                if (is_vendor(json_string_value(json_array_get(facts, i)), vendor)) {
                    ds_accel__text_add(slots, "%s%02x:%02x.%x\n",
                                       slots->size_bytes == 0 ? "\n" : "", bus, function >> 3,
                                       function & 7);
                    break;
                }
            }
        }
        line += strcspn(line, "\n");
    }
    free(text);
    return slots->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

static bool has_slot(const struct ds_accel__text *slots, const char *address)
{
    const char *colon = strchr(address, ':');
    char line[DS_ACCEL__PCI_ADDRESS_SIZE + 4];

    if (colon == NULL) {
        return false;
    }
    snprintf(line, sizeof(line), "\n%s\n", colon + 1);
    return strstr(slots->data, line) != NULL;
}

/* Takes path, which may be NULL after a failed allocation. *dir_out NULL: there is nothing to read.
 */
static int32_t open_dir(char *path, DIR **dir_out)
{
    *dir_out = path != NULL ? opendir(path) : NULL;
    if (path == NULL || (*dir_out == NULL && errno == ENOMEM)) {
        free(path);
        return ds_accel__no_memory();
    }
    free(path);
    return DS_ACCEL_OK;
}

static int32_t scan_devices(const char *root, json_t *facts, const struct ds_accel__text *slots,
                            struct ds_accel__presence *presence)
{
    char *path = ds_accel__format("%s/sys/bus/pci/devices", root);
    const struct dirent *entry;
    int32_t status;
    DIR *dir;

    status = open_dir(path, &dir);
    if (dir == NULL) {
        return status;
    }
    for (uint32_t i = 0; i < ENTRY_LIMIT && status >= 0 && presence->device_count < MATCH_LIMIT &&
                         (entry = readdir(dir)) != NULL;
         i++) {
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < DS_ACCEL__PCI_ADDRESS_SIZE &&
            (slots->data == NULL || has_slot(slots, entry->d_name)) &&
            matches_pci(facts, dirfd(dir), entry->d_name)) {
            status = add_device(presence, dirfd(dir), entry->d_name);
        }
    }
    closedir(dir);
    if (presence->device_count > 1) {
        qsort(presence->devices, presence->device_count, sizeof(*presence->devices),
              compare_devices);
    }
    return status;
}

/* Slots narrow the search; that a device is one of ours, sysfs decides. */
static int32_t find_devices(const char *root, json_t *facts, struct ds_accel__presence *presence)
{
    struct ds_accel__text slots = {0};
    bool is_listed;
    int32_t status = read_slots(root, facts, &slots, &is_listed);

    if (status >= 0 && (!is_listed || slots.data != NULL)) {
        status = scan_devices(root, facts, &slots, presence);
    }
    ds_accel__text_clear(&slots);
    return status;
}

/* ---- device nodes --------------------------------------------------------------------------- */

/*
 * Nodes of /dev/dri and /dev/accel are numbered across vendors: the class in sysfs tells whose one
 * is. One that it does not tell of counts.
 */
static int32_t check_vendor(const char *root, const char *path, json_t *pci, bool *is_other_out)
{
    const char *class = strncmp(path, "/dev/dri/", 9) == 0      ? "drm"
                        : strncmp(path, "/dev/accel/", 11) == 0 ? "accel"
                                                                : NULL;
    char vendor[16];
    char *file;

    *is_other_out = false;
    if (class == NULL || json_array_size(pci) == 0) {
        return DS_ACCEL_OK;
    }
    file = ds_accel__format("%s/sys/class/%s%s/device/vendor", root, class, strrchr(path, '/'));
    if (file == NULL) {
        return ds_accel__no_memory();
    }
    *is_other_out = read_line(AT_FDCWD, file, vendor, sizeof(vendor));
    free(file);
    for (size_t i = 0; i < json_array_size(pci) && *is_other_out; i++) {
        *is_other_out = !is_vendor(json_string_value(json_array_get(pci, i)), vendor);
    }
    return DS_ACCEL_OK;
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

/* full: path below the root. What is not there, or is a folder, is no node. */
static int32_t add_node(struct ds_accel__presence *presence, const char *path, const char *full)
{
    struct ds_accel__device_node node = {.path = ""};
    struct ds_accel__device_node *nodes;
    struct stat info;

    if (strlen(path) >= sizeof(node.path) || has_node(presence, path) || stat(full, &info) != 0 ||
        S_ISDIR(info.st_mode)) {
        return DS_ACCEL_OK;
    }
    nodes = realloc(presence->nodes, (presence->node_count + 1) * sizeof(*nodes));
    if (nodes == NULL) {
        return ds_accel__no_memory();
    }
    presence->nodes = nodes;
    snprintf(node.path, sizeof(node.path), "%s", path);
    node.mode = info.st_mode;
    node.uid = info.st_uid;
    node.gid = info.st_gid;
    node.rdev = info.st_rdev;
    node.changed_ns = (uint64_t)info.st_ctim.tv_sec * 1000000000u + (uint64_t)info.st_ctim.tv_nsec;
    node.is_usable = faccessat(AT_FDCWD, full, R_OK | W_OK, AT_EACCESS) == 0;
    nodes[presence->node_count++] = node;
    return DS_ACCEL_OK;
}

static int32_t check_node(const char *root, const char *path, json_t *pci,
                          struct ds_accel__presence *presence)
{
    char *full;
    bool is_other;
    int32_t status = check_vendor(root, path, pci, &is_other);

    if (status < 0 || is_other) {
        return status;
    }
    full = ds_accel__format("%s%s", root, path);
    status = full != NULL ? add_node(presence, path, full) : ds_accel__no_memory();
    free(full);
    return status;
}

/* Wildcards stand in the last part of a pattern only, so that one folder is read for each. */
static int32_t find_nodes(const char *root, const char *pattern, json_t *pci,
                          struct ds_accel__presence *presence)
{
    int length = (int)(strrchr(pattern, '/') - pattern);
    char *path = ds_accel__format("%s%.*s", root, length, pattern);
    const struct dirent *entry;
    int32_t status;
    DIR *dir;

    status = open_dir(path, &dir);
    if (dir == NULL) {
        return status;
    }
    for (uint32_t i = 0; i < ENTRY_LIMIT && status >= 0 && presence->node_count < MATCH_LIMIT &&
                         (entry = readdir(dir)) != NULL;
         i++) {
        if (fnmatch(pattern + length + 1, entry->d_name, FNM_PERIOD) == 0) {
            path = ds_accel__format("%.*s/%s", length, pattern, entry->d_name);
            status = path == NULL ? ds_accel__no_memory() : check_node(root, path, pci, presence);
            free(path);
        }
    }
    closedir(dir);
    return status;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct ds_accel__device_node *left = a;
    const struct ds_accel__device_node *right = b;

    return strcmp(left->path, right->path);
}

/* ---- all of it ------------------------------------------------------------------------------ */

int32_t ds_accel__presence_read(const char *root, json_t *backend,
                                struct ds_accel__presence *presence)
{
    json_t *pci = json_object_get(backend, "pci");
    json_t *patterns = json_object_get(backend, "device_nodes");
    int32_t status = DS_ACCEL_OK;

    memset(presence, 0, sizeof(*presence));
    presence->has_pci_facts = json_array_size(pci) > 0;
    presence->has_node_facts = json_array_size(patterns) > 0;
    if (presence->has_pci_facts) {
        status = find_devices(root, pci, presence);
    }
    for (size_t i = 0; i < json_array_size(patterns) && status >= 0; i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));

        status = strpbrk(pattern, "*?[\\") != NULL ? find_nodes(root, pattern, pci, presence)
                                                   : check_node(root, pattern, pci, presence);
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

/* FNV-1a. Fields are hashed one by one: what pads a struct is anything. */
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
        value = hash_number(value, node->mode);
        value = hash_number(value, node->uid);
        value = hash_number(value, node->gid);
        value = hash_number(value, node->rdev);
        value = hash_number(value, node->changed_ns);
        value = hash_byte(value, node->is_usable);
    }
    return value;
}

#define NAMED_DEVICES 4u /* of a machine with many, a line names the first */

void ds_accel__presence_check_power(const struct ds_accel__presence *presence,
                                    struct ds_accel__finding *finding)
{
    bool is_asleep = ds_accel__presence_is_asleep(presence);
    uint32_t named = 0;
    size_t at = 0;

    memset(finding, 0, sizeof(*finding));
    for (uint32_t i = 0; i < presence->device_count && named < NAMED_DEVICES; i++) {
        const struct ds_accel__pci_device *device = &presence->devices[i];

        /* Awake devices are the evidence that asking wakes none that all sleep. */
        if (is_asleep || strcmp(device->runtime_status, "suspended") != 0) {
            at += (size_t)snprintf(finding->detail + at, sizeof(finding->detail) - at, "%s%s %s",
                                   named > 0 ? ", " : "", device->address, device->runtime_status);
            named++;
        }
    }
    if (is_asleep && presence->device_count > named) {
        snprintf(finding->detail + at, sizeof(finding->detail) - at, " and %u more",
                 presence->device_count - named);
    }
    finding->reason = is_asleep ? "asleep" : NULL;
}
