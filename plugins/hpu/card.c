/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A process can start Synapse only once, and acquire each module only once. Several instances may
 * exist at the same time, so this file stores the state that they share: whether this plugin
 * started Synapse, how many instances are open, and how many instances use a card. The card's
 * record also contains the host memory that the card can access, because a buffer that one instance
 * has mapped is mapped for every other instance too.
 */
#include "hpu.h"

/* State of the process, shared by all instances. */
static struct {
    pthread_mutex_t lock; /* guards this struct and the cards' user counts */
    uint32_t open_count;
    uint32_t is_ours; /* this plugin called synInitialize(), so it calls synDestroy() */
    struct hpu_card *cards[HPU_MODULES];
    uint32_t card_count;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

int hpu_problem(struct hpu_runtime *runtime, syn_status code, const char *call,
                struct vendor_problem *problem)
{
    int is_busy = code == SYN_DEVICE_ALREADY_ACQUIRED || code == SYN_BUSY;
    size_t length;

    vendor_problem_code(problem,
                        is_busy ? DS_ACCEL_REASON_DEVICE_BUSY : DS_ACCEL_REASON_DRIVER_FAILED,
                        runtime, code, !is_busy, "%s", call);
    length = strlen(problem->detail);
    if (is_busy) {
        snprintf(problem->detail + length, sizeof(problem->detail) - length,
                 "; hl-smi shows which processes have the modules");
    }
    return -1;
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
        return hpu_problem(runtime, code, "synInitialize()", problem);
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
    /* If a card could not be released, Synapse runs until the process exits. */
    if (process.open_count == 0 && process.is_ours && process.card_count == 0) {
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

static void forget_card(struct hpu_card *card)
{
    for (uint32_t i = 0; i < process.card_count; i++) {
        if (process.cards[i] == card) {
            process.cards[i] = process.cards[--process.card_count];
            break;
        }
    }
    pthread_mutex_destroy(&card->lock);
    free(card);
}

/*
 * Releases the module. If Synapse fails to, the card stays in the process's list, so that the next
 * device_open uses it without acquiring the module again.
 */
static void release(struct hpu_runtime *runtime, struct hpu_card *card)
{
    syn_status code;

    pthread_mutex_lock(&card->lock);
    hpu_card_reap(runtime, card, 1);
    hpu_card_forget(runtime, card);
    pthread_mutex_unlock(&card->lock);
    code = runtime->syn.synDeviceRelease(card->id);
    if (code == SYN_SUCCESS || code == SYN_DEVICE_RESET) {
        forget_card(card);
    } else {
        vendor_log(runtime->host, DS_ACCEL_LOG_WARN, "synDeviceRelease(module %u): %d",
                   card->module, code);
    }
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
