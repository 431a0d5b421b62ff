/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * One process has one Synapse, and acquires a module once. Instances of this plugin come and go
 * beside each other, so what they share is counted here: who started Synapse, and who uses a card.
 * What a card can reach of the host's memory is kept with the card for the same reason: a buffer
 * that one instance has mapped is mapped for the other.
 */
#include "hpu.h"

/* The process's own: Synapse is one for all of it. */
static struct {
    pthread_mutex_t lock; /* guards all of this, and user counts of cards */
    uint32_t open_count;
    uint32_t is_ours; /* we called synInitialize(), so we call synDestroy() */
    struct hpu_card *cards[HPU_MODULES];
    uint32_t card_count;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int is_busy(syn_status code)
{
    return code == SYN_DEVICE_ALREADY_ACQUIRED || code == SYN_BUSY;
}

static int initialize(struct hpu_runtime *runtime, struct vendor_problem *problem)
{
    syn_status code = runtime->syn.synInitialize();

    if (code == SYN_NO_DEVICE_FOUND) {
        runtime->has_no_device = 1;
        return 0;
    }
    if (code != SYN_SUCCESS && code != SYN_OBJECT_ALREADY_INITIALIZED &&
        code != SYN_ALREADY_INITIALIZED) {
        return vendor_problem_code(
            problem, is_busy(code) ? DS_ACCEL_REASON_DEVICE_BUSY : DS_ACCEL_REASON_DRIVER_FAILED,
            runtime, code, !is_busy(code), "synInitialize()%s",
            is_busy(code) ? ", hl-smi shows who has the modules" : "");
    }
    process.is_ours = code == SYN_SUCCESS;
    return 0;
}

int hpu_process_begin(struct hpu_runtime *runtime, struct vendor_problem *problem)
{
    int result = 0;

    pthread_mutex_lock(&process.lock);
    if (process.open_count == 0) {
        result = initialize(runtime, problem);
    }
    if (result == 0 && !runtime->has_no_device) {
        process.open_count++;
    }
    pthread_mutex_unlock(&process.lock);
    return result;
}

void hpu_process_end(struct hpu_runtime *runtime)
{
    if (runtime->has_no_device) {
        return;
    }
    pthread_mutex_lock(&process.lock);
    process.open_count--;
    if (process.open_count == 0 && process.is_ours) {
        runtime->syn.synDestroy();
    }
    pthread_mutex_unlock(&process.lock);
}

/* ---- cards ---------------------------------------------------------------------------------- */

static struct hpu_card *find_card(uint32_t module)
{
    for (uint32_t i = 0; i < process.card_count; i++) {
        if (process.cards[i]->module == module) {
            return process.cards[i];
        }
    }
    return NULL;
}

static syn_status acquire(struct hpu_runtime *runtime, uint32_t module, struct hpu_card **card_out)
{
    struct hpu_card *card;
    syn_status code;

    card = process.card_count < HPU_MODULES ? calloc(1, sizeof(*card)) : NULL;
    if (card == NULL) {
        return 3; /* synOutOfHostMemory */
    }
    code = runtime->syn.synDeviceAcquireByModuleId(&card->id, module);
    if (code != SYN_SUCCESS) {
        free(card);
        return code;
    }
    card->module = module;
    pthread_mutex_init(&card->lock, NULL);
    atomic_init(&card->hold_count, 0);
    process.cards[process.card_count++] = card;
    *card_out = card;
    return SYN_SUCCESS;
}

syn_status hpu_card_get(struct hpu_runtime *runtime, uint32_t module, struct hpu_card **card_out)
{
    struct hpu_card *card;
    syn_status code = SYN_SUCCESS;

    pthread_mutex_lock(&process.lock);
    card = find_card(module);
    if (card == NULL) {
        code = acquire(runtime, module, &card);
    }
    if (code == SYN_SUCCESS) {
        card->user_count++;
        *card_out = card;
    }
    pthread_mutex_unlock(&process.lock);
    return code;
}

static void release(struct hpu_runtime *runtime, struct hpu_card *card)
{
    for (uint32_t i = 0; i < process.card_count; i++) {
        if (process.cards[i] == card) {
            process.cards[i] = process.cards[--process.card_count];
        }
    }
    pthread_mutex_lock(&card->lock);
    hpu_card_reap(runtime, card, 1);
    hpu_card_forget(runtime, card);
    pthread_mutex_unlock(&card->lock);
    runtime->syn.synDeviceRelease(card->id);
    pthread_mutex_destroy(&card->lock);
    free(card);
}

void hpu_card_put(struct hpu_runtime *runtime, struct hpu_card *card)
{
    pthread_mutex_lock(&process.lock);
    card->user_count--;
    if (card->user_count == 0) {
        release(runtime, card);
    }
    pthread_mutex_unlock(&process.lock);
}
