/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shared by the tests of the mock plugin: the open device, options, and checks of a call. */
#ifndef DS_ACCEL_TESTS_PLUGINS_MOCK_H
#define DS_ACCEL_TESTS_PLUGINS_MOCK_H

#include "clock.h"
#include "fixture.h"
#include "table.h"

#include <ctype.h>

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)
#define HOUR_NS "3600000000000"

/* The open device, opened by open_mock() and closed by close_mock(). */
static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

/* Sets an option of the mock in the environment; NULL unsets it. */
static inline void option(const char *key, const char *value)
{
    char name[64] = "DS_ACCEL_MOCK_";
    size_t length = strlen(name);

    for (size_t i = 0; i <= strlen(key); i++) {
        name[length + i] = (char)toupper((unsigned char)key[i]);
    }
    if (value != NULL) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

static inline ds_accel_t *create_for(const char *accelerator)
{
    struct ds_accel_options options = test_options();

    options.accelerator = accelerator;
    return test_create_with(&options);
}

static inline ds_accel_t *start_mock(void)
{
    ds_accel_t *made = create_for("mock");

    cr_assert_eq(ds_accel_detect(made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return made;
}

static inline ds_accel_plugin_device_t *open_index(uint32_t index, ds_accel_device_t **device_out)
{
    cr_assert_eq(ds_accel_device_open(context, index, device_out), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return ds_accel_device_handle(*device_out);
}

static inline void open_mock(void)
{
    context = start_mock();
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    handle = open_index(0, &device);
}

static inline void close_mock(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

/* The verdict of a new context, which the caller destroys: the context owns the verdict's texts. */
static inline struct ds_accel_candidate check_mock(void)
{
    context = create_for("mock");
    cr_assert_eq(ds_accel_check(context, "mock"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return test_candidate(context, "mock");
}

static inline void *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

static inline void release(void *pointer)
{
    EXPECT_OK(table->mem_free(handle, pointer, &error));
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

static inline void do_nothing(void *user_data, int32_t status)
{
    (void)status;
    (void)user_data;
}

static inline void expect_bad_option(const char *key, const char *value, const char *part)
{
    struct ds_accel_candidate candidate = check_mock();
    char wanted[160];

    snprintf(wanted, sizeof(wanted), "option %s: \"%s\"", key, value);
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_ERROR, "%s=%s is %s", key, value,
                 candidate.state_name);
    cr_expect_str_eq(candidate.reason, "bad_option", "%s=%s", key, value);
    EXPECT_HAS(candidate.detail, wanted);
    EXPECT_HAS(candidate.detail, part);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    EXPECT_HAS(ds_accel_last_error(), wanted);
    ds_accel_destroy(context);
}

static inline ds_accel_t *start_another(ds_accel_device_t **device_out)
{
    ds_accel_t *another = start_mock();

    cr_assert_eq(ds_accel_device_open(another, 0, device_out), DS_ACCEL_OK);
    return another;
}

static inline void expect_usage(uint64_t process_bytes, uint64_t available_bytes)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.process_bytes, process_bytes);
    cr_expect_eq(info.available_bytes, available_bytes);
}

static inline struct ds_accel_pointer_info info_of(const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .kind = 99};

    EXPECT_OK(table->mem_pointer_info(instance, NULL, pointer, &info, &error));
    return info;
}

static inline void expect_copy_refused(void *destination, const void *source, uint64_t size_bytes,
                                       uint32_t kind, const char *part)
{
    EXPECT_FAIL(table->mem_copy(handle, destination, source, size_bytes, kind, &error),
                DS_ACCEL_ERR_INVALID, part);
}

/* Queue a copy, which takes the time in option copy_latency_ns. */
static inline void queue_copy(ds_accel_plugin_stream_t *stream)
{
    static char from[16];
    static char to[16];

    EXPECT_OK(table->mem_copy_async(stream, to, from, 16, DS_ACCEL_COPY_HOST_TO_HOST, &error));
}

static inline void count_up(void *user_data, int32_t status)
{
    (void)status;
    ++*(int *)user_data;
}

#endif
