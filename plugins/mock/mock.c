/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mock plugin: a device whose behaviour is configured by options, for tests without hardware,
 * and the plugin to copy when you write your own.
 *
 * What to copy
 *
 *  1. One DS_ACCEL_PLUGIN() and one fill function, at the end of this file. No version, size or
 *     note is typed by hand. Leave a function that you don't have out of the table: the host
 *     returns DS_ACCEL_ERR_UNSUPPORTED for it, with a better message than your own stub would have.
 *  2. No work happens before probe: the entry fills a table. probe leaves nothing behind, neither a
 *     thread nor a context. Here it reads options; your probe dlopens the vendor's runtime and
 *     reads its device count. Distinguish causes that an operator would treat differently: no
 *     hardware, no driver, no permission, a missing library. Put the evidence in detail.
 *  3. All state belongs to the instance that init returns. Two instances in one process share only
 *     the counter from which allocations get ids: the ABI requires ids that are unique in the
 *     process.
 *  4. Every function begins in call.c: is the handle valid, is its device still alive? Then come
 *     the other arguments, then the work. Outputs are written last, and only on success.
 *  5. The function that detects an error describes it, once: call, arguments, cause, and the
 *     vendor's own code and name unchanged. Callers clean up and pass the status on.
 *  6. Structs that cross the ABI are built on the stack, zeroed, and written with ds_accel_write(),
 *     so that they work with older and newer hosts too. Arrays go through ds_accel_write_element(),
 *     with the caller's stride.
 *  7. A handle is a struct of the plugin that contains or points to the vendor's object (struct
 *     ds_accel_plugin_stream has a struct mock_queue). native_get and native_wrap are then simple.
 *  8. Calls into the host (log, config_get, trace) are made with no lock held.
 *
 * What not to copy: the single lock for everything, which a fast runtime makes unnecessary, and the
 * fail script, which a real device does not need.
 *
 *   options.c  reading the options         memory.c   device, managed and pinned memory
 *   script.c   the option fail             usage.c    sizes, peaks, limits
 *   call.c     entering a function, time   vmem.c     reserve, map, access
 *   block.c    the register of addresses   work.c     copies, fills, tasks; when they complete
 *   device.c   devices, peers, dtypes      stream.c, event.c, graph.c
 *   facts.c    telemetry, links, ops, environment
 *   ranges.c   profiler ranges             native.c   native handles
 *   share.c    between processes
 *
 * Options: DS_ACCEL_MOCK_<KEY> in the environment, or backends.mock.options.<key>. Built under
 * another name with -DMOCK_NAME='"cuda"', that name replaces mock in both.
 *
 *   device_count        2            0 to 256; with 0 the probe reports "no device"
 *   memory_bytes        1073741824   size of each device; no memory is reserved for it
 *   available           true         result of the probe: true, false or error
 *   reason              no_device    a DS_ACCEL_REASON in lower case; driver_failed with error
 *   detail              (a text)     the evidence in the verdict, up to 255 bytes
 *   variant             (empty)      the variant in the verdict, up to 31 bytes
 *   device_name         Mock Device  up to 127 bytes
 *   bf16, fp16          true         whether the device computes in that type
 *   ipc                 true         memory and events can be shared with other processes
 *   alloc_latency_ns    0            duration of an allocation
 *   copy_latency_ns     0            fixed duration of a copy or fill
 *   copy_bytes_per_s    0            rate at which bytes are copied; 0: unlimited
 *   launch_latency_ns   0            duration of a host task or of the launch of a graph
 *   sync_latency_ns     0            duration of a wait beyond that of the work
 *   probe_latency_ms    0            duration of the probe; to test timeouts
 *   pinned_limit_bytes  0            most pinned and registered memory; 0: no limit
 *   max_allocation_bytes 0           largest allocation on the device; 0: no limit
 *   fail                (empty)      which calls fail, and how; grammar in script.c
 *
 * The vendor's variable MOCK_VISIBLE_DEVICES, "1,0", makes only these devices visible, in this
 * order.
 *
 * With a malformed value, probe reports ERROR, BAD_OPTION, and init fails with ERR_INVALID, with
 * the option, the value and the expected values. Latencies go up to an hour.
 */
#include "mock.h"

#ifdef DS_ACCEL_FEATURE_SURVIVES_FORK /* since version 1.1 of the header */
#define MOCK_SURVIVES_FORK DS_ACCEL_FEATURE_SURVIVES_FORK
#else
#define MOCK_SURVIVES_FORK 0
#endif
/*
 * Under its own name the mock is chosen only explicitly; under another backend's name it takes that
 * backend's place.
 */
#ifndef MOCK_NAME
#define MOCK_NAME "mock"
#define MOCK_FEATURES (DS_ACCEL_FEATURE_TRACE | DS_ACCEL_FEATURE_DEMAND_ONLY | MOCK_SURVIVES_FORK)
#else
#define MOCK_FEATURES (DS_ACCEL_FEATURE_TRACE | MOCK_SURVIVES_FORK)
#endif
#ifndef MOCK_VENDOR
#define MOCK_VENDOR "ds-accel"
#endif
#ifndef MOCK_VERSION
#define MOCK_VERSION "0.1.0"
#endif

#define SCRIPTED_DRIVER_CODE 999

static void answer_bad_option(struct ds_accel_verdict *verdict, const char *problem)
{
    struct ds_accel_verdict answer;

    memset(&answer, 0, sizeof(answer));
    answer.state = DS_ACCEL_PROBE_ERROR;
    answer.reason = DS_ACCEL_REASON_BAD_OPTION;
    snprintf(answer.detail, sizeof(answer.detail), "%s", problem);
    ds_accel_write(verdict, &answer, sizeof(answer));
}

static int32_t mock_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                          struct ds_accel_error *error)
{
    struct mock_options options;
    struct ds_accel_verdict answer;
    struct ds_accel_error problem = {.struct_size = sizeof(problem)};
    int32_t status;

    if (host == NULL || verdict == NULL) {
        return mock_null(error, "probe", "host or verdict");
    }
    if (mock_options_read(host, &options, &problem) < 0) {
        answer_bad_option(verdict, problem.message);
        return DS_ACCEL_OK;
    }
    if (options.probe_latency_ms > 0) {
        mock_sleep_until(plugin_now_ns() + options.probe_latency_ms * UINT64_C(1000000));
    }
    status = mock_script_count(&options.script, "probe");
    if (status < 0) {
        return mock_vendor_fail(error, status, "probe", "as option fail requests");
    }
    memset(&answer, 0, sizeof(answer));
    answer.state = options.state;
    answer.reason = options.reason;
    if (options.state == DS_ACCEL_PROBE_AVAILABLE) {
        answer.device_count = (uint32_t)options.device_count;
    }
    if (options.reason == DS_ACCEL_REASON_DRIVER_FAILED) {
        answer.vendor_code = SCRIPTED_DRIVER_CODE;
    }
    snprintf(answer.variant, sizeof(answer.variant), "%s", options.variant);
    snprintf(answer.detail, sizeof(answer.detail), "%s", options.detail);
    ds_accel_write(verdict, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

/*
 * Returns the host's trace extension, or NULL: MOCK_FEATURES, in the plugin's ELF note, requests
 * the extension, but a host need not have it.
 */
static const struct ds_accel_ext_trace *find_trace(const struct ds_accel_host *host)
{
    const struct ds_accel_ext_trace *trace;

    if ((host->features & DS_ACCEL_FEATURE_TRACE) == 0 ||
        !DS_ACCEL_HAS(host, struct ds_accel_host, extension) || host->extension == NULL) {
        return NULL;
    }
    trace = host->extension(host, DS_ACCEL_EXT_TRACE);
    return trace != NULL && DS_ACCEL_HAS(trace, struct ds_accel_ext_trace, end) ? trace : NULL;
}

/* Reads the options. Returns the status with which init fails because of an option, or
   DS_ACCEL_OK. */
static int32_t check_usable(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    struct mock_options *options = &instance->options;
    int32_t status = mock_options_read(instance->host, options, error);

    if (status < 0) {
        return status;
    }
    status = mock_script_count(&options->script, "init");
    if (status < 0) {
        return mock_vendor_fail(error, status, "init", "as option fail requests");
    }
    if (options->state != DS_ACCEL_PROBE_AVAILABLE) {
        return mock_vendor_fail(error, options->init_status, "init", options->detail);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_init(const struct ds_accel_host *host,
                         ds_accel_plugin_instance_t **instance_out, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    int32_t status;

    if (host == NULL || instance_out == NULL) {
        return mock_null(error, "init", "host or instance_out");
    }
    instance = calloc(1, sizeof(*instance));
    if (instance == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for the instance");
    }
    instance->host = host;
    instance->trace = find_trace(host);
    status = check_usable(instance, error);
    if (status < 0) {
        goto out_free;
    }
    instance->devices = calloc(instance->options.device_count, sizeof(*instance->devices));
    if (instance->devices == NULL) {
        status = plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for the devices");
        goto out_free;
    }
    for (uint32_t i = 0; i < instance->options.device_count; i++) {
        instance->devices[i].instance = instance;
        instance->devices[i].index = i;
    }
    if (pthread_key_create(&instance->current_key, NULL) != 0) {
        status = plugin_fail(error, DS_ACCEL_ERR_LIMIT,
                             "init: the process has used up its thread-specific keys");
        goto out_free_devices;
    }
    /* No check: with default attributes the C libraries of Linux always return 0. */
    pthread_mutex_init(&instance->lock, NULL);
    *instance_out = instance;
    return DS_ACCEL_OK;

out_free_devices:
    free(instance->devices);
out_free:
    free(instance);
    return status;
}

static void mock_shutdown(ds_accel_plugin_instance_t *instance)
{
    if (instance == NULL) {
        return;
    }
    mock_ranges_release(instance);
    pthread_key_delete(instance->current_key);
    pthread_mutex_destroy(&instance->lock);
    free(instance->blocks);
    free(instance->devices);
    free(instance);
}

static int32_t mock_extension(ds_accel_plugin_instance_t *instance, const char *id,
                              const void **extension_out, struct ds_accel_error *error)
{
    int32_t status = mock_enter(instance, "extension", error);

    if (status < 0) {
        return status;
    }
    if (id == NULL || extension_out == NULL) {
        return mock_null(error, "extension", "id or extension_out");
    }
    return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND, "extension: no \"%s\" here", id);
}

static int32_t mock_backend_info(ds_accel_plugin_instance_t *instance,
                                 struct ds_accel_backend_info *info_out,
                                 struct ds_accel_error *error)
{
    struct ds_accel_backend_info info;
    int32_t status = mock_enter(instance, "backend_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return mock_null(error, "backend_info", "info_out");
    }
    memset(&info, 0, sizeof(info));
    info.flags = MOCK_FLAGS;
    if (instance->options.ipc) {
        info.flags |= MOCK_FLAGS_IPC;
        info.memory_handle_bytes = MOCK_HANDLE_BYTES;
        info.event_handle_bytes = MOCK_HANDLE_BYTES;
    }
    info.flags_known = DS_ACCEL_FLAGS_ALL;
    snprintf(info.communication_backend, sizeof(info.communication_backend), "gloo");
    snprintf(info.compile_backend, sizeof(info.compile_backend), "inductor");
    info.driver_version[0] = 1;
    info.runtime_version[0] = 1;
    ds_accel_write(info_out, &info, sizeof(info));
    return DS_ACCEL_OK;
}

static void fill_table(struct ds_accel_plugin *table)
{
    table->probe = mock_probe;
    table->init = mock_init;
    table->shutdown = mock_shutdown;
    table->extension = mock_extension;
    table->backend_info = mock_backend_info;
    mock_device_fill(table);
    mock_stream_fill(table);
    mock_event_fill(table);
    mock_memory_fill(table);
    mock_usage_fill(table);
    mock_work_fill(table);
    mock_vmem_fill(table);
    mock_share_fill(table);
    mock_graph_fill(table);
    mock_facts_fill(table);
    mock_ranges_fill(table);
    mock_native_fill(table);
}

DS_ACCEL_PLUGIN(MOCK_NAME, MOCK_VENDOR, MOCK_VERSION, DS_ACCEL_FEATURE_CONFIG, MOCK_FEATURES,
                fill_table);
