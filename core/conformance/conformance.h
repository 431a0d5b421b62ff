/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of the conformance suite share. conformance.c starts a process for the checks and
 * makes the report, conformance_serve.c is that process, conformance_list.c lists the checks, most
 * other conformance_*.c hold them, and this header declares what checks are written with.
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
 * The first expectation that is not met ends the process: the plugin's state after the failure
 * cannot affect the next check, which gets a process of its own, and no check has to clean up after
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

/* How far the plugin must be brought up before a check. */
enum ds_accel__stage {
    DS_ACCEL__STAGE_FILE,     /* not loaded: the check loads it, in a process of its own */
    DS_ACCEL__STAGE_TABLE,    /* loaded */
    DS_ACCEL__STAGE_INSTANCE, /* probed and started */
    DS_ACCEL__STAGE_DEVICE    /* the device of the run is open, and a stream if there are any */
};

/* Flags of a check. */
#define DS_ACCEL__CHECK_ALONE 1u /* in a process that ran no other check and runs none after it */
#define DS_ACCEL__CHECK_TRAP 2u  /* a crash breaks the check's own rule, not DSA-P26 */
#define DS_ACCEL__CHECK_EACH 4u  /* runs on each device, as all checks of the stage DEVICE do */

#define DS_ACCEL__CHECK_SLOTS 7

struct ds_accel__run {
    const char *path;
    json_t *request;       /* from the suite's caller */
    const char *name;      /* of the backend */
    uint32_t device_index; /* the device to work with */
    size_t position;       /* of the running check */
    bool is_skipped;       /* the check did not run, for this reason */
    char reason[256];
    struct ds_accel__candidate *candidate; /* the host logs for it */
    const struct ds_accel_host *host;      /* the host's table, as every plugin receives it */
    struct ds_accel__guard *guard;         /* the process before any code of the plugin */
    ds_accel__module_t *module;
    const struct ds_accel_plugin *theirs; /* the plugin's own table */
    struct ds_accel_plugin table; /* slots that host and plugin know; missing slots are NULL */
    bool has_table;
    struct ds_accel_verdict verdict;
    ds_accel_plugin_instance_t *instance;
    uint32_t device_count;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *stream; /* NULL where there are no streams */
    struct ds_accel_backend_info info;
    struct ds_accel_error error;  /* of the latest call */
    unsigned char error_tail[64]; /* after error, as in a newer host's error */
    uint32_t error_tail_bytes;    /* of those, the bytes that the error's struct_size includes */
};

struct ds_accel__check {
    uint32_t rule;
    const char *group;
    const char *name; /* the expectation, as a sentence without its end */
    enum ds_accel__stage stage;
    uint32_t flags; /* DS_ACCEL__CHECK_* */
    void (*run)(struct ds_accel__run *run);
    size_t slots[DS_ACCEL__CHECK_SLOTS]; /* required, as offsets into the table; 0 ends them */
};

/* For the tables of checks: a slot that a check requires; without it the check is skipped. */
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

/* conformance_list.c. The check at a position, in the order in which they run; NULL past the
 * last. */
const struct ds_accel__check *ds_accel__check_at(size_t position);
/* True if only is the check's rule or group, or is NULL. */
bool ds_accel__check_is_chosen(const struct ds_accel__check *check, const char *only);
/* True if the check runs on each device, and not on the first only. */
bool ds_accel__check_is_each(const struct ds_accel__check *check);
/* The rule's title in docs/plugin-abi.md; NULL if there is no rule of that number. */
const char *ds_accel__rule_title(uint32_t rule);
/* conformance_slots.c: "mem_alloc" for the slot at an offset of the table. */
const char *ds_accel__slot_name(size_t offset);

/* ---- which slot is being called (conformance_witness.c) ------------------------------------- */

#define DS_ACCEL__WITNESS_PAGE 4 /* the process's descriptor of the page */
#define DS_ACCEL__WITNESS_CALLS 64u
#define DS_ACCEL__WITNESS_SLOTS (sizeof(struct ds_accel_plugin) / sizeof(void *))

/* Shared by the processes of the suite. A slot is its offset in the table; 0: none. */
struct ds_accel__page {
    struct {
        atomic_uint slot; /* the slot being called */
        atomic_int process;
    } calls[DS_ACCEL__WITNESS_CALLS]; /* concurrent calls, of all threads */
    atomic_uint last;                 /* the last slot that returned */
    atomic_uint step;                 /* of a check with several steps, from 1 on; 0: none */
    atomic_uchar returned[DS_ACCEL__WITNESS_SLOTS]; /* the slot has returned at least once */
};

/* Code other than slots that may end the process too. */
enum ds_accel__witnessed {
    DS_ACCEL__WITNESS_LOAD,
    DS_ACCEL__WITNESS_ENTRY
};

/* Use the page of a descriptor, which stays open for peers. False: there is none. */
bool ds_accel__witness_open(int fd);
int ds_accel__witness_descriptor(void);
unsigned ds_accel__witness_enter(enum ds_accel__witnessed what);
void ds_accel__witness_leave(unsigned call, enum ds_accel__witnessed what);
/* Replace the table's functions by ones that record each call and make it. */
void ds_accel__witness_table(const struct ds_accel__run *run, struct ds_accel_plugin *table);
/*
 * The calls in flight, as ", in mem_alloc and stream_query", or the last call; of one process (0:
 * any). Returns the first slot in flight, 0 if there is none.
 */
size_t ds_accel__witness_read(const struct ds_accel__page *of, int process, char *text,
                              size_t text_size);
/* The call of a child of this process that was in flight when the child ended; "" if none. */
const char *ds_accel__witness_peer(int process);
bool ds_accel__witness_has_returned(const struct ds_accel__page *of, size_t slot);
/* Stop calling a slot: a check that calls it is skipped for the reason, as the end of "mem_alloc
 * ...", and the process ends. */
void ds_accel__witness_refuse(size_t slot, const char *why);
bool ds_accel__witness_is_refused(size_t slot);
/* Does the plugin have the slot? In the table that checks see, slots without a status always
 * exist. */
bool ds_accel__witness_has(size_t slot);
/* A step of a check; a step that ended its process is left out of later runs. */
#define DS_ACCEL__WITNESS_STEPS 256u
void ds_accel__witness_step(unsigned step);
void ds_accel__witness_refuse_step(unsigned step);
bool ds_accel__witness_is_refused_step(unsigned step);
/* "mem_alloc ..." */
void ds_accel__witness_explain(size_t slot, char *why, size_t why_size);
const char *ds_accel__witness_name(size_t slot);

/* ---- results of checks (conformance_say.c) -------------------------------------------------- */

/* Send one line of JSON to the suite's caller, in the form of json_pack(). */
void ds_accel__say(const char *format, ...);
/* The number of bytes printed since this process began. */
int64_t ds_accel__printed_bytes(void);
/* Report that the check failed, and why, and end the process. From any thread. */
_Noreturn void ds_accel__check_fail(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Report the check's result; rule 0: the check's own rule. */
void ds_accel__say_result(const struct ds_accel__run *run, const char *result, uint32_t rule,
                          const char *detail);
/* Report why the check was skipped, and end the process. From any thread. */
_Noreturn void ds_accel__say_skipped(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Report why the check was skipped; the check must return then. */
void ds_accel__skip(struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Skip the check, and end the process, because a slot that it needs is missing. */
void ds_accel__need(const struct ds_accel__run *run, bool is_there, const char *slot);
/* The same by the slot's offset in the run's table. */
void ds_accel__need_slot(const struct ds_accel__run *run, size_t offset);

/* ---- tools for checks (conformance_kit.c) --------------------------------------------------- */

bool ds_accel__has_slot(const struct ds_accel__run *run, size_t offset);
/* The run's error as a host passes it to a call: sizes set, codes zero, texts empty. */
struct ds_accel_error *ds_accel__fresh_error(struct ds_accel__run *run);
/* Fail unless the status that a slot returned is the one wanted. */
void ds_accel__want(struct ds_accel__run *run, int32_t wanted, const char *slot, int32_t status);
/* Fail unless the status is an error; any error is accepted, since the ABI does not specify
 * which. */
void ds_accel__want_error(struct ds_accel__run *run, const char *slot, int32_t status);
const char *ds_accel__status_text(int32_t status);

#define EXPECT(run, condition, ...) \
    do { \
        if (!(condition)) { \
            ds_accel__check_fail(run, __VA_ARGS__); \
        } \
    } while (0)
/* Call a slot with the error as its last argument. */
#define CALL(run, slot, ...) \
    (ds_accel__need_slot(run, SLOT(slot)), \
     (run)->table.slot(__VA_ARGS__, ds_accel__fresh_error(run)))
#define WANT(run, wanted, slot, ...) \
    ds_accel__want(run, wanted, #slot, CALL(run, slot, __VA_ARGS__))
#define WANT_ERROR(run, slot, ...) ds_accel__want_error(run, #slot, CALL(run, slot, __VA_ARGS__))

/*
 * True: the check is skipped, with the plugin's reason, because a call returned
 * DS_ACCEL_ERR_UNSUPPORTED and the device does not set the flag of the call's group.
 */
bool ds_accel__lacks(struct ds_accel__run *run, int32_t status, uint64_t flag);

/* Memory of the run's device; a failed allocation or free fails the check. */
void *ds_accel__take(struct ds_accel__run *run, uint64_t size_bytes);
void ds_accel__give(struct ds_accel__run *run, void *pointer);
/* Copy to and from the device, and wait. */
void ds_accel__put(struct ds_accel__run *run, void *device, const void *host, size_t size_bytes);
void ds_accel__get(struct ds_accel__run *run, void *host, const void *device, size_t size_bytes);
/* A pattern that differs at every position and from seed to seed. */
void ds_accel__pattern(unsigned char *bytes, size_t size_bytes, unsigned seed);
/* Fail unless the device's memory holds the pattern of this seed. */
void ds_accel__want_pattern(struct ds_accel__run *run, const void *device, size_t size_bytes,
                            unsigned seed, const char *what);
/* A stream of the run's device. */
ds_accel_plugin_stream_t *ds_accel__stream(struct ds_accel__run *run);
ds_accel_plugin_event_t *ds_accel__event(struct ds_accel__run *run, uint32_t flags);
void ds_accel__wait(struct ds_accel__run *run, ds_accel_plugin_stream_t *stream);

/* Work that takes a while: a host task that sleeps. is_done is 1 once it has ended. */
struct ds_accel__slow {
    atomic_int runs;
    atomic_int is_done;
    int32_t status; /* passed to the task */
};
#define DS_ACCEL__SLOW_NS 2000000

void ds_accel__slow_start(struct ds_accel__run *run, struct ds_accel__slow *slow,
                          ds_accel_plugin_stream_t *stream);

/* ---- held work (conformance_gate.c) --------------------------------------------------------- */

/*
 * A host task that does not end until the suite opens the gate: work queued after it stays pending
 * while a check looks. No check depends on timing: calls that must not wait for the task are made
 * by another thread, with a generous limit.
 */
struct ds_accel__hold {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool has_begun;
    bool has_ended;
    bool is_within; /* a thread of the suite ran it, within a call: nothing is held */
};

/* A call that another thread makes. */
typedef int32_t (*ds_accel__call_t)(struct ds_accel__run *run, void *user_data);
struct ds_accel__caller {
    struct ds_accel__run run; /* the thread's own: it holds the error of the call */
    ds_accel__call_t call;
    void *user_data;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    int32_t status;
};

/*
 * Queue the gate. False: the check was skipped, since the backend runs host tasks within its calls,
 * or since its call waits for the task itself, as over oclgrind, which does all work in clFlush().
 */
bool ds_accel__gate_close(struct ds_accel__run *run, struct ds_accel__hold *gate,
                          ds_accel_plugin_stream_t *stream);
/* Release the held work. Repeated calls are allowed. */
void ds_accel__gate_open(struct ds_accel__hold *gate);
bool ds_accel__gate_is_closed(struct ds_accel__hold *gate);

void ds_accel__caller_start(struct ds_accel__run *run, struct ds_accel__caller *caller,
                            ds_accel__call_t call, void *user_data);
/* True if the call returned within a time: DS_ACCEL__CALL_NS if it must return. */
#define DS_ACCEL__CALL_NS UINT64_C(5000000000)
/* If the call may also wait: too short a time hides a plugin's mistake, but never reports a
 * false one. */
#define DS_ACCEL__GRACE_NS UINT64_C(200000000)
bool ds_accel__caller_returns(struct ds_accel__caller *caller, uint64_t within_ns);
/* The status of the call, once it returned; run's error is the call's. */
int32_t ds_accel__caller_finish(struct ds_accel__run *run, struct ds_accel__caller *caller);
/* Fail unless the call returns the status while the gate is closed. False: the gate's task ran
 * within the call, and the check was skipped. */
bool ds_accel__want_prompt(struct ds_accel__run *run, struct ds_accel__hold *gate, int32_t wanted,
                           const char *slot, ds_accel__call_t call, void *user_data);
/*
 * The same for a call that only prepares what is checked: if the call waits, which another rule
 * covers, the gate is opened, the check is skipped, and the result is false.
 */
bool ds_accel__prepare(struct ds_accel__run *run, struct ds_accel__hold *gate, const char *slot,
                       ds_accel__call_t call, void *user_data);

/* ---- bringing the plugin up (conformance_start.c) ------------------------------------------- */

/* Load and enter the plugin; in a check of the stage FILE. False: it cannot be loaded; why has
 * the reason. */
bool ds_accel__run_load(struct ds_accel__run *run, char *why, size_t why_size);
/* Bring the plugin up to the stage; a plugin that cannot be loaded ends the run. False: it
 * cannot be brought up; why has the reason. */
bool ds_accel__run_bring_up(struct ds_accel__run *run, enum ds_accel__stage stage, char *why,
                            size_t why_size);
/* Report to the caller that there is nothing to check, and end this process. */
_Noreturn void ds_accel__run_give_up(const char *why);
/* End the run, and report why to its caller, if there are devices and the run's device is not
 * among them: skipping all checks that need it would look like success. */
void ds_accel__run_check_device(const struct ds_accel__run *run, uint32_t device_count);
/* Is one of the slots no longer called? why has the reason. */
bool ds_accel__slots_are_refused(const size_t *slots, size_t count, char *why, size_t why_size);

/* ---- the rest of the kit -------------------------------------------------------------------- */

/* Start another instance with a host, and open its device. A failure of either fails the check. */
ds_accel_plugin_instance_t *ds_accel__run_init(struct ds_accel__run *run,
                                               const struct ds_accel_host *host);
ds_accel_plugin_device_t *ds_accel__run_open(struct ds_accel__run *run,
                                             ds_accel_plugin_instance_t *instance,
                                             uint32_t device_index);
/*
 * Start the plugin in another process and collect what it reports there: *count_out devices, the
 * first DS_ACCEL__PEER_DEVICES of them as ds_accel__describe_device() describes them. The input
 * must be set before: a variable of its environment, and exported memory that it opens, reads and
 * writes. False if the process did not finish; problem may have the reason.
 */
#define DS_ACCEL__PEER_DEVICES 8u
#define DS_ACCEL__PEER_HANDLE 1024u
#define DS_ACCEL__PEER_BYTES \
    5000u                       /* of shared memory: the pattern PEER_SEED when it is opened... */
#define DS_ACCEL__PEER_SEED 50u /* ... and the next one when it is closed */
struct ds_accel__peer {
    const char *variable; /* NULL: none */
    const char *value;
    const void *handle;       /* of backend_info's memory_handle_bytes; NULL: none */
    const void *event_handle; /* likewise, of an event */
    uint32_t count;
    char devices[DS_ACCEL__PEER_DEVICES][160];
    char problem[256];
};
bool ds_accel__run_peer(struct ds_accel__run *run, struct ds_accel__peer *peer);
/* Do all of the above in the other process. */
void ds_accel__serve_peer(struct ds_accel__run *run);
/* Report the number of devices, and the value that shows them in reverse order, or only the last
 * of them; "" if the backend has no variable for that (conformance_devices.c). */
void ds_accel__say_devices(struct ds_accel__run *run);
/* Describe a device by all that the plugin reports of it except its index. */
void ds_accel__describe_device(struct ds_accel__run *run, uint32_t device_index, char *text,
                               size_t text_size);
/* True if a text contains a sanitizer's report; returns the rule that the report breaks (0: the
 * check's) and its first line (conformance_output.c). */
bool ds_accel__find_report(const char *text, size_t size, uint32_t *rule_out, char *line,
                           size_t line_size);
/* As ds_accel__conduct_t: fail, unless the configuration tolerates it. */
void ds_accel__want_no_conduct(void *user_data, enum ds_accel__reason_id reason,
                               const char *detail);
/* Fail if output was printed since this process began, stdout or stderr was closed, or stdin is
 * another file. */
void ds_accel__want_silence(const struct ds_accel__run *run);
/* Remember the file of stdin for that. */
void ds_accel__note_stdin(void);
/* The number of threads and descriptors of this process. */
size_t ds_accel__count_threads(void);
size_t ds_accel__count_descriptors(void);

/* A tour of all slots: a valid call of each slot that needs no more than a device
 * (conformance_calls.c uses it to check what holds for every call). */
struct ds_accel__tour_stop {
    const char *group;
    size_t slot;
    int32_t (*call)(struct ds_accel__run *run);
    bool may_lack; /* ERR_UNSUPPORTED is allowed: the device may lack the feature */
};
typedef void (*ds_accel__tour_t)(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                                 int32_t status, void *user_data);
/* Make the calls of every slot that the plugin has, each followed by visit (or NULL). */
void ds_accel__tour(struct ds_accel__run *run, ds_accel__tour_t visit, void *user_data);
/* Make the call of one slot. False: the tour has no call of it. */
bool ds_accel__tour_stop(struct ds_accel__run *run, size_t slot);

/* Stops of several calls (conformance_visits.c). */
int32_t ds_accel__visit_elapsed(struct ds_accel__run *run);
int32_t ds_accel__visit_copy_async(struct ds_accel__run *run);
int32_t ds_accel__visit_register(struct ds_accel__run *run);
int32_t ds_accel__visit_vmem(struct ds_accel__run *run);
int32_t ds_accel__visit_graph(struct ds_accel__run *run);
int32_t ds_accel__visit_ipc_memory(struct ds_accel__run *run);
int32_t ds_accel__visit_ipc_event(struct ds_accel__run *run);
int32_t ds_accel__visit_dmabuf(struct ds_accel__run *run);
int32_t ds_accel__visit_variable(struct ds_accel__run *run);

/* A call that must be refused; its outputs are poisoned before. */
struct ds_accel__refusal {
    const char *what; /* "size 0" */
    size_t slot;
    bool is_unknown; /* an undefined bit or number: DSA-P18 */
};
typedef void (*ds_accel__refusal_t)(struct ds_accel__run *run,
                                    const struct ds_accel__refusal *refusal, int32_t status,
                                    bool is_touched, void *user_data);
/* Make every call that must be refused and whose slot the plugin has. */
void ds_accel__refuse_all(struct ds_accel__run *run, ds_accel__refusal_t visit, void *user_data);

/* The part of ds-accel-probe that runs the checks. */
int ds_accel__conformance_main(void);

#endif
