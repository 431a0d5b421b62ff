/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer race on a device that executes nothing, for behaviour that only some backends have. */
#include "race.h"

#include <pthread.h>

/* ---- a device that executes nothing ---------------------------------------------------------- */

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

/* As with opencl, a vendor event belongs to one record, and its number is reused once no handle
   refers to it. */
struct paper_event {
    uint64_t mark; /* number of the vendor event; 0: never recorded */
};

static uint32_t paper_marks[8]; /* reference count of each vendor event */

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

/* Both devices return the same address, because an address of one device means nothing on the
   other. */
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

/* The latest capture. As with cuda, only the thread that began it can end it, except in mode
   relaxed. */
static struct {
    ds_accel_plugin_stream_t *stream; /* NULL after the capture has ended */
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

static uint64_t native_of(uint32_t kind, const void *object)
{
    uint64_t native = 0;
    uint64_t offset_bytes = 0;

    EXPECT_OK(table->native_get(handle, kind, object, &native, &offset_bytes, &error));
    return native;
}

/* Whether the vendor's stream is non-blocking is known only if this backend created it. */
Test(core_layer, default_stream_orders_wrapped_streams_unless_they_are_apart)
{
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_stream_t *apart = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    void *wrapped = NULL;

    start_paper(DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS);
    ASSERT_OK(table->stream_get_default(handle, &usual, &error));
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 78, &wrapped, &error));
    EXPECT_OK(write_from_here(wrapped));
    EXPECT_OK(write_again(usual));
    EXPECT_OK(write_from_here(wrapped));
    cr_expect_eq(races(), 0, "each waits for the other: %s", report("race"));
    ASSERT_OK(table->graph_capture_begin(wrapped, DS_ACCEL_CAPTURE_RELAXED, &error));
    EXPECT_OK(table->event_record(event_a, usual, &error));
    EXPECT_OK(table->graph_capture_end(wrapped, &graph, &error));
    table->graph_destroy(graph);
    table->stream_destroy(wrapped);
    ASSERT_OK(table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, 0, &apart, &error));
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM,
                                 native_of(DS_ACCEL_NATIVE_STREAM, apart), &wrapped, &error));
    EXPECT_OK(write_again(wrapped));
    cr_expect_eq(races(), 1, "this one is apart");
    table->stream_destroy(wrapped);
    table->stream_destroy(apart);
    stop_paper();
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

/* A second stream joins the capture through an event; the order within the graph is checked. */
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

/* Layer race alone passes the call on to the runtime, which rejects it. */
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

/* The public graph is destroyed in another thread, which cannot end its capture; layer validate
   still counts the capture as active. */
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

/* Pageable host memory does not belong to the device, although its address may equal a device
   address. */
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

/* A graph that is launched during a capture becomes part of the captured graph. */
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

/* In any mode, a call that would wait for a capturing stream breaks the capture. */
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

/* A backend may create a new vendor event for each record, so a record may reuse the number that
   another event had before. */
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

/* The program creates a new handle of the vendor's stream for each use. */
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

/* The driver reuses the value of a destroyed stream for the next stream, which does not wait for
   the work of the destroyed one. */
Test(core_layer, a_stream_that_gets_the_value_of_an_ended_one_is_another)
{
    enum {
        CREATED,
        CREATED_AND_WRAPPED, /* the wrapping handle is destroyed after the stream */
        CREATED_AND_STILL_WRAPPED,
        WRAPPED, /* the stream's creator has destroyed it */
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
