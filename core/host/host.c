/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The host table for plugins: logging, options, clock, and the extensions topology, trace and
 * asker. This file calls later parts of the library ("rooms" in docs/architecture.md) only through
 * hooks.
 */
#include "base/clock.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/probe.h"
#include "host/registry.h"
#include "machine/elf_file.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct ds_accel__host *host_of(const struct ds_accel_host *abi)
{
    return abi->host_data;
}

static void host_log(const struct ds_accel_host *abi, uint32_t level, const char *message)
{
    const struct ds_accel__host *host = host_of(abi);

    if (message != NULL) {
        ds_accel__log(&host->context->log, host->candidate->name, level, "%s", message);
    }
}

static int32_t host_log_enabled(const struct ds_accel_host *abi, uint32_t level,
                                uint32_t *enabled_out)
{
    const struct ds_accel__host *host = host_of(abi);

    *enabled_out = ds_accel__log_enabled(&host->context->log, host->candidate->name, level);
    return DS_ACCEL_OK;
}

/*
 * Copy a text to value if it fits completely; else return ERR_LIMIT. In any case *needed_out,
 * unless needed_out is NULL, is set to the size of the text, including its NUL.
 */
static int32_t give_text(const char *text, size_t length, char *value, uint32_t value_size,
                         uint32_t *needed_out)
{
    if (needed_out != NULL) {
        *needed_out = (uint32_t)length + 1;
    }
    if (length >= value_size) {
        return DS_ACCEL_ERR_LIMIT;
    }
    memcpy(value, text, length);
    value[length] = '\0';
    return DS_ACCEL_OK;
}

static int32_t give_option(json_t *option, char *value, uint32_t value_size, uint32_t *needed_out)
{
    char text[64];
    size_t length;

    if (json_is_string(option)) {
        return give_text(json_string_value(option), json_string_length(option), value, value_size,
                         needed_out);
    }
    /*
     * Write numbers and booleans in JSON's format, which does not depend on the program's locale.
     */
    length = json_dumpb(option, text, sizeof(text), JSON_ENCODE_ANY);
    return length == 0 || length > sizeof(text)
               ? DS_ACCEL_ERR_INVALID
               : give_text(text, length, value, value_size, needed_out);
}

static int32_t host_config_get(const struct ds_accel_host *abi, const char *key, char *value,
                               uint32_t value_size, uint32_t *needed_out)
{
    const struct ds_accel__host *host = host_of(abi);
    ds_accel_t *context = host->context;
    const char *text;
    json_t *option;
    int32_t status;

    if (key == NULL || (value == NULL && value_size != 0)) {
        return DS_ACCEL_ERR_INVALID;
    }
    text = ds_accel__env_option(&context->env, host->candidate->name, key);
    if (text != NULL) {
        return give_text(text, strlen(text), value, value_size, needed_out);
    }
    pthread_mutex_lock(&context->config_lock);
    option = ds_accel__config_get(&context->config, "backends", host->candidate->name, "options",
                                  key, NULL);
    status = option != NULL ? give_option(option, value, value_size, needed_out)
                            : DS_ACCEL_ERR_NOT_FOUND;
    pthread_mutex_unlock(&context->config_lock);
    return status;
}

static uint64_t host_clock_ns(const struct ds_accel_host *abi)
{
    (void)abi;
    return ds_accel__now_ns();
}

/* ---- extension: topology -------------------------------------------------------------------- */

static int32_t topology_node_count(const struct ds_accel_host *abi, uint32_t *count_out)
{
    const struct ds_accel__topology *topology;
    int32_t status = ds_accel__context_topology(host_of(abi)->context, &topology);

    if (status >= 0) {
        *count_out = topology->node_count;
    }
    return status;
}

static int32_t topology_node_get(const struct ds_accel_host *abi, uint32_t position,
                                 struct ds_accel_numa_node *node_out)
{
    const struct ds_accel__topology *topology;
    const struct ds_accel__numa_node *node;
    struct ds_accel_numa_node answer = {0};
    int32_t status = ds_accel__context_topology(host_of(abi)->context, &topology);

    if (status < 0) {
        return status;
    }
    if (position >= topology->node_count) {
        return DS_ACCEL_ERR_INVALID;
    }
    node = &topology->nodes[position];
    answer.id = node->id;
    answer.cpu_count = node->cpu_count;
    answer.total_memory_bytes = node->total_memory_bytes;
    answer.available_memory_bytes = node->available_memory_bytes;
    if ((size_t)snprintf(answer.cpus, sizeof(answer.cpus), "%s", node->cpus) >=
        sizeof(answer.cpus)) {
        memcpy(answer.cpus + sizeof(answer.cpus) - 4, "...", 4);
    }
    ds_accel_write(node_out, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

static int32_t topology_memory_get(const struct ds_accel_host *abi,
                                   struct ds_accel_host_memory *memory_out)
{
    const struct ds_accel__machine machine = ds_accel__context_machine(host_of(abi)->context);

    return ds_accel__host_memory(&machine, memory_out);
}

static const struct ds_accel_ext_topology topology_extension = {
    .struct_size = sizeof(topology_extension),
    .node_count = topology_node_count,
    .node_get = topology_node_get,
    .memory_get = topology_memory_get,
};

/* ---- extension: trace ----------------------------------------------------------------------- */

static void trace_begin(const struct ds_accel_host *abi, const char *category, const char *name)
{
    ds_accel__layers_span_begin(host_of(abi)->candidate, category, name);
}

static void trace_end(const struct ds_accel_host *abi)
{
    ds_accel__layers_span_end(host_of(abi)->candidate);
}

static const struct ds_accel_ext_trace trace_extension = {
    .struct_size = sizeof(trace_extension),
    .begin = trace_begin,
    .end = trace_end,
};

/* ---- extension: asker ----------------------------------------------------------------------- */

static int64_t asker_process_id(const struct ds_accel_host *abi)
{
    pid_t asker = host_of(abi)->context->asker;

    return asker != 0 ? asker : getpid();
}

static const struct ds_accel_ext_asker asker_extension = {
    .struct_size = sizeof(asker_extension),
    .process_id = asker_process_id,
};

static const void *host_extension(const struct ds_accel_host *abi, const char *id)
{
    (void)abi;
    if (id != NULL && strcmp(id, DS_ACCEL_EXT_TOPOLOGY) == 0) {
        return &topology_extension;
    }
    if (id != NULL && strcmp(id, DS_ACCEL_EXT_TRACE) == 0) {
        return &trace_extension;
    }
    if (id != NULL && strcmp(id, DS_ACCEL_EXT_ASKER) == 0) {
        return &asker_extension;
    }
    return NULL;
}

void ds_accel__host_fill(struct ds_accel__host *host, ds_accel_t *context,
                         struct ds_accel__candidate *candidate)
{
    host->context = context;
    host->candidate = candidate;
    host->abi = (struct ds_accel_host){
        .struct_size = sizeof(host->abi),
        .abi_major = DS_ACCEL_ABI_MAJOR,
        .abi_minor = DS_ACCEL_ABI_MINOR,
        .features = DS_ACCEL__HOST_FEATURES,
        .host_version = DS_ACCEL_VERSION,
        .host_data = host,
        .log = host_log,
        .log_enabled = host_log_enabled,
        .config_get = host_config_get,
        .clock_ns = host_clock_ns,
        .machine_root = context->machine_root,
        .extension = host_extension,
    };
}
