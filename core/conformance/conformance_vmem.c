/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: virtual memory. */
#include "base/text.h"
#include "conformance/conformance.h"

#define GROUP "vmem"
#define BYTES 4000u /* number of bytes checked in a mapping, less than a page */

/* Return the minimum granularity of virtual memory. If the device does not support virtual memory,
 * skip the check and return 0. */
static uint64_t granularity(struct ds_accel__run *run)
{
    uint64_t minimum = 0;
    uint64_t recommended = 0;
    int32_t status = CALL(run, vmem_granularity, run->device, 0, &minimum, &recommended);

    if (ds_accel__lacks(run, status, DS_ACCEL_FLAG_VIRTUAL_MEMORY)) {
        return 0;
    }
    ds_accel__want(run, DS_ACCEL_OK, "vmem_granularity", status);
    EXPECT(run, minimum > 0, "vmem_granularity: the minimum is 0");
    return minimum;
}

static void check_granularity(struct ds_accel__run *run)
{
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    if (granularity(run) == 0) {
        return;
    }
    WANT(run, DS_ACCEL_OK, vmem_granularity, run->device, 0, &minimum, &recommended);
    EXPECT(run, minimum > 0 && (minimum & (minimum - 1)) == 0, "the minimum is %llu",
           (unsigned long long)minimum);
    EXPECT(run, recommended >= minimum && (recommended & (recommended - 1)) == 0,
           "%llu is recommended, the minimum is %llu", (unsigned long long)recommended,
           (unsigned long long)minimum);
}

static char *reserve(struct ds_accel__run *run, uint64_t size_bytes)
{
    void *address = NULL;

    WANT(run, DS_ACCEL_OK, vmem_reserve, run->device, size_bytes, 0, NULL, 0, &address);
    EXPECT(run, address != NULL, "vmem_reserve: DS_ACCEL_OK without addresses");
    return address;
}

static ds_accel_plugin_vmem_t *create(struct ds_accel__run *run, uint64_t size_bytes)
{
    ds_accel_plugin_vmem_t *vmem = NULL;

    WANT(run, DS_ACCEL_OK, vmem_create, run->device, size_bytes, 0, &vmem);
    EXPECT(run, vmem != NULL, "vmem_create: DS_ACCEL_OK without memory");
    return vmem;
}

static void map(struct ds_accel__run *run, void *address, uint64_t size_bytes,
                ds_accel_plugin_vmem_t *vmem, uint64_t offset_bytes)
{
    WANT(run, DS_ACCEL_OK, vmem_map, run->device, address, size_bytes, vmem, offset_bytes);
    WANT(run, DS_ACCEL_OK, vmem_set_access, run->device, address, size_bytes,
         DS_ACCEL_VMEM_ACCESS_READ_WRITE);
}

static void unmap(struct ds_accel__run *run, void *address, uint64_t size_bytes)
{
    WANT(run, DS_ACCEL_OK, vmem_unmap, run->device, address, size_bytes);
    WANT(run, DS_ACCEL_OK, vmem_release, run->device, address, size_bytes);
}

/* Check that physical memory keeps its contents when it is unmapped from one address range and
 * mapped at another. */
static void check_mapped(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmem;
    unsigned char bytes[BYTES];
    char *first, *second;

    if (size == 0) {
        return;
    }
    vmem = create(run, 2 * size);
    first = reserve(run, size);
    second = reserve(run, 2 * size);
    EXPECT(run, (uintptr_t)first % size == 0, "the reserved address %p is not a multiple of %llu",
           (void *)first, (unsigned long long)size);
    ds_accel__pattern(bytes, BYTES, 30);
    map(run, first, size, vmem, size);
    ds_accel__put(run, first, bytes, BYTES);
    ds_accel__want_pattern(run, first, BYTES, 30, "mapped memory");
    unmap(run, first, size);
    map(run, second, 2 * size, vmem, 0);
    ds_accel__want_pattern(run, second + size, BYTES, 30, "the same memory at another address");
    unmap(run, second, 2 * size);
    run->table.vmem_destroy(vmem);
}

static void check_destroyed(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmem;
    unsigned char bytes[BYTES];
    char *address;

    if (size == 0) {
        return;
    }
    vmem = create(run, size);
    address = reserve(run, size);
    ds_accel__pattern(bytes, BYTES, 31);
    map(run, address, size, vmem, 0);
    ds_accel__put(run, address, bytes, BYTES);
    run->table.vmem_destroy(vmem);
    ds_accel__want_pattern(run, address, BYTES, 31, "what is mapped of a destroyed memory");
    ds_accel__put(run, address, bytes, BYTES);
    unmap(run, address, size);
}

static void check_unmap(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmem;
    unsigned char bytes[BYTES];
    char *address;

    if (size == 0) {
        return;
    }
    vmem = create(run, size);
    address = reserve(run, 2 * size);
    ds_accel__pattern(bytes, BYTES, 32);
    WANT_ERROR(run, vmem_unmap, run->device, address, size);
    map(run, address, size, vmem, 0);
    ds_accel__put(run, address, bytes, BYTES);
    WANT_ERROR(run, vmem_unmap, run->device, address, 2 * size);
    WANT_ERROR(run, vmem_unmap, run->device, address + size, size);
    ds_accel__want_pattern(run, address, BYTES, 32, "what stayed mapped");
    WANT(run, DS_ACCEL_OK, vmem_unmap, run->device, address, size);
    WANT(run, DS_ACCEL_OK, vmem_release, run->device, address, 2 * size);
    run->table.vmem_destroy(vmem);
}

/* Check invalid calls: each must fail and leave existing mappings unchanged. */
static void check_unfit(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmem, *other;
    ds_accel_plugin_vmem_t *none = NULL;
    unsigned char bytes[BYTES];
    char *address;

    if (size == 0) {
        return;
    }
    vmem = create(run, size);
    other = create(run, size);
    address = reserve(run, 2 * size);
    ds_accel__pattern(bytes, BYTES, 33);
    if (size > 1) {
        WANT_ERROR(run, vmem_create, run->device, size + size / 2, 0, &none);
    }
    WANT_ERROR(run, vmem_map, run->device, address, 2 * size, vmem, 0);
    WANT_ERROR(run, vmem_map, run->device, address, size, vmem, size);
    WANT_ERROR(run, vmem_map, run->device, address + size, 2 * size, vmem, 0);
    map(run, address, size, vmem, 0);
    ds_accel__put(run, address, bytes, BYTES);
    WANT_ERROR(run, vmem_map, run->device, address, size, other, 0);
    WANT_ERROR(run, vmem_release, run->device, address, 2 * size);
    WANT_ERROR(run, vmem_release, run->device, address, size);
    ds_accel__want_pattern(run, address, BYTES, 33, "what is mapped while other calls fail");
    WANT(run, DS_ACCEL_OK, vmem_unmap, run->device, address, size);
    WANT(run, DS_ACCEL_OK, vmem_release, run->device, address, 2 * size);
    run->table.vmem_destroy(vmem);
    run->table.vmem_destroy(other);
}

/* Check that two physical memories mapped at adjacent addresses can be used as one range. */
static void check_side_by_side(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmems[2];
    unsigned char bytes[BYTES];
    char *address;

    if (size == 0) {
        return;
    }
    address = reserve(run, 2 * size);
    ds_accel__pattern(bytes, BYTES, 34);
    for (int i = 0; i < 2; i++) {
        vmems[i] = create(run, size);
        map(run, address + (uint64_t)i * size, size, vmems[i], 0);
    }
    ds_accel__put(run, address + size - BYTES / 2, bytes, BYTES);
    ds_accel__want_pattern(run, address + size - BYTES / 2, BYTES, 34, "two memories side by side");
    for (int i = 0; i < 2; i++) {
        WANT(run, DS_ACCEL_OK, vmem_unmap, run->device, address + (uint64_t)i * size, size);
        run->table.vmem_destroy(vmems[i]);
    }
    WANT(run, DS_ACCEL_OK, vmem_release, run->device, address, 2 * size);
}

#define RANGES 5u

/* Check that reserved ranges have the requested alignment. Several ranges are reserved, because
 * one address may be aligned by chance. */
static void check_reserved(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    void *ranges[RANGES];

    for (uint64_t align = 2 * size; align <= 16 * size && size > 0; align *= 2) {
        for (size_t i = 0; i < RANGES; i++) {
            int32_t status = CALL(run, vmem_reserve, run->device, size, align, NULL, 0, &ranges[i]);

            if (status == DS_ACCEL_ERR_UNSUPPORTED) { /* the runtime does not support alignments */
                ds_accel__skip(run, "%.200s", run->error.message);
                ranges[i] = NULL;
                continue;
            }
            ds_accel__want(run, DS_ACCEL_OK, "vmem_reserve", status);
            EXPECT(run, (uintptr_t)ranges[i] % align == 0, "%p is not a multiple of %llu",
                   ranges[i], (unsigned long long)align);
        }
        for (size_t i = 0; i < RANGES; i++) {
            if (ranges[i] != NULL) {
                WANT(run, DS_ACCEL_OK, vmem_release, run->device, ranges[i], size);
            }
        }
    }
}

static void check_access(struct ds_accel__run *run)
{
    uint64_t size = granularity(run);
    ds_accel_plugin_vmem_t *vmem;
    char *address;

    if (size == 0) {
        return;
    }
    vmem = create(run, size);
    address = reserve(run, size);
    map(run, address, size, vmem, 0);
    WANT(run, DS_ACCEL_ERR_INVALID, vmem_set_access, run->device, address, size, 77);
    unmap(run, address, size);
    run->table.vmem_destroy(vmem);
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define ALL \
    SLOT(vmem_granularity), SLOT(vmem_create), SLOT(vmem_map), SLOT(vmem_set_access), \
        SLOT(vmem_unmap), SLOT(mem_copy)

static const struct ds_accel__check checks[] = {
    {77, GROUP, "granularities", DEVICE, 0, check_granularity, {SLOT(vmem_granularity)}},
    {78, GROUP, "one memory at two addresses", DEVICE, 0, check_mapped, {ALL}},
    {79, GROUP, "a memory is destroyed while it is mapped", DEVICE, 0, check_destroyed, {ALL}},
    {80, GROUP, "ranges that were not mapped", DEVICE, 0, check_unmap, {ALL}},
    {121, GROUP, "ranges and memory that do not fit", DEVICE, 0, check_unfit, {ALL}},
    {78, GROUP, "two memories side by side", DEVICE, 0, check_side_by_side, {ALL}},
    {60, GROUP, "alignment of addresses", DEVICE, 0, check_reserved, {ALL}},
    {18, GROUP, "an unknown access", DEVICE, 0, check_access, {ALL}},
};

const struct ds_accel__check_list ds_accel__checks_vmem = {checks, ARRAY_SIZE(checks)};
