/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations shared by the files of the layers. Layers (validate, race, leak, trace) check or
 * record the calls that the library and the program make to a plugin.
 *
 * A started accelerator with layers has a *stack*. Each slot of its table refers to a small
 * function, generated from slots.def. The function records slot, arguments and call site in a
 * *call*, passes the call to each layer, calls the plugin, and passes the result to each layer. A
 * layer can refuse a call. Layers can be in any order. Layer validate uses data of layer race, and
 * therefore adds layer race to the stack.
 */
#ifndef DS_ACCEL_LAYERS_LAYER_H
#define DS_ACCEL_LAYERS_LAYER_H

#include "config/env.h"

#include <pthread.h>

struct ds_accel__device;
struct ds_accel__stream;

struct ds_accel__candidate;
struct ds_accel__work;

/* The meaning of an argument of a slot. Handles come first, because their values are also the kinds
 * of objects (struct ds_accel__object). */
enum ds_accel__meaning {
    DS_ACCEL__INSTANCE,
    DS_ACCEL__DEVICE,
    DS_ACCEL__STREAM,
    DS_ACCEL__EVENT,
    DS_ACCEL__GRAPH,
    DS_ACCEL__EXEC,
    DS_ACCEL__VMEM,
    DS_ACCEL__OBJECT_COUNT,
    /* same order as the kinds: *_OUT - DS_ACCEL__OBJECT_COUNT is the kind */
    DS_ACCEL__INSTANCE_OUT = DS_ACCEL__OBJECT_COUNT,
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
    DS_ACCEL__NEEDED_OUT, /* uint32_t, needed capacity; may be NULL; also written on ERR_LIMIT */
    DS_ACCEL__ARRAY,      /* array of elements; the next arguments are its stride and capacity */
    DS_ACCEL__BUFFER,     /* a text to be written; its size follows; may be NULL if the size is 0 */
    DS_ACCEL__HOST,
    DS_ACCEL__DEVICE_OR_NULL,
    DS_ACCEL__EVENTS,   /* handles; their count follows */
    DS_ACCEL__TEXT,     /* not NULL */
    DS_ACCEL__MEMORY,   /* not NULL */
    DS_ACCEL__FUNCTION, /* not NULL */
    DS_ACCEL__ANY,      /* a pointer that may be NULL, or that the slot checks itself */
    DS_ACCEL__INDEX,    /* index of a device */
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
struct ds_accel__clock;         /* race.h */
struct ds_accel__race_object;   /* race.h: data of one object */
struct ds_accel__race_findings; /* race_memory.c: findings of one stack */
struct ds_accel__trace_file;    /* layer_trace.c */
struct ds_accel__task_mark;     /* layer_rules.c */
struct ds_accel__race_task;     /* race.h */
struct ds_accel__launch;        /* race.h */

/* The functions of one layer. Every function may be NULL. */
struct ds_accel__layer_ops {
    const char *name;
    int32_t (*start)(struct ds_accel__stack *stack);
    void (*stop)(struct ds_accel__stack *stack);
    void (*before)(struct ds_accel__call *call); /* may refuse the call */
    void (*after)(struct ds_accel__call *call);  /* called only if before was called */
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
    /* the plugin's table as it was before the layers were installed */
    struct ds_accel_plugin plugin;
    /* from the outermost to the innermost */
    const struct ds_accel__layer_ops *layers[DS_ACCEL__LAYER_LIMIT];
    size_t layer_count;
    uint64_t id; /* never reused */
    uint32_t device_count;
    bool has_flags;
    uint64_t flags;         /* DS_ACCEL_FLAG_* of the backend */
    bool fails_on_races;    /* validate.races is "fail" */
    bool separates_threads; /* validate.threads is "separate" */
    struct ds_accel__race_findings *races;
    struct ds_accel__trace_file *trace;
    struct ds_accel__task_mark *tasks;      /* layer_rules.c: marks of captured host tasks */
    struct ds_accel__race_task *race_tasks; /* layer_race.c: captured host tasks */
};

/* One live handle. All members are guarded by the layers' lock. */
struct ds_accel__object {
    struct ds_accel__object *next; /* next in its bucket */
    uint32_t kind;
    uint32_t device_index;
    const void *handle;
    struct ds_accel__stack *stack;
    const void *instance;
    const void *device; /* handle of the object's device; NULL for an instance */
    const void *site;   /* call site that made the object */
    uint64_t number;    /* unique number in the process, for messages such as "stream 3" */
    uint32_t opens;     /* number of openings of a device */
    uint32_t flags;     /* the flags that it was created with; 0 if not known */
    bool has_flags;     /* of a stream: flags are known, because the plugin created the stream */
    bool is_lent;       /* a default stream, which the caller must not destroy */
    bool is_default;
    bool is_created; /* of a stream: destroying this handle destroys the vendor's stream */
    bool is_ours;    /* of a stream: the library itself also has a handle, and queries the stream */
    uint64_t native; /* of a stream or event: the vendor's native handle; 0: not known */
    bool is_capturing;
    uint32_t capture_mode;    /* DS_ACCEL_CAPTURE_*: mode of the capture that began on the stream */
    pthread_t capture_thread; /* the thread that began the capture */
    /* of a capturing stream: number of the private pool that the caching allocator uses for the
     * capture; 0: none */
    uint64_t pool;
    bool has_device_flags;
    uint64_t device_flags;
    struct ds_accel__race_object *race; /* NULL: none */
};

/* One range of addresses: a live one in a register, or a copy of one that was freed
 * (ds_accel__range_grave(), call->removed). */
struct ds_accel__range {
    uint64_t space; /* address space: 0 is that of the process, any other is that of one device */
    uint64_t begin;
    uint64_t size_bytes;
    struct ds_accel__stack *stack;
    const void *instance;
    const void *device;
    const void *site;     /* call site that made the range */
    const void *freed_at; /* call site of the free; set only for ranges that were freed */
    uint64_t number;      /* unique number of the range in the process */
    /* of a block allocated on a capturing stream: number of the private pool; 0: none */
    uint64_t pool;
    uint32_t device_index;
    uint32_t slot;   /* the slot whose call made the range */
    uint32_t flags;  /* of pinned memory: DS_ACCEL_PINNED_* flags */
    bool is_divided; /* an allocator hands out parts of the range */
    bool is_unsized; /* memory of another process or of the vendor, whose size is not known */
};

enum ds_accel__register {
    DS_ACCEL__ALLOCATIONS, /* memory of every kind, including mapped ranges */
    DS_ACCEL__RESERVATIONS,
    DS_ACCEL__BLOCKS, /* parts of allocations that an allocator handed out */
    DS_ACCEL__REGISTER_COUNT
};

#define DS_ACCEL__CANARY_BYTES 64

/* One call, while the layers and the plugin process it. */
struct ds_accel__call {
    uint32_t slot;
    int32_t status;
    const void *site;             /* call site in the program */
    struct ds_accel_error *given; /* the program's error struct, or NULL */
    struct ds_accel__stack *stack;
    const void *instance; /* instance of the first argument; NULL: not known */
    const struct ds_accel_plugin *plugin;
    union ds_accel__argument arguments[DS_ACCEL__ARGUMENTS];
    size_t depth; /* number of layers whose before was called */
    bool is_refused;
    bool capture_goes_on; /* graph_capture_end failed, and the stream still captures */
    /* for an object that the call creates; allocated before the call */
    struct ds_accel__object *spare_object;
    struct ds_accel__range *spare_range;
    struct ds_accel__range removed; /* range that this call removed; size 0: none */
    struct {
        struct ds_accel_error error; /* passed to the plugin */
        unsigned char canary[DS_ACCEL__CANARY_BYTES];
    } own;
    struct {
        /* the arguments before outputs were redirected */
        union ds_accel__argument given[DS_ACCEL__ARGUMENTS];
        uint64_t cells[DS_ACCEL__ARGUMENTS][3];
        unsigned char *copies[DS_ACCEL__ARGUMENTS]; /* copies of structs */
        bool is_redirected;
        void *task; /* mark of a host task, freed if the call fails; NULL: none, or captured */
    } validate;
    struct {
        /* of a call that waits: the clock of the awaited object when the call began */
        struct ds_accel__clock *clock;
        /* wrapper of a host task; after the call the plugin may have run and freed it */
        void *task;
        /* accesses of a host task of the library; NULL: the call queues no such task */
        const struct ds_accel__work *work;
        struct ds_accel__launch *launch; /* launch of a graph; NULL: none, or not followed */
        /* the task belongs to a capture, and is kept after its run */
        bool is_captured;
    } race;
    struct {
        uint64_t begin_ns;
        uint64_t number; /* number of the handle that the call destroys */
    } trace;
};

/* ---- layer_slots.c -------------------------------------------------------------------------- */

extern const struct ds_accel__slot_info ds_accel__slots[DS_ACCEL__SLOT_COUNT];
/* Whether slot, which frees memory, accepts memory that slot made_by made. */
bool ds_accel__may_free(uint32_t slot, uint32_t made_by);

/* ---- layer_call.c --------------------------------------------------------------------------- */

/* Refuse the call with a message. If the slot has no status, the message is logged. */
void ds_accel__layer_refuse(struct ds_accel__call *call, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define DS_ACCEL__POINTER(call, position) ((void *)(call)->arguments[position].pointer)
/* Return the pointer that an output argument points to; NULL if the argument is NULL. */
void *ds_accel__layer_output(const struct ds_accel__call *call, uint32_t position);

/* ---- layer_site.c --------------------------------------------------------------------------- */

/* Write a call site as text: "module+0x1234 (function+0x12)". */
void ds_accel__layer_site(const void *site, char *text, size_t text_size);
/* Return the call site in the program for a function of this library that returns to address. */
const void *ds_accel__layer_caller(const void *address);

/* ---- layer_registry.c ----------------------------------------------------------------------- */

/* Take and release the layers' lock, which guards the registry, the registers and the race
 * detector's data. While a thread holds it, the thread does not call a plugin or log. */
void ds_accel__layer_lock(void);
void ds_accel__layer_unlock(void);

/* The caller of the functions below holds the layers' lock. ds_accel__object_find() returns NULL if
 * the handle is not live. */
struct ds_accel__object *ds_accel__object_find(uint32_t kind, const void *handle);
/* Call visit for each live object. visit may remove only the object that it receives. */
void ds_accel__objects_visit(void (*visit)(void *user_data, struct ds_accel__object *object),
                             void *user_data);
/* Return the call site that destroyed a handle that is not live; NULL: not known. */
const void *ds_accel__object_grave(uint32_t kind, const void *handle);
const char *ds_accel__kind_name(uint32_t kind);
/* Return the range that contains an address; NULL: there is none. */
struct ds_accel__range *ds_accel__range_find(enum ds_accel__register in, uint64_t space,
                                             uint64_t address);
/* Return a recently freed range that contained the address; NULL: there is none. */
const struct ds_accel__range *ds_accel__range_grave(uint64_t space, uint64_t address);
/* Return "freed" or "unregistered", for a range that ds_accel__range_grave() returned. */
const char *ds_accel__ended(const struct ds_accel__range *grave);
void ds_accel__ranges_visit(enum ds_accel__register in,
                            void (*visit)(void *user_data, const struct ds_accel__range *range),
                            void *user_data);
/* Return the number of the newest of the ranges that contain these bytes; 0: some bytes are in no
 * range. */
uint64_t ds_accel__range_newest(enum ds_accel__register in, uint64_t space, uint64_t begin,
                                uint64_t size_bytes);
/* Register a handle; return its new object, which is call->spare_object, or the existing object if
 * the handle is already registered. NULL: the handle is new, and call->spare_object is NULL. */
struct ds_accel__object *ds_accel__object_add(struct ds_accel__call *call, uint32_t kind,
                                              const void *handle, const void *device);
/* Remove an object from the registry, which records the call site (site) for
 * ds_accel__object_grave(). */
void ds_accel__object_remove(struct ds_accel__object *object, const void *site);
/* Remove the ranges of a stack; instance or device not NULL: only the ranges that belong to that
 * instance or device. */
void ds_accel__ranges_end(const struct ds_accel__stack *stack, const void *instance,
                          const void *device);
/* Make space for the ranges that calls in progress may add. False: out of memory. */
bool ds_accel__ranges_make_room(enum ds_accel__register in);
/* Add *range, using *spare, which becomes NULL. Older ranges that it overlaps are removed. If
 * *spare is NULL or memory is exhausted, do nothing. */
void ds_accel__range_add(enum ds_accel__register in, const struct ds_accel__range *range,
                         struct ds_accel__range **spare);
void ds_accel__range_end(enum ds_accel__register in, const struct ds_accel__range *range,
                         const void *site);

/* ---- layer_stack.c -------------------------------------------------------------------------- */

void ds_accel__stack_add(struct ds_accel__stack *stack);
/* Remove the stack from the list. The caller holds the layers' lock. */
void ds_accel__stack_remove(const struct ds_accel__stack *stack);
/*
 * Set the call's stack and instance, from the call's first handle or, for a call without a handle
 * (init), its host table. The stack is NULL if these are unknown, unless the process has exactly
 * one stack.
 */
void ds_accel__stack_find(struct ds_accel__call *call);
/* Return a stack with the race detector; NULL: there is none. The caller holds the layers' lock. */
struct ds_accel__stack *ds_accel__layer_any_stack(void);

/* ---- layer_device.c: the caller holds the layers' lock -------------------------------------- */

/* Whether all devices and the process share one address space. */
bool ds_accel__is_one_space(const struct ds_accel__stack *stack);
/* Return the address space of a device's memory. */
uint64_t ds_accel__space_of(const struct ds_accel__object *device);
/* Return the flags of an object's device, for which layer_track.c queried the plugin; if they are
 * not known, the backend's flags. */
uint64_t ds_accel__device_flags(const struct ds_accel__object *object);

/* ---- layer_reach.c -------------------------------------------------------------------------- */

/* Whether an address is readable. The code that checks a call keeps the result until the end of the
 * call, so that the system is queried only once. */
enum ds_accel__reach {
    DS_ACCEL__REACH_UNKNOWN,
    DS_ACCEL__REACH_READABLE,
    DS_ACCEL__REACH_NONE
};

/* Whether the process can read an address; also true if the system cannot be queried. *reach keeps
 * the result of the first query. */
bool ds_accel__layer_can_read(uint64_t address, enum ds_accel__reach *reach);
/* Whether the process can read an address; queries the system each time. */
bool ds_accel__layer_is_readable(uint64_t address);

/* ---- the other files ------------------------------------------------------------------------ */

/* layer_file.c: return the path of the file that a layer writes: from the environment variable,
 * else from member "file" of a configuration object, else the usual path, with %p replaced by the
 * process ID. *path_out is a new text; NULL: no file. ERR_NO_MEMORY. */
int32_t ds_accel__layer_path(ds_accel_t *context, enum ds_accel__variable variable,
                             const char *object, const char *usual, char **path_out);
/* Open the file to which detected races are written; returns a descriptor. -1: no such file is
 * configured, or it cannot be opened, which is logged. */
int ds_accel__race_file_open(ds_accel_t *context);
void ds_accel__race_file_add(int fd, const char *line, size_t length);

/* Called once per process, before the first call through layers. */
void ds_accel__layer_registry_open(void);
void ds_accel__layer_site_open(void);
/* layer_track.c: update the registry for a call. The first function allocates memory for new
 * entries (false: out of memory; the plugin must not be called); the second removes the objects and
 * memory that the call destroys; the third adds the results of the call, or restores the memory if
 * the call failed. The caller holds no lock. */
bool ds_accel__track_reserve(struct ds_accel__call *call);
void ds_accel__track_before(struct ds_accel__call *call);
void ds_accel__track_after(struct ds_accel__call *call);
/* Remove the objects of a stack; instance or device not NULL: only the objects that belong to that
 * instance or device. The caller holds the layers' lock. */
void ds_accel__objects_end(const struct ds_accel__stack *stack, const void *instance,
                           const void *device, const void *site);

/* race_object.c: whether a stream is in a capture, also if it joined the capture through an event.
 * The caller holds the layers' lock. */
bool ds_accel__race_captures(const struct ds_accel__object *stream);
/* Update the race data of a stream or event whose native handle has just become known: objects with
 * the same native handle share their race data. */
void ds_accel__race_native(struct ds_accel__object *object);
/* If the object shares its race data with other handles, release it, so that ds_accel__race_of()
 * makes new data for the object. */
void ds_accel__race_part(struct ds_accel__object *object);

/* layer_rules.c: check the rules of layer validate that concern several calls. The caller holds no
 * lock. */
void ds_accel__rules_check(struct ds_accel__call *call);
/* Wrap the task of a stream_host_task that passed the checks, so that calls that the task makes are
 * recognized as calls from a host task. */
void ds_accel__rules_wrap_task(struct ds_accel__call *call);
void ds_accel__rules_drop_task(const struct ds_accel__call *call);
void ds_accel__rules_stop(struct ds_accel__stack *stack);

/* layer_validate.c: check memory that, as the program reported, a stream or the host uses. Returns
 * a description of the problem; NULL: no problem is known. For freed memory *grave_out is the freed
 * range. The caller holds the layers' lock. */
const char *ds_accel__validate_noted(const struct ds_accel__object *device, bool is_on_stream,
                                     uint64_t address, uint64_t size_bytes,
                                     struct ds_accel__range *grave_out,
                                     enum ds_accel__reach *reach);

/* If layer validate is on, check the memory that a host task of the library accesses. False: the
 * check failed, and the text describes the error. The caller holds no lock. */
bool ds_accel__validate_work(const struct ds_accel__stack *stack, const struct ds_accel__work *work,
                             char *text, size_t text_size);
/* layer_work.c: return and clear the accesses of the host task that this thread is queueing; NULL:
 * the task is the program's, not the library's. */
const struct ds_accel__work *ds_accel__work_take(void);

/* race_object.c: release the race data of an object that is being removed. The caller holds the
 * layers' lock. */
void ds_accel__race_object_end(struct ds_accel__object *object);
/* race_memory.c: return the report of a stack's races as a new text (NULL: out of memory), and
 * their total number. */
char *ds_accel__race_text(struct ds_accel__stack *stack);
uint64_t ds_accel__race_total(struct ds_accel__stack *stack);
/* Log the races found since the last call, and add them to the file of races. stack NULL: do
 * nothing. The caller holds no lock. */
void ds_accel__race_tell(struct ds_accel__stack *stack);
/* layer_race.c: record an access. True: the access is not recorded, because it races and
 * validate.races is "fail". The caller holds the layers' lock. */
bool ds_accel__race_note(const struct ds_accel__object *device, struct ds_accel__object *stream,
                         const void *pointer, uint64_t size_bytes, uint32_t access,
                         const void *site, enum ds_accel__reach *reach);
void ds_accel__race_block(const struct ds_accel__object *device, struct ds_accel__object *stream,
                          const void *pointer, uint64_t size_bytes, const void *site);
/* layer_leak.c: return a new text that lists the live objects of an instance and device (NULL: of
 * all); "" if nothing is live; NULL: out of memory. */
char *ds_accel__leak_text(const struct ds_accel__stack *stack, const void *instance,
                          const void *device);
/* layer_trace.c: begin and end a span of the plugin. */
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
