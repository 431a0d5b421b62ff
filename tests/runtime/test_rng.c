/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Generators of random numbers: seeds, positions and states. */
#include "rng.h"

/* ---- seeds, positions and states ------------------------------------------------------------- */

Test(core_rng, goes_where_its_state_or_place_says)
{
    unsigned char state[128];
    unsigned char copy[128];
    struct ds_accel_rng_position place = {.struct_size = sizeof(place)};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    float *first = allocate(device, 4 * 1000);
    float *second = allocate(device, 4 * 1000);
    uint64_t needed = 0;
    uint64_t seed = 0;
    ds_accel_rng_t *rng;
    ds_accel_rng_t *other;

    MUST(ds_accel_rng_create(device, 11, 0, &rng));
    MUST(ds_accel_rng_create(device, 12, 0, &other));
    MUST(ds_accel_rng_normal(rng, NULL, first, 77, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_rng_get_state(rng, NULL, 0, &needed));
    cr_assert_leq(needed, sizeof(state));
    memset(state, 0xee, sizeof(state));
    EXPECT_REFUSED(ds_accel_rng_get_state(rng, state, needed - 1, &needed), DS_ACCEL_ERR_LIMIT,
                   "bytes");
    cr_expect_eq(state[0], 0xee);
    MUST(ds_accel_rng_get_state(rng, state, sizeof(state), NULL));
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect_eq(place.block, 19);
    cr_expect_eq(place.word, 1);
    MUST(ds_accel_rng_normal(rng, NULL, first, 1000, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_rng_set_state(other, state, needed));
    MUST(ds_accel_rng_normal(other, NULL, second, 1000, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_device_synchronize(device));
    cr_expect_arr_eq(first, second, 4000);
    MUST(ds_accel_rng_initial_seed(other, &seed));
    cr_expect_eq(seed, 11);
    MUST(ds_accel_rng_set_position(rng, &place));
    memset(second, 0, 4000);
    MUST(ds_accel_rng_normal(rng, NULL, second, 1000, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_device_synchronize(device));
    cr_expect_arr_eq(first, second, 4000);

    /* A change of any byte of the state, or of its size, is rejected. */
    for (uint64_t i = 0; i < needed; i++) {
        memcpy(copy, state, sizeof(copy));
        copy[i] ^= 0x40;
        EXPECT_STATUS(ds_accel_rng_set_state(rng, copy, needed), DS_ACCEL_ERR_INVALID);
    }
    EXPECT_REFUSED(ds_accel_rng_set_state(rng, state, needed - 1), DS_ACCEL_ERR_INVALID, "size");
    EXPECT_REFUSED(ds_accel_rng_set_state(rng, state, 3), DS_ACCEL_ERR_INVALID,
                   "not a generator state");
    EXPECT_REFUSED(ds_accel_rng_set_state(rng, NULL, 56), DS_ACCEL_ERR_INVALID, "NULL");
    ds_accel_rng_destroy(other);
    ds_accel_rng_destroy(rng);
    ds_accel_rng_destroy(rng);
    EXPECT_REFUSED(ds_accel_rng_manual_seed(rng, 1), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_rng_manual_seed(NULL, 1), DS_ACCEL_ERR_INVALID, "NULL");
    MUST(ds_accel_mem_free(device, NULL, first));
    MUST(ds_accel_mem_free(device, NULL, second));
    test_finish(context, device);
}

Test(core_rng, ends_with_its_subsequence_and_does_not_begin_again)
{
    struct ds_accel_rng_position place = {.struct_size = sizeof(place), .block = UINT64_MAX};
    struct ds_accel_rng_position bad = {.struct_size = sizeof(bad), .word = 4};
    unsigned char state[64];
    uint64_t size = 0;
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    uint32_t *words = allocate(device, 64);
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 1, 0, &rng));
    MUST(ds_accel_rng_set_position(rng, &place));
    EXPECT_REFUSED(ds_accel_rng_bits(rng, NULL, words, 5, DS_ACCEL_DTYPE_INT32), DS_ACCEL_ERR_LIMIT,
                   "it has fewer than 5 elements");
    EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, words, 3, DS_ACCEL_DTYPE_INT32), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, words, 1, DS_ACCEL_DTYPE_INT64), DS_ACCEL_ERR_LIMIT);
    EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, words, 1, DS_ACCEL_DTYPE_INT32), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, words, 1, DS_ACCEL_DTYPE_INT32), DS_ACCEL_ERR_LIMIT);
    EXPECT_STATUS(ds_accel_rng_bits(rng, NULL, words, 0, DS_ACCEL_DTYPE_INT32), DS_ACCEL_OK);
    MUST(ds_accel_rng_get_state(rng, state, sizeof(state), &size));
    MUST(ds_accel_rng_set_state(rng, state, size));
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect_eq(place.word, 4);
    MUST(ds_accel_rng_set_position(rng, &place));
    EXPECT_REFUSED(ds_accel_rng_set_position(rng, &bad), DS_ACCEL_ERR_INVALID, "below 4");
    MUST(ds_accel_mem_free(device, NULL, words));
    test_finish(context, device);
}

Test(core_rng, seeds_devices_as_deepspeed_does)
{
    unsigned char state[64];
    uint64_t size = 0;
    ds_accel_device_t *device;
    ds_accel_device_t *second;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_rng_t *rng;
    ds_accel_rng_t *again;
    ds_accel_rng_t *late;
    uint64_t seed = 0;
    uint64_t chosen = 0;

    MUST(ds_accel_default_rng(device, &rng));
    MUST(ds_accel_default_rng(device, &again));
    cr_expect_eq(rng, again);
    ds_accel_rng_destroy(rng); /* has no effect: the device owns its default generator */
    MUST(ds_accel_initial_seed(context, &seed));
    cr_expect_eq(seed, UINT64_C(67280421310721));
    MUST(ds_accel_manual_seed_all(context, 4));
    MUST(ds_accel_rng_initial_seed(rng, &seed));
    cr_expect_eq(seed, 4);
    MUST(ds_accel_device_open(context, 1, &second));
    MUST(ds_accel_default_rng(second, &late));
    MUST(ds_accel_rng_initial_seed(late, &seed));
    cr_expect_eq(seed, 4, "of a device that is opened later");
    MUST(ds_accel_set_device(context, 1));
    MUST(ds_accel_manual_seed(context, 9));
    MUST(ds_accel_rng_initial_seed(late, &seed));
    cr_expect_eq(seed, 9);
    MUST(ds_accel_rng_initial_seed(rng, &seed));
    cr_expect_eq(seed, 4, "not of the current device");
    MUST(ds_accel_get_rng_state(context, 0, state, sizeof(state), &size));
    MUST(ds_accel_set_rng_state(context, -1, state, size));
    MUST(ds_accel_initial_seed(context, &seed));
    cr_expect_eq(seed, 4);
    MUST(ds_accel_seed(context, &chosen));
    MUST(ds_accel_initial_seed(context, &seed));
    cr_expect_eq(seed, chosen);
    MUST(ds_accel_seed(context, &seed));
    cr_expect_neq(seed, chosen);
    EXPECT_STATUS(ds_accel_set_rng_state(context, 2, state, size), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_set_rng_state(context, -2, state, size), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_manual_seed(NULL, 1), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_manual_seed_all(NULL, 1), DS_ACCEL_ERR_INVALID);
    ds_accel_device_close(second);
    test_finish(context, device);
    EXPECT_REFUSED(ds_accel_rng_manual_seed(rng, 1), DS_ACCEL_ERR_INVALID, "destroyed");
}

Test(core_rng, begins_at_the_first_word_when_it_is_seeded)
{
    struct ds_accel_rng_position place = {.struct_size = sizeof(place), .subsequence = 5};
    unsigned char state[128];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_rng_t *rng = NULL;
    ds_accel_rng_t *other = NULL;
    uint64_t needed = 0;

    place.word = 3;
    place.block = 7;
    MUST(ds_accel_rng_create(device, 11, 0, &rng));
    MUST(ds_accel_rng_create(device, 12, 0, &other));
    MUST(ds_accel_rng_set_position(rng, &place));
    MUST(ds_accel_rng_get_state(rng, state, sizeof(state), &needed));
    MUST(ds_accel_rng_manual_seed(rng, 11));
    MUST(ds_accel_rng_position(rng, &place));
    cr_expect(place.word == 0 && place.block == 0 && place.subsequence == 0);
    MUST(ds_accel_rng_set_state(other, state, needed)); /* a state contains the whole position */
    MUST(ds_accel_rng_position(other, &place));
    cr_expect(place.word == 3 && place.block == 7 && place.subsequence == 5);
    ds_accel_rng_destroy(other);
    ds_accel_rng_destroy(rng);
    test_finish(context, device);
}
