/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The devices of the chosen accelerator: their number, names and identities, and the current
 * device. No function in this file opens a device.
 */
#include "base/pci.h"
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/handle.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int32_t ds_accel__chosen_get(const ds_accel_t *context, const void *out,
                             struct ds_accel__candidate **chosen_out)
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

int32_t ds_accel__device_index_check(const ds_accel_t *context,
                                     const struct ds_accel__candidate *candidate,
                                     uint32_t device_index)
{
    if (device_index >= context->device_count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %u; %s has %u", device_index,
                               candidate->name, context->device_count);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_instance(ds_accel_t *context, const struct ds_accel_plugin **table_out,
                          ds_accel_plugin_instance_t **instance_out)
{
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = ds_accel__chosen_get(
        context, table_out != NULL ? (const void *)instance_out : NULL, &candidate);

    if (candidate != NULL) {
        *table_out = &candidate->table;
        *instance_out = candidate->instance;
    }
    return status;
}

int32_t ds_accel_device_count(ds_accel_t *context, uint32_t *count_out)
{
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = ds_accel__chosen_get(context, count_out, &candidate);

    if (status >= 0) {
        *count_out = context->device_count;
    }
    return status;
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_indexed(ds_accel_t *context, const struct ds_accel__candidate *candidate)
{
    bool indexed;

    pthread_mutex_lock(&context->config_lock);
    indexed = !json_is_false(
        ds_accel__config_backend(&context->config, candidate->name, "indexed_device_names"));
    pthread_mutex_unlock(&context->config_lock);
    return indexed;
}

int32_t ds_accel_device_name(ds_accel_t *context, int32_t device_index, char *name,
                             size_t name_size)
{
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = ds_accel__chosen_get(context, name, &candidate);
    int length;

    if (candidate == NULL) {
        return status;
    }
    if (device_index < -1 ||
        (device_index >= 0 && (uint32_t)device_index >= context->device_count)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %d; %s has %u", device_index,
                               candidate->name, context->device_count);
    }
    if (device_index >= 0 && is_indexed(context, candidate)) {
        length = snprintf(name, name_size, "%.*s:%d", ds_accel__device_name_length(candidate->name),
                          candidate->name, device_index);
    } else {
        length = snprintf(name, name_size, "%.*s", ds_accel__device_name_length(candidate->name),
                          candidate->name);
    }
    if (length < 0 || (size_t)length >= name_size) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the name needs %d bytes, the buffer has %zu",
                               length + 1, name_size);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_current_device_name(ds_accel_t *context, char *name, size_t name_size)
{
    uint32_t index = 0;
    int32_t status = ds_accel_current_device(context, &index);

    return status < 0 ? status : ds_accel_device_name(context, (int32_t)index, name, name_size);
}

/* Parse a device index, such as "1", which may follow the backend's name, such as "cuda:1". False:
 * the name has neither form. */
static bool parse_index(const char *backend, const char *name, uint64_t *index_out)
{
    size_t length = strlen(backend);
    char *end;

    if (strncmp(name, backend, length) == 0 && name[length] == ':') {
        name += length + 1;
    }
    if (!isdigit((unsigned char)name[0]) || strlen(name) > 9) {
        return false;
    }
    *index_out = strtoull(name, &end, 10);
    return *end == '\0';
}

static int32_t find_by_identity(ds_accel_t *context, const struct ds_accel__candidate *candidate,
                                const char *name, uint32_t *device_index_out)
{
    uint32_t found = 0;
    uint32_t index = 0;

    for (uint32_t i = 0; i < context->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        if (candidate->table.device_identity(candidate->instance, i, &identity, &error) !=
            DS_ACCEL_OK) {
            continue;
        }
        ds_accel__sanitize(identity.uuid_text, sizeof(identity.uuid_text));
        ds_accel__sanitize(identity.pci_address, sizeof(identity.pci_address));
        if ((identity.uuid_text[0] != '\0' && strcasecmp(identity.uuid_text, name) == 0) ||
            ds_accel__pci_is_same(identity.pci_address, name)) {
            index = i;
            found++;
        }
    }
    if (found > 1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%u devices of %s have the name \"%s\": use an index or a UUID",
                               found, candidate->name, name);
    }
    if (found == 0) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "%s has no device \"%s\": expected an index below %u, \"%s:N\", a "
                               "UUID or a PCI address",
                               candidate->name, name, context->device_count, candidate->name);
    }
    *device_index_out = index;
    return DS_ACCEL_OK;
}

int32_t ds_accel_device_find(ds_accel_t *context, const char *name, uint32_t *device_index_out)
{
    struct ds_accel__candidate *candidate = NULL;
    uint64_t index;
    int32_t status =
        ds_accel__chosen_get(context, name != NULL ? device_index_out : NULL, &candidate);

    if (candidate == NULL) {
        return status;
    }
    if (strcmp(name, candidate->name) == 0) {
        return ds_accel_current_device(context, device_index_out);
    }
    if (parse_index(candidate->name, name, &index) && index < context->device_count) {
        *device_index_out = (uint32_t)index;
        return DS_ACCEL_OK;
    }
    return find_by_identity(context, candidate, name, device_index_out);
}

int32_t ds_accel_device_identity(ds_accel_t *context, uint32_t device_index,
                                 struct ds_accel_device_identity *identity_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = ds_accel__chosen_get(context, identity_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    status = ds_accel__device_index_check(context, candidate, device_index);
    if (status < 0) {
        return status;
    }
    status =
        candidate->table.device_identity(candidate->instance, device_index, identity_out, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* ---- the current device --------------------------------------------------------------------- */

/* For runtimes without a current device: the index of the device that the thread last made current,
 * and the id of the context to which the device belongs. */
static _Thread_local struct {
    uint64_t context_id;
    uint32_t device_index;
} current;

int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = ds_accel__chosen_get(context, device_index_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    status = candidate->table.device_get_current(candidate->instance, device_index_out, &error);
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        *device_index_out = current.context_id == context->id ? current.device_index : 0;
        return DS_ACCEL_OK;
    }
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

void ds_accel__current_device_keep(const ds_accel_t *context, uint32_t device_index)
{
    current.context_id = context->id;
    current.device_index = device_index;
}
