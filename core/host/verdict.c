/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The results of a candidate that are stored for later processes: its verdict for a limited time,
 * how often it crashed or hung (quarantine), and the fact that a process is loading it now
 * (breadcrumbs).
 */
#include "host/verdict.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "config/env.h"
#include "host/cache.h"
#include "host/context.h"
#include "host/crumb.h"
#include "host/key.h"
#include "host/registry.h"
#include "host/strike.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define GOOD_FOR_MS (60 * 60 * 1000u) /* validity of the verdict "available" */
#define BAD_FOR_MS (60 * 1000u)       /* validity of any other verdict */

/* ---- records -------------------------------------------------------------------------------- */

static uint64_t good_for_ms(const struct ds_accel__record *record)
{
    return record->data.state == DS_ACCEL_STATE_AVAILABLE ? GOOD_FOR_MS : BAD_FOR_MS;
}

uint64_t ds_accel__record_expires_in_ms(const struct ds_accel__record *record, uint64_t now_ms)
{
    uint64_t made = record->data.verdict_ms;

    if (made == 0 || made > now_ms || now_ms - made >= good_for_ms(record)) {
        return 0;
    }
    return good_for_ms(record) - (now_ms - made);
}

bool ds_accel__record_is_useful(const struct ds_accel__record *record, uint64_t now_ms)
{
    return ds_accel__record_expires_in_ms(record, now_ms) > 0 ||
           ds_accel__strikes_last(record, now_ms);
}

static const char *keep_text(struct ds_accel__candidate *candidate,
                             const struct ds_accel__record *record, int text)
{
    const char *value = ds_accel__record_text(record, text);

    return value[0] != '\0' ? ds_accel__candidate_keep(candidate, value) : "";
}

static void keep_gates(struct ds_accel__candidate *candidate, const struct ds_accel__record *record,
                       int first, int last)
{
    assert(first >= 0 && first <= last && last < DS_ACCEL__GATE_COUNT);
    for (int gate = first; gate <= last; gate++) {
        candidate->gates[gate].result = (enum ds_accel__gate_result)record->data.gates[gate];
        candidate->gates[gate].evidence =
            keep_text(candidate, record, DS_ACCEL__RECORD_EVIDENCE + gate);
    }
}

static struct ds_accel__key make_key(const struct ds_accel__candidate *candidate)
{
    const ds_accel_t *context = candidate->host.context;
    const struct ds_accel__key_subject subject = {
        .base = context->key_base,
        .name = candidate->name,
        .path = candidate->path,
        .file = &candidate->file,
        .hardware = candidate->hardware,
        .facts = ds_accel__config_facts(&context->config, candidate->name),
    };

    return ds_accel__key_of(&subject);
}

/*
 * Find the candidate's record. NULL if there is none, or if the candidate has no key, because its
 * file was not checked while the store was open.
 */
static struct ds_accel__record *find(const struct ds_accel__candidate *candidate)
{
    return !ds_accel__key_is_none(candidate->key)
               ? ds_accel__cache_find(&candidate->host.context->cache, candidate->key)
               : NULL;
}

bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    const struct ds_accel__record *record;

    if (!context->cache.is_open) {
        return false;
    }
    assert(ds_accel__candidate_has_file(candidate));
    candidate->key = make_key(candidate);
    record = !context->asks_anew ? ds_accel__cache_find(&context->cache, candidate->key) : NULL;
    if (record == NULL || ds_accel__record_expires_in_ms(record, ds_accel__boot_ms()) == 0) {
        return false;
    }
    keep_gates(candidate, record, DS_ACCEL__GATE_TRUST, DS_ACCEL__GATE_HASH);
    ds_accel__copy(candidate->vendor, sizeof(candidate->vendor),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_VENDOR));
    ds_accel__copy(candidate->version, sizeof(candidate->version),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_VERSION));
    ds_accel__copy(candidate->abi, sizeof(candidate->abi),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_ABI));
    candidate->hardware_note = keep_text(candidate, record, DS_ACCEL__RECORD_HARDWARE);
    candidate->note_features = record->data.note_features;
    /* If the candidate is probed later, these features are stored again with its new verdict. */
    candidate->note_optional = record->data.note_optional;
    ds_accel__candidate_set_demand(candidate, candidate->note_optional);
    return true;
}

/* Use the stored result of a rehearsal, the start of the plugin in a helper process. */
static void take_start(struct ds_accel__start *start, const struct ds_accel__record *record)
{
    memset(start, 0, sizeof(*start));
    start->is_done = record->data.start_is_done;
    start->device_count = record->data.start_device_count;
    start->info.struct_size = sizeof(start->info);
    ds_accel__copy(start->info.communication_backend, sizeof(start->info.communication_backend),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_COMMUNICATION));
    ds_accel__copy(start->info.compile_backend, sizeof(start->info.compile_backend),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_COMPILE));
}

static void take_verdict(struct ds_accel__candidate *candidate,
                         const struct ds_accel__record *record)
{
    assert(record->data.stage < DS_ACCEL__GATE_COUNT);
    keep_gates(candidate, record, DS_ACCEL__GATE_HARDWARE, DS_ACCEL__GATE_COUNT - 1);
    candidate->state = record->data.state;
    candidate->stage = ds_accel__gate_name(record->data.stage);
    candidate->reason =
        ds_accel__reason_find(ds_accel__record_text(record, DS_ACCEL__RECORD_REASON));
    candidate->detail = keep_text(candidate, record, DS_ACCEL__RECORD_DETAIL);
    candidate->output = keep_text(candidate, record, DS_ACCEL__RECORD_OUTPUT);
    candidate->elapsed_us = record->data.elapsed_us;
    candidate->optional_features = record->data.table_optional;
    candidate->has_conduct = record->data.has_conduct != 0;
    take_start(&candidate->start, record);
    memset(&candidate->verdict, 0, sizeof(candidate->verdict));
    candidate->verdict.struct_size = sizeof(candidate->verdict);
    candidate->verdict.state = record->data.verdict_state;
    candidate->verdict.device_count = record->data.device_count;
    candidate->verdict.reason = record->data.verdict_reason;
    candidate->verdict.vendor_code = record->data.vendor_code;
    memcpy(candidate->verdict.variant, record->data.variant, sizeof(record->data.variant));
    ds_accel__copy(candidate->verdict.detail, sizeof(candidate->verdict.detail),
                   ds_accel__record_text(record, DS_ACCEL__RECORD_DETAIL));
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_RECALLED);
}

bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good)
{
    ds_accel_t *context = candidate->host.context;
    const struct ds_accel__record *record;

    record = find(candidate);
    if (record == NULL || ds_accel__record_expires_in_ms(record, ds_accel__boot_ms()) == 0) {
        return false;
    }
    /*
     * A verdict stored after this evaluation began is as new as the verdict that this process would
     * produce.
     */
    if (record->data.verdict_ms <= context->cache.begin_ms &&
        (context->asks_anew || (only_good && record->data.state != DS_ACCEL_STATE_AVAILABLE))) {
        return false;
    }
    take_verdict(candidate, record);
    return true;
}

static void fill_texts(const struct ds_accel__candidate *candidate, struct ds_accel__record *record)
{
    record->texts[DS_ACCEL__RECORD_NAME] = candidate->name;
    record->texts[DS_ACCEL__RECORD_PATH] = candidate->path;
    record->texts[DS_ACCEL__RECORD_VENDOR] = candidate->vendor;
    record->texts[DS_ACCEL__RECORD_VERSION] = candidate->version;
    record->texts[DS_ACCEL__RECORD_ABI] = candidate->abi;
    record->texts[DS_ACCEL__RECORD_HARDWARE] = candidate->hardware_note;
}

static void fill_verdict(const struct ds_accel__candidate *candidate,
                         struct ds_accel__record *record)
{
    struct ds_accel__record_data *data = &record->data;

    data->verdict_ms = ds_accel__boot_ms();
    data->wall_s = time(NULL);
    data->elapsed_us = candidate->elapsed_us;
    data->note_features = candidate->note_features;
    data->note_optional = candidate->note_optional;
    data->table_optional = candidate->optional_features;
    data->vendor_code = candidate->verdict.vendor_code;
    data->state = candidate->state;
    data->device_count = candidate->verdict.device_count;
    data->verdict_state = candidate->verdict.state;
    data->verdict_reason = candidate->verdict.reason;
    data->has_conduct = candidate->has_conduct;
    data->start_is_done = candidate->start.is_done != 0 && candidate->start.status == DS_ACCEL_OK;
    data->start_device_count = candidate->start.device_count;
    record->texts[DS_ACCEL__RECORD_COMMUNICATION] = candidate->start.info.communication_backend;
    record->texts[DS_ACCEL__RECORD_COMPILE] = candidate->start.info.compile_backend;
    memcpy(data->variant, candidate->verdict.variant, sizeof(data->variant));
    for (uint32_t gate = 0; gate < DS_ACCEL__GATE_COUNT; gate++) {
        data->gates[gate] = candidate->gates[gate].result;
        record->texts[DS_ACCEL__RECORD_EVIDENCE + gate] = candidate->gates[gate].evidence;
        if (strcmp(ds_accel__gate_name((enum ds_accel__gate)gate), candidate->stage) == 0) {
            data->stage = gate;
        }
    }
    record->texts[DS_ACCEL__RECORD_REASON] = ds_accel__reason_code(candidate->reason);
    record->texts[DS_ACCEL__RECORD_DETAIL] = candidate->detail;
    record->texts[DS_ACCEL__RECORD_OUTPUT] = candidate->output;
}

/*
 * Add or find the candidate's record, to change it. The store is locked first, if it is not locked
 * yet, which reads the records of other processes again. NULL: *status is a failure, the store is
 * not open or not writable, or the candidate has no key.
 */
static struct ds_accel__record *change(struct ds_accel__candidate *candidate, int32_t *status)
{
    ds_accel_t *context = candidate->host.context;
    struct ds_accel__record *record = NULL;

    *status = DS_ACCEL_OK;
    if (!context->cache.is_open || !context->cache.is_writable ||
        ds_accel__key_is_none(candidate->key)) {
        return NULL;
    }
    *status = ds_accel__verdicts_lock(context);
    if (*status >= 0) {
        record = ds_accel__cache_add(&context->cache, candidate->key);
        *status = record == NULL ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (record != NULL) {
        fill_texts(candidate, record);
        context->cache.is_dirty = true;
    }
    return record;
}

int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    bool is_strike = candidate->state == DS_ACCEL_STATE_CRASHED ||
                     candidate->state == DS_ACCEL_STATE_TIMED_OUT;
    struct ds_accel__record *record;
    int32_t status;

    assert(ds_accel__candidate_has_verdict(candidate));
    if (ds_accel__reason_is_of_helper(candidate->reason) ||
        !ds_accel__candidate_is_lasting(candidate)) {
        return DS_ACCEL_OK; /* the result is not the plugin's, or not lasting: it is not stored */
    }
    record = change(candidate, &status);
    if (record == NULL) {
        return status;
    }
    fill_verdict(candidate, record);
    if (is_strike) {
        if (ds_accel__strike_counts(record, context->asks_anew)) {
            ds_accel__strike_add(record, candidate->reason, candidate->detail, 0);
        }
    } else if (!record->data.strike_is_load) {
        ds_accel__record_forgive(record);
    }
    candidate->strikes = record->data.strikes;
    /* Store a strike now, in case the next plugin hangs and a user kills the whole program. */
    return is_strike ? ds_accel__cache_store(&context->cache) : DS_ACCEL_OK;
}

int32_t ds_accel__verdict_forget(struct ds_accel__candidate *candidate)
{
    int32_t status;
    struct ds_accel__record *record = change(candidate, &status);

    if (record != NULL) {
        record->data.verdict_ms = 0;
    }
    return status;
}

/* ---- quarantine ----------------------------------------------------------------------------- */

int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out)
{
    struct ds_accel__finding finding = {0};
    struct ds_accel__record *record;
    uint64_t left;
    int32_t status = DS_ACCEL_OK;

    *passed_out = true;
    record = find(candidate);
    if (record == NULL) {
        return DS_ACCEL_OK;
    }
    candidate->strikes = record->data.strikes;
    left = ds_accel__record_quarantined_ms(record, ds_accel__boot_ms());
    if (left == 0) {
        if (record->data.strikes > 0) {
            ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_QUARANTINE,
                                     "%u strike%s, the last: %s", record->data.strikes,
                                     record->data.strikes == 1 ? "" : "s",
                                     ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE));
        }
        return DS_ACCEL_OK;
    }
    if (is_forced) {
        record = change(candidate, &status);
        if (record != NULL) {
            ds_accel__record_forgive(record);
            record->data.verdict_ms = 0;
        }
        candidate->strikes = 0;
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_QUARANTINE, "%s",
                                 "it was quarantined, but is forced by name");
        return status;
    }
    candidate->output = keep_text(candidate, record, DS_ACCEL__RECORD_OUTPUT);
    finding.reason = DS_ACCEL__REASON_QUARANTINED;
    ds_accel__strikes_text(record, left, finding.detail, sizeof(finding.detail));
    ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_QUARANTINE, DS_ACCEL_STATE_QUARANTINED,
                             &finding);
    *passed_out = false;
    return DS_ACCEL_OK;
}

void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate)
{
    struct ds_accel__record *record;
    int32_t status;

    record = find(candidate);
    if (record == NULL || record->data.strikes == 0 || !record->data.strike_is_load) {
        return;
    }
    record = change(candidate, &status);
    if (record != NULL) {
        ds_accel__record_forgive(record);
    }
    candidate->strikes = 0;
}

/* ---- functions called around an evaluation -------------------------------------------------- */

/* Return the longest time for which a process may probe one plugin, and a little more. */
static uint64_t lock_limit_ms(const ds_accel_t *context)
{
    json_t *value = ds_accel__config_get(&context->config, "probe", "timeout_ms", NULL);

    return (json_is_integer(value) ? (uint64_t)json_integer_value(value) : 30000) + 2000;
}

void ds_accel__verdicts_begin(ds_accel_t *context)
{
    assert(!context->cache.is_open); /* the previous evaluation has ended */
    ds_accel__cache_close(&context->cache);
    context->has_tried_store = false;
}

int32_t ds_accel__verdicts_open(ds_accel_t *context, bool is_isolated)
{
    struct ds_accel__cache *cache = &context->cache;
    const char *problem = context->recording != NULL ? "a recorded machine has no cache"
                          : context->has_no_cache    ? "the program has turned the cache off"
                          : context->machine_root[0] != '\0' ? "a recorded machine has no cache"
                          : context->config.identity == 0    ? "a configuration file has vanished"
                          : !is_isolated                     ? "plugins are probed in this process"
                                                             : NULL;
    struct ds_accel__cache_place place;
    bool is_read = false;
    int32_t status;

    if (context->has_tried_store) {
        return DS_ACCEL_OK;
    }
    context->has_tried_store = true;
    if (problem != NULL) {
        ds_accel__cache_close(cache);
        snprintf(cache->problem, sizeof(cache->problem), "%s", problem);
        cache->has_no_directory = cache->is_refused = false;
        return DS_ACCEL_OK;
    }
    place = ds_accel__cache_place(context);
    place.is_useful = ds_accel__record_is_useful;
    status = ds_accel__cache_open(cache, &place);
    if (status < 0 || !cache->is_open) {
        return status;
    }
    assert(cache->table.count == 0); /* no records have been read yet */
    status = ds_accel__key_base(cache->machine, context->config.identity, !context->env.ignored,
                                &context->key_base);
    if (status >= 0 && cache->is_writable) {
        status = ds_accel__crumbs_collect(cache, lock_limit_ms(context), &is_read);
    }
    if (status >= 0 && !is_read) {
        status = ds_accel__cache_read(cache);
    }
    if (status < 0) { /* the next call tries again */
        ds_accel__cache_close(cache);
        context->has_tried_store = false;
    }
    return status;
}

int32_t ds_accel__verdicts_lock(ds_accel_t *context)
{
    if (context->cache.lock_fd >= 0) {
        return DS_ACCEL_OK;
    }
    return ds_accel__cache_lock(&context->cache, lock_limit_ms(context));
}

int32_t ds_accel__verdicts_try_lock(ds_accel_t *context)
{
    return ds_accel__cache_lock(&context->cache, 0);
}

int32_t ds_accel__verdicts_store(ds_accel_t *context)
{
    int32_t status = ds_accel__cache_store(&context->cache);

    ds_accel__cache_unlock(&context->cache);
    return status;
}

void ds_accel__verdicts_end(ds_accel_t *context)
{
    /* If memory is exhausted, nothing is stored, which does no harm. */
    ds_accel__verdicts_store(context);
    ds_accel__snapshot_keep(context);
    ds_accel__cache_close(&context->cache);
}
