/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Frees pinned memory while copies from and to it wait for a gate, a host task: prints what
 * happened to the memory and to the data. Then captures, by this program and by another library,
 * during which pinned memory is freed: prints the result of each.
 *
 *     pinned NAME [captures]
 *
 * Or wraps a stream of the runtime, created by that function of its library, and destroys the
 * wrapper while a copy waits on the stream:
 *
 *     pinned NAME LIBRARY FUNCTION
 */
#include <ds_accel.h>

#include <dlfcn.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 4096

static ds_accel_device_t *device;
static ds_accel_device_t *others; /* the same device, of a second context */

static void must(int32_t status, const char *call)
{
    if (status < 0) {
        printf("%s: %s\n", call, ds_accel_last_error());
        exit(1);
    }
}

#define MUST(call) must(call, #call)

static void wait_at_gate(void *gate, int32_t status)
{
    (void)status;
    while (sem_wait(gate) != 0) {
    }
}

static char *take(void)
{
    void *pointer = NULL;

    MUST(ds_accel_mem_alloc_pinned(device, BYTES, 1, 0, &pointer));
    return pointer;
}

/* Frees a block while a copy of it waits for the gate, and allocates another block in the
 * meantime. */
static void play(ds_accel_stream_t *stream, void *memory, uint32_t kind, const char *what)
{
    bool is_upload = kind == DS_ACCEL_COPY_HOST_TO_DEVICE;
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    char *block = take();
    char back[BYTES];
    char *other;
    sem_t gate;

    sem_init(&gate, 0, 0);
    memset(back, 'd', BYTES);
    MUST(ds_accel_mem_copy(device, memory, back, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE));
    memset(block, 'a', BYTES);
    MUST(ds_accel_stream_host_task(stream, wait_at_gate, &gate));
    MUST(ds_accel_mem_copy_async(stream, is_upload ? memory : block, is_upload ? block : memory,
                                 BYTES, kind));
    MUST(ds_accel_mem_free_pinned(device, block));
    MUST(ds_accel_pinned_empty_cache(device));
    MUST(ds_accel_pinned_stats(device, &stats));
    other = take();
    memset(other, 'b', BYTES);
    printf("%s: %s, %s\n", what, stats.waiting_bytes >= BYTES ? "waits" : "is free",
           other == block ? "given out" : "kept");
    sem_post(&gate);
    MUST(ds_accel_stream_synchronize(stream));
    MUST(ds_accel_mem_copy(device, back, memory, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST));
    printf("%s: %c%c\n", what, is_upload ? back[0] : other[0],
           is_upload ? back[BYTES - 1] : other[BYTES - 1]);
    MUST(ds_accel_device_synchronize(device));
    printf("%s: %s\n", what, take() == block ? "given out behind it" : "another one");
    sem_destroy(&gate);
}

static int32_t capture_through(const struct ds_accel_plugin *table,
                               ds_accel_plugin_stream_t *stream)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_graph_t *graph = NULL;
    int32_t status = table->graph_capture_begin(stream, DS_ACCEL_CAPTURE_GLOBAL, &error);

    must(status, "the begin through the table");
    MUST(ds_accel_mem_free_pinned(device, take()));
    status = table->graph_capture_end(stream, &graph, &error);
    if (status >= 0) {
        table->graph_destroy(graph);
    }
    return status;
}

/*
 * Another library captures a stream of this program, or this program captures a stream of the
 * library: the other library is simulated by a plugin of a second context.
 */
static int32_t capture_natively(ds_accel_stream_t *ours)
{
    const struct ds_accel_plugin *table = others->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *theirs = NULL;
    ds_accel_stream_t *wrapped = NULL;
    uint64_t native;
    uint64_t offset_bytes;
    int32_t status;

    if (ours != NULL) {
        void *handle = NULL;

        MUST(ds_accel_stream_native(ours, &native));
        must(table->native_wrap(others->handle, DS_ACCEL_NATIVE_STREAM, native, &handle, &error),
             "native_wrap");
        theirs = handle;
    } else {
        must(table->stream_create(others->handle, 0, 0, &theirs, &error), "stream_create");
        must(table->native_get(others->handle, DS_ACCEL_NATIVE_STREAM, theirs, &native,
                               &offset_bytes, &error),
             "native_get");
        MUST(ds_accel_stream_wrap(device, native, &wrapped));
    }
    status = capture_through(table, theirs);
    ds_accel_stream_destroy(wrapped);
    table->stream_destroy(theirs);
    return status;
}

static int32_t capture(ds_accel_stream_t *stream)
{
    ds_accel_graph_t *graph = NULL;
    int32_t status;

    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    MUST(ds_accel_mem_free_pinned(device, take()));
    status = ds_accel_graph_capture_end(graph);
    ds_accel_graph_destroy(graph);
    return status;
}

enum way {
    OURS,   /* this program captures */
    TABLE,  /* the library uses this context's table */
    LENT,   /* the library got the stream from this program */
    FOREIGN /* this program got the stream from the library */
};

static void free_in_capture(ds_accel_t *context, enum way way, const char *what)
{
    ds_accel_stream_t *stream = NULL;
    int32_t status;

    MUST(ds_accel_device_open(context, 0, &device));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_mem_free_pinned(device, take()));
    if (way == OURS) {
        status = capture(stream);
    } else {
        status = way == TABLE ? capture_through(stream->table, stream->handle)
                              : capture_natively(way == LENT ? stream : NULL);
    }
    printf("%s: %d\n", what, status);
    ds_accel_device_close(device);
}

/* Calls the function with flags and a priority; a function with fewer parameters ignores them. */
static uint64_t make_native(const char *library, const char *function)
{
    void *stream = NULL;
    int (*make)(void **stream_out, unsigned int flags, int priority) = NULL;

    *(void **)&make = dlsym(dlopen(library, RTLD_NOW), function);
    if (make == NULL || make(&stream, 1, 0) != 0) {
        printf("%s: no stream\n", function);
        exit(1);
    }
    return (uint64_t)(uintptr_t)stream;
}

static void let_go(uint64_t native, ds_accel_stream_t *later, void *memory)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    ds_accel_stream_t *stream = NULL;
    char *blocks[2] = {take(), take()};
    char *block;
    sem_t gate;
    sem_t later_gate;

    sem_init(&gate, 0, 0);
    sem_init(&later_gate, 0, 0);
    MUST(ds_accel_stream_wrap(device, native, &stream));
    MUST(ds_accel_stream_host_task(stream, wait_at_gate, &gate));
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_mem_copy_async(stream, memory, blocks[i], BYTES,
                                     DS_ACCEL_COPY_HOST_TO_DEVICE));
    }
    ds_accel_stream_destroy(stream);
    for (int i = 0; i < 2; i++) {
        MUST(ds_accel_mem_free_pinned(device, blocks[i]));
    }
    take(); /* take() checks which blocks are ready */
    MUST(ds_accel_pinned_stats(device, &stats));
    printf("let go: %s\n", stats.waiting_bytes == 2 * BYTES ? "waits" : "is free");
    sem_post(&gate);
    MUST(ds_accel_stream_wrap(device, native, &stream));
    MUST(ds_accel_stream_synchronize(stream));
    /* Not earlier: a runtime may run the tasks of all streams one after another, and the plugin may
     * have queued tasks on the wrapped stream. */
    MUST(ds_accel_stream_host_task(later, wait_at_gate, &later_gate));
    ds_accel_stream_destroy(stream);
    block = take(); /* freeing a block would wait for the device */
    printf("behind it, with the device at work: %s\n",
           block == blocks[0] || block == blocks[1] ? "given out" : "waits");
    sem_post(&later_gate);
    MUST(ds_accel_stream_synchronize(later));
    sem_destroy(&gate);
    sem_destroy(&later_gate);
}

int main(int argc, char **argv)
{
    struct ds_accel_options options = {.struct_size = sizeof(options),
                                       .accelerator = argc > 1 ? argv[1] : "cpu"};
    ds_accel_t *context = NULL;
    ds_accel_stream_t *stream = NULL;
    void *memory = NULL;

    alarm(120);
    MUST(ds_accel_create(&options, &context));
    MUST(ds_accel_detect(context));
    if (argc == 3) {
        ds_accel_t *second = NULL;

        MUST(ds_accel_create(&options, &second));
        MUST(ds_accel_detect(second));
        MUST(ds_accel_device_open(second, 0, &others));
        free_in_capture(context, OURS, "ours");
        free_in_capture(context, TABLE, "through the table");
        free_in_capture(context, LENT, "another library's, of a stream of ours");
        free_in_capture(context, FOREIGN, "another library's, of a stream of its own");
        ds_accel_device_close(others);
        ds_accel_destroy(second);
        ds_accel_destroy(context);
        return 0;
    }
    MUST(ds_accel_device_open(context, 0, &device));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_mem_alloc(device, stream, BYTES, &memory));
    if (argc > 3) {
        MUST(ds_accel_set_device(context, 0)); /* needed by the function that creates the stream */
        let_go(make_native(argv[2], argv[3]), stream, memory);
    } else {
        play(stream, memory, DS_ACCEL_COPY_HOST_TO_DEVICE, "read");
        play(stream, memory, DS_ACCEL_COPY_DEVICE_TO_HOST, "written");
    }
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    return 0;
}
