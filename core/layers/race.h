/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Declarations shared by the files of the race detector; layer_race.c explains how it works. */
#ifndef DS_ACCEL_LAYERS_RACE_H
#define DS_ACCEL_LAYERS_RACE_H

#include "layers/layer.h"

struct ds_accel__extent;

#define DS_ACCEL__COMPONENT_LIMIT 4096u

/* A vector clock; it does not change after it is made, and is shared by reference. */
struct ds_accel__clock {
    uint32_t references;
    uint32_t count;
    uint64_t times[];
};
typedef struct ds_accel__clock race_clock_t;

struct ds_accel__access {
    uint32_t references;
    uint32_t component;
    uint64_t time;
    race_clock_t *clock;
    struct ds_accel__stack *stack;
    uint64_t space;
    uint64_t begin;
    uint64_t size_bytes;
    uint64_t stream; /* number of the stream's object; 0: the host */
    /* slot of the call; SLOT_COUNT: the program reported the access; SLOT_COUNT + 1: an allocator
     * hands a block out again */
    uint32_t slot;
    const char *call; /* for host work of the library: name of the public function; else NULL */
    bool is_write;
    bool is_on_stream;
    bool is_foreign; /* the access is on a stream of which the library had no handle */
    const void *site;
    const void *captured_at; /* for an access of a graph's launch: call site of the captured call */
};

/* One item that a capture recorded: an access, a host task, or the recording of an event. A
 * capture's items are in the order of the calls. */
struct ds_accel__capture_item {
    struct ds_accel__access *access; /* NULL: the item is a host task or a recording */
    struct ds_accel__race_task *task;
    uint64_t memory; /* number of the range that contained the access; 0: not known */
    /* number of the allocator's block that contained the access; 0: no block, or the capture's own
     * pool keeps the block's memory */
    uint64_t block;
    const void *event;
    uint64_t event_number;
};

struct ds_accel__capture {
    uint32_t references;
    uint64_t id;
    const void *device;
    uint64_t pool; /* number of the pool that the capture allocates from; 0: none */
    bool is_over;
    struct ds_accel__capture_item *items;
    size_t count;
    size_t capacity;
};

struct ds_accel__race_object {
    uint32_t references; /* > 1: several handles of one vendor stream or event share the struct */
    uint32_t component;  /* component of a stream */
    /* clock of a stream, event or executable graph; of a device: joined clocks of its destroyed
     * streams */
    race_clock_t *clock;
    /* of a stream: the capture that it is in; of an event: the capture that recorded it; of a graph
     * or executable graph: its contents */
    struct ds_accel__capture *capture;
    /* clocks within the capture; of a stream: its clock; of an event: the recorded clock */
    race_clock_t *in_capture;
    /* of an event: ID of the capture in which it was recorded; 0: recorded outside of captures */
    uint64_t recorded_in;
    bool is_recorded; /* of an event: it has been recorded */
};

struct ds_accel__race_thread {
    struct ds_accel__race_thread *next;
    uint32_t component;
    race_clock_t *clock;
};

/* The place (component, time, clock) where a captured host task will run for one launch. */
struct ds_accel__task_place {
    struct ds_accel__task_place *next;
    struct ds_accel__access at; /* all members except the address range */
};

/* A queued host task, with the clock of its place in the stream. */
struct ds_accel__race_task {
    ds_accel_host_task_t run;
    void *user_data;
    struct ds_accel__access place; /* all members except the address range */
    /* the place is not known, so that accesses reported by the task are ignored */
    bool is_nowhere;
    /* the task runs once for each launch; each run removes and uses the first of places */
    bool is_captured;
    struct ds_accel__task_place *places;
    struct ds_accel__race_task *next; /* next captured task of its stack */
};

/* A launch in progress, with a time and a clock for each item of the capture. */
struct ds_accel__launch {
    struct ds_accel__capture *capture;
    uint32_t component; /* component of the stream */
    size_t count;
    struct {
        uint64_t time;
        race_clock_t *clock;
    } places[];
};

/* ---- race_clock.c --------------------------------------------------------------------------- */

extern race_clock_t *ds_accel__race_host_clock; /* the joined clock of all host threads */
extern bool
    ds_accel__race_is_blind; /* memory or components ran out: the search for races has stopped */

race_clock_t *ds_accel__clock_get(race_clock_t *clock);
void ds_accel__clock_put(race_clock_t *clock);
uint64_t ds_accel__clock_at(const race_clock_t *clock, uint32_t component);
/* Set each component of *clock to the later time of both clocks. */
void ds_accel__clock_join(race_clock_t **clock, race_clock_t *other);
/* Advance a component's time, set it in *clock, which is the clock of the component's stream or
 * thread, and return it. */
uint64_t ds_accel__clock_tick(race_clock_t **clock, uint32_t component);
/* Like ds_accel__clock_tick(), for a clock within a capture: clocks outside the capture never
 * contain the new time. */
uint64_t ds_accel__clock_tick_in_capture(race_clock_t **clock, uint32_t component);
uint32_t ds_accel__component_take(const race_clock_t *maker);
void ds_accel__component_retire(uint32_t component);
/* Whether the library has a handle of a stream with this component. */
bool ds_accel__race_is_ours(uint32_t component);
/* Return the data of the calling thread; unless threads are separate, join the clocks of the other
 * threads into its clock. NULL: the detector is blind. */
struct ds_accel__race_thread *ds_accel__race_enter(const struct ds_accel__stack *stack);
/* Join the thread's clock into the clock of all host threads. */
void ds_accel__race_leave(const struct ds_accel__race_thread *thread);
void ds_accel__race_clocks_open(void);
void ds_accel__race_clocks_close(void);

/* ---- race_memory.c -------------------------------------------------------------------------- */

/* Return a copy on the heap; NULL: out of memory, and the detector becomes blind. */
struct ds_accel__access *ds_accel__access_make(const struct ds_accel__access *pattern);
void ds_accel__access_put(struct ds_accel__access *access);
bool ds_accel__access_is_before(const struct ds_accel__access *a, const struct ds_accel__access *b);
/* Return an earlier access that the new access races with, or NULL. Every race is recorded as a
 * finding. */
const struct ds_accel__access *ds_accel__access_check(const struct ds_accel__access *by);
void ds_accel__access_keep(struct ds_accel__access *access);
void ds_accel__access_forget(uint64_t space, uint64_t begin, uint64_t end);
/* Forget the accesses to host memory that a stack's streams no longer use. Accesses on streams of
 * other stacks, and on streams of which the library has no handle, are kept. */
void ds_accel__access_forget_idle(const struct ds_accel__stack *stack, uint64_t begin,
                                  uint64_t end);
/* Return a stack whose stream has a kept access to this host memory; NULL: there is none. */
struct ds_accel__stack *ds_accel__access_stack(uint64_t begin, uint64_t end);
/* Forget accesses that no later access can race with. */
void ds_accel__access_prune(void);
/* Record a race as a finding, once for each pair of call sites. After 1000 findings, or if memory
 * is exhausted, races are only counted. */
void ds_accel__race_find(const struct ds_accel__access *first,
                         const struct ds_accel__access *second);
int32_t ds_accel__race_findings_open(struct ds_accel__stack *stack);
/* Release the findings of a stack. True: no other stack has findings. The caller holds the layers'
 * lock. */
bool ds_accel__race_findings_close(struct ds_accel__stack *stack);

/* ---- race_object.c -------------------------------------------------------------------------- */

/* Return the object's race data, made on first use. NULL: object is NULL, or memory is exhausted,
 * so that the detector is blind. */
struct ds_accel__race_object *ds_accel__race_of(struct ds_accel__object *object);
struct ds_accel__race_object *ds_accel__race_of_handle(uint32_t kind, const void *handle);
void ds_accel__capture_put(struct ds_accel__capture *capture);
/* Forget the clocks of vendor streams without a handle. Called before all clocks are discarded. */
void ds_accel__race_natives_forget(void);

/* ---- race_access.c -------------------------------------------------------------------------- */

extern _Thread_local const struct ds_accel__race_task
    *ds_accel__race_task; /* the host task that runs on this thread; NULL: none */

/* Add an item to the capture, which takes ownership of the item's access. */
void ds_accel__capture_add(struct ds_accel__capture *capture,
                           const struct ds_accel__capture_item *item);
void ds_accel__capture_access(struct ds_accel__race_object *race,
                              const struct ds_accel__access *pattern);
/* Join into the stream's clock all clocks that happen before the work that the thread queues
 * now. */
void ds_accel__race_reach(const struct ds_accel__object *stream, struct ds_accel__race_object *race,
                          const struct ds_accel__race_thread *thread);
/* Update the clocks after a call that queued work returned: with DS_ACCEL_FLAG_SYNCHRONIZED the
 * work has finished, so join the stream's clock into the thread's clock. Then call
 * ds_accel__race_leave(). */
void ds_accel__race_return(const struct ds_accel__object *stream,
                           const struct ds_accel__race_object *race,
                           struct ds_accel__race_thread *thread);
void ds_accel__race_access(const struct ds_accel__access *pattern);
/* Set component, time and clock of an access by host code and, in a host task, also its stream. The
 * clock is borrowed. False: the access cannot be recorded. */
bool ds_accel__race_place_host(struct ds_accel__stack *stack, struct ds_accel__access *access);
/* Set component, time, clock and stream of an access on a stream. The clock is borrowed.
 * *captured_out: the access is part of a capture. False: the access cannot be recorded. */
bool ds_accel__race_place_stream(struct ds_accel__object *stream,
                                 struct ds_accel__race_thread *thread,
                                 struct ds_accel__access *access, bool *captured_out);
/* Return the address space of an address in a call on a device: the host's space for host memory,
 * else the device's space. */
uint64_t ds_accel__race_space(const struct ds_accel__object *device, uint64_t address);
/* Return the address space of an address that host code uses: the device's space only if an
 * allocation of the device contains the address and the host cannot read it. */
uint64_t ds_accel__race_host_space(const struct ds_accel__object *device, uint64_t address,
                                   enum ds_accel__reach *reach);
const struct ds_accel__object *ds_accel__race_device_of(const void *handle);
/* Return the size of an element in bytes; 1 for an unknown dtype. */
uint64_t ds_accel__race_dtype_bytes(uint64_t dtype);
void ds_accel__race_join_waits(const struct ds_accel__call *call,
                               struct ds_accel__race_object *race, uint32_t position);

/* ---- race_work.c ---------------------------------------------------------------------------- */

/* Return the range from the lowest to the highest byte of an extent. */
void ds_accel__extent_span(const struct ds_accel__extent *extent, uint64_t *begin_out,
                           uint64_t *size_out);
/* Record the accesses of work; *access provides component, time and clock. captured: race data of a
 * capturing stream, to whose capture the accesses are added; else NULL. */
void ds_accel__work_access(const struct ds_accel__work *work, struct ds_accel__access *access,
                           struct ds_accel__race_object *captured);
/* Whether the accesses of the work would race. Each race is recorded as a finding. */
bool ds_accel__work_check(const struct ds_accel__work *work, struct ds_accel__access *access);

/* ---- race_touch.c --------------------------------------------------------------------------- */

/* Record the accesses of a call that succeeded. */
void ds_accel__race_touch(const struct ds_accel__call *call);
/*
 * Whether the call would race, for validate.races "fail". Each race is recorded as a finding. The
 * check advances no component's time: it computes the clock that the call would have, and uses
 * UINT64_MAX, which no clock contains, as the call's time.
 */
bool ds_accel__race_would(const struct ds_accel__call *call);

#endif
