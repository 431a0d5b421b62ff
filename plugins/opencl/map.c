/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Maps addresses to memory objects, because OpenCL memory has no addresses.
 *
 * OpenCL memory is an object, cl_mem, and a position in it is an offset; only a kernel sees
 * addresses. The ABI uses pointers. Three ways to map pointers to objects were considered:
 *
 *   - Shared virtual memory has real pointers, but an OpenCL 1.2 device lacks it, and with coarse
 *     grain each use by the host needs a map and an unmap. The plugin uses it for managed memory
 *     if its grain is fine.
 *   - The vendors' extensions for pointers (unified shared memory) are each supported by one
 *     vendor.
 *   - A pointer that only represents an object and an offset works with every runtime since 1.2.
 *
 * The plugin therefore reserves a range of addresses of the buffer's size for each buffer, without
 * memory and without access (PROT_NONE). A pointer behaves as callers expect: it is unique in the
 * process, pointer arithmetic stays within the buffer, the page after the buffer is reserved too,
 * and host code that dereferences the pointer faults immediately. Copies, fills and native handles
 * find object and offset in a sorted list. Since the addresses are unique in the process, the kind
 * of a copy can be inferred: the addresses are unified.
 *
 * The list is searched for each copy and changed for each allocation: with an allocator that keeps
 * its segments the list has few entries, and a search of ten steps is negligible beside the
 * runtime's own work for a copy.
 */
#include "opencl.h"

#include <sys/mman.h>
#include <unistd.h>

int opencl_map_init(struct opencl_map *map)
{
    memset(map, 0, sizeof(*map));
    return pthread_rwlock_init(&map->lock, NULL) == 0 ? 0 : -1;
}

void opencl_map_destroy(struct opencl_map *map)
{
    free(map->ranges);
    pthread_rwlock_destroy(&map->lock);
}

/* Returns the number of ranges that begin at or below the address. Caller holds map->lock. */
static size_t count_below(const struct opencl_map *map, uintptr_t address)
{
    size_t low = 0;
    size_t high = map->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->ranges[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int make_room(struct opencl_map *map)
{
    size_t wanted = map->capacity == 0 ? 64 : map->capacity * 2;
    struct opencl_range *grown;

    if (map->count < map->capacity) {
        return 0;
    }
    grown = realloc(map->ranges, wanted * sizeof(*grown));
    if (grown == NULL) {
        return -1;
    }
    map->ranges = grown;
    map->capacity = wanted;
    return 0;
}

int opencl_map_insert(struct opencl_map *map, const struct opencl_range *range)
{
    int result;

    pthread_rwlock_wrlock(&map->lock);
    result = make_room(map);
    if (result == 0) {
        size_t place = count_below(map, range->base);

        memmove(&map->ranges[place + 1], &map->ranges[place],
                (map->count - place) * sizeof(*map->ranges));
        map->ranges[place] = *range;
        map->count++;
    }
    pthread_rwlock_unlock(&map->lock);
    return result;
}

int opencl_map_find(struct opencl_map *map, const void *address, struct opencl_range *range_out)
{
    int result = -1;
    size_t place;

    pthread_rwlock_rdlock(&map->lock);
    place = count_below(map, (uintptr_t)address);
    if (place > 0 &&
        (uintptr_t)address - map->ranges[place - 1].base < map->ranges[place - 1].size_bytes) {
        *range_out = map->ranges[place - 1];
        result = 0;
    }
    pthread_rwlock_unlock(&map->lock);
    return result;
}

/*
 * All ranges with this base are compared: two devices may have registered the same host memory, and
 * their ranges are adjacent in the list.
 */
int opencl_map_take(struct opencl_map *map, const void *base,
                    const ds_accel_plugin_device_t *device, struct opencl_range *range_out)
{
    size_t place;
    int result = -1;

    pthread_rwlock_wrlock(&map->lock);
    place = count_below(map, (uintptr_t)base);
    while (place > 0 && map->ranges[place - 1].base == (uintptr_t)base && result != 0) {
        place--;
        if (map->ranges[place].device == device) {
            *range_out = map->ranges[place];
            map->count--;
            memmove(&map->ranges[place], &map->ranges[place + 1],
                    (map->count - place) * sizeof(*map->ranges));
            result = 0;
        }
    }
    pthread_rwlock_unlock(&map->lock);
    return result;
}

/* ---- reserved addresses --------------------------------------------------------------------- */

/*
 * Returns the size including the unused page after the range; 0: the size exceeds the address
 * space.
 */
static size_t reserved_size(uint64_t size_bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    if (size_bytes > (uint64_t)PTRDIFF_MAX - 2 * page) {
        return 0;
    }
    return (size_t)((size_bytes + page - 1) / page * page + page);
}

void *opencl_reserve(uint64_t size_bytes)
{
    size_t size = reserved_size(size_bytes);
    void *address = MAP_FAILED;

    if (size != 0) {
        address = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    return address == MAP_FAILED ? NULL : address;
}

void opencl_unreserve(void *address, uint64_t size_bytes)
{
    munmap(address, reserved_size(size_bytes));
}
