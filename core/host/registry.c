/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The candidates: what is known of each plugin found, gate by gate, and the order in which they are
 * asked. Also the one place where a plugin's table is copied into ours.
 */
#include "host/registry.h"
#include "base/fork.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "host/context.h"
#include "host/hooks.h"
#include "host/layers.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/verdict.h"
#include "machine/elf_file.h"
#include "machine/presence.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *ds_accel__state_name(uint32_t state)
{
    static const char *const names[] = {
        "not_probed", "selected",  "available", "unavailable", "error",       "rejected",
        "crashed",    "timed_out", "disabled",  "shadowed",    "quarantined",
    };

    return state < DS_ACCEL__ARRAY_SIZE(names) ? names[state] : "error";
}

const char *ds_accel__gate_name(enum ds_accel__gate gate)
{
    static const char *const names[DS_ACCEL__GATE_COUNT] = {
        [DS_ACCEL__GATE_NAME] = "name",         [DS_ACCEL__GATE_TRUST] = "trust",
        [DS_ACCEL__GATE_ELF] = "elf",           [DS_ACCEL__GATE_NOTE] = "note",
        [DS_ACCEL__GATE_HASH] = "hash",         [DS_ACCEL__GATE_ALLOW] = "allow",
        [DS_ACCEL__GATE_POWER] = "power",       [DS_ACCEL__GATE_QUARANTINE] = "quarantine",
        [DS_ACCEL__GATE_HARDWARE] = "hardware", [DS_ACCEL__GATE_LOAD] = "load",
        [DS_ACCEL__GATE_ENTRY] = "entry",       [DS_ACCEL__GATE_PROBE] = "probe",
        [DS_ACCEL__GATE_START] = "start",       [DS_ACCEL__GATE_CONDUCT] = "conduct",
    };

    return names[gate];
}

/* ---- one candidate -------------------------------------------------------------------------- */

struct ds_accel__candidate *ds_accel__candidate_create(ds_accel_t *context, const char *name,
                                                       const char *path)
{
    struct ds_accel__candidate *candidate = calloc(1, sizeof(*candidate));

    if (candidate == NULL) {
        return NULL;
    }
    candidate->path = strdup(path);
    if (candidate->path == NULL) {
        free(candidate);
        return NULL;
    }
    ds_accel__copy(candidate->name, sizeof(candidate->name), name);
    candidate->name_hash = ds_accel__hash_text(candidate->name, 0);
    candidate->reason = DS_ACCEL__REASON_NONE;
    candidate->stage = "";
    ds_accel__host_fill(&candidate->host, context, candidate);
    return candidate;
}

void ds_accel__candidate_watch(struct ds_accel__candidate *candidate)
{
    candidate->watch.table = &candidate->table;
    ds_accel__fork_watch(&candidate->watch);
}

void ds_accel__candidate_stop(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t *instance)
{
    if (instance != NULL && !candidate->watch.is_forked) {
        ds_accel__plugin_lock();
        candidate->table.shutdown(instance);
        ds_accel__plugin_unlock();
    }
    ds_accel__fork_unwatch(&candidate->watch);
    ds_accel__layers_remove(candidate);
}

void ds_accel__candidate_destroy(struct ds_accel__candidate *candidate)
{
    if (candidate == NULL) {
        return;
    }
    if (candidate->instance != NULL) {
        ds_accel__candidate_stop(candidate, candidate->instance);
    }
    if (candidate->watch.is_forked) {
        /* Handles that nobody may destroy here still ask its table, which answers for good. */
        ds_accel__module_abandon(candidate->module);
        return;
    }
    ds_accel__module_close(candidate->module);
    while (candidate->details != NULL) {
        struct ds_accel__detail *next = candidate->details->next;

        free(candidate->details);
        candidate->details = next;
    }
    free(candidate->power);
    free(candidate->path);
    free(candidate);
}

int32_t ds_accel__candidate_look(struct ds_accel__candidate *candidate)
{
    ds_accel_t *context = candidate->host.context;
    json_t *facts = ds_accel__config_facts(&context->config, candidate->name);
    struct ds_accel__presence presence;
    int32_t status;

    if (candidate->has_look) {
        return DS_ACCEL_OK;
    }
    candidate->hardware = 0;
    candidate->hardware_count = 0;
    candidate->has_hardware = false;
    if (json_array_size(json_object_get(facts, "pci")) == 0 &&
        json_array_size(json_object_get(facts, "device_nodes")) == 0 &&
        json_array_size(json_object_get(facts, "other_device_nodes")) == 0) {
        candidate->has_look = true;
        return DS_ACCEL_OK;
    }
    status = ds_accel__presence_read(&context->survey, facts, &presence);
    if (status < 0) {
        return status;
    }
    candidate->hardware = ds_accel__presence_fingerprint(&presence);
    candidate->hardware_count = presence.device_count;
    candidate->has_hardware = presence.device_count > 0 || presence.node_count > 0;
    if (presence.device_count > 0 && candidate->power == NULL) {
        candidate->power = malloc(sizeof(*candidate->power));
        status = candidate->power == NULL ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (status >= 0 && presence.device_count > 0) {
        ds_accel__presence_check_power(&presence, candidate->power);
    }
    ds_accel__presence_clear(&presence);
    candidate->has_look = status >= 0;
    return status;
}

/*
 * The text in storage that lives as long as the candidate: callers borrow details, and those of an
 * earlier verdict too. NULL when memory is exhausted.
 */
const char *ds_accel__candidate_keep(struct ds_accel__candidate *candidate, const char *text)
{
    struct ds_accel__detail *detail;
    size_t size = strlen(text) + 1;

    for (detail = candidate->details; detail != NULL; detail = detail->next) {
        if (detail->text[0] == text[0] && strcmp(detail->text, text) == 0) {
            return detail->text;
        }
    }
    detail = malloc(sizeof(*detail) + size);
    if (detail == NULL) {
        return NULL;
    }
    memcpy(detail->text, text, size);
    detail->next = candidate->details;
    candidate->details = detail;
    return detail->text;
}

void ds_accel__candidate_keep_output(struct ds_accel__candidate *candidate, const char *text)
{
    candidate->output = ds_accel__candidate_keep(candidate, text);
}

/*
 * Texts here only explain: when memory is exhausted they are left out (NULL), and the verdict,
 * which needs none, still stands.
 */
void ds_accel__candidate_set(struct ds_accel__candidate *candidate, uint32_t state,
                             enum ds_accel__reason_id reason, const char *format, ...)
{
    char line[1024];
    va_list arguments;

    candidate->state = state;
    candidate->reason = reason;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    candidate->detail = ds_accel__candidate_keep(candidate, line);
}

void ds_accel__candidate_fail(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              uint32_t state, const struct ds_accel__finding *finding)
{
    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_FAILED;
    ds_accel__candidate_set(candidate, state, finding->reason, "%s", finding->detail);
    candidate->gates[gate].evidence = candidate->detail;
    candidate->has_verdict = true;
}

void ds_accel__candidate_pass(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              const char *format, ...)
{
    char line[1024];
    va_list arguments;

    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_PASSED;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    candidate->gates[gate].evidence = ds_accel__candidate_keep(candidate, line);
}

void ds_accel__candidate_pass_plain(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                                    const char *evidence)
{
    candidate->stage = ds_accel__gate_name(gate);
    candidate->gates[gate].result = DS_ACCEL__GATE_PASSED;
    candidate->gates[gate].evidence = evidence;
}

void ds_accel__candidate_unask(struct ds_accel__candidate *candidate)
{
    candidate->has_verdict = false;
    candidate->has_conduct = false;
    candidate->is_inconclusive = false;
    memset(&candidate->start, 0, sizeof(candidate->start));
    for (int gate = DS_ACCEL__GATE_LOAD; gate < DS_ACCEL__GATE_COUNT; gate++) {
        candidate->gates[gate].result = DS_ACCEL__GATE_SKIPPED;
    }
    ds_accel__candidate_set(candidate, DS_ACCEL_STATE_NOT_PROBED, DS_ACCEL__REASON_NONE, "%s", "");
}

/* The first of an array's patterns that matches, or NULL. */
static const char *match(json_t *patterns, const char *name)
{
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));

        if (fnmatch(pattern, name, 0) == 0) {
            return pattern;
        }
    }
    return NULL;
}

static bool check_allowed(struct ds_accel__candidate *candidate)
{
    const struct ds_accel__config *config = &candidate->host.context->config;
    json_t *allow = ds_accel__config_get(config, "allow", NULL);
    const char *denied = match(ds_accel__config_get(config, "deny", NULL), candidate->name);
    struct ds_accel__finding finding = {0};

    if (denied != NULL) {
        ds_accel__find(&finding, DS_ACCEL__REASON_DENIED, "pattern \"%s\" of \"deny\"", denied);
    } else if (allow != NULL && match(allow, candidate->name) == NULL) {
        ds_accel__find(&finding, DS_ACCEL__REASON_NOT_ALLOWED, "no pattern of \"allow\" matches");
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_ALLOW, DS_ACCEL_STATE_DISABLED,
                                 &finding);
        return false;
    }
    ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_ALLOW, "by \"allow\" and \"deny\"");
    return true;
}

void ds_accel__candidate_set_demand(struct ds_accel__candidate *candidate,
                                    uint64_t optional_features)
{
    json_t *configured =
        ds_accel__config_backend(&candidate->host.context->config, candidate->name, "demand_only");

    candidate->is_demand_only = configured != NULL
                                    ? json_is_true(configured)
                                    : (optional_features & DS_ACCEL_FEATURE_DEMAND_ONLY) != 0;
}

static void keep_note(struct ds_accel__candidate *candidate, const struct ds_accel__elf *elf)
{
    const struct ds_accel_note_desc *desc = &elf->desc;

    memcpy(candidate->vendor, desc->vendor, sizeof(candidate->vendor));
    memcpy(candidate->version, desc->version, sizeof(candidate->version));
    snprintf(candidate->abi, sizeof(candidate->abi), "%u.%u", desc->abi_major, desc->abi_minor);
    candidate->note_optional = desc->optional_features[0] | (uint64_t)desc->optional_features[1]
                                                                << 32;
    ds_accel__candidate_set_demand(candidate, candidate->note_optional);
    candidate->note_features = desc->required_features[0] | (uint64_t)desc->required_features[1]
                                                                << 32;
    /* Without memory for it the plugin is asked. */
    candidate->hardware_note =
        elf->hardware != NULL ? ds_accel__candidate_keep(candidate, elf->hardware) : NULL;
}

/* trust.sha256 of the configuration; finding says what is wrong by it. */
static void compare_hash(const struct ds_accel__candidate *candidate, const char *hex,
                         struct ds_accel__finding *finding)
{
    const char *allowed = json_string_value(ds_accel__config_get(
        &candidate->host.context->config, "trust", "sha256", candidate->name, NULL));

    if (allowed == NULL) {
        ds_accel__find(finding, DS_ACCEL__REASON_HASH_UNLISTED, "its SHA-256 is %s", hex);
    } else if (strcmp(allowed, hex) != 0) {
        ds_accel__find(finding, DS_ACCEL__REASON_HASH_MISMATCH, "its SHA-256 is %s; allowed is %s",
                       hex, allowed);
    }
}

void ds_accel__candidate_judge_hash(struct ds_accel__candidate *candidate, const char *hex,
                                    struct ds_accel__finding *finding)
{
    const struct ds_accel *context = candidate->host.context;
    const char *mode =
        json_string_value(ds_accel__config_get(&context->config, "trust", "mode", NULL));

    compare_hash(candidate, hex, finding);
    if (finding->reason == DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HASH, "SHA-256 %s", hex);
    } else if (strcmp(mode, "warn") == 0) {
        ds_accel__log(&context->log, "trust", DS_ACCEL_LOG_WARN, "%s: %s: %s", candidate->path,
                      ds_accel__reason_code(finding->reason), finding->detail);
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HASH, "only warned of: %s: %s",
                                 ds_accel__reason_code(finding->reason), finding->detail);
        *finding = (struct ds_accel__finding){0};
    }
}

static void check_hash(struct ds_accel__candidate *candidate, int fd,
                       struct ds_accel__finding *finding)
{
    const struct ds_accel *context = candidate->host.context;
    const char *mode =
        json_string_value(ds_accel__config_get(&context->config, "trust", "mode", NULL));
    const char *cause;
    char hex[65];

    if (mode == NULL || strcmp(mode, "off") == 0) {
        return;
    }
    if (ds_accel__trust_hash(fd, hex, &cause) < 0) {
        ds_accel__find(finding, DS_ACCEL__REASON_NOT_READABLE, "%s: %s", candidate->path, cause);
        return;
    }
    ds_accel__candidate_judge_hash(candidate, hex, finding);
}

/* The gates elf, note and hash on one open file. *gate_out: the one that finding is of. */
static int32_t check_content(struct ds_accel__candidate *candidate, int fd,
                             enum ds_accel__gate *gate_out, struct ds_accel__finding *finding)
{
    struct ds_accel__elf elf;
    int32_t status;

    *gate_out = DS_ACCEL__GATE_ELF;
    status = ds_accel__elf_open(fd, &elf, finding);
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        ds_accel__elf_check_harm(&elf, finding);
        status = elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_ELF, "shared object, %zu bytes",
                                 elf.size_bytes);
        *gate_out = DS_ACCEL__GATE_NOTE;
        ds_accel__elf_check_note(&elf, candidate->name, finding);
        status = elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        keep_note(candidate, &elf);
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_NOTE, "%s %s by %s, ABI %s",
                                 candidate->name, candidate->version, candidate->vendor,
                                 candidate->abi);
        *gate_out = DS_ACCEL__GATE_HASH;
        check_hash(candidate, fd, finding);
    }
    ds_accel__elf_close(&elf);
    return status;
}

/*
 * What an earlier process found in the file, if it is still the same one. Who could have changed it
 * is looked at every time. *passed_out: that is all there is to know.
 */
static int32_t recall_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    struct ds_accel__finding finding = {0};
    int32_t status = ds_accel__trust_stat(candidate->host.context->trust, candidate->path,
                                          &candidate->file, &finding);

    *passed_out = false;
    if (status < 0) {
        return status;
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_TRUST, DS_ACCEL_STATE_REJECTED,
                                 &finding);
        return DS_ACCEL_OK;
    }
    candidate->has_file = true;
    status = ds_accel__candidate_look(candidate);
    *passed_out = status >= 0 && ds_accel__verdict_recall_file(candidate);
    return status;
}

/* What is judged is one open file from the first of these gates to the last. */
static int32_t check_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    struct ds_accel__finding finding = {0};
    enum ds_accel__gate gate = DS_ACCEL__GATE_TRUST;
    int32_t status;
    int fd;

    candidate->has_file = false;
    memset(candidate->key, 0, sizeof(candidate->key));
    if (candidate->host.context->cache.is_open) {
        status = recall_file(candidate, passed_out);
        if (status < 0 || *passed_out || candidate->has_verdict) {
            return status;
        }
    }
    status = ds_accel__trust_open(candidate->host.context->trust, candidate->path, &fd,
                                  &candidate->file, &finding);
    if (status < 0) {
        return status;
    }
    if (finding.reason == DS_ACCEL__REASON_NONE) {
        candidate->has_file = true;
        ds_accel__candidate_pass(candidate, gate, "owner %u, mode %04o: only root%s can change it",
                                 (unsigned)candidate->file.st_uid,
                                 (unsigned)(candidate->file.st_mode & 07777),
                                 ds_accel__has_raised_rights() ? "" : " and the user");
        status = check_content(candidate, fd, &gate, &finding);
        close(fd);
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, gate, DS_ACCEL_STATE_REJECTED, &finding);
    }
    *passed_out = finding.reason == DS_ACCEL__REASON_NONE;
    return status;
}

int32_t ds_accel__candidate_check_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    int32_t status = DS_ACCEL_OK;

    *passed_out = true;
    if (candidate->has_verdict) {
        *passed_out = candidate->gates[DS_ACCEL__GATE_ALLOW].result == DS_ACCEL__GATE_PASSED;
        return DS_ACCEL_OK;
    }
    if (candidate->gates[DS_ACCEL__GATE_ALLOW].result != DS_ACCEL__GATE_SKIPPED) {
        return DS_ACCEL_OK;
    }
    if (candidate->recorded != NULL) {
        status = ds_accel__recorded_source->check_file(candidate, passed_out);
    } else if (!candidate->is_registered) {
        status = check_file(candidate, passed_out);
    }
    if (status >= 0 && *passed_out) {
        *passed_out = check_allowed(candidate);
    }
    return status;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define FIRST_SLOT offsetof(struct ds_accel_plugin, probe)

static const struct {
    const char *name;
    size_t offset;
} required_slots[] = {
    {"probe", offsetof(struct ds_accel_plugin, probe)},
    {"init", offsetof(struct ds_accel_plugin, init)},
    {"shutdown", offsetof(struct ds_accel_plugin, shutdown)},
    {"device_count", offsetof(struct ds_accel_plugin, device_count)},
    {"device_open", offsetof(struct ds_accel_plugin, device_open)},
    {"device_close", offsetof(struct ds_accel_plugin, device_close)},
};

static bool has_slot(const struct ds_accel_plugin *table, size_t offset)
{
    void *slot;

    memcpy(&slot, (const char *)table + offset, sizeof(slot));
    return slot != NULL;
}

static void check_table(const struct ds_accel_plugin *table, const char *name,
                        struct ds_accel__finding *finding)
{
    int unknown = ds_accel__unknown_feature(table->required_features);

    if (table->abi_major != DS_ACCEL_ABI_MAJOR) {
        ds_accel__find(finding, DS_ACCEL__REASON_TABLE_ABI,
                       "the table says generation %u; expected %u", table->abi_major,
                       DS_ACCEL_ABI_MAJOR);
    } else if (unknown >= 0) {
        ds_accel__find(finding, DS_ACCEL__REASON_FEATURE_UNKNOWN,
                       "required feature bit %d of its table is not known here", unknown);
    } else if (table->name == NULL) {
        ds_accel__find(finding, DS_ACCEL__REASON_TABLE_NO_NAME, "the table's name is NULL");
    } else if (strncmp(table->name, name, DS_ACCEL__NAME_SIZE) != 0) {
        ds_accel__find(finding, DS_ACCEL__REASON_NAME_MISMATCH,
                       "the file says \"%s\", its table \"%.31s\"", name, table->name);
    }
    for (size_t i = 0;
         i < DS_ACCEL__ARRAY_SIZE(required_slots) && finding->reason == DS_ACCEL__REASON_NONE;
         i++) {
        if (!has_slot(table, required_slots[i].offset)) {
            ds_accel__find(finding, DS_ACCEL__REASON_SLOT_MISSING, "%s is NULL",
                           required_slots[i].name);
        }
    }
}

#define ABSURD_BYTES 65536u

void ds_accel__table_import(const struct ds_accel_plugin *theirs, const char *name,
                            struct ds_accel_plugin *ours, struct ds_accel__finding *finding)
{
    uint32_t size;
    uint32_t needed = DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, device_close);

    memset(ours, 0, sizeof(*ours));
    memcpy(&size, theirs, sizeof(size));
    if (size < needed) {
        ds_accel__find(finding, DS_ACCEL__REASON_TABLE_SHORT,
                       "it has %u bytes; expected at least %u", size, needed);
        return;
    }
    if (size > ABSURD_BYTES) {
        ds_accel__find(finding, DS_ACCEL__REASON_TABLE_ABSURD,
                       "it claims %u bytes; no table has over %u", size, ABSURD_BYTES);
        return;
    }
    /* Whole slots only: half a pointer is not one. */
    size -= (size - FIRST_SLOT) % sizeof(void *);
    memcpy(ours, theirs, size < sizeof(*ours) ? size : sizeof(*ours));
    ours->struct_size = sizeof(*ours);
    check_table(ours, name, finding);
    ds_accel__table_fill(ours, DS_ACCEL__STUB_UNSUPPORTED);
}

/* ---- the registry --------------------------------------------------------------------------- */

struct ds_accel__candidate *ds_accel__registry_find(const struct ds_accel__registry *registry,
                                                    const char *name)
{
    uint64_t hash = ds_accel__hash_text(name, 0);

    for (size_t i = 0; i < registry->count; i++) {
        if (registry->candidates[i]->name_hash == hash &&
            strcmp(registry->candidates[i]->name, name) == 0 &&
            registry->candidates[i]->gates[DS_ACCEL__GATE_NAME].result != DS_ACCEL__GATE_FAILED) {
            return registry->candidates[i];
        }
    }
    return NULL;
}

int32_t ds_accel__registry_add(struct ds_accel__registry *registry,
                               struct ds_accel__candidate *candidate)
{
    struct ds_accel__candidate **candidates = NULL;

    if (candidate != NULL) {
        candidates = realloc(registry->candidates, (registry->count + 1) * sizeof(*candidates));
    }
    if (candidates == NULL) {
        ds_accel__candidate_destroy(candidate);
        return ds_accel__no_memory();
    }
    registry->candidates = candidates;
    candidates[registry->count++] = candidate;
    return DS_ACCEL_OK;
}

void ds_accel__registry_clear(struct ds_accel__registry *registry)
{
    for (size_t i = 0; i < registry->count; i++) {
        ds_accel__candidate_destroy(registry->candidates[i]);
    }
    free(registry->candidates);
    memset(registry, 0, sizeof(*registry));
}

struct rank {
    size_t position; /* in detection_order, or after it */
    size_t found;    /* on the search path: keeps a shadowed one behind what shadows it */
    struct ds_accel__candidate *candidate;
};

static int compare_ranks(const void *a, const void *b)
{
    const struct rank *left = a;
    const struct rank *right = b;
    int order;

    if (left->position != right->position) {
        return left->position < right->position ? -1 : 1;
    }
    order = strcmp(left->candidate->name, right->candidate->name);
    if (order != 0) {
        return order;
    }
    return left->found < right->found ? -1 : left->found > right->found;
}

/* Listed ones by their place, then the others by name, then cpu unless it is listed before another.
 */
static size_t rank_of(json_t *order, const char *name)
{
    size_t count = json_array_size(order);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(json_string_value(json_array_get(order, i)), name) == 0) {
            return i == count - 1 && strcmp(name, "cpu") == 0 ? count + 1 : i;
        }
    }
    return strcmp(name, "cpu") == 0 ? count + 1 : count;
}

int32_t ds_accel__registry_sort(ds_accel_t *context)
{
    struct ds_accel__registry *registry = &context->registry;
    json_t *order = ds_accel__config_get(&context->config, "detection_order", NULL);
    struct rank *ranks;

    if (registry->count == 0) {
        return DS_ACCEL_OK;
    }
    ranks = calloc(registry->count, sizeof(*ranks));
    if (ranks == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < registry->count; i++) {
        struct ds_accel__candidate *candidate = registry->candidates[i];

        ranks[i] = (struct rank){rank_of(order, candidate->name), i, candidate};
        ds_accel__candidate_set_demand(candidate, candidate->table.optional_features);
    }
    qsort(ranks, registry->count, sizeof(*ranks), compare_ranks);
    for (size_t i = 0; i < registry->count; i++) {
        registry->candidates[i] = ranks[i].candidate;
    }
    free(ranks);
    return DS_ACCEL_OK;
}
