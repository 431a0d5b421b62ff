/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The report topo: devices, network interfaces and NUMA nodes, and the closeness of any two devices
 * or network interfaces.
 *
 * A plugin describes a device without opening it: PCI address, NUMA node, links to others. sysfs
 * shows how close two PCI functions are: the link below /sys/bus/pci/devices contains every bridge
 * on the path, "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0", so two devices share the
 * bridges of the common start of their paths. Where a machine does not show the paths, the NUMA
 * nodes are compared.
 *
 *      device       the same board: functions of one device, partitions of one
 *      switch       below the same switch: two bridges or more in common
 *      root_port    below the same port of the processor, and no switch is seen
 *      host_bridge  below the same host bridge
 *      numa_node    on the same NUMA node
 *      machine      any other two positions
 *      unknown      the position of one of them is unknown
 */
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "machine/machine.h"
#include "machine/presence.h"
#include "machine/topology.h"
#include "report/report.h"
#include "runtime/facts.h"

#include <stdio.h>
#include <stdlib.h>

#define BUS "/sys/bus/pci/devices"
#define LINK_LIMIT 64u
#define DEVICE_LIMIT 256u /* further devices are counted but not listed */
#define NIC_LIMIT 128u
#define VISIBLE_LIMIT 16u

/* A device or a network interface. */
struct vertex {
    const json_t *tree; /* borrowed */
    char id[64];        /* "cuda:0", "mlx5_0" */
    char address[DS_ACCEL__PCI_ADDRESS_SIZE];
    char way[512]; /* PCI path "pci0000:00/0000:00:01.0/0000:01:00.0"; "": not known */
    long numa;     /* -1: not known */
    long parent;   /* device_index of the device that it is a partition of; -1: none */
    const char *accelerator;
    long index;
};

struct topo {
    ds_accel_t *context;
    const struct ds_accel__topology *nodes;
    struct vertex *vertices; /* devices, then network interfaces */
    size_t count;
    bool failed;
};

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

static void append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0) {
        *failed = true;
    }
}

/* ---- addresses ------------------------------------------------------------------------------ */

/* Convert a vendor's spelling of a PCI address ("00000000:65:00.0", "0000:65:0.0") to that of
 * sysfs. False: the text is no address. */
static bool normalize(const char *text, char *address, size_t size)
{
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned function;
    int end = 0;

    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
        text[end] != '\0') {
        return false;
    }
    snprintf(address, size, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return true;
}

/* Find the last component of a path that is a PCI address. */
static bool find_address(const char *path, char *address, size_t size)
{
    char part[DS_ACCEL__PCI_ADDRESS_SIZE];
    bool found = false;

    while (*path != '\0') {
        size_t length = strcspn(path, "/");

        if (length > 0 && length < sizeof(part)) {
            snprintf(part, sizeof(part), "%.*s", (int)length, path);
            found = normalize(part, address, size) || found;
        }
        path += length + (path[length] == '/');
    }
    return found;
}

/* Read the chain of bridges to a device from its sysfs link; "" if there is no link. */
static void read_way(const struct ds_accel__machine *machine, const char *address, char *way,
                     size_t size)
{
    char path[sizeof(BUS) + DS_ACCEL__PCI_ADDRESS_SIZE];
    char target[512];
    const char *start;

    way[0] = '\0';
    snprintf(path, sizeof(path), BUS "/%s", address);
    if (address[0] == '\0' || !ds_accel__machine_link(machine, path, target, sizeof(target))) {
        return;
    }
    start = strstr(target, "devices/");
    snprintf(way, size, "%s", start != NULL ? start + strlen("devices/") : "");
    ds_accel__sanitize(way, size);
}

/* Read the device's NUMA node from sysfs; -1: not known. */
static int32_t read_numa(const struct ds_accel__machine *machine, const char *address, long *numa)
{
    char path[sizeof(BUS) + DS_ACCEL__PCI_ADDRESS_SIZE + 16];
    char line[32];
    int32_t status;

    *numa = -1;
    snprintf(path, sizeof(path), BUS "/%s/numa_node", address);
    status = ds_accel__machine_line(machine, path, line, sizeof(line));
    if (status >= 0 && line[0] >= '0' && line[0] <= '9') {
        *numa = strtol(line, NULL, 10);
    }
    return status;
}

/* Find the position of a vertex: its PCI path, and its NUMA node if the plugin did not report it.
 * If sysfs has no NUMA node either, and the machine has only one, that is the vertex's node. */
static void place(struct topo *topo, struct vertex *vertex)
{
    const struct ds_accel__machine *machine = &topo->context->machine;

    read_way(machine, vertex->address, vertex->way, sizeof(vertex->way));
    if (vertex->numa < 0 && vertex->address[0] != '\0' &&
        read_numa(machine, vertex->address, &vertex->numa) < 0) {
        topo->failed = true;
    }
    if (vertex->numa < 0 && topo->nodes->node_count == 1) {
        vertex->numa = (long)topo->nodes->nodes[0].id;
    }
}

/* ---- devices -------------------------------------------------------------------------------- */

static const char *link_name(uint32_t kind)
{
    static const char *const names[] = {
        [DS_ACCEL_LINK_UNKNOWN] = "unknown",
        [DS_ACCEL_LINK_PCI] = "pci",
        [DS_ACCEL_LINK_NVLINK] = "nvlink",
        [DS_ACCEL_LINK_XGMI] = "xgmi",
        [DS_ACCEL_LINK_XE] = "xe",
        [DS_ACCEL_LINK_HCCS] = "hccs",
        [DS_ACCEL_LINK_ETHERNET] = "ethernet",
        [DS_ACCEL_LINK_OTHER] = "other",
    };

    return kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

static json_t *link_tree(struct ds_accel_link *link, bool *failed)
{
    char address[DS_ACCEL__PCI_ADDRESS_SIZE] = "";
    json_t *tree = json_object();

    link->peer_pci_address[sizeof(link->peer_pci_address) - 1] = '\0';
    normalize(link->peer_pci_address, address, sizeof(address));
    set_text(tree, "kind", link_name(link->kind), failed);
    ds_accel__json_set(tree, "peer_index",
                       link->peer_index >= 0 ? json_integer(link->peer_index) : json_null(),
                       failed);
    set_text(tree, "peer_pci_address", address, failed);
    ds_accel__json_set(tree, "width", json_integer(link->width), failed);
    ds_accel__json_set(tree, "generation", json_integer(link->generation), failed);
    ds_accel__json_set(tree, "is_up", json_boolean(link->is_up != 0), failed);
    ds_accel__json_set(tree, "bandwidth_bytes_per_s",
                       link->bandwidth_bytes_per_s != 0 && link->bandwidth_bytes_per_s <= INT64_MAX
                           ? json_integer((json_int_t)link->bandwidth_bytes_per_s)
                           : json_null(),
                       failed);
    return tree;
}

/* The links of a device that the plugin reports; an empty array if it reports none. */
static json_t *links_tree(const struct ds_accel__facts *facts, uint32_t index, bool *failed)
{
    struct ds_accel_link links[LINK_LIMIT];
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    json_t *array = json_array();
    uint32_t count = 0;

    memset(links, 0, sizeof(links));
    for (size_t i = 0; i < LINK_LIMIT; i++) {
        links[i].struct_size = sizeof(links[i]);
        links[i].peer_index = -1;
    }
    if (facts->candidate->table.links_get(facts->instance, index, links, sizeof(links[0]),
                                          LINK_LIMIT, &count, &error) != DS_ACCEL_OK) {
        return array;
    }
    for (uint32_t i = 0; i < count && i < LINK_LIMIT; i++) {
        append(array, link_tree(&links[i], failed), failed);
    }
    return array;
}

static json_t *known_number(const struct ds_accel_device_identity *identity, uint32_t bit,
                            uint32_t value)
{
    return (identity->valid & bit) != 0 ? json_integer(value) : json_null();
}

static json_t *device_tree(const struct ds_accel__facts *facts, uint32_t index, bool *failed)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    char address[DS_ACCEL__PCI_ADDRESS_SIZE] = "";
    json_t *tree = json_object();
    char id[64];

    if (facts->candidate->table.device_identity(facts->instance, index, &identity, &error) !=
        DS_ACCEL_OK) {
        memset(&identity, 0, sizeof(identity));
    }
    ds_accel__sanitize(identity.name, sizeof(identity.name));
    ds_accel__sanitize(identity.uuid_text, sizeof(identity.uuid_text));
    identity.pci_address[sizeof(identity.pci_address) - 1] = '\0';
    normalize(identity.pci_address, address, sizeof(address));
    snprintf(id, sizeof(id), "%s:%u", facts->name, index);
    set_text(tree, "id", id, failed);
    set_text(tree, "accelerator", facts->name, failed);
    ds_accel__json_set(tree, "index", json_integer(index), failed);
    set_text(tree, "name", identity.name, failed);
    set_text(tree, "uuid", identity.uuid_text, failed);
    set_text(tree, "pci_address", address, failed);
    ds_accel__json_set(
        tree, "vendor_index",
        known_number(&identity, DS_ACCEL_IDENTITY_VENDOR_INDEX, identity.vendor_index), failed);
    ds_accel__json_set(
        tree, "parent_index",
        known_number(&identity, DS_ACCEL_IDENTITY_PARENT_INDEX, identity.parent_index), failed);
    ds_accel__json_set(tree, "numa_node",
                       known_number(&identity, DS_ACCEL_IDENTITY_NUMA_NODE, identity.numa_node),
                       failed);
    ds_accel__json_set(tree, "links", links_tree(facts, index, failed), failed);
    return tree;
}

/* The names of the variables that select the plugin's devices. */
static json_t *visible_tree(const struct ds_accel__facts *facts, bool *failed)
{
    json_t *array = json_array();
    char name[64];

    for (uint32_t i = 0; facts->instance != NULL && i < VISIBLE_LIMIT; i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        if (facts->candidate->table.env_name_get(facts->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES,
                                                 i, name, sizeof(name), &error) < 0) {
            break;
        }
        ds_accel__sanitize(name, sizeof(name));
        append(array, ds_accel__json_text(name), failed);
    }
    return array;
}

/* The tree of one accelerator's devices; a callback of ds_accel__with_facts(). */
static json_t *accelerator_tree(const struct ds_accel__facts *facts, uint32_t count)
{
    const struct ds_accel__candidate *candidate = facts->candidate;
    bool available = facts->instance != NULL;
    json_t *devices = json_array();
    json_t *tree = json_object();
    bool failed = false;

    set_text(tree, "name", facts->name, &failed);
    ds_accel__json_set(tree, "available", json_boolean(available), &failed);
    set_text(tree, "reason",
             available ? ""
                       : ds_accel__reason_code(candidate != NULL ? candidate->reason
                                                                 : DS_ACCEL__REASON_NO_PLUGIN),
             &failed);
    set_text(tree, "detail", !available && candidate != NULL ? candidate->detail : "", &failed);
    ds_accel__json_set(tree, "device_count", available ? json_integer(count) : json_null(),
                       &failed);
    ds_accel__json_set(tree, "visible_devices_envs", visible_tree(facts, &failed), &failed);
    for (uint32_t i = 0; available && i < count && i < DEVICE_LIMIT; i++) {
        append(devices, device_tree(facts, i, &failed), &failed);
    }
    ds_accel__json_set(tree, "devices", devices, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Add an accelerator, unless it was added before: ids in the report are unique. */
static int32_t add_accelerator(struct topo *topo, const char *name, json_t *accelerators,
                               json_t *devices)
{
    json_t *tree = NULL;
    int32_t status;

    for (size_t i = 0; i < json_array_size(accelerators); i++) {
        if (strcmp(ds_accel__json_string(json_array_get(accelerators, i), "name"), name) == 0) {
            return DS_ACCEL_OK;
        }
    }
    status = ds_accel__with_facts(topo->context, name, accelerator_tree, &tree);
    if (status < 0) {
        return status;
    }
    if (json_array_extend(devices, json_object_get(tree, "devices")) != 0 ||
        json_object_del(tree, "devices") != 0) {
        topo->failed = true;
    }
    append(accelerators, tree, &topo->failed);
    return DS_ACCEL_OK;
}

/* Add the available accelerators except cpu; if with_cpu is true, add only cpu. The caller adds cpu
 * only if no other accelerator has a device, because the devices of cpu are the NUMA nodes, which
 * the report contains already. */
static int32_t add_available(struct topo *topo, bool with_cpu, json_t *accelerators,
                             json_t *devices)
{
    const struct ds_accel__registry *registry = &topo->context->registry;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < registry->count && status >= 0; i++) {
        const struct ds_accel__candidate *candidate = registry->candidates[i];

        if ((candidate->state == DS_ACCEL_STATE_AVAILABLE ||
             candidate->state == DS_ACCEL_STATE_SELECTED) &&
            (strcmp(candidate->name, "cpu") == 0) == with_cpu) {
            status = add_accelerator(topo, candidate->name, accelerators, devices);
        }
    }
    return status;
}

static int32_t add_accelerators(struct topo *topo, const char *names, json_t *accelerators,
                                json_t *devices)
{
    int32_t status = DS_ACCEL_OK;
    const char *item;
    size_t length;

    if (names == NULL) {
        status = add_available(topo, false, accelerators, devices);
        return status < 0 || json_array_size(devices) > 0
                   ? status
                   : add_available(topo, true, accelerators, devices);
    }
    while (status >= 0 && (item = ds_accel__list_next(&names, ',', &length)) != NULL) {
        char name[DS_ACCEL__NAME_SIZE + 1];

        snprintf(name, sizeof(name), "%.*s", (int)length, item);
        status = add_accelerator(topo, name, accelerators, devices);
    }
    return status;
}

/* ---- network interfaces --------------------------------------------------------------------- */

/* Find the PCI address of a network interface: in its own sysfs link, in its device's link, or in
 * the device's uevent file; "" if there is none. */
static int32_t find_nic_address(const struct ds_accel__machine *machine, const char *class,
                                const char *name, char *address, size_t size)
{
    char path[320];
    char target[512];
    const char *slot;
    char *text;
    int32_t status;

    address[0] = '\0';
    snprintf(path, sizeof(path), "/sys/class/%s/%s", class, name);
    if (ds_accel__machine_link(machine, path, target, sizeof(target)) &&
        find_address(target, address, size)) {
        return DS_ACCEL_OK;
    }
    snprintf(path, sizeof(path), "/sys/class/%s/%s/device", class, name);
    if (ds_accel__machine_link(machine, path, target, sizeof(target)) &&
        find_address(target, address, size)) {
        return DS_ACCEL_OK;
    }
    snprintf(path, sizeof(path), "/sys/class/%s/%s/device/uevent", class, name);
    status = ds_accel__machine_read(machine, path, &text);
    slot = text != NULL ? strstr(text, "PCI_SLOT_NAME=") : NULL;
    if (slot != NULL) {
        snprintf(target, sizeof(target), "%.*s", (int)strcspn(slot + 14, "\n"), slot + 14);
        normalize(target, address, size);
    }
    free(text);
    return status;
}

static json_t *find_nic(json_t *nics, const char *address)
{
    for (size_t i = 0; i < json_array_size(nics); i++) {
        json_t *nic = json_array_get(nics, i);
        const char *other = json_string_value(json_object_get(nic, "pci_address"));

        if (other != NULL && strcmp(other, address) == 0) {
            return nic;
        }
    }
    return NULL;
}

/* Add a network interface. Interfaces of one PCI function share one entry of nics. */
static void add_nic(struct topo *topo, json_t *nics, const char *class, const char *name,
                    const char *address)
{
    bool is_infiniband = strcmp(class, "infiniband") == 0;
    json_t *nic = find_nic(nics, address);

    if (nic == NULL && json_array_size(nics) < NIC_LIMIT) {
        nic = json_object();
        set_text(nic, "id", name, &topo->failed);
        set_text(nic, "kind", is_infiniband ? "infiniband" : "ethernet", &topo->failed);
        set_text(nic, "pci_address", address, &topo->failed);
        ds_accel__json_set(nic, "numa_node", json_null(), &topo->failed);
        ds_accel__json_set(nic, "interfaces", json_array(), &topo->failed);
        append(nics, nic, &topo->failed);
    }
    if (nic != NULL && !topo->failed && !is_infiniband) {
        append(json_object_get(nic, "interfaces"), ds_accel__json_text(name), &topo->failed);
    }
}

static int32_t add_nics(struct topo *topo, const char *class, json_t *nics)
{
    const struct ds_accel__machine *machine = &topo->context->machine;
    char path[64];
    char **names;
    size_t count;
    int32_t status;

    snprintf(path, sizeof(path), "/sys/class/%s", class);
    status = ds_accel__machine_list(machine, path, &names, &count);
    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < count && status >= 0; i++) {
        char address[DS_ACCEL__PCI_ADDRESS_SIZE];

        status = find_nic_address(machine, class, names[i], address, sizeof(address));
        if (status >= 0 && address[0] != '\0') {
            add_nic(topo, nics, class, names[i], address);
        }
    }
    ds_accel__names_free(names, count);
    return status;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Read a node's distances to the existing nodes, in the order of the nodes, such as "10 21". */
static int32_t distances_tree(struct topo *topo, uint32_t id, json_t **array_out)
{
    json_t *array = json_array();
    char path[64];
    char *text;
    int32_t status;

    snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/distance", id);
    status = ds_accel__machine_read(&topo->context->machine, path, &text);
    for (char *at = text; at != NULL && *at != '\0';) {
        char *end;
        long distance = strtol(at, &end, 10);

        if (end == at) {
            break;
        }
        append(array, json_integer(distance), &topo->failed);
        at = end;
    }
    free(text);
    /* The topology omits nodes that have no list of CPUs. If the counts differ, distances cannot be
     * assigned to nodes. */
    if (json_array_size(array) != topo->nodes->node_count) {
        json_array_clear(array);
    }
    *array_out = array;
    return status;
}

static int32_t add_nodes(struct topo *topo, json_t *array)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; i < topo->nodes->node_count && status >= 0; i++) {
        const struct ds_accel__numa_node *node = &topo->nodes->nodes[i];
        json_t *distances;
        json_t *tree = json_object();

        status = distances_tree(topo, node->id, &distances);
        ds_accel__json_set(tree, "id", json_integer(node->id), &topo->failed);
        set_text(tree, "cpus", node->cpus, &topo->failed);
        ds_accel__json_set(tree, "total_memory_bytes",
                           json_integer((json_int_t)node->total_memory_bytes), &topo->failed);
        ds_accel__json_set(tree, "distances", distances, &topo->failed);
        append(array, tree, &topo->failed);
    }
    return status;
}

/* ---- closeness ------------------------------------------------------------------------------ */

static long get_number(const json_t *tree, const char *key)
{
    const json_t *value = json_object_get(tree, key);

    return json_is_integer(value) ? (long)json_integer_value(value) : -1;
}

static void add_vertex(struct topo *topo, json_t *tree)
{
    struct vertex *vertex = &topo->vertices[topo->count++];

    *vertex = (struct vertex){
        .tree = tree,
        .numa = get_number(tree, "numa_node"),
        .parent = get_number(tree, "parent_index"),
        .accelerator = ds_accel__json_string(tree, "accelerator"),
        .index = get_number(tree, "index"),
    };
    snprintf(vertex->id, sizeof(vertex->id), "%s", ds_accel__json_string(tree, "id"));
    snprintf(vertex->address, sizeof(vertex->address), "%s",
             ds_accel__json_string(tree, "pci_address"));
    place(topo, vertex);
    if (json_object_set_new(tree, "numa_node",
                            vertex->numa >= 0 ? json_integer(vertex->numa) : json_null()) != 0) {
        topo->failed = true;
    }
}

/* Are a and b on the same board? Their addresses differ at most in the function, or they are
 * partitions of one device, or one is a partition of the other. */
static bool is_same_device(const struct vertex *a, const struct vertex *b)
{
    size_t length = strcspn(a->address, ".");
    long whole_a = a->parent >= 0 ? a->parent : a->index;
    long whole_b = b->parent >= 0 ? b->parent : b->index;

    if (length > 0 && strcspn(b->address, ".") == length &&
        strncmp(a->address, b->address, length) == 0) {
        return true;
    }
    return a->accelerator[0] != '\0' && strcmp(a->accelerator, b->accelerator) == 0 &&
           whole_a == whole_b;
}

/* The number of leading components that two paths share, counting the host bridge. */
static unsigned count_common(const char *a, const char *b)
{
    unsigned count = 0;

    for (;;) {
        size_t length = strcspn(a, "/");

        if (length == 0 || strcspn(b, "/") != length || strncmp(a, b, length) != 0) {
            return count;
        }
        count++;
        if (a[length] == '\0' || b[length] == '\0') {
            return count;
        }
        a += length + 1;
        b += length + 1;
    }
}

static const char *closeness(const struct vertex *a, const struct vertex *b)
{
    unsigned common = count_common(a->way, b->way);

    if (is_same_device(a, b)) {
        return "device";
    }
    if (common > 0) {
        return common == 1 ? "host_bridge" : common == 2 ? "root_port" : "switch";
    }
    if (a->numa < 0 || b->numa < 0) {
        return "unknown";
    }
    return a->numa == b->numa ? "numa_node" : "machine";
}

/* Does a link lead from one vertex to another? */
static bool leads_to(const json_t *link, const struct vertex *from, const struct vertex *to)
{
    long peer = get_number(link, "peer_index");

    if (peer >= 0) {
        return peer == to->index && strcmp(from->accelerator, to->accelerator) == 0;
    }
    return to->address[0] != '\0' &&
           strcmp(ds_accel__json_string(link, "peer_pci_address"), to->address) == 0;
}

/* Does the link lead to something that is neither a device nor a network interface of this report,
 * such as an NVLink switch? */
static bool leads_nowhere(const struct topo *topo, const json_t *link)
{
    const char *address = ds_accel__json_string(link, "peer_pci_address");

    if (get_number(link, "peer_index") >= 0 || address[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < topo->count; i++) {
        if (strcmp(topo->vertices[i].address, address) == 0) {
            return false;
        }
    }
    return true;
}

/* Does the device `to` have an active link of the same kind to the same peer address? */
static bool is_shared(const json_t *link, const struct vertex *to)
{
    const json_t *links = json_object_get(to->tree, "links");

    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *other = json_array_get(links, i);

        if (json_is_true(json_object_get(other, "is_up")) && get_number(other, "peer_index") < 0 &&
            strcmp(ds_accel__json_string(other, "kind"), ds_accel__json_string(link, "kind")) ==
                0 &&
            strcmp(ds_accel__json_string(other, "peer_pci_address"),
                   ds_accel__json_string(link, "peer_pci_address")) == 0) {
            return true;
        }
    }
    return false;
}

struct bundle {
    const char *kind;
    json_int_t count;
    json_int_t bandwidth;
    bool is_direct;
};

static void count_link(struct bundle *bundles, size_t *bundle_count, const json_t *link,
                       bool is_direct)
{
    const char *kind = ds_accel__json_string(link, "kind");
    json_int_t bandwidth;
    size_t i = 0;

    while (i < *bundle_count &&
           (strcmp(bundles[i].kind, kind) != 0 || bundles[i].is_direct != is_direct)) {
        i++;
    }
    if (i == *bundle_count) {
        bundles[(*bundle_count)++] = (struct bundle){.kind = kind, .is_direct = is_direct};
    }
    bundles[i].count++;
    bandwidth = json_integer_value(json_object_get(link, "bandwidth_bytes_per_s"));
    if (bandwidth > 0) { /* the sum saturates, because a plugin may report any value */
        bundles[i].bandwidth = bandwidth < INT64_MAX - bundles[i].bandwidth
                                   ? bundles[i].bandwidth + bandwidth
                                   : INT64_MAX;
    }
}

/* The active links between two vertices, grouped by kind. A link is direct, or both vertices have a
 * link to the same peer outside the report, such as a switch. Network interfaces report no links,
 * so the links of the other vertex are used. */
static json_t *links_between(struct topo *topo, const struct vertex *a, const struct vertex *b)
{
    bool is_turned = json_array_size(json_object_get(a->tree, "links")) == 0;
    const struct vertex *from = is_turned ? b : a;
    const struct vertex *to = is_turned ? a : b;
    const json_t *links = json_object_get(from->tree, "links");
    struct bundle bundles[LINK_LIMIT];
    json_t *array = json_array();
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);

        if (!json_is_true(json_object_get(link, "is_up"))) {
            continue;
        }
        if (leads_to(link, from, to)) {
            count_link(bundles, &count, link, true);
        } else if (leads_nowhere(topo, link) && is_shared(link, to)) {
            count_link(bundles, &count, link, false);
        }
    }
    for (size_t i = 0; i < count; i++) {
        json_t *tree = json_object();

        set_text(tree, "kind", bundles[i].kind, &topo->failed);
        ds_accel__json_set(tree, "count", json_integer(bundles[i].count), &topo->failed);
        ds_accel__json_set(tree, "is_direct", json_boolean(bundles[i].is_direct), &topo->failed);
        ds_accel__json_set(tree, "bandwidth_bytes_per_s",
                           bundles[i].bandwidth > 0 ? json_integer(bundles[i].bandwidth)
                                                    : json_null(),
                           &topo->failed);
        append(array, tree, &topo->failed);
    }
    return array;
}

static void add_relations(struct topo *topo, json_t *array)
{
    for (size_t i = 0; i < topo->count && !topo->failed; i++) {
        for (size_t k = i + 1; k < topo->count; k++) {
            const struct vertex *a = &topo->vertices[i];
            const struct vertex *b = &topo->vertices[k];
            json_t *tree = json_object();

            set_text(tree, "a", a->id, &topo->failed);
            set_text(tree, "b", b->id, &topo->failed);
            set_text(tree, "closeness", closeness(a, b), &topo->failed);
            ds_accel__json_set(tree, "links", links_between(topo, a, b), &topo->failed);
            append(array, tree, &topo->failed);
        }
    }
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Add the relation of each two vertices to relations. The vertices borrow elements of devices and
 * nics. */
static int32_t relate(struct topo *topo, json_t *devices, json_t *nics, json_t *relations)
{
    size_t device_count = json_array_size(devices);

    topo->vertices = calloc(device_count + json_array_size(nics) + 1, sizeof(*topo->vertices));
    if (topo->vertices == NULL || topo->failed) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < device_count; i++) {
        add_vertex(topo, json_array_get(devices, i));
    }
    for (size_t i = 0; i < json_array_size(nics); i++) {
        add_vertex(topo, json_array_get(nics, i));
    }
    add_relations(topo, relations);
    return topo->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

static int32_t fill(struct topo *topo, const char *names, json_t *tree)
{
    json_t *accelerators = json_array();
    json_t *devices = json_array();
    json_t *nics = json_array();
    json_t *nodes = json_array();
    json_t *relations = json_array();
    int32_t status;

    ds_accel__json_set(tree, "schema_version", json_integer(1), &topo->failed);
    ds_accel__json_set(tree, "accelerators", accelerators, &topo->failed);
    ds_accel__json_set(tree, "devices", devices, &topo->failed);
    ds_accel__json_set(tree, "nics", nics, &topo->failed);
    ds_accel__json_set(tree, "numa_nodes", nodes, &topo->failed);
    ds_accel__json_set(tree, "relations", relations, &topo->failed);
    if (topo->failed) {
        return ds_accel__no_memory();
    }
    status = add_accelerators(topo, names, accelerators, devices);
    while (json_array_size(devices) > DEVICE_LIMIT) {
        json_array_remove(devices, json_array_size(devices) - 1);
    }
    status = status < 0 ? status : add_nics(topo, "infiniband", nics);
    status = status < 0 ? status : add_nics(topo, "net", nics);
    status = status < 0 ? status : add_nodes(topo, nodes);
    return status < 0 ? status : relate(topo, devices, nics, relations);
}

int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out)
{
    struct topo topo = {.context = context};
    json_t *tree = json_object();
    int32_t status = tree != NULL ? ds_accel__context_topology(context, &topo.nodes)
                                  : ds_accel__no_memory();

    status = status < 0 ? status : fill(&topo, names, tree);
    free(topo.vertices);
    if (status < 0) {
        json_decref(tree);
        return status;
    }
    *tree_out = tree;
    return DS_ACCEL_OK;
}

int32_t ds_accel__topo_devices(ds_accel_t *context, const char *name, json_t **devices_out)
{
    struct topo topo = {.context = context};
    json_t *tree = NULL;
    int32_t status = ds_accel__context_topology(context, &topo.nodes);

    if (status >= 0) {
        status = ds_accel__with_facts(context, name, accelerator_tree, &tree);
    }
    if (status >= 0) {
        json_t *devices = json_object_get(tree, "devices");

        topo.vertices = calloc(json_array_size(devices) + 1, sizeof(*topo.vertices));
        topo.failed = topo.vertices == NULL;
        for (size_t i = 0; !topo.failed && i < json_array_size(devices); i++) {
            add_vertex(&topo, json_array_get(devices, i));
        }
        status = topo.failed ? ds_accel__no_memory() : DS_ACCEL_OK;
        *devices_out = topo.failed ? NULL : json_incref(devices);
    }
    free(topo.vertices);
    json_decref(tree);
    return status;
}
