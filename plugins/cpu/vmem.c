/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory: addresses are a mapping without access, physical memory is a memfd, and map,
 * unmap and set_access are mmap() and mprotect(). The kernel gives pages of a memfd when they are
 * touched, as it does for other memory, so that unused memory costs only its share of the device's
 * limit.
 *
 * A mapping is a block in the register (block.c), so that mem_pointer_info() finds it like any
 * other device memory. It has a reference to its physical memory: the memory may be destroyed while
 * it is mapped, and is released with the last mapping. There is one address space, so that the last
 * call for the range sets the access, for any device. instance->lock guards reservations, mappings
 * and references.
 *
 * With option async, queued work may use a range: unmap and set_access wait for it.
 */
#include "cpu.h"

#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define MAX_ALIGN_BYTES (UINT64_C(1) << 40)

struct cpu_reservation {
    struct cpu_reservation *next;
    char *base;
    uint64_t size_bytes;
};

struct ds_accel_plugin_vmem {
    ds_accel_plugin_device_t *device;
    uint64_t size_bytes;
    uint32_t references; /* the caller's, and one for each mapping */
    int fd;
};

/* ---- checks --------------------------------------------------------------------------------- */

static int is_multiple(uint64_t value)
{
    return value % cpu_page_bytes() == 0;
}

static int32_t check_range(const ds_accel_plugin_device_t *device, const void *address,
                           uint64_t size_bytes, const char *call, struct ds_accel_error *error)
{
    if (device == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: device is NULL", call);
    }
    if (address == NULL || size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)address ||
        !is_multiple(size_bytes) || !is_multiple((uintptr_t)address)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p with %llu bytes is not a range of the granularity, %llu bytes",
                           call, address, (unsigned long long)size_bytes,
                           (unsigned long long)cpu_page_bytes());
    }
    return DS_ACCEL_OK;
}

/* Physical memory cannot be shared with another process. */
static int32_t check_flags(const char *call, uint32_t flags, struct ds_accel_error *error)
{
    if (flags == DS_ACCEL_VMEM_EXPORTABLE) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED, "%s: exportable memory", call);
    }
    if (flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown flags 0x%x", call, flags);
    }
    return DS_ACCEL_OK;
}

/* Lock held: non-zero if one of the device's reservations holds the whole range. */
static int is_reserved_on(const ds_accel_plugin_device_t *device, const char *address,
                          uint64_t size_bytes)
{
    const struct cpu_reservation *reservation = device->reservations;

    for (; reservation != NULL; reservation = reservation->next) {
        uint64_t offset = (uintptr_t)address - (uintptr_t)reservation->base;

        if ((uintptr_t)address >= (uintptr_t)reservation->base &&
            offset < reservation->size_bytes && size_bytes <= reservation->size_bytes - offset) {
            return 1;
        }
    }
    return 0;
}

/* Lock held: the same, for a reservation of any open device. */
static int is_reserved(const ds_accel_plugin_instance_t *instance, const char *address,
                       uint64_t size_bytes)
{
    for (uint32_t i = 0; i < instance->machine.device_count; i++) {
        if (instance->devices[i] != NULL &&
            is_reserved_on(instance->devices[i], address, size_bytes)) {
            return 1;
        }
    }
    return 0;
}

/* Lock held: non-zero if the range consists of one or more whole mappings. */
static int is_mapped_whole(const ds_accel_plugin_instance_t *instance, const char *address,
                           uint64_t size_bytes)
{
    while (size_bytes > 0) {
        const struct cpu_block *block = cpu_block_find(instance, address);

        if (block == NULL || block->source != CPU_SOURCE_MAPPING || block->base != address ||
            block->size_bytes > size_bytes) {
            return 0;
        }
        address += block->size_bytes;
        size_bytes -= block->size_bytes;
    }
    return 1;
}

static int32_t cpu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                                    uint64_t *minimum_bytes_out, uint64_t *recommended_bytes_out,
                                    struct ds_accel_error *error)
{
    int32_t status;

    if (device == NULL || minimum_bytes_out == NULL || recommended_bytes_out == NULL) {
        return cpu_null(error,
                        "vmem_granularity: device, minimum_bytes_out or recommended_bytes_out");
    }
    status = check_flags("vmem_granularity", flags, error);
    if (status == DS_ACCEL_OK) {
        *minimum_bytes_out = cpu_page_bytes();
        *recommended_bytes_out = HUGE_PAGE_BYTES;
    }
    return status;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int32_t cpu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint64_t align_bytes, void *hint, uint32_t flags,
                                void **address_out, struct ds_accel_error *error)
{
    struct cpu_reservation *reservation;

    (void)hint; /* only a hint */
    if (device == NULL || address_out == NULL) {
        return cpu_null(error, "vmem_reserve: device or address_out");
    }
    if (size_bytes == 0 || !is_multiple(size_bytes) || (align_bytes & (align_bytes - 1)) != 0 ||
        align_bytes > MAX_ALIGN_BYTES || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_reserve(%llu bytes, alignment %llu, flags 0x%x): expected a "
                           "multiple of %llu, 0 or a power of two, 0",
                           (unsigned long long)size_bytes, (unsigned long long)align_bytes, flags,
                           (unsigned long long)cpu_page_bytes());
    }
    reservation = calloc(1, sizeof(*reservation));
    if (reservation != NULL) {
        reservation->base =
            cpu_pages_map(size_bytes, align_bytes, PROT_NONE, &reservation->size_bytes);
    }
    if (reservation == NULL || reservation->base == NULL) {
        free(reservation);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_reserve(%llu bytes): %m",
                           (unsigned long long)size_bytes);
    }
    pthread_mutex_lock(&device->instance->lock);
    reservation->next = device->reservations;
    device->reservations = reservation;
    pthread_mutex_unlock(&device->instance->lock);
    *address_out = reservation->base;
    return DS_ACCEL_OK;
}

static int32_t cpu_vmem_unreserve(ds_accel_plugin_device_t *device, void *address,
                                  uint64_t size_bytes, struct ds_accel_error *error)
{
    struct cpu_reservation **link;
    struct cpu_reservation *reservation = NULL;
    int32_t status = check_range(device, address, size_bytes, "vmem_release", error);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    link = &device->reservations;
    while (*link != NULL &&
           ((*link)->base != (char *)address || (*link)->size_bytes != size_bytes)) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (cpu_block_overlap(device->instance, address, size_bytes) != NULL) {
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

/* ---- physical memory ------------------------------------------------------------------------ */

static int create_file(uint64_t size_bytes)
{
    int fd = memfd_create("ds_accel_cpu", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, (off_t)size_bytes) != 0) {
        const int cause = errno;

        close(fd);
        errno = cause;
        return -1;
    }
    return fd;
}

static int32_t create_vmem(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                           ds_accel_plugin_vmem_t **vmem_out, struct ds_accel_error *error)
{
    ds_accel_plugin_vmem_t *vmem = calloc(1, sizeof(*vmem));
    int32_t status;

    if (vmem != NULL) {
        vmem->fd = create_file(size_bytes);
    }
    if (vmem == NULL || vmem->fd < 0) {
        /* Running out of descriptors is a limit, not a lack of memory. */
        status = vmem != NULL && (errno == EMFILE || errno == ENFILE) ? DS_ACCEL_ERR_LIMIT
                                                                      : DS_ACCEL_ERR_NO_MEMORY;
        plugin_fail(error, status, "vmem_create(%llu bytes, device %u): %m",
                    (unsigned long long)size_bytes, device->index);
        free(vmem);
        return status;
    }
    vmem->device = device;
    vmem->size_bytes = size_bytes;
    vmem->references = 1;
    *vmem_out = vmem;
    return DS_ACCEL_OK;
}

static int32_t cpu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                               uint32_t flags, ds_accel_plugin_vmem_t **vmem_out,
                               struct ds_accel_error *error)
{
    int32_t status;

    if (device == NULL || vmem_out == NULL) {
        return cpu_null(error, "vmem_create: device or vmem_out");
    }
    status = check_flags("vmem_create", flags, error);
    if (status < 0) {
        return status;
    }
    if (size_bytes == 0 || !is_multiple(size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_create: %llu bytes are no multiple of %llu",
                           (unsigned long long)size_bytes, (unsigned long long)cpu_page_bytes());
    }
    status = cpu_memory_charge(device, size_bytes, "vmem_create", error);
    if (status == DS_ACCEL_OK) {
        status = create_vmem(device, size_bytes, vmem_out, error);
        if (status < 0) {
            cpu_memory_uncharge(device, size_bytes);
        }
    }
    cpu_memory_count(device, status);
    return status;
}

/* Lock held. */
static void put_vmem(ds_accel_plugin_vmem_t *vmem)
{
    if (--vmem->references == 0) {
        vmem->device->live_bytes -= vmem->size_bytes;
        vmem->device->free_count++;
        close(vmem->fd);
        free(vmem);
    }
}

static void cpu_vmem_destroy(ds_accel_plugin_vmem_t *vmem)
{
    ds_accel_plugin_instance_t *instance;

    if (vmem != NULL) {
        instance = vmem->device->instance;
        pthread_mutex_lock(&instance->lock);
        put_vmem(vmem);
        pthread_mutex_unlock(&instance->lock);
    }
}

/* ---- mappings ------------------------------------------------------------------------------- */

/* Lock held. Takes the block on DS_ACCEL_OK. */
static int32_t map_block(ds_accel_plugin_instance_t *instance, struct cpu_block *block,
                         uint64_t offset_bytes, struct ds_accel_error *error)
{
    const unsigned long long size = block->size_bytes;
    char *address = block->base;

    if (!is_reserved(instance, address, block->size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: %p with %llu bytes is not in a reservation", (void *)address,
                           size);
    }
    if (cpu_block_overlap(instance, address, block->size_bytes) != NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: a part of %p with %llu bytes is mapped already",
                           (void *)address, size);
    }
    if (cpu_block_insert(instance, block) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "vmem_map: no memory to note the mapping");
    }
    if (mmap(address, (size_t)block->size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, block->vmem->fd,
             (off_t)offset_bytes) == MAP_FAILED) {
        cpu_block_remove(instance, block);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_map: %p with %llu bytes: mmap: %m",
                           (void *)address, size);
    }
    block->vmem->references++;
    return DS_ACCEL_OK;
}

static int32_t cpu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                            ds_accel_plugin_vmem_t *vmem, uint64_t vmem_offset_bytes,
                            struct ds_accel_error *error)
{
    struct cpu_block *block;
    int32_t status = check_range(device, address, size_bytes, "vmem_map", error);

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
    block = cpu_block_create(vmem->device, size_bytes, DS_ACCEL_POINTER_DEVICE, CPU_SOURCE_MAPPING);
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "vmem_map: no memory to note the mapping");
    }
    block->base = address;
    block->vmem = vmem;
    pthread_mutex_lock(&device->instance->lock);
    status = map_block(device->instance, block, vmem_offset_bytes, error);
    pthread_mutex_unlock(&device->instance->lock);
    if (status < 0) {
        free(block);
        return status;
    }
    /* The kernel keeps the pages with the file, for other mappings of the same bytes. */
    cpu_place_pages(vmem->device, address, size_bytes);
    return DS_ACCEL_OK;
}

/* Unmap the pages of a range; the addresses stay reserved. */
static int map_nothing(char *address, uint64_t size_bytes)
{
    void *result = mmap(address, (size_t)size_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    return result == MAP_FAILED ? -1 : 0;
}

/* Lock held; the range consists of whole mappings. */
static void forget_mappings(ds_accel_plugin_instance_t *instance, const char *address,
                            uint64_t size_bytes)
{
    while (size_bytes > 0) {
        struct cpu_block *block = cpu_block_find(instance, address);

        address += block->size_bytes;
        size_bytes -= block->size_bytes;
        cpu_block_remove(instance, block);
        put_vmem(block->vmem);
        free(block);
    }
}

static int32_t fail_range(const char *call, int32_t status, const void *address,
                          uint64_t size_bytes, struct ds_accel_error *error)
{
    if (status == DS_ACCEL_ERR_INVALID) {
        return plugin_fail(error, status, "%s: %p with %llu bytes: not whole mappings", call,
                           address, (unsigned long long)size_bytes);
    }
    return plugin_fail(error, status, "%s: %p with %llu bytes: %m", call, address,
                       (unsigned long long)size_bytes);
}

static int32_t cpu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                              struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    int32_t status = check_range(device, address, size_bytes, "vmem_unmap", error);

    if (status < 0) {
        return status;
    }
    instance = device->instance;
    status = cpu_queues_wait(instance, NULL, CPU_NEVER, "vmem_unmap", error);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&instance->lock);
    if (!is_mapped_whole(instance, address, size_bytes)) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (map_nothing(address, size_bytes) != 0) {
        status = DS_ACCEL_ERR_NO_MEMORY;
    } else {
        forget_mappings(instance, address, size_bytes);
    }
    pthread_mutex_unlock(&instance->lock);
    return status < 0 ? fail_range("vmem_unmap", status, address, size_bytes, error) : DS_ACCEL_OK;
}

static int32_t cpu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address,
                                   uint64_t size_bytes, uint32_t access,
                                   struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    int protection = PROT_READ | PROT_WRITE;
    int32_t status = check_range(accessor, address, size_bytes, "vmem_set_access", error);

    if (status < 0) {
        return status;
    }
    if (access != DS_ACCEL_VMEM_ACCESS_NONE && access != DS_ACCEL_VMEM_ACCESS_READ &&
        access != DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "vmem_set_access: unknown access %u",
                           access);
    }
    instance = accessor->instance;
    if (access != DS_ACCEL_VMEM_ACCESS_READ_WRITE) {
        protection = access == DS_ACCEL_VMEM_ACCESS_READ ? PROT_READ : PROT_NONE;
        status = cpu_queues_wait(instance, NULL, CPU_NEVER, "vmem_set_access", error);
    }
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&instance->lock);
    if (!is_mapped_whole(instance, address, size_bytes)) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (mprotect(address, (size_t)size_bytes, protection) != 0) {
        status = DS_ACCEL_ERR_NO_MEMORY;
    }
    pthread_mutex_unlock(&instance->lock);
    return status < 0 ? fail_range("vmem_set_access", status, address, size_bytes, error)
                      : DS_ACCEL_OK;
}

void cpu_vmem_release(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_instance_t *instance = device->instance;

    pthread_mutex_lock(&instance->lock);
    /* The device's memory may be mapped to addresses that another device reserved, and the
       reverse. */
    for (size_t i = instance->block_count; i > 0; i--) {
        struct cpu_block *block = instance->blocks[i - 1];
        char *base = block->base;
        const uint64_t size_bytes = block->size_bytes;

        if (block->source == CPU_SOURCE_MAPPING &&
            (block->device == device || is_reserved_on(device, base, size_bytes))) {
            map_nothing(base, size_bytes);
            forget_mappings(instance, base, size_bytes);
        }
    }
    while (device->reservations != NULL) {
        struct cpu_reservation *reservation = device->reservations;

        device->reservations = reservation->next;
        munmap(reservation->base, (size_t)reservation->size_bytes);
        free(reservation);
    }
    pthread_mutex_unlock(&instance->lock);
}

void cpu_vmem_fill(struct ds_accel_plugin *table)
{
    table->vmem_granularity = cpu_vmem_granularity;
    table->vmem_reserve = cpu_vmem_reserve;
    table->vmem_release = cpu_vmem_unreserve;
    table->vmem_create = cpu_vmem_create;
    table->vmem_destroy = cpu_vmem_destroy;
    table->vmem_map = cpu_vmem_map;
    table->vmem_unmap = cpu_vmem_unmap;
    table->vmem_set_access = cpu_vmem_set_access;
}
