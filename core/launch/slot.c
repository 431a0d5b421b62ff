/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The slots of a host. A slot is a device, named by its index, its UUID or its PCI address; one
 * rank runs on it.
 */
#include "base/text.h"
#include "launch/hosts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A UUID or PCI address has a letter or a colon; "0-2" and "1.5" have neither. */
static bool is_token(const char *text, size_t length)
{
    bool has_letter = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        has_letter |= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':';
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return has_letter;
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
    slot->index = number < DS_ACCEL__NO_INDEX ? (uint32_t)number : DS_ACCEL__NO_INDEX - 1;
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
    if (slot->index < host->slot_count && host->slots[slot->index].index == slot->index) {
        return &host->slots[slot->index]; /* the usual case: slots 0 to N - 1 */
    }
    for (uint32_t i = 0; i < host->slot_count; i++) {
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
    struct ds_accel__slot *slots;
    uint32_t at = host->slot_count;

    assert((slot->token == NULL) == (slot->index != DS_ACCEL__NO_INDEX) || slot->token != NULL);
    if (slot->token != NULL) {
        added.token = strndup(slot->token, token_length);
        if (added.token == NULL) {
            return ds_accel__no_memory();
        }
    }
    if (ds_accel__host_find(host, &added) != NULL) {
        free(added.token);
        return DS_ACCEL_OK;
    }
    slots = realloc(host->slots, (host->slot_count + 1) * sizeof(*slots));
    if (slots == NULL) {
        free(added.token);
        return ds_accel__no_memory();
    }
    while (at > 0 && slots[at - 1].index > added.index) {
        slots[at] = slots[at - 1];
        at--;
    }
    slots[at] = added;
    host->slots = slots;
    host->slot_count++;
    return DS_ACCEL_OK;
}

void ds_accel__host_clear_slots(struct ds_accel__job_host *host)
{
    for (uint32_t i = 0; i < host->slot_count; i++) {
        free(host->slots[i].token);
    }
    free(host->slots);
    host->slots = NULL;
    host->slot_count = 0;
}
