/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The texts of the allocator's failures. Out of memory: how much was asked for, where the memory
 * is, and the one setting that would have helped and isn't on. A pointer that is no live block's:
 * what it is instead.
 */
#include "allocator.h"

#include <stdio.h>

struct facts {
    uint64_t asked_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t free_bytes; /* reserved, and in no live block */
    uint64_t largest_bytes;
    uint64_t limit_bytes;   /* UINT64_MAX: none */
    uint64_t private_bytes; /* free in private pools that are in use */
    uint64_t device_bytes;  /* available outside of the allocator; UINT64_MAX: not known */
    bool is_growable;
    bool may_grow;
};

static void read_arena(const struct ds_accel__arena *arena, struct facts *facts)
{
    for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
         segment = segment->next) {
        for (const struct ds_accel__block *block = segment->first; block != NULL;
             block = block->next) {
            if (block->state == DS_ACCEL__BLOCK_LIVE || block->state == DS_ACCEL__BLOCK_TAKEN) {
                continue;
            }
            facts->free_bytes += block->size_bytes;
            if (block->size_bytes > facts->largest_bytes) {
                facts->largest_bytes = block->size_bytes;
            }
            if (arena->owner != NULL && !arena->owner->is_gone) {
                facts->private_bytes += block->size_bytes;
            }
        }
    }
}

static void read_facts(struct ds_accel__allocator *allocator, struct facts *facts)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    facts->device_bytes = UINT64_MAX;
    if (allocator->table->mem_info(allocator->device, &info, &error) == DS_ACCEL_OK &&
        (info.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0) {
        facts->device_bytes = info.available_bytes;
    }
    pthread_mutex_lock(&allocator->lock);
    allocator->failure_count++;
    facts->limit_bytes = allocator->limit_bytes;
    facts->reserved_bytes = (uint64_t)allocator->segment_bytes[DS_ACCEL__ALL].current;
    ds_accel__arenas_lock(allocator);
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        facts->allocated_bytes += (uint64_t)ds_accel__figures_current(
            &arena->figures, DS_ACCEL__ALL, DS_ACCEL__LANE_ALLOCATED_BYTES);
        read_arena(arena, facts);
    }
    ds_accel__arenas_unlock(allocator);
    pthread_mutex_unlock(&allocator->lock);
    facts->is_growable = allocator->options.growable_segments;
    facts->may_grow =
        !ds_accel__slot_is_absent(allocator->table, offsetof(struct ds_accel_plugin, vmem_reserve));
}

/* "1.50 GiB"; exact below 1 KiB. */
static const char *human(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < DS_ACCEL__ARRAY_SIZE(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text;
}

/* What would have made it succeed; "" if nothing of ours would. */
static const char *find_help(const struct facts *facts)
{
    if (facts->limit_bytes != UINT64_MAX &&
        facts->reserved_bytes + facts->asked_bytes > facts->limit_bytes &&
        facts->device_bytes >= facts->asked_bytes) {
        return "; the limit is in the way: ds_accel_memory_set_limit() or limit_bytes raises it";
    }
    if (facts->free_bytes - facts->private_bytes >= facts->asked_bytes && !facts->is_growable &&
        facts->may_grow) {
        return "; enough is free but in pieces: growable_segments would have kept it together";
    }
    if (facts->free_bytes - facts->private_bytes >= facts->asked_bytes) {
        return "; enough is free but in pieces: max_split_bytes would have kept large blocks whole";
    }
    if (facts->private_bytes >= facts->asked_bytes) {
        return "; private pools hold enough: destroy those that no graph needs";
    }
    return "";
}

int32_t ds_accel__allocator_fail(struct ds_accel__arena *arena, uint64_t size_bytes)
{
    struct ds_accel__allocator *allocator = arena->allocator;
    struct facts facts = {.asked_bytes = size_bytes};
    char texts[6][32];
    double fragmentation;

    read_facts(allocator, &facts);
    ds_accel__history_add(allocator, DS_ACCEL__ACTION_OOM, 0, size_bytes, arena->stream_id);
    fragmentation =
        facts.free_bytes == 0 ? 0 : 1 - (double)facts.largest_bytes / (double)facts.free_bytes;
    return ds_accel__error(
        DS_ACCEL_ERR_NO_MEMORY,
        "out of memory on device %u: asked %s (%llu bytes), allocated %s, reserved %s, largest "
        "free block %s, fragmentation %.0f%%, limit %s, available on the device %s%s",
        allocator->device_index, human(size_bytes, texts[0]), (unsigned long long)size_bytes,
        human(facts.allocated_bytes, texts[1]), human(facts.reserved_bytes, texts[2]),
        human(facts.largest_bytes, texts[3]), 100 * fragmentation,
        facts.limit_bytes == UINT64_MAX ? "none" : human(facts.limit_bytes, texts[4]),
        facts.device_bytes == UINT64_MAX ? "not known" : human(facts.device_bytes, texts[5]),
        find_help(&facts));
}

/* ---- pointers ------------------------------------------------------------------------------- */

const struct ds_accel__block *ds_accel__block_around(const struct ds_accel__allocator *allocator,
                                                     uint64_t address)
{
    for (const struct ds_accel__arena *arena = allocator->arenas; arena != NULL;
         arena = arena->next) {
        for (const struct ds_accel__segment *segment = arena->segments; segment != NULL;
             segment = segment->next) {
            if (address - segment->address >= segment->size_bytes) {
                continue;
            }
            for (const struct ds_accel__block *block = segment->first; block != NULL;
                 block = block->next) {
                if (address - block->address < block->size_bytes) {
                    return block;
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
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "%s: %p was not allocated on device %u, or its memory has gone back "
                               "to the driver since",
                               call, pointer, allocator->device_index);
    }
    if (copy.state == DS_ACCEL__BLOCK_LIVE) {
        return ds_accel__error(
            DS_ACCEL_ERR_INVALID,
            "%s: %p lies %llu bytes inside an allocation of %llu bytes on device "
            "%u: only its start, %p, can be given",
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
