/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks the rules of docs/plugin-abi.md that need the plugin's code, in the process that runs it:
 * for lint.c a child of ds-accel-probe, or the calling process if the configuration turns helpers
 * off. Each result is reported at once, because the check of the next rule may crash the process.
 */
#include "base/trust.h"
#include "host/context.h"
#include "host/loader.h"
#include "host/probe.h"
#include "host/registry.h"
#include "machine/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct run {
    /* The candidate being probed, under whose name the host logs. */
    struct ds_accel__candidate *candidate;
    ds_accel__rule_t judge;
    void *user_data;
    struct ds_accel_note_desc note;
    const struct ds_accel_plugin *theirs;
};

static void judge(const struct run *run, uint32_t number, bool can_check,
                  const struct ds_accel__finding *finding)
{
    uint32_t result = !can_check                                 ? DS_ACCEL__RULE_SKIPPED
                      : finding->reason != DS_ACCEL__REASON_NONE ? DS_ACCEL__RULE_FAILED
                                                                 : DS_ACCEL__RULE_PASSED;

    run->judge(run->user_data, number, result, can_check ? finding->detail : "");
}

static void enter(const struct run *run, enum ds_accel__gate gate)
{
    ds_accel_t *context = run->candidate->host.context;

    if (context->on_stage != NULL) {
        context->on_stage(context, gate);
    }
}

static int32_t read_note(struct run *run, struct ds_accel__finding *finding)
{
    struct ds_accel__elf elf = {0};
    int fd = open(run->candidate->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int32_t status;

    if (fd < 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_LOAD_FAILED, "%s: %s", run->candidate->path,
                              strerror(errno));
        return DS_ACCEL_OK;
    }
    status = ds_accel__elf_open(fd, &elf, finding);
    close(fd);
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        /* Discarded: lint.c has already judged the note. */
        struct ds_accel__finding note = {0};

        ds_accel__elf_check_note(&elf, run->candidate->name, &note);
        run->note = elf.desc;
    }
    ds_accel__elf_close(&elf);
    return status;
}

static int32_t check_load(struct run *run)
{
    struct ds_accel__finding finding = {0};
    int32_t status = read_note(run, &finding);

    if (status >= 0 && finding.reason == DS_ACCEL__REASON_NONE) {
        enter(run, DS_ACCEL__GATE_LOAD);
        status = ds_accel__module_open(run->candidate->path, &run->candidate->module, &finding);
    }
    if (status >= 0) {
        judge(run, 6, true, &finding);
    }
    return status;
}

/*
 * Check that the plugin's note and table agree in vendor, version, features and the table's size.
 * ds_accel__table_import() has compared their names.
 */
static void compare_note(const struct run *run, const struct ds_accel_plugin *table,
                         struct ds_accel__finding *finding)
{
    const struct ds_accel_note_desc *note = &run->note;
    uint64_t required = note->required_features[0] | (uint64_t)note->required_features[1] << 32;
    uint64_t optional = note->optional_features[0] | (uint64_t)note->optional_features[1] << 32;
    uint32_t table_size;

    memcpy(&table_size, run->theirs, sizeof(table_size));
    if (table->vendor == NULL || table->version == NULL) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BROKEN_RULE, "vendor or version is NULL");
    } else if (strncmp(table->vendor, note->vendor, sizeof(note->vendor)) != 0 ||
               strncmp(table->version, note->version, sizeof(note->version)) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BROKEN_RULE,
                              "note and table differ in vendor or version");
    } else if (table->required_features != required || table->optional_features != optional) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BROKEN_RULE,
                              "note and table differ in features");
    } else if (table_size != note->table_size) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BROKEN_RULE,
                              "the note declares a table of %u bytes, the table has %u",
                              note->table_size, table_size);
    }
}

static void check_entry(struct run *run)
{
    struct ds_accel__candidate *candidate = run->candidate;
    struct ds_accel__finding finding = {0};
    struct ds_accel__finding table = {0};
    struct ds_accel__finding none = {0};
    const struct ds_accel_plugin *second = NULL;
    bool has_all_slots;

    enter(run, DS_ACCEL__GATE_ENTRY);
    ds_accel__plugin_lock();
    ds_accel__module_entry(candidate->module, &candidate->host.abi, &run->theirs, &finding);
    if (run->theirs != NULL) {
        ds_accel__module_entry(candidate->module, &candidate->host.abi, &second, &finding);
        if (second != run->theirs) {
            ds_accel__finding_set(&finding, DS_ACCEL__REASON_BROKEN_RULE,
                                  "two calls returned different tables");
        }
        /* Import by the note's name: another rule compares that name with the file's name. */
        ds_accel__table_import(run->theirs, run->note.name, &candidate->table, &table);
        if (table.reason == DS_ACCEL__REASON_NONE ||
            table.reason == DS_ACCEL__REASON_FEATURE_UNKNOWN) {
            table.reason = DS_ACCEL__REASON_NONE;
            table.detail[0] = '\0';
            compare_note(run, &candidate->table, &table);
        }
    }
    ds_accel__plugin_unlock();
    judge(run, 9, true, &finding);
    has_all_slots = table.reason != DS_ACCEL__REASON_SLOT_MISSING;
    candidate->has_table = run->theirs != NULL && table.reason == DS_ACCEL__REASON_NONE;
    judge(run, 10, run->theirs != NULL, has_all_slots ? &table : &none);
    judge(run, 11, candidate->has_table || !has_all_slots, has_all_slots ? &none : &table);
}

static int32_t check_probe(struct run *run)
{
    struct ds_accel__candidate *candidate = run->candidate;
    struct ds_accel__finding finding = {0};
    int32_t status = ds_accel__probe_here(candidate);

    if (status >= 0 && candidate->reason == DS_ACCEL__REASON_BAD_VERDICT) {
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_BROKEN_RULE, "%s",
                              candidate->detail != NULL ? candidate->detail : "");
    }
    if (status >= 0) {
        judge(run, 13, true, &finding);
    }
    return status;
}

int32_t ds_accel__probe_lint(struct ds_accel__candidate *candidate, ds_accel__rule_t judge_rule,
                             void *user_data)
{
    struct run run = {.candidate = candidate, .judge = judge_rule, .user_data = user_data};
    int32_t status = check_load(&run);

    if (status >= 0 && candidate->module != NULL) {
        check_entry(&run);
    }
    return status >= 0 && candidate->has_table ? check_probe(&run) : status;
}
