/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Seeds and states of the default generators of a context's devices. A device is selected by its
 * index, or is the calling thread's current device. Access to its generator opens the device;
 * ds_accel_manual_seed_all() opens none, and stores the seed for generators that are made later.
 */
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/handle.h"

/* Open a device and store its default generator in *rng_out; device_index -1: the calling thread's
 * current device. */
static int32_t find_default(ds_accel_t *context, int32_t device_index, ds_accel_rng_t **rng_out)
{
    uint32_t index = (uint32_t)device_index;
    ds_accel_device_t *device;
    int32_t status = DS_ACCEL_OK;

    if (device_index < -1) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "device index %d", device_index);
    }
    if (device_index == -1) {
        status = ds_accel_current_device(context, &index);
    }
    if (status >= 0) {
        status = ds_accel_device_get(context, index, &device);
    }
    return status < 0 ? status : ds_accel_default_rng(device, rng_out);
}

int32_t ds_accel_manual_seed(ds_accel_t *context, uint64_t seed)
{
    ds_accel_rng_t *rng = NULL;
    int32_t status = find_default(context, -1, &rng);

    return status < 0 ? status : ds_accel_rng_manual_seed(rng, seed);
}

int32_t ds_accel_manual_seed_all(ds_accel_t *context, uint64_t seed)
{
    const struct ds_accel__candidate *candidate;
    uint32_t count;
    int32_t status = ds_accel_device_count(context, &count);

    if (status < 0) {
        return status;
    }
    candidate = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    /* checked before device_lock is taken, which a thread of the parent may have held during
     * fork() */
    if (candidate->watch.is_forked) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "manual_seed_all: the accelerator was started by process %ld before "
                               "fork()",
                               (long)ds_accel__fork_parent());
    }
    status = ds_accel__task_check();
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->device_lock);
    ds_accel__context_change_begin(context);
    context->has_default_seed = true;
    context->default_seed = seed;
    ds_accel__context_change_end(context);
    for (uint32_t i = 0; i < count && context->devices != NULL && status >= 0; i++) {
        if (context->devices[i] != NULL && context->devices[i]->default_rng != NULL) {
            status =
                ds_accel_rng_manual_seed((ds_accel_rng_t *)context->devices[i]->default_rng, seed);
        }
    }
    pthread_mutex_unlock(&context->device_lock);
    return status;
}

int32_t ds_accel_seed(ds_accel_t *context, uint64_t *seed_out)
{
    ds_accel_rng_t *rng = NULL;
    int32_t status = find_default(context, -1, &rng);

    return status < 0 ? status : ds_accel_rng_seed(rng, seed_out);
}

int32_t ds_accel_initial_seed(ds_accel_t *context, uint64_t *seed_out)
{
    ds_accel_rng_t *rng = NULL;
    int32_t status = find_default(context, -1, &rng);

    return status < 0 ? status : ds_accel_rng_initial_seed(rng, seed_out);
}

int32_t ds_accel_get_rng_state(ds_accel_t *context, int32_t device_index, void *state,
                               uint64_t size_bytes, uint64_t *needed_out)
{
    ds_accel_rng_t *rng = NULL;
    int32_t status = find_default(context, device_index, &rng);

    return status < 0 ? status : ds_accel_rng_get_state(rng, state, size_bytes, needed_out);
}

int32_t ds_accel_set_rng_state(ds_accel_t *context, int32_t device_index, const void *state,
                               uint64_t size_bytes)
{
    ds_accel_rng_t *rng = NULL;
    int32_t status = find_default(context, device_index, &rng);

    return status < 0 ? status : ds_accel_rng_set_state(rng, state, size_bytes);
}
