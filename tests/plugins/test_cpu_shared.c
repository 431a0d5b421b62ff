/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: threads that register or map the same memory, and registered pages on which there
   is other memory of the program. */
#include "cpu_host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONG_ENOUGH_S 60 /* a test that runs longer is deadlocked */
#define PAGE 4096u

/* Returns a value of /proc/self/status in KiB, for example "VmSize:"; -1 if it is not reported. */
static long process_kib(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    long kib = -1;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            kib = atol(line + strlen(name));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

/* ---- registered ranges ---------------------------------------------------------------------- */

/* The test registers the whole page that contains a buffer; the heap has other memory on it. */
Test(plugin_cpu_shared, memory_is_allocated_between_registered_buffers)
{
    enum {
        COUNT = 200
    };
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    char *buffers[COUNT];
    uintptr_t pages[COUNT];
    int registered[COUNT];
    void *memory[COUNT];

    open_cpu(1, NULL);
    for (size_t i = 0; i < COUNT; i++) {
        buffers[i] = malloc(1000);
        pages[i] = (uintptr_t)buffers[i] & ~(uintptr_t)(PAGE - 1);
        registered[i] = table->mem_register(handle, (void *)pages[i], PAGE, 0, &error) ==
                        DS_ACCEL_OK;
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        free(buffers[i]); /* the page stays registered; it also contains other buffers */
        buffers[i] = NULL;
    }
    for (size_t i = 0; i < COUNT; i++) {
        ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &memory[i], &error));
        EXPECT_OK(table->mem_pointer_info(instance, handle, memory[i], &info, &error));
        cr_expect_eq(info.kind, DS_ACCEL_POINTER_DEVICE);
        cr_expect_eq(info.base_address, (uintptr_t)memory[i]);
    }
    EXPECT_FAIL(table->mem_register(handle, memory[0], 100, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    for (size_t i = 0; i < COUNT; i++) {
        EXPECT_OK(table->mem_free(handle, memory[i], &error));
        if (registered[i]) {
            EXPECT_OK(table->mem_pointer_info(instance, handle, (void *)pages[i], &info, &error));
            cr_expect_eq(info.kind, DS_ACCEL_POINTER_PINNED);
            EXPECT_OK(table->mem_unregister(handle, (void *)pages[i], &error));
        }
        free(buffers[i]);
    }
    close_cpu();
}

/* Returns non-zero if the page is locked, which makes madvise(MADV_DONTNEED) fail. */
static int is_locked(char *page)
{
    int is_dropped = madvise(page, PAGE, MADV_DONTNEED) == 0;

    page[0] = 1;
    return !is_dropped;
}

#define REGISTRATIONS 10000

static char *contested;
static atomic_int unlocked_count;

/* Registers the range again and again, when no other thread has registered it, and counts how often
   the page was not locked after the registration. */
static void *register_often(void *data)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    (void)data;
    for (int done = 0; done < REGISTRATIONS;) {
        if (table->mem_register(handle, contested, PAGE, 0, &ignored) != DS_ACCEL_OK) {
            continue;
        }
        done++;
        if (!is_locked(contested)) {
            atomic_fetch_add(&unlocked_count, 1);
        }
        cr_expect_eq(table->mem_unregister(handle, contested, &ignored), DS_ACCEL_OK);
    }
    return NULL;
}

Test(plugin_cpu_shared, a_range_is_locked_while_a_thread_has_it_registered,
     .timeout = LONG_ENOUGH_S)
{
    pthread_t threads[4];

    open_cpu(1, NULL);
    contested = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(contested, MAP_FAILED);
    contested[0] = 1;
    ASSERT_OK(table->mem_register(handle, contested, PAGE, 0, &error));
    if (!is_locked(contested)) {
        cr_skip_test("mlock() does nothing here");
    }
    EXPECT_OK(table->mem_unregister(handle, contested, &error));
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, register_often, NULL), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    cr_expect_eq(atomic_load(&unlocked_count), 0);
    close_cpu();
}

/* ---- pages of two ranges -------------------------------------------------------------------- */

static pthread_barrier_t turn;

/* Registers one half of the page, while another thread registers the other half, and unregisters
   it at about the same time as the other thread. */
static void *share_page(void *data)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    char *half = contested + (uintptr_t)data * (PAGE / 2);

    for (int i = 0; i < 40000; i++) {
        cr_expect_eq(table->mem_register(handle, half, PAGE / 2, 0, &ignored), DS_ACCEL_OK);
        pthread_barrier_wait(&turn);
        cr_expect_eq(table->mem_unregister(handle, half, &ignored), DS_ACCEL_OK);
        pthread_barrier_wait(&turn);
        if (data == NULL && is_locked(contested)) {
            atomic_fetch_add(&unlocked_count, 1);
        }
        pthread_barrier_wait(&turn);
    }
    return NULL;
}

Test(plugin_cpu_shared, the_last_of_two_ranges_unlocks_their_page, .timeout = LONG_ENOUGH_S)
{
    pthread_t threads[2];

    open_cpu(1, NULL);
    contested = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(contested, MAP_FAILED);
    contested[0] = 1;
    ASSERT_OK(table->mem_register(handle, contested, PAGE, 0, &error));
    if (!is_locked(contested)) {
        cr_skip_test("mlock() does nothing here");
    }
    EXPECT_OK(table->mem_unregister(handle, contested, &error));
    pthread_barrier_init(&turn, NULL, 2);
    for (uintptr_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, share_page, (void *)i), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&turn);
    cr_expect_eq(atomic_load(&unlocked_count), 0);
    close_cpu();
}

/* ---- alignment ------------------------------------------------------------------------------ */

Test(plugin_cpu_shared, an_alignment_costs_no_memory)
{
    const uint64_t align = UINT64_C(256) << 20;
    void *memory[4];
    long before;

    open_cpu(1, NULL);
    before = process_kib("VmSize:");
    for (size_t i = 0; i < 4; i++) {
        ASSERT_OK(table->mem_alloc(handle, 100, align, 0, &memory[i], &error));
        cr_expect_eq((uintptr_t)memory[i] % align, 0);
        memset(memory[i], 1, 100);
    }
    cr_expect_lt(process_kib("VmSize:") - before, (long)(align >> 10));
    for (size_t i = 0; i < 4; i++) {
        EXPECT_OK(table->mem_free(handle, memory[i], &error));
    }
    cr_expect_lt(process_kib("VmSize:") - before, 64);
    close_cpu();
}

/* ---- addresses ------------------------------------------------------------------------------ */

static char *addresses;
static ds_accel_plugin_vmem_t *physical;
static atomic_int is_over;

static void *map_often(void *data)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    const unsigned number = (unsigned)(uintptr_t)data;

    for (unsigned i = 0; i < 60; i++) {
        switch ((i + number) % 4) {
        case 0:
            table->vmem_map(handle, addresses, PAGE, physical, 0, &ignored);
            break;
        case 1:
            table->vmem_set_access(handle, addresses, PAGE, DS_ACCEL_VMEM_ACCESS_NONE, &ignored);
            break;
        case 2:
            table->vmem_unmap(handle, addresses, PAGE, &ignored);
            break;
        default:
            table->vmem_release(handle, addresses, PAGE, &ignored);
            break;
        }
    }
    return NULL;
}

/* Maps anonymous memory, if possible at the tested addresses, as soon as these are released, and
   counts changes of this memory by other threads. */
static void *use_fresh_pages(void *data)
{
    int *wrong = data;

    while (!atomic_load(&is_over)) {
        unsigned char *page =
            mmap(addresses, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED) {
            continue;
        }
        for (int i = 0; i < 20; i++) {
            memset(page, 0x5a, PAGE); /* faults if a late vmem_set_access() changed this page */
            *wrong += page[0] != 0x5a || page[PAGE - 1] != 0x5a;
        }
        munmap(page, PAGE);
    }
    return NULL;
}

/* No call changes addresses after their release, in whatever order the threads call. */
Test(plugin_cpu_shared, threads_map_unmap_and_release_the_same_addresses, .timeout = LONG_ENOUGH_S)
{
    pthread_t threads[3];
    int wrong = 0;

    open_cpu(1, "true");
    ASSERT_OK(table->vmem_create(handle, PAGE, 0, &physical, &error));
    for (int round = 0; round < 1000; round++) {
        ASSERT_OK(table->vmem_reserve(handle, PAGE, 0, NULL, 0, (void **)&addresses, &error));
        atomic_store(&is_over, 0);
        cr_assert_eq(pthread_create(&threads[2], NULL, use_fresh_pages, &wrong), 0);
        for (uintptr_t i = 0; i < 2; i++) {
            cr_assert_eq(pthread_create(&threads[i], NULL, map_often, (void *)i), 0);
        }
        for (size_t i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
        atomic_store(&is_over, 1);
        pthread_join(threads[2], NULL);
        table->vmem_unmap(handle, addresses, PAGE, &error);
        table->vmem_release(handle, addresses, PAGE, &error);
    }
    cr_expect_eq(wrong, 0);
    table->vmem_destroy(physical);
    close_cpu();
}

static void *unmap(void *data)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    *(int32_t *)data = table->vmem_unmap(handle, addresses, PAGE, &ignored);
    return NULL;
}

static void hold_work(void *data, int32_t status)
{
    (void)status;
    while (!atomic_load((atomic_int *)data)) {
        usleep(1000);
    }
}

/* While vmem_unmap() waits for queued work, the addresses remain mapped. */
Test(plugin_cpu_shared, addresses_are_mapped_until_the_unmapping_is_done, .timeout = LONG_ENOUGH_S)
{
    static atomic_int is_free;
    ds_accel_plugin_stream_t *stream = NULL;
    pthread_t thread;
    int32_t status = 1;

    open_cpu(1, "true");
    ASSERT_OK(table->vmem_create(handle, PAGE, 0, &physical, &error));
    ASSERT_OK(table->vmem_reserve(handle, PAGE, 0, NULL, 0, (void **)&addresses, &error));
    ASSERT_OK(table->vmem_map(handle, addresses, PAGE, physical, 0, &error));
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    ASSERT_OK(table->stream_host_task(stream, hold_work, &is_free, &error));
    cr_assert_eq(pthread_create(&thread, NULL, unmap, &status), 0);
    usleep(50000); /* The thread probably waits for the task now. */
    EXPECT_FAIL(table->vmem_map(handle, addresses, PAGE, physical, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_FAIL(table->vmem_release(handle, addresses, PAGE, &error), DS_ACCEL_ERR_BUSY,
                "still mapped");
    EXPECT_OK(
        table->vmem_set_access(handle, addresses, PAGE, DS_ACCEL_VMEM_ACCESS_READ_WRITE, &error));
    addresses[0] = 1;
    atomic_store(&is_free, 1);
    pthread_join(thread, NULL);
    cr_expect_eq(status, DS_ACCEL_OK);
    EXPECT_OK(table->vmem_release(handle, addresses, PAGE, &error));
    table->vmem_destroy(physical);
    table->stream_destroy(stream);
    close_cpu();
}

static char *_Atomic reserved;

static void *map_where_reserved(void *data)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};

    (void)data;
    while (!atomic_load(&is_over)) {
        char *address = atomic_load(&reserved);

        if (address != NULL &&
            table->vmem_map(handle, address, PAGE, physical, 0, &ignored) == DS_ACCEL_OK) {
            table->vmem_unmap(handle, address, PAGE, &ignored);
        }
    }
    return NULL;
}

/* A thread maps memory of device 0 at addresses reserved by device 1, while device 1 is closed. */
Test(plugin_cpu_shared, a_device_is_closed_while_a_thread_maps_in_its_addresses,
     .timeout = LONG_ENOUGH_S)
{
    pthread_t thread;

    open_cpu(2, NULL);
    ASSERT_OK(table->vmem_create(handle, PAGE, 0, &physical, &error));
    cr_assert_eq(pthread_create(&thread, NULL, map_where_reserved, NULL), 0);
    for (int i = 0; i < 5000; i++) {
        ds_accel_plugin_device_t *second = NULL;
        void *address = NULL;

        ASSERT_OK(table->device_open(instance, 1, &second, &error));
        ASSERT_OK(table->vmem_reserve(second, PAGE, 0, NULL, 0, &address, &error));
        atomic_store(&reserved, address);
        for (volatile int spin = 0; spin < i % 50 * 100; spin++) {
        }
        table->device_close(second);
        atomic_store(&reserved, NULL);
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    table->vmem_destroy(physical);
    close_cpu();
}

/* ---- registered addresses ------------------------------------------------------------------- */

/* A program may register reserved addresses that it made accessible itself, with mprotect(). */
Test(plugin_cpu_shared, registered_addresses_are_neither_mapped_nor_released)
{
    open_cpu(1, NULL);
    ASSERT_OK(table->vmem_create(handle, PAGE, 0, &physical, &error));
    ASSERT_OK(table->vmem_reserve(handle, PAGE, 0, NULL, 0, (void **)&addresses, &error));
    cr_assert_eq(mprotect(addresses, PAGE, PROT_READ | PROT_WRITE), 0);
    ASSERT_OK(table->mem_register(handle, addresses, PAGE, 0, &error));
    EXPECT_FAIL(table->vmem_map(handle, addresses, PAGE, physical, 0, &error), DS_ACCEL_ERR_INVALID,
                "is known already");
    EXPECT_FAIL(table->vmem_release(handle, addresses, PAGE, &error), DS_ACCEL_ERR_BUSY,
                "still mapped");
    EXPECT_OK(table->mem_unregister(handle, addresses, &error));
    EXPECT_OK(table->vmem_release(handle, addresses, PAGE, &error));
    table->vmem_destroy(physical);
    close_cpu();
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* A pointer that can't be freed is rejected at once, without a wait for queued work. */
Test(plugin_cpu_shared, a_wrong_pointer_is_rejected_without_a_wait, .timeout = LONG_ENOUGH_S)
{
    static atomic_int is_free;
    ds_accel_plugin_stream_t *stream = NULL;
    void *memory = NULL;

    open_cpu(1, "true");
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &memory, &error));
    ASSERT_OK(table->stream_create(handle, 0, 0, &stream, &error));
    ASSERT_OK(table->stream_host_task(stream, hold_work, &is_free, &error));
    EXPECT_FAIL(table->mem_free(handle, &stream, &error), DS_ACCEL_ERR_INVALID, "no live memory");
    EXPECT_FAIL(table->mem_free_pinned(handle, memory, &error), DS_ACCEL_ERR_INVALID,
                "mem_free() releases");
    EXPECT_FAIL(table->vmem_unmap(handle, (void *)(uintptr_t)PAGE, PAGE, &error),
                DS_ACCEL_ERR_INVALID, "not whole mappings");
    atomic_store(&is_free, 1);
    EXPECT_OK(table->mem_free(handle, memory, &error));
    table->stream_destroy(stream);
    close_cpu();
}
