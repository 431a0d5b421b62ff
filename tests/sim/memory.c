/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Device memory that the host cannot access.
 *
 * Each device has a span: a file of pages (memfd, allocated as they are written), twice as long as
 * its memory, and a range of addresses of that length. The addresses are mapped without access;
 * callers get these addresses. The file is mapped a second time, readable and writable, at the
 * engine's own addresses ("bytes"). Blocks are allocated round-robin through the span, so that an
 * address is reused late, and a stale address is detected.
 *
 *      device address  span->address + offset   PROT_NONE
 *      bytes           span->bytes   + offset   the pages
 *
 * All blocks of all kinds, mappings of virtual memory and imports are entries of one sorted array.
 * The pages in the file are followed by a table of exported ids, in which another process sees that
 * an imported block was freed.
 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct memory_state memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the array of entries ------------------------------------------------------------------- */

/* Returns the index of the first entry that begins after the address. */
static size_t upper_bound(const void *address)
{
    size_t low = 0, high = memory.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((const char *)memory.entries[middle]->block.address <= (const char *)address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct entry *memory_find(const void *address)
{
    size_t at = upper_bound(address);
    struct entry *entry = at > 0 ? memory.entries[at - 1] : NULL;

    return entry != NULL && (const char *)address <
                                (const char *)entry->block.address + entry->block.size_bytes
               ? entry
               : NULL;
}

struct entry *memory_overlapping(const void *address, uint64_t size_bytes)
{
    struct entry *entry = memory_find(address);
    size_t at = upper_bound(address);

    if (entry != NULL) {
        return entry;
    }
    return at < memory.count && (const char *)memory.entries[at]->block.address <
                                    (const char *)address + size_bytes
               ? memory.entries[at]
               : NULL;
}

void memory_insert(struct entry *entry)
{
    size_t at = upper_bound(entry->block.address);

    memory.entries = sim_grow(memory.entries, memory.count, sizeof(*memory.entries));
    memmove(&memory.entries[at + 1], &memory.entries[at],
            (memory.count - at) * sizeof(*memory.entries));
    memory.entries[at] = entry;
    memory.count++;
    entry->block.id = ++memory.last_id;
}

void memory_remove(struct entry *entry)
{
    size_t at = upper_bound(entry->block.address) - 1;

    memmove(&memory.entries[at], &memory.entries[at + 1],
            (memory.count - at - 1) * sizeof(*memory.entries));
    memory.count--;
}

/* ---- spans ---------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static bool span_open(struct span *span, uint32_t physical)
{
    char name[64];
    void *address, *bytes;

    if (span->size_bytes != 0) {
        return true;
    }
    snprintf(name, sizeof(name), "sim-device-%u", physical);
    span->physical = physical;
    span->total_bytes = sim_device_at(physical)->memory_bytes;
    span->file_bytes = round_up(span->total_bytes * 2 + (64 << 20), SIM_PAGE);
    span->fd = memfd_create(name, MFD_CLOEXEC);
    if (span->fd < 0 ||
        ftruncate(span->fd, (off_t)(span->file_bytes + EXPORT_SLOTS * sizeof(uint64_t))) != 0) {
        sim_misuse("memfd: %s", strerror(errno));
    }
    address =
        mmap(NULL, span->file_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bytes = mmap(NULL, span->file_bytes + EXPORT_SLOTS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_NORESERVE, span->fd, 0);
    if (address == MAP_FAILED || bytes == MAP_FAILED) {
        sim_misuse("no addresses for %llu bytes of device memory: %s",
                   (unsigned long long)span->file_bytes, strerror(errno));
    }
    span->address = address;
    span->bytes = bytes;
    span->exported = (_Atomic uint64_t *)(void *)(span->bytes + span->file_bytes);
    span->size_bytes = span->file_bytes;
    return true;
}

struct span *memory_span(uint32_t physical)
{
    struct span *span = &memory.spans[sim_device_at(physical)->physical];

    span_open(span, physical);
    return span;
}

/* Finds the lowest free offset between from and to at which the block fits. */
static bool find_gap(const struct span *span, uint64_t size_bytes, uint64_t align_bytes,
                     uint64_t from, uint64_t to, uint64_t *offset_out)
{
    uint64_t base = (uint64_t)(uintptr_t)span->address;
    uint64_t at = round_up(base + from, align_bytes);

    for (;;) {
        struct entry *entry = memory_overlapping((void *)(uintptr_t)at, size_bytes);

        if (at + size_bytes > base + to) {
            return false;
        }
        if (entry == NULL) {
            *offset_out = at - base;
            return true;
        }
        at = round_up((uint64_t)(uintptr_t)entry->block.address + entry->room_bytes, align_bytes);
    }
}

struct entry *memory_take(struct span *span, uint64_t size_bytes, uint64_t align_bytes)
{
    uint64_t room = round_up(size_bytes, 256);
    uint64_t offset;
    struct entry *entry;

    if (size_bytes == 0 || size_bytes > span->total_bytes ||
        room > span->total_bytes - span->used_bytes ||
        (!find_gap(span, room, align_bytes, span->cursor, span->size_bytes, &offset) &&
         !find_gap(span, room, align_bytes, 0, span->size_bytes, &offset))) {
        return NULL;
    }
    entry = sim_zalloc(sizeof(*entry));
    entry->block = (struct sim_block){.address = span->address + offset,
                                      .size_bytes = size_bytes,
                                      .kind = SIM_DEVICE,
                                      .physical = span->physical};
    entry->span = span;
    entry->bytes = span->bytes + offset;
    entry->room_bytes = room;
    entry->slot = UINT32_MAX;
    span->cursor = offset + room;
    span->used_bytes += room;
    memory_insert(entry);
    return entry;
}

/* Returns the block to the span, and its pages to the system. */
void memory_give(struct entry *entry)
{
    struct span *span = entry->span;
    uint64_t offset = (uint64_t)(entry->bytes - span->bytes);
    uint64_t first = round_up(offset, SIM_PAGE);
    uint64_t end = (offset + entry->room_bytes) / SIM_PAGE * SIM_PAGE;

    if (entry->slot != UINT32_MAX) {
        atomic_store(&span->exported[entry->slot], 0);
    }
    span->used_bytes -= entry->room_bytes;
    if (end > first) {
        fallocate(span->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                  (off_t)(end - first));
    }
    memory_remove(entry);
    free(entry);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Allocates ordinary memory on its own pages, so that a use after its release faults. */
static struct entry *take_host(uint32_t physical, uint64_t size_bytes, uint64_t align_bytes,
                               enum sim_memory_kind kind)
{
    int64_t limit = sim_vendor_number("pinned_limit_bytes", -1);
    uint64_t map_bytes = round_up(size_bytes, SIM_PAGE) +
                         (align_bytes > SIM_PAGE ? align_bytes : 0);
    struct entry *entry;
    char *pages;

    if (size_bytes == 0 ||
        (kind == SIM_PINNED && limit >= 0 && memory.pinned_bytes + size_bytes > (uint64_t)limit)) {
        return NULL;
    }
    if (size_bytes > UINT64_MAX / 4) {
        return NULL;
    }
    pages = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    entry = sim_zalloc(sizeof(*entry));
    entry->bytes = (char *)(uintptr_t)round_up((uint64_t)(uintptr_t)pages, align_bytes);
    entry->block = (struct sim_block){
        .address = entry->bytes, .size_bytes = size_bytes, .kind = kind, .physical = physical};
    entry->room_bytes = size_bytes;
    entry->map_address = pages;
    entry->map_bytes = map_bytes;
    entry->slot = UINT32_MAX;
    memory.pinned_bytes += kind == SIM_PINNED ? size_bytes : 0;
    memory_insert(entry);
    return entry;
}

void *sim_alloc(uint32_t physical, uint64_t size_bytes, uint64_t align_bytes,
                enum sim_memory_kind kind, uint32_t flags)
{
    struct entry *entry;
    void *address = NULL;

    align_bytes = align_bytes != 0 ? align_bytes : 256;
    pthread_mutex_lock(&memory.lock);
    entry = kind == SIM_DEVICE ? memory_take(memory_span(physical), size_bytes, align_bytes)
                               : take_host(physical, size_bytes, align_bytes, kind);
    if (entry != NULL) {
        entry->block.flags = flags;
        address = entry->block.address;
        if (kind == SIM_DEVICE) { /* fills the block, so that callers cannot rely on zeros */
            memset(entry->bytes, 0xCD, size_bytes < SIM_PAGE ? size_bytes : SIM_PAGE);
        }
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return address;
}

/* Waits until no work uses a block that is being freed. A lost device releases the block soon;
 * otherwise the free is misuse. */
static void wait_unheld(struct entry *entry, const char *call)
{
    while (entry->hold_count > 0) {
        if (!sim_is_lost(entry->block.physical)) {
            sim_misuse("%s(%p): work that is running uses this memory", call, entry->block.address);
        }
        pthread_mutex_unlock(&memory.lock);
        usleep(50);
        pthread_mutex_lock(&memory.lock);
    }
}

static const char *kind_text(enum sim_memory_kind kind)
{
    return kind == SIM_DEVICE    ? "device"
           : kind == SIM_PINNED  ? "pinned"
           : kind == SIM_MANAGED ? "managed"
                                 : "registered";
}

void sim_free(void *address, enum sim_memory_kind kind, const char *call)
{
    struct entry *entry;

    pthread_mutex_lock(&memory.lock);
    entry = memory_find(address);
    if (entry == NULL || entry->is_hidden || entry->is_import || entry->source != NULL ||
        entry->block.address != address || entry->block.kind != kind) {
        sim_misuse("%s: %p is not the start of %s memory%s", call, address, kind_text(kind),
                   entry == NULL ? " (or is freed already)" : "");
    }
    wait_unheld(entry, call);
    if (kind == SIM_DEVICE) {
        memory_give(entry);
    } else {
        memory.pinned_bytes -= kind == SIM_PINNED ? entry->block.size_bytes : 0;
        memory_remove(entry);
        munmap(entry->map_address, entry->map_bytes);
        free(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
}

bool sim_find(const void *address, struct sim_block *block_out)
{
    struct entry *entry;

    pthread_mutex_lock(&memory.lock);
    entry = memory_find(address);
    if (entry != NULL && !entry->is_hidden) {
        *block_out = entry->block;
    }
    pthread_mutex_unlock(&memory.lock);
    return entry != NULL && !entry->is_hidden;
}

bool sim_register(uint32_t physical, void *address, uint64_t size_bytes, uint32_t flags)
{
    struct entry *entry;
    bool is_free;

    pthread_mutex_lock(&memory.lock);
    is_free = size_bytes > 0 && memory_overlapping(address, size_bytes) == NULL;
    if (is_free) {
        entry = sim_zalloc(sizeof(*entry));
        entry->block = (struct sim_block){.address = address,
                                          .size_bytes = size_bytes,
                                          .kind = SIM_REGISTERED,
                                          .physical = physical,
                                          .flags = flags};
        entry->bytes = address;
        entry->room_bytes = size_bytes;
        entry->slot = UINT32_MAX;
        memory_insert(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return is_free;
}

bool sim_unregister(void *address)
{
    struct entry *entry;
    bool is_there;

    pthread_mutex_lock(&memory.lock);
    entry = memory_find(address);
    is_there = entry != NULL && entry->block.kind == SIM_REGISTERED &&
               entry->block.address == address;
    if (is_there) {
        wait_unheld(entry, "unregister");
        memory_remove(entry);
        free(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return is_there;
}

void sim_memory_info(uint32_t physical, uint64_t *free_out, uint64_t *total_out)
{
    struct span *span = &memory.spans[sim_device_at(physical)->physical];

    pthread_mutex_lock(&memory.lock);
    *total_out = sim_device_at(physical)->memory_bytes;
    *free_out = *total_out - span->used_bytes;
    pthread_mutex_unlock(&memory.lock);
}

/* ---- ranges --------------------------------------------------------------------------------- */

/*
 * Calls each with every entry of the range; false: a byte is in no entry. Mappings of virtual
 * memory may be adjacent; a range must not cross the ends of other blocks.
 */
static bool each_entry(const void *address, uint64_t size_bytes,
                       bool (*each)(struct entry *entry, uint32_t kinds), uint32_t kinds)
{
    const char *at = address;
    const char *end = at + size_bytes;

    do {
        struct entry *entry = memory_find(at);

        if (entry == NULL || entry->is_hidden || !each(entry, kinds)) {
            return false;
        }
        at = (const char *)entry->block.address + entry->block.size_bytes;
        if (entry->source == NULL) {
            return at >= end;
        }
    } while (at < end);
    return true;
}

static bool is_of_kinds(struct entry *entry, uint32_t kinds)
{
    return (kinds >> entry->block.kind & 1) != 0 && (entry->source == NULL || entry->access != 0);
}

bool sim_range_is(const void *address, uint64_t size_bytes, uint32_t kinds)
{
    bool is_whole;

    pthread_mutex_lock(&memory.lock);
    is_whole = each_entry(address, size_bytes, is_of_kinds, kinds);
    pthread_mutex_unlock(&memory.lock);
    return is_whole;
}

static bool hold(struct entry *entry, uint32_t kinds)
{
    (void)kinds;
    entry->hold_count++;
    return true;
}

static bool unhold(struct entry *entry, uint32_t kinds)
{
    (void)kinds;
    entry->hold_count -= entry->hold_count > 0;
    return true;
}

/*
 * Returns true if the address is in a device's span. If it is in no block, it was freed, or was
 * never allocated.
 */
static bool is_device_address(const void *address)
{
    for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++) {
        const struct span *span = &memory.spans[i];

        if (span->size_bytes != 0 && (const char *)address >= span->address &&
            (const char *)address < span->address + span->size_bytes) {
            return true;
        }
    }
    return memory_reservation(address) != NULL;
}

static char *bytes_of(const void *address)
{
    struct entry *entry = memory_find(address);

    return entry == NULL
               ? (char *)(uintptr_t)address
               : entry->bytes + ((const char *)address - (const char *)entry->block.address);
}

void *sim_bytes(const void *address)
{
    void *bytes;

    pthread_mutex_lock(&memory.lock);
    bytes = bytes_of(address);
    pthread_mutex_unlock(&memory.lock);
    return bytes;
}

void *sim_memory_hold(const void *address, uint64_t size_bytes, const char *what)
{
    struct entry *entry;
    void *bytes;

    pthread_mutex_lock(&memory.lock);
    entry = memory_overlapping(address, size_bytes);
    if (entry == NULL ? is_device_address(address)
                      : !each_entry(address, size_bytes, is_of_kinds, UINT32_MAX)) {
        sim_misuse("a %s of %llu bytes at %p is not within live memory%s", what,
                   (unsigned long long)size_bytes, address,
                   entry != NULL && entry->source != NULL ? " that may be accessed" : "");
    }
    if (entry != NULL) {
        each_entry(address, size_bytes, hold, 0);
    }
    bytes = bytes_of(address);
    pthread_mutex_unlock(&memory.lock);
    return bytes;
}

void sim_memory_release(const void *address, uint64_t size_bytes)
{
    pthread_mutex_lock(&memory.lock);
    each_entry(address, size_bytes, unhold, 0);
    pthread_mutex_unlock(&memory.lock);
}

/* ---- places in the file --------------------------------------------------------------------- */

static uint32_t export_slot(struct entry *entry)
{
    for (uint32_t slot = 0; entry->slot == UINT32_MAX && slot < EXPORT_SLOTS; slot++) {
        if (atomic_load(&entry->span->exported[slot]) == 0) {
            atomic_store(&entry->span->exported[slot], entry->block.id);
            entry->slot = slot;
        }
    }
    return entry->slot;
}

bool sim_memory_place(const void *address, bool mark_exported, struct sim_place *place_out)
{
    struct entry *entry;

    pthread_mutex_lock(&memory.lock);
    entry = memory_find(address);
    if (entry == NULL || entry->span == NULL || entry->is_hidden) {
        pthread_mutex_unlock(&memory.lock);
        return false;
    }
    *place_out = (struct sim_place){
        .fd = entry->span->fd,
        .offset_bytes = (uint64_t)(bytes_of(address) - entry->span->bytes),
        .block = entry->block,
        .tail_bytes = entry->span->file_bytes,
        .slot = mark_exported ? export_slot(entry) : entry->slot,
    };
    pthread_mutex_unlock(&memory.lock);
    return true;
}

/* ---- the report ----------------------------------------------------------------------------- */

int sim_memory_report(char *text, size_t text_size)
{
    static const char *const names[] = {"device-memory",     "pinned-memory",     "managed-memory",
                                        "registered-memory", "imported-memory",   "physical-memory",
                                        "mapped-memory",     "reserved-addresses"};
    uint32_t counts[8] = {0};
    int length = 0;

    pthread_mutex_lock(&memory.lock);
    for (size_t i = 0; i < memory.count; i++) {
        const struct entry *entry = memory.entries[i];

        counts[entry->is_hidden        ? 5
               : entry->source != NULL ? 6
               : entry->is_import      ? 4
                                       : (int)entry->block.kind]++;
    }
    counts[7] = memory.reservation_count;
    pthread_mutex_unlock(&memory.lock);
    for (int i = 0; i < 8; i++) {
        if (counts[i] > 0 && length < (int)text_size - 64) {
            length += snprintf(text + length, text_size - (size_t)length, "alive %s %u\n", names[i],
                               counts[i]);
        }
    }
    return length;
}
