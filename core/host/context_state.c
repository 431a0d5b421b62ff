/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Queries of an existing context, for other files of the library: whether it may be used, its
 * machine, and the values that configuration and program set. context.c creates and frees contexts.
 */
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/registry.h"
#include "machine/machine.h"
#include "machine/topology.h"

#include <assert.h>
#include <string.h>

int32_t ds_accel__context_check(const ds_accel_t *context)
{
    if (context == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the context is NULL");
    }
    if (context->watch.is_torn) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "process %ld was changing this context during fork(), so it is "
                               "incomplete here: create a new one",
                               (long)context->watch.pid);
    }
    return DS_ACCEL_OK;
}

void ds_accel__context_change_begin(ds_accel_t *context)
{
    __atomic_add_fetch(&context->watch.changing, 1, __ATOMIC_SEQ_CST);
}

void ds_accel__context_change_end(ds_accel_t *context)
{
    assert(__atomic_load_n(&context->watch.changing, __ATOMIC_SEQ_CST) > 0);
    __atomic_sub_fetch(&context->watch.changing, 1, __ATOMIC_SEQ_CST);
}

struct ds_accel__machine ds_accel__context_machine(const ds_accel_t *context)
{
    return (struct ds_accel__machine){.root = context->machine.root,
                                      .files = context->machine.files};
}

int32_t ds_accel__context_topology(ds_accel_t *context,
                                   const struct ds_accel__topology **topology_out)
{
    const struct ds_accel__machine machine = ds_accel__context_machine(context);
    int32_t status = ds_accel__context_check(context);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->topology_lock);
    if (!context->has_topology) {
        ds_accel__context_change_begin(context);
        status = ds_accel__topology_read(&machine, &context->topology);
        context->has_topology = status >= 0;
        ds_accel__context_change_end(context);
    }
    pthread_mutex_unlock(&context->topology_lock);
    *topology_out = &context->topology;
    return status;
}

int32_t ds_accel__context_load_ops(ds_accel_t *context)
{
    int32_t status;

    pthread_mutex_lock(&context->config_lock);
    ds_accel__context_change_begin(context);
    status = ds_accel__config_load_ops(&context->config);
    ds_accel__context_change_end(context);
    pthread_mutex_unlock(&context->config_lock);
    return status;
}

int32_t ds_accel__context_load_origins(ds_accel_t *context)
{
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&context->config_lock);
    if (context->config.is_snapshot) {
        ds_accel__context_change_begin(context);
        status = ds_accel__config_read(&context->config, false);
        ds_accel__context_change_end(context);
    }
    pthread_mutex_unlock(&context->config_lock);
    return status;
}

const char *ds_accel__context_variable(const ds_accel_t *context, const char *name)
{
    return context->recording == NULL
               ? ds_accel__env_job(name)
               : json_string_value(
                     json_object_get(json_object_get(context->recording, "environment"), name));
}

json_t *ds_accel__operator_fact(ds_accel_t *context, const char *backend, const char *key)
{
    json_t *value = ds_accel__config_backend(&context->config, backend, key);
    char pointer[128] = "/backends";

    if (value == NULL) {
        return NULL;
    }
    ds_accel__pointer_append(pointer, sizeof(pointer), backend);
    ds_accel__pointer_append(pointer, sizeof(pointer), key);
    return ds_accel__config_is_package(&context->config, pointer) ? NULL : value;
}

const char *ds_accel__setting(const ds_accel_t *context, const char *backend, const char *key)
{
    static const char *const keys[DS_ACCEL__SETTING_COUNT] = {
        [DS_ACCEL__SETTING_COMMUNICATION] = "communication_backend",
        [DS_ACCEL__SETTING_COMPILE] = "compile_backend",
    };

    if (context->selected == NULL || strcmp(context->selected->name, backend) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < DS_ACCEL__SETTING_COUNT; i++) {
        if (strcmp(keys[i], key) == 0 && context->settings[i][0] != '\0') {
            return context->settings[i];
        }
    }
    return NULL;
}
