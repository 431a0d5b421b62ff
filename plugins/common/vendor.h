/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The backend-specific part of a plugin for a runtime: a vendor's runtime, or the cpu plugin's own.
 *
 * Each plugin defines one `const struct vendor_backend vendor_backend`: the operations of its
 * runtime, one function per operation (verb). The order of arguments and the numbers of constants
 * are the same in all plugins, those of plugin-api.h. The frame (vendor_*.c) does everything else:
 * it checks arguments and flags, and implements handles, the register of addresses, usage counters
 * and limits, alignment, timeouts, events that were never recorded or were recorded in a capture,
 * fills of every width, structs of older and newer hosts, native handles and visible devices. So
 * each rule of docs/plugin-abi.md is implemented once for all vendors, and a backend consists of
 * little more than calls of its vendor's library.
 *
 *      host -> slot (vendor_*.c) -> checks -> enter(device) -> backend's function -> library
 *                                            leave(device) <-  status  <- vendor_check(code)
 *
 * A slot is a function of the plugin's table (struct ds_accel_plugin). If a function here is NULL,
 * the slots that need it are NULL too, and the host reports "not supported" for them. A function
 * whose optional symbol the library lacks returns vendor_unsupported(). Except where stated below,
 * functions are called with valid arguments, from any thread, with the device current (enter()).
 * They return a status, and fill *error if the status is negative (vendor_check() does so). The
 * frame reads the arguments *_out only after DS_ACCEL_OK.
 */
#ifndef DS_ACCEL_PLUGINS_COMMON_VENDOR_H
#define DS_ACCEL_PLUGINS_COMMON_VENDOR_H

#include "vendor_lib.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- handles: the frame's definitions of the ABI's opaque types ----------------------------- */

struct ds_accel_plugin_instance {
    const struct ds_accel_host *host;
    void *runtime;                     /* returned by the backend's open() */
    ds_accel_plugin_device_t *devices; /* [device_count], by device_index */
    uint32_t device_count;
    uint64_t flags;                 /* DS_ACCEL_FLAG_* of this instance */
    struct vendor_register *blocks; /* addresses of all the instance's devices (vendor_block.c) */
    pthread_mutex_t lock; /* guards opening and closing devices; not held during a wait for
                                  host tasks, which may open and close devices themselves */
};

struct ds_accel_plugin_device {
    ds_accel_plugin_instance_t *instance;
    uint32_t index;
    uint32_t open_count;
    struct ds_accel_device_identity identity;
    struct ds_accel_device_info info; /* valid after opening */
    uint64_t native_device;           /* CUdevice, ze_device_handle_t: set by identify() or open */
    uint64_t native_context;          /* CUcontext, cl_context; 0: the runtime has none */
    void *state;                      /* owned by the backend, from device_open to device_close */
    ds_accel_plugin_stream_t *default_stream;
    atomic_uint is_lost;        /* a call returned ERR_DEVICE_LOST; cleared only when the device is
                                   started again */
    struct vendor_usage *usage; /* usage counters and limits (vendor_usage.c) */
    void *frame;                /* owned by the frame: struct vendor_device */
};

struct ds_accel_plugin_stream {
    ds_accel_plugin_device_t *device;
    void *native;        /* returned by stream_create() or stream_default(); NULL can be valid */
    uint32_t is_wrapped; /* native belongs to the program and is never destroyed here */
    uint32_t is_default;
    void *frame;
};

struct ds_accel_plugin_event {
    ds_accel_plugin_device_t *device;
    void *native;
    uint32_t flags; /* DS_ACCEL_EVENT_* */
    uint32_t is_wrapped;
    pthread_mutex_t lock;    /* not used by the frame: it accesses the members below atomically */
    uint32_t recorded;       /* VENDOR_EVENT_* of vendor_frame.h */
    uint64_t era;            /* vendor_capture_era() when it was recorded in a capture */
    uint64_t sequence;       /* number of its latest record in this process; 0: never recorded */
    const void *recorded_on; /* the stream of that record; only compared: the stream may have been
                                destroyed */
    void *frame;
};

struct ds_accel_plugin_graph {
    ds_accel_plugin_device_t *device;
    void *native;
    void *frame;
};

struct ds_accel_plugin_graph_exec {
    ds_accel_plugin_device_t *device;
    void *native;
    void *frame;
};

struct ds_accel_plugin_vmem {
    ds_accel_plugin_device_t *device;
    void *native;
    uint64_t size_bytes;
    void *frame;
};

/* ---- errors --------------------------------------------------------------------------------- */

/*
 * DS_ACCEL_OK for the vendor's success code. Otherwise fills *error with the code, the vendor's
 * name for the code and "CALL(ARGUMENTS): NAME (CODE)", marks a lost device, and returns the status
 * from the backend's describe(). A status that is no failure, such as NOT_READY, is returned
 * without that. device may be NULL.
 *
 * Backends wrap vendor_check() in macros with the same order of arguments, where NAME is the
 * backend's: NAME_CHECK(device, code, error, format, ...) evaluates to the status, NAME_TRY(device,
 * code, error, format, ...) returns a failure's status from the enclosing function, and
 * NAME_END(device, code, format, ...) is for destroying functions, which return no status.
 */
__attribute__((format(printf, 5, 6))) int32_t
vendor_check(ds_accel_plugin_instance_t *instance, ds_accel_plugin_device_t *device, int64_t code,
             struct ds_accel_error *error, const char *format, ...);
/* Returns ERR_UNSUPPORTED with the message "CALL: CAUSE", such as "mem_alloc_async: libcuda.so.1
 * has no cuMemAllocAsync (CUDA 11.2)". */
int32_t vendor_unsupported(struct ds_accel_error *error, const char *call, const char *cause);
/*
 * Fill *problem for a call that failed in open() or count(), with the vendor's code and the code's
 * name. With reason NONE, the problem's reason is DRIVER_FAILED. Always returns -1, so a caller can
 * write `return vendor_problem_code(...)`.
 */
__attribute__((format(printf, 6, 7))) int vendor_problem_code(struct vendor_problem *problem,
                                                              uint32_t reason, void *runtime,
                                                              int64_t code, uint32_t is_error,
                                                              const char *format, ...);
/* Returns true for the process ids that count as the caller of probe: this process, the process
   that forked it for probe, and the program for which the host's helper process runs probe. A
   backend that looks for other users of a device ignores these processes. */
int vendor_is_asking(int32_t pid);
/* Log under the plugin's topic. */
__attribute__((format(printf, 3, 4))) void vendor_log(const struct ds_accel_host *host,
                                                      uint32_t level, const char *format, ...);

/* ---- visible devices (vendor_visible.c) ----------------------------------------------------- */

#define VENDOR_KEEPS_ORDER 2u /* the list only hides devices: a changed order is rejected */
/*
 * How the vendor's variable hides devices. The frame implements visible_devices_value with it; the
 * backend uses vendor_visible_is_hiding() to report HIDDEN instead of NO_DEVICE.
 */
struct vendor_visible {
    const char *variable;       /* "CUDA_VISIBLE_DEVICES" */
    const char *separator;      /* "," */
    uint32_t is_renumbered;     /* a process that starts with the variable numbers its devices from
                                   0, in the order of the value; VENDOR_KEEPS_ORDER: in the
                                   vendor's order */
    uint32_t is_relative;       /* the value's numbers count only devices that the later variables
                                   of the array visible[] leave (HIP_VISIBLE_DEVICES counts the
                                   devices that ROCR_VISIBLE_DEVICES leaves) */
    uint32_t is_unset_if_empty; /* the runtime treats an empty value as unset */
    uint32_t is_empty_if_repeated; /* the runtime treats a value with a repeated device as empty */
};
/* If the value of a variable hides every device, writes to text which one, such as
 * "CUDA_VISIBLE_DEVICES=\"\" hides every device", and returns text; otherwise returns NULL. */
VENDOR_IF_LINKED const char *vendor_visible_is_hiding(const struct vendor_visible *variables,
                                                      uint32_t count, char *text, size_t text_size);
/*
 * Split the value of a variable at commas: calls take with each trimmed token until take returns
 * non-zero. An empty last token is skipped, so an empty value has no tokens. Returns -1 if the
 * variable is unset, otherwise the last result of take, or 0 if there are no tokens.
 */
int vendor_visible_each(const char *variable, int (*take)(void *user_data, const char *token),
                        void *user_data);
/* Copy the name of a device from the variable's value, whose names are in the order of the
   instance's devices. A repeated name counts once, unless the instance has more devices than the
   value has different names. Returns 0; 1: the value has too few names; -1: the variable is
   unset. */
int vendor_visible_name(const ds_accel_plugin_device_t *device, const char *variable, char *name,
                        size_t name_size);
/* Like vendor_visible_name(), but the name is the device's index if variable is NULL or unset.
   Returns 0; -1: the list has no name for the device. */
int vendor_visible_token(const ds_accel_plugin_device_t *device, const char *variable, char *token,
                         size_t token_size);

/* ---- the backend's table -------------------------------------------------------------------- */

#define VENDOR_FILLS_ANYWHERE 8u /* in fill_widths */

struct vendor_backend {
    const char *name; /* name of the plugin: "cuda" */
    uint64_t flags;   /* DS_ACCEL_FLAG_* of a library that has every optional symbol */
    const struct vendor_pattern *pattern;
    const struct vendor_visible *visible; /* [visible_count]: variables that choose devices */
    uint32_t visible_count;
    /* Return the variables, as many, that are in force in the current environment; NULL: visible */
    const struct vendor_visible *(*visible_now)(void);
    const char *const *export_prefixes; /* NULL-terminated: variables that jobs inherit */
    const struct ds_accel_env_rule *env_rules;
    uint32_t env_rule_count;
    uint32_t memory_handle_bytes; /* size of the vendor's IPC handle; 0: it has none. The frame adds
                                     the pointer's offset in the allocation */
    uint32_t event_handle_bytes;
    uint32_t allocation_align_bytes;  /* alignment that alloc() guarantees; the frame makes larger
                                        ones */
    uint32_t captures_no_ipc_events;  /* a capture can neither record nor wait for INTERPROCESS
                                        events */
    uint32_t captures_no_outer_waits; /* a capture ignores waits for events from outside it: the
                                         frame rejects them */
    uint32_t captures_no_launches;    /* no graph can be launched on a stream that captures */
    uint32_t captures_end_by_thread; /* if another thread than the one that began a capture ends it,
                                        the capture is lost, unless its mode is relaxed */
    uint32_t times_are_unsigned;     /* if start was reached after end, event_elapsed_ms() returns a
                                        huge number instead of a negative one */
    uint32_t frees_wait;             /* the frame need not wait for the device's work before free(),
                                        free_pinned() and host_unregister() */
    /* device_synchronize() and device_mark() break every capture on the device, of any mode and of
     * any thread: while this process captures, the frame queries streams instead, and no capture
     * begins during device_synchronize(). */
    uint32_t device_wait_breaks_captures;
    /* open() leaves descriptors or threads that close() cannot end, or the library does not survive
     * a fork: probe runs in a child process of its own. */
    uint32_t probes_in_child;
    /* init does not call identify() for all devices; device_identity() calls it when it is first
     * needed, because no other slot uses the facts that it reads. */
    uint32_t identifies_late;
    /*
     * The backend tracks facts that the frame tracks for other backends: whether an event was
     * recorded, and whether in a capture; on which stream a capture must end; which objects a graph
     * keeps alive. For such a backend the frame checks none of them, and lets graphs be launched on
     * streams of any device of the instance (with mixes_instances: of any instance).
     */
    uint32_t tracks_captures;
    /* If not 0, the frame allocates a stream's handle with this many zeroed bytes for the native
       stream. stream_create() finds their address in *native_out; the frame frees them. */
    uint32_t stream_bytes;
    /* Work that is queued at stream_destroy() still runs; device_wait() waits for that work. */
    uint32_t ends_streams_late;
    uint64_t max_align_bytes;   /* largest alignment that mem_alloc accepts, while pinned memory has
                                   no such limit; 0: 2^30 for both */
    uint32_t reads_host_memory; /* the device can use every host address */
    /* Calls accept objects of different instances, whose devices cannot access each other. */
    uint32_t mixes_instances;
    /* alloc() may return memory in a range of mem_register(), because it allocates from the heap
       that the program uses too. */
    uint32_t allocates_in_registered;
    uint32_t ignores_null_first; /* mem_free(NULL, NULL) and mem_free_pinned(NULL, NULL) succeed */

    /* -- opening and closing the runtime; its devices have the indexes 0 .. count-1 -- */

    /*
     * Open and start the vendor's libraries: the main library, whose absence is a problem, and
     * others (telemetry, ranges) if they are present. Creates no context, and no thread if that can
     * be avoided. Called by probe and by init.
     */
    int (*open)(const struct ds_accel_host *host, void **runtime_out,
                struct vendor_problem *problem);
    void (*close)(void *runtime);
    /* Count visible devices. If there are none, the function succeeds with 0, and the frame decides
     * between the reasons HIDDEN and NO_DEVICE. */
    int (*count)(void *runtime, uint32_t *count_out, struct vendor_problem *problem);
    /* Optional, called by probe: fail with a reason such as DEVICE_TOO_OLD or DEVICE_BUSY if the
     * devices cannot be used. usable_out: the number of usable devices, which the frame does not
     * use: the verdict has the number of count(). variant: the 32 bytes of the member of struct
     * ds_accel_verdict, "" before the call. */
    int (*judge)(void *runtime, uint32_t count, uint32_t *usable_out, char *variant,
                 struct vendor_problem *problem);
    /* Translate a code other than 0, the code of success: the status is DS_ACCEL_ERR_* or
     * NOT_READY, the name is the vendor's (NULL: unknown). */
    void (*describe)(void *runtime, int64_t code, int32_t *status_out, const char **name_out);
    /* Fill versions, the communication and the compile backend, and clear the flags whose optional
       symbols are missing; info has the values of this table before the call. */
    int32_t (*backend_info)(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error);
    /* Optional: write the detail of the verdict AVAILABLE; by default the detail is the library's
     * name and version. */
    void (*evidence)(void *runtime, char *text, size_t text_size);
    /* Optional, called by init after open(): start what probe does not need, and return the flags
       that backend_info() would return. init then does not call backend_info(). */
    int32_t (*start)(void *runtime, uint64_t *flags_out, struct ds_accel_error *error);

    /* -- devices -- */

    /* Creates no context and does not wake the device: identity->device_index is set; vendor_index,
     * uuid, PCI address ... and device->native_device are filled by the backend. The frame fills
     * numa_node, power_state and node_path from sysfs afterwards if the backend did not. */
    int32_t (*identify)(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                        struct ds_accel_error *error);
    /* Called for the first opening: creates the context and device->state, and fills device->info
     * (name, memory, compute units, flags...). native_context: 0, or the program's own context, for
     * the slot device_open_native, which is NULL without takes_native_context. */
    int32_t (*device_open)(ds_accel_plugin_device_t *device, uint64_t native_context,
                           struct ds_accel_error *error);
    void (*device_close)(ds_accel_plugin_device_t *device);
    /* Optional: stops the device's work before the frame frees its memory. If a backend has this
       function, shutdown also closes devices that the program left open. */
    void (*device_stop)(ds_accel_plugin_device_t *device);
    /* Optional: returns true if the calling thread is one that runs tasks of stream_task(). The
       frame does not stop a device on such a thread, which would wait for itself. */
    int (*runs_tasks)(ds_accel_plugin_instance_t *instance);
    /* Optional: fill facts that change or are expensive; called for each device_info(). */
    int32_t (*device_info)(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info,
                           struct ds_accel_error *error);
    uint32_t takes_native_context;
    /* Make the device current in the calling thread for one call, and restore the previous device.
       NULL: the runtime has no current device. enter must be cheap if the device is current
       already. */
    int32_t (*enter)(ds_accel_plugin_device_t *device, uint64_t *saved_out,
                     struct ds_accel_error *error);
    void (*leave)(ds_accel_plugin_device_t *device, uint64_t saved);
    uint32_t
        enters_for_streams; /* stream_*, event_*, copy_async, fill_async and graph_* need enter() */
    /* The slots device_get_current and device_set_current. *index_out UINT32_MAX: no device is
     * current. */
    int32_t (*get_current)(ds_accel_plugin_instance_t *instance, uint32_t *index_out,
                           struct ds_accel_error *error);
    int32_t (*set_current)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
    /* Waits without a timeout; the frame implements timeouts with queries of the device's
     * streams. */
    int32_t (*device_synchronize)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
    /* Optional, with device_wait_breaks_captures: record an event behind all work of the device,
     * and do not wait; *event_out is for event_synchronize() and belongs to the backend. With it,
     * no capture can begin between the frame's look at the captures and the call that breaks them.
     * The frame holds a lock meanwhile, and calls device_synchronize() if this fails. */
    int32_t (*device_mark)(ds_accel_plugin_device_t *device, void **event_out,
                           struct ds_accel_error *error);
    int32_t (*device_health)(ds_accel_plugin_device_t *device, struct ds_accel_error *error);
    /*
     * Optional: these three wait with any timeout, including 0 and UINT64_MAX, and return
     * ERR_TIMEOUT when it expires. They replace device_synchronize(), stream_synchronize(),
     * event_synchronize() and the frame's queries with a deadline, for runtimes whose devices
     * cannot be lost. device_wait() is called without enter().
     */
    int32_t (*device_wait)(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                           struct ds_accel_error *error);
    int32_t (*stream_wait)(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                           struct ds_accel_error *error);
    int32_t (*event_wait)(ds_accel_plugin_device_t *device, void *native, uint64_t timeout_ns,
                          struct ds_accel_error *error);

    /* -- streams: native is the vendor's handle, or a struct of the backend -- */

    int32_t (*stream_create)(ds_accel_plugin_device_t *device, uint32_t flags, int32_t priority,
                             void **native_out, struct ds_accel_error *error);
    void (*stream_destroy)(ds_accel_plugin_device_t *device, void *native);
    /* The vendor's own default stream. NULL function: the frame creates a default stream with
     * stream_create(). */
    int32_t (*stream_default)(ds_accel_plugin_device_t *device, void **native_out,
                              struct ds_accel_error *error);
    int32_t (*stream_priority_range)(ds_accel_plugin_device_t *device, int32_t *least_out,
                                     int32_t *greatest_out, struct ds_accel_error *error);
    int32_t (*stream_synchronize)(ds_accel_plugin_device_t *device, void *native,
                                  struct ds_accel_error *error);
    /* Optional, for runtimes that implement a timeout: wait, or return ERR_TIMEOUT. */
    int32_t (*stream_synchronize_for)(ds_accel_plugin_device_t *device, void *native,
                                      uint64_t timeout_ns, struct ds_accel_error *error);
    int32_t (*stream_query)(ds_accel_plugin_device_t *device, void *native,
                            struct ds_accel_error *error); /* DS_ACCEL_OK or NOT_READY */
    int32_t (*stream_wait_event)(ds_accel_plugin_device_t *device, void *native, void *native_event,
                                 struct ds_accel_error *error);
    /* Runs call(argument) on a thread of the runtime: once, or, if it is captured, once for each
     * launch of the graph. */
    int32_t (*stream_host_task)(ds_accel_plugin_device_t *device, void *native,
                                void (*call)(void *argument), void *argument,
                                struct ds_accel_error *error);
    /* In place of stream_host_task(), if the runtime itself guarantees that it runs each accepted
       task, also after an error, and a captured task with each launch of its graph. */
    int32_t (*stream_task)(ds_accel_plugin_device_t *device, void *native,
                           ds_accel_host_task_t task, void *user_data,
                           struct ds_accel_error *error);

    /* -- events -- */

    int32_t (*event_create)(ds_accel_plugin_device_t *device, uint32_t flags, void **native_out,
                            struct ds_accel_error *error);
    void (*event_destroy)(ds_accel_plugin_device_t *device, void *native);
    int32_t (*event_record)(ds_accel_plugin_device_t *device, void *native, void *native_stream,
                            struct ds_accel_error *error);
    /* DS_ACCEL_OK or NOT_READY. Not called for an event of which the frame knows that it was never
     * recorded. */
    int32_t (*event_query)(ds_accel_plugin_device_t *device, void *native,
                           struct ds_accel_error *error);
    int32_t (*event_synchronize)(ds_accel_plugin_device_t *device, void *native,
                                 struct ds_accel_error *error);
    int32_t (*event_elapsed_ms)(ds_accel_plugin_device_t *device, void *start, void *end,
                                double *elapsed_ms_out, struct ds_accel_error *error);

    /* -- memory: sizes > 0, except that a backend with tracks_captures receives empty copies and
     * fills too; kinds, patterns and sizes are consistent -- */

    /* Optional: reject sizes that can never be allocated, before they count against a limit. */
    int32_t (*check_size)(ds_accel_plugin_device_t *device, uint64_t size_bytes, const char *slot,
                          struct ds_accel_error *error);
    int32_t (*alloc)(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                     struct ds_accel_error *error);
    /* In place of alloc() and alloc_pinned(), for runtimes that align; align_bytes is 0 or a power
       of two. alloc_aligned() may raise *size_bytes; free_sized() receives the raised size. */
    int32_t (*alloc_aligned)(ds_accel_plugin_device_t *device, uint64_t *size_bytes,
                             uint64_t align_bytes, void **pointer_out,
                             struct ds_accel_error *error);
    int32_t (*alloc_pinned_aligned)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                                    uint64_t align_bytes, uint32_t flags, void **pointer_out,
                                    struct ds_accel_error *error);
    int32_t (*free)(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error);
    int32_t (*alloc_pinned)(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                            void **pointer_out, struct ds_accel_error *error);
    int32_t (*free_pinned)(ds_accel_plugin_device_t *device, void *pointer,
                           struct ds_accel_error *error);
    uint32_t pinned_flags; /* DS_ACCEL_PINNED_* that alloc_pinned and host_register support */
    int32_t (*host_register)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                             uint32_t flags, struct ds_accel_error *error);
    int32_t (*host_unregister)(ds_accel_plugin_device_t *device, void *pointer,
                               struct ds_accel_error *error);
    /* Optional, with frees_wait: wait, before device or pinned memory is freed or a mapping is
     * unmapped or made inaccessible, for all work that may use it. If it fails, so does the slot,
     * and the memory stays. It is not called when the device is closed. */
    int32_t (*memory_wait)(ds_accel_plugin_device_t *device, const char *slot,
                           struct ds_accel_error *error);
    /* In place of free(), free_pinned() and host_unregister(), for runtimes that need the size. */
    int32_t (*free_sized)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          struct ds_accel_error *error);
    int32_t (*free_pinned_sized)(ds_accel_plugin_device_t *device, void *pointer,
                                 uint64_t size_bytes, struct ds_accel_error *error);
    int32_t (*host_unregister_sized)(ds_accel_plugin_device_t *device, void *pointer,
                                     uint64_t size_bytes, struct ds_accel_error *error);
    int32_t (*alloc_managed)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                             void **pointer_out,
                             struct ds_accel_error *error); /* freed by free() */
    int32_t (*host_device_pointer)(ds_accel_plugin_device_t *device, void *host_pointer,
                                   void **device_pointer_out, struct ds_accel_error *error);
    /* Optional: describe memory that the program allocated without the plugin; *info stays as it is
     * if the runtime does not know the address. Called without enter(). */
    void (*pointer_info)(ds_accel_plugin_instance_t *instance, const void *pointer,
                         struct ds_accel_pointer_info *info);
    /* Optional: a copy that is complete on return. Without it the frame uses copy_async() and
     * stream_synchronize() on a stream that it keeps for such copies, or, without stream_create(),
     * on the default stream. */
    int32_t (*copy)(ds_accel_plugin_device_t *device, void *destination, const void *source,
                    uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error);
    /* kind: DS_ACCEL_COPY_*, HOST_TO_HOST included; INFER only with UNIFIED_ADDRESSES. */
    int32_t (*copy_async)(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          const void *source, uint64_t size_bytes, uint32_t kind,
                          struct ds_accel_error *error);
    int32_t (*copy_peer_async)(ds_accel_plugin_device_t *device, void *native_stream,
                               ds_accel_plugin_device_t *destination_device, void *destination,
                               ds_accel_plugin_device_t *source_device, const void *source,
                               uint64_t size_bytes, struct ds_accel_error *error);
    /* Fill count elements of pattern_bytes (1, 2 or 4). fill_widths: the widths that the runtime
       has; the frame implements the others with copies, each twice as large as the one before. */
    int32_t (*fill_async)(ds_accel_plugin_device_t *device, void *native_stream, void *destination,
                          uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                          struct ds_accel_error *error);
    uint32_t fill_widths; /* 1 | 2 | 4; VENDOR_FILLS_ANYWHERE: at any address */
    int32_t (*memory_info)(ds_accel_plugin_device_t *device, uint64_t *free_out,
                           uint64_t *total_out, struct ds_accel_error *error);
    /* Optional, if a program can use the device's memory without this plugin (cpu: the heap).
       usage_info() fills the values of mem_info() except the limit of mem_set_limit().
       usage_stats() finds the frame's counters in *stats and corrects them for mem_stats().
       usage_reset_peaks() implements mem_reset_peaks(). */
    int32_t (*usage_info)(ds_accel_plugin_device_t *device, struct ds_accel_memory_info *info,
                          struct ds_accel_error *error);
    int32_t (*usage_stats)(ds_accel_plugin_device_t *device, struct ds_accel_memory_stats *stats,
                           struct ds_accel_error *error);
    int32_t (*usage_reset_peaks)(ds_accel_plugin_device_t *device, uint32_t which,
                                 struct ds_accel_error *error);
    int32_t (*trim)(ds_accel_plugin_device_t *device, uint64_t keep_bytes,
                    struct ds_accel_error *error);
    int32_t (*alloc_async)(ds_accel_plugin_device_t *device, void *native_stream,
                           uint64_t size_bytes, void **pointer_out, struct ds_accel_error *error);
    int32_t (*free_async)(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                          struct ds_accel_error *error);
    /* In place of free_async(), also for memory of alloc(): in stream order the runtime calls
       before(argument), from any thread, and frees the memory after that; until then the bytes
       count as allocated. */
    int32_t (*free_in_order)(ds_accel_plugin_device_t *device, void *native_stream, void *pointer,
                             uint64_t size_bytes, void (*before)(void *argument), void *argument,
                             struct ds_accel_error *error);

    /* -- virtual memory -- */

    int32_t (*vmem_granularity)(ds_accel_plugin_device_t *device, uint32_t flags,
                                uint64_t *minimum_out, uint64_t *recommended_out,
                                struct ds_accel_error *error);
    int32_t (*vmem_reserve)(ds_accel_plugin_device_t *device, uint64_t size_bytes,
                            uint64_t align_bytes, void *hint, void **address_out,
                            struct ds_accel_error *error);
    int32_t (*vmem_release)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                            struct ds_accel_error *error);
    /* Optional: ERR_INVALID for a range that the slot rejects whether or not it is mapped. */
    int32_t (*vmem_check)(ds_accel_plugin_device_t *device, const char *slot, const void *address,
                          uint64_t size_bytes, struct ds_accel_error *error);
    int32_t (*vmem_create)(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                           void **native_out, struct ds_accel_error *error);
    void (*vmem_destroy)(ds_accel_plugin_device_t *device, void *native);
    int32_t (*vmem_map)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                        void *native, uint64_t offset_bytes, struct ds_accel_error *error);
    int32_t (*vmem_unmap)(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes,
                          struct ds_accel_error *error);
    int32_t (*vmem_set_access)(ds_accel_plugin_device_t *accessor, void *address,
                               uint64_t size_bytes, uint32_t access, struct ds_accel_error *error);

    /* -- graphs -- */

    int32_t (*capture_begin)(ds_accel_plugin_device_t *device, void *native_stream, uint32_t mode,
                             struct ds_accel_error *error);
    /* ERR_STATE if the capture was broken, which ends the capture too. */
    int32_t (*capture_end)(ds_accel_plugin_device_t *device, void *native_stream, void **native_out,
                           struct ds_accel_error *error);
    int32_t (*capture_status)(ds_accel_plugin_device_t *device, void *native_stream,
                              uint32_t *status_out, struct ds_accel_error *error);
    /* Optional, with tracks_captures: ERR_STATE if the stream captures, for a slot that a capture
     * cannot contain. */
    int32_t (*capture_check)(ds_accel_plugin_device_t *device, void *native_stream,
                             const char *slot, struct ds_accel_error *error);
    void (*graph_destroy)(ds_accel_plugin_device_t *device, void *native);
    /* NULL: graph_launch() launches the graph, not an instance of it (ACL's model running
     * instance). */
    int32_t (*graph_instantiate)(ds_accel_plugin_device_t *device, void *native, void **exec_out,
                                 struct ds_accel_error *error);
    void (*graph_exec_destroy)(ds_accel_plugin_device_t *device, void *exec);
    int32_t (*graph_launch)(ds_accel_plugin_device_t *device, void *exec, void *native_stream,
                            struct ds_accel_error *error);
    int32_t (*graph_exec_update)(ds_accel_plugin_device_t *device, void *exec, void *native,
                                 uint32_t *result_out, struct ds_accel_error *error);
    int32_t (*graph_node_count)(ds_accel_plugin_device_t *device, void *native, uint64_t *count_out,
                                struct ds_accel_error *error);
    int32_t (*graph_dump)(ds_accel_plugin_device_t *device, void *native, ds_accel_text_sink_t sink,
                          void *user_data, struct ds_accel_error *error);

    /* -- facts -- */

    int32_t (*dtype_support)(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error);
    /* Creates no context; telemetry->valid marks the members that were filled. */
    int32_t (*telemetry)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         struct ds_accel_telemetry *telemetry, struct ds_accel_error *error);
    /* Fill at most capacity elements, and always set *count_out to the number of all processes. The
     * frame (vendor_*.c) sets struct_size. */
    int32_t (*processes)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                         struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                         struct ds_accel_error *error);
    int32_t (*links)(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                     struct ds_accel_link *links, uint32_t capacity, uint32_t *count_out,
                     struct ds_accel_error *error);
    /* domain and category may be NULL. The frame calls range_pop() only if a range is open. */
    int32_t (*range_push)(ds_accel_plugin_instance_t *instance, const char *message,
                          const char *domain, const char *category, struct ds_accel_error *error);
    int32_t (*range_pop)(ds_accel_plugin_instance_t *instance, const char *domain,
                         struct ds_accel_error *error);
    int32_t (*profiler_start)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);
    int32_t (*profiler_stop)(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error);
    /* Write the device's name in variable visible[which], "2" or "GPU-..."; -1: it has none. */
    int (*visible_token)(ds_accel_plugin_device_t *device, uint32_t which, char *token,
                         size_t token_size);

    /* -- peers and sharing -- */

    int32_t (*peer_can_access)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                               uint32_t *can_out, struct ds_accel_error *error);
    int32_t (*peer_enable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                           struct ds_accel_error *error); /* already enabled: OK */
    int32_t (*peer_disable)(ds_accel_plugin_device_t *device, ds_accel_plugin_device_t *peer,
                            struct ds_accel_error *error); /* not enabled: OK */
    /* base: the start of an allocation; handle[memory_handle_bytes]. */
    int32_t (*ipc_memory_export)(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                                 void *handle, struct ds_accel_error *error);
    int32_t (*ipc_memory_unexport)(ds_accel_plugin_device_t *device, const void *handle,
                                   struct ds_accel_error *error); /* NULL: nothing to do */
    int32_t (*ipc_memory_open)(ds_accel_plugin_device_t *device, const void *handle,
                               uint64_t size_bytes, void **base_out, struct ds_accel_error *error);
    int32_t (*ipc_memory_close)(ds_accel_plugin_device_t *device, const void *handle, void *base,
                                struct ds_accel_error *error);
    int32_t (*ipc_event_export)(ds_accel_plugin_device_t *device, void *native, void *handle,
                                struct ds_accel_error *error);
    int32_t (*ipc_event_open)(ds_accel_plugin_device_t *device, const void *handle,
                              void **native_out, struct ds_accel_error *error);
    int32_t (*dmabuf_export)(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                             int32_t *fd_out, uint64_t *offset_out, struct ds_accel_error *error);

    /* -- native handles; NULL: native itself is the vendor's handle -- */

    uint64_t (*native_handle)(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
    /* kind STREAM or EVENT: return the backend's native value for the program's own handle. A
     * backend without this function uses the handle itself. native_unwrap(), which is optional too,
     * is called when the wrapper is destroyed, also for kind MEMORY. */
    int32_t (*native_wrap)(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t handle,
                           void **native_out, struct ds_accel_error *error);
    void (*native_unwrap)(ds_accel_plugin_device_t *device, uint32_t kind, void *native);
    /* For memory that is an object (cl_mem): return the object that contains an address, and the
     * offset in the object. */
    int32_t (*native_memory)(ds_accel_plugin_device_t *device, const void *pointer,
                             uint64_t *object_out, uint64_t *offset_out,
                             struct ds_accel_error *error);
    int32_t (*native_memory_wrap)(ds_accel_plugin_device_t *device, uint64_t object,
                                  void **pointer_out, uint64_t *size_out,
                                  struct ds_accel_error *error);
    uint32_t wraps_events; /* native_wrap accepts the program's own events of the runtime */
};

/* ---- the register of addresses, for backends (vendor_block.c, vendor_vmem.c) ----------------- */

/* Is a part of the range registered by mem_register(), or being registered now? A range that is
 * being unregistered does not count. */
int vendor_is_registered(ds_accel_plugin_instance_t *instance, uintptr_t start, uintptr_t end);
/* Called by a host_register() that fails: the range no longer counts as being registered. */
void vendor_register_failed(ds_accel_plugin_instance_t *instance, void *pointer);
/* Unmap every mapping in the range, of any device, before the addresses are released. It waits for
 * calls of other threads that are making, changing or unmapping one. */
void vendor_vmem_clear(ds_accel_plugin_device_t *device, void *address, uint64_t size_bytes);

/* Defined once by each plugin. */
extern const struct vendor_backend vendor_backend;

/* Fill the slots that vendor_backend has functions for: the fill function of DS_ACCEL_PLUGIN(). */
void vendor_fill(struct ds_accel_plugin *table);

#endif
