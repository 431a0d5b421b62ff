/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Checks of the op fused_adam: fused_adam FILE.so ... */
#include "ds-accel/ops/fused_adam.h"
#include "ops/adam_reference.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DS_ACCEL_FUSED_ADAM_L2 == ADAM_L2 &&
                   DS_ACCEL_FUSED_ADAM_NO_BIAS_CORRECTION == ADAM_NO_BIAS_CORRECTION,
               "the flags");

static void set_options(union options *options)
{
    struct ds_accel_fused_adam_options *adam = (struct ds_accel_fused_adam_options *)options;

    adam->beta1 = BETA1;
    adam->beta2 = BETA2;
    adam->epsilon = EPSILON;
}

static int32_t step(const struct ds_accel_op *op, const union options *options,
                    struct ds_accel_error *error)
{
    return ((const struct ds_accel_fused_adam *)op)
        ->step((const struct ds_accel_fused_adam_options *)options, error);
}

static int32_t sum(const struct ds_accel_op *op, const union options *options,
                   struct ds_accel_gradient_sum *gradient_sum, struct ds_accel_error *error)
{
    return ((const struct ds_accel_fused_adam *)op)
        ->sum_gradients((const struct ds_accel_fused_adam_options *)options, gradient_sum, error);
}

/* A stream is nothing for the CPU; no path changes that. */
static bool refuses_stream(const char *file)
{
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    ds_accel_op_entry_v1_fn entry = NULL;
    struct ds_accel_fused_adam_options options = {
        .common = {.struct_size = sizeof(options), .step = 1, .gradient_scale = 1},
        .stream = &options,
    };
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (library)
        entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
    return entry &&
           ((const struct ds_accel_fused_adam *)entry())->step(&options, &error) ==
               DS_ACCEL_ERR_INVALID &&
           strstr(error.message, "wanted NULL on the CPU");
}

SPOIL(struct ds_accel_fused_adam_options, no_beta1, own->beta1 = 1)
SPOIL(struct ds_accel_fused_adam_options, no_beta2, own->beta2 = NAN)
SPOIL(struct ds_accel_fused_adam_options, large_epsilon, own->epsilon = 1e39)
SPOIL(struct ds_accel_fused_adam_options, small_epsilon, own->epsilon = 1e-46)
SPOIL(struct ds_accel_fused_adam_options, large_step, own->beta1 = 1 - 0x1p-53;
      own->common.learning_rate = 1e30)

int main(int argc, char **argv)
{
    static const struct optimizer adam = {
        .name = "fused_adam",
        .states = 2,
        .second_state_positive = true,
        .flags = {0, ADAM_L2, ADAM_NO_BIAS_CORRECTION, ADAM_L2 | ADAM_NO_BIAS_CORRECTION},
        .flags_count = 4,
        .options_bytes = sizeof(struct ds_accel_fused_adam_options),
        .options = set_options,
        .reference = adam_reference,
        .step = step,
        .sum = sum,
        .spoiled =
            {
                {no_beta1, "beta1 is 1; wanted", false},
                {no_beta2, "beta2 is nan; wanted", false},
                {large_epsilon, "epsilon is 1e+39; wanted", false},
                {small_epsilon, "epsilon is 1e-46, which is 0 as a float", false},
                {large_step, "learning_rate is 1e+30 and beta1 1; wanted", false},
                {NULL, NULL, false},
            },
    };

    /* A driver that runs kernels on the CPU, for the op of CUDA. */
    if (getenv("OPS_CUDA_DRIVER") && !dlopen(getenv("OPS_CUDA_DRIVER"), RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (optimizer_main(&adam, argc, argv) != 0)
        return 1;
    if (!refuses_stream(argc > 1 ? argv[1] : NULL)) {
        fprintf(stderr, "fused_adam: a stream was not refused\n");
        return 1;
    }
    return 0;
}
