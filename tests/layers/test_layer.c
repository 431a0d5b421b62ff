/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layers over the mock and the cpu plugin: what is let through, what is refused, what is told. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        cr_expect_eq(error.code, status); \
        EXPECT_HAS(error.message, part); \
    } while (0)

static void start_named(const char *accelerator, const char *layers)
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

static void start_layers(const char *layers)
{
    start_named("mock", layers);
}

static void stop(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static void *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

static ds_accel_plugin_stream_t *make_stream(void)
{
    ds_accel_plugin_stream_t *stream = NULL;

    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    return stream;
}

static ds_accel_plugin_event_t *make_event(void)
{
    ds_accel_plugin_event_t *event = NULL;

    ASSERT_OK(table->event_create(handle, 0, &event, &error));
    return event;
}

static uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    cr_assert_eq(ds_accel_race_count(context, &count), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return count;
}

static char *report(const char *layer)
{
    char *text = NULL;

    cr_assert_eq(ds_accel_layer_report(context, layer, &text), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return text;
}

/* ---- which layers --------------------------------------------------------------------------- */

Test(core_layer, none_is_on_unless_it_is_named)
{
    uint64_t count = 0;

    start_layers(NULL);
    cr_expect_eq(ds_accel__layers_on, 0);
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_LAYERS");
    stop();
}

Test(core_layer, configuration_names_them_and_the_environment_goes_first)
{
    char *text;
    uint64_t count;

    test_write("etc/ds-accel.json", "{\"layers\": [\"leak\"]}");
    start_layers(NULL);
    cr_expect_eq(ds_accel__layers_on, 1);
    text = report("leak");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_ERR_STATE);
    stop();
    cr_expect_eq(ds_accel__layers_on, 0);
    start_layers("race");
    cr_expect_eq(races(), 0);
    cr_expect_eq(ds_accel_layer_report(context, "leak", &text), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_layer_report(context, "lead", &text), DS_ACCEL_ERR_NOT_FOUND);
    stop();
}

Test(core_layer, unknown_name_is_refused_with_the_nearest)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;

    setenv("DS_ACCEL_LAYERS", "leak,valdate", 1);
    cr_expect_eq(ds_accel_create(&options, &made), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "did you mean \"validate\"?");
    unsetenv("DS_ACCEL_LAYERS");
    test_write("etc/ds-accel.json", "{\"layers\": [\"trade\"]}");
    cr_expect_eq(ds_accel_create(&options, &made), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "did you mean \"trace\"?");
}

/* The cpu plugin has neither managed memory nor a current stream. */
Test(core_layer, absent_slots_stay_absent)
{
    ds_accel_plugin_stream_t *stream = NULL;

    start_named("cpu", "validate,leak");
    error.message[0] = '\0';
    cr_expect_eq(table->mem_alloc_managed(NULL, 0, 0, NULL, &error), DS_ACCEL_ERR_UNSUPPORTED);
    cr_expect_eq(table->stream_get_current(NULL, &stream, &error), DS_ACCEL_ERR_UNSUPPORTED);
    stop();
}

/* ---- what goes through ---------------------------------------------------------------------- */

/* A bit of everything, which must come out the same with any layers. */
static void use_everything(void)
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

Test(core_layer, calls_go_through_as_they_are)
{
    static const char *const stacks[] = {"validate",
                                         "race",
                                         "leak",
                                         "trace",
                                         "trace,leak,validate",
                                         "validate,leak,trace",
                                         "race,trace,leak,validate"};
    static const char *const accelerators[] = {"mock", "cpu"};

    setenv("DS_ACCEL_TRACE_FILE", test_path("trace.json"), 1);
    for (size_t i = 0; i < 2 * LENGTH(stacks); i++) {
        start_named(accelerators[i % 2], stacks[i / 2]);
        test_log[0] = '\0';
        use_everything();
        if (strstr(stacks[i / 2], "leak") != NULL) {
            char *text = report("leak");

            cr_expect_not_null(strstr(text, "x device, made at"), "the open device: %s", text);
            cr_expect_null(strstr(text, "memory"), "%s", text);
            ds_accel_free_text(text);
        }
        stop();
        cr_expect_str_eq(test_log, "", "%s over %s: %s", stacks[i / 2], accelerators[i % 2],
                         test_log);
    }
}

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
                DS_ACCEL_ERR_NO_MEMORY, "no memory is as large");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "no power of two");
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
                "no kind 0");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 64, 6, &error), DS_ACCEL_ERR_INVALID,
                "no kind 6");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, UINT64_MAX, 2, &error), DS_ACCEL_ERR_INVALID,
                "is no range");
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
                "not the beginning of an allocation, but 1 bytes behind it");
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
    EXPECT_HAS(test_log, "DSA-H18: device_close with 2 things of the device still in use");
    ds_accel_destroy(context);
}

/* ---- a plugin that breaks rules ------------------------------------------------------------- */

static const char *fault;

static bool commits(const char *name)
{
    return fault != NULL && strcmp(fault, name) == 0;
}

static int32_t bad_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                         struct ds_accel_error *details)
{
    (void)host;
    (void)details;
    verdict->state = DS_ACCEL_PROBE_AVAILABLE;
    verdict->device_count = 1;
    return DS_ACCEL_OK;
}

static char bad_instance;
static char bad_device;

static const struct ds_accel_host *bad_host;

static int32_t bad_init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **out,
                        struct ds_accel_error *details)
{
    (void)details;
    bad_host = host;
    *out = (ds_accel_plugin_instance_t *)&bad_instance;
    return DS_ACCEL_OK;
}

static void bad_shutdown(ds_accel_plugin_instance_t *it)
{
    (void)it;
}

static int32_t bad_count(ds_accel_plugin_instance_t *it, uint32_t *count_out,
                         struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    if (!commits("silent output")) {
        *count_out = 1;
    }
    return DS_ACCEL_OK;
}

static int32_t bad_open(ds_accel_plugin_instance_t *it, uint32_t index,
                        ds_accel_plugin_device_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)index;
    (void)details;
    *out = (ds_accel_plugin_device_t *)&bad_device;
    return DS_ACCEL_OK;
}

static void bad_close(ds_accel_plugin_device_t *it)
{
    (void)it;
}

static int32_t bad_alloc(ds_accel_plugin_device_t *it, uint64_t size_bytes, uint64_t align_bytes,
                         uint32_t flags, void **pointer_out, struct ds_accel_error *details)
{
    (void)it;
    (void)size_bytes;
    (void)align_bytes;
    (void)flags;
    if (commits("positive status")) {
        return 7;
    }
    if (commits("null handle")) {
        *pointer_out = NULL;
        return DS_ACCEL_OK;
    }
    *pointer_out = &bad_device;
    if (commits("output on failure") || commits("no message")) {
        details->code = DS_ACCEL_ERR_BUSY;
        snprintf(details->message, sizeof(details->message), "%s",
                 commits("no message") ? "" : "mem_alloc: busy");
    }
    if (commits("wrong code")) {
        snprintf(details->message, sizeof(details->message), "mem_alloc: busy");
    }
    return fault != NULL ? DS_ACCEL_ERR_BUSY : DS_ACCEL_OK;
}

static int32_t bad_info(ds_accel_plugin_device_t *it, struct ds_accel_device_info *info_out,
                        struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    info_out->device_index = 0;
    if (commits("struct overrun")) {
        memset((char *)info_out + info_out->struct_size, 0, 8);
    }
    if (commits("struct size")) {
        info_out->struct_size = 4;
    }
    return DS_ACCEL_OK;
}

static void bad_fill(struct ds_accel_plugin *it)
{
    it->probe = bad_probe;
    it->init = bad_init;
    it->shutdown = bad_shutdown;
    it->device_count = bad_count;
    it->device_open = bad_open;
    it->device_close = bad_close;
    it->device_info = bad_info;
    it->mem_alloc = bad_alloc;
}

DS_ACCEL_PLUGIN("bad", "the tests", "1.0", 0, 0, bad_fill);

static void start_bad(const char *layers)
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

/* Make a call that goes wrong in one way; the log names the rule. */
static int32_t breach(const char *name, const char *rule)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    void *pointer = &info;
    uint32_t count = 0;
    int32_t status;

    fault = name;
    test_log[0] = '\0';
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    if (commits("struct overrun") || commits("struct size")) {
        status = table->device_info(handle, &info, &error);
        cr_expect_eq(info.struct_size, sizeof(info));
    } else if (commits("silent output")) {
        status = table->device_count(instance, &count, &error);
    } else {
        status = table->mem_alloc(handle, 8, 0, 0, &pointer, &error);
        cr_expect(status == DS_ACCEL_OK || pointer == &info, "%s: the output was handed on", name);
    }
    cr_expect_not_null(strstr(test_log, rule), "%s: no %s in: %s", name, rule, test_log);
    fault = NULL;
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

/* ---- leaks ---------------------------------------------------------------------------------- */

Test(core_layer, leak_tells_what_is_live_and_where_it_was_made)
{
    char *text;

    start_layers("leak");
    for (int i = 0; i < 3; i++) {
        allocate(1000);
        make_event();
    }
    text = report("leak");
    EXPECT_HAS(text, "device 0: 3 x memory, 3000 bytes, made at ");
    EXPECT_HAS(text, "device 0: 3 x event, made at ");
    ds_accel_free_text(text);
    test_log[0] = '\0';
    ds_accel_device_close(device);
    EXPECT_HAS(test_log, "leak: mock is live at device_close: device 0: 3 x memory, 3000 bytes");
    EXPECT_HAS(test_log, "3 x event");
    test_log[0] = '\0';
    ds_accel_destroy(context);
    EXPECT_HAS_NOT(test_log, "leak");
}

/* ---- the trace ------------------------------------------------------------------------------ */

static char *read_whole(const char *path)
{
    static char text[262144];
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* A second reader of JSON: each event has what a viewer needs. */
static bool python_reads(const char *path)
{
    char command[1024];

    snprintf(command, sizeof(command),
             "python3 -c 'import json,sys\n"
             "events = json.load(open(sys.argv[1]))\n"
             "assert len(events) > 10\n"
             "for e in events:\n"
             "    assert e[\"ph\"] in \"MXBE\" and \"pid\" in e and \"tid\" in e\n"
             "    assert e[\"ph\"] != \"X\" or (e[\"dur\"] >= 0 and \"status\" in e[\"args\"])\n"
             "spans = [e[\"ph\"] for e in events if e[\"ph\"] in \"BE\"]\n"
             "assert spans.count(\"B\") == spans.count(\"E\")\n' %s",
             path);
    return system(command) == 0;
}

Test(core_layer, trace_is_valid_json_with_a_span_for_each_call)
{
    const char *path = test_path("trace.json");
    char *text;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    start_layers("trace");
    use_everything();
    EXPECT_OK(table->range_push(instance, "step \"1\"\n\\ \xff", NULL, "training", &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    stop();
    text = read_whole(path);
    EXPECT_HAS(text, "\"name\":\"mem_copy_async\",\"cat\":\"mem\"");
    EXPECT_HAS(text, "\"size_bytes\":64,\"kind\":4");
    EXPECT_HAS(text, "\"ph\":\"B\"");
    EXPECT_HAS(text, "\"cat\":\"training\"");
    cr_expect(python_reads(path), "%s", text);
}

/* The host's extension for spans of a plugin's own: always there, and written if there is a trace.
 */
Test(core_layer, trace_has_the_plugins_own_spans)
{
    const char *path = test_path("trace.json");
    const struct ds_accel_ext_trace *spans;
    char *text;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    start_bad("leak");
    spans = bad_host->extension(bad_host, DS_ACCEL_EXT_TRACE);
    cr_assert_not_null(spans);
    cr_expect_neq(bad_host->features & DS_ACCEL_FEATURE_TRACE, 0);
    spans->begin(bad_host, "upload", "nobody sees this");
    spans->end(bad_host);
    stop();
    cr_expect_neq(access(path, F_OK), 0, "no layer writes it");
    start_bad("trace");
    spans = bad_host->extension(bad_host, DS_ACCEL_EXT_TRACE);
    for (int i = 0; i < 10; i++) {
        spans->begin(bad_host, "upload", "chunk");
        spans->end(bad_host);
        spans->end(bad_host); /* one too many */
    }
    stop();
    text = read_whole(path);
    EXPECT_HAS(text, "\"name\":\"chunk\",\"cat\":\"upload\"");
    cr_expect(python_reads(path), "%s", text);
}

/* A process that ends by a signal leaves whole lines, of which the array form needs no end. */
Test(core_layer, trace_of_a_crash_can_be_read)
{
    const char *path = test_path("crash.json");
    char *text;
    int status = 0;
    pid_t child;

    setenv("DS_ACCEL_TRACE_FILE", path, 1);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        start_layers("trace");
        for (int i = 0; i < 1200; i++) {
            (void)table->device_synchronize(handle, UINT64_MAX, &error);
        }
        kill(getpid(), SIGKILL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    text = read_whole(path);
    cr_expect_gt(strlen(text), 65536);
    cr_expect_eq(text[strlen(text) - 1], '}', "the last line is whole");
    strcat(text, "\n]\n");
    test_write("closed.json", text);
    cr_expect(python_reads(test_path("closed.json")));
}

Test(core_layer, trace_that_cannot_be_written_is_left_out)
{
    setenv("DS_ACCEL_TRACE_FILE", "/nonexistent/trace.json", 1);
    start_layers("trace,leak");
    EXPECT_HAS(test_log, "layer trace is left out");
    allocate(8);
    test_log[0] = '\0';
    stop();
    EXPECT_HAS(test_log, "1 x memory");
}

/* ---- the file of races ---------------------------------------------------------------------- */

static void make_race(void)
{
    ds_accel_stream_t *one = NULL;
    ds_accel_stream_t *two = NULL;
    void *memory = allocate(64);

    ASSERT_OK(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &one));
    ASSERT_OK(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &two));
    EXPECT_OK(ds_accel_note_access(device, one, memory, 64, DS_ACCEL_ACCESS_WRITE));
    EXPECT_OK(ds_accel_note_access(device, two, memory, 64, DS_ACCEL_ACCESS_WRITE));
    EXPECT_OK(ds_accel_device_synchronize(device));
    EXPECT_OK(table->mem_free(handle, memory, &error));
}

static size_t line_count(const char *text, const char *start)
{
    size_t count = 0;

    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        count += strncmp(line, start, strlen(start)) == 0;
        cr_assert_not_null(strchr(line, '\n'), "the last line is whole");
    }
    return count;
}

/* Each race as soon as it is found; two runs add to one file, and a failed one leaves the rest. */
Test(core_layer, races_are_written_to_the_file_of_the_configuration)
{
    char config[512];
    char *text;

    snprintf(config, sizeof(config), "{\"validate\": {\"file\": \"%s\"}}", test_path("races"));
    test_write("etc/ds-accel.json", config);
    test_write("races", "# kept\n");
    for (size_t run = 1; run <= 2; run++) {
        char *told;

        start_layers("race");
        cr_expect_eq(line_count(read_whole(test_path("races")), "race: "), run - 1);
        make_race();
        text = read_whole(test_path("races"));
        cr_expect_eq(line_count(text, "race: "), run, "%s", text);
        cr_expect_eq(line_count(text, "# kept"), 1, "%s", text);
        told = report("race");
        EXPECT_HAS(text, told);
        ds_accel_free_text(told);
        stop();
    }
}

Test(core_layer, environment_names_a_file_of_races_for_each_process)
{
    char name[64];

    test_write("etc/ds-accel.json", "{\"validate\": {\"file\": \"/nonexistent/races\"}}");
    snprintf(name, sizeof(name), "races.%ld", (long)getpid());
    setenv("DS_ACCEL_RACE_FILE", test_path("races.%p"), 1);
    start_layers("validate");
    make_race();
    cr_expect_eq(line_count(read_whole(test_path(name)), "race: "), 1);
    stop();
    cr_expect_null(strstr(test_log, "not written"), "%s", test_log);
}

Test(core_layer, file_of_races_that_cannot_be_written_leaves_the_layer_on)
{
    setenv("DS_ACCEL_RACE_FILE", "/nonexistent/races", 1);
    start_layers("race");
    EXPECT_HAS(test_log, "races are not written to /nonexistent/races: No such file");
    make_race();
    cr_expect_eq(races(), 1);
    stop();
}

Test(core_layer, file_of_races_is_no_link)
{
    test_write("target", "");
    cr_assert_eq(symlink(test_path("target"), test_path("link")), 0);
    setenv("DS_ACCEL_RACE_FILE", test_path("link"), 1);
    start_layers("race");
    EXPECT_HAS(test_log, "races are not written to");
    make_race();
    cr_expect_str_eq(read_whole(test_path("target")), "");
    stop();
}

/* ---- what a program says -------------------------------------------------------------------- */

Test(core_layer, note_access_refuses_what_is_no_handle_and_no_range)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_device_t *closed;
    uint64_t count = 0;

    start_layers("race");
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &stream));
    cr_expect_eq(ds_accel_note_access(NULL, NULL, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "note_access: the device is NULL");
    cr_expect_eq(ds_accel_note_access(device, stream, &error, 1, 3), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_note_access(device, stream, &error, UINT64_MAX, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_OK(ds_accel_note_access(device, stream, NULL, 0, DS_ACCEL_ACCESS_WRITE));
    ds_accel_stream_destroy(stream);
    cr_expect_eq(ds_accel_note_access(device, stream, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "note_access: the stream was destroyed");
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 0);
    closed = device;
    ds_accel_device_close(device);
    cr_expect_eq(ds_accel_note_access(closed, NULL, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
    cr_expect_eq(ds_accel_note_access(closed, stream, &error, 1, DS_ACCEL_ACCESS_READ), DS_ACCEL_OK,
                 "no layer is on any more");
}

/* ---- races: schedules, and each with one of its waits left out ------------------------------- */

static int left_out; /* this one; -1: none */
static int wait_count;

/* The next wait is to be made, or is the one that is left out. */
static bool waits(void)
{
    return wait_count++ != left_out;
}

/* The public handle of a plugin's stream, as far as inline calls look at it. */
#define ON(stream) (&(struct ds_accel_stream){device->table, stream})

static ds_accel_plugin_stream_t *first;
static ds_accel_plugin_stream_t *second;
static ds_accel_plugin_event_t *event_a;
static ds_accel_plugin_event_t *event_b;
static char *memory_a;
static char *memory_b;
static char buffer[256];
static char results[256];

static void wait_on(ds_accel_plugin_stream_t *after, ds_accel_plugin_stream_t *before,
                    ds_accel_plugin_event_t *event)
{
    EXPECT_OK(table->event_record(event, before, &error));
    if (waits()) {
        EXPECT_OK(table->stream_wait_event(after, event, &error));
    }
}

/* Upload on one stream, compute on the other, download by the host. */
static void overlap(void)
{
    EXPECT_OK(
        table->mem_copy_async(first, memory_a, buffer, 256, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    wait_on(second, first, event_a);
    EXPECT_OK(table->mem_copy_async(second, memory_b, memory_a, 256, DS_ACCEL_COPY_DEVICE_TO_DEVICE,
                                    &error));
    if (waits()) {
        EXPECT_OK(table->stream_synchronize(second, UINT64_MAX, &error));
    }
    EXPECT_OK(
        table->mem_copy(handle, results, memory_b, 256, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

/* The host fills the buffer again while the device may still read it. */
static void reuse_buffer(void)
{
    EXPECT_OK(
        table->mem_copy_async(first, memory_a, buffer, 256, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(table->event_record(event_a, first, &error));
    if (waits()) {
        EXPECT_OK(table->event_synchronize(event_a, UINT64_MAX, &error));
    }
    EXPECT_OK(ds_accel_note_access(device, NULL, buffer + 17, 1, DS_ACCEL_ACCESS_WRITE));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

/* Kernels of the program's own, on two streams that take turns. */
static void take_turns(void)
{
    EXPECT_OK(ds_accel_note_access(device, ON(first), memory_a, 8, DS_ACCEL_ACCESS_WRITE));
    wait_on(second, first, event_a);
    EXPECT_OK(ds_accel_note_access(device, ON(second), memory_a, 8, DS_ACCEL_ACCESS_READ));
    EXPECT_OK(ds_accel_note_access(device, ON(second), memory_b, 8, DS_ACCEL_ACCESS_WRITE));
    wait_on(first, second, event_b);
    EXPECT_OK(ds_accel_note_access(device, ON(first), memory_b, 8, DS_ACCEL_ACCESS_READ));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

/* What a graph does when it is launched. */
static void replay(void)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;

    EXPECT_OK(table->graph_capture_begin(first, 0, &error));
    EXPECT_OK(table->mem_fill_async(first, memory_a, "x", 1, 256, &error));
    EXPECT_OK(table->graph_capture_end(first, &graph, &error));
    EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    EXPECT_OK(table->graph_launch(exec, first, &error));
    EXPECT_OK(table->graph_launch(exec, first, &error));
    wait_on(second, first, event_a);
    EXPECT_OK(table->mem_copy_async(second, memory_b, memory_a, 256, DS_ACCEL_COPY_DEVICE_TO_DEVICE,
                                    &error));
    if (waits()) {
        cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_OK);
    }
    EXPECT_OK(table->mem_copy(handle, buffer, memory_b, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    table->graph_exec_destroy(exec);
}

/* Memory that goes while it is used. */
static void free_used(void)
{
    void *pointer = allocate(64);

    EXPECT_OK(table->mem_fill_async(first, pointer, "x", 1, 64, &error));
    if (waits()) {
        EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    }
    EXPECT_OK(table->mem_free(handle, pointer, &error));
}

/* Memory that comes and goes in the order of a stream. */
static void stream_ordered(void)
{
    void *pointer = NULL;

    EXPECT_OK(table->mem_alloc_async(first, 64, 0, NULL, 0, &pointer, &error));
    wait_on(second, first, event_a);
    EXPECT_OK(table->mem_fill_async(second, pointer, "x", 1, 64, &error));
    EXPECT_OK(table->event_record(event_b, second, &error));
    if (waits()) {
        EXPECT_OK(table->mem_free_async(first, pointer, &event_b, 1, &error));
    } else {
        EXPECT_OK(table->mem_free_async(first, pointer, NULL, 0, &error));
    }
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

static void read_buffer(void *user_data, int32_t status)
{
    cr_expect_eq(status, DS_ACCEL_OK);
    cr_expect_eq(ds_accel_note_access(device, NULL, user_data, 64, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_OK);
}

/* A host task reads what another stream has brought. */
static void host_task(void)
{
    EXPECT_OK(
        table->mem_copy_async(first, buffer, memory_a, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    wait_on(second, first, event_a);
    EXPECT_OK(table->stream_host_task(second, read_buffer, buffer, &error));
    wait_on(first, second, event_b);
    EXPECT_OK(
        table->mem_copy_async(first, buffer, memory_a, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

static const struct {
    const char *name;
    void (*run)(void);
    int waits;
} schedules[] = {
    {"overlap", overlap, 2},       {"reuse_buffer", reuse_buffer, 1},
    {"take_turns", take_turns, 2}, {"replay", replay, 2},
    {"free_used", free_used, 1},   {"stream_ordered", stream_ordered, 2},
    {"host_task", host_task, 2},
};

static void run_schedule(size_t which, int without)
{
    start_layers("validate");
    first = make_stream();
    second = make_stream();
    event_a = make_event();
    event_b = make_event();
    memory_a = allocate(256);
    memory_b = allocate(256);
    left_out = without;
    wait_count = 0;
    schedules[which].run();
    cr_expect_eq(wait_count, schedules[which].waits);
}

static void end_schedule(void)
{
    table->event_destroy(event_a);
    table->event_destroy(event_b);
    table->stream_destroy(first);
    table->stream_destroy(second);
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    EXPECT_OK(table->mem_free(handle, memory_b, &error));
    stop();
}

Test(core_layer, a_schedule_with_all_its_waits_has_no_race)
{
    for (size_t i = 0; i < LENGTH(schedules); i++) {
        run_schedule(i, -1);
        cr_expect_eq(races(), 0, "%s: %s", schedules[i].name, report("race"));
        end_schedule();
    }
}

Test(core_layer, a_schedule_without_one_of_its_waits_has_one_race)
{
    for (size_t i = 0; i < LENGTH(schedules); i++) {
        for (int without = 0; without < schedules[i].waits; without++) {
            char *text;

            test_log[0] = '\0';
            run_schedule(i, without);
            text = report("race");
            cr_expect_eq(races(), 1, "%s without wait %d: %llu races: %s", schedules[i].name,
                         without, (unsigned long long)races(), text);
            EXPECT_HAS(test_log, "race: race: ");
            ds_accel_free_text(text);
            end_schedule();
        }
    }
}

/* Call sites of known functions: offsets in this program, as addr2line takes them. */
static __attribute__((noinline)) int32_t write_from_here(ds_accel_plugin_stream_t *stream)
{
    int32_t status = table->mem_fill_async(stream, memory_a, "x", 1, 16, &error);

    __asm__ volatile("" ::: "memory"); /* no tail call: there would be no frame to return to */
    return status;
}

static __attribute__((noinline)) int32_t read_from_there(ds_accel_plugin_stream_t *stream)
{
    int32_t status = table->mem_copy_async(stream, buffer, memory_a + 8, 16,
                                           DS_ACCEL_COPY_DEVICE_TO_HOST, &error);

    __asm__ volatile("" ::: "memory");
    return status;
}

static bool is_within(uint64_t offset, const void *function)
{
    Dl_info info;

    cr_assert_neq(dladdr(function, &info), 0);
    return offset - (uint64_t)((const char *)function - (const char *)info.dli_fbase) < 256;
}

static uint64_t offset_after(const char **text, const char *words)
{
    const char *found = strstr(*text, words);
    const char *plus = found != NULL ? strstr(found, "+0x") : NULL;

    cr_assert_not_null(plus, "no %s in %s", words, *text);
    *text = plus;
    return strtoull(plus + 3, NULL, 16);
}

Test(core_layer, a_race_is_told_with_both_call_sites_and_ranges)
{
    const char *at;
    char *text;

    start_layers("race");
    first = make_stream();
    second = make_stream();
    memory_a = allocate(256);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(write_from_here(first));
        EXPECT_OK(read_from_there(second));
        EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    }
    text = report("race");
    at = text;
    cr_expect_eq(races(), 1, "one for a pair of call sites: %s", text);
    EXPECT_HAS(text, "writes 16 bytes");
    EXPECT_HAS(text, "reads 16 bytes");
    EXPECT_HAS(text, "; 8 bytes at ");
    cr_expect(is_within(offset_after(&at, "mem_fill_async on stream "), (void *)write_from_here),
              "%s", text);
    cr_expect(is_within(offset_after(&at, "mem_copy_async on stream "), (void *)read_from_there),
              "%s", text);
    ds_accel_free_text(text);
    table->stream_destroy(first);
    table->stream_destroy(second);
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    stop();
}

Test(core_layer, a_stream_that_is_gone_still_has_work)
{
    start_layers("race");
    memory_a = allocate(256);
    first = make_stream();
    EXPECT_OK(write_from_here(first));
    table->stream_destroy(first);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    second = make_stream();
    EXPECT_OK(read_from_there(second));
    cr_expect_eq(races(), 0, "the device was waited for");
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    first = make_stream();
    EXPECT_OK(write_from_here(first));
    table->stream_destroy(first);
    first = make_stream();
    EXPECT_OK(read_from_there(first));
    cr_expect_eq(races(), 1, "destroying a stream waits for nothing");
    table->stream_destroy(first);
    table->stream_destroy(second);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    stop();
}

Test(core_layer, a_copy_between_devices_writes_where_it_goes)
{
    unsigned char bytes[16];

    start_layers("race");
    memory_a = allocate(256);
    first = make_stream();
    second = make_stream();
    EXPECT_OK(
        table->mem_copy_peer_async(first, handle, memory_a, handle, memory_a + 128, 16, &error));
    EXPECT_OK(table->mem_copy_async(second, bytes, memory_a + 128, 16, DS_ACCEL_COPY_DEVICE_TO_HOST,
                                    &error));
    cr_expect_eq(races(), 0, "both read its source");
    EXPECT_OK(
        table->mem_copy_async(second, bytes, memory_a, 16, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    cr_expect_eq(races(), 1, "one of them writes its destination");
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    table->stream_destroy(first);
    table->stream_destroy(second);
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    stop();
}

Test(core_layer, a_synchronised_device_has_no_races)
{
    start_named("cpu", "validate");
    first = make_stream();
    second = make_stream();
    memory_a = allocate(256);
    EXPECT_OK(write_from_here(first));
    EXPECT_OK(read_from_there(second));
    cr_expect_eq(races(), 0);
    table->stream_destroy(first);
    table->stream_destroy(second);
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    stop();
}

/* ---- threads -------------------------------------------------------------------------------- */

static sem_t turns[2];

/* Reads, and reads again when it is told that the main thread has written. */
static void *read_twice(void *argument)
{
    (void)argument;
    cr_expect_eq(read_from_there(second), DS_ACCEL_OK);
    sem_post(&turns[0]);
    sem_wait(&turns[1]);
    cr_expect_eq(read_from_there(second), DS_ACCEL_OK);
    return NULL;
}

/* Every wait for a device is made, by the main thread; the other one knows by a semaphore. */
static void work_on_two_threads(void)
{
    pthread_t thread;

    first = make_stream();
    second = make_stream();
    memory_a = allocate(256);
    sem_init(&turns[0], 0, 0);
    sem_init(&turns[1], 0, 0);
    cr_assert_eq(pthread_create(&thread, NULL, read_twice, NULL), 0);
    sem_wait(&turns[0]);
    EXPECT_OK(table->stream_synchronize(second, UINT64_MAX, &error));
    EXPECT_OK(write_from_here(first));
    EXPECT_OK(table->stream_synchronize(first, UINT64_MAX, &error));
    sem_post(&turns[1]);
    pthread_join(thread, NULL);
}

Test(core_layer, threads_are_believed_to_order_each_other)
{
    start_layers("race");
    work_on_two_threads();
    cr_expect_eq(races(), 0);
    EXPECT_OK(write_from_here(first));
    cr_expect_eq(races(), 1, "nobody waited for the other thread's stream");
    stop();
}

Test(core_layer, threads_can_be_taken_for_separate)
{
    test_write("etc/ds-accel.json", "{\"validate\": {\"threads\": \"separate\"}}");
    start_layers("race");
    work_on_two_threads();
    cr_expect_eq(races(), 1, "that the main thread waited is not known to the other: %s",
                 report("race"));
    stop();
}

/* ---- a race that makes the call fail -------------------------------------------------------- */

Test(core_layer, races_can_be_refused)
{
    test_write("etc/ds-accel.json", "{\"validate\": {\"races\": \"fail\"}}");
    start_layers("validate");
    first = make_stream();
    second = make_stream();
    memory_a = allocate(256);
    EXPECT_OK(write_from_here(first));
    error = (struct ds_accel_error){.struct_size = sizeof(error)};
    cr_expect_eq(read_from_there(second), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(error.message, "it would race");
    EXPECT_OK(table->stream_synchronize(first, UINT64_MAX, &error));
    EXPECT_OK(read_from_there(second));
    cr_expect_eq(races(), 1);
    table->stream_destroy(first);
    table->stream_destroy(second);
    stop();
}

/*
 * Random programs against a model that knows nothing of clocks: a graph of all that was queued,
 * with an edge for each order that the interface promises, and a race for two accesses that no
 * path connects. "fail" tells what the detector thinks of each single call.
 */

#define NODE_LIMIT 192
#define STREAM_COUNT 3
#define EVENT_COUNT 4
#define UNIT 16
#define UNIT_COUNT 12

struct node {
    uint64_t before[NODE_LIMIT / 64];
    int begin, end; /* units; none: begin == end */
    bool is_write;
};

static struct node nodes[NODE_LIMIT];
static int node_count;
static int last_of_stream[STREAM_COUNT];
static int last_of_host;
static int mark_of_event[EVENT_COUNT];
static uint64_t random_state;

static uint32_t roll(uint32_t sides)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % sides;
}

static int add_node(void)
{
    memset(&nodes[node_count], 0, sizeof(nodes[0]));
    return node_count++;
}

static void add_edge(int from, int to)
{
    if (from >= 0) {
        for (size_t i = 0; i < LENGTH(nodes[0].before); i++) {
            nodes[to].before[i] |= nodes[from].before[i];
        }
        nodes[to].before[from / 64] |= UINT64_C(1) << (from % 64);
    }
}

static bool model_races(int node)
{
    for (int i = 0; i < node; i++) {
        bool is_before = (nodes[node].before[i / 64] >> (i % 64) & 1) != 0;

        if (!is_before && (nodes[i].is_write || nodes[node].is_write) &&
            nodes[i].begin < nodes[node].end && nodes[node].begin < nodes[i].end) {
            return true;
        }
    }
    return false;
}

static ds_accel_plugin_stream_t *random_streams[STREAM_COUNT];
static ds_accel_plugin_event_t *random_events[EVENT_COUNT];
static char *arena;
static uint64_t race_seen;
static uint64_t race_free;

/* An access on a stream or (-1) by the host. What races is refused, and was not there. */
static void random_access(int stream)
{
    int begin = (int)roll(UNIT_COUNT);
    int end = begin + 1 + (int)roll(3);
    bool is_write = roll(2) == 0;
    int node = add_node();
    char *place = arena + (size_t)begin * UNIT;
    uint64_t size;
    int32_t status;

    end = end < UNIT_COUNT ? end : UNIT_COUNT;
    size = (uint64_t)(end - begin) * UNIT;
    nodes[node].begin = begin;
    nodes[node].end = end;
    nodes[node].is_write = is_write;
    add_edge(last_of_host, node);
    if (stream >= 0) {
        add_edge(last_of_stream[stream], node);
    }
    if (stream < 0) {
        status = is_write ? table->mem_copy(handle, place, buffer, size,
                                            DS_ACCEL_COPY_HOST_TO_DEVICE, &error)
                          : table->mem_copy(handle, buffer, place, size,
                                            DS_ACCEL_COPY_DEVICE_TO_HOST, &error);
    } else if (is_write) {
        status = table->mem_fill_async(random_streams[stream], place, "x", 1, size, &error);
    } else {
        static char sinks[STREAM_COUNT][UNIT * UNIT_COUNT];

        status = table->mem_copy_async(random_streams[stream], sinks[stream], place, size,
                                       DS_ACCEL_COPY_DEVICE_TO_HOST, &error);
    }
    if (model_races(node)) {
        race_seen++;
        node_count--;
        cr_assert_eq(status, DS_ACCEL_ERR_STATE, "a race was not seen");
        return;
    }
    race_free++;
    cr_assert_eq(status, DS_ACCEL_OK, "there is no race: %s", error.message);
    if (stream < 0) {
        last_of_host = node;
    } else {
        last_of_stream[stream] = node;
    }
}

static void random_order(void)
{
    int stream = (int)roll(STREAM_COUNT);
    int event = (int)roll(EVENT_COUNT);
    int node = add_node();

    add_edge(last_of_host, node);
    switch (roll(8)) {
    case 0:
    case 1:
    case 2:
        EXPECT_OK(table->event_record(random_events[event], random_streams[stream], &error));
        add_edge(last_of_stream[stream], node);
        last_of_stream[stream] = node;
        mark_of_event[event] = node;
        break;
    case 3:
    case 4:
    case 5:
        EXPECT_OK(table->stream_wait_event(random_streams[stream], random_events[event], &error));
        add_edge(last_of_stream[stream], node);
        add_edge(mark_of_event[event], node);
        last_of_stream[stream] = node;
        break;
    case 6:
        EXPECT_OK(roll(2) == 0 ? table->event_synchronize(random_events[event], UINT64_MAX, &error)
                               : table->event_query(random_events[event], &error));
        add_edge(mark_of_event[event], node);
        last_of_host = node;
        break;
    default:
        EXPECT_OK(roll(2) == 0
                      ? table->stream_synchronize(random_streams[stream], UINT64_MAX, &error)
                      : table->stream_query(random_streams[stream], &error));
        add_edge(last_of_stream[stream], node);
        last_of_host = node;
        break;
    }
}

static void random_program(void)
{
    node_count = 0;
    last_of_host = -1;
    memset(last_of_stream, 0xff, sizeof(last_of_stream));
    memset(mark_of_event, 0xff, sizeof(mark_of_event));
    for (int i = 0; i < EVENT_COUNT; i++) {
        table->event_destroy(random_events[i]);
        random_events[i] = make_event(); /* never recorded */
    }
    if (roll(4) == 0) {
        int which = (int)roll(STREAM_COUNT);

        table->stream_destroy(random_streams[which]);
        random_streams[which] = make_stream();
    }
    while (node_count < NODE_LIMIT - 1) {
        if (roll(5) < 3) {
            random_access((int)roll(STREAM_COUNT + 1) - 1);
        } else {
            random_order();
        }
    }
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
}

Test(core_layer, random_programs_race_when_the_model_says_so)
{
    test_write("etc/ds-accel.json", "{\"validate\": {\"races\": \"fail\"}}");
    start_layers("race");
    arena = allocate((uint64_t)UNIT * UNIT_COUNT);
    for (int i = 0; i < STREAM_COUNT; i++) {
        random_streams[i] = make_stream();
    }
    random_state = 20260101;
    for (int i = 0; i < 400; i++) {
        random_program();
    }
    cr_expect_gt(race_seen, 5000);
    cr_expect_gt(race_free, 5000);
    stop();
}

/* ---- a device that does nothing: what only some backends have ---------------------------------
 */

static uint64_t paper_flags;
static char paper_stream;
static char paper_graph;
static char paper_exec;
static char paper_devices[2];

static int32_t paper_info(ds_accel_plugin_instance_t *it, struct ds_accel_backend_info *info_out,
                          struct ds_accel_error *details)
{
    struct ds_accel_backend_info info = {.flags = paper_flags, .flags_known = DS_ACCEL_FLAGS_ALL};

    (void)it;
    (void)details;
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static int32_t paper_count(ds_accel_plugin_instance_t *it, uint32_t *count_out,
                           struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    *count_out = 2;
    return DS_ACCEL_OK;
}

static int32_t paper_open(ds_accel_plugin_instance_t *it, uint32_t index,
                          ds_accel_plugin_device_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    *out = (ds_accel_plugin_device_t *)&paper_devices[index];
    return DS_ACCEL_OK;
}

static int32_t paper_stream_create(ds_accel_plugin_device_t *it, uint32_t flags, int32_t priority,
                                   ds_accel_plugin_stream_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)flags;
    (void)priority;
    (void)details;
    *out = malloc(1);
    return *out != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

static void paper_stream_destroy(ds_accel_plugin_stream_t *it)
{
    free(it);
}

static int32_t paper_default(ds_accel_plugin_device_t *it, ds_accel_plugin_stream_t **out,
                             struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    *out = (ds_accel_plugin_stream_t *)&paper_stream;
    return DS_ACCEL_OK;
}

/* As with opencl, an event of the vendor's is of one record, and its number is given again once
 * nobody has it. */
struct paper_event {
    uint64_t mark; /* 0: never recorded */
};

static uint32_t paper_marks[8]; /* how many have each */

static int32_t paper_event_create(ds_accel_plugin_device_t *it, uint32_t flags,
                                  ds_accel_plugin_event_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)flags;
    (void)details;
    *out = calloc(1, sizeof(struct paper_event));
    return *out != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

static void paper_event_destroy(ds_accel_plugin_event_t *it)
{
    paper_marks[it != NULL ? ((struct paper_event *)it)->mark : 0]--;
    free(it);
}

static int32_t paper_record(ds_accel_plugin_event_t *it, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *details)
{
    struct paper_event *event = (struct paper_event *)it;
    uint64_t mark = 1;

    (void)stream;
    (void)details;
    while (paper_marks[mark] != 0) {
        mark++;
    }
    paper_marks[mark]++;
    paper_marks[event->mark]--;
    event->mark = mark;
    return DS_ACCEL_OK;
}

static int32_t paper_wait(ds_accel_plugin_stream_t *it, ds_accel_plugin_event_t *event,
                          struct ds_accel_error *details)
{
    (void)it;
    (void)event;
    (void)details;
    return DS_ACCEL_OK;
}

/* The addresses of one device mean nothing to the other. */
static int32_t paper_alloc(ds_accel_plugin_device_t *it, uint64_t size_bytes, uint64_t align_bytes,
                           uint32_t flags, void **pointer_out, struct ds_accel_error *details)
{
    (void)it;
    (void)size_bytes;
    (void)align_bytes;
    (void)flags;
    (void)details;
    *pointer_out = (void *)(uintptr_t)0x10000;
    return DS_ACCEL_OK;
}

static int32_t paper_free(ds_accel_plugin_device_t *it, void *pointer,
                          struct ds_accel_error *details)
{
    (void)it;
    (void)pointer;
    (void)details;
    return DS_ACCEL_OK;
}

static int32_t paper_fill_memory(ds_accel_plugin_stream_t *it, void *destination,
                                 const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                                 struct ds_accel_error *details)
{
    (void)it;
    (void)destination;
    (void)pattern;
    (void)pattern_bytes;
    (void)size_bytes;
    (void)details;
    return DS_ACCEL_OK;
}

static int32_t paper_copy_memory(ds_accel_plugin_stream_t *it, void *destination,
                                 const void *source, uint64_t size_bytes, uint32_t kind,
                                 struct ds_accel_error *details)
{
    (void)it;
    (void)destination;
    (void)source;
    (void)size_bytes;
    (void)kind;
    (void)details;
    return DS_ACCEL_OK;
}

static int32_t paper_wrap(ds_accel_plugin_device_t *it, uint32_t kind, uint64_t native,
                          void **object_out, struct ds_accel_error *details)
{
    struct paper_event *event = calloc(1, sizeof(*event));

    (void)it;
    (void)details;
    if (event != NULL && kind == DS_ACCEL_NATIVE_EVENT) {
        event->mark = native;
        paper_marks[native]++;
    }
    *object_out = event;
    return event != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

static int32_t paper_native(ds_accel_plugin_device_t *it, uint32_t kind, const void *object,
                            uint64_t *native_out, uint64_t *offset_bytes_out,
                            struct ds_accel_error *details)
{
    (void)it;
    (void)details;
    *native_out = kind == DS_ACCEL_NATIVE_EVENT ? ((const struct paper_event *)object)->mark : 77;
    *offset_bytes_out = 0;
    return *native_out != 0 ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE;
}

/* The latest capture that began: as with cuda, only its thread can end it, but in mode relaxed. */
static struct {
    ds_accel_plugin_stream_t *stream; /* NULL: it has ended */
    uint32_t mode;
    pthread_t thread;
} paper_capture;

static int32_t paper_begin(ds_accel_plugin_stream_t *it, uint32_t mode,
                           struct ds_accel_error *details)
{
    (void)details;
    paper_capture.stream = it;
    paper_capture.mode = mode;
    paper_capture.thread = pthread_self();
    return DS_ACCEL_OK;
}

static int32_t paper_end(ds_accel_plugin_stream_t *it, ds_accel_plugin_graph_t **out,
                         struct ds_accel_error *details)
{
    (void)details;
    if (it == paper_capture.stream && paper_capture.mode != DS_ACCEL_CAPTURE_RELAXED &&
        !pthread_equal(paper_capture.thread, pthread_self())) {
        return DS_ACCEL_ERR_STATE;
    }
    paper_capture.stream = NULL;
    *out = (ds_accel_plugin_graph_t *)&paper_graph;
    return DS_ACCEL_OK;
}

static int32_t paper_capture_status(ds_accel_plugin_stream_t *it, uint32_t *status_out,
                                    struct ds_accel_error *details)
{
    (void)details;
    *status_out = it == paper_capture.stream ? DS_ACCEL_CAPTURING_YES : DS_ACCEL_CAPTURING_NO;
    return DS_ACCEL_OK;
}

static void paper_graph_destroy(ds_accel_plugin_graph_t *it)
{
    (void)it;
}

static int32_t paper_instantiate(ds_accel_plugin_graph_t *it, uint32_t flags,
                                 ds_accel_plugin_graph_exec_t **out, struct ds_accel_error *details)
{
    (void)it;
    (void)flags;
    (void)details;
    *out = (ds_accel_plugin_graph_exec_t *)&paper_exec;
    return DS_ACCEL_OK;
}

static void paper_exec_destroy(ds_accel_plugin_graph_exec_t *it)
{
    (void)it;
}

static int32_t paper_launch(ds_accel_plugin_graph_exec_t *it, ds_accel_plugin_stream_t *stream,
                            struct ds_accel_error *details)
{
    (void)it;
    (void)stream;
    (void)details;
    return DS_ACCEL_OK;
}

static const struct ds_accel_plugin *paper_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin paper;

    paper = *ds_accel_entry_v1(host);
    paper.name = "paper";
    paper.backend_info = paper_info;
    paper.device_count = paper_count;
    paper.device_open = paper_open;
    paper.device_info = NULL;
    paper.stream_create = paper_stream_create;
    paper.stream_destroy = paper_stream_destroy;
    paper.stream_get_default = paper_default;
    paper.stream_wait_event = paper_wait;
    paper.event_create = paper_event_create;
    paper.event_destroy = paper_event_destroy;
    paper.event_record = paper_record;
    paper.mem_alloc = paper_alloc;
    paper.mem_free = paper_free;
    paper.mem_fill_async = paper_fill_memory;
    paper.mem_copy_async = paper_copy_memory;
    paper.native_get = paper_native;
    paper.native_wrap = paper_wrap;
    paper.graph_capture_begin = paper_begin;
    paper.graph_capture_end = paper_end;
    paper.graph_capture_status = paper_capture_status;
    paper.graph_destroy = paper_graph_destroy;
    paper.graph_instantiate = paper_instantiate;
    paper.graph_exec_destroy = paper_exec_destroy;
    paper.graph_launch = paper_launch;
    return &paper;
}

static void start_paper_with(uint64_t flags, const char *layers)
{
    struct ds_accel_options options = test_options();

    paper_flags = flags;
    options.accelerator = "paper";
    setenv("DS_ACCEL_LAYERS", layers, 1);
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, paper_entry), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    handle = ds_accel_device_handle(device);
    first = make_stream();
    second = make_stream();
    event_a = make_event();
    memory_a = allocate(256);
}

static void start_paper(uint64_t flags)
{
    start_paper_with(flags, "validate");
}

static void stop_paper(void)
{
    table->event_destroy(event_a);
    table->stream_destroy(first);
    table->stream_destroy(second);
    stop();
}

static int32_t write_again(ds_accel_plugin_stream_t *stream)
{
    int32_t status = table->mem_fill_async(stream, memory_a, "x", 1, 16, &error);

    __asm__ volatile("" ::: "memory");
    return status;
}

Test(core_layer, default_stream_orders_the_others_where_the_device_says_so)
{
    ds_accel_plugin_stream_t *usual = NULL;

    for (int syncs = 0; syncs < 2; syncs++) {
        ds_accel_plugin_stream_t *apart = NULL;

        start_paper(syncs ? DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS : 0);
        ASSERT_OK(table->stream_get_default(handle, &usual, &error));
        EXPECT_OK(write_from_here(first));
        EXPECT_OK(write_again(usual));
        cr_expect_eq(races(), syncs ? 0 : 1, "the default stream waits for the others");
        EXPECT_OK(write_from_here(second));
        cr_expect_eq(races() > 0, !syncs, "and the others for it");
        ASSERT_OK(table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, 0, &apart, &error));
        EXPECT_OK(write_again(apart));
        cr_expect_gt(races(), 0, "but for those that are apart");
        table->stream_destroy(apart);
        stop_paper();
    }
}

Test(core_layer, a_device_that_orders_dependent_work_has_no_races_among_streams)
{
    start_paper(DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES);
    EXPECT_OK(write_from_here(first));
    EXPECT_OK(write_again(second));
    cr_expect_eq(races(), 0);
    EXPECT_OK(ds_accel_note_access(device, NULL, memory_a, 1, DS_ACCEL_ACCESS_WRITE));
    cr_expect_eq(races(), 2, "the host is not the device's to wait for: one for each stream: %s",
                 report("race"));
    stop_paper();
}

Test(core_layer, devices_have_addresses_of_their_own)
{
    ds_accel_plugin_device_t *other = NULL;
    ds_accel_plugin_stream_t *stream = NULL;
    void *pointer = NULL;

    start_paper(0);
    ASSERT_OK(table->device_open(instance, 1, &other, &error));
    ASSERT_OK(table->stream_create(other, 0, 0, &stream, &error));
    ASSERT_OK(table->mem_alloc(other, 16, 0, 0, &pointer, &error));
    cr_expect_eq(pointer, memory_a);
    EXPECT_OK(write_from_here(first));
    EXPECT_OK(write_again(stream));
    cr_expect_eq(races(), 0, "the same number is another place");
    EXPECT_FAIL(table->mem_fill_async(stream, memory_a + 16, "x", 1, 1, &error),
                DS_ACCEL_ERR_INVALID, "belongs to another device");
    EXPECT_FAIL(table->mem_fill_async(stream, memory_a + 999, "x", 1, 1, &error),
                DS_ACCEL_ERR_INVALID, "is in no live allocation");
    EXPECT_FAIL(table->mem_fill_async(stream, memory_a, "x", 1, 17, &error), DS_ACCEL_ERR_INVALID,
                "goes past the end");
    EXPECT_OK(table->mem_free(other, pointer, &error));
    EXPECT_OK(write_again(first));
    EXPECT_FAIL(write_again(stream), DS_ACCEL_ERR_INVALID, "was freed");
    table->stream_destroy(stream);
    table->device_close(other);
    stop_paper();
}

/* A capture that an event draws a second stream into: the order within the graph is looked at. */
Test(core_layer, a_graph_of_two_streams_is_looked_at_while_it_is_captured)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;

    for (int ordered = 0; ordered < 2; ordered++) {
        start_paper(0);
        EXPECT_OK(table->graph_capture_begin(first, 0, &error));
        EXPECT_OK(table->event_record(event_a, first, &error));
        EXPECT_OK(table->stream_wait_event(second, event_a, &error));
        EXPECT_OK(write_from_here(second));
        if (ordered) {
            EXPECT_OK(table->event_record(event_a, second, &error));
            EXPECT_OK(table->stream_wait_event(first, event_a, &error));
        }
        EXPECT_OK(write_again(first));
        cr_expect_eq(races(), ordered ? 0 : 1, "%s", report("race"));
        EXPECT_OK(table->graph_capture_end(first, &graph, &error));
        EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
        EXPECT_OK(table->graph_launch(exec, first, &error));
        cr_expect_eq(races(), ordered ? 0 : 1);
        EXPECT_OK(table->graph_launch(exec, second, &error));
        cr_expect_eq(races(), ordered ? 0 : 1, "launches of one graph follow each other");
        EXPECT_OK(ds_accel_note_access(device, ON(first), memory_a, 1, DS_ACCEL_ACCESS_READ));
        cr_expect_eq(races(), ordered ? 1 : 2, "the second launch was on another stream");
        table->graph_exec_destroy(exec);
        table->graph_destroy(graph);
        stop_paper();
    }
}

static void *end_first(void *status_out)
{
    struct ds_accel_error details = {.struct_size = sizeof(details)};
    ds_accel_plugin_graph_t *graph = NULL;

    *(int32_t *)status_out = table->graph_capture_end(first, &graph, &details);
    return NULL;
}

static void *destroy_graph(void *graph)
{
    ds_accel_graph_destroy(graph);
    return NULL;
}

static void in_another_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, run, argument), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* Layer race alone lets the call through, and the runtime refuses it. */
Test(core_layer, a_capture_goes_on_after_an_end_that_the_runtime_refused)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    int32_t status = DS_ACCEL_OK;

    start_paper_with(0, "race");
    EXPECT_OK(table->graph_capture_begin(first, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(write_from_here(first));
    in_another_thread(end_first, &status);
    cr_expect_eq(status, DS_ACCEL_ERR_STATE);
    EXPECT_OK(write_again(first));
    EXPECT_OK(write_from_here(second));
    cr_expect_eq(races(), 0, "nothing of the capture has run: %s", report("race"));
    EXPECT_OK(table->graph_capture_end(first, &graph, &error));
    EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_launch(exec, first, &error));
    cr_expect_eq(races(), 1, "what it holds runs now: %s", report("race"));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    stop_paper();
}

/* Nor does layer validate count a capture as ended that outlives its graph. */
Test(core_layer, a_capture_goes_on_whose_graph_another_thread_destroyed)
{
    ds_accel_plugin_graph_t *captured = NULL;
    ds_accel_graph_t *graph = NULL;
    ds_accel_stream_t *stream = NULL;

    start_paper(0);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                 DS_ACCEL_OK, "%s", ds_accel_last_error());
    in_another_thread(destroy_graph, graph);
    EXPECT_OK(table->graph_capture_end(stream->handle, &captured, &error));
    table->graph_destroy(captured);
    ds_accel_stream_destroy(stream);
    stop_paper();
}

/* Memory of the host's own that nobody pinned is not the device's, though its number may be. */
Test(core_layer, what_the_host_notes_is_in_the_hosts_memory)
{
    static char host[64];

    start_paper(0);
    EXPECT_OK(
        table->mem_copy_async(first, host, memory_a, 16, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(ds_accel_note_access(device, NULL, host + 32, 32, DS_ACCEL_ACCESS_WRITE));
    cr_expect_eq(races(), 0);
    EXPECT_OK(ds_accel_note_access(device, NULL, host, 16, DS_ACCEL_ACCESS_READ));
    cr_expect_eq(races(), 1, "nobody waited for the copy");
    EXPECT_OK(ds_accel_note_access(device, NULL, memory_a, 16, DS_ACCEL_ACCESS_WRITE));
    cr_expect_eq(races(), 2, "what only the device has is the device's: %s", report("race"));
    stop_paper();
}

/* A graph that is launched into a capture is a part of the one that is captured. */
Test(core_layer, a_graph_within_a_graph_uses_its_memory)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;

    start_paper(0);
    EXPECT_OK(table->graph_capture_begin(first, 0, &error));
    EXPECT_OK(write_again(first));
    EXPECT_OK(table->graph_capture_end(first, &graph, &error));
    EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_capture_begin(second, 0, &error));
    EXPECT_OK(table->graph_launch(exec, second, &error));
    EXPECT_OK(table->graph_capture_end(second, &graph, &error));
    EXPECT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_launch(exec, second, &error));
    cr_expect_eq(races(), 0);
    EXPECT_OK(write_from_here(first));
    cr_expect_eq(races(), 1, "%s", report("race"));
    EXPECT_OK(table->mem_free(handle, memory_a, &error));
    EXPECT_FAIL(table->graph_launch(exec, second, &error), DS_ACCEL_ERR_INVALID,
                "the graph uses 0x10000 with 16 bytes");
    memory_a = allocate(256);
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    stop_paper();
}

/* What would wait for a stream that captures ends the capture, in any mode. */
Test(core_layer, the_default_stream_is_left_alone_while_one_that_it_waits_for_captures)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_stream_t *apart = NULL;

    for (int syncs = 0; syncs < 2; syncs++) {
        start_paper(syncs ? DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS : 0);
        ASSERT_OK(table->stream_get_default(handle, &usual, &error));
        ASSERT_OK(table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, 0, &apart, &error));
        ASSERT_OK(table->graph_capture_begin(apart, DS_ACCEL_CAPTURE_RELAXED, &error));
        EXPECT_OK(write_again(usual));
        EXPECT_OK(table->graph_capture_end(apart, &graph, &error));
        ASSERT_OK(table->graph_capture_begin(first, DS_ACCEL_CAPTURE_RELAXED, &error));
        EXPECT_OK(write_again(second));
        if (syncs) {
            EXPECT_FAIL(write_again(usual), DS_ACCEL_ERR_STATE,
                        "the default stream waits for the stream made at ");
            EXPECT_FAIL(table->event_record(event_a, usual, &error), DS_ACCEL_ERR_STATE,
                        "it would break the capture");
            EXPECT_FAIL(table->stream_wait_event(usual, event_a, &error), DS_ACCEL_ERR_STATE,
                        "it would break the capture");
        } else {
            EXPECT_OK(write_again(usual));
        }
        EXPECT_OK(table->graph_capture_end(first, &graph, &error));
        EXPECT_OK(write_again(usual));
        table->graph_destroy(graph);
        table->stream_destroy(apart);
        stop_paper();
    }
}

static uint64_t native_of(uint32_t kind, const void *object)
{
    uint64_t native = 0;
    uint64_t offset_bytes = 0;

    EXPECT_OK(table->native_get(handle, kind, object, &native, &offset_bytes, &error));
    return native;
}

/* A backend may make a new event of the vendor's for each record: the next has the number that
 * another's former one had. */
Test(core_layer, an_event_that_is_recorded_again_is_not_another_one)
{
    ds_accel_plugin_stream_t *third;
    void *wrapped = NULL;

    start_paper(0);
    third = make_stream();
    event_b = make_event();
    EXPECT_OK(table->event_record(event_a, first, &error));
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_EVENT, event_a), 1);
    EXPECT_OK(table->event_record(event_a, first, &error));
    EXPECT_OK(table->event_record(event_b, second, &error));
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_EVENT, event_b), 1);
    EXPECT_OK(write_from_here(first));
    EXPECT_OK(table->event_record(event_a, first, &error));
    EXPECT_OK(table->event_record(event_b, second, &error));
    EXPECT_OK(table->stream_wait_event(third, event_a, &error));
    EXPECT_OK(write_again(third));
    cr_expect_eq(races(), 0, "it was waited for: %s", report("race"));
    EXPECT_OK(table->event_record(event_a, third, &error));
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_EVENT,
                                 native_of(DS_ACCEL_NATIVE_EVENT, event_a), &wrapped, &error));
    EXPECT_OK(table->stream_wait_event(first, wrapped, &error));
    EXPECT_OK(write_from_here(first));
    cr_expect_eq(races(), 0, "both are one record's: %s", report("race"));
    EXPECT_OK(table->event_record(wrapped, first, &error));
    EXPECT_OK(table->event_record(event_a, third, &error));
    EXPECT_OK(table->stream_wait_event(second, wrapped, &error));
    EXPECT_OK(write_again(second));
    cr_expect_eq(races(), 0, "each has its own from then on: %s", report("race"));
    EXPECT_OK(table->stream_wait_event(third, event_a, &error));
    EXPECT_OK(write_from_here(third));
    cr_expect_eq(races(), 1, "this one waits for nothing");
    table->event_destroy(wrapped);
    table->event_destroy(event_b);
    table->stream_destroy(third);
    stop_paper();
}

/* As a program does that makes a handle of the vendor's stream for each use. */
Test(core_layer, a_stream_that_is_wrapped_again_goes_on_where_it_was)
{
    void *wrapped = NULL;

    start_paper(0);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 77, &wrapped, &error));
        EXPECT_OK(write_from_here(wrapped));
        cr_expect_eq(races(), 0, "%s", report("race"));
        table->stream_destroy(wrapped);
    }
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 78, &wrapped, &error));
    EXPECT_OK(write_again(wrapped));
    cr_expect_eq(races(), 1, "another one");
    table->stream_destroy(wrapped);
    stop_paper();
}

/* The driver gives the value of a stream that was destroyed to the next one, which waits for
 * nothing of what the other had queued. */
Test(core_layer, a_stream_that_gets_the_value_of_an_ended_one_is_another)
{
    enum {
        CREATED,
        CREATED_AND_WRAPPED, /* and that handle is destroyed after the stream, or not at all */
        CREATED_AND_STILL_WRAPPED,
        WRAPPED, /* its maker has destroyed it */
        FOLLOWED_BY_WRAPPED,
        CASES
    };

    for (int i = 0; i < CASES; i++) {
        ds_accel_plugin_stream_t *created = NULL;
        void *wrapped = NULL;
        void *next = NULL;

        start_paper(0);
        if (i != WRAPPED) {
            created = make_stream();
            cr_assert_eq(native_of(DS_ACCEL_NATIVE_STREAM, created), 77);
        }
        if (i != CREATED && i != FOLLOWED_BY_WRAPPED) {
            ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 77, &wrapped, &error));
        }
        EXPECT_OK(write_from_here(i == WRAPPED ? wrapped : created));
        table->stream_destroy(created);
        if (i != CREATED_AND_STILL_WRAPPED) {
            table->stream_destroy(wrapped);
            wrapped = NULL;
        }
        if (i == FOLLOWED_BY_WRAPPED) {
            ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 77, &next, &error));
        } else {
            next = make_stream();
            cr_assert_eq(native_of(DS_ACCEL_NATIVE_STREAM, next), 77);
        }
        EXPECT_OK(write_again(next));
        cr_expect_eq(races(), 1, "%d: the first write was not waited for", i);
        table->stream_destroy(wrapped);
        table->stream_destroy(next);
        stop_paper();
    }
}
