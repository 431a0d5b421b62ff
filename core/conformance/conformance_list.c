/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the conformance suite knows by heart: titles of rules, names of slots, the checks of all
 * files. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t rule;
    const char *title;
} rule_titles[] = {
    {9, "its entry gives the same static table each time"},
    {10, "its table is complete and says what its note says"},
    {11, "its required functions are there"},
    {13, "its probe gives a complete verdict"},
    {14, "Outputs are written only on DS_ACCEL_OK"},
    {15, "The error is filled before a negative status is returned"},
    {16, "The vendor's own code is kept"},
    {17, "A status is one that the header lists"},
    {18, "A flag bit or number that the plugin does not know is refused"},
    {19, "No byte past the other side's struct_size is written"},
    {20, "No byte past the other side's struct_size is read"},
    {21, "Reserved members are written as zero and not read"},
    {23, "Destroy functions accept NULL"},
    {24, "What the plugin lends has static storage"},
    {25, "Texts are UTF-8, end with a NUL, and have one line"},
    {26, "No exception, longjmp() or thread cancellation crosses, and nothing ends the process"},
    {27, "Calls on different handles may run at the same time"},
    {28, "The process is left alone"},
    {29, "Entry, constructors and fill do nothing but fill the table"},
    {30, "Instances are independent"},
    {31, "The host's pointer is not kept beyond its life"},
    {32, "Probe leaves nothing behind and wakes no device"},
    {33, "Identity, telemetry and links are answered without opening a device"},
    {34, "A function that the plugin does not have is NULL"},
    {35, "A reason is used for what it means"},
    {37, "Options come from config_get"},
    {38, "A call leaves the thread's current device, context and stream as it found them"},
    {39, "Device count and indices do not change while an instance lives"},
    {40, "A plugin that is available starts"},
    {41, "A flag and the functions that it stands for go together"},
    {42, "A device that does not exist is refused"},
    {43, "An extension that is not known is DS_ACCEL_ERR_NOT_FOUND"},
    {44, "The facts of a device agree with each other"},
    {45, "A device may be opened again"},
    {46, "Waiting ends when the work before it is done"},
    {47, "A timeout is kept"},
    {48, "A stream does its work in order"},
    {49, "A query is DS_ACCEL_OK only when the work is done"},
    {50, "Destroying a stream loses no work"},
    {51, "A stream waits for an event on the device"},
    {52, "A host task runs once"},
    {53, "The default stream is one stream"},
    {54, "Priorities are those of the range"},
    {55, "An event that was never recorded counts as reached"},
    {56, "An event is reached when the work before it is done"},
    {57, "Recording again replaces the earlier mark"},
    {58, "Elapsed times add up"},
    {59, "Only events with timing that were reached have a time"},
    {60, "Memory is aligned as asked"},
    {61, "A size that cannot be is refused"},
    {62, "Exhausted memory is DS_ACCEL_ERR_NO_MEMORY, and the device goes on"},
    {63, "Live allocations share no byte"},
    {64, "A copy moves its bytes and no others"},
    {65, "A fill repeats its pattern and touches nothing else"},
    {66, "Figures of memory agree with each other"},
    {67, "Counts and sums follow the allocations"},
    {68, "A peak stays until it is reset"},
    {69, "A memory limit holds until it is lifted"},
    {70, "Trimming takes nothing that is in use"},
    {71, "A pointer is known from its first byte to its last"},
    {72, "Stream-ordered memory is there for the work behind it"},
    {73, "Managed memory is one memory for host and device"},
    {74, "Pinned memory is aligned as asked, and host memory"},
    {75, "Registered memory stays the caller's"},
    {76, "Mapped pinned memory has a device address"},
    {77, "Granularities are powers of two"},
    {78, "Mapped memory is the memory that was mapped"},
    {79, "What is mapped outlives its handle"},
    {80, "Only what was mapped is unmapped"},
    {81, "Captured work runs with each launch, and not before"},
    {82, "A launchable graph outlives its graph"},
    {83, "An update takes all of a graph or nothing"},
    {84, "A broken capture gives no graph, and ends"},
    {85, "An event of a capture is not reached before a launch"},
    {86, "A graph can be counted and shown"},
    {87, "The status of a capture is told"},
    {88, "Support of a data type is told in known bits"},
    {89, "Telemetry stays within its units"},
    {90, "An array is written up to its capacity, and counted in full"},
    {91, "Ranges nest"},
    {92, "Peer access can be asked, enabled and disabled again"},
    {93, "A copy between peers moves its bytes"},
    {94, "An op builder has a name, and a refusal a reason"},
    {95, "A rule of the environment is complete"},
    {96, "A list of names has an end"},
    {97, "A value that does not fit says how much room it needs"},
    {98, "A native handle stays the same"},
    {99, "A wrapped object stays the caller's"},
    {100, "The same seed gives the same numbers"},
    {101, "A state of random numbers can be restored"},
    {102, "Random numbers are within their bounds"},
    {103, "A value shows exactly the devices that it was made of"},
    {104, "Exported memory is one memory in every process"},
    {105, "Another thread may mark a stream and let it wait"},
    {106, "Memory can be allocated while a stream captures"},
    {109, "What is freed or destroyed stays until the work that uses it is done"},
    {110, "A flag is true"},
    {111, "What is queued waits in the queue, and not in the call"},
    {120, "What is made on a device is on that device"},
    {121, "Virtual memory is mapped where it fits"},
    {122, "A dma-buf is the memory that it was made of, and its descriptor the caller's"},
    {123, "An event is one event in every process"},
    {124, "Facts that are fixed stay as they are"},
    {125, "Normal numbers have their mean and deviation"},
    {126, "A stream waits for no other unless it is told to"},
};

static const struct {
    const char *name;
    size_t offset;
} slot_names[] = {
    {"probe", SLOT(probe)},
    {"init", SLOT(init)},
    {"shutdown", SLOT(shutdown)},
    {"extension", SLOT(extension)},
    {"backend_info", SLOT(backend_info)},
    {"device_count", SLOT(device_count)},
    {"device_identity", SLOT(device_identity)},
    {"device_open", SLOT(device_open)},
    {"device_open_native", SLOT(device_open_native)},
    {"device_close", SLOT(device_close)},
    {"device_info", SLOT(device_info)},
    {"device_get_current", SLOT(device_get_current)},
    {"device_set_current", SLOT(device_set_current)},
    {"device_synchronize", SLOT(device_synchronize)},
    {"device_health", SLOT(device_health)},
    {"stream_create", SLOT(stream_create)},
    {"stream_destroy", SLOT(stream_destroy)},
    {"stream_get_default", SLOT(stream_get_default)},
    {"stream_get_current", SLOT(stream_get_current)},
    {"stream_set_current", SLOT(stream_set_current)},
    {"stream_priority_range", SLOT(stream_priority_range)},
    {"stream_synchronize", SLOT(stream_synchronize)},
    {"stream_query", SLOT(stream_query)},
    {"stream_wait_event", SLOT(stream_wait_event)},
    {"stream_host_task", SLOT(stream_host_task)},
    {"event_create", SLOT(event_create)},
    {"event_destroy", SLOT(event_destroy)},
    {"event_record", SLOT(event_record)},
    {"event_query", SLOT(event_query)},
    {"event_synchronize", SLOT(event_synchronize)},
    {"event_elapsed_ms", SLOT(event_elapsed_ms)},
    {"mem_alloc", SLOT(mem_alloc)},
    {"mem_free", SLOT(mem_free)},
    {"mem_alloc_pinned", SLOT(mem_alloc_pinned)},
    {"mem_free_pinned", SLOT(mem_free_pinned)},
    {"mem_register", SLOT(mem_register)},
    {"mem_unregister", SLOT(mem_unregister)},
    {"mem_alloc_managed", SLOT(mem_alloc_managed)},
    {"mem_device_pointer", SLOT(mem_device_pointer)},
    {"mem_copy", SLOT(mem_copy)},
    {"mem_copy_async", SLOT(mem_copy_async)},
    {"mem_copy_peer_async", SLOT(mem_copy_peer_async)},
    {"mem_fill_async", SLOT(mem_fill_async)},
    {"mem_info", SLOT(mem_info)},
    {"mem_stats", SLOT(mem_stats)},
    {"mem_reset_peaks", SLOT(mem_reset_peaks)},
    {"mem_trim", SLOT(mem_trim)},
    {"mem_set_limit", SLOT(mem_set_limit)},
    {"mem_pointer_info", SLOT(mem_pointer_info)},
    {"mem_alloc_async", SLOT(mem_alloc_async)},
    {"mem_free_async", SLOT(mem_free_async)},
    {"vmem_granularity", SLOT(vmem_granularity)},
    {"vmem_reserve", SLOT(vmem_reserve)},
    {"vmem_release", SLOT(vmem_release)},
    {"vmem_create", SLOT(vmem_create)},
    {"vmem_destroy", SLOT(vmem_destroy)},
    {"vmem_map", SLOT(vmem_map)},
    {"vmem_unmap", SLOT(vmem_unmap)},
    {"vmem_set_access", SLOT(vmem_set_access)},
    {"graph_capture_begin", SLOT(graph_capture_begin)},
    {"graph_capture_end", SLOT(graph_capture_end)},
    {"graph_capture_status", SLOT(graph_capture_status)},
    {"graph_destroy", SLOT(graph_destroy)},
    {"graph_instantiate", SLOT(graph_instantiate)},
    {"graph_exec_destroy", SLOT(graph_exec_destroy)},
    {"graph_launch", SLOT(graph_launch)},
    {"graph_exec_update", SLOT(graph_exec_update)},
    {"graph_node_count", SLOT(graph_node_count)},
    {"graph_dump", SLOT(graph_dump)},
    {"dtype_support", SLOT(dtype_support)},
    {"telemetry_get", SLOT(telemetry_get)},
    {"telemetry_processes", SLOT(telemetry_processes)},
    {"range_push", SLOT(range_push)},
    {"range_pop", SLOT(range_pop)},
    {"profiler_start", SLOT(profiler_start)},
    {"profiler_stop", SLOT(profiler_stop)},
    {"peer_can_access", SLOT(peer_can_access)},
    {"peer_enable", SLOT(peer_enable)},
    {"peer_disable", SLOT(peer_disable)},
    {"links_get", SLOT(links_get)},
    {"ipc_memory_export", SLOT(ipc_memory_export)},
    {"ipc_memory_unexport", SLOT(ipc_memory_unexport)},
    {"ipc_memory_open", SLOT(ipc_memory_open)},
    {"ipc_memory_close", SLOT(ipc_memory_close)},
    {"ipc_event_export", SLOT(ipc_event_export)},
    {"ipc_event_open", SLOT(ipc_event_open)},
    {"dmabuf_export", SLOT(dmabuf_export)},
    {"dmabuf_import", SLOT(dmabuf_import)},
    {"dmabuf_release", SLOT(dmabuf_release)},
    {"rng_seed", SLOT(rng_seed)},
    {"rng_initial_seed", SLOT(rng_initial_seed)},
    {"rng_state_size", SLOT(rng_state_size)},
    {"rng_get_state", SLOT(rng_get_state)},
    {"rng_set_state", SLOT(rng_set_state)},
    {"rng_uniform", SLOT(rng_uniform)},
    {"rng_normal", SLOT(rng_normal)},
    {"op_builders_get", SLOT(op_builders_get)},
    {"op_compatible", SLOT(op_compatible)},
    {"env_rules_get", SLOT(env_rules_get)},
    {"env_name_get", SLOT(env_name_get)},
    {"visible_devices_value", SLOT(visible_devices_value)},
    {"native_get", SLOT(native_get)},
    {"native_wrap", SLOT(native_wrap)},
};
DS_ACCEL_STATIC_ASSERT(DS_ACCEL__ARRAY_SIZE(slot_names) * sizeof(void *) ==
                           DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, native_wrap) - SLOT(probe),
                       "every slot of 1.0 has a name");

/* In the order in which they run: what others build on comes first. */
static const struct ds_accel__check_list *const lists[] = {
    &ds_accel__checks_life,    &ds_accel__checks_calls,   &ds_accel__checks_structs,
    &ds_accel__checks_device,  &ds_accel__checks_memory,  &ds_accel__checks_host_memory,
    &ds_accel__checks_stream,  &ds_accel__checks_event,   &ds_accel__checks_vmem,
    &ds_accel__checks_graph,   &ds_accel__checks_facts,   &ds_accel__checks_native,
    &ds_accel__checks_sharing, &ds_accel__checks_dmabuf,  &ds_accel__checks_async,
    &ds_accel__checks_flags,   &ds_accel__checks_free,    &ds_accel__checks_units,
    &ds_accel__checks_fixed,   &ds_accel__checks_texts,   &ds_accel__checks_log,
    &ds_accel__checks_left,    &ds_accel__checks_devices,
};

const struct ds_accel__check *ds_accel__check_at(size_t position)
{
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(lists); i++) {
        if (position < lists[i]->count) {
            return &lists[i]->checks[position];
        }
        position -= lists[i]->count;
    }
    return NULL;
}

bool ds_accel__check_is_chosen(const struct ds_accel__check *check, const char *only)
{
    char rule[16];

    snprintf(rule, sizeof(rule), "DSA-P%u", check->rule);
    return only == NULL || strcmp(only, rule) == 0 || strcmp(only, check->group) == 0;
}

bool ds_accel__check_is_each(const struct ds_accel__check *check)
{
    return check->stage == DS_ACCEL__STAGE_DEVICE || (check->flags & DS_ACCEL__CHECK_EACH) != 0;
}

const char *ds_accel__rule_title(uint32_t rule)
{
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(rule_titles); i++) {
        if (rule_titles[i].rule == rule) {
            return rule_titles[i].title;
        }
    }
    return NULL;
}

const char *ds_accel__slot_name(size_t offset)
{
    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(slot_names); i++) {
        if (slot_names[i].offset == offset) {
            return slot_names[i].name;
        }
    }
    return "?";
}
