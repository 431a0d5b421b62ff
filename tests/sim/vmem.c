/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Virtual memory: a reservation is two ranges of addresses of one length, the caller's without
 * access and the engine's. A mapping puts pages of a device's file into the engine's range; bytes
 * that are contiguous for the caller are therefore contiguous for the engine.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct sim_physical {
    struct entry *entry; /* the hidden entry of the pages */
    uint32_t holders;    /* references: the caller's, and one of each mapping */
};

struct reservation *memory_reservation(const void *address)
{
    struct reservation *at = memory.reservations;

    while (at != NULL && ((const char *)address < at->address ||
                          (const char *)address >= at->address + at->size_bytes)) {
        at = at->next;
    }
    return at;
}

/* Reserves addresses without access, at a multiple of align_bytes. */
static char *take_addresses(uint64_t size_bytes, uint64_t align_bytes, void *hint)
{
    uint64_t room = size_bytes + (align_bytes > SIM_PAGE ? align_bytes : 0);
    char *all = mmap(hint, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t start, lead;

    if (all == MAP_FAILED) {
        return NULL;
    }
    start = (uint64_t)(uintptr_t)all;
    lead = align_bytes > SIM_PAGE ? (align_bytes - start % align_bytes) % align_bytes : 0;
    if (lead > 0) {
        munmap(all, lead);
    }
    if (room - lead > size_bytes) {
        munmap(all + lead + size_bytes, room - lead - size_bytes);
    }
    return all + lead;
}

void *sim_reserve(uint64_t size_bytes, uint64_t align_bytes, void *hint)
{
    struct reservation *reservation;
    char *address, *bytes;

    if (size_bytes == 0 || size_bytes % SIM_PAGE != 0 || size_bytes > UINT64_C(1) << 46) {
        return NULL;
    }
    address = take_addresses(size_bytes, align_bytes, hint);
    bytes = address != NULL ? take_addresses(size_bytes, 0, NULL) : NULL;
    if (bytes == NULL) {
        if (address != NULL) {
            munmap(address, size_bytes);
        }
        return NULL;
    }
    reservation = sim_zalloc(sizeof(*reservation));
    *reservation =
        (struct reservation){.address = address, .bytes = bytes, .size_bytes = size_bytes};
    pthread_mutex_lock(&memory.lock);
    reservation->next = memory.reservations;
    memory.reservations = reservation;
    memory.reservation_count++;
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return address;
}

bool sim_unreserve(void *address, uint64_t size_bytes)
{
    struct reservation **link = &memory.reservations;
    struct reservation *reservation;

    pthread_mutex_lock(&memory.lock);
    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->next;
    }
    reservation = *link;
    if (reservation == NULL || reservation->size_bytes != size_bytes ||
        memory_overlapping(address, size_bytes) != NULL) {
        pthread_mutex_unlock(&memory.lock);
        return false;
    }
    *link = reservation->next;
    memory.reservation_count--;
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    munmap(reservation->address, size_bytes);
    munmap(reservation->bytes, size_bytes);
    free(reservation);
    return true;
}

struct sim_physical *sim_physical_create(uint32_t physical, uint64_t size_bytes)
{
    struct sim_physical *result = NULL;
    struct entry *entry;

    pthread_mutex_lock(&memory.lock);
    entry = size_bytes % SIM_PAGE == 0 ? memory_take(memory_span(physical), size_bytes, SIM_PAGE)
                                       : NULL;
    if (entry != NULL) {
        entry->is_hidden = true;
        result = sim_zalloc(sizeof(*result));
        result->entry = entry;
        result->holders = 1;
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return result;
}

static void put(struct sim_physical *physical)
{
    if (--physical->holders == 0) {
        memory_give(physical->entry);
        free(physical);
    }
}

void sim_physical_put(struct sim_physical *physical)
{
    pthread_mutex_lock(&memory.lock);
    put(physical);
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
}

static bool map_pages(struct reservation *reservation, char *address, uint64_t size_bytes,
                      const struct entry *source, uint64_t offset)
{
    char *bytes = reservation->bytes + (address - reservation->address);
    off_t at = (off_t)((uint64_t)(source->bytes - source->span->bytes) + offset);

    return mmap(bytes, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, source->span->fd,
                at) != MAP_FAILED;
}

bool sim_map(void *address, uint64_t size_bytes, struct sim_physical *physical, uint64_t offset)
{
    struct reservation *reservation;
    struct entry *entry;
    bool fits;

    pthread_mutex_lock(&memory.lock);
    reservation = memory_reservation(address);
    fits = reservation != NULL && size_bytes > 0 && size_bytes % SIM_PAGE == 0 &&
           offset % SIM_PAGE == 0 && (uintptr_t)address % SIM_PAGE == 0 &&
           size_bytes <=
               reservation->size_bytes - (uint64_t)((char *)address - reservation->address) &&
           offset <= physical->entry->block.size_bytes &&
           size_bytes <= physical->entry->block.size_bytes - offset &&
           memory_overlapping(address, size_bytes) == NULL &&
           map_pages(reservation, address, size_bytes, physical->entry, offset);
    if (fits) {
        entry = sim_zalloc(sizeof(*entry));
        entry->block = (struct sim_block){.address = address,
                                          .size_bytes = size_bytes,
                                          .kind = SIM_DEVICE,
                                          .physical = physical->entry->block.physical};
        entry->bytes = reservation->bytes + ((char *)address - reservation->address);
        entry->room_bytes = size_bytes;
        entry->slot = UINT32_MAX;
        entry->source = physical;
        physical->holders++;
        memory_insert(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return fits;
}

/* Returns true if mappings cover the range exactly. */
static bool is_mapped(const char *address, uint64_t size_bytes)
{
    const char *end = address + size_bytes;
    const char *at = address;

    while (at < end) {
        const struct entry *entry = memory_find(at);

        if (entry == NULL || entry->source == NULL || entry->block.address != at) {
            return false;
        }
        at += entry->block.size_bytes;
    }
    return at == end && size_bytes > 0;
}

static void unmap(struct entry *entry)
{
    if (entry->hold_count > 0 && !sim_is_lost(entry->block.physical)) {
        sim_misuse("unmapping %p: work that is running uses this memory", entry->block.address);
    }
    if (mmap(entry->bytes, entry->block.size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        sim_misuse("unmapping %p: %s", entry->block.address, strerror(errno));
    }
    put(entry->source);
    memory_remove(entry);
    free(entry);
}

bool sim_unmap(void *address, uint64_t size_bytes)
{
    char *at = address;
    bool is_whole;

    pthread_mutex_lock(&memory.lock);
    is_whole = is_mapped(address, size_bytes);
    while (is_whole && at < (char *)address + size_bytes) {
        struct entry *entry = memory_find(at);

        at += entry->block.size_bytes;
        unmap(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return is_whole;
}

bool sim_set_access(void *address, uint64_t size_bytes, uint32_t access)
{
    char *at = address;
    bool is_whole;

    pthread_mutex_lock(&memory.lock);
    is_whole = is_mapped(address, size_bytes);
    while (is_whole && at < (char *)address + size_bytes) {
        struct entry *entry = memory_find(at);

        entry->access = access;
        at += entry->block.size_bytes;
    }
    pthread_mutex_unlock(&memory.lock);
    return is_whole;
}
