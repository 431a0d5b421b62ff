/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer validate: misuse that only several calls together reveal. */
#include "far.h"
#include "rules.h"

#include <dlpack/dlpack.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- two devices ---------------------------------------------------------------------------- */

Test(core_rules, what_is_of_two_devices_is_refused_unless_it_is_waiting)
{
    ds_accel_device_t *other;
    ds_accel_plugin_device_t *other_handle;
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_plugin_event_t *events[2] = {NULL, NULL};
    ds_accel_plugin_graph_t *graphs[2] = {NULL, NULL};
    ds_accel_plugin_graph_exec_t *exec = NULL;
    uint32_t result = 0;
    double elapsed_ms = 0;

    start();
    cr_assert_eq(ds_accel_device_open(context, 1, &other), DS_ACCEL_OK);
    other_handle = ds_accel_device_handle(other);
    ASSERT_OK(table->stream_create(other_handle, 0, 0, &theirs, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_TIMING, &events[0], &error));
    ASSERT_OK(table->event_create(other_handle, DS_ACCEL_EVENT_TIMING, &events[1], &error));
    EXPECT_FAIL(table->event_record(events[1], stream, &error), DS_ACCEL_ERR_INVALID,
                "event_record: the event is of device 1, the stream of device 0");
    EXPECT_FAIL(table->event_record(events[0], theirs, &error), DS_ACCEL_ERR_INVALID,
                "the event is of device 0, the stream of device 1");
    EXPECT_OK(table->event_record(events[0], stream, &error));
    EXPECT_OK(table->event_record(events[1], theirs, &error));
    EXPECT_OK(table->stream_wait_event(theirs, events[0], &error));
    EXPECT_FAIL(table->event_elapsed_ms(events[0], events[1], &elapsed_ms, &error),
                DS_ACCEL_ERR_INVALID, "the start is of device 0, the end of device 1");
    for (int i = 0; i < 2; i++) {
        ds_accel_plugin_stream_t *of = i == 0 ? stream : theirs;

        ASSERT_OK(table->graph_capture_begin(of, DS_ACCEL_CAPTURE_RELAXED, &error));
        ASSERT_OK(table->graph_capture_end(of, &graphs[i], &error));
    }
    ASSERT_OK(table->graph_instantiate(graphs[0], 0, &exec, &error));
    EXPECT_FAIL(table->graph_launch(exec, theirs, &error), DS_ACCEL_ERR_INVALID,
                "the graph is of device 0, the stream of device 1");
    EXPECT_FAIL(table->graph_exec_update(exec, graphs[1], &result, &error), DS_ACCEL_ERR_INVALID,
                "the executable graph is of device 0, the graph of device 1");
    EXPECT_OK(table->graph_exec_update(exec, graphs[0], &result, &error));
    table->graph_exec_destroy(exec);
    for (int i = 0; i < 2; i++) {
        table->graph_destroy(graphs[i]);
        table->event_destroy(events[i]);
    }
    table->stream_destroy(theirs);
    ds_accel_device_close(other);
    stop();
}

/* ---- host tasks ----------------------------------------------------------------------------- */

static int task_runs;
static ds_accel_stream_t
    *cached_stream; /* its arena has free memory, which needs no call of the plugin */
static void *cached;

static void call_in_task(void *user_data, int32_t status)
{
    char *memory = user_data;
    ds_accel_device_t *opened = NULL;
    ds_accel_stream_t *current = NULL;
    uint64_t bytes = 0;
    void *pointer = NULL;

    cr_expect_eq(status, DS_ACCEL_OK);
    task_runs++;
    EXPECT_FAIL(table->stream_query(stream, &error), DS_ACCEL_ERR_STATE,
                "stream_query: a host task, which may only note accesses, made this call");
    EXPECT_FAIL(table->mem_fill_async(stream, memory, "x", 1, 1, &error), DS_ACCEL_ERR_STATE,
                "a host task");
    cr_expect_eq(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_ERR_STATE,
                 "one that asks no plugin, too");
    EXPECT_HAS(ds_accel_last_error(), "a host task, which may only note accesses");
    cr_expect_eq(ds_accel_mem_alloc(device, NULL, 64, &pointer), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_mem_alloc(device, cached_stream, 64, &pointer), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_mem_free(device, cached_stream, cached), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_device_synchronize(device), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_device_open(context, 0, &opened), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_device_get(context, 0, &opened), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_current_stream(device, &current), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_manual_seed_all(context, 1), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE), DS_ACCEL_OK);
}

Test(core_rules, a_host_task_may_call_nothing_but_note_access)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    uint64_t bytes = 0;
    char *memory;

    start();
    memory = allocate(64);
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &cached_stream));
    ASSERT_OK(ds_accel_mem_alloc(device, cached_stream, 64, &cached));
    EXPECT_OK(table->stream_host_task(stream, call_in_task, memory, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(task_runs, 1);
    EXPECT_OK(ds_accel_memory_allocated(device, &bytes));
    ASSERT_OK(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    EXPECT_OK(table->stream_host_task(stream, call_in_task, memory, &error));
    ASSERT_OK(table->graph_capture_end(stream, &graph, &error));
    ASSERT_OK(table->graph_instantiate(graph, 0, &exec, &error));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(table->graph_launch(exec, stream, &error));
    }
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    cr_expect_eq(task_runs, 3, "with each launch");
    table->graph_exec_destroy(exec);
    table->graph_destroy(graph);
    EXPECT_OK(table->mem_free(handle, memory, &error));
    EXPECT_OK(ds_accel_mem_free(device, cached_stream, cached));
    ds_accel_stream_destroy(cached_stream);
    stop();
}

/* One object of each kind, and the objects that a consumer of DLPack holds. */
static struct {
    ds_accel_stream_t *stream;
    ds_accel_event_t *event;
    ds_accel_graph_t *graph;
    ds_accel_pool_t *pool;
    ds_accel_timer_t *timer;
    ds_accel_rng_t *rng;
    ds_accel_tensor_t *tensors[2];
    DLManagedTensor *exported;
} ends;

static void end_everything(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
    ds_accel_stream_destroy(ends.stream);
    ds_accel_event_destroy(ends.event);
    ds_accel_graph_destroy(ends.graph);
    ds_accel_pool_destroy(ends.pool);
    ds_accel_timer_destroy(ends.timer);
    ds_accel_rng_destroy(ends.rng);
    ds_accel_tensor_put(ends.tensors[0]);
    ds_accel_tensor_put(ends.tensors[1]);
    ends.exported->deleter(ends.exported);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static uint64_t allocated(void)
{
    uint64_t bytes = UINT64_MAX;

    cr_expect_eq(ds_accel_memory_allocated(device, &bytes), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return bytes;
}

Test(core_rules, what_a_host_task_would_end_stays_and_is_ended_later)
{
    static const char *const calls[] = {
        "stream_destroy", "event_destroy",
        "graph_destroy",  "pool_destroy",
        "timer_destroy",  "rng_destroy",
        "tensor_put",     "device_close",
        "destroy",        "tensor_to_dlpack's deleter",
    };
    const int64_t shape = 64;
    uint64_t seed = 0;
    ds_accel_tensor_t *lent = NULL;
    void *managed = NULL;

    start();
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &ends.stream));
    ASSERT_OK(ds_accel_event_create(device, 0, &ends.event));
    ASSERT_OK(ds_accel_graph_create(device, &ends.graph));
    ASSERT_OK(ds_accel_pool_create(device, &ends.pool));
    ASSERT_OK(ds_accel_timer_create(device, &ends.timer));
    ASSERT_OK(ds_accel_rng_create(device, 7, 0, &ends.rng));
    ASSERT_OK(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &ends.tensors[0]));
    ASSERT_OK(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, 0,
                                            &ends.tensors[1]));
    ASSERT_OK(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &lent));
    ASSERT_OK(ds_accel_tensor_to_dlpack(lent, 0, DS_ACCEL_DLPACK_NO_STREAM, &managed));
    ends.exported = managed;
    ds_accel_tensor_put(lent);
    test_log[0] = '\0';
    EXPECT_OK(table->stream_host_task(stream, end_everything, NULL, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        char line[160];

        snprintf(line, sizeof(line),
                 "1 validate: %s: a host task, which may only note accesses, made this call, at ",
                 calls[i]);
        EXPECT_HAS(test_log, line);
    }
    EXPECT_OK(ds_accel_stream_query(ends.stream));
    EXPECT_OK(ds_accel_event_query(ends.event));
    EXPECT_OK(ds_accel_timer_start(ends.timer, ends.stream));
    EXPECT_OK(ds_accel_rng_initial_seed(ends.rng, &seed));
    EXPECT_OK(
        ds_accel_graph_capture_begin(ends.graph, ends.stream, ends.pool, DS_ACCEL_CAPTURE_RELAXED));
    EXPECT_OK(ds_accel_graph_capture_end(ends.graph));
    cr_expect_geq(allocated(), 512);
    cr_expect_geq(pinned(), 256);
    ends.exported->deleter(ends.exported);
    ds_accel_tensor_put(ends.tensors[0]);
    ds_accel_tensor_put(ends.tensors[1]);
    cr_expect_eq(allocated(), 0, "the later calls end them");
    cr_expect_eq(pinned(), 0);
    ds_accel_rng_destroy(ends.rng);
    ds_accel_timer_destroy(ends.timer);
    ds_accel_graph_destroy(ends.graph);
    ds_accel_pool_destroy(ends.pool);
    ds_accel_event_destroy(ends.event);
    ds_accel_stream_destroy(ends.stream);
    test_log[0] = '\0';
    stop();
    EXPECT_HAS_NOT(test_log, "still in use");
}

/* ---- accesses that the program notes --------------------------------------------------------- */

Test(core_rules, an_access_is_to_memory_that_is_there)
{
    ds_accel_stream_t *ours = NULL;
    void *block = NULL;
    void *pinned = NULL;
    char host[64];
    char *raw;

    start();
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &ours), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, ours, 4096, &block), DS_ACCEL_OK);
    raw = allocate(64);
    cr_expect_eq(ds_accel_note_access(device, ours, block, 4096, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_OK);
    cr_expect_eq(ds_accel_note_access(device, ours, raw + 32, 32, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_OK);
    cr_expect_eq(ds_accel_note_access(device, NULL, host, 64, DS_ACCEL_ACCESS_WRITE), DS_ACCEL_OK);
    test_log[0] = '\0';
    EXPECT_STATUS(ds_accel_note_access(device, ours, raw + 32, 33, DS_ACCEL_ACCESS_READ),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "with 33 bytes goes past the end of its allocation");
    EXPECT_HAS(test_log, "goes past the end of its allocation, noted at ");
    EXPECT_STATUS(ds_accel_note_access(device, ours, block, 4097, DS_ACCEL_ACCESS_READ),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "goes past the end of its block");
    EXPECT_STATUS(
        ds_accel_note_access(device, NULL, (char *)block + 65536, 1, DS_ACCEL_ACCESS_WRITE),
        DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "lies in an allocator's memory, but in none of its blocks");
    EXPECT_OK(table->mem_free(handle, raw, &error));
    EXPECT_STATUS(ds_accel_note_access(device, ours, raw, 1, DS_ACCEL_ACCESS_READ),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "was freed, at ");
    EXPECT_OK(ds_accel_mem_free(device, ours, block));
    for (int on_stream = 0; on_stream < 2; on_stream++) {
        EXPECT_STATUS(
            ds_accel_note_access(device, on_stream ? ours : NULL, block, 1, DS_ACCEL_ACCESS_READ),
            DS_ACCEL_ERR_INVALID);
        EXPECT_HAS(ds_accel_last_error(), "lies in a freed block, at ");
    }
    cr_assert_eq(ds_accel_mem_alloc_pinned(device, 64, 0, 0, &pinned), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_note_access(device, NULL, pinned, 64, DS_ACCEL_ACCESS_WRITE),
                 DS_ACCEL_OK);
    EXPECT_OK(ds_accel_mem_free_pinned(device, pinned));
    EXPECT_STATUS(ds_accel_note_access(device, NULL, pinned, 1, DS_ACCEL_ACCESS_WRITE),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "lies in a freed block, at ");
    ds_accel_stream_destroy(ours);
    stop();
}

Test(core_rules, an_access_is_to_memory_of_the_process)
{
    ds_accel_stream_t *ours = NULL;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages;

    start();
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &ours));
    pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(munmap(pages + page, page), 0);
    for (int on_stream = 0; on_stream < 2; on_stream++) {
        ds_accel_stream_t *by = on_stream ? ours : NULL;

        EXPECT_STATUS(ds_accel_note_access(device, by, pages, page, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, by, NULL, 0, DS_ACCEL_ACCESS_READ), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, by, NULL, 8, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_HAS(ds_accel_last_error(), "is not memory of this process");
        EXPECT_STATUS(ds_accel_note_access(device, by, pages, page + 1, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(ds_accel_note_access(device, by, pages + page, 1, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_ERR_INVALID);
    }
    munmap(pages, page);
    ds_accel_stream_destroy(ours);
    stop();
}

/* Forbid process_vm_readv(); returns false if the system has no seccomp filters. */
static bool forbid_cheap_reads(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Containers and services often have such a filter. */
Test(core_rules, an_access_is_to_memory_of_the_process_where_a_filter_forbids_to_ask)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages;

    start();
    pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(munmap(pages + page, page), 0);
    if (forbid_cheap_reads()) {
        EXPECT_STATUS(ds_accel_note_access(device, NULL, pages, page, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, NULL, pages, page + 1, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_ERR_INVALID);
    }
    munmap(pages, page);
    stop();
}

/* Number of write system calls of this process; 0 if the kernel does not count them. */
static unsigned long long written(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    unsigned long long count = 0;
    char line[128];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "syscw: ", strlen("syscw: ")) == 0) {
            count = strtoull(line + strlen("syscw: "), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* The check whether an address is readable uses no file descriptor and makes no write calls. */
Test(core_rules, an_access_to_plain_memory_is_cheap)
{
    static char host[3 * 65536];
    unsigned long long before;

    for (int is_far = 0; is_far < 2; is_far++) {
        if (is_far) {
            start_far();
        } else {
            start();
        }
        before = written();
        for (int i = 0; i < 100; i++) {
            EXPECT_STATUS(
                ds_accel_note_access(device, NULL, host, sizeof(host), DS_ACCEL_ACCESS_READ),
                DS_ACCEL_OK);
        }
        cr_expect_lt(written() - before, 50, "%llu", written() - before);
        stop();
    }
}

Test(core_rules, a_kernel_does_not_use_what_is_only_the_hosts)
{
    ds_accel_stream_t *ours = NULL;
    char host[64];

    start_far();
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &ours), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_note_access(device, NULL, host, 64, DS_ACCEL_ACCESS_WRITE), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_note_access(device, ours, host, 64, DS_ACCEL_ACCESS_WRITE),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "is in no live allocation");
    ds_accel_stream_destroy(ours);
    stop();
}

/* ---- directions of copies -------------------------------------------------------------------- */

Test(core_rules, a_copy_goes_the_way_that_it_says)
{
    static char host[64];
    static char registered[64];
    void *pinned = NULL;
    void *mapped = NULL;
    char *memory;

    start_far();
    memory = allocate(64);
    ASSERT_OK(table->mem_alloc_pinned(handle, 64, 1, 0, &pinned, &error));
    ASSERT_OK(table->mem_alloc_pinned(handle, 64, 1, DS_ACCEL_PINNED_MAPPED, &mapped, &error));
    ASSERT_OK(table->mem_register(handle, registered, 64, 0, &error));
    EXPECT_FAIL(
        table->mem_copy_async(stream, host, memory, 64, DS_ACCEL_COPY_HOST_TO_DEVICE, &error),
        DS_ACCEL_ERR_INVALID, "is in no live allocation");
    EXPECT_FAIL(
        table->mem_copy_async(stream, memory, memory + 32, 8, DS_ACCEL_COPY_HOST_TO_DEVICE, &error),
        DS_ACCEL_ERR_INVALID, "is device memory, but the call expects host memory");
    EXPECT_FAIL(
        table->mem_copy_async(stream, memory, host, 64, DS_ACCEL_COPY_DEVICE_TO_HOST, &error),
        DS_ACCEL_ERR_INVALID, "is device memory, but the call expects host memory");
    EXPECT_FAIL(table->mem_copy(handle, memory, host, 64, DS_ACCEL_COPY_HOST_TO_HOST, &error),
                DS_ACCEL_ERR_INVALID, "is device memory");
    EXPECT_FAIL(
        table->mem_copy_async(stream, memory, pinned, 64, DS_ACCEL_COPY_DEVICE_TO_DEVICE, &error),
        DS_ACCEL_ERR_INVALID, "is host memory, but the call expects device memory");
    EXPECT_FAIL(
        table->mem_copy_async(stream, registered, host, 64, DS_ACCEL_COPY_HOST_TO_DEVICE, &error),
        DS_ACCEL_ERR_INVALID, "is host memory, but the call expects device memory");
    EXPECT_FAIL(table->mem_fill_async(stream, pinned, "x", 1, 64, &error), DS_ACCEL_ERR_INVALID,
                "is host memory, but the call expects device memory");
    EXPECT_FAIL(table->mem_register(handle, memory, 64, 0, &error), DS_ACCEL_ERR_INVALID,
                "is device memory");
    cr_expect_eq(far_queued_count, 0, "nothing of that reached the plugin");
    EXPECT_OK(table->mem_fill_async(stream, mapped, "x", 1, 64, &error));
    EXPECT_OK(
        table->mem_copy_async(stream, memory, pinned, 64, DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    EXPECT_OK(table->mem_copy_async(stream, registered, memory, 64, DS_ACCEL_COPY_DEVICE_TO_HOST,
                                    &error));
    EXPECT_OK(table->mem_copy_async(stream, memory, host, 64, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->mem_copy_async(stream, host, memory, 64, DS_ACCEL_COPY_INFER, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->mem_unregister(handle, registered, &error));
    EXPECT_OK(table->mem_free_pinned(handle, mapped, &error));
    EXPECT_OK(table->mem_free_pinned(handle, pinned, &error));
    EXPECT_OK(table->mem_free(handle, memory, &error));
    stop();
}

Test(core_rules, a_copy_within_a_device_does_not_overlap_itself)
{
    char *memory;

    start();
    memory = allocate(64);
    EXPECT_FAIL(table->mem_copy_peer_async(stream, handle, memory + 8, handle, memory, 16, &error),
                DS_ACCEL_ERR_INVALID, "destination and source overlap within 16 bytes");
    EXPECT_FAIL(table->mem_copy_peer_async(stream, handle, memory, handle, memory, 16, &error),
                DS_ACCEL_ERR_INVALID, "destination and source overlap within 16 bytes");
    EXPECT_OK(table->mem_copy_peer_async(stream, handle, memory + 16, handle, memory, 16, &error));
    EXPECT_OK(table->stream_synchronize(stream, UINT64_MAX, &error));
    EXPECT_OK(table->mem_free(handle, memory, &error));
    stop();
}

/* ---- random numbers of the vendor's generator ------------------------------------------------ */

Test(core_rules, vendors_numbers_stay_within_their_block)
{
    void *blocks[2] = {NULL, NULL};

    start_far();
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ds_accel_mem_alloc(device, NULL, 512, &blocks[i]), DS_ACCEL_OK);
    }
    EXPECT_OK(table->rng_uniform(stream, blocks[0], 128, DS_ACCEL_DTYPE_FLOAT32, 0, 1, &error));
    EXPECT_FAIL(table->rng_uniform(stream, blocks[0], 129, DS_ACCEL_DTYPE_FLOAT32, 0, 1, &error),
                DS_ACCEL_ERR_INVALID, "with 516 bytes goes past the end of its block");
    EXPECT_FAIL(table->rng_uniform(stream, blocks[0], 65, DS_ACCEL_DTYPE_FLOAT64, 0, 1, &error),
                DS_ACCEL_ERR_INVALID, "with 520 bytes goes past the end of its block");
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(ds_accel_mem_free(device, NULL, blocks[i]), DS_ACCEL_OK);
    }
    stop();
}
