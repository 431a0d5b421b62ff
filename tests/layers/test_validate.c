/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer validate: misuse that a single call reveals, and a plugin that breaks rules. */
#include "layer.h"

/* ---- misuse --------------------------------------------------------------------------------- */

Test(core_layer, validate_refuses_handles_that_are_not_live)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    int nobody = 0;

    start_layers("validate");
    stream = make_stream();
    event = make_event();
    table->stream_destroy(stream);
    EXPECT_FAIL(table->stream_synchronize(stream, 0, &error), DS_ACCEL_ERR_INVALID,
                "was destroyed, at ");
    EXPECT_FAIL(table->event_record(event, stream, &error), DS_ACCEL_ERR_INVALID, "was destroyed");
    EXPECT_FAIL(table->stream_query(NULL, &error), DS_ACCEL_ERR_INVALID, "stream is NULL");
    EXPECT_FAIL(table->stream_query((ds_accel_plugin_stream_t *)&nobody, &error),
                DS_ACCEL_ERR_INVALID, "is not a live stream");
    EXPECT_FAIL(table->stream_query((ds_accel_plugin_stream_t *)event, &error),
                DS_ACCEL_ERR_INVALID, "is not a live stream");
    test_log[0] = '\0';
    table->stream_destroy(stream);
    EXPECT_HAS(test_log, "stream_destroy: stream");
    EXPECT_HAS(test_log, "was destroyed");
    cr_expect_eq(table->stream_query(NULL, NULL), DS_ACCEL_ERR_INVALID, "without an error too");
    table->event_destroy(event);
    stop();
}

Test(core_layer, validate_refuses_handles_of_another_instance)
{
    ds_accel_plugin_stream_t *foreign = NULL;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_device_t *other_handle;
    const struct ds_accel_plugin *other_table;
    ds_accel_plugin_instance_t *other_instance;
    ds_accel_device_t *other_device;
    ds_accel_t *other;

    start_layers("validate");
    other = context;
    other_device = device;
    other_handle = handle;
    other_table = table;
    other_instance = instance;
    start_layers("validate");
    event = make_event();
    ASSERT_OK(other_table->stream_create(other_handle, 0, 0, &foreign, &error));
    EXPECT_FAIL(table->event_record(event, foreign, &error), DS_ACCEL_ERR_INVALID,
                "belongs to another instance");
    EXPECT_FAIL(table->peer_enable(handle, other_handle, &error), DS_ACCEL_ERR_INVALID,
                "belongs to another instance");
    cr_expect_neq(other_instance, instance);
    other_table->stream_destroy(foreign);
    table->event_destroy(event);
    stop();
    ds_accel_device_close(other_device);
    ds_accel_destroy(other);
}

Test(core_layer, validate_refuses_numbers_that_cannot_be)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_device_t *opened = NULL;
    ds_accel_plugin_event_t *event = NULL;
    char *memory;
    char host[64] = "";
    void *pointer = NULL;

    start_layers("validate");
    memory = allocate(64);
    EXPECT_FAIL(table->mem_alloc(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size_bytes is 0");
    EXPECT_FAIL(table->mem_alloc(handle, UINT64_MAX, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "no machine has as much memory");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "not a power of two");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 4, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x4");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 0, NULL, &error), DS_ACCEL_ERR_INVALID,
                "pointer_out is NULL");
    cr_expect_null(pointer);
    EXPECT_FAIL(table->stream_create(handle, 2, 0, &stream, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x2");
    EXPECT_FAIL(table->event_create(handle, 8, &event, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits 0x8");
    EXPECT_FAIL(table->device_open(instance, 99, &opened, &error), DS_ACCEL_ERR_INVALID,
                "device index 99; there are 2");
    EXPECT_FAIL(table->device_open(instance, 2, &opened, &error), DS_ACCEL_ERR_INVALID,
                "device index 2; there are 2");
    EXPECT_FAIL(table->device_open(instance, (uint32_t)-1, &opened, &error), DS_ACCEL_ERR_INVALID,
                "device index 4294967295");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 64, 0, &error), DS_ACCEL_ERR_INVALID,
                "unknown kind 0");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 64, 6, &error), DS_ACCEL_ERR_INVALID,
                "unknown kind 6");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, UINT64_MAX, 2, &error), DS_ACCEL_ERR_INVALID,
                "is not a valid range");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 65, 2, &error), DS_ACCEL_ERR_INVALID,
                "goes past the end of its allocation");
    EXPECT_FAIL(table->mem_copy(handle, host, memory + 32, 33, 3, &error), DS_ACCEL_ERR_INVALID,
                "source");
    EXPECT_FAIL(table->mem_copy(handle, memory, memory + 16, 32, 4, &error), DS_ACCEL_ERR_INVALID,
                "overlap");
    EXPECT_FAIL(table->mem_copy(handle, memory, memory + 31, 32, 4, &error), DS_ACCEL_ERR_INVALID,
                "overlap within 32 bytes");
    EXPECT_OK(table->mem_copy(handle, memory, memory + 32, 32, 4, &error));
    EXPECT_FAIL(table->mem_copy(handle, NULL, host, 1, 2, &error), DS_ACCEL_ERR_INVALID,
                "destination");
    stream = make_stream();
    EXPECT_FAIL(table->mem_fill_async(stream, memory, host, 3, 63, &error), DS_ACCEL_ERR_INVALID,
                "a pattern of 3 bytes");
    EXPECT_FAIL(table->mem_fill_async(stream, memory, host, 4, 63, &error), DS_ACCEL_ERR_INVALID,
                "over 63");
    table->stream_destroy(stream);
    EXPECT_OK(table->mem_free(handle, memory, &error));
    stop();
}

Test(core_layer, validate_knows_what_is_allocated)
{
    ds_accel_device_t *second;
    ds_accel_plugin_device_t *second_handle;
    ds_accel_plugin_stream_t *stream;
    char host[64] = "";
    char *memory;
    void *pinned = NULL;

    start_layers("validate");
    cr_assert_eq(ds_accel_device_open(context, 1, &second), DS_ACCEL_OK);
    second_handle = ds_accel_device_handle(second);
    stream = make_stream();
    memory = allocate(64);
    EXPECT_OK(table->mem_alloc_pinned(handle, 64, 1, 0, &pinned, &error));
    EXPECT_FAIL(table->mem_free(handle, memory + 1, &error), DS_ACCEL_ERR_INVALID,
                "not the start of an allocation, but 1 bytes after it");
    EXPECT_FAIL(table->mem_free(handle, host, &error), DS_ACCEL_ERR_INVALID,
                "in no live allocation");
    EXPECT_FAIL(table->mem_free(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "was made by mem_alloc_pinned");
    EXPECT_OK(table->mem_register(handle, host, sizeof(host), 0, &error));
    EXPECT_FAIL(table->mem_free_pinned(handle, host, &error), DS_ACCEL_ERR_INVALID,
                "was made by mem_register");
    EXPECT_OK(table->mem_unregister(handle, host, &error));
    EXPECT_FAIL(table->mem_free(second_handle, memory, &error), DS_ACCEL_ERR_INVALID,
                "belongs to device 0");
    EXPECT_FAIL(
        table->mem_copy_peer_async(stream, second_handle, memory, handle, memory + 32, 8, &error),
        DS_ACCEL_ERR_INVALID, "belongs to another device");
    EXPECT_OK(table->mem_free(handle, memory, &error));
    EXPECT_FAIL(table->mem_free(handle, memory, &error), DS_ACCEL_ERR_INVALID,
                "was freed before, at ");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error),
                DS_ACCEL_ERR_INVALID, "was freed, at ");
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    table->stream_destroy(stream);
    ds_accel_device_close(second);
    stop();
}

Test(core_layer, validate_refuses_calls_out_of_place)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_event_t *timed = NULL;
    double elapsed_ms = 0;

    start_layers("validate");
    stream = make_stream();
    event = make_event();
    EXPECT_FAIL(table->event_elapsed_ms(event, event, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "event start was created without DS_ACCEL_EVENT_TIMING");
    EXPECT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &timed, &error));
    EXPECT_FAIL(table->event_elapsed_ms(timed, event, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "event end was created without DS_ACCEL_EVENT_TIMING");
    table->event_destroy(timed);
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                "does not capture");
    EXPECT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    test_log[0] = '\0';
    table->stream_destroy(stream);
    EXPECT_HAS(test_log, "the stream captures");
    EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->stream_get_default(handle, &usual, &error));
    test_log[0] = '\0';
    table->stream_destroy(usual);
    EXPECT_HAS(test_log, "borrowed");
    EXPECT_OK(table->stream_query(usual, &error));
    test_log[0] = '\0';
    table->graph_destroy(graph);
    ds_accel_device_close(device);
    EXPECT_HAS(test_log, "DSA-H18: device_close with 2 objects of the device still in use");
    ds_accel_destroy(context);
}

/* ---- a plugin that breaks rules ------------------------------------------------------------- */

/* Make a call in which the plugin breaks one rule, and expect that the log names the rule. */
static int32_t breach(const char *name, const char *rule)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    void *pointer = &info;
    uint32_t count = 0;
    int32_t status;

    bad_fault = name;
    test_log[0] = '\0';
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    if (bad_commits("struct overrun") || bad_commits("struct size")) {
        status = table->device_info(handle, &info, &error);
        cr_expect_eq(info.struct_size, sizeof(info));
    } else if (bad_commits("silent output")) {
        status = table->device_count(instance, &count, &error);
    } else {
        status = table->mem_alloc(handle, 8, 0, 0, &pointer, &error);
        cr_expect(status == DS_ACCEL_OK || pointer == &info, "%s: the output was handed on", name);
    }
    cr_expect_not_null(strstr(test_log, rule), "%s: no %s in: %s", name, rule, test_log);
    bad_fault = NULL;
    return status;
}

Test(core_layer, validate_names_the_rule_that_a_plugin_breaks)
{
    void *pointer = NULL;

    start_bad("validate");
    test_log[0] = '\0';
    EXPECT_OK(table->mem_alloc(handle, 1, 0, 0, &pointer, &error));
    cr_expect_str_eq(test_log, "", "%s", test_log);
    cr_expect_eq(breach("output on failure", "plugin bad breaks DSA-P14: mem_alloc: it wrote "
                                             "pointer_out, and returned -8"),
                 DS_ACCEL_ERR_BUSY);
    cr_expect_eq(breach("positive status", "DSA-P17: mem_alloc: it returned 7"), DS_ACCEL_ERR_ABI);
    cr_expect_eq(breach("null handle", "DSA-H20"), DS_ACCEL_ERR_ABI);
    cr_expect_eq(breach("no message", "DSA-P15: mem_alloc: it returned -8 without a message"),
                 DS_ACCEL_ERR_BUSY);
    cr_expect_eq(breach("wrong code", "DSA-P15: mem_alloc: it returned -8, and error.code is 0"),
                 DS_ACCEL_ERR_BUSY);
    cr_expect_eq(breach("struct overrun", "DSA-P19: device_info: it wrote past the"), DS_ACCEL_OK);
    cr_expect_eq(breach("struct size", "DSA-P19: device_info: it changed"), DS_ACCEL_OK);
    cr_expect_eq(breach("silent output", "DSA-P14: device_count: it returned OK without writing "
                                         "count_out"),
                 DS_ACCEL_OK);
    stop();
}
