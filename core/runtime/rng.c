/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Random number generators: their seeds, their positions in the sequence of a seed, and both as
 * bytes. philox.c computes the numbers, rng_fill.c writes them to device memory, rng_default.c
 * finds the default generators of devices.
 */
#include "runtime/rng.h"
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DEFAULT_SEED UINT64_C(67280421310721) /* torch's default_rng_seed_val */

struct ds_accel__rng *ds_accel__rng_check(ds_accel_rng_t *rng, const char *call)
{
    struct ds_accel__rng *ours = (struct ds_accel__rng *)rng;

    if (ours == NULL || !ds_accel__handle_is_live(rng)) {
        ds_accel__refuse(call, "generator", rng);
        return NULL;
    }
    return ds_accel__device_fork_check(ours->child.device) < 0 ? NULL : ours;
}

int32_t ds_accel__rng_refused(const ds_accel_rng_t *rng)
{
    return ds_accel__handle_is_live(rng) ? DS_ACCEL_ERR_STATE : DS_ACCEL_ERR_INVALID;
}

static int32_t finish(int32_t status, const struct ds_accel_error *error)
{
    return status < 0 ? ds_accel__fail(status, error) : DS_ACCEL_OK;
}

static bool is_vendors(const struct ds_accel__rng *rng)
{
    return (rng->flags & DS_ACCEL_RNG_VENDOR) != 0;
}

/* ---- creation and destruction --------------------------------------------------------------- */

/* Set the seed, and return to the start of its sequence. The caller holds rng->lock, or no other
 * thread can use the generator yet. */
static int32_t reseed(struct ds_accel__rng *rng, uint64_t seed)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (is_vendors(rng)) {
        return finish(rng->table->rng_seed(rng->child.device->abi.handle, seed, &error), &error);
    }
    rng->seed = seed;
    rng->subsequence = 0;
    rng->block = 0;
    rng->word = 0;
    return DS_ACCEL_OK;
}

static int32_t make(struct ds_accel__device *device, uint64_t seed, uint32_t flags,
                    struct ds_accel__rng **rng_out)
{
    struct ds_accel__rng *rng = ds_accel__handle_take(DS_ACCEL__HANDLE_RNG, device);
    int32_t status;

    if (rng == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    rng->flags = flags;
    rng->table = device->abi.table;
    status = reseed(rng, seed);
    if (status < 0) {
        ds_accel__handle_put(DS_ACCEL__HANDLE_RNG, rng);
        return status;
    }
    pthread_mutex_init(&rng->lock, NULL);
    ds_accel__child_add(&rng->child);
    *rng_out = rng;
    return DS_ACCEL_OK;
}

int32_t ds_accel_rng_create(ds_accel_device_t *device, uint64_t seed, uint32_t flags,
                            ds_accel_rng_t **rng_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "rng_create");
    struct ds_accel__rng *rng = NULL;
    int32_t status;

    if (ours == NULL || rng_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID : ds_accel__refuse("rng_create", "output", NULL);
    }
    if ((flags & ~DS_ACCEL_RNG_VENDOR) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "rng_create: unknown flags %#x", flags);
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    if (flags != 0 &&
        (ds_accel__slot_is_absent(device->table, offsetof(struct ds_accel_plugin, rng_seed)) ||
         ds_accel__slot_is_absent(device->table, offsetof(struct ds_accel_plugin, rng_uniform)))) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED, "%s has no generator of its own",
                               ours->candidate->name);
    }
    status = make(ours, seed, flags, &rng);
    if (status >= 0) {
        *rng_out = (ds_accel_rng_t *)rng;
    }
    return status;
}

static void drop_staging(struct ds_accel__rng *rng)
{
    for (size_t i = 0; i < ARRAY_SIZE(rng->staging); i++) {
        struct ds_accel__staging *staging = &rng->staging[i];
        int32_t status = DS_ACCEL_OK;

        if (staging->event != NULL) {
            ds_accel__layers_own_begin();
            status = ds_accel_event_synchronize(staging->event);
            ds_accel__layers_own_end();
        }
        /* If the wait failed, a copy may still read the block, so the block is never freed. */
        if (status == DS_ACCEL_OK) {
            if (staging->is_pinned) {
                ds_accel_mem_free_pinned(&rng->child.device->abi, staging->memory);
            } else {
                free(staging->memory);
            }
        }
        ds_accel_event_destroy(staging->event);
        staging->memory = NULL;
        staging->event = NULL;
    }
}

void ds_accel__rng_destroy(struct ds_accel__rng *rng)
{
    if (ds_accel__child_remove(&rng->child)) {
        pthread_mutex_lock(&rng->lock);
        drop_staging(rng);
        pthread_mutex_unlock(&rng->lock);
        pthread_mutex_destroy(&rng->lock);
        ds_accel__handle_put(DS_ACCEL__HANDLE_RNG, rng);
    }
}

void ds_accel_rng_destroy(ds_accel_rng_t *rng)
{
    struct ds_accel__rng *ours = (struct ds_accel__rng *)rng;

    if (ds_accel__handle_is_live(rng) &&
        __atomic_load_n(&ours->child.device->default_rng, __ATOMIC_RELAXED) != ours &&
        ds_accel__device_lets_end(ours->child.device, "rng_destroy")) {
        ds_accel__rng_destroy(ours);
    }
}

int32_t ds_accel_default_rng(ds_accel_device_t *device, ds_accel_rng_t **rng_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "default_rng");
    ds_accel_t *context;
    int32_t status;

    if (ours == NULL || rng_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("default_rng", "output", NULL);
    }
    status = ds_accel__device_fork_check(ours);
    if (status < 0) {
        return status;
    }
    context = ours->context;
    pthread_mutex_lock(&context->device_lock);
    if (ours->default_rng == NULL) {
        struct ds_accel__rng *made = NULL;

        status =
            make(ours, context->has_default_seed ? context->default_seed : DEFAULT_SEED, 0, &made);
        __atomic_store_n(&ours->default_rng, made, __ATOMIC_RELAXED);
    }
    if (status >= 0) {
        *rng_out = (ds_accel_rng_t *)ours->default_rng;
    }
    pthread_mutex_unlock(&context->device_lock);
    return status;
}

/* ---- seeds and positions -------------------------------------------------------------------- */

int32_t ds_accel_rng_manual_seed(ds_accel_rng_t *rng, uint64_t seed)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_manual_seed");
    int32_t status;

    if (ours == NULL) {
        return ds_accel__rng_refused(rng);
    }
    pthread_mutex_lock(&ours->lock);
    status = reseed(ours, seed);
    pthread_mutex_unlock(&ours->lock);
    return status;
}

int32_t ds_accel_rng_seed(ds_accel_rng_t *rng, uint64_t *seed_out)
{
    uint64_t seed = 0;
    ssize_t got;
    int32_t status;

    if (ds_accel__rng_check(rng, "rng_seed") == NULL || seed_out == NULL) {
        return seed_out == NULL ? ds_accel__refuse("rng_seed", "output", NULL)
                                : ds_accel__rng_refused(rng);
    }
    do {
        got = getrandom(&seed, sizeof(seed), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(seed)) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "rng_seed: getrandom(%zu bytes): %m", sizeof(seed));
    }
    status = ds_accel_rng_manual_seed(rng, seed);
    if (status >= 0) {
        *seed_out = seed;
    }
    return status;
}

int32_t ds_accel_rng_initial_seed(ds_accel_rng_t *rng, uint64_t *seed_out)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_initial_seed");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = DS_ACCEL_OK;

    if (ours == NULL || seed_out == NULL) {
        return ours == NULL ? ds_accel__rng_refused(rng)
                            : ds_accel__refuse("rng_initial_seed", "output", NULL);
    }
    pthread_mutex_lock(&ours->lock);
    if (is_vendors(ours)) {
        status =
            finish(ours->table->rng_initial_seed(ours->child.device->abi.handle, seed_out, &error),
                   &error);
    } else {
        *seed_out = ours->seed;
    }
    pthread_mutex_unlock(&ours->lock);
    return status;
}

static int32_t check_has_place(const struct ds_accel__rng *rng, const char *call)
{
    return is_vendors(rng)
               ? ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED,
                                 "%s: the vendor's generator does not report its position", call)
               : DS_ACCEL_OK;
}

int32_t ds_accel_rng_position(ds_accel_rng_t *rng, struct ds_accel_rng_position *position_out)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_position");
    struct ds_accel_rng_position position = {.struct_size = sizeof(position)};
    int32_t status;

    if (ours == NULL || position_out == NULL) {
        return ours == NULL ? ds_accel__rng_refused(rng)
                            : ds_accel__refuse("rng_position", "output", NULL);
    }
    status = check_has_place(ours, "rng_position");
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&ours->lock);
    position.word = ours->word;
    position.block = ours->block;
    position.subsequence = ours->subsequence;
    pthread_mutex_unlock(&ours->lock);
    ds_accel_write(position_out, &position, sizeof(position));
    return DS_ACCEL_OK;
}

static bool is_place(uint32_t word, uint64_t block)
{
    return word < 4 || (word == 4 && block == UINT64_MAX);
}

int32_t ds_accel_rng_set_position(ds_accel_rng_t *rng, const struct ds_accel_rng_position *position)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_set_position");
    int32_t status;

    if (ours == NULL || position == NULL) {
        return ours == NULL ? ds_accel__rng_refused(rng)
                            : ds_accel__refuse("rng_set_position", "position", NULL);
    }
    if (!DS_ACCEL_HAS(position, struct ds_accel_rng_position, subsequence) ||
        !is_place(position->word, position->block)) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "rng_set_position: struct_size %u, word %u: expected %zu or more, "
                               "and a word below 4",
                               position->struct_size, position->word, sizeof(*position));
    }
    status = check_has_place(ours, "rng_set_position");
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&ours->lock);
    ours->word = position->word;
    ours->block = position->block;
    ours->subsequence = position->subsequence;
    pthread_mutex_unlock(&ours->lock);
    return DS_ACCEL_OK;
}

/* ---- the state as bytes --------------------------------------------------------------------- */

/*
 * A state consists of the text "ds-accel", version and kind; then, for Philox, 40 bytes (seed,
 * subsequence, block, word, checksum of all bytes before it), or, for the vendor's generator, the
 * vendor's bytes. Numbers are little-endian.
 */
#define STATE_VERSION 1u
#define STATE_PHILOX 1u
#define STATE_VENDOR 2u
#define STATE_HEAD_BYTES 16u
#define STATE_PHILOX_BYTES (STATE_HEAD_BYTES + 40u)

static const char magic[8] = {'d', 's', '-', 'a', 'c', 'c', 'e', 'l'};

static void put_number(unsigned char *state, size_t bytes, uint64_t number)
{
    for (size_t i = 0; i < bytes; i++) {
        state[i] = (unsigned char)(number >> (8 * i));
    }
}

static uint64_t get_number(const unsigned char *state, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++) {
        number |= (uint64_t)state[i] << (8 * i);
    }
    return number;
}

static void put_head(unsigned char *state, uint32_t kind)
{
    memcpy(state, magic, sizeof(magic));
    put_number(state + 8, 4, STATE_VERSION);
    put_number(state + 12, 4, kind);
}

static uint64_t checksum(const unsigned char *state)
{
    return ds_accel__hash(state, STATE_PHILOX_BYTES - 8, 0);
}

/* Compute the size of a state of the vendor's generator: STATE_HEAD_BYTES and the vendor's bytes.
 * The caller holds rng->lock. */
static int32_t vendor_state_size(struct ds_accel__rng *rng, uint64_t *size_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t size_bytes = 0;
    int32_t status = rng->table->rng_state_size(rng->child.device->abi.handle, &size_bytes, &error);

    if (status == DS_ACCEL_OK && size_bytes > UINT64_MAX - STATE_HEAD_BYTES) {
        return ds_accel__error(DS_ACCEL_ERR_ABI, "the vendor's state has %llu bytes",
                               (unsigned long long)size_bytes);
    }
    *size_out = STATE_HEAD_BYTES + size_bytes;
    return finish(status, &error);
}

/* Write the generator's state to the array state. size_bytes: the size that vendor_state_size()
 * computed; not used for Philox, whose state has STATE_PHILOX_BYTES. The caller holds rng->lock. */
static int32_t write_state(struct ds_accel__rng *rng, unsigned char *state, uint64_t size_bytes)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (is_vendors(rng)) {
        status = rng->table->rng_get_state(rng->child.device->abi.handle, state + STATE_HEAD_BYTES,
                                           size_bytes - STATE_HEAD_BYTES, &error);
        if (status >= 0) {
            put_head(state, STATE_VENDOR);
        }
        return finish(status, &error);
    }
    put_head(state, STATE_PHILOX);
    put_number(state + 16, 8, rng->seed);
    put_number(state + 24, 8, rng->subsequence);
    put_number(state + 32, 8, rng->block);
    put_number(state + 40, 8, rng->word);
    put_number(state + 48, 8, checksum(state));
    return DS_ACCEL_OK;
}

int32_t ds_accel_rng_get_state(ds_accel_rng_t *rng, void *state, uint64_t size_bytes,
                               uint64_t *needed_out)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_get_state");
    uint64_t needed = STATE_PHILOX_BYTES;
    int32_t status = DS_ACCEL_OK;

    if (ours == NULL || (state == NULL && needed_out == NULL)) {
        return ours == NULL ? ds_accel__rng_refused(rng)
                            : ds_accel__refuse("rng_get_state", "output", NULL);
    }
    pthread_mutex_lock(&ours->lock);
    if (is_vendors(ours)) {
        status = vendor_state_size(ours, &needed);
    }
    if (status >= 0 && state != NULL && size_bytes < needed) {
        status = ds_accel__error(DS_ACCEL_ERR_LIMIT,
                                 "rng_get_state: the state needs %llu bytes, the buffer has %llu",
                                 (unsigned long long)needed, (unsigned long long)size_bytes);
    } else if (status >= 0 && state != NULL) {
        status = write_state(ours, state, needed);
    }
    pthread_mutex_unlock(&ours->lock);
    if (needed_out != NULL && (status >= 0 || status == DS_ACCEL_ERR_LIMIT)) {
        *needed_out = needed;
    }
    return status;
}

static int32_t check_state(const unsigned char *state, uint64_t size_bytes, uint32_t kind)
{
    const char *problem = NULL;

    if (size_bytes < STATE_HEAD_BYTES || memcmp(state, magic, sizeof(magic)) != 0) {
        problem = "it is not a generator state";
    } else if (get_number(state + 8, 4) != STATE_VERSION) {
        problem = "this library does not know its version";
    } else if (get_number(state + 12, 4) != kind) {
        problem = "it is from another kind of generator";
    } else if (kind == STATE_PHILOX && size_bytes != STATE_PHILOX_BYTES) {
        problem = "it has another size";
    } else if (kind == STATE_PHILOX &&
               (get_number(state + 48, 8) != checksum(state) ||
                !is_place((uint32_t)get_number(state + 40, 8), get_number(state + 32, 8)))) {
        problem = "it is damaged";
    }
    return problem == NULL ? DS_ACCEL_OK
                           : ds_accel__error(DS_ACCEL_ERR_INVALID, "rng_set_state, %llu bytes: %s",
                                             (unsigned long long)size_bytes, problem);
}

int32_t ds_accel_rng_set_state(ds_accel_rng_t *rng, const void *state, uint64_t size_bytes)
{
    struct ds_accel__rng *ours = ds_accel__rng_check(rng, "rng_set_state");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const unsigned char *bytes = state;
    int32_t status;

    if (ours == NULL || state == NULL) {
        return ours == NULL ? ds_accel__rng_refused(rng)
                            : ds_accel__refuse("rng_set_state", "state", NULL);
    }
    status = check_state(bytes, size_bytes, is_vendors(ours) ? STATE_VENDOR : STATE_PHILOX);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&ours->lock);
    if (is_vendors(ours)) {
        status = finish(ours->table->rng_set_state(ours->child.device->abi.handle,
                                                   bytes + STATE_HEAD_BYTES,
                                                   size_bytes - STATE_HEAD_BYTES, &error),
                        &error);
    } else {
        ours->seed = get_number(bytes + 16, 8);
        ours->subsequence = get_number(bytes + 24, 8);
        ours->block = get_number(bytes + 32, 8);
        ours->word = (uint32_t)get_number(bytes + 40, 8);
    }
    pthread_mutex_unlock(&ours->lock);
    return status;
}
