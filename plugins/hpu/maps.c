/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which memory of the host a card can reach. A copy from or to memory that is not mapped for it
 * fails (synMappingNotFound, 34), while the ABI lets a program copy from and to any memory. So a
 * range that nobody mapped is mapped for its copies, and stays so until they are done:
 *
 *      copy -> map (temporary) -> synMemCopyAsync -> hold: an event behind the copy
 *      anything that could tell that the copy is done -> reap: event reached? -> unmap
 *
 * The range is the program's, who may free it as soon as it knows that the copy is done. A map that
 * is left behind would give a later buffer at that address the pages of the former one. Therefore
 * maps are reaped before completion is told, and a map that a new copy finds in its way is used by
 * it only while a copy in flight proves that the memory is still the same.
 *
 * All of this with the card's lock held.
 */
#include "hpu.h"

struct hpu_map *hpu_map_find(struct hpu_card *card, uintptr_t address)
{
    for (struct hpu_map *map = card->maps; map != NULL; map = map->next) {
        if (address >= map->base && address - map->base < map->size_bytes) {
            return map;
        }
    }
    return NULL;
}

uint64_t hpu_map_gap(struct hpu_card *card, uintptr_t address, uint64_t size_bytes)
{
    for (struct hpu_map *map = card->maps; map != NULL; map = map->next) {
        if (map->base >= address && map->base - address < size_bytes) {
            size_bytes = map->base - address;
        }
    }
    return size_bytes;
}

struct hpu_map *hpu_map_add(struct hpu_card *card, const void *base, uint64_t size_bytes,
                            uint32_t kind)
{
    struct hpu_map *map = calloc(1, sizeof(*map));

    if (map != NULL) {
        map->base = (uintptr_t)base;
        map->size_bytes = size_bytes;
        map->kind = kind;
        map->next = card->maps;
        card->maps = map;
    }
    return map;
}

void hpu_map_remove(struct hpu_card *card, struct hpu_map *map)
{
    struct hpu_map **link = &card->maps;

    while (*link != map) {
        link = &(*link)->next;
    }
    *link = map->next;
    free(map);
}

void hpu_map_drop(struct hpu_runtime *runtime, struct hpu_card *card, struct hpu_map *map)
{
    syn_status code = SYN_SUCCESS;

    if (map->kind == HPU_MAP_TEMPORARY) {
        code = runtime->syn.synHostUnmap(card->id, hpu_pointer(map->base));
    } else if (map->kind == HPU_MAP_STAGING) {
        code = runtime->syn.synHostFree(card->id, hpu_pointer(map->base), 0);
    }
    if (code != SYN_SUCCESS) {
        vendor_log(runtime->host, DS_ACCEL_LOG_WARN,
                   "module %u: a buffer of %llu bytes stays mapped: %d", card->module,
                   (unsigned long long)map->size_bytes, code);
    }
    hpu_map_remove(card, map);
}

/* ---- copies in flight ----------------------------------------------------------------------- */

/* A hold with an event: a former one, or a new one. */
static syn_status take_hold(struct hpu_runtime *runtime, struct hpu_card *card,
                            struct hpu_hold **hold_out)
{
    struct hpu_hold *hold = card->spares;
    syn_status code;

    if (hold != NULL) {
        card->spares = hold->next;
        *hold_out = hold;
        return SYN_SUCCESS;
    }
    hold = calloc(1, sizeof(*hold));
    if (hold == NULL) {
        return 3; /* synOutOfHostMemory */
    }
    code = runtime->syn.synEventCreate(&hold->event, card->id, 0);
    if (code != SYN_SUCCESS) {
        free(hold);
        return code;
    }
    *hold_out = hold;
    return SYN_SUCCESS;
}

static void give_spare(struct hpu_card *card, struct hpu_hold *hold)
{
    hold->next = card->spares;
    card->spares = hold;
}

/*
 * Keep the map until what the stream has is done. Where that cannot be marked it is waited for; and
 * if even that fails, the map stays until the card is released.
 */
void hpu_map_hold(struct hpu_runtime *runtime, struct hpu_card *card, struct hpu_map *map,
                  syn_stream stream)
{
    struct hpu_hold *hold = NULL;
    syn_status code = take_hold(runtime, card, &hold);

    if (code == SYN_SUCCESS) {
        code = runtime->syn.synEventRecord(hold->event, stream);
        if (code != SYN_SUCCESS) {
            give_spare(card, hold);
        }
    }
    if (code != SYN_SUCCESS) {
        map->hold_count += runtime->syn.synStreamSynchronize(stream) != SYN_SUCCESS;
        return;
    }
    hold->map = map;
    map->hold_count++;
    hold->next = card->holds;
    card->holds = hold;
    atomic_fetch_add(&card->hold_count, 1);
}

/* Is the copy done? A lost device does none any more. An answer that is no answer: not yet. */
static int is_done(struct hpu_runtime *runtime, const struct hpu_hold *hold)
{
    syn_status code = runtime->syn.synEventQuery(hold->event);

    return code == SYN_SUCCESS || code == SYN_DEVICE_RESET;
}

static void wait_hold(struct hpu_runtime *runtime, struct hpu_card *card,
                      const struct hpu_hold *hold)
{
    if (runtime->syn.synEventSynchronize(hold->event) != SYN_SUCCESS) {
        runtime->syn.synDeviceSynchronize(card->id);
    }
}

void hpu_card_reap(struct hpu_runtime *runtime, struct hpu_card *card, int is_all)
{
    struct hpu_hold **link = &card->holds;

    while (*link != NULL) {
        struct hpu_hold *hold = *link;

        if (is_all) {
            wait_hold(runtime, card, hold);
        } else if (!is_done(runtime, hold)) {
            link = &hold->next;
            continue;
        }
        *link = hold->next;
        hold->map->hold_count--;
        if (hold->map->hold_count == 0) {
            hpu_map_drop(runtime, card, hold->map);
        }
        hold->map = NULL;
        give_spare(card, hold);
        atomic_fetch_sub(&card->hold_count, 1);
    }
}

void hpu_maps_reap(ds_accel_plugin_device_t *device)
{
    struct hpu_card *card = hpu_card(device);

    if (atomic_load(&card->hold_count) > 0) {
        pthread_mutex_lock(&card->lock);
        hpu_card_reap(hpu_runtime(device), card, 0);
        pthread_mutex_unlock(&card->lock);
    }
}

/* At the end of a card's use. What the program has not given back ends with the card. */
void hpu_card_forget(struct hpu_runtime *runtime, struct hpu_card *card)
{
    while (card->maps != NULL) {
        hpu_map_drop(runtime, card, card->maps);
    }
    while (card->spares != NULL) {
        struct hpu_hold *hold = card->spares;

        card->spares = hold->next;
        runtime->syn.synEventDestroy(hold->event);
        free(hold);
    }
}

/* ---- before a range is mapped for good, or is the program's again --------------------------- */

/* No temporary map in the range: those in the way are waited for. Others: which one. */
struct hpu_map *hpu_maps_clear(struct hpu_runtime *runtime, struct hpu_card *card,
                               uintptr_t address, uint64_t size_bytes)
{
    struct hpu_map *map = card->maps;

    while (map != NULL) {
        if (map->base >= address + size_bytes || map->base + map->size_bytes <= address) {
            map = map->next;
        } else if (map->kind == HPU_MAP_TEMPORARY && card->holds != NULL) {
            hpu_card_reap(runtime, card, 1);
            map = card->maps;
        } else {
            return map;
        }
    }
    return NULL;
}
