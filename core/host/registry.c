/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The candidates of a context, in the order in which they are evaluated. */
#include "host/registry.h"
#include "base/text.h"
#include "config/config.h"
#include "host/context.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    size_t position; /* rank of the name: rank_of() */
    /* Position on the search path: a shadowed candidate sorts after the one that shadows it. */
    size_t found;
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

/*
 * Rank a name: first the listed names in their order, then the other names, then cpu, unless cpu is
 * listed before another name.
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
        assert(i == 0 || compare_ranks(&ranks[i - 1], &ranks[i]) < 0); /* no two ranks are equal */
        registry->candidates[i] = ranks[i].candidate;
    }
    free(ranks);
    return DS_ACCEL_OK;
}
