/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops.h"

#include <ds-accel/ops/cpu_adagrad.h>
#include <ds-accel/ops/cpu_adam.h>
#include <ds-accel/ops/cpu_lion.h>

#include <dlfcn.h>
#include <string.h>

static int32_t step_adam(const struct ds_accel_op *op, const struct ds_accel_optimizer_step *step,
                         struct ds_accel_error *error)
{
    struct ds_accel_cpu_adam_options options = {*step, 0.9, 0.999, 1e-8};

    options.common.struct_size = sizeof(options);
    options.common.weight_decay = 0.01;
    return ((const struct ds_accel_cpu_adam *)op)->step(&options, error);
}

static int32_t step_lion(const struct ds_accel_op *op, const struct ds_accel_optimizer_step *step,
                         struct ds_accel_error *error)
{
    struct ds_accel_cpu_lion_options options = {*step, 0.9, 0.99};

    options.common.struct_size = sizeof(options);
    options.common.weight_decay = 0.01;
    return ((const struct ds_accel_cpu_lion *)op)->step(&options, error);
}

static int32_t step_adagrad(const struct ds_accel_op *op,
                            const struct ds_accel_optimizer_step *step,
                            struct ds_accel_error *error)
{
    struct ds_accel_cpu_adagrad_options options = {*step, 1e-10};

    options.common.struct_size = sizeof(options);
    return ((const struct ds_accel_cpu_adagrad *)op)->step(&options, error);
}

/* Adam is AdamW here. The sign that Lion takes counts as one operation. */
const struct ops_op ops_ops[OPS_OPS] = {
    {"cpu_adam", LIMIT_ADAM, 2, 15, step_adam},
    {"cpu_lion", LIMIT_LION, 1, 11, step_lion},
    {"cpu_adagrad", LIMIT_ADAGRAD, 1, 8, step_adagrad},
};

const struct ds_accel_op *ops_load(const char *build, const char *name)
{
    char path[BENCH_PATH_SIZE];
    ds_accel_op_entry_v1_fn entry;
    const struct ds_accel_op *op;
    void *library;

    if (snprintf(path, sizeof(path), "%s/lib/ds-accel/ops/%s.so", build, name) >=
        (int)sizeof(path)) {
        bench_die("%s: the path is too long", build);
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        bench_die("%s", dlerror());
    }
    entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
    if (entry == NULL) {
        bench_die("%s", dlerror());
    }
    op = entry();
    if (op->abi_major != DS_ACCEL_OP_ABI_MAJOR || strcmp(op->name, name) != 0) {
        bench_die("%s: it is the op %s of ABI %u", path, op->name, op->abi_major);
    }
    return op;
}
