/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What the files of the conformance suite share. conformance.c starts a process for the checks and
 * makes the report, conformance_serve.c is that process, conformance_list.c knows which checks
 * there are, most other conformance_*.c hold them, and this is what a check is written with.
 *
 * A check is a function that makes calls and says what it expects of them:
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
 * The first expectation that is not met ends the process: whatever the plugin was doing has no
 * chance to spoil the next check, which gets a process of its own, and no check has to clean up
 * after a failure. A check that returns has passed, unless it called ds_accel__skip().
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

/* How far the plugin has to be brought up before a check. */
enum ds_accel__stage {
    DS_ACCEL__STAGE_FILE,     /* not loaded: the check does that itself, in a process of its own */
    DS_ACCEL__STAGE_TABLE,    /* loaded */
    DS_ACCEL__STAGE_INSTANCE, /* probed and started */
    DS_ACCEL__STAGE_DEVICE    /* the device of the run is open, and a stream if there are any */
};

/* Of a check. */
#define DS_ACCEL__CHECK_ALONE 1u /* in a process that ran no other check and runs none after it */
#define DS_ACCEL__CHECK_TRAP 2u  /* a crash breaks the check's own rule, not DSA-P26 */
#define DS_ACCEL__CHECK_EACH 4u  /* on each device, as all checks of the stage DEVICE are */

#define DS_ACCEL__CHECK_SLOTS 7

struct ds_accel__run {
    const char *path;
    json_t *request;       /* of the suite's caller */
    const char *name;      /* of the backend */
    uint32_t device_index; /* the device to work with */
    size_t position;       /* of the check that runs */
    bool is_skipped;       /* it was not made, for this reason */
    char reason[256];
    struct ds_accel__candidate *candidate; /* who the host logs for */
    const struct ds_accel_host *host;      /* the host's table, as any plugin gets it */
    struct ds_accel__guard *guard;         /* the process before any code of the plugin */
    ds_accel__module_t *module;
    const struct ds_accel_plugin *theirs; /* the plugin's own table */
    struct ds_accel_plugin table;         /* what both know of it; absent slots are NULL */
    bool has_table;
    struct ds_accel_verdict verdict;
    ds_accel_plugin_instance_t *instance;
    uint32_t device_count;
    ds_accel_plugin_device_t *device;
    ds_accel_plugin_stream_t *stream; /* NULL where there are no streams */
    struct ds_accel_backend_info info;
    struct ds_accel_error error;  /* of the latest call */
    unsigned char error_tail[64]; /* behind it: what a newer host's error has */
    uint32_t error_tail_bytes;    /* of those that the error's struct_size counts */
};

struct ds_accel__check {
    uint32_t rule;
    const char *group;
    const char *name; /* what is checked, as a sentence without its end */
    enum ds_accel__stage stage;
    uint32_t flags; /* DS_ACCEL__CHECK_* */
    void (*run)(struct ds_accel__run *run);
    size_t slots[DS_ACCEL__CHECK_SLOTS]; /* that it needs, as offsets into the table; 0 ends them */
};

/* For the tables of checks: the slots that one needs, or it is skipped. */
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

/* conformance_list.c. The check number position of all, in the order in which they run; NULL past
 * the last. */
const struct ds_accel__check *ds_accel__check_at(size_t position);
/* True if only names the check's rule or group, or is NULL. */
bool ds_accel__check_is_chosen(const struct ds_accel__check *check, const char *only);
/* True if it is made on each device, and not on the first only. */
bool ds_accel__check_is_each(const struct ds_accel__check *check);
/* The rule in a few words, as docs/plugin-abi.md has it; NULL if there is none of that number. */
const char *ds_accel__rule_title(uint32_t rule);
/* conformance_slots.c: "mem_alloc" for the slot at an offset of the table. */
const char *ds_accel__slot_name(size_t offset);

/* ---- which slot is being called (conformance_witness.c) ------------------------------------- */

#define DS_ACCEL__WITNESS_PAGE 4 /* the descriptor that the process has the page as */
#define DS_ACCEL__WITNESS_CALLS 64u
#define DS_ACCEL__WITNESS_SLOTS (sizeof(struct ds_accel_plugin) / sizeof(void *))

/* Shared by the processes of the suite. A slot is its offset in the table; 0: none. */
struct ds_accel__page {
    struct {
        atomic_uint slot; /* that is being called */
        atomic_int process;
    } calls[DS_ACCEL__WITNESS_CALLS]; /* at the same time, by any thread */
    atomic_uint last;                 /* that came back */
    atomic_uint step;                 /* of a check that has many, from 1 on; 0: none */
    atomic_uchar returned[DS_ACCEL__WITNESS_SLOTS]; /* has come back at least once */
};

/* What is no slot, and may end the process too. */
enum ds_accel__witnessed {
    DS_ACCEL__WITNESS_LOAD,
    DS_ACCEL__WITNESS_ENTRY
};

/* Use the page of a descriptor, which stays open for peers. False: there is none. */
bool ds_accel__witness_open(int fd);
int ds_accel__witness_descriptor(void);
unsigned ds_accel__witness_enter(enum ds_accel__witnessed what);
void ds_accel__witness_leave(unsigned call, enum ds_accel__witnessed what);
/* In the place of the table's functions, some that note each call and make it. */
void ds_accel__witness_table(const struct ds_accel__run *run, struct ds_accel_plugin *table);
/*
 * What is being called, as ", in mem_alloc and stream_query", or what was called last; by a process
 * (0: any). Returns the first slot that is being called, 0 if none is.
 */
size_t ds_accel__witness_read(const struct ds_accel__page *of, int process, char *text,
                              size_t text_size);
/* What a child of this process was calling when it ended; "" if nothing. */
const char *ds_accel__witness_peer(int process);
bool ds_accel__witness_has_returned(const struct ds_accel__page *of, size_t slot);
/* Not to call a slot any more: a check that does so is skipped for the reason, as the end of
 * "mem_alloc ...", and the process ends. */
void ds_accel__witness_refuse(size_t slot, const char *why);
bool ds_accel__witness_is_refused(size_t slot);
/* The plugin has the slot; in the table that checks see, those without a status are always there.
 */
bool ds_accel__witness_has(size_t slot);
/* A step of a check, which is left out of later ones if it ended its process. */
#define DS_ACCEL__WITNESS_STEPS 256u
void ds_accel__witness_step(unsigned step);
void ds_accel__witness_refuse_step(unsigned step);
bool ds_accel__witness_is_refused_step(unsigned step);
/* "mem_alloc ..." */
void ds_accel__witness_explain(size_t slot, char *why, size_t why_size);
const char *ds_accel__witness_name(size_t slot);

/* ---- how a check went (conformance_say.c) --------------------------------------------------- */

/* One line of JSON to the suite's caller, in the form of json_pack(). */
void ds_accel__say(const char *format, ...);
/* How many bytes were printed since this process began. */
int64_t ds_accel__printed_bytes(void);
/* Say that the check failed, and why, and end the process. From any thread. */
_Noreturn void ds_accel__check_fail(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Say how the check went; rule 0: its own. */
void ds_accel__say_result(const struct ds_accel__run *run, const char *result, uint32_t rule,
                          const char *detail);
/* Say why the check was not made, and end the process. From any thread. */
_Noreturn void ds_accel__say_skipped(const struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Say why the check, which has to return then, was not made. */
void ds_accel__skip(struct ds_accel__run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Skip the check, and end the process, for want of a slot that it came to need. */
void ds_accel__need(const struct ds_accel__run *run, bool is_there, const char *slot);
/* The same by the slot's offset in the run's table. */
void ds_accel__need_slot(const struct ds_accel__run *run, size_t offset);

/* ---- what checks are written with (conformance_kit.c) --------------------------------------- */

bool ds_accel__has_slot(const struct ds_accel__run *run, size_t offset);
/* The run's error as a host gives it to a call: sizes set, codes zero, texts empty. */
struct ds_accel_error *ds_accel__fresh_error(struct ds_accel__run *run);
/* Fail unless the status that a slot returned is the one wanted. */
void ds_accel__want(struct ds_accel__run *run, int32_t wanted, const char *slot, int32_t status);
/* Fail unless it is an error: whichever, since the ABI does not say. */
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
 * The check is skipped, with the plugin's reason: a call answered DS_ACCEL_ERR_UNSUPPORTED, and the
 * device does not claim the flag that its group has.
 */
bool ds_accel__lacks(struct ds_accel__run *run, int32_t status, uint64_t flag);

/* Memory of the run's device; a failure to get or free it fails the check. */
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
    int32_t status; /* that the task was given */
};
#define DS_ACCEL__SLOW_NS 2000000

void ds_accel__slow_start(struct ds_accel__run *run, struct ds_accel__slow *slow,
                          ds_accel_plugin_stream_t *stream);

/* ---- work that is held (conformance_gate.c) ------------------------------------------------- */

/*
 * A host task that does not end before the suite lets it: whatever is queued behind it stays there,
 * for as long as a check looks. Nothing has to be timed, and calls that must not wait for it are
 * made by another thread, which is given a generous time.
 */
struct ds_accel__hold {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    bool has_begun;
    bool has_ended;
    bool is_within; /* a thread of the suite ran it, within a call: it holds nothing */
};

/* A call that another thread makes. */
typedef int32_t (*ds_accel__call_t)(struct ds_accel__run *run, void *user_data);
struct ds_accel__caller {
    struct ds_accel__run run; /* the thread's own: the error of the call is there */
    ds_accel__call_t call;
    void *user_data;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    int32_t status;
};

/*
 * Queue the gate. False: the check has been skipped, since the backend runs host tasks within the
 * calls, or its call waits for the task itself, as over oclgrind, which does all work in clFlush().
 */
bool ds_accel__gate_close(struct ds_accel__run *run, struct ds_accel__hold *gate,
                          ds_accel_plugin_stream_t *stream);
/* The work goes on. More than once is no mistake. */
void ds_accel__gate_open(struct ds_accel__hold *gate);
bool ds_accel__gate_is_closed(struct ds_accel__hold *gate);

void ds_accel__caller_start(struct ds_accel__run *run, struct ds_accel__caller *caller,
                            ds_accel__call_t call, void *user_data);
/* True if it returned within a time: DS_ACCEL__CALL_NS where it has to. */
#define DS_ACCEL__CALL_NS UINT64_C(5000000000)
/* Where it may wait as well: too short a time hides a mistake, and makes none. */
#define DS_ACCEL__GRACE_NS UINT64_C(200000000)
bool ds_accel__caller_returns(struct ds_accel__caller *caller, uint64_t within_ns);
/* Its status, once it returned; run's error is the call's. */
int32_t ds_accel__caller_finish(struct ds_accel__run *run, struct ds_accel__caller *caller);
/* Fail unless the call returns, with the status, although the gate is closed. False: the task of
 * the gate was run within the call, and the check has been skipped. */
bool ds_accel__want_prompt(struct ds_accel__run *run, struct ds_accel__hold *gate, int32_t wanted,
                           const char *slot, ds_accel__call_t call, void *user_data);
/*
 * The same for a call that only prepares what is checked: if it waits, which is another rule's
 * matter, the gate is opened, the check is skipped, and this is false.
 */
bool ds_accel__prepare(struct ds_accel__run *run, struct ds_accel__hold *gate, const char *slot,
                       ds_accel__call_t call, void *user_data);

/* ---- bringing the plugin up (conformance_start.c) ------------------------------------------- */

/* Load and enter the plugin; in a check of the stage FILE. False: it cannot be, and says why. */
bool ds_accel__run_load(struct ds_accel__run *run, char *why, size_t why_size);
/* As far as the stage; a plugin that cannot be loaded ends the run. False: it cannot be, and says
 * why. */
bool ds_accel__run_bring_up(struct ds_accel__run *run, enum ds_accel__stage stage, char *why,
                            size_t why_size);
/* There is nothing to check: the caller is told, and this process ends. */
_Noreturn void ds_accel__run_give_up(const char *why);
/* End the run, and say why to its caller, if there are devices and the one to work with is not
 * among them: skipping all that needs it would look like success. */
void ds_accel__run_check_device(const struct ds_accel__run *run, uint32_t device_count);
/* Is one of the slots not called any more? Then it says why. */
bool ds_accel__slots_are_refused(const size_t *slots, size_t count, char *why, size_t why_size);

/* ---- the rest of the kit -------------------------------------------------------------------- */

/* Start another instance with a host, and open its device. Both fail the check. */
ds_accel_plugin_instance_t *ds_accel__run_init(struct ds_accel__run *run,
                                               const struct ds_accel_host *host);
ds_accel_plugin_device_t *ds_accel__run_open(struct ds_accel__run *run,
                                             ds_accel_plugin_instance_t *instance,
                                             uint32_t device_index);
/*
 * Start the plugin in another process and have told what it sees there: *count_out devices, the
 * first DS_ACCEL__PEER_DEVICES of them as ds_accel__describe_device() says. Before it is started,
 * set its input: a variable of its environment, and exported memory that it is to open, read and
 * write. False if it did not get to the end; problem may say why.
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
/* In the other process: all of the above. */
void ds_accel__serve_peer(struct ds_accel__run *run);
/* How many devices there are, and what shows them in reverse order, or only the last of them; where
 * the backend has no variable for that, "" (conformance_devices.c). */
void ds_accel__say_devices(struct ds_accel__run *run);
/* Who a device is, in whatever the plugin tells of it that is not its index. */
void ds_accel__describe_device(struct ds_accel__run *run, uint32_t device_index, char *text,
                               size_t text_size);
/* True if a text has the report of a sanitizer, the rule that it says is broken (0: that of the
 * check) and its first line (conformance_output.c). */
bool ds_accel__find_report(const char *text, size_t size, uint32_t *rule_out, char *line,
                           size_t line_size);
/* As ds_accel__conduct_t: fail, unless the configuration tolerates it. */
void ds_accel__want_no_conduct(void *user_data, enum ds_accel__reason_id reason,
                               const char *detail);
/* Fail if anything was printed since this process began, stdout or stderr was closed, or stdin is
 * another file. */
void ds_accel__want_silence(const struct ds_accel__run *run);
/* Remember which file stdin is, for it. */
void ds_accel__note_stdin(void);
/* Threads and descriptors of this process. */
size_t ds_accel__count_threads(void);
size_t ds_accel__count_descriptors(void);

/* One of everything: a valid call of each slot that needs no more than a device
 * (conformance_calls.c checks with them what holds for every call). */
struct ds_accel__tour_stop {
    const char *group;
    size_t slot;
    int32_t (*call)(struct ds_accel__run *run);
    bool may_lack; /* ERR_UNSUPPORTED is no stub's: the device has no such ability */
};
typedef void (*ds_accel__tour_t)(struct ds_accel__run *run, const struct ds_accel__tour_stop *stop,
                                 int32_t status, void *user_data);
/* Make the calls of every slot that is there, each followed by visit (or NULL). */
void ds_accel__tour(struct ds_accel__run *run, ds_accel__tour_t visit, void *user_data);
/* Make the call of one slot alone. False: the tour has none of it. */
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

/* A call that has to be refused, with its outputs poisoned before. */
struct ds_accel__refusal {
    const char *what; /* "size 0" */
    size_t slot;
    bool is_unknown; /* a bit or number that nobody knows: DSA-P18 */
};
typedef void (*ds_accel__refusal_t)(struct ds_accel__run *run,
                                    const struct ds_accel__refusal *refusal, int32_t status,
                                    bool is_touched, void *user_data);
/* Make every call that is to be refused and whose slot is there. */
void ds_accel__refuse_all(struct ds_accel__run *run, ds_accel__refusal_t visit, void *user_data);

/* The part of ds-accel-probe that runs the checks. */
int ds_accel__conformance_main(void);

#endif
