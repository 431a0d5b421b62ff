/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Races where memory is released: memory of devices, pinned and registered memory, memory of
   captures. */
#include "races.h"

#include <unistd.h>

static char own[SIZE] __attribute__((aligned(4096)));

/* ---- memory that is released ----------------------------------------------------------------- */

/* Three kinds of memory that are released without mem_free, each with a function that obtains it
   and a function that releases it. */
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

/* Obtain memory of this kind; returns false if the accelerator does not support it. */
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

    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(kinds); i++) {
        size_t kind = i / ARRAY_SIZE(accelerators);
        void *pointer = NULL;
        char *text = NULL;

        start(accelerators[i % ARRAY_SIZE(accelerators)]);
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

/* Unregistered memory still belongs to the program, and the queued copy still reads it. */
Test(core_races, what_is_unregistered_is_used_as_before)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
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
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
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

/* No backend supports such a call; the test passes for any order of layers. */
Test(core_races, memory_does_not_end_by_what_did_not_make_it)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(kinds); i++) {
        void *pinned = NULL;

        start_with(accelerators[i % ARRAY_SIZE(accelerators)], "race,validate");
        MUST(ds_accel_mem_alloc_pinned(device, SIZE, 0, DS_ACCEL_PINNED_MAPPED, &pinned));
        EXPECT_STATUS(
            ds_accel_mem_copy_async(first, memory, pinned, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE),
            DS_ACCEL_OK);
        cr_expect_lt(kinds[i / ARRAY_SIZE(accelerators)].end(device, pinned), 0);
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
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(kinds); i++) {
        size_t kind = i / ARRAY_SIZE(accelerators);
        void *pointer = NULL;

        start(accelerators[i % ARRAY_SIZE(accelerators)]);
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

/* The lines about memory in the report of layer leak; its lines about events, which the allocator
   creates, are left out. */
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

/* The library cannot report the race to any caller, so the release is not rejected. */
Test(core_races, memory_that_an_allocator_gives_back_is_not_refused)
{
    fail_on_races();
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
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

/* Free through the plugin table, as a program with its own allocator does. */
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

/* ---- a graph that uses memory of another graph's capture ------------------------------------- */

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
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * 3; i++) {
        bool is_shared = i % 3 == 0;
        /* true: the first graph is destroyed after its memory, else before it */
        bool is_later = i % 3 == 1;
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

/* ---- pinned memory used by a stream without a library handle --------------------------------- */

/* The pool reuses the block at once: ds_accel_mem_free_pinned() documents that it queries only the
   library's own streams. */
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
