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
 * The entry never returns NULL. Use the table if its abi_major is DS_ACCEL_OP_ABI_MAJOR.
 * ds_accel_op_load() of ds_accel.h finds the file for the chosen accelerator, checks it and returns
 * this table. Other languages do the same; Python's ctypes with restype c_void_p, and structures
 * that have the members below in this order.
 *
 * Statuses, data types and struct ds_accel_error are those of plugin-api.h. A function that can
 * fail returns DS_ACCEL_OK, which is 0, or a negative status. Its last argument is NULL or an
 * error, which is written only after a failure: code is the returned status, message is one line of
 * text that names the call and the cause, and vendor_code and vendor_text are those of a driver's
 * failure, else 0 and "".
 *
 * Structures grow at their end only. The caller sets the struct_size of the structures that it
 * passes, also of the error, to their size as it was compiled. Of a larger structure than the op
 * knows, the op neither reads nor writes the rest; in a smaller one, nothing is written behind its
 * end. So an error whose struct_size is 0 stays as it is, and one that ends before message has no
 * text. Options that are smaller than those of version 1.0 are refused: ERR_INVALID. A caller
 * compares a table's struct_size before it uses a later member. Structures in an
 * array have their size beside the array (tensor_bytes). Others whose size is not in them
 * (ds_accel_gradient_sum), and those that begin another one (ds_accel_optimizer_step), do not grow.
 *
 * Every function may be called by several threads at once unless their memory overlaps, and none
 * keeps a pointer after it returns, except that work queued in a stream, and a request of async_io,
 * use their memory until they are done. Ops have no state, except pin_memory, whose blocks belong
 * to the process, shm_comm and ccl_comm, whose communicators belong to their creator, async_io,
 * whose handles are each used by one thread at a time, and the settings of
 * ds_accel_op_configure_v1(). A shared object stays loaded after dlclose().
 *
 * Ops on the CPU round to nearest and keep denormals, whatever the calling thread's floating-point
 * mode, which they restore. They raise no floating-point exceptions.
 *
 * Ops may be called in a child of fork(). If the op was loaded before, the child's first thread
 * does its work without other threads, whatever their wanted number, because those of OpenMP do not
 * survive fork(); threads that the child creates use several. An op that is first loaded in the
 * child cannot know of the fork: call it with threads set to 1, or from a thread that the child
 * created, if the parent used OpenMP.
 *
 * If the process may not start as many threads as are wanted (RLIMIT_NPROC, pids.max, too little
 * memory), an op uses fewer, with the same result, and 0.1 s later tries again. OpenMP itself ends
 * the process in this case, so an op first starts and ends as many threads as a team needs anew.
 * That does not help if another part of the process, another process of the user or another op
 * takes the last thread or the last memory in between, or if a smaller parallel region of the
 * caller or of another op, in the same thread, has just made OpenMP end threads that still run.
 * Programs that live at such a limit set threads to 1.
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
     * "neon", "sve", "scalar". The list ends with NULL and always has "scalar"; an op in ops/cuda/
     * has "cuda" only. Static storage.
     */
    const char *const *(*paths)(void);
    /**
     * Return the path that calls take: the best of paths(), or a lower one if DS_ACCEL_OPS_ISA
     * names it. The variable is read once per process. A value that is not one of paths() counts as
     * unset, and ds_accel_op_load() logs a warning if there is more than one path; a program with
     * more rights than its caller (AT_SECURE) does not read the variable. Static storage.
     */
    const char *(*path)(void);
};

typedef const struct ds_accel_op *(*ds_accel_op_entry_v1_fn)(void);

#define DS_ACCEL_OP_CONFIGURE "ds_accel_op_configure_v1"

/** A setting of an op, from "op_settings" in the configuration. Does not grow. */
struct ds_accel_op_setting {
    const char *name;  /**< "block_bytes" */
    const char *value; /**< a text as it is; a number in decimal; "true" or "false" */
};

/**
 * Set the process's defaults for options that calls leave out. An op may export a function of this
 * type as ds_accel_op_configure_v1; DS_ACCEL_OP_CONFIGURE_FUNCTION declares it. ds_accel_op_load()
 * calls it in each context that loads the op and whose configuration has settings for the op. Of
 * several calls the last one counts. Programs that open the op with dlopen() get no settings,
 * unless they call it themselves. Options that a caller gives have precedence. Settings that are
 * left out get the op's own defaults.
 *
 * @param[in] settings  settings[count], with distinct names, not used after the call
 * @return DS_ACCEL_OK; ERR_INVALID an unknown name or a bad value: no setting is changed, and the
 *         error's vendor_text is the name of the setting
 * @threads  any; also while other threads use the op
 */
typedef int32_t (*ds_accel_op_configure_v1_fn)(const struct ds_accel_op_setting *settings,
                                               uint32_t count, struct ds_accel_error *error);

/** Declare the function that configures the op, before its definition. */
#define DS_ACCEL_OP_CONFIGURE_FUNCTION \
    DS_ACCEL_ENTRY_LINKAGE DS_ACCEL_EXPORT int32_t ds_accel_op_configure_v1( \
        const struct ds_accel_op_setting *settings, uint32_t count, struct ds_accel_error *error)

/**
 * The note of an op's file, by which a host recognizes it before it runs any of its code. Owner and
 * section are those of a plugin's note (plugin-api.h).
 */
#define DS_ACCEL_OP_NOTE_TYPE 0x44530003u

/** The note's descriptor: append only. */
struct ds_accel_op_note_desc {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    char name[32]; /**< of the op, NUL-terminated: [a-z][a-z0-9_]{0,30}, equal to the file's */
};

/** The whole note in ELF's layout. */
struct ds_accel_op_note {
    uint32_t owner_size;
    uint32_t desc_size;
    uint32_t type;
    char owner[12];
    struct ds_accel_op_note_desc desc;
};

/**
 * Define the op: once per shared object, at file scope, followed by a semicolon. Emits the note and
 * the entry.
 *
 * @param name_  string literal, the op's name: "cpu_adam"
 * @param head_  const struct ds_accel_op *, the address of the table's head
 */
#define DS_ACCEL_OP(name_, head_) \
    DS_ACCEL_STATIC_ASSERT(sizeof(name_) <= 32, "op name too long"); \
    static const struct ds_accel_op_note ds_accel_op_note_ DS_ACCEL_NOTE_SECTION = { \
        sizeof(DS_ACCEL_NOTE_NAME), \
        sizeof(struct ds_accel_op_note_desc), \
        DS_ACCEL_OP_NOTE_TYPE, \
        DS_ACCEL_NOTE_NAME, \
        {sizeof(struct ds_accel_op_note_desc), DS_ACCEL_OP_ABI_MAJOR, DS_ACCEL_OP_ABI_MINOR, \
         name_}}; \
    DS_ACCEL_ENTRY_LINKAGE DS_ACCEL_EXPORT const struct ds_accel_op *ds_accel_op_entry_v1(void); \
    DS_ACCEL_ENTRY_LINKAGE DS_ACCEL_EXPORT const struct ds_accel_op *ds_accel_op_entry_v1(void) \
    { \
        return head_; \
    } \
    DS_ACCEL_STATIC_ASSERT(1, "the macro ends in a semicolon")

/**
 * One tensor of an optimizer's step: arrays of count contiguous elements in host memory, at
 * multiples of the element's size. A larger alignment changes no result, but a copy of float32
 * parameters in 16 bits is stored faster at a multiple of 64 bytes. What is written must not
 * overlap another array of the call, which is not checked; gradients may overlap each other. If
 * count is 0, the arrays are not used and may be NULL.
 */
struct ds_accel_optimizer_tensor {
    uint64_t count; /**< elements of each array; 0: the tensor is skipped */
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

#define DS_ACCEL_GRADIENT_SUM_WORDS 22

/**
 * The exact sum of the squares of gradients, before gradient_scale. Begins as zeros; an optimizer's
 * sum_gradients() adds to it. Sums of disjoint gradients are added up, in any order, by adding each
 * of the 24 numbers: a collective sum of int64 over up to 2^30 ranks. As nothing is rounded, the
 * total is the same for every path, number of threads, and division into tensors, slices and ranks.
 */
struct ds_accel_gradient_sum {
    /** The sum of words[i] * 2^(32 * i - 384). sum_gradients() leaves 0 to 2^32 - 1 in each. */
    int64_t words[DS_ACCEL_GRADIENT_SUM_WORDS];
    int64_t infinite_count; /**< not 0: gradients were infinite; their call added no squares */
    int64_t nan_count;      /**< the same for NaN, with or without infinite gradients */
};

/** What the steps of all optimizers take. */
struct ds_accel_optimizer_step {
    uint32_t struct_size;
    uint32_t flags; /**< the op's DS_ACCEL_<OP>_* and DS_ACCEL_OPTIMIZER_* */
    /** Array of tensor_count tensors; the next one begins tensor_bytes behind the last. */
    const struct ds_accel_optimizer_tensor *tensors;
    uint64_t tensor_count;
    uint32_t tensor_bytes; /**< sizeof(struct ds_accel_optimizer_tensor), or a larger stride that
                                is a multiple of 8; the rest is not read */
    uint32_t threads;      /**< most threads to use, as far as there are CPUs; 0: OpenMP's choice */
    uint64_t step;         /**< number of this step, from 1; the same for all of a step's tensors */
    /* These three, and learning_rate * weight_decay, must be finite as floats. */
    double learning_rate; /**< 0 or more */
    double weight_decay;  /**< 0 or more */
    /** Factor of every gradient before its use: 1, or the reciprocal of the loss scale. */
    double gradient_scale;
    uint64_t seed; /**< of stochastic rounding; with step and first_element it makes the number */
    /**
     * Set to 1 if a gradient is infinite or NaN, else left alone; NULL: do not look. Without
     * DS_ACCEL_OPTIMIZER_SKIP_INFINITE the step is carried out all the same, and the states of such
     * elements become NaN or infinite; so do their parameters, except that Lion's take the step of
     * the sign of an infinite gradient.
     */
    uint32_t *found_infinite;
    /**
     * Clip the gradients to this L2 norm, as torch.nn.utils.clip_grad_norm_() does: gradient_scale
     * is multiplied by min(1, max_norm / (norm + 1e-6)), computed in double. 0: no clipping. If a
     * gradient is infinite and none NaN, the factor is 0, and with NaN it is NaN.
     *
     * This member, gradient_norm and DS_ACCEL_OPTIMIZER_SKIP_INFINITE need the sum of squares of
     * all gradients before the first update. Without gradient_sum, a step with any of them reads
     * its gradients once more.
     */
    double max_norm;
    /**
     * Receives the L2 norm of all gradients times |gradient_scale|, before clipping; infinite or
     * NaN if a gradient is. NULL: not wanted. The exact sum of squares is rounded once to double,
     * then its root and the product: gradients whose squares are too large for float have a norm
     * too, and all paths have the same bits.
     */
    double *gradient_norm;
    /**
     * NULL, or the sum of all gradients, if this call has only some of them: the norm, clipping,
     * skipping and found_infinite then follow from it, and this call's gradients are not examined.
     * A step without tensors only computes the norm.
     */
    const struct ds_accel_gradient_sum *gradient_sum;
};

/**
 * Round bfloat16 parameters up or down at random, so that the mean is the exact value. A call with
 * a tensor whose parameters have another type is refused: ERR_INVALID.
 */
#define DS_ACCEL_OPTIMIZER_STOCHASTIC 0x100u

/**
 * Change nothing if a gradient is infinite or NaN, but set found_infinite and gradient_norm. The
 * step returns DS_ACCEL_OK.
 */
#define DS_ACCEL_OPTIMIZER_SKIP_INFINITE 0x200u

#ifdef __cplusplus
}
#endif

#endif
