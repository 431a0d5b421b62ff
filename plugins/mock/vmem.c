/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory, implemented with the host's virtual memory: reserved addresses are a mapping
 * without access, physical memory is a memfd, and map, unmap and set_access call mmap() and
 * mprotect(). Accesses that are invalid on a device therefore fault here too.
 *
 * A mapping is a block in the register of addresses, so that copies and mem_pointer_info see it
 * like any other device memory. The block has a reference to its physical memory, whose handle may
 * be destroyed while it is mapped; the memory is then freed with its last mapping. All devices
 * share one address space, so the last call of set_access determines the access to a range, for any
 * device.
 */
#include "mock.h"

#include <sys/mman.h>
#include <unistd.h>

struct mock_reservation {
    struct mock_reservation *next;
    char *base;
    uint64_t size_bytes;
};

struct ds_accel_plugin_vmem {
    ds_accel_plugin_device_t *device;
    uint64_t size_bytes;
    uint32_t references; /* one for the caller, and one for each mapping */
    int fd;
};

static int is_multiple(uint64_t value)
{
    return value % MOCK_GRANULARITY_BYTES == 0;
}

static int32_t check_range(const void *address, uint64_t size_bytes, const char *slot,
                           struct ds_accel_error *error)
{
    if (address == NULL || size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)address ||
        !is_multiple(size_bytes) || !is_multiple((uintptr_t)address)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p with %llu bytes is not a range of the granularity, %llu bytes",
                           slot, address, (unsigned long long)size_bytes,
                           (unsigned long long)MOCK_GRANULARITY_BYTES);
    }
    return DS_ACCEL_OK;
}

/*
 * Non-zero if one of the device's reservations contains the whole range. Caller holds
 * instance->lock.
 */
static int is_reserved_on(const ds_accel_plugin_device_t *device, const void *address,
                          uint64_t size_bytes)
{
    const struct mock_reservation *reservation = device->reservations;

    for (; reservation != NULL; reservation = reservation->next) {
        uint64_t offset = (uintptr_t)address - (uintptr_t)reservation->base;

        if ((uintptr_t)address >= (uintptr_t)reservation->base &&
            offset < reservation->size_bytes && size_bytes <= reservation->size_bytes - offset) {
            return 1;
        }
    }
    return 0;
}

/* Non-zero if a reservation of any device contains the whole range. Caller holds instance->lock. */
static int is_reserved(const ds_accel_plugin_instance_t *instance, const void *address,
                       uint64_t size_bytes)
{
    for (uint64_t i = 0; i < instance->options.device_count; i++) {
        if (is_reserved_on(&instance->devices[i], address, size_bytes)) {
            return 1;
        }
    }
    return 0;
}

/* Non-zero if the range consists of one or more whole mappings. Caller holds instance->lock. */
static int is_mapped_whole(const ds_accel_plugin_instance_t *instance, const char *address,
                           uint64_t size_bytes)
{
    const char *position = address;
    uint64_t left = size_bytes;

    while (left > 0) {
        const struct mock_block *block = mock_block_find(instance, position);

        if (block == NULL || block->source != MOCK_SOURCE_MAPPING || block->base != position ||
            block->size_bytes > left) {
            return 0;
        }
        position += block->size_bytes;
        left -= block->size_bytes;
    }
    return 1;
}

/* Unmaps the pages of the range; the addresses stay reserved. */
static int map_nothing(void *address, uint64_t size_bytes)
{
    void *result = mmap(address, (size_t)size_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    return result == MAP_FAILED ? -1 : 0;
}

/*
 * Checks the flags of physical memory. Exportable memory is not supported, because the mock never
 * shares physical memory with another process.
 */
static int32_t check_flags(const char *slot, uint32_t flags, struct ds_accel_error *error)
{
    if (flags == DS_ACCEL_VMEM_EXPORTABLE) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED, "%s: exportable memory", slot);
    }
    return flags == 0
               ? DS_ACCEL_OK
               : plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown flags 0x%x", slot, flags);
}

static int32_t mock_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                                     uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                     struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "vmem_granularity", error);

    if (status < 0) {
        return status;
    }
    if (minimum_bytes_out == NULL || recommended_bytes_out == NULL) {
        return mock_null(error, "vmem_granularity", "minimum_bytes_out or recommended_bytes_out");
    }
    status = check_flags("vmem_granularity", flags, error);
    if (status < 0) {
        return status;
    }
    *minimum_bytes_out = MOCK_GRANULARITY_BYTES;
    *recommended_bytes_out = MOCK_GRANULARITY_BYTES;
    return DS_ACCEL_OK;
}

/*
 * Reserves an aligned range of addresses; returns NULL on failure. mmap() aligns only to pages, so
 * the function reserves a larger range and releases the parts before and after the aligned range.
 */
char *mock_reserve_aligned(uint64_t size_bytes, uint64_t align_bytes)
{
    uint64_t asked = size_bytes + align_bytes;
    uint64_t before;
    char *start;

    if (asked < size_bytes || asked > PTRDIFF_MAX) {
        return NULL;
    }
    start =
        mmap(NULL, (size_t)asked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    before = (align_bytes - (uintptr_t)start % align_bytes) % align_bytes;
    if (before > 0) {
        munmap(start, (size_t)before);
    }
    munmap(start + before + size_bytes, (size_t)(align_bytes - before));
    return start + before;
}

static int32_t mock_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint64_t align_bytes, void *hint, uint32_t flags,
                                 void **address_out, struct ds_accel_error *error)
{
    const char *slot = "vmem_reserve";
    uint64_t align = mock_max_u64(align_bytes, MOCK_GRANULARITY_BYTES);
    struct mock_reservation *reservation;
    int32_t status = mock_enter_device(device, slot, error);

    if (status < 0) {
        return status;
    }
    (void)hint; /* a plugin may ignore the hint */
    if (address_out == NULL || size_bytes == 0 || flags != 0 || !is_multiple(size_bytes) ||
        (align_bytes & (align_bytes - 1)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: address_out is NULL, size %llu is not a multiple of %llu or "
                           "alignment %llu no power of two",
                           slot, (unsigned long long)size_bytes,
                           (unsigned long long)MOCK_GRANULARITY_BYTES,
                           (unsigned long long)align_bytes);
    }
    reservation = calloc(1, sizeof(*reservation));
    if (reservation != NULL) {
        reservation->base = mock_reserve_aligned(size_bytes, align);
    }
    if (reservation == NULL || reservation->base == NULL) {
        free(reservation);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no %llu bytes of addresses", slot,
                           (unsigned long long)size_bytes);
    }
    reservation->size_bytes = size_bytes;
    pthread_mutex_lock(&device->instance->lock);
    reservation->next = device->reservations;
    device->reservations = reservation;
    pthread_mutex_unlock(&device->instance->lock);
    *address_out = reservation->base;
    return DS_ACCEL_OK;
}

static int32_t mock_vmem_unreserve(ds_accel_plugin_device_t *device, void *address,
                                   uint64_t size_bytes, struct ds_accel_error *error)
{
    struct mock_reservation **link;
    struct mock_reservation *reservation = NULL;
    int32_t status = mock_enter_device(device, "vmem_release", error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    for (link = &device->reservations; *link != NULL; link = &(*link)->next) {
        if ((*link)->base == address && (*link)->size_bytes == size_bytes) {
            break;
        }
    }
    if (*link == NULL) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (mock_block_overlaps(device->instance, address, size_bytes)) {
        status = DS_ACCEL_ERR_BUSY;
    } else {
        reservation = *link;
        *link = reservation->next;
        munmap(reservation->base, (size_t)reservation->size_bytes);
    }
    pthread_mutex_unlock(&device->instance->lock);
    free(reservation);
    if (status < 0) {
        return plugin_fail(error, status, "vmem_release: %p with %llu bytes is %s of device %u",
                           address, (unsigned long long)size_bytes,
                           status == DS_ACCEL_ERR_BUSY ? "still mapped in the reservation"
                                                       : "no reservation",
                           device->index);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint32_t flags, ds_accel_plugin_vmem_t **vmem_out,
                                struct ds_accel_error *error)
{
    const char *slot = "vmem_create";
    ds_accel_plugin_vmem_t *vmem;
    int is_taken = 0;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return mock_usage_refuse(device, size_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    status = check_flags(slot, flags, error);
    if (status < 0) {
        return status;
    }
    if (vmem_out == NULL || size_bytes == 0 || !is_multiple(size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: vmem_out is NULL or size %llu is not a multiple of %llu", slot,
                           (unsigned long long)size_bytes,
                           (unsigned long long)MOCK_GRANULARITY_BYTES);
    }
    vmem = calloc(1, sizeof(*vmem));
    if (vmem == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory for the handle", slot);
    }
    *vmem = (struct ds_accel_plugin_vmem){
        .device = device, .size_bytes = size_bytes, .references = 1, .fd = -1};
    pthread_mutex_lock(&device->instance->lock);
    if (mock_usage_fits(device, size_bytes)) {
        vmem->fd = mock_file_create(size_bytes);
        is_taken = vmem->fd >= 0;
    }
    if (is_taken) {
        mock_usage_take(device, size_bytes);
    }
    pthread_mutex_unlock(&device->instance->lock);
    if (!is_taken) {
        free(vmem);
        return mock_usage_refuse(device, size_bytes, slot, error);
    }
    *vmem_out = vmem;
    return DS_ACCEL_OK;
}

void mock_vmem_put(ds_accel_plugin_vmem_t *vmem)
{
    vmem->references--;
    if (vmem->references == 0) {
        mock_usage_give(vmem->device, vmem->size_bytes);
        close(vmem->fd);
        free(vmem);
    }
}

static void mock_vmem_destroy(ds_accel_plugin_vmem_t *vmem)
{
    ds_accel_plugin_instance_t *instance;

    if (vmem == NULL) {
        return;
    }
    instance = vmem->device->instance;
    pthread_mutex_lock(&instance->lock);
    mock_vmem_put(vmem);
    pthread_mutex_unlock(&instance->lock);
}

/* Maps the block at its address. Returns NULL, or the error. Caller holds instance->lock. */
static const char *map_memory(ds_accel_plugin_instance_t *instance, const struct mock_block *block,
                              uint64_t offset_bytes)
{
    void *address = block->base;

    if (!is_reserved(instance, address, block->size_bytes)) {
        return "the range is not in a reservation";
    }
    if (mock_block_overlaps(instance, address, block->size_bytes)) {
        return "a part of the range is mapped already";
    }
    if (mock_block_insert(instance, block) != 0) {
        return "no memory for the register";
    }
    if (mmap(address, (size_t)block->size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, block->vmem->fd,
             (off_t)offset_bytes) == MAP_FAILED) {
        mock_block_remove(instance, mock_block_find(instance, address));
        return "mmap() failed";
    }
    block->vmem->references++;
    return NULL;
}

static int32_t mock_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                             ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                             struct ds_accel_error *error)
{
    const char *problem;
    struct mock_block block = {.base = address,
                               .size_bytes = size_bytes,
                               .kind = DS_ACCEL_POINTER_DEVICE,
                               .source = MOCK_SOURCE_MAPPING,
                               .access = DS_ACCEL_VMEM_ACCESS_NONE,
                               .vmem = vmem};
    int32_t status = mock_enter_device(device, "vmem_map", error);

    if (status == DS_ACCEL_OK) {
        status = check_range(address, size_bytes, "vmem_map", error);
    }
    if (status < 0) {
        return status;
    }
    if (vmem == NULL || vmem->device->instance != device->instance ||
        !is_multiple(vmem_offset_bytes) || vmem_offset_bytes > vmem->size_bytes ||
        size_bytes > vmem->size_bytes - vmem_offset_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: vmem is NULL or of another instance, or has no %llu bytes at "
                           "offset %llu",
                           (unsigned long long)size_bytes, (unsigned long long)vmem_offset_bytes);
    }
    block.device = vmem->device;
    pthread_mutex_lock(&device->instance->lock);
    problem = map_memory(device->instance, &block, vmem_offset_bytes);
    pthread_mutex_unlock(&device->instance->lock);
    if (problem != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "vmem_map: %p with %llu bytes: %s", address,
                           (unsigned long long)size_bytes, problem);
    }
    return DS_ACCEL_OK;
}

/* Removes the mappings of a range that consists of whole mappings. Caller holds instance->lock. */
static void unmap_memory(ds_accel_plugin_instance_t *instance, char *address, uint64_t size_bytes)
{
    uint64_t done = 0;

    while (done < size_bytes) {
        struct mock_block *block = mock_block_find(instance, address + done);

        done += block->size_bytes;
        mock_vmem_put(block->vmem);
        mock_block_remove(instance, block);
    }
}

static int32_t mock_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                               struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    int32_t status = mock_enter_device(device, "vmem_unmap", error);

    if (status == DS_ACCEL_OK) {
        status = check_range(address, size_bytes, "vmem_unmap", error);
    }
    if (status < 0) {
        return status;
    }
    instance = device->instance;
    pthread_mutex_lock(&instance->lock);
    if (!is_mapped_whole(instance, address, size_bytes)) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (map_nothing(address, size_bytes) != 0) {
        status = DS_ACCEL_ERR_DRIVER;
    } else {
        unmap_memory(instance, address, size_bytes);
    }
    pthread_mutex_unlock(&instance->lock);
    if (status < 0) {
        return plugin_fail(error, status, "vmem_unmap: %p with %llu bytes: %s", address,
                           (unsigned long long)size_bytes,
                           status == DS_ACCEL_ERR_INVALID ? "not whole mappings" : "mmap() failed");
    }
    return DS_ACCEL_OK;
}

/* Sets the access of a range that consists of whole mappings. Caller holds instance->lock. */
static int32_t protect_memory(ds_accel_plugin_instance_t *instance, char *address,
                              uint64_t size_bytes, uint32_t access)
{
    int protection = PROT_NONE;
    uint64_t done = 0;

    if (access == DS_ACCEL_VMEM_ACCESS_READ) {
        protection = PROT_READ;
    } else if (access == DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        protection = PROT_READ | PROT_WRITE;
    }
    if (mprotect(address, (size_t)size_bytes, protection) != 0) {
        return DS_ACCEL_ERR_DRIVER;
    }
    while (done < size_bytes) {
        struct mock_block *block = mock_block_find(instance, address + done);

        block->access = access;
        done += block->size_bytes;
    }
    return DS_ACCEL_OK;
}

static int32_t mock_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address,
                                    uint64_t size_bytes, uint32_t access,
                                    struct ds_accel_error *error)
{
    const char *slot = "vmem_set_access";
    int32_t status = mock_enter_device(accessor, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_range(address, size_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (access != DS_ACCEL_VMEM_ACCESS_NONE && access != DS_ACCEL_VMEM_ACCESS_READ &&
        access != DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown access %u", slot, access);
    }
    pthread_mutex_lock(&accessor->instance->lock);
    status = is_mapped_whole(accessor->instance, address, size_bytes)
                 ? protect_memory(accessor->instance, address, size_bytes, access)
                 : DS_ACCEL_ERR_INVALID;
    pthread_mutex_unlock(&accessor->instance->lock);
    if (status < 0) {
        return plugin_fail(error, status, "%s: %p with %llu bytes: %s", slot, address,
                           (unsigned long long)size_bytes,
                           status == DS_ACCEL_ERR_INVALID ? "not whole mappings"
                                                          : "mprotect() failed");
    }
    return DS_ACCEL_OK;
}

void mock_vmem_release(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_instance_t *instance = device->instance;

    /*
     * Release mappings of the device's memory, which may be at addresses that another device
     * reserved, and mappings of other devices' memory at addresses that this device reserved.
     */
    for (size_t i = instance->block_count; i > 0; i--) {
        struct mock_block *block = &instance->blocks[i - 1];
        void *base = block->base;
        uint64_t size_bytes = block->size_bytes;

        if (block->source == MOCK_SOURCE_MAPPING &&
            (block->device == device || is_reserved_on(device, base, size_bytes))) {
            map_nothing(base, size_bytes);
            unmap_memory(instance, base, size_bytes);
        }
    }
    while (device->reservations != NULL) {
        struct mock_reservation *reservation = device->reservations;

        device->reservations = reservation->next;
        munmap(reservation->base, (size_t)reservation->size_bytes);
        free(reservation);
    }
}

void mock_vmem_fill(struct ds_accel_plugin *table)
{
    table->vmem_granularity = mock_vmem_granularity;
    table->vmem_reserve = mock_vmem_reserve;
    table->vmem_release = mock_vmem_unreserve;
    table->vmem_create = mock_vmem_create;
    table->vmem_destroy = mock_vmem_destroy;
    table->vmem_map = mock_vmem_map;
    table->vmem_unmap = mock_vmem_unmap;
    table->vmem_set_access = mock_vmem_set_access;
}
