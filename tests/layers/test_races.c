/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Races and misuse where memory ends, where a graph is launched, and within the host tasks of a
 * graph; on every accelerator that has queues and is always there.
 */
#include "fixture.h"

#include <semaphore.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SIZE 4096

static const char *const accelerators[] = {"mock", "cpu"};

static ds_accel_t *context;
static ds_accel_device_t *device;
static ds_accel_stream_t *first;
static ds_accel_stream_t *second;
static ds_accel_graph_t *graph;
static void *memory;
static char own[SIZE] __attribute__((aligned(4096)));

static void start_with(const char *accelerator, const char *layers)
{
    setenv("DS_ACCEL_LAYERS", layers, 1);
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    context = test_start(accelerator, &device);
    MUST(ds_accel_stream_create(device, 0, 0, &first));
    MUST(ds_accel_stream_create(device, 0, 0, &second));
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_mem_alloc(device, first, SIZE, &memory));
}

static void start(const char *accelerator)
{
    start_with(accelerator, "validate");
}

static void stop(void)
{
    ds_accel_device_synchronize(device);
    ds_accel_graph_destroy(graph);
    EXPECT_STATUS(ds_accel_mem_free(device, first, memory), DS_ACCEL_OK);
    ds_accel_stream_destroy(first);
    ds_accel_stream_destroy(second);
    test_finish(context, device);
}

static uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    MUST(ds_accel_race_count(context, &count));
    return count;
}

static int32_t set(ds_accel_stream_t *stream, void *pointer, int byte)
{
    return ds_accel_mem_set_async(stream, pointer, byte, SIZE);
}

static void fail_on_races(void)
{
    test_write("etc/ds-accel.json", "{\"validate\": {\"races\": \"fail\"}}");
}

static void expect_races(uint64_t count, const char *what)
{
    char *text = NULL;

    MUST(ds_accel_layer_report(context, "race", &text));
    cr_expect_eq(races(), count, "%s: %llu: %s", what, (unsigned long long)races(), text);
    ds_accel_free_text(text);
}

/* ---- memory that ends ----------------------------------------------------------------------- */

/* Three kinds of memory that end without mem_free: how each is had and given back. */
static int32_t get_registered(void **pointer_out)
{
    *pointer_out = own;
    return ds_accel_mem_register(device, own, SIZE, DS_ACCEL_PINNED_MAPPED);
}

static int32_t get_shared(void **pointer_out)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    char handle[256];
    int32_t status = ds_accel_backend_info(context, &info);

    if (status >= 0 && info.memory_handle_bytes == 0) {
        return DS_ACCEL_ERR_UNSUPPORTED;
    }
    status = status < 0
                 ? status
                 : ds_accel_ipc_memory_export(device, memory, handle, info.memory_handle_bytes);
    return status < 0
               ? status
               : ds_accel_ipc_memory_open(device, handle, info.memory_handle_bytes, pointer_out);
}

static int32_t get_imported(void **pointer_out)
{
    uint64_t offset_bytes = 0;
    int32_t fd = -1;
    int32_t status = ds_accel_dmabuf_export(device, memory, SIZE, &fd, &offset_bytes);

    if (status >= 0) {
        status = ds_accel_dmabuf_import(device, fd, offset_bytes, SIZE, pointer_out);
        close(fd);
    }
    return status;
}

static const struct {
    const char *slot;
    int32_t (*get)(void **pointer_out);
    int32_t (*end)(ds_accel_device_t *of, void *pointer);
} kinds[] = {
    {"mem_unregister", get_registered, ds_accel_mem_unregister},
    {"ipc_memory_close", get_shared, ds_accel_ipc_memory_close},
    {"dmabuf_release", get_imported, ds_accel_dmabuf_release},
};

/* False: this accelerator has no such memory. */
static bool get(size_t kind, void **pointer_out)
{
    int32_t status = kinds[kind].get(pointer_out);

    cr_assert(status == DS_ACCEL_OK || status == DS_ACCEL_ERR_UNSUPPORTED, "%s: %s",
              kinds[kind].slot, ds_accel_last_error());
    return status == DS_ACCEL_OK;
}

Test(core_races, memory_does_not_end_before_what_is_queued_on_it)
{
    size_t count = 0;

    for (size_t i = 0; i < LENGTH(accelerators) * LENGTH(kinds); i++) {
        size_t kind = i / LENGTH(accelerators);
        void *pointer = NULL;
        char *text = NULL;

        start(accelerators[i % LENGTH(accelerators)]);
        if (get(kind, &pointer)) {
            count++;
            EXPECT_STATUS(set(first, pointer, 1), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
            EXPECT_STATUS(kinds[kind].end(device, pointer), DS_ACCEL_OK);
            expect_races(0, "it was waited for");
            cr_assert(get(kind, &pointer));
            EXPECT_STATUS(
                ds_accel_mem_copy_async(first, memory, pointer, SIZE / 2, DS_ACCEL_COPY_INFER),
                DS_ACCEL_OK);
            EXPECT_STATUS(kinds[kind].end(device, pointer), DS_ACCEL_OK);
            expect_races(1, kinds[kind].slot);
            MUST(ds_accel_layer_report(context, "race", &text));
            EXPECT_HAS(text, kinds[kind].slot);
            ds_accel_free_text(text);
        }
        stop();
    }
    cr_expect_geq(count, 4, "%zu", count);
}

/* What is unregistered is the program's still, and so is what is queued on it. */
Test(core_races, what_is_unregistered_is_used_as_before)
{
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        MUST(ds_accel_mem_register(device, own, SIZE, 0));
        EXPECT_STATUS(
            ds_accel_mem_copy_async(first, memory, own, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE),
            DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_unregister(device, own), DS_ACCEL_OK);
        expect_races(1, "unregistered");
        EXPECT_STATUS(ds_accel_note_access(device, NULL, own, SIZE, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        expect_races(2, "and written to, while the copy reads");
        stop();
    }
}

Test(core_races, what_is_unregistered_was_not_freed)
{
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        MUST(ds_accel_mem_register(device, own, SIZE, 0));
        MUST(ds_accel_graph_capture_begin(graph, first, NULL, DS_ACCEL_CAPTURE_RELAXED));
        EXPECT_STATUS(
            ds_accel_mem_copy_async(first, memory, own, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE),
            DS_ACCEL_OK);
        MUST(ds_accel_graph_capture_end(graph));
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_unregister(device, own), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_graph_replay(graph, first), DS_ACCEL_ERR_INVALID,
                       ", which was unregistered at ");
        EXPECT_REFUSED(ds_accel_mem_unregister(device, own), DS_ACCEL_ERR_INVALID,
                       "was unregistered before, at ");
        EXPECT_STATUS(ds_accel_note_access(device, first, own, SIZE, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        expect_races(0, "it was waited for");
        stop();
    }
}

/* What no backend does, whichever layer is asked first. */
Test(core_races, memory_does_not_end_by_what_did_not_make_it)
{
    for (size_t i = 0; i < LENGTH(accelerators) * LENGTH(kinds); i++) {
        void *pinned = NULL;

        start_with(accelerators[i % LENGTH(accelerators)], "race,validate");
        MUST(ds_accel_mem_alloc_pinned(device, SIZE, 0, DS_ACCEL_PINNED_MAPPED, &pinned));
        EXPECT_STATUS(
            ds_accel_mem_copy_async(first, memory, pinned, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE),
            DS_ACCEL_OK);
        cr_expect_lt(kinds[i / LENGTH(accelerators)].end(device, pinned), 0);
        expect_races(0, "it did not end");
        EXPECT_STATUS(ds_accel_note_access(device, NULL, pinned, 1, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        expect_races(1, "and is still read");
        EXPECT_STATUS(ds_accel_mem_free_pinned(device, pinned), DS_ACCEL_OK);
        stop();
    }
}

Test(core_races, memory_whose_end_races_can_be_kept)
{
    fail_on_races();
    for (size_t i = 0; i < LENGTH(accelerators) * LENGTH(kinds); i++) {
        size_t kind = i / LENGTH(accelerators);
        void *pointer = NULL;

        start(accelerators[i % LENGTH(accelerators)]);
        if (get(kind, &pointer)) {
            EXPECT_STATUS(
                ds_accel_mem_copy_async(first, memory, pointer, SIZE / 2, DS_ACCEL_COPY_INFER),
                DS_ACCEL_OK);
            EXPECT_REFUSED(kinds[kind].end(device, pointer), DS_ACCEL_ERR_STATE, "it would race");
            EXPECT_REFUSED(kinds[kind].end(device, pointer), DS_ACCEL_ERR_STATE, "it would race");
            expect_races(2, kinds[kind].slot);
            EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
            EXPECT_STATUS(kinds[kind].end(device, pointer), DS_ACCEL_OK);
        }
        stop();
    }
}

/* What layer leak says of memory; events are the allocator's own. */
static char *leaked_memory(void)
{
    char *text = NULL;
    char *end;

    MUST(ds_accel_layer_report(context, "leak", &text));
    end = text;
    for (char *line = text, *next; *line != '\0'; line = next) {
        next = strchrnul(line, '\n');
        next += *next != '\0';
        if (memmem(line, (size_t)(next - line), " x memory, ", strlen(" x memory, ")) != NULL) {
            memmove(end, line, (size_t)(next - line));
            end += next - line;
        }
    }
    *end = '\0';
    return text;
}

/* The library would have nobody to give it to. */
Test(core_races, memory_that_an_allocator_gives_back_is_not_refused)
{
    fail_on_races();
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        ds_accel_pool_t *pool = NULL;
        void *block = NULL;
        char *before;
        char *after;

        start_with(accelerators[i], "validate,leak");
        before = leaked_memory();
        MUST(ds_accel_pool_create(device, &pool));
        MUST(ds_accel_pool_begin(pool));
        MUST(ds_accel_mem_alloc(device, first, 4 << 20, &block));
        MUST(ds_accel_pool_end(pool));
        EXPECT_STATUS(set(second, block, 1), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_free(device, first, block), DS_ACCEL_OK);
        ds_accel_pool_destroy(pool);
        EXPECT_STATUS(ds_accel_empty_cache(device), DS_ACCEL_OK);
        expect_races(1, "nobody recorded the second stream");
        after = leaked_memory();
        EXPECT_HAS(before, "1 x memory");
        cr_expect_str_eq(after, before, "%s", after);
        ds_accel_free_text(before);
        ds_accel_free_text(after);
        stop();
    }
}

/* By the table, as a program with an allocator of its own does. */
Test(core_races, each_way_to_free_can_be_refused)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *handle;
    ds_accel_plugin_stream_t *streams[2] = {NULL, NULL};

    fail_on_races();
    start("mock");
    MUST(ds_accel_instance(context, &table, &instance));
    handle = ds_accel_device_handle(device);
    for (int i = 0; i < 2; i++) {
        MUST(table->stream_create(handle, 0, 0, &streams[i], &error));
    }
    for (int i = 0; i < 3; i++) {
        void *pointer = NULL;
        int32_t status;

        MUST(i == 0   ? table->mem_alloc(handle, SIZE, 0, 0, &pointer, &error)
             : i == 1 ? table->mem_alloc_pinned(handle, SIZE, 0, DS_ACCEL_PINNED_MAPPED, &pointer,
                                                &error)
                      : table->mem_alloc_async(streams[0], SIZE, 0, NULL, 0, &pointer, &error));
        for (int waited = 0; waited < 2; waited++) {
            EXPECT_STATUS(waited ? table->stream_synchronize(streams[0], UINT64_MAX, &error)
                                 : table->mem_copy_async(streams[0], memory, pointer, SIZE,
                                                         DS_ACCEL_COPY_INFER, &error),
                          DS_ACCEL_OK);
            status = i == 0   ? table->mem_free(handle, pointer, &error)
                     : i == 1 ? table->mem_free_pinned(handle, pointer, &error)
                              : table->mem_free_async(streams[1], pointer, NULL, 0, &error);
            cr_expect_eq(status, waited ? DS_ACCEL_OK : DS_ACCEL_ERR_STATE, "%d: %d: %s", i, waited,
                         error.message);
        }
    }
    for (int i = 0; i < 2; i++) {
        table->stream_destroy(streams[i]);
    }
    stop();
}

/* ---- races that are refused ----------------------------------------------------------------- */

static void capture_set(void)
{
    MUST(ds_accel_graph_capture_begin(graph, first, NULL, DS_ACCEL_CAPTURE_RELAXED));
    EXPECT_STATUS(set(first, memory, 1), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_end(graph));
}

Test(core_races, a_launch_that_would_race_can_be_refused)
{
    fail_on_races();
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        unsigned char byte = 0;

        start(accelerators[i]);
        capture_set();
        EXPECT_STATUS(set(second, memory, 2), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_graph_replay(graph, first), DS_ACCEL_ERR_STATE, "it would race");
        expect_races(1, "the launch");
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_copy(device, &byte, memory, 1, DS_ACCEL_COPY_DEVICE_TO_HOST),
                      DS_ACCEL_OK);
        cr_expect_eq(byte, 2, "it was not launched");
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, second), DS_ACCEL_OK); /* behind the other */
        EXPECT_REFUSED(set(first, memory, 3), DS_ACCEL_ERR_STATE, "it would race");
        stop();
    }
}

Test(core_races, an_access_that_races_can_be_refused)
{
    fail_on_races();
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        EXPECT_STATUS(set(second, memory, 2), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_note_access(device, first, memory, 1, DS_ACCEL_ACCESS_READ),
                       DS_ACCEL_ERR_STATE, "it would race");
        EXPECT_REFUSED(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE),
                       DS_ACCEL_ERR_STATE, "it would race");
        expect_races(2, "two places");
        EXPECT_HAS(test_log, "noted access on the host writes 1 bytes");
        EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_READ),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_note_access(device, first, memory, 1, DS_ACCEL_ACCESS_WRITE),
                      DS_ACCEL_OK);
        EXPECT_REFUSED(set(second, memory, 3), DS_ACCEL_ERR_STATE, "it would race");
        stop();
    }
}

/* ---- memory that a graph has from another one's capture ------------------------------------- */

static void *capture_made(ds_accel_graph_t *of, ds_accel_pool_t *pool)
{
    void *made = NULL;

    MUST(ds_accel_graph_capture_begin(of, first, pool, DS_ACCEL_CAPTURE_RELAXED));
    MUST(ds_accel_mem_alloc(device, first, SIZE, &made));
    EXPECT_STATUS(set(first, made, 1), DS_ACCEL_OK);
    MUST(ds_accel_graph_capture_end(of));
    return made;
}

Test(core_races, memory_of_a_capture_is_kept_for_the_graphs_of_its_pool_only)
{
    for (size_t i = 0; i < LENGTH(accelerators) * 3; i++) {
        bool is_shared = i % 3 == 0;
        bool is_later = i % 3 == 1; /* the first graph goes before its memory does, or after */
        ds_accel_graph_t *maker = NULL;
        ds_accel_pool_t *pool = NULL;
        void *made;

        start(accelerators[i / 3]);
        MUST(ds_accel_graph_create(device, &maker));
        MUST(ds_accel_pool_create(device, &pool));
        made = capture_made(maker, is_shared ? pool : NULL);
        MUST(ds_accel_graph_capture_begin(graph, first, is_shared ? pool : NULL,
                                          DS_ACCEL_CAPTURE_RELAXED));
        EXPECT_STATUS(set(first, made, 2), DS_ACCEL_OK);
        MUST(ds_accel_graph_capture_end(graph));
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
        if (!is_later) {
            ds_accel_graph_destroy(maker);
            EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_mem_free(device, first, made), DS_ACCEL_OK);
        if (is_shared) {
            EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        } else {
            EXPECT_REFUSED(ds_accel_graph_replay(graph, first), DS_ACCEL_ERR_INVALID,
                           ", which was freed at ");
        }
        if (is_later) {
            EXPECT_STATUS(ds_accel_graph_replay(maker, first), DS_ACCEL_OK);
            ds_accel_graph_destroy(maker);
        }
        ds_accel_pool_destroy(pool);
        stop();
    }
}

/* ---- host tasks of a graph ------------------------------------------------------------------ */

static sem_t noted;
static uint32_t task_access;
static int32_t task_status;

static void note_in_task(void *user_data, int32_t status)
{
    cr_expect_eq(status, DS_ACCEL_OK);
    task_status = ds_accel_note_access(device, NULL, user_data, SIZE, task_access);
    sem_post(&noted);
}

/* Between two other uses of the same memory. */
static void capture_task(uint32_t access, bool is_alone)
{
    task_access = access;
    cr_assert_eq(sem_init(&noted, 0, 0), 0);
    MUST(ds_accel_graph_capture_begin(graph, first, NULL, DS_ACCEL_CAPTURE_RELAXED));
    if (!is_alone) {
        EXPECT_STATUS(set(first, memory, 1), DS_ACCEL_OK);
    }
    MUST(ds_accel_stream_host_task(first, note_in_task, memory));
    if (!is_alone) {
        EXPECT_STATUS(set(first, memory, 2), DS_ACCEL_OK);
    }
    MUST(ds_accel_graph_capture_end(graph));
}

static void wait_until(sem_t *posted)
{
    while (sem_wait(posted) != 0) {
    }
}

Test(core_races, what_a_graphs_host_task_notes_is_in_the_order_of_its_graph)
{
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_READ, false);
        for (int launch = 0; launch < 4; launch++) {
            EXPECT_STATUS(ds_accel_graph_replay(graph, launch % 2 == 0 ? first : second),
                          DS_ACCEL_OK);
        }
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        expect_races(0, "launches of one graph follow each other");
        stop();
    }
}

Test(core_races, what_a_graphs_host_task_notes_races_with_other_streams)
{
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_WRITE, true);
        for (int launch = 0; launch < 2; launch++) { /* the second is at a place of its own */
            EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_synchronize(first), DS_ACCEL_OK);
            wait_until(&noted);
            EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_synchronize(second), DS_ACCEL_OK);
            expect_races(0, "it was waited for");
        }
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
        expect_races(1, "it was not");
        EXPECT_HAS(test_log, "noted access on stream ");
        stop();
    }
}

Test(core_races, a_graphs_host_task_is_refused_what_races)
{
    fail_on_races();
    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        capture_task(DS_ACCEL_ACCESS_WRITE, true);
        EXPECT_STATUS(set(second, memory, 1), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        cr_expect_eq(task_status, DS_ACCEL_ERR_STATE, "%d", task_status);
        expect_races(1, "nobody waited for the other stream");
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_graph_replay(graph, first), DS_ACCEL_OK);
        wait_until(&noted);
        cr_expect_eq(task_status, DS_ACCEL_OK, "%d", task_status);
        stop();
    }
}

/* Else the next launch's task would note at that one's place. */
Test(core_races, a_launch_that_is_refused_gives_its_tasks_no_place)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_graph_t *captured = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_device_t *other = NULL;

    start_with("mock", "race,validate");
    cr_assert_eq(sem_init(&noted, 0, 0), 0);
    task_access = DS_ACCEL_ACCESS_WRITE;
    MUST(ds_accel_instance(context, &table, &instance));
    MUST(ds_accel_device_open(context, 1, &other));
    MUST(table->stream_create(ds_accel_device_handle(device), 0, 0, &stream, &error));
    MUST(table->stream_create(ds_accel_device_handle(other), 0, 0, &theirs, &error));
    MUST(table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_RELAXED, &error));
    MUST(table->stream_host_task(stream, note_in_task, memory, &error));
    MUST(table->graph_capture_end(stream, &captured, &error));
    MUST(table->graph_instantiate(captured, 0, &exec, &error));
    table->graph_destroy(captured);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(table->graph_launch(exec, theirs, &error), DS_ACCEL_ERR_INVALID);
        EXPECT_STATUS(table->graph_launch(exec, stream, &error), DS_ACCEL_OK);
        EXPECT_STATUS(table->graph_launch(exec, theirs, &error), DS_ACCEL_ERR_INVALID);
        wait_until(&noted);
        EXPECT_STATUS(table->mem_fill_async(stream, memory, "x", 1, SIZE, &error), DS_ACCEL_OK);
        expect_races(0, "it was this stream's");
    }
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    table->graph_exec_destroy(exec);
    table->stream_destroy(stream);
    table->stream_destroy(theirs);
    ds_accel_device_close(other);
    stop();
}

/* ---- waits that are easily forgotten -------------------------------------------------------- */

/* It has no value before both events are reached: a loop over it is a wait. */
Test(core_races, the_time_between_two_events_is_known_after_both)
{
    static char host[SIZE];
    ds_accel_event_t *events[2];
    ds_accel_timer_t *timer;
    double elapsed_ms = 0;

    for (size_t i = 0; i < LENGTH(accelerators); i++) {
        start(accelerators[i]);
        for (int j = 0; j < 2; j++) {
            MUST(ds_accel_event_create(device, DS_ACCEL_EVENT_TIMING, &events[j]));
        }
        MUST(ds_accel_timer_create(device, &timer));
        for (int is_timer = 0; is_timer < 2; is_timer++) {
            if (is_timer) {
                MUST(ds_accel_timer_start(timer, first));
            }
            MUST(ds_accel_event_record(events[0], first));
            MUST(ds_accel_mem_copy_async(first, host, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_HOST));
            MUST(ds_accel_event_record(events[1], first));
            if (is_timer) {
                MUST(ds_accel_timer_stop(timer, first));
                MUST(ds_accel_timer_elapsed_ms(timer, &elapsed_ms));
            }
            while (!is_timer && ds_accel_event_elapsed_ms(events[0], events[1], &elapsed_ms) ==
                                    DS_ACCEL_ERR_STATE) {
            }
            MUST(ds_accel_note_access(device, NULL, host, SIZE, DS_ACCEL_ACCESS_WRITE));
            expect_races(0, "the copy was waited for");
        }
        MUST(set(first, memory, 1));
        MUST(ds_accel_event_elapsed_ms(events[0], events[1], &elapsed_ms));
        MUST(set(second, memory, 1));
        expect_races(1, "what was queued behind the second was not");
        ds_accel_timer_destroy(timer);
        ds_accel_event_destroy(events[0]);
        ds_accel_event_destroy(events[1]);
        stop();
    }
}

/* ---- streams that come and go --------------------------------------------------------------- */

#define MANY_STREAMS 4200 /* more than the detector can tell apart at once */

Test(core_races, streams_that_captured_and_ended_leave_room_for_others)
{
    ds_accel_stream_t *stream;
    ds_accel_graph_t *captured;

    start("mock");
    MUST(ds_accel_graph_create(device, &captured));
    for (int i = 0; i < MANY_STREAMS; i++) {
        MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream));
        MUST(ds_accel_graph_capture_begin(captured, stream, NULL, DS_ACCEL_CAPTURE_RELAXED));
        MUST(set(stream, memory, 1));
        MUST(ds_accel_graph_capture_end(captured));
        ds_accel_stream_destroy(stream);
    }
    EXPECT_HAS_NOT(test_log, "no race is looked for any more");
    MUST(set(first, memory, 1));
    MUST(set(second, memory, 1));
    expect_races(1, "and are still found");
    ds_accel_graph_destroy(captured);
    stop();
}

/* ---- one stream of the vendor's, several handles -------------------------------------------- */

Test(core_races, handles_of_one_stream_have_one_order)
{
    ds_accel_stream_t *wrapped[2];
    ds_accel_stream_t *again;
    uint64_t native = 0;

    start("mock");
    MUST(ds_accel_stream_native(first, &native));
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_stream_wrap(device, native, &wrapped[i]));
    }
    MUST(set(first, memory, 1));
    MUST(set(wrapped[0], memory, 2));
    MUST(set(wrapped[1], memory, 3));
    MUST(set(first, memory, 4));
    expect_races(0, "three handles of one");
    MUST(ds_accel_stream_synchronize(wrapped[0]));
    MUST(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE));
    expect_races(0, "to wait for one is to wait for all");
    MUST(set(wrapped[1], memory, 5));
    ds_accel_stream_destroy(wrapped[0]);
    ds_accel_stream_destroy(wrapped[1]);
    ds_accel_stream_destroy(first);
    MUST(set(second, memory, 6));
    expect_races(1, "another stream is another");
    MUST(ds_accel_device_synchronize(device));
    MUST(ds_accel_stream_create(device, 0, 0, &first));
    stop();
    start("mock");
    MUST(ds_accel_stream_native(first, &native));
    MUST(set(first, memory, 1)); /* it counts already when it turns out to be the same */
    MUST(ds_accel_stream_wrap(device, native, &again));
    MUST(set(again, memory, 2));
    ds_accel_stream_destroy(again);
    MUST(ds_accel_stream_wrap(device, native, &again));
    MUST(set(again, memory, 3));
    MUST(set(first, memory, 4));
    expect_races(0, "one that is wrapped for each use");
    ds_accel_stream_destroy(again);
    stop();
}

/* Recorded by one handle and waited for by the other, as two libraries do that share an event. */
Test(core_races, handles_of_one_event_are_one_mark)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const struct ds_accel_plugin *table;
    ds_accel_plugin_device_t *handle;
    ds_accel_event_t *event;
    void *wrapped = NULL;
    uint64_t native = 0;
    uint64_t offset_bytes = 0;

    start("mock");
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
    MUST(ds_accel_event_create(device, 0, &event));
    MUST(table->native_get(handle, DS_ACCEL_NATIVE_EVENT, event->handle, &native, &offset_bytes,
                           &error));
    MUST(table->native_wrap(handle, DS_ACCEL_NATIVE_EVENT, native, &wrapped, &error));
    MUST(set(first, memory, 1));
    MUST(table->event_record(wrapped, first->handle, &error));
    MUST(ds_accel_stream_wait_event(second, event));
    MUST(set(second, memory, 2));
    expect_races(0, "recorded by the wrapped one");
    MUST(ds_accel_event_record(event, second));
    MUST(table->stream_wait_event(first->handle, wrapped, &error));
    MUST(set(first, memory, 3));
    expect_races(0, "recorded by the other one, when both were one already");
    MUST(ds_accel_event_record(event, first));
    table->event_destroy(wrapped);
    MUST(ds_accel_event_synchronize(event));
    MUST(ds_accel_note_access(device, NULL, memory, 1, DS_ACCEL_ACCESS_WRITE));
    expect_races(0, "the other one goes on");
    ds_accel_event_destroy(event);
    stop();
}

/* ---- pinned memory of a stream that the library has no handle of ----------------------------- */

/* The pool gives it out again at once: ds_accel_mem_free_pinned() says that it asks its own streams
 * only. */
Test(core_races, pinned_memory_is_not_reused_under_a_stream_of_the_tables_unseen)
{
    enum {
        UNKNOWN,
        WAITED_FOR,
        LENT,
        CASES
    };
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (int i = 0; i < CASES; i++) {
        ds_accel_plugin_stream_t *stream = NULL;
        ds_accel_stream_t *lent = NULL;
        const struct ds_accel_plugin *table;
        ds_accel_plugin_device_t *handle;
        uint64_t native = 0;
        uint64_t offset_bytes = 0;
        void *pinned = NULL;
        void *reused = NULL;

        start("mock");
        table = ds_accel_device_table(device);
        handle = ds_accel_device_handle(device);
        MUST(table->stream_create(handle, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream, &error));
        if (i == LENT) {
            MUST(table->native_get(handle, DS_ACCEL_NATIVE_STREAM, stream, &native, &offset_bytes,
                                   &error));
            MUST(ds_accel_stream_wrap(device, native, &lent));
        }
        MUST(ds_accel_mem_alloc_pinned(device, SIZE, 1, 0, &pinned));
        MUST(table->mem_copy_async(stream, memory, pinned, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE,
                                   &error));
        if (i == WAITED_FOR) {
            MUST(table->stream_synchronize(stream, UINT64_MAX, &error));
        }
        MUST(ds_accel_mem_free_pinned(device, pinned));
        MUST(ds_accel_mem_alloc_pinned(device, SIZE, 1, 0, &reused));
        cr_expect(i == LENT || reused == pinned, "the pool asks its own streams");
        expect_races(i == UNKNOWN ? 1 : 0, "given out again");
        MUST(ds_accel_note_access(device, NULL, reused, SIZE, DS_ACCEL_ACCESS_WRITE));
        expect_races(i == UNKNOWN ? 2 : 0, "and written to");
        MUST(ds_accel_device_synchronize(device));
        MUST(ds_accel_mem_free_pinned(device, reused));
        ds_accel_stream_destroy(lent);
        table->stream_destroy(stream);
        stop();
    }
}
