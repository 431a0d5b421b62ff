/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory. A mapping is a block in the register of addresses and holds a reference to its
 * physical memory: the program may destroy the memory while it is mapped, and the last unmapping
 * then releases it. The frame counts these references because not every runtime does. Ranges for
 * unmapping and access consist of whole mappings. They are unmapped one at a time; an access is set
 * for the whole range in one call of the runtime.
 */
#include "vendor_frame.h"

#include <assert.h>
#include <time.h>

/* The reference count in vmem->frame: one reference of the caller, and one of each mapping. */
static atomic_uint *references_of(ds_accel_plugin_vmem_t *vmem)
{
    return vmem->frame;
}

static int32_t check_range(ds_accel_plugin_device_t *device, const void *address,
                           uint64_t size_bytes, const char *slot, struct ds_accel_error *error)
{
    if (address == NULL || size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)address) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %p with %llu bytes is no range", slot,
                           address, (unsigned long long)size_bytes);
    }
    return vendor_backend.vmem_check != NULL
               ? vendor_backend.vmem_check(device, slot, address, size_bytes, error)
               : DS_ACCEL_OK;
}

static int32_t vendor_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                                       uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                       struct ds_accel_error *error)
{
    const char *slot = "vmem_granularity";
    uint64_t minimum = 0;
    uint64_t recommended = 0;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, DS_ACCEL_VMEM_EXPORTABLE, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (minimum_bytes_out == NULL || recommended_bytes_out == NULL) {
        return vendor_null(error, slot, "minimum_bytes_out or recommended_bytes_out");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.vmem_granularity(device, flags, &minimum, &recommended, error));
    if (status == DS_ACCEL_OK) {
        *minimum_bytes_out = minimum;
        *recommended_bytes_out = recommended >= minimum ? recommended : minimum;
    }
    return status;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int32_t vendor_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                   uint64_t align_bytes, void *hint, uint32_t flags,
                                   void **address_out, struct ds_accel_error *error)
{
    const char *slot = "vmem_reserve";
    void *address = NULL;
    int32_t status = vendor_check_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, 0, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (address_out == NULL) {
        return vendor_null(error, slot, "address_out");
    }
    if (size_bytes == 0 || (align_bytes & (align_bytes - 1)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: size %llu is 0 or alignment %llu is no power of two", slot,
                           (unsigned long long)size_bytes, (unsigned long long)align_bytes);
    }
    VENDOR_CALL(
        device, error, status,
        vendor_backend.vmem_reserve(device, size_bytes, align_bytes, hint, &address, error));
    if (status == DS_ACCEL_OK) {
        *address_out = address;
    }
    return status;
}

static int32_t vendor_vmem_release(ds_accel_plugin_device_t *device, void *address,
                                   uint64_t size_bytes, struct ds_accel_error *error)
{
    struct vendor_register *blocks;
    int is_mapped;
    int32_t status;

    if (device == NULL) {
        return vendor_null(error, "vmem_release", "the device");
    }
    status = check_range(device, address, size_bytes, "vmem_release", error);
    if (status < 0) {
        return status;
    }
    blocks = device->instance->blocks;
    vendor_register_lock(blocks);
    is_mapped = vendor_block_overlap_any(blocks,
                                         vendor_block_space(device, DS_ACCEL_POINTER_DEVICE),
                                         address, size_bytes) != NULL;
    vendor_register_unlock(blocks);
    if (is_mapped) {
        return plugin_fail(error, DS_ACCEL_ERR_BUSY,
                           "vmem_release: in %p with %llu bytes something is still mapped", address,
                           (unsigned long long)size_bytes);
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.vmem_release(device, address, size_bytes, error));
    return status;
}

/* ---- physical memory ------------------------------------------------------------------------ */

static ds_accel_plugin_vmem_t *make_vmem(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    ds_accel_plugin_vmem_t *vmem = calloc(1, sizeof(*vmem));
    atomic_uint *references = malloc(sizeof(*references));

    if (vmem == NULL || references == NULL) {
        free(vmem);
        free(references);
        return NULL;
    }
    atomic_init(references, 1);
    vmem->device = device;
    vmem->size_bytes = size_bytes;
    vmem->frame = references;
    return vmem;
}

void vendor_vmem_put(ds_accel_plugin_vmem_t *vmem)
{
    assert(atomic_load(references_of(vmem)) > 0);
    if (atomic_fetch_sub(references_of(vmem), 1) != 1) {
        return;
    }
    VENDOR_DESTROY(vmem->device, vendor_backend.vmem_destroy(vmem->device, vmem->native));
    vendor_usage_subtract(vmem->device->usage, vmem->size_bytes);
    free(vmem->frame);
    free(vmem);
}

static int32_t create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                      ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error)
{
    ds_accel_plugin_vmem_t *vmem;
    int32_t status;

    if (vendor_backend.check_size != NULL) {
        status = vendor_backend.check_size(device, size_bytes, "vmem_create", error);
        if (status < 0) {
            vendor_usage_fail(device->usage, 0, status);
            return status;
        }
    }
    if (size_bytes > INT64_MAX || vendor_usage_add(device->usage, size_bytes) != 0) {
        return vendor_usage_refuse(device, size_bytes, "vmem_create", error);
    }
    vmem = make_vmem(device, size_bytes);
    if (vmem == NULL) {
        vendor_usage_fail(device->usage, size_bytes, DS_ACCEL_OK);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_create: no memory");
    }
    VENDOR_CALL(device, error, status,
                vendor_backend.vmem_create(device, size_bytes, flags, &vmem->native, error));
    if (status < 0) {
        vendor_usage_fail(device->usage, size_bytes, status);
        free(vmem->frame);
        free(vmem);
        return status;
    }
    vendor_usage_succeed(device->usage);
    *vmem_out = vmem;
    return DS_ACCEL_OK;
}

static int32_t vendor_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                  uint32_t flags, ds_accel_plugin_vmem_t **vmem_out,
                                  struct ds_accel_error *error)
{
    int32_t status = vendor_check_device(device, "vmem_create", error);

    if (status == DS_ACCEL_OK) {
        status = vendor_check_flags(flags, DS_ACCEL_VMEM_EXPORTABLE, "vmem_create", error);
    }
    if (status < 0) {
        return status;
    }
    if (vmem_out == NULL) {
        return vendor_null(error, "vmem_create", "vmem_out");
    }
    if (size_bytes == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "vmem_create: the size is 0");
    }
    return create(device, size_bytes, flags, vmem_out, error);
}

static void vendor_vmem_destroy(ds_accel_plugin_vmem_t *vmem)
{
    if (vmem != NULL) {
        vendor_vmem_put(vmem);
    }
}

/* ---- mappings ------------------------------------------------------------------------------- */

static int32_t map(ds_accel_plugin_device_t *device, struct vendor_block *block,
                   uint64_t offset_bytes, struct ds_accel_error *error)
{
    ds_accel_plugin_vmem_t *vmem = block->vmem;
    void *address = block->start;
    uint64_t size_bytes = block->size_bytes;
    int32_t status = vendor_block_enter(block, "vmem_map", error);

    if (status < 0) {
        return status;
    }
    VENDOR_CALL(
        device, error, status,
        vendor_backend.vmem_map(device, address, size_bytes, vmem->native, offset_bytes, error));
    if (status < 0) {
        vendor_block_end(block);
        return status;
    }
    assert(atomic_load(references_of(vmem)) > 0);
    atomic_fetch_add(references_of(vmem), 1);
    vendor_block_confirm(block);
    return DS_ACCEL_OK;
}

static int32_t vendor_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                               ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                               struct ds_accel_error *error)
{
    struct vendor_block *block;
    int32_t status = vendor_check_device(device, "vmem_map", error);

    if (status == DS_ACCEL_OK) {
        status = check_range(device, address, size_bytes, "vmem_map", error);
    }
    if (status < 0) {
        return status;
    }
    if (vmem == NULL || vmem->device->instance != device->instance ||
        vmem_offset_bytes > vmem->size_bytes || size_bytes > vmem->size_bytes - vmem_offset_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: vmem is NULL or of another instance, or has no %llu bytes at "
                           "offset %llu",
                           (unsigned long long)size_bytes, (unsigned long long)vmem_offset_bytes);
    }
    block = vendor_block_create(vmem->device, VENDOR_SOURCE_MAPPED, DS_ACCEL_POINTER_DEVICE);
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_map: no memory");
    }
    block->base = (uintptr_t)address;
    block->size_bytes = size_bytes;
    block->start = address;
    block->start_size_bytes = size_bytes;
    block->vmem = vmem;
    return map(device, block, vmem_offset_bytes, error);
}

/* The usable mapping that begins at the address and has at most the given size, or NULL. The caller
   holds the register's lock. */
static struct vendor_block *find_mapping(const ds_accel_plugin_device_t *device, uintptr_t address,
                                         uint64_t size_bytes)
{
    uint32_t space = vendor_block_space(device, DS_ACCEL_POINTER_DEVICE);
    struct vendor_block *block =
        vendor_block_find(device->instance->blocks, space, (const void *)address);

    return block != NULL && block->source == VENDOR_SOURCE_MAPPED && block->base == address &&
                   block->size_bytes <= size_bytes && block->phase == VENDOR_PHASE_USABLE
               ? block
               : NULL;
}

/* Does the range consist of one or more whole mappings? A mapping that a thread is making or
   unmapping does not count. The caller holds the register's lock. */
static int is_mapped_whole(const ds_accel_plugin_device_t *device, uintptr_t address,
                           uint64_t size_bytes)
{
    while (size_bytes > 0) {
        const struct vendor_block *block = find_mapping(device, address, size_bytes);

        if (block == NULL) {
            return 0;
        }
        address += block->size_bytes;
        size_bytes -= block->size_bytes;
    }
    return 1;
}

static int32_t fail_unmapped(const void *address, uint64_t size_bytes, const char *slot,
                             struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: %p with %llu bytes: not whole mappings",
                       slot, address, (unsigned long long)size_bytes);
}

static int32_t check_mapped(ds_accel_plugin_device_t *device, const void *address,
                            uint64_t size_bytes, const char *slot, struct ds_accel_error *error)
{
    int is_mapped;
    int32_t status = check_range(device, address, size_bytes, slot, error);

    if (status < 0) {
        return status;
    }
    vendor_register_lock(device->instance->blocks);
    is_mapped = is_mapped_whole(device, (uintptr_t)address, size_bytes);
    vendor_register_unlock(device->instance->blocks);
    return is_mapped ? DS_ACCEL_OK : fail_unmapped(address, size_bytes, slot, error);
}

/* ---- unmapping ------------------------------------------------------------------------------ */

/* Claim all mappings of the range, of any device, for unmapping. If one cannot be claimed, claim
   none. */
static int32_t take_mappings(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                             struct ds_accel_error *error)
{
    struct vendor_register *blocks = device->instance->blocks;
    const uintptr_t start = (uintptr_t)address;
    const uintptr_t end = start + size_bytes;
    int is_mapped;
    int is_used;

    vendor_register_lock(blocks);
    is_mapped = is_mapped_whole(device, start, size_bytes);
    is_used = vendor_use_overlaps(blocks, vendor_block_space(device, DS_ACCEL_POINTER_DEVICE),
                                  start, size_bytes);
    for (uintptr_t position = start; is_mapped && !is_used && position < end;) {
        struct vendor_block *block = find_mapping(device, position, end - position);

        vendor_block_take_found(blocks, block);
        position += block->size_bytes;
    }
    vendor_register_unlock(blocks);
    if (!is_mapped) {
        return fail_unmapped(address, size_bytes, "vmem_unmap", error);
    }
    return is_used ? plugin_fail(error, DS_ACCEL_ERR_BUSY,
                                 "vmem_unmap: another thread is setting the access of %p with %llu "
                                 "bytes",
                                 address, (unsigned long long)size_bytes)
                   : DS_ACCEL_OK;
}

/* The mapping at an address, which this thread has claimed. */
static struct vendor_block *taken_mapping(const ds_accel_plugin_device_t *device,
                                          const void *address)
{
    struct vendor_register *blocks = device->instance->blocks;
    struct vendor_block *block;

    vendor_register_lock(blocks);
    block = vendor_block_find(blocks, vendor_block_space(device, DS_ACCEL_POINTER_DEVICE), address);
    vendor_register_unlock(blocks);
    return block;
}

/* Unmap the claimed mappings. After a failure the rest of the range stays mapped, unless the
   mapping's device is lost: then the other mappings are unmapped too. Returns the last failure, or
   DS_ACCEL_OK. */
static int32_t unmap_taken(const ds_accel_plugin_device_t *device, const char *position,
                           const char *end, struct ds_accel_error *error)
{
    int32_t status = DS_ACCEL_OK;
    int is_over = 0;

    while (position < end) {
        struct vendor_block *block = taken_mapping(device, position);
        ds_accel_plugin_device_t *owner = block->device;
        int32_t result;

        position += block->size_bytes;
        if (is_over) {
            vendor_block_put_back(block);
            continue;
        }
        result = vendor_memory_free(block, error);
        if (result < 0) {
            status = result;
            is_over = !vendor_is_lost(owner);
        }
    }
    return status;
}

static int32_t vendor_vmem_unmap(ds_accel_plugin_device_t *device, void *address,
                                 uint64_t size_bytes, struct ds_accel_error *error)
{
    const char *slot = "vmem_unmap";
    int32_t status;

    if (device == NULL) {
        return vendor_null(error, slot, "the device");
    }
    status = check_mapped(device, address, size_bytes, slot, error);
    if (status == DS_ACCEL_OK) {
        status = vendor_memory_wait(device, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = take_mappings(device, address, size_bytes, error);
    }
    return status < 0 ? status
                      : unmap_taken(device, address, (const char *)address + size_bytes, error);
}

/* Claim a mapping in the range, or return NULL. *is_left_out is 1 if the range contains a mapping;
   with NULL, another thread is making, unmapping or using that mapping. */
static struct vendor_block *take_any(ds_accel_plugin_device_t *device, const void *address,
                                     uint64_t size_bytes, int *is_left_out)
{
    struct vendor_register *blocks = device->instance->blocks;
    uint32_t space = vendor_block_space(device, DS_ACCEL_POINTER_DEVICE);
    struct vendor_block *block;

    vendor_register_lock(blocks);
    block = vendor_block_overlap(blocks, space, address, size_bytes);
    if (block != NULL && block->source != VENDOR_SOURCE_MAPPED) {
        block = NULL;
    }
    *is_left_out = block != NULL;
    if (block != NULL && block->phase == VENDOR_PHASE_USABLE &&
        !vendor_use_overlaps(blocks, space, block->base, block->size_bytes)) {
        vendor_block_take_found(blocks, block);
    } else {
        block = NULL;
    }
    vendor_register_unlock(blocks);
    return block;
}

void vendor_vmem_clear(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000};
    int is_left = 1;

    while (is_left) {
        struct vendor_block *block = take_any(device, address, size_bytes, &is_left);

        if (block != NULL) {
            vendor_memory_forget(block);
        } else if (is_left) {
            nanosleep(&pause, NULL); /* wait for another thread's call, which returns soon */
        }
    }
}

/* ---- access --------------------------------------------------------------------------------- */

static int32_t set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                          uint32_t access, struct ds_accel_error *error)
{
    struct vendor_register *blocks = accessor->instance->blocks;
    struct vendor_use use = {.space = vendor_block_space(accessor, DS_ACCEL_POINTER_DEVICE),
                             .start = (uintptr_t)address,
                             .end = (uintptr_t)address + size_bytes};
    int is_mapped;
    int32_t status;

    vendor_register_lock(blocks);
    is_mapped = is_mapped_whole(accessor, (uintptr_t)address, size_bytes);
    if (is_mapped) {
        vendor_use_begin(blocks, &use);
    }
    vendor_register_unlock(blocks);
    if (!is_mapped) {
        return fail_unmapped(address, size_bytes, "vmem_set_access", error);
    }
    VENDOR_CALL(accessor, error, status,
                vendor_backend.vmem_set_access(accessor, address, size_bytes, access, error));
    vendor_register_lock(blocks);
    vendor_use_end(blocks, &use);
    vendor_register_unlock(blocks);
    return status;
}

/* Set the access to mappings. Before write access or all access is removed, the backend's
   memory_wait(), if it has one, waits for queued work that may need the access. */
static int32_t vendor_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address,
                                      uint64_t size_bytes, uint32_t access,
                                      struct ds_accel_error *error)
{
    const char *slot = "vmem_set_access";
    int32_t status = vendor_check_device(accessor, slot, error);

    if (status < 0) {
        return status;
    }
    if (access != DS_ACCEL_VMEM_ACCESS_NONE && access != DS_ACCEL_VMEM_ACCESS_READ &&
        access != DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown access %u", slot, access);
    }
    status = check_mapped(accessor, address, size_bytes, slot, error);
    if (status == DS_ACCEL_OK && access != DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        status = vendor_memory_wait(accessor, slot, error);
    }
    return status < 0 ? status : set_access(accessor, address, size_bytes, access, error);
}

void vendor_vmem_fill(struct ds_accel_plugin *table)
{
    if (vendor_backend.vmem_create == NULL || vendor_backend.vmem_reserve == NULL ||
        vendor_backend.vmem_map == NULL) {
        return;
    }
    table->vmem_granularity = vendor_vmem_granularity;
    table->vmem_reserve = vendor_vmem_reserve;
    table->vmem_release = vendor_vmem_release;
    table->vmem_create = vendor_vmem_create;
    table->vmem_destroy = vendor_vmem_destroy;
    table->vmem_map = vendor_vmem_map;
    table->vmem_unmap = vendor_vmem_unmap;
    table->vmem_set_access = vendor_vmem_set_access;
}
