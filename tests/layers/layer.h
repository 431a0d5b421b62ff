/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of the layers: a context with layers, its device, and checks of a call. */
#ifndef DS_ACCEL_TESTS_LAYERS_LAYER_H
#define DS_ACCEL_TESTS_LAYERS_LAYER_H

#include "bad.h"
#include "fixture.h"
#include "table.h"

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

static inline void start_named(const char *accelerator, const char *layers)
{
    struct ds_accel_options options = test_options();

    options.accelerator = accelerator;
    if (layers != NULL) {
        setenv("DS_ACCEL_LAYERS", layers, 1);
    }
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    handle = ds_accel_device_handle(device);
}

static inline void start_layers(const char *layers)
{
    start_named("mock", layers);
}

static inline void start_bad(const char *layers)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "bad";
    setenv("DS_ACCEL_LAYERS", layers, 1);
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, ds_accel_entry_v1), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    handle = ds_accel_device_handle(device);
}

static inline void stop(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static inline void *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

static inline ds_accel_plugin_stream_t *make_stream(void)
{
    ds_accel_plugin_stream_t *stream = NULL;

    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    return stream;
}

static inline ds_accel_plugin_event_t *make_event(void)
{
    ds_accel_plugin_event_t *event = NULL;

    ASSERT_OK(table->event_create(handle, 0, &event, &error));
    return event;
}

static inline uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    cr_assert_eq(ds_accel_race_count(context, &count), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return count;
}

static inline char *report(const char *layer)
{
    char *text = NULL;

    cr_assert_eq(ds_accel_layer_report(context, layer, &text), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return text;
}

/* Make calls of every kind; their results must be the same with any layers. */
static inline void use_everything(void)
{
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_pointer_info where = {.struct_size = sizeof(where)};
    ds_accel_plugin_stream_t *stream = make_stream();
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_event_t *event = make_event();
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    unsigned char host[64];
    unsigned char back[64];
    unsigned char *memory_a = allocate(64);
    unsigned char *memory_b = allocate(64);
    void *pinned = NULL;
    uint64_t nodes = 0;
    int32_t least = 99;
    int32_t greatest = 99;
    uint32_t count = 0;
    uint32_t support = 0;

    for (size_t i = 0; i < sizeof(host); i++) {
        host[i] = (unsigned char)(i * 7);
    }
    EXPECT_OK(table->mem_copy(handle, memory_a, host, 64, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(table->mem_copy_async(stream, memory_b, memory_a, 64, DS_ACCEL_COPY_DEVICE_TO_DEVICE,
                                    &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, event, &error));
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->mem_copy(handle, back, memory_b, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    cr_expect_arr_eq(host, back, 64);
    EXPECT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(table->mem_fill_async(stream, memory_b, "\x11", 1, 64, &error));
    EXPECT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->graph_node_count(graph, &nodes, &error));
    cr_expect_eq(nodes, 1);
    EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->mem_copy(handle, back, memory_b, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    cr_expect(back[0] == 0x11 && back[63] == 0x11);
    EXPECT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, &pinned, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_OK(table->mem_info(handle, &memory, &error));
    cr_expect_gt(memory.total_bytes, 0);
    EXPECT_OK(table->device_info(handle, &info, &error));
    cr_expect_eq(info.struct_size, sizeof(info));
    cr_expect_neq(info.name[0], '\0');
    EXPECT_OK(table->mem_pointer_info(instance, handle, memory_a, &where, &error));
    cr_expect_eq(where.base_address, (uintptr_t)memory_a);
    EXPECT_OK(table->stream_priority_range(handle, &least, &greatest, &error));
    cr_expect_leq(greatest, least);
    EXPECT_OK(table->device_count(instance, &count, &error));
    cr_expect_gt(count, 0);
    EXPECT_OK(table->dtype_support(handle, DS_ACCEL_DTYPE_FLOAT32, &support, &error));
    cr_expect_neq(support, 0);
    EXPECT_OK(table->stream_get_default(handle, &usual, &error));
    EXPECT_OK(table->stream_query(usual, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(event);
    table->stream_destroy(stream);
    table->stream_destroy(NULL);
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    EXPECT_OK(table->mem_free(handle, memory_b, &error));
    EXPECT_OK(table->mem_free(handle, NULL, &error));
}

static inline char *read_whole(const char *path)
{
    static char text[262144];
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

#endif
