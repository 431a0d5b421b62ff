/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The modules of this machine, which of them this process can see, and how each is found: in HLML
 * by module id, in sysfs by module id or PCI address, in /dev by its node. No function of this file
 * acquires a module.
 *
 * A module id is the card's position in the box. HABANA_VISIBLE_MODULES and HLS_MODULE_ID contain
 * module ids and do not renumber modules, and the device's identity reports the id as the vendor's
 * index. Synapse's headers do not say whether Synapse itself applies the two variables; the plugin
 * applies them, so that the result is the same in either case.
 */
#include "hpu.h"

#include <dirent.h>
#include <strings.h>
#include <unistd.h>

/* ---- sysfs ---------------------------------------------------------------------------------- */

/* A card as listed by the kernel. */
struct node {
    char path[64]; /* "/dev/accel/accel3" */
    char pci_address[32];
    uint32_t module;
    uint32_t has_module;
};

/*
 * Reads an attribute of the driver: it is in the device's directory, or, with older drivers, in the
 * directory of the class entry.
 */
static int read_attribute(const struct ds_accel_host *host, const char *class, const char *entry,
                          const char *name, char *line, size_t line_size)
{
    char path[512];

    snprintf(path, sizeof(path), "/sys/class/%s/%s/device/%s", class, entry, name);
    if (vendor_read_line(host, path, line, line_size) == 0) {
        return 0;
    }
    snprintf(path, sizeof(path), "/sys/class/%s/%s/%s", class, entry, name);
    return vendor_read_line(host, path, line, line_size);
}

/*
 * Reads the PCI address from the driver's attribute, or from the last component of the link
 * "device".
 */
static void read_pci_address(const struct ds_accel_host *host, const char *class, const char *entry,
                             char address[32])
{
    char path[1024];
    char target[512];
    ssize_t length;
    const char *base;

    if (read_attribute(host, class, entry, "pci_addr", address, 32) == 0) {
        return;
    }
    address[0] = '\0';
    snprintf(path, sizeof(path), "%s/sys/class/%s/%s/device", host->machine_root, class, entry);
    length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0) {
        return;
    }
    target[length] = '\0';
    base = strrchr(target, '/');
    base = base == NULL ? target : base + 1;
    if (strlen(base) < 32 && strchr(base, ':') != NULL) {
        snprintf(address, 32, "%.31s", base);
    }
}

/* Reads one entry of a class. Returns 1 with *node filled if the device is a card of this vendor,
 * otherwise 0. */
static int read_node(const struct ds_accel_host *host, const char *class, const char *prefix,
                     const char *dev, const char *entry, struct node *node)
{
    size_t prefix_length = strlen(prefix);
    char line[64];
    uint64_t module;

    if (strncmp(entry, prefix, prefix_length) != 0 ||
        !isdigit((unsigned char)entry[prefix_length]) || strlen(entry) > 16) {
        return 0;
    }
    /*
     * The class accel contains the accelerators of all vendors; habanalabs contains only this
     * driver's.
     */
    if (read_attribute(host, class, entry, "vendor", line, sizeof(line)) == 0
            ? strcmp(line, "0x1da3") != 0
            : strcmp(class, "accel") == 0) {
        return 0;
    }
    memset(node, 0, sizeof(*node));
    snprintf(node->path, sizeof(node->path), "%s%.16s", dev, entry);
    read_pci_address(host, class, entry, node->pci_address);
    /* Only some driver versions have the attribute module_id. */
    if (read_attribute(host, class, entry, "module_id", line, sizeof(line)) == 0 &&
        plugin_parse_u64(line, &module) == 0 && module <= UINT32_MAX) {
        node->module = (uint32_t)module;
        node->has_module = 1;
    }
    return 1;
}

static uint32_t scan_class(const struct ds_accel_host *host, const char *class, const char *prefix,
                           const char *dev, struct node *found, uint32_t capacity)
{
    char path[512];
    struct dirent *entry;
    uint32_t count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/sys/class/%s", host->machine_root, class);
    dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    while (count < capacity && (entry = readdir(dir)) != NULL) {
        count += (uint32_t)read_node(host, class, prefix, dev, entry->d_name, &found[count]);
    }
    closedir(dir);
    return count;
}

/* Scans the class accel of newer drivers, and if it has no card, habanalabs of older drivers. */
static uint32_t scan_nodes(const struct ds_accel_host *host, struct node *found, uint32_t capacity)
{
    uint32_t count = scan_class(host, "accel", "accel", "/dev/accel/", found, capacity);

    return count > 0 ? count : scan_class(host, "habanalabs", "hl", "/dev/", found, capacity);
}

/* ---- the list ------------------------------------------------------------------------------- */

struct list {
    struct hpu_runtime *runtime;
    struct vendor_problem *problem;
    uint32_t ids[HPU_MODULES]; /* ids of all modules, in ascending order */
    uint32_t id_count;
    uint32_t chosen[HPU_MODULES];
    uint32_t chosen_count;
};

static int compare_ids(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

static hlml_card hlml_at(struct hpu_runtime *runtime, unsigned index, unsigned *module_out)
{
    hlml_card card = NULL;

    if (runtime->hlml.hlml_device_get_handle_by_index(index, &card) != HLML_OK ||
        runtime->hlml.hlml_device_get_module_id(card, module_out) != HLML_OK) {
        return NULL;
    }
    return card;
}

static unsigned hlml_count(struct hpu_runtime *runtime)
{
    unsigned count = 0;

    if (!runtime->has_hlml || runtime->hlml.hlml_device_get_count(&count) != HLML_OK) {
        return 0;
    }
    return count < HPU_MODULES ? count : HPU_MODULES;
}

/* If Synapse lacks synDeviceGetModuleIDs(): lists the modules of HLML, or without HLML's list count
 * modules, numbered from 0. */
static void list_ids_otherwise(struct list *list, uint32_t count)
{
    unsigned known = hlml_count(list->runtime);

    for (unsigned i = 0; i < known; i++) {
        unsigned module = 0;

        if (hlml_at(list->runtime, i, &module) != NULL) {
            list->ids[list->id_count++] = module;
        }
    }
    for (; known == 0 && list->id_count < count; list->id_count++) {
        list->ids[list->id_count] = list->id_count;
    }
}

static int list_ids(struct list *list, uint32_t count)
{
    struct hpu_runtime *runtime = list->runtime;
    uint32_t size = HPU_MODULES; /* in: the capacity; out: the number of modules */
    syn_status code;

    if (runtime->syn.synDeviceGetModuleIDs == NULL) {
        list_ids_otherwise(list, count < HPU_MODULES ? count : HPU_MODULES);
    } else {
        code = runtime->syn.synDeviceGetModuleIDs(list->ids, &size);
        if (code != SYN_SUCCESS) {
            return hpu_problem(runtime, code, "synDeviceGetModuleIDs()", list->problem);
        }
        list->id_count = size < HPU_MODULES ? size : HPU_MODULES;
    }
    qsort(list->ids, list->id_count, sizeof(list->ids[0]), compare_ids);
    return 0;
}

static int has_id(const uint32_t *ids, uint32_t count, uint64_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return 1;
        }
    }
    return 0;
}

static int bad_value(struct vendor_problem *problem, const char *variable, const char *token)
{
    return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                              "%s: \"%.64s\" is not the number of a module", variable, token);
}

/*
 * Adds the module of one number of HABANA_VISIBLE_MODULES. Ignores a number that no module has and
 * a repeated number. Returns 1 with the problem set if the token is not a number.
 */
static int take_module(void *user_data, const char *token)
{
    struct list *list = user_data;
    uint64_t id;

    if (plugin_parse_u64(token, &id) != 0) {
        bad_value(list->problem, HPU_VISIBLE, token);
        return 1;
    }
    if (has_id(list->ids, list->id_count, id) && !has_id(list->chosen, list->chosen_count, id)) {
        list->chosen[list->chosen_count++] = (uint32_t)id;
    }
    return 0;
}

/* Applies HLS_MODULE_ID, which launchers of distributed jobs set to the process's only module. */
static int take_own_module(struct list *list)
{
    const char *text = getenv(HPU_MODULE);
    uint64_t id;

    if (text == NULL || list->chosen_count == 0) {
        return 0;
    }
    if (plugin_parse_u64(text, &id) != 0) {
        return bad_value(list->problem, HPU_MODULE, text);
    }
    if (!has_id(list->chosen, list->chosen_count, id)) {
        return vendor_problem_set(list->problem, DS_ACCEL_REASON_HIDDEN,
                                  HPU_MODULE "=\"%.32s\" is none of the %u visible modules", text,
                                  list->chosen_count);
    }
    list->chosen[0] = (uint32_t)id;
    list->chosen_count = 1;
    return 0;
}

static int choose(struct list *list)
{
    int taken = vendor_visible_each(HPU_VISIBLE, take_module, list);

    if (taken > 0) {
        return -1;
    }
    if (taken < 0) {
        memcpy(list->chosen, list->ids, sizeof(list->chosen));
        list->chosen_count = list->id_count;
    }
    return take_own_module(list);
}

/* Finds HLML's handle, the PCI address and the kernel's node of each chosen module. */
static void locate(struct hpu_runtime *runtime)
{
    struct node found[HPU_MODULES];
    uint32_t found_count = scan_nodes(runtime->host, found, HPU_MODULES);
    unsigned known = hlml_count(runtime);

    for (unsigned i = 0; i < known; i++) {
        unsigned module_id = 0;
        hlml_card card = hlml_at(runtime, i, &module_id);
        struct hlml_pci pci;

        memset(&pci, 0, sizeof(pci));
        for (uint32_t m = 0; card != NULL && m < runtime->module_count; m++) {
            struct hpu_module *module = &runtime->modules[m];

            if (module->id != module_id) {
                continue;
            }
            module->hlml = card;
            if (runtime->hlml.hlml_device_get_pci_info != NULL &&
                runtime->hlml.hlml_device_get_pci_info(card, &pci) == HLML_OK) {
                snprintf(module->pci_address, sizeof(module->pci_address), "%.15s", pci.bus_id);
            }
        }
    }
    for (uint32_t i = 0; i < found_count; i++) {
        for (uint32_t m = 0; m < runtime->module_count; m++) {
            struct hpu_module *module = &runtime->modules[m];

            if (found[i].has_module
                    ? found[i].module == module->id
                    : module->pci_address[0] != '\0' &&
                          strcasecmp(module->pci_address, found[i].pci_address) == 0) {
                snprintf(module->pci_address, sizeof(module->pci_address), "%s",
                         found[i].pci_address);
                snprintf(module->node, sizeof(module->node), "%s", found[i].path);
            }
        }
    }
}

int hpu_modules_list(struct hpu_runtime *runtime, uint32_t count, struct vendor_problem *problem)
{
    struct list list;

    memset(&list, 0, sizeof(list));
    list.runtime = runtime;
    list.problem = problem;
    if (list_ids(&list, count) != 0 || choose(&list) != 0) {
        return -1;
    }
    memset(runtime->modules, 0, sizeof(runtime->modules));
    runtime->module_count = list.chosen_count;
    for (uint32_t i = 0; i < list.chosen_count; i++) {
        runtime->modules[i].id = list.chosen[i];
    }
    locate(runtime);
    return 0;
}

/* ---- processes that use a module ------------------------------------------------------------ */

/*
 * Returns true if a descriptor of the process refers to the node; returns 0 also if the process's
 * descriptors are not readable.
 */
static int has_open(const struct ds_accel_host *host, const char *pid, const char *node)
{
    char path[1024];
    char target[128];
    struct dirent *entry;
    int is_open = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/proc/%.16s/fd", host->machine_root, pid);
    dir = opendir(path);
    if (dir == NULL) {
        return 0;
    }
    while (!is_open && (entry = readdir(dir)) != NULL) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        if (length > 0) {
            target[length] = '\0';
            is_open = strcmp(target, node) == 0;
        }
    }
    closedir(dir);
    return is_open;
}

uint32_t hpu_module_holders(const struct ds_accel_host *host, const struct hpu_module *module,
                            int only_others, int32_t *pids, uint32_t capacity, char *first_name,
                            size_t name_size)
{
    char path[1024];
    struct dirent *entry;
    uint32_t count = 0;
    DIR *dir;

    if (module->node[0] == '\0') {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/proc", host->machine_root);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        uint64_t pid;

        if (plugin_parse_u64(entry->d_name, &pid) != 0 || pid > INT32_MAX ||
            (only_others && vendor_is_asking((int32_t)pid)) ||
            !has_open(host, entry->d_name, module->node)) {
            continue;
        }
        if (count == 0 && first_name != NULL) {
            snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
            if (vendor_read_line(host, path, first_name, name_size) != 0) {
                snprintf(first_name, name_size, "?");
            }
        }
        if (count < capacity) {
            pids[count] = (int32_t)pid;
        }
        count++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}
