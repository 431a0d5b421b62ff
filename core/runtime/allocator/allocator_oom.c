/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The allocator's failures: the facts about an out-of-memory error, which oom.c turns into a
 * message, and the errors for pointers that are not a live block's start.
 */
#include "base/fork.h"
#include "base/text.h"
#include "runtime/allocator/allocator.h"
#include "runtime/oom.h"

#include <stdio.h>

/* Add the sizes of an arena to the facts. Free memory counts as elsewhere_bytes if asker, the
 * requesting arena, may not use it; otherwise only the largest free block is noted. The caller
 * holds the allocator's lock and all arena locks. */
static void read_arena(const struct ds_accel__arena *arena, const struct ds_accel__arena *asker,
                       struct ds_accel__oom_facts *facts)
{
    bool is_elsewhere = !ds_accel__arena_may_use(asker, arena);

    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        for (const struct ds_accel__block *block = segment->first; block != NULL;
             block = block->next) {
            if (block->state == DS_ACCEL__BLOCK_UNMAPPED) {
                continue;
            }
            if (block->state == DS_ACCEL__BLOCK_PENDING) {
                facts->pending_bytes += block->size_bytes;
            } else if (block->state == DS_ACCEL__BLOCK_LIVE ||
                       block->state == DS_ACCEL__BLOCK_TAKEN) {
                facts->allocated_bytes += block->size_bytes;
            } else if (is_elsewhere) {
                facts->elsewhere_bytes += block->size_bytes;
            } else if (block->size_bytes > facts->largest_free_bytes) {
                facts->largest_free_bytes = block->size_bytes;
            }
        }
    }
}

static void read_facts(struct ds_accel__arena *asker, struct ds_accel__oom_facts *facts)
{
    struct ds_accel__allocator *allocator = asker->allocator;
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (allocator->table->mem_info(allocator->device, &info, &error) == DS_ACCEL_OK &&
        (info.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0) {
        facts->device_total_bytes = info.total_bytes;
        facts->device_free_bytes = info.available_bytes;
    }
    pthread_mutex_lock(&allocator->lock);
    allocator->failure_count++;
    facts->limit_bytes = allocator->limit_bytes == UINT64_MAX ? 0 : allocator->limit_bytes;
    facts->reserved_bytes = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
    ds_accel__arenas_lock(allocator);
    ds_accel__arenas_flush(allocator);
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        read_arena(arena, asker, facts);
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    facts->max_split_bytes = allocator->options.max_split_bytes;
    if (allocator->largest_bytes != UINT64_MAX && allocator->granule_bytes == 0) {
        facts->largest_bytes = allocator->largest_bytes;
    }
    facts->is_growable = allocator->options.growable_segments;
    facts->can_grow =
        !ds_accel__slot_is_absent(allocator->table, offsetof(struct ds_accel_plugin, vmem_reserve));
}

int32_t ds_accel__allocator_fail(struct ds_accel__arena *arena, uint64_t size_bytes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct ds_accel__oom_facts facts = {.asked_bytes = size_bytes};
    char device[32];
    char text[512];

    snprintf(device, sizeof(device), "device %u", allocator->device_index);
    facts.device = device;
    read_facts(arena, &facts);
    ds_accel__history_add(allocator, DS_ACCEL__ACTION_OOM, 0, size_bytes, arena->stream_id);
    ds_accel__oom_describe(&facts, text, sizeof(text));
    return ds_accel__error(DS_ACCEL_ERR_NO_MEMORY, "%s", text);
}

/* ---- pointers ------------------------------------------------------------------------------- */

const struct ds_accel__block *ds_accel__block_around(const struct ds_accel__allocator *allocator,
                                                     uint64_t address)
{
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
             segment = segment->next) {
            if (address - segment->address >=
                (segment->reserved_bytes != 0 ? segment->reserved_bytes : segment->size_bytes)) {
                continue;
            }
            for (const struct ds_accel__block *block = segment->first; block != NULL;
                 block = block->next) {
                if (address - block->address < block->size_bytes) {
                    return block->state != DS_ACCEL__BLOCK_UNMAPPED ? block : NULL;
                }
            }
        }
    }
    return NULL;
}

int32_t ds_accel__allocator_refuse(struct ds_accel__allocator *allocator, const char *call,
                                   const void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    const struct ds_accel__block *block;
    struct ds_accel__block copy = {.state = DS_ACCEL__BLOCK_UNUSED};

    pthread_mutex_lock(&allocator->lock);
    ds_accel__arenas_lock(allocator);
    block = ds_accel__block_around(allocator, address);
    if (block != NULL) {
        copy = *block;
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    if (block == NULL) {
        return ds_accel__error(
            DS_ACCEL_ERR_NOT_FOUND,
            "%s: %p was not allocated on device %u, or its memory was returned to the driver since",
            call, pointer, allocator->device_index);
    }
    if (copy.state == DS_ACCEL__BLOCK_LIVE) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID,
            "%s: %p lies %llu bytes inside an allocation of %llu bytes on device "
            "%u: pass its start, %p",
            call, pointer, (unsigned long long)(address - copy.address),
            (unsigned long long)copy.requested_bytes, allocator->device_index,
            (void *)(uintptr_t)copy.address);
    }
    if (copy.address == address && copy.freed_frames != 0) {
        char allocated[160];
        char freed[160];

        ds_accel__history_describe(allocator, copy.frames, allocated, sizeof(allocated));
        ds_accel__history_describe(allocator, copy.freed_frames, freed, sizeof(freed));
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "%s: %p on device %u was freed before; allocated %s; freed %s", call,
                               pointer, allocator->device_index, allocated, freed);
    }
    return ds_accel__error(DS_ACCEL_ERR_INVALID,
                           "%s: %p was freed before, or never allocated: it lies in free memory of "
                           "device %u",
                           call, pointer, allocator->device_index);
}
