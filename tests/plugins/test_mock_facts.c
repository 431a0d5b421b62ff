/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: facts about devices and about the plugin itself, and profiler ranges. */
#include "mock.h"

#include <pthread.h>
#include <unistd.h>

/* ---- facts ---------------------------------------------------------------------------------- */

Test(plugin_mock, telemetry_says_what_is_valid)
{
    const uint64_t all = DS_ACCEL_BIT(13) - 1;
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    void *pointer;

    option("memory_bytes", "1000");
    open_mock();
    pointer = allocate(250);
    EXPECT_OK(table->telemetry_get(instance, 0, &telemetry, &error));
    cr_expect_eq(telemetry.valid, all & ~DS_ACCEL_TELEMETRY_FAN);
    cr_expect_eq(telemetry.memory_utilization_percent, 25);
    cr_expect_eq(telemetry.utilization_percent, 25);
    cr_expect_eq(telemetry.temperature_millidegrees_c, 40000);
    cr_expect_eq(telemetry.power_milliwatts, 75000);
    cr_expect_eq(telemetry.throttle_reasons, DS_ACCEL_THROTTLE_IDLE);
    EXPECT_OK(table->telemetry_get(instance, 1, &telemetry, &error));
    cr_expect_eq(telemetry.temperature_millidegrees_c, 41000);
    cr_expect_eq(telemetry.memory_utilization_percent, 0);
    EXPECT_FAIL(table->telemetry_get(instance, 2, &telemetry, &error), DS_ACCEL_ERR_INVALID,
                "device 2 does not exist");
    release(pointer);
    close_mock();
}

Test(plugin_mock, this_process_uses_the_devices_it_has_open)
{
    struct ds_accel_process process = {0};
    uint32_t count = 9;
    void *pointer;

    open_mock();
    pointer = allocate(300);
    EXPECT_OK(table->telemetry_processes(instance, 0, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 1);
    EXPECT_OK(
        table->telemetry_processes(instance, 0, &process, sizeof(process), 1, &count, &error));
    cr_expect_eq(count, 1);
    cr_expect_eq(process.struct_size, sizeof(process));
    cr_expect_eq(process.pid, getpid());
    cr_expect_eq(process.memory_bytes, 300);
    EXPECT_OK(table->telemetry_processes(instance, 1, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 0);
    EXPECT_FAIL(table->telemetry_processes(instance, 0, NULL, 8, 1, &count, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    release(pointer);
    close_mock();
}

static void expect_links(const char *device_count, uint32_t index, uint32_t wanted, int32_t next,
                         int32_t before)
{
    struct {
        struct ds_accel_link link;
        uint32_t behind;
    } links[3] = {{.behind = 7}, {.behind = 7}, {.behind = 7}};
    uint32_t count = 9;

    option("device_count", device_count);
    open_mock();
    EXPECT_OK(table->links_get(instance, index, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, wanted);
    EXPECT_OK(
        table->links_get(instance, index, &links[0].link, sizeof(links[0]), 3, &count, &error));
    cr_expect_eq(count, wanted);
    cr_expect(count < 1 || links[0].link.peer_index == next);
    cr_expect(count < 2 || links[1].link.peer_index == before);
    cr_expect(count < 1 || (links[0].link.is_up == 1 && links[0].link.width == 4));
    cr_expect_eq(links[2].link.struct_size, 0);
    close_mock();
}

Test(plugin_mock, links_form_a_ring)
{
    expect_links("1", 0, 0, 0, 0);
    expect_links("2", 0, 1, 1, 0);
    expect_links("2", 1, 1, 0, 0);
    expect_links("3", 0, 2, 1, 2);
    expect_links("4", 3, 2, 0, 2);
}

Test(plugin_mock, fewer_links_than_there_are_can_be_asked)
{
    struct ds_accel_link links[2];
    uint32_t count = 9;

    option("device_count", "4");
    memset(links, 0, sizeof(links));
    open_mock();
    EXPECT_OK(table->links_get(instance, 1, links, sizeof(links[0]), 1, &count, &error));
    cr_expect_eq(count, 2);
    cr_expect_eq(links[0].peer_index, 2);
    cr_expect_eq(links[1].struct_size, 0);
    close_mock();
}

Test(plugin_mock, the_backend_says_what_it_can)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    const void *extension = NULL;

    option("ipc", "false");
    open_mock();
    EXPECT_OK(table->backend_info(instance, &info, &error));
    cr_expect_eq(info.flags, DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES |
                                 DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY |
                                 DS_ACCEL_FLAG_VIRTUAL_MEMORY | DS_ACCEL_FLAG_RANGE_DOMAINS |
                                 DS_ACCEL_FLAG_HOST_ACCESSIBLE);
    cr_expect_str_eq(info.communication_backend, "gloo");
    cr_expect_str_eq(info.compile_backend, "inductor");
    cr_expect_eq(info.memory_handle_bytes, 0);
    EXPECT_FAIL(table->extension(instance, "nothing.1", &extension, &error), DS_ACCEL_ERR_NOT_FOUND,
                "nothing.1");
    EXPECT_FAIL(table->extension(instance, NULL, &extension, &error), DS_ACCEL_ERR_INVALID, "NULL");
    cr_expect_eq(table->rng_seed(handle, 1, &error), DS_ACCEL_ERR_UNSUPPORTED);
    close_mock();
}

Test(plugin_mock, one_op_builder_is_there_and_its_op_is_compatible)
{
    struct ds_accel_op_builder builder = {0};
    char reason[64] = "before";
    uint32_t compatible = 9;
    uint32_t count = 9;

    open_mock();
    EXPECT_OK(table->op_builders_get(instance, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 1);
    EXPECT_OK(table->op_builders_get(instance, &builder, sizeof(builder), 1, &count, &error));
    cr_expect_str_eq(builder.builder, "MockAddBuilder");
    cr_expect_str_eq(builder.op, "mock_add");
    EXPECT_OK(
        table->op_compatible(instance, "mock_add", &compatible, reason, sizeof(reason), &error));
    cr_expect_eq(compatible, 1);
    cr_expect_str_eq(reason, "");
    EXPECT_OK(
        table->op_compatible(instance, "cpu_adam", &compatible, reason, sizeof(reason), &error));
    cr_expect_eq(compatible, 0);
    cr_expect_str_eq(reason, "the mock device runs mock_add only");
    EXPECT_OK(table->op_compatible(instance, "cpu_adam", &compatible, reason, 4, &error));
    cr_expect_str_eq(reason, "the");
    EXPECT_FAIL(table->op_compatible(instance, NULL, &compatible, reason, 4, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    close_mock();
}

Test(plugin_mock, the_environment_it_wants_can_be_asked)
{
    struct ds_accel_env_rule rule = {0};
    uint32_t count = 9;
    char name[64] = "";

    open_mock();
    EXPECT_OK(table->env_rules_get(instance, &rule, sizeof(rule), 1, &count, &error));
    cr_expect_eq(count, 1);
    cr_expect_eq(rule.rule, DS_ACCEL_ENV_IF_UNSET);
    cr_expect_str_eq(rule.name, "MOCK_RUNTIME");
    cr_expect_str_eq(rule.value, "1");
    EXPECT_OK(
        table->env_name_get(instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, name, 21, &error));
    cr_expect_str_eq(name, "MOCK_VISIBLE_DEVICES");
    EXPECT_OK(table->env_name_get(instance, DS_ACCEL_ENV_LIST_EXPORT, 0, name, 64, &error));
    cr_expect_str_eq(name, "MOCK_");
    EXPECT_FAIL(table->env_name_get(instance, DS_ACCEL_ENV_LIST_EXPORT, 1, name, 64, &error),
                DS_ACCEL_ERR_NOT_FOUND, "position 1");
    EXPECT_FAIL(table->env_name_get(instance, 3, 0, name, 64, &error), DS_ACCEL_ERR_INVALID,
                "unknown list 3");
    EXPECT_FAIL(
        table->env_name_get(instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, name, 20, &error),
        DS_ACCEL_ERR_INVALID, "does not fit into 20 bytes");
    close_mock();
}

Test(plugin_mock, visible_devices_are_listed_in_their_order)
{
    uint32_t needed = 0;
    static const uint32_t indices[] = {3, 0, 10};
    char value[64] = "before";

    option("device_count", "11");
    open_mock();
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value,
                                           sizeof(value), NULL, &error));
    cr_expect_str_eq(value, "3,0,10");
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value, 7,
                                           NULL, &error));
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", NULL, 0, value, 1,
                                           NULL, &error));
    cr_expect_str_eq(value, "");
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value, 6,
                                             NULL, &error),
                DS_ACCEL_ERR_LIMIT, "7 bytes do not fit into 6");
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, NULL, 0,
                                             &needed, &error),
                DS_ACCEL_ERR_LIMIT, "7 bytes do not fit into 0");
    cr_expect_eq(needed, 7);
    EXPECT_FAIL(table->visible_devices_value(instance, "OTHER_DEVICES", indices, 3, value,
                                             sizeof(value), NULL, &error),
                DS_ACCEL_ERR_NOT_FOUND, "OTHER_DEVICES");
    close_mock();
    option("device_count", "10");
    open_mock();
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value,
                                             64, NULL, &error),
                DS_ACCEL_ERR_INVALID, "position 2 of the list: device 10 does not exist");
    close_mock();
}

Test(plugin_mock, a_variable_shows_some_devices)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    const uint32_t index = 1;
    uint32_t count = 0;
    char value[8] = "";

    option("device_count", "4");
    setenv("MOCK_VISIBLE_DEVICES", "3,1", 1);
    open_mock();
    EXPECT_OK(table->device_count(instance, &count, &error));
    cr_expect_eq(count, 2);
    EXPECT_OK(table->device_identity(instance, 0, &identity, &error));
    cr_expect_eq(identity.vendor_index, 3);
    cr_expect_str_eq(identity.pci_address, "0000:e3:00.0");
    /* The value is for a child that inherits this environment, so it counts from the visible
       devices. */
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", &index, 1, value,
                                           sizeof(value), NULL, &error));
    cr_expect_str_eq(value, "1");
    close_mock();
}

Test(plugin_mock, every_device_at_once_can_be_made_visible)
{
    uint32_t indices[257];
    char value[1100] = "";

    for (uint32_t i = 0; i < ARRAY_SIZE(indices); i++) {
        indices[i] = 255;
    }
    option("device_count", "256");
    open_mock();
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 256, value,
                                           sizeof(value), NULL, &error));
    cr_expect_eq(strlen(value), 256 * 4 - 1);
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 257, value,
                                             sizeof(value), NULL, &error),
                DS_ACCEL_ERR_INVALID, "the list is too long");
    close_mock();
}

Test(plugin_mock, reports_show_what_the_plugin_says)
{
    char *report;

    context = create_for(NULL);
    report = test_report(context, DS_ACCEL_REPORT_INFO, "mock", DS_ACCEL_FORMAT_JSON);
    test_compact(report);
    EXPECT_HAS(report, "\"op_builders\":[\"MockAddBuilder\"]");
    EXPECT_HAS(report, "\"visible_devices_envs\":[\"MOCK_VISIBLE_DEVICES\"]");
    EXPECT_HAS(report, "\"export_envs\":[\"MOCK_\"]");
    EXPECT_HAS(report, "\"uuid\":\"MOCK-00000000-0000-0000-0000-000000000001\"");
    EXPECT_HAS(report, "\"pci_address\":\"0000:e1:00.0\"");
    ds_accel_free_text(report);
    unsetenv("MOCK_RUNTIME");
    report = test_report(context, DS_ACCEL_REPORT_ENV, "mock", 0);
    EXPECT_HAS(report, "MOCK_RUNTIME='1'");
    ds_accel_free_text(report);
    setenv("MOCK_RUNTIME", "0", 1);
    report = test_report(context, DS_ACCEL_REPORT_ENV, "mock", 0);
    EXPECT_HAS_NOT(report, "MOCK_RUNTIME='1'");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

/* ---- profiler ranges ------------------------------------------------------------------------ */

static void *pop_elsewhere(void *unused)
{
    struct ds_accel_error mine = {.struct_size = sizeof(mine)};

    (void)unused;
    cr_expect_eq(table->range_pop(instance, NULL, &mine), DS_ACCEL_ERR_STATE);
    return NULL;
}

Test(plugin_mock, every_pop_needs_its_push)
{
    pthread_t thread;

    open_mock();
    EXPECT_FAIL(table->range_pop(instance, NULL, &error), DS_ACCEL_ERR_STATE, "no range");
    EXPECT_FAIL(table->range_push(instance, NULL, NULL, NULL, &error), DS_ACCEL_ERR_INVALID,
                "message");
    EXPECT_OK(table->range_push(instance, "outer", NULL, "category", &error));
    EXPECT_OK(table->range_push(instance, "inner", NULL, NULL, &error));
    EXPECT_OK(table->range_push(instance, "other", "domain", NULL, &error));
    cr_assert_eq(pthread_create(&thread, NULL, pop_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    EXPECT_FAIL(table->range_pop(instance, "another", &error), DS_ACCEL_ERR_STATE, "\"another\"");
    EXPECT_OK(table->range_pop(instance, "domain", &error));
    EXPECT_FAIL(table->range_pop(instance, "domain", &error), DS_ACCEL_ERR_STATE, "\"domain\"");
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    EXPECT_FAIL(table->range_pop(instance, NULL, &error), DS_ACCEL_ERR_STATE, "no range");
    EXPECT_OK(table->range_push(instance, "left open", "domain", NULL, &error));
    EXPECT_OK(table->profiler_start(instance, &error));
    EXPECT_OK(table->profiler_stop(instance, &error));
    close_mock();
}
