/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The op pin_memory. Blocks are mappings, in an array that is sorted by address. Mapping, locking
 * and unmapping take long for large blocks, so they happen without the lock; a place in the array
 * is reserved meanwhile, and adding a block to the array cannot fail.
 */
#include "pin_memory.h"

#include "common/error.h"
#include "common/isa.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE_PAGE ((size_t)2 << 20)
#define FLAGS (DS_ACCEL_PIN_MEMORY_SMALL_PAGES | DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN)
#define PLACES 64 /* that are tried */

struct block {
    uintptr_t base;
    size_t bytes;        /* asked for */
    size_t mapped_bytes; /* in whole pages */
    bool inherited;      /* copied by fork(), so not locked */
    bool not_in_children;
};

/* Guards all that follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t count;
static size_t reserved; /* places that blocks being allocated or freed need */
static size_t capacity;
static struct ds_accel_pin_memory_usage account;

/* Written when the shared object is loaded, before any other thread can call it. */
static bool handles_fork;

/* ---- the array: all with the lock held ------------------------------------------------------- */

static bool reserve_place(void)
{
    if (count + reserved == capacity) {
        size_t larger = capacity ? capacity * 2 : 64;
        struct block *grown = (struct block *)realloc(blocks, larger * sizeof(*blocks));

        if (!grown)
            return false;
        blocks = grown;
        capacity = larger;
    }
    reserved++;
    return true;
}

/* Return the number of blocks that begin at or below an address. */
static size_t blocks_up_to(uintptr_t address)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (blocks[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the block that an address lies in, or NULL. */
static struct block *block_around(uintptr_t address)
{
    size_t before = blocks_up_to(address);

    if (before == 0 || address - blocks[before - 1].base >= blocks[before - 1].bytes)
        return NULL;
    return &blocks[before - 1];
}

static void count_block(const struct block *block)
{
    if (block->inherited)
        return;
    account.blocks++;
    account.bytes += block->bytes;
    account.locked_bytes += block->mapped_bytes;
    if (account.peak_blocks < account.blocks)
        account.peak_blocks = account.blocks;
    if (account.peak_bytes < account.bytes)
        account.peak_bytes = account.bytes;
    if (account.peak_locked_bytes < account.locked_bytes)
        account.peak_locked_bytes = account.locked_bytes;
}

/* Put a block into the place that is reserved for it. */
static void add_block(const struct block *block)
{
    size_t at = blocks_up_to(block->base);

    memmove(&blocks[at + 1], &blocks[at], (count - at) * sizeof(*blocks));
    blocks[at] = *block;
    count++;
    reserved--;
    count_block(block);
}

/* Remove a block; its place stays reserved. */
static void remove_block(struct block *block)
{
    if (!block->inherited) {
        account.blocks--;
        account.bytes -= block->bytes;
        account.locked_bytes -= block->mapped_bytes;
    }
    count--;
    reserved++;
    memmove(block, block + 1, (size_t)(&blocks[count] - block) * sizeof(*blocks));
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child has this thread only, so nothing is being allocated or freed any more. */
static void after_fork_child(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (blocks[i].not_in_children)
            continue;
        blocks[kept] = blocks[i];
        blocks[kept++].inherited = true;
    }
    count = kept;
    reserved = 0;
    memset(&account, 0, sizeof(account));
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void prepare_fork(void)
{
    handles_fork = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* Map zeroed pages; address and flags as for mmap(). Return NULL with errno set on failure. */
static char *map_pages(uintptr_t address, size_t bytes, int flags)
{
    void *mapped = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return mapped != MAP_FAILED ? (char *)mapped : NULL;
}

/* The same as map(), without mapping more meanwhile: after mlockall(MCL_FUTURE) that would count as
 * locked. Tries the multiples of alignment below a place that is large enough. */
static char *map_no_more(size_t bytes, size_t alignment)
{
    char *place = map_pages(0, bytes, 0);
    uintptr_t at;

    if (!place || ((uintptr_t)place & (alignment - 1)) == 0)
        return place;
    munmap(place, bytes);
    at = (uintptr_t)place & ~(uintptr_t)(alignment - 1);
    for (int i = 0; i < PLACES && at > alignment; i++, at -= alignment) {
        place = map_pages(at, bytes, MAP_FIXED_NOREPLACE);
        if (place == (char *)at)
            return place;
        if (place) /* Linux before 4.17 does not know the flag */
            munmap(place, bytes);
        else if (errno != EEXIST)
            return NULL;
    }
    errno = ENOMEM;
    return NULL;
}

/* Map zeroed pages at a multiple of alignment, or return NULL with errno set; EAGAIN: mapping locks
 * (MCL_FUTURE), and the limit does not allow it. */
static void *map(size_t bytes, size_t alignment, size_t page)
{
    size_t more = alignment > page ? alignment - page : 0;
    char *mapped;
    size_t before;

    if (bytes > SIZE_MAX - more) {
        errno = ENOMEM;
        return NULL;
    }
    mapped = map_pages(0, bytes + more, 0);
    if (!mapped && errno == EAGAIN && more > 0)
        return map_no_more(bytes, alignment);
    if (!mapped)
        return NULL;
    before = (alignment - ((uintptr_t)mapped & (alignment - 1))) & (alignment - 1);
    if (before > 0)
        munmap(mapped, before);
    if (more > before)
        munmap(mapped + before + bytes, more - before);
    return mapped + before;
}

/* Return the bytes that the process has locked, by this op and others. */
static uint64_t locked_by_process(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    uint64_t kib = 0;
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file))
        found = sscanf(line, "VmLck: %" SCNu64, &kib) == 1;
    if (file)
        fclose(file);
    if (found)
        return kib * 1024;
    pthread_mutex_lock(&lock);
    kib = account.locked_bytes;
    pthread_mutex_unlock(&lock);
    return kib;
}

/* Whether the calling thread may lock more than the limit. The kernel wants the capability outside
 * of all user namespaces, where a container's root does not have it. */
static bool is_privileged(void)
{
    static const ino_t first_namespace = 0xEFFFFFFD; /* the kernel's PROC_USER_INIT_INO */
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    struct stat info;

    return syscall(SYS_capget, &header, sets) == 0 &&
           (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0 &&
           stat("/proc/self/ns/user", &info) == 0 && info.st_ino == first_namespace;
}

static int32_t mlock_failed(const char *call, size_t bytes, int cause, struct ds_accel_error *error)
{
    struct rlimit limit;
    uint64_t locked = locked_by_process();
    uint64_t most;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        !is_privileged()) {
        most = limit.rlim_cur;
        if (bytes > most || locked > most - bytes)
            return ops__error(error, DS_ACCEL_ERR_LIMIT, call,
                              "cannot lock %zu bytes: RLIMIT_MEMLOCK is %" PRIu64
                              " bytes, and this process has locked %" PRIu64
                              "; raise it with \"ulimit -l\" or LimitMEMLOCK= of the systemd unit",
                              bytes, most, locked);
    }
    if (cause == EPERM)
        return ops__error(error, DS_ACCEL_ERR_PERMISSION, call,
                          "cannot lock %zu bytes: this process may not lock memory (mlock: %s)",
                          bytes, strerror(cause));
    return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                      "cannot lock %zu bytes: mlock: %s; RLIMIT_MEMLOCK is not the cause, but the "
                      "memory of the machine or the control group, or vm.max_map_count",
                      bytes, strerror(cause));
}

/* Map and lock a block whose bytes and flags are set. */
static int32_t make_block(const char *call, struct block *block, size_t alignment, uint32_t flags,
                          struct ds_accel_error *error)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool large = block->bytes >= LARGE_PAGE && !(flags & DS_ACCEL_PIN_MEMORY_SMALL_PAGES);
    void *pages = NULL;
    int cause;

    if (alignment < page)
        alignment = page;
    if (large && alignment < LARGE_PAGE)
        alignment = LARGE_PAGE;
    errno = ENOMEM;
    if (block->bytes <= SIZE_MAX - page) {
        block->mapped_bytes = (block->bytes + page - 1) / page * page;
        pages = map(block->mapped_bytes, alignment, page);
    }
    if (!pages && errno == EAGAIN)
        return mlock_failed(call, block->mapped_bytes, EAGAIN, error);
    if (!pages)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "cannot map %zu bytes, aligned to %zu: %s", block->bytes, alignment,
                          strerror(errno));
    /* Before the pages exist. If the kernel has no large pages, the block has small ones. */
    if (block->bytes >= LARGE_PAGE)
        madvise(pages, block->mapped_bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (block->not_in_children && madvise(pages, block->mapped_bytes, MADV_DONTFORK) != 0) {
        cause = errno;
        munmap(pages, block->mapped_bytes);
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "cannot keep %zu bytes from children: madvise: %s", block->bytes,
                          strerror(cause));
    }
    if (mlock(pages, block->mapped_bytes) != 0) {
        cause = errno;
        munmap(pages, block->mapped_bytes);
        return mlock_failed(call, block->mapped_bytes, cause, error);
    }
    block->base = (uintptr_t)pages;
    return DS_ACCEL_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static int32_t pin_alloc(uint64_t bytes, uint64_t alignment, uint32_t flags, void **pointer_out,
                         struct ds_accel_error *error)
{
    static const char call[] = "pin_memory: alloc";
    struct block block = {.not_in_children = (flags & DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN) != 0};
    bool reserved_one;
    int32_t status;

    if (!pointer_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "pointer_out is NULL");
    if (bytes == 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "bytes is 0; wanted 1 or more");
    if ((alignment & (alignment - 1)) != 0)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "alignment is %" PRIu64 "; wanted a power of two, or 0 for a page's",
                          alignment);
    if (flags & ~FLAGS)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "flags has unknown bits: 0x%x",
                          flags & ~FLAGS);
    if (bytes > SIZE_MAX || alignment > SIZE_MAX)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "%" PRIu64 " bytes, aligned to %" PRIu64 ", are more than addresses",
                          bytes, alignment);
    if (!handles_fork)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "pthread_atfork() failed when the op was loaded");
    pthread_mutex_lock(&lock);
    reserved_one = reserve_place();
    pthread_mutex_unlock(&lock);
    if (!reserved_one)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call,
                          "out of memory for the list of blocks");
    block.bytes = (size_t)bytes;
    status = make_block(call, &block, (size_t)alignment, flags, error);
    pthread_mutex_lock(&lock);
    if (status == DS_ACCEL_OK)
        add_block(&block);
    else
        reserved--;
    pthread_mutex_unlock(&lock);
    if (status == DS_ACCEL_OK)
        *pointer_out = (void *)block.base;
    return status;
}

/* The message of a pointer that free() refuses; block: the one that it lies in, or NULL. */
static int32_t refuse(const void *pointer, const struct block *block, struct ds_accel_error *error)
{
    static const char call[] = "pin_memory: free";

    if (!block)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "%p is not the beginning of a block; was the block freed before?",
                          pointer);
    return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                      "%p is %zu bytes behind the beginning of a block of %zu bytes; pass the "
                      "beginning, %p",
                      pointer, (size_t)((uintptr_t)pointer - block->base), block->bytes,
                      (void *)block->base);
}

static int32_t pin_free(void *pointer, struct ds_accel_error *error)
{
    struct block *found;
    struct block block;
    int failed;

    if (!pointer)
        return DS_ACCEL_OK;
    pthread_mutex_lock(&lock);
    found = block_around((uintptr_t)pointer);
    if (!found || found->base != (uintptr_t)pointer) {
        int32_t status = refuse(pointer, found, error);

        pthread_mutex_unlock(&lock);
        return status;
    }
    block = *found;
    remove_block(found);
    pthread_mutex_unlock(&lock);
    failed = munmap(pointer, block.mapped_bytes) ? errno : 0;
    pthread_mutex_lock(&lock);
    if (failed)
        add_block(&block);
    else
        reserved--;
    pthread_mutex_unlock(&lock);
    if (failed)
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, "pin_memory: free",
                          "cannot unmap %zu bytes at %p: %s", block.mapped_bytes, pointer,
                          strerror(failed));
    return DS_ACCEL_OK;
}

static uint32_t pin_is_pinned(const void *pointer, uint64_t bytes)
{
    const struct block *block;
    bool pinned;

    pthread_mutex_lock(&lock);
    block = block_around((uintptr_t)pointer);
    pinned = block && !block->inherited &&
             bytes <= block->bytes - (size_t)((uintptr_t)pointer - block->base);
    pthread_mutex_unlock(&lock);
    return pinned;
}

static int32_t pin_usage(struct ds_accel_pin_memory_usage *usage_out, struct ds_accel_error *error)
{
    static const char call[] = "pin_memory: usage";
    struct ds_accel_pin_memory_usage usage;
    struct rlimit limit;

    if (!usage_out)
        return ops__error(error, DS_ACCEL_ERR_INVALID, call, "usage_out is NULL");
    if (!DS_ACCEL_HAS(usage_out, struct ds_accel_pin_memory_usage, limit_bytes))
        return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                          "struct_size is %u; wanted %zu or more", usage_out->struct_size,
                          DS_ACCEL_SIZE_THROUGH(struct ds_accel_pin_memory_usage, limit_bytes));
    pthread_mutex_lock(&lock);
    usage = account;
    pthread_mutex_unlock(&lock);
    usage.limit_bytes = UINT64_MAX;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        usage.limit_bytes = limit.rlim_cur;
    ds_accel_write(usage_out, &usage, sizeof(usage));
    return DS_ACCEL_OK;
}

static const struct ds_accel_pin_memory table = {
    .op =
        {
            .struct_size = sizeof(struct ds_accel_pin_memory),
            .abi_major = DS_ACCEL_OP_ABI_MAJOR,
            .abi_minor = DS_ACCEL_OP_ABI_MINOR,
            .name = "pin_memory",
            .paths = ops__scalar_names,
            .path = ops__scalar_name,
        },
    .alloc = pin_alloc,
    .free = pin_free,
    .is_pinned = pin_is_pinned,
    .usage = pin_usage,
};

DS_ACCEL_OP("pin_memory", &table.op);
