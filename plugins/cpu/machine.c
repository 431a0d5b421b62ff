/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Facts about the machine. Nodes and memory come from the host's topology extension, the rest from
 * files under the host's machine_root, so that a recorded machine looks like a real one.
 *
 * The device count is the launcher's LOCAL_SIZE (ranks on this machine) if it is set, else the
 * number of NUMA nodes that have CPUs; at least 1 and at most CPU_MAX_DEVICES. Nodes without CPUs
 * have only memory (HBM in flat mode) and are not devices. Kernel nodes with the same CPUs are one
 * node that numa=fake has split. Devices are spread over the nodes evenly: with n devices and m
 * nodes, device i is on node i*m/n. Two devices on four nodes are on nodes 0 and 2; four devices on
 * two nodes are two per node.
 */
#include "cpu.h"

#include <limits.h>

/* ---- nodes and devices ---------------------------------------------------------------------- */

/* Add the kernel node at a position of the topology, unless it has no CPUs or has the same CPUs as
   an earlier node. */
static void add_node(struct cpu_machine *machine, uint32_t position)
{
    struct ds_accel_numa_node found;
    struct cpu_node *node;
    int32_t status;

    memset(&found, 0, sizeof(found));
    found.struct_size = sizeof(found);
    status = machine->topology->node_get(machine->host, position, &found);
    if (status < 0) {
        vendor_log(machine->host, DS_ACCEL_LOG_WARN,
                   "NUMA node number %u can't be read (status %d); going on without it", position,
                   status);
        return;
    }
    if (found.cpu_count == 0) {
        return;
    }
    /* numa=fake distributes its nodes over the sockets in turn, so that nodes with the same CPUs
       need not be consecutive. */
    for (uint32_t i = 0; i < machine->node_count && found.cpus[0] != '\0'; i++) {
        if (strncmp(found.cpus, machine->nodes[i].cpus, sizeof(found.cpus)) == 0) {
            machine->node_of_position[position] = i;
            return;
        }
    }
    node = &machine->nodes[machine->node_count];
    node->id = found.id;
    node->cpu_count = found.cpu_count;
    memcpy(node->cpus, found.cpus, sizeof(node->cpus));
    node->first_cpu = (uint32_t)strtoul(found.cpus, NULL, 10);
    machine->node_of_position[position] = machine->node_count++;
}

static int32_t scan_nodes(struct cpu_machine *machine, struct ds_accel_error *error)
{
    uint32_t count = 0;
    int32_t status = machine->topology->node_count(machine->host, &count);

    if (status < 0) {
        vendor_log(machine->host, DS_ACCEL_LOG_WARN,
                   "the NUMA nodes can't be counted (status %d); taking the machine as one",
                   status);
        count = 0;
    }
    if (count == 0) {
        return DS_ACCEL_OK;
    }
    machine->nodes = calloc(count, sizeof(*machine->nodes));
    machine->node_of_position = calloc(count, sizeof(*machine->node_of_position));
    if (machine->nodes == NULL || machine->node_of_position == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory for %u NUMA nodes", count);
    }
    machine->position_count = count;
    for (uint32_t position = 0; position < count; position++) {
        machine->node_of_position[position] = CPU_NO_NODE;
        add_node(machine, position);
    }
    return DS_ACCEL_OK;
}

/* Return LOCAL_SIZE, limited to CPU_MAX_DEVICES, or 0 if it is not set or not a positive number.
   Log a warning for a value that is not used as it is, unless is_quiet. */
static uint32_t read_local_size(const struct ds_accel_host *host, int is_quiet)
{
    const char *text = getenv("LOCAL_SIZE");
    uint64_t value;

    if (text == NULL) {
        return 0;
    }
    if (plugin_parse_u64(text, &value) != 0 || value == 0) {
        if (!is_quiet) {
            vendor_log(
                host, DS_ACCEL_LOG_WARN,
                "LOCAL_SIZE=\"%s\" is not a positive whole number; counting NUMA nodes instead",
                text);
        }
        return 0;
    }
    if (value > CPU_MAX_DEVICES) {
        if (!is_quiet) {
            vendor_log(host, DS_ACCEL_LOG_WARN,
                       "LOCAL_SIZE=%s is beyond this plugin's limit; using %u", text,
                       CPU_MAX_DEVICES);
        }
        return CPU_MAX_DEVICES;
    }
    return (uint32_t)value;
}

void cpu_machine_warn(const struct cpu_machine *machine)
{
    (void)read_local_size(machine->host, 0);
}

int32_t cpu_machine_scan(const struct ds_accel_host *host, struct cpu_machine *machine_out,
                         struct ds_accel_error *error)
{
    struct cpu_machine machine;
    int32_t status;

    memset(&machine, 0, sizeof(machine));
    machine.host = host;
    machine.topology = host->extension(host, DS_ACCEL_EXT_TOPOLOGY);
    if (machine.topology == NULL ||
        !DS_ACCEL_HAS(machine.topology, struct ds_accel_ext_topology, memory_get)) {
        return plugin_fail(error, DS_ACCEL_ERR_ABI, "the host has no extension %s",
                           DS_ACCEL_EXT_TOPOLOGY);
    }
    status = scan_nodes(&machine, error);
    if (status < 0) {
        cpu_machine_release(&machine);
        return status;
    }
    machine.local_size = read_local_size(host, 1);
    machine.device_count = machine.local_size;
    if (machine.device_count == 0) {
        machine.device_count = machine.node_count;
    }
    if (machine.device_count == 0) {
        machine.device_count = 1;
    }
    if (machine.device_count > CPU_MAX_DEVICES) {
        vendor_log(host, DS_ACCEL_LOG_WARN,
                   "%u NUMA nodes are beyond this plugin's limit; using %u", machine.node_count,
                   CPU_MAX_DEVICES);
        machine.device_count = CPU_MAX_DEVICES;
    }
    *machine_out = machine;
    return DS_ACCEL_OK;
}

void cpu_machine_release(struct cpu_machine *machine)
{
    free(machine->nodes);
    free(machine->node_of_position);
    memset(machine, 0, sizeof(*machine));
}

const struct cpu_node *cpu_machine_node(const struct cpu_machine *machine, uint32_t device_index)
{
    if (machine->node_count == 0) {
        return NULL;
    }
    return &machine->nodes[(uint64_t)device_index * machine->node_count / machine->device_count];
}

void cpu_node_memory(const struct cpu_machine *machine, const struct cpu_node *node,
                     uint64_t *total_bytes_out, uint64_t *available_bytes_out)
{
    const uint32_t wanted = (uint32_t)(node - machine->nodes);
    uint64_t total = 0;
    uint64_t available = 0;

    for (uint32_t position = 0; position < machine->position_count; position++) {
        struct ds_accel_numa_node found;

        memset(&found, 0, sizeof(found));
        found.struct_size = sizeof(found);
        if (machine->node_of_position[position] == wanted &&
            machine->topology->node_get(machine->host, position, &found) >= 0) {
            total += found.total_memory_bytes;
            available += found.available_memory_bytes;
        }
    }
    *total_bytes_out = total;
    *available_bytes_out = available;
}

/* ---- files under machine_root --------------------------------------------------------------- */

FILE *cpu_file_open(const struct ds_accel_host *host, const char *path)
{
    char full[PATH_MAX];
    int length = snprintf(full, sizeof(full), "%s%s", host->machine_root, path);

    if (length < 0 || (size_t)length >= sizeof(full)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(full, "re");
}

int cpu_file_line(const struct ds_accel_host *host, const char *path, char *line, int line_size)
{
    FILE *file = cpu_file_open(host, path);
    char *found;

    if (file == NULL) {
        return -1;
    }
    found = fgets(line, line_size, file);
    fclose(file);
    if (found == NULL) {
        return -1;
    }
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

/* Return the value of a line "key<blanks>: value\n" and remove the newline; NULL if the line has
   another key. */
static char *line_value(char *line, const char *key)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) != 0) {
        return NULL;
    }
    line += length;
    line += strspn(line, " \t");
    if (*line != ':') {
        return NULL;
    }
    line++;
    line += strspn(line, " \t");
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* Set the model's features from the words of the line "flags" (x86-64) or "Features" (aarch64). No
   word has different meanings on the two architectures. */
static void read_features(char *words, struct cpu_model *model)
{
    static const char *const float16[] = {"avx512_fp16", "amx_fp16", "asimdhp"};
    static const char *const bfloat16[] = {"avx512_bf16", "amx_bf16", "bf16"};
    char *rest = NULL;

    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        for (size_t i = 0; i < 3; i++) {
            model->has_float16 |= strcmp(word, float16[i]) == 0;
            model->has_bfloat16 |= strcmp(word, bfloat16[i]) == 0;
        }
    }
}

static void read_model(const struct ds_accel_host *host, struct cpu_model *model_out)
{
    FILE *file = cpu_file_open(host, "/proc/cpuinfo");
    char implementer[32] = "";
    char part[32] = "";
    char *line = NULL;
    char *value;
    size_t line_size = 0;

    memset(model_out, 0, sizeof(*model_out));
    /* An empty line ends the entry of the first processor; all processors are of the same model. */
    while (file != NULL && getline(&line, &line_size, file) > 0 && line[0] != '\n') {
        if ((value = line_value(line, "model name")) != NULL) {
            snprintf(model_out->name, sizeof(model_out->name), "%s", value);
        } else if ((value = line_value(line, "CPU implementer")) != NULL) {
            snprintf(implementer, sizeof(implementer), "%s", value);
        } else if ((value = line_value(line, "CPU part")) != NULL) {
            snprintf(part, sizeof(part), "%s", value);
        } else if ((value = line_value(line, "flags")) != NULL ||
                   (value = line_value(line, "Features")) != NULL) {
            read_features(value, model_out);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    if (model_out->name[0] == '\0' && implementer[0] != '\0') {
        snprintf(model_out->name, sizeof(model_out->name), "CPU implementer %s part %s",
                 implementer, part);
    } else if (model_out->name[0] == '\0') {
        snprintf(model_out->name, sizeof(model_out->name), "cpu");
    }
}

const struct cpu_model *cpu_model_of(struct cpu_runtime *cpu)
{
    pthread_mutex_lock(&cpu->lock);
    if (!cpu->has_model) {
        read_model(cpu->host, &cpu->model);
        cpu->has_model = 1;
    }
    pthread_mutex_unlock(&cpu->lock);
    return &cpu->model;
}

/* Return the number of CPUs in the kernel's list of online CPUs, for example "0-3,8"; 0 if the list
   can't be read. */
uint32_t cpu_online_count(const struct ds_accel_host *host)
{
    char line[1024];
    char *next = line;
    uint32_t count = 0;

    if (cpu_file_line(host, "/sys/devices/system/cpu/online", line, sizeof(line)) != 0) {
        return 0;
    }
    while (isdigit((unsigned char)*next)) {
        unsigned long first = strtoul(next, &next, 10);
        unsigned long last = *next == '-' ? strtoul(next + 1, &next, 10) : first;

        count += last >= first ? (uint32_t)(last - first + 1) : 0;
        next += *next == ',';
    }
    return count;
}

uint64_t cpu_l2_bytes(const struct ds_accel_host *host, uint32_t cpu)
{
    for (unsigned index = 0; index < 16; index++) {
        char path[96];
        char line[32];
        char *unit;
        uint64_t size;

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cache/index%u/level", cpu,
                 index);
        if (cpu_file_line(host, path, line, sizeof(line)) != 0) {
            break;
        }
        if (strcmp(line, "2") != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cache/index%u/size", cpu,
                 index);
        if (cpu_file_line(host, path, line, sizeof(line)) != 0) {
            break;
        }
        size = strtoull(line, &unit, 10);
        return *unit == 'K' ? size << 10 : *unit == 'M' ? size << 20 : size;
    }
    return 0;
}

/* Return the highest clock of a CPU, or 0 if it is not known. "cpu MHz" of /proc/cpuinfo is not
   used, because it is the current clock. */
uint32_t cpu_clock_khz(const struct ds_accel_host *host, uint32_t cpu)
{
    char path[96];
    char line[32];
    uint64_t khz;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
    if (cpu_file_line(host, path, line, sizeof(line)) != 0 || plugin_parse_u64(line, &khz) != 0 ||
        khz > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)khz;
}

int32_t cpu_resident_read(const struct ds_accel_host *host, struct cpu_resident *resident_out,
                          struct ds_accel_error *error)
{
    static const char path[] = "/proc/self/status";
    struct cpu_resident resident = {0, 0};
    FILE *file = cpu_file_open(host, path);
    char line[512];
    char *value;
    uint32_t found = 0;

    if (file == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_IO, "%s%s can't be opened: %m", host->machine_root,
                           path);
    }
    while (found != 3 && fgets(line, sizeof(line), file) != NULL) {
        if ((value = line_value(line, "VmHWM")) != NULL) {
            resident.peak_bytes = strtoull(value, NULL, 10) * 1024;
            found |= 1;
        } else if ((value = line_value(line, "VmRSS")) != NULL) {
            resident.now_bytes = strtoull(value, NULL, 10) * 1024;
            found |= 2;
        }
    }
    fclose(file);
    if ((found & 2) == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_IO, "%s%s has no line VmRSS", host->machine_root,
                           path);
    }
    /* The kernel updates VmRSS and VmHWM at different times. */
    if (resident.peak_bytes < resident.now_bytes) {
        resident.peak_bytes = resident.now_bytes;
    }
    *resident_out = resident;
    return DS_ACCEL_OK;
}
