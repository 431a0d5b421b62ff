/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layers: how they get between a caller and a plugin, and what they all go by.
 *
 * Installing one overwrites entries of the host's own table, so that a program without layers has
 * nothing to pay for, and a plugin of any age can have them. Slots that the plugin lacks stay the
 * stub they are: their absence stays visible.
 *
 * Handles are the plugin's own. A registry for the whole process tells which of them are live,
 * whose they are and where they were made, and registers of address ranges tell the same of
 * memory. What goes is taken out before the plugin is called, what comes is put in afterwards:
 * the other way round, another thread's new handle of the same value could be lost.
 *
 * A handle that nobody knows leads to no plugin. As long as one accelerator has layers it is that
 * one's; with several, the call is refused. (A plugin whose handles are small numbers can therefore
 * be layered once in a process.)
 */
#include "layer.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t ds_accel__layers_on;

#define BUCKET_COUNT 1024u
#define GRAVE_COUNT 256u

struct grave {
    uint32_t kind;
    const void *handle;
    const void *site;
};

struct ranges {
    struct ds_accel__range **items; /* by space, then address; they do not overlap */
    size_t count;
    size_t capacity;
};

/* Guards everything below. */
static pthread_mutex_t layer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ds_accel__stack *stacks;
static uint64_t next_id = 1;
static struct ds_accel__object *buckets[BUCKET_COUNT];
static uint64_t object_count;
static struct ranges registers[DS_ACCEL__REGISTER_COUNT];
/* What ended of late: rings. */
static struct grave graves[GRAVE_COUNT];
static size_t next_grave;
static struct ds_accel__range freed[GRAVE_COUNT];
static size_t next_freed;

void ds_accel__layer_lock(void)
{
    pthread_mutex_lock(&layer_lock);
}

void ds_accel__layer_unlock(void)
{
    pthread_mutex_unlock(&layer_lock);
}

/* ---- slots ---------------------------------------------------------------------------------- */

#define MEANING_(storage, meaning, type, name) DS_ACCEL__##meaning
#define MEANING(argument) MEANING_ argument
#define NAME_(storage, meaning, type, name) #name
#define NAME(argument) NAME_ argument
#define EACH_1(do, a) \
    do \
    (a)
#define EACH_2(do, a, b) \
    do \
    (a), do(b)
#define EACH_3(do, a, b, c) \
    do \
    (a), do(b), do(c)
#define EACH_4(do, a, b, c, d) \
    do \
    (a), do(b), do(c), do(d)
#define EACH_5(do, a, b, c, d, e) \
    do \
    (a), do(b), do(c), do(d), do(e)
#define EACH_6(do, a, b, c, d, e, f) \
    do \
    (a), do(b), do(c), do(d), do(e), do(f)
#define EACH_7(do, a, b, c, d, e, f, g) \
    do \
    (a), do(b), do(c), do(d), do(e), do(f), do(g)

const struct ds_accel__slot_info ds_accel__slots[DS_ACCEL__SLOT_COUNT] = {
#define CALL(name, n, ...) \
    {#name, offsetof(struct ds_accel_plugin, name), n, \
     false, {EACH_##n(MEANING, __VA_ARGS__)},       {EACH_##n(NAME, __VA_ARGS__)}},
#define DROP(name, n, ...) \
    {#name, offsetof(struct ds_accel_plugin, name), n, \
     true,  {EACH_##n(MEANING, __VA_ARGS__)},       {EACH_##n(NAME, __VA_ARGS__)}},
#include "slots.def"
#undef CALL
#undef DROP
};

/* ---- call sites ----------------------------------------------------------------------------- */

static uintptr_t own_begin;
static uintptr_t own_end;

static int find_own_code(struct dl_phdr_info *info, size_t size, void *user_data)
{
    uintptr_t here = (uintptr_t)user_data;

    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && here >= begin &&
            here - begin < info->dlpi_phdr[i].p_memsz) {
            own_begin = begin;
            own_end = begin + info->dlpi_phdr[i].p_memsz;
            return 1;
        }
    }
    return 0;
}

static bool is_own(const void *address)
{
    return (uintptr_t)address >= own_begin && (uintptr_t)address < own_end;
}

const void *ds_accel__layer_caller(const void *address)
{
    void *frames[32];
    int count;

    if (!is_own(address)) {
        return address; /* the public calls are inline: this is the usual case */
    }
    count = backtrace(frames, DS_ACCEL__ARRAY_SIZE(frames));
    for (int i = 0; i < count; i++) {
        if (!is_own(frames[i])) {
            return frames[i];
        }
    }
    return address;
}

void ds_accel__layer_site(const void *site, char *text, size_t text_size)
{
    /* The call itself, one byte before where it returns to: what addr2line is to be asked. */
    const char *address = (const char *)site - 1;
    const char *module;
    Dl_info info;

    if (site == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        snprintf(text, text_size, "%p", site);
        return;
    }
    module = strrchr(info.dli_fname, '/');
    module = module != NULL ? module + 1 : info.dli_fname;
    if (info.dli_sname != NULL) {
        snprintf(text, text_size, "%s+0x%tx (%s+0x%tx)", module,
                 address - (const char *)info.dli_fbase, info.dli_sname,
                 address - (const char *)info.dli_saddr);
    } else {
        snprintf(text, text_size, "%s+0x%tx", module, address - (const char *)info.dli_fbase);
    }
}

/* ---- objects: lock held --------------------------------------------------------------------- */

const char *ds_accel__kind_name(uint32_t kind)
{
    static const char *const names[DS_ACCEL__OBJECT_COUNT] = {
        [DS_ACCEL__INSTANCE] = "instance",   [DS_ACCEL__DEVICE] = "device",
        [DS_ACCEL__STREAM] = "stream",       [DS_ACCEL__EVENT] = "event",
        [DS_ACCEL__GRAPH] = "graph",         [DS_ACCEL__EXEC] = "executable graph",
        [DS_ACCEL__VMEM] = "virtual memory",
    };

    return kind < DS_ACCEL__OBJECT_COUNT ? names[kind] : "handle";
}

static struct ds_accel__object **bucket_of(uint32_t kind, const void *handle)
{
    uint64_t hash = ((uint64_t)(uintptr_t)handle ^ ((uint64_t)kind << 59)) *
                    UINT64_C(0x9e3779b97f4a7c15);

    return &buckets[hash >> 54];
}
DS_ACCEL_STATIC_ASSERT(BUCKET_COUNT == 1u << 10, "bucket_of() gives ten bits");

struct ds_accel__object *ds_accel__object_find(uint32_t kind, const void *handle)
{
    struct ds_accel__object *object = *bucket_of(kind, handle);

    while (object != NULL && (object->kind != kind || object->handle != handle)) {
        object = object->next;
    }
    return object;
}

void ds_accel__objects_visit(void (*visit)(void *user_data, struct ds_accel__object *object),
                             void *user_data)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        for (struct ds_accel__object *object = buckets[i]; object != NULL; object = object->next) {
            visit(user_data, object);
        }
    }
}

const void *ds_accel__object_grave(uint32_t kind, const void *handle)
{
    for (size_t i = 0; i < GRAVE_COUNT; i++) {
        const struct grave *grave = &graves[(next_grave + GRAVE_COUNT - 1 - i) % GRAVE_COUNT];

        if (grave->handle == handle && grave->kind == kind && handle != NULL) {
            return grave->site;
        }
    }
    return NULL;
}

/* The new object, or the one that is there already. */
static struct ds_accel__object *add_object(struct ds_accel__call *call, uint32_t kind,
                                           const void *handle, const void *device)
{
    struct ds_accel__object *object = ds_accel__object_find(kind, handle);
    const struct ds_accel__object *owner = ds_accel__object_find(DS_ACCEL__DEVICE, device);

    if (object == NULL) {
        struct ds_accel__object **bucket = bucket_of(kind, handle);

        object = call->spare_object;
        if (object == NULL) {
            return NULL;
        }
        call->spare_object = NULL;
        object->kind = kind;
        object->handle = handle;
        object->stack = call->stack;
        object->device = kind == DS_ACCEL__DEVICE ? handle : device;
        object->device_index = owner != NULL ? owner->device_index : 0;
        object->instance = kind == DS_ACCEL__INSTANCE ? handle : call->instance;
        object->site = call->site;
        object->number = ++object_count;
        object->next = *bucket;
        *bucket = object;
    }
    return object;
}

static void end_object(struct ds_accel__object *object, const void *site)
{
    struct ds_accel__object **place = bucket_of(object->kind, object->handle);

    while (*place != object) {
        place = &(*place)->next;
    }
    *place = object->next;
    graves[next_grave] = (struct grave){object->kind, object->handle, site};
    next_grave = (next_grave + 1) % GRAVE_COUNT;
    ds_accel__race_object_end(object);
    free(object);
}

/* All of a stack, or those of an instance, or of a device (not NULL). */
static void end_objects(const struct ds_accel__stack *stack, const void *instance,
                        const void *device, const void *site)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        struct ds_accel__object *next;

        for (struct ds_accel__object *object = buckets[i]; object != NULL; object = next) {
            next = object->next;
            if (object->stack == stack && (instance == NULL || object->instance == instance) &&
                (device == NULL || object->device == device)) {
                end_object(object, site);
            }
        }
    }
}

/* ---- ranges: lock held ---------------------------------------------------------------------- */

/* Position of the first range that begins behind the address. */
static size_t position_behind(const struct ranges *ranges, uint64_t space, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct ds_accel__range *range = ranges->items[middle];

        if (range->space < space || (range->space == space && range->begin <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct ds_accel__range *ds_accel__range_find(enum ds_accel__register in, uint64_t space,
                                             uint64_t address)
{
    const struct ranges *ranges = &registers[in];
    size_t position = position_behind(ranges, space, address);
    struct ds_accel__range *range = position > 0 ? ranges->items[position - 1] : NULL;

    return range != NULL && range->space == space && address - range->begin < range->size_bytes
               ? range
               : NULL;
}

const struct ds_accel__range *ds_accel__range_grave(uint64_t space, uint64_t address)
{
    for (size_t i = 0; i < GRAVE_COUNT; i++) {
        const struct ds_accel__range *range =
            &freed[(next_freed + GRAVE_COUNT - 1 - i) % GRAVE_COUNT];

        if (range->size_bytes > 0 && range->space == space &&
            address - range->begin < range->size_bytes) {
            return range;
        }
    }
    return NULL;
}

void ds_accel__ranges_visit(enum ds_accel__register in,
                            void (*visit)(void *user_data, const struct ds_accel__range *range),
                            void *user_data)
{
    for (size_t i = 0; i < registers[in].count; i++) {
        visit(user_data, registers[in].items[i]);
    }
}

static void remove_at(struct ranges *ranges, size_t position)
{
    free(ranges->items[position]);
    ranges->count--;
    memmove(&ranges->items[position], &ranges->items[position + 1],
            (ranges->count - position) * sizeof(struct ds_accel__range *));
}

#define SPARE_PLACES 64

/* Room for what calls that are under way may add. False: no memory. */
static bool make_room(struct ranges *ranges)
{
    size_t capacity = 2 * ranges->capacity + 2 * SPARE_PLACES;
    struct ds_accel__range **items;

    if (ranges->capacity >= ranges->count + SPARE_PLACES) {
        return true;
    }
    items = realloc(ranges->items, capacity * sizeof(struct ds_accel__range *));
    if (items == NULL) {
        return false;
    }
    ranges->items = items;
    ranges->capacity = capacity;
    return true;
}

/* Put it in *spare, which is taken. What lay there before is no more. */
static void add_range(enum ds_accel__register in, const struct ds_accel__range *range,
                      struct ds_accel__range **spare)
{
    struct ranges *ranges = &registers[in];
    size_t position;

    if (*spare == NULL || (ranges->count == ranges->capacity && !make_room(ranges))) {
        return; /* more than SPARE_PLACES calls at once, and no memory */
    }
    **spare = *range;
    position = position_behind(ranges, range->space, range->begin);
    while (position > 0 && ranges->items[position - 1]->space == range->space &&
           ranges->items[position - 1]->begin + ranges->items[position - 1]->size_bytes >
               range->begin) {
        remove_at(ranges, --position);
    }
    while (position < ranges->count && ranges->items[position]->space == range->space &&
           ranges->items[position]->begin - range->begin < range->size_bytes) {
        remove_at(ranges, position);
    }
    memmove(&ranges->items[position + 1], &ranges->items[position],
            (ranges->count - position) * sizeof(struct ds_accel__range *));
    ranges->items[position] = *spare;
    ranges->count++;
    *spare = NULL;
}

static void end_range(enum ds_accel__register in, const struct ds_accel__range *range,
                      const void *site)
{
    struct ranges *ranges = &registers[in];
    size_t position = position_behind(ranges, range->space, range->begin) - 1;

    freed[next_freed] = *range;
    freed[next_freed].freed_at = site;
    next_freed = (next_freed + 1) % GRAVE_COUNT;
    remove_at(ranges, position);
}

static void end_ranges(const struct ds_accel__stack *stack, const void *instance,
                       const void *device)
{
    for (size_t in = 0; in < DS_ACCEL__REGISTER_COUNT; in++) {
        struct ranges *ranges = &registers[in];
        size_t kept = 0;

        for (size_t i = 0; i < ranges->count; i++) {
            struct ds_accel__range *range = ranges->items[i];

            if (range->stack == stack && (instance == NULL || range->instance == instance) &&
                (device == NULL || range->device == device)) {
                free(range);
            } else {
                ranges->items[kept++] = range;
            }
        }
        ranges->count = kept;
        if (kept == 0) {
            free(ranges->items);
            memset(ranges, 0, sizeof(*ranges));
        }
    }
}

/* ---- what a device's flags say: they are asked once, without the lock ------------------------ */

static bool is_one_space(const struct ds_accel__stack *stack)
{
    return (stack->flags & (DS_ACCEL_FLAG_UNIFIED_ADDRESSES | DS_ACCEL_FLAG_HOST_ACCESSIBLE)) != 0;
}

uint64_t ds_accel__space_of(const struct ds_accel__object *device)
{
    return is_one_space(device->stack)
               ? 0
               : device->stack->id << 32 | ((uint64_t)device->device_index + 1);
}

uint64_t ds_accel__device_flags(const struct ds_accel__object *object)
{
    const struct ds_accel__object *device = ds_accel__object_find(DS_ACCEL__DEVICE, object->device);

    return device != NULL && device->has_device_flags ? device->device_flags : object->stack->flags;
}

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

/* ---- keeping the registry ------------------------------------------------------------------- */

void *ds_accel__layer_output(const struct ds_accel__call *call, uint32_t position)
{
    void *const *place = (void *const *)call->arguments[position].pointer;

    return place != NULL ? *place : NULL;
}

/* The device handle that a call is about; NULL for those of an instance. Lock held. */
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

/* Memory that the call gave: registered where its slot says. Lock held. */
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
    add_range(in, &range, &call->spare_range);
}

/* Memory of another process or of the vendor's: as large as the plugin says. No lock held. */
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
    bool is_one = is_one_space(call->stack);

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

/* A handle that the call gave. Lock held. */
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
        (object = add_object(call, kind, handle, device_of(call))) == NULL) {
        return;
    }
    if (kind == DS_ACCEL__DEVICE) {
        object->device_index = (uint32_t)call->arguments[1].number;
        object->opens++;
    }
    if (call->slot == DS_ACCEL__SLOT_stream_create || call->slot == DS_ACCEL__SLOT_event_create) {
        object->flags = (uint32_t)call->arguments[1].number;
    } else if (call->slot == DS_ACCEL__SLOT_native_wrap ||
               call->slot == DS_ACCEL__SLOT_ipc_event_open) {
        object->flags = DS_ACCEL_EVENT_TIMING; /* nobody said that it has none */
    }
    object->is_default = object->is_default || call->slot == DS_ACCEL__SLOT_stream_get_default;
    object->is_lent = object->is_lent || object->is_default;
}

static void note_capture(const struct ds_accel__call *call)
{
    struct ds_accel__object *stream =
        ds_accel__object_find(DS_ACCEL__STREAM, DS_ACCEL__POINTER(call, 0));

    if (stream != NULL) {
        stream->is_capturing = call->slot == DS_ACCEL__SLOT_graph_capture_begin;
    }
}

static void track_after(struct ds_accel__call *call)
{
    uint64_t asked_bytes = 0;
    bool asks = call->slot == DS_ACCEL__SLOT_ipc_memory_open ||
                (call->slot == DS_ACCEL__SLOT_native_wrap &&
                 call->arguments[1].number == DS_ACCEL_NATIVE_MEMORY);

    if (call->status == DS_ACCEL_OK && asks) {
        const void *pointer =
            ds_accel__layer_output(call, call->slot == DS_ACCEL__SLOT_ipc_memory_open ? 4 : 3);

        asked_bytes = pointer != NULL ? ask_size(call, pointer) : 0;
    }
    ds_accel__layer_lock();
    if (call->status == DS_ACCEL_OK) {
        keep_handle(call);
        keep_memory(call, asked_bytes);
        if (call->slot == DS_ACCEL__SLOT_device_count && call->arguments[1].pointer != 0) {
            call->stack->device_count = *(const uint32_t *)call->arguments[1].pointer;
        }
        if (call->slot == DS_ACCEL__SLOT_graph_capture_begin) {
            note_capture(call);
        }
    } else if (call->removed.size_bytes > 0) {
        add_range(call->slot == DS_ACCEL__SLOT_vmem_release ? DS_ACCEL__RESERVATIONS
                                                            : DS_ACCEL__ALLOCATIONS,
                  &call->removed, &call->spare_range);
    }
    if (call->slot == DS_ACCEL__SLOT_graph_capture_end) {
        note_capture(call); /* it ends in any case */
    }
    ds_accel__layer_unlock();
}

/* The register that a slot takes from, if it does, and the argument that says what. */
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
        end_range(in, range, call->site);
    }
}

/* Memory for what the call will give. False: there is none, and the plugin is not asked. */
static bool reserve(struct ds_accel__call *call)
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
        has_room = call->spare_range != NULL && make_room(&registers[DS_ACCEL__ALLOCATIONS]) &&
                   make_room(&registers[DS_ACCEL__RESERVATIONS]);
        ds_accel__layer_unlock();
    } else if (releases(call->slot, &in)) {
        call->spare_range = malloc(sizeof(*call->spare_range)); /* should it fail and stay */
    }
    return has_room;
}

static void track_before(struct ds_accel__call *call)
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
            end_ranges(call->stack, call->instance, NULL);
            end_objects(call->stack, call->instance, NULL, call->site);
        } else if (object->kind != DS_ACCEL__DEVICE) {
            end_object(object, call->site);
        } else if (--object->opens == 0) {
            end_ranges(call->stack, call->instance, object->handle);
            end_objects(call->stack, call->instance, object->handle, call->site);
        }
    }
    ds_accel__layer_unlock();
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void vrefuse(struct ds_accel__call *call, int32_t status, const char *format,
                    va_list arguments)
{
    struct ds_accel_error *error = &call->own.error;
    int length =
        snprintf(error->message, sizeof(error->message), "%s: ", ds_accel__slots[call->slot].name);

    vsnprintf(error->message + length, sizeof(error->message) - (size_t)length, format, arguments);
    error->code = status;
    error->vendor_code = 0;
    error->vendor_text[0] = '\0';
    call->status = status;
    call->is_refused = true;
}

void ds_accel__layer_refuse(struct ds_accel__call *call, int32_t status, const char *format, ...)
{
    va_list arguments;
    char site[256];

    va_start(arguments, format);
    vrefuse(call, status, format, arguments);
    va_end(arguments);
    if (ds_accel__slots[call->slot].is_void && call->stack != NULL) {
        ds_accel__layer_site(call->site, site, sizeof(site));
        ds_accel__log(&call->stack->context->log, "validate", DS_ACCEL_LOG_ERROR,
                      "%s, at %s; the call was left out", call->own.error.message, site);
    }
}

/*
 * The stack that a call goes through, and the instance. No stack: nobody knows its handle, and
 * there is not just one stack.
 */
static void find_stack(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    const void *first = DS_ACCEL__POINTER(call, 0);
    const struct ds_accel__object *object;

    ds_accel__layer_lock();
    object = slot->meanings[0] < DS_ACCEL__OBJECT_COUNT
                 ? ds_accel__object_find(slot->meanings[0], first)
                 : NULL;
    if (object != NULL) {
        call->stack = object->stack;
        call->instance = object->instance;
    } else if (stacks != NULL && stacks->next == NULL) {
        call->stack = stacks;
    }
    for (struct ds_accel__stack *stack = stacks; stack != NULL && object == NULL;
         stack = stack->next) {
        if (slot->meanings[0] == DS_ACCEL__HOST && first == &stack->candidate->host.abi) {
            call->stack = stack;
        }
    }
    ds_accel__layer_unlock();
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

/* True: the plugin is to be called. */
static bool begin_call(struct ds_accel__call *call)
{
    struct ds_accel_error *error = &call->own.error;

    error->struct_size = sizeof(*error);
    memset(call->own.canary, 0xc5, sizeof(call->own.canary));
    call->site = ds_accel__layer_caller(call->site);
    find_stack(call);
    if (call->stack == NULL) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_INVALID,
                               "%p is not a live handle of any accelerator here",
                               DS_ACCEL__POINTER(call, 0));
        return false;
    }
    call->plugin = &call->stack->plugin;
    while (call->depth < call->stack->layer_count && !call->is_refused) {
        const struct ds_accel__layer_ops *layer = call->stack->layers[call->depth];

        if (layer->before != NULL) {
            layer->before(call);
        }
        call->depth++;
    }
    if (!call->is_refused && !reserve(call)) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_NO_MEMORY,
                               "host memory for the layers is exhausted");
    }
    if (!call->is_refused) {
        track_before(call);
    }
    return !call->is_refused;
}

static int32_t end_call(struct ds_accel__call *call)
{
    if (!call->is_refused) {
        track_after(call);
        learn_flags(call);
    }
    while (call->depth > 0) {
        const struct ds_accel__layer_ops *layer = call->stack->layers[--call->depth];

        if (layer->after != NULL) {
            layer->after(call);
        }
    }
    free(call->spare_object);
    free(call->spare_range);
    if (call->status < 0 && call->given != NULL && call->given->struct_size >= sizeof(uint32_t)) {
        ds_accel_write(call->given, &call->own.error, sizeof(call->own.error));
    }
    return call->status;
}

/*
 * One function per slot. The address it returns to is the program's own place, since the public
 * calls are inline.
 */
#define DECLARE_(storage, meaning, type, name) type name
#define DECLARE(argument) DECLARE_ argument
#define PUT_P(name) \
    { \
        .pointer = (uintptr_t)(name) \
    }
#define PUT_U(name) \
    { \
        .number = (uint64_t)(name) \
    }
#define PUT_D(name) \
    { \
        .real = (name) \
    }
#define PUT_(storage, meaning, type, name) PUT_##storage(name)
#define PUT(argument) PUT_ argument
#define GET_P(type, at) (type)(at).pointer
#define GET_U(type, at) (type)(at).number
#define GET_D(type, at) (at).real
#define TAKE_(storage, meaning, type, name, at) GET_##storage(type, at)
#define TAKE(argument, at) TAKE_SPLIT(at, UNPACK argument)
#define UNPACK(storage, meaning, type, name) storage, meaning, type, name
#define TAKE_SPLIT(at, ...) TAKE_ORDER(__VA_ARGS__, at)
#define TAKE_ORDER(storage, meaning, type, name, at) TAKE_(storage, meaning, type, name, at)
#define AT(i) call.arguments[i]
#define PASS_1(a) TAKE(a, AT(0))
#define PASS_2(a, b) PASS_1(a), TAKE(b, AT(1))
#define PASS_3(a, b, c) PASS_2(a, b), TAKE(c, AT(2))
#define PASS_4(a, b, c, d) PASS_3(a, b, c), TAKE(d, AT(3))
#define PASS_5(a, b, c, d, e) PASS_4(a, b, c, d), TAKE(e, AT(4))
#define PASS_6(a, b, c, d, e, f) PASS_5(a, b, c, d, e), TAKE(f, AT(5))
#define PASS_7(a, b, c, d, e, f, g) PASS_6(a, b, c, d, e, f), TAKE(g, AT(6))

#define CALL(name, n, ...) \
    static int32_t layered_##name(EACH_##n(DECLARE, __VA_ARGS__), struct ds_accel_error *error) \
    { \
        struct ds_accel__call call = { \
            .slot = DS_ACCEL__SLOT_##name, \
            .given = error, \
            .site = __builtin_return_address(0), \
            .arguments = {EACH_##n(PUT, __VA_ARGS__)}, \
        }; \
\
        if (begin_call(&call)) { \
            call.status = call.plugin->name(PASS_##n(__VA_ARGS__), &call.own.error); \
        } \
        return end_call(&call); \
    }
#define DROP(name, n, ...) \
    static void layered_##name(EACH_##n(DECLARE, __VA_ARGS__)) \
    { \
        struct ds_accel__call call = { \
            .slot = DS_ACCEL__SLOT_##name, \
            .site = __builtin_return_address(0), \
            .arguments = {EACH_##n(PUT, __VA_ARGS__)}, \
        }; \
\
        if (begin_call(&call)) { \
            call.plugin->name(PASS_##n(__VA_ARGS__)); \
        } \
        end_call(&call); \
    }
#include "slots.def"
#undef CALL
#undef DROP

static void put_in_front(struct ds_accel_plugin *table)
{
#define CALL(name, ...) \
    if (!ds_accel__slot_is_absent(table, offsetof(struct ds_accel_plugin, name))) { \
        table->name = layered_##name; \
    }
#define DROP(name, ...) CALL(name)
#include "slots.def"
#undef CALL
#undef DROP
}

/* ---- installing ----------------------------------------------------------------------------- */

static const char *const layer_names[] = {"validate", "race", "leak", "trace"};

bool ds_accel__layers_problem(const char *list, char *problem, size_t problem_size)
{
    const char *item;
    size_t length;

    while ((item = ds_accel__list_next(&list, ',', &length)) != NULL) {
        char name[32];
        const char *nearest;
        bool is_known = false;

        snprintf(name, sizeof(name), "%.*s", (int)(length < 31 ? length : 31), item);
        for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(layer_names); i++) {
            is_known = is_known || strcmp(name, layer_names[i]) == 0;
        }
        if (!is_known) {
            ds_accel__sanitize(name, sizeof(name));
            nearest = ds_accel__nearest(name, layer_names, DS_ACCEL__ARRAY_SIZE(layer_names));
            snprintf(problem, problem_size,
                     "\"%s\" is no layer: expected \"validate\", \"race\", \"leak\" or \"trace\", "
                     "separated by commas%s%s%s",
                     name, nearest != NULL ? "; did you mean \"" : "",
                     nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
            return true;
        }
    }
    return false;
}

static void add_layer(struct ds_accel__stack *stack, const struct ds_accel__layer_ops *layer)
{
    for (size_t i = 0; i < stack->layer_count; i++) {
        if (stack->layers[i] == layer) {
            return;
        }
    }
    if (stack->layer_count < DS_ACCEL__LAYER_LIMIT) {
        stack->layers[stack->layer_count++] = layer;
    }
}

static void add_layer_named(struct ds_accel__stack *stack, const char *name, size_t length)
{
    static const struct ds_accel__layer_ops *const known[] = {
        &ds_accel__layer_validate, &ds_accel__layer_race, &ds_accel__layer_leak,
        &ds_accel__layer_trace};

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(known); i++) {
        if (strlen(known[i]->name) == length && strncmp(known[i]->name, name, length) == 0) {
            add_layer(stack, known[i]);
            if (known[i] == &ds_accel__layer_validate) {
                add_layer(stack, &ds_accel__layer_race); /* is a part of it */
            }
        }
    }
}

static void choose_layers(struct ds_accel__stack *stack)
{
    ds_accel_t *context = stack->context;
    const char *list = context->env.values[DS_ACCEL__VARIABLE_LAYERS];
    const char *item;
    size_t length;
    json_t *names;

    while (list != NULL && (item = ds_accel__list_next(&list, ',', &length)) != NULL) {
        add_layer_named(stack, item, length);
    }
    pthread_mutex_lock(&context->config_lock);
    if (context->env.values[DS_ACCEL__VARIABLE_LAYERS] == NULL) {
        names = ds_accel__config_get(&context->config, "layers", NULL);
        for (size_t i = 0; i < json_array_size(names); i++) {
            const char *name = json_string_value(json_array_get(names, i));

            add_layer_named(stack, name, strlen(name));
        }
    }
    names = ds_accel__config_get(&context->config, "validate", "races", NULL);
    stack->fails_on_races = json_is_string(names) && strcmp(json_string_value(names), "fail") == 0;
    names = ds_accel__config_get(&context->config, "validate", "threads", NULL);
    stack->separates_threads = json_is_string(names) &&
                               strcmp(json_string_value(names), "separate") == 0;
    pthread_mutex_unlock(&context->config_lock);
}

static void stop_layers(struct ds_accel__stack *stack, size_t count)
{
    while (count > 0) {
        const struct ds_accel__layer_ops *layer = stack->layers[--count];

        if (layer->stop != NULL) {
            layer->stop(stack);
        }
    }
}

/* One that cannot work here, as a trace that can't be written, is left out. ERR_NO_MEMORY. */
static int32_t start_layers(struct ds_accel__stack *stack)
{
    size_t started = 0;
    size_t count = stack->layer_count;

    for (size_t i = 0; i < count; i++) {
        const struct ds_accel__layer_ops *layer = stack->layers[i];
        int32_t status = layer->start != NULL ? layer->start(stack) : DS_ACCEL_OK;

        if (status == DS_ACCEL_ERR_NO_MEMORY) {
            stop_layers(stack, started);
            return status;
        }
        if (status < 0) {
            ds_accel__log(&stack->context->log, layer->name, DS_ACCEL_LOG_WARN,
                          "layer %s is left out: %s", layer->name, ds_accel_last_error());
        } else {
            stack->layers[started++] = layer;
        }
    }
    stack->layer_count = started;
    return DS_ACCEL_OK;
}

static void prepare(void)
{
    void *frame[1];

    ds_accel__fork_renew(&layer_lock);
    dl_iterate_phdr(find_own_code, (void *)(uintptr_t)prepare);
    backtrace(frame, 1); /* loads what it needs now, and not inside of a call */
}

int32_t ds_accel__layers_install(struct ds_accel__candidate *candidate)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ds_accel__stack chosen = {.candidate = candidate, .context = candidate->host.context};
    struct ds_accel__stack *stack;
    int32_t status;

    choose_layers(&chosen);
    if (chosen.layer_count == 0 || candidate->layers != NULL) {
        return DS_ACCEL_OK;
    }
    stack = malloc(sizeof(*stack));
    if (stack == NULL) {
        return ds_accel__no_memory();
    }
    pthread_once(&once, prepare);
    *stack = chosen;
    status = start_layers(stack);
    if (status < 0) {
        free(stack);
        return status;
    }
    stack->plugin = candidate->table;
    put_in_front(&candidate->table);
    ds_accel__layer_lock();
    stack->id = next_id++;
    stack->next = stacks;
    stacks = stack;
    ds_accel__layer_unlock();
    candidate->layers = stack;
    __atomic_fetch_add(&ds_accel__layers_on, 1, __ATOMIC_RELEASE);
    return DS_ACCEL_OK;
}

void ds_accel__layers_remove(struct ds_accel__candidate *candidate)
{
    struct ds_accel__stack *stack = candidate->layers;
    struct ds_accel__stack **place = &stacks;

    if (stack == NULL || candidate->watch.is_forked) {
        return; /* in a forked child nothing is told of what the parent still has */
    }
    __atomic_fetch_sub(&ds_accel__layers_on, 1, __ATOMIC_RELEASE);
    ds_accel__layer_lock();
    while (*place != stack) {
        place = &(*place)->next;
    }
    *place = stack->next;
    end_objects(stack, NULL, NULL, NULL);
    end_ranges(stack, NULL, NULL);
    ds_accel__layer_unlock();
    stop_layers(stack, stack->layer_count);
    candidate->table = stack->plugin;
    candidate->layers = NULL;
    free(stack);
}

void ds_accel__layers_span_begin(struct ds_accel__candidate *candidate, const char *category,
                                 const char *name)
{
    if (candidate->layers != NULL) {
        ds_accel__trace_begin(candidate->layers, category, name);
    }
}

void ds_accel__layers_span_end(struct ds_accel__candidate *candidate)
{
    if (candidate->layers != NULL) {
        ds_accel__trace_end(candidate->layers);
    }
}

/* ---- what is told from outside -------------------------------------------------------------- */

/* False: a handle is not live, or not of that device's accelerator. Lock held. */
static bool find_pair(const void *device, const void *stream,
                      const struct ds_accel__object **device_out,
                      struct ds_accel__object **stream_out)
{
    *device_out = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    *stream_out = stream != NULL ? ds_accel__object_find(DS_ACCEL__STREAM, stream) : NULL;
    return *device_out != NULL && (stream == NULL || *stream_out != NULL) &&
           (stream == NULL || (*stream_out)->stack == (*device_out)->stack);
}

int32_t ds_accel__layer_note_access(ds_accel_plugin_device_t *device,
                                    ds_accel_plugin_stream_t *stream, const void *pointer,
                                    uint64_t size_bytes, uint32_t access)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *device_object;
    struct ds_accel__object *stream_object;
    bool is_known;

    if (access != DS_ACCEL_ACCESS_READ && access != DS_ACCEL_ACCESS_WRITE) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "note_access: no kind of access %u", access);
    }
    if ((uintptr_t)pointer > UINT64_MAX - size_bytes) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "note_access: %p with %llu bytes is no range",
                               pointer, (unsigned long long)size_bytes);
    }
    ds_accel__layer_lock();
    is_known = find_pair(device, stream, &device_object, &stream_object);
    if (is_known && size_bytes > 0) {
        ds_accel__race_note(device_object, stream_object, pointer, size_bytes, access, site);
    }
    ds_accel__layer_unlock();
    ds_accel__race_tell();
    return is_known ? DS_ACCEL_OK
                    : ds_accel__error(DS_ACCEL_ERR_INVALID,
                                      "note_access: device %p or stream %p is not a live handle of "
                                      "an accelerator with layers",
                                      (void *)device, (void *)stream);
}

void ds_accel__layer_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                 uint64_t size_bytes, ds_accel_plugin_stream_t *stream)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *device_object;
    struct ds_accel__object *stream_object;
    struct ds_accel__range *spare;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0 || size_bytes == 0) {
        return;
    }
    spare = malloc(sizeof(*spare)); /* without it the block is not known: nothing is refused */
    ds_accel__layer_lock();
    if (find_pair(device, stream, &device_object, &stream_object)) {
        struct ds_accel__range range = {
            .space = ds_accel__space_of(device_object),
            .begin = (uintptr_t)pointer,
            .size_bytes = size_bytes,
            .stack = device_object->stack,
            .instance = device_object->instance,
            .device = device,
            .device_index = device_object->device_index,
            .slot = DS_ACCEL__SLOT_COUNT,
            .site = site,
        };

        ds_accel__race_block(device_object, stream_object, pointer, size_bytes, site);
        if (make_room(&registers[DS_ACCEL__BLOCKS])) {
            add_range(DS_ACCEL__BLOCKS, &range, &spare);
        }
    }
    ds_accel__layer_unlock();
    free(spare);
    ds_accel__race_tell();
}

void ds_accel__layer_block_free(ds_accel_plugin_device_t *device, void *pointer,
                                ds_accel_plugin_stream_t *stream)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *object;

    (void)stream; /* who reuses it is checked against all that used it: see layer_race.c */
    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    ds_accel__layer_lock();
    object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    if (object != NULL) {
        const struct ds_accel__range *range =
            ds_accel__range_find(DS_ACCEL__BLOCKS, ds_accel__space_of(object), (uintptr_t)pointer);

        if (range != NULL && range->begin == (uintptr_t)pointer) {
            end_range(DS_ACCEL__BLOCKS, range, site);
        }
    }
    ds_accel__layer_unlock();
}

/* ---- for programs --------------------------------------------------------------------------- */

/* The chosen accelerator's stack; a status if there is none. */
static int32_t get_stack(const ds_accel_t *context, const void *out,
                         struct ds_accel__stack **stack_out)
{
    const struct ds_accel__candidate *chosen;

    if (context == NULL || out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the %s is NULL",
                               context == NULL ? "context" : "output");
    }
    chosen = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    if (chosen == NULL || chosen->watch.is_forked || chosen->layers == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "no layer is on: name some in DS_ACCEL_LAYERS, and choose the "
                               "accelerator in this process");
    }
    *stack_out = chosen->layers;
    return DS_ACCEL_OK;
}

static bool has_layer(const struct ds_accel__stack *stack, const char *name)
{
    for (size_t i = 0; i < stack->layer_count; i++) {
        if (strcmp(stack->layers[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

int32_t ds_accel_race_count(ds_accel_t *context, uint64_t *count_out)
{
    struct ds_accel__stack *stack = NULL;
    int32_t status = get_stack(context, count_out, &stack);

    if (stack == NULL) {
        return status;
    }
    if (!has_layer(stack, "race")) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "neither layer validate nor race is on");
    }
    *count_out = ds_accel__race_total(stack);
    return DS_ACCEL_OK;
}

int32_t ds_accel_layer_report(ds_accel_t *context, const char *layer, char **text_out)
{
    struct ds_accel__stack *stack = NULL;
    int32_t status = get_stack(context, layer != NULL ? (const void *)text_out : NULL, &stack);
    char *text;

    if (stack == NULL || layer == NULL) {
        return status;
    }
    if (strcmp(layer, "race") != 0 && strcmp(layer, "leak") != 0) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "\"%s\" is no layer that reports: expected \"race\" or \"leak\"",
                               layer);
    }
    if (!has_layer(stack, layer)) {
        return ds_accel__error(DS_ACCEL_ERR_STATE, "layer %s is not on", layer);
    }
    text = strcmp(layer, "race") == 0 ? ds_accel__race_text(stack)
                                      : ds_accel__leak_text(stack, NULL, NULL);
    if (text == NULL) {
        return ds_accel__no_memory();
    }
    *text_out = text;
    return DS_ACCEL_OK;
}
