/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations that memory.c, vmem.c and share.c share. The caller of each function holds
 * memory.lock. */
#ifndef DS_ACCEL_TESTS_SIM_MEMORY_H
#define DS_ACCEL_TESTS_SIM_MEMORY_H

#include "inside.h"

#pragma GCC visibility push(hidden)

#define EXPORT_SLOTS 4096u

/* A device's pages and addresses (see the comment in memory.c). */
struct span {
    uint32_t physical;
    int fd;
    char *address, *bytes;
    uint64_t size_bytes, file_bytes;
    uint64_t total_bytes, used_bytes;
    uint64_t cursor;            /* where the search for the next block starts */
    _Atomic uint64_t *exported; /* [EXPORT_SLOTS]: ids of live exported blocks */
};

struct entry {
    struct sim_block block;
    struct span *span; /* NULL: the pages are not a device's of this process */
    char *bytes;
    uint64_t room_bytes; /* size that the entry occupies in its span */
    uint32_t hold_count; /* number of works in flight that use it */
    uint32_t slot;       /* index in span->exported */
    bool is_hidden;      /* physical memory without an address of its own */
    bool is_import;
    struct sim_physical *source; /* for a mapping of virtual memory: the mapped memory */
    uint32_t access;
    void *map_address; /* start of its own pages, for munmap() */
    uint64_t map_bytes;
    void *shadow_address;                     /* for an import: its second mapping */
    uint64_t file_id, file_offset, export_id; /* for an import: the identity of its source */
};

struct reservation {
    struct reservation *next;
    char *address, *bytes;
    uint64_t size_bytes;
};

struct memory_state {
    pthread_mutex_t lock; /* guards the whole struct */
    struct entry **entries;
    size_t count;
    uint64_t last_id, pinned_bytes;
    struct span spans[SIM_MAX_DEVICES];
    struct reservation *reservations;
    uint32_t reservation_count;
};

extern struct memory_state memory;

struct entry *memory_find(const void *address);
struct entry *memory_overlapping(const void *address, uint64_t size_bytes);
void memory_insert(struct entry *entry);
void memory_remove(struct entry *entry);
struct span *memory_span(uint32_t physical);
struct entry *memory_take(struct span *span, uint64_t size_bytes, uint64_t align_bytes);
void memory_give(struct entry *entry);
struct reservation *memory_reservation(const void *address);

#pragma GCC visibility pop

#endif
