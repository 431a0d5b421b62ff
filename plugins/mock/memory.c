/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Device, managed, pinned and registered memory.
 *
 * Everything is host memory: device and managed memory come from the C library's heap, or with
 * option ipc from memfds (share.c), pinned memory comes from the heap, and registered memory is the
 * program's. The kinds differ in the limit that applies and in the allowed uses. Pinned memory is
 * not locked, so that the tests also pass on a machine with a small RLIMIT_MEMLOCK; option
 * pinned_limit_bytes simulates that limit.
 */
#include "mock.h"

#include <sys/mman.h>
#include <unistd.h>

#define PINNED_ALIGN_BYTES 64u
/* larger requests fail without a call of the C library */
#define MAX_PINNED_BYTES (UINT64_C(1) << 39)
#define PINNED_FLAGS \
    (DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED | DS_ACCEL_PINNED_WRITE_COMBINED | \
     DS_ACCEL_PINNED_HUGE_PAGES)

/* ---- device memory -------------------------------------------------------------------------- */

#define MAX_ALIGN_BYTES (UINT64_C(1) << 30)

static int fits(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    int answer;

    pthread_mutex_lock(&device->instance->lock);
    answer = mock_usage_fits(device, size_bytes);
    pthread_mutex_unlock(&device->instance->lock);
    return answer;
}

/* Allocates the block's bytes from the heap, or with option ipc from a memfd; NULL on failure. */
static void *get_bytes(const ds_accel_plugin_instance_t *instance, struct mock_block *block,
                       uint64_t align_bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t mapped = (block->size_bytes + page - 1) & ~(page - 1);
    void *pointer = NULL;

    if (!instance->options.ipc) {
        return posix_memalign(&pointer, (size_t)mock_max_u64(align_bytes, MOCK_ALIGN_BYTES),
                              (size_t)block->size_bytes) == 0
                   ? pointer
                   : NULL;
    }
    block->source = MOCK_SOURCE_FILE;
    block->fd = mock_file_create(block->size_bytes);
    if (block->fd < 0) {
        return NULL;
    }
    pointer = mock_reserve_aligned(mapped, mock_max_u64(align_bytes, page));
    if (pointer != NULL && mmap(pointer, (size_t)mapped, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_FIXED, block->fd, 0) == MAP_FAILED) {
        munmap(pointer, (size_t)mapped);
        pointer = NULL;
    }
    if (pointer == NULL) {
        close(block->fd);
    }
    return pointer;
}

static void give_bytes(const struct mock_block *block)
{
    if (block->source == MOCK_SOURCE_HEAP) {
        free(block->base);
    } else if (block->source == MOCK_SOURCE_FILE) {
        munmap(block->base, (size_t)block->size_bytes);
        close(block->fd);
    } else if (block->source == MOCK_SOURCE_IMPORT || block->source == MOCK_SOURCE_DMABUF) {
        munmap(block->base, (size_t)block->size_bytes);
    }
}

/*
 * Allocates device memory; NULL when the device or the heap is full, or size_bytes exceeds option
 * max_allocation_bytes. The first check of the device's free memory only avoids an allocation that
 * would have to be undone. The second check decides: it is made under the same lock as the
 * insertion, so other threads cannot take the memory in between.
 */
static void *take_device_memory(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                uint64_t align_bytes, uint32_t kind)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    struct mock_block block = {.size_bytes = size_bytes,
                               .kind = kind,
                               .source = MOCK_SOURCE_HEAP,
                               .access = DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                               .device = device};
    uint64_t limit = instance->options.max_allocation_bytes;
    int is_taken;

    if (size_bytes > PTRDIFF_MAX || (limit != 0 && size_bytes > limit) ||
        !fits(device, size_bytes)) {
        return NULL;
    }
    block.base = get_bytes(instance, &block, align_bytes);
    if (block.base == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&instance->lock);
    is_taken = mock_usage_fits(device, size_bytes) && mock_block_insert(instance, &block) == 0;
    if (is_taken) {
        mock_usage_take(device, size_bytes);
    }
    pthread_mutex_unlock(&instance->lock);
    if (!is_taken) {
        give_bytes(&block);
        return NULL;
    }
    return block.base;
}

static int32_t alloc_device_memory(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                   uint64_t align_bytes, uint32_t flags, uint32_t kind,
                                   void **pointer_out, const char *slot,
                                   struct ds_accel_error *error)
{
    void *pointer;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        /* A failure that option fail requests is reported and counted like a real one. */
        return mock_usage_refuse(device, size_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL || size_bytes == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: pointer_out is NULL or size 0", slot);
    }
    if ((align_bytes & (align_bytes - 1)) != 0 || align_bytes > MAX_ALIGN_BYTES || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: alignment %llu, flags 0x%x; expected 0 or a power of two, 0", slot,
                           (unsigned long long)align_bytes, flags);
    }
    mock_wait_until(device->instance, slot,
                    plugin_now_ns() + device->instance->options.alloc_latency_ns);
    pointer = take_device_memory(device, size_bytes, align_bytes, kind);
    if (pointer == NULL) {
        return mock_usage_refuse(device, size_bytes, slot, error);
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

static int32_t mock_mem_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                              uint64_t align_bytes, uint32_t flags, void **pointer_out,
                              struct ds_accel_error *error)
{
    return alloc_device_memory(device, size_bytes, align_bytes, flags, DS_ACCEL_POINTER_DEVICE,
                               pointer_out, "mem_alloc", error);
}

static int32_t mock_mem_alloc_managed(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                      uint32_t flags, void **pointer_out,
                                      struct ds_accel_error *error)
{
    return alloc_device_memory(device, size_bytes, 0, flags, DS_ACCEL_POINTER_MANAGED, pointer_out,
                               "mem_alloc_managed", error);
}

static int is_device_memory(const struct mock_block *block)
{
    return block->kind == DS_ACCEL_POINTER_DEVICE || block->kind == DS_ACCEL_POINTER_MANAGED;
}

/*
 * Removes the block from the register before freeing the memory: another thread's allocation may
 * get the same address as soon as the memory is free.
 */
static int32_t free_device_memory(ds_accel_plugin_device_t *device, void *pointer, const char *slot,
                                  struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    struct mock_block taken = {0};
    struct mock_block *block;
    int is_ours;

    pthread_mutex_lock(&instance->lock);
    block = mock_block_find(instance, pointer);
    is_ours = block != NULL && block->base == pointer && block->device == device &&
              (block->source == MOCK_SOURCE_HEAP || block->source == MOCK_SOURCE_FILE) &&
              is_device_memory(block);
    if (is_ours) {
        taken = *block;
        mock_share_forget(device, block->id);
        mock_usage_give(device, block->size_bytes);
        mock_block_remove(instance, block);
    }
    pthread_mutex_unlock(&instance->lock);
    if (!is_ours) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p is not the start of a live allocation of device %u", slot,
                           pointer, device->index);
    }
    give_bytes(&taken);
    return DS_ACCEL_OK;
}

static int32_t mock_mem_free(ds_accel_plugin_device_t *device, void *pointer,
                             struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "mem_free", error);

    if (status < 0 || pointer == NULL) {
        return status;
    }
    return free_device_memory(device, pointer, "mem_free", error);
}

/* Allocates at once: waits delay only the stream's later work, not the validity of the address. */
static int32_t mock_mem_alloc_async(ds_accel_plugin_stream_t *stream, uint64_t size_bytes,
                                    uint32_t flags, ds_accel_plugin_event_t *const *waits,
                                    uint32_t wait_count, void **pointer_out,
                                    struct ds_accel_error *error)
{
    const char *slot = "mem_alloc_async";
    void *pointer;
    int32_t status = mock_enter_stream(stream, slot, error);

    if (status == DS_ACCEL_ERR_NO_MEMORY) {
        return mock_usage_refuse(stream->device, size_bytes, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL || size_bytes == 0 || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: pointer_out is NULL, size 0 or flags not 0", slot);
    }
    status = mock_queue_wait_marks(stream, waits, wait_count, slot, error);
    if (status < 0) {
        return status;
    }
    pointer = take_device_memory(stream->device, size_bytes, 0, DS_ACCEL_POINTER_DEVICE);
    if (pointer == NULL) {
        return mock_usage_refuse(stream->device, size_bytes, slot, error);
    }
    pthread_mutex_lock(&stream->device->instance->lock);
    mock_queue_advance(stream, plugin_now_ns(), stream->device->instance->options.alloc_latency_ns);
    pthread_mutex_unlock(&stream->device->instance->lock);
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

/* Frees the memory at once: the mock moves data when work is queued, so no work needs it later. */
static int32_t mock_mem_free_async(ds_accel_plugin_stream_t *stream, void *pointer,
                                   ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                                   struct ds_accel_error *error)
{
    int32_t status = mock_enter_stream(stream, "mem_free_async", error);

    if (status < 0) {
        return status;
    }
    status = mock_queue_wait_marks(stream, waits, wait_count, "mem_free_async", error);
    if (status < 0 || pointer == NULL) {
        return status;
    }
    return free_device_memory(stream->device, pointer, "mem_free_async", error);
}

/* ---- host memory ---------------------------------------------------------------------------- */

/* Adds host memory to the register. Fails with ERR_LIMIT if the sum would exceed option
   pinned_limit_bytes, with ERR_INVALID if the memory overlaps a block, or with ERR_NO_MEMORY. */
static int32_t add_host_memory(ds_accel_plugin_instance_t *instance, const struct mock_block *block,
                               const char *slot, struct ds_accel_error *error)
{
    uint64_t limit = instance->options.pinned_limit_bytes;
    uint64_t used;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&instance->lock);
    used = instance->pinned_bytes;
    if (limit > 0 && (used > limit || block->size_bytes > limit - used)) {
        status = DS_ACCEL_ERR_LIMIT;
    } else if (mock_block_overlaps(instance, block->base, block->size_bytes)) {
        status = DS_ACCEL_ERR_INVALID;
    } else if (mock_block_insert(instance, block) != 0) {
        status = DS_ACCEL_ERR_NO_MEMORY;
    } else {
        instance->pinned_bytes += block->size_bytes;
    }
    pthread_mutex_unlock(&instance->lock);
    if (status == DS_ACCEL_ERR_LIMIT) {
        return plugin_fail(error, status,
                           "%s: %llu bytes would exceed option pinned_limit_bytes, %llu, of which "
                           "%llu are used",
                           slot, (unsigned long long)block->size_bytes, (unsigned long long)limit,
                           (unsigned long long)used);
    }
    if (status == DS_ACCEL_ERR_INVALID) {
        return plugin_fail(error, status, "%s: a part of %p with %llu bytes is known already", slot,
                           (void *)block->base, (unsigned long long)block->size_bytes);
    }
    if (status < 0) {
        return plugin_fail(error, status, "%s: no memory for the register", slot);
    }
    return DS_ACCEL_OK;
}

/* The alignment to use for a requested alignment; 0 if the ABI does not allow the request. */
static uint64_t pinned_align(uint64_t align_bytes)
{
    if (align_bytes == 0) {
        return (uint64_t)sysconf(_SC_PAGESIZE);
    }
    if ((align_bytes & (align_bytes - 1)) != 0) {
        return 0;
    }
    return mock_max_u64(align_bytes, align_bytes == 1 ? PINNED_ALIGN_BYTES : sizeof(void *));
}

static int32_t check_pinned_flags(uint32_t flags, const char *slot, struct ds_accel_error *error)
{
    if ((flags & ~PINNED_FLAGS) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown bits in flags %#x", slot,
                           flags);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_mem_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                     uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                     struct ds_accel_error *error)
{
    const char *slot = "mem_alloc_pinned";
    struct mock_block block = {.size_bytes = size_bytes,
                               .kind = DS_ACCEL_POINTER_PINNED,
                               .source = MOCK_SOURCE_HEAP,
                               .flags = flags,
                               .access = DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                               .device = device};
    uint64_t align = pinned_align(align_bytes);
    void *pointer = NULL;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_pinned_flags(flags, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL || size_bytes == 0 || align == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: pointer_out is NULL, size %llu is 0 or alignment %llu is no power "
                           "of two",
                           slot, (unsigned long long)size_bytes, (unsigned long long)align_bytes);
    }
    if (size_bytes > MAX_PINNED_BYTES || align > MAX_PINNED_BYTES ||
        posix_memalign(&pointer, (size_t)align, (size_t)size_bytes) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: the host has no %llu bytes", slot,
                           (unsigned long long)size_bytes);
    }
    block.base = pointer;
    status = add_host_memory(device->instance, &block, slot, error);
    if (status < 0) {
        free(pointer);
        return status;
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

/* Reverses add_host_memory(). The pointer must be the start of memory of the given source. */
static int32_t remove_host_memory(ds_accel_plugin_device_t *device, const void *pointer,
                                  uint32_t source, const char *slot, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    struct mock_block *block;
    int is_ours;

    pthread_mutex_lock(&instance->lock);
    block = mock_block_find(instance, pointer);
    is_ours = block != NULL && block->base == pointer && block->device == device &&
              block->source == source && !is_device_memory(block);
    if (is_ours) {
        instance->pinned_bytes -= block->size_bytes;
        mock_block_remove(instance, block);
    }
    pthread_mutex_unlock(&instance->lock);
    if (!is_ours) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p is not the start of live %s memory of device %u", slot, pointer,
                           source == MOCK_SOURCE_HEAP ? "pinned" : "registered", device->index);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_mem_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                                    struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "mem_free_pinned", error);

    if (status < 0 || pointer == NULL) {
        return status;
    }
    status = remove_host_memory(device, pointer, MOCK_SOURCE_HEAP, "mem_free_pinned", error);
    if (status == DS_ACCEL_OK) {
        free(pointer);
    }
    return status;
}

static int32_t mock_mem_register(ds_accel_plugin_device_t *device, void *pointer,
                                 uint64_t size_bytes, uint32_t flags, struct ds_accel_error *error)
{
    const struct mock_block block = {.base = pointer,
                                     .size_bytes = size_bytes,
                                     .kind = DS_ACCEL_POINTER_PINNED,
                                     .source = MOCK_SOURCE_CALLER,
                                     .flags = flags,
                                     .access = DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                     .device = device};
    int32_t status = mock_enter_device(device, "mem_register", error);

    if (status == DS_ACCEL_OK) {
        status = check_pinned_flags(flags, "mem_register", error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer == NULL || size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)pointer) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register: %p with %llu bytes is no range", pointer,
                           (unsigned long long)size_bytes);
    }
    return add_host_memory(device->instance, &block, "mem_register", error);
}

static int32_t mock_mem_unregister(ds_accel_plugin_device_t *device, void *pointer,
                                   struct ds_accel_error *error)
{
    int32_t status = mock_enter_device(device, "mem_unregister", error);

    if (status < 0) {
        return status;
    }
    return remove_host_memory(device, pointer, MOCK_SOURCE_CALLER, "mem_unregister", error);
}

/* ---- queries -------------------------------------------------------------------------------- */

static int32_t mock_mem_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                       void **device_pointer_out, struct ds_accel_error *error)
{
    const struct mock_block *block;
    int is_mapped;
    int32_t status = mock_enter_device(device, "mem_device_pointer", error);

    if (status < 0) {
        return status;
    }
    if (device_pointer_out == NULL) {
        return mock_null(error, "mem_device_pointer", "device_pointer_out");
    }
    pthread_mutex_lock(&device->instance->lock);
    block = mock_block_find(device->instance, host_pointer);
    is_mapped = block != NULL && (block->flags & DS_ACCEL_PINNED_MAPPED) != 0;
    pthread_mutex_unlock(&device->instance->lock);
    if (!is_mapped) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_device_pointer: %p is not in pinned memory with "
                           "DS_ACCEL_PINNED_MAPPED",
                           host_pointer);
    }
    *device_pointer_out = host_pointer;
    return DS_ACCEL_OK;
}

static int32_t mock_mem_pointer_info(ds_accel_plugin_instance_t *instance,
                                     ds_accel_plugin_device_t *device, const void *pointer,
                                     struct ds_accel_pointer_info *info_out,
                                     struct ds_accel_error *error)
{
    struct ds_accel_pointer_info info;
    const struct mock_block *block;
    int32_t status = mock_enter(instance, "mem_pointer_info", error);

    (void)device; /* all devices' memory has different addresses: the address finds the block */
    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return mock_null(error, "mem_pointer_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    info.device_index = -1;
    pthread_mutex_lock(&instance->lock);
    block = mock_block_find(instance, pointer);
    if (block != NULL) {
        info.kind = block->kind;
        info.device_index = (int32_t)block->device->index;
        info.base_address = (uintptr_t)block->base;
        info.size_bytes = block->size_bytes;
        info.allocation_id = block->id;
    }
    pthread_mutex_unlock(&instance->lock);
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

size_t mock_memory_release(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    size_t released = 0;

    /* In reverse order, because removing a block moves the blocks after it. */
    for (size_t i = instance->block_count; i > 0; i--) {
        struct mock_block *block = &instance->blocks[i - 1];

        if (block->device != device || block->source == MOCK_SOURCE_MAPPING) {
            continue;
        }
        if (block->source == MOCK_SOURCE_IMPORT || block->source == MOCK_SOURCE_DMABUF) {
            /* Imported memory was not added to this process's counters. */
        } else if (is_device_memory(block)) {
            mock_usage_give(device, block->size_bytes);
        } else {
            instance->pinned_bytes -= block->size_bytes;
        }
        mock_share_forget(device, block->id);
        give_bytes(block);
        mock_block_remove(instance, block);
        released++;
    }
    return released;
}

void mock_memory_fill(struct ds_accel_plugin *table)
{
    table->mem_alloc = mock_mem_alloc;
    table->mem_free = mock_mem_free;
    table->mem_alloc_managed = mock_mem_alloc_managed;
    table->mem_alloc_async = mock_mem_alloc_async;
    table->mem_free_async = mock_mem_free_async;
    table->mem_alloc_pinned = mock_mem_alloc_pinned;
    table->mem_free_pinned = mock_mem_free_pinned;
    table->mem_register = mock_mem_register;
    table->mem_unregister = mock_mem_unregister;
    table->mem_device_pointer = mock_mem_device_pointer;
    table->mem_pointer_info = mock_mem_pointer_info;
}
