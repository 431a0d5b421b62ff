/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The register of addresses: device memory, pinned and registered host memory, mapped ranges,
 * memory imported from other processes.
 *
 * The register lets the mock reject wrong addresses: a pointer that is freed twice, or that comes
 * from another allocator, causes ERR_INVALID instead of a crash. Blocks are sorted by address and
 * never overlap, so the block of an interior pointer is found by binary search.
 */
#include "mock.h"

#include <stdatomic.h>

/* The ABI requires ids that are unique in the process, so the instances share this counter. */
static atomic_uint_fast64_t next_block_id = 1;

/* The number of blocks whose base is at or below the address. */
static size_t blocks_up_to(const ds_accel_plugin_instance_t *instance, const void *address)
{
    size_t low = 0;
    size_t high = instance->block_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)instance->blocks[middle].base <= (uintptr_t)address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct mock_block *mock_block_find(const ds_accel_plugin_instance_t *instance, const void *address)
{
    size_t position = blocks_up_to(instance, address);
    struct mock_block *block;

    if (position == 0) {
        return NULL;
    }
    block = &instance->blocks[position - 1];
    return (uintptr_t)address - (uintptr_t)block->base < block->size_bytes ? block : NULL;
}

int mock_block_overlaps(const ds_accel_plugin_instance_t *instance, const void *address,
                        uint64_t size_bytes)
{
    size_t position = blocks_up_to(instance, address);

    if (mock_block_find(instance, address) != NULL) {
        return 1;
    }
    return position < instance->block_count &&
           (uintptr_t)instance->blocks[position].base - (uintptr_t)address < size_bytes;
}

static int reserve_one(ds_accel_plugin_instance_t *instance)
{
    size_t capacity = instance->block_capacity > 0 ? 2 * instance->block_capacity : 64;
    struct mock_block *blocks;

    if (instance->block_count < instance->block_capacity) {
        return 0;
    }
    blocks = realloc(instance->blocks, capacity * sizeof(*blocks));
    if (blocks == NULL) {
        return -1;
    }
    instance->blocks = blocks;
    instance->block_capacity = capacity;
    return 0;
}

int mock_block_insert(ds_accel_plugin_instance_t *instance, const struct mock_block *block)
{
    size_t position;
    struct mock_block *place;

    if (reserve_one(instance) != 0) {
        return -1;
    }
    position = blocks_up_to(instance, block->base);
    place = &instance->blocks[position];
    memmove(place + 1, place, (instance->block_count - position) * sizeof(*place));
    *place = *block;
    place->id = atomic_fetch_add(&next_block_id, 1);
    instance->block_count++;
    return 0;
}

void mock_block_remove(ds_accel_plugin_instance_t *instance, struct mock_block *block)
{
    size_t after = instance->block_count - (size_t)(block - instance->blocks) - 1;

    memmove(block, block + 1, after * sizeof(*block));
    instance->block_count--;
}
