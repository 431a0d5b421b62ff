/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Updates the registry for the objects that calls create and destroy. A destroyed object is removed
 * before the plugin is called, and a new object is added after the call. If the object were removed
 * only after the call, another thread could already have registered a new handle with the same
 * value, and the new entry would be lost. Memory for new entries is allocated before the call, so
 * that every object that the plugin creates is registered.
 */
#include "host/registry.h"
#include "layers/layer.h"

#include <stdlib.h>

/* ---- a device's flags: queried once, without the lock ---------------------------------------- */

static void learn_backend_flags(struct ds_accel__stack *stack, ds_accel_plugin_instance_t *instance)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (stack->plugin.backend_info(instance, &info, &error) == DS_ACCEL_OK) {
        stack->flags = info.flags & info.flags_known;
    }
    stack->has_flags = true;
}

static void learn_device_flags(struct ds_accel__stack *stack, ds_accel_plugin_device_t *handle)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = stack->plugin.device_info(handle, &info, &error);
    struct ds_accel__object *device;

    ds_accel__layer_lock();
    device = ds_accel__object_find(DS_ACCEL__DEVICE, handle);
    if (device != NULL && status == DS_ACCEL_OK) {
        device->device_flags = (info.flags & info.flags_known) | (stack->flags & ~info.flags_known);
        device->has_device_flags = true;
    }
    ds_accel__layer_unlock();
}

/* ---- destroyed objects: the caller holds the layers' lock ----------------------------------- */

static void end_object(struct ds_accel__object *object, const void *site)
{
    ds_accel__object_remove(object, site);
    ds_accel__race_object_end(object);
    free(object);
}

struct ending {
    const struct ds_accel__stack *stack;
    const void *instance;
    const void *device;
    const void *site;
};

static void end_if_of(void *user_data, struct ds_accel__object *object)
{
    const struct ending *ending = user_data;

    if (object->stack == ending->stack &&
        (ending->instance == NULL || object->instance == ending->instance) &&
        (ending->device == NULL || object->device == ending->device)) {
        end_object(object, ending->site);
    }
}

void ds_accel__objects_end(const struct ds_accel__stack *stack, const void *instance,
                           const void *device, const void *site)
{
    struct ending ending = {stack, instance, device, site};

    ds_accel__objects_visit(end_if_of, &ending);
}

/* ---- updating the registry ------------------------------------------------------------------ */

/* Return the device handle of a call; NULL for a call on an instance or on a handle that is not
 * live. The caller holds the layers' lock. */
static const void *device_of(const struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint32_t kind = slot->meanings[0];
    const void *handle = DS_ACCEL__POINTER(call, 0);
    const struct ds_accel__object *object;

    if (kind == DS_ACCEL__DEVICE || kind >= DS_ACCEL__OBJECT_COUNT) {
        return kind == DS_ACCEL__DEVICE ? handle : NULL;
    }
    object = ds_accel__object_find(kind, handle);
    return object != NULL ? object->device : NULL;
}

/* Register memory that the call allocated, mapped or imported. is_host: the memory belongs to the
 * host's address space. The caller holds the layers' lock. */
static void keep_range(struct ds_accel__call *call, enum ds_accel__register in, const void *pointer,
                       uint64_t size_bytes, bool is_host)
{
    const struct ds_accel__object *device =
        ds_accel__object_find(DS_ACCEL__DEVICE, device_of(call));
    struct ds_accel__range range = {
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes > 0 ? size_bytes : 1,
        .stack = call->stack,
        .slot = call->slot,
        .flags = call->slot == DS_ACCEL__SLOT_mem_alloc_pinned ||
                         call->slot == DS_ACCEL__SLOT_mem_register
                     ? (uint32_t)call->arguments[3].number
                     : 0,
        .is_unsized = size_bytes == 0,
        .site = call->site,
    };

    if (device == NULL || pointer == NULL) {
        return;
    }
    range.space = is_host ? 0 : ds_accel__space_of(device);
    range.instance = device->instance;
    range.device = device->handle;
    range.device_index = device->device_index;
    ds_accel__range_add(in, &range, &call->spare_range);
}

/* Query the plugin for the number of bytes from pointer to the end of its allocation, which belongs
 * to another process or to the vendor; 0: not known. The caller holds no lock. */
static uint64_t ask_size(const struct ds_accel__call *call, const void *pointer)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_device_t *device = DS_ACCEL__POINTER(call, 0);
    ds_accel_plugin_instance_t *instance = call->stack->candidate->instance;

    if (instance == NULL ||
        call->plugin->mem_pointer_info(instance, device, pointer, &info, &error) != DS_ACCEL_OK) {
        return 0;
    }
    return info.base_address != 0 && info.base_address <= (uintptr_t)pointer
               ? info.size_bytes - ((uintptr_t)pointer - info.base_address)
               : info.size_bytes;
}

static void keep_memory(struct ds_accel__call *call, uint64_t asked_bytes)
{
    const union ds_accel__argument *arguments = call->arguments;
    bool is_one = ds_accel__is_one_space(call->stack);

    switch (call->slot) {
    case DS_ACCEL__SLOT_mem_alloc:
    case DS_ACCEL__SLOT_mem_alloc_async:
        keep_range(call, DS_ACCEL__ALLOCATIONS,
                   ds_accel__layer_output(call, call->slot == DS_ACCEL__SLOT_mem_alloc ? 4 : 5),
                   arguments[1].number, false);
        break;
    case DS_ACCEL__SLOT_mem_alloc_pinned:
        keep_range(call, DS_ACCEL__ALLOCATIONS, ds_accel__layer_output(call, 4),
                   arguments[1].number, true);
        break;
    case DS_ACCEL__SLOT_mem_alloc_managed:
        keep_range(call, DS_ACCEL__ALLOCATIONS, ds_accel__layer_output(call, 3),
                   arguments[1].number, true);
        break;
    case DS_ACCEL__SLOT_mem_register:
        keep_range(call, DS_ACCEL__ALLOCATIONS, DS_ACCEL__POINTER(call, 1), arguments[2].number,
                   true);
        break;
    case DS_ACCEL__SLOT_vmem_reserve:
        keep_range(call, DS_ACCEL__RESERVATIONS, ds_accel__layer_output(call, 5),
                   arguments[1].number, is_one);
        break;
    case DS_ACCEL__SLOT_vmem_map:
        keep_range(call, DS_ACCEL__ALLOCATIONS, DS_ACCEL__POINTER(call, 1), arguments[2].number,
                   is_one);
        break;
    case DS_ACCEL__SLOT_ipc_memory_open:
        keep_range(call, DS_ACCEL__ALLOCATIONS, ds_accel__layer_output(call, 4), asked_bytes,
                   false);
        break;
    case DS_ACCEL__SLOT_dmabuf_import:
        keep_range(call, DS_ACCEL__ALLOCATIONS, ds_accel__layer_output(call, 4),
                   arguments[3].number, false);
        break;
    case DS_ACCEL__SLOT_native_wrap:
        if (arguments[1].number == DS_ACCEL_NATIVE_MEMORY) {
            keep_range(call, DS_ACCEL__ALLOCATIONS, ds_accel__layer_output(call, 3), asked_bytes,
                       false);
        }
        break;
    default:
        break;
    }
}

static void take_flags(void *user_data, struct ds_accel__object *object)
{
    struct ds_accel__object *wrapped = user_data;

    if (object->kind == DS_ACCEL__STREAM && object->has_flags && object != wrapped &&
        object->native == wrapped->native && object->stack == wrapped->stack &&
        object->device_index == wrapped->device_index) {
        wrapped->flags = object->flags;
        wrapped->has_flags = true;
    }
}

/* Record the vendor's handle of an object that native_wrap made. A stream has the flags of the
 * handle that created it, if that handle is known. The caller holds the layers' lock. */
static void keep_native(struct ds_accel__object *object, uint64_t native)
{
    object->native = native;
    if (object->kind == DS_ACCEL__STREAM && native != 0) {
        ds_accel__objects_visit(take_flags, object);
    }
    ds_accel__race_native(object);
}

/* Register a handle that the call made. The caller holds the layers' lock. */
static void keep_handle(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint32_t last = slot->count - 1;
    uint32_t kind = slot->meanings[last] - (uint32_t)DS_ACCEL__OBJECT_COUNT;
    const void *handle;
    struct ds_accel__object *object;

    if (call->slot == DS_ACCEL__SLOT_native_wrap) {
        kind = call->arguments[1].number == DS_ACCEL_NATIVE_STREAM  ? DS_ACCEL__STREAM
               : call->arguments[1].number == DS_ACCEL_NATIVE_EVENT ? DS_ACCEL__EVENT
                                                                    : DS_ACCEL__OBJECT_COUNT;
    }
    if (kind >= DS_ACCEL__OBJECT_COUNT || (handle = ds_accel__layer_output(call, last)) == NULL ||
        (object = ds_accel__object_add(call, kind, handle, device_of(call))) == NULL) {
        return;
    }
    if (kind == DS_ACCEL__DEVICE) {
        object->device_index = (uint32_t)call->arguments[1].number;
        object->opens++;
    }
    if (call->slot == DS_ACCEL__SLOT_stream_create || call->slot == DS_ACCEL__SLOT_event_create) {
        object->flags = (uint32_t)call->arguments[1].number;
        object->has_flags = true;
    } else if (kind == DS_ACCEL__EVENT) {
        /* the event is assumed to have timing, because the call does not show whether it has */
        object->flags = DS_ACCEL_EVENT_TIMING;
    }
    object->is_created = object->is_created || call->slot == DS_ACCEL__SLOT_stream_create;
    object->is_default = object->is_default || call->slot == DS_ACCEL__SLOT_stream_get_default;
    object->is_lent = object->is_lent || object->is_default;
    if (call->slot == DS_ACCEL__SLOT_native_wrap) {
        keep_native(object, call->arguments[2].number);
    }
}

/* Record the vendor's handle that native_get returned for a stream or an event. The caller holds
 * the layers' lock. */
static void note_native(const struct ds_accel__call *call)
{
    uint64_t asked = call->arguments[1].number;
    uint32_t kind = asked == DS_ACCEL_NATIVE_STREAM  ? DS_ACCEL__STREAM
                    : asked == DS_ACCEL_NATIVE_EVENT ? DS_ACCEL__EVENT
                                                     : DS_ACCEL__OBJECT_COUNT;
    struct ds_accel__object *object = ds_accel__object_find(kind, DS_ACCEL__POINTER(call, 2));

    uint64_t native = *(const uint64_t *)call->arguments[3].pointer;

    if (kind < DS_ACCEL__OBJECT_COUNT && object != NULL && object->native != native) {
        object->native = native;
        ds_accel__race_native(object);
    }
}

/* Return the vendor's handle that an event had before this call recorded it; 0: the handle is not
 * known, or the call recorded no event. The caller holds the layers' lock. */
static uint64_t recorded_native(const struct ds_accel__call *call, const void **device_out)
{
    const struct ds_accel__object *event =
        call->slot == DS_ACCEL__SLOT_event_record && call->status == DS_ACCEL_OK &&
                call->stack->races != NULL
            ? ds_accel__object_find(DS_ACCEL__EVENT, DS_ACCEL__POINTER(call, 0))
            : NULL;

    *device_out = event != NULL ? event->device : NULL;
    return event != NULL ? event->native : 0;
}

/* Forget the vendor's handle of an event if the recording replaced it: some backends create a new
 * vendor event for each recording, and the value of the old handle may be reused for another event.
 * The caller holds no lock. */
static void forget_native(const struct ds_accel__call *call, const void *device, uint64_t native)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const void *handle = DS_ACCEL__POINTER(call, 0);
    struct ds_accel__object *event;
    uint64_t offset_bytes = 0;
    uint64_t now = 0;

    if (call->plugin->native_get((ds_accel_plugin_device_t *)device, DS_ACCEL_NATIVE_EVENT, handle,
                                 &now, &offset_bytes, &error) == DS_ACCEL_OK &&
        now == native) {
        return;
    }
    ds_accel__layer_lock();
    event = ds_accel__object_find(DS_ACCEL__EVENT, handle);
    if (event != NULL && event->native == native) {
        event->native = 0;
        ds_accel__race_part(event);
    }
    ds_accel__layer_unlock();
}

static void note_capture(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));

    if (stream != NULL) {
        stream->is_capturing = call->slot == DS_ACCEL__SLOT_graph_capture_begin;
        stream->capture_mode = stream->is_capturing ? (uint32_t)call->arguments[1].number : 0;
        stream->capture_thread = pthread_self();
    }
}

/* Whether the capture continues after a failed graph_capture_end: a runtime may refuse to end a
 * capture that another thread began. The plugin is queried. The caller holds no lock. */
static bool capture_goes_on(const struct ds_accel__call *call)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;

    return call->slot == DS_ACCEL__SLOT_graph_capture_end && call->status < 0 &&
           call->plugin->graph_capture_status(DS_ACCEL__POINTER(call, 0), &capturing, &error) ==
               DS_ACCEL_OK &&
           capturing != DS_ACCEL_CAPTURING_NO;
}

static void learn_flags(struct ds_accel__call *call)
{
    uint32_t kind = ds_accel__slots[call->slot].meanings[0];

    if (kind == DS_ACCEL__HOST && call->status == DS_ACCEL_OK && !call->stack->has_flags) {
        learn_backend_flags(call->stack, ds_accel__layer_output(call, 1));
    } else if (call->slot == DS_ACCEL__SLOT_device_open && call->status == DS_ACCEL_OK) {
        learn_device_flags(call->stack, ds_accel__layer_output(call, 2));
    } else if (call->slot == DS_ACCEL__SLOT_device_open_native && call->status == DS_ACCEL_OK) {
        learn_device_flags(call->stack, ds_accel__layer_output(call, 3));
    }
}

void ds_accel__track_after(struct ds_accel__call *call)
{
    const void *device;
    uint64_t native;
    uint64_t asked_bytes = 0;
    bool asks = call->slot == DS_ACCEL__SLOT_ipc_memory_open ||
                (call->slot == DS_ACCEL__SLOT_native_wrap &&
                 call->arguments[1].number == DS_ACCEL_NATIVE_MEMORY);

    if (call->status == DS_ACCEL_OK && asks) {
        const void *pointer =
            ds_accel__layer_output(call, call->slot == DS_ACCEL__SLOT_ipc_memory_open ? 4 : 3);

        asked_bytes = pointer != NULL ? ask_size(call, pointer) : 0;
    }
    call->capture_goes_on = capture_goes_on(call);
    ds_accel__layer_lock();
    if (call->status == DS_ACCEL_OK) {
        keep_handle(call);
        keep_memory(call, asked_bytes);
        if (call->slot == DS_ACCEL__SLOT_device_count && call->arguments[1].pointer != 0) {
            call->stack->device_count = *(const uint32_t *)call->arguments[1].pointer;
        }
        if (call->slot == DS_ACCEL__SLOT_graph_capture_begin) {
            note_capture(call);
        } else if (call->slot == DS_ACCEL__SLOT_native_get && call->arguments[3].pointer != 0) {
            note_native(call);
        }
    } else if (call->removed.size_bytes > 0) {
        ds_accel__range_add(call->slot == DS_ACCEL__SLOT_vmem_release ? DS_ACCEL__RESERVATIONS
                                                                      : DS_ACCEL__ALLOCATIONS,
                            &call->removed, &call->spare_range);
    }
    if (call->slot == DS_ACCEL__SLOT_graph_capture_end && !call->capture_goes_on) {
        note_capture(call); /* also after a failure: a broken capture ends without a graph */
    }
    native = recorded_native(call, &device);
    ds_accel__layer_unlock();
    if (native != 0) {
        forget_native(call, device, native);
    }
    learn_flags(call);
}

/* Whether a slot releases memory; *in_out: the register that contains the memory. */
static bool releases(uint32_t slot, enum ds_accel__register *in_out)
{
    *in_out = slot == DS_ACCEL__SLOT_vmem_release ? DS_ACCEL__RESERVATIONS : DS_ACCEL__ALLOCATIONS;
    return slot == DS_ACCEL__SLOT_mem_free || slot == DS_ACCEL__SLOT_mem_free_pinned ||
           slot == DS_ACCEL__SLOT_mem_free_async || slot == DS_ACCEL__SLOT_mem_unregister ||
           slot == DS_ACCEL__SLOT_vmem_release || slot == DS_ACCEL__SLOT_vmem_unmap ||
           slot == DS_ACCEL__SLOT_ipc_memory_close || slot == DS_ACCEL__SLOT_dmabuf_release;
}

static void release_memory(struct ds_accel__call *call, enum ds_accel__register in)
{
    const struct ds_accel__object *device =
        ds_accel__object_find(DS_ACCEL__DEVICE, device_of(call));
    uint64_t address = call->arguments[1].pointer;
    const struct ds_accel__range *range = ds_accel__range_find(in, 0, address);

    if (range == NULL && device != NULL) {
        range = ds_accel__range_find(in, ds_accel__space_of(device), address);
    }
    if (range != NULL && range->begin == address) {
        call->removed = *range;
        ds_accel__range_end(in, range, call->site);
    }
}

/* Allocate the registry's memory for the call. False: out of memory; the plugin must not be
 * called. */
bool ds_accel__track_reserve(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    uint32_t last = slot->meanings[slot->count - 1];
    enum ds_accel__register in;
    bool gives_handle = last >= DS_ACCEL__INSTANCE_OUT && last < DS_ACCEL__POINTER_OUT;
    bool gives_memory = last == DS_ACCEL__POINTER_OUT ||
                        call->slot == DS_ACCEL__SLOT_mem_register ||
                        call->slot == DS_ACCEL__SLOT_vmem_map;
    bool has_room = true;

    if (gives_handle || call->slot == DS_ACCEL__SLOT_native_wrap) {
        call->spare_object = calloc(1, sizeof(*call->spare_object));
        has_room = call->spare_object != NULL;
    }
    if (gives_memory && has_room) {
        call->spare_range = malloc(sizeof(*call->spare_range));
        ds_accel__layer_lock();
        has_room = call->spare_range != NULL && ds_accel__ranges_make_room(DS_ACCEL__ALLOCATIONS) &&
                   ds_accel__ranges_make_room(DS_ACCEL__RESERVATIONS);
        ds_accel__layer_unlock();
    } else if (releases(call->slot, &in)) {
        /* used to restore the range if the call fails */
        call->spare_range = malloc(sizeof(*call->spare_range));
    }
    return has_room;
}

void ds_accel__track_before(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    struct ds_accel__object *object;
    enum ds_accel__register in;

    ds_accel__layer_lock();
    object = slot->meanings[0] < DS_ACCEL__OBJECT_COUNT
                 ? ds_accel__object_find(slot->meanings[0], DS_ACCEL__POINTER(call, 0))
                 : NULL;
    if (releases(call->slot, &in)) {
        release_memory(call, in);
    } else if (slot->is_void && object != NULL) {
        if (object->kind == DS_ACCEL__INSTANCE) {
            ds_accel__ranges_end(call->stack, call->instance, NULL);
            ds_accel__objects_end(call->stack, call->instance, NULL, call->site);
        } else if (object->kind != DS_ACCEL__DEVICE) {
            end_object(object, call->site);
        } else if (--object->opens == 0) {
            ds_accel__ranges_end(call->stack, call->instance, object->handle);
            ds_accel__objects_end(call->stack, call->instance, object->handle, call->site);
        }
    }
    ds_accel__layer_unlock();
}
