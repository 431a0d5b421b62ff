/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The report of a stall: which operation most ranks wait in, which ranks are outside it, and each
 * rank's threads. The text is written from the tree, so that both forms agree.
 */
#include "base/json.h"
#include "base/set.h"
#include "base/text.h"
#include "launch/stall_rank.h"

#include <stdlib.h>
#include <string.h>

/* ---- the common operation ------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* Waits in the C library, such as poll(), are the ends of most stacks, and name no operation. */
static bool is_operation(const json_t *wait)
{
    return ds_accel__waiting_is_communication(text_of(wait, "function")) ||
           (strncmp(text_of(wait, "module"), "libc.so", 7) != 0 &&
            strncmp(text_of(wait, "module"), "libpthread", 10) != 0);
}

/* True if a thread of the process is in the function. */
static bool is_inside(const struct ds_accel__watched *watched, const char *function)
{
    const json_t *thread;
    size_t i;

    json_array_foreach(json_object_get(watched->stack, "threads"), i, thread)
    {
        if (strcmp(text_of(json_object_get(thread, "wait"), "function"), function) == 0) {
            return true;
        }
    }
    return false;
}

/* The operation that most running ranks wait in; one of communication precedes others. NULL: there
 * is none. */
static const json_t *find_common(const struct ds_accel__stall_facts *facts)
{
    const json_t *best = NULL;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < facts->rank_count; i++) {
        const json_t *wait =
            facts->ranks[i].is_running ? ds_accel__watched_wait(facts->watched[i].shown) : NULL;
        const char *function = text_of(wait, "function");
        uint64_t weight = 0;

        if (wait == NULL || !is_operation(wait) ||
            (best != NULL && strcmp(function, text_of(best, "function")) == 0)) {
            continue;
        }
        for (uint32_t j = 0; j < facts->rank_count; j++) {
            weight += facts->ranks[j].is_running && is_inside(facts->watched[j].shown, function);
        }
        weight += ds_accel__waiting_is_communication(function) ? (uint64_t)UINT32_MAX : 0;
        if (weight > best_weight) {
            best = wait;
            best_weight = weight;
        }
    }
    return best;
}

static json_t *set_text(const struct ds_accel__set *set)
{
    struct ds_accel__text text = {0};
    json_t *value;

    ds_accel__set_write(set, &text);
    value = text.failed ? NULL : json_string(text.data != NULL ? text.data : "");
    ds_accel__text_clear(&text);
    return value;
}

static json_t *common_tree(const struct ds_accel__stall_facts *facts, bool *failed)
{
    const json_t *wait = find_common(facts);
    struct ds_accel__set inside = {0}, outside = {0};
    json_t *common;

    if (wait == NULL) {
        return json_null();
    }
    for (uint32_t i = 0; i < facts->rank_count; i++) {
        if (facts->ranks[i].is_running) {
            bool is_in = is_inside(facts->watched[i].shown, text_of(wait, "function"));

            *failed = ds_accel__set_add(is_in ? &inside : &outside, facts->first_rank + i) < 0 ||
                      *failed;
        }
    }
    common = json_object();
    ds_accel__json_set(common, "function", json_string(text_of(wait, "function")), failed);
    ds_accel__json_set(common, "module", json_string(text_of(wait, "module")), failed);
    ds_accel__json_set(common, "ranks", set_text(&inside), failed);
    ds_accel__json_set(common, "outside", set_text(&outside), failed);
    ds_accel__set_clear(&inside);
    ds_accel__set_clear(&outside);
    return common;
}

/* ---- the tree ------------------------------------------------------------------------------- */

static json_t *rank_tree(const struct ds_accel__stall_facts *facts, uint32_t rank, bool *failed)
{
    enum ds_accel__condition condition = ds_accel__watched_rank_condition(
        &facts->watched[rank], facts->during_ms, DS_ACCEL__STALL_SAMPLES);
    const char *text = facts->faults != NULL ? facts->faults[rank].text : NULL;
    json_t *tree = json_object();

    ds_accel__json_set(tree, "rank", json_integer(facts->first_rank + rank), failed);
    if (!facts->ranks[rank].is_running) {
        ds_accel__json_set(tree, "condition", json_string("ended"), failed);
        return tree;
    }
    ds_accel__json_set(tree, "condition",
                       json_string(condition == DS_ACCEL__CONDITION_IDLE ? "idle" : "spinning"),
                       failed);
    ds_accel__json_set(tree, "stack", json_incref(facts->watched[rank].shown->stack), failed);
    if (text != NULL) {
        ds_accel__json_set(tree, "python", ds_accel__json_text(text), failed);
    }
    return tree;
}

json_t *ds_accel__stall_report(const struct ds_accel__stall_facts *facts)
{
    json_t *report = json_object(), *ranks = json_array();
    bool failed = false;

    ds_accel__json_set(report, "silent_s", json_real((double)facts->silent_ns / 1e9), &failed);
    ds_accel__json_set(report, "devices",
                       facts->devices != NULL ? json_incref(facts->devices) : json_null(), &failed);
    ds_accel__json_set(report, "common", common_tree(facts, &failed), &failed);
    for (uint32_t i = 0; i < facts->rank_count; i++) {
        failed = json_array_append_new(ranks, rank_tree(facts, i, &failed)) != 0 || failed;
    }
    ds_accel__json_set(report, "ranks", ranks, &failed);
    if (failed) {
        json_decref(report);
        return NULL;
    }
    return report;
}

/* ---- text ----------------------------------------------------------------------------------- */

static const char *plural(const char *ranks)
{
    return strpbrk(ranks, "-,") != NULL ? "s" : "";
}

static void write_common(const json_t *common, struct ds_accel__text *text)
{
    const char *function = text_of(common, "function"), *module = text_of(common, "module");
    const char *inside = text_of(common, "ranks"), *outside = text_of(common, "outside");

    if (!json_is_object(common)) {
        return;
    }
    if (function[0] == '\0') { /* a function without a name in a known library */
        function = module;
    }
    ds_accel__text_add(text, "  rank%s %s %s in %s (%s)\n", plural(inside), inside,
                       plural(inside)[0] != '\0' ? "are" : "is", function, module);
    if (outside[0] != '\0') {
        ds_accel__text_add(text, "  rank%s %s %s not in %s\n", plural(outside), outside,
                           plural(outside)[0] != '\0' ? "are" : "is", function);
    }
}

static void write_devices(const json_t *devices, struct ds_accel__text *text)
{
    const json_t *device;
    size_t i;

    if (json_object_get(devices, "error") != NULL) {
        ds_accel__text_add(text, "  devices: %s\n", text_of(devices, "error"));
    }
    json_array_foreach(json_object_get(devices, "devices"), i, device)
    {
        const json_t *used = json_object_get(device, "utilization_percent");

        ds_accel__text_add(text, "  %s device %zu: progress: %s", text_of(devices, "accelerator"),
                           i, text_of(device, "progress"));
        if (used != NULL) {
            ds_accel__text_add(text, ", utilization %lld %%", (long long)json_integer_value(used));
        }
        ds_accel__text_add(text, "\n");
    }
}

/* Add lines of any origin, indented. */
static void write_lines(const char *lines, struct ds_accel__text *text)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        char *line = strndup(lines, length);

        if (line == NULL) {
            text->failed = true;
            return;
        }
        ds_accel__sanitize(line, length + 1);
        ds_accel__text_add(text, "    %s\n", line);
        free(line);
        lines += length + (lines[length] == '\n');
    }
}

static void write_rank(const json_t *rank, struct ds_accel__text *text)
{
    const json_t *stack = json_object_get(rank, "stack");
    const char *condition = text_of(rank, "condition"), *python = text_of(rank, "python");

    ds_accel__text_add(text, "rank %llu",
                       (unsigned long long)json_integer_value(json_object_get(rank, "rank")));
    if (stack == NULL) {
        ds_accel__text_add(text, " has ended\n");
        return;
    }
    ds_accel__text_add(text, " (%s, process %llu) %s:\n", text_of(stack, "name"),
                       (unsigned long long)ds_accel__json_size(stack, "pid"),
                       strcmp(condition, "idle") == 0 ? "uses no CPU time"
                                                      : "uses CPU time only in waits");
    ds_accel__stack_write(stack, text);
    if (python[0] != '\0') {
        ds_accel__text_add(text, "  Python:\n");
        write_lines(python, text);
    }
}

void ds_accel__stall_write(const json_t *report, struct ds_accel__text *text)
{
    const json_t *rank;
    size_t i;

    ds_accel__text_add(text, "stall: no output for %.0f s, and no rank makes progress\n",
                       json_real_value(json_object_get(report, "silent_s")));
    write_common(json_object_get(report, "common"), text);
    write_devices(json_object_get(report, "devices"), text);
    json_array_foreach(json_object_get(report, "ranks"), i, rank)
    {
        write_rank(rank, text);
    }
}
