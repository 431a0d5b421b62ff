/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Whether a stream captures, on mock and cpu. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t capturing_of(ds_accel_stream_t *stream)
{
    uint32_t capturing = 9;

    EXPECT_STATUS(ds_accel_stream_is_capturing(stream, &capturing), DS_ACCEL_OK);
    return capturing;
}

static void ask_on(const char *accelerator)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start(accelerator, &device);
    ds_accel_stream_t *stream = NULL;
    ds_accel_stream_t *other = NULL;
    ds_accel_event_t *event = NULL;
    ds_accel_graph_t *graph = NULL;
    uint32_t capturing = 9;

    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_stream_create(device, 0, 0, &other));
    MUST(ds_accel_event_create(device, 0, &event));
    MUST(ds_accel_graph_create(device, &graph));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_NO);
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_YES);
    cr_expect_eq(capturing_of(other), DS_ACCEL_CAPTURING_NO);
    MUST(ds_accel_event_record(event, stream));
    MUST(ds_accel_stream_wait_event(other, event));
    cr_expect_eq(capturing_of(other), DS_ACCEL_CAPTURING_YES, "%s: it was drawn in", accelerator);
    MUST(ds_accel_event_record(event, other));
    MUST(ds_accel_stream_wait_event(stream, event));
    MUST(ds_accel_graph_capture_end(graph));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_NO);
    cr_expect_eq(capturing_of(other), DS_ACCEL_CAPTURING_NO);
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED));
    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_ERR_STATE);
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_BROKEN);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE);
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_NO);
    EXPECT_STATUS(ds_accel_stream_is_capturing(NULL, &capturing), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_stream_is_capturing(stream, NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_graph_destroy(graph);
    ds_accel_event_destroy(event);
    ds_accel_stream_destroy(other);
    ds_accel_stream_destroy(stream);
    EXPECT_STATUS(ds_accel_stream_is_capturing(stream, &capturing), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_capturing, is_told_of_every_stream_of_a_capture)
{
    ask_on("mock");
    ask_on("cpu");
}

/* A plugin without a capture query: the library still records captures begun through it. */
static const struct ds_accel_plugin *dumb_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin dumb;
    void *module = dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry =
        module != NULL ? (ds_accel_entry_v1_t)dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;

    cr_assert_not_null(entry);
    dumb = *entry(host);
    dumb.name = "dumb";
    dumb.graph_capture_status = NULL;
    return &dumb;
}

Test(core_capturing, is_known_where_the_plugin_cannot_say)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    ds_accel_device_t *device;
    ds_accel_stream_t *stream = NULL;
    ds_accel_graph_t *graph = NULL;
    uint32_t capturing = 9;
    int status = 0;
    pid_t child;

    options.accelerator = "dumb";
    context = test_create_with(&options);
    MUST(ds_accel_register(context, dumb_entry));
    MUST(ds_accel_detect(context));
    MUST(ds_accel_device_open(context, 0, &device));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_NO);
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_YES);
    child = fork();
    if (child == 0) {
        _exit(ds_accel_stream_is_capturing(stream, &capturing) == DS_ACCEL_ERR_STATE ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    MUST(ds_accel_graph_capture_end(graph));
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_NO);
    ds_accel_graph_destroy(graph);
    ds_accel_stream_destroy(stream);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

/* ---- a capture of another thread ------------------------------------------------------------ */

struct begun {
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;
};

static void *begin_capture(void *data)
{
    const struct begun *begun = data;

    MUST(ds_accel_graph_capture_begin(begun->graph, begun->stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    return NULL;
}

/* Layer validate refuses a program's call that ends it, but not the library's. */
Test(core_capturing, is_ended_with_its_graph_in_another_thread)
{
    struct begun begun;
    ds_accel_device_t *device;
    ds_accel_t *context;
    pthread_t thread;

    setenv("DS_ACCEL_LAYERS", "validate", 1);
    context = test_start("mock", &device);
    MUST(ds_accel_stream_create(device, 0, 0, &begun.stream));
    MUST(ds_accel_graph_create(device, &begun.graph));
    cr_assert_eq(pthread_create(&thread, NULL, begin_capture, &begun), 0);
    pthread_join(thread, NULL);
    EXPECT_STATUS(ds_accel_graph_capture_end(begun.graph), DS_ACCEL_ERR_STATE);
    cr_expect_eq(capturing_of(begun.stream), DS_ACCEL_CAPTURING_YES);
    ds_accel_graph_destroy(begun.graph);
    cr_expect_eq(capturing_of(begun.stream), DS_ACCEL_CAPTURING_NO);
    ds_accel_stream_destroy(begun.stream);
    test_finish(context, device);
}

/* ---- a capture that this thread may not end -------------------------------------------------- */

static int32_t (*true_end)(ds_accel_plugin_stream_t *stream, ds_accel_plugin_graph_t **graph_out,
                           struct ds_accel_error *error);
static bool refuses_end;

static int32_t end_or_refuse(ds_accel_plugin_stream_t *stream, ds_accel_plugin_graph_t **graph_out,
                             struct ds_accel_error *error)
{
    return refuses_end ? DS_ACCEL_ERR_STATE : true_end(stream, graph_out, error);
}

static const struct ds_accel_plugin *refusing_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin refusing;

    refusing = *dumb_entry(host);
    refusing.name = "refusing";
    refusing.graph_capture_status = ((ds_accel_entry_v1_t)dlsym(
        dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW), DS_ACCEL_ENTRY_V1_SYMBOL))(host)
                                        ->graph_capture_status;
    true_end = refusing.graph_capture_end;
    refusing.graph_capture_end = end_or_refuse;
    return &refusing;
}

/* Begin a capture on a stream of the plugin above. */
static ds_accel_t *begin_refusing(uint32_t mode, ds_accel_device_t **device,
                                  ds_accel_stream_t **stream, ds_accel_graph_t **graph)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = "refusing";
    context = test_create_with(&options);
    MUST(ds_accel_register(context, refusing_entry));
    MUST(ds_accel_detect(context));
    MUST(ds_accel_device_open(context, 0, device));
    MUST(ds_accel_stream_create(*device, 0, 0, stream));
    MUST(ds_accel_graph_create(*device, graph));
    MUST(ds_accel_graph_capture_begin(*graph, *stream, NULL, mode));
    return context;
}

Test(core_capturing, keeps_the_memory_of_a_capture_that_goes_on)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    ds_accel_graph_t *graph;
    ds_accel_t *context = begin_refusing(DS_ACCEL_CAPTURE_GLOBAL, &device, &stream, &graph);
    void *pointer = NULL;
    int64_t reserved = 0;

    MUST(ds_accel_mem_alloc(device, stream, 4096, &pointer));
    MUST(ds_accel_mem_free(device, stream, pointer));
    refuses_end = true;
    ds_accel_graph_destroy(graph);
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_YES);
    MUST(ds_accel_empty_cache(device));
    MUST(ds_accel_memory_stat(device, "reserved_bytes.all.current", &reserved));
    cr_expect_gt(reserved, 0);
    refuses_end = false;
    ds_accel_stream_destroy(stream);
    test_finish(context, device);
}

/* While a capture is in progress, no query shows that the device is idle. */
Test(core_capturing, a_broken_capture_that_the_plugin_does_not_end_is_over)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    ds_accel_graph_t *graph;
    ds_accel_t *context = begin_refusing(DS_ACCEL_CAPTURE_RELAXED, &device, &stream, &graph);
    void *pinned = NULL;
    void *again = NULL;

    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_ERR_STATE);
    refuses_end = true;
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE);
    cr_expect_eq(capturing_of(stream), DS_ACCEL_CAPTURING_BROKEN);
    MUST(ds_accel_mem_alloc_pinned(device, 4096, 0, 0, &pinned));
    MUST(ds_accel_mem_free_pinned(device, pinned));
    MUST(ds_accel_mem_alloc_pinned(device, 4096, 0, 0, &again));
    cr_expect_eq(again, pinned, "the block is free again");
    MUST(ds_accel_mem_free_pinned(device, again));
    refuses_end = false;
    ds_accel_graph_destroy(graph);
    ds_accel_stream_destroy(stream);
    test_finish(context, device);
}
