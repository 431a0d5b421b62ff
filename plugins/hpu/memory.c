/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory of a card, host memory that the card can access (maps.c), copies and fills. */
#include "hpu.h"

int32_t hpu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    uint64_t address = 0;
    syn_status code =
        runtime->syn.synDeviceMalloc(hpu_card(device)->id, size_bytes, 0, 0, &address);
    int32_t status = HPU_CHECK(device, code, error, "synDeviceMalloc(%llu bytes)",
                               (unsigned long long)size_bytes);

    if (status != DS_ACCEL_OK) {
        return status;
    }
    /* The ABI requires an alignment, which Synapse's headers do not promise: check the address. */
    if (address % HPU_ALIGN_BYTES != 0 || address == 0) {
        runtime->syn.synDeviceFree(hpu_card(device)->id, address, 0);
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "synDeviceMalloc(%llu bytes): 0x%llx is not aligned to %u bytes",
                           (unsigned long long)size_bytes, (unsigned long long)address,
                           HPU_ALIGN_BYTES);
    }
    *pointer_out = hpu_pointer(address);
    return DS_ACCEL_OK;
}

int32_t hpu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    syn_status code =
        hpu_runtime(device)->syn.synDeviceFree(hpu_card(device)->id, hpu_address(pointer), 0);

    return HPU_CHECK(device, code, error, "synDeviceFree(%p)", pointer);
}

int32_t hpu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error)
{
    syn_status code =
        hpu_runtime(device)->syn.synDeviceGetMemoryInfo(hpu_card(device)->id, free_out, total_out);

    return HPU_CHECK(device, code, error, "synDeviceGetMemoryInfo(module %u)",
                     hpu_card(device)->module);
}

/* ---- host memory ---------------------------------------------------------------------------- */

int32_t hpu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    struct hpu_card *card = hpu_card(device);
    void *pointer = NULL;
    syn_status code = runtime->syn.synHostMalloc(card->id, size_bytes, 0, &pointer);
    int32_t status =
        HPU_CHECK(device, code, error, "synHostMalloc(%llu bytes)", (unsigned long long)size_bytes);
    struct hpu_map *map;

    (void)flags;
    if (status != DS_ACCEL_OK) {
        return status;
    }
    pthread_mutex_lock(&card->lock);
    map = hpu_map_add(card, pointer, size_bytes, HPU_MAP_PINNED);
    pthread_mutex_unlock(&card->lock);
    if (map == NULL) {
        runtime->syn.synHostFree(card->id, pointer, 0);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_alloc_pinned: no memory");
    }
    *pointer_out = pointer;
    return DS_ACCEL_OK;
}

/* Returns the map of that kind that begins at pointer. Caller holds the card's lock. */
static struct hpu_map *find_start(struct hpu_card *card, const void *pointer, uint32_t kind)
{
    struct hpu_map *map = hpu_map_find(card, (uintptr_t)pointer);

    return map != NULL && map->kind == kind && map->base == (uintptr_t)pointer ? map : NULL;
}

int32_t hpu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error)
{
    struct hpu_card *card = hpu_card(device);
    syn_status code = SYN_SUCCESS;
    struct hpu_map *map;

    pthread_mutex_lock(&card->lock);
    map = find_start(card, pointer, HPU_MAP_PINNED);
    if (map != NULL) {
        code = hpu_runtime(device)->syn.synHostFree(card->id, pointer, 0);
        if (code == SYN_SUCCESS) {
            hpu_map_remove(card, map);
        }
    }
    pthread_mutex_unlock(&card->lock);
    if (map == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_free_pinned(%p): not pinned memory",
                           pointer);
    }
    return HPU_CHECK(device, code, error, "synHostFree(%p)", pointer);
}

int32_t hpu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    struct hpu_card *card = hpu_card(device);
    struct hpu_map *map = NULL;
    syn_status code = SYN_SUCCESS;

    (void)flags;
    pthread_mutex_lock(&card->lock);
    if (hpu_maps_clear(runtime, card, (uintptr_t)pointer, size_bytes) != NULL) {
        pthread_mutex_unlock(&card->lock);
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "mem_register(%p, %llu bytes): some of it is registered or pinned "
                           "already",
                           pointer, (unsigned long long)size_bytes);
    }
    map = hpu_map_add(card, pointer, size_bytes, HPU_MAP_REGISTERED);
    if (map != NULL) {
        code = runtime->syn.synHostMap(card->id, size_bytes, pointer);
        if (code != SYN_SUCCESS) {
            hpu_map_remove(card, map);
        }
    }
    pthread_mutex_unlock(&card->lock);
    if (map == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "mem_register: no memory");
    }
    return HPU_CHECK(device, code, error, "synHostMap(%p, %llu bytes)", pointer,
                     (unsigned long long)size_bytes);
}

int32_t hpu_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error)
{
    struct hpu_card *card = hpu_card(device);
    syn_status code = SYN_SUCCESS;
    struct hpu_map *map;

    pthread_mutex_lock(&card->lock);
    map = find_start(card, pointer, HPU_MAP_REGISTERED);
    if (map != NULL) {
        code = hpu_map_drop(hpu_runtime(device), card, map);
    }
    pthread_mutex_unlock(&card->lock);
    if (map == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "mem_unregister(%p): not registered memory",
                           pointer);
    }
    return HPU_CHECK(device, code, error, "synHostUnmap(%p)", pointer);
}

/* ---- copies --------------------------------------------------------------------------------- */

/* A copy that is being submitted, in pieces: each piece lies in one map. */
struct copy {
    struct hpu_runtime *runtime;
    struct hpu_card *card;
    struct hpu_stream *stream;
    const char *call; /* Synapse's function called last, for the error message */
    uint32_t lane;
    int32_t direction;
};

static syn_status submit(struct copy *copy, uint64_t source, uint64_t size_bytes,
                         uint64_t destination)
{
    syn_stream native = NULL;
    syn_status code = hpu_stream_turn(copy->runtime, copy->stream, copy->lane, &native);

    copy->call = "synStreamWaitEvent";
    if (code == SYN_SUCCESS) {
        copy->call = "synMemCopyAsync";
        code = copy->runtime->syn.synMemCopyAsync(native, source, size_bytes, destination,
                                                  copy->direction);
    }
    return code;
}

/*
 * For a copy to the card from memory that cannot be mapped, such as a read-only page: copies the
 * bytes to memory that Synapse allocates, from which the card can copy.
 */
static syn_status stage(struct copy *copy, uintptr_t host, uint64_t size_bytes,
                        struct hpu_map **map_out)
{
    void *buffer = NULL;
    syn_status code;

    copy->call = "synHostMalloc";
    code = copy->runtime->syn.synHostMalloc(copy->card->id, size_bytes, 0, &buffer);
    if (code != SYN_SUCCESS) {
        return code;
    }
    *map_out = hpu_map_add(copy->card, buffer, size_bytes, HPU_MAP_STAGING);
    if (*map_out == NULL) {
        copy->runtime->syn.synHostFree(copy->card->id, buffer, 0);
        return 3; /* synOutOfHostMemory */
    }
    memcpy(buffer, hpu_pointer(host), size_bytes);
    return SYN_SUCCESS;
}

/* Makes a temporary map of the range, which must not be mapped yet. If a range that is copied to
   the card cannot be mapped, *map_out is a map of staging memory instead. */
static syn_status map_piece(struct copy *copy, uintptr_t host, uint64_t size_bytes,
                            struct hpu_map **map_out)
{
    syn_status code;

    *map_out = hpu_map_add(copy->card, hpu_pointer(host), size_bytes, HPU_MAP_TEMPORARY);
    if (*map_out == NULL) {
        copy->call = "synHostMap";
        return 3; /* synOutOfHostMemory */
    }
    code = copy->runtime->syn.synHostMap(copy->card->id, size_bytes, hpu_pointer(host));
    if (code == SYN_SUCCESS) {
        return SYN_SUCCESS;
    }
    copy->call = "synHostMap";
    hpu_map_remove(copy->card, *map_out);
    *map_out = NULL;
    if (code == SYN_DEVICE_RESET || copy->direction != SYN_HOST_TO_DRAM) {
        return code;
    }
    return stage(copy, host, size_bytes, map_out);
}

/*
 * Writes the map that contains the bytes from host on to *map_out, created if necessary, and
 * reduces *size_bytes to the bytes in that map. Drops a temporary map first if its copies are done
 * (maps.c says why), and a stuck map in any case; if that fails, returns Synapse's status.
 */
static syn_status find_piece(struct copy *copy, uintptr_t host, uint64_t *size_bytes,
                             struct hpu_map **map_out)
{
    struct hpu_map *map = hpu_map_find(copy->card, host);

    if (map != NULL && map->kind == HPU_MAP_TEMPORARY) {
        hpu_card_reap(copy->runtime, copy->card, 0);
        map = hpu_map_find(copy->card, host);
    }
    if (map != NULL && map->kind == HPU_MAP_STUCK) {
        syn_status code = hpu_map_drop(copy->runtime, copy->card, map);

        copy->call = "synHostUnmap";
        if (code != SYN_SUCCESS) {
            return code;
        }
        map = NULL;
    }
    if (map == NULL) {
        *size_bytes = hpu_map_gap(copy->card, host, *size_bytes);
        return map_piece(copy, host, *size_bytes, map_out);
    }
    if (*size_bytes > map->base + map->size_bytes - host) {
        *size_bytes = map->base + map->size_bytes - host;
    }
    *map_out = map;
    return SYN_SUCCESS;
}

static syn_status copy_host(struct copy *copy, uintptr_t host, uint64_t device_address,
                            uint64_t size_bytes)
{
    while (size_bytes > 0) {
        uint64_t piece = size_bytes;
        struct hpu_map *map = NULL;
        uint64_t at;
        syn_status code = find_piece(copy, host, &piece, &map);

        if (code != SYN_SUCCESS) {
            return code;
        }
        at = map->kind == HPU_MAP_STAGING ? map->base : host;
        code = copy->direction == SYN_HOST_TO_DRAM ? submit(copy, at, piece, device_address)
                                                   : submit(copy, device_address, piece, at);
        if (map->kind == HPU_MAP_TEMPORARY || map->kind == HPU_MAP_STAGING) {
            if (code == SYN_SUCCESS) {
                hpu_map_hold(copy->runtime, copy->card, map,
                             copy->stream->lanes[copy->stream->last]);
            }
            if (map->hold_count == 0) {
                hpu_map_drop(copy->runtime, copy->card, map);
            }
        }
        if (code != SYN_SUCCESS) {
            return code;
        }
        host += piece;
        device_address += piece;
        size_bytes -= piece;
    }
    return SYN_SUCCESS;
}

/* Synapse has no copy from host to host: waits for the stream's earlier work, then copies. */
static int32_t copy_on_host(ds_accel_plugin_device_t *device, struct hpu_stream *stream,
                            void *destination, const void *source, uint64_t size_bytes,
                            struct ds_accel_error *error)
{
    int32_t status = hpu_stream_wait(device, stream, error);

    if (status == DS_ACCEL_OK) {
        memcpy(destination, source, size_bytes);
    }
    return status;
}

int32_t hpu_copy_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    struct copy copy = {hpu_runtime(device), hpu_card(device), native_stream,
                        "synMemCopyAsync",   HPU_LANE_WITHIN,  SYN_DRAM_TO_DRAM};
    syn_status code;

    if (kind == DS_ACCEL_COPY_HOST_TO_HOST) {
        return copy_on_host(device, native_stream, destination, source, size_bytes, error);
    }
    pthread_mutex_lock(&copy.card->lock);
    if (kind == DS_ACCEL_COPY_HOST_TO_DEVICE) {
        copy.lane = HPU_LANE_UP;
        copy.direction = SYN_HOST_TO_DRAM;
        code = copy_host(&copy, (uintptr_t)source, hpu_address(destination), size_bytes);
    } else if (kind == DS_ACCEL_COPY_DEVICE_TO_HOST) {
        copy.lane = HPU_LANE_DOWN;
        copy.direction = SYN_DRAM_TO_HOST;
        code = copy_host(&copy, (uintptr_t)destination, hpu_address(source), size_bytes);
    } else {
        code = submit(&copy, hpu_address(source), size_bytes, hpu_address(destination));
    }
    pthread_mutex_unlock(&copy.card->lock);
    return HPU_CHECK(device, code, error, "%s(from %p, %llu bytes, to %p, direction %d)", copy.call,
                     source, (unsigned long long)size_bytes, destination, copy.direction);
}

/*
 * Synapse's fill functions have the stream as last argument. With three lanes, fills use the lane
 * of copies within the card; Synapse's headers do not say which kinds of streams accept fills.
 */
int32_t hpu_fill_async(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    struct hpu_runtime *runtime = hpu_runtime(device);
    struct hpu_card *card = hpu_card(device);
    uint64_t address = hpu_address(destination);
    syn_stream native = NULL;
    syn_status code;

    pthread_mutex_lock(&card->lock);
    code = hpu_stream_turn(runtime, native_stream, HPU_LANE_WITHIN, &native);
    if (code != SYN_SUCCESS) {
        /* vendor_check() below reports the failure */
    } else if (pattern_bytes == 1) {
        code = runtime->syn.synMemsetD8Async(address, (unsigned char)pattern, count, native);
    } else if (pattern_bytes == 2) {
        code = runtime->syn.synMemsetD16Async(address, (uint16_t)pattern, count, native);
    } else {
        code = runtime->syn.synMemsetD32Async(address, pattern, count, native);
    }
    pthread_mutex_unlock(&card->lock);
    return HPU_CHECK(device, code, error, "synMemsetD%uAsync(%p, 0x%x, %llu)", pattern_bytes * 8,
                     destination, pattern, (unsigned long long)count);
}
