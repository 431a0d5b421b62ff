/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op fused_adam for CUDA: checks a step as the CPU's op does, and launches the kernels. */
#include "fused_adam/fused_adam.h"

#include "common/error.h"
#include "common/float_mode.h"
#include "fused_adam/cuda/driver.h"
#include "fused_adam/cuda/kernel.h"

#include <limits.h>

_Static_assert(sizeof(struct ops__fused_launch) <= 32764, "a kernel's parameters");
_Static_assert(sizeof(struct ops__fused_tensor) == 64, "the same on the CPU and on the device");

/* cudaStreamLegacy and cudaStreamPerThread, besides NULL: streams of the current context. */
#define LAST_SPECIAL_STREAM ((uintptr_t)2)

#define UNKNOWN_MULTIPROCESSORS 128
#define MOST_MULTIPROCESSORS (1 << 20)
#define MOST_STEPS ((uint64_t)1 << 50) /* more than any device has memory for */

/* A call of the op, which has checked its arguments. */
struct run {
    const char *name; /* of the call, for messages */
    const struct ops__cuda *cuda;
    const struct ds_accel_optimizer_step *common;
    void *stream;
    struct ds_accel_error *error;
};

static const struct ds_accel_optimizer_tensor *
tensor_at(const struct ds_accel_optimizer_step *common, uint64_t index)
{
    return (const struct ds_accel_optimizer_tensor *)((const char *)common->tensors +
                                                      index * common->tensor_bytes);
}

static uint64_t blocks_of(const struct ds_accel_optimizer_tensor *tensor, uint32_t elements)
{
    return tensor->count / elements + (tensor->count % elements != 0);
}

/* Elements that a thread reads as a whole begin at a multiple of their size at least. */
static int32_t check_tensor(const struct ops__call *call,
                            const struct ds_accel_optimizer_tensor *tensor, uint64_t index,
                            struct ds_accel_error *error)
{
    uintptr_t state = (uintptr_t)tensor->state[0] | (uintptr_t)tensor->state[1];
    unsigned long long number = index;

    if (blocks_of(tensor, OPS__FUSED_ELEMENTS) > INT_MAX)
        return ops__invalid(call, error, "tensor %llu: %llu elements are too many", number,
                            (unsigned long long)tensor->count);
    if (((uintptr_t)tensor->parameter & (stored_bytes(tensor->parameter_dtype) - 1)) ||
        ((uintptr_t)tensor->gradient & (stored_bytes(tensor->gradient_dtype) - 1)) ||
        (state & (stored_bytes(tensor->state_dtype) - 1)) ||
        (tensor->copy && ((uintptr_t)tensor->copy & (stored_bytes(tensor->copy_dtype) - 1))))
        return ops__invalid(call, error,
                            "tensor %llu: an array's address is no multiple of its element's size",
                            number);
    return DS_ACCEL_OK;
}

static void add_tensor(struct ops__fused_launch *launch,
                       const struct ds_accel_optimizer_tensor *tensor, uint32_t first_block)
{
    launch->tensors[launch->tensor_count++] = (struct ops__fused_tensor){
        .parameter = (char *)tensor->parameter,
        .gradient = (const char *)tensor->gradient,
        .state = {(char *)tensor->state[0], (char *)tensor->state[1]},
        .copy = (char *)tensor->copy,
        .count = tensor->count,
        .first_element = tensor->first_element,
        .first_block = first_block,
        .parameter_dtype = (uint8_t)tensor->parameter_dtype,
        .gradient_dtype = (uint8_t)tensor->gradient_dtype,
        .state_dtype = (uint8_t)tensor->state_dtype,
        .copy_dtype = (uint8_t)(tensor->copy ? tensor->copy_dtype : 0),
    };
}

static int32_t failed(const struct run *run, const char *function, int code)
{
    return ops__cuda_failed(run->cuda, run->name, function, code, run->error);
}

/* Launch a kernel for all tensors: once, unless their number or size is too large. elements: of a
 * block of threads. */
static int32_t launch_all(const struct run *run, void *kernel, uint32_t elements,
                          struct ops__fused_launch *launch)
{
    void *parameters[] = {launch};
    uint64_t blocks = 0;

    launch->tensor_count = 0;
    for (uint64_t i = 0; i <= run->common->tensor_count; i++) {
        bool behind = i == run->common->tensor_count;
        uint64_t more = behind ? 0 : blocks_of(tensor_at(run->common, i), elements);

        if (blocks > 0 &&
            (behind || launch->tensor_count == OPS__FUSED_TENSORS || blocks + more > INT_MAX)) {
            int code = run->cuda->launch(kernel, (unsigned)blocks, 1, 1, OPS__FUSED_THREADS, 1, 1,
                                         0, run->stream, parameters, NULL);

            if (code != 0)
                return failed(run, "cuLaunchKernel", code);
            launch->tensor_count = 0;
            blocks = 0;
        }
        if (more > 0)
            add_tensor(launch, tensor_at(run->common, i), (uint32_t)blocks);
        blocks += more;
    }
    return DS_ACCEL_OK;
}

/* ---- the norm ------------------------------------------------------------------------------- */

/* As ops__gradients_examine() decides. */
static bool must_examine(const struct ds_accel_optimizer_step *common)
{
    return common->max_norm != 0 || common->gradient_norm ||
           (common->flags & DS_ACCEL_OPTIMIZER_SKIP_INFINITE) != 0 ||
           (common->gradient_sum && common->found_infinite);
}

/* Allocate what the launches of a step tell each other, in the stream's order. */
static int32_t allocate_examined(const struct run *run, struct ops__fused_launch *launch)
{
    unsigned long long memory;
    int code = run->cuda->allocate(&memory, sizeof(*launch->examined), run->stream);

    if (code != 0)
        return failed(run, "cuMemAllocAsync", code);
    launch->examined = (struct ops__fused_examined *)(uintptr_t)memory;
    code = run->cuda->fill(memory, 0, sizeof(*launch->examined), run->stream);
    return code != 0 ? failed(run, "cuMemsetD8Async", code) : DS_ACCEL_OK;
}

/* Release it behind what has been queued. A failure before this one is kept. */
static int32_t release_examined(const struct run *run, const struct ops__fused_launch *launch,
                                int32_t status)
{
    int code = launch->examined ? run->cuda->release((uintptr_t)launch->examined, run->stream) : 0;

    return status == DS_ACCEL_OK && code != 0 ? failed(run, "cuMemFreeAsync", code) : status;
}

/* Multiprocessors of the current context's device. Where the driver does not report them, it is
 * about as many as large devices have: they decide about the time only. */
static uint32_t multiprocessors(const struct run *run)
{
    int count = 0;
    int device;

    if (run->cuda->current_device(&device) != 0 ||
        run->cuda->device_attribute(&count, OPS__CUDA_MULTIPROCESSOR_COUNT, device) != 0 ||
        count < 1 || count > MOST_MULTIPROCESSORS)
        return UNKNOWN_MULTIPROCESSORS;
    return (uint32_t)count;
}

/* Return how many elements each block adds up, so that the device is busy with all blocks at once,
 * or with equal groups of them. The sum is exact, so it is the same for every number. */
static uint32_t sum_elements(const struct run *run)
{
    uint64_t at_once = (uint64_t)multiprocessors(run) * OPS__FUSED_SUM_BLOCKS;
    uint64_t steps = 0; /* of a block's threads, for all elements */
    uint64_t groups;
    uint64_t elements;

    for (uint64_t i = 0; i < run->common->tensor_count && steps < MOST_STEPS; i++)
        steps += blocks_of(tensor_at(run->common, i), OPS__FUSED_SUM_STEP);
    groups = steps / (at_once * (OPS__FUSED_SUM_MOST / OPS__FUSED_SUM_STEP)) + 1;
    elements = (steps / (at_once * groups) + 1) * OPS__FUSED_SUM_STEP;
    return elements < OPS__FUSED_SUM_LEAST ? OPS__FUSED_SUM_LEAST : (uint32_t)elements;
}

static int32_t launch_sums(const struct run *run, struct ops__fused_launch *launch)
{
    launch->sum_elements = sum_elements(run);
    return launch_all(run, run->cuda->sum, launch->sum_elements, launch);
}

/* Queue what computes the norm and what follows from it. */
static int32_t examine(const struct run *run, struct ops__fused_launch *launch)
{
    const struct ds_accel_optimizer_step *common = run->common;
    struct ops__fused_finish finish = {
        .gradient_scale = common->gradient_scale,
        .max_norm = common->max_norm,
        .gradient_norm = common->gradient_norm,
        .found_infinite = common->found_infinite,
        .skips_infinite = (common->flags & DS_ACCEL_OPTIMIZER_SKIP_INFINITE) != 0,
        .has_sum = common->gradient_sum != NULL,
    };
    void *parameters[] = {&finish};
    int32_t status = allocate_examined(run, launch);
    int code;

    if (!status && common->gradient_sum)
        finish.sum = *common->gradient_sum;
    else if (!status)
        status = launch_sums(run, launch);
    if (status)
        return status;
    finish.examined = launch->examined;
    launch->found_infinite = NULL;
    code = run->cuda->launch(run->cuda->finish, 1, 1, 1, 1, 1, 1, 0, run->stream, parameters, NULL);
    return code != 0 ? failed(run, "cuLaunchKernel", code) : DS_ACCEL_OK;
}

/* Wait until the sums have been computed, and add them up. */
static int32_t read_sums(const struct run *run, const struct ops__fused_launch *launch,
                         struct ds_accel_gradient_sum *total_out)
{
    struct ops__fused_examined examined;
    int code =
        run->cuda->read(&examined, (uintptr_t)launch->examined, sizeof(examined), run->stream);

    if (code != 0)
        return failed(run, "cuMemcpyDtoHAsync", code);
    code = run->cuda->synchronize(run->stream);
    if (code != 0)
        return failed(run, "cuStreamSynchronize", code);
    ops__fused_total(&examined, total_out);
    return DS_ACCEL_OK;
}

/* ---- the op --------------------------------------------------------------------------------- */

/* Check the arguments of a call, and fill *run and what all launches have in common. */
static int32_t begin(const char *name, const struct ds_accel_fused_adam_options *options,
                     struct run *run, struct ops__fused_launch *launch,
                     struct ds_accel_error *error)
{
    const struct ops__call call = {
        .name = name,
        .states = 2,
        .flags = DS_ACCEL_FUSED_ADAM_L2 | DS_ACCEL_FUSED_ADAM_NO_BIAS_CORRECTION |
                 DS_ACCEL_OPTIMIZER_STOCHASTIC | DS_ACCEL_OPTIMIZER_SKIP_INFINITE,
        .struct_bytes = sizeof(struct ds_accel_fused_adam_options),
    };
    const struct ds_accel_optimizer_step *common = (const struct ds_accel_optimizer_step *)options;
    struct ops__adam_options adam;
    int32_t status = ops__optimizer_check(&call, common, error);

    if (status)
        return status;
    adam = (struct ops__adam_options){options->beta1, options->beta2, options->epsilon};
    status = ops__adam_check(&call, common, &adam, error);
    for (uint64_t i = 0; !status && i < common->tensor_count; i++)
        status = check_tensor(&call, tensor_at(common, i), i, error);
    if (status)
        return status;
    *run = (struct run){.name = name, .common = common, .stream = options->stream, .error = error};
    launch->adam = ops__adam_prepare(common, &adam);
    launch->stochastic = (common->flags & DS_ACCEL_OPTIMIZER_STOCHASTIC) != 0;
    launch->seed = common->seed;
    launch->step = common->step;
    launch->found_infinite = common->found_infinite;
    launch->examined = NULL;
    launch->sum_elements = launch->reserved = 0;
    return DS_ACCEL_OK;
}

/* Make the stream's context current: it may not be in this thread. Some contexts have no such
 * pointer: then it must be. Return whether end_context() is to be called. */
static bool begin_context(const struct run *run)
{
    void *context = NULL;

    return (uintptr_t)run->stream > LAST_SPECIAL_STREAM &&
           run->cuda->stream_context(run->stream, &context) == 0 &&
           run->cuda->push_context(context) == 0;
}

static void end_context(const struct run *run)
{
    void *context;

    run->cuda->pop_context(&context);
}

static int32_t fused_step(const struct ds_accel_fused_adam_options *options,
                          struct ds_accel_error *error)
{
    OPS__STANDARD_FLOATS;
    struct ops__fused_launch launch;
    struct run run;
    bool pushed;
    int32_t status = begin("fused_adam: step", options, &run, &launch, error);

    if (!status)
        status = ops__cuda_open(run.name, &run.cuda, error);
    if (status)
        return status;
    pushed = begin_context(&run);
    if (must_examine(run.common))
        status = examine(&run, &launch);
    if (!status)
        status = launch_all(&run, run.cuda->update, OPS__FUSED_ELEMENTS, &launch);
    status = release_examined(&run, &launch, status);
    if (pushed)
        end_context(&run);
    return status;
}

static int32_t fused_sum_gradients(const struct ds_accel_fused_adam_options *options,
                                   struct ds_accel_gradient_sum *sum, struct ds_accel_error *error)
{
    static const struct ops__call call = {.name = "fused_adam: sum_gradients"};
    OPS__STANDARD_FLOATS;
    struct ds_accel_gradient_sum more = {.nan_count = 0};
    struct ops__fused_launch launch;
    struct run run;
    bool pushed;
    int32_t status = begin(call.name, options, &run, &launch, error);

    if (!status && !sum)
        status = ops__invalid(&call, error, "sum is NULL");
    if (!status)
        status = ops__cuda_open(run.name, &run.cuda, error);
    if (status)
        return status;
    pushed = begin_context(&run);
    status = allocate_examined(&run, &launch);
    if (!status)
        status = launch_sums(&run, &launch);
    if (!status)
        status = read_sums(&run, &launch, &more);
    status = release_examined(&run, &launch, status);
    if (pushed)
        end_context(&run);
    if (!status)
        ops__sum_more(sum, &more);
    return status;
}

static const char *path(void)
{
    return "cuda";
}

static const char *const *paths(void)
{
    static const char *const names[] = {"cuda", NULL};

    return names;
}

static const struct ds_accel_fused_adam table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_fused_adam),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "fused_adam",
            .paths = paths,
            .path = path,
        },
    .step = fused_step,
    .sum_gradients = fused_sum_gradients,
};

DS_ACCEL_OP("fused_adam", &table.op);
