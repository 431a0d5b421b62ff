/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory. HIP maps a handle only from its beginning: hipMemMap() rejects every offset
 * except 0. The plugin therefore builds memory from pieces of equal size, each with its own handle,
 * and maps and unmaps piece by piece, as 6.x releases require. Access is set for a whole range at
 * once.
 *
 * The memory is not exportable: the plugin has no call that shares it with another process.
 */
#include "rocm.h"

int rocm_has_vmem(const struct hip_api *hip)
{
    return hip->hipMemGetAllocationGranularity != NULL && hip->hipMemAddressReserve != NULL &&
           hip->hipMemAddressFree != NULL && hip->hipMemCreate != NULL &&
           hip->hipMemRelease != NULL && hip->hipMemMap != NULL && hip->hipMemUnmap != NULL &&
           hip->hipMemSetAccess != NULL;
}

/*
 * Returns ERR_UNSUPPORTED if the instance's flag is not set, because a function is missing or the
 * runtime is older than 6.0, or the device's flag is not set, because the device has no virtual
 * memory.
 */
static int32_t check_vmem(const ds_accel_plugin_device_t *device, const char *slot,
                          struct ds_accel_error *error)
{
    if ((device->instance->flags & DS_ACCEL_FLAG_VIRTUAL_MEMORY) == 0) {
        return vendor_unsupported(error, slot,
                                  "libamdhip64 is older than ROCm 6.0, or lacks hipMemCreate");
    }
    if ((device->info.flags & DS_ACCEL_FLAG_VIRTUAL_MEMORY) == 0) {
        return vendor_unsupported(error, slot, "the device has no virtual memory management");
    }
    return DS_ACCEL_OK;
}

static struct hip_allocation describe(const ds_accel_plugin_device_t *device)
{
    struct hip_allocation how;

    memset(&how, 0, sizeof(how));
    how.type = HIP_ALLOCATION_PINNED;
    how.location.type = HIP_LOCATION_DEVICE;
    how.location.device = (int)device->index;
    return how;
}

/*
 * The plugin reports the recommended granularity as the minimum, and uses it as the size of a
 * piece: HIP's minimum may be one page, and a handle for each page would be too many. A
 * recommendation below PIECE_BYTES_MIN is raised to it.
 */
#define PIECE_BYTES_MIN ((size_t)2 << 20)

static int32_t piece_size(ds_accel_plugin_device_t *device, const char *slot,
                          uint64_t *piece_bytes_out, struct ds_accel_error *error)
{
    const struct hip_allocation how = describe(device);
    size_t bytes = 0;
    int32_t status = check_vmem(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = ROCM_CHECK(device,
                            HIP_OF(device)->hipMemGetAllocationGranularity(
                                &bytes, &how, HIP_GRANULARITY_RECOMMENDED),
                            error, "hipMemGetAllocationGranularity(device %u, recommended)",
                            device->index);
    }
    if (status == DS_ACCEL_OK && bytes == 0) {
        status = plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                             "%s: hipMemGetAllocationGranularity(device %u) returned 0", slot,
                             device->index);
    }
    if (status == DS_ACCEL_OK) {
        *piece_bytes_out = bytes > PIECE_BYTES_MIN ? bytes : PIECE_BYTES_MIN;
    }
    return status;
}

int32_t rocm_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                              uint64_t *minimum_out, uint64_t *recommended_out,
                              struct ds_accel_error *error)
{
    int32_t status = piece_size(device, "vmem_granularity", minimum_out, error);

    (void)flags; /* the granularity does not depend on flags: vmem_create() accepts none */
    *recommended_out = *minimum_out;
    return status;
}

/* -- records of reserved and mapped addresses -- */

/*
 * A record in one of struct rocm's two lists, reserved and half_unmapped. The plugin releases only
 * addresses in reserved, because 6.x runtimes crash on an address that they did not return. In
 * half_unmapped, bytes is the number of bytes that are unmapped already.
 */
struct rocm_note {
    struct rocm_note *next;
    void *address;
    uint64_t bytes;
};

/* Removes the address's note from the list and returns it; NULL: not found. */
static struct rocm_note *take_note(struct rocm *rocm, struct rocm_note **place, const void *address)
{
    struct rocm_note *note;

    pthread_mutex_lock(&rocm->lock);
    while (*place != NULL && (*place)->address != address) {
        place = &(*place)->next;
    }
    note = *place;
    if (note != NULL) {
        *place = note->next;
    }
    pthread_mutex_unlock(&rocm->lock);
    return note;
}

static void put_note(struct rocm *rocm, struct rocm_note **list, struct rocm_note *note)
{
    pthread_mutex_lock(&rocm->lock);
    note->next = *list;
    *list = note;
    pthread_mutex_unlock(&rocm->lock);
}

static void free_notes(struct rocm_note *note)
{
    while (note != NULL) {
        struct rocm_note *next = note->next;

        free(note);
        note = next;
    }
}

void rocm_vmem_close(struct rocm *rocm)
{
    free_notes(rocm->reserved);
    free_notes(rocm->half_unmapped);
}

/* -- addresses -- */

/*
 * Reserves addresses. Some releases ignore the alignment; if the address is not aligned, the
 * function releases it and fails.
 */
static int32_t reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint64_t align_bytes,
                       void *hint, void **address_out, struct ds_accel_error *error)
{
    const struct hip_api *hip = HIP_OF(device);
    void *address = NULL;
    int32_t status =
        ROCM_CHECK(device, hip->hipMemAddressReserve(&address, size_bytes, align_bytes, hint, 0),
                   error, "hipMemAddressReserve(%llu bytes, alignment %llu)",
                   (unsigned long long)size_bytes, (unsigned long long)align_bytes);

    if (status < 0) {
        return status;
    }
    if (((uintptr_t)address & (align_bytes - 1)) != 0) {
        (void)cuda_shaped_code(&ROCM_OF(device)->shaped,
                               hip->hipMemAddressFree(address, size_bytes));
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "vmem_reserve: hipMemAddressReserve returned %p, not aligned to %llu",
                           address, (unsigned long long)align_bytes);
    }
    *address_out = address;
    return DS_ACCEL_OK;
}

/* The reserved range is aligned at least to the size of a piece. */
int32_t rocm_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                          uint64_t align_bytes, void *hint, void **address_out,
                          struct ds_accel_error *error)
{
    struct rocm *rocm = ROCM_OF(device);
    struct rocm_note *note;
    uint64_t piece = 0;
    int32_t status = piece_size(device, "vmem_reserve", &piece, error);

    if (status < 0) {
        return status;
    }
    note = calloc(1, sizeof(*note));
    if (note == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_reserve: no host memory");
    }
    note->bytes = size_bytes;
    status = reserve(device, size_bytes, align_bytes > piece ? align_bytes : piece, hint,
                     &note->address, error);
    if (status < 0) {
        free(note);
        return status;
    }
    *address_out = note->address;
    put_note(rocm, &rocm->reserved, note);
    return DS_ACCEL_OK;
}

int32_t rocm_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    struct rocm *rocm = ROCM_OF(device);
    struct rocm_note *note = take_note(rocm, &rocm->reserved, address);
    int32_t status;

    if (note != NULL && note->bytes == size_bytes) {
        status = ROCM_CHECK(device, rocm->hip.hipMemAddressFree(address, size_bytes), error,
                            "hipMemAddressFree(%p, %llu bytes)", address,
                            (unsigned long long)size_bytes);
    } else {
        status = plugin_fail(error, DS_ACCEL_ERR_INVALID,
                             "vmem_release: %p with %llu bytes was not reserved", address,
                             (unsigned long long)size_bytes);
    }
    if (status < 0 && note != NULL) {
        put_note(rocm, &rocm->reserved, note);
    } else {
        free(note);
    }
    return status;
}

/* -- physical memory -- */

/* The object that native points to. */
struct physical {
    uint64_t piece_bytes;
    uint64_t piece_count;
    hip_physical_t pieces[];
};

void rocm_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct physical *memory = native;

    for (uint64_t i = 0; i < memory->piece_count; i++) {
        (void)cuda_shaped_code(&ROCM_OF(device)->shaped,
                               HIP_OF(device)->hipMemRelease(memory->pieces[i]));
    }
    free(memory);
}

static int32_t make_pieces(ds_accel_plugin_device_t *device, struct physical *memory,
                           uint64_t count, struct ds_accel_error *error)
{
    const struct hip_allocation how = describe(device);

    for (uint64_t i = 0; i < count; i++) {
        int32_t status = ROCM_CHECK(
            device, HIP_OF(device)->hipMemCreate(&memory->pieces[i], memory->piece_bytes, &how, 0),
            error, "hipMemCreate(%llu bytes, piece %llu of %llu, device %u)",
            (unsigned long long)memory->piece_bytes, (unsigned long long)i + 1,
            (unsigned long long)count, device->index);

        if (status < 0) {
            return status;
        }
        memory->piece_count++;
    }
    return DS_ACCEL_OK;
}

/*
 * Checks the size and returns the size of a piece. A request for more memory than is free fails
 * before the first piece is created, so that a request that cannot succeed does not temporarily
 * occupy memory that other programs need.
 */
static int32_t check_size(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                          uint64_t *piece_bytes_out, struct ds_accel_error *error)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int32_t status = piece_size(device, "vmem_create", piece_bytes_out, error);

    if (status == DS_ACCEL_OK) {
        status = cuda_shaped_memory_info(device, &free_bytes, &total_bytes, error);
    }
    if (status < 0 || *piece_bytes_out == 0) {
        return status;
    }
    if (size_bytes % *piece_bytes_out != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_create: %llu bytes are no multiple of the granularity, %llu",
                           (unsigned long long)size_bytes, (unsigned long long)*piece_bytes_out);
    }
    if (size_bytes > free_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "vmem_create: device %u: requested %llu bytes, %llu are free",
                           device->index, (unsigned long long)size_bytes,
                           (unsigned long long)free_bytes);
    }
    return DS_ACCEL_OK;
}

int32_t rocm_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **native_out, struct ds_accel_error *error)
{
    struct physical *memory;
    uint64_t piece = 0;
    uint64_t count;
    int32_t status;

    if ((flags & DS_ACCEL_VMEM_EXPORTABLE) != 0) {
        return vendor_unsupported(error, "vmem_create",
                                  "nothing exports HIP's mapped memory from here");
    }
    status = check_size(device, size_bytes, &piece, error);
    if (status < 0 || piece == 0) {
        return status;
    }
    count = size_bytes / piece;
    memory = calloc(1, sizeof(*memory) + (size_t)count * sizeof(memory->pieces[0]));
    if (memory == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_create: no host memory");
    }
    memory->piece_bytes = piece;
    status = make_pieces(device, memory, count, error);
    if (status < 0) {
        rocm_vmem_destroy(device, memory);
        return status;
    }
    *native_out = memory;
    return DS_ACCEL_OK;
}

/* -- mappings -- */

/*
 * Unmaps the pieces from address + *gone_bytes on, and adds their size to *gone_bytes. Stops at the
 * first piece that fails, and returns its code.
 */
static hip_error_t unmap_pieces(ds_accel_plugin_device_t *device, char *address,
                                uint64_t size_bytes, uint64_t piece_bytes, uint64_t *gone_bytes)
{
    while (*gone_bytes < size_bytes) {
        hip_error_t code = HIP_OF(device)->hipMemUnmap(address + *gone_bytes, piece_bytes);

        if (code != HIP_SUCCESS) {
            return code;
        }
        *gone_bytes += piece_bytes;
    }
    return HIP_SUCCESS;
}

/* On failure, unmaps the pieces that were already mapped. */
int32_t rocm_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                      void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    const struct physical *memory = native;
    struct rocm *rocm = ROCM_OF(device);
    uint64_t piece = memory->piece_bytes;
    hip_error_t code = HIP_SUCCESS;
    uint64_t done = 0;
    uint64_t gone = 0;

    if (size_bytes % piece != 0 || offset_bytes % piece != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: %llu bytes at offset %llu: this memory is mapped in pieces "
                           "of %llu bytes",
                           (unsigned long long)size_bytes, (unsigned long long)offset_bytes,
                           (unsigned long long)piece);
    }
    /*
     * Free the note of an earlier mapping at this address whose unmap failed because its device was
     * lost.
     */
    free(take_note(rocm, &rocm->half_unmapped, address));
    while (done < size_bytes && code == HIP_SUCCESS) {
        code = HIP_OF(device)->hipMemMap((char *)address + done, piece, 0,
                                         memory->pieces[(offset_bytes + done) / piece], 0);
        done += code == HIP_SUCCESS ? piece : 0;
    }
    if (code != HIP_SUCCESS) {
        (void)unmap_pieces(device, address, done, piece, &gone);
    }
    return ROCM_CHECK(device, code, error, "hipMemMap(%p, %llu bytes of %llu at offset %llu)",
                      address, (unsigned long long)piece, (unsigned long long)size_bytes,
                      (unsigned long long)offset_bytes);
}

/*
 * The frame passes the range of one mapping, which therefore consists of pieces of this device's
 * memory. When a piece fails, the number of unmapped bytes is recorded, and the next attempt
 * continues there.
 */
int32_t rocm_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        struct ds_accel_error *error)
{
    struct rocm *rocm = ROCM_OF(device);
    struct rocm_note *gone;
    uint64_t piece = 0;
    int32_t status = piece_size(device, "vmem_unmap", &piece, error);

    if (status < 0 || piece == 0) {
        return status;
    }
    gone = take_note(rocm, &rocm->half_unmapped, address);
    if (gone == NULL) {
        gone = calloc(1, sizeof(*gone));
    }
    if (gone == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_unmap: no host memory");
    }
    gone->address = address;
    status = ROCM_CHECK(device, unmap_pieces(device, address, size_bytes, piece, &gone->bytes),
                        error, "hipMemUnmap(%p, %llu bytes in pieces of %llu)", address,
                        (unsigned long long)size_bytes, (unsigned long long)piece);
    if (status < 0 && gone->bytes > 0) {
        put_note(rocm, &rocm->half_unmapped, gone);
    } else {
        free(gone);
    }
    return status;
}

int32_t rocm_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                             uint32_t access, struct ds_accel_error *error)
{
    const struct hip_access wanted = {{HIP_LOCATION_DEVICE, (int)accessor->index}, (int)access};
    int32_t status = check_vmem(accessor, "vmem_set_access", error);

    return status < 0
               ? status
               : ROCM_CHECK(accessor,
                            HIP_OF(accessor)->hipMemSetAccess(address, size_bytes, &wanted, 1),
                            error, "hipMemSetAccess(%p, %llu bytes, device %u, access %u)", address,
                            (unsigned long long)size_bytes, accessor->index, access);
}
