/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The engine's internal header: declarations that its files share and shims do not see.
 *
 * There are two locks. sim_lock guards streams, works, marks, events, captures and graphs;
 * sim_changed is broadcast whenever any of them changes, so that every wait uses the same
 * condition. The memory's lock (memory.c) guards blocks and reservations; it is acquired last.
 * Neither lock is held while bytes move or a caller's task runs.
 */
#ifndef DS_ACCEL_TESTS_SIM_INSIDE_H
#define DS_ACCEL_TESTS_SIM_INSIDE_H

#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>

#pragma GCC visibility push(hidden)

#define SIM_MAX_DEVICES 64u
#define SIM_PAGE 4096u

/* ---- enter.c -------------------------------------------------------------------------------- */

extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed;

void sim_locked(void);
void sim_unlocked(void);
/*
 * Returns true in a child of the process that used the engine, which does not work there: its
 * threads do not exist in the child.
 */
bool sim_is_child(void);
/* Return memory for the engine itself; when out of memory, the simulator reports it and aborts. */
void *sim_zalloc(size_t size_bytes);
void *sim_grow(void *memory, size_t count, size_t element_bytes);
/* Returns the latency in SIM_LATENCY_US for a name, in microseconds. */
uint64_t sim_latency_us(const char *name);
/* Counts a work of that kind on the device; returns true if a rule of SIM_LOSE applies to it. */
bool sim_loses(uint32_t physical, const char *what);

/* Updates the report after a value in it has changed. The caller holds no lock. */
void sim_report_update(void);
/* Writes a line "alive KIND COUNT" for each kind of live handles (handle.c); returns the length. */
int sim_handle_report(char *text, size_t text_size);

/* ---- machine.c ------------------------------------------------------------------------------ */

/* Returns the whole device of a part; -1: a whole device, or no device with that number. */
int32_t sim_parent(uint32_t physical);

/* ---- memory.c, vmem.c ----------------------------------------------------------------------- */

/*
 * Finds the bytes of [address, +size) for a work and keeps the memory alive until it is released.
 * Returns the bytes' address. Device memory that is not live is misuse.
 */
void *sim_memory_hold(const void *address, uint64_t size_bytes, const char *what);
void sim_memory_release(const void *address, uint64_t size_bytes);
/* Writes a line "alive KIND COUNT" for each kind of live memory; returns the length. */
int sim_memory_report(char *text, size_t text_size);

/* The place of a live block, or of a part of a block, in the file of its device's pages. */
struct sim_place {
    int fd;
    uint64_t offset_bytes;
    struct sim_block block;
    uint64_t tail_bytes; /* offset of the file's table of exported ids */
    uint32_t slot;       /* the block's slot in the table; UINT32_MAX: none */
};
/* Finds the place of a block. mark_exported: also assigns a slot if the block has none. */
bool sim_memory_place(const void *address, bool mark_exported, struct sim_place *place_out);
/*
 * Maps pages of another process's device memory, or of this process's; the same pages always get
 * the same address. NULL: no free addresses.
 */
void *sim_memory_adopt(uint32_t physical, int fd, uint64_t offset_bytes, uint64_t size_bytes,
                       uint64_t id);

/* ---- stream.c ------------------------------------------------------------------------------- */

enum sim_work_kind {
    SIM_WORK_COPY,
    SIM_WORK_FILL,
    SIM_WORK_TASK,
    SIM_WORK_STEP,
    SIM_WORK_WAIT,
    SIM_WORK_RECORD,
    SIM_WORK_LAUNCH
};

/* The action of a work or, in a graph, of a node. */
struct sim_action {
    enum sim_work_kind kind;
    void *destination;
    const void *source;
    uint64_t size_bytes;
    unsigned char pattern[16];
    uint32_t pattern_bytes;
    void (*task)(void *);
    void *argument;
    struct sim_mark *mark;   /* WAIT, RECORD: a reference */
    struct sim_event *event; /* RECORD, WAIT in a graph: a reference */
    struct sim_body *body;   /* LAUNCH: a reference */
    struct sim_mark *after;  /* LAUNCH: reference to the instance's previous launch, or NULL */
};

struct sim_work {
    struct sim_work *next;
    uint64_t stamp; /* numbers all works of the process in the order of submission */
    struct sim_action action;
};

struct sim_stream {
    struct sim_stream *next;
    uint32_t physical, flags;
    int32_t priority;
    struct sim_work *head, *tail; /* head is the oldest incomplete work, perhaps running */
    pthread_cond_t wake;
    bool has_worker, is_destroyed, is_failed;
    bool is_moving; /* the worker thread is moving bytes */
    /* Used while the stream captures. */
    struct sim_captured *capture;
    uint64_t *heads; /* nodes that its next node depends on */
    size_t head_count;
};

/* The caller holds sim_lock. */
bool sim_stream_is_done(const struct sim_stream *stream, uint64_t stamp);
uint64_t sim_stamp(void);
int sim_stream_put(struct sim_stream *stream, const struct sim_action *action);
void sim_action_drop(struct sim_action *action);
/* Runs a copy, fill, task or step; the caller does not hold sim_lock. false: the device was
 * lost. */
bool sim_action_run(struct sim_stream *stream, const struct sim_action *action);
const char *sim_action_name(enum sim_work_kind kind);
/* Waits for a change until the time, or forever (UINT64_MAX); false: timed out. */
bool sim_wait_changed(uint64_t deadline_ns, bool polls);
struct sim_stream *sim_streams(void);
/* Converts a timeout to a time on CLOCK_MONOTONIC; UINT64_MAX remains UINT64_MAX. */
uint64_t sim_deadline(uint64_t timeout_ns);

/* ---- event.c -------------------------------------------------------------------------------- */

/* Guarded by sim_lock; reference-counted. */
struct sim_mark {
    uint32_t holders;
    bool is_reached, is_lost;
    uint64_t time_ns;
    bool is_captured;
    uint64_t capture_id;
    uint64_t *nodes;
    size_t node_count;
    struct sim_shared *shared; /* shared mark: reached when shared->reached is */
    uint64_t shared_number;
    struct sim_event *event; /* a reference: the owner of the shared page */
};

/* A page of memory that the processes of a shared event map. */
struct sim_shared {
    _Atomic uint64_t recorded, reached, time_ns;
};

struct sim_event {
    uint32_t holders;
    uint32_t physical, flags;
    struct sim_mark *mark;
    struct sim_shared *shared;
    int shared_fd;
    bool is_signal; /* reset and signal are used, instead of record */
};

struct sim_mark *sim_mark_create(void);
struct sim_mark *sim_mark_get(struct sim_mark *mark);
void sim_mark_put(struct sim_mark *mark);
bool sim_mark_is_reached(struct sim_mark *mark);
void sim_mark_reach(struct sim_mark *mark, bool is_lost);
void sim_event_get(struct sim_event *event);
void sim_event_put(struct sim_event *event);

/* ---- capture.c, graph.c --------------------------------------------------------------------- */

struct sim_node {
    struct sim_action action;
    uint64_t *needs;
    size_t need_count;
};

/*
 * Nodes, shared by a graph, its instances and launches in flight. Guarded by sim_lock;
 * reference-counted.
 */
struct sim_body {
    uint32_t holders;
    struct sim_node *nodes;
    size_t count;
};

struct sim_graph {
    struct sim_body *body;
    struct sim_mark *last; /* mark of the latest launch */
};

struct sim_captured {
    struct sim_captured *next;
    uint64_t id;
    uint32_t mode;
    pthread_t thread;
    struct sim_stream *origin;
    struct sim_body *body;
    bool is_broken;
};

struct sim_body *sim_body_create(void);
void sim_body_put(struct sim_body *body);
/* Appends a node; takes ownership of the action. Returns the node's number. */
uint64_t sim_body_add(struct sim_body *body, const struct sim_action *action, const uint64_t *needs,
                      size_t need_count);
/* Add to the capture of a capturing stream, instead of submitting. The caller holds sim_lock. */
int sim_capture_put(struct sim_stream *stream, const struct sim_action *action);
int sim_capture_launch(struct sim_stream *stream, const struct sim_body *body);
void sim_capture_record(struct sim_stream *stream, struct sim_event *event);
int sim_capture_wait(struct sim_stream *stream, struct sim_event *event);
void sim_capture_leave(struct sim_stream *stream);
/*
 * Runs the nodes in an order that their dependencies allow, a different one each time. The caller
 * does not hold sim_lock.
 */
bool sim_body_run(struct sim_stream *stream, const struct sim_body *body);

#pragma GCC visibility pop

#endif
