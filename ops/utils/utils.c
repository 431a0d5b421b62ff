/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op utils: flatten and unflatten. Threads share the flat buffer evenly, whatever the tensors'
 * sizes. */
#include "utils.h"

#include "common/error.h"
#include "common/isa.h"
#include "common/threads.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A thread copies a multiple of this many bytes of the flat buffer. */
#define PART ((uint64_t)64 << 10)
/* Copies of fewer bytes take less time than starting threads. */
#define ALONE ((uint64_t)1 << 20)

static const struct ds_accel_utils_tensor *tensor_at(const struct ds_accel_utils_options *options,
                                                     uint64_t index)
{
    return (const struct ds_accel_utils_tensor *)((const char *)options->tensors +
                                                  index * options->tensor_bytes);
}

/* Round an offset up to the options' alignment. UINT64_MAX: the result is too large. */
static uint64_t aligned(const struct ds_accel_utils_options *options, uint64_t offset)
{
    uint64_t rest = options->alignment > 1 ? offset % options->alignment : 0;

    if (rest == 0)
        return offset;
    return options->alignment - rest > INT64_MAX - offset ? UINT64_MAX
                                                          : offset + (options->alignment - rest);
}

static int32_t check(const char *call, const struct ds_accel_utils_options *options,
                     uint64_t *bytes_out, struct ds_accel_error *error)
{
    uint64_t end = 0;

    if (!options)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "options is NULL");
    if (options->struct_size < sizeof(*options))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", options->struct_size,
                          sizeof(*options));
    if (options->reserved != 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "reserved is %u; wanted 0",
                          options->reserved);
    if (options->tensor_count > 0 && !options->tensors)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "tensors is NULL, tensor_count is %" PRIu64, options->tensor_count);
    if (options->tensor_count > 0 && (options->tensor_bytes < sizeof(*options->tensors) ||
                                      options->tensor_bytes % sizeof(uint64_t) != 0))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "tensor_bytes is %u; wanted %zu or more, a multiple of 8",
                          options->tensor_bytes, sizeof(*options->tensors));
    for (uint64_t i = 0; i < options->tensor_count; i++) {
        uint64_t bytes = tensor_at(options, i)->bytes;

        end = bytes > INT64_MAX - end ? UINT64_MAX : aligned(options, end + bytes);
        if (end == UINT64_MAX)
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "tensor %" PRIu64 ": with its %" PRIu64 " bytes, aligned to %" PRIu64
                              ", the sum is 2^63 or more",
                              i, bytes, options->alignment);
    }
    *bytes_out = end;
    return DS_ACCEL_OK;
}

static int32_t utils_layout(const struct ds_accel_utils_options *options, uint64_t *offsets_out,
                            uint64_t *bytes_out, struct ds_accel_error *error)
{
    uint64_t bytes;
    uint64_t offset = 0;
    int32_t status = check("utils: layout", options, &bytes, error);

    if (status)
        return status;
    for (uint64_t i = 0; offsets_out && i < options->tensor_count; i++) {
        offsets_out[i] = offset;
        offset = aligned(options, offset + tensor_at(options, i)->bytes);
    }
    if (bytes_out)
        *bytes_out = bytes;
    return DS_ACCEL_OK;
}

static bool overlap(const char *one, uint64_t one_bytes, const char *other, uint64_t other_bytes)
{
    uintptr_t a = (uintptr_t)one;
    uintptr_t b = (uintptr_t)other;

    return a < b ? b - a < one_bytes : a - b < other_bytes;
}

/* Check what flatten and unflatten need beyond a layout. */
static int32_t check_copy(const char *call, const struct ds_accel_utils_options *options,
                          uint64_t *bytes_out, struct ds_accel_error *error)
{
    int32_t status = check(call, options, bytes_out, error);
    uint64_t offset = 0;

    if (status)
        return status;
    if (*bytes_out > SIZE_MAX || options->flat_bytes < *bytes_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "flat_bytes is %" PRIu64 "; the tensors need %" PRIu64,
                          options->flat_bytes, *bytes_out);
    if (*bytes_out > 0 && !options->flat)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "flat is NULL");
    for (uint64_t i = 0; i < options->tensor_count; i++) {
        const struct ds_accel_utils_tensor *tensor = tensor_at(options, i);

        if (tensor->bytes == 0)
            continue;
        if (!tensor->data)
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "tensor %" PRIu64 ": data is NULL, bytes is %" PRIu64, i,
                              tensor->bytes);
        if ((const char *)tensor->data != (const char *)options->flat + offset &&
            overlap((const char *)options->flat, *bytes_out, (const char *)tensor->data,
                    tensor->bytes))
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "tensor %" PRIu64 " overlaps flat; allowed is only its own place, "
                              "%" PRIu64 " bytes behind the beginning",
                              i, offset);
        offset = aligned(options, offset + tensor->bytes);
    }
    return DS_ACCEL_OK;
}

struct copy {
    const struct ds_accel_utils_options *options;
    uint64_t bytes;
    bool unflatten;
};

/* Copy what lies in parts [first, end) of the flat buffer. */
static void copy_parts(const void *work, uint64_t first, uint64_t end)
{
    const struct copy *copy = (const struct copy *)work;
    const struct ds_accel_utils_options *options = copy->options;
    uint64_t from = first * PART;
    uint64_t to = end > copy->bytes / PART ? copy->bytes : end * PART;
    uint64_t offset = 0;

    for (uint64_t i = 0; i < options->tensor_count && offset < to; i++) {
        const struct ds_accel_utils_tensor *tensor = tensor_at(options, i);
        uint64_t behind = offset + tensor->bytes;
        uint64_t next = aligned(options, behind);
        uint64_t begin = offset > from ? offset : from;
        uint64_t stop = behind < to ? behind : to;

        if (begin < stop) {
            char *flat = (char *)options->flat + begin;
            char *data = (char *)tensor->data + (begin - offset);

            if (flat != data)
                memcpy(copy->unflatten ? data : flat, copy->unflatten ? flat : data,
                       (size_t)(stop - begin));
        }
        begin = behind > from ? behind : from;
        stop = next < to ? next : to;
        if (!copy->unflatten && begin < stop)
            memset((char *)options->flat + begin, 0, (size_t)(stop - begin));
        offset = next;
    }
}

static int32_t copy_all(const char *call, const struct ds_accel_utils_options *options,
                        bool unflatten, struct ds_accel_error *error)
{
    struct copy copy = {.options = options, .unflatten = unflatten};
    int32_t status = check_copy(call, options, &copy.bytes, error);

    if (status)
        return status;
    ops__threads_run(copy_parts, &copy, copy.bytes / PART + (copy.bytes % PART != 0),
                     copy.bytes < ALONE ? 1 : ops__threads_usable(options->threads));
    return DS_ACCEL_OK;
}

static int32_t utils_flatten(const struct ds_accel_utils_options *options,
                             struct ds_accel_error *error)
{
    return copy_all("utils: flatten", options, false, error);
}

static int32_t utils_unflatten(const struct ds_accel_utils_options *options,
                               struct ds_accel_error *error)
{
    return copy_all("utils: unflatten", options, true, error);
}

static const struct ds_accel_utils table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_utils),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "utils",
            .paths = ops__scalar_names,
            .path = ops__scalar_name,
        },
    .layout = utils_layout,
    .flatten = utils_flatten,
    .unflatten = utils_unflatten,
};

DS_ACCEL_OP("utils", &table.op);
