/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Functions shared by the tests of the cpu plugin with option async. A gate blocks a stream: the
 * host task pass_gate() waits until the test opens the gate, so that the work queued after the task
 * stays pending.
 */
#ifndef DS_ACCEL_TESTS_PLUGINS_CPU_ASYNC_H
#define DS_ACCEL_TESTS_PLUGINS_CPU_ASYNC_H

#include "fixture.h"
#include "table.h"

#include <pthread.h>

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

static inline void create_context(const char *machine_root)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "cpu";
    options.package_config_dir = TEST_SOURCE "/conf";
    options.machine_root = machine_root;
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK, "%s", ds_accel_last_error());
}

static inline void open_device(void)
{
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
}

static inline void open_cpu(void)
{
    create_context(NULL);
    open_device();
}

static inline void close_cpu(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool is_reached; /* a worker is waiting at the gate, or has passed it */
};

#define GATE \
    { \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false \
    }

static inline void pass_gate(void *data, int32_t status)
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

static inline void open_gate(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static inline void wait_for_arrival(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static inline ds_accel_plugin_stream_t *make_stream(void)
{
    ds_accel_plugin_stream_t *stream = NULL;

    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    return stream;
}

static inline ds_accel_plugin_event_t *make_event(void)
{
    ds_accel_plugin_event_t *event = NULL;

    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &event, &error));
    return event;
}

static inline void hold(ds_accel_plugin_stream_t *stream, struct gate *gate)
{
    ASSERT_OK(table->stream_host_task(stream, pass_gate, gate, &error));
}

static inline void put(ds_accel_plugin_stream_t *stream, unsigned char *target, unsigned char value)
{
    ASSERT_OK(table->mem_fill_async(stream, target, &value, 1, 1, &error));
}

static inline void copy(ds_accel_plugin_stream_t *stream, void *target, const void *source,
                        uint64_t size)
{
    ASSERT_OK(table->mem_copy_async(stream, target, source, size, DS_ACCEL_COPY_INFER, &error));
}

static inline void finish(ds_accel_plugin_stream_t *stream)
{
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
}

#endif
