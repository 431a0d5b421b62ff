/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Which streams still use freed blocks of pinned memory.
 *
 * A copy is passed directly to the plugin, which does not report the memory used by a stream's
 * queued work. A free therefore records an event in every stream of the context that may have work,
 * on the device of the pool and on all other open devices; an idle device needs no event. A later
 * request that finds no ready block queries the events. No event can show the end of the work if
 * the stream was destroyed with work left, if it is being captured, or if the runtime has no
 * events. The block is then reused only after the stream's device has been idle. A query of the
 * device does not cover a stream of the program whose wrapping handle was destroyed: an event marks
 * the end of that stream's work, and all blocks freed later wait for this event.
 *
 * While any context of this process captures, only events are queried, not streams and devices,
 * because queries of events do not break a capture.
 *
 * Locks are taken in this order: a pool's lock; open_lock; a device's lock, which prevents the
 * destruction of its streams; the gate of captures.c. All queries bypass the layers, because they
 * create no ordering for the program.
 */
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/layers.h"
#include "runtime/caching.h"
#include "runtime/handle.h"
#include "runtime/pinned.h"

#include <assert.h>
#include <stdlib.h>

/* Guards the list of open devices. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ds_accel__device *all_open;

static const struct ds_accel_plugin *table_of(const struct ds_accel__device *device)
{
    return ds_accel__layers_below(device->candidate);
}

/* ---- events --------------------------------------------------------------------------------- */

/* Take a spare event or create one; NULL: no event can be created. Only the pool's own device has
 * spare events. */
static ds_accel_plugin_event_t *take_event(struct ds_accel__pinned *pool,
                                           const struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t *event = NULL;

    if (device == pool->device) {
        ds_accel_plugin_event_t **larger;

        if (pool->event_count > 0) {
            return pool->events[--pool->event_count];
        }
        larger = realloc(pool->events, (pool->events_made + 1) * sizeof(ds_accel_plugin_event_t *));
        if (larger == NULL) {
            return NULL;
        }
        pool->events = larger;
    }
    if (table_of(device)->event_create(device->abi.handle, 0, &event, &error) != DS_ACCEL_OK) {
        return NULL;
    }
    pool->events_made += event != NULL && device == pool->device;
    return event;
}

static void put_event(struct ds_accel__pinned *pool, const struct ds_accel__device *device,
                      ds_accel_plugin_event_t *event)
{
    if (device == pool->device) {
        assert(event != NULL && pool->event_count < pool->events_made);
        pool->events[pool->event_count++] = event;
    } else if (event != NULL) {
        table_of(device)->event_destroy(event);
    }
}

/* ---- streams: the caller holds their device's lock ------------------------------------------ */

/* Whether the stream captures, in which case an event recorded on it would become a part of the
 * graph. A stream that cannot be queried because another stream captures counts as capturing. */
static bool is_capturing(const struct ds_accel__stream *stream)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    int32_t status = table_of(stream->child.device)
                         ->graph_capture_status(stream->abi.handle, &capturing, &error);

    return status == DS_ACCEL_OK ? capturing != DS_ACCEL_CAPTURING_NO
                                 : status != DS_ACCEL_ERR_UNSUPPORTED;
}

static bool has_capture(const struct ds_accel__device *device)
{
    for (const struct ds_accel__child *child = device->children; child != NULL;
         child = child->next) {
        if (child->kind == DS_ACCEL__HANDLE_STREAM && is_capturing(ds_accel__child_handle(child))) {
            return true;
        }
    }
    return false;
}

/* Whether the device has no queued work. True also if the runtime lacks this query, because such a
 * runtime has no work to wait for. Needs no lock. */
static bool has_nothing_queued(const struct ds_accel__device *device)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = table_of(device)->device_synchronize(device->abi.handle, 0, &error);

    return status == DS_ACCEL_OK || status == DS_ACCEL_ERR_UNSUPPORTED;
}

/* Whether the events of all of the device's ends with numbers up to the given number are reached.
 * Removes the reached ends from the list. */
static bool are_reached(struct ds_accel__device *device, uint64_t number)
{
    struct ds_accel__pinned_end **place = &device->ends;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    bool are = true;

    while (*place != NULL) {
        struct ds_accel__pinned_end *end = *place;

        if (end->number > number) {
            place = &end->next;
        } else if (table_of(device)->event_query(end->event, &error) == DS_ACCEL_OK) {
            *place = end->next;
            table_of(device)->event_destroy(end->event);
            free(end);
        } else {
            are = false;
            place = &end->next;
        }
    }
    return are;
}

/* Whether a query shows that the device is idle; if so, clear has_ended_work. False without a query
 * if may_ask is false, which means that a capture is in progress that a query would break. */
static bool is_idle(struct ds_accel__device *device, bool may_ask)
{
    if (!may_ask || !are_reached(device, UINT64_MAX) || has_capture(device) ||
        !has_nothing_queued(device)) {
        return false;
    }
    device->has_ended_work = false;
    return true;
}

/* Record an event after the stream's current work; NULL: no event can be recorded. */
static ds_accel_plugin_event_t *mark(struct ds_accel__pinned *pool,
                                     const struct ds_accel__stream *stream)
{
    const struct ds_accel__device *device = stream->child.device;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_event_t *event = is_capturing(stream) ? NULL : take_event(pool, device);

    if (event != NULL &&
        table_of(device)->event_record(event, stream->abi.handle, &error) != DS_ACCEL_OK) {
        put_event(pool, device, event);
        event = NULL;
    }
    return event;
}

/* Record an event at the end of a stream's work and add it to the device's list of ends. False: no
 * event can be created or recorded, or memory is exhausted. */
static bool add_end(struct ds_accel__device *device, const struct ds_accel__stream *stream)
{
    struct ds_accel__pinned_end *end = calloc(1, sizeof(*end));
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (end == NULL) {
        return false;
    }
    if (table_of(device)->event_create(device->abi.handle, 0, &end->event, &error) != DS_ACCEL_OK) {
        free(end);
        return false;
    }
    if (table_of(device)->event_record(end->event, stream->abi.handle, &error) != DS_ACCEL_OK) {
        table_of(device)->event_destroy(end->event);
        free(end);
        return false;
    }
    end->next = device->ends;
    end->number = end->next != NULL ? end->next->number + 1 : 1;
    device->ends = end;
    return true;
}

/* Note that a stream is about to be destroyed while it has queued work. Does nothing if a query,
 * which requires may_ask, shows that the stream has none. Captured work of a wrapped stream does
 * not count. If the end of a wrapped stream's work cannot be recorded, wait for the stream. The
 * caller holds the gate of captures.c. */
static void note_end(struct ds_accel__device *device, const struct ds_accel__stream *stream,
                     bool may_ask)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    const bool captures = is_capturing(stream);

    if (!captures && may_ask &&
        table_of(device)->stream_query(stream->abi.handle, &error) == DS_ACCEL_OK) {
        return;
    }
    if (!stream->is_wrapped) {
        device->has_ended_work = true;
    } else if (!captures && !add_end(device, stream)) {
        table_of(device)->stream_synchronize(stream->abi.handle, UINT64_MAX, &error);
    }
}

void ds_accel__pinned_stream_ends(struct ds_accel__device *device,
                                  const struct ds_accel__stream *stream)
{
    if (stream->is_wrapped || !device->has_ended_work) {
        note_end(device, stream, ds_accel__captures_hold() && !has_capture(device));
        ds_accel__captures_release();
    }
}

/* ---- uses: the caller holds the pool's lock ------------------------------------------------- */

static struct ds_accel__pinned_use *find_use(struct ds_accel__pinned_block *block,
                                             const struct ds_accel__stream *stream)
{
    const uint64_t id = stream->child.id;

    for (uint32_t i = 0; i < block->use_count; i++) {
        if (block->uses[i].stream == stream && block->uses[i].stream_id == id) {
            return &block->uses[i];
        }
    }
    return NULL;
}

/* Add a use to the block; NULL: out of memory. */
static struct ds_accel__pinned_use *add_use(struct ds_accel__pinned_block *block,
                                            struct ds_accel__device *device,
                                            struct ds_accel__stream *stream)
{
    struct ds_accel__pinned_use *use;

    if (block->use_count == block->use_capacity) {
        uint32_t capacity = block->use_capacity > 0 ? block->use_capacity * 2 : 2;
        struct ds_accel__pinned_use *larger = realloc(block->uses, capacity * sizeof(*larger));

        if (larger == NULL) {
            return NULL;
        }
        block->uses = larger;
        block->use_capacity = capacity;
    }
    assert(block->use_count < block->use_capacity);
    use = &block->uses[block->use_count++];
    *use = (struct ds_accel__pinned_use){
        .device = device,
        .stream = stream,
        .stream_id = stream != NULL ? stream->child.id : 0,
    };
    return use;
}

int32_t ds_accel__pinned_use(struct ds_accel__pinned_block *block, struct ds_accel__stream *stream)
{
    if (find_use(block, stream) != NULL || add_use(block, stream->child.device, stream) != NULL) {
        return DS_ACCEL_OK;
    }
    return ds_accel__no_memory();
}

static void drop_use(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                     uint32_t number)
{
    const struct ds_accel__pinned_use *use = &block->uses[number];

    assert(number < block->use_count);
    if (use->event != NULL) {
        put_event(pool, use->device, use->event);
    }
    block->uses[number] = block->uses[--block->use_count];
}

static void drop_uses_of(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                         const struct ds_accel__device *device)
{
    for (uint32_t i = block->use_count; i > 0; i--) {
        if (block->uses[i - 1].device == device) {
            drop_use(pool, block, i - 1);
        }
    }
}

void ds_accel__pinned_unmark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block)
{
    while (block->use_count > 0) {
        drop_use(pool, block, block->use_count - 1);
    }
}

/* Mark the end of the work of a device's streams. are_known true: only of the streams that are
 * recorded as users of the block; false: only of the other streams. may_ask: skip streams that
 * stream_query() reports as idle. */
static void mark_streams(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                         struct ds_accel__device *device, bool are_known, bool may_ask)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (const struct ds_accel__child *child = device->children; child != NULL;
         child = child->next) {
        struct ds_accel__stream *stream;
        struct ds_accel__pinned_use *use;

        if (child->kind != DS_ACCEL__HANDLE_STREAM) {
            continue;
        }
        stream = ds_accel__child_handle(child);
        use = find_use(block, stream);
        if ((use != NULL) != are_known ||
            (may_ask &&
             table_of(device)->stream_query(stream->abi.handle, &error) == DS_ACCEL_OK)) {
            continue;
        }
        use = use != NULL ? use : add_use(block, device, stream);
        if (use != NULL) {
            use->event = mark(pool, stream);
        } else {
            block->needs_idle = true;
        }
    }
}

/* Add uses to the block for the work of destroyed streams: for all streams destroyed with work
 * left, and for the latest end of a wrapped stream. */
static void mark_ended(struct ds_accel__pinned_block *block, struct ds_accel__device *device)
{
    if (device->has_ended_work && add_use(block, device, NULL) == NULL) {
        block->needs_idle = true;
    }
    if (device->ends != NULL) {
        struct ds_accel__pinned_use *use = add_use(block, device, NULL);

        if (use != NULL) {
            use->end = device->ends->number;
        } else {
            block->needs_idle = true;
        }
    }
}

/* Mark the end of all work that one device may have queued. is_foreign: another library captures,
 * so only events are queried. The caller holds the device's lock. */
static void mark_device(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block,
                        struct ds_accel__device *device, bool is_foreign)
{
    const bool may_ask = ds_accel__captures_hold() && !is_foreign;

    mark_streams(pool, block, device, true, false);
    if (!is_idle(device, may_ask)) {
        mark_streams(pool, block, device, false, may_ask && !has_capture(device));
        mark_ended(block, device);
    }
    ds_accel__captures_release();
}

/* Whether no stream can still use the memory. This is the fast path of a free, which needs only the
 * pool's lock. With one open device and no capture, one query shows that no work is queued. Work
 * that another thread queues meanwhile comes after the free. The fast path is not taken if the
 * device has a wrapped stream, on which another library may capture. */
static bool is_surely_idle(const struct ds_accel__pinned *pool)
{
    const struct ds_accel__device *device = pool->device;
    bool is_idle;

    if (__atomic_load_n(&device->context->open_device_count, __ATOMIC_SEQ_CST) != 1 ||
        !ds_accel__captures_try_hold()) {
        return false;
    }
    is_idle = has_nothing_queued(device);
    ds_accel__captures_release();
    return is_idle;
}

/* Whether another library captures on a stream that it shares with a context. The caller holds
 * open_lock. */
static bool has_foreign_capture(void)
{
    bool has = false;

    for (struct ds_accel__device *device = ds_accel__captures_are_foreign() ? all_open : NULL;
         device != NULL && !has; device = device->next_open) {
        if (__atomic_load_n(&device->may_capture, __ATOMIC_SEQ_CST) != 0) {
            pthread_mutex_lock(&device->lock);
            has = has_capture(device);
            pthread_mutex_unlock(&device->lock);
        }
    }
    return has;
}

void ds_accel__pinned_mark(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block)
{
    bool is_foreign;

    if (block->use_count == 0 && is_surely_idle(pool)) {
        return;
    }
    pthread_mutex_lock(&open_lock);
    is_foreign = has_foreign_capture();
    for (struct ds_accel__device *device = all_open; device != NULL; device = device->next_open) {
        if (device->context == pool->device->context) {
            pthread_mutex_lock(&device->lock);
            mark_device(pool, block, device, is_foreign);
            pthread_mutex_unlock(&device->lock);
        }
    }
    pthread_mutex_unlock(&open_lock);
}

/* Whether a device is idle. The caller holds open_lock. */
static bool is_idle_now(struct ds_accel__device *device, bool may_ask)
{
    bool is;

    pthread_mutex_lock(&device->lock);
    may_ask = ds_accel__captures_hold() && may_ask;
    is = is_idle(device, may_ask);
    ds_accel__captures_release();
    pthread_mutex_unlock(&device->lock);
    return is;
}

static bool was_idle(struct ds_accel__device *device)
{
    bool was;

    pthread_mutex_lock(&open_lock);
    was = is_idle_now(device, !has_foreign_capture());
    pthread_mutex_unlock(&open_lock);
    return was;
}

/* Whether all open devices of the context are idle. */
static bool were_all_idle(const ds_accel_t *context)
{
    bool may_ask;
    bool were = true;

    pthread_mutex_lock(&open_lock);
    may_ask = !has_foreign_capture();
    for (struct ds_accel__device *device = all_open; device != NULL && were;
         device = device->next_open) {
        were = device->context != context || is_idle_now(device, may_ask);
    }
    pthread_mutex_unlock(&open_lock);
    return were;
}

static bool has_ended(struct ds_accel__device *device, uint64_t number)
{
    bool has;

    pthread_mutex_lock(&device->lock);
    has = are_reached(device, number);
    pthread_mutex_unlock(&device->lock);
    return has;
}

/* Whether the use has ended: query its event; without an event, the ends up to its end number;
 * without both, whether its device has become idle. */
static bool is_over(const struct ds_accel__pinned_use *use)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    if (use->event != NULL) {
        return table_of(use->device)->event_query(use->event, &error) == DS_ACCEL_OK;
    }
    return use->end != 0 ? has_ended(use->device, use->end) : was_idle(use->device);
}

bool ds_accel__pinned_is_done(struct ds_accel__pinned *pool, struct ds_accel__pinned_block *block)
{
    if (block->needs_idle && !were_all_idle(pool->device->context)) {
        return false;
    }
    block->needs_idle = false;
    while (block->use_count > 0) {
        if (!is_over(&block->uses[block->use_count - 1])) {
            return false;
        }
        drop_use(pool, block, block->use_count - 1);
    }
    return true;
}

/* ---- devices -------------------------------------------------------------------------------- */

void ds_accel__pinned_attach(struct ds_accel__device *device)
{
    device->has_ended_work = false;
    device->may_capture = 0;
    device->ends = NULL;
    ds_accel__fork_hook(ds_accel__captures_renew);
    ds_accel__fork_hook(ds_accel__pinned_renew);
    pthread_mutex_lock(&open_lock);
    device->next_open = all_open;
    all_open = device;
    __atomic_add_fetch(&device->context->open_device_count, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&open_lock);
}

/* Remove all entries of the device's list of ends; if waits is true, first wait until their events
 * are reached. */
static void drop_ends(struct ds_accel__device *device, bool waits)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    pthread_mutex_lock(&device->lock);
    while (device->ends != NULL) {
        struct ds_accel__pinned_end *end = device->ends;

        device->ends = end->next;
        if (waits) {
            table_of(device)->event_synchronize(end->event, UINT64_MAX, &error);
        }
        table_of(device)->event_destroy(end->event);
        free(end);
    }
    pthread_mutex_unlock(&device->lock);
}

/* Wait for the device's work that uses blocks of this pool, and remove its uses. A block with
 * needs_idle may be used by any device. */
static void purge(struct ds_accel__pinned *pool, struct ds_accel__device *device)
{
    const struct ds_accel_plugin *table = table_of(device);
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < pool->bucket_count; i++) {
        for (struct ds_accel__pinned_block *block = pool->buckets[i]; block != NULL;
             block = block->next_in_bucket) {
            bool is_used = block->needs_idle;

            for (uint32_t use = 0; use < block->use_count; use++) {
                is_used = is_used || block->uses[use].device == device;
            }
            if (is_used) {
                table->device_synchronize(device->abi.handle, UINT64_MAX, &error);
                drop_ends(device, true);
                drop_uses_of(pool, block, device);
            }
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

/* purge() in the pools of the context's other devices. */
static void purge_others(struct ds_accel__device *device)
{
    const ds_accel_t *context = device->context;

    for (uint32_t i = 0; i < context->device_count && context->devices != NULL; i++) {
        struct ds_accel__device *other = context->devices[i];

        if (other != NULL && other != device && other->pinned != NULL) {
            purge(other->pinned, device);
        }
    }
}

void ds_accel__pinned_detach(struct ds_accel__device *device)
{
    struct ds_accel__device **place = &all_open;

    /* Before the device leaves the list, because blocks with needs_idle do not wait for it then;
     * afterwards again, because other threads may free blocks until then. */
    purge_others(device);
    pthread_mutex_lock(&open_lock);
    while (*place != device) {
        assert(*place != NULL);
        place = &(*place)->next_open;
    }
    *place = device->next_open;
    assert(__atomic_load_n(&device->context->open_device_count, __ATOMIC_SEQ_CST) > 0);
    __atomic_sub_fetch(&device->context->open_device_count, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&open_lock);
    purge_others(device);
    drop_ends(device, device->pinned != NULL && (device->pinned->waiting != NULL ||
                                                 device->pinned->stats.allocated_bytes > 0));
    ds_accel__captures_forget(device);
}

/* Forget the open devices in a forked child: it does not close devices that the parent opened, and
 * their contexts may not exist any more. */
void ds_accel__pinned_renew(void)
{
    pthread_mutex_init(&open_lock, NULL);
    all_open = NULL;
}
