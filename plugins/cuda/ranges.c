/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Profiler ranges by NVTX, whose functions answer a negative number while no profiler is attached.
 * Without its library none can be, so that nothing is lost by doing nothing. Domains and categories
 * need structs of NVTX's headers and are not passed on: the flag RANGE_DOMAINS is not set.
 */
#include "plugin.h"

int32_t cuda_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;

    (void)domain;
    (void)category;
    (void)error;
    if (runtime->has_nvtx) {
        runtime->nvtx.nvtxRangePushA(message);
    }
    return DS_ACCEL_OK;
}

int32_t cuda_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;

    (void)domain;
    (void)error;
    if (runtime->has_nvtx) {
        runtime->nvtx.nvtxRangePop();
    }
    return DS_ACCEL_OK;
}

/* The driver starts and stops the profiler of the current context: of each device that is open. */
static int32_t call_in_each(ds_accel_plugin_instance_t *instance, cu_result_t (*call)(void),
                            const char *name, struct ds_accel_error *error)
{
    uint32_t open = 0;

    if (call == NULL) {
        return vendor_unsupported(error, name, "libcuda.so.1 has no such function");
    }
    for (uint32_t i = 0; i < instance->device_count; i++) {
        ds_accel_plugin_device_t *device = &instance->devices[i];
        uint64_t saved = 0;
        cu_result_t code;
        int32_t status;

        if (device->state == NULL) {
            continue;
        }
        status = cuda_enter(device, &saved, error);
        if (status < 0) {
            return status;
        }
        code = call();
        cuda_leave(device, saved);
        CUDA_TRY(device, error, code, "%s(device %u)", name, i);
        open++;
    }
    if (open == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: no device is open", name);
    }
    return DS_ACCEL_OK;
}

int32_t cuda_profiler_start(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;

    return call_in_each(instance, runtime->api.cuProfilerStart, "cuProfilerStart", error);
}

int32_t cuda_profiler_stop(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;

    return call_in_each(instance, runtime->api.cuProfilerStop, "cuProfilerStop", error);
}
