/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The variables that a rank gets in addition to the environment of the job. */
#include "base/text.h"
#include "launch/plan.h"

#include <stdio.h>

/* The value of the variables that choose another host's devices: all of them, for each rank. */
static void write_visible(const struct ds_accel__job_host *host, struct ds_accel__text *text)
{
    for (uint32_t i = 0; i < host->slot_count; i++) {
        const struct ds_accel__slot *slot = &host->slots[i];

        if (slot->token != NULL) {
            ds_accel__text_add(text, "%s%s", i > 0 ? "," : "", slot->token);
        } else {
            ds_accel__text_add(text, "%s%u", i > 0 ? "," : "", slot->index);
        }
    }
}

static bool visit_number(ds_accel__variable_visit_t visit, void *user_data, const char *name,
                         uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return visit(user_data, name, text);
}

static bool visit_ranks(const struct ds_accel__plan *plan, const struct ds_accel__rank *rank,
                        uint16_t port, ds_accel__variable_visit_t visit, void *user_data)
{
    uint32_t local_size = plan->hosts.items[rank->host].slot_count;

    return visit(user_data, "MASTER_ADDR", plan->master_addr) &&
           (port == 0 || visit_number(visit, user_data, "MASTER_PORT", port)) &&
           visit_number(visit, user_data, "WORLD_SIZE", plan->world_size) &&
           visit_number(visit, user_data, "RANK", rank->rank) &&
           visit_number(visit, user_data, "LOCAL_RANK", rank->local_rank) &&
           visit_number(visit, user_data, "LOCAL_SIZE", local_size) &&
           visit_number(visit, user_data, "LOCAL_WORLD_SIZE", local_size) &&
           visit_number(visit, user_data, "CROSS_RANK", rank->host) &&
           visit_number(visit, user_data, "CROSS_SIZE", plan->hosts.count);
}

static bool visit_placement(const struct ds_accel__placement *placement,
                            ds_accel__variable_visit_t visit, void *user_data)
{
    struct ds_accel__text text = {0};
    bool goes_on = true;

    if (placement->thread_count > 0) {
        goes_on = visit_number(visit, user_data, "OMP_NUM_THREADS", placement->thread_count);
    }
    if (goes_on && placement->reserved.count > 0) {
        ds_accel__set_write(&placement->reserved, &text);
        goes_on = !text.failed && visit(user_data, "DS_ACCEL_RESERVED_CPUS", text.data);
        ds_accel__text_clear(&text);
    }
    return goes_on;
}

int32_t ds_accel__plan_variables(const struct ds_accel__plan *plan,
                                 const struct ds_accel__rank *rank, uint16_t port,
                                 ds_accel__variable_visit_t visit, void *user_data)
{
    struct ds_accel__text visible = {0};
    const char *name;
    json_t *value;
    bool goes_on;

    write_visible(&plan->hosts.items[rank->host], &visible);
    goes_on = !visible.failed;
    for (size_t i = 0; goes_on && i < json_array_size(plan->visible_names); i++) {
        const char *here = json_string_value(json_array_get(plan->visible_values, i));

        goes_on = visit(user_data, json_string_value(json_array_get(plan->visible_names, i)),
                        rank->host == plan->local_host && here != NULL ? here : visible.data);
    }
    ds_accel__text_clear(&visible);
    goes_on = goes_on && visit_ranks(plan, rank, port, visit, user_data);
    if (goes_on && rank->placement != NULL) {
        goes_on = visit_placement(rank->placement, visit, user_data);
    }
    if (goes_on) {
        json_object_foreach(plan->settings, name, value)
        {
            goes_on = goes_on && visit(user_data, name, json_string_value(value));
        }
    }
    return goes_on ? DS_ACCEL_OK : ds_accel__no_memory();
}
