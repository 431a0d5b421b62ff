/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks before a call uses a device: the handle is live, this process (not its parent) started the
 * accelerator, the caller is not a host task, host code may access the memory.
 */
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/handle.h"

struct ds_accel__device *ds_accel__device_check(ds_accel_device_t *device, const char *call)
{
    if (!ds_accel__handle_is_live(device)) {
        ds_accel__refuse(call, "device", device);
        return NULL;
    }
    return (struct ds_accel__device *)device;
}

/* Return the error of a call in a forked child, which the plugin's device_health() reports. This is
 * a separate function, so that successful calls need not initialise a struct ds_accel_error. */
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
