/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Facts of the public API: flags, data types, sensors, links and peers. */
#include "facts.h"

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

/* Expect a member "key":value in the report; value is JSON text. */
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

/* Expect that every function returns the same value as the report. */
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
    /* The backend's own list precedes the common one, and always contains its own name. */
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

/* ---- telemetry, peers and sharing ------------------------------------------------------------ */

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
