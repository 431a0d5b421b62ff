/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cpu plugin and its machine: the NUMA node on which memory lies, virtual memory, sensors. The
 * host is the test's own, so that a machine with one node can be told to have two.
 */
#include "fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static ds_accel_t *context;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_instance_t *instance;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

#define EXPECT_OK(call) cr_expect_eq(call, DS_ACCEL_OK, "%s", error.message)
#define ASSERT_OK(call) cr_assert_eq(call, DS_ACCEL_OK, "%s", error.message)
#define EXPECT_FAIL(call, status, part) \
    do { \
        memset(&error, 0, sizeof(error)); \
        error.struct_size = sizeof(error); \
        cr_expect_eq(call, status, "%s", error.message); \
        cr_expect_eq(error.code, status); \
        EXPECT_HAS(error.message, part); \
    } while (0)

/* ---- a host --------------------------------------------------------------------------------- */

static const char *async_option; /* NULL: unset */
static uint32_t node_count;
static bool has_one_kernel_node = true; /* all nodes are the kernel's node 0 */
static uint64_t machine_available_bytes = UINT64_C(3) << 34;
static char host_log[1024];

static void keep_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    (void)level;
    snprintf(host_log + strlen(host_log), sizeof(host_log) - strlen(host_log), "%s\n", message);
}

static int32_t get_option(const struct ds_accel_host *host, const char *key, char *value,
                          uint32_t value_size, uint32_t *needed_out)
{
    (void)host;
    (void)needed_out;
    if (strcmp(key, "async") != 0 || async_option == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    snprintf(value, value_size, "%s", async_option);
    return DS_ACCEL_OK;
}

static int32_t count_nodes(const struct ds_accel_host *host, uint32_t *count_out)
{
    (void)host;
    *count_out = node_count;
    return DS_ACCEL_OK;
}

/* One CPU each. The kernel's node 0 is the one that every machine has. */
static int32_t get_node(const struct ds_accel_host *host, uint32_t position,
                        struct ds_accel_numa_node *node_out)
{
    struct ds_accel_numa_node node = {.cpu_count = 1};

    (void)host;
    node.id = has_one_kernel_node ? 0 : position;
    snprintf(node.cpus, sizeof(node.cpus), "%u", position);
    ds_accel_write(node_out, &node, sizeof(node));
    return DS_ACCEL_OK;
}

static int32_t get_memory(const struct ds_accel_host *host, struct ds_accel_host_memory *memory_out)
{
    const struct ds_accel_host_memory memory = {.total_bytes = UINT64_C(1) << 36,
                                                .available_bytes = machine_available_bytes};

    (void)host;
    ds_accel_write(memory_out, &memory, sizeof(memory));
    return DS_ACCEL_OK;
}

static const void *find_extension(const struct ds_accel_host *host, const char *id)
{
    static const struct ds_accel_ext_topology topology = {.struct_size = sizeof(topology),
                                                          .node_count = count_nodes,
                                                          .node_get = get_node,
                                                          .memory_get = get_memory};

    (void)host;
    return strcmp(id, DS_ACCEL_EXT_TOPOLOGY) == 0 ? &topology : NULL;
}

static struct ds_accel_host own_host = {.struct_size = sizeof(own_host),
                                        .abi_major = DS_ACCEL_ABI_MAJOR,
                                        .log = keep_log,
                                        .config_get = get_option,
                                        .machine_root = "",
                                        .extension = find_extension};

static void open_cpu(uint32_t nodes, const char *async)
{
    struct ds_accel_options options = test_options();
    ds_accel_device_t *device;

    unsetenv("LOCAL_SIZE");
    unsetenv("LOCAL_RANK");
    options.accelerator = "cpu";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    table = ds_accel_device_table(device);
    ds_accel_device_close(device);
    node_count = nodes;
    async_option = async;
    ASSERT_OK(table->init(&own_host, &instance, &error));
    ASSERT_OK(table->device_open(instance, 0, &handle, &error));
}

static void close_cpu(void)
{
    table->device_close(handle);
    table->shutdown(instance);
    ds_accel_destroy(context);
}

TestSuite(plugin_cpu_memory, .timeout = 120);

/* ---- where memory lies ---------------------------------------------------------------------- */

#define MPOL_PREFERRED 1
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2

/* The policy of the pages at an address: its mode, and whether it names node 0. */
static bool prefers_node_0(const void *address)
{
    unsigned long nodes[16] = {0};
    int mode = -1;

    if (syscall(SYS_get_mempolicy, &mode, nodes, 1024ul, address, (unsigned long)MPOL_F_ADDR) !=
        0) {
        cr_skip_test("get_mempolicy() is forbidden here");
    }
    return mode == MPOL_PREFERRED && nodes[0] == 1;
}

static void *touch(void *pointer)
{
    memset(pointer, 1, 4096);
    return NULL;
}

/* The preference is the memory's, so that it holds whichever thread touches it first. */
static void expect_on_node(void *pointer)
{
    pthread_t thread;
    int node = -1;

    cr_expect(prefers_node_0(pointer));
    cr_assert_eq(pthread_create(&thread, NULL, touch, pointer), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(syscall(SYS_get_mempolicy, &node, NULL, 0ul, pointer,
                         (unsigned long)(MPOL_F_ADDR | MPOL_F_NODE)),
                 0);
    cr_expect_eq(node, 0);
}

Test(plugin_cpu_memory, of_every_kind_lies_on_the_node_of_its_device)
{
    static const uint64_t sizes[] = {100, 4096, 3 * MIB};
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *pointer = NULL;

    open_cpu(2, NULL);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_OK(table->mem_alloc(handle, sizes[i] + 4096, 0, 0, &pointer, &error));
        expect_on_node(pointer);
        EXPECT_OK(table->mem_free(handle, pointer, &error));
        if (table->mem_alloc_pinned(handle, sizes[i] + 4096, 0, 0, &pointer, &error) ==
            DS_ACCEL_OK) {
            expect_on_node(pointer);
            EXPECT_OK(table->mem_free_pinned(handle, pointer, &error));
        } else {
            cr_expect_eq(error.code, DS_ACCEL_ERR_LIMIT);
        }
    }
    ASSERT_OK(table->vmem_reserve(handle, 2 * MIB, 0, NULL, 0, &pointer, &error));
    ASSERT_OK(table->vmem_create(handle, 2 * MIB, 0, &vmem, &error));
    ASSERT_OK(table->vmem_map(handle, pointer, 2 * MIB, vmem, 0, &error));
    EXPECT_OK(
        table->vmem_set_access(handle, pointer, 2 * MIB, DS_ACCEL_VMEM_ACCESS_READ_WRITE, &error));
    expect_on_node(pointer);
    EXPECT_OK(table->vmem_unmap(handle, pointer, 2 * MIB, &error));
    table->vmem_destroy(vmem);
    EXPECT_OK(table->vmem_release(handle, pointer, 2 * MIB, &error));
    cr_expect_str_eq(host_log, "");
    close_cpu();
}

Test(plugin_cpu_memory, available_is_at_most_all_of_it)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};

    machine_available_bytes = UINT64_C(1) << 37; /* read later than the total, from another file */
    open_cpu(1, NULL);
    EXPECT_OK(table->mem_info(handle, &info, &error));
    cr_expect_eq(info.total_bytes, UINT64_C(1) << 36);
    cr_expect_eq(info.available_bytes, info.total_bytes);
    close_cpu();
}

Test(plugin_cpu_memory, is_left_to_the_kernel_where_there_is_one_node)
{
    void *pointer = NULL;

    open_cpu(1, NULL);
    ASSERT_OK(table->mem_alloc(handle, MIB, 0, 0, &pointer, &error));
    cr_expect_not(prefers_node_0(pointer));
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_cpu();
}

/* ---- virtual memory ------------------------------------------------------------------------- */

static struct ds_accel_pointer_info pointer_info(const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info), .kind = 99};

    EXPECT_OK(table->mem_pointer_info(instance, NULL, pointer, &info, &error));
    return info;
}

static char *reserve(uint64_t size_bytes)
{
    void *address = NULL;

    ASSERT_OK(table->vmem_reserve(handle, size_bytes, 0, NULL, 0, &address, &error));
    return address;
}

static ds_accel_plugin_vmem_t *create(uint64_t size_bytes)
{
    ds_accel_plugin_vmem_t *vmem = NULL;

    ASSERT_OK(table->vmem_create(handle, size_bytes, 0, &vmem, &error));
    return vmem;
}

static void map(char *address, uint64_t size_bytes, ds_accel_plugin_vmem_t *vmem, uint64_t offset)
{
    ASSERT_OK(table->vmem_map(handle, address, size_bytes, vmem, offset, &error));
    ASSERT_OK(table->vmem_set_access(handle, address, size_bytes, DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                     &error));
}

static uint64_t granularity(void)
{
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    EXPECT_OK(table->vmem_granularity(handle, 0, &minimum, &recommended, &error));
    cr_assert(minimum > 0 && recommended % minimum == 0);
    return minimum;
}

Test(plugin_cpu_memory, mapped_twice_is_the_same_memory)
{
    struct ds_accel_pointer_info info;
    ds_accel_plugin_vmem_t *vmem;
    uint64_t page;
    char *first;
    char *second;

    open_cpu(1, NULL);
    page = granularity();
    first = reserve(8 * page);
    second = reserve(8 * page);
    vmem = create(4 * page);
    map(first + page, 4 * page, vmem, 0);
    map(second, 2 * page, vmem, 2 * page);
    strcpy(first + 3 * page, "shared");
    cr_expect_str_eq(second, "shared");
    strcpy(second + page, "back");
    cr_expect_str_eq(first + 4 * page, "back");
    info = pointer_info(first + 3 * page);
    cr_expect_eq(info.kind, DS_ACCEL_POINTER_DEVICE);
    cr_expect_eq(info.base_address, (uintptr_t)(first + page));
    cr_expect_eq(info.size_bytes, 4 * page);
    cr_expect_eq(pointer_info(first).kind, DS_ACCEL_POINTER_UNKNOWN);
    table->vmem_destroy(vmem); /* what is mapped keeps it */
    EXPECT_OK(table->vmem_unmap(handle, first + page, 4 * page, &error));
    cr_expect_str_eq(second, "shared");
    EXPECT_OK(table->vmem_unmap(handle, second, 2 * page, &error));
    EXPECT_OK(table->vmem_release(handle, first, 8 * page, &error));
    EXPECT_OK(table->vmem_release(handle, second, 8 * page, &error));
    table->vmem_destroy(NULL);
    close_cpu();
}

/* A segment that grows at its end, and shrinks again: what the caching allocator does. */
Test(plugin_cpu_memory, segments_grow_in_place)
{
    enum {
        PARTS = 16
    };
    uint64_t page;
    char *base;

    open_cpu(1, NULL);
    page = granularity();
    base = reserve(PARTS * page);
    for (uint64_t i = 0; i < PARTS; i++) {
        ds_accel_plugin_vmem_t *vmem = create(page);

        map(base + i * page, page, vmem, 0);
        table->vmem_destroy(vmem);
        memset(base + i * page, (int)i, (size_t)page);
    }
    for (uint64_t i = 0; i < PARTS; i++) {
        cr_assert(base[i * page] == (char)i && base[(i + 1) * page - 1] == (char)i);
    }
    EXPECT_OK(table->vmem_unmap(handle, base + 8 * page, 8 * page, &error)); /* eight at once */
    cr_expect_eq(base[7 * page], 7);
    EXPECT_FAIL(table->vmem_release(handle, base, PARTS * page, &error), DS_ACCEL_ERR_BUSY,
                "still mapped");
    EXPECT_OK(table->vmem_unmap(handle, base, 8 * page, &error));
    EXPECT_OK(table->vmem_release(handle, base, PARTS * page, &error));
    close_cpu();
}

/* In a child: does touching the byte end it? */
static bool faults(volatile char *byte, bool writes)
{
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        if (writes) {
            *byte = 1;
        }
        _exit(*byte == 77 ? 2 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

Test(plugin_cpu_memory, access_is_what_was_set)
{
    ds_accel_plugin_vmem_t *vmem;
    uint64_t page;
    char *base;

    open_cpu(1, NULL);
    page = granularity();
    base = reserve(2 * page);
    vmem = create(page);
    cr_expect(faults(base, false), "reserved only");
    ASSERT_OK(table->vmem_map(handle, base, page, vmem, 0, &error));
    cr_expect(faults(base, false), "mapped only");
    EXPECT_OK(table->vmem_set_access(handle, base, page, DS_ACCEL_VMEM_ACCESS_READ, &error));
    cr_expect_not(faults(base, false));
    cr_expect(faults(base, true), "read only");
    EXPECT_OK(table->vmem_set_access(handle, base, page, DS_ACCEL_VMEM_ACCESS_READ_WRITE, &error));
    cr_expect_not(faults(base, true));
    EXPECT_OK(table->vmem_set_access(handle, base, page, DS_ACCEL_VMEM_ACCESS_NONE, &error));
    cr_expect(faults(base, false), "taken away");
    EXPECT_OK(table->vmem_unmap(handle, base, page, &error));
    cr_expect(faults(base, false), "unmapped");
    table->vmem_destroy(vmem);
    EXPECT_OK(table->vmem_release(handle, base, 2 * page, &error));
    close_cpu();
}

Test(plugin_cpu_memory, misuse_of_virtual_memory_is_refused)
{
    ds_accel_plugin_vmem_t *vmem;
    void *address = NULL;
    uint64_t page;
    uint64_t size = 0;
    char *base;

    open_cpu(1, NULL);
    page = granularity();
    EXPECT_FAIL(table->vmem_granularity(handle, DS_ACCEL_VMEM_EXPORTABLE, &size, &size, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "exportable");
    EXPECT_FAIL(table->vmem_create(handle, page, 8, &vmem, &error), DS_ACCEL_ERR_INVALID, "0x8");
    EXPECT_FAIL(table->vmem_reserve(handle, page + 1, 0, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "multiple of");
    EXPECT_FAIL(table->vmem_reserve(handle, page, 3 * page, NULL, 0, &address, &error),
                DS_ACCEL_ERR_INVALID, "power of two");
    EXPECT_FAIL(table->vmem_reserve(handle, UINT64_MAX - page + 1, 0, NULL, 0, &address, &error),
                DS_ACCEL_ERR_NO_MEMORY, "vmem_reserve(");
    EXPECT_FAIL(table->vmem_create(handle, 0, 0, &vmem, &error), DS_ACCEL_ERR_INVALID, "multiple");
    EXPECT_FAIL(table->vmem_create(handle, UINT64_C(1) << 40, 0, &vmem, &error),
                DS_ACCEL_ERR_NO_MEMORY, "this process can have");
    base = reserve(4 * page);
    vmem = create(2 * page);
    EXPECT_FAIL(table->vmem_map(handle, base + 1, page, vmem, 0, &error), DS_ACCEL_ERR_INVALID,
                "granularity");
    EXPECT_FAIL(table->vmem_map(handle, base, 2 * page, vmem, page, &error), DS_ACCEL_ERR_INVALID,
                "has no");
    EXPECT_FAIL(table->vmem_map(handle, base + 3 * page, 2 * page, vmem, 0, &error),
                DS_ACCEL_ERR_INVALID, "not in a reservation");
    map(base + page, 2 * page, vmem, 0);
    EXPECT_FAIL(table->vmem_map(handle, base + 2 * page, page, vmem, 0, &error),
                DS_ACCEL_ERR_INVALID, "mapped already");
    EXPECT_FAIL(table->vmem_unmap(handle, base + page, page, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    EXPECT_FAIL(table->vmem_unmap(handle, base, 3 * page, &error), DS_ACCEL_ERR_INVALID,
                "not whole mappings");
    EXPECT_FAIL(table->vmem_set_access(handle, base, page, DS_ACCEL_VMEM_ACCESS_READ, &error),
                DS_ACCEL_ERR_INVALID, "not whole mappings");
    EXPECT_FAIL(table->vmem_set_access(handle, base + page, 2 * page, 2, &error),
                DS_ACCEL_ERR_INVALID, "unknown access 2");
    EXPECT_FAIL(table->mem_free(handle, base + page, &error), DS_ACCEL_ERR_INVALID, "vmem_unmap");
    EXPECT_FAIL(table->vmem_release(handle, base + page, page, &error), DS_ACCEL_ERR_INVALID,
                "no reservation");
    table->vmem_destroy(vmem);
    close_cpu(); /* with a mapping and a reservation left */
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    cr_assert_not_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

Test(plugin_cpu_memory, physical_memory_counts_until_its_last_mapping_goes)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_vmem_t *vmem;
    ds_accel_plugin_vmem_t *more;
    uint64_t page;
    char *base;
    int descriptors;

    open_cpu(1, NULL);
    page = granularity();
    descriptors = count_descriptors();
    EXPECT_OK(table->mem_set_limit(handle, 2 * page, &error));
    base = reserve(2 * page);
    vmem = create(2 * page);
    EXPECT_FAIL(table->vmem_create(handle, page, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY,
                "limit of mem_set_limit");
    map(base, 2 * page, vmem, 0);
    table->vmem_destroy(vmem);
    EXPECT_FAIL(table->vmem_create(handle, page, 0, &more, &error), DS_ACCEL_ERR_NO_MEMORY,
                "limit");
    EXPECT_OK(table->vmem_unmap(handle, base, 2 * page, &error));
    more = create(2 * page);
    table->vmem_destroy(more);
    cr_expect_eq(count_descriptors(), descriptors);
    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    cr_expect(stats.alloc_count == 2 && stats.free_count == 2 && stats.out_of_memory_count == 2);
    EXPECT_OK(table->vmem_release(handle, base, 2 * page, &error));
    close_cpu();
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool is_reached;
};

static void pass_gate(void *data, int32_t status)
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

static void *open_reached_gate(void *data)
{
    struct gate *gate = data;

    pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

/* Work that is queued writes to the range: without the wait it would end this process. */
Test(plugin_cpu_memory, unmapping_waits_for_the_streams)
{
    ds_accel_plugin_stream_t *stream = NULL;
    uint64_t page;
    char *base;

    open_cpu(1, "true");
    page = granularity();
    base = reserve(page);
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    for (int round = 0; round < 2; round++) {
        struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
        ds_accel_plugin_vmem_t *vmem = create(page);
        pthread_t thread;

        map(base, page, vmem, 0);
        table->vmem_destroy(vmem);
        ASSERT_OK(table->stream_host_task(stream, pass_gate, &gate, &error));
        ASSERT_OK(table->mem_fill_async(stream, base, "\1", 1, page, &error));
        cr_assert_eq(pthread_create(&thread, NULL, open_reached_gate, &gate), 0);
        if (round == 0) {
            EXPECT_OK(
                table->vmem_set_access(handle, base, page, DS_ACCEL_VMEM_ACCESS_READ, &error));
            cr_expect(base[0] == 1 && base[page - 1] == 1);
        }
        EXPECT_OK(table->vmem_unmap(handle, base, page, &error));
        cr_assert_eq(pthread_join(thread, NULL), 0);
        EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    }
    table->stream_destroy(stream);
    EXPECT_OK(table->vmem_release(handle, base, page, &error));
    close_cpu();
}

/* ---- sensors -------------------------------------------------------------------------------- */

TestSuite(plugin_cpu_sensors, .timeout = 120);

/* A recorded machine with two nodes of one CPU each. */
static void open_recorded(void)
{
    static char root[512];

    test_write("machine/proc/cpuinfo", "model name\t: A\n\n");
    snprintf(root, sizeof(root), "%s", test_path("machine"));
    own_host.machine_root = root;
    has_one_kernel_node = false;
    open_cpu(2, NULL);
}

static struct ds_accel_telemetry telemetry(uint32_t device_index)
{
    struct ds_accel_telemetry answer = {.struct_size = sizeof(answer)};

    EXPECT_OK(table->telemetry_get(instance, device_index, &answer, &error));
    return answer;
}

Test(plugin_cpu_sensors, utilization_is_that_of_the_nodes_cpus_since_the_last_look)
{
    struct ds_accel_telemetry answer;
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

    open_recorded();
    cr_expect_eq(telemetry(0).valid, DS_ACCEL_TELEMETRY_MEMORY);
    test_write("machine/proc/stat", "cpu  9 9 9 9 9 9 9 9 0 0\n"
                                    "cpu0 100 20 30 600 200 20 20 10 0 0\n"
                                    "cpu1 1000 0 0 0 0 0 0 0 0 0\nintr 5\n");
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    cr_expect_eq(answer.utilization_percent, 20, "since the machine began");
    cr_expect_eq(answer.sampled_over_ns, 1000 * tick_ns);
    cr_expect_eq(telemetry(1).utilization_percent, 100);
    /* Nine ticks are no period yet. */
    test_write("machine/proc/stat", "cpu0 109 20 30 600 200 20 20 10 0 0\n");
    cr_expect_eq(telemetry(0).utilization_percent, 20);
    test_write("machine/proc/stat", "cpu0 150 20 30 650 200 20 20 10 0 0\n");
    answer = telemetry(0);
    cr_expect_eq(answer.utilization_percent, 50);
    cr_expect_eq(answer.sampled_over_ns, 100 * tick_ns);
    /* Backwards: begun again. */
    test_write("machine/proc/stat", "cpu0 1 0 0 3 0 0 0 0 0 0\n");
    cr_expect_eq(telemetry(0).utilization_percent, 25);
    test_write("machine/proc/stat", "intr 5\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    close_cpu();
}

Test(plugin_cpu_sensors, the_temperature_is_that_of_the_nodes_package)
{
    struct ds_accel_telemetry answer;

    open_recorded();
    for (int i = 0; i < 2; i++) {
        static const char *const temperatures[] = {"41000\n", "-2500\n"};
        char path[128];
        char text[32];

        snprintf(path, sizeof(path),
                 "machine/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
        snprintf(text, sizeof(text), "%d\n", 1 - i);
        test_write(path, text);
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/name", 2 + 3 * i);
        test_write(path, "coretemp\n");
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/temp1_label", 2 + 3 * i);
        snprintf(text, sizeof(text), "Package id %d\n", i);
        test_write(path, text);
        snprintf(path, sizeof(path), "machine/sys/class/hwmon/hwmon%d/temp1_input", 2 + 3 * i);
        test_write(path, temperatures[i]);
    }
    test_write("machine/sys/class/hwmon/hwmon0/name", "nvme\n");
    test_write("machine/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    /* No place is known of a zone, so that it says nothing of one of two nodes. */
    test_write("machine/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    test_write("machine/sys/class/thermal/thermal_zone0/temp", "98000\n");
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    cr_expect_eq(answer.temperature_millidegrees_c, -2500);
    cr_expect_eq(telemetry(1).temperature_millidegrees_c, 41000);
    test_write("machine/sys/class/hwmon/hwmon5/temp1_input", "hot\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    close_cpu();
}

Test(plugin_cpu_sensors, amds_sensors_are_found_by_their_node)
{
    open_recorded();
    test_write("machine/sys/class/hwmon/hwmon1/name", "k10temp\n");
    test_write("machine/sys/class/hwmon/hwmon1/device/numa_node", "1\n");
    test_write("machine/sys/class/hwmon/hwmon1/temp1_input", "55125\n");
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_TEMPERATURE, 0);
    cr_expect_eq(telemetry(1).temperature_millidegrees_c, 55125);
    close_cpu();
}

Test(plugin_cpu_sensors, clock_and_memory_are_told)
{
    struct ds_accel_telemetry answer;

    open_recorded();
    test_write("machine/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2100000\n");
    answer = telemetry(1);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_CORE_CLOCK, 0);
    cr_expect_eq(answer.core_clock_khz, 2100000);
    cr_expect_eq(answer.memory_total_bytes, UINT64_C(1) << 36);
    cr_expect_eq(answer.memory_used_bytes, UINT64_C(1) << 34);
    cr_expect_eq(telemetry(0).valid & DS_ACCEL_TELEMETRY_CORE_CLOCK, 0);
    EXPECT_FAIL(table->telemetry_get(instance, 2, &answer, &error), DS_ACCEL_ERR_INVALID,
                "no device 2");
    close_cpu();
}

/* Of the machine that the test runs on: whatever it has, it must be possible. */
Test(plugin_cpu_sensors, this_machine_answers)
{
    struct ds_accel_telemetry answer;

    open_cpu(0, NULL);
    answer = telemetry(0);
    cr_expect_neq(answer.valid & DS_ACCEL_TELEMETRY_UTILIZATION, 0);
    cr_expect_leq(answer.utilization_percent, 100);
    cr_expect_gt(answer.sampled_over_ns, 0);
    close_cpu();
}
