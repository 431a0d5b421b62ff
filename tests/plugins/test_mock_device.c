/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: devices, and two instances in one process. */
#include "mock.h"

#include <pthread.h>

/* ---- devices -------------------------------------------------------------------------------- */

Test(plugin_mock, every_device_has_an_identity_of_its_own)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

    option("device_count", "17");
    open_mock();
    EXPECT_OK(table->device_identity(instance, 10, &identity, &error));
    cr_expect_eq(identity.device_index, 10);
    cr_expect_eq(identity.vendor_index, 10);
    cr_expect_neq(identity.valid & DS_ACCEL_IDENTITY_UUID, 0);
    cr_expect_arr_eq(identity.uuid, "MOCK\0\0\0\0\0\0\0\0\0\0\0\012", 16);
    cr_expect_str_eq(identity.uuid_text, "MOCK-00000000-0000-0000-0000-00000000000a");
    cr_expect_str_eq(identity.pci_address, "0000:ea:00.0");
    cr_expect_eq(identity.valid, DS_ACCEL_IDENTITY_UUID | DS_ACCEL_IDENTITY_VENDOR_INDEX);
    cr_expect_eq(identity.partition_kind, DS_ACCEL_PARTITION_NONE);
    cr_expect_eq(identity.power_state, DS_ACCEL_POWER_ACTIVE);
    cr_expect_str_eq(identity.node_path, "");
    EXPECT_OK(table->device_identity(instance, 16, &identity, &error));
    cr_expect_str_eq(identity.pci_address, "");
    cr_expect_str_eq(identity.uuid_text, "MOCK-00000000-0000-0000-0000-000000000010");
    EXPECT_FAIL(table->device_identity(instance, 17, &identity, &error), DS_ACCEL_ERR_INVALID,
                "device 17 does not exist, there are 17");
    close_mock();
}

Test(plugin_mock, an_older_hosts_struct_is_not_written_past_its_end)
{
    struct ds_accel_device_info info;

    open_mock();
    memset(&info, 0x5a, sizeof(info));
    info.struct_size = offsetof(struct ds_accel_device_info, total_memory_bytes);
    EXPECT_OK(table->device_info(handle, &info, &error));
    cr_expect_str_eq(info.name, "Mock Device");
    cr_expect_eq(info.total_memory_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.struct_size, offsetof(struct ds_accel_device_info, total_memory_bytes));
    close_mock();
}

static void *current_elsewhere(void *index_out)
{
    cr_expect_eq(ds_accel_current_device(context, index_out), DS_ACCEL_OK);
    return NULL;
}

Test(plugin_mock, the_current_device_is_the_threads)
{
    uint32_t here = 9;
    uint32_t elsewhere = 9;
    ds_accel_device_t *second;
    pthread_t thread;

    open_mock();
    cr_expect_eq(ds_accel_current_device(context, &here), DS_ACCEL_OK);
    cr_expect_eq(here, 0);
    EXPECT_OK(table->device_set_current(open_index(1, &second), &error));
    cr_expect_eq(ds_accel_current_device(context, &here), DS_ACCEL_OK);
    cr_expect_eq(here, 1);
    cr_assert_eq(pthread_create(&thread, NULL, current_elsewhere, &elsewhere), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(elsewhere, 0);
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, a_device_opened_twice_lives_until_both_are_closed)
{
    ds_accel_device_t *again;
    void *pointer;

    open_mock();
    pointer = allocate(100);
    cr_expect_eq(open_index(0, &again), handle);
    ds_accel_device_close(again);
    release(pointer);
    close_mock();
    EXPECT_HAS_NOT(test_log, "allocations left");
}

Test(plugin_mock, what_was_left_when_the_device_was_closed_is_told)
{
    void *pinned;

    open_mock();
    allocate(100);
    allocate(200);
    ASSERT_OK(table->mem_alloc_pinned(handle, 50, 1, 0, &pinned, &error));
    close_mock();
    EXPECT_HAS(test_log,
               "2 mock: device 0 closed with 3 allocations left, 300 bytes of the device");
}

Test(plugin_mock, data_types_are_as_the_options_say)
{
    static const uint32_t full = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    static const uint32_t emulated = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_EMULATED;
    uint32_t support = 9;
    char *report;

    option("bf16", "false");
    open_mock();
    for (uint32_t dtype = 0; dtype <= DS_ACCEL_DTYPE_COMPLEX128 + 1; dtype++) {
        uint32_t wanted = dtype > DS_ACCEL_DTYPE_BOOL ? emulated : full;

        if (dtype == 0 || dtype > DS_ACCEL_DTYPE_COMPLEX128) {
            wanted = 0;
        } else if (dtype == DS_ACCEL_DTYPE_BFLOAT16 || dtype >= DS_ACCEL_DTYPE_COMPLEX32) {
            wanted = DS_ACCEL_DTYPE_STORES;
        }
        EXPECT_OK(table->dtype_support(handle, dtype, &support, &error));
        cr_expect_eq(support, wanted, "%u: %u", dtype, support);
    }
    report = test_report(context, DS_ACCEL_REPORT_INFO, "mock", DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(test_compact(report), "\"is_bf16_supported\":false,\"is_fp16_supported\":true");
    ds_accel_free_text(report);
    close_mock();
}

Test(plugin_mock, devices_of_one_instance_are_peers)
{
    ds_accel_device_t *second;
    ds_accel_device_t *stranger;
    ds_accel_plugin_device_t *peer;
    ds_accel_t *another;
    uint32_t can = 9;

    open_mock();
    peer = open_index(1, &second);
    another = start_another(&stranger);
    EXPECT_OK(table->peer_can_access(handle, peer, &can, &error));
    cr_expect_eq(can, 1);
    EXPECT_OK(table->peer_enable(handle, peer, &error));
    EXPECT_OK(table->peer_enable(handle, peer, &error));
    EXPECT_OK(table->peer_disable(handle, peer, &error));
    EXPECT_OK(table->peer_disable(handle, peer, &error));
    EXPECT_OK(table->peer_can_access(handle, ds_accel_device_handle(stranger), &can, &error));
    cr_expect_eq(can, 0);
    EXPECT_FAIL(table->peer_enable(handle, ds_accel_device_handle(stranger), &error),
                DS_ACCEL_ERR_INVALID, "belong to different instances");
    EXPECT_FAIL(table->peer_disable(handle, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    ds_accel_device_close(second);
    close_mock();
}

/* ---- two instances -------------------------------------------------------------------------- */

Test(plugin_mock, two_contexts_do_not_meet)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_device_t *theirs;
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    uint32_t count = 0;
    char *pointer;

    option("fail", "device_health:2=device_lost");
    option("pinned_limit_bytes", "100");
    open_mock();
    option("fail", NULL);
    option("device_count", "5");
    another = start_another(&stranger);
    theirs = ds_accel_device_handle(stranger);
    pointer = allocate(100);
    EXPECT_FAIL(table->mem_free(theirs, pointer, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_OK(ds_accel_device_memory(stranger, &info));
    cr_expect_eq(info.process_bytes, 0);
    EXPECT_OK(table->device_health(theirs, &error));
    EXPECT_OK(table->device_health(handle, &error));
    release(pointer);
    cr_expect_eq(table->device_health(handle, &error), DS_ACCEL_ERR_DEVICE_LOST);
    EXPECT_OK(table->device_health(theirs, &error));
    cr_expect_eq(ds_accel_device_count(context, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 2);
    cr_expect_eq(ds_accel_device_count(another, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 5);
    close_mock();
    EXPECT_OK(ds_accel_device_table(stranger)->device_health(theirs, &error));
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
}

Test(plugin_mock, allocation_ids_are_unique_in_the_process)
{
    ds_accel_plugin_instance_t *their_instance;
    const struct ds_accel_plugin *their_table;
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    void *ours;
    void *theirs = NULL;

    open_mock();
    another = start_another(&stranger);
    cr_assert_eq(ds_accel_instance(another, &their_table, &their_instance), DS_ACCEL_OK);
    cr_expect_neq(their_instance, instance);
    ours = allocate(8);
    ASSERT_OK(their_table->mem_alloc(ds_accel_device_handle(stranger), 8, 0, 0, &theirs, &error));
    EXPECT_OK(their_table->mem_pointer_info(their_instance, NULL, theirs, &info, &error));
    cr_expect_neq(info.allocation_id, info_of(ours).allocation_id);
    cr_expect_eq(info_of(theirs).kind, DS_ACCEL_POINTER_UNKNOWN);
    EXPECT_OK(their_table->mem_free(ds_accel_device_handle(stranger), theirs, &error));
    release(ours);
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    close_mock();
}
