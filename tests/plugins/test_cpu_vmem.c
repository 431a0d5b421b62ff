/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: virtual memory, with separate calls that reserve, map and set the access. */
#include "cpu_host.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
    table->vmem_destroy(vmem); /* the mappings still refer to the memory */
    EXPECT_OK(table->vmem_unmap(handle, first + page, 4 * page, &error));
    cr_expect_str_eq(second, "shared");
    EXPECT_OK(table->vmem_unmap(handle, second, 2 * page, &error));
    EXPECT_OK(table->vmem_release(handle, first, 8 * page, &error));
    EXPECT_OK(table->vmem_release(handle, second, 8 * page, &error));
    table->vmem_destroy(NULL);
    close_cpu();
}

/* A segment grows at its end and shrinks again, as in the library's caching allocator. */
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

/* Returns true if an access to the byte kills a child process. */
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
    EXPECT_FAIL(table->vmem_create(handle, 0, 0, &vmem, &error), DS_ACCEL_ERR_INVALID,
                "the size is 0");
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
                DS_ACCEL_ERR_INVALID, "is known already");
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
    close_cpu(); /* A mapping and a reservation remain, which closing the device releases. */
}

/* Closing a device unmaps memory of other devices from its reservations, which frees the memory. */
Test(plugin_cpu_memory, mappings_go_with_the_reservation_of_a_closed_device)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_plugin_device_t *other = NULL;
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    uint64_t page;

    open_cpu(2, NULL);
    page = granularity();
    ASSERT_OK(table->device_open(instance, 1, &other, &error));
    ASSERT_OK(table->vmem_reserve(other, 2 * page, 0, NULL, 0, &address, &error));
    vmem = create(page);
    ASSERT_OK(table->vmem_map(handle, (char *)address + page, page, vmem, 0, &error));
    table->vmem_destroy(vmem);
    cr_expect_eq(pointer_info((char *)address + page).device_index, 0);
    table->device_close(other);
    cr_expect_eq(pointer_info((char *)address + page).kind, DS_ACCEL_POINTER_UNKNOWN);
    EXPECT_OK(table->mem_stats(handle, &stats, &error));
    cr_expect(stats.alloc_count == 1 && stats.free_count == 1);
    EXPECT_FAIL(table->vmem_unmap(handle, (char *)address + page, page, &error),
                DS_ACCEL_ERR_INVALID, "not whole mappings");
    close_cpu();
}

static int count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    cr_assert_not_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
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

/* Queued work writes to the range: without the wait, the write would kill this process. */
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
