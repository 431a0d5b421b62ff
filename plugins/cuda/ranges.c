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

static int32_t call_in(ds_accel_plugin_device_t *device, cu_result_t (*call)(void),
                       const char *name, struct ds_accel_error *error)
{
    uint64_t saved = 0;
    cu_result_t code;
    int32_t status = cuda_enter(device, &saved, error);

    if (status < 0) {
        return status;
    }
    code = call();
    cuda_leave(device, saved);
    CUDA_TRY(device, error, code, "%s(device %u)", name, device->index);
    return DS_ACCEL_OK;
}

/* The driver starts and stops the profiler of the current context: of each device that is open.
   With the instance's lock, as another thread may close one meanwhile. */
static int32_t call_in_each(ds_accel_plugin_instance_t *instance, cu_result_t (*call)(void),
                            const char *name, struct ds_accel_error *error)
{
    uint32_t open = 0;
    int32_t status = DS_ACCEL_OK;

    if (call == NULL) {
        return vendor_unsupported(error, name, "libcuda.so.1 has no such function");
    }
    pthread_mutex_lock(&instance->lock);
    for (uint32_t i = 0; i < instance->device_count && status == DS_ACCEL_OK; i++) {
        if (instance->devices[i].open_count > 0) {
            status = call_in(&instance->devices[i], call, name, error);
            open++;
        }
    }
    pthread_mutex_unlock(&instance->lock);
    if (open == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "%s: no device is open", name);
    }
    return status;
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
