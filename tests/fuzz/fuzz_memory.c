/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as a snapshot of a caching allocator. */
#include "fuzz.h"

#include "base/json.h"
#include "memtools/memory_read.h"
#include "runtime/oom.h"
#include "runtime/snapshot/memory_snapshot.h"

/* Check what the reader guarantees for every segment. */
static void check_segment(json_t *segment)
{
    struct ds_accel__memory_sums sums = {0};
    json_t *blocks = json_object_get(segment, "blocks");
    uint64_t at = ds_accel__json_size(segment, "address");

    ds_accel__memory_sum(segment, &sums);
    FUZZ_CHECK(sums.reserved_bytes > 0);
    FUZZ_CHECK(sums.allocated_bytes + sums.pending_bytes + sums.free_bytes == sums.reserved_bytes);
    FUZZ_CHECK(sums.allocated_bytes == ds_accel__json_size(segment, "allocated_size"));
    FUZZ_CHECK(sums.allocated_bytes + sums.pending_bytes ==
               ds_accel__json_size(segment, "active_size"));
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        json_t *block = json_array_get(blocks, i);

        FUZZ_CHECK(ds_accel__json_size(block, "address") == at);
        FUZZ_CHECK(ds_accel__json_size(block, "requested_size") <=
                   ds_accel__json_size(block, "size"));
        at += ds_accel__json_size(block, "size");
    }
}

static void check_formats(json_t *tree)
{
    for (uint32_t format = DS_ACCEL_SNAPSHOT_JSON; format <= DS_ACCEL_SNAPSHOT_PICKLE_SEGMENTS;
         format++) {
        void *data = NULL;
        size_t size = 0;
        int32_t status = ds_accel__memory_snapshot_write(tree, format, &data, &size);

        /* JSON may nest settings deeper than the pickle writer allows. */
        FUZZ_CHECK(status >= 0 ||
                   (status == DS_ACCEL_ERR_LIMIT && format == DS_ACCEL_SNAPSHOT_PICKLE));
        if (status < 0) {
            continue;
        }
        FUZZ_CHECK(((char *)data)[size] == '\0');
        if (format == DS_ACCEL_SNAPSHOT_SVG) {
            FUZZ_CHECK(strlen(data) == size && strncmp(data, "<svg ", 5) == 0);
            FUZZ_CHECK(strcmp((char *)data + size - 7, "</svg>\n") == 0);
        }
        if (format == DS_ACCEL_SNAPSHOT_JSON) {
            json_t *again = NULL;

            status = ds_accel__memory_snapshot_parse("again", data, size, &again);
            FUZZ_CHECK(status == DS_ACCEL_OK && json_equal(tree, again));
            json_decref(again);
        }
        ds_accel_free_data(data);
    }
}

/* If the input has addresses, check that blocks are at these addresses; the reader fills in missing
 * ones. */
static void check_addresses(const uint8_t *data, size_t size, json_t *tree)
{
    json_t *input = json_loadb((const char *)data, size, 0, NULL);
    json_t *given = json_is_array(input) ? input : json_object_get(input, "segments");

    for (size_t i = 0; i < json_array_size(given); i++) {
        json_t *segment = json_array_get(json_object_get(tree, "segments"), i);
        json_t *blocks = json_object_get(json_array_get(given, i), "blocks");

        for (size_t b = 0; b < json_array_size(blocks); b++) {
            json_t *address = json_object_get(json_array_get(blocks, b), "address");

            FUZZ_CHECK(
                address == NULL ||
                json_equal(address,
                           json_object_get(json_array_get(json_object_get(segment, "blocks"), b),
                                           "address")));
        }
    }
    json_decref(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *tree = NULL;
    json_t *again = NULL;
    int32_t status = ds_accel__memory_snapshot_parse("input", (const char *)data, size, &tree);

    if (status < 0) {
        FUZZ_CHECK(tree == NULL);
        FUZZ_CHECK(strncmp(ds_accel_last_error(), "input:", 6) == 0);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(json_object_get(tree, "segments")); i++) {
        check_segment(json_array_get(json_object_get(tree, "segments"), i));
    }
    check_addresses(data, size, tree);
    FUZZ_CHECK(ds_accel__memory_snapshot_complete(tree, NULL, &again) == DS_ACCEL_OK);
    FUZZ_CHECK(json_equal(tree, again));
    json_decref(again);
    check_formats(tree);
    json_decref(tree);
    return 0;
}
