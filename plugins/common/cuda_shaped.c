/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The shared verbs; most call one function of the runtime. cuda_shaped.h lists the runtimes. */
#include "cuda_shaped.h"

static const struct cuda_shaped *shaped_of(const ds_accel_plugin_device_t *device)
{
    return device->instance->runtime;
}

int cuda_shaped_bind(void *runtime, const struct cuda_shaped_vendor *vendor,
                     const struct vendor_lib *lib, struct vendor_problem *problem)
{
    ((struct cuda_shaped *)runtime)->vendor = vendor;
    return vendor_lib_bind(lib, vendor->symbols, vendor->symbol_count, runtime, problem);
}

/* ---- codes ---------------------------------------------------------------------------------- */

int cuda_shaped_code(const struct cuda_shaped *shaped, int code)
{
    if (code != 0) {
        (void)shaped->api.last_error();
    }
    return code;
}

/* The name for messages of the function at an offset of struct cuda_shaped. */
static const char *name_of(const struct cuda_shaped_vendor *vendor, size_t offset)
{
    for (size_t i = 0; i < vendor->text_count; i++) {
        if (vendor->texts[i].offset == offset) {
            return vendor->texts[i].text;
        }
    }
    for (size_t i = 0; i < vendor->symbol_count; i++) {
        if (vendor->symbols[i].offset == offset) {
            return vendor->symbols[i].name;
        }
    }
    return "the runtime";
}

/* Report a failed call through vendor_check(): the function's name by offset, and the arguments by
   format. */
__attribute__((format(printf, 6, 7))) static int32_t fail(ds_accel_plugin_instance_t *instance,
                                                          ds_accel_plugin_device_t *device,
                                                          int code, struct ds_accel_error *error,
                                                          size_t offset, const char *format, ...)
{
    const struct cuda_shaped *shaped = instance->runtime;
    char call_arguments[192];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call_arguments, sizeof(call_arguments), format, arguments);
    va_end(arguments);
    return vendor_check(instance, device, code, error, "%s%s", name_of(shaped->vendor, offset),
                        call_arguments);
}

/* CALL(device, stream_query(native)) calls the runtime's stream_query and returns its code. If the
   code is not 0, the runtime's last error is cleared. */
#define CALL(device, call) cuda_shaped_code(shaped_of(device), shaped_of(device)->api.call)

/* Convert the code that a function returned to a status; code is evaluated twice. */
#define CHECK(device, code, error, function, ...) \
    ((code) == 0 ? DS_ACCEL_OK \
                 : fail((device)->instance, (device), (code), (error), \
                        offsetof(struct cuda_shaped, api.function), __VA_ARGS__))

static int means(const ds_accel_plugin_device_t *device, int code, enum cuda_shaped_meaning meaning)
{
    void *runtime = device->instance->runtime;

    return code != 0 && shaped_of(device)->vendor->meaning(runtime, code) == meaning;
}

/* ---- calls during a capture ----------------------------------------------------------------- */

/*
 * Allocating, freeing or registering memory, and querying or waiting for an event or a stream,
 * breaks a global-mode capture of any thread. The verbs relax this thread's capture mode during
 * such calls, as PyTorch's allocators do.
 */
int cuda_shaped_relax(const struct cuda_shaped *shaped)
{
    int mode = CUDA_SHAPED_CAPTURE_RELAXED;

    return shaped->api.exchange_capture_mode != NULL &&
                   shaped->api.exchange_capture_mode(&mode) == 0
               ? mode
               : -1;
}

void cuda_shaped_restore(const struct cuda_shaped *shaped, int mode)
{
    if (mode >= 0) {
        (void)cuda_shaped_code(shaped, shaped->api.exchange_capture_mode(&mode));
    }
}

/* ---- the thread's device -------------------------------------------------------------------- */

/* The device has no context to release; a reset would destroy work of other code in this
   process. */
void cuda_shaped_device_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

/* Read the thread's current device first: most calls find the right device set already. */
int32_t cuda_shaped_enter(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                          struct ds_accel_error *error)
{
    int current = 0;
    int code = CALL(device, get_device(&current));
    int32_t status = CHECK(device, code, error, get_device, "%s", "");

    if (status == DS_ACCEL_OK && current != (int)device->index) {
        status = cuda_shaped_set_current(device, error);
    }
    if (status == DS_ACCEL_OK) {
        *saved_out = (uint64_t)current;
    }
    return status;
}

void cuda_shaped_leave(ds_accel_plugin_device_t *device, uint64_t saved)
{
    if (saved != device->index) {
        (void)CALL(device, set_device((int)saved));
    }
}

int32_t cuda_shaped_get_current(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                                struct ds_accel_error *error)
{
    const struct cuda_shaped *shaped = instance->runtime;
    int current = 0;
    int code = cuda_shaped_code(shaped, shaped->api.get_device(&current));

    if (code != 0) {
        return fail(instance, NULL, code, error, offsetof(struct cuda_shaped, api.get_device), "%s",
                    "");
    }
    *index_out = (uint32_t)current;
    return DS_ACCEL_OK;
}

int32_t cuda_shaped_set_current(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    int code = CALL(device, set_device((int)device->index));

    return CHECK(device, code, error, set_device, "(%u)", device->index);
}

int32_t cuda_shaped_device_synchronize(ds_accel_plugin_device_t *device,
                                       struct ds_accel_error *error)
{
    int code = CALL(device, device_synchronize());

    return CHECK(device, code, error, device_synchronize, "(device %u)", device->index);
}

/* Query the memory sizes: the call reaches the driver, does not wait, and is allowed during a
   capture. */
int32_t cuda_shaped_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    uint64_t free_bytes;
    uint64_t total_bytes;

    return cuda_shaped_memory_info(device, &free_bytes, &total_bytes, error);
}

/* ---- memory --------------------------------------------------------------------------------- */

int32_t cuda_shaped_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out,
                                uint64_t *total_out, struct ds_accel_error *error)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    int code = CALL(device, memory_info(&free_bytes, &total_bytes));

    if (code == 0) {
        *free_out = free_bytes;
        *total_out = total_bytes;
    }
    return CHECK(device, code, error, memory_info, "(device %u)", device->index);
}

int32_t cuda_shaped_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                          struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, alloc(pointer_out, size_bytes));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, alloc, "(%llu bytes, device %u)",
                 (unsigned long long)size_bytes, device->index);
}

int32_t cuda_shaped_free(ds_accel_plugin_device_t *device, void *pointer,
                         struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, free(pointer));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, free, "(%p)", pointer);
}

static unsigned int host_flags(uint32_t flags)
{
    return ((flags & DS_ACCEL_PINNED_PORTABLE) != 0 ? CUDA_SHAPED_HOST_PORTABLE : 0u) |
           ((flags & DS_ACCEL_PINNED_MAPPED) != 0 ? CUDA_SHAPED_HOST_MAPPED : 0u) |
           ((flags & DS_ACCEL_PINNED_WRITE_COMBINED) != 0 ? CUDA_SHAPED_HOST_WRITE_COMBINED : 0u);
}

int32_t cuda_shaped_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                 uint32_t flags, void **pointer_out, struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, host_alloc(pointer_out, size_bytes, host_flags(flags)));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, host_alloc, "(%llu bytes, flags 0x%x)",
                 (unsigned long long)size_bytes, host_flags(flags));
}

int32_t cuda_shaped_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                                struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, host_free(pointer));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, host_free, "(%p)", pointer);
}

int32_t cuda_shaped_host_register(ds_accel_plugin_device_t *device, void *pointer,
                                  uint64_t size_bytes, uint32_t flags, struct ds_accel_error *error)
{
    /* Existing memory cannot be made write-combined: the flag is a hint and is dropped. */
    unsigned int native_flags = host_flags(flags & ~DS_ACCEL_PINNED_WRITE_COMBINED);
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, host_register(pointer, size_bytes, native_flags));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, host_register, "(%p, %llu bytes, flags 0x%x)", pointer,
                 (unsigned long long)size_bytes, native_flags);
}

int32_t cuda_shaped_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                                    struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, host_unregister(pointer));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, host_unregister, "(%p)", pointer);
}

int32_t cuda_shaped_host_device_pointer(ds_accel_plugin_device_t *device, void *host_pointer,
                                        void **device_pointer_out, struct ds_accel_error *error)
{
    int code = CALL(device, host_device_pointer(device_pointer_out, host_pointer, 0));

    return CHECK(device, code, error, host_device_pointer, "(%p)", host_pointer);
}

int32_t cuda_shaped_copy_async(ds_accel_plugin_device_t *device, void *native_stream,
                               void *destination, const void *source, uint64_t size_bytes,
                               uint32_t kind, struct ds_accel_error *error)
{
    int native_kind = CUDA_SHAPED_COPY_KIND(kind);
    int code = CALL(device, copy(destination, source, size_bytes, native_kind, native_stream));

    return CHECK(device, code, error, copy, "(%p, %p, %llu bytes, kind %d)", destination, source,
                 (unsigned long long)size_bytes, native_kind);
}

int32_t cuda_shaped_copy_peer_async(ds_accel_plugin_device_t *device, void *native_stream,
                                    ds_accel_plugin_device_t *destination_device, void *destination,
                                    ds_accel_plugin_device_t *source_device, const void *source,
                                    uint64_t size_bytes, struct ds_accel_error *error)
{
    int code = CALL(device, copy_peer(destination, (int)destination_device->index, source,
                                      (int)source_device->index, size_bytes, native_stream));

    return CHECK(device, code, error, copy_peer, "(%p, device %u, %p, device %u, %llu bytes)",
                 destination, destination_device->index, source, source_device->index,
                 (unsigned long long)size_bytes);
}

int32_t cuda_shaped_fill_async(ds_accel_plugin_device_t *device, void *native_stream,
                               void *destination, uint32_t pattern, uint32_t pattern_bytes,
                               uint64_t count, struct ds_accel_error *error)
{
    int code = CALL(device, fill(destination, (int)(pattern & 0xff), count, native_stream));

    (void)pattern_bytes; /* always 1, because fill_widths allows no other width */
    return CHECK(device, code, error, fill, "(%p, 0x%x, %llu bytes)", destination, pattern & 0xff,
                 (unsigned long long)count);
}

/* ---- streams -------------------------------------------------------------------------------- */

int32_t cuda_shaped_stream_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                  int32_t priority, void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        (flags & DS_ACCEL_STREAM_NON_BLOCKING) != 0 ? CUDA_SHAPED_STREAM_NON_BLOCKING : 0;
    int code = CALL(device, stream_create(native_out, native_flags));

    (void)priority; /* always 0: these runtimes have no priorities */
    return CHECK(device, code, error, stream_create, "(flags %u)", native_flags);
}

void cuda_shaped_stream_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)CALL(device, stream_destroy(native));
}

int32_t cuda_shaped_stream_synchronize(ds_accel_plugin_device_t *device, void *native,
                                       struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, stream_synchronize(native));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, stream_synchronize, "(%p)", native);
}

int32_t cuda_shaped_stream_query(ds_accel_plugin_device_t *device, void *native,
                                 struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, stream_query(native));

    cuda_shaped_restore(shaped_of(device), mode);
    return means(device, code, CUDA_SHAPED_NOT_READY)
               ? DS_ACCEL_NOT_READY
               : CHECK(device, code, error, stream_query, "(%p)", native);
}

int32_t cuda_shaped_stream_wait_event(ds_accel_plugin_device_t *device, void *native,
                                      void *native_event, struct ds_accel_error *error)
{
    int code = CALL(device, stream_wait_event(native, native_event, 0));

    return CHECK(device, code, error, stream_wait_event, "(%p, %p)", native, native_event);
}

struct callback {
    void (*call)(void *argument);
    void *argument;
};

static void run_callback(void *stream, int code, void *user_data)
{
    struct callback callback = *(struct callback *)user_data;

    (void)stream;
    (void)code;
    free(user_data);
    callback.call(callback.argument);
}

static int32_t add_callback(ds_accel_plugin_device_t *device, void *native,
                            void (*call)(void *argument), void *argument,
                            struct ds_accel_error *error)
{
    struct callback *callback = malloc(sizeof(*callback));
    int code;

    if (callback == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "stream_host_task: no memory for it");
    }
    callback->call = call;
    callback->argument = argument;
    code = CALL(device, add_callback(native, run_callback, callback, 0));
    if (code != 0) {
        free(callback);
    }
    return CHECK(device, code, error, add_callback, "(%p)", native);
}

int32_t cuda_shaped_stream_host_task(ds_accel_plugin_device_t *device, void *native,
                                     void (*call)(void *argument), void *argument,
                                     struct ds_accel_error *error)
{
    int code;

    if (shaped_of(device)->api.launch_host_func == NULL) {
        return add_callback(device, native, call, argument, error);
    }
    code = CALL(device, launch_host_func(native, call, argument));
    return CHECK(device, code, error, launch_host_func, "(%p)", native);
}

/* ---- events: queries and waits, which must not break a capture ------------------------------ */

int32_t cuda_shaped_event_create(ds_accel_plugin_device_t *device, uint32_t flags,
                                 void **native_out, struct ds_accel_error *error)
{
    unsigned int native_flags =
        ((flags & DS_ACCEL_EVENT_TIMING) == 0 ? CUDA_SHAPED_EVENT_DISABLE_TIMING : 0u) |
        ((flags & DS_ACCEL_EVENT_BLOCKING_SYNC) != 0 ? CUDA_SHAPED_EVENT_BLOCKING_SYNC : 0u) |
        ((flags & DS_ACCEL_EVENT_INTERPROCESS) != 0 ? CUDA_SHAPED_EVENT_INTERPROCESS : 0u);
    int code = CALL(device, event_create(native_out, native_flags));

    return CHECK(device, code, error, event_create, "(flags %u)", native_flags);
}

void cuda_shaped_event_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)CALL(device, event_destroy(native));
}

int32_t cuda_shaped_event_record(ds_accel_plugin_device_t *device, void *native,
                                 void *native_stream, struct ds_accel_error *error)
{
    int code = CALL(device, event_record(native, native_stream));

    return CHECK(device, code, error, event_record, "(%p, %p)", native, native_stream);
}

int32_t cuda_shaped_event_query(ds_accel_plugin_device_t *device, void *native,
                                struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, event_query(native));

    cuda_shaped_restore(shaped_of(device), mode);
    return means(device, code, CUDA_SHAPED_NOT_READY)
               ? DS_ACCEL_NOT_READY
               : CHECK(device, code, error, event_query, "(%p)", native);
}

int32_t cuda_shaped_event_synchronize(ds_accel_plugin_device_t *device, void *native,
                                      struct ds_accel_error *error)
{
    int mode = cuda_shaped_relax(shaped_of(device));
    int code = CALL(device, event_synchronize(native));

    cuda_shaped_restore(shaped_of(device), mode);
    return CHECK(device, code, error, event_synchronize, "(%p)", native);
}

int32_t cuda_shaped_event_elapsed_ms(ds_accel_plugin_device_t *device, void *start, void *end,
                                     double *elapsed_ms_out, struct ds_accel_error *error)
{
    float milliseconds = 0;
    int code = CALL(device, event_elapsed(&milliseconds, start, end));

    if (means(device, code, CUDA_SHAPED_NOT_READY)) {
        return plugin_fail(
            error, DS_ACCEL_ERR_STATE, "%s: an event was not reached yet",
            name_of(shaped_of(device)->vendor, offsetof(struct cuda_shaped, api.event_elapsed)));
    }
    if (code == 0) {
        *elapsed_ms_out = milliseconds;
    }
    return CHECK(device, code, error, event_elapsed, "(%p, %p)", start, end);
}

int32_t cuda_shaped_ipc_event_export(ds_accel_plugin_device_t *device, void *native, void *handle,
                                     struct ds_accel_error *error)
{
    int code = CALL(device, ipc_event_export(handle, native));

    return CHECK(device, code, error, ipc_event_export, "(%p)", native);
}

int32_t cuda_shaped_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle,
                                   void **native_out, struct ds_accel_error *error)
{
    struct cuda_shaped_ipc value;
    int code;

    memcpy(&value, handle, sizeof(value));
    code = CALL(device, ipc_event_open(native_out, value));
    return CHECK(device, code, error, ipc_event_open, "(device %u)", device->index);
}

/* ---- graphs --------------------------------------------------------------------------------- */

int32_t cuda_shaped_capture_begin(ds_accel_plugin_device_t *device, void *native_stream,
                                  uint32_t mode, struct ds_accel_error *error)
{
    int code = CALL(device, capture_begin(native_stream, (int)mode));

    return CHECK(device, code, error, capture_begin, "(%p, mode %u)", native_stream, mode);
}

int32_t cuda_shaped_capture_end(ds_accel_plugin_device_t *device, void *native_stream,
                                void **native_out, struct ds_accel_error *error)
{
    int code = CALL(device, capture_end(native_stream, native_out));

    return CHECK(device, code, error, capture_end, "(%p)", native_stream);
}

int32_t cuda_shaped_capture_status(ds_accel_plugin_device_t *device, void *native_stream,
                                   uint32_t *status_out, struct ds_accel_error *error)
{
    int capturing = 0;
    int code = CALL(device, capture_status(native_stream, &capturing));

    if (code == 0) {
        *status_out = (uint32_t)capturing;
    }
    return CHECK(device, code, error, capture_status, "(%p)", native_stream);
}

void cuda_shaped_graph_destroy(ds_accel_plugin_device_t *device, void *native)
{
    (void)CALL(device, graph_destroy(native));
}

int32_t cuda_shaped_graph_instantiate(ds_accel_plugin_device_t *device, void *native,
                                      void **exec_out, struct ds_accel_error *error)
{
    int code = shaped_of(device)->api.graph_instantiate != NULL
                   ? CALL(device, graph_instantiate(exec_out, native, NULL, NULL, 0))
                   : CALL(device, graph_instantiate_flags(exec_out, native, 0));

    return CHECK(device, code, error, graph_instantiate, "(%p)", native);
}

void cuda_shaped_graph_exec_destroy(ds_accel_plugin_device_t *device, void *exec)
{
    (void)CALL(device, graph_exec_destroy(exec));
}

int32_t cuda_shaped_graph_launch(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                                 struct ds_accel_error *error)
{
    int code = CALL(device, graph_launch(exec, native_stream));

    return CHECK(device, code, error, graph_launch, "(%p, %p)", exec, native_stream);
}

/* ---- peer access, enabled from the current device to the other device ----------------------- */

int32_t cuda_shaped_peer_can_access(ds_accel_plugin_device_t *device,
                                    ds_accel_plugin_device_t *peer, uint32_t *can_out,
                                    struct ds_accel_error *error)
{
    int can = 0;
    int code = CALL(device, peer_can_access(&can, (int)device->index, (int)peer->index));

    if (code == 0) {
        *can_out = can != 0;
    }
    return CHECK(device, code, error, peer_can_access, "(device %u, device %u)", device->index,
                 peer->index);
}

int32_t cuda_shaped_peer_enable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                struct ds_accel_error *error)
{
    int code = CALL(device, peer_enable((int)peer->index, 0));

    return means(device, code, CUDA_SHAPED_PEER_ENABLED)
               ? DS_ACCEL_OK
               : CHECK(device, code, error, peer_enable, "(device %u, from device %u)", peer->index,
                       device->index);
}

int32_t cuda_shaped_peer_disable(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                                 struct ds_accel_error *error)
{
    int code = CALL(device, peer_disable((int)peer->index));

    return means(device, code, CUDA_SHAPED_PEER_NOT_ENABLED)
               ? DS_ACCEL_OK
               : CHECK(device, code, error, peer_disable, "(device %u, from device %u)",
                       peer->index, device->index);
}
