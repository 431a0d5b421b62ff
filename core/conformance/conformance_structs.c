/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Conformance checks: structs of older and newer versions, and arrays. Every slot that fills a
 * struct is called with the struct sizes of hosts older and newer than the plugin, and every slot
 * that fills an array is called with elements larger and smaller than the plugin's.
 */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#define GROUP "structs"
#define CANARY 0x5a
#define STRUCT_LIMIT 2048 /* bytes; every struct of the ABI is smaller */
#define NEWER_BYTES 64    /* additional bytes in a newer host's struct */
#define FEW 4u            /* elements of an array */
#define ELEMENT_LIMIT 512

/* ---- structs -------------------------------------------------------------------------------- */

static void *ask_pointer; /* the pointer with which mem_pointer_info is called */

#define ASK(function, ...) \
    static int32_t function(struct ds_accel__run *run, void *out) \
    { \
        return __VA_ARGS__; \
    }

ASK(ask_backend_info, CALL(run, backend_info, run->instance, out))
ASK(ask_identity, CALL(run, device_identity, run->instance, run->device_index, out))
ASK(ask_info, CALL(run, device_info, run->device, out))
ASK(ask_mem_info, CALL(run, mem_info, run->device, out))
ASK(ask_mem_stats, CALL(run, mem_stats, run->device, out))
ASK(ask_pointer_info, CALL(run, mem_pointer_info, run->instance, run->device, ask_pointer, out))
ASK(ask_telemetry, CALL(run, telemetry_get, run->instance, run->device_index, out))
ASK(ask_verdict, CALL(run, probe, run->host, out))

static const struct {
    size_t slot;
    uint32_t size;
    int32_t (*ask)(struct ds_accel__run *run, void *out);
} structs[] = {
    {SLOT(probe), sizeof(struct ds_accel_verdict), ask_verdict},
    {SLOT(backend_info), sizeof(struct ds_accel_backend_info), ask_backend_info},
    {SLOT(device_identity), sizeof(struct ds_accel_device_identity), ask_identity},
    {SLOT(device_info), sizeof(struct ds_accel_device_info), ask_info},
    {SLOT(mem_info), sizeof(struct ds_accel_memory_info), ask_mem_info},
    {SLOT(mem_stats), sizeof(struct ds_accel_memory_stats), ask_mem_stats},
    {SLOT(mem_pointer_info), sizeof(struct ds_accel_pointer_info), ask_pointer_info},
    {SLOT(telemetry_get), sizeof(struct ds_accel_telemetry), ask_telemetry},
};

/* Call a slot with a struct of this size. Fail if the bytes after the struct or its size field
 * change, or if the status is positive. */
static void check_size(struct ds_accel__run *run, size_t position, uint32_t size)
{
    const char *slot = ds_accel__slot_name(structs[position].slot);
    unsigned char bytes[STRUCT_LIMIT];
    uint32_t size_after;
    int32_t status;

    memset(bytes, 0, size);
    memset(bytes + size, CANARY, sizeof(bytes) - size);
    memcpy(bytes, &size, sizeof(size));
    status = structs[position].ask(run, bytes);
    memcpy(&size_after, bytes, sizeof(size_after));
    EXPECT(run, size_after == size, "%s: struct_size was %u and is %u", slot, size, size_after);
    for (size_t i = size; i < sizeof(bytes); i++) {
        EXPECT(run, bytes[i] == CANARY, "%s with struct_size %u: wrote byte %zu", slot, size, i);
    }
    EXPECT(run, status <= DS_ACCEL_OK, "%s with struct_size %u: status %d", slot, size, status);
}

static void check_structs(struct ds_accel__run *run)
{
    for (size_t i = 0; i < ARRAY_SIZE(structs); i++) {
        if (!ds_accel__has_slot(run, structs[i].slot)) {
            continue;
        }
        for (uint32_t size = sizeof(uint32_t); size <= structs[i].size; size += 4) {
            /* Members have 4 or 8 bytes, so sizes grow by 4; within texts, larger steps suffice. */
            check_size(run, i, size);
            size += size > 160 && size + 68 < structs[i].size ? 60 : 0;
            /* Probes may be slow, so only some sizes are tried for the slot probe. */
            size += structs[i].slot == SLOT(probe) && size + 40 < structs[i].size ? 36 : 0;
        }
        check_size(run, i, structs[i].size + NEWER_BYTES);
    }
}

/* For slots whose values do not change between calls, check that a call with a shorter struct
 * stores the same values. */
static void check_short_answers(struct ds_accel__run *run)
{
    static const size_t steady[] = {SLOT(backend_info), SLOT(device_identity), SLOT(device_info)};

    for (size_t i = 0; i < ARRAY_SIZE(structs); i++) {
        unsigned char whole[STRUCT_LIMIT] = {0};
        unsigned char half[STRUCT_LIMIT] = {0};
        uint32_t size = structs[i].size;
        uint32_t half_size = size / 2 / 8 * 8;
        bool is_steady = false;

        for (size_t k = 0; k < ARRAY_SIZE(steady); k++) {
            is_steady = is_steady || steady[k] == structs[i].slot;
        }
        if (!is_steady || !ds_accel__has_slot(run, structs[i].slot)) {
            continue;
        }
        memcpy(whole, &size, sizeof(size));
        memcpy(half, &half_size, sizeof(half_size));
        if (structs[i].ask(run, whole) == DS_ACCEL_OK) {
            ds_accel__want(run, DS_ACCEL_OK, ds_accel__slot_name(structs[i].slot),
                           structs[i].ask(run, half));
            EXPECT(run, memcmp(whole + 4, half + 4, half_size - 4) == 0,
                   "%s: a struct of %u bytes has other contents than one of %u",
                   ds_accel__slot_name(structs[i].slot), half_size, size);
        }
    }
}

static void check_reserved(struct ds_accel__run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    struct ds_accel_pointer_info pointer = {.struct_size = sizeof(pointer)};
    struct ds_accel_op_builder builders[FEW] = {0};
    uint32_t count = 0;

    if (run->table.backend_info != NULL) {
        CALL(run, backend_info, run->instance, &info);
        EXPECT(run, info.reserved == 0, "backend_info: reserved is %u", info.reserved);
    }
    if (run->table.telemetry_get != NULL) {
        CALL(run, telemetry_get, run->instance, run->device_index, &telemetry);
        EXPECT(run, telemetry.reserved == 0, "telemetry_get: reserved is %u", telemetry.reserved);
    }
    if (run->table.mem_pointer_info != NULL) {
        CALL(run, mem_pointer_info, run->instance, run->device, &info, &pointer);
        EXPECT(run, pointer.reserved == 0, "mem_pointer_info: reserved is %u", pointer.reserved);
    }
    if (run->table.op_builders_get != NULL) {
        CALL(run, op_builders_get, run->instance, builders, sizeof(builders[0]), FEW, &count);
        for (uint32_t i = 0; i < count && i < FEW; i++) {
            EXPECT(run, builders[i].reserved == 0, "op_builders_get: reserved of %u is %u", i,
                   builders[i].reserved);
        }
    }
}

/* ---- arrays --------------------------------------------------------------------------------- */

#define ASK_ARRAY(function, slot, ...) \
    static int32_t function(struct ds_accel__run *run, void *elements, uint32_t stride_bytes, \
                            uint32_t capacity, uint32_t *count_out) \
    { \
        return CALL(run, slot, __VA_ARGS__, elements, stride_bytes, capacity, count_out); \
    }

ASK_ARRAY(ask_processes, telemetry_processes, run->instance, run->device_index)
ASK_ARRAY(ask_links, links_get, run->instance, run->device_index)
ASK_ARRAY(ask_builders, op_builders_get, run->instance)
ASK_ARRAY(ask_rules, env_rules_get, run->instance)

static const struct {
    size_t slot;
    uint32_t size; /* size of an element in this host's version */
    int32_t (*ask)(struct ds_accel__run *run, void *elements, uint32_t stride_bytes,
                   uint32_t capacity, uint32_t *count_out);
} arrays[] = {
    {SLOT(telemetry_processes), sizeof(struct ds_accel_process), ask_processes},
    {SLOT(links_get), sizeof(struct ds_accel_link), ask_links},
    {SLOT(op_builders_get), sizeof(struct ds_accel_op_builder), ask_builders},
    {SLOT(env_rules_get), sizeof(struct ds_accel_env_rule), ask_rules},
};

/* False if the plugin lacks the slot, or the slot returns ERR_UNSUPPORTED because its library is
 * missing; the check of DSA-P34 covers that error. */
static bool is_answered(struct ds_accel__run *run, size_t position)
{
    uint32_t count = 0;

    return ds_accel__has_slot(run, arrays[position].slot) &&
           arrays[position].ask(run, NULL, arrays[position].size, 0, &count) !=
               DS_ACCEL_ERR_UNSUPPORTED;
}

/* Fill `capacity` elements of bytes[] with the value `before`, set their size fields to the stride,
 * and fill the rest with CANARY. Then call the slot at a position of arrays[] with bytes as its
 * array, or with NULL if the capacity is 0. Returns the count that the slot reported. */
static uint32_t fill(struct ds_accel__run *run, size_t position, uint32_t stride_bytes,
                     uint32_t capacity, unsigned char before, unsigned char *bytes)
{
    uint32_t count = UINT32_MAX;

    memset(bytes, before, (size_t)stride_bytes * capacity);
    memset(bytes + (size_t)stride_bytes * capacity, CANARY,
           (size_t)ELEMENT_LIMIT * FEW - (size_t)stride_bytes * capacity);
    for (uint32_t i = 0; i < capacity; i++) {
        memcpy(bytes + (size_t)stride_bytes * i, &stride_bytes, sizeof(stride_bytes));
    }
    ds_accel__want(
        run, DS_ACCEL_OK, ds_accel__slot_name(arrays[position].slot),
        arrays[position].ask(run, capacity > 0 ? bytes : NULL, stride_bytes, capacity, &count));
    return count;
}

/* True if every byte of the element after its size field is still CANARY, so the plugin wrote
 * nothing. An element of zeros counts as written, because in a container all values of a process
 * may be hidden. */
static bool is_unwritten(const unsigned char *element, uint32_t size)
{
    for (uint32_t i = sizeof(uint32_t); i < size; i++) {
        if (element[i] != CANARY) {
            return false;
        }
    }
    return true;
}

static void check_counts(struct ds_accel__run *run)
{
    unsigned char bytes[ELEMENT_LIMIT * FEW];

    for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
        const char *slot = ds_accel__slot_name(arrays[i].slot);
        uint32_t whole;

        if (!is_answered(run, i)) {
            continue;
        }
        whole = fill(run, i, arrays[i].size, 0, CANARY, bytes);
        EXPECT(run, whole != UINT32_MAX, "%s: *count_out was not written", slot);
        for (uint32_t capacity = 1; capacity <= FEW; capacity++) {
            uint32_t count = fill(run, i, arrays[i].size, capacity, CANARY, bytes);

            EXPECT(run, count == whole, "%s: counts %u with room for %u, and %u with none", slot,
                   count, capacity, whole);
            EXPECT(run, bytes[(size_t)arrays[i].size * capacity] == CANARY,
                   "%s: wrote an element past a capacity of %u", slot, capacity);
            for (uint32_t k = 0; k < count && k < capacity; k++) {
                EXPECT(run, !is_unwritten(bytes + (size_t)arrays[i].size * k, arrays[i].size),
                       "%s: of %u elements number %u was not written", slot, count, k);
            }
        }
    }
}

static void check_stride(struct ds_accel__run *run, size_t position, uint32_t stride,
                         uint32_t capacity)
{
    const char *slot = ds_accel__slot_name(arrays[position].slot);
    unsigned char bytes[ELEMENT_LIMIT * FEW];
    uint32_t count = fill(run, position, stride, capacity, 0, bytes);

    for (uint32_t k = 0; k < count && k < capacity; k++) {
        uint32_t size;

        memcpy(&size, bytes + (size_t)stride * k, sizeof(size));
        EXPECT(run, size == stride, "%s: element %u has struct_size %u, and the stride is %u", slot,
               k, size, stride);
    }
    for (size_t i = (size_t)stride * capacity; i < sizeof(bytes); i++) {
        EXPECT(run, bytes[i] == CANARY, "%s: wrote past %u elements of %u bytes", slot, capacity,
               stride);
    }
}

/* Check the strides of newer hosts, whose elements are larger, and of older hosts, whose elements
 * are smaller. */
static void check_strides(struct ds_accel__run *run)
{
    for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
        if (!is_answered(run, i)) {
            continue;
        }
        check_stride(run, i, arrays[i].size + NEWER_BYTES, FEW);
        for (uint32_t stride = 8; stride < arrays[i].size; stride += 8) {
            check_stride(run, i, stride, 1);
        }
    }
}

/* ---- the error ------------------------------------------------------------------------------ */

static void want_error_kept(struct ds_accel__run *run, const char *slot)
{
    const uint32_t size = (uint32_t)sizeof(run->error) + run->error_tail_bytes;

    EXPECT(run, run->error.struct_size == size, "%s: the error's struct_size was %u and is %u",
           slot, size, run->error.struct_size);
    for (size_t i = run->error_tail_bytes; i < sizeof(run->error_tail); i++) {
        EXPECT(run, run->error_tail[i] == CANARY, "%s: wrote byte %zu of an error of %u", slot,
               sizeof(run->error) + i, size);
    }
}

static void look_at_refusal(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                            int32_t status, bool is_touched, void *user_data)
{
    (void)status;
    (void)is_touched;
    (void)user_data;
    want_error_kept(run, ds_accel__slot_name(refusal->slot));
}

static void look_at_stop(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                         int32_t status, void *user_data)
{
    (void)status;
    (void)user_data;
    want_error_kept(run, ds_accel__slot_name(stop->slot));
}

/* Check that no call, refused or made by the tour, changes the size of the error struct or writes
 * past it, with the struct of this host and with the larger struct of a newer host. */
static void check_error(struct ds_accel__run *run)
{
    memset(run->error_tail, CANARY, sizeof(run->error_tail));
    for (uint32_t tail = 0; tail <= 32; tail += 32) {
        run->error_tail_bytes = tail;
        ds_accel__refuse_all(run, look_at_refusal, NULL);
        ds_accel__tour(run, look_at_stop, NULL);
    }
    run->error_tail_bytes = 0;
}

static const struct ds_accel__check checks[] = {
    {19, GROUP, "structs of every size", DS_ACCEL__STAGE_DEVICE, 0, check_structs, {0}},
    {19,
     GROUP,
     "a shorter struct has the same beginning",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_short_answers,
     {0}},
    {19,
     GROUP,
     "elements as far apart as the stride",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_strides,
     {0}},
    {19, GROUP, "the error keeps its size", DS_ACCEL__STAGE_DEVICE, 0, check_error, {0}},
    {21, GROUP, "reserved members are zero", DS_ACCEL__STAGE_DEVICE, 0, check_reserved, {0}},
    {90,
     GROUP,
     "arrays with less room than there is",
     DS_ACCEL__STAGE_DEVICE,
     0,
     check_counts,
     {0}},
};

const struct ds_accel__check_list ds_accel__checks_structs = {checks, ARRAY_SIZE(checks)};
