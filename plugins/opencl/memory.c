/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory: device buffers with reserved addresses (map.c), pinned memory, memory that the program
 * registers, and fine-grained shared virtual memory, where host and device see the same bytes
 * without explicit calls.
 *
 * Pinned memory is a buffer with CL_MEM_ALLOC_HOST_PTR that stays mapped, and registered memory is
 * a buffer with CL_MEM_USE_HOST_PTR that stays mapped: no kernel uses these buffers, so the host
 * may keep the mapping indefinitely, and copies use memory that the runtime has locked.
 *
 * OpenCL reports the device's total memory but, without an extension of AMD, not its free memory,
 * and most runtimes allocate memory at its first use. The plugin therefore counts this instance's
 * allocations, and rejects an allocation that would exceed CL_DEVICE_GLOBAL_MEM_SIZE before the
 * runtime accepts it. A runtime frees an object when the commands that use it are done, so the
 * plugin waits only before it frees shared memory, which the runtime frees immediately, and host
 * memory, which commands use by its address.
 */
#include "opencl.h"

/* ---- remaining device memory ---------------------------------------------------------------- */

static int32_t charge(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                      struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    unsigned long long used = atomic_load(&state->used_bytes);

    if (size_bytes > state->max_allocation_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s(%llu bytes, device %u): CL_DEVICE_MAX_MEM_ALLOC_SIZE is %llu", call,
                           (unsigned long long)size_bytes, device->index,
                           (unsigned long long)state->max_allocation_bytes);
    }
    do {
        if (used > state->total_bytes || size_bytes > state->total_bytes - used) {
            return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                               "%s(%llu bytes, device %u): %llu of CL_DEVICE_GLOBAL_MEM_SIZE %llu "
                               "are allocated",
                               call, (unsigned long long)size_bytes, device->index, used,
                               (unsigned long long)state->total_bytes);
        }
    } while (!atomic_compare_exchange_weak(&state->used_bytes, &used, used + size_bytes));
    return DS_ACCEL_OK;
}

static void discharge(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    atomic_fetch_sub(&opencl_of(device)->used_bytes, size_bytes);
}

int32_t opencl_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out,
                           uint64_t *total_out, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    uint64_t used = atomic_load(&state->used_bytes);
    size_t free_kib[2] = {0, 0}; /* free memory in total, and the largest free block */

    (void)error;
    *total_out = state->total_bytes;
    *free_out = used < state->total_bytes ? state->total_bytes - used : 0;
    if (state->has_amd_memory &&
        state->runtime->cl.clGetDeviceInfo(state->found->device, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD,
                                           sizeof(free_kib), free_kib, NULL) == CL_SUCCESS &&
        (uint64_t)free_kib[0] * 1024 < *free_out) {
        *free_out = (uint64_t)free_kib[0] * 1024;
    }
    return DS_ACCEL_OK;
}

/* ---- buffers -------------------------------------------------------------------------------- */

static int32_t create(ds_accel_plugin_device_t *device, uint64_t flags, uint64_t size_bytes,
                      void *host_pointer, cl_mem *memory_out, struct ds_accel_error *error)
{
    int32_t code = CL_SUCCESS;
    cl_mem memory = OPENCL_CALL(device, clCreateBuffer)(opencl_of(device)->context, flags,
                                                        (size_t)size_bytes, host_pointer, &code);

    if (code == CL_SUCCESS && memory != NULL) {
        *memory_out = memory;
        return DS_ACCEL_OK;
    }
    return vendor_check(device->instance, device,
                        code != CL_SUCCESS ? code : CL_MEM_OBJECT_ALLOCATION_FAILURE, error,
                        "clCreateBuffer(0x%llx, %llu bytes, device %u)", (unsigned long long)flags,
                        (unsigned long long)size_bytes, device->index);
}

/* Assigns addresses to the object; on failure, releases the object. */
static int32_t place(ds_accel_plugin_device_t *device, cl_mem memory, uint64_t size_bytes,
                     uint32_t is_foreign, void **pointer_out, struct ds_accel_error *error)
{
    void *address = opencl_reserve(size_bytes);
    struct opencl_range range = {(uintptr_t)address, size_bytes, OPENCL_BUFFER,
                                 is_foreign,         memory,     device};

    if (address == NULL || opencl_map_insert(&opencl_of(device)->runtime->memory, &range) != 0) {
        if (address != NULL) {
            opencl_unreserve(address, size_bytes);
        }
        OPENCL_CALL(device, clReleaseMemObject)(memory);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "no addresses for a buffer of %llu bytes of device %u",
                           (unsigned long long)size_bytes, device->index);
    }
    *pointer_out = address;
    return DS_ACCEL_OK;
}

int32_t opencl_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                     struct ds_accel_error *error)
{
    cl_mem memory = NULL;
    int32_t status = charge(device, size_bytes, "clCreateBuffer", error);

    if (status < 0) {
        return status;
    }
    status = create(device, CL_MEM_READ_WRITE, size_bytes, NULL, &memory, error);
    if (status == DS_ACCEL_OK) {
        status = place(device, memory, size_bytes, 0, pointer_out, error);
    }
    if (status < 0) {
        discharge(device, size_bytes);
    }
    return status;
}

/* The frame prevents this: it frees only what it allocated, on the device that allocated it. */
static int32_t fail_unknown(const ds_accel_plugin_device_t *device, const void *pointer,
                            struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "mem_free(%p): no allocation of device %u begins there", pointer,
                       device->index);
}

/*
 * Waits for the device first, because clSVMFree() does not. If the wait fails, returns its status,
 * and the memory remains allocated, so that the caller may try again; on a lost device, it is freed
 * anyway.
 */
static int32_t free_managed(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    int32_t status = opencl_device_synchronize(device, error);
    struct opencl_range range;

    if (status < 0 && !atomic_load(&device->is_lost)) {
        return status;
    }
    if (opencl_map_take(&state->runtime->memory, pointer, device, &range) != 0) {
        return fail_unknown(device, pointer, error);
    }
    state->runtime->cl.clSVMFree(state->context, pointer);
    discharge(device, range.size_bytes);
    return status;
}

int32_t opencl_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    struct opencl_map *memory = &opencl_of(device)->runtime->memory;
    struct opencl_range range;
    int32_t code;

    if (opencl_map_find(memory, pointer, &range) == 0 && range.kind == OPENCL_MANAGED) {
        return free_managed(device, pointer, error);
    }
    if (opencl_map_take(memory, pointer, device, &range) != 0) {
        return fail_unknown(device, pointer, error);
    }
    code = OPENCL_CALL(device, clReleaseMemObject)(range.memory);
    if (!range.is_foreign) {
        discharge(device, range.size_bytes);
    }
    if (code == CL_SUCCESS) { /* on failure, the addresses are never reused */
        opencl_unreserve(pointer, range.size_bytes);
    }
    return vendor_check(device->instance, device, code, error, "clReleaseMemObject(%p)",
                        (const void *)range.memory);
}

/* ---- host memory ---------------------------------------------------------------------------- */

/*
 * Maps the whole object permanently and adds it to runtime->host; on failure, releases the object.
 */
static int32_t map(ds_accel_plugin_device_t *device, uint32_t kind, cl_mem memory,
                   uint64_t size_bytes, void **pointer_out, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    const struct cl_calls *cl = &state->runtime->cl;
    struct opencl_range range = {0, size_bytes, kind, 0, memory, device};
    int32_t code = CL_SUCCESS;
    void *pointer = cl->clEnqueueMapBuffer(state->service, memory, CL_TRUE,
                                           CL_MAP_READ | CL_MAP_WRITE, 0, (size_t)size_bytes,
                                           CL_NO_EVENTS, &code);
    int32_t status;

    if (pointer == NULL && code == CL_SUCCESS) {
        code = CL_OUT_OF_HOST_MEMORY;
    }
    status = vendor_check(device->instance, device, code, error,
                          "clEnqueueMapBuffer(%llu bytes, device %u)",
                          (unsigned long long)size_bytes, device->index);
    range.base = (uintptr_t)pointer;
    if (status == DS_ACCEL_OK && opencl_map_insert(&state->runtime->host, &range) != 0) {
        cl->clEnqueueUnmapMemObject(state->service, memory, pointer, CL_NO_EVENTS);
        cl->clFinish(state->service);
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "no memory to list pinned memory");
    }
    if (status < 0) {
        cl->clReleaseMemObject(memory);
        return status;
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

/*
 * Removes the memory from runtime->host and releases its object. Returns ERR_INVALID if there is no
 * such memory; failures of the runtime's calls are only logged.
 */
static int32_t unmap(ds_accel_plugin_device_t *device, void *pointer, const char *call,
                     struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    const struct cl_calls *cl = &state->runtime->cl;
    struct opencl_range range;
    int32_t unmapped;
    int32_t finished;
    int32_t released;

    if (opencl_map_take(&state->runtime->host, pointer, device, &range) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s(%p): not known to device %u", call,
                           pointer, device->index);
    }
    unmapped = cl->clEnqueueUnmapMemObject(state->service, range.memory, pointer, CL_NO_EVENTS);
    finished = cl->clFinish(state->service);
    released = cl->clReleaseMemObject(range.memory);
    if (unmapped != CL_SUCCESS || finished != CL_SUCCESS || released != CL_SUCCESS) {
        vendor_log(device->instance->host, DS_ACCEL_LOG_WARN,
                   "%s: clEnqueueUnmapMemObject returned %d, clFinish %d, clReleaseMemObject %d",
                   call, unmapped, finished, released);
    }
    return DS_ACCEL_OK;
}

/*
 * The only flag that can be set is PORTABLE, which needs no action: the contexts of other devices
 * copy from the memory as from any host memory.
 */
int32_t opencl_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                            void **pointer_out, struct ds_accel_error *error)
{
    cl_mem memory = NULL;
    int32_t status;

    (void)flags;
    if (size_bytes > opencl_of(device)->max_allocation_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "clCreateBuffer(CL_MEM_ALLOC_HOST_PTR, %llu bytes): "
                           "CL_DEVICE_MAX_MEM_ALLOC_SIZE is %llu",
                           (unsigned long long)size_bytes,
                           (unsigned long long)opencl_of(device)->max_allocation_bytes);
    }
    status =
        create(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size_bytes, NULL, &memory, error);
    return status < 0 ? status : map(device, OPENCL_PINNED, memory, size_bytes, pointer_out, error);
}

/*
 * Unmaps memory after waiting for queued work: a queued copy refers to the memory's address and
 * does not retain the object. If the wait fails, the memory is unmapped anyway.
 */
static int32_t unmap_idle(ds_accel_plugin_device_t *device, void *pointer, const char *call,
                          struct ds_accel_error *error)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    (void)opencl_device_synchronize(device, &ignored);
    return unmap(device, pointer, call, error);
}

int32_t opencl_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                           struct ds_accel_error *error)
{
    return unmap_idle(device, pointer, "mem_free_pinned", error);
}

int32_t opencl_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                        uint32_t flags, struct ds_accel_error *error)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    void *mapped = NULL;
    cl_mem memory = NULL;
    int32_t status = create(device, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size_bytes, pointer,
                            &memory, error);

    (void)flags;
    if (status == DS_ACCEL_OK) {
        status = map(device, OPENCL_REGISTERED, memory, size_bytes, &mapped, error);
    }
    if (status == DS_ACCEL_OK && mapped != pointer) {
        unmap(device, mapped, "mem_register", &ignored);
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "clEnqueueMapBuffer: CL_MEM_USE_HOST_PTR of %p is mapped at %p", pointer,
                           mapped);
    }
    return status;
}

int32_t opencl_unregister(ds_accel_plugin_device_t *device, void *pointer,
                          struct ds_accel_error *error)
{
    return unmap_idle(device, pointer, "mem_unregister", error);
}

/* ---- shared virtual memory ------------------------------------------------------------------ */

int32_t opencl_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                             void **pointer_out, struct ds_accel_error *error)
{
    struct opencl_device *state = opencl_of(device);
    struct opencl_range range = {0, size_bytes, OPENCL_MANAGED, 0, NULL, device};
    void *pointer;
    int32_t status;

    if (!state->has_svm) {
        return vendor_unsupported(error, "mem_alloc_managed",
                                  "the device has no fine-grained shared virtual memory "
                                  "(OpenCL 2.0, CL_DEVICE_SVM_FINE_GRAIN_BUFFER)");
    }
    status = charge(device, size_bytes, "clSVMAlloc", error);
    if (status < 0) {
        return status;
    }
    pointer = state->runtime->cl.clSVMAlloc(
        state->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, (size_t)size_bytes, 0);
    range.base = (uintptr_t)pointer;
    if (pointer == NULL || opencl_map_insert(&state->runtime->memory, &range) != 0) {
        if (pointer != NULL) {
            state->runtime->cl.clSVMFree(state->context, pointer);
        }
        discharge(device, size_bytes);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "clSVMAlloc(%llu bytes, device %u): no memory",
                           (unsigned long long)size_bytes, device->index);
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

/* ---- objects of the program ----------------------------------------------------------------- */

int32_t opencl_native_memory(ds_accel_plugin_device_t *device, const void *pointer,
                             uint64_t *object_out, uint64_t *offset_out,
                             struct ds_accel_error *error)
{
    struct opencl_runtime *runtime = opencl_of(device)->runtime;
    struct opencl_range range;

    if (opencl_map_find(&runtime->memory, pointer, &range) != 0 &&
        opencl_map_find(&runtime->host, pointer, &range) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%p is not memory of device %u", pointer,
                           device->index);
    }
    if (range.kind == OPENCL_MANAGED) {
        return vendor_unsupported(error, "native_get",
                                  "shared virtual memory has no cl_mem: give its address to "
                                  "clSetKernelArgSVMPointer");
    }
    *object_out = (uint64_t)(uintptr_t)range.memory;
    *offset_out = (uintptr_t)pointer - range.base;
    return DS_ACCEL_OK;
}

int32_t opencl_native_memory_wrap(ds_accel_plugin_device_t *device, uint64_t object,
                                  void **pointer_out, uint64_t *size_out,
                                  struct ds_accel_error *error)
{
    const struct cl_calls *cl = &opencl_of(device)->runtime->cl;
    cl_mem memory = (cl_mem)(uintptr_t)object;
    cl_context context = NULL;
    size_t size = 0;
    int32_t code = cl->clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(size), &size, NULL);
    int32_t status;

    if (code == CL_SUCCESS) {
        code = cl->clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof(context), &context, NULL);
    }
    status = vendor_check(device->instance, device, code, error, "clGetMemObjectInfo(%p)",
                          (const void *)memory);
    if (status == DS_ACCEL_OK && (context != opencl_of(device)->context || size == 0)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "the memory object %p is not one of the context of device %u",
                           (const void *)memory, device->index);
    }
    if (status == DS_ACCEL_OK) {
        status = vendor_check(device->instance, device, cl->clRetainMemObject(memory), error,
                              "clRetainMemObject(%p)", (const void *)memory);
    }
    if (status == DS_ACCEL_OK) {
        status = place(device, memory, size, 1, pointer_out, error);
    }
    if (status == DS_ACCEL_OK) {
        *size_out = size;
    }
    return status;
}
