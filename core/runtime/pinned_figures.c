/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Counters of a device's pinned memory. A block is *allocated* from the time when the pool obtains
 * it from the runtime until it is returned. A block is *active* from its allocation by the program
 * until the program has freed it and no stream uses it any more. pinned_stats.c has the names of
 * the statistics.
 */
#include "base/clock.h"
#include "base/text.h"
#include "runtime/pinned.h"

#include <assert.h>

static void add(struct ds_accel__pinned_figure *figure, uint64_t amount)
{
    figure->current += amount;
    figure->allocated += amount;
    if (figure->current > figure->peak) {
        figure->peak = figure->current;
    }
}

static void take(struct ds_accel__pinned_figure *figure, uint64_t amount)
{
    assert(figure->current >= amount);
    figure->current -= amount;
    figure->freed += amount;
}

void ds_accel__pinned_count(struct ds_accel__pinned *pool,
                            const struct ds_accel__pinned_block *block,
                            enum ds_accel__pinned_change change)
{
    struct ds_accel__pinned_figures *figures = &pool->figures;

    switch (change) {
    case DS_ACCEL__PINNED_HELD:
        add(&figures->blocks, 1);
        add(&figures->bytes, block->size_bytes);
        break;
    case DS_ACCEL__PINNED_GIVEN_BACK:
        take(&figures->blocks, 1);
        take(&figures->bytes, block->size_bytes);
        break;
    case DS_ACCEL__PINNED_BUSY:
        add(&figures->active, 1);
        add(&figures->active_bytes, block->size_bytes);
        break;
    default:
        assert(change == DS_ACCEL__PINNED_IDLE);
        take(&figures->active, 1);
        take(&figures->active_bytes, block->size_bytes);
        break;
    }
}

void ds_accel__pinned_time(struct ds_accel__pinned *pool, bool is_free, uint64_t begin_ns)
{
    struct ds_accel__pinned_duration *duration = is_free ? &pool->figures.freeing
                                                         : &pool->figures.allocating;
    uint64_t us = (ds_accel__now_ns() - begin_ns) / 1000;

    pthread_mutex_lock(&pool->lock);
    duration->total_us += us;
    duration->most_us = us > duration->most_us ? us : duration->most_us;
    duration->least_us = duration->count == 0 || us < duration->least_us ? us : duration->least_us;
    duration->count++;
    pthread_mutex_unlock(&pool->lock);
}

void ds_accel__pinned_forget_peaks(struct ds_accel__pinned *pool)
{
    struct ds_accel__pinned_figure *const all[] = {&pool->figures.blocks, &pool->figures.bytes,
                                                   &pool->figures.active,
                                                   &pool->figures.active_bytes};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i]->peak = all[i]->current;
    }
}
