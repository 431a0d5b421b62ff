/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libSynapse.so. Prototypes, numbers and sizes are written here a second time, from the
 * vendor's headers, and not taken from the plugin: an argument that the plugin passes in the wrong
 * position is detected.
 *
 * Facts of the machine's file: per device "module_id" (its number in the box), "type" (2 Gaudi, 4
 * Gaudi 2, 5 Gaudi 3; SynapseAI_Core: 0 Gaudi, 1 Gaudi 2), "tpc_mask", "busy" (another process has
 * acquired it); of the vendor "order" and "driver_version".
 *
 * The simulator enforces the rules that the plugin relies on:
 *  - a module is acquired once, by one process of the machine (a socket's name is the lock);
 *  - a copy's direction and its addresses agree; host memory is mapped for the device, or the copy
 *    fails with 34; removing a map that a copy uses is misuse;
 *  - only events with EVENT_COLLECT_TIME have times;
 *  - a device is released only after all of its objects.
 */
#include "engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYNAPSE_TYPED
#define SYNAPSE_TYPED 0
#endif

/* ---- the needed part of the header ---------------------------------------------------------- */

typedef enum {
    synSuccess = 0,
    synInvalidArgument = 1,
    synOutOfHostMemory = 3,
    synOutOfDeviceMemory = 4,
    synNoDeviceFound = 8,
    synDeviceReset = 17,
    synUnsupported = 18,
    synDeviceAlreadyAcquired = 20,
    synBusy = 22,
    synFail = 26,
    synAlreadyInitialized = 29,
    synInvalidEventHandle = 33,
    synMappingNotFound = 34,
    synFailedToCollectTime = 41
} synStatus;

typedef enum {
    HOST_TO_DRAM = 0,
    DRAM_TO_HOST = 1,
    DRAM_TO_DRAM = 2
} synDmaDir;

typedef enum {
    DEVICE_ATTRIBUTE_DRAM_SIZE = 3,
    DEVICE_ATTRIBUTE_DRAM_FREE_SIZE = 4,
    DEVICE_ATTRIBUTE_TPC_ENABLED_MASK = 5,
    DEVICE_ATTRIBUTE_DRAM_ENABLED = 6,
    DEVICE_ATTRIBUTE_DEVICE_TYPE = 7
} synDeviceAttribute;

typedef enum {
    STREAM_TYPE_COPY_DEVICE_TO_HOST = 0,
    STREAM_TYPE_COPY_HOST_TO_DEVICE = 1,
    STREAM_TYPE_COPY_DEVICE_TO_DEVICE = 2,
    STREAM_TYPE_COMPUTE = 3,
    STREAM_TYPE_ANY = -1
} synStreamType;

typedef uint32_t synDeviceId;
typedef uint32_t synModuleId;
typedef struct syn_stream *synStreamHandle;
typedef struct syn_event *synEventHandle;

#define EVENT_COLLECT_TIME 1u

SIM_ASSERT(sizeof(synStatus) == 4 && sizeof(synDmaDir) == 4, "enums are int");
SIM_ASSERT(sizeof(synDeviceAttribute) == 4, "and so are attributes");
SIM_ASSERT(sizeof(synDeviceId) == 4 && sizeof(synModuleId) == 4, "ids");
SIM_ASSERT(sizeof(synStreamHandle) == 8 && sizeof(synEventHandle) == 8, "handles");

/* The exported functions. */
SIM_EXPORT synStatus synInitialize(void);
SIM_EXPORT synStatus synDestroy(void);
SIM_EXPORT synStatus synDeviceGetCount(uint32_t *pCount);
SIM_EXPORT synStatus synDeviceGetModuleIDs(uint32_t *pDeviceModuleIds, uint32_t *size);
SIM_EXPORT synStatus synDeviceAcquireByModuleId(synDeviceId *pDeviceId, const synModuleId moduleId);
SIM_EXPORT synStatus synDeviceRelease(const synDeviceId deviceId);
SIM_EXPORT synStatus synDeviceGetAttribute(uint64_t *retVal, const synDeviceAttribute *deviceAttr,
                                           const unsigned querySize, const synDeviceId deviceId);
SIM_EXPORT synStatus synDeviceGetAttributeByModuleId(uint64_t *retVal,
                                                     const synDeviceAttribute *deviceAttr,
                                                     const unsigned querySize,
                                                     const synModuleId moduleId);
SIM_EXPORT synStatus synDeviceGetName(char *pName, const int len, const synDeviceId deviceId);
SIM_EXPORT synStatus synDeviceGetPCIBusId(char *pPciBusId, const int len,
                                          const synDeviceId deviceId);
SIM_EXPORT synStatus synDeviceGetMemoryInfo(const synDeviceId deviceId, uint64_t *free,
                                            uint64_t *total);
SIM_EXPORT synStatus synDeviceSynchronize(const synDeviceId deviceId);
SIM_EXPORT synStatus synDeviceMalloc(const synDeviceId deviceId, const uint64_t size,
                                     uint64_t reqAddr, const uint32_t flags, uint64_t *buffer);
SIM_EXPORT synStatus synDeviceFree(const synDeviceId deviceId, const uint64_t buffer,
                                   const uint32_t flags);
SIM_EXPORT synStatus synHostMalloc(const synDeviceId deviceId, const uint64_t size,
                                   const uint32_t flags, void **buffer);
SIM_EXPORT synStatus synHostFree(const synDeviceId deviceId, const void *buffer,
                                 const uint32_t flags);
SIM_EXPORT synStatus synHostMap(const synDeviceId deviceId, const uint64_t size,
                                const void *buffer);
SIM_EXPORT synStatus synHostUnmap(const synDeviceId deviceId, const void *buffer);
SIM_EXPORT synStatus synMemCopyAsync(const synStreamHandle streamHandle, const uint64_t src,
                                     const uint64_t size, const uint64_t dst,
                                     const synDmaDir direction);
SIM_EXPORT synStatus synMemsetD8Async(uint64_t pDeviceMem, const unsigned char value,
                                      const uint64_t numOfElements,
                                      const synStreamHandle streamHandle);
SIM_EXPORT synStatus synMemsetD16Async(uint64_t pDeviceMem, const uint16_t value,
                                       const uint64_t numOfElements,
                                       const synStreamHandle streamHandle);
SIM_EXPORT synStatus synMemsetD32Async(uint64_t pDeviceMem, const uint32_t value,
                                       const uint64_t numOfElements,
                                       const synStreamHandle streamHandle);
#if SYNAPSE_TYPED
SIM_EXPORT synStatus synStreamCreate(synStreamHandle *pStreamHandle, const synDeviceId deviceId,
                                     const synStreamType streamType, const uint32_t flags);
#else
SIM_EXPORT synStatus synStreamCreateGeneric(synStreamHandle *pStreamHandle,
                                            const synDeviceId deviceId, const uint32_t flags);
#endif
SIM_EXPORT synStatus synStreamDestroy(const synStreamHandle streamHandle);
SIM_EXPORT synStatus synStreamSynchronize(const synStreamHandle streamHandle);
SIM_EXPORT synStatus synStreamQuery(const synStreamHandle streamHandle);
SIM_EXPORT synStatus synStreamWaitEvent(const synStreamHandle streamHandle,
                                        synEventHandle eventHandle, const uint32_t flags);
SIM_EXPORT synStatus synEventCreate(synEventHandle *pEventHandler, const synDeviceId deviceId,
                                    const uint32_t flags);
SIM_EXPORT synStatus synEventDestroy(synEventHandle eventHandle);
SIM_EXPORT synStatus synEventRecord(synEventHandle eventHandle, const synStreamHandle streamHandle);
SIM_EXPORT synStatus synEventSynchronize(const synEventHandle eventHandle);
SIM_EXPORT synStatus synEventQuery(const synEventHandle eventHandle);
SIM_EXPORT synStatus synEventElapsedTime(uint64_t *pNanoSeconds,
                                         const synEventHandle eventHandleStart,
                                         const synEventHandle eventHandleEnd);
SIM_EXPORT synStatus synDriverGetVersion(char *pDriverVersion, const int len);

/* ---- state ---------------------------------------------------------------------------------- */

#define DEVICES 64
#define FIRST_ID 5 /* ids of devices differ from their indices and their modules */

struct syn_stream {
    struct sim_stream *sim;
    uint32_t device; /* physical number */
    synStreamType type;
};

struct syn_event {
    struct sim_event *sim;
    uint32_t device;
};

/* Host memory that a device can access, or that a copy in flight uses. */
struct range {
    struct range *next;
    const char *address;
    uint64_t size;
    uint32_t device;
    bool is_pinned; /* pinned by synHostMalloc() */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all variables below */
static bool is_initialized;
static int locks[DEVICES]; /* the socket whose name marks a device as acquired; 0: not acquired */
static uint32_t live[DEVICES]; /* streams and events of each device */
static struct range *flights;
static struct range *maps; /* maps of one device do not overlap */

__attribute__((constructor)) static void name_failure(void)
{
    sim_failure = synFail;
}

#define ENTER() \
    do { \
        int64_t scripted_ = begin(__func__); \
        if (scripted_ != 0) { \
            return (synStatus)scripted_; \
        } \
    } while (0)

static int64_t begin(const char *call)
{
    int64_t scripted = sim_enter(call);

    if (!is_initialized && strcmp(call, "synInitialize") != 0) {
        sim_misuse("%s: before synInitialize", call);
    }
    return scripted;
}

/* Returns the physical number of a device id, which must be acquired. */
static uint32_t physical_of(synDeviceId id, const char *call)
{
    if (id < FIRST_ID || id - FIRST_ID >= sim_device_count("hpu") || locks[id - FIRST_ID] == 0) {
        sim_misuse("%s: device id %u is not acquired", call, id);
    }
    return id - FIRST_ID;
}

static uint32_t module_of(uint32_t physical)
{
    return (uint32_t)sim_number(sim_device_at(physical), "module_id", physical);
}

/* Returns the physical number of the device with a module id; -1: none. */
static int64_t find_module(synModuleId module)
{
    for (uint32_t i = 0; i < sim_device_count("hpu"); i++) {
        if (module_of(i) == module) {
            return i;
        }
    }
    return -1;
}

static synStatus lost_or(uint32_t physical, synStatus otherwise)
{
    return sim_is_lost(physical) ? synDeviceReset : otherwise;
}

static synStatus from_sim(int result)
{
    return result == 0 ? synSuccess : result == 1 ? synBusy : synDeviceReset;
}

/* ---- start and devices ---------------------------------------------------------------------- */

synStatus synInitialize(void)
{
    ENTER();
    if (is_initialized) {
        return synAlreadyInitialized;
    }
    is_initialized = true;
    return synSuccess;
}

synStatus synDestroy(void)
{
    ENTER();
    for (uint32_t i = 0; i < DEVICES; i++) {
        if (locks[i] != 0) {
            sim_misuse("synDestroy: module %u is still acquired", module_of(i));
        }
    }
    is_initialized = false;
    sim_shut_down();
    return synSuccess;
}

synStatus synDeviceGetCount(uint32_t *pCount)
{
    ENTER();
    *pCount = sim_device_count("hpu");
    return synSuccess;
}

synStatus synDeviceGetModuleIDs(uint32_t *pDeviceModuleIds, uint32_t *size)
{
    uint32_t order[DEVICES];
    uint32_t count;

    ENTER();
    sim_device_count("hpu");
    count = sim_order(NULL, "pci", order, DEVICES);
    if (*size < count) {
        return synInvalidArgument;
    }
    for (uint32_t i = 0; i < count; i++) {
        pDeviceModuleIds[i] = module_of(order[i]);
    }
    *size = count;
    return synSuccess;
}

/*
 * Acquires a device for this process: the name of an abstract socket is the lock, which the kernel
 * releases when the process exits. Processes with the same SIM_SCOPE share one machine; another
 * SIM_SCOPE means another machine of the same description.
 */
static int lock_device(uint32_t physical)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *file = getenv("SIM_MACHINE");
    const char *scope = getenv("SIM_SCOPE");
    char *path = realpath(file != NULL ? file : "", NULL);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint64_t hash = 14695981039346656037u;

    for (const char *at = path; at != NULL && *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    free(path);
    snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "ds-accel-sim/hpu/%016llx/%u/%u/%.40s",
             (unsigned long long)hash, (unsigned)getuid(), physical, scope != NULL ? scope : "");
    if (fd < 0 || bind(fd, (struct sockaddr *)&name,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                   strlen(name.sun_path + 1))) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    return fd;
}

synStatus synDeviceAcquireByModuleId(synDeviceId *pDeviceId, const synModuleId moduleId)
{
    int64_t physical;
    synStatus status = synSuccess;

    ENTER();
    physical = find_module(moduleId);
    if (physical < 0) {
        return synNoDeviceFound;
    }
    pthread_mutex_lock(&lock);
    if (sim_number(sim_device_at((uint32_t)physical), "busy", 0) != 0 || locks[physical] != 0) {
        status = synDeviceAlreadyAcquired;
    } else {
        locks[physical] = lock_device((uint32_t)physical);
        status = locks[physical] == 0 ? synDeviceAlreadyAcquired : synSuccess;
    }
    pthread_mutex_unlock(&lock);
    if (status == synSuccess) {
        *pDeviceId = (synDeviceId)physical + FIRST_ID;
    }
    return status;
}

static struct range *find_map(uint32_t device, const char *address, uint64_t size, bool is_all);

/* Checks that nothing is left, except with scripted failures: then the caller may have been unable
 * to release an object. */
static void check_nothing_left(uint32_t physical)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;

    sim_memory_info(physical, &free_bytes, &total_bytes);
    if (getenv("SIM_FAIL") == NULL && !sim_is_lost(physical) &&
        (live[physical] != 0 || free_bytes != total_bytes ||
         find_map(physical, NULL, INT64_MAX, false) != NULL)) {
        sim_misuse("synDeviceRelease: %u streams and events, %llu bytes%s are left", live[physical],
                   (unsigned long long)(total_bytes - free_bytes),
                   find_map(physical, NULL, INT64_MAX, false) != NULL ? ", maps" : "");
    }
}

synStatus synDeviceRelease(const synDeviceId deviceId)
{
    uint32_t physical;

    ENTER();
    physical = physical_of(deviceId, "synDeviceRelease");
    check_nothing_left(physical);
    pthread_mutex_lock(&lock);
    close(locks[physical]);
    locks[physical] = 0;
    pthread_mutex_unlock(&lock);
    return synSuccess;
}

/* ---- facts ---------------------------------------------------------------------------------- */

static synStatus get_attributes(uint32_t physical, uint64_t *values,
                                const synDeviceAttribute *attributes, unsigned count)
{
    const struct sim_device *device = sim_device_at(physical);
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;

    sim_memory_info(physical, &free_bytes, &total_bytes);
    for (unsigned i = 0; i < count; i++) {
        switch (attributes[i]) {
        case DEVICE_ATTRIBUTE_DRAM_SIZE:
            values[i] = total_bytes;
            break;
        case DEVICE_ATTRIBUTE_DRAM_FREE_SIZE:
            values[i] = free_bytes;
            break;
        case DEVICE_ATTRIBUTE_TPC_ENABLED_MASK:
            values[i] = (uint64_t)sim_number(device, "tpc_mask", 0xffffff);
            break;
        case DEVICE_ATTRIBUTE_DRAM_ENABLED:
            values[i] = 1;
            break;
        case DEVICE_ATTRIBUTE_DEVICE_TYPE:
            values[i] = (uint64_t)sim_number(device, "type", 4);
            break;
        default:
            return synInvalidArgument;
        }
    }
    return synSuccess;
}

synStatus synDeviceGetAttribute(uint64_t *retVal, const synDeviceAttribute *deviceAttr,
                                const unsigned querySize, const synDeviceId deviceId)
{
    ENTER();
    return get_attributes(physical_of(deviceId, __func__), retVal, deviceAttr, querySize);
}

synStatus synDeviceGetAttributeByModuleId(uint64_t *retVal, const synDeviceAttribute *deviceAttr,
                                          const unsigned querySize, const synModuleId moduleId)
{
    int64_t physical;

    ENTER();
    physical = find_module(moduleId);
    return physical < 0 ? synNoDeviceFound
                        : get_attributes((uint32_t)physical, retVal, deviceAttr, querySize);
}

synStatus synDeviceGetName(char *pName, const int len, const synDeviceId deviceId)
{
    ENTER();
    snprintf(pName, (size_t)len, "%s", sim_device_at(physical_of(deviceId, __func__))->name);
    return synSuccess;
}

synStatus synDeviceGetPCIBusId(char *pPciBusId, const int len, const synDeviceId deviceId)
{
    ENTER();
    snprintf(pPciBusId, (size_t)len, "%s",
             sim_device_at(physical_of(deviceId, __func__))->pci_address);
    return synSuccess;
}

synStatus synDeviceGetMemoryInfo(const synDeviceId deviceId, uint64_t *free, uint64_t *total)
{
    uint32_t physical;

    ENTER();
    physical = physical_of(deviceId, __func__);
    if (sim_is_lost(physical)) {
        return synDeviceReset;
    }
    sim_memory_info(physical, free, total);
    return synSuccess;
}

synStatus synDriverGetVersion(char *pDriverVersion, const int len)
{
    ENTER();
    snprintf(pDriverVersion, (size_t)len, "%s", sim_vendor_text("driver_version", "1.19.0-abc"));
    return synSuccess;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *pointer_to(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

synStatus synDeviceMalloc(const synDeviceId deviceId, const uint64_t size, uint64_t reqAddr,
                          const uint32_t flags, uint64_t *buffer)
{
    uint32_t physical;
    void *address;

    ENTER();
    physical = physical_of(deviceId, __func__);
    if (reqAddr != 0 || flags != 0) {
        sim_misuse("synDeviceMalloc: address 0x%llx and flags 0x%x are not 0",
                   (unsigned long long)reqAddr, flags);
    }
    if (sim_is_lost(physical) || size == 0) {
        return lost_or(physical, synInvalidArgument);
    }
    address = sim_alloc(physical, size, 128, SIM_DEVICE, 0);
    if (address == NULL) {
        return synOutOfDeviceMemory;
    }
    *buffer = (uint64_t)(uintptr_t)address;
    return synSuccess;
}

synStatus synDeviceFree(const synDeviceId deviceId, const uint64_t buffer, const uint32_t flags)
{
    ENTER();
    physical_of(deviceId, __func__);
    if (flags != 0) {
        sim_misuse("synDeviceFree: flags 0x%x", flags);
    }
    sim_free(pointer_to(buffer), SIM_DEVICE, __func__);
    return synSuccess;
}

static bool meet(const struct range *range, uint32_t device, const char *address, uint64_t size)
{
    return range->device == device && range->address < address + size &&
           range->address + range->size > address;
}

static struct range *add_range(struct range **list, uint32_t device, const void *address,
                               uint64_t size, bool is_pinned)
{
    struct range *range = calloc(1, sizeof(*range));

    if (range == NULL) {
        sim_misuse("the simulator itself has no memory");
    }
    range->device = device;
    range->address = address;
    range->size = size;
    range->is_pinned = is_pinned;
    pthread_mutex_lock(&lock);
    range->next = *list;
    *list = range;
    pthread_mutex_unlock(&lock);
    return range;
}

static void remove_range(struct range **list, const struct range *range)
{
    pthread_mutex_lock(&lock);
    while (*list != range) {
        list = &(*list)->next;
    }
    *list = range->next;
    pthread_mutex_unlock(&lock);
}

/* Returns the device's map that contains all of the bytes or, without is_all, overlaps any of
 * them. */
static struct range *find_map(uint32_t device, const char *address, uint64_t size, bool is_all)
{
    struct range *range;

    pthread_mutex_lock(&lock);
    for (range = maps; range != NULL; range = range->next) {
        if (meet(range, device, address, size) &&
            (!is_all || (range->address <= address &&
                         size <= range->size - (uint64_t)(address - range->address)))) {
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return range;
}

/* Removes the map that begins at buffer. It is misuse if a copy uses the map. */
static struct range *take_map(uint32_t device, const void *buffer, bool is_pinned, const char *call)
{
    struct range *map = find_map(device, buffer, 1, true);

    if (map == NULL || map->address != (const char *)buffer || map->is_pinned != is_pinned) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    for (const struct range *flight = flights; flight != NULL; flight = flight->next) {
        if (!sim_is_lost(device) && meet(flight, device, map->address, map->size)) {
            sim_misuse("%s: a copy in flight uses %p", call, buffer);
        }
    }
    pthread_mutex_unlock(&lock);
    remove_range(&maps, map);
    return map;
}

synStatus synHostMalloc(const synDeviceId deviceId, const uint64_t size, const uint32_t flags,
                        void **buffer)
{
    uint32_t physical;
    void *address;

    ENTER();
    physical = physical_of(deviceId, __func__);
    if (size == 0 || flags != 0) {
        return synInvalidArgument;
    }
    address = sim_alloc(physical, size, 4096, SIM_PINNED, 0);
    if (address == NULL) {
        return synOutOfHostMemory;
    }
    add_range(&maps, physical, address, size, true);
    *buffer = address;
    return synSuccess;
}

synStatus synHostFree(const synDeviceId deviceId, const void *buffer, const uint32_t flags)
{
    struct range *map;

    ENTER();
    if (flags != 0) {
        sim_misuse("synHostFree: flags 0x%x", flags);
    }
    map = take_map(physical_of(deviceId, __func__), buffer, true, __func__);
    if (map == NULL) {
        sim_misuse("synHostFree: %p is not synHostMalloc's", buffer);
    }
    free(map);
    sim_free((void *)(uintptr_t)buffer, SIM_PINNED, __func__);
    return synSuccess;
}

synStatus synHostMap(const synDeviceId deviceId, const uint64_t size, const void *buffer)
{
    uint32_t physical;

    ENTER();
    physical = physical_of(deviceId, __func__);
    if (size == 0 || buffer == NULL || sim_is_lost(physical)) {
        return lost_or(physical, synInvalidArgument);
    }
    if (find_map(physical, buffer, size, false) != NULL) {
        sim_misuse("synHostMap: %llu bytes at %p are mapped already, or some of them",
                   (unsigned long long)size, buffer);
    }
    add_range(&maps, physical, buffer, size, false);
    return synSuccess;
}

synStatus synHostUnmap(const synDeviceId deviceId, const void *buffer)
{
    struct range *map;

    ENTER();
    map = take_map(physical_of(deviceId, __func__), buffer, false, __func__);
    free(map);
    return map != NULL ? synSuccess : synMappingNotFound;
}

/* ---- work ----------------------------------------------------------------------------------- */

static struct syn_stream *stream_of(synStreamHandle handle, synStreamType type, const char *call)
{
    sim_handle_check(handle, "stream", call);
    if (handle->type != STREAM_TYPE_ANY && type != STREAM_TYPE_ANY && handle->type != type) {
        sim_misuse("%s: a stream of type %d does work of type %d", call, (int)handle->type,
                   (int)type);
    }
    return handle;
}

static void check_device_range(uint32_t physical, uint64_t address, uint64_t size, const char *call)
{
    struct sim_block block;

    if (!sim_range_is(pointer_to(address), size, 1u << SIM_DEVICE) ||
        !sim_find(pointer_to(address), &block) || block.physical != physical) {
        sim_misuse("%s: %llu bytes at 0x%llx are not of the device's memory", call,
                   (unsigned long long)size, (unsigned long long)address);
    }
}

static bool is_mapped(uint32_t physical, uint64_t address, uint64_t size)
{
    return find_map(physical, pointer_to(address), size, true) != NULL;
}

static void land(void *argument)
{
    remove_range(&flights, argument);
    free(argument);
}

/* Checks that source and destination agree with the direction. */
static synStatus check_copy(struct syn_stream *stream, uint64_t src, uint64_t size, uint64_t dst,
                            synDmaDir direction)
{
    const char *call = "synMemCopyAsync";

    if ((int)direction < 0 || direction > DRAM_TO_DRAM || size == 0) {
        return synInvalidArgument;
    }
    if (direction != HOST_TO_DRAM) {
        check_device_range(stream->device, src, size, call);
    } else if (!is_mapped(stream->device, src, size)) {
        return synMappingNotFound;
    }
    if (direction != DRAM_TO_HOST) {
        check_device_range(stream->device, dst, size, call);
    } else if (!is_mapped(stream->device, dst, size)) {
        return synMappingNotFound;
    }
    return synSuccess;
}

synStatus synMemCopyAsync(const synStreamHandle streamHandle, const uint64_t src,
                          const uint64_t size, const uint64_t dst, const synDmaDir direction)
{
    static const synStreamType types[] = {STREAM_TYPE_COPY_HOST_TO_DEVICE,
                                          STREAM_TYPE_COPY_DEVICE_TO_HOST,
                                          STREAM_TYPE_COPY_DEVICE_TO_DEVICE};
    struct range *flight = NULL;
    struct syn_stream *stream;
    synStatus status;

    ENTER();
    stream = stream_of(streamHandle,
                       (unsigned)direction <= DRAM_TO_DRAM ? types[direction] : STREAM_TYPE_ANY,
                       __func__);
    if (sim_is_lost(stream->device)) {
        return synDeviceReset;
    }
    status = check_copy(stream, src, size, dst, direction);
    if (status != synSuccess) {
        return status;
    }
    if (direction != DRAM_TO_DRAM) {
        flight = add_range(&flights, stream->device,
                           pointer_to(direction == HOST_TO_DRAM ? src : dst), size, false);
    }
    if (sim_submit_copy(stream->sim, pointer_to(dst), pointer_to(src), size) != 0) {
        return lost_or(stream->device, synFail);
    }
    if (flight != NULL) {
        sim_submit_step(stream->sim, land, flight);
    }
    return synSuccess;
}

static synStatus fill(synStreamHandle handle, uint64_t address, const void *pattern,
                      uint32_t pattern_bytes, uint64_t count, const char *call)
{
    struct syn_stream *stream = stream_of(handle, STREAM_TYPE_COPY_DEVICE_TO_DEVICE, call);

    if (sim_is_lost(stream->device) || count == 0) {
        return lost_or(stream->device, synInvalidArgument);
    }
    check_device_range(stream->device, address, count * pattern_bytes, call);
    return sim_submit_fill(stream->sim, pointer_to(address), pattern, pattern_bytes,
                           count * pattern_bytes) == 0
               ? synSuccess
               : synDeviceReset;
}

synStatus synMemsetD8Async(uint64_t pDeviceMem, const unsigned char value,
                           const uint64_t numOfElements, const synStreamHandle streamHandle)
{
    ENTER();
    return fill(streamHandle, pDeviceMem, &value, 1, numOfElements, __func__);
}

synStatus synMemsetD16Async(uint64_t pDeviceMem, const uint16_t value, const uint64_t numOfElements,
                            const synStreamHandle streamHandle)
{
    ENTER();
    return fill(streamHandle, pDeviceMem, &value, 2, numOfElements, __func__);
}

synStatus synMemsetD32Async(uint64_t pDeviceMem, const uint32_t value, const uint64_t numOfElements,
                            const synStreamHandle streamHandle)
{
    ENTER();
    return fill(streamHandle, pDeviceMem, &value, 4, numOfElements, __func__);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void count_live(uint32_t physical, int change)
{
    pthread_mutex_lock(&lock);
    live[physical] += (uint32_t)change;
    pthread_mutex_unlock(&lock);
}

static synStatus create_stream(synStreamHandle *handle, synDeviceId id, synStreamType type,
                               uint32_t flags, const char *call)
{
    uint32_t physical = physical_of(id, call);
    struct syn_stream *stream;

    if (sim_is_lost(physical) || flags != 0) {
        return lost_or(physical, synInvalidArgument);
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return synOutOfHostMemory;
    }
    stream->sim = sim_stream_create(physical, SIM_STREAM_NON_BLOCKING, 0);
    if (stream->sim == NULL) {
        free(stream);
        return synOutOfHostMemory;
    }
    stream->device = physical;
    stream->type = type;
    sim_handle_add(stream, "stream");
    count_live(physical, 1);
    *handle = stream;
    return synSuccess;
}

#if SYNAPSE_TYPED
synStatus synStreamCreate(synStreamHandle *pStreamHandle, const synDeviceId deviceId,
                          const synStreamType streamType, const uint32_t flags)
{
    ENTER();
    if ((int)streamType < 0 || streamType > STREAM_TYPE_COMPUTE) {
        return synInvalidArgument;
    }
    return create_stream(pStreamHandle, deviceId, streamType, flags, __func__);
}
#else
synStatus synStreamCreateGeneric(synStreamHandle *pStreamHandle, const synDeviceId deviceId,
                                 const uint32_t flags)
{
    ENTER();
    return create_stream(pStreamHandle, deviceId, STREAM_TYPE_ANY, flags, __func__);
}
#endif

synStatus synStreamDestroy(const synStreamHandle streamHandle)
{
    ENTER();
    sim_handle_remove(streamHandle, "stream", __func__);
    sim_stream_destroy(streamHandle->sim);
    count_live(streamHandle->device, -1);
    free(streamHandle);
    return synSuccess;
}

synStatus synStreamSynchronize(const synStreamHandle streamHandle)
{
    ENTER();
    return from_sim(sim_stream_synchronize(stream_of(streamHandle, STREAM_TYPE_ANY, __func__)->sim,
                                           UINT64_MAX));
}

synStatus synStreamQuery(const synStreamHandle streamHandle)
{
    ENTER();
    return from_sim(sim_stream_query(stream_of(streamHandle, STREAM_TYPE_ANY, __func__)->sim));
}

synStatus synStreamWaitEvent(const synStreamHandle streamHandle, synEventHandle eventHandle,
                             const uint32_t flags)
{
    struct syn_stream *stream;

    ENTER();
    stream = stream_of(streamHandle, STREAM_TYPE_ANY, __func__);
    sim_handle_check(eventHandle, "event", __func__);
    if (flags != 0) {
        return synInvalidArgument;
    }
    return sim_stream_wait_event(stream->sim, eventHandle->sim) == 0 ? synSuccess : synDeviceReset;
}

synStatus synDeviceSynchronize(const synDeviceId deviceId)
{
    ENTER();
    return from_sim(sim_device_synchronize(physical_of(deviceId, __func__)));
}

/* ---- events --------------------------------------------------------------------------------- */

synStatus synEventCreate(synEventHandle *pEventHandler, const synDeviceId deviceId,
                         const uint32_t flags)
{
    struct syn_event *event;
    uint32_t physical;

    ENTER();
    physical = physical_of(deviceId, __func__);
    if (sim_is_lost(physical) || (flags & ~EVENT_COLLECT_TIME) != 0) {
        return lost_or(physical, synInvalidArgument);
    }
    event = calloc(1, sizeof(*event));
    if (event == NULL) {
        return synOutOfHostMemory;
    }
    event->sim = sim_event_create(physical, flags);
    if (event->sim == NULL) {
        free(event);
        return synOutOfHostMemory;
    }
    event->device = physical;
    sim_handle_add(event, "event");
    count_live(physical, 1);
    *pEventHandler = event;
    return synSuccess;
}

synStatus synEventDestroy(synEventHandle eventHandle)
{
    ENTER();
    sim_handle_remove(eventHandle, "event", __func__);
    sim_event_destroy(eventHandle->sim);
    count_live(eventHandle->device, -1);
    free(eventHandle);
    return synSuccess;
}

synStatus synEventRecord(synEventHandle eventHandle, const synStreamHandle streamHandle)
{
    struct syn_stream *stream;

    ENTER();
    sim_handle_check(eventHandle, "event", __func__);
    stream = stream_of(streamHandle, STREAM_TYPE_ANY, __func__);
    if (stream->device != eventHandle->device) {
        sim_misuse("synEventRecord: the stream is another device's");
    }
    return sim_event_record(eventHandle->sim, stream->sim) == 0 ? synSuccess : synDeviceReset;
}

/* Returns 33 for an event that was never recorded, which cannot be queried. */
static synStatus check_recorded(synEventHandle event, const char *call)
{
    sim_handle_check(event, "event", call);
    return sim_event_is_recorded(event->sim) ? synSuccess : synInvalidEventHandle;
}

synStatus synEventSynchronize(const synEventHandle eventHandle)
{
    synStatus status;

    ENTER();
    status = check_recorded(eventHandle, __func__);
    return status != synSuccess ? status
                                : from_sim(sim_event_synchronize(eventHandle->sim, UINT64_MAX));
}

synStatus synEventQuery(const synEventHandle eventHandle)
{
    synStatus status;

    ENTER();
    status = check_recorded(eventHandle, __func__);
    return status != synSuccess ? status : from_sim(sim_event_query(eventHandle->sim));
}

synStatus synEventElapsedTime(uint64_t *pNanoSeconds, const synEventHandle eventHandleStart,
                              const synEventHandle eventHandleEnd)
{
    ENTER();
    sim_handle_check(eventHandleStart, "event", __func__);
    sim_handle_check(eventHandleEnd, "event", __func__);
    if ((sim_event_flags(eventHandleStart->sim) & EVENT_COLLECT_TIME) == 0 ||
        (sim_event_flags(eventHandleEnd->sim) & EVENT_COLLECT_TIME) == 0 ||
        sim_event_query(eventHandleStart->sim) != 0 || sim_event_query(eventHandleEnd->sim) != 0) {
        return synFailedToCollectTime;
    }
    *pNanoSeconds = sim_event_time_ns(eventHandleEnd->sim) -
                    sim_event_time_ns(eventHandleStart->sim);
    return synSuccess;
}
