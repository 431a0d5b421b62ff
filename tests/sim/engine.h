/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated accelerator: devices with memory, streams that really run beside the caller, events,
 * graphs, failures on demand. Shims (tests/sim/<vendor>) give it the ABI of a vendor's library.
 *
 * What is simulated is described by one JSON file, named by SIM_MACHINE (tests/sim/machines).
 * Without it a library has no device, as on a machine that has the library installed and nothing
 * else.
 *
 * A shim checks what its caller does. What a vendor's manual gives an error code for is answered
 * with that code; what it leaves undefined (a destroyed handle, freed memory, a call before init,
 * another thread's context) is a defect of the caller: sim_misuse() says which and aborts, so that
 * no test can pass over it.
 *
 * Device memory is not the host's: its addresses are mapped without access, and the engine reaches
 * the bytes through a second mapping. A plugin that touches device memory crashes, as on hardware.
 */
#ifndef DS_ACCEL_SIM_ENGINE_H
#define DS_ACCEL_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_ASSERT(condition, text) _Static_assert(condition, text)

/* ---- the machine ---------------------------------------------------------------------------- */

/* One device of this vendor, or one part of a device. Numbered as in the file: "physical". */
struct sim_device {
    uint32_t physical; /* position among the vendor's devices in the file, parts included */
    char name[128];
    char uuid_text[64]; /* as in the file */
    uint8_t uuid[16];
    char pci_address[32]; /* "0000:65:00.0" */
    uint32_t pci_domain, pci_bus, pci_slot, pci_function;
    int32_t numa_node;
    uint64_t memory_bytes;
    uint32_t compute_major, compute_minor;
    uint32_t speed; /* for orders "fastest first" */
    uint32_t minor; /* of its node: /dev/nvidia<minor> */
    int32_t parent; /* physical of the whole device, -1: it is one */
    uint32_t partition_instance, partition_subinstance; /* MIG instance, tile number */
    bool is_partition;
    bool is_partitioned; /* has parts */
    const void *facts;   /* the JSON object, for sim_number() and sim_text() */
};

/* The vendor's devices, read once; count 0 without SIM_MACHINE. vendor: "cuda", "rocm" ... */
uint32_t sim_device_count(const char *vendor);
struct sim_device *sim_device_at(uint32_t physical);
/* Facts beyond the struct: of a device, and of "vendors": {"cuda": {...}}. */
int64_t sim_number(const struct sim_device *device, const char *key, int64_t otherwise);
const char *sim_text(const struct sim_device *device, const char *key, const char *otherwise);
/* Text number `at` of a fact that is a list; NULL past its end. */
const char *sim_item(const struct sim_device *device, const char *key, uint32_t at);
int64_t sim_vendor_number(const char *key, int64_t otherwise);
const char *sim_vendor_text(const char *key, const char *otherwise);
/*
 * The order in which the vendor's library counts its whole devices: order[] = physical numbers.
 * how: "fastest" (speed, then PCI), "pci", "file", "shuffled" (by a number in the file); NULL: the
 * vendor's "order", which defaults to otherwise.
 */
uint32_t sim_order(const char *how, const char *otherwise, uint32_t *order, uint32_t capacity);

/* ---- every call ----------------------------------------------------------------------------- */

/*
 * Begins every exported function: counts it, waits the scripted latency, and returns the scripted
 * code, or 0. Scripts: SIM_FAIL="cuMemAlloc_v2:3=2,*:17" (the third cuMemAlloc_v2 returns 2; the
 * 17th call of all returns sim_failure); SIM_LATENCY_US="cuMemcpyHtoDAsync_v2=500,copy=2000" (calls
 * by name; the works copy, fill, task by theirs); SIM_LOSE="0@copy:5" (device 0 is lost when its
 * fifth copy is half done; a call's name: when that call begins). N "*" is every time.
 * SIM_REPORT=FILE gets, at exit, how many calls were made, which failures were given, and what is
 * still alive, as "calls 123\nfailed cuMemAlloc_v2\nalive stream 2\nalive device-memory 1\n";
 * with %p in FILE, the process's number, it is a file of this process alone that is up to date at
 * any time, also after _exit().
 */
int64_t sim_enter(const char *call);
/*
 * The runtime has been shut down, as after synDestroy(): a child that is forked from here on may
 * start it, as one that is forked before the first call may.
 */
void sim_shut_down(void);
/* The code for "*:N" without "=CODE": set by the shim before its first call. */
extern int64_t sim_failure;
/* Say what the caller did wrong, with the call, and abort(). */
__attribute__((format(printf, 1, 2), noreturn)) void sim_misuse(const char *format, ...);
/* Lost devices: their works fail, their calls answer the shim's code. */
bool sim_is_lost(uint32_t physical);
void sim_device_lose(uint32_t physical);
/* Back to life: neither it nor its streams are failed any more. Memory is the shim's to free. */
void sim_device_reset(uint32_t physical);

/* ---- handles -------------------------------------------------------------------------------- */

/*
 * A registry of live handles, so that a shim knows its own: register what it returns, check what it
 * is given. sim_handle_check() is misuse for a handle that was never given, was destroyed, or is of
 * another kind; kinds are static texts, "stream".
 */
void sim_handle_add(const void *handle, const char *kind);
void sim_handle_check(const void *handle, const char *kind, const char *call);
void sim_handle_remove(const void *handle, const char *kind, const char *call);
bool sim_handle_is(const void *handle, const char *kind);
uint32_t sim_handle_count(const char *kind);

/* ---- memory --------------------------------------------------------------------------------- */

enum sim_memory_kind {
    SIM_DEVICE,
    SIM_PINNED,
    SIM_MANAGED,
    SIM_REGISTERED
};

struct sim_block {
    void *address;
    uint64_t size_bytes;
    enum sim_memory_kind kind;
    uint32_t physical; /* device */
    uint64_t id;       /* never used again */
    uint32_t flags;    /* the shim's */
    uint32_t import_count;
};

/* NULL: the device (or, for pinned memory, the vendor's "pinned_limit_bytes") has no room. Device
   memory without access for the host; pinned and managed memory is ordinary. align 0: 256 bytes. */
void *sim_alloc(uint32_t physical, uint64_t size_bytes, uint64_t align_bytes,
                enum sim_memory_kind kind, uint32_t flags);
/* The start of a block of that kind; anything else is misuse. Waits for nothing. */
void sim_free(void *address, enum sim_memory_kind kind, const char *call);
/* The block that holds the address, or false. */
bool sim_find(const void *address, struct sim_block *block_out);
/* Pin memory of the caller; false: (partly) pinned already. */
bool sim_register(uint32_t physical, void *address, uint64_t size_bytes, uint32_t flags);
bool sim_unregister(void *address);
void sim_memory_info(uint32_t physical, uint64_t *free_out, uint64_t *total_out);
/*
 * Is [address, +size) whole in one live block of the kinds (a bit set of 1 << kind)? For host
 * memory that nobody registered: false. Misuse is the shim's to declare.
 */
bool sim_range_is(const void *address, uint64_t size_bytes, uint32_t kinds);
/* Where the engine itself may touch those bytes: device memory's second mapping, or the address. */
void *sim_bytes(const void *address);

/* Virtual memory: reserved addresses, physical memory, mappings. */
void *sim_reserve(uint64_t size_bytes, uint64_t align_bytes, void *hint);
bool sim_unreserve(void *address, uint64_t size_bytes);
struct sim_physical *sim_physical_create(uint32_t physical, uint64_t size_bytes);
void sim_physical_put(struct sim_physical *memory); /* mappings keep it */
bool sim_map(void *address, uint64_t size_bytes, struct sim_physical *memory, uint64_t offset);
bool sim_unmap(void *address, uint64_t size_bytes);
bool sim_set_access(void *address, uint64_t size_bytes, uint32_t access); /* 0, 1, 3 */

/* Between processes: 64 bytes that another process of the user can open while this one has it. */
bool sim_export(const void *base, void *handle64);
bool sim_export_is_ours(const void *handle64); /* made by this process */
void *sim_import(uint32_t physical, const void *handle64, uint64_t *size_out); /* NULL: gone */
bool sim_import_close(void *address);
int sim_export_fd(const void *base, uint64_t size_bytes); /* a descriptor; -1 */
void *sim_import_fd(uint32_t physical, int fd, uint64_t offset_bytes, uint64_t size_bytes);

/* ---- streams and events --------------------------------------------------------------------- */

#define SIM_STREAM_DEFAULT 1u      /* waits for the device's blocking streams, and they for it */
#define SIM_STREAM_NON_BLOCKING 2u /* takes no part in that */

/* One worker thread each, started with the first work. */
struct sim_stream *sim_stream_create(uint32_t physical, uint32_t flags, int32_t priority);
/* Work in it goes on to its end; the handle is gone. */
void sim_stream_destroy(struct sim_stream *stream);
uint32_t sim_stream_physical(const struct sim_stream *stream);
int32_t sim_stream_priority(const struct sim_stream *stream);
/* 0 idle, 1 busy, -1 a work of it failed (lost device; sticky until the device's reset). */
int sim_stream_query(struct sim_stream *stream);
/* timeout_ns UINT64_MAX: for ever. 0, 1 not yet, -1 as above. */
int sim_stream_synchronize(struct sim_stream *stream, uint64_t timeout_ns);
int sim_device_synchronize(uint32_t physical);
/* Is the calling thread a stream's: does it run a caller's task? */
bool sim_is_worker(void);

/*
 * Give work to a stream; while it captures, to its capture instead. 0; -1: lost, or the capture is
 * broken by it. Copies and fills look at memory when they run: freed memory is misuse then.
 */
int sim_submit_copy(struct sim_stream *stream, void *destination, const void *source,
                    uint64_t size_bytes);
int sim_submit_fill(struct sim_stream *stream, void *destination, const void *pattern,
                    uint32_t pattern_bytes, uint64_t size_bytes);
int sim_submit_task(struct sim_stream *stream, void (*task)(void *), void *argument);
/* The device's own step (a reset, a free): as a task, without its latency. */
int sim_submit_step(struct sim_stream *stream, void (*step)(void *), void *argument);

/*
 * An event is a mark that a stream reaches. record: a new mark, reached after the stream's work so
 * far (CUDA's way). reset, signal, wait: one mark that is signalled once until it is reset (Level
 * Zero's way). Waiting takes the mark that the event has at that moment; an event without one is
 * reached.
 */
struct sim_event *sim_event_create(uint32_t physical, uint32_t flags);
void sim_event_destroy(struct sim_event *event); /* who waits for its mark goes on waiting */
uint32_t sim_event_flags(const struct sim_event *event);
uint32_t sim_event_physical(const struct sim_event *event);
int sim_event_record(struct sim_event *event, struct sim_stream *stream);
int sim_event_reset(struct sim_event *event);
int sim_event_signal(struct sim_event *event, struct sim_stream *stream); /* stream NULL: now */
int sim_stream_wait_event(struct sim_stream *stream, struct sim_event *event);
bool sim_event_is_recorded(const struct sim_event *event);
bool sim_event_is_captured(const struct sim_event *event); /* its mark lies in a capture */
int sim_event_query(struct sim_event *event);              /* 0 reached, 1 not yet, -1 lost */
int sim_event_synchronize(struct sim_event *event, uint64_t timeout_ns);
uint64_t sim_event_time_ns(const struct sim_event *event); /* when it was reached */
/* Between processes. */
bool sim_event_export(struct sim_event *event, void *handle64);
struct sim_event *sim_event_import(uint32_t physical, const void *handle64);

/* ---- graphs --------------------------------------------------------------------------------- */

enum sim_capture {
    SIM_CAPTURE_NONE,
    SIM_CAPTURE_ACTIVE,
    SIM_CAPTURE_BROKEN
};

/* false: it captures already, or is the default stream. mode: 0 global, 1 thread, 2 relaxed. */
bool sim_capture_begin(struct sim_stream *stream, uint32_t mode);
/* The graph; NULL: broken (or other streams were not joined), and ended. */
struct sim_graph *sim_capture_end(struct sim_stream *stream);
enum sim_capture sim_capture_status(const struct sim_stream *stream);
/* A call that a capture of that mode forbids (synchronizing, freeing) was made: break it. */
void sim_capture_forbid(uint32_t physical);
void sim_capture_break(struct sim_stream *stream);
/* Does any stream of this thread capture, in a mode that forbids unsafe calls? */
bool sim_capture_is_strict(void);
/* Has this thread such a capture of its own, whatever others have? */
bool sim_capture_is_own(void);
/* Does a stream of the device capture that the default stream would wait for? */
bool sim_capture_is_blocking(uint32_t physical);
/* May this thread end the stream's capture: did it begin there (or is its mode relaxed)? */
bool sim_capture_is_mine(const struct sim_stream *stream);
uint64_t sim_graph_node_count(const struct sim_graph *graph);
/* "copy", "fill", "task", "wait", "record" of node i. */
const char *sim_graph_node_kind(const struct sim_graph *graph, uint64_t node);
struct sim_graph *sim_graph_copy(const struct sim_graph *graph); /* an instance */
/* Same shape: take its parameters. */
bool sim_graph_update(struct sim_graph *instance, const struct sim_graph *graph);
int sim_graph_launch(struct sim_graph *instance, struct sim_stream *stream);
void sim_graph_destroy(struct sim_graph *graph); /* launches in flight keep what they need */

/* ---- ranges --------------------------------------------------------------------------------- */

/* Profiler ranges of this thread: SIM_RANGES=FILE gets a line "push NAME" or "pop" for each. */
int sim_range_push(const char *text); /* depth before */
int sim_range_pop(void);              /* depth after, -1 none was open */

#endif
