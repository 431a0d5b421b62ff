/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Device memory, pinned memory and the caller's registered memory; block.c keeps the register. */
#include "cpu.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define SMALL_BYTES (64u << 10)
#define LARGE_BYTES (UINT64_C(256) << 20)
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

/*
 * Linux promises more memory than it has, and kills processes when it is used. A request that
 * cannot fit is rejected here, as a device rejects it; the check reads some files, so it is made
 * only for large requests.
 */
static int32_t check_size(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                          struct ds_accel_error *error)
{
    const struct cpu_machine *machine = &device->instance->machine;
    struct ds_accel_host_memory memory;

    if (size_bytes == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: 0 bytes requested", call);
    }
    if (size_bytes > PTRDIFF_MAX) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s(%llu bytes, device %u): more than an address space holds", call,
                           (unsigned long long)size_bytes, device->index);
    }
    if (size_bytes < LARGE_BYTES) {
        return DS_ACCEL_OK;
    }
    memset(&memory, 0, sizeof(memory));
    memory.struct_size = sizeof(memory);
    if (machine->topology->memory_get(machine->host, &memory) >= 0 && memory.total_bytes != 0 &&
        size_bytes > memory.total_bytes) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s(%llu bytes, device %u): this process can have %llu bytes in all",
                           call, (unsigned long long)size_bytes, device->index,
                           (unsigned long long)memory.total_bytes);
    }
    return DS_ACCEL_OK;
}

/* ---- device memory -------------------------------------------------------------------------- */

int32_t cpu_memory_charge(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                          struct ds_accel_error *error)
{
    int32_t status = cpu_fork_check(device->instance, call, error);
    uint64_t live;
    uint64_t limit;

    if (status == DS_ACCEL_OK) {
        status = check_size(device, size_bytes, call, error);
    }
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    live = device->live_bytes;
    limit = device->limit_bytes;
    if (limit == 0 || (live <= limit && size_bytes <= limit - live)) {
        device->live_bytes += size_bytes;
        limit = 0;
    }
    pthread_mutex_unlock(&device->instance->lock);
    if (limit != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "%s(%llu bytes, device %u): %llu bytes are live and the limit of "
                           "mem_set_limit is %llu",
                           call, (unsigned long long)size_bytes, device->index,
                           (unsigned long long)live, (unsigned long long)limit);
    }
    return DS_ACCEL_OK;
}

void cpu_memory_uncharge(ds_accel_plugin_device_t *device, uint64_t size_bytes)
{
    pthread_mutex_lock(&device->instance->lock);
    device->live_bytes -= size_bytes;
    pthread_mutex_unlock(&device->instance->lock);
}

void cpu_memory_count(ds_accel_plugin_device_t *device, int32_t status)
{
    pthread_mutex_lock(&device->instance->lock);
    device->alloc_count += status == DS_ACCEL_OK;
    device->out_of_memory_count += status == DS_ACCEL_ERR_NO_MEMORY;
    pthread_mutex_unlock(&device->instance->lock);
}

static int32_t allocate(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint64_t align_bytes,
                        void **pointer_out, struct ds_accel_error *error)
{
    const struct cpu_machine *machine = &device->instance->machine;
    const int is_small = size_bytes < SMALL_BYTES && align_bytes <= CPU_ALIGN_BYTES &&
                         !cpu_place_matters(machine);
    struct cpu_block *block = cpu_block_create(device, size_bytes, DS_ACCEL_POINTER_DEVICE,
                                               is_small ? CPU_SOURCE_HEAP : CPU_SOURCE_PAGES);
    void *pointer;
    int32_t status;

    if (block != NULL && is_small) {
        /* C11 wants the size to be a multiple of the alignment. */
        block->base = aligned_alloc(CPU_ALIGN_BYTES, (size_t)((size_bytes + CPU_ALIGN_BYTES - 1) &
                                                              ~(uint64_t)(CPU_ALIGN_BYTES - 1)));
    } else if (block != NULL) {
        block->base =
            cpu_pages_map(size_bytes, align_bytes, PROT_READ | PROT_WRITE, &block->mapped_bytes);
    }
    if (block == NULL || block->base == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_alloc(%llu bytes, device %u): %m",
                             (unsigned long long)size_bytes, device->index);
        free(block);
        return status;
    }
    if (!is_small) {
        cpu_place_pages(device, block->base, block->mapped_bytes);
    }
    pointer = block->base;
    status = cpu_block_enter(block, "mem_alloc", error);
    if (status == DS_ACCEL_OK) {
        *pointer_out = pointer;
    }
    return status;
}

static int32_t cpu_mem_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                             uint64_t align_bytes, uint32_t flags, void **pointer_out,
                             struct ds_accel_error *error)
{
    int32_t status;

    if (device == NULL || pointer_out == NULL) {
        return cpu_null(error, "mem_alloc: device or pointer_out");
    }
    if ((align_bytes & (align_bytes - 1)) != 0 || align_bytes > UINT64_C(1) << 40 || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_alloc: alignment %llu, flags 0x%x; expected 0 or a power of two, 0",
                           (unsigned long long)align_bytes, flags);
    }
    align_bytes = align_bytes > CPU_ALIGN_BYTES ? align_bytes : CPU_ALIGN_BYTES;
    status = cpu_memory_charge(device, size_bytes, "mem_alloc", error);
    if (status == DS_ACCEL_OK) {
        status = allocate(device, size_bytes, align_bytes, pointer_out, error);
        if (status < 0) {
            cpu_memory_uncharge(device, size_bytes);
        }
    }
    cpu_memory_count(device, status);
    return status;
}

void cpu_block_free(struct cpu_block *block)
{
    cpu_memory_uncharge(block->device, block->size_bytes);
    cpu_block_release(block);
}

/* Take the block at a pointer out of the register, for a free without stream order. */
static int32_t take_for_free(ds_accel_plugin_device_t *device, const void *pointer, uint32_t kind,
                             const char *call, struct cpu_block **block_out,
                             struct ds_accel_error *error)
{
    int32_t status;

    pthread_mutex_lock(&device->instance->lock);
    status = cpu_block_take(device, pointer, kind, 0, call, block_out, error);
    device->free_count += status == DS_ACCEL_OK && kind == DS_ACCEL_POINTER_DEVICE;
    pthread_mutex_unlock(&device->instance->lock);
    return status;
}

/* May the calling thread wait for queued work? Checked before anything is taken. */
static int32_t check_free(const ds_accel_plugin_device_t *device, const char *call,
                          struct ds_accel_error *error)
{
    int32_t status;

    if (device == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: device is NULL", call);
    }
    status = cpu_fork_check(device->instance, call, error);
    return status < 0 ? status : cpu_check_not_worker(device->instance, call, error);
}

/* Streams of any device, and host tasks, may use the memory: wait for the work that they hold
   now. */
static int32_t cpu_mem_free(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error)
{
    struct cpu_block *block = NULL;
    int32_t status;

    if (pointer == NULL) {
        return DS_ACCEL_OK;
    }
    status = check_free(device, "mem_free", error);
    if (status == DS_ACCEL_OK) {
        status = take_for_free(device, pointer, DS_ACCEL_POINTER_DEVICE, "mem_free", &block, error);
    }
    if (status == DS_ACCEL_OK) {
        cpu_queues_wait(device->instance, NULL, CPU_NEVER, "mem_free", error);
        cpu_block_free(block);
    }
    return status;
}

/* ---- stream-ordered device memory ----------------------------------------------------------- */

/* No work uses fresh memory, so that only freeing must keep stream order. */
static int32_t cpu_mem_alloc_async(ds_accel_plugin_stream_t *stream, uint64_t size_bytes,
                                   uint32_t flags, ds_accel_plugin_event_t *const *waits,
                                   uint32_t wait_count, void **pointer_out,
                                   struct ds_accel_error *error)
{
    int32_t status = cpu_stream_check(stream, "mem_alloc_async", error);

    if (status == DS_ACCEL_OK) {
        status = cpu_stream_wait_events(stream, waits, wait_count, "mem_alloc_async", error);
    }
    if (status < 0) {
        return status;
    }
    return cpu_mem_alloc(stream->device, size_bytes, 0, flags, pointer_out, error);
}

static int32_t cpu_mem_free_async(ds_accel_plugin_stream_t *stream, void *pointer,
                                  ds_accel_plugin_event_t *const *waits, uint32_t wait_count,
                                  struct ds_accel_error *error)
{
    struct ds_accel_error cause = {.struct_size = sizeof(cause)};
    struct cpu_work work = {.kind = CPU_WORK_FREE};
    struct cpu_item *item = NULL;
    int32_t status = cpu_stream_check(stream, "mem_free_async", error);

    if (status == DS_ACCEL_OK) {
        status = cpu_stream_wait_events(stream, waits, wait_count, "mem_free_async", error);
    }
    if (status < 0 || pointer == NULL) {
        return status;
    }
    if (stream->queue != NULL) {
        item = cpu_item_create(stream->queue, "mem_free_async", &cause);
        if (item == NULL) {
            ds_accel_write(error, &cause, sizeof(cause));
            return cause.code;
        }
    }
    status = take_for_free(stream->device, pointer, DS_ACCEL_POINTER_DEVICE, "mem_free_async",
                           &work.block, error);
    if (status < 0) {
        cpu_item_discard(item);
    } else if (item != NULL) {
        cpu_queue_push(stream->queue, item, &work);
    } else {
        cpu_block_free(work.block);
    }
    return status;
}

/* ---- pinned memory -------------------------------------------------------------------------- */

/* Describe why mlock() failed, with the figures of the limit and the remedy. */
static int32_t fail_lock(uint64_t size_bytes, int cause, const char *call,
                         struct ds_accel_error *error)
{
    struct rlimit limit = {0, 0};
    char soft[24] = "unlimited";
    char hard[24] = "unlimited";

    if (cause != ENOMEM && cause != EPERM && cause != EAGAIN) {
        errno = cause;
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s(%llu bytes): mlock: %m", call,
                           (unsigned long long)size_bytes);
    }
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) {
        snprintf(soft, sizeof(soft), "%llu", (unsigned long long)limit.rlim_cur);
    }
    if (limit.rlim_max != RLIM_INFINITY) {
        snprintf(hard, sizeof(hard), "%llu", (unsigned long long)limit.rlim_max);
    }
    errno = cause;
    return plugin_fail(error, DS_ACCEL_ERR_LIMIT,
                       "%s(%llu bytes): mlock: %m; RLIMIT_MEMLOCK is %s bytes (soft), %s (hard): "
                       "raise it with \"ulimit -l\" or LimitMEMLOCK= of the service",
                       call, (unsigned long long)size_bytes, soft, hard);
}

/* The alignment of the mapping for the caller's align_bytes; 0 if that is invalid. */
static uint64_t pinned_align(uint64_t align_bytes, uint32_t flags)
{
    uint64_t align = align_bytes <= 1 ? cpu_page_bytes() : align_bytes;

    if ((align & (align - 1)) != 0) {
        return 0;
    }
    if ((flags & DS_ACCEL_PINNED_HUGE_PAGES) != 0 && align < HUGE_PAGE_BYTES) {
        align = HUGE_PAGE_BYTES;
    }
    return align;
}

static int32_t check_pinned_flags(uint32_t flags, const char *call, struct ds_accel_error *error)
{
    /* On a CPU all pinned memory is portable and mapped; write-combining is only a hint. */
    const uint32_t known = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED |
                           DS_ACCEL_PINNED_WRITE_COMBINED | DS_ACCEL_PINNED_HUGE_PAGES;

    if ((flags & ~known) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: unknown flags 0x%x", call,
                           flags & ~known);
    }
    return DS_ACCEL_OK;
}

static int32_t allocate_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                               uint64_t align_bytes, uint32_t flags, void **pointer_out,
                               struct ds_accel_error *error)
{
    struct cpu_block *block =
        cpu_block_create(device, size_bytes, DS_ACCEL_POINTER_PINNED, CPU_SOURCE_PAGES);
    char *pages = NULL;
    int32_t status;

    if (block != NULL) {
        pages =
            cpu_pages_map(size_bytes, align_bytes, PROT_READ | PROT_WRITE, &block->mapped_bytes);
        block->base = pages;
    }
    if (pages == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                             "mem_alloc_pinned(%llu bytes, aligned to %llu): %m",
                             (unsigned long long)size_bytes, (unsigned long long)align_bytes);
        free(block);
        return status;
    }
    if ((flags & DS_ACCEL_PINNED_HUGE_PAGES) != 0) {
        /* Requested before the pages exist; the kernel falls back to small pages if it has no huge
           ones. */
        (void)madvise(pages, (size_t)block->mapped_bytes, MADV_HUGEPAGE);
    }
    cpu_place_pages(device, pages, block->mapped_bytes); /* before mlock() touches them */
    if (mlock(pages, (size_t)block->mapped_bytes) != 0) {
        const int cause = errno;

        cpu_block_release(block);
        return fail_lock(size_bytes, cause, "mem_alloc_pinned", error);
    }
    status = cpu_block_enter(block, "mem_alloc_pinned", error);
    if (status == DS_ACCEL_OK) {
        *pointer_out = pages;
    }
    return status;
}

static int32_t cpu_mem_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                    uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                    struct ds_accel_error *error)
{
    const uint64_t align = pinned_align(align_bytes, flags);
    int32_t status;

    if (device == NULL || pointer_out == NULL) {
        return cpu_null(error, "mem_alloc_pinned: device or pointer_out");
    }
    if (align == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_alloc_pinned: alignment %llu is no power of two, 0 or 1",
                           (unsigned long long)align_bytes);
    }
    status = check_pinned_flags(flags, "mem_alloc_pinned", error);
    if (status == DS_ACCEL_OK) {
        status = cpu_fork_check(device->instance, "mem_alloc_pinned", error);
    }
    if (status == DS_ACCEL_OK) {
        status = check_size(device, size_bytes, "mem_alloc_pinned", error);
    }
    if (status < 0) {
        return status;
    }
    return allocate_pinned(device, size_bytes, align, flags, pointer_out, error);
}

static int32_t cpu_mem_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                                   struct ds_accel_error *error)
{
    struct cpu_block *block = NULL;
    int32_t status;

    if (pointer == NULL) {
        return DS_ACCEL_OK;
    }
    status = check_free(device, "mem_free_pinned", error);
    if (status == DS_ACCEL_OK) {
        status = take_for_free(device, pointer, DS_ACCEL_POINTER_PINNED, "mem_free_pinned", &block,
                               error);
    }
    if (status == DS_ACCEL_OK) {
        cpu_queues_wait(device->instance, NULL, CPU_NEVER, "mem_free_pinned", error);
        cpu_block_release(block);
    }
    return status;
}

/* ---- the caller's memory -------------------------------------------------------------------- */

/* Insert the range, so that no other call unlocks its pages from here on; fails if it overlaps. */
static int32_t claim_range(struct cpu_block *block, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = block->device->instance;
    const struct cpu_block *other;
    int32_t status = DS_ACCEL_OK;

    pthread_mutex_lock(&instance->lock);
    other = cpu_block_overlap(instance, block->base, block->size_bytes);
    if (other != NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_INVALID,
                             "mem_register(%p, %llu bytes): overlaps memory already known at %p, "
                             "%llu bytes",
                             (void *)block->base, (unsigned long long)block->size_bytes,
                             (void *)other->base, (unsigned long long)other->size_bytes);
    } else if (cpu_block_insert(instance, block) != 0) {
        status =
            plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_register: no memory to note the range");
    }
    pthread_mutex_unlock(&instance->lock);
    return status;
}

/* mlock() fails with ENOMEM both for its limit and for a hole; msync(MS_ASYNC) only detects the
   hole. */
static int range_has_hole(const char *base, uint64_t size_bytes)
{
    const uintptr_t page = (uintptr_t)cpu_page_bytes();
    const uintptr_t start = (uintptr_t)base & ~(page - 1);

    return msync((void *)start, (uintptr_t)base + size_bytes - start, MS_ASYNC) != 0 &&
           errno == ENOMEM;
}

static int32_t lock_range(struct cpu_block *block, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = block->device->instance;
    char *const base = block->base;
    const uint64_t size_bytes = block->size_bytes;
    int32_t status = claim_range(block, error);
    int cause;

    if (status < 0) {
        free(block);
        return status;
    }
    if (mlock(base, (size_t)size_bytes) == 0) {
        return DS_ACCEL_OK;
    }
    cause = errno;
    /* The kernel may have locked the pages before the failure; the release unlocks them. */
    pthread_mutex_lock(&instance->lock);
    cpu_block_remove(instance, block);
    cpu_block_release(block);
    pthread_mutex_unlock(&instance->lock);
    if (cause == ENOMEM && range_has_hole(base, size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register(%p, %llu bytes): part of the range is not mapped",
                           (void *)base, (unsigned long long)size_bytes);
    }
    return fail_lock(size_bytes, cause, "mem_register", error);
}

static int32_t cpu_mem_register(ds_accel_plugin_device_t *device, void *pointer,
                                uint64_t size_bytes, uint32_t flags, struct ds_accel_error *error)
{
    struct cpu_block *block;
    int32_t status;

    if (device == NULL || pointer == NULL) {
        return cpu_null(error, "mem_register: device or pointer");
    }
    status = check_pinned_flags(flags, "mem_register", error);
    if (status < 0) {
        return status;
    }
    if (size_bytes == 0 || size_bytes > UINTPTR_MAX - (uintptr_t)pointer) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register(%p, %llu bytes): empty, or beyond the end of the address "
                           "space",
                           pointer, (unsigned long long)size_bytes);
    }
    block = cpu_block_create(device, size_bytes, DS_ACCEL_POINTER_PINNED, CPU_SOURCE_CALLER);
    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "mem_register: no memory to note the range");
    }
    block->base = pointer;
    pthread_mutex_lock(&device->instance->pin_lock);
    status = lock_range(block, error);
    pthread_mutex_unlock(&device->instance->pin_lock);
    return status;
}

static int32_t cpu_mem_unregister(ds_accel_plugin_device_t *device, void *pointer,
                                  struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    struct cpu_block *block = NULL;
    int32_t status;

    if (device == NULL || pointer == NULL) {
        return cpu_null(error, "mem_unregister: device or pointer");
    }
    instance = device->instance;
    pthread_mutex_lock(&instance->pin_lock);
    pthread_mutex_lock(&instance->lock);
    status = cpu_block_take(device, pointer, DS_ACCEL_POINTER_PINNED, 1, "mem_unregister", &block,
                            error);
    if (status == DS_ACCEL_OK) {
        cpu_block_release(block);
    }
    pthread_mutex_unlock(&instance->lock);
    pthread_mutex_unlock(&instance->pin_lock);
    return status;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int32_t cpu_mem_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                      void **device_pointer_out, struct ds_accel_error *error)
{
    if (device == NULL || host_pointer == NULL || device_pointer_out == NULL) {
        return cpu_null(error, "mem_device_pointer: device, host_pointer or device_pointer_out");
    }
    *device_pointer_out = host_pointer;
    return DS_ACCEL_OK;
}

static int32_t cpu_mem_pointer_info(ds_accel_plugin_instance_t *instance,
                                    ds_accel_plugin_device_t *device, const void *pointer,
                                    struct ds_accel_pointer_info *info_out,
                                    struct ds_accel_error *error)
{
    struct ds_accel_pointer_info info;
    const struct cpu_block *block;

    (void)device; /* addresses are the process's: one pointer, one owner */
    if (instance == NULL || info_out == NULL) {
        return cpu_null(error, "mem_pointer_info: instance or info_out");
    }
    memset(&info, 0, sizeof(info));
    info.kind = DS_ACCEL_POINTER_UNKNOWN;
    info.device_index = -1;
    pthread_mutex_lock(&instance->lock);
    block = cpu_block_find(instance, pointer);
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

void cpu_memory_fill(struct ds_accel_plugin *table)
{
    table->mem_alloc = cpu_mem_alloc;
    table->mem_free = cpu_mem_free;
    table->mem_alloc_async = cpu_mem_alloc_async;
    table->mem_free_async = cpu_mem_free_async;
    table->mem_alloc_pinned = cpu_mem_alloc_pinned;
    table->mem_free_pinned = cpu_mem_free_pinned;
    table->mem_register = cpu_mem_register;
    table->mem_unregister = cpu_mem_unregister;
    table->mem_device_pointer = cpu_mem_device_pointer;
    table->mem_pointer_info = cpu_mem_pointer_info;
}
