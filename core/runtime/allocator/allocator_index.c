/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The index maps an address to the block that begins there: a hash table with open addressing. A
 * free learns from the block which arena's lock it must take, so it searches for the block without
 * a lock. This is correct because:
 *
 * - Unless a table is rewritten in place, the entry of a live block does not move within its table.
 * A thread that holds the pointer received it after the entry was written: its search finds the
 * entry. - Tables and blocks are never freed before the allocator, so a late search reads old
 * contents, not foreign memory. The caller checks the result under the arena's lock. - A search
 * that finds nothing is repeated with the lock. This happens only for an invalid address, while
 * another thread rewrites a table in place, or if the block's entry is more than 15 places after
 * the place that its hash selects.
 *
 * Rewriting the table in place removes tombstones of removed entries; a table that is too full is
 * replaced by a table of twice the size. All tables together are therefore smaller than twice the
 * last table.
 */
#include "base/text.h"
#include "runtime/allocator/allocator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 1024u
#define SLAB_BLOCKS 128u
#define GRAVE UINT64_C(1) /* marks a removed entry; no block has this address */

struct ds_accel__slab {
    struct ds_accel__slab *next;
    struct ds_accel__block blocks[SLAB_BLOCKS];
};

static struct ds_accel__index_table *make_table(uint64_t size)
{
    struct ds_accel__index_table *table =
        calloc(1, sizeof(*table) + size * sizeof(table->entries[0]));

    if (table != NULL) {
        table->mask = size - 1;
    }
    return table;
}

int32_t ds_accel__index_init(struct ds_accel__index *index)
{
    index->table = make_table(FIRST_SIZE);
    if (index->table == NULL) {
        return ds_accel__no_memory();
    }
    pthread_mutex_init(&index->lock, NULL);
    return DS_ACCEL_OK;
}

void ds_accel__index_destroy(struct ds_accel__index *index)
{
    while (index->table != NULL) {
        struct ds_accel__index_table *older = index->table->older;

        free(index->table);
        index->table = older;
    }
    while (index->slabs != NULL) {
        struct ds_accel__slab *next = index->slabs->next;

        free(index->slabs);
        index->slabs = next;
    }
    pthread_mutex_destroy(&index->lock);
}

/* Return the entry of an address, or NULL. The caller holds index->lock. */
static struct ds_accel__index_entry *find_entry(struct ds_accel__index_table *table,
                                                uint64_t address)
{
    for (uint64_t i = ds_accel__index_hash(address) & table->mask; table->entries[i].address != 0;
         i = (i + 1) & table->mask) {
        if (table->entries[i].address == address) {
            return &table->entries[i];
        }
    }
    return NULL;
}

struct ds_accel__block *ds_accel__index_find_sure(struct ds_accel__index *index, uint64_t address)
{
    const struct ds_accel__index_entry *entry;
    struct ds_accel__block *block;

    if (address <= GRAVE) {
        return NULL;
    }
    pthread_mutex_lock(&index->lock);
    entry = find_entry(index->table, address);
    block = entry != NULL ? entry->block : NULL;
    pthread_mutex_unlock(&index->lock);
    return block;
}

/* Insert a block into a table that is not full. True: a previously empty entry is now used. The
 * caller holds index->lock. */
static bool put(struct ds_accel__index_table *table, struct ds_accel__block *block)
{
    uint64_t i = ds_accel__index_hash(block->address) & table->mask;
    bool was_empty;

    while (table->entries[i].address > GRAVE) {
        i = (i + 1) & table->mask;
    }
    was_empty = table->entries[i].address == 0;
    __atomic_store_n(&table->entries[i].block, block, __ATOMIC_RELEASE);
    __atomic_store_n(&table->entries[i].address, block->address, __ATOMIC_RELEASE);
    return was_empty;
}

/* Rewrite the table in place with only its live entries, which removes the tombstones. False: out
 * of memory. The caller holds index->lock. */
static bool sweep(struct ds_accel__index *index)
{
    struct ds_accel__index_table *table = index->table;
    uint64_t size = table->mask + 1;
    struct ds_accel__block **blocks =
        malloc((index->block_count + 1) * sizeof(struct ds_accel__block *));
    uint64_t count = 0;

    if (blocks == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < size; i++) {
        if (table->entries[i].address > GRAVE) {
            blocks[count++] = table->entries[i].block;
        }
        __atomic_store_n(&table->entries[i].address, 0, __ATOMIC_RELEASE);
    }
    for (uint64_t i = 0; i < count; i++) {
        put(table, blocks[i]);
    }
    assert(count <= index->block_count); /* the array blocks has space for block_count + 1 */
    index->used_count = count;
    free(blocks);
    return true;
}

static bool grow(struct ds_accel__index *index)
{
    struct ds_accel__index_table *table = index->table;
    uint64_t size = table->mask + 1;
    struct ds_accel__index_table *larger = make_table(size * 2);

    if (larger == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < size; i++) {
        if (table->entries[i].address > GRAVE) {
            put(larger, table->entries[i].block);
        }
    }
    assert(index->block_count < larger->mask);
    larger->older = table;
    index->used_count = index->block_count;
    __atomic_store_n(&index->table, larger, __ATOMIC_RELEASE);
    return true;
}

/* Make sure that at least an eighth of the table's entries are empty, because a search ends only at
 * an empty entry. False: out of memory, and fewer entries are empty. The caller holds
 * index->lock. */
static bool make_room(struct ds_accel__index *index)
{
    uint64_t size = index->table->mask + 1;

    if (index->used_count < size / 2) {
        return true;
    }
    if (index->block_count < size / 4) {
        return sweep(index) || index->used_count < size - size / 8;
    }
    return grow(index) || index->used_count < size - size / 8;
}

/* Take a spare block struct; NULL: out of memory. The caller holds index->lock. */
static struct ds_accel__block *take_spare(struct ds_accel__index *index)
{
    struct ds_accel__block *block = index->spare;

    if (block == NULL) {
        struct ds_accel__slab *slab = aligned_alloc(_Alignof(struct ds_accel__slab), sizeof(*slab));

        if (slab == NULL) {
            return NULL;
        }
        memset(slab, 0, sizeof(*slab));
        slab->next = index->slabs;
        index->slabs = slab;
        for (unsigned i = 0; i < SLAB_BLOCKS; i++) {
            slab->blocks[i].link_next = index->spare;
            index->spare = &slab->blocks[i];
        }
        block = index->spare;
    }
    index->spare = block->link_next;
    return block;
}

struct ds_accel__block *ds_accel__index_add(struct ds_accel__index *index, uint64_t address)
{
    struct ds_accel__block *block = NULL;

    pthread_mutex_lock(&index->lock);
    if (make_room(index)) {
        block = take_spare(index);
    }
    if (block != NULL) {
        struct ds_accel__arena *home = NULL;

        /* The struct may have belonged to a removed block, and a late search without the lock may
         * still read it, so the members that a search reads are written atomically. */
        __atomic_store_n(&block->home, home, __ATOMIC_RELAXED);
        __atomic_store_n(&block->address, address, __ATOMIC_RELAXED);
        __atomic_store_n(&block->state, DS_ACCEL__BLOCK_TAKEN, __ATOMIC_RELAXED);
        block->user = NULL;
        block->requested_bytes = 0;
        block->fit_bytes = 0;
        block->is_deferred = 0;
        block->is_oversize = 0;
        block->is_filled = 0;
        block->link_next = NULL;
        block->link_previous = NULL;
        block->next = NULL;
        block->previous = NULL;
        block->uses = NULL;
        block->waits = NULL;
        block->frames = 0;
        block->freed_frames = 0;
        index->used_count += put(index->table, block);
        index->block_count++;
        /* at least one entry is empty, because a search ends only at an empty entry */
        assert(index->used_count <= index->table->mask);
    }
    pthread_mutex_unlock(&index->lock);
    return block;
}

void ds_accel__index_remove(struct ds_accel__index *index, struct ds_accel__block *block)
{
    struct ds_accel__index_entry *entry;

    pthread_mutex_lock(&index->lock);
    entry = find_entry(index->table, block->address);
    assert(entry != NULL || block->address <= GRAVE);
    assert(block->state != DS_ACCEL__BLOCK_UNUSED && index->block_count > 0);
    if (entry != NULL) {
        __atomic_store_n(&entry->address, GRAVE, __ATOMIC_RELEASE);
    }
    index->block_count--;
    __atomic_store_n(&block->state, DS_ACCEL__BLOCK_UNUSED, __ATOMIC_RELAXED);
    block->link_next = index->spare;
    index->spare = block;
    pthread_mutex_unlock(&index->lock);
}
