/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The behaviour and the errors that a program gets from every backend: one line "WHAT: STATUS" for
 * each, in numbers. test_alike.sh compares the lines of all backends.
 *
 * Each case makes its own streams and events, so that a broken one does not affect the next case.
 */
#include <ds-accel/ds_accel.h>
#include <stdio.h>
#include <string.h>

static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *device;
static ds_accel_plugin_stream_t *one;
static ds_accel_plugin_stream_t *two;
static ds_accel_plugin_event_t *forks;
static ds_accel_plugin_event_t *joins;
static ds_accel_plugin_graph_t *graph;
static ds_accel_plugin_graph_exec_t *exec;
static unsigned char *memory;
static unsigned char back[16];
static struct ds_accel_error error = {sizeof(error), 0, 0, "", ""};

static void tell(const char *what, int32_t status)
{
    printf("%s: %s\n", what, ds_accel_status_name(status));
    error.message[0] = '\0';
}

static void fill(ds_accel_plugin_stream_t *stream, size_t at, const char *byte)
{
    int32_t status = table->mem_fill_async(stream, memory + at, byte, 1, 8, &error);

    if (status < 0) {
        tell("a fill", status);
    }
}

/* Begins a capture on stream one, which stream two joins. */
static void fork_capture(void)
{
    int32_t status = table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);

    if (status < 0) {
        tell("a capture", status);
    }
    fill(one, 0, "a");
    table->event_record(forks, one, &error);
    status = table->stream_wait_event(two, forks, &error);
    if (status < 0) {
        tell("a fork", status);
    }
    fill(two, 8, "b");
}

static void join_capture(void)
{
    int32_t status = table->event_record(joins, two, &error);

    if (status == DS_ACCEL_OK) {
        status = table->stream_wait_event(one, joins, &error);
    }
    if (status < 0) {
        tell("a join", status);
    }
}

static int32_t end_capture(ds_accel_plugin_stream_t *stream)
{
    int32_t status = table->graph_capture_end(stream, &graph, &error);

    if (status != DS_ACCEL_OK) {
        graph = NULL;
    }
    return status;
}

static void tell_capturing(const char *what, ds_accel_plugin_stream_t *stream)
{
    uint32_t capturing = 9;
    int32_t status = table->graph_capture_status(stream, &capturing, &error);

    printf("%s: %s %u\n", what, ds_accel_status_name(status), capturing);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void ask_joined(void)
{
    int32_t status;

    fork_capture();
    tell_capturing("the stream that began a capture", one);
    tell_capturing("the stream that was drawn in", two);
    join_capture();
    tell("a capture that forks and joins", end_capture(one));
    tell_capturing("the stream that was drawn in, after the end", two);
    tell("an event of a capture, asked", table->event_query(joins, &error));
    tell("an event of a capture, waited for", table->stream_wait_event(two, joins, &error));
    status = table->graph_instantiate(graph, 0, &exec, &error);
    if (status == DS_ACCEL_OK) {
        status = table->graph_launch(exec, one, &error);
    }
    tell("a launch", status);
    tell("a wait for the launch", table->stream_synchronize(one, UINT64_MAX, &error));
    memset(back, 0, sizeof(back));
    table->mem_copy(device, back, memory, sizeof(back), DS_ACCEL_COPY_DEVICE_TO_HOST, &error);
    printf("what the graph did: %02x %02x\n", back[0], back[15]);
}

/* A mark of an event counts as no work: the stream that began the capture need not wait for it. */
static void ask_mark(void)
{
    fork_capture();
    join_capture();
    table->event_record(forks, two, &error);
    tell("a mark behind the join", end_capture(one));
}

static void ask_unjoined(void)
{
    fork_capture();
    tell("a capture with a fork that is not joined", end_capture(one));
    tell("the stream after that", table->stream_synchronize(one, UINT64_MAX, &error));
    tell("the fork after that", table->stream_synchronize(two, UINT64_MAX, &error));
}

static void ask_work_after_join(void)
{
    fork_capture();
    join_capture();
    fill(two, 8, "c");
    tell("a capture with work behind the join", end_capture(one));
}

static void ask_end_of_fork(void)
{
    fork_capture();
    tell("the end of a capture on the stream that was drawn in", end_capture(two));
    tell("and then where it began", end_capture(one));
}

static void ask_begin_of_fork(void)
{
    fork_capture();
    tell("a capture on a stream that was drawn in",
         table->graph_capture_begin(two, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error));
    tell("a capture on a stream that captures",
         table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error));
    join_capture();
    tell("and then the end", end_capture(one));
}

static void ask_default(void)
{
    ds_accel_plugin_stream_t *usual = NULL;

    table->stream_get_default(device, &usual, &error);
    tell("a capture on the default stream",
         table->graph_capture_begin(usual, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error));
    fork_capture();
    tell("a fork to the default stream", table->stream_wait_event(usual, forks, &error));
    join_capture();
    end_capture(one);
    tell("the default stream after that", table->stream_synchronize(usual, UINT64_MAX, &error));
}

static void ask_outside(void)
{
    table->event_record(joins, two, &error);
    table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    tell("an event of outside, waited for in a capture",
         table->stream_wait_event(one, joins, &error));
    tell("and then its end", end_capture(one));
}

/* Two captures cannot be merged. */
static void ask_other_capture(void)
{
    ds_accel_plugin_graph_t *other = NULL;
    int32_t status;

    table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    table->graph_capture_begin(two, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    fill(one, 0, "a");
    fill(two, 8, "b");
    table->event_record(forks, one, &error);
    tell("an event of another capture, waited for in a capture",
         table->stream_wait_event(two, forks, &error));
    tell_capturing("the capture that waited", two);
    tell_capturing("the other one", one);
    tell("the end of that which waited", end_capture(two));
    status = table->graph_capture_end(one, &other, &error);
    tell("the end of the other one", status);
    if (status == DS_ACCEL_OK) {
        table->graph_destroy(other);
    }
    tell("the stream that waited, after that", table->stream_synchronize(two, UINT64_MAX, &error));
}

static void ask_ended_capture(void)
{
    table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    fill(one, 0, "a");
    table->event_record(forks, one, &error);
    end_capture(one);
    table->graph_destroy(graph);
    table->graph_capture_begin(two, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    tell("an event of an ended capture, waited for in a capture",
         table->stream_wait_event(two, forks, &error));
    tell("and then its end", end_capture(two));
}

/* Streams and events may be destroyed during the capture. */
static void ask_destroyed(void)
{
    int32_t status;

    fork_capture();
    join_capture();
    table->stream_destroy(two);
    table->event_destroy(forks);
    table->event_destroy(joins);
    two = NULL;
    forks = NULL;
    joins = NULL;
    tell("a capture whose fork was joined and destroyed", end_capture(one));
    status = table->graph_instantiate(graph, 0, &exec, &error);
    if (status == DS_ACCEL_OK) {
        status = table->graph_launch(exec, one, &error);
    }
    tell("its launch", status);
    table->stream_synchronize(one, UINT64_MAX, &error);
}

static void ask_destroyed_unjoined(void)
{
    fork_capture();
    table->stream_destroy(two);
    two = NULL;
    tell("a capture whose fork was destroyed, and not joined", end_capture(one));
}

static void ask_synchronize(void)
{
    table->graph_capture_begin(one, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error);
    fill(one, 0, "a");
    tell("a stream that captures, waited for", table->stream_synchronize(one, UINT64_MAX, &error));
    tell("and then its end", end_capture(one));
}

static void ask_ends(void)
{
    tell("the end of no capture", end_capture(one));
    tell("a capture in no mode", table->graph_capture_begin(one, 3, &error));
}

static void ask_streams(void)
{
    ds_accel_plugin_stream_t *made = NULL;
    int32_t least = 0;
    int32_t greatest = 0;

    tell("the range of priorities",
         table->stream_priority_range(device, &least, &greatest, &error));
    if (least < greatest) {
        printf("least is before greatest: %d %d\n", (int)least, (int)greatest);
    }
    tell("a priority below the least", table->stream_create(device, 0, least + 1, &made, &error));
    tell("a priority above the greatest",
         table->stream_create(device, 0, greatest - 1, &made, &error));
    tell("unknown flags of a stream", table->stream_create(device, 0x100, 0, &made, &error));
}

static void ask_ranges(void)
{
    tell("a range that is ended before it began", table->range_pop(instance, NULL, &error));
    tell("a range that begins", table->range_push(instance, "x", NULL, NULL, &error));
    tell("and ends", table->range_pop(instance, NULL, &error));
    tell("and ends again", table->range_pop(instance, NULL, &error));
}

static void ask(void (*question)(void))
{
    graph = NULL;
    exec = NULL;
    one = NULL;
    two = NULL;
    forks = NULL;
    joins = NULL;
    table->stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &one, &error);
    table->stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &two, &error);
    table->event_create(device, 0, &forks, &error);
    table->event_create(device, 0, &joins, &error);
    question();
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(forks);
    table->event_destroy(joins);
    table->stream_destroy(two);
    table->stream_destroy(one);
}

int main(void)
{
    ds_accel_t *accelerator;
    ds_accel_device_t *opened = NULL;
    void *pointer = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the printed lines after a crash */
    accelerator = ds_accel_get();
    if (accelerator == NULL || ds_accel_instance(accelerator, &table, &instance) < 0 ||
        ds_accel_device_open(accelerator, 0, &opened) < 0) {
        fprintf(stderr, "%s\n", ds_accel_last_error());
        return 1;
    }
    device = ds_accel_device_handle(opened);
    if (table->mem_alloc(device, sizeof(back), 0, 0, &pointer, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    memory = pointer;
    ask(ask_streams);
    ask(ask_ranges);
    if (table->graph_capture_begin(NULL, 0, &error) != DS_ACCEL_ERR_UNSUPPORTED) {
        ask(ask_joined);
        ask(ask_mark);
        ask(ask_unjoined);
        ask(ask_work_after_join);
        ask(ask_end_of_fork);
        ask(ask_begin_of_fork);
        ask(ask_default);
        ask(ask_outside);
        ask(ask_other_capture);
        ask(ask_ended_capture);
        ask(ask_destroyed);
        ask(ask_destroyed_unjoined);
        ask(ask_synchronize);
        ask(ask_ends);
    }
    table->mem_free(device, memory, &error);
    ds_accel_device_close(opened);
    return 0;
}
