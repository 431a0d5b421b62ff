/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Devices of the public API, on the mock. */
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
    ds_accel_device_close(device); /* one time too many: the context's own reference remains */
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
