/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Declarations shared by the files of the conformance suite. conformance.c starts a process for the
 * checks and makes the report, conformance_serve.c runs in that process, conformance_list.c lists
 * the checks, most other conformance_*.c files contain the checks, and this header declares the
 * functions that checks use.
 *
 * A check is a function that makes calls and states what it expects of them:
 *
 *     static void check_default(struct ds_accel__run *run)
 *     {
 *         ds_accel_plugin_stream_t *first = NULL;
 *         ds_accel_plugin_stream_t *second = NULL;
 *
 *         WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &first);
 *         WANT(run, DS_ACCEL_OK, stream_get_default, run->device, &second);
 *         EXPECT(run, first == second, "two calls gave two handles");
 *     }
 *
 * The process exits at the first expectation that is not met. The next check runs in a new process,
 * so that the plugin's state after the failure cannot affect it, and no check has to clean up after
 * a failure. A check that returns has passed, unless it called ds_accel__skip().
 */
#ifndef DS_ACCEL_CONFORMANCE_CONFORMANCE_H
#define DS_ACCEL_CONFORMANCE_CONFORMANCE_H

#include "base/reason.h"
#include "host/loader.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct ds_accel__candidate;
struct ds_accel__guard;

/* How far the plugin must be brought up (loaded, started, device opened) before a check. */
enum ds_accel__stage {
    DS_ACCEL__STAGE_FILE,     /* plugin not loaded; the check loads it, in a process of its own */
    DS_ACCEL__STAGE_TABLE,    /* loaded */
    DS_ACCEL__STAGE_INSTANCE, /* probed and started */
    /* the run's device is open, and run->stream created if the plugin has streams */
    DS_ACCEL__STAGE_DEVICE
};

/* Flags of a check. */
#define DS_ACCEL__CHECK_ALONE 1u /* the process runs no other check before or after it */
#define DS_ACCEL__CHECK_TRAP 2u  /* a crash breaks the check's own rule, not DSA-P26 */
#define DS_ACCEL__CHECK_EACH 4u  /* runs on each device, as all checks of the stage DEVICE do */

#define DS_ACCEL__CHECK_SLOTS 7

struct ds_accel__run {
    const char *path;
    json_t *request;       /* the request of conformance.c */
    const char *name;      /* name of the backend */
    uint32_t device_index; /* the device that the checks use */
    size_t position;       /* position of the running check */
    bool is_skipped;       /* the check was skipped; reason has the cause */
    char reason[256];
    struct ds_accel__candidate *candidate; /* the plugin, for the host's log */
    const struct ds_accel_host *host;      /* the host's table, as every plugin receives it */
    struct ds_accel__guard *guard;         /* state of the process before the plugin's code ran */
    ds_accel__module_t *module;
    const struct ds_accel_plugin *theirs; /* the plugin's own table */
    /*
     * wrappers that record each call, for slots that host and plugin both have, and for all slots
     * that return void; other slots: NULL
     */
    struct ds_accel_plugin table;
    bool has_table;
    struct ds_accel_verdict verdict;
    ds_accel_plugin_instance_t *instance;
    uint32_t device_count;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *stream; /* NULL if no stream could be created */
    struct ds_accel_backend_info info;
    struct ds_accel_error error;  /* error of the latest call */
    unsigned char error_tail[64]; /* memory after error, for members of a newer host's struct */
    uint32_t error_tail_bytes;    /* bytes of error_tail that error.struct_size includes */
};

struct ds_accel__check {
    uint32_t rule;
    const char *group;
    const char *name; /* what the check tests, as a short phrase */
    enum ds_accel__stage stage;
    uint32_t flags; /* DS_ACCEL__CHECK_* */
    void (*run)(struct ds_accel__run *run);
    /* required slots, as offsets into the table, terminated by 0 */
    size_t slots[DS_ACCEL__CHECK_SLOTS];
};

/*
 * A slot's offset in the table. A check is skipped if the plugin does not implement all slots of
 * the check's slots[].
 */
#define SLOT(name) offsetof(struct ds_accel_plugin, name)

struct ds_accel__check_list {
    const struct ds_accel__check *checks;
    size_t count;
};

extern const struct ds_accel__check_list ds_accel__checks_life, ds_accel__checks_calls,
    ds_accel__checks_structs, ds_accel__checks_device, ds_accel__checks_stream,
    ds_accel__checks_event, ds_accel__checks_memory, ds_accel__checks_host_memory,
    ds_accel__checks_vmem, ds_accel__checks_graph, ds_accel__checks_facts, ds_accel__checks_native,
    ds_accel__checks_sharing, ds_accel__checks_async, ds_accel__checks_flags, ds_accel__checks_free,
    ds_accel__checks_texts, ds_accel__checks_left, ds_accel__checks_devices, ds_accel__checks_units,
    ds_accel__checks_fixed, ds_accel__checks_dmabuf, ds_accel__checks_log;

/* conformance_list.c: the check at a position in the order of execution; NULL after the last. */
const struct ds_accel__check *ds_accel__check_at(size_t position);
/* True if the check is selected by `only`: its rule, its group, or NULL for all. */
bool ds_accel__check_is_chosen(const struct ds_accel__check *check, const char *only);
/* True if the check runs on each device; false if it runs only on the first. */
bool ds_accel__check_is_each(const struct ds_accel__check *check);
/* The title of the rule DSA-P<number> in docs/plugin-abi.md; NULL if there is no such rule. */
const char *ds_accel__rule_title(uint32_t rule);
/* conformance_slots.c: the name, such as "mem_alloc", of the slot at an offset of the table. */
const char *ds_accel__slot_name(size_t offset);

/* ---- recording of slot calls (conformance_witness.c) ---------------------------------------- */

#define DS_ACCEL__WITNESS_PAGE 4 /* number of the inherited descriptor of struct ds_accel__page */
#define DS_ACCEL__WITNESS_CALLS 64u
#define DS_ACCEL__WITNESS_SLOTS (sizeof(struct ds_accel_plugin) / sizeof(void *))

/* Memory shared by the processes of the suite. Slots are stored as offsets in the table; 0:
 * none. */
struct ds_accel__page {
    struct {
        atomic_uint slot; /* the slot being called */
        atomic_int process;
    } calls[DS_ACCEL__WITNESS_CALLS]; /* calls in progress, by all threads */
    atomic_uint last;                 /* the slot that returned last */
    atomic_uint step; /* current step of a check with several steps, from 1; 0: none */
    atomic_uchar returned[DS_ACCEL__WITNESS_SLOTS]; /* the slot has returned at least once */
};

/* Plugin code outside of slots that may also terminate the process. */
enum ds_accel__witnessed {
    DS_ACCEL__WITNESS_LOAD,
    DS_ACCEL__WITNESS_ENTRY
};

/*
 * Map the struct ds_accel__page to which the descriptor refers. The descriptor stays open, for peer
 * processes that inherit it. False if the mapping fails.
 */
bool ds_accel__witness_open(int fd);
int ds_accel__witness_descriptor(void);
unsigned ds_accel__witness_enter(enum ds_accel__witnessed what);
void ds_accel__witness_leave(unsigned call, enum ds_accel__witnessed what);
/* Replace the table's functions by wrappers that record each call and then make it. */
void ds_accel__witness_table(const struct ds_accel__run *run, struct ds_accel_plugin *table);
/*
 * Write the calls in progress in one process (0: in all processes), as ", in mem_alloc and
 * stream_query". If there are none and process is 0, write the call that returned last. Returns the
 * first slot in which a call is in progress; 0: none.
 */
size_t ds_accel__witness_read(const struct ds_accel__page *of, int process, char *text,
                              size_t text_size);
/*
 * The calls that were in progress when the process, a child of this one, terminated, as text of
 * ds_accel__witness_read(); "" if there were none.
 */
const char *ds_accel__witness_peer(int process);
bool ds_accel__witness_has_returned(const struct ds_accel__page *of, size_t slot);
/* Do not call a slot any more: a check that calls it is skipped, and the process exits. why is
 * the part of the message after the slot's name, as in "mem_alloc did not come back in an earlier
 * check". */
void ds_accel__witness_refuse(size_t slot, const char *why);
bool ds_accel__witness_is_refused(size_t slot);
/* True if the plugin implements the slot. run->table does not show that for slots that return
 * void: it has wrappers of all of them, also of missing slots. */
bool ds_accel__witness_has(size_t slot);
/*
 * Steps of a check that consists of several calls. A step that terminated its process is omitted
 * when the check runs again in a new process.
 */
#define DS_ACCEL__WITNESS_STEPS 256u
void ds_accel__witness_step(unsigned step);
void ds_accel__witness_refuse_step(unsigned step);
bool ds_accel__witness_is_refused_step(unsigned step);
/*
 * Write the slot's name and the reason why the slot is no longer called, as in "mem_alloc did not
 * come back in an earlier check".
 */
void ds_accel__witness_explain(size_t slot, char *why, size_t why_size);
const char *ds_accel__witness_name(size_t slot);

/* ---- results of checks (conformance_say.c) -------------------------------------------------- */

/* Send one line of JSON to the suite's caller. The arguments are those of json_pack(). */
void ds_accel__say(const char *format, ...);
/* The number of bytes printed since this process began. */
int64_t ds_accel__printed_bytes(void);
/* Report that the check failed, and why, and exit. May be called on any thread. */
_Noreturn void ds_accel__check_fail(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Report the check's result. rule is the rule that the plugin broke; 0: the check's rule. */
void ds_accel__say_result(const struct ds_accel__run *run, const char *result, uint32_t rule,
                          const char *detail);
/* Report why the check was skipped, and exit. May be called on any thread. */
_Noreturn void ds_accel__say_skipped(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Mark the check as skipped, with the reason. The check must then return. */
void ds_accel__skip(struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * If is_there is false, report that the check was skipped because the plugin lacks the slot, and
 * exit.
 */
void ds_accel__need(const struct ds_accel__run *run, bool is_there, const char *slot);
/* As ds_accel__need(), for the slot at an offset of the run's table. */
void ds_accel__need_slot(const struct ds_accel__run *run, size_t offset);

/* ---- tools for checks (conformance_kit.c) --------------------------------------------------- */

bool ds_accel__has_slot(const struct ds_accel__run *run, size_t offset);
/* Reset the run's error to what a host passes to a call (sizes set, codes zero, texts empty), and
 * return it. */
struct ds_accel_error *ds_accel__fresh_error(struct ds_accel__run *run);
/* Fail the check unless the slot returned the wanted status. If that is an error but the run's
 * error was not filled, fail with DSA-P15. */
void ds_accel__want(struct ds_accel__run *run, int32_t wanted, const char *slot, int32_t status);
/* Fail the check unless the slot returned an error, and filled the run's error (DSA-P15). Any error
 * is accepted, because the ABI does not specify which. */
void ds_accel__want_error(struct ds_accel__run *run, const char *slot, int32_t status);
const char *ds_accel__status_text(int32_t status);

#define EXPECT(run, condition, ...) \
    do { \
        if (!(condition)) { \
            ds_accel__check_fail(run, __VA_ARGS__); \
        } \
    } while (0)
/* Call a slot; the run's error is appended as the last argument. */
#define CALL(run, slot, ...) \
    (ds_accel__need_slot(run, SLOT(slot)), \
     (run)->table.slot(__VA_ARGS__, ds_accel__fresh_error(run)))
#define WANT(run, wanted, slot, ...) \
    ds_accel__want(run, wanted, #slot, CALL(run, slot, __VA_ARGS__))
#define WANT_ERROR(run, slot, ...) ds_accel__want_error(run, #slot, CALL(run, slot, __VA_ARGS__))

/*
 * If a call returned DS_ACCEL_ERR_UNSUPPORTED and the device does not set the flag that promises
 * such calls, skip the check, with the plugin's message as the reason, and return true. Otherwise
 * return false.
 */
bool ds_accel__lacks(struct ds_accel__run *run, int32_t status, uint64_t flag);

/* Allocate and free memory of the run's device. If the call fails, the check fails. */
void *ds_accel__take(struct ds_accel__run *run, uint64_t size_bytes);
void ds_accel__give(struct ds_accel__run *run, void *pointer);
/* Copy to and from the device, and wait for the copy. */
void ds_accel__put(struct ds_accel__run *run, void *device, const void *host, size_t size_bytes);
void ds_accel__get(struct ds_accel__run *run, void *host, const void *device, size_t size_bytes);
/* Fill memory with a pattern that depends on the position and on the seed. */
void ds_accel__pattern(unsigned char *bytes, size_t size_bytes, unsigned seed);
/* Fail the check unless the device's memory contains the pattern of this seed. */
void ds_accel__want_pattern(struct ds_accel__run *run, const void *device, size_t size_bytes,
                            unsigned seed, const char *what);
/* Create a stream or an event of the run's device; wait for a stream. If the call fails, the
 * check fails. */
ds_accel_plugin_stream_t *ds_accel__stream(struct ds_accel__run *run);
ds_accel_plugin_event_t *ds_accel__event(struct ds_accel__run *run, uint32_t flags);
void ds_accel__wait(struct ds_accel__run *run, ds_accel_plugin_stream_t *stream);

/* Work that takes a while: a host task that sleeps, and sets is_done to 1 when it finishes. */
struct ds_accel__slow {
    atomic_int runs;
    atomic_int is_done;
    int32_t status; /* status that the plugin passed to the task */
};
#define DS_ACCEL__SLOW_NS 2000000

void ds_accel__slow_start(struct ds_accel__run *run, struct ds_accel__slow *slow,
                          ds_accel_plugin_stream_t *stream);

/* ---- held work (conformance_gate.c) --------------------------------------------------------- */

/*
 * A gate is a host task that does not finish until the suite opens the gate, so that work queued
 * after it stays pending while a check makes calls. No check depends on timing: calls that must not
 * wait for the task are made by another thread, with a generous time limit.
 */
struct ds_accel__hold {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool has_begun;
    bool has_ended;
    /* the plugin ran the task within the call that queued it, so no work can be held */
    bool is_within;
};

/* A call that another thread makes. */
typedef int32_t (*ds_accel__call_t)(struct ds_accel__run *run, void *user_data);
struct ds_accel__caller {
    struct ds_accel__run run; /* the thread's copy of the run, with the error of the call */
    ds_accel__call_t call;
    void *user_data;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    int32_t status;
};

/*
 * Queue the gate on the stream. False if the check was skipped, because the backend runs host tasks
 * within its calls or because stream_host_task() waits for the task (oclgrind does all work in
 * clFlush()).
 */
bool ds_accel__gate_close(struct ds_accel__run *run, struct ds_accel__hold *gate,
                          ds_accel_plugin_stream_t *stream);
/* Let the gate's task finish, so that work queued after it runs. May be called again. */
void ds_accel__gate_open(struct ds_accel__hold *gate);
bool ds_accel__gate_is_closed(struct ds_accel__hold *gate);

void ds_accel__caller_start(struct ds_accel__run *run, struct ds_accel__caller *caller,
                            ds_accel__call_t call, void *user_data);
/* Time limit for a call that must return. */
#define DS_ACCEL__CALL_NS UINT64_C(5000000000)
/* Time limit for a call that is allowed to wait. If the limit is too short, a check can miss a
 * defect of a plugin, but cannot report a defect that does not exist. */
#define DS_ACCEL__GRACE_NS UINT64_C(200000000)
bool ds_accel__caller_returns(struct ds_accel__caller *caller, uint64_t within_ns);
/* Wait for the call to return, copy its error to the run, and return its status. */
int32_t ds_accel__caller_finish(struct ds_accel__run *run, struct ds_accel__caller *caller);
/* Fail the check unless the call returns the wanted status while the gate is closed. False if the
 * check was skipped, because the gate's task finished within the call. */
bool ds_accel__want_prompt(struct ds_accel__run *run, struct ds_accel__hold *gate, int32_t wanted,
                           const char *slot, ds_accel__call_t call, void *user_data);
/*
 * Make a call that prepares a check, while the gate is closed. If the call waits for the gate, open
 * the gate, skip the check and return false: the check of another rule covers such waits. Also skip
 * the check and return false if the gate's task ran within the call. If the call fails, the check
 * fails.
 */
bool ds_accel__prepare(struct ds_accel__run *run, struct ds_accel__hold *gate, const char *slot,
                       ds_accel__call_t call, void *user_data);

/* ---- bringing the plugin up (conformance_start.c) ------------------------------------------- */

/* Load the plugin and call its entry function, unless this process has done so. False if that
 * fails; then why contains the reason. */
bool ds_accel__run_load(struct ds_accel__run *run, char *why, size_t why_size);
/* Bring the plugin up to the stage. False if that fails; then why contains the reason. If the
 * plugin cannot be loaded or is not available, or has no device run->device_index, the process
 * exits. */
bool ds_accel__run_bring_up(struct ds_accel__run *run, enum ds_accel__stage stage, char *why,
                            size_t why_size);
/* Report to the suite's caller that the plugin cannot be checked, and exit. */
_Noreturn void ds_accel__run_give_up(const char *why);
/* If there are devices but not the run's device, report that to the suite's caller and exit.
 * Skipping all checks that need the device would look like success. */
void ds_accel__run_check_device(const struct ds_accel__run *run, uint32_t device_count);
/* True if any of the slots must no longer be called; then why contains the reason. */
bool ds_accel__slots_are_refused(const size_t *slots, size_t count, char *why, size_t why_size);

/* ---- other helpers for checks --------------------------------------------------------------- */

/* Start another instance with a host, and open one of its devices. If either fails, the check
 * fails. */
ds_accel_plugin_instance_t *ds_accel__run_init(struct ds_accel__run *run,
                                               const struct ds_accel_host *host);
ds_accel_plugin_device_t *ds_accel__run_open(struct ds_accel__run *run,
                                             ds_accel_plugin_instance_t *instance,
                                             uint32_t device_index);
/*
 * Start the plugin in another process, the peer, and store in *peer the number of devices that the
 * peer finds and the descriptions of the first DS_ACCEL__PEER_DEVICES, by
 * ds_accel__describe_device(). The caller sets the inputs: an environment variable of the peer, and
 * handles of exported memory and of an event, which the peer opens and uses. False if the peer did
 * not finish; then peer->problem contains the reason, if known.
 */
#define DS_ACCEL__PEER_DEVICES 8u
#define DS_ACCEL__PEER_HANDLE 1024u
#define DS_ACCEL__PEER_BYTES \
    5000u /* size of the shared memory, which the caller fills with the pattern of PEER_SEED */
#define DS_ACCEL__PEER_SEED 50u /* the peer then writes the pattern of the next seed */
struct ds_accel__peer {
    const char *variable; /* NULL: none */
    const char *value;
    const void *handle;       /* memory handle of info.memory_handle_bytes bytes; NULL: none */
    const void *event_handle; /* event handle of info.event_handle_bytes bytes; NULL: none */
    uint32_t count;
    char devices[DS_ACCEL__PEER_DEVICES][160];
    char problem[256];
};
bool ds_accel__run_peer(struct ds_accel__run *run, struct ds_accel__peer *peer);
/* The part of ds_accel__run_peer() that runs in the peer process. */
void ds_accel__serve_peer(struct ds_accel__run *run);
/* Report to the suite's caller the number of devices, and a setting of the environment variable
 * that selects devices: the value that reverses the order of the devices, or if there is none, the
 * value that hides all devices but the last. Both texts are "" if the backend has no such variable
 * (conformance_devices.c). */
void ds_accel__say_devices(struct ds_accel__run *run);
/* Write a description of a device that does not depend on its index: UUID, PCI address and the
 * vendor's index. */
void ds_accel__describe_device(struct ds_accel__run *run, uint32_t device_index, char *text,
                               size_t text_size);
/* True if a text contains a sanitizer's report. Then *rule_out is the broken rule (0: the check's
 * rule) and line is the report's first line (conformance_output.c). */
bool ds_accel__find_report(const char *text, size_t size, uint32_t *rule_out, char *line,
                           size_t line_size);
/*
 * Callback of the type ds_accel__conduct_t: fails the check because of a side effect of the plugin,
 * unless the configuration tolerates this side effect.
 */
void ds_accel__want_no_conduct(void *user_data, enum ds_accel__reason_id reason,
                               const char *detail);
/* Fail the check if the process has printed anything, stdout or stderr is closed, or stdin is not
 * the file that ds_accel__note_stdin() recorded. */
void ds_accel__want_silence(const struct ds_accel__run *run);
/* Record which file stdin is. */
void ds_accel__note_stdin(void);
/* The number of threads and of descriptors of this process, each plus a constant: they serve only
 * for comparison. */
size_t ds_accel__count_threads(void);
size_t ds_accel__count_descriptors(void);

/* The tour: a valid call of each slot that needs only a device and its objects. conformance_calls.c
 * uses it to check rules that apply to every call. */
struct ds_accel__tour_stop {
    const char *group;
    size_t slot;
    int32_t (*call)(struct ds_accel__run *run);
    bool may_lack; /* ERR_UNSUPPORTED is allowed: the device may lack the feature */
};
typedef void (*ds_accel__tour_t)(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                                 int32_t status, void *user_data);
/* Make the tour's calls of all slots that the plugin has, except slots that must no longer be
 * called and, without run->stream, calls that need it. visit, unless NULL, is called after each. */
void ds_accel__tour(struct ds_accel__run *run, ds_accel__tour_t visit, void *user_data);
/* Make the tour's call of one slot. False if the tour has no call of the slot or would omit it. */
bool ds_accel__tour_stop(struct ds_accel__run *run, size_t slot);

/* Stops of the tour that make several calls (conformance_visits.c). */
int32_t ds_accel__visit_elapsed(struct ds_accel__run *run);
int32_t ds_accel__visit_copy_async(struct ds_accel__run *run);
int32_t ds_accel__visit_register(struct ds_accel__run *run);
int32_t ds_accel__visit_vmem(struct ds_accel__run *run);
int32_t ds_accel__visit_graph(struct ds_accel__run *run);
int32_t ds_accel__visit_ipc_memory(struct ds_accel__run *run);
int32_t ds_accel__visit_ipc_event(struct ds_accel__run *run);
int32_t ds_accel__visit_dmabuf(struct ds_accel__run *run);
int32_t ds_accel__visit_variable(struct ds_accel__run *run);

/* A call that must be rejected. Its outputs are filled with a pattern before the call. */
struct ds_accel__refusal {
    const char *what; /* "size 0" */
    size_t slot;
    bool is_unknown; /* an undefined bit or enumeration value (DSA-P18) */
};
typedef void (*ds_accel__refusal_t)(struct ds_accel__run *run,
                                    const struct ds_accel__refusal *refusal, int32_t status,
                                    bool is_touched, void *user_data);
/* Make every call that must be rejected and whose slot the plugin has, except calls that terminated
 * an earlier process or that need a missing run->stream. visit is called after each. */
void ds_accel__refuse_all(struct ds_accel__run *run, ds_accel__refusal_t visit, void *user_data);

/* The main function of ds-accel-probe --conformance, which runs the checks. */
int ds_accel__conformance_main(void);

#endif
