/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/compute.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/facts.h"

/* The lowest number of the devices that can be opened; a callback of ds_accel__with_facts(). */
static json_t *lowest_major(const struct ds_accel__facts *facts, uint32_t count)
{
    const struct ds_accel_plugin *table = facts->candidate != NULL ? &facts->candidate->table
                                                                   : NULL;
    uint32_t lowest = 0;

    for (uint32_t i = 0; facts->instance != NULL && table != NULL && i < count; i++) {
        struct ds_accel_device_info info = {.struct_size = sizeof(info)};
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        ds_accel_plugin_device_t *device = NULL;

        if (table->device_open(facts->instance, i, &device, &error) != DS_ACCEL_OK ||
            device == NULL) {
            continue;
        }
        if (table->device_info(device, &info, &error) == DS_ACCEL_OK && info.compute_major > 0 &&
            (lowest == 0 || info.compute_major < lowest)) {
            lowest = info.compute_major;
        }
        table->device_close(device);
    }
    return json_integer(lowest);
}

int32_t ds_accel__compute_major(ds_accel_t *context, const char *backend, uint32_t *major_out)
{
    json_t *major = NULL;
    int32_t status;

    pthread_mutex_lock(&context->lock);
    status = ds_accel__with_facts(context, backend, lowest_major, &major);
    pthread_mutex_unlock(&context->lock);
    *major_out = status >= 0 ? (uint32_t)json_integer_value(major) : 0;
    json_decref(major);
    /* A backend that is not known has no devices. */
    return status == DS_ACCEL_ERR_NO_MEMORY || status == DS_ACCEL_ERR_LIMIT ? status : DS_ACCEL_OK;
}
