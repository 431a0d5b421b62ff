/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Profiler ranges through NVTX, whose functions return a negative number while no profiler is
 * attached. Without NVTX's library no profiler can be attached, and ranges have no effect.
 *
 * A domain has its own stack of ranges and its own category numbers. The plugin registers domains
 * and categories with NVTX once, at the first range that uses them, and keeps them until the
 * runtime is closed. It does not destroy the domains, because another instance or the program may
 * use a domain of the same name.
 */
#include "plugin.h"

struct cuda_range_name {
    struct cuda_range_name *next;
    struct cuda_range_name *categories; /* categories of a domain */
    nvtx_domain_t domain;
    uint32_t category; /* number of a category in its domain, from 1 on */
    char text[];
};

void cuda_ranges_open(struct cuda_runtime *runtime)
{
    static const char *const names[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1", NULL};
    static const struct vendor_symbol symbols[] = {
        VENDOR_REQUIRED(struct nvtx_api, nvtxRangePushA),
        VENDOR_REQUIRED(struct nvtx_api, nvtxRangePop),
        VENDOR_OPTIONAL(struct nvtx_api, nvtxDomainCreateA, NULL),
        VENDOR_OPTIONAL(struct nvtx_api, nvtxDomainNameCategoryA, NULL),
        VENDOR_OPTIONAL(struct nvtx_api, nvtxDomainRangePushEx, NULL),
        VENDOR_OPTIONAL(struct nvtx_api, nvtxDomainRangePop, NULL)};
    const struct nvtx_api *nvtx = &runtime->nvtx;
    struct vendor_problem ignored;
    struct vendor_lib lib;

    runtime->has_nvtx = vendor_lib_open(&lib, runtime->host, NULL, names, &ignored) == 0 &&
                        vendor_lib_bind(&lib, symbols, sizeof(symbols) / sizeof(symbols[0]),
                                        &runtime->nvtx, &ignored) == 0;
    runtime->has_domains = runtime->has_nvtx && nvtx->nvtxDomainCreateA != NULL &&
                           nvtx->nvtxDomainNameCategoryA != NULL &&
                           nvtx->nvtxDomainRangePushEx != NULL && nvtx->nvtxDomainRangePop != NULL;
}

static void free_names(struct cuda_range_name *name)
{
    while (name != NULL) {
        struct cuda_range_name *next = name->next;

        free_names(name->categories);
        free(name);
        name = next;
    }
}

void cuda_ranges_close(struct cuda_runtime *runtime)
{
    free_names(runtime->domains);
}

static struct cuda_range_name *find_name(struct cuda_range_name *list, const char *text)
{
    while (list != NULL && strcmp(list->text, text) != 0) {
        list = list->next;
    }
    return list;
}

/* Adds a name at the head of the list; returns NULL when out of memory. */
static struct cuda_range_name *add_name(struct cuda_range_name **list, const char *text)
{
    size_t size = strlen(text) + 1;
    struct cuda_range_name *name = calloc(1, sizeof(*name) + size);

    if (name != NULL) {
        memcpy(name->text, text, size);
        name->category = *list != NULL ? (*list)->category + 1 : 1;
        name->next = *list;
        *list = name;
    }
    return name;
}

/*
 * Finds, or registers with NVTX, the domain with that name ("" is the default domain) and the
 * category in that domain (NULL: number 0, no category). Returns 0, or -1 when out of memory.
 * Caller holds the runtime's lock.
 */
static int find_place(struct cuda_runtime *runtime, const char *domain, const char *category,
                      nvtx_domain_t *domain_out, uint32_t *category_out)
{
    struct cuda_range_name *place = find_name(runtime->domains, domain);
    struct cuda_range_name *group;

    if (place == NULL) {
        place = add_name(&runtime->domains, domain);
        if (place == NULL) {
            return -1;
        }
        place->domain = domain[0] != '\0' ? runtime->nvtx.nvtxDomainCreateA(domain) : NULL;
    }
    *domain_out = place->domain;
    *category_out = 0;
    if (category == NULL) {
        return 0;
    }
    group = find_name(place->categories, category);
    if (group == NULL) {
        group = add_name(&place->categories, category);
        if (group == NULL) {
            return -1;
        }
        runtime->nvtx.nvtxDomainNameCategoryA(place->domain, group->category, category);
    }
    *category_out = group->category;
    return 0;
}

int32_t cuda_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error)
{
    struct cuda_runtime *runtime = instance->runtime;
    nvtx_attributes_t attributes = {.version = NVTX_VERSION_OF_ATTRIBUTES,
                                    .size_bytes = sizeof(attributes),
                                    .message_type = NVTX_MESSAGE_TEXT,
                                    .message = message};
    nvtx_domain_t handle = NULL;
    int failed;

    if (!runtime->has_nvtx) {
        return DS_ACCEL_OK;
    }
    if ((domain == NULL && category == NULL) || !runtime->has_domains) {
        runtime->nvtx.nvtxRangePushA(message);
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&runtime->lock);
    failed =
        find_place(runtime, domain != NULL ? domain : "", category, &handle, &attributes.category);
    pthread_mutex_unlock(&runtime->lock);
    if (failed != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "range_push: no memory for a name");
    }
    runtime->nvtx.nvtxDomainRangePushEx(handle, &attributes);
    return DS_ACCEL_OK;
}

int32_t cuda_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error)
{
    struct cuda_runtime *runtime = instance->runtime;
    const struct cuda_range_name *place;

    if (!runtime->has_nvtx) {
        return DS_ACCEL_OK;
    }
    if (domain == NULL || domain[0] == '\0' || !runtime->has_domains) {
        runtime->nvtx.nvtxRangePop();
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&runtime->lock);
    place = find_name(runtime->domains, domain);
    pthread_mutex_unlock(&runtime->lock);
    if (place == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE,
                           "range_pop: no range of domain \"%.100s\" was pushed", domain);
    }
    runtime->nvtx.nvtxDomainRangePop(place->domain);
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
    CUDA_RELAXED(cuda_api_of(device), code, call());
    cuda_leave(device, saved);
    CUDA_TRY(device, code, error, "%s(device %u)", name, device->index);
    return DS_ACCEL_OK;
}

/*
 * The driver starts and stops the profiler for the current context, so the function makes the call
 * for each open device. It holds the instance's lock, because another thread may close a device.
 */
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
