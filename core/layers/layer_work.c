/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports from other parts of the library about the library's own work on the host: a host task
 * that it queues, work that it is about to do on the calling thread, and host memory that its
 * streams no longer use.
 */
#include "base/text.h"
#include "host/layers.h"
#include "layers/layer.h"
#include "layers/race.h"
#include "runtime/handle.h"

static _Thread_local const struct ds_accel__work *queued;

const struct ds_accel__work *ds_accel__work_take(void)
{
    const struct ds_accel__work *work = queued;

    queued = NULL;
    return work;
}

int32_t ds_accel__hook_host_task(struct ds_accel__stream *stream, ds_accel_host_task_t task,
                                 void *user_data, const struct ds_accel__work *work,
                                 struct ds_accel_error *error)
{
    int32_t status;

    queued = __atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0 ? work : NULL;
    status = stream->abi.table->stream_host_task(stream->abi.handle, task, user_data, error);
    queued = NULL;
    return status;
}

/* Record the accesses of host work in a stack. True: the work races and is refused. The caller
 * holds the layers' lock. */
static bool note_host_work(struct ds_accel__stack *stack, const struct ds_accel__work *work,
                           const void *site)
{
    struct ds_accel__access access = {
        .stack = stack, .slot = DS_ACCEL__SLOT_COUNT, .site = site, .time = UINT64_MAX};
    const struct ds_accel__race_thread *thread = ds_accel__race_enter(stack);
    bool is_refused = false;

    if (thread == NULL) {
        return false;
    }
    if (stack->fails_on_races) {
        access.component = thread->component;
        access.clock = ds_accel__clock_get(thread->clock);
        is_refused = ds_accel__work_check(work, &access);
        ds_accel__clock_put(access.clock);
    }
    if (!is_refused && ds_accel__race_place_host(stack, &access)) {
        ds_accel__work_access(work, &access, NULL);
    }
    ds_accel__race_leave(thread);
    return is_refused;
}

void ds_accel__hook_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                              uint64_t size_bytes)
{
    const struct ds_accel__object *object;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) != 0) {
        ds_accel__layer_lock();
        object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
        if (object != NULL) {
            ds_accel__access_forget_idle(object->stack, (uintptr_t)pointer,
                                         (uintptr_t)pointer + size_bytes);
        }
        ds_accel__layer_unlock();
    }
}

/* Record work without a device in the stack whose streams use the memory, or else in any stack. The
 * findings are not logged now, because another thread may be shutting that stack's accelerator
 * down: its later calls log them. True: the work is refused. The caller holds the layers' lock. */
static bool note_without_device(const struct ds_accel__work *work, const void *site)
{
    struct ds_accel__stack *stack = NULL;

    for (uint32_t i = 0; i < work->count && stack == NULL; i++) {
        uint64_t begin;
        uint64_t size_bytes;

        ds_accel__extent_span(&work->extents[i], &begin, &size_bytes);
        stack = ds_accel__access_stack(begin, begin + size_bytes);
    }
    stack = stack != NULL ? stack : ds_accel__layer_any_stack();
    return stack != NULL && !ds_accel__race_is_blind && note_host_work(stack, work, site);
}

int32_t ds_accel__hook_host_work(struct ds_accel__device *device, const struct ds_accel__work *work)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *object;
    struct ds_accel__stack *stack = NULL;
    bool is_refused = false;
    char problem[512];

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return DS_ACCEL_OK;
    }
    ds_accel__layer_lock();
    object = device != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, device->abi.handle) : NULL;
    stack = object != NULL ? object->stack : NULL;
    ds_accel__layer_unlock();
    if (stack != NULL && !ds_accel__validate_work(stack, work, problem, sizeof(problem))) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "%s", problem);
    }
    ds_accel__layer_lock();
    object = device != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, device->abi.handle) : NULL;
    if (device == NULL) {
        is_refused = note_without_device(work, site);
    } else if (object != NULL && object->stack->races != NULL && !ds_accel__race_is_blind) {
        is_refused = note_host_work(object->stack, work, site);
    }
    ds_accel__layer_unlock();
    ds_accel__race_tell(stack);
    return is_refused ? ds_accel__error(DS_ACCEL_ERR_STATE,
                                        "%s: it would race with earlier work; see the log or "
                                        "ds_accel_layer_report(\"race\")",
                                        work->call)
                      : DS_ACCEL_OK;
}
