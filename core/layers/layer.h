/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of the layers share. Below device.c, above the registry of plugins.
 *
 * A started accelerator with layers has a *stack*. Each slot of its table holds a small function
 * (made of slots.def) that records slot, arguments and call site in a *call*, passes the call to
 * each layer before and after, and calls the plugin in between. A layer can refuse a call, and sees
 * its result; layers do not know of each other, so that they can stand in any order.
 */
#ifndef DS_ACCEL_LAYERS_LAYER_H
#define DS_ACCEL_LAYERS_LAYER_H

#include "config/env.h"

#include <pthread.h>

struct ds_accel__device;
struct ds_accel__stream;

struct ds_accel__candidate;
struct ds_accel__work;

/* What an argument is. Kinds of handles come first: they are also the kinds of objects. */
enum ds_accel__meaning {
    DS_ACCEL__INSTANCE,
    DS_ACCEL__DEVICE,
    DS_ACCEL__STREAM,
    DS_ACCEL__EVENT,
    DS_ACCEL__GRAPH,
    DS_ACCEL__EXEC,
    DS_ACCEL__VMEM,
    DS_ACCEL__OBJECT_COUNT,
    DS_ACCEL__INSTANCE_OUT = DS_ACCEL__OBJECT_COUNT, /* the same order: *_OUT - COUNT is the kind */
    DS_ACCEL__DEVICE_OUT,
    DS_ACCEL__STREAM_OUT,
    DS_ACCEL__EVENT_OUT,
    DS_ACCEL__GRAPH_OUT,
    DS_ACCEL__EXEC_OUT,
    DS_ACCEL__VMEM_OUT,
    DS_ACCEL__POINTER_OUT, /* never NULL on success */
    DS_ACCEL__U32_OUT,
    DS_ACCEL__U64_OUT,
    DS_ACCEL__F64_OUT,
    DS_ACCEL__STRUCT_OUT, /* begins with struct_size */
    DS_ACCEL__NEEDED_OUT, /* uint32_t, may be NULL, written with ERR_LIMIT too */
    DS_ACCEL__ARRAY,      /* elements; stride and capacity follow */
    DS_ACCEL__BUFFER,     /* a text to be written; its size follows; NULL with size 0 */
    DS_ACCEL__HOST,
    DS_ACCEL__DEVICE_OR_NULL,
    DS_ACCEL__EVENTS,   /* handles; their count follows */
    DS_ACCEL__TEXT,     /* not NULL */
    DS_ACCEL__MEMORY,   /* not NULL */
    DS_ACCEL__FUNCTION, /* not NULL */
    DS_ACCEL__ANY,      /* a pointer that may be NULL, or that its slot checks */
    DS_ACCEL__INDEX,    /* of a device */
    DS_ACCEL__SIZE,     /* > 0 */
    DS_ACCEL__ALIGN,    /* 0 or a power of two */
    DS_ACCEL__FLAGS,
    DS_ACCEL__NUMBER,
    DS_ACCEL__REAL
};

#define DS_ACCEL__ARGUMENTS 7

enum ds_accel__slot {
#define PROBE(...)
#define CALL(name, ...) DS_ACCEL__SLOT_##name,
#define DROP(name, ...) DS_ACCEL__SLOT_##name,
#include "slots.def"
    DS_ACCEL__SLOT_COUNT
};

struct ds_accel__slot_info {
    const char *name;
    size_t offset; /* in the table */
    uint32_t count;
    bool is_void;
    unsigned char meanings[DS_ACCEL__ARGUMENTS]; /* enum ds_accel__meaning */
    const char *names[DS_ACCEL__ARGUMENTS];
};

union ds_accel__argument {
    uint64_t number;
    uintptr_t pointer;
    double real;
};

struct ds_accel__call;
struct ds_accel__stack;
struct ds_accel__clock;         /* layer_race.c */
struct ds_accel__race_object;   /* likewise, of one object */
struct ds_accel__race_findings; /* likewise, of one stack */
struct ds_accel__trace_file;    /* layer_trace.c */
struct ds_accel__task_mark;     /* layer_rules.c */
struct ds_accel__race_task;     /* layer_race.c */
struct ds_accel__launch;        /* likewise */

/* What one layer does. Every function may be NULL. */
struct ds_accel__layer_ops {
    const char *name;
    int32_t (*start)(struct ds_accel__stack *stack);
    void (*stop)(struct ds_accel__stack *stack);
    void (*before)(struct ds_accel__call *call); /* may refuse the call */
    void (*after)(struct ds_accel__call *call);  /* only if its before ran */
};

extern const struct ds_accel__layer_ops ds_accel__layer_validate;
extern const struct ds_accel__layer_ops ds_accel__layer_race;
extern const struct ds_accel__layer_ops ds_accel__layer_leak;
extern const struct ds_accel__layer_ops ds_accel__layer_trace;

#define DS_ACCEL__LAYER_LIMIT 8

/* The layers of one started accelerator. */
struct ds_accel__stack {
    struct ds_accel__stack *next;
    struct ds_accel__candidate *candidate;
    ds_accel_t *context;
    struct ds_accel_plugin plugin; /* the table's entries before installation */
    const struct ds_accel__layer_ops *layers[DS_ACCEL__LAYER_LIMIT]; /* the outermost first */
    size_t layer_count;
    uint64_t id; /* never reused */
    uint32_t device_count;
    bool has_flags;
    uint64_t flags;         /* DS_ACCEL_FLAG_* of the backend */
    bool fails_on_races;    /* validate.races is "fail" */
    bool separates_threads; /* validate.threads is "separate" */
    struct ds_accel__race_findings *races;
    struct ds_accel__trace_file *trace;
    struct ds_accel__task_mark *tasks;      /* layer_rules.c: host tasks of captures */
    struct ds_accel__race_task *race_tasks; /* layer_race.c: likewise */
};

/* One live handle. Lock held wherever it is touched. */
struct ds_accel__object {
    struct ds_accel__object *next; /* next in its bucket */
    uint32_t kind;
    uint32_t device_index;
    const void *handle;
    struct ds_accel__stack *stack;
    const void *instance;
    const void *device; /* the handle of its device; NULL for an instance */
    const void *site;   /* where it was made */
    uint64_t number;    /* counts the objects of its stack: "stream 3" */
    uint32_t opens;     /* of a device */
    uint32_t flags;     /* the flags that it was created with */
    bool is_lent;       /* a default or current stream: not the caller's to destroy */
    bool is_default;
    bool is_created; /* of a stream: the vendor's stream ends with this handle */
    bool is_ours;    /* of a stream: the library has a handle of it */
    uint64_t native; /* of a stream or event: the vendor's handle once it is known; else 0 */
    bool is_capturing;
    uint32_t capture_mode;    /* DS_ACCEL_CAPTURE_*, of the capture that began on it */
    pthread_t capture_thread; /* the thread that began it */
    uint64_t pool;            /* of a stream that captures: its allocator's number; 0: none */
    bool has_device_flags;
    uint64_t device_flags;
    struct ds_accel__race_object *race; /* NULL: none */
};

/* One live range of addresses. */
struct ds_accel__range {
    uint64_t space; /* of addresses: 0 is the process's, others are of one device */
    uint64_t begin;
    uint64_t size_bytes;
    struct ds_accel__stack *stack;
    const void *instance;
    const void *device;
    const void *site;     /* where it was made */
    const void *freed_at; /* only in the graves of freed ranges */
    uint64_t number;      /* counts the ranges of the process: each has its own */
    uint64_t pool;        /* of a block allocated on a capturing stream: its pool; 0: none */
    uint32_t device_index;
    uint32_t slot;   /* the device that made it */
    uint32_t flags;  /* of pinned memory: DS_ACCEL_PINNED_* */
    bool is_divided; /* an allocator hands out parts of it */
    bool is_unsized; /* another process's or the vendor's: its size is not known */
};

enum ds_accel__register {
    DS_ACCEL__ALLOCATIONS, /* memory of every kind, mapped ranges too */
    DS_ACCEL__RESERVATIONS,
    DS_ACCEL__BLOCKS, /* parts of allocations that an allocator handed out */
    DS_ACCEL__REGISTER_COUNT
};

#define DS_ACCEL__CANARY_BYTES 64

/* One call on its way through the layers. */
struct ds_accel__call {
    uint32_t slot;
    int32_t status;
    const void *site;             /* the program's */
    struct ds_accel_error *given; /* the program's, or NULL */
    struct ds_accel__stack *stack;
    const void *instance; /* of the first argument; NULL: not known */
    const struct ds_accel_plugin *plugin;
    union ds_accel__argument arguments[DS_ACCEL__ARGUMENTS];
    size_t depth; /* layers whose before has run */
    bool is_refused;
    bool capture_goes_on; /* graph_capture_end failed, and the stream captures as before */
    struct ds_accel__object *spare_object; /* for what the call creates: allocated in advance */
    struct ds_accel__range *spare_range;
    struct ds_accel__range removed; /* removed by this call; size 0: nothing */
    struct {
        struct ds_accel_error error; /* passed to the plugin */
        unsigned char canary[DS_ACCEL__CANARY_BYTES];
    } own;
    struct {
        union ds_accel__argument given[DS_ACCEL__ARGUMENTS]; /* before it was redirected */
        uint64_t cells[DS_ACCEL__ARGUMENTS][3];
        unsigned char *copies[DS_ACCEL__ARGUMENTS]; /* copies of structs */
        bool is_redirected;
        void *task; /* a host task, as it is wrapped */
    } validate;
    struct {
        struct ds_accel__clock *clock;     /* as it was when the call began */
        void *task;                        /* once queued, the plugin may have run and freed it */
        const struct ds_accel__work *work; /* of a host task of the library; NULL: not known */
        struct ds_accel__launch *launch;   /* of a graph; NULL: nothing is known of it */
        bool is_captured;                  /* the task belongs to a capture and is kept */
    } race;
    struct {
        uint64_t begin_ns;
        uint64_t number; /* of a handle that the call ends */
    } trace;
};

/* ---- layer_slots.c -------------------------------------------------------------------------- */

extern const struct ds_accel__slot_info ds_accel__slots[DS_ACCEL__SLOT_COUNT];
/* Does this freeing slot accept memory that the slot made_by made? */
bool ds_accel__may_free(uint32_t slot, uint32_t made_by);

/* ---- layer_call.c --------------------------------------------------------------------------- */

/* Refuse the call with a message; for a slot without a status it is logged. */
void ds_accel__layer_refuse(struct ds_accel__call *call, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define DS_ACCEL__POINTER(call, position) ((void *)(call)->arguments[position].pointer)
/* What an output argument holds, NULL for a NULL argument. */
void *ds_accel__layer_output(const struct ds_accel__call *call, uint32_t position);

/* ---- layer_site.c --------------------------------------------------------------------------- */

/* "module+0x1234 (function+0x12)" of a call site. */
void ds_accel__layer_site(const void *site, char *text, size_t text_size);
/* The call site in the program below a function of this library that returns to address. */
const void *ds_accel__layer_caller(const void *address);

/* ---- layer_registry.c ----------------------------------------------------------------------- */

/* Guards the registry, the registers and the race detector's data. Under it no plugin is called
 * and nothing is logged. */
void ds_accel__layer_lock(void);
void ds_accel__layer_unlock(void);

/* Lock held for all of these. NULL: the handle is not live. */
struct ds_accel__object *ds_accel__object_find(uint32_t kind, const void *handle);
/* visit may end the object that it receives. */
void ds_accel__objects_visit(void (*visit)(void *user_data, struct ds_accel__object *object),
                             void *user_data);
/* Where a handle that is not live was destroyed; NULL: not known. */
const void *ds_accel__object_grave(uint32_t kind, const void *handle);
const char *ds_accel__kind_name(uint32_t kind);
/* The range that holds an address; and the first one that begins at it or later. */
struct ds_accel__range *ds_accel__range_find(enum ds_accel__register in, uint64_t space,
                                             uint64_t address);
/* A recently freed range that held the address. */
const struct ds_accel__range *ds_accel__range_grave(uint64_t space, uint64_t address);
/* "freed" or "unregistered": how a range in the graves ended. */
const char *ds_accel__ended(const struct ds_accel__range *grave);
void ds_accel__ranges_visit(enum ds_accel__register in,
                            void (*visit)(void *user_data, const struct ds_accel__range *range),
                            void *user_data);
/* The number of the newest range among those that hold these bytes; 0: not all are in one. */
uint64_t ds_accel__range_newest(enum ds_accel__register in, uint64_t space, uint64_t begin,
                                uint64_t size_bytes);
/* The new object, or the one that is already registered. */
struct ds_accel__object *ds_accel__object_add(struct ds_accel__call *call, uint32_t kind,
                                              const void *handle, const void *device);
/* Remove an object from the registry, which remembers where it ended. */
void ds_accel__object_remove(struct ds_accel__object *object, const void *site);
/* All ranges of a stack, or those of an instance, or of a device (not NULL). */
void ds_accel__ranges_end(const struct ds_accel__stack *stack, const void *instance,
                          const void *device);
/* Make room for what calls in flight may add. False: out of memory. */
bool ds_accel__ranges_make_room(enum ds_accel__register in);
/* Add *range, using *spare, which becomes NULL. Older ranges that it overlaps are removed. */
void ds_accel__range_add(enum ds_accel__register in, const struct ds_accel__range *range,
                         struct ds_accel__range **spare);
void ds_accel__range_end(enum ds_accel__register in, const struct ds_accel__range *range,
                         const void *site);

/* ---- layer_stack.c -------------------------------------------------------------------------- */

void ds_accel__stack_add(struct ds_accel__stack *stack);
/* Lock held. */
void ds_accel__stack_remove(const struct ds_accel__stack *stack);
/*
 * The stack that a call goes through, and the instance. There is no stack if the call's handle is
 * unknown and the process has more or fewer than one stack.
 */
void ds_accel__stack_find(struct ds_accel__call *call);
/* A stack whose layers look for races; NULL: there is none. Lock held. */
struct ds_accel__stack *ds_accel__layer_any_stack(void);

/* ---- layer_device.c: lock held -------------------------------------------------------------- */

/* Do all devices and the process share one address space? */
bool ds_accel__is_one_space(const struct ds_accel__stack *stack);
/* The address space of a device's memory. */
uint64_t ds_accel__space_of(const struct ds_accel__object *device);
/* Flags of an object's device; ds_accel__layer_before queried the plugin for them. */
uint64_t ds_accel__device_flags(const struct ds_accel__object *object);

/* ---- layer_reach.c -------------------------------------------------------------------------- */

/* Whether an address is readable, within one call: the system is queried once. */
enum ds_accel__reach {
    DS_ACCEL__REACH_UNKNOWN,
    DS_ACCEL__REACH_READABLE,
    DS_ACCEL__REACH_NONE
};

/* Can the process read there? Also true where the system cannot be queried. */
bool ds_accel__layer_can_read(uint64_t address, enum ds_accel__reach *reach);
/* The same, queried again. */
bool ds_accel__layer_is_readable(uint64_t address);

/* ---- the other files ------------------------------------------------------------------------ */

/* layer_file.c: the path that a layer writes to: the variable, or "file" of an object of the
 * configuration, or else the usual path, with the process ID for %p. A new text; NULL: no file.
 * ERR_NO_MEMORY. */
int32_t ds_accel__layer_path(ds_accel_t *context, enum ds_accel__variable variable,
                             const char *object, const char *usual, char **path_out);
/* A descriptor, or -1: none is configured, or opening it failed, which is logged. */
int ds_accel__race_file_open(ds_accel_t *context);
void ds_accel__race_file_add(int fd, const char *line, size_t length);

/* Once per process, before the first call. */
void ds_accel__layer_registry_open(void);
void ds_accel__layer_site_open(void);
/* layer_track.c: memory for what the call will make (false: out of memory, and the plugin is not
 * called), what the call ends, and its results. No lock held. */
bool ds_accel__track_reserve(struct ds_accel__call *call);
void ds_accel__track_before(struct ds_accel__call *call);
void ds_accel__track_after(struct ds_accel__call *call);
/* All objects of a stack, or those of an instance, or of a device (not NULL). Lock held. */
void ds_accel__objects_end(const struct ds_accel__stack *stack, const void *instance,
                           const void *device, const void *site);

/* race_object.c: a stream is in a capture, also if it joined one through an event. Lock held. */
bool ds_accel__race_captures(const struct ds_accel__object *stream);
/* The vendor's handle of a stream or an event is now known: handles with the same one share an
 * object. */
void ds_accel__race_native(struct ds_accel__object *object);
/* The handle does not, or no longer, share its object with others. */
void ds_accel__race_part(struct ds_accel__object *object);

/* layer_rules.c: what layer validate checks across calls. No lock held. */
void ds_accel__rules_check(struct ds_accel__call *call);
/* Mark the task of an accepted stream_host_task while it runs. */
void ds_accel__rules_wrap_task(struct ds_accel__call *call);
void ds_accel__rules_drop_task(const struct ds_accel__call *call);
void ds_accel__rules_stop(struct ds_accel__stack *stack);

/* layer_validate.c: what is wrong with memory that a stream (NULL: the host) is declared to use,
 * with the place where it was freed in *grave_out; NULL: nothing. Lock held. */
const char *ds_accel__validate_noted(const struct ds_accel__object *device, bool is_on_stream,
                                     uint64_t address, uint64_t size_bytes,
                                     struct ds_accel__range *grave_out,
                                     enum ds_accel__reach *reach);

/* Check the memory that the library's own work accesses, if layer validate is on. False: the text
 * describes the error. No lock held. */
bool ds_accel__validate_work(const struct ds_accel__stack *stack, const struct ds_accel__work *work,
                             char *text, size_t text_size);
/* layer_work.c: the memory that the host task touches which this thread is queueing, once; NULL:
 * the task is the program's. */
const struct ds_accel__work *ds_accel__work_take(void);

/* race_object.c: release what the race detector keeps of an object that ends. Lock held. */
void ds_accel__race_object_end(struct ds_accel__object *object);
/* race_memory.c: report of races; every race in the stack. New texts. */
char *ds_accel__race_text(struct ds_accel__stack *stack);
uint64_t ds_accel__race_total(struct ds_accel__stack *stack);
/* Log what a stack's calls have found, and write it to the file. NULL: nothing. No lock held. */
void ds_accel__race_tell(struct ds_accel__stack *stack);
/* layer_race.c. True: the access races, and races are refused. Lock held. */
bool ds_accel__race_note(const struct ds_accel__object *device, struct ds_accel__object *stream,
                         const void *pointer, uint64_t size_bytes, uint32_t access,
                         const void *site, enum ds_accel__reach *reach);
void ds_accel__race_block(const struct ds_accel__object *device, struct ds_accel__object *stream,
                          const void *pointer, uint64_t size_bytes, const void *site);
/* layer_leak.c: what is live, of an instance and device or (NULL) of all; a new text, "" if
 * nothing is live. */
char *ds_accel__leak_text(const struct ds_accel__stack *stack, const void *instance,
                          const void *device);
/* layer_trace.c: spans of the plugin's own. */
void ds_accel__trace_begin(struct ds_accel__stack *stack, const char *category, const char *name);
void ds_accel__trace_end(struct ds_accel__stack *stack);

/* The hooks of host/layers.h, which describes each. */
int32_t ds_accel__hook_install(struct ds_accel__candidate *candidate);
void ds_accel__hook_remove(struct ds_accel__candidate *candidate);
bool ds_accel__hook_problem(const char *list, char *problem, size_t problem_size);
bool ds_accel__hook_in_task(void);
bool ds_accel__hook_end_is_refused(const ds_accel_t *context, const char *call);
void ds_accel__hook_own(bool is_begun);
const struct ds_accel_plugin *ds_accel__hook_below(const struct ds_accel__candidate *candidate);
void ds_accel__hook_host_idle(ds_accel_plugin_device_t *device, const void *pointer,
                              uint64_t size_bytes);
void ds_accel__hook_stream_ours(ds_accel_plugin_stream_t *stream);
void ds_accel__hook_span_begin(struct ds_accel__candidate *candidate, const char *category,
                               const char *name);
void ds_accel__hook_span_end(struct ds_accel__candidate *candidate);
void ds_accel__hook_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                uint64_t size_bytes, ds_accel_plugin_stream_t *stream);
void ds_accel__hook_block_free(ds_accel_plugin_device_t *device, void *pointer,
                               ds_accel_plugin_stream_t *stream);
void ds_accel__hook_capture_pool(ds_accel_plugin_device_t *device, ds_accel_plugin_stream_t *stream,
                                 uint64_t pool);
void ds_accel__hook_host_block(ds_accel_plugin_device_t *device, void *pointer,
                               uint64_t size_bytes);
int32_t ds_accel__hook_host_task(struct ds_accel__stream *stream, ds_accel_host_task_t task,
                                 void *user_data, const struct ds_accel__work *work,
                                 struct ds_accel_error *error);
int32_t ds_accel__hook_host_work(struct ds_accel__device *device,
                                 const struct ds_accel__work *work);

#endif
