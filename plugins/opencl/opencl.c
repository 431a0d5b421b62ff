/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * opencl: any device with an OpenCL 1.2 runtime or later. It is selected only if it is requested by
 * name, because the vendors' own backends support their devices better. The plugin links no host
 * library and uses no OpenCL header.
 *
 * The table lacks the functions that OpenCL does not have: virtual memory, peer access, sharing
 * between processes, sensors, ranges. The specification has no query for free memory; the plugin
 * counts its own allocations.
 */
#include "opencl.h"

static const char *const export_prefixes[] = {"OCL_", "OPENCL_", "POCL_", NULL};

const struct vendor_backend vendor_backend = {
    .name = "opencl",
    .flags = DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_UNIFIED_ADDRESSES,
    /* At least CL_DEVICE_MEM_BASE_ADDR_ALIGN, which is the size of a long16. */
    .allocation_align_bytes = 128,
    .frees_wait = 1,

    .open = opencl_open,
    .close = opencl_close,
    .count = opencl_count,
    .probes_in_child = 1, /* PoCL runs threads, and a child forked afterwards hangs */
    .describe = opencl_describe,
    .evidence = opencl_evidence,
    .backend_info = opencl_backend_info,

    .identify = opencl_identify,
    .device_open = opencl_device_open,
    .device_close = opencl_device_close,
    .takes_native_context = 1,
    .device_synchronize = opencl_device_synchronize,
    .device_health = opencl_device_health,

    .stream_create = opencl_stream_create,
    .stream_destroy = opencl_stream_destroy,
    .stream_priority_range = opencl_stream_priority_range,
    .stream_synchronize = opencl_stream_synchronize,
    .stream_query = opencl_stream_query,
    .stream_wait_event = opencl_stream_wait_event,
    .stream_host_task = opencl_stream_host_task,

    .event_create = opencl_event_create,
    .event_destroy = opencl_event_destroy,
    .event_record = opencl_event_record,
    .event_query = opencl_event_query,
    .event_synchronize = opencl_event_synchronize,
    .event_elapsed_ms = opencl_event_elapsed_ms,

    .alloc = opencl_alloc,
    .free = opencl_free,
    .alloc_pinned = opencl_alloc_pinned,
    .free_pinned = opencl_free_pinned,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE,
    .host_register = opencl_register,
    .host_unregister = opencl_unregister,
    .alloc_managed = opencl_alloc_managed,
    .copy_async = opencl_copy_async,
    .copy_peer_async = opencl_copy_peer_async,
    .fill_async = opencl_fill_async,
    .fill_widths = 1 | 2 | 4,
    .memory_info = opencl_memory_info,

    .capture_begin = opencl_capture_begin,
    .capture_end = opencl_capture_end,
    .capture_status = opencl_capture_status,
    .graph_destroy = opencl_graph_destroy,
    .graph_instantiate = opencl_graph_instantiate,
    .graph_exec_destroy = opencl_graph_exec_destroy,
    .graph_launch = opencl_graph_launch,
    .graph_exec_update = opencl_graph_exec_update,
    .graph_node_count = opencl_graph_node_count,
    .graph_dump = opencl_graph_dump,

    .dtype_support = opencl_dtype_support,

    .native_handle = opencl_native_handle,
    .native_wrap = opencl_native_wrap,
    .native_unwrap = opencl_native_unwrap,
    .native_memory = opencl_native_memory,
    .native_memory_wrap = opencl_native_memory_wrap,
    .wraps_events = 1,
    .export_prefixes = export_prefixes,
};

DS_ACCEL_PLUGIN("opencl", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG,
                DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_DEMAND_ONLY, vendor_fill);
