/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A simulated AscendCL: memory, copies and fills. */
#include "sim_acl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_KINDS ((1u << SIM_DEVICE) | (1u << SIM_MANAGED))

SIM_EXPORT aclError aclrtGetMemInfo(int attr, size_t *free, size_t *total)
{
    struct context *context;
    uint64_t free_bytes;
    uint64_t total_bytes;
    bool has_hbm = strcmp(sim_vendor_text("memory", "hbm"), "hbm") == 0;
    aclError code;

    BEGIN("aclrtGetMemInfo");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (attr != 0 && attr != 1) { /* ACL_DDR_MEM, ACL_HBM_MEM */
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *free = 0;
    *total = 0;
    if ((attr == 1) == has_hbm) {
        sim_memory_info(context->physical, &free_bytes, &total_bytes);
        *free = free_bytes;
        *total = total_bytes;
    }
    return ACL_SUCCESS;
}

/* Returns the alignment: memory of whole pages begins at a page, of 4 KiB or 2 MiB; smaller memory
 * may be part of a larger block. */
static uint64_t alignment_of(size_t size)
{
    return size >= 2u << 20 ? 2u << 20 : size % 4096 == 0 ? 4096 : 64;
}

SIM_EXPORT aclError aclrtMalloc(void **devPtr, size_t size, int policy)
{
    struct context *context;
    void *pointer;
    aclError code;

    BEGIN("aclrtMalloc");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (size == 0 || policy < 0 || policy > 2) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (acl_is_forbidden(context->physical)) {
        return ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
    }
    pointer = sim_alloc(context->physical, size, alignment_of(size), SIM_DEVICE, 0);
    if (pointer == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    *devPtr = pointer;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtFree(void *devPtr)
{
    struct context *context;
    struct sim_block block;
    aclError code;

    BEGIN("aclrtFree");
    code = acl_ready(&context);
    if (code == ACL_ERROR_RT_CONTEXT_NULL) {
        return code;
    }
    if (sim_find(devPtr, &block) && block.kind == SIM_DEVICE &&
        block.physical != context->physical) {
        sim_misuse("aclrtFree(%p): memory of another device than the thread's", devPtr);
    }
    sim_free(devPtr, SIM_DEVICE, "aclrtFree");
    return code; /* a lost device's memory is freed anyway */
}

SIM_EXPORT aclError aclrtMallocHost(void **hostPtr, size_t size)
{
    struct context *context;
    void *pointer;
    aclError code;

    BEGIN("aclrtMallocHost");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (size == 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    pointer = sim_alloc(context->physical, size, 64, SIM_PINNED, 0);
    if (pointer == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    *hostPtr = pointer;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtFreeHost(void *hostPtr)
{
    BEGIN("aclrtFreeHost");
    if (acl_context() == NULL) {
        return ACL_ERROR_RT_CONTEXT_NULL;
    }
    sim_free(hostPtr, SIM_PINNED, "aclrtFreeHost");
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtHostRegister(void *ptr, uint64_t size, int type, void **devPtr)
{
    struct context *context;
    aclError code;

    BEGIN("aclrtHostRegister");
    code = acl_ready(&context);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (type != 0 || size == 0 || (uintptr_t)ptr % 4096 != 0 || size % 4096 != 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (sim_vendor_number("old_kernel", 0) != 0) {
        sim_misuse(
            "aclrtHostRegister: a kernel up to 5.10 takes memory of aclrtMallocHost() alone");
    }
    if (!sim_register(context->physical, ptr, size, 0)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *devPtr = ptr;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtHostUnregister(void *ptr)
{
    BEGIN("aclrtHostUnregister");
    return sim_unregister(ptr) ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

typedef struct aclrtPhysicalMemProp {
    int handleType;
    int allocationType;
    int memAttr;
    struct {
        uint32_t id;
        int type;
    } location;
    uint64_t reserve;
} aclrtPhysicalMemProp;

SIM_ASSERT(sizeof(aclrtPhysicalMemProp) == 32, "acl_rt.h");
SIM_ASSERT(offsetof(aclrtPhysicalMemProp, location) == 12, "acl_rt.h");

#define GRANULARITY ((size_t)2 << 20)

/* A handle of physical memory and its size, which must be mapped as a whole. */
struct part {
    struct sim_physical *memory;
    size_t size;
};

static struct {
    void *address;
    size_t size;
    bool is_mapped; /* true: mapped, false: reserved */
} ranges[4096];     /* reservations and mappings, found by their first address */
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_range(void *address, size_t size, bool is_mapped)
{
    pthread_mutex_lock(&ranges_lock);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].address == NULL) {
            ranges[i].address = address;
            ranges[i].size = size;
            ranges[i].is_mapped = is_mapped;
            pthread_mutex_unlock(&ranges_lock);
            return;
        }
    }
    sim_misuse("more ranges than the simulator keeps");
}

/* Ends the reservation or mapping that begins at the address, and returns its size; 0: none. */
static size_t end_range(void *address, bool is_mapped, bool (*end)(void *address, uint64_t size))
{
    size_t size = 0;

    pthread_mutex_lock(&ranges_lock);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && size == 0; i++) {
        if (ranges[i].address == address && address != NULL && ranges[i].is_mapped == is_mapped &&
            end(address, ranges[i].size)) {
            size = ranges[i].size;
            ranges[i].address = NULL;
        }
    }
    pthread_mutex_unlock(&ranges_lock);
    return size;
}

static bool is_described(const aclrtPhysicalMemProp *prop)
{
    bool has_hbm = strcmp(sim_vendor_text("memory", "hbm"), "hbm") == 0;

    return prop->handleType == 0 && prop->allocationType == 0 && prop->location.type == 1 &&
           acl_physical((int32_t)prop->location.id) >= 0 && prop->memAttr == (has_hbm ? 4 : 2);
}

SIM_EXPORT aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop, int option,
                                                     size_t *granularity)
{
    BEGIN("aclrtMemGetAllocationGranularity");
    if (!is_described(prop) || option < 0 || option > 1) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    *granularity = GRANULARITY;
    return ACL_SUCCESS;
}

/* Only the alignment 0 is accepted. */
SIM_EXPORT aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
                                           void *expectPtr, uint64_t flags)
{
    void *address;

    BEGIN("aclrtReserveMemAddress");
    if (alignment != 0 || flags > 1 || size == 0 || size % GRANULARITY != 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    address = sim_reserve(size, GRANULARITY, expectPtr);
    if (address == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    keep_range(address, size, false);
    *virPtr = address;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtReleaseMemAddress(void *virPtr)
{
    BEGIN("aclrtReleaseMemAddress");
    return end_range(virPtr, false, sim_unreserve) != 0 ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

SIM_EXPORT aclError aclrtMallocPhysical(void **handle, size_t size,
                                        const aclrtPhysicalMemProp *prop, uint64_t flags)
{
    struct part *part;

    BEGIN("aclrtMallocPhysical");
    if (!is_described(prop) || flags != 0 || size == 0 || size % GRANULARITY != 0) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    part->size = size;
    part->memory = sim_physical_create((uint32_t)acl_physical((int32_t)prop->location.id), size);
    if (part->memory == NULL) {
        free(part);
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    sim_handle_add(part, "physical");
    *handle = part;
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtFreePhysical(void *handle)
{
    struct part *part = handle;

    BEGIN("aclrtFreePhysical");
    sim_handle_check(handle, "physical", "aclrtFreePhysical");
    sim_handle_remove(handle, "physical", "aclrtFreePhysical");
    sim_physical_put(part->memory);
    free(part);
    return ACL_SUCCESS;
}

/* Maps a whole handle, from its beginning; the handle's device may then access it. */
SIM_EXPORT aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, void *handle,
                                uint64_t flags)
{
    struct part *part = handle;

    BEGIN("aclrtMapMem");
    sim_handle_check(handle, "physical", "aclrtMapMem");
    if (offset != 0 || flags != 0 || size != part->size ||
        !sim_map(virPtr, size, part->memory, 0)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (!sim_set_access(virPtr, size, 3)) {
        sim_unmap(virPtr, size);
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    keep_range(virPtr, size, true);
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtUnmapMem(void *virPtr)
{
    BEGIN("aclrtUnmapMem");
    return end_range(virPtr, true, sim_unmap) != 0 ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

/* ---- copies --------------------------------------------------------------------------------- */

static bool is_pinned(const void *address, size_t size)
{
    return sim_range_is(address, size, (1u << SIM_PINNED) | (1u << SIM_REGISTERED));
}

/*
 * Returns true for host memory, as far as the simulator can know: neither device memory, nor a
 * number used as an address.
 */
static bool is_host(const void *address, const char *call)
{
    struct sim_block block;

    if ((uintptr_t)address < 65536) {
        sim_misuse("%s: %p is no address of the host", call, address);
    }
    return !sim_find(address, &block) || block.kind != SIM_DEVICE;
}

/* Returns true for device memory that the copying device may access. */
static bool is_reached(const void *address, size_t size, uint32_t physical)
{
    struct sim_block block;

    return sim_range_is(address, size, DEVICE_KINDS) && sim_find(address, &block) &&
           acl_peers(physical, block.physical);
}

static aclError check_copy(const struct context *context, const void *dst, size_t destMax,
                           const void *src, size_t count, aclrtMemcpyKind kind, const char *call)
{
    bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
    bool to_device = kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;

    if (count == 0 || destMax < count || kind >= ACL_MEMCPY_DEFAULT) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (from_device ? !is_reached(src, count, context->physical) : !is_host(src, call)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    if (to_device ? !is_reached(dst, count, context->physical) : !is_host(dst, call)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    return ACL_SUCCESS;
}

SIM_EXPORT aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                                aclrtMemcpyKind kind)
{
    struct context *context;
    struct sim_stream *stream;
    aclError code;
    int result;

    BEGIN("aclrtMemcpy");
    code = acl_ready(&context);
    if (code == ACL_SUCCESS) {
        code = check_copy(context, dst, destMax, src, count, kind, "aclrtMemcpy");
    }
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (acl_is_forbidden(context->physical)) {
        return ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
    }
    stream = sim_stream_create(context->physical, SIM_STREAM_NON_BLOCKING, 0);
    if (stream == NULL) {
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    result = sim_submit_copy(stream, dst, src, count);
    if (result == 0) {
        result = sim_stream_synchronize(stream, UINT64_MAX);
    }
    sim_stream_destroy(stream);
    return acl_work(result, context->physical);
}

/*
 * Copies host memory that is not pinned, according to the vendor's fact "pageable": "wait" (the
 * call returns after the copy), "refuse" (the call fails), or "queue".
 */
static aclError copy_pageable(struct stream *stream, void *dst, const void *src, size_t count)
{
    const char *how = sim_vendor_text("pageable", "queue");
    int result;

    if (strcmp(how, "refuse") == 0) {
        return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    }
    result = sim_submit_copy(stream->sim, dst, src, count);
    if (result == 0 && strcmp(how, "wait") == 0 &&
        sim_capture_status(stream->sim) == SIM_CAPTURE_NONE) {
        result = sim_stream_synchronize(stream->sim, UINT64_MAX);
    }
    return acl_work(result, stream->context->physical);
}

SIM_EXPORT aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                                     aclrtMemcpyKind kind, aclrtStream stream)
{
    struct stream *to;
    aclError code;

    BEGIN("aclrtMemcpyAsync");
    code = acl_stream(stream, "aclrtMemcpyAsync", &to);
    if (code == ACL_SUCCESS) {
        code = check_copy(to->context, dst, destMax, src, count, kind, "aclrtMemcpyAsync");
    }
    if (code != ACL_SUCCESS) {
        return code;
    }
    if ((kind == ACL_MEMCPY_HOST_TO_DEVICE && !is_pinned(src, count)) ||
        (kind == ACL_MEMCPY_DEVICE_TO_HOST && !is_pinned(dst, count)) ||
        (kind == ACL_MEMCPY_HOST_TO_HOST && !(is_pinned(src, count) && is_pinned(dst, count)))) {
        return copy_pageable(to, dst, src, count);
    }
    return acl_work(sim_submit_copy(to->sim, dst, src, count), to->context->physical);
}

SIM_EXPORT aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                                     aclrtStream stream)
{
    struct stream *to;
    unsigned char byte = (unsigned char)value;
    aclError code;

    BEGIN("aclrtMemsetAsync");
    code = acl_stream(stream, "aclrtMemsetAsync", &to);
    if (code != ACL_SUCCESS) {
        return code;
    }
    if (count == 0 || maxCount < count || value < 0 || value > 255 ||
        !sim_range_is(devPtr, count, DEVICE_KINDS)) {
        return ACL_ERROR_RT_PARAM_INVALID;
    }
    return acl_work(sim_submit_fill(to->sim, devPtr, &byte, 1, count), to->context->physical);
}
