/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cpu plugin: the machine itself as an accelerator, one device per NUMA node.
 *
 * This backend is available on every machine, so it has two duties. It must implement the whole
 * interface as a device would, with the same rejections, so that a program developed on a CPU also
 * runs on other devices. It must not change the process that loads it: it sets no affinity and no
 * signal handler, does not write to /proc, and starts no threads except the workers of option
 * async.
 *
 *   machine.c  nodes, device count, cpuinfo, caches, resident set: the facts and their sources
 *   device.c   identity, facts, current device, peers
 *   memory.c   device memory, pinned memory, the caller's registered memory
 *   vmem.c     addresses, and physical memory mapped to them
 *   usage.c    total and used memory, and its peaks
 *   sensors.c  utilization, temperature, clock
 *   place.c    placement of pages and threads on the device's NUMA node
 *   stream.c   streams
 *   event.c    events
 *   queue.c    streams and events with option async: queues, workers, marks
 *   work.c     work of a stream: copies, fills, host tasks; done at once, queued or captured
 *   capture.c  captures: lists of the work of capturing streams, in the order of the calls
 *   graph.c    graphs: captured work that is launched any number of times
 *
 * As in a vendor's plugin, these files implement the functions of struct vendor_backend (vendor.h),
 * which the frame of plugins/common calls. The frame checks arguments, maintains the register of
 * addresses and the usage counts, and implements the slots of the plugin's table. The runtime below
 * these files is the C library, the kernel and the threads of queue.c.
 *
 * Without option async, work is done by the calling thread before the call returns. A stream is
 * therefore always idle, a recorded event is always reached, and no call ever waits. With
 * async: true each stream has a thread of its own that does its work in order, and nothing but
 * events orders streams (docs/decisions/0015). The option is for programs whose host and device
 * work should overlap, and for programs that test whether they wait where a device requires it.
 *
 * Everything belongs to an instance, and instances share nothing. Facts that can't change
 * while the process runs are read once and never written again.
 */
#include "cpu.h"

#include <dlfcn.h>

#define CPU_CCL_UNKNOWN 0u
#define CPU_CCL_MISSING 1u
#define CPU_CCL_PRESENT 2u

/* Read option async, which is false by default. Any value except true and false fails with
   ERR_INVALID and a message that quotes the value. */
static int32_t read_async(const struct ds_accel_host *host, uint32_t *is_async_out,
                          struct ds_accel_error *error)
{
    char text[16] = "";
    int32_t status = host->config_get(host, "async", text, sizeof(text), NULL);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        *is_async_out = 0;
        return DS_ACCEL_OK;
    }
    if (status < 0 || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "option async: \"%s\" is neither \"true\" nor \"false\"",
                           status < 0 ? "(too long)" : text);
    }
    *is_async_out = text[0] == 't';
    return DS_ACCEL_OK;
}

/* Report why opening failed. A CPU is always present, so that only a bad option makes the backend
   unavailable; any other failure is an error of the call. */
static int fail_open(const struct ds_accel_error *cause, struct vendor_problem *problem)
{
    const int is_option = cause->code == DS_ACCEL_ERR_INVALID;

    vendor_problem_set(problem,
                       is_option ? DS_ACCEL_REASON_BAD_OPTION : DS_ACCEL_REASON_DRIVER_FAILED,
                       "%.255s", cause->message);
    problem->status = is_option ? DS_ACCEL_OK : cause->code;
    problem->is_complete = 1;
    return -1;
}

static int cpu_open(const struct ds_accel_host *host, void **runtime_out,
                    struct vendor_problem *problem)
{
    struct ds_accel_error cause = {.struct_size = sizeof(cause)};
    struct cpu_runtime *cpu = calloc(1, sizeof(*cpu));

    if (cpu == NULL) {
        plugin_fail(&cause, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for the instance");
        return fail_open(&cause, problem);
    }
    cpu->host = host;
    if (read_async(host, &cpu->is_async, &cause) < 0 ||
        cpu_machine_scan(host, &cpu->machine, &cause) < 0) {
        free(cpu);
        return fail_open(&cause, problem);
    }
    *runtime_out = cpu;
    return 0;
}

static void cpu_close(void *runtime)
{
    struct cpu_runtime *cpu = runtime;

    if (cpu->is_started) {
        pthread_key_delete(cpu->current_key);
        pthread_mutex_destroy(&cpu->lock);
        pthread_mutex_destroy(&cpu->pin_lock);
    }
    free(cpu->samples);
    free(cpu->devices);
    cpu_machine_release(&cpu->machine);
    free(cpu);
}

static int cpu_count(void *runtime, uint32_t *count_out, struct vendor_problem *problem)
{
    const struct cpu_runtime *cpu = runtime;

    (void)problem;
    *count_out = cpu->machine.device_count;
    return 0;
}

static void cpu_evidence(void *runtime, char *text, size_t text_size)
{
    const struct cpu_machine *machine = &((struct cpu_runtime *)runtime)->machine;
    char launcher[32] = "";

    if (machine->local_size > 0) {
        snprintf(launcher, sizeof(launcher), "LOCAL_SIZE=%u, ", machine->local_size);
    }
    snprintf(text, text_size, "%s%u NUMA node%s with CPUs", launcher, machine->node_count,
             machine->node_count == 1 ? "" : "s");
}

static uint64_t flags_of(const struct cpu_runtime *cpu)
{
    return cpu->is_async ? CPU_FLAGS : CPU_FLAGS | CPU_FLAGS_SYNCHRONIZED;
}

static int32_t cpu_start(void *runtime, uint64_t *flags_out, struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = runtime;
    const uint32_t count = cpu->machine.device_count;
    int failure;

    cpu_machine_warn(&cpu->machine);
    if (cpu->is_async && cpu_fork_watch(&cpu->fork_count) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory to watch for forks");
    }
    cpu->devices = calloc(count, sizeof(struct cpu_device *));
    cpu->samples = calloc(count, sizeof(*cpu->samples));
    if (cpu->devices == NULL || cpu->samples == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for %u devices", count);
    }
    failure = pthread_key_create(&cpu->current_key, NULL);
    if (failure != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "init: pthread_key_create: error %d: %s",
                           failure, "the process has used up its thread-specific keys");
    }
    /* With default attributes pthread_mutex_init() can't fail on the C libraries of Linux. */
    pthread_mutex_init(&cpu->pin_lock, NULL);
    pthread_mutex_init(&cpu->lock, NULL);
    atomic_init(&cpu->last_ticket, 0);
    cpu->is_started = 1;
    *flags_out = flags_of(cpu);
    return DS_ACCEL_OK;
}

/* ---- facts of the backend ------------------------------------------------------------------- */

/*
 * Find out whether oneCCL can be loaded. oneCCL starts threads of its own, and unloading it could
 * remove code that they run; RTLD_NODELETE therefore keeps it loaded after dlclose().
 */
static uint32_t find_ccl(void)
{
    static const char *const names[] = {"libccl.so.1", "libccl.so"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);

        if (library != NULL) {
            dlclose(library);
            return CPU_CCL_PRESENT;
        }
    }
    return CPU_CCL_MISSING;
}

static int32_t cpu_backend_info(ds_accel_plugin_instance_t *instance,
                                struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    struct cpu_runtime *cpu = cpu_runtime(instance);
    uint32_t ccl;

    (void)error;
    pthread_mutex_lock(&cpu->lock);
    if (cpu->ccl_state == CPU_CCL_UNKNOWN) {
        cpu->ccl_state = find_ccl();
    }
    ccl = cpu->ccl_state;
    pthread_mutex_unlock(&cpu->lock);
    info->flags = flags_of(cpu);
    snprintf(info->communication_backend, sizeof(info->communication_backend), "%s",
             ccl == CPU_CCL_PRESENT ? "ccl" : "gloo");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    return DS_ACCEL_OK;
}

const struct vendor_backend vendor_backend = {
    .name = "cpu",
    .flags = CPU_FLAGS,
    .allocation_align_bytes = CPU_ALIGN_BYTES,
    .max_align_bytes = CPU_MAX_ALIGN_BYTES,
    .frees_wait = 1,
    .identifies_late = 1,
    .tracks_captures = 1,
    .stream_bytes = sizeof(struct cpu_stream),
    .ends_streams_late = 1,
    .reads_host_memory = 1,
    .mixes_instances = 1,
    .allocates_in_registered = 1,
    .ignores_null_first = 1,
    .open = cpu_open,
    .close = cpu_close,
    .count = cpu_count,
    .evidence = cpu_evidence,
    .start = cpu_start,
    .backend_info = cpu_backend_info,
    .identify = cpu_identify,
    .device_open = cpu_device_open,
    .device_stop = cpu_device_stop,
    .runs_tasks = cpu_runs_tasks,
    .device_close = cpu_device_close,
    .device_info = cpu_device_info,
    .get_current = cpu_get_current,
    .set_current = cpu_set_current,
    .device_wait = cpu_device_wait,
    .dtype_support = cpu_dtype_support,
    .peer_can_access = cpu_peer_can_access,
    .peer_enable = cpu_peer_change,
    .peer_disable = cpu_peer_change,
    .links = cpu_links,
    .telemetry = cpu_telemetry,
    .check_size = cpu_check_size,
    .alloc_aligned = cpu_alloc,
    .memory_wait = cpu_memory_wait,
    .free_sized = cpu_free,
    .alloc_async = cpu_alloc_async,
    .free_in_order = cpu_free_in_order,
    .alloc_pinned_aligned = cpu_alloc_pinned,
    .free_pinned_sized = cpu_free_pinned,
    /* On a CPU all pinned memory is portable and mapped; write-combining is only a hint. */
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED |
                    DS_ACCEL_PINNED_WRITE_COMBINED | DS_ACCEL_PINNED_HUGE_PAGES,
    .host_register = cpu_host_register,
    .host_unregister_sized = cpu_host_unregister,
    .usage_info = cpu_usage_info,
    .usage_stats = cpu_usage_stats,
    .usage_reset_peaks = cpu_usage_reset_peaks,
    .trim = cpu_trim,
    .vmem_granularity = cpu_vmem_granularity,
    .vmem_reserve = cpu_vmem_reserve,
    .vmem_check = cpu_vmem_check,
    .vmem_release = cpu_vmem_unreserve,
    .vmem_create = cpu_vmem_create,
    .vmem_destroy = cpu_vmem_destroy,
    .vmem_map = cpu_vmem_map,
    .vmem_unmap = cpu_vmem_unmap,
    .vmem_set_access = cpu_vmem_set_access,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_default = cpu_stream_default,
    .stream_wait = cpu_stream_wait,
    .stream_query = cpu_stream_query,
    .stream_wait_event = cpu_stream_wait_event,
    .stream_task = cpu_stream_task,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_query = cpu_event_query,
    .event_wait = cpu_event_wait,
    .event_elapsed_ms = cpu_event_elapsed_ms,
    .copy = cpu_copy,
    .copy_async = cpu_copy_async,
    .copy_peer_async = cpu_copy_peer_async,
    .fill_async = cpu_fill_async,
    .fill_widths = 1 | 2 | 4 | VENDOR_FILLS_ANYWHERE,
    .capture_begin = cpu_capture_begin,
    .capture_end = cpu_capture_end,
    .capture_status = cpu_capture_status,
    .capture_check = cpu_capture_check,
    .graph_destroy = cpu_graph_destroy,
    .graph_instantiate = cpu_graph_instantiate,
    .graph_exec_destroy = cpu_graph_exec_destroy,
    .graph_launch = cpu_graph_launch,
    .graph_exec_update = cpu_graph_exec_update,
    .graph_node_count = cpu_graph_node_count,
    .graph_dump = cpu_graph_dump,
};

/* Remove the slots for extensions, for vendor objects and for environment variables that hide
   devices: the cpu backend has none of these. */
static void fill_table(struct ds_accel_plugin *table)
{
    vendor_fill(table);
    table->extension = NULL;
    table->native_get = NULL;
    table->native_wrap = NULL;
    table->env_name_get = NULL;
}

#ifdef DS_ACCEL_FEATURE_SURVIVES_FORK /* not in headers before 1.1 */
#define CPU_SURVIVES_FORK DS_ACCEL_FEATURE_SURVIVES_FORK
#else
#define CPU_SURVIVES_FORK 0
#endif

DS_ACCEL_PLUGIN("cpu", "ds-accel", "0.1.0",
                DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_TOPOLOGY,
                CPU_SURVIVES_FORK, fill_table);
