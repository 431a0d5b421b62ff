/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cpu plugin with option async: streams that are queues with a thread each. What shall be
 * pending is held behind a gate, a host task that waits until the test opens it; nothing here
 * depends on how long something takes.
 */
#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* gcc and clang say differently that a sanitizer's runtime is there. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIMITS_DO_NOTHING 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_DO_NOTHING 1
#endif
#ifndef LIMITS_DO_NOTHING
#define LIMITS_DO_NOTHING 0
#endif

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
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

static void create_context(const char *machine_root)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "cpu";
    options.package_config_dir = TEST_SOURCE "/conf";
    options.machine_root = machine_root;
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
}

static void open_device(void)
{
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
}

static void open_cpu(void)
{
    create_context(NULL);
    open_device();
}

static void close_cpu(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static void ask_for_async(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
}

TestSuite(plugin_cpu_async, .init = ask_for_async, .timeout = 120);

/* ---- gates ---------------------------------------------------------------------------------- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool is_reached; /* a worker stands before it, or has passed */
};

#define GATE \
    { \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false \
    }

static void pass_gate(void *data, int32_t status)
{
    struct gate *gate = data;

    (void)status;
    pthread_mutex_lock(&gate->lock);
    gate->is_reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void wait_for_arrival(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
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

    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &event, &error));
    return event;
}

static void hold(ds_accel_plugin_stream_t *stream, struct gate *gate)
{
    ASSERT_OK(table->stream_host_task(stream, pass_gate, gate, &error));
}

static void put(ds_accel_plugin_stream_t *stream, unsigned char *target, unsigned char value)
{
    ASSERT_OK(table->mem_fill_async(stream, target, &value, 1, 1, &error));
}

static void copy(ds_accel_plugin_stream_t *stream, void *target, const void *source, uint64_t size)
{
    ASSERT_OK(table->mem_copy_async(stream, target, source, size, DS_ACCEL_COPY_INFER, &error));
}

static void finish(ds_accel_plugin_stream_t *stream)
{
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
}

/* ---- what the backend says of itself -------------------------------------------------------- */

Test(plugin_cpu_async, says_that_it_is_not_synchronized)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    char *report;

    open_cpu();
    EXPECT_OK(ds_accel_device_info(device, &info));
    cr_expect_eq(info.flags &
                     (DS_ACCEL_FLAG_SYNCHRONIZED | DS_ACCEL_FLAG_HOST_TIMERS |
                      DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES | DS_ACCEL_FLAG_HANDLES_BACKPRESSURE |
                      DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS),
                 0);
    cr_expect_neq(info.flags & DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY, 0);
    report = test_report(context, DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report, "\"is_synchronized_device\": false");
    EXPECT_HAS(report, "\"use_host_timers\": false");
    ds_accel_free_text(report);
    close_cpu();
}

Test(plugin_cpu_async, an_option_that_is_none_is_refused)
{
    struct ds_accel_candidate candidate;

    setenv("DS_ACCEL_CPU_ASYNC", "yes", 1);
    create_context(NULL);
    cr_expect_lt(ds_accel_detect(context), 0);
    candidate = test_candidate(context, "cpu");
    cr_expect_str_eq(candidate.reason, "bad_option");
    EXPECT_HAS(candidate.detail, "option async: \"yes\" is neither \"true\" nor \"false\"");
    ds_accel_destroy(context);
}

/* ---- order ---------------------------------------------------------------------------------- */

struct note {
    int *list;
    int *count;
    int value;
};

static void take_note(void *data, int32_t status)
{
    const struct note *note = data;

    note->list[(*note->count)++] = status == DS_ACCEL_OK ? note->value : -1;
}

Test(plugin_cpu_async, the_work_of_a_stream_is_done_in_order)
{
    enum {
        COUNT = 5000
    };
    static struct note notes[COUNT];
    static int list[COUNT];
    ds_accel_plugin_stream_t *stream;
    int count = 0;

    open_cpu();
    stream = make_stream();
    for (int i = 0; i < COUNT; i++) {
        notes[i] = (struct note){list, &count, i};
        ASSERT_OK(table->stream_host_task(stream, take_note, &notes[i], &error));
    }
    finish(stream);
    cr_assert_eq(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(list[i], i);
    }
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, a_call_returns_before_its_work_is_done)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    unsigned char from[100];
    unsigned char to[100] = {0};

    open_cpu();
    stream = make_stream();
    event = make_event();
    memset(from, 7, sizeof(from));
    EXPECT_OK(table->stream_query(stream, &error));
    hold(stream, &gate);
    copy(stream, to, from, sizeof(to));
    EXPECT_OK(table->event_record(event, stream, &error));
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    cr_expect_eq(to[0], 0);
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    cr_expect(to[0] == 7 && to[99] == 7);
    EXPECT_OK(table->event_query(event, &error));
    finish(stream);
    EXPECT_OK(table->stream_query(stream, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, streams_do_not_wait_for_each_other)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_stream_t *standard;
    unsigned char bytes[3] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    hold(first, &gate);
    put(first, &bytes[0], 1);
    wait_for_arrival(&gate);
    put(second, &bytes[1], 2);
    put(standard, &bytes[2], 3);
    finish(second);
    finish(standard);
    cr_expect(bytes[0] == 0 && bytes[1] == 2 && bytes[2] == 3);
    cr_expect_eq(table->stream_query(first, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(first);
    cr_expect_eq(bytes[0], 1);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, a_wait_for_an_event_orders_streams)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char source = 0;
    unsigned char target = 9;

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_wait_event(second, event, &error)); /* never recorded: nothing */
    finish(second);
    hold(first, &gate);
    put(first, &source, 5);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &target, &source, 1);
    EXPECT_OK(table->stream_wait_event(first, event, &error)); /* of its own: no circle */
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_synchronize(second, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    open_gate(&gate);
    finish(second);
    cr_expect_eq(target, 5);
    finish(first);
    table->event_destroy(event);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

/* The second recording lies behind a gate that opens only after the waiting stream is done. */
Test(plugin_cpu_async, a_wait_is_for_the_recording_at_the_time_of_the_call)
{
    struct gate early = GATE;
    struct gate late = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char bytes[2] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    hold(first, &early);
    put(first, &bytes[0], 1);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &bytes[1], &bytes[0], 1);
    hold(first, &late);
    EXPECT_OK(table->event_record(event, first, &error));
    open_gate(&early);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    open_gate(&late);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    table->event_destroy(event);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, an_event_may_go_while_a_stream_waits_for_it)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    unsigned char bytes[2] = {0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    event = make_event();
    hold(first, &gate);
    put(first, &bytes[0], 1);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    copy(second, &bytes[1], &bytes[0], 1);
    table->event_destroy(event);
    table->stream_destroy(first);
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, the_work_of_a_destroyed_stream_is_done)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    unsigned char byte = 0;

    open_cpu();
    stream = make_stream();
    event = make_event();
    hold(stream, &gate);
    put(stream, &byte, 4);
    EXPECT_OK(table->event_record(event, stream, &error));
    table->stream_destroy(stream); /* returns, though nobody has opened the gate */
    cr_expect_eq(byte, 0);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->device_synchronize(handle, 0, &error), DS_ACCEL_ERR_TIMEOUT, "work is left");
    open_gate(&gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    cr_expect_eq(byte, 4);
    EXPECT_OK(table->event_query(event, &error));
    stream = make_stream();
    hold(stream, &gate);
    put(stream, &byte, 5);
    table->stream_destroy(stream);
    table->event_destroy(event);
    close_cpu(); /* waits for it */
    cr_expect_eq(byte, 5);
}

/* ---- waiting with an end -------------------------------------------------------------------- */

Test(plugin_cpu_async, waits_end_when_their_time_has_passed)
{
    static const uint64_t timeouts[] = {0, 1, 1000000};
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;

    open_cpu();
    stream = make_stream();
    event = make_event();
    hold(stream, &gate);
    EXPECT_OK(table->event_record(event, stream, &error));
    for (size_t i = 0; i < 3; i++) {
        EXPECT_FAIL(table->stream_synchronize(stream, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "stream_synchronize: work is left");
        EXPECT_FAIL(table->device_synchronize(handle, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "device_synchronize: work is left");
        EXPECT_FAIL(table->event_synchronize(event, timeouts[i], &error), DS_ACCEL_ERR_TIMEOUT,
                    "event_synchronize: the event is not reached");
    }
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX - 1, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX - 1, &error));
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_OK(table->stream_synchronize(stream, 0, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, a_device_waits_for_its_own_streams)
{
    struct gate gate = GATE;
    ds_accel_device_t *second;
    ds_accel_plugin_device_t *second_handle;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *waiting;
    ds_accel_plugin_event_t *event;
    unsigned char byte = 0;

    setenv("LOCAL_SIZE", "2", 1);
    open_cpu();
    cr_assert_eq(ds_accel_device_open(context, 1, &second), DS_ACCEL_OK);
    second_handle = ds_accel_device_handle(second);
    ASSERT_OK(table->stream_create(second_handle, 0, 0, &stream, &error));
    waiting = make_stream();
    event = make_event();
    hold(stream, &gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    EXPECT_FAIL(table->device_synchronize(second_handle, 0, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    /* Events order streams of two devices too. */
    put(stream, &byte, 1);
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(waiting, event, &error));
    EXPECT_FAIL(table->device_synchronize(handle, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    open_gate(&gate);
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    cr_expect_eq(byte, 1);
    EXPECT_OK(table->device_synchronize(second_handle, UINT64_MAX, &error));
    table->event_destroy(event);
    table->stream_destroy(waiting);
    table->stream_destroy(stream);
    ds_accel_device_close(second);
    close_cpu();
}

static void sleep_a_little(void *data, int32_t status)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};

    (void)data;
    (void)status;
    nanosleep(&pause, NULL);
}

Test(plugin_cpu_async, events_measure_the_time_of_the_stream)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed = 0;

    open_cpu();
    stream = make_stream();
    start = make_event();
    end = make_event();
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->stream_host_task(stream, sleep_a_little, NULL, &error));
    hold(stream, &gate);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(start, UINT64_MAX, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event is not reached yet");
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, 5.0);
    table->event_destroy(start);
    table->event_destroy(end);
    table->stream_destroy(stream);
    close_cpu();
}

struct inner_calls {
    ds_accel_plugin_stream_t *stream;
    void *pointer;
    int32_t stream_status;
    int32_t device_status;
    int32_t free_status;
};

static void call_from_task(void *data, int32_t status)
{
    struct inner_calls *calls = data;
    struct ds_accel_error inner = {.struct_size = sizeof(inner)};

    (void)status;
    calls->stream_status = table->stream_synchronize(calls->stream, UINT64_MAX, &inner);
    calls->device_status = table->device_synchronize(handle, UINT64_MAX, &inner);
    calls->free_status = table->mem_free(handle, calls->pointer, &inner);
}

Test(plugin_cpu_async, a_host_task_that_would_wait_for_itself_is_told)
{
    struct inner_calls calls = {0};

    open_cpu();
    calls.stream = make_stream();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &calls.pointer, &error));
    ASSERT_OK(table->stream_host_task(calls.stream, call_from_task, &calls, &error));
    finish(calls.stream);
    cr_expect_eq(calls.stream_status, DS_ACCEL_ERR_STATE);
    cr_expect_eq(calls.device_status, DS_ACCEL_ERR_STATE);
    cr_expect_eq(calls.free_status, DS_ACCEL_ERR_STATE);
    EXPECT_OK(table->mem_free(handle, calls.pointer, &error));
    table->stream_destroy(calls.stream);
    close_cpu();
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *open_later(void *gate)
{
    wait_for_arrival(gate);
    open_gate(gate);
    return NULL;
}

Test(plugin_cpu_async, freeing_waits_for_the_work_of_every_stream)
{
    ds_accel_plugin_stream_t *stream;
    void *pointers[2] = {NULL, NULL};

    open_cpu();
    stream = make_stream();
    for (int pinned = 0; pinned < 2; pinned++) {
        struct gate gate = GATE;
        unsigned char done = 0;
        pthread_t thread;

        ASSERT_OK(pinned ? table->mem_alloc_pinned(handle, 4096, 0, 0, &pointers[1], &error)
                         : table->mem_alloc(handle, 1 << 20, 0, 0, &pointers[0], &error));
        hold(stream, &gate);
        put(stream, pointers[pinned], 1);
        put(stream, &done, 1);
        cr_assert_eq(pthread_create(&thread, NULL, open_later, &gate), 0);
        EXPECT_OK(pinned ? table->mem_free_pinned(handle, pointers[1], &error)
                         : table->mem_free(handle, pointers[0], &error));
        cr_expect_eq(done, 1);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, stream_ordered_memory_is_freed_when_the_stream_gets_there)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;
    void *more = NULL;

    open_cpu();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    EXPECT_OK(table->mem_set_limit(handle, 1 << 20, &error));
    ASSERT_OK(table->mem_alloc_async(stream, 1 << 20, 0, NULL, 0, &pointer, &error));
    hold(other, &gate);
    put(other, pointer, 3);
    EXPECT_OK(table->event_record(event, other, &error));
    EXPECT_OK(table->mem_free_async(stream, pointer, &event, 1, &error));
    EXPECT_FAIL(table->mem_free_async(stream, pointer, NULL, 0, &error), DS_ACCEL_ERR_INVALID,
                "released before");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY, "limit");
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    open_gate(&gate);
    finish(stream);
    EXPECT_OK(table->mem_alloc(handle, 1 << 20, 0, 0, &more, &error));
    EXPECT_OK(table->mem_free(handle, more, &error));
    EXPECT_FAIL(table->mem_alloc_async(stream, 1, 0, NULL, 1, &more, &error), DS_ACCEL_ERR_INVALID,
                "waits is NULL");
    table->event_destroy(event);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_cpu();
}

/* ---- a model -------------------------------------------------------------------------------- */

/*
 * Random work on four streams against what its order must be. Each stream has a counter that only
 * its own tasks raise; recording an event first copies the counter into a place of the recording's
 * own. A stream that waits for an event then copies that place into one of the wait's own, where
 * the counter at the recording must be found. Every task also draws a number from one sequence: it
 * must be higher than those of the task before it on its stream and of the tasks behind every event
 * that the stream waited for meanwhile.
 */
enum {
    STREAMS = 4,
    EVENTS = 16,
    OPERATIONS = 100000
};

struct task {
    uint64_t *counter;
    uint64_t value;
    uint64_t sequence; /* when it ran */
};

struct recording {
    uint64_t place; /* written by the stream */
    uint64_t value; /* what must stand there */
    int task;       /* the latest before it on its stream, or -1 */
};

struct waited {
    uint64_t place;
    const struct recording *recording;
};

static atomic_uint_fast64_t sequence;
static struct task tasks[OPERATIONS];
static struct recording recordings[OPERATIONS];
static struct waited waits[OPERATIONS];
static struct {
    int before;
    int after;
} orders[2 * OPERATIONS]; /* of tasks */
static int order_count;

static void run_task(void *data, int32_t status)
{
    struct task *task = data;

    (void)status;
    *task->counter = task->value;
    task->sequence = atomic_fetch_add(&sequence, 1) + 1;
}

static uint64_t random_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct model {
    ds_accel_plugin_stream_t *streams[STREAMS];
    uint64_t counters[STREAMS];   /* raised by the workers */
    uint64_t values[STREAMS];     /* what they will be */
    int latest[STREAMS];          /* the latest task, or -1 */
    int pending[STREAMS][EVENTS]; /* tasks that the next one comes after, or -1 */
    ds_accel_plugin_event_t *events[EVENTS];
    struct recording *recorded[EVENTS];
    int task_count;
    int recording_count;
    int wait_count;
};

static void add_task(struct model *model, uint64_t s)
{
    const int number = model->task_count++;

    tasks[number] = (struct task){&model->counters[s], ++model->values[s], 0};
    ASSERT_OK(table->stream_host_task(model->streams[s], run_task, &tasks[number], &error));
    if (model->latest[s] >= 0) {
        orders[order_count].before = model->latest[s];
        orders[order_count++].after = number;
    }
    for (int e = 0; e < EVENTS; e++) {
        if (model->pending[s][e] >= 0 && order_count < 2 * OPERATIONS) {
            orders[order_count].before = model->pending[s][e];
            orders[order_count++].after = number;
        }
        model->pending[s][e] = -1;
    }
    model->latest[s] = number;
}

static void add_recording(struct model *model, uint64_t s, uint64_t e)
{
    struct recording *recording = &recordings[model->recording_count++];

    *recording = (struct recording){0, model->values[s], model->latest[s]};
    copy(model->streams[s], &recording->place, &model->counters[s], sizeof(uint64_t));
    ASSERT_OK(table->event_record(model->events[e], model->streams[s], &error));
    model->recorded[e] = recording;
}

static void add_wait(struct model *model, uint64_t s, uint64_t e)
{
    struct waited *waited = &waits[model->wait_count];

    ASSERT_OK(table->stream_wait_event(model->streams[s], model->events[e], &error));
    if (model->recorded[e] != NULL) {
        model->wait_count++;
        *waited = (struct waited){UINT64_MAX, model->recorded[e]};
        copy(model->streams[s], &waited->place, &model->recorded[e]->place, sizeof(uint64_t));
        model->pending[s][e] = model->recorded[e]->task;
    }
}

static void step(struct model *model, uint64_t number)
{
    const uint64_t s = number / 1000 % STREAMS;
    const uint64_t e = number / 100000 % EVENTS;

    switch (number % 100) {
    case 0: /* a stream goes with its work, and a new one continues behind an event */
        add_recording(model, s, e);
        table->stream_destroy(model->streams[s]);
        model->streams[s] = make_stream();
        add_wait(model, s, e);
        break;
    case 1:
        table->event_destroy(model->events[e]);
        model->events[e] = make_event();
        model->recorded[e] = NULL;
        break;
    case 2:
        ASSERT_OK(table->event_synchronize(model->events[e], UINT64_MAX, &error));
        if (model->recorded[e] != NULL) {
            cr_assert_eq(model->recorded[e]->place, model->recorded[e]->value);
        }
        break;
    case 3:
        if (number / 7 % 10 == 0) {
            finish(model->streams[s]);
            cr_assert_eq(model->counters[s], model->values[s]);
        }
        break;
    default:
        if (number % 100 < 50) {
            add_task(model, s);
        } else if (number % 100 < 75) {
            add_recording(model, s, e);
        } else {
            add_wait(model, s, e);
        }
    }
}

Test(plugin_cpu_async, random_work_keeps_the_order_of_its_model)
{
    static struct model model;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    open_cpu();
    for (int i = 0; i < STREAMS; i++) {
        model.streams[i] = make_stream();
        model.latest[i] = -1;
        memset(model.pending[i], 0xff, sizeof(model.pending[i]));
    }
    for (int i = 0; i < EVENTS; i++) {
        model.events[i] = make_event();
    }
    for (int i = 0; i < OPERATIONS; i++) {
        step(&model, random_number(&state) >> 8);
    }
    EXPECT_OK(table->device_synchronize(handle, UINT64_MAX, &error));
    cr_expect_eq(atomic_load(&sequence), (uint64_t)model.task_count);
    for (int i = 0; i < order_count; i++) {
        cr_assert_lt(tasks[orders[i].before].sequence, tasks[orders[i].after].sequence);
    }
    for (int i = 0; i < model.wait_count; i++) {
        cr_assert_eq(waits[i].place, waits[i].recording->value);
    }
    cr_expect_gt(model.wait_count, OPERATIONS / 10);
    cr_expect_gt(order_count, OPERATIONS / 2);
    for (int i = 0; i < STREAMS; i++) {
        table->stream_destroy(model.streams[i]);
    }
    for (int i = 0; i < EVENTS; i++) {
        table->event_destroy(model.events[i]);
    }
    close_cpu();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_graph_exec_t *end_capture(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    return exec;
}

Test(plugin_cpu_async, a_launch_is_work_of_its_stream)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char bytes[3] = {0};

    open_cpu();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    copy(stream, &bytes[1], &bytes[0], 1);
    ASSERT_OK(table->event_record(event, stream, &error));
    copy(stream, &bytes[2], &bytes[1], 1);
    exec = end_capture(stream);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "not launched yet");
    hold(stream, &gate);
    for (unsigned char round = 1; round < 4; round++) {
        put(stream, &bytes[0], round);
        EXPECT_OK(table->graph_launch(exec, stream, &error));
    }
    table->graph_exec_destroy(exec); /* three launches are pending */
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    cr_expect(bytes[1] == 0 && bytes[2] == 0);
    open_gate(&gate);
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    finish(stream);
    cr_expect(bytes[1] == 3 && bytes[2] == 3);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu_async, launches_of_one_exec_follow_each_other)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char bytes[2] = {1, 0};

    open_cpu();
    first = make_stream();
    second = make_stream();
    ASSERT_OK(table->graph_capture_begin(first, 0, &error));
    copy(first, &bytes[1], &bytes[0], 1);
    exec = end_capture(first);
    hold(first, &gate);
    EXPECT_OK(table->graph_launch(exec, first, &error));
    EXPECT_OK(table->graph_launch(exec, second, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_synchronize(second, 1000000, &error), DS_ACCEL_ERR_TIMEOUT, "left");
    cr_expect_eq(bytes[1], 0);
    open_gate(&gate);
    finish(second);
    cr_expect_eq(bytes[1], 1);
    table->graph_exec_destroy(exec);
    table->stream_destroy(first);
    table->stream_destroy(second);
    close_cpu();
}

Test(plugin_cpu_async, an_updated_exec_leaves_pending_launches_as_they_were)
{
    struct gate gate = GATE;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char bytes[2] = {0};
    uint32_t result = 0;

    open_cpu();
    stream = make_stream();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    put(stream, &bytes[0], 1);
    exec = end_capture(stream);
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    put(stream, &bytes[1], 2);
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    hold(stream, &gate);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->graph_exec_update(exec, graph, &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    open_gate(&gate);
    finish(stream);
    cr_expect(bytes[0] == 1 && bytes[1] == 0);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    finish(stream);
    cr_expect_eq(bytes[1], 2);
    table->graph_destroy(graph);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

static uint32_t capture_state(ds_accel_plugin_stream_t *stream)
{
    uint32_t state = 99;

    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    return state;
}

static int32_t keep_text(void *kept, const char *text, uint64_t text_bytes)
{
    strncat(kept, text, text_bytes);
    return DS_ACCEL_OK;
}

/* A diamond: fill on one, copies of it on both, a copy of the other's behind the join. */
Test(plugin_cpu_async, a_stream_that_waits_for_a_capture_is_drawn_into_it)
{
    ds_accel_plugin_stream_t *streams[2];
    ds_accel_plugin_event_t *fork_event;
    ds_accel_plugin_event_t *join_event;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char bytes[5] = {6, 0, 0, 0, 0};
    char text[4096] = "";

    open_cpu();
    streams[0] = make_stream();
    streams[1] = make_stream();
    fork_event = make_event();
    join_event = make_event();
    ASSERT_OK(table->graph_capture_begin(streams[0], 0, &error));
    copy(streams[0], &bytes[1], &bytes[0], 1);                      /* 0 */
    ASSERT_OK(table->event_record(fork_event, streams[0], &error)); /* 1 */
    ASSERT_OK(table->stream_wait_event(streams[1], fork_event, &error));
    cr_expect_eq(capture_state(streams[1]), DS_ACCEL_CAPTURING_YES);
    copy(streams[1], &bytes[2], &bytes[1], 1);                      /* 2 */
    copy(streams[0], &bytes[3], &bytes[1], 1);                      /* 3 */
    ASSERT_OK(table->event_record(join_event, streams[1], &error)); /* 4 */
    ASSERT_OK(table->stream_wait_event(streams[0], join_event, &error));
    copy(streams[0], &bytes[4], &bytes[2], 1); /* 5 */
    cr_expect_eq(bytes[1], 0);
    ASSERT_OK(table->graph_capture_end(streams[0], &graph, &error));
    cr_expect_eq(capture_state(streams[1]), DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    EXPECT_HAS(text, "n1 -> n2;");
    EXPECT_HAS(text, "n1 -> n3;");
    EXPECT_HAS(text, "n3 -> n5;");
    EXPECT_HAS(text, "n4 -> n5;");
    EXPECT_HAS_NOT(text, "n2 -> n3;");
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    EXPECT_OK(table->graph_launch(exec, streams[1], &error));
    EXPECT_OK(table->event_synchronize(join_event, UINT64_MAX, &error));
    finish(streams[1]);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(bytes[i], 6);
    }
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->event_destroy(fork_event);
    table->event_destroy(join_event);
    table->stream_destroy(streams[0]);
    table->stream_destroy(streams[1]);
    close_cpu();
}

/* Begin on one stream, and draw the other in behind an event. */
static ds_accel_plugin_event_t *fork_capture(ds_accel_plugin_stream_t *origin,
                                             ds_accel_plugin_stream_t *other)
{
    ds_accel_plugin_event_t *event = make_event();

    ASSERT_OK(table->graph_capture_begin(origin, 0, &error));
    ASSERT_OK(table->event_record(event, origin, &error));
    ASSERT_OK(table->stream_wait_event(other, event, &error));
    return event;
}

Test(plugin_cpu_async, captures_of_two_streams_that_cannot_be_are_refused)
{
    ds_accel_plugin_stream_t *origin;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_event_t *outside;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char byte = 0;

    open_cpu();
    origin = make_stream();
    other = make_stream();
    outside = make_event();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));

    event = fork_capture(origin, other);
    EXPECT_FAIL(table->stream_wait_event(standard, event, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't be drawn into");
    put(other, &byte, 1);
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_NO);
    put(other, &byte, 2); /* it runs: the capture is over */
    finish(other);
    cr_expect_eq(byte, 2);
    EXPECT_FAIL(table->stream_wait_event(other, event, &error), DS_ACCEL_ERR_STATE,
                "was not launched since");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    EXPECT_FAIL(table->graph_capture_end(other, &graph, &error), DS_ACCEL_ERR_STATE,
                "began on another stream");
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "to be ended on a stream that was drawn into it");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    EXPECT_OK(table->event_record(outside, standard, &error));
    EXPECT_FAIL(table->stream_wait_event(other, outside, &error), DS_ACCEL_ERR_STATE,
                "recorded outside of the capture");
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_BROKEN);
    EXPECT_FAIL(table->mem_fill_async(origin, &byte, "\x03", 1, 1, &error), DS_ACCEL_ERR_STATE,
                "is broken");
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE, "is broken");
    table->event_destroy(event);

    event = fork_capture(origin, other);
    put(other, &byte, 3);
    table->stream_destroy(other);
    cr_expect_eq(capture_state(origin), DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_end(origin, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    table->event_destroy(event);

    other = make_stream();
    event = fork_capture(origin, other);
    table->stream_destroy(origin);
    cr_expect_eq(capture_state(other), DS_ACCEL_CAPTURING_NO);
    cr_expect_eq(byte, 2);
    table->event_destroy(event);
    table->event_destroy(outside);
    table->stream_destroy(other);
    close_cpu();
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Call with each thread of this process but the calling one; how many there are. */
static int each_thread(void (*visit)(pid_t thread, void *data), void *data)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    cr_assert_not_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);

        if (thread > 0 && thread != (pid_t)syscall(SYS_gettid)) {
            count++;
            if (visit != NULL) {
                visit(thread, data);
            }
        }
    }
    closedir(folder);
    return count;
}

/* A joined thread may be listed a moment longer: it wakes who joins it before it is gone. */
static void expect_threads(int count)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};

    for (int i = 0; i < 10000 && each_thread(NULL, NULL) > count; i++) {
        nanosleep(&pause, NULL);
    }
    cr_expect_eq(each_thread(NULL, NULL), count);
}

static void read_thread(pid_t thread, const char *file, char *text, size_t text_size)
{
    char path[64];
    FILE *stream;
    size_t length;

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, file);
    stream = fopen(path, "r");
    cr_assert_not_null(stream);
    length = fread(text, 1, text_size - 1, stream);
    text[length] = '\0';
    fclose(stream);
}

/* A worker's name, and that no signal is delivered to it: those that can be blocked are. */
static void look_at_worker(pid_t thread, void *data)
{
    const uint64_t blockable = ~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1) |
                                 UINT64_C(3) << 31); /* 32 and 33 are the C library's own */
    char text[4096];
    const char *line;

    read_thread(thread, "comm", text, sizeof(text));
    if (strncmp(text, "ds-accel cpu0.", 14) != 0) {
        return;
    }
    (*(int *)data)++;
    read_thread(thread, "status", text, sizeof(text));
    line = strstr(text, "SigBlk:");
    cr_assert_not_null(line);
    cr_expect_eq(strtoull(line + 7, NULL, 16) & blockable, blockable, "%s", line);
}

Test(plugin_cpu_async, threads_come_with_the_first_work_and_go_with_their_streams)
{
    ds_accel_plugin_stream_t *streams[3];
    sigset_t before;
    sigset_t after;
    const int others = each_thread(NULL, NULL); /* a sanitizer may have one */
    int workers = 0;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    open_cpu();
    for (int i = 0; i < 3; i++) {
        streams[i] = make_stream();
    }
    cr_expect_eq(each_thread(NULL, NULL), others, "a thread without work");
    for (int i = 0; i < 2; i++) {
        unsigned char byte;

        put(streams[i], &byte, 1);
        finish(streams[i]);
    }
    expect_threads(others + 2);
    /* A thread names itself before it works, so that both have their names now. */
    each_thread(look_at_worker, &workers);
    cr_expect_eq(workers, 2);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        cr_expect_eq(sigismember(&before, signal), sigismember(&after, signal));
    }
    table->stream_destroy(streams[0]);
    expect_threads(others + 1);
    table->stream_destroy(streams[1]);
    table->stream_destroy(streams[2]);
    expect_threads(others);
    close_cpu();
    expect_threads(others);
}

/* Room for work, none for a thread's stack. */
Test(plugin_cpu_async, a_thread_that_cannot_start_leaves_the_stream_as_it_was)
{
    struct rlimit before;
    struct rlimit tight;
    ds_accel_plugin_stream_t *stream;
    unsigned long long pages = 0;
    unsigned char byte = 0;
    int32_t status;
    FILE *file;

    if (LIMITS_DO_NOTHING) {
        cr_skip_test("the sanitizer needs the address space");
    }
    open_cpu();
    stream = make_stream();
    file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
    cr_assert_eq(setrlimit(RLIMIT_AS, &tight), 0);
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    status = table->mem_fill_async(stream, &byte, "\1", 1, 1, &error);
    cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
    cr_expect(status == DS_ACCEL_ERR_LIMIT || status == DS_ACCEL_ERR_NO_MEMORY, "%d", status);
    EXPECT_HAS(error.message, "mem_fill_async: the stream's thread can't be started");
    EXPECT_OK(table->stream_query(stream, &error));
    put(stream, &byte, 2);
    finish(stream);
    cr_expect_eq(byte, 2);
    table->stream_destroy(stream);
    close_cpu();
}

static void note_cpus(void *data, int32_t status)
{
    (void)status;
    sched_getaffinity(0, sizeof(cpu_set_t), data);
}

/* Of a machine whose two nodes have one CPU each, of those that this process may use. */
Test(plugin_cpu_async, workers_run_on_the_node_of_their_device)
{
    ds_accel_device_t *devices[2];
    cpu_set_t allowed;
    cpu_set_t seen;
    char list[16];
    int cpus[2];
    int found = 0;

    cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            cpus[found++] = cpu;
        }
    }
    if (found < 2) {
        cr_skip_test("one CPU only");
    }
    test_write("machine/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    test_write("machine/proc/cpuinfo", "model name\t: A\n\n");
    test_write("machine/sys/devices/system/node/online", "0-1\n");
    for (int node = 0; node < 2; node++) {
        char path[96];

        snprintf(path, sizeof(path), "machine/sys/devices/system/node/node%d/cpulist", node);
        snprintf(list, sizeof(list), "%d\n", cpus[node]);
        test_write(path, list);
        snprintf(path, sizeof(path), "machine/sys/devices/system/node/node%d/meminfo", node);
        test_write(path, "Node 0 MemTotal: 524288 kB\nNode 0 MemFree: 262144 kB\n");
    }
    create_context(test_path("machine"));
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (uint32_t i = 0; i < 2; i++) {
        ds_accel_plugin_stream_t *stream;

        cr_assert_eq(ds_accel_device_open(context, i, &devices[i]), DS_ACCEL_OK, "%s",
                     ds_accel_last_error());
        table = ds_accel_device_table(devices[i]);
        ASSERT_OK(table->stream_get_default(ds_accel_device_handle(devices[i]), &stream, &error));
        CPU_ZERO(&seen);
        ASSERT_OK(table->stream_host_task(stream, note_cpus, &seen, &error));
        finish(stream);
        cr_expect_eq(CPU_COUNT(&seen), 1);
        cr_expect(CPU_ISSET(cpus[i], &seen), "device %u", i);
    }
    cr_assert_eq(sched_getaffinity(0, sizeof(seen), &seen), 0);
    cr_expect(CPU_EQUAL(&seen, &allowed));
    ds_accel_device_close(devices[0]);
    ds_accel_device_close(devices[1]);
    ds_accel_destroy(context);
}

/* ---- fork() --------------------------------------------------------------------------------- */

static int use_in_child(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                        void *pointer)
{
    unsigned char byte = 0;
    int right = 0;

    alarm(60); /* a hang shall end */
    right += table->stream_synchronize(stream, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += strstr(error.message, "forked") != NULL;
    right += table->stream_query(stream, &error) == DS_ACCEL_ERR_STATE;
    right += table->device_synchronize(handle, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_synchronize(event, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_query(event, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_fill_async(stream, &byte, &byte, 1, 1, &error) == DS_ACCEL_ERR_STATE;
    right += table->stream_wait_event(stream, event, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_record(event, stream, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_free(handle, pointer, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_alloc(handle, 100, 0, 0, &pointer, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_alloc_pinned(handle, 100, 0, 0, &pointer, &error) == DS_ACCEL_ERR_STATE;
    table->stream_destroy(stream);
    return right == 12 ? 0 : 1;
}

Test(plugin_cpu_async, a_forked_child_is_refused_and_does_not_hang)
{
    struct gate gate = GATE;
    struct ds_accel_plugin own;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;
    int status;
    pid_t child;

    open_cpu();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    hold(stream, &gate);
    EXPECT_OK(table->event_record(event, stream, &error));
    wait_for_arrival(&gate);
    own = *table; /* in the child the host's table answers by itself */
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        table = &own;
        _exit(use_in_child(stream, event, pointer));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", (unsigned)status);
    open_gate(&gate);
    finish(stream);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}
