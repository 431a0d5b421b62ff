/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Maps: which host memory a card can access. A copy from or to memory that is not mapped for the
 * card fails (synMappingNotFound, 34), but the ABI lets a program copy from and to any memory. The
 * plugin therefore maps an unmapped range until its copies are done:
 *
 *      copy -> map (temporary) -> synMemCopyAsync -> hold: an event after the copy
 *      any call that could report the copy as done -> reap: event reached? -> unmap
 *
 * The range belongs to the program, which may free it as soon as the plugin reports the copy as
 * done. A map that remained would let a later buffer at that address use the former buffer's pages.
 * Therefore the plugin drops temporary maps before it reports completion, and a new copy reuses a
 * temporary map only while an earlier copy that uses the map is in flight: until then the program
 * may not free the memory.
 *
 * Callers hold the card's lock, except callers of hpu_maps_reap(), which takes the lock itself.
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

syn_status hpu_map_drop(struct hpu_runtime *runtime, struct hpu_card *card, struct hpu_map *map)
{
    syn_status code;

    if (map->kind == HPU_MAP_STAGING) {
        code = runtime->syn.synHostFree(card->id, hpu_pointer(map->base), 0);
    } else {
        code = runtime->syn.synHostUnmap(card->id, hpu_pointer(map->base));
    }
    /*
     * On a lost device the map is gone, so the record is removed too. Staging memory has no address
     * of the program that could be blocked: if Synapse does not free it, it is leaked.
     */
    if (code != SYN_SUCCESS && code != SYN_DEVICE_RESET && map->kind != HPU_MAP_STAGING) {
        map->kind = HPU_MAP_STUCK;
        return code;
    }
    hpu_map_remove(card, map);
    return SYN_SUCCESS;
}

/* ---- copies in flight ----------------------------------------------------------------------- */

/* Writes a hold with an event to *hold_out: a spare hold of the card, or a new hold. */
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
 * Adds a hold to the map until the work that is queued on the stream now is done. If no event can
 * be recorded, the function waits for the work and adds no hold; if the wait fails too, it counts a
 * hold that nothing ends, so the map remains until the card is released.
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

/*
 * Returns true if the copy is done. On a lost device every copy counts as done; with an unknown
 * code a copy counts as not done.
 */
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

/*
 * Called when the last user closes the card. Memory that the program has not freed is released with
 * the card.
 */
void hpu_card_forget(struct hpu_runtime *runtime, struct hpu_card *card)
{
    while (card->maps != NULL) {
        struct hpu_map *map = card->maps;

        /* If the map cannot be dropped, only the record is: synDeviceRelease() releases the map. */
        if (map->kind == HPU_MAP_PINNED || hpu_map_drop(runtime, card, map) != SYN_SUCCESS) {
            hpu_map_remove(card, map);
        }
    }
    while (card->spares != NULL) {
        struct hpu_hold *hold = card->spares;

        card->spares = hold->next;
        runtime->syn.synEventDestroy(hold->event);
        free(hold);
    }
}

/* ---- ranges without temporary maps ---------------------------------------------------------- */

/* Drops the temporary maps of the range, after waiting for their copies, and tries to drop stuck
   maps. Returns the first map that remains in the range, or NULL. */
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
        } else if (map->kind == HPU_MAP_STUCK && hpu_map_drop(runtime, card, map) == SYN_SUCCESS) {
            map = card->maps;
        } else {
            return map;
        }
    }
    return NULL;
}
