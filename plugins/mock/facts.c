/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Facts that need no open device: sensors, processes, links, op builders, environment. */
#include "mock.h"

#include <unistd.h>

#define LINK_WIDTH 4u
#define LINK_BYTES_PER_S UINT64_C(100000000000)

static int32_t mock_telemetry_get(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                  struct ds_accel_telemetry *telemetry_out,
                                  struct ds_accel_error *error)
{
    struct ds_accel_telemetry telemetry;
    uint64_t allocated_bytes;
    int32_t status = mock_enter_index(instance, device_index, "telemetry_get", error);

    if (status < 0) {
        return status;
    }
    if (telemetry_out == NULL) {
        return mock_null(error, "telemetry_get", "telemetry_out");
    }
    pthread_mutex_lock(&instance->lock);
    allocated_bytes = instance->devices[device_index].allocated_bytes;
    pthread_mutex_unlock(&instance->lock);

    memset(&telemetry, 0, sizeof(telemetry));
    /* Without FAN, so that tests have a value that the plugin does not report. */
    telemetry.valid = DS_ACCEL_TELEMETRY_UTILIZATION | DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION |
                      DS_ACCEL_TELEMETRY_TEMPERATURE | DS_ACCEL_TELEMETRY_POWER |
                      DS_ACCEL_TELEMETRY_POWER_LIMIT | DS_ACCEL_TELEMETRY_ENERGY |
                      DS_ACCEL_TELEMETRY_CORE_CLOCK | DS_ACCEL_TELEMETRY_MEMORY_CLOCK |
                      DS_ACCEL_TELEMETRY_PCIE | DS_ACCEL_TELEMETRY_THROTTLE |
                      DS_ACCEL_TELEMETRY_ECC | DS_ACCEL_TELEMETRY_MEMORY;
    telemetry.memory_total_bytes = instance->options.memory_bytes;
    telemetry.memory_used_bytes = allocated_bytes;
    telemetry.utilization_percent = 25;
    if (instance->options.memory_bytes > 0) {
        telemetry.memory_utilization_percent =
            (uint32_t)((double)allocated_bytes * 100 / (double)instance->options.memory_bytes);
    }
    telemetry.temperature_millidegrees_c = 40000 + 1000 * (int32_t)device_index;
    telemetry.power_milliwatts = 75000;
    telemetry.power_limit_milliwatts = 300000;
    telemetry.energy_millijoules = 1000000;
    telemetry.core_clock_khz = 1500000;
    telemetry.memory_clock_khz = 1200000;
    telemetry.pcie_rx_bytes_per_s = 1000000;
    telemetry.pcie_tx_bytes_per_s = 2000000;
    telemetry.throttle_reasons = DS_ACCEL_THROTTLE_IDLE;
    ds_accel_write(telemetry_out, &telemetry, sizeof(telemetry));
    return DS_ACCEL_OK;
}

/* Reports one process: the calling process, while it has the device open. */
static int32_t mock_telemetry_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                        struct ds_accel_process *processes, uint32_t stride_bytes,
                                        uint32_t capacity, uint32_t *count_out,
                                        struct ds_accel_error *error)
{
    struct ds_accel_process process;
    uint32_t count;
    int32_t status = mock_enter_index(instance, device_index, "telemetry_processes", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL || (processes == NULL && capacity > 0)) {
        return mock_null(error, "telemetry_processes", "count_out or processes");
    }
    memset(&process, 0, sizeof(process));
    process.pid = getpid();
    process.valid = DS_ACCEL_TELEMETRY_MEMORY | DS_ACCEL_TELEMETRY_UTILIZATION;
    process.utilization_percent = 25;
    pthread_mutex_lock(&instance->lock);
    count = instance->devices[device_index].open_count > 0;
    process.memory_bytes = instance->devices[device_index].allocated_bytes;
    pthread_mutex_unlock(&instance->lock);
    if (count > 0 && capacity > 0) {
        ds_accel_write_element(processes, stride_bytes, 0, &process, sizeof(process));
    }
    *count_out = count;
    return DS_ACCEL_OK;
}

/*
 * The links form a ring: each device has a link to the next and a link to the previous device. Two
 * devices have one link, and a single device has none.
 */
static int32_t mock_links_get(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                              struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                              uint32_t *count_out, struct ds_accel_error *error)
{
    uint32_t device_count;
    uint32_t peers[2];
    uint32_t count;
    int32_t status = mock_enter_index(instance, device_index, "links_get", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL || (links == NULL && capacity > 0)) {
        return mock_null(error, "links_get", "count_out or links");
    }
    device_count = (uint32_t)instance->options.device_count;
    count = device_count > 2 ? 2 : device_count - 1;
    peers[0] = (device_index + 1) % device_count;
    peers[1] = (device_index + device_count - 1) % device_count;
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        const struct ds_accel_link link = {.kind = DS_ACCEL_LINK_OTHER,
                                           .peer_index = (int32_t)peers[i],
                                           .width = LINK_WIDTH,
                                           .generation = 1,
                                           .is_up = 1,
                                           .bandwidth_bytes_per_s = LINK_BYTES_PER_S};

        ds_accel_write_element(links, stride_bytes, i, &link, sizeof(link));
    }
    *count_out = count;
    return DS_ACCEL_OK;
}

/* ---- op builders ---------------------------------------------------------------------------- */

static int32_t mock_op_builders_get(ds_accel_plugin_instance_t *instance,
                                    struct ds_accel_op_builder *builders, uint32_t stride_bytes,
                                    uint32_t capacity, uint32_t *count_out,
                                    struct ds_accel_error *error)
{
    const struct ds_accel_op_builder builder = {.builder = "MockAddBuilder", .op = "mock_add"};
    int32_t status = mock_enter(instance, "op_builders_get", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL || (builders == NULL && capacity > 0)) {
        return mock_null(error, "op_builders_get", "count_out or builders");
    }
    if (capacity > 0) {
        ds_accel_write_element(builders, stride_bytes, 0, &builder, sizeof(builder));
    }
    *count_out = 1;
    return DS_ACCEL_OK;
}

static int32_t mock_op_compatible(ds_accel_plugin_instance_t *instance, const char *op,
                                  uint32_t *compatible_out, char *reason, uint32_t reason_size,
                                  struct ds_accel_error *error)
{
    int is_ours;
    int32_t status = mock_enter(instance, "op_compatible", error);

    if (status < 0) {
        return status;
    }
    if (op == NULL || compatible_out == NULL || (reason == NULL && reason_size > 0)) {
        return mock_null(error, "op_compatible", "op, compatible_out or reason");
    }
    is_ours = strcmp(op, "mock_add") == 0;
    if (reason_size > 0) {
        snprintf(reason, reason_size, "%s", is_ours ? "" : "the mock device runs mock_add only");
    }
    *compatible_out = is_ours ? 1 : 0;
    return DS_ACCEL_OK;
}

/* ---- environment ---------------------------------------------------------------------------- */

static int32_t mock_env_rules_get(ds_accel_plugin_instance_t *instance,
                                  struct ds_accel_env_rule *rules, uint32_t stride_bytes,
                                  uint32_t capacity, uint32_t *count_out,
                                  struct ds_accel_error *error)
{
    const struct ds_accel_env_rule rule = {
        .rule = DS_ACCEL_ENV_IF_UNSET, .name = "MOCK_RUNTIME", .value = "1"};
    int32_t status = mock_enter(instance, "env_rules_get", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL || (rules == NULL && capacity > 0)) {
        return mock_null(error, "env_rules_get", "count_out or rules");
    }
    if (capacity > 0) {
        ds_accel_write_element(rules, stride_bytes, 0, &rule, sizeof(rule));
    }
    *count_out = 1;
    return DS_ACCEL_OK;
}

static int32_t mock_env_name_get(ds_accel_plugin_instance_t *instance, uint32_t which,
                                 uint32_t position, char *name, uint32_t name_size,
                                 struct ds_accel_error *error)
{
    const char *text;
    int32_t status = mock_enter(instance, "env_name_get", error);

    if (status < 0) {
        return status;
    }
    if (which != DS_ACCEL_ENV_LIST_VISIBLE_DEVICES && which != DS_ACCEL_ENV_LIST_EXPORT) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "env_name_get: unknown list %u", which);
    }
    if (position > 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND,
                           "env_name_get: list %u has no position %u", which, position);
    }
    text = which == DS_ACCEL_ENV_LIST_EXPORT ? "MOCK_" : MOCK_VISIBLE_VARIABLE;
    if (name == NULL || name_size <= strlen(text)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "env_name_get: \"%s\" does not fit into %u bytes", text, name_size);
    }
    memcpy(name, text, strlen(text) + 1);
    return DS_ACCEL_OK;
}

static int32_t mock_visible_devices_value(ds_accel_plugin_instance_t *instance,
                                          const char *variable, const uint32_t *device_indices,
                                          uint32_t device_index_count, char *value,
                                          uint32_t value_size, uint32_t *needed_out,
                                          struct ds_accel_error *error)
{
    const char *slot = "visible_devices_value";
    char text[MOCK_MAX_DEVICES * 4 + 1] = "";
    size_t used = 0;
    int32_t status = mock_enter(instance, slot, error);

    if (status < 0) {
        return status;
    }
    if (variable == NULL || (value == NULL && value_size > 0) ||
        (device_indices == NULL && device_index_count > 0)) {
        return mock_null(error, slot, "variable, value or device_indices");
    }
    if (strcmp(variable, MOCK_VISIBLE_VARIABLE) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND, "%s: %.64s is not a variable of the mock",
                           slot, variable);
    }
    for (uint32_t i = 0; i < device_index_count; i++) {
        if (device_indices[i] >= instance->options.device_count || i >= MOCK_MAX_DEVICES) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                               "%s: position %u of the list: device %u does not exist, or the list "
                               "is too long",
                               slot, i, device_indices[i]);
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i > 0 ? "," : "",
                                 instance->options.visible[device_indices[i]]);
    }
    if (needed_out != NULL) {
        *needed_out = (uint32_t)used + 1;
    }
    if (value == NULL || used >= value_size) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "%s: %zu bytes do not fit into %u", slot,
                           used + 1, value_size);
    }
    memcpy(value, text, used + 1);
    return DS_ACCEL_OK;
}

void mock_facts_fill(struct ds_accel_plugin *table)
{
    table->telemetry_get = mock_telemetry_get;
    table->telemetry_processes = mock_telemetry_processes;
    table->links_get = mock_links_get;
    table->op_builders_get = mock_op_builders_get;
    table->op_compatible = mock_op_compatible;
    table->env_rules_get = mock_env_rules_get;
    table->env_name_get = mock_env_name_get;
    table->visible_devices_value = mock_visible_devices_value;
}
