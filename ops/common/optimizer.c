/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "common/optimizer.h"

#include "common/error.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Elements of a chunk: its arrays fit into the second cache of a core. A multiple of the elements
 * that share one block of random numbers. */
#define CHUNK 16384u
/* The arrays of so many elements do not stay in the last cache until they are used again. */
#define STREAMED 1048576u
/* Steps over fewer elements take less time than starting threads. */
#define ALONE 65536u

int32_t ops__invalid(const struct ops__call *call, struct ds_accel_error *error, const char *format,
                     ...)
{
    va_list values;

    va_start(values, format);
    ops__error_list(error, DS_ACCEL_ERR_INVALID, call->name, format, values);
    va_end(values);
    return DS_ACCEL_ERR_INVALID;
}

bool ops__is_float(double number)
{
    return fabs(number) <= FLT_MAX;
}

int32_t ops__check_epsilon(const struct ops__call *call, double epsilon,
                           struct ds_accel_error *error)
{
    if (!ops__is_float(epsilon) || epsilon < 0)
        return ops__invalid(call, error, "epsilon is %g; wanted 0 to the largest float", epsilon);
    if (epsilon > 0 && (float)epsilon == 0)
        return ops__invalid(call, error, "epsilon is %g, which is 0 as a float; wanted 0 or %g",
                            epsilon, (double)FLT_TRUE_MIN);
    return DS_ACCEL_OK;
}

static size_t element_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DS_ACCEL_DTYPE_FLOAT32:
        return 4;
    case DS_ACCEL_DTYPE_FLOAT16:
    case DS_ACCEL_DTYPE_BFLOAT16:
        return 2;
    default:
        return 0;
    }
}

static const struct ds_accel_optimizer_tensor *tensor_at(const struct ds_accel_optimizer_step *step,
                                                         uint64_t index)
{
    return (const struct ds_accel_optimizer_tensor *)((const char *)step->tensors +
                                                      index * step->tensor_bytes);
}

static int32_t check_tensor(const struct ops__call *call,
                            const struct ds_accel_optimizer_step *step, uint64_t index,
                            struct ds_accel_error *error)
{
    const struct ds_accel_optimizer_tensor *tensor = tensor_at(step, index);
    unsigned long long number = index;

    if (element_bytes(tensor->parameter_dtype) == 0)
        return ops__invalid(call, error,
                            "tensor %llu: parameter_dtype is %u; wanted float32 (1), float16 (2) "
                            "or bfloat16 (3)",
                            number, tensor->parameter_dtype);
    if (element_bytes(tensor->gradient_dtype) == 0)
        return ops__invalid(call, error,
                            "tensor %llu: gradient_dtype is %u; wanted float32 (1), float16 (2) "
                            "or bfloat16 (3)",
                            number, tensor->gradient_dtype);
    if (tensor->state_dtype != DS_ACCEL_DTYPE_FLOAT32 &&
        tensor->state_dtype != tensor->parameter_dtype)
        return ops__invalid(call, error,
                            "tensor %llu: state_dtype is %u; wanted float32 (1) or the "
                            "parameter_dtype, %u",
                            number, tensor->state_dtype, tensor->parameter_dtype);
    if (tensor->copy && element_bytes(tensor->copy_dtype) == 0)
        return ops__invalid(call, error,
                            "tensor %llu: copy_dtype is %u; wanted float32 (1), float16 (2) or "
                            "bfloat16 (3)",
                            number, tensor->copy_dtype);
    if ((step->flags & DS_ACCEL_OPTIMIZER_STOCHASTIC) &&
        tensor->parameter_dtype != DS_ACCEL_DTYPE_BFLOAT16)
        return ops__invalid(call, error,
                            "tensor %llu: only bfloat16 parameters are rounded stochastically; "
                            "parameter_dtype is %u",
                            number, tensor->parameter_dtype);
    if (tensor->count > SIZE_MAX / 4 || tensor->first_element > UINT64_MAX - tensor->count)
        return ops__invalid(call, error, "tensor %llu: %llu elements from number %llu are too many",
                            number, (unsigned long long)tensor->count,
                            (unsigned long long)tensor->first_element);
    if (tensor->count > 0 && (!tensor->parameter || !tensor->gradient || !tensor->state[0] ||
                              (call->states > 1 && !tensor->state[1])))
        return ops__invalid(call, error, "tensor %llu: parameter, gradient or state is NULL",
                            number);
    return DS_ACCEL_OK;
}

int32_t ops__optimizer_check(const struct ops__call *call,
                             const struct ds_accel_optimizer_step *step,
                             struct ds_accel_error *error)
{
    uint64_t total = 0;

    if (!step)
        return ops__invalid(call, error, "options is NULL");
    if (step->struct_size < call->struct_bytes)
        return ops__invalid(call, error, "struct_size is %u; wanted %zu or more", step->struct_size,
                            call->struct_bytes);
    if (step->flags & ~call->flags)
        return ops__invalid(call, error, "flags has unknown bits: 0x%x",
                            step->flags & ~call->flags);
    if (step->tensor_count > 0 && !step->tensors)
        return ops__invalid(call, error, "tensors is NULL, tensor_count is %llu",
                            (unsigned long long)step->tensor_count);
    if (step->tensor_count > 0 && (step->tensor_bytes < sizeof(struct ds_accel_optimizer_tensor) ||
                                   step->tensor_bytes % sizeof(uint64_t) != 0))
        return ops__invalid(call, error, "tensor_bytes is %u; wanted %zu or more, a multiple of 8",
                            step->tensor_bytes, sizeof(struct ds_accel_optimizer_tensor));
    if (step->step == 0)
        return ops__invalid(call, error, "step is 0; the first one is 1");
    if (!ops__is_float(step->learning_rate) || step->learning_rate < 0)
        return ops__invalid(call, error, "learning_rate is %g; wanted 0 to the largest float",
                            step->learning_rate);
    if (!ops__is_float(step->weight_decay) || step->weight_decay < 0)
        return ops__invalid(call, error, "weight_decay is %g; wanted 0 to the largest float",
                            step->weight_decay);
    if (!ops__is_float(step->learning_rate * step->weight_decay))
        return ops__invalid(call, error,
                            "learning_rate * weight_decay is %g; wanted 0 to the largest float",
                            step->learning_rate * step->weight_decay);
    if (!ops__is_float(step->gradient_scale))
        return ops__invalid(call, error, "gradient_scale is %g; wanted a finite float",
                            step->gradient_scale);
    if (!isfinite(step->max_norm) || step->max_norm < 0)
        return ops__invalid(call, error, "max_norm is %g; wanted 0 or more", step->max_norm);
    for (uint64_t i = 0; i < step->tensor_count; i++) {
        int32_t status = check_tensor(call, step, i, error);

        if (status)
            return status;
        if (tensor_at(step, i)->count > UINT64_MAX / 2 - total)
            return ops__invalid(call, error, "the tensors have too many elements");
        total += tensor_at(step, i)->count;
    }
    return DS_ACCEL_OK;
}

int32_t ops__optimizer_check_undo(const struct ops__call *call,
                                  const struct ds_accel_optimizer_step *step,
                                  struct ds_accel_error *error)
{
    if (step->found_infinite)
        return ops__invalid(call, error, "found_infinite is set; wanted NULL");
    if (step->gradient_norm)
        return ops__invalid(call, error, "gradient_norm is set; wanted NULL");
    if (step->gradient_sum)
        return ops__invalid(call, error, "gradient_sum is set; wanted NULL");
    if (step->max_norm != 0)
        return ops__invalid(call, error,
                            "max_norm is %g; wanted 0, and in gradient_scale the coefficient by "
                            "which the step clipped",
                            step->max_norm);
    if (step->flags & DS_ACCEL_OPTIMIZER_SKIP_INFINITE)
        return ops__invalid(call, error,
                            "flags has SKIP_INFINITE; a step that was skipped is not undone");
    for (uint64_t i = 0; i < step->tensor_count; i++)
        if (tensor_at(step, i)->copy)
            return ops__invalid(call, error, "tensor %llu: copy is set; wanted NULL",
                                (unsigned long long)i);
    return DS_ACCEL_OK;
}

static void set_chunk(const struct ds_accel_optimizer_step *step,
                      const struct ds_accel_optimizer_tensor *tensor, uint64_t from,
                      struct ops__chunk *chunk)
{
    size_t parameter_offset = from * element_bytes(tensor->parameter_dtype);
    size_t state_offset = from * element_bytes(tensor->state_dtype);

    memset(chunk, 0, sizeof(*chunk));
    chunk->count = tensor->count - from < CHUNK ? tensor->count - from : CHUNK;
    chunk->first_element = tensor->first_element + from;
    chunk->parameter = (char *)tensor->parameter + parameter_offset;
    chunk->gradient = (const char *)tensor->gradient + from * element_bytes(tensor->gradient_dtype);
    for (unsigned i = 0; i < 2; i++)
        if (tensor->state[i])
            chunk->state[i] = (char *)tensor->state[i] + state_offset;
    chunk->streams_copy = tensor->count >= STREAMED;
    if (tensor->copy)
        chunk->copy = (char *)tensor->copy + from * element_bytes(tensor->copy_dtype);
    chunk->parameter_dtype = tensor->parameter_dtype;
    chunk->gradient_dtype = tensor->gradient_dtype;
    chunk->state_dtype = tensor->state_dtype;
    chunk->copy_dtype = tensor->copy_dtype;
    chunk->stochastic = (step->flags & DS_ACCEL_OPTIMIZER_STOCHASTIC) != 0;
    chunk->seed = step->seed;
    chunk->step = step->step;
    chunk->found_infinite = step->found_infinite;
}

static uint64_t chunks_of(const struct ds_accel_optimizer_tensor *tensor)
{
    return tensor->count / CHUNK + (tensor->count % CHUNK != 0);
}

void ops__optimizer_run_chunks(const struct ds_accel_optimizer_step *step, ops__kernel_fn kernel,
                               const void *constants, uint64_t first, uint64_t end)
{
    uint64_t before = 0; /* chunks of the tensors before this one */

    for (uint64_t i = 0; i < step->tensor_count && before < end; i++) {
        const struct ds_accel_optimizer_tensor *tensor = tensor_at(step, i);
        uint64_t count = chunks_of(tensor);
        uint64_t from = first > before ? first - before : 0;
        uint64_t to = end - before < count ? end - before : count;

        for (uint64_t number = from; number < to; number++) {
            struct ops__chunk chunk;

            set_chunk(step, tensor, number * CHUNK, &chunk);
            kernel(constants, &chunk);
        }
        before += count;
    }
}

struct run {
    const struct ds_accel_optimizer_step *step;
    ops__kernel_fn kernel;
    const void *constants;
};

static void run_part(const void *work, uint64_t first, uint64_t end)
{
    const struct run *run = (const struct run *)work;

    ops__optimizer_run_chunks(run->step, run->kernel, run->constants, first, end);
}

void ops__optimizer_divide(const struct ds_accel_optimizer_step *step, ops__part_fn part,
                           const void *work)
{
    uint64_t elements = 0;
    uint64_t chunks = 0;

    for (uint64_t i = 0; i < step->tensor_count; i++) {
        elements += tensor_at(step, i)->count;
        chunks += chunks_of(tensor_at(step, i));
    }
    ops__threads_run(part, work, chunks, elements < ALONE ? 1 : ops__threads_usable(step->threads));
}

void ops__optimizer_run(const struct ds_accel_optimizer_step *step, ops__kernel_fn kernel,
                        const void *constants)
{
    const struct run run = {step, kernel, constants};

    ops__optimizer_divide(step, run_part, &run);
}
