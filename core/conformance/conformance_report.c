/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Makes the JSON tree of the conformance suite's results, from which the text is made too. The tree
 * has one entry for each check, with the results on each device. */
#include "base/json.h"
#include "conformance/conformance.h"
#include "conformance/conformance_suite.h"
#include "host/registry.h"

#include <stdio.h>
#include <string.h>

/* Write the name of a pass: "device 1", "device 0 with X_VISIBLE=1,0". */
static void name_pass(const struct ds_accel__suite *suite, const struct ds_accel__pass *pass,
                      char *text, size_t text_size)
{
    snprintf(text, text_size, "device %u%s%.60s%s%.60s", pass->device_index,
             pass->is_shown ? " with " : "", pass->is_shown ? suite->variable : "",
             pass->is_shown ? "=" : "", pass->is_shown ? suite->value : "");
}

static json_t *run_tree(const struct ds_accel__suite *suite, const struct ds_accel__pass *pass,
                        const struct ds_accel__outcome *outcome, bool *failed)
{
    json_t *tree = json_object();

    ds_accel__json_set(tree, "device", json_integer(pass->device_index), failed);
    ds_accel__json_set(tree, "visible",
                       pass->is_shown ? ds_accel__json_text(suite->value) : json_null(), failed);
    ds_accel__json_set(tree, "result", json_string(outcome->result), failed);
    ds_accel__json_set(tree, "detail", ds_accel__json_text(outcome->detail), failed);
    ds_accel__json_set(
        tree, "slot",
        outcome->slot != 0 ? json_string(ds_accel__slot_name(outcome->slot)) : json_null(), failed);
    ds_accel__json_set(tree, "output",
                       ds_accel__json_text(outcome->output != NULL ? outcome->output : ""), failed);
    ds_accel__json_set(tree, "elapsed_us", json_integer((json_int_t)outcome->elapsed_us), failed);
    return tree;
}

/* The outcomes of one check on all devices, combined. */
struct summary {
    const struct ds_accel__outcome
        *chosen; /* the first that failed, or else passed, or else was skipped */
    const struct ds_accel__pass *pass; /* the pass of chosen */
    const char *output;                /* the output of chosen, or else the first output */
    uint64_t elapsed_us;
    size_t made_count; /* outcomes that were not skipped */
    size_t failed_count;
};

static int weight(const struct ds_accel__outcome *outcome)
{
    return outcome->result[0] == 'f' ? 2 : outcome->result[0] == 'p' ? 1 : 0;
}

static void summarise(const struct ds_accel__suite *suite, size_t position, struct summary *summary)
{
    memset(summary, 0, sizeof(*summary));
    for (size_t i = 0; i < suite->pass_count; i++) {
        const struct ds_accel__outcome *outcome = &suite->passes[i].outcomes[position];

        if (outcome->result == NULL) {
            continue;
        }
        if (summary->chosen == NULL || weight(outcome) > weight(summary->chosen)) {
            summary->chosen = outcome;
            summary->pass = &suite->passes[i];
        }
        summary->output = summary->output != NULL ? summary->output : outcome->output;
        summary->elapsed_us += outcome->elapsed_us;
        summary->failed_count += weight(outcome) == 2;
        summary->made_count += weight(outcome) > 0;
    }
    if (summary->chosen != NULL && summary->chosen->output != NULL) {
        summary->output = summary->chosen->output;
    }
}

static json_t *runs_tree(const struct ds_accel__suite *suite, size_t position, bool *failed)
{
    json_t *runs = json_array();

    for (size_t i = 0; suite != NULL && i < suite->pass_count; i++) {
        const struct ds_accel__outcome *outcome = &suite->passes[i].outcomes[position];

        if (outcome->result != NULL &&
            json_array_append_new(runs, run_tree(suite, &suite->passes[i], outcome, failed)) != 0) {
            *failed = true;
        }
    }
    return runs;
}

static json_t *check_tree(const struct ds_accel__suite *suite, size_t position,
                          const struct summary *summary, bool *failed)
{
    const struct ds_accel__check *check = ds_accel__check_at(position);
    const struct ds_accel__outcome *chosen = summary->chosen;
    uint32_t rule = chosen != NULL ? chosen->rule : check->rule;
    bool is_of_some = summary->failed_count > 0 && summary->failed_count < summary->made_count;
    json_t *tree = json_object();
    char where[192] = "";
    char text[768];

    snprintf(text, sizeof(text), "DSA-P%u", rule);
    ds_accel__json_set(tree, "rule", json_string(text), failed);
    ds_accel__json_set(tree, "title", ds_accel__json_text(ds_accel__rule_title(rule)), failed);
    ds_accel__json_set(tree, "group", json_string(check->group), failed);
    ds_accel__json_set(tree, "name", json_string(check->name), failed);
    ds_accel__json_set(tree, "result", json_string(chosen != NULL ? chosen->result : "listed"),
                       failed);
    if (is_of_some) {
        name_pass(suite, summary->pass, where, sizeof(where));
    }
    snprintf(text, sizeof(text), "%s%s%s", where, is_of_some ? ": " : "",
             chosen != NULL ? chosen->detail : "");
    ds_accel__json_set(tree, "detail", ds_accel__json_text(text), failed);
    ds_accel__json_set(tree, "slot",
                       chosen != NULL && chosen->slot != 0
                           ? json_string(ds_accel__slot_name(chosen->slot))
                           : json_null(),
                       failed);
    ds_accel__json_set(tree, "output",
                       ds_accel__json_text(summary->output != NULL ? summary->output : ""), failed);
    ds_accel__json_set(tree, "elapsed_us", json_integer((json_int_t)summary->elapsed_us), failed);
    ds_accel__json_set(tree, "runs", runs_tree(suite, position, failed), failed);
    return tree;
}

/* Add the checked devices, and the variable that showed them in another order. */
static void add_devices(json_t *tree, const struct ds_accel__suite *suite, bool *failed)
{
    json_t *devices = json_array();
    json_t *visible = json_null();
    size_t count = 0;

    for (size_t i = 0; suite != NULL && i < suite->pass_count; i++) {
        if (suite->passes[i].is_shown) {
            json_decref(visible);
            visible = json_object();
            ds_accel__json_set(visible, "variable", ds_accel__json_text(suite->variable), failed);
            ds_accel__json_set(visible, "value", ds_accel__json_text(suite->value), failed);
        } else if (json_array_append_new(devices, json_integer(suite->passes[i].device_index)) !=
                   0) {
            *failed = true;
        } else {
            count++;
        }
    }
    ds_accel__json_set(tree, "device",
                       count == 1 ? json_integer(suite->passes[0].device_index) : json_null(),
                       failed);
    ds_accel__json_set(tree, "devices", devices, failed);
    ds_accel__json_set(tree, "visible", visible, failed);
}

static json_t *counts_tree(const size_t *counts, bool *failed)
{
    json_t *tree = json_object();

    ds_accel__json_set(tree, "passed", json_integer((json_int_t)counts[1]), failed);
    ds_accel__json_set(tree, "failed", json_integer((json_int_t)counts[2]), failed);
    ds_accel__json_set(tree, "skipped", json_integer((json_int_t)counts[0]), failed);
    return tree;
}

json_t *ds_accel__suite_tree(const char *only, const struct ds_accel__suite *suite,
                             size_t *failed_count_out)
{
    size_t counts[3] = {0, 0, 0}; /* number of checks by combined outcome, indexed by weight() */
    bool failed = false;
    json_t *tree = json_object();
    json_t *checks = json_array();
    const struct ds_accel__check *check;

    for (size_t i = 0; (check = ds_accel__check_at(i)) != NULL; i++) {
        struct summary summary = {0};

        if (!ds_accel__check_is_chosen(check, only)) {
            continue;
        }
        if (suite != NULL) {
            summarise(suite, i, &summary);
        }
        if (summary.chosen != NULL) {
            counts[weight(summary.chosen)]++;
        }
        if (json_array_append_new(checks, check_tree(suite, i, &summary, &failed)) != 0) {
            failed = true;
        }
    }
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "path",
                       ds_accel__json_text(suite != NULL ? suite->candidate->path : ""), &failed);
    ds_accel__json_set(tree, "name",
                       ds_accel__json_text(suite != NULL ? suite->candidate->name : ""), &failed);
    add_devices(tree, suite, &failed);
    ds_accel__json_set(tree, "ok", json_boolean(counts[2] == 0), &failed);
    ds_accel__json_set(tree, "summary", counts_tree(counts, &failed), &failed);
    ds_accel__json_set(tree, "checks", checks, &failed);
    *failed_count_out = counts[2];
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}
