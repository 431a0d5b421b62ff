/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op utils: utils FILE.so */
#include "ds-accel/ops/utils.h"
#include "ops/checks.h"

#include <stdbool.h>

#define MOST 64u
#define CANARY 16u

static const struct ds_accel_utils *utils;

/* A later caller's tensor has more members. */
struct wide_tensor {
    struct ds_accel_utils_tensor tensor;
    uint64_t more[3];
};

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static char *memory(size_t bytes)
{
    char *made = malloc(bytes + 1);

    if (!made)
        abort();
    return made;
}

static struct ds_accel_utils_options options_for(const void *tensors, uint64_t count,
                                                 uint32_t stride, uint64_t alignment)
{
    return (struct ds_accel_utils_options){
        .struct_size = sizeof(struct ds_accel_utils_options),
        .threads = 1,
        .tensors = (const struct ds_accel_utils_tensor *)tensors,
        .tensor_count = count,
        .tensor_bytes = stride,
        .alignment = alignment,
    };
}

/* Flatten tensors of these sizes and back; compare with a loop over single bytes. */
static void check_sizes(const uint64_t *sizes, uint64_t count, uint64_t alignment, uint32_t threads)
{
    struct wide_tensor tensors[MOST];
    struct ds_accel_utils_options options =
        options_for(tensors, count, sizeof(tensors[0]), alignment);
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t offsets[MOST];
    uint64_t bytes = 1;
    uint64_t at = 0;
    char *originals[MOST];
    char *flat;
    char *wanted;
    uint64_t step = alignment > 1 ? alignment : 1;

    memset(tensors, 0x77, sizeof(tensors));
    for (uint64_t i = 0; i < count; i++) {
        originals[i] = memory(sizes[i]);
        tensors[i].tensor.bytes = sizes[i];
        tensors[i].tensor.data = sizes[i] > 0 ? memory(sizes[i] + CANARY) : NULL;
        for (uint64_t byte = 0; byte < sizes[i]; byte++)
            originals[i][byte] = (char)(random_bits() | 1); /* padding is 0 */
        if (sizes[i] > 0) {
            memcpy(tensors[i].tensor.data, originals[i], sizes[i]);
            memset((char *)tensors[i].tensor.data + sizes[i], 0x5A, CANARY);
        }
    }
    CHECK(utils->layout(&options, offsets, &bytes, &error) == DS_ACCEL_OK, "%s", error.message);
    for (uint64_t i = 0; i < count; i++) {
        CHECK(offsets[i] == at, "tensor %llu begins at %llu, wanted %llu", (unsigned long long)i,
              (unsigned long long)offsets[i], (unsigned long long)at);
        at = (at + sizes[i] + step - 1) / step * step;
    }
    CHECK(bytes == at, "%llu bytes, wanted %llu", (unsigned long long)bytes,
          (unsigned long long)at);
    flat = memory(bytes + CANARY + 3);
    wanted = memory(bytes + CANARY);
    memset(flat, 0x5A, bytes + CANARY + 3);
    memset(wanted, 0, bytes);
    memset(wanted + bytes, 0x5A, CANARY);
    for (uint64_t i = 0; i < count; i++)
        memcpy(wanted + offsets[i], originals[i], sizes[i]);
    options.flat = flat + 3; /* at an odd address */
    options.flat_bytes = bytes + CANARY;
    options.threads = threads;
    CHECK(utils->flatten(&options, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(memcmp(flat + 3, wanted, bytes + CANARY) == 0, "the flat buffer's bytes");
    for (uint64_t i = 0; i < count; i++)
        if (sizes[i] > 0)
            memset(tensors[i].tensor.data, 0, sizes[i]);
    CHECK(utils->unflatten(&options, &error) == DS_ACCEL_OK, "%s", error.message);
    CHECK(memcmp(flat + 3, wanted, bytes + CANARY) == 0, "unflatten() changed the flat buffer");
    for (uint64_t i = 0; i < count; i++) {
        const char *data = (const char *)tensors[i].tensor.data;

        CHECK(sizes[i] == 0 || memcmp(data, originals[i], sizes[i]) == 0, "tensor %llu",
              (unsigned long long)i);
        for (unsigned byte = 0; sizes[i] > 0 && byte < CANARY; byte++)
            CHECK(data[sizes[i] + byte] == 0x5A, "a byte behind tensor %llu",
                  (unsigned long long)i);
        free(tensors[i].tensor.data);
        free(originals[i]);
    }
    free(flat);
    free(wanted);
}

static void check_copies(void)
{
    static const uint64_t alignments[] = {0, 1, 2, 7, 64, 4096, 200000};
    static const uint32_t threads[] = {1, 3, 0, UINT32_MAX};
    uint64_t sizes[MOST] = {0};

    for (uint64_t size = 0; size <= 257; size++) {
        sizes[0] = size;
        check_sizes(sizes, 1, size % 9, 1);
    }
    check_sizes(sizes, 0, 0, 0);
    memset(sizes, 0, sizeof(sizes));
    check_sizes(sizes, 5, 64, 0);
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        for (unsigned turn = 0; turn < 12; turn++) {
            uint64_t count = random_bits() % (MOST + 1);
            unsigned bits = (unsigned)(random_bits() % 17);

            for (uint64_t n = 0; n < count; n++)
                sizes[n] = random_bits() % 5 == 0 ? 0 : random_bits() % ((uint64_t)1 << bits);
            check_sizes(sizes, count, alignments[i], threads[turn % 4]);
        }
    }
    /* By several threads: one large tensor, and the parts' borders in and beside tensors. */
    sizes[0] = 3000001;
    sizes[1] = 65536;
    sizes[2] = 1;
    sizes[3] = 131072;
    for (unsigned turn = 0; turn < 4; turn++) {
        check_sizes(sizes, 1, 0, threads[turn]);
        check_sizes(sizes + 1, 3, 65536, threads[turn]);
        check_sizes(sizes, 4, turn * 100000, threads[turn]);
    }
}

/* Tensors that already lie in the flat buffer are not copied, other overlaps are refused. */
static void check_places(void)
{
    char flat[128];
    char before[128];
    struct ds_accel_utils_tensor tensors[3] = {{flat, 10}, {flat + 16, 20}, {flat + 48, 5}};
    struct ds_accel_utils_options options = options_for(tensors, 3, sizeof(tensors[0]), 16);

    for (unsigned i = 0; i < sizeof(flat); i++)
        flat[i] = (char)(i + 1);
    memcpy(before, flat, sizeof(flat));
    options.flat = flat;
    options.flat_bytes = 64;
    CHECK(utils->unflatten(&options, NULL) == DS_ACCEL_OK, "in place");
    CHECK(memcmp(flat, before, sizeof(flat)) == 0, "a byte changed");
    CHECK(utils->flatten(&options, NULL) == DS_ACCEL_OK, "in place");
    memset(before + 10, 0, 6);
    memset(before + 36, 0, 12);
    memset(before + 53, 0, 11);
    CHECK(memcmp(flat, before, sizeof(flat)) == 0, "other bytes than padding changed");
    for (int off = -4; off <= 15; off++) {
        tensors[2].data = flat + 48 + off;
        if (off == 0)
            continue;
        REFUSED(utils->flatten(&options, failed), DS_ACCEL_ERR_INVALID,
                "tensor 2 overlaps flat; allowed is only its own place, 48 bytes behind");
        REFUSED(utils->unflatten(&options, failed), DS_ACCEL_ERR_INVALID, "tensor 2 overlaps");
    }
    CHECK(memcmp(flat, before, sizeof(flat)) == 0, "a refused call changed a byte");
    tensors[2].data = flat + 64; /* directly behind */
    CHECK(utils->flatten(&options, NULL) == DS_ACCEL_OK, "beside the flat buffer");
    options.flat = flat + 64;
    tensors[0].data = flat + 54; /* directly before */
    tensors[1].data = flat;
    tensors[2].data = flat + 20;
    CHECK(utils->unflatten(&options, NULL) == DS_ACCEL_OK, "beside the flat buffer");
    tensors[0].data = flat + 55;
    REFUSED(utils->unflatten(&options, failed), DS_ACCEL_ERR_INVALID, "tensor 0 overlaps");
}

static void check_refusals(void)
{
    char flat[64] = "unchanged";
    char data[32] = "data";
    struct ds_accel_utils_tensor tensors[2] = {{data, 16}, {data, 8}};
    struct ds_accel_utils_options good = options_for(tensors, 2, sizeof(tensors[0]), 0);
    struct ds_accel_utils_options options;
    uint64_t bytes = 77;

    good.flat = flat;
    good.flat_bytes = 24;
#define BAD(change, text) \
    do { \
        options = good; \
        options.change; \
        REFUSED(utils->flatten(&options, failed), DS_ACCEL_ERR_INVALID, "utils: flatten: " text); \
        REFUSED(utils->unflatten(&options, failed), DS_ACCEL_ERR_INVALID, text); \
        CHECK(strcmp(flat, "unchanged") == 0 && strcmp(data, "data") == 0, "a byte changed"); \
    } while (0)
    BAD(struct_size -= 1, "struct_size is");
    BAD(reserved = 1, "reserved is 1");
    BAD(tensors = NULL, "tensors is NULL, tensor_count is 2");
    BAD(tensor_bytes = 8, "tensor_bytes is 8; wanted 16 or more");
    BAD(tensor_bytes = 20, "tensor_bytes is 20");
    BAD(flat = NULL, "flat is NULL");
    BAD(flat_bytes = 23, "flat_bytes is 23; the tensors need 24");
    BAD(alignment = 32, "flat_bytes is 24; the tensors need 64");
    BAD(alignment = UINT64_MAX, "tensor 0: with its 16 bytes, aligned to 18446744073709551615");
    tensors[1].data = NULL;
    BAD(threads = 0, "tensor 1: data is NULL, bytes is 8");
    tensors[1].bytes = UINT64_MAX - 15;
    BAD(threads = 0, "tensor 1: with its");
    tensors[1].bytes = (uint64_t)INT64_MAX - 15;
    BAD(threads = 0, "tensor 1: with its");
    options = good;
    REFUSED(utils->layout(&options, NULL, &bytes, failed), DS_ACCEL_ERR_INVALID,
            "utils: layout: tensor 1");
    CHECK(bytes == 77, "an output was written");
    tensors[1].bytes--;
    CHECK(utils->layout(&good, NULL, &bytes, NULL) == DS_ACCEL_OK && bytes == INT64_MAX,
          "the largest sum: %llu", (unsigned long long)bytes);
    CHECK(utils->layout(&good, NULL, NULL, NULL) == DS_ACCEL_OK, "no output");
    REFUSED(utils->layout(NULL, NULL, &bytes, failed), DS_ACCEL_ERR_INVALID, "options is NULL");
    REFUSED(utils->flatten(NULL, failed), DS_ACCEL_ERR_INVALID, "options is NULL");
    ERROR_SIZES(utils->flatten(NULL, failed), DS_ACCEL_ERR_INVALID);
}

int main(int argc, char **argv)
{
    utils = (const struct ds_accel_utils *)open_op(argc > 1 ? argv[1] : NULL, "utils");
    CHECK(utils->op.struct_size == sizeof(*utils), "struct_size");
    check_copies();
    check_places();
    check_refusals();
    return finish("utils");
}
