/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary lines as the arguments of ds-accel run, and the plan of the job on a machine with two
 * sockets. */
#include "fuzz.h"

#include "base/text.h"
#include "launch/plan.h"
#include "launch/plan_json.h"
#include "machine/cpus.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <string.h>

#define ARGUMENT_LIMIT 256u
#define SHOWN_RANKS 256u /* plans of more ranks take too long to write */

static struct ds_accel__cpus cpus;
static struct ds_accel__topology topology;

static void add_file(json_t *files, const char *path, const char *text)
{
    json_object_set_new(files, path, json_pack("{s:s}", "text", text));
}

/* Two sockets of four cores with two threads; this process may use all but one core. */
static void read_machine(void)
{
    json_t *files = json_object();
    struct ds_accel__machine machine = {.root = "", .files = files};
    char path[128];
    char text[32];

    add_file(files, "/sys/devices/system/cpu/online", "0-15\n");
    for (unsigned cpu = 0; cpu < 16; cpu++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                 cpu);
        snprintf(text, sizeof(text), "%u,%u\n", cpu % 8, cpu % 8 + 8);
        add_file(files, path, text);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id",
                 cpu);
        snprintf(text, sizeof(text), "%u\n", cpu % 8 / 4);
        add_file(files, path, text);
    }
    add_file(files, "/sys/devices/system/node/online", "0-1\n");
    add_file(files, "/sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    add_file(files, "/sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    add_file(files, "/proc/self/status", "Cpus_allowed_list:\t0-6,8-14\n");
    FUZZ_CHECK(ds_accel__cpus_read(&machine, &cpus) >= 0);
    FUZZ_CHECK(ds_accel__topology_read(&machine, &topology) >= 0);
    json_decref(files);
}

static bool is_local(void *user_data, const char *host)
{
    (void)user_data;
    return strcmp(host, "localhost") == 0;
}

static bool find_file(void *user_data, const char *path, bool *is_executable_out)
{
    (void)user_data;
    *is_executable_out = path[0] == '/';
    return *is_executable_out;
}

static bool keep(void *user_data, const char *text, size_t length)
{
    ds_accel__text_add_bytes(user_data, text, length);
    return true;
}

/* ---- checks --------------------------------------------------------------------------------- */

static void check_placements(const struct ds_accel__plan *plan)
{
    bool is_exclusive = plan->options->bind == DS_ACCEL__BIND_EXCLUSIVE;
    struct ds_accel__set used = {0};
    struct ds_accel__set reserved = {0};
    uint32_t cpu_count = 0;
    uint32_t reserved_count = 0;

    for (uint32_t i = 0; i < plan->local_count; i++) {
        const struct ds_accel__placement *placement = &plan->placements[i];

        FUZZ_CHECK((plan->options->bind == DS_ACCEL__BIND_NONE) == (placement->cpus.count == 0));
        FUZZ_CHECK((placement->thread_count > 0) == (placement->cpus.count > 0));
        cpu_count += placement->cpus.count;
        reserved_count += placement->reserved.count;
        FUZZ_CHECK(ds_accel__set_add_all(&used, &placement->cpus) >= 0);
        FUZZ_CHECK(ds_accel__set_add_all(&reserved, &placement->reserved) >= 0);
    }
    FUZZ_CHECK(ds_accel__set_has_all(&cpus.allowed, &used));
    FUZZ_CHECK(ds_accel__set_has_all(&cpus.allowed, &reserved));
    FUZZ_CHECK(!is_exclusive || used.count == cpu_count);
    FUZZ_CHECK(reserved.count == reserved_count);
    ds_accel__set_keep(&used, &reserved);
    FUZZ_CHECK(used.count == 0);
    ds_accel__set_clear(&used);
    ds_accel__set_clear(&reserved);
}

static void check_texts(const struct ds_accel__plan *plan)
{
    struct ds_accel__text text = {0};
    json_error_t error;
    json_t *tree;

    if (plan->world_size > SHOWN_RANKS) {
        return;
    }
    FUZZ_CHECK(ds_accel__plan_write_json(plan, keep, &text) >= 0);
    tree = json_loadb(text.data, text.size_bytes, JSON_REJECT_DUPLICATES, &error);
    FUZZ_CHECK(tree != NULL);
    FUZZ_CHECK(json_array_size(json_object_get(tree, "ranks")) == plan->world_size);
    json_decref(tree);
    ds_accel__text_clear(&text);
    FUZZ_CHECK(ds_accel__plan_write_text(plan, keep, &text) >= 0);
    for (char *line = text.data, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        FUZZ_CHECK(end != NULL);
        *end = '\0';
        FUZZ_CHECK(ds_accel__is_printable(line));
    }
    ds_accel__text_clear(&text);
}

static void check_plan(const struct ds_accel__launch_options *options, bool has_hostfile)
{
    static const char *const visible[] = {"CUDA_VISIBLE_DEVICES"};
    static const char *const environment[] = {"HOME=/", "UCX_TLS=\xff", NULL};
    static const struct ds_accel__device_fact devices[] = {
        {.uuid = "GPU-1234", .pci_address = "0000:01:00.0", .node = 1}, {.node = 0}, {.node = -1}};
    struct ds_accel__launch_facts facts = {
        .accelerator = options->accelerator != NULL ? options->accelerator : "cuda",
        .visible_names = visible,
        .visible_count = 1,
        .visible_value = "2,GPU-1234",
        .devices = devices,
        .device_count = ARRAY_SIZE(devices),
        .environment = environment,
        .directory = "/job",
        .python = "python3",
        .is_local = is_local,
        .find_file = find_file,
        .cpus = &cpus,
        .topology = &topology,
    };
    struct ds_accel__hosts hosts = {0};
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan;

    FUZZ_CHECK(ds_accel__hosts_add(&hosts, "localhost", 9, 3) >= 0);
    FUZZ_CHECK(ds_accel__hosts_add(&hosts, "w1", 2, 2) >= 0);
    if (ds_accel__plan_make(options, &facts, has_hostfile ? &hosts : NULL, &notes, &plan) >= 0) {
        FUZZ_CHECK(plan.world_size > 0 && plan.hosts.count > 0);
        check_placements(&plan);
        check_texts(&plan);
        ds_accel__plan_clear(&plan);
    } else {
        FUZZ_CHECK(ds_accel__is_printable(ds_accel_last_error()));
    }
    ds_accel__text_clear(&notes);
    ds_accel__hosts_clear(&hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup(size > 0 ? (const char *)data : "", size);
    const char *arguments[ARGUMENT_LIMIT];
    struct ds_accel__launch_options options;
    char *rest = text;
    char *line;
    uint32_t count = 0;

    if (cpus.count == 0) {
        read_machine();
    }
    while (count < ARGUMENT_LIMIT && (line = strsep(&rest, "\n")) != NULL) {
        arguments[count++] = line;
    }
    if (ds_accel__launch_options_parse(count, arguments, &options) < 0) {
        FUZZ_CHECK(ds_accel_last_error()[0] != '\0');
        FUZZ_CHECK(ds_accel__is_printable(ds_accel_last_error()));
    } else {
        FUZZ_CHECK(options.program + options.program_count == arguments + count);
        if (options.program_count > 0) {
            check_plan(&options, options.hostfile != NULL);
        }
    }
    free(text);
    return 0;
}
