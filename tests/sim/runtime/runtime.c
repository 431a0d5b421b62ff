/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEVICES_MAX 64
#define STUCK_MAX 64

static struct {
    pthread_once_t once;
    uint32_t physical[DEVICES_MAX]; /* physical number of each visible device */
    uint32_t count;
    pthread_mutex_t lock; /* guards the default streams and the peers */
    struct sim_stream *defaults[DEVICES_MAX];
    bool peers[DEVICES_MAX][DEVICES_MAX];
} state = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int current_device;
static _Thread_local int last_error;
static _Thread_local int thread_mode;

/* ---- visible devices ------------------------------------------------------------------------ */

/* Lists whole devices in the vendor's order; a device with parts is replaced by its parts. */
static uint32_t list_devices(uint32_t *list)
{
    uint32_t order[DEVICES_MAX];
    uint32_t total = sim_device_count(rt_vendor.name);
    uint32_t whole = sim_order(NULL, rt_vendor.order, order, DEVICES_MAX);
    uint32_t count = 0;

    for (uint32_t i = 0; i < whole; i++) {
        if (!sim_device_at(order[i])->is_partitioned) {
            list[count++] = order[i];
            continue;
        }
        for (uint32_t j = 0; j < total && count < DEVICES_MAX; j++) {
            if (sim_device_at(j)->parent == (int32_t)order[i]) {
                list[count++] = j;
            }
        }
    }
    return count;
}

/*
 * Returns the index in the list of the device that a token selects, by number or by the start of a
 * UUID; -1: none.
 */
static int find_token(const char *token, const uint32_t *list, uint32_t count)
{
    char *end;
    unsigned long number = strtoul(token, &end, 10);

    if (token[0] >= '0' && token[0] <= '9' && *end == '\0') {
        return number < count ? (int)number : -1;
    }
    for (uint32_t i = 0; i < count && strlen(token) > 4; i++) {
        if (strncasecmp(sim_device_at(list[i])->uuid_text, token, strlen(token)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_among(const uint32_t *list, uint32_t count, uint32_t physical)
{
    uint32_t i = 0;

    while (i < count && list[i] != physical) {
        i++;
    }
    return i < count;
}

/* Applies a variable to the list, which then contains the visible devices. A token that selects no
 * device ends the variable. */
static uint32_t apply_variable(const char *value, bool skips_repeats, uint32_t *list,
                               uint32_t count)
{
    uint32_t left[DEVICES_MAX];
    uint32_t left_count = 0;
    char *copy = strdup(value);
    char *save;

    if (copy == NULL) {
        sim_misuse("the simulator itself has no memory for a list of devices");
    }
    for (char *token = strtok_r(copy, ", ", &save); token != NULL;
         token = strtok_r(NULL, ", ", &save)) {
        int at = find_token(token, list, count);

        if (at < 0 || left_count == DEVICES_MAX) {
            break;
        }
        if (!is_among(left, left_count, list[at])) {
            left[left_count++] = list[at];
        } else if (!skips_repeats) {
            break;
        }
    }
    free(copy);
    memcpy(list, left, left_count * sizeof(*list));
    return left_count;
}

static void read_devices(void)
{
    state.count = list_devices(state.physical);
    for (size_t i = 0; rt_vendor.visible[i] != NULL; i++) {
        const char *value = getenv(rt_vendor.visible[i]);

        if (rt_vendor.visible[i + 1] == NULL && rt_vendor.alternative != NULL) {
            if (value == NULL || value[0] == '\0') {
                value = getenv(rt_vendor.alternative);
            }
            if (value != NULL && value[0] == '\0') {
                value = NULL;
            }
        }
        if (value != NULL) {
            state.count =
                apply_variable(value, rt_vendor.skips_repeats && rt_vendor.visible[i + 1] == NULL,
                               state.physical, state.count);
        }
    }
}

struct sim_device *rt_device(int index)
{
    pthread_once(&state.once, read_devices);
    return index >= 0 && (uint32_t)index < state.count ? sim_device_at(state.physical[index])
                                                       : NULL;
}

int rt_count(int *count_out)
{
    pthread_once(&state.once, read_devices);
    *count_out = (int)state.count;
    return state.count > 0 ? 0 : rt_vendor.no_device;
}

int rt_set_device(int index)
{
    if (rt_device(index) == NULL) {
        return state.count == 0 ? rt_vendor.no_device : rt_vendor.invalid_device;
    }
    current_device = index;
    return 0;
}

int rt_get_device(int *index_out)
{
    *index_out = current_device;
    return rt_device(current_device) != NULL ? 0 : rt_vendor.no_device;
}

uint32_t rt_current(void)
{
    return rt_device(current_device)->physical;
}

/* ---- the start of every call ---------------------------------------------------------------- */

int rt_result(int code)
{
    if (code != 0) {
        last_error = code;
    }
    return code;
}

int rt_last_error(bool clears)
{
    int code = last_error;

    last_error = clears ? 0 : code;
    return code;
}

/* The vendor's fact "lost_code": once a device is lost, every call on any device returns it. */
static int lost_code(void)
{
    int code = (int)sim_vendor_number("lost_code", 0);

    for (uint32_t i = 0; code != 0 && i < state.count; i++) {
        if (sim_is_lost(state.physical[i])) {
            return code;
        }
    }
    return 0;
}

int rt_enter(const char *call, bool needs_device)
{
    int code = (int)sim_enter(call);

    if (code == 0) {
        code = lost_code();
    }
    if (code == 0 && needs_device) {
        const struct sim_device *device = rt_device(current_device);

        code = device == NULL                  ? rt_vendor.no_device
               : sim_is_lost(device->physical) ? rt_vendor.lost
                                               : 0;
    }
    return rt_result(code);
}

/*
 * For a call that a capture cannot contain: breaks captures of strict modes, unless the thread is
 * relaxed.
 */
static int forbid(void)
{
    if (thread_mode == 2 || !sim_capture_is_strict()) {
        return 0;
    }
    for (uint32_t i = 0; i < state.count; i++) {
        if (rt_vendor.is_hip || state.physical[i] == rt_current()) {
            sim_capture_forbid(state.physical[i]);
        }
    }
    return rt_vendor.capture_unsupported;
}

/* HIP's device wait breaks every capture of the process: of any mode, thread and device. */
static int break_all(void)
{
    bool is_any = false;

    for (uint32_t i = 0; i < state.count; i++) {
        is_any = sim_capture_break_all(state.physical[i]) || is_any;
    }
    return is_any ? rt_vendor.capture_unsupported : 0;
}

int rt_device_synchronize(void)
{
    int code = rt_vendor.is_hip ? break_all() : forbid();

    if (code != 0) {
        return code;
    }
    return sim_device_synchronize(rt_current()) == 0 ? 0 : rt_vendor.lost;
}

/* ---- peers ---------------------------------------------------------------------------------- */

int rt_can_access_peer(int *can_out, int index, int peer)
{
    if (rt_device(index) == NULL || rt_device(peer) == NULL) {
        return rt_vendor.invalid_device;
    }
    *can_out = index != peer && sim_vendor_number("peer", 1) != 0;
    return 0;
}

static int change_peer(int peer, bool enables)
{
    int can = 0;
    int code = rt_can_access_peer(&can, current_device, peer);
    bool *is_enabled = &state.peers[current_device][peer >= 0 && peer < DEVICES_MAX ? peer : 0];

    if (code != 0 || !can) {
        return code != 0 ? code : rt_vendor.peer_unsupported;
    }
    pthread_mutex_lock(&state.lock);
    if (*is_enabled == enables) {
        code = enables ? rt_vendor.peer_enabled : rt_vendor.peer_not_enabled;
    }
    *is_enabled = enables;
    pthread_mutex_unlock(&state.lock);
    return code;
}

int rt_enable_peer(int peer)
{
    return change_peer(peer, true);
}

int rt_disable_peer(int peer)
{
    return change_peer(peer, false);
}

/* ---- streams -------------------------------------------------------------------------------- */

static struct sim_stream *default_stream(uint32_t physical)
{
    pthread_mutex_lock(&state.lock);
    if (state.defaults[physical] == NULL) {
        state.defaults[physical] = sim_stream_create(physical, SIM_STREAM_DEFAULT, 0);
    }
    pthread_mutex_unlock(&state.lock);
    return state.defaults[physical];
}

/* Returns the handle's stream; NULL is the current device's default stream. */
static struct sim_stream *stream_of(void *stream, const char *call)
{
    if (stream == NULL) {
        return default_stream(rt_current());
    }
    sim_handle_check(stream, "stream", call);
    return stream;
}

/*
 * Returns true for the default stream while a stream that it waits for captures: it cannot be used
 * then.
 */
static bool is_implicit(const void *stream)
{
    return stream == NULL && sim_capture_is_blocking(rt_current());
}

/* ---- HIP: streams whose capture is over, but failed ------------------------------------------ */

/* Such a stream counts as capturing until another capture of it ends well: work on it fails. */
enum stuck {
    STUCK_NOT,
    STUCK_ACTIVE,
    STUCK_BROKEN
};
static struct {
    const void *stream;
    enum stuck stuck;
} stuck[STUCK_MAX]; /* guarded by state.lock */

static enum stuck stuck_of(const void *stream)
{
    enum stuck found = STUCK_NOT;

    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < STUCK_MAX; i++) {
        found = stuck[i].stream == stream && stuck[i].stuck != STUCK_NOT ? stuck[i].stuck : found;
    }
    pthread_mutex_unlock(&state.lock);
    return found;
}

static void set_stuck(const void *stream, enum stuck value)
{
    int place = -1;

    pthread_mutex_lock(&state.lock);
    for (int i = 0; i < STUCK_MAX; i++) {
        if (stuck[i].stream == stream || (place < 0 && stuck[i].stuck == STUCK_NOT)) {
            place = i;
        }
    }
    if (place >= 0) {
        stuck[place].stream = stream;
        stuck[place].stuck = value;
    }
    pthread_mutex_unlock(&state.lock);
}

static int check_implicit(const void *stream)
{
    if (rt_vendor.is_hip) { /* the default stream is checked by hipStreamIsCapturing() alone */
        return stuck_of(stream) == STUCK_NOT ? 0 : rt_vendor.capture_invalidated;
    }
    if (!is_implicit(stream)) {
        return 0;
    }
    sim_capture_forbid(rt_current());
    return rt_vendor.capture_implicit;
}

/* Returns the code for an engine's -1 on the stream. */
static int failure_of(struct sim_stream *stream)
{
    if (sim_is_lost(sim_stream_physical(stream))) {
        return rt_vendor.lost;
    }
    return sim_capture_status(stream) != SIM_CAPTURE_NONE ? rt_vendor.capture_invalidated
                                                          : rt_vendor.lost;
}

static int outcome(struct sim_stream *stream, int result)
{
    return result == 0 ? 0 : result > 0 ? rt_vendor.not_ready : failure_of(stream);
}

int rt_stream_create(void **stream_out, bool is_non_blocking, int priority)
{
    struct sim_stream *stream =
        sim_stream_create(rt_current(), is_non_blocking ? SIM_STREAM_NON_BLOCKING : 0, priority);

    if (stream == NULL) {
        return rt_vendor.out_of_memory;
    }
    sim_handle_add(stream, "stream");
    *stream_out = stream;
    return 0;
}

int rt_stream_destroy(void *stream, bool waits)
{
    sim_handle_remove(stream, "stream", "StreamDestroy");
    if (rt_vendor.is_hip) {
        sim_capture_part(stream);
        set_stuck(stream, STUCK_NOT);
    }
    if (waits) {
        (void)sim_stream_synchronize(stream, UINT64_MAX);
    }
    sim_stream_destroy(stream);
    return 0;
}

/* Checks that a stream may be queried or waited for. In HIP this is an unsafe call, and it breaks
 * the capture that the stream is in; the default stream is not checked. */
static int check_wait(const void *handle, struct sim_stream *stream)
{
    if (!rt_vendor.is_hip) {
        return check_implicit(handle);
    }
    if (handle == NULL) {
        return 0;
    }
    if (stuck_of(handle) != STUCK_NOT) {
        set_stuck(handle, STUCK_BROKEN);
        return rt_vendor.capture_unsupported;
    }
    if (sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        return rt_vendor.capture_unsupported;
    }
    return forbid();
}

int rt_stream_query(void *handle)
{
    struct sim_stream *stream = stream_of(handle, "StreamQuery");
    int code = check_wait(handle, stream);

    return code != 0 ? code : outcome(stream, sim_stream_query(stream));
}

int rt_stream_synchronize(void *handle)
{
    struct sim_stream *stream = stream_of(handle, "StreamSynchronize");
    int code = check_wait(handle, stream);

    if (code == 0 && sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        code = rt_vendor.capture_unsupported;
    }
    return code != 0 ? code : outcome(stream, sim_stream_synchronize(stream, UINT64_MAX));
}

/*
 * HIP waits at once for an event from outside the capture: the capture goes on without the wait. An
 * event of an ended capture counts as reached.
 */
static bool ignores(struct sim_stream *stream, struct sim_event *event)
{
    return sim_event_is_captured(event) ? !sim_event_is_in_a_capture(event)
                                        : sim_capture_status(stream) != SIM_CAPTURE_NONE;
}

int rt_stream_wait_event(void *handle, void *event)
{
    struct sim_stream *stream = stream_of(handle, "StreamWaitEvent");
    int code = check_implicit(handle);

    sim_handle_check(event, "event", "StreamWaitEvent");
    if (rt_vendor.is_hip && handle == NULL && sim_event_is_in_a_capture(event)) {
        return rt_vendor.invalid_handle;
    }
    if (rt_vendor.is_hip && ignores(stream, event)) {
        return 0;
    }
    return code != 0 ? code : outcome(stream, sim_stream_wait_event(stream, event));
}

int rt_stream_task(void *handle, void (*task)(void *), void *argument)
{
    struct sim_stream *stream = stream_of(handle, "LaunchHostFunc");
    int code = check_implicit(handle);

    return code != 0 ? code : outcome(stream, sim_submit_task(stream, task, argument));
}

/* ---- events --------------------------------------------------------------------------------- */

int rt_event_create(void **event_out, uint32_t flags)
{
    struct sim_event *event;

    if ((flags & RT_EVENT_INTERPROCESS) != 0 && (flags & RT_EVENT_NO_TIMING) == 0) {
        return rt_vendor.invalid_value;
    }
    event = sim_event_create(rt_current(), flags);
    if (event == NULL) {
        return rt_vendor.out_of_memory;
    }
    sim_handle_add(event, "event");
    *event_out = event;
    return 0;
}

int rt_event_destroy(void *event)
{
    sim_handle_remove(event, "event", "EventDestroy");
    sim_event_destroy(event);
    return 0;
}

int rt_event_record(void *event, void *handle)
{
    struct sim_stream *stream = stream_of(handle, "EventRecord");
    int code = check_implicit(handle);

    sim_handle_check(event, "event", "EventRecord");
    if (sim_event_physical(event) != sim_stream_physical(stream)) {
        return rt_vendor.invalid_handle;
    }
    return code != 0 ? code : outcome(stream, sim_event_record(event, stream));
}

static int event_outcome(int result)
{
    return result == 0 ? 0 : result > 0 ? rt_vendor.not_ready : rt_vendor.lost;
}

/* In HIP the query of an event of a capture breaks the capture in every mode; any other is an
 * unsafe call. After its capture ended, the event counts as never recorded. */
static int check_query(struct sim_event *event)
{
    if (!rt_vendor.is_hip) {
        return sim_event_is_captured(event) ? rt_vendor.captured_event : 0;
    }
    return sim_event_break_capture(event) ? rt_vendor.captured_event : forbid();
}

static int query(struct sim_event *event, uint64_t timeout_ns)
{
    int code = check_query(event);

    if (code != 0 || sim_event_is_captured(event)) {
        return code;
    }
    return event_outcome(timeout_ns == 0 ? sim_event_query(event)
                                         : sim_event_synchronize(event, timeout_ns));
}

int rt_event_query(void *event)
{
    sim_handle_check(event, "event", "EventQuery");
    return query(event, 0);
}

int rt_event_synchronize(void *event)
{
    sim_handle_check(event, "event", "EventSynchronize");
    return query(event, UINT64_MAX);
}

int rt_event_elapsed(float *milliseconds_out, void *start, void *end)
{
    int code;

    sim_handle_check(start, "event", "EventElapsedTime");
    sim_handle_check(end, "event", "EventElapsedTime");
    if (((sim_event_flags(start) | sim_event_flags(end)) & RT_EVENT_NO_TIMING) != 0 ||
        !sim_event_is_recorded(start) || !sim_event_is_recorded(end)) {
        return rt_vendor.invalid_handle;
    }
    code = sim_event_is_captured(start) || sim_event_is_captured(end)
               ? rt_vendor.captured_event
               : event_outcome(sim_event_query(start));
    code = code == 0 ? event_outcome(sim_event_query(end)) : code;
    if (code == 0) {
        *milliseconds_out =
            (float)((double)((int64_t)sim_event_time_ns(end) - (int64_t)sim_event_time_ns(start)) /
                    1e6);
    }
    return code;
}

int rt_ipc_event_get(void *handle64, void *event)
{
    sim_handle_check(event, "event", "IpcGetEventHandle");
    if ((sim_event_flags(event) & RT_EVENT_INTERPROCESS) == 0) {
        return rt_vendor.invalid_handle;
    }
    return sim_event_export(event, handle64) ? 0 : rt_vendor.invalid_value;
}

int rt_ipc_event_open(void **event_out, const void *handle64)
{
    struct sim_event *event = sim_event_import(rt_current(), handle64);

    if (event == NULL) {
        return rt_vendor.invalid_handle;
    }
    sim_handle_add(event, "event");
    *event_out = event;
    return 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

int rt_memory_info(size_t *free_out, size_t *total_out)
{
    uint64_t free_bytes, total_bytes;

    sim_memory_info(rt_current(), &free_bytes, &total_bytes);
    *free_out = free_bytes;
    *total_out = total_bytes;
    return 0;
}

static int allocate(void **pointer_out, size_t size_bytes, enum sim_memory_kind kind,
                    uint32_t flags)
{
    int code = forbid();
    void *pointer;

    if (code != 0) {
        return code;
    }
    if (size_bytes == 0) {
        return rt_vendor.invalid_value;
    }
    pointer = sim_alloc(rt_current(), size_bytes, 0, kind, flags);
    if (pointer == NULL) {
        return rt_vendor.out_of_memory;
    }
    *pointer_out = pointer;
    return 0;
}

int rt_malloc(void **pointer_out, size_t size_bytes)
{
    return allocate(pointer_out, size_bytes, SIM_DEVICE, 0);
}

int rt_managed(void **pointer_out, size_t size_bytes)
{
    return allocate(pointer_out, size_bytes, SIM_MANAGED, 0);
}

int rt_host_alloc(void **pointer_out, size_t size_bytes, uint32_t flags)
{
    return allocate(pointer_out, size_bytes, SIM_PINNED, flags);
}

/* Waits for the work of the device, as all functions that free memory do, and frees the memory. */
static int release(void *pointer, uint32_t kinds, const char *call)
{
    struct sim_block block;
    int code = forbid();

    if (code != 0) {
        return code;
    }
    if (!sim_find(pointer, &block) || block.address != pointer || (kinds & 1u << block.kind) == 0) {
        return rt_vendor.invalid_value;
    }
    code = sim_device_synchronize(block.physical) == 0 ? 0 : rt_vendor.lost;
    sim_free(pointer, block.kind, call);
    return code;
}

int rt_free(void *pointer)
{
    return pointer == NULL ? 0 : release(pointer, 1u << SIM_DEVICE | 1u << SIM_MANAGED, "Free");
}

int rt_host_free(void *pointer)
{
    return pointer == NULL ? 0 : release(pointer, 1u << SIM_PINNED, "HostFree");
}

int rt_host_register(void *pointer, size_t size_bytes, uint32_t flags)
{
    int code = rt_vendor.is_hip ? forbid() : 0;

    if (code != 0) {
        return code;
    }
    if (pointer == NULL || size_bytes == 0) {
        return rt_vendor.invalid_value;
    }
    return sim_register(rt_current(), pointer, size_bytes, flags) ? 0
                                                                  : rt_vendor.already_registered;
}

int rt_host_unregister(void *pointer)
{
    int code = rt_vendor.is_hip ? forbid() : 0;

    if (code != 0) {
        return code;
    }
    return sim_unregister(pointer) ? 0 : rt_vendor.not_registered;
}

int rt_host_device_pointer(void **device_out, void *host)
{
    if (!sim_range_is(host, 1, 1u << SIM_PINNED | 1u << SIM_REGISTERED | 1u << SIM_MANAGED)) {
        return rt_vendor.invalid_value;
    }
    *device_out = host;
    return 0;
}

/*
 * Returns true if the memory is of the wanted side, device or host. Pinned and managed memory has
 * addresses on both sides.
 */
static bool is_side(const void *pointer, bool wants_device)
{
    struct sim_block block;

    if (!sim_find(pointer, &block)) {
        return !wants_device;
    }
    return block.kind != SIM_DEVICE || wants_device;
}

static bool is_whole(const void *pointer, size_t size_bytes)
{
    struct sim_block block;

    return !sim_find(pointer, &block) || block.kind != SIM_DEVICE ||
           sim_range_is(pointer, size_bytes, 1u << SIM_DEVICE);
}

int rt_copy(void *destination, const void *source, size_t size_bytes, int kind, void *handle)
{
    struct sim_stream *stream = stream_of(handle, "MemcpyAsync");
    int code = check_implicit(handle);
    bool to_device = kind == RT_HOST_TO_DEVICE || kind == RT_DEVICE_TO_DEVICE;
    bool from_device = kind == RT_DEVICE_TO_HOST || kind == RT_DEVICE_TO_DEVICE;

    if (code != 0) {
        return code;
    }
    if (kind < RT_HOST_TO_HOST || kind > RT_DEFAULT ||
        (kind != RT_DEFAULT &&
         (!is_side(destination, to_device) || !is_side(source, from_device)))) {
        return rt_vendor.invalid_direction;
    }
    if (!is_whole(destination, size_bytes) || !is_whole(source, size_bytes)) {
        return rt_vendor.invalid_value;
    }
    return outcome(stream, sim_submit_copy(stream, destination, source, size_bytes));
}

int rt_copy_peer(void *destination, int destination_device, const void *source, int source_device,
                 size_t size_bytes, void *stream)
{
    const struct sim_device *to = rt_device(destination_device);
    const struct sim_device *from = rt_device(source_device);
    struct sim_stream *captured = stream_of(stream, "MemcpyPeerAsync");
    struct sim_block block;

    if (to == NULL || from == NULL) {
        return rt_vendor.invalid_device;
    }
    if (!sim_find(destination, &block) || block.physical != to->physical ||
        !sim_find(source, &block) || block.physical != from->physical) {
        return rt_vendor.invalid_value;
    }
    if (rt_vendor.is_hip && sim_capture_status(captured) != SIM_CAPTURE_NONE) {
        stream = NULL; /* no part of the capture: runs now */
    }
    return rt_copy(destination, source, size_bytes, RT_DEVICE_TO_DEVICE, stream);
}

int rt_fill(void *destination, const void *pattern, uint32_t pattern_bytes, size_t count,
            void *handle)
{
    struct sim_stream *stream = stream_of(handle, "MemsetAsync");
    int code = check_implicit(handle);
    uint32_t kinds = 1u << SIM_DEVICE | 1u << SIM_PINNED | 1u << SIM_MANAGED | 1u << SIM_REGISTERED;

    if (code != 0) {
        return code;
    }
    if (!sim_range_is(destination, count * pattern_bytes, kinds)) {
        return rt_vendor.invalid_value;
    }
    return outcome(stream, sim_submit_fill(stream, destination, pattern, pattern_bytes,
                                           count * pattern_bytes));
}

int rt_malloc_async(void **pointer_out, size_t size_bytes, void *handle)
{
    struct sim_stream *stream = stream_of(handle, "MallocAsync");
    uint32_t physical = sim_stream_physical(stream);
    void *pointer;

    if (sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        return rt_vendor.capture_unsupported;
    }
    if (size_bytes == 0) {
        return rt_vendor.invalid_value;
    }
    pointer = sim_alloc(physical, size_bytes, 0, SIM_DEVICE, 0);
    if (pointer == NULL) {
        (void)sim_device_synchronize(physical); /* memory freed in stream order may suffice */
        pointer = sim_alloc(physical, size_bytes, 0, SIM_DEVICE, 0);
    }
    if (pointer == NULL) {
        return rt_vendor.out_of_memory;
    }
    *pointer_out = pointer;
    return 0;
}

static void free_step(void *pointer)
{
    sim_free(pointer, SIM_DEVICE, "FreeAsync");
}

int rt_free_async(void *pointer, void *handle)
{
    struct sim_stream *stream = stream_of(handle, "FreeAsync");
    struct sim_block block;

    if (sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        sim_capture_break(stream);
        return rt_vendor.capture_unsupported;
    }
    if (!sim_find(pointer, &block) || block.address != pointer || block.kind != SIM_DEVICE) {
        return rt_vendor.invalid_value;
    }
    return outcome(stream, sim_submit_step(stream, free_step, pointer));
}

int rt_ipc_memory_get(void *handle64, void *pointer)
{
    return sim_export(pointer, handle64) ? 0 : rt_vendor.invalid_value;
}

int rt_ipc_memory_open(void **pointer_out, const void *handle64)
{
    uint64_t size_bytes;
    void *pointer = sim_import(rt_current(), handle64, &size_bytes);

    if (pointer == NULL) {
        return rt_vendor.invalid_handle;
    }
    *pointer_out = pointer;
    return 0;
}

int rt_ipc_memory_close(void *pointer)
{
    (void)sim_device_synchronize(rt_current());
    return sim_import_close(pointer) ? 0 : rt_vendor.invalid_value;
}

/* ---- captures and graphs -------------------------------------------------------------------- */

int rt_exchange_mode(int *mode)
{
    int before = thread_mode;

    if (*mode < 0 || *mode > 2) {
        return rt_vendor.invalid_value;
    }
    thread_mode = *mode;
    *mode = before;
    return 0;
}

int rt_capture_begin(void *handle, int mode)
{
    struct sim_stream *stream = stream_of(handle, "StreamBeginCapture");

    if (handle == NULL) {
        return rt_vendor.capture_unsupported;
    }
    if (mode < 0 || mode > 2) {
        return rt_vendor.invalid_value;
    }
    if (stuck_of(handle) == STUCK_ACTIVE || !sim_capture_begin(stream, (uint32_t)mode)) {
        return rt_vendor.illegal_state;
    }
    set_stuck(handle, STUCK_NOT);
    return 0;
}

int rt_capture_end(void *handle, void **graph_out)
{
    struct sim_stream *stream = stream_of(handle, "StreamEndCapture");
    enum sim_capture status = sim_capture_status(stream);
    struct sim_graph *graph;

    if (status == SIM_CAPTURE_NONE && stuck_of(handle) == STUCK_NOT) {
        return rt_vendor.illegal_state;
    }
    if (!sim_capture_is_mine(stream)) {
        return rt_vendor.capture_wrong_thread;
    }
    graph = sim_capture_end(stream);
    if (graph == NULL && rt_vendor.is_hip) {
        set_stuck(handle, status == SIM_CAPTURE_ACTIVE ? STUCK_ACTIVE : STUCK_BROKEN);
        return status == SIM_CAPTURE_ACTIVE ? rt_vendor.capture_unjoined
                                            : rt_vendor.capture_invalidated;
    }
    if (graph == NULL) {
        return rt_vendor.capture_invalidated;
    }
    sim_handle_add(graph, "graph");
    *graph_out = graph;
    return 0;
}

/* The query itself does not break a capture. */
int rt_capture_status(void *handle, int *status_out)
{
    struct sim_stream *stream = stream_of(handle, "StreamIsCapturing");
    int code = is_implicit(handle) ? rt_vendor.capture_implicit : 0;

    if (code == 0) {
        enum sim_capture status = sim_capture_status(stream);
        enum stuck after = stuck_of(handle);

        *status_out = status == SIM_CAPTURE_ACTIVE || after == STUCK_ACTIVE   ? 1
                      : status == SIM_CAPTURE_BROKEN || after == STUCK_BROKEN ? 2
                                                                              : 0;
    }
    return code;
}

int rt_graph_instantiate(void **exec_out, void *graph)
{
    struct sim_graph *exec;

    sim_handle_check(graph, "graph", "GraphInstantiate");
    exec = sim_graph_copy(graph);
    if (exec == NULL) {
        return rt_vendor.out_of_memory;
    }
    sim_handle_add(exec, "graph-exec");
    *exec_out = exec;
    return 0;
}

int rt_graph_update(void *exec, void *graph, int *result_out)
{
    sim_handle_check(exec, "graph-exec", "GraphExecUpdate");
    sim_handle_check(graph, "graph", "GraphExecUpdate");
    *result_out = sim_graph_update(exec, graph) ? 0 : 1;
    return *result_out == 0 ? 0 : rt_vendor.update_failure;
}

int rt_graph_launch(void *exec, void *handle)
{
    struct sim_stream *stream = stream_of(handle, "GraphLaunch");
    int code = check_implicit(handle);

    sim_handle_check(exec, "graph-exec", "GraphLaunch");
    if (rt_vendor.is_hip && sim_capture_status(stream) != SIM_CAPTURE_NONE) {
        stream = default_stream(sim_stream_physical(stream)); /* no part of the capture: runs now */
    }
    return code != 0 ? code : outcome(stream, sim_graph_launch(exec, stream));
}

int rt_graph_exec_destroy(void *exec)
{
    sim_handle_remove(exec, "graph-exec", "GraphExecDestroy");
    sim_graph_destroy(exec);
    return 0;
}

int rt_graph_destroy(void *graph)
{
    sim_handle_remove(graph, "graph", "GraphDestroy");
    sim_graph_destroy(graph);
    return 0;
}

int rt_graph_nodes(void *graph, size_t *count_out)
{
    sim_handle_check(graph, "graph", "GraphGetNodes");
    *count_out = sim_graph_node_count(graph);
    return 0;
}
