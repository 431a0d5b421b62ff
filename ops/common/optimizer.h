/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the optimizers share: checks of a step's arguments, and its division among threads. */
#ifndef OPS_OPTIMIZER_H
#define OPS_OPTIMIZER_H

#include "common/isa.h"
#include "common/threads.h"
#include "op.h"

#include <stdbool.h>
#include <stddef.h>

/* A part of a tensor, small enough that several threads share the tensor evenly. */
struct ops__chunk {
    char *parameter;
    const char *gradient;
    char *state[2];
    char *copy; /* NULL: no copy */
    uint32_t parameter_dtype;
    uint32_t gradient_dtype;
    uint32_t state_dtype;
    uint32_t copy_dtype;
    bool streams_copy; /* store it past the caches if possible, as it does not fit there */
    size_t count;
    uint64_t first_element;
    /* The random numbers of the elements, if parameters are rounded stochastically. */
    bool stochastic;
    uint64_t seed;
    uint64_t step;
    uint32_t *found_infinite;
};

/* Update a chunk. constants: what the op computed once for the whole step. */
typedef void (*ops__kernel_fn)(const void *constants, const struct ops__chunk *chunk);

/* A call of an optimizer. */
struct ops__call {
    const char *name;    /* "cpu_adam: step", for messages */
    unsigned states;     /* 1 or 2 of the tensors' states are used */
    uint32_t flags;      /* that the op knows */
    size_t struct_bytes; /* least struct_size of the options */
};

/* ERR_INVALID: an argument is not valid; *error has which, and what is allowed. */
int32_t ops__optimizer_check(const struct ops__call *call,
                             const struct ds_accel_optimizer_step *step,
                             struct ds_accel_error *error);
/* Whether a number is finite as a float, in which ops compute. */
bool ops__is_float(double number);
/* ERR_INVALID: the number is no epsilon of float. */
int32_t ops__check_epsilon(const struct ops__call *call, double epsilon,
                           struct ds_accel_error *error);
/* ERR_INVALID: checked arguments ask a rollback for something that only a step does. */
int32_t ops__optimizer_check_undo(const struct ops__call *call,
                                  const struct ds_accel_optimizer_step *step,
                                  struct ds_accel_error *error);
/* Set *error, if it is not NULL, to ERR_INVALID with a message; return ERR_INVALID. */
__attribute__((format(printf, 3, 4))) int32_t
ops__invalid(const struct ops__call *call, struct ds_accel_error *error, const char *format, ...);
/* Call the kernel for all chunks of the step's tensors, by several threads if it pays. */
void ops__optimizer_run(const struct ds_accel_optimizer_step *step, ops__kernel_fn kernel,
                        const void *constants);
/* The same for chunks [first, end) of all tensors' chunks in a row, by this thread. */
void ops__optimizer_run_chunks(const struct ds_accel_optimizer_step *step, ops__kernel_fn kernel,
                               const void *constants, uint64_t first, uint64_t end);
/* Call the function for adjacent ranges of all chunks, as ops__optimizer_run() divides them. */
void ops__optimizer_divide(const struct ds_accel_optimizer_step *step, ops__part_fn part,
                           const void *work);

#endif
