/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Devices of the chosen accelerator: opening, naming, which one is current; and the out-of-line
 * copies of the inline calls.
 *
 * A device is one handle however often it is opened, so that streams, memory and random numbers
 * are the device's and not an opening's.
 */
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/facts.h"
#include "runtime/handle.h"
#include "runtime/rng.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* For callers that cannot inline: other languages, and -O0. */
extern inline ds_accel_t *ds_accel_get(void);
extern inline const struct ds_accel_plugin *ds_accel_device_table(const ds_accel_device_t *device);
extern inline ds_accel_plugin_device_t *ds_accel_device_handle(const ds_accel_device_t *device);
extern inline int32_t ds_accel_device_synchronize(ds_accel_device_t *device);
extern inline int32_t ds_accel_device_synchronize_for(ds_accel_device_t *device,
                                                      uint64_t timeout_ns);
extern inline int32_t ds_accel_device_health(ds_accel_device_t *device);
extern inline int32_t ds_accel_device_info(ds_accel_device_t *device,
                                           struct ds_accel_device_info *info_out);
extern inline int32_t ds_accel_device_memory(ds_accel_device_t *device,
                                             struct ds_accel_memory_info *info_out);

/* The chosen candidate of a call that will write to out. */
static int32_t get_chosen(const ds_accel_t *context, const void *out,
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

static int32_t check_index(const ds_accel_t *context, const struct ds_accel__candidate *candidate,
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
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = get_chosen(context, count_out, &candidate);

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
    int32_t status = get_chosen(context, name, &candidate);
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
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the name needs %d bytes, there are %zu",
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

/* "1", or "cuda:1" for the backend cuda. */
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

/* "65:00.0" names the same place as "0000:65:00.0". */
static bool same_pci(const char *address, const char *name)
{
    return address[0] != '\0' &&
           (strcasecmp(address, name) == 0 ||
            (strncmp(address, "0000:", 5) == 0 && strcasecmp(address + 5, name) == 0));
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
            same_pci(identity.pci_address, name)) {
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
    int32_t status = get_chosen(context, name != NULL ? device_index_out : NULL, &candidate);

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
    int32_t status = get_chosen(context, identity_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    status = check_index(context, candidate, device_index);
    if (status < 0) {
        return status;
    }
    status =
        candidate->table.device_identity(candidate->instance, device_index, identity_out, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* ---- the current device --------------------------------------------------------------------- */

/* For runtimes that keep none: the last one set, of the context that it was set for. */
static _Thread_local struct {
    uint64_t context_id;
    uint32_t device_index;
} current;

int32_t ds_accel_current_device(ds_accel_t *context, uint32_t *device_index_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__candidate *candidate = NULL;
    int32_t status = get_chosen(context, device_index_out, &candidate);

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

int32_t ds_accel_set_device(ds_accel_t *context, uint32_t device_index)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_device_t *device = NULL;
    int32_t status = ds_accel_device_get(context, device_index, &device);

    if (device == NULL) {
        return status;
    }
    status = device->table->device_set_current(device->handle, &error);
    if (status < 0 && status != DS_ACCEL_ERR_UNSUPPORTED) {
        return ds_accel__fail(status, &error);
    }
    current.context_id = context->id;
    current.device_index = device_index;
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

struct ds_accel__device *ds_accel__device_check(ds_accel_device_t *device, const char *call)
{
    if (!ds_accel__handle_is_live(device)) {
        ds_accel__refuse(call, "device", device);
        return NULL;
    }
    return (struct ds_accel__device *)device;
}

/* Apart, so that calls that succeed do not clear an error first. */
static __attribute__((noinline)) int32_t refuse_forked(const struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    return ds_accel__fail(device->abi.table->device_health(device->abi.handle, &error), &error);
}

int32_t ds_accel__task_check(void)
{
    if (__builtin_expect(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) != 0, 0) &&
        ds_accel__layers_in_task()) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "a host task, which may only note accesses, made this call");
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__device_fork_check(const struct ds_accel__device *device)
{
    int32_t status = ds_accel__task_check();

    if (status < 0) {
        return status;
    }
    return device->candidate->watch.is_forked ? refuse_forked(device) : DS_ACCEL_OK;
}

bool ds_accel__device_lets_end(const struct ds_accel__device *device, const char *call)
{
    return !device->candidate->watch.is_forked && !ds_accel__end_is_refused(device->context, call);
}

bool ds_accel__device_is_host_accessible(struct ds_accel__device *device)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint8_t known = __atomic_load_n(&device->host_access, __ATOMIC_RELAXED);

    if (known == 0 && device->abi.table->device_info(device->abi.handle, &info, &error) >= 0) {
        known = (info.flags & DS_ACCEL_FLAG_HOST_ACCESSIBLE) != 0 ? 1 : 2;
        __atomic_store_n(&device->host_access, known, __ATOMIC_RELAXED);
    }
    return known == 1;
}

bool ds_accel__device_pointer_info(struct ds_accel__device *device, const void *pointer,
                                   struct ds_accel_pointer_info *info_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    int32_t status = device->abi.table->mem_pointer_info(
        device->candidate->instance, device->abi.handle, pointer, &info, &error);

    *info_out = info;
    return status >= 0;
}

/* What is made when it is opened first and goes when it is closed last. */
static int32_t start(struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table = &device->candidate->table;
    int32_t status =
        table->device_open(device->candidate->instance, device->index, &device->abi.handle, &error);

    if (status == DS_ACCEL_OK && device->abi.handle == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (status != DS_ACCEL_OK) {
        return ds_accel__fail(status > 0 ? DS_ACCEL_ERR_ABI : status, &error);
    }
    device->abi.table = table;
    pthread_mutex_init(&device->lock, NULL);
    ds_accel__pinned_attach(device);
    return DS_ACCEL_OK;
}

/* Give all memory back: streams that are destroyed later have none. */
static void stop_memory(struct ds_accel__device *device)
{
    struct ds_accel__allocator *allocator = device->allocator;
    uint64_t live_count;

    __atomic_store_n(&device->allocator, NULL, __ATOMIC_RELEASE);
    live_count = ds_accel__allocator_destroy(allocator);
    if (live_count > 0) {
        ds_accel__log(&device->context->log, "allocator", DS_ACCEL_LOG_DEBUG,
                      "device %u is closed with %llu blocks that were not freed", device->index,
                      (unsigned long long)live_count);
    }
}

/* Generators, timers and graphs hold events and memory, events streams, streams and memory the
 * device. */
static void stop(struct ds_accel__device *device)
{
    static const enum ds_accel__handle_kind order[] = {
        DS_ACCEL__HANDLE_RNG,  DS_ACCEL__HANDLE_TIMER, DS_ACCEL__HANDLE_GRAPH,
        DS_ACCEL__HANDLE_POOL, DS_ACCEL__HANDLE_EVENT, DS_ACCEL__HANDLE_STREAM};
    struct ds_accel__child *child;

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(order); i++) {
        if (order[i] == DS_ACCEL__HANDLE_STREAM) {
            stop_memory(device);
        }
        while ((child = ds_accel__child_first(device, order[i])) != NULL) {
            void *handle = ds_accel__child_handle(child);

            switch (order[i]) {
            case DS_ACCEL__HANDLE_TIMER:
                ds_accel__timer_destroy(handle);
                break;
            case DS_ACCEL__HANDLE_RNG:
                ds_accel__rng_destroy(handle);
                break;
            case DS_ACCEL__HANDLE_GRAPH:
                ds_accel__graph_destroy(handle);
                break;
            case DS_ACCEL__HANDLE_POOL:
                ds_accel__pool_destroy(handle);
                break;
            case DS_ACCEL__HANDLE_EVENT:
                ds_accel__event_destroy(handle);
                break;
            default:
                ds_accel__stream_destroy(handle);
            }
        }
    }
    ds_accel__pinned_detach(device);
    ds_accel__pinned_close(device);
    device->candidate->table.device_close(device->abi.handle);
    pthread_mutex_destroy(&device->lock);
}

/* One that is open already is given again, but not one that was lost meanwhile. */
static int32_t check_health(struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = device->abi.table->device_health(device->abi.handle, &error);

    return status == DS_ACCEL_ERR_DEVICE_LOST ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* device_lock held. */
static int32_t open_locked(ds_accel_t *context, struct ds_accel__candidate *candidate,
                           uint32_t device_index, struct ds_accel__device **device_out)
{
    struct ds_accel__device *device;
    int32_t status;

    if (context->devices == NULL) {
        context->devices = calloc(context->device_count, sizeof(*context->devices));
        if (context->devices == NULL) {
            return ds_accel__no_memory();
        }
    }
    device = context->devices[device_index];
    if (device == NULL) {
        device = ds_accel__handle_take(DS_ACCEL__HANDLE_DEVICE, NULL);
        if (device == NULL) {
            return DS_ACCEL_ERR_NO_MEMORY;
        }
        device->context = context;
        device->candidate = candidate;
        device->index = device_index;
        ds_accel__context_change_begin(context);
        status = start(device);
        ds_accel__context_change_end(context);
        if (status < 0) {
            ds_accel__handle_put(DS_ACCEL__HANDLE_DEVICE, device);
            return status;
        }
        context->devices[device_index] = device;
    }
    device->open_count++;
    *device_out = device;
    return DS_ACCEL_OK;
}

static int32_t open_device(ds_accel_t *context, uint32_t device_index, bool is_for_context,
                           ds_accel_device_t **device_out)
{
    struct ds_accel__candidate *candidate = NULL;
    struct ds_accel__device *device = NULL;
    int32_t status = get_chosen(context, device_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    status = ds_accel__task_check(); /* also where the device is open, and no plugin is asked */
    if (status < 0) {
        return status;
    }
    if (context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: device %u of %s cannot be opened",
                               device_index, candidate->name);
    }
    status = check_index(context, candidate, device_index);
    if (status < 0) {
        return status;
    }
    if (candidate->watch.is_forked) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        uint32_t count;

        return ds_accel__fail(candidate->table.device_count(candidate->instance, &count, &error),
                              &error);
    }
    pthread_mutex_lock(&context->device_lock);
    status = open_locked(context, candidate, device_index, &device);
    if (device != NULL && !is_for_context && device->open_count > 1) {
        status = check_health(device);
        device->open_count -= status < 0;
    } else if (device != NULL && is_for_context) {
        device->open_count -= device->has_reference;
        device->has_reference = true;
    }
    pthread_mutex_unlock(&context->device_lock);
    if (status >= 0) {
        *device_out = &device->abi;
    }
    return status;
}

int32_t ds_accel_device_open(ds_accel_t *context, uint32_t device_index,
                             ds_accel_device_t **device_out)
{
    return open_device(context, device_index, false, device_out);
}

int32_t ds_accel_device_get(ds_accel_t *context, uint32_t device_index,
                            ds_accel_device_t **device_out)
{
    return open_device(context, device_index, true, device_out);
}

/* device_lock held: close it if nothing holds it open any more. */
static void close_unheld(struct ds_accel__device *device)
{
    if (device->open_count == 0 && device->storage_count == 0) {
        ds_accel_t *context = device->context;

        ds_accel__context_change_begin(context);
        context->devices[device->index] = NULL;
        stop(device);
        ds_accel__handle_put(DS_ACCEL__HANDLE_DEVICE, device);
        ds_accel__context_change_end(context);
    }
}

void ds_accel__device_hold(struct ds_accel__device *device)
{
    pthread_mutex_lock(&device->context->device_lock);
    device->storage_count++;
    pthread_mutex_unlock(&device->context->device_lock);
    __atomic_add_fetch(&device->context->storage_count, 1, __ATOMIC_ACQ_REL);
}

void ds_accel__device_release(struct ds_accel__device *device)
{
    ds_accel_t *context = device->context;

    /* What a child inherited is closed by nobody, and another thread may have had the lock. */
    if (!device->candidate->watch.is_forked) {
        pthread_mutex_lock(&context->device_lock);
        device->storage_count--;
        close_unheld(device);
        pthread_mutex_unlock(&context->device_lock);
    }
    if (__atomic_sub_fetch(&context->storage_count, 1, __ATOMIC_ACQ_REL) < 0) {
        ds_accel__context_end(context);
    }
}

/* One that is closed already, or that a child inherited, is left alone. */
void ds_accel_device_close(ds_accel_device_t *device)
{
    struct ds_accel__device *ours = (struct ds_accel__device *)device;

    if (ds_accel__handle_is_live(device) && ds_accel__device_lets_end(ours, "device_close")) {
        ds_accel_t *context = ours->context;

        pthread_mutex_lock(&context->device_lock);
        /* What the context holds open is not the caller's to close. */
        if (ds_accel__handle_is_live(device) && ours->open_count > ours->has_reference) {
            ours->open_count--;
            close_unheld(ours);
        }
        pthread_mutex_unlock(&context->device_lock);
    }
}

void ds_accel__devices_close(ds_accel_t *context)
{
    const struct ds_accel__candidate *candidate = context->selected;

    for (uint32_t i = 0; i < context->device_count && context->devices != NULL; i++) {
        struct ds_accel__device *device = context->devices[i];

        if (device != NULL && !candidate->watch.is_forked) {
            device->open_count = 0; /* whoever else has it open closes it too late */
            close_unheld(device);
        }
    }
    free(context->devices);
    context->devices = NULL;
}

uint32_t ds_accel_device_index(const ds_accel_device_t *device)
{
    return ds_accel__handle_is_live(device) ? ((const struct ds_accel__device *)device)->index
                                            : UINT32_MAX;
}

/* ---- the host's events ---------------------------------------------------------------------- */

static void end_context(ds_accel_t *context, bool is_torn)
{
    ds_accel__lazy_drop(context);
    if (!is_torn) {
        ds_accel__devices_close(context);
        ds_accel__known_clear(context);
    }
}

static const struct ds_accel__runtime_hooks hooks = {
    .started = ds_accel__lazy_run,
    .ended = end_context,
};

__attribute__((constructor)) static void set_hooks(void)
{
    ds_accel__runtime_hooks = &hooks;
}
