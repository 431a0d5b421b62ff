/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Streams and events: creation, destruction and lookup. Frequent calls are inline in ds_accel.h and
 * call the plugin's table directly.
 *
 * If the vendor's runtime has a current stream for each thread, the library uses that stream, so
 * that the vendor's calls and this library agree. Otherwise this file stores a current stream for
 * each thread.
 */
#include "base/text.h"
#include "host/layers.h"
#include "runtime/allocator/allocator.h"
#include "runtime/caching.h"
#include "runtime/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Out-of-line copies for callers that cannot inline. */
extern inline int32_t ds_accel_stream_synchronize(ds_accel_stream_t *stream);
extern inline int32_t ds_accel_stream_synchronize_for(ds_accel_stream_t *stream,
                                                      uint64_t timeout_ns);
extern inline int32_t ds_accel_stream_query(ds_accel_stream_t *stream);
extern inline int32_t ds_accel_stream_wait_event(ds_accel_stream_t *stream,
                                                 ds_accel_event_t *event);
extern inline int32_t ds_accel_stream_host_task(ds_accel_stream_t *stream,
                                                ds_accel_host_task_t task, void *user_data);
extern inline int32_t ds_accel_event_record(ds_accel_event_t *event, ds_accel_stream_t *stream);
extern inline int32_t ds_accel_event_query(ds_accel_event_t *event);
extern inline int32_t ds_accel_event_synchronize(ds_accel_event_t *event);
extern inline int32_t ds_accel_event_synchronize_for(ds_accel_event_t *event, uint64_t timeout_ns);

/* ---- streams -------------------------------------------------------------------------------- */

struct ds_accel__stream *ds_accel__stream_check(ds_accel_stream_t *stream, const char *call)
{
    if (!ds_accel__handle_is_live(stream)) {
        ds_accel__refuse(call, "stream", stream);
        return NULL;
    }
    return (struct ds_accel__stream *)stream;
}

/* Make a handle for a plugin's stream. NULL: out of memory. */
static struct ds_accel__stream *wrap(struct ds_accel__device *device,
                                     ds_accel_plugin_stream_t *handle, bool is_borrowed)
{
    struct ds_accel__stream *stream = ds_accel__handle_take(DS_ACCEL__HANDLE_STREAM, device);

    if (stream != NULL) {
        stream->abi.table = device->abi.table;
        stream->abi.handle = handle;
        stream->is_borrowed = is_borrowed;
        ds_accel__layer_stream_ours(handle);
        ds_accel__child_add(&stream->child);
    }
    return stream;
}

/* Store made as the handle of the default stream and return it. If another thread has stored a
 * handle already, destroy made and return the stored handle. */
static struct ds_accel__stream *keep_default(struct ds_accel__device *device,
                                             struct ds_accel__stream *made)
{
    struct ds_accel__stream *kept = NULL;

    if (__atomic_compare_exchange_n(&device->default_stream, &kept, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return made;
    }
    assert(kept != NULL && kept != made);
    ds_accel__stream_destroy(made);
    return kept;
}

/* Store the device's default stream in *stream_out. Its handle is created on first use, not when
 * the device is opened. */
static int32_t get_default(struct ds_accel__device *device, struct ds_accel__stream **stream_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__stream *stream = __atomic_load_n(&device->default_stream, __ATOMIC_ACQUIRE);
    ds_accel_plugin_stream_t *handle = NULL;
    int32_t status;

    if (stream == NULL) {
        status = device->abi.table->stream_get_default(device->abi.handle, &handle, &error);
        /* A backend without streams also gets a default stream, because memory belongs to a
         * stream. */
        if (status < 0 && status != DS_ACCEL_ERR_UNSUPPORTED) {
            return ds_accel__fail(status, &error);
        }
        stream = wrap(device, handle, true);
        stream = stream != NULL ? keep_default(device, stream) : NULL;
    }
    *stream_out = stream;
    return stream != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

int32_t ds_accel_stream_create(ds_accel_device_t *device, uint32_t flags, int32_t priority,
                               ds_accel_stream_t **stream_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "stream_create");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *handle = NULL;
    struct ds_accel__stream *stream;
    int32_t status;

    if (ours == NULL || stream_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("stream_create", "output", NULL);
    }
    status = device->table->stream_create(device->handle, flags, priority, &handle, &error);
    if (status == DS_ACCEL_OK && handle == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (status != DS_ACCEL_OK) {
        return ds_accel__fail(status > 0 ? DS_ACCEL_ERR_ABI : status, &error);
    }
    stream = wrap(ours, handle, false);
    if (stream == NULL) {
        device->table->stream_destroy(handle);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    *stream_out = &stream->abi;
    return DS_ACCEL_OK;
}

void ds_accel__stream_destroy(struct ds_accel__stream *stream)
{
    const struct ds_accel_plugin *table = stream->abi.table;
    ds_accel_plugin_stream_t *handle = stream->abi.handle;
    struct ds_accel__device *device = stream->child.device;

    if (ds_accel__child_remove(&stream->child)) {
        struct ds_accel__arena *arena = device->allocator != NULL ? stream->arena : NULL;
        bool is_borrowed = stream->is_borrowed;

        /* While this thread holds the lock, no other thread ends the stream's capture: such a
         * thread has finished already, or will find the stream destroyed. */
        pthread_mutex_lock(&device->lock);
        if (arena != NULL && ds_accel__allocator_is_capturing(arena)) {
            /* the end of the stream's work can be marked only after the capture has ended */
            ds_accel__capture_cancel(stream);
        }
        if (!is_borrowed) {
            ds_accel__pinned_stream_ends(device, stream);
        }
        ds_accel__captures_end(stream);
        ds_accel__handle_put(DS_ACCEL__HANDLE_STREAM, stream);
        pthread_mutex_unlock(&device->lock);
        if (arena != NULL) {
            ds_accel__allocator_stream_gone(arena);
        }
        if (!is_borrowed) {
            table->stream_destroy(handle);
        }
    }
}

void ds_accel_stream_destroy(ds_accel_stream_t *stream)
{
    struct ds_accel__stream *ours = (struct ds_accel__stream *)stream;

    if (ds_accel__handle_is_live(stream) && !ours->is_borrowed &&
        ds_accel__device_lets_end(ours->child.device, "stream_destroy")) {
        ds_accel__stream_destroy(ours);
    }
}

int32_t ds_accel_stream_priority_range(ds_accel_device_t *device, int32_t *least_out,
                                       int32_t *greatest_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (ds_accel__device_check(device, "stream_priority_range") == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (least_out == NULL || greatest_out == NULL) {
        return ds_accel__refuse("stream_priority_range", "output", NULL);
    }
    status = device->table->stream_priority_range(device->handle, least_out, greatest_out, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

int32_t ds_accel_stream_wait_stream(ds_accel_stream_t *stream, ds_accel_stream_t *other)
{
    struct ds_accel__stream *ours = ds_accel__stream_check(stream, "stream_wait_stream");
    struct ds_accel__stream *theirs = ds_accel__stream_check(other, "stream_wait_stream");
    ds_accel_event_t *event = NULL;
    int32_t status;

    if (ours == NULL || theirs == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = ds_accel_event_create(&theirs->child.device->abi, 0, &event);
    if (event == NULL) {
        return status;
    }
    status = ds_accel_event_record(event, other);
    if (status >= 0) {
        status = ds_accel_stream_wait_event(stream, event);
    }
    ds_accel_event_destroy(event);
    return status;
}

int32_t ds_accel_stream_wrap(ds_accel_device_t *device, uint64_t native,
                             ds_accel_stream_t **stream_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "stream_wrap");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel__stream *stream;
    void *handle = NULL;
    int32_t status;

    if (ours == NULL || stream_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("stream_wrap", "output", NULL);
    }
    ds_accel__captures_may_be_foreign(ours);
    status =
        device->table->native_wrap(device->handle, DS_ACCEL_NATIVE_STREAM, native, &handle, &error);
    if (status < 0) {
        return ds_accel__fail(status, &error);
    }
    stream = wrap(ours, handle, false);
    if (stream == NULL) {
        device->table->stream_destroy(handle);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    stream->is_wrapped = true;
    *stream_out = &stream->abi;
    return DS_ACCEL_OK;
}

int32_t ds_accel_stream_native(ds_accel_stream_t *stream, uint64_t *native_out)
{
    struct ds_accel__stream *ours = ds_accel__stream_check(stream, "stream_native");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint64_t offset_bytes;
    int32_t status;

    if (ours == NULL || native_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("stream_native", "output", NULL);
    }
    ds_accel__captures_may_be_foreign(ours->child.device);
    status = stream->table->native_get(ours->child.device->abi.handle, DS_ACCEL_NATIVE_STREAM,
                                       stream->handle, native_out, &offset_bytes, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}

ds_accel_device_t *ds_accel_stream_device(const ds_accel_stream_t *stream)
{
    return ds_accel__handle_is_live(stream)
               ? &((const struct ds_accel__stream *)stream)->child.device->abi
               : NULL;
}

int32_t ds_accel__stream_wait(struct ds_accel__stream *stream)
{
    int32_t status = ds_accel_stream_synchronize(&stream->abi);

    return status == DS_ACCEL_ERR_UNSUPPORTED
               ? ds_accel_device_synchronize(&stream->child.device->abi)
               : status;
}

int32_t ds_accel__stream_is_capturing(struct ds_accel__stream *stream, bool *is_capturing_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status =
        stream->abi.table->graph_capture_status(stream->abi.handle, &capturing, &error);

    if (status < 0 && status != DS_ACCEL_ERR_UNSUPPORTED) {
        return ds_accel__fail(status, &error);
    }
    *is_capturing_out = status >= 0 && capturing != DS_ACCEL_CAPTURING_NO;
    return DS_ACCEL_OK;
}

int32_t ds_accel_stream_is_capturing(ds_accel_stream_t *stream, uint32_t *capturing_out)
{
    struct ds_accel__stream *ours = ds_accel__stream_check(stream, "stream_is_capturing");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    if (capturing_out == NULL) {
        return ds_accel__refuse("stream_is_capturing", "output", NULL);
    }
    status = ds_accel__device_fork_check(ours->child.device);
    if (status < 0) {
        return status;
    }
    status = stream->table->graph_capture_status(stream->handle, &capturing, &error);
    if (status ==
        DS_ACCEL_ERR_UNSUPPORTED) { /* only captures that this library began are possible */
        struct ds_accel__arena *arena = __atomic_load_n(&ours->arena, __ATOMIC_ACQUIRE);

        capturing = arena != NULL && ds_accel__allocator_is_capturing(arena)
                        ? DS_ACCEL_CAPTURING_YES
                        : DS_ACCEL_CAPTURING_NO;
        status = DS_ACCEL_OK;
    }
    if (status < 0) {
        return ds_accel__fail(status, &error);
    }
    *capturing_out = capturing;
    return DS_ACCEL_OK;
}

/* ---- the current stream --------------------------------------------------------------------- */

/* A thread's current stream on one device. Device and stream are identified by their ids, because
 * ids are never reused. */
struct choice {
    uint64_t device_id;
    struct ds_accel__stream *stream;
    uint64_t stream_id;
};

struct choices {
    size_t count;
    struct choice items[];
};

/* the key's destructor frees a thread's choices when the thread exits */
static pthread_key_t choices_key;
static pthread_once_t choices_once = PTHREAD_ONCE_INIT;
static int choices_problem;
static _Thread_local struct choices *choices;

static void make_key(void)
{
    choices_problem = pthread_key_create(&choices_key, free);
}

static struct choice *find_choice(uint64_t device_id)
{
    for (size_t i = 0; choices != NULL && i < choices->count; i++) {
        if (choices->items[i].device_id == device_id) {
            return &choices->items[i];
        }
    }
    return NULL;
}

/* Whether the stream still exists. The memory of destroyed handles stays readable. */
static bool has_stream(const struct choice *choice)
{
    return __atomic_load_n(&choice->stream->child.id, __ATOMIC_RELAXED) == choice->stream_id;
}

/* Find an entry whose stream was destroyed, perhaps with its device. */
static struct choice *find_stale_choice(void)
{
    for (size_t i = 0; choices != NULL && i < choices->count; i++) {
        if (!has_stream(&choices->items[i])) {
            return &choices->items[i];
        }
    }
    return NULL;
}

/* Return the calling thread's entry for the device: the existing entry, else an entry without a
 * stream, else a new entry. The caller sets the entry's stream. NULL: out of memory. */
static struct choice *take_choice(uint64_t device_id)
{
    struct choice *choice = find_choice(device_id);
    size_t count = choices != NULL ? choices->count : 0;
    struct choices *larger;

    choice = choice != NULL ? choice : find_stale_choice();
    if (choice != NULL) {
        choice->device_id = device_id;
        return choice;
    }
    pthread_once(&choices_once, make_key);
    larger = choices_problem == 0
                 ? realloc(choices, sizeof(*larger) + (count + 1) * sizeof(*choice))
                 : NULL;
    if (larger == NULL) {
        ds_accel__no_memory();
        return NULL;
    }
    choices = larger;
    pthread_setspecific(choices_key, larger);
    larger->count = count + 1;
    larger->items[count] = (struct choice){.device_id = device_id};
    return &larger->items[count];
}

/* Find the handle of the stream that the vendor's runtime reports as current, or make a borrowed
 * handle for it. */
static int32_t find_theirs(struct ds_accel__device *device, ds_accel_plugin_stream_t *handle,
                           struct ds_accel__stream **stream_out)
{
    struct ds_accel__stream *found = NULL;

    pthread_mutex_lock(&device->lock);
    for (struct ds_accel__child *child = device->children; child != NULL && found == NULL;
         child = child->next) {
        if (child->kind == DS_ACCEL__HANDLE_STREAM) {
            struct ds_accel__stream *stream = ds_accel__child_handle(child);

            found = stream->abi.handle == handle ? stream : NULL;
        }
    }
    pthread_mutex_unlock(&device->lock);
    if (found == NULL) {
        found = wrap(device, handle, true);
    }
    *stream_out = found;
    return found != NULL ? DS_ACCEL_OK : DS_ACCEL_ERR_NO_MEMORY;
}

static int32_t get_current(struct ds_accel__device *device, struct ds_accel__stream **stream_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_stream_t *handle = NULL;
    const struct choice *choice;
    int32_t status = device->abi.table->stream_get_current(device->abi.handle, &handle, &error);

    if (status >= 0) {
        return find_theirs(device, handle, stream_out);
    }
    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        return ds_accel__fail(status, &error);
    }
    choice = find_choice(device->child.id);
    if (choice != NULL && has_stream(choice)) {
        *stream_out = choice->stream;
        return DS_ACCEL_OK;
    }
    return get_default(device, stream_out);
}

struct ds_accel__stream *ds_accel__stream_of(struct ds_accel__device *device,
                                             ds_accel_stream_t *stream, const char *call)
{
    struct ds_accel__stream *ours = NULL;

    if (stream == NULL) {
        return get_current(device, &ours) < 0 ? NULL : ours;
    }
    ours = ds_accel__stream_check(stream, call);
    if (ours != NULL && ours->child.device != device) {
        ds_accel__error(DS_ACCEL_ERR_INVALID, "%s: the stream is of device %u, not %u", call,
                        ours->child.device->index, device->index);
        return NULL;
    }
    return ours;
}

int32_t ds_accel_default_stream(ds_accel_device_t *device, ds_accel_stream_t **stream_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "default_stream");
    struct ds_accel__stream *stream = NULL;
    int32_t status;

    if (ours == NULL || stream_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("default_stream", "output", NULL);
    }
    status = ds_accel__device_fork_check(ours);
    status = status < 0 ? status : get_default(ours, &stream);
    if (status >= 0) {
        *stream_out = &stream->abi;
    }
    return status;
}

int32_t ds_accel_current_stream(ds_accel_device_t *device, ds_accel_stream_t **stream_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "current_stream");
    struct ds_accel__stream *stream = NULL;
    int32_t status;

    if (ours == NULL || stream_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("current_stream", "output", NULL);
    }
    status = ds_accel__device_fork_check(ours);
    status = status < 0 ? status : get_current(ours, &stream);
    if (status >= 0) {
        *stream_out = &stream->abi;
    }
    return status;
}

int32_t ds_accel_set_current_stream(ds_accel_stream_t *stream)
{
    struct ds_accel__stream *ours = ds_accel__stream_check(stream, "set_current_stream");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct choice *choice;
    int32_t status;

    if (ours == NULL) {
        return DS_ACCEL_ERR_INVALID;
    }
    status = stream->table->stream_set_current(stream->handle, &error);
    if (status != DS_ACCEL_ERR_UNSUPPORTED) {
        return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
    }
    choice = take_choice(ours->child.device->child.id);
    if (choice == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    choice->stream = ours;
    choice->stream_id = ours->child.id;
    return DS_ACCEL_OK;
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t ds_accel_event_create(ds_accel_device_t *device, uint32_t flags,
                              ds_accel_event_t **event_out)
{
    struct ds_accel__device *ours = ds_accel__device_check(device, "event_create");
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t *handle = NULL;
    struct ds_accel__event *event;
    int32_t status;

    if (ours == NULL || event_out == NULL) {
        return ours == NULL ? DS_ACCEL_ERR_INVALID
                            : ds_accel__refuse("event_create", "output", NULL);
    }
    status = device->table->event_create(device->handle, flags, &handle, &error);
    if (status == DS_ACCEL_OK && handle == NULL) {
        status = DS_ACCEL_ERR_ABI;
    }
    if (status != DS_ACCEL_OK) {
        return ds_accel__fail(status > 0 ? DS_ACCEL_ERR_ABI : status, &error);
    }
    event = ds_accel__handle_take(DS_ACCEL__HANDLE_EVENT, ours);
    if (event == NULL) {
        device->table->event_destroy(handle);
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    event->abi.table = device->table;
    event->abi.handle = handle;
    ds_accel__child_add(&event->child);
    *event_out = &event->abi;
    return DS_ACCEL_OK;
}

void ds_accel__event_destroy(struct ds_accel__event *event)
{
    const struct ds_accel_plugin *table = event->abi.table;
    ds_accel_plugin_event_t *handle = event->abi.handle;

    if (ds_accel__child_remove(&event->child)) {
        ds_accel__handle_put(DS_ACCEL__HANDLE_EVENT, event);
        table->event_destroy(handle);
    }
}

void ds_accel_event_destroy(ds_accel_event_t *event)
{
    if (ds_accel__handle_is_live(event) &&
        ds_accel__device_lets_end(((struct ds_accel__event *)event)->child.device,
                                  "event_destroy")) {
        ds_accel__event_destroy((struct ds_accel__event *)event);
    }
}

int32_t ds_accel_event_elapsed_ms(ds_accel_event_t *start, ds_accel_event_t *end,
                                  double *elapsed_ms_out)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    if (!ds_accel__handle_is_live(start) || !ds_accel__handle_is_live(end)) {
        return ds_accel__refuse("event_elapsed_ms", "event",
                                ds_accel__handle_is_live(start) ? end : start);
    }
    if (elapsed_ms_out == NULL || start->table != end->table) {
        return ds_accel__refuse("event_elapsed_ms", elapsed_ms_out == NULL ? "output" : "event",
                                elapsed_ms_out == NULL ? NULL : end);
    }
    status = start->table->event_elapsed_ms(start->handle, end->handle, elapsed_ms_out, &error);
    return status < 0 ? ds_accel__fail(status, &error) : DS_ACCEL_OK;
}
