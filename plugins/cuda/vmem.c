/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory. The driver maps physical memory only from its beginning: the offset of cuMemMap()
 * must be 0. The plugin therefore builds memory from pieces of the minimum size and maps each piece
 * from its beginning. Exportable memory is one piece, since a handle or dma-buf represents one
 * piece; it is mapped whole.
 */
#include "plugin.h"

static int32_t check_vmem(const struct cuda_api *api, const char *slot,
                          struct ds_accel_error *error)
{
    return api->cuMemCreate != NULL && api->cuMemRelease != NULL &&
                   api->cuMemAddressReserve != NULL && api->cuMemAddressFree != NULL &&
                   api->cuMemMap != NULL && api->cuMemUnmap != NULL &&
                   api->cuMemSetAccess != NULL && api->cuMemGetAllocationGranularity != NULL
               ? DS_ACCEL_OK
               : vendor_unsupported(error, slot, "libcuda.so.1 has no cuMemCreate (CUDA 10.2)");
}

static cu_allocation_t describe(const ds_accel_plugin_device_t *device, uint32_t flags)
{
    const struct cuda_device *state = device->state;
    cu_allocation_t how;

    memset(&how, 0, sizeof(how));
    how.type = CU_ALLOCATION_PINNED;
    how.handle_types = (flags & DS_ACCEL_VMEM_EXPORTABLE) != 0 ? CU_HANDLE_POSIX_FD : 0;
    how.location.type = CU_LOCATION_DEVICE;
    how.location.id = state->device;
    how.rdma_capable = state->has_vmem_rdma ? 1 : 0; /* network cards can access the memory */
    return how;
}

int32_t cuda_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                              uint64_t *minimum_out, uint64_t *recommended_out,
                              struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_allocation_t how = describe(device, flags);
    size_t minimum = 0;
    size_t recommended = 0;
    int32_t status = check_vmem(api, "vmem_granularity", error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device, api->cuMemGetAllocationGranularity(&minimum, &how, CU_GRANULARITY_MINIMUM),
             error, "cuMemGetAllocationGranularity(device %u, minimum)", device->index);
    CUDA_TRY(device,
             api->cuMemGetAllocationGranularity(&recommended, &how, CU_GRANULARITY_RECOMMENDED),
             error, "cuMemGetAllocationGranularity(device %u, recommended)", device->index);
    *minimum_out = minimum;
    *recommended_out = recommended;
    return DS_ACCEL_OK;
}

int32_t cuda_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                          uint64_t align_bytes, void *hint, void **address_out,
                          struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_pointer_t address = 0;
    int32_t status = check_vmem(api, "vmem_reserve", error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device,
             api->cuMemAddressReserve(&address, (size_t)size_bytes, (size_t)align_bytes,
                                      cuda_address(hint), 0),
             error, "cuMemAddressReserve(%llu bytes, alignment %llu)",
             (unsigned long long)size_bytes, (unsigned long long)align_bytes);
    *address_out = (void *)(uintptr_t)address;
    return DS_ACCEL_OK;
}

int32_t cuda_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    int32_t status = check_vmem(api, "vmem_release", error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device, api->cuMemAddressFree(cuda_address(address), (size_t)size_bytes), error,
             "cuMemAddressFree(%p, %llu bytes)", address, (unsigned long long)size_bytes);
    return DS_ACCEL_OK;
}

/* Physical memory: the argument native of the functions below points to such a struct. */
struct physical {
    uint64_t piece_bytes;
    uint64_t piece_count;
    cu_physical_t pieces[];
};

static void release(ds_accel_plugin_device_t *device, struct physical *memory)
{
    for (uint64_t i = 0; i < memory->piece_count; i++) {
        CUDA_END(device, cuda_api_of(device)->cuMemRelease(memory->pieces[i]),
                 "cuMemRelease(piece %llu)", (unsigned long long)i);
    }
    free(memory);
}

/* Writes the size of a piece: the minimum size of memory, or size_bytes for exportable memory. */
static int32_t piece_size(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                          uint64_t *piece_bytes_out, struct ds_accel_error *error)
{
    uint64_t minimum = 0;
    uint64_t recommended = 0;
    int32_t status = cuda_vmem_granularity(device, flags, &minimum, &recommended, error);

    if (status < 0) {
        return status;
    }
    if (minimum == 0 || size_bytes % minimum != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_create: %llu bytes are no multiple of the granularity, %llu",
                           (unsigned long long)size_bytes, (unsigned long long)minimum);
    }
    *piece_bytes_out = (flags & DS_ACCEL_VMEM_EXPORTABLE) != 0 ? size_bytes : minimum;
    return DS_ACCEL_OK;
}

static int32_t make_pieces(ds_accel_plugin_device_t *device, struct physical *memory,
                           uint64_t count, uint32_t flags, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    const cu_allocation_t how = describe(device, flags);

    for (uint64_t i = 0; i < count; i++) {
        CUDA_TRY(device, api->cuMemCreate(&memory->pieces[i], (size_t)memory->piece_bytes, &how, 0),
                 error, "cuMemCreate(%llu bytes, piece %llu of %llu, device %u)",
                 (unsigned long long)memory->piece_bytes, (unsigned long long)i + 1,
                 (unsigned long long)count, device->index);
        memory->piece_count++;
    }
    return DS_ACCEL_OK;
}

/*
 * Fails if the request exceeds the device's free memory. Checked before the first piece is created:
 * a request that cannot succeed would otherwise take memory from other programs for a while.
 */
static int32_t check_room(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int32_t status = cuda_memory_info(device, &free_bytes, &total_bytes, error);

    if (status == DS_ACCEL_OK && size_bytes > free_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "vmem_create: device %u: requested %llu bytes, %llu are free",
                           device->index, (unsigned long long)size_bytes,
                           (unsigned long long)free_bytes);
    }
    return status;
}

int32_t cuda_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **native_out, struct ds_accel_error *error)
{
    struct physical *memory;
    uint64_t piece_bytes = 0;
    uint64_t count;
    int32_t status = piece_size(device, size_bytes, flags, &piece_bytes, error);

    if (status == DS_ACCEL_OK) {
        status = check_room(device, size_bytes, error);
    }
    if (status < 0 || piece_bytes == 0) {
        return status;
    }
    count = size_bytes / piece_bytes;
    memory = calloc(1, sizeof(*memory) + (size_t)count * sizeof(memory->pieces[0]));
    if (memory == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_create: no host memory");
    }
    memory->piece_bytes = piece_bytes;
    status = make_pieces(device, memory, count, flags, error);
    if (status < 0) {
        release(device, memory);
        return status;
    }
    *native_out = memory;
    return DS_ACCEL_OK;
}

void cuda_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    release(device, native);
}

/* On failure, unmaps the pieces that were already mapped. */
int32_t cuda_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                      void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    const struct physical *memory = native;
    uint64_t piece = memory->piece_bytes;
    cu_pointer_t base = cuda_address(address);
    cu_result_t code = CU_SUCCESS;
    uint64_t done = 0;

    if (size_bytes % piece != 0 || offset_bytes % piece != 0) {
        return plugin_fail(
            error, DS_ACCEL_ERR_INVALID,
            "vmem_map: %llu bytes at offset %llu: this memory is mapped in pieces of "
            "%llu bytes",
            (unsigned long long)size_bytes, (unsigned long long)offset_bytes,
            (unsigned long long)piece);
    }
    while (done < size_bytes && code == CU_SUCCESS) {
        code = api->cuMemMap(base + done, (size_t)piece, 0,
                             memory->pieces[(offset_bytes + done) / piece], 0);
        done += code == CU_SUCCESS ? piece : 0;
    }
    if (code != CU_SUCCESS && done > 0) {
        api->cuMemUnmap(base, (size_t)done);
    }
    CUDA_TRY(device, code, error, "cuMemMap(%p, %llu bytes of %llu at offset %llu)", address,
             (unsigned long long)piece, (unsigned long long)size_bytes,
             (unsigned long long)offset_bytes);
    return DS_ACCEL_OK;
}

/* Unmaps a range of several pieces with one call, as NVIDIA's sample vectorAddMMAP does. */
int32_t cuda_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        struct ds_accel_error *error)
{
    CUDA_TRY(device, cuda_api_of(device)->cuMemUnmap(cuda_address(address), (size_t)size_bytes),
             error, "cuMemUnmap(%p, %llu bytes)", address, (unsigned long long)size_bytes);
    return DS_ACCEL_OK;
}

/* The values of DS_ACCEL_VMEM_ACCESS_* are equal to the driver's. */
int32_t cuda_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                             uint32_t access, struct ds_accel_error *error)
{
    const struct cuda_device *state = accessor->state;
    const cu_access_t wanted = {{CU_LOCATION_DEVICE, state->device}, (int)access};

    CUDA_TRY(accessor,
             state->api->cuMemSetAccess(cuda_address(address), (size_t)size_bytes, &wanted, 1),
             error, "cuMemSetAccess(%p, %llu bytes, device %u, access %u)", address,
             (unsigned long long)size_bytes, accessor->index, access);
    return DS_ACCEL_OK;
}
