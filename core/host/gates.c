/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The gates that a candidate passes before its code runs, and the table of all gates (gates.def). A
 * gate's function records the result: passed, or failed with a reason; if the gate does not apply,
 * it records neither. walk() calls the gates of one moment in order until one fails.
 */
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"
#include "host/context.h"
#include "host/hardware.h"
#include "host/hooks.h"
#include "host/registry.h"
#include "host/verdict.h"
#include "machine/elf_file.h"
#include "machine/presence.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

/* State shared by the gates of one walk. The file stays open from the first gate to the last. */
struct visit {
    int fd; /* -1: none */
    bool has_elf;
    struct ds_accel__elf elf;
    struct ds_accel__finding
        finding; /* with a reason: the gate failed, and the plugin is rejected */
};

/* Return the first pattern of an array that matches the name, or NULL. */
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
    /* If memory is exhausted here, the plugin is probed without the hardware check. */
    candidate->hardware_note =
        elf->hardware != NULL ? ds_accel__candidate_keep(candidate, elf->hardware) : NULL;
}

/*
 * Compare a file's SHA-256 with trust.sha256 of the configuration. finding is set if it differs, or
 * if the configuration has none for this backend.
 */
static void compare_hash(const struct ds_accel__candidate *candidate, const char *hex,
                         struct ds_accel__finding *finding)
{
    const char *allowed = json_string_value(ds_accel__config_get(
        &candidate->host.context->config, "trust", "sha256", candidate->name, NULL));

    if (allowed == NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HASH_UNLISTED, "its SHA-256 is %s", hex);
    } else if (strcmp(allowed, hex) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_HASH_MISMATCH,
                              "its SHA-256 is %s; allowed is %s", hex, allowed);
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
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_HASH, "accepted with a warning: %s: %s",
                                 ds_accel__reason_code(finding->reason), finding->detail);
        *finding = (struct ds_accel__finding){0};
    }
}

/* ---- gates on the file ---------------------------------------------------------------------- */

static int32_t check_trust(struct ds_accel__candidate *candidate, struct visit *visit)
{
    int32_t status = ds_accel__trust_open(candidate->host.context->trust, candidate->path,
                                          &visit->fd, &candidate->file, &visit->finding);

    if (status < 0 || visit->finding.reason != DS_ACCEL__REASON_NONE) {
        visit->fd = -1;
        return status;
    }
    ds_accel__candidate_pass(
        candidate, DS_ACCEL__GATE_TRUST, "owner %u, mode %04o: only root%s can change it",
        (unsigned)candidate->file.st_uid, (unsigned)(candidate->file.st_mode & 07777),
        ds_accel__has_raised_rights() ? "" : " and the user");
    return DS_ACCEL_OK;
}

static int32_t check_elf(struct ds_accel__candidate *candidate, struct visit *visit)
{
    int32_t status;

    assert(visit->fd >= 0 && !visit->has_elf); /* the gate trust has opened the file */
    status = ds_accel__elf_open(visit->fd, &visit->elf, &visit->finding);
    visit->has_elf = true;
    if (status >= 0 && visit->finding.reason == DS_ACCEL__REASON_NONE) {
        ds_accel__elf_check_harm(&visit->elf, &visit->finding);
        status = visit->elf.is_short_of_memory ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    if (status >= 0 && visit->finding.reason == DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_ELF, "shared object, %zu bytes",
                                 visit->elf.size_bytes);
    }
    return status;
}

static int32_t check_note(struct ds_accel__candidate *candidate, struct visit *visit)
{
    assert(visit->has_elf); /* the gate elf has read the file */
    ds_accel__elf_check_note(&visit->elf, candidate->name, &visit->finding);
    if (visit->elf.is_short_of_memory) {
        return ds_accel__no_memory();
    }
    if (visit->finding.reason == DS_ACCEL__REASON_NONE) {
        keep_note(candidate, &visit->elf);
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_NOTE, "%s %s by %s, ABI %s",
                                 candidate->name, candidate->version, candidate->vendor,
                                 candidate->abi);
    }
    return DS_ACCEL_OK;
}

static int32_t check_hash(struct ds_accel__candidate *candidate, struct visit *visit)
{
    const struct ds_accel *context = candidate->host.context;
    const char *mode =
        json_string_value(ds_accel__config_get(&context->config, "trust", "mode", NULL));
    const char *cause;
    char hex[65];

    assert(visit->fd >= 0);
    if (mode == NULL || strcmp(mode, "off") == 0) {
        return DS_ACCEL_OK;
    }
    if (ds_accel__trust_hash(visit->fd, hex, &cause) < 0) {
        ds_accel__finding_set(&visit->finding, DS_ACCEL__REASON_NOT_READABLE, "%s: %s",
                              candidate->path, cause);
        return DS_ACCEL_OK;
    }
    ds_accel__candidate_judge_hash(candidate, hex, &visit->finding);
    return DS_ACCEL_OK;
}

/* ---- gates on the configuration, the machine and stored records ----------------------------- */

static int32_t check_allowed(struct ds_accel__candidate *candidate, struct visit *visit)
{
    const struct ds_accel__config *config = &candidate->host.context->config;
    json_t *allow = ds_accel__config_get(config, "allow", NULL);
    const char *denied = match(ds_accel__config_get(config, "deny", NULL), candidate->name);
    struct ds_accel__finding finding = {0};

    (void)visit;
    if (denied != NULL) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_DENIED, "pattern \"%s\" of \"deny\"",
                              denied);
    } else if (allow != NULL && match(allow, candidate->name) == NULL) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_NOT_ALLOWED,
                              "no pattern of \"allow\" matches");
    }
    if (finding.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_ALLOW, DS_ACCEL_STATE_DISABLED,
                                 &finding);
    } else {
        ds_accel__candidate_pass_plain(candidate, DS_ACCEL__GATE_ALLOW,
                                       "by \"allow\" and \"deny\"");
    }
    return DS_ACCEL_OK;
}

/*
 * Check that a probe would wake no device. The devices of a candidate requested by name may be
 * woken.
 */
static int32_t check_power(struct ds_accel__candidate *candidate, struct visit *visit)
{
    int32_t status = DS_ACCEL_OK;

    (void)visit;
    if (!candidate->is_registered) {
        status = ds_accel__candidate_look(candidate);
    }
    if (status < 0) {
        return status;
    }
    if (candidate->hardware_count == 0) {
        candidate->gates[DS_ACCEL__GATE_POWER].result = DS_ACCEL__GATE_SKIPPED;
        return DS_ACCEL_OK;
    }
    assert(candidate->power != NULL); /* set for a candidate with devices */
    if (candidate->wish >= DS_ACCEL__WISH_NAMED) {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_POWER, "requested by name");
    } else if (candidate->power->reason != DS_ACCEL__REASON_NONE) {
        ds_accel__candidate_fail(candidate, DS_ACCEL__GATE_POWER, DS_ACCEL_STATE_UNAVAILABLE,
                                 candidate->power);
    } else {
        ds_accel__candidate_pass(candidate, DS_ACCEL__GATE_POWER, "%s", candidate->power->detail);
    }
    return DS_ACCEL_OK;
}

static int32_t check_quarantine(struct ds_accel__candidate *candidate, struct visit *visit)
{
    bool passed;

    (void)visit;
    if (candidate->recorded != NULL) {
        ds_accel__recorded_source->quarantine(candidate, &passed);
        return DS_ACCEL_OK;
    }
    return ds_accel__quarantine_check(candidate, candidate->wish == DS_ACCEL__WISH_FORCED, &passed);
}

static int32_t check_hardware(struct ds_accel__candidate *candidate, struct visit *visit)
{
    (void)visit;
    return ds_accel__hardware_check(candidate);
}

/* ---- table of gates ------------------------------------------------------------------------- */

static const struct {
    int32_t (*check)(struct ds_accel__candidate *candidate, struct visit *visit);
    enum ds_accel__gate_when when;
} gates[DS_ACCEL__GATE_COUNT] = {
#define GATE(id, name, check, when) {check, DS_ACCEL__WHEN_##when},
#include "host/gates.def"
#undef GATE
};

/* Call the gates of one moment (when), until one fails. *passed_out is true if none failed. */
static int32_t walk(struct ds_accel__candidate *candidate, enum ds_accel__gate_when when,
                    struct visit *visit, bool *passed_out)
{
    int32_t status = DS_ACCEL_OK;

    assert(when < DS_ACCEL__WHEN_RUN && !ds_accel__candidate_has_verdict(candidate));
    *passed_out = true;
    for (int gate = 0; gate < DS_ACCEL__GATE_COUNT && status >= 0 && *passed_out; gate++) {
        if (gates[gate].when != when || gates[gate].check == NULL) {
            continue;
        }
        status = gates[gate].check(candidate, visit);
        if (visit->finding.reason != DS_ACCEL__REASON_NONE) {
            ds_accel__candidate_fail(candidate, gate, DS_ACCEL_STATE_REJECTED, &visit->finding);
        }
        *passed_out = !ds_accel__candidate_has_verdict(candidate);
    }
    return status;
}

int32_t ds_accel__gates_walk(struct ds_accel__candidate *candidate, enum ds_accel__gate_when when,
                             bool *passed_out)
{
    struct visit visit = {.fd = -1};

    return walk(candidate, when, &visit, passed_out);
}

int32_t ds_accel__gates_walk_file(struct ds_accel__candidate *candidate, bool *passed_out)
{
    struct visit visit = {.fd = -1};
    int32_t status = walk(candidate, DS_ACCEL__WHEN_FILE, &visit, passed_out);

    if (visit.has_elf) {
        ds_accel__elf_close(&visit.elf);
    }
    if (visit.fd >= 0) {
        close(visit.fd);
    }
    return status;
}
