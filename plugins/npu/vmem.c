/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory. ACL maps a handle only as a whole and from its beginning, unmaps and releases
 * ranges by their first address, and has a fixed alignment. The plugin therefore builds memory from
 * handles of the minimum size, which it maps one after another. A device can access memory that it
 * has mapped; the structs of the call that enables access for other devices are not reliably
 * documented, so such access is rejected.
 */
#include "npu.h"

/* Physical memory that consists of handles of piece_bytes each. */
struct physical {
    uint64_t piece_bytes;
    uint64_t piece_count;
    void *pieces[];
};

uint32_t npu_has_vmem(const struct acl_api *acl)
{
    return acl->aclrtMemGetAllocationGranularity != NULL && acl->aclrtReserveMemAddress != NULL &&
           acl->aclrtReleaseMemAddress != NULL && acl->aclrtMallocPhysical != NULL &&
           acl->aclrtFreePhysical != NULL && acl->aclrtMapMem != NULL && acl->aclrtUnmapMem != NULL;
}

static struct acl_physical describe(const ds_accel_plugin_device_t *device)
{
    const struct npu_device *state = NPU_STATE(device);
    struct acl_physical how;

    memset(&how, 0, sizeof(how));
    how.memory_attribute = state->memory_attribute == ACL_HBM ? ACL_HBM_HUGE : ACL_DDR_HUGE;
    how.location_id = (uint32_t)state->user;
    how.location_type = ACL_LOCATION_DEVICE;
    return how;
}

static int32_t granularity(ds_accel_plugin_device_t *device, int option, uint64_t *bytes_out,
                           struct ds_accel_error *error)
{
    struct acl_physical how = describe(device);
    size_t bytes = 0;
    int32_t status = NPU_CHECK(
        device, NPU_ACL(device)->aclrtMemGetAllocationGranularity(&how, option, &bytes), error,
        "aclrtMemGetAllocationGranularity(option %d, device %u)", option, device->index);

    if (status == DS_ACCEL_OK && bytes == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "aclrtMemGetAllocationGranularity(option %d, device %u): 0 bytes",
                           option, device->index);
    }
    if (status == DS_ACCEL_OK) {
        *bytes_out = bytes;
    }
    return status;
}

int32_t npu_vmem_granularity(ds_accel_plugin_device_t *device, uint32_t flags,
                             uint64_t *minimum_out, uint64_t *recommended_out,
                             struct ds_accel_error *error)
{
    int32_t status;

    (void)flags;
    if (!npu_has_vmem(NPU_ACL(device))) {
        return NPU_MISSING(error, "vmem_granularity", "aclrtMallocPhysical", "CANN 7");
    }
    status = granularity(device, ACL_GRANULARITY_MINIMUM, minimum_out, error);
    return status != DS_ACCEL_OK
               ? status
               : granularity(device, ACL_GRANULARITY_RECOMMENDED, recommended_out, error);
}

int32_t npu_vmem_reserve(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, void *hint, void **address_out,
                         struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    void *address = NULL;
    int32_t status;

    if (!npu_has_vmem(acl)) {
        return NPU_MISSING(error, "vmem_reserve", "aclrtReserveMemAddress", "CANN 7");
    }
    status = NPU_CHECK(device,
                       acl->aclrtReserveMemAddress(&address, size_bytes, 0, hint, ACL_RESERVE_HUGE),
                       error, "aclrtReserveMemAddress(%llu bytes, device %u)",
                       (unsigned long long)size_bytes, device->index);
    if (status != DS_ACCEL_OK) {
        return status;
    }
    if (align_bytes > 1 && (uintptr_t)address % align_bytes != 0) {
        acl->aclrtReleaseMemAddress(address);
        return plugin_fail(
            error, DS_ACCEL_ERR_UNSUPPORTED,
            "vmem_reserve: ACL returned %p, not a multiple of %llu, and accepts no alignment",
            address, (unsigned long long)align_bytes);
    }
    *address_out = address;
    return DS_ACCEL_OK;
}

int32_t npu_vmem_release(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                         struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    if (!npu_has_vmem(acl)) {
        return NPU_MISSING(error, "vmem_release", "aclrtReleaseMemAddress", "CANN 7");
    }
    return NPU_CHECK(device, acl->aclrtReleaseMemAddress(address), error,
                     "aclrtReleaseMemAddress(%p, %llu bytes)", address,
                     (unsigned long long)size_bytes);
}

/* ---- physical memory ------------------------------------------------------------------------ */

void npu_vmem_destroy(ds_accel_plugin_device_t *device, void *native)
{
    struct physical *memory = native;

    for (uint64_t i = 0; i < memory->piece_count; i++) {
        NPU_ACL(device)->aclrtFreePhysical(memory->pieces[i]);
    }
    free(memory);
}

static int32_t make_pieces(ds_accel_plugin_device_t *device, struct physical *memory,
                           uint64_t count, struct ds_accel_error *error)
{
    const struct acl_physical how = describe(device);

    while (memory->piece_count < count) {
        int32_t status = NPU_CHECK(
            device,
            NPU_ACL(device)->aclrtMallocPhysical(&memory->pieces[memory->piece_count],
                                                 memory->piece_bytes, &how, 0),
            error, "aclrtMallocPhysical(%llu bytes, %llu of %llu, device %u)",
            (unsigned long long)memory->piece_bytes, (unsigned long long)memory->piece_count + 1,
            (unsigned long long)count, device->index);

        if (status != DS_ACCEL_OK) {
            return status;
        }
        memory->piece_count++;
    }
    return DS_ACCEL_OK;
}

/*
 * Checks, before any allocation, that the size is a multiple of the piece and not above the
 * device's free memory.
 */
static int32_t check_size(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint64_t piece,
                          struct ds_accel_error *error)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int32_t status = npu_memory_info(device, &free_bytes, &total_bytes, error);

    if (status != DS_ACCEL_OK) {
        return status;
    }
    if (size_bytes % piece != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_create: %llu bytes are no multiple of the granularity, %llu",
                           (unsigned long long)size_bytes, (unsigned long long)piece);
    }
    if (size_bytes > free_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "vmem_create: device %u: requested %llu bytes, %llu are free",
                           device->index, (unsigned long long)size_bytes,
                           (unsigned long long)free_bytes);
    }
    return DS_ACCEL_OK;
}

int32_t npu_vmem_create(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                        void **native_out, struct ds_accel_error *error)
{
    struct physical *memory;
    uint64_t piece = 1;
    int32_t status;

    if (!npu_has_vmem(NPU_ACL(device))) {
        return NPU_MISSING(error, "vmem_create", "aclrtMallocPhysical", "CANN 7");
    }
    if ((flags & DS_ACCEL_VMEM_EXPORTABLE) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "vmem_create: ACL's keys are for memory of aclrtMalloc() alone");
    }
    status = granularity(device, ACL_GRANULARITY_MINIMUM, &piece, error);
    if (status == DS_ACCEL_OK) {
        status = check_size(device, size_bytes, piece, error);
    }
    if (status != DS_ACCEL_OK) {
        return status;
    }
    memory = calloc(1, sizeof(*memory) + (size_t)(size_bytes / piece) * sizeof(memory->pieces[0]));
    if (memory == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_create: no memory of the host");
    }
    memory->piece_bytes = piece;
    status = make_pieces(device, memory, size_bytes / piece, error);
    if (status != DS_ACCEL_OK) {
        npu_vmem_destroy(device, memory);
        return status;
    }
    *native_out = memory;
    return DS_ACCEL_OK;
}

/* ---- mappings ------------------------------------------------------------------------------- */

/*
 * A mapping in a device's list. unmapped_bytes counts the bytes that an unmap call had already
 * unmapped when it failed.
 */
struct npu_mapping {
    struct npu_mapping *next;
    char *address;
    uint64_t size_bytes;
    uint64_t piece_bytes;
    uint64_t unmapped_bytes;
};

/* Guards the lists of mappings of all devices. */
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_mapping(struct npu_device *state, struct npu_mapping *mapping)
{
    pthread_mutex_lock(&mapping_lock);
    mapping->next = state->mappings;
    state->mappings = mapping;
    pthread_mutex_unlock(&mapping_lock);
}

/* Removes the mapping that begins at the address from the list and returns it; NULL: none. */
static struct npu_mapping *take_mapping(struct npu_device *state, const void *address)
{
    struct npu_mapping **at = &state->mappings;
    struct npu_mapping *taken;

    pthread_mutex_lock(&mapping_lock);
    while (*at != NULL && (*at)->address != address) {
        at = &(*at)->next;
    }
    taken = *at;
    if (taken != NULL) {
        *at = taken->next;
    }
    pthread_mutex_unlock(&mapping_lock);
    return taken;
}

/* Returns true if the range consists of whole mappings of the device. */
static uint32_t has_mapped(const struct npu_device *state, const char *address, uint64_t size_bytes)
{
    uint64_t found = 0;

    pthread_mutex_lock(&mapping_lock);
    for (const struct npu_mapping *at = state->mappings; at != NULL; at = at->next) {
        if (at->address >= address && at->address < address + size_bytes) {
            found += at->size_bytes;
        }
    }
    pthread_mutex_unlock(&mapping_lock);
    return found == size_bytes;
}

void npu_vmem_forget(struct npu_device *state)
{
    /* Mappings remain in the list if they could not be unmapped because the device is lost. */
    while (state->mappings != NULL) {
        free(take_mapping(state, state->mappings->address));
    }
}

static acl_error map_pieces(const struct acl_api *acl, const struct physical *memory, char *address,
                            uint64_t size_bytes, uint64_t offset_bytes)
{
    uint64_t piece = memory->piece_bytes;
    acl_error code = ACL_OK;
    uint64_t done = 0;

    while (done < size_bytes && code == ACL_OK) {
        code = acl->aclrtMapMem(address + done, piece, 0,
                                memory->pieces[(offset_bytes + done) / piece], 0);
        done += code == ACL_OK ? piece : 0;
    }
    while (code != ACL_OK && done > 0) { /* unmap the earlier pieces */
        done -= piece;
        acl->aclrtUnmapMem(address + done);
    }
    return code;
}

int32_t npu_vmem_map(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                     void *native, uint64_t offset_bytes, struct ds_accel_error *error)
{
    const struct physical *memory = native;
    uint64_t piece = memory->piece_bytes;
    struct npu_mapping *mapping;
    acl_error code;

    if (size_bytes % piece != 0 || offset_bytes % piece != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "vmem_map: %llu bytes at offset %llu: no multiples of %llu",
                           (unsigned long long)size_bytes, (unsigned long long)offset_bytes,
                           (unsigned long long)piece);
    }
    mapping = calloc(1, sizeof(*mapping));
    if (mapping == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "vmem_map: no memory of the host");
    }
    code = map_pieces(NPU_ACL(device), memory, address, size_bytes, offset_bytes);
    if (code != ACL_OK) {
        free(mapping);
        return NPU_CHECK(device, code, error, "aclrtMapMem(%p, %llu bytes at offset %llu)", address,
                         (unsigned long long)size_bytes, (unsigned long long)offset_bytes);
    }
    mapping->address = address;
    mapping->size_bytes = size_bytes;
    mapping->piece_bytes = piece;
    keep_mapping(NPU_STATE(device), mapping);
    return DS_ACCEL_OK;
}

/* If unmapping a piece fails, the call fails; the next call continues with that piece. */
int32_t npu_vmem_unmap(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                       struct ds_accel_error *error)
{
    struct npu_mapping *mapping = take_mapping(NPU_STATE(device), address);
    acl_error code = ACL_OK;

    if (mapping == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "vmem_unmap: %p, %llu bytes: not mapped",
                           address, (unsigned long long)size_bytes);
    }
    while (code == ACL_OK && mapping->unmapped_bytes < mapping->size_bytes) {
        code = NPU_ACL(device)->aclrtUnmapMem(mapping->address + mapping->unmapped_bytes);
        mapping->unmapped_bytes += code == ACL_OK ? mapping->piece_bytes : 0;
    }
    if (code == ACL_OK) {
        free(mapping);
    } else {
        keep_mapping(NPU_STATE(device), mapping);
    }
    return NPU_CHECK(device, code, error, "aclrtUnmapMem(%p, %llu bytes)", address,
                     (unsigned long long)size_bytes);
}

int32_t npu_vmem_set_access(ds_accel_plugin_device_t *accessor, void *address, uint64_t size_bytes,
                            uint32_t access, struct ds_accel_error *error)
{
    if (access != DS_ACCEL_VMEM_ACCESS_READ_WRITE ||
        !has_mapped(NPU_STATE(accessor), address, size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "vmem_set_access: %p, %llu bytes, device %u: with ACL the memory's own "
                           "device reads and writes, and no other",
                           address, (unsigned long long)size_bytes, accessor->index);
    }
    return DS_ACCEL_OK;
}
