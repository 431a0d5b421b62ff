/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The placements of machines.json, and what holds for every placement. */
#include "launch.h"

static bool has_common(const struct ds_accel__set *left, const struct ds_accel__set *right)
{
    for (uint32_t i = 0; i < left->count; i++) {
        if (ds_accel__set_has(right, left->items[i])) {
            return true;
        }
    }
    return false;
}

/* Ranks use only what this process may use, and no CPU that a rank reserves. With mode EXCLUSIVE,
 * no two ranks have a core in common, unless they have the core's number in a list twice. */
static bool is_sound(const struct ds_accel__plan *plan, const struct ds_accel__cpus *cpus)
{
    bool is_right = true;

    for (uint32_t i = 0; i < plan->local_count; i++) {
        const struct ds_accel__placement *placement = &plan->placements[i];

        is_right = is_right && ds_accel__set_has_all(&cpus->allowed, &placement->cpus) &&
                   ds_accel__set_has_all(&cpus->allowed, &placement->reserved) &&
                   ds_accel__set_has_all(&cpus->allowed_nodes, &placement->nodes) &&
                   (placement->memory == DS_ACCEL__MEMORY_DEFAULT) == (placement->nodes.count == 0);
        for (uint32_t j = 0; j < plan->local_count; j++) {
            const struct ds_accel__placement *other = &plan->placements[j];

            is_right = is_right && !has_common(&placement->cpus, &other->reserved) &&
                       (i == j || !has_common(&placement->reserved, &other->reserved)) &&
                       (i == j || plan->options->bind != DS_ACCEL__BIND_EXCLUSIVE ||
                        !has_common(&placement->cpus, &other->cpus));
        }
    }
    return is_right;
}

static void check_soundness(const json_t *description, const char *name)
{
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan = {0};
    struct job job;

    if (make_job(description, &job) >= 0 && plan_job(&job, &notes, &plan) >= 0) {
        check(name, is_sound(&plan, &job.cpus), "ranks use CPUs that they may not use");
    }
    ds_accel__text_clear(&notes);
    ds_accel__plan_clear(&plan);
    clear_job(&job);
}

void test_machines(void)
{
    json_t *table = read_data("machines.json");
    size_t i;
    json_t *plan;

    json_array_foreach(json_object_get(table, "plans"), i, plan)
    {
        json_t *answer = answer_job(plan);

        check_answer(member(plan, "name"), answer, json_object_get(plan, "expected"));
        check_soundness(plan, member(plan, "name"));
        json_decref(answer);
    }
    json_decref(table);
}
