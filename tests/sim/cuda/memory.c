/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* libcuda.so.1, simulated: memory, copies and fills, stream-ordered allocation. */
#include "cuda_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ON_DEVICE (1u << SIM_DEVICE | 1u << SIM_MANAGED)
#define ON_HOST (1u << SIM_PINNED | 1u << SIM_REGISTERED)

static void *address_of(CUdeviceptr pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* Returns true if a device can address the memory: any memory known to the driver, by unified
 * addressing. */
static bool is_known(CUdeviceptr pointer, size_t size)
{
    return sim_range_is(address_of(pointer), size, ON_DEVICE | ON_HOST);
}

/* Returns true if the memory is not device memory; ordinary memory is host memory. */
static bool is_host(const void *pointer)
{
    struct sim_block block;

    return pointer != NULL && (!sim_find(pointer, &block) || block.kind != SIM_DEVICE);
}

/* ---- allocation ----------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    uint64_t free_bytes, total_bytes;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(free != NULL || total != NULL, INVALID_VALUE);
    sim_memory_info(context->physical, &free_bytes, &total_bytes);
    if (free != NULL) {
        *free = free_bytes;
    }
    if (total != NULL) {
        *total = total_bytes;
    }
    return OK;
}

static CUresult allocate(CUcontext context, size_t size, enum sim_memory_kind kind, uint32_t flags,
                         void **pointer_out)
{
    CUresult code = cuda_forbidden(context);

    REQUIRE(code == OK, code);
    REQUIRE(size > 0, INVALID_VALUE);
    *pointer_out = sim_alloc(context->physical, size, 512, kind, flags);
    return *pointer_out != NULL ? OK : OUT_OF_MEMORY;
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    CUcontext context;
    CUresult code;
    void *pointer;

    ENTER_CONTEXT(context);
    REQUIRE(dptr != NULL, INVALID_VALUE);
    code = allocate(context, bytesize, SIM_DEVICE, 0, &pointer);
    if (code == OK) {
        *dptr = (CUdeviceptr)(uintptr_t)pointer;
    }
    return code;
}

SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    CUcontext context;
    CUresult code;
    void *pointer;

    ENTER_CONTEXT(context);
    REQUIRE(dptr != NULL && (flags == 1 || flags == 2), INVALID_VALUE);
    code = allocate(context, bytesize, SIM_MANAGED, flags, &pointer);
    if (code == OK) {
        *dptr = (CUdeviceptr)(uintptr_t)pointer;
    }
    return code;
}

/* Waits for the device, as the driver's function does; a lost device releases its memory too. */
SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct sim_block block;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    REQUIRE(dptr != 0, code);
    REQUIRE(sim_find(address_of(dptr), &block) && block.address == address_of(dptr) &&
                (block.kind == SIM_DEVICE || block.kind == SIM_MANAGED) && block.import_count == 0,
            INVALID_VALUE);
    REQUIRE(cuda_forbidden(context) == OK, STREAM_CAPTURE_UNSUPPORTED);
    sim_device_synchronize(block.physical);
    /* The memory may have been freed in its stream in the meantime. */
    REQUIRE(sim_find(address_of(dptr), &block) && block.address == address_of(dptr), INVALID_VALUE);
    if (sim_handle_is(block.address, "pool-allocation")) {
        sim_handle_remove(block.address, "pool-allocation", __func__);
    }
    sim_free(block.address, block.kind, __func__);
    return code;
}

SIM_EXPORT CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(pp != NULL && Flags <= 7, INVALID_VALUE);
    return allocate(context, bytesize, SIM_PINNED, Flags, pp);
}

SIM_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(pp != NULL, INVALID_VALUE);
    return allocate(context, bytesize, SIM_PINNED, 0, pp);
}

SIM_EXPORT CUresult cuMemFreeHost(void *p)
{
    struct sim_block block;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    REQUIRE(p != NULL, code);
    REQUIRE(sim_find(p, &block) && block.address == p && block.kind == SIM_PINNED, INVALID_VALUE);
    REQUIRE(cuda_forbidden(context) == OK, STREAM_CAPTURE_UNSUPPORTED);
    sim_device_synchronize(block.physical);
    sim_free(p, SIM_PINNED, __func__);
    return code;
}

SIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(pdptr != NULL && Flags == 0 && sim_range_is(p, 1, ON_HOST), INVALID_VALUE);
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return OK;
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    REQUIRE(p != NULL && bytesize > 0 && Flags <= 15, INVALID_VALUE);
    code = cuda_forbidden(context);
    REQUIRE(code == OK, code);
    return sim_register(context->physical, p, bytesize, Flags) ? OK
                                                               : HOST_MEMORY_ALREADY_REGISTERED;
}

SIM_EXPORT CUresult cuMemHostUnregister(void *p)
{
    struct sim_block block;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    REQUIRE(p != NULL, INVALID_VALUE);
    REQUIRE(sim_find(p, &block) && block.kind == SIM_REGISTERED && block.address == p,
            HOST_MEMORY_NOT_REGISTERED);
    REQUIRE(cuda_forbidden(context) == OK, STREAM_CAPTURE_UNSUPPORTED);
    sim_device_synchronize(block.physical);
    sim_unregister(p);
    return code;
}

/* ---- pointers ------------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct sim_block block;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(sim_find(address_of(dptr), &block), NOT_FOUND);
    if (pbase != NULL) {
        *pbase = (CUdeviceptr)(uintptr_t)block.address;
    }
    if (psize != NULL) {
        *psize = block.size_bytes;
    }
    return OK;
}

/* Stores an attribute in data, which has the attribute's type: an int, a bool, a pointer or a
 * 64-bit number. */
static CUresult pointer_attribute(void *data, int attribute, CUdeviceptr pointer,
                                  const struct sim_block *block)
{
    bool is_host_memory = block->kind == SIM_PINNED || block->kind == SIM_REGISTERED;

    switch (attribute) {
    case 1:
        *(CUcontext *)data = cuda_context_of(block->physical);
        return OK;
    case 2:
        *(unsigned *)data = is_host_memory ? 1 : 2;
        return OK;
    case 3:
        *(CUdeviceptr *)data = pointer;
        return OK;
    case 4:
        REQUIRE(block->kind != SIM_DEVICE, INVALID_VALUE);
        *(void **)data = address_of(pointer);
        return OK;
    case 7:
        *(unsigned long long *)data = block->id;
        return OK;
    case 8:
        *(unsigned *)data = block->kind == SIM_MANAGED;
        return OK;
    case 9:
        *(int *)data = cuda_ordinal_of(block->physical);
        return OK;
    case 11:
        *(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)block->address;
        return OK;
    case 12:
        *(size_t *)data = block->size_bytes;
        return OK;
    case 13:
        *(unsigned *)data = 1;
        return OK;
    default:
        return INVALID_VALUE;
    }
}

SIM_EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr ptr)
{
    struct sim_block block;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(data != NULL && sim_find(address_of(ptr), &block), INVALID_VALUE);
    return pointer_attribute(data, attribute, ptr, &block);
}

/* ---- copies --------------------------------------------------------------------------------- */

enum {
    FROM_HOST = 1,
    TO_HOST = 2
};

/* Checks that the two pointers match the function's name. */
static CUresult check_copy(CUdeviceptr destination, CUdeviceptr source, size_t size, int direction)
{
    if (size == 0) {
        return OK;
    }
    if (direction == TO_HOST ? !is_host(address_of(destination)) : !is_known(destination, size)) {
        return INVALID_VALUE;
    }
    if (direction == FROM_HOST ? !is_host(address_of(source)) : !is_known(source, size)) {
        return INVALID_VALUE;
    }
    return OK;
}

static CUresult copy_async(CUcontext context, CUstream handle, CUdeviceptr destination,
                           CUdeviceptr source, size_t size, const char *call)
{
    struct sim_stream *stream = cuda_stream(handle, context, call);
    CUresult code = cuda_implicit(context, handle);

    REQUIRE(code == OK, code);
    return cuda_submitted(
        stream, sim_submit_copy(stream, address_of(destination), address_of(source), size));
}

/* Copies synchronously, on the default stream. */
static CUresult copy_now(CUcontext context, CUdeviceptr destination, CUdeviceptr source,
                         size_t size, const char *call)
{
    CUresult code = cuda_forbidden(context);

    code = code == OK ? copy_async(context, NULL, destination, source, size, call) : code;
    REQUIRE(code == OK, code);
    return sim_stream_synchronize(context->legacy, UINT64_MAX) == 0 ? OK : cuda_lost_code();
}

#define POINTER(host) ((CUdeviceptr)(uintptr_t)(host))

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(dstDevice, POINTER(srcHost), ByteCount, FROM_HOST);
    REQUIRE(code == OK, code);
    return copy_now(context, dstDevice, POINTER(srcHost), ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(POINTER(dstHost), srcDevice, ByteCount, TO_HOST);
    REQUIRE(code == OK, code);
    return copy_now(context, POINTER(dstHost), srcDevice, ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(dstDevice, srcDevice, ByteCount, 0);
    REQUIRE(code == OK, code);
    return copy_now(context, dstDevice, srcDevice, ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost,
                                         size_t ByteCount, CUstream hStream)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(dstDevice, POINTER(srcHost), ByteCount, FROM_HOST);
    REQUIRE(code == OK, code);
    return copy_async(context, hStream, dstDevice, POINTER(srcHost), ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                         CUstream hStream)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(POINTER(dstHost), srcDevice, ByteCount, TO_HOST);
    REQUIRE(code == OK, code);
    return copy_async(context, hStream, POINTER(dstHost), srcDevice, ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                         size_t ByteCount, CUstream hStream)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_copy(dstDevice, srcDevice, ByteCount, 0);
    REQUIRE(code == OK, code);
    return copy_async(context, hStream, dstDevice, srcDevice, ByteCount, __func__);
}

/* With unified addresses a pointer itself shows its location; ordinary memory belongs to the
 * host. */
SIM_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(ByteCount == 0 || (dst != 0 && src != 0), INVALID_VALUE);
    return copy_now(context, dst, src, ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                                  CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(ByteCount == 0 || (dst != 0 && src != 0), INVALID_VALUE);
    return copy_async(context, hStream, dst, src, ByteCount, __func__);
}

/* Returns true if the memory is on the context's device. */
static bool lies_on(CUdeviceptr pointer, CUcontext context)
{
    struct sim_block block;

    return context != NULL && sim_find(address_of(pointer), &block) &&
           block.physical == context->physical;
}

static CUresult check_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                           CUcontext src_context, size_t size)
{
    REQUIRE(dst_context != NULL && src_context != NULL, INVALID_CONTEXT);
    REQUIRE(size == 0 || (lies_on(dst, dst_context) && lies_on(src, src_context)), INVALID_VALUE);
    return check_copy(dst, src, size, 0);
}

SIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                 CUcontext srcContext, size_t ByteCount)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
    REQUIRE(code == OK, code);
    return copy_now(context, dstDevice, srcDevice, ByteCount, __func__);
}

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
                                      CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                                      CUstream hStream)
{
    CUcontext context;
    CUresult code;

    ENTER_CONTEXT(context);
    code = check_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount);
    REQUIRE(code == OK, code);
    return copy_async(context, hStream, dstDevice, srcDevice, ByteCount, __func__);
}

/* ---- fills: N elements; the address is a multiple of their size ------------------------------ */

static CUresult fill(CUcontext context, CUstream handle, CUdeviceptr destination,
                     const void *pattern, uint32_t width, size_t count, const char *call)
{
    struct sim_stream *stream = cuda_stream(handle, context, call);
    CUresult code = cuda_implicit(context, handle);

    REQUIRE(code == OK, code);
    REQUIRE(destination % width == 0, INVALID_VALUE);
    REQUIRE(count <= SIZE_MAX / width && (count == 0 || is_known(destination, count * width)),
            INVALID_VALUE);
    return cuda_submitted(
        stream, sim_submit_fill(stream, address_of(destination), pattern, width, count * width));
}

/* Does not wait: a fill of device memory is asynchronous to the host. */
SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return fill(context, NULL, dstDevice, &uc, 1, N, __func__);
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return fill(context, NULL, dstDevice, &ui, 4, N, __func__);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                                    CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return fill(context, hStream, dstDevice, &uc, 1, N, __func__);
}

SIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                     CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return fill(context, hStream, dstDevice, &us, 2, N, __func__);
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                                     CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return fill(context, hStream, dstDevice, &ui, 4, N, __func__);
}

/* ---- stream-ordered allocation -------------------------------------------------------------- */

/*
 * One pool for each device, its default pool. A pool keeps no memory: freed memory is released at
 * once.
 */
struct CUmemPoolHandle_st {
    uint64_t threshold, used, used_high;
    int reuse[3];
};

static struct CUmemPoolHandle_st pools[64];
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the pools' counters */

static CUmemoryPool pool_of(uint32_t physical)
{
    return &pools[physical];
}

static uint32_t physical_of(CUmemoryPool pool)
{
    return (uint32_t)(pool - pools);
}

static void check_pool(CUmemoryPool pool, const char *call)
{
    if (pool < pools || pool >= pools + 64) {
        sim_misuse("%s: %p is no pool", call, (void *)pool);
    }
}

static void count_pool(CUmemoryPool pool, uint64_t more, uint64_t less)
{
    pthread_mutex_lock(&pool_lock);
    pool->used += more - less;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    pthread_mutex_unlock(&pool_lock);
}

static CUresult allocate_async(CUcontext context, CUdeviceptr *dptr, size_t size, CUmemoryPool pool,
                               CUstream handle, const char *call)
{
    struct sim_stream *stream = cuda_stream(handle, context, call);
    CUresult code = cuda_implicit(context, handle);
    void *pointer;

    REQUIRE(code == OK, code);
    REQUIRE(dptr != NULL && size > 0, INVALID_VALUE);
    if (sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream); /* memory nodes are not simulated */
        return NOT_SUPPORTED;
    }
    code = cuda_forbidden(context);
    REQUIRE(code == OK, code);
    pointer = sim_alloc(physical_of(pool), size, 512, SIM_DEVICE, 1);
    if (pointer == NULL && sim_stream_synchronize(stream, UINT64_MAX) == 0) {
        pointer = sim_alloc(physical_of(pool), size, 512, SIM_DEVICE, 1);
    }
    REQUIRE(pointer != NULL, OUT_OF_MEMORY);
    sim_handle_add(pointer, "pool-allocation");
    count_pool(pool, size, 0);
    *dptr = (CUdeviceptr)(uintptr_t)pointer;
    return OK;
}

SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return allocate_async(context, dptr, bytesize, pool_of(context->physical), hStream, __func__);
}

SIM_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                            CUstream hStream)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    check_pool(pool, __func__);
    return allocate_async(context, dptr, bytesize, pool, hStream, __func__);
}

static void free_step(void *pointer)
{
    struct sim_block block;

    if (sim_find(pointer, &block)) {
        count_pool(pool_of(block.physical), 0, block.size_bytes);
    }
    sim_free(pointer, SIM_DEVICE, "cuMemFreeAsync");
}

SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct sim_stream *stream;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    REQUIRE(dptr != 0, code);
    REQUIRE(sim_handle_is(address_of(dptr), "pool-allocation"), INVALID_VALUE);
    stream = cuda_stream(hStream, context, __func__);
    /* A graph frees only memory that it allocated. */
    REQUIRE(sim_capture_status(stream) == SIM_CAPTURE_NONE, INVALID_VALUE);
    REQUIRE(cuda_implicit(context, hStream) == OK, STREAM_CAPTURE_IMPLICIT);
    REQUIRE(cuda_forbidden(context) == OK, STREAM_CAPTURE_UNSUPPORTED);
    sim_handle_remove(address_of(dptr), "pool-allocation", __func__);
    sim_submit_step(stream, free_step, address_of(dptr));
    return code;
}

static CUresult give_pool(CUmemoryPool *pool, CUdevice device, const char *call)
{
    uint32_t physical;
    CUresult code = cuda_enter_device(call, device, &physical);

    REQUIRE(code == OK, code);
    REQUIRE(pool != NULL, INVALID_VALUE);
    REQUIRE(sim_number(sim_device_at(physical), "memory_pools", 1) != 0, NOT_SUPPORTED);
    *pool = pool_of(physical);
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    return give_pool(pool_out, dev, __func__);
}

SIM_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return give_pool(pool, dev, __func__);
}

SIM_EXPORT CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    check_pool(pool, __func__);
    return physical_of(pool) == physical ? OK : INVALID_VALUE;
}

SIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    (void)minBytesToKeep; /* the pool keeps no memory */
    ENTER();
    check_pool(pool, __func__);
    return cuda_forbidden(cuda_context_of(physical_of(pool)));
}

SIM_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
    CUresult code = OK;

    ENTER();
    check_pool(pool, __func__);
    REQUIRE(value != NULL, INVALID_VALUE);
    pthread_mutex_lock(&pool_lock);
    if (attr >= 1 && attr <= 3) {
        pool->reuse[attr - 1] = *(int *)value;
    } else if (attr == 4) {
        pool->threshold = *(uint64_t *)value;
    } else if ((attr == 6 || attr == 8) && *(uint64_t *)value == 0) {
        pool->used_high = pool->used;
    } else {
        code = INVALID_VALUE;
    }
    pthread_mutex_unlock(&pool_lock);
    return code;
}

SIM_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attr, void *value)
{
    ENTER();
    check_pool(pool, __func__);
    REQUIRE(value != NULL && attr >= 1 && attr <= 8, INVALID_VALUE);
    pthread_mutex_lock(&pool_lock);
    if (attr <= 3) {
        *(int *)value = pool->reuse[attr - 1];
    } else {
        *(uint64_t *)value = attr == 4                ? pool->threshold
                             : attr == 5 || attr == 7 ? pool->used
                                                      : pool->used_high;
    }
    pthread_mutex_unlock(&pool_lock);
    return OK;
}
