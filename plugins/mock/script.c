/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The option fail: which call of which function fails, and with which status.
 *
 *     script = rule { "," rule }
 *     rule   = slot [ ":" N [ "+" ] ] "=" STATUS
 *
 * slot is the name of a function of the table, N the number of the call that fails, counted from 1
 * in each instance (each probe is call 1); without N every call fails, with "N+" the N-th and all
 * after it. STATUS is a status of the ABI in lower case, without its prefix:
 * "mem_alloc:3=no_memory,init=driver".
 */
#include "mock.h"

#define VENDOR_CODE_BASE 100

struct status_name {
    const char *name;
    int32_t status;
    const char *vendor_text;
};

static const struct status_name status_names[] = {
    {"invalid", DS_ACCEL_ERR_INVALID, "MOCK_ERROR_INVALID"},
    {"no_memory", DS_ACCEL_ERR_NO_MEMORY, "MOCK_ERROR_NO_MEMORY"},
    {"unsupported", DS_ACCEL_ERR_UNSUPPORTED, "MOCK_ERROR_UNSUPPORTED"},
    {"driver", DS_ACCEL_ERR_DRIVER, "MOCK_ERROR_DRIVER"},
    {"not_found", DS_ACCEL_ERR_NOT_FOUND, "MOCK_ERROR_NOT_FOUND"},
    {"no_device", DS_ACCEL_ERR_NO_DEVICE, "MOCK_ERROR_NO_DEVICE"},
    {"permission", DS_ACCEL_ERR_PERMISSION, "MOCK_ERROR_PERMISSION"},
    {"busy", DS_ACCEL_ERR_BUSY, "MOCK_ERROR_BUSY"},
    {"timeout", DS_ACCEL_ERR_TIMEOUT, "MOCK_ERROR_TIMEOUT"},
    {"device_lost", DS_ACCEL_ERR_DEVICE_LOST, "MOCK_ERROR_DEVICE_LOST"},
    {"io", DS_ACCEL_ERR_IO, "MOCK_ERROR_IO"},
    {"state", DS_ACCEL_ERR_STATE, "MOCK_ERROR_STATE"},
    {"limit", DS_ACCEL_ERR_LIMIT, "MOCK_ERROR_LIMIT"},
    {"config", DS_ACCEL_ERR_CONFIG, "MOCK_ERROR_CONFIG"},
    {"not_usable", DS_ACCEL_ERR_NOT_USABLE, "MOCK_ERROR_NOT_USABLE"},
    {"abi", DS_ACCEL_ERR_ABI, "MOCK_ERROR_ABI"},
    {"untrusted", DS_ACCEL_ERR_UNTRUSTED, "MOCK_ERROR_UNTRUSTED"},
    {"internal", DS_ACCEL_ERR_INTERNAL, "MOCK_ERROR_INTERNAL"},
};

/*
 * The functions of this plugin that can fail: all functions of its table that do not return void.
 */
static const char *const slot_names[] = {
    "probe",
    "init",
    "extension",
    "backend_info",
    "device_count",
    "device_identity",
    "device_open",
    "device_info",
    "device_get_current",
    "device_set_current",
    "device_synchronize",
    "device_health",
    "stream_create",
    "stream_get_default",
    "stream_priority_range",
    "stream_synchronize",
    "stream_query",
    "stream_wait_event",
    "stream_host_task",
    "event_create",
    "event_record",
    "event_query",
    "event_synchronize",
    "event_elapsed_ms",
    "mem_alloc",
    "mem_free",
    "mem_alloc_pinned",
    "mem_free_pinned",
    "mem_register",
    "mem_unregister",
    "mem_alloc_managed",
    "mem_device_pointer",
    "mem_copy",
    "mem_copy_async",
    "mem_copy_peer_async",
    "mem_fill_async",
    "mem_info",
    "mem_stats",
    "mem_reset_peaks",
    "mem_trim",
    "mem_set_limit",
    "mem_pointer_info",
    "mem_alloc_async",
    "mem_free_async",
    "vmem_granularity",
    "vmem_reserve",
    "vmem_release",
    "vmem_create",
    "vmem_map",
    "vmem_unmap",
    "vmem_set_access",
    "graph_capture_begin",
    "graph_capture_end",
    "graph_capture_status",
    "graph_instantiate",
    "graph_launch",
    "graph_exec_update",
    "graph_node_count",
    "graph_dump",
    "dtype_support",
    "telemetry_get",
    "telemetry_processes",
    "range_push",
    "range_pop",
    "profiler_start",
    "profiler_stop",
    "peer_can_access",
    "peer_enable",
    "peer_disable",
    "links_get",
    "ipc_memory_export",
    "ipc_memory_unexport",
    "ipc_memory_open",
    "ipc_memory_close",
    "ipc_event_export",
    "ipc_event_open",
    "dmabuf_export",
    "dmabuf_import",
    "dmabuf_release",
    "op_builders_get",
    "op_compatible",
    "env_rules_get",
    "env_name_get",
    "visible_devices_value",
    "native_get",
    "native_wrap",
};

static const struct status_name *find_status(const char *name)
{
    for (size_t i = 0; i < sizeof(status_names) / sizeof(status_names[0]); i++) {
        if (strcmp(status_names[i].name, name) == 0) {
            return &status_names[i];
        }
    }
    return NULL;
}

static const char *find_slot(const char *name)
{
    for (size_t i = 0; i < sizeof(slot_names) / sizeof(slot_names[0]); i++) {
        if (strcmp(slot_names[i], name) == 0) {
            return slot_names[i];
        }
    }
    return NULL;
}

/* Parses the number of a call: "3" or "3+". */
static int parse_calls(char *text, struct mock_rule *rule)
{
    size_t length = strlen(text);
    int open_ended = length > 0 && text[length - 1] == '+';

    if (open_ended) {
        text[length - 1] = '\0';
    }
    if (plugin_parse_u64(text, &rule->first) != 0 || rule->first == 0) {
        return -1;
    }
    rule->last = open_ended ? UINT64_MAX : rule->first;
    return 0;
}

/* Parses one rule; text is modified. Returns NULL, or the error. */
static const char *parse_rule(char *text, struct mock_rule *rule_out)
{
    struct mock_rule rule = {.first = 1, .last = UINT64_MAX};
    const struct status_name *status;
    char *equals = strchr(text, '=');
    char *colon;

    if (equals == NULL) {
        return "is not slot[:N[+]]=STATUS";
    }
    *equals = '\0';
    colon = strchr(text, ':');
    if (colon != NULL) {
        *colon = '\0';
        if (parse_calls(colon + 1, &rule) != 0) {
            return "has no call number from 1, such as \":3\" or \":3+\"";
        }
    }
    rule.slot = find_slot(text);
    if (rule.slot == NULL) {
        return "names no function of this plugin that can fail";
    }
    status = find_status(equals + 1);
    if (status == NULL) {
        return "names no status, such as \"no_memory\"";
    }
    rule.status = status->status;
    *rule_out = rule;
    return NULL;
}

int32_t mock_script_parse(const char *text, struct mock_script *script_out,
                          struct ds_accel_error *error)
{
    struct mock_script script;
    const char *position = text;

    memset(&script, 0, sizeof(script));
    while (*position != '\0') {
        size_t length = strcspn(position, ",");
        char rule[96];
        const char *problem;

        if (script.count == MOCK_MAX_RULES) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID, "option fail: more than %u rules",
                               MOCK_MAX_RULES);
        }
        snprintf(rule, sizeof(rule), "%.*s", (int)(length < sizeof(rule) ? length : 0), position);
        problem = length < sizeof(rule) ? parse_rule(rule, &script.rules[script.count])
                                        : "is longer than any rule";
        if (problem == NULL && position[length] == ',' && position[length + 1] == '\0') {
            problem = "ends in a comma";
        }
        if (problem != NULL) {
            return plugin_fail(error, DS_ACCEL_ERR_INVALID, "option fail: \"%.*s\" %s",
                               (int)(length < 80 ? length : 80), position, problem);
        }
        script.count++;
        position += length;
        position += *position == ',';
    }
    *script_out = script;
    return DS_ACCEL_OK;
}

int32_t mock_script_count(struct mock_script *script, const char *slot)
{
    int32_t status = DS_ACCEL_OK;

    for (uint32_t i = 0; i < script->count; i++) {
        struct mock_rule *rule = &script->rules[i];

        if (strcmp(rule->slot, slot) != 0) {
            continue;
        }
        /*
         * Every rule for this slot counts the call, even if an earlier rule has already set status.
         */
        rule->calls++;
        if (status == DS_ACCEL_OK && rule->calls >= rule->first && rule->calls <= rule->last) {
            status = rule->status;
        }
    }
    return status;
}

int32_t mock_vendor_fail(struct ds_accel_error *error, int32_t status, const char *slot,
                         const char *cause)
{
    struct ds_accel_error details;
    const char *vendor_text = "MOCK_ERROR_UNKNOWN";

    for (size_t i = 0; i < sizeof(status_names) / sizeof(status_names[0]); i++) {
        if (status_names[i].status == status) {
            vendor_text = status_names[i].vendor_text;
        }
    }
    memset(&details, 0, sizeof(details));
    details.code = status;
    details.vendor_code = VENDOR_CODE_BASE - status;
    snprintf(details.vendor_text, sizeof(details.vendor_text), "%s", vendor_text);
    snprintf(details.message, sizeof(details.message), "%s: %s (%lld): %s", slot, vendor_text,
             (long long)details.vendor_code, cause);
    ds_accel_write(error, &details, sizeof(details));
    return status;
}
