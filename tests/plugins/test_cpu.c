/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin, as a program meets it: through the table and the handle of an opened device. */
#include "fixture.h"

#include <dlfcn.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define TWO_NODES TEST_SOURCE "/tests/machines/two-socket-hbm"

/* The sanitizers' runtimes make it so; gcc and clang say differently that one is there. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MLOCK_DOES_NOTHING 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLOCK_DOES_NOTHING 1
#endif
#ifndef MLOCK_DOES_NOTHING
#define MLOCK_DOES_NOTHING 0
#endif

/* The device at hand; what open_cpu() makes and close_cpu() takes away. */
static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
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

static ds_accel_t *create_cpu(const char *machine_root)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;

    options.accelerator = "cpu";
    options.package_config_dir = TEST_SOURCE "/conf";
    options.machine_root = machine_root;
    cr_assert_eq(ds_accel_create(&options, &made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(made), DS_ACCEL_OK, "%s", ds_accel_last_error());
    return made;
}

static void open_cpu_of(const char *machine_root)
{
    context = create_cpu(machine_root);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
}

static void open_cpu(void)
{
    open_cpu_of(NULL);
}

static void close_cpu(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static void forget_launcher(void)
{
    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
}

TestSuite(plugin_cpu, .init = forget_launcher);

/* ---- how many devices, and which ------------------------------------------------------------ */

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

/* The "numa_node" lines of info, in order of device. */
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

/* ---- device memory -------------------------------------------------------------------------- */

Test(plugin_cpu, memory_is_aligned_and_can_be_used_to_the_last_byte)
{
    static const uint64_t sizes[] = {1, 63, 64, 65, 65535, 65536, 1048577};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    unsigned char *pointers[7] = {NULL};

    open_cpu();
    EXPECT_OK(ds_accel_device_info(device, &info));
    for (size_t i = 0; i < 7; i++) {
        ASSERT_OK(table->mem_alloc(handle, sizes[i], 0, 0, (void **)&pointers[i], &error));
        cr_expect_eq((uintptr_t)pointers[i] % info.allocation_align_bytes, 0);
        memset(pointers[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < 7; i++) {
        cr_expect_eq(pointers[i][0], i + 1);
        cr_expect_eq(pointers[i][sizes[i] - 1], i + 1);
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
    }
    close_cpu();
}

Test(plugin_cpu, sizes_that_cannot_be_are_refused)
{
    void *const untouched = &context;
    void *pointer = untouched;

    open_cpu();
    EXPECT_FAIL(table->mem_alloc(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "0 bytes");
    EXPECT_FAIL(table->mem_alloc(handle, SIZE_MAX, 0, 0, &pointer, &error), DS_ACCEL_ERR_NO_MEMORY,
                "18446744073709551615");
    EXPECT_FAIL(table->mem_alloc(handle, PTRDIFF_MAX, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "this process can have");
    EXPECT_FAIL(table->mem_alloc(handle, UINT64_C(1) << 50, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "this process can have");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 0, 0, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "0 bytes");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, SIZE_MAX, 0, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "18446744073709551615");
    cr_expect_eq(pointer, untouched);
    close_cpu();
}

Test(plugin_cpu, freeing_what_is_not_to_be_freed_is_refused)
{
    char *pointer = NULL;
    char *pinned = NULL;
    int local = 0;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, (void **)&pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 1, 0, (void **)&pinned, &error));
    EXPECT_OK(table->mem_free(handle, NULL, &error));
    EXPECT_OK(table->mem_free_pinned(handle, NULL, &error));
    EXPECT_FAIL(table->mem_free(handle, &local, &error), DS_ACCEL_ERR_INVALID,
                "not memory of this");
    EXPECT_FAIL(table->mem_free(handle, pointer + 1, &error), DS_ACCEL_ERR_INVALID,
                "not the start of the memory");
    EXPECT_FAIL(table->mem_free(handle, pointer + 100, &error), DS_ACCEL_ERR_INVALID,
                "not memory of this");
    EXPECT_FAIL(table->mem_free(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "released with mem_free_pinned");
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "released with mem_free");
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    EXPECT_FAIL(table->mem_free(handle, pointer, &error), DS_ACCEL_ERR_INVALID, "released before");
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_FAIL(table->mem_free_pinned(handle, pinned, &error), DS_ACCEL_ERR_INVALID,
                "released before");
    close_cpu();
}

Test(plugin_cpu, many_allocations_are_told_apart)
{
    char *pointers[1000];

    open_cpu();
    for (size_t i = 0; i < 1000; i++) {
        ASSERT_OK(table->mem_alloc(handle, i % 7 + 1, 0, 0, (void **)&pointers[i], &error));
    }
    for (size_t i = 0; i < 1000; i += 2) {
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
    }
    for (size_t i = 1; i < 1000; i += 2) {
        EXPECT_OK(table->mem_free(handle, pointers[i], &error));
        EXPECT_FAIL(table->mem_free(handle, pointers[i], &error), DS_ACCEL_ERR_INVALID, "released");
    }
    close_cpu();
}

Test(plugin_cpu, the_limit_of_a_device_is_heeded)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    void *pointer = NULL;
    void *more = NULL;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 600, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_set_limit(handle, 1000, &error));
    EXPECT_FAIL(table->mem_alloc(handle, 401, 0, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY,
                "600 bytes are live and the limit of mem_set_limit is 1000");
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_eq(info.limit_bytes, 1000);
    cr_expect_str_eq(info.limit_source, "mem_set_limit()");
    cr_expect_eq(info.available_bytes, 400);
    EXPECT_OK(table->mem_alloc(handle, 400, 0, 0, &more, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    EXPECT_OK(table->mem_free(handle, more, &error));
    EXPECT_OK(table->mem_set_limit(handle, 0, &error));
    ASSERT_OK(table->mem_alloc(handle, 2000, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_cpu();
}

Test(plugin_cpu, closing_a_device_releases_what_is_left)
{
    void *pointer;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(handle, 100, 0, 0, &pointer, &error));
    ds_accel_device_close(device);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    handle = ds_accel_device_handle(device);
    EXPECT_FAIL(table->mem_free_pinned(handle, pointer, &error), DS_ACCEL_ERR_INVALID,
                "not memory of this");
    close_cpu();
}

/* ---- pinned memory -------------------------------------------------------------------------- */

static void expect_pinned(uint64_t align_bytes, uint32_t flags, uint64_t expected_bytes)
{
    char *pointer = NULL;

    ASSERT_OK(table->mem_alloc_pinned(handle, 100, align_bytes, flags, (void **)&pointer, &error));
    cr_expect_eq((uintptr_t)pointer % expected_bytes, 0, "%p", (void *)pointer);
    memset(pointer, 1, 100);
    EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
}

Test(plugin_cpu, pinned_memory_is_aligned_as_asked)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    open_cpu();
    expect_pinned(0, 0, page);
    expect_pinned(1, DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED, 1);
    expect_pinned(64, 0, 64);
    expect_pinned(4096, 0, 4096);
    expect_pinned(2 * MIB, 0, 2 * MIB);
    expect_pinned(64 * MIB, 0, 64 * MIB);
    expect_pinned(0, DS_ACCEL_PINNED_HUGE_PAGES, 2 * MIB);
    close_cpu();
}

Test(plugin_cpu, alignments_and_flags_that_cannot_be_are_refused)
{
    void *pointer = NULL;

    open_cpu();
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 3, 0, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "alignment 3 is no power of two");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 4097, 0, &pointer, &error),
                DS_ACCEL_ERR_INVALID, "alignment 4097");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, UINT64_C(1) << 63, 0, &pointer, &error),
                DS_ACCEL_ERR_NO_MEMORY, "mem_alloc_pinned");
    EXPECT_FAIL(table->mem_alloc_pinned(handle, 100, 0, 16, &pointer, &error), DS_ACCEL_ERR_INVALID,
                "unknown flags 0x10");
    cr_expect_null(pointer);
    close_cpu();
}

/* VmLck of this process; -1 where the kernel does not tell. */
static long locked_kib(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmLck: %ld", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

Test(plugin_cpu, pinned_memory_is_locked)
{
    const long before = locked_kib();
    char *pinned = NULL;
    char *mine;

    if (MLOCK_DOES_NOTHING || before < 0) {
        cr_skip_test("mlock() or VmLck does nothing here");
    }
    open_cpu();
    ASSERT_OK(table->mem_alloc_pinned(handle, 32768, 0, 0, (void **)&pinned, &error));
    cr_expect_eq(locked_kib(), before + 32);
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    cr_expect_eq(locked_kib(), before);
    mine = aligned_alloc(65536, 65536);
    cr_assert_not_null(mine);
    EXPECT_OK(table->mem_register(handle, mine, 16384, 0, &error));
    cr_expect_eq(locked_kib(), before + 16);
    EXPECT_OK(table->mem_unregister(handle, mine, &error));
    cr_expect_eq(locked_kib(), before);
    free(mine);
    close_cpu();
}

Test(plugin_cpu, registered_memory_stays_the_callers)
{
    static char mine[100000];
    void *address = NULL;

    open_cpu();
    ASSERT_OK(table->mem_register(handle, mine + 10, 50000, 0, &error));
    EXPECT_FAIL(table->mem_register(handle, mine + 50009, 100, 0, &error), DS_ACCEL_ERR_INVALID,
                "overlaps memory already known");
    EXPECT_OK(table->mem_register(handle, mine + 50010, 100, 0, &error));
    EXPECT_OK(table->mem_device_pointer(handle, mine + 10, &address, &error));
    cr_expect_eq(address, mine + 10);
    EXPECT_FAIL(table->mem_free_pinned(handle, mine + 10, &error), DS_ACCEL_ERR_INVALID,
                "released with mem_unregister");
    EXPECT_OK(table->mem_unregister(handle, mine + 10, &error));
    EXPECT_FAIL(table->mem_unregister(handle, mine + 10, &error), DS_ACCEL_ERR_INVALID,
                "released before");
    EXPECT_OK(table->mem_unregister(handle, mine + 50010, &error));
    EXPECT_FAIL(table->mem_register(handle, mine, 0, 0, &error), DS_ACCEL_ERR_INVALID, "empty");
    EXPECT_FAIL(table->mem_register(handle, mine, SIZE_MAX, 0, &error), DS_ACCEL_ERR_INVALID,
                "beyond the end of the address space");
    mine[99999] = 1;
    close_cpu();
}

/* In a child of the test, without the right to lock more than 64 KiB: a line on what came of it. */
static int pin_as_nobody(int to)
{
    const struct rlimit limit = {65536, 65536};
    void *pointer = NULL;
    char line[512];
    int32_t small;
    int32_t large;

    open_cpu(); /* here: the child of a process cannot use what that one has started */
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        (geteuid() == 0 && (setgroups(0, NULL) != 0 || setuid(65534) != 0))) {
        return 1;
    }
    small = table->mem_alloc_pinned(handle, 4096, 0, 0, &pointer, &error);
    if (small == DS_ACCEL_OK) {
        small = table->mem_free_pinned(handle, pointer, &error);
    }
    large = table->mem_alloc_pinned(handle, MIB, 0, 0, &pointer, &error);
    snprintf(line, sizeof(line), "%d %d %s", small, large, error.message);
    return write(to, line, strlen(line)) != (ssize_t)strlen(line);
}

Test(plugin_cpu, the_kernels_limit_on_pinned_memory_is_named)
{
    char line[512];
    ssize_t length;
    int ends[2];
    int status;
    pid_t child;

    if (MLOCK_DOES_NOTHING) {
        cr_skip_test("mlock() does nothing here");
    }
    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        _exit(pin_as_nobody(ends[1]));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        cr_skip_test("the limit can't be set here");
    }
    length = read(ends[0], line, sizeof(line) - 1);
    cr_assert_gt(length, 0);
    line[length] = '\0';
    EXPECT_HAS(line, "0 -13 mem_alloc_pinned(1048576 bytes)");
    EXPECT_HAS(line, "RLIMIT_MEMLOCK is 65536 bytes (soft), 65536 (hard)");
    EXPECT_HAS(line, "ulimit -l");
    close(ends[0]);
    close(ends[1]);
}

/* ---- copies and fills ----------------------------------------------------------------------- */

Test(plugin_cpu, copies_of_every_kind_arrive)
{
    ds_accel_plugin_stream_t *stream;
    char source[100];
    char target[100];

    open_cpu();
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    for (uint32_t kind = DS_ACCEL_COPY_HOST_TO_HOST; kind <= DS_ACCEL_COPY_INFER; kind++) {
        memset(source, (int)kind, sizeof(source));
        memset(target, 0, sizeof(target));
        EXPECT_OK(table->mem_copy(handle, target, source, 99, kind, &error));
        cr_expect(target[98] == (char)kind && target[99] == 0);
        memset(target, 0, sizeof(target));
        EXPECT_OK(table->mem_copy_async(stream, target, source, 99, kind, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        cr_expect(target[98] == (char)kind && target[99] == 0);
    }
    memset(target, 0, sizeof(target));
    EXPECT_OK(table->mem_copy_peer_async(stream, handle, target, handle, source, 99, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect(target[98] == source[98] && target[99] == 0);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu, copies_that_cannot_be_are_refused)
{
    ds_accel_plugin_stream_t *stream;
    char byte = 7;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    EXPECT_OK(table->mem_copy(handle, NULL, NULL, 0, DS_ACCEL_COPY_INFER, &error));
    EXPECT_FAIL(table->mem_copy(handle, NULL, &byte, 1, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "destination is NULL");
    EXPECT_FAIL(table->mem_copy_async(stream, &byte, NULL, 1, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "source is NULL");
    EXPECT_FAIL(table->mem_copy(handle, &byte, &byte, 1, 0, &error), DS_ACCEL_ERR_INVALID,
                "kind 0");
    EXPECT_FAIL(table->mem_copy_async(stream, &byte, &byte, 1, 6, &error), DS_ACCEL_ERR_INVALID,
                "kind 6");
    EXPECT_FAIL(table->mem_copy(handle, &byte, &byte, SIZE_MAX, DS_ACCEL_COPY_INFER, &error),
                DS_ACCEL_ERR_INVALID, "more than an address space");
    close_cpu();
}

Test(plugin_cpu, fills_repeat_their_pattern)
{
    static const unsigned char pattern[4] = {1, 2, 3, 4};
    static const uint32_t sizes[] = {1, 2, 4};
    ds_accel_plugin_stream_t *stream;
    unsigned char bytes[101];

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    for (size_t i = 0; i < 3; i++) {
        memset(bytes, 99, sizeof(bytes));
        EXPECT_OK(table->mem_fill_async(stream, bytes, pattern, sizes[i], 100, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        for (size_t at = 0; at < 100; at++) {
            cr_assert_eq(bytes[at], pattern[at % sizes[i]]);
        }
        cr_expect_eq(bytes[100], 99);
        EXPECT_OK(table->mem_fill_async(stream, bytes, pattern, sizes[i], 0, &error));
    }
    EXPECT_FAIL(table->mem_fill_async(stream, bytes, pattern, 3, 99, &error), DS_ACCEL_ERR_INVALID,
                "a pattern of 3 bytes");
    EXPECT_FAIL(table->mem_fill_async(stream, bytes, pattern, 4, 99, &error), DS_ACCEL_ERR_INVALID,
                "99 bytes are no multiple");
    EXPECT_FAIL(table->mem_fill_async(stream, NULL, pattern, 4, 8, &error), DS_ACCEL_ERR_INVALID,
                "destination is NULL");
    close_cpu();
}

/* ---- streams and events --------------------------------------------------------------------- */

static void count_up(void *user_data, int32_t status)
{
    cr_expect_eq(status, DS_ACCEL_OK);
    (*(int *)user_data)++;
}

Test(plugin_cpu, streams_are_made_used_and_destroyed)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_stream_t *standard;
    int32_t least = 9;
    int32_t greatest = 9;
    int count = 0;

    open_cpu();
    EXPECT_OK(table->stream_priority_range(handle, &least, &greatest, &error));
    ASSERT_OK(
        table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, greatest, &stream, &error));
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    cr_expect_neq(stream, standard);
    EXPECT_OK(table->stream_host_task(stream, count_up, &count, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->stream_query(stream, &error));
    cr_expect_eq(count, 1);
    EXPECT_FAIL(table->stream_create(handle, 2, 0, &stream, &error), DS_ACCEL_ERR_INVALID,
                "unknown flags 0x2");
    EXPECT_FAIL(table->stream_create(handle, 0, least + 1, &stream, &error), DS_ACCEL_ERR_INVALID,
                "priority");
    table->stream_destroy(stream);
    table->stream_destroy(standard);
    table->stream_destroy(NULL);
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    EXPECT_OK(table->stream_query(standard, &error));
    close_cpu();
}

static double milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

Test(plugin_cpu, events_measure_real_milliseconds)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed = 0;
    double between;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &start, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &end, &error));
    EXPECT_OK(table->event_query(end, &error));
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_synchronize(start, UINT64_MAX, &error));
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event was never recorded");
    between = milliseconds();
    nanosleep(&pause, NULL);
    between = milliseconds() - between;
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, between - 1e-3);
    EXPECT_OK(table->event_elapsed_ms(end, start, &elapsed, &error));
    cr_expect_leq(elapsed, 1e-3 - between);
    table->event_destroy(start);
    table->event_destroy(end);
    close_cpu();
}

Test(plugin_cpu, events_without_timing_measure_nothing)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *plain;
    ds_accel_plugin_event_t *timing;
    double elapsed;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &stream, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_BLOCKING_SYNC, &plain, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &timing, &error));
    EXPECT_OK(table->event_record(plain, stream, &error));
    EXPECT_OK(table->event_record(timing, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, plain, &error));
    EXPECT_FAIL(table->event_elapsed_ms(plain, timing, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the start event was created without timing");
    EXPECT_FAIL(table->event_elapsed_ms(timing, plain, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "the end event was created without timing");
    table->event_destroy(plain);
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &plain, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "one process");
    EXPECT_FAIL(table->event_create(handle, 8, &plain, &error), DS_ACCEL_ERR_INVALID,
                "unknown flags 0x8");
    table->event_destroy(timing);
    table->event_destroy(NULL);
    close_cpu();
}

/* ---- graphs --------------------------------------------------------------------------------- */

static ds_accel_plugin_stream_t *begin_capture(void)
{
    ds_accel_plugin_stream_t *stream;

    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error));
    return stream;
}

Test(plugin_cpu, a_graph_runs_when_launched_and_computes_anew)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph;
    char buffer[4] = {1, 0, 0, 0};
    uint64_t count = 0;
    int tasks = 0;

    open_cpu();
    stream = begin_capture();
    EXPECT_OK(table->mem_copy_async(stream, buffer + 1, buffer, 1, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(
        table->mem_copy_async(stream, buffer + 2, buffer + 1, 1, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->mem_fill_async(stream, buffer + 3, "\x09", 1, 1, &error));
    EXPECT_OK(table->stream_host_task(stream, count_up, &tasks, &error));
    cr_expect(buffer[1] == 0 && buffer[3] == 0 && tasks == 0, "captured work ran already");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    cr_expect(buffer[1] == 0 && buffer[3] == 0 && tasks == 0, "captured work ran already");
    EXPECT_OK(table->graph_node_count(graph, &count, &error));
    cr_expect_eq(count, 4);
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    for (int round = 1; round < 4; round++) {
        buffer[0] = (char)round;
        EXPECT_OK(table->graph_launch(exec, stream, &error));
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
        cr_expect(buffer[1] == round && buffer[2] == round && buffer[3] == 9);
        cr_expect_eq(tasks, round);
    }
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

Test(plugin_cpu, captures_out_of_place_are_refused)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t state = 99;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    EXPECT_FAIL(table->graph_capture_begin(standard, 0, &error), DS_ACCEL_ERR_STATE,
                "the default stream can't capture");
    EXPECT_FAIL(table->graph_capture_end(standard, &graph, &error), DS_ACCEL_ERR_STATE,
                "not capturing");
    EXPECT_FAIL(table->graph_capture_begin(standard, 3, &error), DS_ACCEL_ERR_INVALID, "mode 3");
    stream = begin_capture();
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_YES);
    EXPECT_FAIL(table->graph_capture_begin(stream, 0, &error), DS_ACCEL_ERR_STATE,
                "capturing already");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    EXPECT_OK(table->graph_capture_status(stream, &state, &error));
    cr_expect_eq(state, DS_ACCEL_CAPTURING_NO);
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    EXPECT_FAIL(table->graph_launch(exec, stream, &error), DS_ACCEL_ERR_STATE, "is capturing");
    table->stream_destroy(stream);
    table->graph_exec_destroy(exec);
    table->graph_exec_destroy(NULL);
    table->graph_destroy(graph);
    table->graph_destroy(NULL);
    close_cpu();
}

Test(plugin_cpu, asking_a_stream_that_captures_breaks_the_capture)
{
    ds_accel_plugin_graph_t *graph = NULL;
    uint32_t state = 99;

    open_cpu();
    for (int i = 0; i < 2; i++) {
        ds_accel_plugin_stream_t *stream = begin_capture();

        EXPECT_FAIL(i == 0 ? table->stream_synchronize(stream, UINT64_MAX, &error)
                           : table->stream_query(stream, &error),
                    DS_ACCEL_ERR_STATE, "is capturing");
        EXPECT_OK(table->graph_capture_status(stream, &state, &error));
        cr_expect_eq(state, DS_ACCEL_CAPTURING_BROKEN);
        EXPECT_FAIL(table->graph_capture_end(stream, &graph, &error), DS_ACCEL_ERR_STATE, "broken");
        cr_expect_null(graph);
        EXPECT_OK(table->stream_query(stream, &error));
        table->stream_destroy(stream);
    }
    close_cpu();
}

Test(plugin_cpu, an_event_of_a_capture_is_reached_by_launching)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_event_t *start;
    ds_accel_plugin_event_t *end;
    double elapsed = -1;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &start, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &end, &error));
    stream = begin_capture();
    EXPECT_OK(table->event_record(start, stream, &error));
    EXPECT_OK(table->event_record(end, stream, &error));
    EXPECT_OK(table->stream_wait_event(stream, end, &error));
    EXPECT_FAIL(table->stream_wait_event(standard, end, &error), DS_ACCEL_ERR_STATE,
                "recorded into a capture");
    EXPECT_FAIL(table->event_elapsed_ms(start, end, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "in a capture that was not launched");
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    table->graph_destroy(graph);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->event_synchronize(end, UINT64_MAX, &error));
    EXPECT_OK(table->event_elapsed_ms(start, end, &elapsed, &error));
    cr_expect_geq(elapsed, 0.0);
    EXPECT_OK(table->stream_wait_event(standard, end, &error));
    table->event_destroy(start); /* the exec still holds it */
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    table->event_destroy(end);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    close_cpu();
}

/* Recording again replaces the earlier mark, and this one is not reached yet. */
Test(plugin_cpu, an_event_recorded_again_into_a_capture_is_not_reached)
{
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    double elapsed;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &event, &error));
    EXPECT_OK(table->event_record(event, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_elapsed_ms(event, event, &elapsed, &error));
    stream = begin_capture();
    EXPECT_OK(table->event_record(event, stream, &error));
    EXPECT_FAIL(table->event_query(event, &error), DS_ACCEL_ERR_STATE, "captur");
    EXPECT_FAIL(table->event_synchronize(event, UINT64_MAX, &error), DS_ACCEL_ERR_STATE, "captur");
    EXPECT_FAIL(table->event_elapsed_ms(event, event, &elapsed, &error), DS_ACCEL_ERR_STATE,
                "captur");
    table->stream_destroy(stream);
    EXPECT_OK(table->event_record(event, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    EXPECT_OK(table->event_query(event, &error));
    EXPECT_OK(table->event_elapsed_ms(event, event, &elapsed, &error));
    table->event_destroy(event);
    close_cpu();
}

static ds_accel_plugin_graph_t *capture_fill(char *target, char value, int times)
{
    ds_accel_plugin_stream_t *stream = begin_capture();
    ds_accel_plugin_graph_t *graph = NULL;

    for (int i = 0; i < times; i++) {
        EXPECT_OK(table->mem_fill_async(stream, target, &value, 1, 1, &error));
    }
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    table->stream_destroy(stream);
    return graph;
}

Test(plugin_cpu, an_exec_takes_a_graph_of_the_same_shape)
{
    ds_accel_plugin_graph_exec_t *exec;
    ds_accel_plugin_stream_t *standard;
    ds_accel_plugin_graph_t *graphs[3];
    uint32_t result = 0;
    char byte = 0;

    open_cpu();
    ASSERT_OK(table->stream_get_default(handle, &standard, &error));
    graphs[0] = capture_fill(&byte, 1, 1);
    graphs[1] = capture_fill(&byte, 2, 1);
    graphs[2] = capture_fill(&byte, 3, 2);
    ASSERT_OK(table->graph_instantiate(graphs[0], 0, &exec, &error));
    EXPECT_OK(table->graph_exec_update(exec, graphs[1], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_UPDATED);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    cr_expect_eq(byte, 2);
    EXPECT_OK(table->graph_exec_update(exec, graphs[2], &result, &error));
    cr_expect_eq(result, DS_ACCEL_GRAPH_REBUILD_NEEDED);
    EXPECT_OK(table->graph_launch(exec, standard, &error));
    EXPECT_OK(table->stream_synchronize(standard, UINT64_MAX, &error));
    cr_expect_eq(byte, 2);
    table->graph_exec_destroy(exec);
    for (size_t i = 0; i < 3; i++) {
        table->graph_destroy(graphs[i]);
    }
    close_cpu();
}

static int32_t keep_text(void *user_data, const char *text, size_t text_bytes)
{
    char *kept = user_data;

    strncat(kept, text, text_bytes);
    return DS_ACCEL_OK;
}

static int32_t refuse_text(void *user_data, const char *text, size_t text_bytes)
{
    (void)user_data;
    (void)text;
    (void)text_bytes;
    return DS_ACCEL_ERR_IO;
}

Test(plugin_cpu, a_graph_can_be_drawn)
{
    ds_accel_plugin_graph_t *graph;
    char text[4096] = "";
    char byte;

    open_cpu();
    graph = capture_fill(&byte, 1, 2);
    EXPECT_OK(table->graph_dump(graph, keep_text, text, &error));
    EXPECT_HAS(text, "digraph ");
    EXPECT_HAS(text, "n0 -> n1;");
    cr_expect_str_eq(text + strlen(text) - 2, "}\n");
    EXPECT_FAIL(table->graph_dump(graph, refuse_text, NULL, &error), DS_ACCEL_ERR_IO, "receiver");
    table->graph_destroy(graph);
    close_cpu();
}

/* ---- usage ---------------------------------------------------------------------------------- */

static struct ds_accel_memory_stats stats(void)
{
    struct ds_accel_memory_stats answer = {.struct_size = sizeof(answer)};

    cr_assert_eq(table->mem_stats(handle, &answer, &error), DS_ACCEL_OK, "%s", error.message);
    return answer;
}

/* Allocate, touch, ask, free. */
static struct ds_accel_memory_stats stats_while_using(uint64_t size_bytes)
{
    struct ds_accel_memory_stats answer;
    void *pointer = NULL;

    cr_assert_eq(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error), DS_ACCEL_OK);
    memset(pointer, 1, size_bytes);
    answer = stats();
    cr_assert_eq(table->mem_free(handle, pointer, &error), DS_ACCEL_OK);
    return answer;
}

Test(plugin_cpu, a_reset_peak_starts_from_what_is_used_now)
{
    struct ds_accel_memory_stats before;
    struct ds_accel_memory_stats during;
    struct ds_accel_memory_stats after;

    open_cpu();
    before = stats();
    during = stats_while_using(128 * MIB);
    cr_expect_geq(during.allocated_bytes, before.allocated_bytes + 96 * MIB);
    cr_expect_geq(stats().allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    EXPECT_OK(table->mem_reset_peaks(handle, DS_ACCEL_PEAK_ALLOCATED, &error));
    after = stats();
    cr_expect_lt(after.allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    cr_expect_geq(after.allocated_peak_bytes, after.allocated_bytes);
    cr_expect_geq(after.reserved_peak_bytes, before.allocated_bytes + 96 * MIB,
                  "the other peak was reset too");
    /* Lower than the process's peak, so that only our own query saw it. */
    stats_while_using(64 * MIB);
    after = stats();
    cr_expect_geq(after.allocated_peak_bytes, before.allocated_bytes + 48 * MIB);
    cr_expect_lt(after.allocated_peak_bytes, before.allocated_bytes + 96 * MIB);
    EXPECT_FAIL(table->mem_reset_peaks(handle, 4, &error), DS_ACCEL_ERR_INVALID, "0x4");
    close_cpu();
}

Test(plugin_cpu, allocations_frees_and_failures_are_counted)
{
    struct ds_accel_memory_stats answer;
    void *pointer = NULL;

    open_cpu();
    ASSERT_OK(table->mem_alloc(handle, 1, 0, 0, &pointer, &error));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    ASSERT_OK(table->mem_alloc(handle, 1, 0, 0, &pointer, &error));
    cr_expect_eq(table->mem_alloc(handle, SIZE_MAX, 0, 0, &pointer, &error),
                 DS_ACCEL_ERR_NO_MEMORY);
    answer = stats();
    cr_expect_eq(answer.alloc_count, 2);
    cr_expect_eq(answer.free_count, 1);
    cr_expect_eq(answer.out_of_memory_count, 1);
    EXPECT_OK(table->mem_trim(handle, 0, &error));
    close_cpu();
}

Test(plugin_cpu, writes_no_more_than_the_caller_knows)
{
    struct ds_accel_memory_info info;

    open_cpu();
    memset(&info, 0x5a, sizeof(info));
    info.struct_size = DS_ACCEL_SIZE_THROUGH(struct ds_accel_memory_info, total_bytes);
    EXPECT_OK(ds_accel_device_memory(device, &info));
    cr_expect_neq(info.total_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.available_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    cr_expect_eq(info.struct_size, DS_ACCEL_SIZE_THROUGH(struct ds_accel_memory_info, total_bytes));
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
    EXPECT_FAIL(table->mem_free(peer, pointer, &error), DS_ACCEL_ERR_INVALID, "not memory of this");
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

/* A host of our own, so that the test holds the instance that some functions ask for. */
static void drop_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    (void)message;
}

static int32_t no_option(const struct ds_accel_host *host, const char *key, char *value,
                         uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)key;
    (void)value;
    (void)value_size;
    (void)needed_out;
    return DS_ACCEL_ERR_NOT_FOUND;
}

static int32_t no_nodes(const struct ds_accel_host *host, uint32_t *count_out)
{
    (void)host;
    *count_out = 0;
    return DS_ACCEL_OK;
}

static int32_t no_memory(const struct ds_accel_host *host, struct ds_accel_host_memory *memory_out)
{
    (void)host;
    (void)memory_out;
    return DS_ACCEL_ERR_IO;
}

static const void *find_extension(const struct ds_accel_host *host, const char *id)
{
    static const struct ds_accel_ext_topology topology = {
        .struct_size = sizeof(topology), .node_count = no_nodes, .memory_get = no_memory};

    (void)host;
    return strcmp(id, DS_ACCEL_EXT_TOPOLOGY) == 0 ? &topology : NULL;
}

static const struct ds_accel_host own_host = {.struct_size = sizeof(own_host),
                                              .abi_major = DS_ACCEL_ABI_MAJOR,
                                              .log = drop_log,
                                              .config_get = no_option,
                                              .machine_root = "",
                                              .extension = find_extension};

static struct ds_accel_pointer_info pointer_info(ds_accel_plugin_instance_t *instance,
                                                 const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .kind = 99};

    cr_expect_eq(table->mem_pointer_info(instance, NULL, pointer, &info, &error), DS_ACCEL_OK);
    return info;
}

Test(plugin_cpu, a_pointer_tells_what_it_points_into)
{
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *own;
    struct ds_accel_pointer_info info;
    uint64_t id;
    char *pinned;
    char *pointer;

    open_cpu();
    ASSERT_OK(table->init(&own_host, &instance, &error));
    ASSERT_OK(table->device_open(instance, 0, &own, &error));
    ASSERT_OK(table->mem_alloc(own, 100, 0, 0, (void **)&pointer, &error));
    ASSERT_OK(table->mem_alloc_pinned(own, 50, 0, 0, (void **)&pinned, &error));
    info = pointer_info(instance, pointer + 99);
    cr_expect(info.kind == DS_ACCEL_POINTER_DEVICE && info.device_index == 0);
    cr_expect(info.base_address == (uintptr_t)pointer && info.size_bytes == 100);
    id = info.allocation_id;
    info = pointer_info(instance, pinned);
    cr_expect(info.kind == DS_ACCEL_POINTER_PINNED && info.size_bytes == 50);
    cr_expect(info.allocation_id != 0 && id != 0 && info.allocation_id != id);
    cr_expect_eq(pointer_info(instance, pinned + 50).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(pointer_info(instance, NULL).kind, DS_ACCEL_POINTER_UNKNOWN);
    cr_expect_eq(pointer_info(instance, &info).device_index, -1);
    EXPECT_OK(table->mem_free(own, pointer, &error));
    cr_expect_eq(pointer_info(instance, pointer).kind, DS_ACCEL_POINTER_UNKNOWN);
    EXPECT_OK(table->mem_free_pinned(own, pinned, &error));
    table->device_close(own);
    table->shutdown(instance);
    close_cpu();
}

/* ---- oneCCL --------------------------------------------------------------------------------- */

/* "communication_backend" of a program that was started with this LD_LIBRARY_PATH. */
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
