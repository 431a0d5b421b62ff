/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Pinned memory through the public API, on mock and cpu: blocks, limits and forked children. */
#include "pinned.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Under sanitizers, a failing malloc() kills the program and mlock() does nothing. gcc and clang
   announce sanitizers in different ways. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

static void expect_reuse(void)
{
    struct ds_accel_pinned_stats stats;
    char *first = take(100000, 1, 0);
    char *other = take(100000, 1, 0);

    cr_expect_neq(first, other);
    memset(first, 1, 100000);
    cr_expect(is_pinned(first));
    cr_expect(is_pinned(first + 99999));
    stats = stats_now();
    cr_expect_eq(stats.allocated_bytes, 200000);
    cr_expect_geq(stats.reserved_bytes, 200000);
    cr_expect_eq(stats.cached_bytes, 0);
    give(first);
    cr_expect_not(is_pinned(first));
    cr_expect_not(is_pinned(first + 99999));
    cr_expect(is_pinned(other));
    stats = stats_now();
    cr_expect_eq(stats.allocated_bytes, 100000);
    cr_expect_eq(stats.cached_bytes, stats.reserved_bytes / 2);
    cr_expect_eq(take(99000, 1, 0), first, "a size of the same class is met by the pool");
    cr_expect(is_pinned(first));
    cr_expect_neq(take(500000, 1, 0), first);
    stats = stats_now();
    cr_expect_eq(stats.alloc_count, 4);
    cr_expect_eq(stats.free_count, 1);
    cr_expect_eq(stats.hit_count, 1);
    cr_expect_eq(stats.requested_bytes, 799000);
    cr_expect_eq(stats.block_count, 3);
    cr_expect_eq(stats.allocated_peak_bytes, 699000);
    cr_expect_eq(stats.reserved_peak_bytes, stats.reserved_bytes);
    give(other);
    EXPECT_STATUS(ds_accel_pinned_reset_peaks(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().allocated_peak_bytes, 599000);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    stats = stats_now();
    cr_expect_eq(stats.cached_bytes, 0);
    cr_expect_eq(stats.block_count, 2);
    cr_expect_not(is_pinned(&stats));
}

Test(core_pinned, gives_a_freed_block_out_again_on_the_mock)
{
    start("mock");
    expect_reuse();
    finish(); /* two blocks are in use and are released with the device */
}

Test(core_pinned, gives_a_freed_block_out_again_on_the_cpu)
{
    start("cpu");
    expect_reuse();
    finish();
}

Test(core_pinned, aligns_as_asked)
{
    static const char *const accelerators[] = {"mock", "cpu"};

    for (size_t which = 0; which < 2; which++) {
        uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        char *small;

        start(accelerators[which]);
        cr_expect_eq((uintptr_t)take(5000, 0, 0) % page_bytes, 0);
        for (uint64_t align = 2; align <= MIB(4); align *= 2) {
            for (int round = 0; round < 2; round++) {
                char *pointer = take(5000, align, 0);

                cr_expect_eq((uintptr_t)pointer % align, 0, "%p for %llu", (void *)pointer,
                             (unsigned long long)align);
                pointer[4999] = 'x';
                give(pointer);
            }
        }
        small = take(5000, 1, 0);
        EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 5000, 3, 0, (void **)&small),
                       DS_ACCEL_ERR_INVALID, "alignment 3");
        EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 5000, UINT64_MAX, 0, (void **)&small),
                       DS_ACCEL_ERR_INVALID, "power of two");
        cr_expect_lt(ds_accel_mem_alloc_pinned(device, 5000, UINT64_C(1) << 63, 0, (void **)&small),
                     0);
        finish();
    }
}

Test(core_pinned, keeps_flags_apart)
{
    void *plain;
    void *huge;

    start("cpu");
    plain = take(MIB(2), 1, 0);
    huge = take(MIB(2), 1, DS_ACCEL_PINNED_HUGE_PAGES);
    cr_expect_eq((uintptr_t)huge % MIB(2), 0);
    give(plain);
    give(huge);
    cr_expect_eq(take(MIB(2), 1, DS_ACCEL_PINNED_HUGE_PAGES), huge);
    cr_expect_eq(take(MIB(2), 1, 0), plain);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 64, 1, 0x80, &plain), DS_ACCEL_ERR_INVALID,
                   "0x80");
    finish();
}

Test(core_pinned, refuses_what_is_not_its_own)
{
    ds_accel_device_t *other;
    char *pointer;
    char *kept = (char *)&other;

    start("mock");
    cr_assert_eq(ds_accel_device_open(context, 1, &other), DS_ACCEL_OK);
    pointer = take(4096, 1, 0);
    EXPECT_REFUSED(ds_accel_mem_free_pinned(other, pointer), DS_ACCEL_ERR_INVALID, "of device 1");
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer + 1), DS_ACCEL_ERR_INVALID,
                   "not the start");
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, &other), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free_pinned(device, NULL), DS_ACCEL_OK);
    give(pointer);
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_ERR_INVALID,
                   "freed already");
    EXPECT_REFUSED(ds_accel_mem_record_stream(device, pointer, NULL), DS_ACCEL_ERR_INVALID,
                   "freed already");
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 0, 1, 0, (void **)&kept), DS_ACCEL_ERR_INVALID,
                   "0 bytes");
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, 64, 1, 0, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(NULL, 64, 1, 0, (void **)&kept), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, UINT64_MAX, 1, 0, (void **)&kept),
                  DS_ACCEL_ERR_NO_MEMORY);
    if (!HAS_SANITIZER) {
        EXPECT_STATUS(ds_accel_mem_alloc_pinned(device, INT64_MAX, 1, 0, (void **)&kept),
                      DS_ACCEL_ERR_NO_MEMORY);
    }
    EXPECT_STATUS(ds_accel_pinned_stats(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_pinned_set_limit(NULL, 0), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(kept, (char *)&other, "written on failure");
    ds_accel_device_close(other);
    finish();
    EXPECT_REFUSED(ds_accel_mem_free_pinned(device, pointer), DS_ACCEL_ERR_INVALID, "destroyed");
}

/* ---- limits --------------------------------------------------------------------------------- */

Test(core_pinned, empties_itself_at_the_kernels_limit)
{
    struct ds_accel_pinned_stats stats;
    void *first;
    void *second;
    void *pointer = NULL;

    setenv("DS_ACCEL_MOCK_PINNED_LIMIT_BYTES", "1000000", 1);
    start("mock");
    first = take(400000, 1, 0);
    second = take(500000, 1, 0);
    give(first);
    /* 100 kB are free and 400 kB are cached, so the cached blocks are released first. */
    cr_expect_not_null(take(450000, 1, 0));
    stats = stats_now();
    cr_expect_eq(stats.alloc_retry_count, 1);
    cr_expect_eq(stats.cached_bytes, 0);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, 450001, 1, 0, &pointer), DS_ACCEL_ERR_LIMIT,
                   "450001 bytes would exceed option pinned_limit_bytes, 1000000");
    cr_expect_null(pointer);
    /* The last attempt requested the exact size, so a smaller remainder is usable too. */
    cr_expect_not_null(take(25000, 1, 0));
    give(second);
    finish();
}

Test(core_pinned, names_the_limit_of_the_cpu)
{
    struct rlimit limit;
    bool is_root = geteuid() == 0;
    void *pointer = NULL;

    if (HAS_SANITIZER) {
        cr_skip_test("mlock() does nothing here");
    }
    start("cpu");
    cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = KIB(64);
    /* Root may lock without limit, so the rest runs as another user. */
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (is_root && seteuid(65534) != 0)) {
        cr_skip_test("the limit can't be set here");
    }
    give(take(KIB(40), 1, 0));
    cr_expect_not_null(take(KIB(60), 1, 0));
    cr_expect_eq(stats_now().alloc_retry_count, 1);
    EXPECT_REFUSED(ds_accel_mem_alloc_pinned(device, KIB(60), 1, 0, &pointer), DS_ACCEL_ERR_LIMIT,
                   "RLIMIT_MEMLOCK is 65536");
    finish();
    cr_assert(!is_root || seteuid(0) == 0);
}

Test(core_pinned, keeps_no_more_than_its_limit)
{
    void *blocks[4];

    start("mock");
    for (size_t i = 0; i < 4; i++) {
        blocks[i] = take(MIB(1), 1, 0);
    }
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, MIB(2)), DS_ACCEL_OK);
    for (size_t i = 0; i < 4; i++) {
        give(blocks[i]);
    }
    cr_expect_eq(stats_now().cached_bytes, MIB(2));
    cr_expect_eq(stats_now().limit_bytes, MIB(2));
    EXPECT_STATUS(ds_accel_pinned_set_limit(device, 0), DS_ACCEL_OK);
    cr_expect_eq(stats_now().reserved_bytes, 0);
    give(take(MIB(1), 1, 0));
    cr_expect_eq(stats_now().block_count, 0);
    finish();
}

Test(core_pinned, finds_thousands_of_blocks)
{
    enum {
        COUNT = 3000
    };
    static void *blocks[COUNT];
    uint64_t asked = 0;

    start("mock");
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t size_bytes = 1 + (uint64_t)i * 37 % 70000;

        blocks[i] = take(size_bytes, 1, 0);
        asked += size_bytes;
    }
    cr_expect_eq(stats_now().allocated_bytes, asked);
    cr_expect_leq(stats_now().reserved_bytes, asked + asked / 8 + (uint64_t)COUNT * 4096);
    for (unsigned i = 0; i < COUNT; i++) {
        give(blocks[i]);
    }
    cr_expect_eq(stats_now().allocated_bytes, 0);
    cr_expect_eq(stats_now().cached_bytes, stats_now().reserved_bytes);
    EXPECT_STATUS(ds_accel_pinned_empty_cache(device), DS_ACCEL_OK);
    cr_expect_eq(stats_now().block_count, 0);
    cr_expect_eq(stats_now().reserved_bytes, 0);
    finish();
}

/* ---- accounting ----------------------------------------------------------------------------- */

Test(core_pinned, is_left_alone_in_a_forked_child)
{
    void *block;
    int result = -1;
    pid_t child;

    start("mock");
    block = take(4096, 1, 0);
    child = fork();
    if (child == 0) {
        void *pointer = NULL;

        _exit(ds_accel_mem_free_pinned(device, block) != DS_ACCEL_ERR_STATE ||
              ds_accel_mem_alloc_pinned(device, 64, 1, 0, &pointer) != DS_ACCEL_ERR_STATE ||
              ds_accel_pinned_empty_cache(device) != DS_ACCEL_ERR_STATE);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    give(block);
    finish();
}

/* Check that memory used by a destroyed stream is reused once the device is idle; this needs a
   query, which a capture would forbid. */
static int reuse_in_child(void)
{
    ds_accel_stream_t *stream = NULL;
    void *memory = NULL;
    void *block = NULL;
    void *next = NULL;

    start("mock");
    if (ds_accel_mem_alloc(device, NULL, 4096, &memory) != DS_ACCEL_OK ||
        ds_accel_mem_alloc_pinned(device, 4096, 1, 0, &block) != DS_ACCEL_OK ||
        ds_accel_stream_create(device, 0, 0, &stream) != DS_ACCEL_OK ||
        ds_accel_mem_copy_async(stream, memory, block, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE) !=
            DS_ACCEL_OK) {
        return 2;
    }
    ds_accel_stream_destroy(stream);
    if (ds_accel_mem_free_pinned(device, block) != DS_ACCEL_OK ||
        ds_accel_device_synchronize(device) != DS_ACCEL_OK ||
        ds_accel_mem_alloc_pinned(device, 4096, 1, 0, &next) != DS_ACCEL_OK) {
        return 3;
    }
    return next == block ? 0 : 4;
}

/* Check reuse in a forked child that keeps the parent's context or destroys it first: the parent's
   captures and shared memory do not exist in the child, and the address of the parent's context may
   be reused. */
static void expect_reuse_after_fork(ds_accel_stream_t *stream, ds_accel_graph_t *graph, bool ends)
{
    int result = -1;
    pid_t child = fork();

    if (child == 0) {
        ds_accel_graph_capture_end(graph); /* fails, because the capture is the parent's */
        if (ends) {
            ds_accel_stream_destroy(stream);
            ds_accel_device_close(device);
            ds_accel_destroy(context);
        }
        _exit(reuse_in_child());
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0,
              "the child, which %s, ended with status %#x",
              ends ? "ends its context" : "keeps its context", (unsigned)result);
}

Test(core_pinned, comes_back_in_a_child_of_a_process_that_captures)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_graph_t *graph = NULL;

    start_slow();
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    expect_reuse_after_fork(stream, graph, false);
    expect_reuse_after_fork(stream, graph, true);
    MUST(ds_accel_graph_capture_end(graph));
    finish();
}

Test(core_pinned, comes_back_in_a_child_of_a_process_that_shares_a_stream)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_stream_t *wrapped = NULL;
    uint64_t native = 0;

    start_slow();
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_stream_native(stream, &native));
    MUST(ds_accel_stream_wrap(device, native, &wrapped));
    expect_reuse_after_fork(wrapped, NULL, false);
    expect_reuse_after_fork(wrapped, NULL, true);
    finish();
}
