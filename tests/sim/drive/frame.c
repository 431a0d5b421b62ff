/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Decisions of the frame of the vendors' plugins before it calls the runtime, and the order of its
 * calls: the owner of memory, work in flight, recorded captures, counters and limits.
 *
 * A call that the frame itself rejects has no vendor code. A step is left out if the plugin has no
 * such slot.
 */
#include "drive.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB 1024u

/* Checks that the frame rejects the call without calling the runtime. */
#define REFUSED(run, status, what, slot, ...) \
    drive_want(run, ASK(run, slot, __VA_ARGS__) == (status) && (run)->error.vendor_code == 0, what)

/* A task that keeps a stream busy until it is released, or for a limited time. */
struct hold {
    atomic_int is_over;
    int limit_ms;
};

static void hold(void *user_data, int32_t status)
{
    struct hold *held = user_data;

    (void)status;
    for (int i = 0; i < held->limit_ms && !atomic_load(&held->is_over); i++) {
        usleep(1000);
    }
}

static void count(void *user_data, int32_t status)
{
    (void)status;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void ask_addresses(struct run *run, ds_accel_plugin_device_t *peer)
{
    char *memory = NULL;
    char *theirs = NULL;

    if (CALL(run, mem_alloc, run->device, 64 * KIB, 0, 0, (void **)&memory) < 0) {
        return;
    }
    REFUSED(run, DS_ACCEL_ERR_INVALID, "memory freed from its middle", mem_free, run->device,
            memory + 4 * KIB);
    if (peer != NULL && CALL(run, mem_alloc, peer, 64 * KIB, 0, 0, (void **)&theirs) >= 0) {
        REFUSED(run, DS_ACCEL_ERR_INVALID, "memory of another device freed", mem_free, run->device,
                theirs);
        RELEASE(run, mem_free, peer, theirs);
    }
    RELEASE(run, mem_free, run->device, memory);
}

static void ask_pinned(struct run *run)
{
    const uint64_t align = UINT64_C(64) << 20;
    static unsigned char page[64 * KIB];
    char *pinned = NULL;
    void *address = NULL;
    void *inside = NULL;

    if (CALL(run, mem_alloc_pinned, run->device, 64 * KIB, align, 0, (void **)&pinned) >= 0) {
        drive_want(run, (uintptr_t)pinned % align == 0, "the alignment of pinned memory");
        RELEASE(run, mem_free_pinned, run->device, pinned);
    }
    if (HAS(run, mem_device_pointer) &&
        ASK(run, mem_alloc_pinned, run->device, 64 * KIB, 0, DS_ACCEL_PINNED_MAPPED,
            (void **)&pinned) == DS_ACCEL_OK) {
        if (CALL(run, mem_device_pointer, run->device, pinned, &address) >= 0 &&
            CALL(run, mem_device_pointer, run->device, pinned + 100, &inside) >= 0) {
            drive_want(run, (char *)inside == (char *)address + 100, "an address inside");
        }
        RELEASE(run, mem_free_pinned, run->device, pinned);
    }
    if (!HAS(run, mem_device_pointer)) { /* only if no memory can be mapped */
        REFUSED(run, DS_ACCEL_ERR_UNSUPPORTED, "pinned memory of a kind that there is not",
                mem_alloc_pinned, run->device, 64 * KIB, 0, DS_ACCEL_PINNED_MAPPED, &inside);
    }
    /* A registration that fails (SIM_FAIL) leaves nothing registered: a second attempt succeeds. */
    if (HAS(run, mem_register)) {
        if (ASK(run, mem_register, run->device, page, sizeof(page), 0) < 0) {
            CALL(run, mem_register, run->device, page, sizeof(page), 0);
        }
        RELEASE(run, mem_unregister, run->device, page);
    }
}

static uint64_t peak_of_reserved(struct run *run)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};

    CALL(run, mem_stats, run->device, &stats);
    return stats.reserved_peak_bytes;
}

static void ask_figures(struct run *run)
{
    struct ds_accel_memory_stats stats = {.struct_size = sizeof(stats)};
    void *memory = NULL;
    uint64_t peak;

    CALL(run, mem_stats, run->device, &stats);
    CALL(run, mem_set_limit, run->device, stats.allocated_bytes + 64 * KIB);
    if (CALL(run, mem_alloc, run->device, 64 * KIB, 0, 0, &memory) >= 0) { /* the memory's last
                                                                            * byte */
        REFUSED(run, DS_ACCEL_ERR_NO_MEMORY, "one byte past the limit", mem_alloc, run->device, 1,
                0, 0, &(void *){NULL});
        RELEASE(run, mem_free, run->device, memory);
    }
    CALL(run, mem_set_limit, run->device, 0);
    peak = peak_of_reserved(run);
    CALL(run, mem_reset_peaks, run->device, DS_ACCEL_PEAK_ALLOCATED);
    drive_want(run, peak > 0 && peak_of_reserved(run) == peak, "one peak is reset, not the other");
    CALL(run, mem_reset_peaks, run->device, DS_ACCEL_PEAK_RESERVED);
    drive_want(run, peak_of_reserved(run) < peak, "the other peak is reset");
}

/* The plugin waits for queued work on memory before it frees the memory. */
static void free_used(struct run *run)
{
    static unsigned char bytes[64 * KIB];
    struct hold held = {.limit_ms = 200}; /* not released: the task runs until its time limit */
    void *memory = NULL;

    if (!HAS(run, stream_host_task) ||
        CALL(run, mem_alloc, run->device, sizeof(bytes), 0, 0, &memory) < 0) {
        return;
    }
    if (CALL(run, stream_host_task, run->one, hold, &held) >= 0 &&
        CALL(run, mem_fill_async, run->one, memory, "a", 1, sizeof(bytes)) >= 0) {
        RELEASE(run, mem_free, run->device, memory);
        drive_want(run, ASK(run, stream_query, run->one) == DS_ACCEL_OK, "memory freed under work");
    }
    atomic_store(&held.is_over, 1);
    CALL(run, stream_synchronize, run->one, UINT64_MAX);
}

/* Memory allocated on a stream is freed in stream order, without a wait. */
static void free_in_order(struct run *run)
{
    struct hold held = {.limit_ms = 20000};
    void *memory = NULL;

    if (!HAS(run, mem_alloc_async) || !HAS(run, stream_host_task) ||
        ASK(run, mem_alloc_async, run->one, 64 * KIB, 0, NULL, 0, &memory) < 0) {
        return;
    }
    if (CALL(run, stream_host_task, run->one, hold, &held) >= 0) {
        CALL(run, mem_free_async, run->one, memory, NULL, 0);
        drive_want(run, ASK(run, stream_query, run->one) == DS_ACCEL_NOT_READY,
                   "a free in the stream's order waits");
    }
    atomic_store(&held.is_over, 1);
    CALL(run, stream_synchronize, run->one, UINT64_MAX);
}

/* Fills memory with an invalid pattern, size or alignment, and with a pattern that no runtime
 * supports. */
static void fill_oddly(struct run *run)
{
    static const char pattern[] = "abcd";
    const size_t sizes[] = {4, 4096, 4100, 20000};
    unsigned char *got = calloc(1, 32 * KIB);
    char *memory = NULL;

    if (got == NULL || CALL(run, mem_alloc, run->device, 32 * KIB, 0, 0, (void **)&memory) < 0) {
        free(got);
        return;
    }
    for (unsigned i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t width = i % 3 == 0 ? 4 : 2;
        size_t size = sizes[i / 3];
        char *place = memory + (i % 3 == 2 ? 1 : i % 3 == 1 ? 2 : 1);
        int is_right = 1;

        if (CALL(run, mem_fill_async, run->one, place, pattern, width, size) < 0 ||
            CALL(run, stream_synchronize, run->one, UINT64_MAX) < 0 ||
            CALL(run, mem_copy, run->device, got, place, size, DS_ACCEL_COPY_DEVICE_TO_HOST) < 0) {
            break;
        }
        for (size_t k = 0; k < size; k++) {
            is_right = is_right && got[k] == (unsigned char)pattern[k % width];
        }
        drive_want(run, is_right, "a fill at an odd place");
    }
    RELEASE(run, mem_free, run->device, memory);
    free(got);
}

static void copy_inferred(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char byte = 0;
    void *memory = NULL;

    if (CALL(run, backend_info, run->instance, &info) < 0 ||
        (info.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0 ||
        CALL(run, mem_alloc, run->device, 64, 0, 0, &memory) < 0) {
        return;
    }
    REFUSED(run, DS_ACCEL_ERR_INVALID, "a kind that cannot be inferred", mem_copy, run->device,
            memory, &byte, 1, DS_ACCEL_COPY_INFER);
    RELEASE(run, mem_free, run->device, memory);
}

/* ---- virtual memory and sharing -------------------------------------------------------------- */

static void ask_mappings(struct run *run)
{
    ds_accel_plugin_vmem_t *vmem = NULL;
    uint64_t size = 0;
    uint64_t recommended = 0;
    char *address = NULL;

    if (!HAS(run, vmem_map) ||
        ASK(run, vmem_granularity, run->device, 0, &size, &recommended) < 0 ||
        CALL(run, vmem_reserve, run->device, 4 * size, 0, NULL, 0, (void **)&address) < 0) {
        return;
    }
    if (CALL(run, vmem_create, run->device, 2 * size, 0, &vmem) >= 0) {
        REFUSED(run, DS_ACCEL_ERR_INVALID, "more than the memory has behind an offset", vmem_map,
                run->device, address, 2 * size, vmem, size);
        if (CALL(run, vmem_map, run->device, address + 2 * size, 2 * size, vmem, 0) >= 0) {
            REFUSED(run, DS_ACCEL_ERR_INVALID, "a part of a mapping", vmem_unmap, run->device,
                    address + 2 * size, size);
            REFUSED(run, DS_ACCEL_ERR_BUSY, "a range whose end is mapped", vmem_release,
                    run->device, address, 4 * size);
            RELEASE(run, vmem_unmap, run->device, address + 2 * size, 2 * size);
        }
    }
    DROP(run, vmem_destroy, vmem);
    RELEASE(run, vmem_release, run->device, address, 4 * size);
}

static void ask_shares(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char handle[1024] = {0};
    uint64_t offset = 0;
    int32_t fd = -1;
    char *memory = NULL;
    void *opened = NULL;

    if (CALL(run, backend_info, run->instance, &info) < 0 ||
        CALL(run, mem_alloc, run->device, 64 * KIB, 0, 0, (void **)&memory) < 0) {
        return;
    }
    if (HAS(run, dmabuf_export)) {
        REFUSED(run, DS_ACCEL_ERR_INVALID, "a dma-buf past the end", dmabuf_export, run->device,
                memory + 4 * KIB, 64 * KIB, 0, &fd, &offset);
        /* Only whole pages can be exported: part of a page would export its neighbours too. */
        REFUSED(run, DS_ACCEL_ERR_UNSUPPORTED, "a dma-buf from within a page", dmabuf_export,
                run->device, memory + 512, 4 * KIB, 0, &fd, &offset);
        REFUSED(run, DS_ACCEL_ERR_UNSUPPORTED, "a dma-buf up to within a page", dmabuf_export,
                run->device, memory + 4 * KIB, 4 * KIB + 512, 0, &fd, &offset);
        drive_want(run, fd == -1, "a dma-buf that is refused has no descriptor");
        if (CALL(run, dmabuf_export, run->device, memory + 4 * KIB, 8 * KIB, 0, &fd, &offset) >=
            0) {
            drive_want(run, fd >= 0 && offset == 0,
                       "a dma-buf is of the bytes that were asked for");
            close(fd);
        }
    }
    if (HAS(run, ipc_memory_export) && info.memory_handle_bytes > 0 &&
        CALL(run, ipc_memory_export, run->device, memory, handle, info.memory_handle_bytes) >= 0) {
        unsigned char broken[1024];

        memcpy(broken, handle, sizeof(broken));
        memcpy(broken + 16, broken + 8, 8); /* the size is stored at this offset */
        REFUSED(run, DS_ACCEL_ERR_INVALID, "a handle of no byte", ipc_memory_open, run->device,
                broken, info.memory_handle_bytes, 0, &opened);
        CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
    }
    if (HAS(run, ipc_event_export) && info.event_handle_bytes > 0) {
        REFUSED(run, DS_ACCEL_ERR_INVALID, "an event of this process alone", ipc_event_export,
                run->start, handle, info.event_handle_bytes);
    }
    RELEASE(run, mem_free, run->device, memory);
}

/* ---- devices, events, handles ---------------------------------------------------------------- */

static void ask_handles(struct run *run)
{
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_device_t *again = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;
    void *wrapped = NULL;

    if (HAS(run, device_open_native)) {
        REFUSED(run, DS_ACCEL_ERR_BUSY, "another context of an open device", device_open_native,
                run->instance, 0, 16, &again);
    }
    if (CALL(run, event_create, run->device, 0, &event) < 0) {
        return;
    }
    if (ASK(run, native_get, run->device, DS_ACCEL_NATIVE_EVENT, event, &native, &offset) >= 0 &&
        ASK(run, native_wrap, run->device, DS_ACCEL_NATIVE_EVENT, native, &wrapped) >= 0) {
        DROP(run, event_destroy, wrapped);
        CALL(run, event_record, event, run->one); /* the program's own event still exists */
        CALL(run, event_synchronize, event, UINT64_MAX);
    }
    DROP(run, event_destroy, event);
}

/* ---- captures ------------------------------------------------------------------------------- */

/* Returns a graph of one task that counts; NULL on failure. */
static ds_accel_plugin_graph_t *capture_task(struct run *run, atomic_int *counter)
{
    ds_accel_plugin_graph_t *graph = NULL;

    if (CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_RELAXED) < 0) {
        return NULL;
    }
    CALL(run, stream_host_task, run->two, count, counter);
    CALL(run, graph_capture_end, run->two, &graph);
    return graph;
}

/*
 * Overwrites freed memory with other objects of any small size, and with tasks that use another
 * counter. The tasks are only queued: a runtime may run host tasks one at a time, so that they
 * would wait for a task that is held.
 */
static void reuse_heap(struct run *run, atomic_int *counter)
{
    enum {
        SIZES = 32,
        EACH = 8
    };
    void *others[SIZES * EACH];

    for (size_t i = 0; i < SIZES * EACH; i++) {
        size_t size = (i / EACH + 1) * 16 - 8;

        others[i] = malloc(size);
        if (others[i] != NULL) {
            memset(others[i], 0xa5, size);
        }
    }
    for (size_t i = 0; i < SIZES * EACH; i++) {
        free(others[i]);
    }
    for (int i = 0; i < 32; i++) {
        CALL(run, stream_host_task, run->two, count, counter);
    }
}

static void launch_destroyed(struct run *run)
{
    struct hold held = {.limit_ms = 20000};
    atomic_int counter = 0;
    atomic_int others = 0;
    ds_accel_plugin_graph_t *graph = capture_task(run, &counter);
    ds_accel_plugin_graph_exec_t *exec = NULL;

    if (graph == NULL || CALL(run, graph_instantiate, graph, 0, &exec) < 0) {
        DROP(run, graph_destroy, graph);
        return;
    }
    CALL(run, stream_host_task, run->one, hold, &held);
    CALL(run, graph_launch, exec, run->one);
    DROP(run, graph_exec_destroy, exec);
    DROP(run, graph_destroy, graph);
    reuse_heap(run, &others);
    atomic_store(&held.is_over, 1);
    CALL(run, stream_synchronize, run->one, UINT64_MAX);
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
    drive_want(run, counter == 1 && others == 32, "a task of a launch whose graph is destroyed");
}

static void launch_updated(struct run *run)
{
    atomic_int counters[2] = {0, 0};
    atomic_int others = 0;
    uint32_t result = 0;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graphs[2];

    for (int i = 0; i < 2; i++) {
        graphs[i] = capture_task(run, &counters[i]);
    }
    if (HAS(run, graph_exec_update) && graphs[0] != NULL && graphs[1] != NULL &&
        CALL(run, graph_instantiate, graphs[0], 0, &exec) >= 0 &&
        CALL(run, graph_exec_update, exec, graphs[1], &result) >= 0 &&
        result == DS_ACCEL_GRAPH_UPDATED) {
        DROP(run, graph_destroy, graphs[0]);
        DROP(run, graph_destroy, graphs[1]);
        graphs[0] = graphs[1] = NULL;
        reuse_heap(run, &others);
        CALL(run, graph_launch, exec, run->one);
        CALL(run, stream_synchronize, run->one, UINT64_MAX);
        CALL(run, stream_synchronize, run->two, UINT64_MAX);
        drive_want(run, counters[0] == 0 && counters[1] == 1 && others == 32,
                   "the task of the graph that an instance was updated to");
    }
    DROP(run, graph_exec_destroy, exec);
    DROP(run, graph_destroy, graphs[0]);
    DROP(run, graph_destroy, graphs[1]);
}

static int32_t refuse_text(void *user_data, const char *text, uint64_t text_bytes)
{
    (void)text;
    (void)text_bytes;
    *(int *)user_data += 1;
    return *(int *)user_data == 1 ? DS_ACCEL_ERR_LIMIT : DS_ACCEL_OK;
}

/* Writes the text of a graph, which has many pieces, to a sink that rejects the first piece. */
static void dump_refused(struct run *run)
{
    ds_accel_plugin_graph_t *graph = NULL;
    int calls = 0;

    if (!HAS(run, graph_dump) ||
        CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_RELAXED) < 0) {
        return;
    }
    for (int i = 0; i < 600; i++) {
        CALL(run, mem_fill_async, run->two, run->first, "a", 1, 64);
    }
    if (CALL(run, graph_capture_end, run->two, &graph) >= 0) {
        int32_t status = ASK(run, graph_dump, graph, refuse_text, &calls);

        drive_want(run, status == DS_ACCEL_ERR_UNSUPPORTED || status == DS_ACCEL_ERR_LIMIT,
                   "what a sink refuses with");
        drive_want(run, calls <= 1, "a sink that refused is not called again");
    }
    DROP(run, graph_destroy, graph);
}

static void ask_captures(struct run *run, ds_accel_plugin_device_t *peer)
{
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    int32_t code;

    /* A capture whose begin failed (SIM_FAIL) has not begun: the stream can begin another one. */
    code = ASK(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_RELAXED);
    if (code < 0 && CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_RELAXED) < 0) {
        return;
    }
    CALL(run, event_record, run->end, run->two);
    CALL(run, mem_fill_async, run->two, run->first, "a", 1, 64);
    if (CALL(run, graph_capture_end, run->two, &graph) < 0) {
        return;
    }
    REFUSED(run, DS_ACCEL_ERR_STATE, "an event of a capture queried", event_query, run->end);
    REFUSED(run, DS_ACCEL_ERR_STATE, "an event of a capture waited for", event_synchronize,
            run->end, 0);
    REFUSED(run, DS_ACCEL_ERR_STATE, "a stream waits for an event of a capture", stream_wait_event,
            run->one, run->end);
    if (peer != NULL && CALL(run, graph_instantiate, graph, 0, &exec) >= 0 &&
        CALL(run, stream_create, peer, 0, 0, &theirs) >= 0) {
        REFUSED(run, DS_ACCEL_ERR_INVALID, "a graph on another device", graph_launch, exec, theirs);
    }
    DROP(run, stream_destroy, theirs);
    DROP(run, graph_exec_destroy, exec);
    DROP(run, graph_destroy, graph);
}

/* A stream that was destroyed with pending work is not queried while another stream captures. */
static void capture_beside_ended(struct run *run)
{
    static struct hold held = {.limit_ms = 20000}; /* the task may read it after the return */
    ds_accel_plugin_stream_t *busy = NULL;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_graph_t *graph = NULL;

    if (CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &busy) < 0) {
        return;
    }
    CALL(run, stream_host_task, busy, hold, &held);
    DROP(run, stream_destroy, busy);
    if (CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_GLOBAL) >= 0) {
        if (CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) >= 0) {
            DROP(run, stream_destroy, stream);
        }
        CALL(run, mem_fill_async, run->two, run->first, "a", 1, 64);
        CALL(run, graph_capture_end, run->two, &graph);
    }
    DROP(run, graph_destroy, graph);
    atomic_store(&held.is_over, 1);
    CALL(run, device_synchronize, run->device, UINT64_MAX);
}

void drive_frame(struct run *run)
{
    ds_accel_plugin_device_t *peer = NULL;

    if (run->arguments[0] != NULL) {
        drive_want(run, dlsym(RTLD_DEFAULT, run->arguments[0]) == NULL,
                   "the vendor's functions are not everybody's");
    }
    if (drive_make(run) == 0) {
        if (run->device_count > 1) {
            CALL(run, device_open, run->instance, 1, &peer);
        }
        ask_addresses(run, peer);
        ask_pinned(run);
        ask_figures(run);
        free_used(run);
        free_in_order(run);
        fill_oddly(run);
        copy_inferred(run);
        ask_mappings(run);
        ask_shares(run);
        ask_handles(run);
        if (HAS(run, graph_capture_begin)) {
            ask_captures(run, peer);
            dump_refused(run);
            capture_beside_ended(run);
        }
        if (HAS(run, graph_capture_begin) && HAS(run, stream_host_task)) {
            launch_destroyed(run);
            launch_updated(run);
        }
        run->table->device_close(peer);
    }
    drive_unmake(run);
}

/* ---- losses --------------------------------------------------------------------------------- */

static atomic_int order[8];
static atomic_int order_count;

struct numbered {
    int number;
};

static void note_order(void *user_data, int32_t status)
{
    int at = atomic_fetch_add(&order_count, 1);

    (void)status;
    if (at < 8) {
        atomic_store(&order[at], ((const struct numbered *)user_data)->number);
    }
}

/* Tasks after a copy that loses the device (SIM_LOSE) run once, and in order. */
void drive_order(struct run *run)
{
    static struct numbered tasks[3] = {{1}, {2}, {3}};
    int is_ordered;

    if (drive_make(run) < 0) {
        return;
    }
    ASK(run, mem_copy_async, run->one, run->second, run->first, BYTES,
        DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    for (int i = 0; i < 3; i++) {
        if (ASK(run, stream_host_task, run->one, note_order, &tasks[i]) < 0) {
            note_order(&tasks[i], 0); /* the task was not accepted: the device was lost before */
        }
    }
    drive_want(run, ASK(run, stream_synchronize, run->one, UINT64_MAX) == DS_ACCEL_ERR_DEVICE_LOST,
               "the loss is told");
    run->table->stream_destroy(run->two);
    run->table->stream_destroy(run->one);
    run->table->event_destroy(run->end);
    run->table->event_destroy(run->start);
    ASK(run, mem_free_pinned, run->device, run->pinned);
    run->table->device_close(run->device);
    run->device = NULL;
    is_ordered = order_count == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3;
    drive_want(run, is_ordered, "tasks of a lost device run once, in their order");
}
