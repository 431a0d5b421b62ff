/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Functions that check their arguments and call the plugin: profiler ranges, telemetry, links,
 * peers, and memory and events shared with other processes.
 */
#include "base/text.h"
#include "host/context.h"
#include "runtime/handle.h"

static int32_t finish(int32_t status, const struct ds_accel_error *error)
{
    return status < 0 ? ds_accel__fail(status, error) : DS_ACCEL_OK;
}

/* ---- profiler ranges ------------------------------------------------------------------------ */

/* Without a profiler these calls do nothing and succeed, so that programs need not check whether
 * the vendor has one. */
static int32_t finish_range(int32_t status, const struct ds_accel_error *error)
{
    return status == DS_ACCEL_ERR_UNSUPPORTED ? DS_ACCEL_OK : finish(status, error);
}

int32_t ds_accel_range_push(ds_accel_t *context, const char *message, const char *domain,
                            const char *category)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = ds_accel_instance(context, &table, &instance);

    if (status < 0) {
        return status;
    }
    if (message == NULL) {
        return ds_accel__refuse("range_push", "message", NULL);
    }
    return finish_range(table->range_push(instance, message, domain, category, &error), &error);
}

int32_t ds_accel_range_pop(ds_accel_t *context, const char *domain)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = ds_accel_instance(context, &table, &instance);

    return status < 0 ? status : finish_range(table->range_pop(instance, domain, &error), &error);
}

int32_t ds_accel_profiler_start(ds_accel_t *context)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = ds_accel_instance(context, &table, &instance);

    return status < 0 ? status : finish_range(table->profiler_start(instance, &error), &error);
}

int32_t ds_accel_profiler_stop(ds_accel_t *context)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = ds_accel_instance(context, &table, &instance);

    return status < 0 ? status : finish_range(table->profiler_stop(instance, &error), &error);
}

/* ---- telemetry and links -------------------------------------------------------------------- */

/* Check the output pointer and the index of a query about a device, which need not be open, and
 * return the plugin's functions and instance. */
static int32_t get_table(ds_accel_t *context, uint32_t device_index, const char *call,
                         const void *out, const struct ds_accel_plugin **table_out,
                         ds_accel_plugin_instance_t **instance_out)
{
    int32_t status = ds_accel_instance(context, table_out, instance_out);

    if (status < 0) {
        return status;
    }
    if (out == NULL) {
        return ds_accel__refuse(call, "output", NULL);
    }
    if (device_index >= context->device_count) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: device index %u; %s has %u", call,
                               device_index, ds_accel_name(context), context->device_count);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_telemetry(ds_accel_t *context, uint32_t device_index,
                           struct ds_accel_telemetry *telemetry_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status =
        get_table(context, device_index, "telemetry", telemetry_out, &table, &instance);

    return status < 0 ? status
                      : finish(table->telemetry_get(instance, device_index, telemetry_out, &error),
                               &error);
}

/* Check the array that a plugin is to fill: capacity is 0, or the array is not NULL and the stride
 * is large enough. */
static int32_t check_array(const void *array, uint32_t stride_bytes, uint32_t capacity,
                           const char *call)
{
    if (capacity > 0 && (array == NULL || stride_bytes < sizeof(uint32_t))) {
        return array == NULL
                   ? ds_accel__refuse(call, "array", NULL)
                   : ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: elements are %u bytes apart", call,
                                     stride_bytes);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_telemetry_processes(ds_accel_t *context, uint32_t device_index,
                                     struct ds_accel_process *processes, uint32_t stride_bytes,
                                     uint32_t capacity, uint32_t *count_out)
{
    const char *call = "telemetry_processes";
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = get_table(context, device_index, call, count_out, &table, &instance);

    status = status < 0 ? status : check_array(processes, stride_bytes, capacity, call);
    return status < 0
               ? status
               : finish(table->telemetry_processes(instance, device_index, processes, stride_bytes,
                                                   capacity, count_out, &error),
                        &error);
}

int32_t ds_accel_device_links(ds_accel_t *context, uint32_t device_index,
                              struct ds_accel_link *links, uint32_t stride_bytes, uint32_t capacity,
                              uint32_t *count_out)
{
    const char *call = "device_links";
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    int32_t status = get_table(context, device_index, call, count_out, &table, &instance);

    status = status < 0 ? status : check_array(links, stride_bytes, capacity, call);
    return status < 0 ? status
                      : finish(table->links_get(instance, device_index, links, stride_bytes,
                                                capacity, count_out, &error),
                               &error);
}

/* ---- peers ---------------------------------------------------------------------------------- */

static int32_t check_pair(ds_accel_device_t *device, ds_accel_device_t *peer, const char *call)
{
    if (ds_accel__device_check(device, call) == NULL ||
        ds_accel__device_check(peer, call) == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (device->table != peer->table) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: the devices are not of one context",
                               call);
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel_peer_can_access(ds_accel_device_t *device, ds_accel_device_t *peer,
                                 uint32_t *can_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check_pair(device, peer, "peer_can_access");

    if (status >= 0 && can_out == NULL) {
        return ds_accel__refuse("peer_can_access", "output", NULL);
    }
    return status < 0 ? status
                      : finish(device->table->peer_can_access(device->handle, peer->handle, can_out,
                                                              &error),
                               &error);
}

int32_t ds_accel_peer_enable(ds_accel_device_t *device, ds_accel_device_t *peer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check_pair(device, peer, "peer_enable");

    return status < 0
               ? status
               : finish(device->table->peer_enable(device->handle, peer->handle, &error), &error);
}

int32_t ds_accel_peer_disable(ds_accel_device_t *device, ds_accel_device_t *peer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check_pair(device, peer, "peer_disable");

    return status < 0
               ? status
               : finish(device->table->peer_disable(device->handle, peer->handle, &error), &error);
}

/* ---- memory and events of other processes --------------------------------------------------- */

static int32_t check(ds_accel_device_t *device, const void *given, const char *what,
                     const char *call)
{
    if (ds_accel__device_check(device, call) == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    return given == NULL ? ds_accel__refuse(call, what, NULL) : DS_ACCEL_OK;
}

int32_t ds_accel_ipc_memory_export(ds_accel_device_t *device, void *pointer, void *handle,
                                   uint32_t handle_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, handle, "output", "ipc_memory_export");

    if (status >= 0 && pointer == NULL) {
        return ds_accel__refuse("ipc_memory_export", "pointer", NULL);
    }
    return status < 0 ? status
                      : finish(device->table->ipc_memory_export(device->handle, pointer, handle,
                                                                handle_bytes, &error),
                               &error);
}

int32_t ds_accel_ipc_memory_unexport(ds_accel_device_t *device, const void *handle,
                                     uint32_t handle_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, handle, "handle", "ipc_memory_unexport");

    return status < 0 ? status
                      : finish(device->table->ipc_memory_unexport(device->handle, handle,
                                                                  handle_bytes, &error),
                               &error);
}

int32_t ds_accel_ipc_memory_open(ds_accel_device_t *device, const void *handle,
                                 uint32_t handle_bytes, void **pointer_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, handle, "handle", "ipc_memory_open");

    if (status >= 0 && pointer_out == NULL) {
        return ds_accel__refuse("ipc_memory_open", "output", NULL);
    }
    return status < 0 ? status
                      : finish(device->table->ipc_memory_open(device->handle, handle, handle_bytes,
                                                              0, pointer_out, &error),
                               &error);
}

int32_t ds_accel_ipc_memory_close(ds_accel_device_t *device, void *pointer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, pointer, "pointer", "ipc_memory_close");

    return status < 0
               ? status
               : finish(device->table->ipc_memory_close(device->handle, pointer, &error), &error);
}

int32_t ds_accel_ipc_event_export(ds_accel_event_t *event, void *handle, uint32_t handle_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (!ds_accel__handle_is_live(event)) {
        return ds_accel__refuse("ipc_event_export", "event", event);
    }
    if (handle == NULL) {
        return ds_accel__refuse("ipc_event_export", "output", NULL);
    }
    return finish(event->table->ipc_event_export(event->handle, handle, handle_bytes, &error),
                  &error);
}

int32_t ds_accel_ipc_event_open(ds_accel_device_t *device, const void *handle,
                                uint32_t handle_bytes, ds_accel_event_t **event_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t *theirs = NULL;
    struct ds_accel__event *event;
    int32_t status = check(device, handle, "handle", "ipc_event_open");

    if (status >= 0 && event_out == NULL) {
        return ds_accel__refuse("ipc_event_open", "output", NULL);
    }
    if (status < 0) {
        return status;
    }
    status = device->table->ipc_event_open(device->handle, handle, handle_bytes, &theirs, &error);
    if (status == DS_ACCEL_OK && theirs == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (status != DS_ACCEL_OK) {
        return ds_accel__fail(status > 0 ? DS_ACCEL_ERR_ABI : status, &error);
    }
    event = ds_accel__handle_take(DS_ACCEL__HANDLE_EVENT, (struct ds_accel__device *)device);
    if (event == NULL) {
        device->table->event_destroy(theirs);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    event->abi.table = device->table;
    event->abi.handle = theirs;
    ds_accel__child_add(&event->child);
    *event_out = &event->abi;
    return DS_ACCEL_OK;
}

int32_t ds_accel_dmabuf_export(ds_accel_device_t *device, void *pointer, uint64_t size_bytes,
                               int32_t *fd_out, uint64_t *offset_bytes_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, pointer, "pointer", "dmabuf_export");

    if (status >= 0 && (fd_out == NULL || offset_bytes_out == NULL)) {
        return ds_accel__refuse("dmabuf_export", "output", NULL);
    }
    return status < 0 ? status
                      : finish(device->table->dmabuf_export(device->handle, pointer, size_bytes, 0,
                                                            fd_out, offset_bytes_out, &error),
                               &error);
}

int32_t ds_accel_dmabuf_import(ds_accel_device_t *device, int32_t fd, uint64_t offset_bytes,
                               uint64_t size_bytes, void **pointer_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, pointer_out, "output", "dmabuf_import");

    return status < 0 ? status
                      : finish(device->table->dmabuf_import(device->handle, fd, offset_bytes,
                                                            size_bytes, pointer_out, &error),
                               &error);
}

int32_t ds_accel_dmabuf_release(ds_accel_device_t *device, void *pointer)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = check(device, pointer, "pointer", "dmabuf_release");

    return status < 0
               ? status
               : finish(device->table->dmabuf_release(device->handle, pointer, &error), &error);
}
