/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory, handles between processes, virtual memory. */
#include "shim.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags, ordinal;
} ze_device_mem_alloc_desc_t;
SIM_ASSERT(sizeof(ze_device_mem_alloc_desc_t) == 24, "by ze_api.h");

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags;
} ze_host_mem_alloc_desc_t;
SIM_ASSERT(sizeof(ze_host_mem_alloc_desc_t) == 24, "by ze_api.h");

/* Returns true if the descriptor has the only allowed chain: a request for more than
 * maxMemAllocSize. */
static bool is_relaxed(const ze_device_mem_alloc_desc_t *desc, const char *call)
{
    const ze_host_mem_alloc_desc_t *chain = desc->pNext;
    ze_device_mem_alloc_desc_t alone = *desc;

    alone.pNext = NULL;
    check_base(&alone, 0x15, call);
    if (chain == NULL) {
        return false;
    }
    check_base(chain, 0x00020001, call);
    return chain->flags == 1;
}

static ze_result_t check_size(size_t size, size_t alignment)
{
    if (size == 0) {
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    }
    return (alignment & (alignment - 1)) != 0 ? ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT
                                              : ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeMemAllocDevice(struct context *context,
                                        const ze_device_mem_alloc_desc_t *desc, size_t size,
                                        size_t alignment, struct device *device, void **pptr);
SIM_EXPORT ze_result_t zeMemAllocDevice(struct context *context,
                                        const ze_device_mem_alloc_desc_t *desc, size_t size,
                                        size_t alignment, struct device *device, void **pptr)
{
    uint64_t limit;
    ze_result_t result;

    ENTER();
    NEED_HANDLE(context);
    NEED_HANDLE(device);
    NEED_POINTER(desc);
    NEED_POINTER(pptr);
    check_context(context, __func__);
    check_device(device, __func__);
    limit = is_relaxed(desc, __func__) ? UINT64_MAX
                                       : (uint64_t)sim_number(device->card, "max_alloc_bytes",
                                                              (int64_t)device_memory_bytes(device));
    result = check_size(size, alignment);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    if (device_is_lost(device)) {
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    if (size > limit) {
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    }
    *pptr = sim_alloc(device->part->physical, size, alignment, SIM_DEVICE, 0);
    return *pptr != NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}

SIM_EXPORT ze_result_t zeMemAllocHost(struct context *context, const ze_host_mem_alloc_desc_t *desc,
                                      size_t size, size_t alignment, void **pptr);
SIM_EXPORT ze_result_t zeMemAllocHost(struct context *context, const ze_host_mem_alloc_desc_t *desc,
                                      size_t size, size_t alignment, void **pptr)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(context);
    NEED_POINTER(desc);
    NEED_POINTER(pptr);
    check_context(context, __func__);
    check_base(desc, 0x16, __func__);
    result = check_size(size, alignment);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    *pptr = sim_alloc(0, size, alignment, SIM_PINNED, desc->flags);
    return *pptr != NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

SIM_EXPORT ze_result_t zeMemAllocShared(struct context *context,
                                        const ze_device_mem_alloc_desc_t *device_desc,
                                        const ze_host_mem_alloc_desc_t *host_desc, size_t size,
                                        size_t alignment, struct device *device, void **pptr);
SIM_EXPORT ze_result_t zeMemAllocShared(struct context *context,
                                        const ze_device_mem_alloc_desc_t *device_desc,
                                        const ze_host_mem_alloc_desc_t *host_desc, size_t size,
                                        size_t alignment, struct device *device, void **pptr)
{
    ze_result_t result;

    ENTER();
    NEED_HANDLE(context);
    NEED_POINTER(device_desc);
    NEED_POINTER(host_desc);
    NEED_POINTER(pptr);
    check_context(context, __func__);
    check_base(device_desc, 0x15, __func__);
    check_base(host_desc, 0x16, __func__);
    result = check_size(size, alignment);
    if (result != ZE_RESULT_SUCCESS) {
        return result;
    }
    if (size > device_memory_bytes(check_device(device, __func__))) {
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    }
    *pptr = sim_alloc(device->part->physical, size, alignment, SIM_MANAGED, 0);
    return *pptr != NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}

/*
 * ---- handles between processes ----------------------------------------------------------------
 *
 * A handle represents a descriptor of a file that identifies the memory. Its bytes are those of
 * Intel's driver (compute-runtime, IpcMemoryData and IpcOpaqueMemoryData of context.h). With the
 * machine's "ipc": "descriptor" it is the older form: the opening process must have the file under
 * that number. Otherwise ("opaque") the handle also names its process, and the driver fetches the
 * file from there, unless the handle's two descriptors differ: then the first is the opener's own.
 * The first such drivers ("named") had no second descriptor, and always fetch.
 */

#define HANDLES 256u

#pragma pack(push, 1)
struct older_handle {
    uint64_t handle;
    uint64_t pool_offset;
    uint8_t memory_type;
};
struct opaque_handle {
    uint64_t handle;
    uint64_t pool_offset;
    uint32_t process;
    uint8_t type; /* 0: the handle is a descriptor */
    uint8_t memory_type;
    uint64_t opaque_handle;
    uint8_t reserved[32];
    uint8_t is_compressed;
};
#pragma pack(pop)
SIM_ASSERT(sizeof(struct older_handle) == 17, "context.h: IpcMemoryData");
SIM_ASSERT(sizeof(struct opaque_handle) == 63, "context.h: IpcOpaqueMemoryData");
SIM_ASSERT(offsetof(struct opaque_handle, process) == 16, "context.h: IpcOpaqueMemoryData");
SIM_ASSERT(offsetof(struct opaque_handle, opaque_handle) == 22, "context.h: IpcOpaqueMemoryData");

static struct {
    pthread_mutex_t lock;
    struct {
        void *base;
        int fd; /* descriptor plus 1; 0: none */
        ze_ipc_mem_handle_t handle;
    } list[HANDLES];
} handles = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_opaque(void)
{
    return strcmp(sim_vendor_text("ipc", "opaque"), "descriptor") != 0;
}

static void fill_handle(ze_ipc_mem_handle_t *handle, int fd)
{
    const struct older_handle older = {.handle = (uint64_t)fd};
    const struct opaque_handle opaque = {
        .handle = (uint64_t)fd, .process = (uint32_t)getpid(), .opaque_handle = (uint64_t)fd};

    if (is_opaque()) {
        memset(handle, 0, sizeof(*handle));
        memcpy(handle->data, &opaque, sizeof(opaque));
    } else {
        memcpy(handle->data, &older, sizeof(older)); /* the caller's other bytes stay */
    }
}

/* Returns the descriptor's number in the handle. */
static int descriptor_in(const ze_ipc_mem_handle_t *handle)
{
    struct older_handle older;

    memcpy(&older, handle->data, sizeof(older));
    return (int)older.handle;
}

/* Opens the handle's file: a descriptor that the caller must close; -1: none. */
static int open_file(const ze_ipc_mem_handle_t *handle)
{
    struct opaque_handle opaque;
    int fd = descriptor_in(handle);
    int process;

    memcpy(&opaque, handle->data, sizeof(opaque));
    if (!is_opaque() ||
        (opaque.opaque_handle != opaque.handle &&
         strcmp(sim_vendor_text("ipc", "opaque"), "named") != 0) ||
        opaque.process == (uint32_t)getpid()) {
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    process = (int)syscall(SYS_pidfd_open, (pid_t)opaque.process, 0);
    if (process < 0) {
        return -1;
    }
    fd = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    close(process);
    return fd;
}

static void forget_handle(uint32_t i)
{
    close(handles.list[i].fd - 1);
    handles.list[i].fd = 0;
}

/* Frees the remaining handles of freed memory. */
static void forget_handles(const void *base)
{
    pthread_mutex_lock(&handles.lock);
    for (uint32_t i = 0; i < HANDLES; i++) {
        if (handles.list[i].fd != 0 && handles.list[i].base == base) {
            forget_handle(i);
        }
    }
    pthread_mutex_unlock(&handles.lock);
}

static bool keep_handle(void *base, int fd, const ze_ipc_mem_handle_t *handle)
{
    bool is_kept = false;

    pthread_mutex_lock(&handles.lock);
    for (uint32_t i = 0; i < HANDLES && !is_kept; i++) {
        if (handles.list[i].fd == 0) {
            handles.list[i].base = base;
            handles.list[i].fd = fd + 1;
            handles.list[i].handle = *handle;
            is_kept = true;
        }
    }
    pthread_mutex_unlock(&handles.lock);
    return is_kept;
}

SIM_EXPORT ze_result_t zeMemFree(struct context *context, void *ptr);
SIM_EXPORT ze_result_t zeMemFree(struct context *context, void *ptr)
{
    struct sim_block block;

    ENTER();
    NEED_HANDLE(context);
    NEED_POINTER(ptr);
    check_context(context, __func__);
    if (!sim_find(ptr, &block)) {
        sim_misuse("%s: %p is no memory of this runtime", __func__, ptr);
    }
    forget_handles(ptr);
    sim_free(ptr, block.kind, __func__);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeMemGetIpcHandle(struct context *context, const void *ptr,
                                         ze_ipc_mem_handle_t *handle);
SIM_EXPORT ze_result_t zeMemGetIpcHandle(struct context *context, const void *ptr,
                                         ze_ipc_mem_handle_t *handle)
{
    char place[64];
    int fd;

    ENTER();
    check_context(context, __func__);
    NEED_POINTER(ptr);
    NEED_POINTER(handle);
    if (!sim_export(ptr, place)) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    fd = memfd_create("sim-ipc", MFD_CLOEXEC);
    fill_handle(handle, fd);
    if (fd < 0 || pwrite(fd, place, sizeof(place), 0) != (ssize_t)sizeof(place) ||
        !keep_handle((void *)(uintptr_t)ptr, fd, handle)) {
        sim_misuse("the simulator itself has no descriptor for a handle");
    }
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeMemPutIpcHandle(struct context *context, ze_ipc_mem_handle_t handle);
SIM_EXPORT ze_result_t zeMemPutIpcHandle(struct context *context, ze_ipc_mem_handle_t handle)
{
    bool is_found = false;
    const int fd = descriptor_in(&handle);

    ENTER();
    check_context(context, __func__);
    pthread_mutex_lock(&handles.lock);
    for (uint32_t i = 0; i < HANDLES && !is_found; i++) {
        is_found = fd >= 0 && handles.list[i].fd == fd + 1;
        if (is_found) {
            forget_handle(i);
        }
    }
    pthread_mutex_unlock(&handles.lock);
    return is_found ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

SIM_EXPORT ze_result_t zeMemOpenIpcHandle(struct context *context, struct device *device,
                                          ze_ipc_mem_handle_t handle, uint32_t flags, void **pptr);
SIM_EXPORT ze_result_t zeMemOpenIpcHandle(struct context *context, struct device *device,
                                          ze_ipc_mem_handle_t handle, uint32_t flags, void **pptr)
{
    char place[64];
    uint64_t size = 0;
    bool is_read;
    int fd;

    ENTER();
    check_context(context, __func__);
    check_device(device, __func__);
    NEED_POINTER(pptr);
    if (flags > 3) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    fd = open_file(&handle);
    is_read = fd >= 0 && pread(fd, place, sizeof(place), 0) == (ssize_t)sizeof(place);
    if (fd >= 0) {
        close(fd);
    }
    if (!is_read) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    *pptr = sim_import(device->part->physical, place, &size);
    return *pptr != NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

SIM_EXPORT ze_result_t zeMemCloseIpcHandle(struct context *context, const void *ptr);
SIM_EXPORT ze_result_t zeMemCloseIpcHandle(struct context *context, const void *ptr)
{
    ENTER();
    check_context(context, __func__);
    NEED_POINTER(ptr);
    if (!sim_import_close((void *)(uintptr_t)ptr)) {
        sim_misuse("%s: %p was not opened", __func__, ptr);
    }
    return ZE_RESULT_SUCCESS;
}

/* Finds the handle of a descriptor among the exports of this process. */
static bool find_handle(int fd, ze_ipc_mem_handle_t *handle_out)
{
    bool is_found = false;

    pthread_mutex_lock(&handles.lock);
    for (uint32_t i = 0; i < HANDLES && !is_found; i++) {
        is_found = fd >= 0 && handles.list[i].fd == fd + 1;
        if (is_found) {
            *handle_out = handles.list[i].handle;
        }
    }
    pthread_mutex_unlock(&handles.lock);
    return is_found;
}

SIM_EXPORT ze_result_t zeMemGetFileDescriptorFromIpcHandleExp(struct context *context,
                                                              ze_ipc_mem_handle_t handle,
                                                              uint64_t *fd_out);
SIM_EXPORT ze_result_t zeMemGetFileDescriptorFromIpcHandleExp(struct context *context,
                                                              ze_ipc_mem_handle_t handle,
                                                              uint64_t *fd_out)
{
    const int fd = descriptor_in(&handle);
    ze_ipc_mem_handle_t found;

    ENTER();
    check_context(context, __func__);
    NEED_POINTER(fd_out);
    if (!find_handle(fd, &found)) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    *fd_out = (uint64_t)fd;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeMemGetIpcHandleFromFileDescriptorExp(struct context *context, uint64_t fd,
                                                              ze_ipc_mem_handle_t *handle);
SIM_EXPORT ze_result_t zeMemGetIpcHandleFromFileDescriptorExp(struct context *context, uint64_t fd,
                                                              ze_ipc_mem_handle_t *handle)
{
    ENTER();
    check_context(context, __func__);
    NEED_POINTER(handle);
    return find_handle((int)fd, handle) ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

/* ---- virtual memory ------------------------------------------------------------------------- */

#define SMALL_PAGE 65536u
#define LARGE_PAGE (2u << 20)
#define MAPPINGS 1024u

struct physical {
    struct sim_physical *memory;
    size_t size;
    atomic_uint mapping_count;
};

static struct {
    pthread_mutex_t lock;
    struct {
        const void *address;
        size_t size;
        struct physical *physical;
    } list[MAPPINGS];
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

SIM_EXPORT ze_result_t zeVirtualMemQueryPageSize(struct context *context, struct device *device,
                                                 size_t size, size_t *page);
SIM_EXPORT ze_result_t zeVirtualMemQueryPageSize(struct context *context, struct device *device,
                                                 size_t size, size_t *page)
{
    ENTER();
    check_context(context, __func__);
    check_device(device, __func__);
    NEED_POINTER(page);
    *page = size < LARGE_PAGE ? SMALL_PAGE : LARGE_PAGE;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeVirtualMemReserve(struct context *context, const void *start, size_t size,
                                           void **pptr);
SIM_EXPORT ze_result_t zeVirtualMemReserve(struct context *context, const void *start, size_t size,
                                           void **pptr)
{
    ENTER();
    check_context(context, __func__);
    NEED_POINTER(pptr);
    if (size == 0 || size % SMALL_PAGE != 0) {
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    }
    *pptr = sim_reserve(size, SMALL_PAGE, (void *)(uintptr_t)start);
    return *pptr != NULL ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}

SIM_EXPORT ze_result_t zeVirtualMemFree(struct context *context, const void *ptr, size_t size);
SIM_EXPORT ze_result_t zeVirtualMemFree(struct context *context, const void *ptr, size_t size)
{
    ENTER();
    check_context(context, __func__);
    if (!sim_unreserve((void *)(uintptr_t)ptr, size)) {
        sim_misuse("%s: %zu bytes at %p were not reserved, or are mapped", __func__, size, ptr);
    }
    return ZE_RESULT_SUCCESS;
}

typedef struct {
    uint32_t stype;
    const void *pNext;
    uint32_t flags;
    size_t size;
} ze_physical_mem_desc_t;
SIM_ASSERT(sizeof(ze_physical_mem_desc_t) == 32, "by ze_api.h");

SIM_EXPORT ze_result_t zePhysicalMemCreate(struct context *context, struct device *device,
                                           ze_physical_mem_desc_t *desc,
                                           struct physical **physical);
SIM_EXPORT ze_result_t zePhysicalMemCreate(struct context *context, struct device *device,
                                           ze_physical_mem_desc_t *desc, struct physical **physical)
{
    struct physical *made;

    ENTER();
    check_context(context, __func__);
    check_device(device, __func__);
    NEED_POINTER(desc);
    NEED_POINTER(physical);
    check_base(desc, 0x20, __func__);
    if (desc->flags > 1) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    if (desc->size == 0 || desc->size % SMALL_PAGE != 0) {
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->memory = sim_physical_create(device->part->physical, desc->size);
    if (made->memory == NULL) {
        free(made);
        return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    made->size = desc->size;
    sim_handle_add(made, "physical");
    *physical = made;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zePhysicalMemDestroy(struct context *context, struct physical *physical);
SIM_EXPORT ze_result_t zePhysicalMemDestroy(struct context *context, struct physical *physical)
{
    ENTER_RELEASE();
    check_context(context, __func__);
    NEED_HANDLE(physical);
    sim_handle_check(physical, "physical", __func__);
    if (atomic_load(&physical->mapping_count) > 0) {
        sim_misuse("%s: it is mapped", __func__);
    }
    sim_handle_remove(physical, "physical", __func__);
    sim_physical_put(physical->memory);
    free(physical);
    return (ze_result_t)scripted;
}

static bool set_access(const void *ptr, size_t size, uint32_t attribute)
{
    static const uint32_t of_engine[] = {0, 3, 1};

    return sim_set_access((void *)(uintptr_t)ptr, size, of_engine[attribute]);
}

SIM_EXPORT ze_result_t zeVirtualMemMap(struct context *context, const void *ptr, size_t size,
                                       struct physical *physical, size_t offset, uint32_t access);
SIM_EXPORT ze_result_t zeVirtualMemMap(struct context *context, const void *ptr, size_t size,
                                       struct physical *physical, size_t offset, uint32_t access)
{
    uint32_t i = 0;

    ENTER();
    check_context(context, __func__);
    NEED_POINTER(ptr);
    NEED_HANDLE(physical);
    sim_handle_check(physical, "physical", __func__);
    if (access > 2) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    if (size == 0 || size % SMALL_PAGE != 0 || offset % SMALL_PAGE != 0 ||
        (uintptr_t)ptr % SMALL_PAGE != 0) {
        return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    }
    /*
     * The newest driver maps physical memory once at a time ("mappings": 1); older drivers have no
     * limit.
     */
    if ((sim_vendor_number("mappings", 1) == 1 && atomic_load(&physical->mapping_count) > 0) ||
        !sim_map((void *)(uintptr_t)ptr, size, physical->memory, offset)) {
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    set_access(ptr, size, access);
    pthread_mutex_lock(&mappings.lock);
    while (i < MAPPINGS && mappings.list[i].size != 0) {
        i++;
    }
    if (i == MAPPINGS) {
        sim_misuse("the simulator itself has no place for another mapping");
    }
    mappings.list[i].address = ptr;
    mappings.list[i].size = size;
    mappings.list[i].physical = physical;
    atomic_fetch_add(&physical->mapping_count, 1);
    pthread_mutex_unlock(&mappings.lock);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zeVirtualMemUnmap(struct context *context, const void *ptr, size_t size);
SIM_EXPORT ze_result_t zeVirtualMemUnmap(struct context *context, const void *ptr, size_t size)
{
    bool is_unmapped;

    ENTER();
    check_context(context, __func__);
    is_unmapped = sim_unmap((void *)(uintptr_t)ptr, size);
    pthread_mutex_lock(&mappings.lock);
    for (uint32_t i = 0; i < MAPPINGS && is_unmapped; i++) {
        if (mappings.list[i].size == size && mappings.list[i].address == ptr) {
            mappings.list[i].size = 0;
            atomic_fetch_sub(&mappings.list[i].physical->mapping_count, 1);
        }
    }
    pthread_mutex_unlock(&mappings.lock);
    return is_unmapped ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

SIM_EXPORT ze_result_t zeVirtualMemSetAccessAttribute(struct context *context, const void *ptr,
                                                      size_t size, uint32_t access);
SIM_EXPORT ze_result_t zeVirtualMemSetAccessAttribute(struct context *context, const void *ptr,
                                                      size_t size, uint32_t access)
{
    ENTER();
    check_context(context, __func__);
    if (access > 2) {
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    }
    return set_access(ptr, size, access) ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}
