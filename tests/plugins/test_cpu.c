/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: the number of devices, and the properties of devices and of the backend. */
#include "cpu.h"

#include <dlfcn.h>
#include <pthread.h>

#define TWO_NODES TEST_SOURCE "/tests/machines/two-socket-hbm"

static void forget_launcher(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
}

TestSuite(plugin_cpu, .init = forget_launcher);

/* ---- device count, nodes, the current device ------------------------------------------------ */

static uint32_t count_with(const char *local_size)
{
    uint32_t count = 0;

    setenv("LOCAL_SIZE", local_size, 1);
    context = create_cpu(TWO_NODES);
    cr_expect_eq(ds_accel_device_count(context, &count), DS_ACCEL_OK);
    ds_accel_destroy(context);
    return count;
}

Test(plugin_cpu, local_size_is_the_number_of_devices)
{
    cr_expect_eq(count_with("1"), 1);
    cr_expect_eq(count_with("3"), 3);
    cr_expect_eq(count_with("4096"), 4096);
    cr_expect_null(strstr(test_log, "LOCAL_SIZE"), "%s", test_log);
}

Test(plugin_cpu, a_local_size_that_is_none_counts_nodes_and_warns)
{
    static const char *const texts[] = {"abc", "0", "-1", "", " 2", "3x", "99999999999999999999"};
    char wanted[96];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        test_log[0] = '\0';
        cr_expect_eq(count_with(texts[i]), 2, "LOCAL_SIZE=%s", texts[i]);
        snprintf(wanted, sizeof(wanted), "2 cpu: LOCAL_SIZE=\"%s\" is not a positive whole number",
                 texts[i]);
        EXPECT_HAS(test_log, wanted);
    }
}

Test(plugin_cpu, a_huge_local_size_is_cut_and_warns)
{
    cr_expect_eq(count_with("4097"), 4096);
    EXPECT_HAS(test_log, "2 cpu: LOCAL_SIZE=4097 is beyond this plugin's limit; using 4096");
}

/* Writes the digits of the "numa_node" lines of the info report, in the order of the devices. */
static void nodes_with(const char *local_size, char *nodes, size_t nodes_size)
{
    char *report;

    setenv("LOCAL_SIZE", local_size, 1);
    context = create_cpu(TWO_NODES);
    report = test_report(context, DS_ACCEL_REPORT_INFO, "cpu", DS_ACCEL_FORMAT_JSON);
    nodes[0] = '\0';
    for (const char *at = report; (at = strstr(at, "\"numa_node\": ")) != NULL; at++) {
        snprintf(nodes + strlen(nodes), nodes_size - strlen(nodes), "%.1s", at + 13);
    }
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

Test(plugin_cpu, devices_are_spread_over_the_nodes)
{
    char nodes[32];

    nodes_with("1", nodes, sizeof(nodes));
    cr_expect_str_eq(nodes, "0");
    nodes_with("2", nodes, sizeof(nodes));
    cr_expect_str_eq(nodes, "01");
    nodes_with("6", nodes, sizeof(nodes));
    cr_expect_str_eq(nodes, "000111");
}

static uint32_t current(void)
{
    uint32_t index = 1000;

    cr_expect_eq(ds_accel_current_device(context, &index), DS_ACCEL_OK);
    return index;
}

Test(plugin_cpu, local_rank_is_the_current_device)
{
    context = create_cpu(TWO_NODES);
    cr_expect_eq(current(), 0);
    setenv("LOCAL_RANK", "1", 1);
    cr_expect_eq(current(), 1);
    setenv("LOCAL_RANK", "5", 1);
    cr_expect_eq(current(), 1);
    setenv("LOCAL_RANK", "0", 1);
    cr_expect_eq(current(), 0);
    ds_accel_destroy(context);
}

Test(plugin_cpu, a_local_rank_that_is_none_warns_once)
{
    const char *line;

    context = create_cpu(TWO_NODES);
    setenv("LOCAL_RANK", "first", 1);
    cr_expect_eq(current(), 0);
    setenv("LOCAL_RANK", "-1", 1);
    cr_expect_eq(current(), 0);
    line = strstr(test_log, "2 cpu: LOCAL_RANK=\"first\" is not a whole number");
    cr_assert_not_null(line, "%s", test_log);
    cr_expect_null(strstr(strchr(line, '\n'), "LOCAL_RANK"), "%s", test_log);
    ds_accel_destroy(context);
}

static void *current_elsewhere(void *index_out)
{
    *(uint32_t *)index_out = current();
    return NULL;
}

Test(plugin_cpu, a_device_set_current_is_so_for_its_thread_only)
{
    uint32_t elsewhere = 1000;
    pthread_t thread;

    context = create_cpu(TWO_NODES);
    setenv("LOCAL_RANK", "0", 1);
    cr_assert_eq(ds_accel_device_open(context, 1, &device), DS_ACCEL_OK);
    table = ds_accel_device_table(device);
    EXPECT_OK(table->device_set_current(ds_accel_device_handle(device), &error));
    cr_expect_eq(current(), 1);
    cr_assert_eq(pthread_create(&thread, NULL, current_elsewhere, &elsewhere), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(elsewhere, 0);
    close_cpu();
}

Test(plugin_cpu, every_device_is_named_cpu)
{
    char name[8];
    char *report;

    context = create_cpu(TWO_NODES);
    for (int32_t index = -1; index < 2; index++) {
        cr_expect_eq(ds_accel_device_name(context, index, name, sizeof(name)), DS_ACCEL_OK);
        cr_expect_str_eq(name, "cpu");
    }
    cr_expect_eq(ds_accel_device_name(context, 2, name, sizeof(name)), DS_ACCEL_ERR_INVALID);
    setenv("LOCAL_RANK", "1", 1);
    report = test_report(context, DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report, "\"device_name\": \"cpu\"");
    EXPECT_HAS(report, "\"current_device_name\": \"cpu\"");
    ds_accel_free_text(report);
    ds_accel_destroy(context);
}

Test(plugin_cpu, a_device_opened_twice_lives_until_both_are_closed)
{
    ds_accel_device_t *again;
    void *pointer = NULL;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    cr_assert_eq(ds_accel_device_open(context, 0, &again), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_device_handle(again), handle);
    ds_accel_device_close(again);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_cpu();
}

/* ---- data types ----------------------------------------------------------------------------- */

static void open_cpu_with(const char *cpuinfo)
{
    test_write("machine/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    test_write("machine/proc/self/status", "VmHWM:\t8192 kB\nVmRSS:\t4096 kB\n");
    test_write("machine/proc/cpuinfo", cpuinfo);
    open_cpu_of(test_path("machine"));
}

static void expect_dtypes(const char *cpuinfo, bool has_float16, bool has_bfloat16,
                          const char *name)
{
    const uint32_t full = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES;
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    uint32_t float16 = 0;
    uint32_t bfloat16 = 0;
    char *report;

    open_cpu_with(cpuinfo);
    EXPECT_OK(table->dtype_support(handle, DS_ACCEL_DTYPE_FLOAT16, &float16, &error));
    EXPECT_OK(table->dtype_support(handle, DS_ACCEL_DTYPE_BFLOAT16, &bfloat16, &error));
    cr_expect_eq(float16, has_float16 ? full : DS_ACCEL_DTYPE_STORES, "%s", cpuinfo);
    cr_expect_eq(bfloat16, has_bfloat16 ? full : full | DS_ACCEL_DTYPE_EMULATED, "%s", cpuinfo);
    EXPECT_OK(ds_accel_device_info(device, &info));
    cr_expect_str_eq(info.name, name);
    report = test_report(context, DS_ACCEL_REPORT_INFO, NULL, DS_ACCEL_FORMAT_JSON);
    EXPECT_HAS(report,
               has_float16 ? "\"is_fp16_supported\": true" : "\"is_fp16_supported\": false");
    EXPECT_HAS(report, "\"is_bf16_supported\": true");
    cr_expect_eq(strstr(report, "\"float16\"") != NULL, has_float16, "%s", report);
    ds_accel_free_text(report);
    close_cpu();
}

Test(plugin_cpu, float16_is_listed_where_the_cpu_computes_with_it)
{
    expect_dtypes("model name\t: A\nflags\t\t: fpu f16c avx512_fp16 sse\n\n", true, false, "A");
    expect_dtypes("model name\t: A\nflags\t\t: fpu amx_fp16\n\n", true, false, "A");
    expect_dtypes("processor\t: 0\nFeatures\t: fp asimd fphp asimdhp bf16\n"
                  "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n\n",
                  true, true, "CPU implementer 0x41 part 0xd40");
}

Test(plugin_cpu, float16_is_not_listed_where_it_is_only_converted)
{
    expect_dtypes("model name\t: A\nflags\t\t: fpu f16c avx512f avx512_fp16x\n\n", false, false,
                  "A");
    expect_dtypes("model name\t: A\nflags\t\t: avx512_bf16\n\nflags\t\t: avx512_fp16\n", false,
                  true, "A");
    expect_dtypes("processor\t: 0\nFeatures\t: fp asimd fphp\n\n", false, false, "cpu");
    expect_dtypes("", false, false, "cpu");
}

Test(plugin_cpu, every_other_data_type_is_known_and_the_next_is_not)
{
    uint32_t support = 99;

    open_cpu();
    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT64; dtype <= DS_ACCEL_DTYPE_BOOL; dtype++) {
        EXPECT_OK(table->dtype_support(handle, dtype, &support, &error));
        cr_expect_eq(support, DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES);
    }
    EXPECT_OK(table->dtype_support(handle, 1000, &support, &error));
    cr_expect_eq(support, 0);
    close_cpu();
}

/* ---- instances ------------------------------------------------------------------------------ */

Test(plugin_cpu, instances_share_nothing)
{
    ds_accel_t *other;
    ds_accel_device_t *device_of_other;
    ds_accel_plugin_device_t *peer;
    void *pointer = NULL;
    uint32_t can = 9;

    open_cpu();
    other = create_cpu(NULL);
    cr_assert_eq(ds_accel_device_open(other, 0, &device_of_other), DS_ACCEL_OK);
    peer = ds_accel_device_handle(device_of_other);
    cr_expect_neq(peer, handle);
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    EXPECT_FAIL(table->mem_free(peer, pointer, &error), DS_ACCEL_ERR_INVALID,
                "no live memory of this");
    EXPECT_OK(table->peer_can_access(handle, handle, &can, &error));
    cr_expect_eq(can, 1);
    EXPECT_OK(table->peer_can_access(handle, peer, &can, &error));
    cr_expect_eq(can, 0);
    EXPECT_FAIL(table->peer_enable(handle, peer, &error), DS_ACCEL_ERR_INVALID,
                "different instances");
    ds_accel_device_close(device_of_other);
    ds_accel_destroy(other);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_cpu();
}

/* ---- oneCCL --------------------------------------------------------------------------------- */

/* Reads "communication_backend" from the output of ds-accel, run with this LD_LIBRARY_PATH. */
static void communication_backend(const char *library_path, char *text, size_t text_size)
{
    char report[16384];
    const char *found;
    FILE *tool;
    size_t length;

    setenv("LD_LIBRARY_PATH", library_path, 1);
    setenv("XDG_CONFIG_HOME", test_dir(), 1);
    tool = popen(TEST_BUILD "/bin/ds-accel info cpu --json", "r");
    cr_assert_not_null(tool);
    length = fread(report, 1, sizeof(report) - 1, tool);
    report[length] = '\0';
    cr_expect_eq(pclose(tool), 0);
    found = strstr(report, "\"communication_backend\": ");
    cr_assert_not_null(found, "%s", report);
    snprintf(text, text_size, "%.*s", (int)strcspn(found + 25, ","), found + 25);
}

Test(plugin_cpu, the_communication_backend_is_ccl_where_it_can_be_loaded)
{
    char command[1024];
    char text[64];

    if (dlopen("libccl.so.1", RTLD_LAZY) != NULL || dlopen("libccl.so", RTLD_LAZY) != NULL) {
        cr_skip_test("oneCCL is installed here");
    }
    communication_backend("", text, sizeof(text));
    cr_expect_str_eq(text, "\"gloo\"");
    snprintf(command, sizeof(command), TEST_CC " -shared -fPIC -o %s %s",
             test_path("lib/libccl.so.1"), test_write("ccl.c", "int ccl_is_here;\n"));
    cr_assert_eq(system(command), 0);
    communication_backend(test_path("lib"), text, sizeof(text));
    cr_expect_str_eq(text, "\"ccl\"");
}
