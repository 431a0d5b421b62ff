/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Conformance checks: rules for every call. The checks use two collections of calls: the refusals,
 * which are calls that must be rejected, with outputs filled with a pattern; and the tour, valid
 * calls of the slots that need only a device and its objects.
 */
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/guard.h"

#include <stdio.h>
#include <string.h>

#define GROUP "calls"
#define POISON 0xa5
#define UNKNOWN_BIT 0x80000000u
#define UNKNOWN_NUMBER 999u
#define MEMORY_BYTES 4096u

/* ---- refusals ------------------------------------------------------------------------------- */

static bool is_touched(const void *output, size_t first, size_t size_bytes)
{
    const unsigned char *bytes = output;

    for (size_t i = first; i < size_bytes; i++) {
        if (bytes[i] != POISON) {
            return true;
        }
    }
    return false;
}

/* Define a function that makes a call whose output is out, of the given type. */
#define REFUSAL(function, type, slot, ...) \
    static int32_t function(struct ds_accel__run *run, bool *is_touched_out) \
    { \
        type out; \
        int32_t status; \
\
        memset(&out, POISON, sizeof(out)); \
        status = CALL(run, slot, __VA_ARGS__); \
        *is_touched_out = is_touched(&out, 0, sizeof(out)); \
        return status; \
    }

/* As REFUSAL, for an output struct that begins with its size. */
#define REFUSAL_STRUCT(function, type, slot, ...) \
    static int32_t function(struct ds_accel__run *run, bool *is_touched_out) \
    { \
        type out; \
        int32_t status; \
\
        memset(&out, POISON, sizeof(out)); \
        out.struct_size = sizeof(out); \
        status = CALL(run, slot, __VA_ARGS__); \
        *is_touched_out = is_touched(&out, sizeof(out.struct_size), sizeof(out)); \
        return status; \
    }

/* As REFUSAL, for a call without an output. */
#define REFUSAL_PLAIN(function, slot, ...) \
    static int32_t function(struct ds_accel__run *run, bool *is_touched_out) \
    { \
        *is_touched_out = false; \
        return CALL(run, slot, __VA_ARGS__); \
    }

struct text {
    char bytes[64];
};
struct two_sizes {
    uint64_t first, second;
};

static unsigned char host_bytes[2][MEMORY_BYTES];

REFUSAL(stream_flags, ds_accel_plugin_stream_t *, stream_create, run->device, UNKNOWN_BIT, 0, &out)
REFUSAL(event_flags, ds_accel_plugin_event_t *, event_create, run->device, UNKNOWN_BIT, &out)
REFUSAL(alloc_flags, void *, mem_alloc, run->device, MEMORY_BYTES, 0, UNKNOWN_BIT, &out)
REFUSAL(pinned_flags, void *, mem_alloc_pinned, run->device, MEMORY_BYTES, 1, UNKNOWN_BIT, &out)
REFUSAL(managed_flags, void *, mem_alloc_managed, run->device, MEMORY_BYTES, UNKNOWN_BIT, &out)
REFUSAL(async_flags, void *, mem_alloc_async, run->stream, MEMORY_BYTES, UNKNOWN_BIT, NULL, 0, &out)
REFUSAL_PLAIN(register_flags, mem_register, run->device, host_bytes[0], MEMORY_BYTES, UNKNOWN_BIT)
REFUSAL_PLAIN(copy_kind, mem_copy, run->device, host_bytes[0], host_bytes[1], MEMORY_BYTES,
              UNKNOWN_NUMBER)
REFUSAL_PLAIN(copy_async_kind, mem_copy_async, run->stream, host_bytes[0], host_bytes[1],
              MEMORY_BYTES, UNKNOWN_NUMBER)
REFUSAL_PLAIN(peak_bits, mem_reset_peaks, run->device, UNKNOWN_BIT)
REFUSAL(granularity_flags, struct two_sizes, vmem_granularity, run->device, UNKNOWN_BIT, &out.first,
        &out.second)
REFUSAL(reserve_flags, void *, vmem_reserve, run->device, UINT64_C(1) << 30, 0, NULL, UNKNOWN_BIT,
        &out)
REFUSAL(vmem_flags, ds_accel_plugin_vmem_t *, vmem_create, run->device, UINT64_C(1) << 21,
        UNKNOWN_BIT, &out)
REFUSAL_PLAIN(capture_mode, graph_capture_begin, run->stream, UNKNOWN_NUMBER)
REFUSAL(name_list, struct text, env_name_get, run->instance, UNKNOWN_NUMBER, 0, out.bytes,
        sizeof(out))
REFUSAL(native_kind, struct two_sizes, native_get, run->device, UNKNOWN_NUMBER, run->device,
        &out.first, &out.second)
REFUSAL(wrap_kind, void *, native_wrap, run->device, UNKNOWN_NUMBER, (uintptr_t)run->device, &out)

REFUSAL_STRUCT(identity_index, struct ds_accel_device_identity, device_identity, run->instance,
               run->device_count, &out)
REFUSAL(open_index, ds_accel_plugin_device_t *, device_open, run->instance, run->device_count, &out)
REFUSAL_STRUCT(telemetry_index, struct ds_accel_telemetry, telemetry_get, run->instance,
               run->device_count, &out)
REFUSAL(processes_index, uint32_t, telemetry_processes, run->instance, run->device_count, NULL,
        (uint32_t)sizeof(struct ds_accel_process), 0, &out)
REFUSAL(links_index, uint32_t, links_get, run->instance, run->device_count, NULL,
        (uint32_t)sizeof(struct ds_accel_link), 0, &out)
REFUSAL(extension_id, const void *, extension, run->instance, "nobody.knows.1", &out)
REFUSAL(alloc_nothing, void *, mem_alloc, run->device, 0, 0, 0, &out)
REFUSAL(alloc_too_much, void *, mem_alloc, run->device, UINT64_MAX, 0, 0, &out)
REFUSAL(pinned_nothing, void *, mem_alloc_pinned, run->device, 0, 1, 0, &out)
REFUSAL(pinned_too_much, void *, mem_alloc_pinned, run->device, UINT64_MAX, 1, 0, &out)
REFUSAL(managed_nothing, void *, mem_alloc_managed, run->device, 0, 0, &out)
REFUSAL(async_nothing, void *, mem_alloc_async, run->stream, 0, 0, NULL, 0, &out)
REFUSAL(vmem_nothing, ds_accel_plugin_vmem_t *, vmem_create, run->device, 0, 0, &out)
REFUSAL(reserve_nothing, void *, vmem_reserve, run->device, 0, 0, NULL, 0, &out)
REFUSAL(no_capture, ds_accel_plugin_graph_t *, graph_capture_end, run->stream, &out)
REFUSAL(name_past_end, struct text, env_name_get, run->instance, DS_ACCEL_ENV_LIST_EXPORT, 1000000,
        out.bytes, sizeof(out))

REFUSAL(alloc_alignment, void *, mem_alloc, run->device, MEMORY_BYTES, 3, 0, &out)
REFUSAL(import_nothing, void *, dmabuf_import, run->device, -1, 0, MEMORY_BYTES, &out)

/* A handle that no process exported: all bytes are 0. */
static const unsigned char no_handle[DS_ACCEL__PEER_HANDLE];

REFUSAL(open_nothing, void *, ipc_memory_open, run->device, no_handle,
        run->info.memory_handle_bytes, 0, &out)
REFUSAL(open_no_event, ds_accel_plugin_event_t *, ipc_event_open, run->device, no_handle,
        run->info.event_handle_bytes, &out)

/* Request the device address of memory that is not the device's. On a device that uses host memory
 * directly, every address may be valid, so the call is not made and counts as rejected. */
static int32_t foreign_pointer(struct ds_accel__run *run, bool *is_touched_out)
{
    void *out;
    int32_t status;

    *is_touched_out = false;
    if ((run->info.flags & DS_ACCEL_FLAG_HOST_ACCESSIBLE) != 0) {
        return DS_ACCEL_ERR_INVALID;
    }
    memset(&out, POISON, sizeof(out));
    status = CALL(run, mem_device_pointer, run->device, &out, &out);
    *is_touched_out = is_touched(&out, 0, sizeof(out));
    return status;
}

/* Create a stream with a priority below the lowest valid priority. */
static int32_t low_priority(struct ds_accel__run *run, bool *is_touched_out)
{
    ds_accel_plugin_stream_t *out;
    int32_t least = 0;
    int32_t greatest = 0;
    int32_t status;

    memset(&out, POISON, sizeof(out));
    CALL(run, stream_priority_range, run->device, &least, &greatest);
    status = CALL(run, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, least + 1, &out);
    *is_touched_out = is_touched(&out, 0, sizeof(out));
    return status;
}

/* Request the time between events that were never recorded. */
static int32_t no_time(struct ds_accel__run *run, bool *is_touched_out)
{
    ds_accel_plugin_event_t *event = ds_accel__event(run, 0);
    double out;
    int32_t status;

    memset(&out, POISON, sizeof(out));
    status = CALL(run, event_elapsed_ms, event, event, &out);
    *is_touched_out = is_touched(&out, 0, sizeof(out));
    run->table.event_destroy(event);
    return status;
}

/* Request the value of a variable that does not select devices. */
static int32_t other_variable(struct ds_accel__run *run, bool *is_touched_out)
{
    struct {
        char value[64];
        uint32_t needed;
    } out;
    const uint32_t index = 0;
    int32_t status;

    memset(&out, POISON, sizeof(out));
    status = CALL(run, visible_devices_value, run->instance, "NOBODY_KNOWS_THIS", &index, 1,
                  out.value, sizeof(out.value), &out.needed);
    *is_touched_out = is_touched(&out, 0, sizeof(out));
    return status;
}

/* Instantiate a graph with undefined flags. */
static int32_t graph_flags(struct ds_accel__run *run, bool *is_touched_out)
{
    ds_accel_plugin_graph_t *graph = NULL;
    ds_accel_plugin_graph_exec_t *out;
    int32_t status;

    WANT(run, DS_ACCEL_OK, graph_capture_begin, run->stream, DS_ACCEL_CAPTURE_RELAXED);
    WANT(run, DS_ACCEL_OK, graph_capture_end, run->stream, &graph);
    memset(&out, POISON, sizeof(out));
    status = CALL(run, graph_instantiate, graph, UNKNOWN_BIT, &out);
    *is_touched_out = is_touched(&out, 0, sizeof(out));
    run->table.graph_destroy(graph);
    return status;
}

static const struct {
    struct ds_accel__refusal refusal;
    int32_t (*call)(struct ds_accel__run *run, bool *is_touched_out);
} refusals[] = {
    {{"unknown flags", SLOT(stream_create), true}, stream_flags},
    {{"unknown flags", SLOT(event_create), true}, event_flags},
    {{"unknown flags", SLOT(mem_alloc), true}, alloc_flags},
    {{"unknown flags", SLOT(mem_alloc_pinned), true}, pinned_flags},
    {{"unknown flags", SLOT(mem_alloc_managed), true}, managed_flags},
    {{"unknown flags", SLOT(mem_alloc_async), true}, async_flags},
    {{"unknown flags", SLOT(mem_register), true}, register_flags},
    {{"an unknown kind", SLOT(mem_copy), true}, copy_kind},
    {{"an unknown kind", SLOT(mem_copy_async), true}, copy_async_kind},
    {{"unknown bits", SLOT(mem_reset_peaks), true}, peak_bits},
    {{"unknown flags", SLOT(vmem_granularity), true}, granularity_flags},
    {{"unknown flags", SLOT(vmem_reserve), true}, reserve_flags},
    {{"unknown flags", SLOT(vmem_create), true}, vmem_flags},
    {{"an unknown mode", SLOT(graph_capture_begin), true}, capture_mode},
    {{"unknown flags", SLOT(graph_instantiate), true}, graph_flags},
    {{"an unknown list", SLOT(env_name_get), true}, name_list},
    {{"an unknown kind", SLOT(native_get), true}, native_kind},
    {{"an unknown kind", SLOT(native_wrap), true}, wrap_kind},
    {{"an index past the last", SLOT(device_identity), false}, identity_index},
    {{"an index past the last", SLOT(device_open), false}, open_index},
    {{"an index past the last", SLOT(telemetry_get), false}, telemetry_index},
    {{"an index past the last", SLOT(telemetry_processes), false}, processes_index},
    {{"an index past the last", SLOT(links_get), false}, links_index},
    {{"an unknown id", SLOT(extension), false}, extension_id},
    {{"size 0", SLOT(mem_alloc), false}, alloc_nothing},
    {{"size UINT64_MAX", SLOT(mem_alloc), false}, alloc_too_much},
    {{"size 0", SLOT(mem_alloc_pinned), false}, pinned_nothing},
    {{"size UINT64_MAX", SLOT(mem_alloc_pinned), false}, pinned_too_much},
    {{"size 0", SLOT(mem_alloc_managed), false}, managed_nothing},
    {{"size 0", SLOT(mem_alloc_async), false}, async_nothing},
    {{"size 0", SLOT(vmem_create), false}, vmem_nothing},
    {{"size 0", SLOT(vmem_reserve), false}, reserve_nothing},
    {{"a priority out of the range", SLOT(stream_priority_range), false}, low_priority},
    {{"an alignment of 3", SLOT(mem_alloc), false}, alloc_alignment},
    {{"descriptor -1", SLOT(dmabuf_import), false}, import_nothing},
    {{"memory that is not pinned", SLOT(mem_device_pointer), false}, foreign_pointer},
    {{"a handle of zeros", SLOT(ipc_memory_open), false}, open_nothing},
    {{"a handle of zeros", SLOT(ipc_event_open), false}, open_no_event},
    {{"events never recorded", SLOT(event_elapsed_ms), false}, no_time},
    {{"a stream that does not capture", SLOT(graph_capture_end), false}, no_capture},
    {{"a position past the end", SLOT(env_name_get), false}, name_past_end},
    {{"an unknown variable", SLOT(visible_devices_value), false}, other_variable},
};

/* True for slots whose refusals need the run's stream. */
static bool needs_stream(size_t slot)
{
    return slot == SLOT(mem_alloc_async) || slot == SLOT(mem_copy_async) ||
           slot == SLOT(graph_capture_begin) || slot == SLOT(graph_capture_end) ||
           slot == SLOT(graph_instantiate);
}

void ds_accel__refuse_all(struct ds_accel__run *run, ds_accel__refusal_t visit, void *user_data)
{
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        bool is_written = false;
        int32_t status;

        if (ds_accel__has_slot(run, refusals[i].refusal.slot) &&
            !ds_accel__witness_is_refused(refusals[i].refusal.slot) &&
            !ds_accel__witness_is_refused_step((unsigned)i + 1) &&
            (run->stream != NULL || !needs_stream(refusals[i].refusal.slot))) {
            ds_accel__witness_step((unsigned)i + 1);
            status = refusals[i].call(run, &is_written);
            ds_accel__witness_step(0);
            visit(run, &refusals[i].refusal, status, is_written, user_data);
        }
    }
}

/* ---- the tour ------------------------------------------------------------------------------- */

#define STOP(function, slot, ...) \
    static int32_t function(struct ds_accel__run *run) \
    { \
        return CALL(run, slot, __VA_ARGS__); \
    }
#define STOP_OUT(function, type, slot, ...) \
    static int32_t function(struct ds_accel__run *run) \
    { \
        type out = {0}; \
\
        return CALL(run, slot, __VA_ARGS__); \
    }
#define STOP_STRUCT(function, type, slot, ...) \
    static int32_t function(struct ds_accel__run *run) \
    { \
        type out = {.struct_size = sizeof(out)}; \
\
        return CALL(run, slot, __VA_ARGS__); \
    }
/* As STOP, for a call that creates an object; undo destroys it. */
#define STOP_MADE(function, type, undo, slot, ...) \
    static int32_t function(struct ds_accel__run *run) \
    { \
        type out = {0}; \
        int32_t status = CALL(run, slot, __VA_ARGS__); \
\
        if (status == DS_ACCEL_OK) { \
            undo; \
        } \
        return status; \
    }

STOP_STRUCT(visit_backend_info, struct ds_accel_backend_info, backend_info, run->instance, &out)
STOP_OUT(visit_count, uint32_t, device_count, run->instance, &out)
STOP_STRUCT(visit_identity, struct ds_accel_device_identity, device_identity, run->instance,
            run->device_index, &out)
STOP_MADE(visit_open, ds_accel_plugin_device_t *, run->table.device_close(out), device_open,
          run->instance, run->device_index, &out)
STOP_STRUCT(visit_info, struct ds_accel_device_info, device_info, run->device, &out)
STOP_OUT(visit_current, uint32_t, device_get_current, run->instance, &out)
STOP(visit_synchronize, device_synchronize, run->device, UINT64_MAX)
STOP(visit_health, device_health, run->device)
STOP_MADE(visit_stream, ds_accel_plugin_stream_t *, run->table.stream_destroy(out), stream_create,
          run->device, DS_ACCEL_STREAM_DEFAULT, 0, &out)
STOP_OUT(visit_default, ds_accel_plugin_stream_t *, stream_get_default, run->device, &out)
STOP_OUT(visit_range, struct two_sizes, stream_priority_range, run->device, (int32_t *)&out.first,
         (int32_t *)&out.second)
STOP(visit_stream_wait, stream_synchronize, run->stream, UINT64_MAX)
STOP(visit_stream_query, stream_query, run->stream)
STOP_MADE(visit_event, ds_accel_plugin_event_t *, run->table.event_destroy(out), event_create,
          run->device, 0, &out)
STOP_MADE(visit_alloc, void *, CALL(run, mem_free, run->device, out), mem_alloc, run->device,
          MEMORY_BYTES, 0, 0, &out)
STOP_MADE(visit_pinned, void *, CALL(run, mem_free_pinned, run->device, out), mem_alloc_pinned,
          run->device, MEMORY_BYTES, 1, 0, &out)
STOP_MADE(visit_managed, void *, CALL(run, mem_free, run->device, out), mem_alloc_managed,
          run->device, MEMORY_BYTES, 0, &out)
STOP_MADE(visit_async, void *, CALL(run, mem_free_async, run->stream, out, NULL, 0),
          mem_alloc_async, run->stream, MEMORY_BYTES, 0, NULL, 0, &out)
STOP_STRUCT(visit_mem_info, struct ds_accel_memory_info, mem_info, run->device, &out)
STOP_STRUCT(visit_mem_stats, struct ds_accel_memory_stats, mem_stats, run->device, &out)
STOP(visit_trim, mem_trim, run->device, UINT64_MAX)
STOP(visit_limit, mem_set_limit, run->device, 0)
STOP_STRUCT(visit_pointer, struct ds_accel_pointer_info, mem_pointer_info, run->instance,
            run->device, host_bytes, &out)
STOP_OUT(visit_granularity, struct two_sizes, vmem_granularity, run->device, 0, &out.first,
         &out.second)
STOP_OUT(visit_capturing, uint32_t, graph_capture_status, run->stream, &out)
STOP_OUT(visit_dtype, uint32_t, dtype_support, run->device, DS_ACCEL_DTYPE_FLOAT32, &out)
STOP_STRUCT(visit_telemetry, struct ds_accel_telemetry, telemetry_get, run->instance,
            run->device_index, &out)
STOP_OUT(visit_processes, uint32_t, telemetry_processes, run->instance, run->device_index, NULL,
         (uint32_t)sizeof(struct ds_accel_process), 0, &out)
STOP_OUT(visit_links, uint32_t, links_get, run->instance, run->device_index, NULL,
         (uint32_t)sizeof(struct ds_accel_link), 0, &out)
STOP_OUT(visit_builders, uint32_t, op_builders_get, run->instance, NULL,
         (uint32_t)sizeof(struct ds_accel_op_builder), 0, &out)
STOP_OUT(visit_rules, uint32_t, env_rules_get, run->instance, NULL,
         (uint32_t)sizeof(struct ds_accel_env_rule), 0, &out)
STOP_OUT(visit_peer, uint32_t, peer_can_access, run->device, run->device, &out)
STOP_OUT(visit_native, struct two_sizes, native_get, run->device, DS_ACCEL_NATIVE_DEVICE,
         run->device, &out.first, &out.second)
STOP_OUT(visit_seed, uint64_t, rng_initial_seed, run->device, &out)

static int32_t visit_copy(struct ds_accel__run *run)
{
    unsigned char bytes[64] = {0};
    void *memory = NULL;
    int32_t status = CALL(run, mem_alloc, run->device, sizeof(bytes), 0, 0, &memory);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_copy, run->device, memory, bytes, sizeof(bytes),
                      DS_ACCEL_COPY_HOST_TO_DEVICE);
        CALL(run, mem_free, run->device, memory);
    }
    return status;
}

static int32_t visit_fill(struct ds_accel__run *run)
{
    const unsigned char zero = 0;
    void *memory = NULL;
    int32_t status = CALL(run, mem_alloc, run->device, MEMORY_BYTES, 0, 0, &memory);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_fill_async, run->stream, memory, &zero, 1, MEMORY_BYTES);
        CALL(run, stream_synchronize, run->stream, UINT64_MAX);
        CALL(run, mem_free, run->device, memory);
    }
    return status;
}

/* Record an event, make a stream wait for it, and wait for it. Returns the status of the first
 * call that failed; DS_ACCEL_OK if none failed. */
static int32_t visit_record(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *event = NULL;
    int32_t status = CALL(run, event_create, run->device, 0, &event);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, event_record, event, run->stream);
        if (status == DS_ACCEL_OK && run->table.stream_wait_event != NULL) {
            status = CALL(run, stream_wait_event, run->stream, event);
        }
        if (status == DS_ACCEL_OK) {
            status = CALL(run, event_synchronize, event, UINT64_MAX);
        }
        run->table.event_destroy(event);
    }
    return status;
}

static void do_nothing(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

static int32_t visit_task(struct ds_accel__run *run)
{
    int32_t status = CALL(run, stream_host_task, run->stream, do_nothing, NULL);

    return status == DS_ACCEL_OK ? CALL(run, stream_synchronize, run->stream, UINT64_MAX) : status;
}

static int32_t visit_push(struct ds_accel__run *run)
{
    int32_t status = CALL(run, range_push, run->instance, "conformance", NULL, NULL);

    return status == DS_ACCEL_OK ? CALL(run, range_pop, run->instance, NULL) : status;
}

static int32_t visit_builder(struct ds_accel__run *run)
{
    char reason[256] = "";
    uint32_t is_compatible = 0;

    return CALL(run, op_compatible, run->instance, "cpu_adam", &is_compatible, reason,
                (uint32_t)sizeof(reason));
}

static const struct ds_accel__tour_stop stops[] = {
    {"device", SLOT(device_count), visit_count, false},
    {"life", SLOT(backend_info), visit_backend_info, false},
    {"device", SLOT(device_identity), visit_identity, false},
    {"device", SLOT(device_open), visit_open, false},
    {"device", SLOT(device_info), visit_info, false},
    {"device", SLOT(device_get_current), visit_current, false},
    {"device", SLOT(device_synchronize), visit_synchronize, false},
    {"device", SLOT(device_health), visit_health, false},
    {"stream", SLOT(stream_create), visit_stream, false},
    {"stream", SLOT(stream_get_default), visit_default, false},
    {"stream", SLOT(stream_priority_range), visit_range, false},
    {"stream", SLOT(stream_synchronize), visit_stream_wait, false},
    {"stream", SLOT(stream_query), visit_stream_query, false},
    {"stream", SLOT(stream_host_task), visit_task, false},
    {"event", SLOT(event_create), visit_event, false},
    {"event", SLOT(event_record), visit_record, false},
    {"memory", SLOT(mem_alloc), visit_alloc, false},
    {"memory", SLOT(mem_copy), visit_copy, false},
    {"memory", SLOT(mem_fill_async), visit_fill, false},
    {"memory", SLOT(mem_info), visit_mem_info, false},
    {"memory", SLOT(mem_stats), visit_mem_stats, false},
    {"memory", SLOT(mem_trim), visit_trim, false},
    {"memory", SLOT(mem_set_limit), visit_limit, false},
    {"memory", SLOT(mem_alloc_managed), visit_managed, true},
    {"memory", SLOT(mem_alloc_async), visit_async, true},
    {"pinned", SLOT(mem_alloc_pinned), visit_pinned, false},
    {"pointer", SLOT(mem_pointer_info), visit_pointer, false},
    {"vmem", SLOT(vmem_granularity), visit_granularity, true},
    {"graph", SLOT(graph_capture_status), visit_capturing, false},
    {"dtype", SLOT(dtype_support), visit_dtype, false},
    {"telemetry", SLOT(telemetry_get), visit_telemetry, false},
    {"telemetry", SLOT(telemetry_processes), visit_processes, false},
    {"ranges", SLOT(range_push), visit_push, false},
    {"peers", SLOT(peer_can_access), visit_peer, false},
    {"peers", SLOT(links_get), visit_links, false},
    {"rng", SLOT(rng_initial_seed), visit_seed, false},
    {"ops", SLOT(op_builders_get), visit_builders, false},
    {"ops", SLOT(op_compatible), visit_builder, false},
    {"env", SLOT(env_rules_get), visit_rules, false},
    {"native", SLOT(native_get), visit_native, false},
    {"event", SLOT(event_elapsed_ms), ds_accel__visit_elapsed, true},
    {"memory", SLOT(mem_copy_async), ds_accel__visit_copy_async, false},
    {"pinned", SLOT(mem_register), ds_accel__visit_register, true},
    {"vmem", SLOT(vmem_create), ds_accel__visit_vmem, true},
    {"graph", SLOT(graph_launch), ds_accel__visit_graph, true},
    {"ipc", SLOT(ipc_memory_export), ds_accel__visit_ipc_memory, true},
    {"ipc", SLOT(ipc_event_export), ds_accel__visit_ipc_event, true},
    {"dmabuf", SLOT(dmabuf_export), ds_accel__visit_dmabuf, true},
    {"env", SLOT(env_name_get), ds_accel__visit_variable, false},
};

/* True if the stop can be called; stops outside of the group "device" need the run's stream. */
static bool can_visit(const struct ds_accel__run *run, const struct ds_accel__tour_stop *stop)
{
    return ds_accel__has_slot(run, stop->slot) && !ds_accel__witness_is_refused(stop->slot) &&
           (run->stream != NULL || strcmp(stop->group, "device") == 0);
}

void ds_accel__tour(struct ds_accel__run *run, ds_accel__tour_t visit, void *user_data)
{
    for (size_t i = 0; i < ARRAY_SIZE(stops); i++) {
        if (can_visit(run, &stops[i])) {
            int32_t status = stops[i].call(run);

            if (visit != NULL) {
                visit(run, &stops[i], status, user_data);
            }
        }
    }
}

bool ds_accel__tour_stop(struct ds_accel__run *run, size_t slot)
{
    for (size_t i = 0; i < ARRAY_SIZE(stops); i++) {
        if (stops[i].slot == slot && can_visit(run, &stops[i])) {
            stops[i].call(run);
            return true;
        }
    }
    return false;
}

/* ---- checks of the refusals ----------------------------------------------------------------- */

static void want_untouched(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                           int32_t status, bool is_written, void *user_data)
{
    (void)user_data;
    EXPECT(run, status == DS_ACCEL_OK || !is_written, "%s with %s: %s, and an output was written",
           ds_accel__slot_name(refusal->slot), refusal->what, ds_accel__status_text(status));
}

static void check_outputs(struct ds_accel__run *run)
{
    ds_accel__refuse_all(run, want_untouched, NULL);
}

static void want_filled_error(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                              int32_t status, bool is_written, void *user_data)
{
    (void)is_written;
    (void)user_data;
    if (status >= 0) {
        return;
    }
    EXPECT(run, run->error.code == status, "%s with %s: returned %d, error.code is %d",
           ds_accel__slot_name(refusal->slot), refusal->what, status, run->error.code);
    EXPECT(run, run->error.message[0] != '\0', "%s with %s: %s without a message",
           ds_accel__slot_name(refusal->slot), refusal->what, ds_accel__status_text(status));
}

static void check_errors(struct ds_accel__run *run)
{
    ds_accel__refuse_all(run, want_filled_error, NULL);
}

static void want_vendor_code(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                             int32_t status, bool is_written, void *user_data)
{
    size_t *seen = user_data;

    (void)is_written;
    if (status < 0 && run->error.vendor_text[0] != '\0') {
        EXPECT(run, run->error.vendor_code != 0, "%s with %s: vendor_text \"%.60s\" without a code",
               ds_accel__slot_name(refusal->slot), refusal->what, run->error.vendor_text);
        ++*seen;
    }
}

static void check_vendor_codes(struct ds_accel__run *run)
{
    size_t seen = 0;

    ds_accel__refuse_all(run, want_vendor_code, &seen);
    if (seen == 0) {
        ds_accel__skip(run, "no refusal came from a vendor's runtime");
    }
}

static void want_listed(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                        int32_t status, bool is_written, void *user_data)
{
    (void)is_written;
    (void)user_data;
    EXPECT(run, status <= DS_ACCEL_OK && status >= DS_ACCEL_ERR_INTERNAL,
           "%s with %s: status %d is not listed", ds_accel__slot_name(refusal->slot), refusal->what,
           status);
}

static void want_listed_stop(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                             int32_t status, void *user_data)
{
    bool may_wait = stop->slot == SLOT(stream_query);

    (void)user_data;
    EXPECT(run,
           status >= DS_ACCEL_ERR_INTERNAL &&
               status <= (may_wait ? DS_ACCEL_NOT_READY : DS_ACCEL_OK),
           "%s: status %d is not listed", ds_accel__slot_name(stop->slot), status);
}

static void check_statuses(struct ds_accel__run *run)
{
    ds_accel__refuse_all(run, want_listed, NULL);
    ds_accel__tour(run, want_listed_stop, NULL);
}

static void want_refused(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                         int32_t status, bool is_written, void *user_data)
{
    (void)is_written;
    (void)user_data;
    /* The plugin may report that the device lacks the feature before it checks the argument. */
    EXPECT(run,
           !refusal->is_unknown || status == DS_ACCEL_ERR_INVALID ||
               status == DS_ACCEL_ERR_UNSUPPORTED,
           "%s with %s: expected DS_ACCEL_ERR_INVALID, got %s", ds_accel__slot_name(refusal->slot),
           refusal->what, ds_accel__status_text(status));
}

static void check_unknown(struct ds_accel__run *run)
{
    ds_accel__refuse_all(run, want_refused, NULL);
}

static void check_unknown_dtype(struct ds_accel__run *run)
{
    uint32_t support = 7;

    WANT(run, DS_ACCEL_OK, dtype_support, run->device, UNKNOWN_NUMBER, &support);
    EXPECT(run, support == 0, "data type %u: expected 0, got %u", UNKNOWN_NUMBER, support);
    support = 7;
    WANT(run, DS_ACCEL_OK, dtype_support, run->device, 0, &support);
    EXPECT(run, support == 0, "data type 0: expected 0, got %u", support);
    support = 7;
    WANT(run, DS_ACCEL_OK, dtype_support, run->device, DS_ACCEL_DTYPE_COMPLEX128 + 1, &support);
    EXPECT(run, support == 0 || run->theirs->abi_minor > DS_ACCEL_ABI_MINOR,
           "data type %u: expected 0, got %u", DS_ACCEL_DTYPE_COMPLEX128 + 1, support);
}

static void want_clean(struct ds_accel__run *run, const char *what, const char *text, size_t size)
{
    EXPECT(run, ds_accel__is_clean_text(text, size), "%s is not a NUL-terminated line of UTF-8",
           what);
}

static void want_clean_error(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                             int32_t status, bool is_written, void *user_data)
{
    char what[128];

    (void)is_written;
    (void)user_data;
    if (status < 0) {
        snprintf(what, sizeof(what), "the message of %s with %s",
                 ds_accel__slot_name(refusal->slot), refusal->what);
        want_clean(run, what, run->error.message, sizeof(run->error.message));
        want_clean(run, "vendor_text", run->error.vendor_text, sizeof(run->error.vendor_text));
    }
}

static void check_texts(struct ds_accel__run *run)
{
    struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};

    want_clean(run, "the verdict's detail", run->verdict.detail, sizeof(run->verdict.detail));
    want_clean(run, "the verdict's variant", run->verdict.variant, sizeof(run->verdict.variant));
    if (run->table.name != NULL && run->table.vendor != NULL && run->table.version != NULL) {
        want_clean(run, "the plugin's name", run->theirs->name, 256);
        want_clean(run, "the plugin's vendor", run->theirs->vendor, 256);
        want_clean(run, "the plugin's version", run->theirs->version, 256);
    }
    if (run->table.device_identity != NULL) {
        CALL(run, device_identity, run->instance, run->device_index, &identity);
        want_clean(run, "device_identity's name", identity.name, sizeof(identity.name));
        want_clean(run, "architecture", identity.architecture, sizeof(identity.architecture));
        want_clean(run, "pci_address", identity.pci_address, sizeof(identity.pci_address));
        want_clean(run, "node_path", identity.node_path, sizeof(identity.node_path));
        want_clean(run, "uuid_text", identity.uuid_text, sizeof(identity.uuid_text));
    }
    if (run->table.device_info != NULL) {
        CALL(run, device_info, run->device, &info);
        want_clean(run, "device_info's name", info.name, sizeof(info.name));
    }
    want_clean(run, "communication_backend", run->info.communication_backend,
               sizeof(run->info.communication_backend));
    ds_accel__refuse_all(run, want_clean_error, NULL);
}

/* ---- checks of the tour --------------------------------------------------------------------- */

static void forget_refusal(struct ds_accel__run *run, const struct ds_accel__refusal *refusal,
                           int32_t status, bool is_written, void *user_data)
{
    (void)run;
    (void)refusal;
    (void)status;
    (void)is_written;
    (void)user_data;
}

/* Make all calls of both collections. The check fails only if one of them terminates the
 * process. */
static void check_survival(struct ds_accel__run *run)
{
    ds_accel__refuse_all(run, forget_refusal, NULL);
    ds_accel__tour(run, NULL, NULL);
}

static bool names_library(const char *message)
{
    return strstr(message, ".so") != NULL || strstr(message, ".dylib") != NULL;
}

static void want_supported(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                           int32_t status, void *user_data)
{
    (void)user_data;
    /* may_lack: the call is valid on every machine, but reports ERR_UNSUPPORTED if the device
     * lacks the feature. */
    if (status == DS_ACCEL_ERR_UNSUPPORTED && stop->may_lack) {
        return;
    }
    /* telemetry_processes may need a separate library of the vendor. If the library is not
     * installed, ERR_UNSUPPORTED is correct, and an empty list would be wrong. */
    if (status == DS_ACCEL_ERR_UNSUPPORTED && stop->slot == SLOT(telemetry_processes)) {
        EXPECT(run, names_library(run->error.message),
               "%s returns DS_ACCEL_ERR_UNSUPPORTED, and names no missing library: %s",
               ds_accel__slot_name(stop->slot), run->error.message);
        return;
    }
    EXPECT(run, status != DS_ACCEL_ERR_UNSUPPORTED || run->device_count > 1,
           "%s is in the table and returns DS_ACCEL_ERR_UNSUPPORTED on the only device",
           ds_accel__slot_name(stop->slot));
    if (status == DS_ACCEL_ERR_UNSUPPORTED) {
        ds_accel_plugin_device_t *device = run->device;

        for (uint32_t i = 0; i < run->device_count && status == DS_ACCEL_ERR_UNSUPPORTED; i++) {
            run->device = ds_accel__run_open(run, run->instance, i);
            status = stop->call(run);
            run->table.device_close(run->device);
        }
        run->device = device;
        EXPECT(run, status != DS_ACCEL_ERR_UNSUPPORTED,
               "%s is in the table and returns DS_ACCEL_ERR_UNSUPPORTED on every device",
               ds_accel__slot_name(stop->slot));
    }
}

static void check_stubs(struct ds_accel__run *run)
{
    ds_accel__tour(run, want_supported, NULL);
}

/* The thread's current device and stream, which calls must not change. */
struct current {
    uint32_t device;
    ds_accel_plugin_stream_t *stream;
};

static void want_current(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                         int32_t status, void *user_data)
{
    const struct current *before = user_data;
    struct current now = *before;

    (void)status;
    WANT(run, DS_ACCEL_OK, device_get_current, run->instance, &now.device);
    EXPECT(run, now.device == before->device, "%s: the current device was %u and is %u",
           ds_accel__slot_name(stop->slot), before->device, now.device);
    if (run->table.stream_get_current != NULL) {
        WANT(run, DS_ACCEL_OK, stream_get_current, run->device, &now.stream);
        EXPECT(run, now.stream == before->stream, "%s: the current stream is another",
               ds_accel__slot_name(stop->slot));
    }
}

static void check_current(struct ds_accel__run *run)
{
    struct current before = {0, NULL};
    ds_accel_plugin_device_t *other = NULL;

    /* Make another device the current device. A call that makes its own device current, and does
     * not restore the current device, is then detected. */
    if (run->device_count > 1 && run->table.device_set_current != NULL) {
        other = ds_accel__run_open(run, run->instance, (run->device_index + 1) % run->device_count);
        WANT(run, DS_ACCEL_OK, device_set_current, other);
    }
    WANT(run, DS_ACCEL_OK, device_get_current, run->instance, &before.device);
    if (run->table.stream_get_current != NULL) {
        WANT(run, DS_ACCEL_OK, stream_get_current, run->device, &before.stream);
    }
    ds_accel__tour(run, want_current, &before);
    if (other != NULL) {
        WANT(run, DS_ACCEL_OK, device_set_current, run->device);
        run->table.device_close(other);
    }
}

#define THREADS 4
#define ROUNDS 3

struct crew {
    struct ds_accel__run run; /* the thread's copy */
    pthread_barrier_t *begin; /* makes all threads begin at the same time */
    int32_t statuses[ARRAY_SIZE(stops)];
    bool has_statuses;
};

static void want_same_status(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                             int32_t status, void *user_data)
{
    struct crew *crew = user_data;
    int32_t *wanted = &crew->statuses[stop - stops];

    if (!crew->has_statuses) {
        *wanted = status;
    } else if (*wanted == DS_ACCEL_OK) {
        EXPECT(run, status >= DS_ACCEL_OK, "%s: %s in one thread, %s in one of %d: %s",
               ds_accel__slot_name(stop->slot), ds_accel__status_text(*wanted),
               ds_accel__status_text(status), THREADS, run->error.message);
    }
}

static void *tour_in_thread(void *user_data)
{
    struct crew *crew = user_data;

    if (crew->run.table.stream_create != NULL) {
        crew->run.stream = ds_accel__stream(&crew->run);
    }
    pthread_barrier_wait(crew->begin);
    for (int i = 0; i < ROUNDS; i++) {
        ds_accel__tour(&crew->run, want_same_status, crew);
    }
    if (crew->run.stream != NULL) {
        crew->run.table.stream_destroy(crew->run.stream);
    }
    return NULL;
}

static void check_threads(struct ds_accel__run *run)
{
    static struct crew crews[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t begin;

    pthread_barrier_init(&begin, NULL, THREADS);
    crews[0].run = *run;
    crews[0].begin = &begin;
    crews[0].has_statuses = false;
    ds_accel__tour(&crews[0].run, want_same_status, &crews[0]);
    crews[0].has_statuses = true;
    for (int i = 1; i < THREADS; i++) {
        crews[i] = crews[0];
    }
    for (int i = 0; i < THREADS; i++) {
        EXPECT(run, pthread_create(&threads[i], NULL, tour_in_thread, &crews[i]) == 0,
               "no thread can be created");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&begin);
}

struct place {
    struct ds_accel__run *run;
    const char *slot;
};

static void report_change(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    const struct place *place = user_data;

    ds_accel__check_fail(place->run, "%s: %s: %s", place->slot, ds_accel__reason_code(reason),
                         detail);
}

static void want_process(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                         int32_t status, void *user_data)
{
    struct place place = {run, ds_accel__slot_name(stop->slot)};

    (void)status;
    (void)user_data;
    ds_accel__guard_compare(run->guard, report_change, &place);
}

static void check_process(struct ds_accel__run *run)
{
    struct place before = {run, "before any of these calls"};

    ds_accel__guard_compare(run->guard, report_change, &before);
    ds_accel__tour(run, want_process, NULL);
    ds_accel__want_silence(run);
}

static void check_null(struct ds_accel__run *run)
{
    const struct ds_accel_plugin *table = &run->table;

    table->shutdown(NULL);
    table->device_close(NULL);
    if (ds_accel__witness_has(SLOT(stream_destroy))) {
        table->stream_destroy(NULL);
    }
    if (ds_accel__witness_has(SLOT(event_destroy))) {
        table->event_destroy(NULL);
    }
    if (ds_accel__witness_has(SLOT(graph_destroy))) {
        table->graph_destroy(NULL);
    }
    if (ds_accel__witness_has(SLOT(graph_exec_destroy))) {
        table->graph_exec_destroy(NULL);
    }
    if (ds_accel__witness_has(SLOT(vmem_destroy))) {
        table->vmem_destroy(NULL);
    }
    if (ds_accel__witness_has(SLOT(mem_free))) {
        WANT(run, DS_ACCEL_OK, mem_free, run->device, NULL);
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE

static const struct ds_accel__check checks[] = {
    {26, GROUP, "no call ends the process", DEVICE, 0, check_survival, {0}},
    {14, GROUP, "a failure writes no output", DEVICE, 0, check_outputs, {0}},
    {15, GROUP, "a failure fills the error", DEVICE, 0, check_errors, {0}},
    {16, GROUP, "a vendor's text comes with its code", DEVICE, 0, check_vendor_codes, {0}},
    {17, GROUP, "statuses are listed", DEVICE, 0, check_statuses, {0}},
    {18, GROUP, "unknown bits and numbers are refused", DEVICE, 0, check_unknown, {0}},
    {18,
     "dtype",
     "unknown data types have no support",
     DEVICE,
     0,
     check_unknown_dtype,
     {SLOT(dtype_support)}},
    {23, GROUP, "NULL is destroyed", DEVICE, DS_ACCEL__CHECK_TRAP, check_null, {0}},
    {25, GROUP, "texts are one line of UTF-8", DEVICE, 0, check_texts, {0}},
    {27, GROUP, "threads with handles of their own", DEVICE, 0, check_threads, {0}},
    {28, GROUP, "the process is as it was", DEVICE, 0, check_process, {0}},
    {34, GROUP, "no slot is a stub", DEVICE, 0, check_stubs, {0}},
    {38,
     GROUP,
     "the current device and stream stay",
     DEVICE,
     0,
     check_current,
     {SLOT(device_get_current)}},
};

const struct ds_accel__check_list ds_accel__checks_calls = {checks, ARRAY_SIZE(checks)};
