/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The register of addresses: device memory, pinned and registered host memory, mappings, imports.
 *
 * The register lets the plugin reject wrong addresses: a pointer that was freed before, or that
 * belongs to another allocator, fails with ERR_INVALID and does not reach the vendor's runtime,
 * which could crash. Blocks of one space never overlap, so the search tree compares overlapping
 * ranges as equal: a search for one byte finds the block that contains the byte.
 *
 * A space is a set of addresses in which each address has one meaning. Most runtimes have one space
 * for all devices and the host. Without the flag UNIFIED_ADDRESSES each device has its own space,
 * and so has the host.
 */
#include "vendor_frame.h"

#include <assert.h>
#include <search.h>

struct vendor_register {
    pthread_mutex_t lock; /* guards the tree, the lists, and the blocks in them */
    void *tree;
    struct vendor_block *all;
    struct vendor_use *uses;
};

/* The ABI requires ids that are unique in the plugin, so all instances share this counter. */
static atomic_uint_fast64_t next_block_id = 1;

/* Overlapping ranges compare equal. */
static int compare_blocks(const void *a, const void *b)
{
    const struct vendor_block *left = a;
    const struct vendor_block *right = b;

    if (left->space != right->space) {
        return left->space < right->space ? -1 : 1;
    }
    if (left->base < right->base) {
        return right->base - left->base < left->size_bytes ? 0 : -1;
    }
    return left->base - right->base < right->size_bytes ? 0 : 1;
}

struct vendor_register *vendor_register_create(void)
{
    struct vendor_register *blocks = calloc(1, sizeof(*blocks));

    if (blocks != NULL) {
        pthread_mutex_init(&blocks->lock, NULL);
    }
    return blocks;
}

void vendor_register_destroy(struct vendor_register *blocks)
{
    if (blocks == NULL) {
        return;
    }
    while (blocks->all != NULL) {
        struct vendor_block *block = blocks->all;

        vendor_block_remove(blocks, block);
        vendor_block_destroy(block);
    }
    pthread_mutex_destroy(&blocks->lock);
    free(blocks);
}

void vendor_register_lock(struct vendor_register *blocks)
{
    pthread_mutex_lock(&blocks->lock);
}

void vendor_register_unlock(struct vendor_register *blocks)
{
    pthread_mutex_unlock(&blocks->lock);
}

/* The space of registered ranges if the runtime's alloc() may return addresses inside them. */
#define REGISTERED_SPACE UINT32_MAX

static uint32_t registered_space(void)
{
    return vendor_backend.allocates_in_registered ? REGISTERED_SPACE : 0;
}

uint32_t vendor_block_space(const ds_accel_plugin_device_t *device, uint32_t kind)
{
    int is_device_memory = kind == DS_ACCEL_POINTER_DEVICE;

    if ((vendor_backend.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0 || !is_device_memory) {
        return 0;
    }
    return device->index + 1;
}

struct vendor_block *vendor_block_overlap(const struct vendor_register *blocks, uint32_t space,
                                          const void *address, uint64_t size_bytes)
{
    const struct vendor_block key = {
        .base = (uintptr_t)address, .size_bytes = size_bytes, .space = space};
    struct vendor_block *const *found = tfind(&key, &blocks->tree, compare_blocks);

    return found != NULL ? *found : NULL;
}

struct vendor_block *vendor_block_overlap_any(const struct vendor_register *blocks, uint32_t space,
                                              const void *address, uint64_t size_bytes)
{
    struct vendor_block *block = vendor_block_overlap(blocks, space, address, size_bytes);

    return block != NULL || registered_space() == 0
               ? block
               : vendor_block_overlap(blocks, registered_space(), address, size_bytes);
}

struct vendor_block *vendor_block_find(const struct vendor_register *blocks, uint32_t space,
                                       const void *address)
{
    return vendor_block_overlap(blocks, space, address, 1);
}

static struct vendor_block *find_usable(const struct vendor_register *blocks, uint32_t space,
                                        const void *address)
{
    struct vendor_block *block = vendor_block_find(blocks, space, address);

    return block != NULL && block->phase == VENDOR_PHASE_USABLE ? block : NULL;
}

struct vendor_block *vendor_block_look_up(const struct vendor_register *blocks,
                                          const ds_accel_plugin_device_t *device,
                                          const void *address)
{
    struct vendor_block *block = NULL;

    if (device != NULL) {
        block = find_usable(blocks, vendor_block_space(device, DS_ACCEL_POINTER_DEVICE), address);
    }
    if (block == NULL) {
        block = find_usable(blocks, 0, address);
    }
    return block != NULL || registered_space() == 0
               ? block
               : find_usable(blocks, registered_space(), address);
}

void vendor_use_begin(struct vendor_register *blocks, struct vendor_use *use)
{
    use->next = blocks->uses;
    blocks->uses = use;
}

void vendor_use_end(struct vendor_register *blocks, const struct vendor_use *use)
{
    struct vendor_use **link = &blocks->uses;

    while (*link != use) {
        link = &(*link)->next;
    }
    *link = use->next;
}

int vendor_use_overlaps(const struct vendor_register *blocks, uint32_t space, uintptr_t address,
                        uint64_t size_bytes)
{
    const struct vendor_use *use = blocks->uses;

    while (use != NULL &&
           (use->space != space || use->end <= address || use->start >= address + size_bytes)) {
        use = use->next;
    }
    return use != NULL;
}

int vendor_block_insert(struct vendor_register *blocks, struct vendor_block *block)
{
    struct vendor_block **place = tsearch(block, &blocks->tree, compare_blocks);

    assert(block->next == NULL && block->previous == NULL);
    if (place == NULL || *place != block) {
        return place == NULL ? -2 : -1;
    }
    block->previous = NULL;
    block->next = blocks->all;
    if (block->next != NULL) {
        block->next->previous = block;
    }
    blocks->all = block;
    return 0;
}

void vendor_block_remove(struct vendor_register *blocks, struct vendor_block *block)
{
    assert((block->previous == NULL) == (blocks->all == block));
    tdelete(block, &blocks->tree, compare_blocks);
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        blocks->all = block->next;
    }
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    block->next = NULL;
    block->previous = NULL;
}

struct vendor_block *vendor_block_any(const struct vendor_register *blocks,
                                      const ds_accel_plugin_device_t *device)
{
    struct vendor_block *block = blocks->all;

    while (block != NULL && (block->device != device || block->phase != VENDOR_PHASE_USABLE)) {
        block = block->next;
    }
    return block;
}

/* Is any byte of the range registered? Other blocks in the range, and blocks that are being
   unregistered, do not count. The caller holds the register's lock. */
static int is_registered(const struct vendor_register *blocks, uintptr_t start, uintptr_t end)
{
    while (start < end) {
        const struct vendor_block *block =
            vendor_block_overlap(blocks, registered_space(), (const void *)start, end - start);

        if (block == NULL ||
            (block->source == VENDOR_SOURCE_REGISTERED && block->phase != VENDOR_PHASE_ENDING)) {
            return block != NULL;
        }
        if (block->base > start && is_registered(blocks, start, block->base)) {
            return 1;
        }
        start = block->base + block->size_bytes;
    }
    return 0;
}

int vendor_is_registered(ds_accel_plugin_instance_t *instance, uintptr_t start, uintptr_t end)
{
    int answer;

    vendor_register_lock(instance->blocks);
    answer = is_registered(instance->blocks, start, end);
    vendor_register_unlock(instance->blocks);
    return answer;
}

struct vendor_block *vendor_block_create(ds_accel_plugin_device_t *device,
                                         enum vendor_source source, uint32_t kind)
{
    struct vendor_block *block = calloc(1, sizeof(*block));

    if (block != NULL) {
        assert(source >= VENDOR_SOURCE_ALLOC && source <= VENDOR_SOURCE_WRAPPED);
        block->device = device;
        block->source = source;
        block->kind = kind;
        block->space = source == VENDOR_SOURCE_REGISTERED ? registered_space()
                                                          : vendor_block_space(device, kind);
        block->id = atomic_fetch_add(&next_block_id, 1);
    }
    return block;
}

void vendor_block_destroy(struct vendor_block *block)
{
    if (block != NULL) {
        assert(block->next == NULL && block->previous == NULL); /* the block is in no register */
        if (block->exports != NULL) {
            vendor_share_withdraw(block);
        }
        free(block->handle);
        free(block);
    }
}

/* Did the program choose the addresses, so that they exist before and after the block? */
static int keeps_addresses(const struct vendor_block *block)
{
    return block->source == VENDOR_SOURCE_REGISTERED || block->source == VENDOR_SOURCE_MAPPED;
}

/* If registered ranges have their own space: is the block registered or mapped, and does it overlap
   a block of the other space? Only allocated memory may overlap a registered range. The caller
   holds the register's lock. */
static int is_taken(const struct vendor_register *blocks, const struct vendor_block *block)
{
    uint32_t other = block->space == REGISTERED_SPACE ? 0 : registered_space();

    return registered_space() != 0 && keeps_addresses(block) &&
           vendor_block_overlap(blocks, other, (const void *)block->base, block->size_bytes) !=
               NULL;
}

int32_t vendor_block_enter(struct vendor_block *block, const char *slot,
                           struct ds_accel_error *error)
{
    struct vendor_register *blocks = block->device->instance->blocks;
    void *base = (void *)block->base;
    unsigned long long size_bytes = block->size_bytes;
    int result;

    block->phase = keeps_addresses(block) ? VENDOR_PHASE_BEGINNING : VENDOR_PHASE_USABLE;
    vendor_register_lock(blocks);
    result = is_taken(blocks, block) ? -1 : vendor_block_insert(blocks, block);
    vendor_register_unlock(blocks);
    if (result == 0) {
        return DS_ACCEL_OK;
    }
    vendor_block_destroy(block);
    if (result == -2) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory for the register", slot);
    }
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "%s: a part of %p with %llu bytes is known already", slot, base, size_bytes);
}

/* Find the device's usable block that starts at the pointer and has one of the sources (a set of
   1 << source), or NULL. The caller holds the register's lock. */
static struct vendor_block *find_start(const struct vendor_register *blocks, uint32_t space,
                                       const ds_accel_plugin_device_t *device, const void *pointer,
                                       uint32_t sources)
{
    struct vendor_block *block = vendor_block_find(blocks, space, pointer);

    return block != NULL && block->base == (uintptr_t)pointer && block->device == device &&
                   block->phase == VENDOR_PHASE_USABLE && (sources & (1u << block->source)) != 0
               ? block
               : NULL;
}

void vendor_block_confirm(struct vendor_block *block)
{
    struct vendor_register *blocks = block->device->instance->blocks;

    vendor_register_lock(blocks);
    assert(block->phase == VENDOR_PHASE_BEGINNING);
    block->phase = VENDOR_PHASE_USABLE;
    vendor_register_unlock(blocks);
}

void vendor_register_failed(ds_accel_plugin_instance_t *instance, void *pointer)
{
    struct vendor_block *block;

    vendor_register_lock(instance->blocks);
    block = vendor_block_find(instance->blocks, registered_space(), pointer);
    assert(block != NULL && block->phase == VENDOR_PHASE_BEGINNING);
    block->phase = VENDOR_PHASE_ENDING;
    vendor_register_unlock(instance->blocks);
}

void vendor_block_take_found(struct vendor_register *blocks, struct vendor_block *block)
{
    assert(block->phase == VENDOR_PHASE_USABLE);
    if (keeps_addresses(block)) {
        block->phase = VENDOR_PHASE_ENDING;
    } else {
        vendor_block_remove(blocks, block);
    }
}

/* Call find_start() for each space that may contain the pointer. The caller holds the register's
   lock. */
static struct vendor_block *find_in_spaces(ds_accel_plugin_device_t *device, const void *pointer,
                                           uint32_t sources)
{
    const struct vendor_register *blocks = device->instance->blocks;
    uint32_t space = vendor_block_space(device, DS_ACCEL_POINTER_DEVICE);
    struct vendor_block *block = find_start(blocks, space, device, pointer, sources);

    if (block == NULL && space != 0) {
        block = find_start(blocks, 0, device, pointer, sources);
    }
    if (block == NULL && registered_space() != 0) {
        block = find_start(blocks, registered_space(), device, pointer, sources);
    }
    return block;
}

int vendor_block_exists(ds_accel_plugin_device_t *device, const void *pointer, uint32_t sources)
{
    struct vendor_register *blocks = device->instance->blocks;
    int is_there;

    vendor_register_lock(blocks);
    is_there = find_in_spaces(device, pointer, sources) != NULL;
    vendor_register_unlock(blocks);
    return is_there;
}

struct vendor_block *vendor_block_take(ds_accel_plugin_device_t *device, const void *pointer,
                                       uint32_t sources)
{
    struct vendor_register *blocks = device->instance->blocks;
    struct vendor_block *block;

    vendor_register_lock(blocks);
    block = find_in_spaces(device, pointer, sources);
    if (block != NULL) {
        vendor_block_take_found(blocks, block);
    }
    vendor_register_unlock(blocks);
    return block;
}

struct vendor_block *vendor_block_take_in_order(ds_accel_plugin_device_t *device,
                                                const void *pointer, uint32_t sources)
{
    struct vendor_register *blocks = device->instance->blocks;
    struct vendor_block *block;

    vendor_register_lock(blocks);
    block = find_in_spaces(device, pointer, sources);
    if (block != NULL) {
        block->phase = VENDOR_PHASE_ENDING;
    }
    vendor_register_unlock(blocks);
    return block;
}

void vendor_block_put_back(struct vendor_block *block)
{
    struct vendor_register *blocks = block->device->instance->blocks;
    int result = 0;

    vendor_register_lock(blocks);
    if (block->phase == VENDOR_PHASE_ENDING) {
        block->phase = VENDOR_PHASE_USABLE;
    } else {
        result = vendor_block_insert(blocks, block);
    }
    vendor_register_unlock(blocks);
    if (result != 0) {
        vendor_log(block->device->instance->host, DS_ACCEL_LOG_WARN,
                   "%p with %llu bytes could not be freed, and is no longer known",
                   (void *)block->base, (unsigned long long)block->size_bytes);
        vendor_block_destroy(block);
    }
}

void vendor_block_end(struct vendor_block *block)
{
    struct vendor_register *blocks;

    if (block != NULL && block->phase != VENDOR_PHASE_USABLE) {
        blocks = block->device->instance->blocks;
        vendor_register_lock(blocks);
        vendor_block_remove(blocks, block);
        vendor_register_unlock(blocks);
    }
    vendor_block_destroy(block);
}
