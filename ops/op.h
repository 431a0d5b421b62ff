/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What all ops have in common. An op is a shared object, lib/ds-accel/ops/<op>.so, with one public
 * symbol, ds_accel_op_entry_v1. It returns the op's table of functions, whose type is declared in
 * ds-accel/ops/<op>.h and whose first member is struct ds_accel_op:
 *
 *     ds_accel_op_entry_v1_fn entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
 *     const struct ds_accel_cpu_adam *adam = (const struct ds_accel_cpu_adam *)entry();
 *
 * Statuses, data types and struct ds_accel_error are those of plugin-api.h. Structures grow at
 * their end only: a caller compares struct_size before it uses a later member, and sets the
 * struct_size of the structures that it passes.
 *
 * Every function may be called by several threads at once unless their memory overlaps, and none
 * keeps a pointer after it returns. Ops have no state.
 */
#ifndef DS_ACCEL_OPS_OP_H
#define DS_ACCEL_OPS_OP_H

#include "../plugin-api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_ACCEL_OP_ABI_MAJOR 1u
#define DS_ACCEL_OP_ABI_MINOR 0u
#define DS_ACCEL_OP_ENTRY "ds_accel_op_entry_v1"

/** The head of every op's table. Static storage, never changed. */
struct ds_accel_op {
    uint32_t struct_size; /**< bytes of the op's whole table */
    uint16_t abi_major;   /**< DS_ACCEL_OP_ABI_MAJOR, else the table must not be used */
    uint16_t abi_minor;
    const char *name; /**< "cpu_adam" */
    /**
     * Return the names of the code paths that this CPU can run, best first: "avx512", "avx2",
     * "neon", "sve", "scalar". The list ends with NULL and always has "scalar". Static storage.
     */
    const char *const *(*paths)(void);
    /**
     * Return the path that calls take: the best of paths(), or a lower one if DS_ACCEL_OPS_ISA
     * names it. The variable is read once per process; a name that this CPU cannot run counts as
     * unset. Static storage.
     */
    const char *(*path)(void);
};

typedef const struct ds_accel_op *(*ds_accel_op_entry_v1_fn)(void);

/**
 * One tensor of an optimizer's step: contiguous elements in host memory, any alignment that suits
 * the element's type. The arrays of one call must not overlap each other, except that nothing
 * forbids equal pointers of read-only gradients.
 */
struct ds_accel_optimizer_tensor {
    uint64_t count; /**< elements of each array */
    /**
     * Number of the first element within the parameters of the model or of this rank. Stochastic
     * rounding draws an element's random number by it, so that a slice is rounded as it is within
     * the whole. Not used otherwise.
     */
    uint64_t first_element;
    void *parameter;          /**< updated */
    const void *gradient;     /**< read only */
    void *state[2];           /**< updated; which moments they are, the op's header says */
    void *copy;               /**< receives the new parameters as well; NULL: no copy */
    uint32_t parameter_dtype; /**< DS_ACCEL_DTYPE_FLOAT32, FLOAT16 or BFLOAT16 */
    uint32_t gradient_dtype;  /**< any of these three */
    uint32_t state_dtype;     /**< DS_ACCEL_DTYPE_FLOAT32 or the parameters' */
    uint32_t copy_dtype;      /**< any of the three; not read if copy is NULL */
};

/** What the steps of all optimizers take. */
struct ds_accel_optimizer_step {
    uint32_t struct_size;
    uint32_t flags; /**< the op's DS_ACCEL_<OP>_* and DS_ACCEL_OPTIMIZER_* */
    /** Array of tensor_count tensors; the next one begins tensor_bytes behind the last. */
    const struct ds_accel_optimizer_tensor *tensors;
    uint64_t tensor_count;
    uint32_t tensor_bytes; /**< sizeof(struct ds_accel_optimizer_tensor) of the caller */
    uint32_t threads;      /**< most threads to use, as far as there are CPUs; 0: OpenMP's choice */
    uint64_t step;         /**< number of this step, from 1; the same for all of a step's tensors */
    double learning_rate;
    double weight_decay;
    /**
     * Factor of every gradient before its use: 1, or the reciprocal of the loss scale times the
     * coefficient by which clipping shortens the gradient.
     */
    double gradient_scale;
    uint64_t seed; /**< of stochastic rounding; with step and first_element it makes the number */
    /**
     * Set to 1 if a gradient is infinite or NaN, else left alone; NULL: do not look. The step is
     * carried out all the same, and such elements become NaN or infinite: a caller that wants to
     * skip it looks for them beforehand.
     */
    uint32_t *found_infinite;
};

/** Round bfloat16 parameters up or down at random, so that the mean is the exact value. */
#define DS_ACCEL_OPTIMIZER_STOCHASTIC 0x100u

#ifdef __cplusplus
}
#endif

#endif
