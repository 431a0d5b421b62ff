/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: device memory, pinned memory, copies and fills. */
#include "mock.h"

#include <unistd.h>

/* ---- memory --------------------------------------------------------------------------------- */

static struct ds_accel_memory_stats stats_now(void)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    return stats;
}

Test(plugin_mock, allocations_are_accounted_for)
{
    void *pointer;
    void *managed = NULL;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(1000);
    cr_expect_eq((uintptr_t)pointer % 256, 0);
    ASSERT_OK(table->mem_alloc_managed(handle, 500, 0, &managed, &error));
    expect_usage(1500, 8500);
    cr_expect_eq(stats_now().allocated_bytes, 1500);
    cr_expect_eq(stats_now().reserved_bytes, 1500);
    release(pointer);
    expect_usage(500, 9500);
    release(managed);
    expect_usage(0, 10000);
    cr_expect_eq(stats_now().alloc_count, 2);
    cr_expect_eq(stats_now().free_count, 2);
    cr_expect_eq(stats_now().out_of_memory_count, 0);
    close_mock();
}

static void expect_refused(uint64_t size_bytes, const char *figures)
{
    void *const untouched = &context;
    void *pointer = untouched;

    EXPECT_FAIL(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, figures);
    cr_expect_eq(error.vendor_code, 102);
    cr_expect_str_eq(error.vendor_text, "MOCK_ERROR_NO_MEMORY");
    cr_expect_eq(pointer, untouched);
}

Test(plugin_mock, a_full_device_says_what_was_asked_and_what_there_is)
{
    void *pointer;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(6000);
    expect_refused(4001, "mem_alloc: MOCK_ERROR_NO_MEMORY (102): device 0: requested 4001 bytes, "
                         "allocated 6000, reserved 6000, largest free block 4000");
    expect_refused(UINT64_MAX, "requested 18446744073709551615 bytes, allocated 6000");
    cr_expect_eq(stats_now().out_of_memory_count, 2);
    release(allocate(4000));
    release(pointer);
    close_mock();
}

Test(plugin_mock, a_scripted_lack_of_memory_looks_like_a_real_one)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *pointer = NULL;

    option("fail", "mem_alloc:2=no_memory,mem_alloc_async=no_memory,mem_alloc_managed=no_memory,"
                   "vmem_create=no_memory");
    option("memory_bytes", "10000");
    open_mock();
    stream = make_stream();
    pointer = allocate(1);
    expect_refused(10, "requested 10 bytes, allocated 1, reserved 1, largest free block 9999");
    release(pointer);
    pointer = NULL;
    EXPECT_FAIL(table->mem_alloc_managed(handle, 20, 0, &pointer, &error), DS_ACCEL_ERR_NO_MEMORY,
                "mem_alloc_managed: MOCK_ERROR_NO_MEMORY (102): device 0: requested 20 bytes");
    EXPECT_FAIL(table->mem_alloc_async(stream, 30, 0, NULL, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY,
                "mem_alloc_async: MOCK_ERROR_NO_MEMORY (102): device 0: "
                "requested 30 bytes");
    EXPECT_FAIL(table->vmem_create(handle, 2 * MIB, 0, &vmem, &error), DS_ACCEL_ERR_NO_MEMORY,
                "vmem_create: MOCK_ERROR_NO_MEMORY (102): device 0: requested 2097152 bytes");
    cr_expect_eq(stats_now().out_of_memory_count, 4);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, memory_is_usable_to_the_last_byte)
{
    static const uint64_t sizes[] = {1, 255, 256, 257, 65536, 1048577};
    unsigned char *pointers[ARRAY_SIZE(sizes)];

    open_mock();
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        pointers[i] = allocate(sizes[i]);
        memset(pointers[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        cr_expect_eq(pointers[i][0], i + 1);
        cr_expect_eq(pointers[i][sizes[i] - 1], i + 1);
        release(pointers[i]);
    }
    close_mock();
}

Test(plugin_mock, a_limit_is_heeded_and_can_be_lifted)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    void *pointer;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(600);
    EXPECT_OK(table->mem_set_limit(handle, 1000, &error));
    expect_refused(401, "allocated 600, reserved 600, largest free block 400");
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.total_bytes, 1000);
    cr_expect_eq(info.limit_bytes, 1000);
    cr_expect_str_eq(info.limit_source, "mem_set_limit()");
    release(allocate(400));
    EXPECT_OK(table->mem_set_limit(handle, 500, &error));
    expect_refused(1, "largest free block 0");
    EXPECT_OK(table->mem_set_limit(handle, 20000, &error));
    expect_refused(9401, "largest free block 9400");
    EXPECT_OK(table->mem_set_limit(handle, 0, &error));
    expect_usage(600, 9400);
    release(pointer);
    close_mock();
}

Test(plugin_mock, peaks_stay_until_they_are_reset)
{
    void *pointer;

    open_mock();
    pointer = allocate(100);
    release(allocate(900));
    cr_expect_eq(stats_now().allocated_peak_bytes, 1000);
    cr_expect_eq(stats_now().reserved_peak_bytes, 1000);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_ALLOCATED, &error));
    cr_expect_eq(stats_now().allocated_peak_bytes, 100);
    cr_expect_eq(stats_now().reserved_peak_bytes, 1000);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_RESERVED, &error));
    cr_expect_eq(stats_now().reserved_peak_bytes, 100);
    EXPECT_FAIL(table->mem_reset_peaks(handle, 4, &error), DS_ACCEL_ERR_INVALID, "0x4");
    release(pointer);
    close_mock();
}

Test(plugin_mock, what_is_not_to_be_freed_is_refused)
{
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    char *pointer;
    void *pinned = NULL;
    int local = 0;

    open_mock();
    peer = open_index(1, &second);
    pointer = allocate(100);
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, &pinned, &error));
    EXPECT_OK(table->mem_free(handle, NULL, &error));
    EXPECT_OK(table->mem_free_pinned(handle, NULL, &error));
    EXPECT_FAIL(table->mem_free(handle, &local, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_FAIL(table->mem_free(handle, pointer + 1, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    EXPECT_FAIL(table->mem_free(peer, pointer, &error), DS_ACCEL_ERR_INVALID, "of device 1");
    EXPECT_FAIL(table->mem_free(handle, pinned, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "live pinned memory");
    EXPECT_FAIL(table->mem_unregister(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "live registered memory");
    release(pointer);
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_FAIL(table->mem_free_pinned(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    cr_expect_eq(stats_now().free_count, 1);
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, sizes_and_flags_that_cannot_be_are_refused)
{
    void *pointer = NULL;

    open_mock();
    EXPECT_FAIL(table->mem_alloc(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 0, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_FAIL(table->mem_alloc(NULL, 1, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 0, 1, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0 is 0");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "alignment 3 is no power of two");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 1, 16, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits in flags 0x10");
    cr_expect_null(pointer);
    close_mock();
}

static void expect_pinned(uint64_t align_bytes, uint64_t wanted_bytes)
{
    char *pointer = NULL;

    ASSERT_OK(table->mem_alloc_pinned(handle, 100, align_bytes, 0, (void **)&pointer, &error));
    cr_expect_eq((uintptr_t)pointer % wanted_bytes, 0, "%p", (void *)pointer);
    memset(pointer, 1, 100);
    EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
}

Test(plugin_mock, pinned_memory_is_aligned_as_asked)
{
    open_mock();
    expect_pinned(0, (uint64_t)sysconf(_SC_PAGESIZE));
    expect_pinned(1, 64);
    expect_pinned(2, 2);
    expect_pinned(4096, 4096);
    expect_pinned(4 * MIB, 4 * MIB);
    close_mock();
}

Test(plugin_mock, pinned_memory_has_a_limit_for_the_instance)
{
    static char mine[500];
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    void *pinned = NULL;
    void *more = NULL;

    option("pinned_limit_bytes", "1000");
    open_mock();
    peer = open_index(1, &second);
    ASSERT_OK(table->mem_alloc_pinned(handle, 600, 1, 0, &pinned, &error));
    EXPECT_FAIL(table->mem_alloc_pinned(peer, 401, 1, 0, &more, &error), DS_ACCEL_ERR_LIMIT,
                "401 bytes would exceed option pinned_limit_bytes, 1000, of which 600 are used");
    EXPECT_FAIL(table->mem_register(handle, mine, 500, 0, &error), DS_ACCEL_ERR_LIMIT,
                "mem_register: 500 bytes would exceed option pinned_limit_bytes");
    EXPECT_OK(table->mem_register(handle, mine, 400, 0, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_OK(table->mem_alloc_pinned(handle, 600, 1, 0, &pinned, &error));
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, memory_is_registered_once)
{
    static char mine[1000];
    void *address = NULL;

    open_mock();
    EXPECT_OK(table->mem_register(handle, mine + 100, 100, DS_ACCEL_PINNED_MAPPED, &error));
    EXPECT_FAIL(table->mem_register(handle, mine, 101, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_FAIL(table->mem_register(handle, mine + 199, 1, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_OK(table->mem_register(handle, mine, 100, 0, &error));
    EXPECT_OK(table->mem_device_pointer(handle, mine + 150, &address, &error));
    cr_expect_eq(address, mine + 150);
    EXPECT_FAIL(table->mem_device_pointer(handle, mine, &address, &error), DS_ACCEL_ERR_INVALID,
                "DS_ACCEL_PINNED_MAPPED");
    EXPECT_FAIL(table->mem_register(handle, NULL, 10, 0, &error), DS_ACCEL_ERR_INVALID, "no range");
    EXPECT_FAIL(table->mem_register(handle, mine, UINT64_MAX, 0, &error), DS_ACCEL_ERR_INVALID,
                "no range");
    EXPECT_FAIL(table->mem_unregister(handle, mine + 150, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_unregister(handle, mine + 100, &error));
    EXPECT_FAIL(table->mem_unregister(handle, mine, &error), DS_ACCEL_ERR_INVALID, "not the start");
    close_mock();
}

static void expect_pointer(const char *pointer, uint32_t kind)
{
    struct ds_accel_pointer_info info = info_of(pointer + 99);

    cr_expect_eq(info.kind, kind);
    cr_expect_eq(info.device_index, 0);
    cr_expect_eq(info.base_address, (uintptr_t)pointer);
    cr_expect_eq(info.size_bytes, 100);
    cr_expect_neq(info.allocation_id, 0);
}

Test(plugin_mock, a_pointer_into_an_allocation_is_known)
{
    static char mine[100];
    void *pinned = NULL;
    void *managed = NULL;
    char *pointer;

    open_mock();
    pointer = allocate(100);
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, &pinned, &error));
    ASSERT_OK(table->mem_alloc_managed(handle, 100, 0, &managed, &error));
    ASSERT_OK(table->mem_register(handle, mine, 100, 0, &error));
    expect_pointer(pointer, DS_ACCEL_POINTER_DEVICE);
    expect_pointer(pinned, DS_ACCEL_POINTER_PINNED);
    expect_pointer(managed, DS_ACCEL_POINTER_MANAGED);
    expect_pointer(mine, DS_ACCEL_POINTER_PINNED);
    cr_expect_eq(info_of(pointer + 100).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(info_of(pointer - 1).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(info_of(NULL).device_index, -1);
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    release(managed);
    release(pointer);
    cr_expect_eq(info_of(pointer).kind, DS_ACCEL_POINTER_UNKNOWN);
    close_mock();
}

Test(plugin_mock, allocation_ids_are_never_used_again)
{
    uint64_t last = 0;

    open_mock();
    for (int i = 0; i < 200; i++) {
        void *pointer = allocate(64);

        cr_expect_gt(info_of(pointer).allocation_id, last);
        last = info_of(pointer).allocation_id;
        release(pointer);
    }
    close_mock();
}

Test(plugin_mock, many_allocations_are_told_apart)
{
    char *pointers[1000];

    open_mock();
    for (size_t i = 0; i < ARRAY_SIZE(pointers); i++) {
        pointers[i] = allocate(i % 7 + 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(pointers); i += 2) {
        release(pointers[i]);
    }
    for (size_t i = 1; i < ARRAY_SIZE(pointers); i += 2) {
        cr_expect_eq(info_of(pointers[i]).size_bytes, i % 7 + 1);
        release(pointers[i]);
    }
    cr_expect_eq(stats_now().allocated_bytes, 0);
    close_mock();
}

/* ---- copies and fills ----------------------------------------------------------------------- */

Test(plugin_mock, bytes_arrive_whatever_way_they_go)
{
    const uint16_t pattern = 0x1234;
    char text[8] = "there";
    char back[8] = "";
    uint16_t filled[4] = {0};
    ds_accel_plugin_stream_t *stream;
    char *first;
    char *second;

    open_mock();
    stream = make_stream();
    first = allocate(8);
    second = allocate(8);
    EXPECT_OK(table->mem_copy(handle, first, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(
        table->mem_copy_async(stream, second, first, 8, DS_ACCEL_COPY_DEVICE_TO_DEVICE, &error));
    EXPECT_OK(table->mem_copy_async(stream, back, second, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->mem_fill_async(stream, first, &pattern, 2, 8, &error));
    EXPECT_OK(table->mem_copy_async(stream, filled, first, 8, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(back, "there");
    for (size_t i = 0; i < ARRAY_SIZE(filled); i++) {
        cr_expect_eq(filled[i], pattern, "%zu: %u", i, filled[i]);
    }
    EXPECT_OK(table->mem_copy(handle, NULL, NULL, 0, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    table->stream_destroy(stream);
    release(second);
    release(first);
    close_mock();
}

Test(plugin_mock, copies_that_would_fault_are_refused)
{
    static char host[200];
    char *pointer;

    open_mock();
    pointer = allocate(100);
    expect_copy_refused(pointer, host, 101, DS_ACCEL_COPY_HOST_TO_DEVICE, "past the end");
    expect_copy_refused(pointer + 50, host, 51, DS_ACCEL_COPY_INFER, "past the end");
    expect_copy_refused(host, host + 100, 100, DS_ACCEL_COPY_HOST_TO_DEVICE, "live device memory");
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_HOST_TO_HOST, "is device memory");
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_DEVICE_TO_DEVICE, "live device memory");
    expect_copy_refused(pointer, pointer + 49, 50, DS_ACCEL_COPY_DEVICE_TO_DEVICE, "overlap");
    expect_copy_refused(NULL, host, 100, DS_ACCEL_COPY_INFER, "is no range");
    expect_copy_refused(pointer, host, 100, 0, "unknown kind 0");
    expect_copy_refused(pointer, host, 100, 6, "unknown kind 6");
    EXPECT_OK(table->mem_copy(handle, pointer, pointer + 50, 50, DS_ACCEL_COPY_INFER, &error));
    release(pointer);
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_HOST_TO_DEVICE, "live device memory");
    close_mock();
}

Test(plugin_mock, fills_that_cannot_be_are_refused)
{
    static const char pattern[4] = "abc";
    ds_accel_plugin_stream_t *stream;
    char *pointer;

    open_mock();
    stream = make_stream();
    pointer = allocate(100);
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 3, 99, &error),
                DS_ACCEL_ERR_INVALID, "not of 1, 2 or 4 bytes (3)");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 4, 98, &error),
                DS_ACCEL_ERR_INVALID, "98 bytes are no multiple");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 0, 100, &error),
                DS_ACCEL_ERR_INVALID, "(0)");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, NULL, 1, 100, &error), DS_ACCEL_ERR_INVALID,
                "pattern is NULL");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 1, 101, &error),
                DS_ACCEL_ERR_INVALID, "past the end");
    table->stream_destroy(stream);
    release(pointer);
    close_mock();
}

Test(plugin_mock, a_peer_copy_needs_the_owners_of_both_ends)
{
    char text[8] = "peer";
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    void *theirs = NULL;
    void *ours;

    open_mock();
    peer = open_index(1, &second);
    stream = make_stream();
    ours = allocate(8);
    ASSERT_OK(table->mem_alloc(peer, 8, 0, 0, &theirs, &error));
    memcpy(ours, text, 8);
    EXPECT_OK(table->mem_copy_peer_async(stream, peer, theirs, handle, ours, 8, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(theirs, "peer");
    EXPECT_FAIL(table->mem_copy_peer_async(stream, handle, theirs, handle, ours, 8, &error),
                DS_ACCEL_ERR_INVALID, "belongs to another device");
    EXPECT_FAIL(table->mem_copy_peer_async(stream, peer, theirs, NULL, ours, 8, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    table->stream_destroy(stream);
    EXPECT_OK(table->mem_free(peer, theirs, &error));
    release(ours);
    ds_accel_device_close(second);
    close_mock();
}
