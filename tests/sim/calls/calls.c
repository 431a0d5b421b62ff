/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A program that calls one plugin's table directly, for the tests of the simulated vendors:
 *
 *     calls PLUGIN facts              who each device is, and the versions
 *     calls PLUGIN telemetry [BYTES]  the sensors of each device, with BYTES allocated on device 0
 *     calls PLUGIN ranges             profiler ranges, nested
 *     calls PLUGIN memory             exhaust the memory of device 0, and go on
 *     calls PLUGIN share              export memory and an event of device 0
 *     calls PLUGIN opened             export an event of device 0 and open it
 *     calls PLUGIN vmem               map two pieces of memory the other way round, and copy over
 *     calls PLUGIN aligned            addresses at a multiple of 64 GiB
 *     calls PLUGIN released           a range of addresses, and others that are not reserved
 *     calls PLUGIN work               a bit of everything on device 0, with its result checked
 *     calls PLUGIN waited             streams come and go while another thread waits for the device
 *     calls PLUGIN gone               the device is waited for, of a stream that is gone
 *     calls PLUGIN imports            four threads open and close memory of another process
 *     calls PLUGIN peer               memory that is freed while it is copied to another device
 *     calls PLUGIN probe              the verdict, with a timer's signals all the while
 *     calls PLUGIN again              the verdict, while device 0 is open here
 *     calls PLUGIN shown VARIABLE     its value for devices 1 and 0, and for one named twice
 *     calls PLUGIN lost               a host task behind a copy that loses the device (SIM_LOSE)
 *     calls PLUGIN ended              a capture that another thread tries to end
 *     calls PLUGIN joined             the device is asked while two streams are in a capture
 *
 * "failed CALL: STATUS VENDOR_CODE VENDOR_TEXT: MESSAGE" is printed for a call that fails; what was
 * made until then is released, a second time if that failed. Exit code: 0 all is well, 1 a call
 * failed, 3 a failure was not told as it must be, 4 the device did something else.
 */
#include "plugin-api.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES (1u << 20)

struct run {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_instance_t *instance;
    ds_accel_plugin_device_t *device;
    struct ds_accel_error error;
    int code;
    /* of `work` */
    void *first, *second;
    unsigned char *pinned;
    ds_accel_plugin_stream_t *one, *two;
    ds_accel_plugin_event_t *start, *end;
    ds_accel_plugin_graph_t *graph;
    ds_accel_plugin_graph_exec_t *exec;
    int is_capturing;
    volatile int task_count;
};

/* ---- the host ------------------------------------------------------------------------------- */

static void host_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    if (level <= DS_ACCEL_LOG_WARN) {
        fprintf(stderr, "log: %s\n", message);
    }
}

static int32_t host_log_enabled(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled)
{
    (void)host;
    *enabled = level <= DS_ACCEL_LOG_WARN;
    return DS_ACCEL_OK;
}

/* From the environment alone: DS_ACCEL_<NAME>_<KEY>. */
static int32_t host_config_get(const struct ds_accel_host *host, const char *key, char *value,
                               uint32_t value_size, uint32_t *needed_out)
{
    const char *text;
    char name[128];
    size_t size;

    snprintf(name, sizeof(name), "DS_ACCEL_%s_%s", (const char *)host->host_data, key);
    for (char *at = name; *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    text = getenv(name);
    if (text == NULL) {
        return DS_ACCEL_ERR_NOT_FOUND;
    }
    size = strlen(text) + 1;
    if (needed_out != NULL) {
        *needed_out = (uint32_t)size;
    }
    if (size > value_size) {
        return DS_ACCEL_ERR_LIMIT;
    }
    memcpy(value, text, size);
    return DS_ACCEL_OK;
}

static uint64_t host_clock_ns(const struct ds_accel_host *host)
{
    struct timespec now;

    (void)host;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const void *host_extension(const struct ds_accel_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

static struct ds_accel_host host = {
    .struct_size = sizeof(host),
    .abi_major = DS_ACCEL_ABI_MAJOR,
    .features = DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE,
    .host_version = "0",
    .log = host_log,
    .log_enabled = host_log_enabled,
    .config_get = host_config_get,
    .clock_ns = host_clock_ns,
    .machine_root = "",
    .extension = host_extension,
};

/* ---- calls ---------------------------------------------------------------------------------- */

static void clear(struct run *run)
{
    memset(&run->error, 0, sizeof(run->error));
    run->error.struct_size = sizeof(run->error);
}

/* What a call answered; keeps the worst exit code. */
static int32_t tell(struct run *run, const char *call, int32_t status)
{
    if (status >= 0) {
        return status;
    }
    printf("failed %s: %d %lld %s: %s\n", call, status, (long long)run->error.vendor_code,
           run->error.vendor_text[0] != '\0' ? run->error.vendor_text : "-", run->error.message);
    if (run->error.code != status || run->error.message[0] == '\0') {
        printf("not told as it must be: code %d\n", run->error.code);
        run->code = 3;
    } else if (run->code == 0) {
        run->code = 1;
    }
    return status;
}

/* A slot that is not there is no failure of the run. */
#define CALL(run, name, ...) \
    (clear(run), (run)->table->name == NULL \
                     ? DS_ACCEL_ERR_UNSUPPORTED \
                     : tell(run, #name, (run)->table->name(__VA_ARGS__, &(run)->error)))
/* For what releases: again if it failed, so that a failure that comes once leaves nothing behind.
 */
#define RELEASE(run, name, ...) \
    do { \
        if (CALL(run, name, __VA_ARGS__) < 0) { \
            CALL(run, name, __VA_ARGS__); \
        } \
    } while (0)

static void wrong(struct run *run, const char *what)
{
    printf("wrong: %s\n", what);
    run->code = 4;
}

static const struct ds_accel_plugin *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol = library != NULL ? dlsym(library, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;
    ds_accel_entry_v1_t entry;

    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof(entry));
    return entry(&host);
}

/* ---- facts and sensors ---------------------------------------------------------------------- */

static void print_version(const char *name, const uint32_t version[4])
{
    printf("%s %u.%u.%u\n", name, version[0], version[1], version[2]);
}

static void do_facts(struct run *run, uint32_t count)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};

    for (uint32_t i = 0; i < count; i++) {
        struct ds_accel_device_identity who = {.struct_size = sizeof(who)};

        if (CALL(run, device_identity, run->instance, i, &who) == DS_ACCEL_OK) {
            printf("device %u vendor %u pci %s uuid %s node %s numa %d memory %llu name %s\n", i,
                   who.vendor_index, who.pci_address, who.uuid_text, who.node_path,
                   (who.valid & DS_ACCEL_IDENTITY_NUMA_NODE) != 0 ? (int)who.numa_node : -1,
                   (unsigned long long)who.total_memory_bytes, who.name);
        }
    }
    if (CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK) {
        print_version("runtime", info.runtime_version);
        print_version("driver", info.driver_version);
    }
}

static void print_telemetry(const struct ds_accel_telemetry *t, uint32_t index)
{
    printf("device %u valid 0x%llx load %u%% %u%% heat %d power %llu/%llu clocks %u %u memory "
           "%llu/%llu\n",
           index, (unsigned long long)t->valid, t->utilization_percent,
           t->memory_utilization_percent, t->temperature_millidegrees_c,
           (unsigned long long)t->power_milliwatts, (unsigned long long)t->power_limit_milliwatts,
           t->core_clock_khz, t->memory_clock_khz, (unsigned long long)t->memory_used_bytes,
           (unsigned long long)t->memory_total_bytes);
}

static void do_telemetry(struct run *run, uint32_t count, uint64_t bytes)
{
    void *memory = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        (bytes > 0 && CALL(run, mem_alloc, run->device, bytes, 0, 0, &memory) < 0)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct ds_accel_telemetry t = {.struct_size = sizeof(t)};
        struct ds_accel_process process = {.struct_size = sizeof(process)};
        uint32_t processes = 0;

        if (CALL(run, telemetry_get, run->instance, i, &t) == DS_ACCEL_OK) {
            print_telemetry(&t, i);
        }
        if (CALL(run, telemetry_processes, run->instance, i, &process, sizeof(process), 1,
                 &processes) == DS_ACCEL_OK) {
            printf("device %u processes %u memory %llu\n", i, processes,
                   (unsigned long long)process.memory_bytes);
        }
    }
    if (memory != NULL) {
        RELEASE(run, mem_free, run->device, memory);
    }
}

static void do_ranges(struct run *run)
{
    CALL(run, range_push, run->instance, "step", NULL, NULL);
    CALL(run, range_push, run->instance, "forward", "a domain", "a category");
    CALL(run, range_pop, run->instance, "a domain");
    CALL(run, range_push, run->instance, "backward", NULL, NULL);
    CALL(run, range_pop, run->instance, NULL);
    CALL(run, range_pop, run->instance, NULL);
}

/* Parts of 64 MiB until there is no more; then what fits is there again. */
static void do_memory(struct run *run)
{
    void *parts[64] = {NULL};
    uint32_t count = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    while (count < 64 &&
           CALL(run, mem_alloc, run->device, 64u << 20, 0, 0, &parts[count]) == DS_ACCEL_OK) {
        count++;
    }
    printf("parts %u\n", count);
    if (count > 0) {
        RELEASE(run, mem_free, run->device, parts[--count]);
        if (CALL(run, mem_alloc, run->device, BYTES, 0, 0, &parts[count]) == DS_ACCEL_OK) {
            printf("and one that fits\n");
            count++;
        }
    }
    while (count > 0) {
        RELEASE(run, mem_free, run->device, parts[--count]);
    }
}

static void do_share(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event = NULL;
    unsigned char handle[256];
    void *memory = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, backend_info, run->instance, &info) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory) < 0) {
        return;
    }
    if (CALL(run, ipc_memory_export, run->device, (char *)memory + 4096, handle,
             info.memory_handle_bytes) == DS_ACCEL_OK) {
        printf("memory: %u bytes\n", info.memory_handle_bytes);
        CALL(run, ipc_memory_unexport, run->device, handle, info.memory_handle_bytes);
    }
    if (CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) == DS_ACCEL_OK &&
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes) == DS_ACCEL_OK) {
        printf("event: %u bytes\n", info.event_handle_bytes);
    }
    run->table->event_destroy(event);
    RELEASE(run, mem_free, run->device, memory);
}

/* An event's handle, opened beside the event itself. */
/* Memory of the host is made beside a capture that forbids what could wait. */
static void do_capturing(struct run *run)
{
    static unsigned char page[8192];
    ds_accel_plugin_stream_t *stream = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    void *pinned = NULL;
    void *managed = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) < 0) {
        return;
    }
    if (CALL(run, graph_capture_begin, stream, DS_ACCEL_CAPTURE_GLOBAL) == DS_ACCEL_OK) {
        CALL(run, mem_alloc_pinned, run->device, BYTES, 0, 0, &pinned);
        CALL(run, mem_alloc_managed, run->device, BYTES, 0, &managed);
        CALL(run, mem_register, run->device, page, sizeof(page), 0);
        if (CALL(run, graph_capture_end, stream, &graph) == DS_ACCEL_OK) {
            printf("captured\n");
        }
        RELEASE(run, mem_unregister, run->device, page);
        RELEASE(run, mem_free, run->device, managed);
        RELEASE(run, mem_free_pinned, run->device, pinned);
        run->table->graph_destroy(graph);
    }
    run->table->stream_destroy(stream);
}

static void do_opened(struct run *run)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_event_t *opened = NULL;
    unsigned char handle[256];

    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event) == DS_ACCEL_OK &&
        CALL(run, ipc_event_export, event, handle, info.event_handle_bytes) == DS_ACCEL_OK &&
        CALL(run, ipc_event_open, run->device, handle, info.event_handle_bytes, &opened) ==
            DS_ACCEL_OK) {
        printf("event: opened\n");
    }
    run->table->event_destroy(opened);
    run->table->event_destroy(event);
}

/* [first half, second half] of the memory at the second and the first half of the addresses. */
static int32_t use_mapped(struct run *run, char *address, ds_accel_plugin_vmem_t *vmem,
                          uint64_t half, unsigned char *bytes)
{
    if (CALL(run, vmem_map, run->device, address, half, vmem, half) < 0) {
        return -1;
    }
    if (CALL(run, vmem_map, run->device, address + half, half, vmem, 0) == DS_ACCEL_OK) {
        if (CALL(run, vmem_set_access, run->device, address, 2 * half,
                 DS_ACCEL_VMEM_ACCESS_READ_WRITE) == DS_ACCEL_OK &&
            CALL(run, mem_copy, run->device, address + half, bytes, half,
                 DS_ACCEL_COPY_HOST_TO_DEVICE) == DS_ACCEL_OK &&
            CALL(run, mem_copy, run->device, bytes + half, address + half, half,
                 DS_ACCEL_COPY_DEVICE_TO_HOST) == DS_ACCEL_OK &&
            memcmp(bytes, bytes + half, (size_t)half) != 0) {
            wrong(run, "what was copied");
        }
        RELEASE(run, vmem_unmap, run->device, address + half, half);
    }
    RELEASE(run, vmem_unmap, run->device, address, half);
    return 0;
}

static void do_vmem(struct run *run)
{
    ds_accel_plugin_vmem_t *vmem = NULL;
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t half = 0;
    unsigned char *bytes;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &half) < 0 ||
        CALL(run, vmem_reserve, run->device, 4 * minimum, 0, NULL, 0, &address) < 0) {
        return;
    }
    half = 2 * minimum;
    bytes = malloc(2 * (size_t)half);
    if (bytes != NULL && CALL(run, vmem_create, run->device, 2 * half, 0, &vmem) == DS_ACCEL_OK) {
        for (uint64_t i = 0; i < half; i++) {
            bytes[i] = (unsigned char)(i * 7u + i / 251u);
            bytes[half + i] = 0;
        }
        use_mapped(run, address, vmem, half, bytes);
    }
    run->table->vmem_destroy(vmem);
    RELEASE(run, vmem_release, run->device, address, 4 * minimum);
    free(bytes);
}

#define FAR_APART (UINT64_C(64) << 30)

static void do_aligned(struct run *run)
{
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &recommended) < 0 ||
        CALL(run, vmem_reserve, run->device, minimum, FAR_APART, NULL, 0, &address) < 0) {
        return;
    }
    if ((uintptr_t)address % FAR_APART != 0) {
        wrong(run, "the alignment of addresses");
    }
    RELEASE(run, vmem_release, run->device, address, minimum);
}

/* Refused, and told. */
static void release_wrong(struct run *run, char *address, uint64_t size_bytes)
{
    clear(run);
    if (run->table->vmem_release(run->device, address, size_bytes, &run->error) !=
            DS_ACCEL_ERR_INVALID ||
        run->error.message[0] == '\0') {
        wrong(run, "a range to release that is none");
    }
}

static void do_released(struct run *run)
{
    void *address = NULL;
    uint64_t minimum = 0;
    uint64_t recommended = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, vmem_granularity, run->device, 0, &minimum, &recommended) < 0 ||
        CALL(run, vmem_reserve, run->device, 2 * minimum, 0, NULL, 0, &address) < 0) {
        return;
    }
    printf("granularity %llu\n", (unsigned long long)minimum);
    release_wrong(run, (char *)address + minimum, minimum);
    release_wrong(run, address, minimum);
    CALL(run, vmem_release, run->device, address, 2 * minimum);
    release_wrong(run, address, 2 * minimum);
}

/* ---- work ----------------------------------------------------------------------------------- */

static void task(void *user_data, int32_t status)
{
    struct run *run = user_data;

    run->task_count += status == DS_ACCEL_OK;
}

static int32_t make(struct run *run)
{
    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->second) < 0 ||
        CALL(run, mem_alloc_pinned, run->device, BYTES, 0, 0, (void **)&run->pinned) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->two) < 0 ||
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_TIMING, &run->start) < 0 ||
        CALL(run, event_create, run->device, DS_ACCEL_EVENT_TIMING, &run->end) < 0) {
        return -1;
    }
    return 0;
}

static void unmake(struct run *run)
{
    if (run->is_capturing) {
        clear(run);
        run->table->graph_capture_end(run->one, &run->graph, &run->error);
    }
    RELEASE(run, device_synchronize, run->device, UINT64_MAX); /* what was queued uses the memory */
    if (run->table->graph_destroy != NULL) {
        run->table->graph_exec_destroy(run->exec);
        run->table->graph_destroy(run->graph);
    }
    run->table->event_destroy(run->end);
    run->table->event_destroy(run->start);
    run->table->stream_destroy(run->two);
    run->table->stream_destroy(run->one);
    if (run->pinned != NULL) {
        RELEASE(run, mem_free_pinned, run->device, run->pinned);
    }
    if (run->second != NULL) {
        RELEASE(run, mem_free, run->device, run->second);
    }
    if (run->first != NULL) {
        RELEASE(run, mem_free, run->device, run->first);
    }
}

/* pinned -> first on one stream; behind its event, first -> second and a tail on the other. */
static int32_t queue_copies(struct run *run)
{
    const uint32_t tail = 0x01020304;

    for (uint32_t i = 0; i < BYTES; i++) {
        run->pinned[i] = (unsigned char)(i * 7u + i / 251u);
    }
    if (CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, mem_copy_async, run->one, run->first, run->pinned, BYTES,
             DS_ACCEL_COPY_HOST_TO_DEVICE) < 0 ||
        CALL(run, event_record, run->end, run->one) < 0 ||
        CALL(run, stream_wait_event, run->two, run->end) < 0 ||
        CALL(run, mem_copy_async, run->two, run->second, run->first, BYTES - 64,
             DS_ACCEL_COPY_DEVICE_TO_DEVICE) < 0 ||
        CALL(run, mem_fill_async, run->two, (char *)run->second + BYTES - 64, &tail, 4, 64) < 0 ||
        CALL(run, stream_host_task, run->two, task, run) < 0 ||
        CALL(run, event_record, run->end, run->two) < 0) {
        return -1;
    }
    return 0;
}

static int32_t wait_for_copies(struct run *run)
{
    double elapsed = -1;
    int32_t status;

    if (CALL(run, event_synchronize, run->end, UINT64_MAX) < 0 ||
        CALL(run, stream_synchronize, run->two, UINT64_MAX) < 0 ||
        CALL(run, event_elapsed_ms, run->start, run->end, &elapsed) < 0) {
        return -1;
    }
    status = CALL(run, event_query, run->end);
    if (status < 0) {
        return -1;
    }
    if (status != DS_ACCEL_OK) {
        wrong(run, "an event that was waited for is not reached");
    }
    status = CALL(run, stream_query, run->two);
    if (status < 0) {
        return -1;
    }
    if (status != DS_ACCEL_OK) {
        wrong(run, "a stream that was waited for is busy");
    }
    if (elapsed < 0) {
        wrong(run, "time goes backwards");
    }
    if (run->task_count != 1) {
        wrong(run, "the host task did not run once");
    }
    return 0;
}

/* A fill of the first, captured and launched twice. */
static int32_t work_graph(struct run *run)
{
    const unsigned char byte = 0x5a;

    if (run->table->graph_capture_begin == NULL) {
        return 0;
    }
    if (CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_GLOBAL) < 0) {
        return -1;
    }
    run->is_capturing = 1;
    if (CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES) < 0) {
        return -1;
    }
    run->is_capturing = 0;
    if (CALL(run, graph_capture_end, run->one, &run->graph) < 0 ||
        CALL(run, graph_instantiate, run->graph, 0, &run->exec) < 0 ||
        CALL(run, graph_launch, run->exec, run->one) < 0 ||
        CALL(run, graph_launch, run->exec, run->one) < 0 ||
        CALL(run, stream_synchronize, run->one, UINT64_MAX) < 0) {
        return -1;
    }
    return 0;
}

enum content {
    COPIED,
    FIRST,
    FILLED
};

static int is_right(const unsigned char *got, enum content content)
{
    for (uint32_t i = 0; i < BYTES; i++) {
        static const unsigned char tail[4] = {4, 3, 2, 1};
        unsigned char wanted = content == FILLED ? 0x5a
                               : content == COPIED && i >= BYTES - 64
                                   ? tail[i % 4]
                                   : (unsigned char)(i * 7u + i / 251u);

        if (got[i] != wanted) {
            return 0;
        }
    }
    return 1;
}

static void do_work(struct run *run)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    unsigned char *got = malloc(BYTES);

    if (got != NULL && make(run) == 0 && queue_copies(run) == 0 && wait_for_copies(run) == 0 &&
        work_graph(run) == 0 &&
        CALL(run, mem_copy, run->device, got, run->second, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST) ==
            DS_ACCEL_OK) {
        if (!is_right(got, COPIED)) {
            wrong(run, "what was copied");
        }
        if (CALL(run, mem_copy, run->device, got, run->first, BYTES,
                 DS_ACCEL_COPY_DEVICE_TO_HOST) == DS_ACCEL_OK &&
            !is_right(got, run->exec != NULL ? FILLED : FIRST)) {
            wrong(run, "what was captured");
        }
        if (CALL(run, mem_info, run->device, &info) == DS_ACCEL_OK &&
            info.available_bytes > info.total_bytes - 2 * BYTES) {
            wrong(run, "the figures of memory");
        }
    } else if (run->code == 0) {
        wrong(run, "no memory of the host");
    }
    if (run->device != NULL) {
        if (run->code == 1) {
            CALL(run, device_health, run->device);
        }
        unmake(run);
    }
    free(got);
}

static void do_shown(struct run *run, const char *variable)
{
    const uint32_t turned[2] = {1, 0};
    const uint32_t twice[2] = {1, 1};
    char value[512] = "untouched";

    if (CALL(run, visible_devices_value, run->instance, variable, turned, 2, value, sizeof(value),
             NULL) == DS_ACCEL_OK) {
        printf("shown %s\n", value);
    }
    strcpy(value, "untouched");
    CALL(run, visible_devices_value, run->instance, variable, twice, 2, value, sizeof(value), NULL);
    printf("then %s\n", value);
}

/* ---- several threads ------------------------------------------------------------------------- */

/* A thread with an error of its own; what another one may not know stays in it. */
struct helper {
    struct run run; /* a copy: the same handles */
    pthread_t thread;
    atomic_int *is_over;
    const unsigned char *handle;
    uint32_t handle_bytes;
    int32_t status;
};

static void start_helper(struct helper *helper, const struct run *run, void *(*work)(void *helper))
{
    helper->run = *run;
    if (pthread_create(&helper->thread, NULL, work, helper) != 0) {
        abort();
    }
}

static void join_helper(struct helper *helper, struct run *run)
{
    pthread_join(helper->thread, NULL);
    run->code = helper->run.code > run->code ? helper->run.code : run->code;
}

static void *ask_device(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    while (!atomic_load(helper->is_over)) {
        clear(run);
        helper->status = run->table->device_synchronize(run->device, 0, &run->error);
        if (helper->status < 0 && helper->status != DS_ACCEL_ERR_TIMEOUT) {
            tell(run, "device_synchronize", helper->status);
        }
    }
    return NULL;
}

static void do_waited(struct run *run)
{
    atomic_int is_over = 0;
    struct helper helper = {.is_over = &is_over};

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    start_helper(&helper, run, ask_device);
    for (int i = 0; i < 3000; i++) {
        ds_accel_plugin_stream_t *stream = NULL;

        if (CALL(run, stream_create, run->device, 0, 0, &stream) == DS_ACCEL_OK) {
            run->table->stream_destroy(stream);
        }
    }
    atomic_store(&is_over, 1);
    join_helper(&helper, run);
}

static void wait_for_flag(void *user_data, int32_t status)
{
    atomic_int *flag = user_data;

    (void)status;
    while (!atomic_load(flag)) {
        usleep(1000);
    }
}

/* Work of a stream that was destroyed is the device's: a wait with a deadline covers it. */
static void do_gone(struct run *run)
{
    static atomic_int is_over; /* a task that nobody waits for looks at it */
    int32_t status;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &run->one) < 0) {
        return;
    }
    if (CALL(run, stream_host_task, run->one, wait_for_flag, &is_over) < 0 ||
        CALL(run, stream_host_task, run->one, task, run) < 0) {
        atomic_store(&is_over, 1);
    }
    run->table->stream_destroy(run->one);
    for (uint64_t timeout_ns = 0; run->code == 0 && timeout_ns <= 10000000; timeout_ns += 5000000) {
        clear(run);
        status = run->table->device_synchronize(run->device, timeout_ns, &run->error);
        if (status != DS_ACCEL_ERR_TIMEOUT) {
            printf("device_synchronize: %d\n", status);
            wrong(run, "the stream's work was not waited for");
        }
    }
    atomic_store(&is_over, 1);
    if (CALL(run, device_synchronize, run->device, 60000000000u) == DS_ACCEL_OK &&
        run->task_count != 1) {
        wrong(run, "the stream's last task did not run");
    }
}

static void *open_and_close(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    for (int i = 0; i < 2000 && run->code == 0; i++) {
        void *memory = NULL;

        if (CALL(run, ipc_memory_open, run->device, helper->handle, helper->handle_bytes, 0,
                 &memory) == DS_ACCEL_OK) {
            CALL(run, ipc_memory_close, run->device, memory);
        }
    }
    return NULL;
}

/* Four that open, and at the end one opening that is left to device_close(). */
static void import(struct run *run, const unsigned char *handle, uint32_t handle_bytes)
{
    struct helper helpers[4];
    void *left = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        helpers[i] = (struct helper){.handle = handle, .handle_bytes = handle_bytes};
        start_helper(&helpers[i], run, open_and_close);
    }
    for (int i = 0; i < 4; i++) {
        join_helper(&helpers[i], run);
    }
    for (int i = 0; i < 2; i++) {
        CALL(run, ipc_memory_open, run->device, handle, handle_bytes, 0, &left);
    }
}

/* In the child, which owns the memory until the parent has done with it. */
static int own(struct run *run, int to_parent, int from_parent)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char message[256] = {0};
    void *memory = NULL;

    if (CALL(run, init, &host, &run->instance) == DS_ACCEL_OK &&
        CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory) == DS_ACCEL_OK &&
        CALL(run, ipc_memory_export, run->device, memory, message + 1, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
        message[0] = (unsigned char)info.memory_handle_bytes;
    }
    if (write(to_parent, message, sizeof(message)) == (ssize_t)sizeof(message)) {
        (void)!read(from_parent, message, 1); /* its end */
    }
    RELEASE(run, mem_free, run->device, memory);
    run->table->device_close(run->device);
    run->table->shutdown(run->instance);
    fflush(stdout);
    return run->code;
}

/* Before the library is started here: it does not survive a fork. */
static void do_imports(struct run *run)
{
    unsigned char message[256] = {0};
    int up[2];
    int down[2];
    int status = 0;
    pid_t child;

    if (pipe(up) != 0 || pipe(down) != 0) {
        abort();
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        close(down[1]);
        unsetenv("SIM_REPORT"); /* that of the importer counts */
        exit(own(run, up[1], down[0]));
    }
    if (child > 0 && read(up[0], message, sizeof(message)) == (ssize_t)sizeof(message) &&
        message[0] > 0 && CALL(run, init, &host, &run->instance) == DS_ACCEL_OK) {
        import(run, message + 1, message[0]);
        run->table->device_close(run->device);
        run->table->shutdown(run->instance);
    } else {
        wrong(run, "nothing was exported");
    }
    close(down[1]);
    waitpid(child, &status, 0);
    if (status != 0) {
        wrong(run, "the exporter failed");
    }
}

static void *raise_flag(void *given)
{
    struct helper *helper = given;

    usleep(100000); /* meanwhile the memory is freed, or somebody waits to free it */
    atomic_store(helper->is_over, 1);
    return NULL;
}

/* The copy is queued behind a task, and its source freed before the task has ended. */
static void copy_freed(struct run *run, ds_accel_plugin_device_t *peer, unsigned char *bytes)
{
    atomic_int flag = 0;
    struct helper helper = {.is_over = &flag};
    void *copied = NULL;

    if (CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, peer, BYTES, 0, 0, &copied) < 0 ||
        CALL(run, mem_copy, run->device, run->first, bytes, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE) <
            0 ||
        CALL(run, stream_host_task, run->one, wait_for_flag, &flag) < 0 ||
        CALL(run, mem_copy_peer_async, run->one, peer, copied, run->device, run->first, BYTES) <
            0) {
        return;
    }
    start_helper(&helper, run, raise_flag);
    RELEASE(run, mem_free, run->device, run->first);
    if (CALL(run, stream_synchronize, run->one, UINT64_MAX) == DS_ACCEL_OK &&
        CALL(run, mem_copy, peer, bytes + BYTES, copied, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST) ==
            DS_ACCEL_OK &&
        memcmp(bytes, bytes + BYTES, BYTES) != 0) {
        wrong(run, "what was copied");
    }
    join_helper(&helper, run);
    RELEASE(run, mem_free, peer, copied);
    run->table->stream_destroy(run->one);
}

static void do_peer(struct run *run)
{
    ds_accel_plugin_device_t *peer = NULL;
    unsigned char *bytes = calloc(2, BYTES);

    for (uint32_t i = 0; bytes != NULL && i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * 7u + i / 251u);
    }
    if (bytes != NULL && CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, device_open, run->instance, 1, &peer) == DS_ACCEL_OK) {
        copy_freed(run, peer, bytes);
    }
    run->table->device_close(peer);
    free(bytes);
}

/* ---- probe ------------------------------------------------------------------------------------
 */

static void on_alarm(int signal_number)
{
    (void)signal_number;
}

static void on_crash(int signal_number)
{
    (void)signal_number;
    (void)!write(1, "crashed\n", 8);
    _exit(9);
}

static void do_probe(struct run *run)
{
    const struct itimerval every_ms = {{0, 1000}, {0, 1000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    signal(SIGABRT, on_crash);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every_ms, NULL);
    CALL(run, probe, &host, &verdict);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("state %u reason %u %s\n", verdict.state, verdict.reason, verdict.detail);
    if (waitpid(-1, NULL, WNOHANG) != -1) {
        wrong(run, "a process is left");
    }
}

/* A runtime that has started in this process does not survive a fork. */
static void do_again(struct run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, probe, &host, &verdict) == DS_ACCEL_OK) {
        printf("state %u reason %u %s\n", verdict.state, verdict.reason, verdict.detail);
    }
}

/* ---- losses and captures --------------------------------------------------------------------- */

static void note_status(void *user_data, int32_t status)
{
    atomic_int *answer = user_data;

    atomic_store(answer, status == DS_ACCEL_OK ? 1 : status);
}

/*
 * The first copy loses the device; the task behind it is not run by the runtime. Who learns of the
 * loss from a call that waits for nothing, and waits then, finds that it ran.
 */
static void do_lost(struct run *run)
{
    atomic_int answer = 0;
    atomic_int flag = 0;
    void *memory = NULL;
    int32_t status = DS_ACCEL_OK;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->second) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, stream_host_task, run->one, wait_for_flag, &flag) < 0 ||
        CALL(run, mem_copy_async, run->one, run->second, run->first, BYTES,
             DS_ACCEL_COPY_DEVICE_TO_DEVICE) < 0 ||
        CALL(run, stream_host_task, run->one, note_status, &answer) < 0) {
        wrong(run, "the loss was told too early");
    }
    atomic_store(&flag, 1); /* now the copy may begin */
    while (run->code == 0 && status == DS_ACCEL_OK) {
        clear(run);
        status = run->table->mem_alloc(run->device, BYTES, 0, 0, &memory, &run->error);
        if (status == DS_ACCEL_OK) {
            run->table->mem_free(run->device, memory, &run->error);
        }
    }
    clear(run);
    status = run->table->stream_synchronize(run->one, UINT64_MAX, &run->error);
    if (status != DS_ACCEL_ERR_DEVICE_LOST || atomic_load(&answer) != DS_ACCEL_ERR_DEVICE_LOST) {
        printf("stream_synchronize %d, the task %d\n", status, atomic_load(&answer));
        wrong(run, "a task of a lost device did not run");
    }
    run->table->stream_destroy(run->one);
    run->table->mem_free(run->device, run->first, &run->error);
    run->table->mem_free(run->device, run->second, &run->error);
}

static void *end_capture(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    clear(run);
    helper->status = run->table->graph_capture_end(run->one, &run->graph, &run->error);
    return NULL;
}

/* Where only the thread that began it can end a capture, what it has recorded is still whole. */
static void do_ended(struct run *run)
{
    struct helper helper = {.status = 0};
    const unsigned char byte = 0x5a;
    uint32_t capturing = 9;

    if (make(run) < 0 ||
        CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_THREAD_LOCAL) < 0 ||
        CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES) < 0 ||
        CALL(run, stream_host_task, run->one, task, run) < 0) {
        return;
    }
    start_helper(&helper, run, end_capture);
    join_helper(&helper, run);
    if (helper.status == DS_ACCEL_OK) {
        printf("another thread ended it\n");
        run->graph = helper.run.graph;
    } else if (CALL(run, graph_capture_status, run->one, &capturing) < 0 ||
               capturing != DS_ACCEL_CAPTURING_YES ||
               CALL(run, graph_capture_end, run->one, &run->graph) < 0) {
        wrong(run, "the capture was lost");
    }
    if (run->graph != NULL && CALL(run, graph_instantiate, run->graph, 0, &run->exec) == 0 &&
        CALL(run, graph_launch, run->exec, run->one) == 0 &&
        CALL(run, stream_synchronize, run->one, UINT64_MAX) == 0 && run->task_count != 1) {
        wrong(run, "the captured task did not run once");
    }
    unmake(run);
}

static void do_joined(struct run *run)
{
    const unsigned char byte = 0x5a;
    int32_t status;

    if (make(run) < 0 || CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_RELAXED) < 0 ||
        CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, stream_wait_event, run->two, run->start) < 0 ||
        CALL(run, mem_fill_async, run->two, run->first, &byte, 1, BYTES) < 0) {
        return;
    }
    clear(run);
    status = run->table->device_synchronize(run->device, 0, &run->error);
    if (status != DS_ACCEL_OK) {
        tell(run, "device_synchronize", status);
    }
    if (CALL(run, event_record, run->end, run->two) < 0 ||
        CALL(run, stream_wait_event, run->one, run->end) < 0 ||
        CALL(run, graph_capture_end, run->one, &run->graph) < 0) {
        wrong(run, "asking the device broke a capture");
    }
    unmake(run);
}

/* ---- the program ---------------------------------------------------------------------------- */

static void dispatch(struct run *run, const char *command, const char *argument)
{
    uint32_t count = 0;

    if (strcmp(command, "probe") == 0) {
        do_probe(run);
        return;
    }
    if (strcmp(command, "imports") == 0) {
        do_imports(run);
        return;
    }
    if (CALL(run, init, &host, &run->instance) < 0) {
        return;
    }
    if (CALL(run, device_count, run->instance, &count) == DS_ACCEL_OK) {
        if (strcmp(command, "facts") == 0) {
            do_facts(run, count);
        } else if (strcmp(command, "telemetry") == 0) {
            do_telemetry(run, count, argument != NULL ? strtoull(argument, NULL, 0) : 0);
        } else if (strcmp(command, "ranges") == 0) {
            do_ranges(run);
        } else if (strcmp(command, "memory") == 0) {
            do_memory(run);
        } else if (strcmp(command, "share") == 0) {
            do_share(run);
        } else if (strcmp(command, "capturing") == 0) {
            do_capturing(run);
        } else if (strcmp(command, "opened") == 0) {
            do_opened(run);
        } else if (strcmp(command, "vmem") == 0) {
            do_vmem(run);
        } else if (strcmp(command, "aligned") == 0) {
            do_aligned(run);
        } else if (strcmp(command, "released") == 0) {
            do_released(run);
        } else if (strcmp(command, "waited") == 0) {
            do_waited(run);
        } else if (strcmp(command, "gone") == 0) {
            do_gone(run);
        } else if (strcmp(command, "again") == 0) {
            do_again(run);
        } else if (strcmp(command, "shown") == 0) {
            do_shown(run, argument);
        } else if (strcmp(command, "peer") == 0) {
            do_peer(run);
        } else if (strcmp(command, "lost") == 0) {
            do_lost(run);
        } else if (strcmp(command, "ended") == 0) {
            do_ended(run);
        } else if (strcmp(command, "joined") == 0) {
            do_joined(run);
        } else {
            do_work(run);
        }
    }
    run->table->device_close(run->device);
    run->table->shutdown(run->instance);
}

int main(int argc, char **argv)
{
    struct run run;
    const char *root = getenv("DS_ACCEL_ROOT");

    memset(&run, 0, sizeof(run));
    if (argc < 3) {
        fprintf(
            stderr,
            "usage: calls PLUGIN facts|telemetry|ranges|memory|share|capturing|opened|vmem|aligned|"
            "released|work|waited|gone|imports|peer|probe|again|shown|lost|ended|joined\n");
        return 2;
    }
    host.machine_root = root != NULL ? root : "";
    run.table = load(argv[1]);
    if (run.table == NULL) {
        return 2;
    }
    host.host_data = (void *)(uintptr_t)run.table->name;
    dispatch(&run, argv[2], argc > 3 ? argv[3] : NULL);
    fflush(stdout);
    return run.code;
}
