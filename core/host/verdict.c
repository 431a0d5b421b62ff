/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What is remembered of a candidate from one process to the next: its verdict for a while, how
 * often it crashed or hung (quarantine), and that somebody is loading it just now (breadcrumbs).
 *
 * A record belongs to a key: the file as it is now, what of the environment, configuration, devices
 * and libraries a verdict can depend on, and the machine, boot and user. When any of these changes
 * the record is not found any more, and the plugin is asked again.
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
#include "host/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define GOOD_FOR_MS (60 * 60 * 1000u)    /* a verdict that it is available */
#define BAD_FOR_MS (60 * 1000u)          /* any other */
#define STRIKES_LAST_MS (48 * 3600000u)  /* a strike without another one after it */
#define STRIKE_LIMIT 2u                  /* from here on it is left alone */
#define LOADS_APART_MS (10 * 60 * 1000u) /* a strike by a breadcrumb, and the one after it */
#define CRUMB_PREFIX "loading."
#define CRUMB_NEW "starting." /* one that is not whole yet */

/* ---- the key -------------------------------------------------------------------------------- */

/* Names that a verdict can depend on whatever the backend. */
static bool is_relevant_to_all(const char *entry, size_t length, bool has_options)
{
    return strncmp(entry, "LD_", 3) == 0 ||
           (has_options && strncmp(entry, "DS_ACCEL_", 9) == 0 &&
            !ds_accel__env_is_ours(entry, length)) ||
           memmem(entry, length, "VISIBLE", 7) != NULL ||
           (length == 10 && strncmp(entry, "LOCAL_SIZE", 10) == 0);
}

/* has_options: those of plugins, DS_ACCEL_<NAME>_<KEY>, are not ignored. */
static uint64_t hash_env_of_all(bool has_options)
{
    uint64_t sum = has_options;

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (is_relevant_to_all(*entry, strcspn(*entry, "="), has_options)) {
            sum += ds_accel__hash_text(*entry, 3); /* in whatever order they stand */
        }
    }
    return sum;
}

/* A name in the configuration's list, of names or of rules that have one; NULL: it is none. */
static const char *name_at(json_t *names, size_t i)
{
    json_t *item = json_array_get(names, i);

    return json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
}

static void mark_letters(json_t *names, bool *letters)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_at(names, i);

        if (name != NULL) {
            letters[(unsigned char)name[0]] = true;
        }
    }
}

static bool begins_with_one(const char *entry, json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = name_at(names, i);

        if (name != NULL && strncmp(entry, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/* What the configuration says the backend reads or exports, and all that begins with its name. */
static uint64_t hash_env_of_backend(const struct ds_accel__candidate *candidate)
{
    json_t *backend = ds_accel__config_facts(&candidate->host.context->config, candidate->name);
    json_t *visible = json_object_get(backend, "visible_devices_envs");
    json_t *exported = json_object_get(backend, "export_envs");
    json_t *rules = json_object_get(backend, "env");
    char prefix[DS_ACCEL__NAME_SIZE + 1];
    size_t length = strcspn(candidate->name, ".");
    bool letters[256] = {false}; /* that a variable must begin with: few of a long list do */
    uint64_t sum = 0;

    for (size_t i = 0; i < length; i++) {
        prefix[i] = (char)(candidate->name[i] >= 'a' && candidate->name[i] <= 'z'
                               ? candidate->name[i] - 'a' + 'A'
                               : candidate->name[i]);
    }
    prefix[length] = '_';
    letters[(unsigned char)prefix[0]] = true;
    mark_letters(visible, letters);
    mark_letters(exported, letters);
    mark_letters(rules, letters);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (letters[(unsigned char)(*entry)[0]] &&
            (strncmp(*entry, prefix, length + 1) == 0 || begins_with_one(*entry, visible) ||
             begins_with_one(*entry, exported) || begins_with_one(*entry, rules))) {
            sum += ds_accel__hash_text(*entry, 5);
        }
    }
    return sum;
}

/* Another number when the file is another. */
static uint64_t hash_identity(const char *path, uint64_t seed)
{
    struct stat info;
    uint64_t parts[7];

    if (stat(path, &info) != 0) {
        return seed + 1;
    }
    parts[0] = info.st_dev;
    parts[1] = info.st_ino;
    parts[2] = (uint64_t)info.st_size;
    parts[3] = (uint64_t)info.st_mtim.tv_sec;
    parts[4] = (uint64_t)info.st_mtim.tv_nsec;
    parts[5] = (uint64_t)info.st_ctim.tv_sec;
    parts[6] = (uint64_t)info.st_ctim.tv_nsec;
    return ds_accel__hash(parts, sizeof(parts), seed);
}

/* The groups, which open device nodes. */
static int32_t hash_groups(uint64_t *hash)
{
    int limit = getgroups(0, NULL);
    gid_t gid = getegid();
    gid_t *groups = malloc(((size_t)(limit > 0 ? limit : 0) + 1) * sizeof(*groups));
    int count;

    if (groups == NULL) {
        return ds_accel__no_memory();
    }
    count = getgroups(limit, groups);
    *hash = ds_accel__hash(&gid, sizeof(gid), *hash);
    if (limit > 0 && count > 0) {
        *hash = ds_accel__hash(groups, (size_t)count * sizeof(*groups), *hash);
    }
    free(groups);
    return DS_ACCEL_OK;
}

/*
 * The part that is the same for all candidates: configuration, environment, libraries, machine,
 * rights.
 */
static int32_t make_base(ds_accel_t *context)
{
    uint64_t base =
        ds_accel__hash(&context->config.identity, sizeof(uint64_t), context->cache.machine);
    int32_t status = hash_groups(&base);

    /* The dynamic linker and vendors' libraries read theirs whatever of ours is ignored. */
    base += hash_env_of_all(!context->env.ignored);
    context->cache.base = hash_identity("/etc/ld.so.cache", base);
    return status;
}

static void make_key(struct ds_accel__candidate *candidate)
{
    const ds_accel_t *context = candidate->host.context;
    struct {
        uint64_t base, env, presence, device, inode, size, owner;
        struct timespec modified, changed;
    } parts = {
        .base = context->cache.base,
        .env = hash_env_of_backend(candidate),
        .presence = candidate->hardware,
        .device = candidate->file.st_dev,
        .inode = candidate->file.st_ino,
        .size = (uint64_t)candidate->file.st_size,
        .owner = (uint64_t)candidate->file.st_uid << 32 | candidate->file.st_mode,
        .modified = candidate->file.st_mtim,
        .changed = candidate->file.st_ctim,
    };
    uint64_t path = ds_accel__hash_text(candidate->path, 7);

    candidate->key[0] = ds_accel__hash(&parts, sizeof(parts), path);
    candidate->key[1] = ds_accel__hash(&parts, sizeof(parts), ~path);
}

/* False: the file was not looked at while there was a cache to use. */
static bool has_key(const struct ds_accel__candidate *candidate)
{
    return candidate->has_file && (candidate->key[0] | candidate->key[1]) != 0;
}

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

uint64_t ds_accel__record_quarantined_ms(const struct ds_accel__record *record, uint64_t now_ms)
{
    static const uint64_t minutes[] = {10, 60, 24 * 60};
    uint32_t strikes = record->data.strikes;
    uint64_t since = record->data.strike_ms;
    uint64_t length;

    if (strikes < STRIKE_LIMIT || since > now_ms) {
        return 0;
    }
    strikes -= STRIKE_LIMIT;
    length = minutes[strikes < DS_ACCEL__ARRAY_SIZE(minutes) ? strikes
                                                             : DS_ACCEL__ARRAY_SIZE(minutes) - 1] *
             60000u;
    return now_ms - since < length ? length - (now_ms - since) : 0;
}

const char *ds_accel__record_text(const struct ds_accel__record *record, int text)
{
    return record->texts[text] != NULL ? record->texts[text] : "";
}

void ds_accel__record_forgive(struct ds_accel__record *record)
{
    record->data.strikes = 0;
    record->data.strike_ms = 0;
    record->texts[DS_ACCEL__RECORD_STRIKE] = "";
    record->texts[DS_ACCEL__RECORD_STRIKE_DETAIL] = "";
}

bool ds_accel__record_is_useful(const struct ds_accel__record *record, uint64_t now_ms)
{
    return ds_accel__record_expires_in_ms(record, now_ms) > 0 ||
           (record->data.strikes > 0 && record->data.strike_ms <= now_ms &&
            now_ms - record->data.strike_ms < STRIKES_LAST_MS);
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
    for (int gate = first; gate <= last; gate++) {
        candidate->gates[gate].result = (enum ds_accel__gate_result)record->data.gates[gate];
        candidate->gates[gate].evidence =
            keep_text(candidate, record, DS_ACCEL__RECORD_EVIDENCE + gate);
    }
}

bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    const struct ds_accel__record *record;

    if (!context->cache.is_open) {
        return false;
    }
    make_key(candidate);
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
    candidate->note_optional = record->data.note_optional; /* it may be asked and kept again */
    ds_accel__candidate_set_demand(candidate, candidate->note_optional);
    return true;
}

/* What a rehearsal showed: it is made once for a key. */
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
    candidate->is_cached = true;
    candidate->has_verdict = true;
}

bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good)
{
    ds_accel_t *context = candidate->host.context;
    const struct ds_accel__record *record;

    candidate->is_cached = false;
    record = has_key(candidate) ? ds_accel__cache_find(&context->cache, candidate->key) : NULL;
    if (record == NULL || ds_accel__record_expires_in_ms(record, ds_accel__boot_ms()) == 0) {
        return false;
    }
    /* What somebody has found out since this one began is as new as what it would find out. */
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

/*
 * A breadcrumb cannot tell a plugin that ended its process from somebody who did. People and
 * schedulers seldom do so twice in a short time: one that is long ago is not added to. Strikes
 * enough to leave the plugin alone stay, so that it is left alone longer each time.
 */
static bool is_replaced(const struct ds_accel__record *record, uint64_t at_ms)
{
    uint64_t last = record->data.load_ms;

    return record->data.strike_is_load && record->data.strikes < STRIKE_LIMIT &&
           (at_ms > last ? at_ms - last : last - at_ms) > LOADS_APART_MS;
}

/* load_ms: when the load began that ended its process; 0: a helper told of it, just now. */
static void add_strike(struct ds_accel__record *record, enum ds_accel__reason_id reason,
                       const char *detail, uint64_t load_ms)
{
    uint64_t now = ds_accel__boot_ms();

    if (is_replaced(record, load_ms != 0 ? load_ms : now)) {
        record->data.strikes = 0;
    }
    record->data.strikes++;
    record->data.strike_ms = now;
    record->data.strike_wall_s = time(NULL);
    record->data.strike_is_load = load_ms != 0;
    record->data.load_ms = load_ms;
    record->texts[DS_ACCEL__RECORD_STRIKE] = ds_accel__reason_code(reason);
    record->texts[DS_ACCEL__RECORD_STRIKE_DETAIL] = detail;
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

/* Lock first: others' records are read again, and only then changed. NULL: nothing can be kept. */
static struct ds_accel__record *change(struct ds_accel__candidate *candidate, int32_t *status)
{
    ds_accel_t *context = candidate->host.context;
    struct ds_accel__record *record = NULL;

    *status = DS_ACCEL_OK;
    if (!context->cache.is_open || !context->cache.is_writable || !has_key(candidate)) {
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

/*
 * Reports ask whatever is remembered. Two of them within the time that a bad verdict holds for
 * others are no reason to leave the plugin alone: they count as one.
 */
static bool is_counted(const ds_accel_t *context, const struct ds_accel__record *record)
{
    uint64_t now = ds_accel__boot_ms();
    uint64_t last = record->data.strike_ms;

    return !context->asks_anew || record->data.strikes == 0 || last > now ||
           now - last >= BAD_FOR_MS;
}

int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    bool is_strike = candidate->state == DS_ACCEL_STATE_CRASHED ||
                     candidate->state == DS_ACCEL_STATE_TIMED_OUT;
    struct ds_accel__record *record;
    int32_t status;

    if (ds_accel__reason_is_of_helper(candidate->reason) || candidate->is_inconclusive) {
        return DS_ACCEL_OK; /* says nothing of the plugin */
    }
    record = change(candidate, &status);
    if (record == NULL) {
        return status;
    }
    fill_verdict(candidate, record);
    if (is_strike) {
        if (is_counted(context, record)) {
            add_strike(record, candidate->reason, candidate->detail, 0);
        }
    } else if (!record->data.strike_is_load) {
        ds_accel__record_forgive(record);
    }
    candidate->strikes = record->data.strikes;
    /* Now, in case the next one hangs and somebody loses patience with all of us. */
    return is_strike ? ds_accel__cache_store(context, &context->cache) : DS_ACCEL_OK;
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

static void say_until(const struct ds_accel__record *record, uint64_t left_ms, char *text,
                      size_t size)
{
    const char *detail = ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE_DETAIL);
    time_t until = time(NULL) + (time_t)(left_ms / 1000);
    struct tm parts;
    char clock[32] = "?";

    if (localtime_r(&until, &parts) != NULL) {
        strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &parts);
    }
    snprintf(text, size, "%u strikes, the last: %s%s%s; left alone until %s", record->data.strikes,
             ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE), detail[0] != '\0' ? ": " : "",
             detail, clock);
}

int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out)
{
    ds_accel_t *context = candidate->host.context;
    struct ds_accel__finding finding = {0};
    struct ds_accel__record *record;
    uint64_t left;
    int32_t status = DS_ACCEL_OK;

    *passed_out = true;
    record = has_key(candidate) ? ds_accel__cache_find(&context->cache, candidate->key) : NULL;
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
                                 "it was left alone, and is forced by name");
        return status;
    }
    candidate->output = keep_text(candidate, record, DS_ACCEL__RECORD_OUTPUT);
    finding.reason = DS_ACCEL__REASON_QUARANTINED;
    say_until(record, left, finding.detail, sizeof(finding.detail));
    ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_QUARANTINE, DS_ACCEL_STATE_QUARANTINED,
                             &finding);
    *passed_out = false;
    return DS_ACCEL_OK;
}

/* ---- breadcrumbs ---------------------------------------------------------------------------- */

struct crumb {
    char magic[8];
    uint64_t machine;
    uint64_t key[2];
    uint64_t begin_ms;
    char name[DS_ACCEL__NAME_SIZE];
    char path[1024];
};
static const char crumb_magic[8] = "DSLOADS";

/* Whole and locked before it has the name that others look for: no one sees half of it. */
static bool write_crumb(int folder, int fd, const struct crumb *content, const char *from,
                        const char *to)
{
    return ds_accel__file_may_have(sizeof(*content)) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           write(fd, content, sizeof(*content)) == (ssize_t)sizeof(*content) &&
           renameat(folder, from, folder, to) == 0;
}

/*
 * Before the real load: a file that is locked while the load goes on. A process that dies then
 * leaves it behind, unlocked.
 */
void ds_accel__crumb_drop(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb)
{
    static unsigned counter;
    const ds_accel_t *context = candidate->host.context;
    struct crumb content = {.machine = context->cache.machine, .begin_ms = ds_accel__boot_ms()};
    int folder = context->cache.folder_fd;
    unsigned number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    char name[sizeof(crumb->name)];
    bool done = false;

    crumb->fd = -1;
    if (!context->cache.is_open || !context->cache.is_writable || !has_key(candidate)) {
        return;
    }
    memcpy(content.magic, crumb_magic, sizeof(crumb_magic));
    memcpy(content.key, candidate->key, sizeof(content.key));
    memcpy(content.name, candidate->name, sizeof(content.name));
    snprintf(content.path, sizeof(content.path), "%s", candidate->path);
    snprintf(name, sizeof(name), CRUMB_NEW "%d.%u", (int)getpid(), number);
    /* Never in the place of a trail that is not yet read: numbers of processes come again. */
    snprintf(crumb->name, sizeof(crumb->name), CRUMB_PREFIX "%d.%u.%llu", (int)getpid(), number,
             (unsigned long long)content.begin_ms);
    unlinkat(folder, name, 0); /* of a process of another time */
    crumb->fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (crumb->fd >= 0) {
        done = write_crumb(folder, crumb->fd, &content, name, crumb->name);
    }
    if (!done && crumb->fd >= 0) { /* a full disk: then there is no trail */
        unlinkat(folder, name, 0);
        ds_accel__crumb_pick(candidate, crumb);
    }
}

void ds_accel__crumb_pick(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb)
{
    const ds_accel_t *context = candidate->host.context;

    if (crumb->fd >= 0) {
        unlinkat(context->cache.folder_fd, crumb->name, 0);
        close(crumb->fd);
    }
    crumb->fd = -1;
}

void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    struct ds_accel__record *record = NULL;
    int32_t status;

    if (has_key(candidate)) {
        record = ds_accel__cache_find(&context->cache, candidate->key);
    }
    if (record == NULL || record->data.strikes == 0 || !record->data.strike_is_load) {
        return;
    }
    record = change(candidate, &status);
    if (record != NULL) {
        ds_accel__record_forgive(record);
    }
    candidate->strikes = 0;
}

static bool is_crumb(const char *name)
{
    return strncmp(name, CRUMB_PREFIX, strlen(CRUMB_PREFIX)) == 0;
}

/* Read the trail of a process that died while it loaded a plugin; false: its owner still lives. */
static bool read_crumb(const ds_accel_t *context, const char *name, struct crumb *crumb)
{
    int fd = openat(context->cache.folder_fd, name,
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool is_left;

    memset(crumb, 0, sizeof(*crumb));
    if (fd < 0) {
        return false;
    }
    is_left = flock(fd, LOCK_SH | LOCK_NB) == 0; /* shared: so that who looks disturbs nobody */
    if (is_left && (read(fd, crumb, sizeof(*crumb)) != (ssize_t)sizeof(*crumb) ||
                    memcmp(crumb->magic, crumb_magic, sizeof(crumb_magic)) != 0)) {
        crumb->machine = 0; /* not one of ours: it is only removed */
    }
    close(fd);
    crumb->name[sizeof(crumb->name) - 1] = '\0';
    crumb->path[sizeof(crumb->path) - 1] = '\0';
    return is_left;
}

/*
 * The strike of a trail, whose texts no candidate is there for. The ranks of one job that died
 * together, before begin_ms, are one.
 */
static int32_t strike_by_crumb(ds_accel_t *context, const struct crumb *crumb, uint64_t begin_ms)
{
    struct ds_accel__record *record;
    struct crumb *kept;
    int32_t status;

    if (crumb->machine != context->cache.machine || crumb->begin_ms == 0 ||
        !ds_accel__is_backend_name(crumb->name)) {
        return DS_ACCEL_OK; /* of another boot or version */
    }
    kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        return ds_accel__no_memory();
    }
    *kept = *crumb;
    status = ds_accel__cache_keep(&context->cache, (char *)kept);
    record = status >= 0 ? ds_accel__cache_add(&context->cache, crumb->key) : NULL;
    if (record == NULL) {
        return ds_accel__no_memory();
    }
    if (record->data.strike_is_load && record->data.strike_ms >= begin_ms) {
        return DS_ACCEL_OK;
    }
    record->texts[DS_ACCEL__RECORD_NAME] = kept->name;
    record->texts[DS_ACCEL__RECORD_PATH] = kept->path;
    add_strike(record, DS_ACCEL__REASON_START_FAILED,
               "the process ended while the plugin was loaded and started in it; it may also have "
               "been ended from outside",
               kept->begin_ms);
    record->data.verdict_ms = 0;
    context->cache.is_dirty = true;
    ds_accel__log(&context->log, "cache", DS_ACCEL_LOG_WARN,
                  "%s: an earlier process ended while it loaded and started %s (strike %u)",
                  crumb->name, crumb->path, record->data.strikes);
    return DS_ACCEL_OK;
}

/* A trail, or a file that somebody has not finished. */
static bool is_left_behind(const char *name)
{
    return is_crumb(name) || strncmp(name, CRUMB_NEW, strlen(CRUMB_NEW)) == 0 ||
           strncmp(name, "verdicts.", 9) == 0 || strncmp(name, "config.", 7) == 0;
}

/* Of a process that is no more. */
static bool is_orphan(const char *name)
{
    long pid = strtol(strchr(name, '.') + 1, NULL, 10);

    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/*
 * Under the lock, so that of all who have seen a trail one counts it; and stored before it is
 * removed, so that whoever does not see it any more reads the strike.
 */
static int32_t count_crumbs(ds_accel_t *context, char **names, size_t count)
{
    int folder = context->cache.folder_fd;
    uint64_t begin_ms = ds_accel__boot_ms();
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < count && status >= 0; i++) {
        struct crumb crumb;

        if (is_crumb(names[i]) && read_crumb(context, names[i], &crumb)) {
            status = strike_by_crumb(context, &crumb, begin_ms);
        } else {
            names[i][0] = '\0';
        }
    }
    status = status < 0 ? status : ds_accel__cache_store(context, &context->cache);
    for (size_t i = 0; i < count && status >= 0 && context->cache.is_writable; i++) {
        if (names[i][0] != '\0') {
            unlinkat(folder, names[i], 0);
        }
    }
    return status;
}

/* False: each trail is of a process that lives. Removes what those who do not have not finished. */
static bool has_crumbs(const ds_accel_t *context, char **names, size_t count)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        struct crumb crumb;

        if (is_crumb(names[i])) {
            found = found || read_crumb(context, names[i], &crumb);
        } else if (is_orphan(names[i])) {
            unlinkat(context->cache.folder_fd, names[i], 0);
        }
    }
    return found;
}

/* Before the table is read. *is_read_out: it was read under the lock. */
static int32_t collect_crumbs(ds_accel_t *context, bool *is_read_out)
{
    const char *cause;
    char **names;
    size_t count;
    int32_t status =
        ds_accel__dir_list(context->cache.folder, is_left_behind, &names, &count, &cause);

    if (status == DS_ACCEL_ERR_IO) {
        return DS_ACCEL_OK;
    }
    if (status >= 0 && has_crumbs(context, names, count)) {
        status = ds_accel__verdicts_lock(context);
        *is_read_out = context->cache.lock_fd >= 0;
        if (status >= 0 && context->cache.is_locked) {
            status = count_crumbs(context, names, count);
        }
        ds_accel__cache_unlock(&context->cache);
    }
    ds_accel__names_free(names, count);
    return status;
}

/* ---- around the asking ---------------------------------------------------------------------- */

int32_t ds_accel__verdicts_begin(ds_accel_t *context, bool is_isolated)
{
    struct ds_accel__cache *cache = &context->cache;
    const char *problem = context->recording != NULL         ? "a recorded machine has no cache"
                          : context->has_no_cache            ? "the program wants no cache"
                          : context->machine_root[0] != '\0' ? "a recorded machine has no cache"
                          : context->config.identity == 0    ? "a configuration file has vanished"
                          : !is_isolated                     ? "plugins are asked in this process"
                                                             : NULL;
    bool is_read = false;
    int32_t status;

    if (problem != NULL) {
        ds_accel__cache_close(cache);
        snprintf(cache->problem, sizeof(cache->problem), "%s", problem);
        cache->has_no_folder = cache->is_refused = false;
        return DS_ACCEL_OK;
    }
    status = ds_accel__cache_open(context, cache);
    if (status < 0 || !cache->is_open) {
        return status;
    }
    status = make_base(context);
    if (status >= 0 && cache->is_writable) {
        status = collect_crumbs(context, &is_read);
    }
    if (status >= 0 && !is_read) {
        status = ds_accel__cache_read(context, cache);
    }
    return status;
}

int32_t ds_accel__verdicts_lock(ds_accel_t *context)
{
    json_t *value = ds_accel__config_get(&context->config, "probe", "timeout_ms", NULL);
    uint64_t limit = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 30000;

    if (context->cache.lock_fd >= 0) {
        return DS_ACCEL_OK;
    }
    return ds_accel__cache_lock(context, &context->cache, limit + 2000);
}

int32_t ds_accel__verdicts_try_lock(ds_accel_t *context)
{
    return ds_accel__cache_lock(context, &context->cache, 0);
}

int32_t ds_accel__verdicts_store(ds_accel_t *context)
{
    int32_t status = ds_accel__cache_store(context, &context->cache);

    ds_accel__cache_unlock(&context->cache);
    return status;
}

void ds_accel__verdicts_end(ds_accel_t *context)
{
    ds_accel__verdicts_store(context); /* for want of memory nothing is remembered: no harm */
    ds_accel__snapshot_keep(context);
    ds_accel__cache_close(&context->cache);
}
