/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mock plugin: options. Each option has a default and is read from the environment and the
 * configuration; a malformed option is rejected.
 */
#include "mock.h"

/* Write a configuration that sets only this option. */
static void configure(const char *key, const char *json)
{
    char text[512];

    snprintf(text, sizeof(text), "{\"backends\": {\"mock\": {\"options\": {\"%s\": %s}}}}", key,
             json);
    test_write("etc/ds-accel.json", text);
}

/* Unset the mock's options: those in the user's environment would change the results. */
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

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        option(keys[i], NULL);
    }
}

TestSuite(plugin_mock, .init = forget_options);

/* ---- options that set a fact, each with a function that reads the fact ----------------------- */

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

/* Read the variant from the verdict of mock, which defers to cpu because of the variant. */
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

/* An option, its default result, a value for the environment and one for the configuration, and the
   result of each. */
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
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        expect_seen(&facts[i], facts[i].usual);
    }
}

Test(plugin_mock, every_option_can_be_set_by_the_environment)
{
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        option(facts[i].key, facts[i].value);
        expect_seen(&facts[i], facts[i].seen);
        option(facts[i].key, NULL);
    }
    option("bf16", "false");
    option("fp16", "false");
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        if (strstr(facts[i].key, "16") != NULL) {
            expect_seen(&facts[i], "false");
        }
    }
}

Test(plugin_mock, every_option_can_be_set_by_the_configuration)
{
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        configure(facts[i].key, facts[i].json);
        expect_seen(&facts[i], facts[i].json_seen);
    }
}

Test(plugin_mock, the_environment_wins_over_the_configuration)
{
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
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

/* ---- options that delay calls ---------------------------------------------------------------- */

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

/* An option, a value that makes the call take 20 ms, and a value that makes it almost instant. */
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
    for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
        configure(delays[i].key, delays[i].quick);
        option(delays[i].key, delays[i].slow);
        expect_slow(&delays[i]);
        option(delays[i].key, NULL);
    }
}

Test(plugin_mock, latencies_can_be_set_by_the_configuration)
{
    for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
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

    for (size_t i = 0; i < ARRAY_SIZE(available); i++) {
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

/* By default work takes no time: it completes at its start time, which is already past. */
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

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
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

    for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
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
