/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory and events between processes. A handle identifies the owner's file: process, descriptor
 * and inode. The file is opened through /proc, which admits processes of the same user, and becomes
 * invalid when its owner exits.
 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_MAGIC 0x4D4D4953u /* "SIMM" */
#define EVENT_MAGIC 0x454D4953u  /* "SIME" */

struct handle {
    uint32_t magic;
    int32_t process;
    uint64_t inode;
    int32_t fd;
    uint32_t slot;
    uint64_t offset_bytes, size_bytes, id, tail_bytes;
};
SIM_ASSERT(sizeof(struct handle) <= 64, "a handle has 64 bytes");

static uint64_t inode_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 ? (uint64_t)info.st_ino : 0;
}

/* Opens the owner's file again; -1: it no longer exists. */
static int open_handle(const struct handle *handle)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->process, handle->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && inode_of(fd) != handle->inode) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- memory --------------------------------------------------------------------------------- */

bool sim_export(const void *base, void *handle64)
{
    struct sim_place place;
    struct handle handle;

    if (!sim_memory_place(base, true, &place) || place.block.address != base ||
        place.slot == UINT32_MAX) {
        return false;
    }
    handle = (struct handle){.magic = MEMORY_MAGIC,
                             .process = getpid(),
                             .inode = inode_of(place.fd),
                             .fd = place.fd,
                             .slot = place.slot,
                             .offset_bytes = place.offset_bytes,
                             .size_bytes = place.block.size_bytes,
                             .id = place.block.id,
                             .tail_bytes = place.tail_bytes};
    memset(handle64, 0, 64);
    memcpy(handle64, &handle, sizeof(handle));
    return true;
}

bool sim_export_is_ours(const void *handle64)
{
    struct handle handle;

    memcpy(&handle, handle64, sizeof(handle));
    return handle.process == getpid();
}

/* Returns true if the exporter's table shows that the block is live. */
static bool is_live(int fd, const struct handle *handle)
{
    uint64_t id = 0;
    off_t at = (off_t)(handle->tail_bytes + handle->slot * sizeof(id));

    return pread(fd, &id, sizeof(id), at) == (ssize_t)sizeof(id) && id == handle->id;
}

void *sim_import(uint32_t physical, const void *handle64, uint64_t *size_out)
{
    struct handle handle;
    void *address = NULL;
    int fd;

    memcpy(&handle, handle64, sizeof(handle));
    fd = handle.magic == MEMORY_MAGIC ? open_handle(&handle) : -1;
    if (fd < 0) {
        return NULL;
    }
    if (is_live(fd, &handle)) {
        address = sim_memory_adopt(physical, fd, handle.offset_bytes, handle.size_bytes, handle.id);
        *size_out = handle.size_bytes;
    }
    close(fd);
    return address;
}

static struct entry *find_import(uint64_t inode, uint64_t offset_bytes, uint64_t id)
{
    for (size_t i = 0; i < memory.count; i++) {
        struct entry *entry = memory.entries[i];

        if (entry->is_import && entry->file_id == inode && entry->file_offset == offset_bytes &&
            entry->export_id == id) {
            return entry;
        }
    }
    return NULL;
}

/* Maps whole pages around the block: at the caller's address without access, and for the engine. */
static struct entry *map_import(uint32_t physical, int fd, uint64_t offset_bytes,
                                uint64_t size_bytes)
{
    uint64_t lead = offset_bytes % SIM_PAGE;
    uint64_t map_bytes = (lead + size_bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
    char *address =
        mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *bytes =
        mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset_bytes - lead));
    struct entry *entry;

    if (address == MAP_FAILED || bytes == MAP_FAILED) {
        if (address != MAP_FAILED) {
            munmap(address, map_bytes);
        }
        if (bytes != MAP_FAILED) {
            munmap(bytes, map_bytes);
        }
        return NULL;
    }
    entry = sim_zalloc(sizeof(*entry));
    entry->block = (struct sim_block){.address = address + lead,
                                      .size_bytes = size_bytes,
                                      .kind = SIM_DEVICE,
                                      .physical = physical};
    entry->bytes = bytes + lead;
    entry->room_bytes = size_bytes;
    entry->map_address = address;
    entry->map_bytes = map_bytes;
    entry->shadow_address = bytes;
    entry->slot = UINT32_MAX;
    entry->is_import = true;
    return entry;
}

void *sim_memory_adopt(uint32_t physical, int fd, uint64_t offset_bytes, uint64_t size_bytes,
                       uint64_t id)
{
    uint64_t inode = inode_of(fd);
    struct entry *entry;

    pthread_mutex_lock(&memory.lock);
    entry = find_import(inode, offset_bytes, id);
    if (entry == NULL) {
        entry = map_import(physical, fd, offset_bytes, size_bytes);
        if (entry != NULL) {
            entry->file_id = inode;
            entry->file_offset = offset_bytes;
            entry->export_id = id;
            memory_insert(entry);
        }
    }
    if (entry != NULL) {
        entry->block.import_count++;
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return entry != NULL ? entry->block.address : NULL;
}

bool sim_import_close(void *address)
{
    struct entry *entry;
    bool is_import;

    pthread_mutex_lock(&memory.lock);
    entry = memory_find(address);
    is_import = entry != NULL && entry->is_import && entry->block.address == address;
    if (is_import && --entry->block.import_count == 0) {
        if (entry->hold_count > 0) {
            sim_misuse("closing %p: work that is running uses this memory", address);
        }
        memory_remove(entry);
        munmap(entry->map_address, entry->map_bytes);
        munmap(entry->shadow_address, entry->map_bytes);
        free(entry);
    }
    pthread_mutex_unlock(&memory.lock);
    sim_report_update();
    return is_import;
}

/* Returns a descriptor whose position is the memory's offset: a duplicated or passed descriptor has
 * the same position. */
int sim_export_fd(const void *base, uint64_t size_bytes)
{
    struct sim_place place;
    char path[64];
    int fd;

    if (!sim_range_is(base, size_bytes, 1u << SIM_DEVICE) ||
        !sim_memory_place(base, false, &place)) {
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && lseek(fd, (off_t)place.offset_bytes, SEEK_SET) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void *sim_import_fd(uint32_t physical, int fd, uint64_t offset_bytes, uint64_t size_bytes)
{
    struct stat info;
    off_t start = lseek(fd, 0, SEEK_CUR);

    if (start < 0 || size_bytes == 0 || fstat(fd, &info) != 0 ||
        offset_bytes + size_bytes > (uint64_t)(info.st_size - start)) {
        return NULL;
    }
    return sim_memory_adopt(physical, fd, (uint64_t)start + offset_bytes, size_bytes, 0);
}

/* ---- events --------------------------------------------------------------------------------- */

static struct sim_shared *map_shared(int fd)
{
    void *page = mmap(NULL, SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return page != MAP_FAILED ? page : NULL;
}

/* Lets a shared page count the event's marks from now on. The caller holds sim_lock. */
static bool make_shared(struct sim_event *event)
{
    int fd = memfd_create("sim-event", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, SIM_PAGE) != 0 || (event->shared = map_shared(fd)) == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    event->shared_fd = fd;
    if (event->mark != NULL && !event->mark->is_captured) {
        atomic_store(&event->shared->recorded, 1);
        event->mark->shared = event->shared;
        event->mark->shared_number = 1;
        event->mark->event = event;
        event->holders++;
        if (event->mark->is_reached) {
            atomic_store(&event->shared->time_ns, event->mark->time_ns);
            atomic_store(&event->shared->reached, 1);
        }
    }
    return true;
}

bool sim_event_export(struct sim_event *event, void *handle64)
{
    struct handle handle;
    bool is_shared;

    sim_locked();
    is_shared = event->shared != NULL ? event->shared_fd >= 0 : make_shared(event);
    if (is_shared) {
        handle = (struct handle){.magic = EVENT_MAGIC,
                                 .process = getpid(),
                                 .inode = inode_of(event->shared_fd),
                                 .fd = event->shared_fd};
        memset(handle64, 0, 64);
        memcpy(handle64, &handle, sizeof(handle));
    }
    sim_unlocked();
    return is_shared;
}

struct sim_event *sim_event_import(uint32_t physical, const void *handle64)
{
    struct sim_shared *shared;
    struct sim_event *event;
    struct handle handle;
    int fd;

    memcpy(&handle, handle64, sizeof(handle));
    fd = handle.magic == EVENT_MAGIC ? open_handle(&handle) : -1;
    if (fd < 0) {
        return NULL;
    }
    shared = map_shared(fd);
    close(fd);
    if (shared == NULL) {
        return NULL;
    }
    event = sim_event_create(physical, 0);
    event->shared = shared;
    return event;
}
