/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The engine's own test: `self CASE` is one case, `self` alone lists them. Cases that must be
 * killed by a signal are named after "dies:"; test_engine.sh runs all cases.
 */
#include "engine.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536u
#define ORDER 64u
#define FOR_EVER UINT64_MAX

static void check(bool holds, const char *text, int line)
{
    if (!holds) {
        fprintf(stderr, "self.c:%d: not so: %s\n", line, text);
        exit(1);
    }
}
#define CHECK(condition) check(condition, #condition, __LINE__)

static unsigned char buffer[4][SIZE];

static void prepare(void)
{
    CHECK(sim_device_count("cuda") >= 2);
    for (size_t i = 0; i < SIZE; i++) {
        buffer[0][i] = (unsigned char)(i * 7 + 1);
    }
}

static bool is_equal(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, SIZE) == 0;
}

static void *device_memory(uint64_t size_bytes)
{
    void *memory = sim_alloc(0, size_bytes, 0, SIM_DEVICE, 0);

    CHECK(memory != NULL && (uintptr_t)memory % 256 == 0);
    return memory;
}

static void give_back(void *memory)
{
    sim_free(memory, SIM_DEVICE, "self");
}

/* ---- tasks with which the cases block streams ----------------------------------------------- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open, was_reached;
};

static struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
static atomic_int steps;

static void wait_at_gate(void *argument)
{
    struct gate *it = argument;

    pthread_mutex_lock(&it->lock);
    it->was_reached = true;
    pthread_cond_broadcast(&it->opened);
    while (!it->is_open) {
        pthread_cond_wait(&it->opened, &it->lock);
    }
    pthread_mutex_unlock(&it->lock);
}

static void open_gate(struct gate *it)
{
    pthread_mutex_lock(&it->lock);
    it->is_open = true;
    pthread_cond_broadcast(&it->opened);
    pthread_mutex_unlock(&it->lock);
}

static void count_step(void *argument)
{
    (void)argument;
    atomic_fetch_add(&steps, 1);
}

static int order[16];
static atomic_int order_count;

static void note(void *argument)
{
    order[atomic_fetch_add(&order_count, 1)] = (int)(intptr_t)argument;
}

/* ---- streams -------------------------------------------------------------------------------- */

static void copies_are_asynchronous(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    void *memory = device_memory(SIZE);

    CHECK(sim_stream_query(stream) == 0);
    CHECK(sim_submit_task(stream, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_copy(stream, memory, buffer[0], SIZE) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], memory, SIZE) == 0);
    CHECK(sim_stream_query(stream) == 1);
    CHECK(sim_stream_synchronize(stream, 0) == 1);
    CHECK(sim_stream_synchronize(stream, 1000000) == 1);
    CHECK(buffer[1][5] == 0);
    open_gate(&gate);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
    CHECK(is_equal(buffer[0], buffer[1]));
    CHECK(sim_stream_query(stream) == 0);
    sim_stream_destroy(stream);
    give_back(memory);
}

static void a_stream_keeps_its_order(void)
{
    struct sim_stream *stream = sim_stream_create(1, SIM_STREAM_NON_BLOCKING, -2);

    CHECK(sim_stream_priority(stream) == -2 && sim_stream_physical(stream) == 1);
    for (intptr_t i = 0; i < 16; i++) {
        CHECK(sim_submit_task(stream, note, (void *)i) == 0);
    }
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
    for (int i = 0; i < 16; i++) {
        CHECK(order[i] == i);
    }
    sim_stream_destroy(stream);
}

static void a_destroyed_stream_ends_its_work(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);

    CHECK(sim_submit_task(stream, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_task(stream, count_step, NULL) == 0);
    sim_stream_destroy(stream);
    CHECK(atomic_load(&steps) == 0);
    open_gate(&gate);
    CHECK(sim_device_synchronize(0) == 0);
    CHECK(atomic_load(&steps) == 1);
}

static void the_default_stream_and_others_wait_for_each_other(void)
{
    struct sim_stream *main = sim_stream_create(0, SIM_STREAM_DEFAULT, 0);
    struct sim_stream *blocking = sim_stream_create(0, 0, 0);
    struct sim_stream *free_one = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *other = sim_stream_create(1, 0, 0);

    CHECK(sim_submit_task(blocking, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_task(main, note, (void *)1) == 0);
    CHECK(sim_submit_task(blocking, note, (void *)2) == 0);
    CHECK(sim_submit_task(free_one, count_step, NULL) == 0);
    CHECK(sim_submit_task(other, count_step, NULL) == 0);
    CHECK(sim_stream_synchronize(free_one, FOR_EVER) == 0);
    CHECK(sim_stream_synchronize(other, FOR_EVER) == 0);
    CHECK(atomic_load(&steps) == 2);
    CHECK(atomic_load(&order_count) == 0 && sim_stream_query(main) == 1);
    open_gate(&gate);
    CHECK(sim_device_synchronize(0) == 0);
    CHECK(atomic_load(&order_count) == 2 && order[0] == 1 && order[1] == 2);
    sim_stream_destroy(main);
    sim_stream_destroy(blocking);
    sim_stream_destroy(free_one);
    sim_stream_destroy(other);
}

static void fills_repeat_their_pattern(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    unsigned char *memory = device_memory(SIZE);
    const uint32_t word = 0x04030201;

    CHECK(sim_submit_copy(stream, memory, buffer[0], SIZE) == 0);
    CHECK(sim_submit_fill(stream, memory + 8, &word, 4, 10) == 0);
    CHECK(sim_submit_fill(stream, memory + 32, &word, 1, 3) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], memory, SIZE) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
    CHECK(memcmp(buffer[1] + 8, "\1\2\3\4\1\2\3\4\1\2", 10) == 0 && buffer[1][7] == buffer[0][7]);
    CHECK(memcmp(buffer[1] + 32, "\1\1\1", 3) == 0 && buffer[1][35] == buffer[0][35]);
    CHECK(buffer[1][18] == buffer[0][18] && memcmp(sim_bytes(memory + 8), "\1\2\3\4", 4) == 0);
    sim_stream_destroy(stream);
    give_back(memory);
}

/* ---- events --------------------------------------------------------------------------------- */

static void events_carry_waits_across_streams(void)
{
    struct sim_stream *first = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *second = sim_stream_create(1, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_event *event = sim_event_create(0, 7);

    CHECK(sim_event_flags(event) == 7 && sim_event_physical(event) == 0);
    CHECK(!sim_event_is_recorded(event) && sim_event_query(event) == 0);
    CHECK(sim_submit_task(first, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_task(first, note, (void *)1) == 0);
    CHECK(sim_event_record(event, first) == 0);
    CHECK(sim_event_is_recorded(event) && sim_event_query(event) == 1);
    CHECK(sim_event_synchronize(event, 1000) == 1);
    CHECK(sim_stream_wait_event(second, event) == 0);
    CHECK(sim_submit_task(second, note, (void *)2) == 0);
    sim_event_destroy(event); /* the wait keeps the mark */
    CHECK(sim_stream_query(second) == 1);
    open_gate(&gate);
    CHECK(sim_stream_synchronize(second, FOR_EVER) == 0);
    CHECK(order[0] == 1 && order[1] == 2);
    sim_stream_destroy(first);
    sim_stream_destroy(second);
}

static void a_wait_takes_the_mark_of_its_moment(void)
{
    struct sim_stream *first = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *second = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_event *event = sim_event_create(0, 0);

    CHECK(sim_event_record(event, first) == 0);
    CHECK(sim_stream_wait_event(second, event) == 0);
    CHECK(sim_submit_task(first, wait_at_gate, &gate) == 0);
    CHECK(sim_event_record(event, first) == 0);
    CHECK(sim_stream_synchronize(second, FOR_EVER) == 0); /* the wait does not cover the second
                                                           * record */
    CHECK(sim_event_query(event) == 1);
    open_gate(&gate);
    CHECK(sim_event_synchronize(event, FOR_EVER) == 0 && sim_event_query(event) == 0);
    sim_event_destroy(event);
    sim_stream_destroy(first);
    sim_stream_destroy(second);
}

static void event_times_follow_the_work(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_event *start = sim_event_create(0, 0);
    struct sim_event *end = sim_event_create(0, 0);
    void *memory = device_memory(SIZE);

    CHECK(sim_event_record(start, stream) == 0);
    CHECK(sim_submit_copy(stream, memory, buffer[0], SIZE) == 0); /* SIM_LATENCY_US=copy=3000 */
    CHECK(sim_event_record(end, stream) == 0);
    CHECK(sim_event_synchronize(end, FOR_EVER) == 0);
    CHECK(sim_event_time_ns(end) - sim_event_time_ns(start) >= 3000000);
    sim_event_destroy(start);
    sim_event_destroy(end);
    sim_stream_destroy(stream);
    give_back(memory);
}

static void signals_stay_until_a_reset(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_event *event = sim_event_create(0, 0);

    CHECK(sim_event_reset(event) == 0 && sim_event_query(event) == 1);
    CHECK(sim_stream_wait_event(stream, event) == 0);
    CHECK(sim_submit_task(stream, count_step, NULL) == 0);
    CHECK(sim_stream_query(stream) == 1);
    CHECK(sim_event_signal(event, NULL) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0 && atomic_load(&steps) == 1);
    CHECK(sim_event_query(event) == 0);
    CHECK(sim_event_reset(event) == 0 && sim_event_query(event) == 1);
    CHECK(sim_event_signal(event, stream) == 0);
    CHECK(sim_event_synchronize(event, FOR_EVER) == 0);
    sim_event_destroy(event);
    sim_stream_destroy(stream);
}

/* ---- graphs --------------------------------------------------------------------------------- */

/* Captures the graph 0 -> (1 -> 3, 2 on the other stream) -> 4. */
static struct sim_graph *capture_fork(struct sim_stream *first, struct sim_stream *second,
                                      bool is_joined)
{
    struct sim_event *fork_event = sim_event_create(0, 0);
    struct sim_event *join_event = sim_event_create(0, 0);
    struct sim_graph *graph;

    CHECK(sim_capture_begin(first, 0));
    CHECK(!sim_capture_begin(first, 0));
    CHECK(sim_capture_status(first) == SIM_CAPTURE_ACTIVE && sim_capture_is_mine(first));
    CHECK(sim_submit_task(first, note, (void *)0) == 0);
    CHECK(sim_event_record(fork_event, first) == 0 && sim_event_is_captured(fork_event));
    CHECK(sim_submit_task(first, note, (void *)1) == 0);
    CHECK(sim_stream_wait_event(second, fork_event) == 0);
    CHECK(sim_capture_status(second) == SIM_CAPTURE_ACTIVE && !sim_capture_is_mine(second));
    CHECK(sim_submit_task(second, note, (void *)2) == 0);
    CHECK(sim_event_record(join_event, second) == 0);
    CHECK(sim_submit_task(first, note, (void *)3) == 0);
    if (is_joined) {
        CHECK(sim_stream_wait_event(first, join_event) == 0);
    }
    CHECK(sim_submit_task(first, note, (void *)4) == 0);
    graph = sim_capture_end(first);
    CHECK(sim_capture_status(first) == SIM_CAPTURE_NONE);
    CHECK(sim_capture_status(second) == SIM_CAPTURE_NONE);
    sim_event_destroy(fork_event);
    sim_event_destroy(join_event);
    return graph;
}

static int place_of(int node)
{
    for (int i = 0; i < 5; i++) {
        if (order[i] == node) {
            return i;
        }
    }
    return -1;
}

static void captures_become_graphs(void)
{
    struct sim_stream *first = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *second = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_graph *graph = capture_fork(first, second, true);
    struct sim_graph *instance;
    unsigned seen = 0;

    CHECK(graph != NULL && sim_graph_node_count(graph) == 5);
    CHECK(strcmp(sim_graph_node_kind(graph, 0), "task") == 0);
    CHECK(atomic_load(&order_count) == 0); /* no work ran during the capture */
    instance = sim_graph_copy(graph);
    sim_graph_destroy(graph);
    for (int launch = 0; launch < 64; launch++) {
        atomic_store(&order_count, 0);
        CHECK(sim_graph_launch(instance, first) == 0);
        CHECK(sim_stream_synchronize(first, FOR_EVER) == 0);
        CHECK(place_of(0) == 0 && place_of(4) == 4 && place_of(1) < place_of(3));
        seen |= 1u << place_of(2);
    }
    CHECK(seen == (2u | 4u | 8u)); /* every allowed order occurs */
    CHECK(sim_graph_launch(instance, second) == 0);
    sim_graph_destroy(instance); /* the launch keeps its nodes alive */
    CHECK(sim_stream_synchronize(second, FOR_EVER) == 0);
    sim_stream_destroy(first);
    sim_stream_destroy(second);
}

static void broken_captures_give_no_graph(void)
{
    struct sim_stream *first = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *second = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *main = sim_stream_create(0, SIM_STREAM_DEFAULT, 0);
    struct sim_event *event = sim_event_create(0, 0);

    CHECK(capture_fork(first, second, false) == NULL); /* second is not joined */
    CHECK(!sim_capture_begin(main, 0));
    CHECK(sim_capture_begin(first, 0) && sim_capture_is_strict());
    CHECK(sim_stream_query(first) == -1); /* its result would be unknown */
    CHECK(sim_capture_status(first) == SIM_CAPTURE_BROKEN);
    CHECK(sim_submit_task(first, count_step, NULL) == -1);
    CHECK(sim_capture_end(first) == NULL && !sim_capture_is_strict());
    CHECK(sim_capture_begin(first, 2) && !sim_capture_is_strict());
    sim_capture_forbid(0);
    CHECK(sim_capture_status(first) == SIM_CAPTURE_ACTIVE); /* mode relaxed: no effect */
    CHECK(sim_event_record(event, second) == 0);
    CHECK(sim_stream_wait_event(first, event) == -1); /* outside this capture */
    CHECK(sim_capture_end(first) == NULL);
    CHECK(sim_capture_begin(first, 1));
    sim_capture_forbid(0);
    CHECK(sim_capture_status(first) == SIM_CAPTURE_BROKEN && sim_capture_end(first) == NULL);
    CHECK(sim_submit_task(first, count_step, NULL) == 0);
    CHECK(sim_stream_synchronize(first, FOR_EVER) == 0 && atomic_load(&steps) == 1);
    sim_event_destroy(event);
    sim_stream_destroy(first);
    sim_stream_destroy(second);
    sim_stream_destroy(main);
}

static struct sim_graph *capture_copy(struct sim_stream *stream, void *memory, const void *source,
                                      bool has_fill)
{
    CHECK(sim_capture_begin(stream, 2));
    CHECK(sim_submit_copy(stream, memory, source, SIZE) == 0);
    if (has_fill) {
        CHECK(sim_submit_fill(stream, memory, "x", 1, 1) == 0);
    }
    return sim_capture_end(stream);
}

static void updates_take_other_parameters(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    void *memory = device_memory(SIZE);
    struct sim_graph *graph = capture_copy(stream, memory, buffer[0], false);
    struct sim_graph *same = capture_copy(stream, memory, buffer[2], false);
    struct sim_graph *longer = capture_copy(stream, memory, buffer[0], true);
    struct sim_graph *instance = sim_graph_copy(graph);

    memset(buffer[2], 9, SIZE);
    CHECK(strcmp(sim_graph_node_kind(longer, 1), "fill") == 0);
    CHECK(!sim_graph_update(instance, longer));
    CHECK(sim_graph_launch(instance, stream) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], memory, SIZE) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0 && is_equal(buffer[1], buffer[0]));
    CHECK(sim_graph_update(instance, same));
    CHECK(sim_graph_launch(instance, stream) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], memory, SIZE) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0 && is_equal(buffer[1], buffer[2]));
    sim_graph_destroy(graph);
    sim_graph_destroy(same);
    sim_graph_destroy(longer);
    sim_graph_destroy(instance);
    sim_stream_destroy(stream);
    give_back(memory);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void memory_is_counted(void)
{
    struct sim_block block;
    uint64_t free_bytes, total, before;
    char *memory;

    sim_memory_info(0, &before, &total);
    CHECK(total == sim_device_at(0)->memory_bytes && before == total);
    memory = device_memory(1 << 20);
    sim_memory_info(0, &free_bytes, &total);
    CHECK(free_bytes == before - (1 << 20));
    CHECK(sim_find(memory + 100, &block) && block.address == memory &&
          block.size_bytes == 1 << 20 && block.kind == SIM_DEVICE && block.physical == 0);
    CHECK(!sim_find(memory + (1 << 20), &block));
    CHECK(sim_range_is(memory + 1, (1 << 20) - 1, 1u << SIM_DEVICE));
    CHECK(!sim_range_is(memory + 1, 1 << 20, 1u << SIM_DEVICE));
    CHECK(!sim_range_is(memory, 1, 1u << SIM_PINNED));
    CHECK(sim_alloc(0, total, 0, SIM_DEVICE, 0) == NULL);
    CHECK(sim_alloc(0, UINT64_MAX, 0, SIM_DEVICE, 0) == NULL);
    give_back(memory);
    sim_memory_info(0, &free_bytes, &total);
    CHECK(free_bytes == total);
    memory = sim_alloc(0, total, 0, SIM_DEVICE, 0);
    CHECK(memory != NULL && sim_alloc(0, 1, 0, SIM_DEVICE, 0) == NULL);
    give_back(memory);
}

static void host_memory_is_known(void)
{
    struct sim_block block;
    char *pinned = sim_alloc(0, SIZE, 1 << 16, SIM_PINNED, 3);

    CHECK(pinned != NULL && (uintptr_t)pinned % (1 << 16) == 0);
    pinned[SIZE - 1] = 1;
    CHECK(sim_find(pinned + 5, &block) && block.kind == SIM_PINNED && block.flags == 3);
    CHECK(sim_register(0, buffer[0], SIZE, 1) && !sim_register(0, buffer[0] + 5, 10, 1));
    CHECK(sim_range_is(buffer[0], SIZE, 1u << SIM_REGISTERED));
    CHECK(!sim_unregister(buffer[0] + 1) && sim_unregister(buffer[0]));
    CHECK(!sim_unregister(buffer[0]) && !sim_find(buffer[0], &block));
    sim_free(pinned, SIM_PINNED, "self");
}

static void virtual_memory_is_one_range(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    char *range = sim_reserve(2 * SIZE, SIZE, NULL);
    struct sim_physical *first = sim_physical_create(0, SIZE);
    struct sim_physical *second = sim_physical_create(0, SIZE);
    uint64_t free_bytes, total;

    CHECK(range != NULL && (uintptr_t)range % SIZE == 0 && first != NULL && second != NULL);
    CHECK(sim_map(range, SIZE, first, 0) && !sim_map(range, SIZE, second, 0));
    CHECK(!sim_map(range + SIZE, 2 * SIZE, second, 0));
    CHECK(sim_map(range + SIZE, SIZE, second, 0));
    CHECK(!sim_range_is(range, 16, 1u << SIM_DEVICE)); /* no access yet: set below */
    CHECK(sim_set_access(range, 2 * SIZE, 3));
    CHECK(sim_range_is(range + 10, 2 * SIZE - 10, 1u << SIM_DEVICE));
    sim_physical_put(first); /* the mapping keeps the memory alive */
    CHECK(sim_submit_copy(stream, range + SIZE / 2, buffer[0], SIZE) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], range + SIZE / 2, SIZE) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0 && is_equal(buffer[0], buffer[1]));
    CHECK(!sim_unreserve(range, 2 * SIZE));
    CHECK(sim_unmap(range, 2 * SIZE) && !sim_unmap(range, SIZE));
    sim_physical_put(second);
    CHECK(sim_unreserve(range, 2 * SIZE) && !sim_unreserve(range, 2 * SIZE));
    sim_memory_info(0, &free_bytes, &total);
    CHECK(free_bytes == total);
    sim_stream_destroy(stream);
}

/* ---- misuse that aborts --------------------------------------------------------------------- */

static void the_host_touches_device_memory(void)
{
    *(volatile char *)device_memory(16) = 1;
}

static void the_host_touches_freed_pinned_memory(void)
{
    volatile char *pinned = sim_alloc(0, 16, 0, SIM_PINNED, 0);

    sim_free((void *)(uintptr_t)pinned, SIM_PINNED, "self");
    *pinned = 1;
}

static void a_copy_of_freed_memory(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    void *memory = device_memory(SIZE);

    sim_submit_task(stream, wait_at_gate, &gate);
    sim_submit_copy(stream, memory, buffer[0], SIZE);
    give_back(memory);
    open_gate(&gate);
    sim_stream_synchronize(stream, FOR_EVER);
}

static void a_copy_beyond_the_end(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);

    sim_submit_copy(stream, device_memory(100), buffer[0], 101);
    sim_stream_synchronize(stream, FOR_EVER);
}

static void free_twice(void)
{
    void *memory = device_memory(16);

    give_back(memory);
    give_back(memory);
}

static void free_of_a_middle(void)
{
    give_back((char *)device_memory(512) + 256);
}

static void a_destroyed_handle(void)
{
    sim_handle_add(&gate, "stream");
    sim_handle_remove(&gate, "stream", "streamDestroy");
    sim_handle_check(&gate, "stream", "streamQuery");
}

static void a_handle_of_another_kind(void)
{
    sim_handle_add(&gate, "event");
    sim_handle_check(&gate, "stream", "streamQuery");
}

static void a_call_in_a_child(void)
{
    int status = 0;
    pid_t child;

    CHECK(sim_enter("first") == 0);
    child = fork();
    if (child == 0) {
        sim_enter("second");
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    raise(WTERMSIG(status));
}

/* ---- handles, scripts ----------------------------------------------------------------------- */

static void handles_are_counted(void)
{
    static char places[1000];

    for (int i = 0; i < 1000; i++) {
        sim_handle_add(&places[i], i % 2 != 0 ? "odd" : "even");
    }
    CHECK(sim_handle_count("odd") == 500 && sim_handle_is(&places[7], "odd"));
    CHECK(!sim_handle_is(&places[7], "even") && !sim_handle_is(NULL, "even"));
    for (int i = 0; i < 1000; i += 2) {
        sim_handle_remove(&places[i], "even", "self");
    }
    for (int i = 1; i < 1000; i += 2) {
        sim_handle_check(&places[i], "odd", "self");
        sim_handle_remove(&places[i], "odd", "self");
    }
    CHECK(sim_handle_count("odd") == 0 && sim_handle_count("even") == 0);
}

/* Run with SIM_FAIL="a:2=77,*:5,b:*=9" and SIM_REPORT: test_engine.sh checks the report. */
static void scripts_fail_calls(void)
{
    sim_failure = 555;
    CHECK(sim_enter("a") == 0);
    CHECK(sim_enter("a") == 77);
    CHECK(sim_enter("a") == 0);
    CHECK(sim_enter("b") == 9);
    CHECK(sim_enter("a") == 555);
    CHECK(sim_enter("b") == 9);
    CHECK(sim_enter("c") == 0);
    sim_handle_add(&gate, "stream");
    sim_handle_add(&steps, "stream");
    device_memory(16);
}

static void ends_at_once(void)
{
    CHECK(sim_enter("a") == 0);
    CHECK(sim_enter("a") != 0 || getenv("SIM_FAIL") == NULL);
    sim_handle_add(&gate, "event");
    CHECK(sim_alloc(0, 16, 0, SIM_PINNED, 0) != NULL);
    _exit(0);
}

/* Run with SIM_LOSE=0@copy:2. */
static void a_lost_device_wakes_everybody(void)
{
    struct sim_stream *stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *other = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_stream *elsewhere = sim_stream_create(1, SIM_STREAM_NON_BLOCKING, 0);
    struct sim_event *never = sim_event_create(0, 0);
    struct sim_event *event = sim_event_create(0, 0);
    unsigned char *memory = device_memory(SIZE);

    CHECK(sim_event_reset(never) == 0);
    CHECK(sim_stream_wait_event(other, never) == 0);
    CHECK(sim_submit_fill(stream, memory, "\0", 1, SIZE) == 0);
    CHECK(sim_submit_copy(stream, memory, memory, 16) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
    CHECK(sim_submit_task(stream, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_copy(stream, memory, buffer[0], SIZE) == 0);
    CHECK(sim_submit_task(stream, count_step, NULL) == 0);
    CHECK(sim_submit_step(stream, note, NULL) == 0);
    CHECK(sim_event_record(event, stream) == 0);
    CHECK(sim_stream_wait_event(elsewhere, event) == 0);
    open_gate(&gate);
    CHECK(sim_event_synchronize(event, FOR_EVER) == -1);
    CHECK(sim_is_lost(0) && !sim_is_lost(1));
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == -1 && sim_stream_query(stream) == -1);
    CHECK(sim_stream_synchronize(other, FOR_EVER) == -1);
    CHECK(sim_event_synchronize(never, FOR_EVER) == -1);
    CHECK(sim_stream_synchronize(elsewhere, FOR_EVER) == 0);
    CHECK(sim_submit_task(stream, count_step, NULL) == -1 && sim_device_synchronize(0) == -1);
    CHECK(atomic_load(&steps) == 0 && atomic_load(&order_count) == 1);
    CHECK(memcmp(sim_bytes(memory), buffer[0], SIZE / 2) == 0); /* half of the bytes are copied */
    CHECK(((unsigned char *)sim_bytes(memory))[SIZE / 2 + 1] == 0);
    sim_device_reset(0);
    CHECK(!sim_is_lost(0) && sim_submit_task(stream, count_step, NULL) == 0);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0 && atomic_load(&steps) == 1);
    sim_event_destroy(event);
    sim_event_destroy(never);
    sim_stream_destroy(stream);
    sim_stream_destroy(other);
    sim_stream_destroy(elsewhere);
    give_back(memory);
}

/* ---- processes ------------------------------------------------------------------------------ */

struct message {
    unsigned char memory[64], event[64];
};

/* Writes 1 to the memory that the parent has filled with buffer[0], after the parent's event;
 * returns 0 on success. */
static int other_process(int in, int out)
{
    struct sim_stream *stream;
    struct sim_event *event;
    struct message message;
    uint64_t size_bytes = 0;
    void *memory, *again;
    char byte = 'r';

    prepare();
    stream = sim_stream_create(1, SIM_STREAM_NON_BLOCKING, 0);
    CHECK(read(in, &message, sizeof(message)) == sizeof(message));
    memory = sim_import(1, message.memory, &size_bytes);
    again = sim_import(1, message.memory, &size_bytes);
    event = sim_event_import(1, message.event);
    CHECK(memory != NULL && memory == again && size_bytes == SIZE && event != NULL);
    CHECK(sim_event_query(event) == 1);
    CHECK(sim_stream_wait_event(stream, event) == 0);
    CHECK(sim_submit_copy(stream, buffer[1], memory, SIZE) == 0);
    CHECK(sim_submit_fill(stream, memory, "\1", 1, SIZE) == 0);
    CHECK(sim_stream_query(stream) == 1);
    CHECK(write(out, &byte, 1) == 1);
    CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
    CHECK(is_equal(buffer[0], buffer[1]) && sim_event_query(event) == 0);
    CHECK(sim_import_close(memory) && sim_import_close(memory) && !sim_import_close(memory));
    sim_event_destroy(event);
    CHECK(write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1);
    CHECK(sim_import(1, message.memory, &size_bytes) == NULL); /* the parent has freed it */
    return 0;
}

static void memory_and_events_cross_processes(void)
{
    struct sim_stream *stream;
    struct sim_event *event;
    struct message message;
    int to[2], from[2];
    int status = 0;
    pid_t child;
    void *memory;
    char byte;

    CHECK(pipe(to) == 0 && pipe(from) == 0);
    child = fork(); /* forked before the first use of the engine */
    if (child == 0) {
        exit(other_process(to[0], from[1]));
    }
    stream = sim_stream_create(0, SIM_STREAM_NON_BLOCKING, 0);
    event = sim_event_create(0, 0);
    memory = device_memory(SIZE);
    CHECK(sim_submit_task(stream, wait_at_gate, &gate) == 0);
    CHECK(sim_submit_copy(stream, memory, buffer[0], SIZE) == 0);
    CHECK(sim_export(memory, message.memory) && !sim_export((char *)memory + 1, message.memory));
    CHECK(sim_event_export(event, message.event));
    CHECK(sim_event_record(event, stream) == 0);
    CHECK(write(to[1], &message, sizeof(message)) == sizeof(message));
    CHECK(read(from[0], &byte, 1) == 1);
    open_gate(&gate);
    CHECK(read(from[0], &byte, 1) == 1);
    CHECK(*(unsigned char *)sim_bytes(memory) == 1);
    give_back(memory);
    CHECK(write(to[1], &byte, 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    sim_event_destroy(event);
    sim_stream_destroy(stream);
}

static void descriptors_name_memory(void)
{
    unsigned char *memory = device_memory(SIZE);
    void *same;
    int fd;

    memcpy(sim_bytes(memory), buffer[0], SIZE);
    fd = sim_export_fd(memory, SIZE);
    CHECK(fd >= 0);
    same = sim_import_fd(1, fd, 256, SIZE - 256);
    CHECK(same != NULL && memcmp(sim_bytes(same), buffer[0] + 256, SIZE - 256) == 0);
    CHECK(sim_import_fd(1, fd, 0, UINT64_C(1) << 40) == NULL);
    CHECK(sim_import_close(same));
    close(fd);
    give_back(memory);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *work_alone(void *argument)
{
    uint32_t physical = (uint32_t)(uintptr_t)argument % 2;
    struct sim_stream *stream = sim_stream_create(physical, 0, 0);
    struct sim_event *event = sim_event_create(physical, 0);
    unsigned char *own = calloc(2, 4096);

    CHECK(own != NULL);
    for (unsigned round = 0; round < 50; round++) {
        void *memory = sim_alloc(physical, 4096, 0, SIM_DEVICE, 0);

        CHECK(sim_enter("round") == 0 && memory != NULL);
        sim_handle_add(memory, "memory");
        memset(own, (int)(round + physical), 4096);
        CHECK(sim_submit_copy(stream, memory, own, 4096) == 0);
        CHECK(sim_event_record(event, stream) == 0);
        CHECK(sim_stream_wait_event(stream, event) == 0);
        CHECK(sim_submit_copy(stream, own + 4096, memory, 4096) == 0);
        CHECK(sim_stream_synchronize(stream, FOR_EVER) == 0);
        CHECK(memcmp(own, own + 4096, 4096) == 0);
        sim_handle_remove(memory, "memory", "self");
        give_back(memory);
    }
    sim_event_destroy(event);
    sim_stream_destroy(stream);
    free(own);
    return NULL;
}

static void threads_do_not_disturb_each_other(void)
{
    struct sim_stream *main = sim_stream_create(0, SIM_STREAM_DEFAULT, 0);
    pthread_t threads[6];

    for (uintptr_t i = 0; i < 6; i++) {
        CHECK(pthread_create(&threads[i], NULL, work_alone, (void *)i) == 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(sim_submit_task(main, count_step, NULL) == 0);
        CHECK(sim_stream_synchronize(main, FOR_EVER) == 0);
    }
    for (int i = 0; i < 6; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(atomic_load(&steps) == 20);
    sim_stream_destroy(main);
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* Uses tests/sim/machines/node-8gpu.json. */
static void orders_name_the_same_devices(void)
{
    uint32_t count, by_pci[ORDER], fastest[ORDER], shuffled[ORDER];

    count = sim_order("pci", "pci", by_pci, ORDER);
    CHECK(count == 8 && sim_device_count("cuda") == 10);
    CHECK(sim_order("fastest", "pci", fastest, ORDER) == 8);
    CHECK(sim_order("shuffled", "pci", shuffled, ORDER) == 8);
    for (uint32_t i = 1; i < count; i++) {
        CHECK(strcmp(sim_device_at(by_pci[i - 1])->pci_address,
                     sim_device_at(by_pci[i])->pci_address) < 0);
        CHECK(sim_device_at(fastest[i - 1])->speed >= sim_device_at(fastest[i])->speed);
        CHECK(sim_number(sim_device_at(shuffled[i - 1]), "shuffle", -1) <
              sim_number(sim_device_at(shuffled[i]), "shuffle", -1));
    }
    for (uint32_t i = 0; i < 10; i++) {
        const struct sim_device *device = sim_device_at(i);

        CHECK(device->is_partition == (device->parent >= 0));
        CHECK(!device->is_partition || sim_device_at((uint32_t)device->parent)->is_partitioned);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) \
    { \
#name, name \
    }
    CASE(copies_are_asynchronous),
    CASE(a_stream_keeps_its_order),
    CASE(a_destroyed_stream_ends_its_work),
    CASE(the_default_stream_and_others_wait_for_each_other),
    CASE(fills_repeat_their_pattern),
    CASE(events_carry_waits_across_streams),
    CASE(a_wait_takes_the_mark_of_its_moment),
    CASE(event_times_follow_the_work),
    CASE(signals_stay_until_a_reset),
    CASE(captures_become_graphs),
    CASE(broken_captures_give_no_graph),
    CASE(updates_take_other_parameters),
    CASE(memory_is_counted),
    CASE(host_memory_is_known),
    CASE(virtual_memory_is_one_range),
    CASE(handles_are_counted),
    CASE(scripts_fail_calls),
    CASE(ends_at_once),
    CASE(a_lost_device_wakes_everybody),
    CASE(memory_and_events_cross_processes),
    CASE(descriptors_name_memory),
    CASE(threads_do_not_disturb_each_other),
    CASE(orders_name_the_same_devices),
#undef CASE
#define CASE(name) \
    { \
        "dies:" #name, name \
    }
    CASE(the_host_touches_device_memory),
    CASE(the_host_touches_freed_pinned_memory),
    CASE(a_copy_of_freed_memory),
    CASE(a_copy_beyond_the_end),
    CASE(free_twice),
    CASE(free_of_a_middle),
    CASE(a_destroyed_handle),
    CASE(a_handle_of_another_kind),
    CASE(a_call_in_a_child),
#undef CASE
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc == 1) {
            puts(cases[i].name);
        } else if (strcmp(argv[1], cases[i].name) == 0) {
            /* A case that forks must find an unused engine in its child. */
            prepare();
            cases[i].run();
            return 0;
        }
    }
    return argc == 1 ? 0 : 2;
}
