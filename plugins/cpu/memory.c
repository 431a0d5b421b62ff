/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Device memory, pinned memory and the caller's registered memory. The bytes come from:
 *  - small device memory on a machine with one node (or a recorded machine): libc's heap;
 *  - all other device memory: new pages, for which the device's node is preferred. The pages are
 *    not bound to the node, so that a full node makes memory slower but doesn't fail the program;
 *  - pinned memory: new pages, so that unlocking one block can't unlock another;
 *  - registered memory: the caller's pages. The first and the last page may be shared with another
 *    registration, and the kernel doesn't count locks, so that unregistering must leave those pages
 *    locked.
 */
#include "cpu.h"

#include <sys/mman.h>
#include <unistd.h>

#define SMALL_BYTES (64u << 10)
#define LARGE_BYTES (UINT64_C(256) << 20)
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

/* ---- pages ---------------------------------------------------------------------------------- */

uint64_t cpu_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t whole_pages(uint64_t size_bytes)
{
    const uint64_t page = cpu_page_bytes();

    return (size_bytes + page - 1) & ~(page - 1);
}

char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, int protection,
                    uint64_t *mapped_bytes_out)
{
    const uint64_t page = cpu_page_bytes();
    const uint64_t length = whole_pages(size_bytes);
    const uint64_t slack = align_bytes > page ? align_bytes - page : 0;
    uintptr_t start;
    uint64_t skipped;
    void *mapping;

    if (length > PTRDIFF_MAX || slack > PTRDIFF_MAX - length) {
        errno = ENOMEM;
        return NULL;
    }
    mapping = mmap(NULL, (size_t)(length + slack), protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | (protection == PROT_NONE ? MAP_NORESERVE : 0), -1,
                   0);
    if (mapping == MAP_FAILED) {
        return NULL;
    }
    start = (uintptr_t)mapping;
    skipped = slack == 0 ? 0 : (align_bytes - start % align_bytes) % align_bytes;
    if (skipped > 0) {
        munmap(mapping, (size_t)skipped);
    }
    if (slack > skipped) {
        munmap((char *)mapping + skipped + length, (size_t)(slack - skipped));
    }
    *mapped_bytes_out = length;
    return (char *)mapping + skipped;
}

/* ---- checks before allocating and freeing ---------------------------------------------------- */

/*
 * Linux overcommits: it maps more memory than it has, and kills processes when they use it. As on a
 * device, a request larger than the machine's memory is rejected. The check reads files, so that it
 * is made only for requests of at least LARGE_BYTES.
 */
int32_t cpu_check_size(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *call,
                       struct ds_accel_error *error)
{
    const struct cpu_machine *machine = &cpu_runtime(device->instance)->machine;
    struct ds_accel_host_memory memory;
    int32_t status;

    status = cpu_fork_check(cpu_runtime(device->instance), call, error);
    if (status < 0) {
        return status;
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

/* Wait for the work queued now on all devices, because streams of any device and their host tasks
   may use the memory. */
int32_t cpu_memory_wait(ds_accel_plugin_device_t *device, const char *call,
                        struct ds_accel_error *error)
{
    return cpu_queues_wait(cpu_runtime(device->instance), NULL, CPU_NEVER, call, error);
}

/* ---- device memory -------------------------------------------------------------------------- */

/* Return non-zero if memory of this size comes from the heap. The result depends only on the size
   and the machine, so that cpu_free() repeats the decision of cpu_alloc(). */
static int is_small(const struct cpu_device *device, uint64_t size_bytes)
{
    return size_bytes < SMALL_BYTES && !cpu_place_matters(&device->cpu->machine);
}

/* A small size with an alignment above the page size is raised to SMALL_BYTES, which allocates
   pages: aligned_alloc() would round the size up to the alignment. */
int32_t cpu_alloc(ds_accel_plugin_device_t *device, uint64_t *size_bytes, uint64_t align_bytes,
                  void **pointer_out, struct ds_accel_error *error)
{
    const struct cpu_device *state = cpu_device(device);
    const uint64_t align = align_bytes > CPU_ALIGN_BYTES ? align_bytes : CPU_ALIGN_BYTES;
    uint64_t mapped_bytes = 0;
    void *pointer;

    if (align > cpu_page_bytes() && *size_bytes < SMALL_BYTES) {
        *size_bytes = SMALL_BYTES;
    }
    if (is_small(state, *size_bytes)) {
        /* C11 requires the size to be a multiple of the alignment. */
        pointer = aligned_alloc((size_t)align, (size_t)((*size_bytes + align - 1) & ~(align - 1)));
    } else {
        pointer = cpu_pages_map(*size_bytes, align, PROT_READ | PROT_WRITE, &mapped_bytes);
    }
    if (pointer == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_alloc(%llu bytes, device %u): %m",
                           (unsigned long long)*size_bytes, device->index);
    }
    if (mapped_bytes > 0) {
        cpu_place_pages(state, pointer, mapped_bytes);
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

void cpu_give(const struct cpu_device *device, void *pointer, uint64_t size_bytes)
{
    if (is_small(device, size_bytes)) {
        free(pointer);
    } else {
        munmap(pointer, (size_t)whole_pages(size_bytes));
    }
}

int32_t cpu_free(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                 struct ds_accel_error *error)
{
    (void)error;
    cpu_give(cpu_device(device), pointer, size_bytes);
    return DS_ACCEL_OK;
}

/* Allocate at once, because no queued work uses new memory; only freeing needs stream order. */
int32_t cpu_alloc_async(ds_accel_plugin_device_t *device, void *native_stream, uint64_t size_bytes,
                        void **pointer_out, struct ds_accel_error *error)
{
    (void)native_stream;
    return cpu_alloc(device, &size_bytes, 0, pointer_out, error);
}

/* Free the memory in stream order. The free is never captured, because a graph would free the
   memory with each launch. The stream may be capturing nevertheless: it can have joined a capture
   since capture_check(), by waiting for an event. */
int32_t cpu_free_in_order(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                          uint64_t size_bytes, void (*before)(void *argument), void *argument,
                          struct ds_accel_error *error)
{
    const struct cpu_work work = {.kind = CPU_WORK_FREE,
                                  .destination = pointer,
                                  .size_bytes = size_bytes,
                                  .device = cpu_device(device),
                                  .before = before,
                                  .user_data = argument};
    struct cpu_stream *stream = native_stream;

    if (stream->queue != NULL) {
        return cpu_queue_submit(stream->queue, &work, "mem_free_async", error);
    }
    cpu_work_run(&work);
    return DS_ACCEL_OK;
}

/* ---- pinned memory -------------------------------------------------------------------------- */

/* Report that mlock() failed: ERR_LIMIT for ENOMEM, EPERM and EAGAIN, otherwise ERR_INVALID. For
   ERR_LIMIT the frame writes RLIMIT_MEMLOCK and its value to the message. */
static int32_t fail_lock(uint64_t size_bytes, int cause, const char *call,
                         struct ds_accel_error *error)
{
    const int is_limit = cause == ENOMEM || cause == EPERM || cause == EAGAIN;

    errno = cause;
    return plugin_fail(error, is_limit ? DS_ACCEL_ERR_LIMIT : DS_ACCEL_ERR_INVALID,
                       "%s(%llu bytes): mlock: %m", call, (unsigned long long)size_bytes);
}

int32_t cpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                         uint64_t align_bytes, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error)
{
    const int is_huge = (flags & DS_ACCEL_PINNED_HUGE_PAGES) != 0;
    const uint64_t least = is_huge ? HUGE_PAGE_BYTES : cpu_page_bytes();
    const uint64_t align = align_bytes > least ? align_bytes : least;
    uint64_t mapped_bytes = 0;
    char *pages = cpu_pages_map(size_bytes, align, PROT_READ | PROT_WRITE, &mapped_bytes);

    if (pages == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY,
                           "mem_alloc_pinned(%llu bytes, aligned to %llu): %m",
                           (unsigned long long)size_bytes, (unsigned long long)align);
    }
    if (is_huge) {
        /* This must precede the first access to the pages. The kernel falls back to small pages if
           it has no huge pages. */
        (void)madvise(pages, (size_t)mapped_bytes, MADV_HUGEPAGE);
    }
    cpu_place_pages(cpu_device(device), pages, mapped_bytes); /* before mlock() touches them */
    if (mlock(pages, (size_t)mapped_bytes) != 0) {
        const int cause = errno;

        munmap(pages, (size_t)mapped_bytes);
        return fail_lock(size_bytes, cause, "mem_alloc_pinned", error);
    }
    *pointer_out = pages;
    return DS_ACCEL_OK;
}

int32_t cpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                        struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    munmap(pointer, (size_t)whole_pages(size_bytes));
    return DS_ACCEL_OK;
}

/* ---- the caller's memory -------------------------------------------------------------------- */

/* Unlock the pages of a range, except a first or last page that another registration shares. The
   caller holds pin_lock. */
static void unlock_range(const ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes)
{
    const uintptr_t page = (uintptr_t)cpu_page_bytes();
    const uintptr_t start = (uintptr_t)base;
    const uintptr_t end = start + size_bytes;
    uintptr_t first = start & ~(page - 1);
    uintptr_t last = (end + page - 1) & ~(page - 1);

    if (first < start && vendor_is_registered(device->instance, first, start)) {
        first += page;
    }
    if (last > end && vendor_is_registered(device->instance, end, last)) {
        last -= page;
    }
    if (last > first) {
        munlock((void *)first, last - first);
    }
}

/* Return non-zero if part of the range is not mapped. mlock() fails with ENOMEM both at its limit
   and at such a hole; msync(MS_ASYNC) fails with ENOMEM only at a hole. */
static int range_has_hole(const char *base, uint64_t size_bytes)
{
    const uintptr_t page = (uintptr_t)cpu_page_bytes();
    const uintptr_t start = (uintptr_t)base & ~(page - 1);

    return msync((void *)start, (uintptr_t)base + size_bytes - start, MS_ASYNC) != 0 &&
           errno == ENOMEM;
}

static int32_t lock_range(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                          struct ds_accel_error *error)
{
    int cause;

    if (mlock(base, (size_t)size_bytes) == 0) {
        return DS_ACCEL_OK;
    }
    cause = errno;
    /* The kernel may have locked some pages of the range before mlock() failed. */
    vendor_register_failed(device->instance, base);
    unlock_range(device, base, size_bytes);
    if (cause == ENOMEM && range_has_hole(base, size_bytes)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register(%p, %llu bytes): part of the range is not mapped", base,
                           (unsigned long long)size_bytes);
    }
    return fail_lock(size_bytes, cause, "mem_register", error);
}

/* Lock the caller's pages. The frame has already registered the range, so that no other thread
   unlocks these pages. */
int32_t cpu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);
    int32_t status;

    (void)flags;
    pthread_mutex_lock(&cpu->pin_lock);
    status = lock_range(device, pointer, size_bytes, error);
    pthread_mutex_unlock(&cpu->pin_lock);
    return status;
}

int32_t cpu_host_unregister(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                            struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(device->instance);

    (void)error;
    pthread_mutex_lock(&cpu->pin_lock);
    unlock_range(device, pointer, size_bytes);
    pthread_mutex_unlock(&cpu->pin_lock);
    return DS_ACCEL_OK;
}
