/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of the op pin_memory: pin_memory FILE.so
 *
 * This program defines the functions of libc that the op maps and locks memory with, so that each
 * of them can fail; otherwise they call the kernel. The limit is checked in a child that gives up
 * the capability to ignore it.
 */
#include "ds-accel/ops/pin_memory.h"
#include "ops/checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const struct ds_accel_pin_memory *pin;
static const char *file_name;

/* ---- functions that fail on demand ----------------------------------------------------------- */

enum function {
    NONE,
    MMAP,
    MUNMAP,
    MLOCK,
    MADVISE,
    REALLOC
};
static enum function failing;
static int failure;
static atomic_llong mapped; /* bytes mapped minus bytes unmapped by these functions */

static bool must_fail(enum function function)
{
    if (failing != function)
        return false;
    errno = failure;
    return true;
}

#pragma GCC visibility push(default)

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *place;

    if (must_fail(MMAP))
        return MAP_FAILED;
    place = (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
    if (place != MAP_FAILED)
        mapped += (long long)bytes;
    return place;
}

int munmap(void *address, size_t bytes)
{
    if (must_fail(MUNMAP))
        return -1;
    mapped -= (long long)bytes;
    return (int)syscall(SYS_munmap, address, bytes);
}

int mlock(const void *address, size_t bytes)
{
    return must_fail(MLOCK) ? -1 : (int)syscall(SYS_mlock, address, bytes);
}

int madvise(void *address, size_t bytes, int advice)
{
    return must_fail(MADVISE) ? -1 : (int)syscall(SYS_madvise, address, bytes, advice);
}

void *realloc(void *pointer, size_t bytes)
{
    static void *(*real)(void *, size_t);

    if (must_fail(REALLOC))
        return NULL;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
    return real(pointer, bytes);
}

#pragma GCC visibility pop

/* ---- what the kernel says -------------------------------------------------------------------- */

static uint64_t status_kib(const char *member)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    unsigned long long kib = 0;

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, member, strlen(member)) == 0)
            sscanf(line + strlen(member), ": %llu", &kib);
    if (file)
        fclose(file);
    return kib;
}

static uint64_t locked(void)
{
    return status_kib("VmLck") * 1024;
}

/* Return whether the mapping around an address has a flag of smaps, as "hg". */
static bool has_flag(const void *address, const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    bool found = false;

    while (file && fgets(line, sizeof(line), file)) {
        unsigned long from;
        unsigned long to;

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    if (file)
        fclose(file);
    return found;
}

static struct ds_accel_pin_memory_usage usage(void)
{
    struct ds_accel_pin_memory_usage now = {.struct_size = sizeof(now)};

    CHECK(pin->usage(&now, NULL) == DS_ACCEL_OK, "usage");
    return now;
}

static void *alloc(uint64_t bytes, uint64_t alignment, uint32_t flags)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    void *pointer = NULL;
    int32_t status = pin->alloc(bytes, alignment, flags, &pointer, &error);

    CHECK(status == DS_ACCEL_OK && pointer, "%s", error.message);
    if (!pointer)
        exit(finish("pin_memory"));
    return pointer;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void check_blocks(uint64_t page)
{
    const uint64_t sizes[] = {1, page - 1, page, page + 1, MIB, 2 * MIB - 1, 2 * MIB, 3 * MIB + 1};
    const uint64_t alignments[] = {0, 1, 64, page, 16 * page, 2 * MIB, 64 * MIB};
    uint64_t largest = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t j = 0; j < sizeof(alignments) / sizeof(alignments[0]); j++) {
            uint64_t before = locked();
            uint64_t size = sizes[i];
            uint64_t pages = (size + page - 1) / page * page;
            uint64_t alignment = alignments[j] > page ? alignments[j] : page;
            char *block = alloc(size, alignments[j], 0);
            struct ds_accel_pin_memory_usage now = usage();

            CHECK((uintptr_t)block % alignment == 0, "%p, alignment %llu", (void *)block,
                  (unsigned long long)alignment);
            CHECK(locked() - before == pages, "%llu bytes: the kernel has locked %llu",
                  (unsigned long long)size, (unsigned long long)(locked() - before));
            CHECK(now.blocks == 1 && now.bytes == size && now.locked_bytes == pages,
                  "%llu blocks, %llu bytes, %llu locked", (unsigned long long)now.blocks,
                  (unsigned long long)now.bytes, (unsigned long long)now.locked_bytes);
            largest = largest > size ? largest : size;
            CHECK(now.peak_bytes == largest && now.peak_blocks == 1, "peak of %llu bytes",
                  (unsigned long long)now.peak_bytes);
            for (uint64_t byte = 0; byte<size; byte += size> 4096 ? 509 : 1)
                CHECK(block[byte] == 0, "byte %llu is not 0", (unsigned long long)byte);
            block[0] = 1;
            block[size - 1] = 2;
            CHECK(pin->is_pinned(block, size) == 1, "the whole block");
            CHECK(pin->is_pinned(block, 0) == 1, "its beginning");
            CHECK(pin->is_pinned(block + size - 1, 1) == 1, "its last byte");
            CHECK(pin->is_pinned(block, size + 1) == 0, "more than the block");
            CHECK(pin->is_pinned(block + size - 1, 2) == 0, "past its end");
            CHECK(pin->is_pinned(block + size, 0) == 0, "behind its end");
            CHECK(pin->is_pinned(block - 1, 2) == 0, "before its beginning");
            CHECK(pin->is_pinned(block + size - 1, UINT64_MAX) == 0, "an extent that wraps");
            CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
            CHECK(pin->is_pinned(block, 1) == 0, "a freed block");
            CHECK(locked() == before, "%llu bytes stay locked",
                  (unsigned long long)(locked() - before));
        }
    }
    CHECK(usage().blocks == 0 && usage().bytes == 0 && usage().locked_bytes == 0, "blocks stay");
    CHECK(pin->is_pinned(NULL, 0) == 0, "NULL");
}

static void check_large_pages(void)
{
    char *block;

    if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
        return;
    block = alloc(2 * MIB, 0, 0);
    CHECK((uintptr_t)block % (2 * MIB) == 0, "%p is not at a large page", (void *)block);
    CHECK(has_flag(block, " hg"), "2 MiB without large pages");
    CHECK(has_flag(block, " lo"), "not locked");
    CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
    block = alloc(2 * MIB, 0, DS_ACCEL_PIN_MEMORY_SMALL_PAGES);
    CHECK(!has_flag(block, " hg") && has_flag(block, " nh"), "large pages were not asked for");
    CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
}

/* A caller of a later version: what this one does not know stays as it is. */
static void check_large_usage(void)
{
    struct {
        struct ds_accel_pin_memory_usage usage;
        uint64_t later;
    } large = {.usage = {.struct_size = sizeof(large)}, .later = 7};

    CHECK(pin->usage(&large.usage, NULL) == DS_ACCEL_OK && large.later == 7 &&
              large.usage.struct_size == sizeof(large) && large.usage.bytes == usage().bytes,
          "a larger struct: struct_size %u, %llu bytes", large.usage.struct_size,
          (unsigned long long)large.usage.bytes);
}

static void check_refusals(void)
{
    void *pointer = &pointer;
    char *block = alloc(10000, 0, 0);
    struct ds_accel_pin_memory_usage before = usage();
    struct ds_accel_pin_memory_usage small = {.struct_size = sizeof(small) - 1};
    char text[64];

    REFUSED(pin->alloc(0, 0, 0, &pointer, failed), DS_ACCEL_ERR_INVALID,
            "pin_memory: alloc: bytes is 0; wanted 1 or more");
    REFUSED(pin->alloc(1, 0, 0, NULL, failed), DS_ACCEL_ERR_INVALID, "pointer_out is NULL");
    REFUSED(pin->alloc(1, 3, 0, &pointer, failed), DS_ACCEL_ERR_INVALID,
            "alignment is 3; wanted a power of two");
    REFUSED(pin->alloc(1, 0, 0x84, &pointer, failed), DS_ACCEL_ERR_INVALID,
            "flags has unknown bits: 0x84");
    for (unsigned less = 0; less < 3; less++)
        REFUSED(pin->alloc(UINT64_MAX - less * 4096, 0, 0, &pointer, failed),
                DS_ACCEL_ERR_NO_MEMORY, "cannot map");
    REFUSED(pin->alloc(UINT64_MAX / 2, (uint64_t)1 << 63, 0, &pointer, failed),
            DS_ACCEL_ERR_NO_MEMORY, "cannot map");
    CHECK(pointer == &pointer, "an output was written");
    snprintf(text, sizeof(text), "is 4096 bytes behind the beginning of a block of 10000");
    REFUSED(pin->free(block + 4096, failed), DS_ACCEL_ERR_INVALID, text);
    REFUSED(pin->free(&text, failed), DS_ACCEL_ERR_INVALID, "is not the beginning of a block");
    REFUSED(pin->free(block + 10000, failed), DS_ACCEL_ERR_INVALID, "not the beginning");
    CHECK(pin->free(NULL, NULL) == DS_ACCEL_OK, "NULL");
    REFUSED(pin->usage(NULL, failed), DS_ACCEL_ERR_INVALID, "usage_out is NULL");
    REFUSED(pin->usage(&small, failed), DS_ACCEL_ERR_INVALID, "struct_size is");
    ERROR_SIZES(pin->usage(NULL, failed), DS_ACCEL_ERR_INVALID);
    check_large_usage();
    CHECK(memcmp(&before, &(struct ds_accel_pin_memory_usage){0}, 8) != 0 &&
              usage().bytes == before.bytes && usage().blocks == before.blocks,
          "a refused call changed the account");
    CHECK(pin->is_pinned(block, 10000) == 1, "a refused call freed the block");
    CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
    REFUSED(pin->free(block, failed), DS_ACCEL_ERR_INVALID, "was the block freed before?");
}

/* Each function of the kernel or libc fails, and nothing is left of the call. */
static void check_failures(void)
{
    const struct {
        enum function function;
        int failure;
        uint32_t flags;
        int32_t status;
        const char *text;
    } cases[] = {
        {MMAP, ENOMEM, 0, DS_ACCEL_ERR_NO_MEMORY, "cannot map 8192 bytes"},
        {MLOCK, EAGAIN, 0, DS_ACCEL_ERR_NO_MEMORY, "cannot lock 8192 bytes: mlock: "},
        {MLOCK, EPERM, 0, DS_ACCEL_ERR_PERMISSION, "this process may not lock memory"},
        {MADVISE, ENOMEM, DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN, DS_ACCEL_ERR_NO_MEMORY, "children"},
    };
    void *blocks[65];
    void *pointer = NULL;
    unsigned made = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        long long before = mapped;
        int32_t status;

        failure = cases[i].failure;
        failing = cases[i].function;
        status = pin->alloc(8192, 0, cases[i].flags, &pointer, &error);
        failing = NONE;
        CHECK(status == cases[i].status, "status %d", status);
        CHECK(strstr(error.message, cases[i].text), "\"%s\"", error.message);
        CHECK(!pointer, "an output was written");
        CHECK(usage().blocks == 0, "a block stays");
        CHECK(mapped == before, "%lld bytes stay mapped", mapped - before);
        CHECK(locked() == 0, "%llu bytes stay locked", (unsigned long long)locked());
    }
    /* A failure of large pages is none of the block. */
    failing = MADVISE;
    pointer = alloc(2 * MIB, 0, 0);
    failing = NONE;
    CHECK(pin->free(pointer, NULL) == DS_ACCEL_OK, "free");
    /* The list of blocks grows at the 65th at the latest. */
    failure = ENOMEM;
    failing = REALLOC;
    while (made < 65 && pin->alloc(1, 0, 0, &blocks[made], NULL) == DS_ACCEL_OK)
        made++;
    REFUSED(pin->alloc(1, 0, 0, &pointer, failed), DS_ACCEL_ERR_NO_MEMORY, "the list of blocks");
    failing = NONE;
    CHECK(usage().blocks == made, "%llu blocks", (unsigned long long)usage().blocks);
    while (made > 0)
        CHECK(pin->free(blocks[--made], NULL) == DS_ACCEL_OK, "free");
    /* A block that cannot be unmapped stays a block. */
    pointer = alloc(5000, 0, 0);
    failing = MUNMAP;
    REFUSED(pin->free(pointer, failed), DS_ACCEL_ERR_NO_MEMORY, "cannot unmap 8192 bytes");
    failing = NONE;
    CHECK(pin->is_pinned(pointer, 5000) == 1 && usage().bytes == 5000, "the block is lost");
    CHECK(pin->free(pointer, NULL) == DS_ACCEL_OK && usage().blocks == 0, "free");
}

/* End a child process with the result of its checks, and the parent's checks with it. */
static void in_child(void (*run)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        alarm(60); /* ends a child that waits for a lock forever */
        failures = 0;
        run();
        _exit(failures > 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "status 0x%x", status);
}

static void meet_limit(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    struct rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    void *pointer = NULL;
    char *block;

    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
    CHECK(syscall(SYS_capset, &header, none) == 0, "capset");
    block = alloc(40 << 10, 0, 0);
    CHECK(usage().limit_bytes == 64 << 10, "%llu", (unsigned long long)usage().limit_bytes);
    REFUSED(pin->alloc(28 << 10, 0, 0, &pointer, failed), DS_ACCEL_ERR_LIMIT,
            "cannot lock 28672 bytes: RLIMIT_MEMLOCK is 65536 bytes, and this process has locked "
            "40960; raise it with \"ulimit -l\" or LimitMEMLOCK= of the systemd unit");
    CHECK(usage().blocks == 1 && locked() == 40 << 10, "a refused block stays");
    CHECK(pin->free(alloc(24 << 10, 0, 0), NULL) == DS_ACCEL_OK, "what fits");
    CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
    limit.rlim_cur = limit.rlim_max = 0;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
    REFUSED(pin->alloc(1, 0, 0, &pointer, failed), DS_ACCEL_ERR_LIMIT, "RLIMIT_MEMLOCK is 0 bytes");
}

/* mlock() fails although the limit allows the block, or does not apply to this process. */
static void fail_without_limit(void)
{
    static const char text[] = "RLIMIT_MEMLOCK is not the cause";
    struct rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    void *pointer = NULL;

    failure = ENOMEM;
    failing = MLOCK;
    REFUSED(pin->alloc(4096, 0, 0, &pointer, failed), DS_ACCEL_ERR_NO_MEMORY, text);
    failing = NONE;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
    if (pin->alloc(128 << 10, 0, 0, &pointer, NULL) != DS_ACCEL_OK) {
        puts("pin_memory: a privileged process is not checked: the limit applies to this one");
        return;
    }
    CHECK(pin->free(pointer, NULL) == DS_ACCEL_OK, "free");
    failing = MLOCK;
    REFUSED(pin->alloc(128 << 10, 0, 0, &pointer, failed), DS_ACCEL_ERR_NO_MEMORY, text);
    failing = NONE;
}

/* A process in a user namespace of its own has the capability there only. */
static void meet_limit_in_namespace(void)
{
    struct rlimit limit = {.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
    void *pointer = NULL;

    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
    if (unshare(CLONE_NEWUSER) != 0) {
        puts("pin_memory: a user namespace is not checked: none can be created");
        return;
    }
    REFUSED(pin->alloc(128 << 10, 0, 0, &pointer, failed), DS_ACCEL_ERR_LIMIT,
            "RLIMIT_MEMLOCK is 65536 bytes");
}

/* With mlockall(MCL_FUTURE), whatever is mapped counts as locked. */
static void meet_limit_of_mappings(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    struct rlimit limit = {.rlim_cur = 8 * MIB, .rlim_max = 8 * MIB};
    long long before = mapped;
    void *pointer = NULL;
    char *block;

    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit");
    CHECK(syscall(SYS_capset, &header, none) == 0, "capset");
    CHECK(mlockall(MCL_FUTURE) == 0, "mlockall: %s", strerror(errno));
    for (uint64_t alignment = 0; alignment <= 4 * MIB; alignment += 4 * MIB) {
        block = alloc(6 * MIB + 4096, alignment, 0);
        CHECK(((uintptr_t)block & (alignment > 0 ? alignment - 1 : 4095)) == 0, "%p",
              (void *)block);
        CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
    }
    REFUSED(pin->alloc(9 * MIB, 0, 0, &pointer, failed), DS_ACCEL_ERR_LIMIT,
            "cannot lock 9437184 bytes: RLIMIT_MEMLOCK is 8388608 bytes");
    CHECK(usage().blocks == 0 && mapped == before, "%lld bytes stay mapped", mapped - before);
}

static char *inherited;
static char *withheld;

static void use_inherited(void)
{
    unsigned char present;
    char *own;

    CHECK(inherited[4999] == 7, "the contents");
    CHECK(pin->is_pinned(inherited, 5000) == 0, "a lock is not inherited");
    CHECK(usage().blocks == 0 && usage().bytes == 0 && usage().peak_blocks == 0, "the account");
    CHECK(locked() == 0, "%llu bytes are locked", (unsigned long long)locked());
    own = alloc(100, 0, 0);
    CHECK(pin->is_pinned(own, 100) == 1 && usage().blocks == 1 && locked() > 0, "a block of ours");
    REFUSED(pin->free(inherited + 1, failed), DS_ACCEL_ERR_INVALID, "is 1 bytes behind");
    CHECK(pin->free(inherited, NULL) == DS_ACCEL_OK && usage().blocks == 1, "free");
    CHECK(mincore(inherited, 1, &present) == -1 && errno == ENOMEM, "the copy stays mapped");
    CHECK(mincore(withheld, 1, &present) == -1 && errno == ENOMEM, "the child has the block");
    REFUSED(pin->free(withheld, failed), DS_ACCEL_ERR_INVALID, "is not the beginning");
    CHECK(pin->free(own, NULL) == DS_ACCEL_OK, "free");
}

static void check_fork(void)
{
    inherited = alloc(5000, 0, 0);
    withheld = alloc(5000, 0, DS_ACCEL_PIN_MEMORY_NOT_IN_CHILDREN);
    inherited[4999] = 7;
    in_child(use_inherited);
    CHECK(pin->is_pinned(inherited, 5000) == 1 && pin->is_pinned(withheld, 5000) == 1, "parent's");
    CHECK(inherited[4999] == 7 && usage().blocks == 2, "the parent's blocks");
    CHECK(pin->free(inherited, NULL) == DS_ACCEL_OK, "free");
    CHECK(pin->free(withheld, NULL) == DS_ACCEL_OK, "free");
}

static atomic_bool stop;

static void *churn(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *held[8] = {NULL};
    uint64_t bytes[8] = {0};

    for (unsigned turn = 0; turn < 1000 || !stop; turn++) {
        unsigned at;

        state = state * 1664525u + 1013904223u;
        at = (state >> 24) % 8;
        if (held[at]) {
            CHECK(pin->is_pinned(held[at], bytes[at]) == 1, "a block of this thread");
            CHECK((unsigned char)held[at][bytes[at] - 1] == (unsigned char)(uintptr_t)argument,
                  "a byte of this thread");
            CHECK(pin->free(held[at], NULL) == DS_ACCEL_OK, "free");
            held[at] = NULL;
        } else {
            bytes[at] = 1 + (state >> 8) % 20000;
            held[at] = alloc(bytes[at], 0, 0);
            held[at][bytes[at] - 1] = (char)(uintptr_t)argument;
        }
    }
    for (unsigned at = 0; at < 8; at++)
        CHECK(pin->free(held[at], NULL) == DS_ACCEL_OK, "free");
    return NULL;
}

static void use_own(void)
{
    CHECK(usage().blocks == 0, "%llu blocks", (unsigned long long)usage().blocks);
    CHECK(pin->free(alloc(1000, 0, 0), NULL) == DS_ACCEL_OK, "free");
}

/* Threads allocate and free while the process forks. */
static void check_threads(void)
{
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1)))
            abort();
    for (unsigned i = 0; i < 40; i++)
        in_child(use_own);
    stop = true;
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(usage().blocks == 0 && usage().bytes == 0 && locked() == 0, "blocks stay");
    CHECK(usage().peak_blocks > 0 && usage().peak_blocks <= 4 * 8 + 65, "peak of %llu blocks",
          (unsigned long long)usage().peak_blocks);
}

/* The shared object is closed and opened again: the block is still known. */
static void check_reopened(void)
{
    char *block = alloc(100, 0, 0);
    void *library = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);

    dlclose(library);
    dlclose(library); /* that of open_op() */
    pin = (const struct ds_accel_pin_memory *)open_op(file_name, "pin_memory");
    CHECK(pin->is_pinned(block, 100) == 1 && usage().blocks == 1, "the block is unknown");
    CHECK(pin->free(block, NULL) == DS_ACCEL_OK, "free");
}

int main(int argc, char **argv)
{
    struct rlimit limit;

    file_name = argc > 1 ? argv[1] : NULL;
    pin = (const struct ds_accel_pin_memory *)open_op(file_name, "pin_memory");
    CHECK(pin->op.struct_size == sizeof(*pin), "struct_size");
    CHECK(strcmp(pin->op.path(), "scalar") == 0 && !pin->op.paths()[1], "path %s", pin->op.path());
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    check_blocks((uint64_t)sysconf(_SC_PAGESIZE));
    check_large_pages();
    check_refusals();
    check_failures();
    in_child(meet_limit);
    in_child(meet_limit_of_mappings);
    in_child(fail_without_limit);
    in_child(meet_limit_in_namespace);
    check_fork();
    check_threads();
    check_reopened();
    return finish("pin_memory");
}
