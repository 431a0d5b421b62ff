/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin with option async: the order of random work is checked with a model. */
#include "cpu_async.h"

#include <stdatomic.h>

/* ---- a model -------------------------------------------------------------------------------- */

/*
 * Random work on four streams, compared with its required order. Each stream has a counter that
 * only its own tasks increment. Before an event is recorded, the stream copies its counter to the
 * variable `place` of that recording. After a stream waited for an event, it copies the recording's
 * `place` to the variable `place` of that wait, which must then contain the counter's value at the
 * recording. Every task also gets the next number of one sequence. The number must be higher than
 * the numbers of the previous task of the same stream, and of the latest task before each event for
 * which the stream waited since that task.
 */
enum {
    STREAMS = 4,
    EVENTS = 16,
    OPERATIONS = 100000
};

struct task {
    uint64_t *counter;
    uint64_t value;
    uint64_t sequence; /* number that the task got when it ran, from 1 */
};

struct recording {
    uint64_t place; /* the stream's counter, copied by the stream before the recording */
    uint64_t value; /* the expected value of place */
    int task;       /* the latest task of the stream before the recording, or -1 */
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
} orders[2 * OPERATIONS]; /* pairs of tasks whose order is required */
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
    uint64_t counters[STREAMS];   /* incremented by the workers */
    uint64_t values[STREAMS];     /* expected values of the counters after all queued work */
    int latest[STREAMS];          /* the latest task of each stream, or -1 */
    int pending[STREAMS][EVENTS]; /* tasks that must precede the stream's next task, or -1 */
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
    case 0: /* replace a stream that has work; the new stream waits for an event of the old one */
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
