/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory: a reservation is a mapping without access, physical memory is a memfd, and
 * vmem_map, vmem_unmap and vmem_set_access call mmap() and mprotect(). As with other memory, the
 * kernel allocates the pages of a memfd when they are first accessed, so that unused memory counts
 * only against the device's limit.
 *
 * The frame has the mappings in its register and counts the references to physical memory. All
 * devices share one address space, so that the latest vmem_set_access of a range determines the
 * access of all devices. cpu->lock guards the reservations and their counts of mappings.
 *
 * With option async, queued work may use a range: in vmem_unmap and vmem_set_access the frame waits
 * for the queued work first.
 */
#include "cpu.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct cpu_reservation {
    struct cpu_reservation *next;
    char *base;
    uint64_t size_bytes;
    uint32_t mapping_count; /* number of mappings in the reservation */
    uint32_t is_closing;    /* the device is being closed: new mappings are rejected */
};

/* vmem->native */
struct cpu_vmem {
    const ds_accel_plugin_device_t *device;
    int fd;
};

/* ---- checks --------------------------------------------------------------------------------- */

static int is_multiple(uint64_t value)
{
    return value % cpu_page_bytes() == 0;
}

/* Reject all flags: physical memory can't be shared with another process. */
static int32_t check_flags(const char *call, uint32_t flags, struct ds_accel_error *error)
{
    return flags != 0 ? plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED, "%s: exportable memory", call)
                      : DS_ACCEL_OK;
}

/* Return the reservation, of any device, that contains the whole range, or NULL. The caller holds
   cpu->lock. */
static struct cpu_reservation *find_containing(const struct cpu_runtime *cpu, const char *address,
                                               uint64_t size_bytes)
{
    for (uint32_t i = 0; i < cpu->machine.device_count; i++) {
        struct cpu_reservation *reservation =
            cpu->devices[i] != NULL ? cpu->devices[i]->reservations : NULL;

        for (; reservation != NULL; reservation = reservation->next) {
            uint64_t offset = (uintptr_t)address - (uintptr_t)reservation->base;

            if ((uintptr_t)address >= (uintptr_t)reservation->base &&
                offset < reservation->size_bytes &&
                size_bytes <= reservation->size_bytes - offset) {
                return reservation;
            }
        }
    }
    return NULL;
}

int32_t cpu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error)
{
    int32_t status = check_flags("vmem_granularity", flags, error);

    (void)device;
    if (status == DS_ACCEL_OK) {
        *minimum_out = cpu_page_bytes();
        *recommended_out = HUGE_PAGE_BYTES;
    }
    return status;
}

/* ---- addresses ------------------------------------------------------------------------------ */

int32_t cpu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_reservation *reservation;

    (void)hint; /* the interface allows ignoring the hint */
    if (!is_multiple(size_bytes) || align_bytes > CPU_MAX_ALIGN_BYTES) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_reserve(%llu bytes, alignment %llu): expected a multiple of %llu, "
                           "and 0 or a power of two",
                           (unsigned long long)size_bytes, (unsigned long long)align_bytes,
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
    pthread_mutex_lock(&state->cpu->lock);
    reservation->next = state->reservations;
    state->reservations = reservation;
    pthread_mutex_unlock(&state->cpu->lock);
    *address_out = reservation->base;
    return DS_ACCEL_OK;
}

/* Return the pointer in the device's list that points to the reservation, or the list's final NULL
   pointer if there is no such reservation. The caller holds cpu->lock. */
static struct cpu_reservation **find_reservation(struct cpu_device *device, const void *address,
                                                 uint64_t size_bytes)
{
    struct cpu_reservation **link = &device->reservations;

    while (*link != NULL &&
           ((*link)->base != (const char *)address || (*link)->size_bytes != size_bytes)) {
        link = &(*link)->next;
    }
    return link;
}

static int32_t fail_unreserved(const ds_accel_plugin_device_t *device, const void *address,
                               uint64_t size_bytes, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "vmem_release: %p with %llu bytes is no reservation of device %u", address,
                       (unsigned long long)size_bytes, device->index);
}

int32_t cpu_vmem_check(ds_accel_plugin_device_t *device, const char *slot, const void *address,
                       uint64_t size_bytes, struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    int is_there = 1;

    if (!is_multiple(size_bytes) || !is_multiple((uintptr_t)address)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p with %llu bytes is not a range of the granularity, %llu bytes",
                           slot, address, (unsigned long long)size_bytes,
                           (unsigned long long)cpu_page_bytes());
    }
    if (strcmp(slot, "vmem_release") == 0) {
        pthread_mutex_lock(&state->cpu->lock);
        is_there = *find_reservation(state, address, size_bytes) != NULL;
        pthread_mutex_unlock(&state->cpu->lock);
    }
    return is_there ? DS_ACCEL_OK : fail_unreserved(device, address, size_bytes, error);
}

int32_t cpu_vmem_unreserve(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                           struct ds_accel_error *error)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_reservation *reservation;
    struct cpu_reservation **link;
    int is_mapped;

    pthread_mutex_lock(&state->cpu->lock);
    link = find_reservation(state, address, size_bytes);
    reservation = *link;
    is_mapped = reservation != NULL && reservation->mapping_count > 0;
    if (reservation != NULL && !is_mapped) {
        *link = reservation->next;
        munmap(reservation->base, (size_t)reservation->size_bytes);
    }
    pthread_mutex_unlock(&state->cpu->lock);
    if (is_mapped) { /* another thread mapped memory after the frame's check */
        return plugin_fail(error, DS_ACCEL_ERR_BUSY,
                           "vmem_release: in %p with %llu bytes something is still mapped", address,
                           (unsigned long long)size_bytes);
    }
    if (reservation == NULL) {
        return fail_unreserved(device, address, size_bytes, error);
    }
    free(reservation);
    return DS_ACCEL_OK;
}

void cpu_vmem_release(ds_accel_plugin_device_t *device)
{
    struct cpu_device *state = cpu_device(device);
    struct cpu_reservation *reservation;

    pthread_mutex_lock(&state->cpu->lock);
    for (reservation = state->reservations; reservation != NULL; reservation = reservation->next) {
        reservation->is_closing = 1;
    }
    pthread_mutex_unlock(&state->cpu->lock);
    while ((reservation = state->reservations) != NULL) {
        /* Memory of another device may be mapped in this reservation. */
        vendor_vmem_clear(device, reservation->base, reservation->size_bytes);
        pthread_mutex_lock(&state->cpu->lock);
        state->reservations = reservation->next;
        munmap(reservation->base, (size_t)reservation->size_bytes);
        pthread_mutex_unlock(&state->cpu->lock);
        free(reservation);
    }
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

int32_t cpu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error)
{
    struct cpu_vmem *vmem;
    int32_t status = check_flags("vmem_create", flags, error);

    if (status < 0) {
        return status;
    }
    if (!is_multiple(size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_create: %llu bytes are no multiple of %llu",
                           (unsigned long long)size_bytes, (unsigned long long)cpu_page_bytes());
    }
    vmem = calloc(1, sizeof(*vmem));
    if (vmem != NULL) {
        vmem->fd = create_file(size_bytes);
    }
    if (vmem == NULL || vmem->fd < 0) {
        /* Exhausted file descriptors are a limit, not a lack of memory. */
        status = vmem != NULL && (errno == EMFILE || errno == ENFILE) ? DS_ACCEL_ERR_LIMIT
                                                                      : DS_ACCEL_ERR_NO_MEMORY;
        plugin_fail(error, status, "vmem_create(%llu bytes, device %u): %m",
                    (unsigned long long)size_bytes, device->index);
        free(vmem);
        return status;
    }
    vmem->device = device;
    *native_out = vmem;
    return DS_ACCEL_OK;
}

void cpu_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct cpu_vmem *vmem = native;

    (void)device;
    close(vmem->fd);
    free(vmem);
}

/* ---- mappings ------------------------------------------------------------------------------- */

/* Map part of a file at reserved addresses; return 0, an errno of mmap(), or -1 if the addresses
   are not reserved or the reservation's device is being closed. MAP_FIXED replaces any mapping at
   the addresses, so that cpu->lock is held from the check of the reservation to the end of
   mmap(). */
static int map_reserved(struct cpu_runtime *cpu, void *address, uint64_t size_bytes, int fd,
                        uint64_t offset_bytes)
{
    struct cpu_reservation *reservation;
    int failure = 0;

    pthread_mutex_lock(&cpu->lock);
    reservation = find_containing(cpu, address, size_bytes);
    if (reservation == NULL || reservation->is_closing) {
        failure = -1;
    } else if (mmap(address, (size_t)size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd,
                    (off_t)offset_bytes) == MAP_FAILED) {
        failure = errno;
    } else {
        reservation->mapping_count++;
    }
    pthread_mutex_unlock(&cpu->lock);
    return failure;
}

int32_t cpu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    const struct cpu_vmem *vmem = native;
    int failure;

    if (!is_multiple(offset_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: vmem is NULL or of another instance, or has no %llu bytes at "
                           "offset %llu",
                           (unsigned long long)size_bytes, (unsigned long long)offset_bytes);
    }
    failure =
        map_reserved(cpu_runtime(device->instance), address, size_bytes, vmem->fd, offset_bytes);
    if (failure < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: %p with %llu bytes is not in a reservation", address,
                           (unsigned long long)size_bytes);
    }
    if (failure > 0) {
        errno = failure;
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_map: %p with %llu bytes: mmap: %m",
                           address, (unsigned long long)size_bytes);
    }
    /* The pages belong to the memfd: other mappings of the same bytes use the pages on this node
       too. */
    if (cpu_device(vmem->device) != NULL) {
        cpu_place_pages(cpu_device(vmem->device), address, size_bytes);
    }
    return DS_ACCEL_OK;
}

/* Unmap the pages of a mapping; the addresses stay reserved. */
int32_t cpu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    struct cpu_reservation *reservation;
    int failure = 0;

    pthread_mutex_lock(&cpu->lock);
    reservation = find_containing(cpu, address, size_bytes);
    assert(reservation != NULL && reservation->mapping_count > 0);
    if (mmap(address, (size_t)size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        failure = errno;
    } else {
        reservation->mapping_count--;
    }
    pthread_mutex_unlock(&cpu->lock);
    if (failure != 0) {
        errno = failure;
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_unmap: %p with %llu bytes: %m",
                           address, (unsigned long long)size_bytes);
    }
    return DS_ACCEL_OK;
}

int32_t cpu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error)
{
    const int protection = access == DS_ACCEL_VMEM_ACCESS_READ_WRITE ? PROT_READ | PROT_WRITE
                           : access == DS_ACCEL_VMEM_ACCESS_READ     ? PROT_READ
                                                                     : PROT_NONE;

    (void)accessor;
    if (mprotect(address, (size_t)size_bytes, protection) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_set_access: %p with %llu bytes: %m",
                           address, (unsigned long long)size_bytes);
    }
    return DS_ACCEL_OK;
}
