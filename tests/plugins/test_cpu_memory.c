/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: device memory, pinned memory, copies and fills, and used memory. */
#include "cpu.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* MLOCK_DOES_NOTHING is 1 under a sanitizer, which gcc and clang report with different macros. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MLOCK_DOES_NOTHING 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLOCK_DOES_NOTHING 1
#endif
#ifndef MLOCK_DOES_NOTHING
#define MLOCK_DOES_NOTHING 0
#endif

/* ---- device memory -------------------------------------------------------------------------- */

Test(plugin_cpu, memory_is_aligned_and_can_be_used_to_the_last_byte)
{
    static const uint64_t sizes[] = {1, 63, 64, 65, 65535, 65536, 1048577};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    unsigned char *pointers[7] = {NULL};

    open_cpu();
    EXPECT_OK(ds_accel_device_info(device, &info));
    for (size_t i = 0; i < 7; i++) {
        ASSERT_OK(table->mem_alloc(handle, sizes[i], 0, 0, (void **)&pointers[i], &error));
        cr_expect_eq((uintptr_t)pointers[i] % info.allocation_align_bytes, 0);
        memset(pointers[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < 7; i++) {
        cr_expect_eq(pointers[i][0], i + 1);
        cr_expect_eq(pointers[i][sizes[i] - 1], i + 1);
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
    }
    close_cpu();
}

Test(plugin_cpu, sizes_that_cannot_be_are_refused)
{
    void *const untouched = &context;
    void *pointer = untouched;

    open_cpu();
    EXPECT_FAIL(table->mem_alloc(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0,");
    EXPECT_FAIL(table->mem_alloc(handle, SIZE_MAX, 0, 0, &pointer, &error), DS_ACCEL_ERR_NO_MEMORY,
                "18446744073709551615");
    EXPECT_FAIL(table->mem_alloc(handle, PTRDIFF_MAX, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "this process can have");
    EXPECT_FAIL(table->mem_alloc(handle, UINT64_C(1) << 50, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "this process can have");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0,");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, SIZE_MAX, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "18446744073709551615");
    cr_expect_eq(pointer, untouched);
    close_cpu();
}

Test(plugin_cpu, freeing_what_is_not_to_be_freed_is_refused)
{
    char *pointer = NULL;
    char *pinned = NULL;
    int local = 0;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, (void **)&pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, (void **)&pinned, &error));
    EXPECT_OK(table->mem_free(handle, NULL, &error));
    EXPECT_OK(table->mem_free_pinned(handle, NULL, &error));
    EXPECT_FAIL(table->mem_free(handle, &local, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_FAIL(table->mem_free(handle, pointer + 1, &error), DS_ACCEL_ERR_INVALID,
                "mem_free() releases the 100 bytes at");
    EXPECT_FAIL(table->mem_free(handle, pointer + 100, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_FAIL(table->mem_free(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "mem_free_pinned() releases");
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "mem_free() releases");
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_FAIL(table->mem_free_pinned(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    close_cpu();
}

Test(plugin_cpu, many_allocations_are_told_apart)
{
    char *pointers[1000];

    open_cpu();
    for (size_t i = 0; i < 1000; i++) {
        ASSERT_OK(table->mem_alloc(handle, i % 7 + 1, 0, 0, (void **)&pointers[i], &error));
    }
    for (size_t i = 0; i < 1000; i += 2) {
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
    }
    for (size_t i = 1; i < 1000; i += 2) {
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
        EXPECT_FAIL(table->mem_free(handle, pointers[i], &error), DS_ACCEL_ERR_INVALID,
                    "no live memory of this");
    }
    close_cpu();
}

Test(plugin_cpu, the_limit_of_a_device_is_heeded)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    void *pointer = NULL;
    void *more = NULL;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 600, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_set_limit(handle, 1000, &error));
    EXPECT_FAIL(table->mem_alloc(handle, 401, 0, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY,
                "allocated 600, the limit of mem_set_limit() is 1000");
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.limit_bytes, 1000);
    cr_expect_str_eq(info.limit_source, "mem_set_limit()");
    cr_expect_eq(info.available_bytes, 400);
    EXPECT_OK(table->mem_alloc(handle, 400, 0, 0, &more, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    EXPECT_OK(table->mem_free(handle, more, &error));
    EXPECT_OK(table->mem_set_limit(handle, 0, &error));
    ASSERT_OK(table->mem_alloc(handle, 2000, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_cpu();
}

Test(plugin_cpu, closing_a_device_releases_what_is_left)
{
    void *pointer;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 0, 0, &pointer, &error));
    ds_accel_device_close(device);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    handle = ds_accel_device_handle(device);
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    close_cpu();
}

/* ---- pinned memory -------------------------------------------------------------------------- */

static void expect_pinned(uint64_t align_bytes, uint32_t flags, uint64_t expected_bytes)
{
    char *pointer = NULL;

    ASSERT_OK(table->mem_alloc_pinned(handle, 100, align_bytes, flags, (void **)&pointer, &error));
    cr_expect_eq((uintptr_t)pointer % expected_bytes, 0, "%p", (void *)pointer);
    memset(pointer, 1, 100);
    EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
}

Test(plugin_cpu, pinned_memory_is_aligned_as_asked)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    open_cpu();
    expect_pinned(0, 0, page);
    expect_pinned(1, DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED, 1);
    expect_pinned(64, 0, 64);
    expect_pinned(4096, 0, 4096);
    expect_pinned(2 * MIB, 0, 2 * MIB);
    expect_pinned(64 * MIB, 0, 64 * MIB);
    expect_pinned(0, DS_ACCEL_PINNED_HUGE_PAGES, 2 * MIB);
    close_cpu();
}

Test(plugin_cpu, alignments_and_flags_that_cannot_be_are_refused)
{
    void *pointer = NULL;

    open_cpu();
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "alignment 3: expected a size above 0, and 0 or a power of two");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 4097, 0, &pointer, &error),
                DS_ACCEL_ERR_INVALID, "alignment 4097");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, UINT64_C(1) << 63, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "mem_alloc_pinned");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 0, 16, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x10");
    cr_expect_null(pointer);
    close_cpu();
}

/* Returns VmLck of this process in KiB; -1 if the kernel does not report it. */
static long locked_kib(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmLck: %ld", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

Test(plugin_cpu, pinned_memory_is_locked)
{
    const long before = locked_kib();
    char *pinned = NULL;
    char *mine;

    if (MLOCK_DOES_NOTHING || before < 0) {
        cr_skip_test("mlock() or VmLck does nothing here");
    }
    open_cpu();
    ASSERT_OK(table->mem_alloc_pinned(handle, 32768, 0, 0, (void **)&pinned, &error));
    cr_expect_eq(locked_kib(), before + 32);
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    cr_expect_eq(locked_kib(), before);
    mine = aligned_alloc(65536, 65536);
    cr_assert_not_null(mine);
    EXPECT_OK(table->mem_register(handle, mine, 16384, 0, &error));
    cr_expect_eq(locked_kib(), before + 16);
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    cr_expect_eq(locked_kib(), before);
    free(mine);
    close_cpu();
}

Test(plugin_cpu, registered_memory_stays_the_callers)
{
    static char mine[100000];
    void *address = NULL;

    open_cpu();
    ASSERT_OK(table->mem_register(handle, mine + 10, 50000, 0, &error));
    EXPECT_FAIL(table->mem_register(handle, mine + 50009, 100, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_OK(table->mem_register(handle, mine + 50010, 100, 0, &error));
    EXPECT_OK(table->mem_device_pointer(handle, mine + 10, &address, &error));
    cr_expect_eq(address, mine + 10);
    EXPECT_FAIL(table->mem_free_pinned(handle, mine + 10, &error), DS_ACCEL_ERR_INVALID,
                "mem_unregister() releases");
    EXPECT_OK(table->mem_unregister(handle, mine + 10, &error));
    EXPECT_FAIL(table->mem_unregister(handle, mine + 10, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_OK(table->mem_unregister(handle, mine + 50010, &error));
    EXPECT_FAIL(table->mem_register(handle, mine, 0, 0, &error), DS_ACCEL_ERR_INVALID,
                "with 0 bytes is no range");
    EXPECT_FAIL(table->mem_register(handle, mine, SIZE_MAX, 0, &error), DS_ACCEL_ERR_INVALID,
                "with 18446744073709551615 bytes is no range");
    mine[99999] = 1;
    close_cpu();
}

/* Runs in a child process: pins 4 KiB and 1 MiB with a limit of 64 KiB for locked memory, and
   writes a line with both results to the pipe. */
static int pin_as_nobody(int to)
{
    const struct rlimit limit = {65536, 65536};
    void *pointer = NULL;
    char line[512];
    int32_t small;
    int32_t large;

    open_cpu(); /* in the child, which can't use an accelerator started by its parent */
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        (geteuid() == 0 && (setgroups(0, NULL) != 0 || setuid(65534) != 0))) {
        return 1;
    }
    small = table->mem_alloc_pinned(handle, 4096, 0, 0, &pointer, &error);
    if (small == DS_ACCEL_OK) {
        small = table->mem_free_pinned(handle, pointer, &error);
    }
    large = table->mem_alloc_pinned(handle, MIB, 0, 0, &pointer, &error);
    snprintf(line, sizeof(line), "%d %d %s", small, large, error.message);
    return write(to, line, strlen(line)) != (ssize_t)strlen(line);
}

Test(plugin_cpu, the_kernels_limit_on_pinned_memory_is_named)
{
    char line[512];
    ssize_t length;
    int ends[2];
    int status;
    pid_t child;

    if (MLOCK_DOES_NOTHING) {
        cr_skip_test("mlock() does nothing here");
    }
    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        _exit(pin_as_nobody(ends[1]));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        cr_skip_test("the limit can't be set here");
    }
    length = read(ends[0], line, sizeof(line) - 1);
    cr_assert_gt(length, 0);
    line[length] = '\0';
    EXPECT_HAS(line, "0 -13 mem_alloc_pinned: 1048576 bytes cannot be locked");
    EXPECT_HAS(line, "RLIMIT_MEMLOCK is 65536 bytes (soft), 65536 (hard)");
    EXPECT_HAS(line, "ulimit -l");
    close(ends[0]);
    close(ends[1]);
}

/* ---- copies and fills ----------------------------------------------------------------------- */

Test(plugin_cpu, copies_of_every_kind_arrive)
{
    ds_accel_plugin_stream_t *stream;
    char source[100];
    char target[100];

    open_cpu();
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    for (uint32_t kind = DS_ACCEL_COPY_HOST_TO_HOST; kind <= DS_ACCEL_COPY_INFER; kind++) {
        memset(source, (int)kind, sizeof(source));
        memset(target, 0, sizeof(target));
        EXPECT_OK(table->mem_copy(handle, target, source, 99, kind, &error));
        cr_expect(target[98] == (char)kind && target[99] == 0);
        memset(target, 0, sizeof(target));
        EXPECT_OK(table->mem_copy_async(stream, target, source, 99, kind, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        cr_expect(target[98] == (char)kind && target[99] == 0);
    }
    memset(target, 0, sizeof(target));
    EXPECT_OK(table->mem_copy_peer_async(stream, handle, target, handle, source, 99, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect(target[98] == source[98] && target[99] == 0);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu, copies_that_cannot_be_are_refused)
{
    ds_accel_plugin_stream_t *stream;
    char byte = 7;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    EXPECT_OK(table->mem_copy(handle, NULL, NULL, 0, DS_ACCEL_COPY_INFER, &error));
    EXPECT_FAIL(table->mem_copy(handle, NULL, &byte, 1, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "destination is NULL");
    EXPECT_FAIL(table->mem_copy_async(stream, &byte, NULL, 1, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "source is NULL");
    EXPECT_FAIL(table->mem_copy(handle, &byte, &byte, 1, 0, &error), DS_ACCEL_ERR_INVALID,
                "kind 0");
    EXPECT_FAIL(table->mem_copy_async(stream, &byte, &byte, 1, 6, &error), DS_ACCEL_ERR_INVALID,
                "kind 6");
    EXPECT_FAIL(table->mem_copy(handle, &byte, &byte, SIZE_MAX, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "more than an address space");
    close_cpu();
}

Test(plugin_cpu, fills_repeat_their_pattern)
{
    static const unsigned char pattern[4] = {1, 2, 3, 4};
    static const uint32_t sizes[] = {1, 2, 4};
    ds_accel_plugin_stream_t *stream;
    unsigned char bytes[101];

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    for (size_t i = 0; i < 3; i++) {
        memset(bytes, 99, sizeof(bytes));
        EXPECT_OK(table->mem_fill_async(stream, bytes, pattern, sizes[i], 100, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        for (size_t at = 0; at < 100; at++) {
            cr_assert_eq(bytes[at], pattern[at % sizes[i]]);
        }
        cr_expect_eq(bytes[100], 99);
        EXPECT_OK(table->mem_fill_async(stream, bytes, pattern, sizes[i], 0, &error));
    }
    EXPECT_FAIL(table->mem_fill_async(stream, bytes, pattern, 3, 99, &error), DS_ACCEL_ERR_INVALID,
                "a pattern of 3 bytes");
    EXPECT_FAIL(table->mem_fill_async(stream, bytes, pattern, 4, 99, &error), DS_ACCEL_ERR_INVALID,
                "a pattern of 4 bytes for 99: expected 1, 2 or 4, and a multiple");
    EXPECT_FAIL(table->mem_fill_async(stream, NULL, pattern, 4, 8, &error), DS_ACCEL_ERR_INVALID,
                "destination is NULL");
    close_cpu();
}

/* ---- usage ---------------------------------------------------------------------------------- */

static struct ds_accel_memory_stats stats(void)
{
    struct ds_accel_memory_stats answer = {.struct_size = sizeof(answer)};

    cr_assert_eq(table->mem_stats(handle, &answer, &error), DS_ACCEL_OK, "%s", error.message);
    return answer;
}

/* Returns the statistics while memory of this size is allocated and has been written to. */
static struct ds_accel_memory_stats stats_while_using(uint64_t size_bytes)
{
    struct ds_accel_memory_stats answer;
    void *pointer = NULL;

    cr_assert_eq(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error), DS_ACCEL_OK);
    memset(pointer, 1, size_bytes);
    answer = stats();
    cr_assert_eq(table->mem_free(handle, pointer, &error), DS_ACCEL_OK);
    return answer;
}

Test(plugin_cpu, a_reset_peak_starts_from_what_is_used_now)
{
    struct ds_accel_memory_stats before;
    struct ds_accel_memory_stats during;
    struct ds_accel_memory_stats after;

    open_cpu();
    before = stats();
    during = stats_while_using(128 * MIB);
    cr_expect_geq(during.allocated_bytes, before.allocated_bytes + 96 * MIB);
    cr_expect_geq(stats().allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_ALLOCATED, &error));
    after = stats();
    cr_expect_lt(after.allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    cr_expect_geq(after.allocated_peak_bytes, after.allocated_bytes);
    cr_expect_geq(after.reserved_peak_bytes, before.allocated_bytes + 96 * MIB,
                  "the other peak was reset too");
    /* This size is below the process's peak, so that only the query within this call sees it. */
    stats_while_using(64 * MIB);
    after = stats();
    cr_expect_geq(after.allocated_peak_bytes, before.allocated_bytes + 48 * MIB);
    cr_expect_lt(after.allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    EXPECT_FAIL(table->mem_reset_peaks(handle, 4, &error), DS_ACCEL_ERR_INVALID, "0x4");
    close_cpu();
}

Test(plugin_cpu, allocations_frees_and_failures_are_counted)
{
    struct ds_accel_memory_stats answer;
    void *pointer = NULL;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 1, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    ASSERT_OK(table->mem_alloc(handle, 1, 0, 0, &pointer, &error));
    cr_expect_eq(table->mem_alloc(handle, SIZE_MAX, 0, 0, &pointer, &error),
                 DS_ACCEL_ERR_NO_MEMORY);
    answer = stats();
    cr_expect_eq(answer.alloc_count, 2);
    cr_expect_eq(answer.free_count, 1);
    cr_expect_eq(answer.out_of_memory_count, 1);
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    close_cpu();
}

Test(plugin_cpu, writes_no_more_than_the_caller_knows)
{
    struct ds_accel_memory_info info;

    open_cpu();
    memset(&info, 0x5a, sizeof(info));
    info.struct_size = DS_ACCEL_SIZE_THROUGH(struct ds_accel_memory_info, total_bytes);
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_neq(info.total_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.available_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.struct_size, DS_ACCEL_SIZE_THROUGH(struct ds_accel_memory_info, total_bytes));
    close_cpu();
}

/* ---- instances ------------------------------------------------------------------------------ */

/* A host implemented by the test, so that the test has the instance that some functions need. */
static void drop_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    (void)message;
}

static int32_t no_option(const struct ds_accel_host *host, const char *key, char *value,
                         uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)key;
    (void)value;
    (void)value_size;
    (void)needed_out;
    return DS_ACCEL_ERR_NOT_FOUND;
}

static int32_t no_nodes(const struct ds_accel_host *host, uint32_t *count_out)
{
    (void)host;
    *count_out = 0;
    return DS_ACCEL_OK;
}

static int32_t no_memory(const struct ds_accel_host *host, struct ds_accel_host_memory *memory_out)
{
    (void)host;
    (void)memory_out;
    return DS_ACCEL_ERR_IO;
}

static const void *find_extension(const struct ds_accel_host *host, const char *id)
{
    static const struct ds_accel_ext_topology topology = {
        .struct_size = sizeof(topology), .node_count = no_nodes, .memory_get = no_memory};

    (void)host;
    return strcmp(id, DS_ACCEL_EXT_TOPOLOGY) == 0 ? &topology : NULL;
}

static const struct ds_accel_host own_host = {.struct_size = sizeof(own_host),
                                              .abi_major = DS_ACCEL_ABI_MAJOR,
                                              .log = drop_log,
                                              .config_get = no_option,
                                              .machine_root = "",
                                              .extension = find_extension};

static struct ds_accel_pointer_info pointer_info(ds_accel_plugin_instance_t *instance,
                                                 const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .kind = 99};

    cr_expect_eq(table->mem_pointer_info(instance, NULL, pointer, &info, &error), DS_ACCEL_OK);
    return info;
}

Test(plugin_cpu, a_pointer_tells_what_it_points_into)
{
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *own;
    struct ds_accel_pointer_info info;
    uint64_t id;
    char *pinned;
    char *pointer;

    open_cpu();
    ASSERT_OK(table->init(&own_host, &instance, &error));
    ASSERT_OK(table->device_open(instance, 0, &own, &error));
    ASSERT_OK(table->mem_alloc(own, 100, 0, 0, (void **)&pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(own, 50, 0, 0, (void **)&pinned, &error));
    info = pointer_info(instance, pointer + 99);
    cr_expect(info.kind == DS_ACCEL_POINTER_DEVICE && info.device_index == 0);
    cr_expect(info.base_address == (uintptr_t)pointer && info.size_bytes == 100);
    id = info.allocation_id;
    info = pointer_info(instance, pinned);
    cr_expect(info.kind == DS_ACCEL_POINTER_PINNED && info.size_bytes == 50);
    cr_expect(info.allocation_id != 0 && id != 0 && info.allocation_id != id);
    cr_expect_eq(pointer_info(instance, pinned + 50).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(pointer_info(instance, NULL).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(pointer_info(instance, &info).device_index, -1);
    EXPECT_OK(table->mem_free(own, pointer, &error));
    cr_expect_eq(pointer_info(instance, pointer).kind, DS_ACCEL_POINTER_UNKNOWN);
    EXPECT_OK(table->mem_free_pinned(own, pinned, &error));
    table->device_close(own);
    table->shutdown(instance);
    close_cpu();
}
