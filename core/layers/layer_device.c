/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The address space of a device's memory, which follows from the device's flags; layer_track.c
 * queries the plugin for the flags. */
#include "layers/layer.h"

bool ds_accel__is_one_space(const struct ds_accel__stack *stack)
{
    return (stack->flags & (DS_ACCEL_FLAG_UNIFIED_ADDRESSES | DS_ACCEL_FLAG_HOST_ACCESSIBLE)) != 0;
}

uint64_t ds_accel__space_of(const struct ds_accel__object *device)
{
    return ds_accel__is_one_space(device->stack)
               ? 0
               : device->stack->id << 32 | ((uint64_t)device->device_index + 1);
}

uint64_t ds_accel__device_flags(const struct ds_accel__object *object)
{
    const struct ds_accel__object *device = ds_accel__object_find(DS_ACCEL__DEVICE, object->device);

    return device != NULL && device->has_device_flags ? device->device_flags : object->stack->flags;
}
