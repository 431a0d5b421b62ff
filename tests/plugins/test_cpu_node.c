/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin: memory is allocated on the NUMA node of its device. */
#include "cpu_host.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

TestSuite(plugin_cpu_memory, .timeout = 120);

/* ---- placement of memory -------------------------------------------------------------------- */

#define MPOL_PREFERRED 1
#define MPOL_F_NODE 1
#define MPOL_F_ADDR 2

/* Returns true if the policy of the pages at an address prefers node 0. */
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

/* Checks that memory prefers node 0, and is on node 0 after another thread has accessed it first:
   the preference is a property of the memory, not of the thread. */
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

    /* More than the total, which is possible because the two values are read at different times. */
    machine_available_bytes = UINT64_C(1) << 37;
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
