/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Facts, settings, lazy calls, timers, environment and sharing of the public API. */
#include "fixture.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A context with this accelerator, made and chosen. */
static ds_accel_t *start(const char *accelerator)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = accelerator;
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return context;
}

/* ---- a backend that has the required functions and tells nothing ---------------------------- */

static int tiny_state;

static int32_t tiny_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                          struct ds_accel_error *error)
{
    (void)host;
    (void)error;
    verdict->state = DS_ACCEL_PROBE_AVAILABLE;
    verdict->device_count = 3;
    return DS_ACCEL_OK;
}

static int32_t tiny_init(const struct ds_accel_host *host,
                         ds_accel_plugin_instance_t **instance_out, struct ds_accel_error *error)
{
    (void)host;
    (void)error;
    *instance_out = (ds_accel_plugin_instance_t *)&tiny_state;
    return DS_ACCEL_OK;
}

static void tiny_shutdown(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static int32_t tiny_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                          struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    *count_out = 3;
    return DS_ACCEL_OK;
}

static int32_t tiny_open(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)instance;
    (void)device_index;
    (void)error;
    *device_out = (ds_accel_plugin_device_t *)&tiny_state;
    return DS_ACCEL_OK;
}

static void tiny_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static const struct ds_accel_plugin *tiny_entry(const struct ds_accel_host *host)
{
    static const struct ds_accel_plugin table = {
        .struct_size = sizeof(table),
        .abi_major = DS_ACCEL_ABI_MAJOR,
        .name = "tiny",
        .vendor = "tests",
        .version = "1",
        .probe = tiny_probe,
        .init = tiny_init,
        .shutdown = tiny_shutdown,
        .device_count = tiny_count,
        .device_open = tiny_open,
        .device_close = tiny_close,
    };

    (void)host;
    return &table;
}

static ds_accel_t *start_tiny(void)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = "tiny";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, tiny_entry), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return context;
}

/* ---- flags ---------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    uint64_t flag;
} keys[] = {
    {"is_synchronized_device", DS_ACCEL_FLAG_SYNCHRONIZED},
    {"use_host_timers", DS_ACCEL_FLAG_HOST_TIMERS},
    {"resolves_data_dependency", DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES},
    {"handles_memory_backpressure", DS_ACCEL_FLAG_HANDLES_BACKPRESSURE},
    {"supports_range_domains", DS_ACCEL_FLAG_RANGE_DOMAINS},
    {"is_triton_supported", DS_ACCEL_FLAG_TRITON},
    {"prefer_triton_grouped_mm", DS_ACCEL_FLAG_TRITON_GROUPED_MM},
    {"graph_supported", DS_ACCEL_FLAG_GRAPHS},
};

/* A member of the report: "key":value, in text. */
static void expect_member(const char *json, const char *key, const char *value)
{
    char member[256];

    snprintf(member, sizeof(member), "\"%s\":%s", key, value);
    EXPECT_HAS(json, member);
}

static const char *word(int32_t status, uint32_t answer)
{
    return status == DS_ACCEL_ERR_UNSUPPORTED ? "null" : answer != 0 ? "true" : "false";
}

/* Every function says what the report says. */
static void expect_agreement(ds_accel_t *context)
{
    char *json =
        test_compact(test_report(context, DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON));
    uint32_t dtypes[8];
    uint32_t count = 0;
    uint64_t flags;
    uint64_t known;
    char list[128] = "[";
    char name[64] = "";
    char quoted[80];
    uint32_t answer = 7;
    int32_t status;

    EXPECT_STATUS(ds_accel_flags(context, &flags, &known), DS_ACCEL_OK);
    cr_expect_eq(flags & ~known, 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        status = ds_accel_flag(context, keys[i].flag, &answer);
        expect_member(json, keys[i].key, word(status, answer));
        cr_expect_eq((known & keys[i].flag) != 0, status == DS_ACCEL_OK, "%s", keys[i].key);
        cr_expect_eq((flags & keys[i].flag) != 0, status == DS_ACCEL_OK && answer != 0);
    }
    status = ds_accel_is_bf16_supported(context, &answer);
    expect_member(json, "is_bf16_supported", word(status, answer));
    status = ds_accel_is_fp16_supported(context, &answer);
    expect_member(json, "is_fp16_supported", word(status, answer));
    status = ds_accel_supported_dtypes(context, dtypes, 8, &count);
    for (uint32_t i = 0; status == DS_ACCEL_OK && i < count; i++) {
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"%s\"", i > 0 ? "," : "",
                 ds_accel_dtype_name(dtypes[i]));
    }
    strcat(list, "]");
    expect_member(json, "supported_dtypes", status == DS_ACCEL_OK ? list : "null");
    status = ds_accel_communication_backend(context, name, sizeof(name));
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    expect_member(json, "communication_backend", status == DS_ACCEL_OK ? quoted : "null");
    status = ds_accel_compile_backend(context, name, sizeof(name));
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    expect_member(json, "compile_backend", status == DS_ACCEL_OK ? quoted : "null");
    status = ds_accel_visible_devices_envs(context, 0, name, sizeof(name));
    snprintf(quoted, sizeof(quoted), "[\"%s\"", name);
    expect_member(json, "visible_devices_envs", status == DS_ACCEL_OK ? quoted : "[]");
    status = ds_accel_export_envs(context, 0, name, sizeof(name));
    snprintf(quoted, sizeof(quoted), "[\"%s\"", name);
    expect_member(json, "export_envs", status == DS_ACCEL_OK ? quoted : "[]");
    ds_accel_free_text(json);
}

Test(core_facts, agree_with_the_report_on_the_mock)
{
    ds_accel_t *context = start("mock");
    uint64_t known = 0;
    uint64_t flags = 0;

    expect_agreement(context);
    EXPECT_STATUS(ds_accel_flags(context, &flags, &known), DS_ACCEL_OK);
    cr_expect_eq(known, DS_ACCEL_FLAGS_ALL);
    cr_expect(flags & DS_ACCEL_FLAG_GRAPHS);
    cr_expect_not(flags & DS_ACCEL_FLAG_SYNCHRONIZED);
    ds_accel_destroy(context);
}

Test(core_facts, agree_with_the_report_on_the_cpu)
{
    ds_accel_t *context = start("cpu");
    uint32_t answer = 7;

    expect_agreement(context);
    EXPECT_STATUS(ds_accel_flag(context, DS_ACCEL_FLAG_TRITON, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 0);
    ds_accel_destroy(context);
}

Test(core_facts, follow_the_operators_configuration)
{
    ds_accel_device_t *device;
    uint32_t dtypes[3] = {0};
    uint32_t count = 0;
    uint32_t answer = 7;
    ds_accel_t *context;

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"mock\": {\"use_host_timers\": true,"
               " \"prefer_triton_grouped_mm\": true, \"graph_supported\": false,"
               " \"is_bf16_supported\": false, \"compile_backend\": \"tvm\"}}}");
    context = start("mock");
    expect_agreement(context);
    EXPECT_STATUS(ds_accel_flag(context, DS_ACCEL_FLAG_HOST_TIMERS, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 1);
    EXPECT_STATUS(ds_accel_flag(context, DS_ACCEL_FLAG_TRITON_GROUPED_MM, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 1);
    EXPECT_STATUS(ds_accel_flag(context, DS_ACCEL_FLAG_GRAPHS, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 0);
    EXPECT_STATUS(ds_accel_supported_dtypes(context, dtypes, 3, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 2, "bfloat16 is listed although the operator denies it");
    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_dtype_support(device, DS_ACCEL_DTYPE_BFLOAT16, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, DS_ACCEL_DTYPE_STORES);
    EXPECT_STATUS(ds_accel_dtype_support(device, DS_ACCEL_DTYPE_FLOAT16, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES);
    ds_accel_destroy(context);
}

Test(core_facts, say_so_when_nobody_knows)
{
    ds_accel_t *context = start_tiny();
    ds_accel_device_t *device;
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    uint32_t version[4] = {9, 9, 9, 9};
    uint64_t capabilities = 1;
    uint64_t flags = 1;
    uint64_t known = 1;
    uint32_t answer = 7;
    char name[32] = "kept";

    expect_agreement(context);
    EXPECT_STATUS(ds_accel_flags(context, &flags, &known), DS_ACCEL_OK);
    cr_expect_eq(flags, 0);
    cr_expect_eq(known, 0);
    EXPECT_STATUS(ds_accel_capabilities(context, &capabilities), DS_ACCEL_OK);
    cr_expect_eq(capabilities, 0);
    EXPECT_REFUSED(ds_accel_flag(context, DS_ACCEL_FLAG_GRAPHS, &answer), DS_ACCEL_ERR_UNSUPPORTED,
                   "graph_supported of tiny is not known");
    EXPECT_REFUSED(ds_accel_flag(context, DS_ACCEL_FLAG_DMABUF, &answer), DS_ACCEL_ERR_UNSUPPORTED,
                   "dmabuf of tiny");
    EXPECT_REFUSED(ds_accel_is_bf16_supported(context, &answer), DS_ACCEL_ERR_UNSUPPORTED, "bf16");
    EXPECT_STATUS(ds_accel_supported_dtypes(context, NULL, 0, &answer), DS_ACCEL_ERR_UNSUPPORTED);
    EXPECT_REFUSED(ds_accel_communication_backend(context, name, sizeof(name)),
                   DS_ACCEL_ERR_UNSUPPORTED, "tiny has no communication_backend");
    EXPECT_STATUS(ds_accel_communication_backend_version(context, version),
                  DS_ACCEL_ERR_UNSUPPORTED);
    EXPECT_STATUS(ds_accel_op_builder_dir(context, name, sizeof(name)), DS_ACCEL_ERR_UNSUPPORTED);
    EXPECT_STATUS(ds_accel_visible_devices_envs(context, 0, name, sizeof(name)),
                  DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, NULL, 0, NULL, 0, NULL),
                  DS_ACCEL_ERR_UNSUPPORTED);
    EXPECT_STATUS(ds_accel_telemetry(context, 0, &telemetry), DS_ACCEL_ERR_UNSUPPORTED);
    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_dtype_support(device, DS_ACCEL_DTYPE_FLOAT16, &answer),
                  DS_ACCEL_ERR_UNSUPPORTED);
    cr_expect_eq(answer, 7);
    cr_expect_eq(version[0], 9);
    cr_expect_str_eq(name, "kept");
    ds_accel_destroy(context);
}

Test(core_facts, need_a_chosen_accelerator_and_their_arguments)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_t *context = test_create();
    uint64_t flags;
    uint32_t answer;
    char name[32];

    EXPECT_REFUSED(ds_accel_flags(context, &flags, NULL), DS_ACCEL_ERR_STATE, "ds_accel_detect()");
    EXPECT_STATUS(ds_accel_capabilities(context, &flags), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_backend_info(context, &info), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_is_available(context, NULL, &answer), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_compile_backend(context, name, sizeof(name)), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_set_compile_backend(context, "eager"), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_range_push(context, "x", NULL, NULL), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_apply_env(context, NULL, NULL), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, NULL, 0), DS_ACCEL_ERR_STATE);
    ds_accel_destroy(context);
    context = start("mock");
    EXPECT_STATUS(ds_accel_flags(NULL, &flags, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_flags(context, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_flag(context, 3, &answer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_flag(context, 0, &answer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_flag(context, DS_ACCEL_BIT(16), &answer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_backend_info(context, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_is_available(context, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dtype_support(NULL, 1, &answer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_compile_backend(context, name, 3), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_communication_backend(context, NULL, 0), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_supported_dtypes(context, NULL, 2, &answer), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_apply_env(NULL, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_lazy_call(context, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, NULL, 1, name, 32, NULL),
                  DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
}

Test(core_facts, tell_what_the_backend_can)
{
    ds_accel_t *context = start("mock");
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    uint64_t capabilities = 0;
    uint64_t flags = 0;
    uint32_t answer = 7;

    EXPECT_STATUS(ds_accel_capabilities(context, &capabilities), DS_ACCEL_OK);
    cr_expect(capabilities & DS_ACCEL_CAPABILITY_RANGES);
    cr_expect(capabilities & DS_ACCEL_CAPABILITY_PINNED);
    cr_expect(capabilities & DS_ACCEL_CAPABILITY_GRAPHS);
    EXPECT_STATUS(ds_accel_set_compile_backend(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_backend_info(context, &info), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_flags(context, &flags, NULL), DS_ACCEL_OK);
    cr_expect_eq(info.flags, flags);
    cr_expect_str_eq(info.compile_backend, "inductor");
    EXPECT_STATUS(ds_accel_is_available(context, NULL, &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 1);
    EXPECT_STATUS(ds_accel_is_available(context, "cpu", &answer), DS_ACCEL_OK);
    cr_expect_eq(answer, 1);
    EXPECT_STATUS(ds_accel_is_available(context, "nobody", &answer), DS_ACCEL_ERR_NOT_FOUND);
    ds_accel_destroy(context);
}

/* ---- data types ----------------------------------------------------------------------------- */

Test(core_facts, know_the_names_of_data_types)
{
    static const struct {
        const char *name;
        uint32_t dtype;
        uint32_t size_bits;
    } rows[] = {
        {"float32", DS_ACCEL_DTYPE_FLOAT32, 32},
        {"float", DS_ACCEL_DTYPE_FLOAT32, 32},
        {"FP32", DS_ACCEL_DTYPE_FLOAT32, 32},
        {"half", DS_ACCEL_DTYPE_FLOAT16, 16},
        {"torch.float16", DS_ACCEL_DTYPE_FLOAT16, 16},
        {"bf16", DS_ACCEL_DTYPE_BFLOAT16, 16},
        {"torch.bfloat16", DS_ACCEL_DTYPE_BFLOAT16, 16},
        {"double", DS_ACCEL_DTYPE_FLOAT64, 64},
        {"long", DS_ACCEL_DTYPE_INT64, 64},
        {"int", DS_ACCEL_DTYPE_INT32, 32},
        {"byte", DS_ACCEL_DTYPE_UINT8, 8},
        {"bool", DS_ACCEL_DTYPE_BOOL, 8},
        {"float8_e4m3fn", DS_ACCEL_DTYPE_FLOAT8_E4M3FN, 8},
        {"complex32", DS_ACCEL_DTYPE_COMPLEX32, 32},
        {"torch.cfloat", DS_ACCEL_DTYPE_COMPLEX64, 64},
        {"complex128", DS_ACCEL_DTYPE_COMPLEX128, 128},
    };
    uint32_t dtype = 99;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        EXPECT_STATUS(ds_accel_dtype_parse(rows[i].name, &dtype), DS_ACCEL_OK);
        cr_expect_eq(dtype, rows[i].dtype, "%s", rows[i].name);
        cr_expect_eq(ds_accel_dtype_size_bits(dtype), rows[i].size_bits, "%s", rows[i].name);
    }
    for (uint32_t i = 1; i <= DS_ACCEL_DTYPE_COMPLEX128; i++) {
        cr_assert_not_null(ds_accel_dtype_name(i), "%u", i);
        EXPECT_STATUS(ds_accel_dtype_parse(ds_accel_dtype_name(i), &dtype), DS_ACCEL_OK);
        cr_expect_eq(dtype, i);
    }
    cr_expect_null(ds_accel_dtype_name(0));
    cr_expect_eq(ds_accel_dtype_size_bits(18), 0);
    EXPECT_REFUSED(ds_accel_dtype_parse("bfloat61", &dtype), DS_ACCEL_ERR_NOT_FOUND, "bfloat16");
    EXPECT_STATUS(ds_accel_dtype_parse("", &dtype), DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_STATUS(ds_accel_dtype_parse(NULL, &dtype), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dtype_parse("half", NULL), DS_ACCEL_ERR_INVALID);
}

Test(core_facts, list_data_types_in_order)
{
    ds_accel_t *context;
    uint32_t dtypes[3] = {0};
    uint32_t count = 9;

    setenv("DS_ACCEL_MOCK_FP16", "false", 1);
    context = start("mock");
    EXPECT_STATUS(ds_accel_supported_dtypes(context, NULL, 0, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 2);
    EXPECT_STATUS(ds_accel_supported_dtypes(context, dtypes, 1, &count), DS_ACCEL_ERR_LIMIT);
    EXPECT_STATUS(ds_accel_supported_dtypes(context, dtypes, 3, &count), DS_ACCEL_OK);
    cr_expect_eq(dtypes[0], DS_ACCEL_DTYPE_FLOAT32);
    cr_expect_eq(dtypes[1], DS_ACCEL_DTYPE_BFLOAT16);
    EXPECT_STATUS(ds_accel_is_fp16_supported(context, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 0);
    ds_accel_destroy(context);
}

/* ---- settings ------------------------------------------------------------------------------- */

Test(core_facts, take_a_backend_that_is_listed)
{
    ds_accel_t *context;
    char name[32];

    test_write("share/ds-accel.json",
               "{\"compile_backends\": [\"eager\", \"inductor\"],"
               " \"communication_backends\": [\"mpi\"],"
               " \"backends\": {\"mock\": {\"communication_backends\":"
               " [\"smoke signals\", \"a name of thirty-one bytes long\"]}}}");
    context = start("mock");
    EXPECT_STATUS(ds_accel_set_compile_backend(context, "eager"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_compile_backend(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "eager");
    expect_agreement(context);
    EXPECT_REFUSED(ds_accel_set_compile_backend(context, "egaer"), DS_ACCEL_ERR_INVALID,
                   "egaer not supported by mock. Supported backends are eager, inductor");
    EXPECT_STATUS(ds_accel_set_compile_backend(context, ""), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_compile_backend(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "eager");
    EXPECT_STATUS(ds_accel_set_compile_backend(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_compile_backend(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "inductor");
    /* The backend's own list goes before the common one, and its own name is always in it. */
    EXPECT_REFUSED(ds_accel_set_communication_backend(context, "mpi"), DS_ACCEL_ERR_INVALID,
                   "smoke signals");
    EXPECT_STATUS(ds_accel_set_communication_backend(context, "smoke signals"), DS_ACCEL_OK);
    expect_agreement(context);
    EXPECT_STATUS(ds_accel_set_communication_backend(context, "a name of thirty-one bytes long"),
                  DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_communication_backend(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "a name of thirty-one bytes long");
    EXPECT_STATUS(ds_accel_set_communication_backend(context, "gloo"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_communication_backend(context, name, sizeof(name)), DS_ACCEL_OK);
    cr_expect_str_eq(name, "gloo");
    ds_accel_destroy(context);
}

/* ---- lazy calls ----------------------------------------------------------------------------- */

static char said[64];
static ds_accel_t *lazy_context;

static void say(void *user_data, int32_t status)
{
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%d ", (const char *)user_data,
             status);
}

static void say_and_ask(void *user_data, int32_t status)
{
    uint64_t flags;

    say(user_data, status);
    /* No lock is held: the library can be used. */
    cr_expect_eq(ds_accel_flags(lazy_context, &flags, NULL), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_lazy_call(lazy_context, say, (void *)"d"), DS_ACCEL_OK);
}

Test(core_facts, make_lazy_calls_once_and_in_order)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    lazy_context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say_and_ask, (void *)"b"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"c"), DS_ACCEL_OK);
    cr_expect_str_eq(said, "");
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 ");
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"e"), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 e0 ");
    ds_accel_destroy(lazy_context);
    cr_expect_str_eq(said, "a0 b0 c0 d0 e0 ");
}

static void ask_and_say(void *user_data, int32_t status)
{
    uint64_t flags;

    cr_expect_eq(ds_accel_flags(lazy_context, &flags, NULL), DS_ACCEL_OK);
    say(user_data, status);
}

/* A call that uses the library runs no other one within itself; the last one may add some. */
Test(core_facts, make_lazy_calls_one_by_one)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    lazy_context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, ask_and_say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"b"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say_and_ask, (void *)"c"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 ");
    ds_accel_destroy(lazy_context);
}

Test(core_facts, keep_lazy_calls_when_detection_fails)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = "nobody";
    context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(context, say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(context, say, (void *)"b"), DS_ACCEL_OK);
    cr_expect_lt(ds_accel_detect(context), 0);
    cr_expect_str_eq(said, "");
    ds_accel_destroy(context);
    cr_expect_str_eq(said, "a-12 b-12 ");
}

/* ---- profilers and timers ------------------------------------------------------------------- */

Test(core_facts, nest_ranges_where_there_is_a_profiler)
{
    ds_accel_t *context = start("mock");

    EXPECT_STATUS(ds_accel_range_push(context, "outer", NULL, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, "inner", "DeepSpeed", "step"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, "DeepSpeed"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, "DeepSpeed"), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_range_pop(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, NULL, NULL, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_profiler_start(context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_profiler_stop(context), DS_ACCEL_OK);
    ds_accel_destroy(context);
    context = start_tiny();
    EXPECT_STATUS(ds_accel_range_push(context, "outer", NULL, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_pop(context, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_profiler_start(context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_range_push(context, NULL, NULL, NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
}

/* Work of 20 ms or more, as the mock's script says, between start and stop. */
static void expect_time(ds_accel_t *context)
{
    ds_accel_device_t *device;
    ds_accel_stream_t *stream;
    ds_accel_timer_t *timer;
    char from[64] = "x";
    void *to = NULL;
    double elapsed_ms = -1;
    struct timespec begin;
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, stream, sizeof(from), &to), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK, "%s", ds_accel_last_error());
    EXPECT_REFUSED(ds_accel_timer_stop(timer, stream), DS_ACCEL_ERR_STATE, "not started");
    EXPECT_STATUS(ds_accel_timer_start(timer, stream), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_ERR_STATE,
                   "not stopped");
    EXPECT_STATUS(
        ds_accel_mem_copy_async(stream, to, from, sizeof(from), DS_ACCEL_COPY_HOST_TO_DEVICE),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_stop(timer, stream), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    cr_expect_geq(elapsed_ms, 20);
    /* It lies within what has passed here. */
    cr_expect_leq(elapsed_ms, (double)(end.tv_sec - begin.tv_sec) * 1e3 +
                                  (double)(end.tv_nsec - begin.tv_nsec) / 1e6);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_timer_start(timer, NULL), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_ERR_STATE);
    ds_accel_timer_destroy(timer);
    ds_accel_timer_destroy(timer);
    ds_accel_timer_destroy(NULL);
    EXPECT_REFUSED(ds_accel_timer_start(timer, stream), DS_ACCEL_ERR_INVALID, "destroyed");
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
    ds_accel_destroy(context);
    EXPECT_REFUSED(ds_accel_timer_stop(timer, NULL), DS_ACCEL_ERR_INVALID, "destroyed");
}

Test(core_facts, time_work_by_events)
{
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "20000000", 1);
    expect_time(start("mock"));
}

Test(core_facts, time_work_by_the_hosts_clock)
{
    test_write("etc/ds-accel.json", "{\"backends\": {\"mock\": {\"use_host_timers\": true}}}");
    setenv("DS_ACCEL_MOCK_COPY_LATENCY_NS", "20000000", 1);
    setenv("DS_ACCEL_MOCK_FAIL", "event_create:1+=driver", 1); /* it needs none */
    expect_time(start("mock"));
}

Test(core_facts, time_without_events)
{
    ds_accel_t *contexts[] = {start_tiny(), start("cpu")};

    for (size_t i = 0; i < 2; i++) {
        ds_accel_device_t *device;
        ds_accel_timer_t *timer;
        double elapsed_ms = -1;
        bool has_streams = i == 1;

        cr_assert_eq(ds_accel_device_get(contexts[i], 0, &device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
        /* tiny is not known to be synchronized, and has nothing to wait with. */
        EXPECT_STATUS(ds_accel_timer_start(timer, NULL),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_UNSUPPORTED);
        EXPECT_STATUS(ds_accel_timer_stop(timer, NULL),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE);
        EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms),
                      has_streams ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE);
        cr_expect(!has_streams || elapsed_ms >= 0);
        ds_accel_destroy(contexts[i]);
    }
}

/* ---- environment ---------------------------------------------------------------------------- */

Test(core_facts, write_visible_devices_by_the_plugin)
{
    static const uint32_t both[] = {1, 0};
    static const uint32_t twice[] = {1, 1};
    static const uint32_t outside[] = {2};
    ds_accel_t *context = start("mock");
    uint32_t needed = 0;
    char value[16] = "kept";

    EXPECT_STATUS(ds_accel_visible_devices_envs(context, 0, value, sizeof(value)),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, NULL, 0, &needed),
                  DS_ACCEL_ERR_LIMIT);
    cr_expect_eq(needed, 4);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 3, &needed),
                  DS_ACCEL_ERR_LIMIT);
    cr_expect_eq(needed, 4);
    cr_expect_str_eq(value, "kept");
    EXPECT_STATUS(ds_accel_visible_devices_value(context, "MOCK_VISIBLE_DEVICES", both, 2, value,
                                                 needed, NULL),
                  DS_ACCEL_OK);
    cr_expect_str_eq(value, "1,0");
    EXPECT_STATUS(
        ds_accel_visible_devices_value(context, NULL, NULL, 0, value, sizeof(value), &needed),
        DS_ACCEL_OK);
    cr_expect_str_eq(value, "");
    EXPECT_STATUS(ds_accel_visible_devices_value(context, "PATH", both, 2, value, 16, NULL),
                  DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, twice, 2, value, 16, NULL),
                   DS_ACCEL_ERR_INVALID, "twice");
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, outside, 1, value, 16, NULL),
                   DS_ACCEL_ERR_INVALID, "mock has 2");
    cr_expect_null(getenv("MOCK_VISIBLE_DEVICES"));
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 1), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("MOCK_VISIBLE_DEVICES"), "1");
    ds_accel_destroy(context);
}

/* Names in front that the vendor's runtime does not read, for DeepSpeed's launcher. */
Test(core_facts, write_the_visible_devices_that_have_an_effect)
{
    const uint32_t both[] = {1, 0};
    char value[32] = "";
    ds_accel_t *context;

    test_write("share/ds-accel.json",
               "{\"backends\": {\"mock\": {\"visible_devices_envs\": [\"OTHER_DEVICES\", "
               "\"MOCK_VISIBLE_DEVICES\"]}}}");
    context = start("mock");
    EXPECT_STATUS(ds_accel_visible_devices_envs(context, 0, value, sizeof(value)), DS_ACCEL_OK);
    cr_expect_str_eq(value, "OTHER_DEVICES");
    setenv("OTHER_DEVICES", "", 1); /* says nothing of these devices */
    EXPECT_STATUS(
        ds_accel_visible_devices_value(context, "OTHER_DEVICES", both, 2, value, 32, NULL),
        DS_ACCEL_OK);
    cr_expect_str_eq(value, "1,0");
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 2), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("MOCK_VISIBLE_DEVICES"), "1,0");
    cr_expect_str_eq(getenv("OTHER_DEVICES"), "");
    ds_accel_destroy(context);
}

Test(core_facts, write_visible_devices_without_the_plugin)
{
    static const uint32_t both[] = {2, 0};
    ds_accel_t *context;
    char value[32] = "";

    test_write("etc/ds-accel.json",
               "{\"backends\": {\"tiny\": {\"visible_devices_envs\": [\"TINY_DEVICES\"]}}}");
    context = start_tiny();
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 32, NULL),
                  DS_ACCEL_OK);
    cr_expect_str_eq(value, "2,0");
    /* A child counts from what the variable is now. */
    setenv("TINY_DEVICES", "GPU-a, GPU-b,5", 1);
    EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, both, 2, value, 32, NULL),
                  DS_ACCEL_OK);
    cr_expect(strcmp(value, "5,GPU-a") == 0, "%s", value);
    EXPECT_STATUS(ds_accel_apply_visible_devices(context, both, 2), DS_ACCEL_OK);
    cr_expect_str_eq(getenv("TINY_DEVICES"), "5,GPU-a");
    EXPECT_REFUSED(ds_accel_visible_devices_value(context, NULL, both, 1, value, 32, NULL),
                   DS_ACCEL_ERR_STATE, "device index 2:");
    ds_accel_destroy(context);
}

Test(core_facts, apply_work_arounds_when_asked)
{
    ds_accel_t *context;
    uint32_t applied = 9;

    test_write("share/ds-accel.json",
               "{\"backends\": {\"hpu\": {\"env\": ["
               "{\"name\": \"TEST_IF_UNSET\", \"value\": \"new\", \"rule\": \"if-unset\"},"
               "{\"name\": \"TEST_KEPT\", \"value\": \"new\", \"rule\": \"if-unset\"},"
               "{\"name\": \"TEST_ALWAYS\", \"value\": \"new\", \"rule\": \"always\"},"
               "{\"name\": \"TEST_UNSET\", \"rule\": \"unset\"}]}}}");
    setenv("TEST_KEPT", "old", 1);
    setenv("TEST_ALWAYS", "old", 1);
    setenv("TEST_UNSET", "old", 1);
    context = test_create();
    cr_expect_null(getenv("TEST_IF_UNSET"));
    EXPECT_STATUS(ds_accel_apply_env(context, "hpu", &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 3);
    cr_expect_str_eq(getenv("TEST_IF_UNSET"), "new");
    cr_expect_str_eq(getenv("TEST_KEPT"), "old");
    cr_expect_str_eq(getenv("TEST_ALWAYS"), "new");
    cr_expect_null(getenv("TEST_UNSET"));
    EXPECT_STATUS(ds_accel_apply_env(context, "hpu", &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 1, "what is set or gone is not set or removed again");
    EXPECT_STATUS(ds_accel_apply_env(context, "nobody", &applied), DS_ACCEL_ERR_NOT_FOUND);
    ds_accel_destroy(context);
    context = start("mock");
    EXPECT_STATUS(ds_accel_apply_env(context, NULL, &applied), DS_ACCEL_OK);
    cr_expect_eq(applied, 1);
    cr_expect_str_eq(getenv("MOCK_RUNTIME"), "1");
    ds_accel_destroy(context);
}

/* ---- telemetry, peers, sharing -------------------------------------------------------------- */

Test(core_facts, read_sensors_and_links_of_closed_devices)
{
    ds_accel_t *context = start("mock");
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    struct ds_accel_process process = {.struct_size = sizeof(process)};
    struct ds_accel_link link = {.struct_size = sizeof(link)};
    uint32_t count = 9;

    EXPECT_STATUS(ds_accel_telemetry(context, 1, &telemetry), DS_ACCEL_OK);
    cr_expect(telemetry.valid & DS_ACCEL_TELEMETRY_TEMPERATURE);
    cr_expect_not(telemetry.valid & DS_ACCEL_TELEMETRY_FAN);
    cr_expect_eq(telemetry.temperature_millidegrees_c, 41000);
    EXPECT_STATUS(ds_accel_telemetry_processes(context, 0, &process, sizeof(process), 1, &count),
                  DS_ACCEL_OK);
    cr_expect_eq(count, 0);
    EXPECT_STATUS(ds_accel_device_links(context, 0, &link, sizeof(link), 1, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 1);
    cr_expect_eq(link.peer_index, 1);
    EXPECT_REFUSED(ds_accel_telemetry(context, 2, &telemetry), DS_ACCEL_ERR_INVALID, "mock has 2");
    EXPECT_STATUS(ds_accel_telemetry(context, 0, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_device_links(context, 0, NULL, sizeof(link), 1, &count),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_device_links(context, 0, &link, 0, 1, &count), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_telemetry_processes(context, 0, NULL, 0, 0, NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
}

Test(core_facts, know_which_devices_are_peers)
{
    ds_accel_t *context = start("mock");
    ds_accel_t *other = start("mock");
    ds_accel_device_t *devices[2];
    ds_accel_device_t *foreign;
    uint32_t can = 9;

    cr_assert_eq(ds_accel_device_get(context, 0, &devices[0]), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_get(context, 1, &devices[1]), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_get(other, 1, &foreign), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_peer_can_access(devices[0], devices[1], &can), DS_ACCEL_OK);
    cr_expect_eq(can, 1);
    EXPECT_STATUS(ds_accel_peer_enable(devices[0], devices[1]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_peer_enable(devices[0], devices[1]), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_peer_disable(devices[0], devices[1]), DS_ACCEL_OK);
    EXPECT_REFUSED(ds_accel_peer_enable(devices[0], foreign), DS_ACCEL_ERR_INVALID, "one context");
    EXPECT_STATUS(ds_accel_peer_can_access(devices[0], NULL, &can), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_peer_can_access(devices[0], devices[1], NULL), DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(other);
    EXPECT_REFUSED(ds_accel_peer_disable(devices[0], foreign), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_destroy(context);
}

Test(core_facts, check_what_is_shared_with_other_processes)
{
    ds_accel_t *context = start("mock");
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char handle[256] = {0};
    uint64_t capabilities = 0;
    ds_accel_device_t *device;
    ds_accel_event_t *event;
    ds_accel_event_t *opened = NULL;
    void *memory = NULL;
    void *again = NULL;
    uint64_t offset_bytes;
    int32_t fd = -1;
    int32_t status;

    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, 4096, &memory), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, 0, &event), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_backend_info(context, &info), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_capabilities(context, &capabilities), DS_ACCEL_OK);
    status = ds_accel_ipc_memory_export(device, memory, handle, info.memory_handle_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_MEMORY_IPC) == 0, "%d", status);
    if (status >= 0) {
        EXPECT_STATUS(ds_accel_ipc_memory_open(device, handle, info.memory_handle_bytes, &again),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_ipc_memory_close(device, again), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_ipc_memory_unexport(device, handle, info.memory_handle_bytes),
                      DS_ACCEL_OK);
    }
    status = ds_accel_ipc_event_export(event, handle, info.event_handle_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_EVENT_IPC) == 0, "%d", status);
    if (status >= 0) {
        EXPECT_STATUS(ds_accel_ipc_event_open(device, handle, info.event_handle_bytes, &opened),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_event_query(opened), DS_ACCEL_OK);
        ds_accel_event_destroy(opened);
    }
    status = ds_accel_dmabuf_export(device, memory, 4096, &fd, &offset_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_DMABUF) == 0, "%d", status);
    if (status >= 0) {
        close(fd);
    }
    EXPECT_STATUS(ds_accel_ipc_memory_export(device, NULL, handle, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_export(device, memory, NULL, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_open(device, NULL, 64, &again), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_open(device, handle, 64, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_close(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_event_export(NULL, handle, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_event_open(device, NULL, 64, &opened), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_export(device, NULL, 1, &fd, &offset_bytes),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_import(device, -1, 0, 1, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_release(NULL, memory), DS_ACCEL_ERR_INVALID);
    ds_accel_event_destroy(event);
    EXPECT_REFUSED(ds_accel_ipc_event_export(event, handle, 64), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_destroy(context);
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* 0: every answer was as it must be; else the number of the first that was not. */
static int ask_in_child(ds_accel_t *context, ds_accel_device_t *device, ds_accel_timer_t *timer)
{
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    ds_accel_timer_t *made;
    uint32_t available = 9;
    uint64_t flags;
    void *pinned;

    return ds_accel_flags(context, &flags, NULL) != DS_ACCEL_ERR_STATE                  ? 1
           : ds_accel_is_available(context, NULL, &available) < 0 || available != 0     ? 2
           : ds_accel_lazy_call(context, say, (void *)"x") != DS_ACCEL_ERR_STATE        ? 3
           : ds_accel_timer_create(device, &made) != DS_ACCEL_ERR_STATE                 ? 4
           : ds_accel_timer_start(timer, NULL) >= 0                                     ? 5
           : ds_accel_telemetry(context, 0, &telemetry) != DS_ACCEL_ERR_STATE           ? 6
           : ds_accel_range_push(context, "x", NULL, NULL) != DS_ACCEL_ERR_STATE        ? 7
           : ds_accel_mem_alloc_pinned(device, 64, 1, 0, &pinned) != DS_ACCEL_ERR_STATE ? 8
                                                                                        : 0;
}

Test(core_facts, answer_in_a_forked_child)
{
    ds_accel_t *context = start("mock");
    ds_accel_device_t *device;
    ds_accel_timer_t *timer;
    int result = -1;
    pid_t child;

    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    /* The timer asks for facts: its context is another one, so that the child asks first. */
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    lazy_context = start("mock");
    cr_assert_eq(ds_accel_device_get(lazy_context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
    child = fork();
    if (child == 0) {
        _exit(ask_in_child(context, device, timer));
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0, "answer %d was wrong",
              WEXITSTATUS(result));
    ds_accel_destroy(lazy_context);
    ds_accel_destroy(context);
}
