/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices of the chosen accelerator: opening, naming, and the out-of-line copies of the inline
 * calls. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

/* For callers that cannot inline: other languages, and -O0. */
extern inline ds_accel_t *ds_accel_get(void);
extern inline const struct ds_accel_plugin *ds_accel_device_table(const ds_accel_device_t *device);
extern inline ds_accel_plugin_device_t *ds_accel_device_handle(const ds_accel_device_t *device);
extern inline int32_t ds_accel_device_synchronize(ds_accel_device_t *device);
extern inline int32_t ds_accel_device_info(ds_accel_device_t *device,
                                           struct ds_accel_device_info *info_out);
extern inline int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                             struct ds_accel_memory_info *info_out);

/* The chosen candidate of a call that will write to out. */
static int32_t get_chosen(const ds_accel_t *context, const void *out,
                          const struct ds_accel__candidate **chosen_out)
{
    if (context == NULL || out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the %s is NULL",
                               context == NULL ? "context" : "output");
    }
    *chosen_out = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    if (*chosen_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "no accelerator is chosen yet: call ds_accel_detect() first");
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_instance(ds_accel_t *context, const struct ds_accel_plugin **table_out,
                          ds_accel_plugin_instance_t **instance_out)
{
    const struct ds_accel__candidate *candidate = NULL;
    int32_t status =
        get_chosen(context, table_out != NULL ? (const void *)instance_out : NULL, &candidate);

    if (candidate != NULL) {
        *table_out = &candidate->table;
        *instance_out = candidate->instance;
    }
    return status;
}

int32_t ds_accel_device_count(ds_accel_t *context, uint32_t *count_out)
{
    const struct ds_accel__candidate *candidate = NULL;
    int32_t status = get_chosen(context, count_out, &candidate);

    if (status >= 0) {
        *count_out = context->device_count;
    }
    return status;
}

int32_t ds_accel_device_name(ds_accel_t *context, int32_t device_index, char *name,
                             size_t name_size)
{
    const struct ds_accel__candidate *candidate = NULL;
    int32_t status = get_chosen(context, name, &candidate);
    bool indexed;
    int length;

    if (candidate == NULL) {
        return status;
    }
    if (device_index < -1 ||
        (device_index >= 0 && (uint32_t)device_index >= context->device_count)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %d; %s has %u", device_index,
                               candidate->name, context->device_count);
    }
    pthread_mutex_lock(&context->config_lock);
    indexed = !json_is_false(
        ds_accel__config_backend(&context->config, candidate->name, "indexed_device_names"));
    pthread_mutex_unlock(&context->config_lock);
    if (device_index >= 0 && indexed) {
        length = snprintf(name, name_size, "%s:%d", candidate->name, device_index);
    } else {
        length = snprintf(name, name_size, "%s", candidate->name);
    }
    if (length < 0 || (size_t)length >= name_size) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the name needs %d bytes, there are %zu",
                               length + 1, name_size);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel__candidate *candidate = NULL;
    int32_t status = get_chosen(context, device_index_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    status = candidate->table.device_get_current(candidate->instance, device_index_out, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

int32_t ds_accel_device_open(ds_accel_t *context, uint32_t device_index,
                             ds_accel_device_t **device_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel__candidate *candidate = NULL;
    ds_accel_device_t *device;
    int32_t status = get_chosen(context, device_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    if (device_index >= context->device_count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %u; %s has %u", device_index,
                               candidate->name, context->device_count);
    }
    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return ds_accel__no_memory();
    }
    device->table = &candidate->table;
    status = device->table->device_open(candidate->instance, device_index, &device->handle, &error);
    if (status == DS_ACCEL_OK && device->handle == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (status != DS_ACCEL_OK) {
        free(device);
        return ds_accel__fail(status > 0 ? DS_ACCEL_ERR_ABI : status, &error);
    }
    *device_out = device;
    return DS_ACCEL_OK;
}

void ds_accel_device_close(ds_accel_device_t *device)
{
    if (device != NULL) {
        device->table->device_close(device->handle);
        free(device);
    }
}
