/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Functions that runtimes modelled on CUDA's have in common (HIP, SDAA, SUPA): a current device per
 * thread, a default stream per device for the NULL handle, visible devices, kinds of copies, a last
 * error per thread, calls that a capture forbids. A shim declares its vendor's ABI, in its own
 * order of arguments and with its own numbers, and passes each call on in a common order:
 *
 *     SIM_EXPORT int hipFree(void *pointer) { RT_ENTER(); return RT_RESULT(rt_free(pointer)); }
 */
#ifndef DS_ACCEL_TESTS_SIM_RUNTIME_RUNTIME_H
#define DS_ACCEL_TESTS_SIM_RUNTIME_RUNTIME_H

#include "engine.h"

/* The vendor's numbers: one code per cause. */
struct rt_vendor {
    const char *name;           /* "rocm" */
    const char *order;          /* how its library orders whole devices */
    const char *const *visible; /* NULL-terminated: its variables, in the order they are applied */
    const char *alternative;    /* replaces the last of these variables if that is unset or
                                 * empty; an empty value of either hides nothing */
    bool skips_repeats;         /* last variable: repeats are skipped; others: they end the list */
    int invalid_value, out_of_memory, invalid_direction, no_device, invalid_device;
    int peer_unsupported, peer_enabled, peer_not_enabled;
    int invalid_handle, illegal_state, not_ready, lost;
    int already_registered, not_registered, not_supported;
    int capture_unsupported, capture_invalidated, capture_implicit, captured_event;
    int capture_wrong_thread, capture_unjoined, update_failure; /* capture_unjoined: if is_hip */
    bool is_hip; /* while a stream captures, calls do what AMD's HIP runtime does; docs/backends.md
                  * lists the differences from CUDA's runtime */
};
extern const struct rt_vendor rt_vendor;

/* Begins a call: returns the scripted code, or the code of a thread whose device is lost. */
#define RT_ENTER() \
    do { \
        int code_ = rt_enter(__func__, true); \
        if (code_ != 0) { \
            return code_; \
        } \
    } while (0)
/* Begins a call that uses no device. */
#define RT_ENTER_ANY() \
    do { \
        int code_ = rt_enter(__func__, false); \
        if (code_ != 0) { \
            return code_; \
        } \
    } while (0)
#define RT_RESULT(code) rt_result(code)

int rt_enter(const char *call, bool needs_device);
int rt_result(int code); /* also stores the code as the thread's last error */
int rt_last_error(bool clears);

/* devices, numbered as the process sees them */

int rt_count(int *count_out); /* no_device if there is no device */
/* Returns a visible device; NULL: no such device. */
struct sim_device *rt_device(int index);
int rt_set_device(int index);
int rt_get_device(int *index_out);
uint32_t rt_current(void); /* returns a physical number */
int rt_device_synchronize(void);
int rt_can_access_peer(int *can_out, int index, int peer);
int rt_enable_peer(int peer);
int rt_disable_peer(int peer);

/* -- memory -- */

enum rt_kind {
    RT_HOST_TO_HOST,
    RT_HOST_TO_DEVICE,
    RT_DEVICE_TO_HOST,
    RT_DEVICE_TO_DEVICE,
    RT_DEFAULT
};

int rt_memory_info(size_t *free_out, size_t *total_out);
int rt_malloc(void **pointer_out, size_t size_bytes);
int rt_free(void *pointer);
int rt_host_alloc(void **pointer_out, size_t size_bytes, uint32_t flags);
int rt_host_free(void *pointer);
int rt_host_register(void *pointer, size_t size_bytes, uint32_t flags);
int rt_host_unregister(void *pointer);
int rt_host_device_pointer(void **device_out, void *host);
int rt_managed(void **pointer_out, size_t size_bytes);
int rt_copy(void *destination, const void *source, size_t size_bytes, int kind, void *stream);
int rt_copy_peer(void *destination, int destination_device, const void *source, int source_device,
                 size_t size_bytes, void *stream);
int rt_fill(void *destination, const void *pattern, uint32_t pattern_bytes, size_t count,
            void *stream);
int rt_malloc_async(void **pointer_out, size_t size_bytes, void *stream);
int rt_free_async(void *pointer, void *stream);
int rt_ipc_memory_get(void *handle64, void *pointer);
int rt_ipc_memory_open(void **pointer_out, const void *handle64);
int rt_ipc_memory_close(void *pointer);

/* -- streams and events -- */

int rt_stream_create(void **stream_out, bool is_non_blocking, int priority);
int rt_stream_destroy(void *stream, bool waits);
int rt_stream_query(void *stream);
int rt_stream_synchronize(void *stream);
int rt_stream_wait_event(void *stream, void *event);
int rt_stream_task(void *stream, void (*task)(void *), void *argument);

#define RT_EVENT_BLOCKING 1u
#define RT_EVENT_NO_TIMING 2u
#define RT_EVENT_INTERPROCESS 4u
int rt_event_create(void **event_out, uint32_t flags);
int rt_event_destroy(void *event);
int rt_event_record(void *event, void *stream);
int rt_event_query(void *event);
int rt_event_synchronize(void *event);
int rt_event_elapsed(float *milliseconds_out, void *start, void *end);
int rt_ipc_event_get(void *handle64, void *event);
int rt_ipc_event_open(void **event_out, const void *handle64);

/* captures and graphs; modes 0 global, 1 thread, 2 relaxed */

int rt_exchange_mode(int *mode);
int rt_capture_begin(void *stream, int mode);
int rt_capture_end(void *stream, void **graph_out);
int rt_capture_status(void *stream, int *status_out); /* 0 no, 1 yes, 2 broken */
int rt_graph_instantiate(void **exec_out, void *graph);
int rt_graph_update(void *exec, void *graph, int *result_out);
int rt_graph_launch(void *exec, void *stream);
int rt_graph_exec_destroy(void *exec);
int rt_graph_destroy(void *graph);
int rt_graph_nodes(void *graph, size_t *count_out);

#endif
