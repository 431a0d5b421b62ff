/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Opening and closing devices of the chosen accelerator, and the out-of-line copies of the inline
 * calls. device_find.c finds devices by name and index; device_check.c has the checks that other
 * calls make first.
 *
 * A device has a single handle, however often it is opened. Streams, memory and random numbers
 * therefore belong to the device and not to an opening.
 */
#include "base/text.h"
#include "host/context.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/facts.h"
#include "runtime/handle.h"
#include "runtime/rng.h"

#include <assert.h>
#include <stdlib.h>

/* Out-of-line copies for callers that cannot inline: other languages, and -O0. */
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
    ds_accel__current_device_keep(context, device_index);
    return DS_ACCEL_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Open the plugin's device and create the resources that exist until the last close. */
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

/* Destroy the device's allocator and release its memory. The caller then destroys the device's
 * streams, which have no memory left. */
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

/* Destroy the children and close the device. The order of destruction follows from the references:
 * generators, timers and graphs refer to events and memory; events refer to streams; streams and
 * memory refer to the device. */
static void stop(struct ds_accel__device *device)
{
    static const enum ds_accel__handle_kind order[] = {
        DS_ACCEL__HANDLE_RNG,  DS_ACCEL__HANDLE_TIMER, DS_ACCEL__HANDLE_GRAPH,
        DS_ACCEL__HANDLE_POOL, DS_ACCEL__HANDLE_EVENT, DS_ACCEL__HANDLE_STREAM};
    struct ds_accel__child *child;

    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
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
    assert(device->children == NULL); /* order lists every kind of child */
    ds_accel__pinned_detach(device);
    ds_accel__pinned_close(device);
    device->candidate->table.device_close(device->abi.handle);
    pthread_mutex_destroy(&device->lock);
}

/* Check that a device that is already open is not lost. */
static int32_t check_health(struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = device->abi.table->device_health(device->abi.handle, &error);

    return status == DS_ACCEL_ERR_DEVICE_LOST ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

/* Open a device, or count one more opening. The caller holds context->device_lock. */
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
    assert(device->index == device_index && device->context == context);
    device->open_count++;
    *device_out = device;
    return DS_ACCEL_OK;
}

static int32_t open_device(ds_accel_t *context, uint32_t device_index, bool is_for_context,
                           ds_accel_device_t **device_out)
{
    struct ds_accel__candidate *candidate = NULL;
    struct ds_accel__device *device = NULL;
    int32_t status = ds_accel__chosen_get(context, device_out, &candidate);

    if (candidate == NULL) {
        return status;
    }
    /* fail if a host task makes this call: for a device that is already open, no plugin call
     * follows in which layer validate would check this */
    status = ds_accel__task_check();
    if (status < 0) {
        return status;
    }
    if (context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: device %u of %s cannot be opened",
                               device_index, candidate->name);
    }
    status = ds_accel__device_index_check(context, candidate, device_index);
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

/* Close the device if neither an opening nor a tensor storage keeps it open any more. The caller
 * holds context->device_lock. */
static void close_unheld(struct ds_accel__device *device)
{
    if (device->open_count == 0 && device->storage_count == 0) {
        ds_accel_t *context = device->context;

        assert(context->devices[device->index] == device);
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

    /* A forked child never closes an inherited device, and another thread of the parent may have
     * held the lock. */
    if (!device->candidate->watch.is_forked) {
        pthread_mutex_lock(&context->device_lock);
        assert(device->storage_count > 0);
        device->storage_count--;
        close_unheld(device);
        pthread_mutex_unlock(&context->device_lock);
    }
    if (__atomic_sub_fetch(&context->storage_count, 1, __ATOMIC_ACQ_REL) < 0) {
        ds_accel__context_end(context);
    }
}

/* Closing a device that is already closed, or that a forked child inherited, has no effect. The
 * same applies if only ds_accel_device_get() has opened the device. */
void ds_accel_device_close(ds_accel_device_t *device)
{
    struct ds_accel__device *ours = (struct ds_accel__device *)device;

    if (ds_accel__handle_is_live(device) && ds_accel__device_lets_end(ours, "device_close")) {
        ds_accel_t *context = ours->context;

        pthread_mutex_lock(&context->device_lock);
        /* The opening that ds_accel_device_get() made belongs to the context: the caller cannot
         * close it. */
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
            /* the program's later closes of its remaining openings are ignored */
            device->open_count = 0;
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

/* ---- hooks of the host ---------------------------------------------------------------------- */

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
