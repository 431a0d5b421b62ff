/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Walk through a plugin: each slot once or twice, as a program uses them, whatever they answer.
 *
 *     walk PLUGIN.so [NAME=VALUE ...]
 *     walk --facts PLUGIN.so [NAME=VALUE ...]
 *     walk --polled PLUGIN.so [NAME=VALUE ...]
 *     walk --ranges PLUGIN.so [NAME=VALUE ...]
 *
 * With --facts it opens nothing, and prints what is known of each device without that: a line of
 * identity, one of telemetry (only what is valid), one for each link and process. With --polled the
 * telemetry was asked for before, POLL_MS ago, as a monitor does; what is a rate since then is
 * known. With --ranges it pushes and pops ranges of several domains and categories, nothing else.
 *
 * Meant to be run with failures of the simulated runtime (SIM_FAIL, SIM_LOSE): a call may fail, but
 * then it says so as docs/plugin-abi.md asks: a listed status, the same in the error, with a
 * message of one line, and outputs as they were. What was made is destroyed again, so that what is
 * alive in the simulator at exit was lost by the plugin. A host task that was accepted runs once.
 *
 * Prints each failure as "SLOT: MESSAGE" on stdout, and what is wrong on stderr; the exit code is 1
 * then, 3 if the plugin did not start, else 0. NAME=VALUE are options.
 */
#include "plugin-api.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct ds_accel_plugin *table;
static char **options;
static int option_count;
static int wrong;
static atomic_int tasks_accepted;
static atomic_int tasks_run;

/* ---- the host ------------------------------------------------------------------------------- */

static void host_log(const struct ds_accel_host *host, uint32_t level, const char *message)
{
    (void)host;
    if (level <= DS_ACCEL_LOG_WARN) {
        printf("log: %s\n", message);
    }
}

static int32_t host_log_enabled(const struct ds_accel_host *host, uint32_t level, uint32_t *enabled)
{
    (void)host;
    *enabled = level <= DS_ACCEL_LOG_WARN;
    return DS_ACCEL_OK;
}

static int32_t host_config_get(const struct ds_accel_host *host, const char *key, char *value,
                               uint32_t value_size, uint32_t *needed_out)
{
    size_t length = strlen(key);

    (void)host;
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], key, length) == 0 && options[i][length] == '=') {
            const char *text = options[i] + length + 1;
            uint32_t needed = (uint32_t)strlen(text) + 1;

            if (needed_out != NULL) {
                *needed_out = needed;
            }
            if (needed > value_size) {
                return DS_ACCEL_ERR_LIMIT;
            }
            memcpy(value, text, needed);
            return DS_ACCEL_OK;
        }
    }
    return DS_ACCEL_ERR_NOT_FOUND;
}

static uint64_t host_clock_ns(const struct ds_accel_host *host)
{
    struct timespec now;

    (void)host;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static const void *host_extension(const struct ds_accel_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static struct ds_accel_error error;

static struct ds_accel_error *fresh(void)
{
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    return &error;
}

static void complain(const char *slot, const char *what)
{
    fprintf(stderr, "%s: %s (status %d, \"%s\")\n", slot, what, error.code, error.message);
    wrong++;
}

static int32_t judge(const char *slot, int32_t status)
{
    if (status >= 0) {
        return status;
    }
    if (status < DS_ACCEL_ERR_INTERNAL) {
        complain(slot, "a status that is not listed");
    }
    if (error.code != status) {
        complain(slot, "error.code is not the status");
    }
    if (error.message[0] == '\0' || strchr(error.message, '\n') != NULL) {
        complain(slot, "no message, or one of several lines");
    }
    if (error.vendor_text[0] != '\0' && error.vendor_code == 0) {
        complain(slot, "the vendor's text without its code");
    }
    printf("%s: %s\n", slot, error.message);
    return status;
}

/* DS_ACCEL_ERR_UNSUPPORTED for an absent slot, as of the host. */
#define CALL(slot, ...) \
    (table->slot == NULL ? DS_ACCEL_ERR_UNSUPPORTED \
                         : judge(#slot, (fresh(), table->slot(__VA_ARGS__, &error))))
#define DROP(slot, handle) \
    do { \
        if (table->slot != NULL) { \
            table->slot(handle); \
        } \
    } while (0)
/* A call with an output: a failure leaves it as it was. */
#define MAKE(slot, out, ...) \
    do { \
        (out) = (void *)&error; \
        if (CALL(slot, __VA_ARGS__, &(out)) != DS_ACCEL_OK) { \
            if ((void *)(out) != (void *)&error) { \
                complain(#slot, "failed and wrote its output"); \
            } \
            (out) = NULL; \
        } \
    } while (0)

static void count_task(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
    atomic_fetch_add(&tasks_run, 1);
}

#define BYTES ((uint64_t)1 << 16)

/* ---- the parts ------------------------------------------------------------------------------ */

static void walk_facts(ds_accel_plugin_instance_t *instance, uint32_t count)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_process processes[4] = {0};
    struct ds_accel_link links[8] = {0};
    char value[256];
    uint32_t number = 0;

    CALL(backend_info, instance, &info);
    for (uint32_t i = 0; i < count; i++) {
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};

        CALL(device_identity, instance, i, &identity);
        CALL(telemetry_get, instance, i, &telemetry);
        CALL(telemetry_processes, instance, i, processes, (uint32_t)sizeof(processes[0]), 4,
             &number);
        CALL(links_get, instance, i, links, (uint32_t)sizeof(links[0]), 8, &number);
    }
    if (table->env_name_get != NULL &&
        CALL(env_name_get, instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, value,
             (uint32_t)sizeof(value)) == DS_ACCEL_OK) {
        char name[64];
        const uint32_t index = 0;

        snprintf(name, sizeof(name), "%.63s", value);
        CALL(visible_devices_value, instance, name, &index, 1, value, (uint32_t)sizeof(value),
             &number);
    }
    CALL(range_push, instance, "walk", NULL, NULL);
    CALL(range_pop, instance, NULL);
    CALL(range_push, instance, "walk", "domain", "category");
    CALL(range_pop, instance, "domain");
}

static void walk_memory(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    struct ds_accel_pointer_info pointer_info = {.struct_size = sizeof(pointer_info)};
    static char own[1 << 16] __attribute__((aligned(4096)));
    void *pointer;
    void *address = NULL;

    CALL(mem_info, device, &info);
    MAKE(mem_alloc, pointer, device, BYTES, (uint64_t)1 << 20, 0);
    if (pointer != NULL) {
        CALL(mem_copy, device, pointer, own, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
        CALL(mem_copy, device, own, pointer, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST);
        CALL(mem_pointer_info, instance, device, pointer, &pointer_info);
        CALL(mem_free, device, pointer);
    }
    MAKE(mem_alloc_managed, pointer, device, BYTES, 0);
    if (pointer != NULL) {
        CALL(mem_free, device, pointer);
    }
    MAKE(mem_alloc_pinned, pointer, device, BYTES, 0, DS_ACCEL_PINNED_MAPPED);
    if (pointer != NULL) {
        CALL(mem_device_pointer, device, pointer, &address);
        CALL(mem_free_pinned, device, pointer);
    }
    if (CALL(mem_register, device, own, BYTES, 0) == DS_ACCEL_OK) {
        CALL(mem_unregister, device, own);
    }
    CALL(mem_trim, device, 0);
}

static void walk_stream(ds_accel_plugin_device_t *device)
{
    static char host[1 << 16];
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *events[2];
    void *pointer;
    double elapsed = 0;

    MAKE(stream_create, stream, device, DS_ACCEL_STREAM_NON_BLOCKING, 0);
    MAKE(event_create, events[0], device, DS_ACCEL_EVENT_TIMING);
    MAKE(event_create, events[1], device, DS_ACCEL_EVENT_TIMING);
    MAKE(mem_alloc, pointer, device, BYTES, 0, 0);
    if (stream != NULL && pointer != NULL && events[0] != NULL && events[1] != NULL) {
        CALL(event_record, events[0], stream);
        CALL(mem_copy_async, stream, pointer, host, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE);
        CALL(mem_fill_async, stream, pointer, "abcd", 4, BYTES);
        CALL(mem_fill_async, stream, (char *)pointer + 1, "ab", 2, BYTES / 2);
        CALL(mem_copy_async, stream, host, pointer, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST);
        if (CALL(stream_host_task, stream, count_task, NULL) == DS_ACCEL_OK) {
            atomic_fetch_add(&tasks_accepted, 1);
        }
        CALL(event_record, events[1], stream);
        CALL(stream_wait_event, stream, events[1]);
        CALL(stream_query, stream);
        CALL(event_query, events[1]);
        CALL(event_synchronize, events[1], UINT64_MAX);
        CALL(stream_synchronize, stream, UINT64_C(10000000000));
        CALL(stream_synchronize, stream, UINT64_MAX);
        CALL(event_elapsed_ms, events[0], events[1], &elapsed);
        CALL(device_synchronize, device, UINT64_MAX);
    }
    CALL(device_synchronize, device, UINT64_C(10000000000));
    if (pointer != NULL) {
        CALL(mem_free, device, pointer);
    }
    DROP(event_destroy, events[0]);
    DROP(event_destroy, events[1]);
    DROP(stream_destroy, stream);
}

static void walk_async(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_stream_t *stream;
    void *pointer = NULL;

    MAKE(stream_create, stream, device, DS_ACCEL_STREAM_DEFAULT, 0);
    if (stream != NULL) {
        if (CALL(mem_alloc_async, stream, BYTES, 0, NULL, 0, &pointer) == DS_ACCEL_OK &&
            CALL(mem_free_async, stream, pointer, NULL, 0) != DS_ACCEL_OK) {
            CALL(mem_free, device, pointer);
        }
        CALL(stream_synchronize, stream, UINT64_MAX);
    }
    DROP(stream_destroy, stream);
}

static void walk_graph(ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *exec = NULL;
    uint64_t count = 0;
    uint32_t result = 0;
    void *pointer;

    MAKE(stream_create, stream, device, DS_ACCEL_STREAM_DEFAULT, 0);
    MAKE(mem_alloc, pointer, device, BYTES, 0, 0);
    if (stream != NULL && pointer != NULL &&
        CALL(graph_capture_begin, stream, DS_ACCEL_CAPTURE_THREAD_LOCAL) == DS_ACCEL_OK) {
        CALL(mem_fill_async, stream, (char *)pointer + 1, "ab", 2, 4096);
        CALL(stream_host_task, stream, count_task, NULL);
        CALL(graph_capture_status, stream, &result);
        MAKE(graph_capture_end, graph, stream);
        if (graph != NULL) {
            MAKE(graph_instantiate, exec, graph, 0);
        }
        if (exec != NULL) {
            CALL(graph_launch, exec, stream);
            CALL(graph_launch, exec, stream);
            CALL(stream_synchronize, stream, UINT64_MAX);
            CALL(graph_exec_update, exec, graph, &result);
        }
        if (graph != NULL) {
            CALL(graph_node_count, graph, &count);
        }
    }
    CALL(device_synchronize, device, UINT64_MAX);
    DROP(graph_exec_destroy, exec);
    DROP(graph_destroy, graph);
    if (pointer != NULL) {
        CALL(mem_free, device, pointer);
    }
    DROP(stream_destroy, stream);
}

static void walk_vmem(ds_accel_plugin_device_t *device)
{
    uint64_t size = 0;
    uint64_t recommended = 0;
    ds_accel_plugin_vmem_t *vmem;
    void *address = NULL;

    if (CALL(vmem_granularity, device, 0, &size, &recommended) != DS_ACCEL_OK) {
        return;
    }
    MAKE(vmem_create, vmem, device, 2 * size, 0);
    MAKE(vmem_reserve, address, device, 2 * size, 0, NULL, 0);
    if (vmem != NULL && address != NULL &&
        CALL(vmem_map, device, address, 2 * size, vmem, 0) == DS_ACCEL_OK) {
        CALL(vmem_set_access, device, address, 2 * size, DS_ACCEL_VMEM_ACCESS_READ_WRITE);
        if (CALL(vmem_unmap, device, address, 2 * size) != DS_ACCEL_OK) {
            CALL(vmem_unmap, device, address, 2 * size);
        }
    }
    if (address != NULL) {
        CALL(vmem_release, device, address, 2 * size);
    }
    DROP(vmem_destroy, vmem);
}

static void walk_share(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    ds_accel_plugin_event_t *event;
    unsigned char handle[1024];
    void *pointer;

    if (table->ipc_memory_export == NULL || CALL(backend_info, instance, &info) != DS_ACCEL_OK) {
        return;
    }
    MAKE(mem_alloc, pointer, device, BYTES, 0, 0);
    if (pointer != NULL) {
        if (CALL(ipc_memory_export, device, pointer, handle, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
            CALL(ipc_memory_unexport, device, handle, info.memory_handle_bytes);
        }
        CALL(mem_free, device, pointer);
    }
    MAKE(event_create, event, device, DS_ACCEL_EVENT_INTERPROCESS);
    if (event != NULL) {
        CALL(ipc_event_export, event, handle, info.event_handle_bytes);
        DROP(event_destroy, event);
    }
}

static void walk_peers(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device)
{
    ds_accel_plugin_device_t *peer = NULL;
    uint32_t can = 0;

    if (CALL(device_open, instance, 1, &peer) != DS_ACCEL_OK) {
        return;
    }
    if (CALL(peer_can_access, device, peer, &can) == DS_ACCEL_OK && can == 1) {
        CALL(peer_enable, device, peer);
        CALL(peer_disable, device, peer);
    }
    table->device_close(peer);
}

static void walk_device(ds_accel_plugin_instance_t *instance, uint32_t count)
{
    ds_accel_plugin_device_t *device = NULL;
    uint32_t support = 0;
    uint32_t current = 0;

    if (CALL(device_open, instance, 0, &device) != DS_ACCEL_OK) {
        return;
    }
    CALL(device_get_current, instance, &current);
    CALL(device_set_current, device);
    CALL(device_health, device);
    CALL(dtype_support, device, DS_ACCEL_DTYPE_BFLOAT16, &support);
    walk_memory(instance, device);
    walk_stream(device);
    walk_async(device);
    walk_graph(device);
    walk_vmem(device);
    walk_share(instance, device);
    if (count > 1) {
        walk_peers(instance, device);
    }
    CALL(profiler_start, instance);
    CALL(profiler_stop, instance);
    table->device_close(device);
}

/* ---- facts alone ---------------------------------------------------------------------------- */

static void print_identity(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    struct ds_accel_device_identity it = {.struct_size = sizeof(it)};

    if (CALL(device_identity, instance, index, &it) != DS_ACCEL_OK) {
        return;
    }
    printf("%u: %s pci %s node %s arch %s memory %llu power %u", index, it.uuid_text,
           it.pci_address, it.node_path, it.architecture, (unsigned long long)it.total_memory_bytes,
           it.power_state);
    if ((it.valid & DS_ACCEL_IDENTITY_VENDOR_INDEX) != 0) {
        printf(" vendor_index %u", it.vendor_index);
    }
    if ((it.valid & DS_ACCEL_IDENTITY_NUMA_NODE) != 0) {
        printf(" numa %u", it.numa_node);
    }
    if (it.partition_kind != DS_ACCEL_PARTITION_NONE) {
        printf(" part %u of %s", it.partition_kind, it.parent_uuid_text);
        if ((it.valid & DS_ACCEL_IDENTITY_PARTITION) != 0) {
            printf(" instance %u/%u", it.partition_instance, it.partition_subinstance);
        }
    }
    printf(" uuid");
    for (size_t i = 0; i < sizeof(it.uuid); i++) {
        printf("%s%02x", i == 0 ? " " : "", it.uuid[i]);
    }
    printf("\n");
}

struct figure {
    uint64_t bit;
    const char *name;
    long long value;
};

#define POLL_MS 50

static void poll_before(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    const struct timespec pause = {0, POLL_MS * 1000000L};
    struct ds_accel_telemetry it = {.struct_size = sizeof(it)};

    CALL(telemetry_get, instance, index, &it);
    nanosleep(&pause, NULL);
}

static void print_telemetry(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    struct ds_accel_telemetry it = {.struct_size = sizeof(it)};

    if (CALL(telemetry_get, instance, index, &it) != DS_ACCEL_OK) {
        return;
    }
    const struct figure values[] = {
        {DS_ACCEL_TELEMETRY_UTILIZATION, "utilization", it.utilization_percent},
        {DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION, "memory_utilization",
         it.memory_utilization_percent},
        {DS_ACCEL_TELEMETRY_TEMPERATURE, "temperature", it.temperature_millidegrees_c},
        {DS_ACCEL_TELEMETRY_POWER, "power", (long long)it.power_milliwatts},
        {DS_ACCEL_TELEMETRY_POWER_LIMIT, "power_limit", (long long)it.power_limit_milliwatts},
        {DS_ACCEL_TELEMETRY_ENERGY, "energy", (long long)it.energy_millijoules},
        {DS_ACCEL_TELEMETRY_CORE_CLOCK, "core_clock", it.core_clock_khz},
        {DS_ACCEL_TELEMETRY_MEMORY_CLOCK, "memory_clock", it.memory_clock_khz},
        {DS_ACCEL_TELEMETRY_FAN, "fan", it.fan_percent},
        {DS_ACCEL_TELEMETRY_PCIE, "pcie_rx", (long long)it.pcie_rx_bytes_per_s},
        {DS_ACCEL_TELEMETRY_PCIE, "pcie_tx", (long long)it.pcie_tx_bytes_per_s},
        {DS_ACCEL_TELEMETRY_THROTTLE, "throttle", (long long)it.throttle_reasons},
        {DS_ACCEL_TELEMETRY_ECC, "ecc_corrected", (long long)it.ecc_corrected_count},
        {DS_ACCEL_TELEMETRY_ECC, "ecc_uncorrected", (long long)it.ecc_uncorrected_count},
        {DS_ACCEL_TELEMETRY_MEMORY, "memory_total", (long long)it.memory_total_bytes},
        {DS_ACCEL_TELEMETRY_MEMORY, "memory_used", (long long)it.memory_used_bytes},
    };

    printf("%u:", index);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if ((it.valid & values[i].bit) != 0) {
            printf(" %s %lld", values[i].name, values[i].value);
        }
    }
    printf("\n");
}

static void print_arrays(ds_accel_plugin_instance_t *instance, uint32_t index)
{
    struct ds_accel_process processes[16] = {0};
    struct ds_accel_link links[64] = {0};
    uint32_t count = 0;

    if (CALL(links_get, instance, index, links, (uint32_t)sizeof(links[0]), 64, &count) ==
        DS_ACCEL_OK) {
        for (uint32_t i = 0; i < count && i < 64; i++) {
            printf("%u: link kind %u peer %d width %u generation %u up %u bytes_per_s %llu%s%s\n",
                   index, links[i].kind, links[i].peer_index, links[i].width, links[i].generation,
                   links[i].is_up, (unsigned long long)links[i].bandwidth_bytes_per_s,
                   links[i].peer_pci_address[0] != '\0' ? " to " : "", links[i].peer_pci_address);
        }
    }
    if (CALL(telemetry_processes, instance, index, processes, (uint32_t)sizeof(processes[0]), 16,
             &count) == DS_ACCEL_OK) {
        for (uint32_t i = 0; i < count && i < 16; i++) {
            printf("%u: process %d memory %llu\n", index, processes[i].pid,
                   (unsigned long long)processes[i].memory_bytes);
        }
    }
}

static int print_facts(const struct ds_accel_host *host, int is_polled)
{
    ds_accel_plugin_instance_t *instance = NULL;
    uint32_t count = 0;

    if (CALL(init, host, &instance) != DS_ACCEL_OK) {
        return 3;
    }
    CALL(device_count, instance, &count);
    for (uint32_t i = 0; i < count; i++) {
        print_identity(instance, i);
        if (is_polled) {
            poll_before(instance, i);
        }
        print_telemetry(instance, i);
        print_arrays(instance, i);
    }
    table->shutdown(instance);
    return 0;
}

/* Domains are stacks of their own: what is popped of one leaves the others as they are. */
static int push_ranges(const struct ds_accel_host *host)
{
    ds_accel_plugin_instance_t *instance = NULL;

    if (CALL(init, host, &instance) != DS_ACCEL_OK) {
        return 3;
    }
    CALL(range_push, instance, "step", NULL, NULL);
    CALL(range_push, instance, "forward", "model", "compute");
    CALL(range_push, instance, "gather", "network", "collective");
    CALL(range_push, instance, "layer", "model", "compute");
    CALL(range_pop, instance, "network");
    CALL(range_push, instance, "loss", "model", NULL);
    CALL(range_push, instance, "log", NULL, "host");
    CALL(range_push, instance, "log", "model", "host");
    CALL(range_push, instance, "norm", "model", "compute");
    for (int i = 0; i < 5; i++) {
        CALL(range_pop, instance, "model");
    }
    CALL(range_pop, instance, NULL);
    CALL(range_pop, instance, NULL);
    CALL(range_pop, instance, "nobody's");
    table->shutdown(instance);
    return 0;
}

static const char *root(void)
{
    const char *text = getenv("DS_ACCEL_ROOT");

    return text != NULL ? text : "";
}

static int walk(const struct ds_accel_host *host)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    ds_accel_plugin_instance_t *instance = NULL;
    uint32_t count = 0;

    if (CALL(probe, host, &verdict) == DS_ACCEL_OK && verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        printf("probe: state %u, reason %u, code %lld: %s\n", verdict.state, verdict.reason,
               (long long)verdict.vendor_code, verdict.detail);
        if (verdict.reason == DS_ACCEL_REASON_NONE || verdict.detail[0] == '\0') {
            complain("probe", "a refusal without reason or evidence");
        }
    }
    if (CALL(init, host, &instance) != DS_ACCEL_OK) {
        return 3;
    }
    CALL(device_count, instance, &count);
    walk_facts(instance, count);
    walk_device(instance, count);
    table->shutdown(instance);
    if (atomic_load(&tasks_run) < atomic_load(&tasks_accepted)) {
        complain("stream_host_task", "a task that was accepted did not run");
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct ds_accel_host host = {.struct_size = sizeof(host),
                                       .abi_major = DS_ACCEL_ABI_MAJOR,
                                       .abi_minor = DS_ACCEL_ABI_MINOR,
                                       .features = DS_ACCEL_FEATURE_CONFIG |
                                                   DS_ACCEL_FEATURE_MACHINE,
                                       .host_version = "0",
                                       .log = host_log,
                                       .log_enabled = host_log_enabled,
                                       .config_get = host_config_get,
                                       .clock_ns = host_clock_ns,
                                       .machine_root = root(),
                                       .extension = host_extension};
    ds_accel_entry_v1_t entry = NULL;
    const char *what = argc > 1 && strncmp(argv[1], "--", 2) == 0 ? argv[1] : "";
    void *module;
    int code;

    argc -= what[0] != '\0';
    argv += what[0] != '\0';
    module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    options = argv + 2;
    option_count = argc - 2;
    if (module != NULL) {
        *(void **)&entry = dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL);
    }
    table = entry != NULL ? entry(&host) : NULL;
    if (table == NULL) {
        fprintf(stderr, "walk: no plugin %s\n", argc > 1 ? argv[1] : "given");
        return 2;
    }
    code = strcmp(what, "--facts") == 0    ? print_facts(&host, 0)
           : strcmp(what, "--polled") == 0 ? print_facts(&host, 1)
           : strcmp(what, "--ranges") == 0 ? push_ranges(&host)
                                           : walk(&host);
    return wrong > 0 ? 1 : code;
}
