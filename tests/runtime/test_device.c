/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices, streams, events and graphs of the public API, on the mock. */
#include "fixture.h"

#include <pthread.h>

Test(core_device, is_one_handle_however_often_it_is_opened)
{
    ds_accel_device_t *device;
    ds_accel_device_t *again;
    ds_accel_device_t *kept;
    ds_accel_t *context = test_start("mock", &device);

    EXPECT_STATUS(ds_accel_device_open(context, 0, &again), DS_ACCEL_OK);
    cr_expect_eq(again, device);
    ds_accel_device_close(again);
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_device_get(context, 0, &kept), DS_ACCEL_OK);
    cr_expect_eq(kept, device);
    ds_accel_device_close(device);
    ds_accel_device_close(device); /* once too often: the context's own opening is not ours */
    EXPECT_STATUS(ds_accel_device_synchronize(kept), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_device_index(kept), 0);
    ds_accel_destroy(context);
    EXPECT_REFUSED(ds_accel_device_synchronize(kept), DS_ACCEL_ERR_INVALID, "destroyed");
    cr_expect_eq(ds_accel_device_index(kept), UINT32_MAX);
}

Test(core_device, is_found_by_any_of_its_names)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    uint32_t index = 7;

    EXPECT_STATUS(ds_accel_device_identity(context, 1, &identity), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_device_find(context, "mock:1", &index), DS_ACCEL_OK);
    cr_expect_eq(index, 1);
    EXPECT_STATUS(ds_accel_device_find(context, "0", &index), DS_ACCEL_OK);
    cr_expect_eq(index, 0);
    EXPECT_STATUS(ds_accel_device_find(context, identity.uuid_text, &index), DS_ACCEL_OK);
    cr_expect_eq(index, 1);
    EXPECT_STATUS(ds_accel_device_find(context, identity.pci_address, &index), DS_ACCEL_OK);
    cr_expect_eq(index, 1);
    EXPECT_STATUS(ds_accel_device_find(context, identity.pci_address + 5, &index), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_device_find(context, "mock:2", &index), DS_ACCEL_ERR_NOT_FOUND,
                   "index below 2");
    EXPECT_REFUSED(ds_accel_device_find(context, "cuda:0", &index), DS_ACCEL_ERR_NOT_FOUND,
                   "cuda:0");
    EXPECT_REFUSED(ds_accel_device_find(context, "", &index), DS_ACCEL_ERR_NOT_FOUND, "\"\"");
    EXPECT_REFUSED(ds_accel_device_find(context, NULL, &index), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_STATUS(ds_accel_device_find(context, "-1", &index), DS_ACCEL_ERR_NOT_FOUND);
    cr_expect_eq(index, 1, "written on failure");
    test_finish(context, device);
}

struct seen {
    ds_accel_t *context;
    uint32_t before;
    uint32_t after;
};

static void *set_one(void *given)
{
    struct seen *seen = given;

    ds_accel_current_device(seen->context, &seen->before);
    ds_accel_set_device(seen->context, 1);
    ds_accel_current_device(seen->context, &seen->after);
    return NULL;
}

Test(core_device, a_name_is_written_whole_or_not_at_all)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char name[8];

    EXPECT_REFUSED(ds_accel_device_name(context, 1, name, 6), DS_ACCEL_ERR_INVALID,
                   "needs 7 bytes");
    EXPECT_STATUS(ds_accel_device_name(context, 1, name, 7), DS_ACCEL_OK);
    cr_expect_str_eq(name, "mock:1");
    test_finish(context, device);
}

Test(core_device, current_one_is_the_threads_own)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    struct seen seen = {context, 9, 9};
    char name[16] = "";
    pthread_t thread;
    uint32_t index = 9;

    cr_assert_eq(pthread_create(&thread, NULL, set_one, &seen), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(seen.before, 0);
    cr_expect_eq(seen.after, 1);
    EXPECT_STATUS(ds_accel_current_device(context, &index), DS_ACCEL_OK);
    cr_expect_eq(index, 0);
    EXPECT_STATUS(ds_accel_set_device(context, 1), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_current_device_name(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "mock:1");
    EXPECT_REFUSED(ds_accel_set_device(context, 2), DS_ACCEL_ERR_INVALID, "mock has 2");
    EXPECT_STATUS(ds_accel_set_device(context, UINT32_MAX), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_device, refuses_handles_that_are_null_or_destroyed)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream;
    ds_accel_stream_t *dead;
    ds_accel_event_t *event;
    ds_accel_event_t *gone;
    ds_accel_graph_t *graph;
    double elapsed_ms = -1;
    uint64_t number = 5;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &dead), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &event), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &gone), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    ds_accel_stream_destroy(dead);
    ds_accel_stream_destroy(dead);
    ds_accel_event_destroy(gone);
    ds_accel_event_destroy(gone);
    EXPECT_REFUSED(ds_accel_stream_synchronize(dead), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_stream_query(dead), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_event_record(event, dead), DS_ACCEL_ERR_INVALID,
                   "stream was destroyed");
    EXPECT_REFUSED(ds_accel_event_record(gone, stream), DS_ACCEL_ERR_INVALID,
                   "event was destroyed");
    EXPECT_REFUSED(ds_accel_stream_wait_event(stream, gone), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_event_elapsed_ms(event, gone, &elapsed_ms), DS_ACCEL_ERR_INVALID,
                   "destroyed");
    EXPECT_REFUSED(ds_accel_set_current_stream(dead), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_stream_wait_stream(stream, dead), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_mem_set_async(dead, &number, 0, 1), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_stream_query(NULL), DS_ACCEL_ERR_INVALID, "stream is NULL");
    EXPECT_REFUSED(ds_accel_event_query(NULL), DS_ACCEL_ERR_INVALID, "event is NULL");
    EXPECT_REFUSED(ds_accel_event_record(NULL, NULL), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_REFUSED(ds_accel_event_record(event, NULL), DS_ACCEL_ERR_INVALID, "stream is NULL");
    EXPECT_REFUSED(ds_accel_device_synchronize(NULL), DS_ACCEL_ERR_INVALID, "device is NULL");
    EXPECT_REFUSED(ds_accel_graph_replay(NULL, stream), DS_ACCEL_ERR_INVALID, "graph is NULL");
    EXPECT_REFUSED(ds_accel_graph_replay(graph, stream), DS_ACCEL_ERR_STATE, "nothing was");
    EXPECT_REFUSED(ds_accel_graph_replay(graph, dead), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_graph_destroy(graph);
    ds_accel_graph_destroy(graph);
    EXPECT_REFUSED(ds_accel_graph_node_count(graph, &number), DS_ACCEL_ERR_INVALID, "destroyed");
    cr_expect_null(ds_accel_stream_device(dead));
    cr_expect_eq(ds_accel_stream_device(stream), device);
    test_finish(context, device);
    EXPECT_REFUSED(ds_accel_stream_query(stream), DS_ACCEL_ERR_INVALID, "destroyed");
    EXPECT_REFUSED(ds_accel_event_query(event), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_stream_destroy(stream);
    ds_accel_event_destroy(event);
}

Test(core_device, destroyed_handles_do_not_serve_again_at_once)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_event_t *first;
    ds_accel_event_t *later;

    cr_assert_eq(ds_accel_event_create(device, 0, &first), DS_ACCEL_OK);
    ds_accel_event_destroy(first);
    for (int i = 0; i < 200; i++) {
        cr_assert_eq(ds_accel_event_create(device, 0, &later), DS_ACCEL_OK);
        cr_assert_neq(later, first);
        ds_accel_event_destroy(later);
    }
    EXPECT_REFUSED(ds_accel_event_query(first), DS_ACCEL_ERR_INVALID, "destroyed");
    test_finish(context, device);
}

Test(core_device, refuses_what_is_of_another_context)
{
    ds_accel_device_t *device;
    ds_accel_device_t *other_device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_t *other = test_start("mock", &other_device);
    ds_accel_stream_t *stream;
    ds_accel_event_t *event;
    void *pointer;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(other_device, 0, &event), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_event_record(event, stream), DS_ACCEL_ERR_INVALID, "another context");
    EXPECT_REFUSED(ds_accel_stream_wait_event(stream, event), DS_ACCEL_ERR_INVALID,
                   "another context");
    EXPECT_REFUSED(ds_accel_mem_alloc(other_device, stream, 512, &pointer), DS_ACCEL_ERR_INVALID,
                   "of device 0");
    EXPECT_REFUSED(ds_accel_mem_copy_peer_async(stream, other_device, stream, device, stream, 1),
                   DS_ACCEL_ERR_INVALID, "one context");
    test_finish(other, other_device);
    test_finish(context, device);
}

Test(core_stream, current_one_is_the_default_until_another_is_set)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *initial;
    ds_accel_stream_t *current;
    ds_accel_stream_t *stream;

    EXPECT_STATUS(ds_accel_default_stream(device, &initial), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, initial);
    cr_assert_eq(ds_accel_stream_create(device, 0, -1, &stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_set_current_stream(stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, stream);
    ds_accel_stream_destroy(stream);
    EXPECT_STATUS(ds_accel_current_stream(device, &current), DS_ACCEL_OK);
    cr_expect_eq(current, initial);
    ds_accel_stream_destroy(initial); /* borrowed */
    EXPECT_STATUS(ds_accel_stream_query(initial), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_create(device, 0, 100, &stream), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_stream_create(device, 1u << 30, 0, &stream), DS_ACCEL_ERR_INVALID);
    test_finish(context, device);
}

Test(core_stream, wraps_the_vendors_own)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_stream_t *stream;
    ds_accel_stream_t *wrapped;
    uint64_t native = 0;
    uint64_t again = 1;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_native(stream, &native), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_wrap(device, native, &wrapped), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_native(wrapped, &again), DS_ACCEL_OK);
    cr_expect_eq(again, native);
    ds_accel_stream_destroy(wrapped);
    EXPECT_STATUS(ds_accel_stream_query(stream), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_stream, waits_for_all_of_another, .init = NULL)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *slow;
    ds_accel_stream_t *later;
    char bytes[16] = "";
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "30000000", 1);
    context = test_start("mock", &device);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &slow), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &later), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, slow, sizeof(bytes), &pointer), DS_ACCEL_OK);
    EXPECT_STATUS(
        ds_accel_mem_copy_async(slow, pointer, bytes, sizeof(bytes), DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(later), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_wait_stream(later, slow), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(later), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_stream_synchronize_for(later, 0), DS_ACCEL_ERR_TIMEOUT);
    EXPECT_STATUS(ds_accel_stream_synchronize(later), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_query(slow), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_event, measures_time_in_milliseconds)
{
    ds_accel_device_t *device;
    ds_accel_t *context;
    ds_accel_stream_t *stream;
    ds_accel_event_t *first;
    ds_accel_event_t *last;
    ds_accel_event_t *timeless;
    double elapsed_ms = -1;
    char bytes[16] = "";
    void *pointer;

    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "20000000", 1);
    context = test_start("mock", &device);
    cr_assert_eq(ds_accel_default_stream(device, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &first), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &last), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, 0, &timeless), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, sizeof(bytes), &pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_query(first), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_record(first, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_copy_async(stream, pointer, bytes, sizeof(bytes),
                                          DS_ACCEL_COPY_HOST_TO_DEVICE),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_record(last, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_record(timeless, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_query(last), DS_ACCEL_NOT_READY);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, last, &elapsed_ms), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_event_synchronize(last), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, timeless, &elapsed_ms), DS_ACCEL_ERR_STATE);
    cr_expect_eq(elapsed_ms, -1);
    EXPECT_STATUS(ds_accel_event_elapsed_ms(first, last, &elapsed_ms), DS_ACCEL_OK);
    cr_expect_float_eq(elapsed_ms, 20, 1, "%f ms", elapsed_ms);
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_graph, is_captured_once_and_replayed)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;
    unsigned char *pointer;
    char *dump = NULL;
    uint64_t count = 0;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, stream, 64, (void **)&pointer), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_set(device, pointer, 0, 64), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE, "not being captured");
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                   DS_ACCEL_ERR_STATE, "captured already");
    EXPECT_REFUSED(ds_accel_graph_replay(graph, stream), DS_ACCEL_ERR_STATE, "still being");
    EXPECT_STATUS(ds_accel_mem_set_async(stream, pointer, 7, 64), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_OK);
    cr_expect_eq(pointer[0], 0, "captured work was done");
    EXPECT_STATUS(ds_accel_graph_node_count(graph, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 1);
    EXPECT_STATUS(ds_accel_graph_dump(graph, &dump), DS_ACCEL_OK);
    EXPECT_HAS(dump, "fill");
    ds_accel_free_text(dump);
    for (int i = 0; i < 3; i++) {
        pointer[63] = 0;
        EXPECT_STATUS(ds_accel_graph_replay(graph, NULL), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        cr_expect_eq(pointer[63], 7);
    }
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_graph_capture_end(graph), DS_ACCEL_ERR_STATE);
    EXPECT_REFUSED(ds_accel_graph_replay(graph, stream), DS_ACCEL_ERR_STATE, "nothing was");
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, 99), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_mem_free(device, stream, pointer), DS_ACCEL_OK);
    test_finish(context, device);
}

Test(core_graph, may_be_destroyed_while_it_is_captured)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    ds_accel_graph_t *graph;
    ds_accel_stream_t *stream;

    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL),
                  DS_ACCEL_OK);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_stream_synchronize(stream), DS_ACCEL_OK);
    test_finish(context, device);
}

/* ---- ends in odd orders --------------------------------------------------------------------- */

static const char *const accelerators[] = {"mock", "cpu"};

/* The runtime has no such stream any more: it is asked for nothing of it. */
Test(core_device, a_graph_outlives_the_stream_that_it_was_being_captured_on)
{
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    for (size_t i = 0; i < 2; i++) {
        ds_accel_graph_t *graphs[3];
        ds_accel_stream_t *streams[3];
        ds_accel_stream_t *other;
        ds_accel_device_t *device;
        ds_accel_t *context;
        uint64_t count = 0;
        void *target;

        context = test_start(accelerators[i], &device);
        EXPECT_STATUS(ds_accel_mem_alloc(device, NULL, 64, &target), DS_ACCEL_OK);
        for (int j = 0; j < 3; j++) {
            EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &streams[j]), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_graph_create(device, &graphs[j]), DS_ACCEL_OK);
            EXPECT_STATUS(
                ds_accel_graph_capture_begin(graphs[j], streams[j], NULL, DS_ACCEL_CAPTURE_RELAXED),
                DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_mem_set_async(streams[j], target, 1, 64), DS_ACCEL_OK);
            ds_accel_stream_destroy(streams[j]);
        }
        EXPECT_REFUSED(ds_accel_graph_capture_end(graphs[0]), DS_ACCEL_ERR_STATE,
                       "the stream was destroyed while it captured");
        EXPECT_REFUSED(ds_accel_graph_capture_end(graphs[0]), DS_ACCEL_ERR_STATE,
                       "is not being captured");
        EXPECT_STATUS(ds_accel_stream_create(device, 0, 0, &other), DS_ACCEL_OK);
        EXPECT_STATUS(
            ds_accel_graph_capture_begin(graphs[1], other, NULL, DS_ACCEL_CAPTURE_RELAXED),
            DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(other, target, 1, 64), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_capture_end(graphs[1]), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_node_count(graphs[1], &count), DS_ACCEL_OK);
        cr_expect_eq(count, 1);
        ds_accel_graph_destroy(graphs[2]);
        EXPECT_STATUS(ds_accel_mem_free(device, NULL, target), DS_ACCEL_OK);
        test_finish(context, device);
    }
}
