/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Shows and deletes the stored results of probes, so that users need not remove files by hand. */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "config/env.h"
#include "ds_accel_tools.h"
#include "host/cache.h"
#include "host/context.h"
#include "host/registry.h"
#include "host/strike.h"
#include "host/verdict.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void set_text(json_t *object, const char *key, const char *text, bool *failed)
{
    ds_accel__json_set(object, key, ds_accel__json_text(text), failed);
}

static void set_number(json_t *object, const char *key, uint64_t number, bool *failed)
{
    ds_accel__json_set(object, key, json_integer((json_int_t)number), failed);
}

static json_t *entry_tree(const struct ds_accel__record *record, bool *failed)
{
    json_t *entry = json_object();

    set_text(entry, "name", ds_accel__record_text(record, DS_ACCEL__RECORD_NAME), failed);
    set_text(entry, "path", ds_accel__record_text(record, DS_ACCEL__RECORD_PATH), failed);
    return entry;
}

static void append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0) {
        *failed = true;
    }
}

static int32_t finish(json_t *tree, bool failed, json_t **tree_out)
{
    if (failed) {
        json_decref(tree);
        return ds_accel__no_memory();
    }
    *tree_out = tree;
    return DS_ACCEL_OK;
}

/* ---- cache show ----------------------------------------------------------------------------- */

static json_t *verdict_tree(const struct ds_accel__record *record, uint64_t now_ms, bool *failed)
{
    json_t *entry = entry_tree(record, failed);

    set_text(entry, "state", ds_accel__state_name(record->data.state), failed);
    set_text(entry, "reason", ds_accel__record_text(record, DS_ACCEL__RECORD_REASON), failed);
    set_text(entry, "detail", ds_accel__record_text(record, DS_ACCEL__RECORD_DETAIL), failed);
    set_number(entry, "device_count", record->data.device_count, failed);
    set_number(entry, "age_s", (now_ms - record->data.verdict_ms) / 1000, failed);
    set_number(entry, "expires_in_s", ds_accel__record_expires_in_ms(record, now_ms) / 1000,
               failed);
    return entry;
}

static void set_place(json_t *tree, const ds_accel_t *context, bool *failed)
{
    const struct ds_accel__cache *cache = &context->cache;
    const char *mode = context->env.values[DS_ACCEL__VARIABLE_CACHE];
    /* A cache directory that does not exist yet is usable. */
    bool is_usable = cache->is_open || cache->problem[0] == '\0';
    char *file;

    if (is_usable) {
        file = ds_accel__format("%s/%s", cache->directory, DS_ACCEL__CACHE_FILE);
        set_text(tree, "directory", cache->directory, failed);
        ds_accel__json_set(tree, "file", file != NULL ? ds_accel__json_text(file) : NULL, failed);
        free(file);
    } else {
        ds_accel__json_set(tree, "directory", json_null(), failed);
        ds_accel__json_set(tree, "file", json_null(), failed);
    }
    set_text(tree, "unused", is_usable ? "" : cache->problem, failed);
    set_text(tree, "mode", mode != NULL ? mode : "rw", failed);
}

static int32_t cache_tree(ds_accel_t *context, json_t **tree_out)
{
    const struct ds_accel__cache_table *table = &context->cache.table;
    uint64_t now_ms = ds_accel__boot_ms();
    bool failed = false;
    json_t *tree = json_object();
    json_t *entries = json_array();

    set_number(tree, "schema_version", 1, &failed);
    set_place(tree, context, &failed);
    for (size_t i = 0; i < table->count; i++) {
        if (ds_accel__record_expires_in_ms(&table->records[i], now_ms) > 0) {
            append(entries, verdict_tree(&table->records[i], now_ms, &failed), &failed);
        }
    }
    ds_accel__json_set(tree, "entries", entries, &failed);
    return finish(tree, failed, tree_out);
}

static int32_t begin(ds_accel_t *context)
{
    int32_t status;

    ds_accel__context_change_begin(context);
    context->cache.is_looked_at = true;
    ds_accel__verdicts_begin(context);
    status = ds_accel__verdicts_open(context, true);
    context->cache.is_looked_at = false;
    return status;
}

static void end(ds_accel_t *context)
{
    ds_accel__verdicts_end(context);
    ds_accel__context_change_end(context);
}

/* Read the stored results again and make a report of them, without probing plugins. */
static int32_t report(ds_accel_t *context,
                      int32_t (*make_tree)(ds_accel_t *context, json_t **tree_out),
                      json_t **tree_out)
{
    int32_t status = begin(context);

    status = status < 0 ? status : make_tree(context, tree_out);
    end(context);
    return status;
}

int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out)
{
    return report(context, cache_tree, tree_out);
}

/* ---- quarantine list ------------------------------------------------------------------------ */

/* The local time that is left_ms from now, in ISO 8601 with the zone's offset; null if it cannot be
 * formatted. */
static json_t *time_tree(uint64_t left_ms)
{
    time_t until = time(NULL) + (time_t)(left_ms / 1000);
    struct tm parts;
    char clock[40];
    char zone[8];

    if (localtime_r(&until, &parts) == NULL || strftime(zone, sizeof(zone), "%z", &parts) != 5 ||
        strftime(clock, sizeof(clock) - sizeof(zone), "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
        return json_null();
    }
    snprintf(clock + strlen(clock), sizeof(zone), "%.3s:%.2s", zone, zone + 3);
    return json_string(clock);
}

static json_t *strikes_tree(const struct ds_accel__record *record, uint64_t now_ms, bool *failed)
{
    uint64_t left_ms = ds_accel__record_quarantined_ms(record, now_ms);
    json_t *entry = entry_tree(record, failed);

    set_number(entry, "strikes", record->data.strikes, failed);
    set_text(entry, "reason", ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE), failed);
    set_text(entry, "detail", ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE_DETAIL),
             failed);
    ds_accel__json_set(entry, "quarantined", json_boolean(left_ms > 0), failed);
    ds_accel__json_set(entry, "until", left_ms > 0 ? time_tree(left_ms) : json_null(), failed);
    set_number(entry, "remaining_s", left_ms / 1000, failed);
    return entry;
}

static bool has_strikes(const struct ds_accel__record *record, uint64_t now_ms)
{
    return record->data.strikes > 0 && ds_accel__record_is_useful(record, now_ms);
}

static int32_t quarantine_tree(ds_accel_t *context, json_t **tree_out)
{
    const struct ds_accel__cache_table *table = &context->cache.table;
    uint64_t now_ms = ds_accel__boot_ms();
    bool failed = false;
    json_t *tree = json_object();
    json_t *entries = json_array();

    set_number(tree, "schema_version", 1, &failed);
    for (size_t i = 0; i < table->count; i++) {
        if (has_strikes(&table->records[i], now_ms)) {
            append(entries, strikes_tree(&table->records[i], now_ms, &failed), &failed);
        }
    }
    ds_accel__json_set(tree, "entries", entries, &failed);
    return finish(tree, failed, tree_out);
}

int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out)
{
    return report(context, quarantine_tree, tree_out);
}

/* ---- clearing ------------------------------------------------------------------------------- */

/* Open and lock the cache to change it. *is_absent_out is true if there is no cache directory, and
 * so nothing to delete. Fails if the cache is not usable, is read-only, or is locked by another
 * process. The caller calls end() in every case. */
static int32_t begin_change(ds_accel_t *context, bool *is_absent_out)
{
    const struct ds_accel__cache *cache = &context->cache;
    int32_t status = begin(context);

    *is_absent_out = false;
    if (status >= 0 && cache->is_open && cache->is_writable) {
        status = ds_accel__verdicts_lock(context);
    }
    if (status < 0) {
        return status;
    }
    if (!cache->is_open) {
        *is_absent_out = cache->has_no_directory;
        return *is_absent_out
                   ? DS_ACCEL_OK
                   : ds_accel__error(cache->is_refused ? DS_ACCEL_ERR_IO : DS_ACCEL_ERR_STATE,
                                     "nothing was cleared: %s", cache->problem);
    }
    if (!cache->is_writable) {
        return ds_accel__error(cache->problem[0] != '\0' ? DS_ACCEL_ERR_IO : DS_ACCEL_ERR_STATE,
                               "nothing was cleared: %s",
                               cache->problem[0] != '\0' ? cache->problem : "DS_ACCEL_CACHE is ro");
    }
    if (cache->stopped_pid != 0 && !cache->is_locked) {
        return ds_accel__error(
            DS_ACCEL_ERR_BUSY,
            "nothing was cleared: process %d is stopped while it probes plugins, "
            "and holds %s/lock",
            cache->stopped_pid, cache->directory);
    }
    return cache->is_locked
               ? DS_ACCEL_OK
               : ds_accel__error(DS_ACCEL_ERR_BUSY,
                                 "nothing was cleared: another process has been probing plugins "
                                 "for too long, and holds %s/lock",
                                 cache->directory);
}

/* Write the changed cache now, unless status is already an error. Unlike in other callers of
 * ds_accel__verdicts_store(), a failed write is an error. */
static int32_t end_change(ds_accel_t *context, int32_t status)
{
    if (status >= 0) {
        context->cache.is_dirty = context->cache.is_forgetting = true;
        status = ds_accel__verdicts_store(context);
        context->cache.is_forgetting = false;
    }
    if (status >= 0 && !context->cache.is_writable) {
        status =
            ds_accel__error(DS_ACCEL_ERR_IO, "nothing was cleared: %s", context->cache.problem);
    }
    return status;
}

int32_t ds_accel_cache_clear(ds_accel_t *context)
{
    bool is_absent;
    int32_t status;

    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = begin_change(context, &is_absent);
    if (!is_absent) {
        for (size_t i = 0; i < context->cache.table.count && status >= 0; i++) {
            context->cache.table.records[i].data.verdict_ms = 0;
        }
        status = end_change(context, status);
        if (status >= 0) {
            ds_accel__snapshot_forget(context);
        }
    }
    end(context);
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* Delete the strikes of a backend's plugins (name NULL: of all plugins), and the verdicts of these
 * plugins, so that they are probed again. Returns the number of plugins that had strikes. */
static size_t forgive(struct ds_accel__cache_table *table, const char *name)
{
    uint64_t now_ms = ds_accel__boot_ms();
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++) {
        struct ds_accel__record *record = &table->records[i];

        if (has_strikes(record, now_ms) &&
            (name == NULL ||
             strcmp(ds_accel__record_text(record, DS_ACCEL__RECORD_NAME), name) == 0)) {
            ds_accel__record_forgive(record);
            record->data.verdict_ms = 0;
            count++;
        }
    }
    return count;
}

int32_t ds_accel_quarantine_clear(ds_accel_t *context, const char *name)
{
    bool is_absent;
    size_t count = 0;
    int32_t status;

    status = ds_accel__context_check(context);
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = begin_change(context, &is_absent);
    if (status >= 0 && !is_absent) {
        count = forgive(&context->cache.table, name);
        status = count > 0 ? end_change(context, status) : DS_ACCEL_OK;
    }
    end(context);
    pthread_mutex_unlock(&context->lock);
    if (status >= 0 && count == 0 && name != NULL) {
        status = ds_accel__error(DS_ACCEL_ERR_NOT_FOUND,
                                 "no plugin named \"%s\" has crashed or hung recently", name);
    }
    return status;
}
