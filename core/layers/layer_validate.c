/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layer validate checks the caller and the plugin. It checks the arguments of the caller, so that
 * plugins need not: by the meaning of each argument in slots.def, and by checks for single slots in
 * this file. An invalid call is rejected with a status and a message, and does not reach the
 * plugin. To check the plugin, outputs point to memory of this library while the plugin runs, next
 * to guard bytes that the plugin must not write; they are copied to the caller only after
 * DS_ACCEL_OK (a needed capacity also after ERR_LIMIT). A rule that the plugin breaks is logged
 * with its number (docs/plugin-abi.md).
 *
 * The registers of address ranges contain the device memory that was allocated, mapped or imported
 * through the table. If a device works on the process's own memory (DS_ACCEL_FLAG_HOST_ACCESSIBLE
 * with DS_ACCEL_FLAG_UNIFIED_ADDRESSES), an address outside every known allocation may still be
 * valid, but recently freed memory is not.
 */
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "layers/layer.h"
#include "layers/race.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CELL_BEFORE UINT64_C(0x5a5ac3c35a5ac3c3)
#define CELL_EMPTY UINT64_C(0xa7a7d5d5a7a7d5d5)
#define STRUCT_LIMIT 65536u
#define SIZE_LIMIT ((uint64_t)INT64_MAX)
#define SMALLEST_PAGE 4096u

/* ---- rules that the plugin breaks ----------------------------------------------------------- */

static void breach(struct ds_accel__call *call, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void breach(struct ds_accel__call *call, const char *rule, const char *format, ...)
{
    char what[256];
    char site[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    ds_accel__layer_site(call->site, site, sizeof(site));
    ds_accel__log(&call->stack->context->log, "validate", DS_ACCEL_LOG_ERROR,
                  "plugin %s breaks %s: %s: %s (called at %s)", call->stack->candidate->name, rule,
                  ds_accel__slots[call->slot].name, what, site);
}

/* Fail the call with ERR_ABI, because the plugin's result cannot be passed to the caller. */
static void reject(struct ds_accel__call *call, const char *why)
{
    struct ds_accel_error *error = &call->own.error;

    call->status = DS_ACCEL_ERR_ABI;
    error->code = DS_ACCEL_ERR_ABI;
    error->vendor_code = 0;
    error->vendor_text[0] = '\0';
    snprintf(error->message, sizeof(error->message), "%s: %s", ds_accel__slots[call->slot].name,
             why);
}

/* ---- handles -------------------------------------------------------------------------------- */

/* Check that a handle is live, of this kind, and of the call's instance. False: the call was
 * refused. */
static bool check_handle(struct ds_accel__call *call, uint32_t kind, const void *handle,
                         const char *name)
{
    const struct ds_accel__object *object;
    const void *grave = NULL;
    bool is_foreign;
    char site[256];

    if (handle == NULL) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s is NULL", name);
        return false;
    }
    ds_accel__layer_lock();
    object = ds_accel__object_find(kind, handle);
    is_foreign = object != NULL && (object->stack != call->stack ||
                                    (call->instance != NULL && object->instance != call->instance));
    if (object == NULL) {
        grave = ds_accel__object_grave(kind, handle);
    }
    ds_accel__layer_unlock();
    if (is_foreign) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s %p belongs to another instance",
                               name, handle);
    } else if (grave != NULL) {
        ds_accel__layer_site(grave, site, sizeof(site));
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s %p was destroyed, at %s", name,
                               handle, site);
    } else if (object == NULL) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s %p is not a live %s", name, handle,
                               ds_accel__kind_name(kind));
    }
    return !call->is_refused;
}

/* Return a copy of an object, with the flags of its device; all members are 0 if the handle is not
 * live. */
static struct ds_accel__object look(uint32_t kind, const void *handle)
{
    struct ds_accel__object copy = {0};
    const struct ds_accel__object *object;

    ds_accel__layer_lock();
    object = ds_accel__object_find(kind, handle);
    if (object != NULL) {
        copy = *object;
        copy.device_flags = ds_accel__device_flags(object);
    }
    ds_accel__layer_unlock();
    return copy;
}

static void check_events(struct ds_accel__call *call, uint32_t position)
{
    ds_accel_plugin_event_t *const *waits = DS_ACCEL__POINTER(call, position);
    uint64_t count = call->arguments[position + 1].number;

    if (waits == NULL && count > 0) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "waits is NULL, its count %llu",
                               (unsigned long long)count);
    }
    for (uint64_t i = 0; i < count && !call->is_refused; i++) {
        check_handle(call, DS_ACCEL__EVENT, waits[i], "an event of waits");
    }
}

/* ---- arguments by their meaning ------------------------------------------------------------- */

static void check_struct(struct ds_accel__call *call, uint32_t position, const char *name)
{
    uint32_t size;

    memcpy(&size, DS_ACCEL__POINTER(call, position), sizeof(size));
    if (size < sizeof(size) || size > STRUCT_LIMIT) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s->struct_size is %u", name, size);
    }
}

static void check_array(struct ds_accel__call *call, uint32_t position, const char *name)
{
    uint64_t stride = call->arguments[position + 1].number;
    uint64_t capacity = call->arguments[position + 2].number;

    if (capacity > 0 && (call->arguments[position].pointer == 0 || stride < sizeof(uint32_t))) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "%s is NULL or its stride %llu too small for %llu elements", name,
                               (unsigned long long)stride, (unsigned long long)capacity);
    }
}

static void check_index(struct ds_accel__call *call, uint64_t index)
{
    if (call->stack->device_count > 0 && index >= call->stack->device_count) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "device index %llu; there are %u",
                               (unsigned long long)index, call->stack->device_count);
    }
}

/* Return the flag bits that a slot accepts. */
static uint64_t known_flags(uint32_t slot)
{
    switch (slot) {
    case DS_ACCEL__SLOT_stream_create:
        return DS_ACCEL_STREAM_NON_BLOCKING;
    case DS_ACCEL__SLOT_event_create:
        return DS_ACCEL_EVENT_TIMING | DS_ACCEL_EVENT_BLOCKING_SYNC | DS_ACCEL_EVENT_INTERPROCESS;
    case DS_ACCEL__SLOT_mem_alloc_pinned:
    case DS_ACCEL__SLOT_mem_register:
        return DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED | DS_ACCEL_PINNED_WRITE_COMBINED |
               DS_ACCEL_PINNED_HUGE_PAGES;
    case DS_ACCEL__SLOT_mem_reset_peaks:
        return DS_ACCEL_PEAK_ALLOCATED | DS_ACCEL_PEAK_RESERVED;
    case DS_ACCEL__SLOT_vmem_granularity:
    case DS_ACCEL__SLOT_vmem_create:
        return DS_ACCEL_VMEM_EXPORTABLE;
    default:
        return 0;
    }
}

static void check_number(struct ds_accel__call *call, uint32_t meaning, uint64_t number,
                         const char *name)
{
    uint64_t unknown;

    switch (meaning) {
    case DS_ACCEL__INDEX:
        check_index(call, number);
        break;
    case DS_ACCEL__SIZE:
        if (number == 0 || number > SIZE_LIMIT) {
            bool is_too_much = number > 0 && call->slot != DS_ACCEL__SLOT_mem_register;

            ds_accel__layer_refuse(
                call, is_too_much ? DS_ACCEL_ERR_NO_MEMORY : DS_ACCEL_ERR_INVALID, "%s is %llu: %s",
                name, (unsigned long long)number,
                number == 0 ? "it must be above 0" : "no machine has as much memory");
        }
        break;
    case DS_ACCEL__ALIGN:
        if ((number & (number - 1)) != 0) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s is %llu, not a power of two",
                                   name, (unsigned long long)number);
        }
        break;
    case DS_ACCEL__FLAGS:
        unknown = number & ~known_flags(call->slot);
        if (unknown != 0) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "unknown bits 0x%llx in %s",
                                   (unsigned long long)unknown, name);
        }
        break;
    default:
        break;
    }
}

static void check_argument(struct ds_accel__call *call, uint32_t position)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint32_t meaning = slot->meanings[position];
    const char *name = slot->names[position];
    const void *pointer = DS_ACCEL__POINTER(call, position);

    if (meaning < DS_ACCEL__OBJECT_COUNT) {
        if (pointer != NULL || !slot->is_void) { /* DSA-P23: destroying NULL does nothing */
            check_handle(call, meaning, pointer, name);
        }
    } else if (meaning == DS_ACCEL__DEVICE_OR_NULL) {
        if (pointer != NULL) {
            check_handle(call, DS_ACCEL__DEVICE, pointer, name);
        }
    } else if (meaning == DS_ACCEL__EVENTS) {
        check_events(call, position);
    } else if (meaning == DS_ACCEL__ARRAY) {
        check_array(call, position, name);
    } else if (meaning == DS_ACCEL__BUFFER) {
        if (pointer == NULL && call->arguments[position + 1].number > 0) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s is NULL, its size is not 0",
                                   name);
        }
    } else if (meaning <= DS_ACCEL__STRUCT_OUT || meaning == DS_ACCEL__TEXT ||
               meaning == DS_ACCEL__MEMORY || meaning == DS_ACCEL__FUNCTION) {
        if (pointer == NULL) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s is NULL", name);
        } else if (meaning == DS_ACCEL__STRUCT_OUT) {
            check_struct(call, position, name);
        }
    } else {
        check_number(call, meaning, call->arguments[position].number, name);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool is_process_memory(const struct ds_accel__object *device)
{
    const uint64_t both = DS_ACCEL_FLAG_HOST_ACCESSIBLE | DS_ACCEL_FLAG_UNIFIED_ADDRESSES;

    return (device->device_flags & both) == both;
}

/* Return what is wrong with the size_bytes from address, which lies in range: they belong to
 * another instance, or go past the range's end. NULL: nothing, or the range's size is not known.
 * The caller holds the layers' lock. */
static const char *judge_found(const struct ds_accel__object *device, uint64_t space,
                               const struct ds_accel__range *range, uint64_t address,
                               uint64_t size_bytes)
{
    while (range != NULL && !range->is_unsized) {
        uint64_t here = range->size_bytes - (address - range->begin);

        if (range->stack != device->stack || range->instance != device->instance) {
            return "belongs to another instance";
        }
        if (here >= size_bytes) {
            return NULL;
        }
        if (range->slot != DS_ACCEL__SLOT_vmem_map) {
            return "goes past the end of its allocation";
        }
        address += here; /* adjacent mappings may be used as one range */
        size_bytes -= here;
        range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address);
        if (range == NULL) {
            return "goes past the end of what is mapped";
        }
    }
    return NULL;
}

struct owner {
    uint64_t address;
    const struct ds_accel__stack *stack; /* NULL: any stack */
    const struct ds_accel__range *range;
};

static void find_owner(void *user_data, const struct ds_accel__range *range)
{
    struct owner *owner = user_data;

    if (range->space != 0 && owner->address - range->begin < range->size_bytes &&
        (owner->stack == NULL || range->stack == owner->stack)) {
        owner->range = range;
    }
}

/* Whether the range is device memory, which the host can access only if the device works on the
 * process's memory. */
static bool is_device_range(const struct ds_accel__range *range)
{
    return range->slot == DS_ACCEL__SLOT_mem_alloc ||
           range->slot == DS_ACCEL__SLOT_mem_alloc_async ||
           range->slot == DS_ACCEL__SLOT_vmem_map ||
           range->slot == DS_ACCEL__SLOT_ipc_memory_open ||
           range->slot == DS_ACCEL__SLOT_dmabuf_import || range->slot == DS_ACCEL__SLOT_native_wrap;
}

/* Whether the range is pinned memory that the device cannot access: pinned memory is also device
 * memory if it is mapped and has one address for host and device. */
static bool is_host_range(const struct ds_accel__range *range,
                          const struct ds_accel__object *device)
{
    return (range->slot == DS_ACCEL__SLOT_mem_alloc_pinned ||
            range->slot == DS_ACCEL__SLOT_mem_register) &&
           ((range->flags & DS_ACCEL_PINNED_MAPPED) == 0 ||
            (device->device_flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) == 0);
}

/* Return a copy of the object of the call's device; all members are 0 if there is none. The caller
 * holds the layers' lock. */
static struct ds_accel__object device_of(const struct ds_accel__call *call)
{
    struct ds_accel__object copy = {0};
    uint32_t kind = ds_accel__slots[call->slot].meanings[0];
    const struct ds_accel__object *object =
        kind < DS_ACCEL__OBJECT_COUNT ? ds_accel__object_find(kind, DS_ACCEL__POINTER(call, 0))
                                      : NULL;
    const struct ds_accel__object *device =
        object != NULL ? ds_accel__object_find(DS_ACCEL__DEVICE, object->device) : NULL;

    if (device != NULL) {
        copy = *device;
        copy.device_flags = ds_accel__device_flags(device);
    }
    return copy;
}

/* Return what is wrong with a part of host memory; NULL: no problem is known, or no known
 * allocation contains the memory. The caller holds the layers' lock. */
static const char *judge_hosts(const struct ds_accel__stack *stack, uint64_t address,
                               uint64_t size_bytes, struct ds_accel__range *grave_out)
{
    const struct ds_accel__range *range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address);

    if (range != NULL && ds_accel__range_find(DS_ACCEL__BLOCKS, 0, address) == NULL) {
        const struct ds_accel__range *grave = ds_accel__range_grave(0, address);

        if (grave != NULL && grave->slot == DS_ACCEL__SLOT_COUNT) {
            *grave_out = *grave;
            return "lies in a freed block";
        }
    }
    return range != NULL && range->stack == stack && !range->is_unsized &&
                   range->size_bytes - (address - range->begin) < size_bytes &&
                   range->slot != DS_ACCEL__SLOT_vmem_map
               ? "goes past the end of its allocation"
               : NULL;
}

/* Return what is wrong with memory that the host is to use, or NULL. is_own: the memory must not be
 * device memory. For freed memory *grave_out is the freed range. The caller holds the layers'
 * lock. */
static const char *judge_host_memory(const struct ds_accel__call *call, uint64_t address,
                                     uint64_t size_bytes, bool is_own,
                                     struct ds_accel__range *grave_out)
{
    const struct ds_accel__range *range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address);
    const struct ds_accel__object device = device_of(call);
    struct owner owner = {.address = address, .stack = call->stack};
    enum ds_accel__reach reach = DS_ACCEL__REACH_UNKNOWN;

    if (is_own && device.handle != NULL && !is_process_memory(&device)) {
        if (range == NULL && ds_accel__space_of(&device) != 0) {
            ds_accel__ranges_visit(DS_ACCEL__ALLOCATIONS, find_owner, &owner);
        }
        if (range != NULL ? range->stack == call->stack && is_device_range(range)
                          : owner.range != NULL && !ds_accel__layer_can_read(address, &reach)) {
            return "is device memory, but the call expects host memory";
        }
    }
    return judge_hosts(call->stack, address, size_bytes, grave_out);
}

/* Whether a removed range was only unregistered, not freed: it is now ordinary host memory, which
 * this device can use. */
static bool is_the_hosts_again(const struct ds_accel__range *grave,
                               const struct ds_accel__object *device)
{
    return grave->slot == DS_ACCEL__SLOT_mem_register && is_process_memory(device);
}

static const char *end_of(const struct ds_accel__range *grave)
{
    return grave->slot == DS_ACCEL__SLOT_mem_register ? "was unregistered" : "was freed";
}

/* Return what is wrong with memory that a device is to use, or NULL. is_own: the memory must belong
 * to this device. For freed memory *grave_out is the freed range. The caller holds the layers'
 * lock. */
static const char *judge_device_memory(const struct ds_accel__object *device, uint64_t address,
                                       uint64_t size_bytes, bool is_own,
                                       struct ds_accel__range *grave_out)
{
    uint64_t space = ds_accel__space_of(device);
    const struct ds_accel__range *range =
        ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address);
    const struct ds_accel__range *grave;
    struct owner owner = {.address = address};

    if (range == NULL && space != 0) {
        range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address); /* pinned or managed */
    }
    if (range != NULL) {
        const struct ds_accel__range *block =
            ds_accel__range_find(DS_ACCEL__BLOCKS, space, address);

        grave = block == NULL ? ds_accel__range_grave(space, address) : NULL;
        if (grave != NULL && grave->slot == DS_ACCEL__SLOT_COUNT) {
            *grave_out = *grave;
            return "lies in a freed block";
        }
        if (block != NULL && block->size_bytes - (address - block->begin) < size_bytes) {
            return "goes past the end of its block";
        }
        if (is_own && range->space == space && range->device_index != device->device_index &&
            range->slot != DS_ACCEL__SLOT_mem_alloc_pinned &&
            range->slot != DS_ACCEL__SLOT_mem_alloc_managed &&
            range->slot != DS_ACCEL__SLOT_mem_register) {
            return "belongs to another device";
        }
        if (!is_process_memory(device) && is_host_range(range, device)) {
            return "is host memory, but the call expects device memory";
        }
        return judge_found(device, range->space, range, address, size_bytes);
    }
    grave = ds_accel__range_grave(space, address);
    if (grave != NULL && !is_the_hosts_again(grave, device)) {
        *grave_out = *grave;
        return end_of(grave);
    }
    if (is_process_memory(device)) {
        return NULL;
    }
    ds_accel__ranges_visit(DS_ACCEL__ALLOCATIONS, find_owner, &owner);
    return owner.range != NULL ? "belongs to another device" : "is in no live allocation";
}

const char *ds_accel__validate_noted(const struct ds_accel__object *device, bool is_on_stream,
                                     uint64_t address, uint64_t size_bytes,
                                     struct ds_accel__range *grave_out, enum ds_accel__reach *reach)
{
    const uint64_t last = address + size_bytes - 1;
    uint64_t space = ds_accel__space_of(device);
    const struct ds_accel__range *range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, 0, address);
    const struct ds_accel__range *grave;
    struct ds_accel__object of = *device;

    if (range == NULL && (is_on_stream || !ds_accel__layer_can_read(address, reach))) {
        range = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, address);
    }
    of.device_flags = ds_accel__device_flags(device);
    grave = ds_accel__range_grave(range != NULL ? range->space : space, address);
    if (range != NULL) {
        const struct ds_accel__range *block =
            ds_accel__range_find(DS_ACCEL__BLOCKS, range->space, address);

        if (block != NULL && block->size_bytes - (address - block->begin) < size_bytes) {
            return "goes past the end of its block";
        }
        if (block == NULL && grave != NULL && grave->slot == DS_ACCEL__SLOT_COUNT) {
            *grave_out = *grave;
            return "lies in a freed block";
        }
        return block == NULL && range->is_divided
                   ? "lies in an allocator's memory, but in none of its blocks"
                   : judge_found(&of, range->space, range, address, size_bytes);
    }
    /* If the host can read freed addresses, the process may have allocated them again for itself;
     * then an access by the host is valid. */
    if (grave != NULL && !is_the_hosts_again(grave, &of) &&
        (is_on_stream || !ds_accel__layer_can_read(address, reach))) {
        *grave_out = *grave;
        return end_of(grave);
    }
    if (is_on_stream && !is_process_memory(&of)) {
        return "is in no live allocation";
    }
    return ds_accel__layer_can_read(address, reach) &&
                   (last / SMALLEST_PAGE == address / SMALLEST_PAGE ||
                    ds_accel__layer_is_readable(last))
               ? NULL
               : "is not memory of this process";
}

static bool is_on(const struct ds_accel__stack *stack)
{
    for (size_t i = 0; i < stack->layer_count; i++) {
        if (stack->layers[i] == &ds_accel__layer_validate) {
            return true;
        }
    }
    return false;
}

/* Return what is wrong with the memory from the lowest to the highest byte of an extent, or NULL.
 * The caller holds the layers' lock. */
static const char *judge_extent(const struct ds_accel__stack *stack,
                                const struct ds_accel__extent *extent, uint64_t begin,
                                uint64_t size_bytes, struct ds_accel__range *grave_out)
{
    const struct ds_accel__object *device = ds_accel__object_find(DS_ACCEL__DEVICE, extent->device);
    struct ds_accel__object of;

    if (device == NULL) {
        return judge_hosts(stack, begin, size_bytes, grave_out);
    }
    of = *device;
    of.device_flags = ds_accel__device_flags(device);
    return judge_device_memory(&of, begin, size_bytes, false, grave_out);
}

bool ds_accel__validate_work(const struct ds_accel__stack *stack, const struct ds_accel__work *work,
                             char *text, size_t text_size)
{
    const char *problem = NULL;

    for (uint32_t i = 0; i < work->count && problem == NULL && is_on(stack); i++) {
        const struct ds_accel__extent *extent = &work->extents[i];
        struct ds_accel__range grave = {0};
        uint64_t begin;
        uint64_t size_bytes;
        char site[256] = "";

        ds_accel__extent_span(extent, &begin, &size_bytes);
        ds_accel__layer_lock();
        problem = judge_extent(stack, extent, begin, size_bytes, &grave);
        ds_accel__layer_unlock();
        if (grave.freed_at != NULL) {
            ds_accel__layer_site(grave.freed_at, site, sizeof(site));
        }
        if (problem != NULL) {
            snprintf(text, text_size, "%s: %s 0x%llx with %llu bytes %s%s%s", work->call,
                     extent->is_write ? "destination" : "source", (unsigned long long)begin,
                     (unsigned long long)size_bytes, problem, site[0] != '\0' ? ", at " : "", site);
        }
    }
    return problem == NULL;
}

/* Check memory that a call uses. device NULL: the host uses the memory. is_own: the memory must
 * belong to this device or, for the host, must not be device memory; false: it is enough that the
 * device or the host can access it. */
static void check_memory(struct ds_accel__call *call, const struct ds_accel__object *device,
                         uint64_t address, uint64_t size_bytes, bool is_own, const char *name)
{
    struct ds_accel__range grave = {0};
    const char *problem = NULL;
    char site[256] = "";

    if (call->is_refused || size_bytes == 0) {
        return;
    }
    if (address == 0 || size_bytes > SIZE_LIMIT || address > UINTPTR_MAX - size_bytes) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "%s 0x%llx with %llu bytes is not a valid range", name,
                               (unsigned long long)address, (unsigned long long)size_bytes);
        return;
    }
    ds_accel__layer_lock();
    if (device != NULL && device->handle != NULL) {
        problem = judge_device_memory(device, address, size_bytes, is_own, &grave);
    } else {
        problem = judge_host_memory(call, address, size_bytes, is_own, &grave);
    }
    ds_accel__layer_unlock();
    if (problem != NULL) {
        if (grave.freed_at != NULL) {
            ds_accel__layer_site(grave.freed_at, site, sizeof(site));
        }
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s 0x%llx with %llu bytes %s%s%s", name,
                               (unsigned long long)address, (unsigned long long)size_bytes, problem,
                               site[0] != '\0' ? ", at " : "", site);
    }
}

/* Check that two ranges of one address space do not overlap. */
static void check_overlap(struct ds_accel__call *call, uint64_t destination, uint64_t source,
                          uint64_t size_bytes)
{
    if (!call->is_refused &&
        (destination < source ? source - destination : destination - source) < size_bytes) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "destination and source overlap within %llu bytes",
                               (unsigned long long)size_bytes);
    }
}

static void check_copy(struct ds_accel__call *call, const struct ds_accel__object *device)
{
    uint64_t destination = call->arguments[1].pointer;
    uint64_t source = call->arguments[2].pointer;
    uint64_t size_bytes = call->arguments[3].number;
    uint64_t kind = call->arguments[4].number;
    bool to_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_DEVICE_TO_HOST;
    bool from_host = kind == DS_ACCEL_COPY_HOST_TO_HOST || kind == DS_ACCEL_COPY_HOST_TO_DEVICE;
    bool is_said = kind != DS_ACCEL_COPY_INFER;

    if (kind < DS_ACCEL_COPY_HOST_TO_HOST || kind > DS_ACCEL_COPY_INFER) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "unknown kind %llu",
                               (unsigned long long)kind);
        return;
    }
    if (kind == DS_ACCEL_COPY_INFER) {
        if ((device->device_flags & DS_ACCEL_FLAG_UNIFIED_ADDRESSES) == 0) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                                   "the kind can't be inferred: the device has no "
                                   "DS_ACCEL_FLAG_UNIFIED_ADDRESSES");
            return;
        }
        /* The copy kind does not specify which side is host memory: treat both sides as host
         * memory, and report only problems with known allocations. */
        to_host = true;
        from_host = true;
    }
    check_memory(call, to_host ? NULL : device, destination, size_bytes, to_host && is_said,
                 "destination");
    check_memory(call, from_host ? NULL : device, source, size_bytes, from_host && is_said,
                 "source");
    if (to_host == from_host || ds_accel__space_of(device) == 0) {
        check_overlap(call, destination, source, size_bytes);
    }
}

static void check_fill(struct ds_accel__call *call, const struct ds_accel__object *device)
{
    uint64_t pattern_bytes = call->arguments[3].number;
    uint64_t size_bytes = call->arguments[4].number;

    if ((pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) ||
        size_bytes % pattern_bytes != 0) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "a pattern of %llu bytes over %llu: expected 1, 2 or 4, and a "
                               "multiple of it",
                               (unsigned long long)pattern_bytes, (unsigned long long)size_bytes);
    }
    check_memory(call, device, call->arguments[1].pointer, size_bytes, false, "destination");
}

static void check_release(struct ds_accel__call *call, const struct ds_accel__object *device,
                          enum ds_accel__register in)
{
    uint64_t address = call->arguments[1].pointer;
    const struct ds_accel__range *found;
    const struct ds_accel__range *grave;
    struct ds_accel__range range = {0};
    char site[256] = "";

    if (address == 0) {
        return; /* NULL is ignored */
    }
    ds_accel__layer_lock();
    found = ds_accel__range_find(in, ds_accel__space_of(device), address);
    found = found != NULL ? found : ds_accel__range_find(in, 0, address);
    grave = found == NULL ? ds_accel__range_grave(ds_accel__space_of(device), address) : NULL;
    if (found != NULL || grave != NULL) {
        range = found != NULL ? *found : *grave;
    }
    ds_accel__layer_unlock();
    ds_accel__layer_site(range.freed_at, site, sizeof(site));
    if (found == NULL && grave != NULL) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s 0x%llx was %s before, at %s",
                               ds_accel__slots[call->slot].names[1], (unsigned long long)address,
                               ds_accel__ended(&range), site);
    } else if (found == NULL) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "0x%llx is in no live allocation",
                               (unsigned long long)address);
    } else if (range.begin != address) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "0x%llx is not the start of an allocation, but %llu bytes after it",
                               (unsigned long long)address,
                               (unsigned long long)(address - range.begin));
    } else if (!ds_accel__may_free(call->slot, range.slot)) {
        ds_accel__layer_refuse(
            call, DS_ACCEL_ERR_INVALID, "0x%llx was made by %s", (unsigned long long)address,
            range.slot < DS_ACCEL__SLOT_COUNT ? ds_accel__slots[range.slot].name : "an allocator");
    } else if (range.instance != call->instance || range.device_index != device->device_index) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "0x%llx belongs to device %u%s",
                               (unsigned long long)address, range.device_index,
                               range.instance != call->instance ? " of another instance" : "");
    }
}

/* Check that pointer and size match a reservation or a mapping exactly. */
static void check_whole(struct ds_accel__call *call, const struct ds_accel__object *device,
                        enum ds_accel__register in)
{
    const struct ds_accel__range *range;
    uint64_t size_bytes = 0;

    check_release(call, device, in);
    if (call->is_refused) {
        return;
    }
    ds_accel__layer_lock();
    range = ds_accel__range_find(in, ds_accel__space_of(device), call->arguments[1].pointer);
    size_bytes = range != NULL ? range->size_bytes : 0;
    ds_accel__layer_unlock();
    if (size_bytes != 0 && size_bytes != call->arguments[2].number) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%llu bytes of a range that has %llu",
                               (unsigned long long)call->arguments[2].number,
                               (unsigned long long)size_bytes);
    }
}

static void check_map(struct ds_accel__call *call, const struct ds_accel__object *device)
{
    uint64_t address = call->arguments[1].pointer;
    uint64_t size_bytes = call->arguments[2].number;
    const struct ds_accel__range *range;
    bool is_inside;

    ds_accel__layer_lock();
    range = ds_accel__range_find(DS_ACCEL__RESERVATIONS, ds_accel__space_of(device), address);
    is_inside = range != NULL && range->size_bytes - (address - range->begin) >= size_bytes;
    ds_accel__layer_unlock();
    if (!is_inside) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "0x%llx with %llu bytes is not, or not in whole, a reserved range",
                               (unsigned long long)address, (unsigned long long)size_bytes);
    }
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void check_elapsed(struct ds_accel__call *call)
{
    static const char *const names[] = {"start", "end"};

    for (uint32_t i = 0; i < 2 && !call->is_refused; i++) {
        struct ds_accel__object event = look(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, i));

        if ((event.flags & DS_ACCEL_EVENT_TIMING) == 0) {
            ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                                   "event %s was created without DS_ACCEL_EVENT_TIMING", names[i]);
        }
    }
}

static void check_limit(struct ds_accel__call *call, uint32_t position, uint64_t least,
                        uint64_t most)
{
    uint64_t number = call->arguments[position].number;

    if (number < least || number > most) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "unknown %s %llu",
                               ds_accel__slots[call->slot].names[position],
                               (unsigned long long)number);
    }
}

static void check_capture(struct ds_accel__call *call, const struct ds_accel__object *stream)
{
    bool begins = call->slot == DS_ACCEL__SLOT_graph_capture_begin;

    if (begins) {
        check_limit(call, 1, DS_ACCEL_CAPTURE_GLOBAL, DS_ACCEL_CAPTURE_RELAXED);
    }
    if (!call->is_refused && stream->is_capturing == begins) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE, "the stream %s",
                               begins ? "captures already" : "does not capture");
    }
}

static void check_rng(struct ds_accel__call *call, const struct ds_accel__object *device)
{
    uint64_t count = call->arguments[2].number;

    if (count > SIZE_LIMIT / 8) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "no memory has %llu elements",
                               (unsigned long long)count);
    } else if (count > 0) {
        check_memory(call, device, call->arguments[1].pointer,
                     count * ds_accel__race_dtype_bytes(call->arguments[3].number), false,
                     "destination");
    }
}

/* Check the memory that a host task of the library accesses. */
static void check_work(struct ds_accel__call *call)
{
    char problem[512];

    if (call->race.work != NULL &&
        !ds_accel__validate_work(call->stack, call->race.work, problem, sizeof(problem))) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "%s", problem);
    }
}

static void check_stream_end(struct ds_accel__call *call)
{
    struct ds_accel__object stream = look(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));

    if (stream.is_lent) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "the stream is borrowed: only its device may destroy it");
    } else if (stream.is_capturing) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE, "the stream captures");
    }
}

struct census {
    const struct ds_accel__stack *stack;
    const void *instance;
    const void *device; /* NULL: count the devices */
    uint64_t count;
};

static void count_object(void *user_data, struct ds_accel__object *object)
{
    struct census *census = user_data;
    bool is_meant = census->device == NULL
                        ? object->kind == DS_ACCEL__DEVICE
                        : object->kind != DS_ACCEL__DEVICE && object->device == census->device &&
                              !object->is_lent;

    census->count += object->stack == census->stack && object->instance == census->instance &&
                     is_meant;
}

static void count_range(void *user_data, const struct ds_accel__range *range)
{
    struct census *census = user_data;

    census->count += range->stack == census->stack && range->device == census->device;
}

/* Check rule DSA-H18: no object of a device may be live when the device is closed, and no device
 * may be open at a shutdown. A violation is only logged: the call is not refused, because the
 * caller must be able to close and shut down. */
static void check_end(struct ds_accel__call *call)
{
    bool is_device = call->slot == DS_ACCEL__SLOT_device_close;
    struct census census = {call->stack, call->instance,
                            is_device ? DS_ACCEL__POINTER(call, 0) : NULL, 0};
    const struct ds_accel__object *device;

    ds_accel__layer_lock();
    device = is_device ? ds_accel__object_find(DS_ACCEL__DEVICE, census.device) : NULL;
    if (!is_device || (device != NULL && device->opens == 1)) {
        ds_accel__objects_visit(count_object, &census);
        if (is_device) {
            ds_accel__ranges_visit(DS_ACCEL__ALLOCATIONS, count_range, &census);
            ds_accel__ranges_visit(DS_ACCEL__RESERVATIONS, count_range, &census);
        }
    }
    ds_accel__layer_unlock();
    if (census.count > 0) {
        char site[256];

        ds_accel__layer_site(call->site, site, sizeof(site));
        ds_accel__log(&call->stack->context->log, "validate", DS_ACCEL_LOG_ERROR,
                      "DSA-H18: %s with %llu %s still in use, at %s (layer leak lists each)",
                      ds_accel__slots[call->slot].name, (unsigned long long)census.count,
                      is_device ? "objects of the device" : "devices", site);
    }
}

static void check_peer_copy(struct ds_accel__call *call)
{
    struct ds_accel__object to = look(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 1));
    struct ds_accel__object from = look(DS_ACCEL__DEVICE, DS_ACCEL__POINTER(call, 3));
    uint64_t destination = call->arguments[2].pointer;
    uint64_t source = call->arguments[4].pointer;
    uint64_t size_bytes = call->arguments[5].number;

    check_memory(call, &to, destination, size_bytes, true, "destination");
    check_memory(call, &from, source, size_bytes, true, "source");
    if (to.device_index == from.device_index || ds_accel__space_of(&to) == 0) {
        check_overlap(call, destination, source, size_bytes);
    }
}

static void check_access(struct ds_accel__call *call)
{
    if (call->arguments[3].number == 2) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID, "unknown access 2");
    } else {
        check_limit(call, 3, DS_ACCEL_VMEM_ACCESS_NONE, DS_ACCEL_VMEM_ACCESS_READ_WRITE);
    }
}

static void check_slot(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    struct ds_accel__object first = {0};
    struct ds_accel__object device = {0};

    if (slot->meanings[0] < DS_ACCEL__OBJECT_COUNT) {
        first = look(slot->meanings[0], DS_ACCEL__POINTER(call, 0));
        device = look(DS_ACCEL__DEVICE, first.device);
    }
    if (first.handle == NULL) {
        return; /* a call with the handle NULL does nothing; init has no handle */
    }
    switch (call->slot) {
    case DS_ACCEL__SLOT_shutdown:
    case DS_ACCEL__SLOT_device_close:
        check_end(call);
        break;
    case DS_ACCEL__SLOT_stream_destroy:
        check_stream_end(call);
        break;
    case DS_ACCEL__SLOT_event_elapsed_ms:
        check_elapsed(call);
        break;
    case DS_ACCEL__SLOT_mem_copy:
    case DS_ACCEL__SLOT_mem_copy_async:
        check_copy(call, &device);
        break;
    case DS_ACCEL__SLOT_mem_copy_peer_async:
        check_peer_copy(call);
        break;
    case DS_ACCEL__SLOT_mem_fill_async:
        check_fill(call, &device);
        break;
    case DS_ACCEL__SLOT_mem_free:
    case DS_ACCEL__SLOT_mem_free_async:
    case DS_ACCEL__SLOT_mem_free_pinned:
    case DS_ACCEL__SLOT_mem_unregister:
    case DS_ACCEL__SLOT_ipc_memory_close:
    case DS_ACCEL__SLOT_dmabuf_release:
        check_release(call, &device, DS_ACCEL__ALLOCATIONS);
        break;
    case DS_ACCEL__SLOT_mem_register:
        check_memory(call, NULL, call->arguments[1].pointer, call->arguments[2].number, true,
                     "pointer");
        break;
    case DS_ACCEL__SLOT_vmem_map:
        check_map(call, &device);
        break;
    case DS_ACCEL__SLOT_vmem_unmap:
        check_whole(call, &device, DS_ACCEL__ALLOCATIONS);
        break;
    case DS_ACCEL__SLOT_vmem_release:
        check_whole(call, &device, DS_ACCEL__RESERVATIONS);
        break;
    case DS_ACCEL__SLOT_vmem_set_access:
        check_access(call);
        break;
    case DS_ACCEL__SLOT_graph_capture_begin:
    case DS_ACCEL__SLOT_graph_capture_end:
        check_capture(call, &first);
        break;
    case DS_ACCEL__SLOT_rng_uniform:
    case DS_ACCEL__SLOT_rng_normal:
        check_rng(call, &device);
        break;
    case DS_ACCEL__SLOT_stream_host_task:
        check_work(call);
        break;
    case DS_ACCEL__SLOT_env_name_get:
        check_limit(call, 1, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, DS_ACCEL_ENV_LIST_EXPORT);
        break;
    case DS_ACCEL__SLOT_native_get:
        check_limit(call, 1, DS_ACCEL_NATIVE_DEVICE, DS_ACCEL_NATIVE_GRAPH_EXEC);
        break;
    default:
        break;
    }
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* Return the size of an output that is a single value; 0: the output is not a single value. */
static size_t cell_bytes(uint32_t meaning)
{
    switch (meaning) {
    case DS_ACCEL__U32_OUT:
    case DS_ACCEL__NEEDED_OUT:
        return sizeof(uint32_t);
    case DS_ACCEL__U64_OUT:
        return sizeof(uint64_t);
    case DS_ACCEL__F64_OUT:
        return sizeof(double);
    default:
        return meaning >= DS_ACCEL__INSTANCE_OUT && meaning <= DS_ACCEL__POINTER_OUT
                   ? sizeof(void *)
                   : 0;
    }
}

static void redirect_struct(struct ds_accel__call *call, uint32_t position)
{
    uint32_t size;
    unsigned char *copy;

    memcpy(&size, DS_ACCEL__POINTER(call, position), sizeof(size));
    copy = malloc((size_t)size + DS_ACCEL__CANARY_BYTES);
    /* if there is no memory for the copy, the call continues without guard bytes */
    if (copy != NULL) {
        memcpy(copy, DS_ACCEL__POINTER(call, position), size);
        memset(copy + size, 0xc5, DS_ACCEL__CANARY_BYTES);
        call->validate.copies[position] = copy;
        call->arguments[position].pointer = (uintptr_t)copy;
    }
}

static void redirect_outputs(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];

    memcpy(call->validate.given, call->arguments, sizeof(call->arguments));
    call->validate.is_redirected = true;
    for (uint32_t i = 0; i < slot->count; i++) {
        if (slot->meanings[i] == DS_ACCEL__STRUCT_OUT) {
            redirect_struct(call, i);
        } else if (cell_bytes(slot->meanings[i]) > 0 && call->arguments[i].pointer != 0) {
            uint64_t *cell = call->validate.cells[i];

            cell[0] = CELL_BEFORE;
            cell[1] = CELL_EMPTY;
            cell[2] = CELL_BEFORE;
            call->arguments[i].pointer = (uintptr_t)&cell[1];
        }
    }
}

static bool is_untouched(const unsigned char *bytes)
{
    for (size_t i = 0; i < DS_ACCEL__CANARY_BYTES; i++) {
        if (bytes[i] != 0xc5) {
            return false;
        }
    }
    return true;
}

/* Check and copy a single value that the plugin wrote. */
static void take_cell(struct ds_accel__call *call, uint32_t position)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint32_t meaning = slot->meanings[position];
    const char *name = slot->names[position];
    const uint64_t *cell = call->validate.cells[position];
    const uint64_t empty = CELL_EMPTY;
    size_t bytes = cell_bytes(meaning);
    void *target = (void *)call->validate.given[position].pointer;
    bool is_written = memcmp(&cell[1], &empty, bytes) != 0;
    bool is_done = call->status == DS_ACCEL_OK ||
                   (meaning == DS_ACCEL__NEEDED_OUT && call->status == DS_ACCEL_ERR_LIMIT);

    if (cell[0] != CELL_BEFORE || cell[2] != CELL_BEFORE ||
        (bytes < sizeof(empty) &&
         memcmp((const char *)&cell[1] + bytes, (const char *)&empty + bytes,
                sizeof(empty) - bytes) != 0)) {
        breach(call, "DSA-P14", "it wrote outside %s", name);
    }
    if (call->status == DS_ACCEL_OK && meaning >= DS_ACCEL__INSTANCE_OUT &&
        meaning <= DS_ACCEL__POINTER_OUT && (!is_written || *(void *const *)&cell[1] == NULL)) {
        breach(call, "DSA-H20", "it returned OK without a value for %s", name);
        reject(call, "the plugin returned OK without a result");
    } else if (is_done && is_written) {
        memcpy(target, &cell[1], bytes);
    } else if (is_done && meaning != DS_ACCEL__NEEDED_OUT) {
        breach(call, "DSA-P14", "it returned OK without writing %s", name);
    } else if (is_written) {
        breach(call, "DSA-P14", "it wrote %s, and returned %d", name, call->status);
    }
}

static void take_struct(struct ds_accel__call *call, uint32_t position)
{
    unsigned char *copy = call->validate.copies[position];
    void *target = (void *)call->validate.given[position].pointer;
    const char *name = ds_accel__slots[call->slot].names[position];
    uint32_t size;
    uint32_t size_after;

    memcpy(&size, target, sizeof(size));
    memcpy(&size_after, copy, sizeof(size_after));
    if (!is_untouched(copy + size)) {
        breach(call, "DSA-P19", "it wrote past the %u bytes of %s", size, name);
    }
    if (size_after != size) {
        breach(call, "DSA-P19", "it changed %s->struct_size from %u to %u", name, size, size_after);
        memcpy(copy, &size, sizeof(size));
    }
    if (call->status == DS_ACCEL_OK) {
        memcpy(target, copy, size);
    } else if (memcmp(target, copy, size) != 0) {
        breach(call, "DSA-P14", "it wrote %s, and returned %d", name, call->status);
    }
    free(copy);
    call->validate.copies[position] = NULL;
}

static void take_outputs(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];

    for (uint32_t i = 0; i < slot->count; i++) {
        if (call->validate.copies[i] != NULL) {
            take_struct(call, i);
        } else if (call->arguments[i].pointer == (uintptr_t)&call->validate.cells[i][1]) {
            take_cell(call, i);
        }
    }
    /* Restore only output arguments, because another layer may have replaced other arguments. */
    for (uint32_t i = 0; i < slot->count; i++) {
        if (cell_bytes(slot->meanings[i]) > 0 || slot->meanings[i] == DS_ACCEL__STRUCT_OUT) {
            call->arguments[i] = call->validate.given[i];
        }
    }
}

static void check_status(struct ds_accel__call *call)
{
    const struct ds_accel_error *error = &call->own.error;
    bool may_wait = call->slot == DS_ACCEL__SLOT_stream_query ||
                    call->slot == DS_ACCEL__SLOT_event_query;

    if (!is_untouched(call->own.canary)) {
        breach(call, "DSA-P19", "it wrote past the %zu bytes of error", sizeof(*error));
    }
    if (call->status > 0 && (call->status != DS_ACCEL_NOT_READY || !may_wait)) {
        breach(call, "DSA-P17", "it returned %d", call->status);
        reject(call, "the plugin returned an unknown status");
    } else if (call->status < DS_ACCEL_ERR_INTERNAL) {
        breach(call, "DSA-P17", "it returned %d", call->status);
    } else if (call->status < 0 && error->code != call->status) {
        breach(call, "DSA-P15", "it returned %d, and error.code is %d", call->status, error->code);
    } else if (call->status < 0 && memchr(error->message, '\0', sizeof(error->message)) == NULL) {
        breach(call, "DSA-P25", "error.message is not NUL-terminated");
    } else if (call->status < 0 && error->message[0] == '\0') {
        breach(call, "DSA-P15", "it returned %d without a message", call->status);
    } else if (call->status < 0 && strchr(error->message, '\n') != NULL) {
        breach(call, "DSA-P25", "error.message has several lines");
    }
}

/* ---- the layer ------------------------------------------------------------------------------ */

static void validate_before(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];

    if (ds_accel__layers_in_task()) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_STATE,
                               "a host task, which may only note accesses, made this call");
        return;
    }
    for (uint32_t i = 0; i < slot->count && !call->is_refused; i++) {
        check_argument(call, i);
    }
    if (!call->is_refused) {
        check_slot(call);
    }
    if (!call->is_refused) {
        ds_accel__rules_check(call);
    }
    if (!call->is_refused) {
        redirect_outputs(call);
        ds_accel__rules_wrap_task(call);
    }
}

static void validate_after(struct ds_accel__call *call)
{
    if (!call->validate.is_redirected) {
        return;
    }
    if (!call->is_refused && !ds_accel__slots[call->slot].is_void) {
        check_status(call);
    }
    take_outputs(call);
    ds_accel__rules_drop_task(call);
}

const struct ds_accel__layer_ops ds_accel__layer_validate = {
    .name = "validate",
    .stop = ds_accel__rules_stop,
    .before = validate_before,
    .after = validate_after,
};
