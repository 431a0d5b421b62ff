/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin with option async: host tasks open and close devices while other threads close the
   same devices. */
#include "cpu_host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define LONG_ENOUGH_S 30  /* a test that runs longer is deadlocked */
#define A_MOMENT_US 50000 /* time for another thread to reach the call in which it waits */

static ds_accel_plugin_stream_t *make_stream_of(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_stream_t *stream = NULL;

    ASSERT_OK(table->stream_create(device, 0, 0, &stream, &error));
    return stream;
}

static ds_accel_plugin_device_t *open_index(uint32_t index)
{
    ds_accel_plugin_device_t *device = NULL;
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    cr_assert_eq(table->device_open(instance, index, &device, &ignored), DS_ACCEL_OK, "%s",
                 ignored.message);
    return device;
}

static atomic_int task_count;

/* Host task: opens and closes a device while another thread closes the task's device. */
static void open_and_close(void *data, int32_t status)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    const uint32_t *index = data;
    ds_accel_plugin_device_t *device;

    (void)status;
    usleep(A_MOMENT_US);
    device = open_index(*index);
    cr_expect_eq(table->device_identity(instance, *index, &identity, &ignored), DS_ACCEL_OK);
    table->device_close(device);
    atomic_fetch_add(&task_count, 1);
}

Test(plugin_cpu_async, a_task_opens_and_closes_a_device_while_its_own_is_closed,
     .timeout = LONG_ENOUGH_S)
{
    static uint32_t first = 0;
    ds_accel_plugin_device_t *second;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->stream_host_task(make_stream_of(second), open_and_close, &first, &error));
    table->device_close(second);
    cr_expect_eq(atomic_load(&task_count), 1); /* closing waits for the work */
    close_cpu();
}

Test(plugin_cpu_async, a_task_opens_and_closes_the_device_that_is_being_closed,
     .timeout = LONG_ENOUGH_S)
{
    static uint32_t index = 1;
    ds_accel_plugin_device_t *second;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->stream_host_task(make_stream_of(second), open_and_close, &index, &error));
    table->device_close(second);
    cr_expect_eq(atomic_load(&task_count), 1);
    second = open_index(1);
    EXPECT_OK(table->device_synchronize(second, UINT64_MAX, &error));
    table->device_close(second);
    close_cpu();
}

static ds_accel_plugin_device_t *kept;

static void open_for_good(void *data, int32_t status)
{
    (void)data;
    (void)status;
    usleep(A_MOMENT_US);
    kept = open_index(1);
}

Test(plugin_cpu_async, a_device_that_a_task_opens_while_it_is_closed_is_open,
     .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_device_t *second;
    ds_accel_plugin_stream_t *stream;
    unsigned char byte = 0;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->stream_host_task(make_stream_of(second), open_for_good, NULL, &error));
    table->device_close(second);
    cr_assert_not_null(kept);
    stream = make_stream_of(kept);
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\7", 1, 1, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(byte, 7);
    table->device_close(kept);
    close_cpu();
}

static void close_device(void *data, int32_t status)
{
    (void)status;
    table->device_close(data);
    atomic_fetch_add(&task_count, 1);
}

/* The worker can't join itself, so that the device is closed when the instance is shut down. */
Test(plugin_cpu_async, a_task_may_be_the_last_to_close_its_device, .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_device_t *second;
    ds_accel_plugin_stream_t *stream;
    unsigned char byte = 0;

    open_cpu(2, "true");
    second = open_index(1);
    stream = make_stream_of(second);
    ASSERT_OK(table->stream_host_task(stream, close_device, second, &error));
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\7", 1, 1, &error));
    close_cpu();
    cr_expect_eq(atomic_load(&task_count), 1);
    cr_expect_eq(byte, 7);
}

/* Each of two tasks closes the device on which the other one runs. */
Test(plugin_cpu_async, tasks_may_close_each_others_devices, .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_device_t *first;
    ds_accel_plugin_device_t *second;
    ds_accel_plugin_stream_t *streams[2];

    open_cpu(2, "true");
    first = handle;
    second = open_index(1);
    streams[0] = make_stream_of(first);
    streams[1] = make_stream_of(second);
    ASSERT_OK(table->stream_host_task(streams[0], close_device, second, &error));
    ASSERT_OK(table->stream_host_task(streams[1], close_device, first, &error));
    table->shutdown(instance);
    cr_expect_eq(atomic_load(&task_count), 2);
    ds_accel_destroy(context);
}

#define ROUNDS 200

static void *open_and_close_often(void *data)
{
    uint32_t *index = data;

    for (int i = 0; i < ROUNDS; i++) {
        ds_accel_plugin_device_t *device = open_index(*index);
        ds_accel_plugin_stream_t *stream = NULL;
        struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

        cr_expect_eq(table->stream_create(device, 0, 0, &stream, &ignored), DS_ACCEL_OK);
        cr_expect_eq(table->device_synchronize(device, UINT64_MAX, &ignored), DS_ACCEL_OK);
        table->stream_destroy(stream);
        table->device_close(device);
    }
    return NULL;
}

static void count_task(void *data, int32_t status)
{
    (void)data;
    (void)status;
    table->device_close(open_index(1));
    atomic_fetch_add(&task_count, 1);
}

Test(plugin_cpu_async, devices_are_opened_and_closed_by_threads_and_tasks_at_once,
     .timeout = 2 * LONG_ENOUGH_S)
{
    static uint32_t index = 1;
    pthread_t threads[2];
    ds_accel_plugin_stream_t *stream;

    open_cpu(2, "true");
    stream = make_stream_of(handle);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, open_and_close_often, &index), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        ASSERT_OK(table->stream_host_task(stream, count_task, NULL, &error));
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(atomic_load(&task_count), ROUNDS);
    close_cpu();
}

/* ---- openings of a device that is being closed ---------------------------------------------- */

static atomic_int is_let_go;

static void hold_work(void *data, int32_t status)
{
    (void)data;
    (void)status;
    while (!atomic_load(&is_let_go)) {
        usleep(1000);
    }
}

static void *close_it(void *data)
{
    table->device_close(data);
    return NULL;
}

static void *let_go(void *data)
{
    (void)data;
    usleep(A_MOMENT_US);
    atomic_store(&is_let_go, 1);
    return NULL;
}

static uint64_t limit_of(ds_accel_plugin_device_t *device)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    ASSERT_OK(table->mem_info(device, &info, &error));
    return info.limit_bytes;
}

/* The memory limit of the closed device does not apply to the device opened again, although work of
   the closed one still runs. */
Test(plugin_cpu_async, a_device_is_opened_while_another_thread_closes_it, .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_device_t *second;
    ds_accel_plugin_stream_t *stream;
    pthread_t threads[2];
    unsigned char byte = 0;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->mem_set_limit(second, 4096, &error));
    ASSERT_OK(table->stream_host_task(make_stream_of(second), hold_work, NULL, &error));
    cr_assert_eq(pthread_create(&threads[0], NULL, close_it, second), 0);
    usleep(A_MOMENT_US);
    second = open_index(1);
    cr_expect_eq(limit_of(second), 0);
    stream = make_stream_of(second);
    ASSERT_OK(table->mem_fill_async(stream, &byte, "\7", 1, 1, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(byte, 7);
    cr_assert_eq(pthread_create(&threads[1], NULL, let_go, NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_OK(table->device_synchronize(second, UINT64_MAX, &error));
    table->device_close(second);
    close_cpu();
}

static void *open_for_task(void *data)
{
    usleep(A_MOMENT_US);
    *(ds_accel_plugin_device_t **)data = open_index(1);
    atomic_store(&is_let_go, 1);
    return NULL;
}

/* A host task on a device that is being closed waits for another thread, which opens that device
   again. */
Test(plugin_cpu_async, a_thread_that_a_task_waits_for_opens_the_device, .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_device_t *again = NULL;
    ds_accel_plugin_device_t *second;
    pthread_t thread;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->stream_host_task(make_stream_of(second), hold_work, NULL, &error));
    cr_assert_eq(pthread_create(&thread, NULL, open_for_task, &again), 0);
    table->device_close(second);
    pthread_join(thread, NULL);
    cr_assert_not_null(again);
    table->device_close(again);
    close_cpu();
}

Test(plugin_cpu_async, a_device_that_a_task_closed_last_is_opened_afresh, .timeout = LONG_ENOUGH_S)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_device_t *second;
    void *memory = NULL;

    open_cpu(2, "true");
    second = open_index(1);
    ASSERT_OK(table->mem_set_limit(second, 4096, &error));
    ASSERT_OK(table->mem_alloc(second, 100, 0, 0, &memory, &error));
    ASSERT_OK(table->stream_host_task(make_stream_of(second), close_device, second, &error));
    while (atomic_load(&task_count) == 0) {
        usleep(1000);
    }
    second = open_index(1);
    cr_expect_eq(limit_of(second), 0);
    ASSERT_OK(table->mem_stats(second, &stats, &error));
    cr_expect_eq(stats.alloc_count, 0);
    EXPECT_FAIL(table->mem_free(second, memory, &error), DS_ACCEL_ERR_INVALID, "no live memory");
    table->device_close(second);
    close_cpu();
}

/* Host task: opens a device, queues work on it, and closes it before the work is done. */
static void leave_work(void *data, int32_t status)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    ds_accel_plugin_device_t *device = open_index(*(const uint32_t *)data);
    ds_accel_plugin_stream_t *stream = NULL;

    (void)status;
    usleep(A_MOMENT_US);
    cr_expect_eq(table->stream_create(device, 0, 0, &stream, &ignored), DS_ACCEL_OK);
    cr_expect_eq(table->stream_host_task(stream, count_task, NULL, &ignored), DS_ACCEL_OK);
    table->device_close(device);
}

/* A task of device 1 queues work on device 0, and the task of device 0 opens device 1. */
Test(plugin_cpu_async, the_instance_stops_after_the_work_that_its_work_leaves,
     .timeout = LONG_ENOUGH_S)
{
    static uint32_t first = 0;

    open_cpu(2, "true");
    ASSERT_OK(table->stream_host_task(make_stream_of(open_index(1)), leave_work, &first, &error));
    table->shutdown(instance);
    cr_expect_eq(atomic_load(&task_count), 1);
    ds_accel_destroy(context);
}

static atomic_int wait_status;

/* Host task: sets another current device and waits for its own stream. The thread must still be
   recognised as a worker. */
static void wait_for_itself(void *data, int32_t status)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    ds_accel_plugin_device_t *device = open_index(1);
    uint32_t current = 9;

    (void)status;
    cr_expect_eq(table->device_set_current(device, &ignored), DS_ACCEL_OK);
    cr_expect_eq(table->device_get_current(instance, &current, &ignored), DS_ACCEL_OK);
    cr_expect_eq(current, 1);
    atomic_store(&wait_status, table->stream_synchronize(data, UINT64_MAX, &ignored));
    table->device_close(device);
    atomic_fetch_add(&task_count, 1);
}

Test(plugin_cpu_async, a_task_that_sets_its_current_device_is_told_that_it_waits_for_itself,
     .timeout = LONG_ENOUGH_S)
{
    ds_accel_plugin_stream_t *stream;

    open_cpu(2, "true");
    stream = make_stream_of(handle);
    ASSERT_OK(table->stream_host_task(stream, wait_for_itself, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(atomic_load(&wait_status), DS_ACCEL_ERR_STATE);
    cr_expect_eq(atomic_load(&task_count), 1);
    close_cpu();
}
