/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The search for hardware without a library: PCI devices in sysfs, and device nodes. All paths are
 * below host->machine_root, which is "" for the running machine, or the directory of a recorded
 * machine.
 *
 * The search reads only files that the kernel serves from memory. It checks the access to a node
 * but does not open it, because opening may wake the device. The failures need different fixes and
 * are reported separately: no such hardware, no kernel driver for the hardware, or no permission.
 */
#include "vendor_frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 512

static const char *root_of(const struct ds_accel_host *host)
{
    return DS_ACCEL_HAS(host, struct ds_accel_host, machine_root) && host->machine_root != NULL
               ? host->machine_root
               : "";
}

int vendor_read_line(const struct ds_accel_host *host, const char *path, char *line,
                     size_t line_size)
{
    char full[PATH_BYTES];
    ssize_t count;
    int fd;

    if ((size_t)snprintf(full, sizeof(full), "%s%s", root_of(host), path) >= sizeof(full)) {
        return -1;
    }
    fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -1;
    }
    do {
        count = read(fd, line, line_size - 1);
    } while (count < 0 && errno == EINTR);
    close(fd);
    if (count <= 0) {
        return -1;
    }
    line[count] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

/* ---- the patterns --------------------------------------------------------------------------- */

/* If the line begins with the word, append the rest of the line to the list, unless the list is
   full. */
static void take_fact(char *line, const char *word, const char **list)
{
    size_t length = strlen(word);
    size_t count = 0;

    while (list[count] != NULL) {
        count++;
    }
    if (strncmp(line, word, length) == 0 && count < VENDOR_FACTS_MAX) {
        list[count] = line + length;
    }
}

void vendor_pattern_split(const struct vendor_pattern *pattern, struct vendor_facts *facts)
{
    char *line = facts->text;

    memset(facts, 0, sizeof(*facts));
    snprintf(facts->text, sizeof(facts->text), "%s",
             pattern != NULL && pattern->hardware != NULL ? pattern->hardware : "");
    while (*line != '\0') {
        char *end = line + strcspn(line, "\n");
        char *next = *end != '\0' ? end + 1 : end;

        *end = '\0';
        take_fact(line, "pci ", facts->pci);
        take_fact(line, "node ", facts->nodes);
        line = next;
    }
}

/* ---- PCI devices ---------------------------------------------------------------------------- */

/* Does an entry of the list pci match? The entry "10de:03" matches the vendor 0x10de with classes
   that begin with 03. With class NULL, only the vendors are compared. */
static int is_of(const char *const *pci, const char *vendor, const char *class)
{
    for (size_t i = 0; pci[i] != NULL; i++) {
        const char *wanted = pci[i][4] == ':' ? pci[i] + 5 : "";

        if (strncmp(vendor, "0x", 2) == 0 && strncmp(pci[i], vendor + 2, 4) == 0 &&
            (class == NULL ||
             (strncmp(class, "0x", 2) == 0 && strncmp(class + 2, wanted, strlen(wanted)) == 0))) {
            return 1;
        }
    }
    return 0;
}

static int is_ours(const struct ds_accel_host *host, const char *address, const char *const *pci)
{
    char path[PATH_BYTES];
    char vendor[16];
    char class[16];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/vendor", address);
    if (vendor_read_line(host, path, vendor, sizeof(vendor)) != 0 || !is_of(pci, vendor, NULL)) {
        return 0;
    }
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/class", address);
    return vendor_read_line(host, path, class, sizeof(class)) == 0 && is_of(pci, vendor, class);
}

/*
 * Can the machine have a PCI device of these vendors? /proc/bus/pci/devices has one line per
 * device, "BBDD<tab>VVVVDDDD...". If no line has one of the vendors, hundreds of sysfs files need
 * not be read. If the file does not exist or is empty, the result is 1 and sysfs must be read.
 */
static int may_be_there(const struct ds_accel_host *host, const char *const *pci)
{
    char path[PATH_BYTES];
    char *line = NULL;
    size_t line_size = 0;
    char vendor[7] = "0x";
    int may_be = 0;
    int has_lines = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/bus/pci/devices", root_of(host));
    file = fopen(path, "re");
    while (file != NULL && !may_be && getline(&line, &line_size, file) > 0) {
        has_lines = 1;
        may_be = sscanf(line, "%*4x %4[0-9a-f]", vendor + 2) == 1 && is_of(pci, vendor, NULL);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return may_be || !has_lines;
}

static void find_pci(const struct ds_accel_host *host, const char *const *pci,
                     struct vendor_hardware *found)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *directory;

    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", root_of(host));
    directory = pci[0] != NULL && may_be_there(host, pci) ? opendir(path) : NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.' || !is_ours(host, entry->d_name, pci)) {
            continue;
        }
        found->pci_count++;
        if (found->first_pci[0] == '\0' || strcmp(entry->d_name, found->first_pci) < 0) {
            snprintf(found->first_pci, sizeof(found->first_pci), "%.31s", entry->d_name);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

int32_t vendor_pci_numa_node(const struct ds_accel_host *host, const char *pci_address)
{
    char path[PATH_BYTES];
    char line[16];
    uint64_t node;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/numa_node", pci_address);
    if (vendor_read_line(host, path, line, sizeof(line)) != 0 ||
        plugin_parse_u64(line, &node) != 0 || node > INT32_MAX) {
        return -1; /* the kernel writes -1 for an unknown node */
    }
    return (int32_t)node;
}

uint32_t vendor_pci_power_state(const struct ds_accel_host *host, const char *pci_address)
{
    char path[PATH_BYTES];
    char line[32];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/power/runtime_status", pci_address);
    if (vendor_read_line(host, path, line, sizeof(line)) != 0) {
        return DS_ACCEL_POWER_UNKNOWN;
    }
    if (strcmp(line, "suspended") == 0 || strcmp(line, "suspending") == 0) {
        return DS_ACCEL_POWER_SUSPENDED;
    }
    return strcmp(line, "active") == 0 ? DS_ACCEL_POWER_ACTIVE : DS_ACCEL_POWER_UNKNOWN;
}

uint64_t vendor_pci_lane_bytes_per_s(uint32_t generation)
{
    static const uint64_t rates[] = {0,
                                     UINT64_C(250000000),
                                     UINT64_C(500000000),
                                     UINT64_C(984615384),
                                     UINT64_C(1969230769),
                                     UINT64_C(3938461538),
                                     UINT64_C(7563000000)};

    return generation < sizeof(rates) / sizeof(rates[0]) ? rates[generation] : 0;
}

/* ---- device nodes --------------------------------------------------------------------------- */

/* The class in sysfs of nodes in /dev/dri and /dev/accel, which several vendors share; NULL for
   other nodes. /sys/class/CLASS/NODE/device/vendor contains the vendor of a node. */
static const char *class_of(const char *path)
{
    return strncmp(path, "/dev/dri/", 9) == 0      ? "drm"
           : strncmp(path, "/dev/accel/", 11) == 0 ? "accel"
                                                   : NULL;
}

static int is_of_other_vendor(const struct ds_accel_host *host, const char *path,
                              const char *const *pci)
{
    const char *class = class_of(path);
    char file[PATH_BYTES];
    char vendor[16];

    if (class == NULL || pci[0] == NULL) {
        return 0;
    }
    snprintf(file, sizeof(file), "/sys/class/%s%s/device/vendor", class, strrchr(path, '/'));
    return vendor_read_line(host, file, vendor, sizeof(vendor)) == 0 && !is_of(pci, vendor, NULL);
}

/* The nodes that match one pattern. first and refused are the paths that sort first: of all nodes,
   and of the nodes without permission. refused may also be an unreadable directory. */
struct node_search {
    uint32_t count;
    uint32_t usable_count;
    char refused[64];
    char first[64];
};

/* Store the path in kept if it sorts before the stored path. */
static void keep_first(char kept[64], const char *path)
{
    if (kept[0] == '\0' || strcmp(path, kept) < 0) {
        snprintf(kept, 64, "%.63s", path);
    }
}

static void look_at_node(const struct ds_accel_host *host, const char *path, const char *const *pci,
                         struct node_search *search)
{
    char full[PATH_BYTES];
    struct stat info;

    if ((size_t)snprintf(full, sizeof(full), "%s%s", root_of(host), path) >= sizeof(full) ||
        stat(full, &info) != 0 || S_ISDIR(info.st_mode) || is_of_other_vendor(host, path, pci)) {
        return;
    }
    search->count++;
    keep_first(search->first, path);
    if (faccessat(AT_FDCWD, full, R_OK | W_OK, AT_EACCESS) == 0) {
        search->usable_count++;
    } else {
        keep_first(search->refused, path);
    }
}

static void search_nodes(const struct ds_accel_host *host, const char *pattern,
                         const char *const *pci, struct node_search *search)
{
    int length = (int)(strrchr(pattern, '/') - pattern);
    char path[PATH_BYTES];
    const struct dirent *entry;
    DIR *directory;

    memset(search, 0, sizeof(*search));
    snprintf(path, sizeof(path), "%s%.*s", root_of(host), length, pattern);
    directory = opendir(path);
    /* An unreadable directory is reported only if it is not shared by vendors: the vendors of nodes
       in a shared directory stay unknown. */
    if (directory == NULL && errno == EACCES && (class_of(pattern) == NULL || pci[0] == NULL)) {
        snprintf(search->refused, sizeof(search->refused), "%.*s", length, pattern);
    }
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (fnmatch(pattern + length + 1, entry->d_name, FNM_PERIOD) == 0) {
            snprintf(path, sizeof(path), "%.*s/%.200s", length, pattern, entry->d_name);
            look_at_node(host, path, pci, search);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

void vendor_pci_node(const struct ds_accel_host *host, const struct vendor_pattern *pattern,
                     const char *pci_address, char *path, size_t path_size)
{
    static const char *const classes[][2] = {{"drm", "/dev/dri"}, {"accel", "/dev/accel"}};
    struct vendor_facts facts;

    vendor_pattern_split(pattern, &facts);
    path[0] = '\0';
    for (size_t i = 0; i < 2 && path[0] == '\0'; i++) {
        char name[PATH_BYTES];
        const struct dirent *entry;
        DIR *directory;

        snprintf(name, sizeof(name), "%s/sys/bus/pci/devices/%.40s/%s", root_of(host), pci_address,
                 classes[i][0]);
        directory = opendir(name);
        while (directory != NULL && path[0] == '\0' && (entry = readdir(directory)) != NULL) {
            snprintf(name, sizeof(name), "%s/%.200s", classes[i][1], entry->d_name);
            for (size_t k = 0; facts.nodes[k] != NULL; k++) {
                if (fnmatch(facts.nodes[k], name, FNM_PATHNAME | FNM_PERIOD) == 0 &&
                    strlen(name) < path_size) {
                    memcpy(path, name, strlen(name) + 1);
                }
            }
        }
        if (directory != NULL) {
            closedir(directory);
        }
    }
}

/* ---- the result ----------------------------------------------------------------------------- */

/* Read the option "presence". Returns 1 (on, or not set) to check the hardware, 0 (off) to skip the
   check, or -1 with *problem filled. */
static int read_option(const struct ds_accel_host *host, struct vendor_problem *problem)
{
    char text[32] = "";
    int32_t status = host->config_get(host, "presence", text, sizeof(text), NULL);

    if (status == DS_ACCEL_ERR_NOT_FOUND || (status == DS_ACCEL_OK && strcmp(text, "on") == 0)) {
        return 1;
    }
    if (status == DS_ACCEL_OK && strcmp(text, "off") == 0) {
        return 0;
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                              "option presence: expected on or off, not \"%s\"",
                              status == DS_ACCEL_OK ? text : "(too long)");
}

static const char *first_of(const char *const *list)
{
    return list[0] != NULL ? list[0] : "";
}

static int is_in(const char *const *list, const char *text)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        if (strcmp(list[i], text) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Search the nodes of all patterns. *absent_out is a required pattern (needed_nodes) that matches
   no node, or NULL. found->refused_node is a node without permission that matches a required
   pattern, otherwise one that matches a pattern without usable nodes, otherwise "". If a pattern of
   other_ways has a usable node, *absent_out is NULL and refused_node is "". */
static void find_nodes(const struct ds_accel_host *host, const struct vendor_pattern *pattern,
                       const struct vendor_facts *facts, struct vendor_hardware *found,
                       const char **absent_out)
{
    int has_needed = 0;
    int has_way = 0;

    *absent_out = NULL;
    for (size_t i = 0; facts->nodes[i] != NULL; i++) {
        int is_needed = is_in(pattern->needed_nodes, facts->nodes[i]);
        struct node_search search;

        search_nodes(host, facts->nodes[i], facts->pci, &search);
        has_way |= search.usable_count > 0 && is_in(pattern->other_ways, facts->nodes[i]);
        found->node_count += search.count;
        found->usable_node_count += search.usable_count;
        if (found->first_node[0] == '\0') {
            memcpy(found->first_node, search.first, sizeof(search.first));
        }
        if (is_needed && search.count == 0) {
            *absent_out = facts->nodes[i];
        }
        if (search.refused[0] != '\0' && (search.usable_count == 0 || is_needed) &&
            (found->refused_node[0] == '\0' || (is_needed && !has_needed))) {
            memcpy(found->refused_node, search.refused, sizeof(search.refused));
            has_needed = is_needed;
        }
    }
    if (has_way) {
        *absent_out = NULL;
        found->refused_node[0] = '\0';
    }
}

/* Write the ids as "1002:03 or 1002:12". */
static void list_ids(const char *const *pci, char *text, size_t text_size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; pci[i] != NULL && used < text_size; i++) {
        used +=
            (size_t)snprintf(text + used, text_size - used, "%s%s", i > 0 ? " or " : "", pci[i]);
    }
}

/* Store the name of the kernel driver that is bound to a PCI device, such as "vfio-pci", or "". */
static void find_driver(const struct ds_accel_host *host, const char *address, char *name,
                        size_t name_size)
{
    static const char key[] = "DRIVER=";
    char path[PATH_BYTES];
    char line[64];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/uevent", address);
    if (vendor_read_line(host, path, line, sizeof(line)) != 0 ||
        strncmp(line, key, sizeof(key) - 1) != 0) {
        line[0] = '\0';
    }
    snprintf(name, name_size, "%.31s", line[0] != '\0' ? line + sizeof(key) - 1 : "");
}

/* Report why a PCI device has no node: it has no driver, it has another driver (such as one for
   virtual machines), or its own driver is bound and the nodes are not visible. */
static int tell_driver(const struct ds_accel_host *host, const struct vendor_pattern *pattern,
                       const struct vendor_hardware *found, const char *absent,
                       struct vendor_problem *problem)
{
    const char *own = pattern->driver != NULL ? pattern->driver : "of the vendor";
    char driver[32];

    find_driver(host, found->first_pci, driver, sizeof(driver));
    if (driver[0] == '\0') {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DRIVER,
                                  "PCI device %s is there, but %s is not: the kernel driver %s is "
                                  "not loaded",
                                  found->first_pci, absent, own);
    }
    if (strstr(own, driver) == NULL) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DRIVER,
                                  "PCI device %s is there, but %s is not: the kernel driver %s has "
                                  "the device, where %s is expected",
                                  found->first_pci, absent, driver, own);
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DRIVER,
                              "PCI device %s is there, and the kernel driver %s has it, but %s is "
                              "not: is this a container without access to it?",
                              found->first_pci, driver, absent);
}

/* Report that required nodes or all devices are missing. For no device, the text equals the text of
   core/host/hardware.c, which searches the hardware before it loads a plugin that lists its
   hardware in an ELF note. */
static int tell_absence(const struct ds_accel_host *host, const struct vendor_pattern *pattern,
                        const struct vendor_facts *facts, const struct vendor_hardware *found,
                        const char *absent, struct vendor_problem *problem)
{
    char ids[96];

    absent = absent != NULL ? absent : first_of(facts->nodes);
    if (found->pci_count > 0) {
        return tell_driver(host, pattern, found, absent, problem);
    }
    if (found->node_count > 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DRIVER,
                                  "%s is there, but %s is not: is this a container without "
                                  "access to it?",
                                  found->first_node, absent);
    }
    list_ids(facts->pci, ids, sizeof(ids));
    return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE, "no %s%s%s%s",
                              facts->pci[0] != NULL ? "PCI device " : "", ids,
                              facts->pci[0] != NULL && facts->nodes[0] != NULL ? " and no " : "",
                              first_of(facts->nodes));
}

int vendor_presence_check(const struct ds_accel_host *host, const struct vendor_pattern *pattern,
                          struct vendor_hardware *hardware_out, struct vendor_problem *problem)
{
    const char *absent = NULL;
    int option = read_option(host, problem);
    struct vendor_facts facts;

    memset(hardware_out, 0, sizeof(*hardware_out));
    vendor_pattern_split(pattern, &facts);
    if (option <= 0 || (facts.pci[0] == NULL && facts.nodes[0] == NULL)) {
        return option < 0 ? -1 : 0;
    }
    find_nodes(host, pattern, &facts, hardware_out, &absent);
    if (hardware_out->refused_node[0] != '\0') {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_PERMISSION,
                                  "%s: no permission to read and write for user %u",
                                  hardware_out->refused_node, (unsigned)geteuid());
    }
    if (absent == NULL && hardware_out->node_count > 0) {
        return 0;
    }
    find_pci(host, facts.pci, hardware_out); /* distinguishes a missing driver from a missing
                                                device */
    return absent == NULL && facts.nodes[0] == NULL && hardware_out->pci_count > 0
               ? 0
               : tell_absence(host, pattern, &facts, hardware_out, absent, problem);
}
