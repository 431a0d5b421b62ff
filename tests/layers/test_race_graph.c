/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Races of graph launches, and of the host tasks within a graph. */
#include "races.h"

#include <semaphore.h>

/* ---- races that make the call fail ----------------------------------------------------------- */

static void capture_set(void)
{
    MUST(ds_accel_graph_capture_begin(graph, first, NULL, DS_ACCEL_CAPTURE_RELAXED));
    EXPECT_STATUS(set(first, memory, 1), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_end(graph));
}

Test(core_races, a_launch_that_would_race_can_be_refused)
{
    fail_on_races();
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        unsigned char byte = 0;

        start(accelerators[i]);
        capture_set();
        EXPECT_STATUS(set(second, memory, 2), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_graph_replay(graph, first), DS_ACCEL_ERR_STATE, "it would race");
        expect_races(1, "the launch");
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_copy(device, &byte, memory, 1, DS_ACCEL_COPY_DEVICE_TO_HOST),
                      DS_ACCEL_OK);
        cr_expect_eq(byte, 2, "it was not launched");
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        /* queued after the other launch */
        EXPECT_STATUS(ds_accel_graph_replay(graph, second), DS_ACCEL_OK);
        EXPECT_REFUSED(set(first, memory, 3), DS_ACCEL_ERR_STATE, "it would race");
        stop();
    }
}

Test(core_races, an_access_that_races_can_be_refused)
{
    fail_on_races();
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        EXPECT_STATUS(set(second, memory, 2), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_note_access(device, first, memory, 1, DS_ACCEL_ACCESS_READ),
                       DS_ACCEL_ERR_STATE, "it would race");
        EXPECT_REFUSED(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE),
                       DS_ACCEL_ERR_STATE, "it would race");
        expect_races(2, "two places");
        EXPECT_HAS(test_log, "noted access on the host writes 1 bytes");
        EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, first, memory, 1, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        EXPECT_REFUSED(set(second, memory, 3), DS_ACCEL_ERR_STATE, "it would race");
        stop();
    }
}

/* ---- host tasks of a graph ------------------------------------------------------------------ */

static sem_t noted;
static uint32_t task_access;
static int32_t task_status;

static void note_in_task(void *user_data, int32_t status)
{
    cr_expect_eq(status, DS_ACCEL_OK);
    task_status = ds_accel_note_access(device, NULL, user_data, SIZE, task_access);
    sem_post(&noted);
}

/* Capture a host task that notes an access, alone or between two other uses of the same memory. */
static void capture_task(uint32_t access, bool is_alone)
{
    task_access = access;
    cr_assert_eq(sem_init(&noted, 0, 0), 0);
    MUST(ds_accel_graph_capture_begin(graph, first, NULL, DS_ACCEL_CAPTURE_RELAXED));
    if (!is_alone) {
        EXPECT_STATUS(set(first, memory, 1), DS_ACCEL_OK);
    }
    MUST(ds_accel_stream_host_task(first, note_in_task, memory));
    if (!is_alone) {
        EXPECT_STATUS(set(first, memory, 2), DS_ACCEL_OK);
    }
    MUST(ds_accel_graph_capture_end(graph));
}

static void wait_until(sem_t *posted)
{
    while (sem_wait(posted) != 0) {
    }
}

Test(core_races, what_a_graphs_host_task_notes_is_in_the_order_of_its_graph)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_READ, false);
        for (int launch = 0; launch < 4; launch++) {
            EXPECT_STATUS(ds_accel_graph_replay(graph, launch % 2 == 0 ? first : second),
                          DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        expect_races(0, "launches of one graph follow each other");
        stop();
    }
}

Test(core_races, what_a_graphs_host_task_notes_races_with_other_streams)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_WRITE, true);
        /* the second launch has its own position in the order */
        for (int launch = 0; launch < 2; launch++) {
            EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
            wait_until(&noted);
            EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
            expect_races(0, "it was waited for");
        }
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
        expect_races(1, "it was not");
        EXPECT_HAS(test_log, "noted access on stream ");
        stop();
    }
}

Test(core_races, a_graphs_host_task_is_refused_what_races)
{
    fail_on_races();
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_WRITE, true);
        EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        cr_expect_eq(task_status, DS_ACCEL_ERR_STATE, "%d", task_status);
        expect_races(1, "nobody waited for the other stream");
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        cr_expect_eq(task_status, DS_ACCEL_OK, "%d", task_status);
        stop();
    }
}

/* A rejected launch must not leave a slot for its task, or the task of the next launch would write
   to that slot. */
Test(core_races, a_launch_that_is_refused_gives_its_tasks_no_place)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_graph_t *captured = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_device_t *other = NULL;

    start_with("mock", "race,validate");
    cr_assert_eq(sem_init(&noted, 0, 0), 0);
    task_access = DS_ACCEL_ACCESS_WRITE;
    MUST(ds_accel_instance(context, &table, &instance));
    MUST(ds_accel_device_open(context, 1, &other));
    MUST(table->stream_create(ds_accel_device_handle(device), 0, 0, &stream, &error));
    MUST(table->stream_create(ds_accel_device_handle(other), 0, 0, &theirs, &error));
    MUST(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    MUST(table->stream_host_task(stream, note_in_task, memory, &error));
    MUST(table->graph_capture_end(stream, &captured, &error));
    MUST(table->graph_instantiate(captured, 0, &exec, &error));
    table->graph_destroy(captured);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(table->graph_launch(exec, theirs, &error), DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(table->graph_launch(exec, stream, &error), DS_ACCEL_OK);
        EXPECT_STATUS(table->graph_launch(exec, theirs, &error), DS_ACCEL_ERR_INVALID);
        wait_until(&noted);
        EXPECT_STATUS(table->mem_fill_async(stream, memory, "x", 1, SIZE, &error), DS_ACCEL_OK);
        expect_races(0, "it was this stream's");
    }
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    table->stream_destroy(theirs);
    ds_accel_device_close(other);
    stop();
}
