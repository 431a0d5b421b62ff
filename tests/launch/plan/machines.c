/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Machines from a table: the files of /sys and /proc that describe CPUs and NUMA nodes.
 *
 *     cpus       number of CPUs
 *     threads    hardware threads of a core (1)
 *     numbering  "split": the first threads of all cores have the lowest numbers; "adjacent": the
 *                threads of a core are neighbours
 *     packages   sockets, with equal numbers of cores (1); null: the machine shows no topology
 *     l3         cores that share a level-3 cache (0: the machine shows none)
 *     online     list of the online CPUs (all)
 *     nodes      object: the CPUs of each NUMA node (null: no NUMA)
 *     allowed    CPUs that this process may use (all); mems: nodes (all)
 */
#include "launch.h"

struct description {
    uint32_t cpus, threads, packages, l3;
    bool is_adjacent;
    struct ds_accel__set online;
};

static void add_file(json_t *files, const char *path, const char *text)
{
    json_object_set_new(files, path, json_pack("{s:s}", "text", text));
}

__attribute__((format(printf, 3, 4))) static void add_line(json_t *files, const char *text,
                                                           const char *format, ...)
{
    va_list arguments;
    char path[128];
    char line[1024];

    va_start(arguments, format);
    vsnprintf(path, sizeof(path), format, arguments);
    va_end(arguments);
    snprintf(line, sizeof(line), "%s\n", text);
    add_file(files, path, line);
}

static uint32_t core_of(const struct description *machine, uint32_t cpu)
{
    return machine->is_adjacent ? cpu / machine->threads : cpu % (machine->cpus / machine->threads);
}

/* Write the online CPUs whose cores are in the same group of size cores as this CPU's. */
static void write_group(const struct description *machine, uint32_t cpu, uint32_t size,
                        struct ds_accel__text *text)
{
    struct ds_accel__set set = {0};

    for (uint32_t i = 0; i < machine->online.count; i++) {
        uint32_t other = machine->online.items[i];

        if (core_of(machine, other) / size == core_of(machine, cpu) / size) {
            ds_accel__set_add(&set, other);
        }
    }
    ds_accel__set_write(&set, text);
    ds_accel__set_clear(&set);
}

static void add_cpu(json_t *files, const struct description *machine, uint32_t cpu)
{
    uint32_t core_count = machine->cpus / machine->threads;
    struct ds_accel__text text = {0};
    char number[16];

    write_group(machine, cpu, 1, &text);
    add_line(files, text.data, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    ds_accel__text_clear(&text);
    snprintf(number, sizeof(number), "%u",
             core_of(machine, cpu) / (core_count / machine->packages));
    add_line(files, number, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    add_line(files, "1", "/sys/devices/system/cpu/cpu%u/cache/index0/level", cpu);
    if (machine->l3 > 0) {
        write_group(machine, cpu, machine->l3, &text);
        add_line(files, "3", "/sys/devices/system/cpu/cpu%u/cache/index1/level", cpu);
        add_line(files, text.data, "/sys/devices/system/cpu/cpu%u/cache/index1/shared_cpu_list",
                 cpu);
        ds_accel__text_clear(&text);
    }
}

static void add_nodes(json_t *files, json_t *nodes)
{
    struct ds_accel__set ids = {0};
    struct ds_accel__text text = {0};
    const char *id;
    json_t *cpus;

    json_object_foreach(nodes, id, cpus)
    {
        ds_accel__set_add_list(&ids, id);
        add_line(files, json_string_value(cpus), "/sys/devices/system/node/node%s/cpulist", id);
    }
    ds_accel__set_write(&ids, &text);
    add_line(files, text.data, "/sys/devices/system/node/online");
    ds_accel__text_clear(&text);
    ds_accel__set_clear(&ids);
}

static void add_status(json_t *files, const json_t *description)
{
    const char *allowed = member(description, "allowed");
    const char *mems = member(description, "mems");
    char text[512] = "Name:\tlaunch\n";
    size_t length = strlen(text);

    if (allowed != NULL) {
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "Cpus_allowed:\tff\nCpus_allowed_list:\t%s\n", allowed);
    }
    if (mems != NULL) {
        snprintf(text + length, sizeof(text) - length, "Mems_allowed_list:\t%s\n", mems);
    }
    add_file(files, "/proc/self/status", text);
}

static uint32_t number(const json_t *description, const char *key, uint32_t otherwise)
{
    const json_t *value = json_object_get(description, key);

    return value != NULL ? (uint32_t)json_integer_value(value) : otherwise;
}

json_t *make_machine(const json_t *description)
{
    struct description machine = {
        .cpus = number(description, "cpus", 1),
        .threads = number(description, "threads", 1),
        .packages = number(description, "packages", 1),
        .l3 = number(description, "l3", 0),
        .is_adjacent = strcmp(json_object_get(description, "numbering") != NULL
                                  ? member(description, "numbering")
                                  : "split",
                              "adjacent") == 0,
    };
    const char *online = member(description, "online");
    json_t *files = json_object();
    char all[32];

    snprintf(all, sizeof(all), "0-%u", machine.cpus - 1);
    online = online != NULL ? online : all;
    ds_accel__set_add_list(&machine.online, online);
    add_line(files, online, "/sys/devices/system/cpu/online");
    for (uint32_t i = 0; machine.packages > 0 && i < machine.online.count; i++) {
        add_cpu(files, &machine, machine.online.items[i]);
    }
    if (json_is_object(json_object_get(description, "nodes"))) {
        add_nodes(files, json_object_get(description, "nodes"));
    }
    add_status(files, description);
    ds_accel__set_clear(&machine.online);
    return files;
}

char *describe_machine(json_t *files)
{
    struct ds_accel__machine machine = {.root = "", .files = files};
    struct ds_accel__text text = {0};
    struct ds_accel__cpus cpus;
    struct ds_accel__topology topology;

    if (ds_accel__cpus_read(&machine, &cpus) >= 0) {
        for (uint32_t i = 0; i < cpus.count; i++) {
            const struct ds_accel__cpu *cpu = &cpus.items[i];

            ds_accel__text_add(&text, "cpu %u core %u l3 %u package %u\n", cpu->id, cpu->core,
                               cpu->l3, cpu->package);
        }
        ds_accel__set_write(&cpus.allowed, &text);
        ds_accel__text_add(&text, " of nodes ");
        ds_accel__set_write(&cpus.allowed_nodes, &text);
        ds_accel__cpus_clear(&cpus);
    }
    if (ds_accel__topology_read(&machine, &topology) >= 0) {
        for (uint32_t i = 0; i < topology.node_count; i++) {
            ds_accel__text_add(&text, "\nnode %u %s", topology.nodes[i].id, topology.nodes[i].cpus);
        }
        ds_accel__topology_clear(&topology);
    }
    return ds_accel__text_take(&text);
}

json_t *find_machine(const char *name)
{
    static json_t *made;
    json_t *table;
    json_t *machines;
    json_t *description;
    const char *key;

    if (made == NULL) {
        made = json_object();
        table = read_data("machines.json");
        machines = json_object_get(table, "machines");
        json_object_foreach(machines, key, description)
        {
            json_object_set_new(made, key, make_machine(description));
        }
        json_decref(table);
    }
    if (name == NULL) { /* all */
        return made;
    }
    if (json_object_get(made, name) == NULL) {
        printf("FAILED: machines.json has no machine %s\n", name);
        exit(1);
    }
    return json_object_get(made, name);
}
