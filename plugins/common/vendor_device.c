/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices: identity, opening and closing, the current device, waiting, health, peers, data
   types. */
#include "vendor_frame.h"

/* ---- the frames ----------------------------------------------------------------------------- */

void vendor_devices_destroy(ds_accel_plugin_instance_t *instance)
{
    for (uint32_t i = 0; instance->devices != NULL && i < instance->device_count; i++) {
        ds_accel_plugin_device_t *device = &instance->devices[i];
        struct vendor_device *frame = device->frame;

        vendor_usage_destroy(device->usage);
        if (frame != NULL) {
            pthread_mutex_destroy(&frame->lock);
            pthread_mutex_destroy(&frame->task_lock);
            pthread_cond_destroy(&frame->drained);
            free(frame);
        }
    }
    free(instance->devices);
    instance->devices = NULL;
}

int vendor_devices_create(ds_accel_plugin_instance_t *instance)
{
    instance->devices = calloc(instance->device_count, sizeof(*instance->devices));
    if (instance->devices == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < instance->device_count; i++) {
        ds_accel_plugin_device_t *device = &instance->devices[i];
        struct vendor_device *frame = calloc(1, sizeof(*frame));

        device->instance = instance;
        device->index = i;
        device->frame = frame;
        device->usage = vendor_usage_create();
        if (frame == NULL || device->usage == NULL) {
            free(frame);
            device->frame = NULL;
            vendor_devices_destroy(instance);
            return -1;
        }
        pthread_mutex_init(&frame->lock, NULL);
        pthread_mutex_init(&frame->task_lock, NULL);
        pthread_cond_init(&frame->drained, NULL);
    }
    return 0;
}

/* ---- identity ------------------------------------------------------------------------------- */

/* Fill the facts of a PCI device that the backend did not fill, from sysfs. */
static void add_sysfs(const ds_accel_plugin_instance_t *instance,
                      struct ds_accel_device_identity *identity)
{
    int32_t node;

    if (identity->pci_address[0] == '\0') {
        return;
    }
    if ((identity->valid & DS_ACCEL_IDENTITY_NUMA_NODE) == 0) {
        node = vendor_pci_numa_node(instance->host, identity->pci_address);
        if (node >= 0) {
            identity->valid |= DS_ACCEL_IDENTITY_NUMA_NODE;
            identity->numa_node = (uint32_t)node;
        }
    }
    if (identity->power_state == DS_ACCEL_POWER_UNKNOWN) {
        identity->power_state = vendor_pci_power_state(instance->host, identity->pci_address);
    }
    if (identity->node_path[0] == '\0' && vendor_backend.pattern != NULL) {
        vendor_pci_node(instance->host, vendor_backend.pattern, identity->pci_address,
                        identity->node_path, sizeof(identity->node_path));
    }
}

int32_t vendor_device_identify(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    struct ds_accel_device_identity identity;
    int32_t status = DS_ACCEL_OK;

    memset(&identity, 0, sizeof(identity));
    identity.struct_size = sizeof(identity);
    identity.device_index = device->index;
    if (vendor_backend.identify != NULL) {
        status = vendor_backend.identify(device, &identity, error);
    }
    if (status == DS_ACCEL_OK) {
        device->identity = identity;
        frame->is_identified = 1;
    }
    return status;
}

/* Identify the device once; the facts do not change. A failed identification is repeated. */
static int32_t ensure_identity(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&device->instance->lock);
    if (!frame->is_identified) {
        status = vendor_device_identify(device, error);
    }
    pthread_mutex_unlock(&device->instance->lock);
    return status;
}

static int32_t vendor_device_identity(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                      struct ds_accel_device_identity *identity_out,
                                      struct ds_accel_error *error)
{
    struct ds_accel_device_identity identity;
    int32_t status = vendor_check_index(instance, device_index, "device_identity", error);

    if (status < 0) {
        return status;
    }
    if (identity_out == NULL) {
        return vendor_null(error, "device_identity", "identity_out");
    }
    status = ensure_identity(&instance->devices[device_index], error);
    if (status < 0) {
        return status;
    }
    identity = instance->devices[device_index].identity;
    add_sysfs(instance, &identity);
    ds_accel_write(identity_out, &identity, sizeof(identity));
    return DS_ACCEL_OK;
}

/* ---- waiting for all work ------------------------------------------------------------------- */

static int32_t ask_streams(void *subject, struct ds_accel_error *error)
{
    return vendor_streams_query(subject, error);
}

/* Record an event behind all work of the device, unless this process captures, and wait for it.
   Return NOT_READY if it captures, ERR_UNSUPPORTED if there is no such event. */
static int32_t wait_by_mark(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    void *event = NULL;
    int32_t status = DS_ACCEL_OK;

    vendor_captures_lock();
    if (vendor_capture_count() != 0) {
        status = DS_ACCEL_NOT_READY;
    } else {
        VENDOR_CALL(device, &ignored, status, vendor_backend.device_mark(device, &event, &ignored));
    }
    vendor_captures_unlock();
    if (status < 0) {
        return DS_ACCEL_ERR_UNSUPPORTED;
    }
    if (status == DS_ACCEL_OK) {
        VENDOR_WORK(device, error, status, vendor_backend.event_synchronize(device, event, error));
    }
    return status;
}

/* Call device_synchronize(), unless this process captures: then return NOT_READY. If the process
   has captured before, wait for the plugin's streams first, so that the call is short, during which
   no capture can begin. */
static int32_t wait_by_call(ds_accel_plugin_device_t *device, const char *slot,
                            struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.device_wait_breaks_captures && vendor_capture_era() != 0) {
        status = vendor_poll(ask_streams, device, UINT64_MAX, slot, error);
    }
    if (status < 0) {
        return status;
    }
    vendor_waits_lock();
    if (vendor_backend.device_wait_breaks_captures && vendor_capture_count() != 0) {
        status = DS_ACCEL_NOT_READY;
    } else {
        VENDOR_CALL(device, error, status, vendor_backend.device_synchronize(device, error));
    }
    vendor_waits_unlock();
    return status;
}

int32_t vendor_device_wait(ds_accel_plugin_device_t *device, const char *slot, int *is_complete_out,
                           struct ds_accel_error *error)
{
    int32_t status = vendor_backend.device_mark != NULL ? wait_by_mark(device, error)
                                                        : DS_ACCEL_ERR_UNSUPPORTED;

    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        status = wait_by_call(device, slot, error);
    }
    *is_complete_out = status != DS_ACCEL_NOT_READY;
    return status != DS_ACCEL_NOT_READY ? status
                                        : vendor_poll(ask_streams, device, UINT64_MAX, slot, error);
}

/* Wait until the runtime has run the queued tasks: beside a capture, they may be on streams that
   vendor_device_wait() does not know. */
static int32_t wait_for_tasks(ds_accel_plugin_device_t *device)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    for (;;) {
        int is_complete = 0;
        int32_t status = vendor_device_wait(device, "device_close", &is_complete, &ignored);

        if (status < 0 || is_complete || !vendor_tasks_are_pending(device)) {
            return status;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- stopping ------------------------------------------------------------------------------- */

/*
 * A device stops once it has been closed as often as it was opened and its work is complete. While
 * a thread waits for the work, the device is "draining", and the thread releases instance->lock,
 * because host tasks may open and close devices, and other threads may open the device. A draining
 * device that is opened stays started. Each task stores the number of its opening, so that the
 * draining thread does not wait for tasks that were queued after a later opening.
 */

/* Is the device started, but no longer open? The caller holds instance->lock. */
static int is_to_stop(const ds_accel_plugin_device_t *device)
{
    const struct vendor_device *frame = device->frame;

    return frame->is_started && device->open_count == 0;
}

/* Wait until the tasks up to the given opening have run. Tasks of destroyed streams are
   included. First the device completes its work. Then tasks that the runtime did not call are run
   here with an error. But if the work succeeded and the device was opened again, the function
   returns without that: the runtime will call the tasks. The device is draining. */
static void finish_tasks(ds_accel_plugin_device_t *device, unsigned opening)
{
    int is_open = 0;
    int32_t status = vendor_is_lost(device) ? DS_ACCEL_ERR_DEVICE_LOST : DS_ACCEL_OK;

    if (status == DS_ACCEL_OK && vendor_tasks_are_pending(device) &&
        vendor_backend.device_synchronize != NULL) {
        status = wait_for_tasks(device);
    }
    if (status == DS_ACCEL_OK) {
        pthread_mutex_lock(&device->instance->lock);
        is_open = !is_to_stop(device); /* opened again: the runtime will call the tasks */
        pthread_mutex_unlock(&device->instance->lock);
    }
    if (!is_open) {
        vendor_tasks_abandon(device, opening, status < 0 ? status : DS_ACCEL_ERR_STATE);
        vendor_tasks_finish(device, opening);
    }
}

/* The log level for memory left at the close. A backend with device_stop() may rely on the close to
   free its memory, so that this is no warning. */
static uint32_t left_level(void)
{
    return vendor_backend.device_stop != NULL ? DS_ACCEL_LOG_DEBUG : DS_ACCEL_LOG_WARN;
}

/* Stop the device. The caller holds instance->lock. No task is left, because a task could wait for
   that lock. */
static void stop_device(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;
    int was_lost;
    uint64_t left_bytes = 0;
    uint32_t left;

    vendor_copiers_destroy(device);
    vendor_streams_destroy(device);
    vendor_stream_close_default(device);
    if (vendor_backend.device_stop != NULL) {
        vendor_backend.device_stop(device);
    }
    left = vendor_memory_free_all(device, &left_bytes);
    was_lost = vendor_is_lost(device);
    vendor_backend.device_close(device);
    vendor_tasks_destroy(device);
    device->native_context = 0;
    device->state = NULL;
    frame->is_started = 0;
    /* The program could not free the memory of a lost device, so no leak is reported. */
    if (left > 0 && !was_lost) {
        vendor_log(device->instance->host, left_level(),
                   "device %u closed with %u allocations left, %llu bytes", device->index, left,
                   (unsigned long long)left_bytes);
    }
}

/* Does the device have work left (backends with device_wait()) or host tasks left (other backends)?
   The caller holds instance->lock. */
static int has_work(ds_accel_plugin_device_t *device)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    return vendor_backend.device_wait != NULL
               ? vendor_backend.device_wait(device, 0, &ignored) == DS_ACCEL_ERR_TIMEOUT
               : vendor_tasks_are_left(device);
}

/* Wait for what has_work() reports. The caller holds instance->lock; the wait releases it. */
static void drain(ds_accel_plugin_device_t *device)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    struct vendor_device *frame = device->frame;
    unsigned opening = atomic_load(&frame->opening);

    frame->drainer_count++;
    pthread_mutex_unlock(&device->instance->lock);
    if (vendor_backend.device_wait != NULL) {
        vendor_backend.device_wait(device, UINT64_MAX, &ignored);
    } else {
        finish_tasks(device, opening);
    }
    pthread_mutex_lock(&device->instance->lock);
    frame->drainer_count--;
    pthread_cond_broadcast(&frame->drained);
}

/* Return once the device has stopped, or has been opened again during the wait. The caller holds
   instance->lock, which a wait releases. */
static void stop_if_closed(ds_accel_plugin_device_t *device)
{
    struct vendor_device *frame = device->frame;

    while (is_to_stop(device)) {
        if (has_work(device)) {
            drain(device);
        } else if (frame->drainer_count > 0) {
            pthread_cond_wait(&frame->drained, &device->instance->lock);
        } else {
            stop_device(device);
        }
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Prepare the backend's device_open(): identify the device if this was not done, fill the facts
   that the frame knows, and reset the lost mark, the usage counters and the priorities. The caller
   holds instance->lock. */
static int32_t prepare(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    struct ds_accel_device_info info;
    int32_t status = frame->is_identified || vendor_backend.identifies_late
                         ? DS_ACCEL_OK
                         : vendor_device_identify(device, error);

    if (status < 0) {
        return status;
    }
    memset(&info, 0, sizeof(info));
    info.struct_size = sizeof(info);
    info.device_index = device->index;
    info.allocation_align_bytes = vendor_backend.allocation_align_bytes;
    info.flags = device->instance->flags;
    info.flags_known = DS_ACCEL_FLAGS_ALL & ~(vendor_backend.flags & ~info.flags);
    info.total_memory_bytes = device->identity.total_memory_bytes;
    memcpy(info.name, device->identity.name, sizeof(info.name));
    device->info = info;
    atomic_store(&device->is_lost, 0);
    vendor_usage_reset(device->usage);
    frame->least_priority = 0;
    frame->greatest_priority = 0;
    return DS_ACCEL_OK;
}

static int32_t read_priorities(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    struct vendor_device *frame = device->frame;
    int32_t status = DS_ACCEL_OK;

    if (vendor_backend.stream_priority_range != NULL) {
        VENDOR_CALL(device, error, status,
                    vendor_backend.stream_priority_range(device, &frame->least_priority,
                                                         &frame->greatest_priority, error));
    }
    return status;
}

/* Start a device that is not started. The caller holds instance->lock. */
static int32_t start_device(ds_accel_plugin_device_t *device, uint64_t native_context,
                            struct ds_accel_error *error)
{
    int32_t status = prepare(device, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_backend.device_open(device, native_context, error);
    }
    if (status < 0) {
        return status;
    }
    device->info.device_index = device->index;
    device->info.flags &= device->instance->flags & device->info.flags_known;
    status = read_priorities(device, error);
    if (status == DS_ACCEL_OK) {
        status = vendor_stream_open_default(device, error);
    }
    if (status < 0) {
        vendor_backend.device_close(device);
        device->native_context = 0;
        device->state = NULL;
    }
    return status;
}

/*
 * Before an opening, stop a device that is started but no longer open. The stop is skipped if it
 * needs a wait, because a task of the device may wait for this thread, unless the device is lost or
 * the context differs: then the stop is required. On a thread that runs a host task nothing is
 * stopped, because the stop would wait for that task. The caller holds instance->lock.
 */
static void refresh(ds_accel_plugin_device_t *device, uint64_t native_context)
{
    const struct vendor_device *frame = device->frame;
    int must_stop = vendor_is_lost(device) ||
                    (native_context != 0 && native_context != device->native_context);

    if (vendor_tasks_run_here(device->instance) || !is_to_stop(device)) {
        return;
    }
    if (must_stop || (frame->drainer_count == 0 && !has_work(device))) {
        stop_if_closed(device);
    }
}

static int32_t open_device(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           uint64_t native_context, const char *slot,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    ds_accel_plugin_device_t *device;
    struct vendor_device *frame;
    int32_t status = vendor_check_index(instance, device_index, slot, error);

    if (status < 0) {
        return status;
    }
    if (device_out == NULL) {
        return vendor_null(error, slot, "device_out");
    }
    device = &instance->devices[device_index];
    frame = device->frame;
    pthread_mutex_lock(&instance->lock);
    refresh(device, native_context);
    if (!frame->is_started) {
        status = start_device(device, native_context, error);
        frame->is_started = status == DS_ACCEL_OK;
    } else if (native_context != 0 && native_context != device->native_context) {
        status = plugin_fail(error, DS_ACCEL_ERR_BUSY, "%s: device %u is open with another context",
                             slot, device_index);
    }
    if (status == DS_ACCEL_OK && device->open_count++ == 0) {
        atomic_fetch_add(&frame->opening, 1);
        vendor_usage_reopen(device->usage);
    }
    pthread_mutex_unlock(&instance->lock);
    if (status == DS_ACCEL_OK) {
        *device_out = device;
    }
    return status;
}

static int32_t vendor_device_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                  ds_accel_plugin_device_t **device_out,
                                  struct ds_accel_error *error)
{
    return open_device(instance, device_index, 0, "device_open", device_out, error);
}

static int32_t vendor_device_open_native(ds_accel_plugin_instance_t *instance,
                                         uint32_t device_index, uint64_t native_context,
                                         ds_accel_plugin_device_t **device_out,
                                         struct ds_accel_error *error)
{
    if (native_context == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "device_open_native: the context is 0");
    }
    return open_device(instance, device_index, native_context, "device_open_native", device_out,
                       error);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* If a host task makes the last close, the device does not stop here, because the task cannot wait
   for itself. It stops when it is next opened or closed, or when the instance is shut down. */
static void vendor_device_close(ds_accel_plugin_device_t *device)
{
    if (device == NULL) {
        return;
    }
    pthread_mutex_lock(&device->instance->lock);
    if (device->open_count > 0) {
        device->open_count--;
        if (device->open_count == 0 && !vendor_tasks_run_here(device->instance)) {
            stop_if_closed(device);
        }
    }
    pthread_mutex_unlock(&device->instance->lock);
}

/* Drain one device that must stop and has work. Returns 0 if there is no such device. If the
   backend has a device_stop(), devices that the program left open count as closed. The caller holds
   instance->lock. */
static int drain_any(ds_accel_plugin_instance_t *instance)
{
    for (uint32_t i = 0; i < instance->device_count; i++) {
        ds_accel_plugin_device_t *device = &instance->devices[i];

        if (vendor_backend.device_stop != NULL) {
            device->open_count = 0;
        }
        if (is_to_stop(device) && has_work(device)) {
            drain(device);
            return 1;
        }
    }
    return 0;
}

/* Drain all devices before any device stops, because tasks of one device may use another. */
void vendor_devices_stop(ds_accel_plugin_instance_t *instance)
{
    pthread_mutex_lock(&instance->lock);
    while (drain_any(instance)) {
    }
    for (uint32_t i = 0; i < instance->device_count; i++) {
        stop_if_closed(&instance->devices[i]);
    }
    pthread_mutex_unlock(&instance->lock);
}

static int32_t vendor_device_info(ds_accel_plugin_device_t *device,
                                  struct ds_accel_device_info *info_out,
                                  struct ds_accel_error *error)
{
    struct ds_accel_device_info info;
    int32_t status = DS_ACCEL_OK;

    if (device == NULL || info_out == NULL) {
        return vendor_null(error, "device_info", "the device or info_out");
    }
    info = device->info;
    if (vendor_backend.device_info != NULL) {
        status = vendor_backend.device_info(device, &info, error);
    }
    if (status == DS_ACCEL_OK) {
        ds_accel_write(info_out, &info, sizeof(info));
    }
    return status;
}

/* ---- the current device --------------------------------------------------------------------- */

static int32_t vendor_device_get_current(ds_accel_plugin_instance_t *instance,
                                         uint32_t *device_index_out, struct ds_accel_error *error)
{
    uint32_t index = UINT32_MAX;
    int32_t status = vendor_check_instance(instance, "device_get_current", error);

    if (status < 0) {
        return status;
    }
    if (device_index_out == NULL) {
        return vendor_null(error, "device_get_current", "device_index_out");
    }
    status = vendor_backend.get_current(instance, &index, error);
    if (status == DS_ACCEL_OK) {
        *device_index_out = index == UINT32_MAX ? 0 : index; /* UINT32_MAX: no device
                                                                was set, so 0 is current */
    }
    return status;
}

static int32_t vendor_device_set_current(ds_accel_plugin_device_t *device,
                                         struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "device_set_current", error);

    return status < 0 ? status : vendor_backend.set_current(device, error);
}

/* ---- waiting and health --------------------------------------------------------------------- */

static int32_t vendor_device_synchronize(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                         struct ds_accel_error *error)
{
    int is_complete;
    int32_t status;

    if (vendor_backend.device_wait != NULL) { /* such a backend's devices cannot be lost */
        return device != NULL ? vendor_backend.device_wait(device, timeout_ns, error)
                              : vendor_null(error, "device_synchronize", "the device");
    }
    status = vendor_check_device(device, "device_synchronize", error);
    if (status < 0) {
        if (status == DS_ACCEL_ERR_DEVICE_LOST) {
            vendor_tasks_settle(device, NULL, timeout_ns);
        }
        return status;
    }
    if (timeout_ns == UINT64_MAX && vendor_backend.device_synchronize != NULL) {
        status = vendor_device_wait(device, "device_synchronize", &is_complete, error);
        vendor_streams_reap(device);
    } else {
        status = vendor_poll(ask_streams, device, timeout_ns, "device_synchronize", error);
    }
    if (vendor_is_lost(device)) {
        vendor_tasks_abandon(device, VENDOR_ANY_OPENING, DS_ACCEL_ERR_DEVICE_LOST);
        vendor_tasks_settle(device, NULL, timeout_ns);
    }
    return status;
}

static int32_t vendor_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "device_health", error);

    if (status == DS_ACCEL_OK && vendor_backend.device_health != NULL) {
        VENDOR_CALL(device, error, status, vendor_backend.device_health(device, error));
    }
    return status;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static int32_t check_peers(ds_accel_plugin_device_t *device, const ds_accel_plugin_device_t *peer,
                           const char *slot, struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, slot, error);

    return status < 0 ? status : vendor_check_peer(device, peer, slot, error);
}

static int32_t vendor_peer_can_access(ds_accel_plugin_device_t *device,
                                      ds_accel_plugin_device_t *peer, uint32_t *can_out,
                                      struct ds_accel_error *error)
{
    const int denies = vendor_backend.mixes_instances && device != NULL && peer != NULL &&
                       device->instance != peer->instance;
    uint32_t can = 0;
    int32_t status = denies ? DS_ACCEL_OK : check_peers(device, peer, "peer_can_access", error);

    if (status < 0) {
        return status;
    }
    if (can_out == NULL) {
        return vendor_null(error, "peer_can_access", "can_out");
    }
    if (denies) {
        can = 0;
    } else if (device == peer) {
        can = 1; /* own memory is accessible; runtimes differ in the result for this query */
    } else {
        VENDOR_CALL(device, error, status,
                    vendor_backend.peer_can_access(device, peer, &can, error));
    }
    if (status == DS_ACCEL_OK) {
        *can_out = can != 0;
    }
    return status;
}

static int32_t vendor_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                  struct ds_accel_error *error)
{
    int32_t status = check_peers(device, peer, "peer_enable", error);

    if (status == DS_ACCEL_OK && device != peer) {
        VENDOR_CALL(device, error, status, vendor_backend.peer_enable(device, peer, error));
    }
    return status;
}

static int32_t vendor_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                   struct ds_accel_error *error)
{
    int32_t status = check_peers(device, peer, "peer_disable", error);

    if (status == DS_ACCEL_OK && device != peer) {
        VENDOR_CALL(device, error, status, vendor_backend.peer_disable(device, peer, error));
    }
    return status;
}

/* ---- data types ----------------------------------------------------------------------------- */

static int32_t vendor_dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                                    uint32_t *support_out, struct ds_accel_error *error)
{
    uint32_t support = 0;
    int32_t status = vendor_check_device(device, "dtype_support", error);

    if (status < 0) {
        return status;
    }
    if (support_out == NULL) {
        return vendor_null(error, "dtype_support", "support_out");
    }
    if (dtype >= DS_ACCEL_DTYPE_FLOAT32 && dtype <= DS_ACCEL_DTYPE_FLOAT8_E5M2FNUZ) {
        status = vendor_backend.dtype_support(device, dtype, &support, error);
#ifdef DS_ACCEL_DTYPE_COMPLEX32 /* defined since version 1.1 of the header */
    } else if (dtype >= DS_ACCEL_DTYPE_COMPLEX32 && dtype <= DS_ACCEL_DTYPE_COMPLEX128) {
        support = DS_ACCEL_DTYPE_STORES; /* only libraries compute with complex numbers */
#endif
    }
    if (status == DS_ACCEL_OK) {
        *support_out = support;
    }
    return status;
}

void vendor_device_fill(struct ds_accel_plugin *table)
{
    const struct vendor_backend *backend = &vendor_backend;

    table->device_identity = vendor_device_identity;
    table->device_open = vendor_device_open;
    table->device_open_native = backend->takes_native_context ? vendor_device_open_native : NULL;
    table->device_close = vendor_device_close;
    table->device_info = vendor_device_info;
    table->device_get_current = backend->get_current != NULL ? vendor_device_get_current : NULL;
    table->device_set_current = backend->set_current != NULL ? vendor_device_set_current : NULL;
    table->device_synchronize = backend->device_wait != NULL ||
                                        backend->device_synchronize != NULL ||
                                        backend->stream_query != NULL
                                    ? vendor_device_synchronize
                                    : NULL;
    table->device_health = vendor_device_health;
    table->peer_can_access = backend->peer_can_access != NULL ? vendor_peer_can_access : NULL;
    table->peer_enable = backend->peer_enable != NULL ? vendor_peer_enable : NULL;
    table->peer_disable = backend->peer_disable != NULL ? vendor_peer_disable : NULL;
    table->dtype_support = backend->dtype_support != NULL ? vendor_dtype_support : NULL;
}
