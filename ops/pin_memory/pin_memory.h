/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op pin_memory: locked host memory.
 *
 * A block is private memory whose pages are present and locked (mlock()): they are never swapped
 * out, and reading or writing them causes no page fault. Locked pages count against the process's
 * RLIMIT_MEMLOCK, unless it has CAP_IPC_LOCK and is in no user namespace of its own. A block is not
 * registered with a device's runtime: ds_accel_mem_register() does that.
 *
 * The blocks belong to the process, not to a handle: all callers in the process share one account
 * and may free each other's blocks. Closing the shared object with dlclose() changes nothing. A
 * second copy of the file in another path has an account of its own.
 *
 * After fork(), the parent keeps its blocks as they are. The child has copies of them, with the
 * same contents and addresses, but locks are not inherited: the copies can be swapped out. In the
 * child, therefore, is_pinned() is 0 for them and usage() does not count them; free() releases the
 * child's copy only. Blocks that the child allocates itself are locked and counted. Until the child
 * ends or calls execve(), the parent's first write to a page of a block causes a page fault and can
 * move the data to another physical page. With DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN the child does
 * not have the block, and neither happens, which matters if a device accesses the block.
 */
#ifndef DS_ACCEL_OPS_PIN_MEMORY_H
#define DS_ACCEL_OPS_PIN_MEMORY_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Use the system's small pages, even where larger ones make access and locking faster. */
#define DS_ACCEL_PIN_MEMORY_SMALL_PAGES 1u
/** Children made by fork() do not have the block: their access to it is a segmentation fault. */
#define DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN 2u

/** What the op has locked in this process. */
struct ds_accel_pin_memory_usage {
    uint32_t
        struct_size; /**< set by the caller, and left as it is; what is behind is not written */
    uint32_t reserved;
    uint64_t blocks;
    uint64_t bytes;        /**< sum of the sizes that alloc() was called with */
    uint64_t locked_bytes; /**< the same in whole pages: what counts against the limit */
    uint64_t peak_blocks;  /**< the largest values so far */
    uint64_t peak_bytes;
    uint64_t peak_locked_bytes;
    uint64_t limit_bytes; /**< RLIMIT_MEMLOCK (soft); UINT64_MAX: no limit */
};

struct ds_accel_pin_memory {
    struct ds_accel_op op;
    /**
     * Allocate a block. Its bytes are 0. Blocks of 2 MiB and more begin at a multiple of 2 MiB and
     * use 2 MiB pages if the system has some to spare.
     *
     * @param[in]  bytes        > 0; whole pages are locked
     * @param[in]  alignment    a power of two, or 0: that of a page, which is also the least
     * @param[in]  flags        DS_ACCEL_PIN_MEMORY_*
     * @param[out] pointer_out  the block; free() releases it. Written only on DS_ACCEL_OK
     * @return DS_ACCEL_OK; ERR_INVALID; ERR_LIMIT RLIMIT_MEMLOCK is too small: the message has the
     *         limit and what is locked; ERR_PERMISSION the process may not lock memory;
     *         ERR_NO_MEMORY the limit is not the cause. On an error nothing stays allocated or
     *         locked.
     */
    int32_t (*alloc)(uint64_t bytes, uint64_t alignment, uint32_t flags, void **pointer_out,
                     struct ds_accel_error *error);
    /**
     * Free a block. NULL is ignored.
     *
     * @return DS_ACCEL_OK; ERR_INVALID @p pointer is not the beginning of a block, or the block has
     *         been freed before, and nothing was changed; ERR_NO_MEMORY the kernel could not remove
     *         the mapping, and the block still exists
     */
    int32_t (*free)(void *pointer, struct ds_accel_error *error);
    /**
     * Return 1 if all of [@p pointer, @p pointer + @p bytes) lies in one block of this process,
     * else 0. If @p bytes is 0, @p pointer itself must lie in the block. Bytes between the size of
     * a block and the end of its last page are not part of the block.
     */
    uint32_t (*is_pinned)(const void *pointer, uint64_t bytes);
    /**
     * Report what is locked. All values are of one moment.
     *
     * @return DS_ACCEL_OK; ERR_INVALID @p usage_out is NULL or its struct_size too small
     */
    int32_t (*usage)(struct ds_accel_pin_memory_usage *usage_out, struct ds_accel_error *error);
};

#ifdef __cplusplus
}
#endif

#endif
