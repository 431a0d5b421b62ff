/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * exercise PLUGIN LIBRARY CODE: everything that the plugin opencl does, over a real runtime, again
 * and again; in round N call number N of the runtime fails with CODE (failing.c). After each round
 * nothing may be left of the runtime's objects; what failed has to say why; a host task that was
 * accepted has run once, and one that was refused has not. Where no call failed, the data has to be
 * right.
 *
 * Needs two devices. Prints how many rounds there were; ends with 1 at the first that is wrong.
 */
#include "host.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES 65536u
#define ROUND_LIMIT 5000

static const struct ds_accel_plugin *plugin;
static int32_t code; /* that calls fail with */
static long number;  /* of the round: the call that fails */
static int failures; /* statuses below 0 in this round */
static int told;     /* of these, with the runtime's code */

static struct failing {
    void (*fail)(long call, int32_t code);
    long (*calls)(void);
    int (*has_failed)(void);
    const char *(*name)(void);
    const char *(*left)(void);
} failing;

static void wrong(const char *what, const char *detail)
{
    fprintf(stderr, "call %ld, %s, fails: %s: %s\n", number, failing.name(), what, detail);
    _exit(1);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static struct ds_accel_error error;

static struct ds_accel_error *fresh(void)
{
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    return &error;
}

static int took(const char *slot, int32_t status)
{
    if (status >= 0) {
        return 1;
    }
    if (!number) {
        wrong(slot, error.message);
    }
    if (error.code != status || error.message[0] == '\0') {
        wrong(slot, "the error is not filled");
    }
    failures++;
    told += error.vendor_code == code;
    return 0;
}

#define CAN(slot, ...) took(#slot, plugin->slot(__VA_ARGS__, fresh()))

/* ---- what there is to do -------------------------------------------------------------------- */

static atomic_int runs;

static void count_run(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
    atomic_fetch_add(&runs, 1);
}

/* All of these may be NULL, if it could not be had. */
struct scene {
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *devices[2];
    ds_accel_plugin_stream_t *streams[3]; /* two of the first device, one of the second */
    ds_accel_plugin_event_t *events[2];
    void *memory[3]; /* two of the first device, one of the second */
    unsigned char host[3][BYTES];
};

static struct scene scene;

static void set_up(void)
{
    const uint32_t of[3] = {0, 0, 1};

    for (uint32_t i = 0; i < 2; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};

        CAN(device_identity, scene.instance, i, &identity);
        if (!CAN(device_open, scene.instance, i, &scene.devices[i])) {
            scene.devices[i] = NULL;
        }
    }
    for (int i = 0; i < 3; i++) {
        ds_accel_plugin_device_t *device = scene.devices[of[i]];

        scene.streams[i] = NULL;
        scene.memory[i] = NULL;
        if (device != NULL && !CAN(stream_create, device, 0, 0, &scene.streams[i])) {
            scene.streams[i] = NULL;
        }
        if (device != NULL && !CAN(mem_alloc, device, BYTES, 0, 0, &scene.memory[i])) {
            scene.memory[i] = NULL;
        }
    }
    for (int i = 0; i < 2; i++) {
        scene.events[i] = NULL;
        if (scene.devices[0] != NULL &&
            !CAN(event_create, scene.devices[0], DS_ACCEL_EVENT_TIMING, &scene.events[i])) {
            scene.events[i] = NULL;
        }
    }
}

/* To the device, within it, to another device, and back. */
static void copy_about(void)
{
    ds_accel_plugin_stream_t **streams = scene.streams;
    void **memory = scene.memory;
    int fine = failures;

    for (uint32_t i = 0; i < BYTES; i++) {
        scene.host[0][i] = (unsigned char)(i * 7 + i / 251);
    }
    memset(scene.host[1], 0, BYTES);
    CAN(mem_copy_async, streams[0], memory[0], scene.host[0], BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
    CAN(event_record, scene.events[0], streams[0]);
    CAN(stream_wait_event, streams[1], scene.events[0]);
    CAN(mem_copy_async, streams[1], memory[1], memory[0], BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    CAN(mem_copy_peer_async, streams[1], scene.devices[1], memory[2], scene.devices[0], memory[1],
        BYTES);
    CAN(event_record, scene.events[1], streams[1]);
    CAN(stream_wait_event, streams[2], scene.events[1]); /* an event of another context */
    CAN(mem_copy_async, streams[2], scene.host[1], memory[2], BYTES, DS_ACCEL_COPY_INFER);
    CAN(mem_copy_async, streams[2], scene.host[2], scene.host[1], BYTES,
        DS_ACCEL_COPY_HOST_TO_HOST);
    for (int i = 0; i < 3; i++) {
        CAN(stream_synchronize, streams[i], UINT64_MAX);
    }
    if (failures == fine && memcmp(scene.host[2], scene.host[0], BYTES) != 0) {
        wrong("copies", "not what was sent");
    }
}

static void ask_events(void)
{
    double elapsed_ms = -1;

    CAN(event_query, scene.events[0]);
    CAN(event_synchronize, scene.events[1], UINT64_MAX);
    CAN(event_elapsed_ms, scene.events[0], scene.events[1], &elapsed_ms);
    CAN(stream_query, scene.streams[0]);
    CAN(stream_query, scene.streams[0]);
    CAN(device_synchronize, scene.devices[0], UINT64_MAX);
    CAN(device_health, scene.devices[0]);
}

static void run_tasks(void)
{
    int wanted = 0;

    atomic_store(&runs, 0);
    for (int i = 0; i < 3; i++) {
        wanted += CAN(stream_host_task, scene.streams[0], count_run, NULL);
    }
    /* Whatever becomes of the waiting: the device has the work of a stream that is destroyed. */
    CAN(stream_synchronize, scene.streams[0], UINT64_MAX);
    plugin->stream_destroy(scene.streams[0]);
    scene.streams[0] = NULL;
    if (!CAN(device_synchronize, scene.devices[0], UINT64_MAX)) {
        CAN(device_synchronize, scene.devices[0], UINT64_MAX);
    }
    if (atomic_load(&runs) != wanted) {
        char text[64];

        snprintf(text, sizeof(text), "%d were accepted, %d ran", wanted, atomic_load(&runs));
        wrong("host tasks", text);
    }
    if (!CAN(stream_create, scene.devices[0], 0, 0, &scene.streams[0])) {
        scene.streams[0] = NULL;
    }
}

static void replay(void)
{
    ds_accel_plugin_stream_t *stream = scene.streams[1];
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    const uint32_t pattern = 0x01020304;
    int fine = failures;

    if (!CAN(graph_capture_begin, stream, DS_ACCEL_CAPTURE_GLOBAL)) {
        return;
    }
    CAN(mem_fill_async, stream, scene.memory[0], &pattern, 4, BYTES);
    CAN(mem_copy_async, stream, scene.host[1], scene.memory[0], BYTES,
        DS_ACCEL_COPY_DEVICE_TO_HOST);
    CAN(stream_host_task, stream, count_run, NULL);
    if (!CAN(graph_capture_end, stream, &graph)) {
        return;
    }
    if (CAN(graph_instantiate, graph, 0, &exec)) {
        CAN(graph_launch, exec, stream);
        if (scene.streams[0] != NULL) {
            CAN(graph_launch, exec, scene.streams[0]);
        }
        CAN(device_synchronize, scene.devices[0], UINT64_MAX);
        plugin->graph_exec_destroy(exec);
    }
    plugin->graph_destroy(graph);
    if (failures == fine && memcmp(scene.host[1], &pattern, 4) != 0) {
        wrong("a graph", "its fill is not there");
    }
}

static void use_host_memory(void)
{
    static unsigned char own[BYTES];
    ds_accel_plugin_device_t *device = scene.devices[0];
    void *pinned = NULL;
    void *shared = NULL;

    if (CAN(mem_alloc_pinned, device, BYTES, 0, 0, &pinned)) {
        memset(pinned, 0x5a, BYTES);
        CAN(mem_copy, device, scene.memory[0], pinned, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
        CAN(mem_free_pinned, device, pinned);
    }
    if (CAN(mem_register, device, own, BYTES, 0)) {
        CAN(mem_unregister, device, own);
    }
    if (CAN(mem_alloc_managed, device, BYTES, 0, &shared)) {
        const uint16_t pattern = 0x7777;

        CAN(mem_fill_async, scene.streams[1], shared, &pattern, 2, BYTES);
        CAN(stream_synchronize, scene.streams[1], UINT64_MAX);
        CAN(mem_copy, device, scene.memory[0], shared, BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
        CAN(mem_copy, device, own, shared, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST);
        CAN(mem_free, device, shared);
    }
}

/* Our own handles as if they were the program's. */
static void wrap_natives(void)
{
    const struct {
        uint32_t kind;
        const void *object;
    } things[] = {{DS_ACCEL_NATIVE_STREAM, scene.streams[1]},
                  {DS_ACCEL_NATIVE_EVENT, scene.events[1]},
                  {DS_ACCEL_NATIVE_MEMORY, scene.memory[0]}};
    ds_accel_plugin_device_t *device = scene.devices[0];
    ds_accel_plugin_device_t *again = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;
    void *wrapped[3] = {NULL, NULL, NULL};

    for (int i = 0; i < 3; i++) {
        if (CAN(native_get, device, things[i].kind, things[i].object, &native, &offset) &&
            !CAN(native_wrap, device, things[i].kind, native, &wrapped[i])) {
            wrapped[i] = NULL;
        }
    }
    if (wrapped[0] != NULL && wrapped[1] != NULL) {
        CAN(stream_wait_event, wrapped[0], wrapped[1]);
        CAN(stream_query, wrapped[0]);
    }
    plugin->stream_destroy(wrapped[0]);
    plugin->event_destroy(wrapped[1]);
    if (wrapped[2] != NULL) {
        CAN(mem_free, device, wrapped[2]);
    }
    if (CAN(native_get, device, DS_ACCEL_NATIVE_CONTEXT, device, &native, &offset) &&
        CAN(device_open_native, scene.instance, 0, native, &again)) {
        plugin->device_close(again);
    }
}

static void tear_down(void)
{
    for (int i = 0; i < 3; i++) {
        plugin->stream_destroy(scene.streams[i]);
        if (scene.memory[i] != NULL) {
            CAN(mem_free, scene.devices[i / 2], scene.memory[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        plugin->event_destroy(scene.events[i]);
        plugin->device_close(scene.devices[i]);
    }
}

static int is_whole(void)
{
    for (int i = 0; i < 3; i++) {
        if (scene.streams[i] == NULL || scene.memory[i] == NULL) {
            return 0;
        }
    }
    return scene.events[0] != NULL && scene.events[1] != NULL;
}

/* Each step goes on whatever failed before, as long as there is something to do it with. */
static void play(void)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};

    if (!CAN(init, &host, &scene.instance)) {
        return;
    }
    CAN(backend_info, scene.instance, &info);
    set_up();
    if (is_whole()) {
        copy_about();
        ask_events();
        run_tasks();
        replay();
        use_host_memory();
        wrap_natives();
    }
    tear_down();
    plugin->shutdown(scene.instance);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void *must(void *address, const char *what)
{
    if (address == NULL) {
        fprintf(stderr, "%s: %s\n", what, dlerror());
        exit(1);
    }
    return address;
}

static void bind(const char *path)
{
    void *handle = must(dlopen(path, RTLD_NOW | RTLD_LOCAL), path);

    *(void **)&failing.fail = must(dlsym(handle, "failing_opencl_fail"), "fail");
    *(void **)&failing.calls = must(dlsym(handle, "failing_opencl_calls"), "calls");
    *(void **)&failing.has_failed = must(dlsym(handle, "failing_opencl_has_failed"), "has_failed");
    *(void **)&failing.name = must(dlsym(handle, "failing_opencl_name"), "name");
    *(void **)&failing.left = must(dlsym(handle, "failing_opencl_left"), "left");
}

/* A callback may be on its way still. */
static const char *settle(void)
{
    const char *left = failing.left();

    for (int i = 0; i < 2000 && left != NULL; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        left = failing.left();
    }
    return left;
}

static int play_round(void)
{
    const char *left;

    alarm(60); /* a hang ends it, with the signal's status */
    failures = 0;
    memset(&scene, 0, sizeof(scene));
    failing.fail(number, code);
    play();
    left = settle();
    if (left != NULL) {
        wrong("left", left);
    }
    return failing.has_failed();
}

int main(int argc, char **argv)
{
    ds_accel_entry_v1_t entry;
    int silent = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: exercise PLUGIN LIBRARY CODE\n");
        return 2;
    }
    host_library = argv[2];
    code = (int32_t)strtol(argv[3], NULL, 10);
    bind(host_library);
    *(void **)&entry =
        must(dlsym(must(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), argv[1]), DS_ACCEL_ENTRY_V1_SYMBOL),
             DS_ACCEL_ENTRY_V1_SYMBOL);
    plugin = entry(&host);
    play_round();
    printf("%ld calls\n", failing.calls());
    for (number = 1; number < ROUND_LIMIT && play_round(); number++) {
        silent += failures == 0;
    }
    printf("%ld failed in turn, %d of them in silence, %d told by their code\n", number - 1, silent,
           told);
    return number > 1 && number < ROUND_LIMIT && told > 0 ? 0 : 1;
}
