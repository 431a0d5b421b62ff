/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Layers: their installation between a caller and a plugin, and the rules that all layers follow.
 *
 * Installing layers overwrites entries of the host's own copy of the plugin's table, so that a
 * program without layers has no cost, and layers work with plugins of any ABI version. Slots that
 * the plugin lacks keep their stub, so that the program still sees that they are missing.
 *
 * Layers do not replace the plugin's handles. A registry for the whole process records which
 * handles are live, to which accelerator they belong and which call site made them; registers of
 * address ranges record the same for memory.
 *
 * For a handle that is not registered, the plugin that made it cannot be determined. If only one
 * accelerator has layers, the handle is assumed to belong to this accelerator; if several have
 * layers, the call is refused. Handles must be unique in the process: two accelerators whose
 * plugins use small numbers as handles cannot both have layers.
 */
#include "layers/layer.h"
#include "base/fork.h"
#include "base/slots.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/layers.h"
#include "host/registry.h"
#include "runtime/handle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- calls ---------------------------------------------------------------------------------- */

/* Begin a call: find its stack and let each layer check the call. True: it was not refused, and
 * the plugin must be called. */
static bool begin_call(struct ds_accel__call *call)
{
    struct ds_accel_error *error = &call->own.error;

    error->struct_size = sizeof(*error);
    memset(call->own.canary, 0xc5, sizeof(call->own.canary));
    call->site = ds_accel__layer_caller(call->site);
    if (call->slot == DS_ACCEL__SLOT_stream_host_task) {
        call->race.work = ds_accel__work_take();
    }
    ds_accel__stack_find(call);
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
    if (!call->is_refused && !ds_accel__track_reserve(call)) {
        ds_accel__layer_refuse(call, DS_ACCEL_ERR_NO_MEMORY,
                               "host memory for the layers is exhausted");
    }
    if (!call->is_refused) {
        ds_accel__track_before(call);
    }
    return !call->is_refused;
}

static int32_t end_call(struct ds_accel__call *call)
{
    if (!call->is_refused) {
        ds_accel__track_after(call);
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
 * The code below generates one function per slot. The public calls are inlined into the program, so
 * the return address of a generated function is the call site in the program.
 */
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

#define PROBE(...)
#define CALL(name, n, ...) \
    static int32_t layered_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__), \
                                  struct ds_accel_error *error) \
    { \
        struct ds_accel__call call = { \
            .slot = DS_ACCEL__SLOT_##name, \
            .given = error, \
            .site = __builtin_return_address(0), \
            .arguments = {DS_ACCEL__EACH_##n(PUT, __VA_ARGS__)}, \
        }; \
\
        if (begin_call(&call)) { \
            call.status = call.plugin->name(PASS_##n(__VA_ARGS__), &call.own.error); \
        } \
        return end_call(&call); \
    }
#define DROP(name, n, ...) \
    static void layered_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__)) \
    { \
        struct ds_accel__call call = { \
            .slot = DS_ACCEL__SLOT_##name, \
            .site = __builtin_return_address(0), \
            .arguments = {DS_ACCEL__EACH_##n(PUT, __VA_ARGS__)}, \
        }; \
\
        if (begin_call(&call)) { \
            call.plugin->name(PASS_##n(__VA_ARGS__)); \
        } \
        end_call(&call); \
    }
#include "slots.def"

static void put_in_front(struct ds_accel_plugin *table)
{
#define PROBE(...)
#define CALL(name, ...) \
    if (!ds_accel__slot_is_absent(table, offsetof(struct ds_accel_plugin, name))) { \
        table->name = layered_##name; \
    }
#define DROP(name, ...) CALL(name)
#include "slots.def"
}

/* ---- installing ----------------------------------------------------------------------------- */

static const char *const layer_names[] = {"validate", "race", "leak", "trace"};

bool ds_accel__hook_problem(const char *list, char *problem, size_t problem_size)
{
    const char *item;
    size_t length;

    while ((item = ds_accel__list_next(&list, ',', &length)) != NULL) {
        char name[32];
        const char *nearest;
        bool is_known = false;

        snprintf(name, sizeof(name), "%.*s", (int)(length < 31 ? length : 31), item);
        for (size_t i = 0; i < ARRAY_SIZE(layer_names); i++) {
            is_known = is_known || strcmp(name, layer_names[i]) == 0;
        }
        if (!is_known) {
            ds_accel__sanitize(name, sizeof(name));
            nearest = ds_accel__nearest(name, layer_names, ARRAY_SIZE(layer_names));
            snprintf(
                problem, problem_size,
                "\"%s\" is not a layer: expected \"validate\", \"race\", \"leak\" or \"trace\", "
                "separated by commas%s%s%s",
                name, nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                nearest != NULL ? "\"?" : "");
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

    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strlen(known[i]->name) == length && strncmp(known[i]->name, name, length) == 0) {
            add_layer(stack, known[i]);
            if (known[i] == &ds_accel__layer_validate) {
                add_layer(stack, &ds_accel__layer_race); /* layer validate includes layer race */
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

/* Start the layers of a stack. A layer that cannot start, such as a trace whose file can't be
 * written, is removed. ERR_NO_MEMORY. */
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
                          "layer %s is disabled: %s", layer->name, ds_accel_last_error());
        } else {
            assert(started <= i);
            stack->layers[started++] = layer;
        }
    }
    stack->layer_count = started;
    return DS_ACCEL_OK;
}

static void prepare(void)
{
    ds_accel__layer_registry_open();
    ds_accel__layer_site_open();
}

int32_t ds_accel__hook_install(struct ds_accel__candidate *candidate)
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
    ds_accel__stack_add(stack);
    candidate->layers = stack;
    __atomic_fetch_add(&ds_accel__layers_on, 1, __ATOMIC_RELEASE);
    return DS_ACCEL_OK;
}

void ds_accel__hook_remove(struct ds_accel__candidate *candidate)
{
    struct ds_accel__stack *stack = candidate->layers;

    if (stack == NULL || candidate->watch.is_forked) {
        return; /* a forked child reports no leaks: the objects belong to the parent */
    }
    assert(__atomic_load_n(&ds_accel__layers_on, __ATOMIC_RELAXED) > 0);
    __atomic_fetch_sub(&ds_accel__layers_on, 1, __ATOMIC_RELEASE);
    ds_accel__layer_lock();
    ds_accel__stack_remove(stack);
    ds_accel__objects_end(stack, NULL, NULL, NULL);
    ds_accel__ranges_end(stack, NULL, NULL);
    ds_accel__layer_unlock();
    stop_layers(stack, stack->layer_count);
    candidate->table = stack->plugin;
    candidate->layers = NULL;
    free(stack);
}

const struct ds_accel_plugin *ds_accel__hook_below(const struct ds_accel__candidate *candidate)
{
    return candidate->layers != NULL ? &candidate->layers->plugin : &candidate->table;
}

void ds_accel__hook_span_begin(struct ds_accel__candidate *candidate, const char *category,
                               const char *name)
{
    if (candidate->layers != NULL) {
        ds_accel__trace_begin(candidate->layers, category, name);
    }
}

void ds_accel__hook_span_end(struct ds_accel__candidate *candidate)
{
    if (candidate->layers != NULL) {
        ds_accel__trace_end(candidate->layers);
    }
}

/* ---- hooks for other parts of the library --------------------------------------------------- */

static bool has_layer(const struct ds_accel__stack *stack, const char *name)
{
    for (size_t i = 0; i < stack->layer_count; i++) {
        if (strcmp(stack->layers[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Register a block that an allocator handed out, and mark the allocations that contain it as
 * divided. The caller holds the layers' lock. */
static void keep_block(const struct ds_accel__object *device, uint64_t space, const void *pointer,
                       uint64_t size_bytes, const void *site, struct ds_accel__range **spare)
{
    struct ds_accel__range range = {
        .space = space,
        .begin = (uintptr_t)pointer,
        .size_bytes = size_bytes,
        .stack = device->stack,
        .instance = device->instance,
        .device = device->handle,
        .device_index = device->device_index,
        .slot = DS_ACCEL__SLOT_COUNT,
        .site = site,
    };
    uint64_t end = range.begin + size_bytes;
    struct ds_accel__range *whole = ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, range.begin);

    if (ds_accel__ranges_make_room(DS_ACCEL__BLOCKS)) {
        ds_accel__range_add(DS_ACCEL__BLOCKS, &range, spare);
    }
    /* the block may lie in one or in several mapped ranges */
    while (whole != NULL && whole->begin < end) {
        whole->is_divided = true;
        whole =
            ds_accel__range_find(DS_ACCEL__ALLOCATIONS, space, whole->begin + whole->size_bytes);
    }
}

static void end_block(uint64_t space, const void *pointer, const void *site)
{
    const struct ds_accel__range *range =
        ds_accel__range_find(DS_ACCEL__BLOCKS, space, (uintptr_t)pointer);

    if (range != NULL && range->begin == (uintptr_t)pointer) {
        ds_accel__range_end(DS_ACCEL__BLOCKS, range, site);
    }
}

/* Find the objects of a device and a stream; for the stream NULL, *stream_out is NULL. False: a
 * handle is not live, or the stream belongs to another accelerator. The caller holds the layers'
 * lock. */
static bool find_pair(const void *device, const void *stream,
                      const struct ds_accel__object **device_out,
                      struct ds_accel__object **stream_out)
{
    *device_out = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    *stream_out = stream != NULL ? ds_accel__object_find(DS_ACCEL__STREAM, stream) : NULL;
    return *device_out != NULL && (stream == NULL || *stream_out != NULL) &&
           (stream == NULL || (*stream_out)->stack == (*device_out)->stack);
}

static int32_t refuse_note(const struct ds_accel__device *device, const void *pointer,
                           uint64_t size_bytes, const char *problem,
                           const struct ds_accel__range *grave, const void *site)
{
    char freed[256] = "";
    char here[256];

    if (grave->freed_at != NULL) {
        ds_accel__layer_site(grave->freed_at, freed, sizeof(freed));
    }
    ds_accel__layer_site(site, here, sizeof(here));
    ds_accel__log(&device->candidate->host.context->log, "validate", DS_ACCEL_LOG_ERROR,
                  "note_access: %p with %llu bytes %s%s%s, noted at %s", pointer,
                  (unsigned long long)size_bytes, problem, freed[0] != '\0' ? ", at " : "", freed,
                  here);
    return ds_accel__error(DS_ACCEL_ERR_INVALID, "note_access: %p with %llu bytes %s%s%s", pointer,
                           (unsigned long long)size_bytes, problem, freed[0] != '\0' ? ", at " : "",
                           freed);
}

extern inline int32_t ds_accel_note_access(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                           const void *pointer, uint64_t size_bytes,
                                           uint32_t access);

int32_t ds_accel__layer_note_access(ds_accel_device_t *device, ds_accel_stream_t *stream,
                                    const void *pointer, uint64_t size_bytes, uint32_t access)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *device_object;
    struct ds_accel__object *stream_object;
    struct ds_accel__device *ours = ds_accel__device_check(device, "note_access");
    struct ds_accel__range grave = {0};
    enum ds_accel__reach reach = DS_ACCEL__REACH_UNKNOWN;
    const char *problem = NULL;
    int32_t status;
    bool is_known;
    bool is_refused = false;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (stream != NULL && (!ds_accel__handle_is_live(stream) || stream->table != device->table)) {
        return ds_accel__refuse("note_access", "stream", stream);
    }
    if (!ds_accel__layers_in_task() && (status = ds_accel__device_fork_check(ours)) < 0) {
        return status;
    }
    if (access != DS_ACCEL_ACCESS_READ && access != DS_ACCEL_ACCESS_WRITE) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "note_access: unknown kind of access %u",
                               access);
    }
    if ((uintptr_t)pointer > UINT64_MAX - size_bytes) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID,
                               "note_access: %p with %llu bytes is not a valid range", pointer,
                               (unsigned long long)size_bytes);
    }
    ds_accel__layer_lock();
    is_known = find_pair(device->handle, stream != NULL ? stream->handle : NULL, &device_object,
                         &stream_object);
    if (is_known && size_bytes > 0 && has_layer(device_object->stack, "validate")) {
        problem = ds_accel__validate_noted(device_object,
                                           stream != NULL && !ds_accel__layers_in_task(),
                                           (uintptr_t)pointer, size_bytes, &grave, &reach);
    }
    if (is_known && size_bytes > 0 && problem == NULL) {
        is_refused = ds_accel__race_note(device_object, stream_object, pointer, size_bytes, access,
                                         site, &reach);
    }
    ds_accel__layer_unlock();
    if (problem != NULL) {
        return refuse_note(ours, pointer, size_bytes, problem, &grave, site);
    }
    if (is_known) {
        ds_accel__race_tell(ours->candidate->layers);
    }
    if (is_refused) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "note_access: it would race with earlier work; see the log or "
                               "ds_accel_layer_report(\"race\")");
    }
    return DS_ACCEL_OK; /* also if no layer of the accelerator records accesses */
}

void ds_accel__hook_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                uint64_t size_bytes, ds_accel_plugin_stream_t *stream)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *device_object;
    struct ds_accel__object *stream_object;
    struct ds_accel__stack *stack = NULL;
    struct ds_accel__range *spare;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0 || size_bytes == 0) {
        return;
    }
    /* if malloc() fails, the block is not registered, and uses of it are not checked */
    spare = malloc(sizeof(*spare));
    ds_accel__layer_lock();
    if (find_pair(device, stream, &device_object, &stream_object)) {
        uint64_t space = ds_accel__space_of(device_object);
        struct ds_accel__range *block;

        stack = device_object->stack;
        ds_accel__race_block(device_object, stream_object, pointer, size_bytes, site);
        keep_block(device_object, space, pointer, size_bytes, site, &spare);
        block = ds_accel__range_find(DS_ACCEL__BLOCKS, space, (uintptr_t)pointer);
        if (block != NULL && stream_object != NULL) {
            block->pool = ds_accel__race_captures(stream_object) ? stream_object->pool : 0;
        }
    }
    ds_accel__layer_unlock();
    free(spare);
    ds_accel__race_tell(stack);
}

void ds_accel__hook_block_free(ds_accel_plugin_device_t *device, void *pointer,
                               ds_accel_plugin_stream_t *stream)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *object;

    /* The stream of the free is not needed, because the next owner's use of the block is checked
     * against all earlier uses: see ds_accel__race_block(). */
    (void)stream;
    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    ds_accel__layer_lock();
    object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    if (object != NULL) {
        end_block(ds_accel__space_of(object), pointer, site);
    }
    ds_accel__layer_unlock();
}

void ds_accel__hook_stream_ours(ds_accel_plugin_stream_t *stream)
{
    struct ds_accel__object *object;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    ds_accel__layer_lock();
    object = ds_accel__object_find(DS_ACCEL__STREAM, stream);
    if (object != NULL) {
        object->is_ours = true;
    }
    ds_accel__layer_unlock();
}

void ds_accel__hook_capture_pool(ds_accel_plugin_device_t *device, ds_accel_plugin_stream_t *stream,
                                 uint64_t pool)
{
    const struct ds_accel__object *device_object;
    struct ds_accel__object *stream_object;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    ds_accel__layer_lock();
    if (find_pair(device, stream, &device_object, &stream_object) && stream_object != NULL) {
        stream_object->pool = pool;
    }
    ds_accel__layer_unlock();
}

void ds_accel__hook_host_block(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes)
{
    const void *site = ds_accel__layer_caller(__builtin_return_address(0));
    const struct ds_accel__object *object;
    struct ds_accel__range *spare;

    if (__atomic_load_n(&ds_accel__layers_on, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    spare = size_bytes > 0 ? malloc(sizeof(*spare)) : NULL;
    ds_accel__layer_lock();
    object = ds_accel__object_find(DS_ACCEL__DEVICE, device);
    if (object != NULL && size_bytes > 0) {
        ds_accel__race_block(object, NULL, pointer, size_bytes, site);
        keep_block(object, 0, pointer, size_bytes, site, &spare);
    } else if (object != NULL) {
        end_block(0, pointer, site);
    }
    ds_accel__layer_unlock();
    free(spare);
}

/* ---- functions for programs ----------------------------------------------------------------- */

/* Return the stack of the chosen accelerator. ERR_STATE: no accelerator is chosen, or it has no
 * layers. ERR_INVALID: context or out is NULL. */
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
    int32_t status;
    char *text;

    if (context != NULL && layer == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "the layer is NULL");
    }
    status = get_stack(context, text_out, &stack);
    if (stack == NULL) {
        return status;
    }
    if (strcmp(layer, "race") != 0 && strcmp(layer, "leak") != 0) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                               "\"%s\" is not a layer with a report: expected \"race\" or \"leak\"",
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

/* ---- hooks ----------------------------------------------------------------------------------- */

static const struct ds_accel__layer_hooks hooks = {
    .install = ds_accel__hook_install,
    .remove = ds_accel__hook_remove,
    .problem = ds_accel__hook_problem,
    .in_task = ds_accel__hook_in_task,
    .end_is_refused = ds_accel__hook_end_is_refused,
    .own = ds_accel__hook_own,
    .below = ds_accel__hook_below,
    .host_idle = ds_accel__hook_host_idle,
    .stream_ours = ds_accel__hook_stream_ours,
    .span_begin = ds_accel__hook_span_begin,
    .span_end = ds_accel__hook_span_end,
    .block_alloc = ds_accel__hook_block_alloc,
    .block_free = ds_accel__hook_block_free,
    .capture_pool = ds_accel__hook_capture_pool,
    .host_block = ds_accel__hook_host_block,
    .host_task = ds_accel__hook_host_task,
    .host_work = ds_accel__hook_host_work,
};

/* Runs before main(), so that an accelerator that is started finds the layers. */
__attribute__((constructor)) static void set_hooks(void)
{
    ds_accel__layer_hooks = &hooks;
}
