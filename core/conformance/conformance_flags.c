/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: the flags of a device describe its behaviour, and calls recognize their
 * flags. conformance_device.c checks that the slots that flags promise exist. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <string.h>

#define GROUP "flags"
#define BYTES 4211u

/* Test a flag of the device, or of the backend if device_info is missing. Without the flag, skip
 * the check. */
static bool has_flag(struct ds_accel__run *run, uint64_t flag, const char *name)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info), .flags = run->info.flags};

    if (run->table.device_info != NULL) {
        WANT(run, DS_ACCEL_OK, device_info, run->device, &info);
    }
    if ((info.flags & flag) == 0) {
        ds_accel__skip(run, "%s is not set", name);
        return false;
    }
    return true;
}

#define HAS_FLAG(run, flag) has_flag(run, flag, #flag)

/* ---- implicit behaviour of a device --------------------------------------------------------- */

/* If DS_ACCEL_FLAG_SYNCHRONIZED is set, check that a host task runs within its call. If the task
 * is still waiting for the gate after the call returned, the call only queued it. */
static void check_synchronized(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream;
    struct ds_accel__hold gate;

    if (!HAS_FLAG(run, DS_ACCEL_FLAG_SYNCHRONIZED)) {
        return;
    }
    stream = ds_accel__stream(run);
    EXPECT(run, !ds_accel__gate_close(run, &gate, stream),
           "DS_ACCEL_FLAG_SYNCHRONIZED is set, and a host task is queued");
    run->is_skipped = false;
    WANT(run, DS_ACCEL_OK, stream_query, stream);
    run->table.stream_destroy(stream);
}

/* Two streams: reader copies memory that writer, which is held, writes. */
struct order {
    ds_accel_plugin_stream_t *writer, *reader;
    unsigned char *first, *second;
};

static int32_t queue_order(struct ds_accel__run *run, void *user_data)
{
    const struct order *order = user_data;
    int32_t status =
        CALL(run, mem_fill_async, order->writer, order->first, "\x7e", 1, (uint64_t)BYTES);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_copy_async, order->reader, order->second, order->first, BYTES,
                      DS_ACCEL_COPY_DEVICE_TO_DEVICE);
    }
    return status;
}

static int32_t wait_reader(struct ds_accel__run *run, void *user_data)
{
    return CALL(run, stream_synchronize, ((const struct order *)user_data)->reader, UINT64_MAX);
}

static void check_order(struct ds_accel__run *run, struct order *order, const char *flag)
{
    unsigned char bytes[BYTES] = {0};
    struct ds_accel__caller caller;
    struct ds_accel__caller reader;
    struct ds_accel__hold gate;

    order->first = ds_accel__take(run, BYTES);
    order->second = ds_accel__take(run, BYTES);
    ds_accel__put(run, order->first, bytes, BYTES);
    ds_accel__put(run, order->second, bytes, BYTES);
    if (ds_accel__gate_close(run, &gate, order->writer)) {
        ds_accel__caller_start(run, &caller, queue_order, order);
        /* If queue_order() waits for the gate, no reader is started; the copied bytes are
         * checked below. */
        if (ds_accel__caller_returns(&caller, DS_ACCEL__GRACE_NS)) {
            ds_accel__caller_start(run, &reader, wait_reader, order);
            (void)ds_accel__caller_returns(&reader, DS_ACCEL__GRACE_NS);
            ds_accel__gate_open(&gate);
            ds_accel__want(run, DS_ACCEL_OK, "stream_synchronize",
                           ds_accel__caller_finish(run, &reader));
        }
        ds_accel__gate_open(&gate);
        ds_accel__want(run, DS_ACCEL_OK, "mem_copy_async", ds_accel__caller_finish(run, &caller));
        ds_accel__wait(run, order->reader);
        ds_accel__get(run, bytes, order->second, BYTES);
        EXPECT(run, bytes[0] == 0x7e && bytes[BYTES - 1] == 0x7e,
               "%s is set, and a copy did not wait for what it reads", flag);
        ds_accel__wait(run, order->writer);
    }
    ds_accel__give(run, order->first);
    ds_accel__give(run, order->second);
}

static void check_dependencies(struct ds_accel__run *run)
{
    struct order order = {0};

    if (HAS_FLAG(run, DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES)) {
        order.writer = ds_accel__stream(run);
        order.reader = ds_accel__stream(run);
        check_order(run, &order, "DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES");
        run->table.stream_destroy(order.writer);
        run->table.stream_destroy(order.reader);
    }
}

static void check_default_stream(struct ds_accel__run *run)
{
    struct order order = {0};

    if (HAS_FLAG(run, DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)) {
        WANT(run, DS_ACCEL_OK, stream_create, run->device, DS_ACCEL_STREAM_DEFAULT, 0,
             &order.writer);
        WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &order.reader);
        check_order(run, &order, "DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS");
        run->table.stream_destroy(order.writer);
    }
}

/* Copy on the default stream, which does not wait for the other stream unless the backend orders
 * them implicitly. */
static int32_t use_default(struct ds_accel__run *run, void *user_data)
{
    struct order *order = user_data;
    int32_t status = CALL(run, mem_copy_async, order->reader, order->second, order->first, BYTES,
                          DS_ACCEL_COPY_DEVICE_TO_DEVICE);

    return status == DS_ACCEL_OK ? CALL(run, stream_synchronize, order->reader, UINT64_MAX)
                                 : status;
}

static void check_non_blocking(struct ds_accel__run *run)
{
    struct order order = {0};
    struct ds_accel__hold gate;

    if (!HAS_FLAG(run, DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS)) {
        return;
    }
    WANT(run, DS_ACCEL_OK, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0,
         &order.writer);
    WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &order.reader);
    order.first = ds_accel__take(run, BYTES);
    order.second = ds_accel__take(run, BYTES);
    if (ds_accel__gate_close(run, &gate, order.writer)) {
        ds_accel__want_prompt(run, &gate, DS_ACCEL_OK,
                              "work of the default stream during work of a non-blocking one",
                              use_default, &order);
        ds_accel__gate_open(&gate);
        ds_accel__wait(run, order.writer);
    }
    run->table.stream_destroy(order.writer);
    ds_accel__give(run, order.first);
    ds_accel__give(run, order.second);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static void check_host_access(struct ds_accel__run *run)
{
    unsigned char *memory;
    unsigned char bytes[BYTES];

    if (!HAS_FLAG(run, DS_ACCEL_FLAG_HOST_ACCESSIBLE)) {
        return;
    }
    memory = ds_accel__take(run, BYTES);
    ds_accel__pattern(memory, BYTES, 30); /* the host writes to the address */
    ds_accel__want_pattern(run, memory, BYTES, 30, "what the host wrote to the device's memory");
    ds_accel__pattern(bytes, BYTES, 31);
    ds_accel__put(run, memory, bytes, BYTES);
    EXPECT(run, memcmp(memory, bytes, BYTES) == 0,
           "the host does not see what was copied to the device's memory");
    ds_accel__give(run, memory);
}

/* Check that mem_pointer_info() finds an address's device without a device argument. */
static void check_unified(struct ds_accel__run *run)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    void *memory;

    if (!HAS_FLAG(run, DS_ACCEL_FLAG_UNIFIED_ADDRESSES)) {
        return;
    }
    memory = ds_accel__take(run, BYTES);
    WANT(run, DS_ACCEL_OK, mem_pointer_info, run->instance, NULL, memory, &info);
    EXPECT(run,
           info.kind == DS_ACCEL_POINTER_DEVICE && info.device_index == (int32_t)run->device_index,
           "DS_ACCEL_FLAG_UNIFIED_ADDRESSES is set, but without its device an address is reported "
           "as kind %u, device %d",
           info.kind, info.device_index);
    ds_accel__give(run, memory);
}

/* ---- handles for other processes ------------------------------------------------------------ */

static void check_handles(struct ds_accel__run *run)
{
    const struct ds_accel_backend_info *info = &run->info;

    EXPECT(run, (info->flags & DS_ACCEL_FLAG_MEMORY_IPC) == 0 || info->memory_handle_bytes > 0,
           "DS_ACCEL_FLAG_MEMORY_IPC is set, and memory_handle_bytes is 0");
    EXPECT(run, (info->flags & DS_ACCEL_FLAG_EVENT_IPC) == 0 || info->event_handle_bytes > 0,
           "DS_ACCEL_FLAG_EVENT_IPC is set, and event_handle_bytes is 0");
    EXPECT(run, (info->flags & ~DS_ACCEL_FLAGS_ALL) == 0 || (run->theirs->abi_minor > 0),
           "flags 0x%llx has bits that the header does not", (unsigned long long)info->flags);
}

/* ---- the flags of calls --------------------------------------------------------------------- */

/* Check the status of a call with a flag that exists since the first ABI version: the plugin may
 * accept the flag or return ERR_UNSUPPORTED, but must not reject it as unknown. True if the plugin
 * accepted the flag. */
static bool is_taken(struct ds_accel__run *run, const char *slot, uint32_t flag, int32_t status)
{
    EXPECT(run, status != DS_ACCEL_ERR_INVALID,
           "%s: %#x is of the header, and is refused as unknown; not offered is "
           "DS_ACCEL_ERR_UNSUPPORTED",
           slot, flag);
    return status == DS_ACCEL_OK;
}

static void try_streams(struct ds_accel__run *run)
{
    ds_accel_plugin_stream_t *stream = NULL;
    int32_t status =
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream);

    if (is_taken(run, "stream_create", DS_ACCEL_STREAM_NON_BLOCKING, status)) {
        run->table.stream_destroy(stream);
    }
}

static void try_events(struct ds_accel__run *run)
{
    static const uint32_t flags[] = {DS_ACCEL_EVENT_TIMING, DS_ACCEL_EVENT_BLOCKING_SYNC,
                                     DS_ACCEL_EVENT_INTERPROCESS};

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        ds_accel_plugin_event_t *event = NULL;
        int32_t status = CALL(run, event_create, run->device, flags[i], &event);

        if (is_taken(run, "event_create", flags[i], status)) {
            run->table.event_destroy(event);
        }
    }
}

static void try_pinned(struct ds_accel__run *run)
{
    static const uint32_t flags[] = {DS_ACCEL_PINNED_PORTABLE, DS_ACCEL_PINNED_MAPPED,
                                     DS_ACCEL_PINNED_WRITE_COMBINED, DS_ACCEL_PINNED_HUGE_PAGES};

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        void *pointer = NULL;
        int32_t status = CALL(run, mem_alloc_pinned, run->device, BYTES, 1, flags[i], &pointer);

        if (is_taken(run, "mem_alloc_pinned", flags[i], status)) {
            WANT(run, DS_ACCEL_OK, mem_free_pinned, run->device, pointer);
        }
    }
}

static void try_vmem(struct ds_accel__run *run)
{
    ds_accel_plugin_vmem_t *memory = NULL;
    uint64_t least_bytes = 0;
    uint64_t best_bytes = 0;
    int32_t status = CALL(run, vmem_granularity, run->device, DS_ACCEL_VMEM_EXPORTABLE,
                          &least_bytes, &best_bytes);

    if (is_taken(run, "vmem_granularity", DS_ACCEL_VMEM_EXPORTABLE, status)) {
        status = CALL(run, vmem_create, run->device, best_bytes, DS_ACCEL_VMEM_EXPORTABLE, &memory);
        if (is_taken(run, "vmem_create", DS_ACCEL_VMEM_EXPORTABLE, status)) {
            run->table.vmem_destroy(memory);
        }
    }
}

static void try_captures(struct ds_accel__run *run)
{
    for (uint32_t mode = DS_ACCEL_CAPTURE_GLOBAL; mode <= DS_ACCEL_CAPTURE_RELAXED; mode++) {
        ds_accel_plugin_stream_t *stream = ds_accel__stream(run);
        ds_accel_plugin_graph_t *graph = NULL;
        int32_t status = CALL(run, graph_capture_begin, stream, mode);

        if (is_taken(run, "graph_capture_begin", mode, status)) {
            WANT(run, DS_ACCEL_OK, graph_capture_end, stream, &graph);
            run->table.graph_destroy(graph);
        }
        run->table.stream_destroy(stream);
    }
}

static void check_known(struct ds_accel__run *run)
{
    static const struct {
        size_t slots[2];
        void (*try)(struct ds_accel__run *run);
    } calls[] = {
        {{SLOT(stream_create), SLOT(stream_destroy)}, try_streams},
        {{SLOT(event_create), SLOT(event_destroy)}, try_events},
        {{SLOT(mem_alloc_pinned), SLOT(mem_free_pinned)}, try_pinned},
        {{SLOT(vmem_create), SLOT(vmem_granularity)}, try_vmem},
        {{SLOT(graph_capture_begin), SLOT(stream_create)}, try_captures},
    };

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        if (ds_accel__has_slot(run, calls[i].slots[0]) &&
            ds_accel__has_slot(run, calls[i].slots[1])) {
            calls[i].try(run);
        }
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define ORDER \
    SLOT(stream_create), SLOT(stream_host_task), SLOT(mem_fill_async), SLOT(mem_copy_async), \
        SLOT(mem_alloc)

static const struct ds_accel__check checks[] = {
    {18, GROUP, "bits and numbers of the header are known", DEVICE, 0, check_known, {0}},
    {110,
     GROUP,
     "no work is queued where none can be",
     DEVICE,
     0,
     check_synchronized,
     {SLOT(stream_create), SLOT(stream_host_task), SLOT(stream_query)}},
    {110, GROUP, "dependent work is ordered", DEVICE, 0, check_dependencies, {ORDER}},
    {110,
     GROUP,
     "the default stream waits for the others",
     DEVICE,
     0,
     check_default_stream,
     {ORDER, SLOT(stream_get_default)}},
    {110,
     GROUP,
     "the default stream does not wait for a non-blocking one",
     DEVICE,
     0,
     check_non_blocking,
     {ORDER, SLOT(stream_get_default)}},
    {110,
     GROUP,
     "the host touches the device's memory",
     DEVICE,
     DS_ACCEL__CHECK_TRAP,
     check_host_access,
     {SLOT(mem_alloc), SLOT(mem_copy)}},
    {110,
     GROUP,
     "an address identifies its device",
     DEVICE,
     0,
     check_unified,
     {SLOT(mem_alloc), SLOT(mem_pointer_info)}},
    {110, GROUP, "handles have a size", DEVICE, 0, check_handles, {SLOT(backend_info)}},
};

const struct ds_accel__check_list ds_accel__checks_flags = {checks, ARRAY_SIZE(checks)};
