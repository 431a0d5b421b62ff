/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* libcuda.so.1, simulated: peers, sharing between processes, virtual memory. */
#include "cuda_abi.h"

#include <pthread.h>
#include <string.h>

static void *address_of(CUdeviceptr pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock; /* guards the list */
    bool is_enabled[64][64];
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool can_access(uint32_t one, uint32_t other)
{
    return one != other && !sim_device_at(one)->is_partition &&
           !sim_device_at(other)->is_partition && sim_vendor_number("peer", 1) != 0;
}

SIM_EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    uint32_t one, other;

    ENTER_DEVICE(dev, one);
    REQUIRE(canAccessPeer != NULL, INVALID_VALUE);
    REQUIRE(cuda_is_device(peerDev, &other), INVALID_DEVICE);
    *canAccessPeer = can_access(one, other);
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attrib, CUdevice srcDevice,
                                            CUdevice dstDevice)
{
    uint32_t one, other;

    ENTER_DEVICE(srcDevice, one);
    REQUIRE(value != NULL && attrib >= 1 && attrib <= 4, INVALID_VALUE);
    REQUIRE(cuda_is_device(dstDevice, &other), INVALID_DEVICE);
    REQUIRE(one != other, INVALID_DEVICE);
    /* Performance rank, access, and atomics are simulated, CUDA arrays are not. */
    *value = attrib == 1 ? 0 : attrib <= 3 && can_access(one, other);
    return OK;
}

static CUresult set_peer(CUcontext context, CUcontext peer, bool enables)
{
    bool was_enabled;

    pthread_mutex_lock(&peers.lock);
    was_enabled = peers.is_enabled[context->physical][peer->physical];
    peers.is_enabled[context->physical][peer->physical] = enables;
    pthread_mutex_unlock(&peers.lock);
    if (enables) {
        return was_enabled ? PEER_ACCESS_ALREADY_ENABLED : OK;
    }
    return was_enabled ? OK : PEER_ACCESS_NOT_ENABLED;
}

SIM_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(Flags == 0, INVALID_VALUE);
    REQUIRE(peerContext != NULL && sim_handle_is(peerContext, "context") && peerContext != context,
            INVALID_CONTEXT);
    REQUIRE(can_access(context->physical, peerContext->physical), PEER_ACCESS_UNSUPPORTED);
    return set_peer(context, peerContext, true);
}

SIM_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(peerContext != NULL && sim_handle_is(peerContext, "context"), INVALID_CONTEXT);
    return set_peer(context, peerContext, false);
}

/* ---- sharing between processes -------------------------------------------------------------- */

SIM_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct sim_block block;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(pHandle != NULL && sim_find(address_of(dptr), &block), INVALID_VALUE);
    /* Neither a pool's memory nor managed memory has this kind of handle. */
    REQUIRE(block.kind == SIM_DEVICE && block.flags == 0 && block.import_count == 0, INVALID_VALUE);
    return sim_export(block.address, pHandle->reserved) ? OK : INVALID_VALUE; /* mapped memory */
}

SIM_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                          unsigned int Flags)
{
    CUcontext context;
    uint64_t size;
    void *address;

    ENTER_CONTEXT(context);
    REQUIRE(pdptr != NULL && Flags == 1, INVALID_VALUE);
    REQUIRE(!sim_export_is_ours(handle.reserved), INVALID_CONTEXT);
    address = sim_import(context->physical, handle.reserved, &size);
    REQUIRE(address != NULL, INVALID_HANDLE);
    *pdptr = (CUdeviceptr)(uintptr_t)address;
    return OK;
}

SIM_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct sim_block block;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, &context, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    REQUIRE(sim_find(address_of(dptr), &block) && block.import_count > 0, INVALID_VALUE);
    sim_device_synchronize(block.physical);
    return sim_import_close(address_of(dptr)) ? code : INVALID_VALUE;
}

SIM_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    sim_handle_check(event, "event", __func__);
    REQUIRE(pHandle != NULL, INVALID_VALUE);
    REQUIRE((sim_event_flags((struct sim_event *)event) & EVENT_INTERPROCESS) != 0, INVALID_HANDLE);
    return sim_event_export((struct sim_event *)event, pHandle->reserved) ? OK : OPERATING_SYSTEM;
}

SIM_EXPORT CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct sim_event *event;
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(phEvent != NULL, INVALID_VALUE);
    REQUIRE(!sim_export_is_ours(handle.reserved), INVALID_CONTEXT);
    event = sim_event_import(context->physical, handle.reserved);
    REQUIRE(event != NULL, INVALID_HANDLE);
    sim_handle_add(event, "event");
    *phEvent = (CUevent)event;
    return OK;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static bool is_device_property(const CUmemAllocationProp *prop, uint32_t *physical_out)
{
    return prop != NULL && prop->type == 1 && prop->location.type == 1 &&
           cuda_is_device(prop->location.id, physical_out);
}

SIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                                  const CUmemAllocationProp *prop, int option)
{
    uint32_t physical;

    ENTER();
    REQUIRE(granularity != NULL && (option == 0 || option == 1), INVALID_VALUE);
    REQUIRE(is_device_property(prop, &physical), INVALID_VALUE);
    *granularity = GRANULARITY;
    return OK;
}

SIM_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                        CUdeviceptr addr, unsigned long long flags)
{
    void *address;

    ENTER();
    REQUIRE(ptr != NULL && size > 0 && size % GRANULARITY == 0 && flags == 0, INVALID_VALUE);
    REQUIRE((alignment & (alignment - 1)) == 0, INVALID_VALUE);
    address =
        sim_reserve(size, alignment < GRANULARITY ? GRANULARITY : alignment, address_of(addr));
    REQUIRE(address != NULL, OUT_OF_MEMORY);
    *ptr = (CUdeviceptr)(uintptr_t)address;
    return OK;
}

SIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, NULL, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    return sim_unreserve(address_of(ptr), size) ? code : INVALID_VALUE;
}

SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                                const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_physical *memory;
    uint32_t physical;

    ENTER();
    REQUIRE(handle != NULL && flags == 0 && size > 0 && size % GRANULARITY == 0, INVALID_VALUE);
    REQUIRE(is_device_property(prop, &physical), INVALID_VALUE);
    REQUIRE(!sim_is_lost(physical), cuda_lost_code());
    /*
     * The flag must equal attribute 110. A driver accepts memory without the flag, too, which
     * network cards then cannot access: the simulator rejects it, to detect a caller that forgets
     * the flag.
     */
    REQUIRE(prop->allocFlags.gpuDirectRDMACapable ==
                (sim_number(sim_device_at(physical), "rdma_with_vmm", 1) != 0),
            NOT_SUPPORTED);
    memory = sim_physical_create(physical, size);
    REQUIRE(memory != NULL, OUT_OF_MEMORY);
    sim_handle_add(memory, "memory-handle");
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return OK;
}

/* Mappings keep the memory alive. */
SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, NULL, &code), code);
    sim_handle_remove(address_of(handle), "memory-handle", __func__);
    sim_physical_put(address_of(handle));
    return code;
}

SIM_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    ENTER();
    sim_handle_check(address_of(handle), "memory-handle", __func__);
    REQUIRE(offset == 0, NOT_SUPPORTED);
    REQUIRE(flags == 0 && size % GRANULARITY == 0 && ptr % GRANULARITY == 0, INVALID_VALUE);
    return sim_map(address_of(ptr), size, address_of(handle), offset) ? OK : INVALID_VALUE;
}

SIM_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct sim_block block;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, NULL, &code), code);
    REQUIRE(code == OK || code == cuda_lost_code(), code);
    if (sim_find(address_of(ptr), &block)) {
        sim_device_synchronize(block.physical);
    }
    return sim_unmap(address_of(ptr), size) ? code : INVALID_VALUE;
}

/* The engine has one access mode for all devices: it grants the access that any device has. */
SIM_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
                                   size_t count)
{
    struct sim_block block;
    uint32_t physical;

    ENTER();
    REQUIRE(desc != NULL && count > 0 && sim_find(address_of(ptr), &block), INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(desc[i].location.type == 1 && cuda_is_device(desc[i].location.id, &physical),
                INVALID_VALUE);
        REQUIRE(desc[i].flags == 0 || desc[i].flags == 1 || desc[i].flags == 3, INVALID_VALUE);
        REQUIRE(physical == block.physical || can_access(physical, block.physical), INVALID_DEVICE);
        if ((physical == block.physical || desc[i].flags != 0) &&
            !sim_set_access(address_of(ptr), size, (uint32_t)desc[i].flags)) {
            return INVALID_VALUE;
        }
    }
    return OK;
}

SIM_EXPORT CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                                  int handleType, unsigned long long flags)
{
    int fd;

    ENTER();
    REQUIRE(handle != NULL && handleType == 1 && flags <= 1, INVALID_VALUE);
    REQUIRE(size > 0 && size % 4096 == 0 && dptr % 4096 == 0, INVALID_VALUE);
    fd = sim_export_fd(address_of(dptr), size);
    REQUIRE(fd >= 0, INVALID_VALUE);
    memcpy(handle, &fd, sizeof(fd));
    return OK;
}
