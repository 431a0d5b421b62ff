/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated accelerator: devices with memory, streams that really run concurrently with the
 * caller, events, graphs, failures on demand. Shims (tests/sim/<vendor>) provide the ABI of a
 * vendor's library.
 *
 * A JSON file whose path is in SIM_MACHINE (tests/sim/machines) describes the simulated machine.
 * Without it a library has no device, as on a machine where only the library is installed.
 *
 * A shim checks its caller. An error for which the vendor's manual has a code returns that code;
 * undefined behaviour (a destroyed handle, freed memory, a call before init, another thread's
 * context) is a defect of the caller: sim_misuse() reports the defect and aborts, so that no test
 * can miss it.
 *
 * The host cannot access device memory: its addresses are mapped without access, and the engine
 * uses a second mapping of the bytes. A plugin that accesses device memory crashes, as on hardware.
 */
#ifndef DS_ACCEL_TESTS_SIM_ENGINE_H
#define DS_ACCEL_TESTS_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_ASSERT(condition, text) _Static_assert(condition, text)

/* ---- the machine ---------------------------------------------------------------------------- */

/*
 * One device of this vendor, or one part of a device. Its position in the file is its "physical"
 * number.
 */
struct sim_device {
    uint32_t physical; /* position among the vendor's devices in the file, parts included */
    char name[128];
    char uuid_text[64]; /* the UUID as written in the file */
    uint8_t uuid[16];
    char pci_address[32]; /* such as "0000:65:00.0" */
    uint32_t pci_domain, pci_bus, pci_slot, pci_function;
    int32_t numa_node;
    uint64_t memory_bytes;
    uint32_t compute_major, compute_minor;
    uint32_t speed; /* higher is faster, for the order "fastest" */
    uint32_t minor; /* number of its node: /dev/nvidia<minor> */
    int32_t parent; /* physical number of the whole device; -1: this is a whole device */
    uint32_t partition_instance, partition_subinstance; /* MIG instance or tile number */
    bool is_partition;
    bool is_partitioned; /* the device has parts */
    const void *facts;   /* the JSON object, for sim_number() and sim_text() */
};

/* The vendor's devices, read once; the count is 0 without SIM_MACHINE. vendor: such as "cuda". */
uint32_t sim_device_count(const char *vendor);
struct sim_device *sim_device_at(uint32_t physical);
/* Return a fact beyond the struct, of a device or of the vendor ("vendors": {"cuda": {...}}); they
 * return otherwise if the fact is missing. */
int64_t sim_number(const struct sim_device *device, const char *key, int64_t otherwise);
const char *sim_text(const struct sim_device *device, const char *key, const char *otherwise);
/* Returns the item at index `at` of a fact that is a list; NULL past its end. */
const char *sim_item(const struct sim_device *device, const char *key, uint32_t at);
int64_t sim_vendor_number(const char *key, int64_t otherwise);
const char *sim_vendor_text(const char *key, const char *otherwise);
/*
 * Stores the order in which the vendor's library counts its whole devices: order[] gets physical
 * numbers. how is "fastest" (speed, then PCI address), "pci", "file" or "shuffled" (by a number in
 * the file); NULL: the vendor's "order" in the file, whose default is otherwise.
 */
uint32_t sim_order(const char *how, const char *otherwise, uint32_t *order, uint32_t capacity);

/* ---- the start of every call ---------------------------------------------------------------- */

/*
 * Called first by every exported function: counts the call, waits for the scripted latency, and
 * returns the scripted code, or 0. Scripts: SIM_FAIL="cuMemAlloc_v2:3=2,*:17" (the third
 * cuMemAlloc_v2 returns 2; the 17th call of all returns sim_failure);
 * SIM_LATENCY_US="cuMemcpyHtoDAsync_v2=500,copy=2000" (calls by name; works by their kinds copy,
 * fill, task); SIM_LOSE="0@copy:5" (device 0 is lost when its fifth copy is half done; with a
 * call's name, when that call begins). N "*" means every time. SIM_REPORT=FILE gets, at exit, the
 * number of calls, the scripted failures, and the live objects, as "calls 123\nfailed
 * cuMemAlloc_v2\nalive stream 2\nalive device-memory 1\n"; with %p in FILE, the process id, the
 * file belongs to this process alone and is always up to date, even after _exit().
 */
int64_t sim_enter(const char *call);
/*
 * The runtime has been shut down, as after synDestroy(): a child that is forked afterwards may
 * start it, like a child that is forked before the first call.
 */
void sim_shut_down(void);
/* The code for "*:N" without "=CODE": the shim sets it before its first call. */
extern int64_t sim_failure;
/* Host tasks run one at a time, even those of different streams; set by the shim. */
extern bool sim_tasks_in_turn;
/* Reports the caller's error, with the name of the call, and aborts. */
__attribute__((format(printf, 1, 2), noreturn)) void sim_misuse(const char *format, ...);
/* Lost devices: their works fail, and their calls return the shim's code for a lost device. */
bool sim_is_lost(uint32_t physical);
void sim_device_lose(uint32_t physical);
/* Resets a lost device: the device and its streams no longer fail. The shim frees the memory. */
void sim_device_reset(uint32_t physical);

/* ---- handles -------------------------------------------------------------------------------- */

/*
 * A registry of live handles, so that a shim recognizes its own: the shim registers handles that it
 * returns, and checks handles that it receives. sim_handle_check() reports misuse for a handle that
 * was never returned, was destroyed, or is of another kind; kinds are static texts, "stream".
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
    uint32_t physical; /* physical number of the device */
    uint64_t id;       /* identifies the block; never reused */
    uint32_t flags;    /* flags of the shim */
    uint32_t import_count;
};

/*
 * Allocates memory. NULL: the device (or, for pinned memory, the vendor's "pinned_limit_bytes") has
 * insufficient memory. The host cannot access device memory; pinned and managed memory is ordinary
 * memory. align_bytes 0 means 256.
 */
void *sim_alloc(uint32_t physical, uint64_t size_bytes, uint64_t align_bytes,
                enum sim_memory_kind kind, uint32_t flags);
/* Frees a block, without waiting for work. It is misuse if address is not the start of a block of
 * that kind. */
void sim_free(void *address, enum sim_memory_kind kind, const char *call);
/* Finds the block that contains the address; false: none. */
bool sim_find(const void *address, struct sim_block *block_out);
/* Pins memory of the caller; false: all or part of it is already pinned. */
bool sim_register(uint32_t physical, void *address, uint64_t size_bytes, uint32_t flags);
bool sim_unregister(void *address);
void sim_memory_info(uint32_t physical, uint64_t *free_out, uint64_t *total_out);
/*
 * Returns true if [address, +size) is within one live block of the kinds (a bit set of 1 << kind);
 * false for unregistered host memory. The shim decides whether that is misuse.
 */
bool sim_range_is(const void *address, uint64_t size_bytes, uint32_t kinds);
/* Returns the address at which the engine itself may access the bytes: that of device memory's
 * second mapping, or the given address. */
void *sim_bytes(const void *address);

/* Virtual memory: reserved addresses, physical memory, mappings. */
void *sim_reserve(uint64_t size_bytes, uint64_t align_bytes, void *hint);
bool sim_unreserve(void *address, uint64_t size_bytes);
struct sim_physical *sim_physical_create(uint32_t physical, uint64_t size_bytes);
void sim_physical_put(struct sim_physical *memory); /* mappings keep the memory alive */
bool sim_map(void *address, uint64_t size_bytes, struct sim_physical *memory, uint64_t offset);
bool sim_unmap(void *address, uint64_t size_bytes);
/* access: 0 none, 1 read, 3 read and write. */
bool sim_set_access(void *address, uint64_t size_bytes, uint32_t access);

/*
 * Sharing between processes: a handle of 64 bytes that another process of the same user can open
 * until this process frees the memory.
 */
bool sim_export(const void *base, void *handle64);
bool sim_export_is_ours(const void *handle64); /* exported by this process */
void *sim_import(uint32_t physical, const void *handle64, uint64_t *size_out); /* NULL: the owner
                                                                                * has freed the
                                                                                * memory */
bool sim_import_close(void *address);
int sim_export_fd(const void *base, uint64_t size_bytes); /* returns a descriptor; -1 on failure */
void *sim_import_fd(uint32_t physical, int fd, uint64_t offset_bytes, uint64_t size_bytes);

/* ---- streams and events --------------------------------------------------------------------- */

#define SIM_STREAM_DEFAULT 1u      /* waits for the device's blocking streams, and the reverse */
#define SIM_STREAM_NON_BLOCKING 2u /* not ordered with the default stream */

/* Creates a stream. Its worker thread is started with the first work. */
struct sim_stream *sim_stream_create(uint32_t physical, uint32_t flags, int32_t priority);
/* Destroys the handle; queued work still runs to its end. */
void sim_stream_destroy(struct sim_stream *stream);
uint32_t sim_stream_physical(const struct sim_stream *stream);
int32_t sim_stream_priority(const struct sim_stream *stream);
/* Returns 0 if the stream is idle, 1 if it is busy, -1 if a work failed (lost device; sticky until
 * the device is reset). */
int sim_stream_query(struct sim_stream *stream);
/* Waits; timeout_ns UINT64_MAX: forever. Returns 0 if idle, 1 at the timeout, -1 if a work
 * failed. */
int sim_stream_synchronize(struct sim_stream *stream, uint64_t timeout_ns);
int sim_device_synchronize(uint32_t physical);
/* Returns true if the calling thread is a stream's worker, which runs a caller's task. */
bool sim_is_worker(void);

/*
 * Submit work to a stream; while the stream captures, add it to the capture instead. Return 0; -1:
 * the device is lost, or the work breaks the capture. Copies and fills check memory when they run:
 * freed memory is then misuse.
 */
int sim_submit_copy(struct sim_stream *stream, void *destination, const void *source,
                    uint64_t size_bytes);
int sim_submit_fill(struct sim_stream *stream, void *destination, const void *pattern,
                    uint32_t pattern_bytes, uint64_t size_bytes);
int sim_submit_task(struct sim_stream *stream, void (*task)(void *), void *argument);
/* Submits a step of the device itself (a reset, a free): like a task, but without a task's
 * latency. */
int sim_submit_step(struct sim_stream *stream, void (*step)(void *), void *argument);

/*
 * An event refers to a mark that a stream reaches. record creates a new mark, reached after the
 * stream's work so far (like CUDA). reset, signal and wait use one mark that is signalled once
 * until it is reset (like Level Zero). A wait uses the event's current mark; an event without a
 * mark counts as reached.
 */
struct sim_event *sim_event_create(uint32_t physical, uint32_t flags);
void sim_event_destroy(struct sim_event *event); /* waits for its mark continue */
uint32_t sim_event_flags(const struct sim_event *event);
uint32_t sim_event_physical(const struct sim_event *event);
int sim_event_record(struct sim_event *event, struct sim_stream *stream);
int sim_event_reset(struct sim_event *event);
int sim_event_signal(struct sim_event *event, struct sim_stream *stream); /* NULL: signals now */
/* Records the event behind the work of all streams of its device, none of which captures. */
void sim_event_record_all(struct sim_event *event);
int sim_stream_wait_event(struct sim_stream *stream, struct sim_event *event);
bool sim_event_is_recorded(const struct sim_event *event);
bool sim_event_is_captured(const struct sim_event *event); /* true: its mark is in a capture */
/* Returns true if its mark is in a capture that has not ended. */
bool sim_event_is_in_a_capture(const struct sim_event *event);
/* Breaks the capture that its mark is in; returns false if there is none, or it has ended. */
bool sim_event_break_capture(struct sim_event *event);
int sim_event_query(struct sim_event *event); /* 0: reached, 1: not yet, -1: lost */
int sim_event_synchronize(struct sim_event *event, uint64_t timeout_ns);
uint64_t sim_event_time_ns(const struct sim_event *event); /* when the mark was reached */
/* Sharing of events between processes. */
bool sim_event_export(struct sim_event *event, void *handle64);
struct sim_event *sim_event_import(uint32_t physical, const void *handle64);

/* ---- graphs --------------------------------------------------------------------------------- */

enum sim_capture {
    SIM_CAPTURE_NONE,
    SIM_CAPTURE_ACTIVE,
    SIM_CAPTURE_BROKEN
};

/*
 * Begins a capture; false: the stream already captures, or is the default stream. mode: 0 global, 1
 * thread, 2 relaxed.
 */
bool sim_capture_begin(struct sim_stream *stream, uint32_t mode);
/*
 * Ends the capture and returns the graph; NULL: the capture was broken, or other streams were not
 * joined.
 */
struct sim_graph *sim_capture_end(struct sim_stream *stream);
enum sim_capture sim_capture_status(const struct sim_stream *stream);
/*
 * Reports a call that a capture of that mode forbids (synchronizing, freeing): breaks the capture.
 */
void sim_capture_forbid(uint32_t physical);
void sim_capture_break(struct sim_stream *stream);
/* Breaks every capture of the device; returns true if there was one. */
bool sim_capture_break_all(uint32_t physical);
/* Breaks the captures of the device's streams that the default stream waits for. */
void sim_capture_break_blocking(uint32_t physical);
/*
 * A stream that joined a capture leaves it, and the capture continues. What the stream captured
 * must still be joined.
 */
void sim_capture_part(struct sim_stream *stream);
/* Returns true if a stream of this thread captures in a mode that forbids unsafe calls. */
bool sim_capture_is_strict(void);
/* Returns true if this thread itself has such a capture, regardless of other threads. */
bool sim_capture_is_own(void);
/* Returns true if a stream that the default stream would wait for captures on the device. */
bool sim_capture_is_blocking(uint32_t physical);
/*
 * Returns true if this thread may end the stream's capture: it began the capture, or the mode is
 * relaxed.
 */
bool sim_capture_is_mine(const struct sim_stream *stream);
uint64_t sim_graph_node_count(const struct sim_graph *graph);
/* Returns "copy", "fill", "task", "wait" or "record", the kind of a node. */
const char *sim_graph_node_kind(const struct sim_graph *graph, uint64_t node);
struct sim_graph *sim_graph_copy(const struct sim_graph *graph); /* returns an instance */
/* Updates the parameters of the instance if the graphs have the same shape; false: they differ. */
bool sim_graph_update(struct sim_graph *instance, const struct sim_graph *graph);
int sim_graph_launch(struct sim_graph *instance, struct sim_stream *stream);
void sim_graph_destroy(struct sim_graph *graph); /* launches in flight keep their nodes alive */

/* ---- ranges --------------------------------------------------------------------------------- */

/* Profiler ranges of this thread: the file SIM_RANGES gets a line "push NAME" or "pop" for each. */
int sim_range_push(const char *text); /* returns the depth before */
int sim_range_pop(void);              /* returns the depth afterwards, -1: no range was open */

#endif
