/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Walk through a plugin: each slot once or twice, as a program uses them, whatever they answer.
 *
 * Meant for runs in which calls of the vendor's library fail (SIM_FAIL, SIM_LOSE, rounds.c). A call
 * may fail then, if it tells so (call.c) and leaves its outputs as they were; each step goes on
 * with what there is. What was made is destroyed again, so that what is alive in the vendor's
 * library at the end was lost by the plugin. A host task that was accepted runs once, one that was
 * refused not at all. Where no call of a step failed, its data have to be right.
 */
#include "drive.h"

#include <stdatomic.h>
#include <string.h>

#define SIZE ((uint64_t)1 << 16)

static atomic_int tasks_accepted;
static atomic_int tasks_run;

/* A call with an output: a failure leaves it as it was. */
#define MAKE(slot, out, ...) \
    do { \
        (out) = (void *)&run->error; \
        if (CALL(run, slot, __VA_ARGS__, &(out)) != DS_ACCEL_OK) { \
            if ((void *)(out) != (void *)&run->error) { \
                drive_untold(run, #slot, "failed and wrote its output"); \
            } \
            (out) = NULL; \
        } \
    } while (0)

static void count_task(void *user_data, int32_t status)
{
    (void)status;
    if (user_data != NULL) {
        atomic_fetch_add((atomic_int *)user_data, 1);
    }
}

static void queue_task(struct run *run, ds_accel_plugin_stream_t *stream)
{
    if (CALL(run, stream_host_task, stream, count_task, &tasks_run) == DS_ACCEL_OK) {
        atomic_fetch_add(&tasks_accepted, 1);
    }
}

/* ---- what is known -------------------------------------------------------------------------- */

/* A vendor may have no variable that shows devices. */
static void walk_names(struct run *run)
{
    char name[64] = "";
    char value[256];
    uint32_t number = 0;
    const uint32_t index = 0;
    int32_t status = HAS(run, env_name_get)
                         ? ASK(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES,
                               0, name, (uint32_t)sizeof(name))
                         : DS_ACCEL_ERR_NOT_FOUND;

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return;
    }
    if (drive_judge(run, "env_name_get", status) == DS_ACCEL_OK) {
        CALL(run, visible_devices_value, run->instance, name, &index, 1, value,
             (uint32_t)sizeof(value), &number);
    }
}

static void walk_facts(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_process processes[4] = {0};
    struct ds_accel_link links[8] = {0};
    uint32_t number = 0;

    CALL(run, backend_info, run->instance, &info);
    for (uint32_t i = 0; i < run->device_count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};

        CALL(run, device_identity, run->instance, i, &identity);
        CALL(run, telemetry_get, run->instance, i, &telemetry);
        CALL(run, telemetry_processes, run->instance, i, processes, (uint32_t)sizeof(processes[0]),
             4, &number);
        CALL(run, links_get, run->instance, i, links, (uint32_t)sizeof(links[0]), 8, &number);
    }
    walk_names(run);
    CALL(run, range_push, run->instance, "walk", NULL, NULL);
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_push, run->instance, "walk", "domain", "category");
    CALL(run, range_pop, run->instance, "domain");
}

/* ---- memory --------------------------------------------------------------------------------- */

/* There and back, if both can be asked for. */
static void copy_about(struct run *run, void *memory, unsigned char *host, unsigned char *back)
{
    unsigned refused = run->refused;

    drive_pattern(host, SIZE, 1);
    CALL(run, mem_copy, run->device, memory, host, SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy, run->device, back, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_HOST);
    drive_want(run, refused != run->refused || drive_is_pattern(back, SIZE, 1),
               "a copy there and back");
}

/* Memory of the host that the device knows: pinned, and registered. */
static void walk_host(struct run *run, void *memory, unsigned char *own, unsigned char *back)
{
    ds_accel_plugin_device_t *device = run->device;
    void *address = NULL;
    void *pinned;

    MAKE(mem_alloc_pinned, pinned, device, SIZE, 0, DS_ACCEL_PINNED_MAPPED);
    if (pinned != NULL) {
        CALL(run, mem_device_pointer, device, pinned, &address);
        CALL(run, mem_free_pinned, device, pinned);
    }
    MAKE(mem_alloc_pinned, pinned, device, SIZE, 0, 0);
    if (pinned != NULL) {
        copy_about(run, memory, pinned, back);
        CALL(run, mem_free_pinned, device, pinned);
    }
    if (CALL(run, mem_register, device, own, SIZE, 0) == DS_ACCEL_OK) {
        copy_about(run, memory, own, back);
        CALL(run, mem_unregister, device, own);
    }
}

static void walk_memory(struct run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_pointer_info pointer_info = {.struct_size = sizeof(pointer_info)};
    static unsigned char own[SIZE] __attribute__((aligned(4096)));
    static unsigned char back[SIZE];
    void *memory;
    void *managed;

    CALL(run, mem_info, run->device, &info);
    MAKE(mem_alloc, memory, run->device, SIZE, (uint64_t)1 << 20, 0);
    if (memory != NULL) {
        copy_about(run, memory, own, back);
        CALL(run, mem_pointer_info, run->instance, run->device, memory, &pointer_info);
        walk_host(run, memory, own, back);
        CALL(run, mem_free, run->device, memory);
    }
    MAKE(mem_alloc_managed, managed, run->device, SIZE, 0);
    if (managed != NULL) {
        CALL(run, mem_free, run->device, managed);
    }
    CALL(run, mem_trim, run->device, 0);
}

static void walk_vmem(struct run *run)
{
    ds_accel_plugin_device_t *device = run->device;
    uint64_t size = 0;
    uint64_t recommended = 0;
    ds_accel_plugin_vmem_t *vmem;
    void *address = NULL;

    if (CALL(run, vmem_granularity, device, 0, &size, &recommended) != DS_ACCEL_OK) {
        return;
    }
    MAKE(vmem_create, vmem, device, 2 * size, 0);
    MAKE(vmem_reserve, address, device, 2 * size, 0, NULL, 0);
    if (vmem != NULL && address != NULL &&
        CALL(run, vmem_map, device, address, 2 * size, vmem, 0) == DS_ACCEL_OK) {
        CALL(run, vmem_set_access, device, address, 2 * size, DS_ACCEL_VMEM_ACCESS_READ_WRITE);
        RELEASE(run, vmem_unmap, device, address, 2 * size);
    }
    if (address != NULL) {
        CALL(run, vmem_release, device, address, 2 * size);
    }
    DROP(run, vmem_destroy, vmem);
}

static void walk_share(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event;
    unsigned char handle[1024];
    void *pointer;

    if (!HAS(run, ipc_memory_export) ||
        CALL(run, backend_info, run->instance, &info) != DS_ACCEL_OK) {
        return;
    }
    MAKE(mem_alloc, pointer, run->device, SIZE, 0, 0);
    if (pointer != NULL) {
        if (CALL(run, ipc_memory_export, run->device, pointer, handle, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
            CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
        }
        CALL(run, mem_free, run->device, pointer);
    }
    MAKE(event_create, event, run->device, DS_ACCEL_EVENT_INTERPROCESS);
    if (event != NULL) {
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes);
        DROP(run, event_destroy, event);
    }
}

/* ---- streams -------------------------------------------------------------------------------- */

struct scene {
    ds_accel_plugin_stream_t *stream, *other;
    ds_accel_plugin_event_t *events[2];
    void *memory; /* of the device, twice SIZE */
    unsigned char host[2][SIZE];
};

static int set_up(struct run *run, struct scene *scene, ds_accel_plugin_device_t *device)
{
    MAKE(stream_create, scene->stream, device, DS_ACCEL_STREAM_NON_BLOCKING, 0);
    MAKE(stream_create, scene->other, device, DS_ACCEL_STREAM_DEFAULT, 0);
    MAKE(event_create, scene->events[0], device, DS_ACCEL_EVENT_TIMING);
    MAKE(event_create, scene->events[1], device, DS_ACCEL_EVENT_TIMING);
    MAKE(mem_alloc, scene->memory, device, 2 * SIZE, 0, 0);
    return scene->stream != NULL && scene->other != NULL && scene->memory != NULL &&
           scene->events[0] != NULL && scene->events[1] != NULL;
}

/* Whatever becomes of the waiting: the device has the work of a stream that is destroyed. */
static void tear_down(struct run *run, struct scene *scene, ds_accel_plugin_device_t *device)
{
    DROP(run, event_destroy, scene->events[0]);
    DROP(run, event_destroy, scene->events[1]);
    DROP(run, stream_destroy, scene->stream);
    DROP(run, stream_destroy, scene->other);
    RELEASE(run, device_synchronize, device, UINT64_C(10000000000));
    if (scene->memory != NULL) {
        CALL(run, mem_free, device, scene->memory);
    }
}

/* Up, within and fills on one stream, down on the other, behind an event of the first. */
static void queue_work(struct run *run, struct scene *scene)
{
    ds_accel_plugin_stream_t *stream = scene->stream;
    char *memory = scene->memory;

    drive_pattern(scene->host[0], SIZE, 2);
    CALL(run, event_record, scene->events[0], stream);
    CALL(run, mem_copy_async, stream, memory, scene->host[0], SIZE, DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy_async, stream, memory + SIZE, memory, SIZE, DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    CALL(run, mem_fill_async, stream, memory, "abcd", 4, SIZE);
    CALL(run, mem_fill_async, stream, memory + 1, "ab", 2, SIZE / 2);
    CALL(run, mem_fill_async, stream, memory, "a", 1, SIZE / 4);
    queue_task(run, stream);
    CALL(run, event_record, scene->events[1], stream);
    CALL(run, stream_wait_event, scene->other, scene->events[1]);
    CALL(run, mem_copy_async, scene->other, scene->host[1], memory + SIZE, SIZE,
         DS_ACCEL_COPY_DEVICE_TO_HOST);
}

static void use_stream(struct run *run, struct scene *scene)
{
    ds_accel_plugin_stream_t *stream = scene->stream;
    unsigned refused = run->refused;
    double elapsed = 0;

    queue_work(run, scene);
    CALL(run, stream_query, stream);
    CALL(run, event_query, scene->events[1]);
    CALL(run, event_synchronize, scene->events[1], UINT64_MAX);
    CALL(run, stream_synchronize, stream, UINT64_C(10000000000));
    CALL(run, stream_synchronize, scene->other, UINT64_MAX);
    CALL(run, event_elapsed_ms, scene->events[0], scene->events[1], &elapsed);
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    drive_want(run, refused != run->refused || drive_is_pattern(scene->host[1], SIZE, 2),
               "copies of a stream");
    queue_task(run, stream); /* left to the device */
}

static void walk_stream(struct run *run)
{
    static struct scene scene;

    if (set_up(run, &scene, run->device)) {
        use_stream(run, &scene);
    }
    tear_down(run, &scene, run->device);
}

static void walk_async(struct run *run)
{
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    MAKE(stream_create, stream, run->device, DS_ACCEL_STREAM_DEFAULT, 0);
    if (stream != NULL) {
        if (CALL(run, mem_alloc_async, stream, SIZE, 0, NULL, 0, &pointer) == DS_ACCEL_OK &&
            CALL(run, mem_free_async, stream, pointer, NULL, 0) != DS_ACCEL_OK) {
            CALL(run, mem_free, run->device, pointer);
        }
        CALL(run, stream_synchronize, stream, UINT64_MAX);
    }
    DROP(run, stream_destroy, stream);
}

static void use_graph(struct run *run, struct scene *scene, ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec;
    uint64_t count = 0;
    uint32_t result = 0;

    MAKE(graph_instantiate, exec, graph, 0);
    if (exec != NULL) {
        CALL(run, graph_launch, exec, scene->stream);
        CALL(run, graph_launch, exec, scene->stream);
        CALL(run, stream_synchronize, scene->stream, UINT64_MAX);
        CALL(run, graph_exec_update, exec, graph, &result);
    }
    CALL(run, graph_node_count, graph, &count);
    CALL(run, device_synchronize, run->device, UINT64_MAX);
    DROP(run, graph_exec_destroy, exec);
}

static void walk_graph(struct run *run)
{
    static struct scene scene;
    ds_accel_plugin_graph_t *graph;
    unsigned refused = run->refused;
    uint32_t result = 0;

    if (!HAS(run, graph_capture_begin)) {
        return;
    }
    memset(scene.host[1], 0, SIZE);
    if (set_up(run, &scene, run->device) && CALL(run, graph_capture_begin, scene.stream,
                                                 DS_ACCEL_CAPTURE_THREAD_LOCAL) == DS_ACCEL_OK) {
        CALL(run, mem_fill_async, scene.stream, (char *)scene.memory + 1, "ab", 2, 4096);
        CALL(run, mem_copy_async, scene.stream, scene.host[1], (char *)scene.memory + 1, 4096,
             DS_ACCEL_COPY_DEVICE_TO_HOST);
        CALL(run, stream_host_task, scene.stream, count_task, NULL);
        CALL(run, graph_capture_status, scene.stream, &result);
        MAKE(graph_capture_end, graph, scene.stream);
        if (graph != NULL) {
            use_graph(run, &scene, graph);
            drive_want(run, refused != run->refused || memcmp(scene.host[1], "abab", 4) == 0,
                       "what a graph filled");
            DROP(run, graph_destroy, graph);
        }
    }
    tear_down(run, &scene, run->device);
}

/* ---- another device ------------------------------------------------------------------------- */

/* Down to the other device behind an event of the first, and from there to the host. */
static void copy_over(struct run *run, struct scene *here, struct scene *there,
                      ds_accel_plugin_device_t *peer)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned refused = run->refused;
    int is_unified = CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
                     (info.flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) != 0;

    drive_pattern(here->host[0], SIZE, 3);
    CALL(run, mem_copy_async, here->stream, here->memory, here->host[0], SIZE,
         DS_ACCEL_COPY_HOST_TO_DEVICE);
    CALL(run, mem_copy_peer_async, here->stream, peer, there->memory, run->device, here->memory,
         SIZE);
    CALL(run, event_record, here->events[0], here->stream);
    CALL(run, stream_wait_event, there->stream, here->events[0]);
    CALL(run, mem_copy_async, there->stream, there->host[0], there->memory, SIZE,
         is_unified ? DS_ACCEL_COPY_INFER : DS_ACCEL_COPY_DEVICE_TO_HOST);
    CALL(run, mem_copy_async, there->stream, there->host[1], there->host[0], SIZE,
         DS_ACCEL_COPY_HOST_TO_HOST);
    CALL(run, stream_synchronize, here->stream, UINT64_MAX);
    CALL(run, stream_synchronize, there->stream, UINT64_MAX);
    drive_want(run, refused != run->refused || drive_is_pattern(there->host[1], SIZE, 3),
               "a copy by another device");
}

static void walk_peers(struct run *run)
{
    static struct scene here;
    static struct scene there;
    ds_accel_plugin_device_t *peer = NULL;
    uint32_t can = 0;

    if (CALL(run, device_open, run->instance, 1, &peer) != DS_ACCEL_OK) {
        return;
    }
    if (CALL(run, peer_can_access, run->device, peer, &can) == DS_ACCEL_OK && can == 1) {
        CALL(run, peer_enable, run->device, peer);
        CALL(run, peer_disable, run->device, peer);
    }
    if (set_up(run, &here, run->device) & set_up(run, &there, peer)) {
        copy_over(run, &here, &there, peer);
    }
    tear_down(run, &here, run->device);
    tear_down(run, &there, peer);
    run->table->device_close(peer);
}

/* ---- the vendor's handles ------------------------------------------------------------------- */

/* Our own handles as if they were the program's. */
static void wrap_natives(struct run *run, struct scene *scene)
{
    const struct {
        uint32_t kind;
        const void *object;
    } things[] = {{DS_ACCEL_NATIVE_STREAM, scene->stream},
                  {DS_ACCEL_NATIVE_EVENT, scene->events[1]},
                  {DS_ACCEL_NATIVE_MEMORY, scene->memory}};
    void *wrapped[3] = {NULL, NULL, NULL};
    uint64_t native = 0;
    uint64_t offset = 0;

    for (int i = 0; i < 3; i++) {
        if (CALL(run, native_get, run->device, things[i].kind, things[i].object, &native,
                 &offset) == DS_ACCEL_OK) {
            MAKE(native_wrap, wrapped[i], run->device, things[i].kind, native);
        }
    }
    if (wrapped[0] != NULL && wrapped[1] != NULL) {
        CALL(run, stream_wait_event, wrapped[0], wrapped[1]);
        CALL(run, stream_query, wrapped[0]);
    }
    DROP(run, stream_destroy, wrapped[0]);
    DROP(run, event_destroy, wrapped[1]);
    if (wrapped[2] != NULL) {
        CALL(run, mem_free, run->device, wrapped[2]);
    }
}

static void walk_natives(struct run *run)
{
    static struct scene scene;
    ds_accel_plugin_device_t *again = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;

    if (!HAS(run, native_wrap)) {
        return;
    }
    if (set_up(run, &scene, run->device)) {
        CALL(run, event_record, scene.events[1], scene.stream);
        wrap_natives(run, &scene);
    }
    tear_down(run, &scene, run->device);
    if (HAS(run, device_open_native) &&
        CALL(run, native_get, run->device, DS_ACCEL_NATIVE_CONTEXT, run->device, &native,
             &offset) == DS_ACCEL_OK &&
        CALL(run, device_open_native, run->instance, 0, native, &again) == DS_ACCEL_OK) {
        run->table->device_close(again);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void walk_device(struct run *run)
{
    uint32_t support = 0;
    uint32_t current = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) != DS_ACCEL_OK) {
        return;
    }
    CALL(run, device_get_current, run->instance, &current);
    CALL(run, device_set_current, run->device);
    CALL(run, device_health, run->device);
    CALL(run, dtype_support, run->device, DS_ACCEL_DTYPE_BFLOAT16, &support);
    walk_memory(run);
    walk_stream(run);
    walk_async(run);
    walk_graph(run);
    walk_vmem(run);
    walk_share(run);
    if (run->device_count > 1) {
        walk_peers(run);
    }
    walk_natives(run);
    CALL(run, profiler_start, run->instance);
    CALL(run, profiler_stop, run->instance);
    run->table->device_close(run->device);
}

static void walk_probe(struct run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    if (CALL(run, probe, drive_host(run->table->name), &verdict) == DS_ACCEL_OK &&
        verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        printf("probe: state %u, reason %u, code %lld: %s\n", verdict.state, verdict.reason,
               (long long)verdict.vendor_code, verdict.detail);
        drive_want(run, verdict.reason != DS_ACCEL_REASON_NONE && verdict.detail[0] != '\0',
                   "a refusal has a reason and evidence");
    }
}

void drive_walk(struct run *run)
{
    run->is_tolerant = 1;
    atomic_store(&tasks_accepted, 0);
    atomic_store(&tasks_run, 0);
    walk_probe(run);
    if (CALL(run, init, drive_host(run->table->name), &run->instance) != DS_ACCEL_OK) {
        return;
    }
    CALL(run, device_count, run->instance, &run->device_count);
    walk_facts(run);
    walk_device(run);
    run->table->shutdown(run->instance);
    drive_want(run, atomic_load(&tasks_run) == atomic_load(&tasks_accepted),
               "a host task that is accepted runs once, and no other");
}
