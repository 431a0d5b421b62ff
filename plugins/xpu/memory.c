/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Device memory, host memory, and memory shared by both, in one address space per context. Virtual
 * memory: reserved addresses, physical memory, and access for the whole context.
 */
#include "xpu.h"

#define ALIGN_BYTES 64u

/* ---- allocations ---------------------------------------------------------------------------- */

/*
 * Level Zero permits an allocation above the device's limit only if the call has a relaxed-limits
 * descriptor, so the plugin adds one to such allocations.
 */
int32_t xpu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    const struct ze_relaxed_desc relaxed = {.tag = ZE_TAG_RELAXED_LIMITS,
                                            .flags = ZE_RELAXED_MAX_SIZE};
    struct ze_device_memory_desc desc = {.tag = ZE_TAG_DEVICE_MEMORY};
    ze_result result;

    if (size_bytes > state->unit->properties.max_alloc_bytes) {
        desc.next = &relaxed;
    }
    result = state->runtime->ze.zeMemAllocDevice(state->context, &desc, size_bytes, ALIGN_BYTES,
                                                 state->unit->handle, pointer_out);
    if (result == ZE_SUCCESS) {
        atomic_fetch_add(&state->used_bytes, size_bytes);
    }
    return XPU_CHECK(device, result, error, "zeMemAllocDevice(%llu bytes, device %u)",
                     (unsigned long long)size_bytes, device->index);
}

/*
 * Frees device or managed memory; size_bytes is the size that was requested. The caller (the frame)
 * has waited until the device has finished using the memory.
 */
int32_t xpu_free(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                 struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    ze_result result = state->runtime->ze.zeMemFree(state->context, pointer);

    if (result == ZE_SUCCESS) {
        atomic_fetch_sub(&state->used_bytes, size_bytes);
    }
    return XPU_CHECK(device, result, error, "zeMemFree(%p)", pointer);
}

/*
 * Allocates memory that is pinned for all devices of the context, at one address for host and
 * devices.
 */
int32_t xpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    const struct ze_host_memory_desc desc = {
        .tag = ZE_TAG_HOST_MEMORY,
        .flags = (flags & DS_ACCEL_PINNED_WRITE_COMBINED) != 0 ? ZE_HOST_WRITE_COMBINED : 0};

    return XPU_CHECK(device,
                     state->runtime->ze.zeMemAllocHost(state->context, &desc, size_bytes,
                                                       ALIGN_BYTES, pointer_out),
                     error, "zeMemAllocHost(%llu bytes)", (unsigned long long)size_bytes);
}

int32_t xpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);

    return XPU_CHECK(device, state->runtime->ze.zeMemFree(state->context, pointer), error,
                     "zeMemFree(%p)", pointer);
}

int32_t xpu_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                          struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    const struct ze_device_memory_desc desc = {.tag = ZE_TAG_DEVICE_MEMORY};
    const struct ze_host_memory_desc host_desc = {.tag = ZE_TAG_HOST_MEMORY};
    ze_result result = state->runtime->ze.zeMemAllocShared(state->context, &desc, &host_desc,
                                                           size_bytes, ALIGN_BYTES,
                                                           state->unit->handle, pointer_out);

    if (result == ZE_SUCCESS) {
        atomic_fetch_add(&state->used_bytes, size_bytes);
    }
    return XPU_CHECK(device, result, error, "zeMemAllocShared(%llu bytes, device %u)",
                     (unsigned long long)size_bytes, device->index);
}

int32_t xpu_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                void **device_pointer_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *device_pointer_out = host_pointer;
    return DS_ACCEL_OK;
}

/*
 * Core Level Zero does not report free memory. Without Sysman, free memory is the total less the
 * device and managed memory that was allocated on this open device. Managed memory counts in full,
 * because all of it may be on the device.
 */
int32_t xpu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    uint64_t used = atomic_load(&state->used_bytes);

    (void)error;
    if (xpu_sysman_memory(state->runtime, state->unit, free_out, total_out) != 0) {
        *total_out = state->total_bytes;
        *free_out = used < state->total_bytes ? state->total_bytes - used : 0;
    }
    return DS_ACCEL_OK;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

/*
 * A reserved range of addresses. The range is larger than requested if the requested alignment is
 * larger than Level Zero's.
 */
struct xpu_reservation {
    struct xpu_reservation *next;
    void *address;
    void *base;
    uint64_t base_bytes;
};

/* Physical memory; each mapping holds a reference. Guarded by the state's lock. */
struct xpu_physical {
    ze_physical_t handle;
    uint32_t references;
};

struct xpu_mapping {
    struct xpu_mapping *next;
    void *address;
    uint64_t size_bytes;
    struct xpu_physical *physical;
};

int32_t xpu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    size_t page = 0;
    size_t large = 0;
    ze_result result;

    (void)flags;
    result =
        state->runtime->ze.zeVirtualMemQueryPageSize(state->context, state->unit->handle, 1, &page);
    if (result == ZE_SUCCESS) {
        result = state->runtime->ze.zeVirtualMemQueryPageSize(state->context, state->unit->handle,
                                                              (size_t)64 << 20, &large);
    }
    *minimum_out = page;
    *recommended_out = large > page ? large : page;
    return XPU_CHECK(device, result, error, "zeVirtualMemQueryPageSize(device %u)", device->index);
}

static int32_t reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes, void *hint,
                       void **address_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);

    return XPU_CHECK(
        device,
        state->runtime->ze.zeVirtualMemReserve(state->context, hint, size_bytes, address_out),
        error, "zeVirtualMemReserve(%llu bytes)", (unsigned long long)size_bytes);
}

/*
 * Level Zero has no alignment parameter: if the reserved range is not aligned, the function
 * reserves a larger range.
 */
int32_t xpu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_reservation *reservation = calloc(1, sizeof(*reservation));
    const uint64_t mask = align_bytes > 0 ? align_bytes - 1 : 0;
    int32_t status;

    if (reservation == NULL) {
        return xpu_no_host_memory(error, "vmem_reserve");
    }
    reservation->base_bytes = size_bytes;
    status = reserve(device, size_bytes, hint, &reservation->base, error);
    if (status == DS_ACCEL_OK && ((uint64_t)(uintptr_t)reservation->base & mask) != 0) {
        state->runtime->ze.zeVirtualMemFree(state->context, reservation->base, size_bytes);
        reservation->base_bytes = size_bytes + align_bytes;
        status = reservation->base_bytes < size_bytes
                     ? plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                                   "vmem_reserve: the size with its alignment is too large")
                     : reserve(device, reservation->base_bytes, NULL, &reservation->base, error);
    }
    if (status < 0) {
        free(reservation);
        return status;
    }
    reservation->address = (char *)reservation->base +
                           (-(uint64_t)(uintptr_t)reservation->base & mask);
    pthread_mutex_lock(&state->lock);
    reservation->next = state->reservations;
    state->reservations = reservation;
    pthread_mutex_unlock(&state->lock);
    *address_out = reservation->address;
    return DS_ACCEL_OK;
}

int32_t xpu_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                         struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_reservation *reservation;
    struct xpu_reservation **link;
    ze_result result;

    pthread_mutex_lock(&state->lock);
    for (link = &state->reservations; *link != NULL && (*link)->address != address;) {
        link = &(*link)->next;
    }
    reservation = *link;
    if (reservation == NULL) {
        pthread_mutex_unlock(&state->lock);
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "vmem_release: %p was not reserved",
                           address);
    }
    result = state->runtime->ze.zeVirtualMemFree(state->context, reservation->base,
                                                 reservation->base_bytes);
    if (result == ZE_SUCCESS) {
        *link = reservation->next;
        free(reservation);
    }
    pthread_mutex_unlock(&state->lock);
    return XPU_CHECK(device, result, error, "zeVirtualMemFree(%p, %llu bytes)", address,
                     (unsigned long long)size_bytes);
}

int32_t xpu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    struct ze_physical_desc desc = {
        .tag = ZE_TAG_PHYSICAL, .flags = ZE_PHYSICAL_ON_DEVICE, .size_bytes = size_bytes};
    struct xpu_physical *physical;
    ze_result result;

    if ((flags & DS_ACCEL_VMEM_EXPORTABLE) != 0) {
        return vendor_unsupported(error, "vmem_create",
                                  "Level Zero hands on whole allocations only");
    }
    physical = calloc(1, sizeof(*physical));
    if (physical == NULL) {
        return xpu_no_host_memory(error, "vmem_create");
    }
    result = state->runtime->ze.zePhysicalMemCreate(state->context, state->unit->handle, &desc,
                                                    &physical->handle);
    if (result != ZE_SUCCESS) {
        free(physical);
        return XPU_CHECK(device, result, error, "zePhysicalMemCreate(%llu bytes, device %u)",
                         (unsigned long long)size_bytes, device->index);
    }
    physical->references = 1;
    *native_out = physical;
    return DS_ACCEL_OK;
}

/* Caller holds the state's lock. */
static void put_physical(struct xpu_state *state, struct xpu_physical *physical)
{
    if (--physical->references == 0) {
        state->runtime->ze.zePhysicalMemDestroy(state->context, physical->handle);
        free(physical);
    }
}

void xpu_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct xpu_state *state = xpu_state(device);

    pthread_mutex_lock(&state->lock);
    put_physical(state, native);
    pthread_mutex_unlock(&state->lock);
}

/*
 * Returns the status of a failed mapping and describes it in *error. Newer Intel drivers map a
 * device's physical memory only once at a time, and reject a second mapping with "invalid
 * argument"; older drivers have no such limit.
 */
static int32_t map_failed(ds_accel_plugin_device_t *device, const struct xpu_physical *physical,
                          ze_result result, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct ds_accel_error details = {.struct_size = sizeof(details)};
    int32_t status = XPU_CHECK(device, result, &details, "zeVirtualMemMap(%p, %llu bytes)", address,
                               (unsigned long long)size_bytes);
    int is_mapped;

    pthread_mutex_lock(&state->lock);
    is_mapped = physical->references > 1;
    pthread_mutex_unlock(&state->lock);
    if (is_mapped && result == ZE_ERROR_INVALID_ARGUMENT) {
        status = DS_ACCEL_ERR_LIMIT;
        details.code = status;
        snprintf(details.message, sizeof(details.message),
                 "zeVirtualMemMap(%p, %llu bytes): %s: the memory is mapped already, and this "
                 "driver maps physical memory once at a time",
                 address, (unsigned long long)size_bytes, details.vendor_text);
    }
    ds_accel_write(error, &details, sizeof(details));
    return status;
}

int32_t xpu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_physical *physical = native;
    struct xpu_mapping *mapping = calloc(1, sizeof(*mapping));
    ze_result result;

    if (mapping == NULL) {
        return xpu_no_host_memory(error, "vmem_map");
    }
    result = state->runtime->ze.zeVirtualMemMap(state->context, address, size_bytes,
                                                physical->handle, offset_bytes, ZE_ACCESS_NONE);
    if (result != ZE_SUCCESS) {
        free(mapping);
        return map_failed(device, physical, result, address, size_bytes, error);
    }
    mapping->address = address;
    mapping->size_bytes = size_bytes;
    mapping->physical = physical;
    pthread_mutex_lock(&state->lock);
    physical->references++;
    mapping->next = state->mappings;
    state->mappings = mapping;
    pthread_mutex_unlock(&state->lock);
    return DS_ACCEL_OK;
}

int32_t xpu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error)
{
    struct xpu_state *state = xpu_state(device);
    struct xpu_mapping *mapping;
    struct xpu_mapping **link;
    ze_result result;

    pthread_mutex_lock(&state->lock);
    for (link = &state->mappings; *link != NULL; link = &(*link)->next) {
        if ((*link)->address == address && (*link)->size_bytes == size_bytes) {
            break;
        }
    }
    mapping = *link;
    if (mapping == NULL) {
        pthread_mutex_unlock(&state->lock);
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_unmap: %llu bytes at %p are no mapping",
                           (unsigned long long)size_bytes, address);
    }
    result = state->runtime->ze.zeVirtualMemUnmap(state->context, address, size_bytes);
    if (result == ZE_SUCCESS) {
        *link = mapping->next;
        put_physical(state, mapping->physical);
        free(mapping);
    }
    pthread_mutex_unlock(&state->lock);
    return XPU_CHECK(device, result, error, "zeVirtualMemUnmap(%p, %llu bytes)", address,
                     (unsigned long long)size_bytes);
}

int32_t xpu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(accessor);
    const uint32_t attribute = access == DS_ACCEL_VMEM_ACCESS_READ_WRITE ? ZE_ACCESS_READ_WRITE
                               : access == DS_ACCEL_VMEM_ACCESS_READ     ? ZE_ACCESS_READ
                                                                         : ZE_ACCESS_NONE;

    return XPU_CHECK(accessor,
                     state->runtime->ze.zeVirtualMemSetAccessAttribute(state->context, address,
                                                                       size_bytes, attribute),
                     error, "zeVirtualMemSetAccessAttribute(%p, %llu bytes)", address,
                     (unsigned long long)size_bytes);
}
