/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Prints the facts of a vendor's plugin as JSON: this program is linked with the plugin's own
 * objects and reads its table. The plugin's open() passes the library's names to vendor_lib_open(),
 * which is intercepted (--wrap): it prints the names and exits without opening a library. Run with
 * the option presence off, so that no hardware is searched for.
 */
#include "vendor.h"

#include "drive/drive.h"

#include <stdlib.h>

int __wrap_vendor_lib_open(struct vendor_lib *lib, const struct ds_accel_host *host,
                           const char *option_key, const char *const *names,
                           struct vendor_problem *problem);

int __wrap_vendor_lib_open(struct vendor_lib *lib, const struct ds_accel_host *host,
                           const char *option_key, const char *const *names,
                           struct vendor_problem *problem)
{
    (void)lib;
    (void)host;
    (void)problem;
    if (option_key == NULL || strcmp(option_key, "library") != 0) {
        return -1;
    }
    printf(", \"libraries\": [");
    for (size_t i = 0; names[i] != NULL; i++) {
        printf("%s\"%s\"", i > 0 ? ", " : "", names[i]);
    }
    printf("]}\n");
    exit(0);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void print_list(const char *key, const char *const *list)
{
    printf(", \"%s\": [", key);
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        printf("%s\"%s\"", i > 0 ? ", " : "", list[i]);
    }
    printf("]");
}

static void print_flag(const char *key, uint64_t flag)
{
    printf(", \"%s\": %s", key, (vendor_backend.flags & flag) != 0 ? "true" : "false");
}

static void print_table(void)
{
    const struct vendor_pattern none = {.hardware = NULL};
    const struct vendor_pattern *pattern = vendor_backend.pattern != NULL ? vendor_backend.pattern
                                                                          : &none;
    struct vendor_facts facts;

    vendor_pattern_split(pattern, &facts);

    printf("{\"name\": \"%s\"", vendor_backend.name);
    print_list("pci", facts.pci);
    print_list("device_nodes", facts.nodes);
    print_list("needed_nodes", pattern->needed_nodes);
    print_list("other_ways", pattern->other_ways);
    print_list("export_envs", vendor_backend.export_prefixes);
    printf(", \"visible_devices_envs\": [");
    for (uint32_t i = 0; i < vendor_backend.visible_count; i++) {
        printf("%s\"%s\"", i > 0 ? ", " : "", vendor_backend.visible[i].variable);
    }
    printf("]");
    print_flag("is_synchronized_device", DS_ACCEL_FLAG_SYNCHRONIZED);
    print_flag("resolves_data_dependency", DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES);
    print_flag("handles_memory_backpressure", DS_ACCEL_FLAG_HANDLES_BACKPRESSURE);
    print_flag("is_triton_supported", DS_ACCEL_FLAG_TRITON);
    print_flag("prefer_triton_grouped_mm", DS_ACCEL_FLAG_TRITON_GROUPED_MM);
    print_flag("supports_range_domains", DS_ACCEL_FLAG_RANGE_DOMAINS);
    print_flag("graph_supported", DS_ACCEL_FLAG_GRAPHS);
    print_flag("use_host_timers", DS_ACCEL_FLAG_HOST_TIMERS);
}

int main(void)
{
    struct vendor_problem problem;
    void *runtime = NULL;

    memset(&problem, 0, sizeof(problem));
    print_table();
    (void)vendor_backend.open(drive_host(vendor_backend.name), &runtime, &problem);
    fprintf(stderr, "facts: no library was asked for: %s\n", problem.detail);
    return 1;
}
