/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The mock plugin: that it does what it is told, and that what it is not told is as with a real
 * device. What must be "not done yet" takes an hour, so that no test depends on being quick. */
#include "fixture.h"

#include <ctype.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)
#define HOUR_NS "3600000000000"
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The device at hand; what open_mock() makes and close_mock() takes away. */
static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)
/* The call fails with this status, and says so in words that hold part. */
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        cr_expect_eq(error.code, status); \
        EXPECT_HAS(error.message, part); \
    } while (0)

/* Set an option by the environment; NULL unsets it. */
static void option(const char *key, const char *value)
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

/* Set one option by the configuration, and no other. */
static void configure(const char *key, const char *json)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"backends\": {\"mock\": {\"options\": {\"%s\": %s}}}}", key,
             json);
    test_write("etc/ds-accel.json", text);
}

static ds_accel_t *create_for(const char *accelerator)
{
    struct ds_accel_options options = test_options();

    options.accelerator = accelerator;
    return test_create_with(&options);
}

static ds_accel_t *start_mock(void)
{
    ds_accel_t *made = create_for("mock");

    cr_assert_eq(ds_accel_detect(made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return made;
}

static ds_accel_plugin_device_t *open_index(uint32_t index, ds_accel_device_t **device_out)
{
    cr_assert_eq(ds_accel_device_open(context, index, device_out), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return ds_accel_device_handle(*device_out);
}

static void open_mock(void)
{
    context = start_mock();
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    handle = open_index(0, &device);
}

static void close_mock(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

/* The verdict of a new context, which the caller destroys: its texts are borrowed from it. */
static struct ds_accel_candidate check_mock(void)
{
    context = create_for("mock");
    cr_assert_eq(ds_accel_check(context, "mock"), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return test_candidate(context, "mock");
}

static void *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

static void release(void *pointer)
{
    EXPECT_OK(table->mem_free(handle, pointer, &error));
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

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Other options of the mock, of whoever runs the tests, would change what is seen. */
static void forget_options(void)
{
    static const char *const keys[] = {"device_count",
                                       "memory_bytes",
                                       "available",
                                       "reason",
                                       "detail",
                                       "variant",
                                       "device_name",
                                       "bf16",
                                       "fp16",
                                       "alloc_latency_ns",
                                       "copy_latency_ns",
                                       "copy_bytes_per_s",
                                       "launch_latency_ns",
                                       "sync_latency_ns",
                                       "probe_latency_ms",
                                       "pinned_limit_bytes",
                                       "fail"};

    for (size_t i = 0; i < LENGTH(keys); i++) {
        option(keys[i], NULL);
    }
}

TestSuite(plugin_mock, .init = forget_options);

/* ---- options that are facts: how each one is seen ------------------------------------------- */

static void see_device_count(char *text, size_t size)
{
    uint32_t count = 0;

    context = start_mock();
    cr_expect_eq(ds_accel_device_count(context, &count), DS_ACCEL_OK);
    snprintf(text, size, "%u", count);
    ds_accel_destroy(context);
}

static void see_memory_bytes(char *text, size_t size)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};

    open_mock();
    EXPECT_OK(ds_accel_device_info(device, &info));
    EXPECT_OK(ds_accel_device_memory(device, &memory));
    cr_expect_eq(memory.total_bytes, info.total_memory_bytes);
    snprintf(text, size, "%llu", (unsigned long long)info.total_memory_bytes);
    close_mock();
}

static void see_available(char *text, size_t size)
{
    snprintf(text, size, "%s", check_mock().state_name);
    ds_accel_destroy(context);
}

static void see_reason(char *text, size_t size)
{
    option("available", "false");
    snprintf(text, size, "%s", check_mock().reason);
    ds_accel_destroy(context);
    option("available", NULL);
}

static void see_detail(char *text, size_t size)
{
    snprintf(text, size, "%s", check_mock().detail);
    ds_accel_destroy(context);
}

/* Told by whom the mock lets go first because of it. */
static void see_variant(char *text, size_t size)
{
    const char *detail;

    test_write("share/ds-accel.json",
               "{\"backends\": {\"mock\": {\"demand_only\": false, \"defers_to\":"
               " {\"driver\": [\"cpu\"], \"extension\": [\"cpu\"]}}}}");
    context = create_for(NULL);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    detail = strchr(test_candidate(context, "mock").detail, '"');
    snprintf(text, size, "%.*s", detail == NULL ? 0 : (int)strcspn(detail + 1, "\""),
             detail == NULL ? "" : detail + 1);
    ds_accel_destroy(context);
}

static void see_device_name(char *text, size_t size)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};

    open_mock();
    EXPECT_OK(ds_accel_device_info(device, &info));
    EXPECT_OK(table->device_identity(instance, 1, &identity, &error));
    cr_expect_str_eq(info.name, identity.name);
    snprintf(text, size, "%s", info.name);
    close_mock();
}

static void see_dtype(uint32_t dtype, char *text, size_t size)
{
    uint32_t support = 0;

    open_mock();
    EXPECT_OK(table->dtype_support(handle, dtype, &support, &error));
    cr_expect(support & DS_ACCEL_DTYPE_STORES);
    snprintf(text, size, "%s", (support & DS_ACCEL_DTYPE_COMPUTES) != 0 ? "true" : "false");
    close_mock();
}

static void see_bf16(char *text, size_t size)
{
    see_dtype(DS_ACCEL_DTYPE_BFLOAT16, text, size);
}

static void see_fp16(char *text, size_t size)
{
    see_dtype(DS_ACCEL_DTYPE_FLOAT16, text, size);
}

static void see_pinned_limit_bytes(char *text, size_t size)
{
    void *pointer = NULL;
    const char *limit;

    open_mock();
    snprintf(text, size, "0");
    if (table->mem_alloc_pinned(handle, 7000, 1, 0, &pointer, &error) != DS_ACCEL_OK) {
        limit = strstr(error.message, "pinned_limit_bytes, ");
        cr_assert_not_null(limit, "%s", error.message);
        limit += strlen("pinned_limit_bytes, ");
        snprintf(text, size, "%.*s", (int)strcspn(limit, ","), limit);
    }
    EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
    close_mock();
}

static void see_fail(char *text, size_t size)
{
    open_mock();
    snprintf(text, size, "%s", ds_accel_status_name(table->mem_trim(handle, 0, &error)));
    close_mock();
}

/* An option, what is seen by default, two values for it and what is seen with each. */
static const struct fact {
    const char *key;
    void (*see)(char *text, size_t size);
    const char *usual;
    const char *value;
    const char *seen;
    const char *json;
    const char *json_seen;
} facts[] = {
    {"device_count", see_device_count, "2", "4", "4", "256", "256"},
    {"memory_bytes", see_memory_bytes, "1073741824", "5000", "5000", "85899345920", "85899345920"},
    {"available", see_available, "available", "false", "unavailable", "\"error\"", "error"},
    {"reason", see_reason, "no_device", "no_driver", "no_driver", "\"hidden\"", "hidden"},
    {"detail", see_detail, "option device_count: 2", "no card", "no card", "\"a b\"", "a b"},
    {"variant", see_variant, "", "driver", "driver", "\"extension\"", "extension"},
    {"device_name", see_device_name, "Mock Device", "My Card", "My Card", "\"Another\"", "Another"},
    {"bf16", see_bf16, "true", "true", "true", "false", "false"},
    {"fp16", see_fp16, "true", "true", "true", "\"false\"", "false"},
    {"pinned_limit_bytes", see_pinned_limit_bytes, "0", "5000", "5000", "6000", "6000"},
    {"fail", see_fail, "DS_ACCEL_OK", "mem_trim=io", "DS_ACCEL_ERR_IO", "\"mem_trim=busy\"",
     "DS_ACCEL_ERR_BUSY"},
};

static void expect_seen(const struct fact *fact, const char *wanted)
{
    char text[300];

    fact->see(text, sizeof(text));
    cr_expect_str_eq(text, wanted, "%s: \"%s\", not \"%s\"", fact->key, text, wanted);
}

Test(plugin_mock, every_option_has_its_default)
{
    for (size_t i = 0; i < LENGTH(facts); i++) {
        expect_seen(&facts[i], facts[i].usual);
    }
}

Test(plugin_mock, every_option_can_be_set_by_the_environment)
{
    for (size_t i = 0; i < LENGTH(facts); i++) {
        option(facts[i].key, facts[i].value);
        expect_seen(&facts[i], facts[i].seen);
        option(facts[i].key, NULL);
    }
    option("bf16", "false");
    option("fp16", "false");
    for (size_t i = 0; i < LENGTH(facts); i++) {
        if (strstr(facts[i].key, "16") != NULL) {
            expect_seen(&facts[i], "false");
        }
    }
}

Test(plugin_mock, every_option_can_be_set_by_the_configuration)
{
    for (size_t i = 0; i < LENGTH(facts); i++) {
        configure(facts[i].key, facts[i].json);
        expect_seen(&facts[i], facts[i].json_seen);
    }
}

Test(plugin_mock, the_environment_wins_over_the_configuration)
{
    for (size_t i = 0; i < LENGTH(facts); i++) {
        configure(facts[i].key, facts[i].json);
        option(facts[i].key, facts[i].value);
        expect_seen(&facts[i], facts[i].seen);
        option(facts[i].key, NULL);
    }
}

Test(plugin_mock, options_of_another_backend_do_not_count)
{
    setenv("DS_ACCEL_CUDA_DEVICE_COUNT", "7", 1);
    test_write("etc/ds-accel.json",
               "{\"backends\": {\"cuda\": {\"options\": {\"device_count\": 5}}}}");
    expect_seen(&facts[0], "2");
}

/* ---- options that take time ----------------------------------------------------------------- */

static void do_nothing(void *user_data, int32_t status)
{
    (void)status;
    (void)user_data;
}

static void act_alloc(void)
{
    release(allocate(100));
}

static void act_alloc_managed(void)
{
    void *pointer = NULL;

    EXPECT_OK(table->mem_alloc_managed(handle, 100, 0, &pointer, &error));
    release(pointer);
}

static void act_copy(void)
{
    static char from[1000];
    static char to[1000];

    EXPECT_OK(table->mem_copy(handle, to, from, 1000, DS_ACCEL_COPY_HOST_TO_HOST, &error));
}

static void act_task(void)
{
    ds_accel_plugin_stream_t *stream = make_stream();

    EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    table->stream_destroy(stream);
}

static void act_stream_synchronize(void)
{
    ds_accel_plugin_stream_t *stream = make_stream();

    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    table->stream_destroy(stream);
}

static void act_device_synchronize(void)
{
    EXPECT_OK(ds_accel_device_synchronize(device));
}

static void act_event_synchronize(void)
{
    ds_accel_plugin_event_t *event = make_event();

    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
    table->event_destroy(event);
}

/* An option, a value with which the act takes 20 ms, and one with which it takes next to none. */
static const struct delay {
    const char *key;
    const char *slow;
    const char *quick;
    void (*act)(void);
} delays[] = {
    {"alloc_latency_ns", "20000000", "1", act_alloc},
    {"alloc_latency_ns", "20000000", "1", act_alloc_managed},
    {"copy_latency_ns", "20000000", "1", act_copy},
    {"copy_bytes_per_s", "50000", "1000000000000", act_copy},
    {"launch_latency_ns", "20000000", "1", act_task},
    {"sync_latency_ns", "20000000", "1", act_stream_synchronize},
    {"sync_latency_ns", "20000000", "1", act_device_synchronize},
    {"sync_latency_ns", "20000000", "1", act_event_synchronize},
};

static void expect_slow(const struct delay *delay)
{
    uint64_t start;

    open_mock();
    start = now_ns();
    delay->act();
    cr_expect_geq(now_ns() - start, 20 * MS, "%s", delay->key);
    close_mock();
}

Test(plugin_mock, latencies_can_be_set_by_the_environment)
{
    for (size_t i = 0; i < LENGTH(delays); i++) {
        configure(delays[i].key, delays[i].quick);
        option(delays[i].key, delays[i].slow);
        expect_slow(&delays[i]);
        option(delays[i].key, NULL);
    }
}

Test(plugin_mock, latencies_can_be_set_by_the_configuration)
{
    for (size_t i = 0; i < LENGTH(delays); i++) {
        configure(delays[i].key, delays[i].slow);
        expect_slow(&delays[i]);
    }
}

Test(plugin_mock, latency_and_rate_add_up)
{
    const struct delay copy = {"both", "", "", act_copy};

    option("copy_latency_ns", "10000000");
    option("copy_bytes_per_s", "100000");
    expect_slow(&copy);
}

Test(plugin_mock, a_probe_takes_as_long_as_asked)
{
    static const char *const available[] = {"true", "false", "error"};

    for (size_t i = 0; i < LENGTH(available); i++) {
        option("available", available[i]);
        option("probe_latency_ms", "20");
        cr_expect_geq(check_mock().elapsed_us, 20000);
        ds_accel_destroy(context);
        option("probe_latency_ms", NULL);
        configure("probe_latency_ms", "30");
        cr_expect_geq(check_mock().elapsed_us, 30000);
        ds_accel_destroy(context);
        option("probe_latency_ms", "40");
        cr_expect_geq(check_mock().elapsed_us, 40000);
        ds_accel_destroy(context);
    }
}

/* By default no work takes time: its completion is its beginning, which is in the past. */
Test(plugin_mock, work_takes_no_time_by_default)
{
    static char from[1000];
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    open_mock();
    stream = make_stream();
    EXPECT_OK(table->mem_alloc_async(stream, 1000, 0, NULL, 0, &pointer, &error));
    EXPECT_OK(table->mem_copy_async(stream, pointer, from, 1000, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->mem_free_async(stream, pointer, NULL, 0, &error));
    table->stream_destroy(stream);
    close_mock();
}

/* ---- malformed options ---------------------------------------------------------------------- */

static void expect_bad_option(const char *key, const char *value, const char *part)
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

static void refuse(const char *key, const char *value, const char *part)
{
    option(key, value);
    expect_bad_option(key, value, part);
    option(key, NULL);
}

Test(plugin_mock, numbers_that_are_none_are_refused)
{
    static const char *const keys[] = {
        "device_count",      "memory_bytes",     "alloc_latency_ns",
        "copy_latency_ns",   "copy_bytes_per_s", "sync_latency_ns",
        "launch_latency_ns", "probe_latency_ms", "pinned_limit_bytes"};
    static const char *const values[] = {"", "-1", "two", "2.5", " 2", "2 ", "0x2", "+2", "1e3"};

    for (size_t i = 0; i < LENGTH(keys); i++) {
        for (size_t j = 0; j < LENGTH(values); j++) {
            refuse(keys[i], values[j], "is not a whole number from 0 to ");
        }
        refuse(keys[i], "18446744073709551616", "is not a whole number from 0 to ");
    }
}

Test(plugin_mock, numbers_have_a_largest_value)
{
    refuse("device_count", "257", "from 0 to 256");
    refuse("alloc_latency_ns", "3600000000001", "from 0 to " HOUR_NS);
    refuse("copy_latency_ns", "3600000000001", "from 0 to " HOUR_NS);
    refuse("launch_latency_ns", "3600000000001", "from 0 to " HOUR_NS);
    refuse("sync_latency_ns", "3600000000001", "from 0 to " HOUR_NS);
    refuse("probe_latency_ms", "3600001", "from 0 to 3600000");
    refuse("memory_bytes", "99999999999999999999", "from 0 to 18446744073709551615");
    refuse("copy_bytes_per_s", "99999999999999999999", "from 0 to 18446744073709551615");
    refuse("pinned_limit_bytes", "99999999999999999999", "from 0 to 18446744073709551615");
}

Test(plugin_mock, the_largest_values_are_taken)
{
    option("device_count", "256");
    option("memory_bytes", "18446744073709551615");
    option("alloc_latency_ns", HOUR_NS);
    option("copy_latency_ns", HOUR_NS);
    option("launch_latency_ns", HOUR_NS);
    option("sync_latency_ns", HOUR_NS);
    option("copy_bytes_per_s", "18446744073709551615");
    option("pinned_limit_bytes", "18446744073709551615");
    expect_seen(&facts[0], "256");
    expect_seen(&facts[1], "18446744073709551615");
}

Test(plugin_mock, words_that_are_none_are_refused)
{
    static const char *const switches[] = {"", "1", "True", "yes", "true "};

    for (size_t i = 0; i < LENGTH(switches); i++) {
        refuse("bf16", switches[i], "is neither \"true\" nor \"false\"");
        refuse("fp16", switches[i], "is neither \"true\" nor \"false\"");
        refuse("available", switches[i], "is not \"true\", \"false\" or \"error\"");
    }
    refuse("reason", "", "is not the name of a DS_ACCEL_REASON");
    refuse("reason", "none", "is not the name of a DS_ACCEL_REASON");
    refuse("reason", "NO_DEVICE", "is not the name of a DS_ACCEL_REASON");
}

Test(plugin_mock, malformed_values_of_the_configuration_are_refused)
{
    configure("device_count", "2.5");
    expect_bad_option("device_count", "2.5", "is not a whole number");
    configure("memory_bytes", "-1");
    expect_bad_option("memory_bytes", "-1", "is not a whole number");
    configure("bf16", "1");
    expect_bad_option("bf16", "1", "is neither");
    configure("available", "\"no\"");
    expect_bad_option("available", "no", "is not \"true\"");
    configure("fail", "\"mem_alloc\"");
    expect_bad_option("fail", "mem_alloc", "is not slot");
}

static void expect_longest_text(const char *key, size_t length)
{
    char text[1200];
    char wanted[96];
    struct ds_accel_candidate candidate;

    memset(text, 'x', sizeof(text));
    text[length] = '\0';
    option(key, text);
    cr_expect_eq(check_mock().state, DS_ACCEL_STATE_AVAILABLE, "%s", key);
    ds_accel_destroy(context);
    text[length] = 'x';
    text[length + 1] = '\0';
    option(key, text);
    candidate = check_mock();
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_ERROR);
    cr_expect_str_eq(candidate.reason, "bad_option");
    snprintf(wanted, sizeof(wanted), "option %s: the value is not a text of up to %zu bytes", key,
             length);
    EXPECT_HAS(candidate.detail, wanted);
    ds_accel_destroy(context);
    option(key, NULL);
}

Test(plugin_mock, texts_have_a_largest_length)
{
    expect_longest_text("detail", 255);
    expect_longest_text("variant", 31);
    expect_longest_text("device_name", 127);
}

Test(plugin_mock, an_option_that_turns_bad_after_the_probe_stops_the_start)
{
    context = create_for("mock");
    cr_assert_eq(ds_accel_check(context, "mock"), DS_ACCEL_OK);
    cr_expect_eq(test_candidate(context, "mock").state, DS_ACCEL_STATE_AVAILABLE);
    option("device_count", "many");
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_str_eq(test_candidate(context, "mock").reason, "start_failed");
    EXPECT_HAS(test_candidate(context, "mock").detail, "init: option device_count: \"many\"");
    ds_accel_destroy(context);
}

/* ---- availability --------------------------------------------------------------------------- */

/* A reason, and the status of an init that meets the situation. */
static const struct {
    const char *name;
    const char *init_text;
} reasons[] = {
    {"no_device", "MOCK_ERROR_NO_DEVICE (106)"},
    {"no_driver", "MOCK_ERROR_NO_DEVICE (106)"},
    {"no_permission", "MOCK_ERROR_PERMISSION (107)"},
    {"library_missing", "MOCK_ERROR_NOT_FOUND (105)"},
    {"symbol_missing", "MOCK_ERROR_NOT_FOUND (105)"},
    {"driver_mismatch", "MOCK_ERROR_DRIVER (104)"},
    {"device_busy", "MOCK_ERROR_BUSY (108)"},
    {"hidden", "MOCK_ERROR_NO_DEVICE (106)"},
    {"device_too_old", "MOCK_ERROR_NO_DEVICE (106)"},
    {"device_asleep", "MOCK_ERROR_NO_DEVICE (106)"},
    {"driver_failed", "MOCK_ERROR_DRIVER (104)"},
    {"bad_option", "MOCK_ERROR_INVALID (101)"},
};

static void expect_verdict(uint32_t state, const char *reason, const char *detail)
{
    struct ds_accel_candidate candidate = check_mock();

    cr_expect_eq(candidate.state, state, "%s is %s", reason, candidate.state_name);
    cr_expect_str_eq(candidate.reason, reason);
    cr_expect_str_eq(candidate.detail, detail);
    cr_expect_str_eq(candidate.stage, "probe");
    cr_expect_eq(candidate.device_count, state == DS_ACCEL_STATE_AVAILABLE ? 2 : 0);
    ds_accel_destroy(context);
}

Test(plugin_mock, every_reason_reaches_the_candidate)
{
    option("detail", "/dev/mock0");
    for (size_t i = 0; i < LENGTH(reasons); i++) {
        option("reason", reasons[i].name);
        option("available", "false");
        expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, reasons[i].name, "/dev/mock0");
        option("available", "error");
        expect_verdict(DS_ACCEL_STATE_ERROR, reasons[i].name, "/dev/mock0");
        option("available", "true");
        expect_verdict(DS_ACCEL_STATE_AVAILABLE, "demand_only", "/dev/mock0");
    }
}

Test(plugin_mock, a_state_without_a_reason_has_the_usual_one)
{
    const char *detail = "options available, reason or device_count say so";

    option("available", "false");
    expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, "no_device", detail);
    option("available", "error");
    expect_verdict(DS_ACCEL_STATE_ERROR, "driver_failed", detail);
    option("available", NULL);
    option("device_count", "0");
    expect_verdict(DS_ACCEL_STATE_UNAVAILABLE, "no_device", detail);
}

Test(plugin_mock, no_device_cannot_be_available)
{
    option("device_count", "0");
    option("available", "true");
    expect_bad_option("available", "true", "needs a device_count above 0");
}

Test(plugin_mock, init_fails_as_a_runtime_would_in_that_situation)
{
    for (size_t i = 0; i < LENGTH(reasons); i++) {
        option("available", "true");
        option("reason", reasons[i].name);
        check_mock();
        option("available", "false");
        cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
        cr_expect_str_eq(test_candidate(context, "mock").reason, "start_failed");
        EXPECT_HAS(test_candidate(context, "mock").detail, reasons[i].init_text);
        ds_accel_destroy(context);
    }
}

/* A host of our own: what of the verdict no candidate shows. */
static const char *const *own_options; /* key, value, ..., NULL */

static int32_t own_config_get(const struct ds_accel_host *host, const char *key, char *value,
                              uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)needed_out;
    for (size_t i = 0; own_options[i] != NULL; i += 2) {
        if (strcmp(own_options[i], key) == 0) {
            snprintf(value, value_size, "%s", own_options[i + 1]);
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_ERR_NOT_FOUND;
}

static struct ds_accel_verdict own_verdict(const char *const *options)
{
    const struct ds_accel_host host = {.struct_size = sizeof(host),
                                       .abi_major = DS_ACCEL_ABI_MAJOR,
                                       .features = DS_ACCEL_FEATURE_CONFIG,
                                       .config_get = own_config_get};
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    own_options = options;
    EXPECT_OK(table->probe(&host, &verdict, &error));
    return verdict;
}

Test(plugin_mock, the_verdict_has_variant_and_vendor_code)
{
    static const char *const failed[] = {"available", "error", "variant", "way in", NULL};
    static const char *const missing[] = {"available", "false", NULL};
    struct ds_accel_verdict verdict;

    open_mock();
    verdict = own_verdict(failed);
    cr_expect_eq(verdict.state, DS_ACCEL_PROBE_ERROR);
    cr_expect_eq(verdict.reason, DS_ACCEL_REASON_DRIVER_FAILED);
    cr_expect_eq(verdict.vendor_code, 999);
    cr_expect_str_eq(verdict.variant, "way in");
    verdict = own_verdict(missing);
    cr_expect_eq(verdict.state, DS_ACCEL_PROBE_UNAVAILABLE);
    cr_expect_eq(verdict.vendor_code, 0);
    cr_expect_str_eq(verdict.variant, "");
    close_mock();
}

/* ---- option fail: the grammar --------------------------------------------------------------- */

/* The statuses of as many calls of mem_trim, "0 -11 0 ". */
static void expect_trims(const char *script, const char *wanted)
{
    char seen[64] = "";

    option("fail", script);
    open_mock();
    while (strlen(seen) < strlen(wanted)) {
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%d ",
                 table->mem_trim(handle, 0, &error));
    }
    cr_expect_str_eq(seen, wanted, "%s: %s", script, seen);
    close_mock();
}

Test(plugin_mock, the_nth_call_fails)
{
    expect_trims("", "0 0 0 ");
    expect_trims("mem_trim:1=io", "-11 0 0 ");
    expect_trims("mem_trim:2=io", "0 -11 0 0 ");
    expect_trims("mem_trim:03=io", "0 0 -11 0 ");
    expect_trims("mem_trim:18446744073709551615=io", "0 0 0 ");
}

Test(plugin_mock, the_nth_call_and_all_after_it_fail)
{
    expect_trims("mem_trim:2+=io", "0 -11 -11 -11 ");
    expect_trims("mem_trim:1+=io", "-11 -11 -11 ");
}

Test(plugin_mock, every_call_fails)
{
    expect_trims("mem_trim=io", "-11 -11 -11 ");
}

Test(plugin_mock, several_rules_hold_together)
{
    expect_trims("mem_trim:1=io,mem_trim:3=busy", "-11 0 -8 0 ");
    expect_trims("mem_trim:2=io,mem_trim=busy", "-8 -11 -8 ");
    expect_trims("mem_trim=busy,mem_trim:2=io", "-8 -8 -8 ");
    expect_trims("mem_alloc=io,mem_trim:2=limit", "0 -13 0 ");
    expect_trims("mem_alloc:1=io", "0 0 ");
}

Test(plugin_mock, calls_are_counted_from_the_start_of_each_instance)
{
    option("fail", "mem_trim:2=io");
    for (int i = 0; i < 2; i++) {
        open_mock();
        EXPECT_OK(table->mem_trim(handle, 0, &error));
        cr_expect_eq(table->mem_trim(handle, 0, &error), DS_ACCEL_ERR_IO);
        close_mock();
    }
}

Test(plugin_mock, a_failing_init_is_told_with_the_vendors_words)
{
    option("fail", "init=driver");
    context = create_for("mock");
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_ERR_NOT_USABLE);
    cr_expect_eq(test_candidate(context, "mock").state, DS_ACCEL_STATE_ERROR);
    cr_expect_str_eq(test_candidate(context, "mock").reason, "start_failed");
    EXPECT_HAS(test_candidate(context, "mock").detail,
               "init: MOCK_ERROR_DRIVER (104): as option fail asks");
    option("fail", NULL);
    cr_expect_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

static void expect_probe_failure(const char *script, const char *reason, const char *part)
{
    struct ds_accel_candidate candidate;

    option("fail", script);
    candidate = check_mock();
    cr_expect_eq(candidate.state, DS_ACCEL_STATE_ERROR);
    cr_expect_str_eq(candidate.reason, reason);
    EXPECT_HAS(candidate.detail, part);
    ds_accel_destroy(context);
}

Test(plugin_mock, a_failing_probe_is_an_error)
{
    expect_probe_failure("probe=io", "driver_failed", "probe: MOCK_ERROR_IO (111)");
    expect_probe_failure("probe:1=permission", "no_permission", "MOCK_ERROR_PERMISSION (107)");
    expect_probe_failure("probe=busy", "device_busy", "MOCK_ERROR_BUSY (108)");
    expect_probe_failure("probe=no_device", "no_device", "MOCK_ERROR_NO_DEVICE (106)");
}

Test(plugin_mock, malformed_scripts_are_refused)
{
    static const char *const scripts[][3] = {
        {"mem_alloc", "mem_alloc", "is not slot[:N[+]]=STATUS"},
        {",", "", "is not slot[:N[+]]=STATUS"},
        {"mem_alloc=io,,mem_free=io", "", "is not slot[:N[+]]=STATUS"},
        {"mem_alloc=io,", "mem_alloc=io", "ends in a comma"},
        {"mem_alloc:=io", "mem_alloc:=io", "has no call number from 1"},
        {"mem_alloc:0=io", "mem_alloc:0=io", "has no call number from 1"},
        {"mem_alloc:+=io", "mem_alloc:+=io", "has no call number from 1"},
        {"mem_alloc:-1=io", "mem_alloc:-1=io", "has no call number from 1"},
        {"mem_alloc:1++=io", "mem_alloc:1++=io", "has no call number from 1"},
        {"mem_alloc:x=io", "mem_alloc:x=io", "has no call number from 1"},
        {"mem_alloc:18446744073709551616=io", "mem_alloc:18446744073709551616=io",
         "has no call number from 1"},
        {"=io", "=io", "names no function of this plugin that can fail"},
        {"nothing=io", "nothing=io", "names no function of this plugin that can fail"},
        {" mem_alloc=io", " mem_alloc=io", "names no function of this plugin that can fail"},
        {"shutdown=io", "shutdown=io", "names no function of this plugin that can fail"},
        {"device_close=io", "device_close=io", "names no function of this plugin that can fail"},
        {"rng_seed=io", "rng_seed=io", "names no function of this plugin that can fail"},
        {"mem_alloc=", "mem_alloc=", "names no status"},
        {"mem_alloc=IO", "mem_alloc=IO", "names no status"},
        {"mem_alloc=ok", "mem_alloc=ok", "names no status"},
        {"mem_alloc=io=io", "mem_alloc=io=io", "names no status"},
        {"mem_free=io,mem_alloc=err", "mem_alloc=err", "names no status"},
    };

    for (size_t i = 0; i < LENGTH(scripts); i++) {
        option("fail", scripts[i][0]);
        expect_bad_option("fail", scripts[i][1], scripts[i][2]);
    }
}

Test(plugin_mock, a_script_has_up_to_32_rules)
{
    char script[1024] = "mem_trim=io";
    struct ds_accel_candidate candidate;

    for (int i = 1; i < 32; i++) {
        strcat(script, ",mem_trim=io");
    }
    expect_trims(script, "-11 ");
    strcat(script, ",mem_trim=io");
    option("fail", script);
    candidate = check_mock();
    cr_expect_str_eq(candidate.reason, "bad_option");
    EXPECT_HAS(candidate.detail, "option fail: more than 32 rules");
    ds_accel_destroy(context);
}

/* ---- option fail: what a failure says ------------------------------------------------------- */

Test(plugin_mock, code_and_text_of_the_vendor_reach_the_error)
{
    static const char *const names[] = {
        "invalid",    "no_memory", "unsupported", "driver",      "not_found", "no_device",
        "permission", "busy",      "timeout",     "device_lost", "io",        "state",
        "limit",      "config",    "not_usable",  "abi",         "untrusted", "internal"};

    for (size_t i = 0; i < LENGTH(names); i++) {
        const int32_t status = -1 - (int32_t)i;
        char script[64];
        char text[64];
        char message[128];

        snprintf(script, sizeof(script), "mem_trim=%s", names[i]);
        snprintf(text, sizeof(text), "MOCK_ERROR_%s", names[i]);
        for (char *c = text; *c != '\0'; c++) {
            *c = (char)toupper((unsigned char)*c);
        }
        snprintf(message, sizeof(message), "mem_trim: %s (%d): as option fail asks", text,
                 100 - status);
        option("fail", script);
        open_mock();
        EXPECT_FAIL(table->mem_trim(handle, 0, &error), status, message);
        cr_expect_eq(error.vendor_code, 100 - status);
        cr_expect_str_eq(error.vendor_text, text);
        close_mock();
    }
}

/* Handles for the functions that need one; those that the script keeps from being made are NULL. */
static struct {
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
} made;

static void open_failing(const char *slot)
{
    char script[64];

    snprintf(script, sizeof(script), "%s=timeout", slot);
    option("fail", script);
    open_mock();
    memset(&made, 0, sizeof(made));
    table->stream_create(handle, 0, 0, &made.stream, &error);
    table->event_create(handle, 0, &made.event, &error);
    if (made.stream != NULL) {
        table->graph_capture_begin(made.stream, 0, &error);
        table->graph_capture_end(made.stream, &made.graph, &error);
    }
    if (made.graph != NULL) {
        table->graph_instantiate(made.graph, 0, &made.exec, &error);
    }
}

static void close_failing(void)
{
    table->graph_exec_destroy(made.exec);
    table->graph_destroy(made.graph);
    table->event_destroy(made.event);
    table->stream_destroy(made.stream);
    close_mock();
}

/* Arguments are looked at after the script, so that NULL does for all but the handle. */
#define EXPECT_SCRIPTED(slot, ...) \
    do { \
        open_failing(#slot); \
        EXPECT_FAIL(table->slot(__VA_ARGS__, &error), DS_ACCEL_ERR_TIMEOUT, \
                    #slot ": MOCK_ERROR_TIMEOUT (109)"); \
        close_failing(); \
    } while (0)

Test(plugin_mock, every_function_of_the_instance_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(extension, instance, NULL, NULL);
    EXPECT_SCRIPTED(backend_info, instance, NULL);
    EXPECT_SCRIPTED(device_identity, instance, 0, NULL);
    EXPECT_SCRIPTED(device_get_current, instance, NULL);
    EXPECT_SCRIPTED(mem_pointer_info, instance, NULL, NULL, NULL);
    EXPECT_SCRIPTED(telemetry_get, instance, 0, NULL);
    EXPECT_SCRIPTED(telemetry_processes, instance, 0, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(range_push, instance, NULL, NULL, NULL);
    EXPECT_SCRIPTED(range_pop, instance, NULL);
    EXPECT_SCRIPTED(profiler_start, instance);
    EXPECT_SCRIPTED(profiler_stop, instance);
    EXPECT_SCRIPTED(links_get, instance, 0, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(op_builders_get, instance, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(op_compatible, instance, NULL, NULL, NULL, 0);
    EXPECT_SCRIPTED(env_rules_get, instance, NULL, 0, 0, NULL);
    EXPECT_SCRIPTED(env_name_get, instance, 0, 0, NULL, 0);
    EXPECT_SCRIPTED(visible_devices_value, instance, NULL, NULL, 0, NULL, 0, NULL);
}

Test(plugin_mock, every_function_of_a_device_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(device_info, handle, NULL);
    EXPECT_SCRIPTED(device_set_current, handle);
    EXPECT_SCRIPTED(device_synchronize, handle, 0);
    EXPECT_SCRIPTED(device_health, handle);
    EXPECT_SCRIPTED(stream_create, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(stream_get_default, handle, NULL);
    EXPECT_SCRIPTED(stream_priority_range, handle, NULL, NULL);
    EXPECT_SCRIPTED(event_create, handle, 0, NULL);
    EXPECT_SCRIPTED(dtype_support, handle, 0, NULL);
    EXPECT_SCRIPTED(peer_can_access, handle, NULL, NULL);
    EXPECT_SCRIPTED(peer_enable, handle, NULL);
    EXPECT_SCRIPTED(peer_disable, handle, NULL);
    EXPECT_SCRIPTED(native_get, handle, 0, NULL, NULL, NULL);
    EXPECT_SCRIPTED(native_wrap, handle, 0, 0, NULL);
}

Test(plugin_mock, every_function_of_memory_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(mem_alloc, handle, 0, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_free, handle, NULL);
    EXPECT_SCRIPTED(mem_alloc_pinned, handle, 0, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_free_pinned, handle, NULL);
    EXPECT_SCRIPTED(mem_register, handle, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_unregister, handle, NULL);
    EXPECT_SCRIPTED(mem_alloc_managed, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(mem_device_pointer, handle, NULL, NULL);
    EXPECT_SCRIPTED(mem_copy, handle, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_info, handle, NULL);
    EXPECT_SCRIPTED(mem_stats, handle, NULL);
    EXPECT_SCRIPTED(mem_reset_peaks, handle, 0);
    EXPECT_SCRIPTED(mem_set_limit, handle, 0);
    EXPECT_SCRIPTED(vmem_granularity, handle, 0, NULL, NULL);
    EXPECT_SCRIPTED(vmem_reserve, handle, 0, 0, NULL, 0, NULL);
    EXPECT_SCRIPTED(vmem_release, handle, NULL, 0);
    EXPECT_SCRIPTED(vmem_create, handle, 0, 0, NULL);
    EXPECT_SCRIPTED(vmem_map, handle, NULL, 0, NULL, 0);
    EXPECT_SCRIPTED(vmem_unmap, handle, NULL, 0);
    EXPECT_SCRIPTED(vmem_set_access, handle, NULL, 0, 0);
}

Test(plugin_mock, every_function_of_a_stream_event_or_graph_can_be_told_to_fail)
{
    EXPECT_SCRIPTED(stream_synchronize, made.stream, 0);
    EXPECT_SCRIPTED(stream_query, made.stream);
    EXPECT_SCRIPTED(stream_wait_event, made.stream, NULL);
    EXPECT_SCRIPTED(stream_host_task, made.stream, NULL, NULL);
    EXPECT_SCRIPTED(event_record, made.event, NULL);
    EXPECT_SCRIPTED(event_query, made.event);
    EXPECT_SCRIPTED(event_synchronize, made.event, 0);
    EXPECT_SCRIPTED(event_elapsed_ms, made.event, NULL, NULL);
    EXPECT_SCRIPTED(mem_copy_async, made.stream, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_copy_peer_async, made.stream, NULL, NULL, NULL, NULL, 0);
    EXPECT_SCRIPTED(mem_fill_async, made.stream, NULL, NULL, 0, 0);
    EXPECT_SCRIPTED(mem_alloc_async, made.stream, 0, 0, NULL, 0, NULL);
    EXPECT_SCRIPTED(mem_free_async, made.stream, NULL, NULL, 0);
    EXPECT_SCRIPTED(graph_capture_begin, made.stream, 0);
    EXPECT_SCRIPTED(graph_capture_end, made.stream, NULL);
    EXPECT_SCRIPTED(graph_capture_status, made.stream, NULL);
    EXPECT_SCRIPTED(graph_instantiate, made.graph, 0, NULL);
    EXPECT_SCRIPTED(graph_launch, made.exec, made.stream);
    EXPECT_SCRIPTED(graph_exec_update, made.exec, made.graph, NULL);
    EXPECT_SCRIPTED(graph_node_count, made.graph, NULL);
    EXPECT_SCRIPTED(graph_dump, made.graph, NULL, NULL);
}

Test(plugin_mock, opening_and_counting_can_be_told_to_fail)
{
    uint32_t count = 0;

    option("fail", "device_open:2=permission,device_count:2=io");
    open_mock();
    cr_expect_eq(ds_accel_device_open(context, 1, &device), DS_ACCEL_ERR_PERMISSION);
    EXPECT_HAS(ds_accel_last_error(), "device_open: MOCK_ERROR_PERMISSION (107)");
    EXPECT_FAIL(table->device_count(instance, &count, &error), DS_ACCEL_ERR_IO, "device_count: ");
    close_mock();
}

/* ---- a lost device -------------------------------------------------------------------------- */

static void expect_lost(ds_accel_plugin_device_t *lost)
{
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    ds_accel_device_t *again;
    void *pointer = NULL;

    EXPECT_FAIL(table->device_health(lost, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "device 0 was lost before");
    cr_expect_str_eq(error.vendor_text, "MOCK_ERROR_DEVICE_LOST");
    cr_expect_eq(error.vendor_code, 110);
    EXPECT_FAIL(table->mem_alloc(lost, 1, 0, 0, &pointer, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "mem_alloc");
    EXPECT_FAIL(table->telemetry_get(instance, 0, &telemetry, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "telemetry_get");
    cr_expect_eq(ds_accel_device_open(context, 0, &again), DS_ACCEL_ERR_DEVICE_LOST);
}

Test(plugin_mock, a_lost_device_stays_lost_until_it_is_closed)
{
    ds_accel_plugin_device_t *other;
    ds_accel_device_t *other_device;

    option("fail", "mem_trim:2=device_lost");
    open_mock();
    other = open_index(1, &other_device);
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    EXPECT_FAIL(table->mem_trim(handle, 0, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "as option fail asks");
    expect_lost(handle);
    expect_lost(handle);
    EXPECT_OK(table->device_health(other, &error));
    ds_accel_device_close(device);
    handle = open_index(0, &device);
    EXPECT_OK(table->device_health(handle, &error));
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    ds_accel_device_close(other_device);
    close_mock();
}

Test(plugin_mock, what_a_lost_device_held_is_gone_when_it_is_open_again)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_stream_t *stream;
    void *pointer;

    option("fail", "stream_query:1=device_lost");
    open_mock();
    pointer = allocate(100);
    stream = make_stream();
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_ERR_DEVICE_LOST);
    EXPECT_FAIL(table->stream_synchronize(stream, UINT64_MAX, &error), DS_ACCEL_ERR_DEVICE_LOST,
                "before");
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_DEVICE_LOST, "before");
    table->stream_destroy(stream);
    ds_accel_device_close(device);
    EXPECT_HAS_NOT(test_log, "allocations left");
    handle = open_index(0, &device);
    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    cr_expect_eq(stats.allocated_bytes, 0);
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID, "mem_free");
    close_mock();
}

/* ---- devices -------------------------------------------------------------------------------- */

Test(plugin_mock, every_device_has_an_identity_of_its_own)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

    option("device_count", "17");
    open_mock();
    EXPECT_OK(table->device_identity(instance, 10, &identity, &error));
    cr_expect_eq(identity.device_index, 10);
    cr_expect_eq(identity.vendor_index, 10);
    cr_expect_neq(identity.valid & DS_ACCEL_IDENTITY_UUID, 0);
    cr_expect_arr_eq(identity.uuid, "MOCK\0\0\0\0\0\0\0\0\0\0\0\012", 16);
    cr_expect_str_eq(identity.uuid_text, "MOCK-00000000-0000-0000-0000-00000000000a");
    cr_expect_str_eq(identity.pci_address, "0000:ea:00.0");
    cr_expect_eq(identity.valid, DS_ACCEL_IDENTITY_UUID | DS_ACCEL_IDENTITY_VENDOR_INDEX);
    cr_expect_eq(identity.partition_kind, DS_ACCEL_PARTITION_NONE);
    cr_expect_eq(identity.power_state, DS_ACCEL_POWER_ACTIVE);
    cr_expect_str_eq(identity.node_path, "");
    EXPECT_OK(table->device_identity(instance, 16, &identity, &error));
    cr_expect_str_eq(identity.pci_address, "");
    cr_expect_str_eq(identity.uuid_text, "MOCK-00000000-0000-0000-0000-000000000010");
    EXPECT_FAIL(table->device_identity(instance, 17, &identity, &error), DS_ACCEL_ERR_INVALID,
                "device 17 does not exist, there are 17");
    close_mock();
}

Test(plugin_mock, an_older_hosts_struct_is_not_written_past_its_end)
{
    struct ds_accel_device_info info;

    open_mock();
    memset(&info, 0x5a, sizeof(info));
    info.struct_size = offsetof(struct ds_accel_device_info, total_memory_bytes);
    EXPECT_OK(table->device_info(handle, &info, &error));
    cr_expect_str_eq(info.name, "Mock Device");
    cr_expect_eq(info.total_memory_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.struct_size, offsetof(struct ds_accel_device_info, total_memory_bytes));
    close_mock();
}

static void *current_elsewhere(void *index_out)
{
    cr_expect_eq(ds_accel_current_device(context, index_out), DS_ACCEL_OK);
    return NULL;
}

Test(plugin_mock, the_current_device_is_the_threads)
{
    uint32_t here = 9;
    uint32_t elsewhere = 9;
    ds_accel_device_t *second;
    pthread_t thread;

    open_mock();
    cr_expect_eq(ds_accel_current_device(context, &here), DS_ACCEL_OK);
    cr_expect_eq(here, 0);
    EXPECT_OK(table->device_set_current(open_index(1, &second), &error));
    cr_expect_eq(ds_accel_current_device(context, &here), DS_ACCEL_OK);
    cr_expect_eq(here, 1);
    cr_assert_eq(pthread_create(&thread, NULL, current_elsewhere, &elsewhere), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(elsewhere, 0);
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, a_device_opened_twice_lives_until_both_are_closed)
{
    ds_accel_device_t *again;
    void *pointer;

    open_mock();
    pointer = allocate(100);
    cr_expect_eq(open_index(0, &again), handle);
    ds_accel_device_close(again);
    release(pointer);
    close_mock();
    EXPECT_HAS_NOT(test_log, "allocations left");
}

Test(plugin_mock, what_was_left_when_the_device_was_closed_is_told)
{
    void *pinned;

    open_mock();
    allocate(100);
    allocate(200);
    ASSERT_OK(table->mem_alloc_pinned(handle, 50, 1, 0, &pinned, &error));
    close_mock();
    EXPECT_HAS(test_log,
               "2 mock: device 0 closed with 3 allocations left, 300 bytes of the device");
}

Test(plugin_mock, data_types_are_as_the_options_say)
{
    static const uint32_t full = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    static const uint32_t emulated = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_EMULATED;
    uint32_t support = 9;
    char *report;

    option("bf16", "false");
    open_mock();
    for (uint32_t dtype = 0; dtype <= DS_ACCEL_DTYPE_COMPLEX128 + 1; dtype++) {
        uint32_t wanted = dtype > DS_ACCEL_DTYPE_BOOL ? emulated : full;

        if (dtype == 0 || dtype > DS_ACCEL_DTYPE_COMPLEX128) {
            wanted = 0;
        } else if (dtype == DS_ACCEL_DTYPE_BFLOAT16 || dtype >= DS_ACCEL_DTYPE_COMPLEX32) {
            wanted = DS_ACCEL_DTYPE_STORES;
        }
        EXPECT_OK(table->dtype_support(handle, dtype, &support, &error));
        cr_expect_eq(support, wanted, "%u: %u", dtype, support);
    }
    report = test_report(context, DS_ACCEL_REPORT_INFO, "mock", DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(test_compact(report), "\"is_bf16_supported\":false,\"is_fp16_supported\":true");
    ds_accel_free_text(report);
    close_mock();
}

static ds_accel_t *start_another(ds_accel_device_t **device_out)
{
    ds_accel_t *another = start_mock();

    cr_assert_eq(ds_accel_device_open(another, 0, device_out), DS_ACCEL_OK);
    return another;
}

Test(plugin_mock, devices_of_one_instance_are_peers)
{
    ds_accel_device_t *second;
    ds_accel_device_t *stranger;
    ds_accel_plugin_device_t *peer;
    ds_accel_t *another;
    uint32_t can = 9;

    open_mock();
    peer = open_index(1, &second);
    another = start_another(&stranger);
    EXPECT_OK(table->peer_can_access(handle, peer, &can, &error));
    cr_expect_eq(can, 1);
    EXPECT_OK(table->peer_enable(handle, peer, &error));
    EXPECT_OK(table->peer_enable(handle, peer, &error));
    EXPECT_OK(table->peer_disable(handle, peer, &error));
    EXPECT_OK(table->peer_disable(handle, peer, &error));
    EXPECT_OK(table->peer_can_access(handle, ds_accel_device_handle(stranger), &can, &error));
    cr_expect_eq(can, 0);
    EXPECT_FAIL(table->peer_enable(handle, ds_accel_device_handle(stranger), &error),
                DS_ACCEL_ERR_INVALID, "belong to different instances");
    EXPECT_FAIL(table->peer_disable(handle, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    ds_accel_device_close(second);
    close_mock();
}

/* ---- memory --------------------------------------------------------------------------------- */

static void expect_usage(uint64_t process_bytes, uint64_t available_bytes)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.process_bytes, process_bytes);
    cr_expect_eq(info.available_bytes, available_bytes);
}

static struct ds_accel_memory_stats stats_now(void)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    return stats;
}

Test(plugin_mock, allocations_are_accounted_for)
{
    void *pointer;
    void *managed = NULL;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(1000);
    cr_expect_eq((uintptr_t)pointer % 256, 0);
    ASSERT_OK(table->mem_alloc_managed(handle, 500, 0, &managed, &error));
    expect_usage(1500, 8500);
    cr_expect_eq(stats_now().allocated_bytes, 1500);
    cr_expect_eq(stats_now().reserved_bytes, 1500);
    release(pointer);
    expect_usage(500, 9500);
    release(managed);
    expect_usage(0, 10000);
    cr_expect_eq(stats_now().alloc_count, 2);
    cr_expect_eq(stats_now().free_count, 2);
    cr_expect_eq(stats_now().out_of_memory_count, 0);
    close_mock();
}

static void expect_refused(uint64_t size_bytes, const char *figures)
{
    void *const untouched = &context;
    void *pointer = untouched;

    EXPECT_FAIL(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, figures);
    cr_expect_eq(error.vendor_code, 102);
    cr_expect_str_eq(error.vendor_text, "MOCK_ERROR_NO_MEMORY");
    cr_expect_eq(pointer, untouched);
}

Test(plugin_mock, a_full_device_says_what_was_asked_and_what_there_is)
{
    void *pointer;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(6000);
    expect_refused(4001, "mem_alloc: MOCK_ERROR_NO_MEMORY (102): device 0: asked 4001 bytes, "
                         "allocated 6000, reserved 6000, largest free block 4000");
    expect_refused(UINT64_MAX, "asked 18446744073709551615 bytes, allocated 6000");
    cr_expect_eq(stats_now().out_of_memory_count, 2);
    release(allocate(4000));
    release(pointer);
    close_mock();
}

Test(plugin_mock, a_scripted_lack_of_memory_looks_like_a_real_one)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *pointer = NULL;

    option("fail", "mem_alloc:2=no_memory,mem_alloc_async=no_memory,mem_alloc_managed=no_memory,"
                   "vmem_create=no_memory");
    option("memory_bytes", "10000");
    open_mock();
    stream = make_stream();
    pointer = allocate(1);
    expect_refused(10, "asked 10 bytes, allocated 1, reserved 1, largest free block 9999");
    release(pointer);
    pointer = NULL;
    EXPECT_FAIL(table->mem_alloc_managed(handle, 20, 0, &pointer, &error), DS_ACCEL_ERR_NO_MEMORY,
                "mem_alloc_managed: MOCK_ERROR_NO_MEMORY (102): device 0: asked 20 bytes");
    EXPECT_FAIL(table->mem_alloc_async(stream, 30, 0, NULL, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY,
                "mem_alloc_async: MOCK_ERROR_NO_MEMORY (102): device 0: "
                "asked 30 bytes");
    EXPECT_FAIL(table->vmem_create(handle, 2 * MIB, 0, &vmem, &error), DS_ACCEL_ERR_NO_MEMORY,
                "vmem_create: MOCK_ERROR_NO_MEMORY (102): device 0: asked 2097152 bytes");
    cr_expect_eq(stats_now().out_of_memory_count, 4);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, memory_is_usable_to_the_last_byte)
{
    static const uint64_t sizes[] = {1, 255, 256, 257, 65536, 1048577};
    unsigned char *pointers[LENGTH(sizes)];

    open_mock();
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        pointers[i] = allocate(sizes[i]);
        memset(pointers[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        cr_expect_eq(pointers[i][0], i + 1);
        cr_expect_eq(pointers[i][sizes[i] - 1], i + 1);
        release(pointers[i]);
    }
    close_mock();
}

Test(plugin_mock, a_limit_is_heeded_and_can_be_lifted)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    void *pointer;

    option("memory_bytes", "10000");
    open_mock();
    pointer = allocate(600);
    EXPECT_OK(table->mem_set_limit(handle, 1000, &error));
    expect_refused(401, "allocated 600, reserved 600, largest free block 400");
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.total_bytes, 1000);
    cr_expect_eq(info.limit_bytes, 1000);
    cr_expect_str_eq(info.limit_source, "mem_set_limit()");
    release(allocate(400));
    EXPECT_OK(table->mem_set_limit(handle, 500, &error));
    expect_refused(1, "largest free block 0");
    EXPECT_OK(table->mem_set_limit(handle, 20000, &error));
    expect_refused(9401, "largest free block 9400");
    EXPECT_OK(table->mem_set_limit(handle, 0, &error));
    expect_usage(600, 9400);
    release(pointer);
    close_mock();
}

Test(plugin_mock, peaks_stay_until_they_are_reset)
{
    void *pointer;

    open_mock();
    pointer = allocate(100);
    release(allocate(900));
    cr_expect_eq(stats_now().allocated_peak_bytes, 1000);
    cr_expect_eq(stats_now().reserved_peak_bytes, 1000);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_ALLOCATED, &error));
    cr_expect_eq(stats_now().allocated_peak_bytes, 100);
    cr_expect_eq(stats_now().reserved_peak_bytes, 1000);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_RESERVED, &error));
    cr_expect_eq(stats_now().reserved_peak_bytes, 100);
    EXPECT_FAIL(table->mem_reset_peaks(handle, 4, &error), DS_ACCEL_ERR_INVALID, "0x4");
    release(pointer);
    close_mock();
}

Test(plugin_mock, what_is_not_to_be_freed_is_refused)
{
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    char *pointer;
    void *pinned = NULL;
    int local = 0;

    open_mock();
    peer = open_index(1, &second);
    pointer = allocate(100);
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, &pinned, &error));
    EXPECT_OK(table->mem_free(handle, NULL, &error));
    EXPECT_OK(table->mem_free_pinned(handle, NULL, &error));
    EXPECT_FAIL(table->mem_free(handle, &local, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_FAIL(table->mem_free(handle, pointer + 1, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    EXPECT_FAIL(table->mem_free(peer, pointer, &error), DS_ACCEL_ERR_INVALID, "of device 1");
    EXPECT_FAIL(table->mem_free(handle, pinned, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "live pinned memory");
    EXPECT_FAIL(table->mem_unregister(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "live registered memory");
    release(pointer);
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_FAIL(table->mem_free_pinned(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    cr_expect_eq(stats_now().free_count, 1);
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, sizes_and_flags_that_cannot_be_are_refused)
{
    void *pointer = NULL;

    open_mock();
    EXPECT_FAIL(table->mem_alloc(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0");
    EXPECT_FAIL(table->mem_alloc(handle, 1, 0, 0, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_FAIL(table->mem_alloc(NULL, 1, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID, "NULL");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 0, 1, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "size 0 is 0");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "alignment 3 is no power of two");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 1, 16, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "unknown bits in flags 0x10");
    cr_expect_null(pointer);
    close_mock();
}

static void expect_pinned(uint64_t align_bytes, uint64_t wanted_bytes)
{
    char *pointer = NULL;

    ASSERT_OK(table->mem_alloc_pinned(handle, 100, align_bytes, 0, (void **)&pointer, &error));
    cr_expect_eq((uintptr_t)pointer % wanted_bytes, 0, "%p", (void *)pointer);
    memset(pointer, 1, 100);
    EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
}

Test(plugin_mock, pinned_memory_is_aligned_as_asked)
{
    open_mock();
    expect_pinned(0, (uint64_t)sysconf(_SC_PAGESIZE));
    expect_pinned(1, 64);
    expect_pinned(2, 2);
    expect_pinned(4096, 4096);
    expect_pinned(4 * MIB, 4 * MIB);
    close_mock();
}

Test(plugin_mock, pinned_memory_has_a_limit_for_the_instance)
{
    static char mine[500];
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    void *pinned = NULL;
    void *more = NULL;

    option("pinned_limit_bytes", "1000");
    open_mock();
    peer = open_index(1, &second);
    ASSERT_OK(table->mem_alloc_pinned(handle, 600, 1, 0, &pinned, &error));
    EXPECT_FAIL(table->mem_alloc_pinned(peer, 401, 1, 0, &more, &error), DS_ACCEL_ERR_LIMIT,
                "401 bytes would exceed option pinned_limit_bytes, 1000, of which 600 are used");
    EXPECT_FAIL(table->mem_register(handle, mine, 500, 0, &error), DS_ACCEL_ERR_LIMIT,
                "mem_register: 500 bytes would exceed option pinned_limit_bytes");
    EXPECT_OK(table->mem_register(handle, mine, 400, 0, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_OK(table->mem_alloc_pinned(handle, 600, 1, 0, &pinned, &error));
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    ds_accel_device_close(second);
    close_mock();
}

Test(plugin_mock, memory_is_registered_once)
{
    static char mine[1000];
    void *address = NULL;

    open_mock();
    EXPECT_OK(table->mem_register(handle, mine + 100, 100, DS_ACCEL_PINNED_MAPPED, &error));
    EXPECT_FAIL(table->mem_register(handle, mine, 101, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_FAIL(table->mem_register(handle, mine + 199, 1, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_OK(table->mem_register(handle, mine, 100, 0, &error));
    EXPECT_OK(table->mem_device_pointer(handle, mine + 150, &address, &error));
    cr_expect_eq(address, mine + 150);
    EXPECT_FAIL(table->mem_device_pointer(handle, mine, &address, &error), DS_ACCEL_ERR_INVALID,
                "DS_ACCEL_PINNED_MAPPED");
    EXPECT_FAIL(table->mem_register(handle, NULL, 10, 0, &error), DS_ACCEL_ERR_INVALID, "no range");
    EXPECT_FAIL(table->mem_register(handle, mine, UINT64_MAX, 0, &error), DS_ACCEL_ERR_INVALID,
                "no range");
    EXPECT_FAIL(table->mem_unregister(handle, mine + 150, &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_unregister(handle, mine + 100, &error));
    EXPECT_FAIL(table->mem_unregister(handle, mine, &error), DS_ACCEL_ERR_INVALID, "not the start");
    close_mock();
}

static struct ds_accel_pointer_info info_of(const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .kind = 99};

    EXPECT_OK(table->mem_pointer_info(instance, NULL, pointer, &info, &error));
    return info;
}

static void expect_pointer(const char *pointer, uint32_t kind)
{
    struct ds_accel_pointer_info info = info_of(pointer + 99);

    cr_expect_eq(info.kind, kind);
    cr_expect_eq(info.device_index, 0);
    cr_expect_eq(info.base_address, (uintptr_t)pointer);
    cr_expect_eq(info.size_bytes, 100);
    cr_expect_neq(info.allocation_id, 0);
}

Test(plugin_mock, a_pointer_into_an_allocation_is_known)
{
    static char mine[100];
    void *pinned = NULL;
    void *managed = NULL;
    char *pointer;

    open_mock();
    pointer = allocate(100);
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, &pinned, &error));
    ASSERT_OK(table->mem_alloc_managed(handle, 100, 0, &managed, &error));
    ASSERT_OK(table->mem_register(handle, mine, 100, 0, &error));
    expect_pointer(pointer, DS_ACCEL_POINTER_DEVICE);
    expect_pointer(pinned, DS_ACCEL_POINTER_PINNED);
    expect_pointer(managed, DS_ACCEL_POINTER_MANAGED);
    expect_pointer(mine, DS_ACCEL_POINTER_PINNED);
    cr_expect_eq(info_of(pointer + 100).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(info_of(pointer - 1).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(info_of(NULL).device_index, -1);
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    release(managed);
    release(pointer);
    cr_expect_eq(info_of(pointer).kind, DS_ACCEL_POINTER_UNKNOWN);
    close_mock();
}

Test(plugin_mock, allocation_ids_are_never_used_again)
{
    uint64_t last = 0;

    open_mock();
    for (int i = 0; i < 200; i++) {
        void *pointer = allocate(64);

        cr_expect_gt(info_of(pointer).allocation_id, last);
        last = info_of(pointer).allocation_id;
        release(pointer);
    }
    close_mock();
}

Test(plugin_mock, many_allocations_are_told_apart)
{
    char *pointers[1000];

    open_mock();
    for (size_t i = 0; i < LENGTH(pointers); i++) {
        pointers[i] = allocate(i % 7 + 1);
    }
    for (size_t i = 0; i < LENGTH(pointers); i += 2) {
        release(pointers[i]);
    }
    for (size_t i = 1; i < LENGTH(pointers); i += 2) {
        cr_expect_eq(info_of(pointers[i]).size_bytes, i % 7 + 1);
        release(pointers[i]);
    }
    cr_expect_eq(stats_now().allocated_bytes, 0);
    close_mock();
}

/* ---- copies and fills ----------------------------------------------------------------------- */

Test(plugin_mock, bytes_arrive_whatever_way_they_go)
{
    const uint16_t pattern = 0x1234;
    char text[8] = "there";
    char back[8] = "";
    uint16_t filled[4] = {0};
    ds_accel_plugin_stream_t *stream;
    char *first;
    char *second;

    open_mock();
    stream = make_stream();
    first = allocate(8);
    second = allocate(8);
    EXPECT_OK(table->mem_copy(handle, first, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(
        table->mem_copy_async(stream, second, first, 8, DS_ACCEL_COPY_DEVICE_TO_DEVICE, &error));
    EXPECT_OK(table->mem_copy_async(stream, back, second, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->mem_fill_async(stream, first, &pattern, 2, 8, &error));
    EXPECT_OK(table->mem_copy_async(stream, filled, first, 8, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(back, "there");
    cr_expect_eq(filled[0], pattern);
    cr_expect_eq(filled[3], pattern);
    EXPECT_OK(table->mem_copy(handle, NULL, NULL, 0, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    table->stream_destroy(stream);
    release(second);
    release(first);
    close_mock();
}

static void expect_copy_refused(void *destination, const void *source, uint64_t size_bytes,
                                uint32_t kind, const char *part)
{
    EXPECT_FAIL(table->mem_copy(handle, destination, source, size_bytes, kind, &error),
                DS_ACCEL_ERR_INVALID, part);
}

Test(plugin_mock, copies_that_would_fault_are_refused)
{
    static char host[200];
    char *pointer;

    open_mock();
    pointer = allocate(100);
    expect_copy_refused(pointer, host, 101, DS_ACCEL_COPY_HOST_TO_DEVICE, "past the end");
    expect_copy_refused(pointer + 50, host, 51, DS_ACCEL_COPY_INFER, "past the end");
    expect_copy_refused(host, host + 100, 100, DS_ACCEL_COPY_HOST_TO_DEVICE, "live device memory");
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_HOST_TO_HOST, "is device memory");
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_DEVICE_TO_DEVICE, "live device memory");
    expect_copy_refused(pointer, pointer + 49, 50, DS_ACCEL_COPY_DEVICE_TO_DEVICE, "overlap");
    expect_copy_refused(NULL, host, 100, DS_ACCEL_COPY_INFER, "is no range");
    expect_copy_refused(pointer, host, 100, 0, "unknown kind 0");
    expect_copy_refused(pointer, host, 100, 6, "unknown kind 6");
    EXPECT_OK(table->mem_copy(handle, pointer, pointer + 50, 50, DS_ACCEL_COPY_INFER, &error));
    release(pointer);
    expect_copy_refused(pointer, host, 100, DS_ACCEL_COPY_HOST_TO_DEVICE, "live device memory");
    close_mock();
}

Test(plugin_mock, fills_that_cannot_be_are_refused)
{
    static const char pattern[4] = "abc";
    ds_accel_plugin_stream_t *stream;
    char *pointer;

    open_mock();
    stream = make_stream();
    pointer = allocate(100);
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 3, 99, &error),
                DS_ACCEL_ERR_INVALID, "not of 1, 2 or 4 bytes (3)");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 4, 98, &error),
                DS_ACCEL_ERR_INVALID, "98 bytes are no multiple");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 0, 100, &error),
                DS_ACCEL_ERR_INVALID, "(0)");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, NULL, 1, 100, &error), DS_ACCEL_ERR_INVALID,
                "pattern is NULL");
    EXPECT_FAIL(table->mem_fill_async(stream, pointer, pattern, 1, 101, &error),
                DS_ACCEL_ERR_INVALID, "past the end");
    table->stream_destroy(stream);
    release(pointer);
    close_mock();
}

Test(plugin_mock, a_peer_copy_needs_the_owners_of_both_ends)
{
    char text[8] = "peer";
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_device_t *peer;
    ds_accel_device_t *second;
    void *theirs = NULL;
    void *ours;

    open_mock();
    peer = open_index(1, &second);
    stream = make_stream();
    ours = allocate(8);
    ASSERT_OK(table->mem_alloc(peer, 8, 0, 0, &theirs, &error));
    memcpy(ours, text, 8);
    EXPECT_OK(table->mem_copy_peer_async(stream, peer, theirs, handle, ours, 8, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(theirs, "peer");
    EXPECT_FAIL(table->mem_copy_peer_async(stream, handle, theirs, handle, ours, 8, &error),
                DS_ACCEL_ERR_INVALID, "belongs to another device");
    EXPECT_FAIL(table->mem_copy_peer_async(stream, peer, theirs, NULL, ours, 8, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    table->stream_destroy(stream);
    EXPECT_OK(table->mem_free(peer, theirs, &error));
    release(ours);
    ds_accel_device_close(second);
    close_mock();
}

/* ---- streams and events --------------------------------------------------------------------- */

/* Work that takes as long as option copy_latency_ns says. */
static void queue_copy(ds_accel_plugin_stream_t *stream)
{
    static char from[16];
    static char to[16];

    EXPECT_OK(table->mem_copy_async(stream, to, from, 16, DS_ACCEL_COPY_HOST_TO_HOST, &error));
}

Test(plugin_mock, work_is_not_ready_before_its_time)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    queue_copy(stream);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, each_kind_of_work_has_its_latency)
{
    static const char *const keys[] = {"alloc_latency_ns", "copy_latency_ns", "copy_latency_ns",
                                       "launch_latency_ns"};
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    for (size_t i = 0; i < LENGTH(keys); i++) {
        option(keys[i], HOUR_NS);
        open_mock();
        stream = make_stream();
        if (i == 0) {
            EXPECT_OK(table->mem_alloc_async(stream, 4, 0, NULL, 0, &pointer, &error));
        } else if (i == 1) {
            queue_copy(stream);
        } else if (i == 2) {
            pointer = allocate(4);
            EXPECT_OK(table->mem_fill_async(stream, pointer, "x", 1, 4, &error));
        } else {
            EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
        }
        cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY, "%zu", i);
        table->stream_destroy(stream);
        close_mock();
        option(keys[i], NULL);
    }
}

/* Runs wait, and expects the stream to be idle then, not before the copy's 20 ms are over. */
static void expect_waits(void (*wait)(ds_accel_plugin_stream_t *, ds_accel_plugin_event_t *))
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    uint64_t start;

    option("copy_latency_ns", "20000000");
    open_mock();
    stream = make_stream();
    event = make_event();
    start = now_ns();
    queue_copy(stream);
    EXPECT_OK(table->event_record(event, stream, &error));
    wait(stream, event);
    cr_expect_geq(now_ns() - start, 20 * MS);
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

static void wait_for_stream(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)event;
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
}

static void wait_for_event(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)stream;
    EXPECT_OK(table->event_synchronize(event, UINT64_MAX, &error));
}

static void wait_for_device(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event)
{
    (void)stream;
    (void)event;
    EXPECT_OK(ds_accel_device_synchronize(device));
}

Test(plugin_mock, waiting_takes_until_the_work_is_done)
{
    expect_waits(wait_for_stream);
    expect_waits(wait_for_event);
    expect_waits(wait_for_device);
}

Test(plugin_mock, the_device_waits_for_a_stream_that_was_destroyed)
{
    ds_accel_plugin_stream_t *stream;
    uint64_t start;

    option("copy_latency_ns", "20000000");
    open_mock();
    stream = make_stream();
    start = now_ns();
    queue_copy(stream);
    table->stream_destroy(stream);
    EXPECT_OK(ds_accel_device_synchronize(device));
    cr_expect_geq(now_ns() - start, 20 * MS);
    close_mock();
}

Test(plugin_mock, elapsed_time_is_at_least_the_latency)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed_ms = 0;

    option("copy_latency_ns", "15000000");
    open_mock();
    stream = make_stream();
    start = make_event();
    end = make_event();
    EXPECT_OK(table->event_record(start, stream, &error));
    queue_copy(stream);
    queue_copy(stream);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed_ms, &error));
    cr_expect_geq(elapsed_ms, 30.0);
    EXPECT_OK(table->event_elapsed_ms(end, start, &elapsed_ms, &error));
    cr_expect_leq(elapsed_ms, -30.0);
    EXPECT_OK(table->event_elapsed_ms(end, end, &elapsed_ms, &error));
    cr_expect_eq(elapsed_ms, 0.0);
    table->event_destroy(end);
    table->event_destroy(start);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, elapsed_time_needs_two_events_that_were_reached)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    ds_accel_plugin_event_t *untimed = NULL;
    double elapsed_ms = -7;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    start = make_event();
    end = make_event();
    ASSERT_OK(table->event_create(handle, 0, &untimed, &error));
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_record(untimed, stream, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "never recorded");
    queue_copy(stream);
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "not reached yet");
    EXPECT_FAIL(table->event_elapsed_ms(start, untimed, &elapsed_ms, &error), DS_ACCEL_ERR_STATE,
                "DS_ACCEL_EVENT_TIMING");
    EXPECT_FAIL(table->event_elapsed_ms(start, NULL, &elapsed_ms, &error), DS_ACCEL_ERR_INVALID,
                "NULL");
    cr_expect_eq(elapsed_ms, -7.0);
    table->event_destroy(untimed);
    table->event_destroy(end);
    table->event_destroy(start);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_stream_that_waits_for_an_event_is_busy_until_then)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    first = make_stream();
    second = make_stream();
    event = make_event();
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    queue_copy(first);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_OK(table->stream_query(second, &error));
    EXPECT_OK(table->stream_wait_event(second, event, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->stream_wait_event(second, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    table->event_destroy(event);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, waiting_for_an_event_orders_two_streams)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *after_first;
    ds_accel_plugin_event_t *after_second;
    double elapsed_ms = 0;

    option("copy_latency_ns", "20000000");
    open_mock();
    first = make_stream();
    second = make_stream();
    after_first = make_event();
    after_second = make_event();
    queue_copy(first);
    EXPECT_OK(table->event_record(after_first, first, &error));
    EXPECT_OK(table->stream_wait_event(second, after_first, &error));
    queue_copy(second);
    EXPECT_OK(table->event_record(after_second, second, &error));
    EXPECT_OK(table->stream_synchronize(second, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(after_first, &error));
    EXPECT_OK(table->event_elapsed_ms(after_first, after_second, &elapsed_ms, &error));
    cr_expect_geq(elapsed_ms, 20.0);
    table->event_destroy(after_second);
    table->event_destroy(after_first);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, events_of_another_instance_are_refused)
{
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_plugin_event_t *event;

    open_mock();
    another = start_another(&stranger);
    ASSERT_OK(table->stream_create(ds_accel_device_handle(stranger), 0, 0, &theirs, &error));
    event = make_event();
    EXPECT_FAIL(table->event_record(event, theirs, &error), DS_ACCEL_ERR_INVALID,
                "different instances");
    EXPECT_FAIL(table->stream_wait_event(theirs, event, &error), DS_ACCEL_ERR_INVALID,
                "another instance");
    table->event_destroy(event);
    table->stream_destroy(theirs);
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    close_mock();
}

Test(plugin_mock, allocations_in_a_stream_wait_for_events)
{
    ds_accel_plugin_stream_t *first;
    ds_accel_plugin_stream_t *second;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    first = make_stream();
    second = make_stream();
    event = make_event();
    queue_copy(first);
    EXPECT_OK(table->event_record(event, first, &error));
    EXPECT_FAIL(table->mem_alloc_async(second, 100, 0, NULL, 1, &pointer, &error),
                DS_ACCEL_ERR_INVALID, "waits is NULL");
    EXPECT_OK(table->mem_alloc_async(second, 100, 0, NULL, 0, &pointer, &error));
    EXPECT_OK(table->stream_query(second, &error));
    EXPECT_OK(table->mem_free_async(second, pointer, &event, 1, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    EXPECT_FAIL(table->mem_free_async(second, pointer, NULL, 0, &error), DS_ACCEL_ERR_INVALID,
                "mem_free_async");
    table->stream_destroy(second);
    second = make_stream();
    EXPECT_OK(table->mem_alloc_async(second, 100, 0, &event, 1, &pointer, &error));
    cr_expect_eq(table->stream_query(second, &error), DS_ACCEL_NOT_READY);
    release(pointer);
    table->event_destroy(event);
    table->stream_destroy(second);
    table->stream_destroy(first);
    close_mock();
}

Test(plugin_mock, the_default_stream_is_borrowed)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *again = NULL;

    open_mock();
    EXPECT_OK(table->stream_get_default(handle, &stream, &error));
    cr_assert_not_null(stream);
    table->stream_destroy(stream);
    EXPECT_OK(table->stream_get_default(handle, &again, &error));
    cr_expect_eq(stream, again);
    queue_copy(stream);
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    close_mock();
}

Test(plugin_mock, priorities_and_flags_have_a_range)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_event_t *event = NULL;
    int32_t least = 9;
    int32_t greatest = 9;

    option("ipc", "false");
    open_mock();
    EXPECT_OK(table->stream_priority_range(handle, &least, &greatest, &error));
    cr_expect_eq(least, 0);
    cr_expect_eq(greatest, -2);
    for (int32_t priority = greatest; priority <= least; priority++) {
        ASSERT_OK(
            table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, priority, &stream, &error));
        table->stream_destroy(stream);
    }
    EXPECT_FAIL(table->stream_create(handle, 0, 1, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority 1 is not from -2 to 0");
    EXPECT_FAIL(table->stream_create(handle, 0, -3, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority -3");
    EXPECT_FAIL(table->stream_create(handle, 2, 0, &stream, &error), DS_ACCEL_ERR_INVALID, "0x2");
    EXPECT_FAIL(table->event_create(handle, 8, &event, &error), DS_ACCEL_ERR_INVALID, "0x8");
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &event, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "between processes");
    close_mock();
}

static void count_up(void *user_data, int32_t status)
{
    (void)status;
    ++*(int *)user_data;
}

Test(plugin_mock, a_wait_ends_at_its_deadline)
{
    ds_accel_plugin_stream_t *stream;

    option("launch_latency_ns", "200000000");
    open_mock();
    stream = make_stream();
    EXPECT_OK(table->stream_host_task(stream, do_nothing, NULL, &error));
    cr_expect_eq(table->stream_synchronize(stream, 0, &error), DS_ACCEL_ERR_TIMEOUT);
    cr_expect_eq(table->stream_synchronize(stream, 1000000, &error), DS_ACCEL_ERR_TIMEOUT);
    cr_expect_eq(table->device_synchronize(handle, 1000, &error), DS_ACCEL_ERR_TIMEOUT);
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->stream_synchronize(stream, 0, &error));
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, host_tasks_run_once_each)
{
    ds_accel_plugin_stream_t *stream;
    int count = 0;

    open_mock();
    stream = make_stream();
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(count, 2);
    EXPECT_FAIL(table->stream_host_task(stream, NULL, NULL, &error), DS_ACCEL_ERR_INVALID, "NULL");
    table->stream_destroy(stream);
    close_mock();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_graph_t *end_capture(ds_accel_plugin_stream_t *stream)
{
    ds_accel_plugin_graph_t *graph = NULL;

    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    return graph;
}

/* A graph of one copy. */
static ds_accel_plugin_graph_t *capture_copy(ds_accel_plugin_stream_t *stream, void *to, void *from)
{
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(table->mem_copy_async(stream, to, from, 4, DS_ACCEL_COPY_DEVICE_TO_DEVICE, &error));
    return end_capture(stream);
}

static ds_accel_plugin_graph_exec_t *instantiate(ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;

    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    return exec;
}

Test(plugin_mock, a_graph_computes_again_with_the_data_of_its_launch)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    char *from;
    char *to;

    open_mock();
    stream = make_stream();
    from = allocate(4);
    to = allocate(4);
    strcpy(from, "one");
    strcpy(to, "nil");
    graph = capture_copy(stream, to, from);
    cr_expect_str_eq(to, "nil");
    exec = instantiate(graph);
    table->graph_destroy(graph);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_str_eq(to, "one");
    strcpy(from, "two");
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_str_eq(to, "two");
    release(to);
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_INVALID,
                "live device memory");
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    release(from);
    close_mock();
}

Test(plugin_mock, a_launch_has_its_latency)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    option("launch_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    graph = end_capture(stream);
    exec = instantiate(graph);
    EXPECT_OK(table->stream_query(stream, &error));
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->stream_destroy(stream);
    close_mock();
}

static int32_t keep_text(void *user_data, const char *text, size_t text_bytes)
{
    strncat(user_data, text, text_bytes);
    return DS_ACCEL_OK;
}

static int32_t refuse_text(void *user_data, const char *text, size_t text_bytes)
{
    (void)user_data;
    (void)text;
    (void)text_bytes;
    return DS_ACCEL_ERR_IO;
}

Test(plugin_mock, a_graph_can_be_counted_and_shown)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    uint64_t count = 9;
    char text[512] = "";
    char *pointer;
    int tasks = 0;

    open_mock();
    stream = make_stream();
    event = make_event();
    pointer = allocate(8);
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    EXPECT_OK(table->mem_fill_async(stream, pointer, "x", 1, 8, &error));
    EXPECT_OK(table->mem_copy_async(stream, pointer, pointer + 4, 4, 5, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &tasks, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, event, &error));
    graph = end_capture(stream);
    cr_expect_eq(tasks, 0);
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 4);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    cr_expect_str_eq(text, "digraph mock {\n    n0 [label=\"fill 8 bytes\"];\n"
                           "    n1 [label=\"copy 4 bytes\"];\n    n0 -> n1;\n"
                           "    n2 [label=\"host task\"];\n    n1 -> n2;\n"
                           "    n3 [label=\"record event\"];\n    n2 -> n3;\n}\n");
    EXPECT_FAIL(table->graph_dump(graph, refuse_text, NULL, &error), DS_ACCEL_ERR_IO, "the sink");
    table->graph_destroy(graph);
    release(pointer);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_graph_of_the_same_shape_updates_another)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graphs[3];
    ds_accel_plugin_graph_exec_t *exec;
    uint32_t result = 9;
    char *data;

    open_mock();
    stream = make_stream();
    data = allocate(16);
    memcpy(data, "one\0two\0nil\0nil\0", 16);
    graphs[0] = capture_copy(stream, data + 8, data);
    graphs[1] = capture_copy(stream, data + 12, data + 4);
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_THREAD_LOCAL, &error));
    EXPECT_OK(table->mem_fill_async(stream, data, "x", 1, 4, &error));
    graphs[2] = end_capture(stream);
    exec = instantiate(graphs[0]);
    EXPECT_OK(table->graph_exec_update(exec, graphs[2], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_REBUILD_NEEDED);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_arr_eq(data, "one\0two\0one\0nil\0", 16);
    EXPECT_OK(table->graph_exec_update(exec, graphs[1], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    cr_expect_arr_eq(data, "one\0two\0one\0two\0", 16);
    table->graph_exec_destroy(exec);
    for (size_t i = 0; i < LENGTH(graphs); i++) {
        table->graph_destroy(graphs[i]);
    }
    table->stream_destroy(stream);
    release(data);
    close_mock();
}

static void expect_capturing(ds_accel_plugin_stream_t *stream, uint32_t wanted)
{
    uint32_t status = 9;

    EXPECT_OK(table->graph_capture_status(stream, &status, &error));
    cr_expect_eq(status, wanted, "%u", status);
}

Test(plugin_mock, captures_that_cannot_begin_or_end_are_refused)
{
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    open_mock();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't capture");
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    stream = make_stream();
    EXPECT_FAIL(table->graph_capture_begin(stream, 3, &error), DS_ACCEL_ERR_INVALID, "mode 3");
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                "doesn't capture");
    EXPECT_OK(table->graph_capture_begin(stream, 0, &error));
    expect_capturing(stream, DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    table->graph_destroy(end_capture(stream));
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, asking_a_capturing_stream_breaks_the_capture)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph = NULL;
    void *pointer = NULL;

    open_mock();
    stream = make_stream();
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
        queue_copy(stream);
        if (i == 0) {
            EXPECT_FAIL(table->stream_query(stream, &error), DS_ACCEL_ERR_STATE, "is broken");
        } else if (i == 1) {
            EXPECT_FAIL(table->stream_synchronize(stream, UINT64_MAX, &error), DS_ACCEL_ERR_STATE,
                        "is broken");
        } else {
            EXPECT_FAIL(table->mem_alloc_async(stream, 4, 0, NULL, 0, &pointer, &error),
                        DS_ACCEL_ERR_STATE, "is broken");
        }
        expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
        EXPECT_FAIL(table->stream_host_task(stream, do_nothing, NULL, &error), DS_ACCEL_ERR_STATE,
                    "capture is broken");
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                    "the capture was broken");
        EXPECT_OK(table->stream_query(stream, &error));
    }
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_captured_event_is_recorded_by_the_launch)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    graph = end_capture(stream);
    exec = instantiate(graph);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "recorded in a capture");
    EXPECT_FAIL(table->event_synchronize(event, UINT64_MAX, &error), DS_ACCEL_ERR_STATE, "capture");
    EXPECT_FAIL(table->stream_wait_event(other, event, &error), DS_ACCEL_ERR_STATE, "capture");
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    table->event_destroy(event);
    EXPECT_OK(table->graph_launch(exec, stream, &error));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, an_event_from_outside_breaks_a_capture)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_graph_t *graph = NULL;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    EXPECT_OK(table->event_record(event, other, &error));
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_FAIL(table->stream_wait_event(stream, event, &error), DS_ACCEL_ERR_STATE,
                "outside of the capture");
    expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
    table->event_destroy(event);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

/* A second stream that is drawn in by an event, works, and is waited for. */
Test(plugin_mock, a_capture_forks_to_other_streams_and_joins_them)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_event_t *forks;
    ds_accel_plugin_event_t *joins;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    unsigned char *memory;
    uint64_t count = 0;

    open_mock();
    stream = make_stream();
    other = make_stream();
    forks = make_event();
    joins = make_event();
    memory = allocate(2);
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->mem_fill_async(stream, memory, "a", 1, 2, &error));
    EXPECT_OK(table->event_record(forks, stream, &error));
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->stream_wait_event(other, forks, &error));
    expect_capturing(other, DS_ACCEL_CAPTURING_YES);
    EXPECT_OK(table->mem_fill_async(other, memory, "b", 1, 1, &error));
    EXPECT_OK(table->event_record(joins, other, &error));
    EXPECT_OK(table->stream_wait_event(stream, joins, &error));
    EXPECT_OK(table->event_record(forks, other, &error)); /* a mark is no work to wait for */
    graph = end_capture(stream);
    expect_capturing(stream, DS_ACCEL_CAPTURING_NO);
    expect_capturing(other, DS_ACCEL_CAPTURING_NO);
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 5);
    cr_expect_eq(memory[0], 0, "nothing has run yet");
    exec = instantiate(graph);
    EXPECT_OK(table->graph_launch(exec, other, &error));
    EXPECT_OK(table->stream_synchronize(other, UINT64_MAX, &error));
    cr_expect_eq(memory[0], 'b');
    cr_expect_eq(memory[1], 'a');
    EXPECT_OK(table->event_query(joins, &error));
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    release(memory);
    table->event_destroy(forks);
    table->event_destroy(joins);
    table->stream_destroy(other);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_fork_that_nobody_joins_ends_a_capture_without_a_graph)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *other;
    ds_accel_plugin_stream_t *usual = NULL;
    ds_accel_plugin_event_t *event;
    ds_accel_plugin_event_t *joins;
    ds_accel_plugin_graph_t *graph = NULL;
    unsigned char *memory;

    open_mock();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    joins = make_event();
    memory = allocate(2);
    ASSERT_OK(table->stream_get_default(handle, &usual, &error));
    for (int works_after = 0; works_after < 2; works_after++) {
        ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
        EXPECT_OK(table->event_record(event, stream, &error));
        EXPECT_OK(table->stream_wait_event(other, event, &error));
        EXPECT_OK(table->mem_fill_async(other, memory, "b", 1, 1, &error));
        if (works_after) { /* joined, but for what comes after that */
            EXPECT_OK(table->event_record(joins, other, &error));
            EXPECT_OK(table->stream_wait_event(stream, joins, &error));
            EXPECT_OK(table->mem_fill_async(other, memory, "c", 1, 1, &error));
        }
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                    "is not joined");
        EXPECT_OK(table->stream_query(other, &error));
    }
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_FAIL(table->stream_wait_event(usual, event, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't be drawn");
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    EXPECT_FAIL(table->graph_capture_begin(other, 0, &error), DS_ACCEL_ERR_STATE,
                "captures already");
    EXPECT_FAIL(table->graph_capture_end(other, &graph, &error), DS_ACCEL_ERR_STATE,
                "began on another stream");
    expect_capturing(stream, DS_ACCEL_CAPTURING_BROKEN);
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_OK(table->stream_wait_event(other, event, &error));
    EXPECT_OK(table->mem_fill_async(other, memory, "d", 1, 1, &error));
    table->stream_destroy(other);
    expect_capturing(stream, DS_ACCEL_CAPTURING_YES); /* but its work has to be joined */
    EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE,
                "is not joined");
    ASSERT_OK(table->graph_capture_begin(stream, 0, &error));
    EXPECT_OK(table->event_record(event, stream, &error));
    table->stream_destroy(stream);
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "recorded in a capture");
    release(memory);
    table->event_destroy(event);
    table->event_destroy(joins);
    close_mock();
}

/* ---- virtual memory ------------------------------------------------------------------------- */

#define PAGE (2 * MIB)

static char *reserve(uint64_t size_bytes)
{
    void *address = NULL;

    ASSERT_OK(table->vmem_reserve(handle, size_bytes, 0, NULL, 0, &address, &error));
    return address;
}

static ds_accel_plugin_vmem_t *create_vmem(uint64_t size_bytes)
{
    ds_accel_plugin_vmem_t *vmem = NULL;

    ASSERT_OK(table->vmem_create(handle, size_bytes, 0, &vmem, &error));
    return vmem;
}

static void map_usable(char *address, uint64_t size_bytes, ds_accel_plugin_vmem_t *vmem)
{
    ASSERT_OK(table->vmem_map(handle, address, size_bytes, vmem, 0, &error));
    ASSERT_OK(table->vmem_set_access(handle, address, size_bytes, DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                     &error));
}

Test(plugin_mock, mapped_memory_can_be_copied_through)
{
    char text[8] = "virtual";
    char back[8] = "";
    ds_accel_plugin_vmem_t *vmem;
    uint64_t granularity = 0;
    char *address;

    open_mock();
    EXPECT_OK(table->vmem_granularity(handle, 0, &granularity, &granularity, &error));
    cr_expect_eq(granularity, PAGE);
    address = reserve(2 * PAGE);
    cr_expect_eq((uintptr_t)address % PAGE, 0);
    vmem = create_vmem(PAGE);
    expect_usage(PAGE, 1024 * MIB - PAGE);
    map_usable(address, PAGE, vmem);
    map_usable(address + PAGE, PAGE, vmem);
    EXPECT_OK(table->mem_copy(handle, address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(
        table->mem_copy(handle, back, address + PAGE, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    cr_expect_str_eq(back, "virtual");
    table->vmem_destroy(vmem);
    cr_expect_str_eq(address, "virtual");
    EXPECT_OK(table->vmem_unmap(handle, address, 2 * PAGE, &error));
    expect_usage(0, 1024 * MIB);
    EXPECT_OK(table->vmem_release(handle, address, 2 * PAGE, &error));
    close_mock();
}

Test(plugin_mock, a_copy_can_span_mappings_that_follow_each_other)
{
    static char text[64];
    ds_accel_plugin_vmem_t *first;
    ds_accel_plugin_vmem_t *second;
    char *address;

    open_mock();
    memset(text, 'x', sizeof(text));
    address = reserve(3 * PAGE);
    first = create_vmem(PAGE);
    second = create_vmem(PAGE);
    map_usable(address, PAGE, first);
    map_usable(address + PAGE, PAGE, second);
    EXPECT_OK(table->mem_copy(handle, address + PAGE - 32, text, 64, DS_ACCEL_COPY_HOST_TO_DEVICE,
                              &error));
    cr_expect_arr_eq(address + PAGE - 32, text, 64);
    expect_copy_refused(address + 2 * PAGE - 32, text, 64, DS_ACCEL_COPY_HOST_TO_DEVICE,
                        "live device memory");
    cr_expect_eq(info_of(address + PAGE + 5).base_address, (uintptr_t)address + PAGE);
    cr_expect_eq(info_of(address + PAGE + 5).size_bytes, PAGE);
    cr_expect_eq(info_of(address + 2 * PAGE).kind, DS_ACCEL_POINTER_UNKNOWN);
    table->vmem_destroy(second);
    table->vmem_destroy(first);
    close_mock();
}

Test(plugin_mock, access_is_as_it_was_set)
{
    static char text[8];
    ds_accel_plugin_vmem_t *vmem;
    char *address;

    open_mock();
    address = reserve(PAGE);
    vmem = create_vmem(PAGE);
    ASSERT_OK(table->vmem_map(handle, address, PAGE, vmem, 0, &error));
    expect_copy_refused(address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, "without that access");
    expect_copy_refused(text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, "without that access");
    EXPECT_OK(table->vmem_set_access(handle, address, PAGE, DS_ACCEL_VMEM_ACCESS_READ, &error));
    expect_copy_refused(address, text, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, "without that access");
    EXPECT_OK(table->mem_copy(handle, text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    EXPECT_OK(table->vmem_set_access(handle, address, PAGE, DS_ACCEL_VMEM_ACCESS_NONE, &error));
    expect_copy_refused(text, address, 8, DS_ACCEL_COPY_DEVICE_TO_HOST, "without that access");
    EXPECT_FAIL(table->vmem_set_access(handle, address, PAGE, 2, &error), DS_ACCEL_ERR_INVALID,
                "unknown access 2");
    EXPECT_OK(table->vmem_unmap(handle, address, PAGE, &error));
    EXPECT_FAIL(table->vmem_set_access(handle, address, PAGE, 3, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    table->vmem_destroy(vmem);
    close_mock();
}

Test(plugin_mock, ranges_that_cannot_be_are_refused)
{
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    char *base;

    open_mock();
    EXPECT_FAIL(table->vmem_reserve(handle, PAGE - 1, 0, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "not a multiple of 2097152");
    EXPECT_FAIL(table->vmem_reserve(handle, 0, 0, NULL, 0, &address, &error), DS_ACCEL_ERR_INVALID,
                "");
    EXPECT_FAIL(table->vmem_reserve(handle, PAGE, 3, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "alignment 3");
    EXPECT_FAIL(table->vmem_create(handle, 4096, 0, &vmem, &error), DS_ACCEL_ERR_INVALID,
                "size 4096");
    EXPECT_FAIL(table->vmem_create(handle, 2048 * MIB, 0, &vmem, &error), DS_ACCEL_ERR_NO_MEMORY,
                "asked 2147483648 bytes");
    base = reserve(2 * PAGE);
    vmem = create_vmem(PAGE);
    EXPECT_FAIL(table->vmem_map(handle, base, 2 * PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "has no 4194304 bytes");
    EXPECT_FAIL(table->vmem_map(handle, base, PAGE, vmem, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "at offset 2097152");
    EXPECT_FAIL(table->vmem_map(handle, base + 4096, PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "range of the granularity");
    EXPECT_FAIL(table->vmem_map(handle, base + 64 * PAGE, PAGE, vmem, 0, &error),
                DS_ACCEL_ERR_INVALID, "not in a reservation");
    map_usable(base, PAGE, vmem);
    EXPECT_FAIL(table->vmem_map(handle, base, PAGE, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "mapped already");
    EXPECT_FAIL(table->vmem_unmap(handle, base, 2 * PAGE, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    EXPECT_FAIL(table->vmem_release(handle, base, 2 * PAGE, &error), DS_ACCEL_ERR_BUSY,
                "still mapped");
    EXPECT_FAIL(table->vmem_release(handle, base, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "no reservation");
    EXPECT_OK(table->vmem_unmap(handle, base, PAGE, &error));
    EXPECT_OK(table->vmem_release(handle, base, 2 * PAGE, &error));
    table->vmem_destroy(vmem);
    close_mock();
}

Test(plugin_mock, reserved_addresses_are_aligned_as_asked)
{
    void *address = NULL;

    open_mock();
    ASSERT_OK(table->vmem_reserve(handle, PAGE, 64 * MIB, NULL, 0, &address, &error));
    cr_expect_eq((uintptr_t)address % (64 * MIB), 0);
    EXPECT_OK(table->vmem_release(handle, address, PAGE, &error));
    EXPECT_FAIL(table->vmem_release(handle, address, PAGE, &error), DS_ACCEL_ERR_INVALID,
                "no reservation");
    close_mock();
}

/* ---- facts ---------------------------------------------------------------------------------- */

Test(plugin_mock, telemetry_says_what_is_valid)
{
    const uint64_t all = DS_ACCEL_BIT(13) - 1;
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    void *pointer;

    option("memory_bytes", "1000");
    open_mock();
    pointer = allocate(250);
    EXPECT_OK(table->telemetry_get(instance, 0, &telemetry, &error));
    cr_expect_eq(telemetry.valid, all & ~DS_ACCEL_TELEMETRY_FAN);
    cr_expect_eq(telemetry.memory_utilization_percent, 25);
    cr_expect_eq(telemetry.utilization_percent, 25);
    cr_expect_eq(telemetry.temperature_millidegrees_c, 40000);
    cr_expect_eq(telemetry.power_milliwatts, 75000);
    cr_expect_eq(telemetry.throttle_reasons, DS_ACCEL_THROTTLE_IDLE);
    EXPECT_OK(table->telemetry_get(instance, 1, &telemetry, &error));
    cr_expect_eq(telemetry.temperature_millidegrees_c, 41000);
    cr_expect_eq(telemetry.memory_utilization_percent, 0);
    EXPECT_FAIL(table->telemetry_get(instance, 2, &telemetry, &error), DS_ACCEL_ERR_INVALID,
                "device 2 does not exist");
    release(pointer);
    close_mock();
}

Test(plugin_mock, this_process_uses_the_devices_it_has_open)
{
    struct ds_accel_process process = {0};
    uint32_t count = 9;
    void *pointer;

    open_mock();
    pointer = allocate(300);
    EXPECT_OK(table->telemetry_processes(instance, 0, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 1);
    EXPECT_OK(
        table->telemetry_processes(instance, 0, &process, sizeof(process), 1, &count, &error));
    cr_expect_eq(count, 1);
    cr_expect_eq(process.struct_size, sizeof(process));
    cr_expect_eq(process.pid, getpid());
    cr_expect_eq(process.memory_bytes, 300);
    EXPECT_OK(table->telemetry_processes(instance, 1, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 0);
    EXPECT_FAIL(table->telemetry_processes(instance, 0, NULL, 8, 1, &count, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    release(pointer);
    close_mock();
}

static void expect_links(const char *device_count, uint32_t index, uint32_t wanted, int32_t next,
                         int32_t before)
{
    struct {
        struct ds_accel_link link;
        uint32_t behind;
    } links[3] = {{.behind = 7}, {.behind = 7}, {.behind = 7}};
    uint32_t count = 9;

    option("device_count", device_count);
    open_mock();
    EXPECT_OK(table->links_get(instance, index, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, wanted);
    EXPECT_OK(
        table->links_get(instance, index, &links[0].link, sizeof(links[0]), 3, &count, &error));
    cr_expect_eq(count, wanted);
    cr_expect(count < 1 || links[0].link.peer_index == next);
    cr_expect(count < 2 || links[1].link.peer_index == before);
    cr_expect(count < 1 || (links[0].link.is_up == 1 && links[0].link.width == 4));
    cr_expect_eq(links[2].link.struct_size, 0);
    close_mock();
}

Test(plugin_mock, links_form_a_ring)
{
    expect_links("1", 0, 0, 0, 0);
    expect_links("2", 0, 1, 1, 0);
    expect_links("2", 1, 1, 0, 0);
    expect_links("3", 0, 2, 1, 2);
    expect_links("4", 3, 2, 0, 2);
}

Test(plugin_mock, fewer_links_than_there_are_can_be_asked)
{
    struct ds_accel_link links[2];
    uint32_t count = 9;

    option("device_count", "4");
    memset(links, 0, sizeof(links));
    open_mock();
    EXPECT_OK(table->links_get(instance, 1, links, sizeof(links[0]), 1, &count, &error));
    cr_expect_eq(count, 2);
    cr_expect_eq(links[0].peer_index, 2);
    cr_expect_eq(links[1].struct_size, 0);
    close_mock();
}

Test(plugin_mock, the_backend_says_what_it_can)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    const void *extension = NULL;

    option("ipc", "false");
    open_mock();
    EXPECT_OK(table->backend_info(instance, &info, &error));
    cr_expect_eq(info.flags, DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES |
                                 DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY |
                                 DS_ACCEL_FLAG_VIRTUAL_MEMORY | DS_ACCEL_FLAG_RANGE_DOMAINS |
                                 DS_ACCEL_FLAG_HOST_ACCESSIBLE);
    cr_expect_str_eq(info.communication_backend, "gloo");
    cr_expect_str_eq(info.compile_backend, "inductor");
    cr_expect_eq(info.memory_handle_bytes, 0);
    EXPECT_FAIL(table->extension(instance, "nothing.1", &extension, &error), DS_ACCEL_ERR_NOT_FOUND,
                "nothing.1");
    EXPECT_FAIL(table->extension(instance, NULL, &extension, &error), DS_ACCEL_ERR_INVALID, "NULL");
    cr_expect_eq(table->rng_seed(handle, 1, &error), DS_ACCEL_ERR_UNSUPPORTED);
    close_mock();
}

Test(plugin_mock, one_op_builder_is_there_and_its_op_is_compatible)
{
    struct ds_accel_op_builder builder = {0};
    char reason[64] = "before";
    uint32_t compatible = 9;
    uint32_t count = 9;

    open_mock();
    EXPECT_OK(table->op_builders_get(instance, NULL, 0, 0, &count, &error));
    cr_expect_eq(count, 1);
    EXPECT_OK(table->op_builders_get(instance, &builder, sizeof(builder), 1, &count, &error));
    cr_expect_str_eq(builder.builder, "MockAddBuilder");
    cr_expect_str_eq(builder.op, "mock_add");
    EXPECT_OK(
        table->op_compatible(instance, "mock_add", &compatible, reason, sizeof(reason), &error));
    cr_expect_eq(compatible, 1);
    cr_expect_str_eq(reason, "");
    EXPECT_OK(
        table->op_compatible(instance, "cpu_adam", &compatible, reason, sizeof(reason), &error));
    cr_expect_eq(compatible, 0);
    cr_expect_str_eq(reason, "the mock device runs mock_add only");
    EXPECT_OK(table->op_compatible(instance, "cpu_adam", &compatible, reason, 4, &error));
    cr_expect_str_eq(reason, "the");
    EXPECT_FAIL(table->op_compatible(instance, NULL, &compatible, reason, 4, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    close_mock();
}

Test(plugin_mock, the_environment_it_wants_can_be_asked)
{
    struct ds_accel_env_rule rule = {0};
    uint32_t count = 9;
    char name[64] = "";

    open_mock();
    EXPECT_OK(table->env_rules_get(instance, &rule, sizeof(rule), 1, &count, &error));
    cr_expect_eq(count, 1);
    cr_expect_eq(rule.rule, DS_ACCEL_ENV_IF_UNSET);
    cr_expect_str_eq(rule.name, "MOCK_RUNTIME");
    cr_expect_str_eq(rule.value, "1");
    EXPECT_OK(
        table->env_name_get(instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, name, 21, &error));
    cr_expect_str_eq(name, "MOCK_VISIBLE_DEVICES");
    EXPECT_OK(table->env_name_get(instance, DS_ACCEL_ENV_LIST_EXPORT, 0, name, 64, &error));
    cr_expect_str_eq(name, "MOCK_");
    EXPECT_FAIL(table->env_name_get(instance, DS_ACCEL_ENV_LIST_EXPORT, 1, name, 64, &error),
                DS_ACCEL_ERR_NOT_FOUND, "position 1");
    EXPECT_FAIL(table->env_name_get(instance, 3, 0, name, 64, &error), DS_ACCEL_ERR_INVALID,
                "unknown list 3");
    EXPECT_FAIL(
        table->env_name_get(instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, name, 20, &error),
        DS_ACCEL_ERR_INVALID, "does not fit into 20 bytes");
    close_mock();
}

Test(plugin_mock, visible_devices_are_listed_in_their_order)
{
    uint32_t needed = 0;
    static const uint32_t indices[] = {3, 0, 10};
    char value[64] = "before";

    option("device_count", "11");
    open_mock();
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value,
                                           sizeof(value), NULL, &error));
    cr_expect_str_eq(value, "3,0,10");
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value, 7,
                                           NULL, &error));
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", NULL, 0, value, 1,
                                           NULL, &error));
    cr_expect_str_eq(value, "");
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value, 6,
                                             NULL, &error),
                DS_ACCEL_ERR_LIMIT, "7 bytes do not fit into 6");
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, NULL, 0,
                                             &needed, &error),
                DS_ACCEL_ERR_LIMIT, "7 bytes do not fit into 0");
    cr_expect_eq(needed, 7);
    EXPECT_FAIL(table->visible_devices_value(instance, "OTHER_DEVICES", indices, 3, value,
                                             sizeof(value), NULL, &error),
                DS_ACCEL_ERR_NOT_FOUND, "OTHER_DEVICES");
    close_mock();
    option("device_count", "10");
    open_mock();
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 3, value,
                                             64, NULL, &error),
                DS_ACCEL_ERR_INVALID, "position 2 of the list: device 10 does not exist");
    close_mock();
}

Test(plugin_mock, a_variable_shows_some_devices)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    const uint32_t index = 1;
    uint32_t count = 0;
    char value[8] = "";

    option("device_count", "4");
    setenv("MOCK_VISIBLE_DEVICES", "3,1", 1);
    open_mock();
    EXPECT_OK(table->device_count(instance, &count, &error));
    cr_expect_eq(count, 2);
    EXPECT_OK(table->device_identity(instance, 0, &identity, &error));
    cr_expect_eq(identity.vendor_index, 3);
    cr_expect_str_eq(identity.pci_address, "0000:e3:00.0");
    /* For a child that is started with this environment. */
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", &index, 1, value,
                                           sizeof(value), NULL, &error));
    cr_expect_str_eq(value, "1");
    close_mock();
}

Test(plugin_mock, every_device_at_once_can_be_made_visible)
{
    uint32_t indices[257];
    char value[1100] = "";

    for (uint32_t i = 0; i < LENGTH(indices); i++) {
        indices[i] = 255;
    }
    option("device_count", "256");
    open_mock();
    EXPECT_OK(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 256, value,
                                           sizeof(value), NULL, &error));
    cr_expect_eq(strlen(value), 256 * 4 - 1);
    EXPECT_FAIL(table->visible_devices_value(instance, "MOCK_VISIBLE_DEVICES", indices, 257, value,
                                             sizeof(value), NULL, &error),
                DS_ACCEL_ERR_INVALID, "the list is too long");
    close_mock();
}

Test(plugin_mock, reports_show_what_the_plugin_says)
{
    char *report;

    context = create_for(NULL);
    report = test_report(context, DS_ACCEL_REPORT_INFO, "mock", DS_ACCEL_FORMAT_JSON);
    test_compact(report);
    EXPECT_HAS(report, "\"op_builders\":[\"MockAddBuilder\"]");
    EXPECT_HAS(report, "\"visible_devices_envs\":[\"MOCK_VISIBLE_DEVICES\"]");
    EXPECT_HAS(report, "\"export_envs\":[\"MOCK_\"]");
    EXPECT_HAS(report, "\"uuid\":\"MOCK-00000000-0000-0000-0000-000000000001\"");
    EXPECT_HAS(report, "\"pci_address\":\"0000:e1:00.0\"");
    ds_accel_free_text(report);
    unsetenv("MOCK_RUNTIME");
    report = test_report(context, DS_ACCEL_REPORT_ENV, "mock", 0);
    EXPECT_HAS(report, "MOCK_RUNTIME='1'");
    ds_accel_free_text(report);
    setenv("MOCK_RUNTIME", "0", 1);
    report = test_report(context, DS_ACCEL_REPORT_ENV, "mock", 0);
    EXPECT_HAS_NOT(report, "MOCK_RUNTIME='1'");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

/* ---- profiler ranges ------------------------------------------------------------------------ */

static void *pop_elsewhere(void *unused)
{
    struct ds_accel_error mine = {.struct_size = sizeof(mine)};

    (void)unused;
    cr_expect_eq(table->range_pop(instance, NULL, &mine), DS_ACCEL_ERR_STATE);
    return NULL;
}

Test(plugin_mock, every_pop_needs_its_push)
{
    pthread_t thread;

    open_mock();
    EXPECT_FAIL(table->range_pop(instance, NULL, &error), DS_ACCEL_ERR_STATE, "no range");
    EXPECT_FAIL(table->range_push(instance, NULL, NULL, NULL, &error), DS_ACCEL_ERR_INVALID,
                "message");
    EXPECT_OK(table->range_push(instance, "outer", NULL, "category", &error));
    EXPECT_OK(table->range_push(instance, "inner", NULL, NULL, &error));
    EXPECT_OK(table->range_push(instance, "other", "domain", NULL, &error));
    cr_assert_eq(pthread_create(&thread, NULL, pop_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    EXPECT_FAIL(table->range_pop(instance, "another", &error), DS_ACCEL_ERR_STATE, "\"another\"");
    EXPECT_OK(table->range_pop(instance, "domain", &error));
    EXPECT_FAIL(table->range_pop(instance, "domain", &error), DS_ACCEL_ERR_STATE, "\"domain\"");
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    EXPECT_OK(table->range_pop(instance, NULL, &error));
    EXPECT_FAIL(table->range_pop(instance, NULL, &error), DS_ACCEL_ERR_STATE, "no range");
    EXPECT_OK(table->range_push(instance, "left open", "domain", NULL, &error));
    EXPECT_OK(table->profiler_start(instance, &error));
    EXPECT_OK(table->profiler_stop(instance, &error));
    close_mock();
}

/* ---- native handles ------------------------------------------------------------------------- */

static uint64_t native_of(uint32_t kind, const void *object)
{
    uint64_t offset_bytes = 1;
    uint64_t native = 0;

    EXPECT_OK(table->native_get(handle, kind, object, &native, &offset_bytes, &error));
    cr_expect_neq(native, 0);
    return native;
}

Test(plugin_mock, a_wrapped_stream_is_the_same_stream)
{
    ds_accel_plugin_stream_t *stream;
    void *wrapped = NULL;
    uint64_t native;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    native = native_of(DS_ACCEL_NATIVE_STREAM, stream);
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, native, &wrapped, &error));
    cr_expect_neq(wrapped, stream);
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_STREAM, wrapped), native);
    EXPECT_OK(table->stream_query(stream, &error));
    queue_copy(wrapped);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->stream_destroy(wrapped);
    cr_expect_eq(table->stream_query(stream, &error), DS_ACCEL_NOT_READY);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, a_wrapped_event_is_the_same_event)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    void *wrapped = NULL;

    option("copy_latency_ns", HOUR_NS);
    open_mock();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->native_wrap(handle, DS_ACCEL_NATIVE_EVENT,
                                 native_of(DS_ACCEL_NATIVE_EVENT, event), &wrapped, &error));
    queue_copy(stream);
    EXPECT_OK(table->event_record(wrapped, stream, &error));
    table->event_destroy(wrapped);
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_mock();
}

Test(plugin_mock, natives_of_other_kinds_are_told_apart)
{
    uint64_t offset_bytes;
    ds_accel_plugin_stream_t *stream;
    void *wrapped = NULL;
    void *pointer;
    uint64_t native = 0;

    open_mock();
    stream = make_stream();
    pointer = allocate(8);
    cr_expect_eq(native_of(DS_ACCEL_NATIVE_MEMORY, pointer), (uintptr_t)pointer);
    native_of(DS_ACCEL_NATIVE_DEVICE, handle);
    native_of(DS_ACCEL_NATIVE_CONTEXT, handle);
    EXPECT_FAIL(
        table->native_get(handle, DS_ACCEL_NATIVE_DEVICE, stream, &native, &offset_bytes, &error),
        DS_ACCEL_ERR_INVALID, "kind 1");
    EXPECT_FAIL(table->native_get(handle, 60, stream, &native, &offset_bytes, &error),
                DS_ACCEL_ERR_INVALID, "kind 6");
    EXPECT_FAIL(table->native_wrap(handle, DS_ACCEL_NATIVE_DEVICE, 1, &wrapped, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "kind 1");
    EXPECT_FAIL(table->native_wrap(handle, 60, 1, &wrapped, &error), DS_ACCEL_ERR_INVALID,
                "kind 60");
    EXPECT_FAIL(table->native_wrap(handle, DS_ACCEL_NATIVE_STREAM, 0, &wrapped, &error),
                DS_ACCEL_ERR_INVALID, "NULL");
    release(pointer);
    table->stream_destroy(stream);
    close_mock();
}

/* ---- two instances -------------------------------------------------------------------------- */

Test(plugin_mock, two_contexts_do_not_meet)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_device_t *theirs;
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    uint32_t count = 0;
    char *pointer;

    option("fail", "device_health:2=device_lost");
    option("pinned_limit_bytes", "100");
    open_mock();
    option("fail", NULL);
    option("device_count", "5");
    another = start_another(&stranger);
    theirs = ds_accel_device_handle(stranger);
    pointer = allocate(100);
    EXPECT_FAIL(table->mem_free(theirs, pointer, &error), DS_ACCEL_ERR_INVALID, "not the start");
    EXPECT_OK(ds_accel_device_memory(stranger, &info));
    cr_expect_eq(info.process_bytes, 0);
    EXPECT_OK(table->device_health(theirs, &error));
    EXPECT_OK(table->device_health(handle, &error));
    release(pointer);
    cr_expect_eq(table->device_health(handle, &error), DS_ACCEL_ERR_DEVICE_LOST);
    EXPECT_OK(table->device_health(theirs, &error));
    cr_expect_eq(ds_accel_device_count(context, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 2);
    cr_expect_eq(ds_accel_device_count(another, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 5);
    close_mock();
    EXPECT_OK(ds_accel_device_table(stranger)->device_health(theirs, &error));
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
}

Test(plugin_mock, allocation_ids_are_unique_in_the_process)
{
    ds_accel_plugin_instance_t *their_instance;
    const struct ds_accel_plugin *their_table;
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    ds_accel_device_t *stranger;
    ds_accel_t *another;
    void *ours;
    void *theirs = NULL;

    open_mock();
    another = start_another(&stranger);
    cr_assert_eq(ds_accel_instance(another, &their_table, &their_instance), DS_ACCEL_OK);
    cr_expect_neq(their_instance, instance);
    ours = allocate(8);
    ASSERT_OK(their_table->mem_alloc(ds_accel_device_handle(stranger), 8, 0, 0, &theirs, &error));
    EXPECT_OK(their_table->mem_pointer_info(their_instance, NULL, theirs, &info, &error));
    cr_expect_neq(info.allocation_id, info_of(ours).allocation_id);
    cr_expect_eq(info_of(theirs).kind, DS_ACCEL_POINTER_UNKNOWN);
    EXPECT_OK(their_table->mem_free(ds_accel_device_handle(stranger), theirs, &error));
    release(ours);
    ds_accel_device_close(stranger);
    ds_accel_destroy(another);
    close_mock();
}
