/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer race: fixed schedules, run once with all waits and once without each wait, and random
   programs. */
#include "race.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

/* ---- races: fixed schedules with one wait left out ------------------------------------------- */

static int left_out; /* index of the wait that is left out; -1: none */
static int wait_count;

/* True if the next wait is to be made, false if it is left out. */
static bool waits(void)
{
    return wait_count++ != left_out;
}

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

/* Upload on the first stream, copy on the second, download by the host. */
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

/* The host refills the buffer while the device may still read it. */
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

/* Note accesses of the program's own kernels, on two streams that alternate. */
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

/* Launch a graph and use its result. */
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

/* Free memory that queued work uses. */
static void free_used(void)
{
    void *pointer = allocate(64);

    EXPECT_OK(table->mem_fill_async(first, pointer, "x", 1, 64, &error));
    if (waits()) {
        EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    }
    EXPECT_OK(table->mem_free(handle, pointer, &error));
}

/* Allocate and free memory in stream order. */
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

/* A host task reads data that another stream copied. */
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
    for (size_t i = 0; i < ARRAY_SIZE(schedules); i++) {
        run_schedule(i, -1);
        cr_expect_eq(races(), 0, "%s: %s", schedules[i].name, report("race"));
        end_schedule();
    }
}

Test(core_layer, a_schedule_without_one_of_its_waits_has_one_race)
{
    for (size_t i = 0; i < ARRAY_SIZE(schedules); i++) {
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

/* Read once, and again after the main thread has signalled its write. */
static void *read_twice(void *argument)
{
    (void)argument;
    cr_expect_eq(read_from_there(second), DS_ACCEL_OK);
    sem_post(&turns[0]);
    sem_wait(&turns[1]);
    cr_expect_eq(read_from_there(second), DS_ACCEL_OK);
    return NULL;
}

/* Only the main thread waits for the device; it signals the other thread by a semaphore. */
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

/* ---- random programs, checked against a model ------------------------------------------------ */

/* Random programs are checked against a model without clocks: a graph of all queued work, with an
   edge for each order that the interface promises. Two accesses that no path connects are a race.
   In mode "fail", each call's status is the detector's result for the call. */

#define NODE_LIMIT 192
#define STREAM_COUNT 3
#define EVENT_COUNT 4
#define UNIT 16
#define UNIT_COUNT 12

struct node {
    uint64_t before[NODE_LIMIT / 64];
    int begin, end; /* range of units; begin == end: no access */
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
        for (size_t i = 0; i < ARRAY_SIZE(nodes[0].before); i++) {
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

/* Access memory on a stream, or by the host if stream is -1. A racing access is rejected, and the
   model does not record it. */
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
        random_events[i] = make_event(); /* a new event, not yet recorded */
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
