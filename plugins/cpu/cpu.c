/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The cpu plugin: the machine itself as an accelerator, one device per NUMA node.
 *
 * It is the backend that is always available, so it has two duties. It must implement the whole
 * interface as a device would, with the same rejections, so that a program developed on it runs
 * elsewhere; and it must not change anything in the process that hosts it: no affinity, no signal
 * handler, no write to /proc, and no thread except the workers of option async.
 *
 *   machine.c  nodes, device count, cpuinfo, caches, resident set: the facts and their sources
 *   device.c   identity, facts, current device, peers
 *   block.c    the register of allocated and registered memory, by address
 *   memory.c   device memory, pinned memory, the caller's registered memory
 *   vmem.c     addresses, and physical memory mapped to them
 *   usage.c    total and used memory; peaks and the limit
 *   sensors.c  utilization, temperature, clock
 *   place.c    the NUMA node: pages and threads on it
 *   stream.c   streams
 *   event.c    events
 *   queue.c    streams and events with option async: queues, workers, marks
 *   work.c     work of a stream: copies, fills, host tasks; done at once, queued or kept
 *   capture.c  work of capturing streams, kept in the order of the calls
 *   graph.c    graphs: the kept work, done again
 *
 * Without option async, work is done by the calling thread before the call returns. A stream is
 * then always idle, an event that was recorded is always reached, and nothing ever waits. With
 * async: true each stream has a thread of its own that does its work in order, and nothing but
 * events orders streams (docs/decisions/0015). The option is for programs whose host and device
 * work should overlap, and for programs that test whether they wait where a device requires it.
 *
 * Everything belongs to an instance, and instances share nothing, except for the counter of
 * allocation ids (block.c), which the ABI wants unique in the process. Facts that can't change
 * while the process runs are read once and never written again.
 */
#include "cpu.h"

#include <dlfcn.h>

#define CPU_CCL_UNKNOWN 0u
#define CPU_CCL_MISSING 1u
#define CPU_CCL_PRESENT 2u

/* Option async; ERR_INVALID, with the option and its text, for anything but true and false. */
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

static void answer_bad_option(struct ds_accel_verdict *verdict, const char *problem)
{
    struct ds_accel_verdict answer;

    memset(&answer, 0, sizeof(answer));
    answer.state = DS_ACCEL_PROBE_ERROR;
    answer.reason = DS_ACCEL_REASON_BAD_OPTION;
    snprintf(answer.detail, sizeof(answer.detail), "%s", problem);
    ds_accel_write(verdict, &answer, sizeof(answer));
}

static int32_t cpu_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                         struct ds_accel_error *error)
{
    struct cpu_machine machine;
    struct ds_accel_verdict answer;
    struct ds_accel_error problem = {.struct_size = sizeof(problem)};
    const char *plural;
    uint32_t is_async;
    int32_t status;

    if (read_async(host, &is_async, &problem) < 0) {
        answer_bad_option(verdict, problem.message);
        return DS_ACCEL_OK;
    }
    status = cpu_machine_scan(host, 1, &machine, error);
    if (status < 0) {
        return status;
    }
    memset(&answer, 0, sizeof(answer));
    answer.state = DS_ACCEL_PROBE_AVAILABLE;
    answer.device_count = machine.device_count;
    plural = machine.node_count == 1 ? "" : "s";
    if (machine.local_size > 0) {
        snprintf(answer.detail, sizeof(answer.detail), "LOCAL_SIZE=%u, %u NUMA node%s with CPUs",
                 machine.local_size, machine.node_count, plural);
    } else {
        snprintf(answer.detail, sizeof(answer.detail), "%u NUMA node%s with CPUs",
                 machine.node_count, plural);
    }
    ds_accel_write(verdict, &answer, sizeof(answer));
    cpu_machine_release(&machine);
    return DS_ACCEL_OK;
}

static int32_t cpu_init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                        struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance = calloc(1, sizeof(*instance));
    int32_t status = DS_ACCEL_ERR_NO_MEMORY;
    int failure;

    if (instance == NULL) {
        return plugin_fail(error, status, "init: no memory for the instance");
    }
    instance->host = host;
    status = read_async(host, &instance->is_async, error);
    if (status < 0) {
        goto out_free;
    }
    if (instance->is_async && cpu_fork_watch(&instance->fork_count) != 0) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory to watch for forks");
        goto out_free;
    }
    status = cpu_machine_scan(host, 0, &instance->machine, error);
    if (status < 0) {
        goto out_free;
    }
    instance->devices = calloc(instance->machine.device_count, sizeof(*instance->devices));
    instance->samples = calloc(instance->machine.device_count, sizeof(*instance->samples));
    if (instance->devices == NULL || instance->samples == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for %u devices",
                             instance->machine.device_count);
        goto out_free_devices;
    }
    failure = pthread_key_create(&instance->current_key, NULL);
    if (failure != 0) {
        status = plugin_fail(error, DS_ACCEL_ERR_LIMIT, "init: pthread_key_create: error %d: %s",
                             failure, "the process has used up its thread-specific keys");
        goto out_free_devices;
    }
    /* With default attributes neither can fail on the C libraries of Linux. */
    pthread_mutex_init(&instance->pin_lock, NULL);
    pthread_mutex_init(&instance->lock, NULL);
    atomic_init(&instance->last_ticket, 0);
    *instance_out = instance;
    return DS_ACCEL_OK;

out_free_devices:
    free(instance->samples);
    free(instance->devices);
    cpu_machine_release(&instance->machine);
out_free:
    free(instance);
    return status;
}

static void cpu_shutdown(ds_accel_plugin_instance_t *instance)
{
    if (instance == NULL) {
        return;
    }
    for (uint32_t i = 0; i < instance->machine.device_count; i++) {
        if (instance->devices[i] != NULL) {
            cpu_device_destroy(instance->devices[i]);
        }
    }
    free(instance->blocks);
    free(instance->samples);
    free(instance->devices);
    pthread_key_delete(instance->current_key);
    pthread_mutex_destroy(&instance->lock);
    pthread_mutex_destroy(&instance->pin_lock);
    cpu_machine_release(&instance->machine);
    free(instance);
}

/*
 * Can a program on this machine use oneCCL? The library starts threads of its own, so that
 * unloading it could remove code that they run: with NODELETE it stays loaded, and no handle is
 * kept.
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
                                struct ds_accel_backend_info *info_out,
                                struct ds_accel_error *error)
{
    struct ds_accel_backend_info info;
    uint32_t ccl;

    if (instance == NULL || info_out == NULL) {
        return cpu_null(error, "backend_info: instance or info_out");
    }
    pthread_mutex_lock(&instance->lock);
    if (instance->ccl_state == CPU_CCL_UNKNOWN) {
        instance->ccl_state = find_ccl();
    }
    ccl = instance->ccl_state;
    pthread_mutex_unlock(&instance->lock);

    memset(&info, 0, sizeof(info));
    info.flags = cpu_flags(instance);
    info.flags_known = DS_ACCEL_FLAGS_ALL;
    snprintf(info.communication_backend, sizeof(info.communication_backend), "%s",
             ccl == CPU_CCL_PRESENT ? "ccl" : "gloo");
    snprintf(info.compile_backend, sizeof(info.compile_backend), "inductor");
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static void fill_table(struct ds_accel_plugin *table)
{
    table->probe = cpu_probe;
    table->init = cpu_init;
    table->shutdown = cpu_shutdown;
    table->backend_info = cpu_backend_info;
    cpu_device_fill(table);
    cpu_memory_fill(table);
    cpu_vmem_fill(table);
    cpu_usage_fill(table);
    cpu_telemetry_fill(table);
    cpu_stream_fill(table);
    cpu_event_fill(table);
    cpu_work_fill(table);
    cpu_capture_fill(table);
    cpu_graph_fill(table);
}

#ifdef DS_ACCEL_FEATURE_SURVIVES_FORK /* a header of 1.1 */
#define CPU_SURVIVES_FORK DS_ACCEL_FEATURE_SURVIVES_FORK
#else
#define CPU_SURVIVES_FORK 0
#endif

DS_ACCEL_PLUGIN("cpu", "ds-accel", "0.1.0",
                DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_TOPOLOGY,
                CPU_SURVIVES_FORK, fill_table);
