/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Allocations, and the register of them.
 *
 * instance->blocks has every allocated or registered block in order of address. So an interior
 * pointer is found by binary search, and free rejects a pointer that is not, or no longer, ours,
 * where libc would abort. Blocks never overlap. Inserting moves pointers, 8 bytes for each live
 * block above, which is nothing next to the page faults of a fresh allocation.
 *
 * Sources of memory:
 *  - small device memory on one node (or a recorded machine): libc's heap;
 *  - all other device memory: fresh pages, for which a node can be preferred. Preferred, not bound:
 *    a full node makes memory slower, it doesn't kill the job;
 *  - pinned memory: fresh pages, so that unlocking one block can't unlock another;
 *  - mappings of virtual memory: vmem.c, which alone makes and releases them;
 *  - registered memory: the caller's. Its first and last page may be shared with another
 *    registration, and the kernel doesn't count locks, so unlocking must skip those pages.
 *
 * The functions on the register expect the caller to hold instance->lock unless they say otherwise.
 * A block is taken out of the register before its memory is released, and inserted after its memory
 * is allocated, so that no address of ours is ever in it twice.
 */
#include "cpu.h"

#include <sys/mman.h>
#include <unistd.h>

/* The ABI wants ids unique in the process, across instances, so all instances share this one
   counter. */
static atomic_uint_fast64_t next_block_id = 1;

uint64_t cpu_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- the register --------------------------------------------------------------------------- */

/* Number of blocks whose base is at or below the address. */
static size_t blocks_up_to(const ds_accel_plugin_instance_t *instance, const void *address)
{
    size_t low = 0;
    size_t high = instance->block_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)instance->blocks[middle]->base <= (uintptr_t)address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct cpu_block *cpu_block_find(const ds_accel_plugin_instance_t *instance, const void *address)
{
    size_t position = blocks_up_to(instance, address);
    struct cpu_block *block;

    if (position == 0) {
        return NULL;
    }
    block = instance->blocks[position - 1];
    return (uintptr_t)address - (uintptr_t)block->base < block->size_bytes ? block : NULL;
}

struct cpu_block *cpu_block_overlap(const ds_accel_plugin_instance_t *instance, const void *address,
                                    uint64_t size_bytes)
{
    size_t position = blocks_up_to(instance, (const char *)address + (size_bytes - 1));
    struct cpu_block *block;

    if (position == 0) {
        return NULL;
    }
    block = instance->blocks[position - 1];
    return (uintptr_t)block->base + block->size_bytes > (uintptr_t)address ? block : NULL;
}

int cpu_block_insert(ds_accel_plugin_instance_t *instance, struct cpu_block *block)
{
    size_t position = blocks_up_to(instance, block->base);

    if (instance->block_count == instance->block_capacity) {
        size_t capacity = instance->block_capacity == 0 ? 64 : instance->block_capacity * 2;
        struct cpu_block **blocks =
            realloc(instance->blocks, capacity * sizeof(struct cpu_block *));

        if (blocks == NULL) {
            return -1;
        }
        instance->blocks = blocks;
        instance->block_capacity = capacity;
    }
    memmove(&instance->blocks[position + 1], &instance->blocks[position],
            (instance->block_count - position) * sizeof(struct cpu_block *));
    instance->blocks[position] = block;
    instance->block_count++;
    return 0;
}

void cpu_block_remove(ds_accel_plugin_instance_t *instance, const struct cpu_block *block)
{
    size_t position = blocks_up_to(instance, block->base);

    /* A caller that frees registered memory without unregistering it can make bases coincide. */
    while (instance->blocks[position - 1] != block) {
        position--;
    }
    instance->block_count--;
    memmove(&instance->blocks[position - 1], &instance->blocks[position],
            (instance->block_count - (position - 1)) * sizeof(struct cpu_block *));
}

/* Does a registration have a byte in [start, end)? */
static int range_is_registered(const ds_accel_plugin_instance_t *instance, uintptr_t start,
                               uintptr_t end)
{
    size_t position = blocks_up_to(instance, (const void *)(end - 1));

    while (position > 0) {
        const struct cpu_block *block = instance->blocks[--position];

        if ((uintptr_t)block->base + block->size_bytes <= start) {
            return 0;
        }
        if (block->source == CPU_SOURCE_CALLER) {
            return 1;
        }
    }
    return 0;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* Fresh pages at a multiple of align_bytes, a power of two; NULL and errno. */
char *cpu_pages_map(uint64_t size_bytes, uint64_t align_bytes, int protection,
                    uint64_t *mapped_bytes_out)
{
    const uint64_t page = cpu_page_bytes();
    const uint64_t length = (size_bytes + page - 1) & ~(page - 1);
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

/* Unlock the pages of a range, except the outer two if another registration needs them. Both locks
 * are held. */
static void unlock_range(const ds_accel_plugin_instance_t *instance, char *base,
                         uint64_t size_bytes)
{
    const uintptr_t page = (uintptr_t)cpu_page_bytes();
    const uintptr_t end = (uintptr_t)base + size_bytes;
    uintptr_t first = (uintptr_t)base & ~(page - 1);
    uintptr_t last = (end + page - 1) & ~(page - 1);

    if (first < (uintptr_t)base && range_is_registered(instance, first, (uintptr_t)base)) {
        first += page;
    }
    if (last > end && range_is_registered(instance, end, last)) {
        last -= page;
    }
    if (last > first) {
        munlock((void *)first, last - first);
    }
}

/* Release a block's memory; it is out of the register. For the caller's pages, both locks are
 * held. */
void cpu_block_release(struct cpu_block *block)
{
    if (block->source == CPU_SOURCE_HEAP) {
        free(block->base);
    } else if (block->source == CPU_SOURCE_PAGES) {
        munmap(block->base, (size_t)block->mapped_bytes);
    } else {
        unlock_range(block->device->instance, block->base, block->size_bytes);
    }
    free(block);
}

/* ---- making blocks -------------------------------------------------------------------------- */

struct cpu_block *cpu_block_create(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                   uint32_t kind, uint32_t source)
{
    struct cpu_block *block = calloc(1, sizeof(*block));

    if (block != NULL) {
        block->size_bytes = size_bytes;
        block->id = atomic_fetch_add(&next_block_id, 1);
        block->kind = kind;
        block->source = source;
        block->device = device;
    }
    return block;
}

/* Insert a block whose memory was just allocated, or release both. Takes the block. */
int32_t cpu_block_enter(struct cpu_block *block, const char *call, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = block->device->instance;
    int failed;

    pthread_mutex_lock(&instance->lock);
    failed = cpu_block_insert(instance, block);
    pthread_mutex_unlock(&instance->lock);
    if (failed) {
        cpu_block_release(block);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory to note the allocation",
                           call);
    }
    return DS_ACCEL_OK;
}

/*
 * Find the block that begins at a pointer to be freed, and take it out of the register. Each other
 * kind of pointer has an error message of its own. instance->lock is held.
 */
int32_t cpu_block_take(ds_accel_plugin_device_t *device, const void *pointer, uint32_t kind,
                       int is_registered, const char *call, struct cpu_block **block_out,
                       struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    struct cpu_block *block = cpu_block_find(instance, pointer);
    const char *right_call;

    if (block == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s(%p): not memory of this backend, or released before", call, pointer);
    }
    if ((const char *)pointer != block->base) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s(%p): not the start of the memory at %p, %llu bytes", call, pointer,
                           (void *)block->base, (unsigned long long)block->size_bytes);
    }
    right_call = block->source == CPU_SOURCE_MAPPING      ? "vmem_unmap"
                 : block->source == CPU_SOURCE_CALLER     ? "mem_unregister"
                 : block->kind == DS_ACCEL_POINTER_PINNED ? "mem_free_pinned"
                                                          : "mem_free";
    if (block->kind != kind || block->source == CPU_SOURCE_MAPPING ||
        (block->source == CPU_SOURCE_CALLER) != is_registered) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s(%p): this memory is released with %s",
                           call, pointer, right_call);
    }
    if (block->device != device) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s(%p): memory of device %u, not %u", call,
                           pointer, block->device->index, device->index);
    }
    cpu_block_remove(instance, block);
    *block_out = block;
    return DS_ACCEL_OK;
}

void cpu_blocks_release(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_instance_t *instance = device->instance;
    size_t released = 0;
    size_t position = 0;

    pthread_mutex_lock(&instance->pin_lock);
    pthread_mutex_lock(&instance->lock);
    while (position < instance->block_count) {
        struct cpu_block *block = instance->blocks[position];

        if (block->device != device) {
            position++;
            continue;
        }
        cpu_block_remove(instance, block);
        cpu_block_release(block);
        released++;
    }
    pthread_mutex_unlock(&instance->lock);
    pthread_mutex_unlock(&instance->pin_lock);
    if (released > 0) {
        cpu_log(instance->host, DS_ACCEL_LOG_DEBUG,
                "device %u closed with %zu allocations; released them", device->index, released);
    }
}
