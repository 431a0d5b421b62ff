/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* What the files of the race detector share; layer_race.c describes its principle. */
#ifndef DS_ACCEL_LAYERS_RACE_H
#define DS_ACCEL_LAYERS_RACE_H

#include "layers/layer.h"

struct ds_accel__extent;

#define DS_ACCEL__COMPONENT_LIMIT 4096u

/* Immutable once made, and shared by reference. */
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
    uint64_t stream; /* number of the object; 0: the host */
    uint32_t slot; /* SLOT_COUNT: noted by the program; SLOT_COUNT + 1: a block handed out again */
    const char *call; /* of host work: the public function; else NULL */
    bool is_write;
    bool is_on_stream;
    bool is_foreign; /* on a stream of which the library had no handle */
    const void *site;
    const void *captured_at; /* of a launch */
};

/* What a capture recorded: accesses, host tasks, and records of events, in order. */
struct ds_accel__capture_item {
    struct ds_accel__access *access; /* NULL: a host task or a record */
    struct ds_accel__race_task *task;
    uint64_t memory; /* number of the range that held it; 0: not known */
    uint64_t block;  /* of the block, if the capture's own pool does not keep it */
    const void *event;
    uint64_t event_number;
};

struct ds_accel__capture {
    uint32_t references;
    uint64_t id;
    const void *device;
    uint64_t pool; /* the pool of its memory; 0: none */
    bool is_over;
    struct ds_accel__capture_item *items;
    size_t count;
    size_t capacity;
};

struct ds_accel__race_object {
    uint32_t references; /* handles of one vendor stream share it */
    uint32_t component;  /* of a stream */
    race_clock_t *clock; /* stream, event, executable graph; device: of its ended streams */
    struct ds_accel__capture *capture; /* stream, event: the one it is in; graph: its contents */
    race_clock_t *in_capture; /* stream: its clock there; event: the clock recorded there */
    uint64_t recorded_in;     /* event: id of the capture; 0: outside of any */
    bool is_recorded;         /* event: has been recorded */
};

struct ds_accel__race_thread {
    struct ds_accel__race_thread *next;
    uint32_t component;
    race_clock_t *clock;
};

/* Where a captured host task will run for a launch. */
struct ds_accel__task_place {
    struct ds_accel__task_place *next;
    struct ds_accel__access at; /* all but the range */
};

/* A host task in flight, with the clock of its place in the stream. */
struct ds_accel__race_task {
    ds_accel_host_task_t run;
    void *user_data;
    struct ds_accel__access place; /* all but the range */
    bool is_nowhere;               /* its place is not known: accesses it notes are ignored */
    bool is_captured;              /* it runs for each launch, at the first of its places */
    struct ds_accel__task_place *places;
    struct ds_accel__race_task *next; /* next captured task of its stack */
};

/* A launch in flight: a time and a clock for each item of the capture. */
struct ds_accel__launch {
    struct ds_accel__capture *capture;
    uint32_t component; /* of the stream */
    size_t count;
    struct {
        uint64_t time;
        race_clock_t *clock;
    } places[];
};

/* ---- race_clock.c --------------------------------------------------------------------------- */

extern race_clock_t *ds_accel__race_host_clock; /* all threads together */
extern bool
    ds_accel__race_is_blind; /* memory or components ran out: the search for races has stopped */

race_clock_t *ds_accel__clock_get(race_clock_t *clock);
void ds_accel__clock_put(race_clock_t *clock);
uint64_t ds_accel__clock_at(const race_clock_t *clock, uint32_t component);
/* *clock becomes, in each component, the later of both. */
void ds_accel__clock_join(race_clock_t **clock, race_clock_t *other);
/* The next time of a component, in its own clock. */
uint64_t ds_accel__clock_tick(race_clock_t **clock, uint32_t component);
/* The same in the clock of a capture: no wait refers to that time. */
uint64_t ds_accel__clock_tick_in_capture(race_clock_t **clock, uint32_t component);
uint32_t ds_accel__component_take(const race_clock_t *maker);
void ds_accel__component_retire(uint32_t component);
/* Does the library have a handle of a stream with this component? */
bool ds_accel__race_is_ours(uint32_t component);
/* The calling thread, its clock joined with the others' if threads are joined. NULL: blind. */
struct ds_accel__race_thread *ds_accel__race_enter(const struct ds_accel__stack *stack);
/* If threads are joined, the others' clock takes in this thread's. */
void ds_accel__race_leave(const struct ds_accel__race_thread *thread);
void ds_accel__race_clocks_open(void);
void ds_accel__race_clocks_close(void);

/* ---- race_memory.c -------------------------------------------------------------------------- */

/* A copy on the heap; NULL: out of memory, and the detector stops. */
struct ds_accel__access *ds_accel__access_make(const struct ds_accel__access *pattern);
void ds_accel__access_put(struct ds_accel__access *access);
bool ds_accel__access_is_before(const struct ds_accel__access *a, const struct ds_accel__access *b);
/* The access that a new one races with, or NULL. Every race is kept as a finding. */
const struct ds_accel__access *ds_accel__access_check(const struct ds_accel__access *by);
void ds_accel__access_keep(struct ds_accel__access *access);
void ds_accel__access_forget(uint64_t space, uint64_t begin, uint64_t end);
/* The same when the library's own streams of a stack no longer use host memory. */
void ds_accel__access_forget_idle(const struct ds_accel__stack *stack, uint64_t begin,
                                  uint64_t end);
/* The stack with a kept access by a stream to this host memory; NULL: there is none. */
struct ds_accel__stack *ds_accel__access_stack(uint64_t begin, uint64_t end);
/* Forget accesses that no later access can race with. */
void ds_accel__access_prune(void);
/* Record a race, one for each pair of call sites. */
void ds_accel__race_find(const struct ds_accel__access *first,
                         const struct ds_accel__access *second);
int32_t ds_accel__race_findings_open(struct ds_accel__stack *stack);
/* True: the stack was the last with findings. Lock held. */
bool ds_accel__race_findings_close(struct ds_accel__stack *stack);

/* ---- race_object.c -------------------------------------------------------------------------- */

/* The object's race data, made on first use. NULL: blind. */
struct ds_accel__race_object *ds_accel__race_of(struct ds_accel__object *object);
struct ds_accel__race_object *ds_accel__race_of_handle(uint32_t kind, const void *handle);
void ds_accel__capture_put(struct ds_accel__capture *capture);
/* Forget the ended streams: their clocks are no longer valid. */
void ds_accel__race_natives_forget(void);

/* ---- race_access.c -------------------------------------------------------------------------- */

extern _Thread_local const struct ds_accel__race_task
    *ds_accel__race_task; /* runs on this thread; NULL: none */

/* Takes ownership of the item's access. */
void ds_accel__capture_add(struct ds_accel__capture *capture,
                           const struct ds_accel__capture_item *item);
void ds_accel__capture_access(struct ds_accel__race_object *race,
                              const struct ds_accel__access *pattern);
/* The stream's clock takes in all that happens before the work that the thread queues now. */
void ds_accel__race_reach(const struct ds_accel__object *stream, struct ds_accel__race_object *race,
                          const struct ds_accel__race_thread *thread);
/* Order that a thread learns from the return of a call that queued work. */
void ds_accel__race_return(const struct ds_accel__object *stream,
                           const struct ds_accel__race_object *race,
                           struct ds_accel__race_thread *thread);
void ds_accel__race_access(const struct ds_accel__access *pattern);
/* Fill component, time, clock and stream of accesses by a thread of the host. Borrowed clock. */
bool ds_accel__race_place_host(struct ds_accel__stack *stack, struct ds_accel__access *access);
/* The same on a stream, outside of captures, or (true in *captured_out) inside of one. */
bool ds_accel__race_place_stream(struct ds_accel__object *stream,
                                 struct ds_accel__race_thread *thread,
                                 struct ds_accel__access *access, bool *captured_out);
/* The address space of an address in a device's call: host memory is not the device's own. */
uint64_t ds_accel__race_space(const struct ds_accel__object *device, uint64_t address);
/* The same for an address that host code uses: the device's only if the host cannot read it. */
uint64_t ds_accel__race_host_space(const struct ds_accel__object *device, uint64_t address,
                                   enum ds_accel__reach *reach);
const struct ds_accel__object *ds_accel__race_device_of(const void *handle);
/* Size of an element; 1 for an unknown type. */
uint64_t ds_accel__race_dtype_bytes(uint64_t dtype);
void ds_accel__race_join_waits(const struct ds_accel__call *call,
                               struct ds_accel__race_object *race, uint32_t position);

/* ---- race_work.c ---------------------------------------------------------------------------- */

/* From the lowest to the highest byte of an extent. */
void ds_accel__extent_span(const struct ds_accel__extent *extent, uint64_t *begin_out,
                           uint64_t *size_out);
/* Record the accesses of work whose place is filled in; captured: in the capture of that stream. */
void ds_accel__work_access(const struct ds_accel__work *work, struct ds_accel__access *access,
                           struct ds_accel__race_object *captured);
/* Would the accesses race? */
bool ds_accel__work_check(const struct ds_accel__work *work, struct ds_accel__access *access);

/* ---- race_touch.c --------------------------------------------------------------------------- */

/* Record the accesses of a call that succeeded. */
void ds_accel__race_touch(const struct ds_accel__call *call);
/*
 * With validate.races "fail": would the call race? The clock it would have is joined for this check
 * only; a time that no clock has seen stands for the one it would get.
 */
bool ds_accel__race_would(const struct ds_accel__call *call);

#endif
