/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: virtual memory, which is reserved, mapped and made accessible in parts. */
#include "mock.h"

/* ---- virtual memory ------------------------------------------------------------------------- */

#define PAGE (2 * MIB)

static char *reserve(uint64_t size_bytes)
{
    void *address = NULL;

    ASSERT_OK(table->vmem_reserve(handle, size_bytes, 0, NULL, 0, &address, &error));
    return address;
}

static ds_accel_plugin_vmem_t *create_vmem(uint64_t size_bytes)
{
    ds_accel_plugin_vmem_t *vmem = NULL;

    ASSERT_OK(table->vmem_create(handle, size_bytes, 0, &vmem, &error));
    return vmem;
}

static void map_usable(char *address, uint64_t size_bytes, ds_accel_plugin_vmem_t *vmem)
{
    ASSERT_OK(table->vmem_map(handle, address, size_bytes, vmem, 0, &error));
    ASSERT_OK(table->vmem_set_access(handle, address, size_bytes, DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                     &error));
}

Test(plugin_mock, mapped_memory_can_be_copied_through)
{
    char text[8] = "virtual";
    char back[8] = "";
    ds_accel_plugin_vmem_t *vmem;
    uint64_t granularity = 0;
    char *address;

    open_mock();
    EXPECT_OK(table->vmem_granularity(handle, 0, &granularity, &granularity, &error));
    cr_expect_eq(granularity, PAGE);
    address = reserve(2 * PAGE);
    cr_expect_eq((uintptr_t)address % PAGE, 0);
    vmem = create_vmem(PAGE);
    expect_usage(PAGE, 1024 * MIB - PAGE);
    map_usable(address, PAGE, vmem);
    map_usable(address + PAGE, PAGE, vmem);
    EXPECT_OK(table->mem_copy(handle, address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(
        table->mem_copy(handle, back, address + PAGE, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    cr_expect_str_eq(back, "virtual");
    table->vmem_destroy(vmem);
    cr_expect_str_eq(address, "virtual");
    EXPECT_OK(table->vmem_unmap(handle, address, 2 * PAGE, &error));
    expect_usage(0, 1024 * MIB);
    EXPECT_OK(table->vmem_release(handle, address, 2 * PAGE, &error));
    close_mock();
}

Test(plugin_mock, a_copy_can_span_mappings_that_follow_each_other)
{
    static char text[64];
    ds_accel_plugin_vmem_t *first;
    ds_accel_plugin_vmem_t *second;
    char *address;

    open_mock();
    memset(text, 'x', sizeof(text));
    address = reserve(3 * PAGE);
    first = create_vmem(PAGE);
    second = create_vmem(PAGE);
    map_usable(address, PAGE, first);
    map_usable(address + PAGE, PAGE, second);
    EXPECT_OK(table->mem_copy(handle, address + PAGE - 32, text, 64, DS_ACCEL_COPY_HOST_TO_DEVICE,
                              &error));
    cr_expect_arr_eq(address + PAGE - 32, text, 64);
    expect_copy_refused(address + 2 * PAGE - 32, text, 64, DS_ACCEL_COPY_HOST_TO_DEVICE,
                        "live device memory");
    cr_expect_eq(info_of(address + PAGE + 5).base_address, (uintptr_t)address + PAGE);
    cr_expect_eq(info_of(address + PAGE + 5).size_bytes, PAGE);
    cr_expect_eq(info_of(address + 2 * PAGE).kind, DS_ACCEL_POINTER_UNKNOWN);
    table->vmem_destroy(second);
    table->vmem_destroy(first);
    close_mock();
}

Test(plugin_mock, access_is_as_it_was_set)
{
    static char text[8];
    ds_accel_plugin_vmem_t *vmem;
    char *address;

    open_mock();
    address = reserve(PAGE);
    vmem = create_vmem(PAGE);
    ASSERT_OK(table->vmem_map(handle, address, PAGE, vmem, 0, &error));
    expect_copy_refused(address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, "without that access");
    expect_copy_refused(text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, "without that access");
    EXPECT_OK(table->vmem_set_access(handle, address, PAGE, DS_ACCEL_VMEM_ACCESS_READ, &error));
    expect_copy_refused(address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, "without that access");
    EXPECT_OK(table->mem_copy(handle, text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->vmem_set_access(handle, address, PAGE, DS_ACCEL_VMEM_ACCESS_NONE, &error));
    expect_copy_refused(text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, "without that access");
    EXPECT_FAIL(table->vmem_set_access(handle, address, PAGE, 2, &error), DS_ACCEL_ERR_INVALID,
                "unknown access 2");
    EXPECT_OK(table->vmem_unmap(handle, address, PAGE, &error));
    EXPECT_FAIL(table->vmem_set_access(handle, address, PAGE, 3, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    table->vmem_destroy(vmem);
    close_mock();
}

Test(plugin_mock, ranges_that_cannot_be_are_refused)
{
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    char *base;

    open_mock();
    EXPECT_FAIL(table->vmem_reserve(handle, PAGE - 1, 0, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "not a multiple of 2097152");
    EXPECT_FAIL(table->vmem_reserve(handle, 0, 0, NULL, 0, &address, &error), DS_ACCEL_ERR_INVALID,
                "");
    EXPECT_FAIL(table->vmem_reserve(handle, PAGE, 3, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "alignment 3");
    EXPECT_FAIL(table->vmem_create(handle, 4096, 0, &vmem, &error), DS_ACCEL_ERR_INVALID,
                "size 4096");
    EXPECT_FAIL(table->vmem_create(handle, 2048 * MIB, 0, &vmem, &error), DS_ACCEL_ERR_NO_MEMORY,
                "requested 2147483648 bytes");
    base = reserve(2 * PAGE);
    vmem = create_vmem(PAGE);
    EXPECT_FAIL(table->vmem_map(handle, base, 2 * PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "has no 4194304 bytes");
    EXPECT_FAIL(table->vmem_map(handle, base, PAGE, vmem, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "at offset 2097152");
    EXPECT_FAIL(table->vmem_map(handle, base + 4096, PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "range of the granularity");
    EXPECT_FAIL(table->vmem_map(handle, base + 64 * PAGE, PAGE, vmem, 0, &error),
                DS_ACCEL_ERR_INVALID, "not in a reservation");
    map_usable(base, PAGE, vmem);
    EXPECT_FAIL(table->vmem_map(handle, base, PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "mapped already");
    EXPECT_FAIL(table->vmem_unmap(handle, base, 2 * PAGE, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    EXPECT_FAIL(table->vmem_release(handle, base, 2 * PAGE, &error), DS_ACCEL_ERR_BUSY,
                "still mapped");
    EXPECT_FAIL(table->vmem_release(handle, base, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "no reservation");
    EXPECT_OK(table->vmem_unmap(handle, base, PAGE, &error));
    EXPECT_OK(table->vmem_release(handle, base, 2 * PAGE, &error));
    table->vmem_destroy(vmem);
    close_mock();
}

Test(plugin_mock, reserved_addresses_are_aligned_as_asked)
{
    void *address = NULL;

    open_mock();
    ASSERT_OK(table->vmem_reserve(handle, PAGE, 64 * MIB, NULL, 0, &address, &error));
    cr_expect_eq((uintptr_t)address % (64 * MIB), 0);
    EXPECT_OK(table->vmem_release(handle, address, PAGE, &error));
    EXPECT_FAIL(table->vmem_release(handle, address, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "no reservation");
    close_mock();
}
