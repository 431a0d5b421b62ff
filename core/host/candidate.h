/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Candidates and their gates: candidate.c, gates.c; their tables: table.c. */
#ifndef DS_ACCEL_HOST_CANDIDATE_H
#define DS_ACCEL_HOST_CANDIDATE_H

#include "base/fork.h"
#include "base/private.h"
#include "base/reason.h"
#include "base/text.h"
#include "host/key.h"
#include "host/loader.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct ds_accel__stack;

enum ds_accel__gate {
#define GATE(id, name, check, when) DS_ACCEL__GATE_##id,
#include "host/gates.def"
#undef GATE
    DS_ACCEL__GATE_COUNT
};

/* The moment at which a gate is checked. */
enum ds_accel__gate_when {
    DS_ACCEL__WHEN_FOUND,   /* when the scan finds the candidate */
    DS_ACCEL__WHEN_FILE,    /* when the file is opened; not if stored results are used */
    DS_ACCEL__WHEN_CHECKED, /* after the gates of WHEN_FILE; a candidate may have no file */
    DS_ACCEL__WHEN_TURN,    /* in its turn, before the lookup of a stored verdict */
    DS_ACCEL__WHEN_UNKNOWN, /* after that lookup, if no verdict is stored */
    DS_ACCEL__WHEN_RUN      /* while the plugin runs: probe_here.c, start.c, probe_hear.c */
};

enum ds_accel__gate_result {
    DS_ACCEL__GATE_SKIPPED, /* not reached, or does not apply */
    DS_ACCEL__GATE_PASSED,
    DS_ACCEL__GATE_FAILED
};

/*
 * The progress of a candidate's evaluation. Whether its plugin is loaded or started in this process
 * is independent of the phase.
 *
 *     FOUND -> CHECKED -> RECALLED | JUDGED | TENTATIVE
 *
 * A candidate that fails at a gate becomes JUDGED. A candidate that is evaluated again returns to
 * FOUND, or to CHECKED if its file need not be checked again.
 */
enum ds_accel__phase {
    DS_ACCEL__PHASE_FOUND,     /* scanned or registered; the file was not checked */
    DS_ACCEL__PHASE_CHECKED,   /* the file passed its checks, and the candidate is allowed */
    DS_ACCEL__PHASE_RECALLED,  /* has the verdict that an earlier process stored */
    DS_ACCEL__PHASE_JUDGED,    /* has a verdict of this process */
    DS_ACCEL__PHASE_TENTATIVE, /* as JUDGED, but not stored: the next attempt may differ */
    DS_ACCEL__PHASE_COUNT
};

/* Why a candidate is evaluated, from the weakest to the strongest request. */
enum ds_accel__wish {
    DS_ACCEL__WISH_TURN,  /* its turn came, or all candidates are evaluated */
    DS_ACCEL__WISH_NAMED, /* requested by name: its devices may be woken */
    DS_ACCEL__WISH_FORCED /* forced by name: quarantine does not apply */
};

struct ds_accel__candidate;
struct ds_accel__lint_sink;

/* The host table that the plugin of one candidate receives. */
struct ds_accel__host {
    struct ds_accel_host abi;
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
};

/* A text that callers may have borrowed; it is freed only with the candidate. */
struct ds_accel__detail {
    struct ds_accel__detail *next;
    char text[];
};

/* The result of starting the plugin (start.c), in this process or in a rehearsal by a helper. */
struct ds_accel__start {
    uint32_t is_done;         /* 0: not tried yet */
    uint32_t is_inconclusive; /* a device was busy or memory exhausted: try again later */
    int32_t status;
    uint32_t device_count;
    struct ds_accel_backend_info info; /* zeroed: the plugin reported none */
};

struct ds_accel__candidate {
    char name[DS_ACCEL__NAME_SIZE];
    uint64_t name_hash;         /* compared before the name, for speed */
    char *path;                 /* "" for a registered candidate */
    enum ds_accel__phase phase; /* changed by ds_accel__candidate_enter() */
    enum ds_accel__wish wish;
    bool is_ahead; /* evaluated before its turn; results are discarded if its turn never comes */
    bool is_registered;
    bool is_demand_only;
    bool has_look;          /* the hardware was examined during this evaluation */
    bool has_table;         /* the plugin is loaded in this process, or registered */
    bool has_conduct;       /* the probe found a reason of the gate conduct, tolerated or not */
    const json_t *recorded; /* results from a recording; NULL: a plugin of this machine */
    uint32_t state;         /* DS_ACCEL_STATE_* */
    enum ds_accel__reason_id reason;
    const char *detail; /* NULL, or the text of one of details */
    struct ds_accel__detail *details;
    const char *stage;
    uint64_t elapsed_us;
    uint64_t hardware;               /* fingerprint of the hardware */
    bool has_hardware;               /* a device or node that the configuration lists exists */
    uint32_t hardware_count;         /* number of its devices on the PCI bus */
    uint32_t strikes;                /* number of recent crashes and hangs */
    struct ds_accel__finding *power; /* finding of the gate power; NULL without devices */
    struct stat file;                /* metadata at the check; zeroed: not checked */
    struct ds_accel__key key;        /* key of its record; zero: nothing is stored for the file */
    char vendor[64];
    char version[32];
    char abi[16];
    const char *hardware_note;  /* lines of the note, one of details; NULL: none */
    uint64_t note_features;     /* required features of the note */
    uint64_t note_optional;     /* optional features of the note */
    uint64_t optional_features; /* optional features of the table */
    struct {
        enum ds_accel__gate_result result;
        const char *evidence; /* one of details, or static; NULL: none */
    } gates[DS_ACCEL__GATE_COUNT];
    struct ds_accel__host host;
    ds_accel__module_t *module;
    struct ds_accel_plugin table; /* complete: absent slots contain stubs */
    struct ds_accel_verdict verdict;
    struct ds_accel__start start;
    const char *output; /* output of the plugin during the probe, one of details; or NULL */
    const struct ds_accel__lint_sink *lint; /* receives results of the ABI's rules; or NULL */
    ds_accel_plugin_instance_t *instance;   /* NULL: not started */
    struct ds_accel__fork_watch watch;      /* registered while the plugin is started */
    struct ds_accel__stack *layers;         /* set while the plugin is started; NULL: no layers */
};

/*
 * Copy a plugin's table (theirs) to the host's copy (ours): the slots that both versions of the
 * table have. All other slots, and slots that are NULL, become stubs. Reads no byte past the
 * plugin's struct_size. finding is set if the table has a defect; if its size is the defect, ours
 * is only zeroed. DSA-H3, DSA-H4.
 */
DS_ACCEL__PRIVATE void ds_accel__table_import(const struct ds_accel_plugin *theirs,
                                              const char *name, struct ds_accel_plugin *ours,
                                              struct ds_accel__finding *finding);

DS_ACCEL__PRIVATE struct ds_accel__candidate *
ds_accel__candidate_create(ds_accel_t *context, const char *name, const char *path);
DS_ACCEL__PRIVATE void ds_accel__candidate_destroy(struct ds_accel__candidate *candidate);
/*
 * Arrange that a child of fork() can detect that it inherited the plugin, until the plugin is
 * stopped. Called before init.
 */
DS_ACCEL__PRIVATE void ds_accel__candidate_watch(struct ds_accel__candidate *candidate);
/*
 * Call the plugin's shutdown, unless instance is NULL because init returned none. In a forked child
 * of the process that started the plugin, shutdown is not called. In any case end the fork watch
 * and remove the layers.
 */
DS_ACCEL__PRIVATE void ds_accel__candidate_stop(struct ds_accel__candidate *candidate,
                                                ds_accel_plugin_instance_t *instance);
DS_ACCEL__PRIVATE const char *ds_accel__state_name(uint32_t state);
DS_ACCEL__PRIVATE const char *ds_accel__gate_name(enum ds_accel__gate gate);
/* True if the candidate's file was checked. A registered candidate has no file. */
static inline bool ds_accel__candidate_has_file(const struct ds_accel__candidate *candidate)
{
    return candidate->file.st_mode != 0;
}

static inline bool ds_accel__candidate_is_available(const struct ds_accel__candidate *candidate)
{
    return candidate->state == DS_ACCEL_STATE_AVAILABLE ||
           candidate->state == DS_ACCEL_STATE_SELECTED;
}

/* Return the text that explains the candidate's state; "" if there is none. */
static inline const char *ds_accel__candidate_detail(const struct ds_accel__candidate *candidate)
{
    return candidate->detail != NULL ? candidate->detail : "";
}

/* Enter a phase. Asserts that the current phase leads to it. */
DS_ACCEL__PRIVATE void ds_accel__candidate_enter(struct ds_accel__candidate *candidate,
                                                 enum ds_accel__phase phase);
/* True if the evaluation is complete: the candidate passed all gates or failed at one. */
DS_ACCEL__PRIVATE bool ds_accel__candidate_has_verdict(const struct ds_accel__candidate *candidate);
/* True if the verdict may be stored for later processes. */
bool ds_accel__candidate_is_lasting(const struct ds_accel__candidate *candidate);
/*
 * Record that a gate failed: result, evidence, state, reason, detail and stage at once. A candidate
 * without a verdict enters the phase JUDGED.
 */
DS_ACCEL__PRIVATE void ds_accel__candidate_fail(struct ds_accel__candidate *candidate,
                                                enum ds_accel__gate gate, uint32_t state,
                                                const struct ds_accel__finding *finding);
DS_ACCEL__PRIVATE void ds_accel__candidate_pass(struct ds_accel__candidate *candidate,
                                                enum ds_accel__gate gate, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Like ds_accel__candidate_pass(), for a text of static lifetime. */
void ds_accel__candidate_pass_plain(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                                    const char *evidence);
/* Reset to the state before the gate load: not probed. */
void ds_accel__candidate_unask(struct ds_accel__candidate *candidate);
/* Set state, reason and detail, and no gate. detail becomes NULL if memory is exhausted. */
DS_ACCEL__PRIVATE void ds_accel__candidate_set(struct ds_accel__candidate *candidate,
                                               uint32_t state, enum ds_accel__reason_id reason,
                                               const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Return a copy of the text that is freed with the candidate; NULL if memory is exhausted. */
const char *ds_accel__candidate_keep(struct ds_accel__candidate *candidate, const char *text);
/* Examine the candidate's hardware without waking it, once per evaluation. ERR_NO_MEMORY. */
int32_t ds_accel__candidate_look(struct ds_accel__candidate *candidate);
/* Store the output of the plugin during its probe, for the command explain. */
DS_ACCEL__PRIVATE void ds_accel__candidate_keep_output(struct ds_accel__candidate *candidate,
                                                       const char *text);
/*
 * Set is_demand_only to the value of "demand_only" in the configuration of the backend, or, without
 * such a value, according to the plugin's optional features.
 */
DS_ACCEL__PRIVATE void ds_accel__candidate_set_demand(struct ds_accel__candidate *candidate,
                                                      uint64_t optional_features);
/*
 * Check the gates of one moment until one fails (gates.c). *passed_out is false if a gate failed.
 */
int32_t ds_accel__gates_walk(struct ds_accel__candidate *candidate, enum ds_accel__gate_when when,
                             bool *passed_out);
/* Check the gates on the candidate's file, which is opened once for all of them. */
int32_t ds_accel__gates_walk_file(struct ds_accel__candidate *candidate, bool *passed_out);
/*
 * Compare the SHA-256 of a candidate's file with trust.sha256 of the configuration. finding is set
 * if the hash differs or none is configured; with trust.mode "warn", a warning is logged instead.
 */
DS_ACCEL__PRIVATE void ds_accel__candidate_judge_hash(struct ds_accel__candidate *candidate,
                                                      const char *hex,
                                                      struct ds_accel__finding *finding);

#endif
