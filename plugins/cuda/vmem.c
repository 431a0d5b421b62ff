/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory. The driver's handle of physical memory is a number, which is what `native` holds.
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
    CUDA_TRY(device, error,
             api->cuMemGetAllocationGranularity(&minimum, &how, CU_GRANULARITY_MINIMUM),
             "cuMemGetAllocationGranularity(device %u, minimum)", device->index);
    CUDA_TRY(device, error,
             api->cuMemGetAllocationGranularity(&recommended, &how, CU_GRANULARITY_RECOMMENDED),
             "cuMemGetAllocationGranularity(device %u, recommended)", device->index);
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
    CUDA_TRY(device, error,
             api->cuMemAddressReserve(&address, (size_t)size_bytes, (size_t)align_bytes,
                                      cuda_address(hint), 0),
             "cuMemAddressReserve(%llu bytes, alignment %llu)", (unsigned long long)size_bytes,
             (unsigned long long)align_bytes);
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
    CUDA_TRY(device, error, api->cuMemAddressFree(cuda_address(address), (size_t)size_bytes),
             "cuMemAddressFree(%p, %llu bytes)", address, (unsigned long long)size_bytes);
    return DS_ACCEL_OK;
}

int32_t cuda_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **native_out, struct ds_accel_error *error)
{
    const struct cuda_api *api = cuda_api_of(device);
    cu_allocation_t how = describe(device, flags);
    cu_physical_t memory = 0;
    int32_t status = check_vmem(api, "vmem_create", error);

    if (status < 0) {
        return status;
    }
    CUDA_TRY(device, error, api->cuMemCreate(&memory, (size_t)size_bytes, &how, 0),
             "cuMemCreate(%llu bytes, device %u)", (unsigned long long)size_bytes, device->index);
    *native_out = (void *)(uintptr_t)memory;
    return DS_ACCEL_OK;
}

void cuda_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    cuda_api_of(device)->cuMemRelease((cu_physical_t)(uintptr_t)native);
}

int32_t cuda_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                      void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    CUDA_TRY(device, error,
             cuda_api_of(device)->cuMemMap(cuda_address(address), (size_t)size_bytes,
                                           (size_t)offset_bytes, (cu_physical_t)(uintptr_t)native,
                                           0),
             "cuMemMap(%p, %llu bytes, offset %llu)", address, (unsigned long long)size_bytes,
             (unsigned long long)offset_bytes);
    return DS_ACCEL_OK;
}

int32_t cuda_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        struct ds_accel_error *error)
{
    CUDA_TRY(device, error,
             cuda_api_of(device)->cuMemUnmap(cuda_address(address), (size_t)size_bytes),
             "cuMemUnmap(%p, %llu bytes)", address, (unsigned long long)size_bytes);
    return DS_ACCEL_OK;
}

/* DS_ACCEL_VMEM_ACCESS_* have the driver's numbers. */
int32_t cuda_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                             uint32_t access, struct ds_accel_error *error)
{
    const struct cuda_device *state = accessor->state;
    const cu_access_t wanted = {{CU_LOCATION_DEVICE, state->device}, (int)access};

    CUDA_TRY(accessor, error,
             state->api->cuMemSetAccess(cuda_address(address), (size_t)size_bytes, &wanted, 1),
             "cuMemSetAccess(%p, %llu bytes, device %u, access %u)", address,
             (unsigned long long)size_bytes, accessor->index, access);
    return DS_ACCEL_OK;
}
