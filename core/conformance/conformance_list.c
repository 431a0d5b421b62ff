/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Tables of the conformance suite: the titles of the rules, and the checks of all files. */
#include "base/text.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint32_t rule;
    const char *title;
} rule_titles[] = {
    {9, "its entry returns the same static table each time"},
    {10, "its table is complete and agrees with its note"},
    {11, "its required functions are there"},
    {13, "its probe returns a complete verdict"},
    {14, "Outputs are written only on DS_ACCEL_OK"},
    {15, "The error is filled before a negative status is returned"},
    {16, "The vendor's own code is kept"},
    {17, "A status is one that the header lists"},
    {18, "A flag bit or number that the plugin does not know is refused"},
    {19, "No byte past the other side's struct_size is written"},
    {20, "No byte past the other side's struct_size is read"},
    {21, "Reserved members are written as zero and not read"},
    {23, "Destroy functions accept NULL"},
    {24, "Tables and texts that the plugin returns have static storage"},
    {25, "Texts are UTF-8, end with a NUL, and have one line"},
    {26, "No exception, longjmp() or thread cancellation escapes, and nothing ends the process"},
    {27, "Calls on different handles may run at the same time"},
    {28, "The process is left unchanged"},
    {29, "Entry, constructors and fill do nothing but fill the table"},
    {30, "Instances are independent"},
    {31, "The host's pointer is not kept beyond its life"},
    {32, "Probe leaves nothing behind and wakes no device"},
    {33, "Identity, telemetry and links are available without opening a device"},
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
    {60, "Memory is aligned as requested"},
    {61, "An impossible size is refused"},
    {62, "Exhausted memory is DS_ACCEL_ERR_NO_MEMORY, and the device stays usable"},
    {63, "Live allocations share no byte"},
    {64, "A copy moves its bytes and no others"},
    {65, "A fill repeats its pattern and touches nothing else"},
    {66, "Figures of memory agree with each other"},
    {67, "Counts and sums follow the allocations"},
    {68, "A peak stays until it is reset"},
    {69, "A memory limit holds until it is lifted"},
    {70, "Trimming takes nothing that is in use"},
    {71, "A pointer is known from its first byte to its last"},
    {72, "Stream-ordered memory is usable by later work of its stream"},
    {73, "Managed memory is one memory for host and device"},
    {74, "Pinned memory is host memory, aligned as requested"},
    {75, "Registered memory stays the caller's"},
    {76, "Mapped pinned memory has a device address"},
    {77, "Granularities are powers of two"},
    {78, "Mapped memory is the memory that was mapped"},
    {79, "A mapping outlives the handle of its memory"},
    {80, "Only what was mapped is unmapped"},
    {81, "Captured work runs with each launch, and not before"},
    {82, "A launchable graph outlives its graph"},
    {83, "An update takes all of a graph or nothing"},
    {84, "A broken capture returns no graph, and ends"},
    {85, "An event of a capture is not reached before a launch"},
    {86, "A graph can be counted and shown"},
    {87, "The status of a capture is reported"},
    {88, "Support of a data type is reported in known bits"},
    {89, "Telemetry stays within its units"},
    {90, "An array is written up to its capacity, and counted in full"},
    {91, "Ranges nest"},
    {92, "Peer access can be queried, enabled and disabled again"},
    {93, "A copy between peers moves its bytes"},
    {94, "An op builder has a name, and a refusal a reason"},
    {95, "A rule of the environment is complete"},
    {96, "A list of names has an end"},
    {97, "If a value does not fit, the needed size is returned"},
    {98, "A native handle stays the same"},
    {99, "A wrapped object stays the caller's"},
    {100, "The same seed produces the same numbers"},
    {101, "A state of random numbers can be restored"},
    {102, "Random numbers are within their bounds"},
    {103, "A value shows exactly the devices that it was made from"},
    {104, "Exported memory is one memory in every process"},
    {105, "Another thread may mark a stream and let it wait"},
    {106, "Memory can be allocated while a stream captures"},
    {109, "A freed or destroyed object stays until the work that uses it is done"},
    {110, "A flag is true"},
    {111, "Queued work waits in the queue, and not in the call"},
    {120, "What is created on a device is on that device"},
    {121, "Virtual memory is mapped where it fits"},
    {122, "A dma-buf is the memory that it was exported from, and its descriptor the caller's"},
    {123, "An event is one event in every process"},
    {124, "Facts that are fixed stay as they are"},
    {125, "Normal numbers have their mean and deviation"},
    {126, "A stream waits for another only if it is made to"},
};

/* The lists of checks in order of execution: prerequisites of later checks come first. */
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
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
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
    for (size_t i = 0; i < ARRAY_SIZE(rule_titles); i++) {
        if (rule_titles[i].rule == rule) {
            return rule_titles[i].title;
        }
    }
    return NULL;
}
