/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A host that the tests implement for the cpu plugin. It can report two NUMA nodes on a machine
 * with one node.
 */
#ifndef DS_ACCEL_TESTS_PLUGINS_CPU_HOST_H
#define DS_ACCEL_TESTS_PLUGINS_CPU_HOST_H

#include "fixture.h"
#include "table.h"

static ds_accel_t *context;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

static const char *async_option; /* value of option async; NULL if the option is not set */
static uint32_t node_count;
static bool has_one_kernel_node = true; /* all reported nodes have the id 0 */
static uint64_t machine_available_bytes = UINT64_C(3) << 34;
static char host_log[1024];

static inline void keep_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    snprintf(host_log + strlen(host_log), sizeof(host_log) - strlen(host_log), "%s\n", message);
}

static inline int32_t get_option(const struct ds_accel_host *host, const char *key, char *value,
                                 uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)needed_out;
    if (strcmp(key, "async") != 0 || async_option == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    snprintf(value, value_size, "%s", async_option);
    return DS_ACCEL_OK;
}

static inline int32_t count_nodes(const struct ds_accel_host *host, uint32_t *count_out)
{
    (void)host;
    *count_out = node_count;
    return DS_ACCEL_OK;
}

/* Reports a node with one CPU. The id is 0 by default, because every machine has node 0. */
static inline int32_t get_node(const struct ds_accel_host *host, uint32_t position,
                               struct ds_accel_numa_node *node_out)
{
    struct ds_accel_numa_node node = {.cpu_count = 1};

    (void)host;
    node.id = has_one_kernel_node ? 0 : position;
    snprintf(node.cpus, sizeof(node.cpus), "%u", position);
    ds_accel_write(node_out, &node, sizeof(node));
    return DS_ACCEL_OK;
}

static inline int32_t get_memory(const struct ds_accel_host *host,
                                 struct ds_accel_host_memory *memory_out)
{
    const struct ds_accel_host_memory memory = {.total_bytes = UINT64_C(1) << 36,
                                                .available_bytes = machine_available_bytes};

    (void)host;
    ds_accel_write(memory_out, &memory, sizeof(memory));
    return DS_ACCEL_OK;
}

static inline const void *find_extension(const struct ds_accel_host *host, const char *id)
{
    static const struct ds_accel_ext_topology topology = {.struct_size = sizeof(topology),
                                                          .node_count = count_nodes,
                                                          .node_get = get_node,
                                                          .memory_get = get_memory};

    (void)host;
    return strcmp(id, DS_ACCEL_EXT_TOPOLOGY) == 0 ? &topology : NULL;
}

static struct ds_accel_host own_host = {.struct_size = sizeof(own_host),
                                        .abi_major = DS_ACCEL_ABI_MAJOR,
                                        .log = keep_log,
                                        .config_get = get_option,
                                        .machine_root = "",
                                        .extension = find_extension};

static inline void open_cpu(uint32_t nodes, const char *async)
{
    struct ds_accel_options options = test_options();
    ds_accel_device_t *device;

    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
    options.accelerator = "cpu";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    table = ds_accel_device_table(device);
    ds_accel_device_close(device);
    node_count = nodes;
    async_option = async;
    ASSERT_OK(table->init(&own_host, &instance, &error));
    ASSERT_OK(table->device_open(instance, 0, &handle, &error));
}

static inline void close_cpu(void)
{
    table->device_close(handle);
    table->shutdown(instance);
    ds_accel_destroy(context);
}

#endif
