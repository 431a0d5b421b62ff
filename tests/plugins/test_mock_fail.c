/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: the option fail, which makes any call fail, and a lost device. */
#include "mock.h"

#include <ctype.h>

/* ---- option fail: the grammar --------------------------------------------------------------- */

/* Expect the statuses of consecutive calls of mem_trim, written as "0 -11 0 ". */
static void expect_trims(const char *script, const char *wanted)
{
    char seen[64] = "";

    option("fail", script);
    open_mock();
    while (strlen(seen) < strlen(wanted)) {
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%d ",
                 table->mem_trim(handle, 0, &error));
    }
    cr_expect_str_eq(seen, wanted, "%s: %s", script, seen);
    close_mock();
}

Test(plugin_mock, the_nth_call_fails)
{
    expect_trims("", "0 0 0 ");
    expect_trims("mem_trim:1=io", "-11 0 0 ");
    expect_trims("mem_trim:2=io", "0 -11 0 0 ");
    expect_trims("mem_trim:03=io", "0 0 -11 0 ");
    expect_trims("mem_trim:18446744073709551615=io", "0 0 0 ");
}

Test(plugin_mock, the_nth_call_and_all_after_it_fail)
{
    expect_trims("mem_trim:2+=io", "0 -11 -11 -11 ");
    expect_trims("mem_trim:1+=io", "-11 -11 -11 ");
}

Test(plugin_mock, every_call_fails)
{
    expect_trims("mem_trim=io", "-11 -11 -11 ");
}

Test(plugin_mock, several_rules_hold_together)
{
    expect_trims("mem_trim:1=io,mem_trim:3=busy", "-11 0 -8 0 ");
    expect_trims("mem_trim:2=io,mem_trim=busy", "-8 -11 -8 ");
    expect_trims("mem_trim=busy,mem_trim:2=io", "-8 -8 -8 ");
    expect_trims("mem_alloc=io,mem_trim:2=limit", "0 -13 0 ");
    expect_trims("mem_alloc:1=io", "0 0 ");
}

Test(plugin_mock, calls_are_counted_from_the_start_of_each_instance)
{
    option("fail", "mem_trim:2=io");
    for (int i = 0; i < 2; i++) {
        open_mock();
        EXPECT_OK(table->mem_trim(handle, 0, &error));
        cr_expect_eq(table->mem_trim(handle, 0, &error), DS_ACCEL_ERR_IO);
        close_mock();
    }
}

Test(plugin_mock, a_failing_init_is_told_with_the_vendors_words)
{
    option("fail", "init=driver");
    context = create_for("mock");
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_eq(test_candidate(context, "mock").state, DS_ACCEL_STATE_ERROR);
    cr_expect_str_eq(test_candidate(context, "mock").reason, "start_failed");
    EXPECT_HAS(test_candidate(context, "mock").detail,
               "init: MOCK_ERROR_DRIVER (104): as option fail requests");
    option("fail", NULL);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

static void expect_probe_failure(const char *script, const char *reason, const char *part)
{
    struct ds_accel_candidate candidate;

    option("fail", script);
    candidate = check_mock();
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_ERROR);
    cr_expect_str_eq(candidate.reason, reason);
    EXPECT_HAS(candidate.detail, part);
    ds_accel_destroy(context);
}

Test(plugin_mock, a_failing_probe_is_an_error)
{
    expect_probe_failure("probe=io", "driver_failed", "probe: MOCK_ERROR_IO (111)");
    expect_probe_failure("probe:1=permission", "no_permission", "MOCK_ERROR_PERMISSION (107)");
    expect_probe_failure("probe=busy", "device_busy", "MOCK_ERROR_BUSY (108)");
    expect_probe_failure("probe=no_device", "no_device", "MOCK_ERROR_NO_DEVICE (106)");
}

Test(plugin_mock, malformed_scripts_are_refused)
{
    static const char *const scripts[][3] = {
        {"mem_alloc", "mem_alloc", "is not slot[:N[+]]=STATUS"},
        {",", "", "is not slot[:N[+]]=STATUS"},
        {"mem_alloc=io,,mem_free=io", "", "is not slot[:N[+]]=STATUS"},
        {"mem_alloc=io,", "mem_alloc=io", "ends in a comma"},
        {"mem_alloc:=io", "mem_alloc:=io", "has no call number from 1"},
        {"mem_alloc:0=io", "mem_alloc:0=io", "has no call number from 1"},
        {"mem_alloc:+=io", "mem_alloc:+=io", "has no call number from 1"},
        {"mem_alloc:-1=io", "mem_alloc:-1=io", "has no call number from 1"},
        {"mem_alloc:1++=io", "mem_alloc:1++=io", "has no call number from 1"},
        {"mem_alloc:x=io", "mem_alloc:x=io", "has no call number from 1"},
        {"mem_alloc:18446744073709551616=io", "mem_alloc:18446744073709551616=io",
         "has no call number from 1"},
        {"=io", "=io", "names no function of this plugin that can fail"},
        {"nothing=io", "nothing=io", "names no function of this plugin that can fail"},
        {" mem_alloc=io", " mem_alloc=io", "names no function of this plugin that can fail"},
        {"shutdown=io", "shutdown=io", "names no function of this plugin that can fail"},
        {"device_close=io", "device_close=io", "names no function of this plugin that can fail"},
        {"rng_seed=io", "rng_seed=io", "names no function of this plugin that can fail"},
        {"mem_alloc=", "mem_alloc=", "names no status"},
        {"mem_alloc=IO", "mem_alloc=IO", "names no status"},
        {"mem_alloc=ok", "mem_alloc=ok", "names no status"},
        {"mem_alloc=io=io", "mem_alloc=io=io", "names no status"},
        {"mem_free=io,mem_alloc=err", "mem_alloc=err", "names no status"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        option("fail", scripts[i][0]);
        expect_bad_option("fail", scripts[i][1], scripts[i][2]);
    }
}

Test(plugin_mock, a_script_has_up_to_32_rules)
{
    char script[1024] = "mem_trim=io";
    struct ds_accel_candidate candidate;

    for (int i = 1; i < 32; i++) {
        strcat(script, ",mem_trim=io");
    }
    expect_trims(script, "-11 ");
    strcat(script, ",mem_trim=io");
    option("fail", script);
    candidate = check_mock();
    cr_expect_str_eq(candidate.reason, "bad_option");
    EXPECT_HAS(candidate.detail, "option fail: more than 32 rules");
    ds_accel_destroy(context);
}

/* ---- option fail: the error of a failure ---------------------------------------------------- */

Test(plugin_mock, code_and_text_of_the_vendor_reach_the_error)
{
    static const char *const names[] = {
        "invalid",    "no_memory", "unsupported", "driver",      "not_found", "no_device",
        "permission", "busy",      "timeout",     "device_lost", "io",        "state",
        "limit",      "config",    "not_usable",  "abi",         "untrusted", "internal"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const int32_t status = -1 - (int32_t)i;
        char script[64];
        char text[64];
        char message[128];

        snprintf(script, sizeof(script), "mem_trim=%s", names[i]);
        snprintf(text, sizeof(text), "MOCK_ERROR_%s", names[i]);
        for (char *c = text; *c != '\0'; c++) {
            *c = (char)toupper((unsigned char)*c);
        }
        snprintf(message, sizeof(message), "mem_trim: %s (%d): as option fail requests", text,
                 100 - status);
        option("fail", script);
        open_mock();
        EXPECT_FAIL(table->mem_trim(handle, 0, &error), status, message);
        cr_expect_eq(error.vendor_code, 100 - status);
        cr_expect_str_eq(error.vendor_text, text);
        close_mock();
    }
}

/* Handles for the functions that need one; NULL if the script makes their creation fail. */
static struct {
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
} made;

static void open_failing(const char *slot)
{
    char script[64];

    snprintf(script, sizeof(script), "%s=timeout", slot);
    option("fail", script);
    open_mock();
    memset(&made, 0, sizeof(made));
    table->stream_create(handle, 0, 0, &made.stream, &error);
    table->event_create(handle, 0, &made.event, &error);
    if (made.stream != NULL) {
        table->graph_capture_begin(made.stream, 0, &error);
        table->graph_capture_end(made.stream, &made.graph, &error);
    }
    if (made.graph != NULL) {
        table->graph_instantiate(made.graph, 0, &made.exec, &error);
    }
}

static void close_failing(void)
{
    table->graph_exec_destroy(made.exec);
    table->graph_destroy(made.graph);
    table->event_destroy(made.event);
    table->stream_destroy(made.stream);
    close_mock();
}

/* The script is applied before arguments are checked, so NULL suffices for all except the
   handle. */
#define EXPECT_SCRIPTED(slot, ...) \
    do { \
        open_failing(#slot); \
        EXPECT_FAIL(table->slot(__VA_ARGS__, &error), DS_ACCEL_ERR_TIMEOUT, \
                    #slot ": MOCK_ERROR_TIMEOUT (109)"); \
        close_failing(); \
    } while (0)

Test(plugin_mock, every_function_of_the_instance_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(extension, instance, NULL, NULL);
    EXPECT_SCRIPTED(backend_info, instance, NULL);
    EXPECT_SCRIPTED(device_identity, instance, 0, NULL);
    EXPECT_SCRIPTED(device_get_current, instance, NULL);
    EXPECT_SCRIPTED(mem_pointer_info, instance, NULL, NULL, NULL);
    EXPECT_SCRIPTED(telemetry_get, instance, 0, NULL);
    EXPECT_SCRIPTED(telemetry_processes, instance, 0, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(range_push, instance, NULL, NULL, NULL);
    EXPECT_SCRIPTED(range_pop, instance, NULL);
    EXPECT_SCRIPTED(profiler_start, instance);
    EXPECT_SCRIPTED(profiler_stop, instance);
    EXPECT_SCRIPTED(links_get, instance, 0, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(op_builders_get, instance, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(op_compatible, instance, NULL, NULL, NULL, 0);
    EXPECT_SCRIPTED(env_rules_get, instance, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(env_name_get, instance, 0, 0, NULL, 0);
    EXPECT_SCRIPTED(visible_devices_value, instance, NULL, NULL, 0, NULL, 0, NULL);
}

Test(plugin_mock, every_function_of_a_device_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(device_info, handle, NULL);
    EXPECT_SCRIPTED(device_set_current, handle);
    EXPECT_SCRIPTED(device_synchronize, handle, 0);
    EXPECT_SCRIPTED(device_health, handle);
    EXPECT_SCRIPTED(stream_create, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(stream_get_default, handle, NULL);
    EXPECT_SCRIPTED(stream_priority_range, handle, NULL, NULL);
    EXPECT_SCRIPTED(event_create, handle, 0, NULL);
    EXPECT_SCRIPTED(dtype_support, handle, 0, NULL);
    EXPECT_SCRIPTED(peer_can_access, handle, NULL, NULL);
    EXPECT_SCRIPTED(peer_enable, handle, NULL);
    EXPECT_SCRIPTED(peer_disable, handle, NULL);
    EXPECT_SCRIPTED(native_get, handle, 0, NULL, NULL, NULL);
    EXPECT_SCRIPTED(native_wrap, handle, 0, 0, NULL);
}

Test(plugin_mock, every_function_that_shares_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(ipc_memory_export, handle, NULL, NULL, 0);
    EXPECT_SCRIPTED(ipc_memory_unexport, handle, NULL, 0);
    EXPECT_SCRIPTED(ipc_memory_open, handle, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(ipc_memory_close, handle, NULL);
    EXPECT_SCRIPTED(ipc_event_export, made.event, NULL, 0);
    EXPECT_SCRIPTED(ipc_event_open, handle, NULL, 0, NULL);
    EXPECT_SCRIPTED(dmabuf_export, handle, NULL, 0, 0, NULL, NULL);
    EXPECT_SCRIPTED(dmabuf_import, handle, 0, 0, 0, NULL);
    EXPECT_SCRIPTED(dmabuf_release, handle, NULL);
}

Test(plugin_mock, every_function_of_memory_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(mem_alloc, handle, 0, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_free, handle, NULL);
    EXPECT_SCRIPTED(mem_alloc_pinned, handle, 0, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_free_pinned, handle, NULL);
    EXPECT_SCRIPTED(mem_register, handle, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_unregister, handle, NULL);
    EXPECT_SCRIPTED(mem_alloc_managed, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_device_pointer, handle, NULL, NULL);
    EXPECT_SCRIPTED(mem_copy, handle, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_info, handle, NULL);
    EXPECT_SCRIPTED(mem_stats, handle, NULL);
    EXPECT_SCRIPTED(mem_reset_peaks, handle, 0);
    EXPECT_SCRIPTED(mem_set_limit, handle, 0);
    EXPECT_SCRIPTED(vmem_granularity, handle, 0, NULL, NULL);
    EXPECT_SCRIPTED(vmem_reserve, handle, 0, 0, NULL, 0, NULL);
    EXPECT_SCRIPTED(vmem_release, handle, NULL, 0);
    EXPECT_SCRIPTED(vmem_create, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(vmem_map, handle, NULL, 0, NULL, 0);
    EXPECT_SCRIPTED(vmem_unmap, handle, NULL, 0);
    EXPECT_SCRIPTED(vmem_set_access, handle, NULL, 0, 0);
}

Test(plugin_mock, every_function_of_a_stream_event_or_graph_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(stream_synchronize, made.stream, 0);
    EXPECT_SCRIPTED(stream_query, made.stream);
    EXPECT_SCRIPTED(stream_wait_event, made.stream, NULL);
    EXPECT_SCRIPTED(stream_host_task, made.stream, NULL, NULL);
    EXPECT_SCRIPTED(event_record, made.event, NULL);
    EXPECT_SCRIPTED(event_query, made.event);
    EXPECT_SCRIPTED(event_synchronize, made.event, 0);
    EXPECT_SCRIPTED(event_elapsed_ms, made.event, NULL, NULL);
    EXPECT_SCRIPTED(mem_copy_async, made.stream, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_copy_peer_async, made.stream, NULL, NULL, NULL, NULL, 0);
    EXPECT_SCRIPTED(mem_fill_async, made.stream, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_alloc_async, made.stream, 0, 0, NULL, 0, NULL);
    EXPECT_SCRIPTED(mem_free_async, made.stream, NULL, NULL, 0);
    EXPECT_SCRIPTED(graph_capture_begin, made.stream, 0);
    EXPECT_SCRIPTED(graph_capture_end, made.stream, NULL);
    EXPECT_SCRIPTED(graph_capture_status, made.stream, NULL);
    EXPECT_SCRIPTED(graph_instantiate, made.graph, 0, NULL);
    EXPECT_SCRIPTED(graph_launch, made.exec, made.stream);
    EXPECT_SCRIPTED(graph_exec_update, made.exec, made.graph, NULL);
    EXPECT_SCRIPTED(graph_node_count, made.graph, NULL);
    EXPECT_SCRIPTED(graph_dump, made.graph, NULL, NULL);
}

Test(plugin_mock, opening_and_counting_can_be_told_to_fail)
{
    uint32_t count = 0;

    option("fail", "device_open:2=permission,device_count:2=io");
    open_mock();
    cr_expect_eq(ds_accel_device_open(context, 1, &device), DS_ACCEL_ERR_PERMISSION);
    EXPECT_HAS(ds_accel_last_error(), "device_open: MOCK_ERROR_PERMISSION (107)");
    EXPECT_FAIL(table->device_count(instance, &count, &error), DS_ACCEL_ERR_IO, "device_count: ");
    close_mock();
}

/* ---- a lost device -------------------------------------------------------------------------- */

static void expect_lost(ds_accel_plugin_device_t *lost)
{
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    ds_accel_device_t *again;
    void *pointer = NULL;

    EXPECT_FAIL(table->device_health(lost, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "device 0 was lost before");
    cr_expect_str_eq(error.vendor_text, "MOCK_ERROR_DEVICE_LOST");
    cr_expect_eq(error.vendor_code, 110);
    EXPECT_FAIL(table->mem_alloc(lost, 1, 0, 0, &pointer, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "mem_alloc");
    EXPECT_FAIL(table->telemetry_get(instance, 0, &telemetry, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "telemetry_get");
    cr_expect_eq(ds_accel_device_open(context, 0, &again), DS_ACCEL_ERR_DEVICE_LOST);
}

Test(plugin_mock, a_lost_device_stays_lost_until_it_is_closed)
{
    ds_accel_plugin_device_t *other;
    ds_accel_device_t *other_device;

    option("fail", "mem_trim:2=device_lost");
    open_mock();
    other = open_index(1, &other_device);
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    EXPECT_FAIL(table->mem_trim(handle, 0, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "as option fail requests");
    expect_lost(handle);
    expect_lost(handle);
    EXPECT_OK(table->device_health(other, &error));
    ds_accel_device_close(device);
    handle = open_index(0, &device);
    EXPECT_OK(table->device_health(handle, &error));
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    ds_accel_device_close(other_device);
    close_mock();
}

Test(plugin_mock, what_a_lost_device_held_is_gone_when_it_is_open_again)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_stream_t *stream;
    void *pointer;

    option("fail", "stream_query:1=device_lost");
    open_mock();
    pointer = allocate(100);
    stream = make_stream();
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_ERR_DEVICE_LOST);
    EXPECT_FAIL(table->stream_synchronize(stream, UINT64_MAX, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "before");
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_DEVICE_LOST, "before");
    table->stream_destroy(stream);
    ds_accel_device_close(device);
    EXPECT_HAS_NOT(test_log, "allocations left");
    handle = open_index(0, &device);
    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    cr_expect_eq(stats.allocated_bytes, 0);
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID, "mem_free");
    close_mock();
}
