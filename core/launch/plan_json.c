/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The plan as JSON (conf/schema/run.json). It is written from the plan directly and in pieces, not
 * through a tree: the tree of 80,000 ranks would need a gigabyte.
 */
#include "launch/plan_json.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/pieces.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct ds_accel__plan *plan;
    struct ds_accel__pieces pieces;
    bool is_first; /* the next member of the current object is its first */
};

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\') {
            return false;
        }
    }
    return true;
}

static void add_string(struct ds_accel__text *out, const char *text)
{
    json_t *value;

    if (text == NULL) {
        ds_accel__text_add(out, "null");
    } else if (is_plain(text)) {
        ds_accel__text_add_bytes(out, "\"", 1);
        ds_accel__text_add_bytes(out, text, strlen(text));
        ds_accel__text_add_bytes(out, "\"", 1);
    } else {
        value = ds_accel__json_text(text);
        ds_accel__text_add_json(out, value, JSON_ENCODE_ANY);
        json_decref(value);
    }
}

static void add_set(struct ds_accel__text *out, const struct ds_accel__set *set)
{
    if (set == NULL || set->count == 0) {
        ds_accel__text_add(out, "null");
        return;
    }
    ds_accel__text_add(out, "\"");
    ds_accel__set_write(set, out);
    ds_accel__text_add(out, "\"");
}

static bool add_variable(void *user_data, const char *name, const char *value)
{
    struct writer *writer = user_data;

    ds_accel__text_add(&writer->pieces.text, writer->is_first ? "" : ",");
    add_string(&writer->pieces.text, name);
    ds_accel__text_add(&writer->pieces.text, ":");
    add_string(&writer->pieces.text, value);
    writer->is_first = false;
    return true;
}

static void add_host(struct writer *writer, const struct ds_accel__job_host *host)
{
    struct ds_accel__text *out = &writer->pieces.text;

    ds_accel__text_add(out, "{\"host\":");
    add_string(out, host->name);
    ds_accel__text_add(out, ",\"slots\":[");
    for (uint32_t i = 0; i < host->slot_count; i++) {
        ds_accel__text_add(out, i > 0 ? "," : "");
        if (host->slots[i].token != NULL) {
            add_string(out, host->slots[i].token);
        } else {
            ds_accel__text_add(out, "%u", host->slots[i].index);
        }
    }
    ds_accel__text_add(out, "]}");
}

static void add_arguments(struct writer *writer, const struct ds_accel__rank *rank)
{
    const struct ds_accel__plan *plan = writer->plan;
    struct ds_accel__text *out = &writer->pieces.text;

    for (uint32_t i = 0; i <= plan->argument_count; i++) {
        if (i == plan->local_rank_at) {
            ds_accel__text_add(out, ",\"--local_rank=%u\"", rank->local_rank);
        }
        if (i < plan->argument_count) {
            ds_accel__text_add(out, i > 0 ? "," : "");
            add_string(out, plan->arguments[i]);
        }
    }
}

static int32_t add_rank(struct writer *writer, const struct ds_accel__rank *rank)
{
    static const char *const policies[] = {
        [DS_ACCEL__MEMORY_DEFAULT] = "null",
        [DS_ACCEL__MEMORY_BIND] = "\"bind\"",
        [DS_ACCEL__MEMORY_PREFER] = "\"prefer\"",
    };
    const struct ds_accel__plan *plan = writer->plan;
    const struct ds_accel__placement *placement = rank->placement;
    struct ds_accel__text *out = &writer->pieces.text;
    int32_t status;

    ds_accel__text_add(out, "{\"rank\":%u,\"local_rank\":%u,\"host\":", rank->rank,
                       rank->local_rank);
    add_string(out, plan->hosts.items[rank->host].name);
    ds_accel__text_add(out, ",\"cpus\":");
    add_set(out, placement != NULL ? &placement->cpus : NULL);
    ds_accel__text_add(out, ",\"reserved_cpus\":");
    add_set(out, placement != NULL ? &placement->reserved : NULL);
    ds_accel__text_add(out, ",\"mem_policy\":%s,\"mem_nodes\":",
                       policies[placement != NULL ? placement->memory : DS_ACCEL__MEMORY_DEFAULT]);
    add_set(out, placement != NULL ? &placement->nodes : NULL);
    ds_accel__text_add(out, ",\"env\":{");
    writer->is_first = true;
    status = ds_accel__plan_variables(plan, rank, ds_accel__plan_port(plan), add_variable, writer);
    ds_accel__text_add(out, "},\"argv\":[");
    add_arguments(writer, rank);
    ds_accel__text_add(out, "]}");
    return status < 0 ? status : ds_accel__pieces_flush(&writer->pieces, false);
}

static void add_head(struct writer *writer)
{
    const struct ds_accel__plan *plan = writer->plan;
    struct ds_accel__text *out = &writer->pieces.text;

    ds_accel__text_add(out, "{\"schema_version\":1,\"accelerator\":");
    add_string(out, plan->accelerator);
    ds_accel__text_add(out, ",\"launcher\":");
    add_string(out, plan->refusal != NULL ? plan->options->launcher : "local");
    ds_accel__text_add(out, ",\"master_addr\":");
    add_string(out, plan->master_addr);
    if (ds_accel__plan_port(plan) > 0) {
        ds_accel__text_add(out, ",\"master_port\":%u", ds_accel__plan_port(plan));
    } else { /* it is chosen when the job starts */
        ds_accel__text_add(out, ",\"master_port\":null");
    }
    ds_accel__text_add(out, ",\"world_size\":%u,\"refusal\":", plan->world_size);
    add_string(out, plan->refusal);
}

static void add_exports(struct writer *writer)
{
    const char *name;
    json_t *value;

    writer->is_first = true;
    json_object_foreach(writer->plan->exports, name, value)
    {
        add_variable(writer, name, json_string_value(value));
    }
}

int32_t ds_accel__plan_write_json(const struct ds_accel__plan *plan, ds_accel_write_t write,
                                  void *user_data)
{
    struct writer writer = {.plan = plan, .pieces = {.write = write, .user_data = user_data}};
    int32_t status = DS_ACCEL_OK;

    add_head(&writer);
    ds_accel__text_add(&writer.pieces.text, ",\"hosts\":[");
    for (size_t i = 0; i < plan->hosts.count && status >= 0; i++) {
        ds_accel__text_add(&writer.pieces.text, i > 0 ? "," : "");
        add_host(&writer, &plan->hosts.items[i]);
        status = ds_accel__pieces_flush(&writer.pieces, false);
    }
    ds_accel__text_add(&writer.pieces.text, "],\"ranks\":[");
    for (uint32_t i = 0; i < plan->world_size && status >= 0; i++) {
        ds_accel__text_add(&writer.pieces.text, i > 0 ? "," : "");
        status = add_rank(&writer, &plan->ranks[i]);
    }
    ds_accel__text_add(&writer.pieces.text, "],\"exports\":{");
    add_exports(&writer);
    ds_accel__text_add(&writer.pieces.text, "},\"launch_argv\":[]}\n");
    status = status < 0 ? status : ds_accel__pieces_flush(&writer.pieces, true);
    ds_accel__pieces_clear(&writer.pieces);
    return status;
}
