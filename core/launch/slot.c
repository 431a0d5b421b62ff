/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The slots of a host. A slot is a device, named by its index, its UUID or its PCI address; one
 * rank runs on it.
 */
#include "base/pci.h"
#include "base/text.h"
#include "launch/hosts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A PCI address, or a text with a letter, which may be a UUID; "0-2", "1.5" and "0:1" are neither.
 */
static bool is_token(const char *text, size_t length)
{
    struct ds_accel__pci address;
    bool has_letter = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        has_letter |= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return memchr(text, ':', length) != NULL ? ds_accel__pci_parse(text, length, &address)
                                             : has_letter;
}

bool ds_accel__slot_parse(const char *text, size_t length, struct ds_accel__slot *slot)
{
    uint64_t number = 0;
    size_t first = 0;
    size_t end = length;

    *slot = (struct ds_accel__slot){.index = DS_ACCEL__NO_INDEX, .device = DS_ACCEL__NO_INDEX};
    while (first < end && text[first] == ' ') { /* "0, 1": as DeepSpeed's int() */
        first++;
    }
    while (end > first && text[end - 1] == ' ') {
        end--;
    }
    for (size_t i = first; i < end; i++) {
        if (text[i] < '0' || text[i] > '9') {
            slot->token = (char *)text;
            return is_token(text, length);
        }
        number = number < DS_ACCEL__NO_INDEX ? 10 * number + (uint64_t)(text[i] - '0') : number;
    }
    slot->index = number < DS_ACCEL__NO_INDEX ? (uint32_t)number : DS_ACCEL__LAST_INDEX;
    slot->device = slot->index;
    return end > first;
}

bool ds_accel__slot_is_same(const struct ds_accel__slot *left, const struct ds_accel__slot *right)
{
    if (left->index != DS_ACCEL__NO_INDEX || right->index != DS_ACCEL__NO_INDEX) {
        return left->index == right->index;
    }
    return strcasecmp(left->token, right->token) == 0;
}

const struct ds_accel__slot *ds_accel__host_find(const struct ds_accel__job_host *host,
                                                 const struct ds_accel__slot *slot)
{
    uint32_t first = 0; /* the slots before it have lower indices */
    uint32_t end = host->slot_count;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;

        if (host->slots[middle].index < slot->index) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    for (uint32_t i = first; i < host->slot_count && host->slots[i].index == slot->index; i++) {
        if (ds_accel__slot_is_same(&host->slots[i], slot)) {
            return &host->slots[i];
        }
    }
    return NULL;
}

int32_t ds_accel__host_add_slot(struct ds_accel__job_host *host, const struct ds_accel__slot *slot,
                                size_t token_length)
{
    struct ds_accel__slot added = *slot;

    assert(slot->token != NULL || slot->index != DS_ACCEL__NO_INDEX);
    if (host->slot_count == host->slot_capacity) {
        uint32_t capacity = host->slot_capacity > 0 ? 2 * host->slot_capacity : 8;
        struct ds_accel__slot *slots = realloc(host->slots, capacity * sizeof(*slots));

        if (slots == NULL) {
            return ds_accel__no_memory();
        }
        host->slots = slots;
        host->slot_capacity = capacity;
    }
    if (slot->token != NULL) {
        added.token = strndup(slot->token, token_length);
        if (added.token == NULL) {
            return ds_accel__no_memory();
        }
    }
    host->slots[host->slot_count++] = added;
    return DS_ACCEL_OK;
}

/* ---- sorting -------------------------------------------------------------------------------- */

struct entry {
    struct ds_accel__slot slot;
    uint32_t position; /* at which it was added */
};

static int compare(uint32_t left, uint32_t right)
{
    return (left > right) - (left < right);
}

static int compare_positions(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = compare(a->slot.index, b->slot.index);

    return order != 0 ? order : compare(a->position, b->position);
}

/* Like compare_positions(), but the same token is together. */
static int compare_slots(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = compare(a->slot.index, b->slot.index);

    if (order == 0 && a->slot.index == DS_ACCEL__NO_INDEX) {
        order = strcasecmp(a->slot.token, b->slot.token);
    }
    return order != 0 ? order : compare(a->position, b->position);
}

static bool is_sorted(const struct ds_accel__job_host *host)
{
    for (uint32_t i = 1; i < host->slot_count; i++) {
        if (host->slots[i].index <= host->slots[i - 1].index) {
            return false;
        }
    }
    return true;
}

int32_t ds_accel__host_sort_slots(struct ds_accel__job_host *host)
{
    struct entry *entries;
    uint32_t count = 0;

    if (is_sorted(host)) {
        return DS_ACCEL_OK;
    }
    entries = calloc(host->slot_count, sizeof(*entries));
    if (entries == NULL) {
        return ds_accel__no_memory();
    }
    for (uint32_t i = 0; i < host->slot_count; i++) {
        entries[i] = (struct entry){host->slots[i], i};
    }
    qsort(entries, host->slot_count, sizeof(*entries), compare_slots);
    for (uint32_t i = 0; i < host->slot_count; i++) {
        if (count > 0 && ds_accel__slot_is_same(&entries[count - 1].slot, &entries[i].slot)) {
            free(entries[i].slot.token);
        } else {
            entries[count++] = entries[i];
        }
    }
    qsort(entries, count, sizeof(*entries), compare_positions);
    for (uint32_t i = 0; i < count; i++) {
        host->slots[i] = entries[i].slot;
    }
    host->slot_count = count;
    free(entries);
    return DS_ACCEL_OK;
}

/* ---- removing ------------------------------------------------------------------------------- */

void ds_accel__host_clear_slots(struct ds_accel__job_host *host)
{
    for (uint32_t i = 0; i < host->slot_count; i++) {
        free(host->slots[i].token);
    }
    free(host->slots);
    host->slots = NULL;
    host->slot_count = 0;
    host->slot_capacity = 0;
}
