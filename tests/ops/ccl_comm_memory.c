/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/ccl_comm_memory.h"

#include "ops/ccl_comm_results.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <unistd.h>

#define MOST_RANKS 64

/* ---- allocations of the op ------------------------------------------------------------------- */

/* Where the op's code is. */
static uintptr_t code_begin;
static uintptr_t code_end;

/* Of calls from there. */
static atomic_uint allocations;
static atomic_uint failing; /* 0: none */
/* Blocks that are allocated. The last call of a function has the return address of its caller, so
 * who frees a block is not known. */
static _Atomic(void *) blocks[256];

static int find_code(struct dl_phdr_info *object, size_t bytes, void *base)
{
    (void)bytes;
    if (object->dlpi_addr != (uintptr_t)base)
        return 0;
    code_begin = object->dlpi_addr;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t end = code_begin + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;

        if (object->dlpi_phdr[i].p_type == PT_LOAD && end > code_end)
            code_end = end;
    }
    return 1;
}

static bool find_op(void)
{
    Dl_info place;

    return dladdr((const void *)ccl, &place) && dl_iterate_phdr(find_code, place.dli_fbase) == 1;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FAIL false /* a sanitizer has its own malloc() */
#else
#define CAN_FAIL true

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static bool is_of_op(const void *caller)
{
    return (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end;
}

static bool must_fail(const void *caller)
{
    if (!is_of_op(caller))
        return false;
    if (++allocations != failing)
        return false;
    errno = ENOMEM;
    return true;
}

static void *note_block(const void *caller, void *block)
{
    void *none = NULL;

    for (size_t i = 0; block && is_of_op(caller) && i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        if (atomic_compare_exchange_strong(&blocks[i], &none, block))
            break;
        none = NULL;
    }
    return block;
}

static void forget_block(void *block)
{
    for (size_t i = 0; block && i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        void *noted = block;

        if (atomic_compare_exchange_strong(&blocks[i], &noted, NULL))
            break;
    }
}

#define CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    return must_fail(CALLER) ? NULL : note_block(CALLER, __libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return must_fail(CALLER) ? NULL : note_block(CALLER, __libc_calloc(count, bytes));
}

void *realloc(void *block, size_t bytes)
{
    void *larger = must_fail(CALLER) ? NULL : __libc_realloc(block, bytes);

    if (larger)
        forget_block(block);
    return note_block(CALLER, larger);
}

int posix_memalign(void **block_out, size_t alignment, size_t bytes)
{
    void *block = must_fail(CALLER) ? NULL : note_block(CALLER, __libc_memalign(alignment, bytes));

    if (!block)
        return ENOMEM;
    *block_out = block;
    return 0;
}

void free(void *block)
{
    forget_block(block);
    __libc_free(block);
}

#pragma GCC visibility pop
#endif

/* ---- what is left ---------------------------------------------------------------------------- */

static unsigned count_blocks(void)
{
    unsigned found = 0;

    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        found += blocks[i] != NULL;
    return found;
}

/* Open files of kinds that the op uses. */
static unsigned count_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned found = 0;

    while (list && (entry = readdir(list))) {
        char target[256];
        ssize_t length = readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1);

        if (length < 0)
            continue;
        target[length] = '\0';
        found += strstr(target, "memfd:") || strstr(target, "pidfd");
    }
    if (list)
        closedir(list);
    return found;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Return whether an allocation has failed on any rank. */
static bool any_has_failed(ds_accel_comm_t *comm, bool failed)
{
    int32_t own = failed;
    int32_t any = 0;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_INT32,
        .reduction = DS_ACCEL_COMM_MAX,
        .in = &own,
        .out = &any,
        .count = 1,
    };

    CHECK(ccl->all_reduce(comm, &call, &error) == DS_ACCEL_OK, "%s", error.message);
    return any != 0;
}

/* Create a communicator while an allocation of a rank fails. Returns false if there are fewer. */
static bool check_create(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
                         const struct ds_accel_ccl_comm_options *options, uint32_t victim,
                         unsigned number)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_comm_t *other = NULL;
    unsigned blocks_before = count_blocks();
    unsigned files_before = count_files();
    char name[32];
    bool has_failed;
    int32_t status;

    snprintf(name, sizeof(name), "rank %u: ", victim);
    allocations = 0;
    failing = info->rank == victim ? number : 0;
    status = ccl->create(options, &other, &error);
    failing = 0;
    has_failed = any_has_failed(comm, info->rank == victim && allocations >= number);
    if (has_failed)
        CHECK(status == DS_ACCEL_ERR_NO_MEMORY && strstr(error.message, name),
              "allocation %u of rank %u: status %d, \"%s\"", number, victim, status, error.message);
    else
        CHECK(status == DS_ACCEL_OK, "%s", error.message);
    ccl->destroy(other);
    CHECK(count_blocks() == blocks_before, "allocation %u of rank %u: %u blocks, not %u", number,
          victim, count_blocks(), blocks_before);
    CHECK(count_files() == files_before, "allocation %u of rank %u: files are left", number,
          victim);
    return has_failed;
}

/* One call of each kind. */
static void check_calls(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    float in[MOST_RANKS] = {0};
    float out[MOST_RANKS];
    struct ds_accel_comm_call call = {
        .struct_size = sizeof(call),
        .dtype = DS_ACCEL_DTYPE_FLOAT32,
        .reduction = DS_ACCEL_COMM_SUM,
        .in = in,
        .out = out,
        .count = 1,
    };

    assert(info->size <= MOST_RANKS);
    allocations = 0;
    CHECK(ccl->all_reduce(comm, &call, &error) == 0 &&
              ccl->reduce_scatter(comm, &call, &error) == 0 &&
              ccl->all_gather(comm, &call, &error) == 0 &&
              ccl->broadcast(comm, &call, &error) == 0 && ccl->barrier(comm, NULL, &error) == 0,
          "%s", error.message);
    CHECK(allocations == 0, "calls have allocated %u blocks", allocations);
}

void ccl_check_memory(ds_accel_comm_t *comm, const struct ds_accel_ccl_comm_info *info,
                      const struct ds_accel_ccl_comm_options *options)
{
    CHECK(find_op(), "the op is not found");
    for (uint32_t victim = 0; victim < info->size && CAN_FAIL; victim++) {
        unsigned number = 1;

        while (check_create(comm, info, options, victim, number))
            number++;
        CHECK(number > 2, "rank %u has %u allocations", victim, number - 1);
    }
    check_calls(comm, info);
}
