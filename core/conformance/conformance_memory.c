/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: device memory, copies and fills, memory statistics, limits, addresses. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

#define MEMORY "memory"
#define COPY "copy"
#define POINTER "pointer"
#define MIB (UINT64_C(1) << 20)

/* ---- allocations ---------------------------------------------------------------------------- */

/* Invalid alignments, which are not powers of two. */
static const uint64_t odd_aligns[] = {3, 6, 48, 4097, 12288, UINT64_MAX};

static void check_alignment(struct ds_accel__run *run)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    void *pointer = NULL;

    WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    for (uint64_t align = 0; align <= MIB; align = align > 0 ? 2 * align : 1) {
        uint64_t wanted = align > info.allocation_align_bytes ? align : info.allocation_align_bytes;

        WANT(run, DS_ACCEL_OK, mem_alloc, run->device, 100, align, 0, &pointer);
        EXPECT(run, wanted == 0 || (uintptr_t)pointer % wanted == 0,
               "align_bytes %llu: %p is not a multiple of %llu", (unsigned long long)align, pointer,
               (unsigned long long)wanted);
        ds_accel__give(run, pointer);
    }
    for (size_t i = 0; i < ARRAY_SIZE(odd_aligns); i++) {
        WANT_ERROR(run, mem_alloc, run->device, 100, odd_aligns[i], 0, &pointer);
    }
}

/* Check that size 0 and sizes that no device has are refused. Some of these sizes overflow to small
 * sizes if they are rounded up. */
static void check_sizes(struct ds_accel__run *run)
{
    static const uint64_t impossible[] = {
        0,
        UINT64_MAX,
        UINT64_MAX - 7,
        UINT64_MAX - 255,
        UINT64_MAX - 4095,
        UINT64_C(1) << 63,
        (UINT64_C(1) << 62) + 1,
    };
    void *pointer = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(impossible); i++) {
        const uint64_t size = impossible[i];

        WANT_ERROR(run, mem_alloc, run->device, size, 0, 0, &pointer);
        WANT_ERROR(run, mem_alloc, run->device, size, 4096, 0, &pointer);
        if (run->table.mem_alloc_pinned != NULL) {
            WANT_ERROR(run, mem_alloc_pinned, run->device, size, 1, 0, &pointer);
            WANT_ERROR(run, mem_alloc_pinned, run->device, size, 4096, 0, &pointer);
        }
        if (run->table.mem_alloc_managed != NULL) {
            WANT_ERROR(run, mem_alloc_managed, run->device, size, 0, &pointer);
        }
        if (run->table.mem_alloc_async != NULL && run->stream != NULL) {
            WANT_ERROR(run, mem_alloc_async, run->stream, size, 0, NULL, 0, &pointer);
        }
    }
}

/* A size that needs more than 32 bits; the device may have less memory. */
#define HUGE_BYTES ((UINT64_C(4) << 30) + 65536)

static void check_huge(struct ds_accel__run *run)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    unsigned char bytes[64];
    char *pointer;
    void *given = NULL;

    if (CALL(run, mem_alloc, run->device, HUGE_BYTES, 0, 0, &given) != DS_ACCEL_OK) {
        ds_accel__skip(run, "more than 4 GiB cannot be allocated");
        return;
    }
    pointer = given;
    if (run->table.mem_pointer_info != NULL) {
        WANT(run, DS_ACCEL_OK, mem_pointer_info, run->instance, run->device, pointer, &info);
        EXPECT(run, info.kind == DS_ACCEL_POINTER_UNKNOWN || info.size_bytes >= HUGE_BYTES,
               "%llu bytes were allocated, but are reported as %llu",
               (unsigned long long)HUGE_BYTES, (unsigned long long)info.size_bytes);
    }
    ds_accel__pattern(bytes, sizeof(bytes), 18);
    ds_accel__put(run, pointer, bytes, sizeof(bytes));
    ds_accel__pattern(bytes, sizeof(bytes), 19);
    ds_accel__put(run, pointer + HUGE_BYTES - sizeof(bytes), bytes, sizeof(bytes));
    ds_accel__want_pattern(run, pointer, sizeof(bytes), 18, "the first of more than 4 GiB");
    ds_accel__want_pattern(run, pointer + HUGE_BYTES - sizeof(bytes), sizeof(bytes), 19,
                           "the last of more than 4 GiB");
    ds_accel__give(run, pointer);
}

static void check_apart(struct ds_accel__run *run)
{
    static const size_t sizes[] = {1, 2, 255, 256, 257, 4096, 70001};
    enum {
        COUNT = ARRAY_SIZE(sizes)
    };
    unsigned char bytes[70001];
    unsigned char *pointers[COUNT];

    for (unsigned i = 0; i < COUNT; i++) {
        pointers[i] = ds_accel__take(run, sizes[i]);
        ds_accel__pattern(bytes, sizes[i], i);
        ds_accel__put(run, pointers[i], bytes, sizes[i]);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < COUNT; k++) {
            EXPECT(run,
                   i == k || pointers[i] + sizes[i] <= pointers[k] ||
                       pointers[k] + sizes[k] <= pointers[i],
                   "%p with %zu bytes and %p with %zu overlap", (void *)pointers[i], sizes[i],
                   (void *)pointers[k], sizes[k]);
        }
        ds_accel__want_pattern(run, pointers[i], sizes[i], i, "an allocation among others");
    }
    for (unsigned i = 0; i < COUNT; i++) {
        ds_accel__give(run, pointers[i]);
    }
}

static void check_exhausted(struct ds_accel__run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    void *pointer = NULL;

    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    if ((info.valid & DS_ACCEL_MEMORY_TOTAL) == 0) {
        ds_accel__skip(run, "the size of the device's memory is not known");
        return;
    }
    for (int i = 0; i < 3; i++) {
        WANT(run, DS_ACCEL_ERR_NO_MEMORY, mem_alloc, run->device, info.total_bytes + 1024 * MIB, 0,
             0, &pointer);
        ds_accel__give(run, ds_accel__take(run, MIB));
    }
    if (run->table.device_health != NULL) {
        EXPECT(run, CALL(run, device_health, run->device) != DS_ACCEL_ERR_DEVICE_LOST,
               "the device is lost with its memory exhausted");
    }
}

static void check_limit(struct ds_accel__run *run)
{
    void *inside;
    void *beyond = NULL;

    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 4 * MIB);
    inside = ds_accel__take(run, MIB);
    WANT(run, DS_ACCEL_ERR_NO_MEMORY, mem_alloc, run->device, 4 * MIB, 0, 0, &beyond);
    ds_accel__give(run, inside);
    for (int i = 0; i < 16; i++) { /* memory that was freed must not count towards the limit */
        ds_accel__give(run, ds_accel__take(run, 3 * MIB));
    }
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 0);
    ds_accel__give(run, ds_accel__take(run, 4 * MIB));
}

/* Fail unless an allocation beyond the limit failed with ERR_NO_MEMORY, or the device does not
 * support this kind of memory. */
static void want_beyond(struct ds_accel__run *run, const char *slot, int32_t status)
{
    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel__want(run, DS_ACCEL_ERR_NO_MEMORY, slot, status);
    }
}

static void check_limit_of_all(struct ds_accel__run *run)
{
    void *pointer = NULL;

    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 4 * MIB);
    if (run->table.mem_alloc_managed != NULL) {
        want_beyond(run, "mem_alloc_managed",
                    CALL(run, mem_alloc_managed, run->device, 8 * MIB, 0, &pointer));
    }
    if (ds_accel__has_slot(run, SLOT(mem_alloc_async)) && run->stream != NULL) {
        want_beyond(run, "mem_alloc_async",
                    CALL(run, mem_alloc_async, run->stream, 8 * MIB, 0, NULL, 0, &pointer));
    }
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 0);
}

/* Check that mem_info reports the limit and no more available memory than the limit, and no longer
 * reports a limit that was lifted. */
static void check_limit_is_told(struct ds_accel__run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 4 * MIB);
    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    EXPECT(run, info.limit_bytes == 4 * MIB, "with a limit of %llu bytes limit_bytes is %llu",
           (unsigned long long)(4 * MIB), (unsigned long long)info.limit_bytes);
    EXPECT(run, info.limit_source[0] != '\0', "a limit has no limit_source");
    EXPECT(run, (info.valid & DS_ACCEL_MEMORY_AVAILABLE) == 0 || info.available_bytes <= 4 * MIB,
           "with a limit of %llu bytes %llu are available", (unsigned long long)(4 * MIB),
           (unsigned long long)info.available_bytes);
    WANT(run, DS_ACCEL_OK, mem_set_limit, run->device, 0);
    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    EXPECT(run, info.limit_bytes != 4 * MIB, "a lifted limit is reported");
}

static void check_trim(struct ds_accel__run *run)
{
    unsigned char bytes[1000];
    void *pointer = ds_accel__take(run, sizeof(bytes));

    ds_accel__pattern(bytes, sizeof(bytes), 5);
    ds_accel__put(run, pointer, bytes, sizeof(bytes));
    ds_accel__give(run, ds_accel__take(run, MIB));
    WANT(run, DS_ACCEL_OK, mem_trim, run->device, 0);
    ds_accel__want_pattern(run, pointer, sizeof(bytes), 5, "memory in use");
    ds_accel__give(run, pointer);
}

/* ---- memory information --------------------------------------------------------------------- */

static void check_info(struct ds_accel__run *run)
{
    const uint32_t both = DS_ACCEL_MEMORY_TOTAL | DS_ACCEL_MEMORY_AVAILABLE;
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    WANT(run, DS_ACCEL_OK, mem_info, run->device, &info);
    EXPECT(run, (info.valid & ~(both | DS_ACCEL_MEMORY_PROCESS)) == 0, "valid is 0x%x", info.valid);
    EXPECT(run, (info.valid & both) != both || info.available_bytes <= info.total_bytes,
           "%llu bytes are available of %llu", (unsigned long long)info.available_bytes,
           (unsigned long long)info.total_bytes);
    EXPECT(run,
           (info.valid & DS_ACCEL_MEMORY_TOTAL) == 0 || info.limit_bytes == 0 ||
               info.limit_source[0] != '\0',
           "a limit of %llu bytes has no limit_source", (unsigned long long)info.limit_bytes);
}

static struct ds_accel_memory_stats read_stats(struct ds_accel__run *run)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    WANT(run, DS_ACCEL_OK, mem_stats, run->device, &stats);
    return stats;
}

static void check_counts(struct ds_accel__run *run)
{
    struct ds_accel_memory_stats before = read_stats(run);
    struct ds_accel_memory_stats held;
    struct ds_accel_memory_stats after;
    void *pointer = NULL;

    if ((before.valid & DS_ACCEL_STATS_COUNTS) == 0) {
        ds_accel__skip(run, "allocations are not counted");
        return;
    }
    pointer = ds_accel__take(run, MIB);
    held = read_stats(run);
    EXPECT(run, held.alloc_count == before.alloc_count + 1 && held.free_count == before.free_count,
           "alloc_count went from %llu to %llu with one allocation",
           (unsigned long long)before.alloc_count, (unsigned long long)held.alloc_count);
    ds_accel__give(run, pointer);
    after = read_stats(run);
    EXPECT(run, after.free_count == before.free_count + 1,
           "free_count went from %llu to %llu with one mem_free",
           (unsigned long long)before.free_count, (unsigned long long)after.free_count);
    CALL(run, mem_alloc, run->device, UINT64_C(1) << 62, 0, 0, &pointer);
    if (run->error.code == DS_ACCEL_ERR_NO_MEMORY) {
        EXPECT(run, read_stats(run).out_of_memory_count == after.out_of_memory_count + 1,
               "out_of_memory_count did not follow a refusal");
    }
}

static void check_peaks(struct ds_accel__run *run)
{
    struct ds_accel_memory_stats stats;
    uint64_t peak;
    void *pointer;

    WANT(run, DS_ACCEL_OK, mem_reset_peaks, run->device,
         DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED);
    pointer = ds_accel__take(run, 4 * MIB);
    stats = read_stats(run);
    if ((stats.valid & DS_ACCEL_STATS_ALLOCATED) == 0) {
        ds_accel__give(run, pointer);
        ds_accel__skip(run, "allocated bytes are not known");
        return;
    }
    peak = stats.allocated_peak_bytes;
    EXPECT(run, peak >= stats.allocated_bytes, "the peak is %llu with %llu bytes allocated",
           (unsigned long long)peak, (unsigned long long)stats.allocated_bytes);
    ds_accel__give(run, pointer);
    stats = read_stats(run);
    EXPECT(run, stats.allocated_peak_bytes >= peak, "the peak fell from %llu to %llu with mem_free",
           (unsigned long long)peak, (unsigned long long)stats.allocated_peak_bytes);
    WANT(run, DS_ACCEL_OK, mem_reset_peaks, run->device, DS_ACCEL_PEAK_RESERVED);
    stats = read_stats(run);
    EXPECT(run, stats.allocated_peak_bytes >= peak,
           "the peak of allocated bytes fell from %llu to %llu with that of reserved ones",
           (unsigned long long)peak, (unsigned long long)stats.allocated_peak_bytes);
    WANT(run, DS_ACCEL_OK, mem_reset_peaks, run->device,
         DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED);
    stats = read_stats(run);
    EXPECT(run, stats.allocated_peak_bytes <= stats.allocated_bytes + 2 * MIB,
           "after mem_reset_peaks the peak is %llu with %llu bytes allocated",
           (unsigned long long)stats.allocated_peak_bytes,
           (unsigned long long)stats.allocated_bytes);
}

/* ---- copies and fills ----------------------------------------------------------------------- */

static const size_t sizes[] = {1, 3, 4, 63, 64, 65, 4095, 4097};
static const size_t offsets[] = {0, 1, 7};
#define AREA 8192u

/* Copy size bytes to the device at an offset, within the device and back, and check the copied
 * bytes and their neighbours. */
static void check_one_copy(struct ds_accel__run *run, unsigned char *area, size_t size,
                           size_t offset)
{
    unsigned char wanted[AREA];
    unsigned char piece[AREA];
    unsigned char back[AREA];

    ds_accel__pattern(wanted, AREA, 6);
    ds_accel__put(run, area, wanted, AREA);
    ds_accel__pattern(piece, size, 7);
    ds_accel__put(run, area + offset, piece, size);
    memcpy(wanted + offset, piece, size);
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, area + AREA + offset + 5, area + offset, size,
         DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    ds_accel__get(run, back, area, AREA);
    EXPECT(run, memcmp(back, wanted, AREA) == 0,
           "%zu bytes from the host to offset %zu: wrong data there, or bytes outside it changed",
           size, offset);
    memset(back, 0x77, sizeof(back));
    ds_accel__get(run, back + offset, area + AREA + offset + 5, size);
    EXPECT(run, memcmp(back + offset, piece, size) == 0,
           "%zu bytes to and from the device at offset %zu: wrong data came back", size,
           offset + 5);
    EXPECT(run, (offset == 0 || back[offset - 1] == 0x77) && back[offset + size] == 0x77,
           "%zu bytes to the host: a byte outside them was written", size);
}

static void check_copies(struct ds_accel__run *run)
{
    unsigned char *area = ds_accel__take(run, 2 * AREA);

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(offsets); k++) {
            check_one_copy(run, area, sizes[i], offsets[k]);
        }
    }
    ds_accel__give(run, area);
}

static void check_other_kinds(struct ds_accel__run *run)
{
    unsigned char from[300];
    unsigned char to[300] = {0};
    unsigned char *memory = ds_accel__take(run, sizeof(from));

    ds_accel__pattern(from, sizeof(from), 8);
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, to, from, sizeof(from),
         DS_ACCEL_COPY_HOST_TO_HOST);
    EXPECT(run, memcmp(from, to, sizeof(from)) == 0, "host to host: wrong data arrived");
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, memory, from, 0, DS_ACCEL_COPY_HOST_TO_DEVICE);
    if ((run->info.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0) {
        memset(to, 0, sizeof(to));
        WANT(run, DS_ACCEL_OK, mem_copy, run->device, memory, from, sizeof(from),
             DS_ACCEL_COPY_INFER);
        WANT(run, DS_ACCEL_OK, mem_copy, run->device, to, memory, sizeof(from),
             DS_ACCEL_COPY_INFER);
        EXPECT(run, memcmp(from, to, sizeof(from)) == 0, "inferred: wrong data arrived");
    }
    ds_accel__give(run, memory);
}

/* Check queued copies of the kinds HOST_TO_HOST and, if the backend has unified addresses,
 * INFER. */
static void check_queued_kinds(struct ds_accel__run *run)
{
    static unsigned char from[5000], to[sizeof(from)];
    void *memory;

    ds_accel__pattern(from, sizeof(from), 17);
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to, from, sizeof(from),
         DS_ACCEL_COPY_HOST_TO_HOST);
    ds_accel__wait(run, run->stream);
    EXPECT(run, memcmp(from, to, sizeof(from)) == 0, "from host to host: wrong data arrived");
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to, from, 0, DS_ACCEL_COPY_HOST_TO_HOST);
    if ((run->info.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0) {
        memory = ds_accel__take(run, sizeof(from));
        memset(to, 0, sizeof(to));
        WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, memory, from, sizeof(from),
             DS_ACCEL_COPY_INFER);
        WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to, memory, sizeof(from),
             DS_ACCEL_COPY_INFER);
        ds_accel__wait(run, run->stream);
        EXPECT(run, memcmp(from, to, sizeof(from)) == 0,
               "with an inferred direction: wrong data arrived");
        ds_accel__give(run, memory);
    }
}

static void check_async_copies(struct ds_accel__run *run)
{
    unsigned char from[5000];
    unsigned char to[5000] = {0};
    unsigned char *memory = ds_accel__take(run, sizeof(from));

    ds_accel__pattern(from, sizeof(from), 9);
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, memory, from, 0,
         DS_ACCEL_COPY_HOST_TO_DEVICE);
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, memory, from, sizeof(from),
         DS_ACCEL_COPY_HOST_TO_DEVICE);
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to + 1, memory + 1, sizeof(from) - 2,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
    ds_accel__wait(run, run->stream);
    EXPECT(run, memcmp(from + 1, to + 1, sizeof(from) - 2) == 0, "wrong data came back");
    EXPECT(run, to[0] == 0 && to[sizeof(to) - 1] == 0, "a byte outside them was written");
    ds_accel__give(run, memory);
}

/* Check copies from and to pinned memory, for which most runtimes use other code than for
 * ordinary memory. */
static void check_pinned_copies(struct ds_accel__run *run)
{
    const size_t size = 5003;
    unsigned char *memory = ds_accel__take(run, size);
    void *pinned[2] = {NULL, NULL};
    unsigned char *from, *to;

    for (int i = 0; i < 2; i++) {
        if (CALL(run, mem_alloc_pinned, run->device, size + 1, 1, 0, &pinned[i]) != DS_ACCEL_OK) {
            ds_accel__skip(run, "%.200s", run->error.message);
        }
    }
    from = pinned[0];
    to = pinned[1];
    if (!run->is_skipped) {
        ds_accel__pattern(from, size, 23);
        memset(to, 0, size + 1);
        WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, memory, from, size,
             DS_ACCEL_COPY_HOST_TO_DEVICE);
        WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to, memory, size,
             DS_ACCEL_COPY_DEVICE_TO_HOST);
        ds_accel__wait(run, run->stream);
        ds_accel__want_pattern(run, memory, size, 23, "queued from pinned memory");
        EXPECT(run, memcmp(from, to, size) == 0 && to[size] == 0,
               "queued to pinned memory: wrong data there, or bytes after it changed");
    }
    for (int i = 0; i < 2; i++) {
        if (pinned[i] != NULL) {
            WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pinned[i]);
        }
    }
    ds_accel__give(run, memory);
}

/* ---- several MiB ---------------------------------------------------------------------------- */

/* Larger than a runtime's staging buffer, and not a multiple of the page size. */
#define LARGE (3 * MIB + 4093)
#define EDGE 4096u /* size of the checked margins around the copy */
#define ODD 13u

/* A function that copies memory by one of the plugin's slots and returns when the copy is
 * complete. check_large() has the same requirements for all of them. */
typedef void (*copier_t)(struct ds_accel__run *run, void *to, const void *from, size_t size,
                         uint32_t kind);

static void copy_now(struct ds_accel__run *run, void *to, const void *from, size_t size,
                     uint32_t kind)
{
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, to, from, size, kind);
}

static void copy_queued(struct ds_accel__run *run, void *to, const void *from, size_t size,
                        uint32_t kind)
{
    WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, to, from, size, kind);
    ds_accel__wait(run, run->stream);
}

static void want_same(struct ds_accel__run *run, const unsigned char *given,
                      const unsigned char *wanted, size_t size, const char *what)
{
    for (size_t i = 0; i < size; i++) {
        EXPECT(run, given[i] == wanted[i], "%s: byte %zu of %zu is 0x%02x, expected 0x%02x", what,
               i, size, given[i], wanted[i]);
    }
}

/* Check a large copy to the device, within it and back, and the neighbouring bytes. */
static void check_large(struct ds_accel__run *run, copier_t copy)
{
    const size_t whole = LARGE + 2 * EDGE;
    unsigned char *wanted = malloc(whole);
    unsigned char *given = malloc(whole);
    unsigned char *first = ds_accel__take(run, whole);
    unsigned char *second = ds_accel__take(run, whole);

    EXPECT(run, wanted != NULL && given != NULL, "host memory is exhausted");
    ds_accel__pattern(given, whole, 14);
    /* Write small pieces, because this check must not rely on the large copies that it tests. */
    for (size_t i = 0; i < whole; i += EDGE) {
        size_t piece = whole - i < EDGE ? whole - i : EDGE;

        ds_accel__put(run, first + i, given + i, piece);
        ds_accel__put(run, second + i, given + i, piece);
    }
    memcpy(wanted, given, whole);
    ds_accel__pattern(wanted + ODD, LARGE, 15);
    memcpy(given, wanted, whole);
    copy(run, first + ODD, given + ODD, LARGE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    memset(given, 0, whole); /* the copy has completed and no longer reads the source */
    copy(run, second + ODD, first + ODD, LARGE, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    memset(given, 0, whole);
    for (size_t i = 0; i < whole; i += EDGE) {
        ds_accel__get(run, given + i, second + i, whole - i < EDGE ? whole - i : EDGE);
    }
    want_same(run, given, wanted, whole, "copied to and within the device");
    memset(given, 0, whole);
    copy(run, given + ODD, first + ODD, LARGE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    want_same(run, given + ODD, wanted + ODD, LARGE, "copied to the host");
    EXPECT(run, given[ODD - 1] == 0 && given[ODD + LARGE] == 0,
           "copied to the host: a byte outside it was written");
    free(wanted);
    free(given);
    ds_accel__give(run, first);
    ds_accel__give(run, second);
}

static void check_large_copies(struct ds_accel__run *run)
{
    check_large(run, copy_now);
}

static void check_large_queued(struct ds_accel__run *run)
{
    check_large(run, copy_queued);
}

static void check_large_fill(struct ds_accel__run *run)
{
    static const unsigned char pattern[4] = {0x9a, 0xbc, 0xde, 0xf0};
    const size_t size = 3 * MIB + 4092;
    unsigned char *memory = ds_accel__take(run, size + EDGE);
    unsigned char bytes[EDGE] = {0};

    ds_accel__put(run, memory + size, bytes, EDGE);
    WANT(run, DS_ACCEL_OK, mem_fill_async, run->stream, memory, pattern, 4, (uint64_t)size);
    ds_accel__wait(run, run->stream);
    for (size_t i = 0; i < size; i += EDGE) {
        size_t piece = size - i < EDGE ? size - i : EDGE;

        ds_accel__get(run, bytes, memory + i, piece);
        for (size_t k = 0; k < piece; k++) {
            EXPECT(run, bytes[k] == pattern[k % 4], "byte %zu of a fill of %zu is 0x%02x", i + k,
                   size, bytes[k]);
        }
    }
    ds_accel__get(run, bytes, memory + size, EDGE);
    EXPECT(run, bytes[0] == 0 && memcmp(bytes, bytes + 1, EDGE - 1) == 0,
           "a fill of %zu bytes wrote past them", size);
    ds_accel__give(run, memory);
}

static void check_one_fill(struct ds_accel__run *run, unsigned char *area, uint32_t pattern_bytes,
                           size_t count)
{
    static const unsigned char pattern[4] = {0x12, 0x34, 0x56, 0x78};
    unsigned char wanted[AREA];
    unsigned char back[AREA];
    const size_t size = count * pattern_bytes;
    const size_t offset = 64 + pattern_bytes; /* aligned only to the pattern's size */

    ds_accel__pattern(wanted, AREA, 10);
    ds_accel__put(run, area, wanted, AREA);
    for (size_t i = 0; i < size; i++) {
        wanted[offset + i] = pattern[i % pattern_bytes];
    }
    WANT(run, DS_ACCEL_OK, mem_fill_async, run->stream, area + offset, pattern, pattern_bytes,
         size);
    ds_accel__wait(run, run->stream);
    ds_accel__get(run, back, area, AREA);
    EXPECT(run, memcmp(back, wanted, AREA) == 0,
           "%zu bytes with a pattern of %u: wrong data there, or bytes outside it changed", size,
           pattern_bytes);
}

static void check_fills(struct ds_accel__run *run)
{
    static const size_t counts[] = {1, 3, 17, 1000};
    unsigned char *area = ds_accel__take(run, AREA);

    for (uint32_t bytes = 1; bytes <= 4; bytes *= 2) {
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
            check_one_fill(run, area, bytes, counts[i]);
        }
    }
    WANT_ERROR(run, mem_fill_async, run->stream, area, "abc", 3, 3);
    WANT_ERROR(run, mem_fill_async, run->stream, area, "abcd", 4, 6);
    WANT(run, DS_ACCEL_OK, mem_fill_async, run->stream, area, "abcd", 4, 0);
    ds_accel__give(run, area);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static struct ds_accel_pointer_info ask(struct ds_accel__run *run, const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .device_index = 77};

    WANT(run, DS_ACCEL_OK, mem_pointer_info, run->instance, run->device, pointer, &info);
    return info;
}

static void check_pointer(struct ds_accel__run *run)
{
    char *pointer = ds_accel__take(run, 1000);
    char *other = ds_accel__take(run, 1000);
    struct ds_accel_pointer_info first = ask(run, pointer);
    struct ds_accel_pointer_info last = ask(run, pointer + 999);
    int local = 0;

    EXPECT(run, first.kind == DS_ACCEL_POINTER_DEVICE, "kind is %u, expected %u", first.kind,
           DS_ACCEL_POINTER_DEVICE);
    EXPECT(run, first.device_index == (int32_t)run->device_index, "device_index is %d",
           first.device_index);
    EXPECT(run, first.base_address == (uintptr_t)pointer && first.size_bytes >= 1000,
           "%p is reported as 0x%llx with %llu bytes", (void *)pointer,
           (unsigned long long)first.base_address, (unsigned long long)first.size_bytes);
    EXPECT(run,
           last.kind == first.kind && last.base_address == first.base_address &&
               last.size_bytes == first.size_bytes && last.allocation_id == first.allocation_id &&
               last.device_index == first.device_index,
           "the last byte is reported in another allocation");
    EXPECT(run, ask(run, pointer + first.size_bytes).base_address != first.base_address,
           "the byte past the end is reported as inside");
    EXPECT(run, first.allocation_id == 0 || first.allocation_id != ask(run, other).allocation_id,
           "two allocations have the id %llu", (unsigned long long)first.allocation_id);
    ds_accel__give(run, pointer);
    EXPECT(run, ask(run, pointer).base_address != (uintptr_t)pointer,
           "freed memory is reported as allocated");
    /* a new allocation often reuses the address */
    for (int i = 0; i < 8 && first.allocation_id != 0; i++) {
        void *again = ds_accel__take(run, 1000);

        EXPECT(run, ask(run, again).allocation_id != first.allocation_id,
               "the allocation_id %llu is used again", (unsigned long long)first.allocation_id);
        ds_accel__give(run, again);
    }
    ds_accel__give(run, other);
    EXPECT(run,
           ask(run, &local).kind != DS_ACCEL_POINTER_DEVICE &&
               ask(run, &local).kind != DS_ACCEL_POINTER_PINNED,
           "a variable of the program is reported as device memory");
}

/* Fail unless mem_pointer_info() reports the first and last byte of pinned or managed memory with
 * this kind and in one allocation of at least `size` bytes that begins at the pointer. */
static void want_known(struct ds_accel__run *run, const char *slot, const char *pointer,
                       uint64_t size, uint32_t kind)
{
    struct ds_accel_pointer_info first = ask(run, pointer);
    struct ds_accel_pointer_info last = ask(run, pointer + size - 1);

    EXPECT(run, first.kind == kind && last.kind == kind,
           "memory of %s is reported as kind %u, its last byte as kind %u, expected %u", slot,
           first.kind, last.kind, kind);
    EXPECT(run, first.base_address == (uintptr_t)pointer && first.size_bytes >= size,
           "%p of %s is reported as 0x%llx with %llu bytes", (const void *)pointer, slot,
           (unsigned long long)first.base_address, (unsigned long long)first.size_bytes);
    EXPECT(run, last.base_address == first.base_address && last.size_bytes == first.size_bytes,
           "the last byte of memory of %s is reported in another allocation", slot);
}

#define KNOWN_BYTES 20000u

static void check_pinned_pointer(struct ds_accel__run *run)
{
    void *pointer = NULL;
    int32_t status = CALL(run, mem_alloc_pinned, run->device, KNOWN_BYTES, 1, 0, &pointer);

    if (status == DS_ACCEL_ERR_LIMIT) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_pinned", status);
    want_known(run, "mem_alloc_pinned", pointer, KNOWN_BYTES, DS_ACCEL_POINTER_PINNED);
    WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pointer);
    EXPECT(run, ask(run, pointer).kind != DS_ACCEL_POINTER_PINNED,
           "freed pinned memory is reported as pinned");
}

static void check_managed_pointer(struct ds_accel__run *run)
{
    void *pointer = NULL;
    int32_t status = CALL(run, mem_alloc_managed, run->device, KNOWN_BYTES, 0, &pointer);

    if (ds_accel__lacks(run, status, 0)) {
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_managed", status);
    want_known(run, "mem_alloc_managed", pointer, KNOWN_BYTES, DS_ACCEL_POINTER_MANAGED);
    WANT(run, DS_ACCEL_OK, mem_free, run->device, pointer);
}

static void check_other_device(struct ds_accel__run *run)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .device_index = 77};
    int local = 0;

    WANT(run, DS_ACCEL_OK, mem_pointer_info, run->instance, run->device, &local, &info);
    EXPECT(run, info.device_index == -1 || info.kind != DS_ACCEL_POINTER_UNKNOWN,
           "device_index of an unknown pointer is %d, expected -1", info.device_index);
}

/* ---- stream-ordered and managed memory ------------------------------------------------------ */

static void check_stream_ordered(struct ds_accel__run *run)
{
    unsigned char bytes[3000];
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    void *pointer = NULL;
    int32_t status;

    ds_accel__pattern(bytes, sizeof(bytes), 11);
    status = CALL(run, mem_alloc_async, run->stream, sizeof(bytes), 0, NULL, 0, &pointer);
    if (ds_accel__lacks(run, status, DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY)) {
        run->table.event_destroy(event);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_async", status);
    WANT(run, DS_ACCEL_OK, mem_free_async, run->stream, pointer, NULL, 0);
    for (int i = 0; i < 2; i++) {
        /* In the second round, the allocation waits for the event that the first round recorded
         * before its free. */
        WANT(run, DS_ACCEL_OK, mem_alloc_async, run->stream, sizeof(bytes), 0, &event, 1, &pointer);
        EXPECT(run, pointer != NULL, "mem_alloc_async: DS_ACCEL_OK without memory");
        WANT(run, DS_ACCEL_OK, mem_copy_async, run->stream, pointer, bytes, sizeof(bytes),
             DS_ACCEL_COPY_HOST_TO_DEVICE);
        ds_accel__wait(run, run->stream);
        ds_accel__want_pattern(run, pointer, sizeof(bytes), 11, "stream-ordered memory");
        WANT(run, DS_ACCEL_OK, event_record, event, run->stream);
        WANT(run, DS_ACCEL_OK, mem_free_async, run->stream, pointer, &event, 1);
    }
    ds_accel__wait(run, run->stream);
    run->table.event_destroy(event);
}

static void check_managed(struct ds_accel__run *run)
{
    unsigned char bytes[3000];
    void *pointer = NULL;
    int32_t status = CALL(run, mem_alloc_managed, run->device, sizeof(bytes), 0, &pointer);

    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel__skip(run, "%.200s", run->error.message);
        return;
    }
    ds_accel__want(run, DS_ACCEL_OK, "mem_alloc_managed", status);
    ds_accel__pattern(pointer, sizeof(bytes), 12); /* the host writes to managed memory */
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, bytes, pointer, sizeof(bytes),
         DS_ACCEL_COPY_DEVICE_TO_HOST);
    EXPECT(run, memcmp(bytes, pointer, sizeof(bytes)) == 0,
           "the device does not see what the host wrote");
    memset(bytes, 0x3c, sizeof(bytes));
    WANT(run, DS_ACCEL_OK, mem_copy, run->device, pointer, bytes, sizeof(bytes),
         DS_ACCEL_COPY_HOST_TO_DEVICE);
    EXPECT(run, memcmp(bytes, pointer, sizeof(bytes)) == 0,
           "the host does not see what was copied there");
    ds_accel__give(run, pointer);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {60,
     MEMORY,
     "every alignment up to 1 MiB",
     DEVICE,
     0,
     check_alignment,
     {SLOT(mem_alloc), SLOT(device_info)}},
    {61, MEMORY, "sizes 0 and UINT64_MAX", DEVICE, 0, check_sizes, {SLOT(mem_alloc)}},
    {63, MEMORY, "several allocations", DEVICE, 0, check_apart, {SLOT(mem_alloc), SLOT(mem_copy)}},
    {62,
     MEMORY,
     "more than there is",
     DEVICE,
     0,
     check_exhausted,
     {SLOT(mem_alloc), SLOT(mem_info)}},
    {69, MEMORY, "a limit", DEVICE, 0, check_limit, {SLOT(mem_alloc), SLOT(mem_set_limit)}},
    {70,
     MEMORY,
     "trimming",
     DEVICE,
     0,
     check_trim,
     {SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_trim)}},
    {66, MEMORY, "total and available memory", DEVICE, 0, check_info, {SLOT(mem_info)}},
    {67,
     MEMORY,
     "counts of allocations",
     DEVICE,
     0,
     check_counts,
     {SLOT(mem_alloc), SLOT(mem_stats)}},
    {68,
     MEMORY,
     "peaks",
     DEVICE,
     0,
     check_peaks,
     {SLOT(mem_alloc), SLOT(mem_stats), SLOT(mem_reset_peaks)}},
    {64, COPY, "odd sizes and offsets", DEVICE, 0, check_copies, {SLOT(mem_alloc), SLOT(mem_copy)}},
    {64,
     COPY,
     "copies on the host, of nothing, and inferred",
     DEVICE,
     0,
     check_other_kinds,
     {SLOT(mem_alloc), SLOT(mem_copy)}},
    {64,
     COPY,
     "queued copies",
     DEVICE,
     0,
     check_async_copies,
     {SLOT(mem_alloc), SLOT(mem_copy_async), SLOT(stream_create)}},
    {64,
     COPY,
     "queued copies of other kinds",
     DEVICE,
     0,
     check_queued_kinds,
     {SLOT(mem_alloc), SLOT(mem_copy_async), SLOT(stream_create)}},
    {64, COPY, "several MiB", DEVICE, 0, check_large_copies, {SLOT(mem_alloc), SLOT(mem_copy)}},
    {64,
     COPY,
     "several MiB, queued",
     DEVICE,
     0,
     check_large_queued,
     {SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_copy_async), SLOT(stream_create)}},
    {65,
     COPY,
     "a fill of several MiB",
     DEVICE,
     0,
     check_large_fill,
     {SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_fill_async), SLOT(stream_create)}},
    {65,
     COPY,
     "patterns of 1, 2 and 4 bytes",
     DEVICE,
     0,
     check_fills,
     {SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_fill_async), SLOT(stream_create)}},
    {71,
     POINTER,
     "inside, at the end and past it",
     DEVICE,
     0,
     check_pointer,
     {SLOT(mem_alloc), SLOT(mem_pointer_info)}},
    {71,
     POINTER,
     "pinned memory",
     DEVICE,
     0,
     check_pinned_pointer,
     {SLOT(mem_alloc_pinned), SLOT(mem_free_pinned), SLOT(mem_pointer_info)}},
    {71,
     POINTER,
     "managed memory",
     DEVICE,
     0,
     check_managed_pointer,
     {SLOT(mem_alloc_managed), SLOT(mem_pointer_info)}},
    {63,
     MEMORY,
     "more than 4 GiB",
     DEVICE,
     DS_ACCEL__CHECK_TRAP,
     check_huge,
     {SLOT(mem_alloc), SLOT(mem_copy)}},
    {69,
     MEMORY,
     "a limit for memory of every kind",
     DEVICE,
     0,
     check_limit_of_all,
     {SLOT(mem_set_limit)}},
    {66,
     MEMORY,
     "a limit is reported",
     DEVICE,
     0,
     check_limit_is_told,
     {SLOT(mem_set_limit), SLOT(mem_info)}},
    {64,
     COPY,
     "queued copies from and to pinned memory",
     DEVICE,
     0,
     check_pinned_copies,
     {SLOT(mem_alloc), SLOT(mem_copy), SLOT(mem_copy_async), SLOT(stream_create),
      SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)}},
    {71, POINTER, "an unknown pointer", DEVICE, 0, check_other_device, {SLOT(mem_pointer_info)}},
    {72,
     "async",
     "stream-ordered allocation",
     DEVICE,
     0,
     check_stream_ordered,
     {SLOT(mem_alloc_async), SLOT(mem_free_async), SLOT(mem_copy_async), SLOT(stream_create),
      SLOT(event_create), SLOT(mem_copy)}},
    {73,
     "managed",
     "host and device write in turn",
     DEVICE,
     0,
     check_managed,
     {SLOT(mem_alloc_managed), SLOT(mem_copy)}},
};

const struct ds_accel__check_list ds_accel__checks_memory = {checks, ARRAY_SIZE(checks)};
